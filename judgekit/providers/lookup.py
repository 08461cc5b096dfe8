"""Finding a provider by its name in a config, without importing the others."""

import importlib
from importlib.metadata import entry_points
from pathlib import Path

from judgekit.core.errors import ConfigError, did_you_mean
from judgekit.core.protocols import Provider


def provider_class_of(name: str, where: str) -> type[Provider]:
    """The provider class of a file in judgekit/providers, or of an entry point.

    Raises:
        ConfigError: no such provider.
    """
    folder = Path(__file__).parent
    if name.isidentifier() and (folder / f"{name}.py").is_file():
        module = importlib.import_module(f"judgekit.providers.{name}")
        for value in vars(module).values():
            if _is_provider(value, module.__name__):
                return value  # type: ignore[no-any-return]
    installed = {entry.name: entry for entry in entry_points(group="judgekit.providers")}
    if name in installed:
        return installed[name].load()  # type: ignore[no-any-return]
    known = {*installed}
    for path in folder.glob("*.py"):
        module = importlib.import_module(f"judgekit.providers.{path.stem}")
        if any(_is_provider(value, module.__name__) for value in vars(module).values()):
            known.add(path.stem)
    raise ConfigError(f"{where}: no provider called {name!r}{did_you_mean(name, known)}")


def _is_provider(value: object, module: str) -> bool:
    return isinstance(value, type) and issubclass(value, Provider) and value.__module__ == module and value.selectable
