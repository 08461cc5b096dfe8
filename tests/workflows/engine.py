"""A suite run to its end against a server with faults, and what is left of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import judgekit
from judgekit.core.errors import JudgekitError
from judgekit.core.runs import RunSummary
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.testing import FaultServer, Reply, Script, chat_reply, sequence, verdict
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run as run_workflow
from tests.builders import read_json, read_lines, write_suite


@dataclass
class Ran:
    """One run: its figures or its error, its files, and what the server saw."""

    config: Path
    folder: Path
    summary: RunSummary | None
    error: BaseException | None
    server: FaultServer

    @property
    def judgments(self) -> dict[str, dict[str, Any]]:
        """The last line of each case."""
        return {item["case_id"]: item for item in read_lines(self.folder / "judgments.jsonl")}

    @property
    def only(self) -> dict[str, Any]:
        """The one judgment."""
        (judgment,) = read_lines(self.folder / "judgments.jsonl")
        return judgment

    @property
    def metrics(self) -> Any:
        return read_json(self.folder / "metrics.json")

    @property
    def manifest(self) -> Any:
        return read_json(self.folder / "manifest.json")

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Bodies of the requests that were about cases, in order of arrival."""
        return [entry.body for entry in self.server.log.chat if entry.body and not is_capability_call(entry.body)]

    @property
    def warnings(self) -> dict[str, str]:
        """Warnings of metrics.json by code."""
        return {notice["code"]: notice["message"] for notice in self.metrics["warnings"]}


def is_capability_call(body: dict[str, Any]) -> bool:
    """Whether a request is the one that finds out what a model takes."""
    return '{"ready": true}' in body["messages"][-1]["content"]


def after_capabilities(*scripts: Script) -> Any:
    """A capability call that goes well, and then the scripts in turn; the last one repeats."""
    then = sequence(scripts)

    def answer(request: Any) -> Reply:
        return chat_reply('{"ready": true}') if is_capability_call(request.body) else then(request)

    return answer


def good(score: int = 4, **fields: Any) -> Reply:
    """A sound verdict of the groundedness judge."""
    return verdict(score, supported=["hot"], **fields)


def carried_out(folder: Path, script: Any, *, run_id: str = "r", use_cache: bool = True, **suite: Any) -> Ran:
    """Write a suite, run it against a server that plays the script, and return what came of it."""
    with FaultServer(script) as server:
        config = write_suite(folder, server.base_url, **suite)
        return again(config, server, run_id=run_id, use_cache=use_cache)


def again(config: Path, server: FaultServer, *, run_id: str = "r", use_cache: bool = True) -> Ran:
    """A run of a suite that is written already."""
    summary, error = None, None
    try:
        summary = judgekit.run(config, run_id=run_id, use_cache=use_cache).summary
    except JudgekitError as raised:
        error = raised
    return Ran(config, config.parent / "results" / run_id, summary, error, server)


def resumed(ran: Ran) -> Ran:
    """The same run, resumed."""
    summary, error = None, None
    try:
        job = resume_job(str(ran.folder), None, Options())
        summary = run_local(lambda: run_workflow(job, Observer()))
    except JudgekitError as raised:
        error = raised
    return Ran(ran.config, ran.folder, summary, error, ran.server)
