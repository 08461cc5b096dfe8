"""Text on pages."""

import pytest

from judgekit.reports.pages import render


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Ask again with `judgekit run --resume a`.", "Ask again with <code>judgekit run --resume a</code>."),
        ("nothing to run", "nothing to run"),
        # of foreign text nothing is markup, inside of backticks or not
        ("<b>`<i>`</b>", "&lt;b&gt;<code>&lt;i&gt;</code>&lt;/b&gt;"),
        ("turned \u202eround `\u202e`", "turned \ufffdround <code>\ufffd</code>"),
    ],
)
def test_a_command_between_backticks_is_shown_as_code(message: str, shown: str) -> None:
    page = "".join(render("message.html", {"title": "t", "message": message, "listed": False}))

    assert f"<p>{shown}</p>" in page
