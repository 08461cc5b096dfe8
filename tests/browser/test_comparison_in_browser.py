"""The page of a comparison in a real browser: it filters, asks for nothing, and runs nothing that a run brought."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.workflows.compare import compare, comparison_pieces
from judgekit.workflows.compared_runs import CompareOptions, open_runs
from judgekit.workflows.models import Options
from tests.builders import REPOSITORY, case, output, read_lines, write_lines, write_suite

pytestmark = pytest.mark.slow

HOSTILE = '</script><script>document.title="owned"</script><img src="http://127.0.0.1:9/x.png" onerror="alert(1)">'


def page_of(folder: Path) -> Path:
    rows = [case(f"c{number}", expected_chunk_ids=["k1"], question=HOSTILE) for number in range(6)]
    lost = output("c0", answer=HOSTILE, retrieved=[{"chunk_id": HOSTILE, "text": "Hot."}])
    hits = [lost, *(output(f"c{number}") for number in range(1, 6))]
    for run_id, found in (("a", None), ("b", hits)):
        config = write_suite(folder / run_id, n_cases=6, case_rows=rows, output_rows=found)
        judgekit.run(config, run_id=run_id, results_dir=folder / "results")
    target = folder / "compare.html"
    with open_runs("a", "b", Options(results_dir=folder / "results")) as sides:
        pieces = comparison_pieces(sides, compare(sides, CompareOptions()), [HOSTILE], "html")
        target.write_text("".join(pieces), encoding="utf-8")
    return target


def wide_page_of(folder: Path) -> Path:
    """The shipped example beside a worse system of which other cases fail, so that every column has something."""
    shutil.copytree(REPOSITORY / "configs", folder / "suite")
    outputs = folder / "suite" / "quickstart" / "outputs.jsonl"
    config = folder / "suite" / "quickstart.json"
    judgekit.run(config, run_id="quickstart-20260131-142501-3f9a", results_dir=folder / "results")
    rows = read_lines(outputs)
    for number, row in enumerate(rows):
        if number % 3 == 0:
            row["retrieved"] = row.get("retrieved", [])[1:]
        if number % 8 == 1:
            row["error"] = {"kind": "timeout", "message": "no reply"}
    write_lines(outputs, rows)
    judgekit.run(config, run_id="quickstart-20260207-142501-77b0", results_dir=folder / "results")
    target = folder / "compare.html"
    names = ("quickstart-20260131-142501-3f9a", "quickstart-20260207-142501-77b0")
    wanted = CompareOptions(allows_mismatch=True)
    with open_runs(*names, Options(results_dir=folder / "results")) as sides:
        pieces = comparison_pieces(sides, compare(sides, wanted), [], "html")
        target.write_text("".join(pieces), encoding="utf-8")
    return target


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_tables_of_differences_fit_a_window_of_1280_pixels(watched: Any, tmp_path: Path, scheme: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(wide_page_of(tmp_path).as_uri())
    page.wait_for_selector("#shown:not(:empty)")
    page.evaluate("document.querySelectorAll('details.more').forEach(part => { part.open = true })")
    header = page.inner_text("#figures thead")
    assert all(name in header for name in ("failed a / b", "if failed", "whole runs", "detectable"))
    widths = page.evaluate("[...document.querySelectorAll('.scroll')].map(box => [box.scrollWidth, box.clientWidth])")
    assert len(widths) == 3
    assert all(inside <= outside for inside, outside in widths), widths


def test_cases_are_filtered_by_kind_and_text_and_nothing_hostile_runs(watched: Any, tmp_path: Path) -> None:
    page = watched.page
    page.goto(page_of(tmp_path).as_uri())
    page.wait_for_selector("#shown:not(:empty)")
    assert page.inner_text("#shown") == "6 of 6 shown"
    page.select_option("#kind", "worse")
    assert page.inner_text("#shown") == "1 of 6 shown"
    assert page.locator("details.compared:not([hidden])").inner_text().count("<script>") == 3  # question, answer, hit
    page.select_option("#kind", "")
    page.fill("#text", "c3")
    assert page.inner_text("#shown") == "1 of 6 shown"
    assert page.title() == "a and b"


def test_which_answers_got_worse_is_answered_on_the_first_screen(watched: Any, tmp_path: Path) -> None:
    page = watched.page
    page.set_viewport_size({"width": 1400, "height": 900})
    page.goto(wide_page_of(tmp_path).as_uri())
    page.wait_for_selector("#shown:not(:empty)")
    finding = page.locator(".finding")
    assert "worse" in finding.inner_text()
    worst = page.locator("details.compared").first
    assert worst.get_attribute("open") is not None
    assert worst.bounding_box()["y"] < 900
    page.select_option("#kind", "worse")
    assert page.locator("details.compared:visible").count() > 0
    page.select_option("#kind", "no value in b")
    page.select_option("#score", "correctness")
    by_judge = page.locator("details.compared:visible").count()
    page.select_option("#slice", "category=factual")
    assert 0 < page.locator("details.compared:visible").count() <= by_judge
    assert page.locator("del, ins").count() == 0  # the answers are the same, hits and errors differ


def test_a_phone_shows_the_first_case_on_its_first_screen(watched: Any, tmp_path: Path) -> None:
    page = watched.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(wide_page_of(tmp_path).as_uri())
    page.wait_for_selector("#shown:not(:empty)")
    assert page.locator("details.compared").first.bounding_box()["y"] < 760
    assert page.locator("#warnings").get_attribute("open") is None
    page.locator("#warnings summary").click()
    assert "coverage_differs" in page.locator("#warnings").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_cases_without_a_value_on_a_side_can_be_looked_at_alone(watched: Any, tmp_path: Path) -> None:
    failed = {"error": {"kind": "timeout", "message": "no reply"}}
    both = output("c1", **failed)
    sides = {
        "a": [output("c0", **failed), both, *(output(f"c{number}") for number in range(2, 6))],
        "b": [output("c0"), both, output("c2", **failed), *(output(f"c{number}") for number in range(3, 6))],
    }
    for run_id, found in sides.items():
        config = write_suite(tmp_path / "suites" / run_id, n_cases=6, output_rows=found)
        judgekit.run(config, run_id=run_id, results_dir=tmp_path)
    target = tmp_path / "compare.html"
    with open_runs("a", "b", Options(results_dir=tmp_path)) as opened:
        target.write_text("".join(comparison_pieces(opened, compare(opened, CompareOptions()), [], "html")))
    page = watched.page
    page.goto(target.as_uri())
    page.wait_for_selector("#shown:not(:empty)")
    page.select_option("#score", "groundedness")
    for kind, case_ids in (("no value in a", ["c0"]), ("no value in either", ["c1"]), ("no value in b", ["c2"])):
        page.select_option("#kind", kind)
        shown = page.locator("details.compared:visible")
        assert shown.evaluate_all("cases => cases.map(one => one.dataset.case)") == case_ids
    options = page.locator("#kind option").all_inner_texts()
    assert options[:3] == ["all", "worse (1)", "no value in b (1)"]


def test_differing_words_are_marked_keys_walk_and_a_link_opens_a_case(watched: Any, tmp_path: Path) -> None:
    outputs = [output(f"c{number}", answer="It is hot today.") for number in range(6)]
    colder = [output("c0", answer="It is cold <b>today</b>."), *outputs[1:]]
    for run_id, found in (("a", outputs), ("b", colder)):
        judgekit.run(
            write_suite(tmp_path / "suites" / run_id, n_cases=6, output_rows=found), run_id=run_id, results_dir=tmp_path
        )
    target = tmp_path / "compare.html"
    with open_runs("a", "b", Options(results_dir=tmp_path)) as sides:
        target.write_text("".join(comparison_pieces(sides, compare(sides, CompareOptions()), [], "html")))
    page = watched.page
    page.goto(f"{target.as_uri()}#case=c5")
    page.wait_for_selector("#shown:not(:empty)")
    assert page.locator("details.compared[data-case=c5]").get_attribute("open") is not None
    marked = page.locator("details.compared[data-case=c0]")
    assert marked.locator("del").first.text_content().strip() == "hot"
    assert marked.locator("ins").first.text_content().strip().startswith("cold")
    assert marked.locator("ins b").count() == 0
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.parentElement.dataset.case") != "c5"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "text"
