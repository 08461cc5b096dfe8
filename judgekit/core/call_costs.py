"""What is known of the cost of calls: where it comes from, and what of it is not metered."""

from typing import Literal

from judgekit.core.scores import Frozen

CostSource = Literal["reply", "config", "price_list"]
"""Where a cost comes from: the reply itself, `models.<id>.prices`, or the price list that is installed."""

COST_SOURCES: tuple[CostSource, ...] = ("reply", "config", "price_list")
"""From the most certain one to the least."""


class Unmetered(Frozen):
    """Calls of a judgment whose tokens the server did not count, and what a budget takes them for."""

    n_calls: int
    tokens: int
    """As many as were set aside for them."""
    usd: float | None = None
    """None: the price is not known."""
