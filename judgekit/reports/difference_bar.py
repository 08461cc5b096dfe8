"""A drawing of a difference with its interval; it repeats what stands beside it as text."""

from markupsafe import Markup

WIDTH = 120
HEIGHT = 14


def difference_bar(delta: float | None, low: float | None, high: float | None, top: float) -> Markup:
    """A track from -`top` to `top` with 0 in the middle, the interval as a band and the difference as a mark."""
    if delta is None or not top > 0:
        return Markup("")
    parts = [
        f'<rect class="track" x="0" y="6" width="{WIDTH}" height="2" rx="1"/>',
        f'<rect class="track" x="{WIDTH / 2 - 0.5}" y="0" width="1" height="{HEIGHT}"/>',
    ]
    if low is not None and high is not None:
        left, right = _x(low, top), _x(high, top)
        parts.append(f'<rect class="band" x="{left}" y="4" width="{max(1.0, right - left):.1f}" height="6" rx="3"/>')
    mark = min(max(_x(delta, top) - 1.5, 0.0), WIDTH - 3.0)
    parts.append(f'<rect class="mark" x="{mark:.1f}" y="1" width="3" height="12" rx="1.5"/>')
    # Everything inside is made of numbers, so there is nothing to escape.
    return Markup(  # noqa: S704
        f'<svg class="interval" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true" '
        f'focusable="false">{"".join(parts)}</svg>'
    )


def _x(value: float, top: float) -> float:
    return round(min(max((value + top) / (2 * top), 0.0), 1.0) * WIDTH, 1)
