"""What a command changed in runs at an address is uploaded when it ends, the manifest last, so it is never alone."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from judgekit.core.errors import JudgekitError, StorageError
from judgekit.core.runs import MANIFEST
from judgekit.storage.remote_files import LOCAL, Listed, faults_of, file_system, listed_files, make_folder, version_of
from judgekit.storage.remote_runs import CLAIM, both_changed, remote_manifest, run_address, session, sha256_of
from judgekit.storage.remote_state import (
    RemoteState,
    changed_files,
    held,
    is_written_by_another,
    read_state,
    stamp_of,
    state_file,
    write_state,
)


@contextmanager
def uploads(say: Callable[[str], None]) -> Iterator[None]:
    """A command: what it changes in runs that are elsewhere is uploaded when it ends, also if it ends badly.

    Args:
        say: takes a line for each run that was uploaded.

    Raises:
        StorageError: a run cannot be uploaded, or somebody else changed it; it stays where it is.
    """
    if session.get() is not None:
        yield
        return
    touched: dict[Path, None] = {}
    token = session.set(touched)
    try:
        try:
            yield
        except BaseException:
            for path in touched:
                try:
                    _upload(path, say)
                except JudgekitError as error:  # must not hide what happened first
                    say(str(error))
            raise
        for path in touched:
            _upload(path, say)
    finally:
        session.reset(token)


def _upload(path: Path, say: Callable[[str], None]) -> None:
    url = run_address(path)
    if url is None or not state_file(path).exists():
        return
    with held(path):
        state = read_state(path)
        if not path.exists():
            if state.claim is not None and state.manifest is None:  # a run that turned out to be none
                store, root = file_system(url)
                with suppress(Exception):
                    store.rm_file(f"{root}/{CLAIM}")
                state_file(path).unlink(missing_ok=True)
            return
        if not (path / MANIFEST).exists() or not changed_files(path, state) or is_written_by_another(path):
            return
        store, root = file_system(url)
        try:
            with faults_of(url, "uploaded"):
                _send(store, root, path, url, state)
        except JudgekitError as error:
            raise StorageError(
                f"{error}; the run is in the {LOCAL}{path}, and the next command about it uploads it"
            ) from None
    say(f"uploaded {url}")


def _send(store: Any, root: str, path: Path, url: str, state: RemoteState) -> None:
    """Upload what is new: the manifest last, and one of a complete run marked as changing before anything else."""
    there = remote_manifest(store, root)
    changed = changed_files(path, state)
    listed = listed_files(store, root)
    if not state.has_written(sha256_of(there)) or any(_is_newer(listed, name, state) for name in changed):
        raise both_changed(path, url)
    state.sending = sorted({*state.sending, *changed})
    write_state(path, state)
    state.stamps.pop(MANIFEST, None)  # whatever happens, it is to be sent at the end
    if there is not None and not (known := json.loads(there)).get("changing") and known.get("status") == "complete":
        _send_manifest(store, root, path, state, json.dumps({**known, "changing": True}, indent=2).encode())
    lost = [name for name in state.stamps if name not in listed and name not in changed]
    for name in [*changed, *lost]:
        if name == MANIFEST:
            continue
        local = path / name
        if not local.exists():
            with suppress(FileNotFoundError):
                store.rm_file(f"{root}/{name}")
            state.stamps.pop(name, None)
        else:
            stamp = stamp_of(local)
            make_folder(store, f"{root}/{name}")
            store.put_file(str(local), f"{root}/{name}")
            state.stamps[name] = stamp
        state.versions.pop(name, None)
        write_state(path, state)
    stamp = stamp_of(path / MANIFEST)
    _send_manifest(store, root, path, state, (path / MANIFEST).read_bytes())
    state.stamps[MANIFEST] = stamp
    listed = listed_files(store, root)
    state.versions = {name: version_of(info) for name, (_, info) in listed.items() if name in state.stamps}
    state.sending = []
    write_state(path, state)


def _is_newer(listed: Mapping[str, Listed], name: str, state: RemoteState) -> bool:
    """Whether a file beside the manifest, such as tags or labels, was written at the address by somebody else."""
    if name not in listed or name == MANIFEST or name in state.sending:
        return False
    if name not in state.stamps:
        return True
    return name in state.versions and state.versions[name] != version_of(listed[name][1])


def _send_manifest(store: Any, root: str, path: Path, state: RemoteState, data: bytes) -> None:
    """Replace the manifest, in one step also where a store is a disk, which would show half of it."""
    state.manifest_sent = sha256_of(data)
    write_state(path, state)
    if getattr(store, "local_file", False):
        store.pipe_file(f"{root}/.{MANIFEST}.tmp", data)
        store.mv(f"{root}/.{MANIFEST}.tmp", f"{root}/{MANIFEST}")
    else:
        store.pipe_file(f"{root}/{MANIFEST}", data)
    state.manifest = sha256_of(data)
    write_state(path, state)
