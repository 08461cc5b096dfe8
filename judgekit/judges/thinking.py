"""What a model thinks before it replies, if the server leaves it in the text."""

import re
from collections.abc import Sequence

from judgekit.core.judgments import VerdictError
from judgekit.judges.objects import decode, fold, top_level_spans

# How it was read, and the marks around the thinking: group 1 is matched by the closing one only.
_BLOCKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("think", re.compile(r"<(/)?think(?:ing)?\s?>", re.IGNORECASE)),
    ("think-thought", re.compile(r"<(/)?thoughts?>", re.IGNORECASE)),
    ("think-reasoning", re.compile(r"<(/)?reasoning>", re.IGNORECASE)),
    ("think-notes", re.compile(r"<(/)?(?:scratch_?pad|reflection|analysis|draft|cot)\s?>", re.IGNORECASE)),
    ("think-named", re.compile(r"<(/)?(?:ant_?thinking|inner_monologue|chain_of_thought)>", re.IGNORECASE)),
    ("think-prefix", re.compile(r"<(/)?[a-z]{1,20}:think(?:ing)?>", re.IGNORECASE)),  # seed:think
    ("think-brackets", re.compile(r"\[(/)?THINK(?:ING)?\]")),  # Mistral
    ("think-triangles", re.compile(r"◁(/)?think▷", re.IGNORECASE)),  # Kimi
    ("think-start", re.compile(r"<\|(?:START|(END))_THINKING\|>", re.IGNORECASE)),  # Command
    (
        "think-begin",
        re.compile(r"<[|｜](?:begin|start|(end))[_▁](?:of[_▁])?th(?:ought|ink(?:ing)?)[|｜]>", re.IGNORECASE),
    ),
    ("think-bars", re.compile(r"<[|｜](/)?think(?:ing)?[|｜]>", re.IGNORECASE)),
    ("think-inner", re.compile(r"<\|inner_(?:prefix|(suffix))\|>")),  # Apertus
    ("think-channel", re.compile(r"<\|channel>thought\b|(<channel\|>)")),  # Gemma
)

# The harmony format of gpt-oss: channels, of which the final one is the reply.
_FINAL = re.compile(
    r"(?:<\|start\|>\s?assistant)?\s?<\|channel\|>\s?final\b[^<{]{0,80}(?:<\|constrain\|>[^<{]{0,80})?<\|message\|>"
)
_CHANNEL_FIRST = re.compile(r"\s*(?:<\|start\|>\s?assistant[^<{]{0,80})?<\|channel\|>")
_END_MARKS = ("<|return|>", "<|end|>", "<|call|>")
# The same if the server drops the marks and leaves the words.
_BARE_CHANNEL_FIRST = re.compile(r"\s*analysis(?=[A-Z])")
_BARE_FINAL = re.compile(r"assistantfinal")


def without_thinking(text: str, key: str) -> tuple[str, str]:
    """The text without the model's own thinking.

    Args:
        text: of a reply.
        key: the deciding one of a verdict.

    Returns:
        What is left, and by which marks the thinking was told; both as they were if there is none.

    Raises:
        VerdictError: thinking does not end, so that what follows may be a draft.
    """
    for first, final in ((_CHANNEL_FIRST, _FINAL), (_BARE_CHANNEL_FIRST, _BARE_FINAL)):
        ends = list(final.finditer(text)) if final is _FINAL or first.match(text) else []
        if ends:
            return _without_end_marks(_after(text, ends, key)), "harmony"
        if first.match(text):
            raise VerdictError("empty", "the reply is empty but for its thinking: it has no final channel")
    paths = []
    for path, mark in _BLOCKS:
        rest = _without_blocks(text, mark, key)
        if rest != text:
            paths.append(path)
            text = rest
    return text, "+".join(paths)


def _without_blocks(text: str, mark: re.Pattern[str], key: str) -> str:
    """The text without thinking between one kind of marks.

    A closing mark before any opening one ends thinking that began in the prompt. Else only a block that starts a line
    before any object is the model's own thinking. Marks elsewhere are quoted (a judged answer may hold them) and stay,
    so that a verdict between them cannot vanish.
    """
    marks = list(mark.finditer(text))
    n_ends = next((index for index, found in enumerate(marks) if not found[1]), len(marks))
    kept: list[str] = []
    position = searched = 0
    is_after_brace = False
    opened: re.Match[str] | None = None
    for tag in marks[n_ends:]:
        if not tag[1]:
            opened = opened or tag
        elif opened is not None:
            start = opened.start()
            is_after_brace = is_after_brace or text.find("{", searched, start) >= 0
            searched = start
            while start > position and text[start - 1] in " \t":
                start -= 1
            if not is_after_brace and (start == position or text[start - 1] == "\n"):
                kept.append(text[position:start])
                position = searched = tag.end()
            opened = None
    if opened is not None:
        raise VerdictError("invalid", "a think block is not closed")
    # What thinking that began in the prompt is followed by is the reply, and marks in it are quoted.
    return _after(text, marks[:n_ends], key) if n_ends else "".join(kept) + text[position:]


def _after(text: str, ends: Sequence[re.Match[str]], key: str) -> str:
    """What follows the last end of thinking that is not quoted in a verdict."""
    last = ends[-1]
    for start in (0, ends[0].end()):
        if start <= last.start() and _is_quoted(text[start:], last.start() - start, key):
            return text[start:]
    return text[last.end() :]


def _is_quoted(text: str, place: int, key: str) -> bool:
    """Whether a place is inside a text of a valid object that holds the key."""
    try:
        for start, end in top_level_spans(text):
            if start > place:
                return False
            if place < end:
                return key.casefold() in map(fold, decode(text[start:end]))
    except (VerdictError, ValueError):
        return False
    return False


def _without_end_marks(text: str) -> str:
    """The text without the marks that end a message."""
    end = len(text.rstrip())
    while mark := next((mark for mark in _END_MARKS if text.endswith(mark, 0, end)), None):
        end -= len(mark)
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]
