"""Watching: bets by hand, false alarms, delays, states that are saved and merged, and the command."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import norm

import calviz
from benchmarks import record_monitors as monitors
from benchmarks.claims import every_simulation, too_few, too_many
from benchmarks.claims.watching import (
    by_site,
    looked_at,
    moderation,
    of_patients,
    of_sites,
    year,
    years,
)
from calviz.comparison.advice import change_words
from calviz.core.blocks import Factor
from calviz.core.entry_specs import CHECKS
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.words import ENDED, NOT_SINCE
from calviz.figures.hundred_squares import HundredSquares
from calviz.figures.metric_over_time import OverTimeLine, WatchLine
from calviz.figures.reliability import Reliability, ReliabilityOverlay
from calviz.figures.slice_gaps import SliceGaps
from calviz.report.sections.summary import advised, no_fix_words
from calviz.sample.logistic_curves import fit_of_lines
from calviz.sample.multicalibration import changed_slices
from calviz.sample.sample import Sample, on_days, rows_where
from calviz.sample.slice_tests import p_of_changes
from calviz.sample.slices import slices, usual_slices
from calviz.verdicts import watching
from calviz.verdicts.betting import TIGHTEST, bets_on, confidence_sequence
from calviz.verdicts.miscalibration_checks import where_to_look
from calviz.verdicts.row_checks import label_errors_found, unchanged_rows
from calviz.verdicts.sentence import explained, judged
from calviz.verdicts.watching import Watch
from tests.inputs.command_line import run
from tests.inputs.simulated import keep_few_scores

START = np.datetime64("2024-01-01")


def rows(rng, n=200, *, shift=0.0, slope=1.0, **columns):
    """Rows of two classes whose true logits are shifted and stretched."""
    z = rng.normal(0, 1.5, n)
    labels = rng.random(n) < expit(slope * z + shift)
    return calviz.Predictions(probs=expit(z), labels=labels.astype(int), **columns)


def first_alarm(rng, looks, changed, **how):
    """Number of the look of the alarm, from the change on; None without one."""
    watch = Watch()
    for t in range(looks):
        state = watch.add(rows(rng, **(how if t >= changed else {})), f"{t:03d}")
        if state.alarm:
            return t - changed + 1, state
    return None, state


def likelihood_ratio(bet, watch, score, hit):
    """Of the alternative of one bet, row by row in probabilities."""
    p = score
    z = logit(p)
    if bet.kind == "slope":
        q = expit(watch.centre + bet.size * (z - watch.centre))
    else:
        q = expit(z + bet.size)
    ratio = np.where(hit, q / p, (1 - q) / (1 - p))
    if bet.bin is not None:
        low, high = watch.edges[bet.bin : bet.bin + 2]
        ratio[~((p > low) & (p <= high))] = 1
    return float(np.prod(ratio))


def test_the_e_value_is_the_mixture_of_likelihood_ratios_over_bets_and_starts():
    rng = np.random.default_rng(1)
    looks = [rows(rng, 30, shift=0.5) for _ in range(4)]
    watch = Watch()
    for k, look in enumerate(looks):
        state = watch.add(look, str(k))
    bets = bets_on(len(watch.edges) - 1)
    assert sum(bet.share for bet in bets) == pytest.approx(1)
    each = [[likelihood_ratio(b, watch, p.probs[:, 1], p.labels == 1) for p in looks] for b in bets]
    for t, (_, value) in enumerate(state.path, start=1):
        total = 0.2 / t
        for bet, factors in zip(bets, each, strict=True):
            for s in range(1, t + 1):
                start = 0.8 if s == 1 else 0.2 / (s * (s - 1))
                total += bet.share * start * math.prod(factors[s - 1 : t])
        assert value == pytest.approx(total, rel=1e-7)
    assert state.e_value == state.path[-1][1]


def test_each_bet_is_fair():
    """The expected factor of a row is 1, summed over its two outcomes."""
    watch = Watch()
    watch.add(rows(np.random.default_rng(0), 50), "0")
    for bet in bets_on(len(watch.edges) - 1):
        for p in (1e-7, 0.1, 0.5, 0.99):
            score = np.array([p])
            mean = sum(
                w * likelihood_ratio(bet, watch, score, np.array([hit]))
                for hit, w in ((True, p), (False, 1 - p))
            )
            assert mean == pytest.approx(1, abs=1e-9)


def test_the_confidence_sequence_is_the_mixture_of_gaussian_bets():
    sums, counts, alpha = np.array([3.0, -1.0, 4.0]), np.array([50.0, 70.0, 60.0]), 0.1
    low, high = confidence_sequence(sums, counts, alpha)
    mean, variance = sums.sum() / counts.sum(), counts.sum() / 4
    deviation = (high - mean) * counts.sum()
    assert (low + high) / 2 == pytest.approx(mean)
    # The wealth of bets of sizes from a normal distribution reaches 1 / alpha at the bound, for the variance of that mixture.
    best = TIGHTEST * counts[0] / 4

    def reach(rho, v):
        return math.sqrt((v + rho) * math.log((v + rho) / (rho * alpha**2)))

    grid = np.exp(np.linspace(np.log(best / 1000), np.log(best * 10), 20_001))
    rho = grid[np.argmin([reach(r, best) for r in grid])]  # tightest there
    wealth, _ = quad(
        lambda x: math.exp(x * deviation - x * x * variance / 2) * norm.pdf(x, 0, rho**-0.5), -3, 3,
        points=[deviation / (variance + rho)], limit=200,
    )  # fmt: skip
    assert wealth == pytest.approx(1 / alpha, rel=1e-3)


@pytest.mark.slow
def test_calibrated_scores_hardly_ever_alarm_and_the_gap_is_covered():
    alarms, missed = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        watch = Watch(alpha=0.2)
        for t in range(30):
            state = watch.add(rows(rng, 50), str(t))
        alarms += state.alarm
        missed += not state.gap.low <= 0 <= state.gap.high
    assert alarms <= 15  # 8 expected at most; more than 15 has a chance of 0.3 %
    assert missed <= 15


@pytest.mark.parametrize("changed", [0, pytest.param(59, marks=pytest.mark.slow)])
def test_a_shift_is_found_about_as_fast_late_as_early(changed):
    rng = np.random.default_rng(changed)
    found = [first_alarm(rng, changed + 20, changed, shift=0.3) for _ in range(6)]
    assert all(delay is not None and 1 <= delay <= 20 for delay, _ in found)
    starts = [int(state.since) for _, state in found]
    assert np.median(np.abs(np.array(starts) - changed)) <= 3
    assert [state.remedy for _, state in found].count("offset") >= 5
    assert np.mean([state.offset for _, state in found]) == pytest.approx(0.3, abs=0.1)


def test_where_an_offset_does_not_help_a_new_map_is_needed():
    found = [first_alarm(np.random.default_rng(k), 10, 0, slope=0.6) for k in range(5)]
    assert all(delay is not None for delay, _ in found)
    assert [state.remedy for _, state in found].count("map") >= 4
    assert "fit a new map" in repr(found[0][1])


def test_days_are_looks_and_none_counts_twice():
    rng = np.random.default_rng(0)
    times = START + rng.permutation(np.repeat(np.arange(4), 50)).astype("timedelta64[D]")
    data = rows(rng, 200, times=times)
    watch = Watch()
    state = watch.add(data)
    assert [name for name, _ in state.path] == [str(START + k) for k in range(4)]
    again = watch.add(data)
    assert (again.skipped, again.looks, again.rows) == (4, 4, 200)
    assert again.e_value == state.e_value
    assert "4 looks had been counted before" in str(again)
    # The same, day by day.
    other = Watch(edges=watch.edges, centre=watch.centre)
    for k in range(4):
        other.add(data.take(np.flatnonzero(times == START + np.timedelta64(k, "D"))))
    assert other.state.path == state.path


def test_states_are_saved_and_merged(tmp_path):
    rng = np.random.default_rng(0)
    watch = Watch()
    for t in range(6):
        watch.add(rows(rng, 100), f"{t}")
    watch.save(tmp_path / "state.json")
    loaded = Watch.load(tmp_path / "state.json")
    assert loaded == watch
    assert loaded.state.path == watch.state.path
    even, odd = Watch.load(tmp_path / "state.json"), Watch.load(tmp_path / "state.json")
    even.looks, odd.looks = even.looks[::2], odd.looks[1::2]
    merged = odd.merge(even)
    assert merged.looks == watch.looks
    assert merged.merge(watch).looks == watch.looks
    with pytest.raises(InputError, match="different models"):
        merged.merge(Watch(alpha=0.01))


def test_rows_of_a_cluster_count_once():
    """Ten copies of each row, each ten a cluster, are the rows themselves."""
    rng = np.random.default_rng(0)
    data = rows(rng, 100, shift=1.0)
    one = Watch()
    one.add(data, "0")
    copies = data.take(np.repeat(np.arange(100), 10))
    clustered = calviz.Predictions(
        probs=copies.probs, labels=copies.labels, clusters=np.repeat(np.arange(100), 10)
    )
    ten = Watch(edges=one.edges, centre=one.centre)
    state = ten.add(clustered, "0")
    assert state.e_value == pytest.approx(one.state.e_value, rel=1e-6)
    assert state.gap == pytest.approx(one.state.gap)
    assert state.rows == 1000


def test_a_weighted_row_bets_with_a_power_of_its_factor():
    rng = np.random.default_rng(0)
    weights = rng.uniform(1, 4, 40)
    weights[0] = 4.0
    data = rows(rng, 40, weights=weights)
    watch = Watch()
    watch.add(data, "0")
    score, hit = data.probs[:, 1], data.labels == 1
    for bet, log_factor in zip(bets_on(5), watch.looks[0].bets, strict=True):
        each = [likelihood_ratio(bet, watch, score[[i]], hit[i]) for i in range(40)]
        assert log_factor == pytest.approx(weights / 4 @ np.log(each), rel=1e-7, abs=1e-9)
    low, high = watch.state.gap
    assert (low + high) / 2 == pytest.approx(np.average(hit - score, weights=weights))
    # Twice the weights are the same weights; a later row counts at most as much as the heaviest of the first look.
    twice = Watch()
    assert twice.add(replace(data, weights=2 * weights), "0").path == watch.state.path
    heavy = np.where(np.arange(40) == 0, 100.0, weights)
    watch.add(replace(data, weights=heavy), "1")
    assert watch.looks[1].bets == watch.looks[0].bets
    assert Watch.from_dict(watch.to_dict()) == watch


def _profile(data):
    columns = {"label": data.labels, "p": data.probs[:, 1]}
    if data.times is not None:
        columns["day"] = data.times.astype("datetime64[us]")
    return calviz.profile(pl.DataFrame(columns), time="day" if data.times is not None else None)


def test_a_profile_is_watched_as_its_rows(monkeypatch):
    rng = np.random.default_rng(3)
    times = START + np.repeat(np.arange(6), 500).astype("timedelta64[D]")
    data = rows(rng, 3_000, shift=0.2, times=times)
    of_rows = Watch()
    of_rows.add(data)
    exact = Watch(edges=of_rows.edges, centre=of_rows.centre)
    one_score_a_cell = exact.add(_profile(data))
    assert one_score_a_cell.rows == 3_000
    assert [name for name, _ in one_score_a_cell.path] == [str(START + k) for k in range(6)]
    at = [bet.kind == "shift" for bet in bets_on(5)]
    for cells, single in zip(exact.looks, of_rows.looks, strict=True):
        assert np.array(cells.bets)[at] == pytest.approx(np.array(single.bets)[at], abs=1e-6)
        assert sum(cells.hits) == sum(single.hits)
    # Cells of several scores: at most as large, as the logarithm of a mean is at least the mean of the logarithms.
    keep_few_scores(monkeypatch, 100)
    assert not _profile(data).is_exact
    coarse = Watch(edges=of_rows.edges, centre=of_rows.centre)
    e_value = coarse.add(_profile(data)).e_value
    for cells, single in zip(coarse.looks, of_rows.looks, strict=True):
        assert (np.array(cells.bets)[at] <= np.array(single.bets)[at] + 1e-6).all()
    assert e_value == pytest.approx(of_rows.state.e_value, rel=0.1)
    assert coarse.add(_profile(data)).skipped == 6
    begun = Watch()
    begun.add(_profile(data))
    assert begun.edges == pytest.approx(of_rows.edges, abs=0.01)


def test_hits_and_misses_of_a_cell_have_the_same_bets():
    """Otherwise the alternative would depend on the label."""
    table = pl.DataFrame({"label": [0, 1] * 40, "p": np.linspace(0.700035, 0.700045, 80)})
    watch = Watch(edges=(0.0, 0.700037, 0.700039, 0.700041, 0.700043, 1.0), centre=0.0)
    with pytest.MonkeyPatch.context() as patch:
        keep_few_scores(patch, 2)
        watch.add(calviz.profile(table))
    assert [units for units in watch.looks[0].units if units] == [80]


def test_more_classes_and_confidences_are_watched_by_the_predicted_class():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (2_000, 3))
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    flat = np.exp(logits / 3) / np.exp(logits / 3).sum(1, keepdims=True)
    labels = (flat.cumsum(1) > rng.random((2_000, 1))).argmax(1)
    state = Watch().add(calviz.Predictions(probs=probs, labels=labels))
    assert state.alarm
    assert state.gap.high < 0
    confident = calviz.ConfidencePredictions(
        confidence=probs.max(1), correct=probs.argmax(1) == labels
    )
    assert Watch().add(confident).e_value == pytest.approx(state.e_value)


def test_scores_of_0_and_1_and_a_single_row_can_be_watched():
    data = calviz.Predictions(probs=np.array([0.0, 1.0, 0.0, 1.0]), labels=np.array([0, 1, 1, 0]))
    state = Watch().add(data)
    assert math.isfinite(state.e_value)
    assert Watch().add(data.take(np.array([0]))).rows == 1
    assert json.dumps(state.to_dict())


def test_what_cannot_be_watched_is_one_sentence():
    rng = np.random.default_rng(0)
    with pytest.raises(OptionError, match="'alpha' must lie between 0 and 1"):
        Watch(alpha=1.0)
    with pytest.raises(NotAvailable, match="nothing has been looked at"):
        Watch().state  # noqa: B018
    watch = Watch()
    watch.add(rows(rng, 50))
    other = calviz.Predictions(
        probs=np.full((4, 2), 0.5), labels=np.array([0, 1, 0, 1]), class_names=("no", "yes")
    )
    with pytest.raises(InputError, match="another model"):
        watch.add(other)
    with pytest.raises(InputError, match="of rows with no weights, these have weights; give"):
        watch.add(rows(rng, 10, weights=np.arange(1.0, 11.0)))
    assert len(watch.looks) == 1
    weighted = Watch()
    weighted.add(rows(rng, 10, weights=np.arange(1.0, 11.0)))
    for unweighted in (rows(rng, 50), _profile(rows(rng, 50))):
        with pytest.raises(InputError, match="of rows with weights, these have no weights"):
            weighted.add(unweighted)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: {},
        lambda r: [r],
        lambda r: r | {"calviz_watch": 2},
        lambda r: {k: v for k, v in r.items() if k != "edges"},
        lambda r: r | {"alpha": 7},
        lambda r: r | {"looks": [r["looks"][0] | {"bets": [0.0]}]},
        lambda r: r | {"looks": [r["looks"][0] | {"hits": ["x"] * 5}]},
        lambda r: r | {"looks": [r["looks"][0] | {"score": [math.nan] * 5}]},
    ],
)
def test_a_state_that_is_none_is_refused(change, tmp_path):
    watch = Watch()
    watch.add(rows(np.random.default_rng(0), 50))
    path = tmp_path / "state.json"
    path.write_text(json.dumps(change(watch.to_dict())))
    with pytest.raises(InputError, match=r"state.json.*state of calviz watch"):
        Watch.load(path)


def test_the_e_value_is_drawn_against_its_limit():
    watch, rng = Watch(), np.random.default_rng(0)
    for t in range(8):
        state = watch.add(rows(rng, 100, shift=0.5), f"<b>{t}</b>")
    figure = WatchLine.compute(state, name="m")
    assert figure.frame()["e_value"].tolist() == [value for _, value in state.path]
    limit, curve = figure.plot().data
    assert set(limit.y) == {20.0}
    assert list(curve.y) == pytest.approx([value for _, value in state.path])
    assert "<b>" not in str(curve.customdata)
    # Not from the start with certainty: of the first of eight looks alone, nothing is told.
    assert "Not calibrated, by" in figure.describe()


# ---- A change of scores that may be off before it


def cases(*words):
    return [
        s
        for s in every_simulation()
        if s.claim == "change-of-calibration" and all(w in s.key for w in words)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("before", ["x 1.15, then x 1.6", "x 1.4, then / 1.4", "0.15 logits up"])
def test_a_change_is_found_although_the_scores_are_off_before(before):
    (one,) = cases("found", before, "10,000 rows")
    assert one.keeps_to(6, at_least=too_few(0.98, 6))


@pytest.mark.slow
@pytest.mark.parametrize("alike", cases("alike all the time"), ids=lambda one: one.case)
def test_scores_that_are_off_alike_all_the_time_hardly_ever_change(alike):
    assert alike.keeps_to(16, at_most=too_many(0.05, 16))


def two_parts(n=6_000, seed=0):
    return year(np.random.default_rng(seed), n, slopes=(1.3, 2.0), at=200)


@pytest.mark.slow
def test_the_change_is_where_two_maps_explain_the_labels_best():
    score, hit, day = two_parts()
    change = looked_at(score, hit, day).change
    z = logit(score)

    def least_loss(rows):
        def loss(ab):
            s = ab[0] + ab[1] * z[rows]
            return np.logaddexp(0, s).sum() - s[hit[rows] == 1].sum()

        return minimize(loss, [0.0, 0.7]).fun

    losses = {at: least_loss(day < at) + least_loss(day >= at) for at in range(160, 241, 2)}
    best = min(losses, key=losses.get)
    assert abs((np.datetime64(change.since) - START).astype(int) - best) <= 4
    assert change.between[0] <= str(START + 200) <= change.between[1]
    late = day >= (np.datetime64(change.since) - START).astype(int)
    for rows, (gap, low, high) in ((~late, change.before), (late, change.after)):
        p, label = score[rows], hit[rows]
        assert gap == pytest.approx((np.maximum(p, 1 - p) - ((p > 0.5) == label)).mean())
        assert low < gap < high
    assert change.name == "mean confidence minus accuracy"


@pytest.mark.slow
def test_weights_clusters_and_cells_change_as_their_rows():
    score, hit, day = two_parts()
    change = looked_at(score, hit, day).change
    assert looked_at(score, hit, day, weights=np.full(day.size, 3.0)).change[:6] == change[:6]
    three = [np.repeat(column, 3) for column in (score, hit, day)]
    copies = looked_at(*three, clusters=np.repeat(np.arange(day.size), 3)).change
    # The spline is less smooth, as there are more rows; the variance is the same, on which the confidence set depends.
    ends, own = (np.array(one.between, "datetime64[D]").astype(int) for one in (copies, change))
    assert np.abs(ends - own).max() <= 3
    # Copies without a name are seen to be alike: days count.
    assert looked_at(*three).change.between[0] <= change.between[0]
    times = START + day.astype("timedelta64[D]")
    cells = _profile(calviz.Predictions(probs=score, labels=hit, times=times))
    assert watching.watched(Sample.of(cells)).change.since == change.since


def test_a_change_is_found_of_clusters_that_extend_over_days():
    score, hit, day = two_parts()
    alone = looked_at(score, hit, day).change
    # Rows without dependence, and 500 people with twelve rows each over the year: about the same day.
    spread = looked_at(score, hit, day, clusters=np.arange(day.size) % 500).change
    assert spread.between[0] <= alone.since <= spread.between[1]
    # Where all rows of a part of the year are of one person, a change of all is not told from what this one does.
    assert looked_at(score, hit, day, clusters=day // 100).change is None


def test_draws_of_clusters_vary_as_their_sums():
    rng = np.random.default_rng(0)
    cluster, look = rng.integers(0, 40, 600), rng.integers(0, 5, 600)
    columns = rng.normal(size=(2, 600))
    drawn = watching._by_cluster(cluster, look, columns, rng)
    sums = np.zeros((5, 2, 40))
    np.add.at(sums, (look, slice(None), cluster), columns.T)
    # The cluster-robust covariance of the sums of any two looks (Liang & Zeger 1986).
    expected = np.einsum("tac,ubc->taub", sums, sums)
    found = np.einsum("tad,ubd->taub", drawn, drawn) / watching.DRAWS
    sd = np.sqrt(np.einsum("tata->ta", expected))
    error = (found - expected) / np.einsum("ta,ub->taub", sd, sd)
    assert np.abs(error).max() < 5 / np.sqrt(watching.DRAWS)


@pytest.mark.slow
@pytest.mark.parametrize("close", [False, True])
def test_patients_who_come_back_make_no_change(close):
    found = [
        of_patients(np.random.default_rng([4, i]), close=close).change is not None
        for i in range(30)
    ]
    assert np.mean(found) <= too_many(0.05, 30)


def test_where_a_change_cannot_be_told_nothing_is_said_of_one():
    score, hit, day = two_parts()
    assert looked_at(score, hit, np.zeros_like(day)).change is None
    assert looked_at(np.full(200, 0.5), np.ones(200, dtype=int), np.arange(200) // 2).change is None
    few = looked_at(np.full(18, 0.99), np.arange(18) % 2, np.arange(18) // 9)
    assert few.alarm
    assert few.change is None
    # Scores that are all alike have no slope.
    alike = looked_at(np.full(2_000, 0.5), (np.arange(2_000) % 10 < 3 + 4 * (np.arange(2_000) // 1_000)).astype(int), np.arange(2_000) // 20)  # fmt: skip
    assert alike.change.since == str(START + 50)


# ---- Beside other monitors, as recorded


@pytest.mark.slow
def test_shifts_are_found_about_as_soon_as_by_other_monitors():
    """From the first look on within half a look of the fastest; from look 60 on sooner than by any."""
    record = json.loads(monitors.RECORDED.read_text())
    for case in list(monitors.STREAMS)[:4]:
        since, looks = monitors.STREAMS[case][:2]

        def delays(alarms, since=since, looks=looks):
            return np.array([(t or looks) - since for t in alarms if t is None or t > since])

        ours = delays([monitors.calviz(*monitors.stream(case, k)) for k in range(60)])
        for peer in ("probcal", "confseq", "glide"):
            theirs = delays(record[peer]["values"][case][:60])
            if since:
                assert ours.mean() + 2 < theirs.mean(), (case, peer)
            else:
                assert ours.mean() < theirs.mean() + 0.5, (case, peer)


# ---- The command


def assert_one_sentence(done, *words):
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def _file(path, rng, shift=0.0, days=(1,)):
    lines = ["day,label,p_no,p_yes"]
    for day in days:
        z = rng.normal(0, 1.5, 300)
        for p, hit in zip(expit(z), rng.random(300) < expit(z + shift), strict=True):
            lines.append(f"2024-01-{day:02d},{'yes' if hit else 'no'},{1 - p:.8f},{p:.8f}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_continues_its_state_and_alarms(tmp_path):
    rng = np.random.default_rng(0)
    state = tmp_path / "watch.json"
    first = _file(tmp_path / "1.csv", rng, days=(1, 2, 3))
    done = run("watch", first, "--state", state, "--time", "day", "--json", "-")
    assert done.exit_code == 0
    record = json.loads(done.stdout)
    assert record == record | {
        "schema": 1, "alarm": False, "limit": 20.0, "looks": 3, "rows": 900, "since": None, "remedy": None,
    }  # fmt: skip
    keys = {*"schema alarm e_value limit looks rows since remedy".split()}
    assert set(record) - {"calviz", "command", "file"} == keys
    done = run("watch", first, "--state", state, "--time", "day")
    assert done.exit_code == 0
    assert "No alarm in 3 looks" in done.stdout
    assert "3 looks had been counted before" in done.stdout
    second = _file(tmp_path / "2.csv", rng, shift=0.9, days=(4, 5))
    done = run("watch", second, "--state", state, "--time", "day", "--json", "-")
    assert done.exit_code == 1
    record = json.loads(done.stdout)
    assert record["alarm"]
    assert record["since"] == "2024-01-04"
    assert record["remedy"] == "offset"
    done = run("watch", second, "--state", state, "--time", "day")
    assert done.exit_code == 1
    assert "since about 2024-01-04: an offset of" in done.stdout


def test_the_command_watches_a_profile(tmp_path):
    file = _file(tmp_path / "1.csv", np.random.default_rng(0), days=(1, 2, 3))
    assert run("profile", file, "--out", tmp_path / "1.parquet", "--time", "day").exit_code == 0
    looks = []
    for path in (file, tmp_path / "1.parquet"):
        done = run("watch", path, "--state", tmp_path / f"{path.suffix[1:]}.json", "--json", "-")
        assert done.exit_code == 0, done.stderr
        looks.append(json.loads(done.stdout))
    assert looks[0]["looks"] == looks[1]["looks"] == 3
    assert looks[0]["rows"] == looks[1]["rows"] == 900
    assert looks[1]["e_value"] == pytest.approx(looks[0]["e_value"], rel=0.05)


def test_faults_of_the_command_leave_the_state_as_it_is(tmp_path):
    rng = np.random.default_rng(0)
    state = tmp_path / "watch.json"
    file = _file(tmp_path / "1.csv", rng)
    assert run("watch", file, "--state", state).exit_code == 0
    before = state.read_bytes()
    other = tmp_path / "other.csv"
    other.write_text("label,p_cat,p_dog\ncat,0.7,0.3\ndog,0.4,0.6\ndog,0.2,0.8\n")
    assert_one_sentence(run("watch", other, "--state", state), "another model", "other.csv")
    assert_one_sentence(run("watch", file, "--state", state, "--alpha", "0.01"), "begun with 0.05")
    assert_one_sentence(run("watch", file, "--state", state, "--reduction", "top-label"), "begun")
    assert_one_sentence(
        run("watch", file, "--state", tmp_path / "new.json", "--alpha", "2"), "between 0 and 1"
    )
    assert_one_sentence(run("watch", tmp_path / "none.csv", "--state", state), "none.csv")
    assert_one_sentence(run("watch", file, "--state", file), "not a state")
    assert state.read_bytes() == before


@pytest.mark.slow
def test_what_is_expected_after_a_change_rests_on_the_rows_since(tmp_path):
    rng = np.random.default_rng(1)
    parts = [
        _file(tmp_path / f"{shift}.csv", rng, shift=shift, days=days).read_text().splitlines()
        for shift, days in ((0.0, (1, 2, 3)), (1.2, (4, 5, 6)), (1.3, (7,)))
    ]
    unlabelled = [f"2024-01-07,,{line.split(',', 2)[2]}" for line in parts[2][1:]]
    file = tmp_path / "days.csv"
    for since, lines in ((4, parts[0] + parts[1][1:]), (None, parts[1])):
        file.write_text("\n".join([*lines, *unlabelled]) + "\n")
        done = run("over-time", file, "--method", "none", "--repair", "drop-missing")
        said = " ".join(done.stdout.split())
        assert ("No longer calibrated" if since else "Not calibrated from the start") in said
        assert ("is estimated from the rows with labels since" in said) == (since is not None)
        if since:
            assert f"estimated from the rows with labels since 2024-01-0{since}" in said


@pytest.mark.slow
def test_over_time_and_the_report_say_what_the_watch_says(tmp_path):
    file = _file(tmp_path / "days.csv", np.random.default_rng(1), shift=0.8, days=range(1, 7))
    data = calviz.load(file)
    sentence = Watch().add(data).sentence()
    assert "Not calibrated from the start" in sentence
    done = run("over-time", file, "--method", "none")
    assert sentence in " ".join(done.stdout.split())
    page = tmp_path / "report.md"
    assert run("audit", file, "--markdown", page, "--sections", "over-time").exit_code == 0
    assert sentence[:40] in page.read_text()
    without_times = calviz.Predictions(probs=data.probs, labels=data.labels)
    assert watching.watched(Sample.of(without_times)) is None


@pytest.mark.slow
def test_a_watch_without_a_change_names_the_slice_that_alone_is_off():
    rng = np.random.default_rng(0)
    score, hit, day = year(rng, 8_000)
    site = rng.integers(0, 5, 8_000)
    hit = np.where(site == 3, rng.random(8_000) < expit(logit(score) - 1.2), hit)
    for off, only in ((site, "site = 3"), (rng.permutation(site), "")):
        state = looked_at(score, hit, day, groups={"site": off})
        assert state.alarm
        assert state.change is None
        assert state.only == only
        said = "Not calibrated from the start, 2024-01-01: off where site = 3; nothing is found elsewhere"
        assert (state.headline == said) == (said in state.sentence()) == bool(only)
        # By when all rows are off is not said of the slice.
        late = replace(state, latest="2024-06-01").headline
        assert (late == said.replace(" from the start, 2024-01-01", "")) == bool(only)


@pytest.mark.slow
def test_a_change_is_said_with_one_wording_and_maps_are_fitted_on_the_rows_since(tmp_path):
    rng = np.random.default_rng(1)
    score, hit, day = year(rng, 8_000, slopes=(1.4, 1 / 1.4))
    times = START + day.astype("timedelta64[D]")
    data = calviz.Predictions(probs=score, labels=hit, times=times)
    result = calviz.over_time(data, "nll")
    change = result.watch.change
    # Both sides are off, by slopes that a mean gap does not show.
    assert result.watch.headline == f"Changed about {change.since}; off in places before and since"
    assert (
        f"and changed about {change.since} (with 95 % confidence it changed"
        in result.watch.sentence()
    )
    quiet = change._replace(sides=(("not told apart from calibrated", ""),) * 2)
    watch = replace(result.watch, change=quiet)
    said = f"Perhaps changed about {change.since}"
    assert watch.headline == f"{said}; not told apart from calibrated before and since"
    assert watch.sentence().startswith(said)
    # A day that is known within months only is no day in the headline.
    looks = [look for look, _ in result.watch.path]
    # What was off before was not calibrated until then, whenever that was first seen.
    late = replace(result.watch, since=looks[-1]).sentence()
    assert late.startswith("Not calibrated")
    assert "and changed about" in late
    first, last = wide = looks[len(looks) // 4], looks[-2]
    for sides, said in (
        (change.sides, f"Changed between {first} and {last}; off in places before and since"),
        (
            (("too high", "1.0 points"), ("off in places", "")),
            f"Since a day between {first} and {last} too high",
        ),
        (
            (("not told apart from calibrated", ""), ("too high", "1.0 points")),
            f"Until a day between {first} and {last} too high by 1.0 points; since then, not ",
        ),
    ):
        undated = replace(result.watch, change=change._replace(sides=sides, between=wide))
        assert undated.headline.startswith(said)
    ever = "(Scores that stay calibrated ever raise an alarm with probability 5 % at most; an error that stays the same is taken for a change"
    assert ever in result.watch.sentence().replace("\u00a0", " ")
    (finding,) = [f for f in calviz.evaluate(data).findings if f.code == "CAL028"]
    assert (finding.message, finding.short) == (result.watch.sentence(), result.watch.headline)
    alike = calviz.Predictions(probs=data.probs, labels=hit, times=times[rng.permutation(8_000)])
    assert "CAL028" not in {f.code for f in calviz.evaluate(alike).findings}
    later = data.take(times >= np.datetime64(change.since))
    since = calviz.over_time(later, "nll", every="month")
    assert (result.anew.before.value, result.anew.after.value) == pytest.approx(
        (since.before.value, since.after.value)
    )
    # Before and after, the maps of all rows until then cancel.
    assert result.difference.verdict != "better"
    assert result.anew.difference.verdict == "better"
    line = OverTimeLine.compute(result)
    band, mark = line.plot().layout.shapes
    assert band.x0 <= mark.x0 <= band.x1
    assert change.since.startswith(result.periods[round(mark.x0)].name)
    assert not OverTimeLine.compute(replace(result, watch=None)).plot().layout.shapes
    past = line.past()
    assert f"Fitted on the rows since {change.since} only, it would have made the NLL" in past
    file, page, record = (tmp_path / name for name in ("days.csv", "report.md", "out.json"))
    rows = "\n".join(f"{t},{h},{p:.17g}" for t, h, p in zip(times, hit, score, strict=True))
    file.write_text(f"day,label,probability\n{rows}\n")
    done = run("over-time", file, "--metric", "nll", "--json", record)
    said = " ".join(done.stdout.split())
    assert result.watch.sentence() in said
    assert past in said
    assert json.loads(record.read_text())["change"]["since"] == change.since
    assert run("audit", file, "--markdown", page, "--sections", "over-time").exit_code == 0
    for words in (f"changed about {change.since}", f"on the rows since {change.since} only"):
        assert words in page.read_text().replace("\\", "")


@pytest.mark.slow
def test_title_sentence_and_finding_name_a_change_and_which_side_is_off():
    score, hit, day = year(np.random.default_rng(2), 8_000, shifts=(0.0, 0.5))
    times = START + day.astype("timedelta64[D]")
    data = calviz.Predictions(probs=score, labels=hit, times=times)
    found = calviz.evaluate(data, ["mcs"], findings=True)
    verdict, (finding,) = found.verdict, [f for f in found.findings if f.code == "CAL028"]
    day = watching.watched(Sample.of(data)).change.since
    assert (
        verdict.headline
        == finding.short
        == (
            f"Since about {day} forecast too high by 9.0 points; before, not told apart from calibrated"
        )
    )
    assert verdict.sentence.startswith(f"{verdict.headline}. With 95 % confidence it changed ")
    assert calviz.explain(data)[2] == f"{verdict.headline}."
    assert "after the change" in calviz.explain(data)[4]
    assert no_fix_words(verdict) == NOT_SINCE
    result = calviz.compare(data, ["temperature"], metrics=["brier"], resamples=100)
    assert result.advice.caveat == result.advice.reasons[0] == f"{verdict.headline}. {NOT_SINCE}"
    # The command that fits a map says it too, but for the fitting rows, where these are given.
    assert change_words(data) == result.advice.caveat
    # A change is looked for in the rows whose verdict is shown, of which maps are fitted on others.
    splits = np.where(times < np.datetime64(day), "calibration", "test")
    late = calviz.compare(replace(data, splits=splits), ["temperature"], resamples=100)
    assert change_words(replace(data, splits=splits), split="test") == ""
    assert (late.advice.caveat, calviz.verdict(data.take(splits == "test")).changed) == ("", "")
    # One half by itself has not changed, and what is calibrated is said to be.
    early = calviz.verdict(data.take(np.flatnonzero(times < np.datetime64(day))))
    assert (early.changed, early.direction) == ("", "calibrated")


def test_the_chance_of_an_alarm_depends_on_clusters_that_come_back():
    rng = np.random.default_rng(0)
    times = START + np.repeat(np.arange(2), 100)
    of_one_day, of_both = np.arange(200) // 2, np.arange(200) % 100
    for cluster, again, returning in (
        (of_one_day, False, False),
        (of_both, False, True),
        (of_one_day, True, True),
        (None, True, False),
    ):
        columns = {} if cluster is None else {"clusters": cluster}
        watch = Watch()
        state = watch.add(rows(rng, times=times, **columns))
        if again:
            state = watch.add(rows(rng, times=times + 2, **columns))
        assert bool(state.condition) == returning
        said = replace(state, alarm=True, since="2024-01-01", remedy="map", offset=0.1).sentence()
        condition = "5 % at most, if rows of one cluster in several looks are independent"
        assert (condition in said.replace("\u00a0", " ")) == returning


def test_the_size_of_a_change_is_said_in_points_or_as_a_factor():
    watch, rng = Watch(), np.random.default_rng(0)
    state = [watch.add(rows(rng), f"2024-03-{k:02}") for k in (1, 2, 3)][-1]
    sides = {
        (("forecast too low", "1.8 times"), ("off in places", "")): (
            "Since about 2024-03-01 forecast 1.8 times too low; before, off in places"
        ),
        (("overconfident", "6.8 points"), ("overconfident", "1.7 points")): (
            "Changed about 2024-03-01; overconfident by 1.7 points before, 6.8 points since"
        ),
        (("overconfident", "3.7 points"), ("perhaps overconfident", "1.2 points")): (
            "Since about 2024-03-01 overconfident by 3.7 points; before, perhaps overconfident by 1.2 points"
        ),
        (("forecast too high", "2.3 times"), ("forecast too high", "1.6 times")): (
            "Changed about 2024-03-01; forecast 1.6 times too high before, 2.3 times since"
        ),
    }
    none = (0.0, 0.0, 0.0)
    for each, said in sides.items():
        change = watching.Change(
            "2024-03-01", ("2024-03-01",) * 2, 0.01, "", none, none, state, each
        )
        assert replace(state, alarm=True, change=change).headline == said
    offset = replace(state, alarm=True, since=state.path[1][0], remedy="offset", offset=0.7)
    assert offset.headline.endswith(": an offset of +0.70 to the logits explains it on average")


@pytest.mark.slow
def test_monthly_dates_are_shown_as_months():
    score, hit, day = year(np.random.default_rng(2), 8_000, shifts=(0.0, 0.5))
    times = (START + day.astype("timedelta64[D]")).astype("datetime64[M]").astype("datetime64[D]")
    data = calviz.Predictions(probs=score, labels=hit, times=times)
    result = calviz.over_time(data, "mcs", method="prior")
    assert [p.name for p in result.periods] == [f"2024-{month:02}" for month in range(1, 13)]
    assert calviz.over_time(data, every="equal counts", parts=3, method=None).periods[0].name == (
        "2024-01 to 2024-04"
    )
    assert result.watch.change.since == "2024-07-01"  # what programs read stays a day
    said = "Since about July 2024 forecast too high by 9.1 points; before, not told apart from calibrated"
    assert calviz.verdict(data).headline == said
    assert "since about July 2024 (with 95 % confidence it changed in July 2024)" in (
        result.watch.sentence().replace("\u00a0", " ")
    )
    figure = OverTimeLine.compute(result)
    # A period lies at its first day, as does a change on that day; by quarters, May is a third of the way to July.
    change, quarters = (
        result.watch.change,
        calviz.over_time(data, "mcs", every="quarter", method=None),
    )
    found = change._replace(since="2024-07-01", between=("2024-05-01", "2024-12-31"))
    for one, ends in ((result, [4, 11.96]), (quarters, [1.33, 3.98])):
        moved = replace(one, watch=replace(one.watch, change=found, within=None))
        band, line = OverTimeLine.compute(moved).plot().layout.shapes
        names = [p.name.replace("-07", "-Q3") for p in one.periods]
        assert line.x0 == names.index("2024-Q3")
        assert [band.x0, band.x1] == pytest.approx(ends, abs=0.05)
    assert "Fitted on the rows since July 2024 only" in figure.past()
    assert "January 2024" in WatchLine.compute(result.watch).plot().layout.xaxis.ticktext


@pytest.mark.slow
def test_what_the_past_gives_says_that_no_map_of_all_rows_repairs_one_slice():
    rng = np.random.default_rng(0)
    score, hit, day = year(rng, 8_000)
    site = rng.integers(0, 5, 8_000)
    hit = np.where(site == 3, rng.random(8_000) < expit(logit(score) - 1.2), hit)
    times = START + day.astype("timedelta64[D]")
    data = calviz.Predictions(probs=score, labels=hit, times=times, groups={"site": site})
    said = "To repair site = 3 alone takes a map of its own."
    assert calviz.verdict(data).alone == said
    for method, lead in (
        ("platt", f"{said} All rows together: Platt scaling, "),
        ("segments", "Group-wise calibration, "),
    ):
        past = OverTimeLine.compute(calviz.over_time(data, "mcs", method=method)).past()
        assert past.startswith(f"{lead}fitted before each period")


def test_where_the_mean_cancels_over_time_it_is_not_calibrated():
    score, hit, day = year(np.random.default_rng(5), 8_000, shifts=(-0.4, 0.4))
    times = START + day.astype("timedelta64[D]")
    verdict = calviz.verdict(calviz.Predictions(probs=score, labels=hit, times=times))
    assert re.fullmatch(
        r"Since about 2024-0[67]-\d\d forecast too high by \d\.\d points; before, forecast too low by \d\.\d points",
        verdict.headline,
    )
    assert verdict.direction not in ("calibrated", "undecided")


def test_the_likelihood_of_a_line_is_the_largest():
    rng = np.random.default_rng(2)
    logits, n = np.linspace(-5, 1, 12), rng.integers(1, 400, (3, 12)).astype(float)
    hits = rng.binomial(n.astype(int), expit(0.7 * logits - 0.5)).astype(float)

    def lost(line, n, hits):
        eta = line[0] + line[1] * logits
        return -(hits * np.log(expit(eta)) + (n - hits) * np.log(expit(-eta))).sum()

    largest = [-minimize(lost, [0, 1], args=each).fun for each in zip(n, hits, strict=True)]
    basis = np.stack([np.ones_like(logits), logits])
    np.testing.assert_allclose(fit_of_lines(basis, n, hits)[0], largest, rtol=1e-6)


def test_the_confidence_set_holds_the_day_of_rare_events():
    """Score statistics of large changes are skewed where hits are rare: by them, 77 % of the sets held the day of such a change."""
    held = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 5])
        day = np.sort(rng.integers(0, 425, 5_400))
        true = rng.normal(-4.4, 1.15, day.size)
        hit = rng.random(day.size) < expit(true)
        score = expit(true + 1.5 * (day >= 380))
        data = calviz.Predictions(
            probs=np.column_stack([1 - score, score]), labels=hit.astype(int), times=START + day
        )
        found = watching._day_of_change(Sample.of(data, reduction="positive", seed=seed), None)
        if found is not None:
            first, last = found[1]
            held.append(first <= str(START + 380) <= last)
    assert len(held) > 30
    assert np.mean(held) > 0.9


# ---- A change in one slice


def posts(seed=1, **how):
    return Sample.of(moderation(np.random.default_rng(seed)).data, **how)


def test_a_change_in_one_slice_is_the_verdict():
    sample = posts()
    state = watching.watched(sample)
    assert state.within.where == (("language", "tr"),)
    assert state.within.elsewhere is None
    first, last = state.within.change.between
    assert first <= str(START + 92) <= last
    verdict = judged(sample)
    assert re.fullmatch(
        r"Since about \d{4}-\d\d-\d\d language = tr: [5-8]\.\d points too high; others: too high by 0\.6 points",
        verdict.headline,
    )
    assert len(verdict.headline.split()) <= 16
    changed = f"; with 95 % confidence it changed between {first} and {last}"
    low, high = (100 * end for end in state.within.ends)
    assert 0 < low < 100 * state.within.gap < high
    ends = f"95 % CI {low:.1f} to {high:.1f} points on new rows"
    here = f"{ends}; {100 * state.within.seen:.1f} on these {state.within.rows:,} rows{changed}"
    said = f"{verdict.headline}. {here}. All rows together: "
    assert verdict.sentence.startswith(said)
    low_there = state.within._replace(gap=-0.02, seen=-0.03).when(str)
    assert "; 3.0 on these" in low_there
    assert (verdict.changed_where, verdict.changed_days) == (
        state.found.where,
        (state.found.since, ""),
    )
    # The diagram draws these rows since then.
    sums = Reliability.compute(sample).sums
    (drawn,) = ReliabilityOverlay.of_headline(sample, sums, verdict)
    late = sample.data.times >= np.datetime64(verdict.changed_days[0])
    inside = (late & sample.data.groups["language"].mask("tr")).sum()
    assert 0.9 * inside < drawn.count.sum() <= inside
    assert state.headline == verdict.headline
    assert state.sentence().startswith(f"{verdict.headline} ({here}")
    promise = HundredSquares.compute(verdict, sample).panels[1]
    assert promise.title == "Since then: language = tr"
    assert promise.mean_score - promise.observed == pytest.approx(state.within.seen)
    assert changed in state.sentence()
    (finding,) = CHECKS["CAL028"].findings(sample)
    assert finding.short == verdict.headline
    *_, where, example, to_do = explained(sample, verdict)
    assert where == f"{verdict.headline}."
    assert "new rows of that group" in example
    assert "with rows of that group from after the change" in to_do
    assert label_errors_found(sample) is None  # the labels are drawn from the true probabilities


def test_a_map_for_the_slice_since_its_change_is_advised_and_answers_the_change():
    sample = posts()
    found = watching.watched(sample).found
    made = calviz.compare(sample.data, ["temperature"], metrics=["nll", "ece"], resamples=100)
    advice = made.advice
    since = f"{sample.data.time_name} since {found.since}"
    assert advice.headline == f"Advice: Map for language = tr, {since}, other rows as they are"
    assert advice.caveat == ""
    assert made.alone == f"To repair language = tr, {since} alone takes a map of its own."
    assert advised(made, advice, judged(sample), "ece")[0] == f"{advice.headline}."
    before, after = (made[key].calibrated for key in ("identity", advice.method))
    late = before.times >= np.datetime64(found.since)
    changed = (before.probs != after.probs).any(axis=1)
    np.testing.assert_array_equal(changed, late & before.groups["language"].mask("tr"))


def test_a_fault_of_a_slice_that_ended_is_said_with_its_days_and_gets_no_map():
    sample = of_sites(np.random.default_rng(0), n=15_000, one={"shifts": (0.8, 0.0)})
    verdict, data = judged(sample), sample.data
    assert re.fullmatch(
        r"Until about 2024-0[67]-\d\d site 0 = 3: 1\d\.\d points too high, not found since; other rows: no change found",
        verdict.headline,
    )
    since, until = verdict.changed_days
    assert since == ""
    rows = rows_where(data, on_days(data, verdict.changed_days, verdict.changed_where))
    np.testing.assert_array_equal(
        rows, (data.times < np.datetime64(until)) & data.groups["site 0"].mask("3")
    )
    np.testing.assert_array_equal(unchanged_rows(sample).data.times, data.times[~rows])
    assert no_fix_words(verdict) == ENDED
    assert "Nothing is left to correct" in [*explained(sample, verdict)][-1]
    made = calviz.compare(data, ["temperature"], metrics=["nll", "ece"], resamples=100)
    assert made.advice.method == "identity"
    assert made.advice.caveat == f"{verdict.headline}. {ENDED}"
    assert not any(m.is_of_slice for m in made)


def test_what_is_off_on_some_days_only_is_said_with_both_ends():
    score, hit, day = year(np.random.default_rng(3), 10_000, shifts=(0.0, 0.6), at=150, until=240)
    data = calviz.Predictions(probs=score, labels=hit, times=START + day.astype("timedelta64[D]"))
    verdict = judged(Sample.of(data))
    assert re.fullmatch(
        r"From about 2024-05-\d\d to 2024-0[89]-\d\d forecast too high by \d+\.\d points; since then, not told apart from calibrated",
        verdict.headline,
    )
    state = watching.watched(Sample.of(data))
    assert state.sentence().startswith(
        f"Not calibrated f{verdict.headline[1:].split(' forecast')[0]}"
    )
    assert f" points before (from about {state.change.began} on), " in state.sentence()
    # Off, calibrated, and off again: what is said is of the days from the first change on.
    score, hit, day = year(np.random.default_rng(3), 10_000, shifts=(0.6, 0.0), at=60, until=300)
    data = calviz.Predictions(probs=score, labels=hit, times=START + day.astype("timedelta64[D]"))
    headline = judged(Sample.of(data)).headline
    assert re.fullmatch(
        r"Since about 2024-\d\d-\d\d forecast too high by \d+\.\d points; before, from about 2024-\d\d-\d\d on, not told apart from calibrated",
        headline,
    )


@pytest.mark.parametrize(
    ("late", "always", "leads"), [(0.3, 0.8, "slice"), (0.15, 0.8, "slice"), (0.8, 0.4, "change")]
)
@pytest.mark.slow
def test_what_surely_holds_more_of_the_error_leads_a_slice_or_a_change(late, always, leads):
    sample = of_sites(
        np.random.default_rng(4),
        n=15_000,
        all_rows={"shifts": (0.0, late)},
        one={"shifts": (always, always + late)},
    )
    state, verdict = watching.watched(sample), judged(sample)
    assert state.found is not None
    assert state.found.where == ()
    assert bool(verdict.changed) == (leads == "change")
    looked = {f.short for f in where_to_look(calviz.evaluate(sample, findings=True))}
    if leads == "slice":
        assert verdict.headline.startswith("Off most where site 0 = 3: about ")
        assert verdict.changed_days == ("", "")
        assert f"All rows together: {state.headline[0].lower()}{state.headline[1:]}" in looked
        plain = explained(sample, verdict)[2]
        assert "site 0 is 3" in plain
        assert f"other rows: {verdict.elsewhere}." in plain
    else:
        assert verdict.headline == state.headline


def test_groups_do_not_deny_a_change_in_one_slice():
    one = {"shifts": (-0.4, 0.4)}  # which cancel over the year
    sample = of_sites(np.random.default_rng(0), n=15_000, one=one, columns=2)
    assert SliceGaps.compute(usual_slices(sample)).answer() == (
        "None of 21 slices differs on average from a calibrated model beyond chance, but site 0 = 3 changed over time."
    )
    assert slices(sample, ["site 1"]).changed == ""
    off = replace(usual_slices(sample), rest="too high by 0.7 points", slices=())
    assert off.headline == "All rows: too high by 0.7 points; site 0 = 3 changed over time"
    off = replace(off, changed="", largest="site 0 = 3")
    assert off.headline.endswith("; largest error beyond noise where site 0 = 3")


def test_no_slice_changes_where_it_is_off_alike_or_all_rows_change():
    rng = np.random.default_rng(5)
    assert by_site(rng, one={"shifts": (1.0, 1.0)}) is None
    assert by_site(rng, all_rows={"shifts": (0.0, 0.8)}) is None
    changed = by_site(rng, n=15_000, one={"shifts": (0.0, 0.8)})
    assert changed.where == (("site 0", "3"),)


def test_changes_in_slices_need_times_and_are_found_with_weights_and_clusters():
    data, rng = posts().data, np.random.default_rng(4)
    assert changed_slices(Sample.of(data))
    assert not changed_slices(Sample.of(replace_columns(data, times=None)))
    (alike, largest, where), *_ = changed_slices(Sample.of(data))
    for columns in (
        {"weights": np.exp(0.5 * rng.normal(size=data.n))},
        {"clusters": np.arange(data.n) // 2},
        {"clusters": rng.integers(0, 3_000, data.n)},
    ):
        (p, level, also), *_ = changed_slices(Sample.of(replace_columns(data, **columns)))
        assert (level, also) == (largest, where)
        assert alike**2 < p < largest
    # The same rows twice, in clusters, say as much as once; few clusters say nothing.
    rows = np.sort(np.tile(np.arange(data.n), 2))
    twice = replace_columns(data.take(rows), clusters=rows)
    assert changed_slices(Sample.of(twice))[0][0] > alike / 10
    few = replace_columns(data, clusters=np.arange(data.n) % 2)
    assert not changed_slices(Sample.of(few))


def test_a_cluster_counts_once_where_it_lies_within_a_day_and_cancels_where_it_lies_on_all():
    rng = np.random.default_rng(8)
    day = np.sort(rng.integers(0, 200, 4_000))
    q = rng.uniform(0.3, 0.7, 4_000)
    level = Factor(rng.integers(0, 2, 4_000).astype(np.int32), ("a", "b"))
    # All rows of a day and a level alike, or none.
    of_day, of_row = rng.choice([-0.5, 0.5], 200)[day], rng.choice([-0.5, 0.5], 4_000)
    residual = np.where(level.codes == 0, of_day, of_row)
    every_day = p_of_changes(residual, q, day, level, None, day)
    assert (every_day > 0.01).all()
    assert p_of_changes(residual, q, day, level)[0] < 1e-3
    own = rng.integers(0, 100, 4_000)
    alike = p_of_changes(rng.choice([-0.5, 0.5], 100)[own], q, day, level, None, own)
    assert (alike > 0.01).all()


def test_a_slice_that_changed_is_not_listed_again_but_what_is_off_beside_it_is():
    sample = posts()
    (_, _, where), *_ = changed_slices(sample)
    found = usual_slices(sample)
    changed = next(s for s in found.slices if s.where == where)
    other = next(s for s in found.slices if len(s.where) == 1 and s.where[0][0] != where[0][0])
    small = {"p_value": 1e-9, "adjusted": 1e-7}
    only = replace(found, slices=(replace(changed, **small),), rest="")
    assert only.also == ""
    assert only.headline.startswith("1 of 1 slice is off beyond chance, most clearly ")
    both = replace(only, slices=(*only.slices, replace(other, **small)))
    assert both.headline == f"Changed over time: {only.changed}"
    assert both.also.startswith(f"{other.name}: about ")
    evaluation = calviz.evaluate(sample, findings=True)
    assert evaluation.verdict.changed_where == where
    dated = SliceGaps.compute(found, evaluation.verdict).result
    assert dated.word(changed) == f"since {evaluation.verdict.changed_days[0]}"
    assert dated.word(other) == found.word(other)
    one = replace(evaluation.verdict, slices_off=1, off_where=where)
    named = [replace(f, code="CAL017") for f in evaluation.findings if f.code == "CAL028"]
    listed = [replace(f, short="off", message="off.") for f in named]
    for verdict, count in ((one, 0), (replace(one, slices_off=2), 1)):
        told = where_to_look(replace(evaluation, verdict=verdict, findings=tuple(listed)))
        assert len(told) == count


def replace_columns(data, **columns):
    kept = {"times": data.times, "groups": {n: f.values() for n, f in data.groups.items()}}
    return calviz.Predictions(probs=data.probs, labels=data.labels, **kept | columns)


def tail_of_two(x2, side):
    """Estrella 2003, eq. 8, for two dimensions."""
    both = np.log(((1 - side) / side) ** 2)
    return x2 / 2 * np.exp(-x2 / 2) * ((1 - 2 / x2) * both + 2 / x2)


def test_the_tail_of_the_largest_change_gives_a_published_critical_value():
    # Andrews 2003, table 1: two parameters, changes from 15 to 85 % of the rows on, at 5 %.
    assert tail_of_two(11.72, 0.15) == pytest.approx(0.05, rel=0.03)


def test_the_wald_statistic_of_a_change_by_hand():
    """One column of two slices: the change of the first is that of two logistic regressions, to first order."""
    rng = np.random.default_rng(2)
    z = rng.normal(0, 1, 20_000)
    codes, day = rng.integers(0, 2, z.size), rng.integers(0, 2, z.size)
    q = expit(z)
    hit = rng.random(z.size) < expit(z + 0.15 * ((codes == 0) & (day == 1)))
    residual, v = hit - q, q * (1 - q)
    centred = z - np.average(z, weights=v)
    x = np.column_stack([np.ones(z.size), centred])

    def step(rows):
        information = (x[rows] * v[rows, None]).T @ x[rows]
        return np.linalg.solve(information, x[rows].T @ residual[rows]), np.linalg.inv(information)

    found = []
    for own in (0, 1):
        (before, c0), (since, c1) = (step((codes == own) & (day == d)) for d in (0, 1))
        more = max((residual[codes == own] ** 2).sum() / v[codes == own].sum(), 1)
        found.append((since - before, more * (c0 + c1)))
    (a, ca), (b, cb) = found
    x2 = min(a @ np.linalg.solve(ca, a), (a - b) @ np.linalg.solve(ca + cb, a - b))
    p = p_of_changes(residual, q, day, Factor(codes, ("a", "b")))
    assert p[0] == pytest.approx(tail_of_two(x2, 0.05), rel=1e-6)


def test_a_slice_that_is_off_does_not_change_where_all_rows_change_alike():
    """A step from probabilities of all rows took the change of a slice that is far off for another one."""
    rng = np.random.default_rng(301)
    day, site = (
        np.sort(rng.integers(0, 120, 15_000)),
        rng.choice(4, 15_000, p=[0.3, 0.25, 0.25, 0.2]),
    )
    z = rng.normal(0, 1.3, 15_000)
    hit = rng.random(z.size) < expit(z - 0.6 * (day >= 60) - 1.5 * (site == 0))
    times, groups = START + day.astype("timedelta64[D]"), {"site": np.array([*"abcd"])[site]}
    data = calviz.Predictions(probs=expit(z), labels=hit, times=times, groups=groups)
    sample = Sample.of(data)
    assert not changed_slices(sample)
    assert not watching.changed_of_those_off(sample, watching.CHANGED)


def test_from_the_start_is_said_only_where_no_later_start_is_as_likely():
    # The bets from the first look on win most, by their share, also where the first third is calibrated.
    score, hit, day = year(np.random.default_rng(3), 900, shifts=(0.0, 1.0), at=122)
    off_all_the_time = year(np.random.default_rng(3), 900, shifts=(1.0, 1.0))
    for rows_of, start in (((score, hit, day), ""), (off_all_the_time, " from the start")):
        score, hit, day = rows_of
        state = Watch().add(
            calviz.Predictions(probs=score, labels=hit, times=START + day.astype("timedelta64[D]"))
        )
        assert state.alarm
        assert state.since == state.path[0][0]
        assert state.sentence().startswith(f"Not calibrated{start}, ")
        assert ("at the latest" in state.sentence()) == (not start)
        assert state.latest >= ("2024-05-02" if not start else state.path[0][0])


def test_what_returns_every_year_is_no_change_and_its_months_are_named():
    state = watching.watched(years(np.random.default_rng(1), 27_000, days=1826, winter=1.9))
    assert (state.change, state.changed) == (None, None)
    assert state.headline.startswith("Not calibrated")
    assert "off where month of time = December to February; nothing is found" in state.sentence()
    assert "No longer" not in state.sentence()


def test_a_change_is_found_beside_what_returns_every_year():
    state = watching.watched(
        years(np.random.default_rng(1), 10_000, days=1096, winter=1.9, shift=0.6)
    )
    assert state.change is not None
    assert state.change.between[0] <= "2019-07-03" <= state.change.between[1]


def test_what_is_off_all_the_time_and_what_changed_are_both_named():
    # One site is off since a day, a value of another column always; all other rows are right.
    one = {"shifts": (0.0, 0.8)}
    sample = of_sites(np.random.default_rng([3, 0]), n=15_000, one=one, columns=2, beside=0.7)
    said = re.fullmatch(
        r"Off in 2 slices, most clearly where site 1 = 0: about (.+) points too high; site 0 = 3 changed over time; "
        r"other rows: no miscalibration found",
        judged(sample).headline,
    )
    # Its scores are 0.7 logits too high; those of the other site are right at first.
    beside = rows_where(sample.data, (("site 1", "0"),)) & ~rows_where(
        sample.data, (("site 0", "3"),)
    )
    score = sample.data.probs[beside, 1]
    true = 100 * (score - expit(logit(score) - 0.7)).mean()
    assert float(said[1]) == pytest.approx(true, abs=2.5)
    headline = watching.watched(sample).headline
    assert re.fullmatch(
        r"Since about 2024-07-\d\d site 0 = 3: 1\d\.\d points too high; others: off where site 1 = 0",
        headline,
    )
    found = usual_slices(sample)
    assert [s.where for s in found.named] == [(("site 1", "0"),), (("site 0", "3"),)]
    assert not found.rest
