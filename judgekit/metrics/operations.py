"""Operations: how often the system under test failed to give an answer."""

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Metric
from judgekit.core.scores import Column, Outcomes
from judgekit.core.text import is_blank
from judgekit.metrics.abstention import abstained

_NAMES = ("error_rate", "timeout_rate", "empty_response_rate")


class Operations(Metric):
    """Failures of the system under test, over all cases.

    Per case 0 or 1, lower is better, always a number; the mean is the rate:

    * `error_rate`: 1 if the output is an error (time-outs are among them) or an empty response.
    * `timeout_rate`: 1 if the error's kind is `timeout`.
    * `empty_response_rate`: 1 if the answer is blank, or absent without a hit either, without an error and without a
      declared abstention (`abstained` true, or unset with `grounded` false).

    A blank answer that declares nothing is an abstention to the abstention scores and an empty response here,
    so that a system which falls silent cannot pass for a cautious one unseen.

    Source: in-house.
    """

    def columns(self) -> tuple[Column, ...]:
        return tuple([Column(name, higher_is_better=False, binary=True, section="operational") for name in _NAMES])

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:  # noqa: ARG002 - the port's signature
        if output.error is not None:
            timed_out = output.error.kind == "timeout"
            return {"error_rate": 1.0, "timeout_rate": float(timed_out), "empty_response_rate": 0.0}
        empty = float(_is_empty(output))
        return {"error_rate": empty, "timeout_rate": 0.0, "empty_response_rate": empty}


def _is_empty(output: SystemOutput) -> bool:
    if output.answer is None and output.retrieved:
        return False  # a system that only retrieves has come back with what it has
    if output.answer is not None and not is_blank(output.answer):
        return False
    value, source = abstained(output)
    declared = value is True and source in ("flag", "grounded")
    return not declared
