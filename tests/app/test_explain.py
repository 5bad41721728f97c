"""The page that says the verdict in plain words."""

import pytest

from tests.app.test_app import _app, _quiet, _words


@pytest.mark.slow
def test_the_page_has_the_numbers_of_the_overview():
    app = _quiet(_app("data=breast_cancer", "explain"))
    said = _words(app)
    arrows = [m.value for m in app.markdown if m.value.startswith(":material/arrow_right:")]
    assert len(arrows) == 5
    verdict = app.switch_page("pages/overview.py").run().header[0].value
    assert ("No fault was found" in said) == ("No miscalibration" in verdict)
