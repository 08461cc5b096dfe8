"""From the cases, outputs and judgments of a run to its scores: what `run` and `rescore` share."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.analysis.estimates import FigureRules, Figures
from judgekit.analysis.joint import joint_columns, joint_outcomes
from judgekit.analysis.summary import RunTally
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge, Metric, MetricReport, Verdicts
from judgekit.core.config import RunConfig
from judgekit.core.judgments import JudgeInput, Judgment, JudgmentKey, Verdict
from judgekit.core.runs import SCORES
from judgekit.core.scores import Failed, NotApplicable, Outcome, Outcomes
from judgekit.judges.passages import NO_TEXT
from judgekit.metrics.abstention import Decided
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.abstentions import Abstentions, following

Unjudged = dict[str, dict[str, NotApplicable | Failed]]
"""By judge and case id: why a case is not put before a judge."""


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
    abstention: dict[str, Any] | None
    """What decided which outputs are abstentions; None where no output has an answer."""


def score_cases(
    scoring: Scoring,
    store: RunFolder,
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
    rules = FigureRules(scoring.config.resampling_seed, scoring.config.min_n, scoring.config.cluster_by)
    tally = RunTally(columns, pooled, scoring.config.slices, scoring.config.errors, rules)
    reports = {metric.name: report for metric in scoring.metrics if (report := metric.open_report()) is not None}
    deciding = Abstentions()
    metrics = [reports.get(metric.name, metric) for metric in scoring.metrics]

    def lines() -> Iterator[bytes]:
        for case, output in zip(cases, store.outputs(), strict=False):
            verdicts = _verdicts(scoring, case, unjudged, judgments)
            outcomes, sources = _metric_outcomes(scoring, metrics, case, output, verdicts)
            outcomes.update(_judge_outcomes(scoring, case, verdicts, deciding.of(case, output, verdicts)))
            if joint:
                outcomes.update(joint_outcomes(outcomes))
            tally.add(case, output, outcomes)
            for name, outcome in outcomes.items():
                yield _score_line(case.id, name, outcome, sources.get(name))

    store.write_lines(SCORES, lines())
    for judgment in judgments.values():
        if judgment.latency_seconds is not None and judgment.role != "spot_check":
            tally.add_judge_latency(judgment.latency_seconds)
    overall = tally.overall()
    digests = _write_reports(store, reports, overall)
    warnings = [
        *tally.warnings,
        *_without_text(unjudged),
        *deciding.warnings(),
        *[warning for report in reports.values() for warning in report.warnings()],
    ]
    return Scored(tally, overall, digests, warnings, deciding.record())


def _without_text(unjudged: Mapping[str, Mapping[str, NotApplicable | Failed]]) -> list[tuple[str, str]]:
    """How many answers a judge was not asked about because nothing was retrieved that they could rest on."""
    counts = {judge: sum(reason == NO_TEXT for reason in reasons.values()) for judge, reasons in unjudged.items()}
    return [
        (
            "no_retrieved_text",
            f"{judge}: {n} answers have no retrieved text (no hits, or hits without text): not judged",
        )
        for judge, n in counts.items()
        if n
    ]


def _write_reports(
    store: RunFolder, reports: Mapping[str, MetricReport], overall: Figures
) -> dict[str, dict[str, Any]]:
    digests = {}
    for name, report in reports.items():
        document, digest = report.document(overall), report.digest()
        if document is not None:
            store.write_json(report.file_name, document)
        if digest is not None:
            digests[name] = digest
    return digests


def _metric_outcomes(
    scoring: Scoring,
    metrics: Sequence[Metric | MetricReport],
    case: Case,
    output: SystemOutput,
    verdicts: Verdicts,
) -> tuple[Outcomes, dict[str, str]]:
    """Every score of one case by a metric family, and what those rest on that say so."""
    found: Outcomes = {}
    sources: dict[str, str] = {}
    for family, metric in zip(scoring.metrics, metrics, strict=True):
        try:
            outcomes = metric.calculate(case, output)
            wanted = {name: verdicts[name] for name in family.judges_wanted if name in verdicts}
            if wanted:
                outcomes = {**outcomes, **family.calculate_judged(case, output, wanted)}
            found.update(outcomes)
            sources.update(family.sources(output, wanted))
        except Exception as error:  # noqa: BLE001  # one case must not cost the figures of all
            found.update(dict.fromkeys(_names(family), scoring.faults.note(family.name, case.id, error)))
    return found, sources


def _verdicts(
    scoring: Scoring,
    case: Case,
    unjudged: Mapping[str, Mapping[str, NotApplicable | Failed]],
    judgments: Mapping[JudgmentKey, Judgment],
) -> dict[str, Verdict | NotApplicable | Failed]:
    """What every judge of the run says of one case."""
    return {
        judge.name: verdict_or_reason(
            unjudged.get(judge.name, {}).get(case.id), judgments.get(JudgmentKey("primary", judge.name, case.id))
        )
        for judge in scoring.judges
    }


def _judge_outcomes(scoring: Scoring, case: Case, verdicts: Verdicts, decided: Decided) -> Outcomes:
    """Every score of one case by a judge."""
    found: Outcomes = {}
    for judge in scoring.judges:
        try:
            said = verdicts[judge.name]
            found.update(following(judge, case, decided, said) or judge_outcomes(judge, said))
        except Exception as error:  # noqa: BLE001
            found.update(dict.fromkeys(_names(judge), scoring.faults.note(judge.name, case.id, error)))
    return found


def _names(component: Metric | Judge) -> list[str]:
    return [column.name for column in component.columns()]


def verdict_or_reason(
    reason: NotApplicable | Failed | None, judgment: Judgment | None
) -> Verdict | NotApplicable | Failed:
    """What a judge says of one case: its verdict, or why there is none.

    Args:
        reason: why the case was not put before the judge; None where it was.
        judgment: the judgment that counts, if any.
    """
    if reason is not None:
        return reason
    if judgment is None:
        return Failed("not judged", by_judge=True)
    if judgment.verdict is not None:
        verdict = judgment.verdict
        return verdict.model_copy(update={"reasoning": ""}) if verdict.reasoning else verdict
    kind = judgment.failure.kind if judgment.failure is not None else "internal"
    return Failed(f"judge {kind}", by_judge=True)


def judge_outcomes(judge: Judge, said: Verdict | NotApplicable | Failed) -> Outcomes:
    """The scores of one judge for one case: from its verdict, or the reason why there is none."""
    if isinstance(said, Verdict):
        return judge.scores(said)
    return {column.name: said for column in judge.columns()}


def _score_line(case_id: str, name: str, outcome: Outcome, source: str | None) -> bytes:
    value, reason = None, None
    if isinstance(outcome, NotApplicable):
        reason = f"n/a: {outcome.reason}"
    elif isinstance(outcome, Failed):
        reason = f"failed: {outcome.kind}"
    else:
        value = outcome
    score = {"case_id": case_id, "name": name, "value": value, "reason": reason}
    if source is not None:
        score["source"] = source
    return json.dumps(score, ensure_ascii=False, allow_nan=False).encode()
