"""From the cases, outputs and judgments of a run to its scores: what `run` and `rescore` share."""

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.analysis.estimates import Figures
from judgekit.analysis.joint import joint_columns, joint_outcomes
from judgekit.analysis.summary import RunTally
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.checks import RUN_CHECK
from judgekit.core.components import Judge, Metric, MetricReport
from judgekit.core.config import RunConfig
from judgekit.core.judgments import JudgeInput, Judgment
from judgekit.core.protocols import RunStore
from judgekit.core.runs import SCORES
from judgekit.core.scores import Failed, NotApplicable, Outcome, Outcomes

Unjudged = dict[str, dict[str, NotApplicable | Failed]]
"""By judge and case id: why a case is not put before a judge."""

TRANSPORT_KINDS = frozenset({"connection", "timeout", "server_error", "rate_limited", "internal"})
"""Failures that say nothing about the case; a resumed run asks these again."""


@dataclass(frozen=True)
class JudgmentKey:
    """One question: which judge, in which role, about which case."""

    role: str
    judge: str
    case_id: str
    check: str | None = None
    """The spot check that it belongs to; None where it belongs to none."""


def key_of(judgment: Judgment) -> JudgmentKey:
    """The question that a judgment answers."""
    check = None if judgment.role == "primary" else judgment.check or RUN_CHECK
    return JudgmentKey(judgment.role, judgment.judge, judgment.case_id, check)


def last_judgments(
    judgments: Iterator[Judgment], reasoned: Container[tuple[str, str]] = ()
) -> dict[JudgmentKey, Judgment]:
    """The judgment that counts for each question: the last one, and never a failure after a verdict.

    Without its raw reply and its reasoning, so that memory does not grow with the length of replies.

    Args:
        judgments: in the order in which they came.
        reasoned: (judge, case id) of judgments that keep their reasoning.
    """
    found: dict[JudgmentKey, Judgment] = {}
    for judgment in judgments:
        key = key_of(judgment)
        old = found.get(key)
        if old is None or old.verdict is None or judgment.verdict is not None:
            verdict = judgment.verdict
            if verdict is not None and (judgment.judge, judgment.case_id) not in reasoned:
                verdict = verdict.model_copy(update={"reasoning": ""})
            found[key] = judgment.model_copy(update={"raw_reply": None, "verdict": verdict})
    return found


class Faults:
    """Notes where our own code or a plug-in failed on one case, which must not cost the other cases."""

    def __init__(self, warnings: list[tuple[str, str]]) -> None:
        """Note in `warnings`, a list of (code, message)."""
        self._warnings = warnings

    def note(self, name: str, case_id: str, error: Exception) -> Failed:
        """Note the first fault of a component; returns what its scores of the case are."""
        if not any(text.startswith(f"{name}: ") for code, text in self._warnings if code == "internal_error"):
            text = f"{name}: {type(error).__name__}: {error} (case {case_id!r}, maybe others); they are in n_error"
            self._warnings.append(("internal_error", text))
        return Failed("internal", by_judge=True)


def judge_inputs(
    judges: Sequence[Judge], pairs: Iterable[tuple[Case, SystemOutput]], unjudged: Unjudged, faults: Faults
) -> Iterator[JudgeInput]:
    """What each judge is asked, judge by judge; why a case is not put before a judge goes to `unjudged`."""
    pairs = list(pairs)
    for judge in judges:
        reasons = unjudged.setdefault(judge.name, {})
        for case, output in pairs:
            built: JudgeInput | NotApplicable | Failed
            try:
                built = judge.build_input(case, output)
            except Exception as error:  # noqa: BLE001  # one case must not cost the run
                built = faults.note(judge.name, case.id, error)
            if isinstance(built, JudgeInput):
                yield built
            else:
                reasons[case.id] = built


@dataclass(frozen=True)
class Scoring:
    """How the cases of a run are scored."""

    config: RunConfig
    metrics: Sequence[Metric]
    judges: Sequence[Judge]
    faults: Faults


@dataclass(frozen=True)
class Scored:
    """The figures of all cases, and what metric families reported beside them."""

    tally: RunTally
    overall: Figures
    digests: Mapping[str, dict[str, Any]]
    """What metrics.json shows of the reports of metric families, by family."""
    warnings: Sequence[tuple[str, str]]


def score_cases(
    scoring: Scoring,
    store: RunStore,
    cases: Iterable[Case],
    unjudged: Mapping[str, Mapping[str, NotApplicable | Failed]],
    judgments: Mapping[JudgmentKey, Judgment],
) -> Scored:
    """Write scores.jsonl and the reports of metric families, and return the figures.

    Args:
        scoring: the components and rules.
        store: the run folder; its outputs are read, in the order of the cases.
        cases: the cases of the run.
        unjudged: why cases were not put before a judge.
        judgments: the judgment that counts for each question.
    """
    components = [*scoring.metrics, *scoring.judges]
    columns = [column for component in components for column in component.columns()]
    joint = joint_columns(columns)
    columns += joint
    pooled = [figure for component in components for figure in component.pooled()]
    tally = RunTally(columns, pooled, scoring.config.slices, scoring.config.errors)
    reports = {metric.name: report for metric in scoring.metrics if (report := metric.open_report()) is not None}
    metrics = [reports.get(metric.name, metric) for metric in scoring.metrics]

    def lines() -> Iterator[bytes]:
        for case, output in zip(cases, store.outputs(), strict=False):
            outcomes = _metric_outcomes(scoring, metrics, case, output)
            outcomes.update(_judge_outcomes(scoring, case, unjudged, judgments))
            if joint:
                outcomes.update(joint_outcomes(outcomes))
            tally.add(case, output, outcomes)
            for name, outcome in outcomes.items():
                yield _score_line(case.id, name, outcome)

    store.write_lines(SCORES, lines())
    for judgment in judgments.values():
        if judgment.latency_seconds is not None and judgment.role == "primary":
            tally.add_judge_latency(judgment.latency_seconds)
    overall = tally.overall()
    digests = _write_reports(store, reports, overall)
    warnings = [*tally.warnings, *[warning for report in reports.values() for warning in report.warnings()]]
    return Scored(tally, overall, digests, warnings)


def _write_reports(store: RunStore, reports: Mapping[str, MetricReport], overall: Figures) -> dict[str, dict[str, Any]]:
    digests = {}
    for name, report in reports.items():
        document, digest = report.document(overall), report.digest()
        if document is not None:
            store.write_json(report.file_name, document)
        if digest is not None:
            digests[name] = digest
    return digests


def _metric_outcomes(
    scoring: Scoring, metrics: Sequence[Metric | MetricReport], case: Case, output: SystemOutput
) -> Outcomes:
    """Every deterministic score of one case."""
    found: Outcomes = {}
    for family, metric in zip(scoring.metrics, metrics, strict=True):
        try:
            found.update(metric.calculate(case, output))
        except Exception as error:  # noqa: BLE001  # one case must not cost the figures of all
            found.update(dict.fromkeys(_names(family), scoring.faults.note(family.name, case.id, error)))
    return found


def _judge_outcomes(
    scoring: Scoring,
    case: Case,
    unjudged: Mapping[str, Mapping[str, NotApplicable | Failed]],
    judgments: Mapping[JudgmentKey, Judgment],
) -> Outcomes:
    """Every score of one case by a judge."""
    found: Outcomes = {}
    for judge in scoring.judges:
        reason = unjudged.get(judge.name, {}).get(case.id)
        judgment = judgments.get(JudgmentKey("primary", judge.name, case.id))
        try:
            found.update(judge_outcomes(judge, reason, judgment))
        except Exception as error:  # noqa: BLE001
            found.update(dict.fromkeys(_names(judge), scoring.faults.note(judge.name, case.id, error)))
    return found


def _names(component: Metric | Judge) -> list[str]:
    return [column.name for column in component.columns()]


def judge_outcomes(judge: Judge, reason: NotApplicable | Failed | None, judgment: Judgment | None) -> Outcomes:
    """The scores of one judge for one case: from its verdict, or the reason why there is none."""
    outcome: Outcome
    if reason is not None:
        outcome = reason
    elif judgment is None:
        outcome = Failed("not judged", by_judge=True)
    elif judgment.verdict is not None:
        verdict = judgment.verdict
        return judge.scores(verdict.model_copy(update={"reasoning": ""}) if verdict.reasoning else verdict)
    else:
        kind = judgment.failure.kind if judgment.failure is not None else "internal"
        outcome = Failed(f"judge {kind}", by_judge=True)
    return {column.name: outcome for column in judge.columns()}


def _score_line(case_id: str, name: str, outcome: Outcome) -> bytes:
    value, reason = None, None
    if isinstance(outcome, NotApplicable):
        reason = f"n/a: {outcome.reason}"
    elif isinstance(outcome, Failed):
        reason = f"failed: {outcome.kind}"
    else:
        value = outcome
    score = {"case_id": case_id, "name": name, "value": value, "reason": reason}
    return json.dumps(score, ensure_ascii=False, allow_nan=False).encode()
