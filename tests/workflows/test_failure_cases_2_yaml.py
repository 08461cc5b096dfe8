"""Configs and data in YAML whose anchors stand for more than anyone wrote."""

import time
from pathlib import Path

import pytest

from judgekit.core.errors import ConfigError
from judgekit.storage.config_files import load_config
from tests.readers import complaint, written

LISTS = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
)
MERGED = "\n".join(
    ["a0: &a0 {k: v}"] + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 10)]
)
KEYS = "\n".join(
    ["a0: &a0 {k: [x, x, x]}"] + [f"a{n}: &a{n} {{b: *a{n - 1}, c: *a{n - 1}, d: *a{n - 1}}}" for n in range(1, 25)]
)
LONG = "a: &a " + "x" * 100_000 + "\nb: &b [" + ", ".join(["*a"] * 400) + "]\nc: [" + ", ".join(["*b"] * 400) + "]"


@pytest.mark.parametrize("text", [LISTS, MERGED, KEYS, LONG], ids=["lists", "merged", "objects", "long-texts"])
@pytest.mark.parametrize("name", ["c.yaml", "c.yml"])
def test_attack_11_anchors_that_stand_for_billions_are_refused_at_once(tmp_path: Path, text: str, name: str) -> None:
    config = written(tmp_path, name, f"name: x\ncases: c.jsonl\n{text}\n")
    begun = time.process_time()
    with pytest.raises(ConfigError, match=r"c\.ya?ml:\d+: anchors expand to more than 100000 values"):
        load_config(config)
    data = written(tmp_path, "data.yaml", "- id: 1\n" + "".join(f"  {line}\n" for line in text.splitlines()))
    assert "anchors expand to more than 5000000 values" in complaint(data) or text is LONG
    assert time.process_time() - begun < 20  # a few tenths of a second; without a limit minutes


def test_attack_11_an_anchor_inside_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"c\.yaml:2: an anchor stands for something that holds itself"):
        load_config(written(tmp_path, "c.yaml", "name: x\ncases: &a [*a]\n"))
    assert "holds itself" in complaint(written(tmp_path, "g.yaml", "- &a\n  id: 1\n  metadata: *a\n"))


def test_attack_11_anchors_as_people_use_them_still_work(tmp_path: Path) -> None:
    text = "name: x\ncases: &file c.jsonl\nsystem: {name: recorded, path: *file}\n"
    assert load_config(written(tmp_path, "c.yaml", text)).cases == "c.jsonl"
