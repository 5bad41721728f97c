"""Group-wise calibration: one map for all rows, moved within the segments of chosen columns as far as their rows support it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from calviz.core import blocks, features
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray
from calviz.core.entry_specs import RECALIBRATORS, recalibrator
from calviz.core.errors import PREDICTED, SCORE, InputError, OptionError, claim, shortened
from calviz.core.features import FEW_VALUES, MISSING_TEXTS, Cut, cut_of_levels, interval
from calviz.core.predictions import NO_IDENTIFIER, Dataset, Predictions, has_score, identifier_texts
from calviz.core.probabilities import Scores, row_sums, softmax
from calviz.core.words import condition, counted
from calviz.recalibrators import segment_fits
from calviz.recalibrators.base import FlooredRecalibrator, check_part, is_whole
from calviz.recalibrators.maps import Numbers, Program, damaged, read_fields
from calviz.recalibrators.segment_fits import LEAST, EffectBlock, SegmentEffects, SegmentFit
from calviz.sample.sample import Sample
from calviz.sample.slices import usual_slices


@dataclass(frozen=True, eq=False)
class SegmentedColumn:
    """A column, and how it is cut into segments: those of `Cut.labels`, the last for missing numbers, or for values that are not named."""

    name: str
    cut: Cut

    def codes(self, values: Any) -> IntArray:
        """Segment of each row, shape (n,); `values` are texts or numbers."""
        column = _as_column(values)
        if self.cut.dates:
            features.dates_in(column, self.name, self.cut.dates)
        if self.cut.kept is not None and not (self.cut.cycle or isinstance(column, Factor)):
            column = _texts(Factor.of(column))
        return self.cut.codes(column, self.name)

    def holds(self, value: str) -> BoolArray:
        """Which segments a value, an interval or a side of an edge has, shape (S,)."""
        return np.isin(self.cut.labels, self.cut.sides.get(value, (value,)))

    @property
    def size(self) -> int:
        """Number of segments."""
        return len(self.cut.labels)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        if self.cut.cycle:
            return {"name": self.name, "cycle": self.cut.cycle}
        if self.cut.kept is not None:
            return {"name": self.name, "values": list(self.cut.kept)}
        return {"name": self.name, "edges": list(self.cut.edges)}


@dataclass(frozen=True, eq=False)
class Condition:
    """Rows whose cell in a column is in one of its segments, an interval of it, or on a side of an edge: the `value`.

    Or rows with the largest score for class number `of_class`, whose name is the value, or with such a score of it; no column is asked for.
    """

    column: SegmentedColumn
    value: str
    of_class: int | None = None

    @classmethod
    def of(cls, key: str, record: Any) -> Self:
        """Read what `to_dict` made."""
        if not isinstance(record, Mapping) or not isinstance(record.get("is"), str):
            raise damaged(key, "a condition must have a column, and what it is")
        own = ("is", "dates", "class")
        rest = {name: value for name, value in record.items() if name not in own}
        column = _read_column(key, rest)
        if dates := record.get("dates"):
            if not isinstance(dates, bool | str):
                raise damaged(key, "dates must be true or their format")
            column = replace(column, cut=replace(column.cut, dates=dates))
        if not column.holds(record["is"]).any():
            raise damaged(key, f"'{shortened(column.name)}' has no '{shortened(record['is'])}'")
        if not is_whole(record.get("class", 0), 0):
            raise damaged(key, "a predicted class must be a number")
        return cls(column, record["is"], record.get("class"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        dates = {"dates": self.column.cut.dates} if self.column.cut.dates else {}
        of_class = {} if self.of_class is None else {"class": self.of_class}
        return self.column.to_dict() | dates | {"is": self.value} | of_class

    @classmethod
    def on(cls, data: Dataset, name: str, value: str) -> Self:
        """Make the condition of a slice; missing values are in no slice of all values that are not named."""
        cut, group = data.cuts.get(name), data.groups.get(name)
        if name == PREDICTED and group is None and isinstance(data, Predictions):
            return replace(cls.of_value(name, value), of_class=data.class_names.index(value))
        if cut is not None and cut.cycle:
            return cls(SegmentedColumn(data.time_name, cut), value)
        if name == SCORE and has_score(data):
            return replace(cls.written(name, value), of_class=1)
        if (
            cut is None
            or (group is not None and value in group.levels)
            or value in (cut.kept or ())
        ):
            return cls.of_value(name, value)
        if cut.kept is None and value not in (*cut.labels, *cut.sides):
            return cls.written(name, value)
        if cut.kept is not None:
            cut = Cut(kept=tuple(dict.fromkeys([*cut.kept, NO_IDENTIFIER])))
            value = cut.labels[-1]
        return cls(SegmentedColumn(name, cut), value)

    def dated_as(self, data: Dataset) -> Self:
        """The same with how the data write dates, if they are texts: other rows may not tell day and month apart."""
        cut, texts = self.column.cut, data.to_slice().get(self.column.name)
        if not (cut.dates or cut.cycle):
            return self
        form = features.date_form(texts.levels) if isinstance(texts, Factor) else data.time_form
        cut = replace(cut, dates=form if form is not True or cut.dates else False)
        return replace(self, column=replace(self.column, cut=cut))

    @classmethod
    def of_value(cls, name: str, value: str) -> Self:
        """Make the condition that a column has a value."""
        cut = Cut(kept=_texts(Factor.of(np.array([value], dtype=object))).levels)
        return cls(SegmentedColumn(name, cut), cut.labels[0])

    @classmethod
    def written(cls, name: str, value: str) -> Self:
        """Read a value, an interval of numbers or dates: "> 31", "≤ 31" or "(23, 31]", or what comes round in times: "17 to 20" where the name is "hour of time"."""
        kind, _, times = name.partition(" of ")
        if kind in features.CYCLES and value in (cut := features.cycle(kind)).sides:
            return cls(SegmentedColumn(times, cut), value)
        read = interval(value, name)
        if read is None:
            return cls.of_value(name, value)
        return cls(SegmentedColumn(name, read[0]), read[1])

    def met(self, values: Any) -> tuple[BoolArray, BoolArray]:
        """Which rows meet it, and which have no value where it asks for one, shape (n,) each."""
        met = self.column.holds(self.value)[self.column.codes(values)]
        column = _as_column(values)
        if isinstance(column, Factor):
            empty = np.isin(column.levels, NO_IDENTIFIER)[column.codes]
        else:
            empty = np.isnan(column)
        return met, empty & ~met

    @property
    def words(self) -> str:
        """The condition in words."""
        cycle = f"{self.column.cut.cycle} of " * bool(self.column.cut.cycle)
        return condition(f"{cycle}{self.column.name}", self.value)

    @property
    def source(self) -> tuple[str, list[Any], list[bool], bool | str | tuple[str, int], int | None]:
        """The column, how it is cut, which segments are meant, whether it holds dates, or how values come round in them (as in `CODES_SOURCE`); or the predicted class."""
        cut = self.column.cut
        held = self.column.holds(self.value).tolist()
        cuts = list(cut.edges if cut.kept is None else cut.kept)
        dates = features.CYCLES[cut.cycle][:2] if cut.cycle else cut.dates
        return self.column.name, cuts, held, dates, self.of_class


#: Texts of which other tools write the same value.
_WRITTEN = dict.fromkeys(MISSING_TEXTS, NO_IDENTIFIER) | {"true": "True", "false": "False"}


def _as_column(values: Any) -> Factor | FloatArray:
    """Texts whose levels are written alike, or numbers, in which dates are microseconds since 1970."""
    if isinstance(values, Factor):
        return _texts(values)
    array = np.asarray(values)
    if array.dtype.kind == "M":
        times = array.astype("datetime64[us]")
        return np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))
    if array.dtype.kind in "iuf":
        return array if array.dtype.kind == "f" else array.astype(np.float64)
    return _texts(Factor.of(array))


def _texts(factor: Factor) -> Factor:
    """The same with whole numbers written without a fraction, booleans as in Python, and one level for all missing values."""
    each = Factor(np.arange(len(factor.levels)), factor.levels)
    texts = [_WRITTEN.get(text, text) for text in identifier_texts(each)]
    merged = Factor.of(np.array(texts, dtype=object))
    return Factor(merged.codes[factor.codes], merged.levels)


def _cut(values: Factor | FloatArray, weights: FloatArray | None) -> tuple[Cut, str]:
    """How a column is cut, and why it has no segments; "" if it has."""
    if not isinstance(values, Factor):
        cut = features.cut_of_numbers(values, weights)
        known = values[~np.isnan(values)]
        one = not cut.edges and known.size in (0, values.size)
        return cut, "it has one value" if one else ""
    levels = values.levels
    why = "it has a different value in each row" * (len(levels) == len(values))
    if len(levels) <= FEW_VALUES:
        return Cut(kept=levels), "it has one value" if len(levels) == 1 else why
    counts = np.bincount(values.codes, weights, minlength=len(levels))
    cut = cut_of_levels(levels, counts.astype(np.float64))
    return cut, why if cut.kept is not None else ""


@recalibrator(
    key="segments",
    label="Group-wise calibration",
    family="Composition",
    confidence_only=True,
    reference="Kass & Steffey 1989 (shrinkage); Lin 1997 (test)",
    formula=r"\sigma\left(z + \textstyle\sum_c u_{c, s_c} + v_{c, s_c} (z - m)\right),\ u_c \sim N(0, \tau_c^2);\ K > 2:\ \text{first } p \propto p^{\exp(-\sum_c t_{c, s_c})}",
    takes_columns=True,
)
class SegmentOffsets(FlooredRecalibrator):
    """One map for all rows, then offsets and slopes of the log-odds for the segments of columns such as site or age, shrunk towards 0 as far as their rows are few.

    A column has offsets or slopes only if a test finds that its segments differ, and so have pairs of columns; without any it is
    the map of all rows, and so it is in segments that were not seen. With two classes the log-odds are those of class 1; with more, those
    of the top label, and the other classes share the rest as before; segments may then differ in temperature too, which comes first.

    Parameters
    ----------
    columns : str or list of str, optional
        The columns, a text with commas between them or a list; all that are given if left out. Numbers and dates are cut at their deciles,
        of a text with more than 50 values the most frequent 20 are segments. Missing values are a segment of their own.
    base : str, optional
        Key of the parametric recalibrator for all rows; if left out temperature scaling or, where two classes need an intercept
        (1 % level), Platt scaling.
    pairs : bool
        Whether pairs of columns are tried too, where their number times that of the rows is at most 20 million.
    floor : float, "auto" or None
        As in `TemperatureScaling`, for `base`.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    base_ : transformer
        The fitted map of all rows.
    columns_ : tuple of SegmentedColumn
        Those whose segments differ.
    effects_ : tuple of SegmentEffects
    center_ : float
        m, the log-odds at which slopes change nothing.
    shared_ : ndarray, shape (2,)
        An offset and a slope that all segments share: within segments the map is steeper than over all rows.

    Notes
    -----
    Offsets u (and slopes v) of a column are normal with variance tau^2, the maximum of the Laplace approximation of the
    marginal likelihood (fixed points of MacKay 1992), and at the mode of their posterior. Which have any is decided first: the sum of squared
    scores of the segments at tau = 0 (Lin 1997), efficient for the intercept and the slope of all rows, against a scaled chi-square, by
    Benjamini and Hochberg at 1 %; then for pairs of columns in the same way, given the columns. Where two conditions together hold what
    is off (`calviz.slices`), they have one offset, before all others. Importance weights count as their effective number.

    With more than two classes log-temperatures t (Guo et al. 2017) are tested beside these, where no two conditions hold what is off, and
    before offsets and slopes are tested given them: a column has them if they differ, and its offsets alone do not differ more clearly.
    The score of a row is sum_k p_k log p_k - log p_y, and its information V the variance of log p under p. The squared score of a segment,
    efficient for one temperature of all rows, is divided by V + 2 Q / V, with V and its fourth cumulant Q summed over the rows of the
    segment: flat rows have a small V, but tell of T as others do, and those of few or confident rows have heavy tails. Where no one temperature is
    right for all rows, segments at other levels of the scores differ in it too.
    """

    columns: Any = None
    base: Any = None
    pairs: bool = True
    base_: Any
    columns_: tuple[SegmentedColumn, ...]
    effects_: tuple[SegmentEffects, ...]
    center_: float
    shared_: FloatArray

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.base is not None and RECALIBRATORS[self.base].family != "Parametric":
            raise OptionError(f"'base' must be a parametric recalibrator, '{self.base}' is not.")
        chosen_names(self.columns)

    def _takes_logarithms(self) -> bool:
        return False

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Self:
        """Fit the map; see `BaseRecalibrator.fit`.

        Parameters
        ----------
        X, y, sample_weight
            As there.
        columns : mapping of str to array_like, or data frame, optional
            Values of each column in these rows, shape (n,): texts, numbers or dates. Without any, the map is that of all rows, and a
            warning says so.

        Raises
        ------
        InputError, OptionError
            If a column of the parameter `columns` is missing, or has no segments.
        """
        given = given_columns(columns)
        if sample_weight is not None:
            weights = np.asarray(sample_weight)
            if weights.ndim == 1 and not weights.all():
                # The base class drops these rows.
                kept = np.flatnonzero(weights)
                given = {
                    k: in_rows(v, kept) if len(v) == weights.size else v for k, v in given.items()
                }
        self._given = given
        try:
            return super().fit(X, y, sample_weight)
        finally:
            del self._given

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        n, k = scores.shape
        counts = blocks.row_weights(weights, n) * self.rows_each
        if weights is not None and self.rows_each == 1:
            counts = counts * (blocks.effective_number(weights) / n)
        fit = self._with_base(self.base or "temperature", scores, labels, weights, counts)
        if self.base is None and k == 2 and fit.needs_intercept():
            fit = self._with_base("platt", scores, labels, weights, counts)
        self._warn_of_parts(self.base_)
        self.columns_, codes = self._cut_columns(n, weights)
        sizes = [column.size for column in self.columns_]
        alone = [
            EffectBlock((c,), codes[c], s, kind) for c, s in enumerate(sizes) for kind in (0, 1)
        ]
        beside: list[float] = []
        tempered = segment_fits.TemperatureFit(self.base_.transform, scores.array, labels, counts)
        if self.pairs and self.columns_ and self.rows_each == 1:
            fit.take(self._region(fit, codes, weights))
        if k > 2 and alone and not fit.blocks:
            each = [EffectBlock((c,), codes[c], s, 2) for c, s in enumerate(sizes)]
            beside = tempered.add_beside(each, fit.p_values(alone))
        if tempered.blocks:
            fit = SegmentFit(tempered.log_odds, fit.hit, counts)
        fit.add(alone, beside)
        # Pairs of columns times rows up to which pairs are tried.
        if self.pairs and len(sizes) * (len(sizes) - 1) / 2 * n <= 20_000_000:
            fit.add(
                [
                    EffectBlock((a, b), codes[a] * sizes[b] + codes[b], sizes[a] * sizes[b])
                    for a, b in combinations(range(len(sizes)), 2)
                ]
            )
        self.center_, self.shared_ = fit.center, fit.values[:2]
        self.effects_ = fit.effects(tempered)
        if self.columns_ and not self.effects_:
            self._warn(self.reading())
        self._keep_used()
        if left_out := fit.left_out + tempered.left_out:
            self._warn(
                f"{counted(left_out, 'column')} or pairs are left out: there are more than {segment_fits.MOST_EFFECTS:,} segments."
            )

    def _with_base(
        self,
        key: str,
        scores: Scores,
        labels: IntArray,
        weights: FloatArray | None,
        counts: FloatArray,
    ) -> SegmentFit:
        """Fit the map of all rows; return the model of what it leaves."""
        base = RECALIBRATORS[key].make_with(input=self.input, floor=self.floor)
        base.rows_each = self.rows_each
        self.base_ = base.fit(scores.array, labels, weights)
        z, hit = np.empty(labels.size), np.empty(labels.size)
        for rows in blocks.row_blocks(scores.array):
            event, z[rows] = _event(base.transform(scores.array[rows].astype(np.float64)))
            hit[rows] = labels[rows] == event
        return SegmentFit(z, hit, counts)

    def _region(
        self, fit: SegmentFit, codes: list[IntArray], weights: FloatArray | None
    ) -> list[EffectBlock]:
        """Two conditions that together hold what is off, one more offset; none if the slices of these columns do not show that."""
        numbers, groups = {}, {}
        for column, code in zip(self.columns_, codes, strict=True):
            if column.cut.kept is None:
                read = features.values_in(_as_column(self._given[column.name]))
                assert read is not None
                numbers[column.name] = read[0]
            else:
                groups[column.name] = Factor(code, column.cut.labels)
        found = usual_slices(
            Sample.of(
                Predictions(
                    probs=expit(fit.z),
                    labels=fit.hit.astype(np.intp),
                    groups=groups,
                    numbers=numbers,
                    cuts={column.name: column.cut for column in self.columns_},
                    weights=weights,
                ),
                reduction="positive",
            )
        )
        where = found.off[0].where if found is not None and found.off else ()
        if len(where) < 2 or where[-1][0] == SCORE:
            return []
        names = [column.name for column in self.columns_]
        of = tuple(sorted(names.index(name) for name, _ in where))
        inside = [self.columns_[c].holds(dict(where)[names[c]]) for c in of]
        parts = np.logical_and.outer(*inside).ravel().astype(np.intp)
        cells = codes[of[0]] * self.columns_[of[1]].size + codes[of[1]]
        seen = np.bincount(cells, minlength=parts.size) > 0
        return [EffectBlock(of, parts[cells], 2, parts=np.where(seen, parts, -1))]

    def _cut_columns(
        self, n: int, weights: FloatArray | None
    ) -> tuple[tuple[SegmentedColumn, ...], list[IntArray]]:
        """Cut the columns, and find the segment of each row."""
        chosen = chosen_names(self.columns)
        missing = [name for name in chosen or () if name not in self._given]
        if missing:
            raise no_column(missing[0], self._given)
        columns, codes, without = [], [], []
        for name in chosen or self._given:
            values = _as_column(self._given[name])
            if len(values) != n:
                raise InputError(
                    f"the column '{shortened(name)}' has {len(values):,} values for {n:,} rows of scores"
                )
            cut, why = _cut(values, weights)
            if why and chosen:
                raise InputError(f"the column '{shortened(name)}' has no segments: {why}")
            if why:
                without.append(f"'{shortened(name)}' ({why})")
                continue
            column = SegmentedColumn(name, cut)
            columns.append(column)
            codes.append(column.codes(values))
        if without:
            self._warn(f"without segments: {', '.join(without[:3])}{', …' * (len(without) > 3)}.")
        if not columns:
            self._warn("there are no columns with segments: it is the map of all rows.")
        return tuple(columns), codes

    @claim(
        "segments",
        says="the segments of site, age differ beyond chance.",
        chosen="the columns, and pairs of columns, whose segments differ",
        adjusted="Benjamini and Hochberg at 1 %, over the columns and over the pairs",
    )
    def reading(self) -> str:
        """In which columns segments differ, in a sentence."""
        names = [" x ".join(shortened(self.columns_[c].name) for c in e.of) for e in self.effects_]
        if not names:
            return f"no segments are shown to differ: it is {RECALIBRATORS[self.base_.key].label} of all rows."
        return f"the segments of {', '.join(names)} differ beyond chance."

    def _keep_used(self) -> None:
        """Forget columns whose segments do not differ: their values, such as identifiers, are in no saved map."""
        used = sorted({c for effects in self.effects_ for c in effects.of})
        self.columns_ = tuple(self.columns_[c] for c in used)
        self.effects_ = tuple(replace(e, of=tuple(map(used.index, e.of))) for e in self.effects_)

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """Names of the columns that `transform` needs: those whose segments differ."""
        return tuple(column.name for column in self.columns_)

    def transform(self, X: npt.ArrayLike, columns: Mapping[str, Any] | None = None) -> FloatArray:
        """Return calibrated probabilities in the dtype of X, shape (n, K); rows sum to 1.

        Parameters
        ----------
        X : array_like of float, shape (n, K)
        columns : mapping of str to array_like, or data frame, optional
            As for `fit`; at least `needed_columns`. Segments that were not seen have the map of all rows.

        Raises
        ------
        InputError
            If a column is missing.
        """
        out = super().transform(X)
        if not self.effects_:
            return out
        given, codes = given_columns(columns), []
        for column in self.columns_:
            if column.name not in given:
                raise no_column(column.name, given)
            codes.append(column.codes(given[column.name]))
            if codes[-1].size != len(out):
                raise InputError(
                    f"the column '{shortened(column.name)}' has {codes[-1].size:,} values for {len(out):,} rows of scores"
                )
        offset, slope, log_t = np.zeros((3, len(out)))
        for effects in self.effects_:
            at = codes[effects.of[0]]
            if len(effects.of) == 2:
                at = at * self.columns_[effects.of[1]].size + codes[effects.of[1]]
            offset += effects.offsets[at]
            slope += effects.slopes[at]
            log_t += effects.log_temperatures[at]
        for rows in blocks.row_blocks(out):
            probs: FloatArray = out[rows].astype(np.float64)
            if log_t[rows].any():
                probs = softmax(np.log(np.maximum(probs, LEAST)) * np.exp(-log_t[rows])[:, None])
            event, z = _event(probs)
            seen = (offset[rows] != 0) | (slope[rows] != 0)
            offsets = np.where(seen, offset[rows] + self.shared_[0], 0.0)
            slopes = np.where(seen, slope[rows] + self.shared_[1], 0.0)
            share = expit(z + offsets + slopes * (z - self.center_))
            places = np.arange(len(probs)), event
            own, probs[places] = probs[places], 0.0
            rest = row_sums(probs)
            probs *= ((1 - share) / np.maximum(rest, LEAST))[:, None]
            probs[places] = np.where(rest > 0, share, own)
            out[rows] = probs
        return out

    def predict_proba(
        self, X: npt.ArrayLike, columns: Mapping[str, Any] | None = None
    ) -> FloatArray:
        """Same as `transform`, shape (n, K)."""
        return self.transform(X, columns)

    def _transform(self, scores: Scores, out: FloatArray) -> None:
        out[:] = self.base_.transform(scores.array)

    def _why_no_inverse(self) -> str:
        if self.effects_:
            return "the map depends on columns: it has no inverse of a score alone."
        return str(self.base_._why_no_inverse())

    @property
    def is_its_base(self) -> bool:
        """Whether no segment differs."""
        return not self.effects_

    def _saved(self) -> dict[str, Any]:
        return {
            "base": self.base_.to_dict(),
            "center": self.center_,
            "shared": self.shared_.tolist(),
            "columns": [column.to_dict() for column in self.columns_],
            "effects": [effects.to_dict() for effects in self.effects_],
        }

    def _read(self, saved: Any) -> None:
        numbers = {"center": Numbers(), "shared": Numbers((2,))}
        names = {"base", "columns", "effects", *numbers}
        if not isinstance(saved, Mapping) or set(saved) != names:
            raise damaged(self.key, f"its fields must be {', '.join(sorted(names))}")
        read = read_fields(numbers, {name: saved[name] for name in numbers}, self.key, {})
        self.center_, self.shared_ = read["center"], read["shared"]
        record = saved["base"]
        method = str(record.get("method")) if isinstance(record, Mapping) else ""
        if method not in RECALIBRATORS or RECALIBRATORS[method].family != "Parametric":
            raise damaged(self.key, "its base must be a parametric map")
        self.base_ = type(RECALIBRATORS[method].make()).from_dict(record)
        check_part(self, self.base_, self.input)
        for name in ("columns", "effects"):
            if not isinstance(saved[name], list):
                raise damaged(self.key, f"its {name} must be a list")
        self.columns_ = tuple(_read_column(self.key, record) for record in saved["columns"])
        if len({column.name for column in self.columns_}) < len(self.columns_):
            raise damaged(self.key, "two of its columns have one name")
        self.effects_ = tuple(
            _read_effects(self.key, record, self.columns_) for record in saved["effects"]
        )
        self._keep_used()

    def _described(self) -> dict[str, Any]:
        """Return the fitted parameters of the map of all rows, and the offsets and slopes by column and segment."""
        described: dict[str, Any] = {str(self.base_.key): self.base_.describe()}
        for effects in self.effects_:
            of = [self.columns_[c] for c in effects.of]
            labels = [", ".join(names) for names in product(*(column.cut.labels for column in of))]
            described[" and ".join(column.name for column in of)] = {
                label or "missing": [round(float(v), 4) for v in values]
                for label, *values in zip(labels, *effects.kinds.values(), strict=True)
                if any(values)
            }
        return described

    def _program(self, name: str) -> Program:
        base: Program = self.base_._program(f"{name}_base")
        if not self.effects_:
            return base
        cuts = {
            column.name: list(column.cut.kept if column.cut.kept is not None else column.cut.edges)
            for column in self.columns_
        }
        effects = [
            ([self.columns_[c].name for c in e.of], *(v.tolist() for v in e.kinds.values()))
            for e in self.effects_
        ]
        source = _SOURCE.format(
            name=name, cuts=cuts, effects=effects, center=self.center_, shared=self.shared_.tolist()
        )
        call = f"{name}({base.call}, columns)"
        codes = CODES_SOURCE.format(name=name)
        return Program((*base.functions, codes, source), call, "scores, columns")


def chosen_names(columns: Any) -> tuple[str, ...] | None:
    """Names of the parameter `columns`, without doubles; None if it is left out."""
    if columns is None:
        return None
    listed = columns.split(",") if isinstance(columns, str) else columns
    if not isinstance(listed, Iterable) or isinstance(listed, Mapping):
        listed = ()
    names = [str(name).strip() for name in listed]
    if not names or not all(names):
        raise OptionError(f"'columns' must be the names of columns, got {columns!r}.")
    return tuple(dict.fromkeys(names))


def in_rows(column: Any, rows: IntArray) -> Factor | npt.NDArray[Any]:
    """Return the values of a column in some rows."""
    return column.take(rows) if isinstance(column, Factor) else np.asarray(column)[rows]


def no_column(name: str, known: Iterable[str], why: str = "") -> InputError:
    """Return the error about rows without a column of the map."""
    names = ", ".join(shortened(other) for other in list(known)[:10])
    there_is_none = f"there is no column '{shortened(name)}'"
    return InputError(
        f"{why}, and {there_is_none}" if why else f"{there_is_none}, whose segments the map needs",
        remedy="give the rows with it, written as where the map was fitted"
        if why
        else f"known: {names}"
        if names
        else "these rows have no columns",
    )


def given_columns(columns: Any) -> dict[str, Any]:
    """Columns of a mapping or of a data frame by name."""
    if columns is None:
        return {}
    try:
        names = list(columns.keys()) if isinstance(columns, Mapping) else list(columns.columns)
        return {str(name): columns[name] for name in names}
    except AttributeError:
        raise InputError(
            f"'columns' is a {type(columns).__name__}, expected a mapping of names to columns",
            remedy='such as {"site": sites}',
        ) from None


def _event(probs: FloatArray) -> tuple[IntArray, FloatArray]:
    """The class whose probability is moved, class 1 of two or the top label, shape (n,), and its log-odds."""
    event = np.ones(len(probs), np.intp) if probs.shape[1] == 2 else probs.argmax(axis=1)
    own = probs[np.arange(len(probs)), event]
    rest = probs[:, 0] if probs.shape[1] == 2 else row_sums(probs) - own
    return event, np.log(np.maximum(own, LEAST)) - np.log(np.maximum(rest, LEAST))


# ---- Saved maps and source


def _read_column(key: str, record: Any) -> SegmentedColumn:
    if not isinstance(record, Mapping) or set(record) not in (
        {"name", "values"},
        {"name", "edges"},
        {"name", "cycle"},
    ):
        raise damaged(key, "a column must have a name, and values, edges or a cycle")
    if not isinstance(record["name"], str):
        raise damaged(key, "the name of a column must be a text")
    if "cycle" in record:
        if record["cycle"] not in [*features.CYCLES]:
            raise damaged(key, f"a cycle must be {' or '.join(features.CYCLES)}")
        return SegmentedColumn(record["name"], features.cycle(record["cycle"]))
    if "edges" in record:
        edges = Numbers(("E",), ascending=True)
        read = read_fields({"edges": edges}, {"edges": record["edges"]}, key, {})
        return SegmentedColumn(record["name"], Cut(tuple(read["edges"].tolist())))
    values = record["values"]
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise damaged(key, "the values of a column must be a list of texts")
    if len(set(values)) < len(values):
        raise damaged(key, "the values of a column must differ")
    return SegmentedColumn(record["name"], Cut(kept=tuple(values)))


def _read_effects(key: str, record: Any, columns: tuple[SegmentedColumn, ...]) -> SegmentEffects:
    names = ("columns", "offsets", "slopes", "log_temperatures")
    if not isinstance(record, Mapping) or set(record) not in (set(names[:3]), set(names)):
        raise damaged(key, "effects must have columns, offsets and slopes")
    of = record["columns"]
    good = isinstance(of, list) and 1 <= len(of) <= 2 and len(set(map(repr, of))) == len(of)
    if not good or not all(is_whole(c, 0) and c < len(columns) for c in of):
        raise damaged(key, "effects must be of one or two of its columns")
    size = int(np.prod([columns[c].size for c in of]))
    fields = dict.fromkeys(names[1:], Numbers((size,)))
    fields[names[3]] = Numbers((size,), least=-99, most=99)
    full = {names[3]: [0.0] * size, **record}
    read = read_fields(fields, {name: full[name] for name in fields}, key, {})
    return SegmentEffects(tuple(of), *(read[name] for name in fields))


#: Source of the segment of each row, which depends on no fitted map.
CODES_SOURCE = '''\
__DATES__def {name}_codes(values, cut, dates=False):
    """The segment of each row; numbers that are missing, and texts that were not seen, have the last."""
    if isinstance(dates, tuple):
        texts = [str(v).strip()[:16] for v in np.asarray(values)]
        times = np.array(["NaT" if t in ("", "nan", "None") else t for t in texts], dtype="datetime64[m]")
        number = times.astype("datetime64[" + dates[0] + "]").astype(int) + dates[1]
        return np.where(np.isnat(times), len(cut), number % len(cut))
    if dates and np.asarray(values).dtype.kind not in "iuf":
        values = {name}_dates(values, dates)
    if not cut or not isinstance(cut[0], str):
        if np.asarray(values).dtype.kind not in "biuf":  # ages such as 068Y or 007M, in years
            texts, years = [str(v).strip() for v in values], dict(Y=1, M=12, W=52.18, D=365.25)
            values = [float(t[:3]) / years[t[3]] if re.fullmatch("[0-9]{{3}}[YMWD]", t) else "nan" if t in ("", "None") else t for t in texts]
        values = np.asarray(values, dtype=float)
        return np.where(np.isnan(values), len(cut) + 1, np.searchsorted(cut, values))
    texts = [__WRITTEN__.get(str(v).strip(), str(v).strip()) for v in values]
    texts = [re.sub(r"^([+-]?\\d+)\\.0+$", r"\\1", t) for t in texts]
    return np.array([cut.index(t) if t in cut else len(cut) for t in texts], dtype=int)
'''.replace("__WRITTEN__", repr(_WRITTEN).replace("{", "{{").replace("}", "}}")).replace(
    "__DATES__", features.DATES_SOURCE
)
_SOURCE = '''\
#: Inner edges of the intervals of numbers (dates: microseconds since 1970), or values of texts, by column.
{name}_cuts = {cuts!r}
#: Columns, offsets and slopes of the log-odds, and logarithms of temperatures, if any.
{name}_effects = {effects!r}


def {name}(p, columns):
    """Move the probability of class 1, or of the top label of more than two classes; columns: values by name."""
    p = np.array(p, dtype=float)
    codes = {{name: {name}_codes(columns[name], cut) for name, cut in {name}_cuts.items()}}
    size = {{name: len(cut) + (1 if cut and isinstance(cut[0], str) else 2) for name, cut in {name}_cuts.items()}}
    offset, slope, log_t = np.zeros((3, len(p)))
    for names, *kinds in {name}_effects:
        at = codes[names[0]]
        if len(names) == 2:
            at = at * size[names[1]] + codes[names[1]]
        for sums, values in zip((offset, slope, log_t), kinds):
            sums += np.array(values)[at]
    if log_t.any():
        p = np.log(np.maximum(p, 1e-300)) * np.exp(-log_t)[:, None]
        p = np.exp(p - p.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
    rows = np.arange(len(p))
    event = np.ones(len(p), dtype=int) if p.shape[1] == 2 else p.argmax(axis=1)
    own = p[rows, event]
    p[rows, event] = 0
    rest = p.sum(axis=1)
    z = np.log(np.maximum(own, 1e-300)) - np.log(np.maximum(rest, 1e-300))
    seen = (offset != 0) | (slope != 0)
    offset, slope = (np.where(seen, v + w, 0) for v, w in zip((offset, slope), {shared!r}))
    margin = z + offset + slope * (z - {center!r})
    share = np.where(margin > 0, 1 / (1 + np.exp(-np.abs(margin))), 1 - 1 / (1 + np.exp(-np.abs(margin))))
    p *= ((1 - share) / np.maximum(rest, 1e-300))[:, None]
    p[rows, event] = np.where(rest > 0, share, own)
    return p
'''
