"""Bradley-Terry strengths of players that are compared in pairs, with errors that allow for clusters."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judgekit.stats.distributions import UPPER, student_t_quantile

_MOST_STEPS = 100
_SMALL = 1e-12


class Match(NamedTuple):
    """One comparison of two players."""

    first: int
    second: int
    won: float
    """1.0: the first won; 0.0: the second won; 0.5: a tie."""


@dataclass(frozen=True)
class Strength:
    """How strong one player is, on the scale of log-odds."""

    value: float
    """Log-odds against an average player: all strengths sum to 0."""
    standard_error: float | None
    """None for fewer than two clusters."""
    low: float | None
    """Lower end of the 95% interval; None with the standard error."""
    high: float | None


def strengths(matches: Sequence[Match], clusters: Sequence[Hashable], n_players: int) -> list[Strength] | None:
    """Maximum-likelihood strengths of the Bradley-Terry model, a tie counted as half a win for each.

    `P(i beats j) = 1 / (1 + exp(s_j - s_i))` and `sum s = 0`, by Newton's method. Errors are those of the sandwich
    `H^-1 (G / (G - 1) sum_g u_g u_g') H^-1`, with H the information and u_g the score of cluster g; Student's t with
    G - 1 degrees of freedom.

    Assumptions: independent clusters; matches of one may be alike in any way. Half wins keep the strengths of the model
    but not its likelihood, which the sandwich does not need.

    Args:
        matches: players by number from 0.
        clusters: the cluster of each match, such as its question.
        n_players: number of players, 2 or more.

    Returns:
        One for each player; None if there is no finite maximum: some players never lost to, nor tied with, the rest.

    Raises:
        ValueError: the two differ in length.

    Source: Bradley and Terry 1952, "Rank Analysis of Incomplete Block Designs"; Ford 1957 for the condition; ties as
    half wins as in Glickman 1999, "Parameter Estimation in Large Dynamic Paired Comparison Experiments"; Liang and
    Zeger 1986 for the errors.
    """
    if len(matches) != len(clusters):
        raise ValueError("matches and clusters differ in length")
    if not _is_connected(matches, n_players):
        return None
    values = [0.0] * n_players
    for _ in range(_MOST_STEPS):
        score, information = _derivatives(matches, values)
        step = _solved(information, score)
        # A step of more than a few log-odds would leave the range in which the curve is told by its slope.
        scale = min(1.0, 3.0 / max(*map(abs, step), _SMALL))
        values = [value + scale * change for value, change in zip(values, step, strict=True)]
        if max(map(abs, step)) < _SMALL:
            break
    errors = _errors(matches, clusters, values)
    if errors is None:
        return [Strength(value, None, None, None) for value in values]
    half = student_t_quantile(UPPER, len(set(clusters)) - 1)
    return [
        Strength(value, error, value - half * error, value + half * error)
        for value, error in zip(values, errors, strict=True)
    ]


def _is_connected(matches: Sequence[Match], n_players: int) -> bool:
    """Whether every player has, step by step, won or tied against every other one."""
    beats: list[set[int]] = [set() for _ in range(n_players)]
    for first, second, won in matches:
        if won > 0:
            beats[first].add(second)
        if won < 1:
            beats[second].add(first)
    return all(len(_reached(beats, player)) == n_players for player in range(n_players))


def _reached(edges: Sequence[set[int]], start: int) -> set[int]:
    found, left = {start}, [start]
    while left:
        new = edges[left.pop()] - found
        found |= new
        left += new
    return found


def _expected(match: Match, values: Sequence[float]) -> float:
    return 1.0 / (1.0 + math.exp(values[match.second] - values[match.first]))


def _derivatives(matches: Sequence[Match], values: Sequence[float]) -> tuple[list[float], list[list[float]]]:
    """Score and information; 1 is added to each entry of the information, so that strengths keep their sum."""
    n = len(values)
    score, information = [0.0] * n, [[1.0] * n for _ in range(n)]
    for match in matches:
        p = _expected(match, values)
        weight = p * (1.0 - p)
        for player, sign in ((match.first, 1.0), (match.second, -1.0)):
            score[player] += sign * (match.won - p)
            information[player][player] += weight
        information[match.first][match.second] -= weight
        information[match.second][match.first] -= weight
    return score, information


def _errors(matches: Sequence[Match], clusters: Sequence[Hashable], values: Sequence[float]) -> list[float] | None:
    scores: dict[Hashable, list[float]] = {}
    for match, cluster in zip(matches, clusters, strict=True):
        own = scores.setdefault(cluster, [0.0] * len(values))
        rest = match.won - _expected(match, values)
        own[match.first] += rest
        own[match.second] -= rest
    n_clusters = len(scores)
    if n_clusters < 2:
        return None
    _, information = _derivatives(matches, values)
    influences = [_solved(information, score) for score in scores.values()]
    factor = n_clusters / (n_clusters - 1)
    return [math.sqrt(factor * math.fsum(own[player] ** 2 for own in influences)) for player in range(len(values))]


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """The x of `matrix x = right`, by elimination with pivots; the matrix is positive definite."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    n = len(rows)
    for column in range(n):
        pivot = max(range(column, n), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(column + 1, n):
            factor = rows[row][column] / rows[column][column]
            rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    found = [0.0] * n
    for row in reversed(range(n)):
        rest = math.fsum(rows[row][other] * found[other] for other in range(row + 1, n))
        found[row] = (rows[row][n] - rest) / rows[row][row]
    return found
