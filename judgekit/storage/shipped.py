"""Files that come with judgekit: prompts and the quickstart."""

from pathlib import Path

import judgekit


def shipped(name: str) -> Path:
    """Folder `prompts` or `configs`, in an installed wheel or a checkout."""
    package = Path(judgekit.__file__).parent
    installed = package / "_shipped" / name
    return installed if installed.is_dir() else package.parent / name
