"""What `judgekit init --from` says of a data file: each column, what it is taken for, and an example."""

from collections.abc import Sequence

from judgekit.reports.figures import printable

_NAME_WIDTH = 28
_EXAMPLE_WIDTH = 48


def look_lines(title: str, columns: Sequence[tuple[str, str | None, str]], notes: Sequence[str]) -> list[str]:
    """The lines to print; names and examples are foreign text, cut to one line each.

    Args:
        title: what was looked at.
        columns: name, what it is taken for (None: metadata), example.
        notes: what to look at.
    """
    rows = [
        (_short(name, _NAME_WIDTH), taken_for or "metadata", _short(example, _EXAMPLE_WIDTH))
        for name, taken_for, example in columns
    ]
    rows.insert(0, ("column", "taken for", "example"))
    wide, less = (max(len(row[number]) for row in rows) for number in (0, 1))
    table = [f"  {name:<{wide}}  {taken_for:<{less}}  {example}".rstrip() for name, taken_for, example in rows]
    return [printable(title), *table, *(f"look at: {_short(note, 400)}" for note in notes)]


def _short(text: str, width: int) -> str:
    one_line = " ".join(printable(text).split())
    return one_line if len(one_line) <= width else f"{one_line[: width - 3]}..."
