"""A comparison as JSON: the format that other tools read."""

from collections.abc import Sequence
from typing import Any

from judgekit.core.comparison import Comparison
from judgekit.core.runs import AGGREGATE_NAMES
from judgekit.stats.means import round4

_P_VALUES = ("p", "p_holm")


def compare_document(comparison: Comparison, failed: Sequence[str] = ()) -> dict[str, Any]:
    """A strict-JSON object: figures at four decimals, p values at six significant digits.

    Args:
        comparison: what was compared.
        failed: what `--fail-on` found.
    """
    document = comparison.document()
    document["deltas"] = {
        name: _rounded(value) if isinstance(value, dict) else value for name, value in document["deltas"].items()
    }
    return {**document, "aggregate_names": AGGREGATE_NAMES, "failed": list(failed)}


def _rounded(delta: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if not isinstance(value, float) else float(f"{value:.6g}") if name in _P_VALUES else round4(value)
        for name, value in delta.items()
    }
