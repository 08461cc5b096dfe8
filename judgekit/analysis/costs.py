"""What the judge calls of a run took: calls, tokens and money, and what of it is not known."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from judgekit.core.judgments import COST_SOURCES, NO_REPLY_KINDS, Judgment


@dataclass
class _Costs:
    """Sums over judgments."""

    n_calls: int = 0
    n_from_cache: int = 0
    n_with_usage: int = 0
    n_without_usage: int = 0
    n_without_cost: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    usd: float = 0.0
    usd_by_source: dict[str, float] = field(default_factory=dict)
    unpriced: set[str] = field(default_factory=set)

    def add(self, judgment: Judgment) -> None:
        """Count a judgment that was made in this run."""
        self.n_calls += judgment.n_requests
        if judgment.from_cache:
            self.n_from_cache += 1
            return
        if not judgment.n_requests:
            return
        usage = judgment.usage
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"):
            self.tokens[name] += (getattr(usage, name) or 0) if usage is not None else 0
        self.n_with_usage += usage is not None
        n_unmetered = _n_unmetered(judgment)
        self.n_without_usage += n_unmetered
        if judgment.cost_usd is not None:
            source = judgment.cost_source or "price_list"
            self.usd += judgment.cost_usd
            self.usd_by_source[source] = self.usd_by_source.get(source, 0.0) + judgment.cost_usd
        elif n_unmetered or usage is not None:
            self.n_without_cost += 1
            self.unpriced.add(judgment.model_id)


def _n_unmetered(judgment: Judgment) -> int:
    """Calls of a judgment whose tokens are not known; one that ended in an error took none that anybody pays for."""
    if judgment.unmetered is not None:
        return judgment.unmetered.n_calls
    is_answered = judgment.failure is None or judgment.failure.kind not in NO_REPLY_KINDS
    return int(judgment.usage is None and is_answered)


def cost_record(judgments: Iterable[Judgment], price_list: str | None) -> dict[str, Any]:
    """Tokens and money of all judge calls; cached replies are counted apart and cost nothing.

    Args:
        judgments: every stored judgment, spot checks included; what was copied from another run cost nothing here.
        price_list: the list that prices are from where neither a reply nor the config has them.

    Returns:
        A strict-JSON object. Tokens are None where calls were answered and none of them was counted; `usd` is None
        where the cost of a call is not known, and `usd_of_priced_models` is the sum of what is.
    """
    found = _Costs()
    for judgment in judgments:
        if judgment.copied_from is None:
            found.add(judgment)
    is_counted = found.n_with_usage or not found.n_without_usage
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    return {
        "n_calls": found.n_calls,
        "n_from_cache": found.n_from_cache,
        "n_without_usage": found.n_without_usage,
        "n_without_cost": found.n_without_cost,
        **{name: found.tokens[name] if is_counted else None for name in names},
        "usd": None if found.n_without_cost else found.usd,
        "usd_of_priced_models": found.usd,
        "usd_by_source": {name: found.usd_by_source[name] for name in COST_SOURCES if name in found.usd_by_source},
        "price_list": price_list,
        "unpriced_models": sorted(found.unpriced),
    }
