"""The command line as it is run: every command, `--version`, and what goes wrong outside of commands."""

import os
import sys
import traceback

import typer

# Each of these files adds its commands to the app.
from judgekit.cli import (  # noqa: F401
    batch_commands,
    cache_commands,
    calibrate_and_label,
    judge,
    look,
    planning,
    runs_commands,
    score_commands,
    start,
    trust,
)
from judgekit.cli.commands import app, give_up_output, handle_sigterm, say_error

__all__ = ["app", "run_app"]


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
    handle_sigterm()
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
