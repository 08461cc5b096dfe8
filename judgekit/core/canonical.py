"""Canonical JSON: the one byte form of a value, for hashes."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Sorted keys, no white space, UTF-8, strict (no NaN): equal values give equal bytes.

    Raises:
        ValueError: the value holds NaN or an infinity.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )


def canonical_sha256(value: Any) -> str:
    """SHA-256 of the canonical JSON, hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
