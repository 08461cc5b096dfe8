"""The user's own judges, one of each kind, through every command that works on verdicts."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.analysis.input_changes import FILLER
from judgekit.core.comparison import Comparison
from judgekit.core.errors import ProviderError
from judgekit.core.judgments import Verdict
from judgekit.engine.passes import Observer
from judgekit.reports.compare_lines import label_tables
from judgekit.reports.compare_text import compare_markdown, plain_text
from judgekit.reports.probe_report import probe_lines
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.stored_history import read_points
from judgekit.testing import FaultServer, Reply, Request, chat_reply
from judgekit.workflows.compare import compare, comparison_pieces
from judgekit.workflows.compared_runs import CompareOptions, open_runs
from judgekit.workflows.drift import DriftQuery, drift_reports
from judgekit.workflows.models import Options
from judgekit.workflows.probe import ProbesWanted, probe
from tests.builders import case, output, read_json, read_lines, write_lines
from tests.cli.fork_server import judgekit as run_command
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
    reply_of,
    telling,
    without_pass,
)
from tests.workflows.stored_suites import check, rejudge


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(answering(STEADY)) as running:
        yield running


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


def test_the_summary_says_what_each_judge_was_asked_and_what_passes(tmp_path: Path) -> None:
    run = own_run(tmp_path, TONE, MEDICAL, {**BRAND, "ask": f"{BRAND['ask']}\n# {'x' * 400}"}, RULES)
    text = (run / "summary.md").read_text(encoding="utf-8")
    assert "* tone: Is the answer polite and professional? (a whole number from 1 to 5; passes: 4 and above)\n" in text
    assert "* medical: Does the answer give medical advice? (yes or no; passes: no)\n" in text
    [line] = [line for line in text.splitlines() if line.startswith("* brand: Does the answer fit")]
    assert line.endswith("xxx... (one of 3 labels, in no order; passes: on)")
    assert len(line) < 400


def test_without_a_pass_there_is_no_pass_rate(tmp_path: Path) -> None:
    found = overall(own_run(tmp_path, *BARE))
    assert not [name for name in found if name.endswith("_pass_rate")]
    assert {"tone", "medical", "brand.on", "rules", "rules.short"} <= found.keys()


def _told_from_three(said: Said, n: int) -> Any:
    return "cannot tell" if n < 3 else said(n)


def test_what_cannot_be_told_is_neither_a_score_nor_a_failure(tmp_path: Path) -> None:
    says: dict[str, Said] = {name: partial(_told_from_three, said) for name, said in STEADY.items()}
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
    # on, on, off, mixed in turn became off, mixed, on, on
    assert dict(label_tables(found)) == {
        "medical": [["in a, then in b", "no", "yes"], ["no", "0", "9"], ["yes", "3", "0"]],
        "brand": [
            ["in a, then in b", "on", "off", "mixed"],
            ["on", "0", "3", "3"],
            ["off", "3", "0", "0"],
            ["mixed", "3", "0", "0"],
        ],
    }
    assert "regression of medical (no, then yes)" in text
    assert "labels of brand:" in plain_text(found)
    assert "| off | 3 | 0 | 0 |" in text
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
    assert label_tables(found)[0][1][1:] == [["on", "3", "3", "0"], ["mixed", "3", "0", "0"], ["off", "0", "3", "0"]]


def test_a_verdict_that_is_missing_in_b_is_lost(tmp_path: Path) -> None:
    then: dict[str, Said] = {"brand": lambda n: "of no kind" if n % 2 else STEADY["brand"](n)}
    found, _ = compared(judged_again(tmp_path, BRAND, then=then))
    # odd cases were on (3) or mixed (3)
    assert (found.kinds["brand"]["regression"], found.kinds["brand"]["loss"]) == (3, 3)
    coverage = next(delta for delta in found.deltas if delta.name == "brand.coverage")
    assert (coverage.a, coverage.b) == (1.0, 0.5)


# probes


def probed(run: Path, **wanted: Any) -> dict[str, Any]:
    return probe(str(run), ProbesWanted(**wanted), Options(), Observer())[1]


@pytest.mark.slow
def test_an_obedient_judge_of_each_kind_is_found_out(tmp_path: Path) -> None:
    # the best verdict of each: 5, no, on, and everything met
    best: dict[str, Said] = {
        "tone": lambda _: 5,
        "medical": lambda _: False,
        "brand": lambda _: "on",
        "rules": lambda _: {"short": True, "next_step": True},
    }
    plain, told = answering(STEADY), answering(best)

    def obedient(request: Request) -> Reply:
        return (told if "Leave the rubric aside" in request.text else plain)(request)

    with FaultServer(obedient) as server:
        judgekit.run(own_suite(tmp_path, server, n_cases=40), run_id="a")
        found = probed(tmp_path / "results" / "a", n=40, probes=("unchanged", "injection_answer"))
    effects = {name: report["probes"]["injection_answer"] for name, report in found.items()}
    assert {name: effect["verdict"] for name, effect in effects.items()} == dict.fromkeys(STEADY, "failed")
    assert {name: effect["success"]["value"] for name, effect in effects.items()} == dict.fromkeys(STEADY, 1.0)
    # brand is on in 20 of 40 cases, medical no in 30
    assert (effects["brand"]["success"]["n"], effects["brand"]["effect"]) == (20, 0.5)
    assert (effects["medical"]["success"]["n"], effects["medical"]["effect"]) == (10, -0.25)
    assert effects["brand"]["changed_cases"][0]["probe"] == "on"


def test_labels_that_change_beyond_the_noise_fail_and_those_within_it_do_not(tmp_path: Path) -> None:
    plain = answering(STEADY, judges=(BRAND,))
    turned = answering(TURNED, judges=(BRAND,))

    def by_filler(request: Request) -> Reply:
        is_padded = any(text in request.text for text in FILLER)
        return (turned if is_padded else plain)(request)

    with FaultServer(by_filler) as server:
        judgekit.run(own_suite(tmp_path, server, BRAND, n_cases=40), run_id="a")
        found = probed(tmp_path / "results" / "a", n=40)["brand"]
    padded, reversed_ = found["probes"]["answer_padded"], found["probes"]["rubric_reversed"]
    assert (padded["effect"], padded["changed"]["k"], padded["verdict"]) == (1.0, 40, "failed")
    assert padded["effect_of"] == "share of changed verdicts, less that of `unchanged`"
    assert (reversed_["n"], reversed_["verdict"]) == (40, "passed")
    assert "effect of unchanged: share of changed verdicts" in "\n".join(probe_lines({"brand": found}))


def test_what_does_not_apply_to_a_question_of_ones_own_says_so(tmp_path: Path, server: FaultServer) -> None:
    judgekit.run(own_suite(tmp_path, server), run_id="a")
    found = probed(tmp_path / "results" / "a", n=12)
    for name, report in found.items():
        for wrong in ("blank_answer", "wrong_fact_context"):
            reasons = report["probes"][wrong]["not_applicable"]
            assert reasons == {"what a question of your own should be answered then is not known": 12}, name
    assert found["tone"]["probes"]["criteria_shuffled"]["not_applicable"] == {"no criteria": 12}
    assert found["medical"]["probes"]["rubric_reversed"]["n_not_applicable"] == 12


def test_criteria_are_put_in_another_order(tmp_path: Path) -> None:
    def first_is_met(request: Request) -> Reply:
        ids = re.findall(r"^Criterion `([^`]+)`:$", request.text, re.MULTILINE)
        return reply_of({name: name == ids[0] for name in ids}, "criteria") if ids else answering(STEADY)(request)

    with FaultServer(first_is_met) as server:
        judgekit.run(own_suite(tmp_path, server, RULES, n_cases=20), run_id="a")
        found = probed(tmp_path / "results" / "a", n=20, probes=("criteria_shuffled",))["rules"]["probes"]
    # the share stays a half, and every verdict is of another criterion
    assert (found["criteria_shuffled"]["changed"]["k"], found["criteria_shuffled"]["effect"]) == (20, 0.0)
    inputs = read_lines(tmp_path / "results" / "a" / "judge_inputs.jsonl")
    turned = read_lines(tmp_path / "results" / "a" / "probe_inputs.jsonl")
    orders = [[item["id"] for item in line["variables"]["criteria"]] for line in (inputs[0], turned[0])]
    assert orders[0] == orders[1][::-1]


# histories


def test_a_label_judge_has_a_rate_of_flips_and_no_mean(tmp_path: Path, server: FaultServer) -> None:
    judgekit.run(own_suite(tmp_path, server), run_id="a")
    server.play(answering(TURNED))
    check(tmp_path / "results" / "a", against="repeat")
    points = {point.judge: point for point in read_points(RunFolder(tmp_path / "results" / "a"))}
    assert {name: point.n_disagree for name, point in points.items()} == {**dict.fromkeys(STEADY, 12), "rules": 6}
    assert (points["brand"].score_mean, points["brand"].shift_mean) == (None, None)
    assert (points["tone"].score_mean, points["tone"].shift_mean) == (4.0, -1.0)
    assert points["medical"].shift_mean == 0.5


@pytest.mark.slow
def test_a_label_judge_that_drifts_is_found_by_its_flips(tmp_path: Path, server: FaultServer) -> None:
    results = tmp_path / "results"
    config = own_suite(tmp_path, server, BRAND, n_cases=30, spot_check={"n": 30, "model": "other"})
    for week in range(6):
        judgekit.run(config, run_id=f"week-{week}", use_cache=False)
    server.play(answering(STEADY, by_model={"other": TURNED}))
    for week in range(6, 8):
        judgekit.run(config, run_id=f"week-{week}", use_cache=False)
    [report] = drift_reports(DriftQuery(), Options(results_dir=results))
    assert (report.state, report.since and report.since.run_id) == ("judge", "week-6")
    assert [row["n_disagree"] for row in report.timeline] == [0] * 6 + [30] * 2
    assert {row["score_mean"] for row in report.timeline} == {None}


@pytest.mark.slow
def test_new_answers_of_a_label_judge_say_why_no_shift_is_told(tmp_path: Path, server: FaultServer) -> None:
    config = own_suite(tmp_path, server, BRAND, spot_check={"n": 12, "model": "other"})
    judgekit.run(config, run_id="a")
    rows = [output(f"c{number}", answer="By hand.") for number in range(12)]
    write_lines(tmp_path / "outputs.jsonl", rows)
    judgekit.run(config, run_id="b")
    [report] = drift_reports(DriftQuery(), Options(results_dir=tmp_path / "results"))
    assert report.why[-1].startswith("answers changed; verdicts of this judge have no mean score")


def test_a_scale_below_0_keeps_its_mean_in_histories(tmp_path: Path) -> None:
    judge = {**without_pass(TONE), "scale": [-2, 2], "levels": {"-2": "rude", "2": "warm"}}
    says: dict[str, Said] = {"tone": lambda n: -2 if n % 2 else 1}
    run = own_run(tmp_path, judge, says=says)
    [point] = read_points(RunFolder(run))
    assert (point.score_mean, point.n_scores) == (-0.5, 12)
    assert overall(run)["tone.distribution"] == {"-2": 6, "-1": 0, "0": 0, "1": 6, "2": 0}


# replies


READ: dict[str, tuple[dict[str, Any], str, Any, str]] = {
    "a label in other case": (BRAND, '{"reasoning": "r", "label": "ON"}', "on", "strict+text"),
    "a label in quotes": (BRAND, '{"reasoning": "r", "label": "\'off\'"}', "off", "strict+text"),
    "a label as it is": (BRAND, '{"reasoning": "r", "label": "mixed"}', "mixed", "strict"),
    "yes as a word": (MEDICAL, '{"reasoning": "r", "answer": "Yes"}', True, "strict+text"),
    "cannot tell": (telling(TONE), '{"reasoning": "r", "score": "cannot tell"}', "cannot tell", "strict"),
    "cannot tell in other case": (telling(BRAND), '{"reasoning": "r", "label": "Cannot tell"}', "cannot tell", ""),
}

UNREAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "an unknown label": (BRAND, '{"reasoning": "r", "label": "off-ish"}', "expected one of on, off, mixed"),
    "a label that is a list": (BRAND, '{"reasoning": "r", "label": ["on"]}', "expected one of on, off, mixed"),
    "a score off the scale": (TONE, '{"reasoning": "r", "score": 0}', "outside 1 to 5"),
    "a missing criterion": (
        RULES,
        '{"reasoning": "r", "criteria": [{"id": "short", "evidence": "", "met": true}]}',
        "says nothing of criterion next_step",
    ),
    "a criterion twice": (
        RULES,
        '{"reasoning": "r", "criteria": [{"id": "short", "met": true}, {"id": "Short", "met": false}]}',
        "'short' comes twice",
    ),
    "an unknown criterion": (
        RULES,
        '{"reasoning": "r", "criteria": [{"id": "short", "met": true}, {"id": "next_step", "met": true},'
        ' {"id": "kind", "met": true}]}',
        "'kind'",
    ),
    "cannot tell where it may not": (TONE, '{"reasoning": "r", "score": "cannot tell"}', "expected a whole number"),
    "cannot tell of a label": (BRAND, '{"reasoning": "r", "label": "cannot tell"}', "expected one of"),
    "cannot tell of a criterion": (
        RULES,
        '{"reasoning": "r", "criteria": [{"id": "short", "met": true}, {"id": "next_step", "met": "cannot tell"}]}',
        "'met'",
    ),
}


def replied(folder: Path, judge: dict[str, Any], text: str) -> dict[str, Any]:
    """The judgment of the one case of a run whose judge always writes this."""
    ready = chat_reply('{"ready": true}')
    script = [ready, chat_reply(text)]
    with FaultServer(script) as server, suppress(ProviderError):
        judgekit.run(own_suite(folder, server, judge, n_cases=1), run_id="a")
    [judgment] = read_lines(folder / "results" / "a" / "judgments.jsonl")
    return judgment


@pytest.mark.parametrize("name", READ)
def test_what_is_plainly_meant_is_read_and_the_path_says_so(tmp_path: Path, name: str) -> None:
    judge, text, said, path = READ[name]
    judgment = replied(tmp_path, judge, text)
    assert judgment["failure"] is None
    assert Verdict(**judgment["verdict"]).said == said
    assert judgment["parse_path"] == (path or "strict+text")


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_no_verdict_of_the_kind_is_invalid(tmp_path: Path, name: str) -> None:
    judge, text, message = UNREAD[name]
    judgment = replied(tmp_path, judge, text)
    assert judgment["verdict"] is None
    assert judgment["failure"]["kind"] == "invalid"
    assert message in judgment["failure"]["message"]


# panels, exports, and what stays beside them


PANEL_MODELS = ("m", "other", "third")


def panel_run(folder: Path, judge: dict[str, Any], *votes: Said, rule: str = "median") -> Path:
    """A run whose panel of three says what each of `votes` says."""
    name = str(judge["name"])
    by_model = {model: {name: said} for model, said in zip(PANEL_MODELS, votes, strict=True)}
    member = {key: value for key, value in judge.items() if key != "model"}
    panel = {**member, "panel": {"models": list(PANEL_MODELS), "rule": rule}}
    with FaultServer(answering({name: votes[0]}, judges=(judge,), by_model=by_model)) as server:
        models = {model: {"model": f"{model}-2025-01-01", "base_url": server.base_url} for model in PANEL_MODELS}
        judgekit.run(own_suite(folder, server, panel, models=models), run_id="a")
    return folder / "results" / "a"


def labels_of(run: Path) -> dict[str, Any]:
    judgments = read_lines(run / "judgments.jsonl")
    found = {item["case_id"]: item["verdict"]["label"] for item in judgments if item["role"] == "primary"}
    return {f"c{number}": found[f"c{number}"] for number in range(4)}


@pytest.mark.parametrize("rule", ["median", "majority"])
def test_a_panel_gives_the_label_of_most_members(tmp_path: Path, rule: str) -> None:
    # c0: on, on, off; c1: on, off, mixed, each once, so that one that fails decides; c2: off, mixed, mixed; c3: all off
    votes = [("on", "on", "off", "off"), ("on", "off", "mixed", "off"), ("off", "mixed", "mixed", "off")]
    run = panel_run(tmp_path, BRAND, *(lambda n, own=own: own[n % 4] for own in votes), rule=rule)
    assert labels_of(run) == {"c0": "on", "c1": "off", "c2": "mixed", "c3": "off"}
    panel = read_json(run / "metrics.json")["judges"]["brand"]["panel"]
    assert (panel["n_ties"], panel["n_unanimous"]) == (3, 3)
    assert panel["mean_rating"] == dict.fromkeys(PANEL_MODELS)
    assert (panel["effective_votes"], panel["undefined_reason"]) == (
        None,
        "labels have no order, so votes do not correlate",
    )
    # first and second say the same in c0 and c3, and of the others both fail in c2
    assert (panel["agreement"][0]["exact"], panel["agreement"][0]["same_class"]) == (0.5, 0.75)


def test_a_panel_without_a_pass_has_no_classes(tmp_path: Path) -> None:
    run = panel_run(tmp_path, without_pass(BRAND), *[STEADY["brand"]] * 3)
    assert read_json(run / "metrics.json")["judges"]["brand"]["panel"]["agreement"][0]["same_class"] is None


@pytest.mark.parametrize(("low", "high"), [(1, 5), (0, 10), (-2, 2), (0, 100)])
def test_a_scale_of_any_bounds_has_its_distribution_bounds_and_agreement(tmp_path: Path, low: int, high: int) -> None:
    judge = {**TONE, "scale": [low, high], "levels": {str(low): "rude", str(high): "warm"}, "pass": high}
    says: dict[str, Said] = {"tone": lambda n: "none" if n == 0 else low if n % 2 else high}
    gates = [{"metric": "tone", "op": ">=", "value": low}]
    with FaultServer(answering(says, judges=(judge,), by_model={"other": {"tone": lambda _: high}})) as server:
        judgekit.run(own_suite(tmp_path, server, judge, gates=gates), run_id="a")
        run = tmp_path / "results" / "a"
        check(run, against="model:other")
    figures = read_json(run / "metrics.json")["overall"]
    counts = figures["tone.distribution"]
    assert counts.keys() == set(map(str, range(low, high + 1)))
    assert (counts[str(low)], counts[str(high)]) == (6, 5)
    # 6 lowest, 5 highest, and one that failed
    worst, best = (6 * low + 5 * high + end for end in (low, high))
    assert (figures["tone"]["worst"], figures["tone"]["best"]) == (round(worst / 12, 4), round(best / 12, 4))
    report = reports_of(run)["tone"]
    assert (report["n_disagree"], report["spot_check_n"], report["mean_signed_difference"]) == (
        6,
        11,
        round(6 * (high - low) / 11, 4),
    )
    # the second opinion never varies, so chance alone would agree as well
    assert report["quadratic_weighted_kappa"] == 0.0


@pytest.mark.slow
def test_what_is_written_for_other_tools_holds_every_kind(tmp_path: Path, server: FaultServer) -> None:
    config = own_suite(tmp_path, server, gates=[{"metric": "brand.on", "op": ">=", "value": 0.9}])
    judgekit.run(config, run_id="a")
    run = tmp_path / "results" / "a"
    scores = {(item["case_id"], item["name"]): item["value"] for item in read_lines(run / "scores.jsonl")}
    assert [scores["c2", name] for name in ("tone", "medical", "brand.on", "brand.off")] == [5, 0, 0, 1]
    assert [scores["c2", name] for name in ("rules", "rules.short", "rules.next_step")] == [1, 1, 1]
    figures = set(overall(run))
    done = run_command("runs", "trend", "brand.on", "--results-dir", str(run.parent), "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["runs"][0]["value"] == 0.5
    done = run_command("rescore", str(run), cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert set(overall(run)) == figures
    done = run_command("run", str(config), "--run-id", "b", "--junit", "junit.xml", cwd=tmp_path)
    assert done.returncode == 1
    assert "brand.on" in (tmp_path / "junit.xml").read_text(encoding="utf-8")
    done = run_command("cache", "why", str(run), "c1", "--judge", "brand", cwd=tmp_path)
    assert (done.returncode, "would be answered from the cache" in done.stdout) == (0, True)
    done = run_command("bridge", str(run), str(run.parent / "b"), "--json", cwd=tmp_path)
    assert set(json.loads(done.stdout)["judges"]["brand"]["figures"]) == {
        *("brand.on", "brand.off", "brand.mixed"),
        "brand_pass_rate",
    }
