"""Annotations: foreign text cannot end a workflow command or start another one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.reports.ci_servers import annotation


@pytest.mark.parametrize(
    ("title", "message", "line"),
    [
        ("gate missed: mrr", "mrr >= 0.8", "::error title=gate missed%3A mrr::mrr >= 0.8"),
        ("a,b", "100% of\ntwo lines", "::error title=a%2Cb::100%25 of%0Atwo lines"),
        ("t", "x\r\n::add-mask::y", "::error title=t::x\ufffd%0A: :add-mask::y"),
        ("\x1b[31m", "bell\x07", "::error title=\ufffd[31m::bell\ufffd"),
    ],
)
def test_what_would_be_read_as_syntax_is_escaped(title: str, message: str, line: str) -> None:
    assert annotation("error", title, message) == line


@given(st.text(), st.text())
def test_an_annotation_is_one_line_with_one_property(title: str, message: str) -> None:
    line = annotation("warning", title, message)
    assert len(line.splitlines()) == 1
    head = line.removeprefix("::warning title=").partition("::")[0]
    assert ":" not in head
    assert "," not in head
