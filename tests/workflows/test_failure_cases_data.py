"""Failure cases of kind C, what comes in: each id once, through the reader, and a run where it takes one.

The ids are those of `shared/cases/failures.jsonl`. Details of the readers have tests of their own, beside the readers.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import judgekit
import judgekit.judges
import judgekit.metrics
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Judge, Metric, discover
from judgekit.core.errors import ConfigError, InputError
from judgekit.executors.event_loop import run_local
from judgekit.metrics.answer_checks import AnswerChecks
from judgekit.metrics.retrieval import Retrieval
from judgekit.metrics.spans import CharacterSpan
from judgekit.testing import FaultServer
from judgekit.workflows.dry_run import dry_run
from judgekit.workflows.models import Options
from judgekit.workflows.setup import set_up
from tests.builders import case, output, read_json, read_lines, write_suite
from tests.readers import cases_of, complaint, needs_shared_files, outputs_of, shared, written
from tests.workflows.engine import again, carried_out, good

pytestmark = pytest.mark.usefixtures("quick_waits")


def figures_of_run(folder: Path, qrels: str, run: str, **system: Any) -> dict[str, Any]:
    """metrics.json of a TREC run."""
    written(folder, "x.qrels", qrels)
    written(folder, "x.run", run)
    config = {"name": "trec", "cases": "x.qrels", "system": {"path": "x.run", **system}, "results_dir": "results"}
    path = written(folder, "config.json", json.dumps(config))
    judgekit.run(path, run_id="r")
    found: dict[str, Any] = read_json(folder / "results" / "r" / "metrics.json")
    found["notices"] = {notice["code"]: notice["message"] for notice in found["warnings"]}
    return found


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cases.csv", "\ufeffid,question,answer\r\n1,what is 2+2,4\r\n"),
        ("quoted.csv", '\ufeff"id",question,"answer, short"\r\n1,what is 2+2,4\r\n'),
        ("cases.jsonl", '\ufeff{"id": 1, "question": "what is 2+2"}\n'),
        ("cases.json", '\ufeff[{"id": 1, "question": "what is 2+2"}]'),
    ],
)
def test_c01_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path, name: str, data: str) -> None:
    (found,) = cases_of(written(tmp_path, name, data))
    assert (found.id, found.question) == ("1", "what is 2+2")


def test_c01_the_same_character_inside_a_value_is_kept(tmp_path: Path) -> None:
    (found,) = cases_of(written(tmp_path, "c.csv", "\ufeffid,question\n1,a\ufeffb\n"))
    assert found.question == "a\ufeffb"


def test_c02_utf_16_is_known_by_its_mark_and_what_has_none_is_refused_with_the_byte(tmp_path: Path) -> None:
    (found,) = cases_of(written(tmp_path, "c.csv", "\ufeffid,question\n1,q\n".encode("utf-16-le")))
    assert (found.id, found.question) == ("1", "q")
    message = complaint(written(tmp_path, "d.csv", b"id,question\n1,caf\xe9\n"))
    assert "byte 17" in message
    assert 'set "encoding", for example "cp1252"' in message


def test_c04_separators_that_are_legal_inside_a_text_end_no_record(tmp_path: Path) -> None:
    text = '{"id":"a","answer":"x\u2028y"}\n{"id":"b","answer":"z\u0085w"}\r\n'
    assert len(text.splitlines()) == 4
    found = outputs_of(written(tmp_path, "o.jsonl", text))
    assert [row.answer for row in found] == ["x\u2028y", "z\u0085w"]


def test_c06_ids_join_as_texts_in_the_order_of_the_file(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = [{"id": 1}, {"id": "-2"}, {"id": "10"}, {"id": "01"}]
    outputs: list[dict[str, Any]] = [
        {"id": "1", "answer": "a"},
        {"id": -2, "answer": "a"},
        {"id": "10", "answer": "a"},
        {"id": "01"},
    ]
    summary = judgekit.run(write_suite(tmp_path, case_rows=cases, output_rows=outputs, judges=[], models={}))
    folder = tmp_path / "results" / summary.run_id
    assert [row["case_id"] for row in read_lines(folder / "outputs.jsonl")] == ["1", "-2", "10", "01"]
    assert [notice.code for notice in summary.warnings if "without" in notice.code] == []
    assert "id '1' is already on line 1" in complaint(written(tmp_path, "t.jsonl", '{"id": 1}\n{"id": "1"}\n'))
    # Whole floats of a column are whole numbers, with a warning (test_containers); a float in JSON is no id.
    assert complaint(written(tmp_path, "f.jsonl", '{"id": 1.0}')).startswith("f.jsonl:1: $.id: ")


def test_c07_csv_cells_are_texts_and_an_empty_answer_is_one(tmp_path: Path) -> None:
    found = outputs_of(written(tmp_path, "o.csv", "id,answer\n00123,NA\n00124,null\n00125,\n"))
    assert [(row.case_id, row.answer) for row in found] == [("00123", "NA"), ("00124", "null"), ("00125", "")]


def test_c08_a_missing_value_never_reaches_a_prompt_as_a_word(tmp_path: Path) -> None:
    rows = [
        {"case_id": "c0", "answer": float("nan"), "retrieved": None},
        {"case_id": "c1", "answer": "Kiln c1 is fired.", "retrieved": [{"text": float("nan")}, {"text": "Kiln."}]},
    ]
    ran = carried_out(tmp_path, good(), n_cases=2, output_rows=rows)
    assert ran.summary is not None
    (asked,) = ran.asked  # c0 is not asked about
    text = asked["messages"][-1]["content"]
    assert "nan" not in text.lower().split()
    assert "None" not in text
    reasons = {row["case_id"]: row["reason"] for row in read_lines(ran.folder / "scores.jsonl")}
    assert reasons["c0"] == "failed: no_answer"


@pytest.mark.parametrize(("how", "texts"), [({"list_separator": "|"}, ["north", "south"]), ({}, ["north|south"])])
def test_c10_a_list_cell_is_split_by_a_declared_separator_only(
    tmp_path: Path, how: dict[str, Any], texts: list[str]
) -> None:
    path = written(tmp_path, "g.csv", "id,answer,context\nq,a,north|south\n")
    (found,) = outputs_of(path, fields={"retrieved": "context"}, **how)
    assert [hit.text for hit in found.retrieved] == texts


def test_c11_values_of_a_columnar_file_are_plain(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the parquet extra is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"id": 7, "expected_doc_ids": ["d1", "d2"], "s": 0.5, "answerable": True}]
    rows += [{"id": 8, "expected_doc_ids": [], "s": 0.25, "answerable": False}]
    types = [("id", pyarrow.int64()), ("expected_doc_ids", pyarrow.list_(pyarrow.string()))]
    types += [("s", pyarrow.float32()), ("answerable", pyarrow.bool_())]
    parquet.write_table(pyarrow.Table.from_pylist(rows, pyarrow.schema(types)), tmp_path / "c.parquet")
    first, second = cases_of(tmp_path / "c.parquet")
    assert (first.id, first.expected_doc_ids, first.answerable) == ("7", ("d1", "d2"), True)
    assert (type(first.metadata["s"]), first.metadata["s"]) == (float, 0.5)
    assert second.expected_doc_ids == ()  # there but empty, which asks for a refusal


def test_c12_rows_are_joined_by_id_and_an_index_column_means_nothing(tmp_path: Path) -> None:
    # The column without a name is the index that pandas writes.
    rows = written(tmp_path, "outputs.csv", ",id,answer,context\n50436,b,hot,c2\n7,a,hot,c1\n")
    with FaultServer(good()) as server:
        write_suite(tmp_path, server.base_url, case_rows=[case("a"), case("b")], output_rows=[])
        document = read_json(tmp_path / "config.json")
        document["system"] = {"path": rows.name, "fields": {"retrieved": "context"}}
        ran = again(written(tmp_path, "config.json", json.dumps(document)), server)
        inputs = {item["case_id"]: item for item in read_lines(ran.folder / "judge_inputs.jsonl")}
    assert [passage["text"] for passage in inputs["a"]["variables"]["passages"]] == ["c1"]
    assert [passage["text"] for passage in inputs["b"]["variables"]["passages"]] == ["c2"]


class TestFieldsThatAreMissing:
    rows = [{"id": "1", "question": "How hot?"}]
    outputs = [{"id": "1", "answer": "a"}]

    def test_c14_every_missing_field_is_named_for_each_metric_before_any_call(self, tmp_path: Path) -> None:
        ran = carried_out(
            tmp_path, good(), case_rows=self.rows, output_rows=self.outputs, metrics=["retrieval", "abstention"]
        )
        assert isinstance(ran.error, InputError)
        hint = '; add it, map it with "fields", or leave'
        assert str(ran.error).split("\n") == [
            "metrics: retrieval needs gold_supports, which no case has, and retrieved, which no output has"
            f"{hint} retrieval out",
            f"metrics: abstention needs answerable, which no case has{hint} abstention out",
            f"judge groundedness needs retrieved, which no output has{hint} groundedness out",
        ]
        assert ran.asked == []

    def test_c14_a_dry_run_says_the_same(self, tmp_path: Path) -> None:
        config = write_suite(tmp_path, case_rows=self.rows, output_rows=self.outputs)
        with pytest.raises(InputError, match="judge groundedness needs retrieved, which no output has"):
            run_local(lambda: dry_run(set_up(config, Options()), Options(use_cache=False)))

    def test_c14_an_empty_list_is_not_missing(self, tmp_path: Path) -> None:
        outputs = [{"id": "1", "answer": "a", "retrieved": []}]
        ran = carried_out(tmp_path, good(), case_rows=self.rows, output_rows=outputs)
        assert ran.error is None
        assert ran.metrics["overall"]["groundedness"]["n_not_applicable"] == 1
        assert not ran.asked  # nothing was retrieved that the answer could rest on

    def test_c14_families_that_nobody_named_give_a_warning_where_their_labels_are_there(self, tmp_path: Path) -> None:
        rows = [case("1", gold_supports=[{"rel_path": "a.md"}])]
        summary = judgekit.run(
            write_suite(tmp_path, case_rows=rows, output_rows=self.outputs, judges=[], models={}), run_id="r"
        )
        messages = [notice.message for notice in summary.warnings if notice.code == "field_missing"]
        assert "metrics: retrieval needs retrieved, which no output has" in messages
        assert not any("extraction" in message for message in messages)  # no case is labelled for it

    def test_c14_a_part_of_the_cases_may_lack_a_label(self, tmp_path: Path) -> None:
        rows = [{"id": "1"}, case("2", must_contain=["hot"])]
        outputs = [{"id": "1", "answer": "hot"}, {"id": "2", "answer": "hot"}]
        config = write_suite(
            tmp_path, case_rows=rows, output_rows=outputs, metrics=["answer_checks"], judges=[], models={}
        )
        summary = judgekit.run(config, limit=1)
        assert [notice.code for notice in summary.warnings] == ["field_missing"]
        assert judgekit.run(config).overall["keyword_groundedness"].n == 1

    def test_c14_every_field_that_something_needs_exists(self) -> None:
        fields = {f"case.{name}" for name in Case.model_fields}
        fields |= {f"output.{name}" for name in SystemOutput.model_fields}
        for component in [*discover(judgekit.metrics, Metric).values(), *discover(judgekit.judges, Judge).values()]:
            assert {name for group in component.needs for name in group} <= fields, component.name

    def test_c14_a_system_that_failed_everywhere_lacks_no_field(self, tmp_path: Path) -> None:
        outputs = [{"id": "1", "error": {"kind": "timeout"}}]
        summary = judgekit.run(write_suite(tmp_path, case_rows=self.rows, output_rows=outputs))
        assert summary.overall["groundedness"].n_error == 1


def test_c16_a_blank_an_empty_and_a_missing_answer_are_told_apart(tmp_path: Path) -> None:
    rows = [{"id": "c0", "answer": "  "}, {"id": "c1", "answer": ""}, {"id": "c2"}, output("c3")]
    ran = carried_out(tmp_path, good(), n_cases=4, output_rows=rows)
    assert len(ran.asked) == 1
    reasons = {
        row["case_id"]: row["reason"]
        for row in read_lines(ran.folder / "scores.jsonl")
        if row["name"] == "groundedness"
    }
    assert reasons == {
        "c0": "failed: blank_answer",
        "c1": "failed: blank_answer",
        "c2": "failed: no_answer",
        "c3": None,
    }
    assert [row.get("answer") for row in read_lines(ran.folder / "outputs.jsonl")][:3] == ["  ", "", None]
    figure = ran.metrics["overall"]["groundedness"]
    assert (figure["n"], figure["n_error"], figure["worst"]) == (1, 3, 1.0)  # 4 of one case, 0 of three


def test_c18_composed_and_decomposed_letters_are_the_same(tmp_path: Path) -> None:
    short, long = "Caf\u00e9", "Cafe\u0301"
    assert (len(short), len(long)) == (4, 5)
    found = AnswerChecks().calculate(Case(id="1", must_contain=[short]), SystemOutput(case_id="1", answer=long))
    assert found["keyword_groundedness"] == 1.0
    both = '{"id": "Gr\u00f6\u00dfe.md"}\n{"id": "Gro\u0308\u00dfe.md"}\n'
    assert "is already on line 1" in complaint(written(tmp_path, "c.jsonl", both))
    support, hit = {"rel_path": "Gr\u00f6\u00dfe.md"}, {"rel_path": "Gro\u0308\u00dfe.md"}
    scores = Retrieval().calculate(Case(id="1", gold_supports=[support]), SystemOutput(case_id="1", retrieved=[hit]))
    assert scores["recall_any@1"] == 1.0


class TestOffsets:
    document = "\U0001f600abcdef"  # 7 code points, 8 UTF-16 units
    rows = [{"id": "1", "expected_spans": {"k": [{"doc_id": "d", "start": 1, "end": 7, "text": "abcdef"}]}}]

    def suite(self, folder: Path, expected: dict[str, Any], found: dict[str, Any]) -> Path:
        rows = [{"id": "1", "expected_spans": {"k": [{"doc_id": "d", **expected}]}}]
        hit = {"doc_id": "d", "text": self.document, "source_spans": [found]}
        return write_suite(folder, case_rows=rows, output_rows=[{"id": "1", "retrieved": [hit]}], judges=[], models={})

    def test_c19_offsets_count_code_points(self, tmp_path: Path) -> None:
        assert (len(self.document), self.document[1:7]) == (7, "abcdef")
        assert CharacterSpan.from_utf16("d", 2, 8, self.document) == CharacterSpan("d", 1, 7)
        summary = judgekit.run(self.suite(tmp_path, {"start": 1, "end": 7, "text": "abcdef"}, {"start": 0, "end": 7}))
        # All 6 expected characters, in 7 retrieved.
        assert summary.overall["span_recall"].value == 1.0
        assert summary.overall["span_precision"].value == pytest.approx(6 / 7)
        assert summary.warnings == ()

    def test_c19_a_span_whose_text_stands_elsewhere_is_refused_with_the_id(self, tmp_path: Path) -> None:
        config = self.suite(tmp_path, {"start": 2, "end": 8, "text": "abcdef"}, {"start": 0, "end": 7})
        with pytest.raises(InputError) as caught:
            judgekit.run(config)
        assert str(caught.value) == (
            "case '1': expected_spans of chunk 'k' and retrieved[0] have two texts for one place of 'd': "
            "'abcde' and 'bcdef'; offsets count Unicode code points"
        )

    def test_c19_a_span_that_is_not_as_long_as_its_text_is_refused_when_it_is_read(self, tmp_path: Path) -> None:
        row = {"id": "1", "expected_spans": {"k": [{"doc_id": "d", "start": 0, "end": 8, "text": self.document}]}}
        message = complaint(written(tmp_path, "c.jsonl", json.dumps(row)))
        assert message == (
            "c.jsonl:1: $.expected_spans.k[0]: a span from 0 to 8 has a text of 7 characters; offsets count Unicode "
            "code points, not bytes, or as UTF-16 units, which these seem to be"
        )

    def test_c19_hits_that_count_utf16_units_are_noticed(self, tmp_path: Path) -> None:
        summary = judgekit.run(self.suite(tmp_path, {"start": 1, "end": 7}, {"start": 0, "end": 8}))
        ((code, message),) = [(notice.code, notice.message) for notice in summary.warnings]
        assert code == "offsets_in_utf16"
        assert "1 hits have source_spans that fit their text in UTF-16 units" in message
        assert "first in case '1'" in message

    def test_c19_white_space_that_was_laid_out_anew_is_no_other_text(self, tmp_path: Path) -> None:
        rows = [{"id": "1", "expected_spans": {"k": [{"doc_id": "d", "start": 0, "end": 5, "text": "a\nb c"}]}}]
        hit = {"doc_id": "d", "text": "a b\tc", "source_spans": [{"start": 0, "end": 5}]}
        outputs = [{"id": "1", "retrieved": [hit]}]
        config = write_suite(tmp_path, case_rows=rows, output_rows=outputs, judges=[], models={})
        assert judgekit.run(config).overall["span_iou"].value == 1.0


TIED = "7 0 m 0\n7 0 n 1\n7 0 p 0\n"


@pytest.mark.parametrize(
    ("other", "ties", "ndcg"),
    [("m", "trec_eval", 1.0), ("p", "trec_eval", 0.6309), ("m", "given", 1.0), ("p", "given", 1.0)],
)
def test_c21_ties_are_ordered_as_the_config_says(tmp_path: Path, other: str, ties: str, ndcg: float) -> None:
    # By descending id, n comes before m and after p: 1 / log2(2), 1 / log2(3).
    found = figures_of_run(tmp_path, TIED, f"7 Q0 n 1 1.0 r\n7 Q0 {other} 2 1.0 r\n", ties=ties)
    assert found["overall"]["ndcg@5"]["value"] == ndcg
    assert found["overall"]["mrr"]["value"] == (1.0 if ndcg == 1.0 else 0.5)
    assert ("score_ties" in found["notices"]) is (ties == "given")


def test_c22_a_document_that_comes_twice_is_refused_with_query_and_id(tmp_path: Path) -> None:
    message = complaint(written(tmp_path, "x.run", "1 Q0 d1 1 2.0 r\n1 Q0 d1 2 1.0 r\n"), kind="outputs")
    assert message == "x.run:1: query '1': document 'd1' comes 2 times; keep one of its lines"


def test_c23_the_rank_column_is_never_read(tmp_path: Path) -> None:
    (found,) = outputs_of(written(tmp_path, "x.run", "q1 Q0 d9 0 0.2 r\nq1 Q0 d1 0 0.9 r\n"))
    assert [hit.chunk_id for hit in found.retrieved] == ["d1", "d9"]


@needs_shared_files
def test_c25_a_published_run_has_the_figures_of_trec_eval(tmp_path: Path) -> None:
    # AP, R-precision and bpref are no figures of ours; those that we have are equal. Per query: see test_trec.
    found = figures_of_run(
        tmp_path,
        shared("trec/qrels.test").read_text(encoding="utf-8"),
        shared("trec/results.test").read_text(encoding="utf-8"),
        ties="trec_eval",
    )
    assert found["overall"]["mrr"]["value"] == 0.4064
    assert (found["overall"]["mrr"]["n"], found["cases"]["n"]) == (3, 3)
    outputs = outputs_of(shared("trec/results.test"), format="trec", ties="trec_eval")
    cases = {row.id: row for row in cases_of(shared("trec/qrels.test"))}
    assert sum(len(row.retrieved) for row in outputs) == 1500
    assert sum(len(row.expected_doc_ids or ()) for row in cases.values()) == 561
    n_found = sum(
        len({hit.doc_id for hit in row.retrieved} & set(cases[row.case_id].expected_doc_ids or ())) for row in outputs
    )
    assert n_found == 131


def test_c26_queries_on_one_side_are_counted_and_named_and_a_missing_one_is_0(tmp_path: Path) -> None:
    found = figures_of_run(tmp_path, "q1 0 d1 1\nq2 0 d2 1\n", "q1 Q0 d1 1 1.0 r\nq3 Q0 d9 1 1.0 r\n")
    assert found["overall"]["recall_doc@1"]["value"] == 0.5  # (1 + 0) / 2
    assert found["overall"]["recall_doc@1"]["n"] == 2
    assert found["notices"]["cases_without_output"] == (
        "x.run: no output for 'q2'; nothing was retrieved there, which counts as 0 (cases 2, outputs 2, both 1)"
    )
    assert found["notices"]["outputs_without_case"] == "x.run: no case for 'q3' (cases 2, outputs 2, both 1)"


@pytest.mark.parametrize(
    ("gold", "given_heading", "is_noticed"),
    [
        (["Guide", "Backup/Restore"], "/Guide/Backup/Restore/", True),
        (["Guide", "A > B"], "Guide > A > B", True),
        (["Guide", "Backup/Restore"], "Guide > Backup/Restore", False),
        (["Guide", "Backup/Restore"], ["Guide", "Backup/Restore"], False),
        (["Guide", "Backup/Restore"], "Other", False),
    ],
)
def test_c27_a_heading_that_is_split_otherwise_is_wrong_and_noticed(
    tmp_path: Path, gold: list[str], given_heading: Any, is_noticed: bool
) -> None:
    place = {"rel_path": "docs/help.md"}
    rows = [{"id": "1", "gold_supports": [{**place, "heading_path": gold}]}]
    outputs = [{"id": "1", "retrieved": [{**place, "heading_path": given_heading}]}]
    summary = judgekit.run(write_suite(tmp_path, case_rows=rows, output_rows=outputs, judges=[], models={}))
    assert summary.overall["recall_any@1"].value == float(not is_noticed and given_heading != "Other")
    assert [notice.code for notice in summary.warnings] == ["ambiguous_heading_path"] * is_noticed


def test_c28_a_windows_path_is_the_same_path(tmp_path: Path) -> None:
    scores = Retrieval().calculate(
        Case(id="1", gold_supports=[{"rel_path": "docs/guide/intro.md"}]),
        SystemOutput(
            case_id="1", retrieved=[{"rel_path": ".\\docs\\guide\\intro.md"}, {"rel_path": "docs/GUIDE/intro.md"}]
        ),
    )
    assert scores["precision@3"] == pytest.approx(1 / 3)  # case counts
    # An answer is no path, so its backslashes are letters.
    kept = AnswerChecks().calculate(
        Case(id="1", must_contain=["docs/guide"]), SystemOutput(case_id="1", answer="docs\\guide")
    )
    assert kept["keyword_groundedness"] == 0.0
    # Files are named by paths and not by addresses, so no drive letter can be lost: one is no file.
    with pytest.raises(ConfigError, match=r"file:/D:/runs/x\.jsonl: no such file"):
        judgekit.run("file://D:/runs/x.jsonl")


def test_c29_metadata_may_be_a_text_or_an_object_and_is_a_slice(tmp_path: Path) -> None:
    rows = [
        case("c0", metadata='{"name": "x", "n": {"a": [1, 2]}}'),
        case("c1", metadata={"name": "y", "n": {"a": {"b": 1}}}),
    ]
    summary = judgekit.run(write_suite(tmp_path, n_cases=2, case_rows=rows, slices=["metadata.n.a", "metadata.name"]))
    assert sorted(summary.slices["metadata.name"]) == ["x", "y"]
    assert sorted(summary.slices["metadata.n.a"]) == ["1", "2", '{"b": 1}']


def test_c30_a_prompt_beyond_the_limit_is_not_sent_and_the_other_cases_are_judged(tmp_path: Path) -> None:
    rows = [output("c0", retrieved=[{"text": "lorem " * 500_000}]), output("c1", retrieved=["x"] * 500), output("c2")]
    ran = carried_out(tmp_path, good(), n_cases=3, output_rows=rows, model={"max_prompt_bytes": 100_000})
    failure = ran.judgments["c0"]["failure"]
    assert failure["kind"] == "context_length"
    assert failure["message"].startswith("the prompt has 3,00")
    assert "more than max_prompt_bytes of 100,000; it was not sent" in failure["message"]
    assert ran.judgments["c0"]["n_requests"] == 0
    assert len(ran.asked) == 2
    figure = ran.metrics["overall"]["groundedness"]
    assert (figure["n"], figure["n_error"]) == (2, 1)
    # Reports show figures and no texts; what was judged stands in full in judge_inputs.jsonl.
    assert len((ran.folder / "summary.md").read_text(encoding="utf-8")) < 20_000


@needs_shared_files
def test_c34_nested_data_sets_are_read() -> None:
    rows = cases_of(shared("squad/squad2.json"), fields={"id": "question"})  # the ids of this fixture repeat
    assert {row.answerable for row in rows} == {True, False}
    assert all(row.expected_doc_ids == () for row in rows if row.answerable is False)
    assert all(row.gold_supports for row in cases_of(shared("hotpotqa/hotpotqa_train.head3.json")))


def test_c34_another_nesting_is_told_what_was_expected(tmp_path: Path) -> None:
    message = complaint(written(tmp_path, "c.json", '{"version": 1, "data": []}'))
    assert "unsupported shape: expected a list of objects, found an object with keys version, data" in message
