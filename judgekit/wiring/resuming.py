"""Going on with a run that stopped, whatever kind of run it is."""

from pathlib import Path

from judgekit.core.errors import ConfigError
from judgekit.core.runs import REPORT
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import FolderIndex
from judgekit.wiring.jobs import INDEX_SECONDS, find_run, report_writer
from judgekit.wiring.jobs import resume_job as resume_first_judging
from judgekit.wiring.models import Options
from judgekit.wiring.rejudging import resume_rejudge
from judgekit.wiring.stored import StoredRun, open_stored
from judgekit.workflows.job import RunJob


def resume_job(run: str, config_path: Path | None, options: Options) -> RunJob:
    """A run that stopped early, ready to go on.

    Args:
        run: a run id, or the path of a run folder.
        config_path: left out, the config that the run was started with; a rejudge takes none.
        options: where runs are kept, and whether cached replies are used.

    Raises:
        ConfigError: no such run, a run that is complete, or a config that has changed (what changed is named).
        StorageError: the run is damaged.
    """
    path = find_run(run, config_path, options)
    folder = RunFolder.open(path)
    manifest = folder.manifest()
    if manifest.kind != "run" and config_path is not None:
        raise ConfigError(f"{path}: is a rejudge, which holds its own config; leave the config file out")
    if manifest.status == "complete":
        close_again(open_stored(str(path), options))
        raise ConfigError(f"{path}: this run is complete; there is nothing to resume")
    if manifest.kind == "run":
        return resume_first_judging(folder, manifest, config_path, options)
    return resume_rejudge(open_stored(str(path), options), options)


def close_again(stored: StoredRun) -> None:
    """Take the last steps of a complete run that was killed before it could: its report and its entry in the database.

    Raises:
        RunBusy: another process is at them.
        StorageError: they cannot be written.
    """
    folder = stored.folder
    write_report = report_writer(stored.config)
    with folder.locked_as_found(stored.manifest):
        if write_report is not None and not folder.has(REPORT):
            write_report(folder.path)
            FolderIndex(INDEX_SECONDS).put_run(folder.path)
