"""One judge asked with one wording of one model: its requests, and their cache keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from judgekit.core.cache_keys import frame_parts, request_key, short_hash
from judgekit.core.components import Judge
from judgekit.core.errors import ConfigError
from judgekit.core.judgments import JudgeInput, ModelRequest, Role, VerdictError
from judgekit.core.prompts import PromptTemplate
from judgekit.core.protocols import Capabilities
from judgekit.core.spot_checks import RUN_REPEAT
from judgekit.core.text import canonical_sha256
from judgekit.engine.model_runtime import ModelRuntime


@dataclass(frozen=True)
class JudgePlan:
    """One judge asked with one wording of one model."""

    judge: Judge
    prompt: PromptTemplate
    runtime: ModelRuntime
    role: Role = "primary"
    use_cache: bool = True
    check: str | None = None
    """The spot check or probe that its judgments belong to."""

    def __post_init__(self) -> None:
        """Hold the wording against the provider, and note that the model has to give token probabilities.

        Raises:
            ConfigError: the provider cannot give such replies.
        """
        try:
            self.runtime.provider.check_wording(self.prompt.reply_schema)
        except ConfigError as error:
            raise ConfigError(f"{self.prompt.where}: {error}") from None
        if self.judge.scoring == "expected":
            self.runtime.wants_tokens = True
            # A second opinion may do without: its verdicts are compared, not its probabilities.
            self.runtime.needs_tokens = self.runtime.needs_tokens or self.role != "spot_check"

    @property
    def member(self) -> str | None:
        """The model, if the judge is a panel."""
        return self.runtime.model_id if self.role == "member" else None

    def traced(self) -> dict[str, str | None]:
        """What the spans of its judgments say of it."""
        return {
            "judgekit.role": self.role,
            "judgekit.check": self.check,
            "judgekit.model_id": self.runtime.model_id,
            "judgekit.prompt.version": self.prompt.version,
            "judgekit.prompt.sha256": self.prompt.sha256,
            "judgekit.build": self.runtime.build_hash(),
        }

    @property
    def label(self) -> str:
        """What a reader is told of a pass of this plan."""
        shown = {
            "primary": "",
            "member": f" ({self.runtime.model_id})",
            "spot_check": " (asked again)" if self.check == RUN_REPEAT else " (spot check)",
            "probe": f" {(self.check or '').rpartition('/')[2]}",
        }
        return self.judge.name + shown[self.role]


class RequestMaker:
    """Makes the requests of one plan, for a model that takes what `capabilities` say."""

    def __init__(self, plan: JudgePlan, capabilities: Capabilities) -> None:
        """Fix what all requests share."""
        config = plan.runtime.config
        self.plan = plan
        self.capabilities = capabilities
        self._request = partial(
            ModelRequest,
            provider=config.provider,
            base_url=config.public_url,
            model=config.model,
            pinned_model=plan.runtime.model_as_pinned(),
            parameters=capabilities.parameters(config, with_tokens=plan.judge.scoring == "expected"),
            reply_schema=plan.prompt.reply_schema,
            prompt_sha256=plan.prompt.sha256,
        )
        keys = ", ".join(f'"{key}"' for key in plan.prompt.reply_schema.get("required", ()))
        # Small models fill the schema in as if it were the form, so the keys are named once more without it.
        of_keys = f" whose own keys are {keys}" if keys else ""
        self._wanted = f"Reply with one JSON object only{of_keys}."
        self._frames: dict[int, tuple[str, dict[str, str]]] = {}

    def key_of(self, judge_input: JudgeInput) -> str:
        """The cache key of the first request for an input."""
        return self.key_and_parts(self.request(judge_input))[0]

    def request(self, judge_input: JudgeInput, problem: VerdictError | None = None) -> ModelRequest:
        """The first request about an input, or the second one, which names what was wrong with the first reply."""
        system, user = self.plan.prompt.render(judge_input.variables)
        if problem is not None:
            user += f"\n\nA previous reply to this task could not be used: {problem}. {self._wanted}"
        messages: tuple[Mapping[str, str], ...]
        if self.capabilities.system_role:
            messages = ({"role": "system", "content": system}, {"role": "user", "content": user})
        else:
            messages = ({"role": "user", "content": f"{system}\n\n{user}"},)
        return self.request_of(messages, 1 if problem is None else 2)

    def request_of(self, messages: tuple[Mapping[str, str], ...], attempt: int) -> ModelRequest:
        """A request with these messages."""
        return self._request(messages=messages, attempt=attempt)

    def key_and_parts(self, request: ModelRequest) -> tuple[str, dict[str, str]]:
        """The cache key and its parts; what all requests of this pass and attempt share is hashed once."""
        known = self._frames.get(request.attempt)
        if known is None:
            frame = request.frame()
            known = self._frames[request.attempt] = canonical_sha256(frame), frame_parts(frame)
        messages_sha256 = request.messages_sha256()
        return request_key(known[0], messages_sha256), {**known[1], "messages": short_hash(messages_sha256)}
