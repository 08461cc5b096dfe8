"""The batch endpoint of an OpenAI-compatible server: files up and down, and batches made of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgekit.core.batches import CHAT_ADDRESS, ServerBatch, counts_of
from judgekit.core.protocols import CallError
from judgekit.providers.http_errors import redact

if TYPE_CHECKING:
    from judgekit.providers.openai_compatible import OpenAICompatible

_PAGE = 100
_MOST_PAGES = 200
_A_DAY = 86_400
"""Clocks of client and server may differ by less."""


class BatchEndpoint:
    """One call each, without retries; what fails raises `CallError`."""

    def __init__(self, provider: "OpenAICompatible") -> None:
        """Ask over the connection of a provider."""
        self._provider = provider

    async def upload(self, path: Path) -> str:
        """Id of a file of requests on the server."""
        with path.open("rb") as stream:
            form = {"file": (path.name, stream, "application/jsonl")}
            found = await self._provider.post_form("/files", {"purpose": "batch"}, form)
        return _id_of(found, "file")

    async def create(self, file_id: str, window: str, metadata: Mapping[str, str]) -> ServerBatch:
        """A new batch, which costs money. Never to be called again before `find` has looked for it."""
        body = {"input_file_id": file_id, "endpoint": CHAT_ADDRESS, "completion_window": window}
        return _batch(await self._provider.exchange("/batches", body | {"metadata": dict(metadata)}))

    async def retrieve(self, batch_id: str) -> ServerBatch:
        """How far a batch is."""
        return _batch(await self._provider.exchange(f"/batches/{batch_id}", None))

    async def cancel(self, batch_id: str) -> ServerBatch:
        """Stop a batch."""
        return _batch(await self._provider.exchange(f"/batches/{batch_id}/cancel", {}))

    async def find(self, token: str, file_id: str, since: int) -> ServerBatch | None:
        """The batch that was made of a file, by its metadata or its file; None if there is none.

        Args:
            token: what its metadata hold.
            file_id: of the file.
            since: seconds since 1970 before which it was not made.
        """
        after = ""
        for _ in range(_MOST_PAGES):
            page = await self._provider.exchange(f"/batches?limit={_PAGE}{after}", None)
            entries = page.get("data") if isinstance(page, Mapping) else None
            if not isinstance(entries, list):
                raise CallError("server_error", f"GET /batches is not a list: {redact(str(page)[:200])}")
            batches = [_batch(entry) for entry in entries]
            for batch in batches:
                if batch.token == token or batch.input_file_id == file_id:
                    return batch
            is_older = batches and (batches[-1].created_at or since) < since - _A_DAY
            if not batches or is_older or not page.get("has_more"):
                return None
            after = f"&after={batches[-1].id}"
        return None

    async def lines(self, file_id: str, begin: Callable[[], Callable[[bytes], None]]) -> None:
        """Every line of a file of replies, without secrets.

        Args:
            file_id: of the file.
            begin: called before the first line; gives what takes the lines.
        """
        await self._provider.download(f"/files/{file_id}/content", begin())


def _id_of(found: Any, what: str) -> str:
    name = found.get("id") if isinstance(found, Mapping) else None
    # It becomes a part of an address.
    if not isinstance(name, str) or not name or not set(name) <= _ID_CHARACTERS:
        raise CallError("server_error", f"the reply names no {what}: {redact(str(found)[:200])}")
    return name


_ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:=")


def _batch(found: Any) -> ServerBatch:
    name = _id_of(found, "batch")
    metadata, listed = found.get("metadata"), found.get("errors")
    entries = listed.get("data") if isinstance(listed, Mapping) else listed
    created = found.get("created_at")
    return ServerBatch(
        id=name,
        status=str(found.get("status")).lower(),
        counts=counts_of(found.get("request_counts")),
        output_file_id=_id_of({"id": found["output_file_id"]}, "output file") if found.get("output_file_id") else None,
        error_file_id=_id_of({"id": found["error_file_id"]}, "error file") if found.get("error_file_id") else None,
        errors=tuple(_shown(entry) for entry in (entries if isinstance(entries, list) else ())[:3]),
        token=metadata.get("judgekit_part") if isinstance(metadata, Mapping) else None,
        input_file_id=found["input_file_id"] if isinstance(found.get("input_file_id"), str) else None,
        created_at=created if type(created) is int else None,
    )


def _shown(error: Any) -> str:
    if not isinstance(error, Mapping):
        return redact(str(error))[:200]
    where = f"line {error['line']}: " if isinstance(error.get("line"), int) else ""
    said = ": ".join(str(error[name]) for name in ("code", "message") if error.get(name))
    return redact(f"{where}{said or dict(error)}")[:200]
