"""rejudge, spotcheck and bridge as their users meet them: offline, killed, gated, and fed with hostile text."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgekit.testing import FaultServer, Request, plausible_verdict, verdict, with_latency
from tests.builders import case, output, read_json, read_lines, seal_again, write_suite
from tests.cli.fork_server import ENVIRONMENT, Ended, judgekit

LEXICAL = {
    "baseline": {"provider": "lexical", "model": "overlap-2"},
    "strict": {"provider": "lexical", "model": "overlap-strict-2"},
}


def error_of(result: Ended) -> str:
    assert result.returncode == 2, result.stderr
    [line] = result.stderr.splitlines()
    return line.removeprefix("judgekit: error: ")


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quickstart")
    assert judgekit("run", "quickstart", "--run-id", "q", "-q", cwd=folder).returncode == 0
    return folder


@pytest.mark.slow
def test_the_example_can_be_judged_again_offline(quickstart: Path) -> None:
    result = judgekit("rejudge", "q", "--run-id", "again", cwd=quickstart)
    assert result.returncode == 0, result.stderr
    assert "verdicts changed against q: 0 of 61, mean shift +0.00" in result.stdout
    folder = quickstart / result.stdout.splitlines()[-1]
    assert (folder / "scores.jsonl").read_bytes() == (quickstart / "results" / "q" / "scores.jsonl").read_bytes()
    assert {item["n_requests"] for item in read_lines(folder / "judgments.jsonl")} == {0}


@pytest.mark.slow
def test_json_of_a_rejudge_is_that_of_a_run(quickstart: Path) -> None:
    result = judgekit(
        "rejudge", "q", "--run-id", "strict", "--model", "baseline-strict", "--judge", "correctness", "--json", "-q",
        cwd=quickstart,
    )  # fmt: skip
    document = json.loads(result.stdout)
    assert document["metrics"]["rejudged"]["parent"] == "q"
    assert document["metrics"] == read_json(quickstart / document["run_dir"] / "metrics.json")
    assert 0 < document["metrics"]["rejudged"]["changed"] <= document["metrics"]["rejudged"]["n"] == 31


def test_a_check_prints_the_pairs_that_disagree(quickstart: Path) -> None:
    result = judgekit("spotcheck", "q", "--judge", "correctness", "--n", "500", "--stats", cwd=quickstart)
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines() == [
        "note: correctness: 500 cases wanted, the run has 31 judged ones; all of them are taken"
    ]
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Do not rely on correctness yet: the second opinion disagrees in 12 of 31 verdicts")
    assert lines[2] == "correctness against baseline-strict (overlap-strict-2), prompt v1, 31 pairs of 31 verdicts"
    assert any(" -> " in line for line in lines)
    assert not any(line.startswith("groundedness") for line in lines)
    assert lines[-1] == "results/q"


def test_json_of_a_check_is_one_object(quickstart: Path) -> None:
    result = judgekit("spotcheck", "q", "--against", "repeat", "--json", cwd=quickstart)
    document = json.loads(result.stdout)
    assert (
        document["judge_reliability"] == read_json(quickstart / "results" / "q" / "metrics.json")["judge_reliability"]
    )
    for name in ("groundedness", "correctness"):
        assert document["judge_reliability"]["by_judge"][name]["noise_floor"]["flip_rate"] == 0


@pytest.mark.slow
def test_a_bridge_of_the_example(quickstart: Path) -> None:
    judgekit(
        "rejudge", "q", "--run-id", "b", "--model", "baseline-strict", "--judge", "correctness", "-q", cwd=quickstart
    )
    text = judgekit("bridge", "q", "b", "--stats", cwd=quickstart)
    assert text.returncode == 0, text.stderr
    assert "groundedness: the same judge in both runs, so its part is 0 by construction" in text.stdout
    found = json.loads(judgekit("bridge", "q", "b", "--json", cwd=quickstart).stdout)
    figure = found["judges"]["correctness"]["figures"]["correctness"]
    # the outputs are the same, so all of the change is the judge's
    assert figure["system"]["value"] == 0
    assert figure["judge"]["value"] == figure["total"]["value"] < 0
    markdown = judgekit("bridge", "q", "b", "--markdown", cwd=quickstart).stdout
    assert markdown.startswith("# q to b\n")
    assert "| figure | old | new | total | system | judge | better | cases |" in markdown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rejudge", "nothing"), "results/nothing: no run here (no such folder)"),
        (("rejudge", "q", "--model", "none"), "--model 'none': there are baseline, baseline-strict"),
        (("rejudge", "q", "--run-id", "q"), "exists already"),
        (("spotcheck", "q", "--judge", "correctnes"), "did you mean 'correctness'?"),
        (("spotcheck", "q", "--against", "model:baseline"), "--against repeat asks it again"),
        (("spotcheck", "q", "--threshold", "1.5"), "--threshold 1.5: expected a rate above 0 and below 1"),
        (("bridge", "q", "q"), "is both runs; name two"),
        (("run", "quickstart", "--resume", "again"), "is a rejudge, which holds its own config"),
    ],
)
def test_what_can_be_mended_is_one_line(quickstart: Path, arguments: tuple[str, ...], message: str) -> None:
    if "again" in arguments and not (quickstart / "results" / "again").exists():
        judgekit("rejudge", "q", "--run-id", "again", "-q", cwd=quickstart)
    assert message in error_of(judgekit(*arguments, cwd=quickstart))


@pytest.mark.parametrize("command", ["rejudge", "spotcheck", "bridge"])
def test_help_has_examples(command: str, tmp_path: Path) -> None:
    result = judgekit(command, "--help", cwd=tmp_path)
    assert result.returncode == 0
    assert f"judgekit {command} " in result.stdout.split("Examples:")[1]


def test_a_gate_on_the_check_decides_the_exit_code(tmp_path: Path) -> None:
    gate = {"metric": "judge_reliability.spot_check_n", "op": ">=", "value": 5}
    write_suite(
        tmp_path,
        models=LEXICAL,
        judges=[{"name": "groundedness", "model": "baseline"}],
        gates=[gate],
        results_dir=None,
    )
    assert judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path).returncode == 1
    few = judgekit("spotcheck", "r", "--n", "4", cwd=tmp_path)
    assert few.returncode == 1
    assert "judge_reliability.spot_check_n >= 5: missed, 4" in few.stdout
    assert judgekit("spotcheck", "r", "--n", "5", cwd=tmp_path).returncode == 0


HOSTILE_ID = "c|<b>x\u202e\x1b[31m"
HOSTILE_REASON = "<script>alert(1)</script> | \x1b]0;title\x07 [click](http://x) `code` \u202e"


def test_hostile_ids_and_reasonings_stay_text(tmp_path: Path) -> None:
    def script(request: Request) -> Any:
        if '"ready"' in request.text:
            return plausible_verdict(request)
        is_other = str(request.body["model"]).startswith("other")
        claims: dict[str, Any] = {"unsupported": ["x"]} if is_other else {"supported": ["x"]}
        return verdict(0 if is_other else 5, reasoning=HOSTILE_REASON, **claims)

    with FaultServer(script) as server:
        at = {"base_url": server.base_url}
        write_suite(
            tmp_path,
            models={"m": {**at, "model": "m-2025-01-01"}, "other": {**at, "model": "other-2025-01-01"}},
            judges=[{"name": "groundedness", "model": "m"}],
            case_rows=[case(HOSTILE_ID)],
            output_rows=[output(HOSTILE_ID)],
            results_dir=None,
        )
        assert judgekit("run", "config.json", "--run-id", "r", "-q", cwd=tmp_path).returncode == 0
        result = judgekit("spotcheck", "r", "--against", "model:other", "--stats", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "alert(1)" in result.stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(result.stdout)
    summary = (tmp_path / "results" / "r" / "summary.md").read_text(encoding="utf-8")
    [row] = [line for line in summary.splitlines() if "alert(1)" in line]
    assert "<script>" not in summary
    assert "[" not in row.replace("\\[", "")
    assert row.replace("\\|", "").count("|") == 7  # six cells
    assert not {"\x1b", "\x07", "\u202e"} & set(summary)


# drift


@pytest.mark.slow
def test_a_judge_whose_verdicts_flip_from_some_week_on_has_drifted(tmp_path: Path) -> None:
    """30 verdicts, two quiet weeks, then every third one flips: 20 of 60 pairs in two weeks, where 5% are usual."""
    state = {"week": 0}

    def judge(request: Request) -> Any:
        if '"ready"' in request.text:
            return plausible_verdict(request)
        number = int(re.findall(r"Kiln c(\d+) ", request.text)[0])
        if state["week"] >= 3 and number % 3 == 0:
            return verdict(0, unsupported=["x"])
        return verdict(5, supported=["x"])

    with FaultServer(judge) as server:
        write_suite(tmp_path, server.base_url, n_cases=30, results_dir=None)
        assert judgekit("run", "config.json", "--run-id", "r", "-q", cwd=tmp_path).returncode == 0
        path = tmp_path / "results" / "r" / "judgments.jsonl"
        # What is asked within a day of the verdicts would be the noise floor.
        old = [{**line, "created_at": "2026-01-01T00:00:00.000+00:00"} for line in read_lines(path)]
        path.write_text("".join(json.dumps(line) + "\n" for line in old), encoding="utf-8")
        seal_again(path.parent)
        codes = []
        for week in (1, 2, 3, 4):
            state["week"] = week
            again = judgekit("rejudge", "r", "--no-cache", "--run-id", f"week-{week}", "-q", cwd=tmp_path)
            assert again.returncode == 0, again.stderr
            assert "drift history: one point for each judge that was asked again (groundedness 30)" in again.stdout
            codes.append(judgekit("drift", "--fail-on-drift", cwd=tmp_path).returncode)
        cached = judgekit("rejudge", "r", "-q", cwd=tmp_path)
    assert codes == [0, 0, 1, 1]
    assert "drift history: no point, since every reply came from the cache" in cached.stdout
    (tmp_path / "results" / "judgekit.db").unlink()
    assert judgekit("runs", "reindex", cwd=tmp_path).returncode == 0
    result = judgekit("drift", "--fail-on-drift", "--stats", cwd=tmp_path)
    assert result.returncode == 1
    finding, _, first, second, *_ = result.stdout.splitlines()
    assert finding.startswith("groundedness v1 drifted: it judges the same answers differently.")
    assert re.fullmatch(r"groundedness v1 on data set [0-9a-f]{12}: judge since run r", first)
    start = (
        "  the same judge asked again later, judge-2025-01-01 with v1: 20 of 60 contradict the stored verdict (33%) "
        "since run r, 0 of 60"
    )
    assert second.startswith(start)
    [history] = json.loads(judgekit("drift", "--json", cwd=tmp_path).stdout)
    assert [(row["n_pairs"], row["n_disagree"], row["state"]) for row in history["timeline"]] == [
        (30, 0, "none"),
        (30, 0, "none"),
        (30, 10, "judge"),
        (30, 10, "judge"),
    ]


# killed


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Path]:
    """A run of 30 cases at a server that takes its time."""
    with FaultServer(with_latency(0.05, then=plausible_verdict)) as server:
        at = {"base_url": server.base_url, "max_concurrency": 2}
        write_suite(
            tmp_path,
            n_cases=30,
            models={"m": {**at, "model": "m-2025-01-01"}, "other": {**at, "model": "other-2025-01-01"}},
            judges=[{"name": "groundedness", "model": "m"}, {"name": "correctness", "model": "m"}],
            results_dir=None,
        )
        assert judgekit("run", "config.json", "--run-id", "r", "-q", cwd=tmp_path).returncode == 0
        yield tmp_path


def stopped_after(n_lines: int, path: Path, how: signal.Signals, *arguments: str, cwd: Path) -> int:
    """Start a command, end it once a file has so many lines, and return its exit code."""
    process = subprocess.Popen(
        [sys.executable, "-m", "judgekit", *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= n_lines:
            break
        time.sleep(0.01)
    process.send_signal(how)
    return process.wait(timeout=30)


@pytest.mark.slow
def test_a_rejudge_that_was_killed_goes_on_to_the_same_end(slow: Path) -> None:
    arguments = ("--model", "other", "--judge", "correctness", "-q")
    assert judgekit("rejudge", "r", "--run-id", "whole", "--no-cache", *arguments, cwd=slow).returncode == 0
    path = slow / "results" / "killed" / "judgments.jsonl"
    how = signal.SIGKILL
    # 30 lines are copied at once, so 36 means that some are judged
    stopped_after(36, path, how, "rejudge", "r", "--run-id", "killed", *arguments, cwd=slow)
    assert read_json(path.with_name("manifest.json"))["status"] == "running"
    n_before = path.read_bytes().count(b"\n")
    result = judgekit("run", "--resume", "killed", "-q", cwd=slow)
    assert result.returncode == 0, result.stderr
    assert "verdicts changed against r: " in result.stdout
    assert 30 < n_before < 60
    assert len(read_lines(path)) == 60
    for name in ("scores.jsonl", "cases.jsonl", "judge_inputs.jsonl"):
        assert path.with_name(name).read_bytes() == (slow / "results" / "whole" / name).read_bytes()
    figures = [read_json(slow / "results" / run / "metrics.json") for run in ("whole", "killed")]
    assert figures[0]["rejudged"] == figures[1]["rejudged"]
    assert figures[0]["overall"] == figures[1]["overall"]


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 130)])
@pytest.mark.slow
def test_a_check_that_was_stopped_goes_on_with_the_same_command(slow: Path, how: signal.Signals, code: int) -> None:
    folder = slow / "results" / "r"
    arguments = ("spotcheck", "r", "--judge", "correctness", "--against", "model:other", "-q")
    assert stopped_after(65, folder / "judgments.jsonl", how, *arguments, cwd=slow) == code
    assert read_json(folder / "metrics.json")["judge_reliability"] is None
    n_before = len(read_lines(folder / "judgments.jsonl"))
    assert 60 < n_before < 80
    result = judgekit(*arguments, cwd=slow)
    assert result.returncode == 0, result.stderr
    assert len(read_lines(folder / "judgments.jsonl")) == 80
    assert read_json(folder / "metrics.json")["judge_reliability"]["spot_check_n"] == 20
