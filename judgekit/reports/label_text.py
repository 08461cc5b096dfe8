"""A case as a person sees it who labels in the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from judgekit.core.cases import Criterion
from judgekit.core.human_labels import LabelItem
from judgekit.core.judgments import CANNOT_TELL
from judgekit.core.kind import Kind

RULE = "-" * 72

TITLES = {"references": "Reference answers"}
"""What stands above texts, where it is not their name."""

CANNOT_TELL_KEY = "c"

KEYS = frozenset("sbqc?")
"""What is typed for something else than a label."""


def case_text(item: LabelItem, place: str) -> str:
    """What the judge was shown, last the answer; nothing of what a judge said.

    Foreign text is in it as it is: it has to go through `printable`.
    """
    return "\n".join([RULE, f"{place}   {item.case_id}", *_parts(item)])


def _parts(item: LabelItem) -> Iterator[str]:
    for title, texts in titled_texts(item):
        yield f"\n{title}:"
        for text in texts:
            yield from (f"  {line}" for line in text.splitlines())


def titled_texts(item: LabelItem) -> Iterator[tuple[str, Sequence[str]]]:
    """What the judge was shown, with what stands above it; nothing of what is empty."""
    for name, texts in item.shown.items():
        title = name if "." in name else f"{name[:1].upper()}{name[1:].replace('_', ' ')}"
        if any(text.strip() for text in texts):
            yield TITLES.get(name, title), texts


@dataclass(frozen=True)
class Choice:
    """A label that can be given."""

    typed: str
    """What is typed for it."""
    name: str
    value: int | str | bool
    """As `HumanLabel.value` has it."""
    meaning: str = ""


MOST_CHOICES = 21
"""Scores that are listed one by one; of a longer scale one is typed."""


def choices(kind: Kind, meanings: Mapping[str, str]) -> list[Choice]:
    """The labels that a case, or a criterion of it, can be given; no scores of a scale that is too long to list."""
    low, high = kind.category_bounds
    if kind.has_parts or not (kind.is_nominal or kind.has_points):
        found = [Choice("y", "yes", "yes", meanings.get("yes", "")), Choice("n", "no", "no", meanings.get("no", ""))]
    elif kind.is_nominal:
        by_name = any(name.isdecimal() for name in kind.options)
        found = [
            Choice(name if by_name else str(number), name, name, meanings.get(name, ""))
            for number, name in enumerate(kind.options, start=1)
        ]
    else:
        scores = range(low, high + 1) if high - low < MOST_CHOICES else ()
        found = [Choice(str(score), str(score), score, meanings.get(str(score), "")) for score in scores]
    return [*found, Choice(CANNOT_TELL_KEY, "cannot tell", CANNOT_TELL)] if kind.cannot_tell else found


def prompt_text(ask: str, kind: Kind, meanings: Mapping[str, str], criterion: Criterion | None) -> str:
    """What is asked: the question, and the labels with what each one means, or the next criterion."""
    lines = [ask] if ask else []
    if criterion is not None:
        lines, label = [*lines, f"{criterion.id}: {criterion.text}"], "met? y or n"
    elif kind.is_nominal:
        lines += [
            f"  {number} {name}" + (f": {meanings[name]}" if name in meanings else "")
            for number, name in enumerate(kind.options, start=1)
        ]
        # A name that is one of the keys would do what the key does.
        by_name = "" if KEYS.intersection(map(str.casefold, kind.options)) else " or its name"
        label = f"label 1-{len(kind.options)}{by_name}"
    elif kind.has_points:
        low, high = kind.category_bounds
        label = f"label {low}-{high} (or y/n)"
    else:
        label = "label y or n"
    tell = ", c cannot tell" if kind.cannot_tell else ""
    return "\n" + "\n".join([*lines, f"{label}{tell}, s skip, b back, ? help, q quit: "])


def rubric_text(rubric: str) -> str:
    """What the verdicts mean."""
    return f"\nWhat the judge is told of its verdicts:\n{rubric}\n"
