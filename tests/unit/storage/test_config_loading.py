"""Config files as users write them, damaged and whole."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.config import RunConfig
from judgekit.core.errors import ConfigError
from judgekit.storage.config_files import load_config

GOOD: dict[str, Any] = {
    "name": "suite",
    "cases": "cases.jsonl",
    "system": {"name": "recorded", "path": "outputs.jsonl"},
    "models": {"m": {"model": "gpt-4o-2024-08-06", "api_key_env": "${OPENAI_API_KEY}"}},
    "judges": [{"name": "groundedness", "model": "m"}],
}


def saved(folder: Path, text: str | bytes, name: str = "c.json") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def complaint(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return str(caught.value).replace(f"{path.parent}/", "")


def changed(**parts: Any) -> str:
    return json.dumps({**GOOD, **parts}, indent=1)


YAML_TEXT = """\
name: suite
cases: cases.jsonl
system: {name: recorded, path: outputs.jsonl}
models:
  m:
    model: gpt-4o-2024-08-06
    api_key_env: ${OPENAI_API_KEY}
judges:
- name: groundedness
  model: m
"""
TOML_TEXT = """\
name = "suite"
cases = "cases.jsonl"
[system]
name = "recorded"
path = "outputs.jsonl"
[models.m]
model = "gpt-4o-2024-08-06"
api_key_env = "${OPENAI_API_KEY}"
[[judges]]
name = "groundedness"
model = "m"
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.json", json.dumps(GOOD)),
        ("c.json", "\ufeff" + json.dumps(GOOD, indent=2).replace("\n", "\r\n")),
        ("c.conf", json.dumps(GOOD)),
        ("c.yaml", YAML_TEXT),
        ("c.YML", YAML_TEXT),
        ("c.toml", TOML_TEXT),
        ("c.toml", TOML_TEXT.replace("\n", "\r\n")),
    ],
)
def test_json_yaml_and_toml_give_the_same_config(tmp_path: Path, name: str, text: str) -> None:
    assert load_config(saved(tmp_path, text, name)) == RunConfig.model_validate(GOOD)


def test_comments_may_stand_anywhere_and_more_than_once(tmp_path: Path) -> None:
    text = re.sub(r"(?<!\$)\{", '{"$comment": "one", "$comment": ["two"], ', json.dumps(GOOD))
    assert load_config(saved(tmp_path, text)) == RunConfig.model_validate(GOOD)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "c.json: the file is empty; `judgekit init` writes a first config"),
        (" \n\t", "c.json: the file is empty"),
        ("[]", "c.json: expected an object with keys such as 'name' and 'cases', found a list"),
        ("null", "found nothing"),
        ('"x"', "found a text"),
        ("7", "found a number"),
        ('{"name": "a",\n "cases": }', "c.json:2: not valid JSON: Expecting value (column 11)"),
        ('{"name": "a"', "c.json:1: not valid JSON"),
        ("[" * 100_000, "c.json: nested too deeply"),
        (b"\xff\xfe{\x00", "c.json: byte 0 is not UTF-8; save the file as UTF-8"),
        (b'{"name": "caf\xe9"}', "c.json: byte 13 is not UTF-8"),
        (
            '{"name": "a",\n "seed": 1,\n "models": {"m": {"model": "x",\n  "model": "y"}},\n "seed": 2}',
            "c.json:4: $.models.m.model: this key is already on line 3; delete one of them\n"
            "c.json:5: $.seed: this key is already on line 2; delete one of them",
        ),
        (changed(seed=float("nan")), "c.json:20: $.seed: expected a finite number, found nan"),
        (
            changed(gates=[{"metric": "m", "op": ">", "value": float("-inf")}]),
            "c.json:24: $.gates[0].value: expected a finite number, found -inf",
        ),
        (changed(system={"name": "recorded", "x": [float("inf")]}), "$.system.x[0]: expected a finite number"),
    ],
)
def test_a_file_that_is_no_config_is_refused_in_one_line_for_each_problem(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    message = complaint(saved(tmp_path, text))
    assert said in message
    assert message.count("\n") == said.count("\n")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"jugdes": []}, "c.json:20: $.jugdes: unknown key; did you mean 'judges'?"),
        ({"zzz": 1}, "c.json:20: $.zzz: unknown key; known: budget, cases, cluster_by, "),
        ({"budget": {"max_dollars": 1}}, "c.json:21: $.budget.max_dollars: unknown key; did you mean 'max_calls'?"),
        ({"models": {"m": {"modle": "x"}}}, "$.models.m.modle: unknown key; did you mean 'model'?"),
        ({"cases": {"path": "x", "feilds": {}}}, "c.json:5: $.cases.feilds: unknown key; did you mean 'fields'?"),
        ({"cases": 5}, "c.json:3: $.cases: expected a text or an object, found a number"),
        ({"cases": {}}, "c.json:3: $.cases.path: required, but missing"),
        ({"metrics": "retrieval"}, "$.metrics: expected a list, found a text"),
        ({"metrics": ["retrieval", 5]}, "c.json:22: $.metrics[1]: expected a text or an object, found a number"),
        ({"gates": [{"metric": "m", "op": "=>", "value": 1}]}, "$.gates[0].op: input should be '>=', '>', '<=' or '<'"),
        ({"judges": [{"name": "g", "model": "x"}]}, "$: judges[0].model names 'x', but models has m"),
        ({"name": "a b"}, "c.json:2: $.name: "),
        ({"seed": "one"}, "$.seed: expected a whole number, found a text"),
        ({"seed": 1.5}, "$.seed: expected a whole number"),
        ({"spot_check": {"n": 0, "model": "m"}}, "$.spot_check.n: expected a whole number from 1, or a share such as"),
        (
            {"spot_check": {"n": "0%", "model": "m"}},
            "$.spot_check.n: expected a whole number from 1, or a share such as",
        ),
        (
            {"spot_check": {"n": "5", "model": "m"}},
            "$.spot_check.n: expected a whole number from 1, or a share such as",
        ),
        ({"system": None}, "$.system: expected an object, found nothing"),
    ],
)
def test_what_breaks_the_schema_is_named_with_line_path_and_expectation(
    tmp_path: Path, parts: dict[str, Any], said: str
) -> None:
    assert said in complaint(saved(tmp_path, changed(**parts)))


def test_every_problem_is_named(tmp_path: Path) -> None:
    text = changed(cases=5, seed="x", judge=1)
    assert [line.split(": ")[1] for line in complaint(saved(tmp_path, text)).splitlines()] == [
        "$.judge",
        "$.cases",
        "$.seed",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "  model: m\n",
            "  model: m\n  modell: m\n",
            "c.yaml:11: $.judges[0].modell: unknown key; did you mean 'model'?",
        ),
        ("cases: cases.jsonl", "cases: [1]", "c.yaml:2: $.cases: expected a text or an object, found a list"),
        ("judges:\n", "judges:\n\t- x\n", "c.yaml:9: not valid YAML: "),
        ("cases: cases.jsonl", "name: again", "c.yaml:2: not valid YAML: found duplicate key"),
        ("name: suite", "name: !!python/object:os.system x", "not valid YAML: could not determine a constructor"),
        ("name: suite", "name: suite\nseed: .nan", "c.yaml:2: $.seed: expected a finite number, found nan"),
        ("name: suite", "name: 2024-08-06", "c.yaml:1: $.name: expected a text or a number, found a date; put it in"),
        ("name: suite", "1: x\nname: suite", "c.yaml:1: $.1: unknown key"),
        ("name: suite", "name: &a [*a]", "not valid YAML"),
        ("name: suite", "--- a\n--- b", "not valid YAML"),
    ],
)
def test_yaml_problems_have_their_line_too(tmp_path: Path, old: str, new: str, said: str) -> None:
    message = complaint(saved(tmp_path, YAML_TEXT.replace(old, new, 1), "c.yaml"))
    if "*a" not in new:
        assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('model = "m"', 'modell = "m"', "c.toml: $.judges[0].modell: unknown key; did you mean 'model'?"),
        ('name = "suite"', 'name = "suite"\nname = "again"', "c.toml: not valid TOML: "),
        ('name = "suite"', "name = suite", "(at line 1, column 8)"),
        ('name = "suite"', 'name = "suite"\nseed = nan', "c.toml: $.seed: expected a finite number"),
        ('name = "suite"', "name = 2024-08-06", "$.name: expected a text or a number, found a date"),
    ],
)
def test_toml_problems_have_their_path(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in complaint(saved(tmp_path, TOML_TEXT.replace(old, new, 1), "c.toml"))


PASTED = [
    "sk-proj-AbC123dEf456GhI789",
    "sk_live_51H8abcdEFGH",
    "gsk_7fH2kLm9PqR4sTuV8wXyZ1",
    "hf_AbCdEfGh1JkLmNoPqRsTuVwXyZ",
    "AIzaSyD4x7Yz0aBcDeFgHiJkLmNoPqRsT",
    "AKIAIOSFODNN7EXAMPLE",
    "a3f9c2d17b604e58a1c2d3e4f5061728",
    "${gsk_7fH2kLm9PqR4sTuV8wXyZ1}",
    "sk-ant-api03-xyz",
    "Bearer abc",
    "",
]


@pytest.mark.parametrize("key", PASTED)
@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_pasted_key_is_refused_and_never_echoed(tmp_path: Path, key: str, suffix: str) -> None:
    model = {"model": "x", "api_key_env": key}
    message = complaint(saved(tmp_path, changed(models={"m": model}), f"c.{suffix}"))
    assert "$.models.m.api_key_env: expected the name of an environment variable such as OPENAI_API_KEY" in message
    assert not key or key.strip("${}") not in message


def test_a_key_under_a_wrong_name_is_not_echoed_either(tmp_path: Path) -> None:
    models = {
        "m": {"model": "x", "api_key": "sk-secret-1", "base_url": "https://u:sk-secret-2@h/v1"},
        "sk": "sk-secret-3",
    }
    message = complaint(saved(tmp_path, changed(models=models)))
    assert "unknown key; did you mean 'api_key_env'?" in message
    assert "secret" not in message


def test_a_missing_file_and_a_folder_say_so(tmp_path: Path) -> None:
    assert complaint(tmp_path / "none.json") == "none.json: no such file; `judgekit init` writes a first config"
    (tmp_path / "folder.json").mkdir()
    assert complaint(tmp_path / "folder.json") == "folder.json: is a folder, expected a config file"
    assert "cannot be read: File name too long" in complaint(tmp_path / ("n" * 300))


def test_lone_surrogates_in_a_config_can_still_be_written(tmp_path: Path) -> None:
    config = load_config(saved(tmp_path, changed(versions={"prompt_version": "v\ud800"})))
    assert config.versions == {"prompt_version": "v\ufffd"}
