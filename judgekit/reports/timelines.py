"""A judge's drift history and a figure over the runs of a suite, as text and as a picture."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from judgekit.core.history_points import KIND_WORDS
from judgekit.core.scores import Scale, stored_scale
from judgekit.reports.figure_changes import run_estimate
from judgekit.reports.figures import direction, interval_text, number, signed_text, value_text
from judgekit.reports.finding_sentences import drift_sentence
from judgekit.reports.safe_text import picture_text, printable_line
from judgekit.reports.tables import aligned

BARS = "▁▂▃▄▅▆▇█"
MOST_ROWS = 12
"""Points that the table shows, from the newest back."""

DRIFT_SHORT_HEADER = ("judge", "data set", "points", "newest", "flips", "drift")
DRIFT_HEADER = ("when", "run", "point", "flips", "failed", "log E", "log M", "state")
_THIN = ("#757575", "thin-bar")
_STATES = {"none": ("#2e7d32", "quiet-bar"), "insufficient": _THIN, "not asked": _THIN}
"""Colour of a bar by state, and the class that lets a page set its own colour."""
_DRIFTED = ("#c62828", "drifted-bar")
_WIDTH = 720
_DRIFT_HEIGHT, _MARGIN = 220, 36
_FEWEST_BARS = 12
"""Bars of a short history are as wide as if it had so many."""

TREND_HEADER = ("when", "run", "value", "95% interval", "cases", "note")
_TREND_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 260, 48, 20, 36, 36
_FEWEST_RUNS = 6
"""Runs of a short history are as far apart as if it had so many."""

Run = Mapping[str, Any]


def drift_texts(reports: Sequence[Mapping[str, Any]], *, stats: bool) -> str:
    """A sentence for each history, and then a line for each; with `stats` each with its reasons and timeline."""
    lead = [printable_line(drift_sentence(report)) for report in reports]
    if stats:
        return "\n\n".join(["\n".join(lead), *map(drift_text, reports)])
    rows = []
    for report in reports:
        timeline = report["timeline"]
        bars = "".join(_bar(row["rate"]) for row in timeline[-MOST_ROWS:])
        newest = timeline_cells(timeline[-1])[3] if timeline else "n/a"
        name = f"{report['judge']} {report['prompt_version']}"
        rows.append((name, report["dataset_sha256"][:12], str(len(timeline)), newest, bars, report["state"]))
    return "\n".join([*lead, "", *map(printable_line, aligned([DRIFT_SHORT_HEADER, *rows]))])


def drift_text(report: Mapping[str, Any]) -> str:
    """One history, from `DriftReport.document()`: state, reasons, timeline."""
    since = "" if report["since"] is None else f" since run {report['since']['run_id']}"
    name = f"{report['judge']} {report['prompt_version']} on data set {report['dataset_sha256'][:12]}"
    lines = [f"{name}: {report['state']}{since}", *(f"  {line}" for line in report["why"])]
    timeline = report["timeline"]
    lines += [f"  flips by point (a full bar is 100%): {''.join(_bar(row['rate']) for row in timeline)}", ""]
    shown = timeline[-MOST_ROWS:]
    if len(shown) < len(timeline):
        lines.append(f"  the newest {len(shown)} of {len(timeline)} points:")
    lines += [f"  {line}" for line in aligned([DRIFT_HEADER, *map(timeline_cells, shown)])]
    return "\n".join(map(printable_line, lines))


def _bar(rate: float | None) -> str:
    """A rate in [0, 1] as one of eight heights; a dot if there is none."""
    return "·" if rate is None else BARS[min(len(BARS) - 1, int(rate * len(BARS)))]


def timeline_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One point of a timeline, in the order of `DRIFT_HEADER`."""
    rate = "n/a" if row["rate"] is None else f"{row['n_disagree']} of {row['n_pairs']} ({row['rate']:.0%})"
    return (
        row["created_at"][:16].replace("T", " "),
        row["run_id"],
        f"{KIND_WORDS[row['kind']]}, {row['comparator']}" if row["comparator"] else KIND_WORDS[row["kind"]],
        rate,
        f"{row['n_failed']} of {row['n_asked']}",
        "" if row["log_e_value"] is None else number(row["log_e_value"], 1),
        "" if row["log_e_detector"] is None else number(row["log_e_detector"], 1),
        row["state"],
    )


def drift_svg(report: Mapping[str, Any]) -> str:
    """The timeline as a picture, a file or a part of a page: flips as bars, the usual rate as a line."""
    timeline = report["timeline"]
    title = f"{report['judge']} {report['prompt_version']}: {report['state']}"
    inner, high = _WIDTH - 2 * _MARGIN, _DRIFT_HEIGHT - 2 * _MARGIN
    step = inner / max(_FEWEST_BARS, len(timeline))
    parts = _opening(title, _DRIFT_HEIGHT, _MARGIN)
    for share in (0.0, 0.5, 1.0):
        y = _DRIFT_HEIGHT - _MARGIN - share * high
        parts.append(
            f'<line x1="{_MARGIN}" y1="{y:.1f}" x2="{_WIDTH - _MARGIN}" y2="{y:.1f}" stroke="#ddd" class="grid"/>'
        )
        parts.append(f'<text x="4" y="{y + 4:.1f}" fill="#555">{share:.0%}</text>')
    for number_, row in enumerate(timeline):
        x = _MARGIN + number_ * step
        if row["rate"] is not None:
            height = max(1.0, row["rate"] * high)
            colour, kind = _STATES.get(row["state"], _DRIFTED)
            parts.append(
                f'<rect x="{x + 0.1 * step:.1f}" y="{_DRIFT_HEIGHT - _MARGIN - height:.1f}" width="{0.8 * step:.1f}" '
                f'height="{height:.1f}" fill="{colour}" class="{kind}"><title>{picture_text(_hint(row))}</title></rect>'
            )
    for stream in report["streams"]:
        y = _DRIFT_HEIGHT - _MARGIN - stream["evidence"]["m0"] * high
        name = f"{KIND_WORDS[stream['kind']]}, {stream['comparator']}"
        label = f"usual rate of {name}: {stream['evidence']['m0']:.1%}"
        parts.append(
            f'<line x1="{_MARGIN}" y1="{y:.1f}" x2="{_WIDTH - _MARGIN}" y2="{y:.1f}" stroke="#1565c0" class="usual" '
            f'stroke-dasharray="4 3"><title>{picture_text(label)}</title></line>'
        )
    first, last = timeline[0]["created_at"][:10], timeline[-1]["created_at"][:10]
    if len(timeline) < _FEWEST_BARS:
        first, last = _dates(timeline), ""
    right, y = _WIDTH - _MARGIN, _DRIFT_HEIGHT - 12
    parts.append(f'<text x="{_MARGIN}" y="{y}" fill="#555">{picture_text(first)}</text>')
    parts.append(f'<text x="{right}" y="{y}" fill="#555" text-anchor="end">{picture_text(last)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _opening(title: str, height: int, left: int) -> list[str]:
    """The opening tag and title of a picture."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" class="timeline" role="img" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{picture_text(title)}</title>",
        f'<text x="{left}" y="18">{picture_text(title)}</text>',
    ]


def _dates(runs: Sequence[Mapping[str, Any]]) -> str:
    """The days of the first and the last, as one text."""
    first, last = runs[0]["created_at"][:10], runs[-1]["created_at"][:10]
    return first if first == last else f"{first} to {last}"


def _hint(row: Mapping[str, Any]) -> str:
    return f"{row['created_at'][:16]} {row['run_id']}: {row['n_disagree']} of {row['n_pairs']} flips, {row['state']}"


def trend_text(trend: Mapping[str, Any]) -> str:
    """The runs of `Trend.document()`, the oldest first, what is not comparable, and what the newest ones say."""
    tag = f" with tag {trend['tag']}" if trend["tag"] else ""
    better = direction(stored_scale(trend))
    told = f" ({better} is better)" if better else ""
    lines = [f"{trend['metric']}{told} in runs of {trend['suite']}{tag}, the oldest first", ""]
    for row, line in zip([None, *trend["runs"]], aligned([TREND_HEADER, *trend_rows(trend)]), strict=True):
        lines += [f"  -- not comparable with the runs above: {change}" for change in (row or {}).get("changed", ())]
        lines.append(f"  {line}")
    return "\n".join(printable_line(line) for line in [*lines, "", *latest_lines(trend)])


def trend_rows(trend: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """A row a run, in the order of `TREND_HEADER`."""
    scale = stored_scale(trend)
    yield from (_cells(run, scale) for run in trend["runs"])


def _cells(run: Run, scale: Scale | None) -> tuple[str, ...]:
    when = run["created_at"][:16].replace("T", " ")
    if run["why"] is not None:
        return (when, run["run_id"], "", "", "", run["why"])
    n_other = [f"{run[key]} {word}" for key, word in (("n_error", "failed"), ("n_not_applicable", "n/a")) if run[key]]
    figure = run_estimate(run)
    shown = value_text(figure, scale), interval_text(figure, scale)
    return (when, run["run_id"], *shown, str(run["n"]), ", ".join(n_other))


def latest_lines(trend: Mapping[str, Any]) -> list[str]:
    """How the figure moved since data, judge or definition last changed."""
    found = trend["latest"]
    if found is None:
        return ["no run has a value, so nothing can be said of a trend"]
    first, last, scale = found["first"], found["last"], stored_scale(trend)
    if found["difference"] is None:
        since = " since the last change" if any(run["changed"] for run in trend["runs"]) else ""
        lines = [f"1 run{since}: {_value(last, scale)}; a trend needs two runs that can be compared"]
    else:
        ends = f"{_value(first, scale)} to {_value(last, scale)}"
        lines = [f"{found['n_runs']} comparable runs: {ends}, {_moved(found, scale)}"]
    if found["has_zero"] is not None and last["value"] is not None:
        lines.append(_about_zero(found["has_zero"], last, scale))
    return lines


def _value(run: Run, scale: Scale | None) -> str:
    ends = interval_text(figure := run_estimate(run), scale)
    return f"{value_text(figure, scale)}{f' (95% {ends})' if ends else ''} over {run['n']} cases"


def _moved(found: Mapping[str, Any], scale: Scale | None) -> str:
    by = found["difference"]
    moved = "unchanged" if not by else f"{'up' if by > 0 else 'down'} by {signed_text(abs(by), scale)[1:]}"
    if found["intervals_overlap"] is None:
        return moved
    if found["intervals_overlap"]:
        return f"{moved}; the two intervals overlap, so that this may be chance (`judgekit compare` tests the pairs)"
    return f"{moved}; the two intervals do not overlap"


def _about_zero(has_zero: bool, last: Run, scale: Scale | None) -> str:
    ends = interval_text(run_estimate(last), scale)
    if has_zero:
        return f"0 is within the interval of the last run, and so is everything up to {ends.split(' to ')[1]}"
    return f"0 is not within the interval of the last run, whose ends are {ends}"


def trend_svg(trend: Mapping[str, Any]) -> str:
    """The values with their intervals as a picture, a file or a part of a page; comparable ones are joined."""
    runs = trend["runs"]
    bottom, top = _ends(runs)
    scale = stored_scale(trend)
    in_percent = scale is not None and scale.unit == "share"
    step = (_WIDTH - _LEFT - _RIGHT) / max(_FEWEST_RUNS, len(runs))
    title = f"{trend['metric']}, {trend['suite']}"
    parts = _opening(title, _TREND_HEIGHT, _LEFT)

    def x_of(place: int) -> float:
        return _LEFT + (place + 0.5) * step

    def y_of(value: float) -> float:
        return _TREND_HEIGHT - _BOTTOM - (value - bottom) / (top - bottom) * (_TREND_HEIGHT - _TOP - _BOTTOM)

    for share in (0.0, 0.5, 1.0):
        value = bottom + share * (top - bottom)
        parts.append(_line(_LEFT, y_of(value), _WIDTH - _RIGHT, y_of(value), 'stroke="#ddd" class="grid"'))
        text = f"{100 * value:.3g}%" if in_percent else f"{value:.3g}"
        parts.append(f'<text x="4" y="{y_of(value) + 4:.1f}" fill="#555">{text}</text>')
    before: tuple[int, Run] | None = None
    for place, run in enumerate(runs):
        x = x_of(place)
        if run["changed"]:
            parts.append(_marked(x - step / 2, run["changed"]))
        if run["value"] is None:
            parts.append(_missing(x, run))
            continue
        if before is not None and before[1]["stretch"] == run["stretch"]:
            old = x_of(before[0]), y_of(before[1]["value"])
            parts.append(_line(*old, x, y_of(run["value"]), 'stroke="#1565c0" class="usual"'))
        parts.append(_point(x, run, y_of, scale))
        before = place, run
    dates = picture_text(_dates(runs))
    parts.append(f'<text x="{_LEFT}" y="{_TREND_HEIGHT - 12}" fill="#555">{dates}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _ends(runs: Sequence[Run]) -> tuple[float, float]:
    """The ends of the axis: from 0, or a round number below it, to a round number above every value."""
    ends = [run[key] for run in runs for key in ("value", "low", "high") if run[key] is not None]
    top, bottom = max([*ends, 0.0]), min([*ends, 0.0])
    reach = max(top, -bottom) or 1.0
    unit = 10.0 ** math.floor(math.log10(reach))
    round_ = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= reach - 1e-9)
    return (0.0 if bottom >= 0 else -round_), (round_ if top > 0 or bottom >= 0 else 0.0)


def _line(x1: float, y1: float, x2: float, y2: float, how: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {how}/>'


def _marked(x: float, changed: Sequence[str]) -> str:
    """A line across the picture: runs on its two sides cannot be compared."""
    line = _line(x, _TOP - 8, x, _TREND_HEIGHT - _BOTTOM, 'stroke="#c62828" class="changed" stroke-dasharray="4 3"')
    names = picture_text(", ".join(change.partition(":")[0] for change in changed))
    text = f'<text x="{x + 3:.1f}" y="{_TOP - 2}" fill="#c62828" class="changed-text" font-size="10">{names}</text>'
    return f"<g><title>{picture_text('; '.join(changed))}</title>{line}{text}</g>"


def _missing(x: float, run: Run) -> str:
    y = _TREND_HEIGHT - _BOTTOM + 12
    hint = picture_text(f"{run['created_at'][:16]} {run['run_id']}: {run['why']}")
    return f'<text x="{x:.1f}" y="{y}" fill="#757575" text-anchor="middle">×<title>{hint}</title></text>'


def _point(x: float, run: Run, y_of: Callable[[float], float], scale: Scale | None) -> str:
    hint = f"{run['created_at'][:16]} {run['run_id']}: {_value(run, scale)}"
    parts = [f"<g><title>{picture_text(hint)}</title>"]
    if run["low"] is not None and run["high"] is not None:
        low, high = y_of(run["low"]), y_of(run["high"])
        parts.append(_line(x, low, x, high, 'stroke="#1565c0" stroke-width="2" class="usual"'))
        parts += [_line(x - 4, y, x + 4, y, 'stroke="#1565c0" class="usual"') for y in (low, high)]
    y = y_of(run["value"])
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1565c0" class="mark"/></g>')
    return "".join(parts)
