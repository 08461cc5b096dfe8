"""Cases and outputs read for ranked figures alone: labels, and where they stand.

Where a format allows it, records are not built at all; elsewhere they are the records of every other reader, so that
what counts, and what is an error, is the same.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.config import DataFile
from judgekit.core.scores import Failed
from judgekit.metrics.anchors import SnippetMode
from judgekit.metrics.positions import Labels, Positions, labels_of, positions_of_output
from judgekit.storage.case_files import FieldMapping, read_all, record_of
from judgekit.storage.formats.lookup import reading_of
from judgekit.storage.formats.source import Notices
from judgekit.storage.ready import Labelled, ReadyOutput, Scattered
from judgekit.storage.rows import Row, jsonl_row

T = TypeVar("T")

Placed = tuple[str, Positions | Failed | None]
"""Case id, and where its labels stand; None where no case has that id."""


def load_labels(source: DataFile, path: Path, snippets: SnippetMode, notices: Notices) -> dict[str, Labels]:
    """The labels of all cases of a file, by id, in order.

    Args:
        source: how it is read.
        path: where it is.
        snippets: how the snippets of supports are looked for.
        notices: takes (code, message) of what the reader of the numbers should know.

    Raises:
        InputError: as for `load_cases`.
    """
    mapping = FieldMapping(source, Case)

    def read(row: Row) -> tuple[str, tuple[str, Labels]] | list[str]:
        if isinstance(row.ready, Labelled):
            return row.ready.key, (row.ready.key, row.ready.labels)
        found = record_of(row, mapping, Case)
        return found if isinstance(found, list) else (found.id, (found.id, labels_of(found, snippets)))

    reading = reading_of(source, path)
    said: Notices = []
    try:
        labels = dict(read_all(reading.ready_rows("cases", 0, said), read, mapping, reading))
    except Scattered:
        said = []
        labels = dict(read_all(reading.rows("cases", said), read, mapping, reading))
    notices += said
    return labels


def iterate_positions(
    source: DataFile, path: Path, labels: Mapping[str, Labels], depth: int | None, notices: Notices
) -> Iterator[Placed]:
    """Where the labels of each output's case stand, as the outputs are read.

    Args:
        source: how the file is read.
        path: where it is.
        labels: by case id.
        depth: the largest cut-off; None builds every record, as is needed where outputs are scattered.
        notices: takes (code, message) of what the reader of the numbers should know.

    Raises:
        InputError: as for `load_outputs`.
        Scattered: this file has to be read with a depth of None.
    """
    mapping = FieldMapping(source, SystemOutput)

    def read(row: Row) -> tuple[str, Placed] | list[str]:
        ready: ReadyOutput | None = row.ready  # type: ignore[assignment]  # rows of outputs hold outputs
        if ready is not None:
            wanted = labels.get(ready.key)
            if wanted is None:
                return ready.key, (ready.key, None)
            placed = ready.positions(wanted)
            if placed is not None:
                return ready.key, (ready.key, placed)
            row = _whole(row)
        found = record_of(row, mapping, SystemOutput)
        if isinstance(found, list):
            return found
        return found.case_id, (found.case_id, _placed(found, labels.get(found.case_id)))

    reading = reading_of(source, path)
    rows = reading.rows("outputs", notices) if depth is None else reading.ready_rows("outputs", depth, notices)
    return read_all(rows, read, mapping, reading)


def _placed(output: SystemOutput, labels: Labels | None) -> Positions | Failed | None:
    if labels is None:
        return None
    return positions_of_output(labels, output) if output.error is None else Failed(output.error.kind)


def _whole(row: Row) -> Row:
    """The row with its fields."""
    if row.body:
        return jsonl_row(row.body, row.line)
    ids = [one.decode("utf-8") for one in row.ready.ids]  # type: ignore[union-attr]
    hits = [{"chunk_id": one, "doc_id": one, "rel_path": one} for one in ids]
    return replace(row, ready=None, data={"case_id": row.ready.key, "retrieved": hits})  # type: ignore[union-attr]
