"""Python files that a config names: loaded by their path, each by itself."""

import ast
import hashlib
import importlib.util
import sys
import traceback
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from judgekit.core.data_files import CodeName
from judgekit.core.errors import CodeMissing, ConfigError, did_you_mean


def load_code(name: CodeName, folders: tuple[Path, ...], where: str) -> tuple[Any, str, str]:
    """What a name of a file stands for.

    The folder of the file is not put on the path, so that nothing in it can take the place of another module, and the
    hash is that of all code that is not installed.

    Args:
        name: path and name.
        folders: where a relative path may start; the first that has the file counts.
        where: place in the config, for messages.

    Returns:
        The object, the hash of the file, and its place in it as `path:line`.

    Raises:
        CodeMissing: there is no such file.
        ConfigError: there is no such name in it, or it cannot be loaded.
    """
    places = [folder / name.path for folder in folders]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise CodeMissing(f"{where}: no file {name.path} (looked for {', '.join(map(str, places))})")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{where}: {path}: cannot be read: {error.strerror or error}") from None
    module = _module(path.resolve(), source, where)
    if name.name not in vars(module):
        own = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise ConfigError(f"{where}: {path} has no {name.name!r}{did_you_mean(name.name, own)}")
    line = next((node.lineno for node in ast.parse(source).body if name.name in _names(node)), 1)
    return getattr(module, name.name), hashlib.sha256(source).hexdigest(), f"{path}:{line}"


def _names(node: ast.stmt) -> set[str]:
    """What a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}


@cache
def _module(path: Path, source: bytes, where: str) -> ModuleType:
    """The module of a file, under a name that no other has; it is loaded once while it does not change."""
    unique = hashlib.sha256(str(path).encode("utf-8", "surrogateescape") + source).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(f"judgekit_file_{unique}", path)
    if spec is None:
        raise ConfigError(f"{where}: {path}: not a file of Python; its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # data classes and annotations look for their module there
    try:
        code = compile(source, str(path), "exec")
        with redirect_stdout(sys.stderr):  # what is printed must not come between the lines of --json
            exec(code, vars(module))  # noqa: S102  # the config names the file, to be executed; hashed and run are the same bytes
    except SyntaxError as error:
        del sys.modules[module.__name__]
        raise ConfigError(f"{where}: {path}:{error.lineno or 1}: not valid Python: {error.msg}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  # importing runs the user's own code
        del sys.modules[module.__name__]
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        hint = ""
        if isinstance(error, ModuleNotFoundError):
            hint = "; a file may import what is installed or on PYTHONPATH, and not the files beside it"
        raise ConfigError(f"{where}: {path}:{lines[-1] if lines else 1}: {what}{hint}") from None
    return module
