"""A rejudge as a point of the drift history: which verdicts count, against whom, and where the point is kept."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.analysis.drift_states import drift_report
from judgekit.core.errors import ConfigError
from judgekit.core.history_points import HistoryPoint
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.storage.database import DATABASE, Database
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import reindex
from judgekit.storage.stored_history import append_point, read_points
from judgekit.testing import FaultServer, Request, chat_reply, error_reply, plausible_verdict, verdict
from judgekit.workflows.drift import DriftQuery, drift_reports
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run as run_workflow
from tests.builders import read_json, read_lines, write_suite
from tests.workflows.stored_suites import by_model, first_run, own_wording, rejudge

GOOD = verdict(5, supported=["hot"])
BAD = verdict(0, unsupported=["cold"])


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(by_model({"m-": lambda _: GOOD, "other": lambda _: BAD})) as running:
        yield running


def points(run: Path) -> list[HistoryPoint]:
    """What was asked about the verdicts of a run."""
    return [point for point in read_points(RunFolder(run)) if point.kind != "run"]


def aged(run: Path) -> None:
    """The verdicts of a run are two weeks old."""
    path = run / "judgments.jsonl"
    lines = [{**line, "created_at": "2026-01-01T00:00:00.000+00:00"} for line in read_lines(path)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def test_replies_from_the_cache_are_no_point_and_that_is_said(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server)
    summary = rejudge(run, "b")
    assert points(run) == []
    assert not (run / "drift_checks.jsonl").exists()
    assert summary.rejudged is not None
    assert (summary.rejudged["n"], summary.rejudged["n_asked"]) == (12, 0)
    said = "drift history: no point, since every reply came from the cache; --no-cache asks the judge again"
    assert said in (run.parent / "b" / "summary.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("runs_without_hashes")
@pytest.mark.parametrize(("is_old", "kind"), [(False, "noise_floor"), (True, "rejudge")])
def test_the_same_judge_asked_again_is_compared_with_itself(
    tmp_path: Path, server: FaultServer, is_old: bool, kind: str
) -> None:
    run = first_run(tmp_path, server)
    if is_old:
        aged(run)
    summary = rejudge(run, "b", use_cache=False)
    found = points(run)
    assert {point.judge for point in found} == {"groundedness", "correctness"}
    metrics = read_json(run / "metrics.json")
    for point in found:
        assert (point.run_id, point.kind, point.comparator) == ("a", kind, "m-2025-01-01 with v1")
        assert (point.n_asked, point.n_pairs, point.n_disagree, point.n_failed) == (6, 6, 0, 0)
        assert (point.score_mean, point.shift_mean, point.n_scores) == (5.0, 0.0, 6)
        assert point.dataset_sha256 == metrics["cases"]["sha256"]
        own = [line for line in read_lines(run.parent / "b" / "judgments.jsonl") if line["judge"] == point.judge]
        assert point.created_at == max(line["created_at"] for line in own)
        assert point.fingerprints == ("fp_test",)
    assert summary.rejudged is not None
    assert {name: part["n_asked"] for name, part in summary.rejudged["by_judge"].items()} == {
        "groundedness": 6,
        "correctness": 6,
    }
    assert "drift history: one point for each judge that was asked again (groundedness 6, correctness 6)" in (
        run.parent / "b" / "summary.md"
    ).read_text(encoding="utf-8")


def test_another_model_under_the_same_name_is_the_instrument_and_no_noise(tmp_path: Path, server: FaultServer) -> None:
    # A local server with a name of its own for whatever it has loaded, and one fingerprint for all of it.
    run = first_run(tmp_path, server)
    server.info.model_path = "/models/another.gguf"
    summary = rejudge(run, "b", use_cache=False, judges=("groundedness",))
    (point,) = points(run)
    said = {notice.code: notice.message for notice in summary.warnings}["rejudged_by_another_build"]
    assert f"has build {point.builds[0]} loaded, the verdicts of a are of build {point.verdict_builds[0]}" in said
    assert (point.kind, point.served_models, point.fingerprints) == ("rejudge", ("m-2025-01-01",), ("fp_test",))
    assert point.builds != point.verdict_builds
    assert len(point.builds) == len(point.verdict_builds) == 1
    report = drift_report([point])
    assert report.state == "instrument"
    assert f"build: {point.builds[0]} since run a, {point.verdict_builds[0]} before" in report.why


def test_another_model_or_wording_is_a_point_against_that_one(tmp_path: Path, server: FaultServer) -> None:
    own_wording(tmp_path, "groundedness", "v2", lambda text: text.replace("You ", "Today you ", 1))
    run = first_run(tmp_path, server, prompts_dir="prompts")
    rejudge(run, "b", model="other", judges=("groundedness",))
    rejudge(run, "c", prompt_version="v2", judges=("groundedness",))
    found = {point.comparator: point for point in points(run)}
    assert sorted(found) == ["m-2025-01-01 with v2", "other-2025-01-01 with v1"]
    assert {(point.kind, point.prompt_version, point.judge) for point in found.values()} == {
        ("spot_check", "v1", "groundedness")
    }
    # 5 became 0: every pair disagrees, and the shift is -5
    other = found["other-2025-01-01 with v1"]
    assert (other.n_pairs, other.n_disagree, other.shift_mean) == (6, 6, -5.0)
    assert found["m-2025-01-01 with v2"].n_disagree == 0


def test_another_address_or_pace_makes_no_other_judge_but_another_seed_does(
    tmp_path: Path, server: FaultServer
) -> None:
    run = first_run(tmp_path, server)
    config = json.loads((tmp_path / "config.json").read_text())
    for number, change in enumerate(({"max_concurrency": 1}, {"seed": 7})):
        config["models"]["m"] = {**config["models"]["m"], **change}
        path = tmp_path / f"new-{number}.json"
        path.write_text(json.dumps(config))
        rejudge(run, f"b{number}", use_cache=False, judges=("groundedness", "correctness"), config_path=path)
    kinds = [point.kind for point in points(run) if point.judge == "groundedness"]
    assert kinds == ["noise_floor", "spot_check"]


def test_only_what_was_really_asked_counts(tmp_path: Path) -> None:
    """Of 6 cases, the parent has no verdict of c0, and c1 fails now: n_asked is 5, of which 4 are pairs."""
    state = {"run": 0}

    def judge(request: Request) -> Any:
        if '"ready"' in request.text:
            return plausible_verdict(request)
        fails = "Kiln c0 " if state["run"] == 0 else "Kiln c1 "
        return chat_reply("no verdict") if fails in request.text else GOOD

    with FaultServer(judge) as server:
        run = first_run(tmp_path, server, judges=[{"name": "groundedness", "model": "m"}])
        state["run"] = 1
        # From the cache, but for c0, which has nothing to be held against.
        rejudge(run, "cached")
        assert points(run) == []
        rejudge(run, "anew", use_cache=False)
    [point] = points(run)
    assert (point.n_asked, point.n_pairs, point.n_failed) == (5, 4, 1)


def test_a_point_is_built_again_from_the_folders(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server)
    rejudge(run, "b", use_cache=False)
    before = Database(run.parent).points()
    asked = [point for point in before if point.kind != "run"]
    assert sorted(point.judge for point in asked) == ["correctness", "groundedness"]
    (run.parent / DATABASE).unlink()
    reindex(run.parent, Database(run.parent))
    assert Database(run.parent).points() == before


def test_a_rejudge_that_goes_on_adds_its_point_once(tmp_path: Path) -> None:
    state = {"refuses": False, "n": 0}

    def other(_: Request) -> Any:
        state["n"] += 1
        return error_reply(401, "no such key") if state["refuses"] and state["n"] > 4 else BAD

    with FaultServer(by_model({"other": other, "m-": lambda _: GOOD})) as server:
        run = first_run(tmp_path, server)
        state["refuses"] = True
        with pytest.raises(Exception, match="no such key"):
            rejudge(run, "b", model="other", judges=("correctness",))
        assert points(run) == []
        state["refuses"] = False
        for _ in range(2):
            # The second time as after a kill between the point and the manifest.
            job = resume_job(str(run.parent / "b"), None, Options())
            run_local(lambda job=job: run_workflow(job, Observer()))  # type: ignore[misc]
            manifest = read_json(run.parent / "b" / "manifest.json")
            (run.parent / "b" / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    [point] = points(run)
    assert (point.judge, point.n_pairs, point.n_disagree) == ("correctness", 6, 6)


@pytest.mark.slow
def test_calls_asked_again_of_a_complete_rejudge_are_a_point_of_their_own(tmp_path: Path) -> None:
    down = {"now": True}

    def other(request: Request) -> Any:
        return error_reply(503, "busy") if down["now"] and "Kiln c3 is" in request.text else BAD

    with FaultServer(by_model({"other": other, "m-": lambda _: GOOD})) as server:
        run = first_run(tmp_path, server)
        summary = rejudge(run, "b", model="other", judges=("correctness",))
        assert summary.status == "complete"
        down["now"] = False
        job = resume_job(str(run.parent / "b"), None, Options())
        again = run_local(lambda: run_workflow(job, Observer()))
    assert again.rejudged is not None
    assert (again.status, again.rejudged["n"]) == ("complete", 6)
    # Six asked, five of them with two verdicts; then the sixth alone, so that none is counted twice.
    assert [(point.n_asked, point.n_pairs, point.n_failed) for point in points(run)] == [(6, 5, 1), (1, 1, 0)]


def test_a_parent_that_takes_no_point_costs_a_warning_and_not_the_rejudge(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server)
    manifest = read_json(run / "manifest.json")
    (run / "manifest.json").write_text(json.dumps({**manifest, "status": "interrupted"}))
    summary = rejudge(run, "b", use_cache=False)
    assert summary.status == "complete"
    [warning] = [item for item in summary.warnings if item.code == "drift_not_recorded"]
    assert "the run is interrupted, so not all of its verdicts are known" in warning.message
    (run / "manifest.json").write_text(json.dumps(manifest))
    (run / "drift_checks.jsonl").mkdir()
    summary = rejudge(run, "c", use_cache=False)
    assert [item.code for item in summary.warnings if item.code == "drift_not_recorded"] == ["drift_not_recorded"]
    assert "drift history: no point, as the warning says" in (run.parent / "c" / "summary.md").read_text()


def test_a_panel_was_asked_anew_where_every_member_was(tmp_path: Path, server: FaultServer) -> None:
    panel = [{"name": "groundedness", "panel": {"models": ["m", "other"], "quorum": 1}}]
    run = first_run(tmp_path, server, judges=panel)
    rejudge(run, "cached")
    assert points(run) == []
    rejudge(run, "anew", use_cache=False)
    [point] = points(run)
    assert (point.kind, point.comparator, point.n_pairs) == ("noise_floor", "median of m, other with v1", 6)


def test_points_that_are_added_at_once_are_all_kept(tmp_path: Path, server: FaultServer) -> None:
    run = first_run(tmp_path, server)
    rejudge(run, "b", use_cache=False, judges=("correctness",))
    [point] = points(run)
    path = run / "drift_checks.jsonl"
    path.write_bytes(path.read_bytes() + b'{"torn": ')
    threads = [
        threading.Thread(
            target=append_point, args=(RunFolder(run), point.model_copy(update={"created_at": f"2099-{n:02}"}))
        )
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(points(run)) == 13
    assert len(read_lines(path)) == 13


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (DriftQuery(), "no history points of judges in"),
        (DriftQuery(judge="groundedness"), "no such history points of judges in"),
    ],
)
def test_a_history_that_is_not_there_is_said_with_what_begins_one(tmp_path: Path, query: DriftQuery, said: str) -> None:
    judgekit.run(write_suite(tmp_path), run_id="a")  # an embedded judge, which has no history without a spot check
    with pytest.raises(ConfigError, match=f"{said} .*; `judgekit spotcheck RUN` or a `spot_check` in the config makes"):
        drift_reports(query, Options(results_dir=tmp_path / "results"))
