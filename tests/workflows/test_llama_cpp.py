"""A GGUF file as a judge: the server that a run starts, and that it is gone however the run ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import judgekit.providers.llama_cpp as provider
from judgekit.core.errors import ConfigError, JudgekitError, ProviderError
from judgekit.executors.event_loop import run_local
from judgekit.testing import FaultServer
from judgekit.workflows.models import Options
from judgekit.workflows.pin import find_pins
from judgekit.workflows.setup import set_up
from tests.builders import REPOSITORY, read_json, write_suite
from tests.doubles.xllamacpp_double import SOURCE
from tests.workflows.engine import Ran, again, resumed

pytestmark = pytest.mark.slow  # each test starts a server

GGUF = os.environ.get("JUDGEKIT_GGUF")
"""A real model file, for the test that asks one."""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(pid: int, seconds: float = 8.0) -> bool:
    until = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_alive(pid)


@pytest.fixture
def double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the double, which is found before an installed xllamacpp."""
    folder = tmp_path / "import"
    folder.mkdir()
    (folder / "xllamacpp.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(folder)
    yield folder
    sys.modules.pop("xllamacpp", None)


def write_local(folder: Path, content: bytes = b"GGUF one", **suite: Any) -> Path:
    """A suite judged by a GGUF file beside its config."""
    model = {"provider": "llama_cpp", "model": "judge.gguf", **suite.pop("model", {})}
    config = write_suite(folder / "suite", n_cases=3, model=model, **suite)
    (config.parent / "judge.gguf").write_bytes(content)
    return config


def run_suite(config: Path, *, run_id: str = "r", use_cache: bool = True) -> Ran:
    """A run without another server than its own."""
    return again(config, FaultServer(), run_id=run_id, use_cache=use_cache)


def started(config: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_json(config.parent / "judge.started")
    return found


def test_a_run_starts_the_server_in_the_profile_that_repeats_itself_and_stops_it(tmp_path: Path, double: Path) -> None:
    config = write_local(tmp_path)
    ran = run_suite(config)
    assert ran.error is None
    assert {item["verdict"]["score"] for item in ran.judgments.values()} == {4}
    params = started(config)
    wanted = {"n_parallel": 1, "cache_prompt": False, "cache_ram_mib": 0, "n_gpu_layers": 0, "n_ctx": 8192}
    assert {name: params[name] for name in wanted} == wanted
    assert params["hostnames"] == ["127.0.0.1"]
    assert gone(params["pid"])
    build = "sha256:" + sha256(b"GGUF one").hexdigest()
    assert ran.manifest["models"]["m"]["build_hash"] == build
    assert ran.metrics["cost"]["usd"] == 0.0
    written = b"".join(path.read_bytes() for path in ran.folder.rglob("*") if path.is_file())
    assert params["api_keys"][0].encode() not in written


def test_the_block_of_the_page_runs(tmp_path: Path, double: Path) -> None:
    page = (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8").partition("## A GGUF file of your own")[2]
    (block,) = json.loads(page.partition("```json\n")[2].partition("```")[0]).values()
    config = write_local(tmp_path, model=block)
    (config.parent / block["model"]).parent.mkdir()
    (config.parent / "judge.gguf").rename(config.parent / block["model"])
    ran = run_suite(config)
    assert ran.error is None
    assert {item["served_model"] for item in ran.judgments.values()} == {block["model"]}


def test_what_is_cached_starts_nothing_and_another_file_is_another_judge(tmp_path: Path, double: Path) -> None:
    config = write_local(tmp_path)
    assert run_suite(config).error is None
    (config.parent / "judge.started").unlink()
    second = run_suite(config, run_id="second")
    assert {item["from_cache"] for item in second.judgments.values()} == {True}
    assert not (config.parent / "judge.started").exists()
    (config.parent / "judge.gguf").write_bytes(b"GGUF two")
    other = run_suite(config, run_id="other")
    assert {item["from_cache"] for item in other.judgments.values()} == {False}


def test_the_pin_is_the_hash_of_the_file_and_holds(tmp_path: Path, double: Path) -> None:
    config = write_local(tmp_path)
    (found,) = run_local(lambda: find_pins(config, None)).values()
    assert found["pin"] == {"build_hash": "sha256:" + sha256(b"GGUF one").hexdigest()}
    pinned = write_local(tmp_path, b"GGUF two", model={"pin": found["pin"]})
    ran = run_suite(pinned)
    assert isinstance(ran.error, ProviderError)
    assert "pinned is sha256:" in str(ran.error)


@pytest.mark.parametrize(
    ("content", "model", "said"),
    [
        (b"PK\x03\x04", {}, "judge.gguf: not a GGUF file"),
        (
            b"GGUF",
            {"model": "gone.gguf"},
            "gone.gguf; model is the path of a GGUF file, which starts beside the config",
        ),
        (b"GGUF", {"base_url": "http://127.0.0.1:1/v1"}, "starts its own server; leave out base_url and api_key_env"),
    ],
)
def test_what_cannot_be_served_is_said_before_any_call(
    tmp_path: Path, double: Path, content: bytes, model: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        set_up(write_local(tmp_path, content, model=model), Options())
    assert str(caught.value).startswith("models.m: ")
    assert said in str(caught.value)


def test_a_package_that_is_missing_is_named_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="pip install xllamacpp"):
        set_up(write_local(tmp_path), Options())


def test_too_little_memory_is_said_and_nothing_started(
    tmp_path: Path, double: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "_available_bytes", lambda: 1_000_000)
    config = write_local(tmp_path)
    ran = run_suite(config)
    assert isinstance(ran.error, ProviderError)
    assert "of memory and more for its context, and 0.0 GB are free" in str(ran.error)
    assert not (config.parent / "judge.started").exists()


def test_a_file_that_llama_cpp_refuses_is_said_in_its_words(tmp_path: Path, double: Path) -> None:
    ran = run_suite(write_local(tmp_path, b"GGUFevil"))
    assert isinstance(ran.error, ProviderError)
    assert "llama.cpp cannot load it: load: tensor is out of bounds" in str(ran.error)


def test_a_server_that_dies_stops_the_run_which_can_be_resumed(tmp_path: Path, double: Path) -> None:
    config = write_local(tmp_path, b"GGUFdies")
    ran = run_suite(config)
    assert isinstance(ran.error, JudgekitError)
    assert "killed by signal 9" in str(ran.error)
    assert ran.manifest["status"] == "interrupted"
    (config.parent / "judge.gguf").write_bytes(b"GGUFgood")
    other: Ran = resumed(ran)
    assert "this run was begun with sha256:" in str(other.error)  # another file is another judge


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_server_is_left_however_the_run_is_stopped(tmp_path: Path, double: Path, how: signal.Signals) -> None:
    config = write_local(tmp_path)
    text = (double / "xllamacpp.py").read_text()
    slow = text.replace("def do_POST(self):", "def do_POST(self):\n                __import__('time').sleep(1)")
    (double / "xllamacpp.py").write_text(slow)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(double), str(REPOSITORY)])}
    run = subprocess.Popen(
        [sys.executable, "-m", "judgekit", "run", str(config), "-q"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while not (config.parent / "judge.started").exists() and time.monotonic() < until:
        time.sleep(0.05)
    pid = started(config)["pid"]
    assert is_alive(pid)
    time.sleep(0.5)
    run.send_signal(how)
    assert run.wait(30) == {signal.SIGKILL: -9}.get(how, 130)
    assert gone(pid)


@pytest.mark.slow
@pytest.mark.skipif(GGUF is None, reason="JUDGEKIT_GGUF names no model file")
@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
def test_a_real_model_says_the_same_bytes_twice(tmp_path: Path) -> None:
    model = {"provider": "llama_cpp", "model": str(Path(GGUF or "").resolve()), "max_output_tokens": 300}
    config = write_suite(tmp_path, n_cases=1, model={**model, "timeout_seconds": 280})
    first, second = (run_suite(config, run_id=name, use_cache=False) for name in "ab")
    for ran in (first, second):
        assert ran.manifest["models"]["m"]["build_hash"].startswith("sha256:")
    texts = [(ran.only["raw_reply"], json.dumps(ran.only["verdict"])) for ran in (first, second)]
    assert texts[0] == texts[1]
