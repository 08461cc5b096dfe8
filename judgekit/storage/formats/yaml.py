"""Golden sets in YAML: a list of records, or a document that holds one, as in JSON.

`query` is read as the question. YAML is version 1.2, so `no` and `on` are texts; a date is the text that was written.
"""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, InputError
from judgekit.storage.encodings import faults_named
from judgekit.storage.rows import Origin, Row, document_rows, read_text
from judgekit.storage.yaml_text import DATA_VALUES, line_of_node, node_at, parsed_yaml


def rows(file: DataFile, path: Path) -> Iterator[Row]:
    """The records of a YAML file.

    Raises:
        InputError: no YAML, or no list of records.
    """
    text = read_text(file, path)
    with faults_named(path, "a YAML file"):
        try:
            data, root = parsed_yaml(text, str(path), DATA_VALUES)
        except ConfigError as error:
            raise InputError(str(error)) from None
        for row in document_rows(file, _plain(data), path):
            line = line_of_node(node_at(root, row.place)) if row.place is not None else 0
            record = row.data
            if record is not None and "query" in record and "question" not in record:
                ours = {("question" if key == "query" else key): value for key, value in record.items()}
                yield replace(row, line=line, place=None, data=ours, origin=Origin(record, {"question": "query"}))
            else:
                yield replace(row, line=line, place=None)


def _plain(value: Any) -> Any:
    """Data as JSON could hold it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | set | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value
