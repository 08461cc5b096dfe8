"""How the system under test is asked: so many cases at once, each with a time limit, tries and an output at the end.

Whatever goes wrong with one case is an error row of its outputs. Only failures in a row stop the run: a system that is
down would otherwise be recorded as one that knows nothing.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from judgekit.core.answers import output_of
from judgekit.core.cache_keys import output_key
from judgekit.core.cases import Case, OutputError, SystemOutput
from judgekit.core.errors import ProviderError
from judgekit.core.masking import Masker
from judgekit.core.protocols import Ask, AskError, ReplyCache, System
from judgekit.core.stored_text import as_stored
from judgekit.engine.judging import Tally
from judgekit.engine.passes import Observer
from judgekit.engine.workers import run_workers
from judgekit.tracing import system_call_span

TRANSIENT = frozenset({"timeout", "connection", "rate_limited", "server_error", "crashed"})
"""Kinds of failures that may pass: a resumed recording asks these cases again."""

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
LONGEST_ASKED_SECONDS = 120.0
"""A system that asks to be left alone for longer is asked again after so long."""

_MOST_CHARACTERS = 500

Write = Callable[[SystemOutput, tuple[str, str] | None], None]
"""Takes an output, and the cache entry to store with it."""


@dataclass
class SystemCalls:
    """Asks one system about many cases."""

    system: System
    facts: Mapping[str, Any]
    """What the system says of itself, such as the hash of its file."""
    cache: ReplyCache | None
    observer: Observer
    masker: Masker
    """Takes secrets out of what the system says."""
    n_kept: int | None = None
    """Characters of each text that are stored; None: all."""
    tally: Tally = field(default_factory=Tally)
    n_requests: int = 0
    _in_a_row: list[AskError] = field(default_factory=list)

    async def run(self, ask: Ask, cases: Sequence[Case], write: Write) -> None:
        """Ask about every case, as many at once as the system allows; outputs are written as they come.

        Raises:
            ProviderError: too many failures in a row.
            StorageError: an output cannot be written.
        """
        label = f"system {self.system.name}"
        self.observer.started(label, len(cases))
        waiting = iter(cases)
        n_workers = min(self.system.max_concurrency, len(cases))
        try:
            await run_workers(self._work(ask, waiting, write, label) for _ in range(n_workers))
        finally:
            self.observer.finished(label)

    async def _work(self, ask: Ask, waiting: Iterator[Case], write: Write, label: str) -> None:
        for case in waiting:
            key = self._key(case)
            output = self._cached(key, case)
            if output is not None:
                self.tally.n_from_cache += 1
                write(output, None)
            else:
                with system_call_span(case.id, self.system.name) as span:
                    output = as_stored(await self._output(ask, case), self.n_kept)
                    span.answered(output)
                is_kept = key is not None and output.error is None
                write(output, (key, output.model_dump_json(exclude_defaults=True)) if key and is_kept else None)
            self.tally.n_done += 1
            self.tally.n_failed += output.error is not None
            self.observer.advanced(label, self.tally)
            if len(self._in_a_row) >= self.system.stop_after:
                raise self._gave_up()

    def _key(self, case: Case) -> str | None:
        if self.cache is None or self.system.version is None:
            return None
        kept = {} if self.n_kept is None else {"n_kept": self.n_kept}
        return output_key({**self.system.settings(), **self.facts, **kept}, self.system.sees(case), case.id)

    def _cached(self, key: str | None, case: Case) -> SystemOutput | None:
        text = None if key is None or self.cache is None else self.cache.get(key)
        try:
            return None if text is None else output_of(case, SystemOutput.model_validate_json(text))
        except (ValidationError, AskError):
            return None

    async def _output(self, ask: Ask, case: Case) -> SystemOutput:
        """The answer to a case, or the error row that stands for it."""
        for attempt in range(1, self.system.max_attempts + 1):
            started = time.monotonic()
            try:
                output = await self._asked(ask, case)
            except AskError as error:
                if error.retryable and attempt < self.system.max_attempts:
                    await asyncio.sleep(_wait_seconds(error, attempt))
                    continue
                self._in_a_row.append(error)
                kind = self.masker.text(error.kind)
                message = self.masker.text(" ".join(str(error).split())[:_MOST_CHARACTERS])
                return SystemOutput(case_id=case.id, error=OutputError(kind=kind, message=message))
            if output.error is None:
                self._in_a_row.clear()
            else:
                self._in_a_row.append(AskError(output.error.kind, output.error.message))
            if "total" not in output.latency_seconds:
                latency = {**output.latency_seconds, "total": time.monotonic() - started}
                output = output.model_copy(update={"latency_seconds": latency})
            return output
        raise AssertionError  # the last attempt returns

    async def _asked(self, ask: Ask, case: Case) -> SystemOutput:
        """One attempt.

        Raises:
            AskError: there is no output.
        """
        self.n_requests += 1
        seconds = self.system.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                answer = await ask(case)
        except TimeoutError:
            raise AskError("timeout", f"no answer within {seconds:g} s", retryable=True) from None
        except AskError:
            raise
        except Exception as error:  # noqa: BLE001  # the system's own fault, which must not cost the other cases
            raise AskError("exception", f"{type(error).__name__}: {error}") from None
        return output_of(case, answer)

    def _gave_up(self) -> ProviderError:
        last = self._in_a_row[-1]
        why = self.masker.text(" ".join(str(last).split())[:_MOST_CHARACTERS])
        return ProviderError(
            f"system {self.system.name}: {len(self._in_a_row)} calls in a row failed, the last one with {last.kind}: "
            f"{why}; fix it and resume the run, or raise system.stop_after"
        )


def _wait_seconds(error: AskError, attempt: int) -> float:
    """How long to wait before the next attempt: as the system says, else longer each time."""
    if error.retry_after_seconds is not None:
        return min(error.retry_after_seconds, LONGEST_ASKED_SECONDS)
    longest = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (attempt - 1))
    return random.uniform(longest / 2, longest)  # noqa: S311  # jitter is no secret
