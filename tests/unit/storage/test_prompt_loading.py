"""Prompt files: found, refused, damaged."""

from pathlib import Path

import pytest

from judgekit.core.errors import ConfigError
from judgekit.storage.prompt_files import load_prompt, shipped

GOOD = '''judge = "groundedness"
version = "own1"
system = "Judge."
user = """
{{ answer | data("answer") }}
{{ reply_schema }}
"""
[reply_schema]
type = "object"
'''


def saved(folder: Path, text: str | bytes, version: str = "own1") -> Path:
    path = folder / "groundedness" / f"{version}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return folder


def complaint(folder: Path | None, judge: str = "groundedness", version: str = "own1") -> str:
    with pytest.raises(ConfigError) as caught:
        load_prompt(judge, version, [] if folder is None else [folder])
    return str(caught.value)


@pytest.mark.parametrize(
    "path", sorted(shipped("prompts").glob("*/*.toml")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_every_shipped_prompt_loads(path: Path) -> None:
    prompt = load_prompt(path.parent.name, path.stem)
    assert (prompt.judge, prompt.version) == (path.parent.name, path.stem)


def test_the_own_folder_comes_first_and_the_shipped_ones_stay_reachable(tmp_path: Path) -> None:
    saved(tmp_path, GOOD.replace("own1", "v1"), "v1")
    assert load_prompt("groundedness", "v1", [tmp_path]).system == "Judge."
    assert load_prompt("correctness", "v1", [tmp_path]).judge == "correctness"


def test_line_ends_and_a_byte_order_mark_do_not_change_the_hash(tmp_path: Path) -> None:
    plain = load_prompt("groundedness", "own1", [saved(tmp_path, GOOD)]).sha256
    assert load_prompt("groundedness", "own1", [saved(tmp_path, "\ufeff" + GOOD.replace("\n", "\r\n"))]).sha256 == plain


def test_an_unknown_version_names_the_nearest_one(tmp_path: Path) -> None:
    saved(tmp_path, GOOD)
    assert complaint(tmp_path, version="own2").endswith("; did you mean 'own1'?")
    assert "no prompt version 'zzz'" in complaint(tmp_path, version="zzz")
    assert "own1" in complaint(tmp_path, version="zzz")


@pytest.mark.parametrize(
    "name", ["../own1", "a/b", "/etc/passwd", "..", ".hidden", "", "a\nb", "a\\b", "own1\n", "a\0b"]
)
def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    saved(tmp_path, GOOD)
    assert complaint(tmp_path, version=name).startswith(f"prompt_version {name!r} is not a file name")
    assert complaint(tmp_path, judge=name).startswith(f"judge {name!r} is not a file name")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('judge = "groundedness"', "judge = ", "not valid TOML: Invalid value (at line 1, column 9)"),
        ('system = "Judge."\n', "", "$.system: required, but missing"),
        ('system = "Judge."', "system = 5", "$.system: expected a text, found a number"),
        ('system = "Judge."', 'system = "J"\nusr = "x"', "$.usr: unknown key; did you mean 'user'?"),
        ('judge = "groundedness"', 'judge = "other"', "says it is other/own1; file name and content must agree"),
        ('version = "own1"', 'version = "own2"', "says it is groundedness/own2"),
        ('type = "object"', "maximum = inf", "$.reply_schema: holds a date, NaN or infinity"),
        ('type = "object"', "since = 2024-01-01", "$.reply_schema: holds a date, NaN or infinity"),
        ('| data("answer")', "| data(", "prompt groundedness/own1: "),
        ("{{ reply_schema }}", "{% if x %}", "prompt groundedness/own1: "),
        ('| data("answer")', '| dta("answer")', "No filter named 'dta'"),
    ],
)
def test_a_damaged_prompt_says_which_file_and_what(tmp_path: Path, old: str, new: str, said: str) -> None:
    message = complaint(saved(tmp_path, GOOD.replace(old, new)))
    assert message.startswith(str(tmp_path / "groundedness" / "own1.toml") + ": ")
    assert said in message
    assert "\n" not in message


def test_a_prompt_that_is_not_utf8_and_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "byte 13 is not UTF-8" in complaint(saved(tmp_path, b'system = "caf\xe9"'))
    assert complaint(tmp_path / "none") == f"{tmp_path / 'none'}: prompts_dir is not a folder"
