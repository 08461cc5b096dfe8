"""Where the records of each case stand in a file of lines, so that files in different orders can be joined.

Only places are kept, so memory grows with the number of cases and not with the length of what is stored.
"""

from collections.abc import Iterator, Set
from pathlib import Path
from typing import IO

import msgspec

from judgekit.core.errors import StorageError
from judgekit.storage.damage import damaged_line, whole_line


class _Head(msgspec.Struct):
    """What is read of a line to know whose it is."""

    case_id: str = ""
    id: str = ""
    name: str = ""
    judge: str = ""
    role: str = "primary"


class RecordIndex:
    """Byte ranges of a JSONL file by case id; neighbouring lines of one case are one range.

    A torn last line of a file that is appended to is no record. A file that is not there has no records.
    """

    def __init__(self, path: Path, *, only: Set[str] | None = None) -> None:
        """Read the file once.

        Args:
            path: the file; its lines have a `case_id`, or are cases and have an `id`.
            only: keep the places of these cases only; None: of all.

        Raises:
            StorageError: it cannot be read, or a line is damaged.
        """
        self._path = path
        self._stream: IO[bytes] | None = None
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        self.names: dict[str, None] = {}
        """Values of `name`, in the order in which they first come."""
        self.by_judge: dict[str, set[str]] = {}
        """By judge, the cases with a line that is no second opinion."""
        for head, start, length in self._heads():
            case_id = head.case_id or head.id
            if head.name:
                self.names.setdefault(head.name)
            if head.judge and head.role == "primary":
                self.by_judge.setdefault(head.judge, set()).add(case_id)
            if only is None or case_id in only:
                self._add(case_id, start, length)

    def __enter__(self) -> "RecordIndex":
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    @property
    def ids(self) -> list[str]:
        """Case ids in the order in which they first come."""
        return list(self._ranges)

    def lines(self, case_id: str) -> list[bytes]:
        """The lines of one case, in the order of the file.

        Raises:
            StorageError: the file cannot be read any more.
        """
        found: list[bytes] = []
        try:
            for start, length in self._ranges.get(case_id, ()):
                if self._stream is None:
                    self._stream = self._path.open("rb")
                self._stream.seek(start)
                found += self._stream.read(length).splitlines()
        except OSError as error:
            raise StorageError(f"{self._path}: cannot be read: {error.strerror or error}") from None
        return found

    def _add(self, case_id: str, start: int, length: int) -> None:
        ranges = self._ranges.setdefault(case_id, [])
        if ranges and sum(ranges[-1]) == start:
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + length)
        else:
            ranges.append((start, length))

    def _heads(self) -> Iterator[tuple[_Head, int, int]]:
        """(head, offset, length) of every whole line."""
        decoder = msgspec.json.Decoder(_Head)
        offset = 0
        try:
            with self._path.open("rb") as stream:
                for number, line in enumerate(stream, start=1):
                    if whole_line(self._path, number, line):
                        try:
                            head = decoder.decode(line)
                        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                            raise damaged_line(self._path, number, error) from None
                        yield head, offset, len(line)
                    offset += len(line)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"{self._path}: cannot be read: {error.strerror or error}") from None
