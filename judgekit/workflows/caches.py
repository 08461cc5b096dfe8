"""What the `judgekit cache` commands work on: an existing cache, or a case of a run beside a config."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from judgekit.storage.cache_entries import open_reader
from judgekit.storage.reply_cache import CACHE_FOLDER
from judgekit.storage.run_folder import RunFolder
from judgekit.systems.recorded import Recorded
from judgekit.workflows.assembly import Assembly, assemble, open_estimate
from judgekit.workflows.cache_why import WhyJob
from judgekit.workflows.dry_run import EstimateJob
from judgekit.workflows.jobs import config_of, find_run, results_dir_of
from judgekit.workflows.models import Options


def cache_folder(options: Options) -> Path:
    """Where replies are cached: beside the runs."""
    return (options.results_dir or Path("results")) / CACHE_FOLDER


@dataclass(frozen=True)
class WhyTarget:
    """What `judgekit cache why` was asked about."""

    run: str
    case_id: str
    judge: str | None = None
    config_path: Path | None = None
    """Left out: the config that the run was started with, as it is now."""
    asks_server: bool = False


@contextmanager
def open_why(target: WhyTarget, options: Options) -> Iterator[WhyJob]:
    """A case of a run, beside the config of that run as it is now, or another one.

    Raises:
        ConfigError: no such run, or a config that cannot be used.
        StorageError: the run or the cache cannot be read.
    """
    folder = RunFolder.open(find_run(target.run, None, options))
    manifest = folder.manifest()
    path = target.config_path or config_of(folder, manifest)
    assembly = assemble(path, replace(options, needs_keys=target.asks_server))
    place = folder.path.parent
    if target.config_path is not None:
        place = results_dir_of(assembly.config, target.config_path, options)
    reader = open_reader(place / CACHE_FOLDER)
    for runtime in assembly.models.values():
        runtime.cache = reader
    try:
        yield WhyJob(
            store=folder,
            found_out=manifest.models,
            case_id=target.case_id,
            judge=target.judge,
            plans=assembly.judges,
            case=next((case for case in assembly.cases if case.id == target.case_id), None),
            # Recorded outputs cost nothing to look up; any other system would be called.
            system=assembly.system if isinstance(assembly.system, Recorded) else None,
            cache=reader,
            cache_path=place / CACHE_FOLDER,
            asks_server=target.asks_server,
        )
    finally:
        if reader is not None:
            reader.close()


@contextmanager
def estimating(assembly: Assembly, options: Options) -> Iterator[EstimateJob]:
    """What an estimate of a run works on, with the cache that the run would use."""
    place = results_dir_of(assembly.config, assembly.config_path, options)
    reader = open_reader(place / CACHE_FOLDER) if options.use_cache else None
    try:
        yield replace(open_estimate(assembly, reader), now=options.now)
    finally:
        if reader is not None:
            reader.close()
