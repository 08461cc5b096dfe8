"""A judge's history as text, with a sparkline, and as an inline SVG."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from judgekit.core.history_points import KIND_WORDS
from judgekit.reports.columns import aligned
from judgekit.reports.figures import number, printable, printable_line

BARS = "▁▂▃▄▅▆▇█"
MOST_ROWS = 12
"""Checks that the table shows, from the newest back."""

HEADER = ("when", "run", "check", "flips", "failed", "log E", "log M", "state")
_THIN = ("#757575", "thin-bar")
_STATES = {"none": ("#2e7d32", "quiet-bar"), "insufficient": _THIN, "not asked": _THIN}
"""Colour of a bar by state, and the class by which a page can give it one of its own."""
_DRIFTED = ("#c62828", "drifted-bar")
_WIDTH, _HEIGHT, _MARGIN = 720, 220, 36
_FEWEST_BARS = 12
"""Bars of a short history are as wide as if it had so many."""


def sparkline(rates: Sequence[float | None]) -> str:
    """Rates in [0, 1] as bars, eight heights; a dot where there is no rate."""
    return "".join("·" if rate is None else BARS[min(len(BARS) - 1, int(rate * len(BARS)))] for rate in rates)


def drift_text(report: Mapping[str, Any]) -> str:
    """One history: state, reasons, timeline.

    Args:
        report: `DriftReport.document()`.
    """
    since = "" if report["since"] is None else f" since run {report['since']['run_id']}"
    name = f"{report['judge']} {report['prompt_version']} on data set {report['dataset_sha256'][:12]}"
    lines = [f"{name}: {report['state']}{since}", *(f"  {line}" for line in report["why"])]
    timeline = report["timeline"]
    lines.append(f"  flips by check (a full bar is 100%): {sparkline([row['rate'] for row in timeline])}")
    lines.append("")
    shown = timeline[-MOST_ROWS:]
    if len(shown) < len(timeline):
        lines.append(f"  the newest {len(shown)} of {len(timeline)} checks:")
    lines += [f"  {line}" for line in aligned([HEADER, *map(timeline_cells, shown)])]
    return "\n".join(printable_line(line) for line in lines)


def timeline_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One check of a timeline, in the order of `HEADER`."""
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
    """The timeline as a picture that stands alone or inside HTML: flips as bars, the usual rate as a line.

    Args:
        report: `DriftReport.document()`.
    """
    timeline = report["timeline"]
    title = f"{report['judge']} {report['prompt_version']}: {report['state']}"
    inner, high = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN
    step = inner / max(_FEWEST_BARS, len(timeline))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" class="timeline" role="img" '
        f'font-family="sans-serif" font-size="12">',
        f"<title>{_escaped(title)}</title>",
        f'<text x="{_MARGIN}" y="18">{_escaped(title)}</text>',
    ]
    for share in (0.0, 0.5, 1.0):
        y = _HEIGHT - _MARGIN - share * high
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
                f'<rect x="{x + 0.1 * step:.1f}" y="{_HEIGHT - _MARGIN - height:.1f}" width="{0.8 * step:.1f}" '
                f'height="{height:.1f}" fill="{colour}" class="{kind}"><title>{_escaped(_hint(row))}</title></rect>'
            )
    for stream in report["streams"]:
        y = _HEIGHT - _MARGIN - stream["evidence"]["m0"] * high
        name = f"{KIND_WORDS[stream['kind']]}, {stream['comparator']}"
        label = f"usual rate of {name}: {stream['evidence']['m0']:.1%}"
        parts.append(
            f'<line x1="{_MARGIN}" y1="{y:.1f}" x2="{_WIDTH - _MARGIN}" y2="{y:.1f}" stroke="#1565c0" class="usual" '
            f'stroke-dasharray="4 3"><title>{_escaped(label)}</title></line>'
        )
    first, last = timeline[0]["created_at"][:10], timeline[-1]["created_at"][:10]
    if len(timeline) < _FEWEST_BARS:
        first, last = (first if first == last else f"{first} to {last}"), ""
    parts.append(f'<text x="{_MARGIN}" y="{_HEIGHT - 12}" fill="#555">{_escaped(first)}</text>')
    parts.append(
        f'<text x="{_WIDTH - _MARGIN}" y="{_HEIGHT - 12}" fill="#555" text-anchor="end">{_escaped(last)}</text>'
    )
    return "\n".join([*parts, "</svg>", ""])


def _hint(row: Mapping[str, Any]) -> str:
    return f"{row['created_at'][:16]} {row['run_id']}: {row['n_disagree']} of {row['n_pairs']} flips, {row['state']}"


def _escaped(text: str) -> str:
    return html.escape(printable(text), quote=True)
