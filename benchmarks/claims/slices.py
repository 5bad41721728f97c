"""Slices that are called off, of rows with and without weights and clusters."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri, softmax

from benchmarks.claims import simulation
from calviz.comparison.advice import still_off_words
from calviz.comparison.compare import compare
from calviz.core.blocks import FloatArray, IntArray
from calviz.core.errors import PREDICTED
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.core.words import expected_gap
from calviz.figures.risk_coverage import RiskCoverage
from calviz.figures.slice_gaps import SliceGaps
from calviz.sample.error_bars import SEGMENTS
from calviz.sample.multicalibration import multicalibration
from calviz.sample.risk_tests import wrong_where_kept
from calviz.sample.sample import Sample, Where, rows_where
from calviz.sample.slice_results import Slice
from calviz.sample.slices import USUAL_RATE, default_columns, slices, usual_slices
from calviz.verdicts.miscalibration_checks import nearest_slice
from calviz.verdicts.sentence import judged


@dataclass(frozen=True)
class Setting:
    """Calibrated scores expit(logit(rate) + 1.2 e), e normal, with columns that say nothing about them.

    Attributes
    ----------
    n, levels, columns : int
        Rows, values of each group column, and number of these.
    rate : float
        Median probability of an event.
    noise, tie : float
        Logarithms of the weights are noise z + tie e; without weights both are 0.
    clusters : int
        Number of clusters, within which events depend on each other; 0 for independent rows.
    """

    n: int
    levels: int
    columns: int
    rate: float
    noise: float = 0.0
    tie: float = 0.0
    clusters: int = 0

    def draw(self, rng: np.random.Generator, *, off: float = 0.0, above: bool = False) -> Sample:
        """Draw a file; the logits of the events of the first value of the first column are `off` from those of the scores.

        Those `above` the score over which half of the expected events lie alone, if so.
        """
        n = self.n
        e = rng.normal(size=n)
        score = expit(logit(self.rate) + 1.2 * e)
        groups = {f"column {i}": rng.integers(0, self.levels, n) for i in range(self.columns)}
        where = groups["column 0"] == 0
        if above:
            where &= score > np.quantile(score, 0.5, weights=score, method="inverted_cdf")
        chance = expit(logit(score) + off * where)
        z, cluster = rng.normal(size=n), None
        if self.clusters:
            cluster = rng.integers(0, self.clusters, n)
            z = np.sqrt(0.2) * rng.normal(size=self.clusters)[cluster] + np.sqrt(0.8) * z
        weights = np.exp(self.noise * rng.normal(size=n) + self.tie * e)
        data = Predictions(
            probs=score,
            labels=(z < ndtri(chance)).astype(int),
            groups=groups,
            clusters=cluster,
            weights=weights if self.noise or self.tie else None,
        )
        return Sample(data, "positive")


CALIBRATED = {
    "no weights, rare events": Setting(5_000, 20, 3, 0.01),
    "no weights": Setting(1_000, 4, 3, 0.3),
    "weights, rare events": Setting(5_000, 20, 3, 0.01, noise=1),
    "heavy weights, rare events": Setting(5_000, 20, 3, 0.01, noise=2),
    "heavy weights, very rare events": Setting(15_000, 50, 2, 0.004, noise=2),
    "heavy weights": Setting(1_000, 4, 3, 0.4, noise=2),
    "heavy weights, few rows": Setting(300, 4, 2, 0.05, noise=2),
    "weights rise with the scores": Setting(5_000, 20, 3, 0.05, noise=1, tie=1),
    "weights fall with the scores": Setting(5_000, 20, 3, 0.05, noise=1, tie=-1),
    "clusters, heavy weights": Setting(5_000, 8, 2, 0.05, noise=2, clusters=200),
}
#: Cases whose first slice is off, in logits.
OFF = {
    "no weights, 0.6 logits": (Setting(5_000, 10, 2, 0.2), 0.6),
    "weights, 0.8 logits": (Setting(5_000, 10, 2, 0.2, noise=0.7), 0.8),
    "weights, events four times as frequent": (Setting(5_000, 10, 2, 0.02, noise=0.7), 1.5),
}


def words(case: str, setting: Setting) -> str:
    """Case with its size."""
    return f"{case}, {setting.n:,} rows, {setting.levels * setting.columns} slices"


for case, setting in CALIBRATED.items():

    @simulation("slices", "any false slice", words(case, setting), at_most=0.01, files=400)
    def _(rng: np.random.Generator, setting: Setting = setting) -> bool:
        return bool(usual_slices(setting.draw(rng)).off)

    @simulation(
        "slices",
        "the nearest slice said to be as near by chance in up to 20 % of files, or fewer",
        words(case, setting),
        at_most=0.2,
    )
    def _(rng: np.random.Generator, setting: Setting = setting) -> bool:
        said = SliceGaps.compute(usual_slices(setting.draw(rng))).beyond_headline
        share = re.search(r"^Nearest .* in up to ([\d.]+) %", said)
        return share is None or float(share[1]) <= 20

    @simulation(
        "slices",
        "a nearest slice among the findings",
        words(case, setting),
        at_most=0.05,
        files=400,
    )
    def _(rng: np.random.Generator, setting: Setting = setting) -> bool:
        return any(nearest_slice(setting.draw(rng)))

    @simulation(
        "slices",
        "not clear that all rows are off, of rows that are off alike",
        words(case, setting),
        at_most=0.1,
    )
    def _(rng: np.random.Generator, setting: Setting = setting) -> bool:
        sample = setting.draw(rng)
        score = sample.scored.score
        moved = 1 / (1 + np.exp(-(np.log(score / (1 - score)) + 0.2)))
        off = sample.with_data(replace(sample.data, probs=moved))
        return any(text.startswith("Not clear") for _, text, *_ in nearest_slice(off))

    @simulation(
        "slices", "any false slice against the rest, at 5 %", words(case, setting), at_most=0.05
    )
    def _(rng: np.random.Generator, setting: Setting = setting) -> bool:
        return bool(slices(setting.draw(rng), pairs=False, against="rest").off)


for case, (setting, off) in OFF.items():

    @simulation("slices", "the slice that is off found", words(case, setting), at_least=0.8)
    def _(rng: np.random.Generator, setting: Setting = setting, off: float = off) -> bool:
        found = usual_slices(setting.draw(rng, off=off)).off
        return any(s.where == (("column 0", "0"),) for s in found)


for case, (setting, off) in {
    "no weights": (Setting(5_000, 10, 2, 0.2), -1.1),
    "rare events": (Setting(80_000, 10, 2, 0.004), -1.3),
    "weights": (Setting(8_000, 10, 2, 0.2, noise=0.7), -1.1),
    "clusters": (Setting(8_000, 10, 2, 0.2, clusters=2_000), -1.1),
}.items():

    @simulation(
        "slices",
        "a value that is off above a score alone named with it",
        words(f"{case}, {off} logits", setting),
        at_least=0.8,
    )
    def _(rng: np.random.Generator, setting: Setting = setting, off: float = off) -> bool:
        found = usual_slices(setting.draw(rng, off=off, above=True)).off
        return bool(found) and [c for c, _ in found[0].where] == ["column 0", "score"]

    @simulation(
        "slices",
        "a value named above a score, all of which is off",
        words(f"{case}, {off} logits", setting),
        at_most=0.05,
    )
    def _(rng: np.random.Generator, setting: Setting = setting, off: float = off) -> bool:
        found = usual_slices(setting.draw(rng, off=off)).off
        return bool(found) and found[0].of_score


# ---- Patients with ten rows each, which are alike


def patients(
    rng: np.random.Generator, n: int, rate: float, *, together: float = 1.0, off: float = 0.0
) -> Sample:
    """Ten rows of each of n patients have one probability, and a share of them hit or miss together; three columns of patients; the first value of the first is `off`."""
    one = np.repeat(np.arange(n), 10)
    score = expit(logit(rate) + 0.7 * rng.normal(size=n))[one]
    u = np.where(rng.random(one.size) < together, rng.random(n)[one], rng.random(one.size))
    groups = {f"column {i}": rng.integers(0, 4, n)[one] for i in range(3)}
    hit = u < np.clip(score - off * (groups["column 0"] == 0), 0.005, 1)
    data = Predictions(probs=score, labels=hit.astype(int), groups=groups, clusters=one)
    return Sample(data, "positive")


for n in (60, 150, 400):
    for rate in (0.02, 0.4, 0.98):

        @simulation(
            "slices",
            "any false slice",
            f"{n} patients with ten equal rows each, risk {100 * rate:g} %",
            at_most=0.01,
            files=400,
        )
        def _(rng: np.random.Generator, n: int = n, rate: float = rate) -> bool:
            return bool(usual_slices(patients(rng, n, rate)).off)


@simulation(
    "slices",
    "the slice that is off by 13 points found",
    "200 patients with ten rows each, of which a tenth come together",
    at_least=0.8,
)
def _(rng: np.random.Generator) -> bool:
    off = usual_slices(patients(rng, 200, 0.95, together=0.1, off=0.13)).off
    return any(s.where == (("column 0", "0"),) for s in off)


# ---- Two values are off only together

#: Columns of five values each, or of ten; the rows with the first value of two of them are off.
TOGETHER: dict[str, tuple[Any, ...]] = {
    "one in 25 of 15,000 rows, 1 logit": (15_000, 3, 0.2, 1.0),
    "one in 25 of 40,000 rows, 0.6 logits": (40_000, 3, 0.2, 0.6),
    "one in 25 of 40,000 rows with 6 % events, 0.9 logits": (40_000, 5, 0.06, 0.9),
    "one in 100 of 50,000 rows, 1 logit": (50_000, 3, 0.2, 1.0, 10),
}
CORNER: Where = (("column 0", "0"), ("column 1", "0"))


def of_pair(
    rng: np.random.Generator,
    n: int,
    columns: int,
    rate: float,
    off: float = 0.0,
    levels: int = 5,
    since: int | None = None,
) -> Sample:
    """Draw rows of one year with columns of so many values; the logits of the events of `CORNER` are `off`, from a day on or all the time; no days without it."""
    score = expit(logit(rate) + 1.2 * rng.normal(size=n))
    groups = {f"column {i}": rng.integers(0, levels, n) for i in range(columns)}
    day = np.sort(rng.integers(0, 365, n))
    inside = (groups["column 0"] == 0) & (groups["column 1"] == 0) & (day >= (since or 0))
    hit = rng.random(n) < expit(logit(score) + off * inside)
    times = None if since is None else np.datetime64("2025-01-01") + day
    data = Predictions(probs=score, labels=hit.astype(int), groups=groups, times=times)
    return Sample(data, "positive")


for case, how in TOGETHER.items():

    @simulation("slices", "two values that are off only together named first", case, at_least=0.8)
    def _(rng: np.random.Generator, how: tuple[Any, ...] = how) -> bool:
        found = usual_slices(of_pair(rng, *how)).off
        return bool(found) and {*found[0].where} == {*CORNER}

    @simulation("slices", "other rows named than the two values that are off", case, at_most=0.2)
    def _(rng: np.random.Generator, how: tuple[Any, ...] = how) -> bool:
        return any({*s.where} != {*CORNER} for s in usual_slices(of_pair(rng, *how)).named)

    @simulation(
        "slices",
        "the interval of two values that are off only together holds their gap",
        case,
        at_least=0.95,
    )
    def _(rng: np.random.Generator, how: tuple[Any, ...] = how) -> bool | None:
        sample = of_pair(rng, *how)
        named = [s for s in usual_slices(sample).off if {*s.where} == {*CORNER}]
        score = sample.scored.score[np.asarray(rows_where(sample.data, CORNER))]
        gap = float(np.mean(score - expit(logit(score) + how[3])))
        return (
            named[0].expected_interval.low <= gap <= named[0].expected_interval.high
            if named
            else None
        )


for n, columns, rate in ((15_000, 3, 0.2), (40_000, 5, 0.06), (10_000, 8, 0.2)):

    @simulation(
        "slices",
        "any false slice",
        f"{columns} columns of five values and their pairs, {n:,} rows",
        at_most=0.01,
        files=400,
    )
    def _(rng: np.random.Generator, how: tuple[int, int, float] = (n, columns, rate)) -> bool:
        return bool(usual_slices(of_pair(rng, *how)).off)


# ---- Slices alone are off: the title, and the advice


def title(sample: Sample) -> str:
    """The title of the verdict on a file."""
    return judged(sample.but(resamples=499)).headline


def advised(sample: Sample) -> str:
    """Why the advice after temperature scaling is as it is."""
    comparison = compare(
        sample.data, ["temperature"], metrics=["brier"], reduction="positive", resamples=200, jobs=1
    )
    return comparison.advice.reasons[0]


SAID = {
    "title: slices off, no miscalibration as a whole": (title, "No fault as a whole, but about "),
    "advice: miscalibration in places": (advised, "finds miscalibration in places"),
}
#: One of 20 values is off, so that the mean of all rows hardly is.
ONE_OF_MANY = Setting(8_000, 20, 2, 0.2), 0.9
for measures, (text, words_said) in SAID.items():
    for case in ("no weights", "no weights, rare events"):
        setting = CALIBRATED[case]

        @simulation(
            "slices",
            f"{measures}, said of calibrated files",
            words(case, setting),
            at_most=0.01 if text is title else 0.05,
            files=400,
        )
        def _(
            rng: np.random.Generator,
            setting: Setting = setting,
            text: Callable[[Sample], str] = text,
            words_said: str = words_said,
        ) -> bool:
            return words_said in text(setting.draw(rng))

    @simulation(
        "slices",
        f"{measures}, said where one slice is off and the whole is not found",
        words("no weights, 0.9 logits", ONE_OF_MANY[0]),
        at_least=0.8,
    )
    def _(
        rng: np.random.Generator, text: Callable[[Sample], str] = text, words_said: str = words_said
    ) -> bool | None:
        sample = ONE_OF_MANY[0].draw(rng, off=ONE_OF_MANY[1])
        if judged(sample.but(resamples=499)).beyond_noise:
            return None
        return words_said in text(sample)


@simulation(
    "slices",
    "a value of the same column named that is not off",
    words("no weights, 0.9 logits", ONE_OF_MANY[0]),
    at_most=0.05,
)
def _(rng: np.random.Generator) -> bool:
    off = usual_slices(ONE_OF_MANY[0].draw(rng, off=ONE_OF_MANY[1])).off
    return any(s.where[0][0] == "column 0" and s.where[0][1] != "0" for s in off)


# ---- What comes round again in times

#: Hours and days in a row of these, of which the events are off by so many logits.
_HOURS_OFF = {
    "hours 17 to 20, 1.2 logits": (("hour of time", "17 to 20"), 1.2),
    "hours 17 to 20, 0.8 logits": (("hour of time", "17 to 20"), 0.8),
    "hours 22 to 3, 0.8 logits": (("hour of time", "22 to 3"), 0.8),
    "Saturday and Sunday, 0.8 logits": (("weekday of time", "Saturday to Sunday"), 0.8),
}


def of_hours(
    rng: np.random.Generator,
    n: int,
    off: float = 0.0,
    where: tuple[str, str] = ("hour of time", "17 to 20"),
    *,
    times: bool = True,
    clusters: int = 0,
    noise: float = 0.0,
) -> Sample:
    """Draw five rows an hour, whose scores rise and fall with it, with two columns; the logits of the events of a slice are `off`."""
    hour = np.arange(n) // 5
    score = expit(-1.4 + 0.7 * np.sin((hour % 24 - 8) / 12 * np.pi) + rng.normal(size=n))
    stamps = np.datetime64("2025-01-01T00", "us") + hour * np.timedelta64(1, "h")
    z, cluster = rng.normal(size=n), None
    if clusters:
        cluster = rng.integers(0, clusters, n)
        z = np.sqrt(0.2) * rng.normal(size=clusters)[cluster] + np.sqrt(0.8) * z
    data = Predictions(
        probs=score,
        labels=np.zeros(n, int),
        groups={"region": np.arange(n) % 5, "product": rng.integers(0, 6, n)},
        times=stamps,
        clusters=cluster,
        weights=np.exp(noise * rng.normal(size=n)) if noise else None,
    )
    inside = 0.0 if off == 0 else np.asarray(rows_where(data, (where,)))
    hit = z < ndtri(expit(logit(score) - off * inside))
    data = replace(data, labels=hit.astype(int), times=stamps if times else None)
    return Sample(data, "positive")


for n in (3_000, 10_000, 40_000):
    for kind, options in (
        ("", {}),
        (", weights", {"noise": 1.0}),
        (", clusters", {"clusters": n // 20}),
    ):

        @simulation(
            "slices",
            "any false slice",
            f"five rows an hour{kind}, {n:,} rows, hours, weekdays and 11 slices",
            at_most=0.01,
            files=400,
        )
        def _(rng: np.random.Generator, n: int = n, options: dict[str, Any] = options) -> bool:
            return bool(usual_slices(of_hours(rng, n, **options)).off)


for case, (where, off) in _HOURS_OFF.items():

    @simulation(
        "slices",
        "the range of hours or days that is off named first, exactly",
        f"{case}, 10,000 rows",
        at_least=0.8,
    )
    def _(rng: np.random.Generator, where: tuple[str, str] = where, off: float = off) -> bool:
        found = usual_slices(of_hours(rng, 10_000, off, where)).off
        return bool(found) and found[0].where == (where,)


@simulation(
    "slices",
    "a range of hours that is off found, if not exactly",
    "hours 17 to 20, 0.8 logits, 3,000 rows",
    at_least=0.8,
)
def _(rng: np.random.Generator) -> bool:
    return any(s.where[0][0] == "hour of time" for s in usual_slices(of_hours(rng, 3_000, 0.8)).off)


@simulation(
    "slices",
    "a range of hours or days named where another slice is off",
    "a region off by 0.5 logits, 10,000 rows",
    at_most=0.05,
)
def _(rng: np.random.Generator) -> bool:
    found = usual_slices(of_hours(rng, 10_000, 0.5, ("region", "2"))).named
    return any(" of time" in s.where[0][0] for s in found)


# ---- Numbers


@dataclass(frozen=True)
class Features:
    """Calibrated scores of rows with features that say nothing about them.

    Attributes
    ----------
    n, numbers, categories : int
        Rows, columns of numbers, and columns of 8 categories.
    correlated : bool
        Whether the features, and the scores, follow one common factor.
    rate : float
        Median probability of an event.
    """

    n: int
    numbers: int
    categories: int
    correlated: bool = False
    rate: float = 0.5

    def draw(
        self, rng: np.random.Generator, *, off: float = 0.0, overconfident: float = 0.0
    ) -> Sample:
        """Draw a file; logits are too large by a factor, and in the lowest decile of the first number, events are rarer by `off`."""
        common = rng.normal(size=self.n) * (1.5 if self.correlated else 0.0)
        score = expit(logit(self.rate) + common + rng.normal(size=self.n))
        numbers = {f"x{i}": common + rng.normal(size=self.n) for i in range(self.numbers)}
        codes = {
            f"c{i}": np.digitize(common + rng.normal(size=self.n), np.linspace(-1.2, 1.2, 7))
            for i in range(self.categories)
        }
        lowest = numbers["x0"] <= np.quantile(numbers["x0"], 0.1)
        true = expit((1 - overconfident) * logit(score) - overconfident)
        chance = np.clip(true - off * lowest, 0, 1)
        labels = (rng.random(self.n) < chance).astype(int)
        return Sample(
            Predictions(probs=score, labels=labels, numbers=numbers, groups=codes), "positive"
        )

    def alarms(self, rng: np.random.Generator) -> bool:
        """Whether the multicalibration error of calibrated rows is called beyond noise."""
        return is_beyond_noise(self.draw(rng))

    def finds(self, rng: np.random.Generator, off: float = 0.08) -> bool:
        """Whether the decile that is off is called so."""
        return names_the_decile(self.draw(rng, off=off))


def is_beyond_noise(sample: Sample) -> bool:
    """Whether the multicalibration error is called beyond noise."""
    return "beyond noise" in multicalibration(sample).reading()


def names_the_decile(sample: Sample) -> bool:
    """Whether the lowest decile of the first number is a slice that is called off."""
    return any(
        s.where[0][0] == "x0" and s.where[0][1].startswith("≤") for s in usual_slices(sample).off
    )


for correlated in (False, True):
    kind = "correlated" if correlated else "independent"
    for n in (2_000, 10_000):
        of_features = Features(n, 20, 10, correlated)

        @simulation(
            "slices",
            "any false slice",
            f"20 numbers and 10 categories, {kind}, {n:,} rows",
            at_most=0.01,
            files=400,
        )
        def _(rng: np.random.Generator, setting: Features = of_features) -> bool:
            return bool(usual_slices(setting.draw(rng)).off)


@simulation(
    "slices",
    "the slice that is off found",
    "a decile of one of 20 numbers and 10 categories off by 8 points, 10,000 rows",
    at_least=0.8,
)
def _(rng: np.random.Generator) -> bool:
    return Features(10_000, 20, 10).finds(rng)


for correlated in (False, True):
    kind = ", correlated" if correlated else ""
    for n in (3_000, 10_000):
        of_features = Features(n, 20, 10, correlated)

        @simulation(
            "multicalibration",
            "calibrated scores beyond noise, or any false slice",
            f"20 numbers and 10 categories{kind}, {n:,} rows",
            at_most=0.01,
        )
        def _(rng: np.random.Generator, setting: Features = of_features) -> bool:
            sample = setting.draw(rng)
            return is_beyond_noise(sample) or bool(usual_slices(sample).off)

    @simulation(
        "multicalibration",
        "a segment named beyond the whole where none is",
        f"logits too large, 6 numbers and 4 categories{kind}, 10,000 rows",
        at_most=0.01,
    )
    def _(rng: np.random.Generator, correlated: bool = correlated) -> bool | None:
        off = Features(10_000, 6, 4, correlated).draw(rng, overconfident=0.3)
        result = multicalibration(off)
        return None if result.segments[0].where else result.beyond is not None


@simulation(
    "multicalibration",
    "calibrated scores beyond noise",
    "6 numbers and 4 categories, rare events, 20,000 rows",
    at_most=0.01,
)
def _(rng: np.random.Generator) -> bool:
    return Features(20_000, 6, 4, rate=0.02).alarms(rng)


@simulation(
    "multicalibration",
    "beyond noise, or the slice that is off found",
    "a decile of one of 20 numbers and 10 categories off by 8 points, 10,000 rows",
    at_least=0.8,
)
def _(rng: np.random.Generator) -> bool:
    off = Features(10_000, 20, 10).draw(rng, off=0.08)
    return is_beyond_noise(off) or names_the_decile(off)


@simulation(
    "multicalibration",
    "the segment beyond the whole found",
    "logits too large, a decile of one of 6 numbers and 4 categories off by 15 points more, 20,000 rows",
    at_least=0.8,
)
def _(rng: np.random.Generator) -> bool | None:
    off = Features(20_000, 6, 4).draw(rng, off=0.15, overconfident=0.3)
    result = multicalibration(off)
    if result.segments[0].where:
        return None
    return result.beyond is not None and dict(result.beyond.where).get("x0", "").startswith("≤")


@simulation(
    "multicalibration",
    "interval of the named segment holds",
    "a decile of one of 3 numbers and 2 categories off by 15 points, 6,000 rows",
    at_least=0.95,
)
def _(rng: np.random.Generator) -> bool | None:
    sample, off = Features(6_000, 3, 2).draw(rng, off=0.15), 0.15
    result = multicalibration(sample)
    if result.noise_floor.p_value > SEGMENTS:
        return None
    worst = result.segments[0]
    rows = rows_where(sample.data, worst.where)
    score, x = sample.data.probs[:, 1], sample.data.numbers["x0"]
    true = np.minimum(score, off) * (x <= np.quantile(x, 0.1))
    truth = float((true if rows is None else true[rows]).mean())
    return bool(worst.interval.low <= truth <= worst.interval.high)


# ---- All rows are off, and one slice further


def hits(
    rng: np.random.Generator, chance: FloatArray, clusters: int
) -> tuple[IntArray, IntArray | None]:
    """Labels of rows of so much chance, and the cluster of each, whose rows share a fifth of what decides them; None for 0 clusters."""
    n = chance.size
    if not clusters:
        return (rng.random(n) < chance).astype(int), None
    cluster = rng.integers(0, clusters, n)
    z = np.sqrt(0.2) * rng.normal(size=clusters)[cluster] + np.sqrt(0.8) * rng.normal(size=n)
    return (z < ndtri(chance)).astype(int), cluster


def all_off(
    rng: np.random.Generator,
    *,
    n: int = 10_000,
    more: float = 0.0,
    slope: float = 1.0,
    tilt: float = 0.0,
    clusters: int = 0,
) -> Sample:
    """Scores of five sites that are 5 points too high, and of the first `more` than that; two other columns go with it.

    Logits are too large by the factor `slope` instead, if it is not 1, and their means grow from site to site by `tilt`.
    """
    site = rng.integers(0, 5, n)
    first, z = site == 0, rng.normal(-0.2, 1.1, n) + tilt * site
    score = expit(slope * z) + (0.05 if slope == 1 else 0) + more * first
    labels, cluster = hits(rng, expit(z), clusters)
    data = Predictions(
        probs=np.clip(score, 0.001, 0.999),
        labels=labels,
        clusters=cluster,
        groups={
            "site": site,
            "channel": rng.integers(1, 4, n) * (rng.random(n) > 0.15 + 0.55 * first),
        },
        numbers={"age": rng.normal(np.where(first, 58, 42), 9)},
    )
    return Sample(data, "positive", resamples=499)


WHOLE_OFF = {
    "5 points everywhere": {},
    "5 points everywhere, scores that differ between slices": {"tilt": 0.3},
    "logits 1.5 times too large": {"slope": 1.5},
    "logits 1.5 times too large, scores that differ between slices": {"slope": 1.5, "tilt": 0.3},
    "5 points everywhere, 500 clusters": {"clusters": 500},
    "logits 1.5 times too large, scores that differ between slices, 2,000 clusters": {
        "slope": 1.5,
        "tilt": 0.3,
        "clusters": 2_000,
    },
}
for case, how in WHOLE_OFF.items():
    for n in (5_000, 20_000):
        cases = f"{case}, {n:,} rows"

        @simulation(
            "slices-that-differ",
            "the slice that is off by 10 points more named first",
            cases,
            at_least=0.7,
        )
        def _(rng: np.random.Generator, how: dict[str, float] = how, n: int = n) -> bool:
            found = usual_slices(all_off(rng, n=n, more=0.1, **how)).named
            return bool(found) and found[0].where == (("site", "0"),)

        @simulation("slices-that-differ", "another one named", cases, at_most=0.05)
        def _(rng: np.random.Generator, how: dict[str, float] = how, n: int = n) -> bool:
            found = usual_slices(all_off(rng, n=n, more=0.1, **how)).named
            return any(s.where != (("site", "0"),) for s in found)

        @simulation("slices-that-differ", "any named where none differs", cases, at_most=0.05)
        def _(rng: np.random.Generator, how: dict[str, float] = how, n: int = n) -> bool | None:
            found = usual_slices(all_off(rng, n=n, **how))
            return bool(found.named) if found.rest else None


# ---- The size that is said of a slice


def said_of(sample: Sample, where: Where, gap: FloatArray) -> tuple[Slice, float] | None:
    """The slice, if it is called off, and its true gap, of that of all rows."""
    one = next((s for s in usual_slices(sample).off if s.where == where), None)
    rows = rows_where(sample.data, where)
    weights = None if sample.weights is None else sample.weights[rows]
    return one and (one, float(np.average(gap[rows], weights=weights)))


def sizes(
    claim: str,
    case: str,
    draw: Callable[[np.random.Generator], tuple[Slice, float] | None],
    at_most: float = 0.1,
) -> None:
    """Simulations of the size that is said of a slice that is off, and of its interval."""

    def more(rng: np.random.Generator, sign: int) -> float | None:
        if (drawn := draw(rng)) is None:
            return None
        one, true = drawn
        _, size, _, _, way = expected_gap(one.expected).split()
        return sign * (float(size) / 100 * (1 if way == "high" else -1) / true - 1)

    for sign, way in ((1, "large"), (-1, "small")):
        simulation(claim, f"its size said too {way}, of the true one", case, at_most=at_most)(
            partial(more, sign=sign)
        )

    @simulation(claim, "the interval of its size holds the true one", case, at_least=0.95)
    def _(rng: np.random.Generator) -> bool | None:
        drawn = draw(rng)
        return (
            drawn and drawn[0].expected_interval.low <= drawn[1] <= drawn[0].expected_interval.high
        )


#: Files whose first value is off by the least that is called off in half of them, in logits, and by times that.
for setting, least in ((Setting(2_000, 8, 2, 0.3), 0.53), (Setting(8_000, 8, 6, 0.3), 0.29), (Setting(40_000, 20, 15, 0.3), 0.25)):  # fmt: skip
    for other, wider, more in ((setting, 1.0, ""), (replace(setting, noise=0.7), 1.28, ", weights"), (replace(setting, clusters=400), 1.1, ", 400 clusters")):  # fmt: skip
        for times in (1.0, 1.2, 2.0):

            def first_value(
                rng: np.random.Generator,
                setting: Setting = other,
                off: float = least * wider * times,
            ) -> tuple[Slice, float] | None:
                sample = setting.draw(rng, off=off)
                score = sample.scored.score
                return said_of(sample, (("column 0", "0"),), score - expit(logit(score) + off))

            sizes(
                "slices",
                words(f"{times:g} times the least that is found{more}", other),
                first_value,
            )


# ---- One slice alone is off, and other columns hold more of its rows


def one_region(
    rng: np.random.Generator,
    *,
    n: int = 8_000,
    off: float | FloatArray = 0.0,
    all_off: float = 0.0,
    short: float | None = None,
    clusters: int = 0,
) -> Sample:
    """Scores of seven regions, of which the first, 15 % of the rows, is `off` logits too low; two other columns go with it.

    With `short`, the first 25 % are `short` logits too low where tenure is below 2 years, a third of them; premiums go with the scores.
    """
    z = rng.normal(-0.2, 1.1, n)
    least = 0.15 if short is None else 0.25
    region = rng.choice(7, n, p=[least, 0.33 - least, 0.17, 0.14, 0.13, 0.12, 0.11])
    first = region == 0
    tenure = {}
    if short is not None:
        tenure = {"tenure": rng.exponential(4.5, n), "premium": z + rng.normal(size=n)}
        off = off + short * (tenure["tenure"] < 2)
    labels, cluster = hits(rng, expit(z), clusters)
    data = Predictions(
        probs=expit(z - off * first - all_off),
        labels=labels,
        clusters=cluster,
        groups={
            "region": region,
            "channel": rng.integers(1, 4, n) * (rng.random(n) > 0.15 + 0.55 * first),
        },
        numbers={"age": rng.normal(np.where(first, 58, 42), 9)} | tenure,
    )
    return Sample(data, "positive", resamples=499)


IN_ONE = {
    "1 logit, 8,000 rows": {"off": 1.0},
    "1 logit, 20,000 rows": {"off": 1.0, "n": 20_000},
    "1 logit, 8,000 rows in 3,500 clusters": {"off": 1.0, "clusters": 3_500},
    "1 logit, 8,000 rows in 200 clusters": {"off": 1.0, "clusters": 200},
}
ALIKE = {
    "calibrated, 8,000 rows": {},
    "0.07 logits everywhere, 8,000 rows": {"all_off": 0.07},
    "0.15 logits everywhere, 8,000 rows": {"all_off": 0.15},
    "calibrated, 8,000 rows in 3,500 clusters": {"clusters": 3_500},
    "0.15 logits everywhere, 8,000 rows in 3,500 clusters": {"all_off": 0.15, "clusters": 3_500},
    "0.3 logits everywhere, 8,000 rows in 200 clusters": {"all_off": 0.3, "clusters": 200},
}
for case, how in IN_ONE.items():

    @simulation(
        "one-slice",
        "said where one slice alone is off",
        case,
        at_least=0.8 if "clusters" in how else 0.9,
    )
    def _(rng: np.random.Generator, how: dict[str, float] = how) -> bool:
        return judged(one_region(rng, **how)).headline.startswith("Off where region = 0: about ")

    @simulation("one-slice", "a slice listed that only holds more of its rows", case, at_most=0.05)
    def _(rng: np.random.Generator, how: dict[str, float] = how) -> bool:
        return len(usual_slices(one_region(rng, **how)).off) > 1


for case, how in {
    **IN_ONE,
    "0.5 logits, 2,000 rows": {"off": 0.5, "n": 2_000},
    "0.5 logits, 8,000 rows": {"off": 0.5},
    "0.3 logits everywhere and 0.5 in one region, 8,000 rows": {"off": 0.5, "all_off": 0.3},
}.items():

    def region(rng: np.random.Generator, how: dict[str, float] = how) -> tuple[Slice, float] | None:
        sample = one_region(rng, **how)
        moved, score = how["off"] + how.get("all_off", 0), sample.scored.score
        return said_of(sample, (("region", "0"),), score - expit(logit(score) + moved))

    sizes("one-slice", case, region)


for case, how, at_most in (
    ("1 logit in one region, 0.1 everywhere, 20,000 rows", {"off": 1.0, "all_off": 0.1, "n": 20_000}, None),
    ("1.5 logits in one region, 0.15 everywhere, 20,000 rows", {"off": 1.5, "all_off": 0.15, "n": 20_000}, None),
    ("0.3 logits everywhere, 8,000 rows", {"all_off": 0.3}, 0.05),
    ("0.5 logits in one region, 0.3 everywhere, 8,000 rows", {"off": 0.5, "all_off": 0.3}, 0.05),
    ("0.6 logits in one region, 0.15 everywhere, 20,000 rows", {"off": 0.6, "all_off": 0.15, "n": 20_000}, 0.05),
):  # fmt: skip

    @simulation(
        "off-most",
        "said though the other rows hold more" if at_most else "said where the slice holds most of the error",
        case,
        at_most=at_most,
        at_least=None if at_most else 0.8,
    )  # fmt: skip
    def _(rng: np.random.Generator, how: dict[str, float] = how) -> bool:
        return judged(one_region(rng, **how)).headline.startswith("Off most where region = 0: ")


def after_map(
    rng: np.random.Generator, of_region: float, of_others: float, *, since: int = 0
) -> tuple[Predictions, Predictions, tuple[Slice, ...]]:
    """Scores 0.8 logits too low in one region, 0.2 in the others, the same after a map that adds to their logits, and the slices named on more rows.

    With `since`, these are the last ones of 20,000, before which the region is 0.6 logits too low and no other; since then all scores are 0.6 higher, so that the region is right.
    """
    whole = one_region(rng, off=0.6, all_off=0.2, **({"n": 20_000} if since else {}))
    later = np.arange(whole.data.n) >= (whole.data.n - since if since else 0)
    shown = moved_by(whole.data, np.where(later, 0.8 if since else 0.0, 0.2))
    found = usual_slices(Sample(shown, "positive")) if since else None
    before = shown.take(np.flatnonzero(later))
    inside = np.asarray(rows_where(before, (("region", "0"),)))
    after = moved_by(before, np.where(inside, of_region, of_others))
    return before, after, found.named if found else ()


def moved_by(data: Predictions, by: FloatArray) -> Predictions:
    """The same rows with another number added to the logits."""
    score = expit(logit(data.probs[:, 1]) + by)
    return replace(data, probs=np.stack([1 - score, score], axis=1))


for case, by, since, at_least in (
    ("set right, 8,000 rows", (0.8, 0.2), 0, None),
    ("half set right, 8,000 rows", (0.4, 0.2), 0, 0.9),
    ("all rows moved alike, 8,000 rows", (0.3, 0.3), 0, 0.9),
    ("named on 20,000 rows, the last 8,000 set right", (0.0, -0.6), 8_000, None),
    ("named on 20,000 rows, the last 2,000 set right", (0.0, -0.6), 2_000, None),
    ("named on 20,000 rows, the last 8,000 moved alike", (-0.5, -0.5), 8_000, 0.9),
):

    @simulation(
        "still-off",
        "said where it is not" if at_least is None else "said where it is",
        case,
        at_most=0.05 if at_least is None else None,
        at_least=at_least,
    )
    def _(rng: np.random.Generator, by: tuple[float, float] = by, since: int = since) -> bool:
        before, after, named = after_map(rng, *by, since=since)
        return bool(still_off_words(before, after, named))

    if at_least is not None:

        @simulation("still-off", "its size said too large, of the true one", case, at_most=0.1)
        def _(
            rng: np.random.Generator, by: tuple[float, float] = by, since: int = since
        ) -> float | None:
            before, after, named = after_map(rng, *by, since=since)
            words = still_off_words(before, after, named)
            if "region = 0," not in words:
                return None
            score = after.probs[np.asarray(rows_where(before, (("region", "0"),))), 1]
            off = (0.0 if since else 0.8) - by[0]
            true = (expit(logit(score) + off) - score).mean()
            return float(re.search(r"about ([\d.]+) points too low", words)[1]) / 100 / true - 1


for case, others, at_least in (
    ("all rows set right, 8,000 rows", 0.0, None),
    ("one other region moved by 0.8 logits, 8,000 rows", 0.8, 0.8),
):

    @simulation(
        "still-off",
        "any slice said to be off, of all after a map"
        if at_least is None
        else "the slice that the map takes off named",
        case,
        at_most=0.05 if at_least is None else None,
        at_least=at_least,
    )
    def _(
        rng: np.random.Generator, others: float = others, at_least: float | None = at_least
    ) -> bool:
        before, after, _ = after_map(rng, 0.8, 0.2)
        region = np.asarray(rows_where(before, (("region", "1"),)))
        said = still_off_words(before, moved_by(after, others * region), most=None)
        return "Where region = 1, scores are then off: " in said if at_least else bool(said)


#: Conditions in the title of a file in which one region is off for short tenure alone, where tenure is cut at its deciles.
IN_A_PAIR = "region = 0 and tenure ≤ "


def named(sample: Sample) -> str:
    """The conditions of the slice that the title names, or of the one most surely off."""
    verdict = judged(sample)
    return "" if verdict.off_in is None else verdict.off_in[0]


for n, clusters in ((8_000, 0), (20_000, 0), (20_000, 8_000)):
    in_clusters = f" in {clusters:,} clusters" * bool(clusters)
    pair = partial(one_region, n=n, short=1.0, clusters=clusters)
    case = f"1 logit for short tenure in one region, {n:,} rows{in_clusters}"

    @simulation("one-slice", "both conditions named where a pair is off", case, at_least=0.8)
    def _(rng: np.random.Generator, pair: Callable[..., Sample] = pair) -> bool:
        return named(pair(rng)).startswith(IN_A_PAIR)

    @simulation("one-slice", "said alone where a pair is off", case, at_least=0.8)
    def _(rng: np.random.Generator, pair: Callable[..., Sample] = pair) -> bool | None:
        verdict = judged(pair(rng))
        return len(verdict.off_alone) == 2 if verdict.beyond_noise else None

    @simulation("one-slice", "a pair named that is not the one", case, at_most=0.05)
    def _(rng: np.random.Generator, pair: Callable[..., Sample] = pair) -> bool:
        where = named(pair(rng))
        return " and " in where and not where.startswith(IN_A_PAIR)

    @simulation("one-slice", "a slice listed that only holds more of its rows", case, at_most=0.05)
    def _(rng: np.random.Generator, pair: Callable[..., Sample] = pair) -> bool:
        return len(usual_slices(pair(rng)).off) > 1

    for off in (0.5, 1.0):

        @simulation(
            "one-slice",
            "a pair named where all of a slice is off",
            f"{off:g} logits, with tenure and premium, {n:,} rows{in_clusters}",
            at_most=0.05,
        )
        def _(
            rng: np.random.Generator, pair: Callable[..., Sample] = pair, off: float = off
        ) -> bool:
            return " and " in named(pair(rng, off=off, short=0.0))


ALL_OFF = "all rows 0.3 logits too low"
for case, how, names in (
    (f"{ALL_OFF}, one region 1 logit more, 8,000 rows", {"off": 1.0}, True),
    (f"{ALL_OFF}, one region 0.5 logits more, 20,000 rows", {"off": 0.5, "n": 20_000}, True),
    (f"{ALL_OFF}, one region 1 logit less, 8,000 rows", {"off": -1.0}, True),
    (f"{ALL_OFF}, one region 0.2 logits less, 100,000 rows", {"off": -0.2, "n": 100_000}, True),
    (f"{ALL_OFF}, one region right, 20,000 rows", {"off": -0.3, "n": 20_000}, True),
    (f"{ALL_OFF}, 8,000 rows", {"short": 0.0}, False),
    (
        f"{ALL_OFF}, one region 1 logit more, 8,000 rows in 3,500 clusters",
        {"off": 1.0, "clusters": 3_500},
        True,
    ),
    (
        f"{ALL_OFF}, one region 1 logit more, 8,000 rows in 200 clusters",
        {"off": 1.0, "clusters": 200},
        True,
    ),
    (f"{ALL_OFF}, 8,000 rows in 3,500 clusters", {"short": 0.0, "clusters": 3_500}, False),
    (f"{ALL_OFF}, 8,000 rows in 200 clusters", {"short": 0.0, "clusters": 200}, False),
):

    @simulation(
        "slices-that-differ",
        "the region that differs named" if names else "any named where none differs",
        case,
        at_least=0.8 if names else None,
        at_most=None if names else 0.05,
    )
    def _(rng: np.random.Generator, how: dict[str, float] = how, names: bool = names) -> bool:
        found = usual_slices(one_region(rng, all_off=0.3, **how))
        return (
            found.headline.startswith(
                ("Unlike the rest: region = 0 (", "All rows but region = 0: ")
            )
            if names
            else bool(found.named or (found.rest and found.differ))
        )


def one_channel(rng: np.random.Generator, *, common: bool = False, n: int = 4_000) -> Sample:
    """Claims of which about one in twenty is a fraud, with scores 0.9 logits too high in the first of four channels.

    Of a `common` error, high scores are too high in all channels, and the first has more of them.
    """
    channel = rng.choice(4, n, p=[0.3, 0.3, 0.2, 0.2])
    z, first = rng.normal(-3.3, 1.0, n), channel == 0
    z += 1.5 * first * common
    off = np.clip(0.5 * (z + 2.6), 0, 0.5) if common else 0.9 * first
    data = Predictions(
        probs=expit(z + off),
        labels=rng.random(n) < expit(z),
        groups={"channel": channel, "region": rng.integers(0, 5, n), "line": rng.integers(0, 3, n)},
        numbers={"age": rng.normal(45, 12, n), "amount": rng.lognormal(7, 1, n)},
    )
    return Sample(data, "positive")


@simulation(
    "slices-that-differ",
    "the channel that alone is off named, and no other",
    "0.9 logits in one of four channels of claims, 4,000 rows",
    at_least=0.7,
)
def _(rng: np.random.Generator) -> bool:
    found = usual_slices(one_channel(rng))
    return found.apart and [s.where for s in found.named] == [(("channel", "0"),)]


@simulation(
    "slices-that-differ",
    "a channel said to be off alone",
    "high scores too high in all channels, of which one has more, 4,000 rows",
    at_most=0.05,
)
def _(rng: np.random.Generator) -> bool:
    return usual_slices(one_channel(rng, common=True)).apart


def two_slices(rng: np.random.Generator, n: int = 8_000) -> Sample:
    """Scores of which one of six values of each of two columns is 0.9 logits too low."""
    z, a, b = rng.normal(size=n), rng.integers(0, 6, n), rng.integers(0, 6, n)
    probs, labels = expit(z - 0.9 * (a == 0) - 0.9 * (b == 0)), rng.random(n) < expit(z)
    return Sample(Predictions(probs=probs, labels=labels, groups={"a": a, "b": b}), "positive")


@simulation(
    "off-most",
    "both said, and no other",
    "0.9 logits in each of two slices, 8,000 rows",
    at_least=0.8,
)
def _(rng: np.random.Generator) -> bool:
    headline = judged(two_slices(rng)).headline
    return re.match("Off in 2 slices, most clearly where [ab] = 0: ", headline) is not None


REAR: Where = (("camera", "rear"),)


def boxes(rng: np.random.Generator, *, others: float = 0.0, n: int = 20_000) -> Sample:
    """Scores of which those of firmware v2.1, 30 % of the rows, are 1 logit too high, and those of the rear camera by `others`; all other columns say nothing."""
    z, share = logit(np.clip(rng.beta(1.6, 1.2, n), 0.02, 0.99)), [0.5, 0.25, 0.15, 0.1]
    groups = {
        "firmware": np.where(rng.random(n) < 0.3, "v2.1", "v2.0"),
        "camera": rng.choice(["front", "rear", "left", "right"], n),
        "category": rng.choice(["car", "pedestrian", "truck", "cyclist"], n, p=share),
        "weather": rng.choice(["clear", "rain", "fog", "snow"], n, p=share),
        "lane": rng.integers(0, 10, n),
    }
    off = 1.0 * (groups["firmware"] == "v2.1") + others * (groups["camera"] == "rear")
    data = Predictions(
        probs=expit(z),
        labels=(rng.random(n) < expit(z - off)).astype(int),
        groups=groups,
        numbers={"x1": rng.uniform(0, 1900, n), "y1": rng.uniform(0, 1000, n)},
    )
    return Sample(data, "positive")


for how, pairs in (("", False), (", pairs", True)):

    @simulation(
        "slices",
        "a second slice named beside the one that is off",
        f"1 logit in 30 % of 20,000 rows, 7 columns{how}",
        at_most=0.05,
        files=60,
    )
    def _(rng: np.random.Generator, pairs: bool = pairs) -> bool:
        sample = boxes(rng)
        named = slices(sample, default_columns(sample), pairs=pairs, rate=USUAL_RATE).named
        return any(("firmware", "v2.1") not in s.where for s in named)

    @simulation(
        "slices",
        "both named, and no other, with the numbers of their own rows",
        f"1 logit in 30 % of 20,000 rows, 0.6 in another slice, 7 columns{how}",
        at_least=0.8,
        files=60,
    )
    def _(rng: np.random.Generator, pairs: bool = pairs) -> bool:
        sample = boxes(rng, others=0.6)
        found = slices(sample, default_columns(sample), pairs=pairs, rate=USUAL_RATE).named
        score = sample.scored.score[np.asarray(rows_where(sample.data, REAR))]
        gap = float(np.mean(score - expit(logit(score) - 0.6)))
        return [s.where for s in found] == [(("firmware", "v2.1"),), REAR] and abs(
            found[1].expected - gap
        ) < 0.04


for case, sample_of in (
    ("1 logit in one region, 8,000 rows", partial(one_region, off=1.0)),
    (
        "1 logit in one region, 8,000 rows in 3,500 clusters",
        partial(one_region, off=1.0, clusters=3_500),
    ),
    (
        "1 logit in one region, 8,000 rows in 200 clusters",
        partial(one_region, off=1.0, clusters=200),
    ),
    ("0.9 logits in each of two slices, 8,000 rows", two_slices),
    ("calibrated, 8,000 rows", one_region),
):

    @simulation("slices-that-differ", "the rest said to be off, which is not", case, at_most=0.05)
    def _(
        rng: np.random.Generator, sample_of: Callable[[np.random.Generator], Sample] = sample_of
    ) -> bool:
        return bool(usual_slices(sample_of(rng)).rest)


for case, how in ALIKE.items():

    @simulation(
        "one-slice", "said where all rows are off alike, or none", case, at_most=0.01, files=400
    )
    def _(rng: np.random.Generator, how: dict[str, float] = how) -> bool:
        return bool(judged(one_region(rng, **how)).off_alone)


# ---- The predicted class, crossed with the columns


def of_classes(
    rng: np.random.Generator,
    *,
    n: int = 12_000,
    noise: float = 0.0,
    clusters: int = 0,
    classes: int = 6,
    **off: float,
) -> Sample:
    """Tickets of several classes, which are predicted with probabilities that are right but for the predicted class that is `off` by so much.

    That is of class 1 in the channel 0 (`pair`), in all rows (`of_class`), of all classes in the channel 0 (`channel`) or language 3
    (`language`). Logarithms of the weights are `noise` z.
    """
    prior = np.linspace(2, 1, classes) / np.linspace(2, 1, classes).sum()
    logits = rng.normal(0, 1, (n, classes)) + np.log(prior)
    logits[np.arange(n), rng.choice(classes, n, p=prior)] += rng.gamma(5, 0.9, n)
    probs = softmax(logits, axis=1)
    channel, language = rng.choice(4, n, p=[0.3, 0.4, 0.2, 0.1]), rng.integers(0, 4, n)
    rows, top = np.arange(n), probs.argmax(axis=1)
    where = {
        "pair": (top == 1) & (channel == 0),
        "of_class": top == 1,
        "channel": channel == 0,
        "language": language == 3,
    }
    less = sum(by * where[key] for key, by in off.items())
    right = np.clip(probs[rows, top] - less, 0.02, 1)
    true = probs * ((1 - right) / np.maximum(1 - probs[rows, top], 1e-9))[:, None]
    true[rows, top] = right
    u, cluster = rng.random(n), None
    if clusters:
        cluster = rng.integers(0, clusters, n)
        shared = np.sqrt(0.2) * rng.normal(size=clusters)[cluster]
        u = ndtr(shared + np.sqrt(0.8) * rng.normal(size=n))
    wrong = true.copy()
    wrong[rows, top] = 0
    # Clusters share whether they are right.
    other = (wrong.cumsum(axis=1) < (rng.random(n) * wrong.sum(axis=1))[:, None]).sum(axis=1)
    labels = np.where(u < right, top, np.minimum(other, classes - 1))
    data = Predictions(
        probs=probs,
        labels=labels,
        clusters=cluster,
        weights=np.exp(noise * rng.normal(size=n)) if noise else None,
        groups={"channel": channel, "language": language, "agent": rng.integers(0, 40, n)},
        numbers={"x": rng.normal(size=n)},
    )
    return Sample(data, "top-label", resamples=499)


PAIR, CHANNEL = ((PREDICTED, "1"), ("channel", "0")), (("channel", "0"),)
IN_CLASSES: dict[str, dict[str, Any]] = {
    "12,000 rows of 6 classes": {},
    "2,000 rows of 6 classes": {"n": 2_000},
    "12,000 rows of 30 classes": {"classes": 30},
    "12,000 rows of 6 classes, weights": {"noise": 0.7},
    "12,000 rows of 6 classes, heavy weights": {"noise": 2.0},
    "12,000 rows of 6 classes in 4,000 clusters": {"clusters": 4_000},
    "12,000 rows of 6 classes in 200 clusters": {"clusters": 200},
}
for case, how in IN_CLASSES.items():

    @simulation("slices", "any false slice", case, at_most=0.01, files=400)
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool:
        return bool(usual_slices(of_classes(rng, **how)).off)

    @simulation(
        "slices",
        "a pair named where all of a predicted class is off by 9 points",
        case,
        at_most=0.05,
    )
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool:
        found = usual_slices(of_classes(rng, of_class=0.09, **how))
        return any(len(s.where) == 2 for s in found.off)

    if how.keys() & {"noise", "clusters"}:
        # Of these rows there is no test of classes.
        @simulation(
            "slices",
            "a predicted class that is off by 9 points found",
            case,
            at_least=None if how.get("noise", 0) > 1 else 0.8,
        )
        def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool:
            found = usual_slices(of_classes(rng, of_class=0.09, **how))
            return ((PREDICTED, "1"),) in [s.where for s in found.off]

    @simulation(
        "slices", "a pair named where all of a channel is off by 9 points", case, at_most=0.05
    )
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool:
        found = usual_slices(of_classes(rng, channel=0.09, **how))
        return any(len(s.where) == 2 for s in found.off)


for case in ("", ", weights", " in 4,000 clusters"):
    case = f"12,000 rows of 6 classes{case}"

    @simulation(
        "slices",
        "the predicted class that is off by 12 points in a channel found",
        case,
        at_least=0.8,
    )
    def _(rng: np.random.Generator, how: dict[str, Any] = IN_CLASSES[case]) -> bool:
        return any(s.where == PAIR for s in usual_slices(of_classes(rng, pair=0.12, **how)).off)

    if "weights" not in case:

        @simulation("classes", "all of a predicted class said to be off, where a channel of it is", case, at_most=0.05)  # fmt: skip
        def _(rng: np.random.Generator, how: dict[str, Any] = IN_CLASSES[case]) -> bool:
            return bool(judged(of_classes(rng, pair=0.12, **how)).classes_off)

    @simulation("slices", "its channel named, of which the rest is right", case, at_most=0.05)
    def _(rng: np.random.Generator, how: dict[str, Any] = IN_CLASSES[case]) -> bool:
        return any(s.where == CHANNEL for s in usual_slices(of_classes(rng, pair=0.12, **how)).off)

    @simulation(
        "slices",
        "found beside a language that is off by 9 points, and named second",
        case,
        at_least=0.8,
    )
    def _(rng: np.random.Generator, how: dict[str, Any] = IN_CLASSES[case]) -> bool:
        found = usual_slices(of_classes(rng, pair=0.14, language=0.09, **how))
        return "and channel = 0" in found.also or (found.off[:1] and found.off[0].where == PAIR)


for case, off in (
    ("12,000 rows of 6 classes", 0.06),
    ("12,000 rows of 6 classes", 0.07),
    ("12,000 rows of 6 classes", 0.09),
    ("12,000 rows of 6 classes", 0.2),
    ("12,000 rows of 6 classes, weights", 0.09),
):

    def off_pair(
        rng: np.random.Generator, how: dict[str, Any] = IN_CLASSES[case], off: float = off
    ) -> tuple[Slice, float] | None:
        sample = of_classes(rng, pair=off, **how)
        return said_of(sample, PAIR, np.full(sample.data.n, off))

    sizes("slices", f"{100 * off:g} points in a channel and a predicted class, {case}", off_pair)


@simulation(
    "slices",
    "a channel off by 4 points found beside a language off by 9",
    "12,000 rows of 6 classes",
    at_least=0.8,
)
def _(rng: np.random.Generator) -> bool:
    found = usual_slices(of_classes(rng, channel=0.04, language=0.09))
    return any(s.where == CHANNEL for s in found.off)


# ---- One class within a slice


def of_wards(
    rng: np.random.Generator,
    *,
    n: int = 6_000,
    classes: int = 4,
    clusters: int = 0,
    across: bool = False,
    noise: float = 0.0,
    **off: float,
) -> tuple[Sample, FloatArray]:
    """Patients of 4 regions, and the gap of class 1 in each row; a cluster is in one region, or `across` all.

    The logit of class 1 is too low in region 0 (`region`) or everywhere (`everywhere`), or all logits of region 0, or of all rows, are
    multiplied by 1 + `sure`, or 1 + `all_sure`, or of ward 0 by 1 + `ward`. In region 0 the logit of class 1 is higher by `more`, rightly.
    """
    true = rng.normal(0, 1.2, (n, classes))
    site = rng.integers(0, clusters, n) if clusters else None
    alone = site is None or across
    region = rng.integers(0, 4, n) if alone else rng.integers(0, 4, clusters)[site]
    true[:, 1] += off.get("more", 0.0) * (region == 0)
    p = softmax(true, axis=1)
    # Rows of a cluster share a part of what decides their labels.
    u = rng.random(n)
    if site is not None:
        u = ndtr(np.sqrt(0.1) * rng.normal(size=clusters)[site] + np.sqrt(0.9) * rng.normal(size=n))
    labels = (p.cumsum(axis=1) < u[:, None]).sum(axis=1)
    logits = true.copy()
    logits[:, 1] -= off.get("everywhere", 0.0) + off.get("region", 0.0) * (region == 0)
    ward = rng.integers(0, 3, n)
    sure = off.get("sure", 0.0) * (region == 0) + off.get("ward", 0.0) * (ward == 0)
    logits *= 1 + off.get("all_sure", 0.0) + sure[:, None]
    probs = softmax(logits, axis=1)
    data = Predictions(
        probs=probs,
        labels=np.minimum(labels, classes - 1),
        clusters=site,
        weights=np.exp(noise * rng.normal(size=n)) if noise else None,
        groups={"region": region, "ward": ward},
        numbers={"age": rng.integers(18, 90, n)},
    )
    return Sample(data, "top-label", resamples=499), probs[:, 1] - p[:, 1]


REGION = (("region", "0"),)


def class_named(sample: Sample) -> tuple[Where, str]:
    """The slice of which a class is named, and that class; ((), "") if none is."""
    found = usual_slices(sample).off
    return next(((s.where, s.of_class) for s in found if s.of_class), ((), ""))


OF_WARDS: dict[str, dict[str, Any]] = {
    "6,000 rows of 4 classes": {},
    "12,000 rows of 8 classes": {"n": 12_000, "classes": 8},
    "6,000 rows of 4 classes, weights": {"noise": 0.7},
    "6,000 rows of 4 classes in 300 clusters": {"clusters": 300},
    "8,000 rows of 4 classes, of 2,500 users in all regions": {
        "n": 8_000,
        "clusters": 2_500,
        "across": True,
    },
}
for case, how in OF_WARDS.items():

    @simulation("class-in-a-slice", "a class named in a calibrated file", case, at_most=0.01)
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool:
        return class_named(of_wards(rng, **how)[0])[1] != ""

    for off, what in (
        ({"sure": 0.5}, "a region is too sure"),
        ({"everywhere": 1.0}, "a class is too low in all rows"),
        (
            {"everywhere": 1.0, "more": 1.5},
            "a class is too low in all rows, and more frequent in a region",
        ),
        (
            {"all_sure": 0.4, "more": 1.5},
            "all rows are too sure, and a class is more frequent in a region",
        ),
    ):

        @simulation("class-in-a-slice", f"a class named where {what}", case, at_most=0.05)
        def _(rng: np.random.Generator, how: dict[str, Any] = how | off) -> bool:
            return class_named(of_wards(rng, **how)[0])[1] != ""

    @simulation("class-in-a-slice", "the class named, of slices that are off, where its logit is 1 too low in a region", case, at_least=0.8)  # fmt: skip
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool | None:
        sample, _ = of_wards(rng, region=1.0, **how)
        return class_named(sample) == (REGION, "1") if usual_slices(sample).off else None

    @simulation("class-in-a-slice", "the class named, its logit 1 too low in a region, whether that is off or not", case, at_least=0.8)  # fmt: skip
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool:
        return class_named(of_wards(rng, region=1.0, **how)[0]) == (REGION, "1")

    @simulation("slices-that-differ", "a ward named that is too sure beside a class too low in a region", case, at_least=0.8)  # fmt: skip
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool:
        sample, _ = of_wards(rng, region=1.5, ward=0.5, **how)
        return (("ward", "0"),) in [s.where for s in usual_slices(sample).named]

    for off, what in (
        ({"ward": 0.5}, "beside a ward that is too sure"),
        ({"all_sure": 0.4}, "where all rows are too sure"),
        ({"everywhere": 1.0}, "a logit lower than elsewhere, where it is too low, too"),
    ):

        @simulation("class-in-a-slice", f"the class named, 1 too low in a region, {what}", case, at_least=0.5)  # fmt: skip
        def _(rng: np.random.Generator, how: dict[str, Any] = how | off) -> bool:
            return class_named(of_wards(rng, region=1.0, **how)[0]) == (REGION, "1")

    @simulation("class-in-a-slice", "another class or slice named there", case, at_most=0.05)
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool:
        return class_named(of_wards(rng, region=1.0, **how)[0]) not in (((), ""), (REGION, "1"))

    def of_class(rng: np.random.Generator, how: dict[str, Any] = how) -> tuple[Slice, float] | None:
        sample, gap = of_wards(rng, region=1.0, **how)
        return said_of(sample, REGION, gap) if class_named(sample) == (REGION, "1") else None

    sizes("class-in-a-slice", f"a logit 1 too low, {case}", of_class)


# ---- What a map leaves off in a class of a group


def after_groups(
    rng: np.random.Generator, *, left: float, half: bool = False, **how: Any
) -> tuple[Predictions, str]:
    """Logits of a region times 1.5 and with class 1 a logit too low, after a map that sets the first right and leaves so much of the second, and what is said of it.

    With `half`, the slices are named on all rows, and the map is judged on a half of them.
    """
    sample, _ = of_wards(rng, region=1.0, sure=0.5, **how)
    data, inside = sample.data, sample.data.groups["region"].mask("0")
    logits = np.log(data.probs) / (1 + 0.5 * inside)[:, None]
    logits[:, 1] += (1 - left) * inside
    after = replace(data, probs=softmax(logits, axis=1))
    found = usual_slices(sample) if half else None
    rows = np.arange(data.n // 2 * half, data.n)
    named = found.named if found else ()
    before, after = data.take(rows), after.take(rows)
    return after, still_off_words(before, after, named, None)


for case, how in OF_WARDS.items():
    for half in (False, True):
        of_half = ", judged on a half" * half

        @simulation(
            "still-off",
            "a class or slice said where the map left none",
            case + of_half,
            at_most=0.05,
        )
        def _(rng: np.random.Generator, how: dict[str, Any] = how | {"half": half}) -> bool:
            return bool(after_groups(rng, left=0.0, **how)[1])

    @simulation("still-off", "the region said in which it left a class a logit too low", case, at_least=0.8)  # fmt: skip
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool:
        return "Where region = 0, " in after_groups(rng, left=1.0, **how)[1]

    @simulation("still-off", "another class or slice said there", case, at_most=0.05)
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> bool:
        said = after_groups(rng, left=1.0, **how)[1]
        return "Where " in said.replace("Where region = 0, ", "")

    @simulation("still-off", "its size said too large, of the true one", f"a class, {case}", at_most=0.1)  # fmt: skip
    def _(rng: np.random.Generator, how: dict[str, Any] = how) -> float | None:
        after, said = after_groups(rng, left=1.0, **how)
        size = re.search(
            r"region = 0, scores of '1' \w+(?: \w+)? off: about ([\d.]+) points too low", said
        )
        score = logit(after.probs[after.groups["region"].mask("0"), 1])
        true = (expit(score + 1) - expit(score)).mean()
        return float(size[1]) / 100 / true - 1 if size else None


# ---- Slices whose kept rows are wrong more often than was allowed


def kept_rows(
    rng: np.random.Generator,
    *,
    n: int = 6_000,
    levels: int = 8,
    off: float = 0.0,
    noise: float = 0.0,
    clusters: int = 0,
    share: float | None = None,
    risk: float | None = 0.05,
) -> str:
    """What is said of calibrated confidences, but that `off` more of the first value of a column are wrong; kept by a risk, a share, or, where all are alike, all."""
    score = rng.uniform(0.7, 1, n) if risk is None or share is None else np.full(n, 1 - risk)
    groups = {f"column {i}": rng.integers(0, levels, n) for i in range(3)}
    u, cluster = rng.random(n), None
    if clusters:
        cluster = rng.integers(0, clusters, n)
        shared = np.sqrt(0.2) * rng.normal(size=clusters)[cluster]
        u = ndtr(shared + np.sqrt(0.8) * rng.normal(size=n))
    data = ConfidencePredictions(
        confidence=score,
        correct=u < score - off * (groups["column 0"] == 0),
        groups=groups,
        clusters=cluster,
        weights=np.exp(noise * rng.normal(size=n)) if noise else None,
    )
    sample = Sample(data)
    curve = RiskCoverage.compute(sample, band=False)
    if risk is not None:
        choice = curve.at_risk(risk) if share is None else curve.at_coverage(share)
        most = risk
    else:
        choice = curve.at_coverage(share or 1.0)
        most = 1 - choice.interval.low if choice.interval else 1.0
    kept = curve.keeps(sample.top_scored.score, choice.threshold)
    return wrong_where_kept(sample, kept, most)


KEPT = {
    "at most 5 %": kept_rows,
    "at most 2 %, 60 slices": partial(kept_rows, risk=0.02, levels=20, n=20_000),
    "all rows, each wrong with 5 %": partial(kept_rows, share=1.0),
    "all rows, each wrong with 5 %, weights": partial(kept_rows, share=1.0, noise=0.7),
    "all rows, each wrong with 5 %, 200 clusters": partial(kept_rows, share=1.0, clusters=200),
    "at most 5 %, weights": partial(kept_rows, noise=0.7, n=12_000),
    "at most 5 %, 300 clusters": partial(kept_rows, clusters=300, n=12_000),
    "half of the rows": partial(kept_rows, risk=None, share=0.5),
    "half of the rows, weights": partial(kept_rows, risk=None, share=0.5, noise=0.7),
}
for case, said in KEPT.items():

    @simulation(
        "wrong-where-kept",
        "said of a file in which no slice differs",
        case,
        at_most=0.05,
        files=400,
    )
    def _(rng: np.random.Generator, said: Callable[..., str] = said) -> bool:
        return bool(said(rng))


for case in ("at most 5 %", "half of the rows", "half of the rows, weights"):

    @simulation(
        "wrong-where-kept", "the slice with 10 points more errors named", case, at_least=0.8
    )
    def _(rng: np.random.Generator, said: Callable[..., str] = KEPT[case]) -> bool:
        return said(rng, n=20_000, off=0.1).startswith("Where column 0 = 0,")
