"""Whether every case of the list of known failures has a test, over all files of such tests."""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import REPOSITORY

CASES = REPOSITORY.parent / "shared" / "cases" / "failures.jsonl"
FILES = sorted(Path(__file__).parent.glob("test_failure_cases_*.py"))
KINDS = "ABCDEFG"
"""Replies, transport, data, caching, figures, runtime, reports."""


def ids_of(path: Path) -> Iterator[str]:
    """Ids in the names of test functions (`test_a01_...`) and of rows of their tables (`id="A01-..."`)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = ""
        if isinstance(node, ast.FunctionDef):
            name = node.name.removeprefix("test_").upper().replace("_", "-") if node.name.startswith("test_") else ""
        elif isinstance(node, ast.keyword) and node.arg == "id" and isinstance(node.value, ast.Constant):
            name = str(node.value.value)
        if found := re.match(r"([A-G]\d\d)(?:-|$)", name):
            yield found[1]


def test_every_case_of_the_list_has_a_test_and_every_test_a_case() -> None:
    if not CASES.exists():
        pytest.skip(f"{CASES} is not there: the list of failure cases is not a part of the repository")
    wanted = {json.loads(line)["id"] for line in CASES.read_text(encoding="utf-8").splitlines() if line.strip()}
    covered = {name for path in FILES for name in ids_of(path)}
    assert sorted(wanted - covered) == []
    assert sorted(covered - wanted) == []
    assert "".join(sorted({name[0] for name in wanted})) == KINDS


def test_every_kind_is_tested_where_there_is_no_list() -> None:
    counts = Counter(name[0] for path in FILES for name in set(ids_of(path)))
    assert "".join(sorted(counts)) == KINDS
    assert all(n >= 7 for n in counts.values())
