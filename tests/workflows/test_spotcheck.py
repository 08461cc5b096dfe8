"""Second opinions on stored runs: who is asked, what is drawn, what is kept, and what is said."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.testing import FaultServer, Reply, Request, error_reply, plausible_verdict, verdict
from judgekit.workflows import comparators
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run as run_workflow
from judgekit.workflows.spotcheck import spotcheck
from tests.builders import case, read_json, read_lines, write_suite
from tests.workflows.stored_suites import asked, by_model, check, first_run, models, own_wording, verdicts

GROUNDED = [{"name": "groundedness", "model": "m"}]

GROWING = {"n": 10, "model": "other", "adaptive": True}


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def flipping(n_flips: int) -> Callable[[Request], Reply]:
    """A second model that says 0 of the first cases by number and 5 of the others, while the first says 5 of all."""

    def second(request: Request) -> Reply:
        number = next(number for number in range(400, -1, -1) if f"kiln c{number} " in request.text.lower())
        return verdict(0, unsupported=["cold"]) if number < n_flips else verdict(5, supported=["hot"])

    return by_model({"other": second, "m-": lambda _: verdict(5, supported=["hot"])})


def report_of(run: Path, judge: str = "groundedness") -> Any:
    return read_json(run / "metrics.json")["judge_reliability"]["by_judge"][judge]


# what comes out


def test_a_check_is_written_into_the_run(tmp_path: Path) -> None:
    # all 6 cases are drawn; 2 of them flip from 5 to 0, both by gap and by class
    with FaultServer(flipping(2)) as server:
        run = first_run(tmp_path, server, judges=GROUNDED)
        before = read_json(run / "metrics.json")
        check(run, against="model:other")

    metrics, report = read_json(run / "metrics.json"), report_of(run)
    assert metrics["judge_reliability"]["disagreement_rate"] == 0.3333
    assert metrics["judge_reliability"]["spot_check_n"] == 6
    assert report["against"]["kind"] == "model"
    assert report["spot_check"]["parts"] == {"gap_over_one": 2, "class_flip": 2, "both": 2, "exact_match": 4}
    # the whole run is known, so its interval has no width; Wilson for 2 of 6 is 0.0968 to 0.7000
    assert report["spot_check"]["interval_this_run"] == {"low": 0.3333, "high": 0.3333, "method": "hypergeometric 95%"}
    assert report["spot_check"]["interval_future"] == {"low": 0.0968, "high": 0.7, "method": "wilson 95%"}
    # differences -5, -5 and four times 0: of the 4 sign patterns of the two, 2 are as far out: p = 0.5
    assert report["spot_check"]["shift"] == {
        "mean": -1.6667,
        "p": 0.5,
        "method": "sign-flip permutation, two-sided, exact",
    }
    assert (report["alarm"]["status"], report["alarm"]["fired"], report["alarm"]["n_to_decide"]) == (
        "alarm",
        True,
        None,
    )
    assert [item["case_id"] for item in report["disagreements"]] == ["c0", "c1"]
    assert all(item["first_reasoning"] and item["second_reasoning"] for item in report["disagreements"])
    assert report["identity"]["judge"]["model"] == "m-2025-01-01"
    assert report["identity"]["comparator"]["model"] == "other-2025-01-01"
    assert [item["code"] for item in metrics["warnings"]].count("judge_unstable") == 1
    changed = {key for key in metrics if metrics[key] != before[key]}
    assert changed == {"judge_reliability", "warnings", "cost"}
    assert metrics["cost"]["n_calls"] == before["cost"]["n_calls"] + 6
    text = (run / "summary.md").read_text(encoding="utf-8")
    assert "## Judge reliability" in text
    assert "| groundedness | c0 | 5 | 0 |" in text


def test_a_second_opinion_is_never_taken_from_the_cache(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED)
    for _ in range(2):
        n_asked = asked(server)
        check(run, against="repeat", n=4)
        assert asked(server) - n_asked == 4
    lines = [item for item in read_lines(run / "judgments.jsonl") if item["role"] == "spot_check"]
    assert [item["check"] for item in lines] == ["1"] * 4 + ["2"] * 4
    assert {item["from_cache"] for item in lines} == {False}


def test_asking_again_gives_the_noise_floor_beside_the_check(tmp_path: Path) -> None:
    state = {"n": 0}

    def moody(_: Request) -> Reply:
        state["n"] += 1
        return verdict(5, supported=["hot"]) if state["n"] % 3 else verdict(1, unsupported=["cold"])

    with FaultServer(by_model({"m-": moody, "other": lambda _: verdict(5, supported=["hot"])})) as server:
        run = first_run(tmp_path, server, judges=GROUNDED)
        check(run, against="model:other")
        check(run, against="repeat")

    report = report_of(run)
    assert report["against"]["kind"] == "model"
    first = verdicts(run)
    again = {
        item["case_id"]: item["verdict"]["score"]
        for item in read_lines(run / "judgments.jsonl")
        if item.get("check") == "2"
    }
    n_flips = sum(first["groundedness", case_id]["score"] != score for case_id, score in again.items())
    assert report["noise_floor"]["n"] == 6
    assert report["noise_floor"]["n_flips"] == n_flips
    assert report["noise_floor"]["flip_rate"] == round(n_flips / 6, 4)


def test_asking_again_stands_for_the_check_where_there_is_no_other(
    tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparators, "prompt_versions", lambda judge, folder: {"v1"})  # every shipped judge has another
    run = first_run(tmp_path, server, judges=[{"name": "correctness", "model": "m"}], models=models(server, "m"))
    check(run)
    report = report_of(run, "correctness")
    assert report["against"]["kind"] == "repeat"
    assert report["disagreement_rate"] == 0.0
    assert report["noise_floor"]["flip_rate"] == 0.0


def test_of_several_checks_the_last_one_with_each_comparator_counts(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED, models=models(server, "m", "other", "third"))
    check(run, against="model:other", n=3)
    check(run, against="model:third", n=4)
    check(run, against="model:other", n=5)
    report = report_of(run)
    assert (report["check"], report["spot_check_n"], report["against"]["model_id"]) == ("3", 5, "other")
    assert [(item["check"], item["spot_check_n"]) for item in report["other_checks"]] == [("2", 4)]
    assert [record["check"] for record in read_json(run / "checks.json")["checks"]] == ["1", "2", "3"]


def test_an_alarm_of_an_earlier_check_is_not_hidden_by_a_later_one_against_something_else(tmp_path: Path) -> None:
    with FaultServer(flipping(3)) as server:
        run = first_run(tmp_path, server, judges=GROUNDED, models=models(server, "m", "other", "m-too"))
        check(run, against="model:other")
        check(run, against="model:m-too")
    assert report_of(run)["fired"] is False
    [warning] = [item for item in read_json(run / "metrics.json")["warnings"] if item["code"] == "judge_unstable"]
    assert "3 of 6 spot-checked verdicts disagree with other, prompt v1" in warning["message"]


# who is asked


def test_the_config_says_who_is_asked(tmp_path: Path, server: FaultServer) -> None:
    third = models(server, "m", "other", "third")
    run = first_run(tmp_path, server, judges=GROUNDED, models=third, spot_check={"n": 2, "model": "third"})
    check(run, n=3)
    report = report_of(run)
    assert (report["check"], report["spot_check_n"], report["against"]["model_id"]) == ("1", 3, "third")


def test_another_wording_comes_before_a_second_model(tmp_path: Path, server: FaultServer) -> None:
    own_wording(tmp_path, "groundedness", "zz", lambda text: text.replace("You ", "Today you ", 1))
    run = first_run(tmp_path, server, judges=GROUNDED, prompts_dir="prompts")
    check(run)
    assert (report_of(run)["against"]["kind"], report_of(run)["against"]["prompt_version"]) == ("prompt", "zz")


def test_an_embedded_judge_is_checked_by_a_second_model_since_it_reads_no_instructions(tmp_path: Path) -> None:
    own_wording(tmp_path, "groundedness", "zz", lambda text: text.replace("You ", "Today you ", 1))
    both = {name: {"provider": "lexical", "model": model} for name, model in LEXICAL.items()}
    config = write_suite(tmp_path, models=both, judges=GROUNDED, prompts_dir="prompts")
    judgekit.run(config, run_id="a")
    check(tmp_path / "results" / "a")
    assert report_of(tmp_path / "results" / "a")["against"]["model_id"] == "second"


LEXICAL = {"m": "overlap-2", "second": "overlap-strict-2"}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"judge": "grounded"}, "this run has no judge 'grounded'; did you mean 'groundedness'"),
        ({"against": "model:m"}, "was judged by this model itself; --against repeat asks it again"),
        ({"against": "prompt:v1"}, "was judged with this wording itself; --against repeat asks it again"),
        ({"against": "model:nobody"}, "no model 'nobody'"),
        ({"against": "prompt:v9"}, "no prompt version 'v9'"),
        ({"against": "somebody"}, "expected model:ID, prompt:VERSION or repeat"),
    ],
)
def test_what_cannot_be_asked_is_said_before_any_call(
    tmp_path: Path, server: FaultServer, wanted: dict[str, Any], message: str
) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED)
    n_asked = asked(server)
    with pytest.raises(ConfigError) as raised:
        check(run, **wanted)
    assert message in str(raised.value)
    assert asked(server) == n_asked
    assert not (run / "checks.json").exists()


def test_another_model_under_a_name_of_the_run_is_refused_but_not_another_address(
    tmp_path: Path, server: FaultServer
) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED)
    config = json.loads((tmp_path / "config.json").read_text())
    with FaultServer() as moved:
        for model in config["models"].values():
            model["base_url"] = moved.base_url
        (tmp_path / "moved.json").write_text(json.dumps(config))
        check(run, against="model:other", config_path=tmp_path / "moved.json")
        assert asked(moved) == 7  # six and a probe
    config["models"]["other"]["model"] = "third-2026-01-01"
    (tmp_path / "third.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"models\.other differs from the run's; give it another name"):
        check(run, against="model:other", config_path=tmp_path / "third.json")


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_run_without_stored_inputs_is_refused(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED)
    (run / "judge_inputs.jsonl").write_text("")
    with pytest.raises(ConfigError, match="holds no judge input of groundedness, so nothing can be judged again"):
        check(run)


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_run_without_figures_is_refused(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED)
    (run / "metrics.json").unlink()
    with pytest.raises(ConfigError, match=r"has no metrics\.json yet"):
        check(run)


# the sample


def test_the_same_seed_draws_the_sample_of_the_run_itself(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server, n_cases=30, seed=0, spot_check={"n": 5, "model": "other"})
    drawn = {record["judge"]: record["case_ids"] for record in read_json(run / "checks.json")["checks"]}
    check(run, against="repeat", judge="correctness")
    check(run, against="repeat", judge="correctness", seed=9)
    records = read_json(run / "checks.json")["checks"]
    assert records[2]["case_ids"] == drawn["correctness"]
    assert records[3]["case_ids"] != drawn["correctness"]
    assert (records[2]["seed"], records[3]["seed"]) == (0, 9)


def test_a_sample_larger_than_the_run_takes_all(tmp_path: Path, server: FaultServer) -> None:
    class Listener(Observer):
        def note(self, text: str) -> None:
            notes.append(text)

    notes: list[str] = []
    run = first_run(tmp_path, server, judges=GROUNDED)
    wanted = comparators.SpotCheckWanted(n=50, against="model:other")
    spotcheck(str(run), wanted, Options(), Listener())
    assert notes == ["groundedness: 50 cases wanted, the run has 6 judged ones; all of them are taken"]
    assert len(read_json(run / "checks.json")["checks"][-1]["case_ids"]) == 6


@pytest.mark.parametrize("by", ["run", "spotcheck"])
def test_intervals_are_by_cluster_where_the_config_names_one(tmp_path: Path, by: str) -> None:
    # 12 cases in threes about one document each; all three of the first document flip from 5 to 0
    rows = [case(f"c{number}", metadata={"document": f"d{number // 3}"}) for number in range(12)]
    config = {"judges": GROUNDED, "case_rows": rows, "n_cases": 12, "cluster_by": "metadata.document"}
    with FaultServer(flipping(3)) as server:
        if by == "run":
            run = first_run(tmp_path, server, spot_check={"n": 12, "model": "other"}, **config)
        else:
            run = first_run(tmp_path, server, **config)
            check(run, against="model:other")
            check(run, against="repeat")

    found, report = read_json(run / "metrics.json")["judge_reliability"], report_of(run)
    # p = 3/12; sums 3, 0, 0, 0 of 3 each: squares 2.25^2 + 3 * 0.75^2 = 6.75, v = 4/3 * 6.75 / 144 = 0.0625, four times
    # p (1 - p) / 12; n* = 12 / 4 * (1.960 / 3.182)^2 = 1.138; Wilson of 0.25 with 1.138 cases: 0.0164 to 0.8693
    by_cluster = {"low": 0.0164, "high": 0.8693, "method": "wilson 95%, design effect 4.00, 4 clusters"}
    assert found["interval"] == report["interval"] == report["spot_check"]["interval_future"] == by_cluster
    # the draw was of cases, so what it says of this run does not hang on clusters
    assert report["spot_check"]["interval_this_run"] == {"low": 0.25, "high": 0.25, "method": "hypergeometric 95%"}
    # one cluster differs at all, so both patterns of its sign are as far out
    shift = report["spot_check"]["shift"]
    assert (shift["p"], shift["method"]) == (1.0, "sign-flip permutation of clusters, two-sided, exact")
    assert report["agreement"]["method"] == "cluster jackknife 95%, 4 clusters"
    if by == "spotcheck":
        assert report["noise_floor"]["interval"]["method"] == "wilson 95% of 4 clusters, all cases equal"


def test_equal_scores_leave_agreement_undefined_and_the_rest_stands(tmp_path: Path) -> None:
    with FaultServer(flipping(0)) as server:
        run = first_run(tmp_path, server, judges=GROUNDED)
        check(run, against="model:other")
    agreement = report_of(run)["agreement"]
    assert [agreement[name]["value"] for name in ("quadratic_weighted_kappa", "gwet_ac2", "krippendorff_alpha")] == [
        None
    ] * 3
    assert "every rating is the same" in agreement["undefined_reason"]
    assert report_of(run)["disagreement_rate"] == 0.0


def test_failures_are_counted_and_stand_in_no_denominator(tmp_path: Path) -> None:
    def second(request: Request) -> Reply:
        return error_reply(400, "no") if "kiln c1 " in request.text.lower() else verdict(5, supported=["hot"])

    with FaultServer(by_model({"other": second, "m-": lambda _: verdict(5, supported=["hot"])})) as server:
        run = first_run(tmp_path, server, judges=GROUNDED)
        check(run, against="model:other")
    sample = report_of(run)["spot_check"]
    assert (sample["n_asked"], sample["n_scored"], sample["n_unscored"], sample["rate"]) == (6, 5, 1, 0.0)


def test_a_check_without_one_second_opinion_is_an_error_after_it_is_written(tmp_path: Path) -> None:
    with FaultServer(by_model({"other": lambda _: error_reply(400, "no")})) as server:
        run = first_run(tmp_path, server, judges=GROUNDED)
        with pytest.raises(ProviderError, match="the spot check got 0 of 6 second opinions"):
            check(run, against="model:other")
    assert report_of(run)["spot_check"]["rate"] is None


# growing samples


@pytest.mark.parametrize(
    ("n_flips", "n_asked", "decided"),
    [
        (0, 20, "below"),  # E against "at least 0.2" of 20 without a flip: over 20
        (60, 20, "above"),
    ],
)
def test_an_adaptive_check_stops_as_soon_as_it_is_decided(
    tmp_path: Path, n_flips: int, n_asked: int, decided: str
) -> None:
    with FaultServer(flipping(n_flips)) as server:
        run = first_run(tmp_path, server, judges=GROUNDED, n_cases=60)
        check(run, against="model:other", adaptive=True, n=10)
    report = report_of(run)
    assert report["alarm"]["adaptive"]["decided"] == decided
    assert report["spot_check_n"] <= n_asked
    assert report["alarm"]["status"] == {"below": "ok", "above": "alarm"}[decided]


def test_an_adaptive_check_that_nothing_decides_takes_all_and_says_so(tmp_path: Path) -> None:
    # 12 of 60 flip: exactly the threshold, which no sample tells from it
    with FaultServer(flipping(12)) as server:
        run = first_run(tmp_path, server, judges=GROUNDED, n_cases=60)
        check(run, against="model:other", adaptive=True, seed=1)
    report = report_of(run)
    assert (report["spot_check_n"], report["n_disagree"]) == (60, 12)
    assert report["alarm"]["adaptive"]["decided"] is None
    assert report["alarm"]["status"] == "ok"  # of this run everything is known


@pytest.mark.slow
def test_an_adaptive_check_ends_at_200_rows(tmp_path: Path) -> None:
    with FaultServer(flipping(44)) as server:
        run = first_run(tmp_path, server, judges=GROUNDED, n_cases=220)
        check(run, against="model:other", adaptive=True, threshold=0.2, seed=1)
    report = report_of(run)
    assert (report["spot_check_n"], report["alarm"]["adaptive"]["decided"]) == (200, None)


# as the config says


def record_of(run: Path) -> dict[str, Any]:
    """The last spot check, without its name."""
    return {**read_json(run / "checks.json")["checks"][-1], "check": ""}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "config", "flags"),
    [
        ("repeat", {"n": 15, "repeat": True}, {"n": 15, "against": "repeat"}),
        (
            "adaptive",
            {"n": 10, "model": "other", "adaptive": True},
            {"n": 10, "against": "model:other", "adaptive": True},
        ),
        (
            "both",
            {"n": 10, "repeat": True, "adaptive": True, "threshold": 0.1},
            {"n": 10, "against": "repeat", "adaptive": True, "threshold": 0.1},
        ),
    ],
)
def test_the_config_asks_for_what_the_command_does(
    tmp_path: Path, wanted: str, config: dict[str, Any], flags: dict[str, Any]
) -> None:
    with FaultServer(flipping(2)) as server:
        first_run(tmp_path / "command", server, judges=GROUNDED, n_cases=60, seed=0)
        by_command = tmp_path / "command" / "results" / "a"
        check(by_command, **flags)
        by_config = first_run(tmp_path / "config", server, judges=GROUNDED, n_cases=60, seed=0, spot_check=config)
        record, figures = record_of(by_config), read_json(by_config / "metrics.json")["judge_reliability"]
        # What the flags of the command leave open is as the config says, but for the seed: cases of its own are drawn.
        check(by_config, seed=0)
    assert record == record_of(by_command) == record_of(by_config)
    assert len(record["case_ids"]) > record["n_start"] or wanted == "repeat"
    report = figures["by_judge"]["groundedness"]
    assert {**report, "check": ""} == {
        **report_of(by_command),
        "check": "",
        **({} if report["noise_floor"] is None else {"noise_floor": report["noise_floor"]}),
    }
    assert (report["noise_floor"] is not None) == ("repeat" in flags["against"])


@pytest.mark.slow
def test_a_growing_check_of_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    state = {"refuses": False, "n": 0}
    flip = flipping(12)

    def answer(request: Request) -> Reply:
        is_second = request.model.startswith("other") and '{"ready": true}' not in request.text
        state["n"] += is_second
        return error_reply(401, "no") if state["refuses"] and is_second and state["n"] > 25 else flip(request)

    with FaultServer(answer) as server:
        whole = first_run(tmp_path / "whole", server, judges=GROUNDED, n_cases=60, seed=0, spot_check=GROWING)
        state.update(refuses=True, n=0)
        with pytest.raises(ProviderError):
            first_run(tmp_path / "part", server, judges=GROUNDED, n_cases=60, seed=0, spot_check=GROWING)
        part = tmp_path / "part" / "results" / "a"
        [stopped] = read_json(part / "checks.json")["checks"]
        state["refuses"] = False
        n_before = state["n"]
        job = resume_job(str(part), None, Options())
        run_local(lambda: run_workflow(job, Observer()))
    assert (stopped["complete"], len(stopped["case_ids"])) == (False, 30)
    assert read_json(part / "checks.json") == read_json(whole / "checks.json")
    # All 60 are asked, since 12 of 60 is the threshold; 25 had been when it was stopped.
    assert len(verdicts(part, role="spot_check")) == 60
    assert 60 - 25 <= state["n"] - n_before <= 60 - 20
    assert report_of(part)["n_disagree"] == report_of(whole)["n_disagree"] == 12


def test_a_check_that_has_grown_does_not_shrink_where_its_failed_calls_are_asked_again(tmp_path: Path) -> None:
    state = {"down": True}
    flip = flipping(12)

    def answer(request: Request) -> Reply:
        is_down = state["down"] and request.model.startswith("other") and "kiln c7 " in request.text.lower()
        return error_reply(503, "busy") if is_down else flip(request)

    with FaultServer(answer) as server:
        one_try = {name: {**model, "max_attempts": 1} for name, model in models(server, "m", "other").items()}
        run = first_run(tmp_path, server, judges=GROUNDED, n_cases=60, seed=0, spot_check=GROWING, models=one_try)
        first = report_of(run)
        assert (first["n_asked"], first["spot_check_n"]) == (60, 59)
        state["down"] = False
        n_asked = asked(server)
        job = resume_job(str(run), None, Options())
        run_local(lambda: run_workflow(job, Observer()))
        assert asked(server) - n_asked == 1
    last = report_of(run)
    assert (last["n_asked"], last["spot_check_n"], last["n_disagree"]) == (60, 60, 12)


# stopped, gated, kept


def test_a_check_that_stopped_goes_on_and_hangs_no_figure_on_its_part(tmp_path: Path) -> None:
    state = {"refuses": True, "n": 0}

    def second(request: Request) -> Reply:
        state["n"] += 1
        return error_reply(401, "no") if state["refuses"] and state["n"] > 4 else plausible_verdict(request)

    with FaultServer(by_model({"other": second})) as server:
        run = first_run(tmp_path, server, judges=GROUNDED)
        with pytest.raises(ProviderError):
            check(run, against="model:other")
        [stopped] = read_json(run / "checks.json")["checks"]
        assert read_json(run / "metrics.json")["judge_reliability"] is None
        n_before = len(verdicts(run, role="spot_check"))
        state["refuses"] = False
        n_asked = asked(server)
        check(run, against="model:other")
        assert asked(server) - n_asked - (6 - n_before) in (0, 1)  # and a probe
    [record] = read_json(run / "checks.json")["checks"]
    assert 0 < n_before < 6
    assert (stopped["complete"], record["complete"], record["check"]) == (False, True, "1")
    assert report_of(run)["spot_check_n"] == 6


def test_gates_on_the_check_are_evaluated_anew_and_the_others_stand(tmp_path: Path) -> None:
    gates = [
        {"metric": "judge_reliability.disagreement_rate", "op": "<=", "value": 0.2},
        {"metric": "groundedness", "op": ">=", "value": 4},
    ]
    with FaultServer(flipping(0)) as server:
        run = first_run(tmp_path, server, judges=GROUNDED, gates=gates)
        assert [gate["passed"] for gate in read_json(run / "metrics.json")["gates"]] == [False, True]
        summary = check(run, against="model:other")
    assert [gate.passed for gate in summary.gates] == [True, True]
    assert [gate["passed"] for gate in read_json(run / "metrics.json")["gates"]] == [True, True]


@pytest.mark.usefixtures("runs_without_hashes")
def test_what_other_commands_found_out_about_a_judge_is_kept(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server, judges=GROUNDED)
    check(run, against="model:other")
    metrics = read_json(run / "metrics.json")
    metrics["judge_reliability"]["by_judge"]["groundedness"]["anchors"] = {"n": 60}
    (run / "metrics.json").write_text(json.dumps(metrics))
    check(run, against="model:other", n=3)
    assert report_of(run)["anchors"] == {"n": 60}
    assert report_of(run)["spot_check_n"] == 3


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_moved_model_is_no_check_of_the_run(tmp_path: Path) -> None:
    script = by_model({})
    with FaultServer(script) as server:
        run = first_run(tmp_path, server, judges=GROUNDED)
    manifest = read_json(run / "manifest.json")
    manifest["models"]["m"]["build_hash"] = "sha256:another"
    (run / "manifest.json").write_text(json.dumps(manifest))
    with FaultServer(script) as moved:
        config = read_json(run / "config.json")
        config["models"]["m"]["base_url"] = moved.base_url
        (run / "config.json").write_text(json.dumps(config))
        with pytest.raises(ProviderError, match="this run was begun with sha256:another"):
            check(run, against="repeat")
