"""Where the records of a JSONL file stand, found by case id, in memory that does not grow with the file."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO

import msgspec

from judgekit.core.errors import StorageError
from judgekit.storage.run_files import damaged_line, disk_faults_named, whole_line
from judgekit.storage.sqlite_files import scratch_database

_NAME = b'"name":'
_LOOKED_UP = 256
"""Cases that one look-up asks for."""


class _Head(msgspec.Struct):
    """What is read of a line to know whose it is."""

    case_id: str | None = ""
    id: str = ""
    name: str | None = ""
    judge: str = ""
    role: str = "primary"
    names: tuple[str, ...] = ()


class RecordIndex:
    """Byte ranges of a JSONL file by case id; neighbouring lines of one case are one range.

    Lines about no case are found under a blank id. A torn last line of a file that is appended to is not a record. A
    file that is not there has no records.

    Whatever reads raises `StorageError` if the file cannot be read, or the temporary one cannot be written.
    """

    def __init__(self, path: Path) -> None:
        """Read the file once.

        Args:
            path: the file; its lines have a `case_id`, or are cases and have an `id`.

        Raises:
            StorageError: it cannot be read, or a line is damaged.
        """
        self._stream: IO[bytes] | None = None
        self._path = path
        self.names: dict[str, None] = {}
        """Values of `name`, in the order in which they first come."""
        with self._faults_named():
            self._places = scratch_database(
                "CREATE TABLE places (case_id TEXT, judge TEXT, start INTEGER, length INTEGER)"
            )
            self._places.execute("BEGIN")
            self._places.executemany("INSERT INTO places VALUES (?, ?, ?, ?)", self._found())
            self._places.execute("CREATE INDEX by_case ON places (case_id, start)")
            self._places.execute("COMMIT")

    def __enter__(self) -> "RecordIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # The database closes itself; it is not there if it could not be made.
        if self._stream is not None:
            self._stream.close()

    def close(self) -> None:
        """Let go of the files; nothing can be found any more."""
        self._places.close()
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __len__(self) -> int:
        """Number of cases that have a record."""
        with self._faults_named():
            return int(
                self._places.execute("SELECT COUNT(DISTINCT case_id) FROM places WHERE case_id != ''").fetchone()[0]
            )

    def ids(self) -> Iterator[str]:
        """Case ids in the order in which they first come, streamed."""
        with self._faults_named():
            found = self._places.execute(
                "SELECT case_id FROM places WHERE case_id != '' GROUP BY case_id ORDER BY MIN(start)"
            )
            for (case_id,) in found:
                yield case_id

    def by_judge(self) -> dict[str, int]:
        """By judge, the number of cases with a line that is not a second opinion."""
        with self._faults_named():
            counted = "SELECT judge, COUNT(DISTINCT case_id) FROM places WHERE judge IS NOT NULL GROUP BY judge"
            return dict(self._places.execute(f"{counted} ORDER BY MIN(start)"))

    def lines(self, case_id: str) -> list[bytes]:
        """The lines of one case, in the order of the file."""
        return next(self.of_cases((case_id,)))

    def of_cases(self, case_ids: Iterable[str]) -> Iterator[list[bytes]]:
        """The lines of each case, as `lines` gives them, streamed."""
        wanted = iter(case_ids)
        with self._faults_named(), disk_faults_named(self._path, "cannot be read"):
            while some := list(islice(wanted, _LOOKED_UP)):
                places = self._ranges(some)
                for case_id in some:
                    yield self._read(places.get(case_id, ()))

    def _ranges(self, case_ids: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """Offset and length of each range, by case id, in the order of the file."""
        found: dict[str, list[tuple[int, int]]] = {}
        marks = ", ".join("?" * len(case_ids))
        sql = f"SELECT case_id, start, length FROM places WHERE case_id IN ({marks}) ORDER BY start"  # noqa: S608
        for case_id, start, length in self._places.execute(sql, case_ids):
            found.setdefault(case_id, []).append((start, length))
        return found

    def _read(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        found: list[bytes] = []
        for start, length in ranges:
            if self._stream is None:
                self._stream = self._path.open("rb")
            self._stream.seek(start)
            found += self._stream.read(length).splitlines()
        return found

    def _found(self) -> Iterator[tuple[str, str | None, int, int]]:
        """Case id, judge unless it is a second opinion, offset and length of each range."""
        last: tuple[str, str | None] | None = None
        first = end = 0
        for head, start, length in self._heads():
            if head is None:
                end += length
                continue
            if head.name:
                self.names.setdefault(head.name)
            here = head.case_id or head.id, head.judge if head.judge and head.role == "primary" else None
            if here != last or start != end:
                if last is not None:
                    yield *last, first, end - first
                last, first = here, start
            end = start + length
        if last is not None:
            yield *last, first, end - first

    def _heads(self) -> Iterator[tuple[_Head | None, int, int]]:
        """(head, offset, length) of every whole line; None for another score of the last case, which begins the same.

        The names of all scores are known where the first line has them.
        """
        decoder = msgspec.json.Decoder(_Head)
        offset = 0
        has_names = False
        beginning: bytes | None = None
        with (
            disk_faults_named(self._path, "cannot be read"),
            suppress(FileNotFoundError),
            self._path.open("rb") as stream,
        ):
            for number, line in enumerate(stream, start=1):
                if beginning is not None and line.startswith(beginning) and line.endswith(b"}\n"):
                    yield None, offset, len(line)
                elif whole_line(self._path, number, line):
                    try:
                        head = decoder.decode(line)
                    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                        raise damaged_line(self._path, number, error) from None
                    yield head, offset, len(line)
                    has_names = has_names or bool(head.names)
                    beginning = line.partition(_NAME)[0] + _NAME if has_names and head.case_id and head.name else None
                offset += len(line)

    @contextmanager
    def _faults_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"the temporary index of {self._path} cannot be written: {error}; free space") from None
