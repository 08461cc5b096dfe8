"""The histories of the judges of a run: its spot checks, and the points that were added to its folder."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from judgekit.analysis.drift_points import (
    AskedAgain,
    SampleCounts,
    checked_verdicts,
    history_point,
    pair_row,
    repeats_by_kind,
)
from judgekit.core.errors import StorageError, first_problem
from judgekit.core.history_points import HistoryPoint, PointKind, answers_sha256
from judgekit.core.judgments import Judgment, Verdict
from judgekit.core.runs import CONFIG, DRIFT_CHECKS, METRICS, Manifest
from judgekit.core.spot_checks import CHECKS, SpotCheckRecord
from judgekit.core.verdict_kinds import Kind, Scale, YesNo, stored_kind
from judgekit.storage.run_files import appending
from judgekit.storage.run_folder import RunFolder, of_judge

_SHORT = {"reasoning": "", "supported_claims": None, "unsupported_claims": None, "quotes": None}
"""Parts of a verdict that say nothing here."""


@dataclass
class _Opinions:
    """What one judge, or one spot check of it, said."""

    sample: Collection[str] = ()
    """Cases of the spot checks; the verdicts about the others are not kept."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """By case id."""
    has_answers: bool = False
    """A verdict is yes or no."""
    served_models: set[str] = field(default_factory=set)
    fingerprints: set[str] = field(default_factory=set)
    upstreams: set[str] = field(default_factory=set)
    builds: set[str] = field(default_factory=set)
    times: dict[str, str] = field(default_factory=dict)
    """By case id, when its verdict was given."""
    last_at: str = ""

    def add(self, judgment: Judgment) -> None:
        self.has_answers = self.has_answers or (judgment.verdict is not None and judgment.verdict.answer is not None)
        if judgment.verdict is not None and judgment.case_id in self.sample:
            self.verdicts[judgment.case_id] = judgment.verdict.model_copy(update=_SHORT)
            self.times[judgment.case_id] = judgment.created_at
        for known, value in (
            (self.served_models, judgment.served_model),
            (self.fingerprints, judgment.fingerprint),
            (self.upstreams, judgment.upstream),
            (self.builds, judgment.build),
        ):
            if value is not None:
                known.add(value)
        self.last_at = max(self.last_at, judgment.created_at)


def read_points(folder: RunFolder) -> list[HistoryPoint]:
    """The points of the histories of a run's judges: its spot checks, and those that were added to its folder.

    Raises:
        ConfigError, StorageError: a file is missing or damaged.
    """
    found = {point.check_id: point for point in _spot_check_points(folder)}
    for number, line in folder.lines(DRIFT_CHECKS):
        try:
            point = HistoryPoint.model_validate_json(line)
        except ValidationError as error:
            where = f"{folder.path / DRIFT_CHECKS}:{number}"
            raise StorageError(f"{where}: damaged line: {first_problem(error)}; delete the line") from None
        found[point.check_id] = point
    return sorted(found.values(), key=lambda point: (point.created_at, point.check_id))


def append_point(folder: RunFolder, point: HistoryPoint) -> None:
    """Add a point to the folder of the run whose verdicts it is about; the same one is not written twice.

    Several processes may add points at once, also while another one writes the run.

    Raises:
        ConfigError, StorageError: a file is damaged or cannot be written.
    """
    with appending(folder.path / DRIFT_CHECKS) as append:
        if point.check_id not in {old.check_id for old in read_points(folder)}:
            append(point.model_dump_json().encode())


def _spot_check_points(folder: RunFolder) -> Iterator[HistoryPoint]:
    """The spot checks of a finished run, and a point for each judge whose verdicts nobody was asked about.

    Raises:
        ConfigError, StorageError: a file is missing or damaged.
    """
    manifest = folder.manifest()
    # What a shard says counts once, in the run that it is merged into.
    if manifest.status != "complete" or manifest.shard is not None or not (folder.path / METRICS).exists():
        return
    metrics = folder.read_json(METRICS)
    is_listed = (folder.path / CHECKS).exists()
    name = CHECKS if is_listed else METRICS
    try:
        found = list(_listed(folder, manifest, metrics) if is_listed else _told(folder, manifest, metrics))
        yield from found
        yield from _unchecked(folder, manifest, metrics, {point.judge for point in found})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{folder.path / name}: damaged: {error!r}") from None


def _listed(folder: RunFolder, manifest: Manifest, metrics: Mapping[str, Any]) -> Iterator[HistoryPoint]:
    """From checks.json and the judgments of each spot check."""
    records = [record for record in folder.spot_checks() if record.complete]
    if not records:
        return
    opinions = _opinions(folder, records)
    resolved = folder.read_json(CONFIG).get("resolved", {})
    for record in records:
        judge = record.judge
        first = opinions.get((judge, None), _Opinions())
        second = opinions.get((judge, record.check), _Opinions())
        if not second.last_at:
            continue
        verdict_kind = _kind_of(judge, resolved, first)
        for kind, cases in _by_kind(record, first, second).items():
            # Those of the stored verdicts would be in every spot check of this run, and hide that the server changed.
            fingerprints = second.fingerprints if record.kind == "repeat" else first.fingerprints | second.fingerprints
            asked = AskedAgain(
                kind=kind,
                comparator=f"{record.model} with {record.prompt_version}",
                created_at=second.last_at,
                served_models=[*first.served_models, *second.served_models],
                fingerprints=[*fingerprints],
                upstreams=[*second.upstreams],
                builds=[*second.builds],
                verdict_builds=[*first.builds],
            )
            rows = (pair_row(first.verdicts.get(case), second.verdicts.get(case), verdict_kind) for case in cases)
            yield history_point(_verdicts(folder, manifest, metrics, judge), asked, SampleCounts(rows))


def _kind_of(judge: str, resolved: Mapping[str, Any], opinions: _Opinions) -> Kind:
    """What verdicts of a judge are; runs before judges could be data do not say it, and had scores or yes and no."""
    record = resolved.get("verdict_kinds", {}).get(judge)
    if record is not None:
        return stored_kind(record)
    if opinions.has_answers:
        return YesNo()
    return Scale(pass_score=resolved.get("judges", {}).get(judge, {}).get("pass_score"))


def _by_kind(record: SpotCheckRecord, first: _Opinions, second: _Opinions) -> dict[PointKind, list[str]]:
    """The sample of a spot check, apart by what it shows: a repeat may hold verdicts of today and older ones."""
    cases = record.case_ids
    if record.kind != "repeat":
        return {"spot_check": [*cases]}
    times = [(case, first.times.get(case, second.last_at), second.times.get(case, second.last_at)) for case in cases]
    return repeats_by_kind(times, first.builds, second.builds)


def _told(folder: RunFolder, manifest: Manifest, metrics: Mapping[str, Any]) -> Iterator[HistoryPoint]:
    """From `judge_reliability` of metrics.json."""
    for judge, report in (metrics.get("judge_reliability") or {}).get("by_judge", {}).items():
        if "sample" not in report:
            continue
        about, against = metrics["judges"][judge], report["against"]
        second = manifest.models.get(against["model_id"], {})
        asked = AskedAgain(
            kind="spot_check",
            comparator=f"{against['model']} with {against['prompt_version']}",
            created_at=manifest.finished_at or manifest.created_at,
            served_models=[*about["served_models"], *second.get("served_models", {})],
            fingerprints=[*about["fingerprints"], *second.get("fingerprints", {})],
        )
        yield history_point(_verdicts(folder, manifest, metrics, judge), asked, SampleCounts(report["sample"]))


def _unchecked(
    folder: RunFolder, manifest: Manifest, metrics: Mapping[str, Any], checked: Collection[str]
) -> Iterator[HistoryPoint]:
    """Judges without a spot check, so that their history shows that nothing was asked; embedded ones do not change."""
    if manifest.kind != "run":
        return
    for judge, about in metrics["judges"].items():
        if judge not in checked and about.get("is_llm"):
            asked = AskedAgain(
                kind="run",
                comparator=f"{about['model']} with {about['prompt_version']}",
                created_at=manifest.finished_at or manifest.created_at,
                served_models=[*about["served_models"]],
                fingerprints=[*about["fingerprints"]],
            )
            yield history_point(_verdicts(folder, manifest, metrics, judge), asked, SampleCounts())


def _verdicts(folder: RunFolder, manifest: Manifest, metrics: Mapping[str, Any], judge: str) -> HistoryPoint:
    answers = answers_sha256(folder.judge_inputs(of_judge(judge)))
    try:
        return checked_verdicts(judge, manifest, metrics, answers)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{folder.path / METRICS}: damaged: {error!r}") from None


def _opinions(folder: RunFolder, records: Iterable[SpotCheckRecord]) -> dict[tuple[str, str | None], _Opinions]:
    """By judge and spot check (None: the run's own verdicts), what was said; the last verdict of a case counts."""
    samples: dict[str, set[str]] = {}
    for record in records:
        samples.setdefault(record.judge, set()).update(record.case_ids)
    found: dict[tuple[str, str | None], _Opinions] = {}
    for judgment in folder.judgments():
        key: tuple[str, str | None] | None = None
        if judgment.role == "primary":
            key = judgment.judge, None
        elif judgment.role == "spot_check" and judgment.copied_from is None:
            key = judgment.judge, judgment.check or "run"
        if key is not None:
            found.setdefault(key, _Opinions(samples.get(judgment.judge, ()))).add(judgment)
    return found
