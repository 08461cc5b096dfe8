"""Which run is meant: a path, an id, the unique beginning of one, `latest`, or `latest:TAG`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgekit.core.errors import ConfigError, JudgekitError
from judgekit.core.runs import MANIFEST
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_records import read_tags

LATEST = "latest"


def select_run(run: str, results_dir: Path, without: str | None = None) -> Path:
    """The folder of the run that is meant.

    Args:
        run: path of a run folder; id of a run; unique beginning of an id; `latest`; `latest:NAME`, the newest run
            with the tag NAME, or where no run has it, of the suite NAME.
        results_dir: the folder of runs.
        without: id of a run that `latest` leaves out, so that no run is compared with itself.

    Returns:
        A folder; one that holds no run where an id is meant that no run has.

    Raises:
        ConfigError: several ids begin so, or there is no newest run.
    """
    for path in (Path(run), results_dir / run):
        if _is_run(path):
            return path
    if run == LATEST or run.startswith(f"{LATEST}:"):
        return _latest(run.removeprefix(LATEST).removeprefix(":"), results_dir, without)
    if (results_dir / run).exists() or "/" in run or not run:
        return results_dir / run
    found = [path for path in _folders(results_dir) if path.name.startswith(run)]
    if len(found) > 1:
        shown = ", ".join(path.name for path in found[:5]) + (", ..." if len(found) > 5 else "")
        raise ConfigError(f"run {run!r}: {len(found)} runs in {results_dir} begin so: {shown}; write more of the id")
    return found[0] if found else results_dir / run


def _latest(name: str, results_dir: Path, without: str | None) -> Path:
    runs: list[tuple[str, str, Path, Any]] = []
    left_out: list[tuple[str, str, Path, Any]] = []
    for path in _folders(results_dir):
        # A damaged manifest is no newest run; a command that is pointed at it says what is wrong.
        try:
            manifest = json.loads((path / MANIFEST).read_bytes())
            entry = (str(manifest["created_at"]), path.name, path, manifest.get("name"))
            (runs if without is None or manifest.get("run_id") != without else left_out).append(entry)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
    runs.sort(reverse=True)
    if not name:
        if not runs:
            other = f" besides {without}, which is the candidate" if left_out else ""
            raise ConfigError(f"latest: no run in {results_dir}{other}; --results-dir names another folder of runs")
        return runs[0][2]
    tagged = next((path for _, _, path, _ in runs if name in _tags(path)), None)
    of_suite = next((path for _, _, path, suite in runs if suite == name), None)
    found = tagged or of_suite
    if found is None:
        if any(suite == name or name in _tags(path) for _, _, path, suite in left_out):
            raise ConfigError(
                f"latest:{name}: the only run that it finds in {results_dir} is {without}, the candidate itself; "
                f"tag a baseline with `judgekit runs tag RUN {name}`"
            )
        raise ConfigError(
            f"latest:{name}: no run in {results_dir} has the tag {name!r} or is of that suite; "
            f"tag one with `judgekit runs tag RUN {name}`"
        )
    return found


def _folders(results_dir: Path) -> Iterator[Path]:
    try:
        entries = sorted(results_dir.iterdir())
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith(".") and _is_run(entry):
            yield entry


def _is_run(path: Path) -> bool:
    return os.path.isfile(path / MANIFEST)  # noqa: PTH113  # Path.is_file raises where a folder may not be entered


def _tags(path: Path) -> list[str]:
    try:
        return read_tags(RunFolder(path))
    except JudgekitError:
        return []
