"""`judgekit pin`: what each server says of the model it has loaded, as the `pin` to put into the config."""

from pathlib import Path
from typing import Any

from judgekit.core.errors import ConfigError, ProviderError, did_you_mean
from judgekit.core.protocols import CallError
from judgekit.storage.config_files import load_config
from judgekit.workflows.models import Options, build_model


async def find_pins(config_path: Path, only: str | None) -> dict[str, Any]:
    """By model id: the pin, where it comes from, and the facts behind it.

    Args:
        config_path: the config that names the models.
        only: key of the model to ask for; None: all.

    Raises:
        ConfigError: no model of that name.
        ProviderError: a server cannot be reached.
    """
    models = load_config(config_path).models
    if only is not None and only not in models:
        raise ConfigError(f"--model {only!r}{did_you_mean(only, models)}")
    wanted = models if only is None else {only: models[only]}
    runtimes = {
        name: build_model(name, model, config_path, Options(), needs_key=False) for name, model in wanted.items()
    }
    found = {}
    for name, runtime in runtimes.items():
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
