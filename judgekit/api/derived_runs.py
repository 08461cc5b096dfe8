"""Runs from Python that are made of other runs: judged again, held against each other, and put together."""

from collections.abc import Sequence
from pathlib import Path

from judgekit.api.in_memory import several
from judgekit.api.live_bar import observer_here
from judgekit.api.results import RunResult
from judgekit.api.running import Run, name_of, options_of, path_of, result_of
from judgekit.api.uploading import uploading
from judgekit.core.errors import ConfigError
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.workflows.run import run as run_workflow


@uploading
def rejudge(
    run: Run,
    *,
    judge: str | Sequence[str] = (),
    model: str | None = None,
    prompt_version: str | None = None,
    config: str | Path | None = None,
    results_dir: str | Path | None = None,
    run_id: str | None = None,
    use_cache: bool = True,
    observer: Observer | None = None,
) -> RunResult:
    """Judge the stored inputs of a run again, into a new run; the system is not asked.

    Args:
        run: the run.
        judge: names of judges; none: all of the run.
        model: key of the model to ask.
        prompt_version: wording to ask with.
        config: another config, for models and wordings that the run's does not have.
        results_dir: folder of runs; left out: beside the run.
        run_id: name of the new run.
        use_cache: False asks every question again.
        observer: is told how it goes; left out: as of `run`.

    Raises:
        JudgekitError: see `judgekit.core.errors`.
    """
    from judgekit.workflows.rejudge import RejudgeWanted, open_rejudge

    names = tuple(several(judge))
    options = options_of(results_dir, run_id=run_id, use_cache=use_cache)
    job = open_rejudge(name_of(run), RejudgeWanted(names, model, prompt_version, path_of(config)), options)
    return result_of(job, run_local(lambda: run_workflow(job, observer or observer_here())))


@uploading
def prefer(
    *runs: Run,
    judge: str | None = None,
    model: str | None = None,
    prompt_version: str | None = None,
    config: str | Path | None = None,
    results_dir: str | Path | None = None,
    run_id: str | None = None,
    use_cache: bool = True,
    observer: Observer | None = None,
) -> RunResult:
    """Ask a judge which of two or more runs has the better answers, into a new run.

    Args:
        runs: the runs, A first.
        judge: a judge of preference; left out: the config's, else `preference`.
        model: key of the model to ask.
        prompt_version: wording to ask with.
        config: a config with judge, models and gates.
        results_dir: folder of runs.
        run_id: name of the new run.
        use_cache: False asks every question again.
        observer: is told how it goes; left out: as of `run`.

    Raises:
        JudgekitError: see `judgekit.core.errors`.
    """
    from judgekit.workflows.prefer import PreferWanted, open_comparison

    options = options_of(results_dir, run_id=run_id, use_cache=use_cache)
    wanted = PreferWanted(judge, model, prompt_version, path_of(config))
    job = open_comparison([name_of(item) for item in runs], wanted, options).start()
    return result_of(job, run_local(lambda: run_workflow(job, observer or observer_here())))


@uploading
def merge(
    shards: Sequence[Run],
    *,
    config: str | Path | None = None,
    results_dir: str | Path | None = None,
    run_id: str | None = None,
    observer: Observer | None = None,
) -> RunResult:
    """Put complete shards together, into a new run with the figures of one process.

    Args:
        shards: the runs of all shards, in any order.
        config: where the config is now; left out: where the shards were judged from.
        results_dir: folder of runs, in which shards are looked for too; left out: the config's.
        run_id: name of the new run.
        observer: is told how it goes; left out: as of `run`.

    Raises:
        ConfigError: shards that do not belong together, one that is missing, or a config or data that have changed.
        JudgekitError: see `judgekit.core.errors`.
    """
    from judgekit.workflows.merge import open_merge

    if isinstance(shards, str | Path | RunResult) or not shards:
        raise ConfigError("merge: expected a list with the runs of all shards")
    job = open_merge([name_of(run) for run in shards], options_of(results_dir, None, run_id=run_id), path_of(config))
    return result_of(job, run_local(lambda: run_workflow(job, observer or observer_here())))
