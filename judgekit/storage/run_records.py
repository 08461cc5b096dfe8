"""From a run folder to what the results database holds of it."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from judgekit.analysis.aggregate import run_aggregate
from judgekit.core.errors import StorageError, first_problem
from judgekit.core.history_points import HistoryPoint
from judgekit.core.runs import CONFIG, DRIFT_CHECKS, METRICS, METRICS_HISTORY, SCORES, TAGS
from judgekit.storage.appending import appending
from judgekit.storage.database import RunRecord
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.stored_checks import stored_checks

TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a tag may look like."""

_CHUNK_BYTES = 1 << 22


class _StoredScore(msgspec.Struct):
    """A line of scores.jsonl."""

    case_id: str
    name: str
    value: float | None = None
    reason: str | None = None


class _Result(msgspec.Struct):
    """`result_json` of one case."""

    scores: dict[str, float] = {}
    not_applicable: dict[str, list[str]] = {}
    """Names of scores by the reason why they do not apply."""
    failed: dict[str, list[str]] = {}
    """Names of scores by the kind of failure."""

    def add(self, score: _StoredScore) -> None:
        """Count one score."""
        if score.value is not None:
            self.scores[score.name] = score.value
        elif score.reason is not None:
            reason = score.reason
            is_failure = reason.startswith("failed: ")
            group = self.failed if is_failure else self.not_applicable
            reason = reason.removeprefix("failed: " if is_failure else "n/a: ")
            names = group.get(reason)
            if names is None:
                names = group[reason] = []
            names.append(score.name)


def run_record(folder: RunFolder) -> RunRecord:
    """What the database holds of a run, but for its cases.

    Raises:
        ConfigError: a file is missing, as in a run that was killed before it wrote one.
        StorageError: a file is damaged.
    """
    manifest = folder.manifest()
    config = folder.read_json(CONFIG)
    metrics = folder.read_json(METRICS) if (folder.path / METRICS).exists() else {}
    try:
        overall = metrics.get("overall", {})
        figures = {**overall, **metrics.get("operational", {})}
        return RunRecord(
            run_id=manifest.run_id,
            suite=manifest.name,
            created_at=manifest.created_at,
            commit_hash=manifest.commit_hash,
            config=config,
            aggregate=run_aggregate(overall),
            status=manifest.status,
            n_cases=metrics.get("cases", {}).get("n", manifest.counts.get("cases", 0)),
            figures={name: _short(figure) for name, figure in figures.items() if _is_figure(figure)},
            tags=read_tags(folder),
            history=read_history(folder),
            checks=read_checks(folder),
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise StorageError(f"{folder.path / METRICS}: damaged: {error}") from None


def case_results(folder: RunFolder) -> Iterator[tuple[str, str]]:
    """Id and `result_json` of each case: `scores` by name, and names by the reason why there is no score.

    Raises:
        StorageError: a line is damaged.
    """
    path = folder.path / SCORES
    if not path.exists():
        return
    decode = msgspec.json.Decoder(_StoredScore).decode_lines
    case_id: str | None = None
    found = _Result()
    try:
        with path.open("rb") as stream:
            while lines := stream.readlines(_CHUNK_BYTES):
                if not lines[-1].endswith(b"\n"):
                    raise StorageError(
                        f"{path}: damaged: the file ends in the middle of a line; make it again: judgekit rescore "
                        f"{shlex.quote(str(folder.path))}"
                    )
                for score in decode(b"".join(lines)):
                    if score.case_id != case_id:
                        if case_id is not None:
                            yield case_id, msgspec.json.encode(found).decode()
                        case_id, found = score.case_id, _Result()
                    found.add(score)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"{path}: damaged: {error}; `judgekit rescore` writes it again") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from None
    if case_id is not None:
        yield case_id, msgspec.json.encode(found).decode()


def _is_figure(figure: Any) -> bool:
    return isinstance(figure, dict) and "value" in figure and "n" in figure


def _short(figure: Mapping[str, Any]) -> list[Any]:
    return [figure["value"], figure["n"], figure.get("n_error", 0)]


def read_tags(folder: RunFolder) -> list[str]:
    """Tags of a run, sorted; none where it has no file of them.

    Raises:
        StorageError: the file is damaged.
    """
    if not (folder.path / TAGS).exists():
        return []
    tags = folder.read_json(TAGS).get("tags")
    if not isinstance(tags, list) or not all(isinstance(tag, str) and TAG.fullmatch(tag) for tag in tags):
        raise StorageError(f'{folder.path / TAGS}: damaged: expected {{"tags": [names]}}; delete it and tag again')
    return sorted(set(tags))


def write_tags(folder: RunFolder, tags: list[str]) -> None:
    """Write the tags of a run, as a whole file.

    Raises:
        StorageError: it cannot be written.
    """
    folder.write_json(TAGS, {"tags": sorted(set(tags))})


def read_history(folder: RunFolder) -> list[dict[str, Any]]:
    """Earlier figures of a run that was rescored, the oldest first.

    Raises:
        StorageError: a line is damaged.
    """
    found = []
    for number, line in folder.lines(METRICS_HISTORY):
        try:
            record = json.loads(line)
            found.append({key: record[key] for key in ("metrics_version", "scored_by", "replaced_at", "aggregate")})
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{folder.path / METRICS_HISTORY}:{number}: damaged line: {error}") from None
    return found


def append_history(folder: RunFolder, record: Mapping[str, Any]) -> None:
    """Add the figures that are about to be replaced; the same ones, as after a kill, are not kept twice.

    Raises:
        StorageError: the history is damaged or cannot be written.
    """
    read_history(folder)
    lines = [line.rstrip(b"\n") for _, line in folder.lines(METRICS_HISTORY)]
    if lines:
        last = json.loads(lines[-1])
        if all(last.get(key) == record[key] for key in ("metrics_version", "scored_by", "figures")):
            return
    folder.write_lines(METRICS_HISTORY, [*lines, json.dumps(record, sort_keys=True, allow_nan=False).encode()])


def read_checks(folder: RunFolder) -> list[HistoryPoint]:
    """Checks of the judges of a run: its spot checks, and those that were added to its folder.

    Raises:
        ConfigError, StorageError: a file is missing or damaged.
    """
    found = {check.check_id: check for check in stored_checks(folder)}
    for number, line in folder.lines(DRIFT_CHECKS):
        try:
            check = HistoryPoint.model_validate_json(line)
        except ValidationError as error:
            where = f"{folder.path / DRIFT_CHECKS}:{number}"
            raise StorageError(f"{where}: damaged line: {first_problem(error)}; delete the line") from None
        found[check.check_id] = check
    return sorted(found.values(), key=lambda check: (check.created_at, check.check_id))


def append_check(folder: RunFolder, check: HistoryPoint) -> None:
    """Add a check to the folder of the run whose verdicts were checked; the same one is not written twice.

    Several processes may add checks at once, also while another one writes the run.

    Raises:
        ConfigError, StorageError: a file is damaged or cannot be written.
    """
    with appending(folder.path / DRIFT_CHECKS) as append:
        if check.check_id not in {old.check_id for old in read_checks(folder)}:
            append(check.model_dump_json().encode())
