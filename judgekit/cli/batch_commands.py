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
    document = {"path": str(found.path), "n_requests": found.n_requests, "n_cached": found.n_cached}
    cached = f"; {found.n_cached} more are answered by the cache" if found.n_cached else ""
    shared.show(document, lambda: f"{found.n_requests} requests are in {found.path}{cached}")


@command(batch, "import", json=True, epilog="\b\nExample:\n  judgekit batch import RUN replies.jsonl")
def import_command(
    shared: Shared,
    run: Run,
    file: Annotated[Path, Argument(help="File of replies, as the batch endpoint gave it.")],
    model: Model = None,
) -> None:
    """Put the replies of a batch into the cache. The run reads them there when it is resumed."""
    from judgekit.reports.safe_text import printable_line
    from judgekit.workflows.batch import import_batch

    found = import_batch(run, file, model, shared.options(needs_keys=False))
    document = {"n_stored": found.n_stored, "n_missing": found.n_missing, "failures": dict(found.failures)}

    def text() -> str:
        lines = [f"{found.n_stored} replies are in the cache; {found.n_missing} requests have none."]
        lines += [f"left out: {n} ({kind})" for kind, n in sorted(found.failures.items())]
        return "\n".join(map(printable_line, [*lines, f"next: judgekit run --resume {found.run}"]))

    shared.show(document, text)
