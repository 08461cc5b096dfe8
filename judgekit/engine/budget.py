"""What calls took, and what a run may spend, held against what it has spent and what is set aside for calls that run.

A call is sent only if its whole size has room: its prompt at four characters a token and the longest reply that it
may get, or more if a call of the model took more before. If running calls hold the rest of the budget, it waits until
one of them ends. The first call of each model goes alone if tokens or money are limited, so that what its calls really
take is known before many are sent.
"""

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass, field, replace

from judgekit.core.call_costs import COST_SOURCES, CostSource, Unmetered
from judgekit.core.cases import Usage
from judgekit.core.config import Budget
from judgekit.core.errors import Interrupted
from judgekit.core.judgments import Judgment, ModelRequest, ModelResponse
from judgekit.core.protocols import CallError, Lease
from judgekit.engine.model_runtime import ModelRuntime

CHARACTERS_PER_TOKEN = 4
"""A usual ratio for English; what a model really makes of its prompts is learned from its replies."""


_SHORT_PROMPT = 100
"""Of shorter prompts, what a server adds of its own would be most, and say nothing of longer ones."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What one call took, as far as it is known, and what a budget takes it for."""

    usage: Usage | None
    cost: tuple[float, CostSource] | None
    """US dollars and where they are known from."""
    counted_tokens: int
    counted_usd: float
    is_metered: bool
    """The server counted prompt and completion."""
    is_answered: bool = True
    """False for a call that timed out, after which nothing tells what it cost."""


class BilledError(CallError):
    """A call that failed and may have cost something all the same."""

    def __init__(self, error: CallError, bill: Bill) -> None:
        """Take over the error of a call."""
        super().__init__(error.kind, str(error))
        vars(self).update(vars(error))
        self.bill = bill


@dataclass(slots=True)
class Spent:
    """What the calls of one judgment took together."""

    n_requests: int = 0
    usage: Usage | None = None
    unmetered: Unmetered | None = None
    _cost: float = 0.0
    _source: CostSource | None = None
    _n_bills: int = 0
    _n_without_cost: int = 0
    _counted_usd: float = 0.0

    def add(self, n_requests: int, bill: Bill | None) -> None:
        """Count one call; `bill` is None if it ended in an error that costs nothing."""
        self.n_requests += n_requests
        if bill is None:
            return
        self._n_bills += 1
        self._counted_usd += bill.counted_usd
        self.usage = _added(self.usage, bill.usage)
        if bill.cost is None:
            self._n_without_cost += 1
        else:
            self._cost += bill.cost[0]
            self._source = max(self._source or bill.cost[1], bill.cost[1], key=COST_SOURCES.index)
        if not bill.is_metered or self.unmetered is not None:
            self.unmetered = self._not_counted(bill)

    @property
    def cost_usd(self) -> float | None:
        """US dollars; None if nothing was asked, or the cost of a call is not known."""
        return self._cost if self._n_bills and not self._n_without_cost else None

    @property
    def cost_source(self) -> CostSource | None:
        """Where the cost is known from; the least certain source if there are several."""
        return None if self.cost_usd is None else self._source

    def _not_counted(self, bill: Bill) -> Unmetered:
        before = self.unmetered or Unmetered(n_calls=0, tokens=0)
        known = 0 if bill.usage is None else bill.usage.known_tokens
        return Unmetered(
            n_calls=before.n_calls + (not bill.is_metered),
            tokens=before.tokens + max(0, bill.counted_tokens - known),
            usd=self._counted_usd if self._n_without_cost else None,
        )


def _added(total: Usage | None, more: Usage | None) -> Usage | None:
    if total is None or more is None:
        return more or total
    sums = {}
    for name in Usage.model_fields:
        first, second = getattr(total, name), getattr(more, name)
        sums[name] = first if second is None else second + (first or 0)
    return Usage.model_construct(**sums)


@dataclass(slots=True)
class Hold:
    """What is set aside for one call."""

    runtime: ModelRuntime
    n_prompt: int
    """Prompt tokens, estimated from the text alone."""
    tokens: int = 0
    usd: float = 0.0


@dataclass(slots=True)
class _Known:
    """What calls of one model took, at most."""

    has_answered: bool = False
    n_running: int = 0
    prompt_ratio: float = 1.0
    """Prompt tokens as counted by the server over those estimated."""
    completion: int = 0
    usd: float = 0.0

    def learn(self, hold: Hold, bill: Bill) -> None:
        """Take over what a call took."""
        self.has_answered = True
        self.usd = max(self.usd, bill.counted_usd)
        usage = bill.usage
        if usage is None:
            return
        if usage.prompt_tokens is not None:
            self.prompt_ratio = max(self.prompt_ratio, usage.prompt_tokens / max(hold.n_prompt, _SHORT_PROMPT))
        self.completion = max(self.completion, usage.known_tokens - (usage.prompt_tokens or hold.n_prompt))


@dataclass
class Spending:
    """Calls, tokens and money of one run, earlier parts of a resumed run included."""

    budget: Budget
    lease: Lease | None = None
    """Where more is asked for, if the budget is that of several processes."""
    n_calls: int = 0
    n_tokens: int = 0
    usd: float = 0.0
    _n_running: int = 0
    _held_calls: int = 0
    """Requests of running calls, those that are made again included."""
    _held_tokens: int = 0
    _held_usd: float = 0.0
    _known: defaultdict[str, _Known] = field(default_factory=lambda: defaultdict(_Known))
    _waiting: deque[tuple[Hold, asyncio.Future[str | None]]] = field(default_factory=deque)
    _used_up: str | None = None

    def __post_init__(self) -> None:
        """Note what has to be looked at for each call."""
        limit = self.budget
        self._limits_size = limit.max_tokens is not None or limit.max_usd is not None
        self._limits = self._limits_size or limit.max_calls is not None

    def add(self, judgment: Judgment) -> None:
        """Count a judgment that was made before."""
        self.n_calls += judgment.n_requests
        unmetered = judgment.unmetered
        if judgment.usage is not None and not judgment.from_cache:
            self.n_tokens += judgment.usage.known_tokens
            known = self._known[judgment.model_id]
            known.completion = max(known.completion, judgment.usage.completion_tokens or 0)
        if unmetered is not None:
            self.n_tokens += unmetered.tokens
        self.usd += judgment.cost_usd or (unmetered.usd if unmetered is not None and unmetered.usd else 0.0)

    def hold_for(self, runtime: ModelRuntime, request: ModelRequest) -> Hold:
        """What is to be set aside for a call, by what is known now."""
        n_characters = sum(len(message["content"]) for message in request.messages)
        hold = Hold(runtime, n_characters // CHARACTERS_PER_TOKEN)
        self._measure(hold)
        return hold

    def _measure(self, hold: Hold) -> None:
        runtime, known = hold.runtime, self._known[hold.runtime.model_id]
        prompt = int(hold.n_prompt * known.prompt_ratio)
        completion = max(runtime.config.max_output_tokens, known.completion)
        hold.tokens, hold.usd = prompt + completion, known.usd
        if runtime.price is not None:
            expected = Usage.model_construct(prompt_tokens=prompt, completion_tokens=completion)
            hold.usd = max(hold.usd, runtime.price(expected))

    async def start(self, hold: Hold) -> None:
        """Set aside for a call, once there is room.

        Raises:
            Interrupted: the budget does not hold the call, and no call is running that could leave room.
        """
        if self._used_up is not None:
            raise Interrupted(self._used_up)
        if not self._limits or (not self._waiting and self._admits(hold)):
            self._take(hold)
            return
        turn: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((hold, turn))
        self._next()
        try:
            refused = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result() is None:
                self._give_back(hold, 1)
            self._next()
            raise
        if refused is not None:
            raise Interrupted(refused)

    def may_ask_again(self) -> bool:
        """Whether a running call may make one more request; counts it if so."""
        if self._lacks()[0] > 0 and (self.lease is None or self._grown()[0] > 0):
            return False
        self._held_calls += 1
        return True

    def finish(self, hold: Hold, n_calls: int, bill: Bill | None) -> None:
        """Replace what was set aside by what the call took.

        Args:
            hold: of the call.
            n_calls: requests that it made.
            bill: what it took; None: nothing that is known to cost.
        """
        self._give_back(hold, n_calls)
        self.n_calls += n_calls
        if bill is not None:
            self.n_tokens += bill.counted_tokens
            self.usd += bill.counted_usd
            if bill.is_answered:
                self._known[hold.runtime.model_id].learn(hold, bill)
        if self._waiting:
            self._next()

    def set_aside(self, hold: Hold) -> str | None:
        """Count a request of a batch as it was made; returns why it has no room, if it has none.

        Its reply comes to another `Spending`, which counts what it really took.
        """
        refusal = self._refusal(hold) if self._limits else None
        if refusal is None:
            self.n_calls += 1
            self.n_tokens += hold.tokens
            self.usd += hold.usd
        return refusal

    def charge(self, hold: Hold, response: ModelResponse, factor: float) -> Bill:
        """What a reply took that came by batch; it was paid for before, so it needs no room.

        Args:
            hold: of the request.
            response: the reply.
            factor: of the price, unless the reply says itself what it cost.
        """
        bill = self.bill_of(hold, response)
        if bill.cost is not None and bill.cost[1] != "reply":
            usd = bill.cost[0] * factor
            bill = replace(bill, cost=(usd, bill.cost[1]), counted_usd=usd)
        self._take(hold)
        self.finish(hold, 1, bill)
        return bill

    def bill_of(self, hold: Hold, response: ModelResponse | None) -> Bill:
        """What a call took; what its server did not count is taken for what was set aside.

        Args:
            hold: what was set aside.
            response: the reply; None: the call timed out.
        """
        usage, cost = None if response is None else response.usage, hold.runtime.cost_of(response)
        is_whole = usage is not None and usage.is_whole
        known = 0 if usage is None else usage.known_tokens
        # A total alone is a count of tokens, though not of what each of them costs.
        tokens = known if is_whole or (usage is not None and usage.total_tokens) else max(known, hold.tokens)
        return Bill(
            usage=usage,
            cost=cost,
            counted_tokens=tokens,
            counted_usd=hold.usd if cost is None else cost[0],
            is_metered=is_whole,
            is_answered=response is not None,
        )

    def _take(self, hold: Hold) -> None:
        self._n_running += 1
        self._held_calls += 1
        self._held_tokens += hold.tokens
        self._held_usd += hold.usd
        self._known[hold.runtime.model_id].n_running += 1

    def _give_back(self, hold: Hold, n_calls: int) -> None:
        self._n_running -= 1
        self._known[hold.runtime.model_id].n_running -= 1
        self._held_calls = self._held_calls - max(1, n_calls) if self._n_running else 0
        self._held_tokens -= hold.tokens
        self._held_usd = self._held_usd - hold.usd if self._n_running else 0.0  # sums of floats drift

    def _admits(self, hold: Hold) -> bool:
        if self._limits_size:
            known = self._known[hold.runtime.model_id]
            if not known.has_answered and known.n_running:
                return False
            self._measure(hold)  # others may have shown since that it takes more
        return self._refusal(hold) is None

    def _next(self) -> None:
        """Let those go whose turn it is; if nothing runs and the first has no room, none of them ever will."""
        while self._waiting:
            hold, turn = self._waiting[0]
            if turn.done():
                self._waiting.popleft()
            elif self._admits(hold):
                self._waiting.popleft()
                self._take(hold)
                turn.set_result(None)
            elif self._n_running:
                return
            else:
                self._used_up = self._refusal(hold)
                for _, other in self._waiting:
                    if not other.done():
                        other.set_result(self._used_up)
                self._waiting.clear()

    def _lacks(self, hold: Hold | None = None) -> tuple[int, int, float]:
        """Calls, tokens and money that one more call has too little of; not above 0 if there is enough."""
        limit, tokens, usd = self.budget, hold.tokens if hold else 0, hold.usd if hold else 0.0
        return (
            0 if limit.max_calls is None else self.n_calls + self._held_calls + 1 - limit.max_calls,
            0 if limit.max_tokens is None else self.n_tokens + self._held_tokens + tokens - limit.max_tokens,
            0.0 if limit.max_usd is None else self.usd + self._held_usd + usd - limit.max_usd,
        )

    def _grown(self, hold: Hold | None = None) -> tuple[int, int, float]:
        """The same, after more was asked for of what is shared with other processes."""
        if self.lease is not None:
            self.budget = self.lease.grown(*self._lacks(hold))
        return self._lacks(hold)

    def _refusal(self, hold: Hold) -> str | None:
        """Why one more call of this size has no room, or None if it has."""
        lacks = self._lacks(hold)
        if self.lease is not None and max(lacks) > 0:
            lacks = self._grown(hold)
        limit = self.budget
        if limit.max_calls is not None and lacks[0] > 0:
            made = f"{self.n_calls} made, {self._running()}"
            return f"budget.max_calls of {limit.max_calls} is reached: {made}; raise it and resume with --resume"
        if limit.max_tokens is not None and lacks[1] > 0:
            left = str(max(0, limit.max_tokens - self.n_tokens))
            size = f"up to {hold.tokens} tokens"
            return self._too_little(f"budget.max_tokens of {limit.max_tokens}", size, str(self.n_tokens), left)
        if limit.max_usd is not None and lacks[2] > 0:
            left = f"{max(0.0, limit.max_usd - self.usd):.4f}"
            size = f"up to {hold.usd:.4f} USD"
            return self._too_little(f"budget.max_usd of {limit.max_usd:g}", size, f"{self.usd:.4f}", left)
        return None

    def _too_little(self, budget: str, size: str, spent: str, left: str) -> str:
        return (
            f"{budget} does not hold one more call of {size}: {spent} spent, {left} left, {self._running()}; "
            "what is left is too little for a call, so raise the budget and resume with --resume"
        )

    def _running(self) -> str:
        """What is set aside; nothing when a run stops, since it waits for running calls before it does."""
        if not self._n_running:
            return "nothing set aside for running calls"
        calls = "1 running call" if self._n_running == 1 else f"{self._n_running} running calls"
        return f"{self._held_tokens} tokens and {self._held_usd:.4f} USD set aside for {calls}"
