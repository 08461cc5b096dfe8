"""Two runs compared: what is known of each, what differs, and what a comparison says."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from judgekit.core.conditions import GateResult
from judgekit.core.scores import Scale

QueryKind = Literal["win", "loss", "regression", "draw", "changed_case", "not_applicable"]
"""`changed_case`: the case was edited between the runs; `not_applicable`: nothing says which hits are right."""

QUERY_KINDS: tuple[QueryKind, ...] = ("regression", "loss", "win", "draw", "changed_case", "not_applicable")
"""All kinds, what a reader has to look at first."""

ScoreKind = Literal["regression", "loss", "mended", "win", "changed", "draw"]
"""`mended`: it passes in b and did not in a. `changed`: it is another one, and neither is better."""

SCORE_KINDS: tuple[ScoreKind, ...] = ("regression", "loss", "mended", "win", "changed", "draw")

ChunkerMatch = Literal["exact", "fallback_doc_span", "unknown"]
"""Hits are compared by chunk id where both runs name the same chunker, by document and characters where they name two,
and by chunk id as it is where one of them names none."""

CauseKind = Literal["dataset", "judge", "prompt", "parser", "metric", "index", "config"]

WHOLE_RUNS = "figures of whole runs"
"""`Delta.method` of what rests on no pairs, such as the cost of a run."""

COVERAGE = ".coverage"
"""`NAME.coverage`: the share of cases for which a figure has a value, of those where one of the runs has one."""

LEVEL = 0.05
"""A difference is evidence if its adjusted p is at most this."""


@dataclass(frozen=True, slots=True)
class JudgeIdentity:
    """Which instrument gave the scores of a judge."""

    model_id: str
    """Key of the model in the config."""
    model: str
    provider: str
    build_hash: str | None
    served_models: frozenset[str]
    """Models that the server said it used; empty if it said nothing."""
    fingerprints: frozenset[str]
    prompt_version: str
    prompt_sha256: str
    args: Mapping[str, Any]
    temperature_accepted: bool = True
    upstreams: frozenset[str] = frozenset()
    """Who served the replies behind a gateway."""
    request_fields: Mapping[str, Any] = field(default_factory=dict)
    """Reasoning effort and further fields of its requests, as far as they are set; of a panel, by member."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What a run was made with, as far as a comparison has to know it."""

    run_id: str
    dataset_sha256: str | None
    parser_version: str | None
    errors: str
    """How the run counts cases that the system failed: `exclude` or `as_zero`."""
    versions: Mapping[str, str]
    """chunker_version, embedding_model, index_version, prompt_version of the system under test."""
    judges: Mapping[str, JudgeIdentity]
    metrics: Mapping[str, Mapping[str, Any]]
    """Settings of the metric families by name."""
    config: Mapping[str, Any]
    """config.json."""
    metrics_version: int = 1
    """Version of the definitions of its figures."""
    abstention: str | None = None
    """What says which answers abstain, as in metrics.json; None if the run does not say it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that differs between two runs and can move their figures."""

    kind: CauseKind
    what: str
    """Such as `judge groundedness: model`."""
    a: str
    b: str
    is_refused: bool = False
    """The two cannot be compared unless the mismatch is allowed."""
    judges: tuple[str, ...] = ()
    """Judges whose figures it moves."""
    metrics: tuple[str, ...] = ()
    """Metric families whose figures it moves."""

    @property
    def line(self) -> str:
        """`judge groundedness: model (overlap-1, then overlap-2)`."""
        return f"{self.what} ({self.a}, then {self.b})"


@dataclass(frozen=True, slots=True)
class LostChunk:
    """An expected chunk that run a had within the cut-off and run b has not."""

    chunk_id: str
    a_rank: int
    b_rank: int | None
    """Beyond the cut-off; None if b has not found it."""


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """One score of one case in both runs, or one label."""

    a: float | str
    b: float | str | None
    kind: ScoreKind
    loss: float = 0.0
    """Share of the range of the score that b has lost, in [0, 1]."""
    reason: str = ""
    """Why b has no value."""

    def document(self) -> dict[str, Any]:
        """A strict-JSON object, unrounded."""
        return {"a": self.a, "b": self.b, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class FirstHits:
    """Where two runs found the first correct hit of one case."""

    a_rank: int | None
    """1-based; None if no hit is correct."""
    b_rank: int | None
    lost: tuple[LostChunk, ...] = ()
    """Expected chunks that a had within the cut-off and b has not."""
    n_expected: int = 1
    """Chunks that are expected, or 1 where documents or supports are."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryChange:
    """One case in both runs."""

    query_id: str
    kind: QueryKind
    a_hit_rank: int | None = None
    b_hit_rank: int | None = None
    lost: tuple[LostChunk, ...] = ()
    note: str | None = None
    """Known causes, and what the reader of the ranks should know."""
    scores: Mapping[str, ScoreChange] = field(default_factory=dict)
    """By name of a judge or a 0/1 score."""
    hit_loss: float = 0.0
    """What the first correct hit and the expected chunks have lost, in [0, 1]."""

    @property
    def lost_chunks(self) -> tuple[str, ...]:
        """Ids of the lost chunks."""
        return tuple(chunk.chunk_id for chunk in self.lost)

    @property
    def loss(self) -> tuple[float, float]:
        """The most that one score or the hits have lost, as a share of its range, and the sum over all of them."""
        parts = [self.hit_loss, *(change.loss for change in self.scores.values())]
        return max(parts), math.fsum(parts)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of the first hit and of all scores."""
        return frozenset([self.kind, *(change.kind for change in self.scores.values())])

    def document(self) -> dict[str, Any]:
        """A strict-JSON object, unrounded."""
        return {
            "query_id": self.query_id,
            "kind": self.kind,
            "a_hit_rank": self.a_hit_rank,
            "b_hit_rank": self.b_hit_rank,
            "lost_chunks": list(self.lost_chunks),
            "note": self.note,
            "scores": {name: change.document() for name, change in self.scores.items()},
        }


@dataclass(frozen=True, slots=True)
class Delta:
    """One figure in both runs, over the cases where both have a value."""

    name: str
    a: float | None
    b: float | None
    delta: float | None
    """`b - a`; None if no case has a value in both."""
    n: int
    """Cases with a value in both runs."""
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    mde: float | None = None
    """Smallest difference that this many pairs would find with a chance of 0.8; None if it is not known."""
    scale: Scale | None = None
    """Of the figure; None if nothing is known of it here."""
    method: str = ""
    a_overall: float | None = None
    """The figure over all cases of run a, as its metrics.json has it."""
    a_n: int = 0
    b_overall: float | None = None
    b_n: int = 0
    n_only_a: int = 0
    """Shared cases with a value in a alone."""
    n_only_b: int = 0
    n_failed_a: int = 0
    """Shared cases that failed in a."""
    n_failed_b: int = 0
    delta_if_failed_worst: float | None = None
    """The difference if every case that failed in one run alone had scored the worst there; None without such cases."""
    low_if_failed_worst: float | None = None
    """Lower end of the 95% interval of that difference."""
    high_if_failed_worst: float | None = None
    n_units: int = 0
    """What the interval of a mean takes as independent: pairs, or clusters of them."""
    n_unbounded: int = 0
    """Cases with a value in a that failed in b, where nothing says what they could have added: no worst value."""
    mixed: tuple[str, ...] = ()
    """Why the difference is not of the systems alone, such as another judge model."""

    @property
    def higher_is_better(self) -> bool | None:
        """None if neither way is better, or nothing known here says so."""
        return None if self.scale is None or self.scale.better is None else self.scale.better == "higher"

    @property
    def verdict(self) -> Literal["better", "worse", "differs", "no evidence", "no test", "n/a"]:
        """In a word; `differs` if it is not known which way is better, `no test` of a figure of sums."""
        if self.delta is None:
            return "n/a"
        if self.p_holm is None:
            return "no test"
        if self.p_holm > LEVEL or self.delta == 0:
            return "no evidence"
        if self.higher_is_better is None:
            return "differs"
        return "better" if (self.delta > 0) == self.higher_is_better else "worse"

    @property
    def is_of_other_cases(self) -> bool:
        """Whether a run's own figure is over other cases than the paired ones, and differs."""
        return any(
            mine is not None and overall is not None and abs(mine - overall) >= 0.00005
            for mine, overall in ((self.a, self.a_overall), (self.b, self.b_overall))
        )

    def document(self) -> dict[str, Any]:
        """A strict-JSON object, unrounded."""
        return {name: getattr(self, name) for name in _DELTA_NAMES} | {"mixed": list(self.mixed)}


_DELTA_NAMES = (
    *("a", "b", "delta", "n", "low", "high", "p", "p_holm", "mde", "verdict", "higher_is_better", "method"),
    *("a_overall", "a_n", "b_overall", "b_n", "n_only_a", "n_only_b", "n_failed_a", "n_failed_b"),
    *("delta_if_failed_worst", "low_if_failed_worst", "high_if_failed_worst", "n_unbounded", "mixed"),
)
"""What the document of a difference has, in its order."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs say beside each other."""

    run_a: str
    run_b: str
    aggregate_a: Mapping[str, Any]
    aggregate_b: Mapping[str, Any]
    deltas: tuple[Delta, ...]
    chunker_version_match: ChunkerMatch
    per_query: tuple[QueryChange, ...]
    """Sorted by loss, in the order of run a where that is equal."""
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    changed: tuple[str, ...]
    """What differs between the configs, as paths, and which versions of the system."""
    changed_cases: Mapping[str, tuple[str, ...]]
    """Fields that were edited, by case id."""
    causes: tuple[Cause, ...]
    k: int
    """Cut-off of `lost_chunks`."""
    n_shared: int
    """Cases that are in both runs, edited ones among them."""
    notices: tuple[tuple[str, str], ...] = field(default=())
    """(code, message) of what the reader of the figures should know."""
    same_run: str | None = None
    """Why the two are one run, so that the comparison says nothing; None if they are two."""
    has_chunk_ids: bool = True
    """A case expects a chunk, so that chunk ids matter."""
    left_out: tuple[str, ...] = ()
    """Figures by chunk id that cannot be compared, since the runs have different chunkers."""
    without_value: tuple[str, ...] = ()
    """Figures that could be there and have no value in either run."""
    dropped: tuple[str, ...] = ()
    """Metric families and judges that a has and b has not, so that nothing is compared of them."""
    untold: Mapping[str, int] = field(default_factory=dict)
    """By name of a judge or 0/1 score, cases that failed in a and to which it applies in b, so that a change cannot be
    told."""
    gates: tuple[GateResult, ...] = ()
    """Gates of b with `not_worse_than`, held against a whatever baseline they name."""

    @property
    def counts(self) -> dict[QueryKind, int]:
        """How many cases there are of each kind, in the order of `QUERY_KINDS`."""
        found = Counter(query.kind for query in self.per_query)
        return {kind: found[kind] for kind in QUERY_KINDS}

    @property
    def kinds(self) -> dict[str, dict[ScoreKind, int]]:
        """How many cases there are of each kind, by name of a judge or 0/1 score; `changed` only if a case has."""
        found: dict[str, Counter[ScoreKind]] = {}
        for query in self.per_query:
            for name, change in query.scores.items():
                found.setdefault(name, Counter())[change.kind] += 1
        has_changed = any(counted["changed"] for counted in found.values())
        kinds = [kind for kind in SCORE_KINDS if kind != "changed" or has_changed]
        return {name: {kind: counted[kind] for kind in kinds} for name, counted in found.items()}

    def document(self) -> dict[str, Any]:
        """A strict-JSON object, unrounded."""
        return {
            "run_a": self.run_a,
            "run_b": self.run_b,
            "aggregate_a": dict(self.aggregate_a),
            "aggregate_b": dict(self.aggregate_b),
            "deltas": {
                **{delta.name: delta.document() for delta in self.deltas},
                "chunker_version_match": self.chunker_version_match,
            },
            "per_query": [query.document() for query in self.per_query],
            "only_in_a": list(self.only_in_a),
            "only_in_b": list(self.only_in_b),
            "changed": list(self.changed),
            "changed_cases": [
                {"query_id": query_id, "fields": list(fields)} for query_id, fields in self.changed_cases.items()
            ],
            "causes": [
                {"kind": cause.kind, "what": cause.what, "a": cause.a, "b": cause.b, "is_refused": cause.is_refused}
                for cause in self.causes
            ],
            "counts": dict(self.counts),
            "kinds": self.kinds,
            "left_out": list(self.left_out),
            "dropped": list(self.dropped),
            "same_run": self.same_run,
            "gates": [gate.model_dump(mode="json") for gate in self.gates],
            "k": self.k,
            "n_shared": self.n_shared,
            "notices": [{"code": code, "message": message} for code, message in self.notices],
        }
