"""Golden sets in YAML: a list of records, or a mapping whose only list is called `cases`, `questions`, `queries` or so.

`query` is read as the question. YAML is version 1.2, so `no` and `on` are texts; a date is the text that was written.
"""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.encodings import faults_named
from judgekit.storage.problems import kind_of
from judgekit.storage.rows import Origin, Row, read_text

_LISTS = ("cases", "questions", "queries", "items", "outputs")
_MOST_VALUES = 5_000_000
"""A few lines with anchors can stand for billions of values."""


def rows(file: DataFile, path: Path) -> Iterator[Row]:
    """The records of a YAML file.

    Raises:
        InputError: no YAML, or no list of records.
    """
    text = read_text(file, path)
    with faults_named(path, "a YAML file"):
        data, nodes = _parsed(text, path)
        budget = [_MOST_VALUES]
        for number, (item, node) in enumerate(zip(data, nodes, strict=True)):
            line = int(node.start_mark.line) + 1
            place = f"$[{number}]"
            if not isinstance(item, dict):
                yield Row(line, place, None, f"expected a mapping, found {kind_of(item)}")
                continue
            record = _plain(item, budget)
            if budget[0] < 0:
                raise InputError(f"{path}:{line}: anchors expand to more than {_MOST_VALUES} values")
            if "query" in record and "question" not in record:
                ours = {("question" if key == "query" else key): value for key, value in record.items()}
                yield Row(line, place, ours, origin=Origin(record, {"question": "query"}))
            else:
                yield Row(line, place, record)


def _parsed(text: str, path: Path) -> tuple[list[Any], list[Any]]:
    """The records, and for each the node that knows its line."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        data = YAML(typ="safe", pure=True).load(text)
        node = YAML(pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        raise InputError(f"{where}: not valid YAML: {error.problem or error.context}") from None
    except (YAMLError, ValueError) as error:
        raise InputError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if isinstance(data, dict):
        lists = [key for key in data if key in _LISTS and isinstance(data[key], list)]
        if len(lists) == 1:
            data = data[lists[0]]
            node = next(value for key, value in node.value if key.value == lists[0])
    if not isinstance(data, list):
        raise InputError(
            f"{path}: unsupported shape: expected a list of records, or one under {', '.join(_LISTS)}, "
            f"found {'nothing' if data is None else kind_of(data)}"
        )
    if not data:
        raise InputError(f"{path}: the list is empty")
    return data, node.value


def _plain(value: Any, budget: list[int]) -> Any:
    """Data as JSON could hold it."""
    budget[0] -= 1
    if budget[0] < 0:
        return None
    if isinstance(value, dict):
        return {str(key): _plain(item, budget) for key, item in value.items()}
    if isinstance(value, list | set | tuple):
        return [_plain(item, budget) for item in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value
