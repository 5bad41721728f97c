"""The page Arena, without a browser."""

import re
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.usefixtures("few_candidates")

ROOT = Path(__file__).resolve().parents[2]

RESULTS = "dataset,model,cal_size,test_size,{m}_brier,{m}_logloss,{m}_time\n" + "".join(
    f"d{{i}},m,{size},50,{{s}},{{s}},0.1\n".replace("{i}", str(i)).replace("{s}", f"{{s{i % 2}}}")
    for i, size in enumerate([500] * 6 + [2_000] * 6)
)


def _results(method: str, even: float, odd: float) -> tuple[str, bytes, str]:
    return f"{method}.csv", RESULTS.format(m=method, s0=even, s1=odd).encode(), "text/csv"


def _open(query: str = "") -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        app.query_params[name] = value
    app.run()
    return app.switch_page("pages/arena.py").run()


def _wait(app: AppTest) -> AppTest:
    for _ in range(240):
        if not any(b.label == "Stop" for b in app.button):
            assert not app.exception
            return app
        time.sleep(0.25)
        app.run()
    raise AssertionError("the job did not end")


def _words(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.subheader, app.info, app.warning, app.error)
    text = "\n".join(e.value for kind in kinds for e in kind)
    return re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), text).replace("\u2060", "")


def _kept(app: AppTest, *files: tuple[str, bytes, str]) -> AppTest:
    next(c for c in app.button_group if c.label == "What competes").set_value("kept").run()
    app.file_uploader[0].set_value(list(files)).run()
    return _wait(app)


@pytest.mark.slow
def test_results_are_judged_filtered_and_closed():
    app = _kept(
        _open(),
        _results("Base-model", 0.3, 0.3),
        _results("TS", 0.2, 0.2),
        _results("Beta", 0.1, 0.25),
    )
    words = _words(app)
    assert "12 experiments on 12 data sets, 3 methods" in words
    # TS beats Beta in every other experiment, and nothing always: 1/2 (1/2 + 1) for both.
    table = app.dataframe[0].value
    assert table.set_index("method").loc["TS", "Brier: winrate"] == pytest.approx(0.75)
    next(s for s in app.selectbox if s.label == "Calibration rows").set_value(
        "below 1,000 rows"
    ).run()
    assert "6 experiments on 6 data sets" in _words(app)
    next(b for b in app.button if b.label == "Close").click().run()
    assert app.file_uploader


def test_other_files_are_refused_in_one_sentence():
    app = _kept(_open(), ("plain.csv", b"label,p\n0,0.5\n", "text/csv"))
    assert "plain.csv: this file holds no arena results" in _words(app)


@pytest.mark.slow
def test_open_models_compete():
    app = _open("data=breast_cancer")
    next(b for b in app.button if b.label == "Start the arena").click().run()
    app = _wait(app)
    words = _words(app)
    assert "5 experiments on 1 data set" in words
    assert "1 data set: another one may reverse the order" in words
    assert "identity" in app.dataframe[0].value["method"].tolist()
