"""The runs of a results folder, each with the little that a list of them shows."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from judgekit.core.errors import JudgekitError
from judgekit.core.runs import MANIFEST, METRICS
from judgekit.storage.run_folder import RunFolder, is_run_id
from judgekit.storage.seals import holds

MOST_RUNS = 1000
"""Runs that are listed."""


class _Gate(msgspec.Struct, frozen=True):
    passed: bool = False


class _Cases(msgspec.Struct, frozen=True):
    n: int | None = None
    n_in_file: int | None = None


class Mean(msgspec.Struct, frozen=True):
    """A mean score with its interval and the number of cases behind it."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0


class _Reliability(msgspec.Struct, frozen=True):
    disagreement_rate: float | None = None
    fired: bool = False


class _Metrics(msgspec.Struct, frozen=True):
    """What a list shows of metrics.json, which can be a megabyte: `read_summary` takes twenty times as long."""

    cases: _Cases = _Cases()
    gates: list[_Gate] = []
    warnings: list[dict[str, Any]] = []
    judges: dict[str, msgspec.Raw] = {}
    overall: dict[str, msgspec.Raw] = {}
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
    n_warnings: int = 0
    disagreement_rate: float | None = None
    is_unstable: bool = False
    judges: dict[str, Mean] = field(default_factory=dict)
    """By judge: the mean score."""
    figures: tuple[str, ...] = ()
    """Names of the figures that have a value."""


def list_runs(results_dir: Path) -> list[RunEntry]:
    """The runs of a folder, the newest first, at most `MOST_RUNS`; empty where there is no folder.

    A run whose files cannot be read is listed as damaged.
    """
    found = sorted(_folders(results_dir), key=lambda item: item[1], reverse=True)[:MOST_RUNS]
    entries = [_entry(path, _stamp(path / MANIFEST), _stamp(path / METRICS)) for path, _ in found]
    return sorted(entries, key=lambda entry: (entry.created_at, entry.run_id), reverse=True)


def cases_in_file(folder: Path) -> int | None:
    """How many cases the whole file of a run had; None where its manifest does not say."""
    with suppress(JudgekitError):
        return RunFolder(folder).manifest().n_cases_in_file
    return None


def _folders(results_dir: Path) -> Iterator[tuple[Path, int]]:
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
    """When a file was changed and how long it is; None where it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _has_value(figure: msgspec.Raw) -> bool:
    return msgspec.json.decode(figure, type=Mean).value is not None


@lru_cache(maxsize=2 * MOST_RUNS)  # figures are large and their part here is small; a changed file has another stamp
def _entry(path: Path, _of_manifest: object, of_metrics: object) -> RunEntry:
    try:
        manifest = RunFolder(path).manifest()
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
        n_missed=sum(not gate.passed for gate in metrics.gates),
        n_warnings=len(metrics.warnings),
        disagreement_rate=reliability.disagreement_rate,
        is_unstable=reliability.fired,
        judges=judges,
        figures=figures,
    )
