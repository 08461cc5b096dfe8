"""report.html: one run as one page that needs nothing else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from judgekit.core.case_parts import cases_text, part_of
from judgekit.core.conditions import GateState
from judgekit.core.kind import Kind, said_text
from judgekit.core.prompts import PromptTemplate
from judgekit.core.repeats import pass_figure
from judgekit.core.runs import CaseRecord, Manifest, RunSummary
from judgekit.core.scores import SUM_METHOD, Estimate
from judgekit.reports.case_data import CaseData
from judgekit.reports.case_details import CaseViewer
from judgekit.reports.charts import share_bar, span_bar
from judgekit.reports.figure_changes import change_part, run_before
from judgekit.reports.figures import (
    Figures,
    by_judge,
    cost_line,
    direction,
    gate_lines,
    if_failed,
    indexing_lines,
    interval_text,
    money_text,
    number,
    reliability_line,
    tokens_text,
    value_text,
)
from judgekit.reports.headline import figures_with_data, main_figures, slice_figures
from judgekit.reports.judge_questions import kinds_of
from judgekit.reports.page_judges import bridge_part, judge_blocks, rejudged_text
from judgekit.reports.pages import render
from judgekit.reports.repeats_report import repeats_part
from judgekit.reports.run_sentence import run_sentence
from judgekit.reports.safe_text import inert
from judgekit.reports.worst_cases import Shown

HEAT_LEVELS = 8
"""Shades of a slice table."""

OPENED_SCORES = 5
"""Score columns that the table of cases shows before its reader picks others."""


_NOTICES: dict[GateState | None, str] = {"missed": "bad", "undecided": "warn", "passed": "good"}
"""Kinds of notice by state, what needs a reader first."""

Kinds = Mapping[str, Kind]
"""Kinds of verdict by judge."""


@dataclass(frozen=True)
class RunRecord:
    """What a report is made of, apart from the cases themselves."""

    manifest: Manifest
    config: Mapping[str, Any]
    """config.json; empty if it is missing."""
    summary: RunSummary | None
    """The figures; None if the run has not written any."""
    prompts: Mapping[str, PromptTemplate]
    n_cases: int
    judged: Mapping[str, tuple[int, int]]
    """By judge: cases with a judgment, and cases with a judge input."""
    viewer: CaseViewer
    score_names: Sequence[str]
    """Names of all scores of the run, in the order of scores.jsonl."""
    histories: Sequence[Mapping[str, Any]] = ()
    """Drift reports of its judges, as documents."""
    trends: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By figure that is shown large: this run and those before it, as documents."""
    bridge: Mapping[str, Any] | None = None
    """bridge.json, if there is one."""
    shown: Shown | None = None
    """The cases that the page has, of a run that is too large for all."""

    @property
    def kinds(self) -> Kinds:
        """Of the judges whose wording says it."""
        return {} if self.summary is None else kinds_of(self.summary, self.prompts)


def render_report(record: RunRecord, cases: Iterable[CaseRecord]) -> Iterator[str]:
    """The page as pieces of text; cases are taken one by one while it is written."""
    columns = _columns(record)
    dimensions = [] if record.summary is None else list(record.summary.slices)
    data = CaseData(record.viewer, _n_rows(record), columns, dimensions)

    def packed() -> Iterator[Markup]:
        for block in data.blocks(cases):
            yield Markup(block)  # noqa: S704  # base64

    def index() -> Markup:
        return Markup(data.index(_for_script(record, columns)))  # noqa: S704  # escaped by `embedded`

    yield from render("report.html", {**_context(record), "blocks": packed(), "index": index}, "report.js")


def _n_rows(record: RunRecord) -> int:
    return record.n_cases if record.shown is None else len(record.shown.case_ids)


def in_order(summary: RunSummary, score_names: Sequence[str]) -> RunSummary:
    """The figures in the order of the scores that begin their names, not of the alphabet as metrics.json has them."""
    places = {name: place for place, name in enumerate(score_names)}

    def place(name: str) -> tuple[int, str]:
        beginnings = (name[:end] for end in range(len(name), 0, -1))
        return next((places[part] for part in beginnings if part in places), len(places)), name

    overall = {name: summary.overall[name] for name in sorted(summary.overall, key=place)}
    return summary.model_copy(update={"overall": overall})


def _context(record: RunRecord) -> dict[str, Any]:
    """Everything that the page shows without its script."""
    summary, manifest, kinds = record.summary, record.manifest, record.kinds
    context: dict[str, Any] = {
        "title": f"{manifest.name}: {manifest.status}",
        "manifest": manifest,
        "when": manifest.created_at[:16].replace("T", " "),
        "partial": _partial(record),
        "n_cases": record.n_cases,
        "cases_text": cases_text(_cases(record)),
        "n_rows": _n_rows(record),
        "shown": record.shown,
        "has_figures": summary is not None,
        "pinned": _pinned(record),
        "prompts": [(name, prompt) for name, prompt in record.prompts.items()],
        "gates": [],
        "warnings": [],
    }
    if summary is None:
        return context
    all_figures = _all_figures(summary)
    blocks = judge_blocks(summary, record.histories, record.prompts)
    not_called = not summary.cost["n_calls"] and not summary.cost["n_from_cache"]
    return context | {
        "gates": sorted(
            ((_NOTICES.get(state, "plain"), line) for state, line in gate_lines(summary)),
            key=lambda gate: [*_NOTICES.values(), "plain"].index(gate[0]),
        ),
        "before": next((run for trend in record.trends.values() if (run := run_before(trend))), None),
        "min_n": summary.min_n,
        "warnings": summary.warnings,
        "tiles": [
            _row(kinds, summary, name, figure) | change_part(summary, name, record.trends.get(name))
            for name, figure in main_figures(summary)
        ],
        "sentence": run_sentence(summary),
        "cost_line": f"{cost_line(summary)[0].upper()}{cost_line(summary)[1:]}.",
        "figures": [_row(kinds, summary, name, figure) for name, figure in all_figures if figure.n + figure.n_error],
        "n_without_data": sum(not figure.n + figure.n_error for _, figure in all_figures),
        "judges": list(summary.judges.items()),
        "reliability": reliability_line(summary.judge_reliability),
        "judge_blocks": blocks,
        "has_spot_checks": any(block["spot_checks"] for block in blocks),
        "rejudged": rejudged_text(summary),
        "bridge": bridge_part(record.bridge),
        "repeats": repeats_part(summary),
        "slices": [_slice(kinds, summary, dimension, values) for dimension, values in summary.slices.items() if values],
        "latency": _latency(summary),
        "cost": summary.cost,
        "tokens": "none" if not_called else tokens_text(summary.cost),
        "money": "no model was called" if not_called else money_text(summary.cost),
        "indexing": indexing_lines(summary.indexing_coverage),
        "extraction": summary.extraction,
    }


def _cases(record: RunRecord) -> Mapping[str, Any]:
    """How many cases there are, and which part of the file they are."""
    if record.summary is not None:
        return record.summary.cases
    n, n_in_file = record.n_cases, record.manifest.n_cases_in_file
    return {"n": n, "n_in_file": n_in_file, **part_of(record.manifest).record()}


def _partial(record: RunRecord) -> str | None:
    """What is missing from an unfinished run; None if the run is complete."""
    manifest = record.manifest
    if manifest.status == "complete":
        return None
    why = f" ({manifest.reason})" if manifest.reason else ""
    judged = "; ".join(
        f"{judge}: {done} of {asked} judged" for judge, (done, asked) in record.judged.items() if done < asked
    )
    figures = "The figures are of what was judged so far." if record.summary is not None else "It has no figures yet."
    state = "running, or was killed" if manifest.status == "running" else manifest.status
    done = f" {judged[0].upper()}{judged[1:]}." if judged else ""
    return f"Partial: this run is {state}{why}.{done} {figures} Resume it with: judgekit run --resume {manifest.run_id}"


def _row(kinds: Kinds, summary: RunSummary, name: str, figure: Estimate) -> dict[str, Any]:
    low, top = (0.0, 0.0) if figure.method == SUM_METHOD else _bounds(kinds, summary, name, figure)
    scale = summary.scales.get(name)
    return {
        "name": name,
        "value": value_text(figure, scale),
        "interval": interval_text(figure, scale),
        "better": direction(scale),
        "bar": share_bar(figure.value, (figure.low, figure.high), top, bottom=low),
        "n": figure.n,
        "small": figure.small and figure.n > 0,
        "n_not_applicable": figure.n_not_applicable,
        "n_error": figure.n_error,
        "if_failed": if_failed(figure),
        "method": figure.method,
    }


def _bounds(kinds: Kinds, summary: RunSummary, name: str, figure: Estimate | None = None) -> tuple[float, float]:
    """The ends of the scale on which a figure is drawn: of its judge's kind, else from 0 to what is known of it."""
    return kinds[name].bounds if name in kinds and kinds[name].is_ordered else (0.0, _top(summary, name, figure))


def _top(summary: RunSummary, name: str, figure: Estimate | None) -> float:
    """The end of a scale that begins at 0: of its judge's scale, else 1, else of the figure itself."""
    counts = summary.overall.get(f"{name}.distribution")
    if isinstance(counts, dict) and name in summary.judges:
        return float(max((int(key) for key in counts if key.isdigit()), default=1)) or 1.0
    largest = max((abs(end) for end in (figure.value, figure.high) if end is not None), default=0.0) if figure else 0.0
    return largest if largest > 1 else 1.0


def _all_figures(summary: RunSummary) -> list[tuple[str, Estimate]]:
    """Every figure that has no section of its own, those for one screen first."""
    every = {**dict(figures_with_data(summary)), **summary.overall, **summary.operational}
    return [
        (name, figure) for name, figure in every.items() if isinstance(figure, Estimate) and pass_figure(name) is None
    ]


def _slice(kinds: Kinds, summary: RunSummary, dimension: str, values: Mapping[str, Figures]) -> dict[str, Any]:
    names = slice_figures(summary, values)
    return {
        "dimension": dimension,
        "names": names,
        "rows": [
            (value, [_heat(kinds, summary, name, figures.get(name)) for name in names])
            for value, figures in values.items()
        ],
    }


def _heat(kinds: Kinds, summary: RunSummary, name: str, figure: Any) -> dict[str, Any]:
    if not isinstance(figure, Estimate) or figure.value is None:
        failed = f"{figure.n_error} failed" if isinstance(figure, Estimate) and figure.n_error else "n/a"
        return {"value": failed, "n": 0, "level": None, "interval": "", "small": False}
    low, top = _bounds(kinds, summary, name)
    share = min(max((figure.value - low) / (top - low), 0.0), 1.0)
    scale = summary.scales.get(name)
    return {
        "value": number(figure.value, 2) if scale is None else value_text(figure, scale).partition(" of ")[0],
        "n": figure.n,
        "small": figure.small,
        "level": min(HEAT_LEVELS - 1, int(share * HEAT_LEVELS)),
        "interval": interval_text(figure, scale),
    }


def _latency(summary: RunSummary) -> list[dict[str, Any]]:
    stages = [(stage, values) for stage, values in summary.latency.items() if values["n"]]
    longest = max((float(values["p95_ms"] or 0) for _, values in stages), default=0.0)
    return [
        {
            "stage": stage,
            "p50": _duration(values["p50_ms"]),
            "p95": _duration(values["p95_ms"]),
            "n": values["n"],
            "bar": span_bar(float(values["p50_ms"] or 0), float(values["p95_ms"] or 0), longest),
        }
        for stage, values in stages
    ]


def _duration(milliseconds: float | int | None) -> str:
    if milliseconds is None:
        return "n/a"
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 10_000 else f"{milliseconds:,.0f} ms"


def _pinned(record: RunRecord) -> list[tuple[str, str]]:
    """What the figures rest on: data, config, versions, seeds."""
    manifest, summary = record.manifest, record.summary
    resolved = record.config.get("resolved", {})
    cases = summary.cases if summary is not None else resolved.get("cases", {})
    rows = [
        ("cases", f"{cases.get('path', record.config.get('cases', ''))}, {cases_text(_cases(record))}"),
        ("cases sha256", str(cases.get("sha256", ""))),
        ("outputs sha256", str(resolved.get("outputs", {}).get("sha256", ""))),
        ("system", _system(manifest)),
        ("config sha256", manifest.config_sha256),
        *((f"{name} version", version) for name, version in manifest.versions.items()),
        ("seed", str(record.config.get("seed", ""))),
        (
            "failed cases",
            {"exclude": "left out and counted", "as_zero": "counted as the worst value"}.get(
                str(record.config.get("errors", "")), ""
            ),
        ),
    ]
    return [(name, value) for name, value in rows if value]


def _system(manifest: Manifest) -> str:
    """The live system and how it was asked; empty if the outputs were recorded before."""
    system = manifest.system
    if not system:
        return ""
    version = f", version {system['version']}" if system.get("version") else ""
    cached = f", {system['n_from_cache']} outputs from the cache" if system.get("n_from_cache") else ""
    return f"{system['name']}{version}, asked {system['n_requests']} times{cached}"


def _columns(record: RunRecord) -> list[str]:
    """Score names as the table offers them: judges first, those of the first screen next, other cut-offs last."""
    names = dict.fromkeys(record.score_names)
    kinds, summary = record.kinds, record.summary
    judged = [] if summary is None else [(name, kinds.get(name)) for name in summary.judges]
    scores = [score for name, kind in judged for score in (name, *(kind.label_columns(name) if kind else ()))]
    first = scores if summary is None else [*scores, *dict(figures_with_data(summary))]
    return [name for name in dict.fromkeys([*first, *names]) if name in names]


def _tints(record: RunRecord, columns: Sequence[str]) -> dict[str, tuple[float, float, int]]:
    """By score: the ends of its scale, and whether more of it is better (1) or worse (-1)."""
    summary = record.summary
    if summary is None:
        return {}
    found = {
        name: (scale.low, scale.high, 1 if scale.better == "higher" else -1)
        for name, scale in summary.scales.items()
        if scale.better is not None and scale.high is not None and scale.unit != "count"
    }
    for name in summary.judges:
        if name not in summary.scales and f"{name}.distribution" in summary.overall:
            found[name] = (*_bounds(record.kinds, summary, name), 1)  # of a run that has no scales
        found[f"{name}_pass"] = (0.0, 1.0, 1)
    return {name: found[name] for name in columns if name in found}


def _for_script(record: RunRecord, columns: Sequence[str]) -> dict[str, Any]:
    summary = record.summary
    reliability = {} if summary is None else by_judge(summary.judge_reliability)
    kinds = record.kinds
    judges = [] if summary is None else list(summary.judges)
    scales = {} if summary is None else {name: _bounds(kinds, summary, name) for name in judges}
    labels = {name: kind.label_columns(name) for name, kind in kinds.items()}
    judge_of = {score: name for name, scores in labels.items() for score in scores}
    tiles = [] if summary is None else [name for name, _ in main_figures(summary) if name in columns]
    return {
        "n_cases": record.n_cases,
        "opened": list(dict.fromkeys(judge_of.get(name, name) for name in [*tiles, *columns]))[:OPENED_SCORES],
        "labels": {
            name: [[inert(score), inert(label)[:120]] for score, label in scores.items()]
            for name, scores in labels.items()
            if scores
        },
        "words": {score: words for name, kind in kinds.items() for score, words in kind.score_words(name).items()},
        "scales": scales,
        "tints": _tints(record, columns),
        "system": {name: inert(prompt.system) for name, prompt in record.prompts.items()},
        "checks": {
            name: [
                {**entry, "case_id": inert(entry["case_id"])[:200], "check": report.get("check")}
                | {"shown": [inert(said_text(entry[side])) for side in ("first", "second")]}
                for entry in report.get("sample", [])
            ]
            for name, report in reliability.items()
        },
    }
