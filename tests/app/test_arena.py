"""The page Arena, without a browser."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.pages import open_page, press, text_of, wait

pytestmark = pytest.mark.usefixtures("few_candidates")

RESULTS = "dataset,model,cal_size,test_size,{m}_brier,{m}_logloss,{m}_time\n" + "".join(
    f"d{{i}},m,{size},50,{{s}},{{s}},0.1\n".replace("{i}", str(i)).replace("{s}", f"{{s{i % 2}}}")
    for i, size in enumerate([500] * 6 + [2_000] * 6)
)


def _results(method: str, even: float, odd: float) -> tuple[str, bytes, str]:
    return f"{method}.csv", RESULTS.format(m=method, s0=even, s1=odd).encode(), "text/csv"


def _kept(app: AppTest, *files: tuple[str, bytes, str]) -> AppTest:
    next(c for c in app.button_group if c.label == "What competes").set_value("kept").run()
    app.file_uploader[0].set_value(list(files)).run()
    return wait(app)


@pytest.mark.slow
def test_results_are_judged_filtered_and_closed():
    app = _kept(
        open_page("", "arena"),
        _results("Base-model", 0.3, 0.3),
        _results("TS", 0.2, 0.2),
        _results("Beta", 0.1, 0.25),
    )
    words = text_of(app)
    assert "12 experiments on 12 data sets, 3 methods" in words
    # TS beats Beta in every other experiment, and nothing always: 1/2 (1/2 + 1) for both.
    table = app.dataframe[0].value
    assert table.set_index("method").loc["TS", "Brier: winrate"] == pytest.approx(0.75)
    next(s for s in app.selectbox if s.label == "Calibration rows").set_value(
        "below 1,000 rows"
    ).run()
    assert "6 experiments on 6 data sets" in text_of(app)
    press(app, "Close")
    assert app.file_uploader


def test_other_files_are_refused_in_one_sentence():
    app = _kept(open_page("", "arena"), ("plain.csv", b"label,p\n0,0.5\n", "text/csv"))
    assert "plain.csv: this file holds no arena results" in text_of(app)


@pytest.mark.slow
def test_open_models_compete():
    app = open_page("data=breast_cancer", "arena")
    press(app, "Start the arena")
    app = wait(app)
    words = text_of(app)
    assert "5 experiments on 1 data set" in words
    assert "1 data set: another one may reverse the order" in words
    assert "identity" in app.dataframe[0].value["method"].tolist()
