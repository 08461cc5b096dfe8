"""The parts of a change between two runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.run_deltas import bridge_figure

SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 5).map(float))


@given(SCORES, SCORES, SCORES)
def test_total_is_system_and_judge_over_one_set_of_cases(
    old: dict[str, float], moved: dict[str, float], new: dict[str, float]
) -> None:
    found = bridge_figure(old, moved, new, same_judge=False, seed=0)
    assert found["n"] == len(old.keys() & moved.keys() & new.keys())
    assert found["n"] + found["n_left_out"] == len(old.keys() & new.keys())
    if found["n"]:
        parts = found["system"]["value"] + found["judge"]["value"]
        assert found["total"]["value"] == pytest.approx(parts, abs=1e-12)
        assert found["new"] - found["old"] == pytest.approx(parts, abs=1e-12)
    else:
        assert found["total"] == found["system"] == {"value": None, "low": None, "high": None, "p": None}


def test_each_part_has_the_interval_of_its_paired_differences() -> None:
    old = {"a": 1.0, "b": 2.0, "c": 3.0}
    moved = {"a": 2.0, "b": 2.0, "c": 5.0}
    new = {"a": 2.0, "b": 4.0, "c": 5.0}
    found = bridge_figure(old, moved, new, same_judge=False, seed=0)
    # judge: 1, 0, 2: mean 1, sd 1, t(2) = 4.3027, half 4.3027 / sqrt 3 = 2.4841
    assert (found["judge"]["low"], found["judge"]["high"]) == pytest.approx((-1.4841, 3.4841), abs=5e-5)
    # system: 0, 2, 0: mean 2/3; one moves, so both signs of it are as far out
    assert found["system"]["value"] == pytest.approx(2 / 3)
    assert found["system"]["p"] == 1.0
    assert found["total"]["value"] == pytest.approx(5 / 3)
