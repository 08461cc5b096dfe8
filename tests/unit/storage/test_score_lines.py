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
    (found,) = ScoreReader().by_case(lines)
    assert list(found.scores.items()) == [
        ("mrr", (None, "n/a: no gold_supports")),
        ("hit@1", (0.1, None)),
        ("judge", (None, "failed: timeout")),
        ("other", (None, "n/a: x")),
    ]
    about_none = [line for line in lines if json.loads(line)["case_id"] is None]
    assert ScoreReader(about_none).of_case("c0", [line for line in lines if line not in about_none]) == found


def test_scores_without_a_line_are_left_out_and_one_with_two_is_damage() -> None:
    header, *lines = written({"mrr": 0.5, "hit@1": 1.0, "recall": NONE})
    (found,) = ScoreReader().by_case([header, *lines[1:]])
    assert found.scores == {"hit@1": (1.0, None), "recall": (None, "n/a: no gold_supports")}
    for twice in (lines[0], lines[-1]):
        with pytest.raises(ValueError, match="a score of case 'c0' stands there twice"):
            list(ScoreReader().by_case([header, *lines, twice]))


def test_a_rare_pattern_stands_in_the_line_of_its_case() -> None:
    cases: list[Outcomes] = [{"mrr": NotApplicable(f"reason {number}")} for number in range(1002)]
    lines = written(*cases)
    assert json.loads(lines[-1]) == {"case_id": "c1001", "name": None, "not_applicable": {"reason 1001": ["mrr"]}}
    assert [case.scores["mrr"] for case in ScoreReader().by_case(lines)][-1] == (None, "n/a: reason 1001")


def test_an_older_run_has_a_line_for_every_score() -> None:
    lines = [b'{"case_id": "a", "name": "mrr", "value": null, "reason": "n/a: x"}']
    assert [list(case.scores) for case in ScoreReader().by_case(lines)] == [["mrr"]]


def test_a_pattern_that_is_nowhere_is_damage() -> None:
    with pytest.raises(ValueError, match="no pattern 7"):
        list(ScoreReader().by_case([b'{"case_id": "a", "name": null, "pattern": 7}']))
