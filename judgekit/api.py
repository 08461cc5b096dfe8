"""judgekit as a library: the same run as the command line's, and the same figures, from a script or a notebook."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from judgekit.analysis.estimates import Tally
from judgekit.core.components import Component
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate, Outcomes
from judgekit.executors.local import run_local
from judgekit.wiring import Options, assemble, config_path_of, open_job
from judgekit.workflows.job import SilentObserver
from judgekit.workflows.run import run as run_workflow


def run(
    config: str | Path,
    *,
    results_dir: str | Path | None = None,
    limit: int | None = None,
    run_id: str | None = None,
    use_cache: bool = True,
) -> RunSummary:
    """Judge everything that a config names, into a new run folder.

    Works from inside a running event loop too, such as a notebook's.

    Args:
        config: path of a config file, or `quickstart`.
        results_dir: folder of runs; left out: the config's, or `results` in the current folder.
        limit: take only the first cases.
        run_id: name of the run folder.
        use_cache: False asks every question anew and stores no replies.

    Returns:
        The figures, as in metrics.json but not yet rounded.

    Raises:
        JudgekitError: see `judgekit.core.errors`.
    """
    options = Options(
        results_dir=None if results_dir is None else Path(results_dir), run_id=run_id, limit=limit, use_cache=use_cache
    )
    job = open_job(assemble(config_path_of(str(config)), options), options)
    return run_local(lambda: run_workflow(job, SilentObserver()))


def aggregate(
    component: Component, outcomes: Iterable[Outcomes], *, errors: Literal["exclude", "as_zero"] = "exclude"
) -> dict[str, Estimate | dict[str, int]]:
    """The figures of one metric family or judge over many cases, as a run calculates them.

    Args:
        component: the family or judge that gave the scores, with the same arguments.
        outcomes: the scores of each case, as its `calculate` or `scores` returns them.
        errors: failed cases are left out and counted, or counted as the worst value.

    Returns:
        Estimates by name in metrics.json, with n, n_not_applicable and n_error; the value is None for no cases.
        Distributions are counts by value.

    Raises:
        KeyError: a case lacks one of the component's scores.
    """
    tally = Tally(component.columns(), component.pooled())
    for scores in outcomes:
        tally.add(scores)
    return {**tally.figures(errors), **tally.figures(errors, "operational")}
