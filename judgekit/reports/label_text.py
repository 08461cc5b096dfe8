"""A case as a person sees it who labels in the terminal."""

from collections.abc import Iterator, Mapping, Sequence

from judgekit.core.cases import Criterion
from judgekit.core.human_labels import LabelItem
from judgekit.core.kind import Kind

RULE = "-" * 72

TITLES = {"references": "Reference answers"}
"""What stands above texts, where it is not their name."""

KEYS = frozenset("sbqc?")
"""What is typed for something else than a label."""


def case_text(item: LabelItem, place: str) -> str:
    """What the judge was shown, last the answer; nothing of what a judge said.

    Foreign text is in it as it is: it has to go through `printable`.
    """
    return "\n".join([RULE, f"{place}   {item.case_id}", *_parts(item)])


def _parts(item: LabelItem) -> Iterator[str]:
    for name, texts in item.shown.items():
        title = name if "." in name else f"{name[:1].upper()}{name[1:].replace('_', ' ')}"
        yield from _block(TITLES.get(name, title), texts)


def _block(title: str, texts: Sequence[str]) -> Iterator[str]:
    if any(text.strip() for text in texts):
        yield f"\n{title}:"
        for text in texts:
            yield from (f"  {line}" for line in text.splitlines())


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
