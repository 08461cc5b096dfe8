"""Files at an address such as `s3://bucket/cases.jsonl`: fetched once to a local folder, and read there.

The package `fsspec` knows the addresses, and needs one of its own for most stores, such as s3fs for `s3://`.
Keys come from where that package looks for them (its variables and config files), never from an address.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from judgekit.core.errors import ConfigError, JudgekitError, StorageError
from judgekit.core.text import clean_text
from judgekit.storage.run_files import disk_faults_named, replacing

PLACE_VARIABLE = "JUDGEKIT_REMOTE_DIR"
"""Names the folder for what is fetched, and for runs until they are uploaded."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?P<rest>.*)", re.DOTALL)
_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:/+)[^/\s'\"]*:[^/\s'\"]*@")
_QUERY = re.compile(r"\?[^/\s]*=")
_SECRET_NAME = re.compile(r"KEY|SECRET|TOKEN|PASS|CREDENTIAL|CONNECTION_STRING|(^|_)SAS", re.IGNORECASE)
_FEWEST_CHARACTERS = 6
"""Shorter values of such variables are words like `true`, and hiding them would garble a message."""

_VERSIONS = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "updated", "created")
"""What stores say of a file that changes when it does."""

_BUCKETS = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "obs", "tos"}
"""Kinds of stores that have no folders."""

ADDRESS_FILE = ".address"
"""In a folder for what was fetched: where it is from."""

LOCAL = "local folder "
"""In a message, before the path of a local copy that is meant as such."""

Listed = tuple[str, Mapping[str, Any]]
"""The name of a file as its store has it, and what the store says of it."""


def is_url(name: str | Path) -> bool:
    """Whether a name is an address and no path; also one whose slashes `Path` has joined, as in `s3:/bucket`."""
    return _URL.fullmatch(str(name)) is not None


def url_of(name: str | Path) -> str:
    """An address with both slashes and none at its end.

    Raises:
        ConfigError: it holds a key or password, which would end up in files and on screens.
    """
    scheme, _, rest = str(name).partition(":/")
    rest = rest.removeprefix("/")
    if scheme.lower() == "file" and not rest.startswith("/"):
        rest = f"/{rest}"
    url = f"{scheme.lower()}://{rest.rstrip('/')}"
    if _PASSWORD.match(url) or _QUERY.search(url):
        shown = _QUERY.split(_PASSWORD.sub(r"\1***@", url))[0]
        raise ConfigError(
            f"{clean_text(shown)}: the address holds a key, password or query; leave it out, and give keys to "
            "the store's own package, as in AWS_PROFILE for s3://"
        )
    return url


def local_root() -> Path:
    """The folder of everything that is fetched; nobody else may look into it."""
    named = os.environ.get(PLACE_VARIABLE)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(named) if named else Path(cache) / "judgekit" / "remote").resolve()


def local_folder(url: str) -> Path:
    """The local folder that belongs to an address.

    Raises:
        StorageError: it cannot be made.
    """
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", url.rpartition("/")[2])[:40].strip(".-")
    folder = local_root() / f"{hashlib.sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}-{name or 'data'}"
    with disk_faults_named(folder, f"cannot be created ({PLACE_VARIABLE} names another place)"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (folder / ADDRESS_FILE).exists():
            with replacing(folder / ADDRESS_FILE) as stream:
                stream.write(url.encode("utf-8", "replace"))
    return folder


def address_of(path: Path) -> str | None:
    """Where a local file or folder is from; None if it was not fetched."""
    root = local_root()
    absolute = Path(os.path.abspath(path))  # noqa: PTH100  # resolve() would follow links inside
    if not absolute.is_relative_to(root) or absolute == root:
        return None
    first, *rest = absolute.relative_to(root).parts
    try:
        url = (root / first / ADDRESS_FILE).read_text(encoding="utf-8")
    except OSError:
        return None
    return "/".join([url, *rest])


def with_addresses(text: str) -> str:
    """A message in which local copies are called by their addresses, and no address holds a password."""
    root = str(local_root())
    if root in text:
        for place in set(re.findall(rf"(?<!{LOCAL}){re.escape(root)}/[^/\s:,;'\"]+", text)):
            url = address_of(Path(place))
            if url is not None:
                text = url.join(re.split(rf"(?<!{LOCAL}){re.escape(place)}", text))
    return _PASSWORD.sub(r"\1***@", text)


@contextmanager
def faults_of(url: str, what: str) -> Iterator[None]:
    """Say what went wrong with a store in one line, without keys.

    Raises:
        ConfigError: there is nothing at the address.
        StorageError: everything else.
    """
    try:
        yield
    except JudgekitError:
        raise
    except FileNotFoundError:
        why = "nothing is there" if what == "read" else "there is no such bucket or folder"
        raise ConfigError(f"{url}: cannot be {what}: {why}") from None
    except PermissionError as error:
        raise StorageError(f"{url}: cannot be {what}: access denied{_detail(error)}") from None
    except Exception as error:  # noqa: BLE001  # each store's package has its own
        raise StorageError(f"{url}: cannot be {what}: {type(error).__name__}{_detail(error)}") from None


def file_system(url: str) -> tuple[Any, str]:
    """What fsspec reads and writes at an address, and the path that it knows it by.

    Raises:
        ConfigError: a package is missing, or there is no such kind of address.
    """
    try:
        import fsspec
    except ImportError:
        raise ConfigError(f"{url}: reading and writing addresses needs fsspec: pip install fsspec") from None
    try:
        found, path = fsspec.core.url_to_fs(url)
        found.invalidate_cache()  # another process may have written since
    except ImportError as error:
        name = getattr(error.__cause__, "name", None)
        said = f"{name} is missing: pip install {name}" if name else without_keys(str(error))
        raise ConfigError(f"{url}: {said}") from None
    except ValueError as error:
        raise ConfigError(f"{url}: {without_keys(str(error))}") from None
    except Exception as error:  # noqa: BLE001  # keys that cannot be found, a config file that is broken
        raise StorageError(f"{url}: cannot be reached: {type(error).__name__}{_detail(error)}") from None
    return found, path


def version_of(info: Mapping[str, Any]) -> str | None:
    """What a store says of a file that changes when it does; None if it says no more than its size."""
    said = {name: str(info[name]) for name in _VERSIONS if info.get(name) is not None}
    return json.dumps([info.get("size"), said], sort_keys=True) if said else None


def local_data(base: Path, name: str) -> Path:
    """The path of a data file: below `base`, or the local copy of what is at an address, fetched if it has changed.

    Args:
        base: where relative paths start.
        name: path or address of a file, a folder, or several files by a pattern such as `part-*.parquet`.

    Raises:
        ConfigError: there is nothing at the address, or a package is missing.
        StorageError: it cannot be read, or the local copy not be written.
    """
    if not is_url(name):
        return base / name
    url = url_of(name)
    store, path = file_system(url)
    with faults_of(url, "read"):
        root, found = _files(store, path)
        if not found:
            raise ConfigError(f"{url}: cannot be read: nothing is there")
        target = local_folder(url) / "data"
        for remote, info in found.items():
            fetch_file(store, remote, info, inside(target, os.path.relpath(remote, root)))
        _drop_others(target, {inside(target, os.path.relpath(remote, root)) for remote in found})
    if len(found) == 1 and path in found:
        return target / Path(path).name
    return target / path.rpartition("/")[2] if _is_pattern(path) else target


def _is_pattern(path: str) -> bool:
    return re.search(r"[*?[]", path) is not None


def _files(store: Any, path: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """The folder that a path is of, and the files with what the store says of them."""
    if _is_pattern(path):
        parent = path[: re.search(r"[*?[]", path).start()].rpartition("/")[0]  # type: ignore[union-attr]  # it is one
        found = store.glob(path, detail=True)
        return parent, {name: info for name, info in found.items() if info["type"] == "file"}
    info = store.info(path)
    if info["type"] == "file":
        return path.rpartition("/")[0], {path: info}
    return path, store.find(path, detail=True)


def inside(folder: Path, name: str) -> Path:
    """A file below a folder.

    Raises:
        StorageError: its name leads out of it.
    """
    parts = name.split("/")
    if name.startswith("/") or not {"", ".", ".."}.isdisjoint(parts):
        raise StorageError(f"{folder}: a file is called {clean_text(name)!r}, which is no name of a file in a folder")
    return folder.joinpath(*parts)


def fetch_file(store: Any, remote: str, info: Mapping[str, Any], local: Path) -> None:
    """Bring a local copy up to date; the old one stays until the new one is whole.

    Raises:
        StorageError: it came in part only, or cannot be written.
    """
    beside = local.with_name(f".{local.name}.version")
    version = version_of(info)
    with suppress(OSError):
        if version is not None and beside.read_text() == version and local.stat().st_size == info.get("size"):
            return
    with disk_faults_named(local, "cannot be written"):
        local.parent.mkdir(parents=True, exist_ok=True)
        beside.unlink(missing_ok=True)
    temporary = local.with_name(f".{local.name}.{os.getpid()}.tmp")
    try:
        store.get_file(remote, str(temporary))
        size, wanted = temporary.stat().st_size, info.get("size")
        if wanted is not None and size != wanted:
            raise StorageError(f"{remote}: only {size} of {wanted} bytes came")
        temporary.replace(local)
        if version is not None:
            beside.write_text(version)
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(store: Any, remote: str) -> None:
    """Make the folder of a file, where a store has folders; elsewhere a wrong name would become a new bucket."""
    kinds = (store.protocol,) if isinstance(store.protocol, str) else store.protocol
    if _BUCKETS.isdisjoint(kinds):
        store.makedirs(remote.rpartition("/")[0], exist_ok=True)


def create_file(store: Any, remote: str, data: bytes) -> None:
    """Write a file that must not be there; a store that cannot hold to that has been asked before."""
    make_folder(store, remote)
    try:
        store.pipe_file(remote, data, mode="create")
    except (NotImplementedError, TypeError):
        store.pipe_file(remote, data)


def read_file(store: Any, remote: str) -> bytes | None:
    """A small file; None if it is not there."""
    try:
        return bytes(store.cat_file(remote))
    except FileNotFoundError:
        return None


def listed_files(store: Any, root: str) -> dict[str, Listed]:
    """The files below an address by name, each with its full name and what the store says of it; not hidden ones."""
    store.invalidate_cache()
    if not store.exists(root):
        return {}
    found = {os.path.relpath(remote, root): (remote, info) for remote, info in store.find(root, detail=True).items()}
    return {name: there for name, there in found.items() if not name.rpartition("/")[2].startswith(".")}


def _drop_others(folder: Path, kept: set[Path]) -> None:
    """Delete local copies of what is gone, which a folder or pattern would else take in."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith(".") and path not in kept:
            path.unlink(missing_ok=True)


def without_keys(text: str) -> str:
    """A text in which values of variables and settings that look like secrets are hidden, in one line."""
    for value in sorted(_secrets(), key=len, reverse=True):
        text = text.replace(value, "***")
    return " ".join(_PASSWORD.sub(r"\1***@", text).split())[:300]


def _secrets() -> set[str]:
    import fsspec.config

    found = {value for name, value in os.environ.items() if _SECRET_NAME.search(name)}
    for options in fsspec.config.conf.values():
        if isinstance(options, Mapping):
            found |= {str(value) for name, value in options.items() if _SECRET_NAME.search(str(name))}
    return {value for value in found if len(value) >= _FEWEST_CHARACTERS}


def _detail(error: BaseException) -> str:
    said = without_keys(str(error))
    return f": {said}" if said else ""
