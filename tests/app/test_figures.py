"""The page that puts figures beside each other."""

import re

import pytest

from tests.app.pages import open_page, quiet, text_of


@pytest.mark.slow
def test_a_caption_writes_the_accuracy_once_and_for_all():
    # 91.46 % and 79.12 % are 12.3 points apart; with one decimal they would be 12.4.
    words = text_of(quiet(open_page("data=digits", "figures"))).replace("\u00a0", " ")
    assert "The mean confidence is 91.46 %, the accuracy 79.12 %" in words
    assert re.findall(r"All predictions: accuracy ([\d.]+ %)", words) == ["79.12 %"]


@pytest.mark.slow
def test_chosen_panels_have_one_caption():
    app = quiet(open_page("data=breast_cancer&print=true", "figures"))
    app.multiselect(key="panels").set_value(["reliability", "roc"]).run()
    quiet(app)
    text = text_of(app)
    assert "(a) Reliability diagram of" in text
    assert "(b) ROC" in text
    app.multiselect(key="panels").set_value([]).run()
    assert "Choose at least one panel." in quiet(app).info[0].value
    # The same look on every page.
    assert not quiet(app.open("reliability")).error
