"""The compiled loops against the definitions in a few lines of Python, on what is plain and on what is not."""

import json
import random
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judgekit.kernel import kernel
from judgekit.storage import json_lists

if kernel is None:
    pytest.skip("the package was installed without a C compiler", allow_module_level=True)

Ranks = tuple[int, ...] | None


def ranks_by_definition(gold: Any, ids: Sequence[str], depth: int) -> tuple[int, ...]:
    """First ranks within the depth; where there are none, the first rank behind it."""
    first = [rank for rank, one in enumerate(ids, start=1) if one in gold and one not in ids[: rank - 1]]
    return tuple([rank for rank in first if rank <= depth] or first[:1])


def in_list(gold: Any, ids: Any, depth: int = 3) -> Ranks:
    return kernel.ranks_in_lists([gold], [ids], depth)[0][0]


def in_text(gold: Any, text: str, depth: int = 3, *, with_hits: bool = False) -> tuple[Ranks, int]:
    ranks, n_hits = kernel.ranks_in_texts([gold], [text.encode()], depth, with_hits)
    return ranks[0], n_hits[0]


# Lists ----------------------------------------------------------------------------------------------------------------

PLAIN = st.sampled_from(["a", "b", "c", "ab", "a b", "a.md#1", "x" * 40, "y" * 39 + "x"])
COLLECTIONS = st.sampled_from([list, tuple, set, frozenset])


@given(
    gold=st.lists(PLAIN, max_size=6),
    kind=COLLECTIONS,
    ids=st.lists(PLAIN, max_size=9),
    is_tuple=st.booleans(),
    depth=st.integers(0, 10),
)
def test_ranks_in_lists_are_those_of_the_definition(
    gold: list[str], kind: Any, ids: list[str], is_tuple: bool, depth: int
) -> None:
    given_ids = tuple(ids) if is_tuple else ids
    assert kernel.ranks_in_lists([kind(gold)], [given_ids], depth) == (
        [ranks_by_definition(gold, ids, depth)],
        [len(set(gold))],
    )


class Text(str):
    """A text that is not exactly a str, so its comparison may be anybody's."""

    __slots__ = ()


@pytest.mark.parametrize("odd", ["", " ", " a", "\t", "\u00e9", "\ud800", 7, None, True, 1.5, b"a", ["a"], Text("a")])
def test_what_is_not_plain_is_left_to_python(odd: Any) -> None:
    assert in_list(["b", odd], ["a", "b"]) is None
    assert in_list(["b"], ["a", odd, "b"]) is None
    assert in_list(["b"], ["x", "x", "x", odd, "b"]) is None
    assert in_list(["b"], ["x", "x", "x", "b", odd]) is None
    # Behind the depth nothing matters where something was right before.
    assert in_list(["b"], ["b", "x", "x", odd]) == (1,)


def test_other_collections_are_left_to_python() -> None:
    assert in_list({"a": 1}, ["a"]) is None
    assert in_list("a", ["a"]) is None
    assert in_list(["a"], {"a": 1}) is None
    assert in_list(["a"], "a") is None


def test_more_gold_than_fits_is_left_to_python() -> None:
    ids = [f"d{number}" for number in range(65)]
    assert in_list(ids[:64], ids, 65) == tuple(range(1, 65))
    assert in_list(ids, ids, 65) is None
    assert in_list([*ids[:64], *ids[:64]], ids, 65) == tuple(range(1, 65))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([["a"]], [], 3), ValueError),
        ((None, [], 3), TypeError),
        (([], 7, 3), TypeError),
        (([["a"]], [["a"]], 1 << 63), OverflowError),
        (([], [], "3"), TypeError),
        (([],), TypeError),
    ],
)
def test_arguments_of_another_kind_are_refused(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        kernel.ranks_in_lists(*arguments)
    with pytest.raises(error):
        kernel.ranks_in_texts(*(*arguments, False))


# Texts ----------------------------------------------------------------------------------------------------------------

SEPARATORS = st.sampled_from([(", ", ": "), (",", ":"), (" ,\t", " :\r")])


@given(
    gold=st.lists(PLAIN, max_size=4, unique=True),
    ids=st.lists(PLAIN, max_size=9),
    depth=st.integers(1, 10),
    separators=SEPARATORS,
    extra=st.sampled_from(
        [{}, {"text": 'a, {b}: ["c"'.replace('"', "'")}, {"score": -1.5e-7}, {"text": "", "score": 2}]
    ),
    with_hits=st.booleans(),
)
def test_ranks_in_texts_are_those_of_the_definition(
    gold: list[str], ids: list[str], depth: int, separators: Any, extra: dict[str, Any], with_hits: bool
) -> None:
    entries: list[Any] = [{"doc_id": one, **extra, "rel_path": one} for one in ids] if with_hits else ids
    found, n_hits = in_text(gold, json.dumps(entries, separators=separators), depth, with_hits=with_hits)
    if any(ids[:depth].count(one) > 1 for one in gold):
        assert found is None
    else:
        assert found == ranks_by_definition(gold, ids, depth)
        assert n_hits == min(len(ids), depth)


@pytest.mark.parametrize("odd", ["7", "null", '""', '" "', '["b"]', '{"a": "b"}', "true"])
def test_an_entry_that_is_no_plain_id_is_left_to_python(odd: str) -> None:
    assert in_text(("b",), f'["a", {odd}, "b"]')[0] is None
    behind = f'["x", "y", "z", {odd}, "b"]'
    # Behind the depth it matters only where gold stands behind it.
    assert in_text(("b",), behind)[0] is None
    assert in_text(("c",), behind) == ((), 3)
    assert in_text(("x",), behind) == ((1,), 3)


@pytest.mark.parametrize(
    "hit",
    [
        '{"doc_id": "a"}',
        '{"rel_path": "a"}',
        '{"doc_id": "a", "rel_path": "b"}',
        '{"doc_id": "a", "rel_path": "ab"}',
        '{"doc_id": "a", "doc_id": "b", "rel_path": "a"}',
        '{"doc_id": "a", "rel_path": "a", "score": 1e100}',
        '{"doc_id": "a", "rel_path": "a", "score": 1234567890123456789012345}',
        '{"doc_id": "a", "rel_path": "a", "chunk_id": "c"}',
        '{"doc_id": "a", "rel_path": "a", "rank": 1}',
        '{"doc_id": "a", "rel_path": "a", "score": null}',
        '{"doc_id": "a", "rel_path": "a", "text": null}',
        '{"doc_id": 1, "rel_path": "a"}',
        "{}",
        '"a"',
    ],
)
def test_a_hit_that_is_more_than_its_document_is_left_to_python(hit: str) -> None:
    assert in_text(("a",), f"[{hit}]", with_hits=True)[0] is None


@settings(max_examples=500)
@given(
    text=st.lists(st.sampled_from([*'[]{},:" ab', '"a"', '"b",', '{"doc_id":', '"rel_path":', "-1", "\\", "\0"])),
    with_hits=st.booleans(),
)
def test_any_text_at_all_is_answered(text: list[str], with_hits: bool) -> None:
    found, n_hits = in_text(("a", "b"), "".join(text), with_hits=with_hits)
    assert found is None or (len(found) <= 2 and 0 <= n_hits <= 3)


def test_what_has_no_bytes_is_refused() -> None:
    with pytest.raises(TypeError):
        kernel.ranks_in_texts([("a",)], ["text"], 3, False)


A_HIT = {"doc_id": "a", "rel_path": "a"}
ODD_ENTRIES = st.sampled_from(["a", "b", "c", "", " ", 7, None, True, 1.5, ["a"], {}, A_HIT])
HITS = st.fixed_dictionaries(
    {"doc_id": st.sampled_from(["a", "b", "c", ""]), "rel_path": st.sampled_from(["a", "b", "c", ""])},
    optional={"text": st.sampled_from(["", "b", None]), "score": st.sampled_from([1, -1.5e-7, 1e25, 1e150, None])},
)


@settings(max_examples=500)
@given(
    gold=st.lists(st.sampled_from(["a", "b", "\u00e9", " a", *(f"d{n}" for n in range(3))]), max_size=3, unique=True),
    entries=st.lists(st.one_of(st.sampled_from("abcdefg"), ODD_ENTRIES, HITS), max_size=9),
    hits=st.lists(st.one_of(HITS, HITS, ODD_ENTRIES), max_size=9),
    depth=st.integers(1, 6),
)
def test_the_loops_in_python_answer_as_those_in_c(
    gold: list[str], entries: list[Any], hits: list[Any], depth: int
) -> None:
    for given_entries in (entries, hits):
        text = json.dumps(given_entries).encode()
        for with_hits in (False, True):
            compiled = kernel.ranks_in_texts([gold], [text], depth, with_hits)
            assert json_lists.ranks_in_texts([gold], [text], depth, with_hits) == compiled


# Runs -----------------------------------------------------------------------------------------------------------------


def line(query: str, document: str, score: object) -> str:
    return f"{query} Q0 {document} 1 {score} t\n"


def cut(text: str, *, is_last: bool = True, by_single: bool = False) -> Any:
    return kernel.queries_of_run(text.encode(), is_last, by_single)


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9).map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["+1", ".5", "5.", "-.25", "-0", "0", "1e3", "1E-3", "0.1", "0.10", "00.1", "123456789012345.6"]),
)


@given(one=NUMBERS, other=NUMBERS)
@example(one="0.1", other="0.10000000000000000001")
@example(one="9007199254740993", other="9007199254740992")
@example(one="0.3", other="0.30000000000000004")
def test_scores_are_the_numbers_that_python_reads(one: str, other: str) -> None:
    _, _, _, odd, n_tied, n_queries_tied, _, _ = cut(line("q", "a", one) + line("q", "b", other))
    assert odd == ([0] if float(other) > float(one) else [])
    assert n_tied == n_queries_tied == (float(other) == float(one))


@pytest.mark.parametrize(
    "score", ["x", "-", ".", "nan", "inf", "-Infinity", "1e999", "1_0", "0x1", "1,2", "", "9" * 70]
)
def test_a_line_without_a_finite_number_is_left_to_python(score: str) -> None:
    assert cut(line("q", "a", 1) + line("q", "b", score)) is None


@pytest.mark.parametrize(
    "odd",
    ["\n", " \n", "q Q0 \x1c 1 1 t\n", "q Q0 b\0 1 1 t\n", "# 1 2 3 4 5\n", "#q Q0 a 1 1 t\n", "q Q0 a 1 1\n", "q\n"],
)
def test_a_line_that_is_no_result_is_left_to_python(odd: str) -> None:
    assert cut(line("q", "a", 1) + odd) is None
    assert cut(odd + line("q", "a", 1)) is None


def test_any_blanks_part_cells_and_further_cells_are_left_aside() -> None:
    keys, starts, n_hits, odd, _, _, end, places = cut("  q\tQ0  a 1\v2 t more \r\nq Q0\fbb 2 1 t")
    assert (keys, starts, n_hits, odd, end) == (["q"], [2], [2], [], 36)
    text = b"  q\tQ0  a 1\v2 t more \r\nq Q0\fbb 2 1 t"
    assert kernel.ranks_in_run(text, places, n_hits, [("bb", "b")]) == ([(2,)], [2])


def test_the_last_query_waits_for_more_of_the_file() -> None:
    text = line("q", "a", 2) + line("q", "b", 1) + line("r", "a", 1)
    assert cut(text, is_last=False)[:3] == (["q"], [0], [2])
    assert cut(text, is_last=False)[6] == len(text) - len(line("r", "a", 1))
    assert cut(text)[:3] == (["q", "r"], [0, len(text) - len(line("r", "a", 1))], [2, 1])
    assert cut(line("q", "a", 2), is_last=False)[:3] == ([], [], [])
    assert cut("")[:3] == ([], [], [])


def test_scores_as_single_floats_are_tied_sooner_and_then_out_of_order() -> None:
    text = line("q", "a", 1.00000001) + line("q", "b", 1.0)
    assert cut(text)[3:6] == ([], 0, 0)
    assert cut(text, by_single=True)[3] == [0]
    assert cut(line("q", "a", "1e300") + line("q", "b", "1e299"), by_single=True)[3] == [0]


SHAPES = ["d{}", "{}", "a-much-longer-name-{}-with-a-common-end", "{}" + "x" * 300, "abcdefgh{}", "{}abcdefgh"]


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), shape=st.sampled_from(SHAPES), n_most=st.sampled_from([3, 40, 3000]))
def test_runs_of_any_length_are_cut_and_searched(seed: int, shape: str, n_most: int) -> None:
    rng = random.Random(seed)
    queries: dict[str, list[tuple[str, int]]] = {}
    for number in range(rng.randint(1, 12)):
        documents = [shape.format(rng.randrange(2 * n_most)) for _ in range(rng.randint(1, n_most))]
        if rng.random() < 0.8:
            documents = list(dict.fromkeys(documents))
        scores = [rng.randint(0, 3 * n_most) for _ in documents]
        if rng.random() < 0.8:
            scores.sort(reverse=True)
        queries[f"q{number}"] = list(zip(documents, scores, strict=True))
    text = "".join(line(query, *hit) for query, hits in queries.items() for hit in hits)
    keys, starts, n_hits, odd, n_tied, n_queries_tied, end, places = cut(text)
    assert keys == list(queries)
    assert n_hits == [len(hits) for hits in queries.values()]
    assert end == len(text)
    assert [text[start:].split(" ", 1)[0] for start in starts] == keys
    are_odd = [
        len({document for document, _ in hits}) < len(hits) or any(a < b for (_, a), (_, b) in pairwise(hits))
        for hits in queries.values()
    ]
    assert odd == [index for index, is_odd in enumerate(are_odd) if is_odd]
    ties = [
        sum(a == b for (_, a), (_, b) in pairwise(hits))
        for hits, is_odd in zip(queries.values(), are_odd, strict=True)
        if not is_odd
    ]
    assert (n_tied, n_queries_tied) == (sum(ties), sum(map(bool, ties)))
    gold: list[tuple[str, ...]] = []
    for hits, is_odd in zip(queries.values(), are_odd, strict=True):
        documents = [document for document, _ in hits]
        some = [*rng.sample(documents, rng.randint(0, min(20, len(documents)))), "elsewhere", "\u00e9", ""]
        gold.append(() if is_odd else tuple(dict.fromkeys(some)))
    ranks = [
        tuple([rank for rank, (document, _) in enumerate(hits, start=1) if document in wanted])
        for hits, wanted in zip(queries.values(), gold, strict=True)
    ]
    assert kernel.ranks_in_run(text.encode(), places, n_hits, gold) == (ranks, n_hits)


def test_places_of_another_piece_are_refused() -> None:
    text = line("q", "a", 1)
    places = cut(text)[7]
    wrong: list[tuple[Any, Any]] = [([2], [()]), ([-1], [()]), ([1], [["a"]])]
    for n_hits, gold in wrong:
        with pytest.raises(ValueError, match="other queries"):
            kernel.ranks_in_run(text.encode(), places, n_hits, gold)
    for place in [(500, 5), (0, 0), (0, 14), (1, 13), (2**32 - 1, 2**32 - 1)]:
        with pytest.raises(ValueError, match="other queries"):
            kernel.ranks_in_run(text.encode(), struct.pack("II", *place), [1], [("a",)])
    with pytest.raises(ValueError, match="as many"):
        kernel.ranks_in_run(text.encode(), places, [], [()])
    with pytest.raises(TypeError):
        kernel.ranks_in_run(text.encode(), places, ["1"], [()])  # type: ignore[list-item]
