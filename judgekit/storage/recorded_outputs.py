"""Recorded outputs by case id, in memory that does not grow with their number."""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path

from judgekit.core.cases import SystemOutput
from judgekit.core.errors import StorageError
from judgekit.core.streams import IdOrder
from judgekit.storage.sqlite_files import scratch_database

Read = Callable[[Callable[[str], object], bool], Iterator[SystemOutput]]
"""Reads outputs: takes what is told the case id of each, and whether all are wanted."""


class RecordedOutputs(Mapping[str, SystemOutput]):
    """The outputs of a file by case id, read from it as they are asked for.

    Outputs in the order of the cases are read side by side with them. Others go to a temporary file first, which is
    gone with this object.
    """

    def __init__(self, path: Path, read: Read, order: IdOrder, *, keeps_all: bool = False) -> None:
        """Read the outputs once.

        Args:
            path: names the file in messages.
            read: gives the outputs that are wanted in the order of the file, as often as it is called; each case id
                comes once.
            order: of the ids of the cases.
            keeps_all: `all` will be asked for.

        Raises:
            InputError: whatever is wrong with the file or with a record.
        """
        self._path = path
        self._read = read
        self._stream: Iterator[SystemOutput] = iter(())
        found = IdOrder()
        deque(read(found.add, False), maxlen=0)
        self._n = found.n
        self.is_in_order = found == order
        """There is an output for each case, in the order of the cases, and no other."""
        self._stored = None if self.is_in_order else self._written(keeps_all)
        self._reads_all = False

    def all(self) -> "RecordedOutputs":
        """The same with the outputs that are not wanted."""
        found = copy(self)
        found._stream, found._reads_all = iter(()), True
        return found

    def __getitem__(self, case_id: str) -> SystemOutput:
        if self._stored is not None:
            with self._faults_named():
                row = self._stored.execute("SELECT record FROM outputs WHERE case_id = ?", (case_id,)).fetchone()
            if row is None or row[0] is None:
                raise KeyError(case_id)
            return SystemOutput.model_validate_json(row[0])
        for stream in (self._stream, self._read(_ignored, self._reads_all)):
            self._stream = stream
            for output in stream:
                if output.case_id == case_id:
                    return output
        raise KeyError(case_id)

    def __iter__(self) -> Iterator[str]:
        if self._stored is None:
            told: list[str] = []
            for _ in self._read(told.append, False):
                yield from told
                told.clear()
            yield from told
            return
        with self._faults_named():
            for (case_id,) in self._stored.execute("SELECT case_id FROM outputs ORDER BY rowid"):
                yield case_id

    def __len__(self) -> int:
        return self._n

    def _written(self, keeps_all: bool) -> sqlite3.Connection:
        with self._faults_named():
            stored = scratch_database("CREATE TABLE outputs (case_id TEXT UNIQUE, record BLOB)")
            stored.execute("BEGIN")
            stored.executemany("INSERT INTO outputs VALUES (?, ?)", self._rows(keeps_all))
            stored.execute("COMMIT")
            return stored

    def _rows(self, keeps_all: bool) -> Iterator[tuple[str, bytes | None]]:
        """Id and record of every output; no record of one that is not wanted."""
        told: list[str] = []
        for output in self._read(told.append, keeps_all):
            record = output.model_dump_json(exclude_defaults=True).encode("utf-8", "replace")
            yield from ((case_id, record if case_id == output.case_id else None) for case_id in told)
            told.clear()
        yield from ((case_id, None) for case_id in told)

    @contextmanager
    def _faults_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"{self._path}: cannot be put in the order of the cases: {error}; free space") from None


def _ignored(_: str) -> None:
    pass
