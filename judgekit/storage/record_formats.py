"""What a format is made of: how it is recognised, where its records come from, and how one is turned into our fields.

A new format is one file in `storage/formats`, named as a config names the format.
"""

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from msgspec.structs import replace
from pydantic import BaseModel

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError, json_path
from judgekit.storage.cells import PROSE, ListCells
from judgekit.storage.chat_messages import ChatMessages, InOurShape
from judgekit.storage.containers import container_rows
from judgekit.storage.dotted import field_heads
from judgekit.storage.encodings import Hashes
from judgekit.storage.id_lists import RETRIEVED_IDS
from judgekit.storage.problems import Location, kind_of
from judgekit.storage.rows import Notices, Origin, Row, document_rows, is_folder, read_text

NO_ID = "ids_by_position"
"""Code of the notice that cases and outputs are joined by their order."""
_NUMBERED = "rows have no id, so each has its position, from 1; order joins cases and outputs"
_LIKE_AN_ID = re.compile(
    r"(?i:#|(.*[ _.-])?(id|idx|index|uuid|guid|key|nr|no)|(q|c|s|p|u|row|case|question|query|sample|test|item)id)"
    r"|.*[a-z]I[dD]x?"
)
_MODELS: dict[str, type[BaseModel]] = {"cases": Case, "outputs": SystemOutput}

Kind = Literal["cases", "outputs"]
"""What is wanted of a file; many hold both."""

Document = Mapping[str, Any]
"""A file that is one JSON object."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder, and what is wanted of it."""

    file: DataFile
    path: Path
    kind: Kind
    notices: Notices
    document: Document | None = None
    """The parsed file, if it had to be parsed to find its format."""
    hashes: Hashes = field(default_factory=dict)
    """Takes those of files that are read in order."""

    def notice(self, code: str, message: str) -> None:
        """Say something that is not an error."""
        self.notices.append((code, f"{self.path.name}: {message}"))


class Format(ABC):
    """One way of writing cases or outputs."""

    name: ClassVar[str] = ""
    """As a config says it."""
    missing_is_empty: ClassVar[bool] = False
    """A case without a row retrieved nothing, as in a TREC run; otherwise its output is missing, which is an error."""

    def claims_path(self, path: Path) -> bool:  # noqa: ARG002
        """Whether the name of a file, or what a folder holds, is enough to know the format."""
        return False

    def claims_head(self, head: bytes) -> bool:  # noqa: ARG002
        """Whether the first bytes of a file, whose name says nothing, are enough."""
        return False

    def claims_document(self, document: Document) -> bool:  # noqa: ARG002
        """Whether a JSON object has the decisive keys."""
        return False

    def claims_record(self, record: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether a row has the decisive keys."""
        return False

    def files(self, file: DataFile, path: Path) -> list[Path]:  # noqa: ARG002
        """The files that are read, in order: of a folder those in it."""
        if not is_folder(path):
            return [path]
        return sorted(found for found in path.rglob("*") if found.is_file() and not found.name.startswith("."))

    @abstractmethod
    def rows(self, source: Source) -> Iterator[Row]:
        """The records of a file, with our field names.

        Raises:
            InputError: the file as a whole cannot be read.
        """


class UnfitError(ValueError):
    """No record of the file will do, so that one line is enough."""


class Fields:
    """The fields of one record; what is not taken stays in `rest`."""

    def __init__(self, row: Row, cells: ListCells, mapped: Collection[str], chat: ChatMessages) -> None:
        self.record: Mapping[str, Any] = row.data or {}
        self.mapped = mapped
        """Fields of ours that the user maps, so that the format need not find them."""
        self.rest = dict(self.record)
        self.names: dict[str, str] = {}
        self.from_csv = row.from_csv
        self._cells = cells
        self.chat = chat
        self._is_conversation = False

    def take(self, ours: str, *theirs: str) -> Any:
        """The first of some fields that says something; None if none does. NaN and null say nothing."""
        found = None
        for name in theirs:
            value = self.rest.pop(name, None)
            if found is None and not is_absent(value):
                found = value
                self.names[ours] = name
        return found

    def drop(self, *theirs: str) -> None:
        """Leave fields out."""
        for name in theirs:
            self.rest.pop(name, None)

    def texts(self, ours: str, *theirs: str) -> list[Any] | None:
        """A field as a list: a text is a list of one; a cell of a CSV file may hold a list."""
        value = self.take(ours, *theirs)
        if value is None or isinstance(value, list):
            return value
        if not isinstance(value, str):
            raise ValueError(f"{self.names[ours]}: expected a list, found {kind_of(value)}")
        if not self.from_csv:
            return [value] if value.strip() else []
        return self._cells.items(self.names[ours], value, are_texts=ours in PROSE)

    def messages(self, ours: str, *theirs: str) -> InOurShape | None:
        """A field that holds a conversation, if there is one.

        Raises:
            ValueError: it is none, or has no messages.
        """
        value = self.take(ours, *theirs)
        if value is None or value == "":
            return None
        self._is_conversation = True
        found = self.chat.messages(self.names[ours], value)
        if not found:
            raise ValueError(f"{self.names[ours]}: holds no messages")
        return found

    def put_aside(self, known: Collection[str]) -> list[str]:
        """Fields of a conversation that have no place; empty for any other record, whose own go along unsaid."""
        return [name for name in self.rest if name not in known] if self._is_conversation else []

    def calls(self, ours: str, *theirs: str) -> InOurShape | None:
        """A field that holds calls of tools."""
        value = self.take(ours, *theirs)
        return None if value is None or value == "" else self.chat.calls(self.names[ours], value)

    def text(self, ours: str, *theirs: str) -> str | None:
        """A field that holds a text; blank counts as absent."""
        value = self.take(ours, *theirs)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{self.names[ours]}: expected a text, found {kind_of(value)}")
        return value if value is not None and value.strip() else None


def is_absent(value: object) -> bool:
    """Whether a value stands for nothing: null or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


class RecordFormat(Format):
    """A format whose records each hold a case, an output or both."""

    ids: tuple[str, ...] = ("id",)
    """Names of the id; where the first record has none, every record has its position, from 1."""

    @abstractmethod
    def case(self, fields: Fields) -> dict[str, Any]:
        """Our fields of a case, but for the id; what is not taken goes along as it is.

        Raises:
            ValueError: the record holds no case.
        """

    @abstractmethod
    def output(self, fields: Fields) -> dict[str, Any]:
        """Our fields of an output, but for the case id.

        Raises:
            ValueError: the record holds no output.
        """

    def from_document(self, document: Document, source: Source) -> Iterable[Row]:
        """The records of a file that is one JSON object.

        Raises:
            InputError: it holds no records.
        """
        return document_rows(source.file, document, source.path)

    def records(self, source: Source) -> Iterable[Row]:
        """The records as they stand in the file."""
        document = source.document
        if source.file.records is None and document is None and not is_folder(source.path):
            document = read_document(source)
        if document is not None:
            return self.from_document(document, source)
        return container_rows(source.file, source.path, source.notices, lenient=True)

    def rows(self, source: Source) -> Iterator[Row]:
        """The records with our field names."""
        return translated(self, source, self.records(source))

    def joined(self, rows: Iterable[Row], source: Source) -> Iterable[Row]:  # noqa: ARG002
        """The records that rows hold, for a format in which one may be spread over several."""
        return rows

    def finished(self, rows: Iterator[Row], source: Source) -> Iterator[Row]:  # noqa: ARG002
        """The rows once more, for what only the whole file can tell."""
        return rows

    def separator(self, source: Source) -> str | None:
        """What separates the items of a list cell in CSV."""
        return source.file.list_separator


def translated(form: RecordFormat, source: Source, records: Iterable[Row]) -> Iterator[Row]:
    """Records as rows with our field names."""
    return form.finished(_translated(form, source, records), source)


def _translated(form: RecordFormat, source: Source, records: Iterable[Row]) -> Iterator[Row]:
    id_field = "id" if source.kind == "cases" else "case_id"
    translate: Callable[[Fields], dict[str, Any]] = form.case if source.kind == "cases" else form.output
    numbered: bool | None = False if id_field in source.file.fields else None
    cells, chat = ListCells(form.separator(source)), ChatMessages()
    mapped = field_heads(source.file.fields)
    number = 0
    for number, row in enumerate(records, start=1):
        if row.data is None:
            yield row
            continue
        fields = Fields(row, cells, mapped, chat)
        found = fields.take(id_field, *form.ids)
        if numbered is None:
            numbered = is_absent(found)
            if numbered:
                source.notice(NO_ID, _NUMBERED)
        try:
            ours = translate(fields)
        except UnfitError as error:
            raise InputError(f"{source.path}{f':{row.line}' * bool(row.line)}: {error}") from None
        except ValueError as error:
            yield replace(row, data=None, problem=str(error))
            continue
        if found is not None or numbered:
            ours[id_field] = number if found is None else found
        chat.put_aside(fields.put_aside(_MODELS[source.kind].model_fields))
        present = {name: value for name, value in ours.items() if value is not None}
        yield replace(row, data={**fields.rest, **present}, origin=Origin(fields.record, fields.names))
    if not number:
        raise InputError(f"{source.path}: holds no records")
    for code, message in (*cells.notices(), *chat.notices()):
        source.notice(code, message)


def numbered(source: Source, rows: Iterable[Row]) -> Iterator[Row]:
    """Records of our own fields, each with its position as its id if the first has none.

    Where a column looks like an id under another name, or nothing is one of our fields, nothing is numbered: there the
    user has to say what is what.
    """
    id_field, id_names = ("id", {"id"}) if source.kind == "cases" else ("case_id", {"id", "case_id"})
    mapped = field_heads(source.file.fields)
    is_numbered: bool | None = False if id_field in mapped else None
    for number, row in enumerate(rows, start=1):
        if row.data is None:
            yield row
            continue
        if is_numbered is None:
            known = (_MODELS[source.kind].model_fields.keys() | {RETRIEVED_IDS}) - {"id", "case_id", "metadata"}
            has_id = bool(id_names & row.data.keys()) or any(map(_LIKE_AN_ID.fullmatch, row.data))
            is_numbered = not has_id and bool((row.data.keys() | mapped) & known)
            if is_numbered:
                source.notice(NO_ID, _NUMBERED)
        if is_numbered and is_absent(row.data.get(id_field)):
            yield replace(row, data={**row.data, id_field: number})
        else:
            yield row


def read_document(source: Source) -> Document | None:
    """The file as one JSON object; None if it is a list, lines, or no JSON at all.

    Raises:
        InputError: it begins like an object and is not JSON.
    """
    if source.path.suffix.lower() not in (".json", ".txt", ".log", ""):
        return None
    text = read_text(source.file, source.path)
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object a line
            return None
        raise InputError(f"{source.path}:{error.lineno}: not valid JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise InputError(f"{source.path}: nested too deeply") from None
    return found if isinstance(found, dict) else None


def document_row(place: Location, data: Any) -> Row:
    """A record inside a JSON document; anything but an object is named."""
    if isinstance(data, dict):
        return Row(0, json_path(place), data, place=place)
    return Row(0, json_path(place), None, f"expected an object, found {kind_of(data)}", place=place)


def hits_of(passages: Iterable[Any]) -> list[Any]:
    """Passages as hits: texts, or objects of a retriever, which the user maps."""
    return [passage if isinstance(passage, Mapping) else {"text": passage} for passage in passages]


def distinct(values: Iterable[Any]) -> list[Any]:
    """Values without repeated texts and absent ones, in order; what should be no value is left for the checks."""
    seen: set[str] = set()
    found = []
    for value in values:
        if value is None or (isinstance(value, str) and value in seen):
            continue
        if isinstance(value, str):
            seen.add(value)
        found.append(value)
    return found
