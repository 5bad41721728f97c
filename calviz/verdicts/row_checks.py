"""Findings about rows and labels: dependent or shared rows, suspected wrong labels, scores that do not tell classes apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, ndtri

from calviz.core.blocks import FloatArray, IntArray, for_row_blocks, row_blocks, sum_over_blocks
from calviz.core.entry_specs import Told, check, takes_weights
from calviz.core.errors import claim
from calviz.core.p_values import above
from calviz.core.predictions import Predictions
from calviz.core.probabilities import Scores, softmax
from calviz.core.row_columns import ids_of_all, one_row_each
from calviz.core.words import capitalised, counted, decimal, decimals_for, percent, shorten
from calviz.recalibrators import softmax_fits
from calviz.sample.binning import dependence, residuals
from calviz.sample.error_bars import CLASS_TEST
from calviz.sample.sample import FEWEST_LEVELS, MIN_ROWS, Sample, rows_where
from calviz.verdicts.joint_tests import in_reverse, rest_of_rows, tested_views
from calviz.verdicts.watching import watched

#: A column is taken for clusters if it has `FEWEST_LEVELS` at least, and if the mean over rows of the number of rows with the same
#: level is at most this large: a few large levels rule it out.
ROWS_PER_LEVEL, DAYS = 50, "of one day"


@check("CAL022", "Rows that are not independent", clusters=True)
@claim(
    "dependent-rows",
    says="Rows with the same site are not independent",
    chosen="the column of the strongest dependence",
    adjusted="Bonferroni over columns at a sixth of 1 %",
)
def dependent_rows(sample: Sample) -> Iterator[Told]:
    """Test repeated ids, group columns, days and copies of rows as clusters; report the strongest dependence."""
    data, candidates = sample.data, list(_candidates(sample))
    if not candidates or data.named_clusters is not None:
        return
    residual, rate = residuals(sample.scored)
    dependences = []
    for words, cluster, least in candidates:
        one = dependence(residual, rate, cluster)
        if one.icc >= least and one.is_found(len(data.groups)):
            dependences.append((one.design_effect, words, one))
    if not dependences:
        return
    effect, words, strongest = max(dependences, key=lambda pair: pair[0])
    head = f"Rows {words} are not independent"
    wide = f"too narrow by a factor of about {effect**0.5:.1f}"
    by_day = words.startswith(DAYS)
    done = "each day counts as one cluster here (--cluster '' counts each row by itself)"
    yield (
        "warning",
        f"{head}: over {counted(strongest.clusters, 'cluster')} of {strongest.size:.3g} rows the "
        f"residuals correlate by {strongest.icc:.2f}, so intervals of independent rows are {wide} and p-values too small (design effect {effect:.1f}); "
        f"{done if by_day else 'keep one row per cluster, or resample by cluster (--cluster)'}.",
        f"{head}: {'each day counts as one cluster here' if by_day else f'intervals are {wide}'}",
    )


def _candidates(sample: Sample) -> Iterator[tuple[str, IntArray, float]]:
    """Iterate over possible clusterings: words, code per row, and the smallest correlation that counts."""
    data = sample.data
    if data.n < FEWEST_LEVELS:
        return
    if data.clusters is not None:
        yield f"{DAYS} of '{shorten(data.time_name, 30)}'", data.clusters.codes.astype(np.intp), 0.0
    if (codes := sample.once(_repeated_ids)) is not None:
        yield "with the same id", codes, 0.0
    for name, column in data.groups.items():
        rows = np.bincount(column.codes, minlength=1)
        levels = int(np.count_nonzero(rows))
        if FEWEST_LEVELS <= levels < data.n and (rows**2).sum() <= ROWS_PER_LEVEL * data.n:
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
            # Rows with equal scores are copies if their residuals correlate at least this much (a tie is not a copy).
            yield "with exactly the same scores", codes_of_all, 0.8


@takes_weights
def _repeated_ids(sample: Sample) -> IntArray | None:
    """Codes of the ids, shape (n,), if any is that of several rows."""
    if sample.data.ids is None:
        return None
    ids = np.asarray(sample.data.ids)
    # Mostly all differ, which a set tells without the import of pandas.
    if ids.size <= 100_000 and ids.dtype.kind != "f" and len(set(ids.tolist())) == ids.size:
        return None
    codes = _codes(ids)
    return codes if codes.max() + 1 < ids.size else None


@takes_weights
def _column_of_models(sample: Sample) -> str | None:
    """The group column by which each id stands once for each value, always with the same label."""
    data, codes = sample.data, sample.once(_repeated_ids)
    if codes is None or not isinstance(data, Predictions):
        return None
    return next((n for n, c in data.groups.items() if ids_of_all(codes, c, data.labels)), None)


@check("CAL027", "Rows of several models", clusters=True, weights=True)
def several_models(sample: Sample) -> Iterator[Told]:
    """Say that the values of a column may be models, which these numbers mix."""
    if (name := sample.once(_column_of_models)) is not None:
        text = capitalised(one_row_each(sample.data.id_name, name))
        remedy = f"if these are models, name the column (--model-column '{shorten(name, 30)}')"
        yield "warning", f"{text}: these numbers mix them; {remedy}.", f"{text}: models?", name


def _same_numbers(keys: npt.NDArray[np.uint64]) -> IntArray | None:
    """Codes of equal keys, shape (n,), in the order of the keys; None if fewer than `FEWEST_LEVELS` keys repeat."""
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
    if np.count_nonzero(new[1:-1] & ~new[2:]) + np.count_nonzero(~new[1:2]) < FEWEST_LEVELS:
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


#: Equal probabilities mean the same row only if they hardly ever occur twice within a split: at most in this
#: share of the rows, where rows with a score of `NEARLY_CERTAIN` or more are left out; and only if more of the pairs are in different
#: splits than chance would put there with this probability, for rounded scores meet anywhere.
TWICE, BY_CHANCE = 0.01, 0.01


@check("CAL011", "Splits that share rows", clusters=True, weights=True)
def shared_rows(sample: Sample) -> Iterator[Told]:
    """Search for ids, clusters, or else for identical rows, that are in several splits."""
    data = sample.data
    if data.splits is None or len(data.splits.levels) < 2:
        return
    codes = data.splits.codes
    clusters = None if data.clusters is None else data.clusters.codes
    for keys, what in ((data.ids, "an id"), (clusters, "a cluster")):
        if keys is not None and (shared := _in_several(np.asarray(keys), codes)[0]):
            yield _finding(shared, data.n, f"have {what} that is also in another split")
            return
    if not isinstance(data, Predictions) or data.cells is not None:
        return
    open_ = np.flatnonzero(sample.top_scored.score < NEARLY_CERTAIN)
    if open_.size < 2:
        return
    hashes = row_hashes(data.probs) ^ data.labels.astype(np.uint64)
    shared, twice = _in_several(hashes[open_], codes[open_])
    apart = 1 - float(np.sum((np.bincount(codes[open_]) / open_.size) ** 2))
    chance = betainc(shared / 2, twice + 1, apart) if shared > 1 else 1.0
    if chance <= BY_CHANCE and twice <= TWICE * open_.size:
        yield _finding(shared, data.n, "are identical to a row of another split")


#: Rows that repeat another one are a warning from this share of the rows; ids that repeat in more rows identify no single ones.
AGAIN, NEARLY_UNIQUE = 0.005, 0.05


@check("CAL029", "Rows that repeat another one", clusters=True, weights=True)
def rows_again(sample: Sample) -> Iterator[Told]:
    """Count the rows that are equal to an earlier one with the same id, as far as their columns are known, and those that only share a nearly unique id."""
    data, codes = sample.data, sample.once(_repeated_ids)
    if codes is None:
        return
    tied = np.flatnonzero(np.bincount(codes)[codes] > 1)
    scores = data.probs if isinstance(data, Predictions) else data.confidence[:, None]
    factors = (data.splits, data.clusters, *data.groups.values(), *data.texts.values())
    own: list[Any] = [codes, data.labels, getattr(data, "correct", None), *data.numbers.values()]
    own += [data.weights, data.times, *(f.codes for f in factors if f is not None)]
    cells = np.stack([c[tied].astype(np.float64) for c in own if c is not None], axis=1)
    keys = row_hashes(scores)[tied] ^ row_hashes(cells)
    again = np.delete(tied, np.unique(keys, return_index=True)[1])
    shared = np.delete(tied, np.unique(codes[tied], return_index=True)[1])
    name, ids = shorten(data.id_name, 30), np.asarray(data.ids)
    if again.size:
        count = counted(again.size, "row repeats", "rows repeat")
        same = f"(first: {name} {shorten(str(ids[again[0]]), 30)})"
        text, many = f"{count} an earlier row in all cells", again.size >= AGAIN * data.n
        yield "warning" if many else "info", f"{text} {same}; each counts.", text
    if shared.size <= NEARLY_UNIQUE * data.n and (other := np.setdiff1d(shared, again)).size:
        count = counted(other.size, "row has", "rows have")
        text = f"{count} the {name} of an earlier row, with other cells"
        yield "info", f"{text} (first: {shorten(str(ids[other[0]]), 30)}).", text


def _finding(shared: int, n: int, statement: str) -> Told:
    return (
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
#: Gain in log-likelihood beyond which wrong labels are shown at `CLASS_TEST`: half the quantile of the mixture of 0 and a chi-square
#: (Self & Liang 1987, case 5). Factors that differ between rows look a little like wrong labels: these must give this part of the gain.
SHOWN, PART = float(ndtri(CLASS_TEST)) ** 2 / 2, 0.05
#: Lower limit of probabilities before logarithms; number of probabilities that are used, and of rows at least.
LEAST_PROBABILITY, MOST_ENTRIES, FEWEST_ROWS = 1e-16, 1 << 17, 2_000
#: Number of rows that are named.
NAMED = 5


@dataclass(frozen=True)
class LabelErrors:
    """What wrong labels explain that recalibration does not.

    Attributes
    ----------
    of_map : float
        Gain in log-likelihood of the map over the probabilities as they are.
    of_labels : float
        Further gain by a share of random labels.
    ruled_out : int
        Number of labels with a probability of `RULED_OUT` or less.
    expected : float
        Expected number of such labels for a calibrated model.
    """

    of_map: float
    of_labels: float
    ruled_out: int
    expected: float

    @property
    def shown(self) -> bool:
        """Whether wrong labels are needed to explain the rows."""
        return self.of_labels > max(SHOWN, PART * (self.of_map + self.of_labels))


def label_errors(data: Predictions) -> LabelErrors | None:
    """Recalibrate the rows, and see what wrong labels explain beyond that; None if no more labels than expected are ruled out.

    With a share e of the labels drawn at random, class k has the probability ``(1 - e) p_k + e / K``. The map that comes first has a
    factor and an offset for the log-probability of each class (vector scaling): for two classes this is beta calibration, and contains
    a slope and an intercept of the log-odds. As it is fitted to the same rows, the gain of a share beyond it is less than that of the
    model that contains both, and the test is conservative. Of many rows, evenly spaced ones are used.

    References
    ----------
    Cox 1961, section 5, and Atkinson 1970 (a model that contains both); Patrini et al. 2017, theorem 2 (forward correction).
    """
    step = max(1, min(data.n // FEWEST_ROWS, data.probs.size // MOST_ENTRIES))
    labels, p = data.labels[::step], np.maximum(data.probs[::step], 0, dtype=np.float64)
    # With rounded scores, a probability of 0 counts as half of the smallest positive one.
    least = max(float(p.min(where=p > 0, initial=1.0)) / 2, LEAST_PROBABILITY)
    logs, rows = np.log(np.maximum(p, least)), np.arange(labels.size)
    before = logs[rows, labels]
    if gain_of_random_labels(np.exp(before), data.n_classes) <= SHOWN or np.ptp(labels) == 0:
        return None
    ruled_out, expected, too_many = _ruled_out(data)
    if too_many > CLASS_TEST:
        return None
    weights, offsets = softmax_fits.fit_vector(Scores(logs, "logits", "logits"), labels)[0].x
    after = np.maximum(softmax(weights * logs + offsets)[rows, labels], LEAST_PROBABILITY)
    of_map = float((np.log(after) - before).sum())
    return LabelErrors(of_map, gain_of_random_labels(after, data.n_classes), ruled_out, expected)


def gain_of_random_labels(given: FloatArray, classes: int) -> float:
    """Largest gain in log-likelihood by a share of random labels, for the probabilities of the labels, shape (n,)."""
    more = 1 / classes - given
    if (more / given).sum() <= 0:
        return 0.0
    share, low, high = 0.03, 0.0, 1.0
    # The likelihood is concave: Newton's method in a bracket. From below, a step is too short, by half at most.
    for _ in range(60):
        ratio = more / (given + share * more)
        slope = float(ratio.sum())
        low, high = (share, high) if slope > 0 else (low, share)
        new = share + slope / float(ratio @ ratio)
        new = new if low < new < high else (low + high) / 2
        step, share = abs(new - share), new
        if step < 1e-3 * share:
            break
    return float(np.log1p(share * more / given).sum())


def unchanged_rows(sample: Sample) -> Sample | None:
    """The rows on which a change leaves nothing off, and those outside the slice that changed alone; None if no change is found."""
    state, data = sample.once(watched), sample.data
    if state is None or data.times is None or state.found is None:
        return None
    inside = rows_where(data, state.found.where)
    changed = (data.times < np.datetime64(state.found.since)) == bool(state.found.days[1])
    if inside is not None:
        changed &= inside
    return sample.rows_of(~changed)


@takes_weights
def label_errors_found(sample: Sample) -> LabelErrors | None:
    """Return what shows wrong labels, if anything does: where a slice is off and differs from the other rows, or changes, on these too.

    Rows with weights or clusters, and profiles, are left out: their likelihood is unknown. So are confidence-only data, for which a
    map explains wrong labels as well.
    """
    data = sample.data
    if not isinstance(data, Predictions) or not data.alike or data.cells is not None:
        return None
    found = label_errors(data)
    views = tested_views(sample) if found is not None and found.shown else ()
    for others in filter(None, (*map(rest_of_rows, views), *map(unchanged_rows, views))):
        assert isinstance(others.data, Predictions)
        rest = label_errors(others.data)
        if rest is None or not rest.shown:
            return None
    return found if views else None


# Behind all that a model that is too sure would explain as well.
@check("CAL021", "Suspected wrong labels", about="values")
@claim(
    "wrong-labels",
    says="some labels may be wrong, or the model is too sure there, where vector scaling does not explain them (two classes: beta calibration)",
    chosen="the share of wrong labels",
    adjusted="gain in likelihood beyond that map at a sixth of 1 %, and 5 % of all gain; also without the slice that is most surely off, and without the rows since a change",
)
def wrong_labels(sample: Sample) -> Iterator[Told]:
    """Report labels that the model nearly rules out, if wrong labels at random explain these rows and no recalibration does."""
    errors, data = sample.once(label_errors_found), sample.data
    if errors is None or not isinstance(data, Predictions):
        return
    may = (
        f"some labels may be wrong, or the model is too sure there; first {_least_probable(data)}."
    )
    rival = "beta calibration" if data.n_classes == 2 else "vector scaling"
    yield (
        "warning",
        f"The labels of {counted(errors.ruled_out, 'row')} are of a class to which the model gives {percent(RULED_OUT, 0)} or less, where "
        f"calibrated probabilities would allow {errors.expected:.1f}, and {rival} does not explain them (log-likelihood "
        f"{decimal(errors.of_labels, 1)} less than with wrong labels too): {may}",
        capitalised(may),
    )


def _of_labels(data: Predictions) -> FloatArray:
    """Probability of each row's label, shape (n,)."""
    return data.probs[np.arange(data.n), data.labels].astype(np.float64)


def _ruled_out(data: Predictions) -> tuple[int, float, float]:
    """Number of labels that the model nearly rules out, that of a calibrated model, and the probability of so many or more.

    Under calibration it is a sum of independent draws, one per row, whose probability is that of all ruled-out classes of the row.
    """
    count, moments = int(np.count_nonzero(_of_labels(data) <= RULED_OUT)), np.zeros(3)
    for part in row_blocks(data.probs):
        block = data.probs[part]
        out = np.where(block <= RULED_OUT, block, 0).sum(axis=1, dtype=np.float64)
        variance = out * (1 - out)
        moments += out.sum(), variance.sum(), (variance * (1 - 2 * out)).sum()
    # Half a row is the continuity correction.
    return count, float(moments[0]), float(above(count - 0.5, *moments))


def _least_probable(data: Predictions) -> str:
    """Name the rows whose label is least probable, by id or by position."""
    ids, given = data.ids, _of_labels(data)
    first = np.argsort(given, kind="stable")[:NAMED]
    kind = "row" if ids is None else "id"
    row_numbers = first if data.file_rows is None else data.file_rows[first]
    names = (
        [f"{i + 1:,}" for i in row_numbers]
        if ids is None
        else [shorten(str(ids[i]), 30) for i in first]
    )
    return f"{kind}{'s' if len(names) > 1 else ''} {', '.join(names)}"


# ---- Discrimination

#: Standard normal quantiles for a one-sided test at 1 % and a one-sided 95 % bound.
BEYOND_NOISE, BOUND = 2.326, 1.645
#: Absence of evidence is not enough: the effect must be shown to be below this (an AUROC of about 0.64) ...
CLEAR = 0.5
#: ... and below this (an AUROC of about 0.53) it is negligible, however significant.
NEGLIGIBLE = 0.1


def hardly_telling(sample: Sample) -> LabelShuffling | None:
    """Compare the probabilities of the labels with those of shuffled labels; None if they tell the classes apart.

    They are taken to do so without probabilities of all classes, or with one class only.
    """
    data = sample.data
    if not isinstance(data, Predictions) or bool((data.labels == data.labels[0]).all()):
        return None
    f = label_shuffling(data)
    return None if f.effect(BOUND) >= (CLEAR if f.z <= BEYOND_NOISE else NEGLIGIBLE) else f


@check("CAL016", "No discrimination")
@claim(
    "tells-apart",
    says="The probabilities hardly tell the classes apart",
    chosen="nothing",
    adjusted="shuffled labels, one-sided at 1 %, and the effect that they rule out",
)
def no_discrimination(sample: Sample) -> Iterator[Told]:
    """Report probabilities for which shuffling the labels would change next to nothing."""
    if sample.data.rows < MIN_ROWS:
        return
    f = sample.once(hardly_telling)
    if f is None or in_reverse(sample):
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
    yield (
        "warning",
        f"The probabilities hardly tell the classes apart on {counted(sample.data.rows, 'row')}: {reason}; "
        "calibrated probabilities may still be useless.",
    )


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
