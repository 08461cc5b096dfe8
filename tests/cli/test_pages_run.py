"""Shell lines and Python blocks of all pages run as they stand, in a folder with what the pages take for granted."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.builders import REPOSITORY, write_lines
from tests.cli.fork_server import ENVIRONMENT, judgekit

pytestmark = pytest.mark.slow

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
RUNS = [
    *("RUN", "RUN2", "AGAIN", "RUN_A", "RUN_B", "OLD_RUN", "NEW_RUN", "demo"),
    *("my-suite-20260131-142501-3f9a", "support-bot-20260131-142501-3f9a"),
]
"""The names that pages give to runs; runs of these very names are there."""

ELSEWHERE = {
    r"pip install": "installs the package, as the gate does",
    r"judgekit view": "serves until it is stopped: tests/workflows/test_viewer.py",
    r"label .*--web": "serves until it is stopped: tests/browser/test_labelling_in_browser.py",
    r"label .*--import": "takes a sheet that a person filled in: tests/cli/test_label_terminal.py",
    r"judgekit run --resume": "takes a run that stopped: tests/cli/test_kill_and_resume.py",
    r"judgekit cache (why|export|import)": "the baseline needs no cache: tests/cli/test_cache_commands.py",
    r"judgekit prefer|label NEW_RUN": "the baseline judges no pairs: tests/workflows/test_prefer.py",
    r"judgekit batch|judgekit record|vllm run-batch": "is about hosted models: tests/workflows/test_batch.py",
    r"judgekit run config\.yaml": "the config is that of the page: tests/cli/test_coming_from_page.py",
    r"vllm run-batch": "needs vLLM; what it writes: tests/workflows/test_batch.py",
    r"sbatch|kubectl": "needs a cluster; the scripts that it starts: tests/cli/test_scale_page.py",
    r"--dataset adc514": "names the hash of somebody's data: tests/cli/test_stored_run_commands.py",
}
"""Lines that are not run here, by pattern, and why."""

PYTHON_ELSEWHERE = {
    "README": "tests/cli/test_python_page.py",
    "coming-from": "needs the other tools; judgekit's side: tests/cli/test_coming_from_page.py",
    "extending": "tests/cli/test_extending_page.py",
    "peers": "needs the other tools: benchmarks/peers_failing.py",
    "pytest": "asks a system that is not there; the fixture: tests/cli/test_pytest_plugin.py",
    "python": "tests/cli/test_python_page.py",
    "reports": "needs Inspect and a log of it; the file that it reads: tests/cli/test_report_commands.py",
    "systems": "tests/cli/test_systems_page.py",
}
"""Pages whose Python is not run here, and where it is."""


def steps(page: Path) -> list[tuple[str, str]]:
    """Shell lines and Python blocks of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    found: list[tuple[str, str]] = []
    for indent, language, body in re.findall(r"^( *)```(bash|python)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        block = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        found += [(language, line) for line in ([block] if language == "python" else block.splitlines())]
    return found


def runs_here(page: Path, language: str, code: str) -> bool:
    """Whether no reason is given why it does not."""
    if language == "python":
        return page.stem not in PYTHON_ELSEWHERE
    return not any(re.search(pattern, code) for pattern in ELSEWHERE)


def runnable() -> list[Any]:
    """Pages with steps that run here."""
    pages = {page: [step for step in steps(page) if runs_here(page, *step)] for page in PAGES}
    return [pytest.param(page, found, id=page.stem) for page, found in pages.items() if found]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the configs, data and runs that pages name."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(REPOSITORY / "configs", folder / "configs")
    write_data(folder)
    config = json.loads((REPOSITORY / "configs" / "quickstart.json").read_text(encoding="utf-8"))
    del config["$schema"], config["indexing"]
    config |= {
        "name": "support-bot",
        "cases": "configs/quickstart/cases.jsonl",
        "system": {"name": "recorded", "path": "configs/quickstart/outputs.jsonl"},
        "models": {
            "baseline": {"provider": "lexical", "model": "overlap-2"},
            "other": {"provider": "lexical", "model": "overlap-strict-2"},
            "judge-2026": {"provider": "lexical", "model": "overlap-strict-2"},
        },
        "spot_check": {"n": 20, "model": "other"},
    }
    for name in ("config.json", "new.json", "prefer.json"):
        (folder / name).write_text(json.dumps(config), encoding="utf-8")
    for name in RUNS:
        done = judgekit("run", "config.json", "--run-id", name, cwd=folder)
        assert done.returncode == 0, done.text
        shutil.copy(folder / "configs/quickstart/labels.jsonl", folder / "results" / name / "labels.jsonl")
    for tag in ("main", "baseline", "nightly"):
        assert judgekit("runs", "tag", "RUN", tag, cwd=folder).returncode == 0
    return folder


def write_data(folder: Path) -> None:
    """The data files that pages name."""
    (folder / "answers.csv").write_text("id,question,answer,reference\n1,How hot?,1240 degrees,1240 degrees\n")
    (folder / "goldens.csv").write_text("input,actual_output,expected_output\nHow hot?,1240 degrees,1240 degrees\n")
    (folder / "qrels.txt").write_text("q1 0 d1 1\n")
    (folder / "bm25.run").write_text("q1 Q0 d1 1 2.0 bm25\n")
    paragraph = {
        "context": "It is hot.",
        "qas": [{"id": "1", "question": "Is it?", "answers": [], "is_impossible": True}],
    }
    squad = {"version": "v2.0", "data": [{"title": "Kiln", "paragraphs": [paragraph]}]}
    (folder / "dev-v2.0.json").write_text(json.dumps(squad))
    write_lines(folder / "cases.jsonl", [{"id": "q1", "question": "How hot?", "expected_chunk_ids": ["d1"]}])
    write_lines(folder / "outputs.jsonl", [{"case_id": "q1", "answer": "Hot.", "retrieved": [{"chunk_id": "d1"}]}])
    labels = (REPOSITORY / "configs/quickstart/labels.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in labels]
    keys = list(rows[0])
    table = [",".join(keys), *(",".join(str(row.get(key, "")) for key in keys) for row in rows)]
    (folder / "labels.csv").write_text("\n".join(table) + "\n", encoding="utf-8")


@pytest.mark.parametrize(("page", "found"), runnable())
def test_every_shell_line_and_python_block_of_a_page_runs(
    page: Path, found: list[tuple[str, str]], prepared: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "checkout"
    shutil.copytree(prepared, folder)
    make_room(folder, "\n".join(code for _, code in found))
    said = [f"{code}\n{words}" for language, code in found if (words := complaint(language, code, folder))]
    assert not said, "\n\n".join(said)


def make_room(folder: Path, lines: str) -> None:
    """Take away what the lines make themselves, and make a suite if they do not."""
    for name in re.findall(r"--run-id (\S+)", lines):
        shutil.rmtree(folder / "results" / name, ignore_errors=True)
    for name in re.findall(r"judgekit convert \S+ (\S+)", lines):
        (folder / name).unlink(missing_ok=True)
    if "judgekit init" not in lines:
        assert judgekit("init", "my-suite", cwd=folder).returncode == 0


def test_what_does_not_run_here_is_shown_where_its_reason_says() -> None:
    lines = [code for page in PAGES for language, code in steps(page) if language == "bash"]
    assert [pattern for pattern in ELSEWHERE if not any(re.search(pattern, line) for line in lines)] == []
    assert set(PYTHON_ELSEWHERE) <= {page.stem for page in PAGES}
    named = re.findall(r"(?:tests|benchmarks)/\S+", " ".join([*ELSEWHERE.values(), *PYTHON_ELSEWHERE.values()]))
    assert [path for path in named if not (REPOSITORY / path).exists()] == []


def complaint(language: str, code: str, folder: Path) -> str | None:
    """What a step says if it ends badly; a line that is told to fail on a finding may end with 1.

    A bucket is a folder here: tests/workflows/test_runs_on_s3.py has a real one.
    """
    code = code.replace("s3://my-bucket", f"file://{folder}/my-bucket")
    words = [] if language == "python" else shlex.split(code, comments=True)
    allowed = {0, 1} if any(word.startswith("--fail-on") for word in words) else {0}
    done: Any
    if words[:1] == ["judgekit"] and not set(words) & {"|", ">"}:
        done = judgekit(*words[1:], cwd=folder, JUDGEKIT_REMOTE_DIR=str(folder / "remote"))
        if words[1] == "run":
            time.sleep(1)  # `latest` goes by the second in which a run began
    elif re.search(r"\bjq ", code) and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    else:
        done = subprocess.run(
            [sys.executable, "-c", code] if language == "python" else ["bash", "-euo", "pipefail", "-c", code],
            cwd=folder,
            env=environment_of(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    text = done.stdout + done.stderr
    return None if done.returncode in allowed and "Traceback" not in text else f"{done.returncode}: {text[-600:]}"


def environment_of(folder: Path) -> dict[str, str]:
    """One in which `judgekit` is the program of this checkout."""
    short = folder / "bin" / "judgekit"
    short.parent.mkdir(exist_ok=True)
    short.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m judgekit "$@"\n')
    short.chmod(0o755)
    return {**ENVIRONMENT, "PATH": f"{short.parent}:{ENVIRONMENT['PATH']}", "PYTHONPATH": str(REPOSITORY)}
