"""Commands around stored runs: runs list, show, trend, tag, delete, reindex."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from judgekit.cli.commands import (
    LOOK,
    Run,
    Shared,
    app,
    command,
    confirmed,
    print_figures,
    print_json,
    say,
    say_notices,
)

TREND_EPILOG = """\b
Examples:
  judgekit runs trend hallucination_rate_unanswerable
  judgekit runs trend groundedness --suite support-bot --tag nightly --svg trend.svg
"""

runs = typer.Typer(
    help="List, show, tag and delete stored runs; rebuild their index.",
    epilog="Example:  judgekit runs list --tag baseline",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.add_typer(runs, name="runs", rich_help_panel=LOOK)

Tagged = Annotated[str | None, Option("--tag", help="Runs with this tag only.")]
Newest = Annotated[int | None, Option("--limit", min=1, help="The newest N only.")]


@command(runs, "list", json=True, epilog="Example:  judgekit runs list --suite demo --limit 5")
def list_command(
    shared: Shared,
    suite: Annotated[str | None, Option("--suite", help="Runs of this suite only.")] = None,
    tag: Tagged = None,
    limit: Newest = None,
) -> None:
    """List stored runs, the newest first. With the figures that are read first."""
    from judgekit.reports.run_text import runs_text
    from judgekit.workflows.stored_runs import listed_runs

    rows, note = listed_runs(shared.options(), suite=suite, tag=tag, limit=limit)
    if note is not None:
        say(f"note: {note}")
    shared.show(rows, lambda: runs_text(rows))


@command(runs, "show", json=True, stats=True, epilog="Example:  judgekit runs show latest:baseline")
def show_command(shared: Shared, run: Run) -> None:
    """Show the figures of a stored run, from its metrics.json."""
    from judgekit.reports.run_text import plain_text, rich_table
    from judgekit.reports.safe_text import printable
    from judgekit.workflows.stored_runs import shown_run

    document, summary, note = shown_run(run, shared.options())
    if shared.as_json:
        print_json(document)
        return
    print_figures(rich_table, plain_text, summary, stats=shared.stats)
    if document["tags"]:
        typer.echo(f"tags: {', '.join(document['tags'])}")
    if note is not None:
        typer.echo(note)
    typer.echo(printable(f"\n{document['run_dir']}").strip("\n"))


@command(runs, "trend", json=True, epilog=TREND_EPILOG)
def trend_command(
    shared: Shared,
    metric: Annotated[str, Argument(help="Figure of metrics.json, such as recall_any@5.")],
    suite: Annotated[
        str | None, Option("--suite", help="Runs of this suite; default: that of the newest run with the figure.")
    ] = None,
    tag: Tagged = None,
    limit: Newest = None,
    svg: Annotated[Path | None, Option("--svg", help="Write the figure over the runs as SVG.")] = None,
) -> None:
    """Show a figure over the runs of a suite, with intervals. Where data or judge changed in between is marked."""
    from judgekit.reports.timelines import trend_svg, trend_text
    from judgekit.workflows.drift import write_svg
    from judgekit.workflows.trend import TrendQuery, find_trend

    found = find_trend(TrendQuery(metric, suite, tag, limit), shared.options())
    document = found.trend.document()
    if found.other_suites:
        others = ", ".join(found.other_suites)
        say(f"note: runs of {found.trend.suite} only; --suite shows those of {others}")
    if svg is not None:
        write_svg(svg, trend_svg(document))
        say(f"wrote {svg}")
    shared.show(document, lambda: trend_text(document))


@command(runs, "tag", epilog="Example:  judgekit runs tag latest baseline")
def tag_command(
    shared: Shared,
    run: Run,
    name: Annotated[str, Argument(help="Tag: letters, digits, '.', '_' and '-'.")],
    remove: Annotated[bool, Option("--remove", help="Take the tag off.")] = False,
) -> None:
    """Tag a run, so that you can name it as `latest:TAG`. Tags are kept in its folder."""
    from judgekit.workflows.stored_runs import tag_run

    path, tags, notices = tag_run(run, name, shared.options(), remove=remove)
    say_notices(notices)
    typer.echo(f"{path.name}: {', '.join(tags) or 'no tags'}")


@command(runs, "delete", epilog="Example:  judgekit runs delete demo-20260131-142501-3f9a --yes")
def delete_command(
    shared: Shared, run: Run, yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False
) -> None:
    """Delete a run: its folder and its entry in the database. Refused while a process writes it."""
    from judgekit.workflows.stored_runs import delete_run

    deleted = delete_run(run, shared.options(), lambda what: confirmed(what, f"would {what}", yes=yes))
    if deleted is None:
        say("nothing was deleted")
        return
    path, notices = deleted
    say_notices(notices)
    typer.echo(f"deleted {path}")


@command(runs, "reindex", epilog="Example:  judgekit runs reindex")
def reindex_command(shared: Shared) -> None:
    """Rebuild the results database from the run folders. Damaged folders are named and left out."""
    from judgekit.workflows.stored_runs import reindex_runs

    done = reindex_runs(shared.options())
    for line in done.skipped:
        say(f"skipped: {line}")
    if done.set_aside is not None:
        say(f"note: the database was damaged and is set aside as {done.set_aside}")
    parts = [f"runs indexed: {done.n_indexed}"]
    parts += [f"entries without a run dropped: {done.n_dropped}"] if done.n_dropped else []
    parts += [f"folders skipped: {len(done.skipped)}"] if done.skipped else []
    typer.echo("; ".join(parts))
