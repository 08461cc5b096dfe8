"""docs/systems.md: its configs are configs of systems, and its code runs."""

import asyncio
import json
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from judgekit.core.cases import Case
from judgekit.core.config import SystemConfig
from judgekit.core.protocols import System
from judgekit.systems.http import Http
from judgekit.workflows.judged_data import live_system
from judgekit.workflows.models import Options, surroundings_of
from tests.unit.systems.asking import outputs_of

PAGE = (Path(__file__).parents[2] / "docs" / "systems.md").read_text(encoding="utf-8")
HERE = surroundings_of(Path("config.json"), Options())


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_every_config_on_the_page_is_one() -> None:
    names = []
    for text in blocks("json"):
        found = json.loads(text)
        if "name" in found:
            names.append(found["name"])
            system = live_system(SystemConfig(**found))
            if isinstance(system, Http):
                system.facts(HERE)
    assert names == ["http", "python", "command", "openai_chat"]


def test_the_preset_reads_the_answer_that_the_page_shows() -> None:
    (text,) = [text for text in blocks("json") if '"debug"' in text]
    system = Http(url="http://127.0.0.1:1/ask", preset="rag_debug")
    found = system._output(json.loads(text), HERE.reply_reader(system._fields))
    assert found["answer"] == "Two white flashes every 15 seconds."
    assert found["retrieved"][0]["rel_path"] == "work/lamp.md"
    assert found["latency_seconds"]["total"] == 1.015
    assert found["scope"] == {"mode": "on", "selected_folders": ["work"]}
    assert found["versions"]["prompt_version"] == "v7"
    assert found["usage"] == {"prompt_tokens": 812, "completion_tokens": 20}


def test_a_system_of_your_own_is_asked_like_the_shipped_ones() -> None:
    (text,) = [text for text in blocks("python") if "class Telnet" in text]

    class Line:
        async def ask(self, question: str) -> str | None:
            await asyncio.sleep(0)
            return "yes" if question == "Is it?" else None

    @asynccontextmanager
    async def connected(host: str, port: int) -> Any:
        assert (host, port) == ("example.org", 23)
        yield Line()

    names: dict[str, Any] = {"connected": connected, "__name__": "telnet"}
    exec(text, names)
    system = names["Telnet"](host="example.org", max_attempts=1)
    assert isinstance(system, System)
    found = outputs_of(system, [Case(id="q1", question="Is it?"), Case(id="q2", question="No?")])
    assert found["q1"].answer == "yes"
    assert found["q2"].error is not None
    assert found["q2"].error.kind == "connection"
