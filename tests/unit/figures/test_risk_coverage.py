"""Risk-coverage curves against plain loops, scikit-learn's ideas of ranking, and the metrics."""

import re

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, binomtest, entropy

import calviz
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.p_values import at_most
from calviz.core.words import from_on, percent
from calviz.figures.risk_coverage import RiskCoverage, margin, negative_entropy
from calviz.sample.sample import predicted_words
from tests.inputs.simulated import draw_labels


def classes(n=400, k=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.6), n).astype(dtype)
    labels = draw_labels(probs, rng)
    return calviz.Predictions(probs=probs, labels=labels, name="a model")


def confidence(score, correct):
    return calviz.ConfidencePredictions(confidence=np.asarray(score), correct=np.asarray(correct))


@pytest.mark.parametrize("k", [2, 3, 50])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rankings_against_scipy_and_a_sort(k, dtype):
    probs = classes(3_000, k, dtype=dtype).probs.copy()
    probs[0] = np.eye(k, dtype=dtype)[0]
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(-negative_entropy(probs), entropy(probs, axis=1), atol=tolerance)
    top = np.sort(probs, axis=1)
    np.testing.assert_allclose(margin(probs), top[:, -1] - top[:, -2], atol=tolerance)


@pytest.mark.parametrize("ranking", ["confidence", "entropy", "margin"])
def test_curve_against_a_plain_loop(ranking):
    p = classes(150)
    figure = RiskCoverage.compute(p, ranking=ranking)
    wrong = p.probs.argmax(1) != p.labels
    top = np.sort(p.probs, axis=1)
    value = {
        "confidence": top[:, -1],
        "entropy": -entropy(p.probs, axis=1),
        "margin": top[:, -1] - top[:, -2],
    }[ranking]
    in_order = wrong[np.argsort(-value)]
    expected = np.cumsum(in_order) / np.arange(1, 151)
    np.testing.assert_allclose(figure.risk, expected, atol=1e-12)
    perfect = np.cumsum(np.sort(wrong)) / np.arange(1, 151)
    np.testing.assert_allclose(figure.perfect, perfect, atol=1e-12)
    for kept in (1, 37, 120):
        choice = figure.at_coverage(kept / 150)
        assert (choice.kept, choice.referred) == (kept, 150 - kept)
        assert choice.risk == pytest.approx(expected[kept - 1])
        unit = -1 if ranking == "entropy" else 1
        # As it is written, it keeps as many rows.
        written = re.search(r"[≥≤] ([\d.]+)", choice.sentence)[1]
        assert np.count_nonzero(value >= unit * float(written)) == kept
        assert float(written) == choice.threshold
        same = figure.at_threshold(choice.threshold)
        assert (same.kept, same.accuracy) == (kept, pytest.approx(choice.accuracy))
        right = round(kept * choice.accuracy)
        exact = binomtest(right, kept).proportion_ci(0.95, method="exact")
        assert choice.interval == pytest.approx((exact.low, exact.high), abs=1e-9)


@pytest.mark.parametrize("n", [1, 30, 3_000])
def test_numbers_are_those_of_the_metrics(n):
    p = classes(n)
    figure = RiskCoverage.compute(p)
    result = calviz.evaluate(p, ["aurc", "accuracy", "accuracy_at_90_coverage"])
    assert figure.aurc == pytest.approx(result["aurc"].value, abs=1e-12)
    assert figure.accuracy == pytest.approx(result["accuracy"].value)
    at_90 = float(np.interp(0.9, figure.coverage, 1 - figure.risk))
    if n > 1:
        assert at_90 == pytest.approx(result["accuracy_at_90_coverage"].value, abs=2e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 7, 15, 95, 285])
def test_accuracy_at_a_coverage_is_that_of_the_metric(n, weighted):
    p = classes(n)
    if weighted:
        weights = np.random.default_rng(1).gamma(2, 1, n)
        p = calviz.Predictions(probs=p.probs, labels=p.labels, weights=weights)
    else:
        # By hand: whole rows, and the part of the row that is cut.
        order = np.argsort(-p.probs.max(1), kind="stable")
        right = (p.probs.argmax(1) == p.labels)[order]
        whole, part = int(0.9 * n), 0.9 * n - int(0.9 * n)
        expected = (right[:whole].sum() + part * right[min(whole, n - 1)]) / (0.9 * n)
        assert RiskCoverage.compute(p).at_coverage(0.9).accuracy == pytest.approx(expected)
    figure = RiskCoverage.compute(p)
    metrics = calviz.evaluate(p, ["accuracy_at_90_coverage", "coverage_at_risk"])
    choice = figure.at_coverage(0.9)
    assert choice.accuracy == pytest.approx(metrics["accuracy_at_90_coverage"].value, abs=1e-12)
    # A single row is not kept in part.
    coverage = 1.0 if figure.n == 1 else 0.9
    assert (choice.coverage, choice.kept + choice.referred) == (coverage, figure.n)
    assert ("Keeping the one prediction" in choice.sentence) == (figure.n == 1)


def test_a_part_of_a_row_is_no_row_that_goes_to_an_expert():
    sentence = RiskCoverage.compute(classes(7)).at_coverage(0.9).sentence
    assert sentence.endswith("; no whole row is referred.")
    assert RiskCoverage.compute(classes(7)).at_coverage(1e-12).kept == 1


def test_a_row_with_a_large_weight_is_not_tied():
    p = classes(50)
    weights = np.random.default_rng(0).gamma(2, 1, 50)
    single = calviz.Predictions(probs=p.probs, labels=p.labels, weights=weights)
    twice = calviz.Predictions(
        probs=np.repeat(p.probs, 2, axis=0),
        labels=np.repeat(p.labels, 2),
        weights=np.repeat(weights, 2),
    )
    shares = np.linspace(0.1, 0.9, 17)
    assert np.unique(p.probs.max(1)).size == 50
    for data, wanted in ((single, False), (twice, True)):
        figure = RiskCoverage.compute(data)
        tied = ["split by chance" in figure.at_coverage(c).sentence for c in shares]
        assert any(tied) == wanted


def test_all_rows_are_a_coverage_of_1_whatever_their_weights():
    p = classes(570)
    for seed in range(5):
        weights = np.random.default_rng(seed).gamma(2, 1, 570)
        data = calviz.Predictions(probs=p.probs, labels=p.labels, weights=weights)
        choice = RiskCoverage.compute(data).at_risk(1.0)
        assert choice.coverage == 1
        assert (
            "Chosen on all of the rows here, with none left to check it: all are kept"
            in choice.sentence
        )
        assert calviz.evaluate(data, ["coverage_at_risk"], risk=1.0)["coverage_at_risk"].value == 1


def test_ties_do_not_depend_on_the_order_of_rows():
    score = np.repeat([0.5, 0.9], [60, 40])
    correct = np.r_[np.arange(60) < 30, np.arange(40) < 36]
    a = RiskCoverage.compute(confidence(score, correct))
    b = RiskCoverage.compute(confidence(score[::-1], correct[::-1]))
    np.testing.assert_array_equal(a.risk, b.risk)
    assert a.at_coverage(0.2).risk == pytest.approx(0.1)  # half of the ties, as good as all of them
    assert "split by chance" in a.at_coverage(0.2).sentence
    assert "split by chance" not in a.at_coverage(0.4).sentence
    assert a.at_coverage(0.7).risk == pytest.approx((4 + 15) / 70)
    assert a.at_threshold(0.6).kept == 40


def test_the_lowest_threshold_whose_risk_is_shown():
    # Of 300 rows the 10th, 200th and 250th are wrong. At a risk of 5 % the tests begin with a third of the rows, where 1 error of 100
    # has P(Bin(100, .05) <= 1) = .037, and go on in steps of 3: the last of a row that pass at .05 is the answer.
    wrong = np.isin(np.arange(300), [10, 200, 250, 260, 270, 275, 280, 285, 290])
    figure = RiskCoverage.compute(confidence(np.linspace(0.99, 0.01, 300), ~wrong))
    sizes = np.append(np.arange(100, 300, 3), 300)
    fails = binom.cdf(np.cumsum(wrong)[sizes - 1], sizes, 0.05) > 0.05
    expected = int(sizes[np.argmax(fails) - 1])
    choice = figure.at_risk(0.05)
    assert (choice.kept, choice.referred) == (expected, 300 - expected)
    assert choice.threshold == figure.at_coverage(expected / 300).threshold
    assert choice.risk == pytest.approx(np.cumsum(wrong)[expected - 1] / expected)
    assert choice.sentence.startswith(
        f"Of the predictions with confidence ≥ {from_on(choice.threshold)}, at most 5.0 % are wrong, with 95 % confidence."
    )
    assert figure.at_risk(0.05, confidence=0.999).kept < expected
    # 100 of 100 are right with probability .03 if 3.5 % are wrong.
    assert (
        RiskCoverage.compute(confidence(np.linspace(0.9, 0.1, 90), np.ones(90))).at_risk(0.03).kept
        == 0
    )
    assert (
        RiskCoverage.compute(confidence(np.linspace(0.9, 0.1, 100), np.ones(100)))
        .at_risk(0.03)
        .kept
        == 100
    )


def test_of_a_rare_class_it_is_said_how_many_kept_rows_are_missed():
    # Of 3,000 kept rows 90 are of the second class, ten of which are found; where 50 are, nothing is said.
    score, label = np.linspace(0.04, 0.02, 3_000), np.arange(3_000) < 90
    for found, words in ((10, "80 of the 90 kept rows of 'ill' are missed"), (50, "")):
        p = calviz.Predictions(
            probs=np.where(np.arange(3_000) < found, 0.97, score),
            labels=label,
            class_names=("well", "ill"),
        )
        choice = RiskCoverage.compute(p, band=False).at_risk(0.05)
        assert (choice.kept, choice.missed) == (3_000, words)
        assert choice.sentence.endswith(f" {words}." if words else "referred.")
        assert choice.headline.endswith(f"are right, but {words}" if words else "are right")
        assert ("kept rows of 'ill' are missed" in calviz.threshold(p, 0.05).reading()) == bool(
            words
        )


def test_a_step_of_tied_rows_is_kept_as_a_whole_or_not():
    score = np.repeat([0.9, 0.5], [200, 100])
    wrong = np.r_[np.arange(200) < 2, np.arange(100) < 30]
    choice = RiskCoverage.compute(confidence(score, ~wrong)).at_risk(0.05)
    assert (choice.kept, choice.threshold) == (200, 0.9)


def test_where_no_threshold_is_shown_the_rows_that_are_missing_are_told():
    def at_risk(n, errors, risk=0.1, **options):
        wrong = np.arange(n) >= n - errors
        curve = RiskCoverage.compute(confidence(np.linspace(0.99, 0.5, n), ~wrong))
        return curve.at_risk(risk, **options)

    # 28 right of 28: P = .9^28 = .052.
    none = at_risk(28, 0)
    assert (none.kept, none.interval) == (0, None)
    assert np.isnan(none.threshold)
    assert at_risk(29, 0).kept == 29
    # Taken as (0 + 1) / (28 + 2) wrong: ln 20 / KL(1/30, .1) = 92.4 rows.
    assert none.more_rows == 65
    assert (
        "Tried on all of the rows here: at least about 65 more such rows are needed."
        in none.sentence
    )
    # Five right of five tell nothing: 3 ln 20 / -ln .9 = 85.3 rows.
    assert at_risk(5, 0).more_rows == 81
    # Of 18 right and then 82 wrong, 1 / 20 is 5 % up to rounding: no rows show that it is less.
    assert at_risk(101, 83, risk=0.05, confidence=0.9995).more_rows > 300
    assert at_risk(40, 40).more_rows == np.inf
    why = "no threshold that keeps 5 % of the rows gets clearly below 10.0 % wrong, and more rows would hardly help one threshold for all."
    assert at_risk(40, 40).sentence.replace("\xa0", " ").endswith(why)
    # 9.97 % wrong, the same at every threshold: millions of rows would show that these are fewer than 10 %, or that they are not.
    wrong = np.tile(np.arange(1_003) % 10 == 5, 3)
    figure = RiskCoverage.compute(confidence(np.full(wrong.size, 0.9), ~wrong))
    assert figure.at_risk(0.1).more_rows is None
    unknown = "more rows may help."
    assert unknown in figure.at_risk(0.1).sentence.replace("\xa0", " ")
    assert at_risk(300, 0, risk=0.0).more_rows == np.inf
    assert "no number of rows can show that none is wrong." in at_risk(300, 0, risk=0.0).sentence
    assert at_risk(1, 0).kept == 0


def test_the_bound_of_selection_with_guaranteed_risk():
    # Geifman & El-Yaniv 2017, CIFAR-10: a bound of .0093 at a coverage of .7046 of 5,000 rows, with 1 - .001 / 13 confidence.
    # Of all numbers of errors, 13 gives it.
    errors, kept, level = 13, round(0.7046 * 5_000), 0.001 / 13
    assert at_most(errors, kept, 0.0093) == pytest.approx(binom.cdf(errors, kept, 0.0093))
    bound = brentq(lambda p: binom.cdf(errors, kept, p) - level, 1e-6, 0.5)
    assert bound == pytest.approx(0.0093, abs=5e-5)


def test_a_cluster_counts_once_however_many_rows_it_has():
    rng = np.random.default_rng(0)
    score = np.sort(rng.uniform(0.5, 1, 200))
    right = np.ones(200, bool)
    alone = RiskCoverage.compute(confidence(score, right)).at_risk(0.1)
    assert alone.kept == 200
    five = calviz.ConfidencePredictions(
        confidence=np.repeat(score[:20], 10),
        correct=np.ones(200, bool),
        clusters=np.repeat(np.arange(20), 10),
    )
    # 20 clusters without an error show no risk below 1 - .05^(1/20) = 14 %.
    assert RiskCoverage.compute(five).at_risk(0.1).kept == 0
    assert RiskCoverage.compute(five).at_risk(0.25).kept == 200


def test_the_sentence():
    score = np.linspace(0.999, 0.001, 1_000)
    figure = RiskCoverage.compute(confidence(score, np.arange(1_000) % 40 > 0))
    assert figure.at_coverage(0.8).sentence == (
        "Keeping the 80.0 % most confident predictions (confidence ≥ 0.200) the accuracy is 97.5 % "
        "(95 % CI 96.2 % to 98.5 %); 200 rows are referred."
    )
    assert figure.at_coverage(1).sentence.startswith(
        "Keeping all 1,000 predictions the accuracy is"
    )
    assert figure.at_coverage(0).sentence == "Nothing is kept: every row is referred."
    # The title advises nothing that nobody would do.
    assert figure.at_coverage(0.8).headline == "Keep 80.0 % of the rows: 97.5 % are right"
    wrong = RiskCoverage.compute(confidence(score, np.arange(1_000) % 40 == 0))
    assert wrong.at_coverage(0.8).headline == "Only 2.5 % are right if 80.0 % of the rows are kept"
    none = "No threshold can promise that at most 5.0 % of the predictions kept are wrong"
    assert wrong.at_risk(0.05).headline == none


def test_of_some_predicted_classes_by_hand():
    # 3,000 rows of "ok", all right, hide that 1 in 10 of the others is wrong, but for the 100 most confident ones.
    score = np.linspace(0.95, 0.7, 4_000)
    of = np.where(np.arange(4_000) % 4, 0, 1 + np.arange(4_000) // 4 % 2)
    probs = np.full((4_000, 3), 0.0)
    probs[:] = (1 - score[:, None]) / 2
    probs[np.arange(4_000), of] = score
    labels = np.where((of > 0) & (np.arange(4_000) % 40 == 20) & (np.arange(4_000) > 400), 0, of)
    data = calviz.Predictions(probs=probs, labels=labels, class_names=("ok", "spam", "hate"))
    assert RiskCoverage.compute(data).at_risk(0.05).kept == 4_000
    some = RiskCoverage.compute(data, predicted=["spam", "hate"])
    assert (some.n, some.risk[-1], some.predicted) == (1_000, 0.09, "'spam' or 'hate'")
    assert some.at_risk(0.05).kept == 0
    none = "1,000 rows cannot show that at most 5.0 % of the predictions of 'spam' or 'hate' kept are wrong"
    assert some.at_risk(0.05).headline == none
    title = "Confidence ≥ 0.700: at most 20.0 % of what is kept as 'spam' or 'hate' is wrong"
    assert some.at_risk(0.2).headline == title
    assert some.at_risk(0.2).sentence.startswith(
        "Of the predictions of 'spam' or 'hate' with confidence ≥ 0.700, at most 20.0 % are wrong, with 95 % confidence. "
        "Chosen on all of the rows predicted as 'spam' or 'hate' here, with none left to check it: all are kept, 9.0 % of them wrong; no whole row is referred."
    )
    share = "Keep 50.0 % of the rows predicted as 'spam' or 'hate': 92.0 % are right"
    assert some.at_coverage(0.5).headline == share
    assert "predicted as 'spam' or 'hate' · ranked by confidence" in some.caption()[1]
    same = RiskCoverage.compute(data.take(np.flatnonzero(of)))
    assert same.at_risk(0.2).threshold == some.at_risk(0.2).threshold
    with pytest.raises(OptionError, match="there is no class 'spem'; known: ok, spam, hate"):
        RiskCoverage.compute(data, predicted=["spem"])
    with pytest.raises(NotAvailable, match="do not name the predicted classes"):
        RiskCoverage.compute(confidence([0.9, 0.8], [True, False]), predicted=["spam"])


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ("a", "'a'"),
        ("ab", "'a' or 'b'"),
        ("abc", "'a', 'b' or 'c'"),
        ("abcd", "any class but 'e'"),
        ("", ""),
    ],
)
def test_predicted_classes_in_words(chosen, words):
    data = calviz.Predictions(probs=np.eye(5), labels=np.arange(5), class_names=tuple("abcde"))
    assert predicted_words(data, tuple(chosen)) == words
    many = calviz.Predictions(probs=np.eye(9), labels=np.arange(9))
    assert predicted_words(many, tuple("01234")) == "one of 5 classes"


def test_band_against_resampling_rows():
    p = classes(500)
    figure = RiskCoverage.compute(p)
    confidence_, wrong = p.probs.max(1), p.probs.argmax(1) != p.labels
    rng = np.random.default_rng(5)
    risks = []
    for _ in range(1_500):
        rows = rng.integers(500, size=500)
        order = rows[np.argsort(-confidence_[rows], kind="stable")]
        risks.append(np.cumsum(wrong[order])[[99, 249, 399]] / [100, 250, 400])
    low, high = np.quantile(risks, [0.025, 0.975], axis=0)
    at = np.searchsorted(figure.coverage, [0.2, 0.5, 0.8])
    np.testing.assert_allclose(figure.band[0][at], low, atol=0.012)
    np.testing.assert_allclose(figure.band[1][at], high, atol=0.012)


@pytest.mark.parametrize("x", ["coverage", "referred"])
@pytest.mark.parametrize("y", ["accuracy", "risk"])
def test_drawing(x, y):
    p = classes()
    one, *rest = (RiskCoverage.compute(p, ranking=r) for r in ("confidence", "entropy", "margin"))
    picture = one.plot(x=x, y=y, others=rest, at=0.8, caption=True, width=350, theme="dark")
    names = [t.name for t in picture.data if t.name]
    assert {"By confidence", "By entropy", "By margin", "Perfect ranking"} <= set(names)
    other = RiskCoverage.compute(classes(seed=1).renamed("<b>another</b>"))
    names = [t.name for t in one.plot(others=[other]).data if t.name]
    assert {"a model", "&lt;b&gt;another&lt;/b&gt;"} <= set(names)


def test_the_marked_point_has_the_accuracy_of_the_rows_and_not_of_the_line():
    rng = np.random.default_rng(3)
    score = rng.uniform(0.5, 1, 3_000)
    right = rng.random(3_000) < score
    curve = RiskCoverage.compute(
        calviz.ConfidencePredictions(confidence=score, correct=right), band=False
    )
    along = np.cumsum(right[np.argsort(-score)])
    for kept in range(211, 3_000, 137):
        labels = [a.text for a in curve.plot(at=kept / 3_000).layout.annotations if a.text]
        assert f"<b>{percent(along[kept - 1] / kept)}</b> right" in " ".join(labels)


def test_what_is_refused():
    with pytest.raises(NotAvailable):
        RiskCoverage.compute(confidence([0.5], [True]), ranking="entropy")
    with pytest.raises(OptionError, match="ranking"):
        RiskCoverage.compute(classes(10), ranking="chance")
    figure = RiskCoverage.compute(classes(10))
    for call in (
        lambda: figure.at_coverage(1.1),
        lambda: figure.at_risk(-1),
        lambda: figure.plot(x="rows"),
        lambda: figure.plot(y="error"),
    ):
        with pytest.raises(OptionError):
            call()


@pytest.mark.slow
def test_many_rows_are_light():
    rng = np.random.default_rng(0)
    score = rng.random(1_000_000)
    figure = RiskCoverage.compute(confidence(score, rng.random(1_000_000) < score))
    assert len(figure.plot(caption=True, at=0.5).to_json()) < 60_000


@pytest.mark.parametrize("ranking", ["confidence", "entropy", "margin"])
@pytest.mark.parametrize("n", [200, 4_000])
def test_of_all_predictions_the_interval_is_that_of_the_metric(ranking, n):
    rng = np.random.default_rng(n)
    probs = rng.dirichlet([0.5, 0.5, 0.5], n)
    labels = np.where(rng.random(n) < 0.7, probs.argmax(axis=1), rng.integers(3, size=n))
    data = calviz.Predictions(probs=probs, labels=labels)
    metric = calviz.evaluate(data, ["accuracy"], reduction="class:1", ci=True)["accuracy"].interval
    figure = RiskCoverage.compute(data, ranking=ranking)
    assert figure.at_coverage(1).interval == metric
    last = figure.frame().iloc[-1]
    assert (last.risk_low, last.risk_high) == (1 - metric.high, 1 - metric.low)
    # As a binomial proportion, to the noise of 1,000 resamples.
    exact = binomtest(round(metric_value(data) * n), n).proportion_ci(method="wilson")
    assert metric == pytest.approx(tuple(exact), abs=0.15 * (exact.high - exact.low))


def metric_value(data):
    return (data.probs.argmax(axis=1) == data.labels).mean()
