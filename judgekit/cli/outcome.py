"""How a command ends: one line for each thing that is wrong, and the exit code that belongs to it."""

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer

PIPE_CLOSED = 128 + signal.SIGPIPE
"""Exit code where the reader of our output has gone, as in `judgekit ... | head -1`: what a shell says of any tool."""


@contextmanager
def reported(*, debug: bool, resume_hint: str | None = None) -> Iterator[None]:
    """Turn errors into lines on stderr and exit codes; with `debug`, tracebacks before them.

    Args:
        debug: show tracebacks; the exit codes stay.
        resume_hint: said after an interruption, such as the command that goes on.
    """
    from judgekit.core.errors import JudgekitError

    try:
        yield
    except JudgekitError as error:
        if debug:
            traceback.print_exc()
        say_error(str(error))
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        say_error("interrupted" + (f"; {resume_hint}" if resume_hint else ""))
        raise typer.Exit(130) from None
    except BrokenPipeError:
        raise typer.Exit(give_up_output()) from None


def give_up_output() -> int:
    """Stop writing to a reader that has gone: nothing is left to say, and Python must not say it at exit either.

    Returns:
        The exit code.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a stream of a test has no number
            os.dup2(nowhere, stream.fileno())
    return PIPE_CLOSED


def heed_polite_kills() -> None:
    """Take a polite kill as an interruption like Ctrl-C: what is there is kept, and nothing half-written stays."""
    signal.signal(signal.SIGTERM, lambda *_: _interrupt())


def _interrupt() -> None:
    # A shell starts `judgekit run ... &` in a script with Ctrl-C ignored, which a kill is not to be.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.kill(os.getpid(), signal.SIGINT)


def say_error(text: str) -> None:
    """Each line of an error on stderr, without control characters."""
    from judgekit.reports.safe_text import printable

    for line in text.splitlines() or [""]:
        typer.echo(f"judgekit: error: {printable(line)}", err=True)


def say(text: str) -> None:
    """A line on stderr that is not an error."""
    from judgekit.reports.safe_text import printable

    typer.echo(printable(text), err=True)


def print_json(document: Any, *, indent: int | None = None) -> None:
    """JSON on stdout."""
    from judgekit.reports.safe_text import json_text

    typer.echo(json_text(document, indent=indent))
