"""Spot checks: a section of summary.md, what `judgekit spotcheck` prints, and a part of report.html."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judgekit.core.runs import RunSummary
from judgekit.core.verdict_kinds import said_text
from judgekit.reports.charts import agreement_rows, ends_text, share_bar
from judgekit.reports.figures import by_judge, counted_names, number, p_value, percent
from judgekit.reports.finding_sentences import spot_check_sentence, with_sentence
from judgekit.reports.safe_text import printable_line
from judgekit.reports.tables import aligned, bullets, cell, section, table

MOST_PAIRS = 10
"""Disagreeing pairs that are shown for each judge; metrics.json has more."""

SHORT_HEADER = ("judge", "against", "disagree", "95% interval", "too much")
HEADER = ("judge", "against", "pairs", "disagree", "95%, this run", "95%, rows like these", "status")
AGREEMENT = (
    ("quadratic_weighted_kappa", "kappa"),
    ("cohen_kappa", "kappa"),
    ("gwet_ac2", "AC2"),
    ("gwet_ac1", "AC1"),
    ("krippendorff_alpha", "alpha"),
)

USUAL_WORDS = {"gap": "more than a point apart", "flip": "on the other side of the pass line"}
"""Of runs that do not say it."""

REPEATS = {
    "noise_floor": "asked again within a day",
    "asked_later": "asked again later than a day after its verdicts",
}
"""Parts of a report about the judge asked again, in words."""

STATUS_BADGES = {"alarm": "bad", "ok": "good"}

Report = Mapping[str, Any]


def reliability_section(reliability: Report | None) -> list[str]:
    """The section of summary.md, with the disagreeing pairs side by side; nothing if no judge was checked."""
    checked = _checked(reliability)
    if not checked:
        return []
    rows = [[cell(text) for text in row] for name, report in checked.items() for row in _rows(name, report)]
    notes = bullets(line for name, report in checked.items() for line in _notes(name, report))
    parts = section("Judge reliability", [*table(HEADER, rows), "", *notes])
    for name, report in checked.items():
        header, *rows = confusion_table(report) or [[]]
        if rows:
            parts += ["", f"How the verdicts of {cell(name)} met those of the second opinion:", ""]
            parts += table(list(map(cell, header)), [list(map(cell, row)) for row in rows])
    pairs = [[cell(text) for text in (name, *pair)] for name, report in checked.items() for pair in _pairs(report)]
    if pairs:
        header = ["judge", "case", "verdict", "second verdict", "reasoning", "second reasoning"]
        parts += ["", "Verdicts that disagree, the widest gaps first:", "", *table(header, pairs)]
        n_left = sum(max(0, len(report["disagreements"]) - MOST_PAIRS) for report in checked.values())
        parts += ["", f"{n_left} more are in `metrics.json`."] if n_left else []
    return parts


def _chosen(reliability: Report | None, names: Mapping[str, str]) -> dict[str, Report]:
    """Of each judge that `names` gives, the report of the spot check that it names."""
    chosen: dict[str, Report] = {}
    for name, whole in _checked(reliability).items():
        found = [item for item in _all_spot_checks(whole) if item["check"] == names.get(name)]
        if found:
            chosen[name] = {**found[0], **{part: whole.get(part) for part in REPEATS}}
    return chosen


def spot_check_document(summary: RunSummary, names: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """What `judgekit spotcheck --json` prints; `names` as of `reliability_lines`."""
    chosen = _chosen(summary.judge_reliability, names)
    document = {
        "run_id": summary.run_id,
        "run_dir": str(folder),
        "judge_reliability": summary.judge_reliability,
        "gates": [gate.model_dump(mode="json") for gate in summary.gates],
        "warnings": [item.model_dump(mode="json") for item in summary.warnings],
    }
    return with_sentence(document, *(spot_check_sentence(name, report) for name, report in chosen.items()))


def reliability_lines(reliability: Report | None, names: Mapping[str, str], *, stats: bool = True) -> list[str]:
    """One spot check of each judge, which `names` gives, for a terminal.

    Args:
        reliability: as metrics.json has it.
        names: by judge, the name of the spot check.
        stats: whether to add every statistic and the pairs that disagree.
    """
    chosen = _chosen(reliability, names)
    lines = [*(spot_check_sentence(name, report) for name, report in chosen.items()), ""]
    rows = [_short_row(name, report) for name, report in chosen.items()]
    lines += aligned([SHORT_HEADER, *rows]) if rows and not stats else []
    for name, report in chosen.items() if stats else ():
        for row in _rows(name, report):
            named = zip(HEADER[3:], row[3:], strict=True)
            lines.append(f"{row[0]} against {row[1]}, {row[2]}")
            lines += [f"  {label}: {text}" for label, text in named]
        lines += [f"  {line.removeprefix(f'{name}: ')}" for line in _notes(name, report)]
        lines += [f"  {line}" for line in aligned(confusion_table(report))]
        for case_id, first, second, reason, other in _pairs(report):
            lines.append(f"  {case_id}: {first} -> {second}")
            lines += [f"    {text}" for text in (reason, other) if text]
        lines.append("")
    return [printable_line(line) for line in lines]


def _short_row(name: str, report: Report) -> tuple[str, ...]:
    sample, n = report["spot_check"], report["spot_check"]["n_scored"]
    rate, ends = sample["rate"], sample["interval_future"]
    between = "" if ends is None or ends["low"] is None else f"{percent(ends['low'])} to {percent(ends['high'])}"
    shown = "n/a" if rate is None else f"{percent(rate)} ({report['n_disagree']} of {n})"
    return name, _against(report["against"]), shown, between, percent(report["alarm"]["threshold"])


def _checked(reliability: Report | None) -> dict[str, Report]:
    """Judges with a spot check; others may have human labels or probes alone."""
    return {name: report for name, report in by_judge(reliability).items() if "spot_check" in report}


def _all_spot_checks(report: Report) -> list[Report]:
    return [report, *report.get("other_checks", ())]


def _rows(name: str, report: Report) -> Iterator[list[str]]:
    for found in _all_spot_checks(report):
        sample, alarm = found["spot_check"], found["alarm"]
        left = f", {sample['n_unscored']} without two verdicts" if sample["n_unscored"] else ""
        needed = alarm["n_to_decide"]
        decides = f", about {needed} pairs would decide" if needed is not None else ""
        yield [
            name,
            _against(found["against"]),
            f"{sample['n_scored']} pairs of {sample['n_population']} verdicts{left}",
            f"{found['n_disagree']} ({number(sample['rate'], 2)})",
            _between(sample["interval_this_run"]),
            _between(sample["interval_future"]),
            f"{alarm['status']} (threshold {alarm['threshold']:.2f}{decides})",
        ]


def _against(against: Report) -> str:
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
    yield f"{name}: {parts['exact_match']} equal, {_apart(report, parts)}"
    if shift["mean"] is not None:
        yield f"{name}: mean shift {shift['mean']:+.2f} (second - first), p {p_value(shift['p'])}"
    figures = [
        f"{label} {number(agreement[key]['value'], 2)}"
        + (f" ({_between(agreement[key])})" if agreement[key]["low"] is not None else "")
        for key, label in AGREEMENT
        if key in agreement
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
        line = _repeat_line(report.get(part), words)
        if line is not None:
            yield f"{name}: {line}"


def _apart(report: Report, parts: Report) -> str:
    """How the pairs that disagree are apart, in the words of the judge's kind of verdict."""
    words = report.get("words") or USUAL_WORDS
    flips = f"{parts['class_flip']} {words['flip']}"
    return f"{parts['gap_over_one']} {words['gap']}, {flips}, {parts['both']} both" if words["gap"] else flips


def confusion_table(report: Report) -> list[list[str]]:
    """Header and a row for each verdict of the judge, a column for each of the second opinion; empty for numbers."""
    found = report.get("confusion")
    if not found:
        return []
    rows = [[name, *map(str, counts)] for name, counts in zip(found["classes"], found["counts"], strict=True)]
    return [["verdict, then second", *found["classes"]], *rows]


def _repeat_line(found: Report | None, words: str) -> str | None:
    """How many verdicts flip if the judge itself is asked again; None if that is not known."""
    if found is None or found["flip_rate"] is None:
        return None
    return (
        f"{words}, {found['n_flips']} of {found['n']} verdicts flip "
        f"({found['flip_rate']:.2f}, 95% {_between(found['interval'])}), {found['n_changed']} change at all"
    )


def _pairs(report: Report) -> list[tuple[str, str, str, str, str]]:
    return [
        (
            pair["case_id"],
            said_text(pair["first"]),
            said_text(pair["second"]),
            pair["first_reasoning"],
            pair["second_reasoning"],
        )
        for pair in report["disagreements"][:MOST_PAIRS]
    ]


def spot_check_parts(report: Report) -> dict[str, Any]:
    """The parts `identity`, `spot_checks`, `agreement`, `confusion` and `floor` of a judge for the page, if any."""
    agreement = report.get("agreement")
    repeats = [_repeat_line(report.get(part), words) for part, words in REPEATS.items()]
    return {
        "identity": _identity(report.get("identity")),
        "spot_checks": [
            _page_spot_check(item) for item in (report, *(report.get("other_checks") or ())) if "against" in item
        ],
        "agreement": {**agreement_rows(agreement, AGREEMENT), "n": agreement["n"]} if agreement else None,
        "confusion": confusion_table(report),
        "floor": " ".join(f"The same judge, {line}." for line in repeats if line is not None) or None,
    }


def _page_spot_check(found: Report) -> dict[str, Any]:
    """One spot check; one without its sample has plain figures only."""
    sample, alarm = found.get("spot_check") or {}, found.get("alarm") or found
    rate = found.get("disagreement_rate")
    here, future = sample.get("interval_this_run"), sample.get("interval_future") or found.get("interval")
    drawn = here or future or {}
    return {
        "against": _against(found["against"]),
        "prompt_sha256": found["against"].get("prompt_sha256") or "",
        "status": alarm["status"],
        "kind": STATUS_BADGES.get(alarm["status"], "warn"),
        "rate": number(rate),
        "bar": share_bar(rate, (drawn.get("low"), drawn.get("high")), 1.0, alarm["threshold"]),
        "this_run": ends_text(here),
        "future": ends_text(future),
        "threshold": f"{alarm['threshold']:.2f}",
        "n_to_decide": alarm.get("n_to_decide"),
        "n": found["spot_check_n"],
        "n_population": sample.get("n_population"),
        "n_unscored": found.get("n_unscored") or 0,
        "notes": list(_page_notes(found, sample, alarm)),
    }


def _page_notes(found: Report, sample: Report, alarm: Report) -> Iterator[str]:
    parts, shift = sample.get("parts"), sample.get("shift") or {}
    if parts:
        yield f"{found['n_disagree']} disagree: {_apart(found, parts)}; {parts['exact_match']} are equal"
    if shift.get("mean") is not None:
        yield f"mean shift {shift['mean']:+.2f} (second less first), p {p_value(shift['p'])}"
    if sample.get("design"):
        yield f"{sample['design']}, seed {sample['seed']}"
    adaptive = alarm.get("adaptive")
    if adaptive is not None:
        decided = adaptive["decided"]
        yield f"drawn until decided: {f'the rate is {decided} the threshold' if decided else 'open'}"


def _identity(found: Report | None) -> list[tuple[str, str, str]]:
    """(what, judge, second opinion) of the instruments of a spot check."""
    if not found:
        return []
    judge, other = (_instrument(found.get(who) or {}) for who in ("judge", "comparator"))
    return [
        (what, judge[what] or "not known", other[what] or "not known")
        for what in judge
        if what != "upstream" or judge[what] or other[what]
    ]


def _instrument(item: Report) -> dict[str, str]:
    """What is known of one of the two, in words."""
    version, accepted = item.get("prompt_version"), item.get("temperature_accepted")
    temperature = f"{item.get('temperature')}, {'accepted' if accepted else 'refused by the server'}"
    return {
        "model asked for": str(item.get("model") or ""),
        "served as": counted_names(item.get("served_models")),
        "fingerprint": counted_names(item.get("fingerprints")),
        "upstream": counted_names(item.get("upstreams")),
        "prompt": f"{version}, sha256 {str(item.get('prompt_sha256') or '')[:12]}" if version else "",
        "temperature": "" if accepted is None else temperature,
        "parser": ", ".join(map(str, item.get("parser_versions") or ())),
    }
