"""From the report of a spot check to a point of the judge's history."""

from typing import Any

import pytest

from judgekit.analysis.drift_points import AskedAgain, SampleCounts, checked_verdicts, history_point, repeats_by_kind
from judgekit.core.runs import Manifest

MANIFEST = Manifest(
    run_id="r",
    name="demo",
    status="complete",
    created_at="2026-01-01T00:00:00+00:00",
    config_path="demo.json",
    config_sha256="c",
    versions={"parser": "1"},
)
METRICS = {
    "judges": {"groundedness": {"prompt_version": "v1", "prompt_sha256": "p", "model": "m"}},
    "cases": {"sha256": "d"},
    "overall": {"groundedness.distribution": {"0": 1, "1": 0, "4": 1, "5": 2, "none": 9}},
}
VERDICTS = checked_verdicts("groundedness", MANIFEST, METRICS, "a")


def test_pairs_are_counted_and_failures_are_in_no_denominator() -> None:
    sample: list[dict[str, Any]] = [
        {"first": 5, "second": 5, "disagrees": False},
        {"first": 5, "second": 3, "disagrees": True},
        {"first": 2, "second": 3, "disagrees": False},
        {"first": 5, "second": None, "disagrees": None},
    ]
    asked = AskedAgain("rejudge", "m with v1", "2026-01-01T00:00:00+00:00", ["m-1", "m-0", "m-1"], [])
    point = history_point(VERDICTS, asked, SampleCounts(sample))
    assert (point.n_asked, point.n_pairs, point.n_disagree, point.n_failed) == (4, 3, 1, 1)
    # Shifts 0, -2, 1: mean -1/3; squares 1/9 + 25/9 + 16/9 = 42/9, sd = sqrt(42/9 / 2).
    assert point.shift_mean == pytest.approx(-1 / 3)
    assert point.shift_sd == pytest.approx((42 / 18) ** 0.5)
    # Scores 0, 4, 5, 5: mean 3.5; squares 12.25 + 0.25 + 2.25 + 2.25 = 17, sd = sqrt(17 / 3).
    assert (point.score_mean, point.n_scores) == (3.5, 4)
    assert point.score_sd == pytest.approx((17 / 3) ** 0.5)
    assert point.served_models == ("m-0", "m-1")


def test_yes_and_no_are_ratings_too() -> None:
    sample = [{"first": True, "second": False, "disagrees": True}]
    point = history_point(VERDICTS, AskedAgain("spot_check", "m", "t"), SampleCounts(sample))
    assert (point.shift_mean, point.shift_sd) == (-1.0, None)


def test_a_point_without_pairs_has_no_shift() -> None:
    point = history_point(VERDICTS, AskedAgain("spot_check", "m", "t"), SampleCounts())
    assert (point.n_pairs, point.shift_mean, point.shift_sd) == (0, None, None)


@pytest.mark.parametrize(
    ("asked_at", "kind"),
    [
        ("2026-01-01T00:05:00+00:00", "noise_floor"),
        ("2026-01-02T00:00:00+00:00", "noise_floor"),
        ("2026-01-02T00:00:01+00:00", "rejudge"),
    ],
)
def test_asking_again_at_once_shows_noise_and_later_maybe_drift(asked_at: str, kind: str) -> None:
    assert repeats_by_kind([("c", "2026-01-01T00:00:00+00:00", asked_at)]) == {kind: ["c"]}


@pytest.mark.parametrize(
    ("verdict_builds", "builds", "kind"),
    [
        ({"sha256:a"}, {"sha256:a"}, "noise_floor"),
        (set(), {"sha256:a"}, "noise_floor"),  # not known, so nothing says that it is another
        ({"sha256:a"}, set(), "noise_floor"),
        ({"sha256:a"}, {"sha256:b"}, "rejudge"),
        ({"sha256:a"}, {"sha256:a", "sha256:b"}, "rejudge"),
    ],
)
def test_what_another_build_says_is_no_noise_however_soon_it_is_asked(
    verdict_builds: set[str], builds: set[str], kind: str
) -> None:
    times = [("c", "2026-01-01T00:00:00+00:00", "2026-01-01T00:05:00+00:00")]
    assert repeats_by_kind(times, verdict_builds, builds) == {kind: ["c"]}
