"""From a run folder to what the results database holds of it."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from judgekit.analysis.stored_figures import run_aggregate
from judgekit.core.conditions import GateResult
from judgekit.core.errors import JudgekitError, StorageError, first_problem
from judgekit.core.runs import CONFIG, METRICS, METRICS_HISTORY, SCORES, TAGS, Notice, RunSummary
from judgekit.core.scores import Estimate
from judgekit.core.slice_records import restored
from judgekit.storage.database import RunRecord
from judgekit.storage.run_files import disk_faults_named
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.score_lines import ScoreReader
from judgekit.storage.stored_history import read_points

TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a tag may look like."""


class _Result(msgspec.Struct):
    """`result_json` of one case."""

    scores: dict[str, float] = {}
    not_applicable: dict[str, list[str]] = {}
    """Names of scores by the reason why they do not apply."""
    failed: dict[str, list[str]] = {}
    """Names of scores by the kind of failure."""

    def add(self, name: str, value: float | None, reason: str | None) -> None:
        """Count one score."""
        if value is not None:
            self.scores[name] = value
        elif reason is not None:
            is_failure = reason.startswith("failed: ")
            group = self.failed if is_failure else self.not_applicable
            reason = reason.removeprefix("failed: " if is_failure else "n/a: ")
            group.setdefault(reason, []).append(name)


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
        figures = figures_in(metrics)
        return RunRecord(
            run_id=manifest.run_id,
            suite=manifest.name,
            created_at=manifest.created_at,
            commit_hash=manifest.commit_hash,
            config=config,
            aggregate=run_aggregate(metrics.get("overall", {})),
            status=manifest.status,
            n_cases=metrics.get("cases", {}).get("n", manifest.counts.get("cases", 0)),
            figures={name: _short(figure) for name, figure in figures.items() if is_figure(figure)},
            tags=read_tags(folder),
            history=read_history(folder),
            points=read_points(folder),
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
    try:
        with disk_faults_named(path, "cannot be read"), path.open("rb") as stream:
            for case_id, scores, _ in ScoreReader().by_case(_whole_lines(folder, stream)):
                found = _Result()
                for name, (value, reason) in scores.items():
                    found.add(name, value, reason)
                yield case_id, msgspec.json.encode(found).decode()
    except (msgspec.DecodeError, ValueError) as error:
        raise StorageError(f"{path}: damaged: {error}; `judgekit rescore` writes it again") from None


def _whole_lines(folder: RunFolder, stream: Iterable[bytes]) -> Iterator[bytes]:
    for line in stream:
        if not line.endswith(b"\n"):
            raise StorageError(
                f"{folder.path / SCORES}: damaged: the file ends in the middle of a line; make it again: judgekit "
                f"rescore {shlex.quote(str(folder.path))}"
            )
        yield line


def figures_in(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """By name, the figures of metrics.json over all cases, and counts by value."""
    return {**metrics.get("overall", {}), **metrics.get("operational", {})}


def is_figure(figure: Any) -> bool:
    """Whether it is an estimate, and not counts by value."""
    return isinstance(figure, Mapping) and "value" in figure and "n" in figure


def _short(figure: Mapping[str, Any]) -> list[Any]:
    return [figure["value"], figure["n"], figure.get("n_error", 0)]


def read_tags(folder: RunFolder) -> list[str]:
    """Tags of a run, sorted; none if it has no file of them.

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


_KNOWN = frozenset(Estimate.model_fields)
_NEEDED = frozenset(name for name, field in Estimate.model_fields.items() if field.is_required())


def read_summary(folder: RunFolder) -> RunSummary | None:
    """The figures of a run; None if it has none yet. Keys that this version does not know are left out.

    Judges come in the order of the config, which sorted keys do not keep and reports go by.

    Raises:
        StorageError: the file is damaged.
    """
    if not (folder.path / METRICS).exists():
        return None
    data = folder.read_json(METRICS)
    try:
        if "slice_sizes" in data:
            data["slices"] = restored(data["slices"], data["slice_sizes"], data["overall"], data["min_n"])
        known = {key: _figures(value) for key, value in data.items() if key in RunSummary.model_fields}
        known["gates"] = [_only(item, GateResult.model_fields) for item in data.get("gates", ())]
        known["warnings"] = [_only(item, Notice.model_fields) for item in data.get("warnings", ())]
        order = _judges_of(folder)
        known["judges"] = _in_order(known.get("judges"), order)
        for part in ("judge_reliability", "rejudged"):
            if isinstance(known.get(part), dict) and "by_judge" in known[part]:
                known[part]["by_judge"] = _in_order(known[part]["by_judge"], order)
        return RunSummary.model_validate(known)
    except ValidationError as error:
        raise StorageError(f"{folder.path / METRICS}: damaged: {first_problem(error)}") from None
    except (AttributeError, KeyError, TypeError) as error:
        raise StorageError(f"{folder.path / METRICS}: damaged: {error!r}") from None


def _figures(value: Any) -> Any:
    """The value with every object that is a figure made one, however deep it stands."""
    if not isinstance(value, dict):
        return value
    if value.keys() >= _NEEDED:
        return Estimate.model_validate(value if value.keys() <= _KNOWN else _only(value, _KNOWN))
    return {key: _figures(item) for key, item in value.items()}


def _judges_of(folder: RunFolder) -> list[str]:
    """Names of the judges in the order of the config; none if that cannot be told, which is not a fault of figures."""
    try:
        return [str(judge["name"]) for judge in folder.read_json(CONFIG)["judges"]]
    except (JudgekitError, KeyError, TypeError):
        return []


def _in_order(by_name: Any, order: list[str]) -> Any:
    """An object with the named keys first."""
    if not isinstance(by_name, dict):
        return by_name
    return {name: by_name[name] for name in [*(name for name in order if name in by_name), *by_name]}


def _only(value: dict[str, Any], names: Any) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key in names}
