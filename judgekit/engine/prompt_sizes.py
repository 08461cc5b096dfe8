"""Prompts that are too long to be sent, or that a server shortened."""

from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.protocols import CallError

TRUNCATION_FLOOR_CHARACTERS = 4096
"""Prompts shorter than this are not checked for truncation: the least context in use, 512 tokens, passes the check."""


def check_length(request: ModelRequest, most: int | None) -> None:
    """Refuse to send a prompt that is longer than the config allows.

    Raises:
        CallError: names both lengths.
    """
    if most is None:
        return
    n_bytes = sum(len(message["content"].encode("utf-8", "replace")) for message in request.messages)
    if n_bytes > most:
        text = f"the prompt has {n_bytes:,} bytes, more than max_prompt_bytes of {most:,}; it was not sent"
        raise CallError("context_length", text, n_requests=0)


def was_truncated(request: ModelRequest, response: ModelResponse) -> bool:
    """Whether the server counted far fewer prompt tokens than any tokenizer makes of the text sent."""
    usage = response.usage
    if usage is None or not usage.prompt_tokens:
        return False  # a server that counts 0 does not count
    n_characters = sum(len(message["content"]) for message in request.messages)
    return n_characters >= TRUNCATION_FLOOR_CHARACTERS and usage.prompt_tokens < n_characters / 8
