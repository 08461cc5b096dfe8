"""How many verdicts a check is about, as users write it: a number, or a share of them."""

import math
import re
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

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
