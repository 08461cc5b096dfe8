"""Commands around batch files: batch export, import."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from judgekit.cli.commands import RUN, Run, Shared, app, command

batch = typer.Typer(
    help="Judge by the batch endpoint of a provider.",
    epilog="Example:  judgekit batch export RUN",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.add_typer(batch, name="batch", rich_help_panel=RUN)

EXPORT_EPILOG = """\b
Examples:
  judgekit record config.json                              the outputs of a live system, no judge
  judgekit batch export RUN --out requests.jsonl           upload it to a batch endpoint, or: vllm run-batch -i ...
  judgekit batch import RUN replies.jsonl                  what came back, in any order
  judgekit run --resume RUN                                parse, check and record; ask what is missing
"""

IMPORT_EPILOG = """\b
Examples:
  judgekit batch import RUN replies.jsonl                  what vllm run-batch wrote
  judgekit batch import RUN output.jsonl errors.jsonl      both files of a provider's batch
"""

Model = Annotated[str | None, Option("--model", help="Key of the model; default: the only one.")]


@command(batch, "export", json=True, epilog=EXPORT_EPILOG)
def export_command(
    shared: Shared,
    run: Run,
    out: Annotated[Path | None, Option("--out", help="File to write; default: in the run folder.")] = None,
    model: Model = None,
) -> None:
    """Write the requests that a run has left as a batch file. Nothing is asked."""
    from judgekit.workflows.batch import export_batch

    found = export_batch(run, out, model, shared.options(needs_keys=False))
    paths = list(map(str, found.paths))
    document = {"paths": paths, "n_requests": found.n_requests, "n_cached": found.n_cached}
    cached = f"; {found.n_cached} more are answered already" if found.n_cached else ""
    shared.show(document, lambda: f"{found.n_requests} requests are in {', '.join(paths) or 'no file'}{cached}")


@command(batch, "import", json=True, epilog=IMPORT_EPILOG)
def import_command(
    shared: Shared,
    run: Run,
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Files of replies: output and error files.")],
) -> None:
    """Take in the replies of a batch, in any order. The run judges them when it is resumed."""
    from judgekit.reports.safe_text import printable_line
    from judgekit.workflows.batch import import_batch

    found = import_batch(run, files, shared.options(needs_keys=False))
    counts = {"n_stored": found.n_stored, "n_known": found.n_known, "n_missing": found.n_missing}
    document = {**counts, "errors": dict(found.errors), "left_out": dict(found.left_out)}

    def text() -> str:
        lines = [f"{found.n_stored} replies were stored; {found.n_missing} requests have none."]
        lines += [f"there already: {found.n_known}"] if found.n_known else []
        lines += [f"failed: {n} ({kind})" for kind, n in sorted(found.errors.items())]
        lines += [f"left out: {n} ({kind})" for kind, n in sorted(found.left_out.items())]
        return "\n".join(map(printable_line, [*lines, f"next: judgekit run --resume {found.run}"]))

    shared.show(document, text)


@command(batch, "cancel", json=True, epilog="\b\nExample:\n  judgekit batch cancel RUN")
def cancel_command(shared: Shared, run: Run) -> None:
    """Stop the batches of a run. What they have answered by then is judged when the run is resumed."""
    from judgekit.executors.event_loop import run_local
    from judgekit.workflows.batch import cancel_batches

    n_open = run_local(lambda: cancel_batches(run, shared.options()))
    shared.show({"n_cancelled": n_open}, lambda: f"{n_open} batches were open and are stopped.")
