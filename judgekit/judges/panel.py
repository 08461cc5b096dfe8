"""A panel: the verdicts of several models on one question, made into one. Pure, so that it can be made again."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from judgekit.core.components import Judge
from judgekit.core.judge_config import PanelConfig
from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.core.kind import said_text

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

    Labels have no middle: the one that most members give decides, by either rule. Of equal ones it is one that fails.

    `majority`: the panel passes if more than half of the verdicts do (yes/no judges: are yes); its rating is the lower
    median of that side. Exactly half is a tie, and does not pass.

    Claims, quotes and the `inconsistent` mark are those of the first member whose rating is the panel's.

    Args:
        judge: its kind of verdict says what passes for `majority`; of a yes/no judge without a pass it is yes.
        panel: rule and quorum.
        ballots: what each member says.

    Returns:
        The verdict; a failure `panel_quorum` if fewer members than the quorum have one.

    Source: in-house.
    """
    kind = judge.kind
    given = {member: ballot for member, ballot in ballots.items() if isinstance(ballot, Verdict)}
    ratings = {member: value for member, ballot in given.items() if (value := kind.rating(ballot)) is not None}
    open_votes = [ballot for member, ballot in given.items() if member not in ratings and ballot.cannot_tell]
    if len(open_votes) >= panel.least and len(open_votes) > len(ratings):
        return Ruling(open_votes[0].model_copy(update={"reasoning": _votes(panel, ballots)}))
    if len(ratings) < panel.least:
        return Ruling(_below_quorum(panel, ballots))
    if not kind.is_ordered:
        decided, tie = _plurality(judge, given, ratings)
    elif panel.rule == "median":
        values = sorted(ratings.values())
        middle = (len(values) - 1) // 2
        decided, tie = values[middle], len(values) % 2 == 0 and values[middle] != values[middle + 1]
    else:
        passing = [member for member in ratings if kind.side(given[member])]
        tie = 2 * len(passing) == len(ratings)
        wins = 2 * len(passing) > len(ratings)
        side = sorted(value for member, value in ratings.items() if (member in passing) == wins)
        decided = side[(len(side) - 1) // 2]
    speaker = next(member for member, value in ratings.items() if value == decided)
    reasoning = f"{_votes(panel, ballots)}; everything else as {speaker} says"
    return Ruling(given[speaker].model_copy(update={"reasoning": reasoning}), tie)


def _plurality(judge: Judge, given: Mapping[str, Verdict], ratings: Mapping[str, float]) -> tuple[float, bool]:
    """The label that most members give; of equal ones the first, and one that fails before one that passes."""
    counts = Counter(ratings.values())
    most = max(counts.values())
    fails = {value: not judge.kind.passes(given[member]) for member, value in ratings.items()}
    tied = sorted((value for value, n in counts.items() if n == most), key=lambda value: (not fails[value], value))
    return tied[0], len(tied) > 1


def _votes(panel: PanelConfig, ballots: Ballots) -> str:
    shown = {member: _shown(ballot) for member, ballot in ballots.items()}
    return f"{panel.rule} of {', '.join(f'{member} {vote}' for member, vote in shown.items())}"


def _below_quorum(panel: PanelConfig, ballots: Ballots) -> JudgeFailure:
    failed = [f"{member}: {ballot.kind}" for member, ballot in ballots.items() if isinstance(ballot, JudgeFailure)]
    n_verdicts = len(ballots) - len(failed)
    return JudgeFailure(
        kind="panel_quorum",
        message=f"{n_verdicts} of {len(ballots)} members gave a verdict, {panel.least} are wanted; {', '.join(failed)}",
    )


def _shown(ballot: Verdict | JudgeFailure) -> str:
    return said_text(None if isinstance(ballot, JudgeFailure) else ballot.said)
