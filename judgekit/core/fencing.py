"""Fences around judged text: what stands inside is data and cannot close its own fence.

The delimiters are derived from a hash of the text, so the same input always gives the same request.
"""

import hashlib
import re
from functools import lru_cache

_BLOCK = re.compile(r"<<<data (\w+) ([0-9a-f]{16})>>>\n(.*?)\n<<<end \1 \2>>>", re.DOTALL)


def fence(text: str, name: str) -> str:
    """The text between delimiters that carry its name and a hash that does not occur in it.

    Args:
        text: any text, however hostile.
        name: what it is, one word, such as `answer`.

    Raises:
        ValueError: the name is more than one word, so that the text could not be found again.
    """
    _check_name(name)
    salt = 0
    while True:
        digest = hashlib.sha256(f"{salt}:{name}:{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if digest not in text:
            return f"<<<data {name} {digest}>>>\n{text}\n<<<end {name} {digest}>>>"
        salt += 1


@lru_cache(maxsize=64)
def _check_name(name: str) -> None:
    if not re.fullmatch(r"\w+", name):
        raise ValueError(f"expected one word as the name of fenced data, found {name!r}")


def unfence(prompt: str) -> list[tuple[str, str]]:
    """(name, text) of every fenced block, in order: what `fence` was given."""
    return [(match[1], match[3]) for match in _BLOCK.finditer(prompt)]
