"""Names with dots, such as `gold.answers`, that lead into nested objects."""

from collections.abc import Mapping
from typing import Any

ABSENT = object()
"""Stands for a value that is not there; None is a value."""


def look_up(data: Mapping[str, Any], dotted: str) -> Any:
    """The value under a name, taken as a whole first and then part by part; `ABSENT` where there is none."""
    if dotted in data:
        return data[dotted]
    value: Any = data
    for part in dotted.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return ABSENT
        value = value[part]
    return value
