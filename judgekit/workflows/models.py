"""Judge models as a config names them, ready to be asked: key, provider, limits, pin and price."""

import os
import re
import resource
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import judgekit.providers
from judgekit.core.cases import Usage
from judgekit.core.components import Judge, find
from judgekit.core.config import Budget, ModelConfig
from judgekit.core.data_files import CodeName
from judgekit.core.errors import ConfigError
from judgekit.core.protocols import Provider, ReplyCache, Surroundings
from judgekit.core.request_fields import has_hidden_values, header_problem, is_local
from judgekit.core.runs import Notices
from judgekit.engine.limiter import AdaptiveLimiter
from judgekit.engine.model_runtime import ModelRuntime, Price, utc_now
from judgekit.engine.pinning import PinGuard, is_floating
from judgekit.providers.retrying import Retrying
from judgekit.storage.case_files import reply_reader
from judgekit.storage.code_files import load_code
from judgekit.storage.env_files import read_env
from judgekit.storage.remote_runs import local_results

_HEADER_TEXT = re.compile(r"[!-~]+")
"""What can stand in an HTTP header without blanks; a client would show anything else in its error."""

_OTHER_FILES = 40
"""Open files for everything but connections."""


def most_connections(n_models: int) -> int:
    """How many connections to each of so many models the limit of open files leaves room for."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if most == resource.RLIM_INFINITY else max(1, (most - _OTHER_FILES) // max(1, n_models))


@dataclass(frozen=True)
class Options:
    """What the command line may say beside the config."""

    results_dir: Path | None = None
    run_id: str | None = None
    limit: int | None = None
    sample: int | None = None
    shard: str | None = None
    """`2/4`: the second of four runs that share the cases between them."""
    case_ids: tuple[str, ...] | None = None
    """Only these cases."""
    use_cache: bool = True
    cache_dir: Path | None = None
    """The folder of runs whose cache is used; left out: the one of the run."""
    environment: Mapping[str, str] | None = None
    """Takes the place of the process environment."""
    needs_keys: bool = True
    """False if nothing is asked, so that a missing key is not an error."""
    n_sharers: int = 1
    """So many processes share the calls in flight that the config allows of each model."""
    samples: Mapping[str, Sequence[str]] | None = None
    """By judge, the cases of the spot check of which a shard is a part; None: it draws them itself."""
    most_connections: int = sys.maxsize
    """To one model, as far as this machine is concerned."""
    from_dir: Path | None = None
    """Where the Python files that a stored run names are, if they are not beside its config any more."""
    now: Callable[[], datetime] = utc_now
    """The clock, in UTC."""

    def __post_init__(self) -> None:
        """Let an address of runs stand for its local folder."""
        if self.results_dir is not None:
            object.__setattr__(self, "results_dir", local_results(self.results_dir))


def variables_of(config_path: Path, options: Options) -> Mapping[str, str]:
    """Where keys and other secrets of a config are looked up: the environment and the `.env` beside it.

    Where both have a name, the environment's value counts.

    Raises:
        ConfigError: the `.env` cannot be read.
    """
    environment = os.environ if options.environment is None else options.environment
    return {**read_env(config_path.resolve().parent), **environment}


def with_variables(options: Options, config_path: Path | None) -> Options:
    """The options, with the variables of a second config for the models that it adds to a stored run."""
    return options if config_path is None else replace(options, environment=variables_of(config_path, options))


def surroundings_of(config_path: Path, options: Options) -> Surroundings:
    """What a live system may use of the run of a config."""
    folder = config_path.resolve().parent

    def code(name: CodeName, where: str) -> tuple[Any, str]:
        found, sha256, _ = load_code(name, (folder,), where)
        return found, sha256

    def provider(model: ModelConfig) -> Provider:
        return build_model("system", model, config_path, options, needs_key=options.needs_keys).provider

    return Surroundings(folder, variables_of(config_path, options), code, reply_reader, provider)


def build_model(name: str, model: ModelConfig, config_path: Path, options: Options, *, needs_key: bool) -> ModelRuntime:
    """A model of the config; the key of one that nothing asks need not be there."""
    provider_class = find(judgekit.providers, Provider, model.provider, f"models.{name}.provider")
    environment = variables_of(config_path, options)
    key = None
    try:
        model = provider_class.as_asked(model)
    except ConfigError as error:
        raise ConfigError(f"models.{name}: {error}") from None
    if provider_class.needs_network:
        variable = model.api_key_env or (None if model.base_url else "OPENAI_API_KEY")
        key = environment.get(variable, "").strip() if variable else None
        if variable and not key and needs_key:
            raise ConfigError(f"models.{name}: environment variable {variable} is not set; it should hold the key")
        if key and not _HEADER_TEXT.fullmatch(key):
            raise ConfigError(f"models.{name}: environment variable {variable} holds characters that no key has")
        if not is_local(model.base_url) and is_floating(model.model) and not model.pin.allow_floating:
            raise ConfigError(
                f"models.{name}.model: {model.model!r} is an alias that its provider can point at another model; "
                'name a dated version, or set "pin": {"allow_floating": true}'
            )
    if options.n_sharers > 1:
        model = model.model_copy(update={"max_concurrency": max(1, model.max_concurrency // options.n_sharers)})
    limiter = AdaptiveLimiter(min(model.max_concurrency, options.most_connections))
    provider = provider_class(model, api_key=key)
    provider.variables = _variables_of(name, model, environment, needs_key=needs_key)
    provider.folder = config_path.resolve().parent
    if model.mode == "batch" and provider.batches() is None:
        raise ConfigError(f"models.{name}.mode: provider {model.provider} has no batch endpoint; leave it out")
    try:
        provider.check()
    except ConfigError as error:
        raise ConfigError(f"models.{name}: {error}") from None
    runtime = ModelRuntime(
        model_id=name,
        config=model,
        provider=provider,
        limiter=limiter,
        guard=PinGuard(name, model, checks_name=provider_class.needs_network),
        now=options.now,
    )
    if provider.needs_network:
        provider.on_rate_limits = limiter.learn
        runtime.provider = Retrying(provider, runtime.observe)
    return runtime


def _variables_of(name: str, model: ModelConfig, environment: Mapping[str, str], *, needs_key: bool) -> dict[str, str]:
    """Values of the environment variables that the model's address and headers refer to."""
    found = {}
    for variable in model.variables:
        value = environment.get(variable, "").strip()
        if value:
            found[variable] = value
        elif needs_key:
            raise ConfigError(f"models.{name}: environment variable {variable} is not set")
    for header, value in model.extra_headers.items():
        problem = header_problem(value, found)
        if problem is not None:
            raise ConfigError(f"models.{name}.extra_headers.{header}: the value of its variable {problem}")
    if needs_key and model.base_url is not None and has_hidden_values(model.base_url):
        raise ConfigError(
            f"models.{name}.base_url: a run does not store secrets of an address; name the config by --config, "
            "or write them as ${NAME} of an environment variable there"
        )
    return found


def check_plays(judge: Judge, runtime: ModelRuntime, where: str, *, is_second: bool = False) -> None:
    """Refuse a judge that the provider cannot play; of a second opinion only the written verdict counts."""
    if not is_second:
        _check_scoring(judge, runtime, where)
    plays = runtime.provider.judges
    if plays is not None and judge.name not in plays:
        raise ConfigError(
            f"{where}: provider {runtime.config.provider} judges {', '.join(sorted(plays))} only, not {judge.name}"
        )


def _check_scoring(judge: Judge, runtime: ModelRuntime, where: str) -> None:
    """Refuse a judge that takes probabilities which there cannot be."""
    if judge.scoring == "written":
        return
    if judge.kind.has_parts and runtime.provider.probabilities == "tokens":
        raise ConfigError(
            f'{where}: "scoring": "expected" takes the tokens of one deciding value, and {judge.name} has criteria; '
            "leave it out, or ask by the provider decisions"
        )
    if runtime.provider.probabilities == "none":
        raise ConfigError(
            f'{where}: "scoring": "expected" takes token probabilities, and provider {runtime.config.provider} '
            "gives none; leave it out, or name another model"
        )


def price_models(models: Mapping[str, ModelRuntime], budget: Budget, *, by_batch: bool = False) -> str | None:
    """Look up prices of the models that are asked; returns which price list they are from.

    Args:
        models: the models.
        budget: of the run.
        by_batch: models that are asked by batch have the price of a batch.

    Raises:
        ConfigError: a budget in money is set, and the price of a model is not known.
    """
    found = None
    for name, runtime in models.items():
        if not runtime.provider.needs_network:
            continue
        from judgekit.providers.accounting import price_list, price_of

        if runtime.config.prices is None and not is_local(runtime.config.base_url):
            found = price_list(datetime.now(UTC).date())
        priced = price_of(runtime.config)
        if priced is not None:
            runtime.price, runtime.price_source = priced
            if by_batch and runtime.config.mode == "batch":
                runtime.price = partial(_part_of, priced[0], runtime.config.batches.price_factor)
        elif budget.max_usd is not None:
            example = '{"input": 0.5, "output": 2}'
            raise ConfigError(
                f"budget.max_usd: the price of model {name} is not known, so it cannot be held; set "
                f"models.{name}.prices, such as {example} (US dollars for a million tokens; all 0 for a free model), "
                "or set max_tokens or max_calls instead"
            )
    return found


def _part_of(price: Price, factor: float, usage: Usage) -> float:
    return price(usage) * factor


@asynccontextmanager
async def ready_models(models: Mapping[str, ModelRuntime], cache: ReplyCache | None) -> AsyncIterator[None]:
    """Find out of every model what it is and takes; afterwards give back connections, and close the cache.

    Raises:
        ProviderError: a server cannot be reached, has another build loaded, or refuses what is needed.
    """
    try:
        for runtime in models.values():
            await runtime.ready()
        yield
    finally:
        if cache is not None:
            cache.close()
        for runtime in models.values():
            await runtime.provider.close()


def open_cache(
    results_dir: Path, models: Mapping[str, ModelRuntime], options: Options, *, for_outputs: bool = False
) -> tuple[ReplyCache | None, Notices]:
    """The reply cache beside the runs, given to the models that need a network, and warnings about it.

    None if no such model is asked and no output of a system is kept, or the cache is not wanted.
    """
    networked = [runtime for runtime in models.values() if runtime.provider.needs_network]
    if not (networked or for_outputs) or not options.use_cache:
        return None, []
    from judgekit.storage.reply_cache import CACHE_FOLDER, open_reply_cache

    cache, notices = open_reply_cache(results_dir / CACHE_FOLDER)
    for runtime in networked:
        runtime.cache = cache
    return cache, list(notices)
