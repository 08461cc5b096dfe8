"""What differs between two runs besides the answers, and whether a difference of their figures can be traced."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judgekit.core.comparison import Cause, CauseKind, ChunkerMatch, JudgeIdentity, RunIdentity
from judgekit.core.runs import config_changes

UNKNOWN = "unknown"

_INDEX = ("chunker_version", "embedding_model", "index_version")
_SYSTEM = (*_INDEX, "prompt_version")
_NAMES = {
    "chunker_version": "chunker",
    "embedding_model": "embedding model",
    "index_version": "index",
    "prompt_version": "system prompt",
}
_UNNAMED = ("resolved.judgekit", "resolved.cases.n", "results_dir", "name", "report", "resolved.outputs")
"""Paths of a config that say nothing about the cause of a difference."""

_NAMED_ELSEWHERE = ("judges", "models", "resolved", "metrics", "versions", "errors", "cases", "match")
_MOVES_NOTHING = ("spot_check", "slices", "seed", "prompts_dir", "indexing", "min_n", "cluster_by", "store")


def causes(a: RunIdentity, b: RunIdentity) -> tuple[Cause, ...]:
    """What differs and can move figures, what makes the runs incomparable first.

    Refused unless allowed: another data set, and of a judge that both runs have, another model (as asked for, served,
    or built), another reasoning effort, other arguments, another wording or another parser. Named only: index,
    embedding model, chunker and prompt of the system, settings of metrics, how failed cases count, the version of
    the definitions of figures, what says which answers abstain, fingerprints, temperature, other judges.
    """
    found = [*_dataset(a, b), *_judges(a, b), *_parser(a, b), *_metrics(a, b), *_versions(a, b), *_rest(a, b)]
    return tuple(sorted(found, key=lambda cause: not cause.is_refused))


def changed(a: RunIdentity, b: RunIdentity) -> tuple[str, ...]:
    """Paths at which the configs differ, and versions of the system that do."""
    versions = [f"versions.{name}" for name in _SYSTEM if a.versions.get(name) != b.versions.get(name)]
    paths = [path for path in config_changes(a.config, b.config) if not path.startswith(_UNNAMED)]
    return tuple(dict.fromkeys([*paths, *versions]))


def chunker_match(a: RunIdentity, b: RunIdentity) -> ChunkerMatch:
    """Whether chunk ids of the two mean the same, as far as they say which chunker they had."""
    first, second = (run.versions.get("chunker_version") for run in (a, b))
    if not first or not second:
        return "unknown"
    return "exact" if first == second else "fallback_doc_span"


def query_notes(found: Sequence[Cause]) -> list[str]:
    """The causes that a case's note names, in a few words each."""
    kinds = ("index", "prompt", "judge", "parser", "dataset")
    return list(dict.fromkeys(f"{_short(cause)} differs" for cause in found if cause.kind in kinds))


def _short(cause: Cause) -> str:
    if cause.kind in ("judge", "parser"):
        return cause.kind
    if cause.kind == "prompt" and cause.judges:
        return "judge prompt"
    return cause.what


def _dataset(a: RunIdentity, b: RunIdentity) -> Iterator[Cause]:
    if a.dataset_sha256 != b.dataset_sha256:
        yield Cause("dataset", "data set", _hash(a.dataset_sha256), _hash(b.dataset_sha256), is_refused=True)


def _judges(a: RunIdentity, b: RunIdentity) -> Iterator[Cause]:
    for name in a.judges:
        if name in b.judges:
            yield from _model(name, a.judges[name], b.judges[name])
            yield from _asking(name, a.judges[name], b.judges[name])
        else:
            yield Cause("config", f"judge {name}", "there", "absent")
    for name in b.judges:
        if name not in a.judges:
            yield Cause("config", f"judge {name}", "absent", "there")


def _model(name: str, a: JudgeIdentity, b: JudgeIdentity) -> Iterator[Cause]:
    """What answered: the coarsest difference stands for the finer ones."""
    if (a.provider, a.model) != (b.provider, b.model):
        first, second = a.model, b.model
        if first == second:
            first, second = f"{a.provider} {first}", f"{b.provider} {second}"
        yield _of_judge(name, "model", first, second)
    elif a.build_hash != b.build_hash and a.build_hash and b.build_hash:
        yield _of_judge(name, f"build of {a.model}", _hash(a.build_hash), _hash(b.build_hash))
    elif a.served_models and b.served_models and a.served_models != b.served_models:
        yield _of_judge(name, "served model", _listed(a.served_models), _listed(b.served_models))
    elif a.upstreams and b.upstreams and a.upstreams != b.upstreams:
        moved = _of_judge(name, "upstream of the gateway", _listed(a.upstreams), _listed(b.upstreams))
        yield replace(moved, is_refused=a.upstreams.isdisjoint(b.upstreams))
    elif a.fingerprints and b.fingerprints and a.fingerprints != b.fingerprints:
        moved = _of_judge(name, "fingerprint of the server", _listed(a.fingerprints), _listed(b.fingerprints))
        yield replace(moved, is_refused=False)


def _asking(name: str, a: JudgeIdentity, b: JudgeIdentity) -> Iterator[Cause]:
    """How it was asked, and how its verdicts count."""
    if dict(a.args) != dict(b.args):
        yield _of_judge(name, "arguments", *_unequal(a.args, b.args))
    if dict(a.request_fields) != dict(b.request_fields):
        yield _of_judge(name, "request", *_unequal(a.request_fields, b.request_fields))
    if a.temperature_accepted != b.temperature_accepted:
        first, second = ("0" if run.temperature_accepted else "the provider's" for run in (a, b))
        yield replace(_of_judge(name, "temperature", first, second), is_refused=False)
    if a.prompt_sha256 != b.prompt_sha256:
        first, second = a.prompt_version, b.prompt_version
        if first == second:
            first, second = (f"{run.prompt_version} {_hash(run.prompt_sha256)}" for run in (a, b))
        yield replace(_of_judge(name, "wording", first, second), kind="prompt")


def _of_judge(name: str, what: str, a: str, b: str) -> Cause:
    return Cause("judge", f"judge {name}: {what}", a, b, is_refused=True, judges=(name,))


def _unequal(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, str]:
    """The settings that differ, as two texts."""
    keys = [key for key in dict.fromkeys([*a, *b]) if a.get(key) != b.get(key)]
    first, second = (", ".join(f"{key} {_setting(run, key)}" for key in keys) for run in (a, b))
    return first, second


def _setting(settings: Mapping[str, Any], key: str) -> str:
    return _hash(settings.get(key)) if key.endswith("sha256") else _cut(settings.get(key))


def _parser(a: RunIdentity, b: RunIdentity) -> Iterator[Cause]:
    shared = tuple(name for name in a.judges if name in b.judges)
    if shared and a.parser_version != b.parser_version:
        first, second = (run.parser_version or UNKNOWN for run in (a, b))
        yield Cause("parser", "parser of judge replies", first, second, is_refused=True, judges=shared)


def _metrics(a: RunIdentity, b: RunIdentity) -> Iterator[Cause]:
    for name in a.metrics:
        if name in b.metrics and dict(a.metrics[name]) != dict(b.metrics[name]):
            yield Cause("metric", f"settings of {name}", *_unequal(a.metrics[name], b.metrics[name]), metrics=(name,))
    if a.errors != b.errors:
        yield Cause("metric", "how failed cases count", a.errors, b.errors)
    if a.metrics_version != b.metrics_version:
        yield Cause("metric", "definition of figures", f"version {a.metrics_version}", f"version {b.metrics_version}")
    if a.abstention and b.abstention and a.abstention != b.abstention:
        yield Cause("metric", "what says which answers abstain", a.abstention, b.abstention)


def _versions(a: RunIdentity, b: RunIdentity) -> Iterator[Cause]:
    for name in _SYSTEM:
        first, second = a.versions.get(name), b.versions.get(name)
        if first != second:
            kind: CauseKind = "index" if name in _INDEX else "prompt"
            yield Cause(kind, _NAMES[name], first or UNKNOWN, second or UNKNOWN)


def _rest(a: RunIdentity, b: RunIdentity) -> Iterator[Cause]:
    """Settings that are not named above and could move a figure."""
    for path in changed(a, b):
        if path.split(".")[0] not in _NAMED_ELSEWHERE + _MOVES_NOTHING:
            yield Cause("config", path, _cut(_at(a.config, path)), _cut(_at(b.config, path)))


def _at(config: Mapping[str, Any], path: str) -> Any:
    value: Any = config
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _hash(value: str | None) -> str:
    return UNKNOWN if value is None else value[:12]


def _listed(values: frozenset[str]) -> str:
    return ", ".join(sorted(values))


def _cut(value: Any) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
