"""The judgments of a run that count, read case by case, so that memory does not grow with the run."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Self

from pydantic import ValidationError

from judgekit.core.errors import StorageError, first_problem
from judgekit.core.judgments import Judgment, JudgmentKey, that_count
from judgekit.core.runs import JUDGMENTS
from judgekit.storage.record_index import RecordIndex
from judgekit.storage.run_folder import RunFolder


class StoredJudgments(Mapping[JudgmentKey, Judgment]):
    """For each question the judgment that counts; a context manager, since the file is held open.

    In the order of the cases as they were judged first. The judgments of one case are read together, and those of the
    last case that was asked for are kept, so ask for all of a case before you go to the next.

    Whatever reads raises `StorageError` about a record that is damaged or cannot be read.
    """

    def __init__(self, folder: RunFolder) -> None:
        """Find the records; a file that is not there has none."""
        self._folder = folder
        self._index = RecordIndex(folder.path / JUDGMENTS)
        self._is_empty = not len(self._index)
        self._last: tuple[str, Mapping[JudgmentKey, Judgment]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._index.close()

    def of_case(self, case_id: str) -> Mapping[JudgmentKey, Judgment]:
        """The judgments of one case."""
        if self._last is None or self._last[0] != case_id:
            self._last = case_id, that_count(self.all_of_case(case_id))
        return self._last[1]

    def all_of_case(self, case_id: str) -> list[Judgment]:
        """The judgments of one case in the order in which they came, those among them that do not count any more."""
        return [] if self._is_empty else [self._read(line) for line in self._index.lines(case_id)]

    def ids(self) -> Iterator[str]:
        """Ids of the cases that have a judgment, in the order in which they were judged first, streamed."""
        return self._index.ids()

    def by_case(self, case_ids: Iterable[str]) -> Iterator[list[Judgment]]:
        """The judgments of each case, as `all_of_case` gives them, streamed."""
        for lines in self._index.of_cases(case_ids):
            yield [self._read(line) for line in lines]

    def _read(self, line: bytes) -> Judgment:
        try:
            return Judgment.model_validate_json(line)
        except ValidationError as error:
            raise StorageError(f"{self._folder.path / JUDGMENTS}: damaged: {first_problem(error)}") from None

    def __getitem__(self, key: JudgmentKey) -> Judgment:
        return self.of_case(key.case_id)[key]

    def __iter__(self) -> Iterator[JudgmentKey]:
        for judgments in self.by_case(self.ids()):
            counting = that_count(judgments)
            self._last = judgments[0].case_id, counting
            yield from counting

    def __len__(self) -> int:
        return sum(1 for _ in self)
