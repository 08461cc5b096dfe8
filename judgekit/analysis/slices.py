"""Which slices a case belongs to."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError, did_you_mean

MOST_VALUES = 200
"""A dimension with more values than this is a listing rather than a slicing."""

DIMENSIONS = ("category", "difficulty", "lang", "tags", "vaults", "answerable", "recency_conflict_rule")
_NAMES = (*DIMENSIONS, "metadata.<name>")


def check_dimensions(dimensions: Sequence[str]) -> None:
    """Refuse a dimension that no case can have.

    Raises:
        ConfigError: names the nearest known dimension.
    """
    for name in dimensions:
        if not _is_dimension(name):
            raise ConfigError(f"slices: no dimension {name!r}{did_you_mean(name, _NAMES)}")


def check_cluster_field(name: str | None, cases: Iterable[Case]) -> None:
    """Refuse a field to cluster by that no case has, or of which a case has several values.

    Raises:
        ConfigError: names the field, and the nearest known one or the case.
    """
    if name is None:
        return
    if not _is_dimension(name):
        raise ConfigError(f"cluster_by: no field {name!r}{did_you_mean(name, _NAMES)}")
    found = False
    present: dict[str, None] = {}
    for case in cases:
        n_values = len(slice_values(case, name))
        if n_values > 1:
            raise ConfigError(
                f"cluster_by: case {case.id!r} has {n_values} values of {name!r}; a case belongs to one cluster"
            )
        found = found or n_values == 1
        present.update((f"metadata.{key}", None) for key in case.metadata)
    if not found:
        present.pop(name, None)
        raise ConfigError(f"cluster_by: no case has a value of {name!r}{did_you_mean(name, present)}")


def _is_dimension(name: str) -> bool:
    return name in DIMENSIONS or name.startswith("metadata.")


class Clusters:
    """Numbers the clusters of a run; a case without a value is a cluster of its own."""

    def __init__(self, dimension: str) -> None:
        """Take the values of this dimension."""
        self._dimension = dimension
        self._numbers: dict[tuple[str, ...], int] = {}
        self._n_alone = 0

    def number(self, case: Case) -> int:
        """Number of the case's cluster: 0 and above, below 0 for cases without a value."""
        values = slice_values(case, self._dimension)
        if not values:
            self._n_alone += 1
            return -self._n_alone
        return self._numbers.setdefault(values, len(self._numbers))


def slice_values(case: Case, dimension: str) -> tuple[str, ...]:
    """The case's values of one dimension as texts; empty if it is not labelled.

    A list, such as `tags`, puts the case into several slices; null in it does not count. Other values are written as
    JSON. `metadata.a.b` goes into nested objects.
    """
    if dimension.startswith("metadata."):
        value: Any = case.metadata
        for part in dimension.split(".")[1:]:
            value = value.get(part) if isinstance(value, dict) else None
    else:
        value = getattr(case, dimension)
    if value is None:
        return ()
    items: Iterable[Any] = value if isinstance(value, list | tuple) else (value,)
    return tuple(dict.fromkeys(_text(item) for item in items if item is not None))


def _text(value: Any) -> str:
    """A value as the name of its slice; a whole number is the same however it is written."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def doc_types(case: Case) -> tuple[str, ...]:
    """File name extensions of the gold supports, such as `md`; `(none)` for a name without one."""
    return tuple(dict.fromkeys(doc_type(support.rel_path) for support in case.gold_supports))


def doc_type(rel_path: str) -> str:
    """File name extension of a path, such as `md`; `(none)` for a name without one."""
    name = rel_path.replace("\\", "/").rsplit("/", 1)[-1]
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and stem else "(none)"
