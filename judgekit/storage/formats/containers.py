"""Where rows are stored, whatever they hold: lines, lists and tables, columns, YAML, a folder of files."""

import json
from collections.abc import Iterator
from pathlib import Path

from judgekit.core.data_files import KNOWN_FORMATS, DataFile
from judgekit.core.errors import InputError
from judgekit.storage.formats import columns, folder, yaml
from judgekit.storage.formats.source import Notices, has_own_suffix, is_folder
from judgekit.storage.rows import OWN_FORMATS, Row, read_rows, read_text

CONTAINERS = ("yaml", "folder", "parquet", "arrow")
"""Formats that say how rows are stored and not what they hold, beside JSONL, JSON and CSV."""


def container_of(file: DataFile, path: Path) -> str | None:
    """How the rows of a path are stored: as the config says, or by extension and content of a folder; None: unknown."""
    if file.format in OWN_FORMATS.values() or file.format in CONTAINERS:
        return file.format
    if is_folder(path) and not has_own_suffix(path):
        if columns.files_of(path):
            return "parquet"
        return "folder" if folder.claims(path) else None
    suffix = path.suffix.lower()
    if suffix in columns.SUFFIXES:
        return columns.SUFFIXES[suffix]
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
        return yaml.rows(file, path)
    if container == "folder":
        return folder.rows(file, path)
    if container in ("parquet", "arrow"):
        return columns.rows(file, path, notices)
    if container is None and is_folder(path):
        raise InputError(
            f"{path}: is a folder of no known kind; known: JSON files, Parquet or Arrow files, BEIR (queries.jsonl and "
            f'qrels); or set "format" to one of {KNOWN_FORMATS}'
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
    """The first row of a path; None where it cannot be read."""
    try:
        return next(container_rows(file, path), None)
    except InputError:
        return None
