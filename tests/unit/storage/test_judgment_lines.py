"""Lines of judgments and judge inputs: what is left out of them comes back when they are read."""

import json
from typing import Any

import pytest

from judgekit.core.cases import Usage
from judgekit.core.judgments import Attempt, CriterionVerdict, JudgeFailure, JudgeInput, Judgment, Quote, Verdict
from judgekit.storage.judgment_lines import JudgmentLine, input_line, judgment_fields, judgment_line, line_of

ALWAYS = {
    *("case_id", "judge", "role", "verdict", "failure", "raw_reply", "finish_reason", "flags", "created_at"),
    *("prompt_version", "prompt_sha256", "input_sha256", "key", "parameters", "parser_version"),
    *("model_id", "provider", "model", "served_model", "from_cache", "n_requests"),
}


def judged(**fields: Any) -> Judgment:
    start = {name: name for name in ("case_id", "judge", "prompt_version", "prompt_sha256", "input_sha256", "key")}
    about = {name: name for name in ("model_id", "provider", "model", "created_at")}
    return Judgment.model_validate({**start, **about, "parameters": {"seed": 0}, "parser_version": 2, **fields})


FAILED = JudgeFailure(kind="invalid", message="no JSON")
FULL = judged(
    role="spot_check",
    check="run",
    copied_from="a",
    served_model="m-1",
    key_parts={"attempt": "2"},
    temperature_accepted=False,
    verdict=Verdict(
        answer=False,
        criteria=(CriterionVerdict(id="a", met=None),),
        supported_claims=(),
        quotes=(Quote(claim="c", quote="q"),),
        probabilities={"yes": 0.25},
    ),
    earlier_attempts=(Attempt(key="k", raw_reply=None, failure=FAILED),),
    flags=("inconsistent",),
    usage=Usage(prompt_tokens=3),
    cost_usd=1e-7,
    n_requests=2,
    latency_seconds=0.0,
)


@pytest.mark.parametrize("judgment", [judged(), judged(verdict=Verdict(score=0)), judged(failure=FAILED), FULL])
def test_a_judgment_reads_back_as_it_was(judgment: Judgment) -> None:
    line = line_of(judgment)

    assert Judgment.model_validate_json(line) == judgment
    assert Judgment.model_validate(judgment_fields(line)) == judgment
    assert Judgment.model_validate_json(judgment.model_dump_json()) == judgment  # as older versions wrote it


def test_only_what_is_looked_for_is_there_at_its_default() -> None:
    record = json.loads(line_of(judged(verdict=Verdict(score=4))))

    assert set(record) == ALWAYS
    assert record["verdict"] == {"score": 4, "reasoning": ""}
    assert json.loads(line_of(judged(verdict=Verdict(answer=False))))["verdict"] == {
        "score": None,
        "answer": False,
        "reasoning": "",
    }


def test_a_lone_surrogate_is_kept_as_a_mark() -> None:
    fields = {**vars(judged(verdict=Verdict(score=4, reasoning="a\ud800"))), "raw_reply": "b\udfff"}

    record = json.loads(judgment_line(JudgmentLine(**fields)))

    assert (record["verdict"]["reasoning"], record["raw_reply"]) == ("a\ufffd", "b\ufffd")
    assert set(record) == ALWAYS


def test_a_judge_input_is_written_in_full() -> None:
    variables = {"question": "wo\u00df", "passages": [{"number": 1, "text": "b"}], "note": None}
    item = JudgeInput(case_id="a", judge="j", variables=variables)

    assert input_line(item) == item.model_dump_json().encode()
    torn = item.model_copy(update={"variables": {"question": "a\ud800"}})
    assert json.loads(input_line(torn))["variables"] == {"question": "a\ufffd"}
