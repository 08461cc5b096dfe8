"""The words of judging: what a judge is asked, what it answered, the record of a call, and which call counts."""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from judgekit.core.cache_keys import KEY_VERSION, request_key
from judgekit.core.call_costs import CostSource, Unmetered
from judgekit.core.cases import Usage
from judgekit.core.scores import Frozen
from judgekit.core.spot_checks import RUN_SPOT_CHECK
from judgekit.core.text import canonical_json, canonical_sha256, hash_of_messages
from judgekit.core.token_runs import OptionProbabilities, TokenRun

FailureKind = Literal[
    "invalid",  # a reply that is not a verdict: no JSON, wrong type, out of range, duplicate key
    "ambiguous",  # a reply with two different verdicts
    "truncated",  # cut off at the output limit
    "prompt_truncated",  # the server shortened what it was sent
    "empty",  # nothing came back
    "refused",  # the model declined
    "filtered",  # the provider's content filter
    "context_length",  # the request is longer than the model takes
    "bad_request",  # the server refuses this one request
    "rate_limited",  # retries exhausted on 429
    "server_error",  # retries exhausted on 5xx, or a body that is not a reply
    "timeout",  # retries exhausted on time-outs
    "connection",  # retries exhausted on resets and refused connections
    "expired",  # its batch ended before it was answered
    "panel_quorum",  # too few members of a panel gave a verdict
    "internal",  # our own fault; the message names the exception
]

NO_REPLY_KINDS: frozenset[FailureKind] = frozenset(
    {
        "rate_limited",
        "server_error",
        "connection",
        "bad_request",
        "context_length",
        "expired",
        "panel_quorum",
        "internal",
    }
)
"""Failures without a reply, which nobody charges for; of a call that timed out nothing tells whether it was charged."""


_pack_sorted = msgspec.json.Encoder(order="deterministic").encode


class JudgeInput(Frozen):
    """What a judge is asked about one case: named variables, not rendered text.

    A new prompt version can be run on an old input; re-judging starts here.
    """

    case_id: str
    judge: str
    variables: dict[str, Any]

    @property
    def sha256(self) -> str:
        # Variables hold texts, whole numbers, lists and objects only; for them this is canonical and much quicker.
        try:
            packed = _pack_sorted([self.judge, self.variables])
        except UnicodeEncodeError:
            packed = canonical_json([self.judge, self.variables])
        return hashlib.sha256(packed).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model: everything that can change the reply."""

    provider: str
    base_url: str | None
    model: str
    pinned_model: str
    """The model with the build that it is pinned to, if one is known; goes into the key."""
    messages: tuple[Mapping[str, str], ...]
    parameters: Mapping[str, Any]
    """temperature, seed, max_output_tokens, response_format; a parameter that is not sent is absent."""
    reply_schema: Mapping[str, Any]
    prompt_sha256: str
    attempt: int = 1
    """2 if the same question is asked again after a reply that could not be read."""

    def frame(self) -> dict[str, Any]:
        """The parts of the cache key that are the same for every case, by name."""
        return {
            "key_version": KEY_VERSION,
            "provider": self.provider,
            "base_url": self.base_url,
            "model": self.pinned_model,
            "parameters": dict(self.parameters),
            "reply_schema": dict(self.reply_schema),
            "prompt_sha256": self.prompt_sha256,
            "attempt": self.attempt,
        }

    def messages_sha256(self) -> str:
        """SHA-256 over role, length and text of every message, hexadecimal."""
        return hash_of_messages(self.messages)

    def key(self, frame_sha256: str | None = None) -> str:
        """The cache key: a prefix with its version, and SHA-256 over frame and messages, hexadecimal.

        Args:
            frame_sha256: hash of `frame`, if it is known from another request of the same pass.
        """
        return request_key(frame_sha256 or canonical_sha256(self.frame()), self.messages_sha256())


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """What came back for one request."""

    text: str | None
    finish_reason: str | None = None
    refusal: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    """What the reply says that it cost."""
    response_id: str | None = None
    served_model: str | None = None
    fingerprint: str | None = None
    upstream: str | None = None
    """Who served the reply behind a gateway, such as `Azure`."""
    source: str = "content"
    """Where the text stood in the reply: `content`, `tool_call`, or the field for thinking that holds it."""
    n_requests: int = 1
    """Requests on the wire, retries included."""
    latency_seconds: float | None = 0.0
    """None: it came by batch."""
    replied_at: str | None = None
    """When the model gave it (UTC, ISO 8601), also where it comes from the cache; None: not known."""
    tokens: TokenRun | None = None
    """What it is made of, if the request asked for that."""
    stated: Mapping[str, OptionProbabilities] | None = None
    """By key of the reply, the probabilities that the server itself gives for each value."""


class Quote(Frozen):
    """What a judge quotes of the passages as evidence for a claim."""

    claim: str
    quote: str
    is_real: bool | None = None
    """Whether the quote stands in a passage word for word; None: not looked up yet."""


CANNOT_TELL = "cannot tell"
"""What a judge says that may say so, and does not know."""


class CriterionVerdict(Frozen):
    """What a judge says of one criterion."""

    id: str
    met: bool | None
    """None: it cannot be told."""
    evidence: str = ""
    weight: float = 1.0


def share_met(criteria: Iterable[CriterionVerdict]) -> float | None:
    """The weights of the criteria that are met, divided by the positive weights; cut off at 0 and 1.

    What cannot be told counts on neither side. None if nothing with a positive weight can be told.
    """
    told = [item for item in criteria if item.met is not None]
    best = math.fsum(item.weight for item in told if item.weight > 0)
    met = math.fsum(item.weight for item in told if item.met)
    return min(1.0, max(0.0, met / best)) if best > 0 else None


class Verdict(Frozen):
    """The parsed content of a reply: what the judge says, and what it rests on."""

    score: int | None = None
    answer: bool | None = None
    """The verdict of a yes/no judge."""
    label: str | None = None
    """The verdict of a judge that gives labels."""
    criteria: tuple[CriterionVerdict, ...] | None = None
    """The verdict of a judge that goes through criteria."""
    picks: tuple[str, ...] | None = None
    """What a judge of preference says with A first, then with B first: `first`, `second` or `tie`; `label` says what
    that comes to."""
    cannot_tell: bool = False
    """The judge says that it cannot tell, and may say so."""
    reasoning: str = ""
    supported_claims: tuple[str, ...] | None = None
    unsupported_claims: tuple[str, ...] | None = None
    quotes: tuple[Quote, ...] | None = None
    """Evidence for supported claims; None if the wording does not ask for it."""
    inconsistent: bool = False
    """The verdict contradicts itself, such as a full score with unsupported claims."""
    probabilities: dict[str, float] | None = None
    """By option, how likely it was, summing to 1; of criteria, by id, that each is met. None: not asked, or not had."""
    probability_mass: float | None = None
    """What they summed to before; a value that is not there had at most the rest."""

    @property
    def rating(self) -> float | None:
        """The score, 1 for yes and 0 for no, or the share of criteria met; None if the verdict is not a number."""
        if self.score is not None:
            return self.score
        if self.criteria is not None:
            return share_met(self.criteria)
        return None if self.answer is None else int(self.answer)

    @property
    def said(self) -> int | float | bool | str | None:
        """The verdict in one word: score, answer, label or share of criteria met; None if it says nothing."""
        if self.cannot_tell:
            return CANNOT_TELL
        if self.criteria is not None:
            share = share_met(self.criteria)
            return CANNOT_TELL if share is None else round(share, 4)
        return next((value for value in (self.score, self.answer, self.label) if value is not None), None)

    @property
    def n_real_quotes(self) -> int:
        """Quotes that stand in a passage."""
        return sum(quote.is_real is True for quote in self.quotes or ())

    @property
    def quote_flags(self) -> tuple[str, ...]:
        """`fabricated_quote`: a quote stands in no passage; `missing_quote`: fewer quotes than supported claims."""
        if self.quotes is None:
            return ()
        flags = ("fabricated_quote",) if any(quote.is_real is False for quote in self.quotes) else ()
        return (*flags, "missing_quote") if len(self.quotes) < len(self.supported_claims or ()) else flags


class JudgeFailure(Frozen):
    """A call without a verdict; never a number."""

    kind: FailureKind
    message: str


class VerdictError(Exception):
    """A reply that holds no verdict."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind


Role = Literal["primary", "member", "spot_check", "probe"]
"""What a judgment is for: the figures (`primary`), a panel whose verdict is made of those of its members (`member`), a
second opinion, which feeds judge_reliability and no metric (`spot_check`), or a changed input (`probe`, in
probes.jsonl)."""


class Attempt(Frozen):
    """One answered call of a judgment that was followed by another."""

    key: str
    raw_reply: str | None
    failure: JudgeFailure


def build_in(key_parts: Mapping[str, str], model: str) -> str | None:
    """The build that a judgment was made with, which its key names behind the model; None if none was known."""
    name, separator, build = key_parts.get("model", "").rpartition(f"{model}@")
    return build if separator and not name and build else None


class Judgment(Frozen):
    """Full record of how one case was judged by one judge: a line of judgments.jsonl."""

    case_id: str
    judge: str
    role: Role = "primary"
    check: str | None = None
    """The spot check that it belongs to, as in checks.json, or set and name of the probe; None for a primary one."""
    copied_from: str | None = None
    """Run that it was made in, if it was copied from there; it cost nothing here."""
    prompt_version: str
    prompt_sha256: str
    input_sha256: str
    model_id: str
    """Key of the model in the config."""
    provider: str
    model: str
    """Model as asked for."""
    served_model: str | None = None
    """Model that the server says it used."""
    fingerprint: str | None = None
    upstream: str | None = None
    """Who served the reply behind a gateway, if the reply says so."""
    key: str
    """Cache key of the last request."""
    key_parts: dict[str, str] = {}
    """What the key is made of, part by part: short texts as they are, the rest as hashes; `judgekit cache why` compares
    them. Empty in runs of key version 1."""
    parameters: dict[str, Any]
    """Parameters as sent; temperature is absent if the server refuses it."""
    temperature_accepted: bool = True
    verdict: Verdict | None = None
    failure: JudgeFailure | None = None
    raw_reply: str | None = None
    finish_reason: str | None = None
    parse_path: str | None = None
    """How the verdict was read: `strict`, or what had to be stripped or mended first."""
    parser_version: int
    earlier_attempts: tuple[Attempt, ...] = ()
    flags: tuple[str, ...] = ()
    usage: Usage | None = None
    unmetered: Unmetered | None = None
    """Calls whose tokens are not known; None if all are."""
    cost_usd: float | None = None
    """None: not known, or nothing was asked."""
    cost_source: CostSource | None = None
    """Where the cost comes from; the least certain source if there are several."""
    from_cache: bool = False
    n_requests: int = 0
    """Requests on the wire for this judgment, retries included; 0 where all came from the cache."""
    latency_seconds: float | None = None
    created_at: str
    """When the model gave the reply (UTC, ISO 8601), also where that comes from the cache; without a reply, when the
    call failed. Of a panel, when the last of its members did."""

    @property
    def build(self) -> str | None:
        """The build of the model, if its server reports one or the config pins one."""
        return build_in(self.key_parts, self.model)


TRANSPORT_KINDS = frozenset({"connection", "timeout", "server_error", "rate_limited", "expired", "internal"})
"""Failures that say nothing about the case; a resumed run asks these again."""


@dataclass(frozen=True)
class JudgmentKey:
    """One question: which judge, in which role, about which case."""

    role: str
    judge: str
    case_id: str
    check: str | None = None
    """The spot check that it belongs to, or set and name of the probe; None if it belongs to none."""
    member: str | None = None
    """Of a panel: key of the member's model."""

    @classmethod
    def of(cls, judgment: Judgment) -> "JudgmentKey":
        """The question that a judgment answers."""
        check = (judgment.check or RUN_SPOT_CHECK) if judgment.role == "spot_check" else judgment.check
        member = judgment.model_id if judgment.role == "member" else None
        return cls(judgment.role, judgment.judge, judgment.case_id, check, member)


def that_count(judgments: Iterable[Judgment]) -> dict[JudgmentKey, Judgment]:
    """The judgment that counts for each question: the last one, and never a failure after a verdict.

    Args:
        judgments: in the order in which they came.
    """
    found: dict[JudgmentKey, Judgment] = {}
    for judgment in judgments:
        key = JudgmentKey.of(judgment)
        old = found.get(key)
        if old is None or old.verdict is None or judgment.verdict is not None:
            found[key] = judgment
    return found


def last_judgments(judgments: Iterable[Judgment]) -> dict[JudgmentKey, Judgment]:
    """The judgments that count, without raw replies and reasoning: memory does not grow with the length of replies.

    Args:
        judgments: in the order in which they came.
    """

    def short(judgment: Judgment) -> Judgment:
        verdict = judgment.verdict
        if verdict is not None:
            verdict = verdict.model_copy(update={"reasoning": ""})
        return judgment.model_copy(update={"raw_reply": None, "verdict": verdict})

    return that_count(map(short, judgments))
