"""judgekit: judge RAG and question-answering systems, with judges treated as instruments."""

from typing import TYPE_CHECKING, Any

__version__ = "0.6.0"

if TYPE_CHECKING:
    from judgekit.api.derived_runs import merge as merge
    from judgekit.api.derived_runs import prefer as prefer
    from judgekit.api.derived_runs import rejudge as rejudge
    from judgekit.api.results import Finding as Finding
    from judgekit.api.results import GatesMissed as GatesMissed
    from judgekit.api.results import RunResult as RunResult
    from judgekit.api.running import aevaluate as aevaluate
    from judgekit.api.running import arun as arun
    from judgekit.api.running import calibrate as calibrate
    from judgekit.api.running import compare as compare
    from judgekit.api.running import evaluate as evaluate
    from judgekit.api.running import open_run as open_run
    from judgekit.api.running import run as run
    from judgekit.api.running import spotcheck as spotcheck
    from judgekit.api.without_runs import aggregate as aggregate
    from judgekit.api.without_runs import score_files as score_files
    from judgekit.api.without_runs import score_rankings as score_rankings
    from judgekit.core.cases import Case as Case
    from judgekit.core.cases import Hit as Hit
    from judgekit.core.cases import SystemOutput as SystemOutput
    from judgekit.core.components import Judge as Judge
    from judgekit.core.components import Metric as Metric
    from judgekit.core.config import RunConfig as RunConfig
    from judgekit.core.judgments import JudgeFailure as JudgeFailure
    from judgekit.core.judgments import JudgeInput as JudgeInput
    from judgekit.core.judgments import Judgment as Judgment
    from judgekit.core.judgments import Verdict as Verdict
    from judgekit.core.protocols import AskError as AskError
    from judgekit.core.protocols import Provider as Provider
    from judgekit.core.protocols import System as System
    from judgekit.core.runs import RunSummary as RunSummary
    from judgekit.core.scores import Estimate as Estimate
    from judgekit.core.scores import Score as Score
    from judgekit.metrics.chunks import ChunkLevelMetric as ChunkLevelMetric
    from judgekit.metrics.chunks import chunk_f1 as chunk_f1
    from judgekit.metrics.chunks import chunk_precision as chunk_precision
    from judgekit.metrics.chunks import chunk_recall as chunk_recall
    from judgekit.metrics.field_counts import Discrepancy as Discrepancy
    from judgekit.metrics.field_counts import FieldComparison as FieldComparison
    from judgekit.metrics.field_counts import FieldCounts as FieldCounts
    from judgekit.metrics.field_counts import compute_confusion_counts as compute_confusion_counts
    from judgekit.metrics.field_counts import count_by_type as count_by_type
    from judgekit.metrics.fields import compare_fields as compare_fields
    from judgekit.metrics.functions import bounds as bounds
    from judgekit.metrics.spans import CharacterSpan as CharacterSpan
    from judgekit.metrics.spans import TokenLevelMetric as TokenLevelMetric
    from judgekit.metrics.spans import calculate_overlap as calculate_overlap
    from judgekit.metrics.spans import merge_overlapping_spans as merge_overlapping_spans
    from judgekit.metrics.spans import span_iou as span_iou
    from judgekit.metrics.spans import span_precision as span_precision
    from judgekit.metrics.spans import span_recall as span_recall

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
    "run": "judgekit.api.running",
    "arun": "judgekit.api.running",
    "evaluate": "judgekit.api.running",
    "aevaluate": "judgekit.api.running",
    "merge": "judgekit.api.derived_runs",
    "rejudge": "judgekit.api.derived_runs",
    "prefer": "judgekit.api.derived_runs",
    "spotcheck": "judgekit.api.running",
    "calibrate": "judgekit.api.running",
    "compare": "judgekit.api.running",
    "open_run": "judgekit.api.running",
    "RunResult": "judgekit.api.results",
    "Finding": "judgekit.api.results",
    "GatesMissed": "judgekit.api.results",
    "aggregate": "judgekit.api.without_runs",
    "score_files": "judgekit.api.without_runs",
    "score_rankings": "judgekit.api.without_runs",
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
