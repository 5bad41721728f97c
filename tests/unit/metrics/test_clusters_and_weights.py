"""Clusters and weights together: sums, draws, refusals and remarks that concern both."""

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import METRICS, reweighting_of
from calviz.core.errors import InputError, NotAvailable
from calviz.core.events import BinaryEvents
from calviz.core.predictions import with_rows
from calviz.sample.binning import effective_rows
from calviz.sample.caches import held_bytes
from calviz.sample.draws import RowDraws
from calviz.sample.sample import SMALL, Sample, event_sums, metric_view
from calviz.verdicts.analysis import evaluate
from calviz.verdicts.evaluation import missing, remarks
from tests.inputs.clusters_and_weights import dependent, three_classes, two_classes


def makers():
    keys = {}
    for m in METRICS:
        if m.reweighting is not None or getattr(m.view, "keywords", None) is None:
            keys.setdefault(getattr(m.view, "func", m.view), m.key)
    return sorted(keys.values())


@pytest.mark.parametrize("key", makers())
def test_sums_over_clusters_are_those_over_their_rows(key):
    cluster = np.arange(300) % 40
    data = three_classes(weights=np.random.default_rng(4).exponential(size=300), clusters=cluster)
    sample = Sample(data)
    metric = METRICS[key]
    how = reweighting_of(metric.view)
    if how is None:
        pytest.skip("it has no error bars by clusters")
    try:
        view = metric_view(sample, metric)
    except NotAvailable as error:
        pytest.skip(str(error))
    drawn = sample.row_draws.counts(np.random.default_rng(5), 6)

    def values(weights):
        result = how.make(sample, view)(weights)(None)
        return np.asarray(metric.value(result))

    np.testing.assert_allclose(values(drawn), values(np.asarray(drawn)), rtol=2e-5, atol=1e-7)


@pytest.mark.slow
def test_many_clusters_and_many_weighted_rows_are_drawn_by_groups(monkeypatch):
    data = dependent(groups=3_000, rows=2)
    plain = evaluate(data, ["mcs", "nll"], ci=True, findings=False, resamples=1_500)
    w = np.random.default_rng(6).exponential(size=data.n)
    rows = calviz.Predictions(probs=data.probs, labels=data.labels, weights=w)
    weighted = evaluate(rows, ["mcs", "nll"], ci=True, findings=False, resamples=1_500)
    monkeypatch.setattr("calviz.sample.draws.MOST_GROUPS", 1_000)
    few = evaluate(data.renamed("b"), ["mcs", "nll"], ci=True, findings=False, resamples=1_500)
    some = evaluate(rows.renamed("b"), ["mcs", "nll"], ci=True, findings=False, resamples=1_500)
    for one, other in ((plain, few), (weighted, some)):
        for m in one:
            width = m.interval.high - m.interval.low
            result = other[m.key]
            assert result.interval.high - result.interval.low == pytest.approx(width, rel=0.12)
            floor = m.noise_floor.q95 - m.noise_floor.mean
            assert result.noise_floor.mean == pytest.approx(m.noise_floor.mean, rel=0.05, abs=1e-3)
            assert result.noise_floor.q95 - result.noise_floor.mean == pytest.approx(floor, rel=0.2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"clusters": np.zeros(600)}, "one value for all rows"),
        ({"clusters": np.arange(600)}, "no rows belong together"),
        ({"weights": np.r_[-1.0, np.ones(599)]}, "row 1: the weight is -1"),
        ({"weights": np.r_[np.ones(599), np.nan]}, "row 600: the weight is missing"),
        ({"weights": np.r_[np.inf, np.ones(599)]}, "row 1: the weight is infinite"),
        ({"weights": np.zeros(600)}, "all weights are zero"),
        ({"weights": np.ones(7)}, "'weights' has 7 rows"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(columns, message):
    with pytest.raises(InputError, match=message):
        two_classes(**columns)


def test_each_remark_is_made_once_and_says_of_how_many_metrics():
    results = list(
        evaluate(dependent(), [m.key for m in METRICS], ci=True, findings=False, resamples=100)
    )
    by_key = {text: names for names, text in remarks(results)}
    assert set(by_key) == {r.note for r in results if r.note}
    many = [r for r in results if r.note and r.note.startswith("noise floor: for a calibrated")]
    assert by_key[many[0].note] == f"{len(many)} of {len(results)} metrics"
    few = [r for r in results if r.note == "no noise floor: it cannot be resampled by clusters."]
    assert by_key[few[0].note] == "; ".join(METRICS[r.key].label for r in few)
    why = {reason for _, reason in missing(results)}
    assert why == {r.reason for r in results if not r.available}


def test_rows_that_know_as_much_by_hand():
    # Three clusters of two rows in one bin, scores and share of hits 1/2: the residuals of the clusters add up to 1, -1 and 0.
    events = BinaryEvents(np.full(6, 0.5), np.array([1, 1, 0, 0, 1, 0], dtype=bool))
    edges, cluster = np.array([0.0, 1.0]), np.repeat([0, 1, 2], 2)
    # Their squares, 2, times 3 / 2 against 6 x 0.25 of single rows: half of the six rows.
    assert effective_rows(events, edges, cluster, None) == pytest.approx([3.0])
    # Weights alone: (sum of w)^2 / (sum of w^2).
    w = np.array([1.0, 1, 1, 1, 2, 4])
    assert effective_rows(events, edges, None, w) == pytest.approx([100 / 24])


@pytest.mark.parametrize(
    ("n", "expected"), [(1_000, 1_000), (200_000, 500), (10**6, 100), (10**9, 100)]
)
def test_resamples_of_many_rows_are_fewer_but_never_too_few(n, expected):
    assert RowDraws(n).affordable(1_000) == expected


def test_rows_that_are_left_may_be_one_cluster_or_one_per_row():
    data = dependent(30, 2)
    singles = with_rows(data, weights=np.tile([0.0, 2.0], 30))
    assert evaluate(singles, ["nll"], ci=True)["nll"].interval is not None
    sites = {"site": np.repeat(["a", "b"], 30)}
    weights = np.where(np.arange(60) < 30, 1.0, 2.0)
    two = calviz.ConfidencePredictions(
        confidence=data.probs[:, 1],
        correct=data.labels == 1,
        clusters=np.repeat([0, 1], 30),
        weights=weights,
        groups=sites,
    )
    sample = Sample.of(two, where=(("site", "a"),))
    assert sample.data.n == 30
    assert evaluate(sample, ["mcs"], ci=True)["mcs"].interval is None


@pytest.mark.parametrize("columns", [{"weights": True}, {"clusters": True}])
def test_views_of_rows_that_are_not_alike_do_not_count_the_sample(columns):
    n = 40_000
    own = {
        "weights": np.linspace(1, 2, n) if "weights" in columns else None,
        "clusters": np.arange(n) // 4 if "clusters" in columns else None,
    }
    sample = Sample(two_classes(n, **own))
    whole = sample.view(event_sums)
    assert sample.scored.score.nbytes > SMALL
    assert held_bytes(whole) < SMALL
