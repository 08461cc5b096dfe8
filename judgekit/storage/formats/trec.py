"""TREC runs and relevance judgements (qrels), as trec_eval reads them.

A run is outputs: `query Q0 document rank score tag`, one line a hit, columns parted by tabs or spaces. The rank column
is never read: hits stand by descending score. A judgement is part of a case: `query 0 document relevance`; what has a
relevance above 0 is expected. Lines that begin with `#` are comments. Query ids are case ids, document ids are chunk,
document and path of a hit at once.
"""

import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, ClassVar, TypeVar

from judgekit.storage.encodings import encoding_of, faults_named, undecodable_named
from judgekit.storage.formats.source import Format, Source, has_own_suffix, is_folder
from judgekit.storage.formats.trec_lines import QRELS, RUN, Block, lines_of
from judgekit.storage.formats.trec_queries import NAMES, Ties, blocks, judge, judged_case, ranked_row, tell_bare
from judgekit.storage.formats.trec_ready import labels_in, rankings_in
from judgekit.storage.hashed_file import hashed
from judgekit.storage.rows import ReadyRow, Row


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

    def ready_rows(self, source: Source) -> Iterator[ReadyRow]:
        """The queries, made into what ranked figures need where that is possible.

        Raises:
            Scattered: the lines of a query stand in several places.
        """
        return _read(source, labels_in if source.kind == "cases" else rankings_in)


Found = TypeVar("Found")


def _read(source: Source, reader: Callable[[IO[bytes], str, Source], Iterator[Found]]) -> Iterator[Found]:
    with faults_named(source.path, "a TREC file"), hashed(source.path, source.hashes) as stream:
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
    for block in blocks(lines_of(stream, encoding, QRELS), source):
        if isinstance(block, Row):
            yield block
            continue
        judged = queries.setdefault(block.query, _Judged(block.numbers[0]))
        yield from judge(judged.grades, block)
    bare: list[str] = []
    for key, judged in queries.items():
        query = key.decode("utf-8")
        grades = {document.decode("utf-8"): grade for document, grade in judged.grades.items()}
        if not any(grade > 0 for grade in grades.values()):
            bare.append(query)
        yield Row(judged.line, f"query {query!r}", judged_case(query, grades), origin=NAMES)
    tell_bare(bare, source)


@dataclass(slots=True)
class _Ranking:
    """The hits of one query, packed: a run may have tens of millions."""

    line: int
    documents: list[bytes] = field(default_factory=list)
    """Document ids, those of neighbouring lines joined by line feeds."""
    scores: "array[float]" = field(default_factory=lambda: array("d"))


def _outputs(stream: IO[bytes], encoding: str, source: Source) -> Iterator[Row]:
    queries: dict[bytes, _Ranking] = {}
    for block in blocks(lines_of(stream, encoding, RUN), source):
        if isinstance(block, Row):
            yield block
            continue
        ranking = queries.get(block.query) or queries.setdefault(block.query, _Ranking(block.numbers[0]))
        ranking.documents.append(b"\n".join(block.documents))
        ranking.scores.extend(block.values)
    ties = Ties(source)
    for key in list(queries):  # what was packed is let go on the way
        packed = queries.pop(key)
        documents = b"\n".join(packed.documents).split(b"\n")
        yield ranked_row(Block(key, [packed.line], documents, packed.scores.tolist(), is_plain=False), ties)
    ties.tell()
