"""Commands around the reply cache: cache stats, verify, why, export, import, clear."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from judgekit.cli.commands import CACHE, Run, Shared, app, command, confirmed, say

if TYPE_CHECKING:
    from judgekit.storage.cache_entries import CacheReader

WHY_EPILOG = """\b
Examples:
  judgekit cache why demo-20260131-142501-3f9a case-17
  judgekit cache why results/demo-20260131-142501-3f9a case-17 --judge groundedness
  judgekit cache why demo-20260131-142501-3f9a case-17 other-config.json
"""

cache = typer.Typer(
    help="Explain, check, carry elsewhere or empty the cache of replies.",
    epilog="Example:  judgekit cache stats",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.add_typer(cache, name="cache", rich_help_panel=CACHE)


@command(cache, "stats", json=True, epilog="Example:  judgekit cache stats --json")
def stats_command(shared: Shared) -> None:
    """Count replies, capabilities, old versions and damage. The bytes on disk are counted too."""
    from judgekit.reports.cache_text import stats_text
    from judgekit.storage.cache_entries import cache_record, open_reader

    folder = _folder(shared)
    reader = open_reader(folder)
    if reader is None:
        shared.show({"path": str(folder), "exists": False}, lambda: f"no cache at {folder}")
        return
    with reader:
        record = cache_record(reader)
    shared.show(record, lambda: stats_text(record))


@command(cache, "verify", epilog="Example:  judgekit cache verify --delete")
def verify_command(
    shared: Shared,
    delete: Annotated[bool, Option("--delete", help="Drop damaged entries; they are asked again.")] = False,
) -> None:
    """Check the checksum of every entry, list the damaged ones. Exit code 4 if any are left."""
    from judgekit.core.errors import StorageError
    from judgekit.reports.safe_text import printable
    from judgekit.storage.cache_entries import drop_rows

    reader = _reader(shared)
    if reader is None:
        return
    folder, damaged, n_entries = reader.folder, [], 0
    with reader:
        for entry in reader.entries():
            n_entries += 1
            if entry.text is None:
                damaged.append(entry.row)
                typer.echo(printable(f"damaged: {entry.key}"))
    if damaged and delete:
        typer.echo(f"{folder}: dropped {drop_rows(folder, damaged):,} damaged of {n_entries:,} entries")
    elif damaged:
        raise StorageError(
            f"{folder}: {len(damaged):,} of {n_entries:,} entries are damaged; runs ask them again, "
            "`judgekit cache verify --delete` drops them"
        )
    else:
        typer.echo(f"{folder}: all {n_entries:,} entries are sound")


@command(cache, "why", json=True, epilog=WHY_EPILOG)
def why_command(
    shared: Shared,
    run: Run,
    case: Annotated[str, Argument(help="Id of a case.")],
    config: Annotated[
        str | None, Argument(help="Compare with this config; default: that of the run, as it is now.")
    ] = None,
    judge: Annotated[str | None, Option("--judge", help="Explain this judge only.")] = None,
    ask_server: Annotated[
        bool, Option("--ask-server", help="Ask an unpinned server for its build; no model is called.")
    ] = False,
) -> None:
    """Say why the cache would answer a case of a run now, or not. It names the part of the key that changed."""
    from judgekit.executors.event_loop import run_local
    from judgekit.reports.cache_text import why_text
    from judgekit.workflows.cache_why import WhyTarget, explain_case
    from judgekit.workflows.selectors import config_path_of

    path = config_path_of(config) if config is not None else None
    target = WhyTarget(run, case, judge, path, asks_server=ask_server)
    records = run_local(lambda: explain_case(target, shared.options()))
    shared.show(records, lambda: why_text(records))


@command(cache, "export", epilog="Example:  judgekit cache export replies.jsonl")
def export_command(shared: Shared, file: Annotated[Path, Argument(help="New file to write, JSONL.")]) -> None:
    """Write every sound reply as a line {"key", "reply", "checksum"}."""
    from judgekit.core.errors import ConfigError
    from judgekit.storage.cache_entries import open_reader
    from judgekit.storage.cache_transfer import export_entries

    folder = _folder(shared)
    reader = open_reader(folder)
    if reader is None:
        raise ConfigError(f"no cache at {folder}, nothing to export; --results-dir names another folder of runs")
    with reader:
        counts = export_entries(reader, file)
    typer.echo(
        f"{file}: {counts['n_exported']:,} replies; left out: {counts['n_damaged']:,} damaged, "
        f"{counts['n_other_versions']:,} of other key versions"
    )


@command(cache, "import", epilog="Example:  judgekit cache import replies.jsonl")
def import_command(
    shared: Shared, file: Annotated[Path, Argument(help="A file that `judgekit cache export` wrote.")]
) -> None:
    """Add exported replies. All of the file is checked before any is stored."""
    from judgekit.storage.cache_transfer import import_entries

    folder = _folder(shared)
    counts = import_entries(folder, file)
    typer.echo(
        f"{folder}: {counts['n_imported']:,} replies imported; {counts['n_already_there']:,} were there already, "
        f"{counts['n_other_versions']:,} of other key versions left out"
    )


@command(cache, "clear", epilog="Example:  judgekit cache clear --old --yes")
def clear_command(
    shared: Shared,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    old: Annotated[bool, Option("--old", help="Drop only entries of other key versions.")] = False,
) -> None:
    """Drop everything that is cached; the next run asks again."""
    from judgekit.core.cache_keys import is_current
    from judgekit.storage.cache_entries import drop_rows

    reader = _reader(shared)
    if reader is None:
        return
    folder = reader.folder
    with reader:
        rows = [entry.row for entry in reader.entries() if not (old and is_current(entry.key))]
    what = f"{len(rows):,} entries{' of other key versions' if old else ''}"
    if rows and not confirmed(f"{folder}: drop {what}", f"{folder}: would drop {what}", yes=yes):
        say("nothing was dropped")
        return
    drop_rows(folder, rows)
    typer.echo(f"{folder}: dropped {what}")


def _reader(shared: Shared) -> "CacheReader | None":
    """The cache for reading; None if there is none, which is printed."""
    from judgekit.storage.cache_entries import open_reader

    folder = _folder(shared)
    reader = open_reader(folder)
    if reader is None:
        typer.echo(f"no cache at {folder}")
    return reader


def _folder(shared: Shared) -> Path:
    from judgekit.workflows.selectors import cache_folder

    return cache_folder(shared.options().results_dir)
