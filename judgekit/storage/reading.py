"""Which format a file or folder is, and its rows.

A format is known by what the config says, by extension, by what a folder holds, or by keys that only one format has.
Where that does not decide, nothing is guessed: the file is read as our own format, or refused with the list of formats.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import judgekit.storage.formats
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import discover
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError, did_you_mean
from judgekit.storage.containers import CONTAINERS, container_of, container_rows, first_row, json_files, split_files
from judgekit.storage.dotted import field_heads
from judgekit.storage.encodings import faults_named
from judgekit.storage.file_series import is_pattern, is_series, series_files
from judgekit.storage.format_names import STORED_AS, formats_named, known_formats
from judgekit.storage.record_formats import (
    Document,
    Format,
    Kind,
    RecordFormat,
    Source,
    numbered,
    read_document,
    translated,
)
from judgekit.storage.rows import Notices, Row, has_own_suffix, is_folder, is_plain_file, unknown_extension

_OURS = {
    "case_id", "reference_answers", "retrieved", "gold_supports", "expected_chunk_ids", "expected_doc_ids",
    "expected_spans", "expected_fields", "expected_tool_calls"
}  # fmt: skip
"""A record with one of these is one of ours, whatever else it holds."""


_CONTENT = {"question", "answer", "reference_answers", "retrieved"}
"""Fields that a format is there to find; a config that maps one has found them itself."""

_FIELDS = {*Case.model_fields, *SystemOutput.model_fields} - {"id", "metadata"}


@cache
def formats() -> Mapping[str, Format]:
    """Formats that say what rows hold, by the name in a config."""
    return {name: form() for name, form in discover(judgekit.storage.formats, Format).items()}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a path is read."""

    file: DataFile
    path: Path
    form: Format | None
    """None: rows hold our own fields."""
    found_by_keys: bool = False
    document: Document | None = None

    @property
    def name(self) -> str:
        """The format, as a config would say it."""
        return self.form.name if self.form is not None else container_of(self.file, self.path) or "unknown"

    def rows(self, kind: Kind, notices: Notices) -> Iterator[Row]:
        """The rows, with our field names.

        Raises:
            InputError: the path as a whole cannot be read.
        """
        source = Source(self.file, self.path, kind, notices, self.document)
        if self.form is None:
            return numbered(source, container_rows(self.file, self.path, notices))
        if self.found_by_keys:
            source.notice("format_detected", f'read as {self.name}, by its keys; fix that with "format": "{self.name}"')
        if isinstance(self.form, RecordFormat) and container_of(self.file, self.path) in CONTAINERS:
            rows = container_rows(self.file, self.path, notices)
            return translated(self.form, source, self.form.joined(rows, source))
        return self.form.rows(source)

    def files(self) -> list[Path]:
        """The files that are read, in order: of a folder those in it.

        Raises:
            InputError: there is no file.
        """
        if is_series(self.path):
            return series_files(self.path)
        if not is_folder(self.path) and (isinstance(self.form, RecordFormat) or self.form is None):
            return [self.path]
        if isinstance(self.form, RecordFormat) or self.form is None:
            if container_of(self.file, self.path) == "folder":
                return json_files(self.path)
            return split_files(self.file, self.path)
        return self.form.files(self.file, self.path)


def reading_of(file: DataFile, path: Path) -> Reading:
    """Find out how a path is read.

    Raises:
        InputError: nothing decides; the message lists the formats.
    """
    if file.format is not None:
        return Reading(file, path, _named(file.format, path))
    for form in () if is_pattern(path) else formats().values():
        if form.claims_path(path):
            return Reading(file, path, form)
    container = container_of(file, path)
    if container is None and not is_folder(path):
        return _unknown(file, path)
    if container == "json" and is_plain_file(path) and file.records is None:
        found = _by_document(file, path)
        if found is not None:
            return found
    if container in (None, "yaml") or _CONTENT & field_heads(file.fields):  # who maps them has said what the rows are
        return Reading(file, path, None)
    first = first_row(file, path)
    form_found = _by_record(first.data) if first is not None and first.data is not None else None
    if container == "folder" and form_found is None and first is not None and not _FIELDS & (first.data or {}).keys():
        raise InputError(
            f"{path}: a folder of JSON files, but the first holds no field of a case or output; "
            f'set "format" to one of {formats_named()}'
        )
    return Reading(file, path, form_found, found_by_keys=form_found is not None)


def with_our_names(source: Source, rows: Iterator[Row]) -> Iterator[Row]:
    """Rows that are in memory with our field names, by the keys of the first one as in a file.

    Raises:
        InputError: there is no row.
    """
    first = next(rows, None)
    if first is None:
        raise InputError(f"{source.path}: is empty")
    every = chain([first], rows)
    known = first.data is None or source.file.format is not None or _CONTENT & field_heads(source.file.fields)
    form = None if known else _by_record(first.data or {})
    if not isinstance(form, RecordFormat):
        return numbered(source, every)
    source.notice("format_detected", f"read as {form.name}, by their keys")
    return translated(form, source, every)


def _named(name: str, path: Path) -> Format | None:
    """The format of a name; None if it only says how rows are stored."""
    if name in STORED_AS:
        return None
    if name not in formats():
        raise InputError(f"{path}: no format called {name!r}{did_you_mean(name, known_formats())}")
    return formats()[name]


def missing_is_empty(file: DataFile, path: Path) -> bool:
    """Whether a case without a row retrieved nothing, as in a TREC run."""
    if file.format is None and has_own_suffix(path):
        return False
    form = reading_of(file, path).form
    return form is not None and form.missing_is_empty


def _unknown(file: DataFile, path: Path) -> Reading:
    """A file whose name says nothing: a TREC run shows itself by its first line, a log is a JSON object."""
    with faults_named(path, "a file"), path.open("rb") as stream:
        head = stream.read(4096)
    for form in formats().values():
        if form.claims_head(head):
            return Reading(file, path, form)
    found = None
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" and path.suffix.lower() in (".txt", ".log", ""):
        found = _by_document(file, path)
    if found is None:
        raise InputError(unknown_extension(path))
    return found


def _by_document(file: DataFile, path: Path) -> Reading | None:
    try:
        document = read_document(Source(file, path, "cases", []))
    except InputError:
        return None  # the reader says the same again
    found = [form for form in formats().values() if document is not None and form.claims_document(document)]
    if len(found) != 1:
        return None
    return Reading(file, path, found[0], found_by_keys=True, document=document)


def _by_record(record: Mapping[str, Any]) -> Format | None:
    """The format with the decisive keys, where exactly one has them."""
    if _OURS & record.keys():
        return None
    found = [form for form in formats().values() if form.claims_record(record)]
    return found[0] if len(found) == 1 else None
