"""The embedded baseline judge: no key, no download, no model. It compares words, numbers and names.

It reads the same prompts as a language model does, takes the judged texts out of their fences, and answers in
the same verdict schema, so that a run without any model server still takes every step of a real one. Its
scores are marked "overlap baseline, not an LLM" wherever they are shown.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from judgekit.core.errors import ConfigError, did_you_mean
from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.prompts import unfence
from judgekit.core.protocols import CallError, ModelIdentity, Provider
from judgekit.core.sentences import CITATION, abstention_rule, sentences
from judgekit.providers.overlap import NOTE, Passages, judge_correctness, judge_groundedness, read, shortened
from judgekit.providers.overlap_words import LISTS

MODELS = {"overlap-2": False, "overlap-strict-2": True}
"""Model name -> whether it is the stricter variant. A change of the rules is a new name."""

LONG_PROMPT = 50_000
"""Characters from which a prompt is judged in a thread, so that it holds up nothing else."""
_CONFLICT = re.compile(rf"\b(?:{'|'.join(LISTS['disagreement'])})\b", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:no|not|never|without|any|kein\w{0,2}|nicht)\s(?:\w{1,20}\s){0,1}$|n't\s(?:\w{1,20}\s)?$", re.IGNORECASE
)
_SAYS = LISTS["says"]
_CONTRAST = re.compile(
    rf"\b{_SAYS}\b[^\n]{{1,300}}?\b(?:while|whereas|but|however|on\sthe\sother\shand)\b[^\n]{{1,200}}?\b{_SAYS}\b",
    re.IGNORECASE,
)


class Lexical(Provider):
    """Deterministic word-overlap judge."""

    is_llm: ClassVar[bool] = False
    note: ClassVar[str | None] = "overlap baseline, not an LLM"
    judges: ClassVar[frozenset[str] | None] = frozenset({"groundedness", "correctness", "abstention", "conflict"})
    needs_network: ClassVar[bool] = False
    is_deterministic: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse a model name that is not one of the variants."""
        if self.model.model not in MODELS:
            raise ConfigError(
                f"provider lexical has no model {self.model.model!r}{did_you_mean(self.model.model, MODELS)}"
            )

    async def identify(self) -> ModelIdentity:
        """The variant's name is its identity."""
        return ModelIdentity(build_hash=self.model.model, source="embedded", served_models=(self.model.model,))

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """A verdict on the fenced texts of the prompt; on a long one in a thread, and within the time limit."""
        if sum(len(message["content"]) for message in request.messages) <= LONG_PROMPT:
            return _answer(request)
        limit = self.model.timeout_seconds or 120.0
        try:
            async with asyncio.timeout(limit):
                return await asyncio.to_thread(_answer, request)
        except TimeoutError:
            raise CallError("timeout", f"no verdict within {limit:g} s") from None


def _answer(request: ModelRequest) -> ModelResponse:
    blocks: dict[str, list[str]] = {}
    for message in request.messages:
        if message["role"] == "user":
            for name, text in unfence(message["content"]):
                blocks.setdefault(name, []).append(text)
    if "answer" not in blocks:
        raise CallError("bad_request", "the prompt holds no fenced `answer`, which the lexical judge compares")
    verdict = _verdict(request, blocks, strict=MODELS[request.model])
    return ModelResponse(
        text=json.dumps(verdict, ensure_ascii=False), finish_reason="stop", served_model=request.model, n_requests=0
    )


def _verdict(request: ModelRequest, blocks: Mapping[str, Sequence[str]], *, strict: bool) -> dict[str, Any]:
    """The verdict that the schema of the reply asks for: its keys say which judge is played."""
    wanted = request.reply_schema.get("properties", {})
    answer, passages = blocks["answer"][0], blocks.get("passage", [])
    if "supported_claims" in wanted:
        cited = blocks.get("citations", [])[:1]
        n_cited = None
        if cited or "answer cites nothing" in request.messages[-1]["content"]:
            # An id of a passage that is not shown proves nothing.
            n_cited = sum(not line.endswith("(not shown)") for text in cited for line in text.splitlines())
        verdict = judge_groundedness(answer, passages, citations=n_cited, strict=strict)
        if "quotes" in wanted:
            verdict["quotes"] = quotes_of(verdict["supported_claims"], passages)
        return verdict
    if "abstains" in wanted:
        return judge_abstention(answer, strict=strict)
    if "states_conflict" in wanted:
        return judge_conflict(answer, strict=strict)
    if "score" in wanted:
        references, facts = blocks.get("reference_answer", []), blocks.get("key_fact", [])
        question = blocks.get("question", [""])[0]
        return judge_correctness(question, answer, passages, references, facts, strict=strict)
    raise CallError("bad_request", f"the lexical judge knows {', '.join(sorted(Lexical.judges or ()))} only")


def quotes_of(claims: Sequence[str], contexts: Sequence[str]) -> list[dict[str, str]]:
    """`{"claim", "quote"}` of each claim: the first of the context sentences that share most content words with it.

    A claim that shares no word with any sentence gets none.
    """
    statements = list(map(read, claims))
    passages = Passages(contexts, statements)
    closest = ((claim.text, passages.closest(claim.content)[1]) for claim in statements)
    return [{"claim": claim, "quote": found[0].text} for claim, found in closest if found]


def judge_abstention(answer: str, *, strict: bool = False) -> dict[str, Any]:
    """`reasoning` and `abstains`: whether the first sentence says that the answer is not known or not in the sources.

    The strict variant wants every sentence to say so.
    """
    said = [text for sentence in sentences(CITATION.sub("", answer)) if (text := sentence.strip())]
    declining = [text for text in said if abstention_rule(text)]
    abstains = bool(declining) and (declining == said if strict else declining[0] == said[0])
    why = f'It says "{shortened(declining[0])}"' if declining else "No sentence says that the answer is not known"
    but = "" if abstains or not declining else ", among other things"
    return {"reasoning": f"{NOTE} {why}{but}.", "abstains": abstains}


def judge_conflict(answer: str, *, strict: bool = False) -> dict[str, Any]:
    """`reasoning` and `states_conflict`: whether an answer says that sources disagree, by words for disagreement.

    Yes if such a word stands without a negation before it; for the plain variant also if one source "says" one thing
    "while" or "but" another "says" something.
    """
    words = [match for match in _CONFLICT.finditer(answer) if not _DENIED.search(answer[: match.start()][-40:])]
    contrast = None if strict or words else _CONTRAST.search(answer)
    found = words[0] if words else contrast
    why = f'It says "{shortened(found[0])}"' if found else "No word says that sources disagree"
    return {"reasoning": f"{NOTE} {why}.", "states_conflict": found is not None}
