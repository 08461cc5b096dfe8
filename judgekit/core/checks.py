"""Spot checks of a run: what was drawn, who was asked, and where the answers stand."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

CHECKS = "checks.json"
"""File of the run folder that lists the spot checks of a run, oldest first."""

RUN_CHECK = "run"
"""`check` of the second opinion that `judgekit run` asks for; checks that are added to the run are numbered."""

RUN_REPEAT = "again"
"""`check` of the judgments for which `judgekit run` asks the same judge again about verdicts older than a day."""

RUN_CHECKS = frozenset({RUN_CHECK, RUN_REPEAT})
"""The checks that a run makes itself."""

DESIGN = "simple random sample without replacement"

CheckKind = Literal["model", "prompt", "model and prompt", "repeat"]
"""How the second opinion differs from the judge: by its model, its wording, both, or not at all."""


class CheckRecord(BaseModel):
    """One spot check of one judge: an entry of checks.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: str
    """Its name; judgments of it carry the same in `check`."""
    judge: str
    kind: CheckKind
    model_id: str
    """Key of the second model in the config."""
    model: str
    prompt_version: str
    prompt_sha256: str
    seed: int
    n_population: int
    """Judge inputs of this judge that the sample was drawn from."""
    case_ids: tuple[str, ...]
    """The sample, in the order in which it is listed."""
    threshold: float
    adaptive: bool = False
    """The sample grew until the check was decided; `n_start` and `seed` say what it grew from."""
    n_start: int = 0
    """Cases asked for; an adaptive check begins with these."""
    complete: bool = False
    """Every case of the sample was asked; others are left out of the figures."""

    @property
    def comparator(self) -> tuple[str, str, str, str]:
        """What was compared with what: of two checks with the same, the later one counts."""
        return self.judge, self.kind, self.model_id, self.prompt_sha256
