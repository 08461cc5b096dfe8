"""`judgekit drift`: whether a judge changed, from the history points in the results database."""

from dataclasses import dataclass
from pathlib import Path

from judgekit.analysis.drift_states import DriftReport, drift_report, histories
from judgekit.core.errors import ConfigError, StorageError
from judgekit.core.familiar_names import name_hint
from judgekit.core.history_points import HistoryPoint
from judgekit.storage.database import Database
from judgekit.storage.run_index import add_point
from judgekit.workflows.models import Options
from judgekit.workflows.selectors import find_run
from judgekit.workflows.stored_runs import runs_dir


@dataclass(frozen=True)
class DriftQuery:
    """Which histories are asked for."""

    judge: str | None = None
    suite: str | None = None
    dataset: str | None = None
    """Beginning of the hash of a data set."""
    since: str | None = None
    """The run with whose points the history begins."""


def drift_reports(query: DriftQuery, options: Options) -> list[DriftReport]:
    """A report for each history that is asked for.

    Raises:
        ConfigError: there are no such points.
        StorageError: the database cannot be read.
    """
    return [drift_report(history) for history in _histories(query, options)]


def accept_drift(query: DriftQuery, options: Options, usual: float | None, reason: str) -> list[str]:
    """Store that each history that is asked for begins again, in the folder of the run of its last point.

    Args:
        query: which histories.
        options: where runs are kept.
        usual: rate of flips that is taken for normal from now on; None: as the history so far says.
        reason: why, for readers of the history.

    Returns:
        What was stored, one line for each history, and what could not be indexed.

    Raises:
        ConfigError: there are no such histories, or the rate is none.
        StorageError: the database cannot be read, or a run folder is gone or cannot be written.
    """
    if usual is not None and not 0.0 < usual < 1.0:
        raise ConfigError(f"--usual {usual}: expected a rate above 0 and below 1")
    place = runs_dir(options)
    lines = []
    for history in _histories(query, options):
        last = history[-1]
        folder = place / last.run_id
        if not folder.is_dir():
            raise StorageError(f"{folder}: the run of the last point is gone; `judgekit runs reindex` first")
        accepted = HistoryPoint(
            run_id=last.run_id,
            judge=last.judge,
            prompt_version=last.prompt_version,
            dataset_sha256=last.dataset_sha256,
            kind="acceptance",
            comparator="",
            created_at=options.now().isoformat(timespec="milliseconds"),
            n_asked=0,
            n_pairs=0,
            n_disagree=0,
            n_failed=0,
            prompt_sha256=last.prompt_sha256,
            parser_version=last.parser_version,
            accepted_rate=usual,
            reason=reason or None,
        )
        notices = add_point(folder, accepted)
        lines.append(
            f"accepted: {last.judge} {last.prompt_version} as it is now; its cached verdicts are older, and "
            "`judgekit cache clear` lets the next run ask for new ones"
        )
        lines += [f"warning: {message} [{code}]" for code, message in notices]
    return lines


def _histories(query: DriftQuery, options: Options) -> list[list[HistoryPoint]]:
    place = runs_dir(options)
    database = Database(place)
    points = database.points(query.judge, query.dataset)
    if query.suite is not None:
        of_suite = {run.run_id for run in database.runs(query.suite)}
        points = [point for point in points if point.run_id in of_suite]
    if not points:
        judges = {point.judge for point in database.points()}
        hint = name_hint(query.judge, judges) if query.judge is not None and query.judge not in judges else ""
        such = "" if (query.judge, query.dataset, query.suite) == (None, None, None) else "such "
        raise ConfigError(
            f"no {such}history points of judges in {database.path}{hint}; `judgekit spotcheck RUN` "
            "or a `spot_check` in the config makes one, and `judgekit runs reindex` reads those of older runs"
        )
    if query.since is not None:
        run_id = find_run(query.since, options).name
        first = min((point.created_at for point in points if point.run_id == run_id), default=None)
        if first is None:
            raise ConfigError(f"--since {query.since}: run {run_id} has no such points")
        points = [point for point in points if point.created_at >= first]
    return histories(points)


def write_svg(path: Path, text: str) -> None:
    """Write a picture.

    Raises:
        StorageError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from None
