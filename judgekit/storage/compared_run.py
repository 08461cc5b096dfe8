"""A stored run as a comparison reads it: any case by its id, with its output and scores."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import StorageError, first_problem
from judgekit.core.runs import CASES, OUTPUTS, SCORES
from judgekit.core.scores import Failed, NotApplicable, Outcome
from judgekit.storage.record_index import RecordIndex
from judgekit.storage.run_folder import RunFolder

M = TypeVar("M", bound=BaseModel)

_NOT_JUDGED = ("internal", "not judged")


class _Score(msgspec.Struct):
    name: str
    value: float | None
    reason: str | None = None


class ComparedRun:
    """The cases of one run; a context manager, since it holds files open.

    Memory grows with the number of cases and not with the length of what is stored, and the order of cases does not
    matter.
    """

    def __init__(self, folder: RunFolder) -> None:
        """Find the records of the run.

        Raises:
            StorageError: a file is damaged or cannot be read.
        """
        self._folder = folder
        self._files = ExitStack()
        self._cases, self._outputs, self._scores = [
            self._files.enter_context(RecordIndex(folder.path / name)) for name in (CASES, OUTPUTS, SCORES)
        ]
        self._decoder = msgspec.json.Decoder(_Score)
        self._reasons: dict[str | None, Outcome] = {}
        self.ids: Sequence[str] = self._cases.ids or self._outputs.ids or self._scores.ids
        """Case ids in the order of the run."""
        self.has_cases = bool(self._cases.ids)
        self.has_scores = bool(self._scores.ids)

    def __enter__(self) -> "ComparedRun":
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def case(self, case_id: str) -> Case | None:
        """The case; None where the run did not keep it.

        Raises:
            StorageError: its record is damaged.
        """
        return self._one(self._cases, case_id, Case)

    def output(self, case_id: str) -> SystemOutput | None:
        """The output; None where the run has none.

        Raises:
            StorageError: its record is damaged.
        """
        return self._one(self._outputs, case_id, SystemOutput)

    def scores(self, case_id: str) -> Mapping[str, Outcome]:
        """Outcomes by score name; empty where the run was stopped before it scored the case.

        Raises:
            StorageError: a record is damaged, or a score stands there twice.
        """
        found: dict[str, Outcome] = {}
        lines = self._scores.lines(case_id)
        try:
            for score in map(self._decoder.decode, lines):
                found[score.name] = score.value if score.value is not None else self._reason(score.reason)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StorageError(f"{self._folder.path / SCORES}: damaged record of case {case_id!r}: {error}") from None
        if len(found) != len(lines):
            raise StorageError(f"{self._folder.path / SCORES}: a score of case {case_id!r} stands there twice")
        return found

    def _reason(self, reason: str | None) -> Outcome:
        """The outcome that a reason tells of; the same few come again and again."""
        known = self._reasons.get(reason)
        if known is None:
            text = reason or ""
            kind = text.removeprefix("failed: ")
            known = (
                NotApplicable(text.removeprefix("n/a: "))
                if kind == text
                else Failed(kind, by_judge=kind.startswith("judge ") or kind in _NOT_JUDGED)
            )
            self._reasons[reason] = known
        return known

    def _one(self, index: RecordIndex, case_id: str, model: type[M]) -> M | None:
        for line in index.lines(case_id):
            try:
                return model.model_validate_json(line)
            except ValidationError as error:
                where = f"{self._folder.path}: damaged {model.__name__} of case {case_id!r}"
                raise StorageError(f"{where}: {first_problem(error)}") from None
        return None
