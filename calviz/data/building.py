"""Predictions built from a table and its roles, with the requested repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray, read_only, row_blocks
from calviz.core.errors import Finding, InputError, Reading, Repair
from calviz.core.predictions import BEFORE, ConfidencePredictions, Dataset, Predictions, repeated
from calviz.core.probabilities import RENORMALISE, RowsInRange, rounding_of_sums
from calviz.data import format as file_format
from calviz.data import labels, roles
from calviz.data.format import REPAIRS, Fetched, Notice, ReadingOptions, Table, no_rows, short, span
from calviz.data.labels import NO_CLASS, as_numbers, joint_classes, one_dimensional
from calviz.data.loaded import Loaded, ReadingForMap, Recognition
from calviz.data.other_columns import OtherColumns, blank, in_column, outcome_as_score, rows_taken
from calviz.data.roles import SUM_SLACK, ColumnRoles, Confidence, ScoreColumns

# ---- Build predictions from a table and its layout, with the requested repairs.


#: Row sums further from 1 than this are accepted with a warning.
SUM_NOTICE = 1e-4


def build(table: Table, layout: ColumnRoles, options: ReadingOptions, name: str) -> Loaded:
    """Fetch the columns of a layout and make predictions from them; a model without a name gets the name `name`."""
    return _Builder(table, layout, options, name).build()


#: If rows with missing values are left out, so are these of a column of times, of at most this share of all rows.
_FEW_UNDATED = 0.01


class _Builder:
    def __init__(
        self, table: Table, layout: ColumnRoles, options: ReadingOptions, name: str
    ) -> None:
        self.table, self.layout, self.options, self.name = table, layout, options, name
        #: The columns that a division of percentages leaves alone.
        self.fractions = set[str]()
        if "percent" in options.repair:
            beside = options.beside_in(table) if isinstance(options, ReadingForMap) else ()
            self.fractions = layout.fractions_beside_percentages(table, beside)
        self.notices: list[Finding] = []
        self.offered: list[Repair] = []
        self.repairs: list[str] = []
        self.ways: list[Reading] = []
        #: What numbers stand for missing labels.
        self.fills, self.if_missing = "", labels.IF_MISSING
        #: Frequency weights of aggregated rows, shape (n,).
        self.counts: FloatArray | None = None
        #: The rows of each model that a column names.
        self.parts: dict[str, IntArray | None] = {}
        #: By model, the columns of a table that hold its probabilities, or its confidence, as they are.
        self.own: dict[str, tuple[str, ...]] = {}
        #: The scores of all models, by their columns.
        self.arrays: dict[str, FloatArray] = {}
        #: Texts made of labels that are written back although some are missing.
        self.label_texts: dict[str, Factor] = {}
        #: Masks of the rows to keep, None if all are kept, and of those left out for want of a label only, shape (n,).
        self.kept: BoolArray | None = None
        self.unlabelled = np.zeros(0, dtype=np.bool_)
        #: Masks of the rows left out that have the scores of each block, shape (blocks, n), and these rows by model.
        self.scored = np.zeros((0, 0), dtype=np.bool_)
        self.left_out: dict[str, Dataset] = {}

    def build(self) -> Loaded:
        layout, confidence = self.layout, self.layout.confidence
        roles = ("label", "correct", "split", "id", "cluster", "weight", "time")
        several = ("long", "groups", "numbers", "kept", "one_hot", "features", "related")
        singles = {getattr(layout, role) for role in roles}
        singles.update(*(getattr(layout, role) or () for role in several))
        blocks = [s.columns for s in layout.scores]
        blocks += [s.logits for s in layout.scores if s.logits]
        if confidence is not None:
            blocks = [(confidence.score,)]
            singles |= {confidence.correct, confidence.predicted}
        fetched = self.table.fetch(blocks, sorted(name for name in singles if name is not None))
        return self._confidence(fetched, confidence) if confidence else self._predictions(fetched)

    # Full predictions

    def _predictions(self, fetched: Fetched) -> Loaded:
        first = self.layout.scores[0]
        if self.layout.multilabel or self._has_several_labels(fetched, first):
            return self._multilabel(fetched, first)
        k = max(2, first.width)
        if isinstance(self.options, ReadingForMap):
            decoded = self._labels_if_any(fetched, first, k, self.options)
        else:
            decoded = self._labels(fetched, first, k)
        count = len(self.layout.scores)
        arrays, logits_beside = fetched.scores[:count], fetched.scores[count:]
        given = self.options.class_names or self.table.class_names
        for text, way in labels.in_another_order(arrays[0], decoded, given):
            self.notices.append(Notice.LABEL_VALUES.finding("warning", text))
            self.ways.append(way)
        no_label = decoded.missing | self._blank(fetched, self.layout.correct)
        columns = self._columns(fetched, no_label, decoded.indices)
        names = self._class_names(first, k, decoded)
        models: dict[str, Dataset] = {}
        self.arrays = {span(s.columns): a for s, a in zip(self.layout.scores, arrays, strict=True)}
        for j, (scores, array) in enumerate(zip(self.layout.scores, arrays, strict=True)):
            if scores.reversed:
                array = np.ascontiguousarray(array[:, ::-1])
            logits = logits_beside[0] if scores.logits else None
            for model, part in (self.parts or {scores.model or self.name: None}).items():
                make = partial(
                    self._model, scores, array, decoded.indices, names, model, columns,
                    filled=fetched.filled(array), logits=logits, part=part,
                )  # fmt: skip
                models[model] = make(self.kept)
                self._leave_out(model, make, j)
        return self._built(models, decoded.form)

    def _has_several_labels(self, fetched: Fetched, first: ScoreColumns) -> bool:
        """Whether rows of a 2-D label of 0 and 1 have none or several classes, and the scores of a row do not sum to 1."""
        label = None if self.layout.label is None else fetched.columns.get(self.layout.label)
        if not isinstance(label, np.ndarray) or label.ndim != 2 or label.shape[1] != first.width:
            return False
        scores = fetched.scores[0]
        if first.width < 2 or len(label) != len(scores) or not np.isin(label, (0, 1)).all():
            return False
        off = np.abs(scores.sum(axis=1, dtype=np.float64) - 1) > SUM_SLACK
        is_distribution = first.kind == "probabilities" and float(np.mean(off)) < 0.1
        return not is_distribution and bool((label.sum(axis=1) != 1).any())

    def _multilabel(self, fetched: Fetched, first: ScoreColumns) -> Loaded:
        """Make a model of two classes of each label."""
        scores, layout = fetched.scores[0], self.layout
        if layout.one_hot:
            block = self._one_hot(fetched)
        else:
            block = np.asarray(fetched.columns[layout.label or ""])
        names = self.options.class_names or first.class_names or layout.one_hot
        if len(names) != first.width:
            names = tuple(str(j) for j in range(first.width))
        shown = layout.one_hot or (layout.label or "",) * first.width
        by_label = zip(np.hsplit(block, first.width), shown, strict=True)
        decoded = [labels.from_one_hot(one, (name,), self.table.line) for one, name in by_label]
        self._check_lengths(fetched, len(block), shown[0])
        columns = self._columns(fetched, np.any(np.array(decoded) < 0, axis=0, keepdims=False))
        text = (
            f"multi-label: rows have none or several of the {len(names):,} labels, so each label is a model of its own "
            "with two classes"
        )
        self.notices.append(Notice.LABEL_VALUES.finding("info", text))
        models: dict[str, Dataset] = {}
        for j, name in enumerate(names):
            column = first.columns[j] if len(first.columns) == first.width else first.columns[0]
            one = replace(first, columns=(column,), class_names=(), width=1, logits=(), labels=())
            models[name] = self._model(
                one, scores[:, [j]], decoded[j], ("0", "1"), name, columns, self.kept
            )
        return self._built(models, "0 or 1 for each label")

    def _model(
        self,
        scores: ScoreColumns,
        array: FloatArray,
        indices: IntArray,
        names: tuple[str, ...],
        model: str,
        columns: dict[str, Any],
        keep: BoolArray | None,
        filled: RowsInRange | None = None,
        logits: FloatArray | None = None,
        part: IntArray | None = None,
    ) -> Predictions:
        """Make the predictions of one model, of the rows to keep, or of its part of them."""
        rows = _rows_of(part, keep)
        if rows is not None:
            # Drop the same rows from the logits, unless the lengths disagree.
            if logits is not None and len(logits) == len(array):
                logits = logits[rows]
            array, indices, columns = array[rows], indices[rows], rows_taken(columns, rows)
            indices = np.maximum(indices, 0)  # those of rows without labels mean nothing
        if self.options.repair:
            filled = None  # repairs change numbers that the reader has looked at
        scores, array = self._repaired(scores, array)
        self.own[model] = self._as_they_are(scores)
        problem = roles.Problem(
            self.table, scores, array, rows, self._whole(scores.columns) > 1, self.arrays
        )
        if scores.kind == "logits":
            problem.check_logits()
            values: dict[str, Any] = {
                "logits": roles.two_logits(array) if scores.width == 1 else array
            }
        else:
            values = {"probs": array[:, 0] if scores.width == 1 else array}
        if logits is not None:
            values |= self._logits_beside(scores, array, logits)
        try:
            predictions = Predictions(
                **values, labels=indices, class_names=names, name=model, filled=filled, **columns
            )
        except InputError as error:
            raise problem.explain(error) from None
        vars(predictions)["file_rows"] = self._file_rows(predictions.n, rows)
        self._note_sums(predictions, scores)
        self.notices += outcome_as_score(scores, array[:, 0], indices)
        return predictions

    def _file_rows(self, n: int, rows: IntArray | None) -> IntArray | None:
        """The rows of the file; numbers of all of them, too, if a selection is written with its cells."""
        if rows is None and (self.table.cells is None or self.counts is not None):
            return None
        return read_only(np.arange(n) if rows is None else rows)

    def _logits_beside(
        self, scores: ScoreColumns, array: FloatArray, logits: FloatArray
    ) -> dict[str, FloatArray]:
        """Return the logits that the file holds beside the probabilities, if the two agree."""
        probs, others = span(scores.columns), span(scores.logits)
        problem, text = "", f"'{probs}' holds the scores, read as logits; not used: {others}"
        if scores.kind != "logits":
            problem = roles.disagreement(array, logits)
            text = f"'{probs}' holds the scores; {others}, which agree with them, are their logits"
        if problem:
            text = f"'{probs}' holds the scores; not used: {others}, {problem}"
        self.notices.append(Notice.SCORE_COLUMNS.finding("warning" if problem else "info", text))
        return {} if problem or scores.kind == "logits" else {"logits": logits}

    def _whole(self, columns: Iterable[str]) -> int:
        """What a probability of 1 is in these columns, before a repair."""
        return 100 if "percent" in self.options.repair and self.fractions.isdisjoint(columns) else 1

    def _repaired(self, scores: ScoreColumns, array: FloatArray) -> tuple[ScoreColumns, FloatArray]:
        repairs = self.options.repair
        if "softmax" in repairs or "sigmoid" in repairs:
            word = "sigmoid" if scores.width == 1 else "softmax"
            self._note_repair(f"{word}: the scores were read as logits")
            scores = replace(scores, kind="logits")
        # Cells with a percent sign have been divided where they were read.
        divided = {c.name for c in self.table.columns if c.note == file_format.IN_PERCENT}
        by = np.array([1 if name in divided else self._whole((name,)) for name in scores.columns])
        if scores.kind == "probabilities" and by.max() > 1:
            for rows in row_blocks(array):
                # To the digits of the file, which a division may miss by the last bit.
                exact = np.divide(array[rows], by, dtype=np.float64)
                near = np.round(exact, 15)
                array[rows] = np.where(abs(near - exact) <= np.spacing(exact), near, exact)
            of = f" of '{span(scores.columns)}'" if self.fractions else ""
            self._note_repair(f"percent: the scores{of} were divided by 100")
        if "renormalise" in repairs and scores.kind == "probabilities" and scores.width > 1:
            array, said = roles.normalised(array)
            if said:
                self._note_repair(said)
        return scores, array

    def _as_they_are(self, scores: ScoreColumns) -> tuple[str, ...]:
        """The columns of a table that hold these probabilities themselves, one per class or P(class 1); () if they hold logits, lists, percentages or only 0 and 1."""
        columns = [self.table[name] for name in scores.columns]
        odd = any(c.width is not None or c.note == file_format.IN_PERCENT for c in columns)
        odd |= scores.kind == "logits" or "percent" in self.options.repair or not self.table.named
        odd |= BEFORE in scores.columns or all(c.is_zero_one for c in columns)
        return () if odd else scores.columns

    def _note_repair(self, what: str) -> None:
        if what not in self.repairs:
            self.repairs.append(what)

    def _note_sums(self, predictions: Predictions, scores: ScoreColumns) -> None:
        if scores.kind == "logits" or scores.width == 1:
            return
        off = (sums := predictions.row_sums).deviation
        if off <= SUM_NOTICE or off <= rounding_of_sums(predictions.probs):
            return
        low, high = f"{sums.low:.4g}", f"{sums.high:.4g}"
        range_ = f"sum{'s' * (sums.off == 1)} to {low if low == high else f'{low} … {high}'}"
        of = f"'{short(predictions.name)}': " if scores.model or self.parts else ""
        text = (
            f"{of}{sums.off:,} of {predictions.n:,} rows {range_} (max deviation {sums.deviation:.2g}); the numbers are for "
            "the scores as they are, not renormalised"
        )
        self.notices.append(Notice.ROW_SUMS.finding("warning", text))
        if RENORMALISE not in self.offered:
            self.offered.append(RENORMALISE)

    # Labels and classes

    def _labels_if_any(
        self, fetched: Fetched, first: ScoreColumns, k: int, options: ReadingForMap
    ) -> labels.Labels:
        """Class 0 for all rows, in no form, unless all have a label that can be read; other labels are kept as they are."""
        n = fetched.scores[0].shape[0]
        if not n:
            raise no_rows()
        given = options.class_names or self.table.class_names
        labels.check_class_names(given, k)
        # Columns without names are named by their numbers.
        named = given or (first.class_names if self.table.named else ())
        names = options.names_of_classes(named, k)
        if self.layout.label is not None or self.layout.one_hot:
            notices = len(self.notices)
            with suppress(InputError):
                decoded = self._labels(fetched, first, k)
                if not (options.labels_rename(named, decoded.class_names) or decoded.missing.any()):
                    return decoded
            del self.notices[notices:]
            self._keep_labels(fetched, names)
        return labels.Labels(np.zeros(n, dtype=np.int32), "", names)

    def _keep_labels(self, fetched: Fetched, names: tuple[str, ...]) -> None:
        """Treat the columns of labels as columns without a role; one-hot arrays become the names of the classes."""
        label, kept = self.layout.label, (*self.layout.kept, *self.layout.one_hot)
        if label is not None and (self.table[label].width or 1) == 1:
            kept = (*kept, label)
        elif label is not None:
            try:
                block = np.asarray(fetched.columns[label])
                indices = labels.from_one_hot(block, (label,), self.table.line)
                self._check_lengths(fetched, len(indices), label)
                self.label_texts[label] = Factor.of(np.array([*names, ""], dtype=object)[indices])
            except (InputError, IndexError):
                text = f"'{short(label)}' is left out: it is not one label per row"
                self.notices.append(Notice.LEFT_OUT.finding("warning", text))
        self.layout = replace(self.layout, label=None, one_hot=(), kept=kept)

    def _labels(self, fetched: Fetched, first: ScoreColumns, k: int) -> labels.Labels:
        layout, line = self.layout, self.table.line
        if layout.one_hot:
            block = self._one_hot(fetched)
            self._check_lengths(fetched, len(block), layout.one_hot[0])
            indices = labels.from_one_hot(block, layout.one_hot, line)
            form = "one-hot" if len(layout.one_hot) > 1 else "0 or 1"
            return labels.Labels(indices, form, first.class_names)
        assert layout.label is not None
        values = fetched.columns[layout.label]
        self._check_lengths(fetched, len(values), layout.label)
        if not isinstance(values, Factor) and values.ndim == 2 and values.shape[1] > 1:
            indices = labels.from_one_hot(values, (layout.label,), line)
            return labels.Labels(indices, "one-hot", first.class_names)
        names = self.options.class_names or self.table.class_names
        values = self._without_fills(values, (*names, *first.class_names, *first.labels))
        base = self.options.label_base
        if "above-zero" in self.options.repair and k == 2:
            amounts = as_numbers(values, layout.label)
            self._note_repair(f"above-zero: the event is that '{short(layout.label)}' is above 0")
            happened = np.where(np.isnan(amounts), -1, amounts > 0).astype(np.int32)
            return labels.Labels(happened, "0 or above", names or ("0", "above 0"))
        if "others-no" in self.options.repair and k == len(names) == 2:
            found, text = labels.one_of_several(values, names, layout.label)
            self._note_repair(f"others-no: {text}")
            return found
        given, by_ids = bool(names), ""
        if not names:
            names = first.class_names
            if len(names) == 1 and (names := labels.names_of_one(names[0], values)):
                base = None  # labels that are names are not counted
            if not names and base is None and first.width == k:
                factor, scores = Factor.of(values), fetched.scores[0]
                names, by_ids = labels.names_by_ids(factor, fetched.columns, scores)
        labels.check_class_names(names, k)
        # Of named classes, labels that are none of them have always been missing.
        named = bool(self.options.class_names) and "drop-missing" in self.options.repair
        decoded = labels.decode(
            values,
            k,
            class_names=names,
            columns=first.columns,
            base=base,
            name=layout.label,
            line=line,
            class_labels=first.labels,
            only=named or "drop-labels" in self.options.repair,
            asks=first.width > 2 or len(first.columns) == first.width,
            models=len(layout.scores),
            given=given,
        )
        # A flag of events, of which the other rows may be those without one.
        is_flag = k == 2 and 0.5 < decoded.missing.mean() < 1 and 0 not in decoded.indices
        self.if_missing = labels.IF_FLAG if is_flag else labels.IF_MISSING
        if is_flag and "blank-no" in self.options.repair:
            decoded = replace(decoded, indices=np.maximum(decoded.indices, 0))
            self._note_repair("blank-no: rows without a label were read as rows without the event")
        if first.holds_first_of(decoded.class_names):
            decoded = decoded.reversed_for(first.columns[0])
        joined = decoded.joined and f"spellings that are read as one class: {decoded.joined}"
        for text in filter(None, (by_ids, decoded.notice, joined)):
            self.notices.append(Notice.LABEL_VALUES.finding("info", text))
        return decoded

    def _without_fills(self, values: Any, classes: Sequence[str] = ()) -> Any:
        """Labels, shape (n,) or (n, 1), without numbers that stand for missing ones, which are noted."""
        values, self.fills = labels.without_fills(one_dimensional(values), classes)
        return values

    def _one_hot(self, fetched: Fetched) -> FloatArray:
        """The 0/1 columns of the classes as numbers, shape (n, K)."""
        columns = {c: self._without_fills(fetched.columns[c]) for c in self.layout.one_hot}
        numbers = [as_numbers(values, name) for name, values in columns.items()]
        return np.stack(numbers, axis=1).astype(np.float64, copy=False)

    def _class_names(self, first: ScoreColumns, k: int, decoded: labels.Labels) -> tuple[str, ...]:
        given = decoded.class_names or self.options.class_names or self.table.class_names
        fit = (names for names in (given, first.class_names) if len(names) == k)
        return next(fit, tuple(str(j) for j in range(k)))

    def _check_lengths(self, fetched: Fetched, rows: int, name: str) -> None:
        n = fetched.scores[0].shape[0]
        if not n:
            raise no_rows()
        if rows != n:
            scores = self.layout.scores[0].columns[0]
            what = f"there are {n:,} rows of probabilities ('{short(scores)}') but {rows:,} labels ('{short(name)}')"
            raise InputError(what, remedy="save both for the same rows")

    def _blank(self, fetched: Fetched, column: str | None) -> BoolArray:
        """Mask of the rows without a value in a column, shape (n,); none if there is no such column with one per row."""
        n = len(fetched.scores[0])
        if column is None or len(values := fetched.columns[column]) != n:
            return np.zeros(n, dtype=bool)
        return blank(values)

    # Rows and columns

    def _leave_out(self, model: str, make: Callable[[BoolArray], Dataset], block: int = 0) -> None:
        """Make a model's rows that were left out but have its scores, a block; what is to say of its rows is said of the others."""
        if self.kept is None or self.counts is not None or not self.scored[block].any():
            return
        said = [*self.notices], [*self.offered], [*self.repairs]
        with suppress(InputError):
            self.left_out[model] = make(self.scored[block])
        self.notices, self.offered, self.repairs = said

    def _choose_rows(self, fetched: Fetched, no_label: BoolArray, labels: Any) -> Fetched:
        """Leave out rows with missing values if asked to, else refuse a missing label; return the columns with what can be checked in the place of such rows.

        Those whose label is none of the classes are left out in any case.
        """
        layout, asked = self.layout, self.options.repair
        scores = fetched.scores[: max(1, len(layout.scores))]
        no_class = no_label & (np.asarray(labels) == NO_CLASS)
        undated = self._blank(fetched, layout.time)
        dated = layout.time if self.options.time_column or undated.mean() <= _FEW_UNDATED else None
        chosen = (layout.cluster, layout.weight, dated)
        if "drop-missing" not in asked and (unknown := no_label & ~no_class).any():
            row, known = int(unknown.argmax()), short(layout.correct or "")
            why = f", or '{known}' does not say whether they were right" if known else ""
            why += f": {self.fills}" * bool(self.fills)
            no_score = np.any([np.isnan(a).any(axis=1) for a in scores], axis=0)
            lacks = {"more no score": no_score, "no date": undated & (dated is not None)}
            more = {what: n for what, rows in lacks.items() if (n := (rows & ~no_label).sum())}
            why += "".join(f", and {n:,} {what}" for what, n in more.items())
            remedy, repair, others = self.if_missing
            too = "".join(f" or {what.split()[-1]}" for what in more)
            raise InputError(
                f"{int(unknown.sum()):,} of {no_label.size:,} rows have no label{others}{why}",
                row=row + 1,
                line=self.table.line(row),
                column=layout.label or layout.correct,
                remedy=remedy,
                repairs=(Repair(repair, REPAIRS[repair].label.replace(", score or date", too)),),
            )
        drops = "drop-missing" in asked
        unread = np.any([self._blank(fetched, n if drops else None) for n in chosen], axis=0)
        blank, odd = np.zeros((2, len(scores), no_label.size), dtype=np.bool_)
        for j, array in enumerate(scores):
            if drops or no_class.any():
                blank[j] = np.isnan(array).any(axis=1) & (no_class | drops)
            if "drop-outside" in asked:
                whole = self._whole(layout.scores[j].columns if layout.scores else ())
                off = roles.outside(array, whole)
                odd[j] = off & roles.are_few(off)
                if "renormalise" not in asked:
                    off = roles.off_sum(array, whole) & ~odd[j]
                    odd[j] |= off & roles.are_few(off)
        missing = (no_label | unread | blank.any(axis=0)) & ~no_class
        if (keep := ~(missing | no_class | odd.any(axis=0))).all():
            return fetched
        for model, part in (self.parts or {"": None}).items():
            if not keep[slice(None) if part is None else part].any():
                of = f" of '{short(model)}'" if model else ""
                raise no_rows(f"there are no rows left{of}: every row has a missing value")
        for key, mask, what in (
            ("drop-labels", no_class, "labels that are none of the classes"),
            ("drop-missing", missing, "missing values"),
            ("drop-outside", odd.any(axis=0), "values that are no probabilities"),
        ):
            if (rows := np.flatnonzero(mask)).size:
                of = f"{rows.size:,} of {keep.size:,} rows with {what}"
                where = file_format.places(rows.tolist(), self.table.line)
                self._note_repair(f"{key}: {of} were left out: {where}")
        self.kept, self.scored = keep, ~(keep | unread | blank | odd)
        self.unlabelled = self.scored.all(axis=0) & no_label & ~undated
        needed = keep | self.scored.any(axis=0)
        rows = np.where(needed, np.arange(keep.size), needed.argmax())
        checked = {n: c for n, c in fetched.columns.items() if n in (*chosen, layout.time)}
        checked = {n: c for n, c in checked.items() if len(c) == keep.size}
        return replace(fetched, columns={**fetched.columns, **rows_taken(checked, rows)})

    def _columns(
        self, fetched: Fetched, no_label: BoolArray, labels: Any = None, hits: Any = None
    ) -> dict[str, Any]:
        others = OtherColumns(self.table, self.layout, self.options, self.notices, self.ways)
        self.layout, self.parts = others.of_models(fetched, labels)
        others = replace(others, layout=self.layout, key=others.key)
        outcome = labels if hits is None else hits
        columns = others.build(self._choose_rows(fetched, no_label, labels), outcome)
        others.count_singly(columns, [_rows_of(p, self.kept) for p in self.parts.values()])
        self.layout, self.counts = others.layout, others.counts
        columns["texts"] |= self.label_texts
        return columns

    # Confidence-only data

    def _confidence(self, fetched: Fetched, layout: Confidence) -> Loaded:
        score = fetched.scores[0][:, 0]
        right = (self._right_if_any if self.options.for_map else self._right)(fetched, layout)
        # Where only what was right is known, models may differ in it.
        truth = np.zeros(len(score), np.int32) if right.truth is None else right.truth
        hits = np.where(right.missing, -1, right.correct)
        columns = self._columns(fetched, right.missing, truth, hits)
        scores = ScoreColumns((layout.score,), (), "probabilities", 1)
        own = self._as_they_are(scores)
        if layout.log:
            score, own = np.exp(score), ()
            text = f"'{short(layout.score)}' holds logarithms: confidences are their exponentials"
            self.notices.append(Notice.CONVERTED.finding("info", text))
        elif "percent" not in self.options.repair and roles.are_percentages(score):
            score, own = score / 100, ()
            self.notices.append(Notice.CONVERTED.finding("info", roles.PERCENT_WORDS))

        def of_model(
            model: str, part: IntArray | None, keep: BoolArray | None
        ) -> ConfidencePredictions:
            """Make the predictions of one model, of the rows to keep, or of its part of them; whether those without labels are right means nothing."""
            correct, truth, predicted = right.correct, right.truth, right.predicted
            rows, held, taken = _rows_of(part, keep), score, columns
            if rows is not None:
                held, correct = score[rows], correct[rows]
                truth = None if truth is None else np.maximum(truth[rows], 0)
                predicted = None if predicted is None else np.maximum(predicted[rows], 0)
                taken = rows_taken(columns, rows)
            _, array = self._repaired(scores, held[:, None])
            try:
                predictions = ConfidencePredictions(
                    confidence=array[:, 0],
                    correct=correct,
                    labels=truth,
                    predicted=predicted,
                    class_names=right.class_names,
                    name=model,
                    **taken,
                )
            except InputError as error:
                if part is not None:  # the rows of all models are counted
                    rows = _rows_of(None, keep)
                    _, array = self._repaired(
                        scores, score[:, None] if rows is None else score[rows, None]
                    )
                problem = roles.Problem(
                    self.table, scores, array, rows, self._whole(scores.columns) > 1
                )
                raise problem.explain(error) from None
            vars(predictions)["file_rows"] = self._file_rows(predictions.n, rows)
            return predictions

        models: dict[str, Dataset] = {}
        for model, part in (self.parts or {self.name: None}).items():
            self.own[model] = own
            make = partial(of_model, model, part)
            models[model] = make(self.kept)
            self._leave_out(model, make)
        return self._built(models, right.form)

    def _right(self, fetched: Fetched, layout: Confidence) -> roles.Right:
        truth = predicted = None
        names: tuple[str, ...] = ()
        missing = np.zeros(len(fetched.scores[0]), dtype=bool)
        if layout.predicted is not None and self.layout.label is not None:
            truth, predicted, names, told = joint_classes(
                fetched.columns[self.layout.label],
                fetched.columns[layout.predicted],
                self.options.class_names or self.table.class_names,
                joins := "join-spellings" in self.options.repair,
                () if layout.correct else (self.layout.label, layout.predicted),
            )
            missing |= (truth < 0) | (predicted < 0)
            for finding in told:
                if joins:
                    self._note_repair(f"join-spellings: {finding.message}")
                elif finding.severity == "warning":
                    self.offered.append(REPAIRS["join-spellings"])
            self.notices += [] if joins else told
        if layout.correct is not None:
            values = self._without_fills(fetched.columns[layout.correct])
            decoded = labels.decode(values, 2, name=layout.correct, line=self.table.line)
            correct = decoded.indices == 1
            form = f"'{short(layout.correct)}' says whether it was right"
            missing |= decoded.missing
        else:
            assert truth is not None
            assert predicted is not None
            correct, form = truth == predicted, f"compared with '{short(layout.predicted or '')}'"
        return roles.Right(correct, missing, form, truth, predicted, names)

    def _right_if_any(self, fetched: Fetched, layout: Confidence) -> roles.Right:
        """No prediction is right, in no form, unless the file says so for all rows; what it says otherwise is kept as it is."""
        kept = (*self.layout.kept, self.layout.label, layout.predicted)
        self.layout = replace(self.layout, kept=tuple(c for c in kept if c is not None))
        if layout.correct is not None or layout.predicted is not None:
            with suppress(InputError):
                right = self._right(fetched, layout)
                if not right.missing.any():
                    return replace(right, truth=None, predicted=None)
        if layout.correct is not None:
            self.layout = replace(self.layout, kept=(*self.layout.kept, layout.correct))
        none = np.zeros(len(fetched.scores[0]), dtype=bool)
        return roles.Right(none, none, "")

    def _built(self, models: dict[str, Dataset], form: str) -> Loaded:
        column = self.layout.weight
        if self.counts is not None and column is not None:
            counts = self.counts if self.kept is None else self.counts[self.kept]
            models = {n: in_column(column, partial(repeated, m), counts) for n, m in models.items()}
        first = max(models.values(), key=lambda m: m.n)  # a column of models may leave gaps
        if (counting := first.rows_that_count) is not None:
            verb = "has" if first.n - counting.size == 1 else "have"
            text = (
                f"{first.n - counting.size:,} of {first.n:,} rows {verb} the weight 0: files that are written "
                "keep them, but they neither fit nor judge"
            )
            self.notices.append(Notice.WEIGHT_ZERO.finding("info", text))
        made = (
            Notice.REPAIRED.finding("warning", f"{file_format.AS_ASKED}{what}")
            for what in self.repairs
        )
        notices = (*self.table.notices, *self.layout.notices, *self.notices, *made)
        asked = (n.message for n in notices if n.code == Notice.REPAIRED.value)
        return Loaded(
            file=self.name,
            models=models,
            recognition=self._recognition(first, tuple(models), form),
            notices=notices,
            repairs_offered=tuple(self.offered),
            ways=(*self.layout.ways, *self.ways),
            repairs_made=tuple(message.removeprefix(file_format.AS_ASKED) for message in asked),
            left_out=self.left_out,
            unlabelled=self.unlabelled,
            cells=self.table.cells if self.counts is None else None,
            roles=replace(self.layout, notices=(), ways=()),
            own_scores=self.own,
        )

    def _recognition(self, data: Dataset, models: tuple[str, ...], form: str) -> Recognition:
        table, layout, confidence = self.table, self.layout, self.layout.confidence
        return Recognition(
            format=table.format,
            kind=data.kind,
            label=(layout.label or ", ".join(layout.one_hot) or None) if form else None,
            label_form=form,
            scores=layout.scores[0].columns if confidence is None else (confidence.score,),
            split_column=layout.split,
            groups=tuple(data.groups),
            id_column=layout.id,
            class_names=data.class_names,
            models=models,
            columns=table.names,
            rows=data.n,
            cluster_column=layout.cluster,
            weight_column=layout.weight,
            time_column=layout.time,
            model_column=layout.long[-1] if layout.long else None,
            numbers=tuple(name for name in layout.features if name in data.numbers),
            split_counts={} if data.splits is None else data.splits.counts(),
            choices=() if table.questions is None else table.questions.numbers,
        )


def _rows_of(part: IntArray | None, keep: BoolArray | None) -> IntArray | None:
    """The rows of a model's part that are kept; None if these are all rows."""
    if keep is None:
        return part
    return np.flatnonzero(keep) if part is None else part[keep[part]]
