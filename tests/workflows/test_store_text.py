"""Runs that keep no texts: nothing of them is on disk, and no figure is made of what is left."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.cases import SystemOutput
from judgekit.core.errors import ConfigError, InputError
from judgekit.core.stored_text import as_stored, characters_kept
from judgekit.systems.python import Python
from tests.builders import case

SECRET = "The patient is called Marigold Quince and lives by the kiln."
ANSWER = {
    "answer": SECRET,
    "retrieved": [{"chunk_id": "k1", "text": SECRET, "metadata": {"title": SECRET, "page": 3}}],
    "turns": [{"role": "assistant", "text": SECRET, "tool_calls": [{"name": "find", "arguments": {"who": SECRET}}]}],
    "metadata": {"note": SECRET, "n": 4},
}
CASES = [case(f"c{number}", must_contain=["1240"], expected_chunk_ids=["k1"]) for number in (1, 2)]


def recorded(tmp_path: Path, store_text: str, **more: Any) -> judgekit.RunResult:
    system = Python(function=lambda _: ANSWER, version="1")
    return judgekit.evaluate(CASES, system=system, store_text=store_text, results_dir=tmp_path / "results", **more)


def test_nothing_of_the_texts_is_on_disk_and_ids_are(tmp_path: Path) -> None:
    result = recorded(tmp_path, "none")
    for path in (tmp_path / "results").rglob("*"):
        if path.is_file():
            assert b"Marigold" not in path.read_bytes(), path
    (first, _) = (record.output for record in result.cases())
    assert first is not None
    assert (first.answer, first.answer_left_out) == ("[not stored]", True)
    assert first.retrieved[0].model_dump(exclude_defaults=True) == {
        "chunk_id": "k1", "text_truncated": True, "metadata": {"page": 3}
    }  # fmt: skip
    assert first.metadata == {"n": 4}
    assert result.overall["hit@5"].value == 1.0
    assert result.overall["keyword_groundedness"].n == 0
    assert result.summary.operational["empty_response_rate"].value == 0.0
    reasons = {score.reason for score in result.scores if score.name in ("keyword_groundedness", "abstained")}
    assert reasons == {"n/a: text not stored"}


def test_the_beginning_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    (first, _) = (record.output for record in recorded(tmp_path, "truncated(11)").cases())
    assert first is not None
    assert (first.answer, first.answer_left_out) == ("The patient", True)
    assert (first.retrieved[0].text, first.retrieved[0].text_truncated) == ("The patient", True)
    short = as_stored(SystemOutput(case_id="q", answer="Yes."), 11)
    assert (short.answer, short.answer_left_out) == ("Yes.", False)


def test_a_judge_needs_what_was_dropped(tmp_path: Path) -> None:
    models = {"m": {"provider": "lexical", "model": "overlap-2"}}
    with pytest.raises(ConfigError, match=r"store_text: 'none' leaves out texts that the judges read \(groundedness\)"):
        recorded(tmp_path, "none", judges=["groundedness"], models=models)
    lines = (recorded(tmp_path, "none").folder / "outputs.jsonl").read_text().splitlines()
    outputs = [json.loads(line) for line in lines]
    with pytest.raises(InputError, match=r"2 of 2 answers were recorded without their text \(store_text\)"):
        judgekit.evaluate(CASES, outputs, judges=["groundedness"], models=models, results_dir=tmp_path / "r")


@pytest.mark.parametrize(
    ("text", "n"), [(None, None), ("full", None), ("none", 0), ("truncated(200)", 200)]
)  # fmt: skip
def test_what_may_be_asked_for(text: str | None, n: int | None) -> None:
    assert characters_kept(text) == n


@pytest.mark.parametrize("text", ["some", "truncated", "truncated(0)", "truncated(-1)", "none "])
def test_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="store_text"):
        recorded(tmp_path, text)


def test_an_output_that_is_kept_whole_is_the_same() -> None:
    output = SystemOutput.model_validate({"case_id": "q", **ANSWER})
    assert as_stored(output, None) is output
