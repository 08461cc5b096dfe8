"""TREC runs and relevance judgements (qrels), as trec_eval reads them.

A run is outputs: `query Q0 document rank score tag`, one line a hit, columns parted by tabs or spaces. The rank column
is never read: hits stand by descending score. A judgement is part of a case: `query 0 document relevance`; what has a
relevance above 0 is expected. Lines that begin with `#` are comments. Query ids are case ids, document ids are chunk,
document and path of a hit at once.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, ClassVar

from judgekit.core.errors import InputError
from judgekit.metrics.positions import Labels
from judgekit.storage.formats.source import Format, Source, has_own_suffix, is_folder
from judgekit.storage.formats.trec_lines import QRELS, RUN, Block, Lines, blocks_of, descends, lines_of
from judgekit.storage.formats.trec_rankings import rankings_of
from judgekit.storage.ready import Labelled, Listed, Scattered
from judgekit.storage.rows import Origin, Row, encoding_of, faults_named, undecodable_named

_NAMES = Origin({}, {})
_SHOWN = 20


class Trec(Format):
    """Runs as outputs, qrels as cases."""

    missing_is_empty: ClassVar[bool] = True

    def claims_path(self, path: Path) -> bool:
        """`.run`, `.qrels`, `.trec`, or `qrels` as a part of the name; `.tsv` in a folder `qrels` is BEIR's."""
        suffix = path.suffix.lower()
        if suffix in (".run", ".qrels", ".trec"):
            return not is_folder(path)
        if has_own_suffix(path) or suffix in (".tsv", ".parquet", ".arrow", ".yaml", ".yml", ".zip", ".gz"):
            return False
        return "qrels" in re.split(r"[._-]", path.name.lower()) and not is_folder(path)

    def rows(self, source: Source) -> Iterator[Row]:
        """One row for each query, in the order in which queries first come."""
        return _read(source, _cases if source.kind == "cases" else _outputs)

    def ready_rows(self, source: Source) -> Iterator[Row]:
        """One row for each query, made into what ranked figures need where that is possible.

        Raises:
            Scattered: the lines of a query of a run stand in several places.
        """
        return _read(source, _labels if source.kind == "cases" else _listings)


def _read(source: Source, reader: Callable[[IO[bytes], str, Source], Iterator[Row]]) -> Iterator[Row]:
    with faults_named(source.path, "a TREC file"), source.path.open("rb") as stream:
        encoding = encoding_of(source.file.encoding, stream, source.path)
        with undecodable_named(source.path, encoding):
            yield from reader(stream, encoding, source)


@dataclass(slots=True)
class _Judged:
    """The judgements of one query."""

    line: int
    grades: dict[bytes, float] = field(default_factory=dict)


def _cases(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row]:
    queries: dict[bytes, _Judged] = {}
    for block in _blocks(stream, encoding, source):
        if isinstance(block, Row):
            yield block
            continue
        judged = queries.setdefault(block.query, _Judged(block.numbers[0]))
        yield from _judge(judged.grades, block)
    bare: list[str] = []
    for key, judged in queries.items():
        query = key.decode("utf-8")
        grades = {document.decode("utf-8"): grade for document, grade in judged.grades.items()}
        if not any(grade > 0 for grade in grades.values()):
            bare.append(query)
        yield Row(judged.line, f"query {query!r}", judged_case(query, grades), origin=_NAMES)
    _tell_bare(bare, source)


def _judge(grades: dict[bytes, float], block: Block) -> Iterator[Row]:
    """Take the relevances of a query; rows for documents that come twice."""
    for number, document, grade in zip(block.numbers, block.documents, block.values, strict=True):
        if document in grades:
            query, twice = block.query.decode("utf-8"), document.decode("utf-8")
            yield _wrong(number, f"query {query!r}: document {twice!r} is judged twice")
        grades[document] = grade


def _labels(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row]:
    """Rows as of `_cases`, with the relevant ids alone where these are compared as they are.

    Raises:
        Scattered: see there.
    """
    seen: set[bytes] = set()
    bare: list[str] = []
    for block in _blocks(stream, encoding, source):
        if isinstance(block, Row):
            yield block
            continue
        if block.query in seen:
            raise Scattered
        seen.add(block.query)
        query = block.query.decode("utf-8")
        if block.is_plain and len(set(block.documents)) == len(block.documents):
            found = zip(block.documents, block.values, strict=True)
            relevant = tuple([document.decode("ascii") for document, grade in found if grade > 0])
            yield Row(block.numbers[0], "$", None, ready=Labelled(query, Labels(relevant, relevant, relevant)))
        else:
            grades: dict[bytes, float] = {}
            yield from _judge(grades, block)
            by_name = {document.decode("utf-8"): grade for document, grade in grades.items()}
            yield Row(block.numbers[0], f"query {query!r}", judged_case(query, by_name), origin=_NAMES)
            relevant = tuple([document for document, grade in by_name.items() if grade > 0])
        if not relevant:
            bare.append(query)
    _tell_bare(bare, source)


def _tell_bare(bare: list[str], source: Source) -> None:
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


@dataclass(slots=True)
class _Ranking:
    """The hits of one query, packed: a run may have tens of millions."""

    line: int
    documents: list[bytes] = field(default_factory=list)
    """Document ids, those of neighbouring lines joined by line feeds."""
    scores: "array[float]" = field(default_factory=lambda: array("d"))


def _blocks(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row | Block]:
    """The lines of a file, neighbours of one query together, and rows for lines that are wrong.

    Raises:
        InputError: the file is empty, or judgements where results are wanted, or the other way round.
    """
    shape, bad_line = (QRELS, _no_judgement) if source.kind == "cases" else (RUN, _no_result)
    last: Block | None = None
    is_empty = True
    for lines in rankings_of(stream, encoding) if shape is RUN else lines_of(stream, encoding, shape):
        found: Iterable[Block] = (lines,)  # type: ignore[assignment]
        if isinstance(lines, Lines):
            for number, cells in lines.faulty:
                is_first = is_empty and not (lines.numbers and lines.numbers[0] < number)
                yield bad_line(number, cells, source, is_first=is_first)
                is_empty = False
            found = blocks_of(lines)
        for block in found:
            is_empty = False
            if last is None:
                last = block
            elif last.query == block.query:
                last = last.with_more(block)
            else:
                yield last
                last = block
    if last is not None:
        yield last
    elif is_empty:
        raise InputError(f"{source.path}: the file has no {'judgements' if source.kind == 'cases' else 'results'}")


def _outputs(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row]:
    queries: dict[bytes, _Ranking] = {}
    for block in _blocks(stream, encoding, source):
        if isinstance(block, Row):
            yield block
            continue
        ranking = queries.get(block.query) or queries.setdefault(block.query, _Ranking(block.numbers[0]))
        ranking.documents.append(b"\n".join(block.documents))
        ranking.scores.extend(block.values)
    ties = _Ties(source)
    for key in list(queries):  # what was packed is let go on the way
        packed = queries.pop(key)
        documents = b"\n".join(packed.documents).split(b"\n")
        yield _row(Block(key, [packed.line], documents, packed.scores.tolist(), is_plain=False), ties)
    ties.tell()


def _listings(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row]:
    """Rows as of `_outputs`, with ids alone where these are compared as they are.

    Raises:
        Scattered: see there.
    """
    seen: set[bytes] = set()
    twice: list[Row] = []
    ties = _Ties(source)
    for block in _blocks(stream, encoding, source):
        if isinstance(block, Row):
            yield block
            continue
        if block.query in seen:
            raise Scattered
        seen.add(block.query)
        documents = block.documents
        ids = set(documents)
        if len(ids) < len(documents):
            twice.append(_row(block, ties))
        elif block.is_plain:
            order = ties.order(documents, block.values)
            if order is not None:
                documents = [documents[index] for index in order]
            query = block.query.decode("ascii")
            yield Row(block.numbers[0], "$", None, ready=Listed(query, documents, ids))
        else:
            yield _row(block, ties)
    yield from twice
    ties.tell()


def _row(block: Block, ties: "_Ties") -> Row:
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
    return Row(block.numbers[0], place, {"case_id": query, "retrieved": hits}, origin=_NAMES)


class _Ties:
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
        self._n_hits += n_tied
        self._n_queries += n_tied > 0
        return order

    def tell(self) -> None:
        """Say how many hits were tied, unless by trec_eval's rule."""
        if self._n_hits:
            self._source.notice(
                "score_ties",
                f"{self._n_hits} hits in {self._n_queries} queries have the score of the hit before them and keep the "
                'order of the file; trec_eval orders them by document id: "ties": "trec_eval"',
            )


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
