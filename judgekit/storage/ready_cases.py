"""Cases of JSONL files made at once into labels."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from judgekit.core.text import normalise_path
from judgekit.metrics.positions import Labels
from judgekit.metrics.ranked_lists import are_plain
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
    lines = range(first, first + len(cases))
    is_paths_plain = is_plain(piece)
    try:
        yield _made(cases, lines, is_paths_plain=is_paths_plain)
    except ERRORS:
        pass
    else:
        return
    for case, body, line in zip(cases, piece.split(b"\n"), lines, strict=False):
        try:
            yield _made([case], [line], is_paths_plain=is_paths_plain)
        except ERRORS:
            yield jsonl_row(body.strip(BLANKS), line)


def _made(cases: Sequence[CaseRecord], lines: Sequence[int], *, is_paths_plain: bool) -> Labelled:
    """The labels of cases.

    Args:
        cases: the cases.
        lines: their lines.
        is_paths_plain: paths are compared as they are.

    Raises:
        ValueError: an id is empty.
    """
    keys: list[Any] = [case.id for case in cases]
    lists = [case.expected_chunk_ids or () for case in cases], [case.expected_doc_ids or () for case in cases]
    distinct: Callable[[Any], tuple[str, ...]] = _distinct
    if not are_plain(chain(keys, *map(chain.from_iterable, lists))):
        keys, distinct = list(map(id_of, keys)), distinct_ids
    labels = []
    for case in cases:
        docs = distinct(case.expected_doc_ids)
        chunks = docs if case.expected_chunk_ids == case.expected_doc_ids else distinct(case.expected_chunk_ids)
        paths: tuple[str, ...] = ()
        if case.gold_supports:
            named = [support.rel_path for support in case.gold_supports]
            paths = docs if is_paths_plain and named == case.expected_doc_ids else _paths(named, docs, chunks)
        labels.append(Labels(chunks, docs, paths))
    return Labelled(keys, lines, labels)


def _distinct(ids: list[str] | None) -> tuple[str, ...]:
    """The ids, each once."""
    if not ids:
        return ()
    return tuple(ids) if len(ids) == 1 or len(set(ids)) == len(ids) else tuple(dict.fromkeys(ids))


def _paths(named: list[str], docs: tuple[str, ...], chunks: tuple[str, ...]) -> tuple[str, ...]:
    """The paths as compared, each once; the very documents or chunks where they are the same."""
    paths = tuple(dict.fromkeys(map(normalise_path, named)))
    return docs if paths == docs else chunks if paths == chunks else paths
