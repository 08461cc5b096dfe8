"""Turns a row as it stands in a file into the fields of a case or output."""

import difflib
import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError, did_you_mean, json_path
from judgekit.core.repeats import REPEAT_OF, REPEATS_TOGETHER
from judgekit.core.text import canonical_id
from judgekit.storage.cells import FLAGS, PROSE, ListCells, is_unanswerable, turned_around
from judgekit.storage.chat_messages import CALLS, MESSAGES, ChatMessages
from judgekit.storage.dotted import ABSENT, EACH, LISTS, NEAR, ListParts, field_heads, look_up
from judgekit.storage.id_lists import RETRIEVED_IDS, hits_of_ids, with_flat_ids
from judgekit.storage.problems import Location, kind_of
from judgekit.storage.rows import Row

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
_WITH_NUMBERS = {"latency_seconds", "usage", "confidence"}
_LISTS_OF_ONE = ("reference_answers", "retrieved")
_OPPOSITE = (
    'field {0!r} says the opposite of \'answerable\'; set "fields": {{"answerable": "{0}"}}, and it is turned around; '
    'to keep it as it is: {{"metadata.{0}": "{0}"}}'
)
_DECIMAL_COMMA = re.compile(r"\s*-?\d+,\d+\s*")


class FieldMapping:
    """Turns a row as it stands in a file into the fields of a case or output."""

    def __init__(self, source: DataFile, model: type[BaseModel]) -> None:
        """Prepare for one file.

        Raises:
            InputError: the mapping names a field that does not exist, or a part of one that has no parts.
        """
        self._model = model
        self._fields = {ours: theirs for ours, theirs in source.fields.items() if EACH not in ours}
        self._all_fields = source.fields
        self._heads = field_heads(source.fields)
        self._known = {*model.model_fields, *([RETRIEVED_IDS] if model is SystemOutput else [])}
        for ours in source.fields:
            self._check(ours)
        self._lists = {
            head: ListParts(head, {ours[len(head + EACH) + 1 :]: theirs for ours, theirs in source.fields.items()
                                   if ours.startswith(f"{head}{EACH}.")})
            for head in LISTS
            if any(ours.startswith(head + EACH) for ours in source.fields)
        }  # fmt: skip
        self._taken = set(self._fields.values()).union(*(parts.taken for parts in self._lists.values()))
        self._columns_of_lists = {
            theirs.partition(EACH)[0]: field_heads([ours]) for ours, theirs in source.fields.items() if EACH in theirs
        }
        self._cells = ListCells(source.list_separator)
        self._chat = ChatMessages()
        self._matched: set[str] = set()
        self._own_id = "id" if model is Case else "case_id"
        hides_repeats = "metadata" in source.fields or REPEATS_TOGETHER in source.fields
        self._n_mapped = math.inf if hides_repeats else len(source.fields)
        """Names that a row has to have had before an id says all about another."""
        self._keys: list[str] = []
        self._near: dict[str, str | None] = {}

    def _check(self, ours: str) -> None:
        (head,) = field_heads([ours])
        if head not in self._known:
            hint = did_you_mean(head, self._known)
            raise InputError(f'"fields" names {ours!r}, which is not a field of {_word(self._model)}{hint}')
        if EACH in ours:
            if head not in LISTS or not ours.startswith(f"{head}{EACH}."):
                raise InputError(f'"fields" names {ours!r}; parts of entries are named as in "retrieved[].text"')
            if head in self._all_fields:
                raise InputError(f'"fields" maps {head!r} as a whole and {ours!r} too; keep one of them')
        elif "." in ours and head not in _WITH_PARTS:
            raise InputError(f'"fields" names {ours!r}, but {head} has no parts to map; name {head!r} as a whole')

    def name_in_file(self, ours: str, row: Row) -> str:
        """What a record of the file calls one of our fields."""
        if ours in self._fields:
            return self._fields[ours]
        if row.origin is not None:
            return row.origin.names.get(ours, ours)
        return "id" if ours == "case_id" and self._is_plain_id(row.data or {}) else ours

    def path_in_file(self, place: Location, row: Row) -> str:
        """Where a record of the file has what stands at a place of ours, as in `$.contexts[0].content`."""
        if not place:
            return "$"
        if place[0] in self._lists and len(place) > 2:
            theirs = self._all_fields.get(f"{place[0]}{EACH}.{place[2]}")
            before, each, after = (theirs or self._lists[str(place[0])].example).rpartition(EACH)
            rest = after if theirs is not None else f".{place[2]}"
            return f"$.{before}[{place[1]}]{rest}{json_path(place[3:])[1:]}" if each else f"$.{after}"
        return json_path((self.name_in_file(str(place[0]), row), *place[1:]))

    def notices(self) -> list[tuple[str, str]]:
        """(code, message) of what the reader of the numbers should know, after the last row."""
        return [*self._cells.notices(), *self._chat.notices()]

    def unmatched(self) -> list[str]:
        """What is wrong with mapped names that no record had."""
        return [
            f'"fields" maps {ours!r} to {theirs!r}, which no record has{did_you_mean(theirs, self._keys[:20])}'
            for ours, theirs in self._all_fields.items()
            if self._keys and ours not in self._matched
        ]

    def plain_id(self, row: Row, unless: Collection[str]) -> str | None:
        """The id of a row, read without the rest of it.

        Args:
            row: the row.
            unless: fields; a row that has one is to be read as a whole.

        Returns:
            None if it takes the whole row to know what it is, such as one of several answers to a case, or a row
            without an id; nor is it known as long as there is a mapped name that no row had.
        """
        data = row.data
        if data is None or REPEAT_OF in data or len(self._matched) < self._n_mapped:
            return None
        for name in unless:
            if name in data or name in self._heads:
                return None
        if (metadata := data.get("metadata")) and (not isinstance(metadata, Mapping | str) or REPEAT_OF in metadata):
            return None
        if self._own_id in self._fields:
            value = self._value(data, row, self._fields[self._own_id])
        else:
            value = data.get(self._own_id, data.get("id"))
        if isinstance(value, bool) or not isinstance(value, str | int):
            return None
        try:
            return str(canonical_id(value))
        except ValueError:
            return None

    def apply(self, row: Row) -> dict[str, Any]:
        """The row with our field names; what is not a field of ours becomes metadata, and NaN counts as absent.

        Raises:
            ValueError: an unknown field that looks like a misspelt one of ours, or a cell that cannot be read.
        """
        data = dict(row.data or {})
        is_own = row.origin is None
        self._keys = self._keys or list(data if row.origin is None else row.origin.record)
        data = self._with_lists(data, row)
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
                if self._model is Case and "answerable" not in {*result, *data} and is_unanswerable(key):
                    raise ValueError(_OPPOSITE.format(key))
            target = result if key in self._known and key not in result else metadata
            target[key] = value
        if row.from_csv:
            result = self._typed(result, row)
        if "answerable" in result and is_unanswerable(self._fields.get("answerable", "")):
            result["answerable"] = turned_around(result["answerable"])
        result = {key: value for key, value in result.items() if not (isinstance(value, float) and math.isnan(value))}
        return self._finished(result, metadata)

    def _mapped(self, data: Mapping[str, Any], row: Row) -> tuple[dict[str, Any], dict[str, Any]]:
        """Fields and metadata that the mapping names."""
        result: dict[str, Any] = {}
        metadata: dict[str, Any] = {}
        for ours, theirs in self._fields.items():
            value = self._value(data, row, theirs)
            if value is ABSENT:
                continue
            self._matched.add(ours)
            head, _, rest = ours.partition(".")
            if not rest:
                result[head] = _as_list(value) if ours in _LISTS_OF_ONE and not row.from_csv else value
            elif head == "metadata":
                metadata[rest] = value
            elif value != "" or not row.from_csv:
                result.setdefault(head, {})[rest] = (
                    _number(value) if head in _WITH_NUMBERS and row.has_commas else value
                )
        for head, parts in self._lists.items():
            entries = parts.entries(row.origin.record if row.origin is not None else data, self._matched)
            if entries is not ABSENT:
                result[head] = entries
        return result, metadata

    def _value(self, data: Mapping[str, Any], row: Row, theirs: str) -> Any:
        value = look_up(row.origin.record, theirs) if row.origin is not None else ABSENT
        return look_up(data, theirs) if value is ABSENT else value

    def _with_lists(self, data: dict[str, Any], row: Row) -> dict[str, Any]:
        """The row with lists in the cells whose entries are mapped one by one."""
        if not row.from_csv or not self._columns_of_lists:
            return data
        found = dict(data)
        for name, ours in self._columns_of_lists.items():
            cell = data.get(name)
            if isinstance(cell, str) and not cell.lstrip().startswith("{"):
                found[name] = self._cells.items(name, cell, are_texts=bool(ours & PROSE))
        return found

    def _is_plain_id(self, data: Mapping[str, Any]) -> bool:
        """Outputs may call the id of their case `id`."""
        return "case_id" not in self._fields and "case_id" not in data and "id" in data

    def _refuse_misspelt(self, key: str) -> None:
        if key not in self._near and not is_unanswerable(key):
            near = difflib.get_close_matches(key, self._known, n=1, cutoff=NEAR)
            self._near[key] = near[0] if near else None
        if self._near.get(key) is not None:
            raise ValueError(
                f"unknown field {key!r}; did you mean {self._near[key]!r}? "
                f'If so, set "fields": {{"{self._near[key]}": "{key}"}}; to keep it as it is, '
                f'{{"metadata.{key}": "{key}"}}'
            )

    def _finished(self, result: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        own = result.get("metadata")
        if isinstance(own, str):
            try:
                own = json.loads(own) if own.strip() else {}
            except ValueError:
                raise ValueError("metadata: expected an object, found a text that is not JSON") from None
        if own is not None and not isinstance(own, dict):
            raise ValueError(f"metadata: expected an object, found {kind_of(own)}")
        if own or metadata:
            result["metadata"] = {**metadata, **(own or {})}
        else:
            result.pop("metadata", None)
        with_flat_ids(result)
        self._read_messages(result)
        hits = result.get("retrieved")
        if isinstance(hits, list):
            result["retrieved"] = hits = [{"text": hit} if isinstance(hit, str) else hit for hit in hits]
        ids = result.pop(RETRIEVED_IDS, None)
        if ids is not None:
            result["retrieved"] = hits_of_ids(ids, hits)
        cited = result.get("citations")
        if isinstance(cited, list):
            result["citations"] = [entry if isinstance(entry, Mapping) else {"citation": entry} for entry in cited]
        return result

    def _read_messages(self, result: dict[str, Any]) -> None:
        for name in (CALLS, *MESSAGES):
            if result.get(name) is not None:
                read = self._chat.calls if name == CALLS else self._chat.messages
                result[name] = read(name, result[name])

    def _typed(self, cells: dict[str, Any], row: Row) -> dict[str, Any]:
        """CSV cells are texts: lists, flags and nested values are read by the type of their field."""
        typed: dict[str, Any] = {}
        for name, cell in cells.items():
            if not isinstance(cell, str):  # mapped part by part
                typed[name] = cell
            elif name in _TEXT_FIELDS[self._model]:
                if cell or name in ("answer", "question"):
                    typed[name] = cell
            elif not cell.strip():
                continue
            elif name in _LIST_FIELDS[self._model]:
                typed[name] = self._cells.items(name, cell, are_texts=name in PROSE)
            elif name in ("answerable", "grounded", "abstained"):
                typed[name] = FLAGS.get(cell.strip().lower(), cell)
            elif name in ("metadata", CALLS, *MESSAGES):
                typed[name] = cell
            else:
                try:
                    typed[name] = json.loads(_number(cell) if name in _WITH_NUMBERS and row.has_commas else cell)
                except ValueError:
                    raise ValueError(f"{name}: expected JSON in this cell") from None
        return typed


def _number(cell: Any) -> Any:
    """A number with a decimal comma as JSON has it."""
    is_one = isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell) is not None
    return cell.strip().replace(",", ".") if is_one else cell


def _as_list(value: Any) -> Any:
    """Many files hold the one right answer or passage as a text; whoever maps it by name means a list of one."""
    if not isinstance(value, str):
        return value
    return [value] if value.strip() else []


def _word(model: type[BaseModel]) -> str:
    return "a case" if model is Case else "an output"
