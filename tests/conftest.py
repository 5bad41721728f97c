"""How the tests are divided among processes."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``--dist loadgroup``: a file stays together, and all that drive a browser take turns.

    Two browsers with their servers at a time would make each other wait for longer than any test does.
    """
    for item in items:
        group = "browser" if "browser" in item.path.parts[-2:] else item.path.as_posix()
        item.add_marker(pytest.mark.xdist_group(group))
