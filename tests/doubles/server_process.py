"""The server in a process of its own, for measurements that must not share a core's time with it.

`python -m tests.doubles.server_process --port 0 --faults 0.2 --seed 7` runs it by hand.
"""

import argparse
import dataclasses
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from judgekit.testing import FaultServer, Responder, ServerInfo, Totals, plausible_verdict, with_latency
from tests.doubles.changes import limited
from tests.doubles.storms import REPLY_MIX, RETRYABLE_MIX, seeded_faults

REPOSITORY: Final = Path(__file__).parents[2]
_STOP_SECONDS: Final = 10.0
_NAMED_MIXES = {"retryable": RETRYABLE_MIX, "reply": REPLY_MIX, "all": {**RETRYABLE_MIX, **REPLY_MIX}}


class ServerProcess:
    """Runs `python -m tests.doubles.server_process`, from start to stop of a `with` block.

        with ServerProcess("--latency-ms", "50") as server:
            ask(server.base_url)
        print(server.totals.n_requests)

    The process ends by itself if this one dies.

    Args:
        *arguments: Passed on; see `python -m tests.doubles.server_process --help`.
    """

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self.base_url = ""
        """The address to give to a client, once started."""
        self.totals = Totals()
        """The totals of the log, once stopped."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.doubles.server_process", "--until-stdin-closes", *self._arguments]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=REPOSITORY)
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM, Ctrl-C, or (if asked) the end of standard input.

    Prints `listening on http://127.0.0.1:PORT/v1` to standard output, and at the end the totals of the log to
    standard error, as one line of JSON.

    Returns:
        0.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        responder = _responder(options)
    except ValueError as error:
        parser.error(str(error))
    info = ServerInfo(models=tuple(options.model) or ("judge-test",), build_info=options.build)
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    with FaultServer(responder, port=options.port, info=info, keep_bodies=False) as server:
        sys.stdout.write(f"listening on {server.base_url}\n")
        sys.stdout.flush()
        if options.until_stdin_closes:
            threading.Thread(target=_wait_for_end_of_input, args=(done,), daemon=True).start()
        # Waits in steps, since a wait without an end cannot be interrupted on every platform.
        while not done.wait(0.5):
            pass
    sys.stderr.write(json.dumps(dataclasses.asdict(server.log.totals)) + "\n")
    return 0


def parse_mix(text: str) -> dict[str, float]:
    """Weights of faults, from `retryable`, `reply`, `all`, or `rate_limit=3,reset=1` (a bare name weighs 1).

    Raises:
        ValueError: A weight is not a number.
    """
    if text in _NAMED_MIXES:
        return dict(_NAMED_MIXES[text])
    mix = {}
    for item in text.split(","):
        name, _, weight = item.partition("=")
        try:
            mix[name.strip()] = float(weight or 1)
        except ValueError:
            raise ValueError(f"the weight of {name.strip()} in the mix is not a number: {weight}") from None
    return mix


def _responder(options: argparse.Namespace) -> Responder:
    responder: Responder = plausible_verdict
    if options.faults:
        responder = seeded_faults(
            options.faults, options.seed, parse_mix(options.mix), max_in_a_row=options.max_in_a_row, then=responder
        )
    if options.latency_ms or options.jitter_ms:
        jitter_seconds = options.jitter_ms / 1000
        responder = with_latency(
            options.latency_ms / 1000, jitter_seconds=jitter_seconds, seed=options.seed, then=responder
        )
    if options.max_in_flight:
        responder = limited(options.max_in_flight, then=responder)
    return responder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.doubles.server_process", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="least wait before each reply")
    parser.add_argument("--jitter-ms", type=float, default=0.0, help="up to so much more, drawn from seed and body")
    parser.add_argument("--seed", type=int, default=0, help="of faults and jitter")
    parser.add_argument("--faults", type=float, default=0.0, metavar="RATE", help="share of tries that go wrong")
    parser.add_argument("--mix", default="retryable", help="retryable, reply, all, or weights: rate_limit=3,reset=1")
    parser.add_argument("--max-in-a-row", type=int, default=None, help="most faults in a row for one request")
    parser.add_argument("--max-in-flight", type=int, default=0, help="429 above so many; 0 sets no limit")
    parser.add_argument("--model", action="append", default=[], help="id in /v1/models; may be repeated")
    parser.add_argument("--build", default="b1000-0000000", help="build_info in /props")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the process that started it")
    return parser


def _wait_for_end_of_input(done: threading.Event) -> None:
    while sys.stdin.buffer.read(4096):
        pass
    done.set()


if __name__ == "__main__":
    sys.exit(main())
