"""A GGUF file of your own, served by llama.cpp in a process that a run starts and stops.

xllamacpp brings llama.cpp prebuilt: `pip install xllamacpp`. The server listens on the loopback interface, on
a free port, with a key made up for it, and takes what any OpenAI-compatible server takes. It runs in the profile in
which the same request gets the same bytes: one slot, no prompt cache, on the CPU.

Started by `python -m judgekit.providers.llama_cpp`, this module is that process. It ends with its standard input, and
so with the process that started it, whatever way that ends.
"""

import asyncio
import hashlib
import json
import os
import re
import secrets
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from judgekit.core.config import ModelConfig, Prices
from judgekit.core.errors import ConfigError
from judgekit.core.protocols import Batching, CallError, ModelIdentity
from judgekit.providers.openai_compatible import OpenAICompatible

PACKAGE = "xllamacpp"
CONTEXT_TOKENS = 8192
"""The context window where the config names none."""

_ADDRESS = "http://llama-cpp.localhost/v1"
"""Stands for the server in cache keys and messages until it listens, since its port is another one each time."""
_MAGIC = b"GGUF"
_PIECE_BYTES = 1 << 20
_SPARE_BYTES = 256 << 20
"""What a server takes beside the file, at least."""
_ERROR_LINE = re.compile(r"^[\d.]+ E (.*\S)", re.MULTILINE)
_START_SECONDS = 600.0
_STOP_SECONDS = 5.0


@dataclass
class _Server:
    """The process that serves one file."""

    process: asyncio.subprocess.Process
    said: IO[bytes]
    """What it wrote on stderr."""

    def last_words(self) -> str:
        """The first error that llama.cpp wrote at the end, or its last line."""
        self.said.seek(max(0, os.fstat(self.said.fileno()).st_size - 8000))
        text = self.said.read().decode("utf-8", "replace")
        found = _ERROR_LINE.search(text)
        lines = [found[1]] if found is not None else text.split("\n")
        return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it said nothing")

    async def stop(self) -> None:
        """End it and wait for that: politely, and then not."""
        process = self.process
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        finally:
            self.said.close()


class LlamaCpp(OpenAICompatible):
    """`model` is the path of a GGUF file, beside the config; its SHA-256 is the build."""

    uses_proxy = False

    def __init__(self, model: ModelConfig, *, api_key: str | None = None) -> None:
        """Nothing is started before the first request."""
        super().__init__(model, api_key=api_key or secrets.token_urlsafe(24))
        self._server: _Server | None = None
        self._lock = asyncio.Lock()

    @classmethod
    def as_asked(cls, model: ModelConfig) -> ModelConfig:
        """One call at a time, at no cost, of a server on this machine.

        Raises:
            ConfigError: the config names a server or a key of its own.
        """
        if model.base_url is not None or model.api_key_env is not None:
            raise ConfigError("provider llama_cpp starts its own server; leave out base_url and api_key_env")
        free = model.prices or Prices(input=0.0, output=0.0)
        return model.model_copy(update={"base_url": _ADDRESS, "max_concurrency": 1, "prices": free})

    def check(self) -> None:
        """Hold the file and the package against what is needed, without loading anything."""
        if find_spec(PACKAGE) is None:
            raise ConfigError("provider llama_cpp needs xllamacpp, which is not installed: pip install xllamacpp")
        path = self._path
        if not path.is_file():
            raise ConfigError(f"no file {path}; model is the path of a GGUF file, which starts beside the config")
        try:
            with path.open("rb") as stream:
                start = stream.read(len(_MAGIC))
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
        if start != _MAGIC:
            raise ConfigError(f"{path}: not a GGUF file; convert the model to GGUF, or download it in that format")

    async def identify(self) -> ModelIdentity:
        """SHA-256 of the file, read once in a process: about 4 seconds a gigabyte from disk."""
        path = self._path
        try:
            stamp = _stamp(path)
            sha256 = await asyncio.to_thread(_sha256_of, str(path), stamp)
        except OSError as error:
            raise CallError("connection", f"{path}: cannot be read: {error.strerror}", fatal=True) from None
        engine = f"{PACKAGE} {_engine_version()}"
        facts = {"file": path.name, "bytes": stamp[1], "engine": engine, "context_tokens": self._context_tokens}
        return ModelIdentity(
            build_hash=f"sha256:{sha256}",
            source=f"SHA-256 of the file, {engine}",
            served_models=(self.model.model,),
            facts=facts,
            context_tokens=self._context_tokens,
        )

    def batches(self) -> Batching | None:
        """None: the server has none."""
        return None

    async def close(self) -> None:
        """Close connections and stop the server."""
        await super().close()
        async with self._lock:
            if self._server is not None:
                server, self._server = self._server, None
                await server.stop()

    async def _exchange(self, path: str, body: Mapping[str, Any] | None) -> tuple[Any, Mapping[str, str]]:
        await self._started()
        return await super()._exchange(path, body)

    @property
    def _path(self) -> Path:
        return self.folder / self.model.model

    @property
    def _context_tokens(self) -> int:
        return self.model.context_tokens or CONTEXT_TOKENS

    async def _started(self) -> None:
        """Start the server, once.

        Raises:
            CallError: it does not start, or is gone.
        """
        async with self._lock:
            if self._server is None:
                await self._start()
            elif self._server.process.returncode is not None:
                code = self._server.process.returncode
                how = f"was killed by signal {-code}, as for want of memory" if code < 0 else f"ended with {code}"
                message = f"the server of {self._path} {how}: {self._server.last_words()}"
                raise CallError("connection", message, fatal=True)

    async def _start(self) -> None:
        self._check_memory()
        said = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the server
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", __spec__.name),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=said,
            start_new_session=True,  # Ctrl-C is for the run, which stops the server when it has written its figures
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._server = _Server(process, said)
        wanted = {
            "path": str(self._path),
            "alias": self.model.model,
            "context_tokens": self._context_tokens,
            "key": self.api_key,
        }
        try:
            address = await self._address_of(process, json.dumps(wanted).encode() + b"\n")
        except TimeoutError:
            message = f"{self._path}: not loaded in {_START_SECONDS:g} s: {self._server.last_words()}"
            raise CallError("timeout", message, fatal=True) from None
        if address is None:
            await process.wait()
            message = f"{self._path}: llama.cpp cannot load it: {self._server.last_words()}"
            raise CallError("server_error", message, fatal=True)
        self.model = self.model.model_copy(update={"base_url": f"{address}/v1"})

    async def _address_of(self, process: asyncio.subprocess.Process, wanted: bytes) -> str | None:
        """Where the server listens; None if it ended before it did."""
        if process.stdin is None or process.stdout is None:
            return None
        async with asyncio.timeout(_START_SECONDS):
            with suppress(ConnectionError):
                process.stdin.write(wanted)
                await process.stdin.drain()
            line = await process.stdout.readline()
        return line.decode().strip() or None

    def _check_memory(self) -> None:
        """Refuse a file that does not fit, since a machine that swaps takes minutes for a token."""
        available = _available_bytes()
        needed = self._path.stat().st_size + _SPARE_BYTES
        if available is not None and needed > available:
            message = (
                f"{self._path}: takes {needed / 1e9:.1f} GB of memory and more for its context, and "
                f"{available / 1e9:.1f} GB are free; take a smaller or more quantized model"
            )
            raise CallError("server_error", message, fatal=True)


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=64)  # a file that has changed has another stamp
def _sha256_of(path: str, _stamp: tuple[int, int, int]) -> str:
    with Path(path).open("rb", buffering=0) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _engine_version() -> str:
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "of unknown version"


def _available_bytes() -> int | None:
    """Memory that can still be had, by what the machine and the control group of the process say; None: not known."""
    return min(_limits(), default=None)


def _limits() -> Iterator[int]:
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        yield next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text("ascii"))  # `max` where there is no limit
        stat = dict(line.split() for line in (group / "memory.stat").read_text("ascii").splitlines())
        # Pages of files count as used, and are given up when memory is wanted.
        used = int((group / "memory.current").read_text("ascii")) - int(stat.get("inactive_file", 0))
        yield max(0, most - used)


def _serve() -> None:
    """Be the server: load what the first line of standard input names, say the address, and end with that input."""
    told = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # llama.cpp writes on stdout too
    wanted = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = wanted["path"]
    params.model_alias = {wanted["alias"]}
    params.api_keys = [wanted["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = wanted["context_tokens"]
    params.fit_params = False
    params.n_parallel = 1
    params.kv_unified = False
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    params.n_gpu_layers = 0
    params.use_jinja = True
    params.offline = True
    params.ui = False
    server = xllamacpp.Server(params)
    told.write(f"{server.listening_address}\n")
    told.flush()
    threading.Event().wait()


def _end_with_input() -> None:
    while sys.stdin.read(4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    _serve()
