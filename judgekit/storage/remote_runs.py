"""Run folders at an address such as `s3://bucket/runs`: worked on in a local folder, and uploaded when a command ends.

A folder of runs at an address has a local folder, in which all that reads and writes runs works as on any disk. A run
is fetched before it is read; what a command changed in it is uploaded when the command ends, the manifest last, so that
no reader finds a complete manifest without its files. A manifest that somebody else changed meanwhile is not replaced.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from judgekit.core.errors import ConfigError, StorageError
from judgekit.core.runs import CONFIG, MANIFEST, METRICS, TAGS
from judgekit.storage.remote_files import (
    ADDRESS_FILE,
    LOCAL,
    Listed,
    address_of,
    create_file,
    faults_of,
    file_system,
    inside,
    is_url,
    listed_files,
    local_folder,
    read_file,
    url_of,
    version_of,
)
from judgekit.storage.remote_state import (
    RemoteState,
    changed_files,
    held,
    read_state,
    stamp_of,
    state_file,
    write_state,
)
from judgekit.storage.run_files import disk_faults_named, replacing

CLAIM = ".claim"
"""In the folder of a run that has begun: keeps its id from others until it is uploaded."""

_LISTED = (MANIFEST, METRICS, CONFIG, TAGS)
"""Files that lists of runs are made from."""

_TRIES = 3

session: ContextVar[dict[Path, None] | None] = ContextVar("session", default=None)
"""Runs and folders of runs that the command which is running has fetched or begun."""


def local_results(name: str | Path) -> Path:
    """The folder of runs that is meant; of an address, its local one.

    Raises:
        ConfigError: the address holds a key.
        StorageError: the local folder cannot be made.
    """
    return local_folder(url_of(name)) if is_url(name) else Path(name)


def local_run(name: str) -> Path:
    """The local folder of the run at an address, fetched; there is none if no run is at the address.

    Raises:
        ConfigError: it is no address of a run, holds a key, or a package is missing.
        StorageError: the run cannot be read.
    """
    place, _, run_id = url_of(name).rpartition("/")
    if place.endswith("/"):
        raise ConfigError(f"{name}: expected the address of a run, such as s3://bucket/runs/RUN")
    path = local_folder(place) / run_id
    fetch_run(path)
    return path


def is_run(path: Path) -> bool:
    """Whether a folder holds a run; one that is elsewhere is fetched first.

    Raises:
        StorageError: it cannot be read.
    """
    fetch_run(path)
    return os.path.isfile(path / MANIFEST)  # noqa: PTH113  # Path.is_file raises where a folder may not be entered


def fetch_list(results_dir: Path) -> None:
    """Of every run at an address, fetch what lists are made from; nothing for a folder on a disk.

    Raises:
        StorageError: it cannot be read.
    """
    url = _results_address(results_dir)
    if url is None or not _is_new(results_dir):
        return
    store, root = file_system(url)
    with faults_of(url, "read"):
        try:
            found = store.find(root, maxdepth=2, detail=True)
        except FileNotFoundError:
            found = {}
    runs: dict[str, dict[str, Listed]] = {}
    for remote, info in found.items():
        parts = os.path.relpath(remote, root).split("/")
        if len(parts) == 2:
            runs.setdefault(parts[0], {})[parts[1]] = (remote, info)
    here = {path.parent.name for path in results_dir.glob(f"*/{MANIFEST}")}
    for name in sorted({*runs, *here}):
        _list_run(store, inside(results_dir, name), runs.get(name, {}))


def _list_run(store: Any, path: Path, found: Mapping[str, Listed]) -> None:
    url = _url(path)
    with held(path):
        state = read_state(path)
        if changed_files(path, state):
            return
        if MANIFEST not in found:
            # It was deleted; what a run left here that is not uploaded yet counts as changed.
            for name in state.stamps:
                (path / name).unlink(missing_ok=True)
            write_state(path, RemoteState(claim=state.claim))
            return
        wanted = {name: found[name] for name in _LISTED if name in found}
        with faults_of(url, "read"):
            is_new = _bring(store, path, state, wanted)
        if is_new:
            state.manifest = sha256_of((path / MANIFEST).read_bytes())
            write_state(path, state)


def fetch_run(path: Path) -> None:
    """Fetch a run that is elsewhere, so that its folder here is the same; nothing for a run on a disk.

    Changes that are not uploaded yet, as after a kill, are kept.

    Raises:
        ConfigError: a package is missing.
        StorageError: it cannot be read, or it was changed in both places.
    """
    url = run_address(path)
    if url is None or not _is_new(path):
        return
    with held(path):
        store, root = file_system(url)
        for _ in range(_TRIES):
            if _fetched(store, root, path, url):
                return
    raise StorageError(f"{url}: is being changed by somebody else; try again")


def _fetched(store: Any, root: str, path: Path, url: str) -> bool:
    """Whether the run did not change while it was fetched."""
    state = read_state(path)
    with faults_of(url, "read"):
        before = remote_manifest(store, root)
        if changed_files(path, state):
            if not state.has_written(sha256_of(before)):
                raise both_changed(path, url)
            return True
        if before is None:
            if state.manifest is not None:  # it was deleted
                shutil.rmtree(path, ignore_errors=True)
                state_file(path).unlink(missing_ok=True)
            return True
        found = listed_files(store, root)
        manifest = found.pop(MANIFEST, None)
        _bring(store, path, state, found)
        if manifest is None or remote_manifest(store, root) != before:
            return False
        for name in state.stamps.keys() - found.keys() - {MANIFEST}:
            (path / name).unlink(missing_ok=True)
            del state.stamps[name]
        with replacing(path / MANIFEST) as stream:
            stream.write(before)
        state.manifest, state.stamps[MANIFEST] = sha256_of(before), stamp_of(path / MANIFEST)
        state.versions[MANIFEST] = version_of(manifest[1])
        state.sending, state.manifest_sent, state.is_fetching = [], None, False
        write_state(path, state)
    return True


def _bring(store: Any, path: Path, state: RemoteState, found: Mapping[str, Listed]) -> bool:
    """Fetch files that differ from those here, at once where the store can; whether there were any."""
    versions = {name: version_of(info) for name, (_, info) in found.items()}
    wanted = [
        name
        for name, version in versions.items()
        if version is None or name not in state.stamps or state.versions.get(name) != version
    ]
    if not wanted:
        return False
    was_fetching, state.is_fetching = state.is_fetching, True
    write_state(path, state)
    temporary = {name: inside(path, name).with_name(f".{inside(path, name).name}.tmp") for name in wanted}
    try:
        for place in temporary.values():
            with disk_faults_named(place, "cannot be written"):
                place.parent.mkdir(parents=True, exist_ok=True)
        store.get([found[name][0] for name in wanted], [str(place) for place in temporary.values()])
        for name in wanted:
            temporary[name].replace(inside(path, name))
            state.stamps[name], state.versions[name] = stamp_of(inside(path, name)), versions[name]
    finally:
        for place in temporary.values():
            place.unlink(missing_ok=True)
    state.is_fetching = was_fetching  # of a fetch of the whole run that was stopped before
    return True


def claim_run(path: Path) -> None:
    """Keep the id of a run that begins from others who begin one; nothing for a run on a disk.

    It also shows, before anything is paid for, that the store can be written.

    Raises:
        ConfigError: there is such a run already.
        StorageError: the store cannot be written.
    """
    url = run_address(path)
    if url is None:
        return
    taken = ConfigError(f"{url}: exists already; choose another --run-id, or resume it with --resume")
    with held(path):
        store, root = file_system(url)
        state = read_state(path)
        with faults_of(url, "written"):
            if remote_manifest(store, root) is not None:
                raise taken
            there = read_file(store, f"{root}/{CLAIM}")
            if there is not None and (state.claim is None or there.decode("utf-8", "replace") != state.claim):
                raise ConfigError(
                    f"{url}: a run of this id was begun elsewhere and is not uploaded yet; choose another --run-id, or "
                    f"delete {url}/{CLAIM} if that run is lost"
                )
            if there is None:
                state = RemoteState(claim=secrets.token_hex(16))
                write_state(path, state)
                try:
                    create_file(store, f"{root}/{CLAIM}", str(state.claim).encode())
                except FileExistsError:
                    raise taken from None
    _is_new(path)


def delete_run(path: Path) -> None:
    """Delete a run at its address, its manifest first; nothing for a run on a disk.

    Raises:
        StorageError: it cannot be deleted.
    """
    url = run_address(path)
    if url is None:
        return
    with held(path):
        store, root = file_system(url)
        with faults_of(url, "deleted"):
            for name in (MANIFEST, *(os.path.relpath(remote, root) for remote in store.find(root))):
                with suppress(FileNotFoundError):
                    store.rm_file(f"{root}/{name}")
            if store.exists(root):  # the folder itself, where a store has folders
                store.rm(root, recursive=True)
        state_file(path).unlink(missing_ok=True)


def remote_manifest(store: Any, root: str) -> bytes | None:
    """The manifest of a run at its address; None if it is not there."""
    return read_file(store, f"{root}/{MANIFEST}")


def sha256_of(data: bytes | None) -> str | None:
    """The hash that a manifest is known by."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def both_changed(path: Path, url: str) -> StorageError:
    """The error about a run with changes here and others at its address."""
    return StorageError(
        f"{url}: somebody else changed it, and the {LOCAL}{path} holds changes that are not uploaded; keep one: delete "
        "the folder to go on with what is at the address, or start a run of another id"
    )


def _is_new(path: Path) -> bool:
    """Whether the command that is running has not fetched it yet; it has from now on."""
    touched = session.get()
    if touched is None:
        return True
    is_new = path not in touched
    touched[path] = None
    return is_new


def _results_address(path: Path) -> str | None:
    """The address of a folder of runs; None if it is on a disk."""
    return address_of(path) if (path / ADDRESS_FILE).exists() else None


def run_address(path: Path) -> str | None:
    """The address of a run; None if it is on a disk."""
    return None if _results_address(path.parent) is None else _url(path)


def _url(path: Path) -> str:
    return f"{address_of(path)}"
