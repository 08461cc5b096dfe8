"""The pages around reports: the list of runs, and a message if a page cannot be shown."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from judgekit.reports.figures import between, number
from judgekit.reports.headline import is_headline
from judgekit.reports.pages import render
from judgekit.reports.timelines import latest_lines, trend_svg

MOST_RUNS_WITH_TRENDS = 20
"""Runs, from the newest back, whose figures the list leads to."""


def render_runs(results_dir: str, runs: Sequence[Any]) -> str:
    """The list of runs of a folder, which have the fields of `storage.run_list.RunEntry`, the newest first."""
    names = dict.fromkeys(name for run in runs[:MOST_RUNS_WITH_TRENDS] for name in run.figures if is_headline(name))
    trends = [(name, trend_address(name)) for name in names]
    context = {"title": "Runs", "results_dir": results_dir, "runs": runs, "trends": trends}
    return "".join(render("runs.html", context))


def render_trend(trend: Mapping[str, Any], other_suites: Sequence[str]) -> str:
    """A figure over the runs of a suite, from `Trend.document()`, and the other suites that have it."""
    context = {
        "title": f"{trend['metric']}: {trend['suite']}",
        "trend": trend,
        "rows": [(run, number(run["value"]), between(run["low"], run["high"])) for run in trend["runs"]],
        "lines": latest_lines(trend),
        "picture": Markup(trend_svg(trend)),  # noqa: S704  # every text in it is escaped
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
