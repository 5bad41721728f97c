"""The page Metrics."""

import pytest

from calviz.core.entry_specs import CONVENTIONS, FAMILIES, METRICS
from tests.app.pages import first_table, open_page, quiet, text_of, unfold, upload
from tests.inputs.borderline import FILES


@pytest.mark.slow
def test_the_table_has_every_metric_and_its_error_bars():
    app = quiet(open_page("data=breast_cancer", "metrics"))
    table = first_table(app)
    assert len(table) == len(METRICS)
    # Written shorter here, so that the table fits.
    assert set(table["family"]) <= {name.replace(" and ", ", ") for name in FAMILIES}
    # The same text as on the cards.
    ece = next(i for i, m in enumerate(METRICS) if m.key == "ece")
    assert table["metric"].iloc[ece] == "ECE (points)"
    assert " to " in table["95 % interval"].iloc[ece]


@pytest.mark.slow
def test_values_alone_are_shown_without_error_bars():
    app = open_page("data=breast_cancer", "metrics")
    app.toggle(key="error-bars").set_value(False).run()
    assert "95 % interval" not in first_table(quiet(app)).columns
    # Nor are columns explained that are not there.
    assert "Noise: what" not in text_of(app)
    assert "p-value" not in text_of(app)


@pytest.mark.slow
def test_a_family_can_be_looked_at_alone():
    app = open_page("data=breast_cancer", "metrics")
    app.selectbox(key="family").set_value("Binned").run()
    assert set(first_table(quiet(app))["family"]) == {"Binned"}


@pytest.mark.slow
def test_the_same_predictions_by_other_libraries():
    app = quiet(open_page("data=breast_cancer", "metrics"))
    quiet(unfold(app, "What each of them computes, and why it differs"))
    libraries = app.dataframe[1].value
    assert len(libraries) == 1 + len(CONVENTIONS)
    assert libraries["why it differs"].str.endswith(".").all()
    assert "depending on who is asked" in text_of(app)
    markdown = app.segmented_control(key="calviz.libraries.format").set_value("Markdown").run()
    assert any("| torchmetrics" in c.value for c in quiet(markdown).code)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["CSV", "Markdown", "LaTeX"])
def test_the_export_holds_all_metrics(form):
    app = open_page("data=breast_cancer", "metrics")
    app.segmented_control(key="calviz.metrics.format").set_value(form).run()
    quiet(app)
    text = max((c.value for c in app.code), key=len)
    assert len(text.splitlines()) >= len(METRICS)
    assert {"CSV": "ece_debiased,", "Markdown": "| NLL |", "LaTeX": r"\toprule"}[form] in text


@pytest.mark.slow
def test_what_is_not_available_says_why():
    app = upload(open_page(page="data"), "mine.csv", FILES["confidence"])
    app.open("metrics")
    assert "it needs the probabilities of all classes" in text_of(quiet(app))
    app.open("classwise")
    quiet(app)
    assert len(app.info) == 1
    app.open("risk_coverage")
    assert "Keeping" in text_of(quiet(app))
