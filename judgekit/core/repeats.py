"""Several answers to one case: each is a case of its own, and `metadata.repeat_of` says what it repeats."""

import re
from collections.abc import Collection, Iterator

from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError

REPEAT_OF = "repeat_of"
"""In a case's metadata: the id of the case that it repeats, its own if it is the first."""

REPEATS_TOGETHER = f"metadata.{REPEAT_OF}"
"""What cases with several answers are clustered by, unless the config says otherwise."""

ALL_PASS, ANY_PASSES = "pass^", "pass@"
"""Figures of several answers: `NAME.pass^3`, all of 3 answers pass; `NAME.pass@3`, at least one of 3 does."""

_OF_ANSWERS = re.compile(r"(.+)\.pass[\^@](\d+)")


def check_repeats(cases: Collection[Case], n: int) -> None:
    """Refuse to ask about each case several times if the answers could not be told apart.

    Args:
        cases: the cases of the file.
        n: answers for each.

    Raises:
        ConfigError: the cases hold repeats already, or an id is one that a repeat would have.
    """
    ids = {case.id for case in cases}
    for case in cases:
        if REPEAT_OF in case.metadata:
            raise ConfigError(f"repeats: case {case.id!r} has metadata.{REPEAT_OF} already; leave `repeats` out")
        taken = next((own for own in _ids(case, n)[1:] if own in ids), None)
        if taken is not None:
            raise ConfigError(f"repeats: {taken!r} is the id of a case, and of a repeat of {case.id!r}; rename it")


def answers_to(case: Case, n: int) -> Iterator[Case]:
    """A case as often as it is asked: `q1`, `q1#2`, `q1#3`.

    Args:
        case: a case of the file.
        n: answers, more than 1.
    """
    for own in _ids(case, n):
        yield case.model_copy(update={"id": own, "metadata": {**case.metadata, REPEAT_OF: case.id}})


def _ids(case: Case, n: int) -> list[str]:
    return [case.id, *(f"{case.id}#{number}" for number in range(2, n + 1))]


def asked_id(case: Case) -> str:
    """The id of the case that a case is an answer to: its own, unless it is a repeat."""
    return str(case.metadata.get(REPEAT_OF, case.id))


def pass_figure(name: str) -> tuple[str, int] | None:
    """Of the name of a figure of several answers what passes, and how many are drawn; None of any other name."""
    found = _OF_ANSWERS.fullmatch(name)
    return None if found is None else (found[1], int(found[2]))
