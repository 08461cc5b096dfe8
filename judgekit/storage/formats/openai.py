"""Lists of messages as the OpenAI API takes them: `{"messages": [{"role", "content"}, ...]}`, a conversation a record.

A list that ends with the system's own message holds a case and its output. One that ends with a message of the user
waits for an answer: all of it is the case, and the record may have the `answer` beside it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from judgekit.core.cases import Case, SystemOutput
from judgekit.storage.chat_messages import InOurShape, given, made
from judgekit.storage.record_formats import Document, Fields, RecordFormat, Source, UnfitError, document_row
from judgekit.storage.rows import Row

_OF_CASES = Case.model_fields.keys() - SystemOutput.model_fields.keys()
_OF_OUTPUTS = SystemOutput.model_fields.keys() - Case.model_fields.keys()
"""Fields of ours that a record may have beside its messages."""


class Openai(RecordFormat):
    """Cases with their outputs."""

    ids = ("id", "custom_id")

    def claims_record(self, record: Mapping[str, Any]) -> bool:
        """`messages` with a role and what OpenAI calls the rest; an empty list if there is little else."""
        messages = record.get("messages")
        if messages == []:
            return record.keys() <= {"messages", *self.ids}
        first = messages[0] if isinstance(messages, list) else None
        return isinstance(first, Mapping) and "role" in first and bool({"content", "tool_calls"} & first.keys())

    def claims_document(self, document: Document) -> bool:
        """One such record."""
        return self.claims_record(document)

    def from_document(self, document: Document, source: Source) -> Iterable[Row]:
        """The record itself, or those inside."""
        if self.claims_record(document):
            return [document_row((), document)]
        return super().from_document(document, source)

    def case(self, fields: Fields) -> dict[str, Any]:
        """What came before the system's own messages, and the last question."""
        messages = _messages(fields, "messages")
        fields.drop(*_OF_OUTPUTS)
        return {"messages": messages} if _waits(messages) else given(messages)

    def output(self, fields: Fields) -> dict[str, Any]:
        """The system's messages."""
        messages = _messages(fields, "turns")
        fields.drop(*_OF_CASES)
        if _waits(messages) and "answer" in fields.rest:
            return {}
        if _waits(messages):
            raise UnfitError("messages end with the user's, so there is no answer; give the outputs in another file")
        return made(messages)


def _messages(fields: Fields, ours: str) -> InOurShape:
    found = fields.messages(ours, "messages")
    if found is None:
        raise ValueError("messages: expected at least one")
    return found


def _waits(messages: InOurShape) -> bool:
    """Whether the last message is not the system's."""
    return messages[-1]["role"] in ("user", "system")
