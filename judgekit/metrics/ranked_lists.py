"""Where gold stands in lists of ids that are in memory."""

from collections.abc import Collection, Iterable, Sequence

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
    ranks: list[tuple[int, ...] | None] = [None] * len(lists)
    n_gold = [0] * len(lists)
    if kernel is not None:
        ranks, n_gold = kernel.ranks_in_lists(gold, lists, depth)
    if None in ranks:
        for index in [index for index, found in enumerate(ranks) if found is None]:
            wanted = tuple(dict.fromkeys(canonical_ids(list(gold[index]))))
            ranks[index], n_gold[index] = ranks_in_list(wanted, lists[index], depth), len(wanted)
    return SameRanks(True, case_ids, n_gold, ranks, list(map(len, lists)))  # type: ignore[arg-type]  # none is None


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
