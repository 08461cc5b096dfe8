"""Where gold stands in lists of ids that are in memory."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, compress

from judgekit.core.text import canonical_id
from judgekit.kernel import kernel
from judgekit.metrics.positions import SameRanks, places_of


def same_ranks(
    case_ids: list[str], gold: Sequence[Collection[str]], lists: Sequence[Sequence[str]], depth: int
) -> SameRanks:
    """Where gold stands, in many lists at once.

    Args:
        case_ids: of the cases.
        gold: gold ids, for each case.
        lists: ids in rank order, for each case.
        depth: the largest cut-off, see `ranks_in_list`.

    Raises:
        ValueError: see `canonical_ids`.
    """
    if kernel is not None:
        all_ranks, n_gold = kernel.ranks_in_lists(gold, lists, depth)
        if None not in all_ranks:
            return SameRanks(True, case_ids, n_gold, all_ranks, list(map(len, lists)))  # type: ignore[arg-type]
    near = [ids[:depth] for ids in lists]
    if are_plain(chain.from_iterable(near)) and are_plain(chain.from_iterable(gold)):
        distinct = [one if type(one) is set or len(one) == 1 else set(one) for one in gold]
        at = range(1, depth + 1)
        found = [tuple(compress(at, map(one.__contains__, head))) for one, head in zip(distinct, near, strict=True)]
        for index, ranks in enumerate(found):
            if not ranks:
                found[index] = _beyond(distinct[index], near[index], lists[index])
            elif len(ranks) > 1 and is_one_twice(ranks, near[index]):
                found[index] = places_of(list(distinct[index]), near[index])
        return SameRanks(True, case_ids, list(map(len, distinct)), found, list(map(len, lists)))
    wanted = [tuple(dict.fromkeys(canonical_ids(list(one)))) for one in gold]
    found = [ranks_in_list(one, ids, depth) for one, ids in zip(wanted, lists, strict=True)]
    return SameRanks(True, case_ids, list(map(len, wanted)), found, list(map(len, lists)))


_BLANKS = "\t\r\x0b\x0c\x1c\x1d\x1e\x1f"


def are_plain(ids: Iterable[object]) -> bool:
    """Whether the ids are texts that are compared as they are, and none is blank; False in doubt."""
    try:
        text = "\n".join(ids)  # type: ignore[arg-type]  # it says what is no text
    except TypeError:
        return False
    if not text.isascii() or "\n\n" in text or "\n " in text or text[:1] in " \n" or text[-1:] == "\n":
        return False
    return not any(blank in text for blank in _BLANKS)


def is_one_twice(ranks: Sequence[int], ids: Sequence[str]) -> bool:
    """Whether two of these ranks, which are at least two, hold the same id."""
    if len(ranks) == 2:
        return ids[ranks[0] - 1] == ids[ranks[1] - 1]
    return len({ids[rank - 1] for rank in ranks}) < len(ranks)


def _beyond(gold: Collection[str], near: Sequence[str], ids: Sequence[str]) -> tuple[int, ...]:
    """Ascending ranks of gold that does not stand among the first ids, all of which are compared as they are.

    Args:
        gold: distinct ids.
        near: the first ids.
        ids: the list.
    """
    if len(ids) <= len(near):
        return ()
    try:
        text = "\n".join(ids)
    except TypeError:
        text = ""
    if not text.isascii() or not text:
        return places_of(tuple(gold), canonical_ids(ids))
    # Several times as fast as to look at each id; a blank one equals none of the gold.
    if all(one not in text for one in gold):
        return ()
    return places_of(tuple(gold), ids)


def ranks_in_list(gold: Sequence[str], ids: Sequence[str], depth: int) -> tuple[int, ...]:
    """Ascending ranks at which gold ids stand first in a list of ids.

    Beyond `depth` the list is looked at only where no id before is right, since then only the first rank counts.

    Args:
        gold: distinct ids.
        ids: in rank order.
        depth: the largest cut-off.

    Raises:
        ValueError: see `canonical_ids`.
    """
    found = places_of(gold, canonical_ids(ids[:depth]))
    if not found and len(ids) > depth:
        return places_of(gold, canonical_ids(ids))
    return found


def canonical_ids(ids: Sequence[str]) -> Sequence[str]:
    """The ids as compared.

    Raises:
        ValueError: one is neither text nor a whole number, or empty.
    """
    if not ids or are_plain(ids):
        return ids
    made = [canonical_id(one) for one in ids]
    for one in made:
        if not isinstance(one, str):
            raise ValueError(f"an id is text or a whole number, found {type(one).__name__}")
    return made  # type: ignore[return-value]  # checked just before
