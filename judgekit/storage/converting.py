"""`judgekit convert`: cases and outputs of any format, written as JSONL, JSON or CSV with our field names.

What is written reads back as what was read. A CSV file cannot say everything (an absent answer and a blank one are
the same cell), so each of its rows is read back before it is written, and one that would not is refused.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from pydantic import ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, InputError
from judgekit.storage.case_files import iterate_cases, iterate_outputs
from judgekit.storage.field_mapping import FieldMapping
from judgekit.storage.record_formats import Kind
from judgekit.storage.rows import OWN_FORMATS, Notices, Row
from judgekit.storage.run_files import replacing
from judgekit.storage.table_files import FORMULA_STARTS

Record = Case | SystemOutput

_WRITTEN = {suffix: form for suffix, form in OWN_FORMATS.items() if suffix not in (".tsv", ".xlsx", ".xlsm")}
"""Formats that are written, by extension."""


@dataclass
class Written:
    """A file that was written."""

    path: Path
    kind: Kind
    n_records: int = 0
    n_formula_cells: int = 0
    """Cells of a CSV file that a spreadsheet program would run as formulas; they are left as they are."""


def convert(
    file: DataFile,
    source: Path,
    target: Path,
    kind: Literal["cases", "outputs", "both"],
    notices: Notices,
    *,
    replace: bool = False,
) -> list[Written]:
    """Write the cases or outputs of a file in our own format.

    Args:
        file: how the source is read.
        source: file or folder.
        target: `.jsonl`, `.json` or `.csv`; for both kinds a folder, which gets `cases.jsonl` and `outputs.jsonl`.
        kind: what is written.
        notices: takes (code, message) of what should be known.
        replace: whether a file that exists is replaced.

    Raises:
        ConfigError: a target that exists, or has another extension.
        InputError: the source cannot be read, or a record cannot be said in CSV.
        StorageError: the target cannot be written.
    """
    wanted: list[tuple[Kind, Path]]
    if kind == "both":
        if target.suffix:
            raise ConfigError(f"{target}: for both kinds name a folder; it gets cases.jsonl and outputs.jsonl")
        wanted = [("cases", target / "cases.jsonl"), ("outputs", target / "outputs.jsonl")]
    else:
        wanted = [(kind, target)]
    for _, path in wanted:
        if path.suffix.lower() not in _WRITTEN:
            raise ConfigError(f"{path}: expected a file that ends in {', '.join(_WRITTEN)}")
        if path.exists() and not replace:
            raise ConfigError(f"{path}: exists already; --force replaces it")
    return [_written(file, source, path, one, notices) for one, path in wanted]


def _written(file: DataFile, source: Path, target: Path, kind: Kind, notices: Notices) -> Written:
    records: Iterable[Record] = (iterate_cases if kind == "cases" else iterate_outputs)(file, source, notices)
    written = Written(target, kind)
    write: Callable[[IO[bytes], Iterable[Record], Written], None]
    write = {"jsonl": _jsonl, "json": _json, "csv": _csv}[_WRITTEN[target.suffix.lower()]]
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as stream:
        write(stream, records, written)
    return written


def _lines(records: Iterable[Record], written: Written) -> Iterator[str]:
    for record in records:
        written.n_records += 1
        yield _as_json(record.model_dump(mode="json", exclude_defaults=True), record)


def _as_json(data: Any, record: Record) -> str:
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InputError(f"{_name(record)}: holds a number that JSON does not have, such as NaN") from None


def _name(record: Record) -> str:
    return f"case {record.id!r}" if isinstance(record, Case) else f"output of case {record.case_id!r}"


def _jsonl(stream: IO[bytes], records: Iterable[Record], written: Written) -> None:
    for line in _lines(records, written):
        stream.write(line.encode("utf-8") + b"\n")


def _json(stream: IO[bytes], records: Iterable[Record], written: Written) -> None:
    stream.write(b"[")
    for number, line in enumerate(_lines(records, written)):
        stream.write((",\n" if number else "\n").encode("utf-8") + line.encode("utf-8"))
    stream.write(b"\n]\n")


def _csv(stream: IO[bytes], records: Iterable[Record], written: Written) -> None:
    kept = [(record, record.model_dump(mode="json", exclude_defaults=True)) for record in records]
    model = Case if written.kind == "cases" else SystemOutput
    used = {name for _, data in kept for name in data}
    names = [name for name in model.model_fields if name in used]
    mapping = FieldMapping(DataFile(path=written.path.name), model)
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(names)
    for record, data in kept:
        cells = {name: _cell(data.get(name), record) for name in names}
        _check_reads_back(cells, record, mapping)
        writer.writerow(cells.values())
        written.n_records += 1
        written.n_formula_cells += sum(cell.startswith(FORMULA_STARTS) for cell in cells.values())
    text.detach()


def _cell(value: Any, record: Record) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _as_json(value, record)


def _check_reads_back(cells: Mapping[str, str], record: Record, mapping: FieldMapping) -> None:
    try:
        found = type(record).model_validate(mapping.apply(Row(0, "$", dict(cells), from_csv=True)))
    except (ValidationError, ValueError):
        found = None
    if found != record:
        differing = [
            name for name in type(record).model_fields if found is None or getattr(found, name) != getattr(record, name)
        ]
        field = differing[0] if found is not None else "a field"
        raise InputError(
            f"{_name(record)}: {field} cannot be said in CSV (absent and blank are one cell); write .jsonl"
        )
