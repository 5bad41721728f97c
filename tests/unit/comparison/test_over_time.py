"""A metric over time: periods, changes with known truth, and maps that see the past only."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.metrics import log_loss

import calviz
from benchmarks.claims import every_simulation, too_many
from calviz.comparison.difference_intervals import Units, against_the_others
from calviz.comparison.over_time import over_time, periods, usual_metric
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import with_rows
from calviz.figures.metric_over_time import OverTimeLine
from calviz.recalibrators import LogisticSpline
from calviz.sample.sample import Sample

START = np.datetime64("2021-01-01")


def drifting(n=3_000, from_month=99, seed=0, **columns):
    """Calibrated rows of ten months; from a month on the probabilities are far too extreme."""
    rng = np.random.default_rng(seed)
    times = START + rng.integers(300, size=n).astype("timedelta64[D]")
    z = rng.normal(size=n)
    hit = rng.random(n) < 1 / (1 + np.exp(-z))
    late = times >= START.astype("datetime64[M]") + np.timedelta64(from_month, "M")
    p = 1 / (1 + np.exp(-np.where(late, 3 * z, z)))
    return calviz.Predictions(probs=p, labels=hit.astype(int), times=times, **columns)


def test_periods_are_those_of_the_calendar():
    times = np.array(["2020-12-31", "2021-01-03", "2021-01-04", "2021-02-01"], "datetime64[D]")
    assert periods(times, "day").names == tuple(times.astype(str))
    # 4 January 2021 was a Monday.
    assert periods(times, "week").names == ("2020-12-28", "2021-01-04", "2021-02-01")
    assert periods(times, "week").code.tolist() == [0, 0, 1, 2]
    assert periods(times, "month").names == ("2020-12", "2021-01", "2021-02")
    assert periods(times, "year").names == ("2020", "2021")
    assert periods(times, "equal counts", parts=2).code.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("days", "every"),
    [
        (["03-31", "06-30", "09-30", "12-31"], "quarter"),
        (["01-31", "02-28", "03-31", "04-30"], "month"),
        (["01-30", "01-31", "03-31", "04-30"], "day"),
        (["06-30"], "year"),
    ],
)
def test_dates_of_one_day_a_period_are_that_period(days, every):
    dates = np.array(
        [f"{year}-{day}" for year in range(2020, 2024) for day in days], "datetime64[D]"
    )
    data = drifting()
    data = calviz.Predictions(probs=data.probs, labels=data.labels, times=np.resize(dates, data.n))
    assert over_time(data, "nll", method=None).every == every


def test_each_period_is_measured_as_its_rows_are():
    data = drifting()
    series = over_time(data, "nll", method=None)
    assert series.every == "month"
    month = data.times.astype("datetime64[M]").astype(str)
    for one in series.periods:
        rows = month == one.name
        assert one.rows == rows.sum()
        expected = log_loss(data.labels[rows], data.probs[rows])
        assert one.result.value == pytest.approx(expected, rel=1e-9)
    # What would be usual is the loss of all rows, which a mean has on any number of them.
    assert series.periods[0].expected == pytest.approx(series.whole.value, abs=0.01)


def test_a_period_of_few_events_has_the_exact_interval_of_their_share():
    rng = np.random.default_rng(3)
    month, p = np.arange(900) % 3, rng.uniform(0.005, 0.015, 900)
    hit = np.zeros(900, int)
    hit[1:45:3], hit[2:9:3] = 1, 1  # none, 15 and 3 of 300
    times = START.astype("datetime64[M]") + month.astype("timedelta64[M]")
    data = calviz.Predictions(probs=p, labels=hit, times=times)
    none, many, few = over_time(data, "mcs", method=None).periods
    for one, hits in ((none, 0), (few, 3)):
        low, high = binomtest(hits, 300).proportion_ci(0.95)
        mean = one.result.value + hits / 300
        assert one.result.interval == pytest.approx((mean - high, mean - low), abs=1e-12)
    assert none.result.interval[0] < 0 < none.result.interval[1]
    assert many.result.interval_method == "percentile"


def test_where_one_slice_changes_its_periods_are_drawn_in_the_shortest_length_with_enough_rows():
    rng = np.random.default_rng(0)
    n = 12_000
    day, region = (
        rng.integers(270, size=n),
        rng.choice(["N", "S", "W"], p=[0.6, 0.34, 0.06], size=n),
    )
    z = rng.normal(size=n)
    off = (day >= 150) & (region == "W")
    data = calviz.Predictions(
        probs=1 / (1 + np.exp(-z - 2 * off)),
        labels=(rng.random(n) < 1 / (1 + np.exp(-z))).astype(int),
        times=START + day.astype("timedelta64[D]"),
        groups={"region": region},
    )
    series = over_time(data, "mcs", method=None, reduction="positive")
    assert series.watch.headline.split(": ")[0].endswith("region = W")
    # A week has 19 rows of W, and rarely 30.
    assert (series.every, series.small, series.within.small) == ("month", 0, 0)
    month = data.times.astype("datetime64[M]").astype(str)
    for one in series.within.periods:
        rows = (month == one.name) & (region == "W")
        assert one.rows == rows.sum()
        gap = data.probs[rows, 1].mean() - data.labels[rows].mean()
        assert one.result.value == pytest.approx(gap, rel=1e-9)
    figure = OverTimeLine.compute(series)
    assert figure.frame()["value"].tolist() == [p.result.value for p in series.within.periods]
    drawn = {t.name: t for t in figure.plot().data}
    assert list(drawn["All rows"].y) == pytest.approx(
        [100 * p.result.value for p in series.periods]
    )
    assert "Where region = W, 95 % CI" in {*drawn}
    band, mark = figure.plot().layout.shapes
    assert band.x0 <= mark.x0 <= band.x1
    assert series.watch.found.since.startswith(series.periods[round(mark.x0)].name)
    # Days of the slice have too few rows: then all rows are drawn.
    by_day = over_time(data, "mcs", every="day", method=None, reduction="positive")
    assert by_day.within is None
    assert "All rows" not in {t.name for t in OverTimeLine.compute(by_day).plot().data}


@pytest.mark.slow
def test_a_change_is_found_and_where_there_is_none_nothing():
    data = drifting(6_000, from_month=5, seed=1)
    lasting = over_time(data, "mcs", method=None)
    # Months are compared on their side of the change, so that neither side calls the other off.
    assert len(lasting.sides) == 1
    assert not lasting.changed
    answer = "Beside the change, none of 10 periods differs in MCS beyond chance."
    assert OverTimeLine.compute(lasting).answer() == answer
    shown = "<OverTime of 'predictions': mcs by month, 0 of 10 periods changed beyond chance>"
    assert repr(lasting) == shown
    odd = data.times.astype("datetime64[M]") == np.datetime64("2021-02")
    score = np.where(odd, np.sqrt(data.probs[:, 1]), data.probs[:, 1])
    more = calviz.Predictions(probs=score, labels=data.labels, times=data.times)
    one = over_time(more, "mcs", method=None)
    assert "2021-02" in {p.name for p in one.changed}
    early = more.take(data.times < np.datetime64("2021-06"))
    there_and_back = over_time(early, "mcs", every="month", method=None)
    assert there_and_back.sides == ()
    assert there_and_back.changed[0].name == "2021-02"
    answer = OverTimeLine.compute(there_and_back).answer()
    assert "the MCS differs from the others beyond chance; most clearly 2021-02" in answer
    called = sum(
        bool(over_time(drifting(500, seed=s), "nll", method=None).changed) for s in range(8)
    )
    assert called <= 1


@pytest.mark.slow
def test_maps_see_the_past_only_and_follow_a_change():
    data = drifting(from_month=3)
    series = over_time(data, "nll", method="temperature")
    month = data.times.astype("datetime64[M]").astype(str)
    assert series.periods[0].recalibrated is None
    for one in series.periods[1:]:
        assert one.fitted_on == (month < one.name).sum()
    # The first extreme month is met by a map of good ones, the last by one that knows.
    gains = [p.result.value - p.recalibrated.value for p in series.periods[3:]]
    assert abs(gains[0]) < 0.05
    assert gains[-1] > 0.2
    assert series.difference.verdict == "better"
    assert "better beyond noise" in OverTimeLine.compute(series).past()
    # The value beside it is not that of all rows, which the pages show: the first period has no past.
    judged = len(series.periods) - 1
    assert (
        f"on the {judged} periods with enough rows before them"
        in OverTimeLine.compute(series).past()
    )
    for theme in ("light", "dark"):
        assert OverTimeLine.compute(series).plot(theme=theme).data


def test_confidences_alone_have_a_map_by_default():
    data = drifting(from_month=3)
    confidence, correct = data.probs.max(axis=1), data.probs.argmax(axis=1) == data.labels
    alone = calviz.ConfidencePredictions(confidence=confidence, correct=correct, times=data.times)
    assert "Platt scaling" in OverTimeLine.compute(over_time(alone)).past()


def test_a_change_of_the_mcs_is_judged_by_its_distance_from_0():
    past = OverTimeLine.compute(over_time(drifting(), "mcs", method="temperature")).past()
    assert "no difference beyond noise in its distance from 0." in past


def test_one_judged_period_is_singular():
    rng = np.random.default_rng(0)
    score = rng.random(200)
    times = np.array(["2021-01-15", "2021-02-15"], "datetime64[D]")[np.arange(200) % 2]
    labels = (rng.random(200) < score).astype(int)
    series = over_time(
        calviz.Predictions(probs=score, labels=labels, times=times), "nll", method="temperature"
    )
    assert "on the 1 period with enough rows before it" in OverTimeLine.compute(series).past()


@pytest.mark.slow
def test_rows_without_labels_are_expected_as_by_the_rows_with_labels():
    data = drifting(2_000, from_month=0)
    month = data.times.astype("datetime64[M]").astype(str)
    labelled, waiting = (data.take(np.flatnonzero(w)) for w in (month < "2021-08", month >= "2021-08"))  # fmt: skip
    series = over_time(labelled, "nll", every="month", method=None, waiting=waiting)
    assert [(w.name, w.rows) for w in series.waiting] == [
        (m, (month == m).sum()) for m in ("2021-08", "2021-09", "2021-10")
    ]

    def expected(past, now):
        """Log loss if the map of the past gave the probabilities of the labels."""
        q = LogisticSpline(strength=0.1).fit(past.probs, past.labels).transform(now.probs)
        return -(q * np.log(now.probs)).sum(1).mean()

    missed = 0
    for one in series.waiting:
        now = data.take(np.flatnonzero(month == one.name))
        assert one.expected.value == pytest.approx(expected(labelled, now), rel=1e-6)
        # The labels, which were not looked at, bear it out; the scores say something else.
        low, high = one.expected.interval
        missed += not low < log_loss(now.labels, now.probs) < high
        assert -(now.probs * np.log(now.probs)).sum(1).mean() < low
    assert missed / 3 <= too_many(0.05, 3)
    for one in series.periods[1:]:
        past, now = (data.take(np.flatnonzero(w)) for w in (month < one.name, month == one.name))
        assert one.before_labels == pytest.approx(expected(past, now), rel=1e-6)
    assert np.isnan(series.periods[0].before_labels)
    whole = series.whole_waiting.metrics["nll"].value
    assert whole == pytest.approx(expected(labelled, waiting), rel=1e-6)
    figure = OverTimeLine.compute(series)
    assert f"NLL {whole:.3f} is expected" in figure.before_labels()
    table = figure.table(series)
    assert [*table["month"]][-1:] == ["2021-10, no labels"]
    assert {*map(len, table.values())} == {len(series.periods) + 3}
    assert "fitted on the past" not in table
    names = [t.name for t in figure.plot().data]
    assert "Without labels: expected, with 95 % interval" in names
    # Parts of equal counts would not be those of the rows with labels; a mean gap has no expectation.
    by_counts = over_time(labelled, "nll", every="equal counts", method=None, waiting=waiting)
    assert [w.rows for w in by_counts.waiting] == [waiting.n]
    ece = OverTimeLine.compute(over_time(labelled, "ece", method=None, waiting=waiting))
    assert (
        ece.before_labels()
        == "Rows without labels are left out; the metric Accuracy shows what to expect of them."
    )
    # The few rows of a part may each be of another cluster.
    patient = np.arange(data.n) // 2
    marked = replace(data, clusters=patient).take(np.flatnonzero(month >= "2021-08"))
    few = over_time(labelled, "nll", method=None, waiting=marked.take(np.arange(0, 40, 2)))
    assert not few.unexpected
    assert few.whole_waiting.rows == 20
    bare = replace(waiting, times=None)
    none = OverTimeLine.compute(over_time(labelled, "nll", method=None, waiting=bare))
    assert none.before_labels() == "Rows without labels have no times."


@pytest.mark.parametrize("rows", [(40, 900, 3_000), (30, 50_000, 1_000)])
def test_permutations_keep_the_rows_of_every_period_and_mix_them(rows):
    rng = np.random.default_rng(0)
    code = rng.permutation(np.repeat(np.arange(3), rows))
    units = Units.of(rng, code, np.ones(code.size), 0 * code)
    assert (units.period[units.number] == code).all()  # a unit lies in one period
    assert len(units.alike) == (1 if sum(rows) < 1 << 15 else 2)
    stayed = np.zeros(3)
    for _ in range(200):
        of_row = units.permuted(rng)[units.number]
        assert np.bincount(of_row).tolist() == list(rows)
        stayed += np.bincount(code[of_row == code], minlength=3) / rows
    # About the share of the period among all rows stays; of a small period with few partners somewhat more.
    assert stayed / 200 == pytest.approx(np.array(rows) / sum(rows), abs=0.12)


def test_clusters_change_places_with_clusters_of_their_size():
    rng = np.random.default_rng(0)
    mass = np.tile([3.0, 30, 31, 0], 50)
    units = Units.of(rng, np.repeat(np.arange(4), 50), mass, np.zeros(200, int))
    period = units.permuted(rng)[units.number]
    for some in ([3.0], [30.0, 31.0], [0.0]):
        of = np.isin(mass, some)
        assert (np.bincount(period[of]) == np.bincount(np.repeat(np.arange(4), 50)[of])).all()
    assert (period != np.repeat(np.arange(4), 50)).mean() > 0.6


@cache
def measured(n, metric):
    return over_time(drifting(n, from_month=3), metric, method=None, resamples=20)


@pytest.mark.parametrize(
    ("metric", "n"),
    [
        *((metric, 900) for metric in ("nll", "ece", "auroc", "classwise_ece", "msece")),
        # In blocks of rows: of a loss, of steps and of classes.
        *(
            pytest.param(m, 40_000, marks=pytest.mark.slow)
            for m in ("nll", "auroc", "classwise_ece")
        ),
    ],
)
def test_what_is_permuted_is_the_metric_of_each_period(metric, n):
    data, series, gaps = drifting(n, from_month=3), measured(n, metric), measured(n, "mcs")
    divided = periods(data.times, "month")
    large = np.flatnonzero(np.bincount(divided.code) >= 30)
    values = against_the_others(Sample(data), divided.code, large, metric)[0]
    for key in (metric, "mcs"):
        own = [p.result.value for p in (series if key == metric else gaps).periods]
        # A ranking of many rows is made of merged steps.
        assert values[key][:, 0] == pytest.approx(own, rel=1e-4 if metric == "auroc" else 1e-6)
    assert [p.gap for p in series.periods] == pytest.approx(values["mcs"][:, 0])


@pytest.mark.slow
def test_a_shift_that_the_log_loss_does_not_show_is_found_by_the_mean_score():
    one, far = (
        next(s for s in every_simulation() if s.claim == "change-over-time" and case in s.case)
        for case in (
            "NLL, one of 40 days of 300 rows off by 1 logit, logits with SD 1.5",
            "90 days of 45",
        )
    )
    assert np.mean(one.outcomes(4)) == np.mean(far.outcomes(4)) == 1
    rng = np.random.default_rng(1)
    day = np.repeat(np.arange(30), 200)
    z = rng.normal(size=day.size)
    p = 1 / (1 + np.exp(-z - (day == 3)))
    data = calviz.Predictions(
        probs=p,
        labels=(rng.random(z.size) < 1 / (1 + np.exp(-z))).astype(int),
        times=START + day.astype("timedelta64[D]"),
    )
    series = over_time(data, "nll", every="day", method=None)
    figure = OverTimeLine.compute(series)
    assert [q.name for q in series.changed] == ["2021-01-04"]
    gap = 100 * (p - data.labels)[day == 3].mean()
    assert (
        f"the NLL or MCS differs from the others beyond chance: 2021-01-04, MCS {gap:.1f} points"
        in figure.answer()
    )
    assert "adjusted for 30 periods and both metrics" in figure.answer()
    differs = figure.table(series)["differs from the others"]
    assert [cell.partition(" (")[0] for cell in differs].count("yes, in MCS") == 1
    assert f"differs: {differs[3]}" in str(figure.plot().to_dict())
    assert figure.headline.endswith("beyond chance: 2021-01-04")
    alone = OverTimeLine.compute(over_time(data, "mcs", every="day", method=None)).answer()
    assert "the MCS differs" in alone
    assert "both" not in alone


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        "NLL, 30 days of 10 clusters, of 3 rows or of 30 in turn",
        "NLL, 40 days of 100 rows, heavy weights",
    ],
)
def test_few_unchanging_files_show_a_change(case):
    (one,) = (s for s in every_simulation() if s.claim == "change-over-time" and s.case == case)
    assert one.keeps_to(16, at_most=too_many(0.05, 16))


def test_what_no_permutation_could_show_is_said():
    # Two clusters in each of two months: a third of the assignments is like any other.
    data = drifting(200)
    data = data.take(data.times < START + np.timedelta64(59, "D"))
    month = (data.times >= START + np.timedelta64(31, "D")).astype(int)
    data = with_rows(data, clusters=2 * month + np.arange(data.n) % 2)
    series = over_time(data, "nll", every="month", method=None, min_rows=5)
    answer = OverTimeLine.compute(series).answer()
    assert answer.startswith("There are too many periods (2) for these clusters to tell changes")
    assert not series.changed
    # With one miss there is a ranking, but not in most periods.
    hits = np.arange(data.n) > 0
    some = calviz.Predictions(probs=data.probs, labels=hits.astype(int), times=data.times)
    series = over_time(some, "auroc", every="month", method=None, min_rows=5)
    assert "None of 2 periods differs" in OverTimeLine.compute(series).answer()


def test_a_metric_that_the_data_do_not_have_is_refused_and_confidences_have_the_mcs():
    data = drifting(600)
    sure = calviz.ConfidencePredictions(
        confidence=data.probs.max(axis=1), correct=data.labels == 1, times=data.times
    )
    assert over_time(sure, method=None).metric == "mcs"
    # Of rows without labels the NLL can be expected, the MCS cannot: it is asked of those that came last, not of gaps.
    order = np.argsort(data.times, kind="stable")
    old, new = (data.take(part) for part in np.split(order, [400]))
    found = [usual_metric(*two) for two in ((data, None), (data, new), (old, new))]
    assert found == ["mcs", "mcs", "nll"]
    with pytest.raises(NotAvailable, match=r"^NLL: not available"):
        over_time(sure, "nll", method=None)


def test_clusters_are_dealt_out_whole():
    data = drifting(1_200)
    day = data.times.astype("datetime64[D]").astype(str)
    by_day = over_time(drifting(1_200, clusters=day), "nll", method=None)
    assert by_day.resamples > 0
    across = drifting(1_200, clusters=np.arange(1_200) % 40)
    line = OverTimeLine.compute(over_time(across, "nll", method=None))
    assert "extend over several periods" in line.result.untested
    # What the watch finds holds all the same.
    assert line.headline == "No lasting change found; whether single periods differ cannot be told"
    assert line.answer().startswith("Changes of single periods are not tested: clusters extend")
    assert line.answer().endswith("No lasting change found by the watch of all days.")
    changed = drifting(3_000, from_month=4, clusters=np.arange(3_000) % 1_500)
    line = OverTimeLine.compute(over_time(changed, "nll", method=None))
    assert line.result.watch.changed
    assert "No lasting change" not in line.headline + line.answer()


def test_what_cannot_be_divided_says_why():
    with pytest.raises(NotAvailable, match=r"no times: .*time_column="):
        over_time(calviz.Predictions(probs=[0.2, 0.7], labels=[0, 1]))
    one_day = drifting(100)
    with pytest.raises(NotAvailable, match="one year"):
        over_time(one_day, every="year")
    with pytest.raises(NotAvailable, match="30 rows or more"):
        over_time(one_day, every="day")
    four_a_day = calviz.Predictions(
        probs=np.tile([0.2, 0.7], 170),
        labels=np.tile([0, 1], 170),
        times=START + np.repeat(np.arange(85), 4),
    )
    # Of the weeks, none has enough rows.
    assert over_time(four_a_day, method=None).every == "month"
    four_a_year = with_rows(four_a_day, times=START + np.repeat(365 * np.arange(85), 4))
    assert over_time(four_a_year, method=None).every == "equal counts"
    with pytest.raises(NotAvailable, match="no week has 30 rows or more"):
        over_time(four_a_day, every="week")
    with pytest.raises(NotAvailable, match="no period has 30 rows or more: choose fewer periods"):
        over_time(one_day, every="equal counts", parts=50)
    same_time = with_rows(one_day, times=np.zeros(one_day.n, dtype="datetime64[D]"))
    with pytest.raises(NotAvailable, match="the same time"):
        over_time(same_time, every="equal counts")
    with pytest.raises(OptionError, match="every"):
        over_time(one_day, every="hour")


def test_where_only_the_rows_change_it_is_said_that_calibration_does_not():
    """Found by a stranger: months of a calibrated model were named, as fewer events were expected in them."""
    rng = np.random.default_rng(0)
    month = np.repeat(np.arange(12), 800)
    p = expit(rng.normal(np.where(month < 6, -3.5, -1.0), 0.7))
    data = calviz.Predictions(
        probs=np.stack([1 - p, p], axis=1),
        labels=(rng.random(p.size) < p).astype(int),
        times=(np.datetime64("2024-01") + month).astype("datetime64[us]"),
    )
    result = over_time(data, "nll", method=None)
    assert result.changed
    assert result.of_rows
    assert "In the MCS none does" in OverTimeLine.compute(result).answer()
    # Where the scores of a month are off, the MCS says so.
    off = np.where(month == 3, expit(np.log(p / (1 - p)) + 1.0), p)
    shifted = replace(data, probs=np.stack([1 - off, off], axis=1))
    assert not over_time(shifted, "nll", method=None).of_rows


def test_after_a_change_rows_without_labels_are_expected_as_by_the_rows_since():
    rng, n = np.random.default_rng(0), 6_000
    times = START + np.sort(rng.integers(300, size=n)).astype("timedelta64[D]")
    z, late = rng.normal(-1.5, 1, n), times >= np.datetime64("2021-05-01")
    hit = rng.random(n) < expit(z + late)
    data = calviz.Predictions(probs=expit(z), labels=hit.astype(int), times=times)
    known = times < np.datetime64("2021-09-01")
    labelled, waiting = (data.take(np.flatnonzero(rows)) for rows in (known, ~known))
    series = over_time(labelled, "nll", method=None, waiting=waiting)
    since = np.datetime64(series.watch.changed)
    assert series.whole_waiting.labelled == (labelled.times >= since).sum() < labelled.n
    low, high = series.whole_waiting.metrics["nll"].interval
    assert low < log_loss(hit[~known], expit(z[~known])) < high
    assert f"the rows with labels since {series.watch.shown(str(since))}" in series.watch.doubt
