"""A complete run of which calls failed on the way: they are asked again, and everything else stays as it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import ConfigError, ProviderError
from judgekit.testing import FaultServer, Reply, error_reply, refused_reply
from tests.builders import read_json, read_lines, write_lines, write_suite
from tests.workflows.engine import Ran, again, good, is_capability_call, resumed

pytestmark = pytest.mark.usefixtures("quick_waits")

Script = Callable[[Any], Reply]

ONE_TRY = {"max_attempts": 1, "max_concurrency": 1}


def failing(reply: Reply, *kilns: str, then: Reply | None = None) -> Script:
    """Answers well but where one of these kilns is asked about."""

    def answer(request: Any) -> Reply:
        return reply if any(f"Kiln {name} is fired" in request.text for name in kilns) else then or good()

    return answer


def history(ran: Ran) -> list[dict[str, Any]]:
    path = ran.folder / "metrics_history.jsonl"
    return read_lines(path) if path.exists() else []


@pytest.mark.parametrize("kind", ["server_error", "rate_limited"])
def test_exactly_the_calls_that_failed_on_the_way_are_asked_again(tmp_path: Path, kind: str) -> None:
    status = {"server_error": 503, "rate_limited": 429}[kind]
    gates = [{"metric": "groundedness", "op": ">=", "value": 4}]
    with FaultServer(failing(error_reply(status, "busy"), "c1", "c4")) as server:
        ran = again(write_suite(tmp_path, server.base_url, model=ONE_TRY, gates=gates), server)
        assert {item["failure"]["kind"] for item in ran.judgments.values() if item["failure"]} == {kind}
        first, n_before = ran.metrics, len(ran.asked)
        assert ran.warnings["failed_on_the_way"] == (
            f"2 calls failed on the way ({kind} 2); `judgekit run --resume r` asks them again"
        )
        server.play(good(3))
        whole = resumed(ran)
        assert [kiln_of(body) for body in whole.asked[n_before:]] == ["c1", "c4"]

    assert (first["status"], first["gates"][0]["passed"]) == ("complete", False)
    assert (whole.metrics["status"], whole.manifest["status"], whole.manifest["n_resumed"]) == ("complete",) * 2 + (1,)
    figure = whole.metrics["overall"]["groundedness"]
    # Four verdicts of 4 as before and two of 3: 22 / 6.
    assert (figure["value"], figure["n"], figure["n_error"]) == (pytest.approx(22 / 6, abs=1e-4), 6, 0)
    assert not {"judge_failures", "failed_on_the_way"} & whole.warnings.keys()
    # Nothing is taken back: the failures stay in the file, the old figures in the history.
    assert len(read_lines(ran.folder / "judgments.jsonl")) == 8
    [old] = history(ran)
    assert old["figures"]["groundedness"] == first["overall"]["groundedness"]
    assert isinstance(resumed(whole).error, ConfigError)


def kiln_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"].split("Kiln ")[1].split()[0])


def test_a_complete_run_whose_failures_are_of_the_cases_is_refused(tmp_path: Path) -> None:
    with FaultServer(failing(refused_reply(), "c1")) as server:
        ran = again(write_suite(tmp_path, server.base_url, model=ONE_TRY), server)
        n_before = len(server.log.entries)
        error = resumed(ran).error
        assert len(server.log.entries) == n_before
    assert isinstance(error, ConfigError)
    assert "this run is complete; there is nothing to resume" in str(error)
    assert "failed_on_the_way" not in ran.warnings


def test_a_complete_run_stays_complete_where_the_server_is_still_down(tmp_path: Path) -> None:
    with FaultServer(failing(error_reply(503, "busy"), "c1", "c4")) as server:
        ran = again(write_suite(tmp_path, server.base_url, model=ONE_TRY), server)
        before = ran.metrics
        server.play(failing(error_reply(401, "no such key"), "c4"))
        stopped = resumed(ran)
        assert isinstance(stopped.error, ProviderError)
        assert (stopped.manifest["status"], stopped.manifest["reason"]) == ("complete", None)
        # One of the two has its verdict now.
        figures = stopped.metrics["overall"]["groundedness"]
        assert (figures["n"], figures["n_error"], stopped.metrics["status"]) == (5, 1, "complete")
        server.play(good())
        assert resumed(ran).metrics["overall"]["groundedness"]["n"] == 6
    figures_kept = [record["figures"]["groundedness"]["n"] for record in history(ran)]
    assert figures_kept == [before["overall"]["groundedness"]["n"], 5]


def test_a_server_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    with FaultServer(failing(error_reply(503, "busy"), "c1")) as server:
        ran = again(write_suite(tmp_path, server.base_url, model=ONE_TRY), server)
        before = ran.metrics["overall"], (ran.folder / "judgments.jsonl").read_bytes()
    error = resumed(ran).error
    assert isinstance(error, ProviderError)
    assert ran.manifest["status"] == "complete"
    assert (ran.metrics["overall"], (ran.folder / "judgments.jsonl").read_bytes()) == before


def test_second_opinions_that_failed_on_the_way_are_asked_again_too(tmp_path: Path) -> None:
    down = {"now": True}

    def answer(request: Any) -> Reply:
        is_down = down["now"] and request.model == "b-2025-01-01" and not is_capability_call(request.body)
        return error_reply(503, "busy") if is_down else good()

    with FaultServer(answer) as server:
        one = {"base_url": server.base_url, **ONE_TRY}
        models = {name: {"model": f"{name}-2025-01-01", **one} for name in ("m", "b")}
        spot_check = {"n": 4, "model": "b"}
        ran = again(write_suite(tmp_path, server.base_url, models=models, spot_check=spot_check), server)
        assert ran.error is None
        first, n_before = ran.metrics["judge_reliability"], len(ran.asked)
        down["now"] = False
        whole = resumed(ran)
        assert [body["model"] for body in whole.asked[n_before:]] == ["b-2025-01-01"] * 4
    assert (first["spot_check_n"], whole.metrics["judge_reliability"]["spot_check_n"]) == (0, 4)
    [record] = read_json(ran.folder / "checks.json")["checks"]
    assert record["complete"]


@pytest.mark.usefixtures("runs_without_hashes")
def test_a_question_whose_damaged_line_was_deleted_is_asked_again(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        ran = again(write_suite(tmp_path, server.base_url), server, use_cache=False)
        rows = [item for item in ran.judgments.values() if item["case_id"] != "c2"]
        write_lines(ran.folder / "judgments.jsonl", rows)
        n_before = len(ran.asked)
        whole = resumed(ran)
        assert [kiln_of(body) for body in whole.asked[n_before:]] == ["c2"]
    assert whole.metrics["overall"]["groundedness"]["n"] == 6


@pytest.mark.usefixtures("runs_without_hashes")
def test_what_rests_on_all_verdicts_is_left_out_and_said_to_be_made_anew(tmp_path: Path) -> None:
    with FaultServer(failing(error_reply(503, "busy"), "c1")) as server:
        ran = again(write_suite(tmp_path, server.base_url, model=ONE_TRY), server)
        metrics = ran.metrics
        parts = {"anchors": {"n": 3}, "corrected": {"n": 3}, "bridge": {"total": 1}, "drift": {"state": "none"}}
        metrics["judge_reliability"] = {"by_judge": {"groundedness": parts}}
        (ran.folder / "metrics.json").write_text(json.dumps(metrics))
        server.play(good())
        whole = resumed(ran)
    report = whole.metrics["judge_reliability"]["by_judge"]["groundedness"]
    assert report == {"drift": {"state": "none"}}
    assert whole.warnings["reliability_to_redo"] == (
        "judge groundedness: anchors, corrected, bridge rested on fewer verdicts and are left out; "
        "`judgekit calibrate` and `judgekit bridge` make them"
    )


def test_a_panel_asks_the_member_that_failed_on_the_way(tmp_path: Path) -> None:
    down = {"now": True}

    def answer(request: Any) -> Reply:
        is_down = down["now"] and request.model == "b-2025-01-01" and "Kiln c1 is fired" in request.text
        return error_reply(503, "busy") if is_down else good()

    with FaultServer(answer) as server:
        one = {"base_url": server.base_url, **ONE_TRY}
        models = {name: {"model": f"{name}-2025-01-01", **one} for name in ("a", "b", "c")}
        judges = [{"name": "groundedness", "panel": {"models": ["a", "b", "c"]}}]
        ran = again(write_suite(tmp_path, server.base_url, models=models, judges=judges), server)
        assert ran.error is None
        n_before, warned = len(ran.asked), ran.warnings
        down["now"] = False
        whole = resumed(ran)
        assert [(body["model"], kiln_of(body)) for body in whole.asked[n_before:]] == [("b-2025-01-01", "c1")]
    assert "failed_on_the_way" in warned
    assert "failed_on_the_way" not in whole.warnings
    assert isinstance(resumed(whole).error, ConfigError)
