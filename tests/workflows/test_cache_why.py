"""`cache why`: each part of the key that changed is named, and whether a run would be answered from the cache."""

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.cache_keys import PARTS
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.testing import FaultServer, chat_reply, sequence, verdict
from judgekit.workflows.cache_why import WhyTarget, explain_case
from judgekit.workflows.models import Options
from tests.builders import REPOSITORY, case, output, read_lines, write_lines, write_suite

CASE = "c1"


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def config(tmp_path: Path, server: FaultServer) -> Path:
    """A suite that was run as `a`, every reply cached."""
    path = write_suite(tmp_path, server.base_url, n_cases=3)
    judgekit.run(path, run_id="a")
    return path


def why(config: Path, run: str = "a", case_id: str = CASE, **options: Any) -> dict[str, Any]:
    """The one record of a case."""
    [record] = all_of(config, run, case_id, **options)
    return record


def all_of(config: Path, run: str = "a", case_id: str = CASE, **options: Any) -> list[dict[str, Any]]:
    target = WhyTarget(str(config.parent / "results" / run), case_id, **{"asks_server": False, **options})
    return asyncio.run(explain_case(target, Options()))


def part(record: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in record["parts"] if item["part"] == name)
    return found


def rewrite_judgment(config: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the stored judgment of the case."""
    path = config.parent / "results" / "a" / "judgments.jsonl"
    records = read_lines(path)
    for record in records:
        if record["case_id"] == CASE:
            change(record)
    write_lines(path, records)


def test_nothing_changed_would_be_answered_from_the_cache(config: Path, server: FaultServer) -> None:
    n_requests = server.log.totals.n_requests
    record = why(config)
    assert record["conclusion"] == "would be answered from the cache"
    assert (record["changed"], record["would_hit"], record["entry"]) == ([], True, "present")
    assert record["key_then"] == record["key_now"]
    assert record["from_cache"] is False
    assert [item["part"] for item in record["parts"]] == list(PARTS)
    assert all(item["same"] for item in record["parts"])
    assert server.log.totals.n_requests == n_requests
    judgekit.run(config, run_id="b")
    assert why(config, "b")["from_cache"] is True


@pytest.mark.usefixtures("runs_without_hashes")
@pytest.mark.parametrize("name", PARTS)
def test_each_part_that_was_another_one_is_named_alone(config: Path, name: str) -> None:
    rewrite_judgment(config, lambda record: record["key_parts"].update({name: "other"}))
    record = why(config)
    assert record["changed"] == [name]
    assert "other" in part(record, name)["before"]


def new_model(model: str) -> Callable[[Path, str], None]:
    return lambda folder, url: rewrite(folder, url, model={"model": model})


def rewrite(folder: Path, base_url: str, **changes: Any) -> None:
    write_suite(folder, base_url, n_cases=3, **changes)


def new_prompt(version: str, **replaced: str) -> Callable[[Path, str], None]:
    """A prompt of the user's own, made from the shipped one."""

    def change(folder: Path, url: str) -> None:
        text = (REPOSITORY / "prompts" / "groundedness" / "v1.toml").read_text(encoding="utf-8")
        text = text.replace('version = "v1"', f'version = "{version}"')
        for old, new in replaced.items():
            assert old in text
            text = text.replace(old, new)
        (folder / "prompts" / "groundedness").mkdir(parents=True, exist_ok=True)
        (folder / "prompts" / "groundedness" / f"{version}.toml").write_text(text, encoding="utf-8")
        judges = [{"name": "groundedness", "model": "m", "prompt_version": version}]
        rewrite(folder, url, prompts_dir="prompts", judges=judges)

    return change


CHANGES: list[Any] = [
    ("base_url", lambda folder, url: rewrite(folder, url.replace("127.0.0.1", "localhost")), ["base_url"], "localhost"),
    ("model", new_model("judge-2026-06-06"), ["model"], "judge-2026-06-06"),
    (
        "pinned build",
        lambda folder, url: rewrite(folder, url, model={"pin": {"build_hash": "sha256:new"}}),
        ["model"],
        "judge-2025-01-01@sha256:new",
    ),
    ("seed", lambda folder, url: rewrite(folder, url, model={"seed": 7}), ["parameters"], "seed 0 -> 7"),
    (
        "output limit",
        lambda folder, url: rewrite(folder, url, model={"max_output_tokens": 512}),
        ["parameters"],
        "max_output_tokens 1024 -> 512",
    ),
    (
        "case text",
        lambda folder, url: rewrite(folder, url, output_rows=[output(CASE, answer="Kilns are cold."), output("c0")]),
        ["messages"],
        "case text: answer",
    ),
    (
        "system role",
        lambda folder, url: rewrite(folder, url, model={"system_role": False}),
        ["messages"],
        "their form: system_role",
    ),
]


@pytest.mark.parametrize(("change", "changed", "needle"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_a_change_of_the_config_or_its_data_is_named_with_both_values(
    config: Path, server: FaultServer, change: Callable[[Path, str], None], changed: list[str], needle: str
) -> None:
    change(config.parent, server.base_url)
    record = why(config)
    assert record["changed"] == changed
    named = part(record, changed[0])
    assert needle in f"{named['before']} -> {named['now']}: {named['detail']}"
    assert record["entry"] == "absent"
    assert record["conclusion"] == f"would be asked: {changed[0].replace('_', ' ')} changed"


def test_d03_another_prompt_version_is_named_and_so_is_another_text_under_the_same_version(
    config: Path, server: FaultServer
) -> None:
    new_prompt("v2", **{"description = ": "# \ndescription = "})(config.parent, server.base_url)
    same_text = why(config)
    assert same_text["changed"] == []  # what the model is sent is the same, whatever its version is called
    reworded = {"minor details": "small details"}
    new_prompt("v2", **reworded)(config.parent, server.base_url)
    record = why(config)
    assert record["changed"][0] == "prompt"
    assert part(record, "prompt")["before"].startswith("v1 (")
    assert part(record, "prompt")["now"].startswith("v2 (")
    assert part(record, "messages")["detail"] == "the wording of the prompt"
    new_prompt("v1", **reworded)(config.parent, server.base_url)
    assert part(why(config), "prompt")["detail"] == "its text changed under the same version"


def test_d02_d04_a_pass_score_is_no_part_of_the_key(config: Path, server: FaultServer) -> None:
    """Thresholds are applied to cached replies; they cost no call."""
    judges = [{"name": "groundedness", "model": "m", "args": {"pass_score": 3}}]
    rewrite(config.parent, server.base_url, judges=judges)
    assert why(config)["would_hit"] is True


def test_a_request_that_another_run_made_already_is_a_hit_all_the_same(config: Path, server: FaultServer) -> None:
    rewrite(config.parent, server.base_url, model={"seed": 7})
    judgekit.run(config, run_id="b")
    record = why(config)
    assert record["conclusion"] == (
        "would be answered from the cache (parameters changed, and the new request was answered before)"
    )


def test_another_config_is_compared_where_one_is_given(config: Path, server: FaultServer, tmp_path: Path) -> None:
    other = write_suite(tmp_path / "other", server.base_url, n_cases=3, model={"seed": 3}, results_dir="../results")
    assert why(config)["would_hit"] is True
    record = why(config, config_path=other)
    assert record["changed"] == ["parameters"]


def test_an_unpinned_build_is_taken_from_the_run_until_the_server_is_asked(config: Path, server: FaultServer) -> None:
    server.info.build_info = "b2000-another"
    taken = why(config)
    assert taken["would_hit"] is True
    assert any("taken for granted" in note and "--ask-server" in note for note in taken["notes"])
    asked = why(config, asks_server=True)
    assert asked["changed"] == ["model"]
    before, now = part(asked, "model")["before"], part(asked, "model")["now"]
    assert before != now
    assert before.startswith("judge-2025-01-01@sha256:")


def test_at_another_address_the_build_is_open_and_no_change_of_the_model_is_claimed(config: Path) -> None:
    rewrite(config.parent, "http://127.0.0.1:9/v1")
    record = why(config)
    assert record["changed"] == ["base_url"]
    assert part(record, "model")["same"] is None
    with pytest.raises(ProviderError, match="cannot reach"):
        why(config, asks_server=True)


def test_what_is_not_kept_is_explained(tmp_path: Path) -> None:
    good, bad = verdict(5, supported=["hot"]), chat_reply("no idea")
    # The probe, c0; then c1 twice unreadable; then c2 readable on the second try.
    with FaultServer(sequence([good, good, bad, bad, bad, good])) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=3, model={"max_concurrency": 1})
        judgekit.run(config, run_id="a")
        failed, second_try = why(config), why(config, case_id="c2")
    assert failed["failure"] == "invalid"
    assert failed["conclusion"] == "would be asked: the cache has no entry for it; failures are not kept (invalid)"
    assert second_try["changed"] == ["attempt"]  # the messages of the second try would be the same ones
    assert second_try["conclusion"].endswith("the first reply could not be read, and such replies are not kept")


def test_a_run_without_a_cache_says_that_there_is_none(tmp_path: Path, server: FaultServer) -> None:
    config = write_suite(tmp_path, server.base_url, n_cases=2)
    judgekit.run(config, run_id="a", use_cache=False)
    record = why(config)
    cache = tmp_path / "results" / ".cache"
    assert record["conclusion"] == (
        f"would be asked: there is no cache at {cache}; the run had --no-cache, or the cache was cleared since"
    )
    assert not cache.exists()
    judgekit.run(config, run_id="b")
    shutil.rmtree(cache)
    assert why(config, "b")["entry"] == "absent"


def test_the_embedded_judge_is_never_cached(tmp_path: Path) -> None:
    config = write_suite(tmp_path)
    judgekit.run(config, run_id="a")
    record = why(config)
    assert record["would_hit"] is False
    assert record["conclusion"].startswith("never cached: provider lexical is embedded")
    assert record["changed"] == []
    assert record["key_now"] == record["key_then"]


def test_a_case_that_the_config_no_longer_has_is_asked_as_the_run_stored_it(config: Path, server: FaultServer) -> None:
    rewrite(config.parent, server.base_url, case_rows=[case("c0")], output_rows=[output("c0")])
    record = why(config)
    assert record["would_hit"] is True
    assert any("do not have this case" in note for note in record["notes"])


def test_what_would_not_be_asked_at_all_says_why(config: Path, server: FaultServer) -> None:
    rewrite(config.parent, server.base_url, output_rows=[output("c0"), output(CASE, abstained=True)])
    assert why(config)["conclusion"] == (
        "would not be asked: the config's data do not put the case before groundedness: abstained"
    )
    rewrite(config.parent, server.base_url, judges=[])
    assert why(config)["conclusion"] == "would not be asked: the config has no judge groundedness"


@pytest.mark.usefixtures("runs_without_hashes")
def test_what_a_judgment_did_not_record_of_its_key_is_named(config: Path) -> None:
    rewrite_judgment(config, lambda record: record.update(key_parts={"provider": record["provider"]}))
    record = why(config)
    assert part(record, "messages")["detail"] == "not recorded in this run"
    assert part(record, "provider")["same"] is True


@pytest.mark.usefixtures("runs_without_hashes")
def test_an_altered_judge_input_and_a_case_not_yet_judged_are_told(config: Path) -> None:
    path = config.parent / "results" / "a" / "judge_inputs.jsonl"
    records = read_lines(path)
    records[1]["variables"]["answer"] = "altered"
    write_lines(path, records)
    assert any("judge_inputs.jsonl was altered" in note for note in why(config)["notes"])
    write_lines(config.parent / "results" / "a" / "judgments.jsonl", [])
    record = why(config)
    assert (record["judged"], record["parts"], record["from_cache"]) == (False, [], None)


@pytest.mark.parametrize(
    ("case_id", "options", "needle"),
    [
        ("nowhere", {}, "case 'nowhere' was put before no judge"),
        (CASE, {"judge": "groundednes"}, "did you mean 'groundedness'?"),
    ],
)
def test_an_unknown_case_or_judge_is_an_error(config: Path, case_id: str, options: dict[str, Any], needle: str) -> None:
    with pytest.raises(ConfigError) as caught:
        why(config, case_id=case_id, **options)
    assert needle in str(caught.value)


def test_the_parts_of_every_judgment_are_those_of_its_key(config: Path) -> None:
    for record in read_lines(config.parent / "results" / "a" / "judgments.jsonl"):
        assert set(record["key_parts"]) == set(PARTS)
        assert record["key"].startswith("reply:2:")
        assert len(json.dumps(record["key_parts"])) < 400
