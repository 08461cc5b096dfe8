"""What ranked figures need of TREC files, many queries at once: labels of judgements, and where they stand in a run.

Ids are taken as they are only where they are compared so; everything else becomes a row as in any other reading.
"""

from collections.abc import Iterator, Sequence
from itertools import compress, pairwise
from typing import IO

from judgekit.kernel import kernel
from judgekit.metrics.positions import Labels, SameRanks
from judgekit.storage.formats.source import Source
from judgekit.storage.formats.trec_lines import QRELS, RUN, Block, Lines, lines_of
from judgekit.storage.formats.trec_queries import NAMES, Ties, blocks, judge, judged_case, ranked_row, tell_bare
from judgekit.storage.formats.trec_rankings import RunQueries, run_queries
from judgekit.storage.ready import Labelled, Listed, Rankings, Scattered
from judgekit.storage.rows import Row


class _Judgements:
    """Queries of a piece of judgements, all of it plain, each with all its lines."""

    def __init__(self, lines: Lines, bounds: Sequence[int]) -> None:
        """Prepare, with the rows at which queries begin and the one behind the last."""
        self._lines = lines
        self._bounds = bounds
        queries, documents = lines.columns
        self.keys = [queries[start].decode("ascii") for start in bounds[:-1]]
        self.lines = [lines.numbers[start] for start in bounds[:-1]]
        self._documents = b"\n".join(documents).decode("ascii").split("\n")

    def block(self, index: int) -> Block:
        """The lines of a query."""
        rows = slice(self._bounds[index], self._bounds[index + 1])
        queries, documents = self._lines.columns
        return Block(queries[rows.start], self._lines.numbers[rows], documents[rows], self._lines.values[rows], True)

    def labelled(self) -> tuple[Labelled, list[int]]:
        """The labels of the queries, and the indices of those that judge a document twice, which have none."""
        documents, grades = self._documents, self._lines.values
        judged = [tuple(documents[start:end]) for start, end in pairwise(self._bounds)]
        twice = [index for index, found in enumerate(judged) if len(found) > 1 and len(set(found)) < len(found)]
        if min(grades) <= 0:
            is_relevant = [grade > 0 for grade in grades]
            rows = pairwise(self._bounds)
            judged = [tuple(compress(documents[start:end], is_relevant[start:end])) for start, end in rows]
        labels = [Labels(found, found, found) for found in judged]
        if not twice:
            return Labelled(self.keys, self.lines, labels), twice
        once = sorted(set(range(len(labels))).difference(twice))
        keys, lines = [self.keys[index] for index in once], [self.lines[index] for index in once]
        return Labelled(keys, lines, [labels[index] for index in once]), twice


def _judgements(stream: IO[bytes], encoding: str) -> Iterator[Lines | _Judgements]:
    """The lines of judgements in order, with queries together where a piece is plain throughout."""
    begun: Lines | None = None
    """The last query of a piece, which may go on in the next."""
    for piece in lines_of(stream, encoding, QRELS):
        if piece.faulty or not piece.is_plain or not isinstance(piece.numbers, range):
            if begun is not None:
                yield begun
            begun = None
            yield piece
            continue
        lines = piece if begun is None else begun.with_more(piece)
        queries = lines.columns[0]
        starts = [0, *(row for row, (one, other) in enumerate(pairwise(queries), start=1) if one != other)]
        if len(starts) > 1:
            yield _Judgements(lines, starts)
        begun = lines.rows(starts[-1])
    if begun is not None:
        yield begun


def labels_in(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row | Labelled]:
    """Judgements as labels where ids are compared as they are, else as rows.

    Raises:
        Scattered: the lines of a query stand in several places.
    """
    seen: set[str] = set()
    bare: list[str] = []
    for found in blocks(_judgements(stream, encoding), source):
        if isinstance(found, Row):
            yield found
        elif isinstance(found, Block):
            _note(seen, [found.query.decode("utf-8")])
            yield from _judged(found, bare)
        else:
            _note(seen, found.keys)
            labelled, twice = found.labelled()
            bare += [key for key, labels in zip(labelled.keys, labelled.labels, strict=True) if not labels.chunks]
            yield labelled
            for index in twice:
                yield from _judged(found.block(index), bare)
    tell_bare(bare, source)


def _note(seen: set[str], keys: Sequence[str]) -> None:
    n = len(seen) + len(keys)
    seen.update(keys)
    if len(seen) < n:
        raise Scattered


def _judged(block: Block, bare: list[str]) -> Iterator[Row]:
    """The judgements of one query as rows."""
    query = block.query.decode("utf-8")
    grades: dict[bytes, float] = {}
    yield from judge(grades, block)
    by_name = {document.decode("utf-8"): grade for document, grade in grades.items()}
    yield Row(block.numbers[0], f"query {query!r}", judged_case(query, by_name), origin=NAMES)
    if not any(grade > 0 for grade in grades.values()):
        bare.append(query)


def rankings_in(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row | Rankings]:
    """A run as rankings where ids are compared as they are, else as rows.

    Raises:
        Scattered: the lines of a query stand in several places.
    """
    seen: set[str] = set()
    twice: list[Row] = []
    ties = Ties(source)
    for found in blocks(_run_pieces(stream, encoding, source), source):
        if isinstance(found, Row):
            yield found
        elif isinstance(found, Block):
            _note(seen, [found.query.decode("utf-8")])
            row = _listed(found, ties)
            if row.problem is None:
                yield row
            else:
                twice.append(row)
        else:
            _note(seen, found.keys)
            ties.add(found.n_tied, found.n_queries_with_ties)
            rows = {index: _listed(found.block(index), ties) for index in found.odd}
            twice += [row for row in rows.values() if row.problem is not None]
            yield _Queries(found, rows)
    yield from twice
    ties.tell()


def _run_pieces(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Lines | RunQueries]:
    if encoding == "utf-8-sig" and kernel is not None:
        return run_queries(stream, by_single=source.file.ties == "trec_eval")
    return lines_of(stream, encoding, RUN)


def _listed(block: Block, ties: Ties) -> Row:
    """The hits of one query by descending score."""
    documents = block.documents
    ids = set(documents)
    if len(ids) < len(documents) or not block.is_plain:
        return ranked_row(block, ties)
    order = ties.order(documents, block.values)
    if order is not None:
        documents = [documents[index] for index in order]
    return Row(block.numbers[0], "$", None, ready=Listed(block.query.decode("ascii"), documents, ids))


class _Queries:
    """The queries of a piece in which no document comes twice."""

    def __init__(self, queries: RunQueries, odd: dict[int, Row]) -> None:
        """Prepare, with the rows of odd queries."""
        self._queries = queries
        self._odd = odd
        twice = {index for index, row in odd.items() if row.problem is not None}
        self._indices = [index for index in range(len(queries.keys)) if index not in twice]
        self.keys = [queries.keys[index] for index in self._indices]
        self.lines = [queries.lines[index] for index in self._indices]

    def place(self, wanted: Sequence[Labels | None]) -> tuple[list[SameRanks], list[int]]:
        """Where labels stand, and the indices of queries that have to be read one by one."""
        gold: list[tuple[str, ...]] = [()] * len(self._queries.keys)
        same, others = [], []
        for place, (index, labels) in enumerate(zip(self._indices, wanted, strict=True)):
            if labels is None:
                continue
            if labels.are_same and index not in self._odd:
                gold[index] = labels.chunks
                same.append(index)
            else:
                others.append(place)
        ranks = self._queries.ranks(gold)
        keys, n_hits = self._queries.keys, self._queries.n_hits
        found = SameRanks(
            True,
            [keys[index] for index in same],
            [len(gold[index]) for index in same],
            [ranks[index] for index in same],
            [n_hits[index] for index in same],
        )
        return [found], others

    def row(self, index: int) -> Row:
        """One query alone."""
        number = self._indices[index]
        if number in self._odd:
            return self._odd[number]
        block = self._queries.block(number)
        ready = Listed(self._queries.keys[number], block.documents, set(block.documents))
        return Row(block.numbers[0], "$", None, ready=ready)
