"""What may change in a config between a run and its resume."""

from typing import Any

RESUMABLE_CHANGES = ("budget", "results_dir", "$schema", "gates", "report", "spot_check.repeat_n")
"""Parts of a config that may change between a run and its resume: they change no verdict."""

RESUMABLE_MODEL_CHANGES = (
    "max_concurrency",
    "timeout_seconds",
    "max_attempts",
    "api_key_env",
    "allow_provider_temperature",
    "prices",
)
"""Of `models.<id>`. Allowing the provider's temperature changes no request: the server decides which one it takes."""


def config_changes(old: Any, new: Any, path: str = "") -> list[str]:
    """Paths at which two configs differ, apart from parts that change no verdict."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in sorted({*old, *new}):
            where = f"{path}.{key}" if path else key
            parts = where.split(".")
            harmless = where in RESUMABLE_CHANGES or (
                parts[0] == "models" and len(parts) == 3 and parts[2] in RESUMABLE_MODEL_CHANGES
            )
            # A run of an older judgekit does not have a key that was added since; left out, it is empty.
            before, now = (None if value == {} else value for value in (old.get(key), new.get(key)))
            if not harmless and before != now:
                found += config_changes(before, now, where)
        return found
    return [] if old == new else [path]
