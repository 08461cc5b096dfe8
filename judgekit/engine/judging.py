"""The judging engine: every judge input becomes exactly one judgment, a verdict or a recorded failure.

Workers take inputs from one shared iterator, so that memory is bounded by what is in flight and not by the
number of cases. A judgment goes to the sink before its worker takes the next input. What stops the run (a
fatal refusal, a moved model, a full disk, a used-up budget) lets calls in flight finish and keeps them.
"""

import asyncio
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice

from judgekit.core.errors import ConfigError, JudgekitError, ProviderError
from judgekit.core.judgments import Attempt, JudgeFailure, JudgeInput, ModelRequest, ModelResponse, VerdictError
from judgekit.core.protocols import CallError, Capabilities, ReplyCache
from judgekit.core.text import clean_text
from judgekit.engine.batch_desk import BatchDesk, BatchError, Postponed, request_name
from judgekit.engine.budget import Bill, BilledError, Hold, Spending
from judgekit.engine.judgment_draft import Judged, JudgmentDraft, Reply, cached_reply, encode_reply, joined
from judgekit.engine.prompt_sizes import check_length, was_truncated
from judgekit.engine.requests import JudgePlan, RequestMaker
from judgekit.engine.workers import run_workers
from judgekit.judges.parsing import ParsedReply, parse_reply
from judgekit.judges.token_probabilities import ProbabilityError, weighed
from judgekit.storage.recorder import Recorder
from judgekit.tracing import judgment_span, model_call_span

ASKED_AGAIN = frozenset({"invalid", "ambiguous", "empty"})
"""Kinds of unreadable reply that are asked once more; a cut-off or refused one would come back the same."""

_SCHEMA_REFUSED = re.compile(r"schema|response_format|grammar", re.IGNORECASE)

BREAKER_CALLS = 20
"""So many first calls that all fail in the same way stop the run."""

SERVER_IS_GONE = frozenset({"connection", "timeout", "server_error", "rate_limited"})
"""Failures that stop a run at any time if nothing else comes; it can be resumed."""

YIELD_EVERY = 64
"""Inputs answered from the cache before other tasks get their turn."""


@dataclass
class StopSignal:
    """What stops all passes of a run: the first error that no further call can get past."""

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
    in_a_row: tuple[str | None, int] = None, 0
    """Kind of the last failures, and how many calls since the last verdict failed with it."""


class JudgingPass:
    """Judges a stream of inputs by one plan."""

    def __init__(
        self, plan: JudgePlan, sink: Recorder, cache: ReplyCache | None, spending: Spending, stop: StopSignal
    ) -> None:
        """Prepare; nothing is asked before `run`."""
        self.plan = plan
        self.tally = Tally()
        self._sink = sink
        self._cache = cache if plan.use_cache and not plan.runtime.provider.is_deterministic else None
        self._spending = spending
        self._stop = stop
        self._on_judgment: Callable[[], None] = lambda: None
        self._is_schema_taken = False
        self._flights: dict[str, asyncio.Future[Reply]] = {}
        self._requests = RequestMaker(plan, Capabilities())
        self._facts: dict[str, str | None] = {}
        plan.runtime.provider.may_ask_again = spending.may_ask_again

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
            self._requests = RequestMaker(self.plan, await runtime.ready())
        except JudgekitError as error:
            self._stop.set(error)
            raise
        self._facts = self.plan.traced()
        stream = chain((first,), inputs)
        if self.plan.prompt.is_own and self._requests.capabilities.response_format == "json_schema":
            # A schema of the user's own may be refused, which one call shows as well as many.
            await self._work(islice(stream, 1))
        n_workers = runtime.config.max_concurrency if runtime.provider.needs_network else 1
        await run_workers(self._work(stream) for _ in range(n_workers))
        if self._stop.error is not None:
            raise self._stop.error

    async def _work(self, stream: Iterator[JudgeInput]) -> None:
        since_yield = 0
        for judge_input in stream:
            if self._stop.error is not None:
                return
            try:
                with judgment_span(self.plan.judge.name, judge_input.case_id, self._facts) as span:
                    judged = await self._judge(judge_input)
                    span.tell({"judgekit.from_cache": judged.from_cache})
                    if judged.failure is not None:
                        span.fail(judged.failure.kind)
                self._sink.put(judged.line, judged.to_cache, judged.committed)
            except Postponed:
                continue
            except JudgekitError as error:
                self._stop.set(error)
                return
            except Exception as error:  # noqa: BLE001  # our own fault must not cost the other cases
                judged = self._unasked(judge_input).failed(_internal(error))
                self._sink.put(judged.line, None, None)
            self._count(judged)
            since_yield += 1
            if since_yield >= YIELD_EVERY:
                since_yield = 0
                await asyncio.sleep(0)

    def _count(self, judged: Judged) -> None:
        tally, failure = self.tally, judged.failure
        tally.n_done += 1
        tally.n_from_cache += judged.from_cache
        if failure is not None:
            tally.n_failed += 1
            tally.kinds[failure.kind] += 1
        self._on_judgment()
        if not (judged.from_cache or judged.by_batch):
            self._break_off(failure)

    def _break_off(self, failure: JudgeFailure | None) -> None:
        """Stop if calls fail alike, one after the other, so that further ones are in vain."""
        tally = self.tally
        kind, n_before = tally.in_a_row
        if failure is None:
            tally.in_a_row = None, 0
            return
        n_alike = n_before + 1 if failure.kind == kind else 1
        tally.in_a_row = failure.kind, n_alike
        # Calls in flight fail together when a server restarts, so one round of them is not yet a sign.
        most = max(BREAKER_CALLS, 2 * self.plan.runtime.config.max_concurrency)
        if n_alike == tally.n_done == BREAKER_CALLS or (n_alike >= most and failure.kind in SERVER_IS_GONE):
            which = f"{'the first ' if n_alike == tally.n_done else ''}{n_alike} calls"
            text = f"model {self.plan.runtime.model_id}: {which} all failed alike: {failure.message}"
            self._stop.set(ProviderError(text))

    async def _judge(self, judge_input: JudgeInput) -> Judged:
        """Ask about a case, in one call or in one for each part of the question."""
        parts = self.plan.judge.parts(judge_input)
        if len(parts) == 1:
            return await self._judge_part(parts[0])
        is_by_batch = self.plan.runtime.desk is not None and self.plan.runtime.desk.collects
        found, postponed = list[Judged](), None
        for part in parts:
            try:
                found.append(await self._judge_part(part))
            except Postponed as error:  # the others may go into the same batch
                postponed = error
                continue
            if not is_by_batch:
                self._keep(found[-1])
            if found[-1].failure is not None:  # without one part there is no verdict, so the others need not be asked
                break
        if postponed is not None and (not found or found[-1].failure is None):
            raise postponed  # what was found comes from the batch again, with what it cost
        for judged in found if is_by_batch else ():
            self._keep(judged)
        return joined(self.plan.judge.kind, judge_input, found)

    def _keep(self, judged: Judged) -> None:
        """Cache the reply about one of several parts."""
        if judged.to_cache is not None:
            self._sink.put(b"", judged.to_cache, judged.committed)

    async def _judge_part(self, judge_input: JudgeInput) -> Judged:
        """Ask once, and once more if the reply cannot be read."""
        draft = self._draft(judge_input)
        for attempt in (1, 2):
            try:
                return await self._attempt(draft)
            except CallError as error:
                if error.fatal:
                    raise ProviderError(f"model {self.plan.runtime.model_id}: {error}") from None
                if not isinstance(error, BatchError) and self._refuses_schema(error):
                    raise ConfigError(
                        f"{self.plan.prompt.where}: model {self.plan.runtime.model_id} refuses its reply_schema: "
                        f'{error}; correct it there, or set "reply_format": "json_object" for the model'
                    ) from None
                draft.spent.add(error.n_requests, error.bill if isinstance(error, BilledError) else None)
                draft.by_batch = isinstance(error, BatchError)
                return draft.failed(JudgeFailure(kind=error.kind, message=str(error)))
            except VerdictError as error:
                # The flight stays: an equal question later in this run gets the same reply without a call of its own.
                failure = JudgeFailure(kind=error.kind, message=str(error))
                if attempt == 2 or error.kind not in ASKED_AGAIN:
                    return draft.failed(failure)
                raw_reply = draft.reply.response.text if draft.reply is not None else None
                spent = draft.spent
                draft = self._draft(judge_input, error, Attempt(key=draft.key, raw_reply=raw_reply, failure=failure))
                draft.spent = spent
            except JudgekitError:
                raise
            except Exception as error:  # noqa: BLE001  # our own fault must not cost the other cases
                return draft.failed(_internal(error))
        raise AssertionError("unreachable: the second attempt always returns")

    def _refuses_schema(self, error: CallError) -> bool:
        """Whether a request was refused for the reply schema, which is the same for all cases."""
        is_sent = error.kind == "bad_request" and self._requests.capabilities.response_format == "json_schema"
        # Once the schema was taken, such a message is about the text of a case.
        return is_sent and not self._is_schema_taken and _SCHEMA_REFUSED.search(str(error)) is not None

    def _draft(self, judge_input: JudgeInput, problem: VerdictError | None = None, *earlier: Attempt) -> JudgmentDraft:
        """The first question about a case, or the second one, which names what was wrong with the first reply."""
        request = self._requests.request(judge_input, problem)
        key, key_parts = self._requests.key_and_parts(request)
        return JudgmentDraft(self.plan, self._requests.capabilities, judge_input, request, key, key_parts, earlier)

    def _unasked(self, judge_input: JudgeInput) -> JudgmentDraft:
        """The record of a case for which no request could be made."""
        request = self._requests.request_of((), 1)
        return JudgmentDraft(self.plan, self._requests.capabilities, judge_input, request, "", {}, ())

    async def _attempt(self, draft: JudgmentDraft) -> Judged:
        """One question and its verdict."""
        draft.reply = reply = await self._reply(draft)
        if not reply.from_cache:
            draft.spent.add(reply.response.n_requests, reply.bill)
        parsed = self._parse(draft, reply)
        judged = draft.judged(self._weighed(draft, reply, parsed))
        if reply.cache_key is not None:
            judged.to_cache = reply.cache_key, encode_reply(reply.response)
        judged.committed = partial(self._landed, draft.key)
        return judged

    def _parse(self, draft: JudgmentDraft, reply: Reply) -> ParsedReply:
        if was_truncated(draft.request, reply.response):
            raise VerdictError("prompt_truncated", "the server counts far fewer prompt tokens than were sent")
        # Only a text with a brace can hold a verdict to be echoed; the schema in the prompt has its own.
        copyable = self.plan.prompt.has_foreign_braces(draft.request.messages[-1]["content"])
        judge, judge_input = self.plan.judge, draft.judge_input
        parsed = parse_reply(reply.response, judge, judge_input if copyable else None, self.plan.prompt.reply_schema)
        verdict = judge.check_verdict(parsed.verdict, judge_input)
        return parsed if verdict is parsed.verdict else replace(parsed, verdict=verdict)

    def _weighed(self, draft: JudgmentDraft, reply: Reply, parsed: ParsedReply) -> ParsedReply:
        """The verdict with its probabilities; of the tokens of the reply, only those that they come from are kept."""
        judge, response = self.plan.judge, reply.response
        if response.stated is None and judge.scoring == "written":
            return parsed
        tokens = None
        try:
            verdict, tokens = weighed(parsed, response, judge)
            parsed = replace(parsed, verdict=verdict)
        except ProbabilityError as error:
            if response.stated is not None:
                raise VerdictError("invalid", str(error)) from None
            draft.probability_flag = error.flag
        reply.response = replace(response, tokens=tokens)
        return parsed

    async def _reply(self, draft: JudgmentDraft) -> Reply:
        """The reply from the cache, from an equal request in flight, or from the model."""
        key = draft.key
        if self._cache is None and not self.plan.use_cache:
            return await self._ask(draft)
        flight = self._flights.get(key)
        if flight is not None:
            try:
                shared = await asyncio.shield(flight)
            except CallError as error:
                raise CallError(error.kind, str(error), fatal=error.fatal, n_requests=0) from None
            return replace(shared, from_cache=True, cache_key=None)
        if self._cache is not None:
            response = cached_reply(self._cache, key, self.plan.runtime.guard)
            if response is not None:
                return Reply(response, from_cache=True)
        if self.plan.runtime.provider.is_deterministic:
            return await self._ask(draft)
        flight = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        try:
            reply = await self._ask(draft)
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

    async def _ask(self, draft: JudgmentDraft) -> Reply:
        runtime, request = self.plan.runtime, draft.request
        check_length(request, runtime.config.max_prompt_bytes)
        await runtime.identified()
        hold = self._spending.hold_for(runtime, request)
        found = None if runtime.desk is None else self._from_batch(runtime.desk, draft, hold)
        draft.by_batch = found is not None
        response, bill = found or await self._called(request, hold)
        await runtime.identified_again()
        pinned = runtime.guard.check_reply(response)
        response = replace(response, replied_at=response.replied_at or runtime.stamp())
        cache_key = draft.key if pinned and self._cache is not None else None
        return Reply(response, from_cache=False, pinned=pinned, cache_key=cache_key, bill=bill)

    def _from_batch(self, desk: BatchDesk, draft: JudgmentDraft, hold: Hold) -> tuple[ModelResponse, Bill] | None:
        """A reply that came by batch, and what it took; None if it is to be asked for by a call."""
        config = self.plan.runtime.config
        name = request_name(self.plan, draft.key, draft.judge_input.case_id)
        try:
            response = desk.reply(name)
        except Postponed:
            self._spending.set_aside(hold)
            raise
        if response is not None:
            # The price of a model that is asked by batch is that of a batch already.
            return response, self._spending.charge(hold, response, 1 if config.mode else config.batches.price_factor)
        if not desk.collects:
            return None
        desk.refusal = self._spending.set_aside(hold) or desk.refusal
        if desk.refusal is None:
            desk.collect(name, draft.request)
        raise Postponed(name)

    async def _called(self, request: ModelRequest, hold: Hold) -> tuple[ModelResponse, Bill | None]:
        """The reply of the model to a call."""
        runtime = self.plan.runtime
        await runtime.limiter.acquire(hold.tokens)
        try:
            with model_call_span(request, is_remote=runtime.provider.needs_network) as span:
                if not runtime.provider.needs_network:
                    response, bill = await runtime.provider.complete(request), None
                else:
                    response, bill = await self._paid(request, hold)
                span.replied(response)
            self._is_schema_taken = True
            return response, bill
        finally:
            runtime.limiter.release()

    async def _paid(self, request: ModelRequest, hold: Hold) -> tuple[ModelResponse, Bill]:
        """A call that the budget has to hold, and what it took."""
        runtime, spending = self.plan.runtime, self._spending
        await spending.start(hold)
        n_calls, bill = 0, None
        try:
            if self._stop.error is not None:
                raise self._stop.error
            response = await runtime.provider.complete(request)
            n_calls, bill = response.n_requests, spending.bill_of(hold, response)
            runtime.limiter.observe(None)
            return response, bill
        except CallError as error:
            n_calls = error.n_requests
            if error.kind != "timeout":
                raise
            # The server may have worked on it to its end, and charged for it.
            bill = spending.bill_of(hold, None)
            raise BilledError(error, bill) from None
        finally:
            spending.finish(hold, n_calls, bill)


def _internal(error: Exception) -> JudgeFailure:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    return JudgeFailure(kind="internal", message=clean_text(f"{type(error).__name__}: {error}"[:400]) + f" ({where})")
