"""The state of batches on disk: files of limited size, the first reply of each request, and nothing half done."""

import errno
import json
import os
from pathlib import Path

import pytest

from judgekit.core.batches import BATCHES, BatchPart
from judgekit.core.errors import StorageError
from judgekit.storage.batch_store import BatchStore, PartWriter


def writer(store: BatchStore, folder: Path, most_requests: int, most_bytes: int) -> PartWriter:
    first = BatchPart(number=0, model_id="m", status="written")
    return PartWriter(store, lambda _, number: folder / f"requests-{number}.jsonl", first, (most_requests, most_bytes))


@pytest.mark.parametrize(("most_requests", "most_bytes", "sizes"), [(2, 1000, [2, 2, 1]), (100, 25, [2, 2, 1])])
def test_a_file_ends_at_the_first_limit_and_knows_its_requests(
    tmp_path: Path, most_requests: int, most_bytes: int, sizes: list[int]
) -> None:
    store = BatchStore(tmp_path)
    parts = writer(store, tmp_path, most_requests, most_bytes)
    for name in "abcde":
        assert parts.add(name, b"0123456789\n")
        assert not parts.add(name, b"0123456789\n")
    found = parts.close()
    assert [part.n_requests for part in found] == sizes
    assert [len(Path(part.path).read_bytes()) for part in found] == [part.n_bytes for part in found]
    store.close()
    again = BatchStore(tmp_path)
    assert list(again.parts.values()) == found
    last = again.find("e")
    assert last is not None
    assert last.part == found[-1]
    with pytest.raises(StorageError, match="request f has 1,001 bytes, more than a batch file may have"):
        writer(again, tmp_path, 2, 1000).add("f", b"x" * 1001)


def test_a_full_disk_is_said_of_the_file_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BatchStore(tmp_path)
    parts = writer(store, tmp_path, 10, 100_000)
    parts.add("a", b"1\n")

    class Full:
        def write(self, _: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(parts, "_stream", Full())
    with pytest.raises(StorageError, match=r"requests-1.jsonl: cannot be written: No space left on device"):
        parts.add("b", b"2\n")
    parts.discard()
    assert [path.name for path in tmp_path.iterdir()] == [BATCHES]


def test_what_is_not_ended_is_not_there(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    parts = writer(store, tmp_path, 2, 1000)
    parts.add("a", b"1\n")
    parts.discard()
    assert (store.find("a"), [path.name for path in tmp_path.iterdir()]) == (None, [BATCHES])


def test_the_first_reply_counts_and_an_error_only_without_one(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    parts = writer(store, tmp_path, 10, 1000)
    for name in ("a", "b"):
        parts.add(name, b"1\n")
    parts.close()

    def take(name: str, line: bytes, source: str, *, is_reply: bool = True, part: int | None = None) -> str:
        return store.take(name, line, is_reply=is_reply, source=source, part=part)

    assert take("a", b"error", "one", is_reply=False) == "stored"
    assert take("a", b"reply", "two") == "stored"
    assert take("a", b"reply", "two") == "id twice"  # in the same file
    assert take("a", b"reply", "three") == "known"
    assert take("a", b"another reply", "three") == "id twice"
    assert take("a", b"late error", "three", is_reply=False) == "known"
    assert take("x", b"reply", "three") == "foreign id"
    assert take("b", b"reply", "three", part=7) == "foreign id"  # of the batch of another part
    assert store.n_without_line() == 1
    store.forget("two")
    assert store.n_without_line() == 2
    assert take("b", b"error", "four", is_reply=False) == "stored"
    store.use("b")
    found = store.find("b")
    assert found is not None
    assert (found.line, found.is_used, found.is_used_here) == (None, True, True)
    store.commit()
    store.close()
    later = BatchStore(tmp_path).find("b")
    assert later is not None
    assert (later.is_used, later.is_used_here) == (True, False)


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / BATCHES).write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError, match=r"batches.sqlite: damaged: .*; put back the file as it was"):
        BatchStore(tmp_path)
    (tmp_path / BATCHES).unlink()
    store = BatchStore(tmp_path)
    store._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StorageError, match=r"batches.sqlite: cannot be used: .*full; mend that, then --resume"):
        for number in range(2, 2000):
            store.save(BatchPart(number=number, model_id="m" * 500, status="written"))
    store.rollback()
    store.close()
    (tmp_path / BATCHES).unlink()
    store = BatchStore(tmp_path)
    store.save(BatchPart(number=1, model_id="m", status="written"))
    store._connection.execute("UPDATE part SET record = ?", (json.dumps({"number": 1}),))
    store.close()
    with pytest.raises(StorageError, match=r"batches.sqlite: damaged: .*model_id"):
        BatchStore(tmp_path)
