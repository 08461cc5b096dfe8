"""A finished rejudge beside its parent: how the verdicts differ, and its points in the histories of the judges."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import tee
from typing import Any

from judgekit.analysis.drift_points import (
    AskedAgain,
    SampleCounts,
    checked_verdicts,
    history_point,
    is_another_build,
    is_at_once,
    pair_row,
)
from judgekit.analysis.verdict_pairs import Pair, VerdictChanges, verdict_changes
from judgekit.core.components import Judge
from judgekit.core.errors import JudgekitError, StorageError
from judgekit.core.history_points import HistoryPoint, PointKind, answers_sha256
from judgekit.core.judgments import Judgment, JudgmentKey, that_count
from judgekit.core.runs import MANIFEST, METRICS, Manifest, Notice, Notices, RunSummary
from judgekit.storage.run_folder import RunFolder, of_judge
from judgekit.storage.run_index import add_point
from judgekit.storage.stored_judgments import StoredJudgments
from judgekit.workflows.closing import INDEX_SECONDS
from judgekit.workflows.job import RunJob
from judgekit.workflows.judge_reliability import opinion

Judgments = Mapping[JudgmentKey, Judgment]


def _side_by_side(before: StoredJudgments, now: StoredJudgments) -> Iterator[tuple[Judgments, Judgments]]:
    """For each case that the parent judged, what it says and what the rejudge says."""
    case_ids, same_ids = tee(before.ids())
    for old, new in zip(before.by_case(case_ids), now.by_case(same_ids), strict=True):
        yield that_count(old), that_count(new)


def _asked_again(before: Judgments, now: Judgments) -> Iterator[JudgmentKey]:
    """Of one case the verdicts of the parent whose judge was really asked again.

    A judgment that came from the cache or was copied says nothing new. A panel was asked again if every member was.
    Cases without a verdict of the parent are left out: a cache holds no failed replies, so a rejudge that finds the
    rest in the cache would consist of them.
    """
    not_asked = {
        key.judge
        for key, item in now.items()
        if key.role in ("primary", "member") and (item.from_cache or item.copied_from is not None)
    }
    for key, item in before.items():
        if key.role == "primary" and item.verdict is not None and key in now and key.judge not in not_asked:
            yield key


@dataclass(frozen=True)
class BesideParent:
    """What a rejudge says of the run that it judged again."""

    rejudged: dict[str, Any]
    """The part `rejudged` of metrics.json."""
    warnings: Notices


def beside_parent(job: RunJob, parent: RunFolder, judgments: StoredJudgments) -> BesideParent:
    """How the verdicts of a rejudge differ from those of its parent, and which models are of another build.

    Args:
        job: the rejudge.
        parent: the run whose inputs were judged again.
        judgments: of the rejudge.

    Raises:
        StorageError: a judgment of either run is damaged.
    """
    changes = {judge.name: VerdictChanges(judge.kind) for judge in job.judge_components if judge.name not in job.kept}
    n_asked = dict.fromkeys(changes, 0)
    builds: dict[str, tuple[set[str], set[str]]] = {}
    with StoredJudgments(parent) as stored:
        for before, now in _side_by_side(stored, judgments):
            for key in _asked_again(before, now):
                n_asked[key.judge] += key.judge in changes
            for key, old in before.items():
                if (new := now.get(key)) is None:
                    continue
                if key.role == "primary" and key.judge in changes:
                    changes[key.judge].add(Pair(key.case_id, opinion(old), opinion(new)))
                _note_builds(builds, old, new)
    found = verdict_changes(changes, job.config.resampling_seed)
    for name, report in found["by_judge"].items():
        report["n_asked"] = n_asked[name]
    record = {"parent": job.manifest.parent, "n_asked": sum(n_asked.values()), **found}
    return BesideParent(record, [*_other_builds(job.manifest.parent, builds)])


def _note_builds(builds: dict[str, tuple[set[str], set[str]]], old: Judgment, new: Judgment) -> None:
    """Note, by model, builds that gave verdicts of the parent and of the rejudge, where they differ."""
    if new.copied_from is not None or (old.model_id, old.model) != (new.model_id, new.model):
        return
    if old.build is not None and new.build is not None and old.build != new.build:
        stored, loaded = builds.setdefault(new.model_id, (set(), set()))
        stored.add(old.build)
        loaded.add(new.build)


def _other_builds(parent: str | None, builds: Mapping[str, tuple[set[str], set[str]]]) -> Iterator[tuple[str, str]]:
    """A warning for each model whose server has another build loaded than gave the verdicts of the parent."""
    for name, (stored, loaded) in builds.items():
        yield (
            "rejudged_by_another_build",
            f"model {name}: the server has build {', '.join(sorted(loaded))} loaded, the verdicts of "
            f"{parent} are of build {', '.join(sorted(stored))}, so another model was asked",
        )


def add_to_history(job: RunJob, summary: RunSummary) -> list[Notice]:
    """Add a point for each judge that was asked again, in the folder of the parent and in the results database.

    It is done before the manifest says `complete`, and a point that is there is not added twice, so that a rejudge
    that is killed on the way adds it when it is resumed.

    Returns:
        What went wrong, which never costs the rejudge.
    """
    found = summary.rejudged
    if job.parent is None or found is None or not found["n_asked"]:
        return []
    try:
        points = list(_points(job, job.parent))
        notices = [notice for point in points for notice in add_point(job.parent.path, point, INDEX_SECONDS)]
    except JudgekitError as error:
        notices = [("drift_not_recorded", f"this rejudge is not a point of the drift history: {error}")]
    return [Notice(code=code, message=message) for code, message in dict.fromkeys(notices)]


def _points(job: RunJob, parent: RunFolder) -> Iterator[HistoryPoint]:
    manifest = Manifest.model_validate(parent.read_json(MANIFEST))
    if manifest.status != "complete":
        raise StorageError(f"{parent.path}: the run is {manifest.status}, so not all of its verdicts are known")
    metrics = parent.read_json(METRICS)
    samples = _samples(job, parent)
    for judge in job.judge_components:
        for kind, sample in _by_kind(samples[judge.name], is_same=judge.name in job.unchanged).items():
            answers = answers_sha256(job.folder.judge_inputs(of_judge(judge.name)))
            try:
                verdicts = checked_verdicts(judge.name, manifest, metrics, answers)
            except (AttributeError, KeyError, TypeError) as error:
                raise StorageError(f"{METRICS} of {manifest.run_id}: damaged: {error!r}") from None
            point = history_point(verdicts, sample.asked(kind), sample.counts)
            # Replies were read by the parser of today; another one than that of the verdicts is another instrument.
            yield point.model_copy(update={"parser_version": job.manifest.versions.get("parser", point.parser_version)})


def _samples(job: RunJob, parent: RunFolder) -> dict[str, tuple["_Sample", "_Sample"]]:
    """By judge, the verdicts that it was asked about within a day, and those that it was asked about later."""
    judges: dict[str, Judge] = {judge.name: judge for judge in job.judge_components}
    found = {name: (_Sample(), _Sample()) for name in judges}
    with StoredJudgments(parent) as stored, StoredJudgments(job.folder) as judgments:
        for before, now in _side_by_side(stored, judgments):
            for key in _asked_again(before, now):
                if key.judge not in judges or key.judge in job.kept:
                    continue
                if job.reopened is not None and (key.judge, key.case_id) not in job.reopened.open:
                    continue  # it is in a point already
                old, new = before[key], now[key]
                at_once, later = found[key.judge]
                sample = at_once if is_at_once(old.created_at, new.created_at) else later
                sample.add(old, new, judges[key.judge])
    return found


@dataclass
class _Sample:
    """Verdicts of the parent that a judge was asked about again, counted as they come."""

    counts: SampleCounts = field(default_factory=SampleCounts)
    comparator: str = ""
    last_at: str = ""
    said: dict[str, set[str]] = field(default_factory=dict)
    """Served models, fingerprints, upstreams and builds, under their names in `AskedAgain`."""

    def add(self, old: Judgment, new: Judgment, judge: Judge) -> None:
        """Count one verdict."""
        self.counts.add(pair_row(old.verdict, new.verdict, judge.kind))
        self.comparator = self.comparator or f"{new.model} with {new.prompt_version}"
        self.last_at = max(self.last_at, new.created_at)
        for name, value in (
            ("served_models", old.served_model),
            ("served_models", new.served_model),
            ("fingerprints", new.fingerprint),
            ("upstreams", new.upstream),
            ("builds", new.build),
            ("verdict_builds", old.build),
        ):
            if value is not None:
                self.said.setdefault(name, set()).add(value)

    def update(self, other: "_Sample") -> None:
        """Count what another sample holds as well."""
        self.counts.update(other.counts)
        self.comparator = self.comparator or other.comparator
        self.last_at = max(self.last_at, other.last_at)
        for name, values in other.said.items():
            self.said.setdefault(name, set()).update(values)

    def asked(self, kind: PointKind) -> AskedAgain:
        """Who was asked about them, and when."""
        said = {name: sorted(values) for name, values in self.said.items()}
        return AskedAgain(kind=kind, comparator=self.comparator, created_at=self.last_at, **said)


def _by_kind(samples: tuple[_Sample, _Sample], *, is_same: bool) -> dict[PointKind, _Sample]:
    """Samples by what they show: the parent may hold verdicts of today and older ones from the cache."""
    at_once, later = samples
    whole = _Sample()
    for sample in samples:
        whole.update(sample)
    if not is_same:
        found: dict[PointKind, _Sample] = {"spot_check": whole}
    elif is_another_build(whole.said.get("verdict_builds", ()), whole.said.get("builds", ())):
        found = {"rejudge": whole}
    else:
        found = {"noise_floor": at_once, "rejudge": later}
    return {kind: sample for kind, sample in found.items() if sample.counts.n_asked}
