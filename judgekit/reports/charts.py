"""Small inline drawings, and the rows of tables that hold them.

A drawing repeats what stands beside it as text, so it is hidden from screen readers.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from judgekit.reports.figures import between, number

WIDTH = 120
HEIGHT = 14

SHADES = 8
"""Shades of a table of counts."""

Ends = tuple[float | None, float | None]
"""The ends of an interval; None: no band is drawn."""

Part = Mapping[str, Any]


def share_bar(
    value: float | None, ends: Ends, top: float = 1.0, limit: float | None = None, bottom: float = 0.0
) -> Markup:
    """A track from `bottom` to `top` with the interval as a band and the value as a mark.

    Args:
        value: in [bottom, top]; anything else draws nothing.
        ends: of its interval.
        top: where the track ends.
        limit: drawn as a line across the track, such as a threshold.
        bottom: where the track begins.
    """
    if value is None or not top > bottom or not bottom - 1e-9 <= value <= top + 1e-9:
        return Markup("")
    return _svg(_track() + _band(ends, bottom, top) + _limit(limit, bottom, top) + _mark(value, bottom, top))


def signed_bar(value: float | None, ends: Ends, reach: float) -> Markup:
    """A track from -reach to reach with a line at 0; a value outside is drawn at the end. Empty without a value."""
    if value is None or not reach > 0:
        return Markup("")
    return _svg(_track() + _band(ends, -reach, reach) + _limit(0.0, -reach, reach) + _mark(value, -reach, reach))


def difference_bar(delta: float | None, ends: Ends, reach: float) -> Markup:
    """The same of a difference of two runs, with 0 as a part of the track."""
    if delta is None or not reach > 0:
        return Markup("")
    zero = f'<rect class="track" x="{WIDTH / 2 - 0.5}" y="0" width="1" height="{HEIGHT}"/>'
    return _svg(_track() + zero + _band(ends, -reach, reach) + _mark(delta, -reach, reach))


def span_bar(low: float, high: float, top: float) -> Markup:
    """A band on a track from 0 to `top`, such as from p50 to p95 of a latency."""
    return _svg(_track() + _band((low, high), 0.0, top)) if top > 0 else Markup("")


def stacked_bar(parts: Sequence[tuple[str, float]]) -> Markup:
    """Shares that sum to 1 side by side, each in the colour of its name; empty if all are 0."""
    drawn, start = "", 0.0
    for name, share in parts:
        kind, left, width = re.sub(r"\W+", "-", name), start * WIDTH, share * WIDTH
        drawn += f'<rect class="part-{kind}" x="{left:.1f}" y="2" width="{width:.1f}" height="{HEIGHT - 4}"/>'
        start += share
    return _svg(drawn) if start > 0 else Markup("")


def spark_line(values: Sequence[float]) -> Markup:
    """Values in the order of time as a line with a dot at its end, between the least and the greatest of them."""
    low, top = min(values), max(values)
    step = (WIDTH - 8) / max(1, len(values) - 1)
    points = [
        (4 + place * step, HEIGHT / 2 if low == top else 3 + (top - value) / (top - low) * (HEIGHT - 6))
        for place, value in enumerate(values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return _svg(f'<polyline class="spark" points="{line}"/><circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>')


def _track() -> str:
    return f'<rect class="track" x="0" y="6" width="{WIDTH}" height="2" rx="1"/>'


def _band(ends: Ends, bottom: float, top: float) -> str:
    low, high = ends
    if low is None or high is None:
        return ""
    left, right = _x(low, bottom, top), _x(high, bottom, top)
    return f'<rect class="band" x="{left}" y="4" width="{max(1.0, right - left):.1f}" height="6" rx="3"/>'


def _limit(at: float | None, bottom: float, top: float) -> str:
    if at is None:
        return ""
    return f'<rect class="limit" x="{min(_x(at, bottom, top), WIDTH - 1.0):.1f}" y="0" width="1" height="14"/>'


def _mark(value: float, bottom: float, top: float) -> str:
    left = min(max(_x(value, bottom, top) - 1.5, 0.0), WIDTH - 3.0)
    return f'<rect class="mark" x="{left:.1f}" y="1" width="3" height="12" rx="1.5"/>'


def _x(value: float, bottom: float, top: float) -> float:
    return round(min(max((value - bottom) / (top - bottom), 0.0), 1.0) * WIDTH, 1)


def _svg(inner: str) -> Markup:
    # Everything inside is made of numbers, so there is nothing to escape.
    return Markup(  # noqa: S704
        f'<svg class="interval" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'aria-hidden="true" focusable="false">{inner}</svg>'
    )


def ends_text(found: Part | None) -> str:
    """`0.181 to 0.567` of an interval, or nothing."""
    return between(found.get("low"), found.get("high")) if found else ""


def interval_row(label: str, found: Part, reach: float) -> dict[str, Any]:
    """A signed figure with its interval as a row of a table."""
    value = found.get("value")
    return {
        "name": label,
        "value": "n/a" if value is None else f"{value:+.3f}",
        "interval": ends_text(found),
        "bar": signed_bar(value, (found.get("low"), found.get("high")), reach),
    }


def share_row(label: str, found: Part | None) -> dict[str, Any] | None:
    """A share with its interval as a row of a table; None if it is of nothing."""
    if not found or not found.get("n"):
        return None
    return {
        "name": label,
        "value": number(found["value"]),
        "interval": ends_text(found),
        "bar": share_bar(found["value"], (found.get("low"), found.get("high"))),
        "n": found["n"],
    }


def agreement_rows(found: Part, figures: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Coefficients with their intervals, drawn from -1 to 1, and whether they are indicative or undefined.

    Args:
        found: the coefficients by name, `indicative`, and `undefined_reason` if one is undefined.
        figures: (name, label) of those to show.
    """
    rows = [interval_row(label, found[key], 1.0) for key, label in figures if key in found]
    return {"rows": rows, "indicative": found.get("indicative", False), "why": found.get("undefined_reason")}


def bias_row(label: str, found: Part) -> dict[str, Any] | None:
    """Judge minus people; with too few labels there is no direction, and None if there is no value."""
    if found["value"] is None:
        return None
    ends = [abs(end) for end in (found["value"], found["low"], found["high"]) if end is not None]
    error = found["standard_error"]
    return {
        **interval_row(label, found, max([1.0, *ends])),
        "error": "" if error is None else number(error),
        "said": found["direction"] or found["direction_reason"],
    }


def count_rows(found: Part) -> dict[str, Any]:
    """A table of what two sides say, by `levels` and `rows`, with a darker cell for more cases."""
    most = max((count for row in found["rows"] for count in row), default=0)
    shades = [
        [
            {"n": count, "level": min(SHADES - 1, count * SHADES // most) if count else None, "same": x == y}
            for x, count in enumerate(row)
        ]
        for y, row in enumerate(found["rows"])
    ]
    return {"levels": found["levels"], "rows": list(zip(found["levels"], shades, strict=True))}
