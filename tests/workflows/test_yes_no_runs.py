"""Whole runs of the two yes/no judges: what their verdicts, and their failures, make of the figures."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.engine.passes import Observer
from judgekit.reports.calibration_report import calibration_lines
from judgekit.testing import Reply, chat_reply
from judgekit.workflows.calibrate import CalibrationWanted, calibrate
from judgekit.workflows.models import Options
from tests.builders import case, output, read_lines, write_lines
from tests.workflows.engine import Ran, carried_out, is_capability_call

JUDGE_MODEL = "judge-2025-01-01"


def by_answer(replies: dict[str, Any]) -> Any:
    """A script that replies by the answer that is judged: a dict as JSON, a text as it is."""

    def answer(request: Any) -> Reply:
        if is_capability_call(request.body):
            return chat_reply('{"ready": true}')
        [reply] = [reply for marker, reply in replies.items() if marker in request.text]
        return chat_reply(reply if isinstance(reply, str) else json.dumps(reply))

    return answer


def yes(key: str) -> dict[str, Any]:
    return {"reasoning": "so it says", key: True}


def no(key: str) -> dict[str, Any]:
    return {"reasoning": "it does not", key: False}


def scores_of(ran: Ran, name: str) -> dict[str, Any]:
    return {
        line["case_id"]: line["value"] if line["reason"] is None else line["reason"]
        for line in read_lines(ran.folder / "scores.jsonl")
        if line["name"] == name
    }


def sources_of(ran: Ran) -> dict[str, str]:
    return {
        line["case_id"]: line["source"]
        for line in read_lines(ran.folder / "scores.jsonl")
        if line["name"] == "abstained"
    }


ABSTENTION_CASES = [
    case("flagged", answerable=False),
    case("ungrounded", answerable=False),
    case("blank", answerable=False),
    case("declines", answerable=False),
    case("invents", answerable=False),
    case("shy", answerable=True),
    case("mumbled", answerable=False),
    case("errs", answerable=False),
]
ABSTENTION_OUTPUTS = [
    output("flagged", answer="text of flagged", abstained=True),
    output("ungrounded", answer="text of ungrounded", grounded=False),
    output("blank", answer=""),
    output("declines", answer="text of declines"),
    output("invents", answer="text of invents"),
    output("shy", answer="text of shy"),
    output("mumbled", answer="text of mumbled"),
    output("errs", answer=None, error={"kind": "api"}),
]
ABSTENTION_REPLIES = {
    "text of declines": yes("abstains"),
    "text of invents": no("abstains"),
    "text of shy": yes("abstains"),
    "text of mumbled": "I would say maybe.",
}


@pytest.fixture(scope="module")
def abstained(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    ran = carried_out(
        tmp_path_factory.mktemp("abstention"),
        by_answer(ABSTENTION_REPLIES),
        case_rows=ABSTENTION_CASES,
        output_rows=ABSTENTION_OUTPUTS,
        judges=[{"name": "abstention", "model": "m"}],
    )
    assert ran.error is None
    return ran


def test_the_abstention_judge_is_asked_only_where_nothing_else_decides(abstained: Ran) -> None:
    # one request each, and a second one for the reply that could not be read
    asked = [body["messages"][-1]["content"] for body in abstained.asked]
    counts = {marker: sum(marker in text for text in asked) for marker in ABSTENTION_REPLIES}
    assert counts == {"text of declines": 1, "text of invents": 1, "text of shy": 1, "text of mumbled": 2}
    assert len(asked) == 5
    assert set(abstained.judgments) == {"declines", "invents", "shy", "mumbled"}


def test_what_said_so_is_stored_for_every_case(abstained: Ran) -> None:
    assert sources_of(abstained) == {
        "flagged": "flag",
        "ungrounded": "grounded",
        "blank": "blank",
        "declines": "judge",
        "invents": "judge",
        "shy": "judge",
        "mumbled": "judge",
        "errs": "error",
    }
    assert scores_of(abstained, "abstained") == {
        "flagged": 1.0,
        "ungrounded": 1.0,
        "blank": 1.0,
        "declines": 1.0,
        "invents": 0.0,
        "shy": 1.0,
        "mumbled": "failed: judge invalid",
        "errs": "failed: api",
    }


def test_the_abstention_figures_take_the_verdicts(abstained: Ran) -> None:
    overall = abstained.metrics["overall"]
    # unanswerable: flagged, ungrounded, blank, declines (1), invents (0); mumbled and errs failed
    accuracy = overall["abstention_accuracy"]
    assert (accuracy["value"], accuracy["n"], accuracy["n_error"], accuracy["n_not_applicable"]) == (0.8, 5, 2, 1)
    # worst and best of 7 cases: 4/7 = 0.5714 and 6/7 = 0.8571
    assert (accuracy["worst"], accuracy["best"]) == (0.5714, 0.8571)
    assert overall["hallucination_rate_unanswerable"]["value"] == 0.2
    assert overall["over_abstention_rate"]["value"] == 1.0
    # TP 4, FN 1, FP 1: F1 = 8 / 10
    assert overall["abstention_f1"]["value"] == 0.8
    own = overall["abstention"]
    assert (own["value"], own["n"], own["n_error"], own["n_not_applicable"]) == (0.6667, 3, 2, 3)
    assert abstained.warnings["judge_failures"] == "1 judge calls gave no verdict; they are counted in n_error"


def test_a_judges_failure_is_no_score_under_any_policy(tmp_path: Path) -> None:
    ran = carried_out(
        tmp_path,
        by_answer(ABSTENTION_REPLIES),
        case_rows=ABSTENTION_CASES,
        output_rows=ABSTENTION_OUTPUTS,
        judges=[{"name": "abstention", "model": "m"}],
        errors="as_zero",
    )
    accuracy = ran.metrics["overall"]["abstention_accuracy"]
    # errs counts as the worst, 4 of 6; mumbled stays a gap
    assert (accuracy["value"], accuracy["n"], accuracy["n_error"]) == (0.6667, 6, 1)


def test_without_the_judge_the_rule_decides_about_a_text_without_a_flag(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, None, case_rows=ABSTENTION_CASES, output_rows=ABSTENTION_OUTPUTS, judges=[], models={})
    accuracy = ran.metrics["overall"]["abstention_accuracy"]
    # flagged, ungrounded and blank abstain; declines, invents and mumbled are texts that say nothing of the kind
    assert (accuracy["value"], accuracy["n"], accuracy["n_error"], accuracy["n_not_applicable"]) == (0.5, 6, 1, 1)
    assert scores_of(ran, "abstention_accuracy")["invents"] == 0.0
    assert sources_of(ran)["invents"] == "rule"


def test_a_gap_filling_judge_without_a_gap_is_a_warning_and_no_error(tmp_path: Path) -> None:
    ran = carried_out(
        tmp_path,
        None,
        case_rows=ABSTENTION_CASES[:2],
        output_rows=ABSTENTION_OUTPUTS[:2],
        judges=[{"name": "abstention", "model": "m"}],
    )
    assert ran.error is None
    assert ran.asked == []
    assert ran.warnings["judge_not_asked"] == (
        "judge abstention applies to none of 2 cases: the abstained flag says (1), grounded is false (1)"
    )
    assert ran.metrics["overall"]["abstention_accuracy"]["n"] == 2


SUPPORTS = [{"rel_path": "old.md", "date": "2023-01-01"}, {"rel_path": "new.md", "date": "2024-01-01"}]
BOTH = [{"rel_path": "old.md"}, {"rel_path": "new.md"}]


def conflict_case(case_id: str, rule: str = "acknowledge_both") -> dict[str, Any]:
    return case(case_id, gold_supports=SUPPORTS, recency_conflict_rule=rule)


CONFLICT_CASES = [
    conflict_case("says"),
    conflict_case("hides"),
    conflict_case("onecited"),
    conflict_case("mumbled"),
    conflict_case("blank"),
    conflict_case("errs"),
    conflict_case("other", "cite_both"),
    case("none"),
]
CONFLICT_OUTPUTS = [
    output("says", answer="text of says", references=BOTH),
    output("hides", answer="text of hides", references=BOTH),
    output("onecited", answer="text of onecited", references=BOTH[:1]),
    output("mumbled", answer="text of mumbled", references=BOTH),
    output("blank", answer=" ", references=BOTH),
    output("errs", answer=None, error={"kind": "timeout"}),
    output("other", answer="text of other", references=BOTH),
    output("none", answer="text of none"),
]
CONFLICT_REPLIES = {
    "text of says": yes("states_conflict"),
    "text of hides": no("states_conflict"),
    "text of onecited": yes("states_conflict"),
    "text of mumbled": '{"reasoning": "hm", "states_conflict": "maybe"}',
}


def conflict_run(folder: Path, judges: list[dict[str, Any]]) -> Ran:
    return carried_out(
        folder,
        by_answer(CONFLICT_REPLIES),
        case_rows=CONFLICT_CASES,
        output_rows=CONFLICT_OUTPUTS,
        judges=judges,
    )


def test_both_cited_and_the_conflict_stated_is_what_acknowledge_both_asks_for(tmp_path: Path) -> None:
    ran = conflict_run(tmp_path, [{"name": "conflict", "model": "m"}])
    assert ran.error is None
    assert set(ran.judgments) == {"says", "hides", "onecited", "mumbled"}
    assert scores_of(ran, "recency_conflict") == {
        "says": 1.0,
        "hides": 0.0,
        "onecited": 0.0,
        "mumbled": "failed: judge invalid",
        "blank": 0.0,
        "errs": "failed: timeout",
        "other": 1.0,
        "none": "n/a: no gold_supports",
    }
    figure = ran.metrics["overall"]["recency_conflict"]
    assert (figure["value"], figure["n"], figure["n_error"], figure["n_not_applicable"]) == (0.4, 5, 2, 1)
    own = ran.metrics["overall"]["conflict"]
    # says and onecited of three; mumbled, blank and errs have no verdict
    assert (own["value"], own["n"], own["n_error"], own["n_not_applicable"]) == (0.6667, 3, 3, 2)


def test_without_the_conflict_judge_acknowledge_both_does_not_apply(tmp_path: Path) -> None:
    ran = conflict_run(tmp_path, [])
    found = scores_of(ran, "recency_conflict")
    assert {found[name] for name in ("says", "hides", "onecited", "mumbled", "blank")} == {
        "n/a: needs the conflict judge"
    }
    assert found["other"] == 1.0


@pytest.mark.parametrize(
    ("judge", "answer", "key"),
    [("abstention", "I do not know.", "abstains"), ("conflict", "The notes disagree.", "states_conflict")],
)
def test_the_embedded_baseline_plays_both(tmp_path: Path, judge: str, answer: str, key: str) -> None:
    ran = carried_out(
        tmp_path,
        None,
        case_rows=[conflict_case("a"), conflict_case("b")],
        output_rows=[output("a", answer=answer), output("b", answer="Kiln b is fired at 1240 degrees.")],
        models={"m": {"provider": "lexical", "model": "overlap-2"}},
        judges=[{"name": judge, "model": "m"}],
    )
    assert ran.error is None
    assert ran.judgments["a"]["verdict"]["answer"] is True
    assert ran.judgments["b"]["verdict"]["answer"] is False
    assert key in ran.judgments["a"]["raw_reply"]
    assert ran.metrics["overall"][judge]["value"] == 0.5


def test_a_spot_check_compares_the_answers_of_a_yes_no_judge(tmp_path: Path) -> None:
    ran = carried_out(
        tmp_path,
        by_answer({"text of declines": yes("abstains"), "text of invents": no("abstains")}),
        case_rows=ABSTENTION_CASES[3:5],
        output_rows=ABSTENTION_OUTPUTS[3:5],
        models={
            "m": {"provider": "lexical", "model": "overlap-2"},
            "second": {"provider": "lexical", "model": "overlap-strict-2"},
        },
        judges=[{"name": "abstention", "model": "m"}],
        spot_check={"n": 20, "model": "second"},
    )
    report = ran.metrics["judge_reliability"]["by_judge"]["abstention"]
    assert (report["spot_check_n"], report["disagreement_rate"]) == (2, 0.0)
    assert [row["first"] for row in report["sample"]] == [False, False]


def test_labels_of_a_yes_no_judge_are_answers_and_not_passes(abstained: Ran) -> None:
    labels = {"declines": "yes", "invents": "no", "shy": "no"}
    rows = [{"case_id": case_id, "label": label} for case_id, label in labels.items()]
    path = write_lines(abstained.folder.parent / "labels.jsonl", rows)
    found = calibrate(str(abstained.folder), CalibrationWanted(labels=path), Options(), Observer())[1]["judges"]
    text = "\n".join(calibration_lines({"run_id": "r", "judges": found}))
    # people say yes once, which the judge does too, and no twice, of which it does once
    assert "says yes in 1.000 (0.206 to 1.000) of 1 where people do, no in 0.500 (0.095 to 0.905) of 2" in text
    assert "+0.333 of the share of yes" in text
    assert "no (0) and yes (1), people in rows" in text
    summary = (abstained.folder / "summary.md").read_text(encoding="utf-8")
    page = (abstained.folder / "report.html").read_text(encoding="utf-8")
    assert "No (0) and yes (1)" in page
    for shown in (text, summary, page):
        assert "people pass" not in shown
        assert "figures of scores do not apply" not in shown
