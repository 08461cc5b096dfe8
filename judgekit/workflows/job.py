"""A run in its folder: what it works on, and how far it has come."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import judgekit
from judgekit.core.errors import ConfigError
from judgekit.core.prompts import PromptTemplate
from judgekit.core.protocols import Lease, ReplyCache
from judgekit.core.runs import Manifest, RunSummary
from judgekit.core.spot_checks import SpotCheckRecord
from judgekit.core.text import canonical_sha256
from judgekit.judges.parsing import PARSER_VERSION
from judgekit.storage.config_files import commit_of
from judgekit.storage.run_folder import RunFolder, new_run_id
from judgekit.systems.recorded import Recorded
from judgekit.workflows.case_scores import Unjudged
from judgekit.workflows.models import Options, open_cache
from judgekit.workflows.selectors import results_dir_of
from judgekit.workflows.setup import Setup


@dataclass(frozen=True)
class Reopened:
    """What a complete run was before it is resumed."""

    manifest: Manifest
    summary: RunSummary
    open: frozenset[tuple[str, str]]
    """(judge, case id) of what is asked again."""


@dataclass(kw_only=True)
class RunJob(Setup):
    """A setup and the folder that its run is written to."""

    folder: RunFolder
    resolved: Mapping[str, Any]
    """config.json: the config as used, with hashes of prompts and data."""
    manifest: Manifest
    cache: ReplyCache | None
    now: Callable[[], datetime]
    found: Manifest | None = None
    """The manifest that a resumed run was found with; None for a new run."""
    reopened: Reopened | None = None
    """A complete run that is resumed, since some of its calls failed on the way; None for any other."""

    parent: RunFolder | None = None
    """The run whose stored inputs are judged again; None for a run of its own."""
    shards: Sequence[RunFolder] = ()
    """The complete runs whose outputs and judgments this one takes over, in the order of the shards; else none."""
    kept: frozenset[str] = frozenset()
    """Judges whose judgments are copied from the parent, and which are not asked."""
    unchanged: frozenset[str] = frozenset()
    """Judges of a rejudge that are asked as the parent asked them: the same model and wording."""
    carried: Sequence[SpotCheckRecord] = ()
    """Spot checks of the parent that hold here as well: their second opinions are about the same inputs."""
    kept_prompts: Mapping[str, PromptTemplate] = field(default_factory=dict)
    """Wordings of the parent, kept beside those in use."""

    lease: Lease | None = None
    """Its slices of a budget that several processes share."""

    is_begun: bool = False
    """Everything was checked, so the folder holds a run that can be resumed."""
    is_prepared: bool = False
    """All that is judged is on disk."""
    unjudged: Unjudged = field(default_factory=dict)
    spot_check_records: list[SpotCheckRecord] = field(default_factory=list)
    """Spot checks, those that the folder holds already and the run's own."""

    @property
    def cases_sha256(self) -> str | None:
        """SHA-256 of the file of cases; None in a rejudge of a run that did not keep it."""
        found: str | None = self.resolved["resolved"].get("cases", {}).get("sha256")
        return found


def start(setup: Setup, options: Options, compared: Sequence[dict[str, str]] = ()) -> RunJob:
    """A new run in a new folder.

    Args:
        setup: what it works on.
        options: where runs are kept, and the name of the new run.
        compared: the runs that it compares, if it does.

    Raises:
        ConfigError: the run id is taken, or is not a name of a folder.
        StorageError: the folder cannot be made.
    """
    now = options.now()
    config, path = setup.config, setup.config_path
    suffix = f"-shard{options.shard.replace('/', 'of')}" if options.shard else ""
    run_id = options.run_id or new_run_id(config.name, now) + suffix
    if not run_id.replace("-", "").replace("_", "").replace(".", "").isalnum() or run_id.startswith("."):
        raise ConfigError(f"--run-id {run_id!r}: expected letters, digits, '.', '_' and '-'")
    resolved = resolved_config(setup)
    manifest = Manifest(
        run_id=run_id,
        name=config.name,
        kind="prefer" if compared else "run",
        compared=tuple(compared),
        status="running",
        created_at=now.isoformat(timespec="milliseconds"),
        config_path=str(path.resolve()),
        config_sha256=canonical_sha256(resolved),
        n_cases_in_file=setup.n_cases_in_file,
        **setup.part.record(),
        shard_by=None if setup.part.shard is None else "id",
        versions=versions(),
        commit_hash=commit_of(path.resolve().parent),
    )
    folder = RunFolder.create(results_dir_of(config.results_dir, path, options), run_id)
    return job_of(setup, folder, manifest, resolved, options)


def job_of(
    setup: Setup,
    folder: RunFolder,
    manifest: Manifest,
    resolved: Mapping[str, Any],
    options: Options,
    found: Manifest | None = None,
) -> RunJob:
    """The run of a setup in a folder that is there, with the reply cache beside it."""
    is_kept = not isinstance(setup.system, Recorded) and setup.system.version is not None
    cache, notices = open_cache(options.cache_dir or folder.path.parent, setup.models, options, for_outputs=is_kept)
    known = vars(setup) | {"warnings": [*setup.warnings, *notices]}
    return RunJob(
        **known, folder=folder, resolved=resolved, manifest=manifest, cache=cache, now=options.now, found=found
    )


def resolved_config(setup: Setup) -> dict[str, Any]:
    """config.json: the config as used, and hashes of everything that it names."""
    plans = [*setup.judges, *(plan.second for plan in setup.spot_checks)]
    config, corpus = setup.config, setup.corpus_chunk_ids
    in_a_file = None if corpus is None else {"corpus_chunk_ids"}  # one of the run's own
    resolved = {
        **setup.files,
        "prompts": {f"{plan.judge.name}/{plan.prompt.version}": plan.prompt.sha256 for plan in plans},
        "judges": {plan.judge.name: plan.judge.settings() for plan in setup.judges},
        "verdict_kinds": {plan.judge.name: plan.judge.kind.model_dump(mode="json") for plan in setup.judges},
        "metrics": {metric.name: metric.settings(in_a_file) for metric in setup.metrics},
        "judgekit": judgekit.__version__,
        "parser_version": PARSER_VERSION,
    }
    if corpus is not None:
        resolved["corpus_chunk_ids"] = {"sha256": canonical_sha256(sorted(corpus)), "n": len(corpus)}
    document = config.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not isinstance(setup.system, Recorded):
        document["system"] = setup.system.settings()
    return {**document, "resolved": resolved}


def versions() -> dict[str, str]:
    """What a run is made with, for its manifest."""
    return {"judgekit": judgekit.__version__, "python": platform.python_version(), "parser": str(PARSER_VERSION)}
