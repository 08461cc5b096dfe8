"""Waits of the retry layer, made short."""

import asyncio
from types import SimpleNamespace

import pytest

from judgekit.providers import retrying


@pytest.fixture
def quick_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first wait before a retry takes a few milliseconds; later ones double as ever."""
    monkeypatch.setattr(retrying, "FIRST_WAIT_SECONDS", 0.004)


@pytest.fixture
def asked_waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every wait of the retry layer in seconds; none of them is waited for."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(retrying, "asyncio", SimpleNamespace(sleep=sleep))
    return waits
