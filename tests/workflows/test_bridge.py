"""The change between two runs judged by different judges, split into system and judge."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.testing import FaultServer, Reply, Request, error_reply, verdict
from judgekit.workflows.bridge import bridge
from judgekit.workflows.models import Options
from tests.builders import case, output, read_json, write_suite
from tests.workflows.stored_suites import asked, by_model, carried_out, models

GROUNDED = [{"name": "groundedness", "model": "m"}]
OTHER = [{"name": "groundedness", "model": "other"}]


def scoring(better: int, worse: int) -> Callable[[Request], Reply]:
    """A judge that gives one score to answers that say "precisely" and another to the rest."""

    def reply(request: Request) -> Reply:
        score = better if "precisely" in request.text else worse
        return verdict(score, supported=["a"] * score, unsupported=["b"] * (5 - score))

    return reply


@pytest.fixture
def server() -> Iterator[FaultServer]:
    # J gives 2 to the old answers and 3 to the new ones, J' 4 and 5
    with FaultServer(by_model({"m-": scoring(3, 2), "other": scoring(5, 4)})) as running:
        yield running


def a_run(folder: Path, server: FaultServer, run_id: str, word: str = "", **suite: Any) -> Path:
    """A run of six cases whose answers may carry a word."""
    text = f"Kiln is fired {word} at 1240 degrees."
    rows = [output(f"c{number}", answer=text) for number in range(6)]
    document = {"models": models(server, "m", "other"), "judges": GROUNDED, "output_rows": rows, **suite}
    judgekit.run(write_suite(folder, server.base_url, **document), run_id=run_id)
    return folder / "results" / run_id


def bridged(old: Path, new: Path) -> dict[str, Any]:
    return bridge(str(old), str(new), Options(), carried_out)[1]


def values(figure: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(figure[part]["value"] for part in ("total", "system", "judge"))


def test_system_and_judge_make_up_the_total(tmp_path: Path, server: FaultServer) -> None:
    old = a_run(tmp_path, server, "old")
    new = a_run(tmp_path, server, "new", "precisely", judges=OTHER)
    n_asked = asked(server)

    found = bridged(old, new)

    # J(old) = 2, J'(old) = 4, J'(new) = 5: total 3 = system 1 + judge 2, and six calls for J'(old)
    assert asked(server) - n_asked == 6
    figure = found["judges"]["groundedness"]["figures"]["groundedness"]
    assert values(figure) == (3, 1, 2)
    assert (figure["old"], figure["old_by_new_judge"], figure["new"], figure["n"]) == (2, 4, 5, 6)
    # pass from 4 on: 0, 1, 1
    assert values(found["judges"]["groundedness"]["figures"]["groundedness_pass_rate"]) == (1, 0, 1)
    assert figure["system"]["low"] is None  # six equal differences say nothing about their spread
    assert figure["judge"]["p"] == 0.0312  # 2 of 2^6 sign patterns: 1/32 = 0.03125, rounded half to even
    assert found["judges"]["groundedness"]["same_judge"] is False
    assert read_json(new / "bridge.json") == found
    child = read_json(old.parent / found["old_by_new_judge"] / "manifest.json")
    assert (child["kind"], child["parent"]) == ("rejudge", "old")


def test_the_rejudge_is_made_once(tmp_path: Path, server: FaultServer) -> None:
    old = a_run(tmp_path, server, "old")
    new = a_run(tmp_path, server, "new", "precisely", judges=OTHER)
    first = bridged(old, new)
    n_asked = asked(server)
    assert bridged(old, new) == first
    assert asked(server) == n_asked


def test_where_the_judge_is_the_same_its_part_is_0_and_nothing_is_asked(tmp_path: Path, server: FaultServer) -> None:
    old = a_run(tmp_path, server, "old")
    new = a_run(tmp_path, server, "new", "precisely")
    n_asked = asked(server)
    found = bridged(old, new)
    assert asked(server) == n_asked
    assert found["old_by_new_judge"] is None
    figure = found["judges"]["groundedness"]["figures"]["groundedness"]
    assert values(figure) == (1, 1, 0)
    assert figure["judge"]["by_construction"] is True


def test_of_two_judges_only_the_one_that_differs_is_asked(tmp_path: Path, server: FaultServer) -> None:
    both = [*GROUNDED, {"name": "correctness", "model": "m"}]
    old = a_run(tmp_path, server, "old", judges=both)
    new = a_run(tmp_path, server, "new", "precisely", judges=[*GROUNDED, {"name": "correctness", "model": "other"}])
    n_asked = asked(server)
    found = bridged(old, new)
    assert asked(server) - n_asked == 6
    assert [item["same_judge"] for item in found["judges"].values()] == [True, False]
    assert values(found["judges"]["correctness"]["figures"]["correctness"]) == (3, 1, 2)


def test_judges_and_cases_of_one_run_only_are_named(tmp_path: Path, server: FaultServer) -> None:
    old = a_run(tmp_path, server, "old", judges=[*GROUNDED, {"name": "correctness", "model": "m"}])
    rows = [case(f"c{number}", category="kilns") for number in range(2, 8)]
    new = a_run(
        tmp_path,
        server,
        "new",
        judges=OTHER,
        case_rows=rows,
        output_rows=[output(f"c{number}") for number in range(2, 8)],
    )
    found = bridged(old, new)
    assert found["judges_only_in_old"] == ["correctness"]
    assert (found["only_in_old"], found["only_in_new"]) == (["c0", "c1"], ["c6", "c7"])
    assert (found["n_shared_cases"], found["n_changed_cases"]) == (4, 4)
    assert found["judges"]["groundedness"]["figures"]["groundedness"]["n"] == 4


def test_another_wording_of_the_same_version_name_is_another_judge(tmp_path: Path, server: FaultServer) -> None:
    from tests.workflows.stored_suites import own_wording

    own_wording(tmp_path, "groundedness", "mine", lambda text: text)
    wording = [{"name": "groundedness", "model": "m", "prompt_version": "mine"}]
    old = a_run(tmp_path, server, "old", prompts_dir="prompts", judges=wording)
    own_wording(tmp_path, "groundedness", "mine", lambda text: text.replace("You ", "Today you ", 1))
    new = a_run(tmp_path, server, "new", prompts_dir="prompts", judges=wording)
    found = bridged(old, new)
    item = found["judges"]["groundedness"]
    assert item["same_judge"] is False
    assert item["old"]["prompt_sha256"] != item["new"]["prompt_sha256"]
    child = read_json(old.parent / found["old_by_new_judge"] / "prompts.json")
    assert "Today you" in json.dumps(child)


def test_a_model_of_the_same_name_and_another_setting_is_asked_under_a_name_of_its_own(
    tmp_path: Path, server: FaultServer
) -> None:
    old = a_run(tmp_path, server, "old")
    seeded = models(server, "m")
    seeded["m"]["seed"] = 7
    new = a_run(tmp_path, server, "new", models=seeded)
    found = bridged(old, new)
    config = read_json(old.parent / found["old_by_new_judge"] / "config.json")
    assert config["judges"][0]["model"] == "m@new"
    assert config["models"]["m@new"]["seed"] == 7
    assert config["models"]["m"]["seed"] == 0


def test_a_case_without_a_verdict_of_the_new_judge_is_left_out_and_counted(tmp_path: Path) -> None:
    def other(request: Request) -> Reply:
        fails = "precisely" not in request.text and "Kiln c1" in request.text
        return error_reply(400, "no") if fails else scoring(5, 4)(request)

    with FaultServer(by_model({"m-": scoring(3, 2), "other": other})) as server:
        old = a_run(tmp_path, server, "old")
        new = a_run(tmp_path, server, "new", "precisely", judges=OTHER)
        found = bridged(old, new)
    figure = found["judges"]["groundedness"]["figures"]["groundedness"]
    assert (figure["n"], figure["n_left_out"]) == (5, 1)
    assert values(figure) == (3, 1, 2)


def test_a_rejudge_that_stopped_goes_on(tmp_path: Path) -> None:
    state = {"refuses": False, "n": 0}

    def other(request: Request) -> Reply:
        state["n"] += 1
        return error_reply(401, "no") if state["refuses"] and state["n"] > 2 else scoring(5, 4)(request)

    with FaultServer(by_model({"m-": scoring(3, 2), "other": other})) as server:
        old = a_run(tmp_path, server, "old")
        new = a_run(tmp_path, server, "new", "precisely", judges=OTHER)
        state.update(refuses=True, n=0)
        with pytest.raises(ProviderError):
            bridged(old, new)
        state["refuses"] = False
        assert values(bridged(old, new)["judges"]["groundedness"]["figures"]["groundedness"]) == (3, 1, 2)


def test_a_new_judge_that_moved_since_would_be_a_third_one(tmp_path: Path, server: FaultServer) -> None:
    old = a_run(tmp_path, server, "old")
    new = a_run(tmp_path, server, "new", judges=OTHER)
    manifest = read_json(new / "manifest.json")
    manifest["models"]["other"]["build_hash"] = "sha256:gone"
    (new / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ProviderError, match="sha256:gone"):
        bridged(old, new)


@pytest.mark.usefixtures("runs_without_hashes")
def test_what_cannot_be_bridged_is_refused(tmp_path: Path, server: FaultServer) -> None:
    old = a_run(tmp_path, server, "old")
    other = a_run(tmp_path, server, "new", judges=[{"name": "correctness", "model": "m"}])
    with pytest.raises(ConfigError, match=r"share no judge \(groundedness; correctness\)"):
        bridged(old, other)
    with pytest.raises(ConfigError, match="is both runs; name two"):
        bridged(old, old)
    (other / "scores.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"has no scores\.jsonl"):
        bridged(old, other)


def test_a_bridge_is_a_part_of_what_is_known_of_the_judge(tmp_path: Path, server: FaultServer) -> None:
    old = a_run(tmp_path, server, "old")
    new = a_run(tmp_path, server, "new", "precisely", judges=OTHER)
    found = bridged(old, new)["judges"]["groundedness"]
    part = read_json(new / "metrics.json")["judge_reliability"]["by_judge"]["groundedness"]["bridge"]
    assert part["old"] == "old"
    assert part["figures"] == found["figures"]
    assert values(part["figures"]["groundedness"]) == (3, 1, 2)
