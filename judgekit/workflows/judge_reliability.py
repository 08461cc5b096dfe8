"""Spot checks of a run, from the sample that is drawn to `judge_reliability`: what `run` and the commands share."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgekit.analysis.disagreement_rates import (
    DEFAULT_THRESHOLD,
    KEPT_PARTS,
    PARTS_OF_VERDICTS,
    Draw,
    judge_reliability,
    kept_parts,
    unstable_warning,
)
from judgekit.analysis.drift_points import repeats_by_kind
from judgekit.analysis.judge_calls import CallCounts, JudgeCalls
from judgekit.analysis.slices import Clusters
from judgekit.analysis.spot_check_findings import repeat_report, spot_check_report
from judgekit.analysis.verdict_pairs import Pair, Sampler, compare_pair, draw_order, draw_sample
from judgekit.core.cases import Case
from judgekit.core.components import Judge
from judgekit.core.history_points import PointKind
from judgekit.core.judgments import JudgeFailure, Judgment, JudgmentKey, Verdict, that_count
from judgekit.core.runs import Notices, RunSummary
from judgekit.core.spot_checks import CHECKS, SpotCheckKind, SpotCheckRecord
from judgekit.engine.passes import Wanted
from judgekit.engine.requests import JudgePlan
from judgekit.stats.sequential import decide
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.closing import closed, write_summary

Judgments = Mapping[JudgmentKey, Judgment]

STEP = 10
"""Cases that an adaptive spot check draws at a time."""

MOST_ROWS = 200
"""Cases at which an adaptive spot check ends, decided or not."""

OF_THE_JUDGE = ("n_verdicts", "n_inconsistent", "inconsistent_rate")
"""Figures of the judge, which the reports of its other spot checks do not repeat."""


@dataclass(frozen=True)
class DrawnSpotCheck:
    """The second opinion on one judge, with its sample."""

    record: SpotCheckRecord
    """With the sample that it starts with."""
    second: JudgePlan
    order: tuple[str, ...]
    """Cases in random order, for a sample that may grow; it begins with the sample."""


def drawn(ids: Sequence[str], n: int, rng: Sampler, *, adaptive: bool) -> tuple[str, ...]:
    """The cases of a spot check: the sample, or for one that may grow all that it may grow to, the sample first.

    Args:
        ids: what to draw from, in the order of the cases.
        n: cases that it begins with.
        rng: a seeded source of randomness.
        adaptive: the sample may grow.
    """
    return tuple(draw_order(ids, MOST_ROWS, rng) if adaptive else draw_sample(ids, n, rng))


def spot_check_kind(*, other_model: bool, other_prompt: bool) -> SpotCheckKind:
    """The kind of a spot check by how the second opinion differs from the judge."""
    if other_model and other_prompt:
        return "model and prompt"
    return "model" if other_model else "prompt" if other_prompt else "repeat"


async def ask_samples(
    folder: RunFolder, spot_checks: list[DrawnSpotCheck], ask: Callable[[Sequence[Wanted]], Awaitable[None]]
) -> None:
    """Ask about all samples side by side, then draw more for those that grow until they are decided.

    Args:
        folder: the run.
        spot_checks: the spot checks; those that grow are replaced by what they have grown to before more is asked.
        ask: asks, and has every judgment on disk when it returns.
    """
    await ask([(item.second, item.record.case_ids) for item in spot_checks])
    for number, growing in enumerate(spot_checks):
        while may_grow(folder, growing):
            n_asked = len(growing.record.case_ids)
            case_ids = growing.order[: n_asked + STEP]
            growing = replace(growing, record=growing.record.model_copy(update={"case_ids": case_ids}))  # noqa: PLW2901
            spot_checks[number] = growing
            await ask([(growing.second, case_ids[n_asked:])])


def may_grow(folder: RunFolder, spot_check: DrawnSpotCheck) -> bool:
    """Whether more is to be drawn: there is more, and the pairs so far do not tell on which side the rate is."""
    record, judge = spot_check.record, spot_check.second.judge
    if not record.adaptive or len(record.case_ids) >= len(spot_check.order):
        return False
    pairs = pairs_of(record, that_count(folder.judgments(wanted=about([(record.judge, record.case_ids)]))))
    scored = [item for item in (compare_pair(pair, judge.kind) for pair in pairs) if item is not None]
    return decide(sum(item.disagrees for item in scored), len(scored), record.threshold) is None


def write_spot_checks(folder: RunFolder, records: Sequence[SpotCheckRecord]) -> None:
    """Replace checks.json; a run without a spot check has none."""
    if records:
        folder.write_json(CHECKS, {"checks": [record.model_dump(mode="json") for record in records]})


def about(samples: Iterable[tuple[str, Iterable[str]]]) -> Callable[[str, str], bool]:
    """Tells by judge and case id whether it is in one of the samples, which are judges with cases."""
    drawn = {(judge, case_id) for judge, case_ids in samples for case_id in case_ids}
    return lambda judge, case_id: (judge, case_id) in drawn


def add_parts(folder: RunFolder, summary: RunSummary, parts: Mapping[str, Mapping[str, Any]], *, report: bool) -> None:
    """Write further parts of `judge_reliability` into metrics.json, summary.md and report.html of a run.

    Args:
        folder: the run, held for writing.
        summary: its figures so far.
        parts: by judge and name.
        report: whether it has a report.html.

    Raises:
        StorageError: they cannot be written.
    """
    reliability = dict(summary.judge_reliability or {})
    if not reliability:  # no spot check was made
        reliability = judge_reliability({})
        reliability.pop("warnings")
    by_judge = {name: dict(found) for name, found in (reliability.get("by_judge") or {}).items()}
    for name, found in parts.items():
        by_judge.setdefault(name, {}).update(found)
    summary = summary.model_copy(update={"judge_reliability": {**reliability, "by_judge": by_judge}})
    write_summary(folder, summary)
    closed(folder, summary, report=report, indexed=False)


def reliability_of(
    judges: Sequence[Judge],
    spot_checks: Sequence[SpotCheckRecord],
    judgments: Judgments,
    calls: JudgeCalls,
    earlier: Mapping[str, Any] | None = None,
    clusters: Mapping[str, int] | None = None,
) -> tuple[dict[str, Any] | None, Notices]:
    """The `judge_reliability` of a run, and the warnings that it raises.

    Of several spot checks with the same comparator the last one counts. A judge's figures are those of the last one
    that asked something else than the judge itself; asking it again is its noise floor, and stands for the spot check
    only if there is no other.

    Args:
        judges: the judges of the run.
        spot_checks: its spot checks, oldest first.
        judgments: the judgment that counts for each question.
        calls: the same, counted.
        earlier: `judge_reliability` so far, whose parts that come from elsewhere are kept.
        clusters: from `clusters_of`.

    Returns:
        None if no judge was checked and nothing was there before.
    """
    by_judge: dict[str, dict[str, Any]] = {}
    for judge in judges:
        own = list({record.comparator: record for record in spot_checks if record.judge == judge.name}.values())
        own.sort(key=spot_checks.index)
        if own:
            by_judge[judge.name] = _judge_report(judge, own, judgments, calls, clusters)
    if not by_judge and earlier is None:
        return None, []
    found = judge_reliability(by_judge, spot_checks[-1].threshold if spot_checks else DEFAULT_THRESHOLD, clusters)
    warnings: Notices = found.pop("warnings")
    for name, report in by_judge.items():
        for other in report["other_checks"]:
            if other["fired"]:
                against = other["against"]
                second = f"{against['model_id']}, prompt {against['prompt_version']}"
                second = "the judge itself, asked again" if against["kind"] == "repeat" else second
                warnings.append(("judge_unstable", unstable_warning(name, other, second)))
    for judge in judges:
        kept = kept_parts(earlier, judge.name)
        if kept:
            found["by_judge"].setdefault(judge.name, {}).update(kept)
    others = {name: value for name, value in (earlier or {}).items() if name not in found}
    return {**others, **found}, warnings


def parts_that_stand(
    earlier: Mapping[str, Any] | None, judges: Sequence[Judge]
) -> tuple[dict[str, Any] | None, Notices]:
    """What still holds of `judge_reliability` once the run has more verdicts, and a warning where something does not.

    Args:
        earlier: `judge_reliability` before.
        judges: the judges of the run.
    """
    stay = [name for name in KEPT_PARTS if name not in PARTS_OF_VERDICTS]
    parts = {judge.name: kept for judge in judges if (kept := kept_parts(earlier, judge.name, stay))}
    warnings = []
    for judge in judges:
        gone = [name for name, part in kept_parts(earlier, judge.name, PARTS_OF_VERDICTS).items() if part is not None]
        if gone:
            commands = dict.fromkeys("bridge" if name == "bridge" else "calibrate" for name in gone)
            again = " and ".join(f"`judgekit {command}`" for command in commands)
            text = f"judge {judge.name}: {', '.join(gone)} rested on fewer verdicts and are left out; {again} make them"
            warnings.append(("reliability_to_redo", text))
    return {"by_judge": parts} if parts else None, warnings


def clusters_of(
    cluster_by: str | None, cases: Iterable[Case], spot_checks: Iterable[SpotCheckRecord]
) -> dict[str, int] | None:
    """Number of the cluster of each case that was drawn, by its id; None if cases are independent.

    Args:
        cluster_by: of the config.
        cases: the cases of the run.
        spot_checks: its spot checks.
    """
    if cluster_by is None:
        return None
    wanted = {case_id for record in spot_checks for case_id in record.case_ids}
    numbers = Clusters(cluster_by)
    return {case.id: numbers.number(case) for case in cases if case.id in wanted}


def _judge_report(
    judge: Judge,
    spot_checks: Sequence[SpotCheckRecord],
    judgments: Judgments,
    calls: JudgeCalls,
    clusters: Mapping[str, int] | None,
) -> dict[str, Any]:
    second_opinions = [record for record in spot_checks if record.kind != "repeat"]
    repeats = [record for record in spot_checks if record.kind == "repeat"]
    chosen = (second_opinions or repeats)[-1]
    primary, asked = calls.counts("primary", judge.name), calls.counts("spot_check", judge.name, chosen.check)
    report = _report_of(judge, chosen, judgments, primary, clusters)
    report["identity"] = {"judge": primary.instrument(), "comparator": asked.instrument()}
    report["noise_floor"] = _repeated(judge, repeats, judgments, clusters, "noise_floor")
    report["asked_later"] = _repeated(judge, repeats, judgments, clusters, "rejudge")
    report["other_checks"] = [
        {
            name: value
            for name, value in _report_of(judge, record, judgments, primary, clusters).items()
            if name not in OF_THE_JUDGE
        }
        for record in spot_checks
        if record is not chosen
    ]
    return report


def _repeated(
    judge: Judge,
    repeats: Sequence[SpotCheckRecord],
    judgments: Judgments,
    clusters: Mapping[str, int] | None,
    kind: PointKind,
) -> dict[str, Any] | None:
    """The last repeat within a day of the verdicts (`noise_floor`), or later than that (`rejudge`); None without."""
    for record in reversed(repeats):
        by_case = {case_id: _pair(record, case_id, judgments) for case_id in record.case_ids}
        times = [
            (case_id, first.created_at, second.created_at)
            for case_id, (first, second) in by_case.items()
            if first is not None and second is not None
        ]
        both = [item for pair in by_case.values() for item in pair]
        builds = [{item.build for item in side if item and item.build} for side in (both[::2], both[1::2])]
        case_ids = repeats_by_kind(times, *builds).get(kind)
        if case_ids:
            pairs = [Pair(case_id, *map(opinion, by_case[case_id])) for case_id in case_ids]
            groups = None if clusters is None else [clusters[case_id] for case_id in case_ids]
            found = repeat_report(pairs, kind=judge.kind, seed=record.seed, clusters=groups)
            return {"check": record.check, **found}
    return None


def _report_of(
    judge: Judge,
    record: SpotCheckRecord,
    judgments: Judgments,
    primary: CallCounts,
    clusters: Mapping[str, int] | None,
) -> dict[str, Any]:
    report = spot_check_report(
        pairs_of(record, judgments),
        kind=judge.kind,
        seed=record.seed,
        threshold=record.threshold,
        against={
            "kind": record.kind,
            "prompt_version": record.prompt_version,
            "prompt_sha256": record.prompt_sha256,
            "model_id": record.model_id,
            "model": record.model,
        },
        of_all=(primary.n_inconsistent, primary.n_judged),
        draw=Draw(n_population=record.n_population, adaptive=record.adaptive),
        clusters=None if clusters is None else [clusters[case_id] for case_id in record.case_ids],
    )
    return {"check": record.check, **report}


def pairs_of(record: SpotCheckRecord, judgments: Judgments) -> list[Pair]:
    """The sample of a spot check, each case with its two opinions."""
    return [Pair(case_id, *map(opinion, _pair(record, case_id, judgments))) for case_id in record.case_ids]


def _pair(record: SpotCheckRecord, case_id: str, judgments: Judgments) -> tuple[Judgment | None, Judgment | None]:
    return (
        judgments.get(JudgmentKey("primary", record.judge, case_id)),
        judgments.get(JudgmentKey("spot_check", record.judge, case_id, record.check)),
    )


def opinion(judgment: Judgment | None) -> Verdict | JudgeFailure:
    """What a judgment says: a verdict, or why there is none."""
    if judgment is None:
        return JudgeFailure(kind="internal", message="not judged")
    return judgment.verdict or judgment.failure or JudgeFailure(kind="internal", message="neither verdict nor failure")
