"""Is it still the same model? Every reply is compared with the pin, and names that can move are told apart."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from judgekit.core.config import ModelConfig
from judgekit.core.errors import ProviderError
from judgekit.core.judgments import Judgment, ModelResponse
from judgekit.core.protocols import ModelIdentity
from judgekit.core.request_fields import is_local


@dataclass
class Seen:
    """Who gave judgments, with counts."""

    served: Counter[str] = field(default_factory=Counter)
    fingerprints: Counter[str] = field(default_factory=Counter)
    upstreams: Counter[str] = field(default_factory=Counter)

    def add(self, one: Judgment | ModelResponse) -> None:
        """Count one stored judgment, or one reply."""
        if one.served_model is not None:
            self.served[one.served_model] += 1
        if one.fingerprint is not None:
            self.fingerprints[one.fingerprint] += 1
        if one.upstream is not None:
            self.upstreams[one.upstream] += 1


class PinGuard:
    """Counts what was served and finds replies of another model than the pinned one."""

    def __init__(self, model_id: str, model: ModelConfig, *, checks_name: bool = True) -> None:
        """Guard one model of the config; an embedded model is always itself and needs no check of its name."""
        self.model_id = model_id
        self.pin = model.pin
        self.seen = Seen()
        self.n_mismatches = 0
        self.last_mismatch: str | None = None
        self._expected = model.pin.served_model
        hosted = checks_name and not is_local(model.base_url)
        if self._expected is None and hosted and not model.pin.allow_floating:
            self._expected = model.model
        self.build_hash = model.pin.build_hash
        """The build that the model is held to: the pinned one, or the one that a resumed run started with."""

    def go_on(self, record: Mapping[str, Any]) -> None:
        """Count on from the manifest of a run that is resumed, and hold the model to what it was then."""
        self.seen.served.update(record.get("served_models") or {})
        self.seen.fingerprints.update(record.get("fingerprints") or {})
        self.seen.upstreams.update(record.get("upstreams") or {})
        self._hold_name()
        self.build_hash = self.build_hash or record.get("build_hash")

    def recount(self, stored: Seen) -> None:
        """Count at least what stored judgments show: a run that was killed did not write its last counts."""
        self.seen.served |= stored.served
        self.seen.fingerprints |= stored.fingerprints
        self.seen.upstreams |= stored.upstreams
        self._hold_name()

    def _hold_name(self) -> None:
        if self.seen.served and not self.pin.allow_floating:
            # A reply of another model stops the run, so that the usual name is the one it started with.
            self._expected = self._expected or self.seen.served.most_common(1)[0][0]

    def check_identity(self, identity: ModelIdentity) -> None:
        """Hold what the server says of the loaded model against the pinned build.

        Raises:
            ProviderError: another build, and the pin says to stop.
        """
        if self.build_hash is None or identity.build_hash == self.build_hash:
            return
        found = identity.build_hash or "nothing that identifies a build"
        wanted = "pinned is" if self.pin.build_hash is not None else "this run was begun with"
        self._mismatch(f"the server reports build {found}, {wanted} {self.build_hash}")

    def check_reply(self, response: ModelResponse) -> bool:
        """Whether a reply comes from the pinned model.

        A server that names no model is believed if no name is pinned. The first name seen holds for the rest of the run
        if the config pins none.

        Raises:
            ProviderError: another model, and the pin says to stop.
        """
        served, fingerprint = response.served_model, response.fingerprint
        self.seen.add(response)
        self._expected = self._expected or served
        if self._expected is not None and served != self._expected and (served or self.pin.served_model):
            self._mismatch(f"the reply comes from {served or 'an unnamed model'}, expected {self._expected}")
            return False
        if self.pin.fingerprint is not None and fingerprint != self.pin.fingerprint:
            self._mismatch(f"the reply carries fingerprint {fingerprint}, pinned is {self.pin.fingerprint}")
            return False
        if self.pin.upstream is not None and response.upstream != self.pin.upstream:
            found = response.upstream or "an unnamed upstream"
            self._mismatch(f"the reply was served by {found}, pinned is {self.pin.upstream}")
            return False
        return True

    def takes(self, response: ModelResponse) -> bool:
        """Whether a reply that was cached by an earlier run is one that the pin of this run asks for.

        The names that it pins need not be those of that run, and are not a part of the cache key.
        """
        pin = self.pin
        wanted = ((pin.served_model, response.served_model), (pin.fingerprint, response.fingerprint))
        return all(name in (None, found) for name, found in (*wanted, (pin.upstream, response.upstream)))

    def _mismatch(self, what: str) -> None:
        self.n_mismatches += 1
        self.last_mismatch = what
        if self.pin.on_mismatch == "stop":
            raise ProviderError(
                f"model {self.model_id}: {what}; set pin to what you accept, "
                'or "on_mismatch": "flag" to continue and mark it in metrics.json'
            )


_DATED = re.compile(
    r"(?:19|20)\d{2}-?\d{2}-?\d{2}"  # 2024-08-06, 20250514
    r"|(?<=[-_@.])\d{4}(?=$|[-_@:])"  # -0613, -2411
    r"|(?<=-)\d{3}$"  # -001
    r"|(?<=[-_@:])v\d+(?:\.\d+)*(?=$|[-_:])"  # -v2.1
    r"|sha256:[0-9a-f]{8,}"
)


_CLAUDE = re.compile(r"(?:^|[./])claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?:-v\d+(?::\d+)?)?$")
"""`claude-opus-4-7`, `claude-sonnet-5`, `anthropic.claude-opus-4-6-v1`, `anthropic/claude-opus-4.7`."""

_CLAUDE_WITHOUT_DATES = 4, 6
"""From this generation on, Anthropic gives a model one name without a date, which it never moves. Earlier names without
one are aliases of the last date."""

_VERSIONED_ID = re.compile(r"-(?:v)?\d+:\d+$")
"""The version that ends an ID of Bedrock, such as `openai.gpt-oss-120b-1:0`."""

_MOVING_VENDORS = frozenset(
    {"ai21", "amazon", "anthropic", "cohere", "google", "mistralai", "openai", "perplexity", "qwen", "x-ai"}
)
"""Vendors with names of closed models that carry a version number and move all the same, such as `openai/gpt-4.1`."""

_WEIGHTS = re.compile(r"(?:^|[-_x])\d+(?:\.\d+)?b(?=$|[-_:])", re.IGNORECASE)
"""`8B`, `8x7b`: a number of weights, which only names of open ones have."""


def is_floating(model: str) -> bool:
    """Whether a hosted model's name can be pointed at another model: no date or version stands in it.

    `gpt-4o`, `gpt-4.1`, `openai/gpt-4.1` and `x-latest` float, `gpt-4o-2024-08-06` does not, nor does a Claude from 4.6
    on, such as `claude-opus-4-7`. Names of open weights (`org/Name-3.1-8B`) count as fixed when they carry a version
    number.
    """
    if re.search(r"(^|[-_:])latest($|[-_])", model):
        return True
    if _DATED.search(model) or _VERSIONED_ID.search(model):
        return False
    claude = _CLAUDE.search(model)
    if claude is not None:
        return (int(claude[1]), int(claude[2] or 0)) < _CLAUDE_WITHOUT_DATES
    vendor, slash, name = model.rpartition("/")
    if not slash or not re.search(r"\d+[.p]\d+", name):
        return True
    return vendor.rpartition("/")[2].lower() in _MOVING_VENDORS and not _WEIGHTS.search(name)
