"""Slices of numbers, dates and texts of many values."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

import calviz
from benchmarks.claims import too_few, too_many
from benchmarks.claims.slices import Features, of_hours, one_region
from benchmarks.record_segments import segment_rows
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.features import cut_at, edge_text
from calviz.core.predictions import sliceable_columns, usual_columns
from calviz.data import read
from calviz.figures.slice_gaps import FeatureGap, SliceGaps, features_drawn
from calviz.recalibrators.segments import Condition
from calviz.sample.multicalibration import multicalibration_words, range_exceeds
from calviz.sample.sample import Sample, on_days, rows_where
from calviz.sample.slices import slices, usual_slices
from tests.inputs.command_line import run

RECORDED = json.loads(Path("tests/reference/recorded_segments.json").read_text(encoding="utf-8"))


def data_of(score, hit, **columns):
    return calviz.Predictions(probs=np.asarray(score, float), labels=np.asarray(hit), **columns)


def test_within_noise_pages_and_reports_say_nothing_of_all_segments():
    rng = np.random.default_rng(0)
    score = rng.beta(0.5, 0.5, 2_000)
    groups = {"g": rng.integers(4, size=2_000)}
    right = data_of(score, rng.random(2_000) < score, groups=groups)
    assert "within noise" in calviz.multicalibration(right).reading()
    assert multicalibration_words(Sample(right), ("g",)) == ("", "")
    wrong = data_of(score, rng.random(2_000) < 0.5, groups=groups)
    assert "beyond noise" in multicalibration_words(Sample(wrong), ("g",))[0]


@pytest.mark.parametrize(
    ("edge", "following", "text"),
    [
        (5.0, 6.0, "5"),
        (31.984032, 31.9861, "31.985"),
        (31.984032, 40.0, "32"),
        (31.984032, 31.984033, "31.984032"),
        (-0.05123, -0.0507, "-0.0512"),
        (0.0, 1e-9, "0"),
    ],
)
def test_an_edge_has_as_few_digits_as_split_the_same_values(edge, following, text):
    assert edge_text(edge, following) == text
    assert edge <= float(text) < following


def test_scores_that_are_off_as_a_whole_need_no_column_with_slices():
    rng = np.random.default_rng(0)
    score = rng.beta(0.5, 0.5, 400)
    data = data_of(score, rng.random(400) < 0.5, groups={"id": np.arange(400)})
    found = calviz.multicalibration(data)
    assert (found.measured, found.beyond) == (1, None)
    assert "No segment is found off beyond that." in found.reading()


@pytest.mark.parametrize("name", ["number", "ties", "holes"])
def test_edges_means_and_errors_are_those_of_model_diagnostics(name):
    rows, recorded = segment_rows(), RECORDED["bias"][name]
    data = data_of(rows["score"], rows["label"], numbers={name: rows[name]})
    tested = slices(data, [name], reduction="positive", min_rows=2)
    assert tested.cuts[name].edges == pytest.approx(recorded["edges"], abs=1e-10)
    order = [*tested.cuts[name].labels]
    if name == "holes":  # there, missing values come first
        order = [order[-1], *order[:-1]]
    found = {s.where[0][1]: s for s in tested.slices}
    shown = [found[label] for label in order if label in found]
    assert [s.gap for s in shown] == pytest.approx(recorded["mean"], abs=1e-10)
    # The peer divides by the rows less one.
    n = np.array([s.rows for s in shown])
    error = [(s.interval.high - s.gap) / ndtri(0.975) for s in shown]
    assert error * np.sqrt(n / (n - 1)) == pytest.approx(recorded["standard_error"], abs=1e-10)


def test_each_slice_holds_the_rows_of_its_interval_and_where_names_them():
    rng = np.random.default_rng(0)
    x = np.round(rng.exponential(3, 2_000), 1)
    x[:100] = np.nan
    data = data_of(rng.random(2_000), rng.integers(0, 2, 2_000), numbers={"x": x})
    edges = np.array(data.cuts["x"].edges)
    for s in slices(data, ["x"], min_rows=2).slices:
        ((_, label),) = s.where
        at = data.cuts["x"].labels.index(label)
        low, high = np.r_[-np.inf, edges][at : at + 1], np.r_[edges, np.inf][at : at + 1]
        own = np.isnan(x) if label == "missing" else (x > low) & (x <= high)
        assert s.rows == own.sum()
        assert np.array_equal(rows_where(data, s.where), own)
        # Rows that are selected are cut as all rows are.
        part = Sample.of(data.take(np.arange(500)), where=s.where)
        assert part.data.n == own[:500].sum()


def test_a_condition_may_name_all_on_one_side_of_an_edge():
    x = np.append(np.arange(100.0), np.nan)
    data = data_of(np.full(101, 0.5), np.arange(101) % 2, numbers={"x": x})
    sides = data.cuts["x"].sides
    assert sides["≤ 19"] == ("≤ 9", "(9, 19]")
    assert "≤ 9" not in sides  # an interval already
    for side, rows in (("≤ 19", x <= 19), ("> 69", x > 69)):
        np.testing.assert_array_equal(rows_where(data, (("x", side),)), rows)
    # Any other interval is one, too.
    for interval, rows in (("≤ 20", x <= 20), ("(3.5, 7]", (x > 3.5) & (x <= 7))):
        np.testing.assert_array_equal(rows_where(data, (("x", interval),)), rows)
    with pytest.raises(InputError, match="there is no '> 99' here"):
        rows_where(data, (("x", "> 99"),))
    with pytest.raises(InputError, match="there is no '> 2024-05-01' here"):
        rows_where(data, (("x", "> 2024-05-01"),))


def test_days_are_a_condition_of_rows_and_of_a_map():
    day = np.datetime64("2026-04-01") + np.arange(60)
    site = np.array(["a", "b"])[np.arange(60) % 2]
    data = data_of(np.full(60, 0.5), np.arange(60) % 2, groups={"site": site}, times=day)
    may = day >= np.datetime64("2026-05-01")
    since, until = "> 2026-04-30 23:59:59", "(2026-04-30 23:59:59, 2026-05-03 23:59:59]"
    where = (("site", "a"), (data.time_name, since))
    np.testing.assert_array_equal(rows_where(data, where), may & (site == "a"))
    assert rows_where(data, ((data.time_name, until),)).sum() == 3
    assert on_days(data, ("2026-05-01", ""), where) == where
    columns = {"site": site, data.time_name: day}
    conditions = [Condition.on(data, *each) for each in where]
    assert conditions[1].words == f"{data.time_name} since 2026-05-01"
    met = [condition.met(columns[condition.column.name])[0] for condition in conditions]
    np.testing.assert_array_equal(met[0] & met[1], may & (site == "a"))


def test_whole_numbers_dates_and_texts_of_a_group():
    n = 1_200
    rng = np.random.default_rng(1)
    age, day = rng.integers(18, 90, n), rng.integers(1, 60, n)
    date = np.datetime64("2024-01-01") + day
    german = [f"{d.day:02}.{d.month:02}.{d.year}" for d in date.tolist()]
    town = np.array([f"t{int(t)}" for t in rng.pareto(0.6, n) * 4])
    data = data_of(
        rng.random(n),
        rng.integers(0, 2, n),
        groups={"age": age, "day": date, "german": german, "town": town},
    )
    tested = slices(data, [*data.groups], min_rows=2, pairs=False)
    by = {
        c: {s.where[0][1]: s.rows for s in tested.slices if s.where[0][0] == c} for c in data.groups
    }
    assert len(by["age"]) == 10
    assert by["day"].keys() == by["german"].keys()
    first = data.cuts["day"].labels[0]
    assert by["day"][first] == (date <= np.datetime64(first.removeprefix("≤ "))).sum()
    values, counts = np.unique(town, return_counts=True)
    assert values.size > 50
    assert len(by["town"]) == 21
    assert sorted(by["town"].values())[-1] in (by["town"]["other"], counts.max())
    assert sum(by["town"].values()) == n
    assert rows_where(data, (("town", "other"),)).sum() == by["town"]["other"]
    # A value of the group itself still names its rows.
    assert rows_where(data, (("age", "40"),)).sum() == (age == 40).sum()


def test_what_cannot_be_cut_is_said_and_the_rest_goes_on():
    n = 400
    rng = np.random.default_rng(2)
    numbers = {
        "one": np.full(n, 3.0),
        "none": np.full(n, np.nan),
        "two": rng.integers(0, 2, n).astype(float),
        "endless": np.where(rng.random(n) < 0.5, np.inf, rng.normal(size=n)),
        "interval_p": rng.random(n),
    }
    groups = {
        "id": np.arange(n),
        "text": [f"text {i}" for i in range(n)],
        "rare": [f"r{i // 2}" for i in range(n)],
    }
    data = data_of(rng.random(n), rng.integers(0, 2, n), numbers=numbers, groups=groups)
    tested = slices(data, pairs=True)
    assert set(tested.skipped) == {
        "one has one value",
        "none has no values",
        "id has a different value in each row",
        "text has a different value in each row",
        "rare has no value with 50 rows or more",
    }
    assert {c for s in tested.slices for c, _ in s.where} == {"two", "endless", "score"}


def test_chosen_edges():
    rng = np.random.default_rng(3)
    age = rng.integers(18, 90, 1_000)
    data = data_of(rng.random(1_000), rng.integers(0, 2, 1_000), groups={"age": age, "s": age % 3})
    tested = slices(data, ["age"], edges={"age": [30, "50"]}, min_rows=2)
    rows = {s.where[0][1]: s.rows for s in tested.slices}
    assert rows == {
        "≤ 30": (age <= 30).sum(),
        "(30, 50]": ((age > 30) & (age <= 50)).sum(),
        "> 50": (age > 50).sum(),
    }
    for edges in ((), (3, 2), ("a",), (1, 1), ("nan",)):
        with pytest.raises(OptionError, match="must be ascending numbers or dates"):
            cut_at(edges, "age")
    with pytest.raises(OptionError, match="'age' can be cut at 200 edges at most, got 201"):
        cut_at(range(201), "age")
    with pytest.raises(OptionError, match="'age' holds numbers and cannot be cut at ≤ 2024-01-01"):
        slices(data, edges={"age": ["2024-01-01"]})
    with pytest.raises(OptionError, match="no group column 'x'"):
        slices(data, edges={"x": [1]})


def test_the_picture_holds_the_slices_in_the_order_of_the_number():
    sample = Features(3_000, 3, 1).draw(np.random.default_rng(4), off=0.2)
    tested = usual_slices(sample)
    assert features_drawn(tested)[0] == "x0"
    figure = FeatureGap.compute(tested, "x0")
    assert [s.where[0][1] for s in figure.shown] == list(tested.cuts["x0"].labels[:-1])
    assert figure.frame()["gap"].tolist() == [s.gap for s in figure.shown]
    assert "off beyond chance: ≤" in figure.describe()
    for theme in ("light", "dark"):
        line = figure.plot(theme=theme).data[1]
        assert list(line.y) == pytest.approx([100 * s.gap for s in figure.shown])
    with pytest.raises(OptionError, match="'c0' is not cut"):
        FeatureGap.compute(tested, "c0")


def test_a_file_of_features_on_the_command_line(tmp_path):
    sample = Features(3_000, 2, 1).draw(np.random.default_rng(5), off=0.25)
    data = sample.data
    path = tmp_path / "f.csv"
    rows = zip(
        data.labels, data.probs[:, 1], data.numbers["x0"], data.groups["c0"].values(), strict=True
    )
    path.write_text(
        "label,prob,income,site\n" + "".join(f"{y},{p:.5f},{x:.4f},s{c}\n" for y, p, x, c in rows)
    )
    done = run("slices", str(path), "--json", str(tmp_path / "s.json"))
    assert done.exit_code == 0
    assert "where income ≤ " in done.stdout
    # 20 slices are printed, or every one.
    every = run("slices", str(path), "--all").stdout
    assert ("--all shows" in done.stdout, "--all shows" in every) == (True, False)
    assert every.count(" in (") > done.stdout.count(" in (")
    first, *others = json.loads((tmp_path / "s.json").read_text())["slices"]
    assert first["slice"].startswith("income ≤ ")
    assert len(others) == 2 * (10 + 8) - 1  # each above a score, too
    assert run("slices", str(path), "--cut", "income").exit_code == 2
    audit = run("audit", str(path), "--markdown", str(tmp_path / "r.md"))
    assert audit.exit_code == 0
    assert "Along income" in (tmp_path / "r.md").read_text()


@pytest.mark.slow
def test_features_raise_few_false_alarms_and_find_a_decile_that_is_off():
    files = 30
    setting = Features(2_000, 20, 10)
    false = sum(
        bool(usual_slices(setting.draw(np.random.default_rng([6, i]))).off) for i in range(files)
    )
    assert false <= files * too_many(0.01, files)
    setting = Features(10_000, 20, 10)
    found = sum(setting.finds(np.random.default_rng([7, i])) for i in range(10))
    assert found >= 10 * too_few(0.8, 10)


def test_the_usual_columns_are_all_but_the_time():
    n = 100
    times = np.datetime64("2024-01-01") + np.arange(n)
    data = data_of(
        np.full(n, 0.5),
        np.arange(n) % 2,
        times=times,
        numbers={"x": np.arange(n) / 7},
        groups={"g": np.arange(n) % 2},
    )
    assert usual_columns(data) == ("g", "x")
    # Nor are rows sliced by the column of their clusters.
    named = replace(data, column_names={**data.column_names, "clusters": "x"})
    assert usual_columns(named) == ("g",)
    assert len(slices(data, ["time"], min_rows=2).slices) == 10


def test_what_another_model_predicts_is_no_usual_column():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([0.5] * 4, size=400)
    other = np.where(rng.random(400) < 0.7, probs.argmax(axis=1), rng.integers(4, size=400))
    folds = rng.integers(4, size=400)
    groups = {"predicted_by_b": other, "fold": folds}
    data = data_of(probs, rng.integers(4, size=400), groups=groups)
    assert {*groups} <= {*sliceable_columns(data)}
    assert "fold" in usual_columns(data)
    assert "predicted_by_b" not in usual_columns(data)


@pytest.mark.parametrize(
    ("text", "values", "usual"),
    [("asks again, see #{}", 150, False), ("asks again, see #{}", 90, True), ("FC {}", 150, True)],
)
def test_free_text_is_no_usual_column_but_can_be_chosen(text, values, usual):
    rows = [f'0.5,{i % 2},{"ab"[i % 3 == 0]},"{text.format(i % values)}"' for i in range(900)]
    data = read("\n".join(["p,y,g,remark", *rows]).encode(), name="x.csv").first
    assert usual_columns(data) == (("g", "remark") if usual else ("g",))
    assert "remark" in sliceable_columns(data)


# ---- Multicalibration


def test_the_error_over_three_segments_by_hand():
    # Group a: 20 rows at 0.5 with 16 hits, 6 more than said; b: 25 rows at 0.4 with 10 hits, as said. In the order of the scores, the
    # sums of hits minus scores are 0, then 6.
    score, hit = [0.5] * 20 + [0.4] * 25, [1] * 16 + [0] * 4 + [1] * 10 + [0] * 15
    result = calviz.multicalibration(
        data_of(score, hit, groups={"g": list("a" * 20 + "b" * 25)}),
        reduction="positive",
        min_rows=2,
    )
    found = {s.name: s for s in result.segments}
    assert list(found) == ["g = a", "all rows", "g = b"]
    assert [s.ecce for s in result.segments] == pytest.approx([6 / 20, 6 / 45, 0])
    assert [s.sigma for s in result.segments] == pytest.approx([6 / 5**0.5, 6 / 11**0.5, 0])
    assert result.mce == pytest.approx(6 / 5**0.5 * 11**0.5 / 45)
    # Scores of 0.5 have no skewness: eight normal tails, and three segments.
    p = 8 * norm.sf(6 / 5**0.5)
    assert found["g = a"].p_value == pytest.approx(p)
    assert result.noise_floor.p_value == pytest.approx(1 - (1 - p) ** 3)
    assert found["g = a"].gap == pytest.approx(-0.3)
    half = norm.ppf(1 - 0.025 / 3) * (0.8 * 0.2 / 20) ** 0.5
    assert found["g = a"].interval == pytest.approx((-0.3 - half, -0.3 + half))


def test_it_is_that_of_mcgrad():
    rows, recorded = segment_rows(), RECORDED["multicalibration"]
    data = data_of(
        rows["score"], rows["label"], groups={"site": rows["site"], "grade": rows["grade"]}
    )
    result = calviz.multicalibration(data, reduction="positive", min_rows=10)
    assert result.mce == pytest.approx(recorded["mce"], abs=1e-10)
    assert result.sigma == pytest.approx(recorded["mce_sigma"], abs=1e-10)
    assert {s.name for s in result.segments} == {
        name or "all rows" for name in recorded["segments"]
    }
    for s in result.segments:
        known = recorded["segments"]["" if not s.where else s.name]
        assert (s.ecce, s.sigma) == pytest.approx((known["ecce"], known["sigma"]), abs=1e-10)
        if known["p_value"] < 0.1:  # where the first term of the series is nearly all of it
            assert s.p_value == pytest.approx(known["p_value"], rel=0.01)


def test_the_noise_is_the_range_of_a_brownian_motion():
    rng = np.random.default_rng(8)
    walk = np.cumsum(rng.normal(size=(4_000, 2_000)) / 2_000**0.5, axis=1)
    spread = np.maximum(walk.max(axis=1), 0) - np.minimum(walk.min(axis=1), 0)
    for r in (1.0, 1.6, 2.2):
        # Between its steps, the motion goes a little further.
        assert range_exceeds(np.array(r)) == pytest.approx((spread + 0.026 > r).mean(), abs=0.025)


def test_weights_as_large_as_rows_and_what_cannot_be_measured():
    rng = np.random.default_rng(9)
    score = rng.uniform(0.2, 0.8, 600)
    hit, g = (rng.random(600) < score).astype(int), rng.integers(0, 3, 600)
    twice = np.repeat(np.arange(600), 2)
    weights = np.ones(600) + np.r_[np.ones(300), np.zeros(300)]
    plain = calviz.multicalibration(data_of(score, hit, groups={"g": g}))
    double = calviz.multicalibration(data_of(score[twice], hit[twice], groups={"g": g[twice]}))
    assert double.segments[0].ecce == pytest.approx(plain.segments[0].ecce)
    weighted = calviz.multicalibration(data_of(score, hit, groups={"g": g}, weights=weights))
    whole = next(s for s in weighted.segments if not s.where)
    order = np.argsort(score)
    path = np.r_[0, np.cumsum((weights * (hit - score))[order])] / weights.sum()
    assert whole.ecce == pytest.approx(np.ptp(path))
    with pytest.raises(NotAvailable, match="clustered rows"):
        calviz.multicalibration(data_of(score, hit, groups={"g": g}, clusters=g))
    with pytest.raises(NotAvailable, match="no segment has 50 rows"):
        calviz.multicalibration(data_of(score[:40], hit[:40], groups={"g": g[:40]}))
    with pytest.raises(NotAvailable, match="no group column"):
        calviz.multicalibration(data_of(score, hit))


@pytest.mark.slow
def test_hardly_any_calibrated_file_is_beyond_noise_and_a_segment_that_is_off_is():
    files, setting = 40, Features(2_000, 6, 4)
    false = sum(setting.alarms(np.random.default_rng([11, i])) for i in range(files))
    assert false <= files * too_many(0.01, files)
    off = Features(6_000, 3, 2).draw(np.random.default_rng(12), off=0.2)
    result = calviz.multicalibration(off)
    assert result.segments[0].name.startswith("x0 ≤ ")
    assert result.interval.low > 0
    assert "Largest for x0 ≤ " in result.reading()
    assert result.frame()["segment"].tolist() == [s.name for s in result.segments]
    assert "beyond noise" in repr(result)


@pytest.mark.parametrize("block", [60, 1 << 16])
@pytest.mark.parametrize("digits", [2, 17])
def test_each_segment_of_many_columns_is_that_of_its_rows_alone(digits, block, monkeypatch):
    monkeypatch.setattr("calviz.sample.multicalibration._BLOCK", block)
    rng = np.random.default_rng(13)
    n, columns = 1_900, [f"c{i}" for i in range(5)]
    score = np.round(rng.uniform(0.1, 0.9, n), digits)
    hit = rng.random(n) < score
    groups = {name: rng.integers(0, 3, n) for name in columns}
    data = data_of(score, hit.astype(int), groups=groups)
    found = {s.where: s for s in slices(data, columns, reduction="positive", min_rows=2).slices}
    # 15 single values, and 9 combinations of each of 10 pairs.
    assert len(found) == 15 + 90
    for where, s in found.items():
        rows = np.all([groups[name] == int(value) for name, value in where], axis=0)
        gaps = np.bincount(np.minimum((score[rows] * 15).astype(int), 14), (score - hit)[rows])
        assert s.rows == rows.sum()
        assert s.gap == pytest.approx((score - hit)[rows].mean(), abs=1e-12)
        if digits > 2:  # where no score lies at an edge
            assert s.ece == pytest.approx(np.abs(gaps).sum() / rows.sum(), abs=1e-12)
    result = calviz.multicalibration(data, reduction="positive", min_rows=2)
    assert result.measured == 1 + 15 + 90
    order = np.argsort(score, kind="stable")
    for s in result.segments:
        rows = np.all([groups[name] == int(value) for name, value in s.where] or [hit == hit], 0)
        mine = order[rows[order]]
        ends = np.append(np.flatnonzero(np.diff(score[mine])), mine.size - 1)
        path = np.append(0, np.cumsum((hit - score)[mine])[ends])
        assert s.ecce == pytest.approx(np.ptp(path) / mine.size, abs=1e-12)


def test_scores_that_are_off_as_a_whole_are_said_to_be_and_what_is_off_beyond_that():
    setting = Features(6_000, 3, 2)
    whole = calviz.multicalibration(setting.draw(np.random.default_rng(14), overconfident=0.3))
    assert whole.segments[0].where == ()
    assert whole.beyond is None
    assert "The scores are off as a whole: no segment" in whole.reading()
    assert whole.reading().endswith("No segment is found off beyond that.")
    more = setting.draw(np.random.default_rng(15), off=0.2, overconfident=0.3)
    result = calviz.multicalibration(more)
    assert result.segments[0].where == ()
    assert result.beyond.name.startswith("x0 ≤ ")
    # 20 points more are too high there, as far as scores allow it, and a tenth of that is in the gap of all rows already.
    assert result.beyond.interval.low < 0.16 < result.beyond.interval.high
    assert "Beyond that, most clearly x0 ≤ " in result.reading()
    assert "larger than for all rows with such scores" in result.reading()
    # Too high for high scores and too low for low ones: no gap.
    rng = np.random.default_rng(16)
    score = rng.uniform(0.1, 0.9, 8_000)
    hit = (rng.random(8_000) < 0.5 + 0.6 * (score - 0.5)).astype(int)
    cancelled = calviz.multicalibration(data_of(score, hit, groups={"g": np.arange(8_000) % 5}))
    assert "too high for some scores and too low for others; mean score" in cancelled.reading()


def test_columns_without_values_or_of_one_or_of_many_are_said_and_the_rest_goes_on():
    rng = np.random.default_rng(17)
    n = 600
    score = rng.uniform(0.2, 0.8, n)
    numbers = {
        "one": np.ones(n),
        "none": np.full(n, np.nan),
        "each": np.arange(n) * 0.5,
        "id": np.arange(n) * 7.0,
    }
    groups = {"empty": [""] * n, "site": np.arange(n) % 2, "fold": np.minimum(np.arange(n) // 3, 1)}
    data = data_of(score, rng.random(n) < score, groups=groups, numbers=numbers)
    tested = slices(data, pairs=False)
    different = "id has a different value in each row"
    assert tested.skipped == (
        "empty has no values",
        "one has one value",
        "none has no values",
        different,
    )
    assert {s.where[0][0] for s in tested.slices} == {"site", "fold", "each"}
    assert calviz.multicalibration(data).skipped == tested.skipped
    assert calviz.folds(data).left_out == ("0 (3 rows)",)
    assert calviz.sites(data, "fold").left_out == ("0 (3 rows)",)
    with pytest.raises(OptionError, match="'each' holds numbers or many values; folds and sites"):
        calviz.sites(data, "each")
    only = slices(data_of(score, rng.random(n) < score, groups={"empty": [""] * n}))
    assert SliceGaps.compute(only).answer() == "There are no slices: empty has no values."


def test_what_all_rows_have_is_the_title_and_which_slice_differs():
    def title(**how):
        found = usual_slices(one_region(np.random.default_rng(2), **how))
        return found.headline if found.rest else ""

    alike = title(all_off=0.3)
    assert re.fullmatch(
        r"All rows: too low by \d+\.\d points; no slice is found off beyond that", alike
    )
    more = title(all_off=0.3, off=1.0)
    assert re.fullmatch(
        r"Unlike the rest: region = 0 \(about \d+\.\d points too low\); other rows: too low by \d+\.\d points",
        more,
    )
    # All rows are off on average, through these alone.
    assert title(off=1.0) == title() == ""
    # One that is off in the other way is unlike the rest, too.
    assert title(all_off=0.3, off=-1.5).startswith("Unlike the rest: region = 0")


def test_a_column_of_texts_whose_common_values_are_all_in_one_slice_is_left_out_of_the_others():
    rng = np.random.default_rng(0)
    site = np.repeat(["a", "b"], 400)
    code = [*(f"common {i % 20}" for i in range(400)), *(f"rare {i // 2}" for i in range(400))]
    p = rng.uniform(0.2, 0.8, 800)
    data = calviz.Predictions(
        probs=p, labels=rng.random(800) < p, groups={"site": site}, texts={"code": np.array(code)}
    )
    both = slices(Sample(data, "positive"), pairs=False, min_rows=20)
    assert {name for s in both.slices for name, _ in s.where} == {"site", "code", "score"}
    rest = Sample(data.take(np.flatnonzero(site == "b")), "positive")
    assert "code has no value with 50 rows or more" in slices(rest, pairs=False).skipped


# ---- What comes round again in times


def test_the_hours_that_are_off_are_found_as_a_range():
    for where in (("hour of time", "17 to 20"), ("hour of time", "22 to 3")):
        found = usual_slices(of_hours(np.random.default_rng(0), 10_000, 0.8, where))
        assert found.off[0].where == (where,)
        assert found.furthest[0] == f"hour of time = {where[1]}"
        # As found in these rows, times the 288 ranges of hours.
        alone = slices(of_hours(np.random.default_rng(0), 10_000, 0.8, where), [where[0]])
        assert alone.slices[0].p_value == found.off[0].p_value
        assert len(alone.slices) == 25
    weekend = ("weekday of time", "Saturday to Sunday")
    assert usual_slices(of_hours(np.random.default_rng(0), 10_000, 0.8, weekend)).off[0].where == (
        weekend,
    )


def test_the_interval_of_a_range_of_hours_allows_for_the_choice_of_the_range():
    for seed in range(3):  # calibrated
        sample = of_hours(np.random.default_rng(seed), 4_000, 0.0, ("hour of time", "17 to 20"))
        found = slices(sample, ["hour of time"])
        (one,) = (s for s in found.slices if " to " in s.where[0][1])
        assert one.p_value > 0.1
        assert one.interval.low < 0 < one.interval.high


@pytest.mark.parametrize(
    ("times", "cycles"),
    [
        (np.arange(200) * np.timedelta64(1, "h"), ["hour of time"]),
        (np.arange(1_000) * np.timedelta64(1, "h"), ["hour of time", "weekday of time"]),
        (np.arange(40) * np.timedelta64(1, "D"), ["weekday of time"]),
        (np.arange(39) * np.timedelta64(1, "D"), []),
        (np.arange(60) * np.timedelta64(7, "D"), []),
        (np.arange(100) * np.timedelta64(1, "h"), []),
        (np.arange(10) * np.timedelta64(1, "D") + np.timedelta64(12, "h"), []),
        # From 5 January 2026 on: each month in two years, or a December in one.
        (np.arange(720) * np.timedelta64(1, "D"), ["weekday of time", "month of time"]),
        (np.arange(690) * np.timedelta64(1, "D"), ["weekday of time"]),
    ],
)
def test_times_have_hours_and_weekdays_only_where_they_show_them(times, cycles):
    n = len(times)
    stamps = np.datetime64("2026-01-05T00", "us") + times
    data = data_of(np.full(n, 0.5), np.arange(n) % 2, times=stamps)
    assert [name for name in sliceable_columns(data) if name != "time"][: len(cycles)] == cycles
    assert " of " not in " ".join(usual_columns(data))


def test_hours_are_those_that_the_file_has(tmp_path):
    day = np.datetime64("2026-01-05T00") + np.arange(400) * np.timedelta64(1, "h")
    rows = [f"{t}:00+02:00,0.5,{i % 2}" for i, t in enumerate(day.astype(str))]
    file = tmp_path / "offsets.csv"
    file.write_text("\n".join(["time,p,y", *rows]))
    loaded = read(file)
    data = next(iter(loaded.models.values()))
    assert data.times[0] == np.datetime64("2026-01-04T22")
    assert "days of 'time' are those of UTC" in " ".join(n.message for n in loaded.notices)
    file.write_text(file.read_text().replace("+02:00", "Z"))
    assert not any("UTC" in n.message for n in read(file).notices)
    hours = data.sliced("hour of time")
    assert hours.values().tolist() == [str(i % 24) for i in range(400)]


def test_what_is_off_in_one_year_alone_is_no_season():
    """Found by a stranger: a change in July of the second year was reported as "month of time = July to December"."""
    rng = np.random.default_rng(3)
    times = np.datetime64("2023-01-01T00:00") + np.sort(
        rng.integers(0, 730 * 24, 8_000)
    ) * np.timedelta64(1, "h")
    month = times.astype("datetime64[M]").astype(int) % 12
    p = rng.uniform(0.1, 0.6, times.size)
    group = np.where(rng.random(p.size) < 0.5, "a", "b")
    late = times >= np.datetime64("2024-07-01")

    def off(where) -> list[str]:
        hit = rng.random(p.size) < p - 0.1 * where
        data = calviz.Predictions(
            probs=np.stack([1 - p, p], axis=1),
            labels=hit.astype(int),
            times=times,
            groups={"g": group},
        )
        found = slices(data, reduction="positive", pairs=False, rate=0.005)
        return [s.name for s in found.off if "month of time" in dict(s.where)]

    assert off(late) == []
    assert len(off((month > 5) & (month < 9))) == 1


def test_the_column_of_a_slice_that_is_off_comes_first_although_only_with_another_one():
    rng = np.random.default_rng(0)
    a, b, score = rng.random(6_000), rng.random(6_000), rng.uniform(0.2, 0.8, 6_000)
    data = calviz.Predictions.from_arrays(rng.random(6_000) < score, score, groups={"a": a, "b": b})
    found = slices(data, ["a", "b"])
    assert not found.off
    last = features_drawn(found)[-1]
    # A slice of two columns is off.
    one = next(s for s in found.slices if s.where[0][0] == last)
    pair = replace(one, where=(*one.where, ("site", "x")), adjusted=0.0)
    assert features_drawn(replace(found, slices=(*found.slices, pair)))[0] == last
