"""Which label belongs to which score column: by name, by words for the event, by number, and what the labels follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from calviz.core.errors import InputError, Reading
from calviz.data import column_names
from calviz.data.format import Column
from calviz.data.labels import class_key, event_of, is_event_first, no_event_of, whole
from calviz.data.loaded import Notice, ReadingForMap, short
from calviz.data.roles import (
    CLEAR,
    FEWEST_ROWS,
    ColumnRoles,
    ScoreColumns,
    TableView,
    clearer,
    follows,
)

#: With more classes than this, no other order than the usual ones is looked for.
_MOST_CLASSES = 50


def with_labels(view: TableView, scores: ScoreColumns, label: str | None) -> ScoreColumns:
    """Say how the label spells the class of each column, where names do not.

    Raises
    ------
    InputError
        If nothing says which number or word is which column, or names, numbers and labels contradict each other.
    """
    plain = replace(scores, labels=())
    if label is None or scores.width < 2 or view.options.class_names or view.table.class_names:
        return plain
    column = view.table[label]
    if column.width is not None or len(scores.columns) != scores.width:
        return plain
    names = [class_key(name) for name in scores.class_names]
    if scores.labels:
        # Labels that are the names need no table, and are read faster without one.
        spelled = tuple(class_key(text) for text in scores.labels)
        texts = column.type == "text" and scores.labels == scores.class_names
        return plain if texts or spelled == scores.class_names else scores
    values = column.classes
    if not values or values <= {*names} or view.options.label_base is not None:
        return plain
    numbers = [number for v in values if (number := whole(v)) is not None]
    matching = _Matching(view, scores, column)
    if len(numbers) < len(values):
        return matching.by_words(values)
    k = scores.width
    if values <= {"-1", "1"} and k == 2 and "-1" in values:
        return matching.by_number(["-1", "1"])
    base = 1 if min(numbers) == 1 and max(numbers) == k else 0
    if min(numbers) < base or max(numbers) >= k + base:
        return plain
    if base == 1:
        text = f"the labels of '{short(label)}' count the classes from 1"
        view.note(Notice.LABEL_VALUES, "info", text)
    return matching.by_number([str(j + base) for j in range(k)])


def with_event_last(view: TableView, found: ColumnRoles) -> ColumnRoles:
    """Put the event last of two classes whose names say which it is: it is the positive class, unless the user gave the order."""
    first, options = found.scores[0], view.options
    ordered = options.scores is not None and not options.scores[0].endswith("*")
    if ordered or options.class_names or view.table.class_names or found.multilabel:
        return found
    if not is_event_first(first.class_names) or first.width != 2:
        return found
    label = None if found.label is None else view.table[found.label]
    is_array = len(first.columns) == 1
    if is_array and (first.logits or (label is not None and label.width is not None)):
        return found
    if isinstance(options, ReadingForMap) and options.map_classes == first.class_names:
        return found
    labels, base = first.labels, options.label_base
    values = set() if label is None else label.classes
    if not labels and not values <= {class_key(name) for name in first.class_names}:
        if None not in map(whole, values):
            # Numbers that count the columns of the file.
            labels = tuple(str(j + (base or 0)) for j in range(2))
    elif base is not None:
        return found
    # Labels 0 and 1 are counted anyway.
    labels = () if labels == ("1", "0") and base is None else labels[::-1]
    scores = tuple(
        replace(
            each,
            columns=each.columns[::-1],
            class_names=each.class_names[::-1],
            logits=each.logits[::-1],
            labels=labels,
            reversed=is_array,
        )
        for each in found.scores
    )
    return replace(found, scores=scores, one_hot=found.one_hot[::-1])


class _Matching:
    """Ways to match the values of a label with score columns; an order holds the label of each column."""

    def __init__(self, view: TableView, scores: ScoreColumns, label: Column) -> None:
        self.view, self.scores, self.label = view, scores, label
        self.names = [class_key(name) for name in scores.class_names]
        self.chosen = view.options.scores is not None
        self.columns = view.columns(scores)

    def by_words(self, values: frozenset[str]) -> ScoreColumns:
        """Match two words of the label with two other words of the header: the event with the event, else the second column."""
        happened, other = event_of(values), no_event_of(values)
        if self.scores.width != 2 or happened is None or other is None:
            return replace(self.scores, labels=())
        called, order = event_of(self.names), [other, happened]
        if called is None and not self.chosen and self._evidence(order, order[::-1]) < -CLEAR:
            raise self._question([order[::-1], order])
        if called != self.names[0]:
            return self.scores
        return replace(self.scores, labels=(happened, other))

    def by_number(self, counted: list[str]) -> ScoreColumns:
        """Match numbers with names: in the order of the columns, of the alphabet, or of the event, which agree or the labels decide."""
        are_numbers = [whole(name) is not None for name in self.scores.class_names]
        if all(are_numbers) and not all(column_names.by_prefix(c)[0] for c in self.scores.columns):
            # Numbers that are not those of the label would be taken for them.
            self.scores = replace(self.scores, class_names=self.scores.columns)
        order = counted
        if not self.chosen:
            orders = self._possible_orders(counted)
            names = "".join(self.scores.class_names)
            # Names may hold other numbers, of which some may be the class.
            numbered = any(map(str.isdigit, names)) and None in map(whole, self.scores.class_names)
            if len(orders) > 1 or numbered or 2 < len(counted) <= _MOST_CLASSES:
                order = self._followed(orders)
        as_counted = order == [str(j) for j in range(len(order))]
        return replace(self.scores, labels=() if as_counted else tuple(order))

    def _possible_orders(self, counted: list[str]) -> list[list[str]]:
        """The distinct ways to count the columns: as they stand, in the alphabet, and the event last."""
        names = self.scores.class_names
        rank = {name: j for j, name in enumerate(sorted(names))}
        orders = [counted, [counted[rank[name]] for name in names]]
        if len(names) == 2 and event_of(class_key(name) for name in names) is not None:
            orders.append(counted[::-1] if is_event_first(names) else counted)
        return [order for j, order in enumerate(orders) if order not in orders[:j]]

    def _followed(self, orders: list[list[str]]) -> list[str]:
        """The order that the labels follow; with few rows, or if they hardly tell, that of the columns."""
        if len(self.label.head) < FEWEST_ROWS:
            return orders[0]
        gain = partial(self._evidence, two=orders[0])
        best, *others = sorted(orders, key=gain, reverse=True)
        margin = min((self._evidence(best, other) for other in others), default=CLEAR)
        matched = self._matched(best)
        unclear = margin < CLEAR and not (best == orders[0] and margin >= 1 and len(best) > 2)
        if unclear or matched != best:
            raise self._question([*orders, matched])
        if others:
            pairs = ", ".join(self._pairs(best, range(len(best))))
            text = f"the numbers in '{short(self.label.name)}' are read as the labels follow the scores: {pairs}"
            self.view.note(Notice.LABEL_VALUES, "info", text)
        return best

    def _pairs(self, order: list[str], places: Sequence[int]) -> list[str]:
        return [f"{order[j]} is '{short(self.scores.class_names[j])}'" for j in places[:3]]

    def _evidence(self, one: list[str], two: list[str]) -> float:
        """How much more clearly the labels follow one order than another, in standard errors."""
        return clearer(self.columns, self.label.keys, one, two)

    def _matched(self, order: list[str]) -> list[str]:
        """The order in which every column is of the label that it ranks highest; the given one where the labels hardly tell another."""
        from scipy.optimize import linear_sum_assignment

        hits = [np.array(self.label.keys == number, dtype=bool) for number in order]
        if len(order) > _MOST_CLASSES or min(hit.sum() for hit in hits) < 5:
            return order
        z = np.array([[follows(c.head.astype(float), hit) for hit in hits] for c in self.columns])
        _, best = linear_sum_assignment(-z)
        gain = float((z[range(len(order)), best] - z.diagonal()).sum())
        return [order[j] for j in best] if gain > 2 * CLEAR else order

    def _question(self, orders: Sequence[list[str]]) -> InputError:
        """Return the question which class each number, or word, of the label is."""
        readings: dict[tuple[str, ...], Reading] = {}
        for order in orders:
            # Score columns that are named are counted as they are named.
            counted = sorted(range(len(order)), key=lambda j, order=order: _place(order[j]))  # type: ignore[misc]
            columns = tuple(self.scores.columns[j] for j in counted)
            text = ", ".join([*self._pairs(order, counted), *["..."] * (len(order) > 3)])
            readings.setdefault(columns, Reading(text, {"scores": columns}))
        return InputError(
            f"nothing says for sure which class each value of '{short(self.label.name)}' is: names, the order of the columns "
            "and the labels do not agree; choose",
            readings=readings.values(),
        )


def _place(word: str) -> tuple[int, int]:
    """Where a label comes when the classes are counted: numbers in order, the event last."""
    number = whole(word)
    return (number, 0) if number is not None else (int(event_of({word}) == word), 1)
