"""The page that says the verdict in plain words."""

import pytest

from tests.app.pages import _app, _quiet, _words


@pytest.mark.slow
def test_the_page_has_the_numbers_of_the_overview():
    app = _quiet(_app("data=breast_cancer", "explain"))
    said = _words(app)
    assert [line[:3] for line in said.splitlines() if line[1:3] == ". "] == [
        f"{n}. " for n in range(1, 6)
    ]
    verdict = app.switch_page("pages/overview.py").run().header[0].value
    assert ("No fault was found" in said) == ("No miscalibration" in verdict)
