"""metrics.json read back as the figures that it was written from."""

from typing import Any

from pydantic import ValidationError

from judgekit.core.errors import JudgekitError, StorageError, first_problem
from judgekit.core.runs import CONFIG, METRICS, GateResult, Notice, RunSummary
from judgekit.core.scores import Estimate
from judgekit.storage.run_folder import RunFolder

_KNOWN = frozenset(Estimate.model_fields)
_NEEDED = frozenset(name for name, field in Estimate.model_fields.items() if field.is_required())


def read_summary(folder: RunFolder) -> RunSummary | None:
    """The figures of a run; None where it has none yet. Keys that this version does not know are left out.

    Judges come in the order of the config, which sorted keys do not keep and reports go by.

    Raises:
        StorageError: the file is damaged.
    """
    if not (folder.path / METRICS).exists():
        return None
    data = folder.read_json(METRICS)
    try:
        known = {key: _figures(value) for key, value in data.items() if key in RunSummary.model_fields}
        known["gates"] = [_only(item, GateResult.model_fields) for item in data.get("gates", ())]
        known["warnings"] = [_only(item, Notice.model_fields) for item in data.get("warnings", ())]
        order = _judges_of(folder)
        known["judges"] = _in_order(known.get("judges"), order)
        for part in ("judge_reliability", "rejudged"):
            if isinstance(known.get(part), dict) and "by_judge" in known[part]:
                known[part]["by_judge"] = _in_order(known[part]["by_judge"], order)
        return RunSummary.model_validate(known)
    except ValidationError as error:
        raise StorageError(f"{folder.path / METRICS}: damaged: {first_problem(error)}") from None
    except (AttributeError, TypeError) as error:
        raise StorageError(f"{folder.path / METRICS}: damaged: {error}") from None


def _figures(value: Any) -> Any:
    """The value with every object that is a figure made one, however deep it stands."""
    if not isinstance(value, dict):
        return value
    if value.keys() >= _NEEDED:
        return Estimate.model_validate(value if value.keys() <= _KNOWN else _only(value, _KNOWN))
    return {key: _figures(item) for key, item in value.items()}


def _judges_of(folder: RunFolder) -> list[str]:
    """Names of the judges in the order of the config; none where that cannot be told, which is no fault of figures."""
    try:
        return [str(judge["name"]) for judge in folder.read_json(CONFIG)["judges"]]
    except (JudgekitError, KeyError, TypeError):
        return []


def _in_order(by_name: Any, order: list[str]) -> Any:
    """An object with the named keys first."""
    if not isinstance(by_name, dict):
        return by_name
    return {name: by_name[name] for name in [*(name for name in order if name in by_name), *by_name]}


def _only(value: dict[str, Any], names: Any) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key in names}
