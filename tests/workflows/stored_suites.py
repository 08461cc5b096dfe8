"""Runs at a scripted server to judge again, and short ways to do so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import judgekit
from judgekit.core.runs import RunSummary
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.storage.prompt_files import shipped
from judgekit.testing import FaultServer, Reply, Request, plausible_verdict
from judgekit.workflows.comparators import SpotCheckWanted
from judgekit.workflows.job import RunJob
from judgekit.workflows.models import Options
from judgekit.workflows.rejudge import RejudgeWanted, open_rejudge
from judgekit.workflows.run import run as run_workflow
from judgekit.workflows.spotcheck import spotcheck
from tests.builders import read_lines, write_suite

JUDGES = [{"name": "groundedness", "model": "m"}, {"name": "correctness", "model": "m"}]


def models(server: FaultServer, *names: str) -> dict[str, dict[str, Any]]:
    """Models of these names at the server."""
    return {name: {"model": f"{name}-2025-01-01", "base_url": server.base_url, "max_concurrency": 4} for name in names}


def first_run(folder: Path, server: FaultServer, **config: Any) -> Path:
    """A run `a` of a suite with two judges and a second model; returns its folder."""
    document = {"models": models(server, "m", "other"), "judges": JUDGES, **config}
    path = write_suite(folder, server.base_url, **document)
    judgekit.run(path, run_id="a")
    return folder / "results" / "a"


def rejudge(run: Path, run_id: str, *, use_cache: bool = True, **again: Any) -> RunSummary:
    """Judge a run again into a run of this name."""
    return carried_out(open_rejudge(str(run), RejudgeWanted(**again), Options(run_id=run_id, use_cache=use_cache)))


def carried_out(job: RunJob) -> RunSummary:
    """A run at its end."""
    return run_local(lambda: run_workflow(job, Observer()))


def check(run: Path, **wanted: Any) -> RunSummary:
    """Check a run."""
    return spotcheck(str(run), SpotCheckWanted(**wanted), Options(), Observer()).summary


def verdicts(run: Path, judge: str | None = None, role: str = "primary") -> dict[tuple[str, str], Any]:
    """By judge and case: verdict, or kind of failure."""
    return {
        (item["judge"], item["case_id"]): item["verdict"] or item["failure"]["kind"]
        for item in read_lines(run / "judgments.jsonl")
        if item["role"] == role and judge in (None, item["judge"])
    }


def asked(server: FaultServer) -> int:
    """Chat calls so far."""
    return len(server.log.chat)


def own_wording(folder: Path, judge: str, version: str, change: Callable[[str], str]) -> Path:
    """A changed copy of a shipped wording, in a folder of own prompts."""
    text = (shipped("prompts") / judge / "v1.toml").read_text(encoding="utf-8")
    path = folder / "prompts" / judge / f"{version}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(change(text.replace('version = "v1"', f'version = "{version}"')), encoding="utf-8")
    return folder / "prompts"


def by_model(replies: dict[str, Callable[[Request], Reply]]) -> Callable[[Request], Reply]:
    """A responder for each model, by the beginning of its name; a sound verdict for the others."""

    def answer(request: Request) -> Reply:
        name = str((request.body or {}).get("model", ""))
        for start, reply in replies.items():
            if name.startswith(start) and '"ready"' not in request.text:
                return reply(request)
        return plausible_verdict(request)

    return answer
