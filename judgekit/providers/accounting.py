"""What a reply says of its tokens, of its cost and of who served it, in the dialects of servers and gateways."""

import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from judgekit.core.cases import Usage
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
"""Headers in which gateways name who served a reply, where its body does not: Hugging Face, LiteLLM, Portkey, Bifrost;
`x-upstream` stands for one's own."""

_COST_HEADER = "x-litellm-response-cost"
_LONGEST_NAME = 200


def read_usage(payload: Mapping[str, Any], *, has_text: bool) -> Usage | None:
    """The tokens of a reply; a count that is missing or absurd stays None, and None is returned where none is left.

    Tokens of thinking that a server leaves out of the completion are a part of it here: those that only the total
    shows, and those of a detail field that are more than the completion. Anthropic's `input_tokens` do not hold what
    is read from or written to its cache, so that is added.

    Args:
        payload: the body of the reply.
        has_text: the reply holds a text, so that 0 completion tokens are no count.
    """
    usage = payload.get("usage") or payload.get("usageMetadata")
    if not isinstance(usage, dict):
        return None
    prompt, completion, total = _first(usage, _PROMPT), _first(usage, _COMPLETION), _first(usage, _TOTAL)
    reasoning = _detail(usage, _COMPLETION_DETAILS, _REASONING)
    cached = _detail(usage, _PROMPT_DETAILS, _CACHED)
    if prompt is not None and usage.get("prompt_tokens") is None and usage.get("input_tokens") is not None:
        prompt += sum(count(usage.get(f"cache_{what}_input_tokens")) or 0 for what in ("read", "creation"))
    if not prompt:
        prompt = None  # a server that counts 0 does not count
    if completion == 0 and has_text:
        completion = None
    prompt, completion = _completed(prompt, completion, total, reasoning)
    if cached is not None and prompt is not None:
        cached = min(cached, prompt)
    if prompt is None and completion is None and not total:
        return None
    return Usage.model_construct(
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


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = values.get(name)
        found = None if value is None else count(value)
        if found is not None:
            return found
    return None


def _detail(usage: Mapping[str, Any], places: tuple[str, ...], names: tuple[str, ...]) -> int | None:
    for place in places:
        details = usage.get(place)
        found = _first(details, names) if isinstance(details, dict) else None
        if found is not None:
            return found
    return _first(usage, names)


def count(value: Any) -> int | None:
    """A number of tokens, also where it came as text or as a float; None for anything else."""
    if type(value) is int:
        return value if 0 <= value <= _MOST_TOKENS else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        return count(int(value))
    if isinstance(value, float) and value.is_integer():
        return count(int(value))
    return None


def read_cost(payload: Mapping[str, Any], headers: Mapping[str, str]) -> float | None:
    """US dollars that a reply says it cost; None where it does not say.

    Read from `usage.cost` (OpenRouter; an object with `total_cost` as Perplexity sends it), `usage.estimated_cost`
    (DeepInfra) and the header `x-litellm-response-cost`. Where a key of one's own is used through OpenRouter, `cost` is
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
    """Who served a reply behind a gateway; None where nothing says it.

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
