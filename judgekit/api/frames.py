"""Rows of what programs keep records in: lists, a dict of columns, and frames.

No library of frames is imported for it. pandas, polars and pyarrow are read by their own public methods, some rows at a
time, so that a frame is never copied as a whole; whatever else exports Arrow or the interchange protocol, by pyarrow.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from judgekit.core.errors import InputError
from judgekit.storage.containers import plain
from judgekit.storage.record_formats import is_absent

_BATCH = 1024
"""Rows that are held as Python objects at a time."""


def rows_of(data: Any, what: str) -> Iterator[Any]:
    """The rows of a list, a dict of columns or a frame; each mapping among them as what JSON could hold.

    In a frame, None, NaN, NaT and NA all say that there is nothing, so that the row lacks the column. An index with a
    name is a column.

    Args:
        data: where the rows are.
        what: names it in messages.

    Raises:
        InputError: it is none of these, or two columns have the same name.
    """
    found = _frame_rows(data, what)
    if found is not None:
        rows = map(_plain_row, found)
        return ({name: value for name, value in row.items() if not is_absent(value)} for row in rows)
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        hint = "; a file goes to judgekit.run" if isinstance(data, str) else ""
        hint = "; a single one goes into a list: [{...}]" if isinstance(data, Mapping) else hint
        raise InputError(f"{what}: expected a list or a frame, found {type(data).__name__}{hint}")
    return (_plain_row(item) if isinstance(item, Mapping) else item for item in data)


def _frame_rows(data: Any, what: str) -> Iterator[Mapping[Any, Any]] | None:
    """The rows of a frame; None if it is not one."""
    if isinstance(data, Mapping):
        return _of_columns(data, what) if _are_columns(data) else None
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return _of_pandas(data, what)
    if hasattr(data, "iter_rows") and hasattr(data, "columns"):
        _check_names(list(data.columns), what)
        return map(dict, data.iter_rows(named=True, buffer_size=_BATCH))  # polars
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):
        raise InputError(f"{what}: a lazy frame, which holds no rows yet; give it as frame.collect()")
    if hasattr(data, "to_pylist") and hasattr(data, "schema"):
        _check_names(list(data.schema.names), what)
        return _of_slices(data)  # a table or batch of pyarrow
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__"):
        return _of_stream(data, what)
    return None


def _are_columns(data: Mapping[Any, Any]) -> bool:
    """Whether a mapping holds columns: lists of one length, and not the fields of a single record."""
    values = list(data.values())
    return bool(values) and all(_is_column(value) for value in values)


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, str | bytes | Mapping)


def _of_columns(data: Mapping[Any, Sequence[Any]], what: str) -> Iterator[dict[str, Any]]:
    names = list(map(str, data))
    _check_names(names, what)
    lengths = {name: len(column) for name, column in zip(names, data.values(), strict=True)}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:8])
        raise InputError(f"{what}: the columns are not of one length: {told}")
    return (dict(zip(names, values, strict=True)) for values in zip(*data.values(), strict=True))


def _of_pandas(data: Any, what: str) -> Iterator[dict[str, Any]]:
    columns = [str(name) for name in data.columns]
    levels = [name for name in data.index.names if name is not None and str(name) not in columns]
    names = [*map(str, levels), *columns]
    _check_names(names, what)

    def rows() -> Iterator[dict[str, Any]]:
        for start in range(0, len(data), _BATCH):
            part = data.iloc[start : start + _BATCH]
            values = [part.index.get_level_values(name).tolist() for name in levels]
            values += [part.iloc[:, place].tolist() for place in range(len(columns))]
            yield from (dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))

    return rows()


def _of_slices(data: Any) -> Iterator[dict[str, Any]]:
    for start in range(0, data.num_rows, _BATCH):
        yield from data.slice(start, _BATCH).to_pylist()


def _of_stream(data: Any, what: str) -> Iterator[dict[str, Any]]:
    """Rows of a frame that only exports itself, such as one of DuckDB, Ibis or cuDF."""
    try:
        import pyarrow as pa
        from pyarrow.interchange import from_dataframe
    except ImportError:
        raise InputError(
            f"{what}: reading a frame of {type(data).__module__.partition('.')[0]} needs pyarrow: pip install pyarrow"
        ) from None
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        _check_names(reader.schema.names, what)
        return (row for batch in reader for row in _of_slices(batch))
    table = from_dataframe(data)
    _check_names(table.schema.names, what)
    return _of_slices(table)


def _plain_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): plain(value) for name, value in row.items()}


def _check_names(names: Collection[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{what}: the frame has the column {name!r} twice; rename one of them")
        seen.add(name)
