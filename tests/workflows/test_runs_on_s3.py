"""Runs in a bucket of an S3 server; moto and s3fs are large, so the test is skipped where they are not installed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judgekit.cli.app import app
from judgekit.storage.remote_files import PLACE_VARIABLE
from tests.builders import read_json, write_suite

pytestmark = pytest.mark.slow

SECRET = "wJalrXUtnFEMI-hidden"  # of nobody


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A bucket called `evals`."""
    pytest.importorskip("moto", reason="moto[server] and s3fs are not installed")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        PLACE_VARIABLE: str(tmp_path / "first machine"),
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    store = s3fs.S3FileSystem(use_listings_cache=False)
    store.makedirs("evals", exist_ok=True)  # moto keeps buckets for the whole process
    yield store
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def said(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout + result.stderr


def test_a_run_in_a_bucket(bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_suite(tmp_path / "suite")
    for name in ("cases", "outputs"):
        bucket.put_file(str(config.parent / f"{name}.jsonl"), f"evals/data/{name}-0.jsonl")
    data = {
        "cases": "s3://evals/data/cases-*.jsonl",
        "system": {"name": "recorded", "path": "s3://evals/data/outputs-0.jsonl"},
    }
    config.write_text(json.dumps({**read_json(config), **data, "results_dir": "s3://evals/runs"}))
    code, text = said("run", str(config), "--run-id", "r", "--quiet")
    assert code == 0, text
    assert json.loads(bucket.cat_file("evals/runs/r/manifest.json"))["status"] == "complete"
    assert not any(SECRET.encode() in bucket.cat_file(name) for name in bucket.find("evals"))

    monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / "second machine"))
    code, text = said("run", str(config), "--run-id", "r", "--quiet")
    assert (code, "s3://evals/runs/r: exists already" in text) == (2, True)
    assert said("runs", "show", "s3://evals/runs/r")[0] == 0
    assert said("rejudge", "latest", "--results-dir", "s3://evals/runs", "--run-id", "again", "--quiet")[0] == 0
    assert said("compare", "s3://evals/runs/r", "s3://evals/runs/again")[0] == 0
    bucket.rm_file("evals/runs/again/judgments.jsonl")
    code, text = said("runs", "show", "s3://evals/runs/again")
    assert (code, "judgments.jsonl: damaged: it is gone" in text) == (4, True)
    assert said("runs", "delete", "s3://evals/runs/r", "--yes")[0] == 0
    assert not bucket.exists("evals/runs/r")


def test_a_bucket_that_is_not_there_is_not_made(bucket: Any, tmp_path: Path) -> None:
    config = write_suite(tmp_path / "suite")
    code, text = said("run", str(config), "--results-dir", "s3://evils/runs", "--run-id", "r", "--quiet")
    assert (code, "s3://evils/runs/r: cannot be written" in text) == (2, True)
    assert not bucket.exists("evils")
