"""The scripts of docs/scale.md share a suite, and its benchmark holds all ways of sharing against each other."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from benchmarks.scale import differences
from tests.builders import REPOSITORY
from tests.cli.fork_server import judgekit
from tests.cli.test_pages_run import environment_of

pytestmark = pytest.mark.slow

PAGE = (REPOSITORY / "docs" / "scale.md").read_text(encoding="utf-8")


def block(heading: str, language: str) -> str:
    """The first block in a language below a heading."""
    found = re.search(rf"^### {heading}\n.*?^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found, heading
    return found[1]


def suite(tmp_path: Path) -> Path:
    """A folder with the quickstart's data as `config.json`, and a run of it in one process."""
    folder = tmp_path / "suite"
    shutil.copytree(REPOSITORY / "configs" / "quickstart", folder / "quickstart")
    config = json.loads((REPOSITORY / "configs" / "quickstart.json").read_text(encoding="utf-8"))
    del config["$schema"]
    (folder / "config.json").write_text(json.dumps({**config, "seed": 7}))
    done = judgekit("run", "config.json", "--run-id", "plain", cwd=folder)
    assert done.returncode == 0, done.text
    return folder


def carried_out(script: str, folder: Path, **environment: str) -> None:
    """Run a script of the page where `judgekit` is the program of this checkout."""
    command = ["bash", "-euo", "pipefail", "-c", script]
    env = {**environment_of(folder), **environment}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def figures(folder: Path, run: str) -> list[Any]:
    """What may not depend on how a run was shared."""
    document = json.loads((folder / "results" / run / "metrics.json").read_text())
    return [document[part] for part in ("overall", "slices", "judge_reliability")]


def test_the_array_job_shares_a_suite_and_goes_on_where_a_shard_was_stopped(tmp_path: Path) -> None:
    folder = suite(tmp_path)
    script = block("Slurm", "sh")
    for number in ("1", "2"):
        carried_out(script, folder, SLURM_ARRAY_TASK_ID=number, SLURM_ARRAY_TASK_COUNT="2")
    part = folder / "shards" / "2" / "part"
    manifest = part / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "status": "interrupted", "files": {}}))
    (part / "judgments.jsonl").unlink()
    carried_out(script, folder, SLURM_ARRAY_TASK_ID="2", SLURM_ARRAY_TASK_COUNT="2")
    merge = re.search(r'--wrap "(judgekit merge .*)"', PAGE)
    assert merge
    carried_out(merge[1], folder)
    assert figures(folder, "nightly") == figures(folder, "plain")


def test_the_job_of_kubernetes_shares_a_suite(tmp_path: Path) -> None:
    folder = suite(tmp_path)
    job = yaml.safe_load(block("Kubernetes", "yaml"))
    assert (job["kind"], job["spec"]["completionMode"], job["spec"]["completions"]) == ("Job", "Indexed", 16)
    [container] = job["spec"]["template"]["spec"]["containers"]
    [script] = container["args"]
    for index in ("0", "1"):
        carried_out(script.replace("))/16", "))/2"), folder, JOB_COMPLETION_INDEX=index)
    merge = re.search(r"runs `(judgekit merge .*)`", PAGE)
    assert merge
    carried_out(merge[1], folder)
    assert figures(folder, "nightly") == figures(folder, "plain")


def test_the_matrix_shares_a_suite(tmp_path: Path) -> None:
    folder = suite(tmp_path)
    jobs = yaml.safe_load(block("A CI matrix", "yaml"))["jobs"]
    for number in jobs["shard"]["strategy"]["matrix"]["shard"]:
        [command] = [step["run"] for step in jobs["shard"]["steps"] if "judgekit run" in step.get("run", "")]
        carried_out(command.replace("${{ matrix.shard }}", str(number)), folder)
    for hidden in folder.glob("shards/**/.*"):  # artifacts leave them out
        hidden.unlink()
    (folder / "shards" / "judgekit.db").unlink()
    [command] = [step["run"] for step in jobs["merge"]["steps"] if "judgekit merge" in step.get("run", "")]
    carried_out(command, folder)
    assert figures(folder, "nightly") == figures(folder, "plain")


def test_all_ways_of_judging_a_suite_have_the_same_figures(tmp_path: Path) -> None:
    folder = tmp_path / "scale"
    command = [sys.executable, "-m", "benchmarks.scale", "run", "--cases", "60", "--folder", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for way in ("one process", "dask, 2 workers", "4 shards, one after another", "their merge", "shard 1/100 alone"):
        assert f"| 60 | {way} |" in done.stdout
    assert "shards are equal" in done.stdout
    figures_of_merge = folder / "shards" / "shards" / "metrics.json"
    document = json.loads(figures_of_merge.read_text())
    document["overall"]["groundedness"]["value"] += 0.0001
    figures_of_merge.write_text(json.dumps(document))
    [line] = differences(folder, ["local", "dask", "shards"])
    assert line.startswith("dask and shards: overall.groundedness.value")
