"""What a run may spend, held against what it has spent and what is in flight."""

from dataclasses import dataclass, field

from judgekit.core.config import Budget
from judgekit.core.judgments import Judgment


@dataclass
class Spending:
    """Calls, tokens and money of one run, earlier parts of a resumed run included."""

    budget: Budget
    n_calls: int = 0
    n_tokens: int = 0
    usd: float = 0.0
    _in_flight: dict[int, tuple[int, float]] = field(default_factory=dict)
    _next: int = 0

    def add(self, judgment: Judgment) -> None:
        """Count a judgment that was made before."""
        self.n_calls += judgment.n_requests
        if judgment.usage is not None and not judgment.from_cache:
            self.n_tokens += (judgment.usage.prompt_tokens or 0) + (judgment.usage.completion_tokens or 0)
        self.usd += judgment.cost_usd or 0.0

    def reached(self, tokens: int, usd: float) -> str | None:
        """Why one more call of this size may not be made, or None where it may."""
        limit = self.budget
        if limit.max_calls is not None and self.n_calls + len(self._in_flight) + 1 > limit.max_calls:
            return f"budget.max_calls of {limit.max_calls} is reached"
        if limit.max_tokens is not None:
            expected = self.n_tokens + sum(size for size, _ in self._in_flight.values()) + tokens
            if expected > limit.max_tokens:
                return (
                    f"budget.max_tokens of {limit.max_tokens} does not hold one more call of up to {tokens} tokens "
                    f"({self.n_tokens} spent)"
                )
        if limit.max_usd is not None:
            expected_usd = self.usd + sum(price for _, price in self._in_flight.values()) + usd
            if expected_usd > limit.max_usd:
                return f"budget.max_usd of {limit.max_usd:g} does not hold one more call ({self.usd:.4f} spent)"
        return None

    def start(self, tokens: int, usd: float) -> int:
        """Reserve for a call; returns a ticket."""
        self._next += 1
        self._in_flight[self._next] = (tokens, usd)
        return self._next

    def finish(self, ticket: int, n_calls: int, tokens: int, usd: float) -> None:
        """Replace the reservation by what the call really took."""
        del self._in_flight[ticket]
        self.n_calls += n_calls
        self.n_tokens += tokens
        self.usd += usd
