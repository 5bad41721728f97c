"""Which columns are what: pure logic on names, types and the first rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calviz.core.errors import InputError, OptionError
from calviz.core.notes import Finding
from calviz.data import names
from calviz.data.table import Column, Table
from calviz.data.types import ReadingOptions, short

ScoreKind = Literal["probabilities", "logits"]

#: Names that say that a column of whole numbers is a score all the same (0 and 1, per cent).
_STRONG = ("p", "y_prob", "y_score", "score", "risk", "logit", "log")
#: Rounded rows may sum this far from 1 and still be found as a block of probabilities.
_SUM_SLACK = 0.02


@dataclass(frozen=True)
class Scores:
    """The score columns of one model.

    Attributes
    ----------
    columns : tuple of str
        One column per class, one 2-D array, or one column that is P(class 1).
    class_names : tuple of str
        What the columns call the classes; empty where they do not.
    kind : {"probabilities", "logits"}
    model : str
        The model's name; empty where there is only one.
    width : int
        The number of scores per row.
    """

    columns: tuple[str, ...]
    class_names: tuple[str, ...]
    kind: ScoreKind
    width: int
    model: str = ""


@dataclass(frozen=True)
class Confidence:
    """Confidence-only data: the score, and `correct` or the predicted label."""

    score: str
    correct: str | None = None
    predicted: str | None = None


@dataclass(frozen=True)
class Layout:
    """What every column is."""

    scores: tuple[Scores, ...] = ()
    confidence: Confidence | None = None
    label: str | None = None
    one_hot: tuple[str, ...] = ()
    split: str | None = None
    id: str | None = None
    groups: tuple[str, ...] = ()
    groups_chosen: bool = False
    notices: tuple[Finding, ...] = field(default=())


def recognise(table: Table, options: ReadingOptions) -> Layout:
    """Tell what the columns of a table are; what the options say is not guessed.

    Raises
    ------
    InputError
        Where there are no scores or no label, or where several columns could be the label.
    OptionError
        Where an option names a column that is not there.
    """
    _check_options(table, options)
    return _Recogniser(table, options).layout()


def _check_options(table: Table, options: ReadingOptions) -> None:
    wanted = [
        ("label", options.label),
        ("split column", options.split_column),
        ("identifier column", options.id_column),
        *(("group", g) for g in options.groups or ()),
        *(("score column", s) for s in options.scores or () if not s.endswith("*")),
    ]
    for what, name in wanted:
        if name and name not in table:
            raise OptionError(
                f"the {what} '{short(name)}' is not in the file; {_known(table.names)}."
            )


def _known(columns: Iterable[str]) -> str:
    found = [short(c) for c in columns]
    more = f" and {len(found) - 12:,} more" if len(found) > 12 else ""
    return f"there are {', '.join(found[:12])}{more}"


class _Recogniser:
    def __init__(self, table: Table, options: ReadingOptions) -> None:
        self.table, self.options = table, options
        self.notices: list[Finding] = []
        self.plain: dict[str, str] = {}
        for column in table.columns:
            self.plain.setdefault(names.plain(column.name), column.name)

    def layout(self) -> Layout:
        split = self._role(self.options.split_column, names.SPLITS)
        identifier = self._role(self.options.id_column, names.IDS, self._may_be_id)
        taken = {c for c in (split, identifier, self.options.label) if c}
        confidence = None
        label = self.options.label
        one_hot: tuple[str, ...] = ()
        scores = self._chosen_scores() or self._models(taken) or self._named_block(taken)
        if not scores:
            confidence = self._confidence(taken)
        if not scores and confidence is None:
            scores = self._one_column(taken) or self._fitting_block(taken)
        if not scores and confidence is None:
            raise self._no_scores(taken)
        used = taken | {c for s in scores for c in s.columns}
        if scores:
            scores, one_hot = self._one_hot(scores, used)
            used |= {c for s in scores for c in s.columns}
            if label is None and not one_hot:
                label = self._label(scores, used)
        elif confidence is not None:
            used |= {c for c in (confidence.score, confidence.correct, confidence.predicted) if c}
            if label is None:
                label = self._named(names.LABELS, used)
        used |= {c for c in (label, *one_hot) if c}
        chosen = self.options.groups is not None
        return Layout(
            scores=scores,
            confidence=confidence,
            label=label,
            one_hot=one_hot,
            split=split,
            id=identifier,
            groups=self.options.groups or () if chosen else self._groups(used),
            groups_chosen=chosen,
            notices=tuple(self.notices),
        )

    # Columns by their names

    def _role(self, option: str | None, known: tuple[str, ...], fits: Any = None) -> str | None:
        if option is not None:
            return option or None
        if not self.table.named:
            return None
        taken = {self.options.label, *(self.options.scores or ()), *(self.options.groups or ())}
        for name in known:
            found = self.plain.get(name)
            if found is None or found in taken or self.table[found].width is not None:
                continue
            if fits is None or fits(self.table[found]):
                return found
        return None

    def _may_be_id(self, column: Column) -> bool:
        return column.type in ("text", "integer") and len(set(column.head.tolist())) == len(
            column.head
        )

    def _named(self, known: tuple[str, ...], taken: set[str]) -> str | None:
        found = (self.plain.get(name) for name in known)
        return next((c for c in found if c is not None and c not in taken), None)

    # Scores

    def _chosen_scores(self) -> tuple[Scores, ...]:
        if self.options.scores is None:
            return ()
        chosen: list[str] = []
        prefix = ""
        for entry in self.options.scores:
            if entry.endswith("*"):
                prefix = entry[:-1]
                fitting = [
                    c.name
                    for c in self.table.columns
                    if c.name.startswith(prefix) and (c.numeric or c.width is not None)
                ]
                if not fitting:
                    raise OptionError(
                        f"no column of numbers begins with '{prefix}'; {_known(self.table.names)}."
                    )
                chosen.extend(c for c in fitting if c not in chosen and c != self.options.label)
            else:
                chosen.append(entry)
        for name in chosen:
            column = self.table[name]
            if not column.numeric:
                raise InputError(
                    f"cannot hold scores: it holds {column.note or column.type}", column=name
                )
        if len(chosen) == 1 and self.table[chosen[0]].width is not None:
            return (self._block(self.table[chosen[0]]),)
        known = [_by_prefix(name) for name in chosen]
        kinds = {k for _, k in known if k}
        stripped = tuple(
            (name.removeprefix(prefix) or name) if prefix else (found or name)
            for name, (found, _) in zip(chosen, known, strict=True)
        )
        kind: ScoreKind = "logits" if kinds == {"logits"} else "probabilities"
        return (self._scores(tuple(chosen), stripped, kind),)

    def _scores(
        self,
        columns: tuple[str, ...],
        class_names: tuple[str, ...],
        kind: ScoreKind,
        model: str = "",
    ) -> Scores:
        if len(set(class_names)) != len(class_names):
            class_names = columns
        return Scores(columns, class_names, self.options.kind or kind, len(columns), model)

    def _block(self, column: Column) -> Scores:
        logits = names.plain(column.name) in names.LOGITS or "logit" in column.name.lower()
        kind: ScoreKind = "logits" if logits else "probabilities"
        width = column.width or 1
        return Scores((column.name,), column.fields, self.options.kind or kind, width)

    def _models(self, taken: set[str]) -> tuple[Scores, ...]:
        """``<model>:<class>`` columns, where at least two models name the same classes."""
        found: dict[str, dict[str, str]] = {}
        for column in self.table.columns:
            model, colon, name = column.name.partition(":")
            if (
                colon
                and model.strip()
                and name.strip()
                and column.numeric
                and column.name not in taken
            ):
                found.setdefault(model.strip(), {})[name.strip()] = column.name
        sets = {frozenset(classes) for classes in found.values()}
        if len(sets) != 1 or len(found) * len(next(iter(sets))) < 2:
            return ()
        order = next(iter(found.values()))
        if len(found) < 2 and len(order) < 2:
            return ()
        return tuple(
            self._scores(
                tuple(classes[name] for name in order),
                _class_names(tuple(order)),
                "logits" if "logit" in model.lower() else "probabilities",
                model,
            )
            for model, classes in found.items()
        )

    def _named_block(self, taken: set[str]) -> tuple[Scores, ...]:
        """Arrays and list columns by their key, or columns that share a known prefix."""
        arrays = [c for c in self.table.columns if c.width is not None and c.name not in taken]
        for known in (names.PROBABILITIES, names.LOGITS):
            for column in arrays:
                if names.plain(column.name) in known and column.numeric:
                    self._mention_other_scores(column, arrays)
                    return (self._block(column),)
        for column in self.table.columns:
            scores = names.plain(column.name) in (*names.PROBABILITIES, *names.LOGITS)
            if column.type == "other" and scores and column.name not in taken:
                raise InputError(f"cannot hold the scores: {column.note}", column=column.name)
        numeric = [
            c for c in self.table.columns if c.numeric and c.width is None and c.name not in taken
        ]
        best: dict[str, Scores] = {}
        for pattern, kind in names.PREFIXES:
            columns, found = [], []
            for column in numeric:
                match = pattern.fullmatch(column.name)
                # prob1_outcome is what happened, not what was said.
                if match and not _is_outcome(column):
                    columns.append(column.name)
                    found.append(match["name"].strip())
            if len(columns) >= 2 and (kind not in best or len(columns) > best[kind].width):
                declared: ScoreKind = "logits" if kind == "logits" else "probabilities"
                best[kind] = self._scores(tuple(columns), tuple(found), declared)
        return next(((best[kind],) for kind in ("probabilities", "logits", "") if kind in best), ())

    def _mention_other_scores(self, used: Column, arrays: list[Column]) -> None:
        known = {*names.PROBABILITIES, *names.LOGITS}
        others = [c.name for c in arrays if c is not used and names.plain(c.name) in known]
        if others:
            self._note(
                "DATA003", "info", f"'{used.name}' holds the scores; not used: {', '.join(others)}"
            )

    def _one_column(self, taken: set[str]) -> tuple[Scores, ...]:
        """One score column: P(class 1)."""
        candidates = [
            c for c in self.table.columns if c.numeric and c.width is None and c.name not in taken
        ]
        label = self._named(names.LABELS, taken)
        for known, kind in ((names.PROBABILITIES, "probabilities"), (names.LOGITS, "logits")):
            for column in candidates:
                key = names.plain(column.name)
                weak = key in names.PREDICTED or not key.startswith(_STRONG)
                if key in known and column.name != label and not (weak and _is_label_like(column)):
                    declared: ScoreKind = "logits" if kind == "logits" else "probabilities"
                    return (self._scores((column.name,), (), declared),)
        text = self._text_scores()
        if text:
            return ()
        for pattern, kind in names.PREFIXES:
            for column in candidates:
                match = pattern.fullmatch(column.name)
                if match and column.type == "number" and _in_unit(column.head):
                    declared = "logits" if kind == "logits" else "probabilities"
                    return (
                        Scores((column.name,), (match["name"],), self.options.kind or declared, 1),
                    )
        return ()

    def _fitting_block(self, taken: set[str]) -> tuple[Scores, ...]:
        """Columns that are called like the classes, or numbers whose rows sum to 1."""
        label = self._named(names.LABELS, taken)
        numeric = [
            c
            for c in self.table.columns
            if c.numeric and c.width is None and c.name not in taken and c.name != label
        ]
        arrays = [
            c
            for c in self.table.columns
            if c.numeric and c.width is not None and c.name not in taken and c.name != label
        ]
        if len(arrays) == 1:
            return (self._block(arrays[0]),)
        if label is not None and self.table[label].type == "text":
            values = {str(v) for v in self.table[label].head.tolist()} - {""}
            called = [c.name for c in numeric if c.name in values]
            if len(called) >= 2:
                # Classes without a row in the sample are the columns that make the sums 1.
                whole = self._summing(numeric)
                if whole is not None and set(called) <= set(whole):
                    return (self._scores(whole, whole, "probabilities"),)
                return (self._scores(tuple(called), tuple(called), "probabilities"),)
        whole = self._summing(numeric)
        if whole is not None:
            named = self.table.named
            return (
                self._scores(
                    whole, _class_names(whole) if named else _indices(whole), "probabilities"
                ),
            )
        # The confidence of an unknown prediction is not P(class 1).
        numeric = [c for c in numeric if names.plain(c.name) not in names.CONFIDENCES]
        if self._text_scores():
            return ()
        scores = [c for c in numeric if c.type == "number" and _in_unit(c.head)]
        rest = [c for c in self.table.columns if c not in scores and c.name not in taken]
        if len(scores) == 1 and (label is not None or any(_is_label_like(c) for c in rest)):
            return (self._scores((scores[0].name,), (), "probabilities"),)
        if len(scores) == 0:
            # Scores that are all 0 or 1 in the sample look like labels: only a name tells them.
            two = [c for c in numeric if _in_unit(c.head)]
            if label is not None and len(two) == 1:
                return (self._scores((two[0].name,), (), "probabilities"),)
        return ()

    def _summing(self, numeric: list[Column]) -> tuple[str, ...] | None:
        """The numeric columns whose rows sum to 1: all of them, all but one, or a run."""
        unit = [c for c in numeric if _in_unit(c.head) and c.head.size]
        if len(unit) < 2:
            return None
        heads = np.stack([c.head.astype(np.float64) for c in unit], axis=1)
        if self._sums_to_one(heads):
            return tuple(c.name for c in unit)
        total = heads.sum(axis=1)
        for j in range(len(unit)):
            if len(unit) > 2 and _is_one(total - heads[:, j]):
                return tuple(c.name for i, c in enumerate(unit) if i != j)
        sums = np.concatenate([np.zeros((heads.shape[0], 1)), np.cumsum(heads, axis=1)], axis=1)
        runs = [
            (stop - start, start, stop)
            for start in range(min(len(unit), 64))
            for stop in range(start + 2, len(unit) + 1)
            if (stop == len(unit) or stop - start <= 64) and _is_one(sums[:, stop] - sums[:, start])
        ]
        if not runs:
            return None
        _, start, stop = max(runs)
        return tuple(c.name for c in unit[start:stop])

    def _sums_to_one(self, heads: npt.NDArray[np.float64]) -> bool:
        return _is_one(heads.sum(axis=1)) and not np.isin(heads, (0.0, 1.0)).all()

    def _confidence(self, taken: set[str]) -> Confidence | None:
        score = self._named(names.CONFIDENCES, taken)
        correct = self._named(names.CORRECTS, taken)
        predicted = self._named(names.PREDICTED, taken)
        if score is None and (correct is not None):
            score = self._named(names.PROBABILITIES, {*taken, predicted or "", correct})
        if score is None or not self.table[score].numeric or self.table[score].width is not None:
            return None
        if correct is not None and correct != score:
            return Confidence(score, correct=correct, predicted=predicted)
        label = self.options.label or self._named(names.LABELS, taken)
        if predicted is not None and label is not None and predicted != score:
            return Confidence(score, predicted=predicted)
        return None

    # The label

    def _one_hot(
        self, scores: tuple[Scores, ...], used: set[str]
    ) -> tuple[tuple[Scores, ...], tuple[str, ...]]:
        """0/1 columns that belong to the score columns, one each."""
        first = scores[0]
        if self.options.label is not None or len(first.columns) != first.width:
            return scores, ()
        class_names = first.class_names or first.columns
        found = []
        for column, name in zip(first.columns, class_names, strict=True):
            options = (self.plain.get(names.plain(n)) for n in names.one_hot_names(column, name))
            match = next((c for c in options if c is not None and c not in used), None)
            if match is None or not _is_zero_one(self.table[match]):
                return scores, ()
            found.append(match)
        if len(found) == 1:
            return scores, (found[0],)
        if len(found) == 2 and all(c.endswith("_outcome") for c in found):
            # Two complementary forecasts of one event: the first is the event that is meant.
            self._note(
                "DATA004",
                "info",
                f"'{first.columns[0]}' is taken as P(class 1), with its outcome '{found[0]}'; "
                f"'{first.columns[1]}' is its complement",
            )
            one = Scores((first.columns[0],), (), first.kind, 1, first.model)
            return (one, *scores[1:]), (found[0],)
        return scores, tuple(found)

    def _label(self, scores: tuple[Scores, ...], used: set[str]) -> str:
        named = self._named(names.LABELS, used) if self.table.named else None
        if named is not None and self.table[named].type == "other":
            raise InputError(f"cannot be the label: {self.table[named].note}", column=named)
        if named is not None:
            return named
        free = [
            c
            for c in self.table.columns
            if c.name not in used
            and c.type != "other"
            and (c.width is None or c.width == scores[0].width)
            and names.plain(c.name) not in (*names.PREDICTED, *names.CONFIDENCES, *names.CORRECTS)
        ]
        classes = set(scores[0].class_names)
        fitting = [c for c in free if c.type == "text" and _levels(c) and _levels(c) <= classes]
        whole = [c for c in free if _is_label_like(c)]
        for candidates in (fitting, whole if len(whole) == 1 or not self.table.named else [], free):
            if len(candidates) == 1 or (candidates and not self.table.named):
                chosen = candidates[-1] if not self.table.named else candidates[0]
                where = self._where(chosen.name)
                self._note("DATA005", "info", f"{where} taken as the label")
                return chosen.name
        plural = "s" if scores[0].width != 1 else ""
        word = "probability" if scores[0].kind == "probabilities" else "logit"
        what = f"{scores[0].width:,} {word} column{plural} found"
        if not free:
            raise InputError(
                f"there is no label column: {what}, but nothing to compare them with",
                remedy="add a column 'label' with the true class",
            )
        raise InputError(
            f"there is no column called 'label' ({what}), and several could be it: "
            f"{', '.join(short(c.name) for c in free[:10])}",
            remedy="say which one is the label",
        )

    def _where(self, name: str) -> str:
        if self.table.named:
            return f"the column '{short(name)}' is"
        place = self.table.names.index(name)
        if place == 0:
            return "the first column is"
        return "the last column is" if place == len(self.table.names) - 1 else f"{name} is"

    def _groups(self, used: set[str]) -> tuple[str, ...]:
        if not self.table.named:
            return ()
        ignored = {*names.PREDICTED, *names.CONFIDENCES, *names.CORRECTS}
        return tuple(
            c.name
            for c in self.table.columns
            if c.name not in used
            and c.width is None
            and c.type != "other"
            and _by_prefix(c.name)[1] not in ("probabilities", "logits")
            and not c.name.endswith("_outcome")
            and names.plain(c.name) not in ignored
            and names.plain(c.name) not in (*names.PROBABILITIES, *names.LOGITS)
            and (c.type != "number" or len(set(c.head.tolist())) <= 20)
        )

    def _text_scores(self) -> list[str]:
        """Columns that are called like scores and hold text."""
        return [
            c.name
            for c in self.table.columns
            if c.type == "text" and _by_prefix(c.name)[1] in ("probabilities", "logits")
        ]

    def _no_scores(self, taken: set[str]) -> InputError:
        word = "array" if self.table.arrays else "column"
        text = self._text_scores()
        if text:
            return InputError(
                f"the {word} '{short(text[0])}' holds text, not numbers",
                remedy="check the decimal sign and the separator",
            )
        confidence = self._named(names.CONFIDENCES, taken)
        if confidence is not None:
            return InputError(
                "there is a confidence, but nothing says whether the prediction was right",
                column=confidence,
                remedy="add a column 'correct', or the columns 'true_label' and 'pred_label'",
            )
        known = ", ".join(short(c) for c in self.table.names[:10])
        return InputError(
            f"there are no probability {word}s (there {'is' if len(self.table.names) == 1 else 'are'}: {known})",
            remedy=(
                "name the array 'probs' or 'logits', or say which one holds the scores"
                if self.table.arrays
                else "name them p_<class>, or say which columns hold the scores"
            ),
        )

    def _note(self, code: str, severity: Literal["info", "warning"], message: str) -> None:
        self.notices.append(Finding(code, severity, message))


def _by_prefix(name: str) -> tuple[str, str]:
    for pattern, kind in names.PREFIXES:
        if match := pattern.fullmatch(name):
            return match["name"].strip(), kind
    return "", ""


def _class_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    stripped = tuple(_by_prefix(c)[0] for c in columns)
    return stripped if all(stripped) and len(set(stripped)) == len(stripped) else columns


def _indices(columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(j) for j in range(len(columns)))


def _levels(column: Column) -> set[str]:
    return {str(v) for v in column.head.tolist()} - {""}


def _in_unit(head: npt.NDArray[Any]) -> bool:
    known = head[~np.isnan(head)] if head.dtype.kind == "f" else head
    return bool(known.size) and bool(known.min() >= -1e-6) and bool(known.max() <= 1 + 1e-6)


def _is_one(sums: npt.NDArray[np.float64]) -> bool:
    known = sums[~np.isnan(sums)]
    return bool(known.size) and bool((np.abs(known - 1) <= _SUM_SLACK).mean() > 0.9)


def _is_outcome(column: Column) -> bool:
    return any(column.name.endswith(end) for end in ("_outcome", "_label", "_true", "_actual"))


def _is_zero_one(column: Column) -> bool:
    if column.type == "boolean":
        return True
    return column.numeric and bool(np.isin(column.head, (0, 1)).all())


def _is_label_like(column: Column) -> bool:
    """Whole numbers or text, one per row."""
    if column.width is not None:
        return False
    if column.type in ("integer", "boolean", "text"):
        return True
    known = column.head[~np.isnan(column.head)] if column.type == "number" else column.head
    return column.type == "number" and known.size > 0 and bool((known == np.floor(known)).all())
