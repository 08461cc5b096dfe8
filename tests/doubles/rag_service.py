"""A small RAG service over the notes of the shipped example, for tests of live systems.

As a program it serves HTTP (and prints its address) or, with `--lines`, answers line by line; `ask` is the function.
The retriever counts words in common, and the answer is what the best chunk says.
"""

import argparse
import json
import re
import socket
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent.parent.parent / "configs" / "quickstart" / "corpus"
MOST_CHUNKS = 5


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) > 2}


@cache
def chunks() -> list[dict[str, Any]]:
    """The notes, one chunk a heading."""
    found = []
    for path in sorted(CORPUS.rglob("*.md")):
        name = path.relative_to(CORPUS).as_posix()
        headings: list[str] = []
        for number, part in enumerate(re.split(r"(?m)^(?=#)", path.read_text(encoding="utf-8"))[1:], start=1):
            line, _, body = part.partition("\n")
            level = len(line) - len(line.lstrip("#"))
            headings = [*headings[: level - 1], line.lstrip("# ").strip()]
            found.append(
                {
                    "id": f"{name}#{number}",
                    "doc_id": name,
                    "path": name,
                    "headings": list(headings),
                    "text": f"{' '.join(headings)}. {' '.join(body.split())}",
                    "folder": name.partition("/")[0],
                }
            )
    return found


def answered(question: str) -> dict[str, Any]:
    """What the service says to a question, with `debug`."""
    started = time.perf_counter()
    wanted = _words(question)
    scored = sorted(((len(wanted & _words(chunk["text"])), chunk) for chunk in chunks()), key=lambda pair: -pair[0])
    hits = [{**chunk, "score": score / max(1, len(wanted))} for score, chunk in scored[:MOST_CHUNKS] if score]
    is_sure = bool(hits) and hits[0]["score"] >= 0.3
    milliseconds = 1000 * (time.perf_counter() - started)
    return {
        "answer": hits[0]["text"] if is_sure else "The notes do not say.",
        "abstained": not is_sure,
        "debug": {
            "chunks": hits,
            "folders": {"mode": "on", "selected": sorted({hit["folder"] for hit in hits})},
            "latency_ms": {"retrieval": milliseconds, "generation": 0.1, "total": milliseconds + 0.1},
            "versions": {"index": "notes-1"},
        },
    }


def ask(case: Any) -> dict[str, Any]:
    """The same as a function of a case."""
    return as_output(answered(case.question))


def as_output(reply: dict[str, Any]) -> dict[str, Any]:
    """Fields of an output."""
    renamed = {"id": "chunk_id", "path": "rel_path", "headings": "heading_path"}
    hits = [
        {renamed.get(name, name): value for name, value in hit.items() if name != "folder"}
        for hit in reply["debug"]["chunks"]
    ]
    folders = reply["debug"]["folders"]
    return {
        "answer": reply["answer"],
        "abstained": reply["abstained"],
        "retrieved": hits,
        "scope": {"mode": folders["mode"], "selected_folders": folders["selected"]},
        "versions": {"index_version": "notes-1"},
    }


def serve(log: Path | None) -> None:
    """Serve until the process ends."""
    from aiohttp import web

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def reply(request: web.Request) -> web.Response:
        question = (await request.json())["question"]
        if log is not None:
            with log.open("a") as stream:
                stream.write(f"{question}\n")
        return web.json_response(answered(question))

    async def say(app: web.Application) -> None:
        sys.stdout.write(f"http://127.0.0.1:{app['port']}\n")
        sys.stdout.flush()

    listener = socket.create_server(("127.0.0.1", 0))
    application = web.Application()
    application["port"] = listener.getsockname()[1]
    application.add_routes([web.get("/health", health), web.post("/ask", reply)])
    application.on_startup.append(say)
    web.run_app(application, sock=listener, print=lambda *_: None, handle_signals=False)


def answer_lines() -> None:
    """One case a line in, one output a line out, with some noise."""
    for line in sys.stdin:
        case = json.loads(line)
        output = {"case_id": case["id"], **as_output(answered(case["question"]))}
        sys.stdout.write(f"loading index ...\n{json.dumps(output)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    if given.lines:
        answer_lines()
    else:
        serve(given.log)
