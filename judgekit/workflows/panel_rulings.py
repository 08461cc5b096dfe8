"""Panels in a run: the verdict of each case is made of its members' judgments, and kept as a judgment of its own."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.analysis.verdict_pairs import panel_record
from judgekit.core.components import Judge
from judgekit.core.judge_config import PanelConfig
from judgekit.core.judgments import JudgeFailure, Judgment, JudgmentKey, Verdict
from judgekit.engine.model_runtime import ModelRuntime
from judgekit.engine.requests import JudgePlan
from judgekit.judges.panel import panel_ruling
from judgekit.workflows.judge_reliability import opinion

PANEL = "panel"
"""`model_id` and `provider` of a judgment that a panel made."""


@dataclass(frozen=True)
class Panel:
    """One judge that several models play."""

    judge: Judge
    config: PanelConfig
    members: Sequence[JudgePlan]

    @property
    def title(self) -> str:
        """`median of a, b, c`."""
        return f"{self.config.rule} of {', '.join(self.config.models)}"


Asked = dict[str, dict[str, Judgment]]
"""By case and member, the judgment that counts."""


def asked_members(panel: Panel, judgments: Mapping[JudgmentKey, Judgment]) -> Asked:
    """The members' judgments of every case, members in the order of the config."""
    found: Asked = {}
    for key, judgment in judgments.items():
        if key.role == "member" and key.judge == panel.judge.name and key.member in panel.config.models:
            found.setdefault(key.case_id, {})[str(key.member)] = judgment
    order = panel.config.models
    return {
        case_id: {member: ballots[member] for member in order if member in ballots}
        for case_id, ballots in found.items()
    }


def rule(panel: Panel, judgments: Mapping[JudgmentKey, Judgment]) -> Iterator[Judgment]:
    """The panel's judgments of all cases that every member has been asked about.

    A case with a member still to come is left out: its verdict could change.
    """
    for case_id, ballots in asked_members(panel, judgments).items():
        if len(ballots) < len(panel.config.models):
            continue
        ruling = panel_ruling(panel.judge, panel.config, {member: opinion(item) for member, item in ballots.items()})
        verdict = ruling.outcome if isinstance(ruling.outcome, Verdict) else None
        first = next(iter(ballots.values()))
        flags: tuple[str, ...] = ("tie",) if ruling.tie else ()
        if verdict is not None:
            flags += (("inconsistent",) if verdict.inconsistent else ()) + verdict.quote_flags
        yield Judgment(
            case_id=case_id,
            judge=panel.judge.name,
            role="primary",
            prompt_version=first.prompt_version,
            prompt_sha256=first.prompt_sha256,
            input_sha256=first.input_sha256,
            model_id=PANEL,
            provider=PANEL,
            model=panel.title,
            key="",
            parameters={},
            temperature_accepted=all(item.temperature_accepted for item in ballots.values()),
            verdict=verdict,
            failure=ruling.outcome if isinstance(ruling.outcome, JudgeFailure) else None,
            parser_version=first.parser_version,
            flags=flags,
            created_at=max(item.created_at for item in ballots.values()),
        )


def says_the_same(old: Judgment | None, new: Judgment) -> bool:
    """Whether a panel's judgment is stored already; reasoning aside, which readers of many judgments leave out."""
    if old is None:
        return False
    return _said(old) == _said(new)


def _said(judgment: Judgment) -> dict[str, Any]:
    verdict = judgment.verdict and judgment.verdict.model_copy(update={"reasoning": ""})
    return {"verdict": verdict, "failure": judgment.failure, "flags": judgment.flags, "model": judgment.model}


def record_of_panel(panel: Panel, judgments: Mapping[JudgmentKey, Judgment]) -> dict[str, Any]:
    """What metrics.json says of a panel, beside what it says of every judge."""
    asked = asked_members(panel, judgments)
    own = [item for key, item in judgments.items() if key.role == "primary" and key.judge == panel.judge.name]
    rulings = {
        "n_ties": sum("tie" in item.flags for item in own),
        "n_below_quorum": sum(item.failure is not None and item.failure.kind == "panel_quorum" for item in own),
    }
    opinions = [{member: opinion(item) for member, item in ballots.items()} for ballots in asked.values()]
    members = panel.config.models
    return {
        "rule": panel.config.rule,
        "quorum": panel.config.least,
        "members": {plan.runtime.model_id: model_facts(plan.runtime) for plan in panel.members},
        **panel_record(members, opinions, rulings, panel.judge.kind),
    }


def model_facts(runtime: ModelRuntime) -> dict[str, Any]:
    """What metrics.json says of the model of a judge or of a member."""
    return {
        "model": runtime.config.model,
        "provider": runtime.config.provider,
        "build_hash": runtime.build_hash(),
        "is_llm": runtime.provider.is_llm,
        "note": runtime.provider.note,
    }


def member_failures(panel: Panel, judgments: Mapping[JudgmentKey, Judgment]) -> list[tuple[str, str]]:
    """A warning where calls to members gave no verdict, as (code, message); the panel may have one all the same."""
    failed = Counter(
        member
        for ballots in asked_members(panel, judgments).values()
        for member, item in ballots.items()
        if item.failure is not None
    )
    if not failed:
        return []
    who = ", ".join(f"{member} {failed[member]}" for member in panel.config.models if failed[member])
    text = f"panel {panel.judge.name}: {failed.total()} calls to members gave no verdict ({who})"
    return [("panel_member_failures", text)]
