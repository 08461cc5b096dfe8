"""Lists of ids: hits known by their ids, expected ids in groups, and files of the chunks that a corpus has."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.core.runs import CHUNK_IDS
from judgekit.core.text import canonical_id
from judgekit.storage.dotted import ABSENT, look_up
from judgekit.storage.problems import kind_of, one_line
from judgekit.storage.rows import OWN_FORMATS, read_rows, read_text
from judgekit.storage.run_files import damaged_line

if TYPE_CHECKING:
    from judgekit.storage.run_folder import RunFolder  # imports what no reader of files needs

RETRIEVED_IDS = "retrieved_ids"
"""Outputs may list ids alone, each of which is chunk, document and path, as in a TREC run."""

_EXPECTED = ("expected_chunk_ids", "expected_doc_ids")
_MOST_GROUPS = 100


def hits_of_ids(ids: Any, hits: Any) -> list[dict[str, object]]:
    """Hits that are known by their ids.

    Args:
        ids: one a hit.
        hits: what else is known of each, in the same order; None: nothing.

    Raises:
        ValueError: something among them is not an id, there are more or fewer hits, or a hit has an id of its own.
    """
    if not isinstance(ids, list):
        raise ValueError(f"{RETRIEVED_IDS}: expected a list of ids, found {kind_of(ids)}")
    rest: list[Any] = [{} for _ in ids] if hits is None else hits
    if not isinstance(rest, list) or len(rest) != len(ids):
        n_hits = f"{len(rest)} entries" if isinstance(rest, list) else kind_of(rest)
        raise ValueError(f"{RETRIEVED_IDS}: the record has retrieved too, with {n_hits} for {len(ids)} ids")
    return [_hit(value, index, hit) for index, (value, hit) in enumerate(zip(ids, rest, strict=True))]


def checked_id(value: object) -> str:
    """An id as compared.

    Raises:
        ValueError: it is neither text nor a whole number, or empty.
    """
    one = canonical_id(value)
    if not isinstance(one, str):
        raise ValueError(f"an id is text or a whole number, found {kind_of(value)}")
    return one


def _hit(value: object, index: int, hit: Any) -> dict[str, object]:
    try:
        one = checked_id(value)
    except ValueError as error:
        raise ValueError(f"{RETRIEVED_IDS}[{index}]: {error}") from None
    ids: dict[str, object] = {"chunk_id": one, "doc_id": one, "rel_path": one}
    if not isinstance(hit, dict) or ids.keys() & hit.keys():
        raise ValueError(
            f"{RETRIEVED_IDS}: the record has retrieved too, which holds more than texts; give one of them"
        )
    return {**ids, **hit}


def with_flat_ids(case: dict[str, Any]) -> None:
    """Make one list of expected ids that come in groups: of each group any id is needed, of all groups one.

    What is needed together goes into `required_support_groups`, if there are several ids and no supports yet.

    Raises:
        ValueError: the groups stand for too many combinations.
    """
    for name in _EXPECTED:
        value = case.get(name)
        if not isinstance(value, list) or not any(isinstance(item, list) for item in value):
            continue
        groups = [item if isinstance(item, list) else [item] for item in value if item != []]
        ids = list(dict.fromkeys(_id(item, name) for group in groups for item in group))
        case[name] = ids
        if len(ids) > 1 and not {"gold_supports", "required_support_groups"} & case.keys():
            case["gold_supports"] = [{"rel_path": one} for one in ids]
            case["required_support_groups"] = _combinations([[ids.index(_id(one, name)) for one in g] for g in groups])


def _id(value: object, name: str) -> str:
    try:
        return checked_id(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _combinations(groups: list[list[int]]) -> list[list[int]]:
    n_all = 1
    for group in groups:
        n_all *= len(group)
    if n_all > _MOST_GROUPS:
        raise ValueError(f"the groups of expected ids stand for {n_all} combinations; {_MOST_GROUPS} at most are read")
    found = {tuple(dict.fromkeys(sorted(chosen))): None for chosen in product(*groups)}
    return [list(chosen) for chosen in found]


_NAMES = ("chunk_id", "id", "_id", "doc_id")
_FIELD = "chunk_id"


def load_ids(source: DataFile, path: Path) -> frozenset[str]:
    """The ids of a file; one that comes twice counts once.

    Args:
        source: how it is read; `fields` may say what holds the id. Without a format and under another name than
            `.jsonl`, `.json`, `.csv`, `.tsv` or `.xlsx` a file has one id a line.
        path: where it is.

    Raises:
        InputError: it cannot be read, holds no id, or something in it is not an id.
    """
    if source.fields.keys() - {_FIELD}:
        raise InputError(f'{path}: "fields" may name {_FIELD} only')
    is_table = source.format in OWN_FORMATS.values() or path.suffix.lower() in OWN_FORMATS
    if source.format is not None and not is_table:
        raise InputError(f'{path}: "format" is {source.format!r}; ids are read from jsonl, json, csv, xlsx or lines')
    found = frozenset(_from_rows(source, path) if is_table else _from_lines(source, path))
    if not found:
        raise InputError(f"{path}: holds no ids")
    return found


def id_lines(ids: Iterable[str]) -> Iterator[bytes]:
    """The ids as a run folder keeps them: sorted, a JSON text a line."""
    return (json.dumps(one, ensure_ascii=False).encode("utf-8", "replace") for one in sorted(ids))


def stored_ids(folder: "RunFolder") -> frozenset[str] | None:
    """The ids that a run keeps; None if it was given none.

    Raises:
        StorageError: a line is damaged.
    """
    return frozenset(_stored(folder)) if folder.has(CHUNK_IDS) else None


def _stored(folder: "RunFolder") -> Iterator[str]:
    for number, line in folder.lines(CHUNK_IDS):
        error: object = "expected a text"
        try:
            one = json.loads(line)
        except ValueError as caught:
            one, error = None, caught
        if not isinstance(one, str):
            raise damaged_line(folder.path / CHUNK_IDS, number, error)
        yield one


def _from_lines(source: DataFile, path: Path) -> Iterator[str]:
    for line in read_text(source, path).split("\n"):
        if line.strip():
            yield _id_at(line.strip(), str(path))


def _from_rows(source: DataFile, path: Path) -> Iterator[str]:
    name: str | None = source.fields.get(_FIELD)
    for row in read_rows(source, path):
        where = f"{path}:{row.line}" if row.line else f"{path}: {row.path}"
        if row.data is None:
            raise InputError(one_line(f"{where}: {row.problem}"))
        name = name or _name_in(row.data, where)
        value = look_up(row.data, name)
        if value is ABSENT or value in (None, ""):
            raise InputError(one_line(f"{where}: has no {name!r}"))
        yield _id_at(value, where)


def _name_in(record: Mapping[str, Any], where: str) -> str:
    for name in _NAMES:
        if name in record:
            return name
    keys = ", ".join(map(str, list(record)[:8]))
    raise InputError(one_line(f'{where}: no id among {keys}; say which it is: "fields": {{"{_FIELD}": ...}}'))


def _id_at(value: object, where: str) -> str:
    try:
        return checked_id(value)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
