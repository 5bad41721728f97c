"""The page Class-wise."""

import threading

import pytest

from calviz.app import diagnose_classes
from calviz.app.selection import Predicted
from calviz.core.blocks import checkpoint
from calviz.data import load
from calviz.figures.class_bars import ClassBars
from tests.app.pages import GOOD, PATIENCE, first_table, open_page, quiet, text_of, upload


@pytest.mark.slow
def test_classes_of_confidence_only_data_have_no_range_and_say_so():
    lines = [f"{'ab'[i % 2]},{'ab'[i % 3 % 2]},0.{50 + i}" for i in range(40)]
    content = "\n".join(["true_label,pred_label,confidence", *lines]).encode()
    app = upload(open_page(page="data"), "mine.csv", content)
    app.open("classwise")
    # By predicted class, confidence alone says what a calibrated model would show.
    assert text_of(quiet(app)).count("is outside the range that a calibrated model would show") == 1
    app.segmented_control(key="classes_by").set_value("true-class").run()
    words = text_of(quiet(app))
    assert "cannot be said without the probabilities of all" in words
    assert "Grey:" not in words
    app.segmented_control(key="classes_by").set_value("one-vs-rest").run()
    assert "Not available for confidence-only data" in text_of(quiet(app))
    (table,) = (table for table in app.dataframe if "value" in table.value.columns)
    assert not {"calibrated", "outside"} & set(table.value.columns)


@pytest.mark.slow
def test_a_class_leads_to_its_own_diagram():
    app = upload(open_page(page="data"), "mine.csv", GOOD)
    app.open("classwise")
    assert "is outside the range that a calibrated model would show" in text_of(quiet(app))
    app.session_state["calviz.selection"].rule = Predicted("fox")
    app.run()
    assert "Class fox, 1 row" in text_of(quiet(app))
    app.button(key="calviz.class.open").click().run()
    assert app.selectbox(key="class").value == "fox"
    # The link names the class, and so opens on it.
    assert app.query_params["reduction"] == "class"
    assert app.query_params["class"] == "fox"
    app.open("reliability")
    assert "View class fox" in text_of(quiet(app))


@pytest.mark.slow
def test_the_classes_of_many_rows_are_work_that_can_be_stopped(monkeypatch):
    monkeypatch.setattr(diagnose_classes, "MANY_ROWS", 100)
    monkeypatch.setattr(diagnose_classes, "PATIENCE", 0.0)
    may_go_on = threading.Event()
    compute = ClassBars.compute

    def slow(*args, **options):
        while not may_go_on.is_set():
            checkpoint("resampling the rows: 0 of 1,000")
        return compute(*args, **options)

    monkeypatch.setattr(ClassBars, "compute", slow)
    app = quiet(open_page(page="classwise"))
    assert "class by class" in text_of(app)
    (job,) = app.session_state["calviz.jobs"][diagnose_classes.PLACE].values()
    app.button(key="calviz.job.stop").click().run()
    job.wait(PATIENCE)
    assert "Stopped before" in quiet(app.run()).info[0].value
    may_go_on.set()
    app.button(key="calviz.classes.again").click().run()
    (job,) = app.session_state["calviz.jobs"][diagnose_classes.PLACE].values()
    job.wait(PATIENCE)
    assert "10 predicted classes" in text_of(quiet(app.run()))


@pytest.mark.slow
def test_the_table_of_classes_is_in_the_order_of_the_bars():
    app = open_page(page="classwise")
    # By what is outside the range; inside it, by the error.
    shown = first_table(quiet(app))[["outside", "value"]].fillna(0)
    order = [tuple(row) for row in shown.to_numpy()]
    assert order == sorted(order, reverse=True)
    app.segmented_control(key="order").set_value("value").run()
    by_error = first_table(app)["value"].to_list()
    assert by_error == sorted(by_error, reverse=True)
    app.segmented_control(key="order").set_value("class").run()
    assert first_table(app)["class"].to_list() == [str(k) for k in range(10)]
    # The numbers are those of the view: here by true class, the rows of each taken by hand.
    app.segmented_control(key="classes_by").set_value("true-class").run()
    rows = load("sample_data/digits.parquet", model="MLP").split("test")
    gap = rows.probs.max(axis=1) - (rows.probs.argmax(axis=1) == rows.labels)
    by_hand = [100 * gap[rows.labels == k].mean() for k in range(10)]
    assert first_table(app)["value"].to_list() == pytest.approx(by_hand)
