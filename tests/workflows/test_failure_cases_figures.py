"""Failure cases of kind E, what becomes of scores: each id once; last, that no case of the kinds C and E is left out.

The ids are those of `shared/cases/failures.jsonl`. Where a case speaks of a figure that judgekit does not have, its
test says so and shows the nearest that it does.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit import Case, SystemOutput, aggregate
from judgekit.analysis.gates import check_gates
from judgekit.core.conditions import Gate
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Column, Estimate, Failed, NotApplicable
from judgekit.metrics.extraction import Extraction
from judgekit.metrics.retrieval import Retrieval
from judgekit.metrics.retrieval_ids import RetrievalIds
from judgekit.reports.figures import coverage, number
from judgekit.reports.run_text import plain_text
from judgekit.testing import FaultServer, sequence, verdict
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from tests.builders import case, output, read_json, read_lines, write_lines, write_suite
from tests.readers import complaint, outputs_of, written
from tests.workflows.engine import after_capabilities, again, carried_out, good

pytestmark = pytest.mark.usefixtures("quick_waits")

UNREADABLE = '{"score": NaN, "reasoning": "", "supported_claims": [], "unsupported_claims": []}'


class Score(judgekit.Metric):  # type: ignore[misc, valid-type, unused-ignore]
    """A metric of a user's own, with any number from 0 to 1."""

    name = "score"

    def columns(self) -> tuple[Column, ...]:
        return (Column("score"),)

    def calculate(self, case: Case, output: SystemOutput) -> Any:
        raise NotImplementedError


def one_figure(values: list[float | Failed]) -> Estimate:
    found = aggregate(Score(), [{"score": value} for value in values])["score"]
    assert isinstance(found, Estimate)
    return found


def keyword_suite(folder: Path, rights: list[bool], **config: Any) -> Path:
    """Cases whose `keyword_groundedness` is 1 where `rights` says so; no judge."""
    rows = [case(f"c{n}", must_contain=["hot"], category="big" if n < 400 else "small") for n in range(len(rights))]
    outputs = [output(f"c{n}", answer="hot" if right else "cold") for n, right in enumerate(rights)]
    return write_suite(folder, case_rows=rows, output_rows=outputs, judges=[], models={}, **config)


def test_e01_a_score_that_is_missing_is_in_no_mean_and_no_pass_rate(tmp_path: Path) -> None:
    # (1 + .85 + .75 + .75) / 4 = .8375; with the missing one at 0 or 1: 3.35 / 5 and 4.35 / 5.
    figure = one_figure([1.0, 0.85, 0.75, 0.75, Failed("nan")])
    assert (figure.value, figure.n, figure.n_error) == (0.8375, 4, 1)
    assert [figure.worst, figure.best] == pytest.approx([0.67, 0.87])
    with pytest.raises(ValueError, match="not all finite numbers"):
        one_figure([1.0, float("nan")])  # a NaN that gets so far is an error, never an average
    script = after_capabilities(good(5), good(4), good(4), good(4), UNREADABLE, UNREADABLE)
    ran = carried_out(tmp_path, script, n_cases=5, model={"max_concurrency": 1})
    score, passed = (ran.metrics["overall"][name] for name in ("groundedness", "groundedness_pass_rate"))
    assert (score["value"], score["n"], score["n_error"]) == (4.25, 4, 1)
    assert (passed["value"], passed["n"], passed["n_error"]) == (1.0, 4, 1)  # pass 4, fail 0, unmeasured 1


def test_e02_nothing_measured_is_null_and_misses_its_gate_as_not_measured(tmp_path: Path) -> None:
    gates = [{"metric": "groundedness", "op": ">=", "value": 0}]
    ran = carried_out(tmp_path, after_capabilities(UNREADABLE), n_cases=2, gates=gates)
    assert isinstance(ran.error, ProviderError)
    assert "measured 0 of 2" in str(ran.error)
    figure = Estimate.model_validate(ran.metrics["overall"]["groundedness"])
    assert (figure.value, figure.n, figure.n_error) == (None, 0, 2)
    assert (number(figure.value), coverage(figure)) == ("n/a", "0, 2 failed")
    (gate,) = ran.metrics["gates"]
    assert (gate["passed"], gate["observed"]) == (False, None)
    assert gate["message"] == "groundedness >= 0: missed, no data (0 of 2 cases)"


class TestCoverage:
    def suite(self, folder: Path, *gates: dict[str, Any]) -> Any:
        # 6 verdicts, of 5, 5, 5, 5, 4 and 4, of 25 cases.
        script = after_capabilities(*[good(score) for score in (5, 5, 5, 5, 4, 4)], UNREADABLE)
        return carried_out(folder, script, n_cases=25, model={"max_concurrency": 1}, gates=list(gates))

    def test_e03_a_mean_says_how_few_cases_it_rests_on_and_a_gate_can_ask_for_more(self, tmp_path: Path) -> None:
        ran = self.suite(
            tmp_path,
            {"metric": "groundedness.coverage", "op": ">=", "value": 0.9},
            {"metric": "groundedness.coverage", "op": ">=", "value": 0.24},
            {"metric": "groundedness", "op": ">=", "value": 4.5},
        )
        assert ran.summary is not None
        figure = ran.summary.overall["groundedness"]
        assert (figure.value, coverage(figure)) == (pytest.approx(28 / 6), "6, 19 failed")
        first, second, third = ran.summary.gates
        assert (first.passed, first.observed, first.n) == (False, 0.24, 25)
        assert first.message == "groundedness.coverage >= 0.9: missed, 0.2400 (6 of 25 cases)"
        assert second.passed
        # Without a gate on coverage the mean alone does not pass either: 19 cases count as the worst.
        assert (third.passed, third.observed) == (False, pytest.approx(28 / 25))

    def test_e03_coverage_of_nothing_is_no_data(self) -> None:
        summary = summary_of({"x": aggregate(Score(), [{"score": NotApplicable("no label")}])["score"]})
        (found,) = check_gates((Gate(metric="x.coverage", op=">=", value=0.5),), summary)
        assert (found.passed, found.message) == (False, "x.coverage >= 0.5: missed, no data (0 of 1 cases)")

    def test_e03_coverage_of_no_figure_is_refused_before_the_run(self, tmp_path: Path) -> None:
        gates = [{"metric": "grounded.coverage", "op": ">=", "value": 1}]
        with pytest.raises(ConfigError, match=r"no figure called 'grounded\.coverage'"):
            judgekit.run(write_suite(tmp_path, gates=gates))


def summary_of(overall: dict[str, Any]) -> RunSummary:
    empty: dict[str, Any] = {
        "slices": {},
        "judges": {},
        "latency": {},
        "cost": {},
        "operational": {},
        "cases": {"n": 1},
    }
    about = {
        "run_id": "r",
        "name": "s",
        "created_at": "",
        "status": "complete",
        "config_sha256": "",
        "errors": "exclude",
    }
    return RunSummary.model_validate({**about, **empty, "overall": overall, "judge_reliability": None})


def test_e05_every_screen_shows_one_pass_rate(tmp_path: Path) -> None:
    script = after_capabilities(good(4), good(4), good(5), good(1), UNREADABLE)
    ran = carried_out(tmp_path, script, n_cases=10, model={"max_concurrency": 1})
    assert ran.summary is not None
    stored = ran.metrics["overall"]["groundedness_pass_rate"]
    # 3 of 4 judged; strict: 3 of 10.
    assert (stored["value"], stored["worst"], stored["n"], stored["n_error"]) == (0.75, 0.3, 4, 6)
    figure = ran.summary.overall["groundedness_pass_rate"]
    assert isinstance(figure, Estimate)
    assert (figure.value, figure.worst) == (0.75, 0.3)
    (line,) = [line for line in plain_text(ran.summary).splitlines() if line.startswith("groundedness_pass_rate")]
    assert line.split()[1] == "75%"
    assert line.endswith("4 (small), 6 failed")
    markdown = (ran.folder / "summary.md").read_text(encoding="utf-8")
    assert re.search(
        r"\| `groundedness_pass_rate` \| 0\.750 \|.*\| 4 \(small\), 6 failed \| 0\.300 to 0\.900 \|", markdown
    )
    rows = [row for row in read_lines(ran.folder / "scores.jsonl") if row["name"] == "groundedness_pass"]
    assert [row["value"] for row in rows].count(1.0) == 3


@pytest.mark.parametrize(
    ("expected", "extracted", "precision", "recall"),
    [
        ({}, {}, NotApplicable("nothing expected and nothing extracted"), NotApplicable("nothing expected")),
        ({}, {"a": 1}, 0.0, NotApplicable("nothing expected")),
        ({"a": 1}, {}, 0.0, 0.0),
    ],
)
def test_e07_an_empty_denominator_is_declared(expected: Any, extracted: Any, precision: Any, recall: Any) -> None:
    scores = Extraction().calculate(
        Case(id="1", expected_fields=expected), SystemOutput(case_id="1", extracted_fields=extracted)
    )
    for name, value in (("extraction_precision", precision), ("extraction_recall", recall)):
        found = scores[name]
        assert isinstance(found, NotApplicable) if isinstance(value, NotApplicable) else found == value


def test_e08_an_empty_run_is_an_error_and_an_empty_slice_no_zero(tmp_path: Path) -> None:
    written(tmp_path, "empty.jsonl", "")
    assert complaint(tmp_path / "empty.jsonl") == "empty.jsonl: the file is empty"
    config = keyword_suite(
        tmp_path,
        [True, False],
        slices=["lang", "category"],
        gates=[{"metric": "keyword_groundedness", "op": ">=", "value": 0, "slice": {"lang": "fr"}}],
    )
    summary = judgekit.run(config)
    assert summary.slices["lang"] == {}  # a dimension without cases
    assert set(summary.slices["category"]) == {"big"}
    (gate,) = summary.gates
    assert (gate.passed, gate.observed) == (False, None)
    assert gate.message.endswith("missed, no data")
    figure = summary.overall["mrr"]
    assert (figure.value, figure.n, figure.n_not_applicable) == (None, 0, 2)


def retrieved(gold: list[str], found: list[str], *ks: int) -> dict[str, Any]:
    """Scores of both families for ids that are chunks and files at once."""
    labels = Case(id="1", expected_doc_ids=gold, expected_chunk_ids=gold, gold_supports=[{"rel_path": n} for n in gold])
    hits = [{"chunk_id": name, "doc_id": name, "rel_path": name} for name in found]
    given_ = SystemOutput(case_id="1", retrieved=hits)
    return {**RetrievalIds(ks=ks).calculate(labels, given_), **Retrieval(ks=ks).calculate(labels, given_)}


def test_e09_precision_is_divided_by_k_however_few_were_found() -> None:
    found = retrieved(["d1"], ["d1", "d2"], 5)
    assert (found["precision@5"], found["precision_chunk@5"], found["recall_doc@5"]) == (0.2, 0.2, 1.0)
    assert retrieved(["d1"], [], 5)["precision@5"] == 0.0


def test_e10_what_comes_twice_is_credited_once() -> None:
    twice = retrieved(["A", "B"], ["A", "A"], 2)
    assert (twice["recall_doc@2"], twice["precision_chunk@2"], twice["precision@2"]) == (0.5, 0.5, 0.5)
    more = retrieved(["A"], ["A", "A", "X"], 3)
    assert (more["recall_doc@3"], more["ndcg@3"]) == (1.0, 1.0)
    gold = retrieved(["A", "A"], ["A"], 1)
    assert (gold["recall_doc@1"], gold["ndcg@1"]) == (1.0, 1.0)


def test_e11_ids_are_never_rewritten() -> None:
    found = retrieved(["a_bc574ae_2"], ["a", "a", "z"], 3)
    assert (found["ndcg@3"], found["hit@3"], found["recall_doc@3"]) == (0.0, 0.0, 0.0)


def test_e12_a_figure_is_over_cases_and_a_slice_is_named_as_one(tmp_path: Path) -> None:
    # 100 of 400 and 75 of 100: (100 + 75) / 500 = .35. A mean of slice means (.50) is no figure of ours.
    rights = [n < 100 for n in range(400)] + [n < 75 for n in range(100)]
    summary = judgekit.run(keyword_suite(tmp_path, rights, slices=["category"]))
    assert summary.overall["keyword_groundedness"].value == pytest.approx(0.35)
    slices = {value: figures["keyword_groundedness"] for value, figures in summary.slices["category"].items()}
    assert {name: (figure.value, figure.n) for name, figure in slices.items()} == {
        "big": (0.25, 400),
        "small": (0.75, 100),
    }


def test_e13_a_macro_figure_has_its_own_interval_and_one_case_has_none() -> None:
    # Macro and micro stand side by side in extraction only; intervals take the place of standard errors. Nine cases
    # of 1 field are right, one of 40 fields is wrong: macro .9 with t of 10 cases, micro 9/49 with its jackknife.
    pairs = [({"a": n}, {"a": n}) for n in range(9)]
    pairs += [({f"f{n}": 1 for n in range(40)}, {f"f{n}": 2 for n in range(40)})]
    scores = [
        Extraction().calculate(Case(id="1", expected_fields=wanted), SystemOutput(case_id="1", extracted_fields=got))
        for wanted, got in pairs
    ]
    figures = aggregate(Extraction(), scores)
    macro, micro = figures["extraction_recall"], figures["extraction_micro_recall"]
    assert isinstance(macro, Estimate)
    assert isinstance(micro, Estimate)
    assert [macro.value, micro.value] == pytest.approx([0.9, 9 / 49])
    assert None not in (macro.low, macro.high, micro.low, micro.high)
    assert (macro.low, macro.high) != (micro.low, micro.high)
    assert macro.method.startswith("mean")
    assert micro.method.startswith("pooled over cases")
    alone = aggregate(Extraction(), scores[:1])["extraction_recall"]
    assert isinstance(alone, Estimate)
    assert (alone.value, alone.low, alone.high, alone.n) == (1.0, None, None, 1)


def test_e14_a_gate_decides_on_the_unrounded_value_and_shows_enough_of_it(tmp_path: Path) -> None:
    gates = [{"metric": "keyword_groundedness", "op": ">=", "value": 0.8}]
    (gate,) = judgekit.run(keyword_suite(tmp_path, [n < 168 for n in range(211)], gates=gates)).gates
    assert not gate.passed
    assert gate.message == "keyword_groundedness >= 0.8: missed, 0.7962"  # 168/211 = 0.79621
    (near,) = check_gates((Gate(metric="x", op=">=", value=0.8),), summary_of({"x": one_figure([0.79999])}))
    assert (near.passed, near.message) == (False, "x >= 0.8: missed, 0.79999")


def test_e15_a_mean_of_equal_decimals_meets_its_own_limit(tmp_path: Path) -> None:
    assert sum([0.7, 0.7, 0.7]) / 3 < 0.7
    # Three cases with 7 of 10 fields each.
    rows = [case(f"c{n}", expected_fields={f"f{i}": i for i in range(10)}) for n in range(3)]
    outputs = [output(f"c{n}", extracted_fields={f"f{i}": i for i in range(7)}) for n in range(3)]
    gates = [{"metric": "extraction_recall", "op": ">=", "value": 0.7}]
    gates += [{"metric": "extraction_recall", "op": "<=", "value": 0.7}]
    config = write_suite(tmp_path, case_rows=rows, output_rows=outputs, judges=[], models={}, gates=gates)
    assert [gate.passed for gate in judgekit.run(config).gates] == [True, True]


def test_e17_repeats_are_refused_so_that_none_is_paired_by_chance(tmp_path: Path) -> None:
    # A run has one output a case; the mean over repeats is not a figure of ours. What must never happen, that one of
    # them is taken, does not: both lines are named.
    rows = [{"case_id": "case1", "answer": str(score)} for score in (5, 3, 4)]
    write_lines(tmp_path / "o.jsonl", rows)
    message = complaint(tmp_path / "o.jsonl", kind="outputs")
    assert message == "o.jsonl:2: $: id 'case1' is already on line 1 (the same in 1 more record, on line 3)"


def test_e20_a_case_that_was_edited_is_another_data_set(tmp_path: Path) -> None:
    # Runs carry the hash of their cases, so that nobody need believe that equal ids mean equal questions.
    with FaultServer(sequence([verdict(4, supported=["hot"])])) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=2)
        first = again(config, server, run_id="a")
        rows = [case("c0", question="How cold is kiln c0?"), case("c1")]
        write_lines(tmp_path / "cases.jsonl", rows)
        second = again(config, server, run_id="b")
        assert first.summary is not None
        assert second.summary is not None
        assert first.summary.cases["sha256"] != second.summary.cases["sha256"]
        manifest = read_json(first.folder / "manifest.json")
        (first.folder / "manifest.json").write_text(json.dumps({**manifest, "status": "interrupted"}), encoding="utf-8")
        with pytest.raises(ConfigError, match=r"resolved\.cases\.sha256 changed"):
            resume_job(str(first.folder), None, Options())


@pytest.mark.parametrize(("ties", "top"), [("trec_eval", "d3"), ("given", "d1")])
def test_e24_the_top_of_a_tied_list_is_the_same_every_time(tmp_path: Path, ties: str, top: str) -> None:
    path = written(tmp_path, "x.run", "".join(f"q Q0 d{n} {n} 1.0 r\n" for n in (1, 2, 3)))
    tops = {outputs_of(path, ties=ties)[0].retrieved[0].chunk_id for _ in range(100)}
    assert tops == {top}
