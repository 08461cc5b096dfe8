"""Files that say what became of each document on its way into the index."""

import difflib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judgekit.core.collector import collector_paused
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError, did_you_mean, json_path
from judgekit.core.indexed_documents import IndexedDocument
from judgekit.storage.case_files import Intake
from judgekit.storage.dotted import ABSENT, look_up
from judgekit.storage.problems import MISSING, problems
from judgekit.storage.rows import OWN_FORMATS, Row, read_rows

_FIELDS = tuple(IndexedDocument.model_fields)


def load_indexed_documents(source: DataFile, path: Path) -> list[IndexedDocument]:
    """All records of a JSONL, JSON or CSV file, in order. Unknown fields are left out.

    Raises:
        InputError: one line for each problem (20 at most, then a count), duplicate documents among them.
    """
    for ours in source.fields:
        if ours.partition(".")[0] not in _FIELDS or ("." in ours and not ours.startswith("skipped.")):
            hint = did_you_mean(ours, _FIELDS)
            raise InputError(f'{path}: "fields" names {ours!r}, which is not a field of an indexed document{hint}')
    if source.format not in (None, *OWN_FORMATS.values()):
        raise InputError(f'{path}: "format" is {source.format!r}; they are read from jsonl, json, csv or xlsx')
    intake = Intake(source, path, "doc_id")
    documents: list[IndexedDocument] = []
    with collector_paused():
        for row in read_rows(source, path):
            found = _document(row, source.fields)
            made = intake.take(row, found if isinstance(found, list) else (found.doc_id, found))
            if made is not None:
                documents.append(made)
    intake.close()
    return documents


def _document(row: Row, fields: Mapping[str, str]) -> IndexedDocument | list[str]:
    if row.data is None:
        return [f"{row.path}: {row.problem}"]
    try:
        return IndexedDocument.model_validate(_mapped(row.data, fields, from_csv=row.from_csv))
    except ValidationError as error:
        return [
            f"{row.path}{json_path((fields.get(str(place[0]), place[0]), *place[1:]) if place else ())[1:]}: "
            f"{_with_keys(message, row.data)}"
            for place, message in problems(error, IndexedDocument)
        ]
    except ValueError as error:
        return [f"{row.path}: {error}"]


def _with_keys(message: str, data: Mapping[str, Any]) -> str:
    return f'{MISSING}; the record has {", ".join(list(data)[:8])}; set "fields"' if message == MISSING else message


def _mapped(data: Mapping[str, Any], fields: Mapping[str, str], *, from_csv: bool) -> dict[str, Any]:
    """The row under our names.

    Raises:
        ValueError: an unknown field that looks like a misspelt one of ours, or a cell that cannot be read.
    """
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name in fields.values() or name in fields or _is_nan(value):
            continue
        if name in _FIELDS:
            found[name] = value
        else:
            near = difflib.get_close_matches(name, _FIELDS, n=1, cutoff=0.87)
            if near:
                raise ValueError(f'unknown field {name!r}; did you mean {near[0]!r}? Map it with "fields"')
    for ours, theirs in fields.items():
        value = look_up(data, theirs)
        if value is ABSENT or _is_nan(value) or (from_csv and value == ""):
            continue
        head, _, part = ours.partition(".")
        if part:
            found.setdefault(head, {})[part] = value
        else:
            found[head] = value
    return _typed(found) if from_csv else found


def _typed(cells: Mapping[str, Any]) -> dict[str, Any]:
    """CSV cells: lists and objects are JSON, an empty cell is absent."""
    typed: dict[str, Any] = {}
    for name, cell in cells.items():
        if cell == "":
            continue
        typed[name] = cell
        if name in ("skipped", "chunk_tokens") and isinstance(cell, str):
            try:
                typed[name] = json.loads(cell)
            except ValueError:
                raise ValueError(f"{name}: expected JSON in this cell") from None
    return typed


def _is_nan(value: Any) -> bool:
    """NaN, as some tools write it, counts as absent."""
    return isinstance(value, float) and math.isnan(value)
