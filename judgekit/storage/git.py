"""The commit of a git checkout, where a file stands in one."""

import re
import subprocess
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_SECONDS = 5.0


def commit_of(folder: Path) -> str | None:
    """The commit that is checked out where a folder is; None outside of a checkout, and where git says none."""
    command = ["git", "-C", str(folder), "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(  # noqa: S603  # fixed words and a path
            command, capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    commit = done.stdout.strip()
    return commit if done.returncode == 0 and _COMMIT.fullmatch(commit) else None
