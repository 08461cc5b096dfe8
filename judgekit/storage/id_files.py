"""Files of ids: the chunks that exist in a corpus, one id a line, or a column of a table or of JSON records."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.core.runs import CHUNK_IDS
from judgekit.storage.dotted import ABSENT, look_up
from judgekit.storage.id_lists import checked_id
from judgekit.storage.problems import one_line
from judgekit.storage.rows import OWN_FORMATS, read_rows, read_text
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_lines import damaged_line

_NAMES = ("chunk_id", "id", "_id", "doc_id")
_FIELD = "chunk_id"


def load_ids(source: DataFile, path: Path) -> frozenset[str]:
    """The ids of a file; one that comes twice counts once.

    Args:
        source: how it is read; `fields` may say what holds the id. Without a format and under another name than
            `.jsonl`, `.json`, `.csv`, `.tsv` or `.xlsx` a file has one id a line.
        path: where it is.

    Raises:
        InputError: it cannot be read, holds no id, or something in it is not an id.
    """
    if source.fields.keys() - {_FIELD}:
        raise InputError(f'{path}: "fields" may name {_FIELD} only')
    is_table = source.format in OWN_FORMATS.values() or path.suffix.lower() in OWN_FORMATS
    if source.format is not None and not is_table:
        raise InputError(f'{path}: "format" is {source.format!r}; ids are read from jsonl, json, csv, xlsx or lines')
    found = frozenset(_from_rows(source, path) if is_table else _from_lines(source, path))
    if not found:
        raise InputError(f"{path}: holds no ids")
    return found


def id_lines(ids: Iterable[str]) -> Iterator[bytes]:
    """The ids as a run folder keeps them: sorted, a JSON text a line."""
    return (json.dumps(one, ensure_ascii=False).encode("utf-8", "replace") for one in sorted(ids))


def stored_ids(folder: RunFolder) -> frozenset[str] | None:
    """The ids that a run keeps; None if it was given none.

    Raises:
        StorageError: a line is damaged.
    """
    return frozenset(_stored(folder)) if folder.has(CHUNK_IDS) else None


def _stored(folder: RunFolder) -> Iterator[str]:
    for number, line in folder.lines(CHUNK_IDS):
        error: object = "expected a text"
        try:
            one = json.loads(line)
        except ValueError as caught:
            one, error = None, caught
        if not isinstance(one, str):
            raise damaged_line(folder.path / CHUNK_IDS, number, error)
        yield one


def _from_lines(source: DataFile, path: Path) -> Iterator[str]:
    for line in read_text(source, path).split("\n"):
        if line.strip():
            yield _id(line.strip(), str(path))


def _from_rows(source: DataFile, path: Path) -> Iterator[str]:
    name: str | None = source.fields.get(_FIELD)
    for row in read_rows(source, path):
        where = f"{path}:{row.line}" if row.line else f"{path}: {row.path}"
        if row.data is None:
            raise InputError(one_line(f"{where}: {row.problem}"))
        name = name or _name_in(row.data, where)
        value = look_up(row.data, name)
        if value is ABSENT or value in (None, ""):
            raise InputError(one_line(f"{where}: has no {name!r}"))
        yield _id(value, where)


def _name_in(record: Mapping[str, Any], where: str) -> str:
    for name in _NAMES:
        if name in record:
            return name
    keys = ", ".join(map(str, list(record)[:8]))
    raise InputError(one_line(f'{where}: no id among {keys}; say which it is: "fields": {{"{_FIELD}": ...}}'))


def _id(value: object, where: str) -> str:
    try:
        return checked_id(value)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
