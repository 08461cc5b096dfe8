"""The one place where a request is made again: tenacity around any provider."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, stop_before_delay

from judgekit.core.batches import ServerBatch
from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.protocols import Batching, CallError, Capabilities, ModelIdentity, Provider

FIRST_WAIT_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 30.0
LONGEST_TOTAL_SECONDS = 600.0
"""No attempt begins later than so long after the first one has failed."""

T = TypeVar("T")


class Retrying(Provider):
    """Asks an inner provider again if that may help, with bounded attempts and total time."""

    selectable: ClassVar[bool] = False

    def __init__(self, inner: Provider, observe: Callable[[CallError], None]) -> None:
        """Wrap a provider; `observe` is told of every failed attempt, so that others can slow down."""
        super().__init__(inner.model, api_key=inner.api_key)
        # What is true of the inner provider is true of this one.
        self.is_llm = inner.is_llm  # type: ignore[misc]
        self.note = inner.note  # type: ignore[misc]
        self.probabilities = inner.probabilities  # type: ignore[misc]
        self._inner = inner
        self._observe = observe

    def check(self) -> None:
        """Check the inner provider."""
        self._inner.check()

    def check_wording(self, reply_schema: Mapping[str, Any]) -> None:
        """Check with the inner provider."""
        self._inner.check_wording(reply_schema)

    async def identify(self) -> ModelIdentity:
        """Identity from the inner provider, asked again on temporary faults."""
        return (await self._until_answered(self._inner.identify, None))[0]

    async def find_capabilities(self) -> Capabilities:
        """Capabilities from the inner provider, found out again from the start on temporary faults."""
        return (await self._until_answered(self._inner.find_capabilities, None))[0]

    async def find_top_logprobs(self, known: Capabilities) -> int:
        """Of the inner provider, asked again on temporary faults."""
        return (await self._until_answered(lambda: self._inner.find_top_logprobs(known), None))[0]

    def batches(self) -> Batching | None:
        """The batch endpoint of the inner provider, asked again on temporary faults."""
        inner = self._inner.batches()
        return None if inner is None else _RetryingBatches(inner, self)

    async def close(self) -> None:
        """Close the inner provider."""
        await self._inner.close()

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The reply of the first attempt that succeeds.

        Raises:
            CallError: not retryable, or attempts or time are used up; `n_requests` counts them.
        """
        try:
            return await self._inner.complete(request)
        except CallError as error:
            self._observe(error)
            if not error.retryable:
                raise
            response, n_requests = await self._until_answered(lambda: self._inner.complete(request), error)
            return replace(response, n_requests=n_requests)

    async def until_answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The first answer to a question that costs nothing to ask again."""
        return (await self._until_answered(ask, None))[0]

    async def _until_answered(self, ask: Callable[[], Awaitable[T]], first: CallError | None) -> tuple[T, int]:
        """The first answer and the number of requests; `first` is how an attempt that was made already ended."""
        pending, n_requests = first, 0

        async def attempt() -> T:
            nonlocal pending, n_requests
            n_requests += 1
            if pending is not None:
                error, pending = pending, None
                raise error
            try:
                return await ask()
            except CallError as error:
                self._observe(error)
                raise

        is_used_up = stop_after_attempt(self.model.max_attempts) | stop_before_delay(LONGEST_TOTAL_SECONDS)
        retrying: AsyncRetrying = AsyncRetrying(
            # The budget is asked last, since it counts a request.
            stop=lambda state: is_used_up(state) or (first is not None and not self.may_ask_again()),
            wait=self._wait,
            retry=retry_if_exception(lambda error: isinstance(error, CallError) and error.retryable),
            sleep=asyncio.sleep,
            reraise=True,
        )
        try:
            answer: T = await retrying(attempt)
        except CallError as error:
            error.n_requests = n_requests
            raise
        return answer, n_requests

    def _wait(self, state: RetryCallState) -> float:
        """What the server asks for, plus a little jitter; else exponential with full jitter."""
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.retry_after_seconds if isinstance(error, CallError) else None
        if asked is not None:
            return asked + random.uniform(0.0, 0.1 * asked + 0.05)  # noqa: S311  # jitter is no secret
        longest = min(LONGEST_BACKOFF_SECONDS, FIRST_WAIT_SECONDS * 2 ** (state.attempt_number - 1))
        return random.uniform(longest / 2, longest)  # noqa: S311


class _RetryingBatches:
    """A batch endpoint asked again on temporary faults; nothing that costs money is done twice."""

    def __init__(self, inner: Batching, retrying: Retrying) -> None:
        self._inner = inner
        self._until_answered = retrying.until_answered

    async def upload(self, path: Path) -> str:
        return await self._until_answered(lambda: self._inner.upload(path))

    async def create(self, file_id: str, window: str, metadata: Mapping[str, str]) -> ServerBatch:
        since, is_again = int(time.time()), False

        async def create_or_find() -> ServerBatch:
            nonlocal is_again
            if is_again:
                found = await self._inner.find(metadata["judgekit_part"], file_id, since)
                if found is not None:
                    return found
            is_again = True
            return await self._inner.create(file_id, window, metadata)

        return await self._until_answered(create_or_find)

    async def retrieve(self, batch_id: str) -> ServerBatch:
        return await self._until_answered(lambda: self._inner.retrieve(batch_id))

    async def find(self, token: str, file_id: str, since: int) -> ServerBatch | None:
        return await self._until_answered(lambda: self._inner.find(token, file_id, since))

    async def cancel(self, batch_id: str) -> ServerBatch:
        return await self._until_answered(lambda: self._inner.cancel(batch_id))

    async def lines(self, file_id: str, begin: Callable[[], Callable[[bytes], None]]) -> None:
        await self._until_answered(lambda: self._inner.lines(file_id, begin))
