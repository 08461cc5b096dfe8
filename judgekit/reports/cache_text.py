"""What the `judgekit cache` commands print."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from judgekit.reports.safe_text import printable

_STATES = {
    "present": "is in the cache",
    "not_pinned": "is in the cache, but of another model or upstream than the pinned one",
    "absent": "is not in the cache",
    "damaged": "is in the cache, but damaged",
}


def stats_text(record: Mapping[str, Any]) -> str:
    """The counts of a cache, one a line."""
    old = record["n_other_versions"]
    rows = [
        ("replies", f"{record['n_replies']:,} (key version {record['key_version']})"),
        ("outputs", f"{record['n_outputs']:,}"),
        ("capabilities", f"{record['n_capabilities']:,}"),
        ("other key versions", f"{sum(old.values()):,}{_by_version(old)}"),
        ("damaged", f"{record['n_damaged']:,}" + ("; see `judgekit cache verify`" if record["n_damaged"] else "")),
        ("on disk", size_text(record["bytes_on_disk"])),
    ]
    if record["oldest"] is not None:
        rows += [("oldest", record["oldest"]), ("newest", record["newest"])]
    return printable("\n".join([record["path"], *(f"  {name:<20}{value}" for name, value in rows)]))


def _by_version(counts: Mapping[str, int]) -> str:
    if not counts:
        return ""
    versions = ", ".join(f"version {version}: {n:,}" for version, n in counts.items())
    return f" ({versions}); never asked for again, drop them with `judgekit cache clear --old`"


def size_text(n_bytes: int) -> str:
    """`1.2 MB`."""
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def why_text(records: Sequence[Mapping[str, Any]]) -> str:
    """One paragraph for each judge: how it was answered, the parts of the key, and what would happen now."""
    text = "\n\n".join("\n".join(_why_lines(record)) for record in records)
    # 64 digits of a build twice on a line push what changed off the screen; --json has them.
    return printable(re.sub(r"(sha256:[0-9a-f]{12})[0-9a-f]{52}", r"\1...", text))


def _why_lines(record: Mapping[str, Any]) -> list[str]:
    lines = [f"case {record['case_id']}, judge {record['judge']}: {_origin(record)}"]
    for part in record["parts"]:
        lines.append(f"  {part['part'].replace('_', ' '):<14}{_part_text(part)}")
    if record["key_then"] is not None:
        lines.append(f"  {'key then':<14}{record['key_then']}")
    if record["key_now"] is not None:
        lines.append(f"  {'key now':<14}{record['key_now']} {_STATES[record['entry']]}")
    lines += [f"  note: {note}" for note in record["notes"]]
    return [*lines, record["conclusion"]]


def _origin(record: Mapping[str, Any]) -> str:
    if not record["judged"]:
        return "not judged in this run"
    came = "from the cache" if record["from_cache"] else "from the model, not from the cache"
    failed = f", without a verdict ({record['failure']})" if record["failure"] else ""
    return f"the stored judgment came {came}{failed}, {record['created_at']}"


def _part_text(part: Mapping[str, Any]) -> str:
    if part["same"]:
        return f"same      {part['now']}".rstrip()
    if part["same"] is None:
        return f"unknown   now {part['now'] or 'not set'}; {part['detail']}"
    change = f"changed   {part['before'] or 'not set'} -> {part['now'] or 'not set'}"
    return f"{change}: {part['detail']}" if part["detail"] else change
