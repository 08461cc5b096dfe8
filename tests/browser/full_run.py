"""A run that holds every part a report can show: all commands, offline, and what only a hostile or erring one has."""

import json
from pathlib import Path

import judgekit
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.storage.prompt_files import shipped
from judgekit.workflows.bridge import bridge
from judgekit.workflows.calibrate import CalibrationWanted, calibrate
from judgekit.workflows.comparators import SpotCheckWanted
from judgekit.workflows.job import RunJob
from judgekit.workflows.models import Options
from judgekit.workflows.probe import ProbesWanted, probe
from judgekit.workflows.rejudge import RejudgeWanted, open_rejudge
from judgekit.workflows.report import write_report
from judgekit.workflows.run import run as run_workflow
from judgekit.workflows.spotcheck import spotcheck
from tests.builders import read_lines, seal_again

FABRICATED = "The nominal range is 99 nautical miles."
REAL = "The nominal range is 18 nautical miles in clear air."
WHO = "</script><img src=x onerror=alert(1)>"


def write_full_run(results: Path) -> Path:
    """Two runs and a rejudge; the rejudge has spot checks of three kinds, labels, probes, a bridge and a history."""
    folder = shipped("configs")
    config = json.loads((folder / "quickstart.json").read_text("utf-8"))
    config["judges"][0]["prompt_version"] = "v2"
    config["judges"][1] = {
        "name": "correctness",
        "prompt_version": "v1",
        "panel": {"models": ["baseline", "baseline-strict", "third"]},
    }
    config["models"]["third"] = {"provider": "lexical", "model": "overlap-2", "seed": 3}
    for part in (config, config["system"]):
        for key in ("cases", "path", "indexing"):
            if key in part:
                part[key] = str((folder / part[key]).resolve())
    config["spot_check"]["judge"] = "groundedness"
    config.pop("$schema")
    path = results / "full.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    judgekit.run(path, results_dir=results, run_id="first")
    job = open_rejudge(
        str(results / "first"), RejudgeWanted(judges=("groundedness",), model="baseline-strict"), Options(run_id="full")
    )
    carried_out(job)
    run = results / "full"
    for against in ("prompt:v1", "repeat", "model:baseline"):
        wanted = SpotCheckWanted(judge="groundedness", against=against)
        spotcheck(str(run), wanted, Options(), Observer())
    labels = folder / "quickstart/labels.jsonl"
    for judge in ("correctness", "groundedness"):
        _as(labels, results / "labels.jsonl", judge)
        calibrate(str(run), CalibrationWanted(results / "labels.jsonl", judge), Options(), Observer())
    probe(str(run), ProbesWanted(judge="groundedness"), Options(), Observer())
    bridge(str(results / "first"), str(run), Options(), carried_out)
    (run / "labels.jsonl").write_text(
        json.dumps({"case_id": "q02-lamp-range", "judge": "groundedness", "annotator": WHO, "score": 2}) + "\n",
        encoding="utf-8",
    )
    _fabricate(run)
    return write_report(run)


def carried_out(job: RunJob) -> None:
    """A rejudge at its end."""
    run_local(lambda: run_workflow(job, Observer()))


def _as(labels: Path, target: Path, judge: str) -> None:
    rows = [{**row, "judge": judge} for row in read_lines(labels)]
    target.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _fabricate(run: Path) -> None:
    """A quote of the run's own verdict that stands nowhere."""
    rows = read_lines(run / "judgments.jsonl")
    for row in rows:
        if (row["case_id"], row["judge"], row["role"]) == ("q02-lamp-range", "groundedness", "primary"):
            claim = row["verdict"]["unsupported_claims"][0]
            row["verdict"]["quotes"].append({"claim": claim, "quote": FABRICATED, "is_real": False})
            row["flags"] = ["fabricated_quote"]
    (run / "judgments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    seal_again(run)
