"""Verdicts written wrongly, in the ways that judges write them wrongly."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from judgekit.testing import Fault, Reply, chat_reply, verdict_body

Verdict = Mapping[str, Any]
Write = Callable[[Verdict], str]


def malformed_verdict(variant: str, verdict: Verdict | None = None) -> Reply:
    """A chat reply whose content is a verdict written wrongly.

    Args:
        variant: A name in `MENDABLE` (the verdict can still be read without guessing) or `UNREADABLE` (any score
            read from it would be invented).
        verdict: What is written wrongly; None takes a correctness verdict with score 4. The variant alters the
            key `score`, or `answer` where there is no score.

    Raises:
        KeyError: No variant has that name.
    """
    write = MENDABLE.get(variant) or UNREADABLE[variant]
    content = write(verdict if verdict is not None else verdict_body(4))
    reply = chat_reply(content)
    return Reply(body=reply.body, fill=True, fault=Fault(f"malformed_{variant}"))


def _text(verdict: Verdict) -> str:
    return json.dumps(verdict, ensure_ascii=False)


def _key(verdict: Verdict) -> str:
    return "score" if "score" in verdict else "answer"


def _with_value(value: Any) -> Write:
    """Writes the verdict with another value at its score."""
    return lambda verdict: _text({**verdict, _key(verdict): value})


def _with_literal(literal: str) -> Write:
    """Writes the verdict with a literal that may not be JSON at its score."""
    mark = "\ue000"
    return lambda verdict: _text({**verdict, _key(verdict): mark}).replace(f'"{mark}"', literal)


def _with_reasoning(json_text: str) -> Write:
    """Writes the verdict with the reasoning given as the text between its JSON quotes."""
    mark = "\ue000"
    return lambda verdict: _text({**verdict, "reasoning": mark}).replace(mark, json_text)


def _repeated_key(verdict: Verdict) -> str:
    other = 1 if verdict.get("score") != 1 else 5
    return f'{_text(verdict)[:-1]}, "{_key(verdict)}": {other if "score" in verdict else "false"}}}'


def _two_verdicts(verdict: Verdict) -> str:
    other = {**verdict, _key(verdict): 1 if verdict.get("score") != 1 else 5}
    return f"First draft: {_text(verdict)}\nOn reflection: {_text(other)}"


def _schema_echo(verdict: Verdict) -> str:
    key = _key(verdict)
    limits = {"type": "integer", "minimum": 0, "maximum": 5}
    return _text({"type": "object", "properties": {key: limits}, "required": [key]})


def _incomplete_list(verdict: Verdict) -> str:
    claims = '"supported_claims": ["the first claim", ...], "unsupported_claims": []'
    return f'{{"reasoning": "see the list", {claims}, "{_key(verdict)}": {json.dumps(verdict.get("score", True))}}}'


MENDABLE: Final[Mapping[str, Write]] = {
    "fenced": lambda verdict: f"```json\n{_text(verdict)}\n```\n",
    "think_block": lambda verdict: f'<think>\nmaybe {{"score": 1}}\n</think>\n{_text(verdict)}',
    "prose_around": lambda verdict: f"My rating follows:\n\n{_text(verdict)}\n\nHope this helps.",
    "python_literal": lambda verdict: repr(dict(verdict)),
    "comment": lambda verdict: f"{_text(verdict)[:-1]} // as the rubric says\n}}",
    "trailing_comma": lambda verdict: f"{_text(verdict)[:-1]},}}",
    "raw_line_end": _with_reasoning("line one\nline two"),
    "bad_escape": _with_reasoning(r"format \$#,##0 and \(x\)"),
    "score_text": lambda verdict: _text({**verdict, _key(verdict): str(verdict[_key(verdict)])}),
    "key_case": lambda verdict: _text({name.capitalize(): value for name, value in verdict.items()}),
    "lone_surrogate": _with_reasoning("bad byte \\udcb2"),
}
"""Verdicts that can be read without guessing, by name of the fault."""

UNREADABLE: Final[Mapping[str, Write]] = {
    "prose_only": lambda _: "Out of 5 checks it gets a 2",
    "cut": lambda verdict: _text(verdict)[: max(12, len(_text(verdict)) // 2)].rstrip('"}]'),
    "missing_score": lambda verdict: _text({k: v for k, v in verdict.items() if k != _key(verdict)}),
    "score_null": _with_value(None),
    "score_nan": _with_literal("NaN"),
    "score_fraction": _with_value(3.5),
    "score_out_of_range": _with_value(7),
    "score_negative": _with_value(-1),
    "score_wrong_type": lambda verdict: _text({**verdict, _key(verdict): True if "score" in verdict else "perhaps"}),
    "score_word": _with_value("excellent"),
    "repeated_key": _repeated_key,
    "two_verdicts": _two_verdicts,
    "schema_echo": _schema_echo,
    "incomplete_list": _incomplete_list,
    "bare_list": lambda verdict: f"[{_text(verdict)}, {_text(verdict)}]",
    "empty_object": lambda _: "{}",
}
"""Texts from which any score would be invented, by name of the fault."""
