"""Parts of a run that workers judge, and which of them count. All it takes is a folder that all workers see.

An attempt to judge a shard is claimed by a file that only one process can make. It is written to `part-3of16-1`, a run
folder, and counts once `part-3of16-1.commit.json` is there, which appears as a whole or not at all. Of two attempts
that are both committed the one with the lower number counts, whatever clocks say and whichever came first.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from judgekit.core.case_parts import shard_numbers
from judgekit.core.errors import StorageError
from judgekit.core.runs import MANIFEST
from judgekit.storage.run_files import disk_faults_named, replacing
from judgekit.storage.run_folder import RunFolder

PARTS = "parts"
"""Folder of a run, until it is complete, in which its parts are judged."""

_PART = re.compile(r"part-([0-9]+)of([0-9]+)-([0-9]+)")
_COMMIT = ".commit.json"
_CLAIM = ".claim"
_BEAT = ".beat"

BEAT_SECONDS = 5.0
"""How often an attempt that is under way says so."""


def committed_attempt(path: Path) -> int | None:
    """The number of the attempt that a run folder is, if it is one that is committed."""
    match = _PART.fullmatch(path.name)
    return None if match is None or not ShardParts(path.parent).is_committed(path.name) else int(match[3])


class ShardParts:
    """The parts of one run."""

    def __init__(self, path: Path) -> None:
        """Parts in a folder, which need not be there."""
        self.path = path

    def make(self) -> None:
        """Make the folder, if it is not there.

        Raises:
            StorageError: it cannot be made.
        """
        with disk_faults_named(self.path, "cannot be made"):
            self.path.mkdir(parents=True, exist_ok=True)

    def claim(self, shard: str) -> str:
        """The name of a new attempt, which no other process has.

        Raises:
            StorageError: the folder cannot be written.
        """
        number, n_shards = shard_numbers(shard)
        with disk_faults_named(self.path, "cannot be written"):
            attempt = 1 + max((attempt for attempt, _ in self._named(number, _CLAIM)), default=0)
            while True:
                name = f"part-{number}of{n_shards}-{attempt}"
                try:
                    os.close(os.open(self.path / (name + _CLAIM), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
                except FileExistsError:
                    attempt += 1
                else:
                    return name

    @contextmanager
    def beating(self, name: str) -> Iterator[None]:
        """Say that an attempt is under way, for as long as this process lives and whatever it waits for."""
        ended = threading.Event()

        def beat() -> None:
            while True:
                with suppress(OSError):
                    (self.path / (name + _BEAT)).touch()
                if ended.wait(BEAT_SECONDS):
                    return

        thread = threading.Thread(target=beat, name="judgekit-beat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def last_beat(self, name: str) -> int:
        """Changes with each sign of life of an attempt; it is compared with what it was, and not with a clock."""
        try:
            return (self.path / (name + _BEAT)).stat().st_mtime_ns
        except OSError:
            return 0

    def commit(self, name: str) -> bool:
        """Let a complete attempt count; False if it was committed before.

        Raises:
            StorageError: the record cannot be written.
        """
        target = self.path / (name + _COMMIT)
        record = {"part": name, "manifest_sha256": self._manifest_sha256(name)}
        own = self.path / f".{name}.{secrets.token_hex(4)}"
        with replacing(own) as stream:
            stream.write(json.dumps(record, indent=2).encode() + b"\n")
        with disk_faults_named(target, "cannot be written"):
            try:
                os.link(own, target)
            except FileExistsError:
                return False
            except OSError:  # a file system without links: renaming is as whole, and an attempt has one writer
                own.replace(target)
            finally:
                with suppress(FileNotFoundError):
                    own.unlink()
        return True

    def committed(self) -> dict[int, RunFolder]:
        """By number of the shard, the attempt that counts.

        Raises:
            StorageError: an attempt is not what was committed, or its record is damaged.
        """
        found: dict[int, tuple[int, str]] = {}
        for number, attempt, name in self._all(_COMMIT):
            if number not in found or attempt < found[number][0]:
                found[number] = attempt, name
        return {number: self._held_to_record(name) for number, (_, name) in sorted(found.items())}

    def n_shards(self) -> int | None:
        """How many shards the cases were divided into; None if nothing was begun."""
        for path in self._files(_CLAIM):
            match = _PART.fullmatch(path.name.removesuffix(_CLAIM))
            if match is not None:
                return int(match[2])
        return None

    def attempts(self, number: int | None = None) -> list[str]:
        """Names of the attempts of a shard, or of all of them, in their order."""
        found = sorted((shard, attempt, name) for shard, attempt, name in self._all(_CLAIM))
        return [name for shard, _, name in found if number in (None, shard)]

    def has(self, name: str) -> bool:
        """Whether an attempt came so far that it has a folder with a manifest."""
        return (self.path / name / MANIFEST).exists()

    def is_committed(self, name: str) -> bool:
        """Whether an attempt counts, or would without one of a lower number."""
        return (self.path / (name + _COMMIT)).exists()

    def clear(self) -> None:
        """Remove all parts, once what counts is elsewhere; what cannot be removed stays."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _manifest_sha256(self, name: str) -> str:
        path = self.path / name / MANIFEST
        with disk_faults_named(path, "cannot be read"):
            return hashlib.sha256(path.read_bytes()).hexdigest()

    def _held_to_record(self, name: str) -> RunFolder:
        record = self.path / (name + _COMMIT)
        hint = f"delete {record}, then the shard is judged again"
        try:
            wanted = json.loads(record.read_bytes())["manifest_sha256"]
            is_same = self._manifest_sha256(name) == wanted
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{record}: damaged: {error}; {hint}") from None
        except StorageError as error:
            raise StorageError(f"{error}; {hint}") from None
        if not is_same:
            raise StorageError(f"{self.path / name / MANIFEST}: damaged: it is not what was committed; {hint}")
        try:
            return RunFolder.open(self.path / name)
        except StorageError as error:
            raise StorageError(f"{error}; or {hint}") from None

    def _named(self, number: int, suffix: str) -> Iterator[tuple[int, str]]:
        return ((attempt, name) for shard, attempt, name in self._all(suffix) if shard == number)

    def _all(self, suffix: str) -> Iterator[tuple[int, int, str]]:
        for path in self._files(suffix):
            name = path.name.removesuffix(suffix)
            match = _PART.fullmatch(name)
            if match is not None:
                yield int(match[1]), int(match[3]), name

    def _files(self, suffix: str) -> list[Path]:
        return sorted(self.path.glob(f"part-*{suffix}"))
