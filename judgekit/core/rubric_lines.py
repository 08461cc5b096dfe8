"""The rubric inside a wording: the lines that say what each score means."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ITEM = re.compile(
    r"^([ \t]*)(?:[-*][ \t]*)?(?:score[ \t]+)?(\d{1,2})[ \t]*(?:[:.)=]|[-\u2013\u2014][ \t])[ \t]*\S", re.IGNORECASE
)
"""`5: fully correct`, `5. fully correct`, `- 5 = fully correct`, `Score 5 - fully correct`."""


@dataclass(frozen=True)
class Rubric:
    """Where the rubric of a text stands, and what it says."""

    start: int
    """Number of its first line, from 0."""
    items: tuple[tuple[int, tuple[str, ...]], ...]
    """Score and lines of each item, in the order of the text; an item may go on on lines that are indented further."""

    @property
    def n_lines(self) -> int:
        """Number of lines that it takes up."""
        return sum(len(lines) for _, lines in self.items)


def find_rubric(text: str, low: int = 0, high: int = 5) -> Rubric | None:
    """The one block of lines that goes through every score of the scale, upwards or downwards.

    Args:
        text: instructions of a wording.
        low: lowest score of the scale.
        high: highest score.

    Returns:
        None if there is no such block, or more than one.
    """
    lines = text.split("\n")
    wanted = list(range(low, high + 1))
    found = [
        rubric
        for start in range(len(lines))
        if (rubric := _block_at(lines, start, len(wanted))) is not None
        and [score for score, _ in rubric.items] in (wanted, wanted[::-1])
    ]
    return found[0] if len(found) == 1 else None


def _block_at(lines: Sequence[str], start: int, most: int) -> Rubric | None:
    items: list[tuple[int, list[str]]] = []
    indent = 0
    for line in lines[start:]:
        match = _ITEM.match(line)
        if match is not None and len(items) < most and (not items or len(match[1]) == indent):
            indent = len(match[1])
            items.append((int(match[2]), [line]))
        elif items and line.strip() and len(line) - len(line.lstrip()) > indent:
            items[-1][1].append(line)
        else:
            break
    return Rubric(start, tuple((score, tuple(own)) for score, own in items)) if items else None


def reversed_rubric(text: str, low: int = 0, high: int = 5) -> str | None:
    """The text with the items of its rubric in reverse order and nothing else changed; None if no rubric is found.

    Reversing twice gives the text back.
    """
    rubric = find_rubric(text, low, high)
    if rubric is None:
        return None
    lines = text.split("\n")
    turned = [line for _, own in reversed(rubric.items) for line in own]
    return "\n".join([*lines[: rubric.start], *turned, *lines[rubric.start + rubric.n_lines :]])
