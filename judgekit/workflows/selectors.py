"""Which config and which run are meant: a path, a shipped config, an id or its beginning, `latest`, or `latest:TAG`."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from judgekit.core.conditions import Gate
from judgekit.core.errors import ConfigError, JudgekitError, did_you_mean
from judgekit.core.runs import MANIFEST, Manifest
from judgekit.storage.prompt_files import shipped
from judgekit.storage.remote_files import is_url
from judgekit.storage.remote_runs import fetch_list, local_results, local_run
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_records import read_tags
from judgekit.workflows.models import Options

LATEST = "latest"

_NEAREST_FOLDERS = 4
"""Above a run, in which its config is looked for: results, and what holds them."""


def config_path_of(name: str) -> Path:
    """A config file, or the shipped config of that name such as `quickstart`."""
    path = Path(name)
    if not path.exists() and not path.suffix and "/" not in name:
        known = {file.stem: file for file in shipped("configs").glob("*.json") if file.name != "config.schema.json"}
        if name in known:
            return known[name]
        raise ConfigError(f"{name}: no such file, and no shipped config of that name{did_you_mean(name, known)}")
    return path


def config_of(folder: RunFolder, manifest: Manifest) -> Path:
    """The config of a run: where it was, or in a folder above the run, if the project was moved.

    Raises:
        ConfigError: it is in neither.
    """
    was = Path(manifest.config_path)
    # Of /old/project/configs/a.json the end `configs/a.json` may stand in a folder above the run, or `a.json` alone.
    ends = [Path(*was.parts[-n_parts:]) for n_parts in range(min(_NEAREST_FOLDERS, len(was.parts) - 1), 0, -1)]
    above = [parent / end for parent in folder.path.resolve().parents[:_NEAREST_FOLDERS] for end in ends]
    for path in (was, *above):
        if path.is_file():
            return path
    raise ConfigError(
        f"{was}: the config of this run is not there any more, nor above {folder.path}; name it: "
        f"judgekit run CONFIG --resume {folder.path}"
    )


def results_dir_of(configured: str | None, config_path: Path, options: Options) -> Path:
    """Where runs are kept: the flag, the config, or `results` in the current folder."""
    if options.results_dir is not None:
        return options.results_dir
    if configured is not None:
        return local_results(configured) if is_url(configured) else config_path.resolve().parent / configured
    return Path("results")


def cache_folder(results_dir: Path | None) -> Path:
    """Where replies are cached: beside the runs."""
    from judgekit.storage.reply_cache import CACHE_FOLDER  # loads diskcache

    return (results_dir or Path("results")) / CACHE_FOLDER


def find_run(run: str, options: Options, without: str | None = None) -> Path:
    """The folder of the run that is meant, as `select_run` finds it in the folder of runs.

    Raises:
        ConfigError: several runs are meant, or there is no newest one.
    """
    return select_run(run, options.results_dir or Path("results"), without)


def select_run(run: str, results_dir: Path, without: str | None = None) -> Path:
    """The folder of the run that is meant.

    Args:
        run: path or address of a run folder; id of a run; unique beginning of an id; `latest`; `latest:NAME`, the
            newest run with the tag NAME, or if no run has it, of the suite NAME.
        results_dir: the folder of runs.
        without: id of a run that `latest` leaves out, so that no run is compared with itself.

    Returns:
        A folder; it holds no run if an id is meant that no run has.

    Raises:
        ConfigError: several ids begin so, or there is no newest run.
    """
    if is_url(run):
        return local_run(run)
    fetch_list(results_dir)
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


def check_baselines(gates: Sequence[Gate], results_dir: Path) -> None:
    """Refuse a baseline that is named by id or folder and is not there; `latest:main` may have none yet.

    Raises:
        ConfigError: no such run.
    """
    for number, gate in enumerate(gates):
        name = gate.not_worse_than
        if name is not None and name.partition(":")[0] != LATEST and not _is_run(select_run(name, results_dir)):
            raise ConfigError(
                f"gates[{number}].not_worse_than: no run {name!r} in {results_dir}, nor a run folder there"
            )


def _latest(name: str, results_dir: Path, without: str | None) -> Path:
    runs: list[tuple[str, str, Path, Any]] = []
    left_out: list[tuple[str, str, Path, Any]] = []
    for path in _folders(results_dir):
        # A damaged manifest is not the newest run; a command that is pointed at it says what is wrong.
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
