"""A run that stopped, of whatever kind, opened again; a complete one if calls of it failed on the way."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

from judgekit.core.errors import ConfigError, JudgekitError
from judgekit.core.protocols import System
from judgekit.core.runs import CONFIG, JUDGMENTS, REPORT, Manifest, config_changes
from judgekit.engine.passes import unanswered
from judgekit.storage.config_files import load_config
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import index_run
from judgekit.storage.run_records import read_summary
from judgekit.workflows.closing import INDEX_SECONDS
from judgekit.workflows.job import Reopened, RunJob, job_of, resolved_config
from judgekit.workflows.models import Options
from judgekit.workflows.prefer import prefer_again
from judgekit.workflows.rejudge import resume_rejudge
from judgekit.workflows.selectors import config_of, find_run, results_dir_of
from judgekit.workflows.setup import Setup, set_up
from judgekit.workflows.stored import StoredRun, open_stored


def resume_job(run: str, config_path: Path | None, options: Options, system: System | None = None) -> RunJob:
    """A run that stopped early, or a complete one of which calls failed on the way, ready to be resumed.

    Args:
        run: a run id, or the path of a run folder.
        config_path: left out, the config that the run was started with; a rejudge takes none.
        options: where runs are kept, and whether cached replies are used.
        system: takes the place of the config's, as in `set_up`.

    Raises:
        ConfigError: no such run, a complete run of which nothing is to be asked again, or a config that has changed
            (what changed is named).
        StorageError: the run is damaged.
    """
    if config_path is not None and options.results_dir is None:
        options = replace(
            options, results_dir=results_dir_of(load_config(config_path).results_dir, config_path, options)
        )
    folder = RunFolder.open(find_run(run, options))
    # The run is refused if the manifest has changed since it was read here.
    manifest = folder.manifest()
    if manifest.kind != "run" and config_path is not None:
        what = "a rejudge" if manifest.kind == "rejudge" else "a comparison"
        raise ConfigError(f"{folder.path}: is {what}, which holds its own config; leave the config file out")
    _refuse_parts(folder, manifest)
    reopened = _reopened(folder, manifest) if manifest.status == "complete" else None
    cases = {key: getattr(manifest, key) for key in ("limit", "sample", "shard", "case_ids")}
    part = replace(options, run_id=None, **cases)
    if manifest.kind == "run":
        job = _resume_run(folder, manifest, set_up(config_path or config_of(folder, manifest), part, system), part)
    elif manifest.kind == "prefer":
        job = _resume_run(folder, manifest, prefer_again(folder, manifest, part), part)
    else:
        job = resume_rejudge(replace(open_stored(str(folder.path), options), manifest=manifest), options)
    return replace(job, reopened=reopened)


def _resume_run(folder: RunFolder, manifest: Manifest, setup: Setup, options: Options) -> RunJob:
    resolved = resolved_config(setup)
    old = folder.read_json(CONFIG) if (folder.path / CONFIG).exists() else resolved
    changed = config_changes(old, json.loads(json.dumps(resolved)))
    replaced: set[str] = set()
    if changed:
        # A run that stopped at a model that refused what its config says can be resumed once that is set right: a model
        # that has given no judgment yet may change.
        tried = {judgment.model_id for judgment in folder.judgments()} if folder.has(JUDGMENTS) else set()
        replaced = set(setup.config.models) - tried
        changed = [path for path in changed if not path.startswith(tuple(f"models.{name}." for name in replaced))]
    if changed:
        raise ConfigError(
            f"{folder.path}: cannot be resumed, since {', '.join(changed)} changed since it was started; "
            "start a new run (what is cached costs nothing)"
        )
    for name, runtime in setup.models.items():
        if name not in replaced:
            runtime.guard.go_on(manifest.models.get(name, {}))
    folder.spot_checks()  # a damaged one is named before anything of the run is written
    here = {"n_resumed": manifest.n_resumed + 1, "config_path": str(setup.config_path.resolve())}
    return job_of(setup, folder, manifest.model_copy(update=here), resolved, options, found=manifest)


def _refuse_parts(folder: RunFolder, manifest: Manifest) -> None:
    """Refuse a shard with other cases than one of today, and a merge that has not taken over all that was judged."""
    if manifest.shard is not None and manifest.shard_by is None and manifest.kind == "run":
        raise ConfigError(
            f"{folder.path}: is a shard of an older judgekit, which took every N-th case; start it again: judgekit run "
            f"{shlex.quote(manifest.config_path)} --shard {manifest.shard} (what is cached costs nothing)"
        )
    if manifest.shards and not folder.has(JUDGMENTS):
        runs = " ".join(shlex.quote(shard["path"]) for shard in manifest.shards)
        raise ConfigError(
            f"{folder.path}: was stopped before it had the judgments of its shards; delete the folder and merge again: "
            f"judgekit merge {runs}"
        )


def is_open(run: Path) -> bool:
    """Whether `resume_job` has something to ask; also if that cannot be told.

    Args:
        run: path of a run folder.
    """
    try:
        stored = open_stored(str(run), Options())
        return stored.manifest.status != "complete" or bool(unanswered(stored.folder, stored.config, stored.manifest))
    except JudgekitError:
        return True


def _reopened(folder: RunFolder, manifest: Manifest) -> Reopened:
    """A complete run as it is, with the questions that are asked again.

    Raises:
        ConfigError: every question is answered.
        StorageError: the run is damaged.
    """
    stored = replace(open_stored(str(folder.path), Options()), manifest=manifest)
    left = unanswered(folder, stored.config, manifest)
    summary = read_summary(folder) if left else None
    if summary is None:
        _close_again(stored)
        raise ConfigError(f"{folder.path}: this run is complete; there is nothing to resume")
    return Reopened(manifest, summary, left)


def _close_again(stored: StoredRun) -> None:
    """Take the last steps of a complete run that was killed before it could: its report and its entry in the database.

    Raises:
        RunBusy: another process is at them.
        StorageError: they cannot be written.
    """
    folder = stored.folder
    with folder.locked_as_found(stored.manifest):
        if stored.config.report and not folder.has(REPORT):
            from judgekit.workflows.report import write_report  # loads templates and tables

            write_report(folder.path)
            index_run(folder.path, INDEX_SECONDS)
