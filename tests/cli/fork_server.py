"""A process with everything imported that forks command lines in milliseconds, in place of starting an interpreter.

As a script it reads one JSON object a line, forks, runs the command line in the child, and answers with the
child's process id, then with its exit code. A child can be told to SIGKILL itself right before its n-th step on the
disk (making, opening for writing, renaming, removing or truncating something below a folder), which needs no change of
the program: Python's audit events name those steps.
"""

import atexit
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

STEPS = frozenset({"open", "os.mkdir", "os.rename", "os.remove", "os.truncate", "sqlite3.connect"})
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
"""Of every command line that a test starts."""


@dataclass(frozen=True)
class Ended:
    """How a command line ended."""

    returncode: int
    """As of subprocess: negative where a signal ended it."""
    stdout: str
    stderr: str
    steps: tuple[str, ...] = ()
    """Its steps on the disk, where they were asked for."""

    @property
    def text(self) -> str:
        """Standard output, then standard error."""
        return self.stdout + self.stderr


class Started:
    """One command line that is running."""

    def __init__(self, server: "ForkServer", pid: int, text_path: Path) -> None:
        self._server = server
        self.pid = pid
        self._text_path = text_path

    def kill(self) -> None:
        """SIGKILL; harmless where it has ended, since nobody waits for it before `ended`."""
        os.kill(self.pid, signal.SIGKILL)

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"

    def ended(self) -> Ended:
        """Wait for its end."""
        answer = self._server.exchange({"wait": self.pid})
        lines = self._read("out").splitlines(keepends=True)
        steps = tuple(line.removeprefix("STEP ").rstrip("\n") for line in lines if line.startswith("STEP "))
        stdout = "".join(line for line in lines if not line.startswith("STEP ")) if steps else "".join(lines)
        return Ended(answer["returncode"], stdout, self._read("err"), steps)

    def _read(self, kind: str) -> str:
        """What it wrote; one that was killed at once did not come to open its file."""
        path = self._text_path.with_suffix(f".{kind}")
        return path.read_text(encoding="utf-8") if path.exists() else ""


class ForkServer:
    """Starts command lines without the half second of an interpreter's start; a context manager."""

    def __init__(self, folder: Path) -> None:
        """Outputs of the command lines are kept in `folder`."""
        self._folder = folder
        self._n_started = 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=ENVIRONMENT)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.communicate(timeout=30)

    def exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send one message and read the answer."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the fork server has died"
        return dict(json.loads(answer))

    def start(
        self,
        *arguments: str,
        cwd: Path | None = None,
        environment: dict[str, str] | None = None,
        below: Path | None = None,
        dies_before: int | None = None,
        file_limit: int | None = None,
    ) -> Started:
        """Start a command line.

        Args:
            arguments: of the command line.
            cwd: its working directory; left out: the server's.
            environment: variables that it has besides those of the server.
            below: print the steps on the disk below this folder.
            dies_before: SIGKILL before the step of this number below that folder, counted from 0.
            file_limit: the kernel kills it when a file grows to so many bytes, halfway through a write.
        """
        self._n_started += 1
        path = self._folder / f"started-{self._n_started}"
        message = {
            "arguments": arguments,
            "cwd": None if cwd is None else str(cwd),
            "environment": environment or {},
            "text": str(path),
            "below": None if below is None else str(below),
            "dies_before": dies_before,
            "file_limit": file_limit,
        }
        return Started(self, self.exchange(message)["pid"], path)

    def run(self, *arguments: str, **how: Any) -> Ended:
        """Run a command line to its end."""
        return self.start(*arguments, **how).ended()


@cache
def _of_this_process() -> ForkServer:
    folder = tempfile.TemporaryDirectory(prefix="judgekit-tests-")
    server = ForkServer(Path(folder.name)).__enter__()
    atexit.register(folder.cleanup)
    atexit.register(server.__exit__, None, None, None)
    return server


def judgekit(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Ended:
    """Run a command line to its end; what a test of a command calls.

    Args:
        arguments: of the command line.
        cwd: its working directory; left out: that of the tests.
        environment: variables that it has besides those of the tests.
    """
    folder = Path.cwd() if cwd is None else cwd
    return _of_this_process().run(*map(str, arguments), cwd=folder, environment=environment)


def one_error_line(result: Ended | subprocess.CompletedProcess[str]) -> str:
    """The only error line, without a traceback."""
    assert "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("judgekit: error: ")]
    assert len(lines) == 1, result.stderr
    return lines[0].removeprefix("judgekit: error: ")


def preload() -> None:
    """Import all that a command needs."""
    import aiohttp  # noqa: F401
    import httpx2  # noqa: F401
    from openai import AsyncOpenAI, DefaultAioHttpClient  # noqa: F401

    import judgekit

    for module in pkgutil.walk_packages(judgekit.__path__, "judgekit."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def watch(below: str, dies_before: int | None) -> None:
    """Print steps on the disk, or die before one of them."""
    n_seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal n_seen
        if event not in STEPS or not isinstance(arguments[0], str | os.PathLike):
            return
        path = os.fspath(arguments[0])
        if not isinstance(path, str) or not path.startswith(below) or (event == "open" and arguments[1] in ("r", "rb")):
            return
        if dies_before is None:
            os.write(1, f"STEP {event} {path.removeprefix(below)}\n".encode())
        elif n_seen == dies_before:
            os.kill(os.getpid(), signal.SIGKILL)
        n_seen += 1

    sys.addaudithook(hook)


def redirect(text: str) -> None:
    """Read nothing, and write to two files."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, suffix in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{text}.{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)


def live(message: dict[str, Any]) -> int:
    """The child's life."""
    import resource

    from judgekit.__main__ import main

    redirect(message["text"])
    os.environ.update(message["environment"])
    if message["cwd"] is not None:
        os.chdir(message["cwd"])
    if message["file_limit"] is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (message["file_limit"], message["file_limit"]))
    if message["below"] is not None:
        watch(message["below"], message["dies_before"])
    sys.argv = ["judgekit", *message["arguments"]]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def serve() -> None:
    """Answer messages until standard input closes."""
    preload()
    for line in sys.stdin:
        message = json.loads(line)
        if "wait" in message:
            _, status = os.waitpid(message["wait"], 0)
            answer = {"returncode": os.waitstatus_to_exitcode(status)}
        else:
            pid = os.fork()
            if not pid:
                code = 70
                try:
                    code = live(message)
                finally:
                    os._exit(code)
            answer = {"pid": pid}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
