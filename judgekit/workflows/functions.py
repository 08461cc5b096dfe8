"""Python functions that a config names, such as a comparator of the user's own."""

import importlib
from collections.abc import Callable
from typing import Any

from judgekit.core.components import Metric
from judgekit.core.errors import ConfigError
from judgekit.metrics.extraction import Extraction


def with_functions(metric: Metric, where: str) -> Metric:
    """The family with the functions loaded that its arguments name.

    Raises:
        ConfigError: one cannot be loaded.
    """
    if isinstance(metric, Extraction) and metric.function_names:
        loaded = {name: load_function(name, f"{where} ({metric.name})") for name in metric.function_names}
        return metric.with_functions(loaded)
    return metric


def load_function(name: str, where: str) -> Callable[..., Any]:
    """The function `package.module:function`.

    Raises:
        ConfigError: no such module or function, or the module cannot be imported.
    """
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:  # noqa: BLE001  # importing runs the user's own code
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        hint = "; install it or put its folder on PYTHONPATH" if isinstance(error, ModuleNotFoundError) else ""
        raise ConfigError(f"{where}: {name} cannot be loaded: {what}{hint}") from None
    if not callable(found):
        raise ConfigError(f"{where}: {name} is no function")
    return found  # type: ignore[no-any-return]
