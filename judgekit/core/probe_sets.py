"""Sets of probes of a run: what was asked, and where the answers stand."""

from typing import Any, Literal

from judgekit.core.scores import Frozen

PROBES = "probes.json"
"""File of the run folder that lists the sets of probes, oldest first, with what they found."""

PROBE_INPUTS = "probe_inputs.jsonl"
"""The changed judge inputs, one a line, so that they can be judged again."""

PROBE_JUDGMENTS = "probes.jsonl"
"""Judgments of probes, in the form of judgments.jsonl; apart from it, since no figure of the run rests on them."""

ORIGINAL = "original"
"""In the place of a probe's name: the unchanged input, where another model than the run's is probed."""


class ProbeSet(Frozen):
    """One set of probes of one judge: an entry of probes.json."""

    set: str
    """Its number; judgments of it carry `SET/PROBE` in `check`."""
    judge: str
    model_id: str
    model: str
    prompt_version: str
    prompt_sha256: str
    seed: int
    n_population: int
    """Judge inputs that the cases were drawn from."""
    case_ids: tuple[str, ...]
    probes: tuple[str, ...]
    originals: Literal["run", "asked"]
    """Where unchanged verdicts come from: judgments of the run, or the probed model, asked for the occasion."""
    from_cache: bool = False
    """Whether cached replies were used."""
    complete: bool = False
    wordings: dict[str, dict[str, Any]] = {}
    """Changed wordings by probe."""
    found: dict[str, Any] | None = None
    """What came out; None until it is complete."""

    def check(self, probe: str) -> str:
        """What judgments of a probe carry in `check`."""
        return f"{self.set}/{probe}"

    @property
    def wanted(self) -> dict[str, Any]:
        """What was asked for, without what came out: a set that was stopped is resumed if this is the same."""
        return self.model_dump(exclude={"set", "complete", "wordings", "found"})

    @property
    def is_unfinished(self) -> bool:
        """Whether something is left to ask: it was stopped, or calls got no reply."""
        return not self.complete or bool((self.found or {}).get("n_unanswered"))
