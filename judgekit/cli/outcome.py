"""How a command ends: one line for each thing that is wrong, and the exit code that belongs to it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def reported(*, debug: bool, resume_hint: str | None = None) -> Iterator[None]:
    """Turn errors into lines on stderr and exit codes; with `debug`, tracebacks too.

    Args:
        debug: show tracebacks.
        resume_hint: said after an interruption, such as the command that goes on.
    """
    from judgekit.core.errors import JudgekitError

    try:
        yield
    except JudgekitError as error:
        if debug:
            raise
        say_error(str(error))
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        say_error("interrupted" + (f"; {resume_hint}" if resume_hint else ""))
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to say, and Python must not say it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None


def heed_polite_kills() -> None:
    """Take a polite kill as an interruption like Ctrl-C: what is there is kept, and nothing half-written stays."""
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))


def say_error(text: str) -> None:
    """Each line of an error on stderr, without control characters."""
    from judgekit.reports.figures import printable

    for line in text.splitlines() or [""]:
        typer.echo(f"judgekit: error: {printable(line)}", err=True)


def say(text: str) -> None:
    """A line on stderr that is not an error."""
    from judgekit.reports.figures import printable

    typer.echo(printable(text), err=True)
