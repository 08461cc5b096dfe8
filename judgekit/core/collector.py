"""Memory while many records are made: the garbage collector out of the way, and freed pieces kept for the next."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Records hold no cycles, and walking over all of them again and again can take more than half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def keep_freed_memory() -> None:
    """Have a C library keep what is freed, as it does up to the largest piece that it was given back once.

    Else each piece of a large file costs the page faults of fresh memory.
    """
    bytes(1 << 24)
