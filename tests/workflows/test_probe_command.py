"""Probes of judges at a scripted server: what is asked, what is kept, and what is said."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.analysis.input_changes import PROBES, instruction
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.core.verdict_kinds import Scale
from judgekit.engine.passes import Observer
from judgekit.reports.probe_report import probe_lines
from judgekit.testing import FaultServer, Reply, Request, error_reply, reset, verdict
from judgekit.workflows.models import Options
from judgekit.workflows.probe import ProbesWanted, probe
from tests.builders import read_json, read_lines
from tests.workflows.stored_suites import asked, by_model, first_run, models

GROUNDED = [{"name": "groundedness", "model": "m"}]
ORDER = instruction(Scale())


def probed(run: Path, **wanted: Any) -> dict[str, Any]:
    return probe(str(run), ProbesWanted(**wanted), Options(), Observer())[1]


def judged_by(reply: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
    return by_model({"m-": reply, "other": reply})


def obedient(request: Request) -> Reply:
    """Gives 3, and 5 once it is told so in the answer; a blank answer gets 0."""
    answer = request.text.partition("The answer to judge:")[2]
    if ORDER in answer:
        return verdict(5, supported=["hot"])
    return verdict(3, supported=["hot"]) if "1240" in answer or "fired" in answer else verdict(0, unsupported=["x"])


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(judged_by(obedient)) as running:
        yield running


def test_a_judge_that_obeys_its_text_fails_and_one_that_does_not_passes(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED, n_cases=20)
    n_before = asked(server)

    found = probed(run)["groundedness"]

    effects = found["probes"]
    assert list(effects) == list(PROBES)
    assert effects["injection_answer"]["success"] == {"value": 1.0, "low": 0.8389, "high": 1.0, "k": 20, "n": 20}
    assert effects["injection_answer"]["effect"] == 2.0
    assert effects["injection_answer"]["verdict"] == "failed"
    assert effects["injection_passage"]["verdict"] == "passed"
    assert effects["blank_answer"]["verdict"] == "passed"
    assert effects["unchanged"]["changed"]["k"] == 0
    # one passage each, so nothing to shuffle
    assert effects["passages_shuffled"]["not_applicable"] == {"fewer than two passages": 20}
    assert effects["passages_shuffled"]["verdict"] == "not measured"
    # seven probes of twenty cases each, none of them from the cache
    assert asked(server) - n_before >= 7 * 20
    assert found["cost"]["n_calls"] == 7 * 20
    assert "not the same as repeatable" in found["originals_note"]


def test_what_was_asked_and_answered_is_kept_apart_from_the_run(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED, n_cases=6)
    kept = {name: (run / name).read_bytes() for name in ("judgments.jsonl", "scores.jsonl", "judge_inputs.jsonl")}
    before = read_json(run / "metrics.json")

    found = probed(run, probes=("rubric_reversed", "injection_answer"), n=4)

    assert {name: (run / name).read_bytes() for name in kept} == kept
    judgments = read_lines(run / "probes.jsonl")
    assert {(item["role"], item["check"]) for item in judgments} == {
        ("probe", "1/rubric_reversed"),
        ("probe", "1/injection_answer"),
    }
    inputs = read_lines(run / "probe_inputs.jsonl")
    assert len(inputs) == len(judgments) == 8
    assert all((ORDER in item["variables"]["answer"]) == (item["check"] == "1/injection_answer") for item in inputs)
    [one] = read_json(run / "probes.json")["sets"]
    assert one["complete"]
    assert one["found"] == found["groundedness"]
    wording = one["wordings"]["rubric_reversed"]
    assert wording["system"].index("   0: ") < wording["system"].index("   5: ")
    sent = [entry.body["messages"][0]["content"] for entry in server.log.chat if entry.body]
    assert sum(text == wording["system"].strip("\n") or text == wording["system"] for text in sent) >= 4
    metrics = read_json(run / "metrics.json")
    assert metrics["judge_reliability"]["by_judge"]["groundedness"]["probes"] == found["groundedness"]
    assert {key for key in metrics if metrics[key] != before[key]} == {"judge_reliability"}
    assert "## Probes" in (run / "summary.md").read_text()


def test_a_stopped_set_goes_on_and_a_complete_one_begins_anew(tmp_path: Path) -> None:
    broken = {"on": False}

    def reply(request: Request) -> Reply:
        if broken["on"] and ORDER in request.text:
            return error_reply(401, "key withdrawn")
        return obedient(request)

    with FaultServer(judged_by(reply)) as server:
        run = first_run(tmp_path, server, judges=GROUNDED, n_cases=6)
        broken["on"] = True
        with pytest.raises(ProviderError):
            probed(run, probes=("unchanged", "injection_answer"))
        assert not read_json(run / "probes.json")["sets"][0]["complete"]
        n_kept = len(read_lines(run / "probes.jsonl"))
        broken["on"] = False
        n_before = asked(server)
        probed(run, probes=("unchanged", "injection_answer"))
        assert asked(server) - n_before <= 12 - n_kept + 1  # and one call that finds out what the model takes
        probed(run, probes=("unchanged", "injection_answer"))
    sets = read_json(run / "probes.json")["sets"]
    assert [(item["set"], item["complete"]) for item in sets] == [("1", True), ("2", True)]
    assert len(read_lines(run / "probe_inputs.jsonl")) == 24
    assert {item["from_cache"] for item in read_lines(run / "probes.jsonl")} == {False}


def test_calls_that_got_no_reply_are_asked_again_and_nothing_else(tmp_path: Path) -> None:
    lost = {"on": True}

    def reply(request: Request) -> Reply:
        if lost["on"] and ORDER in request.text and "kiln c0 " not in request.text.lower():
            return reset()
        return obedient(request)

    with FaultServer(judged_by(reply)) as server:
        model = {**models(server, "m")["m"], "max_attempts": 1}
        run = first_run(tmp_path, server, judges=GROUNDED, n_cases=4, models={"m": model})
        wanted: dict[str, Any] = {"probes": ("rubric_reversed", "injection_answer")}
        found = probed(run, **wanted)["groundedness"]
        assert found["n_unanswered"] == 3
        assert "calls without a reply: 3; the same command asks them again" in "\n".join(probe_lines({"g": found}))
        lost["on"] = False
        n_before = asked(server)
        found = probed(run, **wanted)["groundedness"]
        assert (found["set"], found["n_unanswered"], found["probes"]["injection_answer"]["n"]) == ("1", 0, 4)
        assert asked(server) - n_before <= 3 + 1  # and one call that finds out what the model takes
        assert probed(run, **wanted)["groundedness"]["set"] == "2"


def test_another_model_is_asked_for_its_originals_too(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED, n_cases=4)
    found = probed(run, model="other", probes=("blank_answer",))["groundedness"]
    assert (found["model_id"], found["originals"]) == ("other", "asked")
    assert {item["check"] for item in read_lines(run / "probes.jsonl")} == {"1/original", "1/blank_answer"}
    assert found["probes"]["blank_answer"]["effect"] == -3.0


def test_failures_are_counted_on_both_sides(tmp_path: Path) -> None:
    def reply(request: Request) -> Reply:
        if "kiln c0 " in request.text.lower() or (ORDER in request.text and "kiln c1 " in request.text.lower()):
            return Reply(body=json.dumps({"choices": [{"message": {"content": "no"}, "finish_reason": "stop"}]}))
        return obedient(request)

    with FaultServer(judged_by(reply)) as server:
        run = first_run(tmp_path, server, judges=GROUNDED, n_cases=5)
        found = probed(run, probes=("injection_answer",))["groundedness"]["probes"]["injection_answer"]
    assert (found["n"], found["n_failed_original"], found["n_failed_probe"]) == (3, 1, 2)


def test_cached_replies_are_used_only_where_that_is_asked_for(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED, n_cases=4)
    probed(run, probes=("unchanged",))
    probed(run, probes=("unchanged",), from_cache=True)
    lines = read_lines(run / "probes.jsonl")
    assert [item["from_cache"] for item in lines] == [False] * 4 + [True] * 4


@pytest.mark.slow
def test_the_example_is_probed_offline(tmp_path: Path) -> None:
    judgekit.run("quickstart", results_dir=tmp_path, run_id="q")
    found = probed(tmp_path / "q")
    words = {
        judge: {name: item["verdict"] for name, item in report["probes"].items()} for judge, report in found.items()
    }
    assert words["groundedness"]["blank_answer"] == words["correctness"]["blank_answer"] == "passed"
    # the word counter takes filler for claims without support
    assert words["groundedness"]["answer_padded"] == "failed"
    assert found["correctness"]["probes"]["wrong_fact_context"]["effect"] < 0
    assert found["correctness"]["cost"]["n_calls"] == 0


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"probes": ("padded",)}, "--probes: no probe 'padded'"),
        ({"judge": "correctness"}, "no judge 'correctness'"),
        ({"model": "nobody"}, "no model 'nobody'"),
    ],
)
def test_what_cannot_be_probed_is_said_before_any_call(
    tmp_path: Path, server: FaultServer, wanted: dict[str, Any], message: str
) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED, n_cases=3)
    n_before = asked(server)
    with pytest.raises(ConfigError) as raised:
        probed(run, **wanted)
    assert message in str(raised.value)
    assert asked(server) == n_before
    assert not (run / "probes.json").exists()
