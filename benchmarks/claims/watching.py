"""Watching without end: streams that stay calibrated hardly ever alarm, and changes are found soon after they begin."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri, softmax

from benchmarks.claims import simulation
from benchmarks.claims.slices import CORNER, of_pair
from calviz.core.predictions import Predictions
from calviz.data.any_size.profiling import profile
from calviz.sample.multicalibration import changed_slices
from calviz.sample.sample import Sample
from calviz.sample.slices import usual_slices
from calviz.verdicts import watching
from calviz.verdicts.betting import confidence_sequence
from calviz.verdicts.watching import ALPHA, Watch, WatchState

START = np.datetime64("2024-01-01")


def watched(scores, labels, day, **columns) -> WatchState:
    """Look at each day."""
    times = START + day.astype("timedelta64[D]")
    return Watch().add(Predictions(probs=scores, labels=labels, times=times, **columns))


def binary(rng, sizes, *, since=0, shift=0.0, slope=1.0, base=0.0) -> WatchState:
    """Watch days of these sizes whose true logits are shifted and stretched from one day on."""
    day = np.repeat(np.arange(len(sizes)), sizes)
    z = rng.normal(base, 1.5, day.size)
    true = np.where(day >= since, slope * z + shift, z)
    return watched(expit(z), (rng.random(day.size) < expit(true)).astype(int), day)


def delay(state: WatchState, since: int) -> int | None:
    """Looks from the change to the alarm; None without one, or before the change."""
    over = [k for k, (_, value) in enumerate(state.path) if value >= state.limit]
    return over[0] - since + 1 if over and over[0] >= since else None


# ---- Calibrated streams


def calm(case, draw, files=1_000):
    simulation("watch", "alarms of calibrated scores", case, at_most=0.05, files=files)(
        lambda rng: draw(rng).alarm
    )


calm("1,000 looks of 50 rows", lambda rng: binary(rng, [50] * 1_000))
calm("1,000 looks of 1 to 100 rows", lambda rng: binary(rng, rng.integers(1, 101, 1_000)))
calm("1,000 looks of 50 rows, 2 % events", lambda rng: binary(rng, [50] * 1_000, base=-5))
calm("30 looks of 10,000 rows", lambda rng: binary(rng, [10_000] * 30))


def _classes(rng):
    day = np.repeat(np.arange(300), 50)
    probs = softmax(2 * rng.normal(size=(day.size, 10)), axis=1)
    labels = (probs.cumsum(1) > rng.random((day.size, 1))).argmax(1)
    return watched(probs, labels, day)


def _clusters(rng):
    """Five rows of a person have one outcome."""
    day = np.repeat(np.arange(300), 50)
    person = np.arange(day.size) // 5
    score = expit(rng.normal(0, 1.5, person[-1] + 1))
    hit = rng.random(score.size) < score
    return watched(score[person], hit[person].astype(int), day, clusters=person)


def weighted(rng, sizes, shift=0.0) -> WatchState:
    """Weights 1 and 3; only with these weights are the scores calibrated, as heavy rows have fewer hits than their scores say."""
    day = np.repeat(np.arange(len(sizes)), sizes)
    score = expit(rng.normal(0, 1.5, day.size))
    weights = rng.choice([1.0, 3.0], day.size)
    hits = score / (score + (1 - score) * np.exp(-shift))
    chance = hits + hits * (1 - hits) * np.where(weights == 1, 0.9, -0.3)
    return watched(score, (rng.random(day.size) < chance).astype(int), day, weights=weights)


def of_profile(rng, sizes, shift=0.0) -> WatchState:
    """Days of a profile, whose cells hold several scores each."""
    import polars as pl

    day = np.repeat(np.arange(len(sizes)), sizes)
    z = rng.normal(0, 1.5, day.size)
    times = (START + day.astype("timedelta64[D]")).astype("datetime64[us]")
    label = (rng.random(day.size) < expit(z + shift)).astype(int)
    table = pl.DataFrame({"label": label, "p": expit(z), "day": times})
    return Watch().add(profile(table, time="day"))


calm("300 looks of 50 rows, 10 classes", _classes)
calm("300 looks of 50 rows in clusters of 5 with one outcome", _clusters)
calm("1,000 looks of 50 rows, weights 1 and 3", lambda rng: weighted(rng, [50] * 1_000))
calm("50 looks of 4,000 rows, profile", lambda rng: of_profile(rng, [4_000] * 50), files=200)

# ---- Changes

for since in (0, 59):
    for name, how in {
        "0.3 logits up": {"shift": 0.3},
        "0.3 logits down": {"shift": -0.3},
        "logits x 0.6": {"slope": 0.6},
        "logits x 1.4": {"slope": 1.4},
    }.items():
        simulation(
            "watch",
            "found within 20 looks of 200 rows",
            f"{name} from look {since + 1} on",
            at_least=0.95,
            files=1_000,
        )(
            lambda rng, since=since, how=how: (
                delay(binary(rng, [200] * (since + 20), since=since, **how), since) is not None
            )
        )

simulation(
    "watch",
    "found within 20 looks of 200 rows",
    "0.3 logits up from look 1 on, weights 1 and 3",
    at_least=0.95,
    files=1_000,
)(lambda rng: weighted(rng, [200] * 20, 0.3).alarm)

# The day that is named, of the streams above in which there is one to be named.


def _near(rng, how):
    """Whether the alarm names a day at most ten looks from the change."""
    state = binary(rng, [200] * 100, since=60, **how)
    if not state.alarm:
        return None
    return abs(int((np.datetime64(state.since) - START).astype(int)) - 60) <= 10


for name, how in {"0.3 logits": {"shift": 0.3}, "logits x 0.6": {"slope": 0.6}}.items():
    simulation(
        "watch",
        "the day named is within 10 looks",
        f"{name}, 200 rows a look",
        at_least=0.9,
        files=1_000,
    )(lambda rng, how=how: _near(rng, how))


def _gap_missed(rng):
    """Whether the interval of the gap, which is 0, misses it at any of 200 looks."""
    score = expit(rng.normal(0, 1.5, (200, 50)))
    sums = ((rng.random(score.shape) < score) - score).sum(1)
    counts = np.full(200, 50.0)
    gaps = (confidence_sequence(sums[:t], counts[:t], ALPHA) for t in range(1, 201))
    return any(not gap.low <= 0 <= gap.high for gap in gaps)


simulation(
    "watch",
    "the gap is missed at any look",
    "200 looks of 50 rows, calibrated",
    at_most=0.05,
    files=1_000,
)(_gap_missed)

for name, how, remedy, least in (
    ("0.3 logits", {"shift": 0.3}, "offset", 0.9),
    ("1 logit", {"shift": 1.0}, "offset", 0.9),
    ("logits x 0.6", {"slope": 0.6}, "map", 0.9),
):
    simulation(
        "watch", "the remedy is right", f"{name}, 200 rows a look", at_least=least, files=1_000
    )(
        lambda rng, how=how, remedy=remedy: (
            (state := binary(rng, [200] * 80, since=60, **how)).alarm and state.remedy == remedy
        )
    )


# ---- A change, of scores that may be off before it: a year of days


def year(rng, n, *, slopes=(1.0, 1.0), shifts=(0.0, 0.0), at=183, spread=1.5, bend=0.0, **how):
    """Draw a year whose scores are stretched and shifted, otherwise from one day on (or `at` = 0: more and more)."""
    day = np.sort(rng.integers(366, size=n))
    moved = how.get("moving", 0.0) * (day / 183 - 1)
    true = rng.normal(how.get("base", 0.0) + moved, spread, n)
    late = (day >= at) & (day < how.get("until", 366)) if at else day / 366
    slope, shift = (a + (b - a) * late for a, b in (slopes, shifts))
    hit = how.get("u", rng.random(n)) < expit(true)
    score = expit(slope * true + shift + bend * np.sin(2 * true))
    return score, hit.astype(int), day


def looked_at(score, hit, day, **columns) -> WatchState:
    """Watch the days, all of whose rows are at hand."""
    times = START + day.astype("timedelta64[D]")
    state = watching.watched(
        Sample.of(Predictions(probs=score, labels=hit, times=times, **columns))
    )
    assert state is not None
    return state


def alike(case, draw, files=500):
    simulation(
        "change-of-calibration",
        "said of scores that are off alike all the time",
        case,
        at_most=0.05,
        files=files,
    )(draw)


def off_alike(n, slope=1.8, **how):
    return lambda rng: looked_at(*year(rng, n, slopes=(slope, slope), **how)).change is not None


alike("calibrated, 10,000 rows", off_alike(10_000, 1.0))
alike("logits x 1.15, 30,000 rows", off_alike(30_000, 1.15))
for rows in (1_000, 4_000, 10_000):
    alike(f"logits x 1.8, {rows:,} rows", off_alike(rows))
alike("1 logit up, 2 % events, 4,000 rows", off_alike(4_000, 1.0, base=-4.5, shifts=(1.0, 1.0)))
alike("logits x 1.8, which rise by 2 over the year, 10,000 rows", off_alike(10_000, moving=1.0))
alike(
    "wavy, logits rise by 2 over the year, 30,000 rows",
    off_alike(30_000, 1.0, moving=1.0, bend=0.4),
)


def _heavy_late(rng):
    """Weights that vary much from the middle on."""
    score, hit, day = year(rng, 4_000, slopes=(1.8, 1.8))
    weights = np.exp(np.where(day >= 183, 1.2, 0.1) * rng.normal(size=day.size))
    return looked_at(score, hit, day, weights=weights).change is not None


def _in_clusters(rng):
    """Five rows of a person have one outcome."""
    score, hit, day = (np.repeat(column, 5) for column in year(rng, 2_000, slopes=(1.8, 1.8)))
    return looked_at(score, hit, day, clusters=np.arange(day.size) // 5).change is not None


def of_patients(rng, *, per=4, close=False, slopes=(1.8, 1.8), shifts=(0.0, 0.0)):
    """10,000 rows of patients, who come back on any day or within three weeks, and whose outcomes go together; each is as likely as its score says, before that is stretched and shifted."""
    n = 10_000
    patient = np.arange(n) // per
    day = rng.integers(366, size=n)
    if close:
        day = np.clip(day[patient * per] + rng.integers(-20, 21, n), 0, 365)
    true = rng.normal(0, 1.5, n)
    together = np.sqrt(0.4) * rng.normal(size=n)[patient] + np.sqrt(0.6) * rng.normal(size=n)
    slope, shift = (a + (b - a) * (day >= 183) for a, b in (slopes, shifts))
    hit = (together < ndtri(expit(true))).astype(int)
    return looked_at(expit(slope * true + shift), hit, day, clusters=patient)


alike("logits x 1.8, weights that vary from the middle on, 4,000 rows", _heavy_late)
for case, how in {
    "2,500 patients": {},
    "2,500 patients who come back soon": {"close": True},
    "500 patients": {"per": 20},
    "1,000 patients who come back soon": {"per": 10, "close": True},
}.items():
    alike(
        f"logits x 1.8, 10,000 rows of {case}",
        lambda rng, how=how: of_patients(rng, **how).change is not None,
    )
for case, how in {
    "later 0.6 up": {"slopes": (1.0, 1.0), "shifts": (0.0, 0.6)},
    "x 1.15, later x 1.6": {"slopes": (1.15, 1.6)},
}.items():
    simulation(
        "change-of-calibration", "found", f"logits {case}, 10,000 rows of 2,500 patients", at_least=0.9
    )(lambda rng, how=how: of_patients(rng, **how).change is not None)  # fmt: skip
alike("logits x 1.8, 10,000 rows in clusters of 5 with one outcome", _in_clusters)
# What the condition in the sentence is about.
simulation("watch", "alarms of calibrated scores", "10,000 rows of 500 patients who come back")(
    lambda rng: of_patients(rng, per=20, slopes=(1.0, 1.0)).alarm
)

CHANGES = {
    "logits x 1.15, then x 1.6": {"slopes": (1.15, 1.6)},
    "logits x 1, then x 1.6": {"slopes": (1.0, 1.6)},
    "logits x 1.4, then / 1.4": {"slopes": (1.4, 1 / 1.4)},
    "0.15 logits up, then 0.5": {"shifts": (0.15, 0.5)},
    "logits x 1.15, x 1.8 from day 330 on": {"slopes": (1.15, 1.8), "at": 330},
    "logits x 1, more and more, x 1.8 at the end": {"slopes": (1.0, 1.8), "at": 0},
}


def of_changes(measures, outcome, cases, *, rows=10_000, **required):
    for case in cases:

        def one(rng, how=CHANGES[case]):
            state = looked_at(*year(rng, rows, **how))
            return outcome(state, how)

        simulation(
            "change-of-calibration", measures, f"{case}, {rows:,} rows", files=300, **required
        )(one)


of_changes("found", lambda state, _: state.change is not None, CHANGES, at_least=0.9)
of_changes(
    "found", lambda state, _: state.change is not None, [*CHANGES][:3], rows=4_000, at_least=0.8
)


def _day_held(state, how):
    if state.change is None:
        return None
    first, last = state.change.between
    return first <= str(START + how.get("at", 183)) <= last


def _gaps_held(state, how):
    """Whether both intervals hold the gaps, which are those of many rows."""
    if state.change is None or " minus accuracy" not in state.change.name:
        return None
    true = np.random.default_rng(0).normal(0, 1.5, 200_000)
    held = []
    for slope, ends in zip(how["slopes"], (state.change.before, state.change.after), strict=True):
        score = expit(slope * true)
        gap = np.mean(np.sign(score - 0.5) * (score - expit(true)))
        held.append(ends[1] <= gap <= ends[2])
    return all(held)


of_changes("the confidence set holds the day", _day_held, [*CHANGES][:5], at_least=0.9)
for case, (rows, at, shift) in {
    "1.1 logits up, 2.5 % events, 5,400 rows": (5_400, 183, 1.1),
    "1.5 logits up from day 320 on, 2.5 % events, 6,000 rows": (6_000, 320, 1.5),
}.items():

    def _rare(rng, rows=rows, at=at, shift=shift):
        day = np.sort(rng.integers(366, size=rows))
        true = rng.normal(-4.4, 1.15, rows)
        hit = (rng.random(rows) < expit(true)).astype(int)
        state = looked_at(expit(true + shift * (day >= at)), hit, day)
        return _day_held(state, {"at": at})

    simulation(
        "change-of-calibration", "the confidence set holds the day", case, at_least=0.9, files=300
    )(_rare)
of_changes("both intervals hold the gaps", _gaps_held, [*CHANGES][:3], at_least=0.85)
of_changes(
    "'from the start' said of calibrated scores until then",
    lambda state, _: "from the start" in state.sentence(),
    [[*CHANGES][1]],
    at_most=0.05,
)
of_changes(
    "'from the start' said of calibrated scores until then",
    lambda state, _: "from the start" in state.sentence(),
    [[*CHANGES][1]],
    rows=4_000,
    at_most=0.05,
)


# ---- What returns every year


def years(rng, n, *, days, winter=1.0, up=0.0, shift=0.0, at=None) -> Sample:
    """Draw years from 2018 on, whose scores are stretched and `up` in each December to February, and shifted from a day (the middle one) on."""
    day = np.sort(rng.integers(days, size=n))
    times = np.datetime64("2018-01-01") + day.astype("timedelta64[D]")
    month = times.astype("datetime64[M]").astype(int) % 12
    true = rng.normal(-0.7, 1.5, n)
    cold = np.isin(month, [0, 1, 11])
    since = day >= (days // 2 if at is None else at)
    score = expit(true * np.where(cold, winter, 1) + up * cold + shift * since)
    label = (rng.random(n) < expit(true)).astype(int)
    return Sample.of(Predictions(probs=score, labels=label, times=times))


for case, winter in {"calibrated": 1.0, "logits x 1.9 in each December to February": 1.9}.items():
    simulation(
        "change-of-calibration", "said of what returns every year", f"five years, {case}, 27,000 rows", at_most=0.05, files=200
    )(lambda rng, winter=winter: watching.watched(years(rng, 27_000, days=1826, winter=winter)).change is not None)  # fmt: skip
    for rows in (3_000, 10_000):
        simulation(
            "change-of-calibration", "found", f"three years, {case}, then 0.6 logits up, {rows:,} rows", at_least=0.9, files=200
        )(lambda rng, winter=winter, rows=rows: watching.watched(years(rng, rows, days=1096, winter=winter, shift=0.6)).change is not None)  # fmt: skip
simulation(
    "watch", "the months that are off named", "five years, logits x 1.9 in each December to February, 27,000 rows", at_least=0.8, files=200
)(lambda rng: watching.watched(years(rng, 27_000, days=1826, winter=1.9)).only == "month of time = December to February")  # fmt: skip


def months_named(rng, n, days, **how) -> bool:
    """Whether a slice of months is called off."""
    result = usual_slices(years(rng, n, days=days, **how))
    return any("month of time" in s.name for s in result.off) if result else False


for rows, days in ((5_000, 730), (5_000, 1096), (20_000, 730), (20_000, 1096)):
    case = f"{rows:,} rows of {days // 365} years"
    simulation(
        "slices", "months named after one lasting change", f"{case}, 0.6 logits up from day 547 on", at_most=0.1, files=200
    )(lambda rng, rows=rows, days=days: months_named(rng, rows, days, shift=0.6, at=547))  # fmt: skip
    simulation(
        "slices", "months named that are off each year", f"{case}, 0.6 logits up in each December to February", at_least=0.9, files=200
    )(lambda rng, rows=rows, days=days: months_named(rng, rows, days, up=0.6))  # fmt: skip


# ---- What ended, or came back

ENDING = {
    "0.6 logits up until the middle": {"shifts": (0.6, 0.0)},
    "0.6 logits up from day 150 to 240": {"shifts": (0.0, 0.6), "at": 150, "until": 240},
    "0.6 logits up until day 60 and from 300 on": {"shifts": (0.6, 0.0), "at": 60, "until": 300},
}


def of_ending(case, measures, outcome, how, **required):
    """Simulate what is said of all rows of such a year, of files in which a change is found."""

    def one(rng):
        change = looked_at(*year(rng, 10_000, **how)).change
        return None if change is None else outcome(change)

    simulation("change-of-calibration", measures, f"{case}, 10,000 rows", files=200, **required)(
        one
    )


_BACK = [*ENDING][1:]
for case, how in ENDING.items():
    ends = case not in _BACK[1:]
    of_ending(
        case,
        f"said to {'have ended' if ends else 'last'}",
        lambda change, ends=ends: change.ended == ends,
        how,
        at_least=0.9,
    )
    if case in _BACK:
        of_ending(case, "the change before it found", lambda change: bool(change.began), how, at_least=0.9)  # fmt: skip
for case, how in {**CHANGES, **ENDING}.items():
    if how.get("at", 1) and case not in _BACK:
        of_ending(
            case, "another change said, where there is one", lambda change: bool(change.began), how, at_most=0.05
        )  # fmt: skip


# ---- What is off since the change, and before it

SIDES = {
    "logits x 1, then 0.3 up": {"shifts": (0.0, 0.3)},
    "logits x 1, then 0.6 up": {"shifts": (0.0, 0.6)},
    "logits x 1, 0.6 up from day 320 on": {"shifts": (0.0, 0.6), "at": 320},
}


def of_sides(measures, outcome, **required):
    for case, how in SIDES.items():

        def one(rng, how=how):
            change = looked_at(*year(rng, 8_000, **how)).change
            return None if change is None else outcome(*(way for way, _ in change.sides))

        simulation("sides-of-a-change", measures, f"{case}, 8,000 rows", files=300, **required)(one)


of_sides("the side since is named", lambda since, _: since == "forecast too high", at_least=0.8)
of_sides("the other side is named", lambda since, _: since == "forecast too low", at_most=0.01)
of_sides(
    "before, calibrated scores are said to be off",
    lambda _, before: not before.startswith(("not ", "perhaps ")),
    at_most=0.05,
)
of_sides(
    "before, calibrated scores are said to be perhaps off",
    lambda _, before: before.startswith("perhaps"),
    at_most=0.1,
)


def true_gap(how):
    """The mean gap of the rows since, of very many."""
    true = np.random.default_rng(0).normal(0, 1.5, 200_000)
    return np.mean(expit(true + how["shifts"][1]) - expit(true))


def _size(rng, how):
    """The size that is said of the rows since, as a share of the true one."""
    change = looked_at(*year(rng, 8_000, **how)).change
    if change is None or not change.sides[0][1].endswith("points"):
        return None
    return float(change.sides[0][1].split()[0]) / (100 * true_gap(how))


for case, how in SIDES.items():
    simulation(
        "sides-of-a-change",
        "size said of the rows since, as a share of the true one",
        f"{case}, 8,000 rows",
        at_least=0.95,
        at_most=1.1,
        files=300,
    )(lambda rng, how=how: _size(rng, how))


# ---- Off in one slice, without a change


def in_a_slice(rng, *, slope=1.0, off=0.0):
    """Watch a year in which all rows are stretched alike, or those of one site of five are off; None without an alarm."""
    score, hit, day = year(rng, 8_000, slopes=(slope, slope))
    site = rng.integers(0, 5, 8_000)
    moved = rng.random(8_000) < expit(logit(score) - off)
    hit = np.where((site == 3) & (off != 0), moved, hit)
    state = looked_at(score, hit, day, groups={"site": site})
    return state if state.alarm and state.changed is None else None


def of_slices(measures, case, outcome, *, required, **how):
    def one(rng):
        state = in_a_slice(rng, **how)
        return None if state is None else outcome(state.only)

    simulation("watch", measures, case, files=300, **required)(one)


for slope in (1.4, 1.8):
    of_slices(
        "one slice said to be off alone, where all rows are",
        f"logits x {slope}, 8,000 rows",
        bool,
        required={"at_most": 0.05},
        slope=slope,
    )
for off in (0.9, 1.2):
    of_slices(
        "the slice that alone is off named",
        f"one of five off by {off} logits, 8,000 rows",
        lambda only: only == "site = 3",
        required={"at_least": 0.8},
        off=off,
    )


# ---- A change in one slice


def by_site(rng, **how):
    """The slice that changes in such a year."""
    return watching.watched(of_sites(rng, **how)).within


def of_sites(
    rng,
    *,
    n=8_000,
    all_rows=None,
    one=None,
    base=0.0,
    columns=1,
    site=5,
    moving=0.0,
    beside=0.0,
    **rows,
):
    """Draw a year whose rows are all stretched and shifted, and those of one site in another way; each as in `year`, (before, since).

    Scores of a value of the second column are `beside` logits too high all the time.

    Rows may have weights, whose logarithms are `noise` z + `tie` times the logit, or be in `clusters`, each within so many `days`.
    """
    groups = {f"site {i}": rng.integers(0, site, n) for i in range(columns)}
    how, cluster = {"base": base}, None
    if clusters := rows.get("clusters"):
        # Days are sorted: all rows of a cluster are near one another.
        of_days = np.arange(n) * 366 // (n * rows.get("days", 366))
        cluster = of_days * clusters + rng.integers(0, clusters, n)
        shared = rng.normal(size=cluster.max() + 1)[cluster]
        how["u"] = ndtr(np.sqrt(0.2) * shared + np.sqrt(0.8) * rng.normal(size=n))
    score, hit, day = year(rng, n, **how, **(all_rows or {}))
    if one:
        own = year(rng, n, **how, **one)
        day = np.where((inside := groups["site 0"] == 3), own[2], day)
        score, hit = np.where(inside, own[0], score), np.where(inside, own[1], hit)
    if beside:
        also = groups["site 1"] == 0
        score = np.where(also, expit(logit(score) + beside), score)
    if moving:
        # Rows of one site come more and more.
        kept = rng.random(n) < np.where(groups["site 0"] == 3, day / 366, 1.0)
        score, hit, day = score[kept], hit[kept], day[kept]
        groups = {name: values[kept] for name, values in groups.items()}
    times, weights = START + day.astype("timedelta64[D]"), None
    if "noise" in rows:
        weights = np.exp(rows["noise"] * rng.normal(size=n) + rows.get("tie", 0) * logit(score))
    data = Predictions(
        probs=score, labels=hit, times=times, groups=groups, weights=weights, clusters=cluster
    )
    return Sample.of(data)


#: Rows that are not alike.
WEIGHTED_OR_CLUSTERED = {
    "weights": {"noise": 0.7},
    "heavy weights": {"noise": 2.0},
    "weights rise with the scores": {"noise": 0.5, "tie": 1.0},
    "weights fall with the scores": {"noise": 0.5, "tie": -1.0},
    "3,000 clusters": {"clusters": 3_000},
    "200 clusters": {"clusters": 200},
    "200 clusters, each within a day": {"clusters": 1, "days": 2},
    "360 clusters, each within 60 days": {"clusters": 60, "days": 60},
    "40 clusters": {"clusters": 40},
}
OFF_ALIKE = {
    "calibrated": {},
    "calibrated, 20 columns of 10": {"columns": 20, "site": 10},
    "calibrated, 2 % events": {"base": -4.5, "n": 20_000},
    "all logits x 1.8": {"all_rows": {"slopes": (1.8, 1.8)}},
    "one site of five x 1.8": {"one": {"slopes": (1.8, 1.8)}},
    "one site of five 1 logit up": {"one": {"shifts": (1.0, 1.0)}},
    "one site of five x 1.8, whose rows come more and more": {"one": {"slopes": (1.8, 1.8)}, "moving": 1.0},
    "one site of five 1 logit up, logits rise by 2 over the year": {"one": {"shifts": (1.0, 1.0), "moving": 1.0}},
    "all wavy, logits rise by 2 over the year": {"all_rows": {"bend": 0.4, "moving": 1.0}},
    **{f"calibrated, {case}": how for case, how in WEIGHTED_OR_CLUSTERED.items()},
    **{f"one site of five 1 logit up, {case}": {"one": {"shifts": (1.0, 1.0)}} | how for case, how in WEIGHTED_OR_CLUSTERED.items()},
    "calibrated, 20 columns of 10, heavy weights": {"columns": 20, "site": 10, "noise": 2.0},
    "calibrated, 20 columns of 10, 200 clusters": {"columns": 20, "site": 10, "clusters": 200},
}  # fmt: skip
for case, how in OFF_ALIKE.items():
    simulation(
        "change-in-a-slice", "said where no row changes", case, at_most=0.01, files=400
    )(lambda rng, how=how: bool(changed_slices(of_sites(rng, **how))))  # fmt: skip
    simulation(
        "change-in-a-slice", "said of a slice that is off alike all the time", case, at_most=0.03, files=400
    )(lambda rng, how=how: bool(watching.changed_of_those_off(of_sites(rng, **how), watching.CHANGED)))  # fmt: skip

ALL_CHANGE = {
    "logits x 1, then x 1.6": {"slopes": (1.0, 1.6)},
    "0.15 logits up, then 0.8": {"shifts": (0.15, 0.8)},
    "logits x 1.15, x 1.8 from day 330 on": {"slopes": (1.15, 1.8), "at": 330},
}


def all_and_one(rng, how, up):
    """All rows change; one site is off by as many logits more all the time."""
    shifts = tuple(shift + up for shift in how.get("shifts", (0, 0)))
    return of_sites(rng, all_rows=how, one=how | {"shifts": shifts})


for case, how in ALL_CHANGE.items():
    simulation(
        "change-in-a-slice", "a slice said to change where all rows do", case, at_most=0.01, files=400
    )(lambda rng, how=how: bool(changed_slices(of_sites(rng, all_rows=how))))  # fmt: skip
    simulation(
        "change-in-a-slice", "a slice said to change where all rows do", f"{case}; one site 1 logit up all the time",
        at_most=0.01, files=200,
    )(lambda rng, how=how: bool(changed_slices(all_and_one(rng, how, 1))))  # fmt: skip
    simulation(
        "change-in-a-slice", "a slice that is off said to change where all rows do", f"{case}; one site 2 logits down all the time",
        at_most=0.03, files=200,
    )(lambda rng, how=how: bool(watching.changed_of_those_off(all_and_one(rng, how, -2), watching.CHANGED)))  # fmt: skip

ONE_CHANGES = {
    "0.8 logits up": {"shifts": (0.0, 0.8)},
    "logits x 1.15, then x 2.2": {"slopes": (1.15, 2.2)},
    "0.8 logits up from day 300 on": {"shifts": (0.0, 0.8), "at": 300},
}


def changes(rng, how, rows=15_000, **more):
    return by_site(rng, n=rows, one=how, **more)


for case, how in ONE_CHANGES.items():

    def of_one(measures, outcome, case=case, how=how, **required):
        simulation("change-in-a-slice", measures, f"one site of five: {case}", files=200, **required)(
            lambda rng: outcome(changes(rng, how), how)
        )  # fmt: skip

    of_one("the slice named", lambda found, _: found is not None and found.where == (("site 0", "3"),), at_least=0.8)  # fmt: skip
    of_one("another slice named", lambda found, _: found is not None and found.where != (("site 0", "3"),), at_most=0.01)  # fmt: skip
    of_one("the confidence set holds the day", lambda found, how: None if found is None else found.change.between[0] <= str(START + how.get("at", 183)) <= found.change.between[1], at_least=0.9)  # fmt: skip
    if "shifts" in how:
        of_one("the size since lies outside the interval said", lambda found, how: None if found is None else not min(found.ends) <= true_gap(how) <= max(found.ends), at_most=0.08)  # fmt: skip
    of_one("other rows said to change, which do not", lambda found, _: None if found is None else found.elsewhere is not None, at_most=0.05)  # fmt: skip
    of_one("other rows said to be off, which are not", lambda found, _: None if found is None else found.rest != "", at_most=0.05)  # fmt: skip


for case, how in ONE_CHANGES.items():

    def beside(rng, how=how):
        """What is said of the other rows where a value of another column is off all the time."""
        found = changes(rng, how, columns=2, beside=0.7)
        return None if found is None or found.where != (("site 0", "3"),) else found.rest

    for measures, outcome, required in (
        (
            "another slice named that is off all the time",
            "off where site 1 = 0".__eq__,
            {"at_least": 0.8},
        ),
        (
            "all other rows said to be off, which only it is",
            lambda rest: "off where" not in rest and rest != "",
            {"at_most": 0.2},
        ),
    ):
        simulation("change-in-a-slice", measures, f"one site of five: {case}; another column", files=200, **required)(
            lambda rng, beside=beside, outcome=outcome: None if (rest := beside(rng)) is None else outcome(rest)
        )  # fmt: skip

for case in ("weights", "3,000 clusters", "200 clusters"):
    simulation(
        "change-in-a-slice", "the slice named", f"one site of five: 0.8 logits up, {case}", at_least=0.8, files=200
    )(lambda rng, how=WEIGHTED_OR_CLUSTERED[case]: (found := changes(rng, {"shifts": (0.0, 0.8)}, **how)) is not None and found.where == (("site 0", "3"),))  # fmt: skip


def moderation(rng, n=30_000):
    """30,000 posts of four classes in six languages over five months; one class too low, and one language of a tenth overconfident since the fourth."""
    priors = np.log([0.74, 0.13, 0.08, 0.05])
    near = 1.9 * np.eye(4)[rng.choice(4, n, p=np.exp(priors))] * rng.gamma(2, 0.9, (n, 1))
    logits = priors + near + rng.normal(0, 0.7, (n, 4))
    label = (logits + rng.gumbel(size=(n, 4))).argmax(axis=1)
    day = np.sort(rng.integers(0, 153, n))
    language = rng.choice(["en", "es", "pt", "tr", "id", "de"], n, p=[0.46, 0.17, 0.13, 0.1, 0.09, 0.05])  # fmt: skip
    logits[:, 2] -= 0.35
    logits[(language == "tr") & (day >= 92)] *= 2.2
    groups = {"language": language, "length": rng.integers(0, 10, n)}
    times = START + day.astype("timedelta64[D]")
    probs = softmax(logits, axis=1)
    return Sample.of(Predictions(probs=probs, labels=label, times=times, groups=groups))


simulation(
    "change-in-a-slice", "the slice named", "posts: one language of six x 2.2 since the fourth month", at_least=0.8, files=200
)(lambda rng: (found := watching.watched(moderation(rng)).within) is not None and found.where == (("language", "tr"),))  # fmt: skip


#: Of 1,500,000 such posts.
TRUE_GAP = 0.0721


def size_of_change(rng):
    """The gap said, as a multiple of the true one, less 1; None if nothing is said."""
    sample = moderation(rng)
    found = watching.watched(sample).within
    if found is None or found.where != (("language", "tr"),):
        return None
    return None if not found.gap > 0 else found.gap / TRUE_GAP - 1


simulation(
    "change-in-a-slice", "its size said too large, of the true one", "posts: one language of six x 2.2 since the fourth month",
    at_most=0.1, files=200,
)(size_of_change)  # fmt: skip

for since, measures, required in (
    (183, "two values named that change only together", {"at_least": 0.8}),
    (0, "a change said of two values that are off alike all the time", {"at_most": 0.01}),
):
    simulation(
        "change-in-a-slice", measures, "one in 25 of 40,000 rows, 1 logit up", files=200, **required
    )(lambda rng, since=since: CORNER in [where for *_, where in changed_slices(of_pair(rng, 40_000, 3, 0.2, 1.0, since=since))])  # fmt: skip
