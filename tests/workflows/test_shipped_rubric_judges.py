"""Judges that are shipped as files alone: answer relevance, context precision, context recall."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError
from judgekit.testing import FaultServer, Reply, Request, chat_reply
from judgekit.testing.scripts import Script
from tests.builders import case, output, read_json, read_lines, write_suite

Row = dict[str, Any]

HITS = [{"chunk_id": f"c{n}", "text": f"text {n}"} for n in (1, 2, 3)]


def criteria_reply(met: dict[str, bool]) -> Reply:
    entries = [{"id": name, "evidence": "as it says", "met": value} for name, value in met.items()]
    return chat_reply(json.dumps({"reasoning": "one by one", "criteria": entries}))


def run_with(tmp_path: Path, judge: str, script: Script, cases: list[Row], outputs: list[Row]) -> Path:
    with FaultServer(script) as server:
        config = write_suite(
            tmp_path, server.base_url, case_rows=cases, output_rows=outputs, judges=[{"name": judge, "model": "m"}]
        )
        judgekit.run(config, run_id="r")
    return tmp_path / "results" / "r"


def overall(run_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_json(run_dir / "metrics.json")["overall"]
    return found


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def judged_precision(tmp_path: Path, met: dict[str, bool]) -> dict[str, Any]:
    outputs = [output("q1", retrieved=HITS)]
    return overall(run_with(tmp_path, "context_precision", criteria_reply(met), [case("q1")], outputs))


def test_context_precision_is_the_share_of_useful_passages_and_their_order(tmp_path: Path) -> None:
    # Passages 1 and 3 of three are useful: precision 2/3, at 1: 1, at 3: 2/3, at 5: 2/5.
    # nDCG = (1 + 1/log2(4)) / (1 + 1/log2(3)) = 1.5 / 1.6309 = 0.9197.
    met = {"passage-1": True, "passage-2": False, "passage-3": True}
    found = judged_precision(tmp_path, met)
    assert found["context_precision"]["value"] == pytest.approx(2 / 3, abs=1e-4)
    assert [found[f"context_precision@{k}"]["value"] for k in (1, 3, 5)] == pytest.approx([1, 2 / 3, 0.4], abs=1e-4)
    assert found["context_precision.ndcg"]["value"] == pytest.approx(1.5 / (1 + 1 / math.log2(3)), abs=1e-4)


def test_where_no_passage_is_useful_their_order_says_nothing(tmp_path: Path) -> None:
    met = dict.fromkeys(("passage-1", "passage-2", "passage-3"), False)
    found = judged_precision(tmp_path, met)
    assert found["context_precision"]["value"] == 0
    assert (found["context_precision.ndcg"]["value"], found["context_precision.ndcg"]["n_not_applicable"]) == (None, 1)


def test_a_reply_that_leaves_out_a_passage_is_a_failure_and_no_average(tmp_path: Path) -> None:
    whole = dict.fromkeys(("passage-1", "passage-2", "passage-3"), True)
    cases = [case("q1"), case("q2")]
    outputs = [output("q1", retrieved=HITS), output("q2", retrieved=HITS)]

    def answer(request: Request) -> Reply:
        return criteria_reply({"passage-1": True} if "first question" in request.text else whole)

    cases[0]["question"] = "the first question"
    run_dir = run_with(tmp_path, "context_precision", answer, cases, outputs)
    found = overall(run_dir)
    assert (found["context_precision"]["value"], found["context_precision"]["n"]) == (1, 1)
    assert found["context_precision"]["n_error"] == 1
    [failure] = [item["failure"] for item in read_lines(run_dir / "judgments.jsonl") if item["failure"]]
    assert failure["kind"] == "invalid"
    assert "passage-2" in failure["message"]


def test_context_recall_goes_through_key_facts_or_the_sentences_of_the_reference(tmp_path: Path) -> None:
    cases = [
        case("q1", key_facts=["48 hours", "in the fridge"], reference_answers=["Not looked at. At all."]),
        case("q2", reference_answers=["It is closed on Monday. On Sunday it opens at ten."]),
        case("q3"),
    ]
    outputs = [output(f"q{n}", retrieved=HITS) for n in (1, 2, 3)]

    def answer(request: Request) -> Reply:
        return criteria_reply({"statement-1": True, "statement-2": "48 hours" in request.text})

    run_dir = run_with(tmp_path, "context_recall", answer, cases, outputs)
    found = overall(run_dir)["context_recall"]
    # q1: 2 of 2, q2: 1 of 2, q3 has no reference.
    assert (found["value"], found["n"], found["n_not_applicable"]) == (0.75, 2, 1)
    asked = {item["case_id"]: item["variables"]["criteria"] for item in read_lines(run_dir / "judge_inputs.jsonl")}
    assert {entry["text"].strip() for entry in asked["q2"]} == {"It is closed on Monday.", "On Sunday it opens at ten."}


def test_answer_relevance_is_scored_1_to_5(tmp_path: Path) -> None:
    reply = chat_reply(json.dumps({"reasoning": "to the point", "score": 4}))
    found = overall(run_with(tmp_path, "answer_relevance", reply, [case("q1")], [output("q1")]))
    assert (found["answer_relevance"]["value"], found["answer_relevance_pass_rate"]["value"]) == (4, 1)
    assert found["answer_relevance.distribution"] == {"1": 0, "2": 0, "3": 0, "4": 1, "5": 0}


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("faithfulness", "groundedness"),
        ("Answer-Relevancy", "answer_relevance"),
        ("contextual_recall", "context_recall"),
        ("context_relevancy", "context_precision"),
    ],
)
def test_names_of_other_tools_are_hints(tmp_path: Path, name: str, here: str) -> None:
    with pytest.raises(ConfigError, match=f"that is '{here}' here"):
        run_with(tmp_path, name, "never asked", [case("q1")], [output("q1")])
