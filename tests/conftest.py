"""Settings and fixtures of all tests."""

import gc
import subprocess
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

# A busy machine is not a failure, so there is no deadline. The gate runs all properties again with `thorough`.
settings.register_profile("quick", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=60)
settings.load_profile("quick")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is made here stays to the end, and looking through it for garbage took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Tests end processes and never machines, so what the operating system holds is safe without `fsync`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture
def runs_without_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are written as they were before the manifest held hashes, so that a test may change their files by hand."""
    monkeypatch.setattr("judgekit.storage.run_folder.seals_of", lambda _: {})


@pytest.fixture
def ends_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Processes that a test leaves running when it fails are ended, so that no later test fails over them."""
    started: list[subprocess.Popen[Any]] = []
    begin = subprocess.Popen.__init__

    def noted(process: subprocess.Popen[Any], *arguments: Any, **settings: Any) -> None:
        begin(process, *arguments, **settings)
        if "fork_server" not in str(process.args):  # it serves the tests that follow
            started.append(process)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    yield
    for process in started:
        process.kill()
        with process:
            pass
