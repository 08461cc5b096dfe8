"""A program that answers line by line: `"system": {"name": "command", "run": ["python", "app.py"]}`."""

import asyncio
import json
import os
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from judgekit.core.answers import output_of
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ConfigError
from judgekit.core.protocols import Ask, AskError, Surroundings, System

_END_SECONDS = 2.0
"""How long a program has to end by itself once its input is closed."""

_TAIL = 400
"""Bytes of what a program wrote to stderr before it died, in messages."""


class Command(System):
    """Starts as many programs as cases are asked at the same time, and keeps them.

    A program reads a case as one line of JSON and writes its output as one line of JSON: an object with its fields, or
    a text. Lines that are neither are noise. A program that dies, hangs or gets out of step is started again.
    """

    run: Annotated[tuple[str, ...], Field(min_length=1)]
    """Program and arguments; no shell reads them. It runs with your environment."""
    folder: str | None = None
    """Where it runs; left out, in the folder of the config, from which a relative path starts."""
    fields: dict[str, str] = {}
    """Our field name -> path in the line that comes back, as for a file of outputs."""
    max_bytes: Annotated[int, Field(ge=1024)] = 20_000_000
    """A line that is longer is an error row of kind `too_large`."""

    @field_validator("run", mode="before")
    @classmethod
    def _is_a_list(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError(f'expected a list such as ["python", "app.py"], found the text {value!r}')
        return value

    def facts(self, surroundings: Surroundings) -> Mapping[str, Any]:
        """Check that there is such a program, and that `fields` are fields of an output."""
        surroundings.reply_reader(self.fields)
        name = self.run[0]
        place = self._folder(surroundings) / name if "/" in name else name
        if shutil.which(place, path=surroundings.variables.get("PATH")) is None:
            raise ConfigError(f"system.run: no program {name!r}")
        return {}

    @asynccontextmanager
    async def session(self, surroundings: Surroundings) -> AsyncIterator[Ask]:
        """Programs are started when they are needed, and ended together."""
        idle: list[_Program] = []
        running: set[_Program] = set()
        ending: set[asyncio.Task[None]] = set()
        read = surroundings.reply_reader(self.fields) if self.fields else None

        async def ask(case: Case) -> SystemOutput:
            program = idle.pop() if idle else await self._started(surroundings)
            running.add(program)
            try:
                output = await program.answer(case, read)
            except BaseException:
                # What it writes later would be taken for the answer to the next case.
                program.kill()
                ending.add(end := asyncio.ensure_future(program.end()))
                end.add_done_callback(ending.discard)
                raise
            finally:
                running.discard(program)
            idle.append(program)
            return output

        try:
            yield ask
        finally:
            for program in running:
                program.kill()
            await asyncio.gather(*ending, *(program.end() for program in [*idle, *running]))

    def _folder(self, surroundings: Surroundings) -> Path:
        return surroundings.folder / (self.folder or "")

    async def _started(self, surroundings: Surroundings) -> "_Program":
        try:
            process = await asyncio.create_subprocess_exec(
                *self.run,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=self._folder(surroundings),
                env=dict(surroundings.variables),
                limit=self.max_bytes,
                start_new_session=True,
            )
        except OSError as error:
            raise AskError("crashed", f"{self.run[0]} cannot be started: {error.strerror or error}") from None
        return _Program(process, self.max_bytes)


class _Program:
    """One running program."""

    def __init__(self, process: Process, max_bytes: int) -> None:
        self._process = process
        self._max_bytes = max_bytes
        self._tail = b""
        self._listener = asyncio.ensure_future(self._listen())

    async def answer(self, case: Case, read: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None) -> SystemOutput:
        """The output that it writes for a case.

        Raises:
            AskError: it died, or what it wrote is not an output of this case.
        """
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101  # a pipe was asked for
        try:
            stdin.write(case.model_dump_json(exclude_defaults=True).encode() + b"\n")
            await stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise await self._death() from None
        found = await self._line()
        return output_of(case, found if isinstance(found, str) or read is None else read(found))

    async def _line(self) -> str | dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101  # a pipe was asked for
        while True:
            try:
                line = await stdout.readline()
            except ValueError:
                raise AskError("too_large", f"a line is longer than {self._max_bytes:,} bytes") from None
            if not line.endswith(b"\n"):
                raise await self._death()
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, str | dict):
                return found

    async def _listen(self) -> None:
        """Keep the end of what it writes to stderr, so that it is never held up there."""
        stderr = self._process.stderr
        assert stderr is not None  # noqa: S101  # a pipe was asked for
        while piece := await stderr.read(65536):
            self._tail = (self._tail + piece)[-_TAIL:]

    async def _death(self) -> AskError:
        """What is known of why it ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await asyncio.gather(self._process.wait(), self._listener)
        status = self._process.returncode
        how = f"status {status}" if status is None or status >= 0 else signal.Signals(-status).name
        said = " ".join(self._tail.decode("utf-8", "replace").split())
        return AskError("crashed", f"the program ended with {how}{': ' + said if said else ''}", retryable=True)

    def kill(self) -> None:
        """End it and what it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Close its input, and kill it if it does not end by that."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
        self._listener.cancel()
        with suppress(asyncio.CancelledError):
            await self._listener
        # Pipes that a process of its own still holds open would be left to the garbage collector.
        self._process._transport.close()  # type: ignore[attr-defined]
