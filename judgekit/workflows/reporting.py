"""Reports of a stored run: from its folder to a page, a table, or a file for a CI server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from judgekit.analysis.slices import slice_values
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ConfigError, did_you_mean
from judgekit.core.runs import CONFIG, JUDGE_INPUTS, JUDGMENTS, OUTPUTS, REPORT, SUMMARY, RunSummary
from judgekit.metrics.anchors import GoldSupports, SnippetMode
from judgekit.reports.case_data import MOST_ROWS, caps_for
from judgekit.reports.case_details import CaseViewer
from judgekit.reports.ci_servers import render_junit
from judgekit.reports.markdown import render_markdown
from judgekit.reports.report_page import Progress, RunRecord, in_order, render_report
from judgekit.reports.score_table import ScoreTable
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_records import read_summary
from judgekit.storage.stored_cases import StoredCases
from judgekit.storage.table_files import write_parquet
from judgekit.workflows.report_parts import bridge_of, histories_of, labels_of

FORMATS = {"html": REPORT, "md": SUMMARY, "csv": "scores.csv", "parquet": "scores.parquet", "junit": "junit.xml"}
"""What a report can be, and the name that it gets in the run folder."""


def write_report(path: Path, form: str = "html", out: Path | None = None) -> Path:
    """Write a report of a stored run anew; the old one stays until the new one is complete.

    Args:
        path: the run folder.
        form: a key of `FORMATS`.
        out: the file to write; None: its usual name in the run folder.

    Returns:
        The file written.

    Raises:
        ConfigError: no run there, an unknown format, or figures are asked of a run that has none.
        StorageError: the run is damaged, or the file cannot be written.
    """
    if form not in FORMATS:
        raise ConfigError(f"--format {form}: no such format{did_you_mean(form, FORMATS)}")
    folder = RunFolder.open(path)
    target = out or folder.path / FORMATS[form]
    if form in ("csv", "parquet"):
        _write_scores(folder, form, target)
        return target
    pieces = _PIECES[form](folder)
    with RunFolder(target.parent).replacing(target.name) as stream:
        for piece in pieces:
            stream.write(piece.encode("utf-8", "replace"))
    return target


def html_pieces(folder: RunFolder) -> Iterator[str]:
    """report.html of a run, piece by piece.

    Raises:
        StorageError: the run is damaged.
    """
    with StoredCases(folder, MOST_ROWS) as cases:
        yield from render_report(run_record(folder, cases), cases)


def run_record(folder: RunFolder, cases: StoredCases) -> RunRecord:
    """What a report of a run is made of.

    Raises:
        StorageError: a file of it is damaged.
    """
    config = folder.read_json(CONFIG) if (folder.path / CONFIG).exists() else {}
    prompts = folder.prompts()
    dimensions = [str(name) for name in config.get("slices", ())]
    stored = sum(_size(folder.path / name) for name in (OUTPUTS, JUDGE_INPUTS, JUDGMENTS))
    mode: SnippetMode = config.get("match", {}).get("snippets", "if_text")
    viewer = CaseViewer(
        caps=caps_for(cases.n_cases, stored),
        prompts=prompts,
        matched=lambda case, output: matched_supports(case, output, mode),
        slices=lambda case: _slices(case, dimensions),
        labels=labels_of(folder),
    )
    summary = read_summary(folder)
    judges = [str(judge["name"]) for judge in config.get("judges", ())]
    return RunRecord(
        manifest=folder.manifest(),
        config=config,
        summary=summary and in_order(summary, judges, cases.score_names()),
        prompts=prompts,
        progress=Progress(cases.n_cases, cases.judged()),
        viewer=viewer,
        score_names=cases.score_names(),
        histories=histories_of(folder, summary),
        bridge=bridge_of(folder),
    )


def matched_supports(case: Case, output: SystemOutput, mode: SnippetMode) -> list[list[int]]:
    """For each hit of an output, the gold supports that it matches."""
    if not case.gold_supports:
        return [[] for _ in output.retrieved]
    supports = GoldSupports(case.gold_supports, mode)
    return [supports.matched_by(hit) for hit in output.retrieved]


def _slices(case: Case, dimensions: Sequence[str]) -> Mapping[str, Sequence[str]]:
    found = {}
    for name in dimensions:
        with suppress(AttributeError):  # a dimension of a newer version
            found[name] = slice_values(case, name)
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def figures_of(folder: RunFolder) -> RunSummary:
    """The figures of a run.

    Raises:
        ConfigError: it has none.
        StorageError: they are damaged.
    """
    summary = read_summary(folder)
    if summary is None:
        raise ConfigError(
            f"{folder.path}: this run has no figures yet; go on with: judgekit run --resume {folder.path.name}"
        )
    return summary


def _junit(folder: RunFolder) -> Iterator[str]:
    yield render_junit(folder.manifest(), read_summary(folder))


def _markdown(folder: RunFolder) -> Iterator[str]:
    yield render_markdown(figures_of(folder))


_PIECES: dict[str, Callable[[RunFolder], Iterator[str]]] = {"html": html_pieces, "md": _markdown, "junit": _junit}


def _write_scores(folder: RunFolder, form: str, target: Path) -> None:
    with StoredCases(folder) as cases:
        table = ScoreTable(cases.score_names())
        if form == "parquet":
            write_parquet(target, table.columns, (table.row(record) for record in cases))
            return
        with RunFolder(target.parent).replacing(target.name) as stream:
            for line in table.csv_lines(cases):
                stream.write(line.encode("utf-8", "replace"))
