"""Batch files: the open requests of a run out, replies in any order in, and the run as if it had asked itself."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError, InputError
from judgekit.engine.passes import Observer
from judgekit.providers.openai_compatible import OpenAICompatible
from judgekit.testing import FaultServer, verdict
from judgekit.workflows.batch import export_batch, import_batch
from judgekit.workflows.job import start
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run
from judgekit.workflows.setup import set_up
from tests.builders import write_suite

HOST = "https://api.example.com/v1"
"""A hosted model, which nobody asks here."""


def recorded(folder: Path, base_url: str = HOST, n_cases: int = 6, **config: Any) -> Options:
    """A run `r` of which only the outputs are recorded."""
    model = {"api_key_env": None, **config.pop("model", {})}
    path = write_suite(folder, base_url, n_cases=n_cases, model=model, **config)
    options = Options(results_dir=folder / "results", needs_keys=False)
    job = start(set_up(path, Options(results_dir=folder / "results", run_id="r", needs_keys=False)), options_of(folder))
    asyncio.run(run(job, Observer(), only_record=True))
    return options


def options_of(folder: Path) -> Options:
    return Options(results_dir=folder / "results", run_id="r", needs_keys=False)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def reply(request: dict[str, Any], score: int = 4) -> dict[str, Any]:
    content = json.dumps({"reasoning": "x", "supported_claims": ["a"], "unsupported_claims": [], "score": score})
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": request["body"]["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
    response = {"status_code": 200, "request_id": "r1", "body": body}
    return {"id": "b1", "custom_id": request["custom_id"], "response": response, "error": None}


def write(path: Path, replies: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in replies))
    return path


def resumed(options: Options) -> Any:
    return asyncio.run(run(resume_job("r", None, options), Observer()))


def test_a_batch_goes_out_and_its_replies_come_back_in_any_order(tmp_path: Path) -> None:
    prices = {"prices": {"input": 1_000_000, "output": 0}}
    options = recorded(tmp_path, model={**prices, "batch": {"max_requests": 4}})
    exported = export_batch("r", None, None, options)
    assert [len(lines(path)) for path in exported.paths] == [4, 2]
    requests = [request for path in exported.paths for request in lines(path)]
    assert exported.n_requests == len({request["custom_id"] for request in requests}) == 6
    assert all(len(request["custom_id"]) <= 64 for request in requests)
    assert {request["url"] for request in requests} == {"/v1/chat/completions"}
    assert requests[0]["body"]["temperature"] == 0
    replies = [reply(request) for request in requests]
    random.Random(3).shuffle(replies)
    files = [write(tmp_path / "a.jsonl", replies[:3]), write(tmp_path / "b.jsonl", replies[3:])]
    found = import_batch("r", files, options)
    assert (found.n_stored, found.n_missing, dict(found.errors), dict(found.left_out)) == (6, 0, {}, {})
    again = import_batch("r", [*files, write(tmp_path / "c.jsonl", replies[::-1])], options)
    assert (again.n_stored, again.n_known, dict(again.left_out)) == (0, 12, {})
    summary = resumed(options)
    assert (summary.status, summary.overall["groundedness"].value, summary.overall["groundedness"].n) == (
        "complete", 4.0, 6
    )  # fmt: skip
    judgments = lines(tmp_path / "results" / "r" / "judgments.jsonl")
    assert {judgment["created_at"][:10] for judgment in judgments} == {"2025-10-09"}
    # 10 prompt tokens at a dollar each, at half the price.
    assert {(item["cost_usd"], item["n_requests"], item.get("latency_seconds")) for item in judgments} == {
        (5.0, 1, None)
    }
    assert import_batch("r", files, options).n_stored == 0


@pytest.mark.slow
def test_what_a_batch_says_of_a_request_becomes_its_failure_and_what_is_of_no_request_a_warning(tmp_path: Path) -> None:
    with FaultServer(verdict(5, supported=["a"])) as server:
        build = asyncio.run(_build_of(server.base_url))
        options = recorded(tmp_path, server.base_url, model={"pin": {"build_hash": build}})
        requests = lines(export_batch("r", tmp_path / "out.jsonl", None, options).paths[0])
        replies = [reply(request) for request in requests[:5]]
        replies[1] |= {"response": None, "error": {"code": "batch_expired", "message": "too late"}}
        replies[2]["response"] = {"status_code": 400, "body": {"error": {"message": "maximum context length is 10"}}}
        replies[3]["response"]["body"] = {"choices": []}
        replies[4]["response"]["body"]["choices"][0]["message"]["content"] = "I would say four."
        extra = [reply(requests[0], 0), {**replies[0], "custom_id": "somebody-else"}]
        found = import_batch("r", [write(tmp_path / "replies.jsonl", [*replies, *extra])], options)
        assert (found.n_stored, found.n_missing) == (2, 1)
        assert dict(found.errors) == {"batch_expired": 1, "status 400": 1, "server_error": 1}
        assert dict(found.left_out) == {"foreign id": 1, "id twice": 1}
        summary = resumed(options)
        judgments = {item["case_id"]: item for item in lines(tmp_path / "results" / "r" / "judgments.jsonl")}
        kinds = {name: item["failure"] and item["failure"]["kind"] for name, item in judgments.items()}
        assert kinds == {
            "c0": None,
            "c1": "expired",
            "c2": "context_length",
            "c3": "server_error",
            "c4": None,
            "c5": None,
        }
        assert judgments["c0"]["verdict"]["score"] == 4
        assert len(judgments["c4"]["earlier_attempts"]) == 1
        assert judgments["c4"]["n_requests"] == 2
        warning = next(item.message for item in summary.warnings if item.code == "batch_lines_left_out")
        assert warning == "lines of batch replies that were not used, by kind: foreign id (1), id twice (1)"
        # c4 was asked again by a call, and c5, of which nothing came, for the first time.
        n_calls = server.log.totals.n_requests
        summary = resumed(options)
        assert summary.judges["groundedness"]["failures"] == {"context_length": 1}
        assert server.log.totals.n_requests == n_calls + 2


async def _build_of(base_url: str) -> str:
    provider = OpenAICompatible(ModelConfig(model="judge-2025-01-01", base_url=base_url))
    try:
        return (await provider.identify()).build_hash or ""
    finally:
        await provider.close()


@pytest.mark.slow
def test_a_line_as_vllm_writes_it_is_read(tmp_path: Path) -> None:
    options = recorded(tmp_path, n_cases=2)
    first, second = lines(export_batch("r", None, None, options).paths[0])
    error = {
        "error": {"message": "The prompt is too long: maximum context length", "type": "BadRequestError", "code": 400}
    }
    failed = {
        "id": "v",
        "custom_id": first["custom_id"],
        "response": {"status_code": 400, "body": None},
        "error": error,
    }
    good = {**reply(second), "error": None}
    found = import_batch("r", [write(tmp_path / "v.jsonl", [failed, good])], options)
    assert (found.n_stored, dict(found.errors)) == (1, {"status 400": 1})
    assert resumed(options).judges["groundedness"]["failures"] == {"context_length": 1}


def test_what_cannot_be_a_batch_is_refused(tmp_path: Path) -> None:
    options = recorded(tmp_path, "http://127.0.0.1:9/v1")
    with pytest.raises(ConfigError, match=r"pin.build_hash: a local server is known by what it has loaded"):
        export_batch("r", None, None, options)
    other = tmp_path / "other"
    other.mkdir()
    options = recorded(other)
    with pytest.raises(ConfigError, match="--model 'x': known: m"):
        export_batch("r", None, "x", options)
    half = other / "half.jsonl"
    half.write_text('{"custom_id": "a"')
    with pytest.raises(ConfigError, match="no requests of this run were exported: judgekit batch export r"):
        import_batch("r", [half], options)
    export_batch("r", None, None, options)
    with pytest.raises(InputError, match=r"half.jsonl:1: not valid JSON; the file may be cut off"):
        import_batch("r", [half], options)
    with pytest.raises(InputError, match="no custom_id; this is not a file of batch replies"):
        import_batch("r", [write(other / "foreign.jsonl", [{"id": "x"}])], options)
    with pytest.raises(InputError, match="cannot be read"):
        import_batch("r", [other / "gone.jsonl"], options)
    lexical = write_suite(tmp_path / "lexical", None, n_cases=1, model={"mode": "batch"})
    with pytest.raises(ConfigError, match=r"models.m.mode: provider lexical has no batch endpoint"):
        set_up(lexical, options)
