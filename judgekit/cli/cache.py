"""Commands around the reply cache: stats, verify, why, export, import, clear."""

from pathlib import Path
from typing import Annotated

import typer

from judgekit.cli.outcome import print_json, reported, say

ResultsDir = Annotated[
    Path | None, typer.Option("--results-dir", help="Folder of runs, which holds the cache; default: results.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout and nothing else there.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]

WHY_EPILOG = """\b
Examples:
  judgekit cache why demo-20260131-142501-3f9a case-17
  judgekit cache why results/demo-20260131-142501-3f9a case-17 --judge groundedness
  judgekit cache why demo-20260131-142501-3f9a case-17 other-config.json
"""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    group = typer.Typer(
        help="Look into the cache of replies, explain it, carry it elsewhere, empty it.",
        epilog="Example:  judgekit cache stats",
        rich_markup_mode=None,
        no_args_is_help=True,
    )
    group.command("stats", epilog="Example:  judgekit cache stats --json")(stats_command)
    group.command("verify", epilog="Example:  judgekit cache verify --delete")(verify_command)
    group.command("why", epilog=WHY_EPILOG)(why_command)
    group.command("export", epilog="Example:  judgekit cache export replies.jsonl")(export_command)
    group.command("import", epilog="Example:  judgekit cache import replies.jsonl")(import_command)
    group.command("clear", epilog="Example:  judgekit cache clear --old --yes")(clear_command)
    app.add_typer(group, name="cache")


def stats_command(results_dir: ResultsDir = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Count entries: replies, what probes found out, other key versions, damage, bytes on disk."""
    from judgekit.reports.cache_text import stats_text
    from judgekit.storage.cache_entries import cache_record, open_reader

    with reported(debug=debug):
        folder = _folder(results_dir)
        reader = open_reader(folder)
        if reader is None:
            if as_json:
                print_json({"path": str(folder), "exists": False})
            else:
                typer.echo(f"no cache at {folder}")
            return
        with reader:
            record = cache_record(reader)
        if as_json:
            print_json(record)
        else:
            typer.echo(stats_text(record))


def verify_command(
    delete: Annotated[bool, typer.Option("--delete", help="Drop damaged entries; they are asked again.")] = False,
    results_dir: ResultsDir = None,
    debug: Debug = False,
) -> None:
    """Check the checksum of every entry and list the damaged ones; exit code 4 where there are any left."""
    from judgekit.core.errors import StorageError
    from judgekit.storage.cache_entries import drop_rows, open_reader

    with reported(debug=debug):
        folder = _folder(results_dir)
        reader = open_reader(folder)
        if reader is None:
            typer.echo(f"no cache at {folder}")
            return
        damaged, n_entries = [], 0
        with reader:
            for entry in reader.entries():
                n_entries += 1
                if entry.text is None:
                    damaged.append(entry.row)
                    _print_line(f"damaged: {entry.key}")
        if damaged and delete:
            typer.echo(f"{folder}: dropped {drop_rows(folder, damaged):,} damaged of {n_entries:,} entries")
        elif damaged:
            raise StorageError(
                f"{folder}: {len(damaged):,} of {n_entries:,} entries are damaged; runs ask them again, "
                "`judgekit cache verify --delete` drops them"
            )
        else:
            typer.echo(f"{folder}: all {n_entries:,} entries are sound")


def why_command(
    run: Annotated[str, typer.Argument(help="Run id or its beginning, folder, `latest`, or `latest:TAG`.")],
    case: Annotated[str, typer.Argument(help="Id of a case.")],
    config: Annotated[
        str | None, typer.Argument(help="Compare with this config; default: that of the run, as it is now.")
    ] = None,
    judge: Annotated[str | None, typer.Option("--judge", help="Explain this judge only.")] = None,
    ask_server: Annotated[
        bool, typer.Option("--ask-server", help="Ask an unpinned server for its build; no model is called.")
    ] = False,
    results_dir: ResultsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Say why a case of a run would be answered from the cache now, or why not: which part of its key changed."""
    from judgekit.executors.local import run_local
    from judgekit.reports.cache_text import why_text
    from judgekit.workflows.cache_why import WhyTarget, explain_case
    from judgekit.workflows.models import Options
    from judgekit.workflows.selectors import config_path_of

    with reported(debug=debug):
        path = config_path_of(config) if config is not None else None
        target = WhyTarget(run, case, judge, path, asks_server=ask_server)
        records = run_local(lambda: explain_case(target, Options(results_dir=results_dir)))
        if as_json:
            print_json(records)
        else:
            typer.echo(why_text(records))


def export_command(
    file: Annotated[Path, typer.Argument(help="New file to write, JSONL.")],
    results_dir: ResultsDir = None,
    debug: Debug = False,
) -> None:
    """Write every sound reply as a line {"key", "reply", "checksum"}."""
    from judgekit.core.errors import ConfigError
    from judgekit.storage.cache_entries import open_reader
    from judgekit.storage.cache_transfer import export_entries

    with reported(debug=debug):
        folder = _folder(results_dir)
        reader = open_reader(folder)
        if reader is None:
            raise ConfigError(f"no cache at {folder}, nothing to export; --results-dir names another folder of runs")
        with reader:
            counts = export_entries(reader, file)
        typer.echo(
            f"{file}: {counts['n_exported']:,} replies; left out: {counts['n_damaged']:,} damaged, "
            f"{counts['n_other_versions']:,} of other key versions"
        )


def import_command(
    file: Annotated[Path, typer.Argument(help="A file that `judgekit cache export` wrote.")],
    results_dir: ResultsDir = None,
    debug: Debug = False,
) -> None:
    """Add exported replies; all of the file is checked before any is stored."""
    from judgekit.storage.cache_transfer import import_entries

    with reported(debug=debug):
        folder = _folder(results_dir)
        counts = import_entries(folder, file)
        typer.echo(
            f"{folder}: {counts['n_imported']:,} replies imported; {counts['n_already_there']:,} were there already, "
            f"{counts['n_other_versions']:,} of other key versions left out"
        )


def clear_command(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    old: Annotated[bool, typer.Option("--old", help="Drop only entries of other key versions.")] = False,
    results_dir: ResultsDir = None,
    debug: Debug = False,
) -> None:
    """Drop everything that is cached; the next run asks again."""
    import sys

    from judgekit.core.cache_keys import is_current
    from judgekit.core.errors import ConfigError
    from judgekit.storage.cache_entries import drop_rows, open_reader

    with reported(debug=debug):
        folder = _folder(results_dir)
        reader = open_reader(folder)
        if reader is None:
            typer.echo(f"no cache at {folder}")
            return
        with reader:
            rows = [entry.row for entry in reader.entries() if not (old and is_current(entry.key))]
        what = f"{len(rows):,} entries{' of other key versions' if old else ''}"
        if rows and not yes:
            if not sys.stdin.isatty():
                raise ConfigError(f"{folder}: would drop {what}; say --yes where nobody can be asked")
            if not typer.confirm(f"{folder}: drop {what}?", err=True):
                say("nothing was dropped")
                return
        drop_rows(folder, rows)
        typer.echo(f"{folder}: dropped {what}")


def _folder(results_dir: Path | None) -> Path:
    from judgekit.workflows.selectors import cache_folder

    return cache_folder(results_dir)


def _print_line(text: str) -> None:
    from judgekit.reports.safe_text import printable

    typer.echo(printable(text))
