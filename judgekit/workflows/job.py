"""What a run works on: everything that wiring has put together from a config."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from judgekit.analysis.reliability import Sampler
from judgekit.core.cases import Case
from judgekit.core.components import Judge, Metric
from judgekit.core.config import RunConfig, SpotCheck
from judgekit.core.judgments import Judgment
from judgekit.core.protocols import JudgmentSink, ReplyCache, RunStore, System
from judgekit.core.runs import Manifest
from judgekit.core.scores import Failed
from judgekit.workflows.judging import Tally
from judgekit.workflows.judgment_draft import JudgePlan
from judgekit.workflows.model_runtime import ModelRuntime


class Observer(Protocol):
    """Who is told how the work goes."""

    def started(self, label: str, n_total: int) -> None:
        """A pass of `n_total` judgments begins."""

    def advanced(self, label: str, tally: Tally) -> None:
        """One more judgment of a pass is done."""

    def finished(self, label: str) -> None:
        """A pass is over."""


class SilentObserver:
    """Tells nobody."""

    def started(self, label: str, n_total: int) -> None:
        """Ignore."""

    def advanced(self, label: str, tally: Tally) -> None:
        """Ignore."""

    def finished(self, label: str) -> None:
        """Ignore."""


@dataclass(frozen=True)
class SpotCheckPlan:
    """The second opinion on one judge."""

    check: SpotCheck
    primary: JudgePlan
    second: JudgePlan


@dataclass
class RunJob:
    """One run, ready to go."""

    config: RunConfig
    resolved: Mapping[str, Any]
    """config.json: the config as used, with hashes of prompts and data."""
    manifest: Manifest
    cases: Sequence[Case]
    cases_record: Mapping[str, Any]
    """Path, sha256 and number of the cases, for metrics.json."""
    system: System
    metrics: Sequence[Metric]
    judges: Sequence[JudgePlan]
    spot_checks: Sequence[SpotCheckPlan]
    models: Mapping[str, ModelRuntime]
    store: RunStore
    cache: ReplyCache | None
    open_sink: Callable[[], JudgmentSink]
    locked: Callable[[], AbstractContextManager[None]]
    rng: Sampler
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    render_summary: Callable[[Any], str]
    """RunSummary to markdown; reports are chosen by wiring."""
    price_list: str | None = None
    indexing: Mapping[str, Any] | None = None
    """Indexing coverage, for metrics.json."""
    warnings: list[tuple[str, str]] = field(default_factory=list)
    resuming: bool = False

    def own_fault(self, name: str, case_id: str, error: Exception) -> Failed:
        """Note that our own code failed on one case, which must not cost the other cases."""
        if not any(text.startswith(f"{name}: ") for code, text in self.warnings if code == "internal_error"):
            text = f"{name}: {type(error).__name__}: {error} (case {case_id!r}, maybe others); they are in n_error"
            self.warnings.append(("internal_error", text))
        return Failed("internal", by_judge=True)

    @property
    def judge_components(self) -> Sequence[Judge]:
        """The judges without their prompts and models."""
        return [plan.judge for plan in self.judges]


@dataclass(frozen=True)
class JudgmentKey:
    """One question: which judge, in which role, about which case."""

    role: str
    judge: str
    case_id: str


TRANSPORT_KINDS = frozenset({"connection", "timeout", "server_error", "rate_limited", "internal"})
"""Failures that say nothing about the case; a resumed run asks these again."""


def last_judgments(judgments: Iterator[Judgment]) -> dict[JudgmentKey, Judgment]:
    """The judgment that counts for each question: the last one, and never a failure after a verdict.

    Without its raw reply and its reasoning, so that memory does not grow with the length of replies.
    """
    found: dict[JudgmentKey, Judgment] = {}
    for judgment in judgments:
        key = JudgmentKey(judgment.role, judgment.judge, judgment.case_id)
        old = found.get(key)
        if old is None or old.verdict is None or judgment.verdict is not None:
            verdict = judgment.verdict.model_copy(update={"reasoning": ""}) if judgment.verdict is not None else None
            found[key] = judgment.model_copy(update={"raw_reply": None, "verdict": verdict})
    return found
