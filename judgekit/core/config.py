"""What a user writes: the configuration of one run."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    field_serializer,
    field_validator,
    model_validator,
)

from judgekit.core.batches import BatchSettings
from judgekit.core.conditions import Gate
from judgekit.core.data_files import ComponentName, DataFile, Section
from judgekit.core.judge_config import JudgeConfig
from judgekit.core.repeats import REPEATS_TOGETHER
from judgekit.core.request_fields import (
    check_address,
    check_body,
    check_headers,
    looks_like_a_key,
    public_address,
    variables_in,
)
from judgekit.core.spot_checks import SampleSize
from judgekit.core.stored_text import STORE_TEXT, characters_kept

DEFAULT_SLICES = ("category", "difficulty", "tags", "vaults", "answerable")

_ENV_NAME = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*)")


class SystemConfig(BaseModel):
    """The system under test: the name of a file in judgekit/systems and its arguments."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    name: str = "recorded"
    """`recorded` reads outputs from a file."""

    @property
    def args(self) -> dict[str, Any]:
        """Everything but the name."""
        return dict(self.model_extra or {})


class ExecutorConfig(BaseModel):
    """Where a run is carried out: the name of a file in judgekit/executors and its arguments."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    name: str = "local"
    """`local` is this process; `dask` and `ray` judge shards of the cases in many."""

    @property
    def args(self) -> dict[str, Any]:
        """Everything but the name."""
        return dict(self.model_extra or {})


class ComponentConfig(Section):
    """A metric family and its arguments."""

    name: ComponentName
    args: dict[str, Any] = {}


class MatchConfig(Section):
    """How hits are matched with gold supports."""

    snippets: Literal["if_text", "require", "ignore"] = "if_text"
    """Whether a support's snippets must stand in the hit's text."""
    heading_delimiter: Annotated[str, Field(min_length=1, pattern=r"\S")] | None = None
    """What separates the headings of a `heading_path` that is one text, beside ` > `; left out, `>`, ` / ` and ` :: `
    are recognised where all gold headings use one of them."""


class Pin(Section):
    """What holds a model still, and what happens when it moves."""

    allow_floating: bool = False
    """Allow a name that the provider may point at another model at any time."""
    served_model: Annotated[str, Field(min_length=1)] | None = None
    """Name that replies must carry."""
    fingerprint: Annotated[str, Field(min_length=1)] | None = None
    """`system_fingerprint` that replies must carry."""
    build_hash: Annotated[str, Field(min_length=1)] | None = None
    """What `judgekit pin` prints for a local server: a hash over what the server says about the model it has loaded."""
    upstream: Annotated[str, Field(min_length=1)] | None = None
    """Who must have served the reply behind a gateway, as the reply names it, such as `Azure`."""
    on_mismatch: Literal["stop", "flag"] = "stop"
    """Stop the run (exit 3), or go on and flag it in metrics.json."""


class Prices(Section):
    """What a model costs, in US dollars for a million tokens; all 0: it is free."""

    input: Annotated[float, Field(ge=0)]
    """Prompt tokens."""
    output: Annotated[float, Field(ge=0)]
    """Completion tokens, those of thinking included."""
    cached: Annotated[float, Field(ge=0)] | None = None
    """Prompt tokens that the server had in its own cache; left out: as `input`."""


class ModelConfig(Section):
    """A judge model and how it is reached."""

    provider: str = "openai_compatible"
    """The name of a file in judgekit/providers, or of an installed provider."""
    model: str
    """Model name as the server knows it."""
    base_url: str | None = None
    """Left out: the provider's own address. A query, such as `?api-version=2024-10-21`, goes with every request; a
    secret in it is written `${NAME}`, and whatever may be one is hidden where the address is stored."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key, `OPENAI_API_KEY` or `${OPENAI_API_KEY}`; never the key."""
    pin: Pin = Pin()
    prices: Prices | None = None
    """Left out: a cost that the reply carries, else the price list that is installed."""
    max_output_tokens: Annotated[int, Field(ge=16)] = 1024
    max_prompt_bytes: Annotated[int, Field(ge=1)] | None = None
    """A prompt with more bytes of UTF-8 is not sent, and its case fails as `context_length`; left out: no limit."""
    context_tokens: Annotated[int, Field(ge=512)] | None = None
    """Context window that provider `llama_cpp` loads its model with; left out: 8192."""
    timeout_seconds: Annotated[float, Field(gt=0)] | None = 120.0
    """Wall-clock limit of one request, from sending to the last byte; null means the default of 120."""
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 5
    """Requests for one call at most, retries included."""
    max_concurrency: Annotated[int, Field(ge=1, le=4096)] = 16
    """Requests in flight at most; what the server bears is found out below this."""
    seed: int = 0
    """Sampling seed, sent with every request."""
    allow_provider_temperature: bool = False
    """Go on if the model refuses temperature 0; every judgment then says temperature_accepted: false."""
    system_role: bool = True
    """Send instructions as a system message; false puts them at the head of the user message."""
    reply_format: Literal["json_schema", "json_object", "text"] | None = None
    """The form of reply to ask for; left out: the strictest that the server takes."""
    reasoning_effort: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] | None = None
    """How long a reasoning model thinks, such as `low`; another effort is another instrument. Left out: not sent."""
    extra_body: dict[str, Any] = {}
    """Further fields of each request, such as {"enable_thinking": false}; part of the cache key, no place for a key."""
    extra_headers: dict[str, str] = {}
    """Further headers of each request; a secret is written `${NAME}`, such as {"api-key": "${AZURE_API_KEY}"}."""
    mode: Literal["batch"] | None = None
    """`batch`: a run asks by the batch endpoint of the server, which takes hours and costs half. Left out: call by
    call."""
    batch: BatchSettings | None = None
    """How it is asked by batch; left out: as OpenAI's endpoint takes it."""

    @field_validator("timeout_seconds")
    @classmethod
    def _null_means_default(cls, value: float | None) -> float:
        return 120.0 if value is None else value

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        if value is None:
            return None
        match = _ENV_NAME.fullmatch(value)
        name = (match[1] or match[2]) if match else ""
        # A key pasted here by mistake must not come back in this message or a later one.
        if not name or looks_like_a_key(name):
            raise ValueError("expected the name of an environment variable such as OPENAI_API_KEY, not the key itself")
        return name

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        return None if value is None else check_address(value)

    @field_validator("extra_body")
    @classmethod
    def _holds_json(cls, value: dict[str, Any]) -> dict[str, Any]:
        return check_body(value)

    @field_validator("extra_headers")
    @classmethod
    def _holds_headers(cls, value: dict[str, str]) -> dict[str, str]:
        return check_headers(value)

    @field_serializer("base_url")
    def _without_secrets(self, value: str | None) -> str | None:
        return None if value is None else public_address(value)

    def __eq__(self, other: object) -> bool:
        """Whether the same is stored of both: a run stores no secrets of an address."""
        return isinstance(other, ModelConfig) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash((self.provider, self.model))

    @property
    def public_url(self) -> str | None:
        """base_url as it is stored and shown."""
        return self._without_secrets(self.base_url)

    @property
    def variables(self) -> list[str]:
        """Environment variables that base_url and extra_headers refer to."""
        texts = [self.base_url or "", *self.extra_headers.values()]
        return list(dict.fromkeys(name for text in texts for name in variables_in(text)))

    @property
    def batches(self) -> BatchSettings:
        """How batches of it are made."""
        return self.batch or BatchSettings()

    def further_fields(self) -> dict[str, Any]:
        """What is set of reasoning_effort, extra_body and extra_headers; the names of variables, never their values."""
        fields = {
            "reasoning_effort": self.reasoning_effort,
            "extra_body": self.extra_body,
            "extra_headers": self.extra_headers,
        }
        return {name: value for name, value in fields.items() if value}


class SpotCheck(Section):
    """A second opinion on a seeded sample, to know how far the judges can be trusted."""

    n: SampleSize = 20
    """Judgments to check for each judge, as a number or as a share such as `"5%"`; at most all."""
    repeat_n: Annotated[int, Field(ge=0)] = 20
    """Verdicts older than a day about which each judge itself is asked again, to find drift; 0: none."""
    judge: str | None = None
    """Check this judge only; left out: every judge."""
    prompt_version: str | None = None
    """Ask the same model with this wording."""
    model: str | None = None
    """Ask this model (key in `models`) with the same wording."""
    repeat: bool = False
    """Ask the judge itself again, in the place of another wording or model: how repeatable it is."""
    adaptive: bool = False
    """Begin with `n` and draw ten more at a time, until it is decided on which side of `threshold` the rate is."""
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.20
    """A disagreement rate above it raises the `judge_unstable` warning."""

    @model_validator(mode="after")
    def _asks_for_something_else(self) -> "SpotCheck":
        if self.repeat and (self.prompt_version is not None or self.model is not None):
            raise ValueError("repeat asks the judge itself again; leave it out, or prompt_version and model")
        if not self.repeat and self.prompt_version is None and self.model is None:
            raise ValueError('name a second prompt_version or model to check against, or set "repeat": true')
        return self


class Budget(Section):
    """Limits of one run, checked before each call; reached, the run stops and can be resumed."""

    max_usd: Annotated[float, Field(gt=0)] | None = None
    max_tokens: Annotated[int, Field(gt=0)] | None = None
    max_calls: Annotated[int, Field(gt=0)] | None = None


class RunConfig(Section):
    """The configuration of one run."""

    schema_: str | None = Field(default=None, validation_alias=AliasChoices("$schema", "schema_"), alias="$schema")
    """Where an editor finds the JSON Schema of this file."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    """Short name of the suite: letters, digits, `.`, `_`, `-`."""
    cases: str | DataFile
    """File of cases."""
    system: SystemConfig
    repeats: Annotated[int, Field(ge=1, le=100)] | None = None
    """Answers of the system to each case, to see how much they differ: `q1`, `q1#2`, ... in files; left out: one."""
    store_text: Annotated[str, Field(pattern=f"^(?:{STORE_TEXT.pattern})$".replace("?P<n>", ""))] | None = None
    """How much of what the system said a run keeps: `full`, `truncated(200)` (the first 200 characters of each text) or
    `none`. A judge needs all of it. Left out: `full`."""
    corpus_chunk_ids: str | DataFile | None = None
    """File of the ids of all chunks of the corpus, which citations are resolved against; left out: the run's hits."""
    indexing: str | DataFile | None = None
    """File that says what became of each document of the corpus on its way into the index."""
    metrics: tuple[ComponentName | ComponentConfig, ...] | None = None
    """Families to calculate, those of installed packages and `file:PATH.py:NAME` among them; left out: all that are
    shipped and apply."""
    match: MatchConfig = MatchConfig()
    models: dict[str, ModelConfig] = {}
    judges: tuple[JudgeConfig, ...] = ()
    spot_check: SpotCheck | None = None
    slices: tuple[str, ...] = DEFAULT_SLICES
    """Dimensions: a field of the case, or `metadata.name`."""
    min_n: Annotated[int, Field(ge=1)] = 5
    """Figures over fewer cases are marked as small wherever they are shown."""
    cluster_by: str | None = None
    """Dimension whose values say which cases belong together, such as `metadata.document`; left out: none do, but for
    the `repeats` of a case."""
    gates: tuple[Gate, ...] = ()
    budget: Budget = Budget()
    executor: ExecutorConfig | None = None
    """Where the run is carried out; left out: in this process."""
    errors: Literal["exclude", "as_zero"] = "exclude"
    """Cases whose output is an error: left out and counted, or counted as the worst value."""
    versions: dict[str, str] = {}
    """chunker_version, embedding_model, index_version, prompt_version of the system; left out: from the outputs."""
    prompts_dir: str | None = None
    """Folder of your own prompts, looked into before the shipped ones."""
    results_dir: str | None = None
    """Path, or an address such as `s3://bucket/runs`. Left out: `results` in the current folder."""
    report: bool = True
    """Write report.html at the end of the run; `judgekit report` writes it at any time."""
    seed: int | None = None
    """Seed of what is drawn at random; left out, each spot check has a fresh one, and the bootstrap uses 0."""

    @property
    def resampling_seed(self) -> int:
        """Seed of figures that rest on resampling, so that the same scores give the same figures."""
        return self.seed or 0

    @property
    def cases_file(self) -> DataFile:
        """The cases entry in its long form."""
        return DataFile(path=self.cases) if isinstance(self.cases, str) else self.cases

    @property
    def indexing_file(self) -> DataFile | None:
        """The indexing entry in its long form."""
        return DataFile(path=self.indexing) if isinstance(self.indexing, str) else self.indexing

    @model_validator(mode="after")
    def _judges_what_is_stored(self) -> "RunConfig":
        if characters_kept(self.store_text) is not None and self.judges:
            names = ", ".join(judge.name for judge in self.judges)
            raise ValueError(
                f"store_text: {self.store_text!r} leaves out texts that the judges read ({names}), and every judge "
                'input is stored; use "full", or leave the judges out'
            )
        return self

    @model_validator(mode="after")
    def _keeps_repeats_together(self) -> "RunConfig":
        if (self.repeats or 1) > 1 and self.cluster_by is None:
            self.__dict__["cluster_by"] = REPEATS_TOGETHER
        return self

    @model_validator(mode="after")
    def _names_exist(self) -> "RunConfig":
        seen: set[str] = set()
        for number, judge in enumerate(self.judges):
            where = "model" if judge.panel is None else "panel.models"
            for model in judge.asked:
                if model not in self.models:
                    raise ValueError(f"judges[{number}].{where} names {model!r}, {_known(self.models)}")
            if judge.name in seen:
                raise ValueError(f"judges[{number}]: {judge.name!r} is listed twice")
            seen.add(judge.name)
        wanted = self.spot_check
        if wanted is not None:
            if wanted.model is not None and wanted.model not in self.models:
                raise ValueError(f"spot_check.model names {wanted.model!r}, {_known(self.models)}")
            if wanted.judge is not None and wanted.judge not in seen:
                raise ValueError(f"spot_check.judge names {wanted.judge!r}, which is not among the judges")
            if not self.judges:
                raise ValueError("spot_check is set, but there are no judges to check")
            checked = [judge for judge in self.judges if wanted.judge in (None, judge.name)]
            if wanted.model is None and any(judge.panel is not None for judge in checked):
                raise ValueError("spot_check: a panel is not a single model, so name the model that checks it")
        return self


def _known(models: Mapping[str, ModelConfig]) -> str:
    return f"but models has {', '.join(sorted(models))}" if models else "but models is empty"
