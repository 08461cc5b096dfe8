"""Which figures a reader sees first: at most eight, by what the config gates and judges."""

import re
from collections.abc import Mapping

from judgekit.core.repeats import pass_figure
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.reports.figures import Figures

HEADLINE_FIGURES = 8
"""Figures that every report begins with, at most."""

MAIN_FIGURES = 5
"""Figures shown large at the top of a report, at most."""

SLICE_FIGURES = 6
"""Columns of a slice table."""

_CUTOFF = 5
"""Of the names with a cut-off, only those at this one are shown on one screen."""

_USUAL = ("recall_any@5", "hit@5", "citation_coverage", "abstention_accuracy", "extraction_f1", "mrr")
"""What is asked for first if no judge and no gate says so."""

_FEWEST = 4
"""The usual figures are added until there are so many."""


def headline(summary: RunSummary) -> list[tuple[str, Estimate]]:
    """At most eight figures, the most important first.

    These are the figure of each judge, what the gates hold, the pass rates of the judges, and the error rate if an
    answer failed; if that is little, the usual figures of retrieval and answers too.
    """
    figures = dict(figures_with_data(summary))
    gated = {gate.metric for gate in summary.gates if not gate.slice}
    every = {**summary.overall, **summary.operational}
    figures |= {name: item for name, item in every.items() if name in gated and isinstance(item, Estimate)}
    errors = figures.get("error_rate")
    wanted = [
        *(_main(name, figures) for name in summary.judges),
        *(gate.metric for gate in summary.gates if not gate.slice),
        *(f"{name}_pass_rate" for name in summary.judges),
        *(("error_rate",) if errors is not None and errors.value else ()),
    ]
    found = [name for name in dict.fromkeys(wanted) if name in figures]
    for name in (*_USUAL, *figures):
        if len(found) >= _FEWEST:
            break
        if name in figures and name not in found:
            found.append(name)
    return [(name, figures[name]) for name in found[:HEADLINE_FIGURES]]


def main_figures(summary: RunSummary) -> list[tuple[str, Estimate]]:
    """The first few figures of the headline, those that a report shows large."""
    return headline(summary)[:MAIN_FIGURES]


def figures_with_data(summary: RunSummary) -> list[tuple[str, Estimate]]:
    """The figures with data: names without a cut-off, and those at the one for one screen; those of judges first."""
    judged = {name: figure for name, figure in summary.overall.items() if name.startswith(tuple(summary.judges))}
    figures = {**(judged if summary.judges else {}), **summary.overall, **summary.operational}
    return [
        (name, figure)
        for name, figure in figures.items()
        if isinstance(figure, Estimate) and figure.n + figure.n_error > 0 and is_headline(name)
    ]


def _main(judge: str, figures: Figures) -> str:
    """The figure that says most of a judge: its own, else its pass rate, else the share of its commonest label."""
    if judge in figures or f"{judge}_pass_rate" in figures:
        return judge if judge in figures else f"{judge}_pass_rate"
    shares = {name: item.value or 0.0 for name, item in figures.items() if isinstance(item, Estimate)}
    parts = [name for name in shares if name.startswith(f"{judge}.") and not name.endswith(".cannot_tell_rate")]
    return max(parts, key=lambda name: shares[name], default=judge)


def slice_figures(summary: RunSummary, values: Mapping[str, Figures]) -> list[str]:
    """Columns of a slice table: judges, then the usual figures of retrieval; only those with data in a slice."""
    judged = [name for judge in summary.judges for name in _figures_of(summary, judge)]
    wanted = [*judged, "recall_any@5", "recall_all@5", "mrr", "hit@5", "abstention_accuracy"]
    shown_names = [name for name in wanted if name in summary.overall][:SLICE_FIGURES]
    return [name for name in shown_names if any(_has_data(figures, name) for figures in values.values())]


def _figures_of(summary: RunSummary, judge: str) -> list[str]:
    """The figure of a judge's name, or the shares of its labels if it has none."""
    if judge in summary.overall:
        return [judge]
    shares = [name for name in summary.overall if name.startswith(f"{judge}.") and pass_figure(name) is None]
    return [name for name in shares if not name.endswith(".cannot_tell_rate")]


def _has_data(figures: Figures, name: str) -> bool:
    figure = figures.get(name)
    return isinstance(figure, Estimate) and figure.n > 0


def is_headline(name: str) -> bool:
    """Whether a figure is shown on one screen: it has no cut-off, or the one of headlines, and is of single answers."""
    if pass_figure(name) is not None:
        return False
    cutoff = re.search(r"@(\d+)$", name)
    return cutoff is None or int(cutoff[1]) == _CUTOFF
