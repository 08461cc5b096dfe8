"""Cases, outputs and configs that are in memory, as the files of a run: so a run from Python is a run like any other.

They are written beside the runs, in a folder named by the hash of what it holds, where a resume finds them again.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.config import RunConfig
from judgekit.core.data_files import CODE, DataFile
from judgekit.core.errors import ConfigError, InputError
from judgekit.storage.case_files import Intake, record_of
from judgekit.storage.field_mapping import FieldMapping
from judgekit.storage.rows import Row
from judgekit.storage.run_files import disk_faults_named, replacing

INPUTS = ".inputs"
"""Stands beside the runs of a results folder."""

M = TypeVar("M", Case, SystemOutput)

_DATA = ("cases", "corpus_chunk_ids", "indexing")


def write_inputs(
    results_dir: Path,
    config: Mapping[str, Any],
    cases: Iterable[Case],
    outputs: Iterable[SystemOutput] | None,
) -> Path:
    """Write cases, outputs and a config that names them, and give the path of the config.

    Args:
        results_dir: the folder of runs.
        config: keys of a config but for `cases`, and for `system` if there are outputs.
        cases: the cases.
        outputs: their outputs; None if a live system is asked.

    Raises:
        StorageError: they cannot be written.
    """
    files = {"cases.jsonl": _lines(cases)}
    if outputs is not None:
        files["outputs.jsonl"] = _lines(outputs)
    document = {"cases": "cases.jsonl", **config}
    if outputs is not None:
        document["system"] = {"name": "recorded", "path": "outputs.jsonl"}
    files["config.json"] = json.dumps(document, indent=2, ensure_ascii=False).encode()
    return _written(results_dir, files) / "config.json"


def write_config(results_dir: Path, config: Mapping[str, Any] | RunConfig, base: Path) -> Path:
    """Write a config whose relative paths start at `base`, and give its path.

    Raises:
        ConfigError: it is not JSON.
        StorageError: it cannot be written.
    """
    if isinstance(config, RunConfig):
        config = config.model_dump(mode="json", by_alias=True, exclude_unset=True)
    try:
        text = json.dumps(anchored(dict(config), base.resolve()), indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"config: not JSON: {error}") from None
    return _written(results_dir, {"config.json": text.encode()}) / "config.json"


def anchored(config: dict[str, Any], base: Path) -> dict[str, Any]:
    """The config with absolute paths."""
    for key in _DATA:
        config[key] = _data(config[key], base) if key in config else None
    if isinstance(config.get("system"), Mapping) and config["system"].get("name", "recorded") == "recorded":
        config["system"] = _data(config["system"], base)
    elif isinstance(config.get("system"), Mapping) and "call" in config["system"]:
        config["system"] = {**config["system"], "call": str(base / config["system"]["call"])}
    for key in ("prompts_dir", "results_dir"):
        if isinstance(config.get(key), str):
            config[key] = str(base / config[key])
    for key in ("judges", "metrics"):
        if isinstance(config.get(key), list | tuple):
            config[key] = [_component(item, base) for item in config[key]]
    return {key: value for key, value in config.items() if value is not None}


def _data(value: Any, base: Path) -> Any:
    if isinstance(value, str):
        return str(base / value)
    if isinstance(value, Mapping) and isinstance(value.get("path"), str):
        return {**value, "path": str(base / value["path"])}
    return value


def _component(value: Any, base: Path) -> Any:
    if isinstance(value, str):
        return f"{CODE}{base / value.removeprefix(CODE)}" if value.startswith(CODE) else value
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return {**value, "name": _component(value["name"], base)}
    return value


def _lines(records: Iterable[Case | SystemOutput]) -> bytes:
    return b"".join(record.model_dump_json(exclude_defaults=True).encode() + b"\n" for record in records)


def _written(results_dir: Path, files: Mapping[str, bytes]) -> Path:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    folder = results_dir / INPUTS / digest.hexdigest()[:16]
    with disk_faults_named(folder, "cannot be created"):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if not (folder / name).exists():
            with replacing(folder / name) as stream:
                stream.write(content)
    return folder


def records_of(data: Any, model: type[M], fields: Mapping[str, str]) -> list[M]:
    """The cases or outputs in a list or frame.

    Args:
        data: `Case` or `SystemOutput` objects, mappings with their fields, or a frame with a row for each.
        model: which of the two.
        fields: our field name -> name in the data, as for a file.

    Raises:
        InputError: one line for each thing that is wrong, which names the place in the list.
    """
    what = "cases" if model is Case else "outputs"
    mapping = FieldMapping(DataFile(path=what, fields=dict(fields)), model)
    intake = Intake(DataFile(path=what), Path(what), "id" if model is Case else "case_id")
    found = []
    for number, item in enumerate(rows_of(data, what)):
        row = Row(0, f"[{number}]", dict(item) if isinstance(item, Mapping) else None, _problem(item, model))
        record: Any = item if isinstance(item, model) else record_of(row, mapping, model)
        key = None if isinstance(record, list) else record.id if isinstance(record, Case) else record.case_id
        made = intake.take(row, record if key is None else (key, record))
        if made is not None:
            found.append(made)
    intake.close(mapping.unmatched())
    if not found:
        raise InputError(f"{what}: there are none")
    return found


def _problem(item: Any, model: type[M]) -> str | None:
    if isinstance(item, Mapping | model):
        return None
    return f"expected a mapping or a {model.__name__}, found {type(item).__name__} {item!r:.40}"


def rows_of(data: Any, what: str) -> Iterator[Any]:
    """The rows of a list or frame.

    Raises:
        InputError: it is neither, or a frame has a column twice.
    """
    if isinstance(data, str | bytes | Mapping):
        raise InputError(
            f"{what}: expected a list or a frame, found {type(data).__name__}; a file goes to judgekit.run"
        )
    if hasattr(data, "iter_rows"):  # polars
        yield from data.iter_rows(named=True)
    elif hasattr(data, "to_batches"):  # pyarrow
        _check_columns(list(data.column_names), what)
        for batch in data.to_batches():
            yield from batch.to_pylist()
    elif hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas
        names = [str(name) for name in data.columns]
        _check_columns(names, what)
        columns = [data.iloc[:, place].tolist() for place in range(len(names))]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))
    elif isinstance(data, Iterable):
        yield from data
    else:
        raise InputError(f"{what}: expected a list or a frame, found {type(data).__name__}")


def _check_columns(names: list[str], what: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{what}: the frame has the column {twice!r} twice; rename one of them")
