"""Two stored runs as `judgekit compare` reads them: what each was made with, and their cases one by one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from judgekit.analysis.case_changes import KindRule, edited_fields, kind_rules, query_change, score_change
from judgekit.analysis.deltas import DeltaTally
from judgekit.analysis.estimates import ErrorPolicy
from judgekit.analysis.joint import joint_columns
from judgekit.analysis.run_deltas import USAGE_COLUMNS, LatencyPairs, usage_outcomes
from judgekit.analysis.run_differences import chunker_match
from judgekit.analysis.slices import Clusters
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.comparison import FirstHits, JudgeIdentity, QueryChange, RunIdentity, ScoreChange
from judgekit.core.components import Component, Judge
from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError
from judgekit.core.kind import Kind
from judgekit.core.runs import CONFIG, METRICS
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome
from judgekit.metrics.first_hits import HitMatching, first_hits, span_names, span_outcomes
from judgekit.metrics.functions import stored_columns
from judgekit.storage.stored_cases import ComparedRun
from judgekit.workflows.families import is_from_a_file
from judgekit.workflows.models import Options
from judgekit.workflows.stored import StoredRun, open_stored

SYSTEM_VERSIONS = ("chunker_version", "embedding_model", "index_version", "prompt_version")

HIT = "hit@"

Scores = Mapping[str, Outcome]


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    label: str
    """How the user named it."""
    stored: StoredRun
    cases: ComparedRun
    metrics: Mapping[str, Any]
    """metrics.json; empty if the run wrote none."""
    identity: RunIdentity
    components: Mapping[str, Component]
    """Metric families and judges by name, if they can be built here."""
    notices: Sequence[tuple[str, str]]

    @property
    def columns(self) -> dict[str, Sequence[Column]]:
        """What is known of its scores, by metric family or judge."""
        return {name: component.columns() for name, component in self.components.items()}

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of verdict of each judge."""
        return {name: found.kind for name, found in self.components.items() if isinstance(found, Judge)}

    @property
    def figures(self) -> dict[str, Any] | None:
        """Figures over all cases as metrics.json has them; None if the run wrote none."""
        return {**_part(self.metrics, "operational"), **_part(self.metrics, "overall")} if self.metrics else None


Sides = tuple[Side, Side]
"""The baseline and the candidate."""


@contextmanager
def open_runs(a: str, b: str, options: Options, figures: Mapping[str, Any] | None = None) -> Iterator[Sides]:
    """Two stored runs, ready to be compared.

    Args:
        a: the baseline: a run id or folder; `latest` and `latest:TAG` leave the candidate out.
        b: the candidate.
        options: where runs are kept.
        figures: metrics.json of the candidate, if it is about to be written; None: as it is stored.

    Raises:
        ConfigError: there is no run, or one of a newer format.
        StorageError: a run is damaged.
    """
    with ExitStack() as files:
        candidate = open_stored(b, options)
        baseline = open_stored(a, options, without=candidate.manifest.run_id)
        yield side_of(a, baseline, files), side_of(b, candidate, files, figures)


def side_of(label: str, stored: StoredRun, files: ExitStack, metrics: Mapping[str, Any] | None = None) -> Side:
    """A stored run as a comparison reads it; its files are closed with the others.

    Args:
        label: how the user named it.
        stored: the run.
        files: what closes them.
        metrics: metrics.json, if it is about to be written; None: as it is stored.
    """
    if metrics is None:
        metrics = stored.folder.read_json(METRICS) if stored.folder.has(METRICS) else {}
    components, notices = components_of(stored, _part(metrics, "own_code"))
    identity = _identity(stored, metrics)
    return Side(label, stored, files.enter_context(ComparedRun(stored.folder)), metrics, identity, components, notices)


def components_of(stored: StoredRun, own_code: Mapping[str, Any]) -> tuple[dict[str, Component], list[tuple[str, str]]]:
    """Metric families and judges by name; those that cannot be built here are left out with a notice.

    What is from a Python file is known by what the run stored of its scores: to compare runs is to execute no code of
    theirs.
    """
    found: dict[str, Component] = {name: stored_columns(name, record["columns"]) for name, record in own_code.items()}
    notices = []
    config = stored.config
    if config.metrics is not None:
        kept = tuple(item for item in config.metrics if not is_from_a_file(item))
        stored = replace(stored, config=config.model_copy(update={"metrics": kept}))
    for judge in (None, *(judge for judge in config.judges if judge.name not in own_code)):
        try:
            built: Sequence[Component] = stored.metrics() if judge is None else [stored.judge(judge.name)]
        except ConfigError as error:
            text = f"{stored.manifest.run_id}: {error}; its scores are compared by their values alone"
            notices.append(("unknown_scores", text))
        else:
            found |= {component.name: component for component in built}
    return found, notices


def _identity(stored: StoredRun, metrics: Mapping[str, Any]) -> RunIdentity:
    """What a stored run was made with; its metrics.json knows which models answered."""
    resolved, manifest = stored.resolved, stored.manifest
    parser = resolved.get("parser_version", manifest.versions.get("parser"))
    records, own_code = _part(metrics, "judges"), _part(metrics, "own_code")
    return RunIdentity(
        run_id=manifest.run_id,
        dataset_sha256=_part(resolved, "cases").get("sha256"),
        parser_version=None if parser is None else str(parser),
        errors=stored.config.errors,
        versions={name: manifest.versions[name] for name in SYSTEM_VERSIONS if name in manifest.versions},
        judges={judge.name: _judge(stored, judge.name, _part(records, judge.name)) for judge in stored.config.judges},
        metrics={name: {**settings, **_code(own_code, name)} for name, settings in _part(resolved, "metrics").items()},
        config=stored.folder.read_json(CONFIG),
        metrics_version=metrics.get("metrics_version", 1),
        abstention=_part(metrics, "abstention").get("source"),
    )


def _judge(stored: StoredRun, name: str, record: Mapping[str, Any]) -> JudgeIdentity:
    wanted = stored.judge_config(name)
    models = [stored.config.models[key] for key in wanted.asked]
    seen = [_part(stored.manifest.models, key) for key in wanted.asked]
    builds = [found.get("build_hash") or model.pin.build_hash for found, model in zip(seen, models, strict=True)]
    takes = [_part(found, "capabilities").get("temperature", True) for found in seen]
    prompts = _part(stored.resolved, "prompts")
    panel = wanted.panel
    return JudgeIdentity(
        model_id=", ".join(wanted.asked),
        model=", ".join(model.model for model in models),
        provider=", ".join(model.provider for model in models),
        build_hash=_build(record, builds),
        served_models=_seen(record, seen, "served_models"),
        fingerprints=_seen(record, seen, "fingerprints"),
        prompt_version=record.get("prompt_version", wanted.prompt_version),
        prompt_sha256=record.get("prompt_sha256") or prompts.get(f"{name}/{wanted.prompt_version}", ""),
        args={
            **(_part(_part(stored.resolved, "judges"), name) or wanted.args),
            **({} if panel is None else {"rule": panel.rule, "quorum": panel.least}),
        },
        temperature_accepted=bool(record.get("temperature_accepted", all(takes))),
        upstreams=_seen(record, seen, "upstreams"),
        request_fields=_request_fields(models),
    )


def _request_fields(models: Sequence[ModelConfig]) -> dict[str, Any]:
    """What is set for requests beyond the usual and can change a verdict; headers say who asks, not what."""
    found: dict[str, Any] = {}
    for number, model in enumerate(models, start=1):
        member = f"member {number} " if len(models) > 1 else ""
        fields = model.further_fields().items()
        found |= {f"{member}{name}": value for name, value in fields if name != "extra_headers"}
    return found


def _build(record: Mapping[str, Any], builds: Sequence[str | None]) -> str | None:
    """The build that judged; of a panel, all of its builds, if all are known."""
    if record.get("build_hash"):
        return str(record["build_hash"])
    known = [build for build in builds if build]
    return ", ".join(known) if known and len(known) == len(builds) else None


def _seen(record: Mapping[str, Any], seen: Sequence[Mapping[str, Any]], what: str) -> frozenset[str]:
    """Served models, fingerprints or upstreams: of the judge's own replies, else of all replies of its models."""
    return frozenset(record.get(what) or [name for found in seen for name in _part(found, what)])


def _code(own_code: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The hash of the Python file that the figures are of, which a rescore may have changed."""
    sha256 = _part(own_code, name).get("code_sha256")
    return {} if sha256 is None else {"code_sha256": sha256}


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = record.get(name)
    return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True)
class CompareOptions:
    """How two runs are compared."""

    k: int = 5
    """Cut-off of lost chunks."""
    allows_mismatch: bool = False
    strict_chunker_version: bool = False
    includes_edited: bool = False
    """Pair cases that were edited between the runs too."""


class PairedCases:
    """The cases of two runs, paired one by one: scores are gathered in `tally`, everything else beside it."""

    def __init__(self, sides: Sides, how: CompareOptions, notes: Sequence[str]) -> None:
        """Prepare for the first case; `notes` are the known causes of a difference."""
        self._a, self._b = sides
        self._how, self._notes = how, notes
        identities = [side.identity for side in sides]
        self._judges = [name for identity in identities for name in identity.judges]
        scored = [column for side in sides for part in side.columns.values() for column in part]
        self.joint = joint_columns(scored)
        """Figures that take two judges."""
        self.match = chunker_match(*identities)
        """Whether chunk ids of the two runs mean the same."""
        self.has_other_data = identities[0].dataset_sha256 != identities[1].dataset_sha256
        self._choose_columns(scored)
        config = self._b.stored.config
        self._matching = HitMatching(self.match != "fallback_doc_span", how.k, config.match.snippets)
        has_cases = self._a.cases.has_cases or self._b.cases.has_cases
        self._clusters = Clusters(config.cluster_by) if config.cluster_by is not None and has_cases else None
        pooled = [figure for side in sides for part in side.components.values() for figure in part.pooled()]
        policy: ErrorPolicy = "as_zero" if all(identity.errors == "as_zero" for identity in identities) else "exclude"
        self.tally = DeltaTally(self._columns, pooled, policy, self._figures)
        self.latencies = LatencyPairs()
        self.edited: dict[str, tuple[str, ...]] = {}
        """Fields that were edited, by case id."""
        self.untold: Counter[str] = Counter()
        """By name of a judge or 0/1 score, cases that failed in a, so that a change is not known."""
        self.has_chunk_ids = False
        """A case expects a chunk, so that chunk ids matter."""
        self.n_unequal = 0
        """Cases whose scores differ in any way."""
        # The same few changes come again and again, alone and together.
        self._known: dict[ScoreChange, ScoreChange] = {}
        self._known_together: dict[tuple[tuple[str, ScoreChange], ...], dict[str, ScoreChange]] = {}

    def _choose_columns(self, scored: Sequence[Column]) -> None:
        """Which scores are compared, and by which rules; spans replace chunk ids if the chunkers differ."""
        out = [column.name for column in scored if column.by_chunk_id] if self.match == "fallback_doc_span" else []
        self.left_out = tuple(dict.fromkeys(out))
        """Scores by chunk id that cannot be compared, since the runs have different chunkers."""
        names = dict.fromkeys(column.name for column in scored if column.name.startswith(HIT))
        self._ks = sorted(int(name.removeprefix(HIT)) for name in names) if out else None
        spans = [] if self._ks is None else [Column(name, binary=name != "mrr_span") for name in span_names(self._ks)]
        kept = [column for column in scored if column.name not in self.left_out]
        self._columns = [*kept, *spans, *self.joint, *USAGE_COLUMNS]
        first, second = ({*side.columns, *side.identity.metrics, *side.identity.judges} for side in (self._a, self._b))
        families = {
            name: columns
            for side in (self._a, self._b)
            for name, columns in side.columns.items()
            if name in first & second
        }
        kinds = {**self._b.kinds, **self._a.kinds}
        shares = {name: kind.label_columns(name) for name, kind in kinds.items()}
        self._figures = {name: next(iter(shares.get(name, ())), name) for name in self._judges}
        rules = [*kind_rules(families, self._judges, kinds), *kind_rules({"": self.joint}, ())]
        rules += kind_rules({"": [column for column in spans if column.binary]}, ())
        self._rules: list[KindRule] = [rule for rule in rules if rule.column.name not in self.left_out]
        lost = {name: columns for name, columns in self._a.columns.items() if name in first - second}
        self.dropped = tuple(
            name for name, columns in lost.items() if kind_rules({name: columns}, self._a.identity.judges)
        )
        """Metric families and judges that give kinds per case in a, and that b has not."""

    def change(self, case_id: str) -> QueryChange:
        """What became of one case that both runs have."""
        a, b = self._a.cases, self._b.cases
        first, second = a.case(case_id), b.case(case_id)
        fields = edited_fields(first, second) if first is not None and second is not None else ()
        if fields:
            self.edited[case_id] = fields
            if not self._how.includes_edited:
                return QueryChange(case_id, "changed_case", note=f"edited: {', '.join(fields)}")
        case = second or first
        outputs = a.output(case_id), b.output(case_id)
        is_labelled = case is not None and not ((first is None or second is None) and self.has_other_data)
        hits = first_hits(case, *outputs, self._matching) if case is not None and is_labelled else None
        changes = self._scores(case_id, case, outputs, hits)
        if not is_labelled:
            return QueryChange(case_id, "not_applicable", note="the case was not kept", scores=changes)
        if fields and hits is not None:
            hits = replace(hits, notes=(f"edited: {', '.join(fields)}", *hits.notes))
        return query_change(case_id, hits, self._notes, changes)

    def _scores(
        self,
        case_id: str,
        case: Case | None,
        outputs: tuple[SystemOutput | None, SystemOutput | None],
        hits: FirstHits | None,
    ) -> dict[str, ScoreChange]:
        """Count the scores, tokens and latencies of a case; what became of each judge's verdict and 0/1 score."""
        scores = self._a.cases.scores(case_id), self._b.cases.scores(case_id)
        self.n_unequal += scores[0] != scores[1]
        self.has_chunk_ids = self.has_chunk_ids or bool(case is not None and case.expected_chunk_ids)
        ranks = (None, None) if hits is None else (hits.a_rank, hits.b_rank)
        a, b = (self._compared(*parts) for parts in zip(scores, (case, case), outputs, ranks, strict=True))
        cluster = None if self._clusters is None or case is None else self._clusters.number(case)
        self.tally.add(a, b, cluster)
        self.latencies.add(*outputs)
        changes = {}
        for rule in self._rules:
            name = rule.column.name
            change = score_change(rule, case, a, b)
            if change is not None:
                changes[name] = self._known.setdefault(change, change)
            elif isinstance(rule.said(a), Failed) and not isinstance(rule.said(b), NotApplicable | None):
                self.untold[name] += 1
        return self._known_together.setdefault(tuple(changes.items()), changes)

    def _compared(self, scores: Scores, case: Case | None, output: SystemOutput | None, rank: int | None) -> Scores:
        """The compared scores of one run: with tokens, and spans instead of chunk ids if chunkers differ."""
        found = {**scores, **usage_outcomes(output)}
        if self._ks is None:
            return found
        kept = {name: outcome for name, outcome in found.items() if name not in self.left_out}
        if case is None or output is None:
            return kept
        return {**kept, **span_outcomes(case, output, rank, self._ks)}
