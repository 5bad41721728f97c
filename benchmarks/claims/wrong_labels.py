"""Statements about wrong labels, in files with wrong labels, and of models that are off while all labels are right."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import softmax

from benchmarks.claims import simulation
from calviz.core.blocks import FloatArray
from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample
from calviz.verdicts.row_checks import label_errors_found

RESAMPLES = 199
#: What the logits should be, shape (n, K), from those of the scores and from a site of each row, of ten.
Truth = Callable[[FloatArray, np.ndarray, np.random.Generator], FloatArray]


def drawn(
    n: int,
    rng: np.random.Generator,
    *,
    k: int,
    scale: float,
    mean: float = 0.0,
    sharpen: float = 1.0,
    truth: Truth = lambda z, site, rng: z,
    wrong: float = 0.0,
    sites: bool = False,
) -> Sample:
    """Draw normal logits that are `sharpen` times too large, labels from what they should be, and replace some by another class.

    `mean` is that of the last class, in logits; `sites` makes the sites a group column.
    """
    z = rng.normal(0, scale, (n, k))
    z[:, -1] += mean
    site = rng.integers(0, 10, n)
    labels = (truth(z, site, rng) + rng.gumbel(size=(n, k))).argmax(axis=1)
    replaced = rng.random(n) < wrong
    labels = np.where(replaced, (labels + rng.integers(1, k, n)) % k, labels)
    groups = {"site": site} if sites else {}
    data = Predictions(probs=softmax(sharpen * z, axis=1), labels=labels, groups=groups)
    return Sample(data, seed=int(rng.integers(2**31)), resamples=RESAMPLES)


def named(rng, *, n, options):
    """Whether wrong labels are named."""
    return label_errors_found(drawn(n, rng, **options)) is not None


def of_log_odds(change: Callable[[FloatArray], FloatArray]) -> Truth:
    """Truth of two classes by their log-odds."""
    return lambda z, site, rng: np.stack([np.zeros(len(z)), change(z[:, 1] - z[:, 0])], axis=1)


def beta(a: float, b: float, c: float) -> Truth:
    """Truth of two classes for scores that beta calibration corrects."""
    return of_log_odds(lambda z: b * np.logaddexp(0, z) - a * np.logaddexp(0, -z) + c)


def moved(z: FloatArray, rows: np.ndarray, by: float) -> FloatArray:
    """Logits of the last class moved in some rows."""
    z = z.copy()
    z[rows, -1] += by
    return z


def one_site(by: float) -> Truth:
    """Truth that differs from the scores in the first site alone."""
    return lambda z, site, rng: moved(z, site == 0, by)


def uncertain_site(z, site, rng):
    """Truth that is less certain than the scores in the first site alone, by a factor of 4."""
    return z / np.where(site == 0, 4, 1)[:, None]


def part_of_two_sites(z, site, rng):
    """Truth that differs from the scores by a logit in a third of two sites."""
    return moved(z, (site < 2) & (rng.random(len(z)) < 0.35), 1.0)


def offsets(z, site, rng):
    """Truth with an offset for each class."""
    return z + rng.normal(0, 1, z.shape[1])


def factors(z, site, rng):
    """Truth with a factor for each class."""
    return z * rng.uniform(0.5, 1, z.shape[1])


def uneven(z, site, rng):
    """Truth with a factor for each row."""
    return z / rng.uniform(1, 2, (len(z), 1))


#: Log-odds of two classes have a standard deviation of 1.4 times the scale; of rarer events, the mean is that of the log-odds.
BASE = {
    "2 classes": {"k": 2, "scale": 2.1},
    "5 classes": {"k": 5, "scale": 3.0},
    "20 classes": {"k": 20, "scale": 3.0},
    "100 classes": {"k": 100, "scale": 4.0},
    "a fifth events": {"k": 2, "scale": 1.2, "mean": -2.1},
    "2 % events": {"k": 2, "scale": 1.4, "mean": -5.3},
}
OFF = {
    "calibrated": {},
    "logits x 1.7": {"sharpen": 1.7},
    "logits x 3": {"sharpen": 3.0},
    "logits x 0.6": {"sharpen": 0.6},
    "a factor for each row, 1 to 2": {"truth": uneven},
    "one site of ten, 1 logit too low": {"truth": one_site(1.0), "sites": True},
    "one site of ten, 3 logits too high": {"truth": one_site(-3.0), "sites": True},
    "one site of ten, logits x 4": {"truth": uncertain_site, "sites": True},
    "a third of two sites, 1 logit too low": {"truth": part_of_two_sites, "sites": True},
}
OF_TWO = {
    "slope 1.7 about -1": {"truth": of_log_odds(lambda z: (z + 1) / 1.7 - 1)},
    "slope 1.7 about -3": {"truth": of_log_odds(lambda z: (z + 3) / 1.7 - 3)},
    "1 logit too low": {"truth": of_log_odds(lambda z: z + 1)},
    "1 logit too high": {"truth": of_log_odds(lambda z: z - 1)},
    "beta-shaped (0.5, 1.5)": {"truth": beta(0.5, 1.5, 0.0)},
    "beta-shaped (1.2, 0.4)": {"truth": beta(1.2, 0.4, -0.5)},
}
OF_SEVERAL = {
    "an offset for each class": {"truth": offsets},
    "an offset for each class, logits x 1.6": {"truth": offsets, "sharpen": 1.6},
    "a factor for each class": {"truth": factors},
}
#: What no test of scores and labels can tell from wrong labels.
ALIKE = {
    "events level off at 5 and 95 %": ("2 classes", of_log_odds(lambda z: 3 * np.tanh(z / 3))),
    "one site of ten, logits x 4, no column": ("5 classes", uncertain_site),
}


def rates(measures: str, case: str, classes: str, how: dict, **required: float) -> None:
    """Make the simulations of a case, with few rows and with many; of 100 classes with few."""
    for n in (2_000, 20_000) if classes != "100 classes" else (2_000,):
        simulation("wrong-labels", measures, f"{case}, {classes}, {n:,} rows", **required)(
            partial(named, n=n, options=BASE[classes] | how)
        )


for classes, options in BASE.items():
    for case, how in (OFF | (OF_TWO if options["k"] == 2 else OF_SEVERAL)).items():
        rates("named where there are none", case, classes, how, at_most=0.01)
    for wrong in (0.01, 0.03, 0.05):
        measures = f"named, {100 * wrong:g} % wrong labels"
        rates(measures, "calibrated", classes, {"wrong": wrong})
        rates(measures, "logits x 1.7", classes, {"wrong": wrong, "sharpen": 1.7})
for case, (classes, truth) in ALIKE.items():
    rates("named where there are none, but it looks alike", case, classes, {"truth": truth})
