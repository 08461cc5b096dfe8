"""Keeps the results database in step with the run folders; what goes wrong is said and never costs a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from judgekit.core.errors import ConfigError, JudgekitError
from judgekit.core.history_points import HistoryPoint, dataset_sha256
from judgekit.core.runs import CONFIG, MANIFEST, Manifest, Notices
from judgekit.storage.database import Database, DatabaseFault, RunRecord
from judgekit.storage.remote_runs import fetch_list
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_records import case_results, run_record
from judgekit.storage.stored_history import append_point

BASELINE = "baseline"
"""Tag of the run that the coverage of later ones is held against."""

MOST_LOOKED_AT = 50
"""Earlier runs of a suite among which one of the same data set is looked for."""

_NEXT_STEP = "the run itself is whole; `judgekit runs reindex` adds it later"


@dataclass(frozen=True)
class JudgedBefore:
    """How many cases the judges of an earlier run gave a verdict on."""

    run_id: str
    n_judged: Mapping[str, int]
    """By judge."""


def index_run(folder: Path, busy_seconds: float | None = None) -> Notices:
    """Index a run as its folder is now; an older entry of it is replaced.

    Args:
        folder: of the run.
        busy_seconds: how long to wait for another process that writes; None: as the database does.

    Returns:
        What the reader of the run should know. The database can be rebuilt from the folders at any time, so nothing
        that goes wrong with it costs a run.
    """
    return _tried(folder, lambda database: put_folder(database, RunFolder(folder)), busy_seconds)


def add_point(folder: Path, point: HistoryPoint, busy_seconds: float | None = None) -> Notices:
    """Add a point to the history of a judge, in the folder of the run first and then in the database.

    Args and Returns as for `index_run`.

    Raises:
        StorageError: the folder cannot be written.
    """
    append_point(RunFolder(folder), point)

    def put(database: Database) -> None:
        if not database.put_point(point):
            put_folder(database, RunFolder(folder))

    return _tried(folder, put, busy_seconds)


def judged_before(
    folder: Path, manifest: Manifest, cases_sha256: str, busy_seconds: float | None = None
) -> JudgedBefore | None:
    """What the baseline of a run judged; None if there is none, or it cannot be read.

    The baseline is the newest complete run with the tag `baseline`, else the newest complete run, of the same suite
    and data set.
    """
    wanted = dataset_sha256(cases_sha256, manifest)
    with suppress(JudgekitError, OSError, ValueError):
        for path in _earlier(_database(folder, busy_seconds), folder, manifest):
            found = _judged(RunFolder(path), wanted)
            if found is not None:
                return found
    return None


def _earlier(database: Database, folder: Path, manifest: Manifest) -> Iterator[Path]:
    """Folders of earlier complete runs of the suite, those with the tag of a baseline first, then the newest."""
    for tag in (BASELINE, None):
        for run in database.runs(manifest.name, tag, MOST_LOOKED_AT):
            path = folder.parent / run.run_id
            is_earlier = run.run_id != manifest.run_id and run.created_at <= manifest.created_at
            if is_earlier and run.status == "complete" and (path / MANIFEST).is_file():
                yield path


def _database(folder: Path, busy_seconds: float | None) -> Database:
    return Database(folder.parent) if busy_seconds is None else Database(folder.parent, busy_seconds=busy_seconds)


def _tried(folder: Path, put: Callable[[Database], None], busy_seconds: float | None) -> Notices:
    database = _database(folder, busy_seconds)
    found: Notices = []
    try:
        put(database)
    except JudgekitError as error:
        found.append(("index_not_written", f"{error}; {_NEXT_STEP}"))
    except Exception as error:  # noqa: BLE001  # an index is never worth a run
        found.append(("index_not_written", f"{database.path}: {type(error).__name__}: {error}; {_NEXT_STEP}"))
    if database.set_aside is not None:
        text = f"the results database was damaged and is set aside as {database.set_aside}; `judgekit runs reindex` "
        found.append(("index_damaged", text + "adds the other runs to the new one"))
    return found


def _judged(folder: RunFolder, dataset: str) -> JudgedBefore | None:
    """How many cases each judge of a run judged; None if it is of another data set, or is damaged."""
    with suppress(JudgekitError, OSError, KeyError, TypeError, ValueError):
        manifest, config = folder.manifest(), folder.read_json(CONFIG)
        if dataset_sha256(config["resolved"]["cases"]["sha256"], manifest) == dataset:
            parts = ((name.rpartition("."), n) for name, n in manifest.counts.items())
            return JudgedBefore(manifest.run_id, {judge: n for (judge, _, what), n in parts if what == "judged"})
    return None


def put_folder(database: Database, folder: RunFolder) -> None:
    """Index a run as its folder is now.

    Raises:
        ConfigError, StorageError: the folder or the database cannot be read or written.
    """
    database.put_run(lambda: run_record(folder), case_results(folder))


@dataclass
class Reindexed:
    """What came of building the database again."""

    n_indexed: int = 0
    n_dropped: int = 0
    """Entries of runs whose folder is gone."""
    skipped: list[str] = field(default_factory=list)
    """Why a folder was left out, one line each."""
    set_aside: Path | None = None


def run_folders(results_dir: Path) -> Iterator[Path]:
    """Folders that look like runs, by name.

    Raises:
        ConfigError: there is no such folder of runs.
    """
    fetch_list(results_dir)
    try:
        entries = sorted(entry for entry in results_dir.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise ConfigError(f"{results_dir}: no folder of runs: {error.strerror or error}") from None
    for entry in entries:
        if entry.is_dir():
            yield entry


def reindex(results_dir: Path, database: Database) -> Reindexed:
    """Bring the database in step with the folders: each in a transaction of its own, so that nobody waits for long.

    Raises:
        ConfigError: there is no such folder of runs, or the database is of a newer judgekit.
        StorageError: the database cannot be written.
    """
    done = Reindexed()
    there = set()
    folders = list(run_folders(results_dir))
    database.make_ready()
    for path in folders:
        try:
            _put_again(database, RunFolder.open(path))
            there.add(path.name)
            done.n_indexed += 1
        except DatabaseFault:
            raise  # going on would help nobody
        except JudgekitError as error:
            if path.exists():  # else it was deleted meanwhile
                done.skipped.append(str(error))
        except OSError as error:
            if path.exists():
                done.skipped.append(f"{path}: cannot be read: {error.strerror or error}")
    for run_id in database.run_ids() - there:
        if not (results_dir / run_id / MANIFEST).exists() or _names(done.skipped, results_dir / run_id):
            database.delete_run(run_id)
            done.n_dropped += 1
    done.set_aside = database.set_aside
    return done


def _names(lines: Sequence[str], path: Path) -> bool:
    return any(line.startswith(f"{path}") for line in lines)


def _put_again(database: Database, folder: RunFolder) -> None:
    def record() -> RunRecord:
        found = run_record(folder)
        if found.run_id != folder.path.name:
            raise ConfigError(f"{folder.path}: holds run {found.run_id!r}; name the folder as the run")
        return found

    database.put_run(record, case_results(folder))
