"""Keywords in answers."""

from typing import Any

import pytest

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.scores import Failed, NotApplicable
from judgekit.metrics.answer_checks import AnswerChecks


@pytest.mark.parametrize(
    ("case", "answer", "expected"),
    [
        pytest.param({"must_contain": ["alpha", "beta"]}, "beta and alpha", 1.0, id="all-there"),
        pytest.param({"must_contain": ["alpha", "beta"]}, "alpha", 0.0, id="one-missing"),
        pytest.param({"must_contain": ["alpha"]}, "alphabet", 1.0, id="substring"),
        pytest.param({"must_contain": ["Alpha"]}, "alpha", 0.0, id="case-counts"),
        pytest.param({"must_contain": ["Caf\u00e9"]}, "Cafe\u0301 au lait", 1.0, id="C18"),
        pytest.param({"must_contain": ["Cafe\u0301"]}, "Caf\u00e9 au lait", 1.0, id="C18-decomposed-keyword"),
        pytest.param({"forbidden": ["Cafe\u0301"]}, "Caf\u00e9 au lait", 0.0, id="C18-decomposed-forbidden"),
        pytest.param({"forbidden": ["gamma"]}, "alpha", 1.0, id="forbidden-absent"),
        pytest.param({"forbidden": ["gamma"]}, "gamma ray", 0.0, id="forbidden-there"),
        pytest.param({"must_contain": ["ray"], "forbidden": ["gamma"]}, "gamma ray", 0.0, id="both-lists"),
        pytest.param({"must_contain": ["alpha"]}, "", 0.0, id="blank-answer"),
        pytest.param({"must_contain": ["alpha"]}, None, NotApplicable("no answer"), id="no-answer"),
        pytest.param({}, "alpha", NotApplicable("no must_contain and no forbidden"), id="no-lists"),
    ],
)
def test_keyword_groundedness(case: dict[str, Any], answer: str | None, expected: object) -> None:
    output = SystemOutput(case_id="q", answer=answer)
    outcomes = AnswerChecks().calculate(Case.model_validate({"id": "q", **case}), output)
    assert outcomes == {"keyword_groundedness": expected}


def test_an_errored_output_fails_where_there_are_keywords_only() -> None:
    output = SystemOutput.model_validate({"case_id": "q", "answer": "alpha", "error": {"kind": "api"}})
    with_keywords = AnswerChecks().calculate(Case(id="q", must_contain=("alpha",)), output)
    assert with_keywords == {"keyword_groundedness": Failed("api")}
    without = AnswerChecks().calculate(Case(id="q"), output)
    assert isinstance(without["keyword_groundedness"], NotApplicable)
