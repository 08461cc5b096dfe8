"""Rows of Parquet and Arrow files, single or in a Hugging Face data set folder.

pyarrow is imported only here and only when such a file is read: `pip install 'judgekit[parquet]'` brings it.
"""

import datetime
import decimal
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.encodings import faults_named
from judgekit.storage.rows import Notices, Row, is_folder, one_part

SUFFIXES = {".parquet": "parquet", ".arrow": "arrow"}
"""Formats by extension."""

_BATCH = 1024
_SHARD = re.compile(r"-\d{5}-of-\d{5}(-[0-9a-f]{16})?$")
_PANDAS_INDEX = "__index_level_"


def rows(file: DataFile, path: Path, notices: Notices | None = None) -> Iterator[Row]:
    """The rows of a file, or of one split of a folder.

    Raises:
        InputError: pyarrow is not installed, or a file cannot be read.
    """
    ids = {"id", "case_id", "_id", *(file.fields[name] for name in ("id", "case_id") if name in file.fields)}
    in_folder = is_folder(path)
    number = -1
    floats: set[str] = set()
    for part in split_files(file, path) if in_folder else [path]:
        form = SUFFIXES.get(part.suffix.lower()) or file.format or "parquet"
        name = str(part.relative_to(path)) if in_folder else ""
        with faults_named(part, f"a {form} file"):
            for record in _records(part, form):
                number += 1
                data = {key: plain(value) for key, value in record.items() if not key.startswith(_PANDAS_INDEX)}
                for key in ids & data.keys():
                    if isinstance(data[key], float) and data[key].is_integer():
                        data[key] = int(data[key])
                        floats.add(key)
                yield Row(0, f"$[{number}]", data, file=name)
    if number < 0:
        raise InputError(f"{path}: holds no rows")
    if floats and notices is not None:
        message = f"{path.name}: column {', '.join(sorted(floats))} holds ids as floats; 7.0 is read as 7"
        notices.append(("ids_from_floats", message))


def files_of(path: Path) -> list[Path]:
    """Parquet and Arrow files of a folder, sorted; caches of the `datasets` package are left out."""
    try:
        found = [entry for entry in path.rglob("*") if entry.suffix.lower() in SUFFIXES and entry.is_file()]
    except OSError:
        return []
    return sorted(entry for entry in found if not entry.name.startswith(("cache-", "indices-", ".")))


def split_files(file: DataFile, path: Path) -> list[Path]:
    """The files of the split that is read.

    Raises:
        InputError: several splits and none named, or an index that only the `datasets` package can follow.
    """
    found = files_of(path)
    if not found:
        raise InputError(f"{path}: the folder has no .parquet or .arrow files")
    splits: dict[str, list[Path]] = {}
    for entry in found:
        splits.setdefault(_split_of(entry, path), []).append(entry)
    chosen = splits[one_part(file, path, list(splits), "split")]
    for folder in {entry.parent for entry in chosen}:
        state = folder / "state.json"
        if state.is_file() and _has_index(state):
            raise InputError(f"{folder}: a selection of rows is kept beside the data; save it after flatten_indices()")
    return chosen


def _split_of(entry: Path, root: Path) -> str:
    """`train` for `data/train-00000-of-00002.parquet`, `train/0000.parquet` and `train/data-00000-of-00001.arrow`."""
    stem = _SHARD.sub("", entry.stem)
    if stem in ("data", "dataset") or stem.isdigit():
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
        raise InputError(
            f"{path}: reading {form} needs pyarrow: pip install 'judgekit[parquet]' (or pip install pyarrow)"
        ) from None
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
