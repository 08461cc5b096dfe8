"""One figure of every run of a results folder, with what it rests on."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgekit.analysis.run_trends import TrendRun
from judgekit.core.errors import JudgekitError
from judgekit.core.history_points import dataset_sha256
from judgekit.core.runs import CONFIG, METRICS, Manifest, cases_text
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import run_folders
from judgekit.storage.run_records import figures_in, is_figure, read_tags
from judgekit.storage.seals import check_seals

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
        basis=_basis(manifest, metrics, config.get("resolved", {}), rests_on(metric, metrics.get("judges", {}))),
    )


def _why_not(manifest: Manifest, figure: Any) -> str | None:
    """Why the figure of a run is no point of a trend."""
    if manifest.kind != "run":
        return f"judges the answers of {manifest.parent} again"
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
