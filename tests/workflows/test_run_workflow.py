"""`run` from the config to the run folder, with the embedded judge and against a server on this machine."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError, InputError, ProviderError
from judgekit.core.prompts import unfence
from judgekit.core.runs import RunSummary
from judgekit.core.scores import SUM_METHOD
from judgekit.storage.prompt_files import load_prompt
from judgekit.storage.run_list import list_runs
from judgekit.testing import FaultServer, Reply, chat_reply, error_reply, reset, sequence, verdict
from judgekit.workflows.selectors import select_run
from tests.builders import REPOSITORY, case, output, read_json, read_lines, write_suite
from tests.doubles.changes import alias_move
from tests.doubles.strict import requires


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def run_folder(config: Path) -> Path:
    """The only run of a suite."""
    (folder,) = (path.parent for path in (config.parent / "results").glob("*/manifest.json"))
    return folder


def test_the_quickstart_fills_every_part_of_the_run_folder(tmp_path: Path) -> None:
    summary = judgekit.run("quickstart", results_dir=tmp_path, run_id="q").summary

    folder = tmp_path / "q"
    files = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert files == {
        "config.json",
        "cases.jsonl",
        "checks.json",
        "prompts.json",
        "manifest.json",
        "outputs.jsonl",
        "judge_inputs.jsonl",
        "judgments.jsonl",
        "scores.jsonl",
        "metrics.json",
        "summary.md",
        "eval-results.json",
        "report.html",
    }
    metrics = read_json(folder / "metrics.json")
    assert metrics["status"] == summary.status == "complete"
    assert metrics["cases"]["n"] == 40
    for name in ("recall_any@5", "recall_all@5", "hit@3", "keyword_groundedness", "abstention_accuracy", "correctness"):
        assert metrics["overall"][name]["value"] is not None
    for dimension in ("category", "difficulty", "tags", "vaults", "answerable"):
        assert len(metrics["slices"][dimension]) >= 2
    assert metrics["judge_reliability"]["spot_check_n"] == 40
    assert 0 < metrics["judge_reliability"]["disagreement_rate"] < 1
    assert metrics["latency"]["retrieval"]["p95_ms"] > metrics["latency"]["retrieval"]["p50_ms"] > 0
    assert metrics["operational"]["timeout_rate"]["value"] == 0.025  # one of 40
    assert metrics["judges"]["groundedness"]["note"] == "overlap baseline, not an LLM"


def test_every_metric_family_has_numbers_in_the_quickstart(tmp_path: Path) -> None:
    summary = judgekit.run("quickstart", results_dir=tmp_path, run_id="q").summary
    estimates = {**summary.overall, **summary.operational}
    empty = [name for name, figure in estimates.items() if isinstance(figure, judgekit.Estimate) and not figure.n]
    assert empty == ["groundedness.quote_real_rate"], "prompt v1 asks for no quotes"
    # Nobody is served by an example in which all is well: each of these families has something to find.
    shown = {name: estimates[name].value for name in ("span_recall", "span_iou", "extraction_f1", "chunk_f1")}
    assert all(0 < value < 1 for value in shown.values()), shown
    counts = summary.overall["first_missing_support.distribution"]
    assert isinstance(counts, dict)
    assert sum(counts.values()) > 5
    assert summary.operational["risk_coverage"]["aurc"].n > 25
    assert summary.indexing_coverage is not None
    assert 0 < summary.indexing_coverage["no_chunks_rate"] < 1
    assert 0 < summary.indexing_coverage["chunks_skipped_context_rate"] < 1
    assert [notice.code for notice in summary.warnings] == ["judge_unstable"]


def test_every_figure_accounts_for_every_case(tmp_path: Path) -> None:
    judgekit.run("quickstart", results_dir=tmp_path, run_id="q")

    metrics = read_json(tmp_path / "q" / "metrics.json")
    for name, figure in metrics["overall"].items():
        if name.endswith(".distribution"):
            base = metrics["overall"].get(name.removesuffix(".distribution"))
            if base is not None:
                assert sum(figure.values()) == base["n"]
            continue
        assert figure["n"] + figure["n_not_applicable"] + figure["n_error"] == 40, name
        # What failed cases would add to a sum has no bound.
        has_bounds = figure["n_error"] > 0 and figure["method"] != SUM_METHOD
        assert (figure["worst"] is not None) == has_bounds, name
        if figure["low"] is not None:
            assert figure["low"] <= figure["value"] <= figure["high"], name


@pytest.mark.slow
def test_two_runs_of_one_config_differ_in_nothing_but_name_and_time(tmp_path: Path) -> None:
    for run_id in ("a", "b"):
        judgekit.run("quickstart", results_dir=tmp_path, run_id=run_id)

    first, second = (read_json(tmp_path / run_id / "metrics.json") for run_id in ("a", "b"))
    for metrics in (first, second):
        del metrics["run_id"], metrics["created_at"], metrics["operational"]["wall_seconds"]
    assert first == second
    for name in ("scores.jsonl", "outputs.jsonl", "judge_inputs.jsonl", "config.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.slow
def test_the_quickstart_pointed_at_a_server_judges_all_cases_with_pinned_model_and_prompt(
    tmp_path: Path, server: FaultServer
) -> None:
    config = read_json(REPOSITORY / "configs" / "quickstart.json")
    model = {"provider": "openai_compatible", "model": "judge-2025-01-01", "base_url": server.base_url}
    config["models"] = {"baseline": model, "baseline-strict": {**model, "model": "second-2025-02-02"}}
    config["system"]["path"] = str(REPOSITORY / "configs" / "quickstart" / "outputs.jsonl")
    config["cases"] = str(REPOSITORY / "configs" / "quickstart" / "cases.jsonl")
    config["indexing"] = str(REPOSITORY / "configs" / "quickstart" / "indexing.jsonl")
    path = tmp_path / "config.json"
    path.write_text(__import__("json").dumps(config))

    summary = judgekit.run(path, results_dir=tmp_path / "results", run_id="r").summary

    inputs = read_lines(tmp_path / "results" / "r" / "judge_inputs.jsonl")
    judged = {name: record["n_judged"] for name, record in summary.judges.items()}
    assert judged == {name: sum(item["judge"] == name for item in inputs) for name in ("groundedness", "correctness")}
    probes = 2
    assert server.log.totals.n_requests == len(inputs) + 40 + probes
    prompts = {name: load_prompt(name, "v1") for name in ("groundedness", "correctness")}
    wordings = {prompt.system.strip() for prompt in prompts.values()}
    for request in server.log.chat:
        assert request.body is not None
        assert request.body["temperature"] == 0
        assert request.body["seed"] == 0
        assert request.body["model"] in ("judge-2025-01-01", "second-2025-02-02")
        system = request.body["messages"][0]["content"]
        if request.body["max_tokens"] > 16:  # not a probe
            assert system.strip() in wordings
            assert dict(unfence(request.body["messages"][1]["content"]))["answer"]
    stored = read_json(tmp_path / "results" / "r" / "config.json")["resolved"]["prompts"]
    assert stored == {f"{name}/v1": prompt.sha256 for name, prompt in prompts.items()}


def test_cached_replies_answer_a_second_run_without_a_call(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url)
    judgekit.run(config, run_id="a")
    n_requests = server.log.totals.n_requests

    summary = judgekit.run(config, run_id="b").summary

    assert server.log.totals.n_requests == n_requests
    assert summary.cost["n_from_cache"] == 6
    assert summary.cost["n_calls"] == 0
    verdicts = [
        {item["case_id"]: item["verdict"] for item in read_lines(tmp_path / "results" / run_id / "judgments.jsonl")}
        for run_id in ("a", "b")
    ]
    assert verdicts[0] == verdicts[1]


def test_a_spot_check_is_never_answered_from_the_cache(tmp_path: Path, server: FaultServer) -> None:
    spot_check = {"n": 4, "model": "second"}
    models = {
        name: {"model": f"{name}-2025-01-01", "base_url": server.base_url, "max_concurrency": 2}
        for name in ("m", "second")
    }
    config = write_suite(tmp_path, server.base_url, models=models, spot_check=spot_check, seed=0)
    judgekit.run(config, run_id="a")
    n_requests = server.log.totals.n_requests

    judgekit.run(config, run_id="b")

    assert server.log.totals.n_requests == n_requests + 4
    samples = [
        [
            row["case_id"]
            for row in read_json(tmp_path / "results" / run_id / "metrics.json")["judge_reliability"]["by_judge"][
                "groundedness"
            ]["sample"]
        ]
        for run_id in ("a", "b")
    ]
    assert samples[0] == samples[1]
    assert len(samples[0]) == 4


def test_a_reply_that_cannot_be_read_is_asked_once_more_and_then_recorded_as_a_failure(tmp_path: Path) -> None:
    def script(request: Any) -> Any:
        return (
            chat_reply("I would say four out of five.")
            if "kiln c1 " in request.text.lower()
            else verdict(4, supported=["hot"])
        )

    with FaultServer(script) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=3)
        summary = judgekit.run(config).summary

    judgments = {item["case_id"]: item for item in read_lines(run_folder(config) / "judgments.jsonl")}
    assert judgments["c1"]["verdict"] is None
    assert judgments["c1"]["failure"]["kind"] == "invalid"
    assert judgments["c1"]["raw_reply"] == "I would say four out of five."
    assert len(judgments["c1"]["earlier_attempts"]) == 1
    assert judgments["c1"]["n_requests"] == 2
    figure = summary.overall["groundedness"]
    assert isinstance(figure, judgekit.Estimate)
    # Two verdicts of 4; the third could have been 0 or 5: (4 + 4 + 0) / 3 and (4 + 4 + 5) / 3.
    assert (figure.value, figure.n, figure.n_error) == (4.0, 2, 1)
    assert figure.worst == pytest.approx(8 / 3)
    assert figure.best == pytest.approx(13 / 3)


def test_equal_questions_in_one_run_make_one_call(tmp_path: Path, server: FaultServer) -> None:
    same = [output(f"c{number}", answer="Same.", retrieved=[{"text": "Same."}]) for number in range(6)]
    config = write_suite(tmp_path, server.base_url, output_rows=same)

    summary = judgekit.run(config).summary

    assert server.log.totals.n_requests == 2  # the probe and one question
    assert summary.judges["groundedness"]["n_judged"] == 6


@pytest.mark.parametrize(
    ("reply", "needle"),
    [
        (error_reply(401, "Incorrect API key provided: sk-abcdefghijkl"), "the key is missing or wrong"),
        (error_reply(404, "The model `x` does not exist"), "no such model or address"),
        (error_reply(429, "You exceeded your current quota", code="insufficient_quota"), "quota used up"),
    ],
)
def test_a_refusal_for_good_stops_after_one_request_and_shows_no_key(tmp_path: Path, reply: Any, needle: str) -> None:
    with FaultServer(reply) as server:
        config = write_suite(tmp_path, server.base_url)
        with pytest.raises(ProviderError, match=needle) as caught:
            judgekit.run(config)
        assert server.log.totals.n_requests == 1

    assert "sk-abc" not in str(caught.value)
    manifest = read_json(run_folder(config) / "manifest.json")
    assert manifest["status"] == "interrupted"
    assert "sk-abc" not in str(manifest)


def test_a_server_that_is_down_is_one_error_and_the_run_can_be_resumed(tmp_path: Path) -> None:
    config = write_suite(tmp_path, "http://127.0.0.1:9/v1")
    with pytest.raises(ProviderError, match=r"cannot reach http://127\.0\.0\.1:9/v1: Connection refused$"):
        judgekit.run(config)
    assert read_json(run_folder(config) / "manifest.json")["status"] == "interrupted"
    assert read_lines(run_folder(config) / "judge_inputs.jsonl")


def test_a_model_that_moves_during_the_run_stops_it_and_its_reply_is_not_kept(tmp_path: Path) -> None:
    script = alias_move("judge-2025-01-01", "judge-2025-09-09", 4)
    with FaultServer(script) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=12, model={"max_concurrency": 1})
        with pytest.raises(ProviderError, match="judge-2025-09-09, expected judge-2025-01-01"):
            judgekit.run(config)

    judgments = read_lines(run_folder(config) / "judgments.jsonl")
    assert 1 <= len(judgments) < 12
    assert {item["served_model"] for item in judgments} == {"judge-2025-01-01"}


def test_a_moved_model_is_flagged_and_not_cached_where_the_pin_says_so(tmp_path: Path) -> None:
    script = alias_move("judge-2025-01-01", "judge-2025-09-09", 4)
    pin = {"on_mismatch": "flag"}
    with FaultServer(script) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=12, model={"max_concurrency": 1, "pin": pin})
        summary = judgekit.run(config, run_id="a").summary
        n_requests = server.log.totals.n_requests
        judgekit.run(config, run_id="b")
        n_again = server.log.totals.n_requests - n_requests

    assert "pin_mismatch" in {notice.code for notice in summary.warnings}
    flagged = summary.judges["groundedness"]["flags"]["pin_mismatch"]
    assert flagged > 0
    assert n_again == flagged


def test_a_build_hash_holds_a_local_server_to_its_model(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url, model={"pin": {"build_hash": "sha256:other"}})
    with pytest.raises(ProviderError, match="pinned is sha256:other"):
        judgekit.run(config)
    assert server.log.totals.n_requests <= 1


@pytest.mark.usefixtures("quick_waits")
def test_a_server_that_is_still_loading_its_model_is_asked_again_what_it_has_loaded(tmp_path: Path) -> None:
    with FaultServer() as server:
        config = write_suite(tmp_path, server.base_url)
        judgekit.run(config, run_id="a")
        build = read_json(tmp_path / "results" / "a" / "manifest.json")["models"]["m"]["build_hash"]
        write_suite(tmp_path, server.base_url, model={"pin": {"build_hash": build}})
        server.info.n_loading = 3
        judgekit.run(config, run_id="b")
    assert read_json(tmp_path / "results" / "b" / "manifest.json")["models"]["m"]["build_hash"] == build


@pytest.mark.usefixtures("quick_waits")
def test_a_run_does_not_begin_before_the_server_says_what_it_has_loaded(tmp_path: Path, server: FaultServer) -> None:
    # Its replies would be kept under no build, and taken for those of whatever is loaded there next.
    config = write_suite(tmp_path, server.base_url)
    server.info.n_loading = 1000
    with pytest.raises(ProviderError, match="503: Loading model"):
        judgekit.run(config)


@pytest.mark.usefixtures("quick_waits")
@pytest.mark.parametrize("is_pinned", [True, False])
def test_a_server_that_comes_back_with_another_model_under_the_same_name_stops_the_run(
    tmp_path: Path, server: FaultServer, is_pinned: bool
) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=12, model={"max_concurrency": 1})
    judgekit.run(config, run_id="first", use_cache=False)
    build = read_json(tmp_path / "results" / "first" / "manifest.json")["models"]["m"]["build_hash"]
    pin = {"build_hash": build} if is_pinned else {}
    write_suite(tmp_path, server.base_url, n_cases=12, model={"max_concurrency": 1, "pin": pin})
    n_asked = 0

    def answer(_request: Any) -> Reply:
        nonlocal n_asked
        n_asked += 1
        if n_asked == 5:  # a probe and four cases went well
            server.info.model_path = "/models/another.gguf"
            server.info.n_loading = 2
            return reset()
        return verdict(4, supported=["hot"])

    server.play(answer)
    said = "pinned is" if is_pinned else "this run was begun with"
    with pytest.raises(ProviderError, match=f"{said} {build}"):
        judgekit.run(config, run_id="second", use_cache=False)
    kept = read_lines(tmp_path / "results" / "second" / "judgments.jsonl")
    assert len([item for item in kept if item["verdict"]]) in (3, 4)


@pytest.mark.usefixtures("quick_waits")
def test_a_server_that_comes_back_with_the_same_model_goes_on(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=6, model={"max_concurrency": 1})
    good = verdict(4, supported=["hot"])
    server.play([good, good, reset(), reset(), good])
    result = judgekit.run(config, use_cache=False)
    assert result.overall["groundedness"].n == 6


def test_another_build_behind_the_same_address_is_not_answered_from_the_cache(
    tmp_path: Path, server: FaultServer
) -> None:
    config = write_suite(tmp_path, server.base_url)
    judgekit.run(config, run_id="a")
    n_requests = server.log.totals.n_requests
    server.info.build_info = "b2000-another"

    judgekit.run(config, run_id="b")

    probe = 1  # another build may take other parameters
    assert server.log.totals.n_requests == n_requests + probe + 6


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        ({"json_schema": False}, {"response_format": "json_object"}),
        ({"json_schema": False, "json_object": False}, {"response_format": "text"}),
        ({"system_role": False}, {"response_format": "json_schema"}),
        ({"max_tokens_name": "max_completion_tokens"}, {"max_tokens_name": "max_completion_tokens"}),
    ],
)
def test_what_a_server_refuses_is_found_out_once_and_recorded(
    tmp_path: Path, refused: dict[str, Any], expected: dict[str, str]
) -> None:
    with FaultServer(requires(**refused)) as server:
        config = write_suite(tmp_path, server.base_url)
        summary = judgekit.run(config).summary
        n_refused = sum(request.status != 200 for request in server.log.chat)

    assert summary.judges["groundedness"]["n_judged"] == 6
    assert 1 <= n_refused <= 3
    judgment = read_lines(run_folder(config) / "judgments.jsonl")[0]
    assert expected.items() <= judgment["parameters"].items()


def test_a_model_that_refuses_temperature_0_stops_the_run_unless_allowed(tmp_path: Path) -> None:
    with FaultServer(requires(temperature=False)) as server:
        config = write_suite(tmp_path / "strict", server.base_url)
        with pytest.raises(ProviderError, match="refuses temperature 0"):
            judgekit.run(config)
        config = write_suite(tmp_path / "allowed", server.base_url, model={"allow_provider_temperature": True})
        summary = judgekit.run(config).summary

    assert summary.judges["groundedness"]["temperature_accepted"] is False
    assert "temperature_not_accepted" in {notice.code for notice in summary.warnings}
    judgment = read_lines(run_folder(config) / "judgments.jsonl")[0]
    assert judgment["temperature_accepted"] is False
    assert "temperature" not in judgment["parameters"]


def test_a_judge_without_a_single_verdict_is_no_success(tmp_path: Path) -> None:
    with FaultServer(sequence([verdict(4, supported=["hot"]), chat_reply("no idea")])) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=4)
        with pytest.raises(ProviderError, match=r"measured 0 of 4, every call failed: invalid \(4\)"):
            judgekit.run(config)
    assert read_json(run_folder(config) / "metrics.json")["overall"]["groundedness"]["value"] is None


def test_a_case_without_output_and_an_output_without_case_are_named_and_counted(tmp_path: Path) -> None:
    config = write_suite(
        tmp_path, case_rows=[case("a"), case("b"), case("c")], output_rows=[output("a"), output("b"), output("zzz")]
    )
    summary = judgekit.run(config).summary

    messages = {notice.code: notice.message for notice in summary.warnings}
    assert "'c'" in messages["cases_without_output"]
    assert "'zzz'" in messages["outputs_without_case"]
    figure = summary.overall["groundedness"]
    assert isinstance(figure, judgekit.Estimate)
    assert (figure.n, figure.n_error) == (2, 1)
    assert summary.operational["error_rate"].value == pytest.approx(1 / 3)


def test_failed_outputs_count_as_the_worst_where_the_config_says_so(tmp_path: Path) -> None:
    outputs = [output("a"), output("b", answer=None, error={"kind": "timeout"})]
    config = write_suite(tmp_path, case_rows=[case("a"), case("b")], output_rows=outputs, errors="as_zero")
    figure = judgekit.run(config).summary.overall["groundedness_pass_rate"]
    assert isinstance(figure, judgekit.Estimate)
    assert (figure.value, figure.n, figure.n_error) == (0.5, 2, 0)
    assert "errors as worst" in figure.method


def test_versions_of_outputs_must_agree(tmp_path: Path) -> None:
    outputs = [output("a", versions={"chunker_version": "1"}), output("b", versions={"chunker_version": "2"})]
    config = write_suite(tmp_path, case_rows=[case("a"), case("b")], output_rows=outputs)
    with pytest.raises(InputError, match="two versions of chunker_version: '1' and '2'"):
        judgekit.run(config)


def test_a_judge_that_applies_nowhere_is_an_error_before_any_call(tmp_path: Path, server: FaultServer) -> None:
    bare = [{"case_id": f"c{number}", "answer": "x", "retrieved": [{"chunk_id": "k"}]} for number in range(6)]
    config = write_suite(tmp_path, server.base_url, output_rows=bare)
    with pytest.raises(ConfigError, match=r"applies to none of 6 cases: no retrieved text \(6\)"):
        judgekit.run(config)
    assert server.log.totals.n_requests == 0


def test_a_budget_stops_the_run_before_it_is_exceeded(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=10, budget={"max_calls": 4})
    with pytest.raises(judgekit.core.errors.Interrupted, match="max_calls of 4 is reached"):
        judgekit.run(config)
    assert len(read_lines(run_folder(config) / "judgments.jsonl")) == 4
    metrics = read_json(run_folder(config) / "metrics.json")
    assert metrics["status"] == "interrupted"
    assert metrics["overall"]["groundedness"]["n"] == 4
    assert metrics["overall"]["groundedness"]["n_error"] == 6


def test_run_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    config = write_suite(tmp_path)

    async def notebook_cell() -> list[RunSummary]:
        return [judgekit.run(config, run_id=f"r{number}").summary for number in range(2)]

    assert [summary.status for summary in asyncio.run(notebook_cell())] == ["complete", "complete"]


def test_latest_is_the_later_of_two_runs_that_began_in_one_second(tmp_path: Path) -> None:
    config = write_suite(tmp_path, n_cases=1, report=False)
    for run_id in ("z", "a"):
        judgekit.run(config, run_id=run_id)
    assert select_run("latest", tmp_path / "results").name == "a"
    assert [run.run_id for run in list_runs(tmp_path / "results")] == ["a", "z"]
