"""The runs of a results folder: each with the little that a list shows, or with one figure and what it rests on."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from judgekit.analysis.run_trends import TrendRun
from judgekit.core.case_parts import cases_text
from judgekit.core.errors import JudgekitError, StorageError
from judgekit.core.history_points import dataset_sha256
from judgekit.core.runs import CONFIG, MANIFEST, METRICS, TAGS, Manifest
from judgekit.storage.remote_runs import fetch_list
from judgekit.storage.run_folder import RunFolder, is_run_id
from judgekit.storage.run_index import run_folders
from judgekit.storage.run_records import figures_in, is_figure, read_tags
from judgekit.storage.seals import check_seals, holds

MOST_RUNS = 1000
"""Runs that are listed."""


class _Gate(msgspec.Struct, frozen=True):
    passed: bool | None = False


class _Cases(msgspec.Struct, frozen=True):
    n: int | None = None
    n_in_file: int | None = None
    sha256: str | None = None


class Mean(msgspec.Struct, frozen=True):
    """A mean score with its interval and the number of cases behind it."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0


class HeadlineFigure(Mean, frozen=True):
    """A figure of the headline with its unit."""

    n_error: int = 0
    unit: str | None = None
    better: str | None = None
    of: float | None = None


class _Operational(msgspec.Struct, frozen=True):
    error_rate: Mean = Mean()


class _Reliability(msgspec.Struct, frozen=True):
    disagreement_rate: float | None = None
    fired: bool = False


class _Metrics(msgspec.Struct, frozen=True):
    """What a list shows of metrics.json, which can be a megabyte: `read_summary` takes twenty times as long."""

    cases: _Cases = _Cases()
    gates: list[_Gate] = []
    warnings: list[dict[str, Any]] = []
    judges: dict[str, dict[str, Any]] = {}
    overall: dict[str, msgspec.Raw] = {}
    headline: dict[str, HeadlineFigure] = {}
    operational: _Operational = _Operational()
    cost: dict[str, Any] = {}
    judge_reliability: _Reliability | None = None


@dataclass(frozen=True)
class RunEntry:
    """One run as a list shows it."""

    run_id: str
    name: str = ""
    status: str = "damaged"
    created_at: str = ""
    wall_seconds: float = 0.0
    n_cases: int | None = None
    n_cases_in_file: int | None = None
    n_gates: int = 0
    n_missed: int = 0
    n_undecided: int = 0
    n_warnings: int = 0
    disagreement_rate: float | None = None
    is_unstable: bool = False
    judges: dict[str, Mean] = field(default_factory=dict)
    """By judge: the mean score."""
    figures: tuple[str, ...] = ()
    """Names of the figures that have a value."""
    tags: tuple[str, ...] = ()
    reason: str | None = None
    """Why it is interrupted or failed."""
    headline: dict[str, HeadlineFigure] = field(default_factory=dict)
    """Empty in a run of an older version."""
    judge_records: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By judge: model, prompt, calls and failures, as metrics.json has them."""
    error_rate: float | None = None
    cost: dict[str, Any] = field(default_factory=dict)
    dataset_sha256: str | None = None


def list_runs(results_dir: Path) -> list[RunEntry]:
    """The runs of a folder, the newest first, at most `MOST_RUNS`; empty if there is no folder.

    A run whose files cannot be read is listed as damaged.
    """
    found = sorted(_folders(results_dir), key=lambda item: item[1], reverse=True)[:MOST_RUNS]
    entries = [_entry(path, _stamp(path / MANIFEST), _stamp(path / METRICS), _stamp(path / TAGS)) for path, _ in found]
    return sorted(entries, key=lambda entry: (entry.created_at, entry.run_id), reverse=True)


def cases_in_file(folder: Path) -> int | None:
    """How many cases the whole file of a run had; None if its manifest does not say."""
    with suppress(JudgekitError):
        return RunFolder(folder).manifest().n_cases_in_file
    return None


def _folders(results_dir: Path) -> Iterator[tuple[Path, int]]:
    fetch_list(results_dir)
    try:
        entries = list(os.scandir(results_dir))
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        changed = _stamp(path / MANIFEST)
        if is_run_id(entry.name) and changed is not None:
            yield path, changed[0]


def _stamp(path: Path) -> tuple[int, int] | None:
    """When a file was changed and how long it is; None if it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _has_value(figure: msgspec.Raw) -> bool:
    return msgspec.json.decode(figure, type=Mean).value is not None


@lru_cache(maxsize=2 * MOST_RUNS)  # figures are large and their part here is small; a changed file has another stamp
def _entry(path: Path, _of_manifest: object, of_metrics: object, _of_tags: object) -> RunEntry:
    try:
        manifest = RunFolder(path).manifest()
        tags = tuple(read_tags(RunFolder(path)))
        data = None if of_metrics is None else (path / METRICS).read_bytes()
        metrics = _Metrics() if data is None else msgspec.json.decode(data, type=_Metrics)
        judges = {
            name: msgspec.json.decode(metrics.overall[name], type=Mean)
            for name in metrics.judges
            if name in metrics.overall
        }
        figures = tuple(name for name, figure in metrics.overall.items() if _has_value(figure))
    except (JudgekitError, OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return RunEntry(run_id=path.name)
    if data is not None and not manifest.changing and not holds(data, METRICS, manifest.files):
        return RunEntry(run_id=path.name)
    reliability = metrics.judge_reliability or _Reliability()
    return RunEntry(
        run_id=path.name,
        name=manifest.name,
        status=manifest.status,
        created_at=manifest.created_at,
        wall_seconds=manifest.wall_seconds,
        n_cases=metrics.cases.n,
        n_cases_in_file=metrics.cases.n_in_file,
        n_gates=len(metrics.gates),
        n_missed=sum(gate.passed is False for gate in metrics.gates),
        n_undecided=sum(gate.passed is None for gate in metrics.gates),
        n_warnings=len(metrics.warnings),
        disagreement_rate=reliability.disagreement_rate,
        is_unstable=reliability.fired,
        judges=judges,
        figures=figures,
        tags=tags,
        reason=manifest.reason,
        headline=metrics.headline,
        judge_records=metrics.judges,
        error_rate=metrics.operational.error_rate.value,
        cost=metrics.cost,
        dataset_sha256=metrics.cases.sha256,
    )


RestsOn = Callable[[str, Mapping[str, Any]], tuple[tuple[str, ...], tuple[str, ...]]]
"""Name of a figure and the judges of a run: the metric families and the judges that the figure rests on."""


@dataclass(frozen=True)
class FoundRun:
    """A run of the folder, and its figure."""

    suite: str
    tags: tuple[str, ...]
    names: tuple[str, ...]
    """All figures that it has."""
    run: TrendRun


def figures_of_runs(results_dir: Path, metric: str, rests_on: RestsOn) -> Iterator[FoundRun]:
    """The runs of a folder in the order of their ids; a damaged one comes with what is wrong as the reason.

    Raises:
        ConfigError: there is no such folder of runs.
    """
    for path in run_folders(results_dir):
        try:
            folder = RunFolder.open(path, check=False)
            manifest = folder.manifest()
        except JudgekitError:
            continue  # nothing tells which suite it is of
        tags: tuple[str, ...] = ()
        try:
            check_seals(path, manifest, (METRICS, CONFIG))
            tags = tuple(read_tags(folder))
            metrics = folder.read_json(METRICS) if folder.has(METRICS) else {}
            names = tuple(name for name, figure in figures_in(metrics).items() if is_figure(figure))
            run = _run(folder, manifest, metrics, metric, rests_on)
        except (JudgekitError, AttributeError, KeyError, TypeError, ValueError) as error:
            names = ()
            text = str(error) if isinstance(error, JudgekitError) else f"{path / METRICS}: damaged: {error!r}"
            run = TrendRun(manifest.run_id, manifest.created_at, why=text)
        yield FoundRun(manifest.name, tags, names, run)


def figures_of_run(path: Path, names: Sequence[str], rests_on: RestsOn) -> dict[str, TrendRun]:
    """What one run says of several figures, by name.

    Raises:
        StorageError: it cannot be read, or is damaged.
    """
    folder = RunFolder.open(path, check=False)
    manifest = folder.manifest()
    check_seals(path, manifest, (METRICS, CONFIG))
    metrics = folder.read_json(METRICS)
    try:
        return {name: _run(folder, manifest, metrics, name, rests_on) for name in names}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{path / METRICS}: damaged: {error!r}") from None


def _run(folder: RunFolder, manifest: Manifest, metrics: Mapping[str, Any], metric: str, rests_on: RestsOn) -> TrendRun:
    figure: Any = figures_in(metrics).get(metric)
    why = _why_not(manifest, figure)
    if why is not None:
        return TrendRun(manifest.run_id, manifest.created_at, why=why)
    config = folder.read_json(CONFIG)
    return TrendRun(
        run_id=manifest.run_id,
        created_at=manifest.created_at,
        value=float(figure["value"]),
        low=figure.get("low"),
        high=figure.get("high"),
        n=int(figure["n"]),
        n_error=int(figure.get("n_error", 0)),
        n_not_applicable=int(figure.get("n_not_applicable", 0)),
        basis=_basis(
            metric, manifest, metrics, config.get("resolved", {}), rests_on(metric, metrics.get("judges", {}))
        ),
        scale=metrics.get("scales", {}).get(metric),
    )


def _why_not(manifest: Manifest, figure: Any) -> str | None:
    """Why the figure of a run is not a point of a trend."""
    if manifest.kind != "run":
        return "compares runs" if manifest.parent is None else f"judges the answers of {manifest.parent} again"
    if manifest.status != "complete":
        return f"{manifest.status}, so its figures are of a part"
    if manifest.shard is not None:
        return f"shard {manifest.shard}, so its figures are of a part"
    if not is_figure(figure):
        return "has no such figure"
    if figure["value"] is None:
        failed = f", {figure['n_error']} failed" if figure.get("n_error") else ""
        return f"no case has a value{failed}"
    return None


def _basis(
    metric: str,
    manifest: Manifest,
    metrics: Mapping[str, Any],
    resolved: Mapping[str, Any],
    owners: tuple[tuple[str, ...], tuple[str, ...]],
) -> dict[str, str]:
    cases = metrics["cases"]
    families, judges = owners
    found = {
        "data set": f"{dataset_sha256(cases['sha256'], manifest)[:12]}, {cases_text(cases)}",
        "definition of figures": str(metrics.get("metrics_version", 1)),
        "failed cases": str(metrics.get("errors", "exclude")),
    }
    if judges or "abstention" in families:
        # Abstentions are not judged, so what says which they are matters to judges too.
        found["what says which answers abstain"] = str((metrics.get("abstention") or {}).get("source", "not known"))
    for name in families:
        found[f"settings of {name}"] = _packed(resolved.get("metrics", {}).get(name))
    for name, record in (metrics.get("own_code") or {}).items():
        if metric in {column["aggregate"] or column["name"] for column in record["columns"]}:
            found[f"Python file of {name}"] = record["code_sha256"][:12]
    for name in judges:
        record = metrics["judges"][name]
        found[f"model of judge {name}"] = _model(record)
        found[f"prompt of judge {name}"] = f"{record['prompt_version']} ({record['prompt_sha256'][:8]})"
        found[f"settings of judge {name}"] = _packed(resolved.get("judges", {}).get(name))
    return found


def _model(record: Mapping[str, Any]) -> str:
    parts = [str(record["model"])]
    build = record.get("build_hash")
    parts += [f"build {str(build).removeprefix('sha256:')[:12]}"] if build else []
    served = sorted(name for name in record.get("served_models") or () if name != record["model"])
    parts += [f"served as {', '.join(served)}"] if served else []
    upstreams = sorted(record.get("upstreams") or ())
    parts += [f"by {', '.join(upstreams)}"] if upstreams else []
    return ", ".join(parts)


def _packed(settings: Any) -> str:
    return "none" if not settings else json.dumps(settings, sort_keys=True, ensure_ascii=False)
