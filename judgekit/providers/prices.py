"""What a call costs: by the prices of the config, else from a maintained price list that ships its data."""

from collections.abc import Callable
from datetime import date
from typing import Any

from judgekit.core.cases import Usage
from judgekit.core.config import ModelConfig, Prices, is_local
from judgekit.core.judgments import CostSource

Price = Callable[[Usage], float]
"""US dollars for the tokens of one call."""


def price_of(model: ModelConfig) -> tuple[Price, CostSource] | None:
    """The price of a model and where it comes from; None where nothing knows it, or the user runs the model himself."""
    if model.prices is not None:
        return _configured(model.prices), "config"
    listed = None if is_local(model.base_url) else _listed(model)
    return None if listed is None else (listed, "price_list")


def _configured(prices: Prices) -> Price:
    cached = prices.input if prices.cached is None else prices.cached
    return _by_rates(prices.input / 1e6, prices.output / 1e6, cached / 1e6)


def _listed(model: ModelConfig) -> Price | None:
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    where: dict[str, Any] = {"provider_api_url": model.base_url} if model.base_url else {"provider_id": "openai"}

    def price(usage: Usage) -> float:
        cached = usage.cached_tokens or 0
        priced = PricedUsage(
            input_tokens=usage.prompt_tokens or 0,
            output_tokens=usage.completion_tokens or 0,
            cache_read_tokens=cached,
        )
        return float(calc_price(priced, model_ref=model.model, **where).total_price)

    try:
        return _linear(price) or price
    except (LookupError, ValueError):
        return None


def _linear(price: Price) -> Price | None:
    """The same price from three rates, where it has no tiers: a look-up for each call costs 70 us."""
    rates = []
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        # Cached tokens are a part of the prompt's.
        extra = {"prompt_tokens": 1} if name == "cached_tokens" else {}
        small, large = (price(Usage(**{name: count, **{key: count for key in extra}})) for count in (1_000, 2_000_000))
        if abs(large - 2000 * small) > 1e-9 * max(large, 1.0):
            return None
        rates.append(small / 1000)
    return _by_rates(*rates)


def _by_rates(prompt_rate: float, completion_rate: float, cached_rate: float) -> Price:
    def price(usage: Usage) -> float:
        cached = usage.cached_tokens or 0
        fresh = (usage.prompt_tokens or 0) - cached
        return fresh * prompt_rate + cached * cached_rate + (usage.completion_tokens or 0) * completion_rate

    return price


def price_list(today: date) -> str:
    """The price library, its version, and the date of the newest price change that its data know.

    Args:
        today: changes that are announced for later days do not date the list.
    """
    from importlib.metadata import version

    from genai_prices.data import providers

    starts = (
        getattr(entry.constraint, "start_date", None)
        for provider in providers
        for model in provider.models
        if isinstance(model.prices, list)
        for entry in model.prices
    )
    newest = max((start for start in starts if isinstance(start, date) and start <= today), default=None)
    known = f", newest price change {newest.isoformat()}" if newest is not None else ""
    return f"genai-prices {version('genai-prices')}{known}"
