"""Commands that compare judges with people: calibrate, label."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from judgekit.cli.commands import TRUST, Run, Shared, app, command, resumable, say

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
A label is a score on the judge's scale, yes or no, the name of one of its labels, or yes or no for each criterion.
Files: one row a label with case_id, label and annotator, or one column for each annotator (or criterion); CSV, JSONL
or JSON. Nothing is asked of a model.
"""

LABEL_EPILOG = """\b
Examples:
  judgekit label RUN --judge correctness --annotator ida       fifty random cases, one after the other
  judgekit label RUN --judge correctness --annotator ida       again: resumes where it was left
  judgekit label RUN --judge correctness --web                 on a page in the browser, also for several people
  judgekit label RUN --judge correctness --export sheet.csv    the same cases, for a spreadsheet program
  judgekit label RUN --import sheet.csv --annotator tom        what came back
  judgekit calibrate RUN                                       what the labels say of the judge

\b
What the judge said is never shown. Keys: a score, y/n, or the name or number of a label (criteria one after the
other: y/n), c cannot tell where the judge may say so, s skip, b back, ? what the verdicts mean, q quit.
"""

AnyJudge = Annotated[str | None, Option("--judge", help="The judge that it is about; default: the only one.")]


@command(app, "calibrate", panel=TRUST, json=True, stats=True, epilog=CALIBRATE_EPILOG)
def calibrate_command(
    shared: Shared,
    run: Run,
    labels: Annotated[
        Path | None, Option("--labels", help="File of human labels; default: labels.jsonl of the run.")
    ] = None,
    judge: AnyJudge = None,
    cluster_by: Annotated[
        str | None, Option("--cluster-by", help="Field whose cases may be alike: question, category, metadata.x.")
    ] = None,
    width: Annotated[
        float | None, Option("--width", help="Say how many labels an interval of this width takes.")
    ] = None,
    baseline: Annotated[str | None, Option("--baseline", help="Another run, whose verdicts are the baseline.")] = None,
    scores_are: Annotated[
        str | None, Option("--scores-are", help="What 0 and 1 among the labels are: scores, or pass (and fail).")
    ] = None,
) -> None:
    """Compare the judges of a run with human labels. The result is written into the run."""
    from judgekit.cli.progress import ProgressObserver
    from judgekit.reports.calibration_report import calibration_document, calibration_lines
    from judgekit.workflows.calibrate import CalibrationWanted, calibrate

    wanted = CalibrationWanted(labels, judge, cluster_by, width, baseline, scores_are)
    folder, found = calibrate(run, wanted, shared.options(), ProgressObserver(quiet=False))
    shared.show(
        calibration_document(found), lambda: "\n".join([*calibration_lines(found, stats=shared.stats), str(folder)])
    )


@command(app, "label", panel=TRUST, epilog=LABEL_EPILOG)
def label_command(
    shared: Shared,
    run: Run,
    judge: AnyJudge = None,
    n: Annotated[int | None, Option("--n", min=1, help="Cases to draw; default: 50.")] = None,
    seed: Annotated[int | None, Option("--seed", help="Of the order; default: the config's.")] = None,
    annotator: Annotated[str | None, Option("--annotator", help="Who labels; default: the user's name.")] = None,
    out: Annotated[Path | None, Option("--out", help="File of labels; default: labels.jsonl of the run.")] = None,
    export: Annotated[Path | None, Option("--export", help="Write the cases as CSV instead.")] = None,
    imported: Annotated[Path | None, Option("--import", help="Take over the labels of such a CSV.")] = None,
    web: Annotated[bool, Option("--web", help="Label on a page in the browser, on this machine only.")] = False,
    port: Annotated[int, Option("--port", min=0, max=65535, help="Port of the page; 0 takes a free one.")] = 0,
    no_open: Annotated[bool, Option("--no-open", help="With --web: do not start a browser.")] = False,
) -> None:
    """Label a random sample of answers, blind to the judge."""
    from judgekit.core.errors import ConfigError
    from judgekit.storage.label_sheets import write_sheet
    from judgekit.workflows.label import LabelWanted, import_sheet, open_labels

    options = shared.options()
    wanted = LabelWanted(judge, n, seed, (annotator or "").strip() or _user(), out)
    if sum([export is not None, imported is not None, web]) > 1:
        raise ConfigError("--export, --import and --web are ways to label; give one of them")
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
        write_sheet(export, labelling.sheet, labelling.items, labelling.kind)
        typer.echo(f"{len(labelling.items)} cases: {export}")
        return
    with resumable("what was labelled is kept; the same command resumes"):
        if web:
            _label_on_page(labelling, port, browser=not no_open)
        else:
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
    from judgekit.workflows.label_session import Session

    journal = labelling.journal()
    try:
        session = Session(labelling, journal.keep)
        show = True
        while (item := session.current) is not None:
            if show:
                typer.echo(printable(case_text(item, session.place)))
            asked = prompt_text(labelling.ask, labelling.kind, labelling.meanings, session.criterion)
            typer.echo(printable(asked), nl=False)
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


def _label_on_page(labelling: "Labelling", port: int, *, browser: bool) -> None:
    """On a page, until Ctrl-C. The token is new each time, so that an old address opens nothing."""
    import secrets

    from judgekit.cli.serving import serve
    from judgekit.workflows.label_web import LabelDesk, open_desk

    token = secrets.token_urlsafe(32)
    desk = LabelDesk(labelling)
    try:
        with open_desk(desk, port, token) as server:
            serve(server, f"/?token={token}", browser=browser)
        typer.echo(f"{desk.n_labelled} of {len(labelling.items)} labelled")
    finally:
        desk.close()


def _print_next(run: str, path: Path, judge: str) -> None:
    from judgekit.reports.safe_text import printable

    typer.echo(printable(f"{path}\nnext: judgekit calibrate {run} --judge {judge} --labels {path}"))
