"""What every command shares: the app, common options, one line for each error, and the exit code of each."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperGroup

if TYPE_CHECKING:
    from judgekit.workflows.models import Options

START, RUN, LOOK, TRUST, CACHE = PANELS = ("Start", "Run", "Look at runs", "Trust a judge", "Cache")
"""Headings of `judgekit --help`, in their order."""

PIPE_CLOSED = 128 + signal.SIGPIPE
"""Exit code when the reader of our output has left, as in `judgekit ... | head -1`: what a shell says of any tool."""

Run = Annotated[str, Argument(help="Run id or its beginning, folder or address, `latest`, or `latest:TAG`.")]
RunId = Annotated[str | None, Option("--run-id", help="Name of the run; default: name, time and four letters.")]
NoCache = Annotated[bool, Option("--no-cache", help="Ask every question again and store no replies.")]
OtherConfig = Annotated[
    Path | None, Option("--config", help="Another config, for models and wordings that the run's lacks.")
]
FromDir = Annotated[
    Path | None, Option("--from-dir", help="Where Python files that the config names are; default: its folder.")
]


class GroupedCommands(TyperGroup):
    """Lists commands under the headings of `PANELS`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each heading that has commands, all in the same columns."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        width = max(len(name) for name, _ in commands)
        for panel in PANELS:
            rows = [
                (name.ljust(width), found.get_short_help_str(formatter.width - 6 - width))
                for name, found in commands
                if found is not None and getattr(found, "rich_help_panel", None) == panel
            ]
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows)


app = typer.Typer(
    name="judgekit",
    cls=GroupedCommands,
    help="Judge RAG and question-answering systems: deterministic metrics beside LLM judges treated as instruments.",
    epilog="\b\nFirst run, offline and without a key:  judgekit quickstart\n\n"
    "Exit codes: 0 done, 1 a gate was missed or drift found, 2 something to correct, 3 the provider refuses, "
    "4 storage, 130 interrupted.",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@dataclass(frozen=True)
class Shared:
    """The options that most commands take; one that a command does not take has its default."""

    results_dir: Annotated[
        Path | None, Option("--results-dir", help="Folder of runs, or its address; default: results.")
    ] = None
    as_json: Annotated[bool, Option("--json", help="Print one JSON value on stdout and nothing else there.")] = False
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress.")] = False
    stats: Annotated[bool, Option("--stats", help="Print every figure, and how it was made.")] = False
    debug: Annotated[bool, Option("--debug", help="Show tracebacks.")] = False

    def options(self, **more: Any) -> "Options":
        """Options of a workflow, with the folder of runs."""
        from judgekit.workflows.models import Options

        return Options(results_dir=self.results_dir, **more)

    def show(self, document: Any, text: Callable[[], str]) -> None:
        """Print one JSON value with `--json`, else the text."""
        if self.as_json:
            print_json(document)
        else:
            typer.echo(text())


def command(
    group: typer.Typer,
    name: str,
    *,
    panel: str | None = None,
    epilog: str | None = None,
    results_dir: bool = True,
    json: bool = False,
    quiet: bool = False,
    stats: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command that takes shared options and reports its errors.

    The function gets a `Shared` first, then its own options by name. `--debug` is always there.

    Args:
        group: The app, or a group of commands in it.
        name: Name of the command.
        panel: Its heading in `judgekit --help`.
        epilog: Shown below its options.
        results_dir: Whether it takes `--results-dir`.
        json: Whether it takes `--json`.
        quiet: Whether it takes `--quiet`.
        stats: Whether it takes `--stats`, since it prints a short form.
    """
    takes = {"results_dir": results_dir, "as_json": json, "quiet": quiet, "stats": stats, "debug": True}
    shared_options = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type)
        for option in fields(Shared)
        if takes[option.name]
    ]

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own_options = list(signature(function).parameters.values())[1:]
        options = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in own_options] + shared_options

        @wraps(function)
        def run(**given: Any) -> None:
            shared = Shared(**{option.name: given.pop(option.name) for option in shared_options})
            with reported(debug=shared.debug), uploaded():
                function(shared, **given)

        run.__signature__ = Signature(options)  # type: ignore[attr-defined]
        run.__annotations__ = {option.name: option.annotation for option in options}
        group.command(name, epilog=epilog, rich_help_panel=panel)(run)
        return function

    return register


@contextmanager
def reported(*, debug: bool) -> Iterator[None]:
    """Turn errors into lines on stderr and exit codes; with `debug`, tracebacks before them."""
    from judgekit.core.errors import JudgekitError

    try:
        yield
    except JudgekitError as error:
        if debug:
            traceback.print_exc()
        say_error(str(error))
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt as interruption:
        say_error("; ".join(["interrupted", *map(str, interruption.args)]))
        raise typer.Exit(130) from None
    except BrokenPipeError:
        raise typer.Exit(give_up_output()) from None


@contextmanager
def uploaded() -> Iterator[None]:
    """Upload what a command changes in runs that are at an address."""
    from judgekit.storage.remote_uploads import uploads

    with uploads(say):
        yield


@contextmanager
def resumable(hint: str) -> Iterator[None]:
    """What to say after an interruption, such as the command that resumes the work."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(hint) from None


def give_up_output() -> int:
    """Stop writing to a reader that has left: nothing is left to say, and Python must not say it at exit either.

    Returns:
        The exit code.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a stream of a test has no number
            os.dup2(nowhere, stream.fileno())
    return PIPE_CLOSED


def handle_sigterm() -> None:
    """Take SIGTERM as an interruption like Ctrl-C: what is there is kept, and nothing half-written stays."""
    signal.signal(signal.SIGTERM, lambda *_: _interrupt())


def _interrupt() -> None:
    # A shell starts `judgekit run ... &` in a script with Ctrl-C ignored, which a kill is not to be.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.kill(os.getpid(), signal.SIGINT)


def say_error(text: str) -> None:
    """Each line of an error on stderr, without control characters."""
    from judgekit.reports.safe_text import printable
    from judgekit.storage.remote_files import with_addresses

    for line in with_addresses(text).splitlines() or [""]:
        typer.echo(f"judgekit: error: {printable(line)}", err=True)


def say(text: str) -> None:
    """A line on stderr that is not an error."""
    from judgekit.reports.safe_text import printable
    from judgekit.storage.remote_files import with_addresses

    typer.echo(printable(with_addresses(text)), err=True)


def say_notices(notices: Any) -> None:
    """Warnings on stderr, each with its code."""
    for code, message in notices:
        say(f"warning: {message} [{code}]")


def print_json(document: Any, *, indent: int | None = None) -> None:
    """JSON on stdout."""
    from judgekit.reports.safe_text import json_text

    typer.echo(json_text(document, indent=indent))


def print_figures(rich_table: Callable[..., Any], plain_text: Callable[..., str], figures: Any, **how: bool) -> None:
    """A table on stdout: coloured on a terminal, else plain text; `how`, such as `stats`, is passed to either."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(rich_table(figures, **how))
    else:
        typer.echo(plain_text(figures, **how))


def confirmed(what: str, would: str, *, yes: bool) -> bool:
    """Whether something that cannot be undone may be done: with `--yes`, or after a question on a terminal.

    Raises:
        ConfigError: Nobody can be asked; it begins with `would`.
    """
    from judgekit.core.errors import ConfigError

    if not yes and not sys.stdin.isatty():
        raise ConfigError(f"{would}; say --yes where nobody can be asked")
    return yes or typer.confirm(f"{what}?", err=True)
