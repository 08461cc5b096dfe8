"""Runs from Python: what the commands of the same name do, with results in place of exit codes.

Errors are those of `judgekit.core.errors`. Everything works inside a running event loop, such as a notebook's.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgekit.api.in_memory import (
    Given,
    judge_entry,
    several,
    system_entry,
    write_config,
    write_inputs,
    write_labels,
)
from judgekit.api.live_bar import observer_here
from judgekit.api.results import Finding, RunResult
from judgekit.api.uploading import uploading
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.config import ModelConfig, RunConfig
from judgekit.core.errors import ConfigError
from judgekit.core.judge_config import JudgeConfig
from judgekit.core.protocols import System
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_beside, run_local
from judgekit.storage.env_files import read_env
from judgekit.systems.python import Python
from judgekit.workflows.job import RunJob, start
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run as run_workflow
from judgekit.workflows.selectors import config_path_of, find_run
from judgekit.workflows.setup import set_up
from judgekit.workflows.stored_runs import stored_figures

Run = RunResult | str | Path
"""A run: a result, a path, a run id or the beginning of one, `latest`, or `latest:TAG`."""

Answers = Callable[[Case], Any]
"""A system as a function of a case: sync, async or a generator."""


@uploading
def run(
    config: str | Path | Mapping[str, Any] | RunConfig,
    *,
    base: str | Path = ".",
    results_dir: str | Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
    run_id: str | None = None,
    case: str | Sequence[str] = (),
    shard: str | None = None,
    resume: str | None = None,
    use_cache: bool = True,
    observer: Observer | None = None,
) -> RunResult:
    """Judge everything that a config names, into a new run folder.

    Args:
        config: path of a config file, `quickstart`, or a config as a mapping or `RunConfig`.
        base: where relative paths of a config that is not a file start.
        results_dir: folder of runs; left out: the config's, or `results` in the current folder.
        limit: take only the first cases.
        sample: take only so many cases, drawn at random with the config's seed.
        run_id: name of the run folder.
        case: ids of the cases to judge; none: all.
        shard: `3/16` takes the third of 16 parts of the cases; `merge` puts the parts together.
        resume: a run that stopped, in place of a new one.
        use_cache: False asks every question again and stores no replies.
        observer: is told how the run goes; left out: a live bar in a notebook, elsewhere nothing.

    Returns:
        The run. Its figures are those of metrics.json, not yet rounded.

    Raises:
        JudgekitError: see `judgekit.core.errors`.
    """
    in_memory = not isinstance(config, str | Path)
    case_ids = tuple(dict.fromkeys(several(case))) or None
    part = {"limit": limit, "sample": sample, "case_ids": case_ids, "shard": shard}
    options = options_of(results_dir, Path(base) if in_memory else None, run_id=run_id, use_cache=use_cache, **part)
    job = _job(_config_path(config, Path(base), options), options, resume)
    return result_of(job, run_local(lambda: run_workflow(job, observer or observer_here())))


async def arun(config: str | Path | Mapping[str, Any] | RunConfig, **arguments: Any) -> RunResult:
    """`run` beside the event loop that is running; arguments and errors are the same.

    Cancelled, it leaves a run that can be resumed.
    """
    return await run_beside(lambda: run(config, **arguments))


@uploading
def evaluate(
    cases: Any,
    outputs: Any = None,
    *,
    system: Answers | System | Mapping[str, Any] | None = None,
    judges: str | Sequence[str | Mapping[str, Any] | JudgeConfig] = (),
    models: Mapping[str, Mapping[str, Any] | ModelConfig] | None = None,
    metrics: str | Sequence[str | Mapping[str, Any]] | None = None,
    name: str = "evaluate",
    fields: Mapping[str, str] | None = None,
    results_dir: str | Path | None = None,
    run_id: str | None = None,
    resume: str | None = None,
    use_cache: bool = True,
    observer: Observer | None = None,
    **config: Any,
) -> RunResult:
    """Judge cases and outputs that are in memory, or ask a system about them first, into a new run folder.

    Args:
        cases: mappings with the fields of a case, `Case` objects, or a frame with a row for each.
        outputs: the same of outputs. Left out: a system is asked, or without one, `cases` holds the answers too.
        system: a function of a `Case` that returns a text, a mapping with fields of `SystemOutput`, or one; or the
            `system` of a config.
        judges: as in a config. The model of a judge may be left out where there is only one.
        models: as in a config.
        metrics: as in a config; left out: all that apply.
        name: of the suite.
        fields: our field name -> name in `cases` and `outputs`.
        results_dir: folder of runs; left out: `results` in the current folder.
        run_id: name of the run folder.
        resume: a run of the same arguments that stopped, in place of a new one.
        use_cache: False asks every question again and stores no replies.
        observer: is told how the run goes; left out: a live bar in a notebook, elsewhere nothing.
        config: further keys of a config, such as `gates`, `spot_check`, `slices`, `repeats` or `budget`.

    Returns:
        The run.

    Raises:
        InputError: one line for each thing that is wrong with cases or outputs.
        JudgekitError: see `judgekit.core.errors`.
    """
    asked, answers = _given(cases, outputs, fields or {}, is_live=system is not None)
    document: dict[str, Any] = {"name": name, "models": models or {}, **config}
    document["judges"] = [judge_entry(judge, list(models or {})) for judge in several(judges)]
    if metrics is not None:
        document["metrics"] = several(metrics)
    if system is not None:
        document["system"] = system_entry(system)
    options = options_of(results_dir or "results", run_id=run_id, use_cache=use_cache)
    path = write_inputs(Path(results_dir or "results"), document, asked, answers, Path())
    live = Python(function=system) if callable(system) else system if isinstance(system, System) else None
    job = _job(path, options, resume, live)
    job.warnings += [*asked.notices, *(() if answers is None else answers.notices)]
    return result_of(job, run_local(lambda: run_workflow(job, observer or observer_here())))


def _given(
    cases: Any, outputs: Any, fields: Mapping[str, str], *, is_live: bool
) -> tuple[Given[Case], Given[SystemOutput] | None]:
    """Cases, and their outputs unless a live system is asked; one list or frame may hold both."""
    if is_live:
        if outputs is not None:
            raise ConfigError("evaluate: give outputs or a system, not both")
        return Given(cases, Case, fields, holds_both=False), None
    if outputs is not None:
        return Given(cases, Case, fields, holds_both=False), Given(outputs, SystemOutput, fields, holds_both=False)
    rows = list(cases) if isinstance(cases, Iterator) else cases
    return Given(rows, Case, fields, holds_both=True), Given(rows, SystemOutput, fields, holds_both=True)


async def aevaluate(cases: Any, outputs: Any = None, **arguments: Any) -> RunResult:
    """`evaluate` beside the event loop that is running; arguments and errors are the same as of `evaluate`."""
    return await run_beside(lambda: evaluate(cases, outputs, **arguments))


def open_run(run: Run, *, results_dir: str | Path | None = None) -> RunResult:
    """A stored run.

    Raises:
        ConfigError: there is no such run, or it has no figures yet.
        StorageError: it is damaged.
    """
    if isinstance(run, RunResult):
        return run
    from judgekit.storage.run_folder import RunFolder

    folder = RunFolder.open(find_run(str(run), options_of(results_dir)))
    return RunResult(folder.path, stored_figures(folder)[1])


@uploading
def spotcheck(
    run: Run,
    *,
    judge: str | None = None,
    n: int | str | None = None,
    against: str | None = None,
    seed: int | None = None,
    threshold: float | None = None,
    adaptive: bool = False,
    config: str | Path | None = None,
    results_dir: str | Path | None = None,
    observer: Observer | None = None,
) -> Finding:
    """Ask for a second opinion on a sample of a run's verdicts; it is written into the run.

    Args:
        run: the run.
        judge: only this judge.
        n: verdicts to check, or a share such as `5%`.
        against: `model:ID`, `prompt:VERSION` or `repeat`; left out: the best that there is.
        seed: of the sample; left out: a fresh one.
        threshold: rate of disagreement that is too much.
        adaptive: draw more until it is decided.
        config: another config, for models and wordings that the run's does not have.
        results_dir: folder of runs.
        observer: is told how it goes; left out: as of `run`.

    Raises:
        JudgekitError: see `judgekit.core.errors`.
    """
    from judgekit.analysis.stored_figures import rounded
    from judgekit.reports.spot_check_report import reliability_lines, spot_check_document
    from judgekit.workflows.comparators import SpotCheckWanted
    from judgekit.workflows.spotcheck import spotcheck as spotcheck_workflow

    wanted = SpotCheckWanted(judge, n, seed, against, threshold, adaptive, path_of(config))
    found = spotcheck_workflow(name_of(run), wanted, options_of(results_dir), observer or observer_here())
    text = "\n".join(reliability_lines(found.summary.judge_reliability, found.spot_checks))
    document = spot_check_document(found.summary, found.spot_checks, found.path)
    return Finding(text, rounded(document), found.path)


@uploading
def calibrate(
    run: Run,
    labels: Any = None,
    *,
    judge: str | None = None,
    cluster_by: str | None = None,
    baseline: Run | None = None,
    results_dir: str | Path | None = None,
) -> Finding:
    """Hold the judges of a run against human labels; the result is written into the run.

    Args:
        run: the run.
        labels: file of labels, or a list or frame with `case_id` and what such a file has beside it, such as `score`;
            left out: the labels that `judgekit label` wrote into the run.
        judge: only this judge.
        cluster_by: field whose cases may be alike.
        baseline: another run, whose verdicts are the baseline.
        results_dir: folder of runs.

    Raises:
        JudgekitError: see `judgekit.core.errors`.
    """
    from judgekit.reports.calibration_report import calibration_document, calibration_lines
    from judgekit.workflows.calibrate import CalibrationWanted
    from judgekit.workflows.calibrate import calibrate as calibrate_workflow

    before = None if baseline is None else name_of(baseline)
    options = options_of(results_dir)
    if labels is not None and not isinstance(labels, str | Path):
        labels = write_labels(find_run(name_of(run), options).parent, labels)
    wanted = CalibrationWanted(path_of(labels), judge, cluster_by, baseline=before)
    folder, found = calibrate_workflow(name_of(run), wanted, options, Observer())
    return Finding("\n".join(calibration_lines(found)), calibration_document(found), folder)


@uploading
def compare(
    baseline: Run, candidate: Run, *, allow_mismatch: bool = False, results_dir: str | Path | None = None
) -> Finding:
    """Compare two runs: differences with intervals, cases won and lost, and what else changed.

    Args:
        baseline: the earlier run.
        candidate: the later run.
        allow_mismatch: compare although judge, wording, parser or data set differ.
        results_dir: folder of runs.

    Raises:
        ConfigError: the runs cannot be compared; the message says what to do.
    """
    from judgekit.reports.compare_text import plain_text
    from judgekit.workflows.compare import compare as compare_workflow
    from judgekit.workflows.compare import comparison_pieces
    from judgekit.workflows.compared_runs import CompareOptions, open_runs

    how = CompareOptions(allows_mismatch=allow_mismatch)
    with open_runs(name_of(baseline), name_of(candidate), options_of(results_dir)) as sides:
        comparison = compare_workflow(sides, how)
        document = json.loads("".join(comparison_pieces(sides, comparison, (), "json")))
    return Finding(plain_text(comparison), document)


def options_of(results_dir: str | Path | None, base: Path | None = Path(), **more: Any) -> Options:
    """Options, and the environment with a `.env` in `base`, where paths start; None: a config file says where."""
    return Options(path_of(results_dir), environment=None if base is None else {**read_env(base), **os.environ}, **more)


def _job(path: Path, options: Options, resume: str | None, system: System | None = None) -> RunJob:
    if resume is not None:
        return resume_job(resume, path, replace(options, run_id=None), system)
    return start(set_up(path, options, system), options)


def result_of(job: RunJob, summary: Any) -> RunResult:
    return RunResult(job.folder.path, summary)


def _config_path(config: Any, base: Path, options: Options) -> Path:
    if isinstance(config, str | Path):
        return config_path_of(str(config))
    if not isinstance(config, Mapping | RunConfig):
        raise ConfigError(f"config: expected a path, a mapping or a RunConfig, found {type(config).__name__}")
    return write_config(options.results_dir or Path("results"), config, base)


def path_of(value: str | Path | None) -> Path | None:
    return None if value is None else Path(value)


def name_of(run: Run) -> str:
    return str(run.folder if isinstance(run, RunResult) else run)
