"""Watching without end: every look at a growing stream of rows may alarm, at most with probability alpha over all of them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import chdtri, expit, ndtri

from calviz.core import errors, features, p_values, words
from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import METRICS, Interval, Told, check, takes_weights
from calviz.core.errors import InputError, OptionError, check_level, claim, replacing
from calviz.core.events import Reduction
from calviz.sample import logistic_curves, metric_results, multicalibration, slices
from calviz.sample.error_bars import CHANGES
from calviz.sample.sample import AnyData, Sample, Where, on_days, rows_where, where_words
from calviz.verdicts import betting
from calviz.verdicts.joint_tests import rest_of_rows, side_of_change

#: Chance of any false alarm, over all looks.
ALPHA = 0.05
#: Level of a change, draws behind its p-value, and what there must be before and after it: a share of the rows, hits and misses.
CHANGED, DRAWS, SIDE, FEWEST = 0.02, 999, 0.05, 10
#: Days whose statistic is this much below the largest are in the confidence set: its 95 % quantile (Hansen 2000, Econometrica 68, table I).
NEAR = 7.35
#: A day before all others; and the level at which months have lines of their own.
_NEVER, _MATTER = "0001-01-01", 0.001
_FORMAT, _MARK = 1, "calviz_watch"


class Change(NamedTuple):
    """A change of what the scores mean: its day, the ends of the 95 % confidence set of days, and the p-value, adjusted for their choice.

    `before` and `after` are the mean gap that changes most, or the ECE, which `name` tells, with the ends of its interval; `now` is a
    watch of the rows since. `sides` say what the tests of the verdict find on the rows since and on those before, and by how much the
    scores are off there ("" if not in one direction), on that further off by `less` than on these rows, for new ones; "perhaps", where only
    the interval of the mean gap excludes 0. Where another change is found before, "before" is from its day on: `began`. It is of the rows
    that meet the conditions `where`, of all without any.
    """

    since: str
    between: tuple[str, str]
    p_value: float
    name: str
    before: tuple[float, float, float]
    after: tuple[float, float, float]
    now: WatchState
    sides: tuple[tuple[str, str], tuple[str, str]]
    began: str = ""
    less: float = 0.0
    where: Where = ()

    @property
    def ended(self) -> bool:
        """Whether what is found before the change is not found since."""
        return [way.startswith(("not ", "perhaps ")) for way, _ in self.sides] == [True, False]

    @property
    def days(self) -> tuple[str, str]:
        """The day since which rows are off, and that until which they are, if they no longer are; "" where there is none."""
        return (self.began, self.since) if self.ended else (self.since, "")

    def sizes(self, shown: Callable[[str], str]) -> str:
        """What changes most, before and since; without intervals, which are not adjusted for the choice of the day; `shown` names a day."""
        then, since = (words.points(value) for value, *_ in self[4:6])
        began = f" (from about {shown(self.began)} on)" if self.began else ""
        return f"on these rows, {self.name} {then} points before{began}, {since} since"

    def least_error(self, sample: Sample) -> float:
        """Sum of the errors that come with the change, at least: the lower end of the difference of the gaps, times the rows that it is of and that lie outside the confidence set of the day."""
        (was, *before), (then, *after) = self.before, self.after
        wide = math.hypot(before[1] - before[0], after[1] - after[0]) / 2
        days = (self.began, self.between[0]) if abs(was) > abs(then) else (self.between[1], "")
        rows = np.asarray(rows_where(sample.data, on_days(sample.data, days, self.where)))
        return float(rows.sum() * max(abs(then - was) - wide, 0))

    def day(self, shown: Callable[[str], str], is_dated: bool) -> str:
        """Say about which day it changed or, if that is not well known, between which two; `shown` names a day."""
        ends = " and ".join(map(shown, self.between))
        return f"about {shown(self.since)}" if is_dated else f"between {ends}"

    def span(self, shown: Callable[[str], str], is_dated: bool) -> str:
        """Say on which days rows are off, or were; `shown` names a day."""
        day = "a day " * (not is_dated) + self.day(shown, is_dated)
        if self.ended and self.began:
            return f"from about {shown(self.began)} to {day.removeprefix('about ')}"
        return f"{'until' if self.ended else 'since'} {day}"

    @claim("change-of-calibration")
    def when(self, shown: Callable[[str], str]) -> str:
        """Say on which days it may have changed, and how much larger than on new rows the error is on these; `shown` names a day."""
        first, last = map(shown, self.between)
        day = f"{'on' if first.count('-') > 1 else 'in'} {first}"
        days = f"between {first} and {last}" if first != last else day
        more = f"; the size is for new rows, {words.points(self.less)} points less than on these, which chose the day"
        return f"with 95 % confidence it changed {days}{more * (self.less >= 0.0005)}"


class SliceChange(NamedTuple):
    """A change in one slice of the rows, in another way than on the others.

    `rows` of it are on the days on which it is off (`change.days`), with a `gap` of the mean score from the hits to expect on new ones, the
    ends of its 95 % interval, the further one last, and the gap on these (`seen`); `elsewhere` is the change on the other rows, if one is found there, and `rest` how these are off on all days.
    """

    where: Where
    rows: int
    gap: float
    seen: float
    ends: tuple[float, float]
    change: Change
    elsewhere: Change | None
    rest: str

    @claim("change-in-a-slice")
    def headline(self, shown: Callable[[str], str], is_dated: bool = True) -> str:
        """Since when, or until when, where, and what is off then, in few words; `shown` names a day."""
        ended = self.change.ended
        way, size = self.change.sides[ended]
        off = words.expected_gap(self.gap).removeprefix("about ") if size else way
        other = f"others: {self.rest}" if self.rest else "other rows: no change found"
        if self.elsewhere:
            other = f"other rows: changed about {shown(self.elsewhere.since)}"
        now = self.change.sides[0][0].replace("not told apart from calibrated", "not found")
        return f"{words.capitalised(self.change.span(shown, is_dated))} {where_words(self.where)}: {off}{f', {now} since' * ended}; {other}"

    @claim("change-in-a-slice")
    def when(self, shown: Callable[[str], str]) -> str:
        """Say the interval of the gap to expect on new rows, which the headline says, the gap on those that are off, and when it may have changed."""
        sign, decimals = math.copysign(1, self.gap), words.gap_decimals(self.gap)
        seen, *ends = (words.points(sign * v, decimals) for v in (self.seen, *self.ends))
        size = f"95 % CI {' to '.join(ends)} points on new rows; {seen} on these {words.counted(self.rows, 'row')}"
        return f"{size}; {self.change.when(shown)}"

    @claim("change-in-a-slice")
    def sentence(self, shown: Callable[[str], str]) -> str:
        """Say it with the confidence set of days, and the gaps before and since."""
        return (
            f"{self.headline(shown)} ({self.when(shown)}; {self.change.sizes(shown)}). False alarms: in {100 * CHANGES:g} % "
            f"of files without a change, in {100 * CHANGED:g} % of those where a slice is off alike all the time."
        )


@dataclass(frozen=True, eq=False, repr=False)
class WatchState(metric_results.Displayed):
    """What all looks so far say.

    Attributes
    ----------
    alarm : bool
        Whether the e-value has reached its limit at any look. If the scores are calibrated, the chance that it ever does
        is at most alpha.
    e_value, limit : float
        The wealth of the bets against calibration after the last look, from 1 at the start; and 1 / alpha.
    looks, rows : int
    since : str or None
        The look from which on the best bet wins; None without an alarm.
    remedy : {"offset", "map"} or None
        Whether an offset of the logits explains what was found, or a new map is needed; None without an alarm.
    offset : float
        The offset of the logits, from `since` on; nan without an alarm.
    gap : Interval
        Mean of hit minus score over all looks: confidence sequence at 1 - alpha, which holds for all looks at once.
    bins : tuple of (float, float, float, Interval)
        For each bin of the scores: lower and upper edge, mean of hit minus score, and its confidence sequence; all bins hold
        together. Sums of their positive and negative parts are the signed parts of the ECE.
    path : tuple of (str, float)
        The e-value after each look.
    latest : str or None
        The look since which the scores are off at the latest, with confidence 1 - alpha: the first one if it is among the first 5 %.
    skipped : int
        Looks of the last call that had been counted before.
    change : Change or None
        Of all rows together, if `watched` finds one.
    only : str
        Without a change of all rows: the slices that are off, if the other rows are not, or only for a time.
    others : WatchState or None
        Of the other rows, if these have changed.
    within : SliceChange or None
        The slice that changes in another way than the other rows, if `watched` finds one.
    condition : str
        What the chance of a false alarm depends on: days that were found to be clusters, or clusters that have rows in several looks, or may
        have, as the state does not hold those of earlier calls.
    """

    alarm: bool
    e_value: float
    limit: float
    looks: int
    rows: int
    since: str | None
    remedy: betting.Remedy | None
    offset: float
    gap: Interval
    bins: tuple[tuple[float, float, float, Interval], ...]
    path: tuple[tuple[str, float], ...]
    latest: str | None = None
    skipped: int = 0
    change: Change | None = None
    only: str = ""
    others: WatchState | None = None
    condition: str = ""
    within: SliceChange | None = None

    @property
    def found(self) -> Change | None:
        """The change to act on: that in a slice, if none is found on the other rows, or else that of all rows."""
        in_all = self.change is not None and (self.within is None or self.within.elsewhere)
        return self.change if in_all or self.within is None else self.within.change

    @property
    @claim("watch")
    def dated(self) -> str:
        """When there was the change to act on; "" without one."""
        return f"changed about {self.shown(self.found.since)}" if self.found else ""

    @property
    def is_dated(self) -> bool:
        """Whether the confidence set of the day of a change holds a tenth of all looks at most, or one."""
        first, last = self.found.between if self.found is not None else ("", "~")
        return 10 * sum(first <= look <= last for look, _ in self.path) <= max(len(self.path), 10)

    def to_dict(self) -> dict[str, Any]:
        """Return the contract of ``calviz watch --json``."""
        names = ("alarm", "e_value", "limit", "looks", "rows", "since", "remedy")
        return {"schema": 1, **{name: getattr(self, name) for name in names}}

    @claim("watch")
    def sentence(self, *, by_chance: bool = True) -> str:
        """Say what was found, in a slice first, and how often that is chance."""
        if self.within is not None:
            of_all = replace(self, within=None).sentence(by_chance=by_chance)
            return f"{self.within.sentence(self.shown)} All rows together: {of_all[0].lower()}{of_all[1:]}"
        if not self.alarm:
            return f"No alarm in {words.counted(self.looks, 'look')} (e-value {self.e_value:.3g}, limit {self.limit:.3g})."
        chance = f"Scores that stay calibrated ever raise an alarm with probability {100 / self.limit:g} % at most{self.condition}"
        if self.change is None:
            return f"{self._alarm()}: {self._remedy}.{f' ({chance}.)' * by_chance}"
        return (
            f"{self._alarm()} ({self.change.when(self.shown)}): {self.change.sizes(self.shown)}. On the rows since, "
            f"{self.change.now._remedy}."
            + f" ({chance}; an error that stays the same is taken for a change with {100 * CHANGED:g} %.)"
            * by_chance
        )

    @property
    @claim("watch")
    def _remedy(self) -> str:
        if self.only:
            return f"off where {self.only}; {f'other rows: {self.others.dated}' if self.others else 'nothing is found elsewhere'}"
        if self.remedy == "offset":
            offset = words.decimal(self.offset, 2, plus=True)
            return f"an offset of {offset} to the logits explains it on average"
        return "an offset does not explain it: fit a new map" if self.alarm else "nothing is found"

    @property
    @claim("watch")
    @claim("sides-of-a-change")
    def headline(self) -> str:
        """`sentence` in at most 16 words: after a change, since when, and what is off since and before; of a day that is not well known, between which."""
        if self.within is not None and self.found is not self.change:
            return self.within.headline(self.shown, self.is_dated)
        if not self.alarm:
            return f"No alarm in {words.counted(self.looks, 'look')}"
        if self.change is None:
            is_said = self.only or self.remedy == "offset"
            return f"{self._alarm()}: {self._remedy if is_said else 'recalibrate it'}"
        (since, size), (before, then) = self.change.sides
        if since != before:
            span = words.capitalised(self.change.span(self.shown, self.is_dated))
            if self.change.ended:
                return f"{span} {_by(before, then)}; since then, {_by(since, size)}"
            began = self.change.began and f", from about {self.shown(self.change.began)} on"
            return f"{span} {_by(since, size)}; before{began}, {_by(before, then)}"
        sides = f"{_by(before, then)} before, {size} since" if size else f"{since} before and since"
        about = f"Changed {self.change.day(self.shown, self.is_dated)}"
        return f"{self._alarm(self.is_dated) if since.startswith('not ') else about}; {sides}"

    @claim("watch")
    def _alarm(self, is_dated: bool = True) -> str:
        _, low, high = self.change.before if self.change is not None else (0, 0, 0)
        start = "Not calibrated" + " from the start" * (self.latest == self.since)
        if self.change and all(way.startswith("not ") for way, _ in self.change.sides):
            return f"Perhaps changed {self.change.day(self.shown, is_dated)}"
        # By when all rows are off at the latest is no day of the slice.
        if self.only and {self.since, self.latest} != {self.path[0][0]}:
            return "Not calibrated"
        if self.changed is None:
            at_most = "by {} at the latest" if self.latest != self.since else "{}"
            return f"{start}, {at_most.format(self.shown(str(self.latest)))}"
        if self.change is not None and self.change.ended:
            return f"Not calibrated {self.change.span(self.shown, is_dated)}"
        change, day = self.change, f"about {self.shown(self.changed)}"
        day = day if change is None else change.day(self.shown, is_dated)
        if not low <= 0 <= high:
            return f"{start}, and changed {day}"
        return f"No longer calibrated, since {'a day ' * day.startswith('between')}{day}"

    @property
    def changed(self) -> str | None:
        """The look from which on the scores mean something else; None if none is found."""
        if self.change is not None:
            return self.change.since
        return None if self.only or self.since == self.path[0][0] else self.since

    def shown(self, look: str) -> str:
        """Name a look for people: by its month or year, if all looks are of the first day of one."""
        return words.month_or_day(look, (name for name, _ in self.path))

    @property
    @claim("watch")
    def doubt(self) -> str:
        """What an alarm means for what is expected of rows without labels; empty without one, or if all rows are from after the change."""
        if self.changed is None:
            return ""
        since = self.shown(self.changed)
        return f"What rows without labels are expected to show is estimated from the rows with labels since {since}: before, labels followed the scores otherwise."

    def summary(self) -> metric_results.Summary:
        """Summarise the state: the sentence, and the gap of each bin."""
        low, high = self.gap
        return metric_results.Summary(
            title=f"of {words.counted(self.rows, 'row')} in {words.counted(self.looks, 'look')}",
            verdict=self.sentence(),
            lines=(
                f"Observed minus predicted, all looks: {words.points(low)} to {words.points(high)} points.",
            ),
            header=("score", "gap", "from", "to"),
            rows=tuple(
                (f"{a:.3g} to {b:.3g}", *map(words.signed_points, (gap, *interval)))
                for a, b, gap, interval in self.bins
            ),
            notes=(f"{words.counted(self.skipped, 'look')} had been counted before.",)
            * bool(self.skipped),
        )


@dataclass
class Watch:
    """Watch whether scores stay calibrated, look by look, with at most alpha false alarms over all looks.

    Parameters
    ----------
    alpha : float
        Chance of a false alarm, over all looks together.
    reduction : Reduction or str, optional
        As in `calviz.evaluate`; by default that of the first rows.

    Notes
    -----
    If the scores are calibrated, the likelihood ratio of any alternative that was fixed beforehand is a fair bet: the
    expected factor of its wealth at each look is 1. The wealth is divided among shifts of all logits, stretches of them, and shifts within
    a bin, and in each among starting times: 4/5 start with the first look, the s-th gets 1 / (5 s (s - 1)); so a change on day 60 is
    found a few looks later than one on day 1. The total is an e-process: by Ville's inequality, it ever reaches 1 / alpha with
    probability at most alpha (Ramdas, Gruenwald, Vovk & Shafer 2023, eq. 6; Shin, Ramdas & Rinaldo 2024 for starting times). Rows of a
    cluster in a look bet with the geometric mean of their factors, whose expectation is at most 1 however they depend on each other; those in
    several looks are taken as independent. Those of days that were found to be clusters bet as so many rows as their correlation
    leaves independent. A row with a
    weight bets with the u-th power of its factor L, for u the weight as a share of the heaviest of the first look (at most 1):
    L^u <= 1 + u (L - 1) (Bernoulli), whose expectation is 1 if the weighted scores are calibrated. A cell of a profile bets as its rows
    would at their mean score, which by Jensen's inequality is at most their product.
    The confidence sequence is Robbins' normal mixture for variables in [0, 1]
    (Howard, Ramdas, McAuliffe & Sekhon 2021, eq. 14).

    Examples
    --------
    >>> import calviz, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> watch = calviz.Watch(alpha=0.05)
    >>> for day in range(3):
    ...     p = rng.uniform(size=200)
    ...     rows = calviz.Predictions.from_arrays(rng.random(200) < p, p)
    ...     state = watch.add(rows, when=f"day {day + 1}")
    >>> state.alarm, state.looks, state.rows
    (False, 3, 600)
    """

    alpha: float = ALPHA
    reduction: Reduction | str | None = None
    classes: tuple[str, ...] = field(default=(), repr=False)
    edges: tuple[float, ...] = field(default=(), repr=False)
    centre: float = field(default=0.0, repr=False)
    heaviest: float | None = field(default=None, repr=False)
    looks: list[betting.Look] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        check_level(self.alpha, "alpha")

    def add(self, data: AnyData, when: str | None = None) -> WatchState:
        """Look at new rows: at each day of their times, in order, or at all at once.

        Parameters
        ----------
        data : Predictions, ConfidencePredictions, Profile or Sample
            Of a profile, the e-value is about that of its rows, and the chance of a false alarm as small.
        when : str, optional
            Name of the look; by default the days of the rows, or the number of the look.

        Raises
        ------
        InputError
            If the rows have other classes than those that were watched so far, or weights where these had none.
        """
        sample = Sample.of(data, reduction=self.reduction)
        self._check_model(sample)
        if not self.edges:
            self._begin(sample)
        names, look = betting.days_of(sample, when, len(self.looks))
        known = {look.digest for look in self.looks}
        begun = (self.edges, self.centre, self.heaviest)
        looks = list(betting.looks_at(sample, names, look, known, *begun))
        asks = betting.condition(sample.data, look, bool(known))
        self.looks += [look for look in looks if look is not None]
        return replace(self.state, skipped=looks.count(None), condition=asks)

    def merge(self, other: Watch) -> Watch:
        """Return a watch of the looks of both, in the order of their names; a look that both hold counts once.

        Raises
        ------
        InputError
            If they watch other models, or have other bins.
        """
        if _about(self) != _about(other):
            raise InputError("these states are of different models, or began with different rows")
        every = {look.digest: look for look in (*self.looks, *other.looks)}
        return replace(self, looks=sorted(every.values(), key=lambda look: look.when))

    @property
    def state(self) -> WatchState:
        """What all looks so far say; raises NotAvailable without any."""
        if not self.looks:
            raise errors.NotAvailable("nothing has been looked at yet.")
        wealth, limit = betting.Wealth(self.looks, self.edges, self.alpha), 1 / self.alpha
        values = np.exp(np.minimum(wealth.logs, 690))  # below the largest float
        since, remedy, offset, latest = wealth.found()
        gap, bins = wealth.gaps()
        return WatchState(
            alarm=since is not None,
            e_value=float(values[-1]),
            limit=limit,
            looks=len(self.looks),
            rows=sum(look.rows for look in self.looks),
            since=since,
            remedy=remedy,
            offset=offset,
            gap=gap,
            bins=bins,
            path=tuple((x.when, float(v)) for x, v in zip(self.looks, values, strict=True)),
            latest=latest,
        )

    def _check_model(self, sample: Sample) -> None:
        data = sample.data
        named = data.kind != "confidence" or data.cells is not None
        classes, why = tuple(data.class_names) if named else (), ""
        if not self.looks:
            self.reduction, self.classes = sample.reduction, classes
        elif classes != self.classes or sample.reduction != Reduction.of(self.reduction, data):
            before, now = (
                ", ".join(names[:5]) or "confidences" for names in (self.classes, classes)
            )
            why = f"another model: it watches {before}, these rows hold {now}"
        elif (self.heaviest is None) != (data.weights is None or data.cells is not None):
            before, now = ("no weights", "weights")[:: 1 if self.heaviest is None else -1]
            why = f"rows with {before}, these have {now}"
        if why:
            raise InputError(f"the state is of {why}", remedy="give its own state, or a new one")

    def _begin(self, sample: Sample) -> None:
        # The bets depend on scores and weights only, so that they are fixed before any label is seen.
        score, data = sample.scored.score, sample.data
        at = np.arange(1, betting.BINS) / betting.BINS
        if data.cells is not None:
            inner = np.quantile(score, (*at, 0.5), weights=data.weights, method="inverted_cdf")
        else:
            inner = np.append(np.quantile(score, at), np.median(score))
            self.heaviest = None if data.weights is None else float(data.weights.max())
        self.edges = (0.0, *(float(e) for e in np.unique(inner[:-1]) if 0 < e < 1), 1.0)
        self.centre = float(betting.logits(inner[-1]))

    # ---- Saved states

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain values, ready for JSON; `from_dict` reads it back."""
        reduction = self.reduction.key if isinstance(self.reduction, Reduction) else self.reduction
        return {
            _MARK: _FORMAT,
            "alpha": self.alpha,
            "reduction": reduction,
            "classes": list(self.classes),
            "edges": list(self.edges),
            "centre": self.centre,
            **({} if self.heaviest is None else {"heaviest": self.heaviest}),
            "looks": [asdict(look) for look in self.looks],
        }

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Rebuild a watch; raises InputError if the record is none, or damaged."""
        if not isinstance(record, Mapping) or record.get(_MARK) != _FORMAT:
            raise InputError("this is not a state of calviz watch")
        try:
            looks = [
                betting.Look(
                    str(look["when"]),
                    str(look["digest"]),
                    int(look["rows"]),
                    *(tuple(map(float, look[name])) for name in ("units", "score", "hits", "bets")),
                )
                for look in record["looks"]
            ]
            reduction = record["reduction"]
            watch = cls(
                float(record["alpha"]),
                None if reduction is None else Reduction.of(reduction),
                tuple(map(str, record["classes"])),
                tuple(map(float, record["edges"])),
                float(record["centre"]),
                None if record.get("heaviest") is None else float(record["heaviest"]),
                looks,
            )
            bins = len(watch.edges) - 1
            sizes = {(len(x.units), len(x.score), len(x.hits)) for x in looks}
            numbers = np.array([(*x.bets, *x.units, *x.score, *x.hits, x.rows) for x in looks])
            bets = any(len(look.bets) != len(betting.bets_on(bins)) for look in looks)
            if bets or sizes - {(bins,) * 3} or not np.isfinite(numbers).all():
                raise ValueError
        except (KeyError, TypeError, ValueError, AttributeError, OptionError):
            raise InputError("this state of calviz watch is damaged") from None
        return watch

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state as JSON, whole or not at all; raises OutputError if it cannot be written."""
        with replacing(path) as temporary_path:
            temporary_path.write_text(json.dumps(self.to_dict()) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a state that `save` has written; raises InputError if it is none."""
        name = Path(path).name
        try:
            return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except InputError as error:
            raise error.in_file(name) from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"cannot be opened ({reason})", file=name) from None
        except (ValueError, RecursionError):
            raise InputError("this is not a state of calviz watch", file=name) from None


@takes_weights
def watched(sample: Sample) -> WatchState | None:
    """Watch the days of rows with times, and find out whether what they mean has changed; None without times."""
    if sample.data.times is None:
        return None
    state = Watch(reduction=sample.reduction).add(sample)
    state = replace(state, within=_change_in_a_slice(sample))
    if not state.alarm:
        return state
    state = replace(state, change=_change(sample))
    off = slices.usual_slices(sample) if state.change is None else None
    if off is None or not off.apart:
        return state
    more, rest = len(off.named) - 1, sample.once(rest_of_rows)
    only = off.furthest[0] + f" and in {words.counted(more, 'other slice')}" * (more > 0)
    others = None if rest is None else rest.once(watched)
    return replace(state, only=only, others=others if others and others.found else None)


@check("CAL028", "Changes over time", clusters=True, weights=True, about="times", before="CAL002")
@claim("watch")
def change_over_time(sample: Sample) -> Iterator[Told]:
    """Say when rows with times began to follow the scores otherwise, as the tab Time does."""
    state = sample.once(watched)
    if state is not None and state.found is not None:
        yield "warning", state.sentence(), state.headline
    elif state is not None and state.others is not None:
        outside, others = f"Outside {state.only.replace(' and in ', ' and ')},", state.others
        full, short = map(words.within_sentence, (others.sentence(), others.headline))
        yield "warning", f"{outside} {full}", f"{outside} {short}"


@takes_weights
def changed_of_those_off(sample: Sample, rate: float) -> list[tuple[float, float, Where]]:
    """As `changed_slices`, of the slices that are named as off: their gap over all days tells nothing of a change, so that only they are counted (Bonferroni, at `rate`)."""
    found = None if sample.data.cells is not None else slices.usual_slices(sample)
    tested = multicalibration.p_inside(sample, [s.where for s in found.named] if found else [])
    level = rate / max(len(tested), 1)
    return sorted((p, level, where) for p, where in tested if p <= level)


def _way_of_others(sample: Sample, where: Where) -> str:
    """How the rows outside a slice that changed are off: where most surely, or all together; "" if neither is found."""
    if (off := slices.usual_slices(sample)) is None:
        return ""
    others = [s for s in off.named if not {*where} <= {*s.where}]
    if off.apart and others:
        return f"off where {off.place(others[0])[0]}"
    return off.rest if {*where} in ({*s.where} for s in off.named) else ""


@claim(
    "change-in-a-slice",
    says="Since about ... lang = tr: 6.3 points too high; other rows: no change found; or, if these are off, too: others: too high by 0.6 points",
    chosen="the slice that changes most surely, of all with 50 rows or more, of numbers too, and of two values with the largest error together, or else of those found to be off; and the day",
    adjusted="the largest Wald statistic over all days, of the slice and of its difference from the other rows; Bonferroni over all slices at 0.2 %, or over those off at 2 %",
)
def _change_in_a_slice(sample: Sample) -> SliceChange | None:
    """Find the slice whose rows began to follow the scores otherwise than the others did; None if there is none.

    What is said of it is found by the test of all rows, of which p-values are larger, with a map and days of its own.
    """
    for p, largest, where in sample.once(multicalibration.changed_slices) + changed_of_those_off(
        sample, CHANGED
    ):
        inside = np.asarray(rows_where(sample.data, where))
        part, rest = map(sample.rows_of, (inside, ~inside))
        # A month has other days than the other rows, so that what changes in all rows does there on other days.
        cut = sample.data.cuts.get(where[0][0])
        is_month = cut is not None and cut.cycle == "month"
        if not is_month and (change := _change(part)) is not None:
            off = np.asarray(rows_where(part.data, on_days(part.data, change.days, ())))
            seen, low, high = _with_interval(part.rows_of(off), "mcs")
            z, least = -ndtri(np.clip([p, largest], 1e-300, 1) / 2)
            if change.began:
                # It was found with the days on which nothing is off.
                value, *ends = change.before if change.ended else change.after
                z = max(z, 2 * abs(value) * -ndtri(ALPHA / 2) / (ends[1] - ends[0]))
            # What is found is at most as much too large as the gap itself would be, had it been tested.
            error = math.copysign((high - low) / (2 * -ndtri(ALPHA / 2)), seen)
            less, far = p_values.selected(z - least)
            gap = seen - math.copysign(min(less * abs(error), abs(seen)), seen)
            reach = seen + far * error, seen - ndtri(ALPHA / 2) * error
            way = _way_of_others(sample, where)
            alone = change._replace(less=0.0, where=where)
            return SliceChange(where, int(off.sum()), gap, seen, reach, alone, _change(rest), way)
    return None


@claim(
    "change-of-calibration",
    says="Not calibrated from the start, and changed about ...: mean forecast minus frequency 1.7 points before, 6.8 since",
    chosen="the day, of all, and one of two mean gaps and the ECE",
    adjusted="the largest score statistic over all days, against that of normal scores with the same information on each day; another change only after one, on either side of it at half the level",
)
def _change(sample: Sample) -> Change | None:
    """Find the day since which hits follow the scores otherwise, and that of another change before it; None if none is found or nothing could be."""
    times = sample.data.times
    if times is None or (found := _days_of_changes(sample, None)) is None:
        return None
    if (month := features.seasons_of(times)) is not None:
        # What returns every year is no change; where months matter beside a change, its day is found beside them.
        of_months = _days_of_changes(sample, month)
        if of_months is None or _months_matter(sample, month, (found[0], found[1][0])):
            found = of_months
    if found is None:
        return None
    began, (day, between, p_value, beyond) = found
    late = times >= np.datetime64(day)
    early_rows = ~late & (times >= np.datetime64(began or _NEVER))
    early, after = map(sample.rows_of, (early_rows, late))
    own, now = sample.reduction, Watch(reduction=sample.reduction).add(after)
    kinds = (("mcs", own), ("mcs", own.other_of_two(sample.data) or own), (sample.ece_key, own))
    compared = [(*_compared(early, after, key, view), key, view) for key, view in kinds]
    # That of the chosen view, if its intervals before and since are apart.
    best = compared[0] if compared[0][0] > 0.5 else max(compared, key=itemgetter(0))
    _, name, before, since, key, view = best
    gaps = (since, before) if key == "mcs" else ((0.0, 0.0, 0.0),) * 2  # an ECE is above 0 anyway
    error = math.hypot(*(high - low for _, low, high in gaps)) / (2 * -ndtri(ALPHA / 2))
    less, is_since = float(p_values.selected(beyond)[0] * error), abs(since[0]) > abs(before[0])
    both = (
        side_of_change(after, view, gaps[0], less * is_since),
        side_of_change(early, view, gaps[1], less * (not is_since)),
    )
    # Both sizes in one unit.
    factors = all(times or not size for _, times, size in both)
    now_side, before_side = ((way, times if factors else size) for way, times, size in both)
    sides = now_side, before_side
    return Change(day, between, p_value, name, before, since, now, sides, began, less)


def _days_of_changes(
    sample: Sample, month: IntArray | None
) -> tuple[str, tuple[str, tuple[str, str], float, float]] | None:
    """A change as `_day_of_change` finds it, and the day of another one before it, or ""; None if there is none."""
    if (found := _day_of_change(sample, month)) is None:
        return None
    late = np.asarray(sample.data.times) >= np.datetime64(found[0])
    # Binary segmentation: what there is and back shows as one change at first.
    for side in (late, ~late):
        own = None if month is None else month[side]
        if (again := _day_of_change(sample.rows_of(side), own, CHANGED / 2)) is not None:
            return (found[0], again) if side is late else (again[0], found)
    return "", found


def _months_matter(sample: Sample, month: IntArray, days: tuple[str, str]) -> bool:
    """Whether lines of the logits of each month, beside one of the rows between the days of changes, have a larger likelihood beyond chance."""
    data, z = sample.data, betting.logits(sample.scored.score)
    rows = np.ones(data.n) if data.weights is None else data.weights
    starts = np.array([day or _NEVER for day in days], "datetime64[D]")
    part = np.searchsorted(starts, np.asarray(data.times), "right")
    counts = rows, rows * rows.sum() / (rows**2).sum(), sample.scored.hit
    fit, alone = (logistic_curves.lines_by_month(z, counts, m, part)[1] for m in (month, month * 0))
    return bool(2 * (fit - alone) > chdtri(2 * month.max(), _MATTER))


def _day_of_change(
    sample: Sample, month: IntArray | None, level: float = CHANGED
) -> tuple[str, tuple[str, str], float, float] | None:
    """Return the day of a change, the ends of the confidence set of days, the p-value, and by how many errors it is larger than needed; None if it is above `level` or there are too few rows.

    Residuals of hits against one map for all rows add up, as do their products with the logits of the map, to bridges whose largest
    score statistic is judged (Andrews 1993; Hansen 2000, J. Econometrics 97, for days of any information). So neither need the scores be
    calibrated before, nor their distribution stay. With a `month` of each row, shape (n,), each has a line of the logits of its own, so
    that what returns every year is no change. On each day, a cluster counts as one row; the scores are drawn with one factor for all
    rows of a cluster (Cameron, Gelbach & Miller 2008).
    """
    from calviz.recalibrators.logit_spline import LogisticSpline  # loads scikit-learn

    data, hit, score = sample.data, sample.scored.hit, sample.scored.score
    (days, look), is_cells = betting.days_of(sample, None, 0), data.cells is not None
    # A row of a cluster counts as its share of it, a cell as its rows.
    shares = data.weights if is_cells else betting.row_shares(sample, look, None)
    rows = np.ones(data.n) if shares is None else shares
    weight = np.ones(data.n) if is_cells or data.weights is None else data.weights

    def on(*columns: FloatArray) -> FloatArray:
        """Sums on each day, shape (T, C)."""
        return np.stack([np.bincount(look, column) for column in columns], axis=1)

    done = on(rows * hit, rows * ~hit, rows).cumsum(axis=0)
    least = (FEWEST, FEWEST, SIDE * done[-1, 2])
    at = np.flatnonzero((np.minimum(done, done[-1] - done) >= least).all(axis=1))
    if not at.size:
        return None
    scores = np.column_stack([1 - score, score])
    fitted = LogisticSpline(strength=0.1).fit(scores, hit.astype(int), rows * weight)
    q = fitted.transform(scores)[:, 1]
    of_month, counts = np.ones((len(days), 1)), (rows, rows * weight, hit)
    if month is not None:
        month = np.unique(month, return_inverse=True)[1]
        by_month = partial(logistic_curves.lines_by_month, betting.logits(q), counts, month)
        q = expit(by_month(0 * month)[0])
        of_month = np.eye(int(month.max()) + 1)[month[np.unique(look, return_index=True)[1]]]
    spread, residual, z = rows * weight * q * (1 - q), rows * weight * (hit - q), betting.logits(q)
    z -= np.average(z, weights=spread)
    # Information of the two scores of each month until each day, and their variance, which differ by the weights.
    information, variance = (
        (of_month[:, :, None] * on(v, v * z, v * z, v * z * z)[:, None])
        .cumsum(axis=0)
        .reshape(*of_month.shape, 2, 2)
        for v in (spread, weight * spread)
    )
    part = information @ np.linalg.pinv(information[-1], hermitian=True)
    rest, later = np.eye(2) - part, variance[-1] - variance
    both = np.einsum("tmab,tmbc,tmdc->tad", rest, variance, rest)
    both += np.einsum("tmab,tmbc,tmdc->tad", part, later, part)

    def bridges(steps: FloatArray) -> FloatArray:
        """Sums until each day, shape (T, 2, D), less the share that it has of those of each month."""
        of_all = np.tensordot(of_month, steps, (0, 0)).reshape(-1, steps.shape[2])
        return np.asarray(
            steps.cumsum(axis=0) - part.swapaxes(1, 2).reshape(len(days), 2, -1) @ of_all
        )

    rng = np.random.default_rng([sample.seed, 8])
    if data.clusters is not None:
        drawn = _by_cluster(data.clusters.codes, look, np.stack([residual, residual * z]), rng)
        both = (of_drawn := bridges(drawn)) @ of_drawn.swapaxes(1, 2) / DRAWS
    else:
        sizes, axes = np.linalg.eigh(np.diff(variance.sum(axis=1), axis=0, prepend=0))
        normal = rng.standard_normal((DRAWS, len(days), 2)).transpose(1, 2, 0)
        drawn = axes * np.sqrt(np.maximum(sizes, 0))[:, None] @ normal
    bridge = bridges(np.dstack([on(residual, residual * z), drawn]))[at]
    statistics = (bridge * (np.linalg.pinv(both[at], hermitian=True) @ bridge)).sum(axis=1)
    largest = statistics.max(axis=0)
    p_value = float(np.mean(largest >= largest[0]))
    if p_value > level:
        return None
    # Score statistics of large changes are skewed where hits are rare: the day and its set are by the likelihood of a line of the logits
    # before and one since, over the variance that clusters and weights add. Days with too little on one side to be tested may be true.
    may_be = np.flatnonzero((np.minimum(done, done[-1] - done) >= 1).all(axis=1))
    place, k = np.searchsorted(may_be, at), int(statistics[:, 0].argmax())
    for _ in range(1 if month is None else 3):  # lines of months depend on the day
        z = z if month is None else by_month((look > at[k]).astype(np.intp))[0]
        lines, *each = logistic_curves.tables_of_logits(z, counts, look, len(days))
        table = [v.cumsum(axis=0) for v in each]
        fit = logistic_curves.fit_of_lines(lines, *(t[may_be] for t in table))[0]
        fit += logistic_curves.fit_of_lines(lines, *(t[-1] - t[may_be] for t in table))[0]
        k = int(fit[place].argmax())
    best, moved = int(at[k]), bridge[k, :, 0]
    known = (part[best] @ (information[-1] - information[best])).sum(axis=0)
    alone = np.linalg.pinv(known, hermitian=True)
    fall = 2 * (fit[place[k]] - fit) * statistics[k, 0] / max(moved @ alone @ moved, 1e-300)
    near = [days[t + 1] for t in may_be[fall <= NEAR]]
    beyond = math.sqrt(largest[0]) - math.sqrt(np.quantile(largest, 1 - level))
    return days[best + 1], (near[0], near[-1]), p_value, beyond


def _by_cluster(
    cluster: IntArray, look: IntArray, columns: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Sums of C columns per look, shape (T, C, DRAWS), where the rows of a cluster have one normal factor."""
    from scipy.sparse import coo_array  # slow to import

    shape = int(look.max()) + 1, int(cluster.max()) + 1
    tables = [coo_array((column, (look, cluster)), shape=shape).tocsr() for column in columns]
    # In parts, for many clusters.
    factors = (rng.standard_normal((shape[1], DRAWS // 27)) for _ in range(27))
    return np.concatenate([np.stack([t @ f for t in tables], axis=1) for f in factors], axis=2)


def _by(way: str, size: str) -> str:
    """Say how much scores are off: by points, or something rare by a factor."""
    if size.endswith("times"):
        return way.replace("too", f"{size} too")
    return f"{way} by {size}" if size else way


def _compared(
    early: Sample, late: Sample, key: str, view: Reduction
) -> tuple[float, str, Any, Any]:
    """The difference of a metric in widths of its intervals, its name, and its values, each with the ends of its interval."""
    a, b = (_with_interval(part.but(reduction=view), key) for part in (early, late))
    name = " minus ".join(words.score_and_hit(view)) if key == "mcs" else METRICS[key].label
    return abs(b[0] - a[0]) / (a[2] - a[1] + b[2] - b[1]), name, a, b


def _with_interval(part: Sample, key: str) -> tuple[float, float, float]:
    """A metric and the ends of its interval."""
    how = metric_results.Resampling(True, False, 1 - ALPHA, "own", part.resamples, part.seed)
    measured = metric_results.measured_with_error_bars(part, [METRICS[key]], {}, how)[key]
    return measured.value, *(measured.interval or Interval(-1, 1))


def _about(watch: Watch) -> tuple[object, ...]:
    return tuple(value for key, value in watch.to_dict().items() if key != "looks")
