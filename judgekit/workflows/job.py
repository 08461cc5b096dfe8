"""What a run works on: everything put together from a config."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from judgekit.analysis.reliability import Sampler
from judgekit.core.cases import Case
from judgekit.core.components import Judge, Metric
from judgekit.core.config import RunConfig, SpotCheck
from judgekit.core.prompts import PromptTemplate
from judgekit.core.protocols import ReplyCache, System
from judgekit.core.runs import Manifest, RunSummary
from judgekit.core.spot_checks import SpotCheckRecord
from judgekit.engine.judgment_draft import JudgePlan
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.case_scores import Faults
from judgekit.workflows.data_checks import Asked, asked_of
from judgekit.workflows.panels import Panel


@dataclass(frozen=True)
class SpotCheckPlan:
    """The second opinion on one judge."""

    check: SpotCheck
    primary: JudgePlan
    second: JudgePlan


@dataclass(frozen=True)
class Seeded:
    """A source of randomness, and the seed that it was begun with."""

    seed: int
    rng: Sampler


@dataclass(frozen=True)
class Reopened:
    """What a complete run was before it is gone on with."""

    manifest: Manifest
    summary: RunSummary
    open: frozenset[tuple[str, str]]
    """(judge, case id) of what is asked again."""


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
    """Judges as they are asked: one plan each, of a panel one for each member."""
    spot_checks: Sequence[SpotCheckPlan]
    models: Mapping[str, ModelRuntime]
    store: RunFolder
    cache: ReplyCache | None
    draws: Seeded
    """What the sample of the second opinions is drawn with."""
    now: Callable[[], datetime]
    repeats: Sequence[JudgePlan] = ()
    """Judges that are asked again about verdicts older than a day."""
    repeat_draws: Seeded | None = None
    """What these samples are drawn with; None where there are no repeats."""
    panels: Sequence[Panel] = ()
    price_list: str | None = None
    corpus_chunk_ids: frozenset[str] | None = None
    """Ids of all chunks of the corpus; None if the run was given none."""
    indexing: Mapping[str, Any] | None = None
    """Indexing coverage, for metrics.json."""
    warnings: list[tuple[str, str]] = field(default_factory=list)
    found: Manifest | None = None
    """The manifest that a resumed run was found with; None for a new run."""
    reopened: Reopened | None = None
    """A complete run that is gone on with, since some of its calls failed on the way; None for any other."""
    parent: RunFolder | None = None
    """The run whose stored inputs are judged again; None for a run of its own."""
    kept: frozenset[str] = frozenset()
    """Judges whose judgments are copied from the parent, and which are not asked."""
    unchanged: frozenset[str] = frozenset()
    """Judges of a rejudge that are asked as the parent asked them: the same model and wording."""
    carried: Sequence[SpotCheckRecord] = ()
    """Spot checks of the parent that hold here as well: their second opinions are about the same inputs."""
    kept_prompts: Mapping[str, PromptTemplate] = field(default_factory=dict)
    """Wordings of the parent, kept beside those in use."""

    @property
    def faults(self) -> Faults:
        """Where faults of our own code are noted: among the warnings."""
        return Faults(self.warnings)

    def asked(self) -> Asked:
        """What the run is to calculate, and what of it the config names."""
        is_part = len(self.cases) < self.cases_record["n_in_file"]
        return asked_of(self.config, self.metrics, self.judge_components, is_part=is_part)

    @property
    def judge_components(self) -> Sequence[Judge]:
        """The judges without their prompts and models, each once."""
        return list({plan.judge.name: plan.judge for plan in self.judges}.values())
