"""Cases of JSONL files made at once into labels."""

from collections.abc import Iterator, Sequence

import msgspec

from judgekit.core.text import normalise_path
from judgekit.metrics.positions import Labels
from judgekit.storage.encodings import is_plain
from judgekit.storage.json_shapes import ERRORS, CaseRecord, distinct_ids, id_of, records_in
from judgekit.storage.ready import Labelled
from judgekit.storage.rows import BLANKS, Row, jsonl_row, lines_in

_cases = msgspec.json.Decoder(CaseRecord)


def cases_in(piece: bytes, ends: Sequence[int], first: int) -> Iterator[Row | Labelled]:
    """The cases of a piece of a file, as labels where these can be taken as they are.

    Args:
        piece: whole lines.
        ends: of its lines.
        first: number of the first.
    """
    cases = records_in(_cases, piece, ends)
    if cases is not None:
        yield from _labelled(cases, piece, first)
        return
    for body, number in lines_in(piece, first):
        alone = records_in(_cases, body, [len(body)])
        if alone is None:
            yield jsonl_row(body, number)
        else:
            yield from _labelled(alone, body, number)


def _labelled(cases: Sequence[CaseRecord], piece: bytes, first: int) -> Iterator[Row | Labelled]:
    """Labels of the cases of a piece, and rows for those that are for the reader of whole records."""
    plain = is_plain(piece)
    try:
        keys = [id_of(case.id) for case in cases]
        yield Labelled(keys, range(first, first + len(keys)), [_labels(case, is_plain=plain) for case in cases])
    except ERRORS:
        pass
    else:
        return
    for case, body, line in zip(cases, piece.split(b"\n"), range(first, first + len(cases)), strict=False):
        try:
            yield Labelled([id_of(case.id)], [line], [_labels(case, is_plain=plain)])
        except ERRORS:
            yield jsonl_row(body.strip(BLANKS), line)


def _labels(case: CaseRecord, *, is_plain: bool) -> Labels:
    """The labels of a case.

    Args:
        case: the case.
        is_plain: its paths are compared as they are.

    Raises:
        ValueError: an id is empty.
    """
    chunks = distinct_ids(case.expected_chunk_ids)
    docs = chunks if case.expected_doc_ids == case.expected_chunk_ids else distinct_ids(case.expected_doc_ids)
    if not case.gold_supports:
        return Labels(chunks, docs)
    named = [support.rel_path for support in case.gold_supports]
    if is_plain and named == case.expected_doc_ids:
        return Labels(chunks, docs, docs)
    paths = tuple(dict.fromkeys(map(normalise_path, named)))
    return Labels(chunks, docs, docs if paths == docs else chunks if paths == chunks else paths)
