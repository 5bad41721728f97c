"""Findings about rows and labels: dependent or shared rows, suspected wrong labels, scores that do not tell classes apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import FloatArray, IntArray, for_row_blocks, row_blocks, sum_over_blocks
from calviz.core.claims import claim
from calviz.core.entry_specs import CHECKS, Check
from calviz.core.errors import Finding
from calviz.core.events import assign, equal_mass_edges
from calviz.core.p_values import above
from calviz.core.predictions import Predictions
from calviz.core.words import counted, decimal, decimals_for, percent, shorten
from calviz.sample.error_bars import CLASS_TEST
from calviz.sample.sample import Sample
from calviz.verdicts.joint_tests import MIN_ROWS
from calviz.verdicts.reverse_checks import in_reverse

#: A column is taken for clusters if it has at least this many levels, and if the mean over rows of the number of rows with the same
#: level is at most this large: a few large levels rule it out.
LEVELS, ROWS_PER_LEVEL = 20, 50
#: Intervals that are too narrow by less than this factor are not reported.
FACTOR = 1.1
#: Rows with equal scores are copies if their residuals correlate at least this much (a tie is not a copy).
COPIES = 0.8


@dataclass(frozen=True)
class Dependence:
    """Correlation of the residuals within clusters.

    Attributes
    ----------
    p_value : float
        p-value of the sum of their products, under independence.
    icc : float
        Intraclass correlation.
    size : float
        Mean, over rows, of the number of rows in the row's cluster.
    clusters : int
        Number of clusters with at least two rows.
    """

    p_value: float
    icc: float
    size: float
    clusters: int

    @property
    def design_effect(self) -> float:
        """Variance of a mean relative to that of independent rows, ``1 + (m - 1) ICC`` (Kish 1965)."""
        return 1 + (self.size - 1) * self.icc


def residuals(sample: Sample, bins: int = 15) -> tuple[FloatArray, FloatArray]:
    """Return hit minus the hit rate at its score, and that rate, shape (n,) each.

    Miscalibration along the scores is not dependence: the rate is the score plus the mean residual of its bin.
    """
    events = sample.events
    edges = equal_mass_edges(events.score, bins)
    bin_of = assign(events.score, edges)
    score = events.score.astype(np.float64)
    rows = np.maximum(np.bincount(bin_of, minlength=edges.size), 1)
    shift = np.bincount(bin_of, events.hit - score, minlength=edges.size) / rows
    rate = np.clip(score + shift[bin_of], 0, 1)
    return events.hit - rate, rate


def dependence(residual: FloatArray, rate: FloatArray, cluster: IntArray) -> Dependence:
    """Test whether residuals correlate within clusters.

    The sum, over pairs of rows of one cluster, of the product of their residuals has mean 0 if rows are
    independent; its variance and third moment follow from those of the residuals (v = p (1 - p), t = v (1 - 2p)):
    over clusters, ``2 [(sum v)^2 - sum v^2]`` and ``8 [ordered triples of v] + 4 [(sum t)^2 - sum t^2]``.
    """
    rows = np.bincount(cluster)
    # A row alone in its cluster forms no pair: it adds nothing to any of these sums.
    several = np.flatnonzero(rows[cluster] > 1)
    if 2 * several.size < cluster.size:
        residual, rate = residual[several], rate[several]
        # Numbered without gaps, the sums of these clusters stay in the cache.
        cluster = (np.cumsum(rows > 1) - 1)[cluster[several]]
    v = rate * (1 - rate)
    t = v * (1 - 2 * rate)

    def total(weight: FloatArray) -> FloatArray:
        return np.bincount(cluster, weight).astype(np.float64)

    value = float((total(residual) ** 2 - total(residual**2)).sum())
    v1, v2, v3, t1, t2 = (total(w) for w in (v, v**2, v**3, t, t**2))
    variance = 2 * (v1**2 - v2).sum()
    third = 8 * (v1**3 - 3 * v1 * v2 + 2 * v3).sum() + 4 * (t1**2 - t2).sum()
    pairs = float((total(np.sqrt(v)) ** 2 - v1).sum())
    p = float(above(value, 0.0, variance, third))
    return Dependence(
        p_value=p if variance > 0 else 1.0,
        icc=min(value / pairs, 1.0) if pairs > 0 else 0.0,
        size=float((rows**2).sum() / rows.sum()),
        clusters=int(np.count_nonzero(rows > 1)),
    )


@claim(
    "dependent-rows",
    says="Rows with the same site are not independent",
    chosen="the column of the strongest dependence",
    adjusted="Bonferroni over columns at a sixth of 1 %",
)
def dependent_rows(sample: Sample) -> Iterator[Finding]:
    """Test repeated ids, group columns and copies of rows as clusters; report the strongest dependence."""
    candidates = list(_candidates(sample))
    if not candidates:
        return
    residual, rate = residuals(sample)
    dependences = []
    for words, cluster, least in candidates:
        one = dependence(residual, rate, cluster)
        certain = one.p_value <= CLASS_TEST / len(candidates) and one.icc >= least
        if certain and one.design_effect >= FACTOR**2:
            dependences.append((one.design_effect, words, one))
    if not dependences:
        return
    effect, words, strongest = max(dependences, key=lambda pair: pair[0])
    yield Finding(
        "CAL022",
        "warning",
        f"Rows {words} are not independent: over {counted(strongest.clusters, 'cluster')} of {strongest.size:.3g} rows the "
        f"residuals correlate by {strongest.icc:.2f}, so intervals are too narrow by a factor of about {effect**0.5:.1f} and "
        f"p-values too small (design effect {effect:.1f}); keep one row per cluster, or resample by cluster.",
    )


def _candidates(sample: Sample) -> Iterator[tuple[str, IntArray, float]]:
    """Iterate over possible clusterings: words, code per row, and the smallest correlation that counts."""
    data = sample.data
    if data.n < LEVELS:
        return
    if data.ids is not None:
        codes = _codes(np.asarray(data.ids))
        if codes.max() + 1 < data.n:
            yield "with the same id", codes, 0.0
    for name, column in data.groups.items():
        rows = np.bincount(column.codes, minlength=1)
        levels = int(np.count_nonzero(rows))
        if LEVELS <= levels < data.n and (rows**2).sum() <= ROWS_PER_LEVEL * data.n:
            yield f"with the same '{shorten(name, 30)}'", column.codes.astype(np.intp), 0.0
    if isinstance(data, Predictions):
        # Nearly certain rows may be equal by rounding: they are left out.
        open_ = np.flatnonzero(sample.top_events.score < NEARLY_CERTAIN)
        codes_of_open = _same_numbers(row_hashes(data.probs)[open_]) if open_.size else None
        if codes_of_open is not None:
            alone = np.ones(data.n, dtype=np.bool_)
            alone[open_] = False
            codes_of_all = np.cumsum(alone) + codes_of_open.max()
            codes_of_all[open_] = codes_of_open
            yield "with exactly the same scores", codes_of_all, COPIES


def _same_numbers(keys: npt.NDArray[np.uint64]) -> IntArray | None:
    """Codes of equal keys, shape (n,), in the order of the keys; None if fewer than `LEVELS` keys repeat."""
    # With the row number in the low bits, one plain sort moves both, in a quarter of the time of an argsort.
    low = np.uint64((1 << (keys.size - 1).bit_length()) - 1)
    packed = keys & ~low
    packed |= np.arange(keys.size, dtype=np.uint64)
    packed.sort()
    packed &= low
    order = packed.view(np.int64)
    ordered = keys[order]
    new = np.empty(keys.size, dtype=np.bool_)
    new[0] = False
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    if np.count_nonzero(new[1:-1] & ~new[2:]) + np.count_nonzero(~new[1:2]) < LEVELS:
        return None
    codes = np.empty(keys.size, dtype=np.intp)
    codes[order] = np.cumsum(new)
    return codes


def _codes(keys: npt.NDArray[Any]) -> IntArray:
    try:
        from pandas import factorize  # many times faster on strings than sorting them
    except ImportError:
        return np.unique(keys, return_inverse=True)[1].astype(np.intp)
    return np.asarray(factorize(keys)[0], dtype=np.intp)


CHECKS.register(Check("CAL022", "Rows that are not independent", dependent_rows))


#: Equal probabilities mean the same row only if they hardly ever occur twice within a split: at most in this
#: share of the rows, where rows with a score of `NEARLY_CERTAIN` or more are left out.
TWICE = 0.01


def shared_rows(sample: Sample) -> Iterator[Finding]:
    """Search for ids, or else for identical rows, that are in several splits."""
    data = sample.data
    if data.splits is None or len(data.splits.levels) < 2:
        return
    codes = data.splits.codes
    if data.ids is not None:
        shared, _ = _in_several(np.asarray(data.ids), codes)
        if shared:
            yield _finding(shared, data.n, "have an id that is also in another split")
            return
    if not isinstance(data, Predictions) or data.cells is not None:
        return
    open_ = np.flatnonzero(sample.top_scored.score < NEARLY_CERTAIN)
    if open_.size < 2:
        return
    hashes = row_hashes(data.probs) ^ data.labels.astype(np.uint64)
    shared, twice = _in_several(hashes[open_], codes[open_])
    if shared > 1 and twice <= TWICE * open_.size:
        yield _finding(shared, data.n, "are identical to a row of another split")


def _finding(shared: int, n: int, statement: str) -> Finding:
    return Finding(
        "CAL011",
        "warning",
        f"{counted(shared, 'row')} ({percent(shared / n, decimals_for(100 * shared / n, figures=1, least=1))}) {statement}: what is fitted on one split and evaluated on "
        "the other looks better than it is.",
    )


def _in_several(keys: npt.NDArray[Any], codes: IntArray) -> tuple[int, int]:
    """Count the rows whose key is in more than one split, and the rows that repeat a key within their split."""
    if keys.dtype == object:
        keys = keys.astype(str)
    ordered = np.sort(keys)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if repeated.size == 0:
        return 0, 0
    again = np.isin(keys, repeated)
    _, key = np.unique(keys[again], return_inverse=True)
    codes = codes[again]
    levels = int(codes.max()) + 1
    pairs = np.unique(key.astype(np.int64) * levels + codes)
    splits_of_key = np.bincount(pairs // levels, minlength=int(key.max()) + 1)
    return int(np.count_nonzero(splits_of_key[key] > 1)), int(key.size - pairs.size)


CHECKS.register(Check("CAL011", "Splits that share rows", shared_rows, clusters=True, weights=True))


# ---- Hashes of rows

#: Rows of up to this many entries are summed column by column.
FEW_COLUMNS = 8
#: Rows whose largest probability is at least this may be equal by rounding, without being copies.
NEARLY_CERTAIN = 0.999


def row_hashes(array: FloatArray) -> npt.NDArray[np.uint64]:
    """Hash each row of an (n, K) array: equal rows have equal hashes, different rows hardly ever.

    The hash is the sum of the bits of the entries times fixed odd numbers, modulo 2^64.
    """
    wide = np.uint32 if array.dtype.itemsize == 4 else np.uint64
    factors = np.random.default_rng(0).integers(1 << 63, size=array.shape[1], dtype=np.uint64)
    factors |= np.uint64(1)
    out = np.empty(array.shape[0], dtype=np.uint64)

    def work(rows: slice) -> None:
        bits = np.ascontiguousarray(array[rows]).view(wide).astype(np.uint64)
        # The low bits of a float with few digits are mostly 0, so the high bits must count as well.
        bits ^= bits >> np.uint64(29)
        bits *= factors
        bits ^= bits >> np.uint64(32)
        if bits.shape[1] > FEW_COLUMNS:
            bits.sum(axis=1, out=out[rows])
            return
        # A sum along a short axis would call the inner loop once per row.
        total = out[rows]
        total[:] = bits[:, 0]
        for column in bits.T[1:]:
            total += column

    for_row_blocks(array, work, block_bytes=1 << 18)
    return out


# ---- Wrong labels

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


# ---- Discrimination

#: Standard normal quantiles for a one-sided test at 1 % and a one-sided 95 % bound.
BEYOND_NOISE, BOUND = 2.326, 1.645
#: Absence of evidence is not enough: the effect must be shown to be below this (an AUROC of about 0.64) ...
CLEAR = 0.5
#: ... and below this (an AUROC of about 0.53) it is negligible, however significant.
NEGLIGIBLE = 0.1


@dataclass(frozen=True)
class Shuffled:
    """The probabilities compared with shuffled labels; None without probabilities of all classes, or with one class only."""

    shuffling: LabelShuffling | None

    @property
    def tells_apart(self) -> bool:
        """False if there is no skill beyond noise, or almost none."""
        f = self.shuffling
        if f is None:
            return True
        return f.effect(BOUND) >= (CLEAR if f.z <= BEYOND_NOISE else NEGLIGIBLE)


def shuffled(sample: Sample) -> Shuffled:
    """Compare the probabilities of the labels with those of shuffled labels."""
    data = sample.data
    if not isinstance(data, Predictions) or bool((data.labels == data.labels[0]).all()):
        return Shuffled(None)
    return Shuffled(label_shuffling(data))


@claim(
    "tells-apart",
    says="The probabilities hardly tell the classes apart",
    chosen="nothing",
    adjusted="shuffled labels, one-sided at 1 %, and the effect that they rule out",
)
def no_discrimination(sample: Sample) -> Iterator[Finding]:
    """Report probabilities for which shuffling the labels would change next to nothing."""
    if sample.data.rows < MIN_ROWS:
        return
    comparison = sample.view(shuffled)
    f = comparison.shuffling
    if f is None or comparison.tells_apart or in_reverse(sample):
        return
    if f.spread == 0:
        reason = "they are the same in all rows"
    else:
        decimals = max(1, decimals_for(100 * f.spread, figures=1, most=3))
        reason = (
            f"the true class is given {percent(f.of_true, decimals)} on average, and {percent(f.shuffled, decimals)} "
            f"with the labels shuffled (standardised difference below {decimal(max(f.effect(BOUND), 0.01), 2)} with 95 % "
            "confidence)"
        )
    yield Finding(
        "CAL016",
        "warning",
        f"The probabilities hardly tell the classes apart on {counted(sample.data.rows, 'row')}: {reason}; "
        "calibrated probabilities may still be useless.",
    )


CHECKS.register(Check("CAL016", "No discrimination", no_discrimination))


#: This many rows are enough to show any skill.
MOST_ROWS = 100_000


@dataclass(frozen=True)
class LabelShuffling:
    """Mean probability of the true class, and the same with the labels shuffled among the rows.

    Attributes
    ----------
    of_true : float
    shuffled : float
        Its mean over all orders of the labels.
    spread : float
        Its standard deviation over all orders of the labels.
    rows : int
    diversity : float
        Chance that two rows have different labels, ``1 - sum_k f_k^2``.
    """

    of_true: float
    shuffled: float
    spread: float
    rows: int
    diversity: float

    @property
    def z(self) -> float:
        """Excess probability of the true classes over chance, in standard deviations; 0 if nothing varies."""
        return (self.of_true - self.shuffled) / self.spread if self.spread > 0 else 0.0

    def effect(self, errors: float = 0.0) -> float:
        """Effect size: `z` plus `errors` standard errors, made independent of the number of rows and of class frequencies.

        For two classes it is the difference of the mean scores with and without the event, in standard deviations of
        the scores (Cohen's d): 0.5 is an AUROC of about 0.64, 0.1 one of 0.53.
        """
        if self.spread == 0:
            return 0.0
        return (self.z + errors) / math.sqrt(self.rows * self.diversity / 2)


def label_shuffling(data: Predictions) -> LabelShuffling:
    """Compare labels with shuffled labels in one pass; of more than `MOST_ROWS` rows, evenly spaced ones are used.

    References
    ----------
    The difference is Tjur's (2009) coefficient of discrimination in the form for K classes: the covariance of
    probability and one-hot label, summed over classes. Its permutation variance is that of Hoeffding (1951):
    ``sum_ij (a_i . b_j)^2 / (n - 1)`` with centred rows a of the probabilities and b of the labels, which for one-hot
    labels of frequencies f is ``n [sum_k f_k |a_k|^2 - |a f|^2] / (n - 1)``.
    """
    step = -(-data.n // MOST_ROWS)
    probs, labels = data.probs[::step], data.labels[::step]
    n, k = probs.shape
    share = np.bincount(labels, minlength=k) / n
    centre = probs[0].astype(np.float64)  # near the mean, so that squares do not cancel

    def work(rows: slice) -> FloatArray:
        block = probs[rows].astype(np.float64) - centre
        mixed = block @ share
        true = block[np.arange(mixed.size), labels[rows]]
        squares = np.einsum("ij,ij->j", block, block)
        return np.concatenate(
            [block.sum(axis=0), squares, [true.sum(), mixed.sum(), mixed @ mixed]]
        )

    sums = sum_over_blocks(probs, work) / n
    mean, square = sums[:k], np.maximum(sums[k : 2 * k] - sums[:k] ** 2, 0)
    true, mixed, mixed_square = sums[2 * k :]
    base = float(centre @ share)
    variance = float(share @ square) - max(float(mixed_square - mixed**2), 0.0)
    # Variation below this is rounding.
    varies = math.sqrt(float(square.sum())) > (1e-12 if data.probs.dtype == np.float64 else 1e-7)
    return LabelShuffling(
        of_true=base + float(true),
        shuffled=base + float(share @ mean),
        spread=math.sqrt(max(variance, 0.0) / max(n - 1, 1)) if varies else 0.0,
        rows=n,
        diversity=1 - float(share @ share),
    )
