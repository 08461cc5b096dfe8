"""judgekit: judge RAG and question-answering systems, with judges treated as instruments."""

from typing import Any

__version__ = "0.3.0"

_PUBLIC = {
    "Case": "judgekit.core.cases",
    "SystemOutput": "judgekit.core.cases",
    "Hit": "judgekit.core.cases",
    "RunConfig": "judgekit.core.config",
    "RunSummary": "judgekit.core.runs",
    "Estimate": "judgekit.core.scores",
    "Score": "judgekit.core.scores",
    "Judgment": "judgekit.core.judgments",
    "JudgeInput": "judgekit.core.judgments",
    "Verdict": "judgekit.core.judgments",
    "JudgeFailure": "judgekit.core.judgments",
    "Metric": "judgekit.core.components",
    "Judge": "judgekit.core.components",
    "bounds": "judgekit.metrics.functions",
    "Provider": "judgekit.core.protocols",
    "System": "judgekit.core.protocols",
    "AskError": "judgekit.core.protocols",
    "CharacterSpan": "judgekit.metrics.spans",
    "merge_overlapping_spans": "judgekit.metrics.spans",
    "calculate_overlap": "judgekit.metrics.spans",
    "span_recall": "judgekit.metrics.spans",
    "span_precision": "judgekit.metrics.spans",
    "span_iou": "judgekit.metrics.spans",
    "TokenLevelMetric": "judgekit.metrics.spans",
    "ChunkLevelMetric": "judgekit.metrics.chunks",
    "chunk_recall": "judgekit.metrics.chunks",
    "chunk_precision": "judgekit.metrics.chunks",
    "chunk_f1": "judgekit.metrics.chunks",
    "run": "judgekit.api",
    "aggregate": "judgekit.api",
    "score_files": "judgekit.api",
    "score_rankings": "judgekit.api",
    "compare_fields": "judgekit.metrics.fields",
    "FieldComparison": "judgekit.metrics.field_counts",
    "FieldCounts": "judgekit.metrics.field_counts",
    "Discrepancy": "judgekit.metrics.field_counts",
    "count_by_type": "judgekit.metrics.field_counts",
    "compute_confusion_counts": "judgekit.metrics.field_counts",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # noqa: PLE0604  # they are strings


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import judgekit` costs nothing."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'judgekit' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PUBLIC[name]), name)
