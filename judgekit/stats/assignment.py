"""The assignment problem: pair rows with columns so that the pairs cost least in all."""

import math
from collections.abc import Sequence

Number = int | float


def cheapest_assignment(costs: Sequence[Sequence[Number]]) -> list[tuple[int, int]]:
    """Pairs of rows and columns with the smallest sum of costs: each row and each column at most once.

    Shortest augmenting paths on reduced costs: each row first takes the cheapest column of its own where that is
    free, then the rows left over are added one by one along a shortest path. O(n^2 m) for n <= m; near n m where
    most rows have a best column of their own. Exact for whole numbers; equal inputs give equal pairs.

    Args:
        costs: one row of finite numbers for each row, all of one length; may be negative.

    Returns:
        min(rows, columns) pairs (row, column), ascending in the row; empty for no rows or no columns.

    Raises:
        ValueError: rows of different lengths.

    Source: Jonker and Volgenant 1987, "A Shortest Augmenting Path Algorithm for Dense and Sparse Linear Assignment
    Problems"; Kuhn 1955, "The Hungarian Method". Same value as `scipy.optimize.linear_sum_assignment`.
    """
    if len({len(line) for line in costs}) > 1:
        raise ValueError("an assignment needs rows of one length")
    if not costs or not costs[0]:
        return []
    if len(costs) > len(costs[0]):
        turned = list(zip(*costs, strict=True))
        return sorted((row, column) for column, row in cheapest_assignment(turned))
    state = _Assignment(costs)
    for row in state.start():
        state.augment(row)
    return [(row, column) for row, column in enumerate(state.column_of)]


class _Assignment:
    """Pairs so far, and the dual prices that prove them cheapest: row + column price <= cost, equal on pairs."""

    def __init__(self, costs: Sequence[Sequence[Number]]) -> None:
        self._costs = costs
        self._row_price: list[Number] = [min(line) for line in costs]
        self._column_price: list[Number] = [0] * len(costs[0])
        self._row_of = [-1] * len(costs[0])
        self.column_of = [-1] * len(costs)

    def start(self) -> list[int]:
        """Give each row its cheapest column where that is free; returns the rows that are left."""
        left = []
        for row, line in enumerate(self._costs):
            column = line.index(self._row_price[row])
            if self._row_of[column] < 0:
                self._row_of[column], self.column_of[row] = row, column
            else:
                left.append(row)
        return left

    def augment(self, row: int) -> None:
        """Pair one more row along the shortest path to a free column."""
        n_columns = len(self._column_price)
        distance: list[Number] = [math.inf] * n_columns
        previous = [-1] * n_columns
        open_columns = list(range(n_columns))
        reached: list[int] = []
        current, length = row, 0
        prices, row_of = self._column_price, self._row_of
        while True:
            line, base = self._costs[current], self._row_price[current] - length
            nearest, least = -1, math.inf
            for column in open_columns:
                there = distance[column]
                via = line[column] - base - prices[column]
                if via < there:
                    distance[column] = there = via
                    previous[column] = current
                if there < least:
                    nearest, least = column, there
            open_columns.remove(nearest)
            length = least  # type: ignore[assignment]  # finite: costs are
            if row_of[nearest] < 0:
                break
            reached.append(nearest)
            current = row_of[nearest]
        self._row_price[row] += length
        for column in reached:
            gap = length - distance[column]
            prices[column] -= gap
            self._row_price[row_of[column]] += gap
        self._flip(row, nearest, previous)

    def _flip(self, row: int, column: int, previous: Sequence[int]) -> None:
        current = -1
        while current != row:
            current = previous[column]
            self._row_of[column] = current
            column, self.column_of[current] = self.column_of[current], column
