"""Comparisons that pass what they should stop: real failures, each as a run of the product."""

import json
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judgekit
from judgekit.cli.app import app
from judgekit.testing import FaultServer, Reply, chat_reply, verdict
from tests.builders import REPOSITORY, case, output, read_json, read_lines, write_lines, write_suite
from tests.workflows.engine import is_capability_call

Scores = Mapping[str, int | str | None]
"""Score of the judge by case; `timeout`: the system failed; `no text`: its hits have no text; None: no verdict."""


class Bench:
    """Runs whose verdicts are given, into one folder of results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"

    def run(self, run_id: str, scores: Scores, *, judge: str = "correctness", **suite: Any) -> Path:
        """A run of one judge that answers with these scores."""
        labels: dict[str, Any] = {"reference_answers": ["1240 degrees"]} if judge == "correctness" else {}
        rows = suite.pop("case_rows", None) or [case(name, **labels) for name in scores]
        outs = suite.pop("output_rows", None) or [self._output(name, score) for name, score in scores.items()]

        def reply(request: Any) -> Reply:
            if is_capability_call(request.body):
                return chat_reply('{"ready": true}')
            (name,) = {name for name in scores if f"Kiln {name} is" in request.text}
            score = scores[name]
            unsupported = [] if score == 5 else ["b"]
            return (
                chat_reply("no verdict") if score is None else verdict(score, supported=["a"], unsupported=unsupported)
            )

        with FaultServer(reply) as server:
            judges = [{"name": judge, "model": "m"}]
            config = write_suite(
                self.folder / f"suite-{run_id}", server.base_url, case_rows=rows, output_rows=outs, judges=judges,
                **suite,
            )  # fmt: skip
            judgekit.run(config, run_id=run_id, results_dir=self.results, use_cache=False)
        return self.results / run_id

    @staticmethod
    def _output(name: str, score: int | str | None) -> dict[str, Any]:
        if score == "timeout":
            return {"case_id": name, "error": {"kind": "timeout"}}
        if score == "no text":
            return {**output(name), "retrieved": [{"chunk_id": "k1"}]}
        return output(name)

    def compare(self, *words: str) -> "Said":
        return self.cli("compare", *words, "--stats", "--results-dir", str(self.results))

    @staticmethod
    def cli(*words: str) -> "Said":
        result = CliRunner().invoke(app, list(words))
        return Said(result.exit_code, result.stdout, result.stderr)

    def document(self, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.compare(*words, "--format", "json").out)
        return found


class Said:
    """What a command said."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# What was reported: correctness of q1 to q3 went from 4, 2, 5 to 1, 5, 5, and nothing was seen of it.
BEFORE: Scores = {"q1": 4, "q2": 2, "q3": 5}
AFTER: Scores = {"q1": 1, "q2": 5, "q3": 5}


def kinds(document: Mapping[str, Any], name: str) -> dict[str, str]:
    """Kind of each case by its id."""
    return {row["query_id"]: row["scores"][name]["kind"] for row in document["per_query"] if name in row["scores"]}


def test_t2_46_verdicts_that_flip_are_seen_in_every_form_and_stop_the_gate(bench: Bench, tmp_path: Path) -> None:
    bench.run("a", BEFORE)
    bench.run("b", AFTER)

    document = bench.document("a", "b")
    assert kinds(document, "correctness") == {"q1": "regression", "q2": "mended", "q3": "draw"}
    assert document["kinds"]["correctness"] == {"regression": 1, "loss": 0, "mended": 1, "win": 0, "draw": 1}
    assert document["per_query"][0]["query_id"] == "q1"
    assert document["per_query"][0]["scores"]["correctness"] == {"a": 4.0, "b": 1.0, "kind": "regression"}

    table = bench.compare("a", "b").out
    assert re.search(r"score +regression +loss +mended +win +draw\n +correctness +1 +0 +1 +0 +1\n", table)
    assert "q1: regression of correctness (4, then 1)" in table
    assert "3 cases in both: 1 with a regression, 0 with another loss, 1 with gains alone; first" in table
    markdown = bench.compare("a", "b", "--format", "md").out
    assert "| `correctness` | 1 | 0 | 1 | 0 | 1 |" in markdown
    assert "Cases: 1 with a regression, 0 with another loss, 1 with gains alone." in markdown
    page = bench.compare("a", "b", "--format", "html").out
    assert '<th scope="row"><code>correctness</code></th><td class="num">1</td>' in page
    assert page.index("<bdi>q1</bdi>") < page.index("<bdi>q2</bdi>") < page.index("<bdi>q3</bdi>")

    stopped = bench.compare("a", "b", "--fail-on", "regression")
    assert (stopped.code, stopped.err) == (1, "--fail-on regression: q1; correctness 1\n")


@pytest.mark.parametrize(
    ("before", "after", "kind", "code"),
    [
        pytest.param(5, 4, "loss", 0, id="T2-46-worse-and-still-passes"),
        pytest.param(1, 3, "win", 0, id="T2-46-better-and-still-fails"),
        pytest.param(2, 1, "loss", 0, id="T2-46-worse-among-those-that-fail"),
        pytest.param(4, 3, "regression", 1, id="T2-46-over-the-line-by-one"),
        pytest.param(5, "timeout", "regression", 1, id="T2-46-passed-and-the-system-failed"),
        pytest.param(5, None, "regression", 1, id="T2-46-passed-and-the-judge-failed"),
        pytest.param(2, "timeout", "loss", 1, id="T2-46-failed-anyway-but-an-error-is-a-regression-of-error-rate"),
        pytest.param(2, None, "loss", 0, id="T2-46-no-pass-is-lost-with-the-verdict"),
        pytest.param(None, 5, None, 0, id="T2-46-no-gain-is-told-where-a-has-no-verdict"),
    ],
)
def test_t2_46_kinds_of_a_verdict(
    bench: Bench, before: int | None, after: int | str | None, kind: str | None, code: int
) -> None:
    bench.run("a", {"q1": before, "q2": 5})
    bench.run("b", {"q1": after, "q2": 5})
    assert kinds(bench.document("a", "b"), "correctness").get("q1") == kind
    assert bench.compare("a", "b", "--fail-on", "regression").code == code


def test_t2_46_an_abstention_counts_by_what_the_case_wants(bench: Bench) -> None:
    rows = [case("q1", answerable=False), case("q2", answerable=True)]
    abstains = [output("q1", abstained=True), output("q2", abstained=True)]
    answers = [output("q1", abstained=False), output("q2", abstained=False)]
    judges: dict[str, Any] = {"judges": [], "case_rows": rows, "metrics": ["abstention"]}
    for run_id, outs in (("a", answers), ("b", abstains)):
        config = write_suite(bench.folder / run_id, output_rows=outs, models={}, **judges)
        judgekit.run(config, run_id=run_id, results_dir=bench.results)
    document = bench.document("a", "b")
    assert kinds(document, "hallucination_rate_unanswerable") == {"q1": "mended"}
    assert kinds(document, "over_abstention_rate") == {"q2": "regression"}


def test_t2_46_nothing_to_compare_passes_no_gate(bench: Bench) -> None:
    rows = [case("q1"), case("q2")]
    for run_id in ("a", "b"):
        config = write_suite(
            bench.folder / run_id,
            case_rows=rows,
            output_rows=[output("q1"), output("q2")],
            judges=[],
            models={},
            metrics=[],
        )
        judgekit.run(config, run_id=run_id, results_dir=bench.results)
    said = bench.compare("a", "b", "--fail-on", "regression")
    assert said.code == 1
    assert "regression: nothing to compare, no case has an expected hit or a score in both runs" in said.err


def test_t2_46_a_score_that_never_applied_stops_no_gate_where_the_old_run_failed(bench: Bench) -> None:
    # q1 failed in a, in citation_coverage too, though neither run has citations
    bench.run("a", {"q1": "timeout", "q2": 5})
    bench.run("b", {"q1": 5, "q2": 5})
    passed = bench.compare("a", "b", "--fail-on", "regression")
    assert (passed.code, passed.err) == (0, "")


def test_t2_46_a_judge_that_was_dropped_passes_no_gate(bench: Bench) -> None:
    bench.run("a", {"q1": 5, "q2": 5})
    config = write_suite(
        bench.folder / "b", judges=[], models={},
        case_rows=read_lines(bench.folder / "suite-a" / "cases.jsonl"), output_rows=[output("q1"), output("q2")],
    )  # fmt: skip
    judgekit.run(config, run_id="b", results_dir=bench.results)
    said = bench.compare("a", "b", "--fail-on", "regression")
    assert (said.code, said.err) == (
        1,
        "--fail-on regression: b has no correctness, so nothing of it can be compared\n",
    )


@pytest.mark.slow
@pytest.mark.parametrize("figure", ["groundedness<-0.1", "recall_any@5<-0.02"])
def test_t2_46_the_command_of_the_document_stops_a_groundedness_that_fell_by_half_a_point(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, figure: str
) -> None:
    # 30 cases at 5; 4 go to 2 and 1 to 3: (4 * 3 + 2) / 30 = 0.467 lost on average
    before: dict[str, int] = {f"n{number:02}": 5 for number in range(30)}
    after = before | {"n03": 2, "n07": 2, "n11": 2, "n19": 2, "n23": 3}
    bench.run("baseline-run", before, judge="groundedness")
    bench.run("new-run", after, judge="groundedness")
    assert bench.cli("runs", "tag", "baseline-run", "main", "--results-dir", str(bench.results)).code == 0

    text = (REPOSITORY / "docs" / "compare.md").read_text(encoding="utf-8")
    section = text[text.index("## In CI") :]
    command = re.findall(r"```bash\n(.*?)\n```", section, re.DOTALL)[0].replace("NEW_RUN", "new-run")
    assert "groundedness<-0.1" in command
    command = command.replace("groundedness<-0.1", figure)  # the second: a figure that no case has a value of
    monkeypatch.chdir(bench.folder)
    said = bench.cli(*shlex.split(command)[1:], "--stats")

    assert said.code == 1, said.out + said.err
    delta = bench.document("baseline-run", "new-run")["deltas"]["groundedness"]
    assert delta["delta"] == -0.4667
    worst = said.out[said.out.index("worst cases first") :].splitlines()[1:6]
    assert [line.split(":")[0].strip() for line in worst] == ["n03", "n07", "n11", "n19", "n23"]
    assert worst[0].strip() == "n03: regression of groundedness (5, then 2)"
    assert worst[4].strip() == "n23: regression of groundedness (5, then 3)"


def test_t2_08_the_newest_run_with_a_tag_is_not_the_candidate_itself(bench: Bench) -> None:
    bench.run("one", {"q1": 5, "q2": 5}, judge="groundedness")
    bench.run("two", {"q1": 1, "q2": 5}, judge="groundedness")
    for run_id in ("one", "two"):
        bench.cli("runs", "tag", run_id, "main", "--results-dir", str(bench.results))
    said = bench.compare("two", "--baseline", "latest:main", "--fail-on", "groundedness<-0.02")
    assert (said.code, said.out.splitlines()[2:4]) == (1, ["a: one", "b: two"])
    assert bench.document("latest", "latest")["run_a"] == "one"


@pytest.mark.usefixtures("runs_without_hashes")
@pytest.mark.parametrize("baseline", ["latest:main", "latest", "latest:suite", "only", "copied", "renamed", "again"])
def test_t2_08_a_run_against_itself_passes_no_gate(bench: Bench, baseline: str) -> None:
    folder = bench.run("only", {"q1": 5, "q2": 5}, judge="groundedness")
    bench.cli("runs", "tag", "only", "main", "--results-dir", str(bench.results))
    if baseline in ("copied", "renamed"):
        copy = bench.results / baseline
        shutil.copytree(folder, copy)
        if baseline == "renamed":
            manifest = read_json(copy / "manifest.json") | {"run_id": "renamed"}
            (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    if baseline == "again":
        # A rejudge of no judge that changes anything: its verdicts are those of its parent.
        lines = read_lines(folder / "judgments.jsonl")
        shutil.copytree(folder, bench.results / "again")
        manifest = read_json(folder / "manifest.json") | {
            "run_id": "again", "kind": "rejudge", "parent": "only", "finished_at": "2026-01-01T00:00:00+00:00",
        }  # fmt: skip
        (bench.results / "again" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        copied = [line | {"copied_from": "only"} for line in lines]
        write_lines(bench.results / "again" / "judgments.jsonl", copied)
    said = bench.compare("only", "--baseline", baseline, "--fail-on", "groundedness<-0.02")
    assert (said.code, said.out) == (2, "")
    assert re.search("candidate|a and b are|copy of|so nothing is compared", said.err), said.err
    if not baseline.startswith("latest"):
        assert "[same_run]" in bench.compare("only", "--baseline", baseline).out


def test_t2_08_two_runs_of_an_unchanged_system_are_two_runs(bench: Bench) -> None:
    for run_id in ("one", "two"):
        bench.run(run_id, {"q1": 5, "q2": 5}, judge="groundedness")
    said = bench.compare("one", "two", "--fail-on", "regression", "--fail-on", "groundedness<-0.02")
    assert (said.code, said.err) == (0, "")
    assert "same_run" not in said.out


FIELDS = {"total": 12, "date": "2026-01-02"}


@pytest.mark.parametrize("condition", ["extraction_micro_f1<-0.1", "total_true_positives<-3", "extraction_f1<-0.1"])
def test_attack_02_right_cases_that_become_time_outs_do_not_pass(bench: Bench, condition: str) -> None:
    rows = [case(f"q{number}", expected_fields=FIELDS) for number in range(6)]
    right = [output(f"q{number}", extracted_fields=FIELDS if number < 4 else {"total": 1}) for number in range(6)]
    failed = [
        {"case_id": f"q{number}", "error": {"kind": "timeout"}} if number < 4 else right[number] for number in range(6)
    ]
    for run_id, outs in (("a", right), ("b", failed)):
        config = write_suite(
            bench.folder / run_id, case_rows=rows, output_rows=outs, judges=[], models={}, metrics=["extraction"]
        )
        judgekit.run(config, run_id=run_id, results_dir=bench.results)
    said = bench.compare("a", "b", "--fail-on", condition)
    assert said.code == 1
    if condition != "extraction_f1<-0.1":  # a mean has a worst value, sums have none
        assert (
            "4 cases with a value in a failed in b, and nothing says what they would make of the difference" in said.err
        )


def test_attack_02_latencies_of_failed_cases_have_no_bound(bench: Bench) -> None:
    timed = [output(f"q{number}", latency_seconds={"total": 1.0}) for number in range(4)]
    failed = [{"case_id": "q0", "error": {"kind": "timeout"}}, *timed[1:]]
    for run_id, outs in (("a", timed), ("b", failed)):
        config = write_suite(
            bench.folder / run_id, case_rows=[case(f"q{number}") for number in range(4)], output_rows=outs
        )
        judgekit.run(config, run_id=run_id, results_dir=bench.results)
    assert (
        "1 case with a value in a failed in b" in bench.compare("a", "b", "--fail-on", "latency.total.p95_ms>200").err
    )


def test_attack_bad_cases_without_text_raise_the_mean_and_coverage_says_so(bench: Bench) -> None:
    before: dict[str, int | str] = {f"q{number}": 1 if number < 3 else 5 for number in range(12)}
    after = before | {"q0": "no text", "q1": "no text", "q2": "no text"}
    gates = [{"metric": "groundedness.coverage", "op": ">=", "value": 0.9}]
    bench.run("a", before, judge="groundedness", gates=gates)
    folder = bench.run("b", after, judge="groundedness", gates=gates)

    metrics = read_json(folder / "metrics.json")
    assert metrics["overall"]["groundedness"]["value"] == 5.0  # from 4.0
    assert metrics["overall"]["groundedness"]["n_no_input"] == 3
    assert metrics["gates"][0]["message"] == "groundedness.coverage >= 0.9: missed, 0.7500 (9 of 12 cases)"
    warnings = {notice["code"]: notice["message"] for notice in metrics["warnings"]}
    assert warnings["coverage_differs"].startswith(
        "judge groundedness has a verdict on 9 of 12 cases, and on 12 in a, the baseline"
    )

    delta = bench.document("a", "b")["deltas"]["groundedness.coverage"]
    assert (delta["a"], delta["b"], delta["delta"], delta["n"]) == (1.0, 0.75, -0.25, 12)
    said = bench.compare("a", "b", "--fail-on", "groundedness<-0.02", "--fail-on", "groundedness.coverage<-0.02")
    assert said.code == 1
    assert "groundedness.coverage 1.0000 to 0.7500, difference -0.2500" in said.err
    assert "groundedness: 12 of 12 cases have a verdict in a, and 9 in b" in said.out
    assert kinds(bench.document("a", "b"), "groundedness")["q0"] == "loss"


def test_the_baseline_of_coverage_is_the_tagged_run_and_else_the_newest_of_the_same_data(bench: Bench) -> None:
    full: dict[str, int | str] = {f"q{number}": 5 for number in range(6)}
    half = full | {"q0": "no text", "q1": "no text"}
    bench.run("full", full, judge="groundedness")
    bench.run("half", half, judge="groundedness")
    assert "coverage_differs" not in codes(bench.run("still", half, judge="groundedness"))
    bench.cli("runs", "tag", "full", "baseline", "--results-dir", str(bench.results))
    assert "coverage_differs" in codes(bench.run("again", half, judge="groundedness"))
    assert "coverage_differs" not in codes(bench.run("other-data", {"q0": "no text", "q1": 5}, judge="groundedness"))


def test_cases_that_the_candidate_has_not_are_warned_of(bench: Bench) -> None:
    config = write_suite(bench.folder / "suite", n_cases=5)
    judgekit.run(config, run_id="a", results_dir=bench.results)
    judgekit.run(config, run_id="b", results_dir=bench.results, limit=2)
    assert (
        "warning: 3 of the 5 cases of a are not in b, so every figure and gate is about the other 2 [cases_missing]"
    ) in bench.compare("a", "b").out


def codes(folder: Path) -> set[str]:
    return {notice["code"] for notice in read_json(folder / "metrics.json")["warnings"]}


def retrieving(bench: Bench, run_id: str, hits: list[dict[str, Any]], version: str | None, **fields: Any) -> None:
    """A run of three cases without a judge, each with two expected chunks of 100 characters."""
    spans = {f"k{place}": [{"doc_id": "d", "start": 100 * place, "end": 100 * place + 100}] for place in (0, 1)}
    labels = {"expected_chunk_ids": ["k0", "k1"], "expected_doc_ids": ["d"], "expected_spans": spans, **fields}
    versions = {} if version is None else {"versions": {"chunker_version": version}}
    config = write_suite(
        bench.folder / run_id, judges=[], models={}, case_rows=[case(f"q{number}", **labels) for number in range(3)],
        output_rows=[output(f"q{number}", retrieved=hits, **versions) for number in range(3)],
    )  # fmt: skip
    judgekit.run(config, run_id=run_id, results_dir=bench.results)


def at(start: int, end: int, chunk_id: str) -> dict[str, Any]:
    return {"chunk_id": chunk_id, "doc_id": "d", "source_spans": [{"start": start, "end": end}]}


COARSE = [at(0, 100, "k0"), at(100, 200, "k1")]
FINE = [at(start, start + 25, f"f{start}") for start in range(0, 200, 25)]


def test_across_chunkers_a_finer_one_is_no_regression_and_figures_by_chunk_id_are_left_out(bench: Bench) -> None:
    retrieving(bench, "a", COARSE, "coarse")
    retrieving(bench, "b", FINE, "fine")
    document = bench.document("a", "b")
    assert document["deltas"]["chunker_version_match"] == "fallback_doc_span"
    assert not {"hit@5", "mrr_chunk", "chunk_recall"} & document["deltas"].keys()
    # k0 is half found by two chunks of 25: rank 2 in place of 1
    assert [(row["a_hit_rank"], row["b_hit_rank"], row["kind"]) for row in document["per_query"]] == [
        (1, 2, "loss")
    ] * 3
    spans = {
        name: document["deltas"][name]["delta"] for name in ("hit_span@1", "hit_span@5", "mrr_span", "span_recall")
    }
    assert spans == {"hit_span@1": -1.0, "hit_span@5": 0.0, "mrr_span": -0.5, "span_recall": 0.0}
    assert "hit@5" not in document["kinds"]
    assert document["kinds"]["hit_span@5"]["draw"] == 3

    refused = bench.compare("a", "b", "--fail-on", "hit@5<-0.02")
    assert refused.code == 2
    assert "hit@5 goes by chunk id, and the runs have different chunkers, so it is not compared" in refused.err
    assert "hit_span@5" in refused.err
    assert bench.compare("a", "b", "--fail-on", "hit_span@5<-0.02").code == 0
    for form in ("table", "md", "html"):
        assert "fallback_doc_span" in bench.compare("a", "b", "--format", form).out


@pytest.mark.parametrize("versions", [("one", None), (None, None), (None, "one")])
def test_a_chunker_that_is_not_known_is_unknown_and_strictly_refused(
    bench: Bench, versions: tuple[str | None, str | None]
) -> None:
    for run_id, version in zip("ab", versions, strict=True):
        retrieving(bench, run_id, COARSE, version)
    document = bench.document("a", "b")
    assert document["deltas"]["chunker_version_match"] == "unknown"
    assert document["deltas"]["hit@5"]["delta"] == 0.0
    assert "chunker_unknown" in {notice["code"] for notice in document["notices"]}
    for form in ("table", "md", "html"):
        assert "unknown" in bench.compare("a", "b", "--format", form).out
    strict = bench.compare("a", "b", "--strict-chunker-version")
    assert strict.code == 2
    assert "chunker_version is not known" in strict.err


@pytest.mark.parametrize("has_ids", [False, True])
def test_without_expected_chunks_nothing_is_warned_of_chunkers(bench: Bench, has_ids: bool) -> None:
    rows = [output("c0")] if has_ids else [output("c0", retrieved=[{"doc_id": "d", "text": "Kiln c0 is hot."}])]
    for run_id in ("a", "b"):
        config = write_suite(bench.folder / run_id, n_cases=1, output_rows=rows)
        judgekit.run(config, run_id=run_id, results_dir=bench.results)
    assert bench.document("a", "b")["notices"] == []
    assert "no case expects a chunk, so no chunk ids are compared [unknown]" in bench.compare("a", "b").out


def test_a_chunk_that_is_lost_shows_with_its_own_ranks(bench: Bench) -> None:
    retrieving(bench, "a", COARSE, "one")
    retrieving(bench, "b", COARSE[:1], "one")
    table = bench.compare("a", "b").out
    assert "  q0: loss of chunk k1 (rank 2, then not found)" in table
    assert "rank 1, then rank 1" not in table
    assert "loss of chunk k1 (rank 2, then not found)" in bench.compare("a", "b", "--format", "md").out
    assert "loss of chunk k1 (rank 2, then not found)" in bench.compare("a", "b", "--format", "html").out


@pytest.mark.slow
def test_latency_tokens_cost_and_indexing_are_compared_and_can_be_gated(bench: Bench) -> None:
    for run_id, seconds in (("a", 1.0), ("b", 1.5)):
        rows = [
            output(f"c{number}", latency_seconds={"total": seconds + number / 100, "retrieval": 0.1},
                   usage={"prompt_tokens": 100, "completion_tokens": 10 if run_id == "a" else 20})
            for number in range(80)
        ]  # fmt: skip
        folder = bench.folder / run_id
        indexing = [
            {"doc_id": f"d{number}", "n_chunks": 0 if run_id == "b" and number == 0 else 2} for number in range(4)
        ]
        folder.mkdir()
        write_lines(folder / "index.jsonl", indexing)
        config = write_suite(folder, n_cases=80, output_rows=rows, indexing="index.jsonl")
        judgekit.run(config, run_id=run_id, results_dir=bench.results)
    deltas = bench.document("a", "b")["deltas"]
    # medians of 1.00 .. 1.79 and 1.50 .. 2.29 s: 1.395 and 1.895; each case is slower by the same, so there is no width
    p50 = deltas["latency.total.p50_ms"]
    assert (p50["a"], p50["b"], p50["delta"], p50["n"]) == (1395.0, 1895.0, 500.0, 80)
    assert (p50["low"], p50["high"]) == (pytest.approx(500.0), pytest.approx(500.0))
    # 1000 + 10 * 0.95 * 79
    assert deltas["latency.total.p95_ms"]["a"] == 1750.5
    assert deltas["latency.retrieval.p95_ms"]["delta"] == 0.0
    assert deltas["usage.completion_tokens"]["delta"] == 10.0
    assert deltas["cost.usd"]["delta"] == 0.0
    assert deltas["indexing_coverage.no_chunks_rate"]["delta"] == 0.25
    for form in ("table", "md", "html"):
        text = bench.compare("a", "b", "--format", form).out
        assert "latency.total.p95_ms" in text
        assert "indexing_coverage.no_chunks_rate" in text
    for condition in ("latency.total.p95_ms>200", "usage.completion_tokens>5", "indexing_coverage.no_chunks_rate>0.1"):
        assert bench.compare("a", "b", "--fail-on", condition).code == 1
    assert bench.compare("a", "b", "--fail-on", "cost.usd>0.01").code == 0


def test_a_cost_that_is_not_known_does_not_pass(bench: Bench) -> None:
    bench.run("a", {"q1": 5}, judge="groundedness")
    bench.run("b", {"q1": 5}, judge="groundedness")
    said = bench.compare("a", "b", "--fail-on", "cost.usd>0.01")
    assert (said.code, said.err) == (1, "--fail-on cost.usd>0.01: cost.usd has no value in either run\n")
