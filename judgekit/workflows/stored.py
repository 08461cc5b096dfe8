"""Stored runs: from a run folder to everything that rejudging, checking, rescoring or comparing it needs.

The run folder is enough: it holds the config as used, cases, outputs, judge inputs, wordings and judgments. The
system under test is never asked, and the files that the config names need not be there any more.
"""

from collections.abc import Collection, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judgekit.core.components import Judge, Metric
from judgekit.core.config import ModelConfig, RunConfig
from judgekit.core.errors import CodeMissing, ConfigError, StorageError, did_you_mean, first_problem
from judgekit.core.familiar_names import name_hint
from judgekit.core.judge_config import JudgeConfig
from judgekit.core.judgments import JudgeInput
from judgekit.core.prompts import PromptTemplate
from judgekit.core.runs import CONFIG, Manifest, RunSummary
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.storage.config_files import load_config
from judgekit.storage.id_lists import stored_ids
from judgekit.storage.run_folder import RunFolder, of_judge
from judgekit.storage.run_records import read_summary
from judgekit.workflows.families import build_metrics
from judgekit.workflows.judge_components import build_judge, load_wording
from judgekit.workflows.models import Options, build_model, most_connections, with_variables
from judgekit.workflows.selectors import find_run


@dataclass(frozen=True)
class StoredRun:
    """A run folder and the config that it was made with."""

    folder: RunFolder
    manifest: Manifest
    config: RunConfig
    resolved: Mapping[str, Any]
    """Hashes of everything that the config named."""
    from_dir: Path | None = None
    """Where the Python files that the config names are, if the user says so."""

    @property
    def config_folder(self) -> Path:
        """Where relative paths of the config started; it may be gone."""
        return Path(self.manifest.config_path).parent

    @property
    def code_folders(self) -> list[Path]:
        """Where the paths of Python files may start."""
        if self.from_dir is not None:
            return [self.from_dir]
        code_dir = self.manifest.code_dir
        return [self.config_folder] if code_dir is None else [Path(code_dir)]

    def metrics(self, holds_ids: RunFolder | None = None) -> list[Metric]:
        """The metric families of the run.

        Args:
            holds_ids: the run that keeps the ids of the corpus; None: this one.

        Raises:
            ConfigError: a family is not known here, or its Python file is not there any more.
        """
        with self.says_where():
            return build_metrics(self.config, self.code_folders, stored_ids(holds_ids or self.folder))

    @contextmanager
    def says_where(self) -> Iterator[None]:
        """Say of a Python file that is gone which run needs it."""
        try:
            yield
        except CodeMissing as error:
            hint = "put it there again, or name its folder: judgekit rescore or rejudge with --from-dir"
            raise ConfigError(f"{self.folder.path}: {error}; {hint}") from None

    def judge(self, name: str) -> Judge:
        """A judge of the run, with its arguments.

        Raises:
            ConfigError: the run has no such judge.
        """
        wanted = self.judge_config(name)
        with self.says_where():
            return build_judge(wanted, self.prompt(name, wanted.prompt_version), f"judge {name}", self.code_folders)

    def judge_config(self, name: str) -> JudgeConfig:
        """What the config of the run says of a judge.

        Raises:
            ConfigError: the run has no such judge.
        """
        known = {judge.name: judge for judge in self.config.judges}
        if name not in known:
            hint = name_hint(name, known) or "; it has none"
            raise ConfigError(f"{self.folder.path}: this run has no judge {name!r}{hint}")
        return known[name]

    def named_judges(self, what: str, *names: str | None) -> list[str]:
        """Judges of the run by name, or all of them if none is named.

        Args:
            what: what is done with them, for the message.
            *names: their names; None is not a name.

        Raises:
            ConfigError: the run has no such judge, or none at all.
        """
        found = [self.judge_config(name).name for name in names if name is not None]
        found = found or [judge.name for judge in self.config.judges]
        if not found:
            raise ConfigError(f"{self.folder.path}: this run has no judges, so there is nothing to {what}")
        return found

    def prompt(self, judge: str, version: str, config_path: Path | None = None) -> PromptTemplate:
        """A wording: as the run kept it, else from the own prompts of a config, of the run, or the shipped ones.

        Args:
            judge: name of the judge.
            version: version of the wording.
            config_path: another config, whose prompts are looked into before the run's.

        Raises:
            ConfigError: no such version.
        """
        kept = self.folder.prompts().get(f"{judge}/{version}")
        if kept is not None:
            return kept
        wanted = self.judge_config(judge)
        return load_wording(wanted, version, self.prompt_folders(config_path), f"judge {judge}")

    def prompt_folders(self, config_path: Path | None = None) -> list[Path]:
        """Folders of own wordings that are there: of another config, then of the run."""
        named = [(self.config.prompts_dir, self.config_folder)]
        if config_path is not None:
            named.insert(0, (load_config(config_path).prompts_dir, config_path.resolve().parent))
        folders = [base / folder for folder, base in named if folder is not None]
        return [folder for folder in folders if folder.is_dir()]

    def check_wording(self, judge: str, prompt: PromptTemplate, only: Container[str] | None = None) -> None:
        """Render a wording for stored inputs of a judge, so that none fails once calls are made.

        The run's own wording was rendered for all of them before.

        Args:
            judge: name of the judge.
            prompt: the wording.
            only: cases that matter; None: all.

        Raises:
            ConfigError: the wording names a variable that an input lacks, or the run has no input of the judge.
        """
        is_own = prompt.sha256 == self.prompt(judge, self.judge_config(judge).prompt_version).sha256
        names: set[str] = set()
        for item in self.inputs(judge):
            if is_own:
                return
            if only is not None and item.case_id not in only:
                continue
            names |= item.variables.keys()
            try:
                prompt.render(item.variables)
            except ConfigError as error:
                raise ConfigError(
                    f"{error}; stored inputs of {judge} have {', '.join(sorted(names))} (case {item.case_id!r})"
                ) from None

    def inputs(self, judge: str) -> Iterator[JudgeInput]:
        """The stored inputs of a judge of the run, without those that are not asked about any more.

        Raises:
            ConfigError: the run has no such judge, or no input of it.
        """
        component = self.judge(judge)
        found = False
        for item in self.folder.judge_inputs(of_judge(judge)):
            found = True
            if component.not_asked(item) is None:
                yield item
        if not found:
            raise ConfigError(
                f"{self.folder.path}: holds no judge input of {judge}, so nothing can be judged again; "
                "its other figures stand in metrics.json"
            )


def open_stored(run: str, options: Options, without: str | None = None, unread: Container[str] = ()) -> StoredRun:
    """A stored run, by its folder or its id.

    Args:
        run: a run id, or the path of a run folder.
        options: where runs are kept.
        without: id of a run that `latest` leaves out.
        unread: files that may have changed, since they are written again without being read.

    Raises:
        ConfigError: there is no run, or one of a newer format.
        StorageError: its manifest or config is damaged, or a file of a complete run is not what the run wrote.
    """
    folder = RunFolder.open(find_run(run, options, without), unread=unread)
    data = folder.read_json(CONFIG)
    resolved = data.pop("resolved", {})
    try:
        config = RunConfig.model_validate(data)
    except ValidationError as error:
        raise StorageError(f"{folder.path / CONFIG}: damaged: {first_problem(error)}") from None
    return StoredRun(folder, folder.manifest(), config, resolved, options.from_dir)


def finished_summary(stored: StoredRun, run: str) -> RunSummary:
    """The figures of a stored run.

    Args:
        stored: the run.
        run: what the user calls it.

    Raises:
        ConfigError: it has none yet.
        StorageError: they are damaged.
    """
    summary = read_summary(stored.folder)
    if summary is None:
        raise ConfigError(f"{stored.folder.path}: has no metrics.json yet; judgekit run --resume {run} writes it")
    return summary


def models_of(stored: StoredRun, config_path: Path | None) -> dict[str, ModelConfig]:
    """The models that judges of a stored run can be asked of: the run's own, and those of another config.

    Raises:
        ConfigError: the other config cannot be read.
    """
    return {**stored.config.models, **({} if config_path is None else load_config(config_path).models)}


def stored_models(
    stored: StoredRun, config_path: Path | None, names: Collection[str], options: Options
) -> dict[str, ModelRuntime]:
    """Some of the models of `models_of`, ready to be asked side by side.

    Raises:
        ConfigError: no model of that name, or its key is missing.
    """
    models = models_of(stored, config_path)
    options = with_variables(replace(options, most_connections=most_connections(len(names))), config_path)
    for name in sorted(names):
        if name not in models:
            raise ConfigError(f"no model {name!r}{did_you_mean(name, models)}; add others by --config")
    place = Path(stored.manifest.config_path)
    return {
        name: build_model(name, models[name], place, options, needs_key=options.needs_keys) for name in sorted(names)
    }
