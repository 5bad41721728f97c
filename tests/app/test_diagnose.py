"""The tabs of Diagnose."""

import re
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from calviz.app import diagnose_classes, diagnose_groups, rows_shown, screen
from calviz.app.selection import Bins, Predicted
from calviz.core.blocks import Factor, checkpoint
from calviz.core.entry_specs import FAMILIES, METRICS
from calviz.core.predictions import Predictions
from calviz.data import load, read
from calviz.figures.class_bars import ClassBars
from calviz.sample.losses import part_numbers
from calviz.sample.sample import Sample
from tests.app.pages import (
    GOOD,
    PATIENCE,
    first_table,
    helps_of,
    open_page,
    quiet,
    text_of,
    unfold,
    upload,
)
from tests.inputs.borderline import FILES

# ---- The page Reliability


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["equal-mass", "sturges"])
def test_the_ece_shown_is_of_the_bins_drawn(scheme):
    app = open_page(f"scheme={scheme}", "reliability")
    quiet(app)
    assert "**ECE" in text_of(app)


@pytest.mark.slow
def test_curves_are_drawn_over_the_bars():
    app = open_page("data=breast_cancer", "reliability")
    app.segmented_control(key="curves").set_value(["kernel", "isotonic"]).run()
    # What is closed is not computed.
    assert "From 2 to 100 bins of equal" not in text_of(quiet(app))
    assert "From 2 to 100 bins of equal" in text_of(
        quiet(unfold(app, "Does the choice of bins matter?"))
    )


@pytest.mark.slow
def test_a_link_restores_both_curves_and_is_copied_with_both():
    app = open_page("data=breast_cancer")
    app.query_params["curves"] = ["kernel", "isotonic (CORP)"]
    assert quiet(app.open("reliability")).segmented_control(key="curves").value == [
        "kernel",
        "isotonic",
    ]
    # The browser copies its own address, which has both.
    assert app.run().query_params["curves"] == ["kernel", "isotonic (CORP)"]


@pytest.mark.slow
def test_chosen_bins_are_in_the_link_and_end_visibly_where_the_bins_change():
    app = quiet(open_page("data=digits&model=MLP&bin=13-15", "reliability"))
    assert "Bins 13 to 15 (0.80, 1.00]" in text_of(app)
    # The title has the gap, the line below it the rest.
    assert "points too high" in app.title[0].value
    assert "Mean confidence" in text_of(app)
    assert "Furthest off on new rows between 0.87 and 0.93 (" not in text_of(app)
    # The rows of a range are those of its bins, spread over classes and slices that add up to them.
    assert [tab.label for tab in app.tabs][:4] == [
        "Rows",
        "By predicted class",
        "By true class",
        "By condition",
    ]
    unfold(app, "By condition")
    spread = next(f.value for f in app.dataframe if "of the selection" in f.value.columns)
    assert spread["of the selection"].sum() == pytest.approx(100)
    assert spread["rows"].sum() == 176 + 329 + 2_828
    app.number_input(key="bins").set_value(20).run()
    assert "Bins 13 to 15" not in text_of(quiet(app))
    assert "selected" not in app.query_params
    assert "ended: the scores or the bins have changed." in text_of(app)
    # The table's tick went with it: it is another table.
    assert app.session_state["calviz.selection"].turns["reliability.bins"] > 0


@pytest.mark.slow
def test_groups_and_selected_rows_have_the_same_columns_and_slices():
    """Columns with a different value in each row are not offered; numbers are in the intervals that Groups shows."""
    rng = np.random.default_rng(0)
    p, ages, premiums = rng.random(600), rng.integers(18, 90, 600), rng.random(600)
    labels = rng.random(600) < p
    columns = zip(labels, p, 100_000 + 7 * np.arange(600), ages, premiums, strict=True)
    rows = [f"{y:d},{s:.4f},{n},R{n},{age},{euro:.5f}" for y, s, n, age, euro in columns]
    file = "\n".join(["label,p,policy,ref,age,premium", *rows]).encode()
    app = quiet(upload(open_page(page="data"), "ages.csv", file).open("slices"))
    (groups,) = (m for m in app.multiselect if m.key == "calviz.groups.slice-columns")
    assert groups.options == ["age (number)", "premium (number)", "score (above a cut)"]
    assert groups.value == ["age", "premium", "score"]
    assert "different value" not in text_of(app)
    app.session_state["calviz.selection"].select(Bins(0, 7), by="")
    app = quiet(app.open("reliability"))
    tabs = [tab.label for tab in app.tabs if tab.label.startswith("By ")]
    assert tabs == ["By predicted class", "By true class", "By age", "By premium"]
    for tab in tabs[2:]:
        spread = next(
            f.value for f in unfold(app, tab).dataframe if "of the selection" in f.value.columns
        )
        assert len(spread) <= 10
        assert all(re.match(r"[≤>(]", value) for value in spread["value"])
        app.session_state["rows-by"] = "Rows"
        app.run()


def test_a_worst_bin_of_the_other_view_of_two_classes_is_not_that_of_the_bins_drawn():
    # Nearly all probabilities are too high, which cancels in the top label: the verdict speaks of the positive class.
    rng = np.random.default_rng(1)
    z = rng.normal(0, 1.5, 1_000)
    labels = rng.random(1_000) < 1 / (1 + np.exp(-(z - 0.8)))
    rows = [f"{int(y)},{1 / (1 + np.exp(-s)):.4f}" for y, s in zip(labels, z, strict=True)]
    file = "\n".join(["label,p", *rows]).encode()
    app = quiet(upload(open_page(page="data"), "high.csv", file).open("reliability"))
    assert "\nFurthest off on new rows between " in text_of(app)
    app.button(key="calviz.other_view").click().run()
    words = text_of(quiet(app))
    assert "this page looks at the top label" in words
    assert "points too high: mean score" in words.replace("\u00a0", " ")
    assert " Seen by the top label, " in words
    assert "Furthest off on new rows between " not in words


# ---- The page Class-wise


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
def test_of_a_rare_event_the_classes_are_those_of_its_probability():
    rng = np.random.default_rng(1)
    p = 1 / (1 + np.exp(3.4 - 1.2 * rng.normal(0, 1, 4_000)))
    hits = rng.random(p.size) < np.minimum(1.7 * p, 1)
    rows = [f"{'yes' if y else 'no'},{s:.4f}" for y, s in zip(hits, p, strict=True)]
    content = "\n".join(["label,p", *rows]).encode()
    app = quiet(upload(open_page(page="data"), "rare.csv", content).open("classwise"))
    words = text_of(app)
    assert app.segmented_control(key="classes_by").value == "one-vs-rest"
    assert "predicted class" not in app.title[0].value
    assert "furthest &#39;yes&#39;" in app.title[0].value
    (share,) = re.findall("'yes', (.*) % of the rows, is seldom or never the more probable", words)
    assert float(share) == pytest.approx(100 * hits.mean(), abs=0.1)
    assert "What is taken for what?" not in words
    app.session_state["calviz.selection"].rule = Predicted("yes")
    assert "On all rows: mean probability minus frequency is −" in text_of(quiet(app.run()))


@pytest.mark.slow
def test_a_class_leads_to_its_own_diagram():
    app = upload(open_page(page="data"), "mine.csv", GOOD)
    app.open("classwise")
    assert "is outside the range that a calibrated model would show" in text_of(quiet(app))
    app.session_state["calviz.selection"].rule = Predicted("fox")
    app.run()
    words = text_of(quiet(app))
    assert "**Class fox**" in words
    assert "On its 1 row: accuracy " in words
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
    # By how far a class is outside the range; inside it, by the size of the error.
    shown = first_table(quiet(app))[["outside", "value"]].fillna(0).abs()
    order = [tuple(row) for row in shown.to_numpy()]
    assert order == sorted(order, reverse=True)
    app.segmented_control(key="order").set_value("value").run()
    by_error = first_table(app)["value"].abs().to_list()
    assert by_error == sorted(by_error, reverse=True)
    app.segmented_control(key="order").set_value("class").run()
    assert first_table(app)["class"].to_list() == [str(k) for k in range(10)]
    # The numbers are those of the view: here by true class, the rows of each taken by hand.
    app.segmented_control(key="classes_by").set_value("true-class").run()
    rows = load("sample_data/digits.parquet", model="MLP").split("test")
    gap = rows.probs.max(axis=1) - (rows.probs.argmax(axis=1) == rows.labels)
    by_hand = [100 * gap[rows.labels == k].mean() for k in range(10)]
    assert first_table(app)["value"].to_list() == pytest.approx(by_hand)
    # Against the rest, probabilities are too high for some classes and too low for others: the furthest outside first.
    app.segmented_control(key="order").set_value("beyond").run()
    app.segmented_control(key="classes_by").set_value("one-vs-rest").run()
    outside = first_table(app)["outside"].dropna()
    assert {*np.sign(outside)} == {-1, 1}
    assert outside.abs().is_monotonic_decreasing


# ---- The page Slices


def lines(scores_near_one):
    """Two values of a group: scores of 0.999 with a mistake or two, and scores of 0.6 that are right in 6 of 10 rows."""
    yield "label,p_a,p_b,site"
    for i in range(scores_near_one):
        yield f"{'b' if i < 3 else 'a'},0.999,0.001,north"
    for i in range(200):
        yield f"{'a' if i % 10 < 6 else 'b'},0.6,0.4,south"


@pytest.mark.slow
def test_a_slice_that_is_off_though_its_interval_contains_0_is_explained():
    # Three misses of 500 where half a miss is expected: p = 0.014 for a Poisson number, while the interval reaches 0.
    app = upload(open_page(page="data"), "mine.csv", "\n".join(lines(500)).encode())
    app = quiet(app.open("slices"))
    app.number_input(key="calviz.groups.fdr").set_value(20).run()
    assert "Near 0 or 1 a few surprises rule that out" in helps_of(quiet(app))
    table = next(t.value for t in app.dataframe if "adjusted" in t.value.columns)
    north = table[table["slice"] == "site = north"].iloc[0]
    low, high = (float(end.replace("−", "-")) for end in north["95 % interval"].split(" to "))
    assert north["off"] == "yes"
    assert low <= 0 <= high


@pytest.mark.slow
def test_a_text_that_hardly_repeats_is_offered_and_not_chosen():
    rng = np.random.default_rng(0)
    rows = zip(rng.integers(2, size=600), rng.random(600), range(600), strict=True)
    text = "".join(f"{y},{p:.4f},{'ns'[i % 2]},letter number {i % 590}\n" for y, p, i in rows)
    app = upload(open_page(page="data"), "mine.csv", f"label,prob,site,note\n{text}".encode())
    columns = quiet(app.open("slices")).multiselect(key="calviz.groups.slice-columns")
    assert columns.options == ["site (2 values)", "note (590 values)", "score (above a cut)"]
    assert columns.value == ["site", "score"]
    assert "left out" not in text_of(app)


@pytest.mark.slow
def test_an_interval_of_a_number_is_drawn_and_can_be_looked_at_alone():
    rng = np.random.default_rng(0)
    score, income = rng.uniform(0.2, 0.8, 1_500), rng.lognormal(size=1_500)
    label = (rng.random(1_500) < score - 0.2 * (income > np.quantile(income, 0.9))).astype(int)
    text = "".join(f"{y},{p:.4f},{x:.4f}\n" for y, p, x in zip(label, score, income, strict=True))
    app = upload(open_page(page="data"), "mine.csv", f"label,prob,income\n{text}".encode())
    app = quiet(app.open("slices"))
    # One place is named.
    assert "multicalibration error" not in text_of(app)
    assert len(set(re.findall(r"[Ww]here (income > [\d.]*\d)", text_of(app)))) == 1
    assert app.selectbox(key="slices-along").value == "income"
    app.selectbox(key="slice").set_value("income").run()
    values = app.selectbox(key="level").options
    # The deciles, and both sides of each edge.
    assert len([v for v in values if v.startswith("(")]) == 8
    app.selectbox(key="level").set_value(values[9]).run()
    app = quiet(app.open("overview"))
    assert "150 rows" in text_of(app)


@pytest.mark.slow
def test_the_columns_of_one_file_do_not_leave_another_without_columns():
    app = quiet(open_page(page="slices"))
    assert app.multiselect(key="calviz.groups.slice-columns").value == [
        "condition",
        "predicted class",
    ]
    lines = "".join(f"{i % 2},0.{3 + i % 5},{'xy'[i % 3 > 0]}\n" for i in range(210))
    app = upload(app.open("data"), "mine.csv", f"label,prob,site\n{lines}".encode())
    app.query_params["slice-columns"] = "condition"
    app = quiet(app.open("slices"))
    assert app.multiselect(key="calviz.groups.slice-columns").value == ["site", "score"]


@pytest.mark.slow
def test_slices_that_only_carry_what_all_rows_have_are_said_to():
    score = np.linspace(0.3, 0.9, 1_500)
    rows = zip(np.arange(1_500) % 10 < 10 * (score - 0.2), score, np.arange(1_500) % 3, strict=True)
    lines = "".join(f"{int(y)},{p:.4f},{'xyz'[k]}\n" for y, p, k in rows)
    app = upload(open_page(page="data"), "mine.csv", f"label,prob,site\n{lines}".encode())
    app = quiet(app.open("slices"))
    assert "no slice is found off beyond that" in app.title[0].value
    assert "slices are off" not in app.title[0].value
    assert "6 slices are off, not found to differ from other rows with such scores." in text_of(app)


@pytest.mark.slow
def test_a_link_to_a_view_holds_in_place_of_the_view_chosen_before():
    app = quiet(open_page("classes_by=one-vs-rest", "classwise"))
    app = quiet(app.open("overview"))
    app.query_params["classes_by"] = "by predicted class"
    app = quiet(app.open("classwise"))
    assert app.segmented_control(key="classes_by").value == "predicted-class"
    # The words of Overview.
    assert app.title[0].value.startswith("Of 10 predicted classes the model is overconfident on 4")


@pytest.mark.slow
def test_chosen_edges_cut_a_number_everywhere_and_bad_ones_leave_the_last():
    rng = np.random.default_rng(1)
    score, age = rng.uniform(0.2, 0.8, 600), rng.integers(18, 90, 600)
    label = (rng.random(600) < score).astype(int)
    text = "".join(f"{y},{p:.4f},{x}\n" for y, p, x in zip(label, score, age, strict=True))
    app = upload(open_page(page="data"), "mine.csv", f"label,prob,age\n{text}".encode())
    app = quiet(app.open("slices"))
    field = "calviz.edges.age"
    assert app.text_input(key=field).value == ""

    def sliced():
        return set(next(t.value for t in app.dataframe if "adjusted" in t.value.columns)["slice"])

    by_hand = {"age ≤ 30", "age in (30, 50]", "age in (50, 65]", "age > 65"}
    app.multiselect(key="calviz.groups.slice-columns").set_value(["age"]).run()
    app.text_input(key=field).set_value("30, 50,65").run()
    assert sliced() == by_hand
    assert app.query_params["cuts"] == "age=30,50,65"
    app.text_input(key=field).set_value("50, 30").run()
    assert "must be ascending numbers" in app.warning[0].value
    assert sliced() == by_hand
    assert app.query_params["cuts"] == "age=30,50,65"
    # The rows of one of them, on another page.
    app.selectbox(key="slice").set_value("age").run()
    app.selectbox(key="level").set_value("> 65").run()
    assert f"{(age > 65).sum()} rows" in text_of(quiet(app.open("overview")))
    app = quiet(app.open("slices"))
    app.text_input(key=field).set_value("").run()
    assert len(sliced()) == 10
    assert not app.warning
    assert "cuts" not in app.query_params


# ---- The page Metrics


@pytest.mark.slow
def test_the_table_has_every_metric_and_its_error_bars():
    app = quiet(open_page("data=breast_cancer", "metrics"))
    table = first_table(app)
    # Every metric has a line; those without a value are named below the table.
    lines = [f"{text} (" for text in table["metric"]]
    names = {m.key: m.label for m in METRICS} | {"brier_binary": "Brier score"}
    without = [name for name in names.values() if not any(t.startswith(f"{name} (") for t in lines)]
    assert 0 < len(without) == len(METRICS) - len(table)
    assert all(label in text_of(app) for label in without)
    # Written shorter here, so that the table fits.
    assert set(table["family"]) <= {name.replace(" and ", ", ") for name in FAMILIES}
    # The same text as on the cards.
    (ece,) = table["95 % interval"][table["metric"] == "ECE (points)"]
    assert " to " in ece


@pytest.mark.slow
@pytest.mark.parametrize("width", ["narrow", "small"])
def test_on_a_phone_or_small_window_the_interval_stands_beside_the_value(width, monkeypatch):
    drawn, table = [], screen.table
    monkeypatch.setattr(screen, "width_class", lambda: width)
    monkeypatch.setattr(screen, "table", lambda one, **how: drawn.append(one) or table(one, **how))
    quiet(open_page("data=breast_cancer&family=Binned", "metrics"))
    assert "95 % interval" not in drawn[-1].data
    assert re.search(r">\d+\.\d+ \(\d+\.\d+ to \d+\.\d+\)<", drawn[-1].to_html())


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
    words = text_of(quiet(app))
    promise = "3 rows cannot show that at most 5.0 % of the predictions kept are wrong"
    assert promise in words.replace("\xa0", " ")
    app.segmented_control(key="by").set_value("share").run()
    assert "Keeping" in text_of(quiet(app))


# ---- Folds and sites


@pytest.mark.slow
def test_folds_are_shown_and_sites_that_are_chosen():
    rng = np.random.default_rng(0)
    z = rng.normal(size=800)
    hit = (rng.random(800) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-z))
    lines = [f"{i % 4},ward {i % 5},{p[i]:.4f},{hit[i]}" for i in range(800)]
    text = "\n".join(["fold,ward,p,y", *lines, "0,attic,0.5,1"])
    app = upload(open_page(), "wards.csv", text.encode()).open("slices")
    app = unfold(app, "Folds and sites")
    assert "No fold of 4 differs from the others" in text_of(quiet(app))
    app.selectbox(key="sites").set_value("ward").run()
    words = text_of(quiet(app))
    assert "The 5 sites do not differ beyond chance" in words
    assert (
        "Tested against each other, at 5 %; off in Groups is by default against a calibrated model, at 0.5 %"
        in words
    )
    assert "Left out: attic (1 row)." in words
    app.open("recalibrate")
    app.segmented_control(key="division").set_value("folds").run()
    assert app.toggle(key="own-folds").value


def test_values_of_weighted_rows_add_up_to_what_is_said_of_the_selection():
    rng = np.random.default_rng(0)
    score = rng.random(600)
    labels = (rng.random(600) < score).astype(int)
    country = np.array(["AT", "BR", "CL"])[rng.integers(0, 3, 600)]
    weights = np.where(labels, 1.0, 4.0)
    data = Predictions(probs=score, labels=labels, weights=weights, groups={"country": country})
    sample = Sample.of(data)
    rows = np.flatnonzero(score > 0.6)
    some = part_numbers(sample, rows)
    factors = (data.sliced("country"), Factor(data.labels, data.class_names))
    for factor in factors:
        table = rows_shown.spread(factor, rows, SimpleNamespace(sample=sample))
        share = table["of the selection"] / 100
        assert table["rows"].sum() == some.rows == rows.size
        assert share.sum() == pytest.approx(1)
        assert table["of all rows"].sum() == pytest.approx(100)
        assert share @ table["mean score"] == pytest.approx(some.score)
        assert share @ table["observed"] == pytest.approx(some.observed)
        assert share @ table["gap"] == pytest.approx(100 * some.gap)


@pytest.mark.parametrize(("score", "first"), [(0.4, 0), (0.1, 1)])
def test_rows_with_the_error_of_their_selection_come_first(monkeypatch, score, first):
    p, labels = np.array([score, score + 0.1] * 20), np.array([1] + [0] * 38 + [1])
    if first:
        labels[::4] = 1
    sample = Sample.of(Predictions(probs=p, labels=labels), reduction="positive")
    shown, said = [], []
    monkeypatch.setattr(rows_shown.tables_and_cards, "rows_table", lambda _, rows, *__: rows)
    monkeypatch.setattr(rows_shown.screen, "table", lambda rows, **_: shown.append(rows))
    monkeypatch.setattr(rows_shown.st, "caption", said.append)
    settings = SimpleNamespace(sample=sample, reduction=sample.reduction, row_numbers=None)
    rows_shown._table(settings, np.arange(40))
    worst = shown[0][0]
    assert labels[worst] == first
    assert p[worst] == (p.max() if not first else p.min())
    assert said == [f"Furthest {'below' if first else 'above'} their outcome first."]


def test_empty_cells_are_no_value_of_a_column():
    rows = "".join(f"0.{i % 9 + 1},{i % 2},{['a', 'b', ''][i % 3]}\n" for i in range(60))
    data = read(f"p,label,ward\n{rows}".encode()).first
    assert diagnose_groups._kind(data, "ward") == "2 values"
