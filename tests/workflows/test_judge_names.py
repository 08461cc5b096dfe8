"""A judge of the user's own may not take the place of another figure."""

from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError
from judgekit.testing import FaultServer
from tests.own_judges import STEADY, answering, own_suite

YES: dict[str, Any] = {"ask": "Is the answer polite?", "yes_no": {"pass": "no"}, "model": "m"}


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("error_rate",), "operations gives a score 'error_rate' already"),
        (("abstained",), "abstention gives a score 'abstained' already"),
        (("tone", "tone_pass"), "tone gives a score 'tone_pass' already"),
        (("tone", "tone_pass_rate"), "tone gives a score 'tone_pass_rate' already"),
    ],
)
def test_a_judge_that_is_data_cannot_be_called_like_another_figure(
    tmp_path: Path, names: tuple[str, ...], taken: str
) -> None:
    with FaultServer(answering(STEADY)) as server:
        config = own_suite(tmp_path, server, *({"name": name, **YES} for name in names), n_cases=2)
        with pytest.raises(ConfigError, match=taken):
            judgekit.run(config, run_id="a")
