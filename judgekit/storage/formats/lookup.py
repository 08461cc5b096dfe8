"""Which format a file or folder is, and its rows.

A format is known by what the config says, by extension, by what a folder holds, or by keys that only one format has.
Where that does not decide, nothing is guessed: the file is read as our own format, or refused with the list of formats.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import KNOWN_FORMATS, DataFile
from judgekit.core.errors import InputError
from judgekit.storage.dotted import field_heads
from judgekit.storage.encodings import faults_named
from judgekit.storage.formats import columns, folder
from judgekit.storage.formats.beir import Beir
from judgekit.storage.formats.containers import CONTAINERS, container_of, container_rows, first_row
from judgekit.storage.formats.deepeval import Deepeval
from judgekit.storage.formats.hotpotqa import Hotpotqa
from judgekit.storage.formats.inspect import Inspect
from judgekit.storage.formats.promptfoo import Promptfoo
from judgekit.storage.formats.ragas import Ragas
from judgekit.storage.formats.records import RecordFormat, numbered, read_document, translated
from judgekit.storage.formats.source import (
    Document,
    Format,
    Kind,
    Notices,
    Source,
    has_own_suffix,
    is_folder,
    is_plain_file,
)
from judgekit.storage.formats.squad import Squad
from judgekit.storage.formats.trec import Trec
from judgekit.storage.rows import Row, unknown_extension

FORMATS: dict[str, Format] = {
    "trec": Trec(),
    "beir": Beir(),
    "squad": Squad(),
    "hotpotqa": Hotpotqa(),
    "ragas": Ragas(),
    "deepeval": Deepeval(),
    "inspect": Inspect(),
    "promptfoo": Promptfoo(),
}
"""Formats that say what rows hold, by the name in a config."""
for _name, _format in FORMATS.items():
    type(_format).name = _name

_OURS = {
    "case_id",
    "reference_answers",
    "retrieved",
    "gold_supports",
    "expected_chunk_ids",
    "expected_doc_ids",
    "expected_spans",
    "expected_fields",
}
"""A record with one of these is one of ours, whatever else it holds."""


_CONTENT = {"question", "answer", "reference_answers", "retrieved"}
"""Fields that a format is there to find; a config that maps one has found them itself."""

_FIELDS = {*Case.model_fields, *SystemOutput.model_fields} - {"id", "metadata"}


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
            return translated(self.form, source, container_rows(self.file, self.path, notices))
        return self.form.rows(source)

    def files(self) -> list[Path]:
        """The files of a folder that are read.

        Raises:
            InputError: there are none.
        """
        if isinstance(self.form, RecordFormat) or self.form is None:
            if container_of(self.file, self.path) == "folder":
                return folder.files(self.path)
            return columns.split_files(self.file, self.path)
        return self.form.files(self.file, self.path)


def reading_of(file: DataFile, path: Path) -> Reading:
    """Find out how a path is read.

    Raises:
        InputError: nothing decides; the message lists the formats.
    """
    if file.format in FORMATS:
        return Reading(file, path, FORMATS[file.format])
    if file.format is not None:
        return Reading(file, path, None)
    for form in FORMATS.values():
        if form.claims_path(path):
            return Reading(file, path, form)
    container = container_of(file, path)
    if container is None and not is_folder(path):
        return _unknown(file, path)
    if container == "json" and is_plain_file(path) and file.records is None:
        document = _document(file, path)
        found = _by_document(file, path, document) if document is not None else None
        if found is not None:
            return found
    if container in (None, "yaml") or _CONTENT & field_heads(file.fields):  # who maps them has said what the rows are
        return Reading(file, path, None)
    first = first_row(file, path)
    form_found = _by_record(first.data) if first is not None and first.data is not None else None
    if container == "folder" and form_found is None and first is not None and not _FIELDS & (first.data or {}).keys():
        raise InputError(
            f"{path}: a folder of JSON files, but the first holds no field of a case or output; "
            f'set "format" to one of {KNOWN_FORMATS}'
        )
    return Reading(file, path, form_found, found_by_keys=form_found is not None)


def missing_is_empty(file: DataFile, path: Path) -> bool:
    """Whether a case without a row retrieved nothing, as in a TREC run."""
    if file.format is None and has_own_suffix(path):
        return False
    form = reading_of(file, path).form
    return form is not None and form.missing_is_empty


def _unknown(file: DataFile, path: Path) -> Reading:
    """A file whose name says nothing: a TREC run names itself on its first line, a log is a JSON object."""
    head = b""
    with faults_named(path, "a file"), path.open("rb") as stream:
        head = stream.read(4096)
    if _is_run(head):
        return Reading(file, path, FORMATS["trec"])
    found = None
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" and path.suffix.lower() in (".txt", ".log", ""):
        document = _document(file, path)
        found = _by_document(file, path, document) if document is not None else None
    if found is None:
        raise InputError(unknown_extension(path))
    return found


def _is_run(head: bytes) -> bool:
    """Whether the first line has the six columns of a run, `Q0` among them."""
    lines = [line for line in head.split(b"\n") if line.strip() and not line.startswith(b"#")]
    cells = lines[0].split() if lines else []
    if len(cells) < 6 or cells[1].upper() != b"Q0":
        return False
    return re.fullmatch(rb"[-+]?[0-9.]+([eE][-+]?\d+)?", cells[4]) is not None


def _document(file: DataFile, path: Path) -> Document | None:
    try:
        return read_document(Source(file, path, "cases", []))
    except InputError:
        return None  # the reader says the same again


def _by_document(file: DataFile, path: Path, document: Document) -> Reading | None:
    found = [form for form in FORMATS.values() if form.claims_document(document)]
    if len(found) != 1:
        return None
    return Reading(file, path, found[0], found_by_keys=True, document=document)


def _by_record(record: Mapping[str, Any]) -> Format | None:
    """The format with the decisive keys, where exactly one has them."""
    if _OURS & record.keys():
        return None
    found = [form for form in FORMATS.values() if form.claims_record(record)]
    return found[0] if len(found) == 1 else None
