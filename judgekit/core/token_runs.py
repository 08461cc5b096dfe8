"""The tokens of a reply with what else the model could have written in their place."""

from dataclasses import dataclass

LEAST_MASS = 0.9
"""An expected score needs at least this probability on the options of the judge; the rest went to other tokens."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token, or several that together make a character."""

    text: str
    alternatives: tuple[tuple[str, float], ...] = ()
    """Texts that could have come here, the token itself included, with the natural logarithm of their probability.

    Empty for a character that several tokens make up."""


@dataclass(frozen=True, slots=True)
class TokenRun:
    """Tokens that follow each other without a gap."""

    tokens: tuple[Token, ...]
    start: int | None = None
    """Where the first one begins in the text of the reply; None: not known, as a server may leave out a part of what
    the model wrote, such as a fence."""


@dataclass(frozen=True, slots=True)
class OptionProbabilities:
    """How likely a model held each value that a verdict can have."""

    by_option: dict[str, float]
    """Shares of the options that came up, by their text; they sum to 1."""
    mass: float
    """What they summed to before that. An option that is not there had at most the rest, `1 - mass`."""
