"""Documents of JSON or YAML: the records inside, and YAML as plain values and nodes that know their lines.

Records are a list, a list under a key, or a table as pandas writes it. ruamel.yaml is imported only if YAML is read.
"""

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

from judgekit.core.errors import ConfigError, InputError, did_you_mean, json_path
from judgekit.storage.dotted import ABSENT, look_up
from judgekit.storage.format_names import formats_named
from judgekit.storage.problems import Location, kind_of

LISTS = (
    "records", "results", "data", "rows", "items", "examples", "samples", "instances", "cases", "questions",
    "queries", "outputs"
)  # fmt: skip
"""What the only list of objects in a document is called where it is read without being named."""


class Found(NamedTuple):
    """What stands where a record should be."""

    path: str
    """For messages."""
    place: Location | None
    """From the root; None: in no single place."""
    item: Any
    """A record, or whatever stands there in its place."""
    problem: str | None = None
    """What is wrong with it."""


def records_of(document: Any, key: str | None, known: Set[str], path: Path) -> Iterator[Found]:
    """The records of a document.

    Args:
        document: what was parsed.
        key: dotted name of what holds the records; None: they are found.
        known: names that a field of a record may have.
        path: names the file in messages.

    Raises:
        InputError: nothing in it is plainly a list of records.
    """
    place: Location = ()
    held = document
    if key is not None:
        held = look_up(document, key) if isinstance(document, Mapping) else ABSENT
        if held is ABSENT:
            raise InputError(f'{path}: "records" is {key!r}, {_not_there(document, key)}')
        place = (key,) if key in document else tuple(key.split("."))
    if isinstance(held, Mapping):
        table = _table(held, place, known)
        if table is not None:
            return table
        name = _only_list(held, known) if key is None else None
        if name is not None:
            held, place = held[name], (name,)
    if not isinstance(held, list):
        raise InputError(f"{path}: {_unfit(held, place, known)}")
    if not held:
        raise InputError(f"{path}: the list{f' at {json_path(place)}' * bool(place)} is empty")
    return _items(held, place)


def _items(held: list[Any], place: Location) -> Iterator[Found]:
    return (Found(json_path((*place, number)), (*place, number), item) for number, item in enumerate(held))


def _only_list(document: Mapping[str, Any], known: Set[str]) -> str | None:
    lists = [str(name) for name, value in document.items() if _is_list_of_objects(value)]
    if len(lists) != 1 or lists[0] not in LISTS or known & document.keys() - {lists[0]} - {"metadata", "id"}:
        return None
    return lists[0]


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _not_there(document: Any, key: str) -> str:
    if not isinstance(document, Mapping):
        return f"but the file is {kind_of(document)}; leave it out"
    names = list(map(str, document))
    hint = did_you_mean(key, [*names, *_lists_in(document)])
    return f"which is not there; the file has {', '.join(names[:8]) or 'no keys'}{hint}"


def _unfit(held: Any, place: Location, known: Set[str]) -> str:
    shape = "nothing" if held is None else kind_of(held)
    where = f" at {json_path(place)}" if place else ""
    if not isinstance(held, Mapping):
        return f"unsupported shape: expected a list of objects{where}, found {shape}"
    message = f"unsupported shape: expected a list of objects{where}, found {shape} with keys "
    message += ", ".join(map(str, list(held)[:5]))
    lists = _lists_in(held)
    if lists and not place:
        message += f'; if {lists[0]!r} holds the records, set "records": "{lists[0]}"'
        message += f" (there are also {', '.join(map(repr, lists[1:6]))})" if lists[1:] else ""
    elif _is_of_objects(held):
        message += "; if this is a table, write one object a record, as pandas does with orient=records"
    elif known & held.keys():
        message += "; one record alone is written as a list of one"
    else:
        message += f'; write one object a record, or set "format" to what it is: {formats_named()}'
    return message


def _lists_in(document: Mapping[str, Any]) -> list[str]:
    """Dotted names of lists of objects, two levels deep."""
    found = [str(name) for name, value in document.items() if _is_list_of_objects(value)]
    found.sort(key=lambda name: name not in LISTS)
    for name, value in document.items():
        if isinstance(value, Mapping):
            found += [f"{name}.{inner}" for inner, item in value.items() if _is_list_of_objects(item)]
    return found


def _table(held: Mapping[str, Any], place: Location, known: Set[str]) -> Iterator[Found] | None:
    """The rows of a table in one of the shapes of pandas; None if it is not a table."""
    columns, data = held.get("columns"), held.get("data")
    if isinstance(columns, list) and isinstance(data, list) and all(isinstance(name, str) for name in columns):
        return _split_rows(columns, data, held.get("index"), (*place, "data"))
    schema = held.get("schema")
    if isinstance(schema, Mapping) and "fields" in schema and isinstance(data, list):
        return _schema_rows(schema, data, (*place, "data"))
    if _is_of_objects(held):
        return _rows_of_objects(held, place, known)
    if _is_of_columns(held, known):
        names = list(held)
        rows = zip(*held.values(), strict=True)
        return (Found(f"row {number}", None, dict(zip(names, row, strict=True))) for number, row in enumerate(rows, 1))
    return None


def _is_of_objects(held: Mapping[str, Any]) -> bool:
    return bool(held) and all(isinstance(value, Mapping) and value for value in held.values())


def _is_of_columns(held: Mapping[str, Any], known: Set[str]) -> bool:
    lengths = {len(value) if isinstance(value, list) else -1 for value in held.values()}
    if len(held) < 2 or len(lengths) != 1 or lengths <= {-1, 0}:
        return False
    return bool(known & held.keys()) or not any(map(_is_list_of_objects, held.values()))


def _split_rows(columns: list[str], data: list[Any], labels: Any, place: Location) -> Iterator[Found]:
    """`orient="split"`."""
    ids = _ids(labels, len(data))
    for number, cells in enumerate(data):
        at = (*place, number)
        if isinstance(cells, list) and len(cells) == len(columns):
            yield Found(json_path(at), at, _with_id(dict(zip(columns, cells, strict=True)), ids, number))
        else:
            n_cells = f"{len(cells)} values" if isinstance(cells, list) else kind_of(cells)
            yield Found(json_path(at), at, None, f"{n_cells}, but there are {len(columns)} columns")


def _schema_rows(schema: Mapping[str, Any], data: list[Any], place: Location) -> Iterator[Found]:
    """`orient="table"`; the index that pandas adds is left out."""
    is_indexed = schema.get("primaryKey") == ["index"]
    for found in _items(data, place):
        if is_indexed and isinstance(found.item, dict):
            found.item.pop("index", None)
        yield found


def _rows_of_objects(held: Mapping[str, Any], place: Location, known: Set[str]) -> Iterator[Found] | None:
    """One object a column, the default of pandas, or one object a record, `orient="index"`."""
    outer, inner = list(held), list(next(iter(held.values())))
    is_even = all(value.keys() == held[outer[0]].keys() for value in held.values())
    if is_even and not _are_positions(outer) and (_are_positions(inner) or known & set(outer)):
        ids = _ids(inner, len(inner))
        return (
            Found(f"row {label!r}", None, _with_id({name: held[name][label] for name in outer}, ids, number))
            for number, label in enumerate(inner)
        )
    if _are_positions(outer) or (len(outer) > 1 and all(known & value.keys() for value in held.values())):
        ids = _ids(outer, len(outer))
        return (
            Found(json_path((*place, label)), (*place, label), _with_id(dict(held[label]), ids, number))
            for number, label in enumerate(outer)
        )
    return None


def _are_positions(labels: list[Any]) -> bool:
    """Whether labels are the positions of rows, which say nothing."""
    return [str(label) for label in labels] == [str(number) for number in range(len(labels))]


def _ids(labels: Any, n_rows: int) -> list[Any] | None:
    """The labels of rows where these can name cases."""
    is_named = isinstance(labels, list) and len(labels) == n_rows and not _are_positions(labels)
    return labels if is_named and all(isinstance(label, str | int) for label in labels) else None


def _with_id(record: dict[str, Any], ids: list[Any] | None, number: int) -> dict[str, Any]:
    return record if ids is None or {"id", "case_id", "_id"} & record.keys() else {"id": ids[number], **record}


CONFIG_VALUES = 100_000
"""What a config may stand for at most."""
DATA_VALUES = 5_000_000
"""What a file of cases or outputs may stand for at most."""

_LETTERS_OF_A_VALUE = 1000


def parsed_yaml(text: str, where: str, most: int) -> tuple[Any, Any]:
    """The value that a text holds, and its node.

    A few lines with anchors can stand for billions of values, so they are counted before any is made.

    Args:
        text: YAML.
        where: names the file in messages.
        most: values that it may stand for.

    Raises:
        ConfigError: not YAML, or too many values.
        RecursionError: nested too deeply.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        node = YAML(pure=True).compose(text)
        if node is not None:
            _check_size(node, where, most)
        return YAML(typ="safe", pure=True).load(text), node
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{where}:{mark.line + 1}" if mark is not None else where
        raise ConfigError(f"{at}: not valid YAML: {error.problem or error.context}") from None
    except (YAMLError, ValueError) as error:
        raise ConfigError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from None


def node_at(root: Any, location: Location) -> Any:
    """The node at a place, or its nearest parent that exists."""
    node = root
    for part in location:
        entries: dict[str | int, Any] = {}
        if node.id == "sequence":
            entries = dict(enumerate(node.value))
        elif node.id == "mapping":
            entries = {key.value: item for key, item in node.value if isinstance(key.value, str)}
        if part not in entries:
            break
        node = entries[part]
    return node


def line_of_node(node: Any) -> int:
    """The 1-based line on which a node starts."""
    return int(node.start_mark.line) + 1


def _check_size(root: Any, where: str, most: int) -> None:
    sizes: dict[int, int] = {}

    def size(node: Any) -> int:
        key = id(node)
        if key in sizes:
            if not sizes[key]:  # still being counted
                raise ConfigError(f"{where}:{line_of_node(node)}: an anchor stands for something that holds itself")
            return sizes[key]
        sizes[key] = 0
        if node.id == "sequence":
            inner = sum(map(size, node.value))
        elif node.id == "mapping":
            inner = sum(size(name) + size(value) for name, value in node.value)
        else:
            inner = len(node.value) // _LETTERS_OF_A_VALUE
        sizes[key] = 1 + inner
        if sizes[key] > most:
            raise ConfigError(f"{where}:{line_of_node(node)}: anchors expand to more than {most} values")
        return sizes[key]

    size(root)
