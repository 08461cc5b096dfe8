"""A conversation as one list: what was said to the system, and what the system said and did."""

from collections.abc import Iterator
from typing import Any

from judgekit.core.cases import Case, Message, SystemOutput, ToolCall
from judgekit.core.text import canonical_json


def messages_of(case: Case, output: SystemOutput) -> list[Message]:
    """All messages in order: those of the case, then the turns of the output; empty if neither has any.

    A question or an answer that stands in no message is added as one.
    """
    before, turns = case.messages or (), output.turns or ()
    if not before and not turns:
        return []
    found = [*before, *turns]
    if not before and case.question and turns[0].role != "user":
        found.insert(0, Message(role="user", text=case.question))
    if not turns and output.answer is not None:
        found.append(Message(role="assistant", text=output.answer))
    return found


def conversation_of(case: Case, output: SystemOutput) -> list[dict[str, Any]]:
    """The conversation as judges see it: `{"number", "role", "text"}`, numbered from 1; empty if there is none.

    The text of a message also says which tools it called, what a result belongs to, and what was left out. All of it
    is written by others, apart from the role.
    """
    return [
        {"number": number, "role": message.role, "text": "\n".join(_lines(message))}
        for number, message in enumerate(messages_of(case, output), start=1)
    ]


def tool_calls_of(output: SystemOutput) -> list[ToolCall]:
    """What the system called, in order."""
    return [call for turn in output.turns or () if turn.role == "assistant" for call in turn.tool_calls]


def _lines(message: Message) -> Iterator[str]:
    if message.name is not None:
        yield f"{message.name}:"
    if message.text is not None:
        yield message.text
    for call in message.tool_calls:
        yield f"calls {call_line(call, '{}')}"
    if message.left_out:
        yield f"(left out: {', '.join(message.left_out)})"


def call_line(call: ToolCall, any_arguments: str = "") -> str:
    """A call in one line, such as `search {"query":"dough"}`.

    Args:
        call: the call.
        any_arguments: what stands for arguments that are not said.
    """
    if call.arguments is None:
        return f"{call.name} {any_arguments}".rstrip()
    told = call.arguments if isinstance(call.arguments, str) else canonical_json(call.arguments).decode()
    return f"{call.name} {told}"
