"""The cases of a stored run, found by their ids: output, scores, judge inputs and judgments of each.

Only places in the files are kept, so memory grows with the number of cases and not with the length of what is stored,
and files in different orders can be joined.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Self, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import StorageError, first_problem
from judgekit.core.judgments import JudgeInput, Judgment, that_count
from judgekit.core.runs import CASES, JUDGE_INPUTS, JUDGMENTS, OUTPUTS, SCORES, CaseRecord
from judgekit.core.scores import Failed, NotApplicable, Outcome
from judgekit.storage.run_files import damaged_line, disk_faults_named, whole_line
from judgekit.storage.run_folder import RunFolder

M = TypeVar("M", bound=BaseModel)

_NOT_JUDGED = ("internal", "not judged")


class StoredScore(msgspec.Struct):
    """A line of scores.jsonl. There are dozens a case, and `core.scores.Score` takes four times as long to read."""

    case_id: str
    name: str
    value: float | None = None
    reason: str | None = None
    source: str | None = None


class _Head(msgspec.Struct):
    """What is read of a line to know whose it is."""

    case_id: str = ""
    id: str = ""
    name: str = ""
    judge: str = ""
    role: str = "primary"


class RecordIndex:
    """Byte ranges of a JSONL file by case id; neighbouring lines of one case are one range.

    A torn last line of a file that is appended to is not a record. A file that is not there has no records.
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
        """By judge, the cases with a line that is not a second opinion."""
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
        """The lines of one case, in the order of the file."""
        found: list[bytes] = []
        with disk_faults_named(self._path, "cannot be read"):
            for start, length in self._ranges.get(case_id, ()):
                if self._stream is None:
                    self._stream = self._path.open("rb")
                self._stream.seek(start)
                found += self._stream.read(length).splitlines()
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
        with (
            disk_faults_named(self._path, "cannot be read"),
            suppress(FileNotFoundError),
            self._path.open("rb") as stream,
        ):
            for number, line in enumerate(stream, start=1):
                if whole_line(self._path, number, line):
                    try:
                        head = decoder.decode(line)
                    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                        raise damaged_line(self._path, number, error) from None
                    yield head, offset, len(line)
                offset += len(line)


class _CaseFiles:
    """Files of a run whose records are found by case id; a context manager, since they are held open.

    Whatever reads raises `StorageError` about a file or record that is damaged or cannot be read.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._files = ExitStack()
        self._score_decoder = msgspec.json.Decoder(StoredScore)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def _index(self, name: str, only: Set[str] | None = None) -> RecordIndex:
        return self._files.enter_context(RecordIndex(self._folder.path / name, only=only))

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
            return [self._score_decoder.decode(line) for line in index.lines(case_id)]
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StorageError(f"{self._folder.path / SCORES}: damaged record of case {case_id!r}: {error}") from None


class StoredCases(_CaseFiles):
    """The cases of one run, in their order.

    Every file is read once for places and once for its records: time is linear in the size of the run. A run without
    cases.jsonl (or with a half of its files) gives what there is.
    """

    def __init__(self, folder: RunFolder, most: int | None = None) -> None:
        """Find the records of the run.

        Args:
            folder: the run.
            most: cases to read at most, from the first one; None: all.
        """
        super().__init__(folder)
        self._cases, self._outputs = self._index(CASES), self._index(OUTPUTS)
        ids = self._cases.ids or self._outputs.ids
        self.n_cases = len(ids)
        """Cases of the run, those left out by `most` too."""
        self._ids = ids[:most]
        only = None if most is None or len(ids) <= most else frozenset(self._ids)
        self._scores, self._inputs, self._judgments = [
            self._index(name, only) for name in (SCORES, JUDGE_INPUTS, JUDGMENTS)
        ]

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
        """One record a case, streamed."""
        for case_id in self._ids:
            scores = self._scores_of(self._scores, case_id)
            judgments = tuple(that_count(self._all(self._judgments, case_id, Judgment)).values())
            yield CaseRecord(
                case_id=case_id,
                case=self._first(self._cases, case_id, Case),
                output=self._first(self._outputs, case_id, SystemOutput),
                scores={score.name: (score.value, score.reason) for score in scores}
                if self._scores.names
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
        self.ids: Sequence[str] = self._cases.ids or self._outputs.ids or self._scores.ids
        """Case ids in the order of the run."""
        self.has_cases = bool(self._cases.ids)
        self.has_scores = bool(self._scores.ids)

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
