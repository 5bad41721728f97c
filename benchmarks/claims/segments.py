"""Segments: no false alarm where none differ, found where some do; and what the map then gains on new rows."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from benchmarks.claims import simulation
from calviz.core.entry_specs import RECALIBRATORS
from calviz.recalibrators.segments import SegmentOffsets

#: Rows that judge.
JUDGED = 4_000


def columns(rng, n, categories, numbers, together=0.0):
    """Columns of eight values and of normal numbers, which depend on a common one by `together`."""
    common = rng.normal(size=n)
    scores = {
        f"c{j}": together * common + np.sqrt(1 - together**2) * rng.normal(size=n)
        for j in range(categories + numbers)
    }
    cut = {name: np.digitize(v, [-1.15, -0.67, -0.32, 0, 0.32, 0.67, 1.15]) for name, v in scores.items()}  # fmt: skip
    return {
        name: cut[name].astype(str) if j < categories else v
        for j, (name, v) in enumerate(scores.items())
    }


def two_classes(rng, n, given, offset=0.0, slope=0.0, pair=0.0):
    """Probabilities of two classes that are too extreme, and labels; offsets and slopes differ by c0, and by pairs with c1."""
    z = rng.normal(0, 1.5, n)
    code, other = (given[name].astype(int) for name in ("c0", "c1"))
    own = 1 + rng.normal(0, slope, 8)[code]
    truth = 0.7 * z * own + rng.normal(0, offset, 8)[code] + rng.normal(0, pair, (8, 8))[code, other]  # fmt: skip
    p = expit(z)
    return np.stack([1 - p, p], axis=1), (rng.random(n) < expit(truth)).astype(int)


def five_classes(rng, n, given, offset=0.0):
    """The same for five classes: the odds of the top label differ by c0."""
    z = rng.normal(0, 1.5, (n, 5))
    truth = 0.7 * z
    truth[np.arange(n), z.argmax(axis=1)] += rng.normal(0, offset, 8)[given["c0"].astype(int)]
    p, q = (np.exp(v) / np.exp(v).sum(axis=1, keepdims=True) for v in (z, truth))
    return p, (q.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=4)


def three_classes(rng, n, given, flat=1.0, sharper=1.0, levels=0.0):
    """Three classes, all right after one temperature, of scores whose level differs by c0; but times `flat` where c0 is 0 or 1."""
    code = given["c0"].astype(int)[:, None]
    z = rng.normal(0, 1.6, (n, 3)) * np.exp(levels * (code - 3.5))
    p, q = (np.exp(v) / np.exp(v).sum(axis=1, keepdims=True) for v in (z * np.where(code < 2, flat, 1), sharper * z))  # fmt: skip
    return p, (q.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=2)


def a_region(rng, n, given, off=1.0):
    """Probabilities of two classes that are `off` logits too low where c0 is 0 and the number c5 is low, and else right."""
    z = rng.normal(0, 1.5, n)
    inside = (given["c0"].astype(int) < 1) & (given["c5"] < -0.2)
    p = expit(z - off * inside)
    return np.stack([1 - p, p], axis=1), (rng.random(n) < expit(z)).astype(int)


def fitted(rng, n, make=two_classes, categories=4, numbers=2, together=0.0, **effects):
    """The map fitted on n rows, and the loss on new rows minus that of temperature scaling, shape (JUDGED,)."""
    given = columns(rng, n + JUDGED, categories, numbers, together)
    p, y = make(rng, n + JUDGED, given, **effects)
    first, new = ({name: v[rows] for name, v in given.items()} for rows in (slice(n), slice(n, None)))  # fmt: skip
    own = SegmentOffsets().fit(p[:n], y[:n], columns=first)
    losses = [
        -np.log(mapped[np.arange(JUDGED), y[n:]])
        for mapped in (
            own.transform(p[n:], new),
            RECALIBRATORS["temperature"].make().fit(p[:n], y[:n]).transform(p[n:]),
        )
    ]
    return own, losses[0] - losses[1]


def sigmas(losses) -> float:
    """Mean difference of the losses in standard errors."""
    error = losses.std(ddof=1) / np.sqrt(losses.size)
    return float(losses.mean() / error) if error > 0 else 0.0


def alarm(case, at_most=0.05, **setting):
    simulation("segments", "said where none differ", case, at_most=at_most)(
        lambda rng: bool(fitted(rng, **setting)[0].effects_)
    )
    simulation("segments", "NLL on new rows worse than of temperature, beyond noise", case, at_most=0.05)(
        lambda rng: sigmas(fitted(rng, **setting)[1]) > 1.645
    )  # fmt: skip


def power(case, at_least=0.8, **setting):
    simulation("segments", "said where some differ", case, at_least=at_least, files=50)(
        lambda rng: bool(fitted(rng, **setting)[0].effects_)
    )
    simulation("segments", "NLL on new rows better than of temperature, beyond noise", case, at_least=at_least, files=50)(
        lambda rng: sigmas(fitted(rng, **setting)[1]) < -1.645
    )  # fmt: skip


for size in (300, 1_000, 5_000):
    alarm(f"6 columns, {size:,} rows", n=size)
alarm("30 columns, 1,000 rows", n=1_000, categories=10, numbers=20)
alarm("30 correlated columns, 1,000 rows", n=1_000, categories=10, numbers=20, together=0.7)
alarm("6 columns, five classes, 1,000 rows", n=1_000, make=five_classes)
alarm("6 columns, three classes, 1,000 rows", n=1_000, make=three_classes)
alarm(
    "6 columns, three classes, all too flat, 1,000 rows", n=1_000, make=three_classes, sharper=2.5
)
alarm("6 columns, three classes, all too sharp, at levels from 0.35 to 2.9, 1,000 rows", n=1_000, make=three_classes, sharper=0.6, levels=0.3)  # fmt: skip
power("offsets of one column, 1,000 rows", n=1_000, offset=0.6)
power("slopes of one column, 5,000 rows", n=5_000, slope=0.4)
power("a pair of columns, 3,000 rows", n=3_000, pair=0.5)
power("offsets of one column, five classes, 1,000 rows", n=1_000, make=five_classes, offset=0.7)
power(
    "logits times 0.4 in a quarter of the rows, three classes, 1,000 rows",
    n=1_000,
    make=three_classes,
    flat=0.4,
)
power(
    "logits times 2.5 in a quarter of the rows, three classes, 1,000 rows",
    n=1_000,
    make=three_classes,
    flat=2.5,
)


REGION = "1 logit too low where c0 = 0 and a number is low, 8,000 rows"


def errors_by_region(rng, n=8_000):
    """Mean error of the map on new rows: where scores are 1 logit too low, and in the other rows of c0 = 0; and the first without a map."""
    given = columns(rng, n + JUDGED, 4, 2)
    p, y = a_region(rng, n + JUDGED, given)
    first, new = ({name: v[rows] for name, v in given.items()} for rows in (slice(n), slice(n, None)))  # fmt: skip
    mapped = SegmentOffsets().fit(p[:n], y[:n], columns=first).transform(p[n:], new)[:, 1]
    score, same, low = p[n:, 1], new["c0"] == "0", new["c5"] < -0.2
    true = expit(logit(score) + 1.0 * (same & low))
    parts = (mapped - true, same & low), (mapped - true, same & ~low), (score - true, same & low)
    return [float(abs(error[rows].mean())) for error, rows in parts]


@simulation("segments", "mean error at most half of that before, where two conditions hold what is off", REGION, at_least=0.8, files=60)  # fmt: skip
def _(rng: np.random.Generator) -> bool:
    inside, _, before = errors_by_region(rng)
    return inside <= before / 2


@simulation("segments", "rows that were right moved by more than 2 points, where two conditions hold what is off", REGION, at_most=0.2, files=60)  # fmt: skip
def _(rng: np.random.Generator) -> bool:
    return errors_by_region(rng)[1] > 0.02
