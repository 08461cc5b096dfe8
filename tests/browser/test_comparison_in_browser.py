"""The page of a comparison in a real browser: it filters, asks for nothing, and runs nothing that a run brought."""

from pathlib import Path
from typing import Any

import judgekit
from judgekit.wiring import Options
from judgekit.wiring.comparing import compare_page, open_comparison
from judgekit.workflows.compare import CompareOptions, compare
from tests.builders import case, output, write_suite

HOSTILE = '</script><script>document.title="owned"</script><img src="http://127.0.0.1:9/x.png" onerror="alert(1)">'


def page_of(folder: Path) -> Path:
    rows = [case(f"c{number}", expected_chunk_ids=["k1"], question=HOSTILE) for number in range(6)]
    lost = [
        output(f"c{number}", answer=HOSTILE, retrieved=[{"chunk_id": "k1" if number else HOSTILE, "text": "Hot."}])
        for number in range(6)
    ]
    for run_id, hits in (("a", None), ("b", lost)):
        config = write_suite(folder / run_id, n_cases=6, case_rows=rows, output_rows=hits)
        judgekit.run(config, run_id=run_id, results_dir=folder / "results")
    target = folder / "compare.html"
    with open_comparison("a", "b", CompareOptions(), Options(results_dir=folder / "results")) as job:
        target.write_text("".join(compare_page(job, compare(job), [HOSTILE])), encoding="utf-8")
    return target


def test_cases_are_filtered_by_kind_and_text_and_nothing_hostile_runs(watched: Any, tmp_path: Path) -> None:
    page = watched.page
    page.goto(page_of(tmp_path).as_uri())
    page.wait_for_selector("#shown:not(:empty)")
    assert page.inner_text("#shown") == "6 of 6 shown"
    page.select_option("#kind", "regression")
    assert page.inner_text("#shown") == "1 of 6 shown"
    page.click("details.compared:not([hidden]) summary")
    assert page.locator("details.compared:not([hidden])").inner_text().count("<script>") == 3  # question, answer, hit
    page.select_option("#kind", "")
    page.fill("#text", "c3")
    assert page.inner_text("#shown") == "1 of 6 shown"
    assert page.title() == "a and b"
