"""Cells of tables, which are texts: lists and flags in them, and a count of those that may not be what they seem."""

import re
from itertools import pairwise
from typing import Any

from judgekit.storage.dotted import value_in

FLAGS = {
    **dict.fromkeys(("true", "yes", "1", "1.0", "wahr", "vrai", "verdadero", "vero", "verdadeiro", "waar"), True),
    **dict.fromkeys(("false", "no", "0", "0.0", "falsch", "faux", "falso", "onwaar"), False),
}
"""What a cell of a true or false field may hold, in any case; spreadsheet programs write it in their own language."""

_UNANSWERABLE = frozenset(
    {"unanswerable", "isunanswerable", "notanswerable", "nonanswerable", "impossible", "isimpossible", "noanswer"}
)
_SIGNS = re.compile(r"[\W_]+")

PROSE = {"retrieved", "reference_answers", "key_facts", "context"}
"""Fields whose items are running text, which may begin with a bracket; ids and labels do not."""

_BAR = "|"
_NEIGHBOURS = re.compile(r"""['"]\s*['"]""")


def is_unanswerable(name: str) -> bool:
    """Whether a flag of this name is true where `answerable` is false."""
    return _SIGNS.sub("", name.rpartition(".")[2]).lower() in _UNANSWERABLE


def turned_around(flag: Any) -> Any:
    """The opposite of a flag; what is not a flag as it is."""
    value = FLAGS.get(flag.strip().lower(), flag) if isinstance(flag, str) else flag
    return not value if isinstance(value, int | float) and value in (0, 1) else value


class ListCells:
    """Reads the list cells of a file."""

    def __init__(self, separator: str | None) -> None:
        """Prepare for one file.

        Args:
            separator: what stands between the items of a cell that is not a JSON list; None: it is one item.
        """
        self._separator = separator
        self._n_bracketed = 0
        self._n_cut = 0

    def items(self, name: str, cell: str, *, are_texts: bool = True) -> list[Any] | None:
        """The list that a cell holds: JSON, what Python's `str` makes of a list, or separated texts; None: nothing.

        A text may begin like a list: with a stage direction, or the number of a footnote.

        Args:
            name: the field, for messages.
            cell: its text.
            are_texts: what begins like a list and is not one is a text.

        Raises:
            ValueError: it is a list as numpy prints it, or begins like one and is not one, where that is not a text.
        """
        if cell.lstrip().startswith("["):
            found = _list(name, cell.strip())
            if found is not None and not (are_texts and found and _are_numbers(found)):
                return found
            if not are_texts:
                raise ValueError(f"{name}: starts like a list, but is not one")
            self._n_bracketed += 1
            return [cell]
        pieces = cell.split(self._separator) if self._separator else [cell]
        if self._separator == _BAR and len(pieces) > 1:
            self._n_cut += any(not piece.strip() for piece in pieces) or any(map(_is_padded, pairwise(pieces)))
        kept = [piece.strip() if self._separator else piece for piece in pieces if piece.strip()]
        return kept or None

    def notices(self) -> list[tuple[str, str]]:
        """(code, message) about cells that may not be what they seem."""
        said = []
        if self._n_bracketed:
            told = f"{self._n_bracketed} cells begin with [ and hold no list, so each is read as one text"
            said.append(("cells_like_lists", told))
        if self._n_cut:
            message = (
                f"{self._n_cut} cells have blanks or nothing beside a |, as tables and shell lines have; they may be "
                "split where no passage ends; the JSON form of these data has no such loss"
            )
            said.append(("cells_cut_at_bars", message))
        return said


def _is_padded(pair: tuple[str, str]) -> bool:
    """Whether blanks stand at the place where a cell is split."""
    return pair[0].endswith((" ", "\n", "\r", "\t")) or pair[1].startswith((" ", "\n", "\r", "\t"))


def _are_numbers(items: list[Any]) -> bool:
    return all(isinstance(item, int | float) for item in items)


def _list(name: str, cell: str) -> list[Any] | None:
    """`["a", "b"]`, or `['a', 'b']`, as pandas writes lists; None: it is not a list.

    `['a' 'b']`, as numpy prints arrays, would be read as one text and is refused.
    """
    found = value_in(cell)
    if not isinstance(found, list):
        return None
    if _NEIGHBOURS.search(cell) and _has_neighbours(cell):
        raise ValueError(f"{name}: a list without commas, as numpy prints arrays; write it as a JSON list")
    return found


def _has_neighbours(cell: str) -> bool:
    """Whether two texts follow each other without a comma."""
    import io
    import tokenize

    try:
        kinds = [token.type for token in tokenize.generate_tokens(io.StringIO(cell).readline)]
    except (SyntaxError, tokenize.TokenError):
        return False
    told = [kind for kind in kinds if kind != tokenize.NL]
    return any(pair == (tokenize.STRING, tokenize.STRING) for pair in pairwise(told))
