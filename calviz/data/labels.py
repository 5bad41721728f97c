"""Labels and other single columns to numbers and class indices."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from calviz.core.blocks import AnyArray, BoolArray, Factor, FloatArray, IntArray
from calviz.core.errors import Finding, InputError, Reading
from calviz.data import column_names
from calviz.data.column_names import FEW, class_key, event_of, is_missing, pairs_of, whole
from calviz.data.format import REPAIRS, Notice, filled, join_places, no_outcomes, short

# ---- Class indices

#: In the place of a label that is left out, as it is none of the classes.
NO_CLASS = -2


#: What to do, the repair, and what is said of the others, where labels are missing, and where all others have the event.
IF_MISSING = "fill in the labels, or ask to leave out the rows", "drop-missing", ""
IF_FLAG = (
    "write 'N' or the like where there was no event, or ask to read blanks so",
    "blank-no",
    ", all others have the event",
)
_GIVE_NAMES = "give the class names in the order of the scores (--class-names '…')"


@dataclass(frozen=True, eq=False)
class Labels:
    """Class indices and how they were derived.

    Attributes
    ----------
    indices : ndarray of int, shape (n,)
        -1 where the label is missing, `NO_CLASS` where it is left out as none of the classes.
    form : str
        "class index", "class name", "one-hot", "-1 and +1", ...
    class_names : tuple of str
        The class names, filled in from the labels where possible.
    notice : str
        Remark about how the labels were read; empty if there is none.
    joined : str
        The spellings that are read as one class; empty if each class has one.
    """

    indices: IntArray
    form: str
    class_names: tuple[str, ...]
    notice: str = ""
    joined: str = ""

    @property
    def missing(self) -> BoolArray:
        """Mask of the rows without a label, shape (n,)."""
        return self.indices < 0

    def reversed_for(self, column: str) -> Labels:
        """Return the same labels with the two classes in the other order, for a score column that is of the first one."""
        indices = np.where(self.missing, self.indices, 1 - self.indices)
        first, second = self.class_names
        notice = f"'{short(column)}' was read as the score of class '{short(first)}'"
        return Labels(indices, self.form, (second, first), notice, self.joined)


def decode(
    values: AnyArray | Factor,
    k: int,
    *,
    name: str,
    line: Callable[[int], int | None],
    class_names: tuple[str, ...] = (),
    columns: tuple[str, ...] = (),
    base: int | None = None,
    class_labels: tuple[str, ...] = (),
    only: bool = False,
    asks: bool = False,
    models: int = 1,
    given: bool = True,
) -> Labels:
    """Return the class indices of a label column, matched by class name first, by index second.

    Parameters
    ----------
    values : ndarray or Factor
        The column.
    k : int
        The number of classes.
    name : str
        Name of the label column, for messages.
    line : callable
        Returns the line number of a data row in a text file, or None.
    class_names : tuple of str
        Names of the classes; empty if unknown.
    columns : tuple of str
        Names of the score columns, which the labels may use as class names.
    base : {0, 1}, optional
        Whether numeric labels count from 0 or from 1; 0 if left out.
    class_labels : tuple of str
        The label of each class, if it is known to be neither its name nor its position.
    only : bool
        Whether labels that are none of the classes are left out.
    asks : bool
        Whether leaving them out is offered.
    models : int
        The number of models, of which each has these classes.
    given : bool
        Whether the user named the classes; names from a header are spelled as most of the labels are.

    Raises
    ------
    InputError
        If a label is none of the classes; names the row.
    """
    decoder = _Decoder(k, class_names, columns, base, name, line, only, asks, models, given)
    if not class_labels and (plain := decoder.plain_indices(values)) is not None:
        return Labels(plain, "class index", class_names or tuple(str(j) for j in range(k)))
    # In a numeric column NaN is a missing label, whatever the class names are.
    is_text = isinstance(values, Factor) or values.dtype.kind not in "fc"
    named = class_labels or ((*class_names, *columns) if is_text else ())
    decoder.look_at(Factor.of(values), named, class_labels or class_names)
    return decoder.by_given_labels(class_labels) if class_labels else decoder.decode()


def one_of_several(
    values: AnyArray | Factor, names: tuple[str, ...], column: str
) -> tuple[Labels, str]:
    """Return the labels where one of several, the second of `names`, is the event, or the first is none and all others are; and which, in words."""
    factor = Factor.of(values)
    missing = np.array([is_missing(text.strip()) for text in factor.levels])
    for name, is_event in ((names[1], True), (names[0], False)):
        same = np.array([class_key(text) == class_key(name) for text in factor.levels])
        if same.any():
            codes = np.where(missing, -1, same == is_event).astype(np.int32)[factor.codes]
            text = f"all labels in '{short(column)}' but '{short(name)}' are {'no' if is_event else 'the'} event"
            return Labels(codes, "one of several", names), text
    raise InputError(
        f"no row has the label '{short(names[1])}' or '{short(names[0])}'", column=column
    )


#: A label of fewer rows, or of a smaller share of them, may be a mistake.
_FEWEST, _MISTAKES = 20, 0.05
#: A question that would have more answers is not asked.
_MOST_READINGS = 6
#: With more classes, nobody is asked which label is which.
_MOST_MATCHED = 12
#: Names of the event that say of any two labels which of them it is.
_HAPPENED = (*column_names.EVENT, "true", "yes")
_NOBODY_KNOWS = frozenset(("unknown", "undecided", "unclear", "pending", "unbekannt"))
#: These and words that may be a class, but rather say that there is no outcome yet.
_NO_OUTCOME = _NOBODY_KNOWS | {"open", "ongoing", "offen"}


@dataclass(eq=False)
class _Decoder:
    """What is known of the classes, and the distinct labels of a column."""

    k: int
    class_names: tuple[str, ...]
    columns: tuple[str, ...]
    base: int | None
    name: str
    line: Callable[[int], int | None]
    only: bool
    asks: bool
    models: int
    given: bool

    def plain_indices(self, values: AnyArray | Factor) -> IntArray | None:
        """Return whole numbers 0..K-1 unchanged unless they may be class names; by far the most common case, and needs no sorting."""
        if isinstance(values, Factor) or values.dtype.kind not in "iuf":
            return None
        if not values.size or self.base:
            return None
        names = self.class_names
        names = () if names == tuple(str(j) for j in range(self.k)) else names
        if values.dtype.kind == "f":
            names = (*names, *self.columns)
        if any(whole(name) is not None for name in names):
            return None
        if not (values.min() >= 0 and values.max() < self.k):  # also if one is nan
            return None
        indices = values.astype(np.int32, copy=False)
        return indices if np.array_equal(indices, values) else None

    def look_at(self, factor: Factor, named: tuple[str, ...], classes: tuple[str, ...]) -> None:
        """Take the labels of a column, the most frequent first, of these classes; those `named` are no words for a missing label."""
        self.factor, self.rows = factor, [*factor.counts().values()]
        self.levels = [level.strip() for level in factor.levels]
        words = {c.casefold() for c in named}
        self.known = [
            j
            for j in sorted(range(len(self.levels)), key=lambda j: -self.rows[j])
            if not is_missing(level := self.levels[j]) or (level and level.casefold() in words)
        ]
        if self.k == 2 and len(self.known) == 3:  # a third word may say that nobody knows
            nobody = _NOBODY_KNOWS - words
            self.known = [j for j in self.known if self.levels[j].casefold() not in nobody]
        if not self.known:
            raise no_outcomes(self.name)
        self.left_out = self._others(classes) if self.only and classes else []
        self.known = [j for j in self.known if j not in self.left_out] or self.known
        self.texts = [self.levels[j] for j in self.known]
        self.spelled = {class_key(text): text for text in reversed(self.texts)}  # as is usual
        self.counts = dict.fromkeys(map(class_key, self.texts), 0)
        for j in self.known:
            self.counts[class_key(self.levels[j])] += self.rows[j]
        self.wholes = [whole(text) for text in self.texts]

    def decode(self) -> Labels:
        names = self.class_names or tuple(str(j + (self.base or 0)) for j in range(self.k))
        numbers = [number for number in self.wholes if number is not None]
        are_numbers = len(numbers) == len(self.wholes)
        # A base does not apply to names.
        by_name = None if self.base is not None and are_numbers else self._by_name()
        if by_name is not None:
            return by_name
        if are_numbers:
            return self._by_index(numbers, names)
        if self.k == 2 and (pair := self._by_pair()) is not None:
            return pair
        raise self._which_class() or self._unknown(names)

    def by_given_labels(self, labels: tuple[str, ...]) -> Labels:
        place = {class_key(label): j for j, label in enumerate(labels)}
        booleans = {"false": place.get("0", -1), "true": place.get("1", -1)} | place
        codes = [booleans.get(class_key(text), -1) for text in self.texts]
        if -1 in codes:
            raise self._unknown(labels)
        form = "class name" if any(whole(label) is None for label in labels) else "class index"
        return self._labels(codes, form, self.class_names or labels)

    def _labels(
        self, codes: Sequence[int], form: str, names: tuple[str, ...], notice: str = ""
    ) -> Labels:
        out = np.full(len(self.levels), -1, dtype=np.int32)
        out[self.left_out] = NO_CLASS
        out[self.known] = codes
        spelled: dict[int, list[str]] = {}
        if not self.given:
            usual = {class_key(t): t for t in reversed(self.texts) if whole(t) is None}
            names = tuple(usual.get(class_key(name), name) for name in names)
        for j, code in zip(self.known, codes, strict=True):
            if self.rows[j] and whole(text := self.levels[j]) is None:
                spelled.setdefault(code, []).append(f"'{short(text)}' ({self.rows[j]:,})")
        joined = "; ".join(", ".join(texts) for texts in spelled.values() if len(texts) > 1)
        if self.left_out:
            left = f"labels that are none of the classes: {self._shown(self.left_out)}"
            notice = "; ".join(filter(None, (notice, left)))
        return Labels(out[self.factor.codes], form, names, notice, joined)

    def _by_name(self) -> Labels | None:
        if not self.class_names:
            return None
        index = {c: j for j, c in enumerate(self.columns)} if len(self.columns) == self.k else {}
        index |= {c: j for j, c in enumerate(self.class_names)}
        # "1.0" means the class "1": whole numbers are often stored as floats.
        texts = [
            text if text in index or number is None else str(number)
            for text, number in zip(self.texts, self.wholes, strict=True)
        ]
        if all(t in index for t in texts):
            counted = self.class_names == tuple(str(j) for j in range(self.k))
            form = "class index" if counted else "class name"
            return self._labels([index[t] for t in texts], form, self.class_names)
        folded = {c.casefold(): j for c, j in index.items()}
        if len(folded) < len(index) or any(t.casefold() not in folded for t in texts):
            return None
        notice = "labels and class names were matched without regard to upper and lower case"
        codes = [folded[t.casefold()] for t in texts]
        return self._labels(codes, "class name", self.class_names, notice)

    def _by_index(self, values: list[int], names: tuple[str, ...]) -> Labels:
        if self.k == 2 and -1 in values and set(values) <= {-1, 1} and self.base is None:
            notice = "labels -1 and +1 were read as the first and the second class"
            names = self.class_names or ("-1", "1")
            return self._labels([(v + 1) // 2 for v in values], "-1 and +1", names, notice)
        base = self.base or 0
        out_of_range = [
            (j, v) for j, v in zip(self.known, values, strict=True) if not 0 <= v - base < self.k
        ]
        if out_of_range:
            if len(self.counts) > 2 and (question := self._which_event()) is not None:
                raise question
            raise self._out_of_range(out_of_range, values, base)
        notice = ""
        counted = tuple(str(j + base) for j in range(self.k))
        if {str(v) for v in values} & set(self.class_names) and self.class_names != counted:
            notice = (
                f"labels were read as positions counted from {base}, although the classes have "
                f"numbers as names ({', '.join(self.class_names[:5])})"
            )
        form = "class index" if base == 0 else "class index, counted from 1"
        return self._labels([v - base for v in values], form, names, notice)

    def _by_pair(self) -> Labels | None:
        words = self.spelled
        event = event_of(words)
        if event is None:
            return None
        other = column_names.no_event_of(words) or ""
        names = self.class_names
        if column_names.is_event_first(names) and class_key(names[0]) in _HAPPENED:
            event, other = other, event
        spelled = (words.get(other, other), words.get(event, event))
        notice = f"the event is '{spelled[1]}' (class 1)"
        if lacks := [f"'{name}'" for name in (other, event) if name not in words]:
            notice += f"; no row has {lacks[0]}, which is assumed to be the other class"
        codes = [int(class_key(text) == event) for text in self.texts]
        return self._labels(codes, " or ".join(spelled), self.class_names or spelled, notice)

    def _out_of_range(
        self, wrong: list[tuple[int, int]], values: list[int], base: int
    ) -> InputError:
        level, value = min(wrong, key=lambda w: self._first_row(w[0]))
        row = self._first_row(level)
        remedy = "correct the label, or check which columns are the label and the scores"
        readings = []
        if base == 0 and min(values) >= 1 and max(values) == self.k:
            remedy = "if the labels count from 1, say so (label base 1, --label-base 1)"
            readings.append(Reading("the labels count the classes from 1", {"label_base": 1}))
        return InputError(
            f"label {value} but there are {self.k:,} classes ({base}..{self.k - 1 + base})",
            row=row + 1,
            line=self.line(row),
            column=self.name,
            remedy=remedy,
            readings=readings,
        )

    def _unknown(self, names: tuple[str, ...]) -> InputError:
        if not self.class_names:
            if self.k == 2 and (amounts := self._amounts()) is not None:
                return amounts
            examples = ", ".join(f"'{short(text)}'" for text in self.texts[:5])
            event = ", the event last" * (self.k == 2)
            return self._which_event() or InputError(
                f"the labels are text ({examples}{', …' if len(self.known) > 5 else ''}), but nothing says "
                "which class each of them is",
                column=self.name,
                remedy=f"name another column as the label, or {_GIVE_NAMES}{event}",
            )
        others = self._others(names) or [j for j in self.known if self.levels[j] not in names]
        row, left = min(map(self._first_row, others)), self._without(names)
        shown = ", ".join(short(n) for n in names[:10]) + (", …" if len(names) > 10 else "")
        several = sum(self.rows[j] for j in others) > 1
        labels = f"{self._shown(others)} in '{short(self.name)}'"
        labels = labels if several else f"'{short(self.levels[others[0]])}'"
        return InputError(
            f"{labels} {'is' if len(others) == 1 else 'are'} none of the classes {shown}",
            row=row + 1,
            line=self.line(row),
            column=self.name,
            placed=several,
            remedy="correct it" if left else f"name another column as the label, or {_GIVE_NAMES}",
            readings=left,
        )

    def _amounts(self) -> InputError | None:
        """Return the error about numbers that are no classes; None if there are none. From 0 up, they may be amounts of which any is the event."""
        numbers = [column_names.number_of(text) for text in self.texts]
        amounts = sorted(number for number in numbers if number is not None)
        if len(amounts) < len(numbers) or None not in self.wholes:
            return None
        return InputError(
            f"'{short(self.name)}' holds numbers from {amounts[0]:g} to {amounts[-1]:g}, which are no classes",
            column=self.name,
            placed=True,
            remedy="add a column that says of each row whether the event happened",
            repairs=[REPAIRS["above-zero"]] if amounts[0] == 0 else (),
        )

    def _which_class(self) -> InputError | None:
        """Return the question which label, in words of its own, is which of the named classes; None if that is not the question."""
        classes, k = self.class_names, self.k
        rows = {self.spelled[key]: n for key, n in self.counts.items()}
        if not (self.asks and classes and len(rows) > 1 and max(k, len(rows)) <= _MOST_MATCHED):
            return None
        pairs = column_names.paired(rows, classes)
        known = len({*self.counts} & {*map(class_key, classes)})
        if known == (len(pairs) if pairs else k):
            return None  # the others are none of the classes
        if not pairs and (not column_names.most(rows, k) or (k == 2 and known)):
            return None
        if k == 2 and (self.models > 1 or len(pairs or rows) != k):
            return None  # columns of models cannot be named in one order
        orders = [pairs] if pairs else []
        if k == 2:  # both ways are shown, the one by words first
            labels = tuple(pairs or rows)
            both = [dict(zip(labels, order, strict=True)) for order in (classes, classes[::-1])]
            orders += [order for order in both if order != pairs]
        readings = []
        for order in orders:
            label_of = {name: label for label, name in order.items()}
            names = tuple(label_of.get(name, name) for name in classes)
            text = ", ".join(f"{short(label_of[n])} = {short(n)}" for n in classes if n in label_of)
            # Of two columns, the event comes last unless their order is given.
            columns = {"scores": self.columns} if k == 2 else {}
            of_order = Reading(text, {**columns, "class_names": names})
            readings.append(Reading.joined([of_order, *self._without(names)]))
        asked = f"{readings[0].label}?" if pairs else "nothing says which is which"
        return InputError(
            f"the labels in '{short(self.name)}', {self._shown(self.known)}, are spelt otherwise than the classes of the scores, "
            f"{', '.join(map(short, classes))}: {asked}",
            remedy=None if readings else _GIVE_NAMES,
            readings=readings,
            asks=True,
            unmatched=(classes, tuple(rows)) if k > 2 else ((), ()),
        )

    def _which_event(self) -> InputError | None:
        """Return the question which two labels are the classes of a single score, and which is the event; None if it has too many answers."""
        single = self.asks and self.k == 2 and not self.class_names
        readings = []
        pairs = pairs_of(self.counts) if single else []
        # A label of few rows may be a mistake.
        least = max(_FEWEST, _MISTAKES * sum(self.rows))
        sure = {key for key, n in self.counts.items() if n >= least} - _NO_OUTCOME
        may_be = single and len(self.counts) > 2 and all(n is None for n in self.wholes)
        known = {*map(event_of, pairs)} - {None}
        # Beside two labels without a known event, one of few rows, but of more than slips, may be of either.
        alone = bool(pairs and sure) and not known and len(self.counts) == 3
        rare = {key for key, n in self.counts.items() if alone and n > 2} - sure - _NO_OUTCOME
        may_be = may_be and (not pairs or any((sure | rare).difference(pair) for pair in pairs))
        events = known or sure
        # What keeps all rows comes first.
        ways = [
            (f"'{short(text)}': all others are no event", (f"not {text}", text))
            for key, text in self.spelled.items()
            if key in sure & events and not rare
        ]
        if sure | rare >= {*self.counts} and len(ways) < _MOST_READINGS:
            none = self.spelled[max(sure - events or sure, key=self.counts.__getitem__)]
            ways.append((f"any but '{short(none)}'", (none, f"not {none}")))
        for text, both in ways if may_be else ():
            of_one = {"class_names": both, "repair": ("others-no",)}
            readings.append(Reading(f"the probability of {text}", of_one))
        for pair in pairs:
            event = event_of(pair)
            for happened in (event,) if event else sorted(pair, reverse=True):
                names = tuple(self.spelled[key] for key in sorted(pair, key=happened.__eq__))
                text = f"the probability of '{short(names[1])}'"
                of_event = Reading(text, {"class_names": names})
                readings.append(Reading.joined([of_event, *self._without(names)]))
        if may_be and len(readings) > _MOST_READINGS:
            readings = readings[: len(ways)]
        if not 0 < len(readings) <= _MOST_READINGS:
            return None
        if len(self.counts) == 2:
            one, two = (f"'{short(self.spelled[key])}'" for key in sorted(self.counts))
            what = f"nothing says which class the score is the probability of: {one} or {two}"
            return InputError(what, column=self.name, readings=readings)
        what = f"a score tells two classes apart, but '{short(self.name)}' has {len(self.counts)}: {self._shown(self.known)}"
        rarest = self._first_row(self.known[-1])
        return InputError(what, row=rarest + 1, placed=True, readings=readings)

    def _without(self, names: tuple[str, ...]) -> list[Reading]:
        """The reading without the rows of labels that are none of the classes, unless there are none, or too many to be mistakes."""
        others = self._others(names)
        share = sum(self.rows[j] for j in others) / sum(self.rows[j] for j in self.known)
        few = share <= FEW
        may_be = few or bool(self.class_names and (len(self.columns) == 1 or self.k > 2))
        if not (self.asks and may_be and 0 < len(others) < len(self.known)):
            return []
        of_all = f", {share:.0%} of all" * (not few)
        text = f"leave out the rows with {self._shown(others)}{of_all}"
        return [Reading(text, {"repair": ("drop-labels",)}, proposed=few)]

    def _shown(self, levels: Sequence[int]) -> str:
        """Labels with their numbers of rows."""
        counted = [(short(self.levels[j]), self.rows[j]) for j in levels[:5]]
        first = [f"'{label}' ({n:,} row{'s' * (n != 1)})" for label, n in counted]
        return join_places(first, len(levels))

    def _others(self, names: Sequence[str]) -> list[int]:
        """The labels that are none of the classes; 0 and 1 may be written as false and true."""
        keys = {class_key(name) for name in names}
        keys |= {word for word, of in (("false", "0"), ("true", "1")) if of in keys}
        return [j for j in self.known if class_key(self.levels[j]) not in keys]

    def _first_row(self, level: int) -> int:
        return int(np.argmax(self.factor.codes == level))


#: Another order of the class names is named if it is right in this share of the rows more.
_FAR = 0.05


def in_another_order(
    array: FloatArray, labels: Labels, given: tuple[str, ...] | None
) -> Iterator[tuple[str, Reading]]:
    """Say if the largest score, shape (n, K), is right in far more rows with the `given` names of more than two classes in another order.

    If no order is better than the given one, it has at least half of the rows in which one of both is right: Hoeffding's bound, at 0.1 %
    for all K! orders together.
    """
    from scipy.optimize import linear_sum_assignment

    if not (labels.form and given and len(given) > 2):
        return
    known = ~(labels.missing | np.isnan(array).any(axis=1))
    k, n = array.shape[1], int(known.sum())
    pairs = k * array[known].argmax(axis=1) + labels.indices[known]
    rows = np.bincount(pairs, minlength=k * k).reshape(k, k)
    best = linear_sum_assignment(-rows)[1]
    moved = np.flatnonzero(best != np.arange(k))
    here, there = int(rows[moved, moved].sum()), int(rows[moved, best[moved]].sum())
    gain, chance = there - here, 2 * (here + there) * (math.lgamma(k + 1) + math.log(1_000))
    if gain < _FAR * n or gain**2 <= chance:
        return
    right, names = int(rows.trace()), tuple(labels.class_names[j] for j in best)
    words = ", ".join(map(short, names))
    now, then = (f"{100 * hits / n:.1f} %" for hits in (right, right + gain))
    text = (
        f"with the class names in this order the largest score is right in {now} of the rows, and in {then} in the order {words}: "
        "which one is that of the scores?"
    )
    yield text, Reading(f"name the classes {words}", {"class_names": names})


def check_class_names(names: tuple[str, ...], k: int) -> None:
    """Raise InputError unless there is one name for each of K classes, or none."""
    if names and len(names) != k:
        what = f"there are {len(names):,} class names for {k:,} classes"
        raise InputError(what, remedy="give one name per class, in the order of the scores")


def names_of_one(name: str, values: AnyArray | Factor) -> tuple[str, ...]:
    """Names of the two classes if the name of the only score column is one of the labels (``p_malignant``), which is the event."""
    counts: Counter[str] = Counter()
    for v, rows in Factor.of(values).counts().items():
        if v and (v == name or not is_missing(v)):
            counts[v if v == name or (number := whole(v)) is None else str(number)] += rows
    others = [key for pair in pairs_of(counts) if name in pair for key in pair if key != name]
    return (others[0], name) if len(others) == 1 else ()


def names_by_ids(
    label: Factor, columns: Mapping[str, Any], scores: FloatArray
) -> tuple[tuple[str, ...], str]:
    """The classes in the order of the numbers 0..K-1 that another column has for them, one for each in all labelled rows, and what says so; twice nothing if none has."""
    n, k = scores.shape
    texts = np.array([class_key(text) for text in label.levels])[label.codes]
    known = ~np.array([is_missing(text.strip()) for text in label.levels])[label.codes]
    for name, column in columns.items():
        if not isinstance(column, Factor) or len(column.levels) > k + 9 or len(column) != n:
            continue
        ids = np.array([whole(text.strip()) for text in column.levels])[column.codes]
        pairs = {*zip(ids[known].tolist(), texts[known].tolist(), strict=True)}
        names = dict(pairs)
        words = {name for name in names.values() if whole(name) is None}
        if len(pairs) != k or len(words) != k or {*names} != {*range(k)}:
            continue
        # Were the scores in another order, some class would have lower scores in its own rows.
        own = [(known & (ids == j), known & (ids != j)) for j in range(k)]
        if all(
            np.nanmean(scores[here, j]) > np.nanmean(scores[rest, j])
            for j, (here, rest) in enumerate(own)
        ):
            ordered = tuple(names[j] for j in range(k))
            shown = join_places([*map(short, ordered[:10])], k)
            return ordered, f"the scores are in the order of '{short(name)}': {shown}"
    return (), ""


def from_one_hot(
    block: AnyArray, names: tuple[str, ...], line: Callable[[int], int | None]
) -> IntArray:
    """Class indices, shape (n,), from a 0/1 array of shape (n, K); with K = 1, the column is class 1."""
    shown = short(", ".join(names), length=60)
    missing = np.isnan(block).any(axis=1) if block.dtype.kind == "f" else np.zeros(len(block), bool)
    bad = ~(((block == 0) | (block == 1)).all(axis=1) | missing)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            "the one-hot label holds values other than 0 and 1",
            row=row + 1,
            line=line(row),
            column=shown,
            remedy="labels that are themselves probabilities are not supported",
        )
    if block.shape[1] == 1:
        indices = np.where(missing, 0, block[:, 0]).astype(np.int32)
    else:
        ones = block.sum(axis=1)
        bad = (ones != 1) & ~missing
        if bad.any():
            row = int(bad.argmax())
            raise InputError(
                f"{int(ones[row])} of the one-hot label columns are 1, expected exactly one",
                row=row + 1,
                line=line(row),
                column=shown,
            )
        indices = block.argmax(axis=1).astype(np.int32)
    indices[missing] = -1
    return indices


# ---- Single columns to one dimension, to numbers, and two columns of classes to indices into shared names


def one_dimensional(values: AnyArray | Factor) -> AnyArray | Factor:
    """Return the values of a column of shape (n,) or (n, 1) as shape (n,)."""
    if isinstance(values, Factor) or values.ndim == 1:
        return values
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    raise InputError(f"a column of shape {values.shape} cannot be used here, expected 1-D")


def without_fills(
    values: AnyArray | Factor, classes: Sequence[str] = ()
) -> tuple[AnyArray | Factor, str]:
    """Return labels, shape (n,), as missing where a number that is none of the `classes` stands for that, and say so; of texts if two others are left."""
    if not isinstance(values, Factor) and not filled(values).any():
        return values, ""
    factor = Factor.of(values)
    rows = {text: count for text, count in factor.counts().items() if count}
    numbers = [column_names.number_of(text.strip() or "nan") for text in rows]
    fills = filled(np.array([1.0 if number is None else number for number in numbers]))
    found = dict(compress(rows.items(), fills))
    others = {class_key(t) for t in rows if t not in found and not is_missing(t.strip())}
    named = not {*map(class_key, found)}.isdisjoint(map(class_key, classes))
    if not found or named or (None in numbers and len(others) != 2):
        return values, ""
    texts = np.array(["" if text in found else text for text in factor.levels], object)
    counted = ", ".join(f"'{short(text)}' ({count:,})" for text, count in found.items())
    return Factor.of(texts[factor.codes]), f"read as missing: {counted}"


def as_numbers(values: AnyArray | Factor, name: str) -> AnyArray:
    """Convert text to numbers (empty to NaN, true and false to 1 and 0); raise InputError, naming the row, if a value is not a number."""
    if not isinstance(values, Factor):
        return values
    words = {"true": "1", "false": "0", "": "nan"}
    levels = [column_names.number_of(words.get(v.strip().lower(), v)) for v in values.levels]
    if None in levels:
        bad = [j for j, number in enumerate(levels) if number is None]
        row = int(np.isin(values.codes, bad).argmax())
        value = values.levels[values.codes[row]]
        raise InputError(f"'{short(value)}' is not a number", row=row + 1, column=name)
    return np.array(levels, dtype=np.float64)[values.codes]


#: Of fewer rows, all predictions may be wrong.
_FEWEST_WRONG = 20


def joint_classes(
    truth: AnyArray | Factor,
    predicted: AnyArray | Factor,
    names: tuple[str, ...],
    joins: bool,
    columns: tuple[str, ...] = (),
) -> tuple[IntArray, IntArray, tuple[str, ...], list[Finding]]:
    """True and predicted labels as indices, shape (n,) each, into `names` or else the classes that occur in either.

    True labels that differ from what is predicted by case and spaces only are that class, unless the predictions have several such
    spellings, of which the most frequent one is the class if it `joins` them; a notice names these. Of the `columns`, the second cannot hold
    predictions if it shares no class with the first, unless there are few rows, or the names are given.
    """
    asks = bool(columns) and not names
    one, two = Factor.of(one_dimensional(truth)), Factor.of(one_dimensional(predicted))
    index: dict[str, int] = {}
    joined: list[str] = []
    told: list[Finding] = []
    if not names:
        levels = {level for level in (*one.levels, *two.levels) if level}
        numbers = {level: whole(level) for level in levels}
        if None not in numbers.values():
            # "1.0" and "1" are one class: whole numbers with gaps are often stored as floats.
            order = sorted({number for number in numbers.values() if number is not None})
            names = tuple(str(number) for number in order)
            place_of = {number: j for j, number in enumerate(order)}
            index = {level: place_of[number or 0] for level, number in numbers.items()}
        else:
            counts = np.bincount(two.codes, minlength=len(two.levels))
            by_count = [two.levels[j] for j in np.argsort(counts, kind="stable")]
            usual = {level.strip().casefold(): level for level in by_count if level}
            if len(usual) < sum(map(bool, two.levels)) and not joins:
                apart = f"names that differ by case only are different classes here, such as '{short(min(levels))}'"
                told.append(Notice.LABEL_VALUES.finding("warning", apart))
                usual = {}
            spelled = {level: usual.get(level.strip().casefold(), level) for level in levels}
            names = tuple(sorted({*spelled.values()}))
            index = {level: names.index(name) for level, name in spelled.items()}
            joined = [f"'{short(v)}' is '{short(n)}'" for v, n in spelled.items() if v != n]
    index = index or {c: j for j, c in enumerate(names)}
    index[""] = -1
    for level in (*one.levels, *two.levels):
        place = index.get(level, whole(level))
        if place is None or not -1 <= place < len(names) or (place < 0 and level):
            raise InputError(f"label '{short(level)}' is none of the class names")
        index[level] = place
    codes = [np.array([index[v] for v in f.levels], dtype=np.int32)[f.codes] for f in (one, two)]
    label, said = (each[(codes[0] >= 0) & (codes[1] >= 0)] for each in codes)
    if asks and len(label) >= _FEWEST_WRONG and not np.intersect1d(label, said).size:
        raise InputError(
            f"no value of '{short(columns[1])}', such as '{short(names[said[0]])}', is in the label '{short(columns[0])}', which holds "
            f"'{short(names[label[0]])}': no prediction could be right",
            remedy="say which column is the label and which the prediction, or give the class names",
            asks=True,
        )
    if joined:
        text = f"spellings that are read as one class: {', '.join(sorted(joined))}"
        told.append(Notice.LABEL_VALUES.finding("info", text))
    return codes[0], codes[1], names, told


#: A column that names classes is a second label if its chance-corrected agreement with the label is above this: the least that
#: Fleiss (1981) calls fair.
_AGREES = 0.4
#: Fewest rows that tell what a column says of the label (of a class, and of a value on average), and most in all that are looked at.
FEWEST_TOLD, MOST_TOLD = 20, 50_000
#: Words for one of two classes that any flag has.
_OF_FLAGS = frozenset(
    ("false", "no", "n", "f", "-", "0", "absent", "off", "nein", "non", "não", "nao", "falsch", "faux", "falso", "onwaar")
)  # fmt: skip


def second_labels(
    columns: Mapping[str, Factor | FloatArray],
    label: str,
    given: Factor | AnyArray,
    labels: IntArray,
) -> list[str]:
    """The columns of nothing but names of classes, where they are not empty, that agree with the `given` labels: those of another rater or model.

    Of two classes that any flag may have, the column is called as the `label` is, but for a number.
    """

    def keys(column: Factor) -> AnyArray:
        """Its levels as classes, those of empty cells as ""."""
        return np.array(["" if is_missing(v.strip()) else class_key(v) for v in column.levels])

    alike = {name for name in columns if re.sub(r"\d+", "", name) == re.sub(r"\d+", "", label)}
    if not (alike or isinstance(given, Factor)):
        return []  # numbers, which any flag may have
    given = Factor.of(given)
    truth = keys(given)
    named = {*truth.tolist()} - {""}
    numbers = None not in map(column_names.number_of, named)
    flags = numbers or (len(named) < 3 and not _OF_FLAGS.isdisjoint(named))
    found = []
    for name, column in columns.items():
        if name in alike:
            values = Factor.of(column)
        elif flags or not isinstance(column, Factor):
            continue
        else:
            values = column
        if len(values.levels) > 2 * len(named):
            continue
        said = keys(values)
        if not 1 < len({*said.tolist()} - {""}) <= len({*said.tolist()} & named):
            continue
        from sklearn.metrics import cohen_kappa_score

        rows = np.flatnonzero((said[values.codes] != "") & (labels >= 0))[:MOST_TOLD]
        each = said[values.codes[rows]], truth[given.codes[rows]]
        if rows.size >= FEWEST_TOLD and cohen_kappa_score(*each) > _AGREES:
            found.append(name)
    return found
