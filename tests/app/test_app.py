"""The logic of the dashboard, without a browser."""

import re
import threading
from pathlib import Path

import numpy as np
import pytest
from streamlit.runtime.scriptrunner_utils.exceptions import StopException
from streamlit.testing.v1 import AppTest

from calviz.core.progress import checkpoint
from calviz.data import ReadingOptions, load, read
from calviz.data.samples import SAMPLES
from calviz.figures import ClassBars
from calviz.specs.convention import CONVENTIONS
from calviz.specs.metric import FAMILIES, METRICS
from calviz.ui.classwise import errors
from calviz.ui.selection.rules import Predicted
from calviz.ui.session import browser_history, open_files
from calviz.ui.session.navigation import PAGES
from calviz.ui.session.open_files import decode_options, encode_options
from tests.inputs.borderline import FILES

ROOT = Path(__file__).resolve().parents[2]
GOOD = b"label,p_cat,p_dog,p_fox\ncat,0.81,0.12,0.07\ndog,0.25,0.55,0.2\nfox,0.1,0.3,0.6\n"


def _app(query: str = "", page: str = "overview") -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        app.query_params[name] = value
    return app.switch_page(f"pages/{page}.py").run()


def _quiet(app: AppTest) -> AppTest:
    assert not app.exception
    assert [e.value for e in app.error] == []
    return app


def _words(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.header, app.title, app.subheader, app.error)
    text = "\n".join(e.value for kind in kinds for e in kind)
    return re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), text).replace("\u2060", "")


def _upload(app: AppTest, name: str, content: bytes) -> AppTest:
    app.switch_page("pages/data.py").run()
    app.file_uploader[0].set_value((name, content, "text/csv")).run()
    return app


def test_every_file_in_pages_is_registered_and_no_other_is():
    assert {f"pages/{path.name}" for path in (ROOT / "pages").glob("*.py")} == {
        page.file for page in PAGES
    }


#: All pages with a sample of two classes and with one of a hundred; of the others, those that differ most from these.
SHOWN = [
    pytest.param(
        sample.key,
        page.key,
        marks=[] if sample.key == "breast_cancer" and page.key != "metrics" else [pytest.mark.slow],
    )
    for sample in SAMPLES
    for page in PAGES
    if sample.key in ("breast_cancer", "simulated_100_classes")
    or page.key in ("overview", "classwise", "recalibrate", "slices")
]


@pytest.mark.parametrize(("sample", "page"), SHOWN)
def test_every_page_shows_every_sample(sample, page):
    app = _quiet(_app(f"data={sample}&bins=7", page))
    assert next(p.question for p in PAGES if p.key == page) in _words(app)
    assert app.number_input(key="bins").value == 7
    # What opens without a link needs no word in it.
    assert app.query_params.get("data", "digits") == sample
    assert app.query_params["bins"] == "7"


def test_it_opens_on_sample_data_with_a_verdict_and_five_numbers():
    app = _quiet(_app())
    assert len(app.metric) == 5
    assert [m.label.split(" (")[0] for m in app.metric] == [
        "Accuracy",
        "ECE",
        "MCS",
        "NLL",
        "Brier score",
    ]
    assert len(app.header) == 1
    assert "Sample data" in "".join(b.value for b in app.markdown)


@pytest.mark.slow
def test_the_evaluation_split_is_the_one_whose_name_says_so():
    app = _app()
    assert app.selectbox(key="split").value == "test"
    for page in ("recalibrate", "learning_curve"):
        app.switch_page(f"pages/{page}.py").run()
        assert "split test" in _words(_quiet(app))
    app.switch_page("pages/overview.py").run()
    app.selectbox(key="split").set_value("all rows").run()
    assert "all splits" in _words(_quiet(app))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "reduction"),
    [
        ("data=breast_cancer", "positive"),
        ("data=breast_cancer&reduction=positive", "positive"),
        ("data=breast_cancer&reduction=top-label", "top-label"),
        ("data=digits", "top-label"),
        ("data=digits&reduction=top-r", "top-r"),
    ],
)
def test_a_link_without_a_reduction_shows_the_default_of_the_data(query, reduction):
    app = _quiet(_app(query))
    assert app.selectbox(key="reduction").value == reduction


@pytest.mark.slow
def test_the_overview_says_what_the_other_view_of_two_classes_shows():
    entry = b"label,p\n" + b"1,0.6\n" * 300 + b"0,0.6\n" * 700 + b"1,0.1\n" * 2 + b"0,0.1\n" * 98
    app = _quiet(
        _upload(_app(page="data"), "high.csv", entry).switch_page("pages/overview.py").run()
    )
    assert "this page looks at the positive class" in _words(app)
    assert "Seen by the top label, the predictions are overconfident by " in _words(app)
    app.button(key="calviz.other_view").click().run()
    assert _quiet(app).selectbox(key="reduction").value == "top-label"
    assert "Seen by the positive class, the forecasts are " in _words(app)
    _quiet(app.switch_page("pages/reliability.py").run())
    assert "this page looks at the top label" in _words(app)
    app.button(key="calviz.other_view").click().run()
    assert "this page looks at the positive class" in _words(_quiet(app))
    assert "reduction" not in app.query_params or app.query_params["reduction"] == "positive"


@pytest.mark.slow
def test_another_data_set_brings_its_default_where_nothing_was_chosen():
    app = _app("data=digits")
    pick = app.selectbox(key="calviz.pick")
    assert app.selectbox(key="reduction").value == "top-label"
    pick.set_value("breast_cancer").run()
    assert _quiet(app).selectbox(key="reduction").value == "positive"
    app.selectbox(key="calviz.pick").set_value("digits").run()
    assert _quiet(app).selectbox(key="reduction").value == "top-label"
    # What was chosen stays, where the data have it.
    app.selectbox(key="reduction").set_value("top-r").run()
    app.selectbox(key="calviz.pick").set_value("simulated_100_classes").run()
    assert _quiet(app).selectbox(key="reduction").value == "top-r"


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["within-top-r", "class"])
def test_reductions(reduction):
    app = _app(page="reliability")
    app.selectbox(key="reduction").set_value(reduction).run()
    _quiet(app)
    if reduction == "class":
        app.selectbox(key="class").set_value("7").run()
        assert "class '7' against the rest" in _words(_quiet(app))
    else:
        app.number_input(key="r").set_value(3).run()
        assert "top 3" in _words(_quiet(app))


@pytest.mark.slow
def test_a_slice_looks_at_some_rows():
    app = _app()
    app.selectbox(key="slice").set_value("condition").run()
    app.selectbox(key="level").set_value("rotated").run()
    assert "condition = rotated" in _words(_quiet(app))
    app.selectbox(key="calviz.pick").set_value("breast_cancer").run()
    # The other data have no such column.
    assert "condition" not in _words(_quiet(app))


@pytest.mark.slow
def test_a_slice_of_two_columns_is_said_on_every_page():
    lines = [f"{i % 2},0.{3 + i % 5},{'xy'[i % 3 > 0]},{'uv'[i % 7 > 2]}" for i in range(210)]
    content = "\n".join(["label,p,site,shift", *lines, ""]).encode()
    app = _upload(_app(page="data"), "groups.csv", content)
    app.switch_page("pages/slices.py").run()
    slice_of(app, "site", "y", "shift", "v")
    assert "80 rows" in _words(_quiet(app))
    for page in ("overview", "recalibrate", "report"):
        app.switch_page(f"pages/{page}.py").run()
        assert "80 rows · site = y, shift = v" in _words(_quiet(app))
    app.switch_page("pages/slices.py").run()
    assert "site = y, shift = v" in _words(app)
    next(b for b in app.button if b.label == "Show all rows").click().run()
    assert app.selectbox(key="slice").value == "no slice"
    assert "The other pages look at" not in _words(_quiet(app))


def slice_of(app, *values):
    for key, value in zip(("slice", "level", "slice-2", "level-2"), values, strict=True):
        app.selectbox(key=key).set_value(value).run()


def test_settings_that_do_not_fit_the_data_are_left_out():
    app = _quiet(_app("model=nobody&split=nowhere&bins=0&reduction=class&class=none&slice=x"))
    assert app.selectbox(key="model").value == "MLP"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["equal-mass", "sturges"])
def test_the_ece_shown_is_of_the_bins_drawn(scheme):
    app = _app(f"scheme={scheme}", "reliability")
    _quiet(app)
    assert "**ECE" in _words(app)


@pytest.mark.slow
def test_classes_of_confidence_only_data_have_no_range_and_say_so():
    lines = [f"{'ab'[i % 2]},{'ab'[i % 3 % 2]},0.{50 + i}" for i in range(40)]
    content = "\n".join(["true_label,pred_label,confidence", *lines]).encode()
    app = _upload(_app(page="data"), "mine.csv", content)
    app.switch_page("pages/classwise.py").run()
    # By predicted class, confidence alone says what a calibrated model would show.
    assert _words(_quiet(app)).count("is outside the range that a calibrated model would show") == 1
    app.segmented_control(key="classes_by").set_value("true-class").run()
    words = _words(_quiet(app))
    assert "cannot be said without the probabilities of all" in words
    assert "Grey:" not in words
    app.segmented_control(key="classes_by").set_value("one-vs-rest").run()
    assert "Not available for confidence-only data" in _words(_quiet(app))
    (table,) = (table for table in app.dataframe if "value" in table.value.columns)
    assert not {"calibrated", "outside"} & set(table.value.columns)


@pytest.mark.slow
def test_a_file_is_read_and_looked_at():
    app = _quiet(_upload(_app(page="data"), "mine.csv", GOOD))
    assert "3 rows, 3 classes (cat, dog, fox)" in _words(app)
    app.switch_page("pages/overview.py").run()
    assert "mine.csv · 3 rows" in _words(_quiet(app))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in FILES if "two columns" not in kind])
def test_unusual_files_are_shown_on_every_page(kind):
    app = _quiet(_upload(_app(page="data"), "mine.csv", FILES[kind]))
    for page in PAGES:
        if page.key in ("learn", "arena"):  # they do not show the file
            continue
        app.switch_page(page.file).run()
        _quiet(app)
        # Nothing to be warned of but what the data themselves are, and whether they can be fitted on.
        fits = ("recalibrate", "learning_curve")
        assert not app.warning or page.key in ("overview", "data", *fits)
    if kind == "one row":
        app.switch_page("pages/overview.py").run()
        assert _words(app).count("n = 1: not meaningful") == 5


@pytest.mark.slow
def test_a_bad_file_gives_one_sentence_and_what_was_loaded_stays():
    app = _upload(_app(page="data"), "mine.csv", GOOD)
    _upload(app, "broken.csv", b"label,p_a,p_b\na,x,0.5\nb,0.5,0.5\n")
    assert not app.exception
    assert len(app.error) == 1
    words = _words(app)
    assert "broken.csv" in words
    assert "mine.csv is still loaded." in words
    assert "3 rows, 3 classes" in words
    next(b for b in app.button if b.label == "Dismiss").click().run()
    _quiet(app)


@pytest.mark.slow
def test_repairs_are_offered_made_on_request_and_undone():
    app = _upload(_app(page="data"), "mine.csv", b"label,p_a,p_b\na,80.9,19.1\nb,24.9,75.1\n")
    button = next(b for b in app.button if "100" in b.label)
    button.click().run()
    assert "Repair made" in _words(_quiet(app))
    assert "percent" in str(app.query_params["reading"])
    next(b for b in app.button if b.label == "Undo the repairs").click().run()
    assert not app.exception


@pytest.mark.slow
def test_what_was_recognised_can_be_said_otherwise():
    app = _upload(
        _app(page="data"), "mine.csv", b"label,second,p_a,p_b\na,b,0.8,0.2\nb,a,0.3,0.7\n"
    )
    label = next(s for s in app.selectbox if s.label == "Label column")
    label.set_value("second")
    next(b for b in app.button if b.label == "Read it this way").click().run()
    _quiet(app)
    assert "label 'second'" in _words(app)


@pytest.mark.slow
def test_a_link_waits_for_its_file_and_gives_it_its_settings():
    app = _app("data=0123456789abcdef&bins=4&reduction=class&class=fox")
    assert "0123456789abcdef" in _words(app)
    assert not app.number_input
    app.file_uploader[0].set_value(("mine.csv", GOOD, "text/csv")).run()
    _quiet(app)
    assert app.number_input(key="bins").value == 4
    assert app.selectbox(key="class").value == "fox"
    # It is another file than the link's, which is said.
    assert "digest" in app.info[0].value


def test_a_link_that_waits_can_be_left():
    app = _app("data=0123456789abcdef")
    next(b for b in app.button if "sample" in b.label).click().run()
    assert len(_quiet(app).metric) == 5


@pytest.mark.slow
def test_an_unforeseen_error_is_one_sentence(monkeypatch):
    from calviz.figures import Reliability

    def broken(*args, **kwargs):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(Reliability, "compute", broken)
    app = _app()
    assert not app.exception
    assert len(app.error) == 1
    assert "secret detail" not in _words(app)
    assert len(app.metric) == 5


@pytest.mark.parametrize(
    "options",
    [
        ReadingOptions(),
        ReadingOptions(label="y", scores=("a", "b*"), kind="logits", label_base=1),
        ReadingOptions(split_column="", groups=(), class_names=("é", "&=?")),
        ReadingOptions(repair=("renormalise",)),
    ],
)
def test_reading_options_survive_an_address(options):
    assert decode_options(encode_options(options)) == options


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "1", '{"x": 1}', '{"kind": "pickle"}', '{"label": ["a"]}'),
        *('{"label": 1}', '{"label_base": 2}', '{"label_base": "1"}', '{"weight_kind": []}'),
        *('{"scores": "a"}', '{"label_base": true}', '{"repair": ["x"]}', '{"groups": [1]}'),
    ],
)
def test_reading_options_that_make_no_sense_are_left_out(text):
    assert decode_options(text) == ReadingOptions()


def _table(app):
    return app.dataframe[0].value


@pytest.mark.slow
def test_the_table_has_every_metric_and_its_error_bars():
    app = _quiet(_app("data=breast_cancer", "metrics"))
    table = _table(app)
    assert len(table) == len(METRICS)
    assert set(table["family"]) <= set(FAMILIES)
    # The same text as on the cards.
    ece = next(i for i, m in enumerate(METRICS) if m.key == "ece")
    assert table["metric"].iloc[ece] == "ECE (points)"
    assert " to " in table["95 % interval"].iloc[ece]


@pytest.mark.slow
def test_values_alone_are_shown_without_error_bars():
    app = _app("data=breast_cancer", "metrics")
    app.toggle(key="error-bars").set_value(False).run()
    assert "95 % interval" not in _table(_quiet(app)).columns


@pytest.mark.slow
def test_a_family_can_be_looked_at_alone():
    app = _app("data=breast_cancer", "metrics")
    app.selectbox(key="family").set_value("Binned").run()
    assert set(_table(_quiet(app))["family"]) == {"Binned"}


@pytest.mark.slow
def test_the_same_predictions_by_other_libraries():
    app = _quiet(_app("data=breast_cancer", "metrics"))
    libraries = app.dataframe[1].value
    assert len(libraries) == 1 + len(CONVENTIONS)
    assert libraries["why it differs"].str.endswith(".").all()
    assert "depending on who is asked" in _words(app)
    markdown = app.segmented_control(key="calviz.libraries.format").set_value("Markdown").run()
    assert any("| torchmetrics" in c.value for c in _quiet(markdown).code)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["CSV", "Markdown", "LaTeX"])
def test_the_export_holds_all_metrics(form):
    app = _app("data=breast_cancer", "metrics")
    app.segmented_control(key="calviz.metrics.format").set_value(form).run()
    _quiet(app)
    text = max((c.value for c in app.code), key=len)
    assert len(text.splitlines()) >= len(METRICS)
    assert {"CSV": "ece_debiased,", "Markdown": "| NLL |", "LaTeX": r"\toprule"}[form] in text


@pytest.mark.slow
def test_what_is_not_available_says_why():
    app = _upload(_app(page="data"), "mine.csv", FILES["confidence"])
    app.switch_page("pages/metrics.py").run()
    assert "it needs the probabilities of all classes" in _words(_quiet(app))
    app.switch_page("pages/classwise.py").run()
    _quiet(app)
    assert len(app.info) == 1
    app.switch_page("pages/risk_coverage.py").run()
    assert "Keeping" in _words(_quiet(app))


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["top-r", "class"])
def test_the_cumulative_plot_follows_the_reduction(reduction):
    app = _app(page="cumulative")
    app.selectbox(key="reduction").set_value(reduction).run()
    words = _words(_quiet(app))
    assert "KS error" in words
    assert "A calibrated model stays within" in words
    assert len(app.get("plotly_chart")) == 7


@pytest.mark.slow
def test_a_class_leads_to_its_own_diagram():
    app = _upload(_app(page="data"), "mine.csv", GOOD)
    app.switch_page("pages/classwise.py").run()
    assert "is outside the range that a calibrated model would show" in _words(_quiet(app))
    app.session_state["calviz.selected"] = Predicted("fox")
    app.run()
    assert "Class fox, 1 row" in _words(_quiet(app))
    app.button(key="calviz.class.open").click().run()
    assert app.selectbox(key="class").value == "fox"
    # The link names the class, and so opens on it.
    assert app.query_params["reduction"] == "class"
    assert app.query_params["class"] == "fox"
    app.switch_page("pages/reliability.py").run()
    assert "class 'fox' against the rest" in _words(_quiet(app))


@pytest.mark.slow
def test_a_link_restores_both_curves_and_is_copied_with_both():
    app = _app("data=breast_cancer")
    app.switch_page("pages/reliability.py")
    app.query_params["curves"] = ["kernel", "isotonic (CORP)"]
    assert _quiet(app.run()).segmented_control(key="curves").value == ["kernel", "isotonic"]
    # The browser copies its own address, which has both.
    assert app.run().query_params["curves"] == ["kernel", "isotonic (CORP)"]


@pytest.mark.slow
def test_the_classes_of_many_rows_are_work_that_can_be_stopped(monkeypatch):
    monkeypatch.setattr(errors, "MANY_ROWS", 100)
    monkeypatch.setattr(errors, "PATIENCE", 0.0)
    may_go_on = threading.Event()
    compute = ClassBars.compute

    def slow(*args, **options):
        while not may_go_on.is_set():
            checkpoint("resampling the rows: 0 of 1,000")
        return compute(*args, **options)

    monkeypatch.setattr(ClassBars, "compute", slow)
    app = _quiet(_app(page="classwise"))
    assert "class by class" in _words(app)
    (job,) = app.session_state["calviz.jobs"][errors.PLACE].values()
    app.button(key="calviz.job.stop").click().run()
    job.wait(10)
    assert "Stopped before" in _quiet(app.run()).info[0].value
    may_go_on.set()
    app.button(key="calviz.classes.again").click().run()
    (job,) = app.session_state["calviz.jobs"][errors.PLACE].values()
    job.wait(60)
    assert "10 predicted classes" in _words(_quiet(app.run()))


@pytest.mark.slow
def test_the_table_of_classes_is_in_the_order_of_the_bars():
    app = _app(page="classwise")
    # By what is outside the range; inside it, by the error.
    shown = _table(_quiet(app))[["outside", "value"]].fillna(0)
    order = [tuple(row) for row in shown.to_numpy()]
    assert order == sorted(order, reverse=True)
    app.segmented_control(key="order").set_value("value").run()
    by_error = _table(app)["value"].to_list()
    assert by_error == sorted(by_error, reverse=True)
    app.segmented_control(key="order").set_value("class").run()
    assert _table(app)["class"].to_list() == [str(k) for k in range(10)]
    # The numbers are those of the view: here by true class, the rows of each taken by hand.
    app.segmented_control(key="classes_by").set_value("true-class").run()
    rows = load("sample_data/digits.parquet", model="MLP").split("test")
    gap = rows.probs.max(axis=1) - (rows.probs.argmax(axis=1) == rows.labels)
    by_hand = [100 * gap[rows.labels == k].mean() for k in range(10)]
    assert _table(app)["value"].to_list() == pytest.approx(by_hand)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "name"), [("equal-mass", " (equal mass)"), ("", "")])
def test_numbers_are_of_the_bins_that_are_drawn_on_every_page(scheme, name):
    def value(words):
        return re.search(rf"\*\*MCE{re.escape(name)} ([\d.]+) points", words)[1]

    app = _quiet(_app(f"scheme={scheme}" if scheme else "", "reliability"))
    drawn = re.search(r"\*\*ECE[^*]*? ([\d.]+) points", _words(app))[1]
    largest = value(_words(app))
    app.switch_page("pages/metrics.py").run()
    table = _table(_quiet(app)).set_index("metric")["value"].to_dict()
    assert 100 * table[f"ECE{name} (points)"] == pytest.approx(float(drawn), abs=0.051)
    assert 100 * table[f"MCE{name} (points)"] == pytest.approx(float(largest), abs=0.051)
    app.switch_page("pages/overview.py").run()
    cards = {m.label: m.value for m in _quiet(app).metric}
    assert next(v for k, v in cards.items() if k.startswith("ECE")) == drawn


@pytest.mark.slow
@pytest.mark.parametrize("by", ["share", "threshold", "error"])
@pytest.mark.parametrize("ranking", ["confidence", "entropy"])
def test_a_slider_says_what_a_threshold_does(by, ranking):
    app = _app("data=breast_cancer", "risk_coverage")
    app.segmented_control(key="ranking").set_value(ranking).run()
    app.segmented_control(key="by").set_value(by).run()
    assert "the accuracy is" in _words(_quiet(app))


@pytest.mark.slow
def test_curves_are_drawn_over_the_bars():
    app = _app("data=breast_cancer", "reliability")
    app.segmented_control(key="curves").set_value(["kernel", "isotonic"]).run()
    assert "Does the choice of bins matter?" in _words(_quiet(app))


def test_pages_have_their_question():
    assert len({page.question for page in PAGES}) == len(PAGES)


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


def test_the_page_over_time_names_columns_that_are_recognised():
    page = (ROOT / "pages/over_time.py").read_text(encoding="utf-8")
    names = re.split(", | or ", re.search("is called (.+), for example", page)[1])
    assert len(names) == 4
    for name in names:
        content = f"{name},label,p\n" + "2024-05-01,1,0.9\n2024-05-02,0,0.2\n" * 9
        assert read(content.encode(), name="mine.csv").recognition.time_column == name


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


@pytest.mark.slow
def test_a_click_while_the_first_file_is_read_does_not_lose_it(tmp_path, monkeypatch):
    file = tmp_path / "mine.csv"
    file.write_text("label,p_a,p_b\n" + "a,0.8,0.2\nb,0.4,0.6\n" * 20)
    monkeypatch.setenv("CALVIZ_OPEN", str(file))
    reading = open_files.read
    calls = []

    def interrupted(*args, **options):
        calls.append(args)
        if len(calls) == 1:
            raise StopException
        return reading(*args, **options)

    monkeypatch.setattr(open_files, "read", interrupted)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.run()
    app.run()
    assert len(calls) == 2
    assert not app.exception
    assert app.sidebar.selectbox[0].value == next(iter(app.session_state["calviz.files"]))


@pytest.mark.slow
def test_no_widget_has_a_default_and_a_value_set_beside_it(monkeypatch):
    # streamlit warns of two values once per process, in the log of the server only.
    from streamlit.elements.lib import policies
    from streamlit.runtime.state import get_session_state

    twice = []

    def check(default_value, key, writes_allowed=True):
        is_set = key is not None and get_session_state().is_new_state_value(key)
        twice.extend([key] if is_set and default_value is not None else [])

    monkeypatch.setattr(policies, "check_session_state_rules", check)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 11, 200) / 10
    cells = zip(
        np.where(rng.random(200) < first, "a", "b"), first, (1 - first).round(1), strict=True
    )
    content = "label,p_a,p_b,split\n" + "".join(
        f"{label},{a:.1f},{b:.1f},{'test' if i % 2 else 'cal'}\n"
        for i, (label, a, b) in enumerate(cells)
    )
    app = _upload(_app("bins=4"), "zeros.csv", content.encode())
    for page in ("learning_curve", "overview", "learning_curve", "recalibrate"):
        app = _quiet(app.switch_page(f"pages/{page}.py").run())
        zeros = [w for w in app.button_group if w.key == "zeros"]
        if zeros and page == "learning_curve":
            zeros[0].set_value("own").run()
    assert "read as 0.01 by the methods" in _words(app)
    link = _app(f"data={app.query_params['data'][0]}&bins=7&scheme=equal-width")
    _quiet(_upload(link, "zeros.csv", content.encode()))
    assert link.number_input(key="bins").value == 7
    assert twice == []


def test_chosen_bins_are_in_the_link_and_end_visibly_where_the_bins_change():
    app = _quiet(_app("data=digits&model=MLP&bin=13-15", "reliability"))
    assert "Bins 13 to 15 (0.80, 1.00]" in _words(app)
    # The rows of a range are those of its bins, spread over classes and slices that add up to them.
    assert [tab.label for tab in app.tabs] == [
        "Rows",
        "By predicted class",
        "By true class",
        "By condition",
    ]
    spread = next(f.value for f in app.dataframe if "of the selection" in f.value.columns)
    assert spread["of the selection"].sum() == pytest.approx(100)
    assert spread["rows"].sum() == 176 + 329 + 2_828
    app.number_input(key="bins").set_value(20).run()
    assert "Bins 13 to 15" not in _words(_quiet(app))
    assert "selected" not in app.query_params
    assert "ended: the scores or the bins have changed." in _words(app)
    # The table's tick went with it: it is another table.
    assert app.session_state["calviz.selected.turns"]["reliability.bins"] > 0
