"""Scores of single cases as tables in files: CSV, JSONL or Parquet. pyarrow is only imported to write Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from judgekit.core.errors import ConfigError, StorageError
from judgekit.core.scores import Outcome
from judgekit.core.text import clean_text
from judgekit.metrics.ranking_columns import RankingColumns
from judgekit.storage.run_files import replacing

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""Cells that begin so are run as formulas by spreadsheet programs."""


def check_target(path: Path, *, replace: bool) -> None:
    """Hold the name of a file against what can be written.

    Raises:
        ConfigError: another extension, a file that exists, or Parquet without pyarrow.
    """
    if path.suffix.lower() not in _WRITERS:
        raise ConfigError(f"{path}: expected a file that ends in {', '.join(_WRITERS)}")
    if path.exists() and not replace:
        raise ConfigError(f"{path}: exists already; --force replaces it")
    if path.suffix.lower() == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise ConfigError(f"{path}: writing parquet needs pyarrow: pip install pyarrow") from None


def write_columns(columns: RankingColumns, path: Path) -> None:
    """Write `case_id` and every score; what is not a number is blank, or null.

    In CSV an id that a spreadsheet would run as a formula gets a `'` in front.

    Raises:
        StorageError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        _WRITERS[path.suffix.lower()](columns, stream)


def _rows(columns: RankingColumns, names: list[str]) -> Iterator[tuple[str, tuple[float | None, ...]]]:
    def cell(outcome: Outcome) -> float | None:
        return outcome if isinstance(outcome, float) else None

    scores = zip(*(map(cell, columns.outcomes(name)) for name in names), strict=True)
    return zip(columns.case_ids, scores, strict=True)


def _names(columns: RankingColumns) -> list[str]:
    return [column.name for column in columns.columns()]


def _csv(columns: RankingColumns, stream: IO[bytes]) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=False)
    writer = csv.writer(text)
    names = _names(columns)
    writer.writerow(["case_id", *names])
    for case_id, scores in _rows(columns, names):
        writer.writerow([f"'{case_id}" if case_id.startswith(FORMULA_STARTS) else case_id, *scores])
    text.flush()
    text.detach()


def _jsonl(columns: RankingColumns, stream: IO[bytes]) -> None:
    names = _names(columns)
    for case_id, scores in _rows(columns, names):
        record = {"case_id": case_id, **dict(zip(names, scores, strict=True))}
        stream.write(json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n")


def _parquet(columns: RankingColumns, stream: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table: dict[str, Any] = {"case_id": pa.array(columns.case_ids, pa.string())}
    for name in _names(columns):
        column = [outcome if isinstance(outcome, float) else None for outcome in columns.outcomes(name)]
        table[name] = pa.array(column, pa.float64())
    pq.write_table(pa.table(table), stream)


_WRITERS: dict[str, Callable[[RankingColumns, IO[bytes]], None]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
}


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
        raise ConfigError("writing Parquet needs pyarrow: pip install pyarrow") from None
    schema = pa.schema(
        [(clean_text(name), pa.float64() if kind is float else pa.string()) for name, kind in columns.items()]
    )
    try:
        with replacing(path) as stream, pq.ParquetWriter(stream, schema) as writer:
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
