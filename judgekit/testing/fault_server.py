"""The server, in a thread of this process."""

import asyncio
import threading
from types import TracebackType
from typing import Self

from judgekit.testing.exchange import Responder
from judgekit.testing.listener import HOST, Listener
from judgekit.testing.log import RequestLog
from judgekit.testing.responders import Script, as_responder
from judgekit.testing.service import ServerInfo, Service

_STOP_SECONDS = 10.0


class FaultServer:
    """An OpenAI-compatible server on 127.0.0.1 whose replies, and faults, are scripted.

        with FaultServer([rate_limited(retry_after_seconds=1), verdict(4)]) as server:
            ask(server.base_url)
            assert server.log.totals.n_requests == 2

    Leaving the `with` block stops the server, ends its connections (hanging ones too), and raises what a responder
    raised, unless the block is already failing.

    Args:
        script: A responder, a reply, or a list played in order of arrival (`as_responder`); None answers every
            request with a plausible verdict.
        port: 0 picks a free one.
        info: What the server says of itself.
        keep_bodies: See `RequestLog`.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        port: int = 0,
        info: ServerInfo | None = None,
        keep_bodies: bool = True,
    ) -> None:
        self._asked_port = port
        self._port: int | None = None
        self._service = Service(as_responder(script), info or ServerInfo(), RequestLog(keep_bodies))
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._start_error: OSError | None = None

    @property
    def log(self) -> RequestLog:
        """What was received and answered."""
        return self._service.log

    @property
    def info(self) -> ServerInfo:
        """What the server says of itself; change its fields at any time."""
        return self._service.info

    @property
    def errors(self) -> list[Exception]:
        """What responders raised."""
        return self._service.errors

    @property
    def responder(self) -> Responder:
        return self._service.responder

    def play(self, script: Script | None) -> None:
        """Changes the script; requests that are already being answered keep their reply."""
        self._service.responder = as_responder(script)

    @property
    def port(self) -> int:
        """The port; it stays readable after `stop`.

        Raises:
            RuntimeError: The server was never started.
        """
        if self._port is None:
            raise RuntimeError("the server is not started")
        return self._port

    @property
    def root_url(self) -> str:
        """The address without `/v1`."""
        return f"http://{HOST}:{self.port}"

    @property
    def base_url(self) -> str:
        """The address to give to a client."""
        return f"{self.root_url}/v1"

    def start(self) -> Self:
        """Listens. A stopped server may be started again.

        Raises:
            OSError: The port is taken.
            RuntimeError: The server is running.
        """
        if self._thread is not None:
            raise RuntimeError("the server is already running")
        ready = threading.Event()
        self._start_error = None
        self._thread = threading.Thread(target=self._run, args=(ready,), name="judgekit-fault-server", daemon=True)
        self._thread.start()
        ready.wait()
        if self._start_error is not None:
            self._thread.join()
            self._thread = None
            raise self._start_error
        return self

    def stop(self) -> None:
        """Stops listening and ends all connections. Does nothing if the server is not running.

        Raises:
            RuntimeError: The thread does not end, because a responder blocks it.
        """
        if self._thread is None or self._loop is None or self._stop is None:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            raise RuntimeError(f"the server did not stop within {_STOP_SECONDS:g} s; does a responder block?")
        self._thread = self._loop = self._stop = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None and self.errors:
            raise self.errors[0]

    def _run(self, ready: threading.Event) -> None:
        try:
            # The listener needs a selector loop, whatever the platform's default or an installed policy.
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(self._serve(ready))
        except OSError as error:
            self._start_error = error
        finally:
            ready.set()

    async def _serve(self, ready: threading.Event) -> None:
        listener = Listener(self._service, self._asked_port)
        self._port = listener.port
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        ready.set()
        await self._stop.wait()
        await listener.close()
