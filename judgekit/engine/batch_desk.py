"""Where a judging pass leaves the requests that go by batch, and finds the replies that came."""

import hashlib
from pathlib import Path

from judgekit.core.batches import BatchPart, BatchSettings
from judgekit.core.errors import JudgekitError
from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.protocols import CallError
from judgekit.engine.requests import JudgePlan
from judgekit.providers.batch_lines import request_line, response_of
from judgekit.storage.batch_store import BatchStore, PartWriter


class Postponed(JudgekitError):
    """The question waits for the reply of a batch; it is judged once that is there."""


class BatchError(CallError):
    """A batch holds no reply to a request; nothing was asked just now."""


def request_name(plan: JudgePlan, key: str, case_id: str) -> str:
    """The `custom_id` of a request; 64 characters, the most that endpoints take.

    Equal questions of judges are one request. A second opinion is another one, although it asks the same.
    """
    if plan.use_cache:
        return key.rpartition(":")[2]
    return hashlib.sha256(f"{key}\n{plan.role}\n{plan.check}\n{case_id}".encode("utf-8", "surrogatepass")).hexdigest()


class BatchDesk:
    """The batches of one model during one round of judging."""

    def __init__(
        self, store: BatchStore, model_id: str, folder: Path, settings: BatchSettings, *, collects: bool
    ) -> None:
        """Prepare.

        Args:
            store: the batches of the run.
            model_id: the model.
            folder: where files of requests are written.
            settings: their limits.
            collects: requests without a reply go into a batch; False: only the replies that are there are used.
        """
        self.collects = collects
        self.n_postponed = 0
        """Questions that wait for a batch."""
        self.refusal: str | None = None
        """Why a request was not taken into a batch, such as a budget that does not hold it."""
        self._failed: dict[str, BatchError] = {}
        self._store = store
        self._writer = PartWriter(
            store,
            lambda _, number: folder / f"requests-{number:04}.jsonl",
            BatchPart(number=0, model_id=model_id, status="written"),
            (settings.max_requests, settings.max_bytes),
        )

    def reply(self, name: str) -> ModelResponse | None:
        """The reply to a request; None: none is known, and it may be asked.

        Raises:
            BatchError: its batch ended without one.
            Postponed: it is in a batch that goes on.
        """
        if name in self._failed:  # of an equal question
            raise self._failed[name]
        found = self._store.find(name)
        if found is not None and found.is_used_here:
            raise Postponed(name)  # until the run is resumed: the failure was recorded in an earlier round
        if found is None or found.is_used:
            return None
        if found.line is not None:
            try:
                return response_of(found.line)
            except CallError as error:
                raise self._failure(name, BatchError(error.kind, str(error), n_requests=error.n_requests)) from None
        if found.part.is_open:
            self.n_postponed += 1
            raise Postponed(name)
        if found.part.status != "ended":
            return None
        which, how = f"batch {found.part.batch_id}", found.part.server_status
        if how in ("expired", "cancelled"):
            raise self._failure(name, BatchError("expired", f"{which} ended as {how} before its answer", n_requests=0))
        raise self._failure(name, BatchError("server_error", f"{which} has no reply to this request, and no error"))

    def _failure(self, name: str, error: BatchError) -> BatchError:
        """The error of a request, which becomes a judgment now."""
        self._store.use(name)
        self._failed[name] = error
        return error

    def collect(self, name: str, request: ModelRequest) -> None:
        """Take a request into the batch that is submitted at the end of the round."""
        self.n_postponed += 1
        self._writer.add(name, request_line(name, request))

    def end(self) -> list[BatchPart]:
        """End the round; the parts that are to be submitted."""
        return self._writer.close()

    def discard(self) -> None:
        """End a round that was broken off: what it collected is not submitted."""
        self._writer.discard()
