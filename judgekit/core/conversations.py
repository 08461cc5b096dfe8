"""A conversation as one list: what was said to the system, and what the system said and did."""

from collections.abc import Iterator
from typing import Any

from judgekit.core.cases import Case, Hit, Message, SystemOutput, ToolCall
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


def answers_of(output: SystemOutput) -> Iterator[tuple[int, Message, list[Hit]]]:
    """Each answer of the system among its turns: its number from 1, the message, and all that was retrieved by then.

    The text of a tool's result counts as retrieved, with the tool as its place.
    """
    hits: list[Hit] = []
    number = 0
    for turn in output.turns or ():
        hits += turn.retrieved or ()
        if turn.role == "tool" and turn.text:
            hits.append(Hit(rel_path=turn.name, text=turn.text))
        elif turn.role == "assistant" and turn.text and turn.text.strip():
            number += 1
            yield number, turn, list(hits)


def _lines(message: Message) -> Iterator[str]:
    if message.name is not None:
        yield f"{message.name}:"
    if message.text is not None:
        yield message.text
    for call in message.tool_calls:
        arguments = call.arguments if isinstance(call.arguments, str) else _json(call.arguments or {})
        yield f"calls {call.name} {arguments}"
    if message.left_out:
        yield f"(left out: {', '.join(message.left_out)})"


def _json(arguments: dict[str, Any]) -> str:
    return canonical_json(arguments).decode()
