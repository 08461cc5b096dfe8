"""A notebook executed by a kernel of its own, and what a browser shows of it: live bars, results, hostile names."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judgekit.testing import FaultServer, with_latency
from tests.builders import REPOSITORY

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=\"document.title='hit'\">"

CELLS = [
    """
import judgekit, pandas as pd
models = {"judge": {"model": "m-2026-01-01", "base_url": URL, "max_concurrency": 4}}
frame = pd.DataFrame({
    "question": [f"How hot is kiln {n}?" for n in range(40)],
    "answer": ["It is fired at 1240 degrees."] * 40,
    "retrieved": [["The kiln is fired at 1240 degrees."]] * 40,
})
gates = [{"metric": "error_rate", "op": "<=", "value": 0.5}]
result = judgekit.evaluate(frame, judges=["groundedness"], models=models, gates=gates, results_dir=PLACE)
result
""",
    """
async def ask(case):
    return {"answer": case.question, "retrieved": [{"text": case.question}]}
live = await judgekit.aevaluate(frame[["question"]], system=ask, judges=["groundedness"], models=models)
print(live)
""",
    "result.to_pandas().head(3)",
    "judgekit.rejudge(result).compare(result)",
]


def executed(tmp_path: Path, cells: list[str]) -> Path:
    """The page of an executed notebook."""
    for package in ("nbconvert", "ipykernel"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; it is in the dev extra")
    made: list[dict[str, Any]] = [
        {"cell_type": "code", "execution_count": None, "id": f"c{n}", "metadata": {}, "outputs": [], "source": text}
        for n, text in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "try.ipynb").write_text(json.dumps(notebook))
    own = {name: str(tmp_path / "home") for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    result = subprocess.run(
        [sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", "--execute", "try.ipynb"],
        cwd=tmp_path,
        env={**os.environ, **own, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return tmp_path / "try.html"


def test_a_notebook_shows_bars_results_and_comparisons_and_runs_no_name(tmp_path: Path, browser: Any) -> None:
    with FaultServer(with_latency(0.002)) as server:
        first = CELLS[0].replace("URL", repr(server.base_url)).replace("PLACE", repr(HOSTILE))
        page_path = executed(tmp_path, [first, *CELLS[1:]])
    context = browser.new_context(viewport={"width": 1000, "height": 800}, offline=True)
    page = context.new_page()
    page.goto(page_path.as_uri(), wait_until="domcontentloaded")
    page.wait_for_timeout(300)
    shot = os.environ.get("JUDGEKIT_SCREENSHOTS")
    if shot:
        page.screenshot(path=Path(shot) / "notebook.png", full_page=True)
    bars = page.locator("progress")
    assert [bars.nth(n).evaluate("bar => [bar.value, bar.max]") for n in range(bars.count())] == [[40, 40]] * 4
    assert [bars.nth(n).is_visible() for n in range(bars.count())] == [True] * 4
    said = page.locator("body").inner_text()
    for text in ("system python: 40 of 40, in ", "evaluate, 40 cases: Good enough", HOSTILE,
                 "error_rate <= 0.5: passed, 0.0000", "no difference at all in"):  # fmt: skip
        assert text in said
    assert page.locator("td", has_text="groundedness_pass_rate").count() >= 1
    assert page.locator("pre", has_text="no difference at all").evaluate("pre => getComputedStyle(pre).fontFamily") == (
        "monospace"
    )
    assert page.title() != "hit"
    context.close()
