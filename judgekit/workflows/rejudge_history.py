"""A rejudge as a point of its judges' histories: what was really asked, beside the verdicts of the parent."""

from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.analysis.drift_points import AskedAgain, checked_verdicts, history_point, pair_row, repeats_by_kind
from judgekit.core.components import Judge
from judgekit.core.errors import JudgekitError, StorageError
from judgekit.core.history_points import HistoryPoint, PointKind, answers_sha256
from judgekit.core.judgments import Judgment, JudgmentKey, last_judgments
from judgekit.core.runs import MANIFEST, METRICS, Manifest, Notice, RunSummary
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import FolderIndex
from judgekit.workflows.closing import INDEX_SECONDS
from judgekit.workflows.job import RunJob
from judgekit.workflows.judge_reliability import pass_score_of

Judgments = Mapping[JudgmentKey, Judgment]


def asked_anew(judge: str, before: Judgments, now: Judgments) -> list[str]:
    """Cases with a verdict of the parent that the judge was really asked about again, in the order of the parent.

    A judgment that came from the cache or was copied says nothing new. A panel was asked anew where every member was.
    Cases without a verdict of the parent are left out: a cache holds no failed replies, so a rejudge that finds the
    rest in the cache would consist of them.
    """
    kept = {key.case_id for key, item in now.items() if key.judge == judge and _is_kept(key, item)}
    return [
        key.case_id
        for key, item in before.items()
        if key.role == "primary"
        and key.judge == judge
        and item.verdict is not None
        and key in now
        and key.case_id not in kept
    ]


def _is_kept(key: JudgmentKey, judgment: Judgment) -> bool:
    return key.role in ("primary", "member") and (judgment.from_cache or judgment.copied_from is not None)


def add_to_history(job: RunJob, summary: RunSummary) -> list[Notice]:
    """Add a point for each judge that was asked anew, in the folder of the parent and in the results database.

    It is done before the manifest says `complete`, and a point that is there is not added twice, so that a rejudge
    that is killed on the way adds it when it goes on.

    Returns:
        What went wrong, which never costs the rejudge.
    """
    found = summary.rejudged
    if job.parent is None or found is None or not found["n_asked"]:
        return []
    try:
        checks = list(_checks(job, job.parent))
        notices = [
            notice for check in checks for notice in FolderIndex(INDEX_SECONDS).add_check(job.parent.path, check)
        ]
    except JudgekitError as error:
        notices = [("drift_not_recorded", f"this rejudge is no point of the drift history: {error}")]
    return [Notice(code=code, message=message) for code, message in dict.fromkeys(notices)]


def _checks(job: RunJob, parent: RunFolder) -> Iterator[HistoryPoint]:
    manifest = Manifest.model_validate(parent.read_json(MANIFEST))
    if manifest.status != "complete":
        raise StorageError(f"{parent.path}: the run is {manifest.status}, so not all of its verdicts are known")
    metrics = parent.read_json(METRICS)
    before, now = last_judgments(parent.judgments()), last_judgments(job.store.judgments())
    for judge in job.judge_components:
        cases = [] if judge.name in job.kept else asked_anew(judge.name, before, now)
        if job.reopened is not None:  # the others are a point already
            cases = [case_id for case_id in cases if (judge.name, case_id) in job.reopened.open]
        keys = [JudgmentKey("primary", judge.name, case_id) for case_id in cases]
        pairs = [(before[key], now[key]) for key in keys]
        for kind, group in _by_kind(pairs, is_same=judge.name in job.unchanged).items():
            yield _check(job, judge, (manifest, metrics), (kind, group))


def _by_kind(
    pairs: list[tuple[Judgment, Judgment]], *, is_same: bool
) -> dict[PointKind, list[tuple[Judgment, Judgment]]]:
    """Pairs apart by what they show: the parent may hold verdicts of today and older ones from the cache."""
    if not is_same:
        return {"spot_check": pairs} if pairs else {}
    before, builds = _builds(pairs)
    by_case = {old.case_id: (old, new) for old, new in pairs}
    times = [(old.case_id, old.created_at, new.created_at) for old, new in pairs]
    found = repeats_by_kind(times, before, builds)
    return {kind: [by_case[case_id] for case_id in case_ids] for kind, case_ids in found.items()}


def _builds(pairs: list[tuple[Judgment, Judgment]]) -> tuple[set[str], set[str]]:
    """Builds that gave the verdicts of the parent, and those that were asked."""
    return (
        {old.build for old, _ in pairs if old.build is not None},
        {new.build for _, new in pairs if new.build is not None},
    )


def _check(
    job: RunJob,
    judge: Judge,
    parent: tuple[Manifest, Mapping[str, Any]],
    found: tuple[PointKind, list[tuple[Judgment, Judgment]]],
) -> HistoryPoint:
    kind, pairs = found
    inputs = (item for item in job.store.judge_inputs() if item.judge == judge.name)
    try:
        verdicts = checked_verdicts(judge.name, *parent, answers_sha256(inputs))
    except (AttributeError, KeyError, TypeError) as error:
        raise StorageError(f"{METRICS} of {parent[0].run_id}: damaged: {error!r}") from None
    asked_at = max(new.created_at for _, new in pairs)
    before, builds = _builds(pairs)
    first = pairs[0][1]
    served = {item.served_model for pair in pairs for item in pair if item.served_model is not None}
    asked = AskedAgain(
        kind=kind,
        comparator=f"{first.model} with {first.prompt_version}",
        created_at=asked_at,
        served_models=sorted(served),
        fingerprints=sorted({new.fingerprint for _, new in pairs if new.fingerprint is not None}),
        upstreams=sorted({new.upstream for _, new in pairs if new.upstream is not None}),
        builds=sorted(builds),
        verdict_builds=sorted(before),
    )
    rows = [pair_row(old.verdict, new.verdict, pass_score_of(judge)) for old, new in pairs]
    check = history_point(verdicts, asked, rows)
    # Replies were read by the parser of today; another one than that of the stored verdicts is another instrument.
    return check.model_copy(update={"parser_version": job.manifest.versions.get("parser", check.parser_version)})
