"""Settings and fixtures of all tests."""

import pytest
from hypothesis import settings

settings.register_profile("judgekit", deadline=None)  # a busy machine is not a failure
settings.load_profile("judgekit")


@pytest.fixture
def runs_without_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are written as they were before the manifest held hashes, so that a test may change their files by hand."""
    monkeypatch.setattr("judgekit.storage.run_folder.seals_of", lambda _: {})
