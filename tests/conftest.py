"""Settings of all tests."""

from hypothesis import settings

settings.register_profile("judgekit", deadline=None)  # a busy machine is not a failure
settings.load_profile("judgekit")
