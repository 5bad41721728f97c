"""A threshold with a guarantee: chosen on some rows, promised for new rows like them, observed on the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from calviz.comparison.comparison_results import RowsUsed
from calviz.comparison.fitting import Division
from calviz.core import events, predictions
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray
from calviz.core.errors import PREDICTED, OptionError, check_level, claim
from calviz.core.words import counted, decimal, from_on, level_text, percent, shorten
from calviz.sample import cutoff_and_grades, risk_tests, sample
from calviz.sample.sample import Sample, dataset_of, is_predicted, predicted_words, with_predicted
from calviz.sample.step_views import steps, top_label_steps

#: Of a wrong prediction, of a referral and of a right prediction.
COSTS = (10.0, 1.0, 0.0)
#: Tolerance for scores that differ only by rounding, as in `calviz.sample.steps`.
_ROUNDING = 1e-12
#: Level at which the other rows refute a promise.
_BROKEN = 0.01
#: Risks about a class.
_OF_CLASS = ("precision", "recall", "fpr")
#: Each risk in words, at most so large, or so large.
_WORDS = {
    "error": "{x} of the predictions{of} kept are wrong",
    "precision": "{x} of the rows acted on are not '{name}'",
    "recall": "{x} of the rows of '{name}' are missed",
    "fpr": "{x} of the rows that are not '{name}' are acted on",
    "cost": "{row} costs {x} on average",
}
#: Keys of the JSON of a choice, for all rows and for each group.
_KEYS = ("threshold", "bound", "kept", "observed", "rows", "refuted")


@dataclass(frozen=True, repr=False, kw_only=True)
class ThresholdChoice:
    """A threshold and what is promised of it; rows are kept whose confidence, or probability of the class, is at least the threshold.

    Risks are shares that are lost: for precision and recall, what is missing to 1. With two risks, `of`, `target`, `bound` and
    `observed` are pairs.

    Attributes
    ----------
    of : str or tuple of str
        The risk: "error", "precision", "recall", "fpr" or "cost".
    target : float or tuple of float
        With probability `confidence`, new rows have a risk of at most so much: of all groups together, if there are any.
    confidence : float
    threshold : float or None
        None if no threshold can be shown to have this risk, and of groups together.
    bound : float or tuple of float, or None
        The smallest risk that the test rejects at this threshold, at most the target; of groups, the largest. It is shown to tell how
        much is left: the promise is the target.
    kept, observed : float or tuple of float, or None
        Share kept and risk of the rows that the threshold was not chosen on; `observed` is None if none of them counts.
    rows : int
        Number of these rows.
    groups : mapping of str to ThresholdChoice
    fit, evaluation : RowsUsed
        The rows that the threshold was chosen on, and the others.
    judged : ndarray of int
        The numbers of these others, in the data that were given.
    more_rows : float or None
        Without a threshold: about how many more rows to choose on would show one; infinity if hardly any number would, None if that
        cannot be told.
    class_name : str
        The class that precision, recall and false positives are about.
    predicted : tuple of str
        The predicted classes of the rows; empty for all.
    kept_as : str
        The same in words.
    refuted : bool
        Whether the risk of the other rows is larger than the target, at a level of 1 % (of all groups and risks together).
    missed : str
        `missed_words` of the other rows, without groups.
    wrong : str
        `wrong_where_kept` of the other rows, without groups, for error alone.
    """

    of: str | tuple[str, ...]
    target: float | tuple[float, ...]
    confidence: float
    threshold: float | None = None
    bound: float | tuple[float, ...] | None = None
    kept: float | None = None
    observed: float | tuple[float | None, ...] | None = None
    rows: int
    fit: RowsUsed
    evaluation: RowsUsed
    judged: IntArray = field(compare=False)
    groups: Mapping[str, ThresholdChoice] = field(default_factory=dict)
    more_rows: float | None = None
    class_name: str = ""
    predicted: tuple[str, ...] = ()
    kept_as: str = ""
    refuted: bool = False
    missed: str = ""
    wrong: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as in the JSON of ``calviz threshold``."""
        return {
            "schema": 1,
            "of": self.of,
            "target": self.target,
            "confidence": self.confidence,
            "predicted": list(self.predicted),
            **{key: getattr(self, key) for key in _KEYS},
            "groups": {
                name: {key: getattr(choice, key) for key in _KEYS}
                for name, choice in self.groups.items()
            },
        }

    def __repr__(self) -> str:
        return "\n".join([self.reading(), *(c.line(name) for name, c in self.groups.items())])

    @property
    @claim("threshold-risk")
    def cells(self) -> tuple[str, str, str]:
        """The threshold, or what more rows would do, the share that is kept and the share of it that is right, for a table."""
        if self.threshold is None:
            if self.more_rows in (None, math.inf):
                return "none" if self.more_rows else "not yet", "–", "–"
            return f"not yet: ≥ {risk_tests.rough_rows(self.more_rows)} more rows", "–", "–"
        wrong, broken = _tuple(self.observed)[0], ", broken beyond noise" * self.refuted
        right = "–" if wrong is None else percent(1 - wrong)
        return f"{from_on(self.threshold)}{broken}", percent(self.kept or 0), right

    def _risks(self, values: Iterable[float | None], before: str = "") -> str:
        """The risks with these values in words, each value after `before`."""
        name = shorten(self.class_name, 40)
        of_these, row = "", "a row"
        if self.kept_as:
            of_these, row = f" of {self.kept_as}", f"a row predicted as {self.kept_as}"
        return " and ".join(
            _WORDS[of].format(x=before + _written(of, value), name=name, of=of_these, row=row)
            for of, value in zip(_tuple(self.of), values, strict=True)
            if value is not None
        )

    @claim("threshold-risk")
    def reading(self) -> str:
        """Say what is promised, and what was observed on the other rows, in sentences."""
        sure = f"with {level_text(self.confidence)} confidence"
        chosen = f"on {self.fit.how} ({counted(self.fit.rows, 'row')})"
        promise = self._risks(_tuple(self.target), "at most ")
        if self.groups:
            found = [c for c in self.groups.values() if c.threshold is not None]
            some = sum(not choice.refuted for choice in found)
            return (
                f"{some} of {counted(len(self.groups), 'group')} have a threshold that promises, {sure} for all together: {promise}. "
                f"Chosen {chosen}{self._seen()}. {self.fit.remark}"
            ).rstrip()
        if self.threshold is None:
            rows, more = self.fit.rows, self.more_rows
            return risk_tests.none_words(f"{promise}, {sure}", chosen, rows, more, self._share)
        what = self.class_name and f"probability of '{shorten(self.class_name, 40)}'"
        threshold = f"a {what or 'confidence'} of {from_on(self.threshold)}"
        if self.refuted:
            words = f"It cannot be promised that {promise}: {threshold}, chosen {chosen}, breaks that beyond noise"
        else:
            words = f"From {threshold} on: {promise}, {sure}, on new rows like those it was chosen on. Chosen {chosen}"
        return " ".join(filter(None, (f"{words}{self._seen()}.", self.fit.remark, self.wrong)))

    @property
    def _share(self) -> float | None:
        """The share of the kept that may be wrong; None if that is not the risk."""
        return _tuple(self.target)[0] if self.of in ("error", "precision") else None

    @property
    def above(self) -> str:
        """That the other rows have more than the target, where that is not refuted; "" else, and of groups together, which are not tested."""
        each = zip(_tuple(self.observed), _tuple(self.target), strict=False)
        more = any(seen > most for seen, most in each if seen is not None) and not self.refuted
        return " (more than allowed, which may be chance)" * (more and not self.groups)

    def _seen(self) -> str:
        if self.kept is None:
            return ""
        seen = self._risks(_tuple(self.observed))
        of = self.evaluation.how + f" predicted as {self.kept_as}," * bool(self.kept_as)
        return f"; of {of} {percent(self.kept)} are {'acted on' if self.class_name else 'kept'}{seen and ', and ' + seen}{self.above}{self.missed and '; ' + self.missed}"

    @claim("threshold-risk")
    def line(self, name: str) -> str:
        """One line about a group: its threshold, and its risk, guaranteed and observed."""
        # Of pairs, too, a blank cell is missing.
        name = shorten(", ".join(level or "missing" for level in name.split(", ")), 40)
        if self.threshold is None:
            return f"  {name}: none; {risk_tests.more_rows_words(self.more_rows, self._share)}."
        bounds, seen = (
            " and ".join(
                "-" if value is None else _written(of, value)
                for of, value in zip(_tuple(self.of), _tuple(values), strict=True)
            )
            for values in (self.bound, self.observed)
        )
        promise = "broken beyond noise" if self.refuted else f"guaranteed {bounds}"
        rows = counted(self.rows, "row")
        kept = "" if self.kept is None else f", keeps {percent(self.kept)} of {rows}"
        return f"  {name}: from {from_on(self.threshold)} on, {promise}, observed {seen}{self.above}{kept}"


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _written(of: str, value: float) -> str:
    return decimal(value, 3) if of == "cost" else percent(value)


def threshold(
    data: sample.AnyRows,
    risk: float | Sequence[float] = 0.05,
    confidence: float = risk_tests.CONFIDENCE,
    of: risk_tests.RiskName | Sequence[risk_tests.RiskName] = "error",
    by: str | Sequence[str] | None = None,
    *,
    costs: Sequence[float] = COSTS,
    reduction: events.Reduction | str | None = None,
    choose_split: str | None = None,
    choose_fraction: float | None = None,
    seed: int = 0,
    predicted: Sequence[str] = (),
    in_sample: bool = False,
) -> ThresholdChoice:
    """Choose a threshold with a risk that is at most `risk` on new rows, with confidence: the one that keeps most rows (fewest for recall alone).

    Parameters
    ----------
    data : Predictions, ConfidencePredictions or Profile
    risk : float or (float, float)
        Largest risk, between 0 and 1; a cost has the unit of `costs`.
    confidence : float
        Probability with which the promise holds, over the rows that the threshold is chosen on; of all groups and risks together.
    of : {"error", "precision", "recall", "fpr", "cost"}, or two of them
        *error*: share of wrong predictions among those whose confidence reaches the threshold, for any number of classes. *cost*: mean
        cost of a row, if the others are referred. For decisions about a class, by its probability: *precision* (the risk is
        1 - precision), *recall* (1 - recall: the threshold is the highest), *fpr* (rows of other classes that are kept).
    by : str or (str, str), optional
        A column, numbers in intervals, or "predicted class": each level, or pair of levels, has a threshold of its own.
    costs : (float, float, float)
        Of a wrong prediction, of a referral and of a right prediction, for ``of="cost"``.
    reduction : Reduction or str, optional
        The class that precision, recall and fpr are about, such as ``"class:cat"``; the positive one of two by default.
    choose_split, choose_fraction : str, float, optional
        The split, or the share of the rows, to choose on; by default the calibration split if there is one, otherwise a half.
    seed : int
        Of the random division.
    predicted : sequence of str, optional
        For error and cost: only the rows that are predicted as one of these classes count, and only these are divided.
    in_sample : bool
        Instead: choose on all rows (of that split), which are observed, too, and cannot check the promise.

    Returns
    -------
    ThresholdChoice

    Raises
    ------
    OptionError, InputError, NotAvailable
        On values out of range, rows that cannot be divided, or rows of a single class where both are needed.

    Notes
    -----
    Several risks or groups share ``1 - confidence`` equally (Bonferroni). What a group does not need, because all of its rows are kept,
    goes to the others (Bretz, Maurer, Brannath & Posch 2009). Weights and clusters are taken into account
    (`calviz.sample.risk_tests`).

    Examples
    --------
    >>> import calviz, numpy as np
    >>> score = np.linspace(0.5, 1, 2_000)
    >>> wrong = np.arange(2_000) % 20 == 0
    >>> p = calviz.ConfidencePredictions(confidence=score, correct=~(wrong & (score < 0.8)))
    >>> choice = calviz.threshold(p, risk=0.02)
    >>> choice.threshold < 0.8, choice.bound <= 0.02
    (True, True)
    """
    data = dataset_of(data)
    names = (of,) if isinstance(of, str) else tuple(of)
    targets = tuple(risk) if isinstance(risk, Sequence) else (risk,)
    risks = checked_risks(names, targets, confidence, costs)
    if choose_fraction is not None:
        check_level(choose_fraction, "choose_fraction")
    if predicted and names[0] in _OF_CLASS:
        raise OptionError(
            f"'predicted' is for error and cost; {names[0]} is about rows of every predicted class."
        )
    columns = (by,) if isinstance(by, str) else tuple(dict.fromkeys(by or ()))
    for column in columns:
        if column == PREDICTED:
            data = with_predicted(data)
        elif column in data.cuts and column not in data.groups:
            data = predictions.with_group(data, column, data.sliced(column))
        if column not in data.groups:
            raise predictions.no_group_column(data, column)
    by = ", ".join(columns)
    if len(columns) > 1:
        texts = [np.array(data.groups[c].levels, object)[data.groups[c].codes] for c in columns]
        data = predictions.with_group(data, by, Factor.of(reduce(lambda a, b: a + ", " + b, texts)))
    numbers = np.flatnonzero(is_predicted(data, predicted)) if predicted else np.arange(data.n)
    data = data.take(numbers) if predicted else data
    divided = Division(choose_split, None, choose_fraction, None, seed, in_sample).told(data)
    chosen, judged = (Sample.of(data.take(rows), reduction=reduction) for rows in divided.pairs[0])
    about = ""
    if names[0] in _OF_CLASS:
        chosen = cutoff_and_grades.decidable(chosen)
        judged = judged.but(reduction=chosen.reduction)
        about = judged.data.class_names[judged.reduction.class_index(judged.data)]
    scaled = [(t - r.least) / r.unit for t, r in zip(targets, risks, strict=True)]
    names_of_groups = data.groups[by].levels if by else ()
    parts = [_rows_where(chosen, by, level) for level in names_of_groups] if by else [chosen]
    searches = [None if part is None else _Search.of(part, risks, scaled) for part in parts]
    levels = _levels(searches, 1 - confidence)
    base = ThresholdChoice(
        of=_one_or_all(names),
        target=_one_or_all(targets),
        confidence=confidence,
        rows=divided.evaluation.rows,
        fit=divided.fit,
        evaluation=divided.evaluation,
        judged=numbers[divided.pairs[0][1]],
        class_name=about,
        predicted=tuple(predicted),
        kept_as=predicted_words(data, predicted),
    )
    found = [
        replace(base, **search.choice(level)) if search else base
        for search, level in zip(searches, levels, strict=True)
    ]
    events, weights = _events(judged, risks[0]), judged.weights
    if not by:
        choice = replace(found[0], rows=events.score.size)
        if choice.threshold is None:
            return choice
        kept = events.score >= choice.threshold - _ROUNDING
        rarer = risk_tests.rarer_class(judged, events.score) if names[0] not in _OF_CLASS else None
        choice = replace(
            choice,
            refuted=_refuted(judged, risks, scaled, choice.threshold, 1),
            missed=risk_tests.missed_words(
                rarer, partial(np.less_equal, choice.threshold - _ROUNDING)
            ),
        )
        if names == ("error",):
            choice = replace(choice, wrong=risk_tests.wrong_where_kept(judged, kept, targets[0]))
        return _with_observed(choice, risks, kept, events.hit, weights)
    of_rows = judged.data.groups[by]
    kept = np.zeros(events.score.size, dtype=np.bool_)
    groups = {}
    for name, one in zip(names_of_groups, found, strict=True):
        rows = np.flatnonzero(of_rows.mask(name)) if name in of_rows.levels else np.empty(0, int)
        own = None if weights is None else weights[rows]
        groups[name] = replace(one, rows=rows.size)
        if one.threshold is not None:
            kept[rows] = events.score[rows] >= one.threshold - _ROUNDING
            part = _rows_where(judged, by, name)
            broken = part and _refuted(part, risks, scaled, one.threshold, len(found))
            one = replace(groups[name], refuted=bool(broken))
            groups[name] = _with_observed(one, risks, kept[rows], events.hit[rows], own)
    every = all(choice.threshold is not None for choice in found)
    bounds = [_tuple(c.bound) for c in found if c.threshold is not None]
    # What holds for each group holds for all rows together; rows of groups without a threshold are missed, or referred.
    told = bounds and (every or not {"recall", "cost"} & set(names))
    base = replace(base, bound=_one_or_all(map(max, zip(*bounds, strict=True))) if told else None)
    return replace(_with_observed(base, risks, kept, events.hit, weights), groups=groups)


def checked_risks(
    names: Sequence[risk_tests.RiskName],
    targets: Sequence[Any],
    confidence: float,
    costs: Sequence[float],
) -> list[risk_tests.Risk]:
    """Return the risks of `threshold`; raises OptionError for values that are wrong for all rows."""
    check_level(confidence, "confidence")
    risks = [risk_tests.Risk.of(name, costs if name == "cost" else ()) for name in names]
    if len(risks) not in (1, 2) or len(targets) != len(risks):
        raise OptionError(
            f"'of' names one risk or two, and 'risk' has a number for each; got {len(risks)} and {len(targets)}."
        )
    if len({risk.name in _OF_CLASS for risk in risks}) > 1:
        raise OptionError(
            "error and cost are about the confidence, precision, recall and fpr about the probability of a class: they have no "
            "threshold in common."
        )
    for risk, target in zip(risks, targets, strict=True):
        most = risk.least + risk.unit
        if risk.name != "cost":
            check_level(target, "risk")
        elif isinstance(target, bool) or not risk.least < target < most:
            raise OptionError(
                f"the 'risk' of a cost must lie between {risk.least:g} and {most:g}, got {target!r}."
            )
    return risks


def _rows_where(sample: Sample, by: str, level: str) -> Sample | None:
    """The rows of a level; None if there are none."""
    if level not in sample.data.groups[by].levels:
        return None
    return Sample.of(sample, where=((by, level),))


def _events(sample: Sample, risk: risk_tests.Risk) -> events.BinaryEvents:
    return sample.scored if risk.name in _OF_CLASS else sample.top_scored


def _with_observed(
    choice: ThresholdChoice,
    risks: Sequence[risk_tests.Risk],
    kept: BoolArray,
    hit: BoolArray,
    weights: FloatArray | None,
) -> ThresholdChoice:
    observed = [risk.observed(kept, hit, weights) for risk in risks]
    return replace(
        choice,
        kept=float(np.average(kept, weights=weights)) if kept.size else None,
        observed=_one_or_all(None if math.isnan(value) else value for value in observed),
    )


@claim("threshold-risk")
def _refuted(
    judged: Sample,
    risks: Sequence[risk_tests.Risk],
    targets: Sequence[float],
    threshold: float,
    groups: int,
) -> bool:
    """Whether the risk from a threshold on is larger than a target: its complement is tested, as when a threshold is chosen."""
    complements = [replace(risk, loss=risk.counts - risk.loss) for risk in risks]
    search = _Search.of(judged, complements, [1 - target for target in targets])
    step = int(np.searchsorted(search.score, threshold - _ROUNDING))
    return step < search.score.size and any(
        tests.p_value(step, target) <= _BROKEN / len(risks) / groups
        for tests, target in zip(search.tests, search.targets, strict=True)
    )


def _one_or_all(values: Iterable[Any]) -> Any:
    values = tuple(values)
    return values if len(values) > 1 else values[0]


@dataclass(frozen=True)
class _Search:
    """The search for a threshold on some rows: tests of one or two risks along the same ranking."""

    score: FloatArray
    threshold_at: Callable[[int], float]
    tests: list[risk_tests.RiskTests]
    targets: list[float]

    @classmethod
    def of(cls, sample: Sample, risks: Sequence[risk_tests.Risk], targets: list[float]) -> _Search:
        view = sample.view(steps if risks[0].name in _OF_CLASS else top_label_steps)
        lowest = risk_tests.lowest_scores(_events(sample, risks[0]), view)
        at = partial(risk_tests.threshold_at, scores_at=view.scores_at, lowest=lowest)
        return cls(view.score, at, [risk_tests.RiskTests.of(view, risk) for risk in risks], targets)

    def safe(self, level: float) -> list[IntArray]:
        """Steps that are safe for each risk; the risks share the level."""
        return [
            tests.safe(target, 1 - level / len(self.tests))
            for tests, target in zip(self.tests, self.targets, strict=True)
        ]

    def is_complete(self, level: float) -> bool:
        """Whether every test rejects."""
        return all(
            safe.size == tests.size if tests.risk.name == "recall" else 0 in safe
            for safe, tests in zip(self.safe(level), self.tests, strict=True)
        )

    def choice(self, level: float) -> dict[str, Any]:
        """Fields of the choice."""
        safe, own = reduce(np.intersect1d, self.safe(level)), 1 - level / len(self.tests)
        if not safe.size:
            missing = [
                tests.rows_missing(target, own)
                for tests, target in zip(self.tests, self.targets, strict=True)
            ]
            # What is not known counts more than any number.
            return {"more_rows": max(missing, key=lambda more: 1e300 if more is None else more)}
        only_recall = [tests.risk.name for tests in self.tests] == ["recall"]
        step = int(safe[-1] if only_recall else safe[0])
        return {
            "threshold": self.threshold_at(step),
            "bound": _one_or_all(tests.bound(step, own) for tests in self.tests),
        }


def _levels(searches: Sequence[_Search | None], level: float) -> list[float]:
    """The level of each search, shape (G,): equal shares; those of searches that keep all rows go to the others in equal parts."""
    levels = [level / len(searches)] * len(searches)
    unfinished = {i: search for i, search in enumerate(searches) if search is not None}
    while len(searches) > 1:
        done = [i for i, search in unfinished.items() if search.is_complete(levels[i])]
        for i in done:
            del unfinished[i]
        if not done or not unfinished:
            break
        share = sum(levels[i] for i in done) / len(unfinished)
        for i in unfinished:
            levels[i] += share
    return levels
