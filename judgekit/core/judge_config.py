"""The part of a config that names a judge: which wording, and whom it is asked of."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from judgekit.core.data_files import CodeName, ComponentName, Section
from judgekit.core.rubric_fields import Rubric


class PanelConfig(Section):
    """Several models that judge side by side, and how their verdicts become one."""

    models: Annotated[tuple[str, ...], Field(min_length=2, max_length=16)]
    """Keys in `models`, two or more, each once."""
    rule: Literal["median", "majority"] = "median"
    """`median`: the lower median of the verdicts. `majority`: passes (or is yes) if more than half do; the score is
    then the lower median of that side."""
    quorum: Annotated[int, Field(ge=1)] | None = None
    """Verdicts that a case needs at least; left out: more than half of the members."""

    @property
    def least(self) -> int:
        """The quorum in force."""
        return self.quorum or len(self.models) // 2 + 1

    @model_validator(mode="after")
    def _holds_together(self) -> "PanelConfig":
        if len(set(self.models)) != len(self.models):
            raise ValueError("a model is listed twice; two equal votes are one")
        if self.quorum is not None and self.quorum > len(self.models):
            raise ValueError(f"quorum is {self.quorum}, but there are only {len(self.models)} members")
        return self


class JudgeConfig(Rubric, Section):
    """One judge: which wording, asked of which model or of a panel of models; with `ask`, a judge of your own."""

    reference: Annotated[ComponentName, Field(pattern=r"\S", alias="name")]
    """A shipped judge, an installed one, one of your prompt files, `file:PATH.py:CLASS`, or with `ask` the name of your
    own."""
    prompt_version: str = "v1"
    model: str | None = None
    """Key in `models`; left out for a panel."""
    panel: PanelConfig | None = None
    """Ask several models instead of one."""
    scoring: Literal["written", "expected"] = "written"
    """`expected`: beside the written verdict, the one that its token probabilities give on average."""
    args: dict[str, Any] = {}
    """Arguments of the judge, such as {"pass_score": 4}."""

    @property
    def code(self) -> CodeName | None:
        """The Python file that it stands in."""
        return CodeName.of(self.reference)

    @property
    def name(self) -> str:
        """What everything calls the judge."""
        return self.reference if self.code is None else self.code.name

    @property
    def asked(self) -> tuple[str, ...]:
        """Keys of the models that are asked: one, or the members of the panel."""
        if self.panel is not None:
            return self.panel.models
        return () if self.model is None else (self.model,)

    @model_validator(mode="after")
    def _has_a_model_or_a_panel(self) -> "JudgeConfig":
        if (self.model is None) == (self.panel is None):
            raise ValueError('name either one "model" or a "panel" of several')
        if self.scoring == "expected" and self.panel is not None:
            raise ValueError('"scoring": "expected" is for one model; a panel has no token probabilities of its own')
        if "scoring" in self.args:
            raise ValueError("scoring belongs beside the name of the judge, not into args")
        return self
