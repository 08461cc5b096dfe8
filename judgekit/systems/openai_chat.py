"""A model asked directly, without retrieval: `"system": {"name": "openai_chat", "model": "gpt-5-mini"}`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, model_validator

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.config import ModelConfig, Pin
from judgekit.core.errors import ProviderError
from judgekit.core.judgments import ModelRequest
from judgekit.core.protocols import Ask, AskError, CallError, Surroundings, System

_ROLES = ("system", "user", "assistant")


class OpenaiChat(System):
    """Sends the question, or the conversation of the case, as a chat completion to any OpenAI-compatible address."""

    model: str
    """As the server knows it. An alias is fine, since each output records the model that answered."""
    base_url: str | None = None
    """Left out: OpenAI's."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; left out: OPENAI_API_KEY, or none for another address."""
    instructions: str | None = None
    """A system message that goes before every question."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Left out: the server's own, so that repeats differ as they would for your users."""
    seed: int | None = None
    max_output_tokens: Annotated[int, Field(ge=16)] = 1024
    extra_body: dict[str, Any] = {}
    """Further fields of each request."""
    extra_headers: dict[str, str] = {}
    """A secret is written as `${NAME}` of an environment variable."""

    _model: ModelConfig = PrivateAttr()

    @model_validator(mode="after")
    def _is_a_model(self) -> "OpenaiChat":
        self._model = ModelConfig(
            model=self.model,
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            extra_body=self.extra_body,
            extra_headers=self.extra_headers,
            max_output_tokens=self.max_output_tokens,
            timeout_seconds=self.timeout_seconds,
            max_concurrency=self.max_concurrency,
            max_attempts=1,  # who asks this system asks again
            pin=Pin(allow_floating=True),
        )
        return self

    def settings(self) -> dict[str, Any]:
        """As of every system, with the secrets of the address hidden."""
        shown = self._model.model_dump(mode="json", include={"base_url"}, exclude_none=True)
        return {**super().settings(), **shown}

    @asynccontextmanager
    async def session(self, surroundings: Surroundings) -> AsyncIterator[Ask]:
        """Find out what the model takes, by one small call."""
        provider = surroundings.build_provider(self._model)
        try:
            try:
                takes = await provider.find_capabilities()
            except CallError as error:
                raise ProviderError(f"system openai_chat: {error}") from None
            parameters: dict[str, Any] = {
                "max_output_tokens": self.max_output_tokens,
                "max_tokens_name": takes.max_tokens_name,
                "response_format": "text",
                **({} if self.temperature is None else {"temperature": self.temperature}),
                **({} if self.seed is None else {"seed": self.seed}),
                **self._model.further_fields(),
            }

            async def ask(case: Case) -> SystemOutput:
                request = ModelRequest(
                    provider=self._model.provider,
                    base_url=self.base_url,
                    model=self.model,
                    pinned_model=self.model,
                    messages=tuple(self._messages(case)),
                    parameters=parameters,
                    reply_schema={},
                    prompt_sha256="",
                )
                try:
                    response = await provider.complete(request)
                except CallError as error:
                    after = error.retry_after_seconds
                    raise AskError(
                        error.kind, str(error), retryable=error.retryable, retry_after_seconds=after
                    ) from None
                versions = {"model": response.served_model} if response.served_model else {}
                cut_off = {"finish_reason": response.finish_reason} if response.finish_reason == "length" else {}
                return SystemOutput(
                    case_id=case.id,
                    answer=response.text if response.text is not None else response.refusal,
                    latency_seconds={"generation": response.latency_seconds},
                    usage=response.usage,
                    versions=versions,
                    metadata=cut_off,
                )

            yield ask
        finally:
            await provider.close()

    def _messages(self, case: Case) -> list[dict[str, str]]:
        found = [] if self.instructions is None else [{"role": "system", "content": self.instructions}]
        said = [item for item in case.messages or () if item.role in _ROLES and item.text]
        if not said:
            return [*found, {"role": "user", "content": case.question}]
        return [*found, *({"role": item.role, "content": item.text or ""} for item in said)]
