"""What README and docs/python.md show of Python runs as it stands, and prints what they say."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import judgekit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == PAGE.count("```python") == 4
    for code, said in blocks:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)
        lines = printed.getvalue().splitlines()
        assert [line for line in said.splitlines() if line not in lines] == []


def test_ten_lines_lead_from_a_frame_to_a_judged_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = README[README.index("## From Python") :]
    (code, *_) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 10
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["judged"]["groundedness"].tolist() == [4.0, 1.0]
    assert names["result"].folder.parent == tmp_path / "results"


def test_the_page_names_what_a_result_has_and_every_function_of_a_run() -> None:
    own = {name for name in vars(judgekit.RunResult) if not name.startswith("_")} | {"folder", "summary"}
    assert {name for name in own if f"`{name}" not in PAGE} == set()
    functions = [name for name, module in judgekit._PUBLIC.items() if module.startswith("judgekit.api.")]
    assert [name for name in functions if name not in PAGE] == []
