"""The gates of a run: each held against its figures, or against those of the baseline that it names."""

from collections.abc import Sequence

from judgekit.analysis.gates import check_gates
from judgekit.analysis.relative_gates import held_against, undecided
from judgekit.analysis.stored_figures import rounded
from judgekit.core.comparison import Comparison
from judgekit.core.conditions import Gate, GateResult
from judgekit.core.errors import JudgekitError
from judgekit.core.runs import RunSummary
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.compared_runs import CompareOptions, open_runs
from judgekit.workflows.models import Options
from judgekit.workflows.selectors import LATEST, find_run


def hold_gates(
    gates: Sequence[Gate], folder: RunFolder, summary: RunSummary, before: Sequence[GateResult] = ()
) -> tuple[GateResult, ...]:
    """Whether each gate of a run holds.

    The scores of the run must be stored if a gate is relative to a baseline, which is looked for beside the run. What
    keeps it from being compared makes the gate undecided; it never costs the run.

    Args:
        gates: of the config.
        folder: the run.
        summary: its figures.
        before: earlier results of the same gates: a gate keeps the baseline that it was held against, if that is still
            there, since `latest` may name a later run by now.
    """
    kept = {
        result.baseline.not_worse_than: result.baseline.run_id
        for result in before
        if result.baseline is not None and result.baseline.run_id is not None
    }
    wanted = dict.fromkeys(gate.not_worse_than for gate in gates if gate.not_worse_than is not None)
    comparisons = {name: _comparison(name, kept.get(name), folder, summary) for name in wanted}
    return tuple(_held(gate, summary, comparisons) for gate in gates)


def _held(gate: Gate, summary: RunSummary, comparisons: dict[str, Comparison | tuple[str, str | None]]) -> GateResult:
    if gate.not_worse_than is None:
        return check_gates((gate,), summary)[0]
    found = comparisons[gate.not_worse_than]
    return held_against(gate, found) if isinstance(found, Comparison) else undecided(gate, *found)


def _comparison(
    name: str, kept: str | None, folder: RunFolder, summary: RunSummary
) -> Comparison | tuple[str, str | None]:
    """The run beside its baseline; or why there is none, and the baseline if it is known."""
    from judgekit.workflows.compare import compared  # loads the pages of comparisons

    options = Options(results_dir=folder.path.parent)
    baseline = None
    try:
        path = find_run(kept or name, options, without=summary.run_id)
        if kept is not None and not path.is_dir():
            path = find_run(name, options, without=summary.run_id)
        manifest = RunFolder.open(path).manifest()
        baseline = manifest.run_id
        if manifest.status != "complete":
            return f"the baseline is {manifest.status}; finish it with: judgekit run --resume {path}", baseline
        figures = rounded(summary.model_dump(mode="json"))
        with open_runs(str(path), str(folder.path), options, figures) as sides:
            return compared(sides, CompareOptions(allows_mismatch=True))
    except JudgekitError as error:
        is_none_yet = baseline is None and name.startswith(LATEST)
        return f"no baseline yet, {error}" if is_none_yet else str(error), baseline
