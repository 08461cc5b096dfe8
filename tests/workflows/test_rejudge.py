"""Judging stored runs again: what is copied, what is asked, and what is said of the difference."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import ConfigError, ProviderError
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.testing import FaultServer, error_reply, plausible_verdict, verdict
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run as run_workflow
from tests.builders import read_json, read_lines
from tests.workflows.stored_suites import asked, by_model, check, first_run, own_wording, rejudge, verdicts

STORED = ("cases.jsonl", "outputs.jsonl", "judge_inputs.jsonl")


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def same_files(first: Path, second: Path, *names: str) -> bool:
    return all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


def test_with_nothing_changed_there_is_no_call_and_verdicts_and_scores_are_the_same_to_the_byte(
    tmp_path: Path, server: FaultServer
) -> None:
    run = first_run(tmp_path, server)
    n_asked = asked(server)

    summary = rejudge(run, "b")

    again = run.parent / "b"
    assert asked(server) == n_asked
    assert same_files(run, again, *STORED, "scores.jsonl")
    lines = [read_lines(folder / "judgments.jsonl") for folder in (run, again)]
    texts = [
        {(item["judge"], item["case_id"]): json.dumps(item["verdict"]) for item in judgments} for judgments in lines
    ]
    assert texts[0] == texts[1]
    assert len(lines[1]) == 12
    assert {item["n_requests"] for item in lines[1]} == {0}
    assert summary.cost["n_calls"] == 0
    assert summary.rejudged is not None
    assert (summary.rejudged["changed"], summary.rejudged["n"]) == (0, 12)


def test_a_rejudge_of_a_rejudge_is_the_same_again(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server)
    rejudge(run, "b", model="other")
    n_asked = asked(server)

    rejudge(run.parent / "b", "c")

    assert asked(server) == n_asked
    assert same_files(run.parent / "b", run.parent / "c", *STORED, "scores.jsonl")
    assert verdicts(run.parent / "b") == verdicts(run.parent / "c")
    assert read_json(run.parent / "c" / "manifest.json")["parent"] == "b"


def test_the_run_folder_alone_is_enough(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path / "suite", server)
    moved = tmp_path / "elsewhere" / "a"
    shutil.copytree(run, moved)
    shutil.rmtree(tmp_path / "suite")

    rejudge(moved, "b")

    assert verdicts(moved.parent / "b") == verdicts(moved)
    assert same_files(moved, moved.parent / "b", *STORED, "scores.jsonl")


def test_another_model_is_asked_and_the_manifest_names_the_parent(tmp_path: Path) -> None:
    # groundedness: 12 verdicts in all, the other model says 5 throughout
    script = by_model({"other": lambda _: verdict(5, supported=["hot"])})
    with FaultServer(script) as server:
        run = first_run(tmp_path, server)
        summary = rejudge(run, "b", model="other")

    manifest = read_json(run.parent / "b" / "manifest.json")
    assert (manifest["kind"], manifest["parent"], manifest["rejudged"]) == (
        "rejudge",
        "a",
        ["groundedness", "correctness"],
    )
    old = [item["score"] for item in verdicts(run).values()]
    assert {item["score"] for item in verdicts(run.parent / "b").values()} == {5}
    assert summary.rejudged is not None
    assert summary.rejudged["changed"] == sum(score != 5 for score in old)
    assert summary.rejudged["mean_signed_difference"] == pytest.approx(5 - sum(old) / 12)
    stored = read_json(run.parent / "b" / "metrics.json")["rejudged"]
    assert stored["parent"] == "a"
    assert [len(stored["by_judge"][name]["cases"]) for name in ("groundedness", "correctness")] == [
        stored["by_judge"][name]["changed"] for name in ("groundedness", "correctness")
    ]
    assert f"verdicts changed against a: {summary.rejudged['changed']} of 12" in (
        run.parent / "b" / "summary.md"
    ).read_text(encoding="utf-8")


def test_judges_that_are_not_named_keep_their_judgments_at_no_cost(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server)
    n_asked = asked(server)

    summary = rejudge(run, "b", model="other", judges=("correctness",))

    again = run.parent / "b"
    assert asked(server) == n_asked + 6 + 1  # and one for what the other model takes
    assert verdicts(again, "groundedness") == verdicts(run, "groundedness")
    copied = [item for item in read_lines(again / "judgments.jsonl") if item["judge"] == "groundedness"]
    assert {(item["copied_from"], item["n_requests"], item.get("usage")) for item in copied} == {("a", 0, None)}
    assert summary.cost["n_calls"] == 6
    assert summary.judges["groundedness"]["n_judged"] == 6
    assert summary.judges["groundedness"]["model_id"] == "m"
    assert summary.overall["groundedness"].value is not None  # type: ignore[union-attr]
    assert list((summary.rejudged or {})["by_judge"]) == ["correctness"]


def test_a_new_wording_is_run_on_old_inputs(tmp_path: Path, server: FaultServer) -> None:
    own_wording(tmp_path, "groundedness", "v2", lambda text: text.replace("You ", "Today you ", 1))
    run = first_run(tmp_path, server, prompts_dir="prompts")

    rejudge(run, "b", judges=("groundedness",), prompt_version="v2")

    prompts = {(item["judge"], item["prompt_version"]) for item in read_lines(run.parent / "b" / "judgments.jsonl")}
    assert prompts == {("groundedness", "v2"), ("correctness", "v1")}
    assert same_files(run, run.parent / "b", *STORED)
    kept = read_json(run.parent / "b" / "prompts.json")
    assert {"groundedness/v1", "groundedness/v2", "correctness/v1"} <= kept.keys()


def test_the_kept_wording_is_sent_as_it_was_down_to_the_order_of_its_schema(
    tmp_path: Path, server: FaultServer
) -> None:
    run = first_run(tmp_path, server)
    n_asked = asked(server)
    rejudge(run, "b", use_cache=False)
    bodies = [
        json.dumps(entry.body["messages"]) for entry in server.log.chat if '"ready"' not in json.dumps(entry.body)
    ]
    assert len(bodies) == 24
    assert sorted(bodies[: n_asked - 1]) == sorted(bodies[n_asked - 1 :])


def test_a_wording_that_was_edited_since_is_asked_as_the_run_kept_it(tmp_path: Path, server: FaultServer) -> None:
    own_wording(tmp_path, "groundedness", "v1", lambda text: text.replace("You ", "Before you ", 1))
    run = first_run(tmp_path, server, judges=[{"name": "groundedness", "model": "m"}], prompts_dir="prompts")
    own_wording(tmp_path, "groundedness", "v1", lambda text: text.replace("You ", "Afterwards you ", 1))
    n_asked = asked(server)

    rejudge(run, "b", use_cache=False)
    check(run, against="repeat")

    systems = [
        entry.body["messages"][0]["content"]
        for entry in server.log.chat[n_asked:]
        if '"ready"' not in json.dumps(entry.body)
    ]
    assert len(systems) == 12  # six of the rejudge, six of the spot check
    assert all("Before you " in system for system in systems)


def test_a_wording_that_names_what_the_inputs_lack_is_refused_before_any_call(
    tmp_path: Path, server: FaultServer
) -> None:
    own_wording(tmp_path, "groundedness", "v2", lambda text: text.replace("{{ answer ", "{{ mood ", 1))
    run = first_run(tmp_path, server, prompts_dir="prompts")
    n_asked = asked(server)

    with pytest.raises(ConfigError, match=r"'mood' is undefined; stored inputs of groundedness have answer, citations"):
        rejudge(run, "b", judges=("groundedness",), prompt_version="v2")

    assert asked(server) == n_asked
    assert not (run.parent / "b").exists()


def test_models_and_wordings_of_another_config_can_be_asked(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server)
    folder = tmp_path / "new"
    own_wording(folder, "groundedness", "mine", lambda text: text)
    config = json.loads((tmp_path / "config.json").read_text())
    config["models"]["third"] = {**config["models"]["m"], "model": "third-2026-01-01"}
    config["prompts_dir"] = "prompts"
    (folder / "config.json").write_text(json.dumps(config))

    rejudge(
        run, "b", judges=("groundedness",), model="third", prompt_version="mine", config_path=folder / "config.json"
    )

    found = {
        (item["model"], item["prompt_version"])
        for item in read_lines(run.parent / "b" / "judgments.jsonl")
        if item["judge"] == "groundedness"
    }
    assert found == {("third-2026-01-01", "mine")}


def test_another_config_may_not_change_a_model_that_stays_in_use(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server)
    config = json.loads((tmp_path / "config.json").read_text())
    config["models"]["m"]["model"] = "moved-2026-01-01"
    (tmp_path / "new.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"models\.m differs from the run's, which correctness was asked of"):
        rejudge(run, "b", judges=("groundedness",), config_path=tmp_path / "new.json")


@pytest.mark.parametrize(
    ("again", "message"),
    [
        ({"judges": ("grounded",)}, "this run has no judge 'grounded'; did you mean 'groundedness'"),
        ({"model": "none"}, "--model 'none': there are m, other; add others by --config"),
        ({"prompt_version": "v9"}, "no prompt version 'v9'"),
    ],
)
def test_what_the_run_does_not_have_is_named(
    tmp_path: Path, server: FaultServer, again: dict[str, Any], message: str
) -> None:
    run = first_run(tmp_path, server)
    with pytest.raises(ConfigError) as raised:
        rejudge(run, "b", **again)
    assert message in str(raised.value)
    assert sorted(path.parent.name for path in run.parent.glob("*/manifest.json")) == ["a"]


@pytest.mark.usefixtures("runs_without_hashes")
@pytest.mark.parametrize("name", STORED)
def test_a_run_that_did_not_keep_what_is_judged_is_refused(tmp_path: Path, server: FaultServer, name: str) -> None:
    run = first_run(tmp_path, server)
    (run / name).unlink()
    with pytest.raises(ConfigError, match=f"holds no {name}, so nothing can be judged again"):
        rejudge(run, "b")


def test_a_rejudge_that_stopped_goes_on_and_asks_only_what_is_missing(tmp_path: Path) -> None:
    state = {"refuses": False, "n": 0}

    def other(request: Any) -> Any:
        state["n"] += 1
        return error_reply(401, "no such key") if state["refuses"] and state["n"] > 4 else plausible_verdict(request)

    with FaultServer(by_model({"other": other})) as server:
        run = first_run(tmp_path, server)
        state["refuses"] = True
        with pytest.raises(ProviderError):
            rejudge(run, "b", model="other", judges=("correctness",))
        stopped = read_json(run.parent / "b" / "manifest.json")
        n_judged = len(verdicts(run.parent / "b", "correctness"))
        state["refuses"] = False
        n_asked = asked(server)
        job = resume_job(str(run.parent / "b"), None, Options())
        summary = run_local(lambda: run_workflow(job, Observer()))
        assert asked(server) - n_asked == 6 - n_judged

    assert stopped["status"] == "interrupted"
    assert n_judged < 6
    assert summary.status == "complete"
    assert summary.rejudged is not None
    assert summary.rejudged["n"] == 6
    assert verdicts(run.parent / "b", "groundedness") == verdicts(run, "groundedness")
    assert len(read_lines(run.parent / "b" / "judgments.jsonl")) == 12
    with pytest.raises(ConfigError, match="complete; there is nothing to resume"):
        resume_job(str(run.parent / "b"), None, Options())


def test_a_resumed_rejudge_needs_its_parent(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server)
    rejudge(run, "b")
    manifest = read_json(run.parent / "b" / "manifest.json")
    (run.parent / "b" / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    shutil.rmtree(run)
    with pytest.raises(ConfigError, match="its parent a is gone"):
        resume_job(str(run.parent / "b"), None, Options())


def test_cases_that_were_not_put_before_a_judge_keep_their_reason(tmp_path: Path, server: FaultServer) -> None:
    outputs = [
        {"case_id": "c0", "answer": "Kiln c0 is hot.", "retrieved": [{"chunk_id": "k", "text": "Kiln c0 is hot."}]},
        {"case_id": "c1", "abstained": True, "answer": "I do not know."},
        {"case_id": "c2", "error": {"kind": "timeout", "message": "late"}},
    ]
    run = first_run(tmp_path, server, n_cases=3, output_rows=outputs)
    rejudge(run, "b", model="other")
    reasons = [
        {
            (item["case_id"], item["name"]): item["reason"]
            for item in read_lines(folder / "scores.jsonl")
            if item["reason"]
        }
        for folder in (run, run.parent / "b")
    ]
    assert reasons[0] == reasons[1]
    assert any(reason.startswith("failed") for reason in reasons[1].values())


# spot checks of the parent


def test_second_opinions_of_the_parent_are_carried_over_while_they_are_second_opinions(
    tmp_path: Path, server: FaultServer
) -> None:
    run = first_run(tmp_path, server, spot_check={"n": 4, "model": "other"})
    n_asked = asked(server)

    same = rejudge(run, "same")
    assert asked(server) == n_asked
    assert same.judge_reliability is not None
    assert same.judge_reliability["spot_check_n"] == 8
    assert same.judge_reliability == {**same.judge_reliability, "disagreement_rate": rate_of(run)}

    # judged by the second model, its own opinions are no longer second ones
    other = rejudge(run, "other", model="other")
    assert other.judge_reliability is None
    half = rejudge(run, "half", model="other", judges=("correctness",))
    assert half.judge_reliability is not None
    assert list(half.judge_reliability["by_judge"]) == ["groundedness"]


def rate_of(run: Path) -> float:
    """The stored rate is rounded to four decimals; with 8 pairs that loses nothing."""
    rate: float = read_json(run / "metrics.json")["judge_reliability"]["disagreement_rate"]
    return rate


def test_gates_of_the_config_are_held_against_the_new_verdicts(tmp_path: Path) -> None:
    gates = [{"metric": "groundedness", "op": ">=", "value": 4}]
    good, bad = verdict(5, supported=["hot"]), verdict(0, unsupported=["cold"])
    script = by_model({"other": lambda _: bad, "m-": lambda _: good})
    with FaultServer(script) as server:
        run = first_run(tmp_path, server, gates=gates)
        summary = rejudge(run, "b", model="other")
    assert read_json(run / "metrics.json")["gates"][0]["passed"] is True
    assert [gate.passed for gate in summary.gates] == [False]
