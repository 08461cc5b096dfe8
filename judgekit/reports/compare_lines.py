"""What every report of a comparison says, in the same words."""

from collections.abc import Callable, Sequence

from judgekit.core.comparison import QUERY_KINDS, Comparison, Delta, QueryChange, QueryKind
from judgekit.core.scores import SUM_METHOD
from judgekit.reports.figures import is_headline, number

SHOWN = 5
"""Cases named in one line."""

_ORDER = {"worse": 0, "better": 1, "differs": 2}

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
    chosen = [delta for delta in comparison.deltas if is_headline(delta.name) or delta.verdict in _ORDER]
    return sorted(chosen, key=_place)


def _place(delta: Delta) -> tuple[int, float]:
    """Evidence first, then by p, then what has none."""
    return _ORDER.get(delta.verdict, len(_ORDER)), 2.0 if delta.p is None else delta.p


def moved(deltas: Sequence[Delta]) -> list[Delta]:
    """Those that differ in any way, or of which no difference is known."""
    return [delta for delta in deltas if not _is_same(delta)]


def same_line(deltas: Sequence[Delta]) -> str | None:
    """The figures that are equal to the last digit in one line; None where there is none."""
    names = [delta.name for delta in deltas if _is_same(delta)]
    return f"no difference at all in {len(names)} figures: {', '.join(names)}" if names else None


def _is_same(delta: Delta) -> bool:
    return delta.delta == 0 and not delta.delta_if_failed_worst and not delta.is_of_other_cases


def table_of(deltas: Sequence[Delta]) -> list[tuple[str, ...]]:
    """Header and rows as texts; columns that would be empty throughout are left out."""
    header = tuple(_CELLS)
    body = [tuple(make(delta) for make in _CELLS.values()) for delta in deltas]
    kept = [place for place, name in enumerate(header) if name not in _OPTIONAL or any(row[place] for row in body)]
    return [tuple(row[place] for place in kept) for row in (header, *body)]


def verdict(delta: Delta) -> str:
    """In a word, and whether other causes are mixed in."""
    return f"{delta.verdict}, mixed" if delta.mixed else delta.verdict


def value(delta: Delta, figure: float | None) -> str:
    """A figure of one run."""
    return number(figure, 0 if delta.method == SUM_METHOD else 3)


def signed(delta: Delta, difference: float | None) -> str:
    """A difference with its sign; `0` where the runs are equal."""
    if difference is None:
        return "n/a"
    text = value(delta, difference)
    return text if text.startswith("-") or difference == 0 else f"+{text}"


def interval(delta: Delta) -> str:
    """`-0.050 to +0.012`, or nothing."""
    if delta.low is None or delta.high is None:
        return ""
    return f"{signed(delta, delta.low)} to {signed(delta, delta.high)}"


def failed(delta: Delta) -> str:
    """How many cases failed in each run, `2 / 3`; nothing where none did."""
    return f"{delta.n_failed_a} / {delta.n_failed_b}" if delta.n_failed_a or delta.n_failed_b else ""


def if_failed(delta: Delta) -> str:
    """The difference if what failed in one run alone had scored the worst there."""
    return "" if delta.delta_if_failed_worst is None else signed(delta, delta.delta_if_failed_worst)


def whole_runs(delta: Delta) -> str:
    """The figures of the whole runs where they are over other cases than the pairs: `0.867 / 0.655`."""
    if not delta.is_of_other_cases:
        return ""
    return f"{value(delta, delta.a_overall)} / {value(delta, delta.b_overall)}"


def p_text(p: float | None) -> str:
    """A p value with three decimals, or that it is smaller."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def case_line(comparison: Comparison) -> str:
    """How many cases won, lost and so on, in one line."""
    counts = comparison.counts
    parts = [f"{counts[kind]} {_KIND_WORDS[kind][counts[kind] != 1]}" for kind in QUERY_KINDS[:4]]
    parts += [f"{counts[kind]} {_KIND_WORDS[kind][counts[kind] != 1]}" for kind in QUERY_KINDS[4:] if counts[kind]]
    how = "by chunk id" if comparison.chunker_version_match == "exact" else "by document and characters"
    return f"{comparison.n_shared} cases in both, first correct hit {how}: {', '.join(parts)}"


def lost_lines(comparison: Comparison) -> list[str]:
    """The first cases that lost a chunk within the cut-off, and how many more."""
    lost = [query for query in comparison.per_query if query.lost_chunks]
    lines = [f"{query.query_id}: {', '.join(query.lost_chunks)} ({ranks(query)})" for query in lost[:SHOWN]]
    return [*lines, f"and {len(lost) - SHOWN} more cases"] if len(lost) > SHOWN else lines


def regression_lines(comparison: Comparison) -> list[str]:
    """The first cases of the kinds to look at, and how many more."""
    bad = [query for kind in ("regression", "loss") for query in comparison.per_query if query.kind == kind]
    lines = [f"{query.kind} {query.query_id}: {ranks(query)}" for query in bad[:SHOWN]]
    return [*lines, f"and {len(bad) - SHOWN} more cases"] if len(bad) > SHOWN else lines


def ranks(query: QueryChange) -> str:
    """`rank 2, then not found`."""
    a, b = query.a_hit_rank, query.b_hit_rank
    return f"{'not found' if a is None else f'rank {a}'}, then {'not found' if b is None else f'rank {b}'}"


def changed_lines(comparison: Comparison) -> list[str]:
    """What differs besides the answers."""
    return [cause.line for cause in comparison.causes]


def set_lines(comparison: Comparison) -> list[str]:
    """Cases that are in one run alone, and edited ones."""
    lines = [
        f"only in {name}: {some(ids)}"
        for name, ids in (("a", comparison.only_in_a), ("b", comparison.only_in_b))
        if ids
    ]
    if comparison.changed_cases:
        edited = [f"{case_id} ({', '.join(fields)})" for case_id, fields in comparison.changed_cases.items()]
        lines.append(f"edited between the runs: {some(edited)}")
    return lines


def table_notes(deltas: Sequence[Delta], n_tested: int) -> list[str]:
    """What the columns of the table mean, as far as they are there.

    Args:
        deltas: the rows.
        n_tested: figures that have a p value, those not shown too.
    """
    lines = [f"b - a over the pairs, cases with a value in both runs; p (Holm) is adjusted over {n_tested} figures"]
    if any(map(whole_runs, deltas)):
        lines.append("whole runs: the figures of each run over all its cases, where the pairs are others")
    if any(map(if_failed, deltas)):
        lines.append("if failed: b - a if each case that failed in one run alone had scored the worst there")
    mixed = dict.fromkeys(line for delta in deltas for line in delta.mixed)
    return lines + [f"mixed: {line}" for line in mixed]


def n_tested(comparison: Comparison) -> int:
    """Figures that have a p value."""
    return sum(delta.p is not None for delta in comparison.deltas)


def some(names: Sequence[str]) -> str:
    """The first names, and how many there are."""
    more = f", ... ({len(names)})" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


_CELLS: dict[str, Callable[[Delta], str]] = {
    "figure": lambda delta: delta.name,
    "verdict": verdict,
    "a": lambda delta: value(delta, delta.a),
    "b": lambda delta: value(delta, delta.b),
    "b - a": lambda delta: signed(delta, delta.delta),
    "95% interval": interval,
    "pairs": lambda delta: str(delta.n),
    "p": lambda delta: p_text(delta.p),
    "p (Holm)": lambda delta: p_text(delta.p_holm),
    "failed": failed,
    "if failed": if_failed,
    "whole runs": whole_runs,
}

_OPTIONAL = ("failed", "if failed", "whole runs")
