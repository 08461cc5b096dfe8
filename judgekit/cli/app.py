"""The command line: one typer app, one file a group of commands.

Commands import what they need inside themselves, so that `--help` stays quick.
"""

import sys

import typer

from judgekit.cli import (
    cache,
    calibrating,
    comparing,
    configs,
    data,
    drift,
    probing,
    rejudging,
    reports,
    runs,
    scoring,
    stored,
)

app = typer.Typer(
    name="judgekit",
    help="Judge RAG and question-answering systems: deterministic metrics beside LLM judges treated as instruments.",
    epilog="First run, offline and without a key:  judgekit quickstart",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
runs.register(app)
rejudging.register(app)
stored.register(app)
drift.register(app)
reports.register(app)
calibrating.register(app)
probing.register(app)
scoring.register(app)
configs.register(app)
cache.register(app)
comparing.register(app)
data.register(app)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", "-V", help="Print the version and exit.", is_eager=True),
) -> None:
    """Judge RAG and question-answering systems: deterministic metrics beside LLM judges treated as instruments."""
    if version:
        from judgekit import __version__

        typer.echo(f"judgekit {__version__}")
        raise typer.Exit


def run_app() -> None:
    """Run the app; whatever the console's encoding cannot show is replaced and never an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app()
