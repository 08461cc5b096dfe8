"""What to say of a damaged line of a run folder: where it is, why, and the command that mends it."""

import json
import shlex
from pathlib import Path
from typing import Any

from judgekit.core.errors import StorageError
from judgekit.core.probes import PROBE_JUDGMENTS
from judgekit.core.runs import CASES, JUDGE_INPUTS, JUDGMENTS, MANIFEST, METRICS, OUTPUTS, SCORES

_MADE_FROM_CONFIG = (CASES, OUTPUTS, JUDGE_INPUTS)


def damaged_line(path: Path, number: int, why: object) -> StorageError:
    """The error about a line that cannot be read.

    Args:
        path: the file, in a run folder.
        number: of the line, from 1.
        why: what is wrong with it.
    """
    return StorageError(f"{path}:{number}: damaged line: {why}; {_next_step(path.parent, path.name)}")


def _next_step(folder: Path, name: str) -> str:
    """What mends a file, by the state that the run is in."""
    run = shlex.quote(str(folder))
    resume = f"judgekit run --resume {run}"
    if name == JUDGMENTS:
        return f"delete the line, then its question can be asked again: {resume}"
    if name == PROBE_JUDGMENTS:
        return f"delete the line, then its question can be asked again: judgekit probe {run}"
    manifest = _manifest(folder)
    status = manifest.get("status")
    if name == SCORES and status != "running" and (folder / METRICS).exists():
        return f"the file can be made anew: judgekit rescore {run}"
    if name not in (SCORES, *_MADE_FROM_CONFIG):
        return "delete the line"
    if status != "complete":
        return f"the file is made anew by: {resume}"
    if manifest.get("kind") == "rejudge":
        return f"judge the run again that it was made from: judgekit rejudge {shlex.quote(str(manifest.get('parent')))}"
    config = shlex.quote(str(manifest.get("config_path")))
    return f"the run is complete, so make another one: judgekit run {config} (what is cached costs nothing)"


def _manifest(folder: Path) -> dict[str, Any]:
    """The manifest, as far as it can be read: a second fault must not hide the first."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
