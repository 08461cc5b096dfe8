"""What a gate asks of a figure: a limit, or that it is not worse than that of a baseline."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from judgekit.core.data_files import Section

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
