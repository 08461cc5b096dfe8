"""The metric families of a config, built with their arguments."""

import importlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import judgekit.metrics
from judgekit.core.components import Component, Metric, build, find, shipped_in
from judgekit.core.config import ComponentConfig, RunConfig
from judgekit.core.data_files import CodeName
from judgekit.core.errors import ConfigError
from judgekit.judges.from_rubric import RubricJudge
from judgekit.metrics.extraction import Extraction
from judgekit.metrics.retrieval_ids import RetrievalIds
from judgekit.metrics.tool_calls import ToolCalls
from judgekit.workflows.own_code import own_class

MATCHING = ("retrieval", "multi_hop")
"""Families that match hits with gold supports as `match` says."""


def build_metrics(
    config: RunConfig, folders: Sequence[Path], corpus_chunk_ids: frozenset[str] | None = None
) -> list[Metric]:
    """The families of the config, or all that are shipped.

    Args:
        config: of the run.
        folders: where the paths of Python files may start.
        corpus_chunk_ids: ids of all chunks of the corpus, if there is a file of them.

    Raises:
        ConfigError: no such family, wrong arguments, or a family that is listed twice.
    """
    if config.metrics is None:
        wanted = [ComponentConfig(name=name) for name in sorted(shipped_in(judgekit.metrics, Metric))]
    else:
        wanted = [ComponentConfig(name=item) if isinstance(item, str) else item for item in config.metrics]
    families = []
    for number, item in enumerate(wanted):
        args = dict(item.args)
        if item.name in MATCHING:
            args.setdefault("snippets", config.match.snippets)
        where = f"metrics[{number}]"
        family = _with_functions(build(_class(item.name, folders, where), args, where), where)
        if isinstance(family, RetrievalIds) and corpus_chunk_ids is not None:
            if family.corpus_chunk_ids is not None:
                raise ConfigError(f"{where}: corpus_chunk_ids is given here and at the top of the config; keep one")
            family = family.model_copy(update={"corpus_chunk_ids": corpus_chunk_ids})
        families.append(family)
    if len({family.name for family in families}) != len(families):
        raise ConfigError("metrics: a family is listed twice")
    return families


def _class(name: str, folders: Sequence[Path], where: str) -> type[Metric]:
    in_a_file = CodeName.of(name)
    if in_a_file is not None:
        return own_class(in_a_file, Metric, folders, where)
    return find(judgekit.metrics, Metric, name, where)


def check_columns(components: Iterable[Component]) -> None:
    """Refuse a component that is not of judgekit and names a score of another one, which would take its place.

    A judge that is data has a name of the user's choice, so it is looked at too.

    Raises:
        ConfigError: two of them have a score of one name, or one does not say what it gives.
    """
    owners: dict[str, Component] = {}
    for component in sorted(components, key=lambda item: not _is_named_here(item)):
        try:
            columns = component.columns()
            names = {column.name for column in columns} | {figure.name for figure in component.pooled()}
            names |= {column.aggregate for column in columns if column.aggregate is not None}
        except Exception as error:
            if component.is_shipped:
                raise
            what = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise ConfigError(f"{component.name}: its columns cannot be told: {what}") from None
        for name in sorted(names):
            other = owners.setdefault(name, component)
            if other is not component and not _is_named_here(component):
                raise ConfigError(f"{component.name}: {other.name} gives a score {name!r} already; choose another name")


def _is_named_here(component: Component) -> bool:
    """Whether judgekit chose the names of its scores."""
    return component.is_shipped and not isinstance(component, RubricJudge)


def _with_functions(metric: Metric, where: str) -> Metric:
    """The family with the Python functions loaded that its arguments name, such as a comparator of the user's own."""
    if isinstance(metric, Extraction | ToolCalls) and metric.function_names:
        loaded = {name: _function(name, f"{where} ({metric.name})") for name in metric.function_names}
        return metric.with_functions(loaded)
    return metric


def _function(name: str, where: str) -> Callable[..., Any]:
    """The function `package.module:function`.

    Raises:
        ConfigError: no such module or function, or the module cannot be imported.
    """
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:  # noqa: BLE001  # importing runs the user's own code
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        hint = "; install it or put its folder on PYTHONPATH" if isinstance(error, ModuleNotFoundError) else ""
        raise ConfigError(f"{where}: {name} cannot be loaded: {what}{hint}") from None
    if not callable(found):
        raise ConfigError(f"{where}: {name} is not a function")
    return found  # type: ignore[no-any-return]


def is_from_a_file(item: str | ComponentConfig) -> bool:
    """Whether a metric of a config stands in a Python file."""
    return CodeName.of(item if isinstance(item, str) else item.name) is not None
