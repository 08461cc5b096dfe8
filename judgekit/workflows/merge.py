"""`judgekit merge`: complete shards put together to the run that one process would have made.

This makes the run that is carried out as any other is, by `run`: it works on the whole file, and takes over what the
shards recorded and judged. No judge is asked again. Second opinions are those of the shards too; a model is asked only
for what no shard could know: a sample that grows, verdicts older than a day, and the sample of a live system.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from judgekit.core.case_parts import id_number, shard_numbers, shard_of
from judgekit.core.cases import SystemOutput
from judgekit.core.errors import ConfigError, ProviderError, StorageError
from judgekit.core.judgments import Judgment, JudgmentKey
from judgekit.core.repeats import asked_id
from judgekit.core.runs import CONFIG, JUDGMENTS, MANIFEST, OUTPUTS, Manifest, Notices, config_changes
from judgekit.storage.run_files import damaged_line
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.shard_parts import committed_attempt
from judgekit.systems.recorded import Recorded
from judgekit.workflows.job import RunJob, resolved_config, start
from judgekit.workflows.models import Options, build_model
from judgekit.workflows.selectors import config_of, find_run, results_dir_of
from judgekit.workflows.setup import Setup, set_up

_SAME = ("limit", "sample", "sample_seed", "case_ids", "n_cases_in_file", "shard_by")
"""Of the manifest: which cases the shards share between them."""


class _OfCase(msgspec.Struct):
    """Of a line of judgments.jsonl, which case it is about."""

    case_id: str


@dataclass(frozen=True)
class Shard:
    """One complete run of a part of the cases."""

    folder: RunFolder
    manifest: Manifest
    resolved: Mapping[str, Any]
    """Its config.json, without the number of its cases."""

    @property
    def numbers(self) -> tuple[int, int]:
        """Which shard it is, of how many."""
        return shard_numbers(self.manifest.shard or "")


def open_merge(runs: Sequence[str], options: Options, config_path: Path | None = None) -> RunJob:
    """A new run in a new folder that takes over the shards.

    Args:
        runs: ids or folders of the shards, in any order.
        options: where runs are kept, and the name of the new run.
        config_path: where the config is now; left out, where the shards were made from.

    Raises:
        ConfigError: a run that is no complete shard, shards that do not belong together, a shard that is missing, or a
            config or data that have changed since.
        StorageError: a shard is damaged, or the new folder cannot be made.
    """
    notices: Notices = []
    shards = _in_order([_opened(run, options) for run in dict.fromkeys(runs)], notices)
    first = shards[0]
    path = config_path or config_of(first.folder, first.manifest)
    part = {name: getattr(first.manifest, name) for name in ("limit", "sample", "case_ids")}
    # Nothing may be left to ask; if something is, the model says that its key is missing.
    options = replace(options, needs_keys=False, **part)
    setup = set_up(path, options)
    _check_unchanged(setup, first)
    job = start(setup, replace(options, results_dir=results_dir_of(setup.config.results_dir, path, options)))
    _take(job, shards)
    job.warnings.extend(notices)
    seconds = sum(shard.manifest.wall_seconds for shard in shards)
    job.manifest = job.manifest.model_copy(update={"wall_seconds": seconds})
    return job


def take_parts(job: RunJob, folders: Iterable[RunFolder]) -> None:
    """Make a run the one that its committed parts come to; errors as of `open_merge`."""
    shards = _in_order([_shard(folder) for folder in folders], [])
    _check_unchanged(job, shards[0])
    _take(job, shards)


def _check_unchanged(setup: Setup, shard: Shard) -> None:
    changed = config_changes(shard.resolved, _comparable(resolved_config(setup)))
    if changed:
        raise ConfigError(
            f"{shard.folder.path}: cannot be merged, since {', '.join(changed)} changed in {setup.config_path} or "
            "beside it since it was judged; put the files back as they were, or judge the shards again (what is cached "
            "costs nothing)"
        )


def _take(job: RunJob, shards: Sequence[Shard]) -> None:
    models = {name: _model(shards, name) for name in job.models}
    for name, runtime in job.models.items():
        runtime.guard.go_on(models[name])
    told = [
        {"shard": shard.manifest.shard or "", "run_id": shard.manifest.run_id, "path": str(shard.folder.path.resolve())}
        for shard in shards
    ]
    job.executor = None
    job.shards = [shard.folder for shard in shards]
    job.manifest = job.manifest.model_copy(update={"shards": tuple(told), "models": models})


def _opened(run: str, options: Options) -> Shard:
    path = find_run(run, options)
    if not (path / MANIFEST).exists() and options.results_dir is not None:
        path = find_run(run, replace(options, results_dir=None))  # the merged run may be kept elsewhere
    return _shard(RunFolder.open(path))


def _shard(folder: RunFolder) -> Shard:
    manifest, path = folder.manifest(), folder.path
    if manifest.kind != "run" or manifest.shard is None:
        raise ConfigError(f"{path}: is not a shard; make one: judgekit run CONFIG --shard I/N")
    if manifest.shard_by is None:
        raise ConfigError(
            f"{path}: is a shard of an older judgekit, which took every N-th case; judge it again: judgekit run "
            f"{manifest.config_path} --shard {manifest.shard} (what is cached costs nothing)"
        )
    if manifest.status != "complete":
        raise ConfigError(
            f"{path}: shard {manifest.shard} is {manifest.status}, not complete; resume it: "
            f"judgekit run --resume {path}"
        )
    return Shard(folder, manifest, _comparable(folder.read_json(CONFIG)))


def _comparable(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """config.json without the number of cases, which is each shard's own."""
    found = dict(resolved.get("resolved", {}))
    return {**resolved, "resolved": {**found, "cases": {"sha256": found.get("cases", {}).get("sha256")}}}


def _in_order(shards: Sequence[Shard], notices: Notices) -> list[Shard]:
    """Each shard once, in order; of two committed attempts the one with the lower number, which a notice says.

    Raises:
        ConfigError: they do not belong together, or one is missing.
    """
    found: dict[int, Shard] = {}
    n_shards = shards[0].numbers[1]
    for shard in shards:
        number, n = shard.numbers
        if n != n_shards:
            raise ConfigError(
                f"{shard.folder.path}: is shard {shard.manifest.shard}, and {shards[0].folder.path} is shard "
                f"{shards[0].manifest.shard}; shards of one run have the same N"
            )
        _check_alike(shards[0], shard)
        known = found.setdefault(number, shard)
        if known.manifest.files != shard.manifest.files:
            ranks = [committed_attempt(one.folder.path) for one in (known, shard)]
            if ranks[0] is None or ranks[1] is None:
                raise ConfigError(
                    f"{known.folder.path} and {shard.folder.path} are both shard {shard.manifest.shard} and differ; "
                    "name one of them"
                )
            counts, other = (known, shard) if ranks[0] < ranks[1] else (shard, known)
            found[number] = counts
            text = f"{counts.folder.path.name} counts, {other.folder.path.name} does not: attempts of one shard"
            notices.append(("attempt_left_out", text))
    missing = [f"{number}/{n_shards}" for number in range(1, n_shards + 1) if number not in found]
    if missing:
        more = f", and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise ConfigError(
            f"shard {', '.join(missing[:5])}{more} is missing; judge it: judgekit run "
            f"{shards[0].manifest.config_path} --shard {missing[0]}, or name its run too"
        )
    return [found[number] for number in sorted(found)]


def _check_alike(one: Shard, other: Shard) -> None:
    """Refuse two shards of which one figure would mix two causes.

    Raises:
        ConfigError: says what differs.
    """
    changed = config_changes(one.resolved, other.resolved)
    changed += [name for name in _SAME if getattr(one.manifest, name) != getattr(other.manifest, name)]
    versions = [{**shard.manifest.versions, "python": ""} for shard in (one, other)]
    changed += config_changes(versions[0], versions[1], "versions")
    for name, model in one.manifest.models.items():
        now = other.manifest.models.get(name, {})
        served = [set(record.get("served_models") or ()) for record in (model, now)]
        pin = one.resolved.get("models", {}).get(name, {}).get("pin", {})
        if all(served) and not served[0] & served[1] and pin.get("on_mismatch") != "flag":
            changed.append(f"models.{name}: served as {_named(served[0])} and as {_named(served[1])}")
        builds = [record.get("build_hash") for record in (model, now)]
        if all(builds) and builds[0] != builds[1]:
            changed.append(f"models.{name}: build {builds[0]} and {builds[1]}")
    if changed:
        raise ConfigError(
            f"{one.folder.path} and {other.folder.path} cannot be merged, since they differ in {'; '.join(changed)}; "
            "judge one of them again"
        )


def _named(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _model(shards: Sequence[Shard], name: str) -> dict[str, Any]:
    """What the shards found out about a model; the counts of who served it come from their judgments."""
    found: dict[str, Any] = {}
    for record in (shard.manifest.models.get(name, {}) for shard in shards):
        found.update({key: value for key, value in record.items() if found.get(key) is None})
    return {**found, "served_models": {}, "fingerprints": {}, "upstreams": {}} if found else {}


def take_over(job: RunJob) -> None:
    """Take over the outputs of a live system, and all judgments of the shards.

    The judgments come in one step and last, so that a merge that is killed has all of them or none.

    Raises:
        StorageError: a shard does not hold what it should.
    """
    n_shards = len(job.shards)
    if not isinstance(job.system, Recorded):
        job.folder.write_lines(
            OUTPUTS, (item.model_dump_json(exclude_defaults=True).encode() for item in _outputs(job, n_shards))
        )
        records = [folder.manifest().system for folder in job.shards]
        job.manifest = job.manifest.model_copy(update={"system": _system(records)})
    job.folder.write_lines(JUDGMENTS, _judgments(job, n_shards))


def _outputs(job: RunJob, n_shards: int) -> Iterator[SystemOutput]:
    """The output of each case, in the order of the cases."""
    streams = [folder.outputs() for folder in job.shards]
    for case in job.cases:
        number = shard_of(asked_id(case), n_shards)
        output = next(streams[number - 1], None)
        if output is None or output.case_id != case.id:
            raise StorageError(
                f"{job.shards[number - 1].path / OUTPUTS}: damaged: no output of {case.id!r} in its place"
            )
        yield output


def _judgments(job: RunJob, n_shards: int) -> Iterator[bytes]:
    """Every line of the shards, one shard after the other; each case is in one of them only."""
    decode = msgspec.json.Decoder(_OfCase).decode
    homes = _homes(job, n_shards)
    for number, folder in enumerate(job.shards, start=1):
        last: str | None = None
        for place, line in folder.lines(JUDGMENTS):
            try:
                case_id = decode(line).case_id
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise damaged_line(folder.path / JUDGMENTS, place, error) from None
            if case_id != last and not _holds(homes[number - 1], id_number(case_id)):
                why = f"case {case_id!r} is not one of shard {number}/{n_shards}"
                raise damaged_line(folder.path / JUDGMENTS, place, why)
            last = case_id
            yield line.removesuffix(b"\n")


def _homes(job: RunJob, n_shards: int) -> "list[array[int]]":
    """By shard, the sorted numbers of the ids of its cases: eight bytes for each case."""
    found = [array("Q") for _ in range(n_shards)]
    for case in job.cases:
        found[shard_of(asked_id(case), n_shards) - 1].append(id_number(case.id))
    return [array("Q", sorted(numbers)) for numbers in found]


def _holds(numbers: "array[int]", number: int) -> bool:
    place = bisect_left(numbers, number)
    return place < len(numbers) and numbers[place] == number


def _system(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What manifest.json says of a live system, with the counts of all shards."""
    failures: dict[str, int] = {}
    for record in records:
        for kind, n in record.get("failures", {}).items():
            failures[kind] = failures.get(kind, 0) + n
    counts = {name: sum(record.get(name, 0) for record in records) for name in ("n_requests", "n_from_cache")}
    return {**records[0], **counts, "failures": dict(sorted(failures.items()))}


class Final(Mapping[JudgmentKey, Judgment]):
    """The judgments of shards as they count for what is asked: a call that failed on the way is not made again.

    It is as it would be at the end of a run; `--resume` asks it again, of the merged run as of any other.
    """

    def __init__(self, done: Mapping[JudgmentKey, Judgment]) -> None:
        """Take the judgments that count."""
        self._done = done

    def __getitem__(self, key: JudgmentKey) -> Judgment:
        judgment = self._done[key]
        return judgment if judgment.failure is None else judgment.model_copy(update={"failure": None})

    def __iter__(self) -> Iterator[JudgmentKey]:
        return iter(self._done)

    def __len__(self) -> int:
        return len(self._done)


def check_keys(job: RunJob, left: Iterable[str]) -> None:
    """Name the key that a second opinion needs which no shard could ask for.

    Raises:
        ProviderError: it is not set; the merged run can be resumed once it is.
    """
    options = Options(environment=job.surroundings.variables)
    for name in left:
        try:
            build_model(name, job.config.models[name], job.config_path, options, needs_key=True)
        except ConfigError as error:
            raise ProviderError(f"{error}; the spot check of the merged run has to ask it") from None
