"""Groups, texts, splits, identifiers, clusters, weights and times of rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import AnyArray, BoolArray, Factor, FloatArray, IntArray
from calviz.core.errors import Finding, InputError, Reading, claim
from calviz.core.features import WRITE_DATES, date_text, date_ways, held, told_apart
from calviz.core.predictions import BEFORE, INTERVAL
from calviz.core.row_columns import checked_clusters, checked_weights, ids_of_all, one_row_each
from calviz.core.words import listed
from calviz.data import column_names
from calviz.data import format as file_format
from calviz.data.column_names import FEW, MISSING_WORDS, is_missing, plain
from calviz.data.format import MISSING, SAMPLE_ROWS, Column, Fetched, Notice, Table, places, short
from calviz.data.labels import FEWEST_TOLD, MOST_TOLD, as_numbers, one_dimensional, second_labels
from calviz.data.roles import ColumnRoles, ScoreColumns, TableView

# ---- Dates and times

#: The offset at the end of a time of day.
_OFFSET = re.compile(r"(?:[Tt]|:)\d\d[\d:.,]*\s?([Zz]|[+-]\d\d(?::?\d\d)*(?:\.\d+)?)\s*$")


def as_times(values: AnyArray | Factor, name: str) -> tuple[npt.NDArray[np.datetime64], bool | str]:
    """Convert a column of dates or times to datetime64 in microseconds, shape (n,), and return how texts write them, as `Cut.dates`; times with an offset are converted to UTC.

    Raises
    ------
    InputError
        If a value is missing or cannot be read, two have different formats, or day and month cannot be told apart.
    """
    missing = blank(values)
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        if missing.any():
            raise _no_date(missing, name)
        return values.astype("datetime64[us]"), True
    factor = Factor.of(values)
    levels = {level: date_text(level) for level in factor.levels if not is_missing(level.strip())}
    ways = told_apart([*levels.values()], name)
    if not ways:
        raise _unreadable(factor, levels, name)
    if missing.any():
        raise _no_date(missing, name)
    times: npt.NDArray[np.datetime64] = np.array(next(iter(ways.values())), "datetime64[us]")
    return times[factor.codes], len(ways) > 1 or next(iter(ways)) or True


def offsets(values: Factor) -> set[str]:
    """The offsets of times from UTC, such as ``+02:00`` or ``Z``."""
    return {found[1] for level in values.levels if (found := _OFFSET.search(level))}


def may_be_times(texts: list[Any]) -> bool:
    """Whether text values look like dates: one format reads all of them."""
    levels = [str(v) for v in dict.fromkeys(texts)]
    return bool(levels and date_ways(levels))


def blank(values: AnyArray | Factor) -> BoolArray:
    """Mask of the rows without a value, shape (n,)."""
    if isinstance(values, Factor):
        missing = [is_missing(level.strip()) for level in values.levels]
        return np.asarray(np.array(missing, dtype=bool)[values.codes])
    return np.asarray(values != values).reshape(len(values))  # NaN, or no time


def _no_date(missing: BoolArray, name: str) -> InputError:
    repairs, row = [file_format.REPAIRS["drop-missing"]], int(missing.argmax()) + 1
    return InputError(
        "there is no date", row=row, column=name, remedy="fill it in", repairs=repairs
    )


def _unreadable(factor: Factor, levels: dict[str, str], name: str) -> InputError:
    first, *_ = known = [*levels.values()]
    for level, text in levels.items():
        if not date_ways([text]):
            row = int(np.argmax(factor.codes == factor.levels.index(level)))
            what = f"'{short(text)}' cannot be read as a date"
            return InputError(what, row=row + 1, column=name, remedy=WRITE_DATES)
    forms = date_ways([first]).keys()
    other = next((text for text in known if not forms & date_ways([text]).keys()), known[-1])
    what = f"the dates are of two formats ('{short(first)}' and '{short(other)}')"
    return InputError(what, column=name, remedy=WRITE_DATES)


# ---- Building


#: At most this many columns of numbers are read to slice by.
MOST_FEATURES = 100
#: Where at least this share of the identifiers has a row of each model, these are models; where at least the second, it is asked.
_MOSTLY_SHARED, _PARTLY_SHARED = 0.8, 0.1


@dataclass(eq=False)
class OtherColumns:
    """Makes the columns of a layout beside scores and labels.

    Attributes
    ----------
    counts : ndarray, shape (n,), or None
        Frequency weights of aggregated rows, once the columns are built.
    key : Factor or None
        What identifies the rows of each model, if several columns together do.
    """

    table: Table
    layout: ColumnRoles
    options: file_format.ReadingOptions
    notices: list[Finding]
    ways: list[Reading]
    counts: FloatArray | None = None
    key: Factor | None = None

    def of_models(
        self, fetched: Fetched, labels: IntArray | None
    ) -> tuple[ColumnRoles, dict[str, IntArray | None]]:
        """Return the layout of one model and the rows of each that a column names; {} if none does.

        Raises
        ------
        InputError
            If the user named a column that does not name models, if too few identifiers have a row of each model to say so, and if some have two labels.
        """
        chosen, shared = self.options.model_column, 0
        self.layout = layout = replace(self.layout, long=self._long_of_all(fetched))
        counted = self.options.weight_kind == "frequency"
        if layout.long and labels is not None and len(layout.scores) <= 1 and not counted:
            *key, model = layout.long
            named = Factor.of(one_dimensional(fetched.columns[model]))
            names = [name for name, count in named.counts().items() if count]
            ids, count = None, 0
            if all(names) and len(names) > 1:
                key, ids, shared = self._cases(fetched, model, key, named, labels)
                count = len({*ids.codes.tolist()})
                if key and not shared:
                    shared = self._of_one_label(ids, named, labels, key, model)
            if chosen is None and layout.cluster in key:  # its rows are said to belong together
                shared = count = 0
            identifier = " + ".join(key)
            have = f"{shared:,} of {count:,} values of '{short(identifier)}' have a row for each value of '{short(model)}'"
            if chosen is None and shared < _MOSTLY_SHARED * count:
                if shared >= _PARTLY_SHARED * count:
                    answers = {f"they are, compared on these {shared:,}": model, "they are not: one model": ""}  # fmt: skip
                    ways = [Reading(text, {"model_column": one}) for text, one in answers.items()]
                    raise InputError(f"{have}: are these values models?", readings=ways)
                shared = 0
        if layout.long is None or not shared:
            if chosen and not self.options.for_map:
                what = "it does not name models: a row identifier has several rows of one value or several labels, or none has a row for each, nor have other columns together"
                remedy = "name the identifier, or leave out the model column"
                raise InputError(what, column=chosen, remedy=remedy)
            if chosen is None and labels is not None and not counted:
                self._offer_models(fetched, labels)
            return replace(layout, long=None), {}
        each, of = one_row_each(identifier, model), " of the same rows"
        if ids and shared < count:
            lack = np.flatnonzero(np.isin(np.bincount(ids.codes), range(1, len(names))))
            each = f"{have} (not {listed([ids.levels[i] for i in lack])})"
            of = ", each judged on all of its rows, and compared on those of all"
        text = f"{each}: these are {len(names)} models{of} (one by --model, all rows together by --model-column '')"
        self.notices.append(Notice.MODELS.finding("info", text))
        parts: dict[str, IntArray | None] = {n: np.flatnonzero(named.mask(n)) for n in names}
        self.key = ids if len(key) > 1 else None
        groups = tuple(name for name in layout.groups if name not in (model, *key[: len(key) == 1]))
        if self.table[model].type == "integer":
            parts = {f"{model} {name}": rows for name, rows in parts.items()}
        related = tuple(name for name in layout.related if name != identifier)
        long = (*key, model)
        return replace(layout, long=long, id=identifier, groups=groups, related=related), parts

    def _long_of_all(self, fetched: Fetched) -> tuple[str, ...] | None:
        """The columns of the layout that name models, or of another usual name if those of all rows do: the first rows may be of one model."""

        def tell(long: tuple[str, ...]) -> bool:
            if len(long) < 2 or not fetched.columns.keys() >= {*long}:
                return False
            ids, named = (Factor.of(one_dimensional(fetched.columns[c])) for c in long)
            return ids_of_all(ids.codes, named, np.zeros(len(ids), np.int32), gaps=True) > 0

        ways = long_forms(TableView(self.table, self.options), self.layout.used)
        return max(ways, key=tell) if self.layout.long and ways[1:] else self.layout.long

    def _cases(
        self, fetched: Fetched, model: str, key: list[str], named: Factor, labels: IntArray
    ) -> tuple[list[str], Factor, int]:
        """What identifies the rows of each model, its values, and how many of them have a row of each: a column, else several that tell the rows of each model apart."""
        ids = Factor.of(one_dimensional(fetched.columns[key[0]])) if key else named
        shared = ids_of_all(ids.codes, named, labels, gaps=True) if key else 0
        used = np.bincount(named.codes) > 0
        n, k, none, count = len(named), int(used.sum()), (key, ids, shared), 1
        # Of groups, each case has a row of each, and no fractions are looked at: they are many.
        called, layout = model in (self.layout.long or ()), self.layout
        least = n * (_MOSTLY_SHARED if called else 1)
        rarest = np.bincount(named.codes)[used].min()
        if shared or self.options.id_column is not None or k * rarest < least:
            return none
        own = (np.cumsum(used) - 1)[named.codes]
        no_key = {model, *layout.used, *layout.numbers, *(() if called else layout.features)}
        free = {c: v for c, v in fetched.columns.items() if c not in no_key and len(v) == n}
        factors = {c: Factor.of(v) for c, v in free.items() if isinstance(v, Factor) or v.ndim == 1}
        # Columns that differ by model, such as other scores, are no part of it.
        order = sorted(factors, key=lambda c: (c in layout.features, -len(factors[c].levels)))
        key, codes = [], np.zeros(n, np.intp)
        # At most so many columns are looked at for what together identifies the rows of each model.
        for name in order[:30]:
            pairs = codes * len(factors[name].levels) + factors[name].codes
            _, first, finer = np.unique(pairs, return_index=True, return_inverse=True)
            if not count < first.size <= n * n / (least * k):
                continue
            rows = np.bincount(finer * k + own, minlength=k * first.size).reshape(-1, k)
            if k * rows.min(axis=1).sum() < least:
                continue
            codes, count, key = finer, first.size, [*key, name]
            if rows.max() == 1:
                texts = zip(*(factors[c].take(first).values() for c in key), strict=True)
                ids = Factor(codes.astype(np.int32), tuple(map(" ".join, texts)))
                return key, ids, ids_of_all(ids.codes, named, labels, gaps=True)
        return none

    def _of_one_label(
        self, ids: Factor, named: Factor, labels: IntArray, key: list[str], model: str
    ) -> int:
        """The number of identifiers with a row of each model where one with several labels was found; 0 unless these are only missing."""
        shared = ids_of_all(ids.codes, named, np.zeros_like(labels), gaps=True)
        _, at, of_id = np.unique(ids.codes, return_index=True, return_inverse=True)
        first = at[of_id]
        other = (labels != labels[first]) & (labels >= 0) & (labels[first] >= 0)
        several, row = np.unique(of_id[other]).size, int(other.argmax())
        if not several or shared < _MOSTLY_SHARED * len(at):
            return 0 if several else shared
        identifier, rows = short(" + ".join(key)), places([int(first[row]), row], self.table.line)
        what = f"{several:,} of {len(at):,} values of '{identifier}' have another label for another value of '{short(model)}'"
        if self.options.model_column or several <= FEW * len(at):
            raise InputError(
                f"{what} ({rows}): a case that several models judge has one label",
                remedy="correct the labels, or say that all rows are of one model",
                readings=[Reading("all rows are of one model", {"model_column": ""})],
            )
        self.notices.append(Notice.MODELS.finding("info", f"{what}: all rows are read as of one model"))  # fmt: skip
        return 0

    def _offer_models(self, fetched: Fetched, labels: IntArray) -> None:
        """Offer to read the values of a group as models, if an identifier has one row of each, with the same label."""
        view = TableView(self.table, self.options)
        # A column of more values is not proposed as the models of the rows.
        few = [n for n in self.layout.groups if 1 < len(self.table[n].levels) <= 20]
        for model in few * (len(self.layout.scores) == 1 and not self.options.for_map):
            named = Factor.of(one_dimensional(fetched.columns[model]))
            identifier = identifier_column(view, model) or model
            key = [identifier] * (identifier in fetched.columns and identifier != model)
            _, ids, shared = self._cases(fetched, model, key, named, labels)
            if shared and ids_of_all(ids.codes, named, labels):
                text = f"one model per value of '{short(model)}'"
                self.ways.append(Reading(text, {"model_column": model}))
                return

    def build(self, fetched: Fetched, labels: IntArray | None) -> dict[str, Any]:
        """Return the columns as arguments of `Predictions`, by name; the layout is that of the columns that can be used."""
        layout, n = self.layout, fetched.scores[0].shape[0]
        for key in ("features", "groups", "kept"):
            whole = (c for c in getattr(layout, key) if not self._is_left_out(c, fetched, n))
            layout = replace(layout, **{key: tuple(whole)})  # type: ignore[arg-type]

        def one(name: str) -> AnyArray | Factor:
            return one_dimensional(fetched.columns[name])

        groups: dict[str, Factor] = {}
        texts: dict[str, Factor] = {}
        numbers = {name: as_numbers(one(name), name) for name in layout.numbers}
        columns: dict[str, Any] = {"groups": groups, "texts": texts, "numbers": numbers}
        unused: list[str] = []
        for name in layout.features[:MOST_FEATURES]:
            values = self._without_words(name, one(name))
            if blank(values).all():
                unused.append(f"{short(name)} (empty)")
                continue
            try:
                numbers[self._shown(name)] = as_numbers(values, name)
            except InputError as error:
                texts[self._shown(name)] = factor = Factor.of(values)
                if not 1 < len(factor.levels) < n:
                    unused.append(f"{short(name)} ({error})")
        if (rest := len(layout.features) - MOST_FEATURES) > 0:
            unused.append(
                f"{rest:,} column{'s' if rest != 1 else ''} of numbers after the first {MOST_FEATURES}"
            )
        if (time := layout.time) is not None and not self._add_times(time, one(time), columns):
            sliced = self.options.groups is None or "*" in self.options.groups
            layout = replace(layout, groups=(*layout.groups, *[time] * sliced), time=None)
        for name in layout.groups:
            factor = Factor.of(self._without_words(name, one(name)))
            shown = self._shown(name)
            count = len(factor.levels)
            # Columns with more distinct values than this are not groups; numbers are cut, and texts grouped, to slice by.
            few = count <= 1_000 and (count < n or n <= 2)
            if name in self.options.named_groups or (few and (count > 1 or n == 1)):
                groups[shown] = factor
                continue
            kind = self.table[name].type
            if kind in ("number", "integer") and 1 < count < n and not self.options.for_map:
                numbers[shown] = as_numbers(factor, name)
                continue
            texts[shown] = factor
            # Numbers are cut to slice by; texts of many values that repeat are sliced by their most frequent ones.
            if not (self.options.for_map or 1 < count < n + (kind in ("number", "integer"))):
                count = len(held(factor.levels))
                values_of = f"{count:,} value{'s' * (count != 1)}" if count else "empty"
                unused.append(f"{short(name)} ({values_of})")
        if unused:
            more = f" and {len(unused) - 8} more" if len(unused) > 8 else ""
            text = f"not used as groups because they have no value, one or too many: {', '.join(unused[:8])}{more}"
            self.notices.append(Notice.UNUSED_GROUPS.finding("info", text))
        if layout.split is not None:
            columns["splits"] = Factor.of(one(layout.split))
        if layout.id is not None:
            ids = self.key or one(layout.id)
            columns["ids"] = ids.values() if isinstance(ids, Factor) else ids
        for name in layout.kept:
            self._keep(name, one(name), columns)
        # Rows have a number of their own, called "row"; arrays are named by what they hold.
        own = None if layout.id == "row" or self.table.arrays else layout.id
        names = {"ids": own, "clusters": layout.cluster}
        names |= {"weights": layout.weight, "times": layout.time}
        columns["clusters_known"] = self.options.cluster_column is not None
        columns["column_names"] = {k: self._shown(n) for k, n in names.items() if n is not None}
        if layout.cluster is not None:
            clusters = Factor.of(one(layout.cluster))
            if layout.cluster == layout.time:
                clusters = Factor.of(columns["times"].astype("datetime64[D]").astype(str))
            columns["clusters"] = in_column(layout.cluster, checked_clusters, clusters)
        if layout.weight is not None:
            weights = as_numbers(one(layout.weight), layout.weight).astype(np.float64)
            weights = in_column(layout.weight, checked_weights, weights)
            if self.options.weight_kind == "frequency":
                self.counts = weights
            else:
                columns["weights"] = weights
        if labels is not None and not self.options.for_map:
            self._leave_out_outcomes(columns, labels, fetched)
        found = [c for c in layout.related if self._hint_at_clusters(c, Factor.of(one(c)))]
        columns["related"] = tuple(map(self._shown, found))
        used = tuple(n for n in layout.groups if self._shown(n) in groups)
        features = tuple(n for n in layout.features if self._shown(n) in {*numbers, *texts})
        self.layout = replace(layout, groups=used, features=features)
        return columns

    def count_singly(self, columns: dict[str, Any], models: Sequence[Any]) -> None:
        """Leave out clusters of which no model has two of its rows, whose numbers `models` holds; a notice says so."""
        alone = (np.bincount(columns["clusters"].codes[rows]).max() == 1 for rows in models)
        if not models or "clusters" not in columns or not all(alone):
            return
        text = f"no '{short(self.layout.cluster or '')}' has two rows of one model: these count one by one, not as clusters"
        self.notices.append(Notice.LOGS_AND_HINTS.finding("info", text))
        del columns["clusters"], columns["column_names"]["clusters"]
        self.layout = replace(self.layout, cluster=None)

    def _leave_out_outcomes(
        self, columns: dict[str, Any], labels: IntArray, fetched: Fetched
    ) -> None:
        """Leave out the columns that tell the label, unless the user chose them as groups; a notice names each."""
        chosen = {*map(self._shown, self.options.named_groups)}
        kinds = [columns[kind] for kind in ("groups", "texts", "numbers")]
        others = {n: c for kind in kinds for n, c in kind.items() if n not in chosen}
        found = outcomes(others, labels, fetched.scores)
        label = self.layout.label or ""
        given = fetched.columns.get(label)
        if isinstance(given, Factor) or (given is not None and given.ndim == 1):
            found += second_labels(others, label, given, labels)
        for name in dict.fromkeys(found):
            for kind in kinds:
                kind.pop(name, None)
            text = f"'{short(name)}' tells the label, as a second label or an outcome does: not used; to slice by it, choose the role Group (--group)"
            self.notices.append(Notice.UNUSED_GROUPS.finding("warning", text))

    def _without_words(self, name: str, values: AnyArray | Factor) -> AnyArray | Factor:
        """Values of which words such as "n/a" are missing, where all others are numbers; a notice counts them."""
        if not isinstance(values, Factor) or self.table[name].type not in ("number", "integer"):
            return values
        words = [v for v in values.levels if v.strip() in MISSING_WORDS and v.strip()]
        if not words or None in map(column_names.number_of, {*values.levels} - {*words, MISSING}):
            return values
        count = sum(values.counts()[word] for word in words)
        text = f"cells of '{short(name)}' read as missing: {count:,} ({', '.join(words)})"
        self.notices.append(Notice.CONVERTED.finding("info", text))
        levels = np.where(np.isin(values.levels, words), MISSING, values.levels)
        return Factor.of(levels[values.codes])

    def _hint_at_clusters(self, name: str, values: Factor) -> bool:
        """Say that rows may belong together if there are enough values to resample them, and one row in ten repeats one; return whether."""
        if may_be := FEWEST_CLUSTERS <= len(values.levels) <= 0.9 * len(values):
            text = (
                f"the values of '{name}' repeat: if rows of one value belong together, give it the role Cluster (--cluster), and "
                "intervals and p-values take it into account"
            )
            if plain(name) in column_names.IDS:  # of rows, such as answers, not of sites
                text += "; if of several models, say which column names these (--model-column)"
            self.notices.append(Notice.LOGS_AND_HINTS.finding("info", text))
        return may_be

    def _is_left_out(self, name: str, fetched: Fetched, n: int) -> bool:
        """Whether a column, such as an array, has not one value per row; a notice says so."""
        values = len(fetched.columns[name])
        if values != n:
            text = f"'{short(name)}' is left out: it has {values:,} values for {n:,} rows"
            self.notices.append(Notice.LEFT_OUT.finding("warning", text))
        return values != n

    def _keep(self, name: str, values: AnyArray | Factor, columns: dict[str, Any]) -> None:
        """Add a column without a role to the texts or, if it holds fractions, to the numbers."""
        shown, values = self._shown(name), self._without_words(name, values)
        if self.table[name].type == "number":
            with suppress(InputError):
                columns["numbers"][shown] = as_numbers(values, name)
                return
        columns["texts"][shown] = Factor.of(values)

    def _shown(self, name: str) -> str:
        """Name of a column of groups or texts; arrays are named ``group_<name>``, so that they are not taken for something else."""
        plain = name.removeprefix("group_")
        return plain if self.table.arrays and plain not in self.table else name

    def _add_times(self, name: str, values: AnyArray | Factor, columns: dict[str, Any]) -> bool:
        """Add times, also as the file has them where they have offsets or all columns are kept; return whether they can be used."""
        try:
            columns["times"], columns["time_form"] = as_times(values, name)
        except InputError as error:
            if self.options.time_column is not None:
                raise
            why = str(error)
            if error.repairs:
                count, way = int(blank(values).sum()), {"repair": ("drop-missing",)}
                why = f"the date is missing in {count:,} of {len(values):,} rows"
                label = f"use '{short(name)}' as the time, leaving {count:,} row{'s' * (count != 1)} without a date out of all results"
                self.ways.append(Reading(label, {"time_column": name, **way}))
            text = f"'{short(name)}' is not used as times: {why}"
            self.notices.append(Notice.UNUSED_VALUES.finding("info", text))
            return False
        is_text = not isinstance(values, np.ndarray) or values.dtype.kind != "M"
        found = offsets(Factor.of(values)) if is_text else set[str]()
        if any(re.search("[1-9]", offset) for offset in found):
            text = f"days of '{short(name)}' are those of UTC; slices by hour, weekday and month keep the times of the file"
            self.notices.append(Notice.CONVERTED.finding("info", text))
        if is_text and (self.options.for_map or found):
            columns["texts"][self._shown(name)] = Factor.of(values)
        return True


def in_column(name: str, check: Callable[[Any], Any], values: Any) -> Any:
    """``check(values)``, whose error names the column."""
    try:
        return check(values)
    except InputError as error:
        raise error.in_column(name) from None


def rows_taken(columns: dict[str, Any], rows: AnyArray) -> dict[str, Any]:
    """Return the columns of the rows of a mask, or with these numbers."""

    def taken(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: taken(column) for key, column in value.items()}
        return value.take(rows) if isinstance(value, Factor) else value[rows]

    names = ("column_names", "clusters_known", "related", "time_form")
    return {k: v if k in names else taken(v) for k, v in columns.items()}


# ---- Outcomes by another name

#: A column is an outcome if it tells this share of each class, by the name of a verdict a smaller one, and no score tells so much.
_TELLS, _VERDICT_TELLS, _SCORE_TELLS = 0.95, 0.8, 0.98


def outcomes(
    columns: Mapping[str, Factor | FloatArray], labels: IntArray, scores: Sequence[FloatArray]
) -> list[str]:
    """The columns that tell the label, shape (n,), of nearly each row, while no score, shape (n, K), does: what was measured after the event."""
    rows = np.flatnonzero(labels >= 0)
    if rows.size > MOST_TOLD:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_TOLD, replace=False))
    y = labels[rows]
    if np.count_nonzero(np.bincount(y) >= FEWEST_TOLD) < 2:
        return []
    taken = (array[rows] for array in scores)
    ones = (s[:, -1] if s.shape[1] <= 2 else Factor(s.argmax(axis=1), ()) for s in taken)
    if (by_score := max((_told(one, y) for one in ones), default=0.0)) >= _SCORE_TELLS:
        return []

    def least(name: str) -> float:
        """The share that a column has to tell: what is said of a row is known after it, and tells more than the score."""
        said = column_names.VERDICTS | column_names.PEOPLE | {"label"}
        return max(by_score, _VERDICT_TELLS if said & {*column_names.words(name)} else _TELLS)

    each = ((n, c.take(rows) if isinstance(c, Factor) else c[rows]) for n, c in columns.items())
    return [name for name, values in each if _told(values, y) > least(name)]


@claim(
    "outcome-as-score",
    says="'recovered' tells nearly every label, but not by a cutoff of 1/2: is it known only afterwards?",
    chosen="the cutoff, of all",
    adjusted="none needed: it errs on at most one row in 500 of either class, where at 1/2 one in 10 of all is wrong",
)
def outcome_as_score(found: ScoreColumns, score: FloatArray, labels: IntArray) -> list[Finding]:
    """A notice if a probability of an event, shape (n,), tells nearly each label but is often wrong at 1/2, as no good model is; else none."""
    hit = labels == 1
    few = min(hit.sum(), (~hit).sum()) < FEWEST_TOLD or score[hit].mean() < score[~hit].mean()
    if few or found.width > 1 or found.kind == "logits" or np.mean((score >= 0.5) == hit) > 0.9:
        return []
    text = f"'{short(found.columns[0])}' tells nearly every label, but not by a cutoff of 1/2: is it known only afterwards?"
    return [Notice.SCORE_COLUMNS.finding("warning", text)] * (_told(score, labels) > 0.998)


def _told(values: Factor | FloatArray, labels: IntArray) -> float:
    """The share of the rows of the class that a column tells worst: by the most frequent class of each value, of numbers by the best cut between two classes."""
    k = int(labels.max()) + 1
    if isinstance(values, Factor):
        few, codes = len(values) < FEWEST_TOLD * len(values.levels), values.codes
    else:
        few, codes = k > 2, np.unique(values, return_inverse=True)[1]
    if few:
        return 0.0
    rows = np.bincount(k * codes + labels, minlength=k * (int(codes.max()) + 1)).reshape(-1, k)
    counts = rows.sum(axis=0)
    if isinstance(values, Factor):
        right = np.bincount(rows.argmax(axis=1), rows.max(axis=1), k)
        return float((right[counts > 0] / counts[counts > 0]).min())
    # Missing values are the last, or the first.
    below = [each.cumsum(axis=0) / counts for each in (rows, np.roll(rows, 1, axis=0))]
    return float(max(np.minimum(share, 1 - share[:, ::-1]).max() for share in below))


# ---- Recognition

#: Types of columns that may name something.
_DISCRETE = ("text", "integer")


def split_column(view: TableView) -> str | None:
    """The column that names the split of each row: one with a usual name, else the only one whose values are usual names of splits."""
    named = _role(view, view.options.split_column, column_names.SPLITS)
    if named is not None or view.options.split_column is not None or not view.table.named:
        return named
    taken = {view.options.label, *(view.options.groups or ())}
    texts = (c for c in view.table.columns if c.type == "text" and c.name not in taken)
    found = [c.name for c in texts if column_names.are_splits(c.head.tolist())]
    return found[0] if len(found) == 1 else None


def identifier_column(view: TableView, model: str | None = None) -> str | None:
    """The column that identifies the rows, of each model if a column names it: one with a usual name or, but for a map, a word for it."""
    worded: list[str] = []
    if not view.options.for_map:
        may_be = (column_names.is_identifier, column_names.is_numbered)
        worded = [key for is_one in may_be for key, name in view.plain.items() if is_one(name)]
    fits = partial(_may_be_id, within=view.table[model] if model else None)
    return _role(view, view.options.id_column, (*column_names.IDS, *worded), fits)


def long_forms(view: TableView, used: set[str]) -> list[tuple[str, ...]]:
    """The columns that may identify the rows of each model, and name the model of each row, the likeliest first."""
    chosen = view.options.model_column
    usual = (_role(view, None, (n,), lambda c: c.type in _DISCRETE) for n in column_names.MODELS)
    found: list[tuple[str, ...]] = []
    for model in (n for n in usual if n not in used) if chosen is None else (chosen,):
        identifier = identifier_column(view, model) if model else None
        if model:
            found.append((identifier, model) if identifier not in (None, model) else (model,))
    # The first rows may all be of one model.
    return sorted(found, key=lambda f: (len(view.table[f[-1]].levels) <= 1, -len(f)))


def _role(
    view: TableView,
    option: str | None,
    names: tuple[str, ...],
    fits: Callable[[Column], bool] = lambda _: True,
) -> str | None:
    if option is not None:
        return option or None
    if not view.table.named:
        return None
    taken = {view.options.label, *(view.options.scores or ()), *(view.options.groups or ())}
    columns = (view.table[view.plain[name]] for name in names if name in view.plain)
    free = (c for c in columns if c.name not in taken and c.width is None)
    return next((c.name for c in free if fits(c)), None)


#: Fewest days of dates that are the times whatever their name, and the most (30 years) from the first to the last.
_FEWEST_DAYS, _MOST_DAYS = 7, 30 * 366


def time_column(view: TableView, used: set[str]) -> str | None:
    """The column with the time of each row: one with a usual name, else the only one whose name has a word for it, else the only one; it must hold dates."""
    if view.options.time_column is not None:
        return view.options.time_column or None
    if not view.table.named:
        return None
    taken = {*used, *(view.options.groups or ())}
    free = (c for c in view.table.columns if c.name not in taken and c.width is None)
    free = (c for c in free if c.type == "text" or _are_days(c))
    texts = {c.name: [*map(str, c.head.tolist())] for c in free}
    dates = {n: [t for t in known if not is_missing(t.strip())] for n, known in texts.items()}
    dated = {name for name, known in dates.items() if may_be_times(known)}
    # Beside dates in all rows, others are not looked at.
    dated = {name for name in dated if dates[name] == texts[name]} or dated
    for name in column_names.TIMES:
        if (column := view.plain.get(name)) in dated:
            return column
    words = {name: {*column_names.words(name)} for name in view.plain.values() if name in dated}
    may_be = [name for name in words if not words[name] & column_names.NO_TIME_WORDS]
    for known in column_names.TIME_WORDS:
        if named := [n for n in may_be if words[n] & known or plain(n).endswith("datum")]:
            return named[0] if len(named) == 1 else None
    found = [name for name in may_be if _have_days_of_times(dates[name])]
    if len(found) != 1:
        return None
    text = f"'{short(found[0])}' holds dates: the times of the rows, if each has one"
    view.note(Notice.LOGS_AND_HINTS, "info", text)
    return found[0]


def _are_days(column: Column) -> bool:
    """Whether a column called a date holds whole numbers such as 20250317, as DICOM writes days."""
    named = {"date", "day"} & {*column_names.words(column.name)} or plain(
        column.name
    ) == "studydate"
    texts = [date_text(str(v)) for v in column.head.tolist() if v == v]
    days = all(len(text) == 8 and text[:2] in ("19", "20") for text in texts)
    return column.numeric and days and bool(named) and may_be_times(texts)


def _have_days_of_times(texts: list[Any]) -> bool:
    """Whether the dates in the first rows are of many days, or in order in a file that goes on, and do not span a life."""
    try:
        days = as_times(np.array(texts, dtype=object), "")[0].astype("datetime64[D]").astype(int)
    except InputError:
        return False
    is_sorted = len({*np.sign(np.diff(days)).tolist()} - {0}) == 1
    enough = 2 if is_sorted and len(texts) > 0.9 * SAMPLE_ROWS else _FEWEST_DAYS
    return len(np.unique(days)) >= enough and bool(np.ptp(days) <= _MOST_DAYS)


#: Fewest distinct values of a column that is suggested as clusters: a handful, such as six sites, are groups.
FEWEST_CLUSTERS = 10
#: Codes; and how names of numbers of patients and the like end, also joined: patid, patnr, nhs_number; but for words that end so too.
_CODE = re.compile(r"(?=.*[A-Za-z])(?=.*\d)[\w./-]+")
_ENDS_AS_ID = re.compile(
    r"(?i)(?!.*(pa|\bb|_b|gr|ac|flu|lip|o|cov|val)id$).*(id|n[ro]|num(ber)?|key|code)"
)


def related_columns(view: TableView, used: set[str]) -> tuple[str, ...]:
    """The columns that may hold clusters, by their names or as codes, and as values of the first rows repeat."""
    if view.options.cluster_column is not None or not view.table.named:
        return ()
    # In benchmarks of language models, "subject" is a topic, not a person.
    topic = "subject" if view.table.questions is not None else None
    free = [c for c in view.table.columns if c.name not in used and c.width is None]
    free = [c for c in free if c.type in _DISCRETE and plain(c.name) != topic]
    free = [c for c in free if column_names.may_be_cluster(c.name) or _are_codes(c)]
    return tuple(c.name for c in free if len({*c.head.tolist()}) < len(c.head))


def _are_codes(column: Column) -> bool:
    """Whether many different values name something: letters with digits that are no dates, or any in a column that is called like an identifier."""
    values = {*map(str, column.head.tolist())}
    coded = all(map(_CODE.fullmatch, values)) and not may_be_times([*values])
    # Ages and years have fewer.
    coded = coded or bool(_ENDS_AS_ID.fullmatch(column.name))
    return coded and len(values) >= len(column.head) / 5


def may_be_weights(view: TableView, used: set[str]) -> list[str]:
    """The columns that may hold weights by their names, if the user did not say which one does."""
    unsaid = view.options.weight_column is None
    return [c.name for c in view.numeric(used) if c.is_weight and unsaid]


def _may_be_id(column: Column, within: Column | None = None) -> bool:
    """Whether the values tell the rows apart, those of each model where `within` names it; else up to one copy in a hundred, of texts in twenty."""
    heads = [c.head.tolist() for c in (column, within) if c]
    repeats = len(column.head) - len({*zip(*heads, strict=False)})
    most = len(column.head) / (20 if column.type == "text" else 100)
    return column.type in _DISCRETE and repeats <= (0 if within else most)


def number_columns(view: TableView, used: set[str]) -> tuple[str, ...]:
    """The columns with intervals of calibrated probabilities, and with the scores before, as written by calviz."""
    if not view.table.named:
        return ()
    free = [c.name for c in view.numeric(used)]
    return tuple(name for name in free if name == BEFORE or name.startswith(INTERVAL))


def group_columns(view: TableView, used: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of groups to slice by, and those of many distinct fractions, which are cut into intervals."""
    if not view.table.named:
        return (), ()
    ignored = {*column_names.PREDICTED, *column_names.CONFIDENCES, *column_names.CORRECTS}
    ignored |= {*column_names.PROBABILITIES, *column_names.LOGITS}
    free = [c for c in view.table.columns if c.width is None and c.type != "other"]
    free = [c for c in free if c.name not in used and plain(c.name) not in ignored]
    kinds = {c.name: column_names.by_prefix(c.name)[1] for c in free}
    free = [c for c in free if kinds[c.name] not in ("probabilities", "logits")]
    free = [c for c in free if not c.name.endswith(column_names.OUTCOME)]
    fractions = (c for c in free if c.type == "number")
    # Columns of fractions with more distinct values than this are measurements, not groups.
    measured = dict.fromkeys(c.name for c in fractions if len({*c.head.tolist()}) > 20)
    return tuple(c.name for c in free if c.name not in measured), tuple(measured)


def others(view: TableView, used: set[str]) -> tuple[str, ...]:
    """The columns that have no role, and are written beside calibrated scores; those without one value per row are named in a notice."""
    free = [c for c in view.table.columns if c.name not in used]
    # An object with a single number has a width of 1.
    single = [c for c in free if c.type != "other" and (c.width or 1) == 1 and not c.fields]
    if lists := [short(c.name) for c in free if c not in single]:
        text = f"columns without a single number or text per row are not used: {', '.join(lists)}"
        view.note(Notice.LEFT_OUT, "warning", text)
    return tuple(c.name for c in single)
