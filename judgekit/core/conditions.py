"""Gates: what one asks of a figure, a limit or that it is not worse than a baseline's, and what was found."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from judgekit.core.data_files import Section
from judgekit.core.scores import Frozen

Op = Literal[">=", ">", "<=", "<"]

NOT_WORSE = "not_worse_than"
"""The `op` of a result that is relative to a baseline."""

INTERVAL = "interval"
"""Its `bound`: both ends of the interval of the difference are looked at."""


class Gate(Section):
    """A condition on a figure; missed, the command ends with exit code 1.

    Either `op` and `value`, or `not_worse_than` and `margin`.
    """

    metric: str
    """Name in metrics.json, such as `recall_any@5`, `risk_coverage.aurc` or `indexing_coverage.no_chunks_rate`.

    `<name>.coverage` is the share of the cases that a figure applies to for which there is a value."""
    op: Op | None = None
    value: float | None = None
    """The limit."""
    bound: Literal["point", "lower", "upper"] = "point"
    """Test the value itself, or an end of its 95% interval."""
    slice: Annotated[dict[str, str], Field(max_length=1)] = {}
    """One dimension and its value, such as {"category": "factual"}; left out: all cases."""
    not_worse_than: Annotated[str, Field(min_length=1)] | None = None
    """The baseline: `latest:main` (the newest other run with this tag, or of this suite), a run id, or a folder."""
    margin: Annotated[float, Field(ge=0)] | None = None
    """How much worse than the baseline the figure may be, in its own unit; for figures where lower is better, how much
    higher."""
    undecided: Literal["warn", "fail"] = "warn"
    """What becomes of the exit code where the paired interval leaves open whether the figure is worse by more than the
    margin, or where nothing can be compared: `warn` says so, `fail` counts as missed."""

    @property
    def limit(self) -> tuple[Op, float]:
        """`op` and `value`.

        Raises:
            ValueError: the gate is relative to a baseline.
        """
        if self.op is None or self.value is None:
            raise ValueError(f"the gate on {self.metric} is relative to a baseline and has no limit")
        return self.op, self.value

    @model_validator(mode="after")
    def _asks_one_thing(self) -> "Gate":
        named = [name for name in ("op", "value") if getattr(self, name) is not None]
        if self.not_worse_than is None:
            if self.margin is not None or self.undecided != "warn":
                raise ValueError('"margin" and "undecided" belong to "not_worse_than", which names the baseline')
            if len(named) < 2:
                raise ValueError('a gate has "op" and "value", or "not_worse_than" and "margin"')
            return self
        if self.margin is None:
            raise ValueError('"not_worse_than" needs "margin": how much worse the figure may be, such as 0.1')
        named += ["bound"] if self.bound != "point" else []
        named += ["slice"] if self.slice else []
        if named:
            raise ValueError(
                f'a gate with "not_worse_than" goes by the paired interval of all cases; drop {named[0]!r}'
            )
        return self


class AgainstBaseline(Frozen):
    """What a gate that is relative to a baseline found."""

    not_worse_than: str
    """How the config names the baseline."""
    run_id: str | None = None
    """The run that it was; None if there is none."""
    higher_is_better: bool | None = None
    """None if it is not known, or nothing was compared."""
    low: float | None = None
    """Lower end of the 95% interval of the difference, with failed cases as the worst if that is worse."""
    high: float | None = None
    method: str = ""
    undecided: Literal["warn", "fail"] = "warn"
    reason: str | None = None
    """Why the gate is undecided; None if it is decided."""


GateState = Literal["passed", "missed", "undecided"]


class GateResult(Frozen):
    """Whether one condition of the config holds."""

    metric: str
    op: str
    """`not_worse_than` if the gate is relative to a baseline."""
    value: float
    """The limit; the margin of a gate that is relative to a baseline."""
    bound: str
    slice: dict[str, str] = {}
    observed: float | None
    """The figure, or its difference from the baseline."""
    n: int
    passed: bool | None
    """None: undecided, which is neither passed nor missed."""
    message: str
    baseline: AgainstBaseline | None = None
    """None if the gate has a limit of its own."""

    @property
    def state(self) -> GateState:
        """In a word."""
        return "undecided" if self.passed is None else "passed" if self.passed else "missed"

    @property
    def fails(self) -> bool:
        """Whether the command ends with exit code 1 for it."""
        if self.passed is None:
            return self.baseline is None or self.baseline.undecided == "fail"
        return not self.passed
