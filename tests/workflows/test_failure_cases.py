"""Whether every known failure has a test, over all files of such tests."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import REPOSITORY

SHARED = REPOSITORY.parent / "shared" / "cases"
TESTS = sorted((REPOSITORY / "tests").rglob("test_*.py"))
FIRST_LIST = re.findall(
    r"[A-G]\d\d",
    """
    A01 A02 A03 A05 A09 A10 A11 A12 A13 A15 A16 A17 A19 A20 A22 A25 A27 A30 A31 A32 A34 A35 A36 A37 A39 A40 A41 A42
    A43 A44 A48 A49 A51 A52 A54 A55 A56 A58 A59 A61 A62 A63 A64 A65 B01 B05 B06 B08 B10 B11 B12 B13 B14 B15 B16 B17
    B18 B19 B22 B24 B25 B26 B28 C01 C02 C04 C06 C07 C08 C10 C11 C12 C14 C16 C18 C19 C21 C22 C23 C25 C26 C27 C28 C29
    C30 C34 D02 D03 D04 D07 D09 D10 D11 D13 D14 D15 D16 D17 D18 D20 D21 E01 E02 E03 E05 E07 E08 E09 E10 E11 E12 E13
    E14 E15 E17 E20 E24 F01 F02 F04 F05 F06 F07 F10 F11 F12 F14 G02 G03 G05 G06 G07 G08 G09
    """,
)
"""Ids by kind: A replies, B transport, C data, D caching and resume, E figures, F runtime, G reports."""
SECOND_LIST = [f"T2-{number:02}" for number in (*range(1, 18), 19, 20, 22, 23, 25, 37, 38, *range(41, 51))]
"""Found by using the product."""
ATTACKS = [f"ATTACK-{number:02}" for number in range(1, 19)]
"""Found by attacking the product."""


def names_of(path: Path) -> Iterator[str]:
    """Names of test functions (`test_a01_...` as `A01-...`) and of rows of their tables (`id="A01-..."`)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name.removeprefix("test_").upper().replace("_", "-")
        elif isinstance(node, ast.keyword) and node.arg == "id" and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def ids_in(pattern: str, files: list[Path]) -> set[str]:
    """Ids with which names of tests begin."""
    found = (re.match(rf"({pattern})(?:-|$)", name) for path in files for name in names_of(path))
    return {match[1] for match in found if match}


def test_every_case_of_the_first_list_has_a_test_and_every_test_a_case() -> None:
    files = [path for path in TESTS if re.match(r"test_failure_cases_(?!2_)", path.name)]
    assert sorted(ids_in(r"[A-G]\d\d", files)) == FIRST_LIST


def test_every_case_of_the_second_list_has_a_test_and_every_test_a_case() -> None:
    assert sorted(ids_in(r"T2-\d\d", TESTS)) == SECOND_LIST


def test_every_fault_that_an_attack_found_has_a_test_and_every_test_a_fault() -> None:
    assert sorted(ids_in(r"ATTACK-\d\d", TESTS)) == ATTACKS


@pytest.mark.parametrize(("name", "ids"), [("failures.jsonl", FIRST_LIST), ("failures_2.jsonl", SECOND_LIST)])
def test_the_lists_are_those_of_the_reports(name: str, ids: list[str]) -> None:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not there: the reports are not a part of the repository")
    assert (
        sorted(json.loads(line)["id"] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()) == ids
    )
