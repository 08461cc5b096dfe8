"""What is known here of a run that is elsewhere: which of its files are the same in both places."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from judgekit.storage.run_files import disk_faults_named, replacing

_STATES = ".remote"
"""In a local folder of runs: what is known of each, and a lock."""


@dataclass
class RemoteState:
    """What is known of a run at its address."""

    claim: str | None = None
    manifest: str | None = None
    """SHA-256 of the manifest there, when it was last read or written."""
    stamps: dict[str, list[int]] = field(default_factory=dict)
    """By file that is the same in both places: size and time of change of the local one."""
    versions: dict[str, str | None] = field(default_factory=dict)
    """By file that is the same in both places: what the store says of it."""
    sending: list[str] = field(default_factory=list)
    """Files that may be at the address as they were here, since an upload of them was begun."""
    manifest_sent: str | None = None
    """SHA-256 of the manifest whose upload was begun last."""
    is_fetching: bool = False
    """Files here are older and newer ones of the address, since a fetch was stopped; none was changed here."""

    def has_written(self, manifest: str | None) -> bool:
        """Whether a manifest at the address, by its SHA-256, is that last seen there, or one written from here."""
        return manifest == self.manifest or (manifest is not None and manifest == self.manifest_sent)


def changed_files(path: Path, state: RemoteState) -> list[str]:
    """Files that are not at the address as they are here."""
    if not path.is_dir() or state.is_fetching:
        return []
    here = {str(found.relative_to(path)): found for found in sorted(path.rglob("*")) if found.is_file()}
    here = {name: found for name, found in here.items() if is_part(name)}
    differ = [name for name, found in here.items() if state.stamps.get(name) != stamp_of(found)]
    return [*differ, *(name for name in state.stamps if name not in here)]


def is_part(name: str) -> bool:
    """Whether a file belongs to a run: not locks, nor what is half written."""
    return not name.rpartition("/")[2].startswith(".")


def stamp_of(path: Path) -> list[int]:
    """Size and time of change of a local file."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def is_written_by_another(path: Path) -> bool:
    """Whether a process writes the run now; it uploads it itself."""
    try:
        with (path / ".lock").open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def state_file(path: Path) -> Path:
    """Where it is kept what is known of a run."""
    return path.parent / _STATES / f"{path.name}.json"


def read_state(path: Path) -> RemoteState:
    """What is known of a run; nothing if it was never fetched nor begun here."""
    try:
        return RemoteState(**json.loads(state_file(path).read_bytes()))
    except (OSError, ValueError, TypeError):
        return RemoteState()


def write_state(path: Path, state: RemoteState) -> None:
    """Keep what is known of a run."""
    with replacing(state_file(path)) as stream:
        stream.write(json.dumps(vars(state)).encode())


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Fetch and upload a run in one process at a time."""
    folder = path.parent / _STATES
    with disk_faults_named(folder, "cannot be locked"):
        folder.mkdir(exist_ok=True)
        handle = (folder / f"{path.name}.lock").open("w")
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
