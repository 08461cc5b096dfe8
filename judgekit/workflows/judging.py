"""The judging engine: every judge input becomes exactly one judgment, a verdict or a recorded failure.

Workers take inputs from one shared iterator, so that memory is bounded by what is in flight and not by the
number of cases. A judgment goes to the sink before its worker takes the next input. What stops the run (a
fatal refusal, a moved model, a full disk, a used-up budget) lets calls in flight finish and keeps them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from judgekit.core.canonical import canonical_sha256
from judgekit.core.cases import Usage
from judgekit.core.errors import Interrupted, JudgekitError, ProviderError
from judgekit.core.judgments import (
    Attempt,
    JudgeFailure,
    JudgeInput,
    Judgment,
    ModelRequest,
    ModelResponse,
    VerdictError,
)
from judgekit.core.protocols import CallError, Capabilities, JudgmentSink, ReplyCache
from judgekit.judges.parsing import ParsedReply, parse_reply
from judgekit.workflows.budget import Spending
from judgekit.workflows.judgment_draft import JudgePlan, JudgmentDraft, Reply, decode_reply, encode_reply

ASKED_AGAIN = frozenset({"invalid", "ambiguous", "empty"})
"""Kinds of unreadable reply that are asked once more; a cut-off or refused one would come back the same."""

BREAKER_CALLS = 20
"""So many first calls that all fail in the same way stop the run."""

YIELD_EVERY = 64
"""Inputs answered from the cache before other tasks get their turn."""

TRUNCATION_FLOOR_CHARACTERS = 2000
"""Prompts shorter than this are not checked for truncation by the server."""


@dataclass
class StopSignal:
    """What stops all passes of a run: the first error that no call can mend."""

    error: JudgekitError | None = None

    def set(self, error: JudgekitError) -> None:
        """Stop, unless something else did already."""
        self.error = self.error or error


@dataclass
class Tally:
    """What a pass has done so far."""

    n_done: int = 0
    n_failed: int = 0
    n_from_cache: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


class JudgingPass:
    """Judges a stream of inputs by one plan."""

    def __init__(
        self,
        plan: JudgePlan,
        sink: JudgmentSink,
        cache: ReplyCache | None,
        spending: Spending,
        stop: StopSignal,
    ) -> None:
        """Prepare; nothing is asked before `run`."""
        self.plan = plan
        self.tally = Tally()
        self._sink = sink
        self._cache = cache if plan.use_cache and not plan.runtime.provider.is_deterministic else None
        self._spending = spending
        self._stop = stop
        self._on_judgment: Callable[[], None] = lambda: None
        self._flights: dict[str, asyncio.Future[Reply]] = {}
        self._capabilities = Capabilities()
        self._parameters: dict[str, Any] = {}
        self._frames: dict[int, str] = {}

    async def run(self, inputs: Iterator[JudgeInput], on_judgment: Callable[[], None]) -> None:
        """Judge every input; `on_judgment` is called after each.

        What stops the run goes to the stop signal, for the passes beside this one.

        Raises:
            ProviderError: the provider refuses for good, or the model is not the pinned one.
            Interrupted: the budget is used up.
            StorageError: judgments cannot be written.
        """
        first = next(inputs, None)
        if first is None:
            return
        self._on_judgment = on_judgment
        runtime = self.plan.runtime
        try:
            if runtime.config.pin.build_hash is None:
                # What an unpinned server has loaded is a part of the cache key, so it is asked before any look-up.
                await runtime.identified()
            self.prepare(await runtime.ready())
        except JudgekitError as error:
            self._stop.set(error)
            raise
        stream = _chain(first, inputs)
        n_workers = runtime.config.max_concurrency if runtime.provider.needs_network else 1
        workers = [asyncio.create_task(self._work(stream)) for _ in range(n_workers)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        if self._stop.error is not None:
            raise self._stop.error

    def prepare(self, capabilities: Capabilities) -> None:
        """Fix what the model takes, which is a part of every request and its key."""
        self._capabilities = capabilities
        self._parameters = self._request_parameters()

    def key_of(self, judge_input: JudgeInput) -> str:
        """The cache key of the first request for an input."""
        request = self._request(judge_input, 1, None)
        return request.key(self._frame_sha256(request))

    def _request_parameters(self) -> dict[str, Any]:
        config, takes = self.plan.runtime.config, self._capabilities
        parameters: dict[str, Any] = {
            "max_output_tokens": config.max_output_tokens,
            "max_tokens_name": takes.max_tokens_name,
            "response_format": takes.response_format,
        }
        if takes.temperature:
            parameters["temperature"] = 0
        if takes.seed:
            parameters["seed"] = config.seed
        return parameters

    async def _work(self, stream: Iterator[JudgeInput]) -> None:
        since_yield = 0
        for judge_input in stream:
            if self._stop.error is not None:
                return
            try:
                judgment, to_cache, committed = await self._judge(judge_input)
                self._sink.put(_encode(judgment), to_cache, committed)
            except JudgekitError as error:
                self._stop.set(error)
                return
            self._count(judgment)
            since_yield += 1
            if since_yield >= YIELD_EVERY:
                since_yield = 0
                await asyncio.sleep(0)

    def _count(self, judgment: Judgment) -> None:
        tally = self.tally
        tally.n_done += 1
        tally.n_from_cache += judgment.from_cache
        if judgment.failure is not None:
            tally.n_failed += 1
            tally.kinds[judgment.failure.kind] += 1
        self._on_judgment()
        if tally.n_failed == tally.n_done == BREAKER_CALLS and len(tally.kinds) == 1 and judgment.failure is not None:
            self._stop.set(
                ProviderError(
                    f"model {self.plan.runtime.model_id}: the first {BREAKER_CALLS} calls all failed alike: "
                    f"{judgment.failure.message}"
                )
            )

    async def _judge(
        self, judge_input: JudgeInput
    ) -> tuple[Judgment, tuple[str, str] | None, Callable[[], None] | None]:
        earlier: list[Attempt] = []
        n_requests = 0
        usage: Usage | None = None
        problem: VerdictError | None = None
        for attempt in (1, 2):
            request = self._request(judge_input, attempt, problem)
            key = request.key(self._frame_sha256(request))
            draft = JudgmentDraft(self.plan, self._capabilities, judge_input, request, key, tuple(earlier))
            try:
                reply = await self._reply(request, key)
            except CallError as error:
                if error.fatal:
                    raise ProviderError(f"model {self.plan.runtime.model_id}: {error}") from None
                draft.n_requests, draft.usage = n_requests + error.n_requests, usage
                return draft.failed(JudgeFailure(kind=error.kind, message=str(error))), None, None
            except JudgekitError:
                raise
            except Exception as error:  # noqa: BLE001  # our own fault must not cost the other cases
                return (
                    draft.failed(JudgeFailure(kind="internal", message=f"{type(error).__name__}: {error}")),
                    None,
                    None,
                )
            n_requests += 0 if reply.from_cache else reply.response.n_requests
            usage = _added(usage, None if reply.from_cache else reply.response.usage)
            draft.reply, draft.n_requests, draft.usage = reply, n_requests, usage
            try:
                parsed = self._parse(judge_input, request, reply)
            except VerdictError as error:
                failure = JudgeFailure(kind=error.kind, message=str(error))
                self._flights.pop(key, None)
                if attempt == 2 or error.kind not in ASKED_AGAIN:
                    return draft.failed(failure), None, None
                earlier.append(Attempt(key=key, raw_reply=reply.response.text, failure=failure))
                problem = error
                continue
            to_cache = reply.to_cache
            return draft.judged(parsed), to_cache, partial(self._landed, key)
        raise AssertionError("unreachable: the second attempt always returns")

    def _parse(self, judge_input: JudgeInput, request: ModelRequest, reply: Reply) -> ParsedReply:
        if not reply.from_cache and _was_truncated(request, reply.response):
            raise VerdictError("prompt_truncated", "the server counts far fewer prompt tokens than were sent")
        return parse_reply(reply.response, self.plan.judge, judge_input)

    def _request(self, judge_input: JudgeInput, attempt: int, problem: VerdictError | None) -> ModelRequest:
        system, user = self.plan.prompt.render(judge_input.variables)
        if problem is not None:
            user += f"\n\nA previous reply to this task could not be used: {problem}. Reply with the JSON object only."
        messages: tuple[Mapping[str, str], ...]
        if self._capabilities.system_role:
            messages = ({"role": "system", "content": system}, {"role": "user", "content": user})
        else:
            messages = ({"role": "user", "content": f"{system}\n\n{user}"},)
        config = self.plan.runtime.config
        return ModelRequest(
            provider=config.provider,
            base_url=config.base_url,
            model=config.model,
            pinned_model=self.plan.runtime.model_as_pinned(),
            messages=messages,
            parameters=self._parameters,
            reply_schema=self.plan.prompt.reply_schema,
            prompt_sha256=self.plan.prompt.sha256,
            attempt=attempt,
        )

    def _frame_sha256(self, request: ModelRequest) -> str:
        """Hash of what all requests of this pass and attempt share; made once."""
        known = self._frames.get(request.attempt)
        if known is None:
            known = self._frames[request.attempt] = canonical_sha256(request.frame())
        return known

    async def _reply(self, request: ModelRequest, key: str) -> Reply:
        """The reply from the cache, from an equal request in flight, or from the model."""
        if self._cache is None and not self.plan.use_cache:
            return await self._ask(request, key)
        flight = self._flights.get(key)
        if flight is not None:
            try:
                shared = await asyncio.shield(flight)
            except CallError as error:
                raise CallError(error.kind, str(error), fatal=error.fatal, n_requests=0) from None
            return replace(shared, from_cache=True, to_cache=None)
        if self._cache is not None:
            stored = self._cache.get(key)
            if stored is not None:
                return Reply(decode_reply(stored), from_cache=True)
        if self.plan.runtime.provider.is_deterministic:
            return await self._ask(request, key)
        flight = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        try:
            reply = await self._ask(request, key)
        except BaseException as error:
            self._flights.pop(key, None)
            if isinstance(error, asyncio.CancelledError):
                flight.cancel()
            else:
                flight.set_exception(error)
                flight.exception()  # marked as seen: nobody may be waiting
            raise
        flight.set_result(reply)
        return reply

    def _landed(self, key: str) -> None:
        """Called by the writing thread once a reply is stored: from here on the cache answers."""
        self._flights.pop(key, None)

    async def _ask(self, request: ModelRequest, key: str) -> Reply:
        runtime = self.plan.runtime
        await runtime.identified()
        n_prompt = sum(len(message["content"]) for message in request.messages) // 4
        tokens = n_prompt + runtime.config.max_output_tokens
        guess = Usage(prompt_tokens=n_prompt, completion_tokens=runtime.config.max_output_tokens)
        usd = runtime.price(guess) if runtime.price is not None else 0.0
        await runtime.limiter.acquire()
        try:
            why = self._spending.reached(tokens, usd) if runtime.provider.needs_network else None
            if why is not None:
                raise Interrupted(f"{why}; raise it and go on with --resume")
            ticket = self._spending.start(tokens, usd)
            n_calls, spent = 0, None
            try:
                response = await runtime.provider.complete(request)
                n_calls, spent = response.n_requests, response.usage
                runtime.limiter.observe(None)
            except CallError as error:
                n_calls = error.n_requests
                raise
            finally:
                used = (spent.prompt_tokens or 0) + (spent.completion_tokens or 0) if spent is not None else 0
                paid = runtime.price(spent) if spent is not None and runtime.price is not None else 0.0
                self._spending.finish(ticket, n_calls, used, paid)
        finally:
            runtime.limiter.release()
        pinned = runtime.guard.check_reply(response)
        to_cache = (key, encode_reply(response)) if pinned and self._cache is not None else None
        return Reply(response, from_cache=False, pinned=pinned, to_cache=to_cache)


def _was_truncated(request: ModelRequest, response: ModelResponse) -> bool:
    """Whether the server counted far fewer prompt tokens than any tokenizer makes of the text sent."""
    usage = response.usage
    if usage is None or usage.prompt_tokens is None:
        return False
    n_characters = sum(len(message["content"]) for message in request.messages)
    return n_characters >= TRUNCATION_FLOOR_CHARACTERS and usage.prompt_tokens < n_characters / 8


def _added(total: Usage | None, more: Usage | None) -> Usage | None:
    if total is None or more is None:
        return more or total
    return Usage.model_construct(
        prompt_tokens=(total.prompt_tokens or 0) + (more.prompt_tokens or 0),
        completion_tokens=(total.completion_tokens or 0) + (more.completion_tokens or 0),
        cached_tokens=(total.cached_tokens or 0) + (more.cached_tokens or 0),
    )


def _chain(first: JudgeInput, rest: Iterator[JudgeInput]) -> Iterator[JudgeInput]:
    yield first
    yield from rest


def _encode(judgment: Judgment) -> bytes:
    return judgment.model_dump_json(exclude_defaults=False).encode("utf-8", "replace")
