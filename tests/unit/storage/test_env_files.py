"""The `.env` beside a config."""

from pathlib import Path

import pytest

from judgekit.core.errors import ConfigError
from judgekit.storage.env_files import read_env


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A_KEY=abc\n", {"A_KEY": "abc"}),
        ("# a comment\n\nexport A_KEY = 'a b' # more\n", {"A_KEY": "a b"}),
        ("\ufeffA_KEY=abc\r\nB=\r\n", {"A_KEY": "abc", "B": ""}),
        ('HOST=h\nURL="http://${HOST}/v1"\n', {"HOST": "h", "URL": "http://h/v1"}),
        ("", {}),
    ],
)
def test_lines_are_read_as_everywhere(tmp_path: Path, text: str, found: dict[str, str]) -> None:
    (tmp_path / ".env").write_text(text, encoding="utf-8", newline="")
    assert read_env(tmp_path) == found


@pytest.mark.parametrize("line", ["sk-0123456789", "A KEY=sk-0123456789", "A='sk-0123456789", "=sk-0123456789"])
def test_a_line_that_is_none_is_named_without_its_text(tmp_path: Path, line: str) -> None:
    (tmp_path / ".env").write_text(f"B=1\n{line}\nC=2\n")
    with pytest.raises(ConfigError, match=r"\.env:2: expected NAME=value") as caught:
        read_env(tmp_path)
    assert "sk-" not in str(caught.value)


def test_a_folder_of_that_name_is_no_file_of_variables(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert read_env(tmp_path) == {} == read_env(tmp_path / "gone")


def test_other_bytes_than_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_env(tmp_path)
