"""Samples, steps, and classes."""

from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pytest
from scipy.stats import beta, binom

import calviz
from calviz.core import events as events_module
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.events import BinaryEvents
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.figures.reliability import Reliability
from calviz.metrics.cumulative import ks
from calviz.sample import steps as step_draws
from calviz.sample.losses import notable_rows, part_numbers
from calviz.sample.sample import Sample, bin_sums, event_sums, top_label_sums
from calviz.sample.steps import MAX_STEPS, Steps, make_steps
from calviz.sample.true_classes import class_table
from calviz.verdicts.sentence import judged

# ---- A sample says what is looked at; it makes each view once, and views that are the same are one object


def sample(reduction="top-label"):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), size=100)
    return Sample(Predictions(probs=probs, labels=rng.integers(3, size=100)), reduction)


def test_views_are_made_once_per_maker_and_parameters():
    s = sample()
    equal_width = partial(bin_sums, scheme="equal-width")
    assert s.view(equal_width) is s.view(equal_width)
    assert s.view(equal_width) is s.view(bin_sums, scheme="equal-width")
    assert s.view(equal_width) is not s.view(equal_width, bins=20)


def test_the_top_label_is_one_view_for_accuracy_and_mcs():
    s = sample()
    assert s.view(top_label_sums) is s.view(event_sums)


@pytest.mark.parametrize("reduction", ["class:1", "top-2"])
def test_accuracy_looks_at_the_top_label_under_every_reduction(reduction):
    s, top = sample(reduction), sample()
    np.testing.assert_array_equal(s.view(top_label_sums).cells, top.view(top_label_sums).cells)
    assert s.view(event_sums).score_sum[0] == pytest.approx(s.events.score.sum())
    assert s.view(event_sums).hit_sum[0] == s.events.hit.sum()


def grouped():
    rng = np.random.default_rng(1)
    return Predictions(
        probs=rng.dirichlet(np.ones(3), size=90),
        labels=rng.integers(3, size=90),
        splits=["fit"] * 30 + ["test"] * 60,
        groups={"month": ["5", "6", "7"] * 30},
    )


def test_a_sample_takes_the_rows_of_a_split_and_a_slice_and_says_so():
    p = grouped()
    seen = Sample.of(p, split="test", where=(("month", "5"),), scheme="sturges")
    expected = np.arange(90)[30::3]
    np.testing.assert_array_equal(seen.data.probs, p.probs[expected])
    # 20 rows: ceil(log2 20) + 1 = 6.
    assert seen.words == (
        "20 rows · split test · month = 5 · top label · 6 equal-width bins, by Sturges' rule"
    )
    assert Sample(p, bins=1).words == "90 rows · all splits · top label · 1 equal-width bin"
    assert Sample(p, scheme="equal-mass").ece_key == "ece_equal_mass"


def test_nothing_else_asked_is_the_same_sample():
    seen = Sample.of(grouped(), split="test", bins=7)
    assert Sample.of(seen) is Sample.of(seen, bins=7) is seen
    other = Sample.of(seen, bins=8)
    assert (other.bins, other.split) == (8, "test")
    assert other.events is seen.events
    narrower = Sample.of(seen, where=(("month", "6"),))
    assert (narrower.data.n, narrower.bins, narrower.split) == (20, 7, "test")
    assert narrower.events is not seen.events
    with pytest.raises(FrozenInstanceError):
        seen.bins = 3
    with pytest.raises(OptionError, match="'seed' must be a whole number, 0 or more"):
        seen.but(seed=-1)


@pytest.mark.slow
def test_what_is_large_can_be_let_go_and_results_stay():
    rng = np.random.default_rng(2)
    score = rng.random(20_000)
    seen = Sample(Predictions(probs=score, labels=(rng.random(20_000) < score).astype(int)))
    evaluation = calviz.evaluate(seen, ["ece", "ks"], ci=True, findings=True)
    events, sums = seen.events, seen.view(bin_sums)
    seen.let_go()
    assert seen.events is not events
    assert calviz.evaluate(seen, ["ece", "ks"], ci=True, findings=True) == evaluation
    np.testing.assert_array_equal(seen.view(bin_sums).cells, sums.cells)


def test_comparisons_measure_the_ece_over_the_bins_that_are_asked_for():
    rng = np.random.default_rng(3)
    score = rng.random(400)
    p = Predictions(probs=score, labels=(rng.random(400) < score**2).astype(int))
    how = {"bins": 7, "scheme": "equal-mass"}
    split = {"fit_fraction": 0.5, "metrics": ("ece",), "resamples": 50}
    comparison = calviz.compare(p, ["platt"], **split, **how)
    assert comparison.bins_words == "7 equal-mass bins"
    for m in comparison:
        by_hand = calviz.figures.Reliability.compute(m.calibrated, **how)
        assert m.metrics["ece"].value == by_hand.ece
        assert m.metrics["ece"].value != calviz.evaluate(m.calibrated, ["ece"])["ece"].value
    # The paired value is made of the same bins.
    judged = {m.label: m.calibrated for m in comparison}
    models = calviz.compare_models(judged, ["ece"], resamples=50, **how)
    names = list(judged)
    for name in names:
        assert models[name].metrics["ece"].value == pytest.approx(
            calviz.evaluate(judged[name], ["ece"], **how)["ece"].value
        )
    assert models.bins_words == "7 equal-mass bins"
    curve = calviz.learning_curve(
        p, ["platt"], sizes=[50], repeats=1, fit_fraction=0.5, metrics=("ece",), **how
    )
    assert curve.uncalibrated["ece"].value == comparison["identity"].metrics["ece"].value
    assert curve.bins_words == "7 equal-mass bins"


def test_columns_for_a_sample_are_those_of_the_rows_that_it_holds():
    weights = np.concatenate([np.zeros(10), np.linspace(1, 2, 90)])
    p = np.random.default_rng(0).random(100)
    data = calviz.Predictions(probs=p, labels=(p > 0.4).astype(int), weights=weights)
    sample = Sample(data)
    of_rows = calviz.evaluate(sample, ["ece"], sample_weight=weights[10:])["ece"].value
    assert of_rows == calviz.evaluate(data, ["ece"], sample_weight=weights)["ece"].value
    for column in ({"sample_weight": weights}, {"clusters": np.arange(100) // 2}):
        with pytest.raises(
            InputError, match=r"for 90 rows: a sample holds .* without those of wei"
        ):
            calviz.evaluate(sample, ["ece"], **column)


# ---- Steps: ties, merging, and that drawing cells is drawing rows


def events(n=1000, seed=0, decimals=None, dtype=np.float64):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    if decimals is not None:
        score = np.round(score, decimals)
    return BinaryEvents(score.astype(dtype), rng.random(n) < score)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decimals", [None, 2, 0])
def test_counts_rows_and_hits_per_distinct_score(decimals, dtype):
    data = events(decimals=decimals, dtype=dtype)
    score, index = np.unique(data.score, return_inverse=True)
    view = make_steps(data)
    np.testing.assert_array_equal(view.score, score)
    np.testing.assert_array_equal(view.count, np.bincount(index))
    np.testing.assert_array_equal(view.hits, np.bincount(index, data.hit))
    np.testing.assert_allclose(view.square, score.astype(float) ** 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cached", [0, 1_000])
@pytest.mark.parametrize("lowest", [0.0, -1e-9])
def test_counting_leaves_the_events_and_their_order_as_they_are(lowest, cached, dtype, monkeypatch):
    monkeypatch.setattr(events_module, "CACHED_ROWS", cached)
    data = events(decimals=2, dtype=dtype)
    data = BinaryEvents(np.where(data.score == 0, dtype(lowest), data.score), data.hit)
    for given in (data, data.in_order()):
        before = [column.copy() for column in (given.score, given.hit, *given.ordered)]
        first, second = make_steps(given), make_steps(given)
        np.testing.assert_array_equal(first.score, second.score)
        np.testing.assert_array_equal(first.score, np.unique(data.score))
        after = given.score, given.hit, *given.ordered
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)


def test_merging_keeps_every_sum():
    view = make_steps(events(30_000))
    small = view.merged()
    assert small.score.size <= MAX_STEPS
    assert small.count.max() <= 2 * 30_000 / MAX_STEPS
    assert small.n == 30_000
    assert small.hits.sum() == view.hits.sum()
    assert small.score_sum.sum() == pytest.approx(view.score_sum.sum())
    assert (small.count * small.square).sum() == pytest.approx((view.score**2).sum())
    assert np.all(np.diff(small.score) > 0)
    assert make_steps(events(100)).merged().score.size == 100


@pytest.mark.parametrize(
    "counts",
    [
        [0, 1, 2, 3, 5, 30, 7, 60, 20],  # many rows per cell
        [0, 1, 2, 3, 5, 30, 7],  # fewer than 100 rows
        [*range(8), *[1] * 200],  # single rows: by Poisson numbers
        [2000, *[1] * 800],  # one large cell beside single rows: row by row
    ],
)
def test_cells_are_drawn_like_rows(counts):
    cells = np.array(counts, dtype=float)
    n, draws = cells.sum(), 4000
    drawn = step_draws.multinomial(np.random.default_rng(0), cells, draws)
    np.testing.assert_array_equal(drawn.sum(axis=1), n)
    np.testing.assert_array_equal(drawn[:, cells == 0], 0)
    share = cells / n
    sd = np.sqrt(n * share * (1 - share))
    assert np.all(np.abs(drawn.mean(axis=0) - cells) <= 5 * sd / np.sqrt(draws))
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.08, atol=1e-9)
    # Cells exclude each other.
    covariance = np.cov(drawn[:, 1], drawn[:, -1])[0, 1]
    expected = -n * share[1] * share[-1]
    assert covariance == pytest.approx(expected, abs=6 * sd[1] * sd[-1] / np.sqrt(draws))


def test_many_cells_of_many_rows_are_nearly_multinomial():
    # Rounded normals with the skewness of a Poisson number, beside the distribution functions themselves.
    cells = np.tile([0, 12, 40, 300, 648], 300).astype(float)
    n, draws = int(cells.sum()), 400
    drawn = step_draws.multinomial(np.random.default_rng(0), cells, draws)
    np.testing.assert_array_equal(drawn.sum(axis=1), n)
    for rows in (0, 12, 40, 300, 648):
        result = drawn[:, cells == rows].ravel()
        where = np.arange(rows + 6 * int(rows**0.5) + 1)
        share = np.searchsorted(np.sort(result), where, side="right") / result.size
        # Kolmogorov's distance of 120,000 exact draws is below .0057 in 999 of 1,000 samples.
        assert np.abs(share - binom.cdf(where, n, rows / n)).max() < 0.0057
    halves = drawn.reshape(draws, 2, -1).sum(axis=2)[:, 0]
    assert halves.std() == pytest.approx(n**0.5 / 2, rel=0.12)


@pytest.mark.parametrize("p", [0.03, 0.5, 0.98])
def test_hits_of_many_rows_are_nearly_binomial(p):
    count = np.full(200, 2_000.0)
    hits = step_draws.binomial(np.random.default_rng(2), count, np.full(200, p), 600).ravel()
    where = np.arange(2_001)
    share = np.searchsorted(np.sort(hits), where, side="right") / hits.size
    assert np.abs(share - binom.cdf(where, 2_000, p)).max() < 0.0057


@pytest.mark.parametrize("most", [1, 5, 64, 500])
def test_hits_are_binomial(most):
    count, p = np.array([1, 1, most, most, most, most]), np.array([0.3, 0, 1, 0.9, 0.02, 0.5])
    draws = 20_000
    hits = step_draws.binomial(np.random.default_rng(1), count.astype(float), p, draws)
    sd = np.sqrt(count * p * (1 - p))
    assert np.all(np.abs(hits.mean(axis=0) - count * p) <= 5 * sd / np.sqrt(draws))
    np.testing.assert_allclose(hits.std(axis=0), sd, rtol=0.06, atol=1e-9)
    assert np.all((hits >= 0) & (hits <= count))


def test_drawing_again_from_the_same_seed_gives_the_same_arrays():
    view = make_steps(events(3000))
    for how in ("bootstrap", "under_calibration"):
        rngs = [np.random.default_rng(4) for _ in range(2)]
        one, two = (getattr(view, how)(rng, 50) for rng in rngs)
        assert one.hits is two.hits
        assert rngs[0].random() == rngs[1].random()
        other = getattr(view, how)(np.random.default_rng(5), 50)
        assert np.any(other.hits != one.hits)


def test_parts_are_the_resamples_in_order():
    drawn = make_steps(events(3000)).bootstrap(np.random.default_rng(0), 300)
    parts = list(drawn.parts())
    assert len(parts) > 1
    np.testing.assert_array_equal(np.concatenate([p.hits for p in parts]), drawn.hits)
    assert all(isinstance(p, Steps) for p in parts)


def test_under_calibration_leaves_the_rows():
    view = make_steps(events(5000, decimals=2))
    drawn = view.under_calibration(np.random.default_rng(0), 400)
    assert np.all(drawn.count == view.count)
    np.testing.assert_allclose(
        drawn.hits.mean(axis=0), view.count * view.score, atol=6 * np.sqrt(view.count.max() / 1600)
    )


def test_work_on_blocks_comes_in_their_order(monkeypatch):
    monkeypatch.setattr("calviz.sample.steps.STEP_BLOCK", 100)
    monkeypatch.setattr("calviz.sample.steps.WORK_BLOCK", 100)
    rng = np.random.default_rng(9)
    score = rng.random(1_050)
    view = make_steps(BinaryEvents(score, rng.random(1_050) < score))
    firsts = list(view.of_blocks(lambda part: part.score[0]))
    np.testing.assert_array_equal(firsts, np.sort(score)[::100])
    assert list(view.as_drawn().of_blocks(lambda part: part.size)) == [1_050]
    np.testing.assert_array_equal(view.scores_at(np.array([0, 1_049])), [score.min(), score.max()])


# ---- The table of true classes against one class at a time


def sample_of(score, hit, labels, k):
    names = tuple(f"class {i}" for i in range(k))
    data = ConfidencePredictions(confidence=score, correct=hit, labels=labels, class_names=names)
    return Sample(data)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k", "decimals"), [(1, 3, None), (900, 12, None), (900, 12, 1)])
def test_every_class_alone(n, k, decimals, dtype):
    rng = np.random.default_rng(1)
    score = rng.random(n)
    if decimals is not None:
        score = np.round(score, decimals)
    score = score.astype(dtype)
    hit, labels = rng.random(n) < score, rng.integers(k - 2, size=n)  # two classes without rows
    table = class_table(sample_of(score, hit, labels, k))
    for c in range(k):
        rows = labels == c
        assert table.rows[c] == rows.sum()
        values = [getattr(table, f)[c] for f in ("accuracy", "confidence", "mcs", "ks")]
        if not rows.any():
            assert np.isnan(values).all()
            continue
        alone = BinaryEvents(score[rows], hit[rows])
        accuracy, confidence = hit[rows].mean(), score[rows].mean(dtype=float)
        expected = [accuracy, confidence, confidence - accuracy, float(ks(make_steps(alone)))]
        np.testing.assert_allclose(values, expected, atol=1e-12)


def test_by_hand():
    table = class_table(sample_of([0.9, 0.8, 0.6], [True, False, False], [0, 0, 1], 3))
    np.testing.assert_allclose(table.accuracy, [0.5, 0, np.nan])
    np.testing.assert_allclose(table.confidence, [0.85, 0.6, np.nan])
    np.testing.assert_allclose(table.ece, [0.45, 0.6, np.nan])  # (0.1 + 0.8) / 2: bins of their own
    np.testing.assert_allclose(table.mcs, [0.35, 0.6, np.nan])
    np.testing.assert_allclose(table.ks, [0.4, 0.6, np.nan])  # 0.8 / 2 after the lower score


# ---- The numbers of some rows, by hand


PROBS = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
LABELS = np.array([0, 1, 1, 1])


def _sample(**columns):
    p = calviz.Predictions(probs=PROBS, labels=LABELS, **columns)
    return Sample(p, reduction="top-label")


def test_numbers_of_two_rows_by_hand():
    some = part_numbers(_sample(), np.array([0, 1]))
    assert (some.rows, some.share) == (2, 0.5)
    assert some.score == pytest.approx(0.85)
    assert some.observed == 0.5
    assert some.gap == pytest.approx(0.35)
    assert some.misses == 1  # the only mistake of all four rows
    losses = -np.log([0.9, 0.2, 0.7, 0.6])
    assert some.log_loss == pytest.approx(losses[:2].mean())
    assert some.loss_share == pytest.approx(losses[:2].sum() / losses.sum())
    # Clopper and Pearson's interval of 1 of 2, as quantiles of beta distributions.
    low, high = beta.ppf([0.025, 0.975], [1, 2], [2, 1])
    assert tuple(some.interval) == pytest.approx((0.85 - high, 0.85 - low))


def test_all_rows_are_the_sample_and_none_are_nothing():
    every = part_numbers(_sample())
    assert (every.rows, every.share, every.misses, every.loss_share) == (4, 1, 1, 1)
    none = part_numbers(_sample(), np.array([], dtype=int))
    assert none.rows == 0
    assert none.share == 0
    assert np.isnan(none.score)
    assert none.interval is None


def test_weights_count_and_rows_of_one_cluster_are_one_observation():
    weighted = part_numbers(_sample(weights=np.array([3.0, 1, 1, 1])), np.array([0, 1]))
    assert weighted.share == pytest.approx(4 / 6)
    assert weighted.observed == pytest.approx(0.75)
    alike = part_numbers(_sample(clusters=["a", "a", "b", "b"]), np.array([0, 1]))
    assert alike.interval is None  # one cluster does not tell how much they vary


def test_the_loss_of_all_rows_is_the_nll_with_the_same_limit():
    probs = np.array([[1 - 1e-20, 1e-20], [0.3, 0.7], [1.0, 0.0]])
    p = calviz.Predictions(probs=probs, labels=np.array([1, 1, 1]))
    by_hand = -(np.log(0.7) + 2 * np.log(np.finfo(float).eps)) / 3
    assert part_numbers(Sample(p)).log_loss == pytest.approx(by_hand)
    assert calviz.evaluate(p, ["nll"])["nll"].value == pytest.approx(by_hand)


# ---- Rows worth looking at, by a plain sort


def sample_of_notable_rows(n=500, **options):
    rng = np.random.default_rng(3)
    p = calviz.Predictions(probs=rng.dirichlet([0.4] * 3, n), labels=rng.integers(3, size=n))
    return Sample(p, **options)


def test_rows_are_those_of_a_plain_sort():
    s = sample_of_notable_rows(bins=7)
    p = s.data
    confidence, hit = p.probs.max(1), p.probs.argmax(1) == p.labels
    expected = {
        "mistake": np.abs(confidence - hit),
        "loss": -np.log(np.maximum(p.probs[np.arange(p.n), p.labels], 2.2e-16)),
    }
    bins = np.maximum(np.ceil(confidence * 7).astype(int) - 1, 0)
    share = np.array([hit[bins == m].mean() if (bins == m).any() else 0 for m in range(7)])
    expected["bin"] = np.abs(hit - share[bins])
    for why, value in expected.items():
        rows, result = notable_rows(s, why, most=40)
        np.testing.assert_allclose(result, np.sort(value)[::-1][:40], rtol=1e-6)
        np.testing.assert_allclose(value[rows], result, rtol=1e-6)
        assert len(set(rows.tolist())) == 40
    assert notable_rows(sample_of_notable_rows(5), "loss")[0].size == 5


def test_rows_that_are_predicted_right_are_no_mistakes():
    p = calviz.Predictions(
        probs=[[0.4, 0.35, 0.25], [0.1, 0.7, 0.2], [0.6, 0.3, 0.1]], labels=[0, 0, 0]
    )
    assert notable_rows(Sample(p), "mistake")[0].tolist() == [1]
    assert notable_rows(Sample(p.take(np.array([0, 2]))), "mistake")[0].size == 0
    # As an event, class 0 is missed where its score is below 0.5.
    rows, value = notable_rows(Sample(p, reduction="class:0"), "mistake")
    assert rows.tolist() == [1, 0]
    np.testing.assert_allclose(value, [0.9, 0.6])


def test_what_cannot_be_said_is_said():
    p = calviz.ConfidencePredictions(confidence=np.full(9, 0.8), correct=np.arange(9) > 2)
    with pytest.raises(NotAvailable, match="probabilities of all classes"):
        notable_rows(Sample(p), "loss")
    with pytest.raises(OptionError, match="'why'"):
        notable_rows(sample_of_notable_rows(), "odd")


@pytest.mark.slow
def test_rare_events_are_judged_in_the_bins_that_are_drawn_and_the_ece_keeps_its_own():
    rng = np.random.default_rng(6)
    true = rng.normal(-5.3, 1, 20_000)
    p = Predictions(
        probs=1 / (1 + np.exp(0.6 - true)),
        labels=(rng.random(20_000) < 1 / (1 + np.exp(-true))).astype(int),
    )
    sample, mass = Sample(p), Sample(p, scheme="equal-mass")
    assert (sample.placed, sample.ece_key) == ("equal-mass", "ece_equal_mass")
    assert judged(sample).sentence == judged(mass).sentence
    assert judged(sample).sentence != judged(Sample(p, scheme="equal-width")).sentence
    assert (
        Reliability.compute(sample).ece
        == calviz.evaluate(p, ["ece_equal_mass"])["ece_equal_mass"].value
    )
    # What a limit of 'calviz audit' is compared with does not depend on the scores.
    ece = calviz.evaluate(p, ["ece"])["ece"]
    assert ece.params["scheme"] == "equal-width"
    # A comparison has no such limit: its bins are those of the verdict.
    assert calviz.compare(p, ["platt"], resamples=100, jobs=1).scheme == "equal-mass"
