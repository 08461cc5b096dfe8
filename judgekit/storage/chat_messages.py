"""Messages and tool calls of other tools in our own shape: those of OpenAI, Ragas, DeepEval, Inspect and LangChain."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from judgekit.core.text import is_blank
from judgekit.storage.dotted import value_in
from judgekit.storage.problems import kind_of

_ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
_TEXTS = ("text", "content")
_CALLS = ("tool_calls", "tools_called", "toolsCalled", "mcp_tools_called")
_RETRIEVED = ("retrieved", "retrieval_context", "retrievalContext")
_ARGUMENTS = ("arguments", "args", "input_parameters", "inputParameters", "input")
_SAYS_NOTHING = ("type", "index")
"""Keys of a tool call without information."""
_TEXT_PARTS = ("text", "input_text", "output_text")

MESSAGES = ("messages", "turns")
"""Our fields that hold messages."""
CALLS = "expected_tool_calls"


class InOurShape(list[dict[str, Any]]):
    """Messages or calls that are read already."""


class ChatMessages:
    """Reads the messages of one file, and counts what of them has no place."""

    def __init__(self) -> None:
        self._parts: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._put_aside: dict[str, None] = {}
        self._n_alone = 0

    def messages(self, name: str, value: Any) -> InOurShape:
        """Messages in our shape, in order; a turn that says what its calls gave becomes several.

        Args:
            name: the field, for messages about what is wrong.
            value: the list, or a cell with its JSON.

        Raises:
            ValueError: it is not a list of messages; says at which place.
        """
        if isinstance(value, InOurShape):
            return value
        found = InOurShape()
        for index, item in enumerate(_items(name, value)):
            found += self._message(f"{name}[{index}]", item)
        self._n_alone += _results_alone(found)
        return found

    def calls(self, name: str, value: Any) -> InOurShape:
        """Tool calls in our shape; a text is a call of that name with any arguments.

        Raises:
            ValueError: it is not a list of calls; says at which place.
        """
        if isinstance(value, InOurShape):
            return value
        return InOurShape([self._call(f"{name}[{index}]", item)[0] for index, item in enumerate(_items(name, value))])

    def put_aside(self, names: Iterable[str]) -> None:
        """Take the names of fields of a conversation that go into metadata."""
        self._put_aside.update(dict.fromkeys(names))

    def notices(self) -> list[tuple[str, str]]:
        """(code, message) of what was left out or put aside."""
        said = []
        if self._parts:
            parts = f"parts of messages that are not text are left out: {_counted(self._parts)}"
            said.append(("message_parts_left_out", parts))
        if self._kept:
            said.append(("message_fields_kept", f"kept in the metadata of messages: {_counted(self._kept)}"))
        if self._lost:
            said.append(("tool_call_fields_left_out", f"left out of tool calls: {_counted(self._lost)}"))
        if self._n_alone:
            message = f"{self._n_alone} tool results belong to no call before them; they are kept as they are"
            said.append(("tool_results_without_call", message))
        if self._put_aside:
            said.append(("conversation_fields_kept", f"kept in metadata: {', '.join(self._put_aside)}"))
        return said

    def _message(self, place: str, item: Any) -> Iterator[dict[str, Any]]:
        if not isinstance(item, Mapping):
            raise ValueError(f"{place}: expected an object, found {kind_of(item)}")
        rest = dict(item)
        if isinstance(rest.get("content"), Mapping):  # Ragas puts text and calls of one message there together
            rest |= rest.pop("content")
        role = _role(place, rest)
        text, left_out = self._text(f"{place}.content", _take(rest, *_TEXTS))
        calls, results = self._made(place, rest)
        message: dict[str, Any] = {
            "role": role,
            "text": text or _take(rest, "refusal") or _message_of_error(role, rest) or text,
            "tool_calls": calls,
            "tool_call_id": None if isinstance(rest.get("tool_call_id"), list) else _take(rest, "tool_call_id"),
            "name": _take(rest, "name", *(["function"] if role == "tool" else [])),
            "retrieved": _hits(_take(rest, *_RETRIEVED)),
            "left_out": left_out or _take(rest, "left_out"),
            "metadata": self._rest(place, rest),
        }
        message = {key: value for key, value in message.items() if value not in (None, [], {}) or key == "retrieved"}
        if message["retrieved"] is None:
            del message["retrieved"]
        if results:
            yield {"role": role, "tool_calls": message.pop("tool_calls")}
            yield from results
            if message.keys() == {"role"}:
                return
        yield message

    def _rest(self, place: str, rest: dict[str, Any]) -> dict[str, Any] | None:
        """What is left of a message; `type` has been read as its role, or says nothing beside one."""
        own = _take(rest, "metadata", "additional_metadata", "additionalMetadata")
        if own is not None and not isinstance(own, Mapping):
            raise ValueError(f"{place}.metadata: expected an object, found {kind_of(own)}")
        rest = {key: value for key, value in rest.items() if value not in (None, [], {}, "")}
        self._kept.update(rest.keys())
        return {**rest, **(own or {})}

    def _text(self, place: str, content: Any) -> tuple[str | None, list[str]]:
        """The text of a message, and the types of its parts that are no text."""
        if content is None or isinstance(content, str):
            return content, []
        if not isinstance(content, list):
            raise ValueError(f"{place}: expected a text or a list of parts, found {kind_of(content)}")
        texts, others = [], []
        for index, part in enumerate(content):
            if isinstance(part, str):
                texts.append(part)
                continue
            if not isinstance(part, Mapping):
                raise ValueError(f"{place}[{index}]: expected an object or a text, found {kind_of(part)}")
            kind = str(part.get("type"))
            text = part.get("text") if kind in _TEXT_PARTS else part.get("refusal") if kind == "refusal" else None
            if isinstance(text, str):
                texts.append(text)
            else:
                others.append(kind)
        self._parts.update(others)
        return "\n".join(texts) if texts else None, others

    def _made(self, place: str, rest: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The calls of a message, and those results that stand in them."""
        lists = {name: _items(f"{place}.{name}", rest.pop(name)) for name in _CALLS if rest.get(name) is not None}
        found = [(f"{name}[{index}]", item) for name, items in lists.items() for index, item in enumerate(items)]
        if rest.get("function_call") is not None:
            found.append(("function_call", rest.pop("function_call")))
        calls, results = [], []
        for name, item in found:
            call, output = self._call(f"{place}.{name}", item, with_output=True)
            calls.append(call)
            if output is not None:
                result = {"role": "tool", "name": call["name"], "text": output, "tool_call_id": call.get("id")}
                results.append({key: value for key, value in result.items() if value is not None})
        return calls, results

    def _call(self, place: str, item: Any, *, with_output: bool = False) -> tuple[dict[str, Any], str | None]:
        """A call, and what it gave if it says so."""
        if isinstance(item, str):
            return {"name": item}, None
        if not isinstance(item, Mapping):
            raise ValueError(f"{place}: expected an object, found {kind_of(item)}")
        rest = dict(item)
        inner = rest.get("function", rest.get("custom"))
        if isinstance(inner, Mapping):
            rest = {**{key: value for key, value in rest.items() if value is not inner}, **inner}
        name = _take(rest, "name", "function")
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{place}: a tool call needs the name of its tool")
        arguments = _take(rest, *_ARGUMENTS)
        if arguments is not None and not isinstance(arguments, Mapping | str):
            raise ValueError(f"{place}.arguments: expected an object or its JSON, found {kind_of(arguments)}")
        output = _take(rest, "output", "result") if with_output else None
        call = {"name": name, "arguments": arguments, "id": _take(rest, "id")}
        self._lost.update(key for key, value in rest.items() if value is not None and key not in _SAYS_NOTHING)
        told = output if output is None or isinstance(output, str) else msgspec.json.encode(output).decode()
        return {key: value for key, value in call.items() if value is not None}, told


def given(messages: Sequence[dict[str, Any]], n_given: int = 0) -> dict[str, Any]:
    """Our fields of the case in a recorded conversation: what came before the system's turns, and the last question.

    Args:
        messages: all of them.
        n_given: messages of the system that it was given.
    """
    return {"messages": InOurShape(messages[: _start(messages, n_given)]), "question": _last(messages)[0]}


def made(messages: Sequence[dict[str, Any]], n_given: int = 0) -> dict[str, Any]:
    """Our fields of the output in a recorded conversation: the system's turns, and its last answer.

    Users may speak between the turns: what they say there follows from what the system said.
    """
    return {"turns": InOurShape(messages[_start(messages, n_given) :]), "answer": _last(messages)[1]}


def _start(messages: Sequence[dict[str, Any]], n_given: int) -> int:
    """Where the turns of the system begin."""
    by_system = [index for index, message in enumerate(messages) if message["role"] in ("assistant", "tool")]
    return by_system[n_given] if n_given < len(by_system) else len(messages)


def _last(messages: Sequence[dict[str, Any]]) -> tuple[str | None, str | None]:
    """The last answer of the system and the user's message before it, as (question, answer)."""
    said = [(message["role"], message["text"]) for message in messages if not is_blank(message.get("text") or "")]
    place = next((index for index in reversed(range(len(said))) if said[index][0] == "assistant"), len(said))
    question = next((text for role, text in reversed(said[:place]) if role == "user"), None)
    return question, said[place][1] if place < len(said) else None


def _role(place: str, rest: dict[str, Any]) -> str:
    """The role, as OpenAI, or Ragas and LangChain (`type`) call it."""
    if "role" in rest:
        rest.pop("type", None)
    said = _take(rest, "role", "type")
    found = _ROLES.get(said.strip().lower()) if isinstance(said, str) else None
    if found is None:
        told = f"{said[:40]!r}" if isinstance(said, str) else kind_of(said)
        raise ValueError(f"{place}.role: expected one of {', '.join(_ROLES)}, found {told}")
    return found


def _items(name: str, value: Any) -> Sequence[Any]:
    found = value_in(value) if isinstance(value, str) else value
    if not isinstance(found, list | tuple):
        raise ValueError(f"{name}: expected a list, found {kind_of(value)}")
    return found


def _results_alone(messages: Sequence[Mapping[str, Any]]) -> int:
    """Results without a call before them; one without an id belongs to any call that has none yet."""
    ids: set[Any] = set()
    n_open = n_alone = 0
    for message in messages:
        calls = message.get("tool_calls", ())
        ids.update([str(call["id"]) for call in calls if "id" in call])
        n_open += len(calls)
        if message["role"] == "tool":
            call_id = message.get("tool_call_id")
            is_alone = n_open == 0 if call_id is None else str(call_id) not in ids
            n_alone += is_alone
            n_open -= not is_alone and n_open > 0
    return n_alone


def _hits(value: Any) -> Any:
    if isinstance(value, str):
        return [{"text": value}]
    return list(map(_hit, value)) if isinstance(value, list) else value


def _hit(value: Any) -> Any:
    """A text, a hit of ours, or what DeepEval keeps of a passage with its source."""
    if isinstance(value, Mapping) and value.keys() == {"context", "source"}:
        return {"text": value["context"], "rel_path": value["source"]}
    return {"text": value} if isinstance(value, str) else value


def _message_of_error(role: str, rest: Mapping[str, Any]) -> Any:
    """What a failed tool said, as Inspect keeps it."""
    error = rest.get("error")
    return error.get("message") if role == "tool" and isinstance(error, Mapping) else None


def _take(rest: dict[str, Any], *names: str) -> Any:
    """The first of some keys that says something, which leaves; the others stay."""
    for name in names:
        if rest.get(name) is not None:
            return rest.pop(name)
    return None


def _counted(found: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in found.most_common())
