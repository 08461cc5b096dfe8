"""Failure cases of the second collection, what judges reply: each id through a whole run against a server.

Verdicts are those of our groundedness judge: a whole number 0 to 5 with two lists of claims, pass at 4.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgekit.testing import FaultServer, Reply, as_responder, chat_reply
from tests.builders import case, output, read_lines, write_suite
from tests.workflows.engine import Ran, after_capabilities, again, carried_out, is_capability_call
from tests.workflows.test_failure_cases_replies import said

pytestmark = pytest.mark.usefixtures("quick_waits")

DRAFT = said(1, "draft")
FINAL = said(4, "final")
LOWER = said(2, "adds a date", '"supported_claims": [], "unsupported_claims": ["a date"]')


def in_field(name: str, value: Any, *, content: Any = None, finish_reason: str = "stop") -> Reply:
    """A completion whose text stands in another field than the content."""
    message = {"role": "assistant", "content": content, name: value}
    return Reply(body={"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}, fill=True)


# What the judge replies; the score, and how it is read; where there is no score, the failure and what it names.
ROWS: list[Any] = [
    pytest.param(
        f"<|channel|>analysis<|message|>maybe {DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>{FINAL}",
        (4, "harmony"),
        id="T2-15-channels",
    ),
    pytest.param(
        f"<|start|>assistant<|channel|>analysis<|message|>{DRAFT} {{<|end|>"
        f"<|start|>assistant<|channel|>final <|constrain|>json<|message|>{FINAL}<|return|>",
        (4, "harmony"),
        id="T2-15-constrained",
    ),
    pytest.param(f"maybe {DRAFT}<|end|><|channel|>final<|message|>{FINAL}", (4, "harmony"), id="T2-15-begun-in-prompt"),
    pytest.param(f"analysisMaybe {DRAFT} or so.assistantfinal{FINAL}", (4, "harmony"), id="T2-15-marks-dropped"),
    pytest.param(
        f"<|channel|>analysis<|message|>maybe {DRAFT}<|end|>", ("empty", "no final channel"), id="T2-15-no-final"
    ),
    pytest.param(
        chat_reply(f"<|channel|>analysis<|message|>maybe {DRAFT} or", finish_reason="length"),
        ("truncated", "max_output_tokens"),
        id="T2-15-cut",
    ),
    pytest.param(f"[THINK]maybe {DRAFT}[/THINK]{FINAL}", (4, "think-brackets"), id="T2-15-brackets"),
    pytest.param(f"<seed:think>maybe {DRAFT}</seed:think>\n{FINAL}", (4, "think-prefix"), id="T2-15-prefix"),
    pytest.param(f"◁think▷maybe {DRAFT}◁/think▷{FINAL}", (4, "think-triangles"), id="T2-15-triangles"),
    pytest.param(f"<analysis>maybe {DRAFT}</analysis>{FINAL}", (4, "think-notes"), id="T2-15-notes"),
    pytest.param(f"<antThinking>maybe {DRAFT}</antThinking>{FINAL}", (4, "think-named"), id="T2-15-named"),
    pytest.param(
        f"<|begin_of_thought|>maybe {DRAFT}<|end_of_thought|>{FINAL}", (4, "think-begin"), id="T2-15-begin-and-end"
    ),
    pytest.param(f"<|think|>maybe {DRAFT}<|/think|>{FINAL}", (4, "think-bars"), id="T2-15-bars"),
    pytest.param(
        f"<scratchpad>maybe {DRAFT}</scratchpad>I cannot tell.", ("invalid", "no JSON object"), id="T2-15-draft-only"
    ),
    pytest.param(
        in_field("reasoning", f"The answer adds a date. {LOWER}"),
        ("empty", f"content is empty; {len(LOWER) + 24} characters in `reasoning`"),
        id="T2-41-prose",
    ),
    pytest.param(in_field("reasoning", LOWER), (2, "reasoning+strict"), id="T2-41-verdict"),
    pytest.param(in_field("reasoning_content", LOWER, content=""), (2, "reasoning_content+strict"), id="T2-41-blank"),
    pytest.param(
        in_field("reasoning_details", [{"type": "reasoning.text", "text": "It adds a date."}]),
        ("empty", "15 characters in `reasoning_details`"),
        id="T2-41-parts",
    ),
    pytest.param(
        chat_reply([{"type": "thinking", "thinking": [{"type": "text", "text": "It adds a date."}]}]),  # type: ignore[arg-type]
        ("empty", "15 characters in `thinking`"),
        id="T2-41-part-of-content",
    ),
    pytest.param(
        in_field("thinking", "It adds a d", finish_reason="length"),
        ("truncated", "11 characters in `thinking`"),
        id="T2-41-cut",
    ),
    pytest.param(in_field("reasoning", f"Perhaps {DRAFT}", content=FINAL), (4, "strict"), id="T2-41-both"),
    pytest.param(f"first {DRAFT}, no, look again {{\n</think>\n{FINAL}", (4, "think"), id="T2-50-draft-and-brace"),
    pytest.param(f"}} first {DRAFT}</think>{DRAFT}, no.</think>{FINAL}", (4, "think"), id="T2-50-two-tags"),
    pytest.param(f"hm {{\n</reasoning>\nSo: {FINAL}", (4, "think-reasoning+object"), id="T2-50-other-tag"),
    pytest.param(f"{DRAFT}\n</think>\n", ("empty", "but for its thinking"), id="T2-50-nothing-after"),
]
RAW = {
    "t2-41-prose": f"The answer adds a date. {LOWER}",
    "t2-41-parts": "It adds a date.",
    "t2-41-part-of-content": "It adds a date.",
    "t2-41-cut": "It adds a d",
}
"""What is stored of replies without content."""


@pytest.fixture(scope="module")
def all_rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """One run over all rows, a case for each."""
    names = [str(param.id).lower() for param in ROWS]

    def answer(request: Any) -> Reply:
        replies = (
            row.values[0] for row, name in zip(ROWS, names, strict=True) if f"kiln {name} " in request.text.lower()
        )
        return (
            chat_reply('{"ready": true}') if is_capability_call(request.body) else as_responder(next(replies))(request)
        )

    cases, outputs = [case(name) for name in names], [output(name) for name in names]
    yield carried_out(tmp_path_factory.mktemp("replies"), answer, case_rows=cases, output_rows=outputs)


@pytest.mark.parametrize(("reply", "expected"), ROWS)
def test_thinking_is_told_from_the_verdict(
    reply: Any, expected: tuple[Any, str], all_rows: Ran, request: pytest.FixtureRequest
) -> None:
    case_id = request.node.callspec.id.lower()
    judgment = all_rows.judgments[case_id]
    if isinstance(expected[0], int):
        assert judgment["failure"] is None
        assert (judgment["verdict"]["score"], judgment["parse_path"]) == expected
    else:
        assert judgment["verdict"] is None
        assert judgment["failure"]["kind"] == expected[0]
        assert expected[1] in judgment["failure"]["message"]
    scores = read_lines(all_rows.folder / "scores.jsonl")
    value = next(item["value"] for item in scores if (item["case_id"], item["name"]) == (case_id, "groundedness"))
    assert value == (expected[0] if isinstance(expected[0], int) else None)
    assert RAW.get(case_id, judgment["raw_reply"]) == judgment["raw_reply"]


def test_t2_41_a_reply_in_another_field_is_read_the_same_from_the_cache(tmp_path: Path) -> None:
    with FaultServer(after_capabilities(in_field("reasoning", LOWER))) as server:
        first = again(write_suite(tmp_path, server.base_url, n_cases=1), server)
        second = again(first.config, server, run_id="again")
    assert [ran.only["parse_path"] for ran in (first, second)] == ["reasoning+strict"] * 2
    assert second.only["from_cache"]
