"""From the tokens of a reply to the probability of each value that its verdict could have had.

The deciding value is looked up in the reply, and the tokens that make it up are read from left to right. An alternative
belongs to an option if it can be the beginning of no other one: `4`, ` 4` and `"4` are the option `4`, and `wa` is
neither `warm` nor `warn`. Only then does the next token decide, and only along what was written. What belongs to no
option is left out and reported as missing; nothing is guessed.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from judgekit.core.components import Judge
from judgekit.core.judgments import ModelResponse, Verdict
from judgekit.core.token_runs import OptionProbabilities, Token, TokenRun
from judgekit.judges.objects import fold
from judgekit.judges.parsing import ParsedReply

ProbabilityFlag = Literal["probabilities_absent", "probabilities_misplaced", "probabilities_invalid"]
"""Why a verdict has no probabilities: the reply has none; they are not those of the deciding value; they are not
probabilities."""

_BEFORE_VALUE = ' \t\r\n"'
_WHITE_SPACE = " \t\r\n"
_SUM_TOLERANCE = 0.01
_decoder = json.JSONDecoder()


def weighed(parsed: ParsedReply, response: ModelResponse, judge: Judge) -> tuple[Verdict, TokenRun | None]:
    """The verdict of a reply with its probabilities, and the tokens that they come from.

    Args:
        parsed: what was read from the reply.
        response: the reply, with its tokens or the probabilities that the server states.
        judge: says what the deciding value may be.

    Raises:
        ProbabilityError: the reply has no probabilities.
    """
    options, key = judge.kind.reply_options, judge.decisive_key
    kept = None
    if response.stated is not None and judge.kind.has_parts:
        names = [item.id for item in parsed.verdict.criteria or ()]
        found = _of_parts({name: _stated(response.stated, name, options) for name in names})
    elif response.stated is not None:
        found = _stated(response.stated, key, options)
    else:
        text = response.text or ""
        place = deciding_place(text, parsed.source, key)
        kept = deciding_tokens(response.tokens, text, place)
        found = token_probabilities(kept, text, place, options)
    update = {"probabilities": found.by_option, "probability_mass": found.mass}
    return parsed.verdict.model_copy(update=update), kept


def _stated(stated: Mapping[str, OptionProbabilities], name: str, options: Sequence[str]) -> OptionProbabilities:
    if name not in stated:
        raise ProbabilityError("probabilities_absent", f"the reply states no probabilities of {name!r}")
    return stated_probabilities(stated[name], options)


def _of_parts(parts: Mapping[str, OptionProbabilities]) -> OptionProbabilities:
    """That each of several criteria is met, of what can be told of it; the least of their masses is that of all."""
    told = {name: (found.by_option["true"], found.by_option["false"]) for name, found in parts.items()}
    met = {name: yes / (yes + no) for name, (yes, no) in told.items() if yes + no > 0}
    return OptionProbabilities(met, min((found.mass for found in parts.values()), default=1.0))


class ProbabilityError(Exception):
    """There are no probabilities of a verdict."""

    def __init__(self, flag: ProbabilityFlag, message: str) -> None:
        super().__init__(message)
        self.flag: ProbabilityFlag = flag


def deciding_place(text: str, source: str, key: str) -> tuple[int, int]:
    """Where the deciding value begins and ends in a reply, without the quotes around it.

    Args:
        text: the reply.
        source: the object in it that the verdict was read from.
        key: the deciding one.

    Raises:
        ProbabilityError: the object is not valid JSON as it is, or stands in the reply twice.
    """
    if text.count(source) != 1:
        raise ProbabilityError("probabilities_misplaced", "the verdict does not stand in the reply exactly once")
    try:
        start, end = _member(source, key)
    except ValueError:
        raise ProbabilityError("probabilities_misplaced", "the verdict had to be mended to be read") from None
    if source[start] == '"':
        start, end = start + 1, end - 1
    if "\\" in source[start:end]:
        raise ProbabilityError("probabilities_misplaced", "the verdict is written with escapes")
    before = text.index(source)
    return before + start, before + end


def _member(source: str, key: str) -> tuple[int, int]:
    """Start and end of the value of a key; a ValueError if the object is not JSON or lacks it."""
    position = _after_space(source, source.index("{") + 1)
    while source[position : position + 1] == '"':
        name, position = _decoder.raw_decode(source, position)
        position = _after_space(source, position)
        if source[position : position + 1] != ":":
            break
        start = _after_space(source, position + 1)
        _, end = _decoder.raw_decode(source, start)
        if fold(name) == fold(key):
            return start, end
        position = _after_space(source, end)
        if source[position : position + 1] == ",":
            position = _after_space(source, position + 1)
    raise ValueError("no such member")


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _WHITE_SPACE:
        position += 1
    return position


def deciding_tokens(run: TokenRun | None, text: str, place: tuple[int, int]) -> TokenRun:
    """The tokens of the deciding value and the one that follows it, which is all that has to be kept.

    Args:
        run: the tokens of the reply, all or a part.
        text: the reply.
        place: of the value, see `deciding_place`.

    Raises:
        ProbabilityError: there are no tokens, or they are not those of the reply.
    """
    if run is None or not run.tokens:
        raise ProbabilityError("probabilities_absent", "the reply carries no token probabilities")
    start = _start_of(run, text)
    kept: list[Token] = []
    first: int | None = None
    for token in run.tokens:
        end = start + len(token.text)
        if end > place[0] and token.text:
            first = start if first is None else first
            kept.append(token)
            if end > place[1]:
                break
        start = end
    if first is None or first > place[0]:
        raise ProbabilityError("probabilities_misplaced", "the tokens do not reach the verdict")
    return TokenRun(tuple(kept), first)


def _start_of(run: TokenRun, text: str) -> int:
    """Where the tokens begin in the text; below 0 if they begin before it."""
    joined = "".join(token.text for token in run.tokens)
    if run.start is not None:
        shared = text[max(0, run.start) :]
        ours = joined[max(0, -run.start) :]
        if ours[: len(shared)] == shared[: len(ours)]:
            return run.start
    elif text and joined.count(text) == 1:
        # A server may take away a fence or thinking that the model wrote.
        return -joined.index(text)
    raise ProbabilityError("probabilities_misplaced", "the tokens are not those of the reply")


def token_probabilities(
    run: TokenRun, text: str, place: tuple[int, int], options: Sequence[str]
) -> OptionProbabilities:
    """The probability of each option by the tokens of the deciding value.

    Args:
        run: see `deciding_tokens`.
        text: the reply.
        place: of the value.
        options: the texts that the value can have.

    Returns:
        Shares of the options that came up. Along a value of several tokens, the probabilities are multiplied.

    Raises:
        ProbabilityError: the value is not written as one of the options, or what is said of its tokens is no
            probability.
    """
    written = _written(text[place[0] : place[1]], options)
    found: dict[str, float] = {}
    reached, before = 1.0, ""
    lead = run.tokens[0].text[: place[0] - (run.start or 0)]
    for number, token in enumerate(run.tokens):
        if not token.alternatives:
            raise ProbabilityError("probabilities_misplaced", "a character of the verdict is made of several tokens")
        own = token.text[len(lead) :] if number == 0 else token.text
        on_path = 0.0
        for alternative, log_probability in token.alternatives:
            share = reached * _probability(log_probability)
            rest = _continued(alternative, lead) if number == 0 else alternative
            options_left = () if rest is None else _may_be(before + rest, options)
            if len(options_left) == 1:
                found[options_left[0]] = found.get(options_left[0], 0.0) + share
            if alternative == token.text:
                on_path += share
        before += own
        left = _may_be(before, options)
        if len(left) == 1:
            return _shares(found, left[0], written)
        if not left:
            break
        reached = on_path
    raise ProbabilityError("probabilities_misplaced", "the tokens of the verdict are those of none of its options")


def _written(value: str, options: Sequence[str]) -> str:
    """The option that a value is."""
    plain = value.strip().casefold()
    whole, _, zeros = plain.partition(".")
    by_text = {option.casefold(): option for option in options}
    if plain in by_text:
        return by_text[plain]
    if whole in by_text and not zeros.strip("0"):
        return by_text[whole]
    raise ProbabilityError("probabilities_misplaced", f"the verdict is written as {value[:40]!r}, which is no option")


def _continued(alternative: str, lead: str) -> str | None:
    """What an alternative of the first token says of the value; None if it is not about it."""
    if alternative.startswith(lead):
        return alternative[len(lead) :].lstrip(_BEFORE_VALUE)
    return None if lead.strip(_BEFORE_VALUE) else alternative.lstrip(_BEFORE_VALUE)


def _may_be(beginning: str, options: Sequence[str]) -> tuple[str, ...]:
    """The options that a text can be the beginning of, or that it holds whole."""
    beginning = beginning.casefold()
    return tuple(option for option in options if _is_begun(beginning, option.casefold()))


def _is_begun(beginning: str, option: str) -> bool:
    if len(beginning) <= len(option):
        return option.startswith(beginning)
    after = beginning[len(option)]
    return beginning.startswith(option) and not (after.isalnum() or after in "._-")


def _probability(log_probability: float) -> float:
    if math.isnan(log_probability) or log_probability > 1e-6:
        raise ProbabilityError("probabilities_invalid", f"a log probability is {log_probability}")
    return math.exp(min(0.0, log_probability))


def _shares(found: Mapping[str, float], decided: str, written: str) -> OptionProbabilities:
    mass = math.fsum(found.values())
    if decided != written or not found.get(written):
        raise ProbabilityError("probabilities_misplaced", "the tokens of the verdict say another option than it does")
    if mass > 1 + _SUM_TOLERANCE:
        raise ProbabilityError("probabilities_invalid", f"the probabilities sum to {mass:.3f}")
    return OptionProbabilities({option: share / mass for option, share in found.items()}, min(1.0, mass))


def stated_probabilities(stated: OptionProbabilities, options: Sequence[str]) -> OptionProbabilities:
    """Probabilities that a server states, if they are what they should be.

    Raises:
        ProbabilityError: an option lacks one, one is of something else or outside 0..1, or they do not sum to 1.
    """
    given = stated.by_option
    missing = [option for option in options if option not in given]
    if missing or len(given) != len(options):
        what = f"lack {missing[0]!r}" if missing else f"are of {len(given)} options instead of {len(options)}"
        raise ProbabilityError("probabilities_invalid", f"the probabilities of the reply {what}")
    wrong = [share for share in [*given.values(), stated.mass] if not 0.0 <= share <= 1 + _SUM_TOLERANCE]
    total = math.fsum(given.values())
    if wrong or abs(total - 1.0) > _SUM_TOLERANCE:
        what = f"hold {wrong[0]:g}" if wrong else f"sum to {total:.3f}, not to 1"
        raise ProbabilityError("probabilities_invalid", f"the probabilities of the reply {what}")
    return OptionProbabilities({option: given[option] / total for option in options}, min(1.0, stated.mass))
