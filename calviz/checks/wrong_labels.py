"""CAL021: labels that the model nearly rules out, at a rate that does not fall with their probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import row_blocks
from calviz.core.finding import Finding
from calviz.core.predictions import Predictions
from calviz.numerics.skewed_sum_tails import above
from calviz.sample.false_alarm_levels import CLASS_TEST
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, percent, shorten

#: A class counts as ruled out at this probability or less.
RULED_OUT = 0.01
#: With fewer ruled-out labels, how their rate depends on the probability is unknown.
FEWEST_LABELS = 5
#: If logits are T times too large, the rate at which a class with probability p comes true is about proportional to
#: p ** (1 / T). Exponents of at least this (T up to 4) are mistaken for wrong labels in at most `FLAT_LEVEL` of files.
EXPONENT, FLAT_LEVEL = 0.25, 0.01
#: Lower limit of probabilities before logarithms; and the number of probabilities from which their distribution is estimated.
LEAST_PROBABILITY, SPREAD_ENTRIES = 1e-16, 1 << 22
#: Number of rows that are named.
NAMED = 5


@dataclass(frozen=True, eq=False)
class RuledOut:
    """Rows with a label that the model nearly rules out.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Positions in the data, the least probable label first.
    given : ndarray, shape (m,)
        Probability of their label.
    expected : float
        Expected number of such rows for a calibrated model.
    too_many : float
        Probability of this number or more for a calibrated model.
    flat : float
        Probability that the labels of these rows have probabilities as small as these, or smaller, if a class with
        probability p comes true at a rate proportional to ``p ** EXPONENT``.
    """

    rows: IntArray
    given: FloatArray
    expected: float
    too_many: float
    flat: float

    @property
    def suspect(self) -> bool:
        """Whether wrong labels explain them, and an overconfident model does not."""
        return self.too_many <= CLASS_TEST and self.flat <= FLAT_LEVEL


def ruled_out(sample: Sample) -> RuledOut | None:
    """Count the rows whose label has next to no probability; None if there are too few.

    Under calibration their number is a sum of independent draws, one per row, whose probability is that of all
    ruled-out classes of the row. Given their number, they are draws from all ruled-out classes of
    all rows; with weights ``p ** s`` the sum of log p has moments in closed form. Confidence-only data have one
    such class per row: all but the predicted one.
    """
    data, events = sample.data, sample.top_events
    if isinstance(data, Predictions):
        probs: FloatArray = data.probs
        given: FloatArray = probs[np.arange(data.n), data.labels].astype(np.float64)
        is_out = given <= RULED_OUT
    else:
        probs = np.maximum(1 - events.score.astype(np.float64), 0)[:, None]
        given = probs[:, 0]
        is_out = (given <= RULED_OUT) & ~events.hit
    rows = np.flatnonzero(is_out)
    if rows.size < FEWEST_LABELS:
        return None
    rows = rows[np.argsort(given[rows], kind="stable")]
    moments = np.zeros(3)
    for part in row_blocks(probs):
        block = probs[part]
        out = np.where(block <= RULED_OUT, block, 0).sum(axis=1, dtype=np.float64)
        variance = out * (1 - out)
        moments += out.sum(), variance.sum(), (variance * (1 - 2 * out)).sum()
    # Half a row is the continuity correction.
    too_many = float(above(rows.size - 0.5, *moments))
    flat = _flat(probs, given[rows]) if too_many <= CLASS_TEST else 1.0
    return RuledOut(rows, given[rows], float(moments[0]), too_many, flat)


def _flat(probs: FloatArray, given: FloatArray) -> float:
    # The distribution of ruled-out probabilities is estimated from a sample of the rows.
    step = max(1, probs.size // SPREAD_ENTRIES)
    out = probs[::step].astype(np.float64).ravel()
    out = out[out <= RULED_OUT]
    # With rounded scores, a probability of 0 counts as half of the smallest positive one.
    least = max(float(out[out > 0].min(initial=RULED_OUT)) / 2, LEAST_PROBABILITY)
    x = np.log(np.maximum(out, least))
    weight = np.exp(EXPONENT * (x - x.max()))
    weight /= weight.sum()
    mean = weight @ x
    second, third = (weight @ (x - mean) ** j for j in (2, 3))
    m = given.size
    # The lower tail: the sign is reversed, as `above` computes the upper one.
    total = np.log(np.maximum(given, least)).sum()
    return float(above(-total, -m * mean, m * second, -m * third))


def wrong_labels(sample: Sample) -> Iterator[Finding]:
    """Report an error rate that stays the same however sure the model is: that of the labels."""
    suspects = sample.view(ruled_out)
    if suspects is None or not suspects.suspect:
        return
    far_below = int(np.count_nonzero(suspects.given <= RULED_OUT / 100))
    fault = "are of a class" if isinstance(sample.data, Predictions) else "are wrong in a way"
    yield Finding(
        "CAL021",
        "warning",
        f"The labels of {counted(suspects.rows.size, 'row')} {fault} to which the model gives {percent(RULED_OUT, 0)} or less, where "
        f"calibrated probabilities would allow {suspects.expected:.1f}, and they hardly become rarer where it gives even "
        f"less ({far_below:,} at {percent(RULED_OUT / 100, 2)} or less): suspect wrong labels, first {_named(sample, suspects)}.",
    )


def _named(sample: Sample, suspects: RuledOut) -> str:
    """Name the rows whose label is least probable, by id or by position."""
    ids = sample.data.ids
    kind = "row" if ids is None else "id"
    names = [
        f"{i + 1:,}" if ids is None else shorten(str(ids[i]), 30) for i in suspects.rows[:NAMED]
    ]
    return f"{kind}{'s' if len(names) > 1 else ''} {', '.join(names)}"


CHECKS.register(Check("CAL021", "Suspected wrong labels", wrong_labels))
