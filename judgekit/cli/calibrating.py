"""Commands that hold judges against people: calibrate, label."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.cli.outcome import print_json, reported, say
from judgekit.cli.rejudging import Run
from judgekit.cli.runs import AsJson, Debug, ResultsDir

if TYPE_CHECKING:
    from judgekit.workflows.label import Labelling

CALIBRATE_EPILOG = """\b
Examples:
  judgekit calibrate RUN --labels labels.csv --judge correctness
  judgekit calibrate RUN                                     the labels that `judgekit label RUN` wrote
  judgekit calibrate RUN --labels labels.csv --cluster-by metadata.document
  judgekit calibrate RUN --labels labels.csv --width 0.2     how many labels a narrower interval takes
  judgekit calibrate RUN --labels labels.csv --baseline RUN2 which of two judges is right more often

\b
A label is a score on the judge's scale, or yes or no. Files: one row a label with case_id, label and annotator, or
one column for each annotator; CSV, JSONL or JSON. Nothing is asked of a model.
"""

LABEL_EPILOG = """\b
Examples:
  judgekit label RUN --judge correctness --annotator ida       fifty random cases, one after the other
  judgekit label RUN --judge correctness --annotator ida       again: goes on where it was left
  judgekit label RUN --judge correctness --export sheet.csv    the same cases, for a spreadsheet program
  judgekit label RUN --import sheet.csv --annotator tom        what came back
  judgekit calibrate RUN                                       what the labels say of the judge

\b
What the judge said is never shown. Keys: a score or y/n, s skip, b back, ? what the scores mean, q quit.
"""

AnyJudge = Annotated[str | None, typer.Option("--judge", help="The judge that it is about; default: the only one.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("calibrate", epilog=CALIBRATE_EPILOG)(calibrate_command)
    app.command("label", epilog=LABEL_EPILOG)(label_command)


def calibrate_command(
    run: Run,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="File of human labels; default: labels.jsonl of the run.")
    ] = None,
    judge: AnyJudge = None,
    cluster_by: Annotated[
        str | None, typer.Option("--cluster-by", help="Field whose cases may be alike: question, category, metadata.x.")
    ] = None,
    width: Annotated[
        float | None, typer.Option("--width", help="Say how many labels an interval of this width takes.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="Another run, whose verdicts are the baseline.")
    ] = None,
    scores_are: Annotated[
        str | None, typer.Option("--scores-are", help="What 0 and 1 among the labels are: scores, or pass (and fail).")
    ] = None,
    results_dir: ResultsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Hold the judges of a run against human labels, and write what comes out into the run."""
    from judgekit.cli.progress import ProgressObserver
    from judgekit.reports.calibration_report import calibration_lines
    from judgekit.workflows.calibrate import CalibrationWanted, calibrate
    from judgekit.workflows.models import Options

    with reported(debug=debug):
        wanted = CalibrationWanted(labels, judge, cluster_by, width, baseline, scores_are)
        options = Options(results_dir=results_dir)
        folder, found = calibrate(run, wanted, options, ProgressObserver(quiet=False))
        if as_json:
            print_json(found)
        else:
            typer.echo("\n".join([*calibration_lines(found["judges"]), str(folder)]))


def label_command(
    run: Run,
    judge: AnyJudge = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Cases to draw; default: 50.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the order; default: the config's.")] = None,
    annotator: Annotated[str | None, typer.Option("--annotator", help="Who labels; default: the user's name.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File of labels; default: labels.jsonl of the run.")] = None,
    export: Annotated[Path | None, typer.Option("--export", help="Write the cases as CSV instead.")] = None,
    imported: Annotated[Path | None, typer.Option("--import", help="Take over the labels of such a CSV.")] = None,
    results_dir: ResultsDir = None,
    debug: Debug = False,
) -> None:
    """Label a random sample of a run's answers, blind to what the judge said."""
    from judgekit.core.errors import ConfigError
    from judgekit.storage.label_sheets import write_sheet
    from judgekit.workflows.label import LabelWanted, import_sheet, open_labels
    from judgekit.workflows.models import Options

    options = Options(results_dir=results_dir)
    who = (annotator or "").strip() or _user()
    with reported(debug=debug, resume_hint="what was labelled is kept; the same command goes on"):
        wanted = LabelWanted(judge, n, seed, who, out)
        if export is not None and imported is not None:
            raise ConfigError("--export and --import are two steps; give one of them")
        if imported is not None:
            found = import_sheet(run, imported, wanted, options, named=annotator is not None)
            for problem in found.problems:
                say(f"note: {problem}")
            counts = found.counts
            typer.echo(
                f"labels taken over: {counts['new']}; revised: {counts['revised']}; known already: {counts['same']}; "
                f"rows without a label: {found.n_blank}"
            )
            _print_next(run, found.path, found.judge)
            return
        labelling = open_labels(run, wanted, options)
        for note in labelling.notes:
            say(f"note: {note}")
        if export is not None:
            write_sheet(export, labelling.sheet, labelling.items)
            typer.echo(f"{len(labelling.items)} cases: {export}")
            return
        _label(labelling)
        _print_next(run, labelling.path, labelling.sheet.judge)


def _user() -> str:
    import getpass

    from judgekit.core.human_labels import SOLE_ANNOTATOR

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return SOLE_ANNOTATOR


def _label(labelling: "Labelling") -> None:
    """Case by case until the end, `q`, or the end of what is typed."""
    import sys

    from judgekit.reports.label_text import case_text, prompt_text, rubric_text
    from judgekit.reports.safe_text import printable
    from judgekit.workflows.label import Session

    journal = labelling.journal()
    try:
        session = Session(labelling, journal.keep)
        show = True
        while (item := session.current) is not None:
            if show:
                typer.echo(printable(case_text(item, session.place)))
            typer.echo(prompt_text(labelling.scale), nl=False)
            line = sys.stdin.readline()
            if not line:
                typer.echo("")
                break
            step = session.answer(line)
            if step == "quit":
                break
            if step == "help":
                typer.echo(printable(rubric_text(labelling.rubric)))
            if session.message:
                typer.echo(printable(session.message))
            show = step in ("labelled", "skipped", "back")
        typer.echo(f"{session.n_labelled} of {len(labelling.items)} labelled")
    finally:
        journal.close()


def _print_next(run: str, path: Path, judge: str) -> None:
    from judgekit.reports.safe_text import printable

    typer.echo(printable(f"{path}\nnext: judgekit calibrate {run} --judge {judge} --labels {path}"))
