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
from itertools import islice, pairwise
from operator import gt
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, TypeVar

from judgekit.storage.encodings import encoding_of, faults_named, hashed, undecodable_named
from judgekit.storage.record_formats import Format, Source
from judgekit.storage.rows import Origin, Row, has_own_suffix, is_folder
from judgekit.storage.trec_lines import blocks

_NAMES = Origin({}, {})
_SHOWN = 20

T = TypeVar("T")


class Scattered(Exception):
    """The lines of one query stand in several places of a file, so it cannot be scored as it is read."""


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

    def claims_head(self, head: bytes) -> bool:
        """A first line with the six columns of a run, `Q0` among them."""
        lines = [line for line in head.split(b"\n") if line.strip() and not line.startswith(b"#")]
        cells = lines[0].split() if lines else []
        if len(cells) < 6 or cells[1].upper() != b"Q0":
            return False
        return re.fullmatch(rb"[-+]?[0-9.]+([eE][-+]?\d+)?", cells[4]) is not None

    def rows(self, source: Source) -> Iterator[Row]:
        """One row for each query, in the order in which queries first come."""
        if source.kind == "cases":
            for found in judgements(source):
                yield found if isinstance(found, Row) else found.row()
        else:
            yield from _read(source, _outputs)


@dataclass(slots=True)
class Judged:
    """The judgements of one query."""

    query: str
    line: int
    grades: dict[str, float] = field(default_factory=dict)
    """By document id."""

    def relevant(self) -> list[str]:
        """The documents that are expected."""
        return [document for document, grade in self.grades.items() if grade > 0]

    def row(self) -> Row:
        """A case."""
        return Row(self.line, f"query {self.query!r}", judged_case(self.query, self.grades), origin=_NAMES)


def judgements(source: Source) -> Iterator[Row | Judged]:
    """The queries of a file of judgements, in the order in which they first come, and rows for lines that are wrong.

    Raises:
        InputError: the file has no judgements, or holds something else.
    """
    return _read(source, _judgements)


def _judgements(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row | Judged]:
    queries: dict[bytes, Judged] = {}
    for block in blocks(stream, encoding, source):
        if isinstance(block, Row):
            yield block
            continue
        if block.query not in queries:
            queries[block.query] = Judged(block.query.decode("utf-8"), block.numbers[0])
        judged = queries[block.query]
        for number, document, grade in zip(block.numbers, block.texts(), block.values, strict=True):
            if document in judged.grades:
                yield Row(number, "$", None, f"query {judged.query!r}: document {document!r} is judged twice")
            judged.grades[document] = grade
    yield from queries.values()
    bare = [judged.query for judged in queries.values() if not judged.relevant()]
    if bare:
        source.notice(
            "queries_without_relevant",
            f"no relevant document for {named(bare)}; retrieval figures do not apply there (trec_eval counts 0)",
        )


class Ranking(NamedTuple):
    """The results of one query."""

    query: str
    line: int
    documents: list[str]
    """Their ids by rank, none of which comes twice."""

    def row(self) -> Row:
        """An output."""
        return _output(self.query, self.line, [_hit(one) for one in self.documents])


def rankings(source: Source) -> Iterator[Row | Ranking]:
    """The queries of a run, as they are read, and rows for what is wrong.

    Raises:
        InputError: the file has no results, or holds something else.
        Scattered: the lines of a query stand in several places.
    """
    return _read(source, _rankings)


def _rankings(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row | Ranking]:
    seen: set[bytes] = set()
    ties = Ties(source)
    for block in blocks(stream, encoding, source):
        if isinstance(block, Row):
            yield block
            continue
        if block.query in seen:
            raise Scattered
        seen.add(block.query)
        query, documents = block.query.decode("utf-8"), block.texts()
        if len(set(documents)) < len(documents):
            yield _repeated(query, block.numbers[0], documents)
            continue
        order = ties.order(documents, block.values)
        ordered = documents if order is None else [documents[index] for index in order]
        yield Ranking(query, block.numbers[0], ordered)
    ties.tell()


@dataclass(slots=True)
class _Packed:
    """The hits of one query, packed: a run may have tens of millions."""

    line: int
    documents: list[bytes] = field(default_factory=list)
    """Document ids, those of neighbouring lines joined by line feeds."""
    scores: "array[float]" = field(default_factory=lambda: array("d"))


def _outputs(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row]:
    queries: dict[bytes, _Packed] = {}
    for block in blocks(stream, encoding, source):
        if isinstance(block, Row):
            yield block
            continue
        packed = queries.get(block.query) or queries.setdefault(block.query, _Packed(block.numbers[0]))
        packed.documents.append(b"\n".join(block.documents))
        packed.scores.extend(block.values)
    ties = Ties(source)
    for key in list(queries):  # what was packed is let go on the way
        packed = queries.pop(key)
        yield _ranked_row(key.decode("utf-8"), packed, ties)
    ties.tell()


def _ranked_row(query: str, packed: _Packed, ties: "Ties") -> Row:
    """The hits of a query by descending score."""
    documents = b"\n".join(packed.documents).decode("utf-8").split("\n")
    if len(set(documents)) < len(documents):
        return _repeated(query, packed.line, documents)
    order = ties.order(documents, packed.scores)
    found: Iterable[tuple[str, float]] = zip(documents, packed.scores, strict=True)
    if order is not None:
        found = ((documents[index], packed.scores[index]) for index in order)
    return _output(query, packed.line, [_hit(document, score=score) for document, score in found])


def _hit(document: str, **more: float) -> dict[str, Any]:
    return {"chunk_id": document, "doc_id": document, "rel_path": document, **more}


def _output(query: str, line: int, hits: list[dict[str, Any]]) -> Row:
    return Row(line, f"query {query!r}", {"case_id": query, "retrieved": hits}, origin=_NAMES)


def _repeated(query: str, line: int, documents: Sequence[str]) -> Row:
    twice, times = Counter(documents).most_common(1)[0]
    return Row(line, f"query {query!r}", None, f"document {twice!r} comes {times} times; keep one of its lines")


class Ties:
    """Orders hits by descending score and counts those that have the score of the one before.

    By trec_eval's rule, if the config asks for it: scores as 32-bit floats, equal ones by descending document id.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._by_id = source.file.ties == "trec_eval"
        self._n_hits = self._n_queries = 0

    def order(self, documents: Sequence[str], scores: Sequence[float]) -> list[int] | None:
        """Indices by rank; None if the order is that of the file."""
        if self._by_id:
            scores = array("f", scores)
        if all(map(gt, scores, islice(scores, 1, None))):
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


def judged_case(query: str, grades: dict[str, float]) -> dict[str, Any]:
    """The fields of a case from the judgements of its query: what has a grade above 0 is expected.

    Grades are kept in `metadata.relevance` if they say more than relevant or not.
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


def _read(source: Source, reader: Callable[[IO[bytes], str, Source], Iterator[T]]) -> Iterator[T]:
    with faults_named(source.path, "a TREC file"), hashed(source.path, source.hashes) as stream:
        encoding = encoding_of(source.file.encoding, stream, source.path)
        with undecodable_named(source.path, encoding):
            yield from reader(stream, encoding, source)
