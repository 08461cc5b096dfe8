"""Reading small files of cases and outputs in tests."""

import os
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.case_files import iterate_outputs, load_cases
from tests.builders import REPOSITORY

SHARED = Path(os.environ.get("JUDGEKIT_SHARED_FILES") or REPOSITORY.parent / "shared/data/files")
"""Files of other tools, kept beside the repository and not in it."""

needs_shared_files = pytest.mark.skipif(
    not SHARED.is_dir(),
    reason="no ../shared/data/files beside the repository, and JUDGEKIT_SHARED_FILES names no folder",
)


def shared(name: str) -> Path:
    return SHARED / name


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path


def cases_of(path: Path, notices: list[tuple[str, str]] | None = None, **how: Any) -> list[Case]:
    return load_cases(DataFile(path=str(path), **how), path, notices)


def load_outputs(source: DataFile, path: Path, notices: list[tuple[str, str]] | None = None) -> list[SystemOutput]:
    return list(iterate_outputs(source, path, notices))


def outputs_of(path: Path, notices: list[tuple[str, str]] | None = None, **how: Any) -> list[SystemOutput]:
    return load_outputs(DataFile(path=str(path), **how), path, notices)


def said(record: Case | SystemOutput) -> dict[str, Any]:
    """What a record says, without what it leaves out."""
    return record.model_dump(mode="json", exclude_defaults=True)


def complaint(path: Path, kind: str = "cases", **how: Any) -> str:
    """What is said about a file that cannot be used, without the folder that it is in."""
    with pytest.raises(InputError) as caught:
        (cases_of if kind == "cases" else outputs_of)(path, **how)
    return str(caught.value).replace(f"{path.parent}/", "")
