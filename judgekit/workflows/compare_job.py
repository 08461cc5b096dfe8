"""What a comparison of two stored runs works on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.comparison import Cause, RunIdentity
from judgekit.core.scores import Column, Outcome, Pooled
from judgekit.metrics.anchors import SnippetMode

Notices = Sequence[tuple[str, str]]


class StoredCases(Protocol):
    """The cases of a stored run, each by its id."""

    @property
    def ids(self) -> Sequence[str]:
        """Case ids in the order of the run."""

    @property
    def has_cases(self) -> bool:
        """Whether the run kept its cases."""

    @property
    def has_scores(self) -> bool:
        """Whether the run was scored."""

    def case(self, case_id: str) -> Case | None:
        """The case; None where the run did not keep it."""

    def output(self, case_id: str) -> SystemOutput | None:
        """The output; None where the run has none."""

    def scores(self, case_id: str) -> Mapping[str, Outcome]:
        """Outcomes by score name."""


@dataclass(frozen=True)
class ComparedSide:
    """One of the two runs."""

    label: str
    """How the user named it."""
    status: str
    identity: RunIdentity
    cases: StoredCases
    columns: Mapping[str, Sequence[Column]]
    """What is known of its scores, by metric family or judge."""
    pooled: Mapping[str, Sequence[Pooled]]
    figures: Mapping[str, Any] | None
    """Figures over all cases as metrics.json has them; None where the run wrote none."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """metrics.json; empty where the run wrote none."""
    index: Callable[[], Notices] = tuple
    """Write the run's entry in the results database anew; says what went wrong."""
    notices: Notices = ()


@dataclass(frozen=True)
class CompareOptions:
    """How two runs are compared."""

    k: int = 5
    allows_mismatch: bool = False
    strict_chunker_version: bool = False
    includes_edited: bool = False
    """Pair cases that were edited between the runs too."""
    snippets: SnippetMode = "if_text"
    """How the snippets of gold supports are held against hits."""
    cluster_by: str | None = None
    """Dimension whose values say which cases belong together; None: cases are independent."""


@dataclass
class CompareJob:
    """Two runs ready to be compared."""

    a: ComparedSide
    b: ComparedSide
    options: CompareOptions
    advise: Callable[[Sequence[Cause]], str]
    """The command that makes the runs comparable, for what is refused."""
    joint: Sequence[Column] = ()
    """Figures that take two judges."""
    same_run: str | None = None
    """Why the two are one run; None where they are two."""
    shares_answers: bool = False
    """One is a rejudge of the other, or both are of a third: the answers are the same."""
    notices: list[tuple[str, str]] = field(default_factory=list)

    @property
    def sides(self) -> tuple[ComparedSide, ComparedSide]:
        """Both runs."""
        return self.a, self.b
