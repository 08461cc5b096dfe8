"""The first correct hit of one case in two runs, also if they were chunked differently."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from judgekit.core.cases import Case, Hit, SystemOutput
from judgekit.core.comparison import FirstHits, LostChunk
from judgekit.core.scores import Failed, Outcomes
from judgekit.metrics.gold_evidence import GoldSupports, SnippetMode, by_rank, first_occurrences
from judgekit.metrics.retrieval_ids import MRR_CUTOFF, NO_CHUNKS
from judgekit.metrics.spans import CharacterSpan, character_spans, span_recall

LEAST_COVER = 0.5
"""Share of an expected chunk's characters that the hits of another chunker have to cover."""


@dataclass(frozen=True, slots=True)
class HitMatching:
    """How hits of two runs are held against what is expected."""

    by_chunk_id: bool = True
    """False if the two were chunked differently, so that ids say nothing."""
    k: int = 5
    """Cut-off of what counts as lost."""
    snippets: SnippetMode = "if_text"


Ranked = Sequence[tuple[int, Hit]]


def first_hits(case: Case, a: SystemOutput | None, b: SystemOutput | None, matching: HitMatching) -> FirstHits | None:
    """Where each run has its first correct hit.

    A hit is correct if it is an expected chunk; in a case without `expected_chunk_ids`, if it matches a gold support;
    in one without those too, if its document is expected. Chunks are compared by id, or, where the runs were chunked
    differently, by place: the document is expected, and the `source_spans` of the hits up to a rank cover, taken
    together, at least half of the characters of one expected chunk, so that finer chunks lose nothing. Where a chunk
    stands is taken from the case's `expected_spans`, else from the hits of either run that carry its id; of a chunk
    that no place is known of, the document is enough.

    Args:
        case: the case.
        a: output of the first run; None or an error counts as no hits.
        b: output of the second run.
        matching: how.

    Returns:
        The ranks over the whole lists; None if nothing says which hits are correct.

    Source: in-house.
    """
    ranked_a, ranked_b = _ranked(a), _ranked(b)
    notes = [f"{name} failed: {out.error.kind}" for name, out in (("a", a), ("b", b)) if out is not None and out.error]
    if case.expected_chunk_ids:
        wanted = tuple(dict.fromkeys(case.expected_chunk_ids))
        if matching.by_chunk_id:
            places_a, places_b = _by_id(wanted, ranked_a), _by_id(wanted, ranked_b)
        else:
            places = _Places(case, wanted, (ranked_a, ranked_b))
            places_a, places_b = places.ranks(ranked_a), places.ranks(ranked_b)
            notes += places.notes
        lost = [
            LostChunk(item, places_a[item], places_b.get(item))
            for item in wanted
            if places_a.get(item, math.inf) <= matching.k < places_b.get(item, math.inf)
        ]
        first_a, first_b = (min(places.values(), default=None) for places in (places_a, places_b))
        return FirstHits(first_a, first_b, tuple(lost), len(wanted), tuple(notes))
    if case.gold_supports:
        supports = GoldSupports(case.gold_supports, matching.snippets)
        return FirstHits(
            *_first_of(first_occurrences(ranked_a), first_occurrences(ranked_b), supports.matched_by),
            notes=tuple(notes),
        )
    if case.expected_doc_ids:
        docs = frozenset(case.expected_doc_ids)
        return FirstHits(*_first_of(ranked_a, ranked_b, lambda hit: hit.doc_id in docs), notes=tuple(notes))
    return None


def span_outcomes(case: Case, output: SystemOutput, rank: int | None, ks: Sequence[int]) -> Outcomes:
    """The figures that stand in the place of those by chunk id if two runs have different chunkers.

    `hit_span@k`: 1 if the hits up to rank k cover at least half of one expected chunk, else 0. `mrr_span`: 1 / the
    rank at which they do, 0 beyond rank 10. Both in [0, 1], higher is better.

    Args:
        case: the case.
        output: of one run.
        rank: where its hits first cover half of an expected chunk, as `first_hits` has it; None: nowhere.
        ks: the cut-offs.

    Returns:
        Not applicable without expected chunks; failed if the output is an error.

    Source: in-house.
    """
    names = span_names(ks)
    if not case.expected_chunk_ids:
        return dict.fromkeys(names, NO_CHUNKS)
    if output.error is not None:
        return dict.fromkeys(names, Failed(output.error.kind))
    found = [float(rank is not None and rank <= k) for k in ks]
    reciprocal = 1.0 / rank if rank is not None and rank <= MRR_CUTOFF else 0.0
    return dict(zip(names, (*found, reciprocal), strict=True))


def span_names(ks: Sequence[int]) -> tuple[str, ...]:
    """Names of the figures of `span_outcomes`."""
    return (*(f"hit_span@{k}" for k in ks), "mrr_span")


def _first_of(a: Ranked, b: Ranked, is_right: Callable[[Hit], object]) -> tuple[int | None, int | None]:
    first, second = (next((rank for rank, hit in hits if is_right(hit)), None) for hits in (a, b))
    return first, second


def _ranked(output: SystemOutput | None) -> Ranked:
    return [] if output is None or output.error is not None else by_rank(output.retrieved)


def _by_id(wanted: Sequence[str], ranked: Ranked) -> dict[str | None, int]:
    """Rank of the first occurrence of each expected chunk that was found."""
    return {hit.chunk_id: rank for rank, hit in reversed(ranked) if hit.chunk_id in wanted}


class _Places:
    """Where the expected chunks of a case stand in their documents."""

    def __init__(self, case: Case, wanted: Sequence[str], runs: Sequence[Ranked]) -> None:
        self._spans = {chunk_id: _known_spans(case, chunk_id, runs) for chunk_id in wanted}
        docs = case.expected_doc_ids or [span.doc_id for spans in self._spans.values() for span in spans]
        if not docs:
            docs = [hit.doc_id for hits in runs for _, hit in hits if hit.chunk_id in wanted and hit.doc_id is not None]
        self._docs = frozenset(docs)

    @property
    def notes(self) -> Iterator[str]:
        unknown = [chunk_id for chunk_id, spans in self._spans.items() if not spans]
        if unknown:
            yield f"no span known of {', '.join(unknown)}: compared by document"
        if not self._docs:
            yield "no document known of the expected chunks"

    def ranks(self, ranked: Ranked) -> dict[str | None, int]:
        """Rank at which the hits so far stand for each expected chunk that was found."""
        found: dict[str | None, int] = {}
        so_far: list[CharacterSpan] = []
        for rank, hit in ranked:
            if hit.doc_id is None or hit.doc_id not in self._docs:
                continue
            so_far += character_spans(hit.source_spans, hit.doc_id)
            for chunk_id, expected in self._spans.items():
                if chunk_id not in found and (not expected or span_recall(so_far, expected) >= LEAST_COVER):
                    found[chunk_id] = rank
        return found


def _known_spans(case: Case, chunk_id: str, runs: Sequence[Ranked]) -> list[CharacterSpan]:
    """The characters of a chunk; empty if they are not known."""
    spans = character_spans((case.expected_spans or {}).get(chunk_id, ())) or [
        span
        for hits in runs
        for _, hit in hits
        if hit.chunk_id == chunk_id
        for span in character_spans(hit.source_spans, hit.doc_id)
    ]
    return [span for span in spans if span.start < span.end]
