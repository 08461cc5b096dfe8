"""`judgekit pin`: what each server says of the model it has loaded, as the `pin` to put into the config."""

from collections.abc import Mapping
from typing import Any

from judgekit.core.errors import ProviderError
from judgekit.core.protocols import CallError
from judgekit.engine.model_runtime import ModelRuntime


async def find_pins(models: Mapping[str, ModelRuntime]) -> dict[str, Any]:
    """By model id: the pin, where it comes from, and the facts behind it.

    Raises:
        ProviderError: a server cannot be reached.
    """
    found = {}
    for name, runtime in models.items():
        try:
            identity = await runtime.provider.identify()
        except CallError as error:
            raise ProviderError(f"model {name}: {error}") from None
        finally:
            await runtime.provider.close()
        pin = {"build_hash": identity.build_hash} if identity.build_hash else {}
        note = None if pin else "the server reports no build; a dated model name is the pin, or set served_model"
        found[name] = {
            "pin": pin,
            "source": identity.source,
            "served_models": list(identity.served_models),
            "facts": dict(identity.facts),
            "note": note,
        }
    return found
