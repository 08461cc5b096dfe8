"""From a reply to the record of a judgment, and the form in which replies are cached."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from judgekit.core.canonical import canonical_json
from judgekit.core.cases import Usage
from judgekit.core.components import Judge
from judgekit.core.judgments import Attempt, JudgeFailure, JudgeInput, Judgment, ModelRequest, ModelResponse
from judgekit.core.prompts import PromptTemplate
from judgekit.core.protocols import Capabilities
from judgekit.judges.parsing import PARSER_VERSION, ParsedReply
from judgekit.workflows.model_runtime import ModelRuntime


@dataclass(frozen=True)
class JudgePlan:
    """One judge asked with one wording of one model."""

    judge: Judge
    prompt: PromptTemplate
    runtime: ModelRuntime
    role: Literal["primary", "spot_check"] = "primary"
    use_cache: bool = True


@dataclass
class Reply:
    """A reply on its way to its judgment."""

    response: ModelResponse
    from_cache: bool
    pinned: bool = True
    to_cache: tuple[str, str] | None = None


@dataclass
class JudgmentDraft:
    """What goes into a judgment, gathered while it is made."""

    plan: JudgePlan
    capabilities: Capabilities
    judge_input: JudgeInput
    request: ModelRequest
    key: str
    earlier: tuple[Attempt, ...]
    reply: Reply | None = None
    n_requests: int = 0
    usage: Usage | None = None

    def judged(self, parsed: ParsedReply) -> Judgment:
        """The judgment with a verdict."""
        return self._build(verdict=parsed.verdict, parse_path=parsed.parse_path)

    def failed(self, failure: JudgeFailure) -> Judgment:
        """The judgment without one."""
        return self._build(failure=failure)

    def _build(self, **outcome: Any) -> Judgment:
        plan = self.plan
        runtime = plan.runtime
        response = self.reply.response if self.reply is not None else None
        paid = self.usage is not None and runtime.price is not None
        # Every value is our own and already of its type; validating it again is a third of the cost of a cached item.
        return Judgment.model_construct(
            case_id=self.judge_input.case_id,
            judge=plan.judge.name,
            role=plan.role,
            prompt_version=plan.prompt.version,
            prompt_sha256=plan.prompt.sha256,
            input_sha256=self.judge_input.sha256,
            model_id=runtime.model_id,
            provider=runtime.config.provider,
            model=self.request.model,
            served_model=response.served_model if response is not None else None,
            fingerprint=response.fingerprint if response is not None else None,
            key=self.key,
            parameters=dict(self.request.parameters),
            temperature_accepted=self.capabilities.temperature,
            raw_reply=response.refusal or response.text if response is not None else None,
            finish_reason=response.finish_reason if response is not None else None,
            parser_version=PARSER_VERSION,
            earlier_attempts=self.earlier,
            flags=self._flags(outcome),
            usage=self.usage,
            cost_usd=runtime.price(self.usage) if paid and self.usage and runtime.price else None,
            from_cache=self.reply is not None and self.reply.from_cache and not self.n_requests,
            n_requests=self.n_requests,
            latency_seconds=response.latency_seconds if response is not None and self.n_requests else None,
            created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            **outcome,
        )

    def _flags(self, outcome: Mapping[str, Any]) -> tuple[str, ...]:
        flags = []
        verdict, failure = outcome.get("verdict"), outcome.get("failure")
        if verdict is not None and verdict.inconsistent:
            flags.append("inconsistent")
        if failure is not None and failure.kind == "prompt_truncated":
            flags.append("prompt_truncated_by_server")
        if self.reply is not None and not self.reply.pinned:
            flags.append("pin_mismatch")
        return tuple(flags)


def encode_reply(response: ModelResponse) -> str:
    """A reply as it is cached."""
    usage = response.usage.model_dump() if response.usage is not None else None
    fields = {
        "text": response.text,
        "finish_reason": response.finish_reason,
        "refusal": response.refusal,
        "usage": usage,
        "served_model": response.served_model,
        "fingerprint": response.fingerprint,
        "source": response.source,
    }
    return canonical_json(fields).decode("utf-8", "replace")


def decode_reply(text: str) -> ModelResponse:
    """A cached reply; it took no request."""
    fields = msgspec.json.decode(text)
    usage = fields.pop("usage")
    return ModelResponse(**fields, usage=Usage.model_construct(**usage) if usage else None, n_requests=0)
