"""A folder of JSON files, one record each, in the order of their names.

A record without `id` and `case_id` has the name of its file, without `.json`, as its id.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.encodings import faults_named
from judgekit.storage.problems import kind_of
from judgekit.storage.rows import Row, read_text


def claims(path: Path) -> bool:
    """Whether a folder holds JSON files and nothing else but hidden files."""
    try:
        entries = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    except OSError:
        return False
    return bool(entries) and all(entry.suffix.lower() == ".json" and entry.is_file() for entry in entries)


def files(path: Path) -> list[Path]:
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


def rows(file: DataFile, path: Path) -> Iterator[Row]:
    """One row for each file."""
    for entry in files(path):
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
