"""What is checked of cases, outputs and judges before any call.

Fields that a metric or judge cannot do without, spans that do not fit the text, headings that look the same,
outputs of two versions of the system, judges that apply to no case.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from judgekit.analysis.input_mismatches import NameForms
from judgekit.core.cases import Case, DocumentPlace, Hit, Span, Support, SystemOutput
from judgekit.core.components import Component, Judge
from judgekit.core.errors import ConfigError, InputError
from judgekit.core.runs import Notices
from judgekit.core.scores import Failed, NotApplicable
from judgekit.judges.passages import ABSTAINED, NO_TEXT
from judgekit.metrics.gold_evidence import looks_alike

if TYPE_CHECKING:
    from judgekit.workflows.setup import Setup  # `judgekit score` sets up nothing


class DataCheck:
    """Everything that can be found out from cases and outputs alone, gathered pair by pair."""

    def __init__(self, setup: "Setup") -> None:
        """Check for what the config names; nothing is read here."""
        self._setup = setup
        self._components: list[Component] = [*setup.metrics, *setup.judge_components]
        self._open = {name for component in self._components for group in component.needs for name in group}
        """Fields that something needs and no record has had so far."""
        self.versions = dict(setup.config.versions)
        """Of the system under test, from the config or else from the outputs."""
        self.n = 0
        self._n_answered = 0
        self._n_without_text = 0
        self.has_hits = self.has_texts = False
        """Whether anything was retrieved, and a hit has a text."""
        self._utf16 = _Found()
        self._ambiguous = _Found()

    def passed(self, pairs: Iterable[tuple[Case, SystemOutput]]) -> Iterator[tuple[Case, SystemOutput]]:
        """Hand cases and their outputs on, each after a look at it; errors as of `add`."""
        for case, output in pairs:
            self.add(case, output)
            yield case, output

    def add(self, case: Case, output: SystemOutput) -> None:
        """Look at one case and its output.

        Raises:
            InputError: the text of an expected span is not what a hit has at this place, or outputs name two versions
                of one thing.
        """
        self.n += 1
        self._n_without_text += output.answer_left_out
        self._n_answered += output.error is None
        if self._open:
            self._open -= {name for name in self._open if _has(name, case, output)}
        if output.versions:
            self._add_versions(output)
        for hit in output.retrieved:
            self.has_hits = True
            self.has_texts = self.has_texts or hit.text is not None
        if case.expected_spans is not None:
            problem = _span_conflict(case, output)
            if problem is not None:
                raise InputError(problem)
            self._utf16.add(case, sum(map(_counts_utf16, output.retrieved)))
        self._ambiguous.add(case, _n_ambiguous(case, output))

    def _add_versions(self, output: SystemOutput) -> None:
        configured = self._setup.config.versions
        for name, value in output.versions.items():
            if name not in configured and self.versions.setdefault(name, value) != value:
                raise InputError(
                    f"outputs name two versions of {name}: {self.versions[name]!r} and {value!r} (case "
                    f'{output.case_id!r}); a run is of one system, set it in the config\'s "versions" if they mean the '
                    "same"
                )

    def notices(self) -> Notices:
        """(code, message) of what the reader of the numbers should know.

        Raises:
            InputError: something that the config names needs a field that no record has, one line for each; or judges
                need texts that were not stored.
        """
        setup = self._setup
        if self._n_without_text and setup.judge_components:
            names = ", ".join(judge.name for judge in setup.judge_components)
            raise InputError(
                f"{self._n_without_text} of {self.n} answers were recorded without their text (store_text), which "
                f"judges need ({names}); record them again with store_text: full, or leave the judges out"
            )
        notices = self._missing_notices()
        if self._utf16.n:
            text = (
                f"{self._utf16.n} hits have source_spans that fit their text in UTF-16 units and not in code points, "
                f"first in case {self._utf16.first!r}; span figures count code points, so convert them with "
                "CharacterSpan.from_utf16"
            )
            notices.append(("offsets_in_utf16", text))
        return [*notices, *self._ambiguous.heading_notices()]

    def _missing_notices(self) -> Notices:
        """Hold what metrics and judges need against what the records have.

        A system that failed on every case has no fields to speak of, and nothing is said then. Of some cases of a file
        a field may be missing by chance, so that nothing is refused.
        """
        setup = self._setup
        if not self._n_answered:
            return []
        judges = setup.judge_components
        metrics = setup.metrics if setup.config.metrics is not None else ()
        named = {component.name for component in [*judges, *metrics]}
        is_part = len(setup.cases) < setup.n_cases_in_file
        wrong: list[str] = []
        notices: Notices = []
        for component, missing in self.missing_fields():
            gold_missing = any(group[0].startswith("case.") for group in missing)
            line = f"{_kind(component)} {component.name} needs {', and '.join(map(in_words, missing))}"
            if component.name in named and not is_part:
                wrong.append(f'{line}; add it, map it with "fields", or leave {component.name} out')
            elif component.name in named or not gold_missing:
                notices.append(("field_missing", line))
        if wrong:
            raise InputError("\n".join(wrong))
        return notices

    def missing_fields(self) -> list[tuple[Component, list[tuple[str, ...]]]]:
        """Metrics and judges that no record has the fields for, with the fields: of each group one is needed.

        Without an output that has no error, only fields of cases count.
        """
        found = []
        for component in self._components:
            groups = [group for group in component.needs if self._n_answered or group[0].startswith("case.")]
            missing = [group for group in groups if self._open.issuperset(group)]
            if missing:
                found.append((component, missing))
        return found


class _Found:
    """How often something was found, and in which case first."""

    def __init__(self) -> None:
        self.n = 0
        self.first = ""

    def add(self, case: Case, n: int) -> None:
        if n and not self.n:
            self.first = case.id
        self.n += n

    def heading_notices(self) -> Notices:
        """Headings of hits and references that are those of a gold support but for how they are split."""
        if not self.n:
            return []
        text = (
            f"{self.n} hits or references have a heading_path that could be a gold support's, but is not split like it "
            f"(one text is split at ' > '), first in case {self.first!r}; where it is the same place, "
            "write heading_path as a list, or set match.heading_delimiter in a config"
        )
        return [("ambiguous_heading_path", text)]


def _kind(component: Component) -> str:
    return "judge" if isinstance(component, Judge) else "metrics:"


def in_words(needed: tuple[str, ...]) -> str:
    """A group of fields that is missing, for people."""
    fields = " or ".join(name.partition(".")[2] for name in needed)
    return f"{fields}, which no {needed[0].partition('.')[0]} has"


def _has(name: str, case: Case, output: SystemOutput) -> bool:
    """Whether a record has a field; an empty list of an output is one, since it says something."""
    where, _, field = name.partition(".")
    if where == "case":
        return getattr(case, field) not in (None, "", ())
    return output.error is None and field in output.model_fields_set and getattr(output, field) is not None


def _span_conflict(case: Case, output: SystemOutput) -> str | None:
    """Where an expected span's own text is not what a hit has at this place; None if all fits or nothing is known.

    A hit says what stands at a place if its text is whole and as long as its one span. White space counts as equal to
    other white space, since texts are often laid out again.
    """
    for chunk_id, spans in (case.expected_spans or {}).items():
        for span in spans:
            for number, hit in enumerate(output.retrieved):
                both = None if span.text is None else _common(span, span.text, hit)
                if both is not None and not _same(*both):
                    return (
                        f"case {case.id!r}: expected_spans of chunk {chunk_id!r} and retrieved[{number}] have two "
                        f"texts for one place of {span.doc_id!r}: {both[0][:40]!r} and {both[1][:40]!r}; "
                        "offsets count Unicode code points"
                    )
    return None


def _common(span: Span, text: str, hit: Hit) -> tuple[str, str] | None:
    """What a span and a hit say of the characters that they share."""
    if hit.text is None or hit.text_truncated or len(hit.source_spans) != 1:
        return None
    (place,) = hit.source_spans
    doc_id = hit.doc_id if place.doc_id is None else place.doc_id
    start, end = max(span.start, place.start), min(span.end, place.end)
    if doc_id != span.doc_id or start >= end or place.end - place.start != len(hit.text):
        return None
    return text[start - span.start : end - span.start], hit.text[start - place.start : end - place.start]


def _same(one: str, other: str) -> bool:
    return one == other or all(a == b or (a.isspace() and b.isspace()) for a, b in zip(one, other, strict=True))


def _counts_utf16(hit: Hit) -> bool:
    if not hit.source_spans or not hit.text or hit.text.isascii() or hit.text_truncated:
        return False
    n_covered = sum(span.end - span.start for span in hit.source_spans)
    n_units = len(hit.text.encode("utf-16-le", "surrogatepass")) // 2
    return n_covered == n_units != len(hit.text)


def gold_notices(pairs: Iterable[tuple[Case, SystemOutput]]) -> Notices:
    """Gold and hits that are written in different ways, as a run says it: paths, ids, headings."""
    forms, ambiguous = NameForms(), _Found()
    for case, output in pairs:
        forms.add(case, output)
        ambiguous.add(case, _n_ambiguous(case, output))
    return [*forms.warnings(), *ambiguous.heading_notices()]


def _n_ambiguous(case: Case, output: SystemOutput) -> int:
    """Headings of hits and references that are those of a gold support but for how they are split."""
    gold = [support for support in case.gold_supports if support.heading_path]
    if not gold:
        return 0
    places: list[Hit | DocumentPlace] = [*output.retrieved, *output.references]
    return sum(_is_ambiguous(place, gold) for place in places)


def _is_ambiguous(place: Hit | DocumentPlace, gold: Sequence[Support]) -> bool:
    return any(looks_alike(support, place.rel_path, place.heading_path) for support in gold)


def check_applies(
    judge: Judge, reasons: Mapping[str, NotApplicable | Failed], check: DataCheck, *, is_shard: bool = False
) -> Notices:
    """Refuse a judge that applies to no case, since the config or the data then miss something.

    A system that failed on cases, retrieved nothing or abstained is not a reason to refuse: that is what the run shows.
    Nor is a judge that only fills gaps: in the first cases of a file there may be none. Of a shard nothing is refused,
    since a few cases may be all of one kind by chance; the merged run is held to it.

    Returns:
        Warnings, as (code, message).

    Raises:
        ConfigError: says why, with counts.
    """
    if len(reasons) < check.n or any(isinstance(reason, Failed) for reason in reasons.values()):
        return []
    counts = Counter(reason.reason for reason in reasons.values() if isinstance(reason, NotApplicable))
    why = ", ".join(f"{reason} ({n})" for reason, n in counts.most_common(5))
    text = f"judge {judge.name} applies to none of {check.n} cases: {why}"
    if is_shard or judge.fills_gaps or _is_of_the_system(reasons.values(), check):
        return [("judge_not_asked", text)]
    raise ConfigError(text)


def _is_of_the_system(reasons: Collection[NotApplicable | Failed], check: DataCheck) -> bool:
    """Whether the system is why nothing is judged, and no field is missing: hits that all lack a text miss one."""
    if not reasons or any(reason not in (ABSTAINED, NO_TEXT) for reason in reasons):
        return False
    return NO_TEXT not in reasons or not check.has_hits or check.has_texts
