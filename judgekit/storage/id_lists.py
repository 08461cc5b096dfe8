"""Ids in place of whole entries: hits that are known by their ids, and expected ids that come in groups."""

from itertools import product
from typing import Any

from judgekit.core.text import canonical_id
from judgekit.storage.problems import kind_of

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

    What is needed together goes into `required_support_groups`, where there are several ids and no supports yet.

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
