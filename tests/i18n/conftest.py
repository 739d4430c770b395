"""Open pages as the tests of the app do."""

from tests.app.conftest import open_page

__all__ = ["open_page"]
