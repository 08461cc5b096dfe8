"""metrics.json read back as the figures that it was written from."""

from typing import Any

from pydantic import ValidationError

from judgekit.core.errors import StorageError, first_problem
from judgekit.core.runs import METRICS, GateResult, Notice, RunSummary
from judgekit.core.scores import Estimate
from judgekit.storage.run_folder import RunFolder

_KNOWN = frozenset(Estimate.model_fields)
_NEEDED = frozenset(name for name, field in Estimate.model_fields.items() if field.is_required())


def read_summary(folder: RunFolder) -> RunSummary | None:
    """The figures of a run; None where it has none yet. Keys that this version does not know are left out.

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


def _only(value: dict[str, Any], names: Any) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key in names}
