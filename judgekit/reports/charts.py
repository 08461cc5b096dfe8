"""Small inline drawings. They repeat what stands beside them as text, so they are hidden from screen readers."""

from markupsafe import Markup

from judgekit.core.scores import Estimate

WIDTH = 120
HEIGHT = 14


def interval_bar(figure: Estimate, top: float) -> Markup:
    """A track from 0 to `top` with the interval as a band and the value as a mark; empty without a value in range."""
    if figure.value is None or not top > 0 or not -1e-9 <= figure.value <= top + 1e-9:
        return Markup("")
    parts = [f'<rect class="track" x="0" y="6" width="{WIDTH}" height="2" rx="1"/>']
    if figure.low is not None and figure.high is not None:
        left, right = _x(figure.low, top), _x(figure.high, top)
        parts.append(f'<rect class="band" x="{left}" y="4" width="{max(1.0, right - left):.1f}" height="6" rx="3"/>')
    mark = min(max(_x(figure.value, top) - 1.5, 0.0), WIDTH - 3.0)
    parts.append(f'<rect class="mark" x="{mark:.1f}" y="1" width="3" height="12" rx="1.5"/>')
    return _svg("".join(parts), WIDTH, HEIGHT, "interval")


def span_bar(low: float, high: float, top: float) -> Markup:
    """Two marks on one track, such as p50 and p95 of a latency."""
    if not top > 0:
        return Markup("")
    left, right = _x(low, top), _x(high, top)
    return _svg(
        f'<rect class="track" x="0" y="6" width="{WIDTH}" height="2" rx="1"/>'
        f'<rect class="band" x="{left}" y="4" width="{max(1.0, right - left):.1f}" height="6" rx="3"/>',
        WIDTH,
        HEIGHT,
        "interval",
    )


def _x(value: float, top: float) -> float:
    return round(min(max(value / top, 0.0), 1.0) * WIDTH, 1)


def _svg(inner: str, width: int, height: int, kind: str) -> Markup:
    # Everything inside is made of numbers, so there is nothing to escape.
    return Markup(  # noqa: S704
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true" focusable="false">{inner}</svg>'
    )
