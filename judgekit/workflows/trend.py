"""`judgekit runs trend`: a figure over the runs of a suite."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import judgekit.metrics
from judgekit.analysis.run_trends import Trend
from judgekit.core.components import Component, Metric, shipped_in
from judgekit.core.errors import ConfigError
from judgekit.core.familiar_names import name_hint
from judgekit.storage.run_list import FoundRun, figures_of_runs
from judgekit.workflows.models import Options
from judgekit.workflows.stored_runs import runs_dir


@dataclass(frozen=True)
class TrendQuery:
    """Which trend is asked for."""

    metric: str
    suite: str | None = None
    """None: that of the newest run with the figure."""
    tag: str | None = None
    limit: int | None = None
    """The newest so many runs."""


@dataclass(frozen=True)
class FoundTrend:
    """A trend, and the suites that were left out of it."""

    trend: Trend
    other_suites: Sequence[str] = ()
    names: Sequence[str] = ()
    """All figures that a run of the suite has."""


def find_trend(query: TrendQuery, options: Options) -> FoundTrend:
    """A figure over the runs of one suite.

    Raises:
        ConfigError: there is no such folder of runs, no such run in it, or none with the figure.
    """
    place = runs_dir(options)
    found = [
        item
        for item in figures_of_runs(place, query.metric, rests_on)
        if query.suite in (None, item.suite) and (query.tag is None or query.tag in item.tags)
    ]
    found.sort(key=lambda item: (item.run.created_at, item.run.run_id))
    if not found:
        wanted = [f"{name} {value}" for name, value in (("suite", query.suite), ("tag", query.tag)) if value]
        such = f" of {' and '.join(wanted)}" if wanted else ""
        raise ConfigError(f"no run in {place}{such}")
    with_figure = [item for item in found if item.run.why is None]
    if not with_figure:
        raise ConfigError(_no_figure(query.metric, found))
    suite = query.suite or with_figure[-1].suite
    runs = [item.run for item in found if item.suite == suite]
    others = sorted({item.suite for item in with_figure} - {suite})
    names = sorted({name for item in found if item.suite == suite for name in item.names})
    trend = Trend(query.metric, suite, query.tag, runs[-query.limit :] if query.limit else runs)
    return FoundTrend(trend, others, names)


def _no_figure(metric: str, found: Sequence[FoundRun]) -> str:
    names = {name for item in found for name in item.names}
    if metric in names:
        return f"{metric}: no run has a value of it: {found[-1].run.run_id}: {found[-1].run.why}"
    return f"{metric}: no run has a figure of this name{name_hint(metric, names)}"


def rests_on(metric: str, judges: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Families and judges that a figure comes from; one of no family may come from any judge of the run."""
    plain = _without_cutoff(metric)
    families = [(name, wanted) for name, (names, wanted) in _of_families().items() if plain in names]
    wanted = {judge for _, names in families for judge in names}
    own = {name for name in judges if plain == name or plain.startswith((f"{name}_", f"{name}."))}
    if not families and not own:
        return (), tuple(judges)
    own = set() if families else own
    return tuple(name for name, _ in families), tuple(name for name in judges if name in own | wanted)


@cache
def _of_families() -> Mapping[str, tuple[frozenset[str], tuple[str, ...]]]:
    """By family: its figures without cut-offs, and the judges that it wants."""
    families = shipped_in(judgekit.metrics, Metric)
    return {name: (_names(family()), family.judges_wanted) for name, family in families.items()}


def _names(component: Component) -> frozenset[str]:
    columns = [column.aggregate or column.name for column in component.columns()]
    return frozenset(_without_cutoff(name) for name in (*columns, *(figure.name for figure in component.pooled())))


def _without_cutoff(name: str) -> str:
    return re.sub(r"@\d+", "", name)
