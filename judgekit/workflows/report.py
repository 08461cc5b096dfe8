"""`judgekit report`: a report of a stored run, from its folder to a page, a table, or a file for a CI server."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from judgekit.analysis.drift_states import drift_report, histories
from judgekit.analysis.run_trends import Trend, TrendRun
from judgekit.analysis.slices import slice_values
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ConfigError, JudgekitError, did_you_mean
from judgekit.core.history_points import dataset_sha256
from judgekit.core.human_labels import CALIBRATION, LABELS, HumanLabel, label_fields
from judgekit.core.runs import BRIDGE, CONFIG, JUDGE_INPUTS, JUDGMENTS, OUTPUTS, REPORT, SUMMARY, RunSummary
from judgekit.core.written_labels import read_written
from judgekit.metrics.gold_evidence import GoldSupports
from judgekit.reports.case_data import caps_for
from judgekit.reports.case_details import CaseViewer
from judgekit.reports.ci_servers import render_junit
from judgekit.reports.headline import main_figures
from judgekit.reports.inspect_scores import inspect_names, inspect_record
from judgekit.reports.judgment_table import COLUMNS, judgment_row
from judgekit.reports.markdown import render_markdown
from judgekit.reports.report_page import RunRecord, in_order, render_report
from judgekit.reports.score_table import ScoreTable
from judgekit.reports.worst_cases import MOST_ROWS, Shown, ranking, shown_cases
from judgekit.storage.database import DATABASE, Database
from judgekit.storage.label_files import read_labels
from judgekit.storage.run_files import disk_faults_named, replacing
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_list import figures_of_run
from judgekit.storage.run_records import read_summary
from judgekit.storage.stored_cases import StoredCases
from judgekit.storage.table_files import write_parquet
from judgekit.workflows.shared_results import write_shared
from judgekit.workflows.trend import rests_on

FORMATS = {
    "html": REPORT,
    "md": SUMMARY,
    "csv": "scores.csv",
    "parquet": "scores.parquet",
    "judgments": "judgments.parquet",
    "junit": "junit.xml",
    "inspect": "inspect_scores",
    "every-eval-ever": "every_eval_ever",
}
"""What a report can be, and the name that it gets in the run folder."""

FEWEST_POINTS = 2
"""Fewest points of a history that is shown."""

MOST_RUNS = 10
"""Runs that a figure is shown over: this one, and those before it."""

_LOOKED_THROUGH = 200
"""Newest runs of a suite among which the earlier ones are found."""

WAIT_SECONDS = 2.0
"""How long a report waits for a database that another process writes; it is written without its history then."""


def write_report(
    path: Path,
    form: str = "html",
    out: Path | None = None,
    columns: Sequence[str] = (),
    note: Callable[[str], None] = lambda _: None,
) -> Path:
    """Write a report of a stored run; an older one stays until the new one is complete.

    Args:
        path: the run folder.
        form: a key of `FORMATS`.
        out: the file to write; None: its usual name in the run folder.
        columns: of CSV, further columns by name, as `ScoreTable` takes them.
        note: is told what the reader of the report should know.

    Returns:
        The file written.

    Raises:
        ConfigError: no run there, an unknown format, or figures are asked of a run that has none.
        StorageError: the run is damaged, or the file cannot be written.
    """
    if form not in FORMATS:
        raise ConfigError(f"--format {form}: no such format{did_you_mean(form, FORMATS)}")
    if columns and form != "csv":
        raise ConfigError("--columns is for --format csv; leave it out")
    folder = RunFolder.open(path)
    target = out or folder.path / FORMATS[form]
    if form == "parquet":
        with StoredCases(folder) as cases:
            table = ScoreTable(cases.score_names(), cases)
            write_parquet(target, table.columns, map(table.row, cases))
        return target
    if form == "judgments":
        write_parquet(target, COLUMNS, map(judgment_row, folder.judgments()))
        return target
    if form == "every-eval-ever":
        return write_shared(folder, target)
    if form == "inspect":
        return _write_inspect(folder, target)
    with replacing(target) as stream:
        for piece in _csv_pieces(folder, columns, note) if form == "csv" else _pieces(folder, form):
            stream.write(piece.encode("utf-8", "replace"))
    return target


def _write_inspect(folder: RunFolder, target: Path) -> Path:
    """A file for each judge, in a folder."""
    with StoredCases(folder) as cases, ExitStack() as files:
        names = {judge: inspect_names(cases.score_names(), judge) for judge in cases.judged()}
        if not names:
            raise ConfigError(f"{folder.path}: this run has no judges; --format csv has the scores of its metrics")
        with disk_faults_named(target, "cannot be created"):
            target.mkdir(parents=True, exist_ok=True)
        streams = {judge: files.enter_context(replacing(target / f"{judge}.jsonl")) for judge in names}
        for record in cases:
            for judge, own in names.items():
                line = inspect_record(record, judge, own)
                if line is not None:
                    text = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
                    streams[judge].write(text.encode("utf-8", "replace"))
    return target


def _csv_pieces(folder: RunFolder, columns: Sequence[str], note: Callable[[str], None]) -> Iterator[str]:
    with StoredCases(folder) as cases:
        table = ScoreTable(cases.score_names(), cases, columns)
        yield "\ufeff"  # without it Excel takes the file for one of an older encoding
        yield from table.csv_lines(cases)
    if table.n_cut:
        texts = "1 text is" if table.n_cut == 1 else f"{table.n_cut} texts are"
        note(f"{texts} too long for a cell of Excel and end with [cut: ...]; --format parquet has all of it")


def _pieces(folder: RunFolder, form: str) -> Iterator[str]:
    if form == "html":
        yield from html_pieces(folder)
    elif form == "md":
        yield render_markdown(_figures(folder), folder.prompts())
    else:
        yield render_junit(folder.manifest(), read_summary(folder))


def _figures(folder: RunFolder) -> RunSummary:
    summary = read_summary(folder)
    if summary is None:
        raise ConfigError(
            f"{folder.path}: this run has no figures yet; resume it with: judgekit run --resume {folder.path.name}"
        )
    return summary


def html_pieces(folder: RunFolder) -> Iterator[str]:
    """report.html of a run, piece by piece.

    Raises:
        StorageError: the run is damaged.
    """
    with StoredCases(folder) as cases:
        summary = read_summary(folder)
        shown = shown_cases(cases.scores(), ranking(summary)) if cases.n_cases > MOST_ROWS else None
        record = _run_record(folder, cases, summary, shown)
        yield from render_report(record, cases.records(None if shown is None else shown.case_ids))


def _run_record(folder: RunFolder, cases: StoredCases, summary: RunSummary | None, shown: Shown | None) -> RunRecord:
    """What the page is made of."""
    config = folder.read_json(CONFIG) if folder.has(CONFIG) else {}
    mode = config.get("match", {}).get("snippets", "if_text")
    dimensions = [str(name) for name in config.get("slices", ())]
    prompts = folder.prompts()

    def matched(case: Case, output: SystemOutput) -> list[list[int]]:
        if not case.gold_supports:
            return [[] for _ in output.retrieved]
        supports = GoldSupports(case.gold_supports, mode)
        return [supports.matched_by(hit) for hit in output.retrieved]

    def slices(case: Case) -> dict[str, tuple[str, ...]]:
        found = {}
        for name in dimensions:
            with suppress(AttributeError):  # a dimension of a newer version
                found[name] = slice_values(case, name)
        return found

    n_stored = sum(_size(folder.path / name) for name in (OUTPUTS, JUDGE_INPUTS, JUDGMENTS))
    caps = caps_for(cases.n_cases if shown is None else len(shown.case_ids), n_stored)
    bridge = _document(folder, BRIDGE)
    return RunRecord(
        manifest=folder.manifest(),
        config=config,
        summary=summary and in_order(summary, cases.score_names()),
        prompts=prompts,
        n_cases=cases.n_cases,
        shown=shown,
        judged=cases.judged(),
        viewer=CaseViewer(caps, prompts, matched, slices, _human_labels(folder)),
        score_names=cases.score_names(),
        histories=_histories(folder, summary),
        trends=_trends(folder, summary),
        bridge=bridge if "judges" in bridge else None,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _histories(folder: RunFolder, summary: RunSummary | None) -> list[dict[str, Any]]:
    """Drift reports of the judges of a run, as documents, from the database beside it.

    Of the run's own wordings and data set. Empty if the database knows fewer than two points of a judge, or cannot be
    read: a report never fails for its history.
    """
    if summary is None or not summary.judges or not (folder.path.parent / DATABASE).exists():
        return []
    dataset = dataset_sha256(summary.cases["sha256"], folder.manifest())
    database = Database(folder.path.parent, busy_seconds=WAIT_SECONDS)
    found = []
    try:
        for judge, about in summary.judges.items():
            points = [
                item for item in database.points(judge, dataset) if item.prompt_version == about["prompt_version"]
            ]
            found += [drift_report(history).document() for history in histories(points)]
    except JudgekitError:
        return []
    return [document for document in found if len(document["timeline"]) >= FEWEST_POINTS]


def _trends(folder: RunFolder, summary: RunSummary | None) -> dict[str, dict[str, Any]]:
    """The figures shown large over this run and the last ones of its suite before it, as documents of trends.

    Empty if there is no database: a report never fails for its history.
    """
    results = folder.path.parent
    if summary is None or not (results / DATABASE).exists():
        return {}
    names = [name for name, _ in main_figures(summary)]
    try:
        listed = Database(results, busy_seconds=WAIT_SECONDS).runs(suite=summary.name, limit=_LOOKED_THROUGH)
    except JudgekitError:
        return {}
    here = (summary.created_at, summary.run_id)
    earlier = [run.run_id for run in listed if (run.created_at, run.run_id) < here and run.status == "complete"]
    points: dict[str, list[TrendRun]] = {name: [] for name in names}
    for path in [*(results / run_id for run_id in reversed(earlier[: MOST_RUNS - 1])), folder.path]:
        with suppress(JudgekitError):
            for name, run in figures_of_run(path, names, rests_on).items():
                points[name].append(run)
    return {name: Trend(name, summary.name, None, runs).document() for name, runs in points.items()}


def _human_labels(folder: RunFolder) -> dict[str, list[HumanLabel]]:
    """Human labels by case id: those that a calibration counted, and those of `judgekit label`.

    Of several labels by one person on one case the last counts. A file that cannot be read gives none.
    """
    found = {(label.case_id, label.judge, label.annotator): label for label in [*_counted(folder), *_written(folder)]}
    by_case: dict[str, list[HumanLabel]] = {}
    for label in found.values():
        by_case.setdefault(label.case_id, []).append(label)
    return by_case


def _written(folder: RunFolder) -> list[HumanLabel]:
    try:
        return list(read_labels(folder.path / LABELS, {}).labels) if folder.has(LABELS) else []
    except JudgekitError:
        return []


def _counted(folder: RunFolder) -> list[HumanLabel]:
    """Labels in calibration.json, which may come from a file that is not in the run folder."""
    kept = _document(folder, CALIBRATION).get("labels_by_case")
    if not isinstance(kept, dict):
        return []
    return [
        HumanLabel(case_id=case_id, judge=judge, annotator=annotator, **label_fields(label))
        for judge, cases in kept.items()
        for case_id, given in cases.items()
        for annotator, value in given.items()
        if (label := read_written(value)) is not None
    ]


def _document(folder: RunFolder, name: str) -> Mapping[str, Any]:
    try:
        return folder.read_json(name) if folder.has(name) else {}
    except JudgekitError:
        return {}
