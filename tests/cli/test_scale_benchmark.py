"""The benchmark of the ways in which a run grows, with few cases: all ways have the same figures, and it would say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.scale import differences
from tests.builders import REPOSITORY

pytestmark = pytest.mark.slow


def test_all_ways_of_judging_a_suite_have_the_same_figures(tmp_path: Path) -> None:
    folder = tmp_path / "scale"
    command = [sys.executable, "-m", "benchmarks.scale", "run", "--cases", "60", "--folder", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for way in ("one process", "dask, 2 workers", "4 shards, one after another", "their merge", "shard 1/100 alone"):
        assert f"| 60 | {way} |" in done.stdout
    assert "shards are equal" in done.stdout
    assert differences(folder, ["local", "dask", "shards"]) == []
    figures = folder / "shards" / "shards" / "metrics.json"
    document = json.loads(figures.read_text())
    document["overall"]["groundedness"]["value"] += 0.0001
    figures.write_text(json.dumps(document))
    [line] = differences(folder, ["local", "dask", "shards"])
    assert line.startswith("dask and shards: overall.groundedness.value")
