"""A judge against people: what its verdicts are worth where some rows have a human label, and the rate corrected by these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from calviz.comparison import fitting
from calviz.core import entry_specs, errors, words
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray
from calviz.core.errors import InputError, NotAvailable, OptionError, claim
from calviz.core.p_values import benjamini_hochberg, wilson
from calviz.core.predictions import Predictions
from calviz.core.words import counted, decimal, level_text, p_value, percent, points, shorten
from calviz.data import judge_columns
from calviz.data.judge_columns import JudgeColumns, as_groups, share_labels, yes_or_score
from calviz.data.loaded import Loaded
from calviz.sample import corrected_rates, metric_results
from calviz.sample.corrected_rates import CUTOFF, HALF, LabelledRows, RateEstimate

#: Level of the tests, and false discovery rate over the groups.
LEVEL = 0.05
#: More groups than this are not compared in pairs; columns with more values hold names rather than groups.
MOST_COMPARED, MOST_GROUPS = 12, 1_000
#: Groups that a summary shows.
_SHOWN = 20
#: Folds of the labelled rows whose maps recalibrate each other.
FOLDS = 5
#: Share of the next labels that is drawn alike from all rows, so that a wrong idea of where the judge errs costs little.
ALIKE = 0.5

Method = Literal["ppi", "human"]
Side = Literal["higher", "lower", "tied"]


class Next(NamedTuple):
    """Rows to label next, shape (k,), and for all rows the chance of being labelled by then, shape (n,), nan without a verdict."""

    rows: IntArray
    chance: FloatArray


def _named(group: str) -> str:
    """The name of a group, in which a blank cell is missing."""
    return f"{group}missing" if not group or group.endswith(" = ") else group


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
    interval: entry_specs.Interval
    adjusted: entry_specs.Interval

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
        one, other = shorten(_named(self.first)), shorten(_named(self.second))
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
    naive : RateEstimate
    corrected, sensitivity, specificity : RateEstimate or None
        None without labels that tell it.
    bias : float
        Naive rate minus that of people, on the labelled rows; nan without any.
    p_value, adjusted : float
        That there is no bias: exact McNemar test, and adjusted for all groups (Benjamini & Hochberg); nan without labels.
    """

    rows: int
    labelled: int
    naive: RateEstimate
    corrected: RateEstimate | None
    sensitivity: RateEstimate | None
    specificity: RateEstimate | None
    bias: float
    p_value: float
    adjusted: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; what is not told is None."""
        return {
            key: value.to_dict() if isinstance(value, RateEstimate) else value
            for key, value in vars(self).items()
        }


@dataclass(frozen=True, eq=False, repr=False)
class Judged(metric_results.Displayed):
    """A judge's verdicts, corrected by the human labels of some of them.

    Attributes
    ----------
    score : ndarray, shape (n,)
        What the judge says, in [0, 1].
    human : ndarray, shape (n,)
        0 or 1, nan without a label.
    by : mapping of str to Factor
        The group of each row, by each column; each column is looked at by itself.
    chance : ndarray, shape (n,), or None
        Probability of each row to be labelled; None if all have the same.
    event : str
        What the rate is of, as the column says it ("yes").
    kept : ndarray of bool, shape (m,)
        Which of the given rows have a verdict of the judge; only these n rows count.
    cluster : ndarray of int, shape (n,), or None
        The question of each row, where rows of one question depend on each other.
    grades : str
        What grades were chosen to mean; "" if there are none.
    by_items : str
        The column of `cluster`, if nobody but the rows said so.
    no : str
        What the column says where the event is not; "" if that is no word.
    at : ndarray of int, shape (m,), or None
        The row of the file of each given one, from 0 on; None if these are all its rows.
    """

    score: FloatArray
    human: FloatArray
    by: Mapping[str, Factor]
    chance: FloatArray | None
    confidence: float
    kept: BoolArray
    event: str = "yes"
    cluster: IntArray | None = None
    grades: str = ""
    by_items: str = ""
    no: str = ""
    at: IntArray | None = None

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
    def _item(self) -> IntArray:
        """What people label, of each row, from 0 on: the question, if its rows share one human label, else the row."""
        if self.cluster is None or not share_labels(self.cluster, self.human):
            return np.arange(self.rows)
        return np.unique(self.cluster, return_inverse=True)[1]

    @property
    def items(self) -> int:
        """Number of what people label: items, if the rows of one share its label, else rows."""
        return int(self._item.max()) + 1

    @property
    def unit(self) -> str:
        """What people label."""
        return "row" if self.items == self.rows else "item"

    @cached_property
    def _of_items(self) -> Judged:
        """One row for each item: the mean of what is said of it, and the groups that all its rows are in."""
        item, first = self._item, np.unique(self._item, return_index=True)[1]
        human = np.full(first.size, np.nan)
        human[item[self.looked]] = self.human[self.looked]
        by = {n: f.take(first) for n, f in self.by.items() if (f.codes == f.codes[first][item]).all()}  # fmt: skip
        chance = None if self.chance is None else self.chance[first]
        score = np.bincount(item, self.score) / np.bincount(item)
        return replace(self, score=score, human=human, by=by, chance=chance, kept=first >= 0, cluster=None)  # fmt: skip

    @cached_property
    def labelled(self) -> int:
        """Number of rows with a human label, or of items whose rows share one."""
        return self._labels(slice(None))

    def _labels(self, rows: Any) -> int:
        return np.unique(self._item[rows][self.looked[rows]]).size

    @property
    def predictions(self) -> Predictions:
        """The labelled rows, with the judge's score as their probability: all that calviz measures applies."""
        looked = self.looked
        return Predictions(
            probs=self.score[looked],
            labels=self.human[looked].astype(np.int64),
            groups={name: factor.take(looked) for name, factor in self.by.items()},
            clusters=None if self.cluster is None else Factor.of(self.cluster[looked]),
            name="judge",
        )

    @cached_property
    def _sums(self) -> LabelledRows:
        return self._sums_at(slice(None))

    def _sums_at(self, rows: Any) -> LabelledRows:
        chance, cluster = (None if c is None else c[rows] for c in (self.chance, self.cluster))
        return LabelledRows.of(self.score[rows], self.human[rows], chance, cluster)

    # ---- Rates

    @cached_property
    def naive(self) -> RateEstimate:
        """Mean of what the judge says."""
        return corrected_rates.naive_rate(self.score, self.confidence, self.cluster)

    @cached_property
    def corrected(self) -> dict[str, RateEstimate]:
        """The rate by Rogan and Gladen, by PPI++, and by the labels alone."""
        sums, level = self._sums, self.confidence
        says = (self.score >= CUTOFF).astype(np.float64)
        design = corrected_rates.design_of(says, self.cluster)
        return {
            "rogan-gladen": corrected_rates.rogan_gladen(sums, float(says.mean()), level, design),
            "ppi": sums.tuned(level),
            "human": sums.plain(level),
        }

    @property
    def recommended(self) -> Method:
        """PPI++, unless the labels alone have the shorter interval, as where the judge is no better than chance."""
        ppi, human = self.corrected["ppi"].width, self.corrected["human"].width
        return "ppi" if ppi < (1 - 1e-9) * human else "human"

    @cached_property
    def _agreement(self) -> dict[str, RateEstimate]:
        return self._sums.thinned(self.confidence)[0]

    @property
    def sensitivity(self) -> RateEstimate:
        """Share of the rows that people call yes of which the judge says yes."""
        return self._agreement["sensitivity"]

    @property
    def specificity(self) -> RateEstimate:
        """Share of the rows that people call no of which the judge says no."""
        return self._agreement["specificity"]

    @property
    def agreement(self) -> RateEstimate:
        """Share of the rows where judge and people say the same."""
        return self._agreement["agreement"]

    @property
    def kappa(self) -> RateEstimate:
        """Cohen's kappa."""
        return self._agreement["kappa"]

    # ---- Groups

    @cached_property
    def groups(self) -> dict[str, JudgedGroup]:
        """By value of `by`: the same for the rows of each group, by their own labels."""
        found = {name: self._of_group(name, rows) for name, rows in self._rows_of.items()}
        tested = [name for name, group in found.items() if not math.isnan(group.p_value)]
        adjusted = benjamini_hochberg([found[name].p_value for name in tested])
        for name, value in zip(tested, adjusted.tolist(), strict=True):
            found[name] = replace(found[name], adjusted=value)
        return found

    @cached_property
    def _rows_of(self) -> dict[str, IntArray]:
        found: dict[str, IntArray] = {}
        for column, factor in self.by.items():
            order = np.argsort(factor.codes, kind="stable")
            ends = np.cumsum(np.bincount(factor.codes, minlength=len(factor.levels)))[:-1]
            for level, rows in zip(factor.levels, np.split(order, ends), strict=True):
                found[level if len(self.by) == 1 else f"{column} = {level}"] = rows
        return found

    @cached_property
    def _sums_of(self) -> dict[str, LabelledRows]:
        return {name: self._sums_at(rows) for name, rows in self._rows_of.items()}

    def _of_group(self, name: str, rows: IntArray) -> JudgedGroup:
        sums = self._sums_of[name]
        (tp, fn), (fp, tn) = sums.cells
        enough = sums.n > 0 and (sums.depend is None or sums.depend.number > 1)
        told = sums.thinned(self.confidence)[0] if enough else {}
        cluster = None if self.cluster is None else self.cluster[rows]
        return JudgedGroup(
            rows=rows.size,
            labelled=self._labels(rows),
            naive=corrected_rates.naive_rate(self.score[rows], self.confidence, cluster),
            corrected=sums.tuned(self.confidence) if enough else None,
            sensitivity=told["sensitivity"] if enough and tp + fn else None,
            specificity=told["specificity"] if enough and fp + tn else None,
            bias=sums.bias,
            p_value=sums.p_of_bias if enough else math.nan,
            adjusted=math.nan,
        )

    @cached_property
    def differ(self) -> float:
        """P-value that the judge's error rates are the same in all groups; nan without labels that tell it.

        Labels of people are given, groups are permuted among the rows of the same label: the statistic is the sum of both chi-squares. Of
        rows that share questions it is a score test (`p_of_errors`). With several columns, the smallest, times their number.
        """
        found = [p for p in self.differ_by.values() if not math.isnan(p)]
        return min(1.0, len(found) * min(found)) if found else math.nan

    @cached_property
    def differ_by(self) -> dict[str, float]:
        """`differ` of each column by itself, not adjusted."""
        return {} if self.chance is not None else {n: self._differ(f) for n, f in self.by.items()}

    def _differ(self, by: Factor) -> float:
        looked = self.looked
        is_yes, group = self.human[looked] == 1, by.codes[looked]
        wrong, k = (self.score[looked] >= CUTOFF) != is_yes, len(by.levels)
        if self.cluster is not None:
            return corrected_rates.p_of_errors(wrong, is_yes, group, k, self.cluster[looked])
        both = is_yes, ~is_yes
        parts = [corrected_rates.hits_by_group(wrong[rows], group[rows], k) for rows in both]
        return corrected_rates.p_of_tables([part for part in parts if part is not None])

    @cached_property
    def differences(self) -> tuple[RateDifference, ...]:
        """Corrected rates of all pairs of groups of a column with labels; none of a column with more than `MOST_COMPARED`.

        Rows of both that share questions (`cluster`) are paired: what a question adds to both rates cancels.
        """
        pairs, start = [], 0
        for factor in self.by.values():
            own = list(self.groups)[start : start + len(factor.levels)]
            start += len(factor.levels)
            names = [name for name in own if self.groups[name].corrected is not None]
            pairs += list(combinations(names, 2)) if len(names) <= MOST_COMPARED else []
        every = {name for pair in pairs for name in pair}
        levels = (self.confidence, 1 - (1 - self.confidence) / max(len(pairs), 1))
        sums = self._sums_of
        rates = [{name: sums[name].tuned(level) for name in every} for level in levels]
        alike = {(a, b): corrected_rates.correlation(sums[a], sums[b]) for a, b in pairs}
        return tuple(
            RateDifference(
                a,
                b,
                self.groups[a].naive.value - self.groups[b].naive.value,
                rates[0][a].value - rates[0][b].value,
                *(corrected_rates.difference(of[a], of[b], alike[a, b]) for of in rates),
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
        spec, looked = entry_specs.RECALIBRATORS[method], np.flatnonzero(self.looked)
        made = fitting.make(spec, every, {})
        fitting.check_fitting_rows(made, self.predictions, every.labels[looked])
        rarer = int(np.bincount(every.labels[looked]).min())
        if rarer < 2:
            raise NotAvailable("recalibrating the judge needs two human labels of each class.")
        folds = min(folds, rarer)
        rng = np.random.default_rng(0)
        if self.cluster is None:
            part = fitting.assign_parts(every.labels[looked], folds, rng)
        else:  # all rows of a question lie in one fold
            code = np.unique(self.cluster[looked], return_inverse=True)[1]
            part = rng.permutation(np.arange(code.max() + 1) % folds)[code]
        total, own = np.zeros(self.rows), np.empty(looked.size)
        for fold in range(folds):
            scores, labels = fitting.scores_of(every.take(looked[part != fold]))
            fitted = made.fit(scores, labels, **fitting.columns_to_fit(made, every))
            mapped = fitting.apply_map(every, fitted.to_dict())
            assert isinstance(mapped, Predictions)
            score = np.asarray(mapped.probs)[:, 1]
            total += score / folds
            own[part == fold] = score[looked[part == fold]]
        total[looked] = own
        return replace(self, score=total.clip(0, 1))

    def width(self, labels: int, *, alone: bool = False) -> float:
        """Expected width of the corrected interval with so many labels, drawn alike from all rows, or of that of the labels `alone`.

        The variance is that of a mean of n labels of which the judge explains a part r: ``(1 - r) / n + r / N``, in units of one row's.
        """
        value, now, n = self.corrected["ppi"].value, self._sums.effective, self._sums.alone
        each = n / self.labelled if self.cluster is not None else 1.0
        rows = each * self.items
        n = n if self.cluster is not None else self.labelled
        if alone or self.labelled >= self.items:
            explained = 0.0
        else:
            explained = min(max((1 / n - 1 / now) / (1 / n - 1 / rows), 0.0), 1.0)
        number = 1 / ((1 - explained) / (each * labels) + explained / rows)
        low, high = wilson(value, number, self.confidence)
        return high - low

    @claim(
        "judge-labels",
        says="About 240 labels are needed for an interval of 10 points",
        chosen="the smallest number of labels",
        adjusted="nothing: the part that the judge explains is estimated once, so that the number is about right, not safe",
    )
    def needed_sentence(self, width: float = 0.05) -> str:
        """Say how many labels an interval of this width needs."""
        labels, what = self.needed(width), f"an interval of {points(width)} points"
        if labels is None:
            return f"Labels of all {counted(self.items, self.unit)} do not give {what}."
        if labels <= self.labelled:
            return f"The {counted(self.labelled, 'label')} are enough for {what}."
        return f"About {counted(labels, 'label')} are needed for {what}, {labels - self.labelled:,} more{' items' * (self.unit == 'item')}."

    def needed(self, width: float) -> int | None:
        """Number of labels for an interval of this width; None if labels of all rows give a wider one."""
        errors.check_level(width, "width")
        low, high = 1, self.items
        if self.width(high) > width:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.width(middle) <= width else (middle + 1, high)
        return low

    def next(self, rows: int, seed: int = 0) -> Next:
        """Draw rows to label next, more of them where judge and people may differ most.

        Rows are drawn with probabilities proportional to the standard deviation of the labels among rows of the same verdict, or of the
        same fifth of the score, mixed with equal ones. Where rows share one label, so many items are drawn. Give the `chance` that is
        returned with the labels: ``judge(..., chance=chance)``.

        References
        ----------
        Neyman 1934; Zrnic & Candes 2024 (active statistical inference), with uniform sampling mixed in.
        """
        every = np.full(self.kept.size, np.nan)
        if self.items < self.rows:
            one = self._of_items.next(rows, seed)
            every[self.kept] = one.chance[self._item]
            return Next(np.flatnonzero(self.kept)[np.isin(self._item, one.rows)], every)
        free = np.flatnonzero(~self.looked)
        errors.check_whole("rows", rows, least=1)
        if rows > free.size:
            raise OptionError(
                f"'rows' must be at most the {free.size:,} rows without a label, got {rows:,}."
            )
        fifths = np.unique(np.quantile(self.score, (0.2, 0.4, 0.6, 0.8)))
        stratum = np.searchsorted([CUTOFF] if self._is_binary else fifths, self.score, side="left")
        k, seen = int(stratum.max()) + 1, self.looked
        n = np.bincount(stratum[seen], minlength=k)
        share = (np.bincount(stratum[seen], self.human[seen], minlength=k) + HALF) / (n + 2 * HALF)
        chances = corrected_rates.chances_with_sum(
            np.sqrt(share * (1 - share)), np.bincount(stratum[free], minlength=k), rows
        )
        chance = ((1 - ALIKE) * chances + ALIKE * rows / free.size)[stratum]
        # Systematic sampling in random order: exactly so many rows, each with its chance.
        rng = np.random.default_rng(seed)
        order = rng.permutation(free)
        places = rng.random() + np.arange(rows)
        drawn = order[np.searchsorted(np.cumsum(chance[order]), places).clip(max=free.size - 1)]
        before = self.labelled / self.rows if self.chance is None else self.chance
        every[self.kept] = 1 - (1 - before) * (1 - chance)
        return Next(np.flatnonzero(self.kept)[np.sort(drawn)], every)

    def next_in_file(self, rows: int, seed: int = 0) -> tuple[IntArray, IntArray, FloatArray]:
        """Return for each given row its number in the file, whether to label it next (0 or 1), and its chance, of shape (m,) each."""
        following = self.next(rows, seed)
        given = np.arange(following.chance.size)
        number = 1 + (given if self.at is None else self.at)
        return number, np.isin(given, following.rows).astype(np.int64), following.chance

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
            "items": self.items,
            "labelled": self.labelled,
            "naive": self.naive.to_dict(),
            "corrected": {key: e.to_dict() for key, e in self.corrected.items()},
            "recommended": self.recommended,
            **{key: getattr(self, key).to_dict() for key in told},
            "groups": {name: group.to_dict() for name, group in self.groups.items()},
            "differ": self.differ if len(self.by) < 2 else self.differ_by,
            "differences": [
                {key: getattr(d, key) for key in (*vars(d), "verdict")} for d in self.differences
            ],
        } | {k: text for k, text in (("grades", self.grades), ("cluster", self.by_items)) if text}  # fmt: skip

    @claim(
        "judge",
        says="Corrected by 150 human labels, the rate is 55.1 % (95 % interval 50.2 to 59.9)",
        chosen="the shorter of two intervals",
        adjusted="none: the simulations make the same choice",
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

    @property
    @claim("judge")
    def headline(self) -> str:
        """`sentence` in at most 15 words."""
        best, event = self.corrected[self.recommended], shorten(self.event, 20)
        low, high = best.interval
        return (
            f"'{event}' in {percent(best.value)} of the rows ({100 * low:.1f} to {100 * high:.1f})"
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
        for name, p in self.differ_by.items():
            p = min(1.0, len(self.by) * p)  # adjusted for the columns
            if p <= LEVEL:
                found.append(
                    f"Its error rates differ between values of '{shorten(name)}' ({p_value(p)}): compare these by corrected rates only."
                )
        off = [_named(name) for name, g in self.groups.items() if g.adjusted <= LEVEL]
        if off and len(self.groups) > 1:
            found.append(f"It is wrong in one direction for: {words.listed(off, most=5)}.")
        bare = [_named(name) for name, g in self.groups.items() if not g.labelled]
        if bare:
            found.append(f"Without a label, and so not corrected: {words.listed(bare, most=5)}.")
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
        if self.items < self.rows:
            return self._of_items.unlike
        p_values = [self._sums.p_of_choice]
        for factor in self.by.values() if self.chance is None and self.cluster is None else ():
            table = corrected_rates.hits_by_group(self.looked, factor.codes, len(factor.levels))
            p_values += [corrected_rates.p_of_tables([table])] if table is not None else []
        return min(1.0, len(p_values) * min(p_values))

    def summary(self) -> metric_results.Summary:
        """Summarise the rates and what the judge is worth."""
        names = {"rogan-gladen": "Rogan-Gladen", "ppi": "PPI++", "human": "labels alone"}
        rates = {"judge alone": self.naive} | {names[k]: e for k, e in self.corrected.items()}
        rates |= {key: self._agreement[key] for key in ("sensitivity", "specificity", "agreement")}
        rows = [(name, percent(e.value), _range(e, 100)) for name, e in rates.items()]
        rows += [("kappa", decimal(self.kappa.value, 2), _range(self.kappa, 1))]
        column = f"{shorten(next(iter(self.by)))} = " if len(self.by) == 1 else ""
        for name, group in list(self.groups.items())[:_SHOWN]:
            e = group.corrected
            told = ("-", "") if e is None else (percent(e.value), _range(e, 100))
            rows.append((column + shorten(_named(name)), *told))
        if len(self.groups) > _SHOWN:
            rows.append((f"{_SHOWN} of {len(self.groups):,} groups are shown", "", ""))
        of = f" ({counted(self.rows, 'row')})" * (self.unit == "item")
        alike = f"Rows with the same '{shorten(self.by_items)}' share one human label and count as one item (--cluster '' counts each row by itself)."
        lines = (self.reason(), *[f"{self.grades}."] * bool(self.grades), *[alike] * bool(self.by_items))  # fmt: skip
        return metric_results.Summary(
            title=f"by {counted(self.labelled, 'human label')} of {counted(self.items, self.unit)}{of}",
            verdict=self.sentence(),
            lines=lines,
            header=("", "rate", f"{level_text(self.confidence)} interval"),
            rows=tuple(rows),
            notes=(*self.remarks(), *(d.sentence() for d in self.differences[:10])),
        )


def _range(estimate: RateEstimate, unit: int) -> str:
    low, high = estimate.interval
    digits = 1 if unit == 100 else 2
    return " to ".join(decimal(unit * end, digits) for end in (low, high))


def judge(
    judge: npt.ArrayLike,
    human: npt.ArrayLike,
    by: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    confidence: float = 0.95,
    *,
    chance: npt.ArrayLike | None = None,
    cluster: npt.ArrayLike | None = None,
) -> Judged:
    """Correct the verdicts of a judge, such as a language model, by the human labels of some rows.

    Parameters
    ----------
    judge : array_like, shape (n,)
        0 and 1, words such as yes and no, or scores in [0, 1], such as ``grades >= 4``; from 0.5 on the judge says yes.
    human : array_like, shape (n,)
        0 and 1, or such words; nan, None or empty where nobody has looked.
    by : array_like, shape (n,), or mapping of str to these, optional
        A group of each row, such as the system that is judged; several columns (also a data frame) are each looked at by itself. Numbers
        with fractions and many values are cut at their deciles.
    confidence : float
        Level of the intervals.
    chance : array_like, shape (n,), optional
        Probability with which each row was chosen to be labelled, if not all had the same, as from `Judged.next`.
    cluster : array_like, shape (n,), optional
        The question of each row, where several rows belong to one, as epochs do, or answers of several systems to the same questions:
        intervals are those of questions, and two systems are compared question by question.

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
    # A series has items too, but one dimension.
    table: Any = by
    several = hasattr(table, "items") and np.ndim(table) != 1
    given = {} if by is None else dict(table.items()) if several else {"group": by}
    columns = JudgeColumns(
        judge=yes_or_score(judge, "judge"),
        human=yes_or_score(human, "human"),
        by=given,
        chance=chance,
        cluster=cluster,
    )
    return judged(columns, confidence)


def judged(columns: JudgeColumns, confidence: float = 0.95) -> Judged:
    """`judge` for columns that were read."""
    errors.check_level(confidence, "confidence")
    score, human, event = columns.aligned()
    said = ~np.isnan(score)
    by = {name: as_groups(column) for name, column in columns.by.items()}
    chance = None if columns.chance is None else np.asarray(columns.chance, dtype=np.float64)
    question = None if columns.cluster is None else Factor.of(columns.cluster)
    given = [("by", factor) for factor in by.values()]
    for name, column in (*given, ("chance", chance), ("cluster", question)):
        if column is not None and len(column) != score.size:
            raise InputError(f"'{name}' has {len(column):,} values for {score.size:,} rows")
    if chance is not None and not (fair := ((chance > 0) & (chance <= 1)) | ~said).all():
        row = int(np.argmin(fair))
        what = f"the chance {chance[row]:g} is not a probability above 0"
        raise InputError(what, row=row + 1, column="chance")
    if (most := max((len(factor.levels) for factor in by.values()), default=0)) > MOST_GROUPS:
        raise OptionError(f"'by' has {most:,} values, at most {MOST_GROUPS:,} are compared.")
    if not said.any() or np.ptp(score[said]) == 0:
        what = "says nothing" if not said.any() else f"says {score[said][0]:g} of every row"
        what = f"the judge {what}: there is nothing to compare"
        raise InputError(what, column=columns.judge.name)
    looked = said & ~np.isnan(human)
    if not looked.any():
        what, remedy = "no row has both a verdict of the judge and a human label", "label some rows, drawn at random"  # fmt: skip
        raise InputError(what, column=columns.human.name, remedy=remedy)
    if np.ptp(human[looked]) == 0:
        what = f"all {counted(int(looked.sum()), 'human label')} are of one class: how often the judge misses the other cannot be told"
        raise InputError(what, column=columns.human.name, remedy="label more rows, drawn at random")
    if question is not None and np.unique(question.codes[looked]).size < 2:
        what = (
            "all human labels are of one question, so that nothing tells how much questions differ"
        )
        raise InputError(what, column="cluster", remedy="label rows of several questions")
    return Judged(
        score=score[said],
        human=human[said],
        by={name: factor.take(said) for name, factor in by.items()},
        chance=None if chance is None else chance[said],
        confidence=confidence,
        kept=said,
        event=event,
        cluster=None if question is None else question.codes[said].astype(np.int64),
        grades=columns.grades,
        by_items=columns.items,
        no=columns.human.no,
        at=columns.at,
    )


def judged_file(source: Any, loaded: Loaded, model: str, names: Sequence[str], by: str | None = "", cluster: str | None = None) -> Judged:  # fmt: skip
    """What the judge of a loaded file is worth, with `by` "" by the groups that are compared if none are chosen; where a column names models, each is a judge.

    Raises
    ------
    NotAvailable, InputError
        If the file has no columns of a judge and of people, and as `judged`.
    """
    if not judge_columns.may_be_judged(loaded):
        raise NotAvailable("the file has no judge.")
    of = (loaded.recognition.model_column, model)
    if by == "":
        by = judge_columns.to_compare(loaded.models[model].groups, MOST_COMPARED)
    return judged(judge_columns.read_judge(source, by=by, cluster=cluster, class_names=names, name=loaded.file, of=of))  # fmt: skip
