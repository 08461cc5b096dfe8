"""The real change of a judge's snapshot, in recorded verdicts."""

import os
from pathlib import Path

import pytest

from benchmarks.recorded import Skipped
from benchmarks.reliability import scripted_flips, snapshot_change
from tests.builders import REPOSITORY

DATA = Path(os.environ.get("JUDGEKIT_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")


def test_a_real_change_of_snapshot_is_found_within_7_weekly_points_in_90_percent_of_seeds() -> None:
    try:
        figure = snapshot_change(DATA)
    except Skipped as reason:
        pytest.skip(f"{reason}; JUDGEKIT_SHARED_DATA names another folder")
    assert figure.holds, figure
    # 71 of 419 preferences are other ones.
    assert (figure.details["n_items"], figure.details["flip_rate"]) == (419, 0.1695)


def test_a_scripted_change_is_found_within_4_points() -> None:
    assert scripted_flips(DATA).holds
