"""The few figures of a run that the results database keeps beside it, under the names of that store."""

from collections.abc import Mapping
from typing import Any

from judgekit.core.runs import AGGREGATE_NAMES

CUTOFFS = ("1", "3", "5", "10")
_WITH_MISSES = frozenset({"hit_at_k", "mrr", "recall_at_k_doc"})


def run_aggregate(overall: Mapping[str, Any]) -> dict[str, Any]:
    """`aggregate_json` of a run.

    An errored query counts as a miss in `hit_at_k`, `mrr` and `recall_at_k_doc`, by the convention of that store: they
    are what the figures of the run would be if every failed case had scored the worst. `mrr` is `mrr_chunk`,
    `groundedness` is `keyword_groundedness`.

    Args:
        overall: figures by name, as `overall` of metrics.json has them.

    Returns:
        A strict-JSON object. A figure that no case has a value for is None; so is one that the run does not have.

    Source: in-house.
    """
    found: dict[str, Any] = {}
    for key, name in AGGREGATE_NAMES.items():
        value = _with_misses if key in _WITH_MISSES else _value
        if name.endswith("@k"):
            found[key] = {k: value(overall.get(name.removesuffix("k") + k)) for k in CUTOFFS}
        else:
            found[key] = value(overall.get(name))
    return found


def _with_misses(figure: Mapping[str, Any] | None) -> float | None:
    if figure is None:
        return None
    worst = figure.get("worst")
    return _value(figure) if worst is None else round(float(worst), 4)


def _value(figure: Mapping[str, Any] | None) -> float | None:
    value = None if figure is None else figure.get("value")
    return None if value is None else round(float(value), 4)
