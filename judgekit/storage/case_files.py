"""Cases and outputs from files and folders: field mapping, checks, and one line for each thing that is wrong."""

import difflib
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.collector import collector_paused
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError, did_you_mean, json_path
from judgekit.core.text import canonical_id
from judgekit.storage.dotted import ABSENT, look_up
from judgekit.storage.formats.lookup import Reading, reading_of
from judgekit.storage.formats.source import Notices, is_folder
from judgekit.storage.hashed_file import Hashes
from judgekit.storage.intake import Intake
from judgekit.storage.problems import MISSING, Location, kind_of, problems
from judgekit.storage.rows import Row

M = TypeVar("M", Case, SystemOutput)
T = TypeVar("T")

RETRIEVED_IDS = "retrieved_ids"
"""Outputs may list ids alone, each of which is chunk, document and path, as in a TREC run."""

_TEXT_FIELDS = {
    Case: {"id", "question", "category", "difficulty", "lang", "recency_conflict_rule"},
    SystemOutput: {"case_id", "answer"},
}
_LIST_FIELDS = {
    Case: {
        "tags",
        "vaults",
        "must_contain",
        "forbidden",
        "reference_answers",
        "key_facts",
        "expected_chunk_ids",
        "expected_doc_ids",
    },
    SystemOutput: {"retrieved", RETRIEVED_IDS, "citations"},
}
_WITH_PARTS = {"metadata", "latency_seconds", "usage", "versions", "scope", "error"}
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_LISTS_OF_ONE = ("reference_answers", "retrieved")


def load_cases(source: DataFile, path: Path, notices: Notices | None = None) -> list[Case]:
    """All cases of a file or folder, in order.

    Args:
        source: how it is read.
        path: where it is.
        notices: takes (code, message) of what the reader of the numbers should know.

    Raises:
        InputError: one line for each bad record (20 at most, then a count), duplicate ids among them.
    """
    return list(iterate_cases(source, path, notices))


def load_outputs(source: DataFile, path: Path, notices: Notices | None = None) -> list[SystemOutput]:
    """All outputs of a file or folder, in order; arguments and errors as for `load_cases`."""
    return list(iterate_outputs(source, path, notices))


def iterate_cases(source: DataFile, path: Path, notices: Notices | None = None) -> Iterator[Case]:
    """The cases of a file as they are read; what is wrong is raised after the last good one."""
    return _iterate(source, path, Case, "cases", notices)


def iterate_outputs(source: DataFile, path: Path, notices: Notices | None = None) -> Iterator[SystemOutput]:
    """The outputs of a file as they are read; what is wrong is raised after the last good one."""
    return _iterate(source, path, SystemOutput, "outputs", notices)


def data_sha256(source: DataFile, path: Path, known: Hashes | None = None) -> str:
    """SHA-256 of what is read of a file or folder, hexadecimal: of a file its bytes, of a folder names and hashes.

    Args:
        source: how it is read.
        path: where it is.
        known: hashes of files that were read just now.

    Raises:
        InputError: a file cannot be read.
    """
    if not is_folder(path) and path.suffix.lower() != ".tsv":  # BEIR's judgements have the queries beside them
        return (known or {}).get(path) or file_sha256(path)
    lines = [f"{file_sha256(file)}  {os.path.relpath(file, path)}\n" for file in reading_of(source, path).files()]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


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


def _iterate(
    source: DataFile, path: Path, model: type[M], kind: Literal["cases", "outputs"], notices: Notices | None
) -> Iterator[M]:
    mapping = FieldMapping(source, model)
    reading = reading_of(source, path)

    def read(row: Row) -> tuple[str, M] | list[str]:
        found = record_of(row, mapping, model)
        return found if isinstance(found, list) else (_key(found), found)

    return read_all(reading.rows(kind, [] if notices is None else notices), read, mapping, reading)


def _key(record: Case | SystemOutput) -> str:
    return record.id if isinstance(record, Case) else record.case_id


def read_all(
    rows: Iterator[Row], read: Callable[[Row], tuple[str, T] | list[str]], mapping: "FieldMapping", reading: Reading
) -> Iterator[T]:
    """What is made of each row, as they are read; what is wrong is raised after the last good one.

    Args:
        rows: the rows of a file.
        read: makes id and record of a row, or the list of what is wrong with it.
        mapping: of the file.
        reading: of the file.

    Raises:
        InputError: one line for each bad row (20 at most, then a count), ids that come twice among them.
    """
    intake = Intake(reading)
    with collector_paused():
        for row in rows:
            made = intake.take(row, read(row))
            if made is not None:
                yield made
    intake.close(mapping.unmatched())


def record_of(row: Row, mapping: "FieldMapping", model: type[M]) -> M | list[str]:
    """The case or output that a row holds, or what is wrong with it."""
    if row.data is None:
        return [f"{row.path}: {row.problem}"]
    try:
        return model.model_validate(mapping.apply(row))
    except ValidationError as error:
        return [_problem(row, place, message, mapping) for place, message in problems(error, model)]
    except ValueError as error:
        return [f"{row.path}: {error}"]
    except RecursionError:
        return [f"{row.path}: nested too deeply"]


def _problem(row: Row, place: Location, message: str, mapping: "FieldMapping") -> str:
    data = row.data or {}
    if len(place) == 1 and message == MISSING:
        ours = str(place[0])
        if mapping.name_in_file(ours, row) == ours:
            keys = ", ".join(list(row.origin.record if row.origin is not None else data)[:8]) or "no fields"
            message = f'{MISSING}; the record has {keys}; if one of them is it, set "fields": {{"{ours}": ...}}'
    name = mapping.name_in_file(str(place[0]), row) if place else ""
    path = row.path + json_path((name, *place[1:]) if place else ())[1:]
    return f"{path}: {message}"


class FieldMapping:
    """Turns a row as it stands in a file into the fields of a case or output."""

    def __init__(self, source: DataFile, model: type[BaseModel]) -> None:
        """Prepare for one file.

        Raises:
            InputError: the mapping names a field that does not exist, or a part of one that has no parts.
        """
        self._model = model
        self._fields = source.fields
        self._taken = set(source.fields.values())
        self._separator = source.list_separator
        self._known = {*model.model_fields, *([RETRIEVED_IDS] if model is SystemOutput else [])}
        self._matched: set[str] = set()
        self._keys: list[str] = []
        self._near: dict[str, str | None] = {}
        for ours in source.fields:
            head, _, rest = ours.partition(".")
            if head not in self._known:
                raise InputError(
                    f'"fields" names {ours!r}, which is no field of {_word(model)}{did_you_mean(head, self._known)}'
                )
            if rest and head not in _WITH_PARTS:
                raise InputError(f'"fields" names {ours!r}, but {head} has no parts to map; name {head!r} as a whole')

    def name_in_file(self, ours: str, row: Row) -> str:
        """What a record of the file calls one of our fields."""
        if ours in self._fields:
            return self._fields[ours]
        if row.origin is not None:
            return row.origin.names.get(ours, ours)
        return "id" if ours == "case_id" and self._is_plain_id(row.data or {}) else ours

    def unmatched(self) -> list[str]:
        """What is wrong with mapped names that no record had."""
        return [
            f'"fields" maps {ours!r} to {theirs!r}, which no record has{did_you_mean(theirs, self._keys[:20])}'
            for ours, theirs in self._fields.items()
            if self._keys and ours not in self._matched
        ]

    def apply(self, row: Row) -> dict[str, Any]:
        """The row with our field names; what is not a field of ours becomes metadata, and NaN counts as absent.

        Raises:
            ValueError: an unknown field that looks like a misspelt one of ours, or a cell that cannot be read.
        """
        data = dict(row.data or {})
        is_own = row.origin is None
        self._keys = self._keys or list(data if row.origin is None else row.origin.record)
        result, metadata = self._mapped(data, row)
        if self._model is SystemOutput and self._is_plain_id(data):
            data["case_id"] = data.pop("id")
        for key, value in data.items():
            if not is_own and key in result:  # the user's mapping goes before the format's
                continue
            if key in self._taken and (is_own or key not in self._known):
                continue
            if is_own and key not in self._known:
                self._refuse_misspelt(key)
            target = result if key in self._known and key not in result else metadata
            target[key] = value
        if row.from_csv:
            result = self._typed(result)
        result = {key: value for key, value in result.items() if not (isinstance(value, float) and math.isnan(value))}
        return self._finished(result, metadata)

    def _mapped(self, data: Mapping[str, Any], row: Row) -> tuple[dict[str, Any], dict[str, Any]]:
        """Fields and metadata that the mapping names."""
        result: dict[str, Any] = {}
        metadata: dict[str, Any] = {}
        for ours, theirs in self._fields.items():
            value = look_up(row.origin.record, theirs) if row.origin is not None else ABSENT
            if value is ABSENT:
                value = look_up(data, theirs)
            if value is ABSENT:
                continue
            self._matched.add(ours)
            head, _, rest = ours.partition(".")
            if not rest:
                result[head] = _as_list(value) if ours in _LISTS_OF_ONE and not row.from_csv else value
            elif head == "metadata":
                metadata[rest] = value
            elif value != "" or not row.from_csv:
                result.setdefault(head, {})[rest] = value
        return result, metadata

    def _is_plain_id(self, data: Mapping[str, Any]) -> bool:
        """Outputs may call the id of their case `id`."""
        return "case_id" not in self._fields and "case_id" not in data and "id" in data

    def _refuse_misspelt(self, key: str) -> None:
        if key not in self._near:
            near = difflib.get_close_matches(key, self._known, n=1, cutoff=0.87)
            self._near[key] = near[0] if near else None
        if self._near[key] is not None:
            raise ValueError(
                f"unknown field {key!r}; did you mean {self._near[key]!r}? "
                f'To keep it as it is, set "fields": {{"metadata.{key}": "{key}"}}'
            )

    def _finished(self, result: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        own = result.get("metadata")
        if isinstance(own, str):
            try:
                own = json.loads(own) if own.strip() else {}
            except ValueError:
                raise ValueError("metadata: expected an object, found a text that is no JSON") from None
        if own is not None and not isinstance(own, dict):
            raise ValueError(f"metadata: expected an object, found {kind_of(own)}")
        if own or metadata:
            result["metadata"] = {**metadata, **(own or {})}
        else:
            result.pop("metadata", None)
        ids = result.pop(RETRIEVED_IDS, None)
        if ids is not None:
            if result.get("retrieved") is not None:
                raise ValueError(f"{RETRIEVED_IDS}: the record has retrieved too; give one of them")
            result["retrieved"] = _hits_of(ids)
        hits = result.get("retrieved")
        if isinstance(hits, list):
            result["retrieved"] = [{"text": hit} if isinstance(hit, str) else hit for hit in hits]
        cited = result.get("citations")
        if isinstance(cited, list):
            result["citations"] = [entry if isinstance(entry, Mapping) else {"citation": entry} for entry in cited]
        return result

    def _typed(self, row: dict[str, Any]) -> dict[str, Any]:
        """CSV cells are texts: lists, flags and nested values are read by the type of their field."""
        typed: dict[str, Any] = {}
        for name, cell in row.items():
            if not isinstance(cell, str):  # mapped part by part
                typed[name] = cell
            elif name in _TEXT_FIELDS[self._model]:
                if cell or name in ("answer", "question"):
                    typed[name] = cell
            elif not cell.strip():
                continue
            elif name in _LIST_FIELDS[self._model]:
                typed[name] = self._list(name, cell)
            elif name in ("answerable", "grounded", "abstained"):
                typed[name] = _FLAGS.get(cell.strip().lower(), cell)
            elif name == "metadata":
                typed[name] = cell
            else:
                try:
                    typed[name] = json.loads(cell)
                except ValueError:
                    raise ValueError(f"{name}: expected JSON in this cell") from None
        return typed

    def _list(self, name: str, cell: str) -> list[Any]:
        if cell.lstrip().startswith("["):
            try:
                return list(json.loads(cell))
            except ValueError as error:
                raise ValueError(f"{name}: starts like a JSON list, but is none: {error}") from None
        if self._separator:
            return [item.strip() for item in cell.split(self._separator)]
        return [cell]


def _hits_of(ids: Any) -> list[dict[str, object]]:
    """Hits that are known by their ids alone."""
    if not isinstance(ids, list):
        raise ValueError(f"{RETRIEVED_IDS}: expected a list of ids, found {kind_of(ids)}")
    hits: list[dict[str, object]] = []
    for index, value in enumerate(ids):
        try:
            one = canonical_id(value)
        except ValueError as error:
            raise ValueError(f"{RETRIEVED_IDS}[{index}]: {error}") from None
        if not isinstance(one, str):
            raise ValueError(f"{RETRIEVED_IDS}[{index}]: an id is text or a whole number, found {kind_of(value)}")
        hits.append({"chunk_id": one, "doc_id": one, "rel_path": one})
    return hits


def _as_list(value: Any) -> Any:
    """Many files hold the one right answer or passage as a text; whoever maps it by name means a list of one."""
    if not isinstance(value, str):
        return value
    return [value] if value.strip() else []


def _word(model: type[BaseModel]) -> str:
    return "a case" if model is Case else "an output"
