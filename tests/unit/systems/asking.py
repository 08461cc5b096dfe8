"""Opens a system's session and asks it, as the engine does."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.masking import Masker
from judgekit.core.protocols import System
from judgekit.engine.passes import Observer
from judgekit.engine.system_calls import SystemCalls
from judgekit.workflows.models import Options, surroundings_of


def outputs_of(
    system: System,
    cases: Sequence[Case],
    folder: Path = Path(),
    environment: Mapping[str, str] | None = None,
    meanwhile: Callable[[], Any] | None = None,
) -> dict[str, SystemOutput]:
    """By case id, what the system gives."""
    surroundings = surroundings_of(folder / "config.json", Options(environment=environment))
    found: dict[str, SystemOutput] = {}

    async def all_of_them() -> None:
        system.facts(surroundings)
        calls = SystemCalls(system, {}, None, Observer(), Masker(system.secrets(surroundings)))
        async with system.session(surroundings) as ask:
            if meanwhile is not None:
                meanwhile()
            await calls.run(ask, cases, lambda output, _: found.update({output.case_id: output}))

    asyncio.run(all_of_them())
    return found


def failure(output: SystemOutput) -> tuple[str, str]:
    """Kind and message of an error row."""
    assert output.error is not None, output
    return output.error.kind, output.error.message
