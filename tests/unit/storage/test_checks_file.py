"""checks.json and prompts.json of a run folder."""

import json
from pathlib import Path

import pytest

from judgekit.core.errors import StorageError
from judgekit.core.prompts import PromptTemplate
from judgekit.core.spot_checks import SpotCheckRecord
from judgekit.storage.run_folder import RunFolder

RECORD = SpotCheckRecord(
    check="1",
    judge="groundedness",
    kind="model",
    model_id="m",
    model="m-2025-01-01",
    prompt_version="v1",
    prompt_sha256="0" * 64,
    seed=0,
    n_population=3,
    case_ids=("a", "b"),
    threshold=0.2,
)


def test_checks_come_back_as_they_were_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.spot_checks() == []
    folder.write_json("checks.json", {"checks": [RECORD.model_dump(mode="json")]})
    assert folder.spot_checks() == [RECORD]


@pytest.mark.parametrize("text", ['{"checks": [{"check": 1}]}', '{"checks": 3}', "[]", "{"])
def test_a_damaged_list_of_checks_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "checks.json").write_text(text)
    with pytest.raises(StorageError, match=r"checks\.json: damaged"):
        RunFolder(tmp_path).spot_checks()


def test_a_reply_schema_keeps_the_order_of_its_keys(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"reasoning": {}, "answer": {}}, "additionalProperties": False}
    prompt = PromptTemplate(judge="j", version="v1", system="s", user="{{ reply_schema }}", reply_schema=schema)
    folder = RunFolder(tmp_path)
    folder.write_prompts({"j/v1": prompt})
    [stored] = folder.prompts().values()
    assert stored.render({}) == prompt.render({})
    assert json.dumps(stored.reply_schema) == json.dumps(schema)
