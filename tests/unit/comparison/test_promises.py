"""Guaranteed thresholds and expected performance."""

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from mapie.risk_control import BinaryClassificationController
from scipy.special import expit
from scipy.stats import beta, binom, ks_2samp
from scipy.stats import t as student_t

import calviz
from benchmarks import record_monitors as monitors
from benchmarks.claims import SIMULATIONS, every_simulation, too_many
from calviz.core.errors import CalvizError, InputError, NotAvailable, OptionError
from calviz.core.predictions import cut_columns
from calviz.figures.risk_coverage import RiskCoverage
from calviz.figures.slice_gaps import levels_of
from calviz.sample.risk_tests import Risk, RiskTests
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from tests.inputs.command_line import run
from tests.inputs.simulated import keep_few_scores

# ---- Thresholds with a guarantee: the binomial tail by hand, MAPIE's Learn then Test, groups, weights and bad input


def binary(n=2_000, seed=0, digits=None, **columns):
    rng = np.random.default_rng(seed)
    score = 1 / (1 + np.exp(-rng.normal(0, 2, n)))
    if digits:
        score = score.round(digits).clip(10.0**-digits, 1 - 10.0**-digits)
    labels = (rng.random(n) < score).astype(int)
    return calviz.Predictions(probs=score, labels=labels, **columns)


def halves(n):
    return np.where(np.arange(n) % 2, "calibration", "test")


def risk_tests(data, name):
    view = Sample.of(data, reduction="positive").view(steps)
    return RiskTests.of(view, Risk.of(name)), view.score


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["precision", "recall", "fpr"])
def test_p_values_and_choice_against_mapie(name):
    data = binary(1_500, digits=2)
    ours, grid = risk_tests(data, name)
    theirs = BinaryClassificationController(
        lambda X: np.stack([1 - X[:, 0], X[:, 0]], axis=1),
        risk=name,
        target_level=0.1 if name == "fpr" else 0.9,
        confidence_level=0.95,
        list_predict_params=grid,
        fwer_method="fixed_sequence",
    )
    theirs.calibrate(data.probs[:, 1:], data.labels)
    p = np.array([ours.p_value(step, 0.1) for step in range(grid.size)])
    apart = ~np.isclose(p, theirs.p_values[:, 0], rtol=1e-9, atol=1e-300)
    # MAPIE rounds the number of losses up, after a product that may be above it by rounding: it then counts one more.
    hit, score = data.labels == 1, data.probs[:, 1]
    for step in np.flatnonzero(apart):
        kept = score >= grid[step]
        lost, rows = {
            "precision": ((kept & ~hit).sum(), kept.sum()),
            "recall": ((hit & ~kept).sum(), hit.sum()),
            "fpr": ((kept & ~hit).sum(), (~hit).sum()),
        }[name]
        assert p[step] < theirs.p_values[step, 0] <= binom.cdf(lost + 1, rows, 0.1) * (1 + 1e-9)
    assert apart.mean() < 0.25
    if name != "precision":
        # One threshold after another fails for good, so that both choose the same.
        at = ours.safe(0.1)[0 if name == "fpr" else -1]
        assert grid[at] == theirs.best_predict_param


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_more_is_kept_than_by_mapies_default():
    # Bonferroni and Holm over 100 thresholds.
    kept = {"ours": 0.0, "theirs": 0.0}
    for seed in range(10):
        data = binary(1_000, seed=seed)
        ours, score = risk_tests(data, "precision")
        theirs = BinaryClassificationController(
            lambda X: np.stack([1 - X[:, 0], X[:, 0]], axis=1),
            risk="precision",
            target_level=0.85,
            confidence_level=0.95,
        )
        theirs.calibrate(data.probs[:, 1:], data.labels)
        safe = ours.safe(0.15)
        kept["ours"] += (score >= score[safe[0]]).mean() if safe.size else 0
        valid = np.ravel(theirs.valid_predict_params)
        kept["theirs"] += (score >= valid.min()).mean() if valid.size else 0
    assert kept["ours"] > kept["theirs"] > 0


def test_recall_is_the_order_statistic_of_the_hits():
    # With the k-th smallest of m scores as threshold, the share missed follows Beta(k, m - k + 1).
    data = binary()
    tests, score = risk_tests(data, "recall")
    hits = np.sort(data.probs[data.labels == 1, 1])
    ks = np.arange(1, hits.size + 1)
    k = ks[beta.sf(0.1, ks, hits.size - ks + 1) <= 0.05].max()
    assert score[tests.safe(0.1)[-1]] <= hits[k - 1] < score[tests.safe(0.1)[-1] + 1]


def test_what_is_kept_as_some_classes_is_promised_as_if_there_were_no_other_rows():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([3, 0.5, 0.5], 4_000)
    labels = (rng.random((4_000, 1)) > probs.cumsum(axis=1)[:, :2]).sum(axis=1)
    names = ("ok", "spam", "hate")
    data = calviz.Predictions(
        probs=probs, labels=labels, class_names=names, splits=halves(4_000), groups={"a": labels}
    )
    choice = calviz.threshold(data, 0.35, predicted=["spam", "hate"])
    alone = calviz.threshold(data.take(np.flatnonzero(probs.argmax(axis=1))), 0.35)
    assert choice.threshold > calviz.threshold(data, 0.35).threshold
    keys = ("threshold", "bound", "kept", "observed", "rows")
    assert [choice.to_dict()[k] for k in keys] == [alone.to_dict()[k] for k in keys]
    assert choice.to_dict()["predicted"] == ["spam", "hate"]
    promise = (
        "at most 35.0 % of the predictions of 'spam' or 'hate' kept are wrong, with 95 % confidence"
    )
    assert promise in choice.reading()
    assert "; of split 'test' predicted as 'spam' or 'hate', " in choice.reading()
    cost = calviz.threshold(data, 4, of="cost", predicted=["spam"])
    assert "a row predicted as 'spam' costs at most 4.000 on average" in cost.reading()
    each = calviz.threshold(data, 0.35, by="predicted class")
    assert list(each.groups) == ["ok", "spam", "hate"]
    assert sum(one.rows for one in each.groups.values()) == 2_000
    for of in ("precision", "recall", "fpr"):
        with pytest.raises(OptionError, match=f"'predicted' is for error and cost; {of} is about"):
            calviz.threshold(data, of=of, reduction="class:spam", predicted=["spam"])


def test_numbers_have_a_threshold_for_each_interval():
    data = binary(splits=halves(2_000), numbers={"amount": np.arange(2_000.0) % 97})
    data = cut_columns(data, {"amount": [40]})
    each = calviz.threshold(data, 0.2, by="amount").groups
    assert list(each) == ["≤ 40", "> 40"]
    assert sum(one.rows for one in each.values()) == 1_000
    levels = levels_of(Sample(data), "amount", 0.2)
    assert {s.where[0][1] for s in levels.slices.slices} == {"≤ 40", "> 40"}
    assert dict(levels.chosen.groups) == each
    chosen = "Chosen on split 'calibration' (1,000 rows); what is kept, and right of it, is counted on split 'test' (1,000 rows)."
    assert levels.guarantee(0.2)[0].replace("\xa0", " ").endswith(chosen)
    # A profile cannot be divided.
    rows = binary(2_000)
    site = np.resize(["a", "b", "b"], 2_000)
    frame = pl.DataFrame({"label": rows.labels, "p": rows.probs[:, 1], "site": site})
    summed = calviz.profile(frame, by=["site"])
    levels = levels_of(Sample.of(summed), "site", 0.2)
    words = "Chosen on all rows (2,000 rows), with none left to check it."
    assert levels.guarantee(0.2)[0].replace("\xa0", " ").endswith(words)
    assert (
        dict(levels.chosen.groups)
        == calviz.threshold(summed, 0.2, by="site", in_sample=True).groups
    )
    pairs = calviz.threshold(data, 0.2, by=["amount", "predicted class"])
    low, top = data.sliced("amount"), data.probs.argmax(axis=1)
    joint = [f"{low.levels[i]}, {data.class_names[k]}" for i, k in zip(low.codes, top, strict=True)]
    data = binary(splits=halves(2_000), groups={"joint": joint})
    assert pairs.to_dict() == calviz.threshold(data, 0.2, by="joint").to_dict()
    assert len(pairs.groups) == 4


def test_the_bound_is_that_of_clopper_and_pearson():
    data = binary(splits=halves(2_000), seed=1)
    choice = calviz.threshold(data, risk=0.1, of="precision")
    rows = data.split("calibration")
    kept = rows.probs[:, 1] >= choice.threshold
    wrong = int((rows.labels[kept] == 0).sum())
    assert choice.bound == pytest.approx(beta.ppf(0.95, wrong + 1, kept.sum() - wrong), rel=1e-9)
    assert binom.cdf(wrong, kept.sum(), 0.1) <= 0.05
    others = data.split("test")
    kept = others.probs[:, 1] >= choice.threshold
    assert choice.observed == pytest.approx((others.labels[kept] == 0).mean())
    assert choice.kept == pytest.approx(kept.mean())
    assert (choice.rows, choice.fit.split) == (1_000, "calibration")


def test_keys_of_the_record_and_the_report():
    data = binary(splits=halves(2_000), groups={"site": np.resize(["a", "b", "b"], 2_000)})
    choice = calviz.threshold(data, risk=0.15, by="site")
    record = json.loads(json.dumps(choice.to_dict()))
    inner = ["threshold", "bound", "kept", "observed", "rows", "refuted"]
    before = ["schema", "of", "target", "confidence", "predicted"]
    assert list(record) == [*before, *inner, "groups"]
    assert {name: list(one) for name, one in record["groups"].items()} == {"a": inner, "b": inner}
    lines = repr(choice).splitlines()
    assert lines[0].startswith("2 of 2 groups have a threshold that promises, with 95 % confidence")
    assert all("guaranteed" in line and "observed" in line for line in lines[1:])
    assert choice.threshold is None
    assert choice.bound == max(one.bound for one in choice.groups.values())


def test_a_group_that_keeps_everything_leaves_its_level_to_the_others():
    # Nothing is wrong in "easy": it takes 2.5 % at first, and "hard" then has all of 5 %.
    score = np.tile(np.linspace(0.5, 1, 400), 2)
    easy = np.arange(800) >= 400
    correct = easy | (np.arange(800) % 400 % 12 > 0)
    both = calviz.ConfidencePredictions(
        confidence=np.tile(score, 2),
        correct=np.tile(correct, 2),
        splits=np.repeat(["calibration", "test"], 800),
        groups={"task": np.tile(np.where(easy, "easy", "hard"), 2)},
    )
    alone = both.take(np.flatnonzero(np.tile(~easy, 2)))
    choice = calviz.threshold(both, risk=0.15, by="task").groups
    assert choice["easy"].threshold == 0.5
    assert choice["hard"].threshold == calviz.threshold(alone, risk=0.15).threshold
    assert choice["hard"].bound == calviz.threshold(alone, risk=0.15).bound


def test_a_blank_group_is_missing_and_none_says_for_which_thresholds():
    wrong = calviz.ConfidencePredictions(
        confidence=np.tile(np.linspace(0.5, 1, 500), 4),
        correct=np.arange(2_000) % 3 > 0,
        groups={"site": np.tile(["", "b"], 1_000), "ward": np.repeat(["u", ""], 1_000)},
    )
    choice = calviz.threshold(wrong, 0.05, by="site")
    why = "none; no threshold that keeps 5 % of the rows gets clearly below 5.0 % wrong, and more rows would hardly help one threshold for all."
    assert repr(choice).splitlines()[1:] == [f"  missing: {why}", f"  b: {why}"]
    pairs = repr(calviz.threshold(wrong, 0.05, by=("site", "ward")))
    assert {line.split(":")[0].strip() for line in pairs.splitlines()[1:]} == {
        *("missing, u", "missing, missing", "b, u", "b, missing")
    }


def test_two_risks_hold_at_half_the_level_each():
    data = binary(splits=halves(2_000))
    both = calviz.threshold(data, risk=(0.25, 0.3), of=("precision", "recall"))
    precision = calviz.threshold(data, risk=0.25, of="precision", confidence=0.975)
    recall = calviz.threshold(data, risk=0.3, of="recall", confidence=0.975)
    assert precision.threshold <= both.threshold <= recall.threshold
    assert both.bound[0] <= 0.25
    assert both.bound[1] <= 0.3
    impossible = calviz.threshold(data, risk=(0.02, 0.02), of=("precision", "recall"))
    assert impossible.threshold is None
    assert repr(impossible).startswith("1,000 rows cannot show that at most 2.0 %")


def test_a_cost_is_kept_between_referring_all_and_none():
    data = binary(6_000, splits=halves(6_000))
    choice = calviz.threshold(data, risk=1.2, of="cost", costs=(5, 2, 0))
    others = data.split("test")
    confidence, right = others.probs.max(axis=1), others.probs.argmax(axis=1) == others.labels
    kept = confidence >= choice.threshold
    assert choice.observed == pytest.approx(np.where(kept, np.where(right, 0, 5), 2).mean())
    assert choice.observed <= choice.bound <= 1.2
    # In other units it is the same threshold.
    other = calviz.threshold(data, risk=13.0, of="cost", costs=(51, 21, 1))
    same = calviz.threshold(data, risk=1.2, of="cost", costs=(5, 2, 0))
    assert other.threshold == same.threshold


def test_equal_weights_change_nothing_and_copies_of_a_row_count_once():
    n = 2_000
    data = binary(n, splits=halves(n))
    same = binary(n, splits=halves(n), weights=np.full(n, 3.0))
    assert calviz.threshold(same, risk=0.1) == calviz.threshold(data, risk=0.1)
    data = binary(n, splits=halves(n))
    twice, four = (
        calviz.Predictions(
            probs=np.repeat(data.probs, k, axis=0),
            labels=np.repeat(data.labels, k),
            splits=np.repeat(halves(n), k),
            clusters=np.repeat(np.arange(n), k),
        )
        for k in (2, 4)
    )
    for of in ("precision", "recall", "fpr"):
        one = calviz.threshold(data, risk=0.2, of=of)
        pair, many = (calviz.threshold(d, risk=0.2, of=of) for d in (twice, four))
        assert one.threshold == pair.threshold == many.threshold
        assert one.bound == pytest.approx(pair.bound) == pytest.approx(many.bound)


def test_rows_of_a_cluster_count_as_so_many_as_their_errors_come_together():
    # 300 patients of 1 to 14 rows, 24 wrong at 5 %: each of another patient, or three times all of one with eight rows.
    patient = np.repeat(np.arange(300), np.resize([1, 1, 1, 2, 8, 14], 300))
    ends = np.flatnonzero(np.diff(patient, append=300))
    apart, together = np.isin(np.arange(patient.size), ends[5:149:6]), np.isin(patient, [4, 10, 16])
    assert apart.sum() == together.sum() == 24
    score = np.linspace(0.5, 1, patient.size)[np.random.default_rng(0).permutation(patient.size)]
    kept = []
    for wrong in (apart, together):
        rows = calviz.ConfidencePredictions(confidence=score, correct=~wrong, clusters=patient)
        kept.append(RiskCoverage.compute(rows, band=False, resamples=1).at_risk(0.05))
    assert kept[0].coverage == 1
    assert kept[1].coverage < 0.7


def test_more_rows_than_are_needed_show_it():
    wrong = np.arange(40) == 39
    few = calviz.ConfidencePredictions(
        confidence=np.linspace(0.9, 0.5, 40), correct=~wrong, splits=halves(40)
    )
    none = calviz.threshold(few, risk=0.05)
    assert none.threshold is None
    assert none.more_rows > 30
    more = 1 + math.ceil(none.more_rows / 20)
    many = few.take(np.tile(np.arange(40), more))
    assert calviz.threshold(many, risk=0.05).threshold is not None


def test_it_is_the_same_from_a_profile():
    n = 20_000
    data = binary(n, splits=halves(n), digits=3)
    rows = {"p": data.probs[:, 1], "label": data.labels, "split": halves(n)}
    pd = pytest.importorskip("pandas")
    profile = calviz.profile(pd.DataFrame(rows))
    for of in ("error", "recall", "fpr", "precision"):
        mine, theirs = (calviz.threshold(d, risk=0.1, of=of) for d in (data, profile))
        assert theirs.threshold == pytest.approx(mine.threshold, abs=1e-9)
        assert theirs.observed == pytest.approx(mine.observed, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"risk": 0.0}, "'risk' must lie between 0 and 1, got 0.0."),
        ({"risk": 1}, "'risk' must lie between 0 and 1, got 1."),
        ({"risk": True}, "'risk' must lie between 0 and 1"),
        ({"confidence": 1.0}, "'confidence' must lie between 0 and 1"),
        ({"of": "accuracy"}, "'of'"),
        ({"of": ("error", "recall"), "risk": (0.1, 0.1)}, "no threshold in common"),
        ({"of": ("precision", "recall")}, "a number for each; got 2 and 1"),
        ({"of": "cost", "costs": (1, 1, 1)}, "not all the same"),
        ({"of": "cost", "risk": 20.0}, "the 'risk' of a cost must lie between 0 and 10"),
        ({"by": "site"}, "no group column 'site'"),
        ({"choose_split": "x"}, "no split 'x'"),
        ({"choose_fraction": 1.0}, "'choose_fraction' must lie between 0 and 1"),
    ],
)
def test_bad_options_are_one_sentence(options, words):
    with pytest.raises(CalvizError) as error:
        calviz.threshold(binary(200, splits=halves(200)), **options)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_arrays_are_told_where_they_are_taken():
    with pytest.raises(InputError, match="expected Predictions, got ndarray"):
        calviz.threshold(np.array([0, 1, 1]), np.array([0.2, 0.7, 0.6]))


def test_a_split_of_one_class_is_named():
    data = binary(200)
    one = calviz.Predictions(
        probs=data.probs,
        labels=data.labels,
        splits=np.where(data.labels == 1, "calibration", "test"),
    )
    with pytest.raises(CalvizError, match=r"every one of the .* rows has the class '1'"):
        calviz.threshold(one, of="recall")


@pytest.mark.slow
@pytest.mark.parametrize("of", ["precision", "recall", "fpr"])
def test_the_promise_is_broken_in_one_of_twenty_files_at_most(of):
    every_simulation()
    key = f"threshold-risk: the risk is larger, {of} of events, 20 %, 300 rows"
    values = SIMULATIONS[key].outcomes(100, seed=11)
    assert sum(values) / 100 <= too_many(0.05, 100)


def test_a_promise_that_the_other_rows_break_is_none():
    n = 2_000
    rng = np.random.default_rng(3)
    z = rng.normal(0, 2, 2 * n)
    y = (rng.random(2 * n) < expit(z)).astype(int)
    known = np.arange(2 * n) < n
    data = calviz.Predictions(
        probs=expit(z + 1.3 * known * (2 * y - 1)),
        labels=y,
        splits=np.where(known, "TRAIN", "test"),
        groups={"site": np.resize(["a", "b"], 2 * n)},
    )
    choice = calviz.threshold(data, 0.05, choose_split="TRAIN")
    assert choice.refuted
    assert choice.to_dict()["refuted"]
    said = "It cannot be promised that at most 5.0 % of the predictions kept are wrong: a confidence of "
    assert choice.reading().startswith(said)
    assert "breaks that beyond noise; of all other rows" in choice.reading()
    assert "The model was trained on split 'TRAIN': its Brier score is" in choice.reading()
    by_site = calviz.threshold(data, 0.05, by="site", choose_split="TRAIN")
    assert repr(by_site).startswith("0 of 2 groups have a threshold that promises")
    assert repr(by_site).count("broken beyond noise, observed") == 2
    usual = calviz.threshold(data, 0.15)
    assert not usual.refuted
    assert usual.reading().startswith("From a confidence of")
    # Chance may put the other rows above the promise, which is said; of groups together, nothing is tested.
    more = " are wrong (more than allowed, which may be chance)"
    assert not usual.above
    assert more in replace(usual, observed=0.151).reading()
    by_site = replace(usual, observed=0.151, groups={"a": replace(usual, observed=0.16)})
    assert not by_site.above
    assert "observed 16.0 % (more than allowed, which may be chance), keeps" in repr(by_site)
    assert not replace(choice, observed=0.9).above
    assert "50 % of the rows of split 'test'" in usual.reading()


# ---- Expected performance: expectations by hand, intervals that cover, and what is said of bad input


def scored(rng, n, *, mean=0.0, slope=1.0, offset=0.0):
    """Rows of two classes, of which p is calibrated if the slope is 1 and the offset 0."""
    z = rng.normal(mean, 1.5, n)
    labels = (rng.random(n) < expit(slope * z + offset)).astype(int)
    return calviz.Predictions(probs=expit(z), labels=labels)


def test_metrics_of_calibrated_rows_by_hand():
    p = np.array([0.9, 0.2, 0.6, 0.35, 0.5001])
    e = calviz.expected(p, draws=20)
    q = np.stack([1 - p, p], axis=1)
    assert e.metrics["accuracy"].value == pytest.approx(np.mean(q.max(1)))
    # E (p - y)^2 = p (1 - p), for both classes.
    assert e.metrics["brier"].value == pytest.approx(np.mean(2 * p * (1 - p)))
    assert e.metrics["nll"].value == pytest.approx(np.mean(-(q * np.log(q)).sum(1)))
    said = p > 0.5
    tp, fp, fn = p[said].sum(), (1 - p)[said].sum(), p[~said].sum()
    np.testing.assert_allclose(e.confusion, [[(1 - p)[~said].sum(), fp], [fn, tp]])
    assert e.metrics["f1"].value == pytest.approx(2 * tp / (2 * tp + fp + fn))
    # Pairs of a row as an event with a row as none, each with its probability.
    pairs = np.outer(p, 1 - p)
    wins = (p[:, None] > p) + 0.5 * (p[:, None] == p)
    assert e.metrics["auroc"].value == pytest.approx((pairs * wins).sum() / pairs.sum())


def test_metrics_of_three_classes_by_hand():
    rng = np.random.default_rng(0)
    q = rng.dirichlet([1, 1, 1], 40)
    e = calviz.expected(q, metrics=["accuracy", "brier"], draws=20)
    assert e.metrics["accuracy"].value == pytest.approx(np.mean(q.max(1)))
    assert e.metrics["brier"].value == pytest.approx(np.mean(1 - (q**2).sum(1)))
    assert e.confusion.shape == (3, 3)
    assert e.confusion.sum() == pytest.approx(40)
    np.testing.assert_allclose(e.confusion.sum(1), q.sum(0))
    f1 = [2 * c[k, k] / (c[k].sum() + c[:, k].sum()) for c in [e.confusion] for k in range(3)]
    assert e.metrics["f1"].value == pytest.approx(np.mean(f1))


def test_the_interval_of_calibrated_rows_is_that_of_a_sum_of_independent_labels():
    # The variance of a label is q (1 - q); with 200 draws, 2.6 times the error of a standard deviation are 13 %.
    p = np.random.default_rng(0).uniform(0.05, 0.95, 2_000)
    rows = calviz.Predictions(probs=p, labels=np.zeros(p.size, dtype=int))
    for data in (rows, replace(rows, weights=np.full(p.size, 2.0)), profiled(rows)):
        e = calviz.expected(data)
        for key, of_label in {
            "accuracy": 1.0,
            "brier": 2 * (1 - 2 * p),
            "nll": np.log(p / (1 - p)),
        }.items():
            sd = np.sqrt((of_label**2 * p * (1 - p)).sum()) / p.size
            low, high = e.metrics[key].interval
            assert high - low == pytest.approx(2 * student_t.ppf(0.975, 199) * sd, rel=0.13)


@pytest.mark.slow
def test_a_bend_of_the_scores_is_not_smoothed_away():
    """A penalty by cross-validation leaves it out in most files of 500 labels, and the accuracy 2 points too low on average."""

    def bent(z):
        return 0.7 * z + 0.5 * np.sin(1.5 * z)

    off = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        labelled, rows = (
            calviz.Predictions(
                probs=expit(z), labels=(rng.random(z.size) < expit(bent(z))).astype(int)
            )
            for z in (rng.normal(0, 1.5, 500), rng.normal(0, 1.5, 2_000))
        )
        e = calviz.expected(rows, labelled=labelled, metrics=["accuracy"], draws=2)
        z = np.log(rows.probs[:, 1] / rows.probs[:, 0])
        off.append(
            e.metrics["accuracy"].value
            - np.where(z > 0, 1, -1) @ (expit(bent(z)) - 0.5) / z.size
            - 0.5
        )
    assert abs(np.mean(off)) <= 3 * 0.02 / np.sqrt(30)


def test_metrics_of_the_labelled_rows_of_several_classes_are_those_of_their_labels():
    """Whatever the form of miscalibration: vector scaling alone is 2 points off here."""
    metrics = ["accuracy", "brier", "nll"]
    labelled = calviz.sample("digits", "MLP").split("calibration")
    e = calviz.expected(labelled, labelled=labelled, metrics=metrics, draws=2)
    true = calviz.evaluate(labelled, metrics)
    for key in metrics:
        assert e.metrics[key].value == pytest.approx(true[key].value, abs=2e-3)
    confusion = np.zeros((10, 10))
    np.add.at(confusion, (labelled.labels, labelled.probs.argmax(1)), 1)
    # Of the diagonal the sum is held, of a single class nearly.
    assert np.trace(e.confusion) == pytest.approx(np.trace(confusion), abs=2e-3 * labelled.n)


def test_classes_of_the_map_follow_their_columns():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(3, 0.7), 600)
    labels = (probs.cumsum(1) > rng.random((600, 1))).argmax(1)
    order = np.array([2, 0, 1])
    given, turned = (
        calviz.expected(
            calviz.Predictions(probs=p[300:], labels=y[300:]),
            labelled=calviz.Predictions(probs=p[:300], labels=y[:300]),
            draws=2,
        )
        for p, y in ((probs, labels), (probs[:, order], np.argsort(order)[labels]))
    )
    for key, e in given.metrics.items():
        assert e.value == pytest.approx(turned.metrics[key].value, abs=1e-5)


def test_many_classes_are_drawn_where_their_rows_would_not_fit(monkeypatch):
    q = np.random.default_rng(0).dirichlet(np.ones(20), 400)
    exact = calviz.expected(q, draws=20).metrics
    monkeypatch.setattr("calviz.comparison.expected.CELLS", 400 * 20)
    drawn = calviz.expected(q, draws=20).metrics
    for key in ("accuracy", "brier"):
        error = np.diff(exact[key].interval)[0] / 4 / np.sqrt(20)
        assert drawn[key].value != exact[key].value
        assert drawn[key].value == pytest.approx(exact[key].value, abs=4 * error)


def test_a_map_is_taken_to_be_true():
    rng = np.random.default_rng(0)
    rows = scored(rng, 500, slope=0.5)
    scaling = calviz.recalibrators.TemperatureScaling().fit(rows.probs, rows.labels)
    e = calviz.expected(rows, map=scaling, draws=20)
    believed = scaling.transform(rows.probs)
    chosen = rows.probs.argmax(1)
    assert e.metrics["accuracy"].value == pytest.approx(believed[np.arange(500), chosen].mean())
    assert calviz.expected(rows, map=scaling.to_dict(), draws=20).metrics == e.metrics
    assert "calibrated on these rows" in e.assumption


@pytest.mark.slow
def test_intervals_hold_what_the_labels_give():
    """Also where the scores have moved; labels follow them as before."""
    metrics = ["accuracy", "brier"]
    held = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = scored(rng, 400, mean=0.7, slope=0.6, offset=-0.4)
        labelled = scored(rng, 600, slope=0.6, offset=-0.4)
        e = calviz.expected(rows, labelled=labelled, metrics=metrics, draws=30, seed=seed)
        true = calviz.evaluate(rows, metrics)
        held += [
            e.metrics[m].interval.low <= true[m].value <= e.metrics[m].interval.high
            for m in metrics
        ]
        assert e.moved < 0.01
        assert e.labelled == 600
    assert np.mean(held) >= 0.8
    # The scores themselves promise too much.
    naive = calviz.expected(rows, metrics=metrics, draws=60)
    assert not naive.metrics["accuracy"].interval.low <= true["accuracy"].value


def test_what_it_rests_on_is_said():
    rng = np.random.default_rng(0)
    labelled = scored(rng, 300)
    same = calviz.expected(scored(rng, 300), labelled=labelled, draws=20)
    assert same.moved > 0.01
    assert "300 labelled rows" in str(same)
    assert "moved" not in str(same)
    assert "too narrow" not in str(same)
    few = replace(labelled, labels=np.where(np.arange(300) < 2, 1, 0) ^ labelled.probs.argmax(1))
    rows = scored(rng, 50)
    told = calviz.expected(rows, labelled=few, draws=2)
    assert "Only 2 of the labelled rows are predicted wrong" in str(told)
    right = calviz.expected(rows, labelled=replace(few, labels=1 - few.labels), draws=2)
    assert "Only 2 of the labelled rows are predicted right" in str(right)
    beyond = calviz.expected(np.full(50, 0.9999), labelled=labelled, draws=20)
    assert beyond.outside == 1
    assert "outside those of the labelled rows" in str(beyond)
    assert "moved" in str(beyond)


def profiled(data):
    return calviz.profile(pl.DataFrame({"label": data.labels, "p": data.probs[:, 1]}))


@pytest.mark.slow
def test_a_profile_is_expected_as_its_rows(monkeypatch):
    rng = np.random.default_rng(0)
    rows, labelled = scored(rng, 3_000, mean=0.5), scored(rng, 800)
    of_rows = calviz.expected(rows, labelled=labelled, draws=60)
    for few in (10**6, 100):
        keep_few_scores(monkeypatch, few)
        summed = profiled(rows)
        assert summed.is_exact == (few > 100)
        e = calviz.expected(summed, labelled=labelled, draws=60)
        assert (e.rows, e.outside) == (3_000, pytest.approx(of_rows.outside, abs=1e-3))
        np.testing.assert_allclose(e.confusion, of_rows.confusion, rtol=1e-3)
        assert e.moved < 1e-6
        assert list(e.metrics) == list(of_rows.metrics)
        for key, value in e.metrics.items():
            assert value.value == pytest.approx(of_rows.metrics[key].value, rel=1e-4)
            low, high = of_rows.metrics[key].interval
            assert np.diff(value.interval)[0] == pytest.approx(high - low, rel=0.5)
    again = calviz.expected(profiled(labelled), labelled=labelled, draws=20)
    assert again.moved > 0.99


def test_weights_and_clusters():
    """Rows of weight 2 are rows twice; a cluster is tested by one row, and the intervals say so."""
    rng = np.random.default_rng(0)
    rows = scored(rng, 400)
    weights = rng.integers(1, 3, 400)
    twice = calviz.expected(rows.take(np.repeat(np.arange(400), weights)), draws=20)
    weighted = calviz.expected(replace(rows, weights=weights.astype(float)), draws=20)
    for key, value in weighted.metrics.items():
        assert value.value == pytest.approx(twice.metrics[key].value)
    np.testing.assert_allclose(weighted.confusion, twice.confusion)
    person = np.repeat(np.arange(100), 10)
    of_persons = replace(scored(rng, 100).take(person), clusters=person)
    e = calviz.expected(of_persons, labelled=rows, draws=20)
    assert e.moved == ks_2samp(of_persons.probs[::10, 1], rows.probs[:, 1]).pvalue
    assert "too narrow if rows of a cluster" in str(e)
    assert "cluster" not in str(weighted)


@pytest.mark.parametrize("case", monitors.FILES)
def test_the_estimates_are_those_of_nannyml(case):
    """Which fits isotonic regression, where it decides to calibrate."""
    recorded = json.loads(monitors.RECORDED.read_text())["nannyml"]["values"][case]
    p, y, q = monitors.rows(case)
    fitted = None
    if recorded["calibrates"]:
        fitted = calviz.recalibrators.IsotonicRecalibrator(cap=False)
        fitted.fit(np.stack([1 - p, p], axis=1), y)
    e = calviz.expected(q, map=fitted, metrics=["accuracy", "auroc"], draws=2)
    assert e.metrics["accuracy"].value == pytest.approx(recorded["accuracy"], abs=1e-9)
    assert e.metrics["f1"].value == pytest.approx(recorded["f1"], abs=1e-9)
    assert e.metrics["auroc"].value == pytest.approx(recorded["roc_auc"], abs=1e-6)
    cells = ("true_negative", "false_positive", "false_negative", "true_positive")
    assert e.confusion.ravel() == pytest.approx([recorded[name] for name in cells], rel=1e-9)


def test_confidences_have_no_confusion():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1, 300)
    rows = calviz.ConfidencePredictions(confidence=confidence, correct=np.zeros(300, dtype=bool))
    e = calviz.expected(rows, metrics=["accuracy"], draws=20)
    assert e.metrics["accuracy"].value == pytest.approx(confidence.mean())
    assert list(e.metrics) == ["accuracy"]


def test_what_cannot_be_estimated_is_one_sentence():
    rng = np.random.default_rng(0)
    rows = scored(rng, 50)
    with pytest.raises(OptionError, match="not both"):
        calviz.expected(rows, map={}, labelled=rows)
    with pytest.raises(OptionError, match="no metric 'magic'"):
        calviz.expected(rows, metrics=["magic"])
    with pytest.raises(OptionError, match="between 0 and 1"):
        calviz.expected(rows, confidence=95)
    with pytest.raises(InputError, match="other classes"):
        calviz.expected(np.full((4, 3), 1 / 3), labelled=rows)
    with pytest.raises(InputError, match="shape"):
        calviz.expected(np.zeros((2, 2, 2)))
    with pytest.raises(InputError):
        calviz.expected([0.2, 1.7])
    weighted = replace(rows, weights=np.arange(1.0, 51))
    with pytest.raises(NotAvailable, match="count alike"):
        calviz.expected(rows, labelled=weighted)
    with pytest.raises(NotAvailable, match="fitted on single rows"):
        calviz.expected(rows, labelled=profiled(rows).predictions())
    only = calviz.Predictions(probs=[[0.4, 0.6], [0.3, 0.7]], labels=[1, 1])
    with pytest.raises(InputError, match="1 class"):
        calviz.expected(rows, labelled=only, method="platt")


# ---- The command


@pytest.mark.slow
def test_the_command_estimates_rows_without_labels(tmp_path):
    rng = np.random.default_rng(0)
    data = scored(rng, 400, slope=0.5)
    lines = ["part,outcome,p_no,p_yes"]
    for k, (p, label) in enumerate(zip(data.probs[:, 1], data.labels, strict=True)):
        part, outcome = ("val", ("no", "yes")[label]) if k < 250 else ("now", "")
        lines.append(f"{part},{outcome},{1 - p},{p}")
    file = tmp_path / "scores.csv"
    file.write_text("\n".join(lines) + "\n")
    done = run(
        "expected",
        file,
        "--split-column",
        "part",
        "--labelled-split",
        "val",
        "--method",
        "isotonic",
        "--json",
        "-",
    )
    assert done.exit_code == 0, done.stderr
    record = json.loads(done.stdout)
    assert set(record) - {"calviz", "command", "file"} == {"schema", "metrics", "rows"}
    assert record["rows"] == 150
    labelled = calviz.Predictions(probs=data.probs[:250], labels=data.labels[:250])
    e = calviz.expected(data.probs[250:], labelled=labelled, method="isotonic")
    assert record["metrics"]["accuracy"]["value"] == pytest.approx(e.metrics["accuracy"].value)
    low, high = record["metrics"]["brier"]["interval"]
    assert low < record["metrics"]["brier"]["value"] < high

    unlabelled = tmp_path / "now.csv"
    unlabelled.write_text(
        "\n".join(["p_no,p_yes", *(x.split(",", 2)[2] for x in lines[251:])]) + "\n"
    )
    done = run("expected", unlabelled)
    assert done.exit_code == 0, done.stderr
    assert "Expected of 150 rows without labels" in done.stdout
    saved = tmp_path / "map.json"
    calibrated = (
        calviz.recalibrators.IsotonicRecalibrator().fit(labelled.probs, labelled.labels).to_dict()
    )
    saved.write_text(json.dumps(calibrated))
    done = run("expected", unlabelled, "--map", saved, "--json", "-")
    again = json.loads(done.stdout)["metrics"]["accuracy"]
    assert again["value"] == pytest.approx(record["metrics"]["accuracy"]["value"])
    # The map is not refitted here.
    width = np.diff(again["interval"])[0]
    assert width < np.diff(record["metrics"]["accuracy"]["interval"])[0] + 0.02

    for arguments, words in {
        ("--map", str(saved), "--labelled-split", "val"): "exclude each other",
        ("--labelled-split", "none"): "no split",
        ("--method", "beta"): "--labelled-split",
    }.items():
        done = run("expected", file, "--split-column", "part", *arguments)
        assert done.exit_code == 2
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_all_draws_are_finite_or_left_out():
    """With one row, AUROC has no value."""
    e = calviz.expected([0.7], draws=20)
    assert e.metrics["accuracy"].value == pytest.approx(0.7)
    assert math.isnan(e.metrics["auroc"].interval.low)


# ---- A raw score for a calibrated probability


def test_commands_say_which_raw_score_reaches_a_probability(tmp_path):
    data, split = binary(400), halves(400)
    file, saved, out = (tmp_path / name for name in ("rows.csv", "map.json", "out.csv"))
    rows = zip(data.labels, data.probs[:, 1], split, strict=True)
    lines = [f"{y},{p},{part}" for y, p, part in rows]
    file.write_text("\n".join(["label,probability,split", *lines]) + "\n")
    base_rate = ("--method", "prior", "--option", "prior.base_rate=0.03")
    done = run(
        "recalibrate", file, *base_rate, "--out", out, "--save-map", saved, "--raw-score", "0.02",
        "--json", "-",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    raw = json.loads(done.stdout)["raw_scores"]["0.02"]
    # By hand: the log-odds move by those of the base rates.
    share = data.labels[split == "calibration"].mean()
    log_odds = np.log(0.02 / 0.98) + np.log(share / (1 - share)) - np.log(0.03 / 0.97)
    assert raw == pytest.approx(expit(log_odds), rel=1e-9)
    done = run("apply", file, "--map", saved, "--out", out, "--raw-score", "0.02")
    assert f"a calibrated probability of 2 %: a raw score of {raw:.6g}" in done.stdout
    out.unlink()
    done = run("apply", file, "--map", saved, "--out", out, "--raw-score", "2")
    assert (done.exit_code, out.exists()) == (2, False)
    assert "Invalid value for '--raw-score': 2.0 is not in the range 0<=x<=1" in done.stderr
    done = run("recalibrate", file, "--method", "isotonic", "--out", out, "--raw-score", "1")
    assert "a calibrated probability of 100 %: no raw score reaches it" in done.stdout
