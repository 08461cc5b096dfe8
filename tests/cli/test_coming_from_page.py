"""docs/coming-from.md: judgekit's side of each pair does the job that the page says, against a scripted model."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgekit.testing import FaultServer, Reply, Request, chat_reply, verdict
from tests.builders import REPOSITORY
from tests.cli.fork_server import judgekit
from tests.cli.test_pytest_plugin import outcome

pytestmark = pytest.mark.slow

PAGE = (REPOSITORY / "docs" / "coming-from.md").read_text(encoding="utf-8")
MODEL = re.compile(r'("?)model\1: "?gpt-4\.1-2025-04-14"?')
MISSED = "pass_rate >= 0.8: missed, 0.6667"


def answer(request: Request) -> Reply:
    """The verdict about an answer, as the judge asks for it."""
    wrong = ["cooling takes two days"] if "cooling takes two days" in request.text else []
    if "Is every claim of the answer supported" in request.text:
        return chat_reply(json.dumps({"reasoning": "as the passages say", "answer": not wrong}))
    return verdict(2 if wrong else 5, supported=["the rest"], unsupported=wrong)


def ours(heading: str, base_url: str) -> list[str]:
    """judgekit's blocks of a section, with the address of the scripted model."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(?:python|json|yaml)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[1:]
    assert blocks
    return [MODEL.sub(rf'\g<0>, "base_url": "{base_url}"', block) for block in blocks]


@pytest.fixture
def base_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of the scripted model; the answers of the page are in the folder."""
    [answers] = re.findall(r"^```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "answers.jsonl").write_text(answers, encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultServer(answer) as server:
        yield server.base_url


@pytest.mark.parametrize("heading", ["Ragas", "MLflow"])
def test_the_python_of_a_section_fails_by_its_gate(heading: str, base_url: str, tmp_path: Path) -> None:
    [code] = ours(heading, base_url)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.strip().splitlines()[-1].endswith(MISSED), done.stderr


@pytest.mark.parametrize(("heading", "name"), [("promptfoo", "config.yaml"), ("Inspect", "config.json")])
def test_the_config_of_a_section_fails_by_its_gate(heading: str, name: str, base_url: str, tmp_path: Path) -> None:
    [config] = ours(heading, base_url)
    (tmp_path / name).write_text(config, encoding="utf-8")
    done = judgekit("run", name, cwd=tmp_path, OPENAI_API_KEY="none")
    assert done.returncode == 1, done.text
    assert MISSED in done.stdout


def test_the_pytest_of_the_page_fails_for_the_third_answer_alone(base_url: str, tmp_path: Path) -> None:
    config, code = ours("DeepEval", base_url)
    (tmp_path / "judgekit.json").write_text(config, encoding="utf-8")
    (tmp_path / "test_answers.py").write_text(code, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    code_, text = outcome(tmp_path)
    assert (code_, "1 failed, 2 passed" in text) == (1, True), text
    assert "test_grounded[row2]" in text
