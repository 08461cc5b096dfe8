"""The last steps of whatever finishes a run folder: its figures, its report, and its entry in the results database."""

import json
from datetime import datetime
from typing import Any

from judgekit.analysis.stored_figures import rounded, run_aggregate
from judgekit.core.runs import METRICS, SUMMARY, Notice, RunSummary
from judgekit.core.slice_records import compact
from judgekit.reports.headline import headline
from judgekit.reports.markdown import render_markdown
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import index_run

INDEX_SECONDS = 10.0
"""How long the end of a run waits for a results database that another process writes."""

_OF_FIGURES = ("overall", "scales", "slices", "operational")
"""Parts of metrics.json whose keys stand in the order of the config; all others but `extraction` have theirs sorted."""


def write_summary(folder: RunFolder, summary: RunSummary) -> None:
    """Write metrics.json, its figures in the order in which they are shown, and summary.md.

    Raises:
        StorageError: they cannot be written.
    """
    document = rounded(summary.model_dump(mode="json"))
    document["slices"], sizes = compact(document["slices"], document["overall"], summary.min_n)
    ordered = {key: _ordered(key, value) for key, value in sorted({**document, "slice_sizes": sizes}.items())}
    folder.write_text(METRICS, _readable({"headline": _headline(summary), **ordered}) + "\n")
    folder.write_text(SUMMARY, render_markdown(summary, folder.prompts()))


def _headline(summary: RunSummary) -> dict[str, Any]:
    """The figures that a reader wants first, each with its unit; readers of judgekit go by `overall`."""
    found = {}
    for name, figure in headline(summary):
        values = rounded({"value": figure.value, "low": figure.low, "high": figure.high})
        scale = summary.scales.get(name)
        unit = {} if scale is None else {"unit": scale.unit, "better": scale.better, "of": scale.high}
        found[name] = {**values, "n": figure.n, "n_error": figure.n_error, **unit}
    return found


def _readable(value: Any, indent: str = "\n") -> str:
    """JSON with an indent of two spaces, and each object or list of plain values on one line."""
    inner = indent + "  "
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(part, dict | list) for part in parts):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, list):
        return f"[{inner}{f',{inner}'.join(_readable(item, inner) for item in value)}{indent}]"
    fields = (f"{json.dumps(key, ensure_ascii=False)}: {_readable(item, inner)}" for key, item in value.items())
    return f"{{{inner}{f',{inner}'.join(fields)}{indent}}}"


def _ordered(key: str, value: Any) -> Any:
    if key == "extraction":
        return value
    return _figures(value) if key in _OF_FIGURES else _sorted(value)


def _figures(value: Any) -> Any:
    """Figures in their order, which a reader shows them in; what is inside of one is sorted."""
    if isinstance(value, dict) and any(isinstance(item, dict) for item in value.values()):
        return {key: _figures(item) for key, item in value.items()}
    return _sorted(value)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def closed(folder: RunFolder, summary: RunSummary, *, report: bool, indexed: bool = True) -> RunSummary:
    """Index a run whose figures are stored, and write its report; what went wrong is added to the warnings.

    The index comes first, since the report shows the history of the judges from it. Neither costs
    the run: a report can be written again, and the index be built again.

    Args:
        folder: the run.
        summary: its figures.
        report: whether it has a report.html.
        indexed: False if nothing that the results database holds of the run has changed.

    Returns:
        The figures, with further warnings if there are any.

    Raises:
        StorageError: the warnings cannot be written.
    """
    notices = [*(_indexed(folder) if indexed else ()), *(_reported(folder, summary.run_id) if report else ())]
    if not notices:
        return summary
    summary = summary.model_copy(update={"warnings": (*summary.warnings, *notices)})
    write_summary(folder, summary)
    return summary


def replaced_figures(old: RunSummary, now: datetime) -> dict[str, Any]:
    """What the history of a run keeps of figures that others take the place of.

    Args:
        old: the figures so far.
        now: when they are replaced.
    """
    figures = rounded(old.model_dump(mode="json"))
    values = {**figures["overall"], **figures["operational"]}
    return {
        "metrics_version": old.metrics_version,
        "scored_by": made_by(old),
        "replaced_at": now.isoformat(timespec="seconds"),
        "aggregate": run_aggregate(figures["overall"]),
        "figures": {name: item for name, item in values.items() if isinstance(item, dict) and "value" in item},
        "gates": figures["gates"],
    }


def made_by(summary: RunSummary) -> str | None:
    """Version of the judgekit that made figures; None if they do not say."""
    versions = summary.operational.get("versions", {})
    return summary.scored_by or (versions.get("judgekit") if isinstance(versions, dict) else None)


def _reported(folder: RunFolder, run_id: str) -> list[Notice]:
    from judgekit.workflows.report import write_report  # templates and tables are loaded when the run is done

    try:
        write_report(folder.path)
    except Exception as error:  # noqa: BLE001  # a report can be written again, a run costs money
        message = f"report.html could not be written: {error}; try: judgekit report {run_id}"
        return [Notice(code="report_not_written", message=message)]
    return []


def _indexed(folder: RunFolder) -> list[Notice]:
    found = index_run(folder.path, INDEX_SECONDS)
    return [Notice(code=code, message=message) for code, message in found]
