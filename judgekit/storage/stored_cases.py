"""The cases of a stored run, found by their ids: output, scores, judge inputs and judgments of each.

Places in the files are kept on disk, so memory does not grow with the run, and files in different orders can be joined.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from itertools import tee
from typing import Self, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import StorageError, first_problem
from judgekit.core.judgments import JudgeInput, Judgment, that_count
from judgekit.core.runs import CASES, JUDGE_INPUTS, JUDGMENTS, OUTPUTS, SCORES, CaseRecord
from judgekit.core.scores import Failed, NotApplicable, Outcome, ScoreOf
from judgekit.storage.record_index import RecordIndex
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.score_lines import CaseScores, ScoreReader

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

    def _first(self, lines: Sequence[bytes], case_id: str, model: type[M]) -> M | None:
        return next(iter(self._all(lines[:1], case_id, model)), None)

    def _all(self, lines: Iterable[bytes], case_id: str, model: type[M]) -> Iterator[M]:
        for line in lines:
            try:
                record = model.model_validate_json(line, extra="ignore")
            except ValidationError as error:
                where = f"{self._folder.path}: damaged {model.__name__} of case {case_id!r}"
                raise StorageError(f"{where}: {first_problem(error)}") from None
            yield record

    def _scores_of(self, reader: ScoreReader, lines: Sequence[bytes], case_id: str) -> CaseScores:
        try:
            return reader.of_case(case_id, lines)
        except (msgspec.MsgspecError, ValueError) as error:
            raise StorageError(f"{self._folder.path / SCORES}: damaged record of case {case_id!r}: {error}") from None

    def _reader(self, index: RecordIndex) -> ScoreReader:
        if self._score_reader is None:
            self._score_reader = ScoreReader(index.lines(""))
        return self._score_reader


class StoredInputs(_CaseFiles):
    """The judge inputs of a run."""

    def __init__(self, folder: RunFolder) -> None:
        """Find the records of the run."""
        super().__init__(folder)
        self._inputs = self._index(JUDGE_INPUTS)

    def of_case(self, case_id: str) -> dict[str, JudgeInput]:
        """By judge, what was asked about a case."""
        return {item.judge: item for item in self._all(self._inputs.lines(case_id), case_id, JudgeInput)}


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

    def scores(self) -> Iterator[tuple[str, dict[str, ScoreOf]]]:
        """Case id and scores by name of each case, streamed."""
        reader = self._reader(self._scores)
        case_ids, same_ids = tee(self._ordered.ids())
        for case_id, lines in zip(case_ids, self._scores.of_cases(same_ids), strict=True):
            yield case_id, self._scores_of(reader, lines, case_id).scores

    def __iter__(self) -> Iterator[CaseRecord]:
        """One record a case, streamed."""
        return self.records()

    def records(self, only: Set[str] | None = None) -> Iterator[CaseRecord]:
        """One record a case, of all cases or of some, streamed in the order of the run."""
        has_scores, reader = bool(self._stored_names()), self._reader(self._scores)
        wanted = (case_id for case_id in self._ordered.ids() if only is None or case_id in only)
        indexes = self._cases, self._outputs, self._scores, self._judgments, self._inputs
        case_ids, *others = tee(wanted, 1 + len(indexes))
        found = [index.of_cases(ids) for index, ids in zip(indexes, others, strict=True)]
        for case_id, case, output, score_lines, judgment_lines, inputs in zip(case_ids, *found, strict=True):
            scores = self._scores_of(reader, score_lines, case_id)
            judgments = tuple(that_count(self._all(judgment_lines, case_id, Judgment)).values())
            yield CaseRecord(
                case_id=case_id,
                case=self._first(case, case_id, Case),
                output=self._first(output, case_id, SystemOutput),
                scores=scores.scores if has_scores else _verdict_scores(judgments),
                sources=scores.sources,
                judgments=judgments,
                inputs={item.judge: item for item in self._all(inputs, case_id, JudgeInput)},
            )


def _verdict_scores(judgments: Sequence[Judgment]) -> dict[str, ScoreOf]:
    found: dict[str, ScoreOf] = {}
    for judgment in judgments:
        if judgment.role != "primary":
            continue
        rating = None if judgment.verdict is None else judgment.verdict.rating
        kind = judgment.failure.kind if judgment.failure is not None else "invalid"
        # A label is not a number, and a verdict all the same.
        why = f"failed: judge {kind}" if judgment.verdict is None else None
        found[judgment.judge] = (None if rating is None else float(rating), why)
    return found


class StoredAnswers(_CaseFiles):
    """The cases of a run and their outputs, any of them by its id, whatever the order of cases."""

    def __init__(self, folder: RunFolder) -> None:
        """Find the records of the run."""
        super().__init__(folder)
        self._cases, self._outputs = self._index(CASES), self._index(OUTPUTS)
        self.has_cases = len(self._cases) > 0
        self.ids: Sequence[str] = list((self._cases if self.has_cases else self._outputs).ids())
        """Case ids in the order of the run."""

    def case(self, case_id: str) -> Case | None:
        """The case; None if the run did not keep it."""
        return self._first(self._cases.lines(case_id), case_id, Case)

    def output(self, case_id: str) -> SystemOutput | None:
        """The output; None if the run has none."""
        return self._first(self._outputs.lines(case_id), case_id, SystemOutput)


class ComparedRun(StoredAnswers):
    """A run as a comparison reads it."""

    def __init__(self, folder: RunFolder) -> None:
        """Find the records of the run."""
        super().__init__(folder)
        self._scores = self._index(SCORES)
        self._reasons: dict[str | None, Outcome] = {}
        self.has_scores = len(self._scores) > 0
        self.ids = self.ids or list(self._scores.ids())

    def scores(self, case_id: str) -> Mapping[str, Outcome]:
        """Outcomes by score name; empty if the run was stopped before it scored the case.

        Raises:
            StorageError: a record is damaged, or a score stands there twice.
        """
        found = self._scores_of(self._reader(self._scores), self._scores.lines(case_id), case_id).scores
        return {name: self._reason(reason) if value is None else value for name, (value, reason) in found.items()}

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
