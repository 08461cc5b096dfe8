"""The pages around reports: the list of runs, and a message if a page cannot be shown."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from judgekit.core.scores import Estimate, Scale, stored_scale
from judgekit.reports.figures import direction, interval_text, money_text, value_text
from judgekit.reports.headline import MAIN_FIGURES, is_headline
from judgekit.reports.pages import render
from judgekit.reports.run_sentence import all_failed
from judgekit.reports.timelines import DRIFT_HEADER, drift_svg, latest_lines, timeline_cells, trend_rows, trend_svg

MOST_RUNS_WITH_TRENDS = 20
"""Runs, from the newest back, whose figures the list leads to."""


def render_runs(results_dir: str, runs: Sequence[Any], *, has_drift: bool = False) -> str:
    """The list of runs of a folder, which have the fields of `storage.run_list.RunEntry`, the newest first."""
    trends: dict[str, dict[str, str]] = {}
    for run in runs[:MOST_RUNS_WITH_TRENDS]:
        for name in filter(is_headline, run.figures):
            trends.setdefault(run.name, {})[name] = trend_address(name, run.name)
    rows = _rows(runs)
    context = {
        "title": "Runs",
        "results_dir": results_dir,
        "rows": rows,
        "trends": trends,
        "has_drift": has_drift,
        "suites": sorted({run.name for run in runs if run.name}),
        "tags": sorted({tag for run in runs for tag in run.tags}),
        "states": sorted({row["state"] for row in rows}),
    }
    return "".join(render("runs.html", context, "runs.js"))


def _rows(runs: Sequence[Any]) -> list[dict[str, Any]]:
    """What the list shows of each run; the run before it is the newest complete one of its suite that is older."""
    before: dict[str, Any] = {}
    rows = []
    for run in reversed(runs):
        old = before.get(run.name)
        changed = [] if old is None else _changed(old, run)
        trouble = _trouble(run)
        n_failed = sum(record.get("n_failed", 0) for record in run.judge_records.values())
        rows.append(
            {
                "run": run,
                "state": "calls failed" if trouble and run.status == "complete" else run.status,
                "trouble": trouble,
                "note": f"{n_failed} without a verdict" if n_failed and not trouble else "",
                "figures": [_figure(name, item, run, None if changed else old) for name, item in _shown_figures(run)],
                "cost": _cost(run.cost),
                "changed": changed,
                "before": None if old is None else (old.run_id, compare_address(old.run_id, run.run_id)),
            }
        )
        if run.status == "complete" and not trouble:
            before[run.name] = run
    return rows[::-1]


def _trouble(run: Any) -> str:
    """What went wrong with a run and what to do; empty if nothing did."""
    if run.status == "damaged":
        return "Its files are damaged or were changed. Open it to see which one."
    if run.status in ("failed", "interrupted"):
        why = f"{run.reason}. " if run.reason else ""
        return f"{why}`judgekit run --resume {run.run_id}` continues it."
    return all_failed(run.run_id, run.n_cases or 0, run.error_rate, run.judge_records)


def _shown_figures(run: Any) -> list[tuple[str, Any]]:
    figures = run.headline or run.judges
    return list(figures.items())[:MAIN_FIGURES]


def _figure(name: str, item: Any, run: Any, old: Any) -> dict[str, str]:
    estimate, scale = _estimate(item), _scale(item)
    earlier = None if old is None else dict(_shown_figures(old)).get(name)
    is_known = earlier is not None and earlier.value is not None and _scale(earlier) == scale
    was = value_text(_estimate(earlier), scale) if is_known else ""
    return {
        "name": name,
        "address": trend_address(name, run.name),
        "value": value_text(estimate, scale),
        "interval": interval_text(estimate, scale),
        "better": direction(scale),
        "was": was,
        "n": str(item.n),
    }


def _cost(cost: Mapping[str, Any]) -> str:
    if "usd" not in cost:
        return ""
    if not cost["n_calls"] and not cost["n_from_cache"]:
        return "no model was called"
    return f"{cost['n_calls']:,} calls, {money_text(cost)}"


def _estimate(item: Any) -> Estimate:
    return Estimate(
        value=item.value, low=item.low, high=item.high, n=item.n, n_not_applicable=0, n_error=0, method="stored"
    )


def _scale(item: Any) -> Scale | None:
    unit = getattr(item, "unit", None)
    return None if unit is None else Scale(unit=unit, high=item.of, better=item.better)


def _changed(old: Any, run: Any) -> list[str]:
    """What makes a run differ from the one before it: judge, prompt, data."""
    found = []
    for name, record in run.judge_records.items():
        earlier = old.judge_records.get(name)
        if earlier is None:
            found.append(f"judge {name} is new")
            continue
        for key, word in (("model", "model"), ("prompt_version", "prompt")):
            if earlier.get(key) != record.get(key):
                found.append(f"{word} of {name}: {earlier.get(key)} to {record.get(key)}")
    found += [f"judge {name} is gone" for name in old.judge_records if name not in run.judge_records]
    if None not in (old.dataset_sha256, run.dataset_sha256) and old.dataset_sha256 != run.dataset_sha256:
        found.append("cases")
    return found


def render_drift(histories: Sequence[Mapping[str, Any]]) -> str:
    """The timelines of judges, from `DriftReport.document()`."""
    shown = [
        {
            "name": f"{found['judge']} {found['prompt_version']}",
            "found": found,
            "picture": Markup(drift_svg(found)),  # noqa: S704  # every text in it is escaped
            "rows": [timeline_cells(row) for row in found["timeline"][::-1]],
        }
        for found in histories
    ]
    return "".join(render("drift.html", {"title": "Drift", "histories": shown, "header": DRIFT_HEADER}))


def compare_address(a: str, b: str) -> str:
    """Where the viewer compares two runs, the earlier first."""
    return f"/compare/{quote(a, safe='')}/{quote(b, safe='')}"


def render_trend(trend: Mapping[str, Any], other_suites: Sequence[str], names: Sequence[str] = ()) -> str:
    """A figure over the runs of a suite, from `Trend.document()`, the other suites that have it and other figures."""
    context = {
        "title": f"{trend['metric']}: {trend['suite']}",
        "trend": trend,
        "rows": [(run, row[2], row[3]) for run, row in zip(trend["runs"], trend_rows(trend), strict=True)],
        "better": direction(stored_scale(trend)),
        "lines": latest_lines(trend),
        "picture": Markup(trend_svg(trend)),  # noqa: S704  # every text in it is escaped
        "figures": [(name, trend_address(name, trend["suite"])) for name in names if name != trend["metric"]],
        "others": [(suite, trend_address(trend["metric"], suite)) for suite in other_suites],
    }
    return "".join(render("trend.html", context))


def trend_address(metric: str, suite: str | None = None) -> str:
    """Where the viewer shows a trend."""
    which = f"?suite={quote(suite, safe='')}" if suite else ""
    return f"/trend/{quote(metric, safe='')}{which}"


def render_message(title: str, message: str, *, listed: bool = True) -> str:
    """A page that says why there is nothing else to see; `listed`: the list of runs is there to go back to."""
    return "".join(render("message.html", {"title": title, "message": message, "listed": listed}))
