"""Batch files: the open requests of a run out, replies in any order in, and the run as if it had asked itself."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import ConfigError, InputError, ProviderError
from judgekit.engine.passes import Observer
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
    options = recorded(tmp_path)
    exported = export_batch("r", None, None, options)
    requests = lines(exported.path)
    assert exported.n_requests == len(requests) == 6
    assert len({request["custom_id"] for request in requests}) == 6
    assert all(len(request["custom_id"]) <= 64 for request in requests)
    assert {request["url"] for request in requests} == {"/v1/chat/completions"}
    assert requests[0]["body"]["temperature"] == 0
    replies = [reply(request) for request in requests]
    random.Random(3).shuffle(replies)
    found = import_batch("r", write(tmp_path / "replies.jsonl", replies), None, options)
    assert (found.n_stored, found.n_missing, dict(found.failures)) == (6, 0, {})
    summary = resumed(options)
    assert summary.status == "complete"
    assert summary.overall["groundedness"].value == 4.0
    assert summary.overall["groundedness"].n == 6
    judgments = lines(tmp_path / "results" / "r" / "judgments.jsonl")
    assert all(judgment["from_cache"] for judgment in judgments)
    assert {judgment["created_at"][:10] for judgment in judgments} == {"2025-10-09"}


def test_errors_foreign_ids_and_ids_twice_are_counted_and_the_rest_is_kept(tmp_path: Path) -> None:
    options = recorded(tmp_path)
    requests = lines(export_batch("r", tmp_path / "out.jsonl", None, options).path)
    replies = [reply(request) for request in requests]
    replies[1] |= {"response": None, "error": {"code": "batch_expired", "message": "too late"}}
    replies[2]["response"]["status_code"] = 500
    replies[3]["response"]["body"] = {"choices": []}
    replies += [reply(requests[0], 0), {**replies[4], "custom_id": "somebody-else"}]
    found = import_batch("r", write(tmp_path / "replies.jsonl", replies), None, options)
    assert (found.n_stored, found.n_missing) == (3, 3)
    kinds = dict(found.failures)
    assert (kinds.pop("batch_expired"), kinds.pop("status 500"), kinds.pop("foreign id"), kinds.pop("id twice")) == (
        1, 1, 1, 1
    )  # fmt: skip
    assert sum(kinds.values()) == 1
    left = export_batch("r", tmp_path / "again.jsonl", None, options)
    assert (left.n_requests, left.n_cached) == (3, 3)


def test_a_verdict_that_cannot_be_read_is_no_verdict_from_a_batch_either(tmp_path: Path) -> None:
    with FaultServer(verdict(5, supported=["a"])) as server:
        options = recorded(tmp_path, server.base_url, n_cases=2, model={"pin": {"build_hash": "sha256:" + "0" * 64}})
        requests = lines(export_batch("r", None, None, options).path)
        replies = [reply(request) for request in requests]
        replies[0]["response"]["body"]["choices"][0]["message"]["content"] = "I would say four."
        import_batch("r", write(tmp_path / "replies.jsonl", replies), None, options)
        with pytest.raises(ProviderError):  # the server that is asked about it has another build than the pinned one
            resumed(options)


def test_what_cannot_be_a_batch_is_refused(tmp_path: Path) -> None:
    options = recorded(tmp_path, "http://127.0.0.1:9/v1")
    with pytest.raises(ConfigError, match=r"pin.build_hash: a local server is known by what it has loaded"):
        export_batch("r", None, None, options)
    other = tmp_path / "other"
    other.mkdir()
    options = recorded(other)
    with pytest.raises(ConfigError, match="--model 'x': known: m"):
        export_batch("r", None, "x", options)
    with pytest.raises(InputError, match=r"half.jsonl:1: not valid JSON; the file may be cut off"):
        half = other / "half.jsonl"
        half.write_text('{"custom_id": "a"')
        import_batch("r", half, None, options)
    with pytest.raises(InputError, match="no custom_id; this is not a file of batch replies"):
        import_batch("r", write(other / "foreign.jsonl", [{"id": "x"}]), None, options)
    with pytest.raises(InputError, match="cannot be read"):
        import_batch("r", other / "gone.jsonl", None, options)
