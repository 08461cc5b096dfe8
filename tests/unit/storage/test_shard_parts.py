"""Attempts of shards: claimed once, committed once, and the lower number counts."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from judgekit.core.config import Budget
from judgekit.core.errors import StorageError
from judgekit.core.runs import Manifest
from judgekit.storage.leases import BudgetLeases, PartLease
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.shard_parts import ShardParts, committed_attempt


def complete(parts: ShardParts, name: str) -> None:
    folder = RunFolder.create(parts.path, name)
    folder.write_json("config.json", {"name": name})
    folder.write_manifest(
        Manifest(
            run_id=name, name="n", status="complete", created_at="2026-01-01", config_path="c", config_sha256="0",
            versions={},
        )
    )  # fmt: skip


def made(tmp_path: Path) -> ShardParts:
    parts = ShardParts(tmp_path / "parts")
    parts.make()
    return parts


def test_each_attempt_is_claimed_by_one_process_only(tmp_path: Path) -> None:
    parts = made(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        names = list(threads.map(lambda _: parts.claim("3/16"), range(40)))
    assert sorted(names) == sorted(f"part-3of16-{attempt}" for attempt in range(1, 41))
    assert parts.attempts(3)[:2] == ["part-3of16-1", "part-3of16-2"]
    assert (parts.attempts(4), parts.n_shards()) == ([], 16)


def test_of_two_committed_attempts_the_lower_number_counts_whatever_clocks_say(tmp_path: Path) -> None:
    parts = made(tmp_path)
    first, second = parts.claim("1/2"), parts.claim("1/2")
    for name in (second, first):
        complete(parts, name)
        assert parts.commit(name)
    assert not parts.commit(first)  # a second time changes nothing
    for name, moved in ((first, 3600), (second, -3600)):
        for path in (parts.path / name / "manifest.json", parts.path / f"{name}.commit.json"):
            now = path.stat().st_mtime
            os.utime(path, (now + moved, now + moved))
    assert {number: folder.path.name for number, folder in parts.committed().items()} == {1: first}
    assert committed_attempt(parts.path / second) == 2
    assert sorted(path.name for path in parts.path.iterdir() if path.name.startswith(".")) == []


def test_what_is_not_committed_does_not_count(tmp_path: Path) -> None:
    parts = made(tmp_path)
    complete(parts, parts.claim("1/2"))
    assert parts.committed() == {}
    assert committed_attempt(parts.path / "part-1of2-1") is None


@pytest.mark.parametrize("damage", ["manifest", "file", "lost file", "record", "gone"])
def test_a_damaged_part_is_named_with_what_judges_it_again(tmp_path: Path, damage: str) -> None:
    parts = made(tmp_path)
    name = parts.claim("1/2")
    complete(parts, name)
    parts.commit(name)
    if damage == "record":
        (parts.path / f"{name}.commit.json").write_text("{")
    elif damage == "lost file":
        (parts.path / name / "config.json").unlink()
    elif damage == "gone":
        (parts.path / name).rename(tmp_path / "elsewhere")
    else:
        path = parts.path / name / ("manifest.json" if damage == "manifest" else "config.json")
        path.write_text(path.read_text() + "\n")
    with pytest.raises(StorageError, match=r"delete .*part-1of2-1.commit.json, then the shard is judged again"):
        parts.committed()


def test_a_file_system_without_links_commits_by_renaming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    parts = made(tmp_path)
    name = parts.claim("1/1")
    complete(parts, name)
    assert parts.commit(name)
    assert list(parts.committed()) == [1]


def test_slices_of_a_budget_get_smaller_and_never_come_to_more_than_there_is(tmp_path: Path) -> None:
    leases = BudgetLeases.opened(tmp_path / "leases.db", Budget(max_calls=100, max_usd=1.0), {"max_calls": 20})
    one, two = PartLease(leases, "a", 2), PartLease(leases, "b", 2)
    assert one.grown(0, 0, 0.0) == Budget.model_construct(max_calls=0, max_tokens=None, max_usd=0.0)
    assert one.grown(1, 5, 0.0).max_calls == 20  # a fair part: of 80, half of what is each one's
    assert two.grown(1, 0, 0.1) == Budget.model_construct(max_calls=15, max_tokens=None, max_usd=0.25)
    assert two.grown(30, 0, 0.0).max_calls == 45  # what cannot be done without
    assert one.grown(16, 0, 0.0).max_calls == 20  # 15 are left, so it gets none of them
    leases.give_back("b", {"max_calls": 41, "max_usd": 0.05})
    assert leases.rest() == {"max_calls": 19.0, "max_usd": pytest.approx(0.95)}
    leases.give_back("b", {"max_calls": 41, "max_usd": 0.05})
    assert leases.rest()["max_calls"] == 19.0
    assert one.grown(16, 0, 0.0).max_calls == 36


def test_processes_that_take_at_the_same_time_are_given_what_there_is_once(tmp_path: Path) -> None:
    leases = BudgetLeases.opened(tmp_path / "leases.db", Budget(max_calls=1000), {})
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: PartLease(leases, f"p{n}", 100).grown(7, 0, 0.0).max_calls or 0, range(200)))
    assert sum(found) + leases.rest()["max_calls"] == 1000
    assert leases.rest()["max_calls"] < 7
