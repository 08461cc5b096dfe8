"""Batches: requests that go to a model in files and are answered hours later, at a lower price."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from judgekit.core.data_files import Section

BATCHES = "batches.sqlite"
"""What a run folder holds of its batches: their state, the ids of their requests, and the replies."""

CHAT_ADDRESS = "/v1/chat/completions"
"""What every line of a batch file names, whatever the address of the server."""

PRICE_FACTOR = 0.5
"""What providers with a batch endpoint charge of their usual price: OpenAI, Azure, Groq and Together."""


class BatchSettings(Section):
    """How a model is asked by batch."""

    price_factor: Annotated[float, Field(ge=0, le=1)] = PRICE_FACTOR
    """What a batch costs of the usual price, that of `prices` too."""
    poll_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """How often the server is asked how far a batch is, at the longest; in the beginning more often."""
    completion_window: Annotated[str, Field(pattern=r"^\d{1,4}[hdms]$")] = "24h"
    """The time that the server may take, as its documentation names it."""
    max_requests: Annotated[int, Field(ge=1)] = 50_000
    """Requests in one file at most; more go into further files."""
    max_bytes: Annotated[int, Field(ge=10_000)] = 200_000_000
    """Size of one file at most."""


PartStatus = Literal["exported", "written", "uploaded", "creating", "submitted", "ended", "failed"]
"""`exported`: written for you to submit. The others are the steps of a batch that judgekit submits itself: `creating`
is stored before the server is asked for a batch, and `submitted` once its id is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPart:
    """One file of requests and the batch that was made of it."""

    number: int
    model_id: str
    status: PartStatus
    token: str = ""
    """Stands in the batch's metadata, so that it is found again if its id was never heard."""
    path: str = ""
    n_requests: int = 0
    n_bytes: int = 0
    sha256: str = ""
    created_at: int = 0
    """Seconds since 1970."""
    file_id: str | None = None
    batch_id: str | None = None
    server_status: str | None = None
    counts: Mapping[str, int] | None = None
    """What the server says: `total`, `completed`, `failed`."""
    output_file_id: str | None = None
    error_file_id: str | None = None
    left_out: Mapping[str, int] | None = None
    """Lines of its files of which nothing was used, by kind."""

    @property
    def is_open(self) -> bool:
        """Whether replies may still come."""
        return self.status in ("written", "uploaded", "creating", "submitted")


@dataclass(frozen=True, slots=True)
class ServerBatch:
    """What a server says of a batch."""

    id: str
    status: str
    counts: Mapping[str, int]
    output_file_id: str | None
    error_file_id: str | None
    errors: tuple[str, ...]
    """What is wrong with its file, if it failed validation."""
    token: str | None
    input_file_id: str | None
    created_at: int | None

    @property
    def has_ended(self) -> bool:
        """Whether it has come to its end, a good one or not."""
        return self.status in ("completed", "failed", "expired", "cancelled")


@dataclass(frozen=True, slots=True)
class Received:
    """What was found in a line of a file of replies."""

    custom_id: str | None
    """None: the line cannot be read."""
    is_reply: bool
    """False for an error in the place of a reply."""
    problem: str | None
    """Why it is no reply, in a word or two."""


def counts_of(value: Any) -> dict[str, int]:
    """The counts of a batch as far as they are numbers."""
    found = value if isinstance(value, Mapping) else {}
    return {name: found[name] for name in ("total", "completed", "failed") if type(found.get(name)) is int}
