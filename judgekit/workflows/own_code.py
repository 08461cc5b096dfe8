"""From a Python file that a config names to the metric or judge in it."""

import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from judgekit.core.components import Component, Metric
from judgekit.core.data_files import CodeName
from judgekit.core.errors import ConfigError
from judgekit.core.runs import Notices
from judgekit.metrics.functions import column_record, function_metric
from judgekit.storage.code_files import load_code

C = TypeVar("C", bound=Component)


def own_class(name: CodeName, kind: type[C], folders: Sequence[Path], where: str) -> type[C]:
    """The class of a metric or judge that a Python file holds; its name is the one behind the file's.

    Args:
        name: file and name.
        kind: Metric or Judge.
        folders: where a relative path may start.
        where: place in the config, for messages.

    Raises:
        ConfigError: there is no such file or name, or it is not what it should be.
    """
    found, sha256, place = load_code(name, tuple(folders), where)
    what = kind.__name__.lower()
    made: Any
    if isinstance(found, type) and issubclass(found, kind):
        missing = sorted(getattr(found, "__abstractmethods__", ()))
        if missing:
            raise ConfigError(f"{where}: {place}: {name.name} lacks {', '.join(missing)}, which a {what} has")
        # A class of its own, so that one that the file imports keeps its name.
        metaclass: Any = type(found)
        made = metaclass(name.name, (found,), {"name": name.name, "__module__": found.__module__})
    elif kind is Metric and callable(found) and not isinstance(found, type):
        try:
            made = function_metric(found, name.name)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{where}: {place}: {error}") from None
    else:
        also = "a function of case and output, or " if kind is Metric else ""
        is_a = "a class that extends something else" if isinstance(found, type) else f"of type {type(found).__name__}"
        raise ConfigError(
            f"{where}: {place}: {name.name} is {is_a}; expected {also}a class that extends judgekit.{kind.__name__}"
        )
    made.code_sha256 = sha256
    if inspect.iscoroutinefunction(getattr(made, "calculate", None)):
        raise ConfigError(f"{where}: {place}: {name.name}.calculate is async; a metric calculates at once")
    return made  # type: ignore[no-any-return]


def code_record(components: Iterable[Component]) -> dict[str, dict[str, Any]]:
    """What metrics.json says of the components from Python files, so that others need not execute them."""
    return {
        component.name: {
            "code_sha256": component.code_sha256,
            "columns": [column_record(column) for column in component.columns()],
        }
        for component in components
        if component.code_sha256 is not None
    }


def code_changes(components: Iterable[Component], resolved: Any) -> Notices:
    """A warning for each component whose file is not the one that a run began with."""
    found = []
    settings = {**resolved.get("metrics", {}), **resolved.get("judges", {})}
    for component in components:
        before, now = settings.get(component.name, {}).get("code_sha256"), component.code_sha256
        if now is not None and before != now:
            text = f"{component.name}: its Python file changed since the run, from {str(before)[:12]} to {now[:12]}"
            found.append(("code_changed", f"{text}; other code may give other scores"))
    return found
