"""What a judge was asked, and how often it gave each of the answers that it may give: in report.html and summary.md."""

from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.core.kind import Kind
from judgekit.core.prompts import PromptTemplate
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.reports.charts import share_bar
from judgekit.reports.figures import interval, number

MOST_ANSWERS = 40
"""Scores, labels or criteria that are listed for each judge."""

MOST_ASKED = 300
"""Characters of a question in one line."""

_FROM_THE_CASE = {
    "case": "each case brings its own",
    "passages": "each passage is one",
    "statements": "each key fact is one, or each sentence of the first reference",
}

Wordings = Mapping[str, PromptTemplate]
"""By `judge/version`."""


def rubrics_of(summary: RunSummary, prompts: Wordings) -> dict[str, PromptTemplate]:
    """By judge the wording of the run that says what the judge is; judges in Python have none."""
    named = {name: prompts.get(f"{name}/{about.get('prompt_version')}") for name, about in summary.judges.items()}
    return {name: prompt for name, prompt in named.items() if prompt is not None and prompt.is_given}


def kinds_of(summary: RunSummary, prompts: Wordings) -> dict[str, Kind]:
    """By judge its kind of verdict, where the wording says it."""
    return {name: prompt.kind for name, prompt in rubrics_of(summary, prompts).items()}


def question_lines(summary: RunSummary, prompts: Wordings) -> list[str]:
    """What each judge that is data was asked, what a verdict may be, and what passes: a line of foreign text each."""

    def line(name: str, prompt: PromptTemplate) -> str:
        kind, ask = prompt.kind, " ".join((prompt.ask or "").split())
        short = ask if len(ask) <= MOST_ASKED else f"{ask[:MOST_ASKED]}..."
        passes = f"; passes: {kind.pass_words}" if kind.pass_words else ""
        return f"{name}: {short} ({kind.about}{passes})"

    return [line(name, prompt) for name, prompt in rubrics_of(summary, prompts).items()]


def question_part(name: str, summary: RunSummary, prompt: PromptTemplate | None) -> dict[str, Any] | None:
    """The question of a judge, what a verdict may be and mean, and how often it was given; None without a question."""
    if prompt is None:
        return None
    kind = prompt.kind
    rows = list(_answers(name, summary, prompt))
    return {
        "ask": prompt.ask,
        "facts": [
            ("a verdict is", kind.about),
            *([("criteria", _FROM_THE_CASE[prompt.criteria])] if isinstance(prompt.criteria, str) else []),
            ("passes", kind.pass_words or "nothing passes or fails"),
            *([("may say", "that it cannot tell")] if kind.cannot_tell else []),
            ("is shown", ", ".join(prompt.shown)),
        ],
        "unit": kind.unit[0],
        "rows": rows[:MOST_ANSWERS],
        "n_more": max(0, len(rows) - MOST_ANSWERS),
        "weighed": any(row["weight"] for row in rows),
    }


def _answers(name: str, summary: RunSummary, prompt: PromptTemplate) -> Iterator[dict[str, Any]]:
    weights = {item.id: item.weight for item in prompt.fixed_criteria}
    texts = {**(prompt.labels or {}), **{item.id: item.text for item in prompt.fixed_criteria}}
    differ = any(weight != 1 for weight in weights.values())
    for part, text in texts.items():
        weight = f"{weights[part]:g}" if differ and part in weights else ""
        yield _row(part, text, weight, summary.overall.get(f"{name}.{part}"))
    if texts and prompt.cannot_tell:
        yield _row("cannot tell", "", "", summary.overall.get(f"{name}.cannot_tell_rate"))
    yield from _scores(prompt.levels or {}, summary.overall.get(f"{name}.distribution"))


def _scores(levels: Mapping[int, str], counts: Any) -> Iterator[dict[str, Any]]:
    """A row for each score that means something, or was given."""
    given = {int(key): n for key, n in counts.items() if _is_whole(key)} if isinstance(counts, dict) else {}
    total = sum(given.values())
    for score in sorted(levels.keys() | given.keys()) if levels else ():
        n = given.get(score, 0)
        share = n / total if total else None
        yield {
            "name": str(score),
            "text": levels.get(score, ""),
            "weight": "",
            "value": number(share),
            "bar": share_bar(share, (None, None)),
            "interval": "",
            "n": f"{n} of {total}",
        }


def _is_whole(key: str) -> bool:
    return key.removeprefix("-").isdigit()


def _row(part: str, text: str, weight: str, figure: Any) -> dict[str, Any]:
    found = {"name": part, "text": text, "weight": weight, "value": "n/a", "bar": "", "interval": "", "n": ""}
    if not isinstance(figure, Estimate):
        return found
    bar = share_bar(figure.value, (figure.low, figure.high))
    return found | {"value": number(figure.value), "bar": bar, "interval": interval(figure), "n": str(figure.n)}
