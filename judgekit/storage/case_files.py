"""Cases and outputs from files and folders: field mapping, checks, and one line for each thing that is wrong."""

import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from judgekit.core.answers import INVALID
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.collector import collector_paused
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError, StorageError
from judgekit.core.protocols import AskError
from judgekit.storage.column_names import advice
from judgekit.storage.dotted import EACH, field_heads
from judgekit.storage.encodings import Hashes
from judgekit.storage.field_mapping import FieldMapping
from judgekit.storage.file_series import is_pattern, series_folder
from judgekit.storage.id_lists import RETRIEVED_IDS
from judgekit.storage.problems import MISSING, Location, line_of, one_line, problems
from judgekit.storage.reading import reading_of
from judgekit.storage.rows import Notices, Row, is_folder, read_text
from judgekit.storage.sqlite_files import scratch_database

M = TypeVar("M", Case, SystemOutput)


@dataclass(frozen=True)
class Skim:
    """Which records of a file are read as a whole; of the others only the id is."""

    wanted: Callable[[str], bool]
    """Is told the id of every record, in the order of the file. Says whether the record is wanted.

    A record whose id does not say all about it, such as one of several answers to a case, is given whatever it says.
    """
    unless: Collection[str] = ()
    """Fields; a record that has one of them is read as a whole."""
    is_first: bool = True
    """No id was held against the others before."""


def load_cases(source: DataFile, path: Path, notices: Notices | None = None) -> list[Case]:
    """All cases of a file or folder, in order.

    Args:
        source: how it is read.
        path: where it is.
        notices: takes (code, message) of what the reader of the numbers should know.

    Raises:
        InputError: one line for each problem (20 at most, then a count), duplicate ids among them.
    """
    with collector_paused():
        return list(iterate_cases(source, path, notices))


def iterate_cases(
    source: DataFile, path: Path, notices: Notices | None = None, skim: Skim | None = None
) -> Iterator[Case]:
    """The cases of a file as they are read; what is wrong is raised after the last good one."""
    return _iterate(source, path, Case, notices, skim)


def iterate_outputs(
    source: DataFile, path: Path, notices: Notices | None = None, skim: Skim | None = None
) -> Iterator[SystemOutput]:
    """The outputs of a file as they are read; what is wrong is raised after the last good one."""
    return _iterate(source, path, SystemOutput, notices, skim)


def data_sha256(source: DataFile, path: Path, known: Hashes | None = None) -> str:
    """SHA-256 of what is read of a file or folder, hexadecimal: of a file its bytes, of a folder names and hashes.

    Args:
        source: how it is read.
        path: where it is.
        known: hashes of files that were read just now.

    Raises:
        InputError: a file cannot be read.
    """
    if (
        is_folder(path) or is_pattern(path) or path.suffix.lower() == ".tsv"
    ):  # judgements of BEIR have questions in a file beside them
        files = reading_of(source, path).files()
        if files != [path]:
            lines = [f"{file_sha256(file)}  {os.path.relpath(file, path)}\n" for file in files]
            return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    return (known or {}).get(path) or file_sha256(path)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def reply_reader(fields: Mapping[str, str]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """What turns the decoded reply of a live system into fields of an output, as a row of a file of outputs.

    Of the reply, only what `fields` names and fields of an output count; all else is for the reply's own readers.

    Args:
        fields: our field name -> name in the reply, as in a config.

    Raises:
        InputError: a name that is not a field of an output.
    """
    mapping = FieldMapping(DataFile(path="", fields=dict(fields)), SystemOutput)
    wanted = {*SystemOutput.model_fields, RETRIEVED_IDS, *fields.values(), *field_heads(fields.values())}

    named = {ours.partition(".")[2] for ours in fields if ours.startswith("metadata.")}

    def read(reply: Mapping[str, Any]) -> dict[str, Any]:
        try:
            found = mapping.apply(Row(0, "$", {name: value for name, value in reply.items() if name in wanted}))
        except (ValueError, RecursionError) as error:
            raise AskError(INVALID, str(error) or "nested too deeply") from None
        own = reply.get("metadata")
        kept = named | (own.keys() if isinstance(own, Mapping) else set())
        metadata = {name: value for name, value in found.pop("metadata", {}).items() if name in kept}
        return {**found, "metadata": metadata} if metadata else found

    return read


def _iterate(source: DataFile, path: Path, model: type[M], notices: Notices | None, skim: Skim | None) -> Iterator[M]:
    mapping = FieldMapping(source, model)
    reading = reading_of(source, path)
    intake = Intake(source, path)
    said: Notices = [] if notices is None else notices
    for row in reading.rows("cases" if model is Case else "outputs", said):
        if skim is not None and (key := mapping.plain_id(row, skim.unless)) is not None:
            if not skim.wanted(key):
                if skim.is_first:
                    intake.take(row, (key, None))
                continue
            found = record_of(row, mapping, model)
        else:
            found = record_of(row, mapping, model)
            if skim is not None and not isinstance(found, list):
                skim.wanted(_key(found))
        made = intake.take(row, found if isinstance(found, list) else (_key(found), found))
        if made is not None:
            yield made
    intake.close(mapping.unmatched())
    said += [(code, f"{path.name}: {message}") for code, message in mapping.notices()]


def _key(record: Case | SystemOutput) -> str:
    return record.id if isinstance(record, Case) else record.case_id


def record_of(row: Row, mapping: FieldMapping, model: type[M]) -> M | list[str]:
    """The case or output that a row holds, or what is wrong with it."""
    if row.data is None:
        return [f"{row.path}: {row.problem}"]
    data: dict[str, Any] = {}
    try:
        data = mapping.apply(row)
        return model.model_validate(data)
    except ValidationError as error:
        found = _advised(problems(error, model), data, mapping, row)
        return [_problem(row, place, message, mapping) for place, message in found]
    except ValueError as error:
        return [f"{row.path}: {error}"]
    except RecursionError:
        return [f"{row.path}: nested too deeply"]


def _problem(row: Row, place: Location, message: str, mapping: FieldMapping) -> str:
    data = row.data or {}
    if len(place) == 1 and message == MISSING:
        ours = str(place[0])
        if mapping.name_in_file(ours, row) == ours:
            keys = ", ".join(list(row.origin.record if row.origin is not None else data)[:8]) or "no fields"
            message = f'{MISSING}; the record has {keys}; if one of them is it, set "fields": {{"{ours}": ...}}'
    return f"{row.path}{mapping.path_in_file(place, row)[1:]}: {message}"


def _advised(
    found: list[tuple[Location, str]], data: Mapping[str, Any], mapping: FieldMapping, row: Row
) -> list[tuple[Location, str]]:
    """What is wrong, with one line in place of many for hits of another shape."""
    unknown = [place for place, message in found if place[:1] == ("retrieved",) and message.startswith("unknown key")]
    if not unknown:
        return found
    index = int(unknown[0][1])
    message = advice(data["retrieved"][index], f"{mapping.name_in_file('retrieved', row)}{EACH}")
    if not message:
        return found
    return [(("retrieved", index), message), *(one for one in found if one[0] not in unknown)]


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
        self._file, self._path, self._id_name = file, series_folder(path), id_name
        self._places = scratch_database("CREATE TABLE places (id BLOB UNIQUE, line INTEGER, path TEXT, file TEXT)")
        self._places.execute("BEGIN")
        self._wrong: list[tuple[Row | None, str]] = []

    def take(self, row: Row, found: tuple[str, T] | list[str]) -> T | None:
        """Take id and record of a row, or what is wrong with it, and give the record; None once something is wrong."""
        if isinstance(found, list):
            self._wrong += [(row, problem) for problem in found]
            return None
        key, made = found
        met = self._met(key, row)
        if met is not None:
            self._wrong.append((row, f"{row.path}: {self._id_name} {key!r} is already {met}"))
            return None
        return None if self._wrong else made

    def _met(self, key: str, row: Row) -> str | None:
        """Where an id was met before; None if it is new."""
        name = key.encode("utf-8", "surrogatepass")
        place = None if row.path == "$" else row.path
        try:
            self._places.execute("INSERT INTO places VALUES (?, ?, ?, ?)", (name, row.line, place, row.file or None))
        except sqlite3.IntegrityError:
            sql = "SELECT line, path, file FROM places WHERE id = ?"
            return _place(*self._places.execute(sql, (name,)).fetchone())
        except sqlite3.Error as error:
            raise StorageError(f"{self._path}: its ids cannot be kept in a temporary file: {error}") from None
        return None

    def close(self, unmatched: Sequence[str] = ()) -> None:
        """Say what is wrong.

        Args:
            unmatched: what is wrong with the file as a whole.

        Raises:
            InputError: one line for each thing (20 at most, then a count).
        """
        self._places.close()
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


def _place(line: int, path: str | None, file: str | None) -> str:
    in_file = f" of {file}" if file else ""
    if not line:
        return f"at {path or '$'}{in_file}"
    return f"on line {line}{in_file}" + (f" ({path})" if path else "")
