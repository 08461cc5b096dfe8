"""What a local server says of the model that it has loaded, and a hash over that."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from judgekit.core.protocols import ModelIdentity
from judgekit.core.text import canonical_json

if TYPE_CHECKING:
    from judgekit.providers.openai_compatible import OpenAICompatible


async def identify_server(provider: "OpenAICompatible") -> ModelIdentity:
    """What a server says of the loaded model: Ollama's digest, else llama.cpp's /props and /v1/models.

    Raises:
        CallError: the server cannot be reached.
    """
    listing = await provider.get_json("/models")
    entries = listing.get("data") if isinstance(listing, dict) else None
    entries = [entry for entry in entries or () if isinstance(entry, dict)]
    served = tuple(str(entry.get("id")) for entry in entries)
    parts = urlsplit(provider.address())
    root = f"{parts.scheme}://{parts.netloc}"
    tags = await provider.get_json(f"{root}/api/tags")
    for entry in (tags.get("models") or ()) if isinstance(tags, dict) else ():
        if provider.model.model in (entry.get("name"), entry.get("model")) and entry.get("digest"):
            return ModelIdentity(build_hash=f"sha256:{entry['digest']}", source="/api/tags", served_models=served)
    facts: dict[str, Any] = {}
    props = await provider.get_json(f"{root}/props")
    if isinstance(props, dict):
        facts |= {key: props[key] for key in ("build_info", "model_path", "model_ftype") if key in props}
        if isinstance(props.get("chat_template"), str):
            facts["chat_template_sha256"] = hashlib.sha256(props["chat_template"].encode()).hexdigest()
    own = next((entry for entry in entries if entry.get("id") == provider.model.model), entries[0] if entries else {})
    facts |= {key: own[key] for key in ("id", "meta", "root", "max_model_len", "owned_by") if own.get(key) is not None}
    window = _context_tokens(props, own)
    if not facts:
        return ModelIdentity(served_models=served, context_tokens=window)
    digest = hashlib.sha256(canonical_json(facts)).hexdigest()
    source = "/props and /v1/models" if isinstance(props, dict) else "/v1/models"
    return ModelIdentity(
        build_hash=f"sha256:{digest}", source=source, served_models=served, facts=facts, context_tokens=window
    )


def _context_tokens(props: Any, entry: Mapping[str, Any]) -> int | None:
    """The context window of one slot by llama.cpp's /props, else of the model by vLLM's /v1/models."""
    settings = props.get("default_generation_settings") if isinstance(props, dict) else None
    found = [settings.get("n_ctx") if isinstance(settings, dict) else None, entry.get("max_model_len")]
    return next((size for size in found if isinstance(size, int) and size > 0), None)
