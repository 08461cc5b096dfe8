"""Figures as they are stored: rounded, and the few that the results database keeps, under the names of that store."""

from collections.abc import Mapping
from typing import Any

from judgekit.core.runs import AGGREGATE_NAMES
from judgekit.stats.means import round4

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
    """

    def value(key: str, name: str) -> float | None:
        figure = overall.get(name) or {}
        found = figure.get("worst") if key in _WITH_MISSES else None
        found = figure.get("value") if found is None else found
        return None if found is None else round(float(found), 4)

    return {
        key: {k: value(key, name.removesuffix("k") + k) for k in CUTOFFS} if name.endswith("@k") else value(key, name)
        for key, name in AGGREGATE_NAMES.items()
    }


def rounded(value: Any) -> Any:
    """The value with every float at 4 decimals, as stored."""
    if isinstance(value, float):
        return round4(value)
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value
