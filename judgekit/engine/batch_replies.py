"""Lines of a file of batch replies, counted and stored with the requests that they are for."""

from collections import Counter
from collections.abc import Callable

from judgekit.providers.batch_lines import received
from judgekit.storage.batch_store import BatchStore


class ReplyReader:
    """Takes the lines of one file, in any order."""

    def __init__(self, store: BatchStore, source: str, part: int | None = None) -> None:
        """Prepare.

        Args:
            store: the batches of the run.
            source: name of the file, so that an id that stands in it twice is seen.
            part: the part whose batch the file is of; None: replies to any request of the run are taken.
        """
        self._store = store
        self._source = source
        self._part = part
        self._is_begun = False
        self.n_replies = self.n_known = 0
        """Replies that were stored, and lines that were there already."""
        self.errors: Counter[str] = Counter()
        """Errors that were stored, by kind: they become failures of their cases."""
        self.left_out: Counter[str] = Counter()
        """Lines of which nothing was stored, by kind."""

    def begin(self) -> Callable[[bytes], None]:
        """What takes the lines, from the first one on; what an attempt that was broken off has stored is dropped."""
        self._store.begin()
        if self._is_begun:
            self._store.forget(self._source)
        self._is_begun = True
        self.n_replies = self.n_known = 0
        self.errors.clear()
        self.left_out.clear()
        return self.take

    def take(self, line: bytes) -> None:
        """Store one line, or count why not."""
        if not line.strip():
            return
        found = received(line)
        if found.custom_id is None:
            self.left_out[found.problem or "not JSON"] += 1
            return
        outcome = self._store.take(found.custom_id, line, is_reply=found.is_reply, source=self._source, part=self._part)
        if outcome in ("foreign id", "id twice"):
            self.left_out[outcome] += 1
        elif outcome == "known":
            self.n_known += 1
        elif found.is_reply:
            self.n_replies += 1
        else:
            self.errors[found.problem or "no response"] += 1
