"""Whole runs of a panel: members' judgments, the verdict made of them, ties, failures and what the panel is worth."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.testing import FaultServer, Reply, chat_reply, error_reply
from tests.builders import read_lines, write_suite
from tests.workflows.engine import Ran, again, is_capability_call, resumed

MEMBERS = ("a-2025-01-01", "b-2025-01-01", "c-2025-01-01")
SCORES: dict[str, tuple[int | str, ...]] = {
    # case: what a, b and c say; text is no verdict
    "c0": (5, 5, 5),
    "c1": (4, 2, 3),
    "c2": (3, 4, "no idea"),  # an even number of verdicts: a tie
    "c3": (4, "no idea", "no idea"),  # below the quorum
    "c4": (0, 1, 0),
    "c5": (2, 5, 5),
}


def play(request: Any) -> Reply:
    if is_capability_call(request.body):
        return chat_reply('{"ready": true}')
    [case_id] = [name for name in SCORES if f"Kiln {name} " in request.text]
    said = SCORES[case_id][MEMBERS.index(request.body["model"])]
    if isinstance(said, str):
        return chat_reply(said)
    claims = [f"claim of {request.body['model'][0]}"]
    lists = (
        {"supported_claims": claims, "unsupported_claims": []}
        if said > 1
        else {"supported_claims": [], "unsupported_claims": claims}
    )
    return chat_reply(json.dumps({"reasoning": "r", **lists, "score": said}))


def suite(folder: Path, server: FaultServer, panel: dict[str, Any], **config: Any) -> Path:
    models = {
        model[0]: {"model": model, "base_url": server.base_url, "max_concurrency": 2, "max_attempts": 1}
        for model in MEMBERS
    }
    judges = [{"name": "groundedness", "panel": {"models": ["a", "b", "c"], **panel}}]
    return write_suite(folder, server.base_url, **{"models": models, "judges": judges, **config})


def panel_run(folder: Path, script: Any = play, *, panel: dict[str, Any] | None = None, **config: Any) -> Ran:
    with FaultServer(script) as server:
        return again(suite(folder, server, panel or {}, **config), server)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    found = panel_run(tmp_path_factory.mktemp("panel"))
    assert found.error is None
    return found


def of_role(ran: Ran, role: str) -> list[dict[str, Any]]:
    return [item for item in read_lines(ran.folder / "judgments.jsonl") if item["role"] == role]


def test_every_member_is_asked_about_every_case_and_leaves_a_judgment_of_its_own(ran: Ran) -> None:
    members = of_role(ran, "member")
    assert sorted((item["case_id"], item["model_id"]) for item in members) == [
        (case_id, member) for case_id in SCORES for member in ("a", "b", "c")
    ]
    assert all(item["key"] and item["raw_reply"] and item["provider"] == "openai_compatible" for item in members)
    # 18 questions; the three that could not be read were asked again
    assert len(ran.asked) == 21


def test_the_verdict_of_the_panel_is_a_judgment_made_of_theirs(ran: Ran) -> None:
    found = {item["case_id"]: item for item in of_role(ran, "primary")}
    verdicts = {case_id: item["verdict"] and item["verdict"]["score"] for case_id, item in found.items()}
    assert verdicts == {"c0": 5, "c1": 3, "c2": 3, "c3": None, "c4": 0, "c5": 5}
    assert {case_id: item["flags"] for case_id, item in found.items() if item["flags"]} == {"c2": ["tie"]}
    assert found["c3"]["failure"] == {
        "kind": "panel_quorum",
        "message": "1 of 3 members gave a verdict, 2 are wanted; b: invalid, c: invalid",
    }
    # claims are those of the first member with the panel's score
    assert found["c1"]["verdict"]["supported_claims"] == ["claim of c"]
    assert found["c5"]["verdict"]["supported_claims"] == ["claim of b"]
    assert found["c5"]["verdict"]["reasoning"] == "median of a 2, b 5, c 5; everything else as b says"
    assert found["c1"]["model"] == "median of a, b, c"
    assert {(item["model_id"], item["n_requests"], item["key"]) for item in found.values()} == {("panel", 0, "")}


def test_figures_take_the_verdicts_of_the_panel(ran: Ran) -> None:
    figure = ran.metrics["overall"]["groundedness"]
    # 5, 3, 3, 0 and 5 are 16
    assert (figure["value"], figure["n"], figure["n_error"]) == (3.2, 5, 1)
    assert ran.metrics["cost"]["n_calls"] == 21
    assert ran.metrics["latency"]["judge"]["n"] == 18


def test_metrics_say_what_the_panel_is_worth(ran: Ran) -> None:
    record = ran.metrics["judges"]["groundedness"]
    assert (record["model"], record["n_judged"], record["n_failed"]) == ("median of a, b, c", 5, 1)
    panel = record["panel"]
    assert (panel["rule"], panel["quorum"], panel["n_cases"], panel["n_complete"]) == ("median", 2, 6, 4)
    assert (panel["n_unanimous"], panel["n_ties"], panel["n_below_quorum"]) == (1, 1, 1)
    assert panel["failures"] == {"a": {}, "b": {"invalid": 1}, "c": {"invalid": 2}}
    assert panel["members"]["b"]["model"] == MEMBERS[1]
    agreement = {tuple(row["members"]): row for row in panel["agreement"]}
    # a and b: c0, c1, c2, c4, c5; equal in c0 only, on the same side of 4 in c0 and c4
    assert agreement[("a", "b")] == {"members": ["a", "b"], "n": 5, "exact": 0.2, "same_class": 0.4}
    # b and c: c0, c1, c4, c5; equal in c0 and c5, on the same side in all
    assert agreement[("b", "c")] == {"members": ["b", "c"], "n": 4, "exact": 0.5, "same_class": 1.0}
    # k / (1 + (k - 1) rho) with k = 3; rounded to four decimals both
    assert panel["effective_votes"] == pytest.approx(3 / (1 + 2 * panel["mean_correlation"]), abs=1e-3)
    assert 1 < panel["effective_votes"] < 3


def test_the_reader_is_told_of_failures_and_votes(ran: Ran) -> None:
    assert ran.warnings["panel_member_failures"] == (
        "panel groundedness: 3 calls to members gave no verdict (b 1, c 2)"
    )
    assert ran.warnings["judge_failures"].startswith("1 judge calls gave no verdict")
    text = (ran.folder / "summary.md").read_text(encoding="utf-8")
    assert "groundedness: median of a, b, c, prompt v1" in text
    assert "panel groundedness: unanimous on 1 of 4 cases that all 3 members judged, 1 tie, 1 below the quorum" in text
    assert "; effective votes: " in text
    assert "; calls without a verdict: b 1, c 2" in text


def test_the_majority_passes_or_fails(tmp_path: Path) -> None:
    ran = panel_run(tmp_path, panel={"rule": "majority", "quorum": 1})
    verdicts = {item["case_id"]: (item["verdict"]["score"], item["flags"]) for item in of_role(ran, "primary")}
    assert verdicts == {
        "c0": (5, []),
        "c1": (2, []),  # 2 and 3 do not pass, and are more; the lower of the two
        "c2": (3, ["tie"]),  # one passes, one does not: doubt does not pass
        "c3": (4, []),  # one verdict is enough here
        "c4": (0, []),
        "c5": (5, []),
    }


def test_what_a_member_left_open_is_asked_again_on_resume_and_the_verdict_made_anew(tmp_path: Path) -> None:
    gone = {"now": True}

    def script(request: Any) -> Reply:
        if gone["now"] and request.body["model"] == MEMBERS[2] and not is_capability_call(request.body):
            return error_reply(401, "key revoked")
        return play(request)

    with FaultServer(script) as server:
        ran = again(suite(tmp_path, server, {}), server)
        assert "key revoked" in str(ran.error)
        assert of_role(ran, "primary") == [], "a member is still to come"
        assert ran.metrics["overall"]["groundedness"]["n"] == 0
        gone["now"] = False
        ran = resumed(ran)
    assert ran.error is None
    assert {item["case_id"]: (item["verdict"] or {}).get("score") for item in of_role(ran, "primary")} == {
        "c0": 5,
        "c1": 3,
        "c2": 3,
        "c3": None,
        "c4": 0,
        "c5": 5,
    }
    assert len(of_role(ran, "member")) == 18


def test_a_later_verdict_of_a_member_changes_that_of_the_panel(tmp_path: Path) -> None:
    busy = {"now": True}

    def script(request: Any) -> Reply:
        if is_capability_call(request.body):
            return chat_reply('{"ready": true}')
        if request.body["model"] == MEMBERS[2] and "Kiln c1 " in request.text and busy["now"]:
            return error_reply(503, "overloaded")
        if request.body["model"] == MEMBERS[1] and "Kiln c5 " in request.text and busy["now"]:
            return error_reply(401, "key revoked")  # stops the run, so that it can be resumed
        return play(request)

    with FaultServer(script) as server:
        ran = again(
            suite(
                tmp_path,
                server,
                {},
            ),
            server,
        )
        assert ran.error is not None
        busy["now"] = False
        ran = resumed(ran)
    assert ran.error is None
    said = [(item["verdict"]["score"], item["flags"]) for item in of_role(ran, "primary") if item["case_id"] == "c1"]
    # 4 and 2 alone: the lower median is 2, a tie; with the 3 of the third the median is 3
    assert said[-1] == (3, [])
    assert ran.metrics["overall"]["groundedness"]["n"] == 5


def test_a_yes_no_judge_can_be_a_panel_too(tmp_path: Path) -> None:
    def script(request: Any) -> Reply:
        if is_capability_call(request.body):
            return chat_reply('{"ready": true}')
        return chat_reply(json.dumps({"reasoning": "r", "abstains": request.body["model"] != MEMBERS[0]}))

    judges = [{"name": "abstention", "panel": {"models": ["a", "b", "c"], "rule": "majority"}}]
    ran = panel_run(tmp_path, script, judges=judges)
    assert ran.error is None
    assert {item["verdict"]["answer"] for item in of_role(ran, "primary")} == {True}
    assert ran.metrics["overall"]["over_abstention_rate"]["value"] == 1.0
    panel = ran.metrics["judges"]["abstention"]["panel"]
    # members never vary, so no correlation is defined
    assert panel["effective_votes"] is None
    assert "vary" in panel["undefined_reason"]


def test_a_panel_can_be_checked_by_a_model_outside_it(tmp_path: Path) -> None:
    judges = [{"name": "groundedness", "panel": {"models": ["a", "b"]}}]
    ran = panel_run(tmp_path, judges=judges, spot_check={"n": 3, "model": "c"})
    assert ran.error is None
    assert ran.metrics["judge_reliability"]["by_judge"]["groundedness"]["n_asked"] == 3


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"judges": [{"name": "groundedness", "panel": {"models": ["a"]}}]}, "at least 2 items"),
        ({"judges": [{"name": "groundedness", "panel": {"models": ["a", "a"]}}]}, "listed twice"),
        ({"judges": [{"name": "groundedness", "panel": {"models": ["a", "x"]}}]}, "panel.models names 'x'"),
        ({"judges": [{"name": "groundedness", "panel": {"models": ["a", "b"], "quorum": 3}}]}, "only 2 members"),
        ({"judges": [{"name": "groundedness", "model": "a", "panel": {"models": ["a", "b"]}}]}, "either one"),
        ({"judges": [{"name": "groundedness"}]}, "either one"),
        ({"spot_check": {"n": 3, "prompt_version": "v2"}}, "a panel is not a single model"),
        ({"spot_check": {"n": 3, "model": "b"}}, "a member of its panel and the same prompt"),
    ],
)
def test_a_panel_that_cannot_be_is_refused_before_any_call(
    tmp_path: Path, config: dict[str, Any], message: str
) -> None:
    ran = panel_run(tmp_path, **config)
    assert message in str(ran.error)
    assert ran.asked == []


def test_a_panel_of_the_embedded_variants_takes_no_key(tmp_path: Path) -> None:
    models = {
        "plain": {"provider": "lexical", "model": "overlap-2"},
        "strict": {"provider": "lexical", "model": "overlap-strict-2"},
    }
    judges = [{"name": "groundedness", "panel": {"models": ["plain", "strict"]}}]
    ran = panel_run(tmp_path, judges=judges, models=models)
    assert ran.error is None
    record = ran.metrics["judges"]["groundedness"]
    assert (record["is_llm"], record["note"], record["n_judged"]) == (False, "overlap baseline, not an LLM", 6)
