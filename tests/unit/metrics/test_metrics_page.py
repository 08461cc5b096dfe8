"""docs/metrics.md: its examples are run, and every figure of every family and judge has one that says something."""

import doctest
import re

import pytest

import judgekit
import judgekit.judges
import judgekit.metrics
from judgekit.analysis.joint import JOINT_COLUMNS
from judgekit.core.components import Judge, Metric, discover
from judgekit.metrics.retrieval import Retrieval
from tests.builders import REPOSITORY

PAGE = REPOSITORY / "docs" / "metrics.md"
COMPONENTS: list[Metric | Judge] = [
    *(family() for name, family in discover(judgekit.metrics, Metric).items() if name != "retrieval"),
    Retrieval(mrr_ks=(1,)),
    *(judge() for judge in discover(judgekit.judges, Judge).values()),
]
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")


def sessions(text: str) -> list[tuple[str, int]]:
    """Bodies of the `pycon` blocks and the lines at which they begin."""
    found = re.finditer(r"^```pycon\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [(match[1], text.count("\n", 0, match.start(1))) for match in found]


def examples(text: str) -> list[doctest.Example]:
    """Every example of the page, as one session."""
    parser = doctest.DocTestParser()
    found = []
    for body, line in sessions(text):
        for example in parser.get_examples(body, "metrics.md"):
            example.lineno += line
            found.append(example)
    return found


def failures(text: str) -> list[str]:
    """What the examples print that the page does not say."""
    said: list[str] = []
    test = doctest.DocTest(examples(text), {}, "metrics.md", str(PAGE), 0, None)
    doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=True)
    return said


def names_of(component: Metric | Judge) -> set[str]:
    """Names of scores and figures, with `@k` for the cut-offs."""
    columns = component.columns()
    found = {column.name for column in columns}
    found |= {column.aggregate for column in columns if column.aggregate}
    found |= {f"{column.name}.distribution" for column in columns if column.distribution}
    found |= {figure.name for figure in component.pooled()}
    return {re.sub(r"@\d+$", "@k", name) for name in found}


ALL_NAMES = sorted({name for component in COMPONENTS for name in names_of(component)} | {c.name for c in JOINT_COLUMNS})
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = examples(TEXT)


def test_the_examples_of_the_page_give_what_it_says() -> None:
    assert len(EXAMPLES) > 80
    assert "".join(failures(TEXT)) == ""


def test_an_example_with_a_wrong_digit_is_found() -> None:
    assert "0.6934" in TEXT
    assert "Expected:\n    (0.6935, 0.0)\nGot:\n    (0.6934, 0.0)" in "".join(
        failures(TEXT.replace("0.6934", "0.6935"))
    )


def test_no_example_is_loosened_or_left_out() -> None:
    assert [example.options for example in EXAMPLES if example.options] == []
    # All `>>>` of the page stand in blocks that are run, and every block but the first shows something.
    assert TEXT.count("\n>>> ") == len(EXAMPLES)
    silent = [
        line for body, line in sessions(TEXT) if not any(e.want for e in doctest.DocTestParser().get_examples(body))
    ]
    assert len(silent) == 1


@pytest.mark.parametrize("name", ALL_NAMES)
def test_every_figure_has_an_example_that_could_come_out_otherwise(name: str) -> None:
    # Two numbers are shown, or one that is neither 0 nor 1: a function that always says the same would be found.
    pattern = rf'"{re.escape(name)}"'.replace("@k", r"@\d+")
    shown = {number for example in EXAMPLES if re.search(pattern, example.source) for number in numbers(example.want)}
    assert len(shown) >= 2 or shown - {"0", "0.0", "1", "1.0"}, f"{name}: {shown or 'no example'}"


def numbers(want: str) -> set[str]:
    return set(NUMBER.findall(re.sub(r"'\w+':", "", want)))


def test_names_that_a_library_is_promised_are_there() -> None:
    spans = [judgekit.CharacterSpan("d", 0, 4)]
    for on_spans in (judgekit.span_recall, judgekit.span_precision, judgekit.span_iou):
        assert on_spans.calculate(spans, spans) == 1.0
    for on_chunks in (judgekit.chunk_recall, judgekit.chunk_precision, judgekit.chunk_f1):
        assert on_chunks.calculate(["c"], ["c"]) == 1.0
    names = ("chunk_recall", "chunk_precision", "chunk_f1", "span_recall", "span_precision", "span_iou")
    assert [getattr(judgekit, name).name for name in names] == list(names)
    assert judgekit.merge_overlapping_spans(spans) == spans
    assert judgekit.calculate_overlap(spans, spans) == 4
    assert judgekit.compare_fields({"a": 1}, {"a": 1}).f1 == 1.0
    assert set(names) <= set(judgekit.__all__)
