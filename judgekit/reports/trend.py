"""A figure over the runs of a suite, as text and as a picture."""

import html
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judgekit.reports.columns import aligned
from judgekit.reports.figures import number, printable, printable_line

HEADER = ("when", "run", "value", "95% interval", "cases", "note")
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 260, 48, 20, 36, 36
_FEWEST_RUNS = 6
"""Runs of a short history are as far apart as if it had so many."""

Run = Mapping[str, Any]


def trend_text(trend: Mapping[str, Any]) -> str:
    """The runs, the oldest first, a line where the figure is no longer comparable, and what the newest ones say.

    Args:
        trend: `Trend.document()`.
    """
    tag = f" with tag {trend['tag']}" if trend["tag"] else ""
    lines = [f"{trend['metric']} in runs of {trend['suite']}{tag}, the oldest first", ""]
    for row, line in zip([None, *trend["runs"]], aligned([HEADER, *map(_cells, trend["runs"])]), strict=True):
        lines += [f"  -- not comparable with the runs above: {change}" for change in (row or {}).get("changed", ())]
        lines.append(f"  {line}")
    return "\n".join(printable_line(line) for line in [*lines, "", *latest_lines(trend)])


def _cells(run: Run) -> tuple[str, ...]:
    when = run["created_at"][:16].replace("T", " ")
    if run["why"] is not None:
        return (when, run["run_id"], "", "", "", run["why"])
    n_other = [f"{run[key]} {word}" for key, word in (("n_error", "failed"), ("n_not_applicable", "n/a")) if run[key]]
    return (when, run["run_id"], number(run["value"]), interval_of(run), str(run["n"]), ", ".join(n_other))


def interval_of(run: Run) -> str:
    """`0.512 to 0.734`, or nothing."""
    return "" if run["low"] is None or run["high"] is None else f"{number(run['low'])} to {number(run['high'])}"


def latest_lines(trend: Mapping[str, Any]) -> list[str]:
    """What can be said of the runs since data, judge or definition last changed."""
    found = trend["latest"]
    if found is None:
        return ["no run has a value, so nothing can be said of a trend"]
    first, last = found["first"], found["last"]
    if found["difference"] is None:
        since = " since the last change" if any(run["changed"] for run in trend["runs"]) else ""
        lines = [f"1 run{since}: {_value(last)}; a trend needs two runs that can be compared"]
    else:
        lines = [f"{found['n_runs']} comparable runs: {_value(first)} to {_value(last)}, {_direction(found)}"]
    if found["has_zero"] is not None and last["value"] is not None:
        lines.append(_about_zero(found["has_zero"], last))
    return lines


def _value(end: Run) -> str:
    between = interval_of(end)
    return f"{number(end['value'])}{f' (95% {between})' if between else ''} over {end['n']} cases"


def _direction(found: Mapping[str, Any]) -> str:
    by = found["difference"]
    moved = "unchanged" if not by else f"{'up' if by > 0 else 'down'} by {number(abs(by))}"
    if found["intervals_overlap"] is None:
        return moved
    if found["intervals_overlap"]:
        return f"{moved}; the two intervals overlap, so that this may be chance (`judgekit compare` tests the pairs)"
    return f"{moved}; the two intervals do not overlap"


def _about_zero(has_zero: bool, last: Run) -> str:
    if has_zero:
        return f"0 is within the interval of the last run, and so is everything up to {number(last['high'])}"
    return f"0 is not within the interval of the last run, whose ends are {interval_of(last)}"


def trend_svg(trend: Mapping[str, Any]) -> str:
    """The values with their intervals, joined where they can be compared, as a picture that stands alone or in HTML.

    Args:
        trend: `Trend.document()`.
    """
    runs = trend["runs"]
    bottom, top = _scale(runs)
    step = (_WIDTH - _LEFT - _RIGHT) / max(_FEWEST_RUNS, len(runs))
    title = f"{trend['metric']}, {trend['suite']}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" class="timeline" role="img" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{_escaped(title)}</title>",
        f'<text x="{_LEFT}" y="18">{_escaped(title)}</text>',
    ]

    def x_of(place: int) -> float:
        return _LEFT + (place + 0.5) * step

    def y_of(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - bottom) / (top - bottom) * (_HEIGHT - _TOP - _BOTTOM)

    for share in (0.0, 0.5, 1.0):
        value = bottom + share * (top - bottom)
        parts.append(_line(_LEFT, y_of(value), _WIDTH - _RIGHT, y_of(value), 'stroke="#ddd" class="grid"'))
        parts.append(f'<text x="4" y="{y_of(value) + 4:.1f}" fill="#555">{value:.3g}</text>')
    before: tuple[int, Run] | None = None
    for place, run in enumerate(runs):
        x = x_of(place)
        if run["changed"]:
            left = x - step / 2
            parts.append(_marked(left, run["changed"]))
        if run["value"] is None:
            parts.append(_missing(x, run))
            continue
        if before is not None and before[1]["stretch"] == run["stretch"]:
            old = x_of(before[0]), y_of(before[1]["value"])
            parts.append(_line(*old, x, y_of(run["value"]), 'stroke="#1565c0" class="usual"'))
        parts.append(_point(x, run, y_of))
        before = place, run
    first, last = runs[0]["created_at"][:10], runs[-1]["created_at"][:10]
    dates = first if first == last else f"{first} to {last}"
    parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 12}" fill="#555">{_escaped(dates)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _scale(runs: Sequence[Run]) -> tuple[float, float]:
    """Where the picture begins and ends: at 0 where nothing is below it, and at a round number above everything."""
    ends = [run[key] for run in runs for key in ("value", "low", "high") if run[key] is not None]
    top, bottom = max([*ends, 0.0]), min([*ends, 0.0])
    reach = max(top, -bottom) or 1.0
    unit = 10.0 ** math.floor(math.log10(reach))
    round_ = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= reach - 1e-9)
    return (0.0 if bottom >= 0 else -round_), (round_ if top > 0 or bottom >= 0 else 0.0)


def _line(x1: float, y1: float, x2: float, y2: float, how: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {how}/>'


def _marked(x: float, changed: Sequence[str]) -> str:
    """A line across the picture where what comes after cannot be compared with what came before."""
    line = _line(x, _TOP - 8, x, _HEIGHT - _BOTTOM, 'stroke="#c62828" class="changed" stroke-dasharray="4 3"')
    names = _escaped(", ".join(change.partition(":")[0] for change in changed))
    text = f'<text x="{x + 3:.1f}" y="{_TOP - 2}" fill="#c62828" class="changed-text" font-size="10">{names}</text>'
    return f"<g><title>{_escaped('; '.join(changed))}</title>{line}{text}</g>"


def _missing(x: float, run: Run) -> str:
    y = _HEIGHT - _BOTTOM + 12
    hint = _escaped(f"{run['created_at'][:16]} {run['run_id']}: {run['why']}")
    return f'<text x="{x:.1f}" y="{y}" fill="#757575" text-anchor="middle">×<title>{hint}</title></text>'


def _point(x: float, run: Run, y_of: Callable[[float], float]) -> str:
    between = interval_of(run)
    hint = f"{run['created_at'][:16]} {run['run_id']}: {number(run['value'])}"
    hint += f", 95% {between}" if between else ""
    parts = [f"<g><title>{_escaped(hint)}, {run['n']} cases</title>"]
    if between:
        low, high = y_of(run["low"]), y_of(run["high"])
        parts.append(_line(x, low, x, high, 'stroke="#1565c0" stroke-width="2" class="usual"'))
        parts += [_line(x - 4, y, x + 4, y, 'stroke="#1565c0" class="usual"') for y in (low, high)]
    y = y_of(run["value"])
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1565c0" class="mark"/></g>')
    return "".join(parts)


def _escaped(text: str) -> str:
    return html.escape(printable(text), quote=True)
