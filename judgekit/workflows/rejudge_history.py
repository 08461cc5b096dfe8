"""A finished rejudge beside its parent: how the verdicts differ, and its points in the histories of the judges."""

from collections.abc import Iterator, Mapping

from judgekit.analysis.drift_points import AskedAgain, checked_verdicts, history_point, pair_row, repeats_by_kind
from judgekit.analysis.verdict_pairs import Pair, verdict_changes
from judgekit.core.errors import JudgekitError, StorageError
from judgekit.core.history_points import HistoryPoint, PointKind, answers_sha256
from judgekit.core.judgments import Judgment, JudgmentKey, last_judgments
from judgekit.core.runs import MANIFEST, METRICS, Manifest, Notice, RunSummary
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import add_point
from judgekit.workflows.closing import INDEX_SECONDS
from judgekit.workflows.job import RunJob
from judgekit.workflows.judge_reliability import opinion

Judgments = Mapping[JudgmentKey, Judgment]

Pairs = list[tuple[Judgment, Judgment]]
"""Of each case the judgment of the parent, and that of the rejudge."""


def asked_again(judge: str, before: Judgments, now: Judgments) -> list[str]:
    """Cases with a verdict of the parent that the judge was really asked about again, in the order of the parent.

    A judgment that came from the cache or was copied says nothing new. A panel was asked again if every member was.
    Cases without a verdict of the parent are left out: a cache holds no failed replies, so a rejudge that finds the
    rest in the cache would consist of them.
    """
    kept = {
        key.case_id
        for key, item in now.items()
        if key.judge == judge
        and key.role in ("primary", "member")
        and (item.from_cache or item.copied_from is not None)
    }
    return [
        key.case_id
        for key, item in before.items()
        if key.role == "primary"
        and key.judge == judge
        and item.verdict is not None
        and key in now
        and key.case_id not in kept
    ]


def rejudged(job: RunJob, before: Judgments, judgments: Judgments) -> dict[str, object] | None:
    """How the verdicts differ from those of the parent; None if the run is not a rejudge."""
    if job.parent is None:
        return None
    judges = [judge for judge in job.judge_components if judge.name not in job.kept]
    both = [key for key in before if key.role == "primary" and key in judgments]
    pairs = {
        judge.name: [
            Pair(key.case_id, opinion(before[key]), opinion(judgments[key])) for key in both if key.judge == judge.name
        ]
        for judge in judges
    }
    found = verdict_changes(pairs, {judge.name: judge.kind for judge in judges}, job.config.resampling_seed)
    asked = {judge.name: len(asked_again(judge.name, before, judgments)) for judge in judges}
    for name, report in found["by_judge"].items():
        report["n_asked"] = asked[name]
    return {"parent": job.manifest.parent, "n_asked": sum(asked.values()), **found}


def other_builds(parent: str | None, before: Judgments, now: Judgments) -> list[tuple[str, str]]:
    """A warning for each model whose server has another build loaded than gave the verdicts of the parent."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for key, old in before.items():
        new = now.get(key)
        if new is None or new.copied_from is not None or (old.model_id, old.model) != (new.model_id, new.model):
            continue
        if old.build is not None and new.build is not None and old.build != new.build:
            stored, loaded = found.setdefault(new.model_id, (set(), set()))
            stored.add(old.build)
            loaded.add(new.build)
    return [
        (
            "rejudged_by_another_build",
            f"model {name}: the server has build {', '.join(sorted(loaded))} loaded, the verdicts of "
            f"{parent} are of build {', '.join(sorted(stored))}, so another model was asked",
        )
        for name, (stored, loaded) in found.items()
    ]


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
    before, now = last_judgments(parent.judgments()), last_judgments(job.folder.judgments())
    for judge in job.judge_components:
        cases = [] if judge.name in job.kept else asked_again(judge.name, before, now)
        if job.reopened is not None:  # the others are a point already
            cases = [case_id for case_id in cases if (judge.name, case_id) in job.reopened.open]
        keys = [JudgmentKey("primary", judge.name, case_id) for case_id in cases]
        pairs = [(before[key], now[key]) for key in keys]
        for kind, group in _by_kind(pairs, is_same=judge.name in job.unchanged).items():
            inputs = (item for item in job.folder.judge_inputs() if item.judge == judge.name)
            try:
                verdicts = checked_verdicts(judge.name, manifest, metrics, answers_sha256(inputs))
            except (AttributeError, KeyError, TypeError) as error:
                raise StorageError(f"{METRICS} of {manifest.run_id}: damaged: {error!r}") from None
            rows = [pair_row(old.verdict, new.verdict, judge.kind) for old, new in group]
            point = history_point(verdicts, _asked(kind, group), rows)
            # Replies were read by the parser of today; another one than that of the verdicts is another instrument.
            yield point.model_copy(update={"parser_version": job.manifest.versions.get("parser", point.parser_version)})


def _by_kind(pairs: Pairs, *, is_same: bool) -> dict[PointKind, Pairs]:
    """Pairs apart by what they show: the parent may hold verdicts of today and older ones from the cache."""
    if not is_same:
        return {"spot_check": pairs} if pairs else {}
    by_case = {old.case_id: (old, new) for old, new in pairs}
    times = [(old.case_id, old.created_at, new.created_at) for old, new in pairs]
    found = repeats_by_kind(times, *_builds(pairs))
    return {kind: [by_case[case_id] for case_id in case_ids] for kind, case_ids in found.items()}


def _builds(pairs: Pairs) -> tuple[set[str], set[str]]:
    """Builds that gave the verdicts of the parent, and those that were asked."""
    return (
        {old.build for old, _ in pairs if old.build is not None},
        {new.build for _, new in pairs if new.build is not None},
    )


def _asked(kind: PointKind, pairs: Pairs) -> AskedAgain:
    before, builds = _builds(pairs)
    first = pairs[0][1]
    return AskedAgain(
        kind=kind,
        comparator=f"{first.model} with {first.prompt_version}",
        created_at=max(new.created_at for _, new in pairs),
        served_models=sorted({item.served_model for pair in pairs for item in pair if item.served_model is not None}),
        fingerprints=sorted({new.fingerprint for _, new in pairs if new.fingerprint is not None}),
        upstreams=sorted({new.upstream for _, new in pairs if new.upstream is not None}),
        builds=sorted(builds),
        verdict_builds=sorted(before),
    )
