"""How metrics.json writes the figures of slices: what follows from the figures of all cases is left out.

A run has thousands of them, most of a few cases. Of each there stands what it is: `value`, `n`, `low`, `high`, and
`n_error`, `worst` and `best` if a case failed. `restored` gives the rest back.
"""

from collections.abc import Mapping
from typing import Any

from judgekit.core.repeats import pass_figure
from judgekit.core.scores import SUM_METHOD

Slices = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Figures by dimension, value and name, each as a dictionary."""

Sizes = Mapping[str, Mapping[str, int]]
"""Cases by dimension and value."""


def compact(slices: Slices, overall: Mapping[str, Any], min_n: int) -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
    """Slices without what `restored` gives back, and how many cases each slice has.

    Args:
        slices: every figure with all its fields.
        overall: the figures of all cases.
        min_n: figures over fewer cases are marked as small.
    """
    sizes = {
        dimension: {value: _size(figures) for value, figures in values.items()} for dimension, values in slices.items()
    }
    found: dict[str, Any] = {}
    for dimension, values in slices.items():
        found[dimension] = {}
        for value, figures in values.items():
            size = sizes[dimension][value]
            kept = found[dimension][value] = {}
            for name, figure in figures.items():
                short = _shortened(figure, _implied(name, figure, size, overall, min_n))
                if short != {"n": 0, "value": None} or not _is_expected(name, overall):
                    kept[name] = short
            if list(_filled(kept, size, overall, min_n)) != list(figures):
                found[dimension][value] = {**figures}
                del sizes[dimension][value]
    return found, sizes


def restored(slices: Slices, sizes: Sizes, overall: Mapping[str, Any], min_n: int) -> dict[str, Any]:
    """Slices with every figure and every field again; those that were written in full come as they are."""
    return {
        dimension: {
            value: _filled(figures, sizes[dimension][value], overall, min_n)
            if value in sizes.get(dimension, {})
            else figures
            for value, figures in values.items()
        }
        for dimension, values in slices.items()
    }


def _size(figures: Mapping[str, Any]) -> int:
    counted = (figure for figure in figures.values() if "method" in figure)
    return max((item["n"] + item["n_not_applicable"] + item["n_error"] for item in counted), default=0)


def _is_expected(name: str, overall: Mapping[str, Any]) -> bool:
    """Whether each slice has the figure, as far as its name tells."""
    return "method" in overall.get(name, {}) and pass_figure(name) is None


def _filled(figures: Mapping[str, Any], size: int, overall: Mapping[str, Any], min_n: int) -> dict[str, Any]:
    """The figures of one slice in the order of those of all cases."""
    names = [*(name for name in overall if name in figures or _is_expected(name, overall)), *figures]
    found = {}
    for name in dict.fromkeys(names):
        figure = figures.get(name, {"n": 0, "value": None})
        found[name] = {**_implied(name, figure, size, overall, min_n), **figure} if "value" in figure else figure
    return found


def _shortened(figure: Mapping[str, Any], implied: Mapping[str, Any]) -> Mapping[str, Any]:
    if "method" not in figure:
        return figure
    return {key: item for key, item in figure.items() if key not in implied or item != implied[key]}


def _implied(name: str, figure: Mapping[str, Any], size: int, overall: Mapping[str, Any], min_n: int) -> dict[str, Any]:
    """The fields of a figure that follow from its others, the size of its slice and the figure of all cases."""
    n, n_error, low = figure.get("n", 0), figure.get("n_error", 0), figure.get("low")
    method = str(overall.get(name, {}).get("method", ""))
    how = method.split(", ", maxsplit=1)[0]
    if method == SUM_METHOD:
        pass
    elif low is None and n < 2:
        method = f"{how}, no interval: fewer than 2 cases"
    elif low is None and "no interval" not in method:
        method = f"{how}, no interval: all values are equal"
    same = {"low": None, "high": None, "n_error": 0, "n_no_input": 0, "worst": None, "best": None}
    return {**same, "n_not_applicable": size - n - n_error, "method": method, "small": n < min_n}
