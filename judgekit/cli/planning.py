"""Commands about runs to come: plan, aa."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from judgekit.cli.commands import LOOK, Run, Shared, app, command

PLAN_EPILOG = """\b
Examples:
  judgekit plan OLD_RUN NEW_RUN --metric correctness --difference 0.1    from what two versions differ by
  judgekit plan RUN --metric correctness --difference 0.1 --power 0.9    from the spread of one run
  judgekit plan --sd 1.4 --difference 0.2                                from a stated spread over cases
  judgekit plan --rate 0.8 --difference 0.05 --correlation 0.7           of a score that is 0 or 1
  judgekit plan --within 0.05 --agreement 0.8                            human labels

\b
Nothing is asked and nothing is written. Exit codes: 0 done, 2 something to correct, 4 storage.
"""

AA_EPILOG = """\b
Examples:
  judgekit aa RUN                          from several answers to each case, or what the judge said when asked again
  judgekit aa RUN AGAIN                    from a second run of the same system: the best basis
  judgekit aa RUN --config new.json        the gates of another config
  judgekit aa RUN --json | jq '.any.same'

\b
Nothing is asked and nothing is written. Exit codes: 0 done, 2 something to correct, 4 storage.
"""


@command(app, "plan", panel=LOOK, json=True, epilog=PLAN_EPILOG)
def plan_command(
    shared: Shared,
    runs: Annotated[
        list[str] | None, Argument(help="No run, one, or two: the baseline and a later version.", show_default=False)
    ] = None,
    metric: Annotated[str | None, Option("--metric", help="The figure, as in metrics.json.")] = None,
    difference: Annotated[float | None, Option("--difference", help="The difference that is to be found.")] = None,
    power: Annotated[float, Option("--power", help="Chance of finding it.")] = 0.8,
    correlation: Annotated[
        float | None, Option("--correlation", help="Of a case's scores in two versions; default: 0.5, unless known.")
    ] = None,
    sd: Annotated[float | None, Option("--sd", help="Spread of the score over cases, without a run.")] = None,
    rate: Annotated[float | None, Option("--rate", help="Mean of a 0/1 score, without a run.")] = None,
    within: Annotated[
        float | None, Option("--within", help="Labels that know a judge's agreement to plus or minus this.")
    ] = None,
    agreement: Annotated[float | None, Option("--agreement", help="The agreement that you expect.")] = None,
) -> None:
    """Say how many cases it takes to find a difference. And answers and labels; from stored runs or stated figures."""
    from judgekit.analysis.stored_figures import rounded
    from judgekit.reports.plan_text import plan_lines
    from judgekit.workflows.plan import PlanWanted, plan

    wanted = PlanWanted(metric, difference, power, correlation, sd, rate, within, agreement)
    found = plan(runs or (), wanted, shared.options())
    shared.show(rounded(found), lambda: "\n".join(plan_lines(found)))


@command(app, "aa", panel=LOOK, json=True, epilog=AA_EPILOG)
def aa_command(
    shared: Shared,
    run: Run,
    again: Annotated[str | None, Argument(help="A second run of the same system.", show_default=False)] = None,
    config: Annotated[Path | None, Option("--config", help="Take the gates of this config.")] = None,
    n_runs: Annotated[
        int | None, Option("--runs", min=10, max=1_000_000, help="Pseudo-runs; default: 1000, fewer of a large run.")
    ] = None,
    seed: Annotated[int, Option("--seed", help="Of what is drawn.")] = 0,
    correlation: Annotated[
        float | None,
        Option("--correlation", min=-0.0, max=1.0, help="Of a case's scores in two runs, if nothing stored says it."),
    ] = None,
) -> None:
    """Say how often the gates of a run fail by chance. A test of A against A, from pseudo-runs of the stored one."""
    from judgekit.analysis.stored_figures import rounded
    from judgekit.reports.aa_text import aa_lines
    from judgekit.workflows.aa import AAWanted, aa

    found = aa(run, AAWanted(again, config, n_runs, seed, correlation), shared.options())
    shared.show(rounded(found), lambda: "\n".join(aa_lines(found)))
