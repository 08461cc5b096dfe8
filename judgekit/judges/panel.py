"""A panel: the verdicts of several models on one question, made into one. Pure, so that it can be made again."""

from collections.abc import Mapping
from dataclasses import dataclass

from judgekit.core.components import Judge
from judgekit.core.config import PanelConfig
from judgekit.core.judgments import JudgeFailure, Verdict

Ballots = Mapping[str, Verdict | JudgeFailure]
"""What each member says of one case, by key of its model, in the order of the config."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a panel says of one case."""

    outcome: Verdict | JudgeFailure
    tie: bool = False
    """An even number of verdicts has no middle, so the lower one decided."""


def panel_ruling(judge: Judge, panel: PanelConfig, ballots: Ballots) -> Ruling:
    """The verdict of a panel, by its rule.

    `median`: the lower median of the ratings (yes is 1, no is 0), which for an odd number is the median. It is a tie
    if the two middle ratings differ; the lower one decides, so that doubt never helps to pass.

    `majority`: the panel passes if more than half of the verdicts do (yes/no judges: are yes); its rating is the lower
    median of that side. Exactly half is a tie, and does not pass.

    Claims, quotes and the `inconsistent` mark are those of the first member whose rating is the panel's.

    Args:
        judge: its `pass_score` is the limit of `majority`; a judge without one passes from 1, which is yes.
        panel: rule and quorum.
        ballots: what each member says.

    Returns:
        The verdict; a failure `panel_quorum` if fewer members than the quorum have one.

    Source: in-house.
    """
    rated = {member: ballot for member, ballot in ballots.items() if isinstance(ballot, Verdict)}
    ratings = {member: value for member, ballot in rated.items() if (value := ballot.rating) is not None}
    if len(ratings) < panel.least:
        return Ruling(_below_quorum(panel, ballots))
    values = sorted(ratings.values())
    middle = (len(values) - 1) // 2
    is_even = len(values) % 2 == 0
    if panel.rule == "median":
        decided, tie = values[middle], is_even and values[middle] != values[middle + 1]
    else:
        limit = getattr(judge, "pass_score", 1)
        n_passing = sum(value >= limit for value in values)
        tie = 2 * n_passing == len(values)
        side = [value for value in values if (value >= limit) == (2 * n_passing > len(values))]
        decided = side[(len(side) - 1) // 2]
    speaker = next(member for member, value in ratings.items() if value == decided)
    votes = ", ".join(f"{member} {_shown(rated[member]) if member in ratings else 'none'}" for member in ballots)
    reasoning = f"{panel.rule} of {votes}; everything else as {speaker} says"
    return Ruling(rated[speaker].model_copy(update={"reasoning": reasoning}), tie)


def _below_quorum(panel: PanelConfig, ballots: Ballots) -> JudgeFailure:
    failed = [f"{member}: {ballot.kind}" for member, ballot in ballots.items() if isinstance(ballot, JudgeFailure)]
    n_verdicts = len(ballots) - len(failed)
    return JudgeFailure(
        kind="panel_quorum",
        message=f"{n_verdicts} of {len(ballots)} members gave a verdict, {panel.least} are wanted; {', '.join(failed)}",
    )


def _shown(verdict: Verdict) -> str:
    if verdict.score is not None:
        return str(verdict.score)
    return "yes" if verdict.answer else "no"
