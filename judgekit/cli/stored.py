"""Commands around stored runs: runs list, show, tag, delete, reindex; rescore."""

from pathlib import Path
from typing import Annotated, Any

import typer

from judgekit.cli.outcome import print_json, reported, say

ResultsDir = Annotated[Path | None, typer.Option("--results-dir", help="Folder of runs; default: results.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout and nothing else there.")]
Run = Annotated[str, typer.Argument(help="Run id or its beginning, folder, `latest`, or `latest:TAG`.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]

RESCORE_EPILOG = """\b
Examples:
  judgekit rescore demo-20260131-142501-3f9a
  judgekit rescore latest latest:baseline
  judgekit rescore --all
"""


TREND_EPILOG = """\b
Examples:
  judgekit runs trend hallucination_rate_unanswerable
  judgekit runs trend groundedness --suite support-bot --tag nightly --svg trend.svg
"""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    group = typer.Typer(
        help="List stored runs, show, tag and delete them, and build their index anew.",
        epilog="Example:  judgekit runs list --tag baseline",
        rich_markup_mode=None,
        no_args_is_help=True,
    )
    group.command("list", epilog="Example:  judgekit runs list --suite demo --limit 5")(list_command)
    group.command("show", epilog="Example:  judgekit runs show latest:baseline")(show_command)
    group.command("trend", epilog=TREND_EPILOG)(trend_command)
    group.command("tag", epilog="Example:  judgekit runs tag latest baseline")(tag_command)
    group.command("delete", epilog="Example:  judgekit runs delete demo-20260131-142501-3f9a --yes")(delete_command)
    group.command("reindex", epilog="Example:  judgekit runs reindex")(reindex_command)
    app.add_typer(group, name="runs")
    app.command("rescore", epilog=RESCORE_EPILOG)(rescore_command)


def list_command(
    suite: Annotated[str | None, typer.Option("--suite", help="Runs of this suite only.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Runs with this tag only.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="The newest N only.")] = None,
    results_dir: ResultsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List stored runs, the newest first, with the figures that are read first."""
    from judgekit.core.runs import AGGREGATE_NAMES
    from judgekit.reports.run_text import RunRow, runs_text
    from judgekit.workflows.stored_runs import listed_runs

    with reported(debug=debug):
        found = listed_runs(_options(results_dir), suite=suite, tag=tag, limit=limit)
        if found.n_not_indexed:
            runs = "1 run" if found.n_not_indexed == 1 else f"{found.n_not_indexed} runs"
            say(f"note: {runs} in {found.results_dir} not in the results database; `judgekit runs reindex` adds them")
        if as_json:
            shown = {"aggregate_names": AGGREGATE_NAMES}
            listed = [{**vars(run), **shown, "n_cases_in_file": found.n_in_file.get(run.run_id)} for run in found.runs]
            print_json([{**row, "folder_exists": row["run_id"] in found.there} for row in listed])
            return
        rows = [
            RunRow(
                run_id=run.run_id,
                suite=run.suite,
                created_at=run.created_at,
                status=run.status,
                n_cases=run.n_cases,
                n_in_file=found.n_in_file.get(run.run_id),
                figures=run.figures,
                tags=run.tags,
                is_there=run.run_id in found.there,
            )
            for run in found.runs
        ]
        typer.echo(runs_text(rows))


def show_command(run: Run, results_dir: ResultsDir = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Show the figures of a stored run, from its metrics.json."""
    import sys

    from judgekit.reports.run_text import plain_text, rich_table
    from judgekit.reports.safe_text import printable
    from judgekit.workflows.stored_runs import shown_run

    with reported(debug=debug):
        shown = shown_run(run, _options(results_dir))
        if as_json:
            document = {"run_id": shown.summary.run_id, "run_dir": str(shown.path), "status": shown.summary.status}
            print_json({**document, "tags": shown.tags, "metrics": shown.metrics})
            return
        if sys.stdout.isatty():
            from rich.console import Console

            Console().print(rich_table(shown.summary))
        else:
            typer.echo(plain_text(shown.summary))
        if shown.tags:
            typer.echo(f"tags: {', '.join(shown.tags)}")
        if shown.note is not None:
            typer.echo(shown.note)
        typer.echo(printable(f"\n{shown.path}").strip("\n"))


def trend_command(
    metric: Annotated[str, typer.Argument(help="Figure of metrics.json, such as recall_any@5.")],
    suite: Annotated[
        str | None, typer.Option("--suite", help="Runs of this suite; default: that of the newest run with the figure.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Runs with this tag only.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="The newest N only.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write the figure over the runs as SVG.")] = None,
    results_dir: ResultsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show a figure over the runs of a suite, with intervals, and where data or judge changed in between."""
    from judgekit.reports.timelines import trend_svg, trend_text
    from judgekit.workflows.drift import write_svg
    from judgekit.workflows.trends import TrendQuery, find_trend

    with reported(debug=debug):
        found = find_trend(TrendQuery(metric, suite, tag, limit), _options(results_dir))
        document = found.trend.document()
        if found.other_suites:
            others = ", ".join(found.other_suites)
            say(f"note: runs of {found.trend.suite} only; --suite shows those of {others}")
        if svg is not None:
            write_svg(svg, trend_svg(document))
            say(f"wrote {svg}")
        if as_json:
            print_json(document)
        else:
            typer.echo(trend_text(document))


def tag_command(
    run: Run,
    name: Annotated[str, typer.Argument(help="Tag: letters, digits, '.', '_' and '-'.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take the tag off.")] = False,
    results_dir: ResultsDir = None,
    debug: Debug = False,
) -> None:
    """Tag a run, so that it can be named as `latest:TAG`; tags stand in its folder."""
    from judgekit.workflows.stored_runs import tag_run

    with reported(debug=debug):
        path, tags, notices = tag_run(run, name, _options(results_dir), remove=remove)
        _say_notices(notices)
        typer.echo(f"{path.name}: {', '.join(tags) or 'no tags'}")


def delete_command(
    run: Run,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    results_dir: ResultsDir = None,
    debug: Debug = False,
) -> None:
    """Delete a run: its folder, and its entry in the results database. Refused while a process writes it."""
    import sys

    from judgekit.core.errors import ConfigError
    from judgekit.workflows.stored_runs import delete_run

    def agreed(what: str) -> bool:
        if yes:
            return True
        if not sys.stdin.isatty():
            raise ConfigError(f"would {what}; say --yes where nobody can be asked")
        return typer.confirm(f"{what}?", err=True)

    with reported(debug=debug):
        deleted = delete_run(run, _options(results_dir), agreed)
        if deleted is None:
            say("nothing was deleted")
            return
        path, notices = deleted
        _say_notices(notices)
        typer.echo(f"deleted {path}")


def reindex_command(results_dir: ResultsDir = None, debug: Debug = False) -> None:
    """Build the results database anew from the run folders; damaged folders are named and left out."""
    from judgekit.workflows.stored_runs import reindex_runs

    with reported(debug=debug):
        done = reindex_runs(_options(results_dir))
        for line in done.skipped:
            say(f"skipped: {line}")
        if done.set_aside is not None:
            say(f"note: the database was damaged and is set aside as {done.set_aside}")
        parts = [f"runs indexed: {done.n_indexed}"]
        parts += [f"entries without a run dropped: {done.n_dropped}"] if done.n_dropped else []
        parts += [f"folders skipped: {len(done.skipped)}"] if done.skipped else []
        typer.echo("; ".join(parts))


def rescore_command(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Run ids or their beginnings, folders, `latest`, `latest:TAG`.")
    ] = None,
    all_runs: Annotated[bool, typer.Option("--all", help="Every run of the folder of runs.")] = False,
    results_dir: ResultsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Calculate scores and figures of stored runs anew, from their folders alone; stored verdicts are kept."""
    from judgekit.core.errors import ConfigError, JudgekitError
    from judgekit.reports.run_text import rescored_text
    from judgekit.workflows.rescore import rescore
    from judgekit.workflows.stored_runs import all_runs_of

    with reported(debug=debug):
        options = _options(results_dir)
        if bool(runs) == all_runs:
            raise ConfigError("name runs, such as `judgekit rescore latest`, or say --all, and not both")
        results, errors = [], []
        for run in all_runs_of(options) if all_runs else runs or []:
            try:
                result = rescore(run, options)
            except JudgekitError as error:
                if not all_runs:
                    raise
                errors.append(error)
                say(f"skipped: {error}")
                continue
            results.append(result)
            if not as_json:
                typer.echo(rescored_text(result.document()))
        if as_json:
            print_json([result.document() for result in results])
        if errors:
            raise typer.Exit(max(error.exit_code for error in errors))
        if any(not gate.passed for result in results for gate in result.summary.gates):
            raise typer.Exit(1)


def _options(results_dir: Path | None) -> Any:
    from judgekit.workflows.models import Options

    return Options(results_dir=results_dir)


def _say_notices(notices: Any) -> None:
    for code, message in notices:
        say(f"warning: {message} [{code}]")
