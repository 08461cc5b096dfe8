"""Who is asked for a second opinion on a judge."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import judgekit.providers
from judgekit.core.components import find
from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError
from judgekit.core.judge_config import JudgeConfig
from judgekit.core.prompts import PromptTemplate
from judgekit.core.protocols import Provider
from judgekit.storage.prompt_files import prompt_versions, wordings_of
from judgekit.workflows.stored import StoredRun

_REPEAT = "; --against repeat asks it again, which says how repeatable it is"


@dataclass(frozen=True)
class SpotCheckWanted:
    """What the command line says of a spot check."""

    judge: str | None = None
    """Only this judge; None: every judge of the run."""
    n: int | str | None = None
    """How many verdicts, or a share of them such as `5%`."""
    seed: int | None = None
    against: str | None = None
    """`model:ID`, `prompt:VERSION` or `repeat`; None: the best that there is."""
    threshold: float | None = None
    adaptive: bool = False
    config_path: Path | None = None
    """Another config, for models and wordings that the run's config does not have."""


@dataclass(frozen=True)
class Setting:
    """What the spot checks of all judges share."""

    stored: StoredRun
    wanted: SpotCheckWanted
    models: Mapping[str, ModelConfig]

    def primary(self, judge: str) -> tuple[JudgeConfig, PromptTemplate]:
        """A judge as the run asked it, and its wording."""
        config = self.stored.judge_config(judge)
        return config, self.stored.prompt(judge, config.prompt_version)


@dataclass(frozen=True)
class Comparator:
    """Who is asked for the second opinion on a judge."""

    model_id: str
    prompt: PromptTemplate


def comparator_of(setting: Setting, judge: str) -> Comparator:
    """Who gives the second opinion on a judge.

    Raises:
        ConfigError: no such model or wording, or it is the judge itself.
    """
    against = setting.wanted.against
    primary, own = setting.primary(judge)
    if against is None:
        return _default(setting, judge)
    kind, _, name = against.partition(":")
    if kind == "model" and name:
        if name in primary.asked:
            hint = _REPEAT if primary.model is not None else ""
            raise ConfigError(f"--against {against}: {judge} was judged by this model itself{hint}")
        return Comparator(name, own)
    if primary.model is None:
        raise ConfigError(
            f"--against {against}: {judge} is a panel; check it against a model outside it: --against model:ID"
        )
    if against == "repeat":
        return Comparator(primary.model, own)
    if kind == "prompt" and name:
        prompt = setting.stored.prompt(judge, name, setting.wanted.config_path)
        if prompt.sha256 == own.sha256:
            raise ConfigError(f"--against {against}: {judge} was judged with this wording itself{_REPEAT}")
        return Comparator(primary.model, prompt)
    raise ConfigError(f"--against {against!r}: expected model:ID, prompt:VERSION or repeat")


def _default(setting: Setting, judge: str) -> Comparator:
    """As the config says; else another wording; else another model; else the judge again."""
    stored, models = setting.stored, setting.models
    primary, own = setting.primary(judge)
    configured = stored.config.spot_check
    if configured is not None and configured.judge in (None, judge):
        model = configured.model or primary.model
        prompt = own if configured.prompt_version is None else stored.prompt(judge, configured.prompt_version)
        if model is not None and (configured.repeat or (model, prompt.sha256) != (primary.model, own.sha256)):
            return Comparator(model, prompt)
    # An embedded judge does not read instructions, so another wording would agree by construction.
    if primary.model is not None and _provider(models, primary.model).is_llm:
        variant = _other_wording(setting, judge, own)
        if variant is not None:
            return Comparator(primary.model, variant)
    own_models = [models[name] for name in primary.asked]
    for name, other in models.items():
        plays = _provider(models, name).judges
        if name not in primary.asked and other not in own_models and (plays is None or judge in plays):
            return Comparator(name, own)
    if primary.model is None:
        raise ConfigError(
            f"{judge} is a panel, and no model outside it is there to check it against; add one by --config"
        )
    return Comparator(primary.model, own)


def _provider(models: Mapping[str, ModelConfig], name: str) -> type[Provider]:
    return find(judgekit.providers, Provider, models[name].provider, f"models.{name}.provider")


def _other_wording(setting: Setting, judge: str, own: PromptTemplate) -> PromptTemplate | None:
    """A wording that the run kept, else the last by name in the prompt folders; first one that reasons like its own."""
    stored, config_path = setting.stored, setting.wanted.config_path
    kept = [prompt for prompt in stored.folder.prompts().values() if prompt.judge == judge]
    family = wordings_of(judge, stored.judge_config(judge))
    versions = set(prompt_versions(family, stored.prompt_folders(config_path)))
    for version in sorted(versions - {prompt.version for prompt in kept}, reverse=True):
        kept.append(stored.prompt(judge, version, config_path))
    others = [prompt for prompt in kept if prompt.sha256 != own.sha256]
    return min(others, key=lambda prompt: _reasons(prompt) != _reasons(own), default=None)


def _reasons(prompt: PromptTemplate) -> bool:
    """Whether a wording asks for a reasoning, without which a verdict is another one."""
    return "reasoning" in prompt.reply_schema.get("properties", {})


def note_of(setting: Setting, judge: str, comparator: Comparator) -> str | None:
    """What to say if a judge is asked again although nobody wanted that: nobody else is there."""
    primary, own = setting.primary(judge)
    configured = setting.stored.config.spot_check
    is_wanted = configured is not None and configured.repeat and configured.judge in (None, judge)
    is_itself = (comparator.model_id, comparator.prompt.sha256) == (primary.model, own.sha256)
    if not is_itself or is_wanted or setting.wanted.against is not None:
        return None
    reads = _provider(setting.models, comparator.model_id).is_llm
    lacks, wording = (
        ("other wording of it and no other model", f"a wording, <prompts_dir>/{judge}/NAME.toml, or ")
        if reads
        else ("other model", "")
    )
    return (
        f"{judge}: no {lacks} is there, so it is asked again itself, which says how repeatable it is and not how "
        f"far to trust it; for a second opinion add {wording}a model, to the config or to one that --config names"
    )
