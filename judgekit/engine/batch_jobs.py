"""Batches from the written file to the stored replies: upload, create, wait, receive.

What is about to be done, and what was done, is stored before and after each step, so that a process that is killed at
any of them is followed by one that goes on there. A batch is created once: if its id was never heard, it is looked for
on the server.
"""

import asyncio
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from judgekit.core.batches import BatchPart
from judgekit.core.errors import ProviderError, StorageError
from judgekit.core.protocols import Batching, CallError
from judgekit.core.text import clean_text
from judgekit.engine.batch_replies import ReplyReader
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.passes import Observer
from judgekit.storage.batch_store import BatchStore

FIRST_WAIT_SECONDS = 2.0
"""Before the server is asked for the second time how far a batch is; then ever longer."""
_LONGER = 1.5

LONGEST_SILENCE_SECONDS = 3600.0
"""A server that cannot be reached for longer stops the run, which can be resumed."""

_NOT_FOUND = 404
_IS_OVER = (400, 409)
"""What servers say if a batch that has ended is cancelled."""

_NO_ROOM = re.compile(r"limit|quota", re.IGNORECASE)
"""How a server says that too much of this model waits already, such as `token_limit_exceeded`."""


class _Unreachable(ProviderError):
    """The server may be reached later."""


class BatchJobs:
    """Carries the parts of a run to their end, one step at a time."""

    def __init__(self, store: BatchStore, models: Mapping[str, ModelRuntime], run_id: str, observer: Observer) -> None:
        """Prepare; nothing is asked before `finish`."""
        self._store = store
        self._models = models
        self._run_id = run_id
        self._observer = observer
        self._heard_at = time.monotonic()
        self._n_refused: Counter[int] = Counter()

    @property
    def n_open(self) -> int:
        """Parts that have not come to their end."""
        return len(self._open())

    def _open(self) -> list[BatchPart]:
        return [part for part in self._store.parts.values() if part.is_open]

    async def finish(self) -> None:
        """Submit what is written, wait for what is submitted, and store the replies.

        Raises:
            ProviderError: a server refuses a batch, or cannot be reached; the run can be resumed.
            StorageError: the state cannot be stored.
        """
        for part in self._open():
            await self._step(part, self._submit)
        how = f"Ctrl-C leaves them, and judgekit run --resume {self._run_id} goes on"
        self._observer.waiting(f"waiting for batches ({self.n_open}); {how}", is_new=True)
        waits = {part.model_id: FIRST_WAIT_SECONDS for part in self._open()}
        while True:
            for part in self._open():
                if part.status == "submitted":
                    await self._look_patiently(part)
                elif not self._others(part):
                    await self._step(part, self._submit)
            left = {part.model_id for part in self._open()}
            if not left:
                return
            for name in left:
                waits[name] = min(waits[name] * _LONGER, self._models[name].config.batches.poll_seconds)
            await asyncio.sleep(min(waits[name] for name in left))

    def _others(self, part: BatchPart) -> list[BatchPart]:
        """Other batches of its model that go on."""
        return [
            other
            for other in self._open()
            if other.model_id == part.model_id and other.number != part.number and other.status == "submitted"
        ]

    async def _look_patiently(self, part: BatchPart) -> None:
        """A batch goes on while its server cannot be reached, so that is waited for too, up to an hour."""
        try:
            await self._step(part, self._look)
        except _Unreachable as error:
            if time.monotonic() - self._heard_at > LONGEST_SILENCE_SECONDS:
                raise
            self._observer.waiting(f"{error}; asking again", is_new=False)
        else:
            self._heard_at = time.monotonic()

    async def cancel(self) -> None:
        """Stop what is open; what was answered by then is received by the run.

        Raises:
            ProviderError: a server cannot be reached.
            StorageError: the state cannot be stored.
        """
        for part in self._open():
            await self._step(part, self._cancel)

    async def _step(self, part: BatchPart, step: Callable[[BatchPart, Batching], Awaitable[None]]) -> None:
        runtime = self._models.get(part.model_id)
        endpoint = runtime.provider.batches() if runtime is not None else None
        if runtime is None or endpoint is None:
            raise ProviderError(f"batch {part.batch_id or part.number}: model {part.model_id} has no batch endpoint")
        try:
            await step(part, endpoint)
        except CallError as error:
            where = f"batch {part.batch_id}" if part.batch_id else f"a batch of {part.n_requests} requests"
            kind = _Unreachable if error.retryable else ProviderError
            is_none = error.status == _NOT_FOUND and part.file_id is None
            hint = '; if the server has no batch endpoint, leave "mode" out' if is_none else ""
            raise kind(f"model {part.model_id}: {where}: {error}{hint}") from None

    async def _submit(self, part: BatchPart, endpoint: Batching) -> None:
        save = self._store.save
        if part.status == "creating" and not self._store.n_without_line(part.number):
            save(replace(part, status="ended"))  # its replies were imported
            return
        if part.status == "creating":
            found = await endpoint.find(part.token, part.file_id or "", part.created_at)
            if found is not None:
                part = save(replace(part, status="submitted", batch_id=found.id))
        if part.status == "written":
            path = self._file_of(part)
            if not path.exists():
                self._lose(part)
                raise StorageError(f"{path}: is gone before it was submitted; its requests are asked with --resume")
            part = save(replace(part, status="uploaded", file_id=await endpoint.upload(path)))
        if part.status in ("uploaded", "creating"):
            token = part.token or f"{part.sha256[:16]}-{secrets.token_hex(8)}"
            part = save(replace(part, status="creating", token=token, created_at=int(time.time())))
            metadata = {"judgekit_run": self._run_id[:512], "judgekit_part": token}
            window = self._models[part.model_id].config.batches.completion_window
            created = await endpoint.create(part.file_id or "", window, metadata)
            save(replace(part, status="submitted", batch_id=created.id, server_status=created.status))

    async def _look(self, part: BatchPart, endpoint: Batching) -> None:
        """See how far a batch is, and receive its replies once it has ended."""
        now = await endpoint.retrieve(part.batch_id or "")
        is_new = (now.status, now.counts) != (part.server_status, part.counts)
        if is_new:
            part = self._store.save(
                replace(
                    part,
                    server_status=now.status,
                    counts=now.counts,
                    output_file_id=now.output_file_id,
                    error_file_id=now.error_file_id,
                )
            )
        self._observer.waiting(_in_words(part, now.status), is_new=is_new)
        if not now.has_ended:
            return
        if now.status == "failed" and now.output_file_id is None:
            self._refused(part, "; ".join(now.errors) or "the server does not say why")
            return
        part = replace(part, output_file_id=now.output_file_id, error_file_id=now.error_file_id)
        await self._receive(part, endpoint)

    def _refused(self, part: BatchPart, why: str) -> None:
        """A batch was never begun: it is submitted again once others are over, or the run stops."""
        where = f"model {part.model_id}: batch {part.batch_id} failed validation: {why}"
        # Another one may just be over, so it is tried once more; alone it has no room at all.
        self._n_refused[part.number] += 1
        if not _NO_ROOM.search(why) or (not self._others(part) and self._n_refused[part.number] > 1):
            self._lose(part)
            raise ProviderError(where)
        self._observer.waiting(f"{where}; it is submitted again when another one is over", is_new=True)
        new = replace(part, status="uploaded", batch_id=None, token="", server_status=None, counts=None)
        self._store.save(new)

    async def _receive(self, part: BatchPart, endpoint: Batching) -> None:
        """All lines of both files, or none: they are stored in one transaction with the end of the part."""
        left_out: Counter[str] = Counter()
        for file_id in (part.output_file_id, part.error_file_id):
            if file_id is not None:
                reader = ReplyReader(self._store, f"{part.number}/{file_id}", part.number)
                try:
                    await endpoint.lines(file_id, reader.begin)
                except CallError as error:
                    if error.status != _NOT_FOUND:
                        raise
                    left_out["file gone from the server"] += 1
                left_out += reader.left_out
        self._store.save(replace(part, status="ended", left_out=dict(sorted(left_out.items()))))
        with suppress(OSError):
            self._file_of(part).unlink()

    def _file_of(self, part: BatchPart) -> Path:
        """Where its requests stand; a run folder may have been moved."""
        return self._store.folder / Path(part.path).name

    def _lose(self, part: BatchPart) -> None:
        """Nothing comes of a part; its requests may be asked again."""
        self._store.give_up(part)
        self._store.save(replace(part, status="failed"))

    async def _cancel(self, part: BatchPart, endpoint: Batching) -> None:
        if part.batch_id is None and part.status == "creating":
            # If there is no list of batches either, whoever cancels gives it up.
            with suppress(CallError):
                found = await endpoint.find(part.token, part.file_id or "", part.created_at)
                part = part if found is None else self._store.save(replace(part, status="submitted", batch_id=found.id))
        if part.batch_id is None:
            self._lose(part)
            return
        try:
            await endpoint.cancel(part.batch_id)
        except CallError as error:
            if error.status == _NOT_FOUND:
                self._lose(part)
            elif error.status not in _IS_OVER:
                raise


def _in_words(part: BatchPart, status: str) -> str:
    """What is waited for."""
    counts = part.counts or {}
    failed = f", {counts['failed']:,} failed" if counts.get("failed") else ""
    done = f"{counts.get('completed', 0):,} of {counts.get('total') or part.n_requests:,} answered{failed}"
    return f"model {part.model_id}: batch {part.batch_id} is {clean_text(status)[:40]}: {done}"
