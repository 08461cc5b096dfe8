"""What is checked of cases, outputs and judges before any call.

Fields that a metric or judge cannot do without, spans that do not fit the text, headings that look the same,
outputs of two versions of the system, judges that apply to no case.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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


def check_data(setup: "Setup", outputs: Sequence[SystemOutput]) -> Notices:
    """Everything that can be found out from cases and outputs alone.

    Returns:
        (code, message) of what the reader of the numbers should know.

    Raises:
        InputError: something that the config names needs a field that no record has, one line for each; or the text of
            an expected span is not what a hit has at this place.
    """
    _check_texts(setup, outputs)
    notices = _check_fields(setup, outputs)
    for case, output in zip(setup.cases, outputs, strict=True):
        problem = _span_conflict(case, output)
        if problem is not None:
            raise InputError(problem)
    return [*notices, *_offset_notices(setup.cases, outputs), *_heading_notices(setup.cases, outputs)]


def _check_texts(setup: "Setup", outputs: Sequence[SystemOutput]) -> None:
    """Refuse to judge outputs whose texts were not stored when they were recorded."""
    n_without = sum(output.answer_left_out for output in outputs)
    if n_without and setup.judge_components:
        names = ", ".join(judge.name for judge in setup.judge_components)
        raise InputError(
            f"{n_without} of {len(outputs)} answers were recorded without their text (store_text), which judges need "
            f"({names}); record them again with store_text: full, or leave the judges out"
        )


def _check_fields(setup: "Setup", outputs: Sequence[SystemOutput]) -> Notices:
    """Hold what metrics and judges need against what the records have.

    A system that failed on every case has no fields to speak of, and nothing is said then. Of some cases of a file a
    field may be missing by chance, so that nothing is refused.
    """
    if not setup.cases or all(output.error is not None for output in outputs):
        return []
    judges = setup.judge_components
    named = {component.name for component in [*judges, *(setup.metrics if setup.config.metrics is not None else ())]}
    is_part = len(setup.cases) < setup.n_cases_in_file
    wrong: list[str] = []
    notices: Notices = []
    for component, missing in missing_fields(setup, outputs):
        gold_missing = any(group[0].startswith("case.") for group in missing)
        line = f"{_kind(component)} {component.name} needs {', and '.join(map(in_words, missing))}"
        if component.name in named and not is_part:
            wrong.append(f'{line}; add it, map it with "fields", or leave {component.name} out')
        elif component.name in named or not gold_missing:
            notices.append(("field_missing", line))
    if wrong:
        raise InputError("\n".join(wrong))
    return notices


def missing_fields(setup: "Setup", outputs: Sequence[SystemOutput]) -> list[tuple[Component, list[tuple[str, ...]]]]:
    """Metrics and judges that no record has the fields for, with the fields: of each group one is needed.

    Without an output that has no error, only fields of cases count.
    """
    answered = [output for output in outputs if output.error is None]
    known: dict[str, bool] = {}
    components: list[Component] = [*setup.metrics, *setup.judge_components]
    found = []
    for component in components:
        groups = [group for group in component.needs if answered or group[0].startswith("case.")]
        missing = [group for group in groups if not any(_has(name, setup.cases, answered, known) for name in group)]
        if missing:
            found.append((component, missing))
    return found


def _kind(component: Component) -> str:
    return "judge" if isinstance(component, Judge) else "metrics:"


def in_words(needed: tuple[str, ...]) -> str:
    """A group of fields that is missing, for people."""
    fields = " or ".join(name.partition(".")[2] for name in needed)
    return f"{fields}, which no {needed[0].partition('.')[0]} has"


def _has(name: str, cases: Sequence[Case], outputs: Sequence[SystemOutput], known: dict[str, bool]) -> bool:
    """Whether some record has a field; an empty list of an output is one, since it says something."""
    if name not in known:
        where, _, field = name.partition(".")
        if where == "case":
            known[name] = any(getattr(case, field) not in (None, "", ()) for case in cases)
        else:
            known[name] = any(
                field in output.model_fields_set and getattr(output, field) is not None for output in outputs
            )
    return known[name]


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


def _offset_notices(cases: Sequence[Case], outputs: Sequence[SystemOutput]) -> Notices:
    """Hits whose spans are as long as their text in UTF-16 units, as JavaScript, Java and C# count."""
    found: list[str] = []
    for case, output in zip(cases, outputs, strict=True):
        if case.expected_spans is not None:
            found += [case.id for hit in output.retrieved if _counts_utf16(hit)]
    if not found:
        return []
    text = (
        f"{len(found)} hits have source_spans that fit their text in UTF-16 units and not in code points, first in "
        f"case {found[0]!r}; span figures count code points, so convert them with CharacterSpan.from_utf16"
    )
    return [("offsets_in_utf16", text)]


def _counts_utf16(hit: Hit) -> bool:
    if not hit.source_spans or not hit.text or hit.text.isascii() or hit.text_truncated:
        return False
    n_covered = sum(span.end - span.start for span in hit.source_spans)
    n_units = len(hit.text.encode("utf-16-le", "surrogatepass")) // 2
    return n_covered == n_units != len(hit.text)


def gold_notices(pairs: Iterable[tuple[Case, SystemOutput]]) -> Notices:
    """Gold and hits that are written in different ways, as a run says it: paths, ids, headings."""
    forms = NameForms()
    cases, outputs = [], []
    for case, output in pairs:
        forms.add(case, output)
        cases.append(case)
        outputs.append(output)
    return [*forms.warnings(), *_heading_notices(cases, outputs)]


def _heading_notices(cases: Sequence[Case], outputs: Sequence[SystemOutput]) -> Notices:
    """Headings of hits and references that are those of a gold support but for how they are split."""
    found: list[str] = []
    for case, output in zip(cases, outputs, strict=True):
        gold = [support for support in case.gold_supports if support.heading_path]
        if gold:
            places: list[Hit | DocumentPlace] = [*output.retrieved, *output.references]
            found += [case.id for place in places if _is_ambiguous(place, gold)]
    if not found:
        return []
    text = (
        f"{len(found)} hits or references have a heading_path that could be a gold support's, but is not split like it "
        f"(one text is split at ' > '), first in case {found[0]!r}; where it is the same place, "
        "write heading_path as a list, or set match.heading_delimiter in a config"
    )
    return [("ambiguous_heading_path", text)]


def _is_ambiguous(place: Hit | DocumentPlace, gold: Sequence[Support]) -> bool:
    return any(looks_alike(support, place.rel_path, place.heading_path) for support in gold)


def one_version(configured: Mapping[str, str], outputs: Sequence[SystemOutput]) -> dict[str, str]:
    """The versions of the system under test, from the config or else from the outputs.

    Raises:
        InputError: outputs name two versions of one thing.
    """
    found = dict(configured)
    for output in outputs:
        for name, value in output.versions.items():
            if name not in configured and found.setdefault(name, value) != value:
                raise InputError(
                    f"outputs name two versions of {name}: {found[name]!r} and {value!r} (case {output.case_id!r}); "
                    'a run is of one system, set it in the config\'s "versions" if they mean the same'
                )
    return found


def check_applies(
    judge: Judge,
    reasons: Mapping[str, NotApplicable | Failed],
    outputs: Sequence[SystemOutput],
    *,
    is_shard: bool = False,
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
    n_cases = len(outputs)
    if len(reasons) < n_cases or any(isinstance(reason, Failed) for reason in reasons.values()):
        return []
    counts = Counter(reason.reason for reason in reasons.values() if isinstance(reason, NotApplicable))
    why = ", ".join(f"{reason} ({n})" for reason, n in counts.most_common(5))
    text = f"judge {judge.name} applies to none of {n_cases} cases: {why}"
    if is_shard or judge.fills_gaps or _is_of_the_system(reasons.values(), outputs):
        return [("judge_not_asked", text)]
    raise ConfigError(text)


def _is_of_the_system(reasons: Collection[NotApplicable | Failed], outputs: Sequence[SystemOutput]) -> bool:
    """Whether the system is why nothing is judged, and no field is missing: hits that all lack a text miss one."""
    if not reasons or any(reason not in (ABSTAINED, NO_TEXT) for reason in reasons):
        return False
    hits = [hit for output in outputs for hit in output.retrieved]
    return NO_TEXT not in reasons or not hits or any(hit.text is not None for hit in hits)
