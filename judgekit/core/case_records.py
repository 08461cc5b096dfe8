"""All that a run knows about one case, put together from the files of its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.judgments import JudgeInput, Judgment

OUR_KINDS = ("internal", "not judged")
"""Failures of a score that are not the system's doing."""


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One case of a run with its output, scores and judgments; parts that the run does not have are None or empty."""

    case_id: str
    case: Case | None = None
    output: SystemOutput | None = None
    scores: Mapping[str, tuple[float | None, str | None]] = field(default_factory=dict)
    """By score name: its value, and the reason where there is none."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """By score name, what said so, where a score has several sources."""
    judgments: Sequence[Judgment] = ()
    """For each question the judgment that counts: the last one, and never a failure after a verdict."""
    inputs: Mapping[str, JudgeInput] = field(default_factory=dict)
    """What was put before each judge."""

    @property
    def failures(self) -> tuple[str, ...]:
        """What failed and how, such as `system: timeout` or `groundedness: invalid`; empty where nothing did."""
        found = [] if self.output is None or self.output.error is None else [f"system: {self.output.error.kind}"]
        for judgment in self.judgments:
            if judgment.role == "primary" and judgment.verdict is None:
                kind = judgment.failure.kind if judgment.failure is not None else "internal"
                found.append(f"{judgment.judge}: {kind}")
        if not found:
            missing = [reason for value, reason in self.scores.values() if value is None and reason is not None]
            kinds = [reason[8:] for reason in missing if reason.startswith("failed: ")]
            found += [kind if kind in OUR_KINDS else f"system: {kind}" for kind in kinds]
        return tuple(dict.fromkeys(found))
