"""Names that other tools give to judges and figures, and hints at what the same thing is called here."""

from collections.abc import Iterable

from judgekit.core.errors import did_you_mean

_FAMILIAR = {
    "faithfulness": "groundedness",
    "hallucination": "groundedness",
    "factuality": "correctness",
    "answer_correctness": "correctness",
    "answer_relevancy": "answer_relevance",
    "response_relevancy": "answer_relevance",
    "contextual_relevancy": "context_precision",
    "context_relevancy": "context_precision",
    "contextual_precision": "context_precision",
    "contextual_recall": "context_recall",
    "refusal": "abstention",
}


def name_hint(name: str, known: Iterable[str]) -> str:
    """A tail for an error message about an unknown judge, score or figure.

    It says what a name of another tool is called here, and otherwise the nearest known name, or all of them.
    """
    names = set(known)
    word = name.lower().replace("-", "_").replace(" ", "_")
    theirs = next((their for their in _FAMILIAR if word == their or word.startswith((f"{their}_", f"{their}."))), None)
    if theirs is None or not names:
        return did_you_mean(name, names)
    ours = _FAMILIAR[theirs] + word.removeprefix(theirs)
    if ours in names:
        return f"; that is {ours!r} here"
    hint = did_you_mean(name, names)
    return f"; that is {_FAMILIAR[theirs]!r} here, which is not among them{hint}" if word == theirs else hint
