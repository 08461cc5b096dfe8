"""Spot checks as text: a section of summary.md, and what `judgekit spotcheck` prints."""

from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.reports.figures import number, p_value, printable_line
from judgekit.reports.tables import cell, table

MOST_PAIRS = 10
"""Disagreeing pairs that are shown for each judge; metrics.json has more."""

HEADER = ("judge", "against", "pairs", "disagree", "95%, this run", "95%, rows like these", "status")
AGREEMENT = (("quadratic_weighted_kappa", "kappa"), ("gwet_ac2", "AC2"), ("krippendorff_alpha", "alpha"))

Report = Mapping[str, Any]


def reliability_section(reliability: Report | None) -> list[str]:
    """The section of summary.md, with the disagreeing pairs side by side; nothing where no judge was checked."""
    checked = _checked(reliability)
    if not checked:
        return []
    rows = [[cell(text) for text in row] for name, report in checked.items() for row in _rows(name, report)]
    parts = ["", "## Judge reliability", "", *table(HEADER, rows), ""]
    parts += [f"* {cell(line)}" for name, report in checked.items() for line in _notes(name, report)]
    pairs = [[cell(str(text)) for text in (name, *pair)] for name, report in checked.items() for pair in _pairs(report)]
    if pairs:
        header = ["judge", "case", "score", "second score", "reasoning", "second reasoning"]
        parts += ["", "Verdicts that disagree, the widest gaps first:", "", *table(header, pairs)]
        n_left = sum(max(0, len(report["disagreements"]) - MOST_PAIRS) for report in checked.values())
        parts += ["", f"{n_left} more are in `metrics.json`."] if n_left else []
    return parts


def reliability_lines(reliability: Report | None, checks: Mapping[str, str]) -> list[str]:
    """One check of each judge for a terminal, as a block of lines.

    Args:
        reliability: of the run.
        checks: by judge, the name of the check.
    """
    lines: list[str] = []
    for name, whole in _checked(reliability).items():
        found = [check for check in _all_checks(whole) if check["check"] == checks.get(name)]
        if not found:
            continue
        report = {**found[0], **{part: whole.get(part) for part in REPEATS}}
        for row in _rows(name, report):
            named = zip(HEADER[3:], row[3:], strict=True)
            lines.append(f"{row[0]} against {row[1]}, {row[2]}")
            lines += [f"  {label}: {text}" for label, text in named]
        lines += [f"  {line.removeprefix(f'{name}: ')}" for line in _notes(name, report)]
        for case_id, first, second, reason, other in _pairs(report):
            lines.append(f"  {case_id}: {first} -> {second}")
            lines += [f"    {text}" for text in (reason, other) if text]
        lines.append("")
    return [printable_line(line) for line in lines]


def _checked(reliability: Report | None) -> dict[str, Report]:
    """Judges with a spot check; others may have parts that come from elsewhere."""
    by_judge = (reliability or {}).get("by_judge") or {}
    return {name: report for name, report in by_judge.items() if "spot_check" in report}


def _all_checks(report: Report) -> list[Report]:
    return [report, *report.get("other_checks", ())]


def _rows(name: str, report: Report) -> Iterator[list[str]]:
    for check in _all_checks(report):
        sample, alarm = check["spot_check"], check["alarm"]
        left = f", {sample['n_unscored']} without two verdicts" if sample["n_unscored"] else ""
        needed = alarm["n_to_decide"]
        decides = f", about {needed} pairs would decide" if needed is not None else ""
        yield [
            name,
            against_text(check["against"]),
            f"{sample['n_scored']} pairs of {sample['n_population']} verdicts{left}",
            f"{check['n_disagree']} ({number(sample['rate'], 2)})",
            _between(sample["interval_this_run"]),
            _between(sample["interval_future"]),
            f"{alarm['status']} (threshold {alarm['threshold']:.2f}{decides})",
        ]


def against_text(against: Report) -> str:
    """Who gave the second opinion."""
    model = f"{against['model_id']} ({against['model']})"
    if against.get("kind") == "repeat":
        return f"itself, asked again: {model}"
    return f"{model}, prompt {against['prompt_version']}"


def _between(interval: Report | None) -> str:
    if interval is None or interval["low"] is None or interval["high"] is None:
        return "n/a"
    return f"{interval['low']:.2f} to {interval['high']:.2f}"


def _notes(name: str, report: Report) -> Iterator[str]:
    sample, agreement = report["spot_check"], report["agreement"]
    parts, shift = sample["parts"], sample["shift"]
    yield (
        f"{name}: {parts['exact_match']} equal, {parts['gap_over_one']} more than a point apart, "
        f"{parts['class_flip']} on the other side of the pass line, {parts['both']} both"
    )
    if shift["mean"] is not None:
        yield f"{name}: mean shift {shift['mean']:+.2f} (second - first), p {p_value(shift['p'])}"
    figures = [
        f"{label} {number(agreement[key]['value'], 2)}"
        + (f" ({_between(agreement[key])})" if agreement[key]["low"] is not None else "")
        for key, label in AGREEMENT
    ]
    why = agreement.get("undefined_reason")
    indicative = f", indicative: fewer than 50 pairs ({agreement['n']})" if agreement["indicative"] else ""
    yield f"{name}: agreement {', '.join(figures)}{f'; {why}' if why else indicative}"
    adaptive = report["alarm"].get("adaptive")
    if adaptive is not None:
        everything = "every verdict of the run is checked" if sample["n_asked"] == sample["n_population"] else "open"
        decided = f"the rate is {adaptive['decided']} the threshold" if adaptive["decided"] else everything
        yield f"{name}: drawn until decided: {decided}"
    for part, words in REPEATS.items():
        line = repeat_line(report.get(part), words)
        if line is not None:
            yield f"{name}: {line}"


REPEATS = {
    "noise_floor": "asked again within a day",
    "asked_later": "asked again later than a day after its verdicts",
}
"""Parts of a report about the judge itself, asked again, in words."""


def repeat_line(found: Report | None, words: str) -> str | None:
    """How many verdicts flip if the judge itself is asked again; None where that is not known."""
    if found is None or found["flip_rate"] is None:
        return None
    return (
        f"{words}, {found['n_flips']} of {found['n']} verdicts flip "
        f"({found['flip_rate']:.2f}, 95% {_between(found['interval'])}), {found['n_changed']} change at all"
    )


def _pairs(report: Report) -> list[tuple[str, Any, Any, str, str]]:
    return [
        (pair["case_id"], pair["first"], pair["second"], pair["first_reasoning"], pair["second_reasoning"])
        for pair in report["disagreements"][:MOST_PAIRS]
    ]
