"""The app opens a profile, and every page shows what it can or says what needs the rows."""

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.app.navigation import PAGES
from calviz.core.profile import write_profile
from tests.app.pages import drop, open_page, text_of
from tests.inputs.simulated import draw_labels

N = 4_000


@pytest.mark.slow
def test_every_page_opens_on_a_profile(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, N)
    table = pl.DataFrame(
        {
            "p": p,
            "y": (rng.random(N) < p**1.5).astype(int),
            "country": rng.choice(["de", "fr"], N),
            "day": (np.datetime64("2026-01-01") + rng.integers(0, 3, N)).astype("datetime64[us]"),
        }
    )
    write_profile(calviz.profile(table, by=["country"], time="day"), tmp_path / "p.parquet")
    app = open_page(page="data")
    content = (tmp_path / "p.parquet").read_bytes()
    drop(app, "p.parquet", content, "application/octet-stream")
    seen = {}
    for page in PAGES:
        app.open(page.key)
        assert not app.exception, page.key
        assert [e.value for e in app.error] == [], page.key
        seen[page.key] = text_of(app) + "\n".join(e.value for e in app.info)
    for key in ("overview", "metrics", "reliability", "cumulative", "over_time"):
        assert "4,000 rows" in seen[key].replace("&#44;", ","), key
    assert "2 of 2 predicted classes" in seen["classwise"]
    assert "de" in seen["slices"]


def test_classes_of_a_profile_have_their_page(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], N)
    y = draw_labels(probs, rng)
    probs[:, 0] += 0.2
    probs /= probs.sum(axis=1, keepdims=True)
    table = pl.DataFrame(probs, schema=["p_0", "p_1", "p_2"]).with_columns(y=y)
    calviz.profile(table, each_class=True).save(tmp_path / "p.parquet")
    app = open_page(page="data")
    content = (tmp_path / "p.parquet").read_bytes()
    drop(app, "p.parquet", content, "application/octet-stream")
    app.open("classwise")
    assert not app.exception
    words = text_of(app)
    assert "3 of 3 classes against the rest" in words
    assert app.dataframe[0].value["class"].tolist() == ["0", "2", "1"]
    app.segmented_control(key="classes_by").set_value("true-class").run()
    assert "do not name the true classes" in text_of(app)
