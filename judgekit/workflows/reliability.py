"""From the spot checks of a run and their judgments to `judge_reliability`: what `run` and `spotcheck` share."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judgekit.analysis.alarms import DEFAULT_THRESHOLD, Draw
from judgekit.analysis.drift_points import repeats_by_kind
from judgekit.analysis.pairs import Pair
from judgekit.analysis.reliability import (
    KEPT_PARTS,
    PARTS_OF_VERDICTS,
    instrument,
    judge_reliability,
    kept_parts,
    repeat_report,
    spot_check_report,
    unstable_warning,
)
from judgekit.analysis.slices import Clusters
from judgekit.core.cases import Case
from judgekit.core.components import Judge
from judgekit.core.history_points import PointKind
from judgekit.core.judgments import JudgeFailure, Judgment, JudgmentKey, Verdict
from judgekit.core.spot_checks import CHECKS, SpotCheckKind, SpotCheckRecord
from judgekit.engine.judgment_draft import JudgePlan
from judgekit.storage.run_folder import RunFolder

Judgments = Mapping[JudgmentKey, Judgment]
Warnings = list[tuple[str, str]]

OF_THE_JUDGE = ("n_verdicts", "n_inconsistent", "inconsistent_rate")
"""Figures of the judge, which the reports of its other checks do not repeat."""


def check_kind(primary: JudgePlan, second: JudgePlan) -> SpotCheckKind:
    """How a second opinion differs from the judge."""
    return kind_of(
        other_model=primary.runtime.model_id != second.runtime.model_id,
        other_prompt=primary.prompt.sha256 != second.prompt.sha256,
    )


def kind_of(*, other_model: bool, other_prompt: bool) -> SpotCheckKind:
    """The kind of a check by what differs."""
    if other_model and other_prompt:
        return "model and prompt"
    return "model" if other_model else "prompt" if other_prompt else "repeat"


def write_checks(store: RunFolder, checks: Sequence[SpotCheckRecord]) -> None:
    """Replace checks.json; a run without a check has none."""
    if checks:
        store.write_json(CHECKS, {"checks": [record.model_dump(mode="json") for record in checks]})


def sampled(checks: Iterable[SpotCheckRecord]) -> set[tuple[str, str]]:
    """(judge, case id) of everything that was drawn, whose reasonings are shown."""
    return {(record.judge, case_id) for record in checks for case_id in record.case_ids}


def reliability_of(
    judges: Sequence[Judge],
    checks: Sequence[SpotCheckRecord],
    judgments: Judgments,
    earlier: Mapping[str, Any] | None = None,
    clusters: Mapping[str, int] | None = None,
) -> tuple[dict[str, Any] | None, Warnings]:
    """The `judge_reliability` of a run, and the warnings that it raises.

    Of several checks with the same comparator the last one counts. A judge's figures are those of the last check that
    asked something else than the judge itself; asking it again is its noise floor, and stands for the check only
    where there is no other.

    Args:
        judges: the judges of the run.
        checks: its spot checks, oldest first.
        judgments: the judgment that counts for each question.
        earlier: `judge_reliability` so far, whose parts that come from elsewhere are kept.
        clusters: from `clusters_of`.

    Returns:
        None where no judge was checked and nothing was there before.
    """
    by_judge: dict[str, dict[str, Any]] = {}
    warnings: Warnings = []
    threshold = checks[-1].threshold if checks else None
    for judge in judges:
        own = list({record.comparator: record for record in checks if record.judge == judge.name}.values())
        own.sort(key=checks.index)
        if own:
            by_judge[judge.name] = _judge_report(judge, own, judgments, clusters)
    if not by_judge and earlier is None:
        return None, []
    found = judge_reliability(by_judge, DEFAULT_THRESHOLD if threshold is None else threshold, clusters)
    warnings += found.pop("warnings")
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
) -> tuple[dict[str, Any] | None, Warnings]:
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
    cluster_by: str | None, cases: Iterable[Case], checks: Iterable[SpotCheckRecord]
) -> dict[str, int] | None:
    """Number of the cluster of each case that was drawn, by its id; None where cases are independent.

    Args:
        cluster_by: of the config.
        cases: the cases of the run.
        checks: its spot checks.
    """
    if cluster_by is None:
        return None
    drawn = {case_id for record in checks for case_id in record.case_ids}
    numbers = Clusters(cluster_by)
    return {case.id: numbers.number(case) for case in cases if case.id in drawn}


def _judge_report(
    judge: Judge, checks: Sequence[SpotCheckRecord], judgments: Judgments, clusters: Mapping[str, int] | None
) -> dict[str, Any]:
    second_opinions = [record for record in checks if record.kind != "repeat"]
    repeats = [record for record in checks if record.kind == "repeat"]
    chosen = (second_opinions or repeats)[-1]
    primary = [item for key, item in judgments.items() if key.role == "primary" and key.judge == judge.name]
    verdicts = [item.verdict for item in primary if item.verdict is not None]
    report = _check_report(judge, chosen, judgments, verdicts, clusters)
    asked = [item for key, item in judgments.items() if key.judge == judge.name and key.check == chosen.check]
    report["identity"] = {"judge": instrument(primary), "comparator": instrument(asked)}
    report["noise_floor"] = _repeated(judge, repeats, judgments, clusters, "noise_floor")
    report["asked_later"] = _repeated(judge, repeats, judgments, clusters, "rejudge")
    report["other_checks"] = [
        {
            name: value
            for name, value in _check_report(judge, record, judgments, verdicts, clusters).items()
            if name not in OF_THE_JUDGE
        }
        for record in checks
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
            found = repeat_report(pairs, pass_score=pass_score_of(judge), seed=record.seed, clusters=groups)
            return {"check": record.check, **found}
    return None


def _in_order(record: SpotCheckRecord, clusters: Mapping[str, int] | None) -> list[int] | None:
    return None if clusters is None else [clusters[case_id] for case_id in record.case_ids]


def _check_report(
    judge: Judge,
    record: SpotCheckRecord,
    judgments: Judgments,
    verdicts: Sequence[Verdict],
    clusters: Mapping[str, int] | None,
) -> dict[str, Any]:
    report = spot_check_report(
        pairs_of(record, judgments),
        pass_score=pass_score_of(judge),
        seed=record.seed,
        threshold=record.threshold,
        against={
            "kind": record.kind,
            "prompt_version": record.prompt_version,
            "prompt_sha256": record.prompt_sha256,
            "model_id": record.model_id,
            "model": record.model,
        },
        verdicts=verdicts,
        draw=Draw(n_population=record.n_population, adaptive=record.adaptive),
        scale=scale_of(judge),
        clusters=_in_order(record, clusters),
    )
    return {"check": record.check, **report}


def pairs_of(record: SpotCheckRecord, judgments: Judgments) -> list[Pair]:
    """The sample of a check, each case with its two opinions."""
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


def pass_score_of(judge: Judge) -> int | None:
    """Lowest score that passes; None for a judge without a pass class."""
    found: int | None = getattr(judge, "pass_score", None)
    return found


def scale_of(judge: Judge) -> tuple[int, int]:
    """Lowest and highest score of a judge: those of the column that carries its name."""
    for column in judge.columns():
        if column.name == judge.name:
            return int(column.low), int(column.high)
    return 0, 1
