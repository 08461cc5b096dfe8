"""Config files: JSON first, YAML and TOML by extension; and the commit of the checkout that one stands in."""

import json
import math
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judgekit.core.config import RunConfig
from judgekit.core.errors import ConfigError, json_path
from judgekit.core.text import clean_text
from judgekit.storage.documents import CONFIG_VALUES, line_of_node, node_at, parsed_yaml
from judgekit.storage.format_names import known_formats
from judgekit.storage.problems import Location, kind_of, line_of, one_line, problems, repeated_keys

COMMENT = "$comment"
"""Key that may stand in every object and as often as one likes; what it holds is not read."""


def load_config(path: Path, left_out: Mapping[str, Any] | None = None) -> RunConfig:
    """The config in a file.

    Args:
        path: the file.
        left_out: keys that need not be there, with what they then are.

    Raises:
        ConfigError: the file is missing, is not JSON / YAML / TOML, or breaks the schema; one line for every
            problem, with file, line (not for TOML) and JSON path.
    """
    text = _text(path)
    try:
        data = _parse(text, path)
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected an object with keys such as 'name' and 'cases', found {kind_of(data)}")
    return _checked(data, left_out or {}, str(path), lambda found: _lines(found, path, text))


def config_in_memory(data: dict[str, Any]) -> RunConfig:
    """The config that a program holds as what JSON could hold.

    Raises:
        ConfigError: it breaks the schema; one line for every problem, with JSON path.
    """

    def lines(found: list[tuple[Location, str]]) -> str:
        return "\n".join(one_line(f"config: {json_path(location)}: {message}") for location, message in found)

    return _checked(data, {}, "config", lines)


def _checked(
    data: dict[str, Any], left_out: Mapping[str, Any], where: str, said: Callable[[list[tuple[Location, str]]], str]
) -> RunConfig:
    unfit: list[tuple[Location, str]] = []
    try:
        data = _plain(data, (), unfit)
    except RecursionError:
        raise ConfigError(f"{where}: nested too deeply") from None
    if unfit:
        raise ConfigError(said(unfit))
    try:
        return RunConfig.model_validate({**left_out, **data}, context={"formats": known_formats()})
    except ValidationError as error:
        raise ConfigError(said(problems(error, RunConfig))) from None


def _text(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; `judgekit init` writes a first config") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder, expected a config file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not text.strip():
        raise ConfigError(f"{path}: the file is empty; `judgekit init` writes a first config")
    return text


def _parse(text: str, path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".toml":
        import tomllib

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: not valid TOML: {error}") from None
    if suffix in (".yaml", ".yml"):
        return parsed_yaml(text, str(path), CONFIG_VALUES)[0]
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}: not valid JSON: {error.msg} (column {error.colno})") from None
    twice = [
        one_line(f"{path}:{second}: {json_path(place)}: this key is already on line {first}; delete one of them")
        for place, first, second in repeated_keys(text)
        if place[-1] != COMMENT
    ]
    if twice:
        raise ConfigError("\n".join(twice))
    return data


def _plain(value: Any, place: Location, unfit: list[tuple[Location, str]]) -> Any:
    """The data without comments; what JSON does not have (YAML and TOML know dates, all know NaN) goes to `unfit`."""
    if isinstance(value, dict):
        return {
            clean_text(key) if isinstance(key, str) else str(key): _plain(item, (*place, str(key)), unfit)
            for key, item in value.items()
            if key != COMMENT
        }
    if isinstance(value, list):
        return [_plain(item, (*place, number), unfit) for number, item in enumerate(value)]
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        unfit.append((place, f"expected a finite number, found {value}"))
    elif value is not None and not isinstance(value, bool | int | float):
        unfit.append((place, f"expected a text or a number, found a {type(value).__name__}; put it in quotes"))
    return value


def _lines(found: list[tuple[Location, str]], path: Path, text: str) -> str:
    lines = []
    for location, message in found:
        line = _line_of(text, location, path.suffix.lower())
        where = f"{path}:{line}" if line else str(path)
        lines.append(one_line(f"{where}: {json_path(location)}: {message}"))
    return "\n".join(lines)


def _line_of(text: str, location: Location, suffix: str) -> int | None:
    if suffix == ".toml":
        return None
    if suffix not in (".yaml", ".yml"):
        return line_of(text, location)
    return line_of_node(node_at(parsed_yaml(text, "", CONFIG_VALUES)[1], location))


_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_SECONDS = 5.0


def commit_of(folder: Path) -> str | None:
    """The commit that is checked out where a folder is; None outside of a checkout, and if git names none."""
    command = ["git", "-C", str(folder), "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(  # noqa: S603  # fixed words and a path
            command, capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    commit = done.stdout.strip()
    return commit if done.returncode == 0 and _COMMIT.fullmatch(commit) else None
