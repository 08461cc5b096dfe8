"""What else a model could have said: replies with the probabilities of their tokens, or of the answers to questions."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from judgekit.testing.exchange import Reply, Request

_PIECE = re.compile(r" ?\w+|\s+|[^\w\s]+?")


def with_chances(reply: Reply, value: str, chances: Mapping[str, float], n: int = 20) -> Reply:
    """A chat reply with `logprobs`: the last place of a value in it is one token that could have been another one.

    Args:
        reply: with a text that holds the value.
        value: as the text writes it, such as `4`.
        chances: probability by text of what could stand there; what they leave to 1 went to other tokens.
        n: alternatives that a token has at most.
    """
    if not isinstance(reply.body, Mapping):
        raise TypeError("only a chat reply has tokens")
    choice = reply.body["choices"][0]
    content = choice["message"]["content"]
    start = content.rindex(value)
    entries = [_entry(piece, {piece: 1.0}, n) for piece in _PIECE.findall(content[:start])]
    entries.append(_entry(value, chances, n))
    entries += [_entry(piece, {piece: 1.0}, n) for piece in _PIECE.findall(content[start + len(value) :])]
    choices = [{**choice, "logprobs": {"content": entries}}]
    return replace(reply, body={**reply.body, "choices": choices})


def _entry(token: str, chances: Mapping[str, float], n: int) -> dict[str, Any]:
    likeliest = sorted(chances.items(), key=lambda item: -item[1])[:n]
    top = [_alternative(text, chance) for text, chance in likeliest]
    return {**_alternative(token, chances.get(token, 0.0)), "top_logprobs": top}


def _alternative(text: str, chance: float) -> dict[str, Any]:
    # Servers give -9999 for what cannot come.
    return {"token": text, "logprob": math.log(chance) if chance > 0 else -9999.0, "bytes": list(text.encode())}


def plausible_chances(value: Any, schema: Mapping[str, Any] | None = None) -> dict[str, float]:
    """0.7 for a value, and the rest shared by what it could have been instead: by its schema, or a score of 0 to 5."""
    schema = schema or {}
    if isinstance(value, bool):
        known = ["false", "true"]
    elif "enum" in schema:
        known = [_text(option) for option in schema["enum"]]
    else:
        known = [str(number) for number in range(schema.get("minimum", 0), schema.get("maximum", 5) + 1)]
    others = [option for option in known if option != _text(value)]
    return {_text(value): 0.7 if others else 1.0, **{option: 0.3 / len(others) for option in others}}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def decisions(request: Request, chances: Mapping[str, Mapping[str, float]], label_mass: float = 0.98) -> Reply:
    """The reply to `POST /v1/decisions`, in the form in which the request asks: OpenAI's or SGLang's.

    Args:
        request: its questions are answered.
        chances: by name of the question, the probability of each option: `true` and `false`, a level, a choice.
        label_mass: what SGLang says that all options together had.
    """
    questions = request.get("questions", [])
    n_tokens = max(1, len(request.raw_body) // 4)
    if all("id" in question for question in questions):
        sglang = {
            question["id"]: {**_sglang_answer(question, chances[question["id"]]), "label_mass": label_mass}
            for question in questions
        }
        counts = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
        body = {"object": "decisions", "model": request.model, "prompt_format_version": 1, "answers": sglang}
        return Reply(body={**body, "usage": counts})
    answers = [_openai_answer(question, chances[question["name"]]) for question in questions]
    counts = {"input_tokens": n_tokens, "output_tokens": 0, "total_tokens": n_tokens}
    return Reply(body={"model": request.model, "answers": answers, "usage": counts})


def _sglang_answer(question: Mapping[str, Any], chances: Mapping[str, float]) -> dict[str, Any]:
    names = {"true": "yes", "false": "no"} if question["type"] == "yes_no" else {}
    if question["type"] == "score":
        names = {level: str(number) for number, level in enumerate(question["levels"])}
    return {
        "type": question["type"],
        "probabilities": {names[text] if names else text: p for text, p in chances.items()},
    }


def _openai_answer(question: Mapping[str, Any], chances: Mapping[str, float]) -> dict[str, Any]:
    common = {"type": question["type"], "name": question.get("name")}
    if question["type"] == "predicate":
        return {**common, "probability": chances["true"]}
    best = max(chances, key=lambda text: chances[text])
    common["confidence"] = chances[best]
    if question["type"] == "choice":
        listed = [{"value": text, "probability": p} for text, p in chances.items()]
        return {**common, "choice": best, "probabilities": listed}
    order = [level["label"] for level in question["levels"]]
    scored = [{"label": text, "value": order.index(text), "probability": p} for text, p in chances.items()]
    expected = math.fsum(order.index(text) * p for text, p in chances.items())
    return {**common, "score": expected, "probabilities": scored}
