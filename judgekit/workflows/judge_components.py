"""From what a config says of a judge to the judge: a shipped or installed one, or one that is data."""

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import judgekit.judges
from judgekit.core.components import Judge, build, find, names_of, shipped_in
from judgekit.core.errors import ConfigError
from judgekit.core.familiar_names import name_hint
from judgekit.core.judge_config import JudgeConfig
from judgekit.core.judgments import CANNOT_TELL
from judgekit.core.prompts import PromptTemplate
from judgekit.core.verdict_kinds import Preference, Scale
from judgekit.judges.from_rubric import RubricJudge, rubric_judge
from judgekit.storage.prompt_files import load_prompt, prompt_versions, shipped
from judgekit.workflows.own_code import own_class

_NAME = re.compile(r"\w[\w-]{0,63}")


def load_wording(wanted: JudgeConfig, version: str, own_folders: Sequence[Path], where: str) -> PromptTemplate:
    """A wording of a judge of a config.

    Args:
        wanted: what the config says of the judge.
        version: version of the wording.
        own_folders: folders of the user's wordings.
        where: place in the config, for messages.

    Raises:
        ConfigError: there is no such judge (the nearest name is suggested) or wording.
    """
    known = names_of(judgekit.judges, Judge)
    has_file = bool(prompt_versions(wanted.name, own_folders))
    if (wanted.is_given or has_file) and not _NAME.fullmatch(wanted.name):
        raise ConfigError(
            f"{where}: {wanted.name[:80]!r} cannot name a judge; use up to 64 letters, digits, `_` and `-`"
        )
    if wanted.is_given:
        if wanted.name in known:
            raise ConfigError(
                f"{where}: {wanted.name!r} is a judge that judgekit has already; give your own another name, "
                'or leave "ask" out to use it'
            )
        return load_prompt(wanted.name, version, own_folders, wanted.rubric)
    if wanted.code is not None:
        if wanted.name in known:
            raise ConfigError(f"{where}: {wanted.name!r} is a judge that judgekit has already; rename your class")
        return load_prompt(wanted.name, version, own_folders)
    if wanted.name not in known and not has_file:
        hint = name_hint(wanted.name, [*known, *_shipped_names()])
        raise ConfigError(f'{where}: no judge called {wanted.name!r}{hint}; "ask" makes one of your own')
    return load_prompt(wanted.name, version, [*own_folders, *_beside(wanted.name, where)])


def _shipped_names() -> list[str]:
    """Judges that are shipped as files."""
    return [path.name for path in sorted(shipped("prompts").iterdir()) if path.is_dir() and path.name != "rubric"]


def _beside(name: str, where: str) -> list[Path]:
    """The folder `prompts` beside an installed judge, if it brings one."""
    if name in shipped_in(judgekit.judges, Judge) or name not in names_of(judgekit.judges, Judge):
        return []
    file = import_module(find(judgekit.judges, Judge, name, where).__module__).__file__
    folder = Path(file or "").parent / "prompts"
    return [folder] if file is not None and folder.is_dir() else []


def build_judge(wanted: JudgeConfig, prompt: PromptTemplate, where: str, code_folders: Sequence[Path]) -> Judge:
    """A judge of a config.

    Args:
        wanted: what the config says of it.
        prompt: its wording, which says what a judge that is data is.
        where: place in the config, for messages.
        code_folders: where the paths of Python files may start.

    Raises:
        ConfigError: wrong arguments, or a wording that does not fit the judge.
    """
    if wanted.code is not None:
        judge = build(own_class(wanted.code, Judge, code_folders, where), wanted.args, where)
    elif wanted.name in names_of(judgekit.judges, Judge):
        judge = build(find(judgekit.judges, Judge, wanted.name, where), wanted.args, where)
    elif not prompt.is_given:
        raise ConfigError(f'{prompt.where}: {wanted.name} is not a judge of judgekit, so its file needs "ask"')
    elif wanted.args:
        raise ConfigError(f'{where}: args are for judges in Python; {wanted.name} takes what stands beside "ask"')
    else:
        judge = rubric_judge(wanted.name, prompt.rubric)
    check_fits(judge, prompt)
    if wanted.scoring == "expected" and isinstance(judge.kind, Preference):
        raise ConfigError(f'{where}: "scoring": "expected" is for single verdicts, and a preference takes two')
    return judge if wanted.scoring == judge.scoring else judge.model_copy(update={"scoring": wanted.scoring})


def check_fits(judge: Judge, prompt: PromptTemplate) -> None:
    """Hold a wording against the judge: it must ask for the verdict that the judge reads.

    Raises:
        ConfigError: it asks for something else.
    """
    if prompt.is_given:
        if not isinstance(judge, RubricJudge):
            raise ConfigError(
                f'{prompt.where}: "ask" makes a judge of your own, and {judge.name} is one that judgekit has already; '
                "move the file to a folder with another name"
            )
        if prompt.kind != judge.kind:
            raise ConfigError(
                f"{prompt.where}: its verdicts are of another kind than those of {judge.name}, so the two cannot be "
                "compared; give it a name of its own"
            )
    stated = prompt.reply_schema.get("properties", {}).get(judge.decisive_key)
    if stated is None:
        return
    options = _stated_options(stated)
    if options is not None and options != set(judge.kind.reply_options) - {CANNOT_TELL}:
        low, high = judge.kind.bounds
        own = f"{low:g} to {high:g}" if isinstance(judge.kind, Scale) else ", ".join(judge.kind.options)
        raise ConfigError(
            f"{prompt.where}: $.reply_schema.properties.{judge.decisive_key}: {judge.name} is judged by {own}, and "
            'this asks for something else; to ask another question, make it a judge of its own with "ask" and a '
            '"scale" or "labels", under another name'
        )


def _stated_options(stated: object) -> set[str] | None:
    """What a schema lets a value be; None if it does not list it."""
    if not isinstance(stated, dict):
        return None
    if isinstance(stated.get("enum"), list):
        return {str(value) for value in stated["enum"]}
    low, high = stated.get("minimum"), stated.get("maximum")
    if isinstance(low, int) and isinstance(high, int) and 0 <= high - low <= 1000:
        return {str(value) for value in range(low, high + 1)}
    return None
