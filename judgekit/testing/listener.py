"""The listening socket, and the connections that came from it."""

import asyncio
import socket

from judgekit.testing.connection import Connection
from judgekit.testing.service import Service

HOST = "127.0.0.1"
_BACKLOG = 4096
_PAUSE_SECONDS = 0.05


class Listener:
    """Accepts connections until it is closed; must live inside a selector event loop.

    asyncio's own server loses a connection that it is accepting while it is closed: nobody closes that socket. Here
    each one is known from the moment it is accepted.

    Args:
        service: Answers the requests.
        port: 0 picks a free one.

    Raises:
        OSError: The port is taken.
    """

    def __init__(self, service: Service, port: int) -> None:
        self._service = service
        self._loop = asyncio.get_running_loop()
        self._socket = socket.create_server((HOST, port), backlog=_BACKLOG)
        self._socket.setblocking(False)
        self._arriving: set[asyncio.Task[object]] = set()
        self._connections: set[Connection] = set()
        self._pause: asyncio.TimerHandle | None = None
        self.port: int = self._socket.getsockname()[1]
        self._resume()

    async def close(self) -> None:
        """Stops listening and ends every connection."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        await asyncio.gather(*self._arriving, return_exceptions=True)
        while self._connections:
            for connection in list(self._connections):
                connection.abort()
            await asyncio.sleep(0)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        """Takes all connections that wait."""
        for _ in range(_BACKLOG):
            try:
                accepted, _address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                # Out of file descriptors: the socket would stay readable and spin, so look again a little later.
                self._loop.remove_reader(self._socket)
                self._pause = self._loop.call_later(_PAUSE_SECONDS, self._resume)
                return
            accepted.setblocking(False)
            task: asyncio.Task[object] = self._loop.create_task(self._connect(accepted))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        await self._loop.connect_accepted_socket(lambda: Connection(self._service, self._connections), accepted)
