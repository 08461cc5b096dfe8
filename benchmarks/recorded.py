"""Figures measured on recorded verdicts of real judges: what one is, and the rows that it comes from."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One figure and what is asked of it."""

    name: str
    what: str
    value: float
    wanted: str
    holds: bool
    details: dict[str, Any]


class Skipped(Exception):
    """A figure whose data are not there; says which."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file.

    Raises:
        Skipped: there is no such file.
    """
    if not path.is_file():
        raise Skipped(f"no {path}")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
