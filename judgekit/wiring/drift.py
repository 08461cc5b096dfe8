"""What `judgekit drift` works on: checks of judges from the results database."""

from dataclasses import dataclass
from pathlib import Path

from judgekit.analysis.drift import DriftReport, drift_report, histories
from judgekit.core.errors import ConfigError, StorageError, did_you_mean
from judgekit.storage.database import Database
from judgekit.wiring.jobs import find_run
from judgekit.wiring.models import Options
from judgekit.wiring.stored_runs import runs_dir


@dataclass(frozen=True)
class DriftQuery:
    """Which histories are asked for."""

    judge: str | None = None
    suite: str | None = None
    dataset: str | None = None
    """Beginning of the hash of a data set."""
    since: str | None = None
    """The run with whose checks the history begins."""


def drift_reports(query: DriftQuery, options: Options) -> list[DriftReport]:
    """A report for each history that is asked for.

    Raises:
        ConfigError: there are no such checks.
        StorageError: the database cannot be read.
    """
    place = runs_dir(options)
    database = Database(place)
    checks = database.checks(query.judge, query.dataset)
    if query.suite is not None:
        of_suite = {run.run_id for run in database.runs(query.suite)}
        checks = [check for check in checks if check.run_id in of_suite]
    if not checks:
        judges = {check.judge for check in database.checks()}
        hint = did_you_mean(query.judge, judges) if query.judge is not None and query.judge not in judges else ""
        such = "" if (query.judge, query.dataset, query.suite) == (None, None, None) else "such "
        raise ConfigError(
            f"no {such}checks of judges in {database.path}{hint}; `judgekit spotcheck RUN` "
            "or a `spot_check` in the config makes one, and `judgekit runs reindex` reads those of older runs"
        )
    if query.since is not None:
        run_id = find_run(query.since, None, options).name
        first = min((check.created_at for check in checks if check.run_id == run_id), default=None)
        if first is None:
            raise ConfigError(f"--since {query.since}: run {run_id} has no such checks")
        checks = [check for check in checks if check.created_at >= first]
    return [drift_report(history) for history in histories(checks)]


def write_svg(path: Path, text: str) -> None:
    """Write a picture.

    Raises:
        StorageError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from None
