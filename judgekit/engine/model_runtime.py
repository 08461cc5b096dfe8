"""One model of a config during a run: what it takes, what it is, what it costs."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from judgekit.core.cache_keys import CAPABILITIES_PREFIX
from judgekit.core.call_costs import CostSource
from judgekit.core.cases import Usage
from judgekit.core.config import ModelConfig
from judgekit.core.errors import ProviderError, StorageError
from judgekit.core.judgments import ModelResponse
from judgekit.core.protocols import CallError, Capabilities, ModelIdentity, Provider, ReplyCache
from judgekit.core.text import canonical_json
from judgekit.engine.limiter import AdaptiveLimiter
from judgekit.engine.pinning import PinGuard

if TYPE_CHECKING:
    from judgekit.engine.batch_desk import BatchDesk

MAY_BE_ANOTHER = frozenset({"connection", "server_error", "timeout"})
"""Failures after which the server may have been started again, with something else loaded."""

Price = Callable[[Usage], float]
"""US dollars for the tokens of one call."""


def utc_now() -> datetime:
    """The clock of a run if no other is given."""
    return datetime.now(UTC)


@dataclass
class ModelRuntime:
    """One model of the config during a run."""

    model_id: str
    config: ModelConfig
    provider: Provider
    limiter: AdaptiveLimiter
    guard: PinGuard
    price: Price | None = None
    price_source: CostSource | None = None
    """Where the price comes from."""
    cache: ReplyCache | None = None
    """Where capabilities are remembered between runs; None for an embedded provider."""
    capabilities: Capabilities | None = None
    identity: ModelIdentity | None = None
    now: Callable[[], datetime] = utc_now
    wants_tokens: bool = False
    """A judge takes its token probabilities, if there are any."""
    needs_tokens: bool = False
    """A judge cannot do without them."""
    desk: "BatchDesk | None" = None
    """Where requests go by batch, and replies are that came so; None: each is a call."""
    n_capability_calls: int = 0
    """How often it was found out what the model takes."""
    _is_verified: bool = False
    _n_losses: int = 0
    _n_losses_settled: int = 0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ready(self) -> Capabilities:
        """What the model takes, from memory, the cache, or one small call.

        Raises:
            ProviderError: the server refuses or cannot be reached, has another build loaded, refuses temperature 0, or
                gives no token probabilities although a judge takes them.
        """
        if self.config.pin.build_hash is None:
            # What an unpinned server has loaded is a part of every key, so it is asked before any look-up.
            await self.identified()
        async with self._lock:
            if self.capabilities is None:
                self.capabilities = self.remembered() or await self._find_capabilities()
            if self._takes_tokens and self.capabilities.top_logprobs is None:
                self.capabilities = await self._with_top_logprobs(self.capabilities)
            if self.needs_tokens and self._takes_tokens and not self.capabilities.top_logprobs:
                raise ProviderError(
                    f"model {self.model_id}: the server gives no token probabilities (logprobs) of "
                    f'{self.config.model}, which "scoring": "expected" of a judge takes; choose another model, or '
                    "leave scoring out"
                )
            if not self.capabilities.temperature and not self.config.allow_provider_temperature:
                raise ProviderError(
                    f"model {self.model_id}: {self.config.model} refuses temperature 0, so its verdicts would not "
                    'be repeatable; choose another model, or set "allow_provider_temperature": true'
                )
            return self.capabilities

    async def identified(self) -> None:
        """Hold the loaded model against the pin, once.

        Raises:
            ProviderError: the server cannot be reached, or has another build loaded.
        """
        if self._is_verified:
            return
        async with self._lock:
            if self.identity is None:
                try:
                    self.identity = await self.provider.identify()
                except CallError as error:
                    raise ProviderError(f"model {self.model_id}: {error}") from None
            if not self._is_verified:
                # Refused again for each caller: none may continue because another one asked first.
                self.guard.check_identity(self.identity)
                # From here on the run is held to what it started with, pinned or not.
                self.guard.build_hash = self.guard.build_hash or self.identity.build_hash
                self._is_verified = True

    def recall(self, record: Mapping[str, Any]) -> None:
        """Take the model for what it was in an earlier part of the run, if it is not asked again.

        Args:
            record: of the manifest, see `record`; one that is empty leaves what the model is unknown.
        """
        if self.capabilities is None and record.get("capabilities") is not None:
            known = Capabilities.__dataclass_fields__
            self.capabilities = Capabilities(**{k: v for k, v in record["capabilities"].items() if k in known})
        if self.identity is None and record.get("build_hash") is not None:
            self.identity = ModelIdentity(record["build_hash"], record.get("build_source"))

    def observe(self, error: CallError) -> None:
        """Learn from one attempt that failed: slow down, and see whether the server may come back as another."""
        self.limiter.observe(error)
        if error.kind in MAY_BE_ANOTHER:
            self._n_losses += 1

    async def identified_again(self) -> None:
        """Hold the loaded model against that of the run once more, if the server was lost since the last look.

        To be called between a reply and its use: whoever restarts a server may load another model under the same name.

        Raises:
            CallError: the server cannot be reached.
            ProviderError: it has another build loaded.
        """
        if self._n_losses == self._n_losses_settled:
            return
        async with self._lock:
            n_losses = self._n_losses
            if n_losses == self._n_losses_settled:
                return
            self.guard.check_identity(await self.provider.identify())
            self._n_losses_settled = n_losses

    def remembered(self) -> Capabilities | None:
        """What the model takes, as far as it is known without asking."""
        if self.provider.is_deterministic:
            return Capabilities()
        text = self.cache.get(self._memory_key()) if self.cache is not None else None
        known = Capabilities(**msgspec.json.decode(text)) if text is not None else None
        return None if known is not None and self._takes_tokens and known.top_logprobs is None else known

    def assume(self, takes: Capabilities) -> None:
        """Take it for granted what the model takes, where nobody can be asked; a run asks no more than that then."""
        self._remember(takes)

    async def _with_top_logprobs(self, known: Capabilities) -> Capabilities:
        try:
            n_given = await self.provider.find_top_logprobs(known)
        except CallError as error:
            raise ProviderError(f"model {self.model_id}: {error}") from None
        return self._remember(replace(known, top_logprobs=n_given))

    @property
    def _takes_tokens(self) -> bool:
        return self.wants_tokens and self.provider.probabilities == "tokens"

    async def _find_capabilities(self) -> Capabilities:
        try:
            return self._remember(await self.provider.find_capabilities())
        except CallError as error:
            raise ProviderError(f"model {self.model_id}: {error}") from None

    def _remember(self, found: Capabilities) -> Capabilities:
        """Keep what was found out beside the replies."""
        self.n_capability_calls += 1
        if self.cache is not None:
            with suppress(StorageError):  # then it is found out again next time; the recorder warns of the cache
                self.cache.put_many([(self._memory_key(), msgspec.json.encode(found).decode())])
        return found

    def _memory_key(self) -> str:
        # Another build behind the same address may take other parameters.
        config = self.config
        parts: list[Any] = [config.provider, config.public_url, self.model_as_pinned(), config.system_role]
        set_fields = config.further_fields() | ({"reply_format": config.reply_format} if config.reply_format else {})
        parts += [set_fields] if set_fields else []
        return CAPABILITIES_PREFIX + hashlib.sha256(canonical_json(parts)).hexdigest()

    def cost_of(self, response: ModelResponse | None) -> tuple[float, CostSource] | None:
        """What a call cost and where that is known from: the reply itself comes first. None: it is not known.

        Args:
            response: the reply; None: the call timed out.
        """
        if response is not None and response.cost_usd is not None:
            return response.cost_usd, "reply"
        if self.price is None or self.price_source is None:
            return None
        if response is not None and response.usage is not None and response.usage.is_whole:
            return self.price(response.usage), self.price_source
        # What is free is free without a count.
        is_free = self.price(Usage.model_construct(prompt_tokens=1_000_000, completion_tokens=1_000_000)) == 0.0
        return (0.0, self.price_source) if is_free else None

    def record(self) -> dict[str, Any]:
        """What manifest.json says of the model."""
        return {
            "capabilities": None if self.capabilities is None else asdict(self.capabilities),
            "build_hash": self.guard.build_hash or self.build_hash(),
            "build_source": self.identity.source if self.identity is not None else None,
            "served_models": dict(sorted(self.guard.seen.served.items())),
            "fingerprints": dict(sorted(self.guard.seen.fingerprints.items())),
            "upstreams": dict(sorted(self.guard.seen.upstreams.items())),
            "n_pin_mismatches": self.guard.n_mismatches,
            "n_rate_limit_cuts": self.limiter.n_cuts,
            "n_probes": self.n_capability_calls,
        }

    def stamp(self) -> str:
        """The time as judgments hold it."""
        return self.now().isoformat(timespec="milliseconds")

    def build_hash(self) -> str | None:
        """The pinned build, else the one that the server reports."""
        return self.config.pin.build_hash or (self.identity.build_hash if self.identity is not None else None)

    def model_as_pinned(self) -> str:
        """The model name, with the build that it is pinned to and its reasoning effort, if there are any."""
        effort = self.config.reasoning_effort
        held = [self.build_hash(), f"reasoning_effort={effort}" if effort else None]
        marks = ",".join(mark for mark in held if mark)
        return f"{self.config.model}@{marks}" if marks else self.config.model
