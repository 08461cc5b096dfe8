"""What is checked of cases and outputs together, before any call.

Fields that a metric or judge cannot do without, spans that do not fit the text, headings that cannot be told apart.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from judgekit.analysis.label_forms import LabelForms
from judgekit.core.cases import Anchor, Case, Hit, Span, Support, SystemOutput
from judgekit.core.components import Component, Judge, Metric
from judgekit.core.config import RunConfig
from judgekit.core.errors import InputError
from judgekit.metrics.headings import looks_alike

Notice = tuple[str, str]


@dataclass(frozen=True)
class Asked:
    """What a run is to calculate."""

    components: Sequence[Component]
    """Metric families and judges."""
    by_name: Collection[str]
    """Those of them that the config names, so that they must be possible."""
    is_part: bool = False
    """The cases are only some of the file's, so that a field may be missing by chance."""


def asked_of(config: RunConfig, metrics: Sequence[Metric], judges: Sequence[Judge], *, is_part: bool) -> Asked:
    """What a config asks for: judges always by name, metric families where it lists them."""
    named = [*judges, *(metrics if config.metrics is not None else ())]
    return Asked([*metrics, *judges], {component.name for component in named}, is_part)


def check_data(asked: Asked, cases: Sequence[Case], outputs: Sequence[SystemOutput]) -> list[Notice]:
    """Everything that can be found out from cases and outputs alone.

    Returns:
        (code, message) of what the reader of the numbers should know.

    Raises:
        InputError: something that was asked for by name needs a field that no record has, one line for each; or the
            text of an expected span is not what a hit has at this place.
    """
    notices = check_fields(asked, cases, outputs)
    for case, output in zip(cases, outputs, strict=True):
        problem = span_conflict(case, output)
        if problem is not None:
            raise InputError(problem)
    return [*notices, *_offset_notices(cases, outputs), *heading_notices(cases, outputs)]


def check_fields(asked: Asked, cases: Sequence[Case], outputs: Sequence[SystemOutput]) -> list[Notice]:
    """Hold what metrics and judges need against what the records have; arguments and errors as for `check_data`.

    A system that failed on every case has no fields to speak of, and nothing is said then.
    """
    answered = [output for output in outputs if output.error is None]
    if not cases or not answered:
        return []
    known: dict[str, bool] = {}
    wrong, notices = [], []
    for component in asked.components:
        missing = [group for group in component.needs if not any(_has(name, cases, answered, known) for name in group)]
        if not missing:
            continue
        labels_missing = any(group[0].startswith("case.") for group in missing)
        line = f"{_kind(component)} {component.name} needs {', and '.join(map(_in_words, missing))}"
        if component.name in asked.by_name and not asked.is_part:
            wrong.append(f'{line}; add it, map it with "fields", or leave {component.name} out')
        elif component.name in asked.by_name or not labels_missing:
            notices.append(("field_missing", line))
    if wrong:
        raise InputError("\n".join(wrong))
    return notices


def _kind(component: Component) -> str:
    return "judge" if isinstance(component, Judge) else "metrics:"


def _in_words(needed: tuple[str, ...]) -> str:
    fields = " or ".join(name.partition(".")[2] for name in needed)
    return f"{fields}, which no {needed[0].partition('.')[0]} has"


def _has(name: str, cases: Sequence[Case], outputs: Sequence[SystemOutput], known: dict[str, bool]) -> bool:
    """Whether some record has a field; an empty list of an output is one, since it says something."""
    if name not in known:
        where, _, field = name.partition(".")
        if where == "case":
            known[name] = any(_is_label(getattr(case, field)) for case in cases)
        else:
            known[name] = any(field in output.model_fields_set and _is_given(output, field) for output in outputs)
    return known[name]


def _is_label(value: object) -> bool:
    return value is not None and value not in ("", ())


def _is_given(output: SystemOutput, field: str) -> bool:
    return getattr(output, field) is not None


def span_conflict(case: Case, output: SystemOutput) -> str | None:
    """Where an expected span's own text is not what a hit has at this place; None where all fits or nothing is known.

    A hit says what stands at a place if its text is whole and as long as its one span. White space counts as equal to
    other white space, since texts are often laid out anew.
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


def _offset_notices(cases: Sequence[Case], outputs: Sequence[SystemOutput]) -> list[Notice]:
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


def label_notices(pairs: Iterable[tuple[Case, SystemOutput]]) -> list[Notice]:
    """Labels and hits that are written in different ways, as a run says it: paths, ids, headings."""
    forms = LabelForms()
    cases, outputs = [], []
    for case, output in pairs:
        forms.add(case, output)
        cases.append(case)
        outputs.append(output)
    return [*forms.warnings(), *heading_notices(cases, outputs)]


def heading_notices(cases: Sequence[Case], outputs: Sequence[SystemOutput]) -> list[Notice]:
    """Headings of hits and references that are those of a gold support but for how they are split."""
    found: list[str] = []
    for case, output in zip(cases, outputs, strict=True):
        gold = [support for support in case.gold_supports if support.heading_path]
        if gold:
            places: list[Hit | Anchor] = [*output.retrieved, *output.references]
            found += [case.id for place in places if _is_ambiguous(place, gold)]
    if not found:
        return []
    text = (
        f"{len(found)} hits or references have a heading_path that could be a gold support's, but is not split like it "
        f"(one text is split at ' > '), first in case {found[0]!r}; where it is the same place, "
        "write heading_path as a list, or set match.heading_delimiter in a config"
    )
    return [("ambiguous_heading_path", text)]


def _is_ambiguous(place: Hit | Anchor, gold: Sequence[Support]) -> bool:
    return any(looks_alike(support, place.rel_path, place.heading_path) for support in gold)
