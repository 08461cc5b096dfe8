"""Prompt files, `<folder>/<judge>/<version>.toml`, and whatever else comes with judgekit."""

import re
import tomllib
from pathlib import Path

from pydantic import ValidationError

import judgekit
from judgekit.core.errors import ConfigError, did_you_mean, json_path
from judgekit.core.prompts import PromptTemplate, schema_problem
from judgekit.storage.problems import problems

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def load_prompt(judge: str, version: str, own_folder: Path | None = None) -> PromptTemplate:
    """One wording of one judge, from the user's folder or the shipped ones.

    Raises:
        ConfigError: no such folder or version (the nearest is named), or a damaged file.
    """
    for what, name in (("judge", judge), ("prompt_version", version)):
        if not _FILE_NAME.fullmatch(name):
            raise ConfigError(f"{what} {name!r} is not a file name; use letters, digits, '.', '_' and '-'")
    if own_folder is not None and not own_folder.is_dir():
        raise ConfigError(f"{own_folder}: prompts_dir is not a folder")
    folders = [folder for folder in (own_folder, shipped("prompts")) if folder is not None]
    for folder in folders:
        path = folder / judge / f"{version}.toml"
        if path.is_file():
            prompt = _read(path, judge, version)
            if folder == own_folder:
                prompt.read_from(str(path))
            return prompt
    known = {path.stem for folder in folders for path in (folder / judge).glob("*.toml")}
    raise ConfigError(
        f"judge {judge!r} has no prompt version {version!r} in {' or '.join(map(str, folders))}"
        f"{did_you_mean(version, known)}"
    )


def prompt_versions(judge: str, own_folder: Path | None = None) -> list[str]:
    """Versions of a judge's wordings that `load_prompt` finds, sorted by name."""
    folders = [folder for folder in (own_folder, shipped("prompts")) if folder is not None]
    return sorted({path.stem for folder in folders for path in (folder / judge).glob("*.toml")})


def _read(path: Path, judge: str, version: str) -> PromptTemplate:
    try:
        prompt = PromptTemplate.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        lines = [f"{path}: {json_path(place)}: {message}" for place, message in problems(error, PromptTemplate)]
        raise ConfigError("\n".join(lines)) from None
    if (prompt.judge, prompt.version) != (judge, version):
        raise ConfigError(f"{path}: says it is {prompt.judge}/{prompt.version}; file name and content must agree")
    try:
        _ = prompt.sha256
    except (TypeError, ValueError):
        raise ConfigError(f"{path}: $.reply_schema: holds a date, NaN or infinity, which JSON does not have") from None
    problem = schema_problem(prompt.reply_schema)
    if problem is not None:
        raise ConfigError(f"{path}: {problem}")
    try:
        prompt.check()
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return prompt


def shipped(name: str) -> Path:
    """Folder `prompts` or `configs`, in an installed wheel or a checkout."""
    package = Path(judgekit.__file__).parent
    installed = package / "_shipped" / name
    return installed if installed.is_dir() else package.parent / name
