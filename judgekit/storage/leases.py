"""A budget that workers share: each takes slices of it as it needs them, and what a lost one had left comes back.

The slices stand in an SQLite file beside the parts. That folder is the one thing that the workers of every executor
share, so nothing has to listen on a port, and none of it depends on an engine. A worker takes few slices: each is a
fair part of what is left, so that they get smaller towards the end.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from judgekit.core.config import Budget
from judgekit.core.errors import StorageError
from judgekit.storage.sqlite_files import set_journal

LEASES = "leases.db"

KINDS = ("max_calls", "max_tokens", "max_usd")
"""As in `budget` of a config."""

_WAIT_SECONDS = 60.0

_TABLES = (
    "CREATE TABLE pool (kind TEXT PRIMARY KEY, rest REAL NOT NULL)",
    "CREATE TABLE leases (holder TEXT, kind TEXT, granted REAL NOT NULL, PRIMARY KEY (holder, kind))",
)


class BudgetLeases:
    """The budget of one run, in a file."""

    def __init__(self, path: Path) -> None:
        """A budget that `opened` has written."""
        self.path = path

    @classmethod
    def opened(cls, path: Path, budget: Budget, spent: Mapping[str, float]) -> "BudgetLeases":
        """A budget of which so much is spent already and nothing is taken.

        Raises:
            StorageError: it cannot be written.
        """
        path.unlink(missing_ok=True)
        leases = cls(path)
        limits = budget.model_dump(exclude_none=True)
        with leases._transaction() as connection:
            for statement in _TABLES:
                connection.execute(statement)
            rest = [(kind, limit - spent.get(kind, 0.0)) for kind, limit in limits.items()]
            connection.executemany("INSERT INTO pool VALUES (?, ?)", rest)
        return leases

    def take(self, holder: str, needs: Mapping[str, float], n_sharers: int) -> dict[str, float]:
        """What a holder has in all after it has asked for more, by kind; only kinds that are limited.

        Args:
            holder: an attempt.
            needs: how much more it cannot do without, by kind; nothing is given of a kind of which less is left.
            n_sharers: workers that the rest is for.

        Raises:
            StorageError: the file cannot be written.
        """
        with self._transaction() as connection:
            pool = dict(connection.execute("SELECT kind, rest FROM pool").fetchall())
            for kind, rest in pool.items():
                need = needs.get(kind, 0.0)
                fair = rest / (2 * max(1, n_sharers))
                slice_ = max(need, fair if kind == "max_usd" else float(int(fair)))
                if 0.0 < need <= rest:
                    connection.execute("UPDATE pool SET rest = rest - ? WHERE kind = ?", (slice_, kind))
                    connection.execute(
                        "INSERT INTO leases VALUES (?, ?, ?) "
                        "ON CONFLICT (holder, kind) DO UPDATE SET granted = granted + excluded.granted",
                        (holder, kind, slice_),
                    )
            rows = connection.execute("SELECT kind, granted FROM leases WHERE holder = ?", (holder,)).fetchall()
        return {**dict.fromkeys(pool, 0.0), **dict(rows)}

    def give_back(self, holder: str, spent: Mapping[str, float]) -> None:
        """Return what a holder has not spent; a second time changes nothing.

        Raises:
            StorageError: the file cannot be written.
        """
        with self._transaction() as connection:
            rows = connection.execute("SELECT kind, granted FROM leases WHERE holder = ?", (holder,)).fetchall()
            for kind, granted in rows:
                left = granted - spent.get(kind, 0.0)
                connection.execute("UPDATE pool SET rest = rest + ? WHERE kind = ?", (left, kind))
            connection.execute("DELETE FROM leases WHERE holder = ?", (holder,))

    def rest(self) -> dict[str, float]:
        """What nobody has taken, by kind.

        Raises:
            StorageError: the file cannot be read.
        """
        with self._transaction() as connection:
            return dict(connection.execute("SELECT kind, rest FROM pool").fetchall())

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
            try:
                set_journal(connection, self.path.parent)
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: cannot be used: {error}") from None


class PartLease:
    """The slices of one attempt, as `Spending` asks for them."""

    def __init__(self, leases: BudgetLeases, holder: str, n_sharers: int) -> None:
        """Nothing is taken yet."""
        self._leases = leases
        self._holder = holder
        self._n_sharers = n_sharers

    def grown(self, calls: int, tokens: int, usd: float) -> Budget:
        """The limits, with a further slice of each kind of which more is needed and enough is left.

        Raises:
            StorageError: the file cannot be written.
        """
        needs = dict(zip(KINDS, (calls, tokens, usd), strict=True))
        granted = self._leases.take(self._holder, needs, self._n_sharers)
        calls_, tokens_ = (int(granted[kind]) if kind in granted else None for kind in KINDS[:2])
        return Budget.model_construct(max_calls=calls_, max_tokens=tokens_, max_usd=granted.get("max_usd"))
