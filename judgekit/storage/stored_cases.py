"""The cases of a stored run, found by their ids: output, scores, judge inputs and judgments of each.

Places in the files are kept on disk, so memory does not grow with the run, and files in different orders can be joined.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from typing import Self, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import StorageError, first_problem
from judgekit.core.judgments import JudgeInput, Judgment, that_count
from judgekit.core.runs import CASES, JUDGE_INPUTS, JUDGMENTS, OUTPUTS, SCORES, CaseRecord
from judgekit.core.scores import Failed, NotApplicable, Outcome
from judgekit.storage.record_index import RecordIndex
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.score_lines import ScoreReader, StoredScore

M = TypeVar("M", bound=BaseModel)

_NOT_JUDGED = ("internal", "not judged")


class _CaseFiles:
    """Files of a run whose records are found by case id; a context manager, since they are held open.

    Whatever reads raises `StorageError` about a file or record that is damaged or cannot be read.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._files = ExitStack()
        self._score_reader: ScoreReader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def _index(self, name: str) -> RecordIndex:
        return self._files.enter_context(RecordIndex(self._folder.path / name))

    def _first(self, index: RecordIndex, case_id: str, model: type[M]) -> M | None:
        return next(iter(self._all(index, case_id, model)), None)

    def _all(self, index: RecordIndex, case_id: str, model: type[M]) -> Iterator[M]:
        for line in index.lines(case_id):
            try:
                record = model.model_validate_json(line, extra="ignore")
            except ValidationError as error:
                where = f"{self._folder.path}: damaged {model.__name__} of case {case_id!r}"
                raise StorageError(f"{where}: {first_problem(error)}") from None
            yield record

    def _scores_of(self, index: RecordIndex, case_id: str) -> list[StoredScore]:
        try:
            reader = self._reader(index)
            return reader.of_case(index.lines(case_id))
        except (msgspec.MsgspecError, ValueError) as error:
            raise StorageError(f"{self._folder.path / SCORES}: damaged record of case {case_id!r}: {error}") from None

    def _reader(self, index: RecordIndex) -> ScoreReader:
        if self._score_reader is None:
            self._score_reader = ScoreReader(index.lines(""))
        return self._score_reader


class StoredCases(_CaseFiles):
    """The cases of one run, in their order.

    Every file is read once for places and once for its records: time is linear in the size of the run. A run without
    cases.jsonl (or with a half of its files) gives what there is.
    """

    def __init__(self, folder: RunFolder) -> None:
        """Find the records of the run."""
        super().__init__(folder)
        self._cases, self._outputs = self._index(CASES), self._index(OUTPUTS)
        self._ordered = self._cases if len(self._cases) else self._outputs
        self.n_cases = len(self._ordered)
        """Cases of the run."""
        self._scores, self._inputs, self._judgments = [self._index(name) for name in (SCORES, JUDGE_INPUTS, JUDGMENTS)]

    def score_names(self) -> list[str]:
        """Names of all scores, in the order of scores.jsonl; of a run without it, its judges, whose verdicts stand in.

        A run that was killed has judgments and no scores yet.
        """
        return self._stored_names() or list(self._judgments.by_judge())

    def _stored_names(self) -> list[str]:
        return self._reader(self._scores).names or list(self._scores.names)

    def judged(self) -> dict[str, tuple[int, int]]:
        """By judge: cases with a judgment, and cases with a judge input."""
        done = self._judgments.by_judge()
        return {judge: (done.get(judge, 0), n) for judge, n in self._inputs.by_judge().items()}

    def scores(self) -> Iterator[tuple[str, dict[str, tuple[float | None, str | None]]]]:
        """Case id and scores by name of each case, streamed."""
        for case_id in self._ordered.ids():
            yield case_id, {item.name: (item.value, item.reason) for item in self._scores_of(self._scores, case_id)}

    def __iter__(self) -> Iterator[CaseRecord]:
        """One record a case, streamed."""
        return self.records()

    def records(self, only: Set[str] | None = None) -> Iterator[CaseRecord]:
        """One record a case, of all cases or of some, streamed in the order of the run."""
        has_scores = bool(self._stored_names())
        for case_id in self._ordered.ids():
            if only is not None and case_id not in only:
                continue
            scores = self._scores_of(self._scores, case_id)
            judgments = tuple(that_count(self._all(self._judgments, case_id, Judgment)).values())
            yield CaseRecord(
                case_id=case_id,
                case=self._first(self._cases, case_id, Case),
                output=self._first(self._outputs, case_id, SystemOutput),
                scores={score.name: (score.value, score.reason) for score in scores}
                if has_scores
                else _verdict_scores(judgments),
                sources={score.name: score.source for score in scores if score.source is not None},
                judgments=judgments,
                inputs={item.judge: item for item in self._all(self._inputs, case_id, JudgeInput)},
            )


def _verdict_scores(judgments: Sequence[Judgment]) -> dict[str, tuple[float | None, str | None]]:
    found: dict[str, tuple[float | None, str | None]] = {}
    for judgment in judgments:
        if judgment.role != "primary":
            continue
        rating = None if judgment.verdict is None else judgment.verdict.rating
        kind = judgment.failure.kind if judgment.failure is not None else "invalid"
        # A label is no number, and a verdict all the same.
        why = f"failed: judge {kind}" if judgment.verdict is None else None
        found[judgment.judge] = (None if rating is None else float(rating), why)
    return found


class ComparedRun(_CaseFiles):
    """A run as a comparison reads it: any case by its id, whatever the order of cases."""

    def __init__(self, folder: RunFolder) -> None:
        """Find the records of the run."""
        super().__init__(folder)
        self._cases, self._outputs, self._scores = [self._index(name) for name in (CASES, OUTPUTS, SCORES)]
        self._reasons: dict[str | None, Outcome] = {}
        ordered = next((index for index in (self._cases, self._outputs) if len(index)), self._scores)
        self.ids: Sequence[str] = list(ordered.ids())
        """Case ids in the order of the run."""
        self.has_cases = len(self._cases) > 0
        self.has_scores = len(self._scores) > 0

    def case(self, case_id: str) -> Case | None:
        """The case; None if the run did not keep it."""
        return self._first(self._cases, case_id, Case)

    def output(self, case_id: str) -> SystemOutput | None:
        """The output; None if the run has none."""
        return self._first(self._outputs, case_id, SystemOutput)

    def scores(self, case_id: str) -> Mapping[str, Outcome]:
        """Outcomes by score name; empty if the run was stopped before it scored the case.

        Raises:
            StorageError: a record is damaged, or a score stands there twice.
        """
        scores = self._scores_of(self._scores, case_id)
        found = {score.name: self._reason(score.reason) if score.value is None else score.value for score in scores}
        if len(found) != len(scores):
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
