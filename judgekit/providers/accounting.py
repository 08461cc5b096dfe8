"""Tokens and cost of a call: what a reply says of them and of who served it, and what the tokens cost by a price list.

Servers and gateways have dialects, which are read here; prices are those of the config, else of a maintained price list
that ships its data.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from judgekit.core.call_costs import CostSource
from judgekit.core.cases import Usage
from judgekit.core.config import ModelConfig
from judgekit.core.request_fields import is_local
from judgekit.core.text import clean_text

_MOST_TOKENS = 20_000_000
"""No single call has more; a larger count is an error of the server."""

_MOST_USD = 100_000.0

_PROMPT = ("prompt_tokens", "input_tokens", "promptTokenCount", "prompt_eval_count")
_COMPLETION = ("completion_tokens", "output_tokens", "candidatesTokenCount", "eval_count")
_TOTAL = ("total_tokens", "totalTokenCount")
_REASONING = ("reasoning_tokens", "thoughtsTokenCount")
_COMPLETION_DETAILS = ("completion_tokens_details", "output_tokens_details")
_CACHED = ("cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens", "cachedContentTokenCount")
_PROMPT_DETAILS = ("prompt_tokens_details", "input_tokens_details")

UPSTREAM_HEADERS = ("x-inference-provider", "x-litellm-model-api-base", "x-portkey-provider", "x-bifrost-provider")
"""Headers in which gateways name who served a reply, if its body does not: Hugging Face, LiteLLM, Portkey, Bifrost;
`x-upstream` is for your own gateway."""

_COST_HEADER = "x-litellm-response-cost"
_LONGEST_NAME = 200

Price = Callable[[Usage], float]
"""US dollars for the tokens of one call."""


def read_usage(payload: Mapping[str, Any], *, has_text: bool) -> Usage | None:
    """The tokens of a reply; a count that is missing or absurd stays None, and None is returned if no count is left.

    Tokens of thinking that a server leaves out of the completion are a part of it here: those that only the total
    shows, and those of a detail field that are more than the completion. Anthropic's `input_tokens` do not hold what
    is read from or written to its cache, so that is added.

    Args:
        payload: the body of the reply.
        has_text: the reply holds a text, so that 0 completion tokens are not a count.
    """
    usage = payload.get("usage") or payload.get("usageMetadata")
    if not isinstance(usage, dict):
        return None
    prompt, completion, total = _first(usage, _PROMPT), _first(usage, _COMPLETION), _first(usage, _TOTAL)
    reasoning = _detail(usage, _COMPLETION_DETAILS, _REASONING)
    cached = _detail(usage, _PROMPT_DETAILS, _CACHED)
    if prompt is not None and usage.get("prompt_tokens") is None and usage.get("input_tokens") is not None:
        prompt += sum(_count(usage.get(f"cache_{what}_input_tokens")) or 0 for what in ("read", "creation"))
    if not prompt:
        prompt = None  # a server that counts 0 does not count
    if completion == 0 and has_text:
        completion = None
    prompt, completion = _completed(prompt, completion, total, reasoning)
    if cached is not None and prompt is not None:
        cached = min(cached, prompt)
    if prompt is None and completion is None and not total:
        return None
    return Usage(  # validated, which is twice as quick as model_construct
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        reasoning_tokens=reasoning,
        total_tokens=total or None,
    )


def _completed(
    prompt: int | None, completion: int | None, total: int | None, reasoning: int | None
) -> tuple[int | None, int | None]:
    """Prompt and completion, with what the total and the detail of thinking say of them."""
    if total:
        if prompt is not None and total >= prompt + (completion or 0):
            completion = total - prompt if total > prompt else completion
        elif prompt is None and completion is not None and total > completion:
            prompt = total - completion
    if reasoning is not None and completion is not None and reasoning > completion:
        completion += reasoning
    return prompt, completion


def _first(values: Mapping[str, Any], names: Iterable[str]) -> int | None:
    for name in names:
        if name in values and (found := _count(values[name])) is not None:
            return found
    return None


def _detail(usage: Mapping[str, Any], places: Iterable[str], names: Iterable[str]) -> int | None:
    found = [usage[place] for place in places if isinstance(usage.get(place), dict)]
    return next((count for values in (*found, usage) if (count := _first(values, names)) is not None), None)


def _count(value: Any) -> int | None:
    """A number of tokens, also if it came as text or as a float; None for anything else."""
    is_text = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10
    if is_text or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def read_cost(payload: Mapping[str, Any], headers: Mapping[str, str]) -> float | None:
    """US dollars that a reply says it cost; None if it does not say.

    Read from `usage.cost` (OpenRouter; an object with `total_cost` as Perplexity sends it), `usage.estimated_cost`
    (DeepInfra) and the header `x-litellm-response-cost`. If your own key is used through OpenRouter, `cost` is
    its fee alone, and what the upstream charges is added, without which nothing is known.
    """
    usage = payload.get("usage")
    if not isinstance(usage, dict):
        return _usd(headers.get(_COST_HEADER))
    said = usage.get("cost", usage.get("estimated_cost"))
    cost = _usd(said.get("total_cost") if isinstance(said, dict) else said)
    if usage.get("is_byok") is True:
        details = usage.get("cost_details")
        upstream = _usd(details.get("upstream_inference_cost")) if isinstance(details, dict) else None
        return None if upstream is None else upstream + (cost or 0.0)
    return _usd(headers.get(_COST_HEADER)) if cost is None else cost


def _usd(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and 0 <= found <= _MOST_USD else None


def read_upstream(payload: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    """Who served a reply behind a gateway; None if nothing says it.

    Read from the body, `provider` (OpenRouter) or `extra_fields.provider` (Bifrost), else from `UPSTREAM_HEADERS` and
    `x-upstream`.
    """
    said = payload.get("provider")
    if said is None and isinstance(payload.get("extra_fields"), dict):
        said = payload["extra_fields"].get("provider")
    if isinstance(said, dict) and isinstance(said.get("name"), str):
        said = said["name"]
    if said is None or said == "":
        said = next((headers[name] for name in (*UPSTREAM_HEADERS, "x-upstream") if headers.get(name)), None)
    if said is None:
        return None
    text = said if isinstance(said, str) else json.dumps(said)
    if "://" in text:
        # An address may hold a key in its query.
        try:
            parts = urlsplit(text)
        except ValueError:
            return None
        text = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return clean_text(text.strip())[:_LONGEST_NAME] or None


def price_of(model: ModelConfig) -> tuple[Price, CostSource] | None:
    """The price of a model and where it comes from; None if it is not known, or you run the model yourself."""
    if model.prices is not None:
        prices = model.prices
        cached = prices.input if prices.cached is None else prices.cached
        return _by_rates(prices.input / 1e6, prices.output / 1e6, cached / 1e6), "config"
    listed = None if is_local(model.base_url) else _listed(model)
    return None if listed is None else (listed, "price_list")


def _listed(model: ModelConfig) -> Price | None:
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    where: dict[str, Any] = {"provider_api_url": model.base_url} if model.base_url else {"provider_id": "openai"}

    def price(usage: Usage) -> float:
        priced = PricedUsage(
            input_tokens=usage.prompt_tokens or 0,
            output_tokens=usage.completion_tokens or 0,
            cache_read_tokens=usage.cached_tokens or 0,
        )
        return float(calc_price(priced, model_ref=model.model, **where).total_price)

    try:
        return _linear(price) or price
    except (LookupError, ValueError):
        return None


def _linear(price: Price) -> Price | None:
    """The same price from three rates, if it has no tiers: a look-up for each call costs 70 us."""
    rates = []
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        # Cached tokens are a part of the prompt's.
        names = ("prompt_tokens", name) if name == "cached_tokens" else (name,)
        small, large = (price(Usage(**dict.fromkeys(names, count))) for count in (1_000, 2_000_000))
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
