"""How a figure changed since the run before, or since its baseline, and its last runs as a small line."""

from collections.abc import Mapping
from typing import Any

from judgekit.core.conditions import GateResult
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate, Scale
from judgekit.reports.charts import spark_line
from judgekit.reports.figures import between, number, value_text

Trend = Mapping[str, Any]
"""A document of `Trend`; the last of its runs is the one that is reported."""


def change_part(summary: RunSummary, name: str, trend: Trend | None) -> dict[str, Any]:
    """`change` in words, its `kind` (good, bad or nothing), and the `line` with the `runs` that it is drawn of.

    Only runs that rest on the same data, judges and definitions are compared and drawn.
    """
    scale, runs = summary.scales.get(name), _comparable(trend)
    values = [value_text(run_estimate(run), scale) for run in runs]
    drawn: dict[str, Any] = {"line": "", "runs": ""}
    if len(runs) > 1:
        said = f"The last {len(runs)} comparable runs: {', '.join(values)}."
        drawn = {"line": spark_line([run["value"] for run in runs]), "runs": said}
    gate = next((gate for gate in summary.gates if gate.metric == name and gate.baseline is not None), None)
    if gate is not None and gate.observed is not None:
        return {"change": _against_baseline(gate), "kind": "", **drawn}
    if len(runs) < 2:
        return {"change": _why_none(trend), "kind": "", **drawn}
    change, kind = _since(runs[-2], runs[-1], values[-2], scale)
    return {"change": change, "kind": kind, **drawn}


def run_before(trend: Trend) -> str | None:
    """The id of the last run before this one that its figure can be compared with; None if there is none."""
    runs = _comparable(trend)
    return str(runs[-2]["run_id"]) if len(runs) > 1 else None


def _comparable(trend: Trend | None) -> list[Mapping[str, Any]]:
    rows = trend["runs"] if trend else []
    stretch = rows[-1]["stretch"] if rows else None
    return [row for row in rows if stretch is not None and row["stretch"] == stretch]


def run_estimate(run: Mapping[str, Any]) -> Estimate:
    """The figure of a run of a trend."""
    ends = {"low": run["low"], "high": run["high"]}
    return Estimate(value=run["value"], n=run["n"], n_not_applicable=0, n_error=0, method="", **ends)


def _since(before: Mapping[str, Any], now: Mapping[str, Any], old: str, scale: Scale | None) -> tuple[str, str]:
    when, by = before["created_at"][:10], now["value"] - before["value"]
    if not by:
        return f"the same as on {when} ({before['run_id']})", ""
    ends = [run[end] for run in (before, now) for end in ("low", "high")]
    is_clear = None not in ends and (now["low"] > before["high"] or now["high"] < before["low"])
    moved = f"{'up' if by > 0 else 'down'} from {old} on {when} ({before['run_id']})"
    if not is_clear:
        return f"{moved}, which may be chance", ""
    if scale is None or scale.better is None:
        return moved, ""
    is_good = (by > 0) == (scale.better == "higher")
    return f"{'better' if is_good else 'worse'}: {moved}", "good" if is_good else "bad"


def _against_baseline(gate: GateResult) -> str:
    baseline = gate.baseline
    ends = between(baseline.low, baseline.high) if baseline else ""
    name = (baseline and baseline.run_id) or "the baseline"
    by = f"{gate.observed:+.3f}" if gate.observed is not None else number(None)
    return f"{by} against {name}{f' (95% {ends})' if ends else ''}"


def _why_none(trend: Trend | None) -> str:
    """Why there is no change to tell: what differs from the run before; empty if this is the first one."""
    rows = trend["runs"] if trend else []
    changed = [change.partition(":")[0] for change in rows[-1]["changed"]] if rows else []
    return f"not comparable with the run before: other {', '.join(changed)}" if changed else ""
