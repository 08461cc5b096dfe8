"""How figures are written in every report: one wording, one number of digits."""

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

from judgekit.core.conditions import GateResult, GateState
from judgekit.core.runs import RunSummary
from judgekit.core.scores import SUM_METHOD, Estimate, Scale
from judgekit.stats.means import round4

_STORED = Decimal("0.0001")
"""metrics.json has four decimals."""

INDEX_VERSIONS = ("chunker_version", "embedding_model", "index_version")

Figures = Mapping[str, Estimate | dict[str, int]]
"""Figures by name, with the counts of distributions among them."""


def number(value: float | None, digits: int = 3) -> str:
    """A figure with fixed digits; `n/a` if there is none.

    Rounded by way of the four decimals that are stored, so that a figure reads the same before and after.
    """
    if value is None:
        return "n/a"
    if abs(value) >= 1e12:
        return f"{value:.{digits}f}"
    stored = Decimal(repr(value)).quantize(_STORED, ROUND_HALF_EVEN)
    return f"{stored.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"


def shown(figure: Estimate) -> str:
    """The value of a figure; a sum over cases is a whole number."""
    return number(figure.value, 0 if figure.method == SUM_METHOD else 3)


def between(low: float | None, high: float | None) -> str:
    """`0.512 to 0.734`, or nothing."""
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def interval(figure: Estimate) -> str:
    """The interval of a figure as `between` writes it."""
    return between(figure.low, figure.high)


_COARSE = 0.2
"""Width of an interval from which on one digit says all there is to say of points; a tenth of it for other figures."""


def value_text(figure: Estimate, scale: Scale | None) -> str:
    """A figure with its unit: `90%`, `3.1 of 5`, `15`, `0.81`; with three digits if its unit is not known."""
    if scale is None or figure.value is None:
        return shown(figure)
    value = _in_unit(figure.value, figure, scale)
    if scale.unit == "points":
        return f"{value} of {scale.high:g}"
    return f"{value}%" if scale.unit == "share" else value


def interval_text(figure: Estimate, scale: Scale | None) -> str:
    """The interval of a figure in the digits of `value_text`: `74% to 97%`, `2.3 to 3.6`; empty if there is none."""
    if scale is None or figure.low is None or figure.high is None:
        return interval(figure)
    mark = "%" if scale.unit == "share" else ""
    return " to ".join(f"{_in_unit(end, figure, scale)}{mark}" for end in (figure.low, figure.high))


def direction(scale: Scale | None) -> str:
    """Which way is better, as an arrow with a word; empty if neither is or it is not known."""
    return {"higher": "↑ higher", "lower": "↓ lower", None: ""}[scale.better if scale else None]


def compared_text(value: float | None, scale: Scale | None) -> str:
    """A figure beside another one, with its unit and a digit more than `value_text`: `64.5%`, `3.19 of 5`."""
    if value is None or scale is None or scale.unit == "number":
        return number(value)
    if scale.unit == "share":
        return percent(value, 1)
    return number(value, 0) if scale.unit == "count" else f"{number(value, 2)} of {scale.high:g}"


def signed_text(difference: float | None, scale: Scale | None) -> str:
    """A difference of figures with its sign, in the digits of `compared_text`: `-38.7 pp`, `-0.81`, `0`."""
    if difference is None:
        return "n/a"
    return f"{_signed(difference, scale)}{' pp' if difference and scale and scale.unit == 'share' else ''}"


def signed_between(low: float | None, high: float | None, scale: Scale | None) -> str:
    """The interval of a difference, in the unit of `signed_text`: `-54.8 to -17.9`; empty if there is none."""
    return "" if low is None or high is None else f"{_signed(low, scale)} to {_signed(high, scale)}"


def signed_ends(part: Mapping[str, Any], scale: Scale | None) -> str:
    """A stored difference with its 95% interval, if it has one: `-0.81 (-1.08 to -0.53)`."""
    ends = signed_between(part.get("low"), part.get("high"), scale)
    return f"{signed_text(part['value'], scale)}{f' ({ends})' if ends else ''}"


def _signed(difference: float, scale: Scale | None) -> str:
    if not difference:
        return "0"
    unit = "number" if scale is None else scale.unit
    value = 100 * round4(difference) if unit == "share" else difference
    text = number(value, {"share": 1, "number": 3, "points": 2, "count": 0}[unit])
    return text if text.startswith("-") else f"+{text}"


def percent(value: float, least: int = 0) -> str:
    """A share as `90%`; with more digits near 0% and 100%, where whole numbers would hide that it is neither.

    `least`: digits of every share that is not 0% or 100%.
    """
    stored = Decimal(repr(value)).quantize(_STORED, ROUND_HALF_EVEN) * 100
    to_end = min(stored, 100 - stored)
    digits = 0 if to_end <= 0 or (stored >= 10 and to_end >= 1) else 1 if to_end >= Decimal("0.1") else 2
    digits = max(digits, least) if to_end > 0 else 0
    return f"{stored.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}%"


def _in_unit(value: float, figure: Estimate, scale: Scale) -> str:
    if scale.unit == "count":
        return number(value, 0)
    width = math.inf if figure.low is None or figure.high is None else figure.high - figure.low
    if scale.unit == "points":
        return number(value, 1 + _finer(width, _COARSE))
    more = _finer(width, _COARSE / 10)
    return percent(value, more).removesuffix("%") if scale.unit == "share" else number(value, 2 + more)


def _finer(width: float, coarse: float) -> int:
    """Digits more than of a coarse interval, so that the ends of a narrow one are told apart; four are stored."""
    return 0 if width >= coarse else 1 if width >= coarse / 10 else 2


def coverage(figure: Estimate) -> str:
    """`31` cases with a value, how many failed or do not apply, and whether they are too few."""
    parts = [f"{figure.n} (small)" if figure.small and figure.n else f"{figure.n:,}"]
    if figure.n_error:
        parts.append(f"{figure.n_error:,} failed")
    if figure.n_not_applicable:
        parts.append(f"{figure.n_not_applicable:,} n/a")
    return ", ".join(parts)


def if_failed(figure: Estimate) -> str:
    """The range of the value over all outcomes of the failed cases: `0.41 to 0.62`; empty if none failed."""
    return between(figure.worst, figure.best)


def gate_lines(summary: RunSummary) -> list[tuple[GateState | None, str]]:
    """(state, line) of each gate; None for what is said of all of them, such as why nothing was checked."""
    if not summary.n_gates:
        return [(None, "no gate was set, so the exit code says nothing about the figures")]
    if not summary.gates:
        return [(None, f"gates set: {summary.n_gates}, not checked, since these are the figures of a part of the run")]
    found: list[tuple[GateState | None, str]] = [(gate.state, gate.message) for gate in summary.gates]
    note = several_gates(summary.gates)
    return [*found, (None, note)] if note else found


def several_gates(gates: Sequence[GateResult]) -> str | None:
    """What to know of several gates that are relative to a baseline; None if there is at most one."""
    n = sum(gate.baseline is not None for gate in gates)
    if n < 2:
        return None
    return f"{n} gates are relative to a baseline; each has its own 95% interval, not corrected for their number"


SMALL_SLICES_NAMED = 8
"""Small slices that the line names; the rest is counted."""


def small_slices_line(summary: RunSummary) -> str | None:
    """The slices with too few cases for any figure in one line, or None without any."""
    sizes = {
        f"{dimension}={value}": max(
            (figure.n for figure in figures.values() if isinstance(figure, Estimate)), default=0
        )
        for dimension, values in summary.slices.items()
        for value, figures in values.items()
    }
    small = [f"{name} ({n})" for name, n in sizes.items() if n < summary.min_n]
    if not small:
        return None
    more = f" and {len(small) - SMALL_SLICES_NAMED} more" if len(small) > SMALL_SLICES_NAMED else ""
    return f"small slices, fewer than {summary.min_n} cases: {', '.join(small[:SMALL_SLICES_NAMED])}{more}"


def judge_lines(summary: RunSummary) -> list[str]:
    """One line for each judge: which instrument gave its scores."""
    lines = []
    for name, record in summary.judges.items():
        note = f" ({record['note']})" if record.get("note") else ""
        failed = f", {record['n_failed']} without a verdict" if record["n_failed"] else ""
        lines.append(
            f"{name}: {record['model']}{note}, prompt {record['prompt_version']} "
            f"({record['prompt_sha256'][:8]}), {record['n_judged']} verdicts{failed}"
        )
    return lines


def panel_lines(summary: RunSummary) -> list[str]:
    """For each panel: how often its members agree, tie and fail, and how many votes they amount to."""
    lines = []
    for name, record in summary.judges.items():
        panel = record.get("panel")
        if panel is None:
            continue
        members, votes = len(panel["members"]), panel["effective_votes"]
        worth = panel.get("undefined_reason") if votes is None else f"{votes:.1f} of {members}"
        failed = ", ".join(f"{member} {sum(kinds.values())}" for member, kinds in panel["failures"].items() if kinds)
        lines.append(
            f"panel {name}: unanimous on {panel['n_unanimous']} of {panel['n_complete']} cases that all {members} "
            f"members judged, {_counted(panel['n_ties'], 'tie')}, {panel['n_below_quorum']} below the quorum; "
            f"effective votes: {worth}{f'; calls without a verdict: {failed}' if failed else ''}"
        )
    return lines


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def reliability_line(reliability: Mapping[str, Any] | None) -> str | None:
    """The spot check in one line, or None if there was none."""
    if reliability is None or not reliability.get("n_asked"):
        return None
    rate, n = reliability["disagreement_rate"], reliability["spot_check_n"]
    if rate is None:
        return "spot check: no pair could be judged"
    ends = reliability.get("interval") or {}
    low, high = ends.get("low"), ends.get("high")
    between = "" if low is None or high is None else f" (95% {low:.2f} to {high:.2f})"
    return f"spot check: judges disagree on {rate:.0%} of {n} pairs{between}"


def rejudged_line(summary: RunSummary) -> str | None:
    """How the verdicts of a rejudge differ from those of its parent, or None if it is not a rejudge."""
    found = summary.rejudged
    if found is None:
        return None
    if not found["n"]:
        return f"verdicts changed against {found['parent']}: no case has two verdicts"
    low, high = found["low"], found["high"]
    between = "" if low is None or high is None else f" (95% {low:+.2f} to {high:+.2f})"
    mean = found["mean_signed_difference"]
    shift = "" if mean is None else f", mean shift {mean:+.2f}{between}"
    return f"verdicts changed against {found['parent']}: {found['changed']} of {found['n']}{shift}"


def history_line(summary: RunSummary) -> str | None:
    """Whether a rejudge is a point of the drift history; None if it is not a rejudge, or an unfinished one."""
    found = summary.rejudged
    if found is None or summary.status != "complete":
        return None
    if any(notice.code == "drift_not_recorded" for notice in summary.warnings):
        return "drift history: no point, as the warning says"
    if not found["n_asked"]:
        return "drift history: no point, since every reply came from the cache; --no-cache asks the judge again"
    asked = ", ".join(f"{name} {part['n_asked']}" for name, part in found["by_judge"].items() if part["n_asked"])
    return f"drift history: one point for each judge that was asked again ({asked})"


def finding_lines(summary: RunSummary) -> list[str]:
    """What a rejudge has found: how many verdicts changed, and whether they are a point of the drift history."""
    return [line for line in (rejudged_line(summary), history_line(summary)) if line]


def instrument_lines(summary: RunSummary) -> list[str]:
    """How the figures were made: judges, spot check, latency, cost."""
    lines = [
        *judge_lines(summary),
        *panel_lines(summary),
        rejudged_line(summary),
        history_line(summary),
        reliability_line(summary.judge_reliability),
        abstention_line(summary),
        latency_line(summary),
    ]
    return [line for line in [*lines, cost_line(summary)] if line]


def abstention_line(summary: RunSummary) -> str | None:
    """That the shipped rule says which answers are abstentions, if a figure depends on it."""
    found = summary.abstention
    if found is None or found["source"] != "rule":
        return None
    figures = (summary.overall.get(name) for name in ("abstention_accuracy", "over_abstention_rate"))
    n_found = found["n_abstained"].get("rule", 0)
    if not n_found and not any(isinstance(figure, Estimate) and figure.n for figure in figures):
        return None
    n = found["by_source"]["rule"]
    answers = "1 answer" if n == 1 else f"{n:,} answers"
    return f"abstentions: by the shipped rule for {answers} without a flag, no judge abstention ({n_found:,} found)"


def indexing_lines(coverage: Mapping[str, Any] | None) -> list[str]:
    """How much of the corpus was indexed; empty if the run does not say."""
    if coverage is None:
        return []
    n, n_chunks = coverage["n_docs_processed"], coverage["n_chunks"]
    rate = coverage["no_chunks_rate"]
    lines = [
        f"{n:,} documents, {n_chunks:,} chunks; {coverage['n_docs_without_chunks']:,} documents without a chunk"
        f"{'' if rate is None else f' ({rate:.1%})'}"
    ]
    if coverage["n_chunks_attempted"] is not None:
        rate = coverage["chunks_skipped_context_rate"]
        lines.append(
            f"{coverage['n_chunks_embedded']:,} of {coverage['n_chunks_attempted']:,} chunks embedded; "
            f"{coverage['n_chunks_skipped_context']:,} skipped for their length"
            f"{'' if rate is None else f' ({rate:.1%})'}"
        )
        reasons = coverage["skipped_by_reason"].items()
        if reasons:
            lines.append(f"skipped: {', '.join(f'{reason} {count:,}' for reason, count in reasons)}")
    tokens = coverage["tokens_per_chunk"]
    if tokens["n"]:
        lines.append(
            f"tokens per chunk: {tokens['min']} to {tokens['max']}, mean {tokens['mean']:.1f}, p95 {tokens['p95']:.1f}"
        )
    versions = [f"{name} {coverage[name]}" for name in INDEX_VERSIONS if coverage[name] is not None]
    return [*lines, ", ".join(versions)] if versions else lines


def latency_line(summary: RunSummary) -> str | None:
    """p50 and p95 by stage in one line."""
    parts = [
        f"{stage} {_ms(values['p50_ms'])} / {_ms(values['p95_ms'])}"
        for stage, values in summary.latency.items()
        if values["n"]
    ]
    return f"latency p50 / p95: {', '.join(parts)}" if parts else None


def cost_line(summary: RunSummary) -> str:
    """Calls, tokens and money in one line."""
    cost = summary.cost
    if not cost["n_calls"] and not cost["n_from_cache"]:
        return "cost: no model was called"
    calls = f"{cost['n_calls']:,} calls, {cost['n_from_cache']:,} answered from the cache"
    return f"cost: {calls}, {tokens_text(cost)}, {money_text(cost)}"


def tokens_text(cost: Mapping[str, Any]) -> str:
    """Tokens of all calls, and how many calls have no known tokens."""
    n_unknown, prompt = cost["n_without_usage"], cost["prompt_tokens"]
    unknown = f"tokens of {n_unknown:,} call{'' if n_unknown == 1 else 's'} not known"
    # A run of an older version has 0 where nothing was counted.
    if prompt is None or (n_unknown and not prompt):
        return unknown
    known = f"{prompt:,} prompt and {cost['completion_tokens']:,} completion tokens"
    thinking = f" ({cost['reasoning_tokens']:,} of them thinking)" if cost.get("reasoning_tokens") else ""
    return f"{known}{thinking}{f' and {unknown}' if n_unknown else ''}"


def sources_text(sources: Iterable[str], price_list: str | None) -> str:
    """The sources of a cost, in brackets; empty without any."""
    words = {"reply": "as the replies say", "config": "by the prices of the config"}
    named = [words.get(name, f"by {price_list or 'a price list'}") for name in sources]
    return f" ({', '.join(named)})" if named else ""


def money_text(cost: Mapping[str, Any]) -> str:
    """US dollars of all calls, their source, and how many calls have no known cost."""
    by_source = cost.get("usd_by_source") or {}
    where = sources_text(by_source, cost["price_list"])
    if cost["usd"] is not None:
        return f"{cost['usd']:.4f} USD{where}"
    if not by_source:
        return "cost unknown" if cost["price_list"] else "price unknown"
    n_unknown = cost["n_without_cost"]
    more = "1 more judgment" if n_unknown == 1 else f"{n_unknown:,} more judgments"
    return f"{cost['usd_of_priced_models']:.4f} USD{where}, and the cost of {more} is not known"


def _ms(value: float | int | None) -> str:
    if value is None:
        return "n/a"
    return f"{value / 1000:.1f} s" if value >= 10_000 else f"{value:.0f} ms"


def p_value(value: float | None) -> str:
    """`0.034`; never 0, so a small one is `< 0.001`; `n/a` if there is none. It reads the same before it is stored."""
    return "< 0.001" if value is not None and round4(value) < 0.001 else number(value)


def by_judge(parts: Mapping[str, Any] | None) -> Mapping[str, Mapping[str, Any]]:
    """What metrics.json has of each judge in `judge_reliability` or `rejudged`; empty if it has none of it."""
    return (parts or {}).get("by_judge") or {}


def counted_names(counts: Mapping[str, int] | None) -> str:
    """`a (3), b (1)`."""
    return ", ".join(f"{name} ({n})" for name, n in (counts or {}).items())
