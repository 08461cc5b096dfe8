"""A run: which cases it takes, its manifest and its summary, and what may change when it is resumed."""

import difflib
import hashlib
import heapq
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.conditions import GateResult
from judgekit.core.errors import ConfigError
from judgekit.core.judgments import JudgeInput, Judgment
from judgekit.core.repeats import asked_id
from judgekit.core.scores import Estimate, Frozen, Scale, ScoreOf
from judgekit.core.streams import Streamed

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


@dataclass(frozen=True, slots=True)
class CasePart:
    """What the command line asked for; all None: the whole file."""

    limit: int | None = None
    """So many cases from the start of the file."""
    sample: int | None = None
    """So many cases drawn at random."""
    sample_seed: int | None = None
    shard: str | None = None
    """`2/4`: of these cases those whose id falls into the second of four shards; it may be none."""
    case_ids: tuple[str, ...] | None = None
    """These cases, each with all its answers."""

    def of(self, cases: Collection[Case], in_shard: Collection[Case] | None = None) -> Collection[Case]:
        """The cases of this part, in the order of the file; of a case with several answers all of them or none.

        A sample has the smallest hashes of seed and id, so the order of the file does not matter, a smaller sample is a
        part of a larger one, and a resumed run finds its cases again.

        Args:
            cases: of the file.
            in_shard: those of them that are in the shard, if that is known.

        Raises:
            ConfigError: parts that cannot be combined, a shard that is none; an unknown id.
        """
        if self.case_ids is not None and (self.limit, self.sample, self.shard) != (None, None, None):
            raise ConfigError("--case names the cases; leave out --limit, --sample and --shard")
        if self.limit is not None and self.sample is not None:
            raise ConfigError("--limit and --sample: choose one; --sample draws at random, --limit takes the first")
        is_in_shard = shard_filter(self.shard)
        chosen = self._chosen(cases)
        if chosen is None and (in_shard is not None or self.shard is None):
            return cases if in_shard is None else in_shard

        def is_taken(case: Case) -> bool:
            case_id = asked_id(case)
            return (chosen is None or case_id in chosen) and is_in_shard(case_id)

        known = cases if in_shard is None else in_shard
        return Streamed(lambda: filter(is_taken, known), sum(map(is_taken, known)))

    def _chosen(self, cases: Iterable[Case]) -> frozenset[str] | None:
        """Ids of the cases that are taken before they are shared out to shards; None: all."""
        if (self.limit, self.sample, self.case_ids) == (None, None, None):
            return None
        asked = list(dict.fromkeys(map(asked_id, cases)))
        if self.case_ids is not None:
            return frozenset(_named(self.case_ids, asked))
        if self.sample is not None:
            return frozenset(heapq.nsmallest(self.sample, asked, key=self._draw))
        return frozenset(asked[: self.limit])

    def _draw(self, case_id: str) -> bytes:
        return hashlib.sha256(f"{self.sample_seed or 0} {case_id}".encode("utf-8", "replace")).digest()

    def where_it_cuts(self, cases: Collection[Case]) -> "CasePart":
        """The same without a limit or sample that leaves nothing out of the cases of the file."""
        if (self.limit, self.sample, self.case_ids) == (None, None, None):
            return replace(self, sample_seed=None)
        n_cases = len(set(map(asked_id, cases)))
        limit = None if self.limit is None or self.limit >= n_cases else self.limit
        sample = None if self.sample is None or self.sample >= n_cases else self.sample
        case_ids = None if self.case_ids is None or len(set(self.case_ids)) >= n_cases else self.case_ids
        return CasePart(limit, sample, None if sample is None else self.sample_seed, self.shard, case_ids)

    def record(self) -> dict[str, Any]:
        """As manifest.json and metrics.json have it."""
        return asdict(self)


_MOST_IDS = 5
"""Ids that a text names; of more it gives the number."""


def _named(case_ids: Sequence[str], asked: Sequence[str]) -> list[str]:
    known = set(asked)
    unknown = [case_id for case_id in case_ids if case_id not in known]
    if unknown:
        near = difflib.get_close_matches(unknown[0], asked, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; ids are such as {asked[0]!r}" if asked else ""
        raise ConfigError(f"--case {unknown[0]!r}: the file has no such case{hint}")
    return list(case_ids)


def shard_numbers(shard: str) -> tuple[int, int]:
    """`2/4` as two numbers.

    Raises:
        ConfigError: it is no shard.
    """
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", shard)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(f"--shard {shard!r}: expected I/N with I from 1 to N, such as 2/4")
    return int(match[1]), int(match[2])


def id_number(case_id: str) -> int:
    """64 bits that stand for an id."""
    return int.from_bytes(hashlib.sha256(case_id.encode("utf-8", "replace")).digest()[:8], "big")


def shard_of(case_id: str, n_shards: int) -> int:
    """The shard that a case is in, from 1 on, by its id alone; of a repeat it is the id of the case that it repeats."""
    return id_number(case_id) % n_shards + 1


def shard_filter(shard: str | None) -> Callable[[str], bool]:
    """Tells by the id of a case whether it is in a shard; None: all are.

    Raises:
        ConfigError: it is no shard.
    """
    if shard is None:
        return lambda _: True
    number, n_shards = shard_numbers(shard)
    return lambda case_id: shard_of(case_id, n_shards) == number


def cases_text(record: Mapping[str, Any]) -> str:
    """`40 cases`, or `10 of 40 cases (--limit 10: the first ones)`.

    Args:
        record: `cases` of metrics.json; one of an older run does not say how its part was chosen.
    """
    n, n_in_file = record["n"], record.get("n_in_file")
    if n_in_file is None or n >= n_in_file:
        return f"{n:,} case{'' if n == 1 else 's'}"
    how = []
    if record.get("limit") is not None:
        how.append(f"--limit {record['limit']}: the first ones")
    if record.get("sample") is not None:
        how.append(f"--sample {record['sample']}: drawn at random with seed {record.get('sample_seed') or 0}")
    case_ids = record.get("case_ids")
    if case_ids is not None:
        how.append("--case " + (" ".join(case_ids) if len(case_ids) <= _MOST_IDS else f"of {len(case_ids)} ids"))
    if record.get("shard") is not None:
        how.append(f"--shard {record['shard']}{' of them' if how else ''}")
    chosen = f" ({', '.join(how)})" if how else ""
    return f"{n:,} of {n_in_file:,} cases{chosen}"


def part_of(manifest: Manifest) -> CasePart:
    """Which part of the file a run took."""
    return CasePart(manifest.limit, manifest.sample, manifest.sample_seed, manifest.shard, manifest.case_ids)


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
