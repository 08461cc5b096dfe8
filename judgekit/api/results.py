"""What Python gets back: a view of a run folder, read when it is asked for, and never a second store."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgekit.api.case_filter import parse_condition
from judgekit.core.conditions import GateResult
from judgekit.core.errors import ConfigError
from judgekit.core.runs import CaseRecord, Manifest, Notice, RunSummary
from judgekit.core.scores import Estimate, Score
from judgekit.reports.figures import coverage, gate_lines, interval_text, value_text
from judgekit.reports.headline import headline
from judgekit.reports.run_sentence import run_sentence, run_title
from judgekit.reports.safe_text import inert, printable, printable_line
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.stored_cases import StoredCases

if TYPE_CHECKING:
    import pandas as pd


class GatesMissed(AssertionError):
    """Gates that a run does not pass, one line for each."""

    def __init__(self, gates: Sequence[GateResult]) -> None:
        super().__init__("\n".join(gate.message for gate in gates))
        self.gates = tuple(gates)


@dataclass(frozen=True)
class Finding:
    """What a command found about stored runs: the text that it prints, and the document behind it."""

    text: str
    document: Mapping[str, Any]
    """As of the command's `--json`."""
    folder: Path | None = None
    """The run that it was written into; None if it was not written."""

    def __repr__(self) -> str:
        return printable(self.text)

    def _repr_html_(self) -> str:
        return f'<pre style="font-family: monospace; overflow-x: auto">{_safe(self.text)}</pre>'


class RunResult:
    """A run: its figures at hand, its cases, scores and failures read from the folder when they are asked for."""

    def __init__(self, folder: Path, summary: RunSummary) -> None:
        self.folder = folder.absolute()
        """The run folder."""
        self.summary = summary
        """Every figure, as in metrics.json."""

    @property
    def run_id(self) -> str:
        """Name of the folder."""
        return self.summary.run_id

    @property
    def status(self) -> str:
        """`complete`, or `interrupted` if it can be resumed."""
        return self.summary.status

    @cached_property
    def overall(self) -> Mapping[str, Estimate]:
        """The figures over all cases by name, the operational ones too; distributions are in `summary`."""
        return _estimates({**self.summary.overall, **self.summary.operational})

    @cached_property
    def slices(self) -> Mapping[str, Mapping[str, Mapping[str, Estimate]]]:
        """The figures by dimension and value, such as `slices["category"]["factual"]["groundedness"]`."""
        return {
            dimension: {value: _estimates(figures) for value, figures in values.items()}
            for dimension, values in self.summary.slices.items()
        }

    @property
    def gates(self) -> Sequence[GateResult]:
        """Gates of the config, and how they came out."""
        return self.summary.gates

    @property
    def warnings(self) -> Sequence[Notice]:
        """What a reader of the figures must know, each with a code and a message."""
        return self.summary.warnings

    @property
    def manifest(self) -> Manifest:
        """What the run is, and what it was made with."""
        return self._folder.manifest()

    @cached_property
    def scores(self) -> Sequence[Score]:
        """Every score of every case: a value, or the reason why there is none."""
        return list(self._folder.scores())

    def cases(self, condition: str | None = None) -> list[CaseRecord]:
        """The cases with output, scores and judgments.

        Args:
            condition: comparisons of scores with numbers, such as `groundedness < 3 and not correctness_pass = 1`; a
                score without a value meets none. Left out: all cases.

        Raises:
            ConfigError: it cannot be read, or names a score that there is none of.
        """
        with StoredCases(self._folder) as stored:
            if condition is None:
                return list(stored)
            met = parse_condition(condition, stored.score_names())
            return [record for record in stored if met({name: value for name, (value, _) in record.scores.items()})]

    @property
    def failures(self) -> list[tuple[str, str]]:
        """Each failure as a pair of the case id and what failed and how."""
        with StoredCases(self._folder) as stored:
            return [(record.case_id, failure) for record in stored for failure in record.failures]

    def to_pandas(self) -> "pd.DataFrame":
        """A row a case: id, question, answer, category, a column for each score, and what failed.

        Scores that apply to no case have no column.

        Raises:
            ConfigError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ConfigError("to_pandas takes pandas, which is not installed: pip install pandas") from None
        texts: dict[str, list[str | None]] = {name: [] for name in ("case_id", "question", "answer", "category")}
        failures: list[str | None] = []
        with StoredCases(self._folder) as stored:
            scores: dict[str, array[float]] = {name: array("d") for name in stored.score_names()}
            applies = set()
            for record in stored:
                case, output = record.case, record.output
                texts["case_id"].append(record.case_id)
                texts["question"].append(None if case is None else case.question)
                texts["answer"].append(None if output is None else output.answer)
                texts["category"].append(None if case is None else case.category)
                failures.append("; ".join(record.failures) or None)
                for name, column in scores.items():
                    value, reason = record.scores.get(name, (None, None))
                    column.append(nan if value is None else value)
                    if value is not None or (reason or "").startswith("failed: "):
                        applies.add(name)
        kept = {name: column for name, column in scores.items() if name in applies}
        return pd.DataFrame({**texts, **kept, "failure": failures})

    def compare(self, baseline: "RunResult | str | Path", *, allow_mismatch: bool = False) -> Finding:
        """This run beside an earlier one: differences with intervals, and what else changed.

        Args:
            baseline: the earlier run.
            allow_mismatch: compare although judge, wording, parser or data set differ.

        Raises:
            ConfigError: the runs cannot be compared; the message says what to do.
        """
        from judgekit.api.running import compare

        return compare(baseline, self, allow_mismatch=allow_mismatch)

    def assert_gates(self, *, undecided: bool = False) -> None:
        """Check the gates of the config.

        Args:
            undecided: whether a gate that too few cases decide is an error too.

        Raises:
            GatesMissed: one is missed; each line has the figure, its interval and n.
            ConfigError: the run has no gates, or is not complete.
        """
        if not self.summary.n_gates:
            raise ConfigError(f"{self.run_id}: the config has no gates; add some under `gates`")
        if self.status != "complete":
            raise ConfigError(f"{self.run_id}: is {self.status}, so its gates are not checked; resume it")
        missed = [gate for gate in self.gates if gate.fails or (undecided and gate.passed is None)]
        if missed:
            raise GatesMissed(missed)

    @property
    def _folder(self) -> RunFolder:
        return RunFolder.open(self.folder)

    def _lead(self) -> str:
        """The run in a sentence or two."""
        return f"{run_title(self.summary)}: {run_sentence(self.summary)}"

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        for name, figure in headline(self.summary):
            scale = self.summary.scales.get(name)
            yield name, value_text(figure, scale), interval_text(figure, scale), coverage(figure)

    def __repr__(self) -> str:
        rows = list(self._rows())
        width = max((len(name) for name, *_ in rows), default=0)
        lines = [f"  {name:<{width}}  {value:>8}  {ends:<16}  {cases}".rstrip() for name, value, ends, cases in rows]
        names = {name for name, *_ in rows}
        n_more = sum(figure.n + figure.n_error > 0 for name, figure in self.overall.items() if name not in names)
        rest = [f"{n_more} more in .overall"] if n_more > 0 else []
        rest += [f"{len(self.warnings)} warning{'s' * (len(self.warnings) > 1)} in .warnings"] if self.warnings else []
        more = [f"  and {', '.join(rest)}"] if rest else []
        return "\n".join(map(printable_line, [self._lead(), *lines, *more, f"  {self.folder}"]))

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{_safe(name)}</td><td><b>{_safe(value)}</b></td><td>{_safe(ends)}</td><td>{_safe(cases)}</td></tr>"
            for name, value, ends, cases in self._rows()
        )
        head = "<tr><th>figure</th><th>value</th><th>95% interval</th><th>cases</th></tr>"
        lines = gate_lines(self.summary) if self.summary.n_gates else []
        gates = "".join(f"<div>{_safe(line)}</div>" for _, line in lines)
        warned = "".join(f"<div>warning: {_safe(notice.message)}</div>" for notice in self.warnings[:3])
        place = _safe(str(self.folder))
        return f"<div><b>{_safe(self._lead())}</b><table>{head}{cells}</table>{gates}{warned}<code>{place}</code></div>"


def _safe(text: str) -> str:
    """A text for HTML."""
    return escape(inert(text))


def _estimates(figures: Mapping[str, Estimate | dict[str, int]]) -> dict[str, Estimate]:
    return {name: figure for name, figure in figures.items() if isinstance(figure, Estimate)}
