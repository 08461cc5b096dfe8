"""The documents against the program: what they name must exist, and what exists must be named."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from pydantic import BaseModel

import judgekit.judges
import judgekit.metrics
from judgekit.analysis.drift_states import State
from judgekit.analysis.joint import JOINT_COLUMNS
from judgekit.cli.app import app
from judgekit.core.cases import (
    Case,
    DocumentPlace,
    Hit,
    Message,
    OutputError,
    Scope,
    Span,
    Support,
    SystemOutput,
    ToolCall,
    Usage,
)
from judgekit.core.components import Judge, Metric, discover
from judgekit.core.conditions import GateResult
from judgekit.core.config import RunConfig, SystemConfig
from judgekit.core.data_files import DataFile
from judgekit.core.history_points import HistoryPoint
from judgekit.core.indexed_documents import IndexedDocument
from judgekit.core.judgments import FailureKind, JudgeInput, Judgment
from judgekit.core.runs import Manifest, RunSummary
from judgekit.core.scores import Estimate, Score

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
RUN_EXAMPLE = "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/judgekit quickstart"
RUN_TESTS = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/python -m pytest"

each_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(path: Path, language: str) -> list[str]:
    """Fenced blocks of one language, also those inside lists, without their indent."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text_of(path), re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", body, flags=re.MULTILINE) for indent, body in found]


def commands_named(path: Path) -> Iterator[str]:
    """Every line of a shell block and every piece of inline code that calls judgekit."""
    shell = "".join(blocks(path, "bash")).splitlines()
    for code in [*shell, *re.findall(r"`(judgekit [^`]+)`", text_of(path))]:
        for match in re.finditer(r"(?:^|/|\s)judgekit ([a-z-][^|#&;]*)", code):
            yield match[1]


def anchors_of(path: Path) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text_of(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_the_readme_has_exactly_the_two_set_up_commands() -> None:
    lines = [line for line in text_of(ROOT / "README.md").splitlines() if re.search(r"\bpip\b|venv|\buvx?\b", line)]
    assert lines == [RUN_EXAMPLE, RUN_TESTS]
    assert [block for block in blocks(ROOT / "README.md", "bash") if "pip" in block] == [
        f"{RUN_EXAMPLE}\n",
        f"{RUN_TESTS}\n",
    ]


def test_the_gate_runs_the_test_command_of_the_readme_word_for_word() -> None:
    assert RUN_TESTS in text_of(ROOT / ".ci" / "run").splitlines()


@pytest.mark.slow
def test_what_the_tutorial_shows_of_the_quickstart_is_what_it_prints(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "judgekit", "quickstart"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    [shown] = [block for block in blocks(ROOT / "docs" / "tutorial.md", "text") if block.startswith("quickstart, ")]
    first, *whole = [line.removesuffix("...") for line in shown.splitlines() if line not in ("", "...")]
    printed = done.stdout.replace(done.stdout.split()[-1], whole[-1]).splitlines()
    assert [line for line in whole if line not in printed] == []
    assert printed[0].startswith(first)


@each_document
def test_every_command_and_option_that_a_document_names_exists(path: Path) -> None:
    known: Any = typer.main.get_command(app)
    for words in map(str.split, commands_named(path)):
        if words[0].startswith("-"):
            options = {name for parameter in known.params for name in parameter.opts}
        else:
            assert words[0] in known.commands, f"judgekit {words[0]}"
            command = known.commands[words[0]]
            if hasattr(command, "commands") and len(words) > 1:
                assert words[1] in command.commands, f"judgekit {' '.join(words[:2])}"
                command = command.commands[words[1]]
            options = {name for parameter in command.params for name in parameter.opts}
        unknown = {word for word in words if word.startswith("-")} - options - {"--help", "-h"}
        assert not unknown, f"judgekit {' '.join(words)}"


@each_document
def test_every_relative_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(path)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


@each_document
def test_every_example_can_be_parsed_and_every_example_config_is_valid(path: Path) -> None:
    for block in blocks(path, "json"):
        value = json.loads(block)
        if "cases" in value and "system" in value:
            RunConfig.model_validate(without_comments(value))
    for block in blocks(path, "toml"):
        tomllib.loads(block)
    for block in blocks(path, "python"):
        compile(block, str(path), "exec")


def without_comments(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_comments(item) for key, item in value.items() if key != "$comment"}
    return [without_comments(item) for item in value] if isinstance(value, list) else value


def config_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every key that a config can have, with `<id>` for names of the user's own and `[]` for entries of lists."""
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        yield key
        below = {dict: ".<id>.", tuple: "[]."}
        for inner, origin in models_in(field.annotation):
            yield from config_keys(inner, key + below.get(origin, "."))
    if model is SystemConfig:
        yield from config_keys(DataFile, prefix)


def models_in(annotation: Any, origin: Any = None) -> Iterator[tuple[type[BaseModel], Any]]:
    """Config models inside an annotation, each with the container it stands in."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, origin
    own = getattr(annotation, "__origin__", None)
    for argument in get_args(annotation):
        yield from models_in(argument, own if own in (dict, tuple) else origin)


def test_the_config_page_lists_every_key_and_no_other() -> None:
    [table] = re.findall(r"## Every key\n(.*?)\n## ", text_of(ROOT / "docs" / "config.md"), re.DOTALL)
    listed = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert sorted(listed) == sorted(set(config_keys(RunConfig)))


def field_names(*models: type[BaseModel]) -> set[str]:
    return {name for model in models for name in model.model_fields}


def score_names() -> set[str]:
    """Names of all figures, with `@k` for the cut-offs, and of the scores behind them."""
    found: set[str] = set()
    components: list[Metric | Judge] = [family() for family in discover(judgekit.metrics, Metric).values()]
    components += [judge() for judge in discover(judgekit.judges, Judge).values()]
    for component in components:
        for column in component.columns():
            found |= {column.name, column.aggregate or column.name}
        found |= {figure.name for figure in component.pooled()}
    found |= {column.name for column in JOINT_COLUMNS}
    return {re.sub(r"@\d+$", "@k", name) for name in found}


@pytest.mark.parametrize(
    ("page", "names"),
    [
        (
            "data.md",
            field_names(
                Case,
                Support,
                SystemOutput,
                Hit,
                Scope,
                DocumentPlace,
                OutputError,
                Usage,
                Span,
                IndexedDocument,
                Message,
                ToolCall,
            ),
        ),
        (
            "run-folder.md",
            field_names(Manifest, RunSummary, Judgment, JudgeInput, Score, Estimate, GateResult),
        ),
        ("metrics.md", score_names()),
        ("reliability.md", field_names(HistoryPoint) | set(get_args(State))),
        ("judges.md", set(get_args(FailureKind))),
    ],
)
def test_a_page_names_everything_that_it_is_about(page: str, names: set[str]) -> None:
    named = set(re.findall(r"`([^`\n]+)`", text_of(ROOT / "docs" / page)))
    assert not names - named
