"""CONTRIBUTING.md as a newcomer follows it: each example is put where it says, and runs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(
    r"`((?:judgekit|prompts)/[\w/]+\.(?:py|toml))`[^`\n]*(?:`[^`\n]*`[^`\n]*)?:\n\n```(?:python|toml)\n(.*?)```",
    re.DOTALL,
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with every example of the page in it."""
    place = tmp_path_factory.mktemp("checkout")
    for name in ("judgekit", "prompts", "configs"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path, code in EXAMPLE.findall(PAGE):
        (place / path).parent.mkdir(exist_ok=True)
        with (place / path).open("a", encoding="utf-8") as file:  # a function goes below those that are there
            file.write(f"\n\n{code}")
    summary = place / "judgekit" / "reports" / "markdown.py"
    line = "parts += latency_section(summary)"
    assert f"`{line}`" in PAGE
    text = summary.read_text().replace('    return "\\n".join(parts)', f'    {line}\n    return "\\n".join(parts)', 1)
    summary.write_text(f"{text}\n\nfrom judgekit.reports.latency_section import latency_section  # noqa: E402\n")
    return place


def judgekit(checkout: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-m", "judgekit", *arguments]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_has_an_example_of_everything_that_can_be_added() -> None:
    assert [path for path, _ in EXAMPLE.findall(PAGE)] == [
        "judgekit/metrics/brevity.py",
        "judgekit/judges/language_match.py",
        "prompts/language_match/v1.toml",
        "judgekit/providers/constant.py",
        "judgekit/systems/echo.py",
        "judgekit/storage/formats/chatlog.py",
        "judgekit/workflows/longest.py",
        "judgekit/cli/look.py",
        "judgekit/reports/latency_section.py",
    ]


@pytest.mark.slow
def test_every_example_of_the_page_works_where_it_is_put(checkout: Path) -> None:
    rows = [
        {"id": "q1", "ask": "How long?", "reply": "48 hours."},
        {"id": "q2", "ask": "Who?", "reply": "Nobody at all."},
    ]
    (checkout / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    config = {
        "name": "try",
        "cases": {"path": "log.jsonl", "format": "chatlog"},
        "system": {"name": "recorded", "path": "log.jsonl", "format": "chatlog"},
        "metrics": [{"name": "brevity", "args": {"max_words": 2}}],
        "models": {"control": {"provider": "constant", "model": "4"}},
        "judges": [{"name": "correctness", "model": "control"}],
    }
    (checkout / "try.json").write_text(json.dumps(config))
    figures = json.loads(judgekit(checkout, "run", "try.json", "--run-id", "t1", "--json"))["metrics"]["overall"]
    assert figures["brevity"]["value"] == 0.5  # two words, then three
    assert figures["correctness"]["value"] == 4
    (checkout / "live.json").write_text(json.dumps({**config, "system": {"name": "echo", "prefix": "Q: "}}))
    live = json.loads(judgekit(checkout, "run", "live.json", "--run-id", "t2", "--json"))
    outputs = [json.loads(line) for line in (checkout / live["run_dir"] / "outputs.jsonl").read_text().splitlines()]
    assert [output["answer"] for output in outputs] == ["Q: How long?", "Q: Who?"]
    assert judgekit(checkout, "longest", "t1", "--n", "1").splitlines() == ["characters  case", "14          q2"]
    assert "longest" in judgekit(checkout, "--help")
    quick = judgekit(checkout, "quickstart", "--json")
    assert "\n## Latency\n\n| stage |" in (Path(checkout) / json.loads(quick)["run_dir"] / "summary.md").read_text()


@pytest.mark.slow
def test_the_judge_of_the_page_reads_its_verdict(checkout: Path) -> None:
    code = re.findall(r"```python\n(import json\n.*?)```", PAGE, re.DOTALL)[0]
    (checkout / "cases.jsonl").write_text('{"id": "q1", "question": "How long?"}\n')
    (checkout / "outputs.jsonl").write_text('{"case_id": "q1", "answer": "48 hours."}\n')
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "value=1.0" in done.stdout
