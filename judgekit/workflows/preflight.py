"""What is checked of outputs and judges before any call, by every command that would make calls."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from judgekit.core.cases import SystemOutput
from judgekit.core.components import Judge
from judgekit.core.errors import ConfigError, InputError
from judgekit.core.scores import Failed, NotApplicable
from judgekit.judges.passages import ABSTAINED, NO_TEXT


def one_version(configured: Mapping[str, str], outputs: Sequence[SystemOutput]) -> dict[str, str]:
    """The versions of the system under test, from the config or else from the outputs.

    Raises:
        InputError: outputs name two versions of one thing.
    """
    found = dict(configured)
    for output in outputs:
        for name, value in output.versions.items():
            if name not in configured and found.setdefault(name, value) != value:
                raise InputError(
                    f"outputs name two versions of {name}: {found[name]!r} and {value!r} (case {output.case_id!r}); "
                    'a run is of one system, set it in the config\'s "versions" if they mean the same'
                )
    return found


def check_applies(
    judge: Judge, reasons: Mapping[str, NotApplicable | Failed], outputs: Sequence[SystemOutput]
) -> list[tuple[str, str]]:
    """Refuse a judge that applies to no case, since the config or the data then miss something.

    A system that failed on cases, retrieved nothing or abstained is not a reason to refuse: that is what the run shows.
    Nor is a judge that only fills gaps: in the first cases of a file, or in a shard, there may be none.

    Returns:
        Warnings, as (code, message).

    Raises:
        ConfigError: says why, with counts.
    """
    n_cases = len(outputs)
    if len(reasons) < n_cases or any(isinstance(reason, Failed) for reason in reasons.values()):
        return []
    counts = Counter(reason.reason for reason in reasons.values() if isinstance(reason, NotApplicable))
    why = ", ".join(f"{reason} ({n})" for reason, n in counts.most_common(5))
    text = f"judge {judge.name} applies to none of {n_cases} cases: {why}"
    if judge.fills_gaps or _is_of_the_system(reasons.values(), outputs):
        return [("judge_not_asked", text)]
    raise ConfigError(text)


def _is_of_the_system(reasons: Collection[NotApplicable | Failed], outputs: Sequence[SystemOutput]) -> bool:
    """Whether the system is why nothing is judged, and no field is missing: hits that all lack a text miss one."""
    if not reasons or any(reason not in (ABSTAINED, NO_TEXT) for reason in reasons):
        return False
    hits = [hit for output in outputs for hit in output.retrieved]
    return NO_TEXT not in reasons or not hits or any(hit.text is not None for hit in hits)
