"""Drift told apart: judge, system, instrument, or nothing, on scripted histories of many seeds."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.analysis.drift_states import DriftReport, drift_report, histories
from judgekit.core.history_points import HistoryPoint

N_WEEKS = 26
CHANGE = 8
"""Position of week 9."""
N = 20
N_SEEDS = 100


def point(week: int, n_disagree: int = 1, **fields: Any) -> HistoryPoint:
    """The point of a week: 20 stored inputs of that week's run, asked again."""
    values: dict[str, Any] = {
        "run_id": f"w{week + 1:02}",
        "judge": "groundedness",
        "prompt_version": "v1",
        "dataset_sha256": "d" * 64,
        "kind": "rejudge",
        "comparator": "m with v1",
        "created_at": f"2026-{1 + week // 4:02}-{1 + 7 * (week % 4):02}T00:00:00+00:00",
        "n_asked": N,
        "n_pairs": N,
        "n_disagree": n_disagree,
        "n_failed": 0,
        "prompt_sha256": "p" * 64,
        "parser_version": "1",
        "served_models": ("m-1",),
        "fingerprints": ("fp-1",),
        "upstreams": ("up-1",),
        "builds": ("sha256:b1",),
        "verdict_builds": ("sha256:b1",),
        "answers_sha256": "a" * 64,
        "score_mean": 4.0,
        "score_sd": 1.0,
        "n_scores": 200,
    }
    return HistoryPoint(**{**values, **fields})


def drawn(rng: random.Random, n: int, rate: float) -> int:
    return sum(rng.random() < rate for _ in range(n))


def history(
    rng: random.Random, n_weeks: int = N_WEEKS, flips: Callable[[int], float] = lambda _: 0.05
) -> list[HistoryPoint]:
    """A history whose judge flips at a rate by week; the answers are new every week and as good as before."""
    return [
        point(week, drawn(rng, N, flips(week)), answers_sha256=f"a{week}", score_mean=rng.gauss(4.0, 1.0 / 200**0.5))
        for week in range(n_weeks)
    ]


def share(state: str, reports: list[DriftReport]) -> float:
    return sum(report.state == state for report in reports) / len(reports)


def test_a_judge_that_flips_30_percent_from_week_9_is_found_within_4_points() -> None:
    flips: Callable[[int], float] = lambda week: 0.3 if week >= CHANGE else 0.05  # noqa: E731
    reports = [drift_report(history(random.Random(seed), CHANGE + 4, flips)) for seed in range(N_SEEDS)]
    assert share("judge", reports) >= 0.9
    starts = Counter(report.since.run_id for report in reports if report.since is not None)
    # The onset is estimated, so it can be off by a week or two.
    assert sum(starts[run] for run in ("w08", "w09", "w10")) >= 0.8 * N_SEEDS


def test_a_judge_that_flips_stays_found_until_week_26() -> None:
    flips: Callable[[int], float] = lambda week: 0.3 if week >= CHANGE else 0.05  # noqa: E731
    reports = [drift_report(history(random.Random(seed), N_WEEKS, flips)) for seed in range(20)]
    assert share("judge", reports) == 1.0


@pytest.mark.slow
def test_quiet_histories_with_5_percent_noise_raise_at_most_5_percent_of_alarms() -> None:
    reports = [drift_report(history(random.Random(seed))) for seed in range(3 * N_SEEDS)]
    assert 1.0 - share("none", reports) <= 0.05


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_noise_floor_that_was_measured_is_not_called_drift(noise: float) -> None:
    reports = []
    for seed in range(N_SEEDS):
        rng = random.Random(seed)
        floor = [point(0, drawn(rng, 60, noise), kind="noise_floor", n_pairs=60, n_asked=60)]
        reports.append(drift_report(floor + history(rng, N_WEEKS, lambda _: noise)))
    assert 1.0 - share("none", reports) <= 0.05
    # what was measured counts up to 0.10
    assert {report.streams[0].evidence.m0 for report in reports} <= {0.1} | {
        report.streams[0].evidence.m0 for report in reports if report.streams[0].m0_source == "noise floor"
    }
    assert max(report.streams[0].evidence.m0 for report in reports) <= 0.1


def test_failures_that_rise_from_week_9_are_the_instrument() -> None:
    reports = []
    for seed in range(N_SEEDS):
        rng = random.Random(seed)
        points = []
        for week in range(CHANGE + 4):
            n_failed = drawn(rng, N, 0.4 if week >= CHANGE else 0.02)
            flips = drawn(rng, N - n_failed, 0.05)
            points.append(point(week, flips, n_pairs=N - n_failed, n_failed=n_failed))
        reports.append(drift_report(points))
    assert share("instrument", reports) >= 0.9
    assert share("judge", reports) == 0.0


@pytest.mark.slow
def test_answers_that_score_worse_from_week_9_with_a_steady_judge_are_the_system() -> None:
    reports = []
    for seed in range(N_SEEDS):
        rng = random.Random(seed)
        old, new = rng.gauss(4.0, 1.0 / 200**0.5), rng.gauss(3.4, 1.0 / 200**0.5)
        points = [
            point(week, drawn(rng, N, 0.05), answers_sha256="new" if week >= CHANGE else "old",
                  score_mean=new if week >= CHANGE else old)
            for week in range(N_WEEKS)
        ]  # fmt: skip
        reports.append(drift_report(points))
    assert share("system", reports) >= 0.9
    assert {report.since.run_id for report in reports if report.state == "system" and report.since} == {"w09"}
    assert share("judge", reports) + share("judge+system", reports) + share("instrument", reports) <= 0.05


def test_new_answers_that_score_the_same_are_no_drift_and_are_named() -> None:
    report = drift_report([point(week, answers_sha256="new" if week >= CHANGE else "old") for week in range(N_WEEKS)])
    assert report.state == "none"
    assert report.system is not None
    assert "answers changed, but not shown to score differently" in " ".join(report.why)


def both(shift: float) -> DriftReport:
    """A judge that flips and moves by one point from week 9, and new answers that score 1.5 lower."""
    points = [
        point(week, 8, answers_sha256="new", score_mean=2.5, shift_mean=shift, shift_sd=1.0)
        if week >= CHANGE
        else point(week, answers_sha256="old", shift_mean=0.0, shift_sd=0.5)
        for week in range(N_WEEKS)
    ]
    return drift_report(points)


def test_a_judge_that_drifts_leaves_to_the_system_only_what_it_did_not_move_itself() -> None:
    # All of the 1.5 points are the judge's own.
    assert both(-1.5).state == "judge"
    # The judge rose by half a point, so the answers fell by two.
    assert both(0.5).state == "judge+system"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"served_models": ("m-2",)}, "served model: m-2 since run w09, m-1 before"),
        pytest.param(
            {"upstreams": ("up-1", "up-2")}, "upstream: up-1, up-2 since run w09, up-1 before", id="T2-04-drift"
        ),
        ({"fingerprints": ("fp-2",)}, "fingerprint: fp-2 since run w09, fp-1 before"),
        ({"prompt_sha256": "q" * 64}, "prompt hash: qqqqqqqqqqqq since run w09, pppppppppppp before"),
        ({"builds": ("sha256:b2",)}, "build: sha256:b2 since run w09, sha256:b1 before"),
        ({"parser_version": "2"}, "parser version: 2 since run w09, 1 before"),
    ],
)
@pytest.mark.parametrize("n_flips", [1, 8])
def test_a_change_that_the_instrument_says_itself_is_the_instrument_and_never_the_judge(
    change: dict[str, Any], what: str, n_flips: int
) -> None:
    points = [point(week, n_flips, **change) if week >= CHANGE else point(week) for week in range(N_WEEKS)]
    report = drift_report(points)
    assert report.state == "instrument"
    assert report.since is not None
    assert report.since.run_id == "w09"
    assert what in report.why
    assert [row["state"] for row in report.timeline[:CHANGE]] == ["none"] * CHANGE


def test_a_first_point_by_another_build_than_gave_the_verdicts_is_the_instrument() -> None:
    report = drift_report([point(week, builds=("sha256:b2",)) for week in range(3)])
    assert report.state == "instrument"
    assert "build: sha256:b2 since run w01, sha256:b1 before" in report.why


def test_an_instrument_that_came_back_is_no_drift() -> None:
    points = [point(week, served_models=("m-2",) if week == CHANGE else ("m-1",)) for week in range(N_WEEKS)]
    report = drift_report(points)
    assert report.state == "none"
    assert [row["state"] for row in report.timeline].count("instrument") == 1
    assert report.changes[0].until == points[CHANGE + 1].created_at


def test_a_second_fingerprint_beside_the_first_is_the_same_instrument() -> None:
    points = [point(week, fingerprints=("fp-1", "fp-2") if week > 3 else ("fp-1",)) for week in range(N_WEEKS)]
    assert drift_report(points).state == "none"


def test_a_spot_check_is_held_against_its_own_first_four_points() -> None:
    # 8 of 20 flip from the start: that is what this comparator is like, and no drift.
    points = [point(week, 8, kind="spot_check", comparator="other with v1") for week in range(N_WEEKS)]
    report = drift_report(points)
    [stream] = report.streams
    # 0.51 is far more than noise (0.05) + 0.10, so this comparator alone cannot show that nothing drifts.
    assert (report.state, stream.n_baseline_checks, stream.n_baseline_pairs, stream.evidence.n) == (
        "insufficient",
        4,
        80,
        440,
    )
    assert stream.m0_source.endswith("more than the noise allows, 15%, so it shows large changes only")
    # Wilson's upper end of 32 of 80: (0.4 + 1.92/80 + 1.96 sqrt(0.24/80 + 0.96/6400)) / (1 + 3.84/80) = 0.5095.
    assert stream.evidence.m0 == pytest.approx(0.5095, abs=1e-4)
    # Later all but two flip.
    points += [point(week, 18, kind="spot_check", comparator="other with v1") for week in range(N_WEEKS, N_WEEKS + 4)]
    assert drift_report(points).state == "judge"


def test_few_pairs_are_insufficient() -> None:
    assert drift_report([point(0, 1, n_pairs=10, n_asked=10)]).state == "insufficient"
    assert drift_report([point(0, kind="noise_floor")]).state == "insufficient"
    assert drift_report([point(week, kind="spot_check") for week in range(4)]).state == "insufficient"
    assert drift_report([point(0)]).state == "none"


def test_no_pairs_at_all_are_no_error() -> None:
    report = drift_report([point(week, 0, n_pairs=0, n_failed=N) for week in range(3)])
    assert report.state == "insufficient"
    assert report.timeline[0]["rate"] is None


def test_the_first_point_can_raise_the_alarm() -> None:
    # 8 of 20 against 5%: far beyond an e-value of 20.
    report = drift_report([point(0, 8)])
    assert report.state == "judge"
    assert report.since is not None
    assert report.since.run_id == "w01"
    assert report.streams[0].evidence.rows[0].log_e_value > 3.0


def test_comparators_that_are_tested_side_by_side_share_the_error() -> None:
    two = [point(week, comparator=name) for week in range(2) for name in ("a", "b")]
    # log(20 * 2) = 3.689
    assert [round(stream.evidence.log_alarm_e_value, 3) for stream in drift_report(two).streams] == [3.689, 3.689]


def test_histories_are_apart_by_judge_wording_and_data_set_and_count_a_point_once() -> None:
    points = [point(1), point(0), point(0), point(0, judge="correctness"), point(0, prompt_version="v2"),
              point(0, dataset_sha256="e" * 64)]  # fmt: skip
    groups = histories(points)
    assert sorted(len(group) for group in groups) == [1, 1, 1, 2]
    assert [item.run_id for item in max(groups, key=len)] == ["w01", "w02"]


def test_a_report_is_about_one_history() -> None:
    with pytest.raises(ValueError, match="one history"):
        drift_report([])
    with pytest.raises(ValueError, match="one history"):
        drift_report([point(0), point(0, judge="correctness")])


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, N), st.integers(0, N), st.integers(0, 2), st.integers(0, 1)), min_size=1))
def test_every_history_has_one_state_and_a_timeline_that_ends_in_it(weeks: list[tuple[int, int, int, int]]) -> None:
    kinds = ("rejudge", "spot_check", "noise_floor")
    points = [
        point(
            week, min(flips, pairs), n_pairs=pairs, n_failed=N - pairs, kind=kinds[kind], answers_sha256=f"a{answers}"
        )
        for week, (flips, pairs, kind, answers) in enumerate(weeks[:N_WEEKS])
    ]
    report = drift_report(points)
    assert report.timeline[-1]["state"] == report.state
    assert (report.since is None) == (report.state in ("none", "insufficient", "not asked"))
    assert len(report.timeline) == len(points)


# what may count as usual


def others(*flips: int, **fields: Any) -> list[HistoryPoint]:
    """Weekly points of 20 pairs by another wording."""
    return [point(week, n, kind="spot_check", comparator="m with v2", **fields) for week, n in enumerate(flips)]


def test_a_rise_within_the_first_four_points_is_not_taken_for_usual() -> None:
    # Fisher: P(6 of 6 flips among the last 20 of 80) = C(20,6) / C(80,6) = 0.00013; at 3 places 0.0004.
    report = drift_report(others(0, 0, 0, 6))
    [stream] = report.streams
    # Wilson's upper end of 0 of 60: 3.84 / (60 + 3.84) = 0.0602
    assert stream.n_baseline_checks == 3
    assert stream.evidence.m0 == pytest.approx(0.0602, abs=1e-4)
    assert stream.m0_source == "first 3 points, since the next ones rose"
    assert report.state == "judge"


def test_quiet_first_points_are_all_usual() -> None:
    [stream] = drift_report(others(0, 1, 2, 1, 1)).streams
    assert (stream.n_baseline_checks, stream.m0_source, stream.evidence.n) == (4, "first 4 points", 20)


def test_a_comparator_that_is_far_off_says_so_and_never_gives_none_alone() -> None:
    # Wilson's upper end of 12 of 80 is 0.244, more than 0.05 + 0.10.
    report = drift_report(others(3, 3, 3, 3, 3, 3))
    assert report.state == "insufficient"
    assert any("usual 24.4% (first 4 points; more than the noise allows, 15%" in line for line in report.why)


def test_the_noise_floor_is_of_all_its_pairs_together_and_0_10_at_most() -> None:
    floors = [point(0, 0, kind="noise_floor"), point(1, 4, kind="noise_floor"), point(2, 0)]
    [stream] = drift_report(floors).streams
    # 4 of 40: Wilson's upper end is 0.2305
    assert (stream.n_baseline_pairs, stream.evidence.m0) == (40, 0.10)
    assert stream.m0_source == "noise floor up to 23.1%, taken as 10% at most"
    many = [point(week, 1, kind="noise_floor", n_pairs=100, n_asked=100) for week in range(3)]
    [stream] = drift_report([*many, point(3, 0)]).streams
    # 3 of 300: upper end 0.029, and 0.05 is the least
    assert (stream.evidence.m0, stream.m0_source) == (0.05, "noise floor")


def test_drifted_weeks_cannot_raise_what_is_usual_for_later_ones() -> None:
    # half of what is asked again within a day flips as well, and still the later points are far beyond 0.10
    weeks = [item for week in range(4) for item in (point(week, 10, kind="noise_floor"), point(week, 10))]
    assert drift_report(weeks).state == "judge"


def test_an_instrument_that_is_back_needs_20_pairs_before_the_state_is_none() -> None:
    points = [point(week, 0, n_pairs=10, n_asked=10) for week in range(4)]
    points[1] = points[1].model_copy(update={"served_models": ("m-2",)})
    states = [row["state"] for row in drift_report(points).timeline]
    assert states == ["insufficient", "instrument", "insufficient", "none"]


def test_a_history_in_which_nothing_was_asked_is_not_asked() -> None:
    report = drift_report([point(week, 0, kind="run", n_asked=0, n_pairs=0) for week in range(8)])
    assert (report.state, report.streams) == ("not asked", ())
    assert report.why == (
        "no verdict was checked in 8 runs, so nothing is known about drift; a `spot_check` in the config checks some",
    )


def test_runs_that_ask_nothing_after_quiet_points_are_named() -> None:
    silent = [point(week, 0, kind="run", n_asked=0, n_pairs=0) for week in (2, 3)]
    report = drift_report([point(0), point(1), *silent])
    assert report.state == "none"
    assert report.why[-1] == "nothing was asked in the 2 runs since 2026-01-08"


def test_other_means_of_the_same_answers_by_the_same_model_are_the_judge() -> None:
    means = (4.0, 4.02, 2.6)
    points = [point(week, 0, score_mean=mean, verdict_model="m") for week, mean in enumerate(means)]
    report = drift_report(points)
    assert (report.state, report.since and report.since.run_id) == ("judge", "w03")
    assert "mean 4.000 in run w01, 2.600 in w03" in report.why[0]
    other = [*points[:2], points[2].model_copy(update={"verdict_model": "other"})]
    assert drift_report(other).state == "none"
    new_answers = [*points[:2], points[2].model_copy(update={"answers_sha256": "new"})]
    assert drift_report(new_answers).state == "system"


def acceptance(week: int, rate: float | None = None) -> HistoryPoint:
    return point(week, 0, kind="acceptance", comparator="", n_asked=0, n_pairs=0, accepted_rate=rate, reason="known")


def test_after_an_acceptance_only_what_is_asked_later_counts() -> None:
    points = [*(point(week, 8) for week in range(3)), acceptance(3)]
    report = drift_report(points)
    assert (report.state, report.since) == ("not asked", None)
    assert report.why[0] == "accepted 2026-01-22 00:00: known; only what was asked since counts"
    quiet = drift_report([*points, point(4, 1)])
    assert (quiet.state, [row["state"] for row in quiet.timeline]) == (
        "none",
        ["judge", "judge", "judge", "not asked", "none"],
    )
    assert drift_report([*points, point(4, 8)]).state == "judge"


def test_a_rate_that_is_accepted_is_usual_from_then_on() -> None:
    points = [*(point(week, 5) for week in range(3)), acceptance(3, 0.3), *(point(week, 5) for week in range(4, 8))]
    report = drift_report(points)
    assert (report.state, report.streams[0].evidence.m0, report.streams[0].m0_source) == ("none", 0.3, "accepted")
