"""scores.jsonl: what does not apply is short, and every score reads back in its order."""

import json

import pytest

from judgekit.core.scores import Failed, NotApplicable, Outcomes
from judgekit.storage.score_lines import ScoreReader, ScoreWriter

NONE = NotApplicable("no gold_supports")


def written(*cases: Outcomes) -> list[bytes]:
    writer = ScoreWriter(cases[0])
    found = [writer.header()]
    for number, outcomes in enumerate(cases):
        found += writer.lines(f"c{number}", outcomes, {})
    return found


def test_cases_with_the_same_pattern_name_it_and_it_is_written_once() -> None:
    outcomes: Outcomes = {"mrr": NONE, "hit@1": 1.0, "recall": NONE}
    lines = [json.loads(line) for line in written(outcomes, outcomes)]
    assert lines[0]["names"] == ["mrr", "hit@1", "recall"]
    assert [line for line in lines if "not_applicable" in line] == [
        {"case_id": None, "name": None, "pattern": 1, "not_applicable": {"no gold_supports": ["mrr", "recall"]}}
    ]
    assert [line["case_id"] for line in lines if line.get("pattern") == 1 and line["case_id"]] == ["c0", "c1"]


def test_scores_read_back_in_the_order_of_their_names() -> None:
    lines = written({"mrr": NONE, "hit@1": 0.1, "judge": Failed("timeout", by_judge=True), "other": NotApplicable("x")})
    ((first, second, third, fourth),) = ScoreReader().by_case(lines)
    assert (first.name, first.value, first.reason) == ("mrr", None, "n/a: no gold_supports")
    assert (second.name, second.value, second.reason) == ("hit@1", 0.1, None)
    assert (third.name, third.reason, fourth.reason) == ("judge", "failed: timeout", "n/a: x")


def test_a_rare_pattern_stands_in_the_line_of_its_case() -> None:
    cases: list[Outcomes] = [{"mrr": NotApplicable(f"reason {number}")} for number in range(1002)]
    lines = written(*cases)
    assert json.loads(lines[-1]) == {"case_id": "c1001", "name": None, "not_applicable": {"reason 1001": ["mrr"]}}
    assert [scores[0].reason for scores in ScoreReader().by_case(lines)][-1] == "n/a: reason 1001"


def test_an_older_run_has_a_line_for_every_score() -> None:
    lines = [b'{"case_id": "a", "name": "mrr", "value": null, "reason": "n/a: x"}']
    assert [[score.name for score in scores] for scores in ScoreReader().by_case(lines)] == [["mrr"]]


def test_a_pattern_that_is_nowhere_is_damage() -> None:
    with pytest.raises(ValueError, match="no pattern 7"):
        list(ScoreReader().by_case([b'{"case_id": "a", "name": null, "pattern": 7}']))
