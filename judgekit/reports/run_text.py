"""What `judgekit init`, `run`, `score`, `rescore` and `runs` print."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgekit.core.case_parts import cases_text
from judgekit.core.runs import REPORT, RunSummary
from judgekit.core.scores import Estimate
from judgekit.reports.figures import (
    coverage,
    direction,
    finding_lines,
    gate_lines,
    instrument_lines,
    interval,
    interval_text,
    number,
    shown,
    small_slices_line,
    sources_text,
    value_text,
)
from judgekit.reports.headline import figures_with_data, headline
from judgekit.reports.preference_text import preference_lines
from judgekit.reports.repeats_report import repeat_lines
from judgekit.reports.run_sentence import run_sentence, run_title
from judgekit.reports.safe_text import printable, printable_line
from judgekit.reports.tables import aligned

if TYPE_CHECKING:
    from rich.console import RenderableType

HEADER = ("figure", "value", "95% interval", "better", "cases")
SCORE_HEADER = ("figure", "value", "95% interval", "cases")
RUNS_HEADER = ("run", "suite", "when", "status", "cases", "figures", "tags")
SHOWN_AFTER_JUDGES = ("recall_any@5", "hit@5", "extraction_f1", "abstention_accuracy")
MOST_FIGURES = 3
"""Figures of a run in the table of runs."""

NEW_NOTICES = ("code_changed", "internal_error", "index_not_written", "index_damaged")
"""Codes of warnings of rescoring itself."""

_MOST_NOTES = 4
"""Gates and warnings that are shown without `--stats`; failed ones come first."""

_NAME_WIDTH = 28
_EXAMPLE_WIDTH = 48


def plain_text(summary: RunSummary, *, stats: bool = False) -> str:
    """The summary of a run: a sentence, the headline figures, gates and warnings.

    Args:
        summary: the figures.
        stats: whether to add every other figure, the instruments, latency and cost.
    """
    lines = [*_lead(summary), "", *aligned([HEADER, *_rows(summary, stats=stats)]), ""]
    return "\n".join([*lines, *(line for _, line in _notes(summary, stats=stats))])


def rich_table(summary: RunSummary, *, stats: bool = False) -> "RenderableType":
    """The same for a colour terminal; foreign text is never read as markup."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(HEADER):
        table.add_column(name, justify="right" if place == 1 else "left", no_wrap=place < 2)
    for name, value, ends, better, cases in _rows(summary, stats=stats):
        table.add_row(Text(name), Text(value, style="bold"), Text(ends), Text(better), Text(cases))
    styles = {"plain": "", "good": "green", "bad": "yellow"}
    first, *others = _lead(summary)
    lead = [Text(first, style="bold"), *map(Text, others), Text("")]
    notes = [Text(line, style=styles[kind]) for kind, line in _notes(summary, stats=stats)]
    return Group(*lead, table, Text(""), *notes)


def places_text(folder: Path, *, has_report: bool) -> str:
    """Where to read on: the last line is the run folder."""
    look = f"report: {folder / REPORT}; all runs: judgekit view" if has_report else "all runs: judgekit view"
    return f"\n{printable_line(look)}\n{folder}"


def recorded_text(found: Mapping[str, Any]) -> str:
    """What `judgekit record` prints.

    Args:
        found: `run_id`, `run_dir` and `n_cases`, and `system` as of manifest.json.
    """
    system, n_cases = found["system"], found["n_cases"]
    if not system:
        return f"The outputs of {n_cases} cases were recorded before; nothing was asked.\n\n{found['run_dir']}"
    failures = system["failures"]
    n_failed = sum(failures.values())
    first = f"{system['name']} answered {n_cases - n_failed} of {n_cases} cases"
    if n_failed:
        first += f"; {n_failed} failed ({', '.join(f'{kind} {n}' for kind, n in failures.items())})"
    lines = [f"{first}. No judge was asked yet."]
    if system["n_from_cache"]:
        lines.append(f"from the cache: {system['n_from_cache']}, version {system['version']}")
    lines += [f"outputs: {found['run_dir']}/outputs.jsonl", f"judge them: judgekit run --resume {found['run_dir']}"]
    return "\n".join(map(printable_line, lines))


def _lead(summary: RunSummary) -> list[str]:
    """What the run found, in a sentence or two; before that which answers a judge of preference finds better."""
    return [printable_line(f"{run_title(summary)}: {run_sentence(summary)}")]


def _rows(summary: RunSummary, *, stats: bool) -> list[tuple[str, ...]]:
    figures = dict(headline(summary))
    if stats:
        figures |= dict(figures_with_data(summary))
    return [
        (
            printable_line(name),
            value_text(figure, scale := summary.scales.get(name)),
            interval_text(figure, scale),
            direction(scale),
            coverage(figure),
        )
        for name, figure in figures.items()
    ]


def _notes(summary: RunSummary, *, stats: bool) -> list[tuple[str, str]]:
    """(kind, line) below the table; kind is `plain`, `good` or `bad`."""
    told = [*preference_lines(summary)[1 : None if stats else 2], *repeat_lines(summary)]
    told += [*instrument_lines(summary), small_slices_line(summary) or ""] if stats else finding_lines(summary)
    found = [("plain", line) for line in told if line]
    gates = [
        (
            "plain" if state is None else "good" if state == "passed" else "bad",
            line if state is None else f"gate: {line}",
        )
        for state, line in gate_lines(summary)
    ]
    warnings = [("bad", f"warning: {item.message} [{item.code}]") for item in summary.warnings]
    for lines, noun in ((gates, "gates"), (warnings, "warnings")):
        lines.sort(key=lambda item: item[0] != "bad")
        most = len(lines) if stats or len(lines) <= _MOST_NOTES + 1 else _MOST_NOTES
        found += lines[:most]
        if most < len(lines):
            found.append(("plain", f"{len(lines) - most} more {noun}: --stats"))
    shown = dict(headline(summary))
    n_more = sum(name not in shown for name, _ in figures_with_data(summary))
    if n_more and not stats:
        found.append(("plain", f"{n_more} more figures, judges, latency and cost: --stats, or metrics.json"))
    return [(kind, printable_line(line)) for kind, line in found]


def score_text(figures: Mapping[str, Estimate | Mapping[str, int]], files: Mapping[str, Mapping[str, Any]]) -> str:
    """What `judgekit score` read, and each figure that has data with its interval and the cases it rests on.

    Args:
        figures: by name.
        files: `cases` and `outputs`, each with path, sha256 and n.
    """
    lines = [
        printable(f"{kind}: {record['n']:,} in {record['path']} (sha256 {record['sha256'][:12]})")
        for kind, record in files.items()
    ]
    rows = [
        (name, shown(figure), interval(figure), coverage(figure))
        for name, figure in figures.items()
        if isinstance(figure, Estimate) and figure.n + figure.n_error > 0
    ]
    counted = [
        f"{name}: {', '.join(f'{key}: {n}' for key, n in figure.items())}"
        for name, figure in figures.items()
        if not isinstance(figure, Estimate)
    ]
    return "\n".join([*lines, "", *aligned([SCORE_HEADER, *rows]), *counted])


def dry_run_text(dry_run: Mapping[str, Any]) -> str:
    """What a run would take, in a few lines: cases, calls, tokens, cost, by judge."""
    lines = [f"{cases_text(dry_run['cases'])}, {dry_run['n_calls']:,} model calls, no call was made"]
    for kind, records in (("judge", dry_run["judges"]), ("spot check of", dry_run["spot_checks"])):
        for name, record in records.items():
            left_out = sum(record["not_judged"].values())
            lines.append(f"  {kind} {name}: {record['n_inputs']} inputs, {left_out} cases not judged, {_calls(record)}")
    for name, record in dry_run["repeats"].items():
        calls = "at most " if record["n_cached"] is None else ""
        which = f"{record['n_older']} verdicts older than a day" if not calls else "verdicts older than a day"
        lines.append(f"  judge {name} asked again: {which}, {calls}{record['n_calls']:,} calls to {record['model']}")
    lines.append(
        f"about {dry_run['prompt_tokens']:,} prompt tokens, "
        f"at most {dry_run['completion_tokens_at_most']:,} completion tokens"
    )
    if dry_run["usd_at_most"] is None:
        models = ", ".join(dry_run["unpriced_models"])
        lines.append(f"cost: null, the price of {models} is not known; models.<id>.prices sets it")
    elif dry_run["price_sources"]:
        named = sources_text(dry_run["price_sources"], dry_run["price_list"])
        lines.append(f"cost: at most {dry_run['usd_at_most']:.4f} USD{named}")
    for name, factor in dry_run["batch_price_factors"].items():
        lines.append(f"model {name} is asked by batch, at {factor:g} of its price")
    lines += [f"warning: {message} [{code}]" for code, message in dry_run["warnings"]]
    return printable("\n".join(lines))


def _calls(record: Mapping[str, Any]) -> str:
    if not record["n_calls"] and not record["n_cached"]:
        return "embedded, no calls"
    if record["n_cached"] is None:
        known = "; the server is not pinned, so what is cached is not known"
    else:
        known = f", {record['n_cached']:,} answered from the cache" if record["n_cached"] else ""
    return f"{record['n_calls']:,} calls to {record['model']}{known}"


def rescored_text(found: Mapping[str, Any]) -> str:
    """Of what `judgekit rescore --json` prints of a run: versions, each changed figure, and gates."""
    changes = found["changes"]
    how_many = {0: "no figure changed", 1: "1 figure changed"}.get(len(changes), f"{len(changes)} figures changed")
    versions = f"{found['old_version']} -> {found['new_version']}"
    lines = [f"{found['run_id']}: {how_many} ({versions}; stored verdicts kept)"]
    lines += aligned([(f"  {item['name']}", f"{_figure(item['old'])} -> {_figure(item['new'])}") for item in changes])
    lines += [f"  gate: {gate['message']}" for gate in found["gates"]]
    lines += [
        f"  warning: {item['message']} [{item['code']}]" for item in found["warnings"] if item["code"] in NEW_NOTICES
    ]
    return "\n".join(map(printable_line, lines))


def _figure(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return "absent"
    failed = f", {figure['n_error']} failed" if figure.get("n_error") else ""
    return f"{number(figure['value'], 4)} ({figure['n']}{failed})"


def runs_text(runs: Sequence[Mapping[str, Any]]) -> str:
    """The table of runs, from what `judgekit runs list --json` prints, or a line that says that there is no run."""
    return "\n".join(aligned([RUNS_HEADER, *map(_run_cells, runs)])) if runs else "no runs"


def _run_cells(run: Mapping[str, Any]) -> tuple[str, ...]:
    """One run; of its figures those of judges first, then of retrieval."""
    figures, n_cases, n_in_file = run["figures"], run["n_cases"], run["n_cases_in_file"]
    judges = [name for name in figures if f"{name}_pass_rate" in figures]
    wanted = [name for name in (*judges, *SHOWN_AFTER_JUDGES) if name in figures and figures[name][1]]
    shown_figures = [f"{name} {number(figures[name][0])} ({figures[name][1]})" for name in wanted[:MOST_FIGURES]]
    status = run["status"] if run["folder_exists"] else f"{run['status']}, folder gone"
    when = run["created_at"][:16].replace("T", " ")
    cases = f"{n_cases} of {n_in_file}" if n_in_file is not None and n_cases < n_in_file else str(n_cases)
    cells = (run["run_id"], run["suite"], when, status, cases, ", ".join(shown_figures), ", ".join(run["tags"]))
    return tuple(map(printable_line, cells))


def columns_text(title: str, columns: Sequence[tuple[str, str | None, str]], notes: Sequence[str]) -> str:
    """What `judgekit init --from` says of a data file; names and examples are foreign text, cut to one line each.

    Args:
        title: what was looked at.
        columns: name, what it is taken for (None: metadata), example.
        notes: what to look at.
    """
    rows = [("  column", "taken for", "example")]
    rows += [
        (f"  {_short(name, _NAME_WIDTH)}", taken_for or "metadata", _short(example, _EXAMPLE_WIDTH))
        for name, taken_for, example in columns
    ]
    return "\n".join([printable(title), *aligned(rows), *(f"look at: {_short(note, 400)}" for note in notes)])


def _short(text: str, width: int) -> str:
    one_line = " ".join(printable(text).split())
    return one_line if len(one_line) <= width else f"{one_line[: width - 3]}..."
