"""Cases and outputs read for ranked figures alone: the gold, and where it stands.

Lines of JSONL are decoded into the few types below, and queries of TREC files are taken by their ids, without building
a record. Only what is plainly valid is taken so; everything else goes to the reader that a run uses, which accepts it
or says what is wrong.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.scores import Failed
from judgekit.core.text import are_plain_ids, canonical_id, canonical_ids, normalise_path
from judgekit.metrics.gold_evidence import delimiter_notice, delimiter_of, heading_texts
from judgekit.metrics.gold_positions import Gold, HitT, Ids, Positions, gold_of, positions_near, positions_of_output
from judgekit.storage.case_files import Intake, record_of
from judgekit.storage.containers import container_of, first_row
from judgekit.storage.encodings import Hashes
from judgekit.storage.field_mapping import FieldMapping
from judgekit.storage.formats.trec import Judged, Ranking, Trec, judgements, rankings
from judgekit.storage.id_lists import RETRIEVED_IDS
from judgekit.storage.reading import Reading, reading_of
from judgekit.storage.record_formats import Source
from judgekit.storage.rows import Notices, Row, jsonl_row, read_jsonl

Placed = tuple[str, Positions | Failed | None]
"""Case id, and where its gold stands; None if no case has that id."""

Id = str | int
_Flat = dict[str, str | int | float | bool | None]


class _Support(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    rel_path: str


class _Case(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Fields of a case that their type checks."""

    id: Id
    question: str | None = None
    answerable: bool | None = None
    category: str | None = None
    difficulty: str | None = None
    lang: str | None = None
    tags: list[str] | None = None
    reference_answers: list[str] | None = None
    key_facts: list[str] | None = None
    gold_supports: list[_Support] | None = None
    expected_chunk_ids: list[Id] | None = None
    expected_doc_ids: list[Id] | None = None
    metadata: _Flat | None = None


class _Hit(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Fields of a hit that decide nothing if supports are whole files, and those that decide."""

    chunk_id: Id | None = None
    doc_id: Id | None = None
    rel_path: str | None = None
    heading_path: list[str] | str | None = None
    text: str | None = None
    text_truncated: bool = False
    rank: int | None = None
    score: float | None = None


class _Output(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Fields of an output that their type checks; an output with an error is not among them."""

    case_id: Id | msgspec.UnsetType = msgspec.UNSET
    id: Id | msgspec.UnsetType = msgspec.UNSET
    answer: str | None = None
    retrieved: list[_Hit] | None = None
    retrieved_ids: list[Id] | msgspec.UnsetType = msgspec.UNSET
    grounded: bool | None = None
    abstained: bool | None = None
    latency_seconds: dict[str, Annotated[float, msgspec.Meta(ge=0)]] | msgspec.UnsetType = msgspec.UNSET
    versions: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    metadata: _Flat | None = None


class _NotPlainError(Exception):
    """The record is for the reader that a run uses."""


_NOT_PLAIN = (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError, _NotPlainError)
_decode_case = msgspec.json.Decoder(_Case).decode
_decode_output = msgspec.json.Decoder(_Output).decode


def load_gold(source: DataFile, notices: Notices, hashes: Hashes) -> tuple[dict[str, Gold], str | None]:
    """The gold of all cases of a file, by id, in order, and the delimiter that was recognised in its headings.

    Args:
        source: the file, and how it is read.
        notices: takes (code, message) of what the reader of the numbers should know.
        hashes: takes that of a file that is read in order.

    Raises:
        InputError: as for `load_cases`.
    """
    path = Path(source.path)
    mapping = FieldMapping(source, Case)
    reading = reading_of(source, path)
    intake = Intake(source, path)
    gold: dict[str, Gold] = {}
    with_texts: list[Case] = []
    for row, plain in _cases(reading, notices, hashes):
        found: tuple[str, Case | Gold] | list[str] = plain or _with_key(record_of(row, mapping, Case))
        made = intake.take(row, found)
        if isinstance(made, Case):
            gold[made.id] = gold_of(made)
            if heading_texts(made):
                with_texts.append(made)
        elif made is not None and plain is not None:
            gold[plain[0]] = made
    intake.close(mapping.unmatched())
    delimiter = delimiter_of(with_texts)
    if delimiter is not None:
        gold.update({case.id: gold_of(case, delimiter) for case in with_texts})
        notices.append(delimiter_notice(delimiter))
    return gold, delimiter


def _with_key(case: Case | list[str]) -> tuple[str, Case] | list[str]:
    return case if isinstance(case, list) else (case.id, case)


def _cases(reading: Reading, notices: Notices, hashes: Hashes) -> Iterator[tuple[Row, tuple[str, Gold] | None]]:
    """Each case as a row, or plainly as its id and its gold."""
    if _is_trec(reading):
        for found in judgements(Source(reading.file, reading.path, "cases", notices, hashes=hashes)):
            yield (found, None) if isinstance(found, Row) else _judged(found)
    elif _is_jsonl(reading):
        yield from read_jsonl(reading.file, reading.path, _case_line, hashes)
    else:
        for row in reading.rows("cases", notices):
            yield row, None


def _is_trec(reading: Reading) -> bool:
    return isinstance(reading.form, Trec) and not reading.file.fields


def _is_jsonl(reading: Reading) -> bool:
    """Whether records are lines of JSON under our own names, with ids."""
    if reading.file.fields or reading.form is not None or container_of(reading.file, reading.path) != "jsonl":
        return False
    first = first_row(reading.file, reading.path)
    return first is None or first.data is None or bool({"id", "case_id"} & first.data.keys())


def _judged(found: Judged) -> tuple[Row, tuple[str, Gold] | None]:
    try:
        ids = canonical_ids(found.relevant())
        return Row(found.line, "$", None), (_query_id(found.query), _gold(ids, ids, list(map(normalise_path, ids))))
    except _NOT_PLAIN:
        return found.row(), None


def _case_line(body: bytes, number: int) -> tuple[Row, tuple[str, Gold] | None]:
    try:
        case = _decode_case(body)
        chunks, docs = canonical_ids(case.expected_chunk_ids or ()), canonical_ids(case.expected_doc_ids or ())
        paths = [normalise_path(support.rel_path) for support in case.gold_supports or ()]
        return Row(number, "$", None), (str(canonical_id(case.id)), _gold(chunks, docs, paths))
    except _NOT_PLAIN:
        return jsonl_row(body, number), None


def _gold(chunks: Sequence[str], docs: Sequence[str], paths: Sequence[str]) -> Gold:
    """Each id once; one tuple for all three if they are the same, so that they are looked for together."""
    distinct = tuple(dict.fromkeys(docs))
    return Gold(
        distinct if chunks == docs else tuple(dict.fromkeys(chunks)),
        distinct,
        distinct if paths == docs else tuple(dict.fromkeys(paths)),
    )


def _query_id(query: str) -> str:
    """The id of a query as compared, which it is already if it is ASCII."""
    if not query.isascii():
        raise _NotPlainError
    return str(canonical_id(query))


def iterate_positions(
    source: DataFile, gold: Mapping[str, Gold], depth: int, notices: Notices, hashes: Hashes, *, whole: bool = False
) -> Iterator[Placed]:
    """Where the gold of each output's case stands, as the outputs are read.

    Args:
        source: the file, and how it is read.
        gold: by case id.
        depth: the largest cut-off.
        notices: takes (code, message) of what the reader of the numbers should know.
        hashes: takes that of a file that is read in order.
        whole: build every record, as is needed if the outputs are scattered.

    Raises:
        InputError: as for `load_cases`.
        Scattered: this file has to be read as a whole.
    """
    path = Path(source.path)
    mapping = FieldMapping(source, SystemOutput)
    reading = reading_of(source, path)
    intake = Intake(source, path)
    placing = _Placing(gold, mapping, depth)
    found: Iterable[Result]
    if _is_trec(reading) and not whole:
        results = rankings(Source(source, path, "outputs", notices, hashes=hashes))
        found = (placing.of_row(one) if isinstance(one, Row) else placing.of_ranking(one) for one in results)
    elif _is_jsonl(reading):
        found = read_jsonl(source, path, placing.of_line, hashes)
    else:
        found = map(placing.of_row, reading.rows("outputs", notices))
    for row, result in found:
        placed = intake.take(row, result)
        if placed is not None:
            yield placed
    intake.close(mapping.unmatched())


Result = tuple[Row, tuple[str, Placed] | list[str]]
"""A row, and what was made of it, or what is wrong with it."""


class _Placing:
    """Finds the gold in outputs."""

    def __init__(self, gold: Mapping[str, Gold], mapping: FieldMapping, depth: int) -> None:
        self._gold = gold
        self._mapping = mapping
        self._depth = depth

    def of_row(self, row: Row) -> Result:
        """A record that is read as in a run."""
        output = record_of(row, self._mapping, SystemOutput)
        if isinstance(output, list):
            return row, output
        gold = self._gold.get(output.case_id)
        found: Positions | Failed | None = None
        if gold is not None:
            found = positions_of_output(gold, output) if output.error is None else Failed(output.error.kind)
        return row, (output.case_id, (output.case_id, found))

    def of_ranking(self, ranking: Ranking) -> Result:
        """A query of a TREC file."""
        try:
            placed = self._placed(_query_id(ranking.query), ranking.documents, _of_ids)
        except _NOT_PLAIN:
            return self.of_row(ranking.row())
        return Row(ranking.line, "$", None), placed

    def of_line(self, body: bytes, number: int) -> Result:
        """A line of JSON."""
        try:
            return Row(number, "$", None), self._of_output(_decode_output(body), body)
        except _NOT_PLAIN:
            row = jsonl_row(body, number)
            return self.of_row(row if row.data is None else msgspec.structs.replace(row, data=self._needed(row.data)))

    def _of_output(self, output: _Output, body: bytes) -> tuple[str, Placed]:
        keys = [one for one in (output.case_id, output.id) if one is not msgspec.UNSET]
        if len(keys) != 1:
            raise _NotPlainError
        key = str(canonical_id(keys[0]))
        if output.retrieved_ids is not msgspec.UNSET:
            if output.retrieved is not None:
                raise _NotPlainError
            return self._placed(key, output.retrieved_ids, _of_ids)
        hits = output.retrieved or []
        # One byte is found faster than each hit is asked; only an escape can spell a name without it.
        ranks = [hit.rank for hit in hits] if b"k" in body or b"\\" in body else []
        if ranks.count(None) < len(ranks) and ranks != list(range(1, len(ranks) + 1)):
            raise _NotPlainError
        return self._placed(key, hits, _of_hits)

    def _placed(
        self, key: str, hits: Sequence[HitT], ids_of: Callable[[Sequence[HitT]], tuple[Ids, Ids, Ids]]
    ) -> tuple[str, Placed]:
        gold = self._gold.get(key)
        if gold is not None and gold.supports is not None:
            raise _NotPlainError
        found = positions_near(gold or Gold(), hits, self._depth, ids_of)
        return key, (key, None if gold is None else found)

    def _needed(self, data: dict[str, Any]) -> dict[str, Any]:
        """A record without the hits beyond the largest cut-off, as far as no figure depends on them."""
        given = [name for name in ("retrieved", RETRIEVED_IDS) if name in data]
        hits = data[given[0]] if len(given) == 1 else None
        try:
            gold = self._gold.get(str(canonical_id(data.get("case_id", data.get("id")))), Gold())
        except ValueError:
            return data
        if not isinstance(hits, list) or gold.supports is not None:
            return data
        if any(isinstance(hit, dict) and "rank" in hit for hit in hits):
            return data
        named = [hit.get("rel_path") if isinstance(hit, dict) else hit for hit in hits]
        right = [rank for rank, path in enumerate(named, start=1) if normalise_path(str(path)) in gold.paths]
        return {**data, given[0]: hits[: max([self._depth, *right])]}


def _of_ids(found: Sequence[Id]) -> tuple[Ids, Ids, Ids]:
    """Ids that each stand for a chunk, a document and a path, as compared.

    Raises:
        ValueError: one is empty.
        _NotPlainError: one comes twice.
    """
    ids = canonical_ids(found)
    _check_distinct(ids)
    return ids, ids, _paths_of(ids)


def _of_hits(hits: Sequence[_Hit]) -> tuple[Ids, Ids, Ids]:
    """The ids of chunks and documents and the paths, as compared.

    Raises:
        ValueError: an id is empty.
        _NotPlainError: a chunk comes twice.
    """
    chunks: Ids = ()
    named = [hit.chunk_id for hit in hits if hit.chunk_id is not None]
    if named:
        _check_distinct(_ids_of(named))
        chunks = _ids_of([hit.chunk_id for hit in hits])
    return chunks, _ids_of([hit.doc_id for hit in hits]), _paths_of([hit.rel_path for hit in hits])


def _ids_of(found: Sequence[Id | None]) -> Ids:
    if are_plain_ids(found):
        return found  # type: ignore[return-value]  # all are texts
    return [None if one is None else str(canonical_id(one)) for one in found]


def _paths_of(found: Ids) -> Ids:
    if are_plain_ids(found):
        text = "".join(found)  # type: ignore[arg-type]  # all are texts
        if "\\" not in text and "./" not in text:
            return found
    return [path and normalise_path(path) for path in found]


def _check_distinct(chunks: Ids) -> None:
    """Leave the hits to the reader that a run uses if a chunk comes twice, of which the first counts."""
    if len(set(chunks)) < len(chunks):
        raise _NotPlainError
