"""Tables as Parquet files. pyarrow is imported only here and only when one is written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from judgekit.core.errors import ConfigError, StorageError
from judgekit.core.text import clean_text
from judgekit.storage.run_folder import RunFolder

_BATCH = 500
"""Rows of a row group: what is held in memory at a time."""


def write_parquet(path: Path, columns: Mapping[str, type], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table row group by row group; the old file stays until the new one is complete.

    Args:
        path: the file.
        columns: names in order, each `str` or `float`.
        rows: one value a column; None: no value.

    Raises:
        ConfigError: pyarrow is not installed.
        StorageError: it cannot be written.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ConfigError(
            "writing Parquet needs pyarrow: pip install 'judgekit[parquet]' (or pip install pyarrow)"
        ) from None
    schema = pa.schema(
        [(clean_text(name), pa.float64() if kind is float else pa.string()) for name, kind in columns.items()]
    )
    try:
        with RunFolder(path.parent).replacing(path.name) as stream, pq.ParquetWriter(stream, schema) as writer:
            for batch in _batches(rows):
                cells = [[_plain(row[place]) for row in batch] for place in range(len(schema))]
                arrays = [pa.array(values, field.type) for values, field in zip(cells, schema, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
    except pa.ArrowException as error:
        raise StorageError(f"{path}: cannot be written: {error}") from None


def _plain(value: Any) -> Any:
    return clean_text(value) if isinstance(value, str) else value


def _batches(rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    stream = iter(rows)
    while batch := list(islice(stream, _BATCH)):
        yield batch
