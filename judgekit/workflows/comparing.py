"""From two run folders to what a comparison works on."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgekit.analysis.joint import joint_columns
from judgekit.core.comparison import Cause, Comparison, JudgeIdentity, RunIdentity
from judgekit.core.components import Component
from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError
from judgekit.core.runs import CONFIG, MANIFEST, METRICS
from judgekit.reports.compare_page import ComparedCase, chosen_queries, render_comparison
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_index import FolderIndex
from judgekit.storage.stored_cases import ComparedRun
from judgekit.workflows.closing import INDEX_SECONDS
from judgekit.workflows.compare_job import ComparedSide, CompareJob, CompareOptions, Notices
from judgekit.workflows.models import Options
from judgekit.workflows.stored import StoredRun, open_stored

SYSTEM_VERSIONS = ("chunker_version", "embedding_model", "index_version", "prompt_version")


@contextmanager
def open_comparison(a: str, b: str, wanted: CompareOptions, options: Options) -> Iterator[CompareJob]:
    """Two stored runs, ready to be compared.

    Args:
        a: the baseline: a run id or folder; `latest` and `latest:TAG` leave the candidate out.
        b: the candidate.
        wanted: how they are compared.
        options: where runs are kept.

    Raises:
        ConfigError: there is no run, or one of a newer format.
        StorageError: a run is damaged.
    """
    with ExitStack() as files:
        candidate = open_stored(b, options)
        runs = [open_stored(a, options, without=candidate.manifest.run_id), candidate]
        sides = [_side(run, stored, files) for run, stored in zip((a, b), runs, strict=True)]
        columns = [column for side in sides for part in side.columns.values() for column in part]
        yield CompareJob(
            a=sides[0],
            b=sides[1],
            options=replace(wanted, snippets=runs[1].config.match.snippets, cluster_by=runs[1].config.cluster_by),
            advise=_adviser(a, runs[0], runs[1]),
            joint=joint_columns(columns),
            same_run=_same_run(*runs),
            shares_answers=bool(_lineage(runs[0]) & _lineage(runs[1])),
        )


def _same_run(a: StoredRun, b: StoredRun) -> str | None:
    """Why two folders hold one run; None where they hold two."""
    if a.folder.path.resolve() == b.folder.path.resolve():
        return f"a and b are one run, {b.manifest.run_id}"
    if a.manifest.run_id == b.manifest.run_id:
        return f"a and b are two copies of one run, {b.manifest.run_id}"
    first, second = ((run.created_at, run.finished_at, run.wall_seconds) for run in (a.manifest, b.manifest))
    if first == second and a.manifest.finished_at is not None:
        return f"{b.manifest.run_id} is a copy of {a.manifest.run_id} under another id: both ran at the same moment"
    return None


def _lineage(stored: StoredRun) -> set[str]:
    """Ids of the run and of the runs whose stored answers it judges again, as far as their folders are there."""
    manifest, found = stored.manifest, {stored.manifest.run_id}
    while manifest.parent is not None and manifest.parent not in found:
        found.add(manifest.parent)
        places = [Path(manifest.parent_path or manifest.parent), stored.folder.path.parent / manifest.parent]
        there = next((path for path in places if (path / MANIFEST).is_file()), None)
        if there is None:
            break
        manifest = RunFolder(there).manifest()
    return found


def _side(label: str, stored: StoredRun, files: ExitStack) -> ComparedSide:
    components, notices = _components(stored)
    metrics = stored.folder.read_json(METRICS) if (stored.folder.path / METRICS).exists() else None
    figures = None if metrics is None else {**_part(metrics, "operational"), **_part(metrics, "overall")}
    return ComparedSide(
        label=label,
        status=stored.manifest.status,
        identity=run_identity(stored, metrics),
        cases=files.enter_context(ComparedRun(stored.folder)),
        columns={name: component.columns() for name, component in components.items()},
        pooled={name: component.pooled() for name, component in components.items()},
        figures=figures,
        metrics=metrics or {},
        index=_indexer(stored.folder),
        notices=notices,
    )


def _components(stored: StoredRun) -> tuple[dict[str, Component], Notices]:
    """Metric families and judges by name; those that cannot be built here are left out, and said."""
    found: dict[str, Component] = {}
    notices = []
    builders: list[Callable[[], Sequence[Component]]] = [stored.metrics]
    builders += [lambda name=judge.name: [stored.judge(name)] for judge in stored.config.judges]  # type: ignore[misc]
    for build in builders:
        try:
            found.update({component.name: component for component in build()})
        except ConfigError as error:
            text = f"{stored.manifest.run_id}: {error}; its scores are compared by their values alone"
            notices.append(("unknown_scores", text))
    return found, notices


def run_identity(stored: StoredRun, metrics: Mapping[str, Any] | None) -> RunIdentity:
    """What a stored run was made with.

    Args:
        stored: the run.
        metrics: its metrics.json, which knows which models answered; None where it has none.
    """
    resolved, manifest = stored.resolved, stored.manifest
    parser = resolved.get("parser_version", manifest.versions.get("parser"))
    records = _part(metrics or {}, "judges")
    return RunIdentity(
        run_id=manifest.run_id,
        dataset_sha256=_part(resolved, "cases").get("sha256"),
        parser_version=None if parser is None else str(parser),
        errors=stored.config.errors,
        versions={name: manifest.versions[name] for name in SYSTEM_VERSIONS if name in manifest.versions},
        judges={judge.name: _judge(stored, judge.name, _part(records, judge.name)) for judge in stored.config.judges},
        metrics=_part(resolved, "metrics"),
        config=stored.folder.read_json(CONFIG),
        metrics_version=(metrics or {}).get("metrics_version", 1),
        abstention=_part(metrics or {}, "abstention").get("source"),
    )


def _judge(stored: StoredRun, name: str, record: Mapping[str, Any]) -> JudgeIdentity:
    wanted = stored.judge_config(name)
    models = [stored.config.models[key] for key in wanted.asked]
    seen = [_part(stored.manifest.models, key) for key in wanted.asked]
    builds = [found.get("build_hash") or model.pin.build_hash for found, model in zip(seen, models, strict=True)]
    takes = [_part(found, "capabilities").get("temperature", True) for found in seen]
    prompts = _part(stored.resolved, "prompts")
    panel = wanted.panel
    return JudgeIdentity(
        model_id=", ".join(wanted.asked),
        model=", ".join(model.model for model in models),
        provider=", ".join(model.provider for model in models),
        build_hash=_build(record, builds),
        served_models=_seen(record, seen, "served_models"),
        fingerprints=_seen(record, seen, "fingerprints"),
        prompt_version=record.get("prompt_version", wanted.prompt_version),
        prompt_sha256=record.get("prompt_sha256") or prompts.get(f"{name}/{wanted.prompt_version}", ""),
        args={
            **(_part(_part(stored.resolved, "judges"), name) or wanted.args),
            **({} if panel is None else {"rule": panel.rule, "quorum": panel.least}),
        },
        temperature_accepted=bool(record.get("temperature_accepted", all(takes))),
        upstreams=_seen(record, seen, "upstreams"),
        request_fields=_request_fields([stored.config.models[key] for key in wanted.asked]),
    )


def _request_fields(models: Sequence[ModelConfig]) -> dict[str, Any]:
    """What is set for requests beyond the usual and can change a verdict; headers say who asks, not what."""
    found: dict[str, Any] = {}
    for number, model in enumerate(models):
        fields = {name: value for name, value in model.further_fields().items() if name != "extra_headers"}
        member = f"member {number + 1} " if len(models) > 1 else ""
        found |= {f"{member}{name}": value for name, value in fields.items()}
    return found


def _build(record: Mapping[str, Any], builds: Sequence[str | None]) -> str | None:
    """The build that judged; of a panel, all of its builds, where all are known."""
    if record.get("build_hash"):
        return str(record["build_hash"])
    known = [build for build in builds if build]
    return ", ".join(known) if known and len(known) == len(builds) else None


def _seen(record: Mapping[str, Any], seen: Sequence[Mapping[str, Any]], what: str) -> frozenset[str]:
    """Served models, fingerprints or upstreams: of the judge's own replies, else of all replies of its models."""
    return frozenset(record.get(what) or [name for found in seen for name in _part(found, what)])


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = record.get(name)
    return found if isinstance(found, Mapping) else {}


def _indexer(folder: RunFolder) -> Callable[[], Notices]:
    """What writes the run's entry in the results database anew."""
    return lambda: FolderIndex(INDEX_SECONDS).put_run(folder.path)


def _adviser(label: str, a: StoredRun, b: StoredRun) -> Callable[[Sequence[Cause]], str]:
    def advise(refused: Sequence[Cause]) -> str:
        judges = dict.fromkeys(judge for cause in refused for judge in cause.judges)
        found = [_rejudge(label, a, b, judge, refused) for judge in judges]
        commands = [command for command in found if command is not None]
        parts = []
        if commands:
            text = " && ".join(_joined(commands, a))
            parts.append(f"make them comparable with: {text}, then compare the new run")
        if len(commands) < len(found) or any(cause.what.endswith(": arguments") for cause in refused):
            parts.append("panels and arguments of a judge are made alike only by running one config with the other's")
        if any(cause.kind == "dataset" for cause in refused):
            parts.append("cases that are the same in both are compared with --allow-mismatch")
        elif judges:
            parts.append("--allow-mismatch compares all the same and marks what is mixed")
        return "; ".join(parts)

    return advise


def _rejudge(label: str, a: StoredRun, b: StoredRun, judge: str, refused: Sequence[Cause]) -> tuple[str, ...] | None:
    """The judge, and the command that judges run a as run b was judged; None where no option of it does."""
    theirs, ours = b.judge_config(judge), a.judge_config(judge)
    own = [cause for cause in refused if judge in cause.judges]
    kinds = {cause.kind for cause in own}
    is_new = any(a.config.models.get(key) != b.config.models[key] for key in theirs.asked)
    command = ["judgekit", "rejudge", label]
    if theirs.asked != ours.asked or is_new:
        if theirs.model is None:
            return None
        command += ["--model", theirs.model]
    if "prompt" in kinds:
        command += ["--prompt-version", theirs.prompt_version]
    if is_new or ("prompt" in kinds and _own_wording(b, judge, theirs.prompt_version)):
        command += ["--config", b.manifest.config_path]
    if any(cause.what.endswith("served model") for cause in own):
        command.append("--no-cache")
    return None if {cause.what for cause in own} == {f"judge {judge}: arguments"} else (judge, *command)


def _own_wording(stored: StoredRun, judge: str, version: str) -> bool:
    """Whether a wording is the user's own and not one that ships."""
    own = stored.config.prompts_dir
    return own is not None and (stored.config_folder / Path(own) / judge / f"{version}.toml").exists()


def _joined(commands: Sequence[tuple[str, ...]], a: StoredRun) -> Iterator[str]:
    """Commands as they are typed; judges that are asked alike share one, and need no name where they are all."""
    by_command: dict[tuple[str, ...], list[str]] = {}
    for judge, *command in commands:
        by_command.setdefault(tuple(command), []).append(judge)
    for words, judges in by_command.items():
        named = [] if len(judges) == len(a.config.judges) else [word for name in judges for word in ("--judge", name)]
        yield shlex.join([*words[:3], *named, *words[3:]])


def compare_page(job: CompareJob, comparison: Comparison, failed: Sequence[str]) -> Iterator[str]:
    """The page of a comparison, piece by piece; the runs have to be open still.

    Raises:
        StorageError: a run is damaged.
    """

    def cases() -> Iterator[ComparedCase]:
        a, b = job.a.cases, job.b.cases
        for query in chosen_queries(comparison):
            case_id = query.query_id
            yield ComparedCase(
                query=query,
                case=b.case(case_id) or a.case(case_id),
                outputs=(a.output(case_id), b.output(case_id)),
                scores=(a.scores(case_id), b.scores(case_id)),
            )

    return render_comparison(comparison, cases(), failed)
