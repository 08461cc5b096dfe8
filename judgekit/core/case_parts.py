"""Which part of a file of cases a run is about: the first ones, a sample, a shard, or some by their ids."""

import difflib
import hashlib
import heapq
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError
from judgekit.core.repeats import asked_id
from judgekit.core.runs import Manifest
from judgekit.core.streams import Streamed


@dataclass(frozen=True, slots=True)
class CasePart:
    """What the command line asked for; all None: the whole file."""

    limit: int | None = None
    """So many cases from the start of the file."""
    sample: int | None = None
    """So many cases drawn at random."""
    sample_seed: int | None = None
    shard: str | None = None
    """`2/4`: of these cases those whose id falls into the second of four shards; it may be none."""
    case_ids: tuple[str, ...] | None = None
    """These cases, each with all its answers."""

    def of(self, cases: Collection[Case], in_shard: Collection[Case] | None = None) -> Collection[Case]:
        """The cases of this part, in the order of the file; of a case with several answers all of them or none.

        A sample has the smallest hashes of seed and id, so the order of the file does not matter, a smaller sample is a
        part of a larger one, and a resumed run finds its cases again.

        Args:
            cases: of the file.
            in_shard: those of them that are in the shard, if that is known.

        Raises:
            ConfigError: parts that cannot be combined, a shard that is none; an unknown id.
        """
        if self.case_ids is not None and (self.limit, self.sample, self.shard) != (None, None, None):
            raise ConfigError("--case names the cases; leave out --limit, --sample and --shard")
        if self.limit is not None and self.sample is not None:
            raise ConfigError("--limit and --sample: choose one; --sample draws at random, --limit takes the first")
        is_in_shard = shard_filter(self.shard)
        chosen = self._chosen(cases)
        if chosen is None and (in_shard is not None or self.shard is None):
            return cases if in_shard is None else in_shard

        def is_taken(case: Case) -> bool:
            case_id = asked_id(case)
            return (chosen is None or case_id in chosen) and is_in_shard(case_id)

        known = cases if in_shard is None else in_shard
        return Streamed(lambda: filter(is_taken, known), sum(map(is_taken, known)))

    def _chosen(self, cases: Iterable[Case]) -> frozenset[str] | None:
        """Ids of the cases that are taken before they are shared out to shards; None: all."""
        if (self.limit, self.sample, self.case_ids) == (None, None, None):
            return None
        asked = list(dict.fromkeys(map(asked_id, cases)))
        if self.case_ids is not None:
            return frozenset(_named(self.case_ids, asked))
        if self.sample is not None:
            return frozenset(heapq.nsmallest(self.sample, asked, key=self._draw))
        return frozenset(asked[: self.limit])

    def _draw(self, case_id: str) -> bytes:
        return hashlib.sha256(f"{self.sample_seed or 0} {case_id}".encode("utf-8", "replace")).digest()

    def where_it_cuts(self, cases: Collection[Case]) -> "CasePart":
        """The same without a limit or sample that leaves nothing out of the cases of the file."""
        if (self.limit, self.sample, self.case_ids) == (None, None, None):
            return replace(self, sample_seed=None)
        n_cases = len(set(map(asked_id, cases)))
        limit = None if self.limit is None or self.limit >= n_cases else self.limit
        sample = None if self.sample is None or self.sample >= n_cases else self.sample
        case_ids = None if self.case_ids is None or len(set(self.case_ids)) >= n_cases else self.case_ids
        return CasePart(limit, sample, None if sample is None else self.sample_seed, self.shard, case_ids)

    def record(self) -> dict[str, Any]:
        """As manifest.json and metrics.json have it."""
        return asdict(self)


_MOST_IDS = 5
"""Ids that a text names; of more it gives the number."""


def _named(case_ids: Sequence[str], asked: Sequence[str]) -> list[str]:
    known = set(asked)
    unknown = [case_id for case_id in case_ids if case_id not in known]
    if unknown:
        near = difflib.get_close_matches(unknown[0], asked, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; ids are such as {asked[0]!r}" if asked else ""
        raise ConfigError(f"--case {unknown[0]!r}: the file has no such case{hint}")
    return list(case_ids)


def shard_numbers(shard: str) -> tuple[int, int]:
    """`2/4` as two numbers.

    Raises:
        ConfigError: it is no shard.
    """
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", shard)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(f"--shard {shard!r}: expected I/N with I from 1 to N, such as 2/4")
    return int(match[1]), int(match[2])


def id_number(case_id: str) -> int:
    """64 bits that stand for an id."""
    return int.from_bytes(hashlib.sha256(case_id.encode("utf-8", "replace")).digest()[:8], "big")


def shard_of(case_id: str, n_shards: int) -> int:
    """The shard that a case is in, from 1 on, by its id alone; of a repeat it is the id of the case that it repeats."""
    return id_number(case_id) % n_shards + 1


def shard_filter(shard: str | None) -> Callable[[str], bool]:
    """Tells by the id of a case whether it is in a shard; None: all are.

    Raises:
        ConfigError: it is no shard.
    """
    if shard is None:
        return lambda _: True
    number, n_shards = shard_numbers(shard)
    return lambda case_id: shard_of(case_id, n_shards) == number


def cases_text(record: Mapping[str, Any]) -> str:
    """`40 cases`, or `10 of 40 cases (--limit 10: the first ones)`.

    Args:
        record: `cases` of metrics.json; one of an older run does not say how its part was chosen.
    """
    n, n_in_file = record["n"], record.get("n_in_file")
    if n_in_file is None or n >= n_in_file:
        return f"{n:,} case{'' if n == 1 else 's'}"
    how = []
    if record.get("limit") is not None:
        how.append(f"--limit {record['limit']}: the first ones")
    if record.get("sample") is not None:
        how.append(f"--sample {record['sample']}: drawn at random with seed {record.get('sample_seed') or 0}")
    case_ids = record.get("case_ids")
    if case_ids is not None:
        how.append("--case " + (" ".join(case_ids) if len(case_ids) <= _MOST_IDS else f"of {len(case_ids)} ids"))
    if record.get("shard") is not None:
        how.append(f"--shard {record['shard']}{' of them' if how else ''}")
    chosen = f" ({', '.join(how)})" if how else ""
    return f"{n:,} of {n_in_file:,} cases{chosen}"


def part_of(manifest: Manifest) -> CasePart:
    """Which part of the file a run took."""
    return CasePart(manifest.limit, manifest.sample, manifest.sample_seed, manifest.shard, manifest.case_ids)
