"""The calls of the judges of a run: who answered, what failed, what came from the cache, and what all of it took."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from judgekit.analysis.drift_points import AT_ONCE
from judgekit.analysis.drift_states import ENOUGH_PAIRS
from judgekit.core.call_costs import COST_SOURCES
from judgekit.core.judgments import NO_REPLY_KINDS, Judgment, JudgmentKey, that_count

_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")


@dataclass(slots=True)
class CallCounts:
    """What the judgments of one judge in one role tell, counted as they come."""

    n_judged: int = 0
    n_inconsistent: int = 0
    """Of those with a verdict."""
    n_asked_again: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """By kind."""
    parse_paths: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    served_models: Counter[str] = field(default_factory=Counter)
    fingerprints: Counter[str] = field(default_factory=Counter)
    upstreams: Counter[str] = field(default_factory=Counter)
    parser_versions: set[int] = field(default_factory=set)
    temperature_accepted: bool = True
    n_own: int = 0
    """Those that were not copied from another run."""
    n_from_cache: int = 0
    """Of its own."""
    n_asked: int = 0
    """Those that a call was made for."""
    n_asked_here: int = 0
    """Of its own."""
    newest_cached: str | None = None
    """When the newest reply from the cache was given; None without any."""
    last: Judgment | None = None

    def add(self, judgment: Judgment) -> None:
        """Count one judgment."""
        if judgment.verdict is not None:
            self.n_judged += 1
            self.n_inconsistent += judgment.verdict.inconsistent
        if judgment.failure is not None:
            self.failures[judgment.failure.kind] += 1
        self.n_asked_again += bool(judgment.earlier_attempts)
        self.flags.update(judgment.flags)
        self.parser_versions.add(judgment.parser_version)
        self.temperature_accepted = self.temperature_accepted and judgment.temperature_accepted
        for counter, value in (
            (self.parse_paths, judgment.parse_path),
            (self.served_models, judgment.served_model),
            (self.fingerprints, judgment.fingerprint),
            (self.upstreams, judgment.upstream),
        ):
            if value is not None:
                counter[value] += 1
        self.n_asked += judgment.n_requests > 0
        if judgment.copied_from is None:
            self.n_own += 1
            self.n_asked_here += judgment.n_requests > 0
            if judgment.from_cache:
                self.n_from_cache += 1
                self.newest_cached = max(self.newest_cached or "", judgment.created_at)
        self.last = judgment

    @property
    def n_failed(self) -> int:
        """Judgments without a verdict."""
        return self.failures.total()

    def record(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """What a reader must know about one judge: how many verdicts, why not more, how they were read.

        Args:
            about: what the config says of the judge and its model, which comes first.
        """
        return {
            **about,
            "n_judged": self.n_judged,
            "n_failed": self.n_failed,
            "n_asked_again": self.n_asked_again,
            "failures": _sorted(self.failures),
            "parse_paths": _sorted(self.parse_paths),
            "flags": _sorted(self.flags),
            "temperature_accepted": self.temperature_accepted,
            "served_models": _sorted(self.served_models),
            "fingerprints": _sorted(self.fingerprints),
            "upstreams": _sorted(self.upstreams),
        }

    def instrument(self) -> dict[str, Any]:
        """What gave the judgments: model requested and served, prompt, parameters, parser.

        Served names and fingerprints come with the number of judgments that carry them, so that a change under way can
        be seen. For no judgments everything is None or empty.
        """
        last = self.last
        return {
            "model_id": last and last.model_id,
            "provider": last and last.provider,
            "model": last and last.model,
            "served_models": _named(self.served_models),
            "fingerprints": _named(self.fingerprints),
            "upstreams": _named(self.upstreams),
            "prompt_version": last and last.prompt_version,
            "prompt_sha256": last and last.prompt_sha256,
            "temperature": 0,
            "temperature_accepted": self.temperature_accepted if last else None,
            "parser_versions": sorted(self.parser_versions),
        }


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _named(counts: Counter[str]) -> dict[str, int]:
    return {name: n for name, n in sorted(counts.items()) if name}


class JudgeCalls:
    """The judgments of a run that count, counted by judge and role while they are read case by case."""

    def __init__(self) -> None:
        """Start with none."""
        self._counts: defaultdict[tuple[str, str, str | None], CallCounts] = defaultdict(CallCounts)
        self._n_cases: Counter[str] = Counter()
        self._n_calls: Counter[str] = Counter()
        self._priced: Counter[str] = Counter()
        self._usd: defaultdict[str, float] = defaultdict(float)
        self.costs = Costs()
        """Of all stored judgments, also of those that do not count any more."""
        self.latencies = array("d")
        """How long judgments took in seconds, second opinions left out."""

    def add_stored(self, judgments: Sequence[Judgment]) -> Mapping[JudgmentKey, Judgment]:
        """Count all stored judgments of one case, in the order in which they came; gives those that count."""
        self.costs.add(judgments)
        counting = that_count(judgments)
        self.add_case(counting)
        return counting

    def add_case(self, judgments: Mapping[JudgmentKey, Judgment]) -> None:
        """Count the judgments of one case."""
        judged = set()
        for key, item in judgments.items():
            self._counts[key.role, key.judge, key.check].add(item)
            if item.latency_seconds is not None and key.role != "spot_check":
                self.latencies.append(item.latency_seconds)
            if key.role in ("primary", "member"):
                judged.add(key.judge)
                self._n_calls[key.judge] += item.n_requests or int(item.from_cache)
                if item.cost_usd is not None and item.n_requests:
                    self._priced[key.judge] += item.n_requests
                    self._usd[key.judge] += item.cost_usd
        self._n_cases.update(judged)

    def counts(self, role: str, judge: str, check: str | None = None) -> CallCounts:
        """Of one judge in one role; of a spot check by its name."""
        return self._counts.get((role, judge, check)) or CallCounts()

    def failures(self) -> Iterator[tuple[str, str | None, Counter[str]]]:
        """Role, spot check and kinds of the failures of each judge in each role."""
        for (role, _, check), counts in self._counts.items():
            if counts.failures:
                yield role, check, counts.failures

    def sources(self, role: str, judge: str, repeats: Collection[str]) -> "ReplySources":
        """Where the verdicts of a judge are from: those that the figures rest on, and the same question asked again."""
        own = self.counts(role, judge)
        n_again = sum(
            counts.n_asked for (_, name, check), counts in self._counts.items() if name == judge and check in repeats
        )
        return ReplySources(own.n_own, own.n_from_cache, own.n_asked_here + n_again, own.newest_cached)

    def per_verdict(self) -> dict[str, "PerVerdict"]:
        """By judge, calls and cost of a verdict of the run, on average; spot checks are left out.

        A verdict from the cache is a call, since the next one will be. Failed calls and retries count: they come again.
        """
        found = {}
        for name, n_cases in self._n_cases.items():
            calls = self._n_calls[name] / n_cases
            price = self._usd[name] / self._priced[name] if self._priced[name] else 0.0 if not calls else None
            found[name] = PerVerdict(calls, None if price is None else calls * price)
        return found


@dataclass(frozen=True, slots=True)
class PerVerdict:
    """What one verdict of a judge takes."""

    calls: float
    """Calls to a model, of all members of a panel; 0 if none is asked, as of an embedded judge."""
    usd: float | None
    """None: not known."""


class Costs:
    """Tokens and money of all judge calls; cached replies are counted apart and cost nothing."""

    def __init__(self, judgments: Iterable[Judgment] = ()) -> None:
        """Count some, or none so far."""
        self._n: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._usd = 0.0
        self._by_source: defaultdict[str, float] = defaultdict(float)
        self._unpriced: set[str] = set()
        self.add(judgments)

    def add(self, judgments: Iterable[Judgment]) -> None:
        """Count stored judgments, spot checks included; what was copied from another run cost nothing here."""
        count = self._n
        for judgment in judgments:
            if judgment.copied_from is not None:
                continue
            count["calls"] += judgment.n_requests
            count["from_cache"] += judgment.from_cache
            if judgment.from_cache or not judgment.n_requests:
                continue
            usage, n_unmetered = judgment.usage, _n_unmetered(judgment)
            if usage is not None:
                self._tokens.update({name: getattr(usage, name) or 0 for name in _TOKENS})
            count["with_usage"] += usage is not None
            count["without_usage"] += n_unmetered
            if judgment.cost_usd is not None:
                self._usd += judgment.cost_usd
                self._by_source[judgment.cost_source or "price_list"] += judgment.cost_usd
            elif n_unmetered or usage is not None:
                count["without_cost"] += 1
                self._unpriced.add(judgment.model_id)

    def record(self, price_list: str | None) -> dict[str, Any]:
        """A strict-JSON object.

        Tokens are None if calls were answered and none of them was counted; `usd` is None if the cost of a call is not
        known, and `usd_of_priced_models` is the sum of what is.

        Args:
            price_list: the list that prices are from if neither a reply nor the config has them.
        """
        count, by_source = self._n, self._by_source
        is_counted = count["with_usage"] or not count["without_usage"]
        return {
            "n_calls": count["calls"],
            "n_from_cache": count["from_cache"],
            "n_without_usage": count["without_usage"],
            "n_without_cost": count["without_cost"],
            **{name: self._tokens[name] if is_counted else None for name in _TOKENS},
            "usd": None if count["without_cost"] else self._usd,
            "usd_of_priced_models": self._usd,
            "usd_by_source": {name: by_source[name] for name in COST_SOURCES if name in by_source},
            "price_list": price_list,
            "unpriced_models": sorted(self._unpriced),
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
