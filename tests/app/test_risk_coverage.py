"""The page Risk-coverage."""

import pytest
from streamlit.testing.v1 import AppTest

from calviz.ui.session import browser_history
from tests.app.pages import GOOD, _app, _quiet, _upload, _words


@pytest.mark.slow
@pytest.mark.parametrize("by", ["share", "threshold", "error"])
@pytest.mark.parametrize("ranking", ["confidence", "entropy"])
def test_a_slider_says_what_a_threshold_does(by, ranking):
    app = _app("data=breast_cancer", "risk_coverage")
    app.segmented_control(key="ranking").set_value(ranking).run()
    app.segmented_control(key="by").set_value(by).run()
    assert "the accuracy is" in _words(_quiet(app))


@pytest.mark.slow
def test_before_and_after_are_judged_on_rows_that_the_map_has_not_seen():
    app = _app("recalibrated=Temperature scaling", "risk_coverage")
    words = _words(_quiet(app))
    assert "Temperature scaling is fitted on split 'calibration' (2,000 rows)" in words
    assert "both curves are of split 'test' (4,000 rows)" in words
    assert words.count("miscalibration costs") == 2
    app.selectbox(key="split").set_value("calibration").run()
    assert "fitted on split 'test' (4,000 rows)" in _words(_quiet(app))
    # A file without splits is divided.
    _upload(app, "mine.csv", b"confidence,correct\n" + b"0.9,1\n0.7,0\n0.8,1\n0.6,0\n" * 10)
    app.switch_page("pages/risk_coverage.py").run()
    app.selectbox(key="recalibrated").set_value("isotonic").run()
    words = _words(_quiet(app))
    assert "fitted on 50 % of the rows, stratified, seed 0 (20 rows)" in words
    assert "both curves are of all other rows (20 rows)" in words


@pytest.mark.slow
def test_models_are_compared_where_their_rows_are_the_same():
    app = _upload(_app(page="data"), "one.csv", GOOD)
    _upload(app, "two.csv", GOOD.replace(b"0.81,0.12", b"0.71,0.22"))
    _upload(app, "three.csv", GOOD.replace(b"fox,", b"dog,"))
    _upload(app, "one.csv", GOOD)
    app.switch_page("pages/risk_coverage.py").run()
    app.toggle(key="compare-models").set_value(True).run()
    words = _words(_quiet(app))
    assert "three is not drawn: " in words
    assert "two.csv is not drawn" not in words


def _two_models(query: str = "") -> AppTest:
    rows = "\n".join(f"{'cat' if i % 3 else 'dog'},0.9,0.1,0.8,0.2,tale {i}" for i in range(60))
    content = f"label,a:cat,a:dog,b:cat,b:dog,tale\n{rows}".encode()
    return _upload(_app(query, "data"), "tales.csv", content)


@pytest.mark.slow
def test_other_models_and_the_column_beside_rows_are_two_choices():
    app = _two_models().switch_page("pages/reliability.py").run()
    app.segmented_control(key="beside").set_value("tale").run()
    app.switch_page("pages/risk_coverage.py").run()
    assert _quiet(app).toggle(key="compare-models").value is False
    app.toggle(key="compare-models").set_value(True).run()
    assert app.query_params["compare-models"] == "true"
    app.switch_page("pages/reliability.py").run()
    assert _quiet(app).segmented_control(key="beside").value == "tale"
    app.switch_page("pages/risk_coverage.py").run()
    assert _quiet(app).toggle(key="compare-models").value is True


@pytest.mark.slow
def test_an_older_link_still_compares_the_models(monkeypatch):
    app = _two_models("beside=true").switch_page("pages/risk_coverage.py").run()
    assert _quiet(app).toggle(key="compare-models").value is True
    assert app.query_params["compare-models"] == "true"
    assert "beside" not in app.query_params
    app.toggle(key="compare-models").set_value(False).run()
    assert "compare-models" not in app.query_params
    # So does a step back to such a link, and a saved view.
    app.query_params["beside"] = "true"
    with monkeypatch.context() as patch:
        patch.setattr(browser_history, "is_step", lambda: True)
        app.run()
    assert _quiet(app).toggle(key="compare-models").value is True
    app = _two_models("beside=tale").switch_page("pages/risk_coverage.py").run()
    assert _quiet(app).toggle(key="compare-models").value is False


@pytest.mark.slow
def test_too_few_rows_to_fit_on_is_one_sentence():
    app = _upload(_app(page="data"), "mine.csv", GOOD)
    app.switch_page("pages/risk_coverage.py").run()
    app.selectbox(key="recalibrated").set_value("temperature").run()
    assert not app.exception
    assert "a recalibrator needs at least 10" in _words(app)


@pytest.mark.slow
def test_costs_that_make_no_sense_are_one_sentence():
    app = _app("data=breast_cancer", "risk_coverage")
    assert "miscalibration costs" in _words(_quiet(app))
    app.number_input(key="cost-wrong").set_value(-1.0).run()
    assert not app.exception
    assert "a wrong prediction must cost more than a right one" in _words(app)
