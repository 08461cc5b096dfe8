"""How many requests a second the test server answers: 20,000 over 64 keep-alive connections.

The server runs in a process of its own. The client writes ready-made bytes on plain sockets, so that on two cores the
server is what is measured; the server's own CPU time, read from /proc, says what one core can do.

    python -m benchmarks.server_throughput
"""

import asyncio
import json
import os
import time
from pathlib import Path

from tests.doubles.server_process import ServerProcess

N_REQUESTS = 20_000
N_CONNECTIONS = 64


def request_bytes(number: int) -> bytes:
    """A judge's request of a usual size: some 3 kB of prompt and a schema."""
    properties = {name: {"type": "array"} for name in ("supported_claims", "unsupported_claims")}
    schema = {"type": "object", "properties": {"reasoning": {"type": "string"}, **properties, "score": {}}}
    body = {
        "model": "judge-test",
        "temperature": 0,
        "messages": [
            {"role": "system", "content": "You are a judge. " * 60},
            {"role": "user", "content": f"case {number}: " + "a passage of some source; " * 80},
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}},
    }
    content = json.dumps(body).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n"
        "user-agent: AsyncOpenAI/Python 3.57.0\r\nx-stainless-lang: python\r\nx-stainless-os: Linux\r\n"
        "x-stainless-arch: x64\r\nx-stainless-runtime: CPython\r\nauthorization: Bearer sk-test-0000000000\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def ask(port: int, numbers: range) -> int:
    """Sends the requests of one connection, each after the reply to the one before; how many got a 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    n_ok = 0
    for number in numbers:
        writer.write(request_bytes(number))
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        n_ok += head.startswith(b"HTTP/1.1 200")
    writer.close()
    await writer.wait_closed()
    return n_ok


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(port: int) -> int:
    n_ok = await asyncio.gather(*(ask(port, range(i, N_REQUESTS, N_CONNECTIONS)) for i in range(N_CONNECTIONS)))
    return sum(n_ok)


def main() -> None:
    with ServerProcess() as server:
        port = int(server.base_url.rpartition(":")[2].removesuffix("/v1"))
        cpu_before, wall_before = cpu_seconds(server.pid), time.perf_counter()
        n_ok = asyncio.run(measure(port))
        wall_seconds = time.perf_counter() - wall_before
        server_seconds = cpu_seconds(server.pid) - cpu_before
    print(f"{n_ok} of {N_REQUESTS} ok over {N_CONNECTIONS} connections in {wall_seconds:.2f} s")
    print(f"wall: {N_REQUESTS / wall_seconds:,.0f} requests/s (client included)")
    print(f"server: {server_seconds / N_REQUESTS * 1e6:.0f} us of CPU a request")
    print(f"one core of the server: {N_REQUESTS / server_seconds:,.0f} requests/s")
    print(f"totals: {server.totals}")


if __name__ == "__main__":
    main()
