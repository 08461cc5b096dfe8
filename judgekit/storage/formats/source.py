"""What a reader of a format is given, and what it has to offer."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.hashed_file import Hashes
from judgekit.storage.rows import OWN_FORMATS, Row

Kind = Literal["cases", "outputs"]
"""What is wanted of a file; many hold both."""

Notices = list[tuple[str, str]]
"""(code, message) of what the reader of the numbers should know."""

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
    """The parsed file, where it had to be parsed to find its format."""
    hashes: Hashes = field(default_factory=dict)
    """Takes those of files that are read in order."""

    def notice(self, code: str, message: str) -> None:
        """Say something that is no error."""
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

    def claims_document(self, document: Document) -> bool:  # noqa: ARG002
        """Whether a JSON object has the decisive keys."""
        return False

    def claims_record(self, record: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether a row has the decisive keys."""
        return False

    def files(self, file: DataFile, path: Path) -> list[Path]:  # noqa: ARG002
        """The files of a folder that are read, in order."""
        return sorted(found for found in path.rglob("*") if found.is_file() and not found.name.startswith("."))

    @abstractmethod
    def rows(self, source: Source) -> Iterator[Row]:
        """The records of a file, with our field names.

        Raises:
            InputError: the file as a whole cannot be read.
        """


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False where the system cannot say."""
    return os.path.isdir(path)  # noqa: PTH112  # Path.is_dir raises for a name that is too long


def is_plain_file(path: Path) -> bool:
    """Whether a path is a file; False where the system cannot say."""
    return os.path.isfile(path)  # noqa: PTH113


def has_own_suffix(path: Path) -> bool:
    """Whether the extension is that of JSONL, JSON or CSV."""
    return path.suffix.lower() in OWN_FORMATS


def one_part(file: DataFile, path: Path, parts: list[str], what: str) -> str:
    """The part of a source that is read: the one that is named, or the only one.

    Raises:
        InputError: no such part, or several and none named.
    """
    shown = ", ".join(repr(part) for part in parts[:20])
    if file.part is not None:
        if file.part not in parts:
            raise InputError(f"{path}: no {what} {file.part!r}; it has {shown or 'none'}")
        return file.part
    if len(parts) != 1:
        raise InputError(f'{path}: holds {len(parts)} {what}s, {shown}; name one with "part"')
    return parts[0]
