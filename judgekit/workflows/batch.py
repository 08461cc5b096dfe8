"""`judgekit batch`: the open requests of a run as a batch file, and the replies of such a file put into the cache.

The run itself parses the replies, holds them against the pins and records them, once it is resumed: it finds them in
the cache.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from judgekit.core.errors import ConfigError, InputError
from judgekit.core.judgments import ModelRequest, last_judgments
from judgekit.core.protocols import CallError, Capabilities
from judgekit.core.request_fields import is_local
from judgekit.core.runs import JUDGE_INPUTS, JUDGMENTS
from judgekit.engine.judgment_draft import cached_reply, encode_reply
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.passes import pending
from judgekit.engine.requests import JudgePlan, RequestMaker
from judgekit.providers.completions import read_completion, wire_body
from judgekit.storage.run_files import replacing
from judgekit.workflows.job import RunJob
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job

ADDRESS = "/v1/chat/completions"
_PROVIDER = "openai_compatible"


@dataclass(frozen=True)
class Exported:
    """A batch file that was written."""

    path: Path
    n_requests: int
    n_cached: int
    """Questions whose reply is in the cache already."""


@dataclass
class Imported:
    """What became of the lines of a file of replies."""

    run: Path
    n_stored: int = 0
    n_missing: int = 0
    """Open requests without a reply, which a resumed run asks in the usual way."""
    failures: Counter[str] = field(default_factory=Counter)
    """Lines of which nothing was stored, by kind: an error or status of the server, a body that cannot be read, an id
    twice, or an id that is not of this run."""


def export_batch(run: str, out: Path | None, model: str | None, options: Options) -> Exported:
    """Write the requests that a run has left, a line each, as OpenAI's batch endpoint and `vllm run-batch` take them.

    Args:
        run: a run whose outputs are recorded and that is not complete.
        out: the file; None: `batch-MODEL.jsonl` in the run folder.
        model: key of the model whose requests are meant; None: the only one.
        options: where runs are kept.

    Raises:
        ConfigError: the run has nothing left to ask, or asks a model that batches are not for.
        StorageError: the file cannot be written.
    """
    job = _opened(run, options)
    runtime = _model(job, model)
    n_requests = n_cached = 0
    path = out or job.folder.path / f"batch-{runtime.model_id}.jsonl"
    with replacing(path) as stream:
        for key, request in _requests(job, runtime).items():
            if job.cache is not None and cached_reply(job.cache, key, runtime.guard) is not None:
                n_cached += 1
                continue
            line = {"custom_id": _id_of(key), "method": "POST", "url": ADDRESS, "body": wire_body(request)}
            stream.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            n_requests += 1
    if job.cache is not None:
        job.cache.close()
    return Exported(path, n_requests, n_cached)


def import_batch(run: str, file: Path, model: str | None, options: Options) -> Imported:
    """Put the replies of a batch into the cache of the run that they are for, in whatever order they come.

    Args:
        run: the run.
        file: what the batch endpoint gave back, its output or error file.
        model: key of the model that was asked; None: the only one.
        options: where runs are kept.

    Raises:
        ConfigError: the run has nothing left to ask.
        InputError: the file is missing, or not one of replies.
        StorageError: the cache cannot be written.
    """
    job = _opened(run, options)
    if job.cache is None:
        raise ConfigError(f"{job.folder.path}: has no cache, which batches need; leave --no-cache out")
    runtime = _model(job, model)
    wanted = {_id_of(key): key for key in _requests(job, runtime)}
    found = Imported(job.folder.path)
    stored: dict[str, str] = {}
    for number, line in _lines(file):
        where, name = f"{file}:{number}", line.get("custom_id")
        if not isinstance(name, str):
            raise InputError(f"{where}: no custom_id; this is not a file of batch replies")
        if name not in wanted:
            found.failures["foreign id"] += 1
        elif name in stored:
            found.failures["id twice"] += 1
        else:
            text = _reply(line, found.failures)
            if text is not None:
                stored[name] = text
    job.cache.put_many([(wanted[name], text) for name, text in stored.items()])
    job.cache.close()
    found.n_stored = len(stored)
    found.n_missing = len(wanted) - len(stored)
    return found


def _opened(run: str, options: Options) -> RunJob:
    job = resume_job(run, None, options)
    if not job.folder.has(JUDGE_INPUTS):
        raise ConfigError(f"{job.folder.path}: its outputs are not recorded yet: judgekit run --resume {run}")
    return job


def _model(job: RunJob, wanted: str | None) -> ModelRuntime:
    """The model whose requests are meant, with what it takes."""
    asked = {plan.runtime.model_id: plan.runtime for plan in job.judges}
    batched = {name: runtime for name, runtime in asked.items() if runtime.config.provider == _PROVIDER}
    if wanted is not None and wanted not in batched:
        raise ConfigError(f"--model {wanted!r}: known: {', '.join(batched) or 'none'}")
    if not batched:
        raise ConfigError("no judge of this run asks a model over an OpenAI-compatible address")
    if wanted is None and len(batched) > 1:
        raise ConfigError(f"several models are asked; name one by --model: {', '.join(batched)}")
    runtime = batched[wanted or next(iter(batched))]
    if is_local(runtime.config.base_url) and runtime.config.pin.build_hash is None:
        raise ConfigError(
            f"models.{runtime.model_id}.pin.build_hash: a local server is known by what it has loaded, which is a part "
            "of each request's key; set what `judgekit pin` prints"
        )
    if runtime.remembered() is None:
        runtime.assume(Capabilities(response_format=runtime.config.reply_format or "json_schema"))
    return runtime


def _requests(job: RunJob, runtime: ModelRuntime) -> dict[str, ModelRequest]:
    """By key, the requests that are open; equal ones once. Second opinions are drawn later, and not among them."""
    done = last_judgments(job.folder.judgments()) if job.folder.has(JUDGMENTS) else {}
    takes = runtime.remembered() or Capabilities()
    found: dict[str, ModelRequest] = {}
    for plan in job.judges:
        if plan.runtime is not runtime or plan.judge.name in job.kept:
            continue
        found.update(_of_plan(job, plan, RequestMaker(plan, takes), done))
    return found


def _of_plan(job: RunJob, plan: JudgePlan, maker: RequestMaker, done: Any) -> Iterator[tuple[str, ModelRequest]]:
    for judge_input in pending(job.folder, plan, None, done):
        for part in plan.judge.parts(judge_input):
            request = maker.request(part)
            yield maker.key_and_parts(request)[0], request


def _id_of(key: str) -> str:
    """The hash alone: some endpoints take 64 characters at most."""
    return key.rpartition(":")[2]


def _lines(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(f"{file}:{number}: not valid JSON; the file may be cut off") from None
        if not isinstance(found, dict):
            raise InputError(f"{file}:{number}: expected an object")
        yield number, found


def _reply(line: Mapping[str, Any], failures: Counter[str]) -> str | None:
    """What is cached of a line; None if it holds no reply, which is counted."""
    response = line.get("response")
    error = line.get("error")
    if error or not isinstance(response, Mapping):
        code = error.get("code") if isinstance(error, Mapping) else None
        failures[str(code or "no response")[:60]] += 1
        return None
    if response.get("status_code") != 200:
        failures[f"status {response.get('status_code')}"] += 1
        return None
    body = response.get("body")
    try:
        found = read_completion(body, 0.0, {})
    except CallError as problem:
        failures[problem.kind] += 1
        return None
    created = body.get("created") if isinstance(body, Mapping) else None
    moment = datetime.fromtimestamp(created, UTC) if isinstance(created, int) and created > 0 else datetime.now(UTC)
    return encode_reply(replace(found, replied_at=moment.isoformat(timespec="milliseconds")))
