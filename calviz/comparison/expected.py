"""Expected performance of rows whose labels have not come yet, from their calibrated probabilities."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import huber, softmax
from scipy.stats import ks_2samp, kstwobign, t

from calviz.comparison.difference_intervals import Weighted
from calviz.comparison.fitting import apply_map, check_fitting_rows, columns_to_fit, make, scores_of
from calviz.core import errors
from calviz.core.blocks import FloatArray, IntArray, checkpoint, for_row_blocks, sum_over_blocks
from calviz.core.entry_specs import METRICS, RECALIBRATORS, Interval
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.predictions import Dataset, Predictions
from calviz.core.profile import Profile
from calviz.core.row_columns import FINE_CELLS
from calviz.core.words import counted, level_text, p_value
from calviz.recalibrators.base import BaseRecalibrator, read_record
from calviz.sample.metric_results import Displayed, Summary
from calviz.sample.sample import Sample, dataset_of
from calviz.verdicts.analysis import evaluate

#: Metrics of the registry that are estimated if none are named; F1 and the confusion matrix are always.
EXPECTED = ("accuracy", "auroc", "brier", "nll")
#: Map that is fitted on labelled rows of two classes (or confidences), and of more, with its options. A penalty found by
#: cross-validation is too strong for a mean over rows, whose error a bend left out adds to, while noise of the map averages out.
#: Of more than two classes, a bend follows that is common to all of them (`_bend`).
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("logit-spline", {"strength": 0.1}),
    ("vector", {}),
)
#: Penalty on the squares of this bend, in nats, and the least probability of which a logarithm is taken.
RIDGE, LEAST = 0.1, 1e-12
#: Draws of labels, each after a refit of the map to labelled rows drawn with replacement.
DRAWS = 200
#: Labels are drawn for about so many cells (rows times classes) in all, and for so many at a time.
CELLS, AT_A_TIME = 200_000_000, 1 << 20
#: With fewer labelled rows that are predicted wrong (or right), intervals hold in 60 % of files instead of 95 %.
FEWEST = 5
#: Level of the test whether the scores are those of the labelled rows.
LEVEL = 0.05


class ExpectedValue(NamedTuple):
    """A metric before its labels come: its expectation, and an interval for the value that the labels will give."""

    value: float
    interval: Interval


@dataclass(frozen=True, eq=False, repr=False)
class Expected(Displayed):
    """Expected performance of rows without labels.

    Attributes
    ----------
    metrics : mapping of str to ExpectedValue
        By key of the metric; "f1" is that of the positive class of two, otherwise the mean over classes.
    confusion : ndarray, shape (K, K)
        Expected number of rows by true class (rows) and predicted class (columns); empty for confidences.
    classes : tuple of str
    rows : int
    labelled : int
        Number of labelled rows that the map was fitted on; 0 if it was given, or if the scores are taken as they are.
    right : int
        Number of labelled rows that are predicted right.
    moved : float
        P-value of the two-sample Kolmogorov-Smirnov test of the score (of the top label for more than two classes) between the
        rows and the labelled rows, of a cluster the first one; nan without labelled rows.
    outside : float
        Share of the rows whose score lies outside those of the labelled rows; nan without these.
    confidence : float
        Level of the intervals.
    clusters : bool
        Whether some rows belong to clusters, which the intervals do not take into account.
    """

    metrics: Mapping[str, ExpectedValue]
    confusion: FloatArray
    classes: tuple[str, ...]
    rows: int
    labelled: int
    right: int
    moved: float
    outside: float
    confidence: float
    clusters: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the contract of ``calviz expected --json``."""
        metrics = {
            key: {"value": e.value, "interval": list(e.interval)} for key, e in self.metrics.items()
        }
        return {"schema": 1, "metrics": metrics, "rows": self.rows}

    @property
    def assumption(self) -> str:
        """What has to hold for the estimates, in one sentence."""
        if self.labelled:
            return (
                "Holds if labels follow the scores as they did in the "
                f"{counted(self.labelled, 'labelled row')}; scores may be distributed otherwise."
            )
        return (
            "Holds if the probabilities are calibrated on these rows, which only labels can show."
        )

    @errors.claim("expected")
    def remarks(self) -> tuple[str, ...]:
        """Return the assumption, and what can be tested of it."""
        found = [self.assumption]
        few, what = min((self.right, "right"), (self.labelled - self.right, "wrong"))
        if self.labelled and few < FEWEST:
            found.append(
                f"Only {few} of the labelled rows {'is' if few == 1 else 'are'} predicted {what}: the intervals are too narrow "
                f"({FEWEST} are needed)."
            )
        if self.moved < LEVEL:
            found.append(
                f"The scores have moved since (Kolmogorov-Smirnov test, {p_value(self.moved)}): the map is used where fewer labels were."
            )
        if self.outside > 0.01:
            found.append(
                f"{100 * self.outside:.0f} % of the scores lie outside those of the labelled rows, where the map is a guess."
            )
        if self.clusters:
            found.append("The intervals are too narrow if rows of a cluster share their outcome.")
        return tuple(found)

    def summary(self) -> Summary:
        """Summarise the estimates and what they rest on."""
        return Summary(
            title=f"of {counted(self.rows, 'row')} without labels",
            header=("metric", "expected", f"{level_text(self.confidence)} interval"),
            rows=tuple(
                (_label(key), f"{e.value:.4f}", f"{e.interval.low:.4f} to {e.interval.high:.4f}")
                for key, e in self.metrics.items()
            ),
            notes=self.remarks(),
        )


def _label(key: str) -> str:
    return "F1" if key == "f1" else METRICS[key].label


@errors.claim(
    "expected",
    says="Before labels come, accuracy is expected to be ... (95 % interval)",
    chosen="nothing: metrics are fixed beforehand",
    adjusted="the map is refitted to labelled rows drawn with replacement, and labels are drawn from it",
)
def expected(
    data: Dataset | Profile | npt.ArrayLike,
    *,
    map: str | os.PathLike[str] | Mapping[str, Any] | BaseRecalibrator | None = None,
    labelled: Dataset | None = None,
    method: str | None = None,
    metrics: Iterable[str] = EXPECTED,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Expected:
    """Estimate the performance of rows before their labels come (confidence-based performance estimation).

    Parameters
    ----------
    data : array_like, Predictions, ConfidencePredictions or Profile
        Probabilities, shape (n, K), or of the positive class of two, shape (n,); labels, if there are any, are not looked at. The
        rows of a cell of a profile have its mean score.
    map : path, mapping or transformer, optional
        A fitted map, which is taken to be true; without it and `labelled`, the probabilities are.
    labelled : Predictions or ConfidencePredictions, optional
        Labelled rows of the same model, on which a map is fitted.
    method : str, optional
        Key of the recalibrator for `labelled`. If left out, `METHODS`; of more than two classes a bend follows with which accuracy,
        Brier score and NLL of the labelled rows are those that their labels have.
    metrics : iterable of str
        Keys of metrics.
    confidence : float
        Level of the intervals, which hold the value that the labels will give, not only its expectation.
    draws : int
        Number of draws of labels and of refits of the map.
    seed : int

    Raises
    ------
    OptionError, InputError, NotAvailable
        For both a map and labelled rows, for other classes than theirs, for probabilities that are none, and for labelled rows that
        are weighted or a profile.

    Notes
    -----
    With calibrated probabilities q of the classes, a row counts as K rows of the labels k = 1, ..., K with the weights q_k; metrics of
    these weighted rows are their expectations, up to the variance within ratios (CBPE, NannyML 2022; Guillory et al. 2021 for
    accuracy). Predicted classes and scores are those of the model, not those of the map.

    Examples
    --------
    >>> import calviz
    >>> e = calviz.expected([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], metrics=["accuracy"], draws=20)
    >>> round(e.metrics["accuracy"].value, 3)
    0.767
    """
    errors.check_level(confidence, "confidence")
    errors.check_whole("draws", draws, least=2)
    if map is not None and labelled is not None:
        raise OptionError("give 'map' or 'labelled', not both.")
    keys = tuple(METRICS[key].key for key in dict.fromkeys(metrics))
    rows = _unlabelled(data)
    if isinstance(map, str | os.PathLike):
        map = read_record(map)
    elif isinstance(map, BaseRecalibrator):
        map = map.to_dict()
    given = None if map is None else apply_map(rows, map)
    how: dict[str, Any] = {"method": method, "confidence": confidence, "draws": draws, "seed": seed}
    return expected_parts(rows, labelled, keys, given=given, **how)[0]


def expectation(rows: Dataset, labelled: Dataset, metric: str, reduction: str) -> float:
    """Return the value that `expected` gives, without the interval, whose refits take most of the time."""
    _check_labelled(rows, labelled)
    believed = _fitted(rows, labelled, None)[1]
    return float(_in_expectation(rows, _of_classes(believed), (metric,), reduction)[metric])


def expected_parts(
    rows: Dataset,
    labelled: Dataset | None,
    keys: tuple[str, ...],
    parts: Sequence[IntArray | slice] = (slice(None),),
    *,
    given: Dataset | None = None,
    reduction: str | None = None,
    method: str | None = None,
    confidence: float = 0.95,
    draws: int = 100,
    seed: int = 0,
) -> list[Expected]:
    """Estimate parts of the rows as `expected` does, by the same refits; of the rows under a map, if they are given."""
    if labelled is not None:
        _check_labelled(rows, labelled)
        fit, believed = _fitted(rows, labelled, method)
    else:
        fit, believed = None, rows if given is None else given
    pieces = [rows.take(part) if isinstance(part, np.ndarray) else rows for part in parts]
    # The losses of a profile are those of its labels: here its cells are rows that count many times.
    no_cells: dict[str, Any] = {c: None for c in ("cells", "class_cells") if hasattr(rows, c)}
    bare = [replace(piece, **no_cells) for piece in pieces]
    measures = [_measure(piece, keys, reduction) for piece in bare]
    # Not the stream by which rows may have been simulated: labels would follow it.
    rng = np.random.default_rng([seed, 1])
    cells = rows.n * _width(rows)
    draws = min(draws, max(CELLS // cells, 20))
    step = max(AT_A_TIME // cells, 1) if _width(rows) == 2 else 1
    drawn = []
    for start in range(0, draws, step):
        shares = []
        for k in range(start, min(start + step, draws)):
            checkpoint(f"draw {k + 1}")
            shares.append(_draw(_of_classes(believed if fit is None else fit(rng)), rows, rng))
        together = np.stack(shares, axis=-1)
        drawn.append(
            [measure(together[part]) for part, measure in zip(parts, measures, strict=True)]
        )
    whole = _of_classes(believed)
    estimates = []
    for i, (piece, own, part) in enumerate(zip(pieces, bare, parts, strict=True)):
        moved, outside = _moved(piece, labelled)
        confusion = _confusion(own, whole[part])
        value = _in_expectation(own, whole[part], keys, reduction) | _f1(confusion)
        one = Expected(
            metrics={
                key: _estimate(key, v, np.concatenate([some[i][key] for some in drawn]), confidence)
                for key, v in value.items()
            },
            confusion=confusion,
            classes=rows.class_names if isinstance(rows, Predictions) else (),
            rows=piece.n if rows.cells is None else round(np.asarray(piece.weights).sum()),
            labelled=0 if labelled is None else labelled.n,
            right=0 if labelled is None else int(Sample(labelled).top_scored.hit.sum()),
            moved=moved,
            outside=outside,
            confidence=confidence,
            clusters=any(d is not None and d.clusters is not None for d in (piece, labelled)),
        )
        estimates.append(one)
    return estimates


def _check_labelled(rows: Dataset, labelled: Dataset) -> None:
    if labelled.cells is not None:
        raise NotAvailable(
            "the map is fitted on single rows, and the labelled ones are a profile: fit it on the rows (calviz recalibrate "
            "--save-map), and give it as the map."
        )
    if labelled.weights is not None:
        raise NotAvailable("labelled rows must count alike, and these have weights.")
    if type(rows) is not type(labelled) or rows.n_classes != labelled.n_classes:
        raise InputError(
            "the labelled rows are of other classes",
            remedy="give labelled rows of the same model, with the same classes in the same order",
        )


def _estimate(key: str, value: float, drawn: FloatArray, confidence: float) -> ExpectedValue:
    """An expectation with the interval of the spread of the draws; what they are off on average adds to it, as a smooth map is off too."""
    has = drawn[np.isfinite(drawn)]
    if has.size < 2 or not math.isfinite(value):
        return ExpectedValue(value, Interval(math.nan, math.nan))
    half = t.ppf((1 + confidence) / 2, has.size - 1) * math.hypot(
        has.std(ddof=1), has.mean() - value
    )
    least, most = (0.0, 1.0) if key == "f1" else METRICS[key].bounds
    return ExpectedValue(value, Interval(max(value - half, least), min(value + half, most)))


def _unlabelled(data: Dataset | Profile | npt.ArrayLike) -> Dataset:
    """Return rows whose labels mean nothing."""
    if isinstance(data, Profile):
        return dataset_of(data)
    if isinstance(data, Predictions) or getattr(data, "kind", None) == "confidence":
        return data  # type: ignore[return-value]
    probs = np.asarray(data, dtype=np.float64)
    if probs.ndim not in (1, 2) or not len(probs):
        raise InputError(
            f"the probabilities have shape {probs.shape}, expected (rows, classes) or (rows,)"
        )
    return Predictions(probs=probs, labels=np.zeros(len(probs), dtype=np.int64))


def _fitted(rows: Dataset, labelled: Dataset, method: str | None) -> tuple[Any, Dataset]:
    """A function that refits the map to labelled rows drawn with replacement and applies it, and the rows under the map."""
    key, options = METHODS[_width(rows) > 2]
    spec, options = RECALIBRATORS[method or key], {} if method else options
    scores, labels = scores_of(labelled)
    check_fitting_rows(make(spec, labelled, options), labelled, labels)
    present, every = np.unique(labels), np.arange(labels.size)
    bend: FloatArray = np.zeros(4)

    def fit(at: IntArray | slice) -> Dataset:
        nonlocal bend
        fitted = make(spec, labelled, options)
        fitted.fit(scores[at], labels[at], **columns_to_fit(fitted, labelled, every[at]))
        record = fitted.to_dict()
        mapped = apply_map(rows, record)
        if method or not isinstance(mapped, Predictions) or mapped.n_classes == 2:
            return mapped
        # Each search starts where the last one ended.
        believed = _of_classes(apply_map(labelled, record))
        bend = _bend(_of_classes(labelled)[at], believed[at], labels[at], bend)
        return replace(mapped, probs=_bent(_of_classes(rows), _of_classes(mapped), bend))

    def refit(rng: np.random.Generator) -> Dataset:
        drawn = rng.integers(labels.size, size=labels.size)
        # A class that was not drawn is as good as forgotten by the map.
        return fit(drawn if np.unique(labels[drawn]).size == present.size else slice(None))

    return refit, fit(slice(None))


def _columns(probs: FloatArray) -> FloatArray:
    """What the bend adds to the logit of a class, shape (n, K, 4): log p, p, whether it is predicted, and a square of log p that ends straight."""
    log = np.log(np.maximum(probs, LEAST))
    top = np.arange(probs.shape[1]) == probs.argmax(axis=1)[:, None]
    return np.stack([log, probs, top, huber(4, log)], axis=-1)


def _bent(probs: FloatArray, mapped: FloatArray, bend: FloatArray) -> FloatArray:
    """Mapped probabilities, shape (n, K), after the bend."""
    out = np.empty(mapped.shape)

    def work(rows: slice) -> None:
        out[rows] = softmax(
            np.log(np.maximum(mapped[rows], LEAST)) + _columns(probs[rows]) @ bend, axis=1
        )

    for_row_blocks(mapped, work)
    return out


def _bend(probs: FloatArray, mapped: FloatArray, labels: IntArray, start: FloatArray) -> FloatArray:
    """Fit the bend by maximum likelihood, shape (4,).

    Where the likelihood is largest, the mean of each column over the labels is that over the believed probabilities: accuracy, Brier
    score and NLL of the labelled rows are then those believed, whatever the form of miscalibration.
    """
    n, logs = labels.size, np.log(np.maximum(mapped, LEAST))

    def sums(bend: FloatArray) -> FloatArray:
        def work(rows: slice) -> FloatArray:
            columns = _columns(probs[rows])
            q = softmax(logs[rows] + columns @ bend, axis=1)
            own = np.arange(len(q)), labels[rows]
            weighted = q[..., None] * columns
            mean = weighted.sum(axis=1)
            curvature = np.tensordot(weighted, columns, ((0, 1), (0, 1))) - mean.T @ mean
            gradient = (mean - columns[own]).sum(axis=0)
            return np.concatenate([[-np.log(q[own]).sum()], gradient, curvature.ravel()])

        return sum_over_blocks(probs, work) / n

    ridge = RIDGE / n

    def at(bend: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = np.split(sums(bend)[:5], [1])
        return float(value[0] + ridge * bend @ bend / 2), gradient + ridge * bend

    inverse = np.linalg.inv(sums(start)[5:].reshape(4, 4) + ridge * np.eye(4))
    options: Any = {"hess_inv0": (inverse + inverse.T) / 2, "gtol": 1e-5}
    return np.asarray(minimize(at, start, jac=True, method="BFGS", options=options).x)


def _width(data: Dataset) -> int:
    """Number of classes, of confidences wrong and right."""
    return data.n_classes if isinstance(data, Predictions) else 2


def _of_classes(data: Dataset) -> FloatArray:
    """Probabilities of the classes, or of wrong and right."""
    if isinstance(data, Predictions):
        return np.asarray(data.probs)
    return np.stack([1 - data.confidence, data.confidence], axis=1)


def _draw(probs: FloatArray, rows: Dataset, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Labels, one-hot, or of the cells of a profile the shares of the classes, shape (n, K)."""
    if rows.cells is not None:
        counts = np.asarray(rows.weights).astype(np.int64)
        share = rng.binomial(counts, probs[:, 1].clip(0, 1)) / counts
        return np.stack([1 - share, share], axis=1)
    edges = probs.cumsum(1)
    drawn = (edges < edges[:, -1:] * rng.random((len(probs), 1))).sum(1)
    return np.asarray(np.eye(probs.shape[1], dtype=np.uint8)[drawn.clip(max=probs.shape[1] - 1)])


def _labelled(rows: Dataset, labels: IntArray) -> Dataset:
    if isinstance(rows, Predictions):
        return replace(rows, labels=labels)
    return replace(rows, correct=labels.astype(bool))


def _of_each_class(rows: Dataset, shares: FloatArray | None) -> Dataset:
    """Each row once for each class, with the class as its label and its share, of shape (n, K), as its weight."""
    n, k = rows.n, _width(rows)
    each = rows.take(np.repeat(np.arange(n), k))
    if shares is not None:
        own = shares if rows.weights is None else rows.weights[:, None] * shares
        each = replace(each, weights=own.reshape(-1))
    return replace(_labelled(each, np.tile(np.arange(k), n)), clusters=None)


def _in_expectation(
    rows: Dataset, probs: FloatArray, keys: tuple[str, ...], reduction: str | None
) -> dict[str, Any]:
    """Metrics of the rows, each as a row of every class with its probability as the weight."""
    if rows.n * probs.shape[1] ** 2 > CELLS:
        # Rows of so many classes do not fit into memory; the mean of drawn labels is close.
        rng, measure = np.random.default_rng(0), _measure(rows, keys, reduction)
        drawn = [measure(_draw(probs, rows, rng)[..., None]) for _ in range(20)]
        return {key: np.mean([one[key] for one in drawn]) for key in keys}
    results = evaluate(_of_each_class(rows, probs), keys, reduction=reduction).metrics
    return {key: result.value for key, result in results.items()}


def _measure(
    rows: Dataset, keys: tuple[str, ...], reduction: str | None
) -> Callable[[FloatArray], dict[str, FloatArray]]:
    """A function of b draws of labels, of shape (n, K, b), that returns metrics of shape (b,)."""
    two, counts = _width(rows) == 2, slice(None) if rows.weights is None else rows.weights > 0
    if two:
        weighted = Weighted(Sample.of(_of_each_class(rows, None), reduction=reduction), keys)

    def measure(shares: FloatArray) -> dict[str, FloatArray]:
        # Of two classes, most metrics are computed for all draws at once, as weights of the rows of each class.
        found = weighted.values(shares[counts].reshape(-1, shares.shape[-1])) if two else {}
        each: dict[str, list[float]] = {key: [] for key in keys if key not in found}
        for one in np.moveaxis(shares, -1, 0) if each else ():
            drawn = _of_each_class(rows, one) if two else _labelled(rows, one.argmax(1))
            for key, result in evaluate(drawn, each, reduction=reduction).metrics.items():
                each[key].append(result.value)
        found |= {key: np.array(values) for key, values in each.items()}
        return found | _f1(_confusion(rows, shares))

    return measure


def _confusion(rows: Dataset, shares: FloatArray) -> FloatArray:
    """Number of rows by true and predicted class, shape (K, K, ...), from shares of the classes, (n, K, ...); empty for confidences."""
    if not isinstance(rows, Predictions):
        return np.empty((0, 0))
    k, weights = rows.n_classes, np.ones(rows.n) if rows.weights is None else rows.weights
    one: Any = csr_array((weights, rows.probs.argmax(1), np.arange(rows.n + 1)), shape=(rows.n, k))
    sums = one.T @ shares.reshape(rows.n, -1)
    return np.asarray(sums).reshape(k, *shares.shape[1:]).swapaxes(0, 1)


def _f1(confusion: FloatArray) -> dict[str, Any]:
    """F1 of the positive class of two; of more, the mean over classes that occur or are predicted."""
    if not confusion.size:
        return {}
    with np.errstate(invalid="ignore"):
        f1 = 2 * np.einsum("ii...->i...", confusion) / (confusion.sum(0) + confusion.sum(1))
    return {"f1": f1[1] if len(f1) == 2 else np.nanmean(f1, axis=0)}


def _moved(rows: Dataset, labelled: Dataset | None) -> tuple[float, float]:
    if labelled is None:
        return math.nan, math.nan
    here, there = (_of_classes(d) for d in (rows, labelled))
    one, other = (p[:, 1] if p.shape[1] == 2 else p.max(1) for p in (here, there))
    outside = (one < other.min()) | (one > other.max())
    if rows.cells is not None:
        return _moved_cells(one, rows, other), float(np.average(outside, weights=rows.weights))
    test = ks_2samp(one[_first_of_clusters(rows)], other[_first_of_clusters(labelled)])
    return float(test.pvalue), float(outside.mean())


def _first_of_clusters(data: Dataset) -> IntArray | slice:
    """Rows that are independent of each other."""
    if data.clusters is None:
        return slice(None)
    return np.asarray(np.unique(data.clusters.codes, return_index=True)[1])


def _moved_cells(score: FloatArray, rows: Dataset, other: FloatArray) -> float:
    """The Kolmogorov-Smirnov test of a profile, with all scores as coarse as its cells (asymptotic, at most so small with ties)."""
    assert rows.weights is not None
    n, m = rows.weights.sum(), other.size
    cells, cell = np.unique(np.floor(np.append(score, other) * FINE_CELLS), return_inverse=True)
    of_rows = np.bincount(cell[: score.size], rows.weights, minlength=cells.size) / n
    of_other = np.bincount(cell[score.size :], minlength=cells.size) / m
    largest = np.abs(np.cumsum(of_rows - of_other)).max()
    return float(kstwobign.sf(largest * math.sqrt(n * m / (n + m))))
