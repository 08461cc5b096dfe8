"""Names of formats, as a config says them."""

import judgekit.storage.formats
from judgekit.core.components import names_in

STORED_AS = ("jsonl", "json", "csv", "xlsx", "yaml", "folder", "parquet", "arrow")
"""Formats that say how rows are stored and not what they hold."""


def known_formats() -> tuple[str, ...]:
    """Those, and formats that also say what rows hold: one a file of `storage/formats`, and those of other packages."""
    return (*STORED_AS, *names_in(judgekit.storage.formats))


def formats_named() -> str:
    """The same for messages."""
    return ", ".join(known_formats())
