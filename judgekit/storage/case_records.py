"""The cases of a stored run, each with its output, scores, judge inputs and judgments."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

from judgekit.core.case_records import CaseRecord
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import StorageError, first_problem
from judgekit.core.judgments import JudgeInput, Judgment
from judgekit.core.runs import CASES, JUDGE_INPUTS, JUDGMENTS, OUTPUTS, SCORES
from judgekit.core.spot_checks import RUN_CHECK
from judgekit.storage.record_index import RecordIndex
from judgekit.storage.run_folder import RunFolder

M = TypeVar("M", bound=BaseModel)


class _Score(msgspec.Struct):
    name: str
    value: float | None
    reason: str | None = None
    source: str | None = None


class StoredCases:
    """The cases of one run, in their order; a context manager, since it holds files open.

    Every file is read once for places and once for its records: time is linear in the size of the run, memory in the
    number of its cases. A run without cases.jsonl (or with a half of its files) gives what there is.
    """

    def __init__(self, folder: RunFolder, most: int | None = None) -> None:
        """Find the records of the run.

        Args:
            folder: the run.
            most: cases to read at most, from the first one; None: all.

        Raises:
            StorageError: a file is damaged or cannot be read.
        """
        self._folder = folder
        self._files = ExitStack()
        self._cases = self._index(CASES, None)
        self._outputs = self._index(OUTPUTS, None)
        ids = self._cases.ids or self._outputs.ids
        self.n_cases = len(ids)
        """Cases of the run, those left out by `most` too."""
        self._ids = ids[:most]
        only = None if most is None or len(ids) <= most else frozenset(self._ids)
        self._scores = self._index(SCORES, only)
        self._inputs = self._index(JUDGE_INPUTS, only)
        self._judgments = self._index(JUDGMENTS, only)

    def __enter__(self) -> "StoredCases":
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def _index(self, name: str, only: frozenset[str] | None) -> RecordIndex:
        return self._files.enter_context(RecordIndex(self._folder.path / name, only=only))

    def score_names(self) -> list[str]:
        """Names of all scores, in the order of scores.jsonl; of a run without it, its judges, whose verdicts stand in.

        A run that was killed has judgments and no scores yet.
        """
        return list(self._scores.names) or list(self._judgments.by_judge)

    def judged(self) -> dict[str, tuple[int, int]]:
        """By judge: cases with a judgment, and cases with a judge input."""
        done = self._judgments.by_judge
        return {judge: (len(done.get(judge, ())), len(ids)) for judge, ids in self._inputs.by_judge.items()}

    def __iter__(self) -> Iterator[CaseRecord]:
        """One record a case, streamed.

        Raises:
            StorageError: a record is damaged.
        """
        scores = msgspec.json.Decoder(_Score)
        inputs = msgspec.json.Decoder(_Input)
        for case_id in self._ids:
            try:
                found = [scores.decode(line) for line in self._scores.lines(case_id)]
                asked = [inputs.decode(line) for line in self._inputs.lines(case_id)]
            except msgspec.MsgspecError as error:
                raise StorageError(f"{self._folder.path}: damaged record of case {case_id!r}: {error}") from None
            judgments = _that_count([self._parsed(line, Judgment) for line in self._judgments.lines(case_id)])
            yield CaseRecord(
                case_id=case_id,
                case=self._one(self._cases, case_id, Case),
                output=self._one(self._outputs, case_id, SystemOutput),
                scores={score.name: (score.value, score.reason) for score in found}
                if self._scores.names
                else _verdict_scores(judgments),
                sources={score.name: score.source for score in found if score.source is not None},
                judgments=judgments,
                inputs={
                    item.judge: JudgeInput.model_construct(case_id=case_id, judge=item.judge, variables=item.variables)
                    for item in asked
                },
            )

    def _one(self, index: RecordIndex, case_id: str, model: type[M]) -> M | None:
        return next((self._parsed(line, model) for line in index.lines(case_id)), None)

    def _parsed(self, line: bytes, model: type[M]) -> M:
        try:
            return model.model_validate_json(line)
        except ValidationError as error:
            raise StorageError(f"{self._folder.path}: damaged {model.__name__}: {first_problem(error)}") from None


def _verdict_scores(judgments: Sequence[Judgment]) -> dict[str, tuple[float | None, str | None]]:
    found: dict[str, tuple[float | None, str | None]] = {}
    for judgment in judgments:
        if judgment.role != "primary":
            continue
        verdict = judgment.verdict
        rating = None if verdict is None else verdict.answer if verdict.score is None else verdict.score
        kind = judgment.failure.kind if judgment.failure is not None else "invalid"
        found[judgment.judge] = (None, f"failed: judge {kind}") if rating is None else (float(rating), None)
    return found


class _Input(msgspec.Struct):
    judge: str
    variables: dict[str, object]


def _that_count(judgments: list[Judgment]) -> tuple[Judgment, ...]:
    found: dict[tuple[str | None, ...], Judgment] = {}
    for judgment in judgments:
        check = (judgment.check or RUN_CHECK) if judgment.role == "spot_check" else judgment.check
        member = judgment.model_id if judgment.role == "member" else None
        key = (judgment.judge, judgment.role, check, member)
        old = found.get(key)
        if old is None or old.verdict is None or judgment.verdict is not None:
            found[key] = judgment
    return tuple(found.values())
