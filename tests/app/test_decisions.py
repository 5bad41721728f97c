"""Costs of decisions, and grades."""

import pytest

from tests.app.pages import open_page, quiet, text_of, unfold, upload


@pytest.mark.slow
def test_the_cutoff_decides_what_is_shown():
    app = quiet(open_page("data=breast_cancer&cutoff=0.300", "decisions"))
    assert app.slider(key="cutoff").value == 0.3
    assert "a missed hit is as bad as 2.33 false alarms" in text_of(app)
    before = [d.value for d in app.dataframe]
    app.slider(key="cutoff").set_value(0.8).run()
    assert "a false alarm is as bad as 4 missed hits" in text_of(quiet(app))
    after = [d.value for d in app.dataframe]
    assert not all(one.equals(other) for one, other in zip(before, after, strict=True))
    app.selectbox(key="recalibrated").set_value("temperature").run()
    assert "is fitted on" in text_of(quiet(app))
    assert "After temperature scaling: Deciding by the scores" in text_of(app)


@pytest.mark.slow
def test_more_than_two_classes_are_told_what_to_choose():
    app = quiet(unfold(open_page("data=digits", "decisions"), "Act or not, for one class"))
    assert "A decision is for or against one class" in "".join(i.value for i in app.info)
    app.selectbox(key="calviz.one_class").set_value(3).run()
    assert "AUROC" in text_of(quiet(unfold(app, "What validations report")))
    assert "View class 3" in text_of(app)
    assert app.selectbox(key="class").value == "3"
    app.selectbox(key="class").set_value("5").run()
    assert quiet(app).selectbox(key="calviz.one_class").value == 5
    app.selectbox(key="calviz.one_class").set_value(None).run()
    assert quiet(app).selectbox(key="reduction").value == "top-label"


@pytest.mark.slow
def test_a_column_of_grades_has_its_tests():
    rows = "1,0.1,B\n" * 30 + "0,0.1,B\n" * 70 + "1,0.02,A\n" + "0,0.02,A\n" * 99
    app = upload(open_page(), "loans.csv", f"label,p,grade\n{rows}".encode())
    app = quiet(app.open("grades"))
    assert "In 1 grade of 2 more happens than the probabilities say: B." in text_of(app)
    assert app.dataframe[-1].value["light"].tolist() == ["● green", "● red", "● red"]


@pytest.mark.slow
def test_a_link_with_a_cutoff_that_cannot_be_is_said_until_another_is_chosen():
    app = quiet(open_page("data=breast_cancer&cutoff=1.5", "decisions"))
    assert "The link asks for a cutoff of '1&#46;5': it must be a number from 0.001" in _warned(app)
    assert app.slider(key="cutoff").value == 0.5
    app.slider(key="cutoff").set_value(0.2).run()
    assert not _warned(quiet(app))


def _warned(app):
    return "".join(w.value for w in app.warning)
