"""`judgekit compare`: two stored runs side by side, and what else changed between them.

`compared_runs.open_runs` opens both, `compare` refuses those whose difference would mix causes, pairs their cases one
by one and says what differs, and `comparison_pieces` writes it in a format.
"""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgekit.analysis.case_changes import by_loss
from judgekit.analysis.relative_gates import held_against
from judgekit.analysis.run_deltas import whole_run_deltas, whole_run_figures
from judgekit.analysis.run_differences import causes, changed, query_notes
from judgekit.analysis.slices import slice_values
from judgekit.analysis.stored_figures import run_aggregate
from judgekit.core.comparison import COVERAGE, Cause, ChunkerMatch, Comparison, Delta
from judgekit.core.errors import ConfigError
from judgekit.core.scores import Column, Failed
from judgekit.reports.compare_page import ComparedCase, chosen_queries, render_comparison
from judgekit.reports.compare_text import compare_document, compare_markdown, plain_text
from judgekit.reports.safe_text import json_text
from judgekit.stats.means import mean
from judgekit.storage.remote_runs import is_run
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import index_run
from judgekit.workflows.closing import INDEX_SECONDS
from judgekit.workflows.compared_runs import CompareOptions, PairedCases, Side, Sides
from judgekit.workflows.stored import StoredRun

SHOWN = 3
"""Case ids in an error message."""

Notices = Iterator[tuple[str, str]]


def compare(sides: Sides, how: CompareOptions) -> Comparison:
    """Compare two runs over the cases that both have, hold the relative gates of b against a, and index both.

    Raises:
        ConfigError: the runs share no case, or they differ in what makes figures incomparable and that is not allowed.
        StorageError: a run is damaged.
    """
    found = compared(sides, how)
    gates = [held_against(gate, found) for gate in sides[1].stored.config.gates if gate.not_worse_than is not None]
    indexed = [notice for side in sides for notice in index_run(side.stored.folder.path, INDEX_SECONDS)]
    return replace(found, gates=tuple(gates), notices=tuple(dict.fromkeys([*found.notices, *indexed])))


def compared(sides: Sides, how: CompareOptions) -> Comparison:
    """What `compare` finds in the folders of two runs, without the gates; nothing is written.

    Raises:
        ConfigError: as `compare`.
        StorageError: as `compare`.
    """
    a, b = sides
    found = causes(a.identity, b.identity)
    cases = PairedCases(sides, how, query_notes(found))
    _refuse(sides, how, found, cases.match)
    shared, only_in_a, only_in_b = _shared(sides)
    queries = by_loss([cases.change(case_id) for case_id in shared])
    overall = [_figures(side) for side in sides]
    whole_runs = [whole_run_figures(side.metrics) for side in sides]
    others = [
        *cases.latencies.deltas(),
        *whole_run_deltas(*whole_runs, has_other_cases=bool(only_in_a or only_in_b)),
    ]
    mixed = _mixer(sides, found, cases, counts_edited=how.includes_edited)
    deltas = cases.tally.deltas(overall[0], overall[1], mixed, others)
    shares_answers = bool(_lineage(a.stored) & _lineage(b.stored))
    same_run = _same_run(a.stored, b.stored) or _same_verdicts(sides, cases, shares_answers=shares_answers)
    notices = [
        *a.notices,
        *b.notices,
        *_run_notices(sides, found, has_other_data=cases.has_other_data),
        *_missing(len(only_in_a), len(shared)),
        *_case_notices(sides, cases, deltas),
        *_same_notices(same_run, shares_answers=shares_answers),
    ]
    return Comparison(
        run_a=a.identity.run_id,
        run_b=b.identity.run_id,
        aggregate_a=run_aggregate(overall[0]),
        aggregate_b=run_aggregate(overall[1]),
        deltas=deltas,
        chunker_version_match=cases.match,
        per_query=queries,
        only_in_a=only_in_a,
        only_in_b=only_in_b,
        changed=changed(a.identity, b.identity),
        changed_cases=cases.edited,
        causes=found,
        k=how.k,
        n_shared=len(shared),
        notices=tuple(dict.fromkeys(notices)),
        same_run=same_run,
        has_chunk_ids=cases.has_chunk_ids,
        left_out=cases.left_out,
        without_value=cases.tally.without_value,
        dropped=cases.dropped,
        untold=dict(cases.untold),
    )


def comparison_pieces(sides: Sides, comparison: Comparison, failed: Sequence[str], form: str) -> Iterator[str]:
    """The comparison as text, piece by piece; the runs must still be open for the page.

    Args:
        sides: the two runs.
        comparison: what was found.
        failed: what `--fail-on` found.
        form: `table`, `md`, `json` or `html`.

    Raises:
        StorageError: a run is damaged.
    """
    if form == "html":
        yield from render_comparison(comparison, _page_cases(sides, comparison), failed)
    elif form == "md":
        yield compare_markdown(comparison, failed)
    elif form == "json":
        yield json_text(compare_document(comparison, failed), indent=2, sort_keys=False) + "\n"
    else:
        yield plain_text(comparison) + "\n"


def _page_cases(sides: Sides, comparison: Comparison) -> Iterator[ComparedCase]:
    a, b = (side.cases for side in sides)
    dimensions = sides[1].stored.config.slices
    for query in chosen_queries(comparison):
        case_id = query.query_id
        case = b.case(case_id) or a.case(case_id)
        yield ComparedCase(
            query=query,
            case=case,
            slices={} if case is None else {name: slice_values(case, name) for name in dimensions},
            outputs=(a.output(case_id), b.output(case_id)),
            scores=(a.scores(case_id), b.scores(case_id)),
        )


def _refuse(sides: Sides, how: CompareOptions, found: Sequence[Cause], match: ChunkerMatch) -> None:
    labels = " and ".join(side.label for side in sides)
    if how.strict_chunker_version and match != "exact":
        first, second = (_chunker(side) or "unknown" for side in sides)
        is_other = match == "fallback_doc_span"
        raise ConfigError(
            f"{labels}: chunker_version {'differs' if is_other else 'is not known'} ({first}, then {second}), which "
            "--strict-chunker-version refuses; without it, hits are compared "
            f"{'by document and characters' if is_other else 'by chunk id as it is'}"
        )
    refused = [cause for cause in found if cause.is_refused]
    if not refused or how.allows_mismatch:
        return
    also = [cause.line for cause in found if not cause.is_refused]
    raise ConfigError(
        f"{labels} cannot be compared, since a difference would mix causes; "
        f"what changed: {', '.join(cause.line for cause in refused)}"
        f"{'; besides: ' + ', '.join(also) if also else ''}; {_advice(sides, refused)}"
    )


def _chunker(side: Side) -> str | None:
    return side.identity.versions.get("chunker_version")


def _advice(sides: Sides, refused: Sequence[Cause]) -> str:
    """How to make the runs comparable."""
    a, b = sides
    judges = dict.fromkeys(judge for cause in refused for judge in cause.judges)
    found = [_rejudge(a, b.stored, judge, refused) for judge in judges]
    commands = [command for command in found if command is not None]
    parts = []
    if commands:
        text = " && ".join(_joined(commands, len(a.identity.judges)))
        parts.append(f"make them comparable with: {text}, then compare the new run")
    if len(commands) < len(found) or any(cause.what.endswith(": arguments") for cause in refused):
        parts.append("panels and arguments of a judge are made alike only by running one config with the other's")
    if any(cause.kind == "dataset" for cause in refused):
        parts.append("cases that are the same in both are compared with --allow-mismatch")
    elif judges:
        parts.append("--allow-mismatch compares all the same and marks what is mixed")
    return "; ".join(parts)


def _rejudge(a: Side, b: StoredRun, judge: str, refused: Sequence[Cause]) -> tuple[str, ...] | None:
    """The judge, and the command that judges run a as run b was judged; None if no option of it does."""
    theirs, ours = b.judge_config(judge), a.stored.judge_config(judge)
    own = [cause for cause in refused if judge in cause.judges]
    has_other_prompt = any(cause.kind == "prompt" for cause in own)
    is_new = any(a.stored.config.models.get(key) != b.config.models[key] for key in theirs.asked)
    command = ["judgekit", "rejudge", a.label]
    if theirs.asked != ours.asked or is_new:
        if theirs.model is None:
            return None
        command += ["--model", theirs.model]
    if has_other_prompt:
        command += ["--prompt-version", theirs.prompt_version]
    if is_new or (has_other_prompt and _is_own_wording(b, judge, theirs.prompt_version)):
        command += ["--config", b.manifest.config_path]
    if any(cause.what.endswith("served model") for cause in own):
        command.append("--no-cache")
    return None if {cause.what for cause in own} == {f"judge {judge}: arguments"} else (judge, *command)


def _is_own_wording(stored: StoredRun, judge: str, version: str) -> bool:
    """Whether a wording is the user's own and not one that ships."""
    own = stored.config.prompts_dir
    return own is not None and (stored.config_folder / Path(own) / judge / f"{version}.toml").exists()


def _joined(commands: Sequence[tuple[str, ...]], n_judges: int) -> Iterator[str]:
    """Commands as they are typed; judges that are asked alike share one, without names if they are all."""
    by_command: dict[tuple[str, ...], list[str]] = {}
    for judge, *command in commands:
        by_command.setdefault(tuple(command), []).append(judge)
    for words, judges in by_command.items():
        named = [] if len(judges) == n_judges else [word for name in judges for word in ("--judge", name)]
        yield shlex.join([*words[:3], *named, *words[3:]])


def _shared(sides: Sides) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """Ids that both runs have in the order of a, and those of a and of b alone."""
    a, b = (side.cases.ids for side in sides)
    known = set(a) & set(b)
    if not known:
        raise ConfigError(f"the runs share no case: {', '.join(map(_ids, sides))}")
    only_in_a, only_in_b = (tuple(case_id for case_id in ids if case_id not in known) for ids in (a, b))
    return [case_id for case_id in a if case_id in known], only_in_a, only_in_b


def _ids(side: Side) -> str:
    ids = side.cases.ids
    if not ids:
        return f"{side.label} has none"
    return f"{side.label} has {', '.join(ids[:SHOWN])}{', ...' if len(ids) > SHOWN else ''}"


def _figures(side: Side) -> Mapping[str, Any]:
    """Figures over all cases as metrics.json has them; of a run that wrote none, means of its scores."""
    if side.figures is not None:
        return side.figures
    columns = {column.name: column for part in side.columns.values() for column in part if column.aggregate != ""}
    values: dict[str, list[float]] = {name: [] for name in columns}
    n_failed = dict.fromkeys(columns, 0)
    for case_id in side.cases.ids:
        scores = side.cases.scores(case_id)
        for name in columns:
            outcome = scores.get(name, Failed("not judged", by_judge=True))
            if isinstance(outcome, float):
                values[name].append(outcome)
            elif isinstance(outcome, Failed):
                n_failed[name] += 1
    return {
        column.aggregate or name: _mean_figure(column, values[name], n_failed[name]) for name, column in columns.items()
    }


def _mean_figure(column: Column, values: Sequence[float], n_failed: int) -> dict[str, Any]:
    worst = mean([*values, *[column.worst] * n_failed]) if n_failed and math.isfinite(column.worst) else None
    return {"value": mean(values), "n": len(values), "worst": worst}


def _mixer(
    sides: Sides, found: Sequence[Cause], cases: PairedCases, *, counts_edited: bool
) -> Callable[[str], tuple[str, ...]]:
    """A function that gives, for a score or figure, the causes besides the answers that move its difference."""
    owners: dict[str, set[str]] = {}
    for side in sides:
        for family, component in side.components.items():
            names = [column.name for column in component.columns()] + [figure.name for figure in component.pooled()]
            for name in names:
                owners.setdefault(name, set()).add(family)
    for column in cases.joint:
        owners.setdefault(column.name, set()).update(name for side in sides for name in side.identity.judges)
    edited = ["cases were edited"] if cases.edited and counts_edited else []

    def mixed(name: str) -> tuple[str, ...]:
        own = owners.get(name, set())
        lines = [
            cause.line
            for cause in found
            if (cause.is_refused and own.intersection(cause.judges)) or own.intersection(cause.metrics)
        ]
        return (*lines, *edited)

    return mixed


def _same_run(a: StoredRun, b: StoredRun) -> str | None:
    """Why two folders hold one run; None if they hold two."""
    if a.folder.path.resolve() == b.folder.path.resolve():
        return f"a and b are one run, {b.manifest.run_id}"
    if a.manifest.run_id == b.manifest.run_id:
        return f"a and b are two copies of one run, {b.manifest.run_id}"
    first, second = ((run.created_at, run.finished_at, run.wall_seconds) for run in (a.manifest, b.manifest))
    if first == second and a.manifest.finished_at is not None:
        return f"{b.manifest.run_id} is a copy of {a.manifest.run_id} under another id: both ran at the same moment"
    return None


def _lineage(stored: StoredRun) -> set[str]:
    """Ids of the run and of the runs whose stored answers it judges again, as far as their folders are there."""
    manifest, found = stored.manifest, {stored.manifest.run_id}
    while manifest.parent is not None and manifest.parent not in found:
        found.add(manifest.parent)
        places = [Path(manifest.parent_path or manifest.parent), stored.folder.path.parent / manifest.parent]
        there = next((path for path in places if is_run(path)), None)
        if there is None:
            break
        manifest = RunFolder(there).manifest()
    return found


def _same_verdicts(sides: Sides, cases: PairedCases, *, shares_answers: bool) -> str | None:
    """Why two runs of the same answers say nothing about each other: they have the same scores too."""
    if not shares_answers or cases.n_unequal:
        return None
    first, second = (side.identity.run_id for side in sides)
    return f"{first} and {second} judge the same answers and have the same scores, so nothing is compared"


def _same_notices(same_run: str | None, *, shares_answers: bool) -> Notices:
    if same_run is not None:
        yield "same_run", f"{same_run}; every difference is 0, and that says nothing"
    elif shares_answers:
        yield "same_answers", "a and b judge the same answers, so a difference is of the judge and not of the system"


def _missing(n: int, n_shared: int) -> Notices:
    if n:
        what = f"{n} of the {n + n_shared} cases of a are not in b"
        yield "cases_missing", f"{what}, so every figure and gate is about the other {n_shared}"


def _case_notices(sides: Sides, cases: PairedCases, deltas: Sequence[Delta]) -> Notices:
    """What the pairing of cases showed."""
    if cases.has_chunk_ids and cases.match == "unknown":
        who = [name for name, side in zip("ab", sides, strict=True) if not _chunker(side)]
        text = "neither run says its" if len(who) == 2 else f"{who[0]} does not say its"
        yield "chunker_unknown", f"{text} chunker_version; chunk ids are taken to mean the same"
    judges = [name + COVERAGE for side in sides for name in side.identity.judges]
    for delta in deltas:
        if delta.name in judges and delta.a != delta.b and delta.a is not None and delta.b is not None:
            name = delta.name.removesuffix(COVERAGE)
            n_a, n_b = round(delta.a * delta.n), round(delta.b * delta.n)
            text = f"{name}: {n_a} of {delta.n} cases have a verdict in a, and {n_b} in b"
            yield "coverage_differs", f"{text}; the difference of its mean leaves out others"


def _run_notices(sides: Sides, found: Sequence[Cause], *, has_other_data: bool) -> Notices:
    """What limits a comparison of the two runs."""
    for name, side in zip("ab", sides, strict=True):
        run = f"{name} ({side.identity.run_id})"
        status = side.stored.manifest.status
        if status != "complete":
            yield "partial_run", f"{run} is {status}; what is there of it is compared"
        if not side.cases.has_scores:
            yield "no_scores", f"{run} has no scores yet; finish it with: judgekit run --resume {side.label}"
        if not side.cases.has_cases:
            text = "is of an older format without cases: edited cases cannot be recognised, scores are compared"
            yield "no_cases", f"{run} {text}{'' if has_other_data else '; labels are taken from the other run'}"
    for cause in found:
        if cause.is_refused:
            yield "mixed_causes", f"{cause.line}: allowed by --allow-mismatch"
        elif cause.kind == "judge":
            yield "judge_moved", cause.line
        elif cause.kind == "metric":
            yield "mixed_causes", f"{cause.line}: figures that it moves are not of the systems alone"
