"""A judge against people: what its verdicts are worth where some rows have a human label, and the rate corrected by these."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from calviz.comparison.fitting import apply_map, assign_parts, check_fitting_rows, make, scores_of
from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.claims import claim
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import InputError, NotAvailable, OptionError, check_level, check_whole
from calviz.core.p_values import at_most, benjamini_hochberg, wilson
from calviz.core.predictions import Predictions
from calviz.core.row_columns import Factor
from calviz.core.words import counted, level_text, p_value, percent, points, shorten
from calviz.data.judge_columns import JudgeColumns, yes_or_score
from calviz.sample.error_bars import Interval
from calviz.sample.metric_results import Displayed, Summary

#: From this score on the judge says yes.
CUTOFF = 0.5
#: Rows that the variance counts beside the labelled ones, in each cell of judge and human: few labels show too little spread.
HALF = 0.5
#: Level of the tests, and false discovery rate over the groups.
LEVEL = 0.05
#: Draws for the p-value that error rates are the same in all groups.
DRAWS = 9_999
#: More groups than this are not compared in pairs; columns with more values hold names rather than groups.
MOST_COMPARED, MOST_GROUPS = 12, 1_000
#: Folds of the labelled rows whose maps recalibrate each other.
FOLDS = 5
#: Share of the next labels that is drawn alike from all rows, so that a wrong idea of where the judge errs costs little.
ALIKE = 0.5

Method = Literal["ppi", "human"]
Side = Literal["higher", "lower", "tied"]


class Estimate(NamedTuple):
    """A rate with its interval; `error` is the large-sample standard error."""

    value: float
    interval: Interval
    error: float = math.nan

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.interval.high - self.interval.low

    def to_dict(self) -> dict[str, Any]:
        """Value and interval as plain values."""
        return {"value": self.value, "interval": list(self.interval)}


class Next(NamedTuple):
    """Rows to label next, shape (k,), and for all rows the chance of being labelled by then, shape (n,), nan without a verdict."""

    rows: IntArray
    chance: FloatArray


@dataclass(frozen=True)
class RateDifference:
    """The corrected rate of one group minus that of another.

    Attributes
    ----------
    first, second : str
    naive : float
        The difference that the judge shows.
    value : float
    interval : Interval
        Not adjusted.
    adjusted : Interval
        Wide enough for all pairs together (Bonferroni).
    verdict : {"higher", "lower", "tied"}
        Of the first against the second, by `adjusted`.
    """

    first: str
    second: str
    naive: float
    value: float
    interval: Interval
    adjusted: Interval

    @property
    def verdict(self) -> Side:
        """Which side of 0 the adjusted interval is on."""
        return "higher" if self.adjusted.low > 0 else "lower" if self.adjusted.high < 0 else "tied"

    @claim(
        "judge-difference",
        says="The corrected rate of a is higher than that of b, by 7.1 points (95 % interval 2.0 to 12.1)",
        chosen="all pairs of groups",
        adjusted="Bonferroni over the pairs; each group is corrected by its own labels",
    )
    def sentence(self) -> str:
        """Say which is higher, if either is."""
        one, other = shorten(self.first), shorten(self.second)
        by = f"({points(self.interval.low, plus=True)} to {points(self.interval.high, plus=True)})"
        if self.verdict == "tied":
            return f"'{one}' and '{other}' are not told apart: {points(self.value, plus=True)} points {by}."
        return f"'{one}' has a {self.verdict} corrected rate than '{other}': {points(self.value, plus=True)} points {by}."


@dataclass(frozen=True)
class JudgedGroup:
    """What the labels of a group say.

    Attributes
    ----------
    rows, labelled : int
    naive : Estimate
    corrected, sensitivity, specificity : Estimate or None
        None without labels that tell it.
    bias : float
        Naive rate minus that of people, on the labelled rows; nan without any.
    p_value, adjusted : float
        That there is no bias: exact McNemar test, and adjusted for all groups (Benjamini & Hochberg); nan without labels.
    """

    rows: int
    labelled: int
    naive: Estimate
    corrected: Estimate | None
    sensitivity: Estimate | None
    specificity: Estimate | None
    bias: float
    p_value: float
    adjusted: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; what is not told is None."""
        return {
            key: value.to_dict() if isinstance(value, Estimate) else value
            for key, value in vars(self).items()
        }


@dataclass(frozen=True, eq=False, repr=False)
class Judged(Displayed):
    """A judge's verdicts, corrected by the human labels of some of them.

    Attributes
    ----------
    score : ndarray, shape (n,)
        What the judge says, in [0, 1].
    human : ndarray, shape (n,)
        0 or 1, nan without a label.
    by : Factor or None
        The group of each row.
    chance : ndarray, shape (n,), or None
        Probability of each row to be labelled; None if all have the same.
    event : str
        What the rate is of, as the column says it ("yes").
    kept : ndarray of bool, shape (m,)
        Which of the given rows have a verdict of the judge; only these n rows count.
    """

    score: FloatArray
    human: FloatArray
    by: Factor | None
    chance: FloatArray | None
    confidence: float
    kept: BoolArray
    event: str = "yes"
    by_name: str = "group"

    # ---- What is looked at

    @property
    def rows(self) -> int:
        """Number of rows with a verdict of the judge."""
        return self.score.size

    @cached_property
    def looked(self) -> BoolArray:
        """Mask of the rows with a human label, shape (n,)."""
        return ~np.isnan(self.human)

    @cached_property
    def labelled(self) -> int:
        """Number of rows with a human label."""
        return int(self.looked.sum())

    @property
    def predictions(self) -> Predictions:
        """The labelled rows, with the judge's score as their probability: all that calviz measures applies."""
        at = self.looked
        groups = {} if self.by is None else {self.by_name: self.by.take(at)}
        return Predictions(
            probs=self.score[at],
            labels=self.human[at].astype(np.int64),
            groups=groups,
            name="judge",
        )

    @cached_property
    def _sums(self) -> _Sums:
        return _Sums.of(self.score, self.human, self.chance)

    # ---- Rates

    @cached_property
    def naive(self) -> Estimate:
        """Mean of what the judge says."""
        return _naive(self.score, self.confidence)

    @cached_property
    def corrected(self) -> dict[str, Estimate]:
        """The rate by Rogan and Gladen, by PPI++, and by the labels alone."""
        sums, level = self._sums, self.confidence
        return {
            "rogan-gladen": _rogan_gladen(sums, float((self.score >= CUTOFF).mean()), level),
            "ppi": sums.tuned(level),
            "human": sums.plain(level),
        }

    @property
    def recommended(self) -> Method:
        """PPI++, unless the labels alone have the shorter interval, as where the judge is no better than chance."""
        return "ppi" if self.corrected["ppi"].width < self.corrected["human"].width else "human"

    @cached_property
    def _agreement(self) -> dict[str, Estimate]:
        return _agreement(self._sums.cells, self.confidence)

    @property
    def sensitivity(self) -> Estimate:
        """Share of the rows that people call yes of which the judge says yes."""
        return self._agreement["sensitivity"]

    @property
    def specificity(self) -> Estimate:
        """Share of the rows that people call no of which the judge says no."""
        return self._agreement["specificity"]

    @property
    def agreement(self) -> Estimate:
        """Share of the rows where judge and people say the same."""
        return self._agreement["agreement"]

    @property
    def kappa(self) -> Estimate:
        """Cohen's kappa."""
        return self._agreement["kappa"]

    # ---- Groups

    @cached_property
    def groups(self) -> dict[str, JudgedGroup]:
        """By value of `by`: the same for the rows of each group, by their own labels."""
        found = dict(self._of_groups())
        tested = [name for name, group in found.items() if not math.isnan(group.p_value)]
        adjusted = benjamini_hochberg([found[name].p_value for name in tested])
        for name, value in zip(tested, adjusted.tolist(), strict=True):
            found[name] = replace(found[name], adjusted=value)
        return found

    @cached_property
    def _rows_of(self) -> dict[str, IntArray]:
        if self.by is None:
            return {}
        order = np.argsort(self.by.codes, kind="stable")
        ends = np.cumsum(np.bincount(self.by.codes, minlength=len(self.by.levels)))[:-1]
        return dict(zip(self.by.levels, np.split(order, ends), strict=True))

    @cached_property
    def _sums_of(self) -> dict[str, _Sums]:
        chance = self.chance
        return {
            name: _Sums.of(self.score[at], self.human[at], None if chance is None else chance[at])
            for name, at in self._rows_of.items()
        }

    def _of_groups(self) -> Iterator[tuple[str, JudgedGroup]]:
        for name, at in self._rows_of.items():
            sums = self._sums_of[name]
            (tp, fn), (fp, tn) = sums.cells
            told = _agreement(sums.cells, self.confidence)
            yield (
                name,
                JudgedGroup(
                    rows=at.size,
                    labelled=sums.n,
                    naive=_naive(self.score[at], self.confidence),
                    corrected=sums.tuned(self.confidence) if sums.n else None,
                    sensitivity=told["sensitivity"] if tp + fn else None,
                    specificity=told["specificity"] if fp + tn else None,
                    bias=sums.bias,
                    p_value=sums.p_of_bias,
                    adjusted=math.nan,
                ),
            )

    @cached_property
    def differ(self) -> float:
        """P-value that the judge's error rates are the same in all groups; nan without labels that tell it.

        Labels of people are given, groups are permuted among the rows of the same label: the statistic is the sum of both chi-squares.
        """
        if self.by is None or self.chance is not None:
            return math.nan
        at = self.looked
        says, is_yes, group = self.score[at] >= CUTOFF, self.human[at] == 1, self.by.codes[at]
        parts = [
            _by_group(says[rows] != is_yes[rows], group[rows], len(self.by.levels))
            for rows in (is_yes, ~is_yes)
        ]
        return _p_of_tables([part for part in parts if part is not None])

    @cached_property
    def differences(self) -> tuple[RateDifference, ...]:
        """Corrected rates of all pairs of groups with labels; none for more than `MOST_COMPARED` groups."""
        names = [name for name, group in self.groups.items() if group.corrected is not None]
        pairs = list(combinations(names, 2)) if len(names) <= MOST_COMPARED else []
        levels = (self.confidence, 1 - (1 - self.confidence) / max(len(pairs), 1))
        own = [{name: self._sums_of[name].tuned(level) for name in names} for level in levels]
        return tuple(
            RateDifference(
                a,
                b,
                self.groups[a].naive.value - self.groups[b].naive.value,
                own[0][a].value - own[0][b].value,
                *(_minus(rates[a], rates[b]) for rates in own),
            )
            for a, b in pairs
        )

    # ---- The judge recalibrated; more labels

    def recalibrated(self, method: str = "platt", folds: int = FOLDS) -> Judged:
        """Return the judge with its score recalibrated on the labelled rows, by any recalibrator; the rates are of that.

        A labelled row has the map of the other folds, other rows have the mean of all maps: so the map has not seen the labels that
        correct it (cross-prediction, Zrnic & Candes 2024).

        Raises
        ------
        NotAvailable, OptionError
            With fewer than two labels of a class; for an unknown method.
        """
        every = Predictions(probs=self.score, labels=np.nan_to_num(self.human).astype(np.int64))
        spec, looked = RECALIBRATORS[method], np.flatnonzero(self.looked)
        check_fitting_rows(make(spec, every, {}), self.predictions, every.labels[looked])
        rarer = int(np.bincount(every.labels[looked]).min())
        if rarer < 2:
            raise NotAvailable("recalibrating the judge needs two human labels of each class.")
        folds = min(folds, rarer)
        part = assign_parts(every.labels[looked], folds, np.random.default_rng(0))
        total, own = np.zeros(self.rows), np.empty(looked.size)
        for fold in range(folds):
            scores, labels = scores_of(every.take(looked[part != fold]))
            mapped = apply_map(every, make(spec, every, {}).fit(scores, labels).to_dict())
            assert isinstance(mapped, Predictions)
            score = np.asarray(mapped.probs)[:, 1]
            total += score / folds
            own[part == fold] = score[looked[part == fold]]
        total[looked] = own
        return replace(self, score=total.clip(0, 1))

    def width(self, labels: int) -> float:
        """Expected width of the corrected interval with so many labels, drawn alike from all rows.

        The variance is that of a mean of n labels of which the judge explains a part r: ``(1 - r) / n + r / N``, in units of one row's.
        """
        value, now, n = self.corrected["ppi"].value, self._sums.effective, self.labelled
        if n >= self.rows:
            explained = 0.0
        else:
            explained = min(max((1 / n - 1 / now) / (1 / n - 1 / self.rows), 0.0), 1.0)
        number = 1 / ((1 - explained) / labels + explained / self.rows)
        low, high = wilson(value, number, self.confidence)
        return high - low

    @claim(
        "judge-labels",
        says="About 240 labels are needed for an interval of 10 points",
        chosen="the smallest number of labels",
        adjusted="nothing: the part that the judge explains is estimated once, so that the number is about right, not safe",
    )
    def needed_sentence(self, width: float) -> str:
        """Say how many labels an interval of this width needs."""
        labels, what = self.needed(width), f"an interval of {points(width)} points"
        if labels is None:
            return f"Labels of all {self.rows:,} rows do not give {what}."
        if labels <= self.labelled:
            return f"The {counted(self.labelled, 'label')} are enough for {what}."
        return f"About {counted(labels, 'label')} are needed for {what}, {labels - self.labelled:,} more."

    def needed(self, width: float) -> int | None:
        """Number of labels for an interval of this width; None if labels of all rows give a wider one."""
        if not 0 < width < 1:
            raise OptionError(f"'width' must lie between 0 and 1, got {width!r}.")
        low, high = 1, self.rows
        if self.width(high) > width:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.width(middle) <= width else (middle + 1, high)
        return low

    def next(self, rows: int, seed: int = 0) -> Next:
        """Draw rows to label next, more of them where judge and people may differ most.

        Rows are drawn with probabilities proportional to the standard deviation of the labels among rows of the same verdict, or of the
        same fifth of the score, mixed with equal ones. Give the `chance` that is returned with the labels: ``judge(..., chance=chance)``.

        References
        ----------
        Neyman 1934; Zrnic & Candes 2024 (active statistical inference), with uniform sampling mixed in.
        """
        free = np.flatnonzero(~self.looked)
        check_whole("rows", rows, least=1)
        if rows > free.size:
            raise OptionError(
                f"'rows' must be at most the {free.size:,} rows without a label, got {rows:,}."
            )
        fifths = np.unique(np.quantile(self.score, (0.2, 0.4, 0.6, 0.8)))
        stratum = np.searchsorted([CUTOFF] if self._is_binary else fifths, self.score, side="left")
        k, at = int(stratum.max()) + 1, self.looked
        n = np.bincount(stratum[at], minlength=k)
        share = (np.bincount(stratum[at], self.human[at], minlength=k) + HALF) / (n + 2 * HALF)
        spread = np.sqrt(share * (1 - share))
        chances = _with_sum(spread, np.bincount(stratum[free], minlength=k), rows)
        chance = ((1 - ALIKE) * chances + ALIKE * rows / free.size)[stratum]
        # Systematic sampling in random order: exactly so many rows, each with its chance.
        rng = np.random.default_rng(seed)
        order = rng.permutation(free)
        places = rng.random() + np.arange(rows)
        drawn = order[np.searchsorted(np.cumsum(chance[order]), places).clip(max=free.size - 1)]
        before = self.labelled / self.rows if self.chance is None else self.chance
        every = np.full(self.kept.size, np.nan)
        every[self.kept] = 1 - (1 - before) * (1 - chance)
        return Next(np.flatnonzero(self.kept)[np.sort(drawn)], every)

    @property
    def _is_binary(self) -> bool:
        return bool(np.isin(self.score, (0, 1)).all())

    # ---- What is said

    def to_dict(self) -> dict[str, Any]:
        """Return the contract of ``calviz judge --json``."""
        told = ("sensitivity", "specificity", "kappa", "agreement")
        return {
            "schema": 1,
            "rows": self.rows,
            "labelled": self.labelled,
            "naive": self.naive.to_dict(),
            "corrected": {key: e.to_dict() for key, e in self.corrected.items()},
            "recommended": self.recommended,
            **{key: getattr(self, key).to_dict() for key in told},
            "groups": {name: group.to_dict() for name, group in self.groups.items()},
            "differ": self.differ,
            "differences": [
                {key: getattr(d, key) for key in (*vars(d), "verdict")} for d in self.differences
            ],
        }

    @claim(
        "judge",
        says="Corrected by 150 human labels, the rate is 55.1 % (95 % interval 50.2 to 59.9)",
        chosen="the shorter of two intervals",
        adjusted="nothing is needed: the intervals agree where their lengths do; measured",
    )
    def sentence(self) -> str:
        """Say the corrected rate, and what the judge alone would say."""
        best, event = self.corrected[self.recommended], shorten(self.event)
        low, high = best.interval
        says = f"says '{event}' of" if self._is_binary else f"gives '{event}' a mean score of"
        return (
            f"The judge {says} {percent(self.naive.value)}; corrected by {counted(self.labelled, 'human label')}, it is "
            f"{percent(best.value)} ({level_text(self.confidence)} interval {100 * low:.1f} to {100 * high:.1f})."
        )

    def reason(self) -> str:
        """Say why this method is recommended."""
        shorter = 1 - self.corrected["ppi"].width / self.corrected["human"].width
        if self.recommended == "human":
            return "Use the labels alone: the judge makes their interval no shorter."
        return f"Use PPI++: its interval is {percent(shorter, 0)} shorter than that of the labels alone, and holds as often."

    @claim(
        "judge-errors",
        says="The judge's error rates differ between groups; or: it is wrong in one direction; or: labelled rows are unlike the others",
        chosen="groups, of all of them",
        adjusted="one permutation test over all groups; exact tests of each, Benjamini and Hochberg at 5 %",
    )
    def remarks(self) -> tuple[str, ...]:
        """Say what is wrong beyond chance with the judge, and with the choice of the labelled rows."""
        found = []
        p = self._sums.p_of_bias
        if p <= LEVEL:
            side = "much" if self._sums.bias > 0 else "little"
            found.append(f"The judge gives '{shorten(self.event)}' too {side} ({p_value(p)}).")
        if self.differ <= LEVEL:
            found.append(
                f"Its error rates differ between values of '{shorten(self.by_name)}' ({p_value(self.differ)}): compare these by corrected rates only."
            )
        off = [shorten(name) for name, g in self.groups.items() if g.adjusted <= LEVEL]
        if off and len(self.groups) > 1:
            found.append(f"It is wrong in one direction for: {', '.join(off[:5])}.")
        bare = [shorten(name) for name, g in self.groups.items() if not g.labelled]
        if bare:
            found.append(f"Without a label, and so not corrected: {', '.join(bare[:5])}.")
        if self.unlike <= LEVEL:
            found.append(
                f"The labelled rows are not drawn alike from all ({p_value(self.unlike)}): the corrected rates are those of rows like them. "
                "Draw them at random, or give each row's chance of being labelled."
            )
        if missing := int((~self.kept).sum()):
            found.append(f"{counted(missing, 'row')} without a verdict of the judge left out.")
        return tuple(found)

    @cached_property
    def unlike(self) -> float:
        """P-value that the labelled rows are drawn alike from all: by the judge's score, and by group (Bonferroni)."""
        p_values = [self._sums.p_of_choice]
        if self.by is not None and self.chance is None:
            table = _by_group(self.looked, self.by.codes, len(self.by.levels))
            p_values += [_p_of_tables([table])] if table is not None else []
        return min(1.0, len(p_values) * min(p_values))

    def summary(self) -> Summary:
        """Summarise the rates and what the judge is worth."""
        names = {"rogan-gladen": "Rogan-Gladen", "ppi": "PPI++", "human": "labels alone"}
        rates = {"judge alone": self.naive} | {names[k]: e for k, e in self.corrected.items()}
        rates |= {"sensitivity": self.sensitivity, "specificity": self.specificity}
        rows = [(name, percent(e.value), _range(e, 100)) for name, e in rates.items()]
        rows += [("agreement", percent(self.agreement.value), _range(self.agreement, 100))]
        rows += [("kappa", f"{self.kappa.value:.2f}", _range(self.kappa, 1))]
        rows += [
            (
                f"{shorten(self.by_name)} = {shorten(name)}",
                "-" if g.corrected is None else percent(g.corrected.value),
                "" if g.corrected is None else _range(g.corrected, 100),
            )
            for name, g in list(self.groups.items())[:20]
        ]
        return Summary(
            title=f"by {counted(self.labelled, 'human label')} of {counted(self.rows, 'row')}",
            verdict=self.sentence(),
            lines=(self.reason(),),
            header=("", "rate", f"{level_text(self.confidence)} interval"),
            rows=tuple(rows),
            notes=(*self.remarks(), *(d.sentence() for d in self.differences[:10])),
        )


def _range(estimate: Estimate, unit: int) -> str:
    low, high = estimate.interval
    digits = 1 if unit == 100 else 2
    return f"{unit * low:.{digits}f} to {unit * high:.{digits}f}"


# ---- The estimates


@dataclass(frozen=True, eq=False)
class _Sums:
    """Labels y, what the judge says of them f, and weights of mean 1, shape (n,) each; moments of what it says of all rows."""

    y: FloatArray
    f: FloatArray
    w: FloatArray
    weighted: bool
    rows: int
    mean: float
    variance: float
    #: Variance of what it says of the other rows, and its mean where it says less, and more, than on average.
    others: float
    ends: tuple[float, float]

    @classmethod
    def of(cls, score: FloatArray, human: FloatArray, chance: FloatArray | None) -> _Sums:
        at = ~np.isnan(human)
        y, f, mean = human[at], score[at], float(score.mean())
        w = np.ones(y.size) if chance is None else 1 / chance[at]
        low = score < mean
        ends = (float(score[low].mean()), float(score[~low].mean())) if low.any() else (mean, mean)
        others = float(score[~at].var()) if y.size < score.size else 0.0
        return cls(
            y, f, w / w.mean() if y.size else w, chance is not None, score.size, mean,
            float(score.var(ddof=1)) if score.size > 1 else 0.0, others, ends,
        )  # fmt: skip

    @property
    def n(self) -> int:
        return self.y.size

    @cached_property
    def cells(self) -> FloatArray:
        """Rows by what people say (yes, no) and what the judge says, ((TP, FN), (FP, TN)); weighted rows count as their effective number."""
        says = self.f >= CUTOFF
        counts = np.array(
            [
                [self.w[(self.y == label) & (says == told)].sum() for told in (True, False)]
                for label in (1, 0)
            ]
        )
        return counts * (self.w.sum() / np.square(self.w).sum()) if self.n else counts

    def ppi(self, extra: float = 0.0) -> tuple[float, float, float]:
        """PPI++ of the mean: its value, its variance, and the mean label; with so many rows more in each cell of label and judge.

        With the power-tuned factor l, ``l mean(f of the others) + mean(y - l f)``; of rows drawn with unequal chances, the regression
        estimator of two-phase sampling, which is the same for equal ones.

        References
        ----------
        Angelopoulos, Duchi & Zrnic 2023, example 6.1; Sarndal, Swensson & Wretman 1992, section 9.7.
        """
        y, f, w = self.y, self.f, self.w
        if extra:
            low, high = self.ends
            y, f = np.append(y, (0, 0, 1, 1)), np.append(f, (low, high, low, high))
            w = np.append(w, [extra] * 4)
        n, more = float(w.sum()), self.rows - self.n
        y_mean, f_mean = float(w @ y) / n, float(w @ f) / n
        factor = 0.0
        if more and self.variance > 0:
            covariance = float(w @ ((y - y_mean) * (f - f_mean))) / n
            factor = min(max(covariance / ((1 + n / more) * self.variance), 0.0), 1.0)
        slope = factor * (1 + self.n / more) if more else 0.0
        value = y_mean - slope * (f_mean - self.mean) if not extra else y_mean
        if self.weighted:
            off = w * (y - y_mean - slope * (f - f_mean))
            variance = float(off @ off) / n**2 * (1 - self.n / self.rows)
            return value, variance + float(w @ np.square(y - y_mean)) / n / self.rows, y_mean
        off = y - y_mean - factor * (f - f_mean)
        variance = float(w @ np.square(off)) / n**2
        return value, variance + (factor**2 * self.others / more if more else 0.0), y_mean

    @cached_property
    def plain_ppi(self) -> tuple[float, float, float]:
        return self.ppi()

    @cached_property
    def effective(self) -> float:
        """Number of labels that would give the variance of PPI++ by themselves."""
        _, variance, mean = self.ppi(HALF)
        return max(mean * (1 - mean) / variance * (self.n - 1) / self.n, 1e-6)

    def tuned(self, level: float) -> Estimate:
        """PPI++, with Wilson's interval for the effective number of labels."""
        value, variance, _ = self.plain_ppi
        value = min(max(value, 0.0), 1.0)
        return Estimate(value, Interval(*wilson(value, self.effective, level)), math.sqrt(variance))

    def plain(self, level: float) -> Estimate:
        """Mean of the labels, with Wilson's interval."""
        value = float(self.w @ self.y) / self.n
        number = replace(self, variance=0.0).effective if self.weighted else float(self.n)
        error = math.sqrt(value * (1 - value) / number)
        return Estimate(value, Interval(*wilson(value, number, level)), error)

    @property
    def bias(self) -> float:
        """What the judge says minus what people say, on average over the labelled rows."""
        return float(self.w @ (self.f - self.y)) / self.n if self.n else math.nan

    @cached_property
    def p_of_bias(self) -> float:
        """P-value that there is none: exact (McNemar) for verdicts that count alike, otherwise normal; nan without labels."""
        if not self.n:
            return math.nan
        if not self.weighted and np.isin(self.f, (0, 1)).all():
            wrong = self.cells[0, 1], self.cells[1, 0]
            return min(1.0, 2 * float(at_most(min(wrong), sum(wrong), 0.5)))
        off = self.w * (self.f - self.y - self.bias)
        error = math.sqrt(float(off @ off)) / self.n
        return 2 * float(ndtr(-abs(self.bias) / error)) if error else float(self.bias == 0)

    @property
    def p_of_choice(self) -> float:
        """P-value that the judge says the same, on average, of the labelled rows and of all."""
        share = 1 - self.n / self.rows
        off = self.w * (self.f - float(self.w @ self.f) / self.n)
        error = math.sqrt(float(off @ off) * share) / self.n
        gap = float(self.w @ self.f) / self.n - self.mean
        return 2 * float(ndtr(-abs(gap) / error)) if error else 1.0


def _naive(score: FloatArray, level: float) -> Estimate:
    value, variance = float(score.mean()), float(score.var())
    number = score.size * (value * (1 - value) / variance if variance else 1.0)
    return Estimate(
        value, Interval(*wilson(value, number, level)), math.sqrt(variance / score.size)
    )


def _rogan_gladen(sums: _Sums, says: float, level: float) -> Estimate:
    """The rate by sensitivity and specificity: ``(m + specificity - 1) / (sensitivity + specificity - 1)`` for a share m of yes.

    The interval holds the rates t for which ``t J - (m + specificity - 1)`` is not unusual (Fieller 1954), with half a row more in each
    cell: that of the delta method breaks down where the judge is hardly better than chance. The labelled rows are among all, hence
    the covariances.

    References
    ----------
    Rogan & Gladen 1978; Lang & Reiczigel 2014 for the added rows.
    """
    (tp, fn), (fp, tn) = sums.cells.tolist()
    plain, _ = _ratio(tp / (tp + fn), tn / (fp + tn), says)
    se, sp = (tp + HALF) / (tp + fn + 2 * HALF), (tn + HALF) / (fp + tn + 2 * HALF)
    z2 = float(ndtri((1 + level) / 2)) ** 2
    of_se, of_sp, own = se * (1 - se) / (tp + fn), sp * (1 - sp) / (fp + tn), 1 / sums.rows
    of_m, both_se, both_sp = says * (1 - says) * own, se * (1 - se) * own, sp * (1 - sp) * own
    _, (gain, top) = _ratio(se, sp, says)
    # The variance of t J - top is a quadratic in t, so that the ends of the interval are the roots of another.
    two, one, none = of_se + of_sp, -2 * (of_sp + both_se - both_sp), of_m + of_sp - 2 * both_sp
    a, b, c = gain**2 - z2 * two, -2 * gain * top - z2 * one, top**2 - z2 * none
    root = math.sqrt(max(b * b - 4 * a * c, 0.0))
    low, high = 0.0, 1.0
    if a > 0:
        low, high = (-b - root) / (2 * a), (-b + root) / (2 * a)
    elif a < 0 and root:  # all rates but those between the roots
        less, more = sorted(((-b - root) / (2 * a), (-b + root) / (2 * a)))
        low, high = 0.0 if less >= 0 else more, 1.0 if more <= 1 else less
    value = float(min(max(plain, 0.0), 1.0))
    spread = two * value**2 + one * value + none
    error = math.sqrt(max(spread, 0.0)) / abs(gain) if gain else math.inf
    ends = min(max(low, 0.0), value), max(min(high, 1.0), value)
    return Estimate(value, Interval(*ends), error)


def _ratio(se: float, sp: float, says: float) -> tuple[float, tuple[float, float]]:
    gain, top = se + sp - 1, says + sp - 1
    return (top / gain if gain else math.copysign(math.inf, top)), (gain, top)


def _agreement(cells: FloatArray, level: float) -> dict[str, Estimate]:
    """Sensitivity, specificity and agreement with Wilson's interval, and Cohen's kappa with the normal one."""

    def share(hits: float, number: float) -> Estimate:
        value = hits / number if number else math.nan
        ends = wilson(value, number, level) if number else (0.0, 1.0)
        return Estimate(value, Interval(*ends))

    (tp, fn), (fp, tn) = cells.tolist()
    value, _ = _kappa(cells)
    middle, error = _kappa(cells + HALF)
    half = float(ndtri((1 + level) / 2)) * error
    ends = max(min(middle - half, value), -1.0), min(max(middle + half, value), 1.0)
    return {
        "sensitivity": share(tp, tp + fn),
        "specificity": share(tn, fp + tn),
        "agreement": share(tp + tn, tp + fn + fp + tn),
        "kappa": Estimate(value, Interval(*ends), error),
    }


def _kappa(cells: FloatArray) -> tuple[float, float]:
    """Cohen's kappa and its standard error (Fleiss, Cohen & Everitt 1969, eq. 13)."""
    p = cells / cells.sum()
    people, judge = p.sum(axis=1), p.sum(axis=0)
    chance = float(people @ judge)
    if chance >= 1:
        return math.nan, math.nan
    kappa = (float(np.trace(p)) - chance) / (1 - chance)
    right = np.diag(p) @ np.square(1 - (people + judge) * (1 - kappa))
    wrong = p[0, 1] * (judge[0] + people[1]) ** 2 + p[1, 0] * (judge[1] + people[0]) ** 2
    variance = right + (1 - kappa) ** 2 * wrong - (kappa - chance * (1 - kappa)) ** 2
    return kappa, math.sqrt(max(float(variance), 0.0) / cells.sum()) / (1 - chance)


def _minus(one: Estimate, other: Estimate) -> Interval:
    """Interval of a difference from those of both rates (Zou & Donner 2008; Newcombe's hybrid score interval for shares)."""
    gap = one.value - other.value
    down = math.hypot(one.value - one.interval.low, other.interval.high - other.value)
    up = math.hypot(one.interval.high - one.value, other.value - other.interval.low)
    return Interval(gap - down, gap + up)


def _by_group(hit: BoolArray, group: IntArray, groups: int) -> tuple[IntArray, IntArray] | None:
    """Hits and rows of each group that has rows; None if there are fewer than two, or all rows are alike."""
    rows = np.bincount(group, minlength=groups)
    hits = np.bincount(group[hit], minlength=groups)[rows > 0]
    rows = rows[rows > 0]
    return (hits, rows) if rows.size > 1 and 0 < hits.sum() < rows.sum() else None


def _p_of_tables(tables: Sequence[tuple[IntArray, IntArray]]) -> float:
    """P-value that hits are spread alike over the groups of every table, by permutation; nan without tables."""
    if not tables:
        return math.nan
    rng, observed, drawn = np.random.default_rng(0), 0.0, np.zeros(DRAWS)
    for hits, rows in tables:
        share = hits.sum() / rows.sum()
        every = rng.multivariate_hypergeometric(
            rows, int(hits.sum()), size=DRAWS, method="marginals"
        )
        spread = rows * share * (1 - share)
        observed += float((np.square(hits - rows * share) / spread).sum())
        drawn += (np.square(every - rows * share) / spread).sum(axis=1)
    return float(1 + np.count_nonzero(drawn >= observed - 1e-9)) / (DRAWS + 1)


def _with_sum(weights: FloatArray, rows: IntArray, total: int) -> FloatArray:
    """Chances proportional to the weights of strata, at most 1, whose sum over their rows is `total`."""
    chances, full = np.zeros(weights.size), np.zeros(weights.size, dtype=bool)
    for _ in range(weights.size):
        left = total - rows[full].sum()
        chances = np.where(full, 1.0, weights * left / max((weights * rows)[~full].sum(), 1e-300))
        if not (over := (chances > 1) & ~full).any():
            break
        full |= over
    return np.minimum(chances, 1.0)


def judge(
    judge: npt.ArrayLike,
    human: npt.ArrayLike,
    by: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    *,
    chance: npt.ArrayLike | None = None,
) -> Judged:
    """Correct the verdicts of a judge, such as a language model, by the human labels of some rows.

    Parameters
    ----------
    judge : array_like, shape (n,)
        0 and 1, words such as yes and no, or scores in [0, 1]; from 0.5 on the judge says yes.
    human : array_like, shape (n,)
        0 and 1, or such words; nan, None or empty where nobody has looked.
    by : array_like, shape (n,), optional
        A group of each row, such as the system that is judged.
    confidence : float
        Level of the intervals.
    chance : array_like, shape (n,), optional
        Probability with which each row was chosen to be labelled, if not all had the same, as from `Judged.next`.

    Returns
    -------
    Judged

    Raises
    ------
    InputError
        For values out of range, a judge with one value, labels of one class, and rows that nobody has labelled.
    OptionError
        For a level or a chance out of range, and too many groups.

    Notes
    -----
    Labelled rows are a random sample of all. PPI++ and the labels alone need nothing else; Rogan-Gladen holds too where labelled rows
    have another rate, as long as they have the same sensitivity and specificity. Rates are those of rows like these.

    Examples
    --------
    >>> import calviz, numpy as np
    >>> says = np.tile([1, 1, 0, 0, 1], 80)
    >>> people = np.where(np.arange(400) % 4 == 0, np.tile([1, 0, 0, 0, 1], 80), np.nan)
    >>> judged = calviz.judge(says, people)
    >>> judged.labelled, round(judged.naive.value, 3), round(judged.corrected["ppi"].value, 3)
    (100, 0.6, 0.4)
    """
    check_level(confidence)
    columns = JudgeColumns(
        judge=yes_or_score(judge, "judge"), human=yes_or_score(human, "human"), by=by, chance=chance
    )
    return judged(columns, confidence)


def judged(columns: JudgeColumns, confidence: float = 0.95) -> Judged:
    """`judge` for columns that were read."""
    check_level(confidence)
    score, human, event = columns.aligned()
    said = ~np.isnan(score)
    by = None if columns.by is None else Factor.of(columns.by)
    chance = None if columns.chance is None else np.asarray(columns.chance, dtype=np.float64)
    for name, column in (("by", by), ("chance", chance)):
        if column is not None and len(column) != score.size:
            raise InputError(f"'{name}' has {len(column):,} values for {score.size:,} rows")
    if chance is not None and not (fair := ((chance > 0) & (chance <= 1)) | ~said).all():
        row = int(np.argmin(fair))
        raise InputError(
            f"the chance {chance[row]:g} is not a probability above 0", row=row + 1, column="chance"
        )
    if by is not None and len(by.levels) > MOST_GROUPS:
        raise OptionError(
            f"'by' has {len(by.levels):,} values, at most {MOST_GROUPS:,} are compared."
        )
    if not said.any() or np.ptp(score[said]) == 0:
        what = "says nothing" if not said.any() else f"says {score[said][0]:g} of every row"
        raise InputError(
            f"the judge {what}: there is nothing to compare", column=columns.judge.name
        )
    looked = said & ~np.isnan(human)
    if not looked.any():
        raise InputError(
            "no row has both a verdict of the judge and a human label",
            column=columns.human.name,
            remedy="label some rows, drawn at random",
        )
    if np.ptp(human[looked]) == 0:
        raise InputError(
            f"all {counted(int(looked.sum()), 'human label')} are of one class: how often the judge misses the other cannot be told",
            column=columns.human.name,
            remedy="label more rows, drawn at random",
        )
    return Judged(
        score=score[said],
        human=human[said],
        by=None if by is None else by.take(said),
        chance=None if chance is None else chance[said],
        confidence=confidence,
        kept=said,
        event=event,
        by_name=columns.by_name,
    )
