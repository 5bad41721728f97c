"""Changes over time: false in files without one, and found where there is one."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from benchmarks.claims import simulation
from calviz.comparison.over_time import OverTime, over_time
from calviz.core.entry_specs import METRICS
from calviz.core.predictions import Predictions
from calviz.data.any_size.profiling import profile

START = np.datetime64("2024-01-01")
RESAMPLES = 20  # of the intervals, which are not judged


def binary(rng, sizes, *, off=(), shift=0.0, slope=1.0, spread=1.5, base=0.0):
    """Draw rows of periods of these sizes, calibrated but for a shift and slope of the logits on the days in `off`."""
    day = np.repeat(np.arange(len(sizes)), sizes)
    e = rng.normal(base, spread, day.size)
    labels = (rng.random(day.size) < expit(e)).astype(int)
    changed = np.isin(day, off)
    return expit(np.where(changed, slope * e + shift, e)), labels, day


def measured(scores, labels, day, metric="nll", **columns) -> OverTime:
    """Measure each day."""
    data = Predictions(
        probs=scores, labels=labels, times=START + day.astype("timedelta64[D]"), **columns
    )
    return over_time(data, metric, every="day", method=None, resamples=RESAMPLES)


def found(result: OverTime, days) -> bool:
    """Whether one of the days is named."""
    return bool({p.name for p in result.changed} & {str(START + int(day)) for day in days})


def unequal(rng):
    """Draw sizes of 40 days from 30 to some thousand rows, most of them small."""
    return np.exp(rng.uniform(np.log(30), np.log(3_000), 40)).astype(int)


# ---- Files that do not change

SAME = {"at_most": 0.05}


def same(measures_case, draw):
    simulation("change-over-time", "said of unchanging files", measures_case, **SAME)(draw)


for metric in ("nll", "brier", "mcs", "ece", "accuracy"):
    name = METRICS[metric].label
    same(
        f"{name}, 40 days of 100 rows",
        lambda rng, metric=metric: bool(measured(*binary(rng, [100] * 40), metric=metric).changed),
    )
for metric in ("nll", "ece"):
    name = METRICS[metric].label
    same(
        f"{name}, 40 days of 30 to 3,000 rows, overconfident",
        lambda rng, metric=metric: bool(
            measured(*binary(rng, unequal(rng), off=range(40), slope=3.0), metric=metric).changed
        ),
    )
same(
    "NLL, 300 days of 50 rows, one row in 50 an event",
    lambda rng: bool(measured(*binary(rng, [50] * 300, base=-4.5, spread=1.0)).changed),
)
same(
    "AUROC, 12 days of 40 rows",
    lambda rng: bool(measured(*binary(rng, [40] * 12), metric="auroc").changed),
)
same("NLL, two days of 40 rows", lambda rng: bool(measured(*binary(rng, [40, 40])).changed))


def clusters(rng, sizes):
    """Draw 30 days of ten clusters each, whose logits are off by a common amount that the model does not see."""
    cluster = np.repeat(np.arange(300), sizes)
    own, e = rng.normal(0, 1, 300)[cluster], rng.normal(0, 1.5, cluster.size)
    labels = (rng.random(cluster.size) < expit(e + own)).astype(int)
    return bool(measured(expit(e), labels, cluster // 10, clusters=cluster).changed)


same(
    "NLL, 30 days of 10 clusters of 1 to 30 rows",
    lambda rng: clusters(rng, rng.integers(1, 31, 300)),
)
same(
    "NLL, 30 days of 10 clusters, of 3 rows or of 30 in turn",
    lambda rng: clusters(rng, np.where(np.arange(300) // 10 % 2, 30, 3)),
)


def weights(rng):
    """Draw heavy weights, which go with the score."""
    scores, labels, day = binary(rng, [100] * 40)
    heavy = np.exp(rng.normal(0, 1, scores.size) + scores)
    return bool(measured(scores, labels, day, weights=heavy).changed)


same("NLL, 40 days of 100 rows, heavy weights", weights)


def weights_of_days(rng):
    """Draw weights that vary much on every other day."""
    scores, labels, day = binary(rng, [100] * 40)
    heavy = np.exp(np.where(day % 2, 1.5, 0.1) * rng.normal(size=scores.size))
    return bool(measured(scores, labels, day, weights=heavy).changed)


same("NLL, 40 days of 100 rows, heavy weights on every other", weights_of_days)


def cells(rng):
    """Draw the profile of rounded scores."""
    import polars as pl

    scores, labels, day = binary(rng, unequal(rng)[:20])
    table = pl.DataFrame(
        {
            "p": scores.round(2),
            "y": labels,
            "day": (START + day.astype("timedelta64[D]")).astype("datetime64[us]"),
        }
    )
    data = profile(table, time="day").predictions()
    return bool(over_time(data, "ece", every="day", method=None, resamples=RESAMPLES).changed)


same("ECE, profile of 20 days of 30 to 3,000 rows", cells)


def classes(rng):
    """Draw ten classes."""
    z = rng.normal(0, 1.5, (4_000, 10))
    probs = softmax(z, axis=1)
    labels = (rng.random((4_000, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return bool(measured(probs, labels, np.repeat(np.arange(40), 100)).changed)


same("NLL, 40 days of 100 rows, 10 classes", classes)


# ---- Files that change


def change(case, draw, **required):
    simulation("change-over-time", "found", case, **required)(draw)


for metric in ("nll", "brier", "mcs", "ece", "accuracy"):
    for spread in (1.0, 1.5, 2.5):
        if spread != 1.5 and metric != "nll":
            continue
        name = METRICS[metric].label

        def one_day(rng, metric=metric, spread=spread):
            shift = rng.choice([-1.0, 1.0])
            rows = binary(rng, [300] * 40, off=[20], shift=shift, spread=spread)
            return found(measured(*rows, metric=metric), [20])

        change(
            f"{name}, one of 40 days of 300 rows off by 1 logit, logits with SD {spread}",
            one_day,
            at_least=0.9,
        )

for days, size in ((40, 100), (90, 45), (90, 333)):

    def far_off(rng, days=days, size=size):
        bad = int(rng.integers(days))
        return found(measured(*binary(rng, [size] * days, off=[bad], shift=3.0)), [bad])

    change(f"NLL, one of {days} days of {size} rows off by 3 logits", far_off, at_least=0.95)


def drift(rng):
    """Shift the scores of the last ten days by 1 logit; these days are named, or the change."""
    result = measured(*binary(rng, [100] * 40, off=range(30, 40), shift=1.0))
    return bool(result.sides) or found(result, range(30, 40))


change("NLL, drift of 1 logit from day 30 of 40, 100 rows a day", drift, at_least=0.9)


def by_month(rng, rows, months, since, metric):
    """Measure months of scores that are 8 points too high since one of them."""
    month = rng.integers(months, size=rows)
    p = 0.05 + 0.82 * rng.beta(1.5, 2, rows)
    labels = (rng.random(rows) < p).astype(int)
    times = (START.astype("M8[M]") + month).astype("M8[D]") + rng.integers(28, size=rows)
    data = Predictions(probs=p + 0.08 * (month >= since), labels=labels, times=times)
    return over_time(data, metric, every="month", method=None, resamples=RESAMPLES)


def called_before(rng, rows, months, metric):
    """Whether a month before a lasting change is named, where the scores are calibrated."""
    since = int(rng.integers(months // 4, 3 * months // 4 + 1))
    result = by_month(rng, rows, months, since, metric)
    return any(p.name < str(START.astype("M8[M]") + since) for p in result.changed)


for metric, rows, months in (("nll", 2_000, 12), ("mcs", 5_000, 18), ("nll", 20_000, 24)):
    name = METRICS[metric].label
    simulation(
        "change-over-time",
        "said of calibrated months before a lasting change",
        f"{name}, {rows:,} rows in {months} months, 8 points too high from one on",
        at_most=0.05,
    )(lambda rng, metric=metric, rows=rows, months=months: called_before(rng, rows, months, metric))
same(
    "NLL, 5,000 rows in 18 months, all 8 points too high",
    lambda rng: bool(by_month(rng, 5_000, 18, 0, "nll").changed),
)


def day_of_clusters(rng):
    """Shift the scores of one day of 30 clusters."""
    sizes = rng.integers(1, 21, 1_200)
    cluster = np.repeat(np.arange(1_200), sizes)
    e = rng.normal(0, 1.5, cluster.size)
    day = cluster // 30
    labels = (rng.random(cluster.size) < expit(e)).astype(int)
    scores = expit(e + (day == 20))
    return found(measured(scores, labels, day, clusters=cluster), [20])


change("NLL, one of 40 days of 30 clusters off by 1 logit", day_of_clusters, at_least=0.9)
change(
    "NLL, one of 300 days of 3,333 rows off by half a logit",
    lambda rng: found(measured(*binary(rng, [3_333] * 300, off=[7], shift=0.5)), [7]),
    at_least=0.9,
)
change(
    "NLL, one of 40 days of 300 rows with logits x 2",
    lambda rng: found(measured(*binary(rng, [300] * 40, off=[20], slope=2.0)), [20]),
)


# ---- Whether other rows or other scores are the reason


def of_rows(rng, **how):
    """Whether it is said that it may be other rows, of files in which periods differ."""
    result = measured(*binary(rng, [300] * 40, **how))
    return result.of_rows if result.changed else None


def harder(rng):
    """Draw calibrated rows, which are nearer to even on one day."""
    scores, labels, day = binary(rng, [300] * 40)
    e = rng.normal(0, 0.3, day.size)
    odd, events = day == 20, rng.random(day.size) < expit(e)
    result = measured(np.where(odd, expit(e), scores), np.where(odd, events, labels), day)
    return result.of_rows if result.changed else None


simulation(
    "change-over-time",
    "said that it may be other rows",
    "one of 40 days of 300 rows off by 1 logit",
    at_most=0.05,
)(lambda rng: of_rows(rng, off=[20], shift=1.0))
simulation(
    "change-over-time",
    "said that it may be other rows",
    "one of 40 days of 300 rows, calibrated and nearer to even",
    at_least=0.9,
)(harder)
