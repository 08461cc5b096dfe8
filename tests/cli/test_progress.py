"""How fast judging goes, in words that a slow model does not round to nothing."""

import pytest

from judgekit.cli.progress import pace


@pytest.mark.parametrize(
    ("n_done", "seconds", "said"),
    [
        (3, 48.6, "16.2 s each"),  # 48.6 / 3; as a rate it would be 0.1/s
        (1, 30.0, "30.0 s each"),  # 0.0/s
        (10, 10.0, "1.0/s"),
        (250, 20.0, "12.5/s"),
        (5, 0.0, "5000000000.0/s"),  # a clock that has not moved is no division by zero
    ],
)
def test_the_pace_is_a_rate_or_the_seconds_of_one(n_done: int, seconds: float, said: str) -> None:
    assert pace(n_done, seconds) == said
