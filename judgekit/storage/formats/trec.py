"""TREC runs and relevance judgements (qrels), as trec_eval reads them.

A run is outputs: `query Q0 document rank score tag`, one line a hit, columns parted by tabs or spaces. The rank column
is never read: hits stand by descending score. A judgement is part of a case: `query 0 document relevance`; what has a
relevance above 0 is expected. Lines that begin with `#` are comments. Query ids are case ids, document ids are chunk,
document and path of a hit at once.
"""

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, ClassVar

from judgekit.core.errors import InputError
from judgekit.storage.formats.source import Format, Source, has_own_suffix, is_folder
from judgekit.storage.rows import Origin, Row, encoding_of, faults_named, undecodable_named, utf8_lines

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
        with faults_named(source.path, "a TREC file"), source.path.open("rb") as stream:
            encoding = encoding_of(source.file.encoding, stream, source.path)
            with undecodable_named(source.path, encoding):
                if source.kind == "cases":
                    yield from _cases(stream, encoding, source)
                else:
                    yield from _outputs(stream, encoding, source)


@dataclass(slots=True)
class _Judged:
    """The judgements of one query."""

    line: int
    grades: dict[str, float] = field(default_factory=dict)


def _cases(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row]:
    queries: dict[str, _Judged] = {}
    is_empty = True
    for number, line in enumerate(utf8_lines(stream, encoding), start=1):
        cells = line.split()
        if not cells or cells[0].startswith(b"#"):
            continue
        was_empty, is_empty = is_empty, False
        if len(cells) != 4:
            if was_empty and len(cells) >= 6:
                raise InputError(
                    f"{source.path}:{number}: {len(cells)} columns, as a run has; judgements have 4 "
                    "(query 0 document relevance); a run is outputs"
                )
            yield _wrong(number, f"expected 4 columns (query 0 document relevance), found {len(cells)}")
            continue
        query, document = cells[0].decode("utf-8"), cells[2].decode("utf-8")
        grade = _number(cells[3])
        if grade is None:
            yield _wrong(number, f"relevance {cells[3].decode('utf-8', 'replace')!r} is no number")
            continue
        judged = queries.setdefault(query, _Judged(number))
        if document in judged.grades:
            yield _wrong(number, f"query {query!r}: document {document!r} is judged twice")
        judged.grades[document] = grade
    if is_empty:
        raise InputError(f"{source.path}: the file has no judgements")
    bare = [query for query, judged in queries.items() if not any(grade > 0 for grade in judged.grades.values())]
    if bare:
        source.notice(
            "queries_without_relevant",
            f"no relevant document for {named(bare)}; retrieval figures do not apply there (trec_eval counts 0)",
        )
    for query, judged in queries.items():
        yield Row(judged.line, f"query {query!r}", judged_case(query, judged.grades), origin=_NAMES)


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


def _outputs(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row]:
    queries: dict[bytes, _Ranking] = {}
    query, ranking = b"", _Ranking(0)
    documents: list[bytes] = []
    is_empty = True
    for number, line in enumerate(utf8_lines(stream, encoding), start=1):
        cells = line.split(None, 6)
        if not cells or cells[0][0] == 35:  # a comment
            continue
        score = _number(cells[4]) if len(cells) >= 6 else None
        if score is None:
            yield _bad_line(number, cells, source, is_first=is_empty and not queries)
            is_empty = False
            continue
        if cells[0] != query:
            ranking.documents.append(b"\n".join(documents))
            documents = []
            query = cells[0]
            ranking = queries.get(query) or queries.setdefault(query, _Ranking(number))
        documents.append(cells[2])
        ranking.scores.append(score)
    ranking.documents.append(b"\n".join(documents))
    if is_empty and not queries:
        raise InputError(f"{source.path}: the file has no results")
    yield from _ranked(queries, source)


def _ranked(queries: dict[bytes, _Ranking], source: Source) -> Iterator[Row]:
    """Each query's hits by descending score; what was packed is let go on the way."""
    by_id = source.file.ties == "trec_eval"
    n_tied = n_queries_tied = 0
    for key in list(queries):
        ranking = queries.pop(key)
        query = key.decode("utf-8")
        place = f"query {query!r}"
        documents = b"\n".join(filter(None, ranking.documents)).decode("utf-8").split("\n")
        if len(set(documents)) < len(documents):
            twice, times = Counter(documents).most_common(1)[0]
            yield Row(ranking.line, place, None, f"document {twice!r} comes {times} times; keep one of its lines")
            continue
        order, ties = _in_order(documents, ranking.scores, by_id=by_id)
        n_tied += ties
        n_queries_tied += ties > 0
        hits = [
            {"chunk_id": found, "doc_id": found, "rel_path": found, "score": ranking.scores[index]}
            for index, found in ((index, documents[index]) for index in order)
        ]
        yield Row(ranking.line, place, {"case_id": query, "retrieved": hits}, origin=_NAMES)
    if n_tied and not by_id:
        source.notice(
            "score_ties",
            f"{n_tied} hits in {n_queries_tied} queries have the score of the hit before them and keep the order of "
            'the file; trec_eval orders them by document id: "ties": "trec_eval"',
        )


def _in_order(documents: list[str], scores: "array[float]", *, by_id: bool) -> tuple[list[int], int]:
    """Indices by descending score, and how many have the score of the one before.

    `by_id` is what trec_eval does: scores as 32-bit floats, equal ones by descending document id.
    """
    if by_id:
        scores = array("f", scores)
        order = sorted(range(len(scores)), key=lambda index: (scores[index], documents[index]), reverse=True)
    else:
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    return order, sum(scores[one] == scores[other] for one, other in pairwise(order))


def _number(cell: bytes) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) and b"_" not in cell else None


def _wrong(number: int, problem: str) -> Row:
    return Row(number, "$", None, problem)


def _bad_line(number: int, cells: list[bytes], source: Source, *, is_first: bool) -> Row:
    if len(cells) < 6:
        if is_first and len(cells) == 4:
            raise InputError(
                f"{source.path}:{number}: 4 columns, as judgements (qrels) have; a run has 6 "
                "(query Q0 document rank score tag); qrels are cases"
            )
        return _wrong(number, f"expected 6 columns (query Q0 document rank score tag), found {len(cells)}")
    return _wrong(number, f"score {cells[4].decode('utf-8', 'replace')!r} is no finite number")
