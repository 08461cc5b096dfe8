"""What judges of preference say, in sentences: which answers are better, and how often the order decided."""

from collections.abc import Mapping
from typing import Any

from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.reports.figures import interval_text, number


def preference_lines(summary: RunSummary) -> list[str]:
    """Of every judge of preference, the finding first; empty if there is none."""
    found = {name: lines for name in summary.judges if (lines := preference_of(summary, name))}
    if len(found) == 1:
        return next(iter(found.values()))
    return [f"{name}: {line}" for name, lines in found.items() for line in lines]


def preference_of(summary: RunSummary, name: str) -> list[str]:
    """What a judge of preference found, first in one sentence; empty for any other judge."""
    record = summary.judges.get(name, {}).get("preference")
    if record is None:
        return []
    failed = summary.judges[name]["n_failed"]
    flipped = f"{record['n_flip']} of {_pairs(record['n_pairs'])} flipped with the order"
    runs = ", ".join(f"{letter} is {run}" for letter, run in record["runs"].items())
    lines = [f"{_finding(name, record, summary)}; {flipped}.", *([runs] if runs else [])]
    more = [(record["n_tie"], "ties in both orders"), (record["n_equal"], "equal answers, not asked")]
    more.append((failed, "not judged in both orders, in no rate"))
    counted = ", ".join(f"{n} {what}" for n, what in more if n)
    kinds = ", ".join(f"{n} {_FLIPS.get(kind, kind)}" for kind, n in record["flips"].items())
    lines += [f"beside decided pairs: {counted}"] if counted else []
    lines += [f"flips: {kinds}"] if kinds else []
    effect = summary.overall.get(f"{name}.order_effect")
    if isinstance(effect, Estimate) and effect.value is not None:
        ends = "" if effect.low is None or effect.high is None else f" (95% {effect.low:+.3f} to {effect.high:+.3f})"
        lines.append(
            f"order effect: {effect.value:+.3f}{ends}, by how much more often an answer is picked if it is first"
        )
    return lines


def reading_command(summary: RunSummary) -> str | None:
    """The command that shows both answers of each pair side by side; None if these are not pairs of two runs."""
    records = (judge.get("preference") for judge in summary.judges.values())
    runs = next((list(record["runs"].values()) for record in records if record), [])
    return f"judgekit compare {runs[0]} {runs[1]} --format html --out pairs.html" if len(runs) == 2 else None


_FLIPS = {
    "first_twice": "picked the first answer twice",
    "second_twice": "picked the second answer twice",
    "tie_and_pick": "a tie in one order only",
}


def _finding(name: str, record: Mapping[str, Any], summary: RunSummary) -> str:
    if len(record["runs"]) > 2:
        return _ranking(record)
    n = record["n_decided"]
    if not n:
        return "no pair was decided"
    rate = summary.overall.get(f"{name}.win_rate")
    low, high = (rate.low, rate.high) if isinstance(rate, Estimate) else (None, None)
    which = "B is" if low is not None and low > 0.5 else "A is" if high is not None and high < 0.5 else None
    ends = interval_text(rate, summary.scales.get(f"{name}.win_rate")) if isinstance(rate, Estimate) else ""
    picked = f"B is picked in {record['n_b']} of {n} decided pair{'' if n == 1 else 's'}"
    return f"{which or 'neither is shown to be'} better: {picked}{f' (95% {ends})' if ends else ''}"


def _ranking(record: Mapping[str, Any]) -> str:
    rows = record["strengths"]
    if rows is None:
        return f"no ranking of {len(record['runs'])} runs: {record['undefined_reason']}"
    shown = ", ".join(f"{row['run']} {_strength(row)}" for row in rows)
    return f"{rows[0]['run']} comes first of {len(rows)} runs by Bradley-Terry strength: {shown}"


def _strength(row: Mapping[str, Any]) -> str:
    ends = "" if row["low"] is None else f" ({number(row['low'], 2)} to {number(row['high'], 2)})"
    return f"{number(row['value'], 2)}{ends}"


def _pairs(n: int) -> str:
    return f"{n} pair{'' if n == 1 else 's'}"
