"""From a reply to the record of a judgment, and the form in which replies are cached."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from judgekit.core.call_costs import COST_SOURCES
from judgekit.core.cases import Usage
from judgekit.core.judgments import (
    NO_REPLY_KINDS,
    Attempt,
    JudgeFailure,
    JudgeInput,
    ModelRequest,
    ModelResponse,
    Verdict,
)
from judgekit.core.kind import Kind
from judgekit.core.protocols import Capabilities, ReplyCache
from judgekit.core.text import canonical_json
from judgekit.core.token_runs import LEAST_MASS, OptionProbabilities, TokenRun
from judgekit.engine.budget import Bill, Spent
from judgekit.engine.pinning import PinGuard
from judgekit.engine.requests import JudgePlan
from judgekit.judges.parsing import PARSER_VERSION, ParsedReply
from judgekit.judges.token_probabilities import ProbabilityFlag
from judgekit.storage.judgment_lines import JudgmentLine, judgment_fields, judgment_line

_NOTHING = ModelResponse(text=None)
"""In place of a reply if none came."""


@dataclass
class Reply:
    """A reply on its way to its judgment."""

    response: ModelResponse
    from_cache: bool
    pinned: bool = True
    cache_key: str | None = None
    """Under which it is to be cached, if it holds a verdict; None: not at all."""
    bill: Bill | None = None
    """What it took; None: it came from the cache."""


@dataclass(slots=True)
class Judged:
    """A judgment as it goes to the sink."""

    line: bytes
    """A line of judgments.jsonl: the fields of `Judgment`."""
    failure: JudgeFailure | None
    from_cache: bool
    to_cache: tuple[str, str] | None = None
    committed: Callable[[], None] | None = None
    by_batch: bool = False
    """What it rests on came by batch, so that it says nothing of calls that are still to be made."""


@dataclass
class JudgmentDraft:
    """What goes into a judgment, gathered while it is made."""

    plan: JudgePlan
    capabilities: Capabilities
    judge_input: JudgeInput
    request: ModelRequest
    key: str
    key_parts: dict[str, str]
    earlier: tuple[Attempt, ...]
    reply: Reply | None = None
    probability_flag: ProbabilityFlag | None = None
    """Why there are no probabilities, if the judge takes them."""
    by_batch: bool = False
    """Its reply, or that there is none, came by batch."""
    spent: Spent = field(default_factory=Spent)

    def judged(self, parsed: ParsedReply) -> Judged:
        """The judgment with a verdict."""
        return self._build(parsed.verdict, None, parsed.parse_path)

    def failed(self, failure: JudgeFailure) -> Judged:
        """The judgment without one."""
        return self._build(None, failure, None)

    def _build(self, verdict: Verdict | None, failure: JudgeFailure | None, parse_path: str | None) -> Judged:
        plan, spent, reply = self.plan, self.spent, self.reply
        runtime = plan.runtime
        response = _NOTHING if reply is None else reply.response
        from_cache = reply is not None and reply.from_cache and not spent.n_requests
        # A line with the fields of `Judgment`, without making one: that would be a third of the cost of a cached item.
        line = JudgmentLine(
            case_id=self.judge_input.case_id,
            judge=plan.judge.name,
            role=plan.role,
            check=plan.check,
            prompt_version=plan.prompt.version,
            prompt_sha256=plan.prompt.sha256,
            input_sha256=self.judge_input.sha256,
            model_id=runtime.model_id,
            provider=runtime.config.provider,
            model=self.request.model,
            served_model=response.served_model,
            fingerprint=response.fingerprint,
            upstream=response.upstream,
            key=self.key,
            key_parts=self.key_parts,
            parameters=self.request.parameters,
            temperature_accepted=self.capabilities.temperature,
            raw_reply=_said(response),
            finish_reason=response.finish_reason,
            parser_version=PARSER_VERSION,
            earlier_attempts=self.earlier,
            flags=self._flags(verdict, failure),
            usage=spent.usage,
            unmetered=spent.unmetered,
            cost_usd=spent.cost_usd,
            cost_source=spent.cost_source,
            from_cache=from_cache,
            n_requests=spent.n_requests,
            latency_seconds=response.latency_seconds if reply is not None and spent.n_requests else None,
            created_at=response.replied_at or runtime.stamp(),
            verdict=verdict,
            failure=failure,
            parse_path=parse_path,
        )
        return Judged(judgment_line(line), failure, from_cache, by_batch=self.by_batch)

    def _flags(self, verdict: Verdict | None, failure: JudgeFailure | None) -> tuple[str, ...]:
        flags = []
        if verdict is not None:
            flags += [*(["inconsistent"] if verdict.inconsistent else []), *verdict.quote_flags]
            flags += [self.probability_flag] if self.probability_flag is not None else []
            flags += ["probabilities_low_mass"] if (verdict.probability_mass or 1.0) < LEAST_MASS else []
        if failure is not None and failure.kind == "prompt_truncated":
            flags.append("prompt_truncated_by_server")
        if self.reply is not None and not self.reply.pinned:
            flags.append("pin_mismatch")
        return tuple(flags)


def _said(response: ModelResponse) -> str | None:
    """All that the model said: a refusal may stand beside a text."""
    if not response.refusal:
        return response.text
    said = [text for text in (response.refusal, response.text) if text]
    return "\n\n".join(dict.fromkeys(said))


def joined(kind: Kind, judge_input: JudgeInput, parts: Sequence[Judged]) -> Judged:
    """The judgment of a case that was asked about in parts: what their verdicts come to, or the failure of one.

    Its `key` and `key_parts` are those of the first call; `raw_reply` is the list of all replies. It costs what all
    of them cost; a cost or a count of tokens that one of them lacks is not known.
    """
    records: list[dict[str, Any]] = [judgment_fields(part.line) for part in parts]
    failure = parts[-1].failure
    verdict = None
    if failure is None:
        verdict = kind.joined([Verdict.model_validate(record["verdict"]) for record in records])
    usages = [record["usage"] for record in records if record["usage"] is not None]
    costs = [record["cost_usd"] for record in records if record["n_requests"] and not _is_free(record)]
    sources = [record["cost_source"] for record in records if record["cost_source"] is not None]
    waits = [record["latency_seconds"] for record in records if record["latency_seconds"] is not None]
    unmetered = [record["unmetered"] for record in records if record["unmetered"] is not None]
    fields = records[0] | {
        "input_sha256": judge_input.sha256,
        "verdict": verdict,
        "failure": failure,
        "raw_reply": json.dumps([record["raw_reply"] for record in records], ensure_ascii=False),
        "parse_path": "+".join(dict.fromkeys(record["parse_path"] for record in records if record["parse_path"])),
        "earlier_attempts": tuple(attempt for record in records for attempt in record["earlier_attempts"]),
        "flags": tuple(dict.fromkeys(flag for record in records for flag in record["flags"])),
        "usage": _sums(usages) if usages else None,
        "unmetered": _sums(unmetered) if unmetered else None,
        "cost_usd": None if None in costs or not costs else sum(costs),
        "cost_source": max(sources, key=COST_SOURCES.index) if sources and costs and None not in costs else None,
        "from_cache": all(part.from_cache for part in parts),
        "n_requests": sum(record["n_requests"] for record in records),
        "latency_seconds": sum(waits) if waits else None,
        "created_at": max(record["created_at"] for record in records),
    }
    from_cache, by_batch = all(part.from_cache for part in parts), any(part.by_batch for part in parts)
    return Judged(judgment_line(JudgmentLine(**fields)), failure, from_cache, by_batch=by_batch)


def _is_free(record: Mapping[str, Any]) -> bool:
    """Whether a part took nothing that anybody charges for, since no reply came."""
    failure = record["failure"]
    return record["cost_usd"] is None and failure is not None and failure["kind"] in NO_REPLY_KINDS


def _sums(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Field by field, what is known of all records together; None if one of them does not know."""
    return {
        name: None if any(record[name] is None for record in records) else sum(record[name] for record in records)
        for name in records[0]
    }


_CACHED = ("text", "finish_reason", "refusal", "served_model", "fingerprint", "upstream", "source", "replied_at")


def encode_reply(response: ModelResponse) -> str:
    """A reply as it is cached."""
    fields = {name: getattr(response, name) for name in _CACHED}
    fields["usage"] = vars(response.usage) if response.usage is not None else None
    if response.tokens is not None:
        fields["tokens"] = msgspec.to_builtins(response.tokens)
    if response.stated is not None:
        fields["stated"] = msgspec.to_builtins(response.stated)
    return canonical_json(fields).decode("utf-8", "replace")


def decode_reply(text: str) -> ModelResponse:
    """A cached reply; it took no request."""
    fields = msgspec.json.decode(text)
    usage = fields.pop("usage")
    if "tokens" in fields:
        fields["tokens"] = msgspec.convert(fields["tokens"], TokenRun)
    if "stated" in fields:
        fields["stated"] = msgspec.convert(fields["stated"], dict[str, OptionProbabilities])
    return ModelResponse(**fields, usage=Usage.model_construct(**usage) if usage else None, n_requests=0)


def cached_reply(cache: ReplyCache, key: str, guard: PinGuard) -> ModelResponse | None:
    """The cached reply that the pin of this run asks for, if there is one, with the time when it was given."""
    stored = cache.get(key)
    response = None if stored is None else decode_reply(stored)
    if response is None or not guard.takes(response):
        return None
    # A reply that an older judgekit cached does not hold its time, but was stored right after it came.
    return response if response.replied_at is not None else replace(response, replied_at=cache.stored_at(key))
