"""Components: metrics and judges. They, providers and formats are found by their file, or by an entry point.

A component is a stateless frozen model. The name of its file is its name in a config, its fields are its
config arguments, so adding one is adding one file and there is no registry to edit.
"""

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ConfigError, did_you_mean, first_problem
from judgekit.core.judgments import JudgeInput, Verdict
from judgekit.core.kind import CANNOT_BE_TOLD, Kind
from judgekit.core.reply_values import read_text
from judgekit.core.scores import Column, Estimate, Failed, NotApplicable, Outcome, Outcomes, Pooled
from judgekit.core.token_runs import LEAST_MASS

T = TypeVar("T", bound="Named")
C = TypeVar("C", bound="Component")

Verdicts = Mapping[str, Verdict | NotApplicable | Failed]
"""What the judges of a run say of one case, by judge: a verdict, or why there is none."""


class Named(Protocol):
    """What a config names: its name is that of its file, or of its entry point."""

    name: ClassVar[str]


class Component(BaseModel):
    """Base of metrics and judges."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str] = ""
    """The name of the file that defines the component, unless the class sets another."""
    needs: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Fields without which it has nothing to say, such as `output.retrieved`; of each group, one is enough."""
    code_sha256: ClassVar[str | None] = None
    """Hash of the Python file that a config names it by; None for one that is shipped or installed."""
    has_open_columns: ClassVar[bool] = False
    """Its columns, `NAME` or `NAME.KEY`, are known once it has seen the cases of a run."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = cls.__module__.rpartition(".")[2]

    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """Every score name that this component can give, with its range and direction."""

    def pooled(self) -> tuple[Pooled, ...]:
        """Figures over all cases that are not means of a column; none unless overridden."""
        return ()

    def settings(self, leave_out: set[str] | None = None) -> dict[str, Any]:
        """Its arguments as a run stores them, and the hash of its file if a config names it by one."""
        code = {} if self.code_sha256 is None else {"code_sha256": self.code_sha256}
        return {**self.model_dump(mode="json", exclude=leave_out), **code}

    @property
    def is_shipped(self) -> bool:
        """Whether judgekit itself brings it."""
        return self.code_sha256 is None and type(self).__module__.startswith("judgekit.")


class Metric(Component):
    """A family of deterministic scores: a pure function of (case, output).

    A few scores take a yes/no judge as well. A family names such judges in `judges_wanted` and gives those scores in
    `calculate_judged`; in a run without one of them, and for the others, what `calculate` says stands.
    """

    judges_wanted: ClassVar[tuple[str, ...]] = ()
    """Judges whose verdicts some scores of the family take, if the run has them."""

    @abstractmethod
    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        """Outcome of every column for one case.

        A case whose output is an error is `Failed` in every column whose precondition on the case holds.
        """

    def calculate_judged(self, case: Case, output: SystemOutput, verdicts: Verdicts) -> Outcomes:  # noqa: ARG002  # a hook
        """Outcomes that depend on verdicts, in place of those of `calculate`; none unless overridden.

        Pure, like `calculate`. A judge that failed makes the score `Failed` by the judge.

        Args:
            case: the case.
            output: what the system gave for it.
            verdicts: of the wanted judges, those that the run has; at least one.
        """
        return {}

    def settled(self, pairs: Iterable[tuple[Case, SystemOutput]]) -> "Metric":  # noqa: ARG002  # a hook
        """The family once it has seen all cases of a run; itself unless `has_open_columns`."""
        return self

    def sources(self, output: SystemOutput, verdicts: Verdicts) -> Mapping[str, str]:  # noqa: ARG002  # a hook
        """By score name, what the score rests on, if several things could say it; none unless overridden.

        Args:
            output: what the system gave.
            verdicts: of the wanted judges, those that the run has; may be empty.
        """
        return {}

    def open_report(self) -> "MetricReport | None":
        """What the family writes beside its scores; nothing unless overridden."""
        return None


class MetricReport(ABC):
    """A file that a family writes beside its scores: it gathers the cases of one run as they are calculated."""

    file_name: ClassVar[str]

    @abstractmethod
    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        """The same outcomes as the family's own `calculate`, and what the report needs is kept."""

    @abstractmethod
    def document(self, figures: Mapping[str, Estimate | dict[str, int]]) -> dict[str, Any] | None:
        """The file as JSON, with numbers rounded; None if there is nothing to write.

        Args:
            figures: the estimates over all cases, so that no figure is calculated twice.
        """

    @abstractmethod
    def digest(self) -> dict[str, Any] | None:
        """The part that metrics.json and summary.md show."""

    @abstractmethod
    def warnings(self) -> list[tuple[str, str]]:
        """(code, message) of what the reader of the numbers should know."""


def _set_parts(value: Any) -> Any:
    """A value without the parts of objects that are null."""
    if isinstance(value, dict):
        return {name: _set_parts(item) for name, item in value.items() if item is not None}
    return value


class Judge(Component):
    """A model-based judge: builds its input, reads a verdict, turns a verdict into scores. Pure."""

    verdict_keys: ClassVar[tuple[str, ...]] = ("reasoning",)
    """Keys of the reply that the judge reads beside the one that decides."""
    decisive_key: ClassVar[str] = "score"
    """The key without which a reply holds no verdict."""
    optional_keys: ClassVar[tuple[str, ...]] = ()
    """Keys that the judge reads if the reply schema of the wording has them."""
    scoring: Literal["written", "expected"] = "written"
    """`expected`: its figures by token probabilities stand beside those of the written verdict."""
    fills_gaps: ClassVar[bool] = False
    """The judge is asked only if nothing else decides, so that a run without a case for it is in order."""

    def settings(self, leave_out: set[str] | None = None) -> dict[str, Any]:
        """As of every component, without what is not set: a judge is the same in a run that did not know of it yet."""
        unset = {"scoring"} if self.scoring == "written" else set()
        found = super().settings({*(leave_out or ()), *unset})
        return {name: _set_parts(value) for name, value in found.items()}

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """What a verdict is: a scale, yes or no, labels, criteria. It says how verdicts are read and scored."""

    @abstractmethod
    def build_input(self, case: Case, output: SystemOutput) -> JudgeInput | NotApplicable | Failed:
        """The variables that the judge's prompt is rendered from."""

    def read_verdict(self, payload: Mapping[str, Any]) -> Verdict:
        """The verdict that a decoded reply holds: what decides, and the reasoning.

        Raises:
            VerdictError: the reply has the wrong shape, type or range; the error carries the kind.
        """
        return Verdict(**self.kind.read(payload, self.decisive_key), reasoning=read_text(payload, "reasoning"))

    def not_asked(self, judge_input: JudgeInput) -> NotApplicable | None:  # noqa: ARG002  # a hook
        """Why an input is not put before the judge; None if it is, and unless overridden.

        `build_input` answers the same for a case. An input that an earlier version stored is held against this before
        it is judged again.
        """
        return None

    def parts(self, judge_input: JudgeInput) -> Sequence[JudgeInput]:
        """What is asked in calls of its own about one case; unless overridden all is asked in one."""
        return (judge_input,)

    def check_verdict(self, verdict: Verdict, judge_input: JudgeInput) -> Verdict:  # noqa: ARG002  # a hook
        """The verdict held against what was judged, such as quotes against the passages; as it is unless overridden.

        Raises:
            VerdictError: it does not fit what was judged.
        """
        return verdict

    def abstained_scores(self) -> Outcomes | None:
        """The scores of an abstention on an answerable case, whatever the judge says of it; None unless overridden.

        A judge that gives some follows the abstentions of the run: to one on any other case it does not apply.
        """
        return None

    def columns(self) -> tuple[Column, ...]:
        """Those of its kind of verdict, unless overridden; by probabilities too, if the judge takes them."""
        return (*self.kind.columns(self.name), *self.weighed_columns())

    def weighed_columns(self) -> tuple[Column, ...]:
        """The figure by probabilities, if the judge takes them and its kind of verdict has one."""
        column = self.kind.weighed_column(self.name) if self.scoring == "expected" else None
        return () if column is None else (column,)

    def scores(self, verdict: Verdict) -> Outcomes:
        """Outcome of every column for a verdict, whose `reasoning` is blank here: no number may depend on it."""
        found = self.kind.scores(self.name, verdict)
        for column in self.weighed_columns():
            found[column.name] = self._weighed(verdict)
        return found

    def _weighed(self, verdict: Verdict) -> Outcome:
        if verdict.cannot_tell:
            return CANNOT_BE_TOLD
        if verdict.probabilities is None:
            return Failed("no_probabilities", by_judge=True)
        if verdict.probability_mass is not None and verdict.probability_mass < LEAST_MASS:
            return Failed("low_mass", by_judge=True)
        value = self.kind.weighed(verdict)
        return Failed("no_probabilities", by_judge=True) if value is None else value


@cache
def shipped_in(package: ModuleType, kind: type[T]) -> Mapping[str, type[T]]:
    """Classes of one kind that judgekit brings, by name: one a file of `package`."""
    found: dict[str, type[T]] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        for value in vars(module).values():
            is_own = isinstance(value, type) and issubclass(value, kind) and value.__module__ == module.__name__
            if is_own and getattr(value, "selectable", True):
                value.name = module_info.name
                found[module_info.name] = value
    return found


@cache
def discover(package: ModuleType, kind: type[T]) -> Mapping[str, type[T]]:
    """Classes of one kind by name: those that judgekit brings, and the entry points of their group.

    The group is called like the last part of the package's name, such as `judgekit.metrics`.
    """
    found = dict(shipped_in(package, kind))
    for entry in _entry_points(package):
        if entry.name not in found:
            found[entry.name] = _loaded(entry)
    return found


def _loaded(entry: Any) -> Any:
    """What an entry point stands for.

    Raises:
        ConfigError: it cannot be imported.
    """
    try:
        loaded = entry.load()
    except Exception as error:  # noqa: BLE001  # importing runs the code of another package
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ConfigError(f"{entry.group}: the installed {entry.name!r} cannot be loaded: {what}") from None
    loaded.name = entry.name
    return loaded


@cache
def names_in(package: ModuleType) -> tuple[str, ...]:
    """The names that `discover` finds in a package in which each file defines one class; nothing is imported."""
    files = [module_info.name for module_info in pkgutil.iter_modules(package.__path__)]
    return tuple(dict.fromkeys([*files, *(entry.name for entry in _entry_points(package))]))


def names_of(package: ModuleType, kind: type[Named]) -> list[str]:
    """The names that `find` knows; no entry point is loaded."""
    return [*shipped_in(package, kind), *(entry.name for entry in _entry_points(package))]


def _entry_points(package: ModuleType) -> Iterable[Any]:
    found: Iterable[Any] = _installed().select(group=f"judgekit.{package.__name__.rpartition('.')[2]}")
    return found


@cache
def _installed() -> Any:
    """The entry points of all packages, which take a hundredth of a second to gather."""
    from importlib.metadata import entry_points

    return entry_points()


def find(package: ModuleType, kind: type[T], name: str, where: str) -> type[T]:
    """The class called `name`.

    Raises:
        ConfigError: there is none; the nearest name is suggested.
    """
    known = shipped_in(package, kind)
    if name in known:
        return known[name]
    # Others that are installed are not loaded, so that one that is broken is nobody else's trouble.
    installed = {entry.name: entry for entry in _entry_points(package)}
    if name not in installed:
        what = kind.__name__.lower()
        raise ConfigError(f"{where}: no {what} called {name!r}{did_you_mean(name, [*known, *installed])}")
    loaded = _loaded(installed[name])
    if not (isinstance(loaded, type) and issubclass(loaded, kind)):
        raise ConfigError(f"{where}: the installed {name!r} is not a {kind.__name__}")
    return loaded


def build(found: type[C], args: Mapping[str, Any], where: str) -> C:
    """A component with its arguments.

    Raises:
        ConfigError: wrong arguments.
    """
    try:
        return found(**args)
    except ValidationError as error:
        raise ConfigError(f"{where} ({found.name}): {first_problem(error)}") from None
