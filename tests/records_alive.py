"""How many records of a run are in memory at once."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, cast

import pytest
from pydantic import BaseModel

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.judgments import JudgeInput, Judgment


@contextmanager
def records_counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """By kind of record, how many were alive at once at most, of those that are read from lines and their copies."""
    most: dict[str, int] = {}
    with monkeypatch.context() as patch:
        for model in (Case, SystemOutput, JudgeInput, Judgment):
            counter = _Counter(model, most)
            read = cast("Any", model.model_validate_json).__func__
            patch.setattr(model, "model_validate_json", classmethod(counter.made_by(read)))
            patch.setattr(model, "model_copy", counter.made_by(model.model_copy))
        yield most


class _Counter:
    """Knows which records of one kind are alive."""

    def __init__(self, model: type[BaseModel], most: dict[str, int]) -> None:
        self._name, self._most = model.__name__, most
        self._alive: weakref.WeakValueDictionary[int, BaseModel] = weakref.WeakValueDictionary()
        self._numbers = count()

    def made_by(self, make: Callable[..., BaseModel]) -> Callable[..., BaseModel]:
        def counted(*args: Any, **kwargs: Any) -> BaseModel:
            record = make(*args, **kwargs)
            self._alive[next(self._numbers)] = record
            self._most[self._name] = max(self._most.get(self._name, 0), len(self._alive))
            return record

        return counted
