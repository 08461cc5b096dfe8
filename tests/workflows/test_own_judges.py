"""The user's own judges, one of each kind, through every command that works on verdicts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.comparison import Comparison
from judgekit.reports.compare_text import compare_markdown, plain_text
from judgekit.testing import FaultServer
from judgekit.workflows.compare import compare, comparison_pieces
from judgekit.workflows.compared_runs import CompareOptions, open_runs
from judgekit.workflows.models import Options
from tests.builders import case, read_json
from tests.own_judges import (
    BRAND,
    MEDICAL,
    OWN,
    RULES,
    STEADY,
    TONE,
    TURNED,
    Said,
    answering,
    own_suite,
    telling,
    without_pass,
)
from tests.workflows.stored_suites import check, rejudge

BARE = tuple(map(without_pass, OWN))
TELLING = tuple(map(telling, OWN))


def own_run(folder: Path, *judges: dict[str, Any], says: Mapping[str, Said] = STEADY, **config: Any) -> Path:
    """A finished run `a`; returns its folder."""
    judges = judges or OWN
    with FaultServer(answering(says, judges=judges)) as server:
        judgekit.run(own_suite(folder, server, *judges, **config), run_id="a")
    return folder / "results" / "a"


def checked(folder: Path, *judges: dict[str, Any], second: Mapping[str, Said] = TURNED, **wanted: Any) -> Path:
    """The same with a second opinion of another model on every verdict."""
    judges = judges or OWN
    with FaultServer(answering(STEADY, judges=judges, by_model={"other": second})) as server:
        judgekit.run(own_suite(folder, server, *judges), run_id="a")
        check(folder / "results" / "a", **{"against": "model:other", **wanted})
    return folder / "results" / "a"


def reports_of(run: Path) -> Any:
    return read_json(run / "metrics.json")["judge_reliability"]["by_judge"]


def overall(run: Path) -> dict[str, Any]:
    figures = read_json(run / "metrics.json")["overall"]
    return {name: figure.get("value", figure) for name, figure in figures.items()}


# figures and gates


def test_each_kind_has_its_figures_and_a_pass_rate(tmp_path: Path) -> None:
    # tone is 2 in 4 of 12 cases, else 5; medical is yes in 3; brand is on in 6; rules: 6 short, 8 with a next step
    found = overall(own_run(tmp_path))
    assert found["tone"] == 4.0
    assert found["tone.distribution"] == {"1": 0, "2": 4, "3": 0, "4": 0, "5": 8}
    assert found["tone_pass_rate"] == 0.6667
    assert (found["medical"], found["medical_pass_rate"]) == (0.25, 0.75)
    assert (found["brand.on"], found["brand.off"], found["brand.mixed"]) == (0.5, 0.25, 0.25)
    assert found["brand_pass_rate"] == 0.5
    assert (found["rules.short"], found["rules.next_step"], found["rules"]) == (0.5, 0.6667, 0.5833)


def test_without_a_pass_there_is_no_pass_rate(tmp_path: Path) -> None:
    found = overall(own_run(tmp_path, *BARE))
    assert not [name for name in found if name.endswith("_pass_rate")]
    assert {"tone", "medical", "brand.on", "rules", "rules.short"} <= found.keys()


def test_what_cannot_be_told_is_neither_a_score_nor_a_failure(tmp_path: Path) -> None:
    says: dict[str, Said] = {
        name: lambda n, said=said: "cannot tell" if n < 3 else said(n) for name, said in STEADY.items()
    }
    says["rules"] = lambda n: {"short": "cannot tell", "next_step": "cannot tell" if n < 3 else True}
    run = own_run(tmp_path, *TELLING, says=says, gates=[{"metric": "brand.cannot_tell_rate", "op": "<=", "value": 0.2}])
    metrics = read_json(run / "metrics.json")
    for name in ("tone", "medical", "brand.on"):
        figure = metrics["overall"][name]
        assert (figure["n"], figure["n_not_applicable"], figure["n_error"]) == (9, 3, 0), name
    for judge in ("tone", "medical", "brand"):
        assert metrics["overall"][f"{judge}.cannot_tell_rate"]["value"] == 0.25
        assert metrics["judges"][judge]["n_failed"] == 0
    # of 24 criteria, 12 + 3 cannot be told
    assert metrics["overall"]["rules.cannot_tell_rate"]["value"] == 0.625
    assert metrics["overall"]["rules"]["n_not_applicable"] == 3
    (gate,) = metrics["gates"]
    assert (gate["passed"], gate["observed"]) == (False, 0.25)


@pytest.mark.parametrize(
    ("metric", "op", "value", "passed"),
    [
        ("brand.on", ">=", 0.5, True),
        ("brand.on", "<", 0.5, False),
        ("tone_pass_rate", ">=", 0.7, False),
        ("medical", "<=", 0.25, True),
        ("rules.short", ">=", 0.6, False),
        ("brand.on.coverage", ">=", 1.0, True),
        ("tone.coverage", ">=", 1.0, True),
    ],
)
def test_gates_take_the_figures_of_each_kind(tmp_path: Path, metric: str, op: str, value: float, passed: bool) -> None:
    run = own_run(tmp_path, gates=[{"metric": metric, "op": op, "value": value}])
    assert read_json(run / "metrics.json")["gates"][0]["passed"] is passed


def test_a_failed_call_helps_no_gate_on_a_share_that_is_neither_good_nor_bad(tmp_path: Path) -> None:
    says = {**STEADY, "brand": lambda n: "of no kind" if n < 3 else "on" if n < 6 else "off"}
    gates = [{"metric": "brand.on", "op": op, "value": value} for op, value in ((">=", 0.3), ("<=", 0.4))]
    run = own_run(tmp_path, without_pass(BRAND), says=says, gates=gates)
    metrics = read_json(run / "metrics.json")
    # 3 of 9 are on and 3 calls failed: between 3 of 12 and 6 of 12
    assert [(gate["observed"], gate["passed"]) for gate in metrics["gates"]] == [(0.25, False), (0.5, False)]
    assert metrics["judges"]["brand"]["failures"] == {"invalid": 3}


def test_slices_show_the_share_of_each_label(tmp_path: Path) -> None:
    rows = [case(f"c{number}", category="ab"[number % 2]) for number in range(12)]
    run = own_run(tmp_path, TONE, BRAND, case_rows=rows, slices=["category"])
    found = read_json(run / "metrics.json")["slices"]["category"]
    # on, on, off, mixed in turn: even cases are on or off, odd ones on or mixed
    assert [found[name]["brand.off"]["value"] for name in "ab"] == [0.5, 0.0]
    assert "| category | `tone` | `brand.on` | `brand.off` | `brand.mixed` |" in (run / "summary.md").read_text("utf-8")


# spot checks


def test_on_against_off_on_every_case_is_a_disagreement_of_one(tmp_path: Path) -> None:
    run = checked(tmp_path, BRAND, second={"brand": lambda n: "off" if n % 4 < 2 else "on"})
    report = reports_of(run)["brand"]
    assert (report["disagreement_rate"], report["spot_check_n"], report["status"]) == (1.0, 12, "alarm")
    assert report["spot_check"]["parts"] == {"gap_over_one": 0, "class_flip": 12, "both": 0, "exact_match": 0}
    assert report["confusion"] == {"classes": ["on", "off", "mixed"], "counts": [[0, 6, 0], [3, 0, 0], [3, 0, 0]]}
    assert report["spot_check"]["shift"]["mean"] is None
    assert report["mean_signed_difference"] is None
    text = (run / "summary.md").read_text(encoding="utf-8")
    assert "| on | 0 | 6 | 0 |" in text
    assert "| brand | c0 | on | off |" in text
    assert "12 another label" in text


def test_yes_against_no_on_every_case_is_a_disagreement_of_one(tmp_path: Path) -> None:
    for judge in (MEDICAL, without_pass(MEDICAL)):
        run = checked(tmp_path / str("pass" in str(judge["yes_no"])), judge)
        report = reports_of(run)["medical"]
        assert report["disagreement_rate"] == 1.0
        assert report["confusion"] == {"classes": ["no", "yes"], "counts": [[0, 9], [3, 0]]}
        assert "| medical | c0 | yes | no |" in (run / "summary.md").read_text(encoding="utf-8")


def test_a_share_of_criteria_that_is_the_same_by_other_criteria_is_not_equal(tmp_path: Path) -> None:
    # every criterion is turned: the shares of c0, c1, c5, c6, c7 and c11 stay at a half, the others go from 0 or 1 to 1
    # or 0
    run = checked(tmp_path, RULES)
    report = reports_of(run)["rules"]
    assert report["spot_check"]["parts"] == {"gap_over_one": 6, "class_flip": 6, "both": 6, "exact_match": 0}
    text = (run / "summary.md").read_text(encoding="utf-8")
    assert "0 equal, 6 more than 0.2 apart, 6 on the other side of the pass line" in text
    assert "| rules | c2 | 1.00 | 0.00 |" in text


def test_one_that_cannot_tell_contradicts_one_that_can(tmp_path: Path) -> None:
    second: dict[str, Said] = {name: lambda _: "cannot tell" for name in ("tone", "medical", "brand")}
    second["rules"] = lambda _: {"short": "cannot tell", "next_step": "cannot tell"}
    reports = reports_of(checked(tmp_path, *TELLING, second=second))
    assert {name: report["disagreement_rate"] for name, report in reports.items()} == dict.fromkeys(STEADY, 1.0)
    assert reports["brand"]["confusion"]["counts"][0] == [0, 0, 0, 6]


def test_asking_again_gives_a_noise_floor_for_each_kind(tmp_path: Path) -> None:
    reports = reports_of(checked(tmp_path, against="repeat"))
    assert {name: report["noise_floor"]["flip_rate"] for name, report in reports.items()} == dict.fromkeys(STEADY, 0.0)


def test_a_run_checks_its_own_judges_by_the_other_wording(tmp_path: Path) -> None:
    run = own_run(tmp_path, spot_check={"n": 6, "prompt_version": "v2"})
    reports = reports_of(run)
    assert {name: report["against"]["prompt_version"] for name, report in reports.items()} == dict.fromkeys(
        STEADY, "v2"
    )
    assert {name: report["spot_check_n"] for name, report in reports.items()} == dict.fromkeys(STEADY, 6)


# two runs


def judged_again(folder: Path, *judges: dict[str, Any], then: Mapping[str, Said] = TURNED) -> Path:
    """Run `a`, and its answers judged again by a judge that turned, as `b`."""
    judges = judges or OWN
    with FaultServer(answering(STEADY, judges=judges)) as server:
        judgekit.run(own_suite(folder, server, *judges), run_id="a")
        server.play(answering(then, judges=judges))
        rejudge(folder / "results" / "a", "b", use_cache=False)
    return folder / "results"


def compared(results: Path, form: str = "md") -> tuple[Comparison, str]:
    with open_runs("a", "b", Options(results_dir=results)) as sides:
        found = compare(sides, CompareOptions())
        return found, "".join(comparison_pieces(sides, found, (), form))


def test_a_rejudge_says_how_many_verdicts_of_each_kind_changed(tmp_path: Path) -> None:
    results = judged_again(tmp_path)
    found = read_json(results / "b" / "metrics.json")["rejudged"]["by_judge"]
    assert {name: item["changed"] for name, item in found.items()} == dict.fromkeys(STEADY, 12)
    assert {name: item["n_disagree"] for name, item in found.items()} == {**dict.fromkeys(STEADY, 12), "rules": 6}
    assert found["brand"]["mean_signed_difference"] is None
    assert {"case_id": "c0", "before": "on", "after": "off"} in found["brand"]["cases"]
    assert "verdicts changed against a: 48 of 48" in (results / "b" / "summary.md").read_text(encoding="utf-8")


def test_a_comparison_counts_labels_once_and_by_what_passes(tmp_path: Path) -> None:
    found, text = compared(judged_again(tmp_path))
    # 6 cases were on and are not any more, 6 the other way round
    assert found.kinds["brand"] == {"regression": 6, "loss": 0, "mended": 6, "win": 0, "draw": 0}
    assert not [name for name in found.kinds if name.startswith("brand.")]
    # yes in 3 cases, and no passes
    assert found.kinds["medical"] == {"regression": 9, "loss": 0, "mended": 3, "win": 0, "draw": 0}
    change = next(query.scores["brand"] for query in found.per_query if query.query_id == "c0")
    assert (change.a, change.b, change.kind) == ("on", "off", "regression")
    assert "regression of brand (on, then off)" in text
    assert "brand.coverage" in {delta.name for delta in found.deltas}


def test_what_neither_passes_nor_fails_is_never_better_or_worse(tmp_path: Path) -> None:
    judges = (without_pass(BRAND), without_pass(MEDICAL))
    then: dict[str, Said] = {"brand": lambda _: "mixed", "medical": lambda _: True}
    results = judged_again(tmp_path, *judges, then=then)
    found, page = compared(results, "html")
    assert found.kinds["brand"] == {
        "regression": 0,
        "loss": 0,
        "mended": 0,
        "win": 0,
        "changed": 9,
        "draw": 3,
    }
    assert (found.kinds["medical"]["changed"], found.kinds["medical"]["draw"]) == (9, 3)
    shares = {
        delta.name: delta.verdict for delta in found.deltas if delta.name in ("brand.on", "brand.mixed", "medical")
    }
    assert shares == {"brand.on": "no evidence", "brand.mixed": "differs", "medical": "differs"}
    assert {delta.verdict for delta in found.deltas}.isdisjoint(("better", "worse"))
    for text in (plain_text(found), compare_markdown(found)):
        assert "12 cases in both: 0 with a regression, 0 with another loss, 0 with gains alone" in text
    assert 'class="badge ">changed' in page
    assert not [query for query in found.per_query if query.loss[0]]


def test_labels_of_which_neither_passes_are_changed(tmp_path: Path) -> None:
    then: dict[str, Said] = {"brand": lambda n: ("on", "mixed", "mixed", "on")[n % 4]}
    found, _ = compared(judged_again(tmp_path, BRAND, then=then))
    # on stays on; on to mixed; off to mixed; mixed to on
    assert found.kinds["brand"] == {"regression": 3, "loss": 0, "mended": 3, "win": 0, "changed": 3, "draw": 3}


def test_a_verdict_that_is_missing_in_b_is_lost(tmp_path: Path) -> None:
    then: dict[str, Said] = {"brand": lambda n: "of no kind" if n % 2 else STEADY["brand"](n)}
    found, _ = compared(judged_again(tmp_path, BRAND, then=then))
    # odd cases were on (3) or mixed (3)
    assert (found.kinds["brand"]["regression"], found.kinds["brand"]["loss"]) == (3, 3)
    coverage = next(delta for delta in found.deltas if delta.name == "brand.coverage")
    assert (coverage.a, coverage.b) == (1.0, 0.5)
