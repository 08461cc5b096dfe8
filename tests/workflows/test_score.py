"""`judgekit score` beside the families of a run: the same numbers, reasons and errors, however the file is read."""

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import judgekit
from judgekit.analysis.estimates import Tally
from judgekit.analysis.input_mismatches import ids_on_one_side
from judgekit.core.cases import SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import JudgekitError
from judgekit.core.scores import Outcome
from judgekit.metrics.multi_hop import MultiHop
from judgekit.metrics.retrieval import Retrieval
from judgekit.metrics.retrieval_ids import RetrievalIds
from judgekit.storage import trec_lines
from judgekit.storage.case_files import load_cases
from judgekit.storage.reading import missing_is_empty
from judgekit.workflows.preflight import gold_notices
from judgekit.workflows.score import RankingScores
from tests.builders import write_lines
from tests.readers import load_outputs, needs_shared_files, shared, written

Outcomes = dict[str, list[Outcome]]
KS = (1, 3, 10)


def families() -> tuple[RetrievalIds, Retrieval, MultiHop]:
    return RetrievalIds(ks=KS), Retrieval(ks=KS, mrr_ks=(2,)), MultiHop()


def by_records(cases: Path, outputs: Path, ties: Any = None) -> tuple[Outcomes, list[tuple[str, str]]]:
    """What the families of a run say, case by case, from whole records; and the notices of the files."""
    notices: list[tuple[str, str]] = []
    file = DataFile(path=str(outputs), ties=ties)
    all_cases = load_cases(DataFile(path=str(cases)), cases, notices)
    found = {output.case_id: output for output in load_outputs(file, outputs, notices)}
    is_empty = missing_is_empty(file, outputs)
    notices += ids_on_one_side([one.id for one in all_cases], found, outputs.name, missing_is_empty=is_empty)
    notices += gold_notices((one, found[one.id]) for one in all_cases if one.id in found)
    scores: Outcomes = {}
    for one in all_cases:
        missing: dict[str, Any] = {} if is_empty else {"error": {"kind": "missing_output"}}
        output = found.get(one.id) or SystemOutput.model_validate({"case_id": one.id, **missing})
        for family in families():
            for name, outcome in family.calculate(one, output).items():
                scores.setdefault(name, []).append(outcome)
    return scores, list(dict.fromkeys(notices))


def scored(cases: Path, outputs: Path, ties: Any = None) -> RankingScores:
    scores: RankingScores = judgekit.score_files(cases, outputs, ks=KS, mrr_ks=(2,), ties=ties)
    return scores


def assert_as_in_a_run(cases: Path, outputs: Path, ties: Any = None) -> None:
    """Both ways give the same outcomes to the last bit, the same notices, or the same error."""
    try:
        expected, notices = by_records(cases, outputs, ties)
    except JudgekitError as error:
        with pytest.raises(JudgekitError) as caught:
            scored(cases, outputs, ties)
        assert sorted(str(caught.value).splitlines()) == sorted(str(error).splitlines())
        return
    scores = scored(cases, outputs, ties)
    for column in scores.columns.columns():
        assert list(scores.columns.outcomes(column.name)) == expected[column.name], column.name
    assert scores.warnings == notices


JSON_CASES: list[dict[str, Any]] = [
    {"id": "a", "expected_chunk_ids": ["x", "y"], "expected_doc_ids": ["d"], "gold_supports": [{"rel_path": "p.md"}]},
    {"id": 7, "expected_chunk_ids": [1, "1", 2], "metadata": {"topic": "t"}},
    {"id": "sections", "gold_supports": [{"rel_path": "./p.md", "heading_path": "A > B", "snippets": ["kiln"]}]},
    {"id": "groups", "gold_supports": [{"rel_path": "p"}, {"rel_path": "q"}], "required_support_groups": [[0, 1]]},
    {"id": "none"},
    {"id": "cafe\u0301", "expected_chunk_ids": ["re\u0301sume\u0301"], "gold_supports": [{"rel_path": "e\u0301.md"}]},
]
FAR = [{"chunk_id": f"z{number}", "doc_id": "z", "rel_path": "z"} for number in range(12)]
JSON_OUTPUTS: list[list[dict[str, Any]]] = [
    [{"case_id": "a", "retrieved": [{"chunk_id": "y", "doc_id": "d", "rel_path": "./p.md"}, {"chunk_id": "x"}]}],
    [{"id": "a", "retrieved": [{"chunk_id": "y"}, {"chunk_id": "y", "rel_path": "p.md"}, {"chunk_id": "x"}]}],
    [{"id": "a", "retrieved": [{"rel_path": "p.md"}, {"rel_path": "p.md"}, {"rel_path": "q"}, {"doc_id": "d"}]}],
    [{"case_id": "a", "retrieved": [{"chunk_id": "y", "rank": 2}, {"chunk_id": "x", "rank": 1}]}],
    [{"case_id": "a", "retrieved": [{"chunk_id": "y", "rank": 1}, {"chunk_id": "x", "rank": 2}]}],
    [{"case_id": "a", "retrieved": [*FAR, {"chunk_id": "x", "rel_path": "p.md"}]}],
    [{"case_id": "a", "retrieved": [*FAR, {"chunk_id": "x", "rel_path": "p.md", "rank": 99}]}],
    [{"case_id": "a", "retrieved": [*FAR, {"chunk_id": "z3", "rel_path": "p.md"}]}],
    [
        {
            "case_id": "a",
            "retrieved": [{"text": "{ }, {"}, *FAR, {"rel_path": "p.md", "text": "}"}, {"rel_path": "p.md"}],
        }
    ],
    [{"case_id": "a", "retrieved": [{"text": "}"}, *FAR[:8], {"rel_path": "p.md"}, *FAR[8:], {"chunk_id": "x"}]}],
    [{"case_id": "a", "retrieved": [*FAR, {"text": "p.md", "rel_path": "q/p.md"}, {"rel_path": "./p.md"}]}],
    [{"case_id": "a", "retrieved": [*FAR, {"rel_path": "q/p.md"}, {"rank": 1}]}],
    [{"case_id": "a", "retrieved": {"chunk_id": "x"}}],
    [{"case_id": "a", "retrieved": [{"chunk_id": "y", "rank": 3}, {"chunk_id": "x", "rank": 3}]}],
    [{"case_id": "a", "retrieved": [{"chunk_id": " ", "rank": 3}]}],
    [{"case_id": "a", "retrieved": [{"chunk": "x"}]}],
    [{"case_id": "a", "retrieved": ["a text", "another"]}],
    [{"case_id": "a", "error": {"kind": "timeout"}, "retrieved": [{"chunk_id": "x"}]}],
    [{"case_id": "a", "retrieved": None}, {"case_id": "strange", "retrieved": []}],
    [{"case_id": "7", "retrieved": [{"chunk_id": 2}, {"chunk_id": "1"}]}, {"case_id": "a"}],
    [{"case_id": "sections", "retrieved": [{"rel_path": "p.md", "heading_path": ["A", "B", "C"], "text": "A kiln"}]}],
    [{"case_id": "groups", "retrieved": [{"rel_path": "q"}, {"rel_path": "x"}, {"rel_path": "p"}]}],
    [{"case_id": "caf\u00e9", "retrieved": [{"chunk_id": "r\u00e9sume\u0301", "rel_path": "\u00e9.md"}]}],
    [{"case_id": "cafe\u0301", "retrieved": [*FAR, {"rel_path": "e\u0301.md", "metadata": {"page": 1}}]}],
    [{"case_id": "a", "retrieved": [*FAR, {"rel_path": "p.md", "metadata": {}}, {"chunk_id": "z1", "metadata": {}}]}],
    [{"case_id": "a", "retrieved": [{"chunk_id": "x"}]}, {"case_id": "a", "retrieved": []}],
    [{"case_id": "a", "id": "x", "latency_seconds": {"total": -1}}],
    [{"case_id": "a", "retreived": []}],
    [{"case_id": "elsewhere"}],
]


@pytest.mark.parametrize("outputs", JSON_OUTPUTS, ids=range(len(JSON_OUTPUTS)))
@pytest.mark.parametrize("ascii_only", [True, False])
def test_jsonl_is_scored_as_in_a_run(tmp_path: Path, outputs: list[dict[str, Any]], *, ascii_only: bool) -> None:
    def dumped(name: str, records: Sequence[dict[str, Any]]) -> Path:
        text = "".join(json.dumps(one, ensure_ascii=ascii_only) + "\n" for one in records)
        return written(tmp_path, name, text)

    assert_as_in_a_run(dumped("cases.jsonl", JSON_CASES), dumped("outputs.jsonl", outputs))


def test_hits_beyond_the_largest_cut_off_are_not_checked_where_no_figure_needs_them(tmp_path: Path) -> None:
    cases = write_lines(tmp_path / "cases.jsonl", [{"id": "a", "expected_chunk_ids": ["z0"]}])
    outputs = write_lines(tmp_path / "outputs.jsonl", [{"case_id": "a", "retrieved": [*FAR, {"chunk_id": ""}]}])
    assert scored(cases, outputs).estimates["hit@1"].value == 1.0
    with pytest.raises(JudgekitError, match="an id is empty"):
        load_outputs(DataFile(path=str(outputs)), outputs)


@pytest.mark.parametrize("odd", [None, "", " ", 1.5, True, {}, ["z"]], ids=repr)
def test_ids_beyond_the_largest_cut_off_are_checked_where_mrr_depends_on_them(tmp_path: Path, odd: Any) -> None:
    gold = {"id": "q", "expected_chunk_ids": ["a"], "expected_doc_ids": ["a"], "gold_supports": [{"rel_path": "a"}]}
    cases = write_lines(tmp_path / "cases.jsonl", [gold])
    near = [f"x{number}" for number in range(10)]
    for rest, is_right in [([odd], False), ([odd, "b"], False), (["a", odd], True)]:
        outputs = write_lines(tmp_path / "outputs.jsonl", [{"case_id": "q", "retrieved_ids": [*near, *rest]}])
        assert scored(cases, outputs).estimates["mrr"].value == (1 / 11 if is_right else 0.0)
    outputs = write_lines(tmp_path / "outputs.jsonl", [{"case_id": "q", "retrieved_ids": [*near, odd, "a"]}])
    with pytest.raises(JudgekitError, match=r"retrieved_ids\[10\]: an id is"):
        scored(cases, outputs)


@pytest.mark.parametrize("score", ["1e999", "-1e400", "9" * 400])
def test_a_score_that_is_no_finite_number_is_refused(tmp_path: Path, score: str) -> None:
    gold = {"id": "q", "expected_doc_ids": ["a"], "gold_supports": [{"rel_path": "a"}]}
    cases = write_lines(tmp_path / "cases.jsonl", [gold])
    text = '{"case_id": "q", "retrieved": [{"doc_id": "a", "rel_path": "a", "score": SCORE}]}'.replace("SCORE", score)
    assert_as_in_a_run(cases, written(tmp_path, "outputs.jsonl", text))
    with pytest.raises(JudgekitError, match="score: expected a"):
        scored(cases, tmp_path / "outputs.jsonl")


def test_the_id_of_an_output_that_is_refused_may_come_again(tmp_path: Path) -> None:
    cases = write_lines(tmp_path / "cases.jsonl", [{"id": "q", "expected_chunk_ids": ["a"]}])
    text = '{"case_id": "q", "retrieved_ids": [" "]}\n{"case_id": "q", "retrieved_ids": ["b"]}'
    assert_as_in_a_run(cases, written(tmp_path, "outputs.jsonl", text))


def test_outputs_without_a_case_are_named_in_the_order_of_the_file(tmp_path: Path) -> None:
    cases = write_lines(tmp_path / "cases.jsonl", [{"id": "q", "expected_chunk_ids": ["a"]}])
    lines = [("u1", [7]), ("u2", ["b"]), ("q", ["a"]), ("u3", ["b", "b"])]
    outputs = [{"case_id": key, "retrieved_ids": ids} for key, ids in lines]
    assert_as_in_a_run(cases, write_lines(tmp_path / "outputs.jsonl", outputs))
    run = "q Q0 a 1 1 t\nu1 Q0 a 1 1 t\nu1 Q0 b 1 2 t\nu2 Q0 a 1 1 t\nu3 Q0 a 1 1 t\n"
    assert_as_in_a_run(written(tmp_path, "q.qrels", "q 0 a 1\n"), written(tmp_path, "x.run", run))
    assert "'u1', 'u2', 'u3'" in scored(tmp_path / "q.qrels", tmp_path / "x.run").warnings[0][1]


IDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", ",", "}", "a b", " ", "./a", 7, "\u00e9", '"']), max_size=10)
PLAIN_IDS = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=16)
HITS = st.sampled_from(
    [{}, {"score": 0.5}, {"text": "a"}, {"text": "}"}, {"chunk_id": "c"}, {"rel_path": "b"}, {"x": 1}]
)


@st.composite
def json_output(draw: st.DrawFn, key: str) -> dict[str, Any]:
    ids = draw(st.one_of(PLAIN_IDS, PLAIN_IDS, PLAIN_IDS, IDS))
    if draw(st.booleans()):
        return {"case_id": key, "retrieved_ids": ids}
    # What is odd stands within the cut-offs; beyond them it is not looked at.
    hits: list[Any] = [{"doc_id": one, "rel_path": one} for one in ids]
    if hits and draw(st.integers(0, 3)) == 0:
        hits[draw(st.integers(0, min(len(hits), 10) - 1))].update(draw(HITS))
    return {"case_id": key, "retrieved": hits}


@st.composite
def json_case(draw: st.DrawFn, key: str) -> dict[str, Any]:
    gold = draw(st.lists(st.sampled_from("abcxyz"), max_size=3))
    case: dict[str, Any] = {"id": key, "expected_doc_ids": gold, "gold_supports": [{"rel_path": one} for one in gold]}
    if draw(st.booleans()):
        case["expected_chunk_ids"] = gold if draw(st.booleans()) else ["c"]
    return case


KEYS = ("q1", "q2", "q3", "q4")
BREAKS = st.sampled_from(["\n", "\n", "\n", "\n", "\r\n", " \n", "\n\n", " ", ""])


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), breaks=st.lists(BREAKS, min_size=4, max_size=4), indented=st.sampled_from([None, None, None, 0]))
@pytest.mark.slow
def test_any_lines_of_json_are_scored_or_refused_as_in_a_run(
    tmp_path: Path, data: st.DataObject, breaks: list[str], indented: int | None
) -> None:
    cases = [data.draw(json_case(key)) for key in KEYS]
    outputs = [data.draw(json_output(key)) for key in data.draw(st.lists(st.sampled_from(KEYS), max_size=4))]
    texts = [json.dumps(one, ensure_ascii=data.draw(st.booleans()), indent=indented) for one in outputs]
    assert_as_in_a_run(
        written(
            tmp_path, "cases.jsonl", "".join(json.dumps(one) + end for one, end in zip(cases, breaks, strict=True))
        ),
        written(tmp_path, "outputs.jsonl", "".join(map("{}{}".format, texts, breaks))),
    )


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            {"retrieved_ids": ["a"], "retrieved": []},
            "$: retrieved_ids: the record has retrieved too, with 0 entries for 1 ids",
        ),
        ({"retrieved_ids": "a"}, "$: retrieved_ids: expected a list of ids, found a text"),
        ({"retrieved_ids": ["a", " "]}, "$: retrieved_ids[1]: an id is empty"),
        ({"retrieved_ids": ["a", {}]}, "$: retrieved_ids[1]: an id is text or a whole number, found an object"),
        ({"retrieved_ids": ["a", 1.5]}, "$: retrieved_ids[1]: an id is text or a whole number, found a number"),
    ],
)
def test_a_list_of_ids_that_is_none_is_named(tmp_path: Path, output: dict[str, Any], message: str) -> None:
    cases = write_lines(tmp_path / "cases.jsonl", [{"id": "q", "expected_chunk_ids": ["a"]}])
    outputs = write_lines(tmp_path / "outputs.jsonl", [{"case_id": "q", **output}])
    with pytest.raises(JudgekitError) as caught:
        scored(cases, outputs)
    assert str(caught.value) == f"{outputs}:1: {message}"


def test_a_list_of_ids_counts_as_chunks_documents_and_paths(tmp_path: Path) -> None:
    gold = {"expected_chunk_ids": ["a"], "expected_doc_ids": ["b"], "gold_supports": [{"rel_path": "c"}]}
    cases = write_lines(tmp_path / "cases.jsonl", [{"id": "q", **gold}])
    mapped = DataFile(path=str(tmp_path / "mapped.jsonl"), fields={"retrieved_ids": "docs"})
    write_lines(tmp_path / "mapped.jsonl", [{"case_id": "q", "docs": ["x", "a", "b", 7, "c"]}])
    outputs = write_lines(tmp_path / "outputs.jsonl", [{"case_id": "q", "retrieved_ids": ["x", "a", "b", 7, "c"]}])
    assert load_outputs(mapped, tmp_path / "mapped.jsonl") == load_outputs(DataFile(path=str(outputs)), outputs)
    estimates = scored(cases, outputs).estimates
    assert [estimates[name].value for name in ("mrr_chunk", "recall_doc@3", "recall_any@3", "mrr")] == [0.5, 1, 0, 0.2]


QRELS = "1 0 a 1\n1 0 b 0\n1 0 c 2\n2 0 a 1\n3 0 a 0\n4 0 ./a 1\n5 0 \u00e9 1\n"
RUNS = [
    "1 Q0 a 1 0.9 t\n1 Q0 c 2 0.8 t\n2 Q0 b 1 0.9 t\n2 Q0 a 2 0.1 t\n",
    "1 Q0 a 1 0.1 t\n1 Q0 c 2 0.8 t\n\n# a comment\n2\tQ0  b 1 9e-1 t more\r\n2 Q0 a 2 0.1 t",
    "1 Q0 a 1 1 t\n1 Q0 b 2 1 t\n1 Q0 c 3 1.0 t\n2 Q0 a 1 1 t\n",
    "1 Q0 a 1 0.9 t\n2 Q0 a 1 0.9 t\n1 Q0 c 1 0.99 t\n",
    "1 Q0 a 1 0.9 t\n1 Q0 a 2 0.8 t\n2 Q0 a 1 0.9 t\n",
    "1 Q0 a 1 0.9\n2 Q0 a 1 0.9 t\n",
    "1 Q0 a 1 nan t\n2 Q0 a 1 0_9 t\n2 Q0 b 1 1,2 t\n",
    "1 Q0 a 0.9 t\n2 Q0 a 1 0.9 t t\n1 Q0 c 1 0.8 t\n",
    "4 Q0 ./a 1 0.9 t\n1 Q0 ./a 1 0.9 t\n2 Q0 .\\a 1 0.9 t\n",
    "4 Q0 a 1 0.9 t\n1 Q0 x/a 1 0.9 t\n",
    "5 Q0 e\u0301 1 .9 t\n5 Q0 \u00e9 2 +.8 t\n1 Q0 #a 1 1. t\n",
    "1 Q0 \x1c 1 0.9 t\n2 Q0 a 1 0.9 t\n",
    "1 Q0 a\x1f 1 0.9 t\n2 Q0 a\0 1 0.9 t\n",
    "#1 Q0 a 1 0.9 t\n #1 Q0 a 1 0.9 t\n1 Q0 c 1 0.8 t\n",
    "9 Q0 a 1 0.9 t\n",
    "",
    "1 0 a 1\n",
]


@pytest.fixture(params=[1 << 15, 20], ids=["one piece", "small pieces"])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trec_lines, "_PIECE", request.param)


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize("ties", [None, "trec_eval"])
@pytest.mark.parametrize("run", RUNS, ids=range(len(RUNS)))
def test_trec_is_scored_as_in_a_run(tmp_path: Path, run: str, ties: str | None) -> None:
    assert_as_in_a_run(written(tmp_path, "qrels.txt", QRELS), written(tmp_path, "x.run", run), ties)


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize(
    "qrels",
    ["1 0 a 1\n2 0 a 1\n1 0 b 1\n", "1 0 a 1\n1 0 a 0\n1 0 b x\n", "1 0 a 1\n1 0 b\n", "", "1 Q0 a 1 0.5 t\n", QRELS],
)
def test_judgements_are_read_as_in_a_run(tmp_path: Path, qrels: str) -> None:
    assert_as_in_a_run(written(tmp_path, "qrels.txt", qrels), written(tmp_path, "x.run", RUNS[0]))


CELLS = st.sampled_from(["1", "2", "Q0", "a", "b", "#c", "0.5", "1e1", "-3", "x", "\u00e9", "./a", ""])
LINE = st.lists(CELLS, min_size=5, max_size=7).map(" ".join)
GOOD = st.builds("{} Q0 {} 1 {} t".format, st.sampled_from("12"), st.sampled_from("abcdefgh"), st.integers(0, 9))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.one_of(GOOD, GOOD, GOOD, LINE), max_size=12), end=st.sampled_from(["\n", "\r\n", " \n"]))
@pytest.mark.slow
def test_any_lines_are_scored_or_refused_as_in_a_run(tmp_path: Path, lines: list[str], end: str) -> None:
    assert_as_in_a_run(written(tmp_path, "qrels.txt", QRELS), written(tmp_path, "x.run", end.join(lines) + end))


REGULAR = [f"{query} Q0 d{rank} {rank} {30 - rank} t" for query in "123" for rank in range(1, 12 + int(query))]
CHANGES = st.sampled_from(
    [
        lambda line: line.replace(" Q0", "  Q0"),
        lambda line: line.replace(" ", "\t"),
        lambda line: line.replace(" t", " u"),
        lambda line: line.replace(" t", ""),
        lambda line: line + " more",
        lambda line: "#" + line,
        lambda line: line.rsplit(" ", 3)[0],
        lambda line: "",
        lambda line: "1" + line[1:],
        lambda line: line.replace(" d", " a"),
        lambda line: line.replace(" d", " \u00e9"),
        lambda line: line.replace("d5", "d6"),
        lambda line: line.replace("d", "c "),
        lambda line: line.replace("1 t", "x t"),
        lambda line: line + "\r",
    ]
)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1 << 17, 300], ids=["one piece", "small pieces"])
def test_a_long_run_with_odd_lines_is_scored_as_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(trec_lines, "_PIECE", size)
    qrels = written(tmp_path, "qrels.txt", "1 0 d1 1\n1 0 d11 1\n2 0 d13 1\n3 0 a4 1\n3 0 x 1\n")

    @settings(max_examples=200, database=None)
    @given(changes=st.dictionaries(st.integers(0, len(REGULAR) - 1), CHANGES, max_size=4), ended=st.booleans())
    def check(changes: dict[int, Callable[[str], str]], ended: bool) -> None:  # drawn by name
        lines = [changes[place](line) if place in changes else line for place, line in enumerate(REGULAR)]
        assert_as_in_a_run(qrels, written(tmp_path, "x.run", "\n".join(lines) + "\n" * ended))

    check()


@pytest.mark.parametrize("ties", [None, "trec_eval"])
@pytest.mark.parametrize("size", [1 << 20, 3000], ids=["one piece", "small pieces"])
def test_many_queries_are_scored_as_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, ties: str | None
) -> None:
    monkeypatch.setattr(trec_lines, "_PIECE", size)
    rng = random.Random(5)
    run, qrels = [], []
    for query in range(120):
        documents = [f"doc-{one}" for one in rng.sample(range(300), rng.randint(1, 90))]
        digits = rng.randint(1, 6)  # with one digit most are tied
        scores = sorted((round(rng.uniform(-9, 30), digits) for _ in documents), reverse=query % 7 > 0)
        run += [f"q{query} Q0 {one} 0 {score} t\n" for one, score in zip(documents, scores, strict=True)]
        wanted = [*rng.sample(documents, min(len(documents), rng.randint(0, 4))), f"doc-{rng.randrange(300)}-long"]
        qrels += [f"q{query} 0 {one} {rng.randint(0, 2)}\n" for one in dict.fromkeys(wanted)]
    assert_as_in_a_run(written(tmp_path, "q.qrels", "".join(qrels)), written(tmp_path, "x.run", "".join(run)), ties)


@pytest.mark.parametrize("outputs", ["x.run", "x.jsonl", "scattered.run", "utf16.run"])
def test_the_hash_is_that_of_the_file(tmp_path: Path, outputs: str) -> None:
    cases = tmp_path / "qrels.txt"
    cases.write_bytes(b"\xef\xbb\xbf1 0 a 1\n2 0 a 1")
    text = {
        "x.run": "1 Q0 a 1 0.5 t\n2 Q0 b 1 0.5 t\n",
        "x.jsonl": '{"case_id": "1", "retrieved_ids": ["a"]}\n\n{"case_id": "2"}',
        "scattered.run": "1 Q0 a 1 0.5 t\n2 Q0 b 1 0.5 t\n1 Q0 c 1 0.5 t",
        "utf16.run": "1 Q0 a 1 0.5 t\n2 Q0 b 1 0.5 t\n",
    }[outputs]
    path = tmp_path / outputs
    path.write_bytes(text.encode("utf-16" if outputs == "utf16.run" else "utf-8"))
    files = scored(cases, path).files
    for kind, file in (("cases", cases), ("outputs", path)):
        assert files[kind]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_estimates_are_those_of_a_run(tmp_path: Path) -> None:
    cases = write_lines(tmp_path / "cases.jsonl", JSON_CASES)
    outputs = write_lines(tmp_path / "outputs.jsonl", [row for rows in JSON_OUTPUTS[:1] for row in rows])
    expected, _ = by_records(cases, outputs)
    scores = scored(cases, outputs)
    for policy in ("exclude", "as_zero"):
        found = judgekit.score_files(cases, outputs, ks=KS, mrr_ks=(2,), errors=policy).estimates
        tally = Tally(scores.columns.columns(), [])
        for number in range(len(JSON_CASES)):
            tally.add({name: column[number] for name, column in expected.items()})
        assert found | scores.distributions == tally.figures(policy)


@needs_shared_files
def test_published_figures_of_trec_eval_come_out() -> None:
    scores = judgekit.score_files(
        shared("trec/qrels.test"), shared("trec/results.test"), ks=(5, 10, 100), ties="trec_eval"
    )
    published = {}
    for line in shared("trec/expected_all.txt").read_text(encoding="utf-8").splitlines():
        name, _, value = line.split()[:3]
        published[name] = value
    pairs = {"mrr": "recip_rank", "precision@5": "P_5", "precision@10": "P_10", "precision_chunk@100": "P_100"}
    for ours, theirs in pairs.items():
        assert f"{scores.estimates[ours].value:.4f}" == published[theirs]
    assert scores.files["outputs"]["n"] == int(published["num_q"])


# Lists ----------------------------------------------------------------------------------------------------------------

GOLD: dict[str, list[Any]] = {"one": ["a", "b"], "two": ["x"], "far": ["z"], "none": [], "absent": ["q"], "seven": [7]}
LISTS: dict[str, list[Any]] = {
    "one": ["b", "c", "b", "a"],
    "two": [],
    "far": [f"d{number}" for number in range(11)] + ["z"],
    "none": ["a"],
    "seven": ["6", "7"],
}


def test_lists_are_scored_by_the_definitions() -> None:
    columns = judgekit.score_rankings(GOLD, LISTS, ks=(1, 4)).columns
    # Cases with gold, in order: one (ranks 1 and 4), two, far (rank 12), absent, seven (rank 2).
    assert list(columns.values("hit@1")) == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert list(columns.values("recall_doc@4")) == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert list(columns.values("precision_chunk@4")) == [0.5, 0.0, 0.0, 0.0, 0.25]
    assert list(columns.values("mrr")) == [1.0, 0.0, 1 / 12, 0.0, 0.5]
    assert list(columns.values("mrr_chunk")) == [1.0, 0.0, 0.0, 0.0, 0.5]
    assert list(columns.places("mrr")) == [0, 1, 2, 4, 5]
    assert columns.n_not_applicable("mrr") == 1
    assert list(columns.values("empty_result")) == [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]


def test_names_with_the_same_data_share_their_column_and_estimate() -> None:
    scores = judgekit.score_rankings(GOLD, LISTS)
    assert scores.columns.values("hit@5") is scores.columns.values("recall_any@5")
    assert scores.estimates["hit@5"] is scores.estimates["recall_any@5"]
    assert scores.estimates["hit@5"].n == 5


def test_scores_by_id_are_put_in_order() -> None:
    by_score = {"one": {"c": 0.5, "b": 2.0, "a": 0.1}}
    gold = {"one": ["a", "b"]}
    assert list(judgekit.score_rankings(gold, by_score).columns.values("recall_doc@1")) == [0.5]
    assert list(judgekit.score_rankings(gold, by_score).columns.values("ndcg@3")) == pytest.approx([0.9197], abs=1e-4)


def test_ids_are_compared_after_nfc() -> None:
    for gold, found in [("e\u0301", "\u00e9"), ("\u00e9", "e\u0301"), ("K", "\u212a")]:
        assert list(judgekit.score_rankings({"q": [gold]}, {"q": ["x", found]}).columns.values("mrr")) == [0.5]


@pytest.mark.parametrize(
    ("gold", "lists", "message"),
    [
        ({"q": [True]}, {"q": ["a"]}, "case 'q': an id is text or a whole number"),
        ({"q": ["a"]}, {"q": [None]}, "case 'q': an id is text or a whole number, found NoneType"),
        ({"q": ["a"]}, {"q": [""]}, "case 'q': an id is empty"),
        ({"q": ["a"]}, {"q": ["b", "\t"]}, "case 'q': an id is empty"),
        ({"q": ["a"]}, {"q": [*"bcdefghijkl", ""]}, "case 'q': an id is empty"),
        ({"q": ["a"]}, {"q": [*"bcdefghijkla", ""]}, "case 'q': an id is empty"),
        ({"p": ["a"], "q": 7}, {"q": ["b"]}, "case 'q': 'int' object is not iterable"),
        ({"p": ["a"], "q": [" "]}, {"q": ["b"]}, "case 'q': an id is empty"),
        ({"q": "a"}, {"q": ["a"]}, "case 'q': expected ids, found one text"),
        ({"q": ["a"]}, {"q": "abc"}, "case 'q': expected ids, found one text"),
        ({"q": [["a"]]}, {"q": ["a"]}, "case 'q': an id is text or a whole number, found list"),
        ({"q": ["a"]}, {"q": {"a": float("nan")}}, "case 'q': a score is not a finite number"),
        ({"q": ["a"]}, {"p": ["a"]}, "no output belongs to a case"),
    ],
)
def test_what_cannot_be_scored_is_named(gold: Any, lists: Any, message: str) -> None:
    with pytest.raises(JudgekitError, match=message):
        judgekit.score_rankings(gold, lists)


def test_what_is_wrong_with_gold_that_can_be_read_once_is_named() -> None:
    with pytest.raises(JudgekitError, match="case 'q': an id is empty"):
        judgekit.score_rankings({"p": ["a"], "q": iter(["b", ""])}, {"q": ["b"]})


def test_no_cut_off_is_too_large(tmp_path: Path) -> None:
    run = written(tmp_path, "x.run", "q Q0 b 1 2 t\nq Q0 a 1 1 t\n")
    outputs = write_lines(tmp_path / "x.jsonl", [{"case_id": "q", "retrieved_ids": ["b", "a"]}])
    for scores in (
        judgekit.score_rankings({"q": ["a"]}, {"q": ["b", "a"]}, ks=(2**63,), mrr_ks=(10**30,)),
        judgekit.score_files(written(tmp_path, "q.qrels", "q 0 a 1\n"), run, ks=(2**63,), mrr_ks=(10**30,)),
        judgekit.score_files(tmp_path / "q.qrels", outputs, ks=(2**63,), mrr_ks=(10**30,)),
    ):
        assert scores.estimates[f"recall_doc@{2**63}"].value == 1.0
        assert scores.estimates[f"mrr@{10**30}"].value == 0.5


def test_a_cut_off_below_one_is_refused() -> None:
    with pytest.raises(JudgekitError, match="cut-offs: "):
        judgekit.score_rankings(GOLD, LISTS, ks=(0,))


@given(
    gold=st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 30), max_size=25), min_size=1),
    seed=st.integers(0, 2**32),
)
def test_lists_and_judgements_give_the_same_numbers(
    tmp_path_factory: pytest.TempPathFactory, gold: dict[int, set[int]], seed: int
) -> None:
    rng = random.Random(seed)
    lists = {str(query): [str(one) for one in rng.sample(range(31), rng.randint(1, 31))] for query in gold}
    folder = tmp_path_factory.mktemp("lists")
    run = "".join(f"{q} Q0 {one} 1 {-rank} t\n" for q, found in lists.items() for rank, one in enumerate(found))
    lines = "".join(f"{q} 0 {one} {int(one in found)}\n" for q, found in gold.items() for one in range(31))
    from_files = scored(written(folder, "qrels.txt", lines), written(folder, "x.run", run))
    relevant = {str(query): [str(one) for one in sorted(found)] for query, found in gold.items()}
    in_memory = judgekit.score_rankings(relevant, lists, ks=KS, mrr_ks=(2,))
    assert in_memory.estimates == from_files.estimates


def every_name(take: Callable[[str], Any], scores: RankingScores) -> dict[str, Any]:
    return {column.name: take(column.name) for column in scores.columns.columns()}


def test_cases_that_come_in_another_order_are_put_into_that_of_the_cases(tmp_path: Path) -> None:
    qrels = written(tmp_path, "qrels.txt", "1 0 a 1\n2 0 a 1\n3 0 a 1\n")
    run = written(tmp_path, "x.run", "3 Q0 a 1 1 t\n1 Q0 b 1 1 t\n")
    scores = scored(qrels, run)
    assert scores.columns.case_ids == ["1", "2", "3"]
    assert list(scores.columns.values("hit@1")) == [0.0, 0.0, 1.0]
    assert [code for code, _ in scores.warnings] == ["cases_without_output"]
    assert every_name(scores.columns.n_failed, scores) == every_name(lambda _: 0, scores)
