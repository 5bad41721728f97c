"""Tables that are read as texts and sorted as numbers."""

import numpy as np
import pandas as pd
import pytest

from calviz.app.tables_and_cards import preview, sortable
from calviz.core.predictions import Predictions
from tests.app.pages import open_page, quiet, upload


def test_every_row_has_its_own_text_and_its_number():
    # Equal values with other texts (of other units), texts with braces, numbers that are not there.
    value = [0.5, 0.5, 0.25, np.nan, np.nan]
    texts = pd.DataFrame(
        {"metric": list("abcde"), "value": ["50.0 %", "0.500", "{0.25}", "n/a", "n/a"]}
    )
    styled = sortable(texts, {"value": value})
    np.testing.assert_array_equal(styled.data["value"], value)
    shown = [row[-1]["display_value"] for row in styled._translate(False, False)["body"]]
    assert shown == texts["value"].tolist()


def test_the_first_rows_show_the_cluster_of_each():
    clusters = np.array(["ann", "bob", "ann"])
    p = Predictions(probs=np.array([0.2, 0.7, 0.9]), labels=[0, 1, 1], clusters=clusters)
    assert preview(p)["cluster"].tolist() == clusters.tolist()


@pytest.mark.slow
def test_shares_of_many_classes_differ():
    rng = np.random.default_rng(0)
    header = "label," + ",".join(f"p_{k}" for k in range(300))
    rows = [f"{rng.integers(300)}," + ",".join(["0.0033"] * 299 + ["0.0133"]) for _ in range(900)]
    app = upload(open_page(page="data"), "many.csv", "\n".join([header, *rows]).encode())
    config = next(
        t.proto.columns for t in quiet(app).dataframe if {"rows", "share"} <= set(t.value.columns)
    )
    # A class has 0.3 % of the rows: two digits of that are seen.
    assert "%.2f" in config
