"""Spot checks of a run: how many verdicts are drawn, who is asked, and where the answers stand."""

import math
import re
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, WithJsonSchema

from judgekit.core.scores import Frozen

CHECKS = "checks.json"
"""File of the run folder that lists the spot checks of a run, oldest first."""

RUN_SPOT_CHECK = "run"
"""`check` of the second opinion that `judgekit run` asks for; spot checks that are added to the run are numbered."""

RUN_REPEAT = "again"
"""`check` of the judgments for which `judgekit run` asks the same judge again about verdicts older than a day."""

RUN_SPOT_CHECKS = frozenset({RUN_SPOT_CHECK, RUN_REPEAT})
"""The spot checks that a run makes itself."""

DESIGN = "simple random sample without replacement"

SpotCheckKind = Literal["model", "prompt", "model and prompt", "repeat"]
"""How the second opinion differs from the judge: by its model, its wording, both, or not at all."""


class SpotCheckRecord(Frozen):
    """One spot check of one judge: an entry of checks.json."""

    check: str
    """Its name; judgments of it carry the same in `check`."""
    judge: str
    kind: SpotCheckKind
    model_id: str
    """Key of the second model in the config."""
    model: str
    prompt_version: str
    prompt_sha256: str
    seed: int
    n_population: int
    """Judge inputs of this judge that the sample was drawn from."""
    case_ids: tuple[str, ...]
    """The sample, in the order in which it is listed."""
    threshold: float
    adaptive: bool = False
    """The sample grew until the spot check was decided; `n_start` and `seed` say what it grew from."""
    n_start: int = 0
    """Cases asked for; an adaptive spot check begins with these."""
    complete: bool = False
    """Every case of the sample was asked; others are left out of the figures."""

    @property
    def comparator(self) -> tuple[str, str, str, str]:
        """What was compared with what: of two spot checks with the same, the later one counts."""
        return self.judge, self.kind, self.model_id, self.prompt_sha256


_SHARE = re.compile(r"(100(\.0+)?|\d{1,2}(\.\d+)?)%")


def _is_sample_size(value: int | str) -> int | str:
    is_share = isinstance(value, str) and _SHARE.fullmatch(value) is not None and value.strip("0.%") != ""
    if not (is_share or (isinstance(value, int) and value >= 1)):
        raise ValueError('expected a whole number from 1, or a share such as "5%"')
    return value


SampleSize = Annotated[
    int | str,
    AfterValidator(_is_sample_size),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": f"^{_SHARE.pattern}$"}]}
    ),
]
"""How many verdicts are checked: a number, or a share of them such as `5%`."""


def sample_size(wanted: int | str, n_population: int) -> int:
    """The number of verdicts that a `SampleSize` means; a share is rounded up, and is at least one.

    Args:
        wanted: a number, or a share such as `5%`.
        n_population: verdicts that there are to draw from.
    """
    if isinstance(wanted, int):
        return wanted
    return max(1, math.ceil(Decimal(wanted.removesuffix("%")) * n_population / 100))
