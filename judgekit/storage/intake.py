"""What was read of a file so far: ids with their places, and what is wrong, with one line for each thing."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.problems import line_of, one_line
from judgekit.storage.rows import Row, read_text

SHOWN_PROBLEMS = 20
"""Problems that are named; the rest is counted."""

T = TypeVar("T")


class Intake:
    """Takes the records of a file; after the first thing that is wrong it only looks for more of that."""

    def __init__(self, file: DataFile, path: Path, id_name: str = "id") -> None:
        """Prepare for the first record.

        Args:
            file: how it is read.
            path: where it is.
            id_name: what messages call the id of a record.
        """
        self._file, self._path, self._id_name = file, path, id_name
        self._places: dict[str, Row | int] = {}
        """Where each id was met first."""
        self._wrong: list[tuple[Row | None, str]] = []

    def take(self, row: Row, found: tuple[str, T] | list[str]) -> T | None:
        """Take id and record of a row, or what is wrong with it, and give the record; None once something is wrong."""
        if isinstance(found, list):
            self._wrong += [(row, problem) for problem in found]
            return None
        key, made = found
        if key in self._places:
            self._wrong.append((row, f"{row.path}: {self._id_name} {key!r} is already {_place(self._places[key])}"))
            return None
        if row.line and row.path == "$" and not row.file:
            self._places[key] = row.line
        else:
            self._places[key] = Row(row.line, row.path, None, file=row.file)
        return None if self._wrong else made

    def close(self, unmatched: Sequence[str] = ()) -> None:
        """Say what is wrong.

        Args:
            unmatched: what is wrong with the file as a whole.

        Raises:
            InputError: one line for each thing (20 at most, then a count).
        """
        # Readers differ in what they come upon first.
        in_order = sorted(self._wrong, key=lambda one: (one[0].file, one[0].line) if one[0] is not None else ("", 0))
        wrong = [*((None, problem) for problem in unmatched), *in_order]
        if wrong:
            raise InputError("\n".join(map(one_line, self._said(wrong))))

    def _said(self, wrong: list[tuple[Row | None, str]]) -> list[str]:
        """One line for each problem, 20 at most and then a count; lines of JSON documents are looked up here."""
        texts: dict[str, str] = {}
        lines = []
        distinct = _said_once(wrong)
        for row, problem in distinct[:SHOWN_PROBLEMS]:
            where = str(self._path)
            if row is not None:
                line: int | None = row.line
                if row.place is not None:
                    if row.file not in texts:
                        texts[row.file] = read_text(self._file, self._path / row.file)
                    line = line_of(texts[row.file], row.place)
                where += f"/{row.file}" * bool(row.file) + f":{line}" * bool(line)
            lines.append(f"{where}: {problem}")
        if len(distinct) > SHOWN_PROBLEMS:
            lines.append(f"... and {len(distinct) - SHOWN_PROBLEMS} more")
        return lines


def _said_once(wrong: Sequence[tuple[Row | None, str]]) -> list[tuple[Row | None, str]]:
    """Each problem where it is met first; what is wrong in several records, such as a column of another type, is one.

    Args:
        wrong: record, or None for the file as a whole, and what is wrong with it.
    """
    alike: dict[tuple[str, str], list[tuple[Row | None, str]]] = {}
    for number, (row, problem) in enumerate(wrong):
        key = (row.file, _without_places(row, problem)) if row is not None else ("", str(number))
        alike.setdefault(key, []).append((row, problem))
    return [
        (group[0][0], group[0][1] + _others([row for row, _ in group if row is not None])) for group in alike.values()
    ]


def _without_places(row: Row, problem: str) -> str:
    """What makes problems alike: not the record, the index in a list, or the text that was found."""
    path, colon, message = problem.removeprefix(row.path).partition(": ")
    return re.sub(r"\[\d+\]", "[]", path) + colon + message.partition(", found the text ")[0]


def _others(rows: list[Row]) -> str:
    """The records beside the first that have the same problem."""
    others = list(dict.fromkeys((row.line, row.path) for row in rows))[1:]
    if not others:
        return ""
    numbers = [str(line) for line, _ in others if line]
    shown = ", ".join(numbers[:5]) + " ..." * (len(numbers) > 5)
    said = f"the same in {len(others)} more record{'s' * (len(others) > 1)}"
    return f" ({said}, on line{'s' * (len(numbers) > 1)} {shown})" if numbers else f" ({said})"


def _place(row: Row | int) -> str:
    if isinstance(row, int):
        return f"on line {row}"
    if not row.line:
        return f"at {row.path}" + f" of {row.file}" * bool(row.file)
    where = f"on line {row.line}" + f" of {row.file}" * bool(row.file)
    return where if row.path == "$" else f"{where} ({row.path})"
