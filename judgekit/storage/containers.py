"""Where rows are stored, whatever they hold: lines, lists and tables, columns, YAML, a folder of files."""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, InputError
from judgekit.storage import column_files
from judgekit.storage.encodings import faults_named
from judgekit.storage.format_names import formats_named
from judgekit.storage.problems import kind_of
from judgekit.storage.rows import (
    OWN_FORMATS,
    Notices,
    Origin,
    Row,
    document_rows,
    has_own_suffix,
    is_folder,
    read_rows,
    read_text,
)
from judgekit.storage.yaml_text import DATA_VALUES, line_of_node, node_at, parsed_yaml

CONTAINERS = ("yaml", "folder", "parquet", "arrow")
"""Formats that say how rows are stored and not what they hold, beside JSONL, JSON and CSV."""


def container_of(file: DataFile, path: Path) -> str | None:
    """How the rows of a path are stored: as the config says, or by extension and content of a folder; None: unknown."""
    if file.format in OWN_FORMATS.values() or file.format in CONTAINERS:
        return file.format
    if is_folder(path) and not has_own_suffix(path):
        if column_files.files_of(path):
            return "parquet"
        return "folder" if _holds_json_files(path) else None
    suffix = path.suffix.lower()
    if suffix in column_files.SUFFIXES:
        return column_files.SUFFIXES[suffix]
    if suffix in (".yaml", ".yml"):
        return "yaml"
    return OWN_FORMATS.get(suffix)


def container_rows(
    file: DataFile, path: Path, notices: Notices | None = None, *, lenient: bool = False
) -> Iterator[Row]:
    """The rows of a path.

    Args:
        file: how it is read.
        path: where it is.
        notices: takes what should be known.
        lenient: read a `.json` file with one object a line as what it is, and a `.txt` file as JSON.

    Raises:
        InputError: the path cannot be read, or nothing says how.
    """
    container = container_of(file, path)
    if lenient and not is_folder(path) and file.format not in OWN_FORMATS.values() and container in (None, "json"):
        return read_rows(file.model_copy(update={"format": _json_form(file, path)}), path)
    if container == "yaml":
        return _yaml_rows(file, path)
    if container == "folder":
        return _folder_rows(file, path)
    if container in ("parquet", "arrow"):
        return column_files.rows(file, path, notices)
    if container is None and is_folder(path):
        raise InputError(
            f"{path}: is a folder of no known kind; known: JSON files, Parquet or Arrow files, BEIR (queries.jsonl and "
            f'qrels); or set "format" to one of {formats_named()}'
        )
    return read_rows(file, path)


def _json_form(file: DataFile, path: Path) -> str:
    """Whether a file of JSON is one list or one object a line."""
    text = read_text(file, path).lstrip()
    if not text.startswith("{"):
        return "json"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return "jsonl" if error.msg == "Extra data" else "json"
    return "json"


def first_row(file: DataFile, path: Path) -> Row | None:
    """The first row of a path; None if it cannot be read."""
    try:
        return next(container_rows(file, path), None)
    except InputError:
        return None


def _holds_json_files(path: Path) -> bool:
    """Whether a folder holds JSON files and nothing else but hidden files."""
    try:
        entries = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    except OSError:
        return False
    return bool(entries) and all(entry.suffix.lower() == ".json" and entry.is_file() for entry in entries)


def json_files(path: Path) -> list[Path]:
    """The files that hold records, sorted by name.

    Raises:
        InputError: there are none, or the folder cannot be read.
    """
    with faults_named(path, "a folder"):
        found = [entry for entry in path.iterdir() if entry.suffix.lower() == ".json" and entry.is_file()]
    found = sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)
    if not found:
        raise InputError(f"{path}: the folder has no .json files")
    return found


def _folder_rows(file: DataFile, path: Path) -> Iterator[Row]:
    """One row for each file. A record without an id has the name of its file, without `.json`, as its id."""
    for entry in json_files(path):
        yield _row(file, entry)


def _row(file: DataFile, entry: Path) -> Row:
    def wrong(line: int, problem: str) -> Row:
        return Row(line, "$", None, problem, file=entry.name)

    try:
        data = json.loads(read_text(file, entry))
    except json.JSONDecodeError as error:
        return wrong(error.lineno, f"not valid JSON: {error.msg} (column {error.colno})")
    except RecursionError:
        return wrong(1, "nested too deeply")
    except ValueError:
        return wrong(1, "holds a number with too many digits; write it as a text")
    if not isinstance(data, dict):
        return wrong(1, f"expected an object, found {kind_of(data)}; each file of the folder is one record")
    if "id" not in data and "case_id" not in data and not {"id", "case_id"} & set(file.fields):
        data = {"id": entry.stem, **data}
    return Row(1, "$", data, file=entry.name)


def _yaml_rows(file: DataFile, path: Path) -> Iterator[Row]:
    """The records of a YAML file; `query` is read as the question.

    YAML is version 1.2, so `no` and `on` are texts; a date is the text that was written.

    Raises:
        InputError: no YAML, or no list of records.
    """
    text = read_text(file, path)
    with faults_named(path, "a YAML file"):
        try:
            data, root = parsed_yaml(text, str(path), DATA_VALUES)
        except ConfigError as error:
            raise InputError(str(error)) from None
        for row in document_rows(file, _as_json(data), path):
            line = line_of_node(node_at(root, row.place)) if row.place is not None else 0
            record = row.data
            if record is not None and "query" in record and "question" not in record:
                ours = {("question" if key == "query" else key): value for key, value in record.items()}
                yield replace(row, line=line, place=None, data=ours, origin=Origin(record, {"question": "query"}))
            else:
                yield replace(row, line=line, place=None)


def _as_json(value: Any) -> Any:
    """Data as JSON could hold it."""
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | set | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value
