"""Judges as data that cannot be: one line with its place, exit code 2, before any call."""

from pathlib import Path
from typing import Any

import pytest

from judgekit.storage.prompt_files import shipped
from tests.builders import write_suite
from tests.cli.fork_server import Ended
from tests.cli.fork_server import judgekit as run_command

OWN = {"name": "tone", "ask": "Is it polite?", "model": "m"}
NOWHERE = "http://127.0.0.1:9/v1"


def validated(folder: Path, judge: dict[str, Any], **config: Any) -> Ended:
    path = write_suite(folder, NOWHERE, judges=[judge], **config)
    return run_command("validate", str(path), cwd=folder)


def refused(done: Ended) -> str:
    """The one line of an error."""
    [line] = done.stderr.splitlines()
    assert (done.returncode, line.startswith("judgekit: error: ")) == (2, True), line
    return line


@pytest.mark.parametrize(
    ("judge", "place", "message"),
    [
        ({"scale": [3, 3]}, "$.judges[0].scale", "3 to 3 has no two points; write the lowest score first"),
        ({"labels": {"On": "x", "on": "y"}}, "$.judges[0].labels", "'On' and 'on' differ by case only"),
        (
            {"criteria": [{"id": "a", "text": "x"}, {"id": "b", "text": "y", "weight": -1}]},
            "$.judges[0].criteria",
            "the weights sum to 0",
        ),
        ({"criteria": [{"id": "a", "text": "x"}] * 2}, "$.judges[0].criteria", "id 'a' comes twice"),
        ({"criteria": [{"id": "a"}]}, "$.judges[0].criteria[0].text", "required, but missing"),
        ({"criteria": "cases"}, "$.judges[0].criteria", "expected a list or an object or 'case'"),
        ({"ask": "Is {{ answer }} fine?", "scale": [1, 5]}, "$.judges[0].ask", "{{ answer }} is not filled in here"),
        ({"ask": "x" * 50_000, "scale": [1, 5]}, "$.judges[0].ask", "at most 20000 characters"),
        ({"ask": "  ", "scale": [1, 5]}, "$.judges[0].ask", "is blank"),
        ({"scale": [1, 5], "sees": ["anwser"]}, "$.judges[0].sees", "did you mean 'answer'?"),
        ({"scale": [1, 5], "pass": 6}, "$.judges[0].pass", "expected a score above 1 and up to 5, found 6"),
        ({"labels": {"on": "x", "off": "y"}, "pass": ["onn"]}, "$.judges[0].pass", "did you mean 'on'?"),
        ({"yes_no": {"pass": "maybe"}}, "$.judges[0].yes_no.pass", "'yes', 'no'"),
        ({"scale": [1, 5], "yes_no": True}, "$.judges[0]", "scale and yes_no are two kinds of verdict; keep one"),
        ({}, "$.judges[0]", "say what a verdict is: scale, yes_no, labels, criteria or preference"),
        ({"scale": [1, 5], "levels": {"9": "x"}}, "$.judges[0].levels", "9 is off the scale of 1 to 5"),
        ({"scale": [1, 5], "args": {"pass_score": 4}}, "judges[0]", 'tone takes what stands beside "ask"'),
        ({"name": "groundedness", "scale": [1, 5]}, "judges[0]", "give your own another name"),
        ({"name": "to.ne", "scale": [1, 5]}, "judges[0]", "cannot name a judge"),
    ],
)
def test_a_judge_that_cannot_be_is_one_line(tmp_path: Path, judge: dict[str, Any], place: str, message: str) -> None:
    line = refused(validated(tmp_path, {**OWN, **judge}))
    assert f"{place}: " in line
    assert message in line


def wording(folder: Path, judge: str, version: str, text: str) -> None:
    path = folder / "prompts" / judge / f"{version}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'judge = "{judge}"\nversion = "{version}"\n{text}', encoding="utf-8")


def test_a_wording_of_a_shipped_judge_with_another_scale_is_refused(tmp_path: Path) -> None:
    text = (shipped("prompts") / "correctness" / "v1.toml").read_text(encoding="utf-8")
    body = text.partition('version = "v1"\n')[2].replace("[0, 1, 2, 3, 4, 5]", "[1, 2, 3]")
    wording(tmp_path, "correctness", "tone", body)
    judge = {"name": "correctness", "prompt_version": "tone", "model": "m"}
    line = refused(validated(tmp_path, judge, prompts_dir="prompts"))
    assert "prompts/correctness/tone.toml: $.reply_schema.properties.score: correctness is judged by 0 to 5" in line
    assert 'make it a judge of its own with "ask"' in line


def test_a_question_in_the_folder_of_a_shipped_judge_is_refused(tmp_path: Path) -> None:
    wording(tmp_path, "correctness", "tone", 'ask = "Is it polite?"\nscale = [1, 5]\n')
    judge = {"name": "correctness", "prompt_version": "tone", "model": "m"}
    assert "move the file to a folder with another name" in refused(validated(tmp_path, judge, prompts_dir="prompts"))


def test_a_judge_in_a_file_is_named_like_one_in_a_config(tmp_path: Path) -> None:
    wording(tmp_path, "to.ne", "v1", 'ask = "Is it polite?"\nscale = [1, 5]\n')
    line = refused(validated(tmp_path, {"name": "to.ne", "model": "m"}, prompts_dir="prompts"))
    assert "judges[0]: 'to.ne' cannot name a judge; use up to 64 letters, digits, `_` and `-`" in line


def test_two_wordings_of_different_kinds_are_refused(tmp_path: Path) -> None:
    wording(tmp_path, "tone", "v1", 'ask = "Is it polite?"\nscale = [1, 5]\n')
    wording(tmp_path, "tone", "v2", 'ask = "Is it polite?"\nyes_no = true\n')
    judge = {"name": "tone", "model": "m"}
    line = refused(validated(tmp_path, judge, prompts_dir="prompts", spot_check={"prompt_version": "v2"}))
    assert "prompts/tone/v2.toml: its verdicts are of another kind than those of tone" in line


def test_what_is_wrong_in_a_prompt_file_is_said_with_its_place(tmp_path: Path) -> None:
    wording(tmp_path, "tone", "v1", 'ask = "Is it polite?"\nscale = [1, 1]\n')
    line = refused(validated(tmp_path, {"name": "tone", "model": "m"}, prompts_dir="prompts"))
    assert "prompts/tone/v1.toml: $.scale: 1 to 1 has no two points" in line
