"""Cases, outputs and configs that are in memory, as the files of a run: so a run from Python is a run like any other.

They are written beside the runs, in a folder named by the hash of what it holds, where a resume finds them again.
"""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from judgekit.analysis.input_mismatches import check_positions
from judgekit.api.frames import rows_of
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.collector import collector_paused
from judgekit.core.config import RunConfig
from judgekit.core.data_files import CODE, DataFile
from judgekit.core.errors import ConfigError, InputError
from judgekit.core.human_labels import LABELS
from judgekit.core.protocols import System
from judgekit.core.request_fields import public_address
from judgekit.core.runs import CASES, CONFIG, OUTPUTS, Notices
from judgekit.storage.case_files import Intake, record_of
from judgekit.storage.config_files import config_in_memory
from judgekit.storage.containers import IdColumns, plain
from judgekit.storage.dotted import field_heads
from judgekit.storage.field_mapping import FieldMapping
from judgekit.storage.id_lists import RETRIEVED_IDS
from judgekit.storage.reading import with_our_names
from judgekit.storage.record_formats import NO_ID, Source
from judgekit.storage.rows import Row
from judgekit.storage.run_files import disk_faults_named
from judgekit.systems.python import Python
from judgekit.workflows.judged_data import RECORDED, live_system

INPUTS = ".inputs"
"""Stands beside the runs of a results folder."""

M = TypeVar("M", Case, SystemOutput)
T = TypeVar("T")


@dataclass
class Given(Generic[M]):
    """The cases or outputs in a list, a dict of columns or a frame, read once."""

    data: Any
    """`Case` or `SystemOutput` objects, mappings with their fields, or a frame with a row for each."""
    model: type[M]
    fields: Mapping[str, str] = field(default_factory=dict)
    """Our field name -> name in the data, as for a file."""
    holds_both: bool = False
    """Whether a row is a case and its output."""
    notices: Notices = field(default_factory=list)
    """What is to know of them, once they are read."""
    ids: list[str] = field(default_factory=list)
    """Of the cases, in order, once they are read."""

    @property
    def what(self) -> str:
        """Names the data in messages."""
        return "outputs" if self.model is SystemOutput and not self.holds_both else "cases"

    def __iter__(self) -> Iterator[M]:
        """One record after the other; what is wrong is raised after the last good one.

        Raises:
            InputError: one line for each thing that is wrong, which names the place in the data.
        """
        items = rows_of(self.data, self.what)
        first = next(items, None)
        form = "jsonl" if isinstance(first, self.model) else None  # ours, whatever its fields look like
        file = DataFile(path=self.what, fields=self._own_fields(), format=form)
        mapping: FieldMapping = FieldMapping(file, self.model)
        source = Source(file, Path(self.what), "cases" if self.model is Case else "outputs", self.notices)
        intake = Intake(file, source.path, "id" if self.model is Case else "case_id")
        ids: IdColumns = IdColumns(file)
        with collector_paused():
            for row in with_our_names(source, self._rows(chain(() if first is None else [first], items), ids)):
                found: Any = record_of(row, mapping, self.model)
                if not isinstance(found, list):
                    self.ids.append(found.id if isinstance(found, Case) else found.case_id)
                    found = (self.ids[-1], found)
                made = intake.take(row, found)
                if made is not None:
                    yield made
        intake.close(mapping.unmatched())
        self.notices += [*ids.notices(self.what), *((code, f"{self.what}: {text}") for code, text in mapping.notices())]

    def _rows(self, items: Iterable[Any], ids: IdColumns) -> Iterator[Row]:
        left_out = self._of_the_other()
        for number, item in enumerate(items):
            place = f"[{number}]"
            record = item.model_dump(exclude_unset=True) if isinstance(item, self.model) else item
            if isinstance(record, Mapping):
                yield Row(0, place, ids.read({key: item for key, item in record.items() if key not in left_out}))
            else:
                found = f"found {type(item).__name__} {item!r:.40}"
                yield Row(0, place, None, f"expected a mapping or a {self.model.__name__}, {found}")

    def _own_fields(self) -> dict[str, str]:
        """Those of the names that are fields of a case, or of an output; what is neither is left for the error."""
        known, fields = _fields_of(self.model), dict(self.fields)
        for ours, other in (("id", "case_id"), ("case_id", "id")) if self.holds_both else ():
            if other in fields:
                fields.setdefault(ours, fields[other])
        if self.model is SystemOutput and not self.holds_both:
            known = known - {"metadata"}  # both have it, and the names are said once for both
        foreign = _fields_of(Case) | _fields_of(SystemOutput)
        return {ours: theirs for ours, theirs in fields.items() if not field_heads([ours]) & (foreign - known)}

    def _of_the_other(self) -> set[str]:
        """Names of what only the other of case and output takes, so that it is not kept twice."""
        if not self.holds_both:
            return set()
        own, other = _fields_of(self.model), _fields_of(SystemOutput if self.model is Case else Case)
        mapped = {theirs for ours, theirs in self.fields.items() if not field_heads([ours]) & own}
        return ((other - own) | mapped) - {"id", *self._own_fields().values()}


def _fields_of(model: type[BaseModel]) -> set[str]:
    return {*model.model_fields, *([RETRIEVED_IDS] if model is SystemOutput else [])}


def several(value: str | Sequence[T]) -> list[str | T]:
    """A single name as a list of one."""
    return [value] if isinstance(value, str) else list(value)


def judge_entry(judge: Any, models: Sequence[str]) -> Any:
    """A judge of a config; the only model is meant where none is named."""
    if not isinstance(judge, str | Mapping):
        return judge
    entry = {"name": judge} if isinstance(judge, str) else dict(judge)
    if len(models) == 1 and not {"model", "panel"} & entry.keys():
        entry["model"] = models[0]
    return entry


def system_entry(system: Any) -> dict[str, Any]:
    """The system of a config; of a function its name."""
    if isinstance(system, Mapping):
        return dict(system)
    if isinstance(system, System):
        return system.settings()
    if not callable(system):
        raise ConfigError(f"system: expected a function of a case, found {type(system).__name__}")
    return Python(function=system).settings()


def write_inputs(
    results_dir: Path, config: Mapping[str, Any], cases: Given[Case], outputs: Given[SystemOutput] | None, base: Path
) -> Path:
    """Write cases, outputs and a config that names them, and give the path of the config.

    Args:
        results_dir: the folder of runs.
        config: keys of a config but for `cases`, and for `system` if there are outputs.
        cases: the cases.
        outputs: their outputs; None if a live system is asked.
        base: where relative paths of the config start.

    Raises:
        ConfigError: the config cannot be used.
        InputError: something is wrong with cases or outputs.
        StorageError: they cannot be written.
    """
    recorded = {} if outputs is None else {"system": {"name": RECORDED, "path": OUTPUTS}}
    wanted = _anchored(_checked({**config, "cases": CASES, **recorded}), base.resolve())
    wanted |= {"cases": CASES, **recorded}
    with _NewFolder(results_dir) as folder:
        folder.write(CASES, _lines(cases))
        if outputs is not None:
            folder.write(OUTPUTS, _lines(outputs))
            numbered = [given.what for given in (cases, outputs) if NO_ID in dict(given.notices)]
            check_positions(cases.ids, outputs.ids, numbered, outputs.what)
        folder.write(CONFIG, [_document(wanted)])
        return folder.keep() / CONFIG


def write_config(results_dir: Path, config: Mapping[str, Any] | RunConfig, base: Path) -> Path:
    """Write a config whose relative paths start at `base`, and give its path.

    Raises:
        ConfigError: it cannot be used.
        StorageError: it cannot be written.
    """
    found = _anchored(_checked(config), base.resolve())
    with _NewFolder(results_dir) as folder:
        folder.write(CONFIG, [_document(found)])
        return folder.keep() / CONFIG


def write_labels(results_dir: Path, labels: Any) -> Path:
    """Write labels that are in memory as a file of labels, and give its path.

    Args:
        results_dir: the folder of runs.
        labels: mappings with `case_id` and what a file of labels holds beside it, or a frame with a row for each.

    Raises:
        InputError: they are neither.
        StorageError: they cannot be written.
    """
    ids = IdColumns(DataFile(path="labels"))

    def lines() -> Iterator[bytes]:
        for number, row in enumerate(rows_of(labels, "labels")):
            if not isinstance(row, dict):
                raise InputError(f"labels: [{number}]: expected a mapping, found {type(row).__name__} {row!r:.40}")
            yield json.dumps(ids.read(row), ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"

    with _NewFolder(results_dir) as folder:
        folder.write(LABELS, lines())
        return folder.keep() / LABELS


def _checked(config: Mapping[str, Any] | RunConfig) -> dict[str, Any]:
    """A config as JSON, of which nothing is written before it is known to be one without secrets."""
    document: dict[str, Any] = _as_json(config)
    found = config_in_memory(document)
    if found.system.name != RECORDED and "function" not in found.system.args:  # a function is no part of a config
        live_system(found.system)
    models = document.get("models") or {}
    addresses = {f"models.{name}.base_url": model.get("base_url") for name, model in models.items()}
    addresses["system.url"] = document["system"].get("url")
    for place, address in addresses.items():
        if isinstance(address, str) and public_address(address) != address:
            hint = "write it as ${NAME} of an environment variable"
            raise ConfigError(f"config: {place}: holds what may be a secret, which would be stored; {hint}")
    return document


def _as_json(value: Any) -> Any:
    """A part of a config as JSON, whether it is given as a mapping or as an object."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return str(value) if isinstance(value, Path) else plain(value)


def _anchored(config: dict[str, Any], base: Path) -> dict[str, Any]:
    """The config with absolute paths."""
    found = dict(config)
    for key in ("cases", "corpus_chunk_ids", "indexing", "prompts_dir", "results_dir"):
        if found.get(key) is not None:
            found[key] = _data(found[key], base)
    system = found["system"]
    if system.get("name", RECORDED) == RECORDED:
        found["system"] = _data(system, base)
    elif isinstance(system.get("call"), str):
        found["system"] = {**system, "call": str(base / system["call"])}
    elif system["name"] == "command":
        found["system"] = {"folder": str(base), **system}
    if isinstance(found.get("models"), dict):
        found["models"] = {name: _model(model, base) for name, model in found["models"].items()}
    for key in ("judges", "metrics"):
        if found.get(key) is not None:
            found[key] = [_component(item, base) for item in found[key]]
    return found


def _data(value: Any, base: Path) -> Any:
    if isinstance(value, Mapping):
        return {**value, "path": _data(value["path"], base)} if "path" in value else value
    return str(base / value) if isinstance(value, str) else value


def _model(value: Any, base: Path) -> Any:
    """A model; that of provider llama_cpp is a file."""
    if isinstance(value, dict) and value.get("provider") == "llama_cpp" and isinstance(value.get("model"), str):
        return {**value, "model": str(base / value["model"])}
    return value


def _component(value: Any, base: Path) -> Any:
    if isinstance(value, str):
        return f"{CODE}{base / value.removeprefix(CODE)}" if value.startswith(CODE) else value
    return {**value, "name": _component(value["name"], base)}


def _document(config: Mapping[str, Any]) -> bytes:
    return json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False).encode()


def _lines(records: Iterable[Case | SystemOutput]) -> Iterator[bytes]:
    return (record.model_dump_json(exclude_defaults=True).encode() + b"\n" for record in records)


class _NewFolder:
    """A folder of inputs while it is written, record by record; nothing is left of one that is not kept."""

    def __init__(self, results_dir: Path) -> None:
        self._place = results_dir / INPUTS
        self._folder = self._place / f"new-{secrets.token_hex(8)}"
        self._made = [folder for folder in (self._place, results_dir) if not folder.exists()]
        self._digest = hashlib.sha256()

    def __enter__(self) -> "_NewFolder":
        with disk_faults_named(self._place, "cannot be created"):
            self._folder.mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder.exists():
            shutil.rmtree(self._folder, ignore_errors=True)
            with suppress(OSError):
                for folder in self._made:
                    folder.rmdir()

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write a file as its pieces come.

        Raises:
            StorageError: it cannot be written.
        """
        self._digest.update(f"{name}\n".encode())
        path = self._folder / name
        with disk_faults_named(path, "cannot be written"), path.open("wb") as stream:
            for piece in pieces:
                self._digest.update(piece)
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())

    def keep(self) -> Path:
        """Name the folder by what it holds, and give its path; one that is there already holds the same."""
        kept = self._place / self._digest.hexdigest()[:16]
        with disk_faults_named(kept, "cannot be created"):
            try:
                self._folder.rename(kept)
            except OSError:
                if not kept.exists():
                    raise
        return kept
