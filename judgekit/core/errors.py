"""The errors that reach a user, and the exit code of each.

    JudgekitError
    ├── ConfigError      2   config, prompts, flags: something the user wrote
    │   ├── CodeMissing  2   a Python file that the config names is not there
    │   └── InputError   2   cases and outputs: names file, line and JSON path
    ├── ProviderError    3   the provider refuses for good: key, model, quota, pin
    ├── StorageError     4   disk full, folder not writable, damaged run
    │   └── RunBusy      4   another process writes this run
    └── Interrupted    130   stopped by the user or a budget; the run can be resumed

Failures of single calls are not here: they are recorded as `JudgeFailure` and never raised to a user.
"""

import difflib
from collections.abc import Iterable

from pydantic import ValidationError


class JudgekitError(Exception):
    """Base: one line that says what, where and the next step."""

    exit_code = 1


class ConfigError(JudgekitError):
    """The user can mend it in a file or a flag; found before any call, or by the first where a server has to say it."""

    exit_code = 2


class CodeMissing(ConfigError):
    """There is no such Python file."""


class InputError(ConfigError):
    """Cases or outputs cannot be read; may hold several lines, one for each place."""


class ProviderError(JudgekitError):
    """The provider refuses for good, so that going on would only repeat the refusal."""

    exit_code = 3


class StorageError(JudgekitError):
    """A file could not be written or read back."""

    exit_code = 4


class RunBusy(StorageError):
    """Another process writes this run, or wrote it since it was read; nothing of it was touched."""


class Interrupted(JudgekitError):
    """The run stopped early and can be resumed."""

    exit_code = 130


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A tail for an error message: the nearest known word, or all of them if none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(names)}" if names else ""


def json_path(location: Iterable[str | int]) -> str:
    """`$.models.judge.pin[0]` for a pydantic error location."""
    path = "$"
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path


def first_problem(error: ValidationError) -> str:
    """The first problem of a pydantic error as one line: path, then what was expected."""
    detail = error.errors(include_url=False)[0]
    message = detail["msg"].removeprefix("Value error, ")
    return f"{json_path(detail['loc'])}: {message[:1].lower()}{message[1:]}"
