"""Where rows are stored, whatever they hold: lines, lists and tables, YAML, a folder of files, Parquet and Arrow.

pyarrow is imported only when such a file is read: the extra `parquet` brings it.
"""

import datetime
import decimal
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, InputError
from judgekit.storage.documents import DATA_VALUES, line_of_node, node_at, parsed_yaml
from judgekit.storage.encodings import faults_named
from judgekit.storage.file_series import is_series, series_files, series_folder
from judgekit.storage.format_names import formats_named
from judgekit.storage.problems import kind_of, one_part
from judgekit.storage.rows import (
    OWN_FORMATS,
    Notices,
    Origin,
    Row,
    document_rows,
    has_own_suffix,
    is_folder,
    json_problem,
    read_rows,
    read_text,
)

_COLUMNS = {".parquet": "parquet", ".arrow": "arrow"}
"""Formats by extension."""

_BATCH = 1024
_SHARD = re.compile(r"-\d{5}-of-\d{5}(-[0-9a-f]{16})?$")
_PART = re.compile(r"\d+|(part|shard)[-_.]?\d+([-_.].*)?")
"""Names of files that Spark, Dask, Arrow and others write into one folder, such as `part-00003-c1f8.snappy`."""
_PANDAS_INDEX = "__index_level_"
_NOTHING = ("NaTType", "NAType")
"""Types of what pandas writes for a missing value, beside None and NaN."""

SERIES = "several files"
"""Files that are read one after the other."""

CONTAINERS = ("yaml", "folder", "parquet", "arrow", SERIES)
"""Formats that say how rows are stored and not what they hold, beside JSONL, JSON and CSV."""


def container_of(file: DataFile, path: Path) -> str | None:
    """How the rows of a path are stored: as the config says, or by extension and content of a folder; None: unknown."""
    if is_series(path):
        return SERIES
    if file.format in OWN_FORMATS.values() or file.format in CONTAINERS:
        return file.format
    if is_folder(path) and not has_own_suffix(path):
        if _column_files(path):
            return "parquet"
        return "folder" if _holds_json_files(path) else None
    suffix = path.suffix.lower()
    if suffix in _COLUMNS:
        return _COLUMNS[suffix]
    if suffix in (".yaml", ".yml"):
        return "yaml"
    return OWN_FORMATS.get(suffix)


def container_rows(
    file: DataFile, path: Path, notices: Notices | None = None, *, lenient: bool = False
) -> Iterator[Row]:
    """The rows of a path.

    Args:
        file: how it is read.
        path: where it is.
        notices: takes what should be known.
        lenient: read a `.json` file with one object a line as what it is, and a `.txt` file as JSON.

    Raises:
        InputError: the path cannot be read, or nothing says how.
    """
    container = container_of(file, path)
    if lenient and not is_folder(path) and file.format not in OWN_FORMATS.values() and container in (None, "json"):
        return read_rows(file.model_copy(update={"format": _json_form(file, path)}), path)
    if container == SERIES:
        return _rows_of_all(file, path, notices)
    if container == "yaml":
        return _yaml_rows(file, path)
    if container == "folder":
        return _folder_rows(file, path)
    if container in ("parquet", "arrow"):
        return _column_rows(file, path, notices)
    if container is None and is_folder(path):
        raise InputError(
            f"{path}: is a folder of no known kind; known: JSON files, Parquet or Arrow files, BEIR (queries.jsonl and "
            f'qrels); or set "format" to one of {formats_named()}'
        )
    return read_rows(file, path)


def _rows_of_all(file: DataFile, path: Path, notices: Notices | None) -> Iterator[Row]:
    """The rows of several files, each with the file that it stands in; the same notice is given once."""
    folder = series_folder(path)
    said: Notices = []
    for entry in series_files(path):
        for row in container_rows(file, entry, said):
            yield replace(row, file=str(entry.relative_to(folder)))
    if notices is not None:
        notices += dict.fromkeys(said)


def _json_form(file: DataFile, path: Path) -> str:
    """Whether a file of JSON is one list or one object a line."""
    text = read_text(file, path).lstrip()
    if not text.startswith("{"):
        return "json"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return "jsonl" if error.msg == "Extra data" else "json"
    return "json"


def first_row(file: DataFile, path: Path) -> Row | None:
    """The first row of a path, also of a `.json` file with an object a line; None if it cannot be read."""
    for lenient in (False, True):
        with suppress(InputError):
            return next(container_rows(file, path, lenient=lenient), None)
    return None


def _holds_json_files(path: Path) -> bool:
    """Whether a folder holds JSON files and nothing else but hidden files."""
    try:
        entries = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    except OSError:
        return False
    return bool(entries) and all(entry.suffix.lower() == ".json" and entry.is_file() for entry in entries)


def json_files(path: Path) -> list[Path]:
    """The files that hold records, sorted by name.

    Raises:
        InputError: there is no such file, or the folder cannot be read.
    """
    with faults_named(path, "a folder"):
        found = [entry for entry in path.iterdir() if entry.suffix.lower() == ".json" and entry.is_file()]
    found = sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)
    if not found:
        raise InputError(f"{path}: the folder has no .json files")
    return found


def _folder_rows(file: DataFile, path: Path) -> Iterator[Row]:
    """One row for each file. A record without an id has the name of its file, without `.json`, as its id."""
    for entry in json_files(path):
        yield _row(file, entry)


def _row(file: DataFile, entry: Path) -> Row:
    def wrong(line: int, problem: str) -> Row:
        return Row(line, "$", None, problem, file=entry.name)

    try:
        data = json.loads(read_text(file, entry))
    except (ValueError, RecursionError) as error:
        return wrong(getattr(error, "lineno", 1), json_problem(error))
    if not isinstance(data, dict):
        return wrong(1, f"expected an object, found {kind_of(data)}; each file of the folder is one record")
    if "id" not in data and "case_id" not in data and not {"id", "case_id"} & set(file.fields):
        data = {"id": entry.stem, **data}
    return Row(1, "$", data, file=entry.name)


def _yaml_rows(file: DataFile, path: Path) -> Iterator[Row]:
    """The records of a YAML file; `query` is read as the question.

    YAML is version 1.2, so `no` and `on` are texts; a date is the text that was written.

    Raises:
        InputError: no YAML, or no list of records.
    """
    text = read_text(file, path)
    with faults_named(path, "a YAML file"):
        try:
            data, root = parsed_yaml(text, str(path), DATA_VALUES)
        except ConfigError as error:
            raise InputError(str(error)) from None
        for row in document_rows(file, _as_json(data), path):
            line = line_of_node(node_at(root, row.place)) if row.place is not None else 0
            record = row.data
            if record is not None and "query" in record and "question" not in record:
                ours = {("question" if key == "query" else key): value for key, value in record.items()}
                yield replace(row, line=line, place=None, data=ours, origin=Origin(record, {"question": "query"}))
            else:
                yield replace(row, line=line, place=None)


def _as_json(value: Any) -> Any:
    """Data as JSON could hold it."""
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | set | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value


def _column_rows(file: DataFile, path: Path, notices: Notices | None = None) -> Iterator[Row]:
    """The rows of a file, or of one split of a folder.

    Raises:
        InputError: pyarrow is not installed, or a file cannot be read.
    """
    ids = IdColumns(file)
    in_folder = is_folder(path)
    number = -1
    for part in split_files(file, path) if in_folder else [path]:
        form = _COLUMNS.get(part.suffix.lower()) or file.format or "parquet"
        name = str(part.relative_to(path)) if in_folder else ""
        with faults_named(part, f"a {form} file"):
            for record in _records(part, form):
                number += 1
                data = {key: plain(value) for key, value in record.items() if not key.startswith(_PANDAS_INDEX)}
                yield Row(0, f"$[{number}]", ids.read(data), file=name)
    if number < 0:
        raise InputError(f"{path}: holds no rows")
    if notices is not None:
        notices += ids.notices(path.name)


class IdColumns:
    """Columns of ids that hold floats, as where an id was missing once: 7.0 is read as 7."""

    def __init__(self, file: DataFile) -> None:
        """Find out from `fields` what the columns are called."""
        mapped = (file.fields[name] for name in ("id", "case_id") if name in file.fields)
        self._names = {"id", "case_id", "_id", *mapped}
        self._floats: set[str] = set()

    def read(self, data: dict[str, Any]) -> dict[str, Any]:
        """The record, with whole numbers as ids."""
        for key in self._names & data.keys():
            if isinstance(data[key], float) and data[key].is_integer():
                data[key] = int(data[key])
                self._floats.add(key)
        return data

    def notices(self, source: str) -> Notices:
        """What to say of it after the last record.

        Args:
            source: names the table.
        """
        if not self._floats:
            return []
        columns = ", ".join(sorted(self._floats))
        return [("ids_from_floats", f"{source}: column {columns} holds ids as floats; 7.0 is read as 7")]


def _column_files(path: Path) -> list[Path]:
    """Parquet and Arrow files of a folder, sorted; caches of the `datasets` package are left out."""
    try:
        found = [entry for entry in path.rglob("*") if entry.suffix.lower() in _COLUMNS and entry.is_file()]
    except OSError:
        return []
    return sorted(entry for entry in found if not entry.name.startswith(("cache-", "indices-", ".")))


def split_files(file: DataFile, path: Path) -> list[Path]:
    """The files of the split that is read.

    Raises:
        InputError: several splits and none named, or an index that only the `datasets` package can follow.
    """
    found = _column_files(path)
    if not found:
        raise InputError(f"{path}: the folder has no .parquet or .arrow files")
    splits: dict[str, list[Path]] = {}
    for entry in found:
        splits.setdefault(_split_of(entry, path), []).append(entry)
    chosen = splits[one_part(file.part, path, list(splits), "split")]
    for folder in {entry.parent for entry in chosen}:
        state = folder / "state.json"
        if state.is_file() and _has_index(state):
            raise InputError(f"{folder}: a selection of rows is kept beside the data; save it after flatten_indices()")
    return chosen


def _split_of(entry: Path, root: Path) -> str:
    """`train` for `data/train-00000-of-00002.parquet`, `train/0000.parquet` and `train/data-00000-of-00001.arrow`."""
    stem = _SHARD.sub("", entry.stem)
    if stem in ("data", "dataset") or _PART.fullmatch(stem):
        return entry.parent.name if entry.parent != root else root.name
    folders = [part for part in entry.parent.relative_to(root).parts if part != "data"]
    return "/".join([*folders, stem])


def _has_index(state: Path) -> bool:
    try:
        return bool(json.loads(state.read_bytes()).get("_indices_files"))
    except (OSError, ValueError, AttributeError):
        return False


def _records(path: Path, form: str) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow as pa
    except ImportError:
        raise InputError(f"{path}: reading {form} needs pyarrow: pip install pyarrow") from None
    try:
        for batch in _parquet_batches(path) if form == "parquet" else _arrow_batches(path):
            yield from batch.to_pylist()
    except (pa.ArrowException, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: is not a readable {form} file: {' '.join(str(error).split())[:200]}") from None


def _parquet_batches(path: Path) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as stream:
        yield from stream.iter_batches(batch_size=_BATCH)


def _arrow_batches(path: Path) -> Iterator[Any]:
    """The file format of Arrow, or its stream format, which the `datasets` package writes."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as memory:
        try:
            reader = pa.ipc.open_file(memory)
            batches: Iterator[Any] = (reader.get_batch(number) for number in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            memory.seek(0)
            batches = iter(pa.ipc.open_stream(memory))
        for batch in batches:
            for start in range(0, batch.num_rows, _BATCH):
                yield batch.slice(start, _BATCH)


def plain(value: Any) -> Any:
    """A value as JSON could hold it: numpy and Arrow scalars and arrays, dates, decimals and bytes converted.

    Bytes that are not text, such as an image, become a note of their length.
    """
    if value is None or isinstance(value, str | bool | int | float):
        item = getattr(value, "item", None)  # numpy's float64 is a float
        return item() if item is not None else value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    for method in ("tolist", "as_py"):  # numpy scalars and arrays, Arrow scalars
        if hasattr(value, method):
            return plain(getattr(value, method)())
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if type(value).__name__ in _NOTHING:
        return None
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            return f"<{len(value)} bytes>"
    return value
