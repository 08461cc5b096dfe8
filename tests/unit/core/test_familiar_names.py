"""Hints at what a judge or figure of another tool is called here."""

import pytest

from judgekit.analysis.gates import check_gate_names
from judgekit.core.conditions import Gate
from judgekit.core.errors import ConfigError
from judgekit.core.familiar_names import name_hint
from judgekit.judges.groundedness import Groundedness

FIGURES = ("groundedness", "groundedness_pass_rate", "hallucination_rate_unanswerable")


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("faithfulness", FIGURES, "; that is 'groundedness' here"),
        ("Faithfulness-pass_rate", FIGURES, "; that is 'groundedness_pass_rate' here"),
        ("hallucination_rate_unanswerabel", FIGURES, "; did you mean 'hallucination_rate_unanswerable'?"),
        ("refusal", ("mrr",), "; that is 'abstention' here, which is not among them; known: mrr"),
        ("faithfulness", (), ""),
        ("groundednes", FIGURES, "; did you mean 'groundedness'?"),
    ],
)
def test_a_name_of_another_tool_is_translated_and_any_other_has_its_nearest(
    name: str, known: tuple[str, ...], hint: str
) -> None:
    assert name_hint(name, known) == hint


def test_a_gate_on_a_figure_of_another_tool_says_what_it_is_called_here() -> None:
    gate = Gate.model_validate({"metric": "faithfulness", "op": ">=", "value": 3})
    with pytest.raises(ConfigError, match=r"in this run; that is 'groundedness' here$"):
        check_gate_names([gate], [Groundedness()])
