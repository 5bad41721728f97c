"""The page that puts figures beside each other."""

import pytest

from tests.app.pages import _app, _quiet, _words


@pytest.mark.slow
def test_chosen_panels_have_one_caption():
    app = _quiet(_app("data=breast_cancer&print=true", "figures"))
    app.multiselect(key="panels").set_value(["reliability", "roc"]).run()
    _quiet(app)
    said = _words(app)
    assert "(a) Reliability diagram of" in said
    assert "(b) ROC" in said
    app.multiselect(key="panels").set_value([]).run()
    assert "Choose at least one panel." in _quiet(app).info[0].value
    # The same look on every page.
    assert not _quiet(app.switch_page("pages/reliability.py").run()).error
