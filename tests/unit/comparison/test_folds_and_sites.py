"""Folds and sites: each alone, random effects against metafor and closed forms, intervals by hand, and what is said with known truth."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit
from sklearn.metrics import log_loss, roc_auc_score

import calviz
from benchmarks import record_r
from benchmarks.claims import SIMULATIONS, every_simulation, too_few, too_many
from calviz.comparison.folds_and_sites import MEASURES, random_effects
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.figures.metric_over_time import CurvesByLevel
from tests.inputs.command_line import run

RECORDED = json.loads(record_r.RECORDED.read_text(encoding="utf-8"))["random_effects"]


def validation(n=1_200, levels=4, seed=0, shift=(0.0,), **columns):
    """Calibrated rows but for shifts of the labels' logits, level by level."""
    rng = np.random.default_rng(seed)
    level = np.arange(n) % levels
    z = rng.normal(-0.3, 1.3, n)
    labels = (rng.random(n) < expit(z + np.resize(shift, levels)[level])).astype(int)
    names = np.array([f"s{k}" for k in range(levels)])[level]
    groups = {"fold": level, "site": names}
    return calviz.Predictions(probs=expit(z), labels=labels, groups=groups, **columns)


# ---- Folds


def test_each_fold_is_what_it_is_alone():
    data = validation()
    result = calviz.folds(data, resamples=30)
    for k, fold in enumerate(result.folds):
        alone = data.take(np.flatnonzero(data.groups["fold"].codes == k))
        every = calviz.evaluate(alone, list(fold.metrics), ci=True, resamples=30)
        for key, one in fold.metrics.items():
            assert (one.value, one.interval) == (every[key].value, every[key].interval)
        y, p = alone.labels, alone.probs[:, 1]
        assert fold.metrics["nll"].value == pytest.approx(log_loss(y, p), rel=1e-12)
        assert fold.metrics["auroc"].value == pytest.approx(roc_auc_score(y, p), rel=1e-12)


def test_means_and_their_intervals_by_hand():
    result = calviz.folds(validation(), resamples=50)
    value = np.array([f.metrics["nll"].value for f in result.folds])
    ends = np.array([f.metrics["nll"].interval for f in result.folds])
    mean = result.means["nll"]
    assert (mean.mean, mean.spread) == pytest.approx((value.mean(), np.std(value, ddof=1)))
    below, above = np.sqrt(((ends - value[:, None]) ** 2).sum(axis=0)) / 4
    assert mean.interval == pytest.approx((value.mean() - below, value.mean() + above))
    # The error of a fold grows with its noise, which no interval around the mean allows for.
    assert result.means["ece"].interval is None
    assert result.means["ece"].noise > 0.01
    assert "ECE: folds of a calibrated model would show" in str(result)
    assert str(result).startswith("Fold results of ")


def test_repeats_share_rows_and_have_no_narrower_interval_than_one():
    once = validation(300, levels=1)
    twice = calviz.Predictions(
        probs=np.tile(once.probs, (2, 1)),
        labels=np.tile(once.labels, 2),
        groups={"repeat": np.repeat([1, 2], 300)},
        ids=np.tile(np.arange(300), 2),
    )
    result = calviz.folds(twice, resamples=50)
    one = result.folds[0].metrics["nll"]
    assert result.shared
    assert result.means["nll"].interval == pytest.approx(one.interval)
    assert result.sentence().startswith("Differences are not tested: the same rows")
    assert math.isnan(result.folds[0].adjusted)


def test_repeats_and_folds_are_crossed():
    groups = {"repeat": np.repeat([1, 2], 300), "fold": np.arange(600) % 3}
    data = validation(600)
    data = calviz.Predictions(probs=data.probs, labels=data.labels, groups=groups)
    result = calviz.folds(data, resamples=20)
    assert result.by == ("repeat", "fold")
    assert {f.name: f.rows for f in result.folds}["2 1"] == 100
    assert len(result.folds) == 6


def test_confidences_are_tested_by_a_metric_that_they_have():
    rng = np.random.default_rng(0)
    score = rng.beta(5, 2, 600)
    data = calviz.ConfidencePredictions(
        confidence=score, correct=rng.random(600) < score, groups={"fold": np.arange(600) % 3}
    )
    # NLL and Brier score need the probabilities of all classes.
    assert calviz.folds(data, resamples=20).tested == ("ece", "mcs")


def test_a_fold_that_is_off_is_named():
    result = calviz.folds(validation(shift=(0, 0, 1.5, 0)), resamples=20)
    # So far off that it sets the others apart too.
    assert result.differing[0].name == "2"
    assert "most clearly '2'." in result.sentence()
    result = calviz.folds(validation(3_000, levels=10, shift=(0,) * 9 + (1,)), resamples=20)
    assert result.sentence() == (
        "1 of 10 folds differs from the others in NLL or MCS beyond chance: '9'."
    )


def test_a_fold_of_three_rows_is_said_and_left_out():
    data = validation(603)
    fold = np.arange(603) % 3
    fold[600:] = 9
    few = calviz.Predictions(probs=data.probs, labels=data.labels, groups={"fold": fold})
    result = calviz.folds(few, resamples=20)
    assert len(result.folds) == 3
    assert "Left out: 9 (3 rows)." in str(result)
    rest = calviz.folds(few.take(np.arange(600)), resamples=20)
    assert [f.metrics["nll"].value for f in result.folds] == [
        f.metrics["nll"].value for f in rest.folds
    ]


def test_what_cannot_be_measured_is_a_sentence():
    data = validation(90)
    with pytest.raises(NotAvailable, match="no column is called fold"):
        calviz.folds(calviz.Predictions(probs=data.probs, labels=data.labels))
    with pytest.raises(OptionError, match="no group column 'centre'; known: fold, site"):
        calviz.sites(data, "centre")
    with pytest.raises(NotAvailable, match=r"no value of 'site' has enough rows: s0 \(23 rows\)"):
        calviz.sites(data, "site")
    with pytest.raises(OptionError, match="500 values, more than 400"):
        calviz.folds(validation(500, levels=500))
    one = calviz.folds(validation(50, levels=1), resamples=20)
    assert one.untested.startswith("differences are not tested: only one fold")
    assert math.isnan(one.means["nll"].spread)


def test_cross_fitting_takes_the_folds_of_a_column():
    data = validation()
    comparison = calviz.compare(data, ["temperature"], cross_fit="fold", ci=False)
    calibrated = comparison["temperature"].calibrated
    assert "4-fold cross-fitting by 'fold'" in comparison.fit.how
    for k in range(4):
        own = data.groups["fold"].codes == k
        fitted = calviz.recalibrators.TemperatureScaling().fit(data.probs[~own], data.labels[~own])
        np.testing.assert_allclose(
            calibrated.probs[own], fitted.transform(data.probs[own]), atol=1e-9
        )


def test_folds_that_share_rows_do_not_cross_fit():
    data = validation(400, ids=np.arange(400) // 2)
    with pytest.raises(InputError, match="the same rows are in several folds of 'fold'"):
        calviz.compare(data, ["temperature"], cross_fit="fold")
    with pytest.raises(OptionError, match="'fold' has 1 value: cross-fitting needs from 2"):
        calviz.compare(validation(levels=1), ["temperature"], cross_fit="fold")


# ---- Random effects


@pytest.mark.parametrize("name", RECORDED)
def test_random_effects_are_those_of_metafor(name):
    ours, theirs = random_effects(*record_r.sites()[name]), RECORDED[name]
    assert ours.tau_squared == pytest.approx(theirs["tau2"][0], abs=1e-6)
    assert ours.mean == pytest.approx(theirs["mean"][0], abs=1e-6)
    assert ours.interval == pytest.approx(theirs["interval"], abs=1e-6)
    assert (ours.q, ours.p_value) == pytest.approx(theirs["q"], rel=1e-9)
    assert ours.tau_squared_interval == pytest.approx(theirs["tau2_interval"], abs=1e-6)


@pytest.mark.parametrize("name", record_r.sites())
def test_tau_maximises_the_likelihood_of_contrasts(name):
    # REML is the likelihood of k - 1 contrasts that do not depend on the mean.
    y, v = record_r.sites()[name]
    contrasts = np.eye(y.size)[1:] - np.eye(y.size)[:-1]

    def likelihood(tau2):
        cov = contrasts @ np.diag(v + tau2) @ contrasts.T
        return stats.multivariate_normal.logpdf(contrasts @ y, np.zeros(y.size - 1), cov)

    ours = random_effects(y, v).tau_squared
    grid = np.concatenate([np.linspace(0, 4 * y.var(), 400), ours * np.linspace(0.9, 1.1, 41)])
    assert likelihood(ours) >= max(map(likelihood, grid)) - 1e-9


def test_equal_variances_have_a_closed_form():
    y, v = np.array([0.1, 0.9, 1.4, 2.0, 0.4]), 0.05
    e = random_effects(y, np.full(5, v))
    assert e.tau_squared == pytest.approx(y.var(ddof=1) - v, abs=1e-7)
    assert e.mean == pytest.approx(y.mean())
    reach = stats.t.ppf(0.975, 4) * y.std(ddof=1) / math.sqrt(5)
    assert e.interval == pytest.approx((y.mean() - reach, y.mean() + reach), abs=1e-8)
    ends = 4 * y.var(ddof=1) / stats.chi2.ppf([0.975, 0.025], 4) - v
    assert e.tau_squared_interval == pytest.approx(np.maximum(ends, 0), abs=1e-9)
    assert e.q == pytest.approx(4 * y.var(ddof=1) / v)


def test_a_new_site_is_drawn_from_the_confidence_distribution():
    # The same by chance: Q is chi-squared, a mean is normal around its own, a site around the mean.
    y, v = record_r.sites()["some"]
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 5, 20_000)
    w = 1 / (v + grid[:, None])
    q = (w * (y - (w @ y / w.sum(1))[:, None]) ** 2).sum(1)
    tau2 = np.interp(-rng.chisquare(y.size - 1, 400_000), -q, grid, left=0)
    total, first = (np.interp(tau2, grid, c) for c in (w.sum(1), w @ y))
    new = first / total + rng.normal(size=tau2.size) * np.sqrt(tau2 + 1 / total)
    prediction = random_effects(y, v).prediction
    assert prediction == pytest.approx(np.quantile(new, [0.025, 0.975]), abs=0.02)


# ---- Sites


def test_estimates_of_each_site_and_their_summary():
    data = validation(2_400, levels=6, shift=(0, 0.5, -0.5, 0.2, 0, 0.8))
    result = calviz.sites(data, "site")
    z = stats.norm.ppf(0.975)
    gaps, errors, odds = [], [], []
    for k, site in enumerate(result.sites):
        own = data.groups["site"].codes == k
        y, p = data.labels[own], data.probs[own, 1]
        assert site.values["auroc"][0] == pytest.approx(roc_auc_score(y, p))
        assert (site.rows, site.hits) == (400, y.sum())
        gaps.append((p - y).mean())
        errors.append((p - y).std() / math.sqrt(y.size))
        low, high = site.values["mcs"][1]
        assert (high - low) / (2 * z) == pytest.approx(errors[-1])
        odds.append((math.log(y.sum() / p.sum()), (1 - y.mean()) / y.sum()))
    by_hand = random_effects(np.array(gaps), np.array(errors) ** 2)
    assert result.effects["mcs"].mean == pytest.approx(by_hand.mean)
    assert result.effects["mcs"].prediction == pytest.approx(by_hand.prediction)
    by_hand = random_effects(*map(np.array, zip(*odds, strict=True)))
    assert result.effects["oe_ratio"].tau_squared == pytest.approx(by_hand.tau_squared, abs=1e-8)
    assert result.effects["oe_ratio"].interval == pytest.approx(np.exp(by_hand.interval))
    areas = [(s.values["auroc"][0], *s.values["auroc"][1]) for s in result.sites]
    value, low, high = logit(np.array(areas)).T
    by_hand = random_effects(value, ((high - low) / (2 * z)) ** 2)
    assert result.effects["auroc"].mean == pytest.approx(expit(by_hand.mean))
    assert "mcs" in result.differing
    low, high = result.effects["mcs"].prediction
    assert f"{100 * low:.1f} to {100 * high:.1f} points".replace("-", "−") in str(result)
    assert list(result.effects) == [m.key for m in MEASURES]


def test_a_site_of_three_rows_or_few_events_is_said_and_left_out():
    data = validation(1_203, levels=4)
    names = np.array([f"s{k % 4}" for k in range(1_203)], dtype=object)
    names[:3] = "tiny"
    rare = np.flatnonzero((names == "s3") & (data.labels == 1))[5:]
    names[rare] = "s0"
    few = calviz.Predictions(probs=data.probs, labels=data.labels, groups={"site": names})
    result = calviz.sites(few, "site")
    assert [s.name for s in result.sites] == ["s0", "s1", "s2"]
    assert "Left out: s3 (5 hits), tiny (3 rows)." in str(result)


def test_two_sites_have_no_prediction():
    result = calviz.sites(validation(800, levels=2), "site")
    assert all(e.prediction is None for e in result.effects.values())
    assert "A prediction interval for a new site needs three sites." in str(result)


def test_sites_that_a_split_lacks_do_not_shift_the_others():
    names = np.repeat(["gone", "a", "b"], 300)
    split = np.where(names == "gone", "train", "test")
    data = validation(900)
    data = calviz.Predictions(
        probs=data.probs, labels=data.labels, groups={"site": names}, splits=split
    )
    result = calviz.sites(data, "site", split="test")
    assert [(s.name, s.rows) for s in result.sites] == [("a", 300), ("b", 300)]
    assert [s.hits for s in result.sites] == [data.labels[names == n].sum() for n in "ab"]


def test_rows_without_a_site_are_left_out():
    names = np.array(["a", "b", ""], dtype=object)[np.arange(900) % 3]
    data = validation(900)
    data = calviz.Predictions(probs=data.probs, labels=data.labels, groups={"site": names})
    assert "rows without a value (300 rows)" in str(calviz.sites(data, "site"))


def test_clusters_widen_what_is_known_of_a_site():
    alone = validation(900, levels=3)
    doubled = calviz.Predictions(
        probs=np.repeat(alone.probs, 3, axis=0),
        labels=np.repeat(alone.labels, 3),
        groups={"site": np.repeat(np.arange(900) % 3, 3)},
        clusters=np.repeat(np.arange(900), 3),
    )
    one, many = (calviz.sites(d, "site", resamples=100) for d in (alone, doubled))
    for key in ("mcs", "calibration_slope"):
        own, same = ((r.sites[0].values[key][1]) for r in (one, many))
        assert same.high - same.low == pytest.approx(own.high - own.low, rel=0.25)


# ---- The curves


def test_curves_are_those_of_the_rows_of_each_level():
    data = validation(levels=3)
    figure = CurvesByLevel.compute(data, "site")
    own = np.sort(data.probs[data.groups["site"].codes == 1, 1])
    assert figure.curves[1].score[0] == pytest.approx(own[:40].mean())
    frame = figure.frame()
    assert set(frame.level) == {"s0", "s1", "s2", "All rows"}
    drawn = figure.plot(width=700)
    assert len(drawn.data) == 1 + 3 + 1
    assert "3 levels of site" in figure.describe()


def test_of_many_sites_the_small_ones_share_a_panel():
    data = validation(3_000, levels=40)
    figure = CurvesByLevel.compute(data, "site", panels=True)
    assert len(figure.curves) == 12
    assert figure.curves[-1].name == "29 others pooled"
    assert sum(c.rows for c in figure.curves) == 3_000
    for width in (900, 340, None):
        drawn = figure.plot(width=width)
        assert {t.xaxis for t in drawn.data} == {f"x{k or ''}" for k in (0, *range(2, 13))}


def test_panels_of_a_rare_event_are_zoomed_and_have_intervals():
    rng = np.random.default_rng(0)
    score = rng.uniform(0, 0.06, 6_000)
    data = calviz.Predictions(
        probs=score, labels=rng.random(6_000) < score, groups={"site": np.arange(6_000) % 3}
    )
    figure = CurvesByLevel.compute(data, "site", panels=True)
    assert 0.06 < figure.axes.end < 0.16
    drawn = figure.plot(width=700)
    axes = (*drawn.select_xaxes(), *drawn.select_yaxes())
    assert {round(a.range[1], 6) for a in axes} == {round(1.035 * figure.axes.end, 6)}
    frame = figure.frame()
    assert ((frame.low <= frame.observed) & (frame.observed < frame.high)).all()
    assert sum(t.error_y.array is not None for t in drawn.data) == 3
    # Bins of a site with few events have some each.
    few = CurvesByLevel.compute(
        calviz.Predictions(probs=score, labels=np.arange(6_000) < 36, groups=data.groups), "site"
    )
    assert {c.score.size for c in few.curves} == {2}


# ---- The command line


@pytest.mark.slow
def test_commands_write_what_python_gives(tmp_path):
    data, path = validation(), tmp_path / "v.csv"
    rows = zip(data.groups["fold"].codes, data.probs[:, 1], data.labels, strict=True)
    path.write_text("fold,p,y\n" + "".join(f"{f},{float(p)!r},{y}\n" for f, p, y in rows))
    out = run("folds", path, "--resamples", 20, "--metrics", "nll,mcs", "--json", "-")
    record = json.loads(out.stdout)
    ours = calviz.folds(data, metrics=("nll", "mcs"), resamples=20)
    assert record["means"]["nll"]["mean"] == pytest.approx(ours.means["nll"].mean)
    assert record["sentence"] == ours.sentence()
    assert [f["rows"] for f in record["folds"]] == [300] * 4
    out = run("sites", path, "--by", "fold", "--json", "-")
    record = json.loads(out.stdout)
    assert record["effects"]["auroc"]["sites"] == 4
    assert "differ beyond chance" in run("sites", path, "--by", "fold").stdout
    missing = run("sites", path, "--by", "ward")
    assert missing.exit_code == 2
    assert "there is no group column 'ward'; known: fold, score." in missing.stderr


@pytest.mark.slow
def test_a_report_has_folds_and_the_sites_that_are_named(tmp_path):
    data, path = validation(), tmp_path / "v.csv"
    rows = zip(data.groups["fold"].codes, data.probs[:, 1], data.labels, strict=True)
    path.write_text("fold,ward,p,y\n" + "".join(f"{f},w{f},{float(p)!r},{y}\n" for f, p, y in rows))
    for extra, said in (((), False), (("--sites", "ward"), True)):
        report = tmp_path / "r.html"
        assert run("audit", path, "--html", report, *extra).exit_code == 0
        text = report.read_text(encoding="utf-8")
        assert "No fold of 4 differs" in text
        assert ("The 4 sites do not differ" in text) == said
    assert run("audit", path, "--sites", "nowhere").exit_code == 2


# ---- What is said, with known truth


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rate", "least"),
    [
        ("folds: said of folds that agree, 10 folds of 60 rows, logits half as steep as said", 0.05, False),
        ("folds: found, one of 5 folds of 300 rows off by 1 logit", 0.9, True),
        ("mean-of-folds: intervals hold the mean of the models, 5 folds of 100 rows, models differ much", 0.93, True),
        ("sites: said of sites that are alike, 10 sites of 200 rows, calibrated", 0.05, False),
        ("sites: found, 10 sites of 400 rows, slopes with SD 0.3", 0.8, True),
        ("new-site: intervals hold a new site, 5 sites of 300 rows, SD of intercepts 0.3, of slopes 0.15", 0.93, True),
    ],
)  # fmt: skip
def test_sentences_are_true_as_often_as_they_say(name, rate, least):
    every_simulation()
    limit = {"at_least": too_few(rate, 25)} if least else {"at_most": too_many(rate, 25)}
    assert SIMULATIONS[name].keeps_to(25, seed=5, **limit)


def test_folds_are_in_the_order_of_their_names_whatever_the_rows():
    rng = np.random.default_rng(0)
    score, fold = rng.uniform(0.1, 0.9, 1_200), np.repeat([f"fold {k}" for k in range(12)], 100)
    labels = (rng.random(1_200) < score).astype(int)

    def names(order):
        p = calviz.Predictions(
            probs=score[order], labels=labels[order], groups={"fold": fold[order]}
        )
        return [record["fold"] for record in calviz.folds(p, resamples=50).records()]

    asked = [f"fold {k}" for k in range(12)]
    assert names(np.arange(1_200)) == asked
    assert names(rng.permutation(1_200)) == asked
