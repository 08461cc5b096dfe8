"""Rows of figures with their intervals, as the sections of report.html share them."""

from collections.abc import Mapping, Sequence
from typing import Any

from judgekit.reports.charts import share_bar, signed_bar
from judgekit.reports.figures import number

Part = Mapping[str, Any]


def agreement_rows(found: Part, figures: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Coefficients with their intervals, drawn from -1 to 1, and what to think of them.

    Args:
        found: the coefficients by name, `indicative`, and `undefined_reason` where one is undefined.
        figures: (name, label) of those to show.
    """
    rows = [interval_row(label, found[key], 1.0) for key, label in figures if key in found]
    return {"rows": rows, "indicative": found.get("indicative", False), "why": found.get("undefined_reason")}


def interval_row(label: str, found: Part, reach: float) -> dict[str, Any]:
    """A signed figure with its interval as a row of a table."""
    ends = (found.get("low"), found.get("high"))
    value = found.get("value")
    return {
        "name": label,
        "value": "n/a" if value is None else f"{value:+.3f}",
        "interval": between(found),
        "bar": signed_bar(value, ends, reach),
    }


def between(interval: Part | None) -> str:
    """`0.181 to 0.567`, or nothing."""
    if not interval or interval.get("low") is None or interval.get("high") is None:
        return ""
    return f"{number(interval['low'])} to {number(interval['high'])}"


def share_row(label: str, found: Part | None) -> dict[str, Any] | None:
    """A share with its interval as a row of a table; None where it is of nothing."""
    if not found or not found.get("n"):
        return None
    return {
        "name": label,
        "value": number(found["value"]),
        "interval": between(found),
        "bar": share_bar(found["value"], (found.get("low"), found.get("high"))),
        "n": found["n"],
    }
