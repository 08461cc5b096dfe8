"""Going on with a run that stopped, whatever kind of run it is."""

from dataclasses import replace
from pathlib import Path

from judgekit.core.errors import ConfigError, JudgekitError
from judgekit.core.runs import REPORT, Manifest
from judgekit.engine.unanswered import unanswered
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import FolderIndex
from judgekit.storage.stored_summary import read_summary
from judgekit.workflows.closing import INDEX_SECONDS
from judgekit.workflows.job import Reopened, RunJob
from judgekit.workflows.jobs import find_run
from judgekit.workflows.jobs import resume_job as resume_first_judging
from judgekit.workflows.models import Options
from judgekit.workflows.rejudging import resume_rejudge
from judgekit.workflows.stored import StoredRun, open_stored


def resume_job(run: str, config_path: Path | None, options: Options) -> RunJob:
    """A run that stopped early, or a complete one of which calls failed on the way, ready to go on.

    Args:
        run: a run id, or the path of a run folder.
        config_path: left out, the config that the run was started with; a rejudge takes none.
        options: where runs are kept, and whether cached replies are used.

    Raises:
        ConfigError: no such run, a complete run of which nothing is to be asked again, or a config that has changed
            (what changed is named).
        StorageError: the run is damaged.
    """
    path = find_run(run, config_path, options)
    folder = RunFolder.open(path)
    manifest = folder.manifest()
    if manifest.kind != "run" and config_path is not None:
        raise ConfigError(f"{path}: is a rejudge, which holds its own config; leave the config file out")
    reopened = _reopened(folder, manifest) if manifest.status == "complete" else None
    if manifest.kind == "run":
        job = resume_first_judging(folder, manifest, config_path, options)
    else:
        job = resume_rejudge(replace(open_stored(str(path), options), manifest=manifest), options)
    return replace(job, reopened=reopened)


def is_open(run: Path) -> bool:
    """Whether `resume_job` has something to go on with; what cannot be told is.

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
        ConfigError: there are none.
        StorageError: the run is damaged.
    """
    stored = replace(open_stored(str(folder.path), Options()), manifest=manifest)
    left = unanswered(folder, stored.config, manifest)
    summary = read_summary(folder) if left else None
    if summary is None:
        close_again(stored)
        raise ConfigError(f"{folder.path}: this run is complete; there is nothing to resume")
    return Reopened(manifest, summary, left)


def close_again(stored: StoredRun) -> None:
    """Take the last steps of a complete run that was killed before it could: its report and its entry in the database.

    Raises:
        RunBusy: another process is at them.
        StorageError: they cannot be written.
    """
    folder = stored.folder
    with folder.locked_as_found(stored.manifest):
        if stored.config.report and not folder.has(REPORT):
            from judgekit.workflows.reporting import write_report  # loads templates and tables

            write_report(folder.path)
            FolderIndex(INDEX_SECONDS).put_run(folder.path)
