"""Abstentions have one source in a run, and groundedness, correctness and the abstention figures follow it."""

from pathlib import Path
from typing import Any

import pytest

from judgekit.core.sentences import abstention_rule
from judgekit.executors.event_loop import run_local
from judgekit.testing import FaultServer, Reply, Request, chat_reply, error_reply, verdict
from judgekit.workflows.dry_run import dry_run
from judgekit.workflows.models import Options
from judgekit.workflows.setup import set_up
from tests.builders import case, read_json, read_lines, write_suite
from tests.workflows.engine import Ran, carried_out
from tests.workflows.stored_suites import first_run, rejudge

SILENT = "The diary does not go into that."
"""Declines in words that the rule does not know."""
RULE = "The notes do not say."
CASES = [
    case("right", answerable=False),
    case("wrong", answerable=True),
    case("unlabelled", answerable=None),
    case("answered", answerable=True),
]
ALL_JUDGES = [{"name": name, "model": "m"} for name in ("abstention", "correctness", "groundedness")]
NO_ABSTENTION_JUDGE = ALL_JUDGES[1:]


def hit(case_id: str) -> list[dict[str, str]]:
    """No two alike, so that no two cases ask the same."""
    return [{"chunk_id": "k1", "text": f"The canal of {case_id} is six miles long."}]


def outputs(text: str, **flags: Any) -> list[dict[str, Any]]:
    """Three that decline, and one that does not."""
    rows = [{"case_id": row["id"], "answer": text, "retrieved": hit(row["id"]), **flags} for row in CASES[:3]]
    return [*rows, {"case_id": "answered", "answer": "Monks dug the canal.", "retrieved": hit("answered")}]


def judges(request: Request) -> Reply:
    """The abstention judge goes by SILENT; the others are generous."""
    text = request.body["messages"][-1]["content"]
    if "abstains" in text:
        declined = SILENT in text or RULE in text
        return chat_reply(f'{{"reasoning": "r", "abstains": {str(declined).lower()}}}')
    return verdict(5, supported=["a claim"])


def scores(folder: Path, name: str) -> dict[str, Any]:
    return {
        row["case_id"]: row["value"] if row["reason"] is None else row["reason"]
        for row in read_lines(folder / "scores.jsonl")
        if row["name"] == name
    }


def assert_followed(folder: Path) -> None:
    """A right abstention does not apply, one on an answerable case is worth nothing, an answer is judged."""
    for name in ("correctness", "groundedness"):
        assert scores(folder, name) == {
            "right": "n/a: abstained",
            "wrong": 0.0,
            "unlabelled": "n/a: abstained",
            "answered": 5.0,
        }
        assert scores(folder, f"{name}_pass") == {
            "right": "n/a: abstained",
            "wrong": 0.0,
            "unlabelled": "n/a: abstained",
            "answered": 1.0,
        }
    assert scores(folder, "abstained") == {"right": 1.0, "wrong": 1.0, "unlabelled": 1.0, "answered": 0.0}
    overall = read_json(folder / "metrics.json")["overall"]
    assert overall["abstention_accuracy"]["value"] == 1.0  # 1 of 1 unanswerable
    assert overall["over_abstention_rate"]["value"] == 0.5  # 1 of 2 answerable
    assert overall["groundedness"]["value"] == 2.5  # (0 + 5) / 2


@pytest.mark.parametrize(
    ("text", "flags", "asked", "source", "n_asked"),
    [
        pytest.param(SILENT, {}, ALL_JUDGES, "judge", 12, id="T2-45-judge"),
        pytest.param(RULE, {}, NO_ABSTENTION_JUDGE, "rule", 8, id="T2-45-rule"),
        pytest.param("Monks dug it.", {"abstained": True}, NO_ABSTENTION_JUDGE, "rule", 3, id="T2-45-flag"),
        pytest.param("Monks dug it.", {"grounded": False}, ALL_JUDGES, "judge", 4, id="T2-45-grounded"),
    ],
)
def test_t2_45_every_score_follows_the_one_source(
    tmp_path: Path, text: str, flags: dict[str, Any], asked: list[dict[str, Any]], source: str, n_asked: int
) -> None:
    ran = carried_out(tmp_path, judges, case_rows=CASES, output_rows=outputs(text, **flags), judges=asked)

    assert ran.error is None
    assert len(ran.asked) == n_asked
    assert_followed(ran.folder)
    found = ran.metrics["abstention"]
    assert found["source"] == source
    assert sum(found["by_source"].values()) == 4
    assert sum(found["n_abstained"].values()) == 3
    assert ("abstention_by_rule" in ran.warnings) == (text == RULE)


def test_t2_45_where_the_rule_finds_none_of_those_there_should_be_the_run_says_so(tmp_path: Path) -> None:
    # `right` is unanswerable, and what it says is in no phrase of the rule: its figure may be wrong
    ran = carried_out(tmp_path, judges, case_rows=CASES, output_rows=outputs(SILENT), judges=NO_ABSTENTION_JUDGE)
    assert ran.metrics["overall"]["hallucination_rate_unanswerable"]["value"] == 1.0
    (message,) = (warning["message"] for warning in ran.metrics["warnings"] if warning["code"] == "abstention_by_rule")
    assert "took 0 of 4 answers for abstentions" in message
    assert "1 to unanswerable questions count as answers" in message


def test_t2_45_a_flag_comes_before_the_judge_and_the_judge_before_the_rule(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"case_id": "flagged", "answer": RULE, "retrieved": hit("a"), "abstained": False},
        {"case_id": "judged", "answer": "I don't know. It is a secret.", "retrieved": hit("b")},
    ]
    ran = carried_out(
        tmp_path,
        judges,
        case_rows=[case("flagged", answerable=False), case("judged", answerable=False)],
        output_rows=rows,
        judges=ALL_JUDGES,
    )
    assert abstention_rule(RULE)
    assert abstention_rule(rows[1]["answer"])
    assert scores(ran.folder, "abstained") == {"flagged": 0.0, "judged": 0.0}
    assert scores(ran.folder, "correctness") == {"flagged": 5.0, "judged": 5.0}
    assert ran.metrics["overall"]["hallucination_rate_unanswerable"]["value"] == 1.0


def test_t2_45_where_the_abstention_judge_fails_nothing_is_taken_for_an_answer(tmp_path: Path) -> None:
    def failing(request: Request) -> Reply:
        return error_reply(400, "no") if "abstains" in request.body["messages"][-1]["content"] else judges(request)

    rows = outputs(SILENT)
    rows[0]["abstained"] = True
    ran = carried_out(tmp_path, failing, case_rows=CASES, output_rows=rows, judges=ALL_JUDGES)
    assert scores(ran.folder, "correctness") == {
        "right": "n/a: abstained",
        "wrong": "failed: abstention judge bad_request",
        "unlabelled": "failed: abstention judge bad_request",
        "answered": "failed: abstention judge bad_request",
    }


def test_t2_45_blank_answers_stay_failures_but_where_silence_is_right(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, judges, case_rows=CASES, output_rows=outputs(" "), judges=ALL_JUDGES)
    assert scores(ran.folder, "correctness") == {
        "right": "n/a: abstained",
        "wrong": "failed: blank_answer",
        "unlabelled": "failed: blank_answer",
        "answered": 5.0,
    }


def test_t2_45_no_retrieved_text_is_said_before_anything_else(tmp_path: Path) -> None:
    rows = [{**row, "retrieved": []} for row in outputs(SILENT)[:3]] + outputs(SILENT)[3:]
    ran = carried_out(tmp_path, judges, case_rows=CASES, output_rows=rows, judges=ALL_JUDGES)
    assert scores(ran.folder, "groundedness")["wrong"] == "n/a: no retrieved text"
    assert scores(ran.folder, "correctness")["wrong"] == 0.0


def test_t2_45_a_run_that_is_judged_again_follows_its_own_abstention_judge(tmp_path: Path) -> None:
    def changed(request: Request) -> Reply:
        """The second model takes nothing for an abstention."""
        if request.body["model"].startswith("other") and "abstains" in request.body["messages"][-1]["content"]:
            return chat_reply('{"reasoning": "r", "abstains": false}')
        return judges(request)

    with FaultServer(changed) as server:
        run = first_run(tmp_path, server, case_rows=CASES, output_rows=outputs(SILENT), judges=ALL_JUDGES)
        assert_followed(run)
        rejudge(run, "b", model="other", judges=("abstention",))
        assert scores(run.parent / "b", "correctness") == dict.fromkeys([row["id"] for row in CASES], 5.0)


@pytest.mark.parametrize(
    ("rows", "asked", "is_said"),
    [
        (outputs(RULE), NO_ABSTENTION_JUDGE, True),
        (outputs(RULE), ALL_JUDGES, False),
        ([{**row, "abstained": False} for row in outputs(RULE)], NO_ABSTENTION_JUDGE, False),
    ],
    ids=["T2-45-neither", "judge", "flags"],
)
def test_t2_45_validate_says_that_the_rule_will_decide(
    tmp_path: Path, rows: list[dict[str, Any]], asked: list[dict[str, Any]], is_said: bool
) -> None:
    config = write_suite(tmp_path, case_rows=CASES, output_rows=rows, judges=asked)
    found = run_local(lambda: dry_run(set_up(config, Options()), Options(use_cache=False)))
    messages = [message for code, message in found["warnings"] if code == "abstention_by_rule"]
    assert bool(messages) is is_said
    if messages:
        assert "4 of 4 outputs have no `abstained` flag and there is no judge abstention" in messages[0]


def test_the_rule_is_marked_in_the_summary(tmp_path: Path) -> None:
    ran: Ran = carried_out(tmp_path, judges, case_rows=CASES, output_rows=outputs(RULE), judges=NO_ABSTENTION_JUDGE)
    assert "abstentions: by the shipped rule" in (ran.folder / "summary.md").read_text(encoding="utf-8")
