"""A plain function of case and output as a metric family."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, ClassVar, TypeVar

from pydantic import PrivateAttr, create_model

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Component, Metric
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome, Outcomes

F = TypeVar("F", bound=Callable[..., Any])

_BOUNDS = "judgekit_bounds"
_NO_VALUE = NotApplicable("the function gives no value")
MOST_KEYS = 100
"""Keys that the mappings of one function may have; more, and they are surely something of the case."""


def bounds(low: float = -math.inf, high: float = math.inf, *, higher_is_better: bool = True) -> Callable[[F], F]:
    """Say the range and direction of what a function gives: `@bounds(0, 60, higher_is_better=False)`.

    With a range, a run can say what failed cases would make of the mean, and count them as the worst.

    Args:
        low: smallest number possible.
        high: largest number possible; a number outside is a failure of its case.
        higher_is_better: direction.

    Raises:
        TypeError: one of the ends is not a number, as when the parentheses are missing.
        ValueError: there is nothing between them.
    """
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high)):
        raise TypeError("bounds takes two numbers, such as @bounds(0, 60)")
    if not low < high:
        raise ValueError(f"bounds({low}, {high}): the first must be below the second")

    def mark(function: F) -> F:
        setattr(function, _BOUNDS, (float(low), float(high), higher_is_better))
        return function

    return mark


class FunctionMetric(Metric):
    """What a function says of each case.

    Yes or no gives the share of yes, a number the mean, None "not applicable", and a mapping a figure `NAME.KEY` for
    each of its keys. Range and direction are those of `bounds`; without it the range is open, and higher is better. An
    output that is an error is a failure, and the function is not called. What it raises, and what is none of the
    above, is a failure of the case.

    Source: in-house.
    """

    selectable: ClassVar[bool] = False
    has_open_columns: ClassVar[bool] = True
    function: ClassVar[Callable[..., Any]]

    _columns: tuple[Column, ...] | None = PrivateAttr(None)
    _found: Mapping[str, Outcomes | Exception] = PrivateAttr({})

    def columns(self) -> tuple[Column, ...]:
        """One column of an open range until the cases are seen."""
        return self._columns or (self._column(self.name, binary=False),)

    def settled(self, pairs: Iterable[tuple[Case, SystemOutput]]) -> "FunctionMetric":
        """The same with every case calculated, which says what the columns are."""
        found: dict[str, Outcomes | Exception] = {}
        binary: dict[str, bool] = {}
        for case, output in pairs:
            try:
                values = self._values(case, output)
                if len(binary.keys() | values.keys()) > MOST_KEYS:
                    raise ValueError(f"its mappings have more than {MOST_KEYS} keys")
            except Exception as error:  # noqa: BLE001  # the user's own code; whoever asks for the case gets it
                found[case.id] = error
                continue
            for name, value in values.items():
                if value is not None:
                    binary[name] = binary.get(name, True) and isinstance(value, bool)
            found[case.id] = {name: _NO_VALUE if value is None else float(value) for name, value in values.items()}
            if output.error is not None:
                found[case.id] = {self.name: Failed(output.error.kind)}
        names = binary or {self.name: False}
        settled = self.model_copy()
        settled._columns = tuple(self._column(name, binary=is_binary) for name, is_binary in names.items())
        settled._found = found
        return settled

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        """What the function said of the case; it is called first if it was not yet."""
        if self._columns is None:
            return self.settled([(case, output)]).calculate(case, output)
        found = self._found[case.id]
        if isinstance(found, Exception):
            raise found
        missing: Outcome = _NO_VALUE if output.error is None else Failed(output.error.kind)
        return {column.name: found.get(column.name, missing) for column in self._columns}

    def _column(self, name: str, *, binary: bool) -> Column:
        low, high, higher_is_better = getattr(type(self).function, _BOUNDS, (-math.inf, math.inf, True))
        if binary:
            low, high = 0.0, 1.0
        return Column(name, low, high, higher_is_better=higher_is_better, binary=binary)

    def _values(self, case: Case, output: SystemOutput) -> dict[str, bool | float | None]:
        """By score name, what the function gives; nothing of an output that is an error.

        Raises:
            Exception: of the function, or what it gives is no score.
        """
        if output.error is not None:
            return {}
        arguments = {name: getattr(self, name) for name in type(self).model_fields}
        given = type(self).function(case, output, **arguments)
        if not isinstance(given, Mapping):
            return {self.name: self._value(given, "")}
        for key in given:
            if not (isinstance(key, str) and key.isprintable() and key.strip() == key and 0 < len(key) <= 64):
                raise TypeError(f"a key is a short text, found {key!r:.80}")
        return {f"{self.name}.{key}": self._value(value, f" for {key!r}") for key, value in given.items()}

    def _value(self, given: Any, where: str) -> bool | float | None:
        value = given.item() if hasattr(given, "item") else given  # a number of numpy or torch
        if value is None or isinstance(value, bool):
            return value
        if not isinstance(value, int | float):
            what = "a coroutine; write it without async" if inspect.isawaitable(value) else type(value).__name__
            raise TypeError(f"expected true or false, a number, None or a mapping{where}, found {what}")
        low, high, _ = getattr(type(self).function, _BOUNDS, (-math.inf, math.inf, True))
        if not math.isfinite(value) or not low <= value <= high:
            raise ValueError(f"expected a finite number within its bounds{where}, found {value}")
        return float(value)


def function_metric(function: Callable[..., Any], name: str) -> type[FunctionMetric]:
    """A function as a metric family; its arguments beside case and output are those of the family.

    Raises:
        ValueError: the function cannot be called with a case and an output.
    """
    if inspect.iscoroutinefunction(function):
        raise ValueError(f"{name} is async; a metric is a plain function")
    own = list(inspect.signature(function).parameters.values())
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    first, others = own[:2], own[2:]
    if len(first) < 2 or any(parameter.kind not in plain for parameter in first):
        raise ValueError(
            f"{name} takes {len(own)} arguments; a metric takes a case and an output: def {name}(case, output)"
        )
    taken: dict[str, Any] = {}
    for parameter in others:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY or hasattr(FunctionMetric, parameter.name):
            raise ValueError(f"{name}: its argument {parameter.name!r} cannot be given by a config; rename it")
        kind = Any if parameter.annotation is inspect.Parameter.empty else parameter.annotation
        taken[parameter.name] = (kind, ... if parameter.default is inspect.Parameter.empty else parameter.default)
    made = create_model(name, __base__=FunctionMetric, **taken)
    made.name = name
    made.function = staticmethod(function)
    return made


class StoredColumns(Component):
    """A family of a stored run that is known by its columns alone."""

    known: tuple[Column, ...]

    def columns(self) -> tuple[Column, ...]:
        """As the run stored them."""
        return self.known


def column_record(column: Column) -> dict[str, Any]:
    """A column as metrics.json has it; an open end is null."""
    found = asdict(column)
    return {**found, **{end: None for end in ("low", "high") if not math.isfinite(found[end])}}


def stored_columns(name: str, records: Iterable[Mapping[str, Any]]) -> StoredColumns:
    """The family of a stored run, by what metrics.json has of its columns."""
    known = {item.name for item in fields(Column)}
    columns = []
    for record in records:
        found = {key: value for key, value in record.items() if key in known}
        low = -math.inf if found["low"] is None else found["low"]
        high = math.inf if found["high"] is None else found["high"]
        columns.append(Column(**{**found, "low": low, "high": high}))
    family = type(name, (StoredColumns,), {"name": name, "__module__": __name__})
    made: StoredColumns = family(known=tuple(columns))
    return made
