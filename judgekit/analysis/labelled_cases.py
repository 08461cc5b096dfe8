"""A case that people and a judge both have a say on, and what both say of the whole run."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from judgekit.analysis.label_sets import Readings
from judgekit.core.human_labels import HumanLabel
from judgekit.core.judgments import Verdict
from judgekit.core.kind import Kind
from judgekit.core.written_labels import together
from judgekit.stats.means import mean


@dataclass(frozen=True)
class LabelledCase:
    """A case with labels and a verdict."""

    case_id: str
    cluster: str | None
    """Cases of one cluster may be alike; None: it stands for itself."""
    labels: tuple[HumanLabel | None, ...]
    """By annotator."""
    verdict: Verdict
    kind: Kind

    @property
    def said(self) -> list[Verdict]:
        """The labels that are verdicts."""
        return [label.verdict for label in self.labels if label is not None and label.verdict is not None]

    @cached_property
    def people(self) -> Verdict | None:
        """What people say together; None if they say nothing, or too many different things."""
        return together(self.said, self.kind)

    @cached_property
    def classes(self) -> tuple[bool | None, ...]:
        """Pass or fail of each annotator."""
        return tuple(None if label is None else self._class(label) for label in self.labels)

    @property
    def human_class(self) -> bool | None:
        """Pass if more than half of the annotators pass it."""
        return majority(self.classes)

    @property
    def judge_class(self) -> bool | None:
        """Whether the judge passes it."""
        return self.kind.side(self.verdict)

    @property
    def human_points(self) -> float | None:
        """The mean of the annotators' ratings; None without one, or if ratings are no amounts."""
        return mean([rating for item in self.said if (rating := _points(item, self.kind)) is not None])

    @property
    def judge_points(self) -> float | None:
        """The rating of the judge."""
        return _points(self.verdict, self.kind)

    def is_right(self, verdict: Verdict) -> bool | None:
        """Whether a verdict says what people do: of the class, or of the label where no label passes.

        None if that cannot be told.
        """
        side, people = self.kind.side(verdict), self.people
        if side is not None and self.human_class is not None:
            return side == self.human_class
        if self.kind.is_ordered or self.kind.has_pass or people is None or people.cannot_tell or verdict.cannot_tell:
            return None
        return people.said == verdict.said

    def _class(self, label: HumanLabel) -> bool | None:
        return label.passed if label.verdict is None else self.kind.side(label.verdict)


def majority(classes: Sequence[bool | None]) -> bool | None:
    """Pass if more than half of the annotators pass the case: what their lower median does at any pass score."""
    given = [passed for passed in classes if passed is not None]
    return 2 * sum(given) > len(given) if given else None


def _points(verdict: Verdict, kind: Kind) -> float | None:
    return kind.rating(verdict) if kind.has_points and not verdict.cannot_tell else None


def readings_of(
    cases: Sequence[LabelledCase], verdicts: Mapping[str, Verdict], kind: Kind, judge: str, clusters: Mapping[str, str]
) -> dict[str, Readings]:
    """What people and the judge say of each figure of a run, as far as both say something.

    Args:
        cases: those with labels.
        verdicts: all verdicts of the judge, by case id.
        kind: what they are.
        judge: name of the judge.
        clusters: of the cases that are not alone, by case id.

    Returns:
        `score`, `pass_rate`, and the parts of a verdict by the name of their figure, such as `brand.off`.
    """
    groups: dict[str, Hashable] | None = None
    if clusters:
        groups = {name: f"= {clusters[name]}" if name in clusters else name for name in verdicts}
    flags = {name: kind.flags(item) for name, item in verdicts.items()}
    said = {case.case_id: [kind.flags(item) for item in case.said] for case in cases}
    found: dict[str, tuple[dict[str, float | None], dict[str, float | None]]] = {
        "score": (
            {case.case_id: case.human_points for case in cases},
            {name: _points(item, kind) for name, item in verdicts.items()},
        ),
        "pass_rate": (
            {case.case_id: case.human_class for case in cases},
            {name: kind.side(item) for name, item in verdicts.items()},
        ),
    }
    for part in kind.part_names:
        found[f"{judge}.{part}"] = (
            {name: mean([float(item[part]) for item in given if part in item]) for name, given in said.items()},
            {name: item.get(part) for name, item in flags.items()},
        )
    readings = {name: Readings(_known(human), _known(own), groups) for name, (human, own) in found.items()}
    return {name: item for name, item in readings.items() if item.human and item.judge}


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}
