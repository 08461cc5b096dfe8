"""Records of JSONL files as the readers of rankings decode them: known fields, of the types that they should have.

Only what is plainly valid is taken. Everything else is left to the reader of whole records, which accepts it or says
what is wrong.
"""

from collections.abc import Sequence
from typing import Annotated, TypeVar

import msgspec

from judgekit.core.text import canonical_id

RecordT = TypeVar("RecordT", bound=msgspec.Struct)

Id = str | int
Flat = dict[str, str | int | float | bool | None]


class SupportRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    rel_path: str


class CaseRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Fields of a case whose check is their type."""

    id: Id
    question: str | None = None
    answerable: bool | None = None
    category: str | None = None
    difficulty: str | None = None
    lang: str | None = None
    tags: list[str] | None = None
    reference_answers: list[str] | None = None
    key_facts: list[str] | None = None
    gold_supports: list[SupportRecord] | None = None
    expected_chunk_ids: list[Id] | None = None
    expected_doc_ids: list[Id] | None = None
    metadata: Flat | None = None


class HitRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Fields of a hit that decide nothing where supports are whole files, and those that decide."""

    chunk_id: Id | None = None
    doc_id: Id | None = None
    rel_path: str | None = None
    heading_path: list[str] | str | None = None
    text: str | None = None
    text_truncated: bool = False
    rank: int | None = None
    score: float | None = None


NULL = msgspec.Raw(b"null")


class OutputRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Fields of an output whose check is their type; an output with an error is not among them."""

    case_id: Id | None = None
    id: Id | None = None
    answer: str | None = None
    retrieved: msgspec.Raw = NULL
    retrieved_ids: msgspec.Raw = NULL
    grounded: bool | None = None
    abstained: bool | None = None
    # Unset, for a default of {} would be made anew for every record.
    latency_seconds: dict[str, Annotated[float, msgspec.Meta(ge=0)]] | msgspec.UnsetType = msgspec.UNSET
    versions: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    metadata: Flat | None = None


_OPEN, _CLOSE, _RETURN = b"{}\r"


class NotPlain(Exception):
    """The record is for the reader of whole records."""


ERRORS = (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError, NotPlain)


def records_in(decoder: "msgspec.json.Decoder[RecordT]", piece: bytes, ends: Sequence[int]) -> list[RecordT] | None:
    """The record of each line; None where some line is blank, or not one record and nothing else.

    The decoder does not look at lines. But where each line begins and ends with a brace none goes on in the next, since
    behind a closed brace no other may open inside of a record; and as many records as lines then means one in each.
    """
    start = 0
    for end in ends:
        if start == end or piece[start] != _OPEN or piece[end - 1 if piece[end - 1] != _RETURN else end - 2] != _CLOSE:
            return None
        start = end + 1
    try:
        found = decoder.decode_lines(piece)
    except ERRORS:
        return None
    return found if len(found) == len(ends) else None


def key_of(output: OutputRecord) -> str:
    """The id of the case of an output.

    Raises:
        ValueError: it has none or two, or it is empty.
    """
    named = output.id if output.case_id is None else output.case_id
    if named is None or (output.id is not None and output.case_id is not None):
        raise NotPlain
    return id_of(named)


def id_of(value: Id) -> str:
    """An id as compared.

    Raises:
        ValueError: it is empty.
    """
    if type(value) is str and value > "!" and value.isascii():
        return value
    return str(canonical_id(value))


def distinct_ids(ids: Sequence[Id] | None) -> tuple[str, ...]:
    """The ids as compared, each once.

    Raises:
        ValueError: one is empty.
    """
    return tuple(dict.fromkeys(map(id_of, ids))) if ids else ()
