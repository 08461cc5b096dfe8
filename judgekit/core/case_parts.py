"""Which part of the cases of a file a run takes, and how that is said."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class CasePart:
    """What the command line asked for; all None: the whole file."""

    limit: int | None = None
    """So many cases from the start of the file."""
    sample: int | None = None
    """So many cases drawn at random."""
    sample_seed: int | None = None
    shard: str | None = None
    """`2/4`: every fourth of these cases, from the second on."""

    def of(self, cases: Sequence[Case]) -> list[Case]:
        """The cases of this part, in the order of the file.

        A sample consists of the cases with the smallest hashes of seed and id. So it depends neither on the order of
        the file nor on a generator, a smaller sample is a part of a larger one, and a run finds its cases again when
        it is resumed.

        Raises:
            ConfigError: parts that cannot be combined, a shard that is none, or one without a case.
        """
        if self.limit is not None and self.sample is not None:
            raise ConfigError("--limit and --sample: choose one; --sample draws at random, --limit takes the first")
        found = list(cases[: self.limit])
        if self.sample is not None and self.sample < len(cases):
            drawn = sorted(range(len(cases)), key=lambda place: self._draw(cases[place].id))[: self.sample]
            found = [cases[place] for place in sorted(drawn)]
        return found if self.shard is None else _shard(found, self.shard)

    def _draw(self, case_id: str) -> bytes:
        return hashlib.sha256(f"{self.sample_seed or 0} {case_id}".encode("utf-8", "replace")).digest()

    def where_it_cuts(self, n_cases: int) -> "CasePart":
        """The same without a limit or sample that leaves nothing out."""
        limit = None if self.limit is None or self.limit >= n_cases else self.limit
        sample = None if self.sample is None or self.sample >= n_cases else self.sample
        return CasePart(limit, sample, None if sample is None else self.sample_seed, self.shard)

    def record(self) -> dict[str, Any]:
        """As manifest.json and metrics.json have it."""
        return asdict(self)


def _shard(cases: list[Case], shard: str) -> list[Case]:
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", shard)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(f"--shard {shard!r}: expected I/N with I from 1 to N, such as 2/4")
    found = cases[int(match[1]) - 1 :: int(match[2])]
    if not found:
        raise ConfigError(f"--shard {shard}: there are only {len(cases)} cases")
    return found


def cases_text(record: Mapping[str, Any]) -> str:
    """`40 cases`, or `10 of 40 cases (--limit 10: the first ones)`.

    Args:
        record: `cases` of metrics.json; one of an older run does not say how its part was chosen.
    """
    n, n_in_file = record["n"], record.get("n_in_file")
    if n_in_file is None or n >= n_in_file:
        return f"{n} case{'' if n == 1 else 's'}"
    how = []
    if record.get("limit") is not None:
        how.append(f"--limit {record['limit']}: the first ones")
    if record.get("sample") is not None:
        how.append(f"--sample {record['sample']}: drawn at random with seed {record.get('sample_seed') or 0}")
    if record.get("shard") is not None:
        how.append(f"--shard {record['shard']}{' of them' if how else ''}")
    chosen = f" ({', '.join(how)})" if how else ""
    return f"{n} of {n_in_file} cases{chosen}"
