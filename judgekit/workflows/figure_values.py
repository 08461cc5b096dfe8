"""The scores of one figure of stored runs, case by case, for what is calculated from the spread of cases."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from judgekit.analysis.joint import joint_columns
from judgekit.analysis.slices import Clusters
from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError
from judgekit.core.familiar_names import name_hint
from judgekit.core.repeats import REPEAT_OF, asked_id
from judgekit.core.scores import Column
from judgekit.workflows.compared_runs import Side, side_of
from judgekit.workflows.models import Options
from judgekit.workflows.stored import open_stored


@contextmanager
def open_run(run: str, options: Options) -> Iterator[Side]:
    """One stored run with its scores.

    Raises:
        ConfigError: there is no such run, it has no scores, or it did not keep its cases.
        StorageError: it is damaged.
    """
    with ExitStack() as files:
        side = side_of(run, open_stored(run, options), files)
        check_scored(side)
        yield side


def check_scored(side: Side) -> None:
    """Refuse a run without scores or cases."""
    if not side.cases.has_scores:
        raise ConfigError(f"{side.label}: has no scores yet; finish it with: judgekit run --resume {side.label}")
    if not side.cases.has_cases:
        raise ConfigError(f"{side.label}: written before runs kept their cases, so nothing can be resampled from it")


def figure_columns(side: Side) -> dict[str, Column]:
    """The columns of a run that have a mean, by the name of the figure."""
    columns = [column for part in side.columns.values() for column in part]
    found = [*columns, *joint_columns(columns)]
    return {column.aggregate or column.name: column for column in found if column.aggregate != ""}


def figure_column(side: Side, metric: str) -> Column:
    """The column behind a figure.

    Raises:
        ConfigError: the run has no such figure, or it is no mean of scores.
    """
    known = figure_columns(side)
    if metric not in known:
        pooled = [figure.name for part in side.components.values() for figure in part.pooled()]
        what = "is made of sums, and this takes means" if metric in pooled else f"is no figure of {side.label}"
        raise ConfigError(f"--metric {metric!r} {what}{name_hint(metric, known)}")
    return known[metric]


@dataclass(frozen=True)
class Units:
    """What is independent in a run: its cases, or clusters of them."""

    of_case: Mapping[str, int]
    """Number of the unit, by case id."""
    are_clusters: bool
    are_repeats: bool
    """The clusters are the answers to one case each."""


def units_of(side: Side) -> Units:
    """The clusters of a run by its config; cases where it has none."""
    cases = [case for case_id in side.cases.ids if (case := side.cases.case(case_id)) is not None]
    cluster_by = side.stored.config.cluster_by
    if cluster_by is None:
        return Units({case.id: number for number, case in enumerate(cases)}, are_clusters=False, are_repeats=False)
    clusters = Clusters(cluster_by)
    found = {case.id: clusters.number(case) for case in cases}
    return Units(found, are_clusters=True, are_repeats=_one_unit_a_case(cases, found))


def _one_unit_a_case(cases: list[Case], units: Mapping[str, int]) -> bool:
    """Whether the answers to each case are a unit, and some case has several."""
    asked: dict[str, set[int]] = {}
    for case in cases:
        asked.setdefault(asked_id(case), set()).add(units[case.id])
    is_repeated = any(REPEAT_OF in case.metadata for case in cases) and len(asked) < len(cases)
    return is_repeated and all(len(found) == 1 for found in asked.values()) and len(set(units.values())) == len(asked)


def values_of(side: Side, column: Column) -> dict[str, float]:
    """The scores of a column by case id; cases without a value are absent."""
    found = {case_id: side.cases.scores(case_id).get(column.name) for case_id in side.cases.ids}
    return {case_id: value for case_id, value in found.items() if isinstance(value, float)}
