"""Results of promptfoo, by the documented shape of its output files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers import cases_of, complaint, outputs_of, said, written


def result(number: int, provider: str = "openai:gpt", **changes: Any) -> dict[str, Any]:
    return {
        "promptIdx": 0,
        "testIdx": number,
        "prompt": {"raw": "Answer: q", "label": "short"},
        "provider": {"id": provider, "label": ""},
        "vars": {"question": f"q{number}?", "context": ["c1", "c2"], "topic": "bread"},
        "testCase": {
            "description": "d",
            "assert": [
                {"type": "equals", "value": "ref"},
                {"type": "contains-all", "value": ["a", "{{topic}}"]},
                {"type": "not-contains", "value": "b"},
                {"type": "llm-rubric", "value": "is polite"},
            ],
        },
        "response": {"output": f"a{number}", "tokenUsage": {"prompt": 5, "completion": 2, "total": 7}},
        "success": False,
        "failureReason": 1,
        "score": 0,
        "latencyMs": 1500,
        "gradingResult": {"pass": False, "score": 0.5, "reason": "no", "componentResults": []},
        "namedScores": {},
        **changes,
    }


def summary(*results: Any) -> str:
    body = {"version": 3, "prompts": [], "results": list(results), "stats": {}}
    return json.dumps({"evalId": "eval-1", "results": body, "config": {}}, indent=1)


CASE = {
    "id": "0",
    "question": "q0?",
    "must_contain": ["a"],
    "forbidden": ["b"],
    "reference_answers": ["ref"],
    "metadata": {"vars": {"topic": "bread"}, "description": "d"},
}
OUTPUT = {
    "case_id": "0",
    "answer": "a0",
    "retrieved": [{"text": "c1"}, {"text": "c2"}],
    "latency_seconds": {"total": 1.5},
    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
    "metadata": {"gradingResult": {"pass": False, "score": 0.5, "reason": "no"}},
}


@pytest.mark.parametrize("name", ["r.json", "r.jsonl"])
def test_a_result_is_a_case_and_an_output(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, summary(result(0)) if name == "r.json" else json.dumps(result(0)))
    assert [said(case) for case in cases_of(path)] == [CASE]
    assert [said(output) for output in outputs_of(path)] == [OUTPUT]


def test_one_of_several_systems_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", summary(result(0), result(0, "other"), result(1), result(1, "other")))
    assert [case.id for case in cases_of(path)] == ["0", "1"]
    assert complaint(path, "outputs") == (
        "r.json: holds 2 systems, 'openai:gpt | short', 'other | short'; name one with \"part\""
    )
    assert [output.case_id for output in outputs_of(path, part="other")] == ["0", "1"]
    assert "no system 'third'" in complaint(path, "outputs", part="third")
    assert "no system 'short'" in complaint(path, "outputs", part="short")  # both have it


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response": {"error": "429"}, "failureReason": 2}, {"kind": "provider_error", "message": "429"}),
        ({"response": {}, "error": "no key", "failureReason": 2}, {"kind": "provider_error", "message": "no key"}),
        ({"error": "Expected output to equal"}, None),
    ],
)
def test_a_provider_that_failed_is_an_error_and_a_failed_assertion_is_not(
    tmp_path: Path, changes: dict[str, Any], error: dict[str, str] | None
) -> None:
    path = written(tmp_path, "r.json", summary(result(0, **changes)))
    assert said(outputs_of(path)[0]).get("error") == error


def test_an_object_as_answer_is_its_json(tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", summary(result(0, response={"output": {"a": "\u00e9"}})))
    assert outputs_of(path)[0].answer == '{"a": "\u00e9"}'


def test_the_question_is_never_guessed(tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", summary(result(0, vars={"topic": "bread", "tone": "x"})))
    assert "vars: which of topic, tone is the question? Say so" in complaint(path)
    assert cases_of(path, fields={"question": "vars.topic"})[0].question == "bread"
    path = written(tmp_path, "r.json", summary(result(0, vars={"anything": "only one"})))
    assert cases_of(path)[0].question == "only one"


def test_errors_name_the_place(tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", summary(result(0), "text"))
    assert "$.results.results[1]: expected an object, found a text" in complaint(path)
