"""Failure cases of kind B that come from the machine: proxies of the environment and the limit of open files."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import ConfigError, ProviderError
from judgekit.testing import FaultServer, with_latency
from tests.builders import write_suite
from tests.workflows.engine import Ran, again, carried_out, good

pytestmark = pytest.mark.usefixtures("quick_waits")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def test_b25_a_socks_proxy_does_not_matter_to_a_host_that_is_excepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1089")
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    assert len(carried_out(tmp_path, good()).judgments) == 6


def test_b25_a_socks_proxy_is_refused_in_one_line_that_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1089")
    ran = carried_out(tmp_path, good())
    assert isinstance(ran.error, ConfigError)
    assert "ALL_PROXY names a SOCKS proxy for http://127.0.0.1" in str(ran.error)
    assert "\n" not in str(ran.error)
    assert ran.server.log.totals.n_requests == 0


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that notes the first line of what it is asked, and refuses."""
    listener = socket.create_server(("127.0.0.1", 0))
    lines: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                lines.append(connection.recv(65536).partition(b"\r\n")[0])
                connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", lines
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


def test_b26_a_proxy_of_the_environment_is_used_and_named_where_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: tuple[str, list[bytes]]
) -> None:
    address, lines = proxy
    monkeypatch.setenv("HTTPS_PROXY", address)
    config = write_suite(tmp_path, "https://api.example/v1", model={"max_attempts": 2})
    with FaultServer() as unused:
        ran = again(config, unused)
    assert lines[0] == b"CONNECT api.example:443 HTTP/1.1"
    assert isinstance(ran.error, ProviderError)
    assert "cannot reach https://api.example/v1 through the proxy of HTTPS_PROXY" in str(ran.error)


RUN_WITH_FEW_FILES = """
import os, resource, sys, threading
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
import judgekit
most, done = [0], threading.Event()
def watch():
    while not done.wait(0.005):
        most[0] = max(most[0], len(os.listdir("/proc/self/fd")))
threading.Thread(target=watch, daemon=True).start()
before = len(os.listdir("/proc/self/fd"))
judgekit.run(sys.argv[1], run_id="r")
done.set()
print(before, most[0], len(os.listdir("/proc/self/fd")))
"""


def with_few_files(folder: Path, n_files: int, **suite: Any) -> tuple[Ran, list[int]]:
    """A run in a process that may open few files; its counts of open files before, at most and after."""
    with FaultServer(with_latency(0.02, then=good())) as server:
        config = write_suite(folder, server.base_url, **suite)
        command = [sys.executable, "-c", RUN_WITH_FEW_FILES, str(config), str(n_files)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert result.returncode == 0, result.stderr
        ran = Ran(config, folder / "results" / "r", None, None, server)
    return ran, [int(word) for word in result.stdout.split()]


@pytest.mark.slow
def test_b28_connections_stay_below_the_limit_of_open_files(tmp_path: Path) -> None:
    ran, _ = with_few_files(tmp_path, 64, n_cases=300, model={"max_concurrency": 1000})
    record = ran.metrics["judges"]["groundedness"]
    assert (record["n_judged"], record["n_failed"]) == (300, 0)
    assert ran.server.log.totals.max_in_flight <= 24
    assert "`ulimit -n`" in ran.warnings["concurrency_capped"]


def test_b28_running_out_of_files_is_named_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoMoreFiles(socket.socket):
        def __init__(self, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None) -> None:
            if family == socket.AF_INET and fileno is None:
                raise OSError(24, "Too many open files")
            super().__init__(family, type, proto, fileno)

    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url, model={"max_attempts": 2})
        monkeypatch.setattr(socket, "socket", NoMoreFiles)
        ran = again(config, server)
        monkeypatch.undo()
    assert isinstance(ran.error, ProviderError)
    assert "too many open files; lower max_concurrency or raise `ulimit -n`" in str(ran.error)
