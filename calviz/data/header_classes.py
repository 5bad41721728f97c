"""Which column belongs to which class: columns that are named after the labels, and labels matched with columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from calviz.core.errors import InputError, Reading
from calviz.data import column_names
from calviz.data.format import Column
from calviz.data.labels import PAIRS, class_key, event_of, is_event_first, no_event_of, whole
from calviz.data.loaded import Notice, ReadingForMap, short
from calviz.data.roles import (
    CLEAR,
    FEWEST_ROWS,
    ColumnRoles,
    ScoreColumns,
    TableView,
    clearer,
    follows,
    of_true,
)

#: Labels with more distinct values than this are not looked for in the header.
_MOST_LEVELS = 5_000
#: Of many ways to find the labels in the header, such as 3 and 7 in x3, x7, x13, x17 ..., the plainest are looked at.
_MOST_BLOCKS = 12
#: Pairs of a label and a column that are compared at most.
_MOST_PAIRS = 200_000


@dataclass(frozen=True)
class ClassBlock:
    """Columns of which each is named after a class, all with the same words around it.

    Attributes
    ----------
    columns : tuple of str
        In the order of the file.
    classes : tuple of str
        The name of the class of each column.
    labels : tuple of str
        How the labels spell these classes; of classes that no label has, the name.
    around : tuple of (str, str)
        What stands before and after the name of the class.
    spell : callable
        How the names were spelled to find this.
    """

    columns: tuple[str, ...]
    classes: tuple[str, ...]
    labels: tuple[str, ...]
    around: tuple[str, str]
    spell: Callable[[str], str] = str


def blocks_named_by(levels: Iterable[str], columns: Sequence[str]) -> list[ClassBlock]:
    """Find the columns that are named after all labels, with the same words around the name; the plainest spelling first.

    >>> [b.classes for b in blocks_named_by(["no", "yes"], ["id", "P(yes)", "P(no)"])]
    [('yes', 'no')]
    >>> [b.labels for b in blocks_named_by(["False", "True"], ["prob no", "prob yes"])]
    [('False', 'True')]
    """
    levels = sorted({*levels})
    blocks: dict[tuple[str, ...], ClassBlock] = {}
    if not 2 <= len(levels) <= _MOST_LEVELS:
        return []
    for spell in (str, str.casefold, _words):
        names: dict[str, str] = {}
        for column in columns:
            names.setdefault(spell(column), column)
        for words in _spellings(levels):
            spelled = {
                spell(word): (word, level) for word, level in zip(words, levels, strict=True)
            }
            if len(spelled) == len(levels) and "" not in spelled:
                found = sorted(_around(spelled, names), key=lambda a: len(a[0] + a[1]))
                for around in found[:_MOST_BLOCKS]:
                    block = _block(around, spelled, names, spell)
                    blocks.setdefault(block.columns, block)
    held = None if blocks else _each_holds_one(levels, columns)
    return [held] if held is not None else list(blocks.values())


def _each_holds_one(levels: Sequence[str], columns: Sequence[str]) -> ClassBlock | None:
    """Columns of which each holds another label as words of its name, whatever else differs (``0: cat``, ``1: dog``)."""
    spelled = {f"_{_words(level).strip('_')}_": level for level in levels}
    if len(spelled) < len(levels) or "__" in spelled or len(levels) * len(columns) > _MOST_PAIRS:
        return None
    if all(whole(level) is not None for level in levels):
        return None  # numbers stand in headers for other reasons too
    names = {column: f"_{_words(column).strip('_')}_" for column in columns}
    found: dict[str, str] = {}
    for key, level in spelled.items():
        holding = [column for column, name in names.items() if key in name]
        longer = [other for other in spelled if other != key and key in other]
        holding = [c for c in holding if not any(other in names[c] for other in longer)]
        if len(holding) != 1 or holding[0] in found:
            return None
        found[holding[0]] = level
    in_order = tuple(column for column in columns if column in found)
    classes = tuple(found[column] for column in in_order)
    return ClassBlock(in_order, classes, classes, ("", ""))


def _words(text: str) -> str:
    """Spell a name as R, SQL and spreadsheets would: words joined by underscores."""
    return re.sub(r"[\W_]+", "_", text.casefold())


def _spellings(levels: Sequence[str]) -> Iterator[Sequence[str]]:
    """The ways to write the labels: as they are, as whole numbers, and two classes by other words for the event and no event."""
    yield levels
    numbers = [whole(level) for level in levels]
    if None not in numbers:
        yield [str(number) for number in numbers]
        yield [f"{number}.0" for number in numbers]
        yield [f"{number:02d}" for number in numbers]
    event = event_of({class_key(level) for level in levels})
    # Numbers are matched with words where the labels follow the scores (`with_labels`).
    if len(levels) == 2 and event is not None and None in numbers:
        happened = [class_key(level) == event for level in levels]
        # Columns called 1 and 2 may be anything.
        yield from (
            [pair[h] for h in happened] for pair in PAIRS if "2" not in pair and "-1" not in pair
        )


def _around(spelled: Iterable[str], names: dict[str, str]) -> list[tuple[str, str]]:
    """What stands before and after the labels, in as many ways as there are columns for all of them."""
    labels = sorted(spelled, key=len)
    longest = labels.pop()
    found: dict[tuple[str, str], None] = {}
    for name in names:
        at = name.find(longest)
        while at >= 0:
            before, after = name[:at], name[at + len(longest) :]
            if all(f"{before}{label}{after}" in names for label in labels):
                found[before, after] = None
            at = name.find(longest, at + 1)
    return list(found)


def _block(
    around: tuple[str, str],
    spelled: dict[str, tuple[str, str]],
    names: dict[str, str],
    spell: Callable[[str], str],
) -> ClassBlock:
    before, after = around
    of_column = {names[f"{before}{key}{after}"]: pair for key, pair in spelled.items()}
    found = [column for column in names.values() if column in of_column]
    classes = []
    for column in found:
        word, _ = of_column[column]
        written = _inner(column, around, spell)
        classes.append(written if class_key(written) == class_key(word) else word)
    labels = tuple(of_column[column][1] for column in found)
    return ClassBlock(tuple(found), tuple(classes), labels, around, spell)


def _inner(column: str, around: tuple[str, str], spell: Callable[[str], str]) -> str:
    """What stands between the words around, as the header writes it where the spelling keeps its length."""
    spelled = spell(column)
    part = slice(len(around[0]), len(spelled) - len(around[1]))
    return (column if len(spelled) == len(column) else spelled)[part]


def further_classes(block: ClassBlock, columns: Sequence[str]) -> ClassBlock:
    """Return the block with all columns that have the same words around something else: classes that no label has."""
    before, after = block.around
    known = dict(zip(block.columns, zip(block.classes, block.labels, strict=True), strict=True))
    found: list[tuple[str, str, str]] = []
    for column in columns:
        name = block.spell(column)
        if column in known:
            found.append((column, *known[column]))
        elif len(name) > len(before) + len(after) and _starts(name, before, after):
            inner = _inner(column, block.around, block.spell)
            found.append((column, inner, inner))
    names, classes, labels = zip(*found, strict=True)
    return replace(block, columns=names, classes=classes, labels=labels)


def _starts(name: str, before: str, after: str) -> bool:
    return name.startswith(before) and name.endswith(after)


def without_common_words(columns: Sequence[str]) -> tuple[str, ...]:
    """What differs between names: the names without the words that all begin and end with, cut where words do.

    >>> without_common_words(["target_cat_prob", "target_cow_prob"])
    ('cat', 'cow')
    """
    backwards = [name[::-1] for name in columns]
    before, after = _common(columns), _common(backwards)[::-1]
    short = min(map(len, columns))
    if len(before) + len(after) >= short:
        after = ""
    inner = tuple(name[len(before) : len(name) - len(after)] for name in columns)
    return inner if all(inner) and len({*inner}) == len(inner) else tuple(columns)


def _common(columns: Sequence[str]) -> str:
    """The beginning that all names share, shortened to where a word ends in all: at a sign, a digit or a capital letter."""
    first, last = min(columns), max(columns)
    same = next(
        (j for j, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first)
    )
    common = first[:same]
    while common and not _ends_word(common, columns):
        common = common[:-1]
    return common


def _ends_word(common: str, columns: Sequence[str]) -> bool:
    last = common[-1]
    if not last.isalnum():
        return True
    rest = [name[len(common)] for name in columns if len(name) > len(common)]
    if len(rest) < len(columns) or last.isdigit():
        return False
    return all(c.isdigit() or not c.isalnum() or (c.isupper() and last.islower()) for c in rest)


# ---- Labels and columns: by name, by words for the event, by number, and what the labels follow

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
        """The order that the labels follow; with few rows that of the columns, unless names or labels speak against it."""
        if self.columns[0].head.shape != self.label.head.shape:
            return orders[0]  # arrays may differ in length
        if len(self.label.head) < FEWEST_ROWS:
            if event_of(self.names) is not None:
                return orders[-1]
            means = [np.nanmean(of_true(self.columns, self.label.keys, o)) for o in orders]
            if max(means) > means[0]:
                raise self._question(orders)
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
        if self.columns[0].head.shape != self.label.head.shape:
            return 0.0
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
