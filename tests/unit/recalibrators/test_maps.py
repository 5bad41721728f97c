"""Maps: older and damaged ones that were saved, a new base rate, inverse maps, and maps on data frames."""

import contextlib
import copy
import json
import math

import numpy as np
import polars as pl
import pytest
from probcal import LogitOffset
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp
from scipy.stats import binomtest

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation, too_few, too_many
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import CalvizError, InputError, NotAvailable, OptionError
from calviz.core.predictions import repeated
from calviz.recalibrators import PriorShift
from calviz.recalibrators.base import BaseRecalibrator, load_map
from calviz.recalibrators.isotonic import IsotonicRecalibrator
from calviz.recalibrators.maps import earlier_values
from calviz.recalibrators.platt_scaling import PlattScaling
from calviz.recalibrators.temperature_scaling import TemperatureScaling
from tests.inputs.simulated import simulate, softmax

# ---- Maps that earlier versions saved: parameters that were added since are missing in them


#: Parameters in the oldest maps of each method. Lines are never changed; a parameter that is missing here needs `added_later`.
OLDEST = {
    "identity": "input",
    "auto": "caution combine floor folds input",
    "affine": "floor input",
    "beta": "floor input",
    "cwmcs-ts": "floor input normalize temperature",
    "dirichlet": "floor folds input intercept l2 max_seconds off_diagonal regularisation",
    "dirichlet-odir": "floor folds input intercept l2 max_seconds off_diagonal regularisation",
    "ets": "floor input joint loss",
    "linear": "floor input",
    "logit-spline": "floor folds input knots own_rows strength",
    "matrix": "floor folds input intercept l2 max_seconds off_diagonal regularisation",
    "matrix-odir": "floor folds input intercept l2 max_seconds off_diagonal regularisation",
    "platt": "floor input",
    "quadratic": "floor input",
    "sms": "floor input max_seconds strength",
    "svs": "floor input strength",
    "temperature": "floor input loss",
    "temperature-mse": "floor input loss",
    "vector": "floor input",
    "bbq": "input",
    "centered-isotonic": "input smooth",
    "gp": "floor inducing input max_pairs",
    "histogram": "bins input scheme",
    "irm": "epsilon input",
    "isotonic": "input",
    "spline": "bounded floor input knots mode r run_out",
    "spline-classwise": "bounded input knots run_out",
    "venn-abers": "input",
    "ets+isotonic": "first floor input second",
    "scaling-binning": "base bins floor input",
    "temperature+irm": "first floor input second",
    "temperature+isotonic": "first floor input second",
}


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("key", OLDEST)
def test_the_oldest_maps_are_read(key):
    z, y = simulate(60, 3, temperature=2.0, seed=4)
    made = RECALIBRATORS[key].make_with(input="probabilities", cap=False)
    record = json.loads(json.dumps(made.fit(softmax(z), y).to_dict()))
    before = load_map(record).transform(softmax(z))
    record["parameters"] = {name: record["parameters"][name] for name in OLDEST[key].split()}
    np.testing.assert_array_equal(load_map(record).transform(softmax(z)), before)


class First(BaseRecalibrator):
    """A method of a first version: moves all rows half of the way to the uniform distribution."""

    key = "moved"
    needs = "probabilities"
    fitted = ("share_",)

    def __init__(self, *, input="probabilities"):
        self.input = input

    def _fit(self, scores, labels):
        self.share_ = 0.5

    def _apply(self, block):
        return block * (1 - self.share_) + self.share_ / block.shape[1]


class Second(First):
    """The same method of a second version: how far it moves can be limited, and is by default."""

    added_later = earlier_values(most=1.0)

    def __init__(self, *, most=0.25, input="probabilities"):
        self.most = most
        super().__init__(input=input)

    def _apply(self, block):
        share = min(self.share_, self.most)
        return block * (1 - share) + share / block.shape[1]


class Careless(Second):
    """As Second, without saying what older maps are read with."""

    added_later = earlier_values()


P, Y = np.array([[0.8, 0.2], [0.4, 0.6]]), [0, 1]


@pytest.mark.usefixtures("few_candidates")
def test_a_parameter_that_was_added_has_its_earlier_value_in_older_maps():
    older = First().fit(P, Y).to_dict()
    # Half of the way from 0.8 to 0.5 is 0.65; the new default would stop at 0.725.
    assert Second.from_dict(older).transform(P)[0, 0] == pytest.approx(0.65)
    newer = Second().fit(P, Y)
    assert newer.transform(P)[0, 0] == pytest.approx(0.725)
    assert Second.from_dict(newer.to_dict()).transform(P)[0, 0] == pytest.approx(0.725)


@pytest.mark.usefixtures("few_candidates")
def test_without_it_older_maps_are_refused():
    with pytest.raises(InputError, match="its parameters must be input, most"):
        Careless.from_dict(First().fit(P, Y).to_dict())


@pytest.mark.usefixtures("few_candidates")
def test_a_parameter_that_the_method_does_not_have_is_refused():
    record = RECALIBRATORS["temperature"].make().fit(P, Y).to_dict()
    record["parameters"]["cap"] = True
    with pytest.raises(InputError, match="the map of 'temperature' is damaged: its parameters"):
        load_map(record)


# ---- Saved maps of which one value was changed: refused with one sentence, or applied exactly as they say


KEYS = (*RECALIBRATORS.keys(), "vector+spline-classwise")
NUMBERS = ("text", "1.5", None, True, math.nan, math.inf, -math.inf, 10**400)


def saved(key, k=3, n=60):
    z, y = simulate(n, k, temperature=2.0, seed=4)
    record = RECALIBRATORS[key].make().fit(softmax(z), y).to_dict()
    return json.loads(json.dumps(record | {"class_names": [f"c{j}" for j in range(k)]}))


def places(value, path=()):
    """Yield the path of every value in a record; of long lists, those of the first and the last item."""
    yield path
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*path, name))
    elif isinstance(value, list):
        for at in sorted({0, len(value) - 1}) if value else ():
            yield from places(value[at], (*path, at))


def changes(value):
    """Yield what might stand in the place of a value."""
    if isinstance(value, dict):
        yield from ({}, [], None, 3, {**value, "extra": 1})
        yield from ({k: v for k, v in value.items() if k != name} for name in value)
    elif isinstance(value, list):
        yield from ([], {}, None, 3, "text", value[:-1], value + value[-1:], value[::-1], [value])
    elif isinstance(value, bool):
        yield from (None, "true", 3, [])
    elif isinstance(value, int | float):
        yield from (*NUMBERS, -value, [value], [], {})
    else:
        yield from (None, 3, "", "nonsense", [], {})


def changed(record, path, value):
    """A record with another value at a path; what is beside the path is shared."""
    if not path:
        return value
    name, *rest = path
    other = copy.copy(record)
    other[name] = changed(record[name], rest, value)
    return other


def at(record, path):
    for name in path:
        record = record[name]
    return record


def outcome(record):
    """The loaded map and no sentence, or no map and the sentence."""
    try:
        return load_map(record), ""
    except CalvizError as error:
        return None, str(error)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("key", KEYS)
def test_a_changed_map_is_refused_or_is_what_it_says(key, k):
    record = saved(key, k)
    z, _ = simulate(8, k, seed=5)
    p = np.concatenate([softmax(z), np.eye(k)])
    before = load_map(record).transform(p)
    refused = 0
    for path in places(record):
        for value in changes(at(record, path)):
            wrong = changed(record, path, value)
            loaded, sentence = outcome(wrong)
            if loaded is None:
                refused += 1
                assert sentence.endswith("."), (path, value)
                assert "Error" not in sentence, (path, value)
                continue
            after = loaded.transform(p)
            if not np.array_equal(after, before):
                says = loaded.to_dict()
                assert {name: wrong[name] for name in says} == says, (path, value)
                assert np.isfinite(after).all(), (path, value)
                assert after.min() >= 0, (path, value)
                assert after.sum(axis=1) == pytest.approx(1), (path, value)
            json.dumps(loaded.describe())
            with contextlib.suppress(NotAvailable):
                assert np.isfinite(loaded.intervals(p)).all(), (path, value)
    assert refused > 50


@pytest.mark.usefixtures("few_candidates")
def test_an_unchanged_map_passes():
    for key in ("temperature", "venn-abers", "dirichlet-odir", "gp"):
        assert load_map(saved(key)).classes_.size == 3


# ---- A new base rate: closed forms, probcal's offset, EM by hand, weights against repeated rows, and inverse maps


def columns(p):
    return np.stack([1 - p, p], axis=1)


def drawn(n=2_000, rate=0.3, seed=0, source=0.3):
    """Normal scores of two classes; the probabilities are right at the share `source`."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    x = rng.normal(np.where(y, 1.0, -1.0), 1.5)
    return expit(2 * x / 1.5**2 + logit(source)), y


def several(n=3_000, k=4, rates=None, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(k, n, p=rates)
    x = rng.normal(0, 1, (n, k))
    x[np.arange(n), y] += 1.5
    p = np.exp(1.5 * x)
    return p / p.sum(axis=1, keepdims=True), y


def test_the_closed_form_of_a_known_base_rate():
    p, y = drawn()
    share = y.mean()
    out = PriorShift(base_rate=0.03).fit(columns(p), y).transform(columns(p))[:, 1]
    odds = p / (1 - p) * (0.03 / 0.97) / (share / (1 - share))
    np.testing.assert_allclose(out, odds / (1 + odds), rtol=1e-12)
    # Elkan 2001, theorem 2.
    elkan = 0.03 * p * (1 - share) / (share - share * p + 0.03 * p - share * 0.03)
    np.testing.assert_allclose(out, elkan, rtol=1e-9)


@pytest.mark.parametrize("target", [0.001, 0.03, 0.5, 0.97])
def test_the_offset_to_a_mean_is_that_of_probcal(target):
    p, y = drawn()
    fitted = PriorShift(mean=target).fit(columns(p), y)
    theirs = LogitOffset(target_mean=target).fit(p)
    assert fitted.offsets_[1] == pytest.approx(theirs.delta_, abs=1e-10)
    np.testing.assert_allclose(fitted.transform(columns(p))[:, 1], theirs.transform(p), atol=1e-10)
    assert fitted.transform(columns(p))[:, 1].mean() == pytest.approx(target, abs=1e-12)


def test_the_means_of_several_classes_are_reached_with_weights_too():
    p, y = several()
    target = np.array([0.1, 0.2, 0.3, 0.4])
    weights = np.random.default_rng(1).exponential(size=y.size)
    for w in (None, weights):
        out = PriorShift(mean=target.tolist()).fit(p, y, sample_weight=w).transform(p)
        np.testing.assert_allclose(np.average(out, axis=0, weights=w), target, atol=1e-12)
    # Without a target, the mean of each class is its share.
    out = PriorShift().fit(p, y).transform(p)
    np.testing.assert_allclose(out.mean(axis=0), np.bincount(y) / y.size, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_without_a_rate_it_is_the_intercept_of_a_logistic_regression_with_slope_1(weighted):
    import statsmodels.api as sm  # takes half a second

    p, y = drawn(rate=0.5)
    w = np.random.default_rng(1).exponential(size=y.size) if weighted else np.ones(y.size)
    fitted = PriorShift().fit(columns(p), y, sample_weight=w)
    theirs = sm.GLM(y, np.ones(y.size), sm.families.Binomial(), offset=logit(p), freq_weights=w)
    (offset,) = theirs.fit(tol=1e-14).params
    assert fitted.offsets_[1] == pytest.approx(offset, abs=1e-8)
    assert w @ fitted.transform(columns(p))[:, 1] == pytest.approx(w @ y, rel=1e-12)


def test_of_confidences_alone_the_offset_brings_the_mean_to_the_accuracy():
    p, y = drawn(rate=0.5)
    confidences = calviz.ConfidencePredictions(
        confidence=np.maximum(p, 1 - p), correct=(p > 0.5) == y, splits=["a"] * y.size
    )
    after = calviz.recalibrate(confidences, "prior", fit_split="a")
    assert after.confidence.mean() == pytest.approx(confidences.correct.mean(), abs=1e-12)


def test_the_biases_of_several_classes_are_the_most_likely_ones():
    p, y = several(rates=[0.1, 0.2, 0.3, 0.4])

    def loss(offsets):
        z = np.log(p) + np.append(0, offsets)
        return (logsumexp(z, axis=1) - z[np.arange(y.size), y]).mean()

    best = minimize(loss, np.zeros(3), tol=1e-12).x
    np.testing.assert_allclose(PriorShift().fit(p, y).offsets_[1:], best, atol=1e-5)


def test_a_shift_there_and_back_changes_nothing_and_keeps_the_order():
    p, y = drawn()
    there = PriorShift(base_rate=0.9).fit(columns(p), y)
    moved = there.transform(columns(p))
    assert (np.diff(moved[np.argsort(p), 1]) >= 0).all()
    np.testing.assert_allclose(there.inverse(moved[:, 1]), p, rtol=1e-10)
    np.testing.assert_allclose(
        PriorShift(base_rate=float(y.mean())).fit(columns(p), y).transform(columns(p)), columns(p)
    )


def test_it_is_right_on_rows_of_the_new_base_rate():
    p, y = drawn(20_000)
    new, labels = drawn(200_000, rate=0.05, seed=1)
    out = PriorShift(base_rate=0.05).fit(columns(p), y).transform(columns(new))[:, 1]
    for low, high in ((0, 0.02), (0.02, 0.1), (0.1, 0.3), (0.3, 1)):
        inside = (out > low) & (out <= high)
        assert out[inside].mean() == pytest.approx(labels[inside].mean(), abs=0.01)


def em(ratio_to, share):
    rates = share
    for _ in range(20_000):
        posterior = ratio_to * rates / share
        rates = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
    return rates


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 4])
def test_rates_are_the_fixed_point_of_em(k):
    # Saerens et al. 2002, eq. 2.9.
    if k == 2:
        (p, y), (new, _) = drawn(600), drawn(400, rate=0.1, seed=3)
        p, new = columns(p), columns(new)
    else:
        (p, y), (new, _) = several(600), several(400, rates=[0.5, 0.2, 0.2, 0.1], seed=3)
    with pytest.raises(NotAvailable, match="base rates need rows"):
        calviz.base_rates(y, new)
    rates = calviz.base_rates(calviz.Predictions(probs=p, labels=y), new)
    share = np.bincount(y) / y.size
    np.testing.assert_allclose(rates.rates, em(new, share), atol=1e-8)
    # The map with these rates has them as its mean: the fixed point again.
    shifted = PriorShift(base_rate=list(rates.rates)).fit(p, y).transform(new)
    np.testing.assert_allclose(shifted.mean(axis=0), rates.rates, atol=1e-8)


def test_rates_are_those_of_the_largest_likelihood():
    """Which is concave: EM finds it from anywhere (Alexandari et al. 2020, section 3)."""
    X, y = several(1_500)
    new, _ = several(1_000, rates=[0.5, 0.1, 0.2, 0.2], seed=2)
    share = np.bincount(y) / y.size

    def loss(v):
        return -np.log(new @ (softmax(v[None])[0] / share)).mean()

    largest = softmax(minimize(loss, np.zeros(4), method="BFGS", tol=1e-12).x[None])[0]
    found = calviz.base_rates(calviz.Predictions(probs=X, labels=y), new)
    np.testing.assert_allclose(found.rates, largest, atol=1e-5)


def test_with_two_cells_the_check_is_bbse():
    # Fewer than 60 rows: two cells, and the share that solves C w = mu (Lipton et al. 2018, eq. 2).
    p, y = drawn(59, seed=2)
    new, _ = drawn(50, rate=0.5, seed=4)
    rates = calviz.base_rates(calviz.Predictions(probs=p, labels=y), new)
    edge = np.quantile(np.concatenate([p, new]), 0.5)
    above = np.array([(p[y == c] > edge).mean() for c in (0, 1)])
    expected = ((new > edge).mean() - above[0]) / (above[1] - above[0])
    assert rates.moments[1] == pytest.approx(np.clip(expected, 0, 1))
    assert rates.p_value is None


def test_scores_that_changed_within_the_classes_are_told():
    p, y = drawn()
    labelled = calviz.Predictions(probs=p, labels=y)
    same = calviz.base_rates(labelled, drawn(2_000, rate=0.1, seed=5)[0])
    assert not same.changed
    assert "not explain" not in same.reading()
    sharper = calviz.base_rates(labelled, expit(2 * logit(drawn(2_000, rate=0.1, seed=5)[0])))
    assert sharper.changed
    assert "a new base rate alone does not explain these rows" in repr(sharper)


def test_a_prevalence_is_the_same_as_repeated_rows():
    # Of 150 hits and 450 others, weights of 3 and 1 make half of all.
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [150, 450])
    data = calviz.Predictions(probs=expit(rng.normal(2 * y - 1, 1)), labels=y)
    weighted = calviz.at_prevalence(data, 0.5)
    copies = repeated(data, np.where(y == 1, 3, 1))
    options = {"metrics": ["ece", "brier", "net_benefit", "auroc", "nll"], "cutoff": 0.4}
    ours, theirs = (calviz.evaluate(d, **options) for d in (weighted, copies))
    for one in ours:
        assert one.value == pytest.approx(theirs[one.key].value), one.key
    assert (weighted.probs == data.probs).all()


def test_a_prevalence_holds_in_each_split_and_with_weights():
    p, y = several()
    split = np.where(np.arange(y.size) % 3, "a", "b")
    own = np.random.default_rng(1).exponential(size=y.size)
    data = calviz.Predictions(probs=p, labels=y, splits=split, weights=own)
    moved = calviz.at_prevalence(data, (0.1, 0.2, 0.3, 0.4))
    for name in "ab":
        part = moved.split(name)
        share = np.bincount(part.labels, part.weights) / part.weights.sum()
        np.testing.assert_allclose(share, [0.1, 0.2, 0.3, 0.4])
        assert part.weights.sum() == pytest.approx(data.split(name).weights.sum())


@pytest.mark.parametrize("given", ["probabilities", "logits"])
@pytest.mark.parametrize(
    "key",
    "prior platt affine beta temperature isotonic centered-isotonic logit-spline venn-abers temperature+isotonic scaling-binning".split(),
)
def test_inverse_of_a_monotone_map(key, given):
    p, y = drawn(1_000)
    score = logit(p)
    X = columns(p) if given == "probabilities" else columns(score) * [[0, 1]]
    fitted = RECALIBRATORS[key].make(input=given).fit(X, y)
    wanted = np.array([0.02, 0.1, 0.5, 0.6])
    raw = fitted.inverse(wanted)
    raw, wanted = raw[~np.isnan(raw)], wanted[~np.isnan(raw)]
    assert raw.size > 1

    def mapped(s):
        rest = 1 - s if given == "probabilities" else 0 * s
        return fitted.transform(np.stack([rest, s], axis=1))[:, 1]

    # The smallest score that reaches the probability.
    assert (mapped(raw) >= wanted - 1e-15).all()
    assert (mapped(np.nextafter(raw, -np.inf) - 1e-12 * np.abs(raw)) < wanted + 1e-9).all()
    if key in ("prior", "platt", "affine", "beta", "temperature", "logit-spline"):
        np.testing.assert_allclose(mapped(raw), wanted, rtol=1e-9)
    loaded = calviz.load_map(json.loads(json.dumps(fitted.to_dict())))
    np.testing.assert_array_equal(loaded.inverse(wanted), raw)
    program = {}
    exec(compile(fitted.snippet(), "snippet", "exec"), program)
    back = program["inverse"](wanted)
    X = columns(back) if given == "probabilities" else columns(back) * [[0, 1]]
    assert (program["recalibrate"](X)[:, 1] >= wanted - 1e-15).all()
    if key not in ("venn-abers", "scaling-binning"):
        # On their flat pieces, rounding decides which end is found.
        np.testing.assert_allclose(back, raw, rtol=1e-5, atol=1e-7)


def test_the_inverse_of_an_offset_by_hand():
    p, y = drawn()
    fitted = PriorShift(base_rate=0.03).fit(columns(p), y)
    assert logit(fitted.inverse(0.02)) == pytest.approx(logit(0.02) - fitted.offsets_[1])
    tiny = fitted.inverse([1e-9, 0.0])
    assert tiny[0] == pytest.approx(1e-9 / np.exp(fitted.offsets_[1]), rel=1e-6)
    assert tiny[1] == 0


def test_where_there_is_no_inverse():
    p, y = drawn()
    constant = RECALIBRATORS["isotonic"].make().fit(columns(p), y)
    assert np.isnan(constant.inverse(1.0)) == (constant.transform([[0.0, 1.0]])[0, 1] < 1)
    with pytest.raises(InputError, match="between 0 and 1"):
        constant.inverse(1.5)
    classes, labels = several()
    three = RECALIBRATORS["temperature"].make().fit(classes, labels)
    with pytest.raises(NotAvailable, match="4 classes"):
        three.inverse(0.5)
    assert "def inverse" not in three.snippet()
    bent = RECALIBRATORS["quadratic"].make().fit(columns(p), (np.abs(p - 0.5) < 0.2).astype(int))
    with pytest.raises(NotAvailable, match="falls after a score"):
        bent.inverse(0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_rate": 0}, "must lie between 0 and 1, both excluded"),
        ({"base_rate": 1.0}, "must lie between 0 and 1, both excluded"),
        ({"base_rate": 3}, r"got 3 \(3 % is 0\.03\)\."),
        ({"base_rate": (0.5, -1.0)}, r"for every class; got -1\."),
        ({"base_rate": [[0.5, 0.5]]}, r"got \[\[0\.5, 0\.5\]\]"),
        ({"base_rate": [0.2, 0.2]}, "must add up to 1, got 0.4"),
        ({"base_rate": [0.2, 0.3, 0.5]}, "a share for each of the 2 classes, got 3"),
        ({"mean": "many"}, "must lie between 0 and 1"),
        ({"base_rate": 0.1, "mean": 0.1}, "not both"),
    ],
)
def test_bad_rates_are_one_sentence(options, words):
    p, y = drawn(200)
    with pytest.raises(OptionError, match=words):
        PriorShift(**options).fit(columns(p), y)


def test_what_cannot_be_reached_or_known_is_said():
    p, y = drawn(200)
    # Scores of exactly 0 and 1 move too, by the floor of logarithms.
    sure = columns(np.where(np.arange(200) < 100, 1.0, p))
    fitted = PriorShift(mean=0.3).fit(sure, y)
    assert fitted.transform(sure)[:, 1].mean() == pytest.approx(0.3, abs=1e-9)
    classes, labels = several(300)
    labels[labels == 2] = 1
    with pytest.raises(OptionError, match="each of the 4 classes, got 1 of them"):
        PriorShift(base_rate=0.1).fit(classes, labels)
    with pytest.raises(InputError, match="no calibration rows of class 2"):
        PriorShift(base_rate=[0.25] * 4).fit(classes, labels)
    assert "class" in PriorShift().fit(classes, labels).warnings_[0]
    off = PriorShift(base_rate=0.1).fit(columns(p / 2), y)
    assert "calibrate first" in off.warnings_[0]
    data = calviz.Predictions(probs=p, labels=y)
    for wrong in (classes, np.full((5, 3), 1 / 3)):
        with pytest.raises(InputError, match="other classes"):
            calviz.base_rates(data, wrong)
    with pytest.raises(InputError, match="no labelled row has the class '1'"):
        calviz.base_rates(calviz.Predictions(probs=p, labels=0 * y), p)
    with pytest.raises(InputError, match="no row has the class '1'"):
        calviz.at_prevalence(calviz.Predictions(probs=p, labels=0 * y), 0.1)
    confidence = calviz.ConfidencePredictions(confidence=p, correct=y == 1)
    for call in (calviz.at_prevalence, calviz.base_rates):
        with pytest.raises(CalvizError, match="rows with"):
            call(confidence, 0.1 if call is calviz.at_prevalence else p)


@pytest.mark.slow
def test_simulated_rates_and_their_test():
    every_simulation()
    said = SIMULATIONS["base-rate: said where only the base rate changed, 2 classes, 500 rows"]
    assert sum(said.outcomes(100, seed=11)) / 100 <= too_many(0.01, 100)
    covered = SIMULATIONS["base-rate: the interval covers the share, 2 classes, 500 rows"]
    values = covered.outcomes(100, seed=11)
    assert np.mean(values) >= too_few(0.93, 100)
    assert binomtest(int(sum(values)), 100, 0.95).pvalue > 1e-3


# ---- Maps on data frames give what they give on arrays, whatever the library, and lazily where the frame is lazy


N_OF_FRAMES = 700


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), N_OF_FRAMES)
    columns = {f"p{k}": probs[:, k] for k in range(3)}
    p = rng.beta(0.7, 2, N_OF_FRAMES)
    return pl.DataFrame(
        {
            "id": np.arange(N_OF_FRAMES),
            "p": p,
            **columns,
            "y": (rng.random(N_OF_FRAMES) < p).astype(int),
        }
    )


def two(rows: pl.DataFrame) -> np.ndarray:
    p = rows["p"].to_numpy()
    return np.stack([1 - p, p], axis=1)


def added(result, name: str) -> np.ndarray:
    table = result.read_all() if hasattr(result, "read_all") else result
    table = table.collect() if isinstance(table, pl.LazyFrame) else table
    assert np.array_equal(np.asarray(table["id"]), np.arange(N_OF_FRAMES))
    return np.asarray(table[name])


FRAMES = {
    "polars": lambda t: t,
    "polars, lazy": lambda t: t.lazy(),
    "pandas": lambda t: t.to_pandas(),
    "pyarrow": lambda t: t.to_arrow(),
    "duckdb": lambda t: pytest.importorskip("duckdb").from_arrow(t.to_arrow()),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_library_gives_what_the_array_gives(rows, kind):
    frame = FRAMES[kind](rows)
    for method in (PlattScaling, IsotonicRecalibrator):
        fitted = method().fit(two(rows), rows["y"].to_numpy())
        calibrated = fitted.transform_frame(frame, "p")
        wanted = fitted.transform(two(rows))[:, 1]
        np.testing.assert_allclose(added(calibrated, "p_calibrated"), wanted, rtol=0, atol=1e-12)
    probs = rows.select("p0", "p1", "p2").to_numpy()
    fitted = TemperatureScaling().fit(probs, rows["id"].to_numpy() % 3)
    names = ["a", "b", "p"]  # p takes the place of a column that is there
    calibrated = fitted.transform_frame(frame, ["p0", "p1", "p2"], names=names)
    table = calibrated.read_all() if hasattr(calibrated, "read_all") else calibrated
    table = table.collect() if isinstance(table, pl.LazyFrame) else table
    for k, name in enumerate(names):
        np.testing.assert_allclose(
            np.asarray(table[name]), fitted.transform(probs)[:, k], rtol=0, atol=1e-12
        )


def test_a_lazy_frame_is_not_collected_and_streams(rows, tmp_path):
    rows.write_parquet(tmp_path / "a.parquet")
    fitted = PlattScaling().fit(two(rows), rows["y"].to_numpy())
    lazy = fitted.transform_frame(pl.scan_parquet(tmp_path / "a.parquet"), "p")
    assert isinstance(lazy, pl.LazyFrame)
    lazy.filter(pl.col("id") < 10).sink_parquet(tmp_path / "b.parquet")
    result = pl.read_parquet(tmp_path / "b.parquet")["p_calibrated"].to_numpy()
    np.testing.assert_allclose(result, fitted.transform(two(rows))[:10, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("q",), "there is no column 'q'"),
        ((["p0", "p1", "p2"],), "the map has 2 classes, got 3 columns"),
        (("p", []), "'names' must be one name for each"),
    ],
)
def test_what_does_not_fit_is_said(rows, arguments, message):
    fitted = PlattScaling().fit(two(rows), rows["y"].to_numpy())
    scores, *names = arguments
    with pytest.raises((InputError, OptionError), match=message):
        fitted.transform_frame(rows, scores, names=names[0] if names else None)
    with pytest.raises(InputError, match="expected a data frame"):
        fitted.transform_frame([1, 2], "p")


def test_the_score_columns_of_a_map_are_checked_and_older_maps_have_none():
    p = np.random.default_rng(0).dirichlet([1, 1], 50)
    record = TemperatureScaling().fit(p, np.arange(50) % 2).to_dict()
    data = calviz.Predictions(probs=p, labels=np.arange(50) % 2, class_names=("no", "yes"))
    saved = load_map(record).to_apply(data, ("p_no", "p_yes"))
    assert saved == record | {
        "class_names": ["no", "yes"],
        "scores": {"kind": "probabilities", "columns": ["p_no", "p_yes"]},
    }
    assert load_map(saved).transform(p) == pytest.approx(load_map(record).transform(p))
    for scores in ([], {"kind": "odds", "columns": []}, {"kind": "logits", "columns": [1]}):
        with pytest.raises(InputError, match=r"'(scores|columns)' must"):
            load_map(record | {"scores": scores})
