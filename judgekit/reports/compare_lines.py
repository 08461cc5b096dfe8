"""Lines and tables that every report of a comparison shows."""

from collections import Counter
from collections.abc import Sequence

from judgekit.core.comparison import (
    QUERY_KINDS,
    SCORE_KINDS,
    WHOLE_RUNS,
    ChunkerMatch,
    Comparison,
    Delta,
    LostChunk,
    QueryChange,
    QueryKind,
    ScoreChange,
    ScoreKind,
)
from judgekit.core.scores import Scale
from judgekit.reports.figures import compared_text, direction, number, signed_between, signed_text
from judgekit.reports.headline import is_headline

MOST_LABELS = 12
"""Labels that a table of changed ones has of its own."""

SHOWN = 5
"""Cases named in one line."""

_WHOLE_NUMBERS = ("_ms", "_tokens")

_COUNT = Scale(unit="count")

_CHUNKERS: dict[ChunkerMatch, str] = {
    "exact": "by chunk id",
    "fallback_doc_span": "by document and characters, since the chunkers differ",
    "unknown": "by chunk id as it is, since a run does not name its chunker",
}

_OPTIONAL = ("better", "failed", "if failed", "whole runs")
"""Columns that a table has only if one of its rows has something to say there."""

_ORDER = {"worse": 0, "better": 1, "differs": 2}

_BAD: frozenset[QueryKind | ScoreKind] = frozenset({"regression", "loss"})

_GOOD: frozenset[QueryKind | ScoreKind] = frozenset({"win", "mended"})

_KIND_WORDS: dict[QueryKind, tuple[str, str]] = {
    "regression": ("regression", "regressions"),
    "loss": ("loss", "losses"),
    "win": ("win", "wins"),
    "draw": ("draw", "draws"),
    "changed_case": ("edited case left out", "edited cases left out"),
    "not_applicable": ("without expected hits", "without expected hits"),
}


def headline_deltas(comparison: Comparison) -> list[Delta]:
    """Differences for one screen, evidence first: the headline figures, and others with evidence of a difference."""
    chosen = [
        delta
        for delta in comparison.deltas
        if (is_headline(delta.name) and not (delta.method == WHOLE_RUNS and delta.a == delta.b))
        or delta.verdict in _ORDER
    ]
    return sorted(chosen, key=_place)


def _place(delta: Delta) -> tuple[int, float]:
    """With evidence first, then by p, then those without a p."""
    return _ORDER.get(delta.verdict, len(_ORDER)), 2.0 if delta.p is None else delta.p


def moved(deltas: Sequence[Delta]) -> list[Delta]:
    """Differences that are not 0, or not known."""
    return [delta for delta in deltas if not _is_same(delta)]


def same_line(deltas: Sequence[Delta]) -> str | None:
    """The figures that are equal to the last digit in one line; None if there is none."""
    names = [delta.name for delta in deltas if _is_same(delta)]
    return f"no difference at all in {len(names)} figures: {', '.join(names)}" if names else None


def _is_same(delta: Delta) -> bool:
    return delta.delta == 0 and not delta.delta_if_failed_worst and not delta.is_of_other_cases


def table_of(deltas: Sequence[Delta]) -> list[tuple[str, ...]]:
    """Header and rows as texts; columns that would be empty throughout are left out."""
    rows = [cells(delta) for delta in deltas]
    header = tuple(name for name in rows[0] if name not in _OPTIONAL or any(row[name] for row in rows))
    return [header, *(tuple(row[name] for name in header) for row in rows)]


def cells(delta: Delta) -> dict[str, str]:
    """A difference as texts, by column; empty if there is nothing to say."""
    has_failed = delta.n_failed_a or delta.n_failed_b
    worst, whole = delta.delta_if_failed_worst, (delta.a_overall, delta.b_overall)
    return {
        "figure": delta.name,
        "verdict": f"{delta.verdict}, mixed" if delta.mixed else delta.verdict,
        "a": _value(delta, delta.a),
        "b": _value(delta, delta.b),
        "b - a": _signed(delta, delta.delta),
        "95% interval": signed_between(delta.low, delta.high, _scale(delta, delta.low)),
        "better": direction(delta.scale),
        "pairs": "" if delta.method == WHOLE_RUNS else str(delta.n),
        "p": p_text(delta.p),
        "p (Holm)": p_text(delta.p_holm),
        "failed": f"{delta.n_failed_a} / {delta.n_failed_b}" if has_failed else "",
        "if failed": "" if worst is None else _signed(delta, worst).removesuffix(" pp"),
        "whole runs": " / ".join(_value(delta, of_run).partition(" of ")[0] for of_run in whole)
        if delta.is_of_other_cases
        else "",
    }


def _value(delta: Delta, figure: float | None) -> str:
    return compared_text(figure, _scale(delta, figure))


def _signed(delta: Delta, difference: float | None) -> str:
    return signed_text(difference, _scale(delta, difference))


def _scale(delta: Delta, figure: float | None) -> Scale | None:
    """Of the figure; what is whole by its name, and a whole number of a run, is a count."""
    is_whole = delta.method == WHOLE_RUNS and figure is not None and figure == int(figure)
    return _COUNT if is_whole or delta.name.endswith(_WHOLE_NUMBERS) else delta.scale


def p_text(p: float | None) -> str:
    """A p value with three decimals, or that it is smaller."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def case_line(comparison: Comparison) -> str:
    """How many cases lost and gained by anything, and how many by their first correct hit, in one line."""
    counts = comparison.counts
    parts = [_counted(kind, counts[kind]) for kind in QUERY_KINDS[:4]]
    parts += [_counted(kind, counts[kind]) for kind in QUERY_KINDS[4:] if counts[kind]]
    hits = ", ".join(parts) if any(counts[kind] for kind in QUERY_KINDS[:4]) else ", ".join(parts[4:])
    return f"{comparison.n_shared} cases in both: {outcome_line(comparison)}; first correct hit: {hits}"


def outcome_line(comparison: Comparison) -> str:
    """`6 with a regression, 1 with another loss, 2 with gains alone`."""
    kinds = [query.kinds for query in comparison.per_query]
    n_regressed = sum("regression" in found for found in kinds)
    n_lost = len(losing_cases(comparison)) - n_regressed
    losing = {query.query_id for query in losing_cases(comparison)}
    gained = (query for query in comparison.per_query if query.kinds & _GOOD and query.query_id not in losing)
    n_gained = sum(1 for _ in gained)
    return f"{n_regressed} with a regression, {n_lost} with another loss, {n_gained} with gains alone"


def _counted(kind: QueryKind, n: int) -> str:
    return f"{n} {_KIND_WORDS[kind][n != 1]}"


def chunker_line(comparison: Comparison) -> str:
    """How hits are compared, which figures that leaves out, and whether a case expects a chunk at all."""
    match = comparison.chunker_version_match
    if not comparison.has_chunk_ids:
        return f"no case expects a chunk, so no chunk ids are compared [{match}]"
    line = f"hits are compared {_CHUNKERS[match]} [{match}]"
    return (
        f"{line}; left out, since they go by chunk id: {', '.join(comparison.left_out)}"
        if comparison.left_out
        else line
    )


def flip_table(comparison: Comparison) -> list[tuple[str, ...]]:
    """Header and a row for each judge and 0/1 score that moved in a case, those with most regressions first."""
    moved_kinds = [
        (name, counts)
        for name, counts in comparison.kinds.items()
        if is_headline(name) and any(n for kind, n in counts.items() if kind != "draw")
    ]
    kinds = [kind for kind in SCORE_KINDS if any(kind in counts for _, counts in moved_kinds)]
    rows = sorted(moved_kinds, key=lambda row: [-row[1][kind] for kind in kinds])
    return [("score", *kinds), *((name, *(str(counts[kind]) for kind in kinds)) for name, counts in rows)]


def label_tables(comparison: Comparison) -> list[tuple[str, list[list[str]]]]:
    """Of each judge of labels, or yes and no, that changed one: its name, and a table of what a and then b says.

    The labels stand by how often they were given, those beyond `MOST_LABELS` as one. Without a label in b there is the
    column `no label`.
    """
    pairs: dict[str, Counter[tuple[str, str | None]]] = {}
    for query in comparison.per_query:
        for name, change in query.scores.items():
            if isinstance(change.a, str):
                second = change.b if isinstance(change.b, str) else None
                pairs.setdefault(name, Counter())[change.a, second] += 1
    return [(name, _confusion(counts)) for name, counts in pairs.items() if any(a != b for a, b in counts)]


def _confusion(counts: Counter[tuple[str, str | None]]) -> list[list[str]]:
    """Header and a row for each label of a, a column for each of b."""
    given: Counter[str] = Counter()
    for pair, n in counts.items():
        for label in pair:
            if label is not None:
                given[label] += n
    names = [label for label, _ in given.most_common(MOST_LABELS)]
    others = f"{len(given) - len(names)} others"
    kept = [*names, *([others] if len(given) > len(names) else [])]
    shown: Counter[tuple[str, str | None]] = Counter()
    for (a, b), n in counts.items():
        shown[a if a in names else others, b if b is None or b in names else others] += n
    columns: list[str | None] = [*kept, *([None] if any(b is None for _, b in shown) else [])]
    rows = [[a, *(str(shown[a, b]) for b in columns)] for a in kept if any(shown[a, b] for b in columns)]
    return [["in a, then in b", *("no label" if b is None else b for b in columns)], *rows]


def unmoved_line(comparison: Comparison) -> str | None:
    """How many judges and 0/1 scores are equal in every case, with the names for one screen."""
    names = [name for name, counts in comparison.kinds.items() if sum(counts.values()) == counts["draw"]]
    shown = [name for name in names if is_headline(name)]
    return f"no case moved in {len(names)} scores: {', '.join(shown)}" if shown else None


def losing_cases(comparison: Comparison) -> list[QueryChange]:
    """The cases that lost something, the largest loss first."""
    return [query for query in comparison.per_query if query.loss[0] > 0 or query.kinds & _BAD]


def losing_lines(comparison: Comparison) -> list[str]:
    """The first cases that lost something, and how many more."""
    found = losing_cases(comparison)
    lines = [f"{query.query_id}: {_first(losses(query))}" for query in found[:SHOWN]]
    return [*lines, f"and {len(found) - SHOWN} more cases"] if len(found) > SHOWN else lines


def _first(parts: Sequence[str]) -> str:
    more = f"; and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    return "; ".join(parts[:SHOWN]) + more


def losses(query: QueryChange) -> list[str]:
    """What a case lost: its hits, then headline scores (without any, other scores), the largest loss first."""
    found = {name: change for name, change in query.scores.items() if change.kind in _BAD}
    shown = {name: change for name, change in found.items() if is_headline(name)} or found
    lines = [change_text(name, change) for name, change in sorted(shown.items(), key=lambda item: -item[1].loss)]
    hits = [f"{query.kind} of the first correct hit ({ranks(query)})"] if query.kind in _BAD else []
    return [*hits, *map(lost_text, query.lost), *lines]


def change_text(name: str, change: ScoreChange) -> str:
    """`regression of groundedness (5, then 1)`."""
    return f"{change.kind} of {name} ({change_values(change)})"


def change_values(change: ScoreChange) -> str:
    """`5, then 1`, or why there is no second value."""
    first, second = (plain_number(value) if value is not None else change.reason for value in (change.a, change.b))
    return f"{first}, then {second}"


def plain_number(value: float | str) -> str:
    """`5`, or `0.333`; a label as it is."""
    if isinstance(value, str):
        return value
    return f"{value:g}" if value == int(value) else number(value)


def lost_text(chunk: LostChunk) -> str:
    """`loss of chunk c2 (rank 2, then not found)`."""
    return f"loss of chunk {chunk.chunk_id} ({_rank(chunk.a_rank)}, then {_rank(chunk.b_rank)})"


def ranks(query: QueryChange) -> str:
    """`rank 2, then not found`."""
    return f"{_rank(query.a_hit_rank)}, then {_rank(query.b_hit_rank)}"


def _rank(rank: int | None) -> str:
    return "not found" if rank is None else f"rank {rank}"


def set_lines(comparison: Comparison) -> list[str]:
    """Cases that are in one run alone, and edited ones."""
    lines = [
        f"only in {name}: {_some(ids)}"
        for name, ids in (("a", comparison.only_in_a), ("b", comparison.only_in_b))
        if ids
    ]
    if comparison.changed_cases:
        edited = [f"{case_id} ({', '.join(fields)})" for case_id, fields in comparison.changed_cases.items()]
        lines.append(f"edited between the runs: {_some(edited)}")
    return lines


def table_notes(comparison: Comparison, deltas: Sequence[Delta]) -> list[str]:
    """What the columns of a table of these differences mean."""
    n_tested = sum(delta.p is not None for delta in comparison.deltas)
    lines = [f"b - a over the pairs, cases with a value in both runs; p (Holm) is adjusted over {n_tested} figures"]
    if any(delta.scale is not None and delta.scale.unit == "share" for delta in deltas):
        lines.append("pp: percentage points")
    if any(delta.is_of_other_cases for delta in deltas):
        lines.append("whole runs: the figures of each run over all its cases, where the pairs are others")
    if any(delta.delta_if_failed_worst is not None for delta in deltas):
        lines.append("if failed: b - a if each case that failed in one run alone had scored the worst there")
    mixed = dict.fromkeys(line for delta in deltas for line in delta.mixed)
    return lines + [f"mixed: {line}" for line in mixed]


def _some(names: Sequence[str]) -> str:
    """The first names, and how many there are."""
    more = f", ... ({len(names)})" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
