"""The automatic recalibrator: a mixture of methods weighted by cross-validation, or no change where nothing helps."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray, checkpoint, row_weights
from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED, RecalibratorSpec, recalibrator
from calviz.core.errors import CalvizError, OptionError
from calviz.core.probabilities import LOG_FLOOR, Scores, automatic_floor
from calviz.recalibrators import maps
from calviz.recalibrators.base import BaseRecalibrator, FlooredRecalibrator, check_part, rebuilt
from calviz.recalibrators.maps import DamagedField, Numbers, Program, Sizes, damaged, learned, plain

#: Held-out gains, in standard errors, from which the mixture is used in part, and in full. They may be slightly below 0, because
#: held-out maps are fitted to fewer rows than the final ones.
RAMP = (-0.6, 0.0)
#: Below `FEW_ROWS` rows, both limits rise by `FOR_FEW_ROWS` standard errors each time that the number of rows falls by a factor of 4:
#: what a mixture can gain does not depend on the number of rows, but what it can lose by fitting noise does.
FEW_ROWS, FOR_FEW_ROWS = 800, 1.2
#: Methods that are best in a smaller share of the resamples are dropped; a smaller part of the mixture is not used.
LEAST_SHARE = 0.01
#: Standard errors of the difference from the best method, in both scores, from which a method is not fitted to other folds, and the
#: number of held-out rows from which they are trusted.
FAR_BEHIND, RACE_ROWS = 4.0, 300
#: With fewer rows the model is left as it is.
LEAST_ROWS = 20
#: Seed of folds and resamples; a share of 1,000 resamples varies by about one percentage point between seeds.
SEED = 0


@recalibrator(
    key="auto",
    label="Automatic mixture",
    family="Automatic",
    confidence_only=True,
    reference="calviz; weights as in bootstrap model averaging (Buckland et al. 1997, section 2.2; Rubin 1981), held-out "
    "losses as in stacking (Wolpert 1992)",
    formula=r"(1 - \lambda)\, p + \lambda \sum_m w_m\, T_m(p)",
)
class AutomaticRecalibrator(FlooredRecalibrator):
    """A mixture of several methods, weighted by how often each is best on held-out rows; no change where the gain is noise.

    Each method, including no calibration, is cross-validated on the calibration rows. Its weight is the share of Bayesian bootstrap
    resamples of these rows in which it has the lowest held-out loss; log loss and Brier score contribute half of the weight each. How
    much of the mixture replaces the uncalibrated probabilities depends on the smaller of its gains in the two scores: all of it from 0
    standard errors, none below -0.6, and a proportional part between; with fewer than 800 rows both limits are higher, by 0.4 with 500
    rows and by 1.2 with 200. The gain is measured on rows that neither the methods nor the weights were fitted to. Row weights enter
    the fits, the losses and the gains. A method that is 4 standard errors behind the best one in both scores, after 300 held-out rows
    or more, is left out of the mixture, and not fitted to further folds.

    Parameters
    ----------
    combine : {"mixture", "one"}
        Whether to average the methods, or to use only the one that is best most often.
    caution : float
        Standard errors added to both limits.
    folds : int
        Number of cross-validation folds.
    floor : float, "auto" or None
        Zero floor of the methods that take logarithms, as in `TemperatureScaling`.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    weights_ : ndarray, shape (M,)
        Weights of `parts_`, which sum to 1.
    parts_ : list of transformers
        The fitted maps.
    evidence_ : dict
        Results on held-out rows: losses, shares of resamples in which it is best and seconds of every method, the gain of the
        mixture in both scores with standard errors, and how much of the mixture is used. Losses of a method that was left behind
        are estimated from its distance to the best one on the folds that it was fitted for.

    References
    ----------
    Buckland, Burnham & Augustin (1997), Model selection: an integral part of inference, Biometrics 53: weights are shares of
    bootstrap resamples (section 2.2). Rubin (1981), The Bayesian bootstrap, Annals of Statistics 9. Wolpert (1992), Stacked
    generalization, Neural Networks 5.
    """

    combine: Literal["mixture", "one"] = "mixture"
    caution: float = 0.0
    folds: int = 5
    weights_: FloatArray = learned()
    parts_: list[BaseRecalibrator] = learned()
    evidence_: dict[str, Any] = learned()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.caution < 0:
            raise OptionError(f"'caution' must be a number from 0 upwards, got {self.caution!r}.")
        if self.folds < 2:
            raise OptionError(f"'folds' must be at least 2, got {self.folds!r}.")

    def _takes_logarithms(self) -> bool:
        return False

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        """Choose the methods and fit them; `weights` holds the row weights, shape (n,), or None."""
        array = scores.array
        if labels.size < LEAST_ROWS:
            self._warn(
                f"{labels.size} calibration rows are too few to choose among methods, at least {LEAST_ROWS} are needed: the model "
                "is left as it is."
            )
            self.weights_, self._keys = np.ones(1), [UNCALIBRATED]
            self.evidence_ = {"rows": 0, "taken": 0.0, "gain": {}, "methods": {}, "failed": {}}
            self._fit_parts(array, labels, weights)
            return
        rows = order_of_rows(scores.block(slice(None)), labels)[rows_to_choose_on(labels.size)]
        own = row_weights(weights, labels.size)[rows]
        own = own / own.mean()
        tried, held_out = self._held_out(array[rows], labels[rows], own)
        self._choose(tried, held_out, own)
        self._fit_parts(array, labels, weights)

    def _candidates(self, classes: int) -> list[RecalibratorSpec]:
        """Return the uncalibrated model, and every method that is tried with this number of classes."""
        return [s for s in RECALIBRATORS if s.key == UNCALIBRATED or s.mixed_up_to >= classes]

    def _held_out(
        self, array: FloatArray, labels: IntArray, weights: FloatArray
    ) -> tuple[list[RecalibratorSpec], list[HeldOut]]:
        """Return the methods that could be fitted on all folds, and their held-out probabilities for each division into folds."""
        rng = np.random.default_rng(SEED)
        specs = self._candidates(array.shape[1])
        self._seconds = dict.fromkeys((s.key for s in specs), 0.0)
        self._failed: dict[str, str] = {}
        self._behind: dict[str, tuple[list[str], FloatArray]] = {}
        divisions = []
        for _ in range(2 if labels.size < TWICE_BELOW else 1):
            fold_of = shuffled_folds(labels, min(self.folds, labels.size), rng)
            folds: MappedFolds = []
            for fold in range(fold_of.max() + 1):
                held_out, others = np.flatnonzero(fold_of == fold), fold_of != fold
                fitting = array[others], labels[others], weights[others]
                folds.append((held_out, self._mapped(specs, fitting, array[held_out])))
                self._leave_behind(folds, labels, weights)
            divisions.append(folds)
        tried = [s for s in specs if s.key not in self._failed]
        return tried, [
            HeldOut.of(
                [(rows, [p.get(s.key, p[UNCALIBRATED]) for s in tried]) for rows, p in folds],
                labels,
            )
            for folds in divisions
        ]

    def _leave_behind(self, folds: MappedFolds, labels: IntArray, weights: FloatArray) -> None:
        """Add the methods that are clearly worse than the best one on the folds of a division so far to `_behind`.

        They are not fitted to other folds, where the uncalibrated model takes their place: in no resample will they be best. What is
        kept of each are the best methods in both scores, and its mean losses minus theirs on the same rows.
        """
        rows = np.concatenate([rows for rows, _ in folds])
        if rows.size < RACE_ROWS:
            return
        keys = [key for key in folds[-1][1] if key not in self._failed]
        of_keys = [
            np.concatenate([row_losses(probs[key], labels[at]) for at, probs in folds], axis=1)
            for key in keys
        ]
        losses = np.stack(of_keys, axis=-1) * (weights[rows] / weights[rows].mean())[:, None]
        best = losses.mean(axis=1).argmin(axis=-1)
        gaps = losses - np.take_along_axis(losses, best[:, None, None], axis=-1)
        gap, error = gaps.mean(axis=1), gaps.std(axis=1) / np.sqrt(rows.size)
        for at in np.flatnonzero((gap > FAR_BEHIND * error).all(axis=0)):
            if keys[at] != UNCALIBRATED:
                self._behind[keys[at]] = [keys[b] for b in best], gap[:, at]

    def _mapped(
        self, specs: list[RecalibratorSpec], fitting: tuple[Any, ...], array: FloatArray
    ) -> dict[str, FloatArray]:
        """Return the probabilities of some rows by each method in the race, fitted to others: scores, labels and weights."""
        probs: dict[str, FloatArray] = {}
        scores, labels, _ = fitting
        is_chosen = self.floor == "auto" and self.input == "probabilities"
        floor = automatic_floor(scores, labels) if is_chosen else None
        for spec in [s for s in specs if s.key not in {*self._failed, *self._behind}]:
            checkpoint(f"cross-validating {spec.label}")
            started = time.perf_counter()
            part = self._make(spec)
            try:
                part._fit_checked(scores, labels, part._check_weights(fitting[2], scores), floor)
                probs[spec.key] = part._transform_checked(array)
            except CalvizError as error:
                self._failed[spec.key] = str(error)
            self._seconds[spec.key] += time.perf_counter() - started
        return probs

    def _choose(
        self, tried: list[RecalibratorSpec], held_out: list[HeldOut], row_weights: FloatArray
    ) -> None:
        """Set the weights of the methods, scaled by how much of their mixture is used, and `evidence_`."""
        rng = np.random.default_rng(SEED)
        losses = np.mean([division.losses for division in held_out], axis=0)
        # Weights have a mean of 1, so that plain means of weighted losses are weighted means.
        losses *= row_weights[:, None]
        means, keys = losses.mean(axis=1), [spec.key for spec in tried]
        # Those that were best may be left behind later.
        for key, (best, gap) in reversed(self._behind.items()):
            if key in keys:
                # A loss that no mean of others reaches.
                losses[:, :, keys.index(key)] = 1e6
            if {key, *best} <= set(keys):
                means[:, keys.index(key)] = means[[0, 1], [keys.index(b) for b in best]] + gap
        shares = best_shares(losses, rng)
        weights = self._weights(shares)

        def weights_without(rows: BoolArray) -> FloatArray:
            # Resamples behind the weights of each fold under which the gain is measured.
            return self._weights(best_shares(losses[:, ~rows], rng, 200))

        gains = [
            division.gains([weights_without(division.fold == f) for f in division.folds])
            for division in held_out
        ]
        row_gains = np.mean(gains, axis=0)
        gain = row_gains @ row_weights / row_weights.size
        error = (row_weights * (row_gains - gain[:, None])).std(axis=1) / np.sqrt(row_weights.size)
        needed = RAMP[0] + extra_standard_errors(row_weights.size) + self.caution
        used_share = self._used_share(gain, error, needed)
        weights *= used_share
        weights[0] += 1 - used_share
        used = np.flatnonzero(weights)
        self.weights_ = weights[used]
        self._keys = [tried[i].key for i in used]
        self.evidence_ = {
            "rows": int(row_gains.shape[1]),
            "taken": used_share,
            "counts_from": needed,
            "gain": {
                score: {"mean": float(gain[at]), "standard_error": float(error[at])}
                for at, score in enumerate(_NAMES)
            },
            "methods": {
                spec.key: {
                    **{score: float(means[at, i]) for at, score in enumerate(_NAMES)},
                    **{f"best_{score}": float(shares[at, i]) for at, score in enumerate(_NAMES)},
                    "seconds": self._seconds[spec.key],
                }
                for i, spec in enumerate(tried)
            },
            "failed": dict(self._failed),
        }

    def _weights(self, shares: FloatArray) -> FloatArray:
        """Weights of the methods, shape (M,), from the shares of resamples in which each is best, shape (2, M)."""
        mean = shares.mean(axis=0)
        if self.combine == "one":
            return np.asarray(np.arange(mean.size) == mean.argmax(), dtype=np.float64)
        weights = np.where(mean < LEAST_SHARE, 0.0, mean)
        return np.asarray(weights / weights.sum())

    def _used_share(self, gain: FloatArray, error: FloatArray, needed: float) -> float:
        """Share of the mixture that is used: above 0 where the gains in both scores exceed `needed` standard errors."""
        if not gain.any():  # the mixture equals the model
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            in_errors = np.where(error > 0, gain / error, np.sign(gain) * np.inf)
        least = float(np.nan_to_num(in_errors, nan=0.0).min())
        share = float(np.clip((least - needed) / (RAMP[1] - RAMP[0]), 0, 1))
        return share if share >= LEAST_SHARE else 0.0

    def _fit_parts(self, array: FloatArray, labels: IntArray, weights: FloatArray | None) -> None:
        self.parts_ = []
        for key in self._keys:
            checkpoint(f"fitting {RECALIBRATORS[key].label} on all rows")
            self.parts_.append(self._make(RECALIBRATORS[key]).fit(array, labels, weights))
        self._warn_of_parts(*self.parts_)

    def _make(self, spec: RecalibratorSpec) -> Any:
        part = spec.make_with(input=self.input, floor=self.floor)
        part.rows_each = self.rows_each
        return part

    def _transform(self, scores: Scores, out: FloatArray) -> None:
        out[:] = 0
        for weight, part in zip(self.weights_, self.parts_, strict=True):
            mapped = part._transform_checked(scores.array)
            mapped *= mapped.dtype.type(weight)
            out += mapped

    def describe(self) -> dict[str, Any]:
        """Return what was chosen, why, at what cost, and the fitted parameters of every part."""
        return {
            "chosen": {
                p.key: round(float(w), 4) for w, p in zip(self.weights_, self.parts_, strict=True)
            },
            "why": self.reason,
            **plain(self.evidence_),
            "parts": {part.key: part.describe() for part in self.parts_},
        }

    @property
    def reason(self) -> str:
        """What was chosen and why, in one or two sentences."""
        evidence = self.evidence_
        gain = evidence["gain"]
        gains = " and ".join(
            f"{_NAMES[score]} by {g['mean']:.4f} (standard error {g['standard_error']:.4f})"
            for score, g in gain.items()
        )
        if not gain:
            return "The model is left as it is: there are too few calibration rows to choose among methods."
        tried = len(evidence["methods"]) - 1
        seconds = sum(m["seconds"] for m in evidence["methods"].values())
        cost = f"{tried} methods, {self.folds} folds of {evidence['rows']:,} rows, {seconds:.2g} s."
        if evidence["taken"] == 0:
            needed = evidence.get("counts_from", 0)  # missing in maps saved by older versions
            shortfall = (
                f"is not enough: both have to be above {needed:.1f} standard errors"
                if needed > 0
                else "is no gain in both scores"
            )
            return f"The model is left as it is: on held-out rows the best mixture lowers {gains}, which {shortfall}. {cost}"
        chosen = ", ".join(
            f"{100 * w:.0f} % {RECALIBRATORS[part.key].label}"
            for w, part in sorted(zip(self.weights_, self.parts_, strict=True), key=lambda p: -p[0])
        )
        used = "" if evidence["taken"] == 1 else f" {100 * evidence['taken']:.0f} % of it is taken."
        return f"{chosen}: on held-out rows the mixture lowers {gains}.{used} {cost}"

    def _saved(self) -> dict[str, Any]:
        return {
            "weights": plain(self.weights_),
            "parts": [part.to_dict() for part in self.parts_],
            "evidence": plain(self.evidence_),
        }

    def _read(self, saved: Any) -> None:
        read = maps.read_fields(_SAVED, saved, self.key, {})
        self.weights_, self.evidence_ = read["weights"], read["evidence"]
        self.parts_ = [rebuilt(part) for part in read["parts"]]
        for part in self.parts_:
            check_part(self, part, self.input)
        if len(self.parts_) != self.weights_.size:
            raise damaged(
                self.key, f"it has {self.weights_.size} 'weights' for {len(self.parts_)} maps"
            )

    def _program(self, name: str) -> Program:
        return Program.mean(
            [
                (float(w), part._program(f"{name}_{at}"))
                for at, (w, part) in enumerate(zip(self.weights_, self.parts_, strict=True))
            ]
        )


def extra_standard_errors(rows: int) -> float:
    """Standard errors by which the limits in `RAMP` rise with this number of rows."""
    return FOR_FEW_ROWS * max(0.0, math.log(FEW_ROWS / rows, 4))


# ---- Rows and folds


#: Largest number of rows to choose on: more would not improve the choice.
MOST_ROWS = 20_000
#: Below this many rows, they are divided into folds twice: the division affects the choice, and fits take milliseconds.
TWICE_BELOW = 2_000


def order_of_rows(probs: FloatArray, labels: IntArray) -> IntArray:
    """Return an order of the rows, shape (n,), that depends neither on their order in the file nor on the numbering of the classes.

    Parameters
    ----------
    probs : ndarray of float, shape (n, K)
    labels : ndarray of int, shape (n,)
    """
    keys = (np.vecdot(probs, probs), probs.max(axis=1), probs[np.arange(labels.size), labels])
    # Rounded, because the same row may be given in single precision, or as logits with another constant.
    return np.lexsort([np.round(key.astype(np.float64), 6) for key in keys])


def rows_to_choose_on(rows: int) -> IntArray:
    """Return at most `MOST_ROWS` evenly spaced positions among this many ordered rows."""
    return np.linspace(0, rows - 1, min(rows, MOST_ROWS)).astype(np.intp)


def shuffled_folds(labels: IntArray, folds: int, rng: np.random.Generator) -> IntArray:
    """Return the fold of each row, shape (n,): the rows of every class are shuffled and dealt out in turn.

    Folds that were stratified by score as well would be alike in their noise too, and a map that follows noise
    would seem to generalise.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
    folds : int
    rng : Generator
    """
    key = rng.random(labels.size)
    fold = np.empty(labels.size, dtype=np.intp)
    for k in np.unique(labels):
        rows = np.flatnonzero(labels == k)
        rows = rows[np.argsort(key[rows])]
        first = int(folds * key[rows[0]] * rows.size)  # random, whatever the class number
        fold[rows] = (first + np.arange(rows.size)) % folds
    return fold


# ---- Held-out losses


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out probabilities of M methods on n rows, by maps fitted to the other folds; the first method is the uncalibrated model.

    Attributes
    ----------
    true_probs : ndarray, shape (n, M)
        Probability of the true class.
    products : ndarray, shape (n, M, M)
        Inner products of the probabilities of every pair of methods, which the Brier score of a mixture needs.
    fold : ndarray of int, shape (n,)
        The fold that each row was held out in.
    """

    true_probs: FloatArray
    products: FloatArray
    fold: IntArray

    @classmethod
    def of(cls, parts: Sequence[tuple[IntArray, list[FloatArray]]], labels: IntArray) -> HeldOut:
        """Summarise held-out probabilities.

        Parameters
        ----------
        parts : sequence of (ndarray of int, shape (m,), sequence of ndarray, shape (m, K))
            Rows of every fold, and their probabilities by each method.
        labels : ndarray of int, shape (n,)
        """
        n, methods = labels.size, len(parts[0][1])
        true_probs, fold = np.empty((n, methods)), np.empty(n, dtype=np.intp)
        products = np.empty((n, methods, methods))
        for number, (rows, probs) in enumerate(parts):
            fold[rows] = number
            at = np.arange(rows.size)
            for i, block in enumerate(probs):
                true_probs[rows, i] = block[at, labels[rows]]
                for j in range(i + 1):
                    inner = np.vecdot(block, probs[j]).astype(np.float64)
                    products[rows, i, j] = products[rows, j, i] = inner
        return cls(true_probs, products, fold)

    @property
    def folds(self) -> range:
        """Numbers of the folds."""
        return range(int(self.fold.max()) + 1)

    @property
    def losses(self) -> FloatArray:
        """Log loss and Brier score (summed over the classes) of every row and method, shape (2, n, M)."""
        return _losses(self.true_probs, np.einsum("nmm->nm", self.products))

    def gains(self, weights: Sequence[FloatArray]) -> FloatArray:
        """Return the gain of mixtures over the first method in both losses, per row, shape (2, n).

        Parameters
        ----------
        weights : sequence of ndarray, shape (M,)
            Weights of the mixture of each fold, found on the other folds.
        """
        w = np.array(weights)[self.fold]
        mixed = np.vecdot(self.true_probs, w)
        squares = np.einsum("nij,ni,nj->n", self.products, w, w, optimize=True)
        return np.asarray(self.losses[:, :, 0] - _losses(mixed, squares))


#: Rows of each fold, and their held-out probabilities by the key of the method.
MappedFolds = list[tuple[IntArray, dict[str, FloatArray]]]


def row_losses(probs: FloatArray, labels: IntArray) -> FloatArray:
    """Return log loss and Brier score (summed over the classes) of every row, shape (2, n), from probabilities, shape (n, K)."""
    true_probs = probs[np.arange(labels.size), labels].astype(np.float64)
    return _losses(true_probs, np.vecdot(probs, probs).astype(np.float64))


def _losses(true_probs: FloatArray, squares: FloatArray) -> FloatArray:
    return np.stack([-np.log(np.maximum(true_probs, LOG_FLOOR)), squares - 2 * true_probs + 1])


#: Bayesian bootstrap resamples, and how many are drawn at once.
RESAMPLES, AT_ONCE = 1_000, 50


def best_shares(
    losses: FloatArray, rng: np.random.Generator, resamples: int = RESAMPLES
) -> FloatArray:
    """Return the share of Bayesian bootstrap resamples in which each method has the lowest mean loss, shape (S, M).

    Tied methods share a resample equally.

    Parameters
    ----------
    losses : ndarray, shape (S, n, M)
        Losses by S scores, which are resampled together.
    rng : Generator
    resamples : int
    """
    _, n, methods = losses.shape
    shares = np.zeros((losses.shape[0], methods))
    for _ in range(resamples // AT_ONCE):
        # Exponential weights, divided by their sum, are uniform on the simplex (Rubin 1981); a comparison does not need the division.
        means = rng.standard_exponential((AT_ONCE, n)) @ losses
        lowest = means.min(axis=-1, keepdims=True)
        ties = means <= lowest + 1e-12 * np.abs(lowest)
        shares += (ties / ties.sum(axis=-1, keepdims=True)).sum(axis=1)
    return np.asarray(shares / (resamples // AT_ONCE * AT_ONCE))


# ---- Saved evidence


_NAMES = {"nll": "the log loss", "brier": "the Brier score"}


class _Parts:
    """Saved maps, in a list."""

    def read(self, value: Any, sizes: Sizes) -> list[Any]:
        """Return the saved maps as they are."""
        if not isinstance(value, list):
            raise DamagedField("must be a list of maps")
        return value


class _Evidence:
    """`evidence_`, of which `reason` needs these numbers; maps saved by older versions have fewer others."""

    def read(self, value: Any, sizes: Sizes) -> dict[str, Any]:
        """Return the evidence as it is."""
        number, whole = Numbers(least=0), "lacks what the choice was based on"
        try:
            number.read(value["rows"], {})
            Numbers(least=0, most=1).read(value["taken"], {})
            Numbers().read(value.get("counts_from", 0), {})
            for gain in value["gain"].values():
                Numbers().read(gain["mean"], {})
                number.read(gain["standard_error"], {})
            for method in value["methods"].values():
                number.read(method["seconds"], {})
            if set(value["gain"]) not in ({*()}, {*_NAMES}) or not isinstance(
                value["failed"], dict
            ):
                raise DamagedField(whole)
        except (KeyError, TypeError, AttributeError):
            raise DamagedField(whole) from None
        return dict(value)


_SAVED = maps.fields(
    weights=Numbers(("M",), least=0, total=1), parts=_Parts(), evidence=_Evidence()
)
