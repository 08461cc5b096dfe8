"""The command that probes judges: probe."""

from typing import Annotated

import typer

from judgekit.cli.outcome import print_json, reported, say
from judgekit.cli.rejudging import OtherConfig, Run
from judgekit.cli.runs import AsJson, Debug, Quiet, ResultsDir

PROBE_EPILOG = """\b
Examples:
  judgekit probe demo-20260131-142501-3f9a                          every probe of every judge, on 30 cases
  judgekit probe RUN --judge groundedness --n 100
  judgekit probe RUN --probes injection_answer,injection_passage    can a text order its own score?
  judgekit probe RUN --model other --config new.json                another model, before it is made the judge
  judgekit probe RUN --json | jq .correctness.probes.blank_answer

\b
Probes: unchanged, rubric_reversed, passages_shuffled, answer_padded, injection_answer, injection_passage,
blank_answer, wrong_fact_context. Each asks one question a case. Exit codes: 0 done, 2 to mend, 3 the provider
refuses, 4 storage, 130 interrupted (the same command goes on).
"""


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("probe", epilog=PROBE_EPILOG)(probe_command)


def probe_command(
    run: Run,
    judge: Annotated[str | None, typer.Option("--judge", help="Only this judge.")] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Cases of each judge; default: 30.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of cases and changes; default: the config's.")] = None,
    probes: Annotated[str | None, typer.Option("--probes", help="Names with commas between; default: all.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Key of the model to probe; default: the run's.")] = None,
    config: OtherConfig = None,
    from_cache: Annotated[bool, typer.Option("--from-cache", help="Take cached replies where there are any.")] = False,
    results_dir: ResultsDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Change one thing about stored inputs and see whether the judge's scores do what they should."""
    from judgekit.cli.progress import ProgressObserver
    from judgekit.executors.local import run_local
    from judgekit.reports.probe_report import probe_lines
    from judgekit.workflows.models import Options
    from judgekit.workflows.probe import probe
    from judgekit.workflows.probes import ProbesWanted, open_probes

    names = tuple(name.strip() for name in (probes or "").split(",") if name.strip())
    with reported(debug=debug):
        wanted = ProbesWanted(judge, n, seed, names, model, config, from_cache)
        job = open_probes(run, wanted, Options(results_dir=results_dir))
        for note in job.notes:
            say(f"note: {note}")
    with reported(debug=debug, resume_hint="the same command goes on with these probes"):
        with ProgressObserver(quiet=quiet) as observer:
            found = run_local(lambda: probe(job, observer))
        if as_json:
            print_json(found)
        else:
            typer.echo("\n".join([*probe_lines(found), str(job.store.path)]))
