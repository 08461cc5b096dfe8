"""The queries of TREC files: neighbouring lines put together, hits put in order, judgements made a case."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeVar

from judgekit.core.errors import InputError
from judgekit.storage.formats.source import Source
from judgekit.storage.formats.trec_lines import QRELS, RUN, Block, Lines, blocks_of, descends
from judgekit.storage.rows import Origin, Row

NAMES = Origin({}, {})
_SHOWN = 20


class Queries(Protocol):
    """Many queries, each with all its lines."""

    @property
    def keys(self) -> Sequence[str]:
        """Their ids."""

    def block(self, index: int) -> Block:
        """The lines of one."""


QueriesT = TypeVar("QueriesT", bound=Queries)


def blocks(pieces: Iterable[Lines | QueriesT], source: Source) -> Iterator[Row | Block | QueriesT]:
    """The lines of a file, neighbours of one query together, and rows for lines that are wrong.

    Args:
        pieces: the lines in order; queries that come many at once may go on behind lines, but not before them.
        source: the file.

    Raises:
        InputError: the file is empty, or judgements where results are wanted, or the other way round.
    """
    last: Block | None = None
    is_empty = True
    for found in _unjoined(pieces, source):
        is_empty = False
        if isinstance(found, Block) and last is not None and last.query == found.query:
            last = last.with_more(found)
            continue
        if last is not None and not isinstance(found, Row):
            yield last
            last = None
        if isinstance(found, Block):
            last = found
        else:
            yield found
    if last is not None:
        yield last
    elif is_empty:
        raise InputError(f"{source.path}: the file has no {'judgements' if source.kind == 'cases' else 'results'}")


def _unjoined(pieces: Iterable[Lines | QueriesT], source: Source) -> Iterator[Row | Block | QueriesT]:
    """The lines as they come; neighbours of one query may be in several blocks, but not in one and in many queries."""
    last = b""
    is_empty = True
    for piece in pieces:
        if isinstance(piece, Lines):
            yield from _faulty(piece, source, is_empty=is_empty)
            for block in blocks_of(piece):
                yield block
                last = block.query
            is_empty = is_empty and not piece.faulty and not last
        elif piece.keys[0].encode("ascii") == last:
            for index in range(len(piece.keys)):
                yield piece.block(index)
            last = piece.keys[-1].encode("ascii")
        else:
            yield piece
            last, is_empty = b"", False


def _faulty(lines: Lines, source: Source, *, is_empty: bool) -> Iterator[Row]:
    """Rows for lines that are wrong; with `is_empty` nothing came before."""
    bad_line = _no_judgement if source.kind == "cases" else _no_result
    for number, cells in lines.faulty:
        is_first = is_empty and not (lines.numbers and lines.numbers[0] < number)
        yield bad_line(number, cells, source, is_first=is_first)
        is_empty = False


def ranked_row(block: Block, ties: "Ties") -> Row:
    """The hits of a query by descending score."""
    query = block.query.decode("utf-8")
    place = f"query {query!r}"
    documents = b"\n".join(block.documents).decode("utf-8").split("\n")
    if len(set(documents)) < len(documents):
        twice, times = Counter(documents).most_common(1)[0]
        return Row(block.numbers[0], place, None, f"document {twice!r} comes {times} times; keep one of its lines")
    order = ties.order(documents, block.values)
    found: Iterable[tuple[str, float]] = zip(documents, block.values, strict=True)
    if order is not None:
        found = ((documents[index], block.values[index]) for index in order)
    hits = [{"chunk_id": one, "doc_id": one, "rel_path": one, "score": score} for one, score in found]
    return Row(block.numbers[0], place, {"case_id": query, "retrieved": hits}, origin=NAMES)


class Ties:
    """Orders hits by descending score and counts those that have the score of the one before.

    By trec_eval's rule, where the config asks for it: scores as 32-bit floats, equal ones by descending document id.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._by_id = source.file.ties == "trec_eval"
        self._n_hits = self._n_queries = 0

    def order(self, documents: Sequence[str] | Sequence[bytes], scores: Sequence[float]) -> list[int] | None:
        """Indices by rank; None where the order is that of the file."""
        if self._by_id:
            scores = array("f", scores)
        if descends(scores):
            return None
        if self._by_id:
            return sorted(range(len(scores)), key=lambda index: (scores[index], documents[index]), reverse=True)
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        n_tied = sum(scores[one] == scores[other] for one, other in pairwise(order))
        self.add(n_tied, n_tied > 0)
        return order

    def add(self, n_hits: int, n_queries: int) -> None:
        """Count hits that have the score of the one before and keep the order of the file, and their queries."""
        self._n_hits += n_hits
        self._n_queries += n_queries

    def tell(self) -> None:
        """Say how many hits were tied, unless by trec_eval's rule."""
        if self._n_hits:
            self._source.notice(
                "score_ties",
                f"{self._n_hits} hits in {self._n_queries} queries have the score of the hit before them and keep the "
                'order of the file; trec_eval orders them by document id: "ties": "trec_eval"',
            )


def judge(grades: dict[bytes, float], block: Block) -> Iterator[Row]:
    """Take the relevances of a query; rows for documents that come twice."""
    for number, document, grade in zip(block.numbers, block.documents, block.values, strict=True):
        if document in grades:
            query, twice = block.query.decode("utf-8"), document.decode("utf-8")
            yield _wrong(number, f"query {query!r}: document {twice!r} is judged twice")
        grades[document] = grade


def tell_bare(bare: list[str], source: Source) -> None:
    if bare:
        source.notice(
            "queries_without_relevant",
            f"no relevant document for {named(bare)}; retrieval figures do not apply there (trec_eval counts 0)",
        )


def judged_case(query: str, grades: dict[str, float]) -> dict[str, Any]:
    """The fields of a case from the judgements of its query: what has a grade above 0 is expected.

    Grades are kept in `metadata.relevance` where they say more than relevant or not.
    """
    relevant = {document: grade for document, grade in grades.items() if grade > 0}
    case: dict[str, Any] = {"id": query, "metadata": {"n_judged": len(grades)}}
    if relevant:
        case["expected_chunk_ids"] = case["expected_doc_ids"] = list(relevant)
        case["gold_supports"] = [{"rel_path": document} for document in relevant]
    if any(grade != 1 for grade in relevant.values()):
        case["metadata"]["relevance"] = relevant
    return case


def named(ids: list[str]) -> str:
    """Ids for a message: the first 20 and a count."""
    shown = ", ".join(map(repr, ids[:_SHOWN]))
    more = f" ... and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"{len(ids)} queries: {shown}{more}" if len(ids) > 1 else f"query {shown}"


def _wrong(number: int, problem: str) -> Row:
    return Row(number, "$", None, problem)


def _no_judgement(number: int, cells: list[bytes], source: Source, *, is_first: bool) -> Row:
    if len(cells) != QRELS.n_cells:
        if is_first and len(cells) >= RUN.n_cells:
            raise InputError(
                f"{source.path}:{number}: {len(cells)} columns, as a run has; judgements have 4 "
                "(query 0 document relevance); a run is outputs"
            )
        return _wrong(number, f"expected 4 columns (query 0 document relevance), found {len(cells)}")
    return _wrong(number, f"relevance {cells[3].decode('utf-8', 'replace')!r} is no number")


def _no_result(number: int, cells: list[bytes], source: Source, *, is_first: bool) -> Row:
    if len(cells) < RUN.n_cells:
        if is_first and len(cells) == QRELS.n_cells:
            raise InputError(
                f"{source.path}:{number}: 4 columns, as judgements (qrels) have; a run has 6 "
                "(query Q0 document rank score tag); qrels are cases"
            )
        return _wrong(number, f"expected 6 columns (query Q0 document rank score tag), found {len(cells)}")
    return _wrong(number, f"score {cells[4].decode('utf-8', 'replace')!r} is no finite number")
