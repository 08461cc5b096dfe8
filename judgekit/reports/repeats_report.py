"""Answers that differ, in text and pages: where the variance lies, how reliably cases pass, what more calls buy."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgekit.core.repeats import ALL_PASS, ANY_PASSES, pass_figure
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.reports.charts import stacked_bar
from judgekit.reports.figures import between, number
from judgekit.reports.headline import is_headline, main_figures
from judgekit.reports.tables import bullets, cell, section, table

MOST_LINES = 3
"""Figures of which the text says how much their answers differ."""

MOST_CASES = 0.8
"""Share of the cases that must have k answers for their pass^k to be printed."""

FEWEST_ADVISED = 10
"""Below so many cases the variances are too uncertain to spend 1,000 calls on."""

MOST_LISTED = 3
"""Figures of which the cases are listed whose answers differ."""

MOST_PASSED = 8
"""Rows of the table of pass^k."""

MOST_K = 6
"""Columns of that table."""

SOURCES = ("case", "system", "system and judge", "judge")
"""Where variance comes from, in the order in which it is shown."""

PASS_HELP = (
    "pass^k: all of k answers to a case pass; pass@k: at least one of k does. The first says how far you can rely on "
    "the system, the second what it can do at its best, so they part as k grows."
)

TITLE = "Answers that differ"

VARIANCES = "Share of the variance (the variance, its 95% interval)"

Cell = tuple[str, str]
"""What a cell shows, and what stands below it."""


def repeat_lines(summary: RunSummary) -> list[str]:
    """A few lines below the figures that are printed; none if each case has one answer."""
    if summary.repeats is None:
        return []
    names = _shown(summary)
    lines = [_variance_line(name, summary.repeats["figures"][name]) for name in names[:MOST_LINES]]
    for name, found in list(_passed(summary).items())[:MOST_LINES]:
        k = max(k for k, (figure, _) in found.items() if figure.n >= MOST_CASES * found[1][0].n)
        all_of, one_of = (_with_interval(figure) for figure in found[k])
        lines.append(
            f"{name}: pass^{k} {all_of}, all of {k} answers to a case; pass@{k} {one_of}, at least one of them"
        )
    advice = _advice(summary)
    return [*lines, *([advice] if advice else [])]


def repeats_section(summary: RunSummary) -> list[str]:
    """The section of summary.md; nothing if each case has one answer."""
    part = repeats_part(summary)
    if part is None:
        return []
    parts = [part["counts"], *(["", cell(part["advice"])] if part["advice"] else [])]
    if part["rows"]:
        rows = [[f"`{cell(row['name'])}`", *map(_joined, row["cells"])] for row in part["rows"]]
        parts += ["", f"{VARIANCES}:", "", *table(_HEADER, rows)]
    if part["passed"]:
        rows = [[f"`{cell(name)}`", *map(_joined, cells)] for name, cells in part["passed"]]
        parts += ["", PASS_HELP, "", *table(["passes", *part["pass_header"]], rows)]
    notes = bullets(part["notes"])
    return section(TITLE, [*parts, *(["", *notes] if notes else [])])


def _joined(found: Cell) -> str:
    value, under = found
    return f"{value} ({under})" if under else value


def repeats_part(summary: RunSummary) -> dict[str, Any] | None:
    """What report.html shows, and summary.md in part; None if each case has one answer."""
    if summary.repeats is None:
        return None
    figures = summary.repeats["figures"]
    names = _shown(summary)
    passed = _passed(summary)
    ks = _columns(passed)
    listed = [name for name in dict.fromkeys([*passed, *names]) if name in figures and figures[name]["differ"]["n"]]
    advice = _advice(summary)
    return {
        "title": TITLE,
        "counts": _counts(summary.repeats),
        "advice": advice and f"{advice[0].upper()}{advice[1:]}.",
        "variances": VARIANCES,
        "header": _HEADER,
        "rows": [
            {"name": name, "bar": stacked_bar(_shares(figures[name])), "cells": _cells(figures[name])} for name in names
        ],
        "sources": [source for source in SOURCES if any(source in figures[name]["components"] for name in names)],
        "pass_header": [*(f"pass^{k}" for k in ks), *(f"pass@{k}" for k in ks[1:])],
        "passed": [(name, _pass_cells(found, ks)) for name, found in passed.items()],
        "pass_help": PASS_HELP,
        "notes": _notes(figures, names),
        "differ": [
            {
                "name": name,
                "n": figures[name]["differ"]["n"],
                "cases": list(map(_case, figures[name]["differ"]["cases"])),
            }
            for name in listed[:MOST_LISTED]
        ],
    }


_HEADER = ["figure", "case", "system", "judge", "generalizability", "two runs differ by", "cases that differ"]


def _shown(summary: RunSummary) -> list[str]:
    """The main figures of which a case has two answers."""
    figures = {} if summary.repeats is None else summary.repeats["figures"]
    return [name for name, _ in main_figures(summary) if name in figures]


def _counts(repeats: Mapping[str, Any]) -> str:
    by_answers = repeats["cases_by_answers"]
    if len(by_answers) == 1:
        return f"{repeats['n_cases']} cases, {next(iter(by_answers))} answers each."
    counted = ", ".join(f"{count} with {n}" for n, count in by_answers.items())
    return f"{repeats['n_answers']} answers to {repeats['n_cases']} cases ({counted})."


def _shares(found: Mapping[str, Any]) -> list[tuple[str, float]]:
    """By source, its share; none if they are not known."""
    parts = found["components"]
    return [(name, parts[name]["share"]) for name in SOURCES if name in parts and parts[name]["share"] is not None]


def _variance_line(name: str, found: Mapping[str, Any]) -> str:
    differ = f"the answers to {found['differ']['n']} of {found['n_cases']} cases differ"
    shares = _shares(found)
    if not shares:
        same = all(part["variance"] == 0 for part in found["components"].values())
        return f"{name}: {'all answers have the same score' if same else f'variances are not known; {differ}'}"
    below = {source for source, _ in shares if found["components"][source]["estimate"] < 0}
    parts = (f"{share:.0%} {source}{' (estimated below 0)' if source in below else ''}" for source, share in shares)
    return f"{name}: variance {', '.join(parts)}; {differ}"


def _cells(found: Mapping[str, Any]) -> list[Cell]:
    """The cells of one figure behind its name."""
    parts = found["components"]
    if "system and judge" in parts:
        share, variance = _component(parts["system and judge"])
        told = [_component(parts["case"]), (f"{share} with the judge", variance), ("not known", "")]
    else:
        told = [_component(parts["case"]), _component(parts["system"])]
        told.append(_component(parts["judge"]) if "judge" in parts else ("none", ""))
    coefficient, same = found["generalizability"], found["same_system"]
    value = coefficient["value"]
    return [
        *told,
        (number(value if value is None else max(0.0, value), 2), between(coefficient["low"], coefficient["high"])),
        ("n/a" if same is None else f"±{number(same)}", ""),
        (f"{found['differ']['n']} of {found['n_cases']}", ""),
    ]


def _component(part: Mapping[str, Any]) -> Cell:
    if part["share"] is None:
        return "n/a", ""
    ends = between(part["low"], part["high"])
    return f"{part['share']:.0%}", f"{number(part['variance'])}{f', {ends}' if ends else ''}"


Passed = dict[int, tuple[Estimate, Estimate]]
"""By k: pass^k and pass@k."""


def _passed(summary: RunSummary) -> dict[str, Passed]:
    """By figure what passes: those of judges, then others of the first screen in which answers to a case differ."""
    found: dict[str, Passed] = {}
    for name in summary.overall:
        part = pass_figure(name)
        if part is None or f".{ALL_PASS}" not in name or not is_headline(part[0]):
            continue
        both = summary.overall[name], summary.overall.get(f"{part[0]}.{ANY_PASSES}{part[1]}")
        if isinstance(both[0], Estimate) and isinstance(both[1], Estimate) and both[0].value is not None:
            found.setdefault(part[0], {})[part[1]] = both[0], both[1]
    first = [name for name in found if name.startswith(tuple(summary.judges))]
    figures = (summary.repeats or {}).get("figures", {})
    others = [name for name in found if name not in first and name in figures and figures[name]["differ"]["n"]]
    return {name: dict(sorted(found[name].items())) for name in [*first, *others][:MOST_PASSED]}


def _columns(passed: Mapping[str, Passed]) -> list[int]:
    """Each k that is shown: the smallest ones, and the largest."""
    ks = sorted({k for found in passed.values() for k in found})
    return ks if len(ks) <= MOST_K else [*ks[: MOST_K - 1], ks[-1]]


def _pass_cells(found: Passed, ks: Sequence[int]) -> list[Cell]:
    figures = [found[k][place] if k in found else None for place in (0, 1) for k in ks[place:]]
    return [("n/a", "") if item is None else (number(item.value), between(item.low, item.high)) for item in figures]


def _with_interval(figure: Estimate) -> str:
    ends = between(figure.low, figure.high)
    return f"{number(figure.value)}{f' ({ends})' if ends else ''}"


def _notes(figures: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """What a reader of the variances must know; what holds for several figures is said once."""
    by_note: dict[str, list[str]] = {}
    for name in names:
        for note in figures[name]["notes"]:
            by_note.setdefault(note, []).append(name)
    return [f"{', '.join(of)}: {note}" for note, of in by_note.items()]


def _advice(summary: RunSummary) -> str | None:
    """One sentence on what the next calls should buy, for the first main figure of which that is known."""
    figures = {} if summary.repeats is None else summary.repeats["figures"]
    for name in _shown(summary):
        found = figures[name]["next_calls"]
        if found is not None and figures[name]["n_cases"] >= FEWEST_ADVISED:
            return _sentence(name, found)
    return None


def _sentence(name: str, found: Mapping[str, Any]) -> str:
    best = found["best"]
    others = "; ".join(f"{what} would leave ±{number(option['half_width'])}" for what, option in _options(found, best))
    [(first, option)] = [item for item in _options(found, None) if item[1] is found[best]]
    cost = "" if not option["judge_usd"] else f", for which the judges take about {option['judge_usd']:.2f} USD"
    return (
        f"spend the next {found['n_calls']:,} calls on {first}: the 95% interval of {name} goes from "
        f"±{number(found['half_width'])} to ±{number(option['half_width'])}{cost}; {others}"
    )


def _options(found: Mapping[str, Any], without: str | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    words = {
        "cases": "new cases",
        "answers": "more answers to the same cases",
        "verdicts": "more verdicts on the same answers",
    }
    for key, what in words.items():
        if found[key] is not None and key != without:
            each = f" with {found['answers_each']:g} answers each" if key == "cases" else ""
            yield f"{found[key]['n']:,} {what}{each}", found[key]


def _case(found: Mapping[str, Any]) -> dict[str, Any]:
    """One case whose answers differ: how many of them pass, or the range of their scores."""
    text = f"{number(found['low'], 2)} to {number(found['high'], 2)}, mean {number(found['mean'], 2)}"
    if found["n_passed"] is not None:
        text = f"{found['n_passed']} of {found['n']} pass"
    return {"case_id": found["case_id"], "text": text}
