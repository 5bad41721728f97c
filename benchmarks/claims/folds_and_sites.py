"""Folds and sites: false where there is no difference, found where there is one; intervals hold the mean of the models and a new site."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm, t

from benchmarks.claims import simulation
from calviz.comparison.folds_and_sites import FoldResults, SiteResults, folds, random_effects, sites
from calviz.core.predictions import Predictions

MEANS = ("nll", "brier", "mcs", "auroc")
#: Scores of the rows are logits from a normal distribution, whose quantiles stand for all rows.
SPREAD, GRID = 1.3, 1.3 * norm.ppf((np.arange(4_000) + 0.5) / 4_000)


def rows(rng, sizes, shift=0.0, slope=1.0, base=0.0):
    """Logits of levels of these sizes, their labels from ``shift + slope x logit``, and the level of each row."""
    level = np.repeat(np.arange(len(sizes)), sizes)
    z = base + SPREAD * rng.normal(size=level.size)
    shift, slope = (np.broadcast_to(v, len(sizes))[level] for v in (shift, slope))
    return z, (rng.random(level.size) < expit(shift + slope * z)).astype(int), level


def truths(q, s):
    """Values for all rows of probabilities q of a hit and scores s, shape (G,) each, ascending."""
    area = (np.cumsum(1 - q) - (1 - q) / 2) @ q / (q.sum() * (1 - q).sum())
    return {
        "nll": float(-np.mean(q * np.log(s) + (1 - q) * np.log1p(-s))),
        "brier": float(2 * np.mean(q * (1 - s) ** 2 + (1 - q) * s**2)),
        "mcs": float(np.mean(s - q)),
        "auroc": float(area),
        "oe_ratio": float(q.sum() / s.sum()),
        "calibration_in_the_large": float(
            brentq(lambda a: np.mean(expit(a + logit(s)) - q), -20, 20)
        ),
    }


# ---- Folds


def measured(z, labels, fold, metrics=("nll",), resamples=20, **columns) -> FoldResults:
    data = Predictions(probs=expit(z), labels=labels, groups={"fold": fold}, **columns)
    return folds(data, metrics=metrics, resamples=resamples)


def trained(rng, n=500, features=8, parts=5):
    """Out-of-fold logits of logistic regressions, each fitted on the other folds; also the models and what is true."""
    truth = rng.normal(0, 0.5, features)
    x = rng.normal(size=(n, features))
    labels = (rng.random(n) < expit(x @ truth)).astype(int)
    fold, models, z = rng.permutation(n) % parts, [], np.empty(n)
    for f in range(parts):
        own, beta = x[fold != f], np.zeros(features)
        for _ in range(8):
            p = expit(own @ beta)
            curvature = (own * (p * (1 - p))[:, None]).T @ own + 0.1 * np.eye(features)
            beta += np.linalg.solve(curvature, own.T @ (labels[fold != f] - p) - 0.1 * beta)
        models.append(beta)
        z[fold == f] = x[fold == f] @ beta
    return z, labels, fold, models, truth


def no_fold(case, draw):
    simulation("folds", "said of folds that agree", case, at_most=0.05)(draw)


no_fold(
    "5 folds of 200 rows, calibrated", lambda rng: bool(measured(*rows(rng, [200] * 5)).differing)
)
no_fold(
    "10 folds of 60 rows, logits half as steep as said",
    lambda rng: bool(measured(*rows(rng, [60] * 10, -0.5, 0.5)).differing),
)
no_fold(
    "5 folds of 100 rows, a logistic regression fitted on the others",
    lambda rng: bool(measured(*trained(rng)[:3]).differing),
)


def one_off(rng):
    """Draw a fold whose scores are 1 logit too high."""
    z, labels, fold = rows(rng, [300] * 5)
    return "2" in {f.name for f in measured(z + (fold == 2), labels, fold).differing}


simulation("folds", "found", "one of 5 folds of 300 rows off by 1 logit", at_least=0.9)(one_off)


def mean_held(result: FoldResults, by_model) -> float:
    """Share of the intervals that hold the mean of the models."""
    held = []
    for key, mean in result.means.items():
        assert mean.interval is not None
        low, high = mean.interval
        held.append(low <= np.mean([t[key] for t in by_model]) <= high)
    return float(np.mean(held))


def mean_of(case, draw):
    simulation("mean-of-folds", "intervals hold the mean of the models", case, at_least=0.93)(draw)


def different(rng, sizes):
    """Draw models of different shifts and slopes."""
    a, b = rng.normal(0, 0.4, len(sizes)), np.exp(rng.normal(0, 0.3, len(sizes)))
    z, labels, fold = rows(rng, sizes)
    result = measured(a[fold] + b[fold] * z, labels, fold, MEANS, 200)
    return mean_held(
        result, [truths(expit(GRID), expit(i + s * GRID)) for i, s in zip(a, b, strict=True)]
    )


mean_of("5 folds of 100 rows, models differ much", lambda rng: different(rng, [100] * 5))
mean_of("10 folds of 40 rows, models differ much", lambda rng: different(rng, [40] * 10))


def of_trained(rng):
    """Compare with the models' losses on many new rows."""
    z, labels, fold, models, truth = trained(rng)
    x = rng.normal(size=(4_000, truth.size))
    by_model = []
    for beta in models:
        s, q = expit(x @ beta), expit(x @ truth)
        order = np.argsort(s)
        by_model.append(truths(q[order], s[order]))
    return mean_held(measured(z, labels, fold, ("nll", "brier", "auroc"), 200), by_model)


mean_of("5 folds of 100 rows, a logistic regression fitted on the others", of_trained)


def of_repeats(rng):
    """Draw two models that score the same rows."""
    z, labels, _ = rows(rng, [300])
    a, b = rng.normal(0, 0.4, 2), np.exp(rng.normal(0, 0.3, 2))
    every = np.concatenate([i + s * z for i, s in zip(a, b, strict=True)])
    ids, model = np.tile(np.arange(300), 2), np.repeat([0, 1], 300)
    result = measured(every, np.tile(labels, 2), model, MEANS, 200, ids=ids)
    return mean_held(
        result, [truths(expit(GRID), expit(i + s * GRID)) for i, s in zip(a, b, strict=True)]
    )


mean_of("two repeats of 300 rows, models differ much", of_repeats)


# ---- Sites


def at_sites(rng, sizes, shift=0.0, slope=1.0, base=0.0) -> SiteResults:
    z, labels, site = rows(rng, sizes, shift, slope, base)
    data = Predictions(probs=expit(z), labels=labels, groups={"site": site})
    return sites(data, "site", resamples=20)


def differ(result: SiteResults) -> bool:
    return bool(result.differing)


def same(case, draw):
    simulation("sites", "said of sites that are alike", case, at_most=0.05)(draw)


same("10 sites of 200 rows, calibrated", lambda rng: differ(at_sites(rng, [200] * 10)))
same(
    "10 sites of 50 to 500 rows, logits x 0.7 + 0.3",
    lambda rng: differ(at_sites(rng, rng.integers(50, 501, 10), 0.3, 0.7)),
)
same(
    "30 sites of 60 rows, one row in five a hit",
    lambda rng: differ(at_sites(rng, [60] * 30, base=-1.8)),
)
same("3 sites of 300 rows", lambda rng: differ(at_sites(rng, [300] * 3)))


def slopes_apart(rng):
    """Draw slopes with a standard deviation of 0.3."""
    return differ(at_sites(rng, [400] * 10, slope=rng.normal(1, 0.3, 10)))


simulation("sites", "found", "10 sites of 400 rows, slopes with SD 0.3", at_least=0.8)(slopes_apart)


def new_site(rng, count, size, tau_shift, tau_slope):
    """Share of the prediction intervals that hold the truth of a new site."""
    a, b = rng.normal(0.2, tau_shift, count + 1), rng.normal(0.9, tau_slope, count + 1)
    result = at_sites(rng, [size] * count, a[1:], b[1:])
    new = truths(expit(a[0] + b[0] * GRID), expit(GRID)) | {"calibration_slope": float(b[0])}
    if len(result.effects) < 5 or len(result.sites) < 3:
        return None
    held = []
    for key, effect in result.effects.items():
        assert effect.prediction is not None
        held.append(effect.prediction.low <= new[key] <= effect.prediction.high)
    return float(np.mean(held))


for count, size, tau_shift, tau_slope in (
    (5, 300, 0.3, 0.15),
    (8, 200, 0.15, 0.1),
    (8, 400, 0.5, 0.3),
    (20, 200, 0.2, 0.15),
    (20, 200, 0.0, 0.0),
    (40, 100, 0.3, 0.2),
):

    def _new_site(rng, count=count, size=size, tau_shift=tau_shift, tau_slope=tau_slope):
        return new_site(rng, count, size, tau_shift, tau_slope)

    simulation(
        "new-site",
        "intervals hold a new site",
        f"{count} sites of {size} rows, SD of intercepts {tau_shift:g}, of slopes {tau_slope:g}",
        at_least=0.93,
    )(_new_site)


def from_estimates(rng, usual):
    """Whether a new site is held where sites differ about as much as their errors, by our interval or by that of tau^2 alone."""
    tau, v = 0.15, rng.uniform(0.01, 0.06, 12)
    effect = random_effects(tau * rng.normal(size=12) + np.sqrt(v) * rng.normal(size=12), v)
    assert effect.prediction is not None
    new, (low, high) = tau * rng.normal(), effect.prediction
    if not usual:
        return low <= new <= high
    error = (effect.interval.high - effect.mean) / t.ppf(0.975, 11)
    reach = t.ppf(0.975, 10) * np.hypot(error, np.sqrt(effect.tau_squared))
    return abs(new - effect.mean) <= reach


CASE = "12 estimates with errors of 0.1 to 0.25, SD of sites 0.15"
simulation("new-site", "intervals hold a new site", CASE, at_least=0.93, files=1_000)(
    lambda rng: from_estimates(rng, usual=False)
)
simulation("new-site", "held by t times the root of tau² and se²", CASE, files=1_000)(
    lambda rng: from_estimates(rng, usual=True)
)
