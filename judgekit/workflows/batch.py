"""`judgekit batch`: the open requests of a run as batch files, and the replies to them taken in.

Once it is resumed, the run parses the replies, holds them against the pins and records them, as it does with any reply.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgekit.core.batches import BatchPart
from judgekit.core.errors import ConfigError, InputError
from judgekit.core.judgments import ModelRequest
from judgekit.core.protocols import Capabilities
from judgekit.core.request_fields import is_local
from judgekit.core.runs import JUDGE_INPUTS
from judgekit.engine.batch_desk import request_name
from judgekit.engine.batch_jobs import BatchJobs
from judgekit.engine.batch_replies import ReplyReader
from judgekit.engine.judgment_draft import cached_reply
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.passes import Observer, pending, unanswered
from judgekit.engine.requests import JudgePlan, RequestMaker
from judgekit.providers.batch_lines import received, request_line
from judgekit.storage.batch_store import BatchStore, PartWriter
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.stored_judgments import StoredJudgments
from judgekit.workflows.models import Options, open_cache
from judgekit.workflows.rejudge import plans_of
from judgekit.workflows.selectors import find_run
from judgekit.workflows.stored import StoredRun, open_stored


@dataclass
class Exported:
    """The batch files that were written."""

    paths: list[Path]
    n_requests: int = 0
    n_cached: int = 0
    """Questions whose reply is in the cache, or was imported, already."""


@dataclass
class Imported:
    """What became of the lines of files of replies."""

    run: Path
    n_stored: int = 0
    n_known: int = 0
    """Lines that were there already."""
    n_missing: int = 0
    """Requests without a reply, which a resumed run asks in the usual way."""
    errors: Counter[str] = field(default_factory=Counter)
    """Errors in the place of replies, by kind; the resumed run records each as a failure of its case."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Lines of which nothing was stored, by kind: an id twice, or one that is not of this run."""

    def add(self, record: dict[str, Any]) -> None:
        """Count what came of one file."""
        self.n_stored += record["n_stored"]
        self.n_known += record["n_known"]
        self.errors.update(record["errors"])
        self.left_out.update(record["left_out"])


def export_batch(run: str, out: Path | None, model: str | None, options: Options) -> Exported:
    """Write the requests that a run has left, a line each, as OpenAI's batch endpoint and `vllm run-batch` take them.

    Args:
        run: a run whose outputs are recorded and that is not complete.
        out: the file; None: `batch-MODEL.jsonl` in the run folder. Further files, if there are too many requests for
            one, are `OUT-2.jsonl` and so on.
        model: key of the model whose requests are meant; None: the only one.
        options: where runs are kept.

    Raises:
        ConfigError: the run has nothing left to ask, or asks a model that batches are not for.
        StorageError: a file cannot be written.
    """
    stored, plans = _asked(run, options)
    runtime = _model(plans, model)
    folder, settings = stored.folder, runtime.config.batches
    cache, _ = open_cache(options.cache_dir or folder.path.parent, {runtime.model_id: runtime}, options)
    first = out or folder.path / f"batch-{runtime.model_id}.jsonl"
    exported = Exported([])
    with closing(cache) if cache is not None else nullcontext(), _held(folder) as store:
        takes = _takes(runtime)
        part = BatchPart(number=0, model_id=runtime.model_id, status="exported")
        writer = PartWriter(store, _names_after(first), part, (settings.max_requests, settings.max_bytes))
        try:
            for name, key, request in _requests(folder, plans, runtime, takes):
                found = store.find(name)
                is_answered = found is not None and found.line is not None and received(found.line).is_reply
                if is_answered or (cache is not None and cached_reply(cache, key, runtime.guard) is not None):
                    exported.n_cached += 1
                elif found is not None and found.part.is_open:
                    raise ConfigError(
                        f"batch {found.part.batch_id or found.part.number} with some of these requests is not over: "
                        f"judgekit run --resume {run}, or judgekit batch cancel {run}"
                    )
                else:
                    exported.n_requests += writer.add(name, request_line(name, request))
            exported.paths = [Path(written.path) for written in writer.close()]
        except BaseException:
            writer.discard()
            raise
    return exported


def import_batch(run: str, files: Sequence[Path], options: Options) -> Imported:
    """Take in the replies of a batch, in whatever order they come; what is imported twice changes nothing.

    Args:
        run: the run.
        files: what the batch endpoint gave back, output and error files.
        options: where runs are kept.

    Raises:
        ConfigError: no requests of the run were exported.
        InputError: a file is missing, or not one of replies; nothing is taken of it then.
        StorageError: the replies cannot be stored.
    """
    folder = RunFolder.open(find_run(run, options))
    if not BatchStore.is_there(folder.path):
        raise ConfigError(f"{folder.path}: no requests of this run were exported: judgekit batch export {run}")
    found = Imported(folder.path)
    with _held(folder) as store:
        for file in files:
            sha256 = _checked(file)
            reader = ReplyReader(store, sha256)
            before = store.source(sha256)
            if before is not None:
                found.n_known += before["n_stored"] + before["n_known"] + sum(before["errors"].values())
                continue
            take = reader.begin()
            for _, line in _lines(file):
                take(line)
            record = {
                "file": file.name,
                "n_stored": reader.n_replies,
                "n_known": reader.n_known,
                "errors": dict(reader.errors),
                "left_out": dict(reader.left_out),
            }
            store.add_source(sha256, record)
            store.commit()
            found.add(record)
        found.n_missing = store.n_without_line()
    return found


async def cancel_batches(run: str, options: Options) -> int:
    """Stop the batches of a run that are not over; returns how many there were.

    What was answered by then is paid for, and received when the run is resumed; the rest fails as `expired` there and
    can be asked again.

    Raises:
        ConfigError: no such run, or it has no batches.
        ProviderError: the server cannot be reached.
    """
    stored, plans = _asked(run, options)
    models = {plan.runtime.model_id: plan.runtime for plan in plans}
    if not BatchStore.is_there(stored.folder.path):
        raise ConfigError(f"{stored.folder.path}: has no batches")
    with _held(stored.folder) as store:
        jobs = BatchJobs(store, models, stored.manifest.run_id, Observer())
        n_open = jobs.n_open
        try:
            await jobs.cancel()
        finally:
            for runtime in models.values():
                await runtime.provider.close()
    return n_open


@contextmanager
def _held(folder: RunFolder) -> Iterator[BatchStore]:
    """The batches of a run that no other process writes meanwhile."""
    with folder.locked():
        store = BatchStore(folder.path)
        try:
            yield store
        finally:
            store.close()


def _asked(run: str, options: Options) -> tuple[StoredRun, list[JudgePlan]]:
    """A run and the judges that it asks, by what it has stored, so that its cases need not be in memory."""
    stored = open_stored(run, options)
    folder, config, manifest = stored.folder, stored.config, stored.manifest
    if not folder.has(JUDGE_INPUTS):
        raise ConfigError(f"{folder.path}: its outputs are not recorded yet: judgekit run --resume {run}")
    if manifest.status == "complete" and not unanswered(folder, config, manifest):
        raise ConfigError(f"{folder.path}: this run is complete; nothing is left to ask")
    is_rejudge = manifest.kind == "rejudge"
    judges = [judge for judge in config.judges if not is_rejudge or judge.name in manifest.rejudged]
    wordings = {judge.name: stored.prompt(judge.name, judge.prompt_version) for judge in config.judges}
    return stored, plans_of(stored, config, [judge.name for judge in judges], wordings, options)


def _model(plans: Sequence[JudgePlan], wanted: str | None) -> ModelRuntime:
    """The model whose requests are meant."""
    asked = {plan.runtime.model_id: plan.runtime for plan in plans}
    batched = {name: runtime for name, runtime in asked.items() if runtime.provider.batches() is not None}
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
    return runtime


def _takes(runtime: ModelRuntime) -> Capabilities:
    """What the model takes as far as it is known, else what most take, for the run that is resumed too."""
    if runtime.remembered() is None:
        runtime.assume(Capabilities(response_format=runtime.config.reply_format or "json_schema"))
    return runtime.remembered() or Capabilities()


def _requests(
    folder: RunFolder, plans: Sequence[JudgePlan], runtime: ModelRuntime, takes: Capabilities
) -> Iterator[tuple[str, str, ModelRequest]]:
    """Name, key and request of each open question. Second opinions are drawn later, and not among them."""
    with StoredJudgments(folder) as done:
        for plan in plans:
            if plan.runtime is not runtime:
                continue
            maker = RequestMaker(plan, takes)
            for judge_input in pending(folder, plan, None, done):
                for part in plan.judge.parts(judge_input):
                    request = maker.request(part)
                    key = maker.key_and_parts(request)[0]
                    yield request_name(plan, key, part.case_id), key, request


def _names_after(first: Path) -> Callable[[int, int], Path]:
    """The names of files that begin with this one."""
    return lambda place, _: first if place == 1 else first.with_name(f"{first.stem}-{place}{first.suffix}")


def _checked(file: Path) -> str:
    """SHA-256 of a file of replies, each line of which was looked at.

    Raises:
        InputError: it cannot be read, or a line is none of a file of replies.
    """
    digest = hashlib.sha256()
    for number, line in _lines(file):
        digest.update(line)
        if line.strip():
            problem = received(line)
            if problem.custom_id is None:
                what = "not valid JSON; the file may be cut off"
                is_json = problem.problem != "not JSON"
                raise InputError(
                    f"{file}:{number}: {'no custom_id; this is not a file of batch replies' if is_json else what}"
                )
    return digest.hexdigest()


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with file.open("rb") as stream:
            yield from enumerate(stream, start=1)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from None
