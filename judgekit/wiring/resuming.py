"""Going on with a run that stopped, whatever kind of run it is."""

from pathlib import Path

from judgekit.core.errors import ConfigError
from judgekit.storage.run_folder import RunFolder
from judgekit.wiring.jobs import find_run
from judgekit.wiring.jobs import resume_job as resume_first_judging
from judgekit.wiring.models import Options
from judgekit.wiring.rejudging import resume_rejudge
from judgekit.wiring.stored import open_stored
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
    manifest = RunFolder.open(path).manifest()
    if manifest.kind == "run":
        return resume_first_judging(run, config_path, options)
    if config_path is not None:
        raise ConfigError(f"{path}: is a rejudge, which holds its own config; leave the config file out")
    return resume_rejudge(open_stored(str(path), options), options)
