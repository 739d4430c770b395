"""Property tests draw the same examples everywhere, and a busy machine does not fail them."""

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.load_profile("steady")
