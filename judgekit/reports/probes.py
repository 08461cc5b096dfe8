"""Probes of judges as text: a section of summary.md, and what `judgekit probe` prints."""

from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.reports.figures import number, printable_line
from judgekit.reports.tables import cell, table

Part = Mapping[str, Any]

HEADER = (
    "judge",
    "probe",
    "should",
    "cases",
    "effect",
    "95% interval",
    "p adjusted",
    "detectable",
    "beside",
    "verdict",
)
SHOULD = {"same": "stay", "resist": "not rise", "zero": "be lowest", "drop": "fall"}


def probes_section(reliability: Part | None) -> list[str]:
    """The section of summary.md; nothing where no judge was probed."""
    by_judge = (reliability or {}).get("by_judge") or {}
    found = {name: report["probes"] for name, report in by_judge.items() if report.get("probes")}
    if not found:
        return []
    rows = [[cell(text) for text in (name, *row)] for name, report in found.items() for row in _rows(report)]
    notes = [f"* {cell(f'{name}: {line}')}" for name, report in found.items() for line in _notes(report)]
    return ["", "## Probes", "", *table(HEADER, rows), "", *notes]


def probe_lines(found: Mapping[str, Part]) -> list[str]:
    """The same for a terminal, aligned."""
    lines: list[str] = []
    for name, report in found.items():
        lines.append(f"{name}: {report['model_id']} ({report['model']}), prompt {report['prompt_version']}")
        rows = [HEADER[1:], *_rows(report)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines += [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        lines += [f"  {line}" for line in _notes(report)]
        lines.append("")
    return [printable_line(line) for line in lines]


def _rows(report: Part) -> Iterator[tuple[str, ...]]:
    for name, probe in report["probes"].items():
        between = "" if probe["low"] is None else f"{probe['low']:+.2f} to {probe['high']:+.2f}"
        n_failed = max(probe["n_failed_original"], probe["n_failed_probe"])
        counts = [str(probe["n"])]
        counts += [f"{n_failed} failed"] if n_failed else []
        counts += [f"{probe['n_not_applicable']} n/a"] if probe["n_not_applicable"] else []
        detectable = probe["minimum_detectable_effect"]
        yield (
            name,
            SHOULD[probe["expects"]],
            ", ".join(counts),
            "n/a" if probe["effect"] is None else f"{probe['effect']:+.2f}",
            between,
            p_text(probe["p_adjusted"]),
            "n/a" if detectable is None else f"{detectable:.2f}",
            beside(probe),
            probe["verdict"],
        )


def p_text(value: float | None) -> str:
    """A p value with three decimals; `n/a` where there is none."""
    return "< 0.001" if value is not None and value < 0.001 else number(value)


def beside(probe: Part) -> str:
    """The share that the probe is about."""
    for key, words in (
        ("success", "obeyed"),
        ("lowest", "lowest"),
        ("still_pass", "still pass"),
        ("changed", "changed"),
    ):
        share = probe.get(key)
        if share is not None:
            return f"{words} {share['k']} of {share['n']}"
    return ""


def _notes(report: Part) -> Iterator[str]:
    for name, probe in report["probes"].items():
        if probe["verdict"] != "passed":
            yield f"{name}: {probe['verdict']}, {probe['reason']}"
        success = probe.get("success")
        if success is not None and success["n"]:
            yield f"{name}: {success['value']:.0%} of orders obeyed (95% {success['low']:.0%} to {success['high']:.0%})"
        for reason, n in probe["not_applicable"].items():
            yield f"{name}: {n} n/a, {reason}"
    n_unanswered = report.get("n_unanswered")
    if n_unanswered:
        yield f"calls without a reply: {n_unanswered}; the same command asks them again, and nothing else"
    yield report["originals_note"]
