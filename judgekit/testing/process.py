"""The server in a process of its own, for measurements that must not share a core's time with it."""

import json
import subprocess
import sys
from types import TracebackType
from typing import Self

from judgekit.testing.log import Totals

_STOP_SECONDS = 10.0


class ServerProcess:
    """Runs `python -m judgekit.testing.server`, from start to stop of a `with` block.

        with ServerProcess("--latency-ms", "50") as server:
            ask(server.base_url)
        print(server.totals.n_requests)

    The process ends by itself if this one dies.

    Args:
        *arguments: Passed on; see `python -m judgekit.testing.server --help`.
    """

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self.base_url = ""
        """The address to give to a client, once started."""
        self.totals = Totals()
        """The totals of the log, once stopped."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "judgekit.testing.server", "--until-stdin-closes", *self._arguments]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)  # noqa: S603
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line.startswith("listening on "):
            _, errors = self._process.communicate(timeout=_STOP_SECONDS)
            raise RuntimeError(f"the server did not start: {errors.strip()}")
        self.base_url = line.removeprefix("listening on ").strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        try:
            # communicate() closes standard input, which ends the server.
            _, errors = self._process.communicate(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, errors = self._process.communicate()
        last_line = errors.strip().rpartition("\n")[2]
        if last_line.startswith("{"):
            self.totals = Totals(**json.loads(last_line))

    @property
    def pid(self) -> int:
        """The process id.

        Raises:
            RuntimeError: The server was never started.
        """
        if self._process is None:
            raise RuntimeError("the server is not started")
        return self._process.pid
