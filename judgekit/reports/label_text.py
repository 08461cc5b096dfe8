"""A case as a person sees it who labels in the terminal."""

from collections.abc import Iterator, Sequence

from judgekit.core.human_labels import LabelItem

RULE = "-" * 72


def case_text(item: LabelItem, place: str) -> str:
    """Question, references, passages and, last, the answer; nothing of what a judge said.

    Foreign text is in it as it is: it has to go through `printable`.
    """
    return "\n".join([RULE, f"{place}   {item.case_id}", *_parts(item)])


def _parts(item: LabelItem) -> Iterator[str]:
    yield from _block("Question", [item.question])
    yield from _block("Conversation", item.conversation)
    yield from _block("Reference answers", item.references)
    yield from _block("Key facts", item.key_facts)
    if item.passages:
        yield "\nPassages:"
        for number, (source, text) in enumerate(item.passages, start=1):
            yield f"  [{number}] {source}"
            yield from (f"      {line}" for line in text.splitlines())
    yield from _block("Citations", item.citations)
    yield from _block("Answer", [item.answer])


def _block(title: str, texts: Sequence[str]) -> Iterator[str]:
    if any(text.strip() for text in texts):
        yield f"\n{title}:"
        for text in texts:
            yield from (f"  {line}" for line in text.splitlines())


def prompt_text(scale: tuple[int, int]) -> str:
    """What is asked."""
    label = "y or n" if scale == (0, 1) else f"{scale[0]}-{scale[1]} (or y/n)"
    return f"\nlabel {label}, s skip, b back, ? help, q quit: "


def rubric_text(rubric: str) -> str:
    """What the scores mean."""
    return f"\nWhat the judge is told of the scores:\n{rubric}\n"
