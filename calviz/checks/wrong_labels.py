"""CAL021: labels that the model all but rules out, at a rate that does not fall with their probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.finding import Finding
from calviz.core.predictions import Predictions
from calviz.numerics.blocks import row_blocks
from calviz.numerics.skewed_sum_tails import above
from calviz.sample.false_alarm_levels import CLASS_TEST
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, percent, shorten

#: A class is all but ruled out at this probability or less.
TINY = 0.01
#: Fewer labels that are ruled out say nothing about how their rate runs.
FEWEST = 5
#: Where logits are T times too large, the rate at which a class with the probability p comes true goes about as
#: p ** (1 / T). Exponents from this on (T up to 4) are taken for wrong labels in at most `FLAT_LEVEL` of files.
EXPONENT, FLAT_LEVEL = 0.25, 0.01
#: No probability is known better than this; and this many of them say how they spread.
LEAST, SPREAD_ENTRIES = 1e-16, 1 << 22
#: How many of the rows are named.
NAMED = 5


@dataclass(frozen=True, eq=False)
class RuledOut:
    """Rows with a label that the model all but rules out.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Where they stand in the data, the least probable label first.
    given : ndarray, shape (m,)
        Probability of their label.
    expected : float
        How many a calibrated model would have.
    too_many : float
        Probability of this number or more for a calibrated model.
    flat : float
        Probability that the labels of these rows have such small probabilities, or smaller, if a class with the
        probability p comes true at a rate that goes as ``p ** EXPONENT``.
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
    """Count the rows whose label has hardly any probability; None if there are too few.

    Under calibration their number is a sum of independent draws, one per row, with the probability of all
    classes of the row that are ruled out. Given their number, they are draws from all ruled-out classes of
    all rows; with weights ``p ** s`` the sum of log p has moments in closed form. Confidence-only data have one
    such class per row: all but the predicted one.
    """
    data, events = sample.data, sample.top_events
    if isinstance(data, Predictions):
        probs: FloatArray = data.probs
        given: FloatArray = probs[np.arange(data.n), data.labels].astype(np.float64)
        is_out = given <= TINY
    else:
        probs = np.maximum(1 - events.score.astype(np.float64), 0)[:, None]
        given = probs[:, 0]
        is_out = (given <= TINY) & ~events.hit
    rows = np.flatnonzero(is_out)
    if rows.size < FEWEST:
        return None
    rows = rows[np.argsort(given[rows], kind="stable")]
    moments = np.zeros(3)
    for part in row_blocks(probs):
        block = probs[part]
        out = np.where(block <= TINY, block, 0).sum(axis=1, dtype=np.float64)
        variance = out * (1 - out)
        moments += out.sum(), variance.sum(), (variance * (1 - 2 * out)).sum()
    # Half a row is the correction for continuity.
    too_many = float(above(rows.size - 0.5, *moments))
    flat = _flat(probs, given[rows]) if too_many <= CLASS_TEST else 1.0
    return RuledOut(rows, given[rows], float(moments[0]), too_many, flat)


def _flat(probs: FloatArray, given: FloatArray) -> float:
    # A sample of the rows shows how ruled-out probabilities spread.
    step = max(1, probs.size // SPREAD_ENTRIES)
    out = probs[::step].astype(np.float64).ravel()
    out = out[out <= TINY]
    # Of rounded scores, half of the smallest: a probability of 0 is not known better.
    least = max(float(out[out > 0].min(initial=TINY)) / 2, LEAST)
    x = np.log(np.maximum(out, least))
    weight = np.exp(EXPONENT * (x - x.max()))
    weight /= weight.sum()
    mean = weight @ x
    second, third = (weight @ (x - mean) ** j for j in (2, 3))
    m = given.size
    # Smaller is what is looked for: with the sign turned, larger.
    total = np.log(np.maximum(given, least)).sum()
    return float(above(-total, -m * mean, m * second, -m * third))


def wrong_labels(sample: Sample) -> Iterator[Finding]:
    """Look for an error rate that stays where the model is ever surer: that of the labels."""
    suspects = sample.view(ruled_out)
    if suspects is None or not suspects.suspect:
        return
    far = int(np.count_nonzero(suspects.given <= TINY / 100))
    what = "are of a class" if isinstance(sample.data, Predictions) else "are wrong in a way"
    yield Finding(
        "CAL021",
        "warning",
        f"The labels of {counted(suspects.rows.size, 'row')} {what} to which the model gives {percent(TINY, 0)} or less, where "
        f"calibrated probabilities would allow {suspects.expected:.1f}, and they hardly become rarer where it gives even "
        f"less ({far:,} at {percent(TINY / 100, 2)} or less): suspect wrong labels, first {_named(sample, suspects)}.",
    )


def _named(sample: Sample, found: RuledOut) -> str:
    """The rows whose label is least probable, by id or by their place."""
    ids = sample.data.ids
    kind = "row" if ids is None else "id"
    names = [f"{i + 1:,}" if ids is None else shorten(str(ids[i]), 30) for i in found.rows[:NAMED]]
    return f"{kind}{'s' if len(names) > 1 else ''} {', '.join(names)}"


CHECKS.register(Check("CAL021", "Suspected wrong labels", wrong_labels))
