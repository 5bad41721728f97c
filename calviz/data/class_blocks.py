"""Class names in headers: the columns that are named after the labels, whatever stands around the name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from calviz.data.labels import PAIRS, class_key, event_of, whole

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
    # Numbers are matched with words where the labels follow the scores (`class_order`).
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
