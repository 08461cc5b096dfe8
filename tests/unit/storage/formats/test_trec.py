"""TREC runs and judgements: what is read, in which order, and what is named."""

import math
import random
from pathlib import Path
from typing import Any

import pytest

from judgekit.metrics.retrieval import Retrieval
from judgekit.metrics.retrieval_ids import RetrievalIds
from judgekit.systems.recorded import Recorded
from tests.readers import cases_of, complaint, needs_shared_files, outputs_of, said, shared, written

QRELS = "7 0 m 0\n7 0 n 1\n7 0 p 0\n"


def order_of(path: Path, **how: Any) -> list[str | None]:
    return [hit.chunk_id for hit in outputs_of(path, **how)[0].retrieved]


@pytest.mark.parametrize(
    ("run", "ties", "order"),
    [
        pytest.param("7 Q0 n 1 1.0 r\n7 Q0 m 2 1.0 r\n", "trec_eval", ["n", "m"], id="C21-run1"),
        pytest.param("7 Q0 n 1 1.0 r\n7 Q0 p 2 1.0 r\n", "trec_eval", ["p", "n"], id="C21-run2"),
        pytest.param("7 Q0 n 1 1.0 r\n7 Q0 p 2 1.0 r\n", "given", ["n", "p"], id="C21-given-order"),
        pytest.param("7 Q0 n 1 1.0 r\n7 Q0 p 2 1.0 r\n", None, ["n", "p"], id="C21-default"),
        # 1.00000001 and 1.0 are one 32-bit float, as which trec_eval holds scores; as doubles they differ.
        pytest.param("7 Q0 a 1 1.00000001 r\n7 Q0 b 2 1.0 r\n", "trec_eval", ["b", "a"], id="32-bit-scores"),
        pytest.param("7 Q0 a 1 1.0 r\n7 Q0 b 2 1.00000001 r\n", None, ["b", "a"], id="64-bit-scores"),
        pytest.param("q1 Q0 d9 0 0.2 r\nq1 Q0 d1 0 0.9 r\n", None, ["d1", "d9"], id="C23-ranks-are-not-read"),
        pytest.param(
            "q\tQ0  d9 x\t0.2 r\n\n# a comment\nq Q0\td1 1 9e-1 r more\r\n", None, ["d1", "d9"], id="C25-mixed"
        ),
        pytest.param("q Q0 D#1 1 -2 r\nq Q0 \u00e9 1 -1 r\n", None, ["\u00e9", "D#1"], id="hash-and-unicode"),
    ],
)
def test_hits_stand_by_score_and_ties_as_the_config_says(
    tmp_path: Path, run: str, ties: str | None, order: list[str]
) -> None:
    path = written(tmp_path, "x.run", run)
    assert order_of(path, **({"ties": ties} if ties else {})) == order


def test_c21_ties_make_the_ndcg_that_trec_eval_gives(tmp_path: Path) -> None:
    case = cases_of(written(tmp_path, "qrels.txt", QRELS))[0]
    # n at rank 1: 1; n at rank 2: (1 / log2 3) / 1 = 0.6309
    for run, expected in [
        ("7 Q0 n 1 1.0 r\n7 Q0 m 2 1.0 r\n", 1.0),
        ("7 Q0 n 1 1.0 r\n7 Q0 p 2 1.0 r\n", 1 / math.log2(3)),
    ]:
        output = outputs_of(written(tmp_path, "x.run", run), ties="trec_eval")[0]
        assert Retrieval(ks=(5,)).calculate(case, output)["ndcg@5"] == pytest.approx(expected, abs=1e-12)


def test_c21_ties_are_counted_where_their_order_is_that_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "x.run", "1 Q0 a 1 2 r\n1 Q0 b 2 2 r\n1 Q0 c 3 2 r\n2 Q0 a 1 1 r\n2 Q0 b 1 0 r\n")
    notices: list[tuple[str, str]] = []
    outputs_of(path, notices)
    assert notices[0][0] == "score_ties"
    assert notices[0][1].startswith("x.run: 2 hits in 1 queries have the score of the hit before them")
    notices.clear()
    outputs_of(path, notices, ties="trec_eval")
    assert not notices


def test_c22_a_document_that_comes_twice_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "x.run", "0 Q0 d 1 1 r\n1 Q0 d1 1 2.0 r\n1 Q0 d2 1 1 r\n1 Q0 d1 2 1.0 r\n")
    assert complaint(path, "outputs") == "x.run:2: query '1': document 'd1' comes 2 times; keep one of its lines"
    path = written(tmp_path, "x.qrels", "1 0 d1 1\n1 0 d1 0\n")
    assert complaint(path) == "x.qrels:2: $: query '1': document 'd1' is judged twice"


def test_a_query_whose_lines_stand_apart_is_one_query(tmp_path: Path) -> None:
    path = written(tmp_path, "x.run", "1 Q0 a 1 1 r\n2 Q0 b 1 1 r\n1 Q0 c 1 3 r\n1 Q0 d 1 2 r\n")
    assert [(row.case_id, [hit.doc_id for hit in row.retrieved]) for row in outputs_of(path)] == [
        ("1", ["c", "d", "a"]),
        ("2", ["b"]),
    ]


def test_c26_queries_on_one_side_only_are_named_and_a_missing_one_counts_0(tmp_path: Path) -> None:
    cases = cases_of(written(tmp_path, "x.qrels", "q1 0 d1 1\nq2 0 d2 1\n"))
    outputs = outputs_of(written(tmp_path, "x.run", "q1 Q0 d1 1 1.0 r\nq3 Q0 d9 1 1.0 r\n"))
    system = Recorded({output.case_id: output for output in outputs}, "x.run", missing_is_empty=True)
    system.check([case.id for case in cases])
    assert dict(system.warnings()) == {
        "cases_without_output": "x.run: no output for 'q2'; nothing was retrieved there, which counts as 0"
        " (cases 2, outputs 2, both 1)",
        "outputs_without_case": "x.run: no case for 'q3' (cases 2, outputs 2, both 1)",
    }


def test_relevance_above_0_is_expected_and_grades_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path, "qrels.test", "# head\n7 0 a 1.5\n7 0 b 0.3\n7 0 c 0\n7 0 d -1\n8 0 a 1\n9 0 a 0\n")
    notices: list[tuple[str, str]] = []
    assert [said(case) for case in cases_of(path, notices)] == [
        {
            "id": "7",
            "gold_supports": [{"rel_path": "a"}, {"rel_path": "b"}],
            "expected_chunk_ids": ["a", "b"],
            "expected_doc_ids": ["a", "b"],
            "metadata": {"n_judged": 4, "relevance": {"a": 1.5, "b": 0.3}},
        },
        {
            "id": "8",
            "gold_supports": [{"rel_path": "a"}],
            "expected_chunk_ids": ["a"],
            "expected_doc_ids": ["a"],
            "metadata": {"n_judged": 1},
        },
        {"id": "9", "metadata": {"n_judged": 1}},
    ]
    assert [code for code, _ in notices] == ["queries_without_relevant"]
    assert "query '9'" in notices[0][1]


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("cases", "7 0 a 1\n7 0 b 1.1.11\n", "x.trec:2: $: relevance '1.1.11' is not a number"),
        ("cases", "7 0 a nan\n", "x.trec:1: $: relevance 'nan' is not a number"),
        ("cases", "7 0 a\n", "x.trec:1: $: expected 4 columns (query 0 document relevance), found 3"),
        ("cases", "7 Q0 a 1 1 r\n", "x.trec:1: 6 columns, as a run has; judgements have 4"),
        ("cases", "#\n", "x.trec: the file has no judgements"),
        ("outputs", "7 0 a 1\n", "x.trec:1: 4 columns, as judgements (qrels) have; a run has 6"),
        ("outputs", "7 Q0 a 1 inf r\n", "x.trec:1: $: score 'inf' is not a finite number"),
        ("outputs", "7 Q0 a 1 1_0 r\n", "x.trec:1: $: score '1_0' is not a finite number"),
        (
            "outputs",
            "7 Q0 a 1 1 r\n7 Q0 b\n",
            "x.trec:2: $: expected 6 columns (query Q0 document rank score tag), found 3",
        ),
        ("outputs", "\n", "x.trec: the file has no results"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, kind: str, data: str, message: str) -> None:
    assert complaint(written(tmp_path, "x.trec", data), kind).startswith(message)


def test_bytes_that_are_no_utf_8_are_named_and_an_encoding_helps(tmp_path: Path) -> None:
    path = written(tmp_path, "x.run", "1 Q0 caf\u00e9 1 1 r\n".encode("latin-1"))
    assert complaint(path, "outputs").startswith("x.run:1: byte 8 of the file is not utf-8")
    assert order_of(path, encoding="latin-1") == ["caf\u00e9"]


def test_the_order_is_that_of_a_plain_sort(tmp_path: Path) -> None:
    rng = random.Random(7)
    hits = [(f"d{number}", rng.choice([0.5, 1.25, 2.0])) for number in range(300)]
    path = written(tmp_path, "x.run", "".join(f"1 Q0 {name} 1 {score} r\n" for name, score in hits))
    assert order_of(path) == [name for name, _ in sorted(hits, key=lambda hit: -hit[1])]
    expected = [name for name, _ in sorted(hits, key=lambda hit: (hit[1], hit[0]), reverse=True)]
    assert order_of(path, ties="trec_eval") == expected


PAIRS = {"P": "precision_chunk", "recall": "recall_doc", "success": "hit", "ndcg_cut": "ndcg"}
KS = (1, 5, 10, 15, 20, 30, 100, 200, 500, 1000)


@needs_shared_files
def test_c25_figures_are_those_of_trec_eval_to_the_last_printed_digit() -> None:
    cases = cases_of(shared("trec/qrels.test"))
    outputs = {output.case_id: output for output in outputs_of(shared("trec/results.test"), ties="trec_eval")}
    assert sum(len(case.expected_chunk_ids or ()) for case in cases) == 561
    assert sum(len(output.retrieved) for output in outputs.values()) == 1500
    found = {}
    for case in cases:
        scores = {
            **Retrieval(ks=KS).calculate(case, outputs[case.id]),
            **RetrievalIds(ks=KS).calculate(case, outputs[case.id]),
        }
        for name, score in scores.items():
            found[name, case.id] = score
    for name in {name for name, _ in found}:
        values = [found[name, case.id] for case in cases]
        numbers = [value for value in values if isinstance(value, float)]
        found[name, "all"] = math.fsum(numbers) / len(numbers) if numbers else 0.0
    n_compared = 0
    for line in shared("trec/expected_per_query.txt").read_text().splitlines():
        theirs, query, value = line.split()
        family, _, cut = theirs.rpartition("_")
        ours = "mrr" if theirs == "recip_rank" else f"{PAIRS[family]}@{cut}" if family in PAIRS else None
        if ours is not None:
            n_compared += 1
            score = found[ours, query]
            assert isinstance(score, float)
            assert f"{score:.4f}" == value, (theirs, query)
    assert n_compared >= 4 * 30


@needs_shared_files
@pytest.mark.parametrize("name", ["trec/qrels_with_comments.head.txt", "trec/qrels_msmarco_hash_ids.head.txt"])
def test_comments_and_hashes_in_ids(name: str) -> None:
    cases = cases_of(shared(name))
    assert len(cases) == 1
    lines = [line.split() for line in shared(name).read_text().splitlines() if not line.startswith("#")]
    assert list(cases[0].expected_chunk_ids or ()) == [line[2] for line in lines if float(line[3]) > 0]


@needs_shared_files
def test_what_is_no_number_in_the_file_with_floats_is_named() -> None:
    found = complaint(shared("trec/qrels_with_floats.head.txt")).splitlines()
    assert found == [
        "qrels_with_floats.head.txt:19: $: relevance '1.1.11' is not a number",
        "qrels_with_floats.head.txt:21: $: relevance '0x37' is not a number",
    ]


@needs_shared_files
def test_a_run_with_hashes_in_its_ids_is_known_by_its_first_line() -> None:
    outputs = outputs_of(shared("trec/run_msmarco_hash_ids.head.txt"))
    assert outputs[0].retrieved[0].chunk_id == "msmarco_v2.1_doc_50_2286987788#13_3087841662"
    assert sum(len(output.retrieved) for output in outputs) == 120
