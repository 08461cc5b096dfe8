"""The ports: what workflows ask of the outside world. Adapters live in providers, systems and storage."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from judgekit.core.batches import ServerBatch
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.config import Budget, ModelConfig
from judgekit.core.data_files import CodeName
from judgekit.core.judgments import FailureKind, ModelRequest, ModelResponse
from judgekit.core.request_fields import is_secret_name


class CallError(Exception):
    """One request failed.

    `retryable` says whether asking again may help; `fatal` that every other call would fail too,
    so that the run stops.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        retryable: bool = False,
        fatal: bool = False,
        retry_after_seconds: float | None = None,
        n_requests: int = 1,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.retryable = retryable
        self.fatal = fatal
        self.retry_after_seconds = retry_after_seconds
        self.n_requests = n_requests
        self.status: int | None = None
        """The HTTP status, if the server answered with an error."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model's server takes, found out once by a small call."""

    response_format: str = "json_schema"
    """`json_schema`, `json_object` or `text`."""
    temperature: bool = True
    seed: bool = True
    system_role: bool = True
    max_tokens_name: str = "max_completion_tokens"
    """The name of the output limit that the server takes."""
    top_logprobs: int | None = None
    """How many alternatives of a token it gives with their probability; 0: none, None: it was not asked."""
    samples: bool = True
    """False if a reply is not a text that is drawn token by token, so that there is nothing to set."""

    def parameters(
        self, model: ModelConfig, max_output_tokens: int | None = None, *, with_tokens: bool = False
    ) -> dict[str, Any]:
        """The parameters of a request, as far as the model takes them; temperature is always 0.

        Args:
            model: as configured; further fields are sent only if it sets them.
            max_output_tokens: left out, the model's.
            with_tokens: ask for the alternatives of each token too.
        """
        if not self.samples:
            return {"response_format": self.response_format} | model.further_fields()
        found: dict[str, Any] = {
            "max_output_tokens": max_output_tokens or model.max_output_tokens,
            "max_tokens_name": self.max_tokens_name,
            "response_format": self.response_format,
        }
        if self.temperature:
            found["temperature"] = 0
        if self.seed:
            found["seed"] = model.seed
        if with_tokens and self.top_logprobs:
            found["top_logprobs"] = self.top_logprobs
        return found | model.further_fields()


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What a server says of the model that it has loaded."""

    build_hash: str | None = None
    source: str | None = None
    """Where the hash comes from, such as `/props`."""
    served_models: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    context_tokens: int | None = None
    """The context window, if the server tells; no part of the hash."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What a server says is left of its limits, with the seconds until they are full again."""

    remaining_requests: int | None = None
    remaining_tokens: int | None = None
    requests_reset_seconds: float | None = None
    tokens_reset_seconds: float | None = None


class Provider(ABC):
    """How one judge model is asked."""

    name: ClassVar[str] = ""
    selectable: ClassVar[bool] = True
    """False for a provider that only wraps another one."""
    is_llm: ClassVar[bool] = True
    """False for an embedded baseline; reports say so beside its scores."""
    note: ClassVar[str | None] = None
    """What a report says beside its scores, such as that it is not a language model."""
    judges: ClassVar[frozenset[str] | None] = None
    """Names of the judges that it can play; None: whatever it is asked."""
    needs_network: ClassVar[bool] = True
    probabilities: ClassVar[Literal["none", "tokens", "stated"]] = "none"
    """What it can say of the values that a verdict could have had: nothing, the alternatives of each token, or the
    probability of each value itself."""
    is_deterministic: ClassVar[bool] = False
    """The same request always gives the same reply by construction, so that replies need no cache."""

    def __init__(self, model: ModelConfig, *, api_key: str | None = None) -> None:
        self.model = model
        self.api_key = api_key
        self.folder = Path()
        """Where relative paths of the model start: the folder of the config."""
        self.variables: Mapping[str, str] = {}
        """Values of the environment variables that the config names in base_url and extra_headers; they are secrets."""
        self.on_rate_limits: Callable[[RateLimits], None] | None = None
        """Told of what a reply says of the server's limits."""
        self.may_ask_again: Callable[[], bool] = lambda: True
        """Asked before a call is made again, since a budget may not hold that."""

    @classmethod
    def as_asked(cls, model: ModelConfig) -> ModelConfig:
        """The config of a model with what follows from its provider.

        Raises:
            ConfigError: the config has what the provider cannot take.
        """
        return model

    def check(self) -> None:  # noqa: B027  # most providers have nothing to check
        """Check what can be checked without a call.

        Raises:
            ConfigError: the model's config cannot work with this provider.
        """

    def check_wording(self, reply_schema: Mapping[str, Any]) -> None:  # noqa: B027  # most providers take any wording
        """Check that the reply that a wording asks for is one that the provider can give.

        Raises:
            ConfigError: it is not.
        """

    async def identify(self) -> ModelIdentity:
        """What the server says of the model, without asking the model anything."""
        return ModelIdentity()

    async def find_capabilities(self) -> Capabilities:
        """Find out which parameters the model takes, with as few and as small calls as possible.

        Raises:
            CallError: the server cannot be reached or refuses for good.
        """
        return Capabilities()

    async def find_top_logprobs(self, known: Capabilities) -> int:  # noqa: ARG002  # a hook
        """How many alternatives of a token the model gives, 0 if none.

        Args:
            known: what the model takes otherwise.

        Raises:
            CallError: the server cannot be reached or refuses for good.
        """
        return 0

    @abstractmethod
    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The model's reply to one request.

        Raises:
            CallError: no reply; its kind says why.
        """

    def batches(self) -> "Batching | None":
        """Its batch endpoint; None if it has none."""
        return None

    async def close(self) -> None:  # noqa: B027  # most providers hold nothing open
        """Close connections; the provider is not used again."""


class Batching(Protocol):
    """A batch endpoint: files up and down, and batches made of them. What fails raises `CallError`."""

    async def upload(self, path: Path) -> str:
        """Id of a file of requests on the server."""

    async def create(self, file_id: str, window: str, metadata: Mapping[str, str]) -> ServerBatch:
        """A new batch of a file; one that was made by an attempt whose reply was lost is found again."""

    async def retrieve(self, batch_id: str) -> ServerBatch:
        """How far a batch is."""

    async def find(self, token: str, file_id: str, since: int) -> ServerBatch | None:
        """The batch with `judgekit_part` of its metadata, or of this file, if it was made since then."""

    async def cancel(self, batch_id: str) -> ServerBatch:
        """Stop a batch; what it has answered by then can be received."""

    async def lines(self, file_id: str, begin: Callable[[], Callable[[bytes], None]]) -> None:
        """Every line of a file of replies, without secrets; `begin` gives what takes them, and begins again."""


class AskError(Exception):
    """The system under test gave no answer to one case: an error row of its outputs, and never the end of the run."""

    def __init__(
        self, kind: str, message: str, *, retryable: bool = False, retry_after_seconds: float | None = None
    ) -> None:
        """Say what went wrong.

        Args:
            kind: one word or two for counting, such as `timeout`, `connection`, `invalid_output`.
            message: one line for people.
            retryable: asking again may help.
            retry_after_seconds: how long the system wants to be left alone.
        """
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds


Answer = str | Mapping[str, Any] | SystemOutput
"""What a system gives back: the text of its answer, fields of `SystemOutput`, or one."""

Ask = Callable[[Case], Awaitable[Answer]]
"""Asks the system one question."""


@dataclass(frozen=True)
class Surroundings:
    """What a system may use of the run that asks it."""

    folder: Path
    """Where relative paths start: the folder of the config."""
    variables: Mapping[str, str]
    """The environment, that of a `.env` beside the config included. Its values are secrets."""
    load_code: Callable[[CodeName, str], tuple[Any, str]]
    """What a name of a Python file stands for, and the hash of the file; `ConfigError` if there is none. The second
    argument is the place in the config, for messages."""
    reply_reader: Callable[[Mapping[str, str]], Callable[[Mapping[str, Any]], Mapping[str, Any]]]
    """By `fields` as a file of outputs has them (`InputError` if they name what is not there), what turns a decoded
    reply into fields of an output (`AskError` if it cannot)."""
    build_provider: Callable[[ModelConfig], Provider]
    """How a model is asked; `ConfigError` if its key is not there."""


class System(BaseModel):
    """How the system under test is asked. One file a system: its name is that of the file, its fields are arguments."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    name: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__module__.rpartition(".")[2]  # also of one that a program makes itself

    version: Annotated[str, Field(min_length=1)] | None = None
    """What you call this version of the system. Only with it are outputs cached, since a system that changes under the
    same name would be answered for by what it was."""
    max_concurrency: Annotated[int, Field(ge=1, le=1000)] = 4
    """Cases that are asked at the same time."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 120.0
    """For one case; then it is an error row of kind `timeout`."""
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 3
    """How often a case is asked in all, if what went wrong may pass."""
    stop_after: Annotated[int, Field(ge=1)] = 10
    """So many failures in a row stop the run, which can be resumed."""

    def facts(self, surroundings: Surroundings) -> Mapping[str, Any]:  # noqa: ARG002  # a hook
        """Check what can be checked without asking, and say what a run stores of it, such as the hash of a file.

        Raises:
            ConfigError: the system cannot be asked so.
        """
        return {}

    def secrets(self, surroundings: Surroundings) -> Sequence[str]:
        """Values that it is given and that must not be stored; they are masked in what it says."""
        return [value for name, value in surroundings.variables.items() if is_secret_name(name)]

    def sees(self, case: Case) -> Any:
        """What of a case the answer depends on, as JSON: with the version it is the key of a cached output."""
        return case.model_dump(mode="json", exclude_defaults=True)

    def settings(self) -> dict[str, Any]:
        """Its arguments but for how fast and how often it is asked."""
        pace = {"max_concurrency", "timeout_seconds", "max_attempts", "stop_after"}
        return {"name": self.name, **self.model_dump(mode="json", exclude=pace, exclude_none=True)}

    @abstractmethod
    def session(self, surroundings: Surroundings) -> AbstractAsyncContextManager[Ask]:
        """Make ready what asking takes, such as a connection or a process, and give it back at the end.

        What is asked raises `AskError` for a case that has no answer; any other exception counts as the system's own.

        Raises:
            ConfigError: it cannot be made ready.
            ProviderError: the system cannot be reached.
        """


class Lease(Protocol):
    """A part of a budget that several processes share."""

    def grown(self, calls: int, tokens: int, usd: float) -> Budget:
        """The limits of this process, after it has asked for room for so much more; as they were if there is none."""


class ReplyCache(Protocol):
    """Good replies by request key. Verdicts are not cached: they are parsed from the reply each time."""

    def get(self, key: str) -> str | None:
        """The stored text, or None if there is none or it is damaged."""

    def stored_at(self, key: str) -> str | None:
        """When an entry was stored (UTC, ISO 8601), or None if there is none."""

    def put_many(self, items: Sequence[tuple[str, str]]) -> None:
        """Store replies in one transaction."""

    def close(self) -> None:
        """Close what this thread holds open; the next use opens it again."""
