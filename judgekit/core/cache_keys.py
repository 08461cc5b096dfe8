"""Keys of the reply cache: `kind:version:hash`, what the hash is made of, and how to tell the version of a key."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from judgekit.core.text import canonical_sha256

KEY_VERSION = 2
"""Raised when the key is made in another way; older cache entries are then misses. Version 1 had no prefix."""

REPLY_PREFIX = f"reply:{KEY_VERSION}:"
CAPABILITIES_PREFIX = f"capabilities:{KEY_VERSION}:"
"""What a model takes is kept beside the replies."""
OUTPUT_PREFIX = f"output:{KEY_VERSION}:"
"""Outputs of a system under test that has a version."""
PREFIXES = (CAPABILITIES_PREFIX, OUTPUT_PREFIX, REPLY_PREFIX)
"""Of all keys that this version makes."""

PARTS = (
    "provider",
    "base_url",
    "model",
    "parameters",
    "reply_schema",
    "prompt",
    "messages",
    "attempt",
    "key_version",
)
"""Everything that goes into the key of a reply."""

_HASHED = {"parameters": "parameters", "reply_schema": "reply_schema", "prompt": "prompt_sha256"}
_N_DIGITS = 12
_KEY = re.compile(r"(?P<kind>[a-z]+):(?P<version>[0-9]{1,9}):[0-9a-f]{64}")
_BARE = re.compile(r"[0-9a-f]{64}")


def request_key(frame_sha256: str, messages_sha256: str) -> str:
    """The cache key of a request, from its two hashes."""
    return REPLY_PREFIX + hashlib.sha256(f"{frame_sha256}{messages_sha256}".encode()).hexdigest()


def output_key(system: Mapping[str, Any], seen: Any, case_id: str) -> str:
    """The cache key of what a system gives back for a case.

    Args:
        system: its settings and facts, its version among them.
        seen: what of the case its answer depends on.
        case_id: tells the repeats of a case apart.
    """
    return OUTPUT_PREFIX + canonical_sha256({"system": system, "seen": seen, "case_id": case_id})


def kind_and_version(key: str) -> tuple[str, str]:
    """What a key stands for and the version of its making; `("unknown", "unknown")` for a key that is none of ours."""
    match = _KEY.fullmatch(key)
    if match is not None:
        return match["kind"], match["version"]
    return ("reply", "1") if _BARE.fullmatch(key) else ("unknown", "unknown")


def is_current(key: str) -> bool:
    """Whether a run of this version can ask for the key."""
    return key.startswith(PREFIXES) and kind_and_version(key)[0] != "unknown"


def frame_parts(frame: Mapping[str, Any]) -> dict[str, str]:
    """The parts of a key that all cases share, as a judgment stores them.

    Returns:
        Short texts as they are; of anything else the first 12 digits of its hash.
    """
    parts = {name: str(frame[name]) for name in ("provider", "model", "attempt", "key_version")}
    parts["base_url"] = frame["base_url"] or ""
    for name, source in _HASHED.items():
        value = frame[source]
        parts[name] = short_hash(value if isinstance(value, str) else canonical_sha256(value))
    return parts


def short_hash(sha256: str) -> str:
    """The first digits of a hash, enough to tell two apart."""
    return sha256[:_N_DIGITS]
