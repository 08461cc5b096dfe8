"""A run: which cases it takes, its manifest and its summary, and what may change when it is resumed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.conditions import GateResult
from judgekit.core.judgments import JudgeInput, Judgment
from judgekit.core.scores import Estimate, Frozen, Scale, ScoreOf

RunStatus = Literal["running", "complete", "interrupted", "failed"]

RunKind = Literal["run", "rejudge", "prefer"]

FORMAT_VERSION = 2
"""Version of the run folder; raised when a reader of the old one would misread the new one."""

CONFIG = "config.json"
MANIFEST = "manifest.json"
CASES = "cases.jsonl"
PROMPTS = "prompts.json"
OUTPUTS = "outputs.jsonl"
PARTIAL_OUTPUTS = "outputs.partial.jsonl"
"""What a live system has answered so far, in the order in which it came; gone once all outputs are there."""
JUDGE_INPUTS = "judge_inputs.jsonl"
JUDGMENTS = "judgments.jsonl"
SCORES = "scores.jsonl"
CHUNK_IDS = "corpus_chunk_ids.jsonl"
METRICS = "metrics.json"
SUMMARY = "summary.md"
REPORT = "report.html"
EVAL_RESULTS = "eval-results.json"
BRIDGE = "bridge.json"
TAGS = "tags.json"
DRIFT_CHECKS = "drift_checks.jsonl"
METRICS_HISTORY = "metrics_history.jsonl"

METRICS_VERSION = 2
"""Version of the definitions of all figures; raised when the same run would get another figure."""

AGGREGATE_NAMES = {
    "hit_at_k": "hit@k",
    "mrr": "mrr_chunk",
    "recall_at_k_doc": "recall_doc@k",
    "citation_coverage": "citation_coverage",
    "groundedness": "keyword_groundedness",
    "empty_result_rate": "empty_result",
    "refusal_correctness": "refusal_correct",
}
"""Keys of `aggregate_json`, and the names that these figures have everywhere else.

It stands beside an aggregate that is shown, since a key may be the name of another figure in the same document.
"""


class FileSeal(Frozen):
    """What a file of a complete run was when the run, or the last command that changed it, wrote it."""

    lines: int
    """Line feeds."""
    bytes: int
    sha256: str


class Manifest(Frozen):
    """manifest.json: what the run is and how far it came."""

    format_version: int = FORMAT_VERSION
    run_id: str
    name: str
    kind: RunKind = "run"
    parent: str | None = None
    """Id of the run whose stored inputs are judged again, where this is a rejudge."""
    parent_path: str | None = None
    """Where the folder of that run was."""
    rejudged: tuple[str, ...] = ()
    """Judges that were asked again; judgments of the others were copied from the parent."""
    compared: tuple[dict[str, str], ...] = ()
    """`run_id` and `path` of the runs whose answers are compared, A first; empty for any other kind of run."""
    status: RunStatus
    reason: str | None = None
    """Why a run is interrupted or failed."""
    created_at: str
    finished_at: str | None = None
    wall_seconds: float = 0.0
    """Time spent, summed over the first run and every resume."""
    n_resumed: int = 0
    config_path: str
    """Where the config was read from; `--resume` reads it again and refuses one that has changed."""
    code_dir: str | None = None
    """Where the Python files that the config names were found, where this is not its folder."""
    config_sha256: str
    limit: int | None = None
    """Cases taken from the start of the file, where `--limit` asked for it."""
    sample: int | None = None
    """Cases drawn at random, where `--sample` asked for it."""
    sample_seed: int | None = None
    shard: str | None = None
    """`2/4`, where `--shard` asked for a part of the cases; its figures are of that part."""
    shard_by: Literal["id"] | None = None
    """`id`: the hash of a case's id says which shard it is in. None: not a shard, or one of an older version, which
    took every N-th case."""
    shards: tuple[dict[str, str], ...] = ()
    """`shard`, `run_id` and `path` of each run that it was merged from, in the order of the shards; else empty."""
    case_ids: tuple[str, ...] | None = None
    """Ids of the cases, where `--case` named them."""
    n_cases_in_file: int | None = None
    """Cases of the whole file; None in a run of an older version."""
    versions: dict[str, str]
    """judgekit, python, parser, and versions of the system under test."""
    commit_hash: str | None = None
    """Commit of the git checkout that the config stood in; None outside of one."""
    models: dict[str, dict[str, Any]] = {}
    """By model id: what was found out about the model, and the served names and fingerprints with their counts."""
    system: dict[str, Any] = {}
    """What was found out about a live system, and how it was asked; empty if the outputs were recorded before."""
    counts: dict[str, int] = {}
    files: dict[str, FileSeal] = {}
    """By file name, what readers hold the files of a complete run against; empty in any other run, and in one that was
    written before there were such hashes."""
    changing: bool = False
    """A command changes the complete run, or was killed while it did; the next one that does ends this."""


class Notice(Frozen):
    """Something that a reader of the numbers must know."""

    code: str
    """Stable name, such as `judge_unstable`."""
    message: str


Notices = list[tuple[str, str]]
"""(code, message) of each `Notice`, as they are collected on the way."""


class RunSummary(Frozen):
    """metrics.json: every figure of a run."""

    schema_version: int = 1
    run_id: str
    name: str
    created_at: str
    status: RunStatus
    reason: str | None = None
    config_sha256: str
    errors: Literal["exclude", "as_zero"]
    min_n: int = 5
    """Figures over fewer cases are marked as small."""
    cluster_by: str | None = None
    """The field by which cases are resampled together; None: cases are taken as independent."""
    cases: dict[str, Any]
    overall: dict[str, Estimate | dict[str, int]]
    slices: dict[str, dict[str, dict[str, Estimate | dict[str, int]]]]
    scales: dict[str, Scale] = {}
    """Unit and better direction of the figures; empty in a run of an older version."""
    judge_reliability: dict[str, Any] | None
    repeats: dict[str, Any] | None = None
    """How much the answers to one case differ, and what follows from that; None if each case has one answer."""
    rejudged: dict[str, Any] | None = None
    """How the verdicts differ from those of the parent; None if the run is not a rejudge."""
    judges: dict[str, dict[str, Any]]
    """By judge: prompt, model, whether it is an LLM, failures by kind, parse paths, flags."""
    latency: dict[str, dict[str, float | int | None]]
    cost: dict[str, Any]
    operational: dict[str, Any]
    indexing_coverage: dict[str, Any] | None = None
    extraction: dict[str, Any] | None = None
    """Field extraction by error type, and by field path where most goes wrong; None if no case expects fields."""
    abstention: dict[str, Any] | None = None
    """What says which outputs are abstentions where the system does not (`source`), with counts by source; None: no
    output has an answer, or the figures are of a judgekit that did not say."""
    own_code: dict[str, dict[str, Any]] = {}
    """By metric or judge from a Python file: the file's hash, and what is known of the scores."""
    n_gates: int = 0
    """Gates of the config; `gates` has none of them if they were not checked, since the run is only a part."""
    gates: tuple[GateResult, ...] = ()
    warnings: tuple[Notice, ...] = ()
    metrics_version: int = 1
    """`METRICS_VERSION` of the judgekit that made these figures."""
    scored_by: str | None = None
    """Version of judgekit that rescored the run; None: the run itself made these figures."""


RESUMABLE_CHANGES = ("budget", "executor", "results_dir", "$schema", "gates", "report", "spot_check.repeat_n")
"""Parts of a config that may change between a run and its resume: they change no verdict."""

RESUMABLE_MODEL_CHANGES = (
    "max_concurrency",
    "timeout_seconds",
    "max_attempts",
    "api_key_env",
    "allow_provider_temperature",
    "prices",
    "mode",
    "batch",
)
"""Of `models.<id>`. Allowing the provider's temperature changes no request: the server decides which one it takes."""


def config_changes(old: Any, new: Any, path: str = "") -> list[str]:
    """Paths at which two configs differ, apart from parts that change no verdict."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in sorted({*old, *new}):
            where = f"{path}.{key}" if path else key
            parts = where.split(".")
            harmless = where in RESUMABLE_CHANGES or (
                parts[0] == "models" and len(parts) == 3 and parts[2] in RESUMABLE_MODEL_CHANGES
            )
            # A run of an older judgekit does not have a key that was added since; left out, it is empty.
            before, now = (None if value == {} else value for value in (old.get(key), new.get(key)))
            if not harmless and before != now:
                found += config_changes(before, now, where)
        return found
    return [] if old == new else [path]


OUR_KINDS = ("internal", "not judged")
"""Failures of a score that are not the system's doing."""


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One case of a run with its output, scores and judgments; parts that the run does not have are None or empty."""

    case_id: str
    case: Case | None = None
    output: SystemOutput | None = None
    scores: Mapping[str, ScoreOf] = field(default_factory=dict)
    """By score name: its value, and the reason if there is none."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """By score name, what said so, if a score has several sources."""
    judgments: Sequence[Judgment] = ()
    """For each question the judgment that counts: the last one, and never a failure after a verdict."""
    inputs: Mapping[str, JudgeInput] = field(default_factory=dict)
    """What was put before each judge."""

    def __repr__(self) -> str:
        """What the case is about, and its scores: the record as a whole fills screens."""
        told = {
            name: text[:60]
            for name, text in (
                ("question", self.case and self.case.question),
                ("answer", self.output and self.output.answer),
            )
            if text
        }
        scores = {name: value for name, (value, _) in self.scores.items() if value is not None}
        return f"CaseRecord({self.case_id!r}, {told}, scores={scores}, failures={list(self.failures)})"

    @property
    def failures(self) -> tuple[str, ...]:
        """What failed and how, such as `system: timeout` or `groundedness: invalid`; empty if nothing did."""
        found = [] if self.output is None or self.output.error is None else [f"system: {self.output.error.kind}"]
        for judgment in self.judgments:
            if judgment.role == "primary" and judgment.verdict is None:
                kind = judgment.failure.kind if judgment.failure is not None else "internal"
                found.append(f"{judgment.judge}: {kind}")
        if not found:
            missing = [reason for value, reason in self.scores.values() if value is None and reason is not None]
            kinds = [reason[8:] for reason in missing if reason.startswith("failed: ")]
            found += [kind if kind in OUR_KINDS else f"system: {kind}" for kind in kinds]
        return tuple(dict.fromkeys(found))
