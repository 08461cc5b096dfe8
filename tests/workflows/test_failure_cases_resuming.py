"""Failure cases of kind D about runs that stopped and are resumed."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import ConfigError, Interrupted, StorageError
from judgekit.storage.run_files import replacing
from judgekit.storage.run_folder import RunFolder
from judgekit.testing import FaultServer
from tests.builders import read_lines, write_lines, write_suite
from tests.workflows.engine import Ran, after_capabilities, again, good, resumed

pytestmark = pytest.mark.usefixtures("quick_waits")


def stopped_after(folder: Path, server: FaultServer, n_calls: int, **suite: Any) -> Ran:
    """A run that a budget stopped; the config then allows any number of calls."""
    ran = again(write_suite(folder, server.base_url, budget={"max_calls": n_calls}, **suite), server)
    assert isinstance(ran.error, Interrupted)
    write_suite(folder, server.base_url, budget={}, **suite)
    return ran


def test_d13_a_run_that_was_killed_counts_as_unfinished(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        ran = stopped_after(tmp_path, server, 3)
        metrics = ran.metrics
        assert metrics["status"] == "interrupted"
        assert (metrics["overall"]["groundedness"]["n"], metrics["overall"]["groundedness"]["n_error"]) == (3, 3)
        manifest = ran.manifest
        (ran.folder / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
        whole = resumed(ran)
    assert whole.summary is not None
    assert whole.summary.status == "complete"
    assert whole.metrics["overall"]["groundedness"]["n"] == 6


def test_d14_a_torn_last_line_is_judged_again_and_a_torn_line_before_it_is_an_error(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        ran = stopped_after(tmp_path, server, 4, model={"max_concurrency": 1})
        path = ran.folder / "judgments.jsonl"
        whole_lines = path.read_bytes()
        path.write_bytes(whole_lines[:-50])
        n_before = len(ran.asked)
        whole = resumed(ran)
        assert whole.summary is not None
        assert len(whole.asked) - n_before == 2  # the reply to the torn line is in the cache
        assert sorted(item["case_id"] for item in read_lines(path)) == sorted(f"c{number}" for number in range(6))

    first, _, rest = whole_lines.partition(b"\n")
    path.write_bytes(first[:-50] + b"\n" + rest)
    with pytest.raises(StorageError, match=r"judgments\.jsonl:1: damaged line"):
        list(RunFolder(ran.folder).judgments())


def reopen(ran: Ran, rows: list[dict[str, Any]]) -> None:
    """Make a finished run look as if it had stopped with these judgments."""
    write_lines(ran.folder / "judgments.jsonl", rows)
    (ran.folder / "manifest.json").write_text(json.dumps({**ran.manifest, "status": "interrupted"}))


def test_d15_what_is_missing_is_found_by_id_and_not_by_counting_lines(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=10)
        ran = again(config, server, use_cache=False)
        reopen(ran, [item for item in ran.judgments.values() if item["case_id"] != "c2"])
        n_before = len(ran.asked)
        whole = resumed(ran)
        (asked,) = whole.asked[n_before:]
    assert "Kiln c2 is fired" in asked["messages"][1]["content"]
    assert len(read_lines(ran.folder / "judgments.jsonl")) == 10


def test_d16_of_several_records_of_a_case_one_counts_and_never_a_failure_after_a_verdict(tmp_path: Path) -> None:
    with FaultServer(after_capabilities(good(4), good(2))) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=2, model={"max_concurrency": 1})
        ran = again(config, server)
        a, b = ran.judgments["c0"], ran.judgments["c1"]
        failed = {"verdict": None, "failure": {"kind": "invalid", "message": "no"}}
        reopen(ran, [{**a, **failed}, a, b, {**b, **failed}])
        n_before = len(ran.asked)
        whole = resumed(ran)
        assert len(whole.asked) == n_before
    figure = whole.metrics["overall"]["groundedness"]
    # Verdicts 4 and 2; the failures before and after them stay in the file and count for nothing.
    assert (figure["value"], figure["n"], figure["n_error"]) == (3.0, 2, 0)
    assert len(read_lines(ran.folder / "judgments.jsonl")) == 4


def test_d17_totals_are_of_all_parts_of_a_run(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 25}
    with FaultServer(good(usage=usage, fingerprint="fp_a")) as server:
        ran = stopped_after(tmp_path, server, 4)
        first = ran.metrics
        server.play(good(usage=usage, fingerprint="fp_b"))
        whole = resumed(ran)
        cached = again(ran.config, server, run_id="cached")
    assert (first["cost"]["prompt_tokens"], first["cost"]["completion_tokens"]) == (400, 100)
    cost = whole.metrics["cost"]
    assert (cost["prompt_tokens"], cost["completion_tokens"], cost["n_calls"]) == (600, 150, 6)
    assert whole.manifest["models"]["m"]["fingerprints"] == {"fp_a": 4, "fp_b": 2}
    assert whole.metrics["operational"]["wall_seconds"] > first["operational"]["wall_seconds"]
    assert whole.manifest["n_resumed"] == 1
    assert (cached.metrics["cost"]["prompt_tokens"], cached.metrics["cost"]["n_from_cache"]) == (0, 6)


def test_d17_a_resumed_run_goes_on_with_the_same_model_or_not_at_all(tmp_path: Path) -> None:
    with FaultServer(good(model="served-a")) as server:
        ran = stopped_after(tmp_path, server, 4)
        server.play(good(model="served-b"))
        other = resumed(ran)
        assert "comes from served-b, expected served-a" in str(other.error)
        server.play(good(model="served-a"))
        server.info.build_info = "b2000-another"
        assert "this run was begun with sha256:" in str(resumed(ran).error)
        server.info.build_info = "b1000-0000000"
        assert resumed(ran).error is None


def test_d18_a_second_interruption_costs_nothing_that_was_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(good()) as server:
        ran = stopped_after(tmp_path, server, 5, n_cases=12)
        judged = (ran.folder / "judgments.jsonl").read_bytes()

        def interrupted(self: RunFolder, name: str, lines: Any) -> int:
            with replacing(self.path / name) as stream:
                stream.write(next(iter(lines)))
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(RunFolder, "write_lines", interrupted)
            with pytest.raises(KeyboardInterrupt):
                resumed(ran)
        assert (ran.folder / "judgments.jsonl").read_bytes() == judged
        assert len(read_lines(ran.folder / "judge_inputs.jsonl")) == 12
        n_before = len(ran.asked)
        whole = resumed(ran)
        assert len(whole.asked) - n_before == 7
    assert whole.summary is not None
    assert whole.summary.status == "complete"


def test_a_complete_run_is_not_resumed(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        ran = again(write_suite(tmp_path, server.base_url), server)
        assert isinstance(resumed(ran).error, ConfigError)


def test_a_server_of_which_nothing_is_left_to_ask_is_left_alone(tmp_path: Path) -> None:
    with FaultServer(good(fingerprint="fp_a")) as server:
        one = {"base_url": server.base_url, "max_concurrency": 1}
        models = {name: {"model": f"{name}-2025-01-01", **one} for name in ("a", "b")}
        judges = [{"name": "groundedness", "model": "a"}]
        spot_check = {"n": 3, "model": "b"}
        config = write_suite(tmp_path, server.base_url, models=models, judges=judges, spot_check=spot_check)
        ran = again(config, server, use_cache=False)
        before = ran.metrics, ran.manifest["models"]
        # Killed before its figures were there: everything is judged.
        reopen(ran, read_lines(ran.folder / "judgments.jsonl"))
        n_before = len(server.log.entries)
        whole = resumed(ran)
        assert whole.error is None
        assert len(server.log.entries) == n_before

        # One second opinion is missing: its model is asked, that of the judge is not.
        reopen(ran, read_lines(ran.folder / "judgments.jsonl")[:-1])
        last = resumed(ran)
        assert {entry.body["model"] for entry in server.log.entries[n_before:] if entry.body} == {"b-2025-01-01"}
    assert "not_pinned" in whole.warnings
    for after in (whole, last):
        for key in ("judges", "judge_reliability", "overall"):
            assert after.metrics[key] == before[0][key]
        for name, record in before[1].items():
            now = after.manifest["models"][name]
            for key in ("build_hash", "build_source", "capabilities"):
                assert now[key] == record[key] is not None
            assert now["served_models"].keys() == record["served_models"].keys()
