"""The page on which people label cases, and what its script is told: never anything that a judge said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.core.human_labels import HumanLabel, LabelItem
from judgekit.core.kind import Kind
from judgekit.reports.label_text import choices, titled_texts
from judgekit.reports.pages import render
from judgekit.reports.safe_text import inert

LONGEST = "Passages"
"""Stands last on the page, so that question, references and answer stand together."""


@dataclass(frozen=True)
class LabelPage:
    """What stands on the page whatever case is shown."""

    run_id: str
    judge: str
    ask: str
    """The question that the judge is asked, of a judge that is data."""
    rubric: str
    kind: Kind
    meanings: Mapping[str, str]

    def html(self, annotator: str) -> str:
        """The page; `annotator`: who labels unless another name is chosen."""
        context = {
            "title": f"Label {self.judge}",
            "run_id": self.run_id,
            "judge": self.judge,
            "rubric": self.rubric,
            "annotator": annotator,
        }
        return "".join(render("label.html", context, "label.js"))

    def case(self, item: LabelItem, given: HumanLabel | None) -> dict[str, Any]:
        """A case as the script is told of it, with what this person said of it before."""
        value = None if given is None else given.value
        asked = [(one.id, one.text) for one in item.criteria] or [("", self.ask)]
        values = [value.get(name) if isinstance(value, dict) else value for name, _ in asked]
        return {
            "key": item.key,
            "id": inert(item.case_id),
            "shown": sorted(
                ({"title": inert(title), "texts": [*map(inert, texts)]} for title, texts in titled_texts(item)),
                key=lambda part: part["title"] == LONGEST,
            ),
            "questions": [self._question(name, text, said) for (name, text), said in zip(asked, values, strict=True)],
            "given": None if given is None else label_words(given),
            "comment": "" if given is None else inert(given.comment),
        }

    def _question(self, name: str, text: str, said: object) -> dict[str, Any]:
        """What is asked of a case, or of one criterion, and how it can be answered."""
        said = {True: "yes", False: "no"}[said] if isinstance(said, bool) else said
        offered = choices(self.kind, self.meanings)
        is_listed = self.kind.has_parts or self.kind.is_nominal or not self.kind.has_points
        is_typed = not is_listed and not any(isinstance(item.value, int) for item in offered)
        chosen = next((item.typed for item in offered if item.value == said), None)
        return {
            "name": inert(name),
            "text": inert(text),
            "choices": [
                {"typed": item.typed, "name": inert(item.name), "meaning": inert(item.meaning)} for item in offered
            ],
            "bounds": list(self.kind.category_bounds) if is_typed else None,
            "chosen": str(said) if is_typed and isinstance(said, int) else chosen,
        }


def label_words(label: HumanLabel) -> str:
    """A label in words."""
    value = label.value
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_word(met)}" for name, met in value.items())
    return _word(value)


def _word(value: object) -> str:
    return inert({True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value))


def known_names(labels: Sequence[HumanLabel], annotator: str) -> list[str]:
    """Names to choose from."""
    return [inert(name) for name in sorted({annotator, *(label.annotator for label in labels)})]
