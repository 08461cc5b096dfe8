"""Data in several files that are read one after the other by name, as in `data/part-*.parquet`, or a folder of them."""

import glob
import os
import re
from pathlib import Path

from judgekit.core.errors import InputError
from judgekit.storage.rows import is_folder, is_plain_file

_PATTERN = re.compile(r"[*?[]")
_LINES = (".jsonl", ".ndjson")


def is_pattern(path: Path) -> bool:
    """Whether a path stands for several files, as with `*` in it; a file of that very name is a file."""
    return _PATTERN.search(str(path)) is not None and not os.path.exists(path)  # noqa: PTH110  # raises for long names


def is_series(path: Path) -> bool:
    """Whether a path is a pattern, or a folder of JSONL files that differ by numbers in their names only."""
    return is_pattern(path) or (is_folder(path) and bool(_numbered_lines(path)))


def series_files(path: Path) -> list[Path]:
    """The files of a series in the order of their names.

    Raises:
        InputError: there is no file.
    """
    if not is_pattern(path):
        return _numbered_lines(path)
    names = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207  # Path.glob has no absolute patterns
    found = [Path(name) for name in names if is_plain_file(Path(name))]
    if not found:
        raise InputError(f"{path}: no file has such a name")
    return found


def series_folder(path: Path) -> Path:
    """The folder that names in a series start from: of a pattern, the part before the first `*`."""
    if not is_pattern(path):
        return path
    return next(parent for parent in path.parents if not _PATTERN.search(str(parent)))


def _numbered_lines(path: Path) -> list[Path]:
    try:
        found = sorted(entry for entry in path.iterdir() if not entry.name.startswith((".", "_")))
    except OSError:
        return []
    names = {re.sub(r"\d+", "", entry.name) for entry in found}
    fits = len(names) == 1 and all(
        entry.suffix.lower() in _LINES and re.search(r"\d", entry.stem) and entry.is_file() for entry in found
    )
    return found if fits else []
