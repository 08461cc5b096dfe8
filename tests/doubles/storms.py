"""Faults drawn from a seed: a storm that blows the same way every time."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Final

from judgekit import testing
from judgekit.testing import Reply, Request, Script, as_responder, plausible_body, plausible_verdict
from tests.doubles.malformed import MENDABLE, UNREADABLE, malformed_verdict

RETRYABLE_MIX: Final[Mapping[str, float]] = {
    "rate_limit": 3,
    "server_error": 3,
    "overloaded": 1,
    "reset": 1,
    "close_after_bytes": 1,
    "html": 1,
}
"""Weights of faults that a further try may cure."""

REPLY_MIX: Final[Mapping[str, float]] = {
    "mendable": 2,
    "unreadable": 2,
    "truncated": 1,
    "empty": 1,
    "refused": 1,
    "filtered": 1,
    "error_in_200": 1,
}
"""Weights of faults in what the judge says."""


def _some_variant(variants: Mapping[str, object]) -> "Callable[[Request, int], Reply]":
    names = sorted(variants)
    return lambda request, draw: malformed_verdict(names[draw % len(names)], plausible_body(request))


FAULTS: Final[Mapping[str, Callable[[Request, int], Reply]]] = {
    "rate_limit": lambda _, __: testing.rate_limited(retry_after_ms=20),
    "server_error": lambda _, draw: testing.server_error((500, 502, 503, 504)[draw % 4]),
    "overloaded": lambda _, __: testing.overloaded(),
    "reset": lambda _, __: testing.reset(),
    "close_after_bytes": lambda request, draw: testing.close_after_bytes(draw % 200, plausible_verdict(request)),
    "hang": lambda _, __: testing.hang(),
    "html": lambda _, draw: testing.html_page((502, 503, 504, 520)[draw % 4]),
    "mendable": _some_variant(MENDABLE),
    "unreadable": _some_variant(UNREADABLE),
    "truncated": lambda _, __: testing.truncated_reply(),
    "empty": lambda _, draw: testing.empty_reply(("", " \n", None)[draw % 3]),
    "refused": lambda _, __: testing.refused_reply(),
    "filtered": lambda _, __: testing.filtered_reply(),
    "error_in_200": lambda _, __: testing.error_in_200(),
}
"""What a mix can name, with the reply it stands for."""


class SeededFaults:
    """See `seeded_faults`."""

    def __init__(
        self, rate: float, seed: int, mix: Mapping[str, float], max_in_a_row: int | None, then: Script | None
    ) -> None:
        unknown = sorted(set(mix) - set(FAULTS))
        if unknown:
            raise ValueError(f"unknown faults in the mix: {', '.join(unknown)}; known are {', '.join(FAULTS)}")
        if not 0 <= rate <= 1:
            raise ValueError(f"a rate of faults lies between 0 and 1, found {rate}")
        if not mix or min(mix.values()) < 0 or sum(mix.values()) <= 0:
            raise ValueError("a mix needs at least one fault with a weight above 0, and none below")
        self._rate = rate
        self._seed = seed
        self._names = list(mix)
        self._steps = list(accumulate(mix.values()))
        self._max_in_a_row = max_in_a_row
        self._then = as_responder(then)
        self._n_seen: dict[str, int] = {}

    def __call__(self, request: Request) -> Reply:
        n_seen = self._n_seen.get(request.body_hash, 0)
        self._n_seen[request.body_hash] = n_seen + 1
        name = self.fault_for(request.body_hash, n_seen)
        if name is None:
            return self._then(request)
        return FAULTS[name](request, self._draws(request.body_hash, n_seen)[2])

    def fault_for(self, body_hash: str, n_seen: int) -> str | None:
        """The fault that a request gets, so that a test can tell what must come out.

        Args:
            body_hash: `Request.body_hash`.
            n_seen: How often that body came before: 0 for the first try.

        Returns:
            A name in `FAULTS`, or None for a sound reply.
        """
        if self._max_in_a_row is not None and n_seen % (self._max_in_a_row + 1) == self._max_in_a_row:
            return None
        chance, kind, _ = self._draws(body_hash, n_seen)
        if chance >= self._rate * 2**64:
            return None
        return self._names[bisect_right(self._steps, kind / 2**64 * self._steps[-1], hi=len(self._names) - 1)]

    def _draws(self, body_hash: str, n_seen: int) -> tuple[int, int, int]:
        """Three numbers in [0, 2**64): whether, which, and how."""
        digest = hashlib.blake2b(f"{self._seed}|{body_hash}|{n_seen}".encode(), digest_size=24).digest()
        chance, kind, detail = (int.from_bytes(digest[start : start + 8], "big") for start in (0, 8, 16))
        return chance, kind, detail


def seeded_faults(
    rate: float,
    seed: int,
    mix: Mapping[str, float] = RETRYABLE_MIX,
    *,
    max_in_a_row: int | None = None,
    then: Script | None = None,
) -> SeededFaults:
    """Faults that depend on the seed, the request and how often it was seen; not on order or time.

    Each try of a request draws anew, so a retry recovers with probability 1 - rate. Requests with equal bodies
    that are in flight together share one row of outcomes.

    Args:
        rate: Share of tries that go wrong, 0 to 1.
        seed: Another seed is another storm.
        mix: Weights by name in `FAULTS`; `RETRYABLE_MIX`, `REPLY_MIX`, or your own. `hang` is in neither.
        max_in_a_row: After at most so many faults a request gets its sound reply, so that a client with more
            retries than that must end with every case answered. None sets no bound.
        then: What sound requests get; the default verdict if None.

    Raises:
        ValueError: Rate or mix cannot be used.
    """
    return SeededFaults(rate, seed, mix, max_in_a_row, then)
