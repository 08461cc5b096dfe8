"""What a data file holds, found out from its first rows by the same readers that a run reads it with."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.case_files import record_of
from judgekit.storage.column_names import OF_CASES, guess
from judgekit.storage.dotted import NEAR
from judgekit.storage.field_mapping import FieldMapping
from judgekit.storage.id_lists import RETRIEVED_IDS
from judgekit.storage.reading import Reading, reading_of
from judgekit.storage.record_formats import NO_ID, Kind
from judgekit.storage.rows import Notices, Row

MOST_ROWS = 200
"""Rows that are looked at."""

_MODELS: dict[Kind, Any] = {"cases": Case, "outputs": SystemOutput}
_DECISIVE: dict[Kind, set[str]] = {
    "cases": {"question", "expected_chunk_ids", "expected_doc_ids", "gold_supports"},
    "outputs": {"answer", "retrieved"},
}
_IDS: dict[Kind, str] = {"cases": "id", "outputs": "case_id"}


@dataclass(frozen=True)
class Column:
    """One column of a file."""

    name: str
    taken_for: str | None
    """Our fields, joined by commas; None: it goes along as metadata."""
    example: str


@dataclass
class Look:
    """What a file holds, and how it is read."""

    path: Path
    form: str
    """Name of the format."""
    n_rows: int
    """Rows that were looked at."""
    columns: list[Column]
    notes: list[str]
    """What the user should look at, one sentence each."""
    files: dict[Kind, DataFile]
    """How cases and outputs are read; one that the file does not hold is left out."""
    present: dict[Kind, set[str]] = field(default_factory=dict)
    """Our fields that say something in one of the rows."""


def look_at(path: Path) -> Look:
    """Look at the first rows of a file.

    Raises:
        InputError: it cannot be read, or holds no case.
    """
    file = DataFile(path=str(path))
    try:
        reading, rows, notices = _opened(file, path)
    except InputError as error:
        if 'set "format": "jsonl"' not in str(error):
            raise
        file = DataFile(path=str(path), format="jsonl")
        reading, rows, notices = _opened(file, path)
    if isinstance(rows, str):
        raise InputError(f"{path}:{rows}")
    records = [dict(row.origin.record if row.origin is not None else row.data or {}) for row in rows]
    if reading.form is None and any(code == NO_ID for code, _ in notices):
        for record in records:
            record.pop("id", None)  # the reader has given each row its position
    look = Look(path, reading.name, len(rows), [], [], {})
    if reading.form is not None:
        file = file.model_copy(update={"format": reading.name})
        taken = _names(rows)
        own = {kind: file for kind in _MODELS}
    else:
        found = guess(records, from_csv=rows[0].from_csv)
        look.notes += found.unsure
        file = file.model_copy(update={"list_separator": found.list_separator})
        own = {kind: _with_fields(file, kind, found.fields, records) for kind in _MODELS}
        taken = {theirs: ours for ours, theirs in found.fields.items()}
    for kind, one in own.items():
        _try(look, kind, one)
    if "cases" not in look.files:
        raise _no_cases(look, own["cases"], records)
    if reading.form is not None and "outputs" in look.files:
        taken = _names(_head(reading, "outputs", [])) | taken
    look.columns += _columns(records, taken)
    return look


def _no_cases(look: Look, file: DataFile, records: list[dict[str, Any]]) -> InputError:
    unread = next((note for note in look.notes if " cannot be read as cases" in note), None)
    if unread is not None and _DECISIVE["cases"] & {*file.fields, *records[0]}:
        return InputError(f"{look.path}: {unread}; write a config by `judgekit init`, and correct it there")
    columns = ", ".join(map(repr, records[0]))[:200]
    return InputError(
        f"{look.path}: holds no questions that can be told from its columns ({columns}); "
        'write a config by `judgekit init`, and say under "fields" which column is what'
    )


def _opened(file: DataFile, path: Path) -> tuple[Reading, list[Row] | str, Notices]:
    """How the file is read, its first good rows (or what is wrong with the first one, if none is), and notices."""
    reading = reading_of(file, path)
    notices: Notices = []
    rows = _head(reading, "cases", notices)
    good = [row for row in rows if row.data is not None]
    return reading, good or "; ".join(f"{row.line}: {row.path}: {row.problem}" for row in rows[:1]), notices


def _names(rows: list[Row]) -> dict[str, str]:
    """Our fields by the names that a format found them under."""
    return {theirs: ours for row in rows if row.origin for ours, theirs in row.origin.names.items()}


def _head(reading: Reading, kind: Kind, notices: Notices) -> list[Row]:
    """The first rows, with our field names only where the format has others."""
    rows: Iterator[Row] = reading.rows(kind, notices)
    try:
        return list(islice(rows, MOST_ROWS))
    finally:
        close = getattr(rows, "close", None)  # of a generator, which holds the file open
        if close is not None:
            close()


def _with_fields(file: DataFile, kind: Kind, fields: Mapping[str, str], records: list[dict[str, Any]]) -> DataFile:
    """The mapping of cases or of outputs, and of columns whose names would pass for slips."""
    own = {}
    for ours, theirs in fields.items():
        if ours == "id":
            own[_IDS[kind]] = theirs
        elif (ours in OF_CASES) == (kind == "cases"):
            own[ours] = theirs
    mapped = {theirs.partition("[]")[0] for theirs in own.values()}
    known = {*_MODELS[kind].model_fields, *([RETRIEVED_IDS] if kind == "outputs" else [])}
    for name in dict.fromkeys(name for record in records for name in record):
        if name not in known and name not in mapped and difflib.get_close_matches(name, known, n=1, cutoff=NEAR):
            own[f"metadata.{name}"] = name
    return file.model_copy(update={"fields": {ours: theirs for ours, theirs in own.items() if ours != theirs}})


def _try(look: Look, kind: Kind, file: DataFile) -> None:
    """Read the first rows as a run will; what is wrong with them becomes a note."""
    model = _MODELS[kind]
    notices: Notices = []
    made: list[Any]
    try:
        mapping = FieldMapping(file, model)
        made = [record_of(row, mapping, model) for row in _head(reading_of(file, look.path), kind, notices)]
    except InputError as error:
        if kind == "cases":
            raise
        why = re.sub(rf"^{re.escape(str(look.path))}(:\d+)?: ", "", str(error))
        look.notes.append(f"no outputs: {why}")
        return
    present = {
        name
        for record in made
        if not isinstance(record, list)
        for name in record.model_fields_set
        if name == "answerable" or getattr(record, name)
    }
    wrong = [line for record in made if isinstance(record, list) for line in record]
    if wrong and (kind == "cases" or present & {"answer", "retrieved"}):
        look.notes.append(f"{len(wrong)} of the first rows cannot be read as {kind}: row {wrong[0]}")
    if kind == "cases" and any(code == NO_ID for code, _ in notices):
        look.notes.append("no column is an id, so each row has its position, from 1")
    look.present[kind] = present
    if present & _DECISIVE[kind]:
        look.files[kind] = file


def _columns(records: list[dict[str, Any]], taken: Mapping[str, str]) -> list[Column]:
    found = []
    for name in dict.fromkeys(name for record in records for name in record):
        inside = [ours for theirs, ours in taken.items() if re.match(re.escape(name) + r"(\[\]|\.|$)", theirs)]
        known = {*Case.model_fields, *SystemOutput.model_fields}
        ours = ", ".join(dict.fromkeys(inside)) or (name if name in known else None)
        values = (record[name] for record in records if record.get(name) not in (None, "", [], {}))
        example = next(values, "")
        found.append(Column(name, ours, example if isinstance(example, str) else json.dumps(example, default=str)))
    return found
