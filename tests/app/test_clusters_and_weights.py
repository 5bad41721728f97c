"""Files whose rows are not alike, on every page."""

from io import StringIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from calviz.app import rows_shown
from calviz.app.navigation import PAGES
from calviz.core.predictions import Predictions
from calviz.sample.chosen_rows import part_numbers
from calviz.sample.sample import Sample
from tests.app.pages import first_table, give_role, open_page, press, quiet, text_of, upload


def lines(n=240):
    yield "label,p,patient_id,w,date"
    for i in range(n):
        p = 0.2 + 0.6 * (i * 37 % 100) / 100
        yield f"{int((i * 61 % 97) / 97 < p)},{p:.3f},{i % 24},{1 + i % 3},2021-{1 + i % 6:02d}-11"


def weights():
    yield ",w"
    yield from (f",{i % 3}" for i in range(240))


@pytest.mark.slow
def test_clusters_weights_and_times_go_through_all_pages():
    app = upload(open_page(page="data"), "visits.csv", "\n".join(lines()).encode())
    assert "--cluster" in text_of(quiet(app))
    press(app, "Read it differently")
    give_role(app, "patient_id", "cluster")
    give_role(app, "w", "weight")
    words = text_of(quiet(app))
    assert "clusters 'patient_id', weights 'w', times 'date'" in words
    first = next(t.value for t in app.dataframe if "label" in t.value).iloc[0]
    assert (first["time"], first["weight"]) == ("2021-01-11", 1.0)
    app.open("overview")
    assert "240 weighted rows in 24 clusters" in text_of(quiet(app))
    app.open("over_time")
    assert "over 6 periods" in text_of(quiet(app)) or "of 6 periods" in text_of(app)
    assert "fitted before each period on all rows until then" in text_of(app)
    for page in PAGES:
        if page.key not in ("arena", "learn"):
            app.open(page.key)
            assert not app.exception, page.key
            words = text_of(app) + "".join(i.value for i in app.info)
            assert "does not take weights" not in words, page.key


@pytest.mark.slow
def test_classes_of_clustered_rows_have_no_empty_column_of_intervals():
    app = upload(open_page(page="data"), "visits.csv", "\n".join(lines()).encode())
    app.open("classwise")
    assert "interval" in first_table(quiet(app)).columns
    app.open("data")
    press(app, "Read it differently")
    give_role(app, "patient_id", "cluster")
    app.open("classwise")
    for view in ("predicted-class", "one-vs-rest", "true-class"):
        app.segmented_control(key="classes_by").set_value(view).run()
        assert first_table(quiet(app))["interval"].str.contains(" to ").all()
    # Three clusters are too few.
    app.open("data")
    give_role(app, "w", "cluster")
    app.open("classwise")
    app.segmented_control(key="classes_by").set_value("predicted-class").run()
    assert "interval" not in first_table(quiet(app)).columns


@pytest.mark.slow
def test_rows_of_weight_zero_are_left_out_and_the_others_keep_their_numbers():
    table = "\n".join(
        ",".join(row.split(",")[:2]) + w for row, w in zip(lines(), weights(), strict=True)
    )
    app = upload(open_page(page="data"), "visits.csv", table.encode())
    press(app, "Read it differently")
    give_role(app, "w", "weight")
    assert "80 of 240 rows have the weight 0" in text_of(quiet(app))
    app.open("overview")
    assert "160 weighted rows" in text_of(quiet(app))
    given = pd.read_csv(StringIO(table))
    numbered = 0
    for page in PAGES:
        if page.key not in ("arena", "learn", "data"):
            app.open(page.key)
            assert not app.exception, page.key
            for shown in (t.value for t in app.dataframe):
                if {"row", "label", "weight"} <= set(shown):
                    rows = given.iloc[shown["row"].to_numpy() - 1]
                    assert (rows["w"] > 0).all()
                    assert rows["w"].tolist() == shown["weight"].tolist()
                    numbered += 1
    assert numbered


def test_the_interval_of_selected_rows_is_called_exact_only_if_rows_are_alike():
    rows = {"probs": np.linspace(0.1, 0.9, 60), "labels": np.arange(60) % 2}
    alike = Predictions(**rows)
    clustered = Predictions(**rows, clusters=np.arange(60) // 3)
    headings = []
    for data in (alike, clustered):
        sample = Sample.of(data, reduction="positive")
        settings = SimpleNamespace(whole=data, reduction=sample.reduction)
        headings.append(
            rows_shown.parts_table(settings, {"all rows": part_numbers(sample)}).columns.tolist()
        )
    assert "exact 95 % interval" in headings[0]
    assert "exact 95 % interval" not in headings[1]
    assert "95 % interval" in headings[1]
