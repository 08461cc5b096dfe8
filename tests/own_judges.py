"""The four judges of the user's own, one of each kind, and a server that plays what they say."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from judgekit.testing import FaultServer, Reply, Request, chat_reply
from tests.builders import write_suite

TONE = {
    "name": "tone",
    "ask": "Is the answer polite and professional?",
    "scale": [1, 5],
    "levels": {"1": "rude", "3": "neutral", "5": "warm and professional"},
    "pass": 4,
    "model": "m",
}
MEDICAL = {"name": "medical", "ask": "Does the answer give medical advice?", "yes_no": {"pass": "no"}, "model": "m"}
BRAND = {
    "name": "brand",
    "ask": "Does the answer fit our brand voice?",
    "labels": {"on": "plain and friendly", "off": "stiff, or a sales pitch", "mixed": "some of each"},
    "pass": ["on"],
    "model": "m",
}
RULES = {
    "name": "rules",
    "ask": "Does the answer keep the rules of our help desk?",
    "criteria": {"short": "It has at most three sentences.", "next_step": "It names a next step."},
    "pass": 0.5,
    "model": "m",
}
OWN: tuple[dict[str, Any], ...] = (TONE, MEDICAL, BRAND, RULES)
"""One judge of each kind, each with a pass."""

Said = Callable[[int], Any]
"""Number of the case -> what a judge says of it: a score, yes or no, a label, {criterion: met} or "cannot tell"."""


def without_pass(judge: Mapping[str, Any]) -> dict[str, Any]:
    """The judge, with nothing that passes."""
    bare = {key: value for key, value in judge.items() if key != "pass"}
    return {**bare, "yes_no": True} if "yes_no" in bare else bare


def telling(judge: Mapping[str, Any]) -> dict[str, Any]:
    """The judge, which may also say that it cannot tell."""
    return {**judge, "cannot_tell": True}


def case_number(request: Request) -> int:
    """Number of the case that a request is about."""
    found = re.search(r"kiln c(\d+)", request.text, re.IGNORECASE)
    assert found is not None, request.text
    return int(found[1])


def reply_of(said: Any, key: str) -> Reply:
    """What a model of good manners writes."""
    if isinstance(said, dict):
        said = [{"id": name, "evidence": "the first sentence", "met": met} for name, met in said.items()]
    return chat_reply(json.dumps({"reasoning": "as asked", key: said}))


_KEYS = {"scale": "score", "yes_no": "answer", "labels": "label", "criteria": "criteria"}


def answering(
    says: Mapping[str, Said],
    *,
    judges: tuple[dict[str, Any], ...] = OWN,
    by_model: Mapping[str, Mapping[str, Said]] = {},
) -> Callable[[Request], Reply]:
    """A server that says of every case what `says` has for the judge that asks.

    Args:
        says: by name of the judge.
        judges: who may ask; a judge is known by its question.
        by_model: by the beginning of the name of a model, what it says instead.
    """

    def answer(request: Request) -> Reply:
        if '"ready"' in request.text:
            return chat_reply('{"ready": true}')
        judge = next(judge for judge in judges if str(judge["ask"]) in request.text)
        model = str((request.body or {}).get("model", ""))
        given = next((own for start, own in by_model.items() if model.startswith(start)), {})
        said = given.get(str(judge["name"])) or says[str(judge["name"])]
        key = next(key for kind, key in _KEYS.items() if kind in judge)
        return reply_of(said(case_number(request)), key)

    return answer


STEADY: Mapping[str, Said] = {
    "tone": lambda n: 5 if n % 3 else 2,
    "medical": lambda n: n % 4 == 0,
    "brand": lambda n: ("on", "on", "off", "mixed")[n % 4],
    "rules": lambda n: {"short": n % 2 == 0, "next_step": n % 3 != 0},
}
"""Verdicts that depend on the case alone."""

TURNED: Mapping[str, Said] = {
    "tone": lambda n: 2 if n % 3 else 5,
    "medical": lambda n: n % 4 != 0,
    "brand": lambda n: ("off", "mixed", "on", "on")[n % 4],
    "rules": lambda n: {"short": n % 2 != 0, "next_step": n % 3 == 0},
}
"""On every case another verdict than `STEADY`."""


def own_suite(folder: Path, server: FaultServer, *judges: dict[str, Any], n_cases: int = 12, **config: Any) -> Path:
    """A config with own judges, and a second model for spot checks; returns its path."""
    models = {
        name: {"model": f"{name}-2025-01-01", "base_url": server.base_url, "max_concurrency": 4}
        for name in ("m", "other")
    }
    document = {"models": models, "judges": [*(judges or OWN)], **config}
    return write_suite(folder, server.base_url, n_cases=n_cases, **document)
