"""Segments: offsets and slopes against other fits of the same model, what changes nothing, and what is refused."""

import contextlib
import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, logit
from scipy.stats import chi2
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation
from calviz.comparison.advice import suggest
from calviz.comparison.arena_experiments import Rules
from calviz.comparison.fitting import Division, calibrate
from calviz.comparison.recalibrate_files import apply_to_files, recalibrate_files
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import CalvizError, InputError, NotAvailable, OptionError
from calviz.core.predictions import Predictions, cut_columns
from calviz.data.reading import read
from calviz.recalibrators import SegmentOffsets
from calviz.recalibrators.base import load_map
from calviz.recalibrators.composition import SliceMap, slice_of
from calviz.recalibrators.segment_fits import EffectBlock, SegmentFit, TemperatureFit
from calviz.sample.sample import rows_where
from tests.inputs.simulated import draw_labels, softmax

SITES = np.array(["a", "b", "c", "d"])


def two(z):
    return np.stack([1 - expit(z), expit(z)], axis=1)


def rows(n=3_000, offsets=(-0.8, 0, 0.3, 0.9), slopes=(0, 0, 0, 0), seed=0):
    """Scores of two classes, labels and sites, whose true log-odds are 0.8 z + 0.2 plus those of the site."""
    rng = np.random.default_rng(seed)
    z, at = rng.normal(0, 1.5, n), rng.integers(4, size=n)
    truth = (0.8 + np.array(slopes)[at]) * z + 0.2 + np.array(offsets)[at]
    return two(z), (rng.random(n) < expit(truth)).astype(int), {"site": SITES[at]}


def fitted(n=3_000, **given):
    X, y, columns = rows(n, **given)
    return SegmentOffsets(base="affine").fit(X, y, columns=columns), X, y, columns


def penalised(z, y, design, precision):
    """Mode of a logistic model with offset z, an intercept, a slope and normal effects, by a general minimiser."""
    X = np.column_stack([np.ones_like(z), z - z.mean(), design])
    penalty = np.append([0, 0], np.full(design.shape[1], precision))

    def loss(b):
        margin = z + X @ b
        value = np.logaddexp(0, margin).sum() - y @ margin + penalty @ b**2 / 2
        return value, X.T @ (expit(margin) - y) + penalty * b

    found = minimize(loss, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7})
    share = expit(z + X @ found.x)
    information = (X * (share * (1 - share))[:, None]).T @ X + np.diag(penalty)
    return found.x, z + X @ found.x, float(-found.fun), information


# ---- Against other fits


def test_with_many_rows_it_is_the_logistic_regression_with_an_intercept_for_each_site():
    own, X, y, columns = fitted(60_000)
    design = np.column_stack([logit(X[:, 1]), columns["site"][:, None] == SITES])
    peer = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-8).fit(design, y)
    expected = peer.predict_proba(design)
    np.testing.assert_allclose(own.transform(X, columns), expected, atol=1e-3)


@pytest.mark.slow
def test_offsets_and_their_variance_are_those_of_the_laplace_approximation():
    own, X, y, columns = fitted(800)
    z, design = logit(own.base_.transform(X)[:, 1]), columns["site"][:, None] == SITES
    design = design.astype(float)

    def minus_evidence(log_variance):
        precision = np.exp(-log_variance)
        _, _, mode, information = penalised(z, y, design, precision)
        return -mode + np.linalg.slogdet(information)[1] / 2 - 4 * np.log(precision) / 2

    best = minimize_scalar(minus_evidence, bounds=(-6, 3), method="bounded")
    _, margin, _, _ = penalised(z, y, design, np.exp(-best.x))
    assert not own.effects_[0].slopes.any()
    mapped = logit(own.transform(X, columns)[:, 1])
    # The fixed point leaves out how the information moves with the variance.
    np.testing.assert_allclose(mapped, margin, atol=0.03)


@pytest.mark.slow
def test_the_test_of_two_segments_is_that_of_statsmodels():
    import statsmodels.api as sm  # takes half a second

    X, y, _ = rows(500, offsets=(0, 0, 0, 0))
    code = np.random.default_rng(3).integers(2, size=500)
    z = logit(RECALIBRATORS["affine"].make().fit(X, y).transform(X)[:, 1])
    fit = SegmentFit(z, y.astype(float), np.ones(500))
    p = fit.p_value(EffectBlock((0,), code, 2), y - expit(z), expit(z) * expit(-z))
    model = sm.GLM(y, sm.add_constant(z), family=sm.families.Binomial())
    peer = model.score_test(model.fit().params, exog_extra=code.astype(float))
    assert p == pytest.approx(float(np.squeeze(peer[1])), rel=1e-3)


def test_the_p_values_of_many_segments_are_uniform_where_none_differ():
    rng, small = np.random.default_rng(0), 0
    for _ in range(300):
        z = rng.normal(size=400)
        y = (rng.random(400) < expit(z)).astype(float)
        fit = SegmentFit(z, y, np.ones(400))
        block = EffectBlock(
            (0,), rng.choice(8, 400, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02]), 8
        )
        small += fit.p_value(block, y - expit(z), expit(z) * expit(-z)) <= 0.1
    # 30 expected, standard deviation 5.2.
    assert 15 <= small <= 46


def test_slopes_are_found_and_the_map_is_then_right_on_new_rows():
    own, *_ = fitted(8_000, offsets=(0, 0, 0, 0), slopes=(-0.4, 0, 0.2, 0.6))
    assert own.effects_[0].slopes.any()
    assert not own.is_its_base
    X, _, columns = rows(8_000, offsets=(0, 0, 0, 0), slopes=(-0.4, 0, 0.2, 0.6), seed=5)
    at = np.searchsorted(SITES, columns["site"])
    truth = expit((0.8 + np.array([-0.4, 0, 0.2, 0.6])[at]) * logit(X[:, 1]) + 0.2)
    assert np.abs(own.transform(X, columns)[:, 1] - truth).mean() < 0.02
    assert np.abs(own.base_.transform(X)[:, 1] - truth).mean() > 0.04


def test_offsets_of_few_rows_are_shrunk_more():
    X, y, columns = rows(3_000)
    moved = []
    for few in (3, 12, 48):
        # Rows of a site of their own, all hits: without shrinkage, their offset would be infinite.
        site, hits = columns["site"].astype("<U3"), y.copy()
        site[:few], hits[:few] = "new", 1
        own = SegmentOffsets().fit(X, hits, columns={"site": site})
        offsets = dict(zip(own.columns_[0].cut.labels, own.effects_[0].offsets, strict=True))
        moved.append(offsets["new"])
    assert 0 < moved[0] < moved[1] - 0.3 < moved[2] - 0.6


# ---- Where it is the map of all rows


def test_where_no_segments_differ_it_is_the_map_of_all_rows():
    own, X, _, columns = fitted(offsets=(0, 0, 0, 0))
    assert own.effects_ == ()
    assert own.is_its_base
    assert own.needed_columns == ()
    np.testing.assert_array_equal(own.transform(X), own.base_.transform(X))
    np.testing.assert_array_equal(own.transform(X, columns), own.base_.transform(X))
    assert "no segments are shown to differ" in own.warnings_[0]


def test_where_two_conditions_hold_what_is_off_they_have_one_offset_and_other_rows_stay():
    rng = np.random.default_rng(1)
    z, site, age = (
        rng.normal(size=8_000),
        SITES[rng.integers(4, size=8_000)],
        rng.normal(size=8_000),
    )
    inside = (site == "a") & (age < -0.3)
    X, y = two(z - 1.2 * inside), (rng.random(8_000) < expit(z)).astype(int)
    fitted = SegmentOffsets().fit(X, y, columns={"site": site, "age": age})
    assert fitted.reading() == "the segments of site x age differ beyond chance."
    out = fitted.transform(X, {"site": site, "age": age})[:, 1]
    # The map of each column alone raises all rows of the site.
    assert abs((out - expit(z))[inside].mean()) < 0.03
    assert abs((out - expit(z))[(site == "a") & (age > 0)].mean()) < 0.01
    again = load_map(json.loads(json.dumps(fitted.to_dict())))
    np.testing.assert_allclose(again.transform(X, {"site": site, "age": age})[:, 1], out)


def test_segments_that_were_not_seen_have_the_map_of_all_rows():
    own, X, *_ = fitted()
    unseen = own.transform(X, {"site": np.full(len(X), "z")})
    np.testing.assert_allclose(unseen, own.base_.transform(X), rtol=1e-12)


def test_missing_values_are_a_segment_of_their_own():
    X, y, columns = rows(4_000)
    site = np.where(columns["site"] == "d", None, columns["site"])
    age = np.where(columns["site"] == "d", np.nan, np.random.default_rng(0).normal(size=4_000))
    for values in (site, age):
        own = SegmentOffsets().fit(X, y, columns={"c": values})
        mapped = own.transform(X[:1], {"c": values[columns["site"] == "d"][:1]})
        assert mapped[0, 1] > own.base_.transform(X[:1])[0, 1] + 0.05
    texts = np.array(["nan" if np.isnan(v) else repr(float(v)) for v in age])
    as_texts = own.transform(X, {"c": texts})
    np.testing.assert_allclose(as_texts, own.transform(X, {"c": age}), atol=1e-12)


# ---- What changes nothing


def test_the_order_of_rows_and_the_names_of_values_change_nothing():
    own, X, y, columns = fitted()
    before = own.transform(X, columns)
    order = np.random.default_rng(1).permutation(len(X))
    other = SegmentOffsets(base="affine").fit(
        X[order], y[order], columns={"site": columns["site"][order]}
    )
    np.testing.assert_allclose(other.transform(X, columns), before, atol=1e-6)
    renamed = {"site": np.char.add("hospital ", columns["site"])}
    other = SegmentOffsets(base="affine").fit(X, y, columns=renamed)
    np.testing.assert_allclose(other.transform(X, renamed), before, atol=1e-6)


def test_a_count_is_the_row_so_often():
    X, y, columns = rows(1_500)
    counts = np.random.default_rng(2).integers(1, 4, 1_500)
    many = np.repeat(np.arange(1_500), counts)
    repeated = {"site": columns["site"][many]}
    copied = SegmentOffsets(base="affine").fit(X[many], y[many], columns=repeated)
    own = SegmentOffsets(base="affine")
    own.rows_each = counts.mean()
    own.fit(X, y, counts, columns)
    np.testing.assert_allclose(own.transform(X, columns), copied.transform(X, columns), atol=1e-5)


def test_rows_of_weight_0_are_not_there_and_the_scale_of_weights_is_nothing():
    X, y, columns = rows(1_500)
    weights = np.random.default_rng(2).uniform(0.5, 2, 1_500)
    weights[::3] = 0
    kept = weights > 0
    own = SegmentOffsets().fit(X, y, weights, columns).transform(X, columns)
    fewer = SegmentOffsets().fit(
        X[kept], y[kept], 5 * weights[kept], {"site": columns["site"][kept]}
    )
    np.testing.assert_allclose(own, fewer.transform(X, columns), atol=1e-9)


def test_numbers_are_cut_and_written_as_texts_too():
    X, y, columns = rows(3_000)
    number = np.searchsorted(SITES, columns["site"]).astype(float)
    own = SegmentOffsets().fit(X, y, columns={"site": np.char.mod("%d", number)})
    texts = own.transform(X, {"site": np.char.mod("%d", number)})
    np.testing.assert_array_equal(own.transform(X, {"site": number}), texts)
    cut = SegmentOffsets().fit(X, y, columns={"site": number})
    assert cut.columns_[0].cut.edges == (0, 1, 2)
    np.testing.assert_allclose(cut.transform(X, {"site": number}), texts, atol=1e-6)


# ---- More classes


def test_of_more_classes_the_odds_of_the_top_label_are_moved_and_the_others_share_the_rest():
    rng = np.random.default_rng(0)
    z, at = rng.normal(0, 1.5, (4_000, 4)), rng.integers(4, size=4_000)
    truth, top = z.copy(), z.argmax(axis=1)
    truth[np.arange(4_000), top] += np.array([-1, 0, 0.5, 1])[at]
    p, y = softmax(z), draw_labels(softmax(truth), rng)
    own = SegmentOffsets().fit(p, y, columns={"site": SITES[at]})
    before, after = own.base_.transform(p), own.transform(p, {"site": SITES[at]})
    np.testing.assert_allclose(after.sum(axis=1), 1)
    each = np.arange(4_000), top
    moved = logit(after[each]) - logit(before[each])
    # A line of each site, of the same slope.
    lines = [
        np.polyfit(logit(before[each])[at == s], moved[at == s], 1, full=True) for s in range(4)
    ]
    np.testing.assert_allclose([line[1][0] for line in lines], 0, atol=1e-9)
    assert np.ptp([line[0][0] for line in lines]) < 1e-9
    others = np.ones_like(p, bool)
    others[each] = False
    rest = (before[others].reshape(-1, 3), after[others].reshape(-1, 3))
    shares = [r / r.sum(axis=1, keepdims=True) for r in rest]
    np.testing.assert_allclose(*shares, atol=1e-12)
    assert np.abs(after[each] - softmax(truth)[each]).mean() < 0.02


def tempered(n, log_t=(-0.9, 0.0, 0.0, 0.4), classes=3, seed=0):
    """Scores, labels and sites, of which the logits of each must be divided by a temperature of its own."""
    rng = np.random.default_rng(seed)
    z, at = rng.normal(0, 1.5, (n, classes)), rng.integers(4, size=n)
    truth = softmax(z / np.exp(np.array(log_t)[at])[:, None])
    return softmax(z), draw_labels(truth, rng), {"site": SITES[at]}, truth


def of_temperatures(own, p, labels, columns):
    """The fit of log-temperatures to what a map of all rows gives, and the block of sites."""
    fit = TemperatureFit(own.base_.transform, p, labels, np.ones(len(p)))
    return fit, EffectBlock((0,), np.searchsorted(SITES, columns["site"]), 4, 2)


def test_temperatures_of_segments_are_recovered_and_those_of_new_rows_are_right():
    p, y, columns, _ = tempered(30_000)
    own = SegmentOffsets().fit(p, y, columns=columns)
    (effects,) = own.effects_
    by_site = dict(zip(own.columns_[0].cut.labels, effects.log_temperatures, strict=True))
    found = [by_site[site] + np.log(own.base_.describe()["temperature"]) for site in SITES]
    np.testing.assert_allclose(found, [-0.9, 0, 0, 0.4], atol=0.05)
    assert not effects.offsets.any()
    assert not effects.slopes.any()
    assert own.reading() == "the segments of site differ beyond chance."
    p, _, columns, truth = tempered(5_000, seed=1)
    out = own.transform(p, columns)
    assert np.abs(out - truth).max() < 0.02
    assert np.abs(own.base_.transform(p) - truth).max() > 0.1
    np.testing.assert_allclose(out.sum(axis=1), 1)
    np.testing.assert_array_equal(out.argmax(axis=1), p.argmax(axis=1))
    unseen = own.transform(p, {"site": np.full(len(p), "z")})
    np.testing.assert_allclose(unseen, own.base_.transform(p), rtol=1e-12)


def test_temperatures_are_those_of_a_general_minimiser_of_the_same_objective():
    p, y, columns, _ = tempered(500)
    own = SegmentOffsets().fit(p, y, columns=columns)
    fit, block = of_temperatures(own, p, y, columns)
    fit.take([block])
    logs = np.log(own.base_.transform(p))

    def loss(t):
        z = logs / np.exp(t[block.codes])[:, None]
        return -log_softmax(z, axis=1)[np.arange(500), y].sum() + t @ t / fit.variances[0] / 2

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(fit.values[2:], best.x, atol=1e-4)
    assert loss(fit.values[2:]) == pytest.approx(best.fun, abs=1e-7)
    np.testing.assert_array_equal(fit.values[:2], 0)


def test_the_test_of_temperatures_of_two_segments_is_the_score_test_by_hand():
    p, y, _, _ = tempered(400, (0, 0, 0, 0))
    code = np.random.default_rng(3).integers(2, size=400)
    own = SegmentOffsets().fit(p, y)
    fit, _ = of_temperatures(own, p, y, {"site": SITES[:1]})
    q = own.base_.transform(p)
    logs = np.log(q)
    score = logs[np.arange(400), y] - (q * logs).sum(axis=1)
    variance = (q * logs**2).sum(axis=1) - (q * logs).sum(axis=1) ** 2
    share = variance[code == 1].sum() / variance.sum()
    one = score[code == 1].sum() - share * score.sum()
    expected = chi2.sf(one**2 / (variance.sum() * share * (1 - share)), 1)
    assert fit.p_values([EffectBlock((0,), code, 2, 2)])[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_the_p_values_of_temperatures_are_uniform_where_flat_and_rare_segments_do_not_differ():
    rng, small = np.random.default_rng(0), 0
    each = rng.choice(6, 400, p=[0.4, 0.3, 0.2, 0.07, 0.02, 0.01])
    for _ in range(400):
        p = softmax(rng.normal(0, 1.5, (400, 3)) * np.array([0.3, 1, 1, 2, 2, 2])[each][:, None])
        fit = TemperatureFit(np.asarray, p, draw_labels(p, rng), np.ones(400))
        small += fit.p_values([EffectBlock((0,), each, 6, 2)])[0] <= 0.05
    # 20 expected, standard deviation 4.4.
    assert 7 <= small <= 33


def test_maps_with_temperatures_are_saved_written_and_told_and_those_without_read_as_before():
    p, y, columns, _ = tempered(6_000)
    # The other column has offsets of the top label.
    rng, top = np.random.default_rng(5), p.argmax(axis=1)
    right = rng.random(6_000) < 0.5
    hit = right & (rng.random(6_000) < 0.5)
    columns, y = columns | {"c": np.where(right, "x", "y")}, np.where(hit, top, y)
    own = SegmentOffsets().fit(p, y, columns=columns)
    assert own.effects_[0].log_temperatures.any()
    assert own.effects_[1].offsets.any()
    loaded = load_map(json.loads(json.dumps(own.to_dict(), allow_nan=False)))
    columns = {name: values.astype(object) for name, values in columns.items()}
    columns["site"][:3], columns["c"][2:5] = [None, "", "z"], "z"
    mapped = own.transform(p, columns)
    np.testing.assert_array_equal(loaded.transform(p, columns), mapped)
    program = {}
    exec(own.snippet(), program)
    np.testing.assert_allclose(program["recalibrate"](p, columns), mapped, atol=1e-12)
    told = [own.describe()["site"][site][2] for site in own.columns_[0].cut.labels[:4]]
    np.testing.assert_allclose(told, own.effects_[0].log_temperatures[:4], atol=1e-4)
    record = own.to_dict()
    bad = json.loads(json.dumps(record))
    bad["fitted"]["effects"][0]["log_temperatures"][0] = 1e4
    with pytest.raises(InputError, match="log_temperatures"):
        load_map(bad)
    old = json.loads(json.dumps(record))
    for effects in old["fitted"]["effects"]:
        effects.pop("log_temperatures", None)
    assert load_map(old).to_dict()["fitted"]["effects"][1] == record["fitted"]["effects"][1]
    assert not np.array_equal(load_map(old).transform(p, columns), mapped)


# ---- Saved, written and applied elsewhere


def pair_of_columns(n=6_000):
    rng = np.random.default_rng(4)
    z, code, age = rng.normal(0, 1.5, n), rng.integers(4, size=n), rng.normal(50, 15, n)
    truth = z + np.where((code > 1) == (age > 50), 0.9, -0.9)
    return two(z), (rng.random(n) < expit(truth)).astype(int), {"site": SITES[code], "age": age}


def test_json_and_numpy_source_give_the_same_map():
    X, y, columns = pair_of_columns()
    own = SegmentOffsets().fit(X, y, columns=columns)
    assert any(len(effects.of) == 2 for effects in own.effects_)
    loaded = load_map(json.loads(json.dumps(own.to_dict(), allow_nan=False)))
    # Rows with a missing, and with an unseen value.
    columns = {"site": columns["site"].astype(object), "age": columns["age"].copy()}
    columns["site"][:3], columns["age"][2:5] = [None, "", "z"], np.nan
    mapped = own.transform(X, columns)
    np.testing.assert_array_equal(loaded.transform(X, columns), mapped)
    program = {}
    exec(own.snippet(), program)
    assert own.snippet().count("\nimport re\n") == 1
    np.testing.assert_allclose(program["recalibrate"](X, columns), mapped, atol=1e-9)
    frame = pd.DataFrame({"p": X[:, 1], **columns})
    np.testing.assert_allclose(own.transform_frame(frame, "p")["p_calibrated"], mapped[:, 1])
    with pytest.raises(NotAvailable, match="the map depends on columns"):
        own.inverse(0.5)


def test_a_saved_map_holds_no_values_of_columns_that_it_does_not_use():
    X, y, columns = pair_of_columns()
    patients = {"patient": np.array([f"P{i:03d}" for i in range(60)])[np.arange(6_000) % 60]}
    own = SegmentOffsets().fit(X, y, columns={**patients, **columns})
    assert own.needed_columns == ("site", "age")
    record = own.to_dict()
    assert [column["name"] for column in record["fitted"]["columns"]] == ["site", "age"]
    for text in (json.dumps(record), json.dumps(own.describe()), own.snippet()):
        assert "P0" not in text
    # A map that was saved with them loads, and forgets them.
    old = json.loads(json.dumps(record))
    old["fitted"]["columns"].insert(0, {"name": "patient", "values": ["P001", "P002"]})
    for effects in old["fitted"]["effects"]:
        effects["columns"] = [c + 1 for c in effects["columns"]]
    loaded = load_map(old)
    assert loaded.to_dict() == record
    np.testing.assert_array_equal(loaded.transform(X, columns), own.transform(X, columns))
    # Where no segment differs, none is kept.
    without = SegmentOffsets().fit(X, y, columns=patients)
    assert without.to_dict()["fitted"]["columns"] == []
    assert "no segments are shown to differ" in without.warnings_[0]


def test_a_changed_map_is_refused_or_read():
    from tests.unit.recalibrators.test_maps import changed, changes, places

    own, X, _, columns = fitted(1_000)
    record = json.loads(json.dumps(own.to_dict()))
    refused = 0
    for path in places(record["fitted"]):
        before = record["fitted"]
        for name in path:
            before = before[name]
        for value in changes(before):
            other = {**record, "fitted": changed(record["fitted"], path, value)}
            try:
                loaded = load_map(other)
            except CalvizError:
                refused += 1
                continue
            with contextlib.suppress(InputError):  # of another column
                assert np.isfinite(loaded.transform(X, columns)).all()
    assert refused > 200


def test_a_file_is_judged_on_rows_that_were_not_seen_and_its_segments_get_smaller_errors(tmp_path):
    X, y, columns = pair_of_columns(4_000)
    frame = pd.DataFrame({"p": X[:, 1], "label": y, **columns})
    frame.to_csv(tmp_path / "f.csv", index=False)
    data = calviz.load(tmp_path / "f.csv")
    compared = calviz.compare(data, ["platt", "segments"], cross_fit=2, metrics=["nll"], ci=False)
    platt, own = (compared[key] for key in ("platt", "segments"))
    assert own.metrics["nll"].value < platt.metrics["nll"].value - 0.03
    before, after = (calviz.multicalibration(r.calibrated).mce for r in (platt, own))
    assert after < before / 2
    # By hand: the two folds alone.
    one = calviz.recalibrate(data, "segments", cross_fit=2)
    np.testing.assert_array_equal(one.probs, own.calibrated.probs)
    assert set(one.numbers) == {"age"}
    record = calviz.recalibrate(data, "platt", fit_fraction=0.5)
    assert set(record.numbers) == {"age"}


def test_files_of_any_size_get_the_columns_that_the_map_needs(tmp_path):
    X, y, columns = pair_of_columns(3_000)
    own = SegmentOffsets().fit(X, y, columns=columns)
    frame = pd.DataFrame({"p": X[:, 1], **columns})
    frame.loc[3, "age"] = np.nan
    frame.to_parquet(tmp_path / "f.parquet")
    record = {**own.to_dict(), "class_names": ["0", "1"]}
    (out,) = apply_to_files([tmp_path / "f.parquet"], record, tmp_path / "out")
    expected = own.transform(X, {name: frame[name].to_numpy() for name in columns})[:, 1]
    np.testing.assert_allclose(pd.read_parquet(out)["p"], expected, atol=1e-12)
    # Booleans and dates are written otherwise by other readers.
    frame = frame.assign(
        new=frame.pop("site") > "b",
        day=pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(3_000) % 300, "D"),
    )
    chance = expit(logit(X[:, 1]) + np.where(frame["new"], 0.8, -0.8) + (frame["day"].dt.month > 6))
    frame["label"] = (np.random.default_rng(0).random(3_000) < chance).astype(int)
    frame.drop(columns="age").to_parquet(tmp_path / "h.parquet")
    data = calviz.load(tmp_path / "h.parquet")
    by_both = {"columns": ["new", "day"], "fit_fraction": 0.5}
    calibrated = calviz.recalibrate(data, "segments", **by_both).probs[:, 1]
    record = calibrate(data, "segments", Division(fit_fraction=0.5), {"columns": "new,day"})
    record = {**record.recalibrator.to_dict(), "class_names": ["0", "1"]}
    assert len(record["fitted"]["effects"]) == 2
    (out,) = apply_to_files([tmp_path / "h.parquet"], record, tmp_path / "out")
    np.testing.assert_allclose(pd.read_parquet(out)["p"], calibrated, atol=1e-12)
    frame.drop(columns=["age", "new"]).to_parquet(tmp_path / "g.parquet")
    with pytest.raises(InputError, match=r"g\.parquet: there is no column 'new', whose segments"):
        apply_to_files([tmp_path / "g.parquet"], record, tmp_path / "out")
    with pytest.raises(NotAvailable, match="'segments' needs the columns of its rows"):
        recalibrate_files([tmp_path / "f.parquet"], "segments", tmp_path / "out")


def test_behind_a_classifier():
    X, y, columns = rows(3_000)
    frame = pd.DataFrame({"z": logit(X[:, 1]), **columns})
    model = LogisticRegression().fit(frame[["z"]].to_numpy(), y)

    class OfZ(LogisticRegression):
        def predict_proba(self, X):
            return model.predict_proba(np.asarray(X)[:, :1].astype(float))

    of_z = OfZ().fit(frame[["z"]].to_numpy(), y)
    given = {"method": "segments", "columns": ["site"]}
    own = calviz.Calibrated(FrozenEstimator(of_z), **given).fit(frame, y)
    probs = model.predict_proba(frame[["z"]].to_numpy())
    alone = SegmentOffsets().fit(probs, y, columns=columns)
    np.testing.assert_array_equal(own.predict_proba(frame), alone.transform(probs, columns))
    by_place = calviz.Calibrated(FrozenEstimator(of_z), method="segments", columns=[1])
    by_place.fit(frame.to_numpy(), y)
    np.testing.assert_array_equal(
        by_place.predict_proba(frame.to_numpy()), own.predict_proba(frame)
    )
    with pytest.raises(InputError, match="X has no column 'site', which the map segments by"):
        own.predict_proba(frame[["z"]])
    for wrong in ({"method": "segments"}, {"method": "platt", "columns": ["site"]}):
        with pytest.raises(OptionError, match="columns"):
            calviz.Calibrated(FrozenEstimator(of_z), **wrong).fit(frame, y)


def test_profiles_with_groups_have_segments_too_and_others_are_refused():
    X, y, columns = rows(5_000)
    X = np.round(X, 2)
    frame = pd.DataFrame({"p": X[:, 1], "y": y, **columns})
    profile = calviz.profile(frame, label="y", scores=["p"], by=["site"])
    of_cells = calviz.compare(profile, ["segments"], in_sample=True, metrics=["nll"], ci=False)
    data = Predictions(probs=X, labels=y, groups=columns)
    of_rows = calviz.compare(data, ["segments"], in_sample=True, metrics=["nll"], ci=False)
    values = [c["segments"].metrics["nll"].value for c in (of_cells, of_rows)]
    assert values[0] == pytest.approx(values[1], abs=1e-6)
    without = calviz.profile(frame, label="y", scores=["p"])
    refused = calviz.compare(without, ["segments"], in_sample=True, metrics=["nll"], ci=False)
    assert "these rows have none" in refused["segments"].reason


# ---- Suggested, and refused


def test_it_is_suggested_where_a_file_has_columns_and_the_arena_of_all_methods_is_without_it():
    X, y, columns = rows(500)
    assert "segments" in suggest(Predictions(probs=X, labels=y, groups=columns), 300).methods
    alone = suggest(Predictions(probs=X, labels=y), 300)
    assert "no column of groups" in alone.impossible["segments"]
    assert "segments" not in [spec.key for spec in Rules().specs]
    assert "segments" in [spec.key for spec in Rules(methods=("segments",)).specs]
    with pytest.raises(OptionError, match="'segments' is composition"):
        RECALIBRATORS["segments+isotonic"]


@pytest.mark.parametrize(
    ("columns", "named", "words"),
    [
        ({}, "site", "there is no column 'site', whose segments the map needs; these rows have"),
        ({"age": np.arange(200.0)}, "site", "there is no column 'site'.*known: age"),
        ({"site": np.full(200, "a")}, "site", "'site' has no segments: it has one value"),
        ({"site": np.full(200, 3.5)}, "site", "'site' has no segments: it has one value"),
        ({"site": [f"id{i}" for i in range(200)]}, "site", "a different value in each row"),
        ({"site": np.full(3, "a")}, "site", "'site' has 3 values for 200 rows of scores"),
        (3, "site", "'columns' is a int, expected a mapping of names to columns"),
    ],
)
def test_columns_without_segments_are_one_sentence(columns, named, words):
    X, y, _ = rows(200)
    with pytest.raises(InputError, match=words):
        SegmentOffsets(columns=named).fit(X, y, columns=columns)


def test_columns_that_are_not_named_are_left_out_with_a_warning():
    X, y, columns = rows(3_000)
    more = {**columns, "id": np.arange(3_000).astype(str), "one": np.ones(3_000)}
    more["id"] = np.char.add("id", more["id"])
    own = SegmentOffsets().fit(X, y, columns=more)
    assert (
        "'id' (it has a different value in each row), 'one' (it has one value)" in own.warnings_[0]
    )
    assert own.needed_columns == ("site",)
    assert SegmentOffsets().fit(X, y).effects_ == ()


@pytest.mark.parametrize("columns", [3, [], "", {"site": 1}, [""]])
def test_names_of_columns_are_names(columns):
    with pytest.raises(OptionError, match="'columns' must be the names of columns"):
        RECALIBRATORS["segments"].check({"columns": columns})


def test_new_rows_without_the_column_are_refused():
    own, X, _, columns = fitted()
    with pytest.raises(InputError, match="there is no column 'site', whose segments the map needs"):
        own.transform(X)
    with pytest.raises(InputError, match="there is no column 'site'"):
        own.predict_proba(X, {"age": np.ones(len(X))})
    with pytest.raises(InputError, match="'site' has 2 values for 3,000 rows"):
        own.transform(X, {"site": columns["site"][:2]})
    data = Predictions(probs=X, labels=np.arange(len(X)) % 2)
    with pytest.raises(NotAvailable, match="needs a column of groups or numbers"):
        calviz.recalibrate(data, "segments")
    with pytest.raises(OptionError, match="there is no group column 'town'"):
        calviz.recalibrate(Predictions(probs=X, labels=np.arange(len(X)) % 2, groups=columns), "segments", columns="town")  # fmt: skip
    numbers = SegmentOffsets().fit(*rows()[:2], columns={"site": np.searchsorted(SITES, columns["site"])})  # fmt: skip
    with pytest.raises(InputError, match="'site' holds texts, and the map was fitted on numbers"):
        numbers.transform(X, columns)


# ---- Simulations


CASES = {
    "said where none differ, 6 columns, 1,000 rows": 40,
    "NLL on new rows worse than of temperature, beyond noise, 6 columns, 1,000 rows": 40,
    "said where some differ, offsets of one column, 1,000 rows": 15,
    "NLL on new rows better than of temperature, beyond noise, offsets of one column, 1,000 rows": 15,
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_it_helps_where_segments_differ_and_does_no_harm_where_not(case):
    every_simulation()
    one = SIMULATIONS[f"segments: {case}"]
    outcomes = one.outcomes(CASES[case], seed=1)
    assert one.holds(outcomes), np.mean(outcomes)


# ---- A map for the rows of a slice


#: A temperature of 2: odds of 4 become 2.
HALVED = {
    "calviz_map": 1,
    "method": "temperature",
    "classes": 2,
    "parameters": {"loss": "nll", "floor": None, "input": "probabilities"},
    "floor": 0.0,
    "fitted": {"temperature_": 2.0},
}
DAYS = np.array(["2026-08-31", "2026-09-01", "2026-09-02", "NaT", "2026-09-01", "2026-10-01"])


def for_slice(*where):
    """The map on the rows of a slice of six rows of three groups, and these rows."""
    data = Predictions(
        probs=np.tile([0.8, 0.2], 3),
        labels=[1, 0] * 3,
        groups={"g": np.array(["a", "a", "b", "b", "", "b"])},
        numbers={"age": np.array([10.0, 20.0, 30.0, np.nan, 50.0, 60.0])},
        times=np.where(DAYS == "NaT", DAYS[0], DAYS).astype("datetime64[s]"),
    )
    data = cut_columns(data, {"time": ["2026-08-31T23:59:59"], "age": [10, 20, 30]})
    times = DAYS.astype("datetime64[s]")
    columns = {"g": data.groups["g"].values(), "age": data.numbers["age"], "time": times}
    return SliceMap.around(load_map(HALVED), slice_of(data, where)), data, columns


@pytest.mark.parametrize(
    ("where", "changed", "empty"),
    [
        ((("g", "b"),), [2, 3, 5], 1),
        ((("g", ""),), [4], 0),
        ((("age", "(10, 20]"),), [1], 1),
        ((("age", "> 20"),), [2, 4, 5], 1),
        ((("age", "missing"),), [3], 0),
        ((("time", "> 2026-08-31 23:59:59"),), [1, 2, 4, 5], 1),
        ((("g", "b"), ("time", "> 2026-08-31 23:59:59")), [2, 5], 2),
        ((("predicted class", "1"),), [0, 2, 4], 0),
        ((("predicted class", "1"), ("g", "b")), [2], 1),
    ],
)
def test_only_rows_of_the_slice_change_and_all_others_stay_to_the_last_bit(where, changed, empty):
    own, data, columns = for_slice(*where)
    expected = data.probs.copy()
    expected[changed, 1] = [2 / 3 if row % 2 == 0 else 1 / 3 for row in changed]
    mapped = own.transform(data.probs, columns)
    np.testing.assert_allclose(mapped[:, 1], expected[:, 1], rtol=1e-12)
    others = np.delete(np.arange(6), changed)
    np.testing.assert_array_equal(mapped[others], data.probs[others])
    counts = {"changed": len(changed), "unchanged": 6 - len(changed), "without_value": empty}
    assert own.counts(data.probs, columns) == counts
    # The map of the JSON and the program say the same, also of dates that are texts.
    loaded = load_map(json.loads(json.dumps(own.to_dict())))
    assert loaded.to_dict() == own.to_dict()
    texts = columns | {"time": np.where(DAYS == "NaT", "", DAYS)}
    program = {}
    exec(own.snippet(), program)
    german = ["" if d == "NaT" else f"{d[8:]}.{d[5:7]}.{d[:4]} 00:00" for d in DAYS]
    for again in (
        loaded.transform(data.probs, texts),
        *(
            program["recalibrate"](data.probs, columns | {"time": t})
            for t in (columns["time"], texts["time"], german)
        ),
    ):
        np.testing.assert_allclose(again, mapped, rtol=1e-12)


@pytest.mark.parametrize("given", ["probabilities", "logits"])
@pytest.mark.parametrize("others", ["platt", "temperature", "temperature+isotonic"])
def test_a_map_of_a_slice_may_hold_one_of_the_other_rows(given, others):
    X, y, columns = rows()
    X = np.log(X) if given == "logits" else X
    where = {"site": "d"}
    both = RECALIBRATORS["slice+temperature"].make(input=given, where=where, others=others)
    both.fit(X, y, columns=columns)
    inside = columns["site"] == "d"
    expected = np.empty_like(X)
    for key, of in (("temperature", inside), (others, ~inside)):
        alone = RECALIBRATORS[key].make_with(input=given, floor="auto").fit(X[of], y[of])
        expected[of] = alone.transform(X[of])
    np.testing.assert_array_equal(both.transform(X, columns), expected)
    record = json.loads(json.dumps(both.to_dict()))
    assert (
        {*record["fitted"]} == {"base", "others"} == {*both.describe()} - {"temperature"} | {"base"}
    )
    loaded, program = load_map(record), {}
    exec(loaded.snippet(), program)
    np.testing.assert_array_equal(loaded.transform(X, columns), expected)
    np.testing.assert_allclose(program["recalibrate"](X, columns), expected, atol=1e-6)
    n = int(inside.sum())
    label = RECALIBRATORS[others].label
    said = f"{n:,} rows changed where site = d; {inside.size - n:,} other rows by {label}."
    assert loaded.reading(loaded.counts(X, columns)) == said
    # A file of before, or one that lacks a part.
    before = SliceMap.around(both.base_, where).to_dict()
    del before["parameters"]["others"]
    changed = load_map(before).transform(X, columns)
    np.testing.assert_array_equal(changed[inside], expected[inside])
    del record["fitted"]["others"]
    with pytest.raises(InputError, match="its parts must be 'base', 'others'"):
        load_map(record)


def test_a_program_refuses_dates_that_may_have_the_day_or_the_month_first():
    own, data, _ = for_slice(("time", "> 2026-08-31 23:59:59"))
    program = {}
    exec(own.snippet(), program)
    days = np.array(["01/02/2026", "03/04/2026"] * 3)
    with pytest.raises(ValueError, match="two read them differently: give them as datetime64"):
        program["recalibrate"](data.probs, {"time": days})
    # With an offset from UTC, as in the file.
    days = np.where(np.arange(6) < 3, "2026-09-01T01:00+02:00", "2026-09-01T03:00+02:00")
    changed = (program["recalibrate"](data.probs, {"time": days}) != data.probs).any(axis=1)
    np.testing.assert_array_equal(changed, np.arange(6) > 2)


def test_a_map_keeps_how_the_dates_of_its_column_were_written():
    days = [f"{1 + i % 28:02d}/{1 + i % 12:02d}/2026" for i in range(280)]
    rows = [f"{i % 10 / 10 + 0.05:.2f},{day},{i % 3 // 2}" for i, day in enumerate(days)]
    data = read("\n".join(["p_yes,day,label", *rows]).encode(), name="in.csv").first
    own = SliceMap.around(load_map(HALVED), slice_of(data, (("day", "> 2026-03-31"),)))
    assert own.to_dict()["parameters"]["where"][0]["dates"] == "%d/%m/%Y"
    probs, program = np.full((4, 2), [0.2, 0.8]), {}
    exec(own.snippet(), program)
    loaded = load_map(json.loads(json.dumps(own.to_dict())))
    later = np.array(["05/03/2026", "01/04/2026", "12/01/2026", "11/12/2026"])
    for apply in (loaded.transform, program["recalibrate"]):
        changed = (apply(probs, {"day": later}) != probs).any(axis=1)
        assert changed.tolist() == [False, True, False, True]
    without = SliceMap.around(load_map(HALVED), {"day": "> 2026-03-31"})
    with pytest.raises(InputError, match="may have the day or the month first"):
        without.transform(probs, {"day": later})
    iso = {"day": np.array(["2026-03-05", "2026-04-01", "2026-01-12", "2026-12-11"])}
    np.testing.assert_array_equal(loaded.met(iso, probs)[0], [False, True, False, True])


def test_a_map_of_a_slice_never_changes_rows_of_which_the_column_is_not_known():
    own, data, columns = for_slice(("g", "b"), ("age", "> 20"))
    said = (
        "the map is for rows where g = b, age > 20 only, and there is no column 'age'; "
        "give the rows with it, written as where the map was fitted."
    )
    with pytest.raises(InputError) as error:
        own.transform(data.probs, {"g": columns["g"]})
    assert str(error.value) == said
    with pytest.raises(InputError, match="there is no column 'g'"):
        own.transform(data.probs)
    program = {}
    exec(own.snippet(), program)
    with pytest.raises(KeyError, match="g = b, age > 20 only: it needs the column age"):
        program["recalibrate"](data.probs, {"g": columns["g"]})
    with pytest.raises(NotAvailable, match="no inverse of a score alone"):
        own.inverse(0.5)
    since, _, _ = for_slice(("time", "> 2026-08-31 23:59:59"))
    for numbers in (np.full(6, 20260901), np.array(["20260901"] * 6)):
        with pytest.raises(InputError, match="'time' holds no dates"):
            since.transform(data.probs, {"time": numbers})
    assert since.counts(data.probs[:2], {"time": np.array(["", ""])})["without_value"] == 2
    record = own.to_dict()
    for where in (
        [],
        [{"name": "g", "values": ["b"]}],
        [{"name": "g", "values": ["b"], "is": "c"}],
    ):
        bad = record | {"parameters": record["parameters"] | {"where": where}}
        with pytest.raises(InputError):
            load_map(bad)


@pytest.mark.parametrize(
    ("written", "where"),
    [
        ({"g": "b"}, (("g", "b"),)),
        ({"age": "(10, 20]"}, (("age", "(10, 20]"),)),
        ({"age": "> 30", "g": "b"}, (("age", "> 30"), ("g", "b"))),
        ({"age": "≤ 10"}, (("age", "≤ 10"),)),
        ({"time": "> 2026-08-31 23:59:59"}, (("time", "> 2026-08-31 23:59:59"),)),
    ],
)
def test_conditions_that_are_written_are_those_of_the_slice(written, where):
    own, data, columns = for_slice(*where)
    typed = SliceMap.around(load_map(HALVED), written)
    assert typed.words == own.words
    np.testing.assert_array_equal(typed.met(columns, data.probs), own.met(columns, data.probs))


def test_other_values_of_a_column_of_many_are_a_slice_without_those_that_are_missing():
    names = np.array([f"v{i % 60}" for i in range(600)])
    names[:60:7] = ""
    data = Predictions(probs=np.full(600, 0.8), labels=[0, 1] * 300, texts={"shop": names})
    kept = data.cuts["shop"].kept
    own = SliceMap.around(load_map(HALVED), slice_of(data, (("shop", "other"),)))
    met, empty = own.met({"shop": names}, data.probs)
    np.testing.assert_array_equal(met, ~np.isin(names, [*kept, ""]))
    np.testing.assert_array_equal(empty, names == "")


def test_a_map_of_hours_reads_them_in_the_times_of_any_file_as_they_are_written():
    hours = np.datetime64("2026-09-01T00", "us") + np.arange(240) * np.timedelta64(1, "h")
    data = Predictions(probs=np.full(240, 0.8), labels=[0, 1] * 120, times=hours)
    assert [*data.cuts] == ["time", "hour of time"]
    own = SliceMap.around(load_map(HALVED), slice_of(data, (("hour of time", "22 to 1"),)))
    assert own.to_dict()["parameters"]["where"] == [
        {"name": "time", "cycle": "hour", "is": "22 to 1"}
    ]
    assert (own.words, own.needed_columns) == ("hour of time = 22 to 1", ("time",))
    assert SliceMap.around(load_map(HALVED), {"hour of time": "22 to 1"}).words == own.words
    inside = np.isin(np.arange(240) % 24, [22, 23, 0, 1])
    np.testing.assert_array_equal(rows_where(data, (("hour of time", "22 to 1"),)), inside)
    iso = np.datetime_as_string(hours, unit="s")
    written = [iso, np.char.add(iso, "+02:00"), hours, np.char.replace(iso, "T", " ")]
    program, loaded = {}, load_map(json.loads(json.dumps(own.to_dict())))
    exec(own.snippet(), program)
    for times in written:
        for apply in (loaded.transform, program["recalibrate"]):
            changed = (apply(data.probs, {"time": times}) != data.probs).any(axis=1)
            np.testing.assert_array_equal(changed, inside)
    german = [f"{t[8:10]}.{t[5:7]}.{t[:4]} {t[11:16]}" for t in [*iso[:22], "2026-09-13T22:00:00"]]
    counts = {"changed": 3, "unchanged": 20, "without_value": 0}
    assert own.counts(data.probs[:23], {"time": np.array(german)}) == counts
    for unknown in (np.full(3, 22), np.array(["22"] * 3), np.array(["night"] * 3)):
        with pytest.raises(InputError, match="the column 'time' holds no dates"):
            own.transform(data.probs[:3], {"time": unknown})
    assert own.counts(data.probs[:2], {"time": np.array(["", hours[0]])})["without_value"] == 1
    bad = own.to_dict()
    bad["parameters"]["where"] = [{"name": "time", "cycle": "moon", "is": "22 to 1"}]
    with pytest.raises(InputError, match="a cycle must be hour or weekday or month"):
        load_map(bad)


def test_the_map_of_a_slice_is_fitted_on_its_rows_alone():
    X, y, columns = rows()
    data = Predictions(probs=X[:, 1], labels=y, groups=columns)
    where = slice_of(data, (("site", "d"),))
    own = RECALIBRATORS["slice+platt"].make(input="probabilities", where=where)
    own.fit(X, y, columns=columns)
    inside = columns["site"] == "d"
    alone = RECALIBRATORS["platt"].make(input="probabilities").fit(X[inside], y[inside])
    np.testing.assert_array_equal(own.transform(X, columns)[inside], alone.transform(X[inside]))
    # As it is written on a command line, and in Python.
    written = calviz.recalibrate(data, "slice+platt", fit_fraction=0.5, where={"site": "d"})
    np.testing.assert_array_equal((written.probs != data.probs).any(axis=1), inside)
    with pytest.raises(InputError, match="no calibration row where site = d"):
        own.fit(X[~inside], y[~inside], columns={"site": columns["site"][~inside]})
    where = slice_of(data, (("predicted class", "1"),))
    by_class = RECALIBRATORS["slice+platt"].make(input="probabilities", where=where).fit(X, y)
    np.testing.assert_array_equal(
        (by_class.transform(X) != X).any(axis=1), X.argmax(axis=1).astype(bool)
    )
    with pytest.raises(OptionError, match='"where" must be the conditions of a slice'):
        RECALIBRATORS["slice+platt"].make(input="probabilities").fit(X, y, columns=columns)
    # A key may hold its options, also in a link to what is pinned.
    where = slice_of(data, (("site", "d"),))
    named = RECALIBRATORS[f"slice+platt {json.dumps({'where': where, 'others': 'platt'})}"]
    assert named.label == "Map for site = d, other rows by Platt scaling"
    assert named.make(input="probabilities").key == "slice+platt"
    for bad in ("[]", "{", '{"where": 1}', '{"by": 1}', '{"where": [{}]}', '{"others": []}'):
        assert f"slice+platt {bad}" not in RECALIBRATORS
