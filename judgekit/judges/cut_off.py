"""Why a reply was cut off at the output limit, and what helps."""

from judgekit.core.judgments import ModelResponse

_MOST_INDENTATION = 16
_ESCAPED = ("\\n", "\\t", "\\r")


def why_cut_off(response: ModelResponse, thinking_field: str | None) -> str:
    """The message of a reply that the server cut off at `max_output_tokens`.

    Args:
        response: what came back.
        thinking_field: the field in which its text stands, where that is one for thinking.
    """
    spent = response.usage.completion_tokens if response.usage is not None else None
    what = f"the reply was cut off at max_output_tokens{f' after {spent} tokens' if spent is not None else ''}"
    if response.text and thinking_field is not None:
        what += f", in its thinking ({len(response.text)} characters in `{thinking_field}`, none in content)"
    if _ends_blank(response.text or ""):
        # Constrained decoding may go on with white space for ever, which a grammar allows between two keys.
        return (
            f"{what}, and its end is white space only, so a larger limit will not help; "
            "set reply_format to json_object or text for this model"
        )
    return f"{what}; raise it for this model"


def _ends_blank(text: str) -> bool:
    """Whether a text ends in more white space, escaped or not, than any indentation has."""
    end = text[-2 * _MOST_INDENTATION :]
    rest = end.rstrip()
    while rest.endswith(_ESCAPED):
        rest = rest[:-2].rstrip()
    return len(end) - len(rest) >= _MOST_INDENTATION
