"""Commands that say how far a judge can be trusted: spotcheck, probe, drift. No person is asked."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from judgekit.cli.commands import TRUST, OtherConfig, Run, Shared, app, command, print_json, resumable, say

if TYPE_CHECKING:
    from judgekit.analysis.drift_states import DriftReport
    from judgekit.workflows.spotcheck import SpotChecked

SPOTCHECK_EPILOG = """\b
Examples:
  judgekit spotcheck demo-20260131-142501-3f9a           as the run's config says, or the best that there is
  judgekit spotcheck RUN --against model:other --n 50    a second model with the same wording
  judgekit spotcheck RUN --against prompt:v2             the same model with another wording
  judgekit spotcheck RUN --against repeat                the same judge again: how repeatable it is
  judgekit spotcheck RUN --adaptive                      ten more at a time, until it is decided or 200 are asked
  judgekit spotcheck RUN --json | jq .judge_reliability.disagreement_rate

\b
Exit codes: 0 done, 1 a gate is missed, 2 something to correct, 3 the provider refuses, 4 storage,
130 interrupted (the same command resumes).
"""

PROBE_EPILOG = """\b
Examples:
  judgekit probe demo-20260131-142501-3f9a                          every probe of every judge, on 30 cases
  judgekit probe RUN --judge groundedness --n 100
  judgekit probe RUN --probes injection_answer,injection_passage    can a text order its own score?
  judgekit probe RUN --model other --config new.json                another model, before it is made the judge
  judgekit probe RUN --json | jq .correctness.probes.blank_answer

\b
Probes: unchanged, rubric_reversed, passages_shuffled, criteria_shuffled, answer_padded, injection_answer,
injection_passage, blank_answer, wrong_fact_context. Each asks one question a case. Exit codes: 0 done, 2 something to
correct, 3 the provider refuses, 4 storage, 130 interrupted (the same command resumes).
"""

DRIFT_EPILOG = """\b
Examples:
  judgekit drift
  judgekit drift --judge groundedness --suite demo --fail-on-drift
  judgekit drift --since demo-20260131-142501-3f9a --svg drift.svg
  judgekit drift --judge groundedness --accept --reason "new snapshot, calibrated again"

\b
Exit codes: 0 done, 1 drift was found or nothing was asked and --fail-on-drift given, 2 nothing to look at, 4 storage.
"""


@command(app, "spotcheck", panel=TRUST, json=True, quiet=True, stats=True, epilog=SPOTCHECK_EPILOG)
def spotcheck_command(
    shared: Shared,
    run: Run,
    n: Annotated[
        str | None,
        Option("--n", help="Verdicts to check of each judge, or a share such as 5%; default: the config's, else 20."),
    ] = None,
    seed: Annotated[int | None, Option("--seed", help="Of the sample; default: fresh for each spot check.")] = None,
    judge: Annotated[str | None, Option("--judge", help="Only this judge.")] = None,
    against: Annotated[
        str | None, Option("--against", help="model:ID, prompt:VERSION or repeat; default: see the docs.")
    ] = None,
    config: OtherConfig = None,
    adaptive: Annotated[bool, Option("--adaptive", help="Draw more until it is decided.")] = False,
    threshold: Annotated[
        float | None, Option("--threshold", help="Rate that is too much; default: the config's, else 0.2.")
    ] = None,
) -> None:
    """Ask for a second opinion on a sample of a run's verdicts. It is written into the run."""
    from judgekit.cli.progress import ProgressObserver
    from judgekit.workflows.comparators import SpotCheckWanted
    from judgekit.workflows.spotcheck import spotcheck

    wanted = SpotCheckWanted(judge, n, seed, against, threshold, adaptive, config)
    with resumable("the same command resumes this spot check"):
        with ProgressObserver(quiet=shared.quiet) as observer:
            found = spotcheck(run, wanted, shared.options(), observer)
        _print_spot_check(found, shared)
    if any(gate.fails for gate in found.summary.gates):
        raise typer.Exit(1)


def _print_spot_check(found: "SpotChecked", shared: Shared) -> None:
    from judgekit.analysis.stored_figures import rounded
    from judgekit.reports.safe_text import printable_line
    from judgekit.reports.spot_check_report import reliability_lines, spot_check_document

    summary = found.summary
    if shared.as_json:
        print_json(rounded(spot_check_document(summary, found.spot_checks, found.path)))
        return
    typer.echo("\n".join(reliability_lines(summary.judge_reliability, found.spot_checks, stats=shared.stats)))
    notes = [f"gate: {gate.message}" for gate in summary.gates if shared.stats or gate.state != "passed"]
    notes += [
        f"warning: {item.message} [{item.code}]"
        for item in summary.warnings
        if item.code == "judge_unstable" and shared.stats
    ]
    for line in notes:
        typer.echo(printable_line(line))
    typer.echo(f"\n{found.path}")


@command(app, "probe", panel=TRUST, json=True, quiet=True, stats=True, epilog=PROBE_EPILOG)
def probe_command(
    shared: Shared,
    run: Run,
    judge: Annotated[str | None, Option("--judge", help="Only this judge.")] = None,
    n: Annotated[int | None, Option("--n", min=1, help="Cases of each judge; default: 30.")] = None,
    seed: Annotated[int | None, Option("--seed", help="Of cases and changes; default: the config's.")] = None,
    probes: Annotated[str | None, Option("--probes", help="Names with commas between; default: all.")] = None,
    model: Annotated[str | None, Option("--model", help="Key of the model to probe; default: the run's.")] = None,
    config: OtherConfig = None,
    from_cache: Annotated[bool, Option("--from-cache", help="Take cached replies where there are any.")] = False,
) -> None:
    """Change one thing about inputs and see how scores respond.

    It says whether the judge's scores do what they should.
    """
    from judgekit.cli.progress import ProgressObserver
    from judgekit.reports.finding_sentences import probe_sentence, with_sentence
    from judgekit.reports.probe_report import probe_lines
    from judgekit.workflows.probe import ProbesWanted, probe

    names = tuple(name.strip() for name in (probes or "").split(",") if name.strip())
    wanted = ProbesWanted(judge, n, seed, names, model, config, from_cache)
    with resumable("the same command resumes these probes"):
        with ProgressObserver(quiet=shared.quiet) as observer:
            folder, found = probe(run, wanted, shared.options(), observer)
        document = {name: with_sentence(report, probe_sentence(name, report)) for name, report in found.items()}
        shared.show(document, lambda: "\n".join([*probe_lines(found, stats=shared.stats), str(folder)]))


@command(app, "drift", panel=TRUST, json=True, stats=True, epilog=DRIFT_EPILOG)
def drift_command(
    shared: Shared,
    judge: Annotated[str | None, Option("--judge", help="This judge only.")] = None,
    suite: Annotated[str | None, Option("--suite", help="Checks of runs of this suite only.")] = None,
    dataset: Annotated[
        str | None, Option("--dataset", help="Only the data set whose sha256 begins so (`resolved.cases`).")
    ] = None,
    since: Annotated[str | None, Option("--since", help="Begin the history with the points of this run.")] = None,
    fail_on_drift: Annotated[
        bool, Option("--fail-on-drift", help="Exit code 1 if there is drift, or nothing was asked.")
    ] = False,
    accept: Annotated[
        bool, Option("--accept", help="Take the judge as it is now for normal: only what is asked later counts.")
    ] = False,
    usual: Annotated[
        float | None, Option("--usual", help="With --accept: a rate of flips that you take for usual, such as 0.15.")
    ] = None,
    reason: Annotated[str, Option("--reason", help="With --accept: why; shown with the history.")] = "",
    svg: Annotated[Path | None, Option("--svg", help="Write the timeline as SVG; of one history.")] = None,
) -> None:
    """Say whether a judge drifts, from its spot checks so far.

    Re-judgings of the same inputs count too. No model is asked.
    """
    from judgekit.core.errors import ConfigError
    from judgekit.reports.finding_sentences import drift_sentence, with_sentence
    from judgekit.reports.timelines import drift_svg, drift_texts
    from judgekit.workflows.drift import DriftQuery, accept_drift, drift_reports, write_svg

    query, options = DriftQuery(judge, suite, dataset, since), shared.options()
    if (usual is not None or reason) and not accept:
        raise ConfigError("--usual and --reason say how --accept is meant; add --accept")
    if accept:
        for line in accept_drift(query, options, usual, reason):
            say(line)
    reports = drift_reports(query, options)
    documents = [report.document() for report in reports]
    if svg is not None and len(documents) != 1:
        raise ConfigError(f"--svg: there are {len(documents)} histories; choose one with --judge and --dataset")
    if svg is not None:
        write_svg(svg, drift_svg(documents[0]))
        say(f"wrote {svg}")
    shown = [with_sentence(document, drift_sentence(document)) for document in documents]
    shared.show(shown, lambda: drift_texts(documents, stats=shared.stats))
    if fail_on_drift:
        _fail_on_drift(reports)


def _fail_on_drift(reports: "list[DriftReport]") -> None:
    """End with exit code 1 if a judge drifted or was never asked, and name what does not say either way."""
    from judgekit.analysis.drift_states import FAILING, UNKNOWN
    from judgekit.reports.safe_text import printable_line

    for report in reports:
        if report.state in UNKNOWN:
            name = f"{report.judge} {report.prompt_version}"
            say(f"note: {printable_line(name)}: {report.state}, so nothing says that it did not drift")
    if any(report.state in FAILING for report in reports):
        raise typer.Exit(1)
