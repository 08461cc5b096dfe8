"""What judges say when they are asked again: how much of the difference between the answers to a case is theirs."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import groupby
from typing import Any

from judgekit.analysis.drift_points import AT_ONCE
from judgekit.analysis.estimates import FigureRules
from judgekit.analysis.judge_calls import JudgeCalls
from judgekit.analysis.repeated_answers import RepeatedAnswers, VerdictsAgain
from judgekit.core.components import Judge
from judgekit.core.judgments import Judgment, JudgmentKey
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Failed, NotApplicable, Outcome, Outcomes, Score
from judgekit.core.spot_checks import SpotCheckRecord
from judgekit.workflows.stored import StoredRun

Judgments = Mapping[JudgmentKey, Judgment]


def columns_by_judge(judges: Sequence[Judge]) -> dict[str, str]:
    """The judge that gives each score."""
    return {column.name: judge.name for judge in judges for column in judge.columns()}


def verdicts_again(
    judges: Sequence[Judge], spot_checks: Sequence[SpotCheckRecord], judgments: Judgments
) -> VerdictsAgain:
    """What the judges of a run said when they were asked about the same answers again.

    Only verdicts of the same wording, model and build: of another build it is not known whether it is the same judge.

    Args:
        judges: the judges of the run.
        spot_checks: its spot checks; those of kind `repeat` count.
        judgments: the judgment that counts for each question of the spot checks, those of others may be missing.
    """
    by_name = {judge.name: judge for judge in judges}
    repeats = {(record.judge, record.check) for record in spot_checks if record.kind == "repeat"}
    said: defaultdict[tuple[str, str], list[Judgment]] = defaultdict(list)
    n_later: Counter[str] = Counter()
    for key, item in judgments.items():
        if key.role != "spot_check" or item.verdict is None or (key.judge, key.check) not in repeats:
            continue
        first = judgments.get(JudgmentKey("primary", key.judge, key.case_id))
        if key.judge in by_name and first is not None and _is_same_judge(first, item):
            said[key.judge, key.case_id] = [*(said[key.judge, key.case_id] or [first]), item]
            n_later[key.judge] += _is_later(first, item)
    scores: defaultdict[str, dict[str, Sequence[float]]] = defaultdict(dict)
    for (name, case_id), verdicts in said.items():
        scores[case_id] |= _scores(by_name[name], verdicts)
    return VerdictsAgain(scores, n_later)


def _is_same_judge(first: Judgment, second: Judgment) -> bool:
    if first.verdict is None or (first.build and second.build and first.build != second.build):
        return False
    return (first.prompt_sha256, first.model_id, first.model) == (second.prompt_sha256, second.model_id, second.model)


def _is_later(first: Judgment, second: Judgment) -> bool:
    return datetime.fromisoformat(second.created_at) - datetime.fromisoformat(first.created_at) > AT_ONCE


def _scores(judge: Judge, judgments: Sequence[Judgment]) -> dict[str, Sequence[float]]:
    """By score, what each verdict gives, the run's own first; without those of which the run's own gives none."""
    found: dict[str, list[float]] = {}
    verdicts = [item.verdict.model_copy(update={"reasoning": ""}) for item in judgments if item.verdict is not None]
    with suppress(Exception):  # a fault of a plug-in, which the scores of the run name
        for place, verdict in enumerate(verdicts):
            for name, value in judge.scores(verdict).items():
                if isinstance(value, float) and (place == 0 or name in found):
                    found.setdefault(name, []).append(value)
    return {**found}


def repeats_judged_again(
    stored: StoredRun,
    summary: RunSummary,
    spot_checks: Sequence[SpotCheckRecord],
    judgments: Judgments,
    calls: JudgeCalls,
) -> dict[str, Any] | None:
    """The part `repeats` of a stored run once it has more verdicts on the same answers.

    Only figures of judges change.

    Args:
        stored: the run, with its scores.
        summary: its figures so far.
        spot_checks: its spot checks.
        judgments: the judgment that counts for each question of the spot checks.
        calls: all of the run.
    """
    if summary.repeats is None:
        return None
    config = stored.config
    judges = [stored.judge(judge.name) for judge in config.judges]
    columns = [column for judge in judges for column in judge.columns()]
    rules = FigureRules(config.resampling_seed, config.min_n, config.cluster_by)
    again = verdicts_again(judges, spot_checks, judgments)
    answers = RepeatedAnswers(columns, config.errors, rules)
    names = {column.name for column in columns}
    by_case = groupby(stored.folder.scores(), key=lambda score: score.case_id)
    for case, (_, scores) in zip(stored.folder.cases(), by_case, strict=False):
        outcomes: Outcomes = {score.name: _outcome(score) for score in scores if score.name in names}
        answers.add(
            case, {name: outcomes.get(name, NotApplicable("no score")) for name in names}, again.scores.get(case.id)
        )
    figures = answers.figures(columns_by_judge(judges), calls.per_verdict(), again.n_later)
    return {**summary.repeats, "figures": {**summary.repeats["figures"], **figures}}


def _outcome(score: Score) -> Outcome:
    """A stored score; of one without a value it does not matter here why."""
    return Failed("no value") if score.value is None else score.value
