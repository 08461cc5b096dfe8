"""What calls took: one call as a bill, and the bills of one judgment together."""

from dataclasses import dataclass

from judgekit.core.cases import Usage
from judgekit.core.judgments import COST_SOURCES, CostSource, Unmetered
from judgekit.core.protocols import CallError


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
        """Count one call; `bill` is None where it ended in an error that costs nothing."""
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
        """US dollars; None where nothing was asked, or the cost of a call is not known."""
        return self._cost if self._n_bills and not self._n_without_cost else None

    @property
    def cost_source(self) -> CostSource | None:
        """Where the cost is known from; the least certain source where there are several."""
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
