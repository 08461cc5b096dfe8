"""The last step of whatever finishes a run folder: its entry in the results database."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from judgekit.analysis.summary import rounded
from judgekit.core.protocols import RunIndex, RunStore
from judgekit.core.runs import METRICS, SUMMARY, Notice, RunSummary


def write_summary(store: RunStore, summary: RunSummary, render: Callable[[Any], str]) -> None:
    """Write metrics.json and summary.md.

    Raises:
        StorageError: they cannot be written.
    """
    store.write_json(METRICS, rounded(summary.model_dump(mode="json")))
    store.write_text(SUMMARY, render(summary))


def indexed(index: RunIndex | None, store: RunStore, summary: RunSummary, render: Callable[[Any], str]) -> RunSummary:
    """Index a run whose files are written; what went wrong with that is added to its warnings.

    Args:
        index: None: the run is not indexed.
        store: the run folder.
        summary: the figures that were written.
        render: summary to markdown.

    Returns:
        The figures, with further warnings where there are any.

    Raises:
        StorageError: the warnings cannot be written.
    """
    found = [] if index is None else index.put_run(Path(store.path))
    notices = [Notice(code=code, message=message) for code, message in found]
    if not notices:
        return summary
    summary = summary.model_copy(update={"warnings": (*summary.warnings, *notices)})
    write_summary(store, summary, render)
    return summary
