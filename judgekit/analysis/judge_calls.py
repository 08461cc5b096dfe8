"""The calls of the judges of a run: who answered, what failed, what came from the cache, and what all of it took."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from judgekit.analysis.drift_points import AT_ONCE
from judgekit.analysis.drift_states import ENOUGH_PAIRS
from judgekit.core.judgments import COST_SOURCES, NO_REPLY_KINDS, Judgment

_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")


def judge_record(judgments: Sequence[Judgment], about: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader must know about one judge: how many verdicts, why not more, how they were read.

    From the last judgment of each case, behind what the config says of the judge and its model.
    """
    failures = [item.failure.kind for item in judgments if item.failure is not None]
    return {
        **about,
        "n_judged": sum(item.verdict is not None for item in judgments),
        "n_failed": len(failures),
        "n_asked_again": sum(bool(item.earlier_attempts) for item in judgments),
        "failures": _counted(failures),
        "parse_paths": _counted(item.parse_path for item in judgments),
        "flags": _counted(flag for item in judgments for flag in item.flags),
        "temperature_accepted": all(item.temperature_accepted for item in judgments),
        "served_models": _counted(item.served_model for item in judgments),
        "fingerprints": _counted(item.fingerprint for item in judgments),
        "upstreams": _counted(item.upstream for item in judgments),
    }


def instrument(judgments: Sequence[Judgment]) -> dict[str, Any]:
    """What gave the judgments of one judge in one role: model requested and served, prompt, parameters, parser.

    Served names and fingerprints come with the number of judgments that carry them, so that a change under way can be
    seen. For no judgments everything is None or empty.
    """
    last = judgments[-1] if judgments else None
    return {
        "model_id": last and last.model_id,
        "provider": last and last.provider,
        "model": last and last.model,
        "served_models": _counted(item.served_model or None for item in judgments),
        "fingerprints": _counted(item.fingerprint or None for item in judgments),
        "upstreams": _counted(item.upstream or None for item in judgments),
        "prompt_version": last and last.prompt_version,
        "prompt_sha256": last and last.prompt_sha256,
        "temperature": 0,
        "temperature_accepted": all(item.temperature_accepted for item in judgments) if judgments else None,
        "parser_versions": sorted({item.parser_version for item in judgments}),
    }


def _counted(values: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(value for value in values if value is not None).items()))


@dataclass(frozen=True, slots=True)
class PerVerdict:
    """What one verdict of a judge takes."""

    calls: float
    """Calls to a model, of all members of a panel; 0 if none is asked, as of an embedded judge."""
    usd: float | None
    """None: not known."""


def per_verdict(judgments: Iterable[Judgment]) -> dict[str, PerVerdict]:
    """By judge, calls and cost of a verdict of the run, on average; spot checks are left out.

    A verdict from the cache is a call, since the next one will be. Failed calls and retries count: they come again.

    Args:
        judgments: the judgment that counts for each question.
    """
    cases: defaultdict[str, set[str]] = defaultdict(set)
    n_calls: Counter[str] = Counter()
    priced: Counter[str] = Counter()
    usd: defaultdict[str, float] = defaultdict(float)
    for item in judgments:
        if item.role in ("primary", "member"):
            cases[item.judge].add(item.case_id)
            n_calls[item.judge] += item.n_requests or int(item.from_cache)
            if item.cost_usd is not None and item.n_requests:
                priced[item.judge] += item.n_requests
                usd[item.judge] += item.cost_usd
    found = {}
    for name, own in cases.items():
        calls = n_calls[name] / len(own)
        price = usd[name] / priced[name] if priced[name] else 0.0 if not calls else None
        found[name] = PerVerdict(calls, None if price is None else calls * price)
    return found


def cost_record(judgments: Iterable[Judgment], price_list: str | None) -> dict[str, Any]:
    """Tokens and money of all judge calls; cached replies are counted apart and cost nothing.

    Args:
        judgments: every stored judgment, spot checks included; what was copied from another run cost nothing here.
        price_list: the list that prices are from if neither a reply nor the config has them.

    Returns:
        A strict-JSON object. Tokens are None if calls were answered and none of them was counted; `usd` is None
        if the cost of a call is not known, and `usd_of_priced_models` is the sum of what is.
    """
    n_calls = n_from_cache = n_with_usage = n_without_usage = n_without_cost = 0
    tokens: Counter[str] = Counter()
    usd = 0.0
    by_source: defaultdict[str, float] = defaultdict(float)
    unpriced: set[str] = set()
    for judgment in judgments:
        if judgment.copied_from is not None:
            continue
        n_calls += judgment.n_requests
        n_from_cache += judgment.from_cache
        if judgment.from_cache or not judgment.n_requests:
            continue
        usage, n_unmetered = judgment.usage, _n_unmetered(judgment)
        if usage is not None:
            tokens.update({name: getattr(usage, name) or 0 for name in _TOKENS})
        n_with_usage += usage is not None
        n_without_usage += n_unmetered
        if judgment.cost_usd is not None:
            usd += judgment.cost_usd
            by_source[judgment.cost_source or "price_list"] += judgment.cost_usd
        elif n_unmetered or usage is not None:
            n_without_cost += 1
            unpriced.add(judgment.model_id)
    is_counted = n_with_usage or not n_without_usage
    return {
        "n_calls": n_calls,
        "n_from_cache": n_from_cache,
        "n_without_usage": n_without_usage,
        "n_without_cost": n_without_cost,
        **{name: tokens[name] if is_counted else None for name in _TOKENS},
        "usd": None if n_without_cost else usd,
        "usd_of_priced_models": usd,
        "usd_by_source": {name: by_source[name] for name in COST_SOURCES if name in by_source},
        "price_list": price_list,
        "unpriced_models": sorted(unpriced),
    }


def _n_unmetered(judgment: Judgment) -> int:
    """Calls of a judgment whose tokens are not known; one that ended in an error took none that anybody pays for."""
    if judgment.unmetered is not None:
        return judgment.unmetered.n_calls
    is_answered = judgment.failure is None or judgment.failure.kind not in NO_REPLY_KINDS
    return int(judgment.usage is None and is_answered)


@dataclass(frozen=True)
class ReplySources:
    """Where the verdicts of one judge are from."""

    n: int
    n_from_cache: int
    n_asked: int
    """Replies that the judge gave to this run, repeats included."""
    newest: str | None
    """When the newest reply from the cache was given; None without any."""


def reply_sources(verdicts: Iterable[Judgment], repeats: Iterable[Judgment]) -> ReplySources:
    """Count the replies of one judge: those that the figures rest on, and those to the same question asked again."""
    own = [item for item in verdicts if item.copied_from is None]
    cached = [item.created_at for item in own if item.from_cache]
    n_asked = sum(item.n_requests > 0 for item in [*own, *repeats])
    return ReplySources(len(own), len(cached), n_asked, max(cached, default=None))


def cache_warnings(found: Mapping[str, ReplySources], now: datetime) -> list[tuple[str, str]]:
    """Warnings, as (code, message), of judges with a cache that a run did not ask or hardly asked."""
    silent = {name: item for name, item in found.items() if item.newest is not None and not item.n_asked}
    if len(silent) > 1 and len(silent) == len(found):
        newest = max(item.newest or "" for item in silent.values())
        return [("all_from_cache", _line("no judge was asked", sum(item.n for item in silent.values()), newest, now))]
    warnings = []
    for name, item in found.items():
        if item.newest is None or item.n_asked >= ENOUGH_PAIRS:
            continue
        if name in silent:
            warnings.append(("all_from_cache", _line(f"judge {name} was not asked", item.n, item.newest, now)))
        elif _is_old(item.newest, now):
            text = (
                f"judge {name}: {item.n_from_cache} of {item.n} verdicts from the cache, newest "
                f"{_age(item.newest, now)} old, and it was asked {item.n_asked} times: little is known about today's "
                "judge"
            )
            warnings.append(("mostly_from_cache", text))
    return warnings


def _line(who: str, n: int, newest: str, now: datetime) -> str:
    known = ": nothing is known about today's judge" if _is_old(newest, now) else ""
    return f"{who}: all {n} verdicts from the cache, newest {_age(newest, now)} old{known}"


def _is_old(at: str, now: datetime) -> bool:
    return now - datetime.fromisoformat(at) > AT_ONCE


def _age(at: str, now: datetime) -> str:
    seconds = max(0.0, (now - datetime.fromisoformat(at)).total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            n = int(seconds // length)
            return f"{n} {unit}{'s' if n > 1 else ''}"
    return "less than a minute"
