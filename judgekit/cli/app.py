"""The command line: one typer app, one file a group of commands.

Commands import what they need inside themselves, so that `--help` stays quick.
"""

import os
import sys
import traceback

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
from judgekit.cli.outcome import give_up_output, heed_polite_kills, say_error

app = typer.Typer(
    name="judgekit",
    help="Judge RAG and question-answering systems: deterministic metrics beside LLM judges treated as instruments.",
    epilog="\b\nFirst run, offline and without a key:  judgekit quickstart\n\n"
    "Exit codes: 0 done, 1 a gate was missed or drift found, 2 something to mend, 3 the provider refuses, 4 storage, "
    "130 interrupted.",
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
    """Run the app; whatever the console's encoding cannot show is replaced and never an error.

    A stream that is closed is one that nobody reads; one that cannot be written, such as a file on a full disk, is
    exit code 4; one whose reader leaves early ends the command without a word, as it does any tool.
    """
    heed_polite_kills()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except SystemExit as end:
        # Click makes exit code 1 of it, which says that a gate was missed.
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(give_up_output())
        raise
    except BrokenPipeError:
        sys.exit(give_up_output())
    except OSError as error:
        if "--debug" in sys.argv:
            traceback.print_exc()
        # What is left in the buffer cannot be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        say_error(f"{error.filename or 'standard output'}: cannot be written: {error.strerror or error}")
        from judgekit.core.errors import StorageError

        sys.exit(StorageError.exit_code)
