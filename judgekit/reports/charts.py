"""Small inline drawings. They repeat what stands beside them as text, so they are hidden from screen readers."""

from markupsafe import Markup

from judgekit.core.scores import Estimate

WIDTH = 120
HEIGHT = 14

Ends = tuple[float | None, float | None]
"""The ends of an interval."""


def interval_bar(figure: Estimate, top: float) -> Markup:
    """A track from 0 to `top` with the interval as a band and the value as a mark; empty without a value in range."""
    return share_bar(figure.value, (figure.low, figure.high), top)


def share_bar(value: float | None, ends: Ends, top: float = 1.0, limit: float | None = None) -> Markup:
    """The same of a plain number.

    Args:
        value: in [0, top]; anything else draws nothing.
        ends: of its interval; None: no band.
        top: where the track ends.
        limit: drawn as a line across the track, such as a threshold.
    """
    if value is None or not top > 0 or not -1e-9 <= value <= top + 1e-9:
        return Markup("")
    return _bar(value, ends, (0.0, top), limit)


def signed_bar(value: float | None, ends: Ends, reach: float) -> Markup:
    """A track from -reach to reach with a line at 0; what lies outside is drawn at its end. Empty without a value."""
    if value is None or not reach > 0:
        return Markup("")
    return _bar(value, ends, (-reach, reach), 0.0)


def span_bar(low: float, high: float, top: float) -> Markup:
    """Two marks on one track, such as p50 and p95 of a latency."""
    if not top > 0:
        return Markup("")
    return _svg(_track() + _band(_x(low, (0.0, top)), _x(high, (0.0, top))), WIDTH, HEIGHT, "interval")


def _bar(value: float, ends: Ends, scale: tuple[float, float], line: float | None) -> Markup:
    parts = [_track()]
    low, high = ends
    if low is not None and high is not None:
        parts.append(_band(_x(low, scale), _x(high, scale)))
    if line is not None:
        parts.append(f'<rect class="limit" x="{min(_x(line, scale), WIDTH - 1.0):.1f}" y="0" width="1" height="14"/>')
    mark = min(max(_x(value, scale) - 1.5, 0.0), WIDTH - 3.0)
    parts.append(f'<rect class="mark" x="{mark:.1f}" y="1" width="3" height="12" rx="1.5"/>')
    return _svg("".join(parts), WIDTH, HEIGHT, "interval")


def _track() -> str:
    return f'<rect class="track" x="0" y="6" width="{WIDTH}" height="2" rx="1"/>'


def _band(left: float, right: float) -> str:
    return f'<rect class="band" x="{left}" y="4" width="{max(1.0, right - left):.1f}" height="6" rx="3"/>'


def _x(value: float, scale: tuple[float, float]) -> float:
    low, high = scale
    return round(min(max((value - low) / (high - low), 0.0), 1.0) * WIDTH, 1)


def _svg(inner: str, width: int, height: int, kind: str) -> Markup:
    # Everything inside is made of numbers, so there is nothing to escape.
    return Markup(  # noqa: S704
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true" focusable="false">{inner}</svg>'
    )
