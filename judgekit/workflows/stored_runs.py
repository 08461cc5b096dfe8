"""What the commands of `judgekit runs` do with the results database and the run folders beside it."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judgekit.core.errors import ConfigError, JudgekitError, StorageError
from judgekit.core.runs import AGGREGATE_NAMES, MANIFEST, METRICS, Manifest, RunSummary
from judgekit.storage.database import DATABASE, Database
from judgekit.storage.remote_runs import delete_run as delete_run_elsewhere
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import Reindexed, put_folder, reindex, run_folders
from judgekit.storage.run_list import cases_in_file
from judgekit.storage.run_records import TAG, read_summary, read_tags, write_tags
from judgekit.workflows.closing import INDEX_SECONDS
from judgekit.workflows.models import Options
from judgekit.workflows.selectors import find_run

SCHEMA_VERSION = 1
"""Newest version of metrics.json that can be read."""

Notices = Sequence[tuple[str, str]]


def runs_dir(options: Options) -> Path:
    """The folder of runs."""
    return options.results_dir or Path("results")


def listed_runs(
    options: Options, *, suite: str | None, tag: str | None, limit: int | None
) -> tuple[list[dict[str, Any]], str | None]:
    """Runs as the database has them, the newest first, and whether it lacks some.

    Raises:
        ConfigError: there is no such folder of runs, or the database is of a newer judgekit.
        StorageError: the database cannot be read.
    """
    place = runs_dir(options)
    there = {path.name for path in run_folders(place) if (path / MANIFEST).is_file()}
    database = Database(place)
    rows = []
    for run in database.runs(suite, tag, limit):
        is_there = run.run_id in there
        n_in_file = cases_in_file(place / run.run_id) if is_there else None
        more = {"aggregate_names": AGGREGATE_NAMES, "n_cases_in_file": n_in_file, "folder_exists": is_there}
        rows.append({**vars(run), **more})
    n_missing = len(there - database.run_ids())
    if not n_missing:
        return rows, None
    n_runs = "1 run" if n_missing == 1 else f"{n_missing} runs"
    return rows, f"{n_runs} in {place} not in the results database; `judgekit runs reindex` adds them"


def shown_run(run: str, options: Options) -> tuple[dict[str, Any], RunSummary, str | None]:
    """A stored run.

    Returns:
        What `judgekit runs show --json` prints, the figures, and what to know about files that could not all be checked
        against the manifest.

    Raises:
        ConfigError: no such run, or it has no figures yet.
        StorageError: its files are damaged.
    """
    folder = RunFolder.open(find_run(run, options))
    metrics, summary = stored_figures(folder)
    document = {
        "run_id": summary.run_id,
        "run_dir": str(folder.path),
        "status": summary.status,
        "tags": read_tags(folder),
        "metrics": metrics,
    }
    return document, summary, _unchecked(folder.manifest())


def _unchecked(manifest: Manifest) -> str | None:
    if manifest.status != "complete":
        return None
    if manifest.changing:
        return (
            "files: a command is changing this run, or was stopped while it did; "
            f"if none is: judgekit rescore {manifest.run_id}"
        )
    return None if manifest.files else "files: not checked, since the run was written before manifests held hashes"


def stored_figures(folder: RunFolder) -> tuple[dict[str, Any], RunSummary]:
    """metrics.json as it is, and as the figures that it was written from.

    Raises:
        ConfigError: the run has none yet, or they are of a newer judgekit.
        StorageError: they are damaged.
    """
    metrics = folder.read_json(METRICS) if folder.has(METRICS) else {}
    version = metrics.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise ConfigError(
            f"{folder.path / METRICS}: written by a newer judgekit (schema {version}; this one reads up to "
            f"{SCHEMA_VERSION}); upgrade judgekit"
        )
    summary = read_summary(folder)
    if summary is None:
        raise ConfigError(
            f"{folder.path}: this run has no {METRICS} (status {folder.manifest().status}); resume it with "
            f"`judgekit run --resume {folder.path.name}`"
        )
    return metrics, summary


def tag_run(run: str, name: str, options: Options, *, remove: bool) -> tuple[Path, list[str], Notices]:
    """Put a tag on a run or take it off: in its folder first, then in the database.

    Returns:
        The folder, its tags now, and warnings.

    Raises:
        ConfigError: no such run, no such tag, or a name that no tag can have.
        StorageError: the folder cannot be written.
    """
    if not TAG.fullmatch(name):
        raise ConfigError(f"tag {name!r}: expected up to 100 letters, digits, '.', '_' and '-'")
    folder = RunFolder.open(find_run(run, options))
    tags = read_tags(folder)
    if remove and name not in tags:
        raise ConfigError(f"{folder.path}: has no tag {name!r}; it has: {', '.join(tags) or 'none'}")
    tags = [tag for tag in tags if tag != name] if remove else sorted({*tags, name})
    write_tags(folder, tags)
    database = Database(folder.path.parent, busy_seconds=INDEX_SECONDS)
    try:
        if not database.put_tags(folder.manifest().run_id, tags):
            put_folder(database, folder)
    except JudgekitError as error:
        return folder.path, tags, [("index_not_written", f"{error}; `judgekit runs reindex` adds the tag later")]
    return folder.path, tags, []


def delete_run(
    run: str, options: Options, agreed: Callable[[str], bool], busy_seconds: float = INDEX_SECONDS
) -> tuple[Path, Notices] | None:
    """Delete a run: out of sight first, so that a kill leaves no half run, then its files and its entry.

    Args:
        run: id or folder of the run.
        options: where runs are kept.
        agreed: asked whether to do it; told what is deleted.
        busy_seconds: how long to wait for a database that another process writes.

    Returns:
        The folder that was, and warnings; None if it was not agreed to.

    Raises:
        ConfigError: no such run.
        RunBusy: a process is writing it.
        StorageError: its manifest is damaged, or it cannot be deleted.
    """
    folder = RunFolder.open(find_run(run, options), check=False)
    path = folder.path
    if path.is_symlink():
        raise ConfigError(f"{path}: is a link; delete the run at the place it leads to")
    with folder.locked():
        sizes = [item.stat().st_size for item in path.rglob("*") if item.is_file()]
        run_id = folder.manifest().run_id
    tags = read_tags(folder)
    also = f"; tags {', '.join(tags)}" if tags else ""
    if not agreed(f"delete {path} ({len(sizes)} files, {sum(sizes) / 1e6:.1f} MB{also})"):
        return None
    hidden = path.with_name(f".deleted-{path.name}")
    with folder.locked():
        try:
            if hidden.exists():
                shutil.rmtree(hidden)
            path.rename(hidden)
        except OSError as error:
            raise StorageError(f"{path}: cannot be deleted: {error.strerror or error}") from None
    delete_run_elsewhere(path)
    notices = []
    try:
        shutil.rmtree(hidden)
    except OSError as error:
        notices.append(("files_left", f"{hidden}: cannot be removed: {error.strerror or error}; remove it by hand"))
    try:
        if (path.parent / DATABASE).exists():
            Database(path.parent, busy_seconds=busy_seconds).delete_run(run_id)
    except JudgekitError as error:
        notices.append(("index_not_written", f"{error}; `judgekit runs reindex` drops the entry later"))
    return path, notices


def reindex_runs(options: Options) -> Reindexed:
    """Build the database again from the folders.

    Raises:
        ConfigError: there is no such folder of runs, or the database is of a newer judgekit.
        StorageError: the database cannot be written.
    """
    place = runs_dir(options)
    return reindex(place, Database(place))


def all_runs_of(options: Options) -> list[str]:
    """Every run of the folder of runs, as a path.

    Raises:
        ConfigError: there is no such folder of runs.
    """
    return [str(path) for path in run_folders(runs_dir(options)) if (path / MANIFEST).is_file()]
