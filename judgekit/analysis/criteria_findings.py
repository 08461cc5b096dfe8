"""What the verdicts of a run say about the criteria themselves: which tell nothing, and which tell the same."""

from collections.abc import Sequence
from itertools import combinations

from judgekit.core.judgments import Verdict

FEWEST = 10
"""Cases below which nothing is said of a criterion."""


def criteria_warnings(judge: str, verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Criteria that never vary over a run, and those that repeat another one, as (code, message).

    A criterion that is always met, or never, cannot tell two answers apart. Of two that both vary and have the same
    answer in every case, one adds nothing but weight. What cannot be told is left out of both.

    Args:
        judge: name of the judge.
        verdicts: of a judge whose criteria are the same for every case.
    """
    rows = [{item.id: item.met for item in verdict.criteria or ()} for verdict in verdicts]
    names = dict.fromkeys(name for row in rows for name in row)
    found = []
    varying = []
    for name in names:
        told = [row[name] for row in rows if row.get(name) is not None]
        if len(told) < FEWEST:
            continue
        if len(set(told)) == 2:
            varying.append(name)
            continue
        always = "met" if told[0] else "not met"
        text = f"judge {judge}: criterion {name} is {always} in all {len(told)} cases, so it tells no answers apart"
        found.append(("criterion_constant", text))
    for first, second in combinations(varying, 2):
        both = [(row[first], row[second]) for row in rows if row.get(first) is not None and row.get(second) is not None]
        if len(both) >= FEWEST and all(a == b for a, b in both):
            text = f"judge {judge}: criteria {first} and {second} have the same answer in all {len(both)} cases"
            found.append(("criterion_repeats", f"{text}, so one of them only adds weight to the other"))
    return found
