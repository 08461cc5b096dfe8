"""Formats are found by their file, or by the entry point of an installed package."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, InputError
from judgekit.storage.case_files import load_cases
from judgekit.storage.config_files import load_config
from judgekit.storage.format_names import known_formats
from judgekit.storage.reading import formats

ROOT = Path(__file__).parents[4]
READ = """
from pathlib import Path
from judgekit.core.data_files import DataFile
from judgekit.storage.case_files import load_cases
from tests.readers import load_outputs

path = Path("log.jsonl")
for source in (DataFile(path="log.jsonl"), DataFile(path="log.jsonl", format="chatlog")):
    [case], [output] = load_cases(source, path), load_outputs(source, path)
    print(case.id, case.question, case.metadata, output.answer)
"""


def test_each_file_of_the_package_is_a_format_that_messages_and_the_schema_name() -> None:
    assert set(formats()) == {path.stem for path in (ROOT / "judgekit/storage/formats").glob("[a-z]*.py")}
    assert set(formats()) < set(known_formats())
    assert all(form.name == name for name, form in formats().items())


def test_the_format_of_the_contributing_page_is_read_where_a_package_brings_it(tmp_path: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [code] = re.findall(r"formats/chatlog.py`:\n\n```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "my_chatlog.py").write_text(code)
    (tmp_path / "my_chatlog-1.dist-info").mkdir()
    (tmp_path / "my_chatlog-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: my-chatlog\nVersion: 1\n"
    )
    points = "[judgekit.formats]\nchatlog = my_chatlog:Chatlog\n"
    (tmp_path / "my_chatlog-1.dist-info" / "entry_points.txt").write_text(points)
    (tmp_path / "log.jsonl").write_text('{"id": 7, "ask": "Who?", "reply": "Ada", "at": "noon"}\n')
    done = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["7 Who? {'at': 'noon'} Ada"] * 2


def test_a_format_that_is_not_known_is_named_with_its_line_and_the_nearest_one(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        '{"name": "s",\n "cases": {"path": "c.jsonl",\n  "format": "jsnl"},\n "system": {"path": "o.jsonl"}}'
    )
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    assert str(raised.value) == f"{path}:3: $.cases.format: no format called 'jsnl'; did you mean 'jsonl'?"
    with pytest.raises(InputError, match=r"c.jsonl: no format called 'trek'; did you mean 'trec'\?"):
        load_cases(DataFile(path="c.jsonl", format="trek"), tmp_path / "c.jsonl")
