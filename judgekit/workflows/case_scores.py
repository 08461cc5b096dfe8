"""From the cases, outputs and judgments of a run to its scores: what `run` and `rescore` share."""

import math
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

from judgekit.analysis.estimates import FigureRules, Figures
from judgekit.analysis.joint import JOINT_JUDGES, joint_columns, joint_outcomes
from judgekit.analysis.judge_calls import JudgeCalls
from judgekit.analysis.repeated_answers import RepeatedAnswers
from judgekit.analysis.summary import RunTally
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge, Metric, MetricReport, Verdicts
from judgekit.core.config import RunConfig
from judgekit.core.judgments import JudgeInput, Judgment, JudgmentKey, Verdict
from judgekit.core.runs import SCORES, Notices
from judgekit.core.scores import Column, Failed, NotApplicable, Outcomes, Pooled, Scale
from judgekit.judges.passages import ABSTAINED, NO_TEXT
from judgekit.metrics.abstention import Decided, whether_abstained
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.score_lines import ScoreWriter
from judgekit.storage.stored_judgments import StoredJudgments
from judgekit.workflows.own_code import code_record
from judgekit.workflows.verdicts_again import columns_by_judge, verdicts_again

Unjudged = dict[str, dict[str, NotApplicable | Failed]]
"""By judge and case id: why a case is not put before a judge."""


def _fault(warnings: Notices, name: str, case_id: str, error: Exception) -> Failed:
    """Note that our own code or a plug-in failed on a case, which must not cost the other cases; the first is named."""
    if not any(text.startswith(f"{name}: ") for code, text in warnings if code == "internal_error"):
        text = f"{name}: {type(error).__name__}: {error} (case {case_id!r}, maybe others); they are in n_error"
        warnings.append(("internal_error", text))
    return Failed("internal", by_judge=True)


def judge_inputs(
    judges: Sequence[Judge], pairs: Iterable[tuple[Case, SystemOutput]], unjudged: Unjudged, warnings: Notices
) -> Iterator[JudgeInput]:
    """What each judge is asked, case by case; why a case is not put before a judge goes to `unjudged`."""
    by_judge = [(judge, unjudged.setdefault(judge.name, {})) for judge in judges]
    for case, output in pairs:
        for judge, reasons in by_judge:
            built: JudgeInput | NotApplicable | Failed
            try:
                built = judge.build_input(case, output)
            except Exception as error:  # noqa: BLE001  # one case must not cost the run
                built = _fault(warnings, judge.name, case.id, error)
            if isinstance(built, JudgeInput):
                yield built
            else:
                reasons[case.id] = built


@dataclass(frozen=True)
class CaseScorers:
    """What scores the cases of a run, and the config with the rules."""

    config: RunConfig
    metrics: Sequence[Metric]
    judges: Sequence[Judge]
    n_answers: int
    """Answers to the case that has most."""
    warnings: Notices
    """Where a fault of our own code or a plug-in is noted."""


@dataclass(frozen=True)
class Scored:
    """The figures of all cases, and what metric families reported beside them."""

    tally: RunTally
    calls: JudgeCalls
    """The judgments that count, and the costs of all."""
    overall: Figures
    scales: dict[str, Scale]
    """Unit and better direction of the figures."""
    digests: Mapping[str, dict[str, Any]]
    """What metrics.json shows of the reports of metric families, by family."""
    warnings: Sequence[tuple[str, str]]
    abstention: dict[str, Any] | None
    """What decided which outputs are abstentions; None if no output has an answer."""
    own_code: dict[str, dict[str, Any]]
    """What is known of the metrics and judges from Python files."""
    repeats: dict[str, Any] | None
    """How much answers to one case differ; None if each case has one."""


def score_cases(
    scorers: CaseScorers,
    folder: RunFolder,
    cases: Collection[Case],
    unjudged: Mapping[str, Mapping[str, NotApplicable | Failed]],
    judgments: StoredJudgments,
) -> Scored:
    """Write scores.jsonl and the reports of metric families, and return the figures.

    Args:
        scorers: the components and rules.
        folder: the run folder; its outputs are read, in the order of the cases.
        cases: the cases of the run.
        unjudged: why cases were not put before a judge.
        judgments: the judgment that counts for each question.
    """
    metrics = _settled(scorers.metrics, cases, folder)
    components = [*metrics, *scorers.judges]
    columns = [column for component in components for column in component.columns()]
    columns += (joint := joint_columns(columns))
    pooled, config = [figure for part in components for figure in part.pooled()], scorers.config
    rules = FigureRules(config.resampling_seed, config.min_n, config.cluster_by)
    tally = RunTally(columns, pooled, config.slices, config.errors, rules)
    reports = {metric.name: report for metric in metrics if (report := metric.open_report()) is not None}
    families = [(metric, reports.get(metric.name, metric)) for metric in metrics]
    deciding, calls, writer = _Abstentions(), JudgeCalls(), ScoreWriter(column.name for column in columns)
    repeats = RepeatedAnswers(columns, config.errors, rules) if scorers.n_answers > 1 else None
    of_judges = {**columns_by_judge(scorers.judges), **{column.name: JOINT_JUDGES for column in joint}}
    again = None if repeats is None else verdicts_again(scorers.judges, folder.spot_checks(), judgments)

    def lines() -> Iterator[bytes]:
        yield writer.header()
        for case, output in zip(cases, folder.outputs(), strict=False):
            said = calls.add_stored(judgments.all_of_case(case.id))
            verdicts = _verdicts(scorers.judges, case.id, unjudged, said)
            outcomes, sources = _metric_outcomes(families, case, output, verdicts, scorers.warnings, of_judges)
            decided = deciding.of(case, output, verdicts)
            for judge in scorers.judges:
                outcomes.update(_judge_outcomes(judge, case, decided, verdicts[judge.name], scorers.warnings))
            outcomes.update(joint_outcomes(outcomes) if joint else {})
            tally.add(case, output, outcomes)
            if repeats is not None and again is not None:
                repeats.add(case, outcomes, again.scores.get(case.id))
            yield from writer.lines(case.id, outcomes, sources)

    folder.write_lines(SCORES, lines())
    tally.add_judge_latencies(calls.latencies)
    overall = tally.overall()
    digests = _write_reports(folder, reports, overall)
    record = None
    warnings = [*tally.warnings, *_without_text(unjudged)]
    warnings += deciding.warnings() if _follows_abstentions(scorers) else ()
    warnings += [warning for report in reports.values() for warning in report.warnings()]
    if repeats is not None and again is not None:
        overall |= repeats.pass_figures()
        record = repeats.record(of_judges, calls.per_verdict(), again.n_later)
        warnings += repeats.warnings()
    scales, own_code = _scales(columns, pooled), code_record(components)
    return Scored(tally, calls, overall, scales, digests, warnings, deciding.record(), own_code, record)


def _scales(columns: Iterable[Column], pooled: Iterable[Pooled]) -> dict[str, Scale]:
    """Unit and better direction by name of a figure."""
    found = {column.aggregate or column.name: column.scale for column in columns if column.aggregate != ""}
    return found | {figure.name: figure.scale for figure in pooled}


def _settled(metrics: Sequence[Metric], cases: Iterable[Case], folder: RunFolder) -> list[Metric]:
    """The metrics with their columns fixed, which those of a user's function are only once it has seen the cases."""
    with redirect_stdout(sys.stderr):  # what a function of the user prints must not come between the lines of --json
        return [metric.settled(zip(cases, folder.outputs(), strict=False)) for metric in metrics]


def _follows_abstentions(scorers: CaseScorers) -> bool:
    """Whether a figure depends on which outputs are abstentions."""
    return bool(scorers.metrics) or any(judge.abstained_scores() is not None for judge in scorers.judges)


def _without_text(unjudged: Mapping[str, Mapping[str, NotApplicable | Failed]]) -> Notices:
    """How many answers a judge was not asked about because nothing was retrieved that they could rest on."""
    text = "answers have no retrieved text (no hits, or hits without text): not judged"
    counts = {judge: sum(reason == NO_TEXT for reason in reasons.values()) for judge, reasons in unjudged.items()}
    return [("no_retrieved_text", f"{judge}: {n} {text}") for judge, n in counts.items() if n]


def _write_reports(
    folder: RunFolder, reports: Mapping[str, MetricReport], overall: Figures
) -> dict[str, dict[str, Any]]:
    digests = {}
    for name, report in reports.items():
        document, digest = report.document(overall), report.digest()
        if document is not None:
            folder.write_json(report.file_name, document)
        if digest is not None:
            digests[name] = digest
    return digests


def _metric_outcomes(
    families: Sequence[tuple[Metric, Metric | MetricReport]],
    case: Case,
    output: SystemOutput,
    verdicts: Verdicts,
    warnings: Notices,
    of_judges: dict[str, str],
) -> tuple[Outcomes, dict[str, str]]:
    """Every score of one case by a metric family, and what those rest on that say so.

    The judges of scores that take a verdict are added to `of_judges`.
    """
    found: Outcomes = {}
    sources: dict[str, str] = {}
    for family, metric in families:
        try:
            outcomes = metric.calculate(case, output)
            wanted = {name: verdicts[name] for name in family.judges_wanted if name in verdicts}
            if wanted:
                judged = family.calculate_judged(case, output, wanted)
                outcomes = {**outcomes, **judged}
                of_judges.update(dict.fromkeys(judged, " and ".join(wanted)))
            found.update(outcomes if family.is_shipped else _checked(family, outcomes))
            sources.update(family.sources(output, wanted))
        except Exception as error:  # noqa: BLE001  # one case must not cost the figures of all
            found.update(dict.fromkeys(_names(family), _fault(warnings, family.name, case.id, error)))
    return found, sources


def _judge_outcomes(
    judge: Judge, case: Case, decided: Decided, said: Verdict | NotApplicable | Failed, warnings: Notices
) -> Outcomes:
    """Every score of one case by a judge: from its verdict, from the abstention, or the reason why there is none."""
    try:
        outcomes = _following(judge, case, decided, said)
        if outcomes:
            return outcomes
        if not isinstance(said, Verdict):
            return dict.fromkeys(_names(judge), said)
        return judge.scores(said) if judge.is_shipped else _checked(judge, judge.scores(said))
    except Exception as error:  # noqa: BLE001  # one case must not cost the figures of all
        return dict.fromkeys(_names(judge), _fault(warnings, judge.name, case.id, error))


def _checked(component: Metric | Judge, outcomes: Outcomes) -> Outcomes:
    """The scores of a component that is not of judgekit, if they are what its columns say.

    Raises:
        ValueError: one is missing, is none of its columns, or is not an outcome.
    """
    names = _names(component)
    wrong = sorted(outcomes.keys() ^ set(names))
    if wrong:
        raise ValueError(f"its scores are not those of columns(): {', '.join(wrong[:5])} on one side only")
    found: Outcomes = {}
    for name in names:
        value: Any = outcomes[name]
        if not isinstance(value, NotApplicable | Failed):
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"{name}: expected a finite number, NotApplicable or Failed, found {value!r:.60}")
            value = float(value)
        found[name] = value
    return found


def _names(component: Metric | Judge) -> list[str]:
    return [column.name for column in component.columns()]


def _verdicts(
    judges: Sequence[Judge],
    case_id: str,
    unjudged: Mapping[str, Mapping[str, NotApplicable | Failed]],
    judgments: Mapping[JudgmentKey, Judgment],
) -> dict[str, Verdict | NotApplicable | Failed]:
    """What each judge says of a case."""
    found = {}
    for judge in judges:
        reason = unjudged.get(judge.name, {}).get(case_id)
        found[judge.name] = _verdict_or_reason(reason, judgments.get(JudgmentKey("primary", judge.name, case_id)))
    return found


def _verdict_or_reason(
    reason: NotApplicable | Failed | None, judgment: Judgment | None
) -> Verdict | NotApplicable | Failed:
    """What a judge says of one case, by why it was not put before the judge, and the judgment that counts."""
    if reason is not None:
        return reason
    if judgment is None:
        return Failed("not judged", by_judge=True)
    if judgment.verdict is not None:
        verdict = judgment.verdict
        return verdict.model_copy(update={"reasoning": ""}) if verdict.reasoning else verdict
    kind = judgment.failure.kind if judgment.failure is not None else "internal"
    return Failed(f"judge {kind}", by_judge=True)


def _following(judge: Judge, case: Case, decided: Decided, said: Verdict | NotApplicable | Failed) -> Outcomes | None:
    """The scores that a judge gets from what decides about abstentions; None if its own verdict stands.

    An abstention has the worst scores on an answerable case, and none otherwise. If it is not known whether the
    output abstained, since the abstention judge failed, it is not known whether the judge applies either. What cannot
    be judged for another reason, such as no retrieved text, stays so; and a blank answer stays a failure
    unless it is right, so that a system that falls silent cannot raise a mean.
    """
    value, source = decided
    is_unknown = isinstance(value, Failed) and source == "judge" and isinstance(said, Verdict)
    if not is_unknown and (value is not True or (source == "blank" and case.answerable is not False)):
        return None
    worst = judge.abstained_scores()
    if worst is None or (isinstance(said, NotApplicable) and said != ABSTAINED):
        return None
    if isinstance(value, Failed):
        return dict.fromkeys(_names(judge), Failed(f"abstention {value.kind}", by_judge=True))
    if not case.answerable:
        return dict.fromkeys(_names(judge), ABSTAINED)
    return {**worst, **{column.name: column.worst for column in judge.weighed_columns()}}


class _Abstentions:
    """Which outputs of a run are abstentions, and what says so, counted case by case."""

    def __init__(self) -> None:
        """None so far."""
        self._sources: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._n_answered = 0

    def of(self, case: Case, output: SystemOutput, verdicts: Verdicts) -> Decided:
        """Whether an output abstained; counted."""
        value, source = decided = whether_abstained(output, verdicts.get("abstention"))
        self._sources[source] += 1
        self._found[source] += value is True
        self._n_answered += source == "rule" and value is False and case.answerable is False
        return decided

    def record(self) -> dict[str, Any] | None:
        """`source`: what decides if the system does not say; counts of cases and of abstentions by source."""
        if not self._sources.keys() - {"no_answer", "error"}:
            return None
        source = next((name for name in ("judge", "rule") if self._sources[name]), "flag")
        return {"source": source, "by_source": dict(self._sources), "n_abstained": dict(+self._found)}

    def warnings(self) -> Notices:
        """Said if the rule found an abstention, or none where one is due: figures depend on it."""
        if not self._found["rule"] and not self._n_answered:
            return []
        text = (
            f"the shipped rule took {self._found['rule']} of {self._sources['rule']} answers for abstentions by their "
            "words, and figures follow it; outputs with `abstained`, or the judge abstention, would say it better"
        )
        if self._n_answered:
            text += (
                f"; {self._n_answered} to unanswerable questions count as answers, which is wrong where they decline "
                "in words that the rule does not know"
            )
        return [("abstention_by_rule", text)]
