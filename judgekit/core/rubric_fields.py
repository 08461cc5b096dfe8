"""A judge as data: its question, its kind of verdict, and what it is shown. In a config, or in a prompt file."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from judgekit.core.cases import Criterion
from judgekit.core.errors import did_you_mean
from judgekit.core.judgments import CANNOT_TELL
from judgekit.core.reply_values import folded_word
from judgekit.core.verdict_kinds import Criteria, Kind, Labels, Preference, Scale, YesNo

_KINDS = ("scale", "yes_no", "labels", "criteria", "preference")
"""Fields that say what a verdict is."""

SHOWN = ("question", "answer", "passages", "references", "key_facts", "citations", "conversation")
"""What a judge can be shown, beside `metadata.NAME` of case or output."""

LONGEST_ASK = 20_000
"""Characters of a question to a judge, and of what a level, label or criterion means; more does not fit beside what is
judged."""

_FIGURE_WORDS = frozenset(
    {"pass", "pass_rate", CANNOT_TELL, "cannot_tell", "cannot_tell_rate", "coverage", "distribution", "expected"}
)
"""What follows the name of a judge in names of other figures and gates; no label or criterion may be called so."""

_LOOK_ALIKE = str.maketrans(
    "АВЕКМНОРСТУХІЈЅаеорсухіјѕһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧανιορτυχ",
    "ABEKMHOPCTYXIJSaeopcyxijshdqwABEZHIKMNOPTYXavioptux",
)
"""Letters of Cyrillic and Greek that look like Latin ones."""

CriteriaOf = Literal["case", "passages", "statements"]
"""Where criteria come from that are not the same for every case."""

_METADATA = re.compile(r"metadata\.[^\s{}]{1,80}")
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_LABEL = re.compile(r"[^\x00-\x1f\x7f-\x9f\"{}<>@]{1,60}")


class YesNoFields(BaseModel):
    """What a yes/no judge says beside its question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    passing: Literal["yes", "no", True, False] | None = Field(default=None, alias="pass")
    """The answer that passes; left out, neither is good or bad."""


class Rubric(BaseModel):
    """The fields that make a judge: `ask` is the question; scale, yes_no, labels, criteria or preference its kind."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True, use_attribute_docstrings=True
    )

    ask: Annotated[str, Field(min_length=1, max_length=LONGEST_ASK, pattern=r"\S")] | None = None
    """The question that the judge answers about each case; it makes this a judge of your own."""
    scale: Annotated[tuple[int, int], Field()] | None = None
    """Lowest and highest score, such as [1, 5]; scores are whole numbers."""
    levels: dict[int, str] | None = None
    """What a score means, for some or all of them, such as {"1": "rude", "5": "warm"}."""
    yes_no: YesNoFields | Literal[True] | None = None
    """Yes or no: true, or {"pass": "no"} to say which answer passes."""
    labels: dict[str, str] | None = None
    """Labels and what each means, such as {"on": "fits the brand", "off": "does not"}; they have no order."""
    criteria: tuple[Criterion, ...] | dict[str, str] | CriteriaOf | None = None
    """Criteria that are met or not: {"id": "text"}, or [{"id", "text", "weight"}]. `case`: each case brings its own;
    `passages`: each passage is one; `statements`: each key fact is one, or each sentence of the first reference."""
    calls: Literal["one", "each"] | None = None
    """Ask about all criteria in one call (left out), or about each in a call of its own."""
    preference: Literal[True] | None = None
    """Which of two answers is better; every pair is asked in both orders. `judgekit prefer` compares runs by it."""
    passing: int | float | tuple[str, ...] | str | None = Field(default=None, alias="pass")
    """What passes: the lowest score, the labels, or the lowest share of criteria."""
    cannot_tell: bool | None = None
    """Let the judge say that it cannot tell; such cases are counted, and are neither scores nor failures."""
    tolerance: Annotated[float, Field(ge=0)] | None = None
    """Two scores (or shares of criteria) further apart than this disagree; left out: 1 point (or 0.2)."""
    sees: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """What the judge is shown: question, answer, passages, references, key_facts, citations, conversation, and
    metadata.NAME; left out: question and answer."""
    top_k: Annotated[int, Field(ge=1)] | None = None
    """Passages shown to the judge, best rank first; left out: 10."""

    @property
    def is_given(self) -> bool:
        """Whether this says what a judge is."""
        return self.ask is not None

    @property
    def fields(self) -> dict[str, Any]:
        """What is set of the fields."""
        return {name: value for name in Rubric.model_fields if (value := getattr(self, name)) is not None}

    @property
    def shown(self) -> tuple[str, ...]:
        """What the judge is shown."""
        return self.sees or ("question", "answer")

    @property
    def rubric(self) -> "Rubric":
        """The rubric alone, without what stands beside it in a config or a prompt file."""
        return Rubric(**self.fields)

    @property
    def kind(self) -> Kind:
        """The kind of verdict.

        Raises:
            ValueError: nothing says what it is, or what passes does not fit it.
        """
        tell = bool(self.cannot_tell)
        if self.scale is not None:
            low, high = self.scale
            points = {} if self.tolerance is None else {"tolerance": self.tolerance}
            return Scale(low=low, high=high, pass_score=self._pass_score(), cannot_tell=tell, **points)
        if self.labels is not None:
            return Labels(labels=tuple(self.labels), passing=self._pass_labels(self.labels), cannot_tell=tell)
        if self.criteria is not None:
            share: dict[str, Any] = {} if self.tolerance is None else {"tolerance": self.tolerance}
            return Criteria(
                criteria=self.fixed_criteria,
                ranked=self.criteria == "passages",
                each=self.calls == "each",
                pass_share=self._pass_share(),
                cannot_tell=tell,
                **share,
            )
        if self.yes_no is not None:
            return YesNo(passing=self._pass_answer(self.yes_no), cannot_tell=tell)
        if self.preference is not None:
            self._check_preference()
            return Preference()
        raise ValueError("say what a verdict is: scale, yes_no, labels, criteria or preference")

    @property
    def fixed_criteria(self) -> tuple[Criterion, ...]:
        """The criteria that are the same for every case."""
        if isinstance(self.criteria, dict):
            return tuple(Criterion(id=name, text=text) for name, text in self.criteria.items())
        return self.criteria if isinstance(self.criteria, tuple) else ()

    @property
    def values(self) -> dict[str, Any]:
        """What a wording takes of the rubric, the same for every case."""
        found: dict[str, Any] = {"ask": self.ask, "kind": self.kind.kind, "cannot_tell": bool(self.cannot_tell)}
        if self.scale is not None:
            found |= {"low": self.scale[0], "high": self.scale[1]}
        levels: Mapping[Any, str] = self.levels or self.labels or {}
        ordered = sorted(levels.items(), reverse=True) if self.scale is not None else levels.items()
        return {**found, "levels": [{"name": str(name), "text": text} for name, text in ordered]}

    @field_validator("ask")
    @classmethod
    def _holds_no_template(cls, value: str | None) -> str | None:
        return None if value is None else _plain("ask", value)

    @field_validator("sees")
    @classmethod
    def _names_what_there_is(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in value or ():
            if name not in SHOWN and not _METADATA.fullmatch(name):
                raise ValueError(f"a judge cannot be shown {name!r}{did_you_mean(name, [*SHOWN, 'metadata.NAME'])}")
        if value is not None and len(set(value)) != len(value):
            raise ValueError("something is listed twice")
        return value

    @model_validator(mode="after")
    def _holds_together(self) -> "Rubric":
        kinds = [name for name in _KINDS if getattr(self, name) is not None]
        if self.ask is None:
            stray = next((name for name in (*Rubric.model_fields,) if getattr(self, name) is not None), None)
            if stray is not None:
                raise ValueError(f'{_alias(stray)} is for a judge of your own; give its question in "ask"')
            return self
        if len(kinds) > 1:
            raise ValueError(f"{' and '.join(kinds)} are two kinds of verdict; keep one")
        self._check_scale()
        self._check_labels()
        self._check_criteria()
        _ = self.kind
        return self

    def _check_scale(self) -> None:
        if self.scale is None:
            if self.levels is not None:
                raise ValueError("levels belong to a scale; labels carry their own texts")
            return
        low, high = self.scale
        if low >= high:
            raise ValueError(f"scale: {low} to {high} has no two points; write the lowest score first")
        if high - low > 1000:
            raise ValueError(f"scale: {low} to {high} has more than 1001 points, which no judge tells apart")
        for score, text in (self.levels or {}).items():
            if not low <= score <= high:
                raise ValueError(f"levels: {score} is off the scale of {low} to {high}")
            _plain(f"levels.{score}", text)

    def _check_labels(self) -> None:
        if self.labels is None:
            return
        if len(self.labels) < 2:
            raise ValueError("labels: one label says nothing; give two or more")
        folded: dict[str, str] = {}
        looks: dict[str, str] = {}
        for label, text in self.labels.items():
            key = folded_word(label)
            if key.rpartition(".")[2] in _FIGURE_WORDS:
                hint = '; "cannot_tell": true adds that' if key == CANNOT_TELL else "; choose another label"
                raise ValueError(f"labels: {label[:60]!r} cannot be a label, since another figure is called so{hint}")
            if not _LABEL.fullmatch(label) or not label.isprintable() or label != label.strip():
                raise ValueError(
                    f"labels: {label[:60]!r} cannot be a label; use up to 60 characters that can be seen, without "
                    "quotes, braces, <, > or @"
                )
            if key in folded:
                raise ValueError(
                    f"labels: {folded[key]!r} and {label!r} differ by case only, or by width or quotes, "
                    "so replies mix them up"
                )
            folded[key] = label
            twin = looks.setdefault(folded_word(label.translate(_LOOK_ALIKE)), label)
            if twin != label:
                raise ValueError(f"labels: {twin!a} and {label!a} look alike, so nobody can tell them apart")
            _plain(f"labels.{label}", text)

    def _check_criteria(self) -> None:
        if self.calls is not None and self.criteria is None:
            raise ValueError("calls is for criteria; every other verdict is asked for in one call")
        if self.criteria is not None and not isinstance(self.criteria, str):
            check_criteria(self.fixed_criteria)

    def _check_preference(self) -> None:
        if self.passing is not None:
            raise ValueError("pass: a preference neither passes nor fails; gate NAME.win_rate instead")
        if self.cannot_tell:
            raise ValueError("cannot_tell: a judge of preference says tie; leave it out")
        if self.tolerance is not None:
            raise ValueError("tolerance: preferences are equal or not; leave it out")
        if "answer" not in self.shown:
            raise ValueError('sees: a preference is between two answers, so name "answer" too')

    def _pass_score(self) -> int | None:
        if self.passing is None or self.scale is None:
            return None
        low, high = self.scale
        if isinstance(self.passing, bool) or not isinstance(self.passing, int) or not low < self.passing <= high:
            raise ValueError(f"pass: expected a score above {low} and up to {high}, found {self.passing!r}")
        return self.passing

    def _pass_labels(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        if self.passing is None:
            return ()
        wanted = (self.passing,) if isinstance(self.passing, str) else self.passing
        if not isinstance(wanted, tuple) or not wanted:
            raise ValueError(f"pass: expected a list of labels, found {self.passing!r}")
        for label in wanted:
            if label not in labels:
                raise ValueError(f"pass: no label called {label!r}{did_you_mean(label, labels)}")
        if set(wanted) == set(labels):
            raise ValueError("pass: every label passes, so passing says nothing")
        return wanted

    def _pass_share(self) -> float | None:
        if self.passing is None:
            return None
        if isinstance(self.passing, bool | str | tuple) or not 0 < self.passing <= 1:
            raise ValueError(f"pass: expected a share of criteria above 0 and up to 1, found {self.passing!r}")
        return float(self.passing)

    def _pass_answer(self, fields: YesNoFields | Literal[True]) -> bool | None:
        given = [value for value in (self.passing, None if fields is True else fields.passing) if value is not None]
        if not given:
            return None
        if (
            len(given) > 1
            or given[0] not in ("yes", "no", True, False)
            or isinstance(given[0], int) != isinstance(given[0], bool)
        ):
            raise ValueError(f'pass: expected "yes" or "no" once, found {given[0]!r}')
        return given[0] in ("yes", True)


def check_criteria(criteria: tuple[Criterion, ...]) -> None:
    """Check what a single criterion cannot know.

    Raises:
        ValueError: there is none, an id comes twice, or nothing with a positive weight could be met.
    """
    if not criteria:
        raise ValueError("criteria: there is none")
    seen: set[str] = set()
    for item in criteria:
        if item.id.casefold() in seen:
            raise ValueError(f"criteria: id {item.id!r} comes twice")
        if item.id.casefold() in _FIGURE_WORDS:
            raise ValueError(f"criteria: {item.id!r} is the name of another figure; choose another id")
        if not item.weight:
            raise ValueError(f"criteria: {item.id!r} has weight 0, so it would change nothing")
        seen.add(item.id.casefold())
        _plain(f"criteria.{item.id}", item.text)
    if not any(item.weight > 0 for item in criteria):
        raise ValueError("criteria: no weight is above 0, so the score could only be 0")
    if not math.fsum(item.weight for item in criteria):
        raise ValueError("criteria: the weights sum to 0, so the faults undo everything; give them less weight")


def _plain(where: str, text: str) -> str:
    """The text, if it holds no template and is not too long.

    Raises:
        ValueError: it holds a template, which nothing would fill in, or does not fit beside what is judged.
    """
    if len(text) > LONGEST_ASK:
        raise ValueError(f"{where}: expected at most {LONGEST_ASK} characters, found {len(text)}")
    found = _JINJA.search(text)
    if found is not None:
        raise ValueError(
            f'{where}: {found[0][:40]} is not filled in here; name what the judge is shown in "sees", '
            "or write a prompt file for a wording of your own"
        )
    return text


def _alias(name: str) -> str:
    return "pass" if name == "passing" else name
