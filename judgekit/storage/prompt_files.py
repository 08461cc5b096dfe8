"""Prompt files, `<folder>/<judge>/<version>.toml`, and whatever else comes with judgekit."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import judgekit
from judgekit.core.errors import ConfigError, did_you_mean, json_path
from judgekit.core.prompts import PromptTemplate, schema_problem
from judgekit.core.rubric_fields import Rubric
from judgekit.storage.problems import problems

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


RUBRIC = "rubric"
"""Folder of the wordings that render judges which have none of their own."""

PREFERENCE = "preference"
"""Likewise for judges of preference; what is there is a judge of its own, too."""

_RUBRIC_VERSION = "v1"


def wordings_of(judge: str, rubric: Rubric) -> str:
    """The folder of the wordings of a judge: its own, unless a config says what the judge is."""
    if not rubric.is_given:
        return judge
    return RUBRIC if rubric.preference is None else PREFERENCE


def load_prompt(
    judge: str, version: str, own_folders: Sequence[Path] = (), rubric: Rubric | None = None
) -> PromptTemplate:
    """One wording of one judge, from the user's folders or the shipped ones.

    Args:
        judge: name of the judge.
        version: version of the wording; of a rubric, that of the shipped wording that renders it.
        own_folders: looked into first.
        rubric: what the judge is, if a config says so.

    Raises:
        ConfigError: no such folder or version (the nearest is named), or a damaged file.
    """
    if rubric is not None:
        base = _found(wordings_of(judge, rubric), version, own_folders)
        ours = {"system": base.system, "user": base.user, "verdict_alone": base.verdict_alone}
        wording = PromptTemplate(judge=judge, version=version, **ours, **rubric.fields)
        return _completed(wording, f"judge {judge}")
    return _found(judge, version, own_folders)


def _found(judge: str, version: str, own_folders: Sequence[Path]) -> PromptTemplate:
    for what, name in (("judge", judge), ("prompt_version", version)):
        if not _FILE_NAME.fullmatch(name):
            raise ConfigError(f"{what} {name!r} is not a file name; use letters, digits, '.', '_' and '-'")
    for folder in own_folders:
        if not folder.is_dir():
            raise ConfigError(f"{folder}: prompts_dir is not a folder")
    folders = [*own_folders, shipped("prompts")]
    for folder in folders:
        path = folder / judge / f"{version}.toml"
        if path.is_file():
            prompt = _read(path, judge, version)
            if folder in own_folders:
                prompt.read_from(str(path))
            return prompt
    raise ConfigError(
        f"judge {judge!r} has no prompt version {version!r} in {' or '.join(map(str, folders))}"
        f"{did_you_mean(version, prompt_versions(judge, own_folders))}"
    )


def _completed(prompt: PromptTemplate, where: str) -> PromptTemplate:
    """The wording with what it leaves to the shipped one: instructions, question, and the shape of the reply."""
    fields: dict[str, Any] = {}
    if not prompt.system and not prompt.user:
        base = _found(wordings_of(prompt.judge, prompt), _RUBRIC_VERSION, ())
        fields = {"system": base.system, "user": base.user}
    if not prompt.reply_schema:
        fields["reply_schema"] = prompt.kind.reply_schema(prompt.kind.key, alone=prompt.verdict_alone)
    prompt = prompt.model_copy(update=fields)
    try:
        prompt.check()
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return prompt


def prompt_versions(judge: str, own_folders: Sequence[Path] = ()) -> list[str]:
    """Versions of a judge's wordings that `load_prompt` finds, sorted by name."""
    folders = [*own_folders, shipped("prompts")]
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
    if prompt.is_given:
        prompt = _completed(prompt, str(path))
    elif not prompt.system or not prompt.user:
        raise ConfigError(f"{path}: $.{'user' if prompt.system else 'system'}: required, but missing")
    _check_schema(prompt, path)
    try:
        prompt.check()
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return prompt


def _check_schema(prompt: PromptTemplate, path: Path) -> None:
    try:
        _ = prompt.sha256
    except (TypeError, ValueError):
        raise ConfigError(f"{path}: $.reply_schema: holds a date, NaN or infinity, which JSON does not have") from None
    problem = None if prompt.judge == RUBRIC else schema_problem(prompt.reply_schema)
    if problem is not None:
        raise ConfigError(f"{path}: {problem}")


def shipped(name: str) -> Path:
    """Folder `prompts` or `configs`, in an installed wheel or a checkout."""
    package = Path(judgekit.__file__).parent
    installed = package / "_shipped" / name
    return installed if installed.is_dir() else package.parent / name
