"""Predictions from arrays, estimators and data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calviz.core import errors
from calviz.core.blocks import BoolArray, FloatArray, IntArray, element_type
from calviz.core.errors import InputError, OptionError, check_choice, lines_of, shortened
from calviz.core.predictions import Dataset, Predictions
from calviz.data import column_names
from calviz.data.format import check_distinct, options_of
from calviz.data.reading import of_table, one_model
from calviz.data.rows_in_memory import arrow_rows, flattened, reshaped

# ---- Arrays


_NO_LABEL = "the labels hold lists or other values that cannot be labels"


def from_arrays(
    y_true: Any,
    y_prob: Any,
    *,
    class_names: Sequence[Any] | None = None,
    pos_label: Any = None,
    kind: str = "probabilities",
    groups: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    **rows: Any,
) -> Predictions:
    """Make predictions from labels and an array; see `Predictions.from_arrays`."""
    check_choice("kind", kind, ("probabilities", "logits"))
    _check_order(getattr(y_true, "index", None), getattr(y_prob, "index", None))
    scores = _scores(y_prob)
    if class_names is not None:
        if isinstance(class_names, str):
            raise OptionError("class_names is one text, expected a list of names.")
        names: tuple[Any, ...] | None = tuple(class_names)
    else:
        names = _column_names(y_prob, scores)
        if names is not None and pos_label is None:
            differing = column_names.without_common_words([str(name) for name in names])
            if column_names.is_event_first(differing):
                scores, names = scores[:, ::-1], names[::-1]
    k = max(2, scores.shape[1]) if scores.ndim == 2 else 2
    labels = _Labels.of(y_true)
    if len(labels) != scores.shape[0]:
        raise InputError(
            f"there are {scores.shape[0]:,} rows of {kind} but {len(labels):,} labels",
            remedy="give both for the same rows",
        )
    one_column = scores.ndim == 1 or scores.shape[1] == 1
    if one_column:
        scores = scores.reshape(-1)
    indices, shown = _classes(labels, k, names, pos_label, one=one_column)
    if pos_label is not None and not one_column and shown[0] == str(pos_label):
        # By convention, class 1 is the positive class.
        scores, indices, shown = scores[:, ::-1], 1 - indices, shown[::-1]
    if kind == "probabilities":
        _check_range(scores)
    values: dict[str, Any] = {"probs": scores}
    if kind == "logits":
        logits = np.stack([np.zeros_like(scores), scores], axis=1) if one_column else scores
        values = {"logits": logits}
    return Predictions(
        **values,
        labels=indices,
        class_names=shown,
        groups={} if groups is None else groups,
        weights=sample_weight,
        **{"name": "predictions", **rows},
    )


def from_multilabel(
    y_true: Any, y_prob: Any, *, label_names: Sequence[str] | None = None, **rows: Any
) -> dict[str, Predictions]:
    """Make predictions of two classes for each label; see `Predictions.from_multilabel`."""
    columns = getattr(y_true, "columns", None)
    columns = getattr(y_prob, "columns", None) if columns is None else columns
    labels = np.asarray(y_true)
    if isinstance(y_prob, list) and y_prob and np.shape(y_prob[0])[1:] == (2,):
        y_prob = np.stack([np.asarray(scores)[:, 1] for scores in y_prob], axis=1)
    scores = _scores(y_prob)
    if labels.ndim != 2 or labels.shape != scores.shape:
        raise InputError(
            f"the labels have shape {labels.shape} and the probabilities {scores.shape}, expected the same (rows, labels)"
        )
    names = [str(n) for n in (range(scores.shape[1]) if columns is None else columns)]
    names = [str(n) for n in label_names] if label_names is not None else names
    if len({*names}) != scores.shape[1]:
        raise InputError(
            f"there are {len({*names}):,} different names for {scores.shape[1]:,} labels",
            remedy="give one name per label",
        )
    if not np.isin(labels, (0, 1)).all():
        row = int((~np.isin(labels, (0, 1))).any(axis=1).argmax())
        raise InputError("a label is neither 0 nor 1", row=row + 1, remedy="give 0 and 1")
    return {
        name: from_arrays(labels[:, j].astype(np.int32), scores[:, j], name=name, **rows)
        for j, name in enumerate(names)
    }


def _check_order(a: Any, b: Any) -> None:
    """Raise InputError if two pandas indices name the same rows in another order: either the names or the order may be meant."""
    named = all(hasattr(index, "isin") and index.is_unique for index in (a, b))
    if named and len(a) == len(b) and not a.equals(b) and b.isin(a).all():
        raise InputError(
            "labels and probabilities have the same index in another order",
            remedy="give y_prob.loc[y_true.index], or both as arrays (to_numpy()) if only their order counts",
        )


def _scores(y_prob: Any) -> FloatArray:
    if y_prob is None:
        remedy = "give what predict_proba returns beside the labels"
        raise InputError("no probabilities were given", remedy=remedy)
    y_prob = y_prob.toarray() if hasattr(y_prob, "toarray") else y_prob  # a sparse one
    try:
        scores = np.asarray(y_prob.filled(np.nan) if np.ma.is_masked(y_prob) else y_prob)
    except (ValueError, TypeError):
        raise InputError(
            "the probabilities are rows of different lengths, expected one number per class in every row"
        ) from None
    if scores.dtype.kind == "O":
        try:
            scores = scores.astype(np.float64)
        except (ValueError, TypeError):
            raise InputError(
                f"the probabilities ({type(y_prob).__name__}) hold values other than numbers",
                remedy="give what predict_proba returns, of shape (rows, classes)",
            ) from None
    if scores.dtype.kind not in "fiub" or scores.ndim not in (1, 2):
        raise InputError(
            f"the probabilities are {element_type(scores)} of shape {scores.shape}, expected numbers of shape (rows, classes) or (rows,)"
        )
    if scores.shape[0] == 0:
        raise InputError("there are no rows", remedy="give at least one")
    return scores if scores.dtype in (np.float32, np.float64) else scores.astype(np.float64)


def _check_range(scores: FloatArray) -> None:
    """Raise InputError, with a guess about their scale, if the numbers lie outside [0, 1]."""
    low, high = float(scores.min()), float(scores.max())
    if (low >= -1e-6 and high <= 1 + 1e-6) or not (np.isfinite(low) and np.isfinite(high)):
        return  # missing and infinite values are reported later
    row = int(
        np.argmax(((scores < -1e-6) | (scores > 1 + 1e-6)).reshape(len(scores), -1).any(axis=1))
    )
    raise InputError(
        f"the probabilities lie in [{low:.4g}, {high:.4g}], outside [0, 1] (first: row {row + 1:,})",
        remedy="values look like percentages: divide them by 100"
        if low >= 0 and 1.5 < high <= 100
        else 'say kind="logits" if they are logits',
    )


def _column_names(y_prob: Any, scores: FloatArray) -> tuple[Any, ...] | None:
    """Class names from the columns of a frame; None for arrays, and if the columns are only numbered."""
    columns = getattr(y_prob, "columns", None)
    if columns is None or scores.ndim != 2 or scores.shape[1] < 2:
        return None
    columns = tuple(columns)
    if columns == tuple(range(len(columns))):
        return None
    stripped = tuple(column_names.by_prefix(c)[0] if isinstance(c, str) else c for c in columns)
    return stripped if "" not in stripped and len(set(stripped)) == len(stripped) else columns


@dataclass(frozen=True, eq=False)
class _Labels:
    """A column of labels: `values` are the distinct labels as Python objects, `codes` their indices, shape (n,)."""

    codes: IntArray
    values: tuple[Any, ...]
    #: All classes declared by the column (pandas categories), if any.
    known: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    @classmethod
    def of(cls, y_true: Any) -> _Labels:
        categories = getattr(getattr(y_true, "dtype", None), "categories", None)
        known = () if categories is None else tuple(_plain(c) for c in categories)
        try:
            column = np.asarray(y_true)
        except ValueError:
            raise InputError(_NO_LABEL, remedy="give one class per row") from None
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        if column.ndim != 1:
            raise InputError(
                f"the labels have shape {column.shape}, expected one per row",
                remedy="for one-hot labels, take argmax(axis=1)" if column.ndim == 2 else None,
            )
        if column.dtype.kind in "fc":
            missing: BoolArray = np.isnan(column)
        elif column.dtype == object:
            missing = np.array(
                [v is None or v != v or type(v).__name__ == "NAType" for v in column]
            )
        else:
            missing = np.zeros(column.shape, dtype=bool)
        if missing.any():
            count = int(missing.sum())
            raise InputError(
                f"{count:,} of {column.size:,} labels {'is' if count == 1 else 'are'} missing",
                row=int(missing.argmax()) + 1,
                remedy="leave these rows out of labels and probabilities",
            )
        if column.dtype == object:
            codes_of: dict[Any, int] = {}
            try:
                codes = np.array(
                    [codes_of.setdefault(_plain(v), len(codes_of)) for v in column], dtype=np.int32
                )
            except TypeError:
                raise InputError(_NO_LABEL, remedy="give one class per row") from None
            return cls(codes, tuple(codes_of), known)
        distinct, inverse = np.unique(column, return_inverse=True)
        return cls(inverse.astype(np.int32), tuple(_plain(v) for v in distinct), known)

    def first_row(self, value: int) -> int:
        return int(np.argmax(self.codes == value))


def _plain(value: Any) -> Any:
    """Return a label as a Python object; 2.0 becomes 2, because whole numbers with gaps are often stored as floats."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _classes(
    labels: _Labels, k: int, names: tuple[Any, ...] | None, pos_label: Any, *, one: bool
) -> tuple[IntArray, tuple[str, ...]]:
    """Return class indices, shape (n,), and the names of the classes."""
    if names is not None:
        names = tuple(_plain(n) for n in names)
        if len(names) != k:
            raise InputError(
                f"there are {len(names):,} class names for {k:,} classes",
                remedy="give one name per class, in the order of the columns",
            )
    elif not one and labels.known and len(labels.known) == k:
        names = _in_order(labels.known)
    if pos_label is not None:
        names = _with_positive(labels, k, names, _plain(pos_label), one=one)
    elif names is None:
        names = _two(labels) if one else _sorted(labels, k)
    return labels_to_indices(labels, names), tuple(str(n) for n in names)


def _with_positive(
    labels: _Labels, k: int, names: tuple[Any, ...] | None, positive: Any, *, one: bool
) -> tuple[Any, ...]:
    if k != 2:
        raise OptionError(f"pos_label is for two classes, there are {k:,}.")
    known = names or (labels.known if len(labels.known) == 2 else ()) or labels.values
    if positive not in known and not (len(known) == 1 and one):
        raise OptionError(f"pos_label={positive!r} is none of the labels ({_some(known)}).")
    others = [v for v in known if v != positive]
    if len(others) > 1:
        raise InputError(
            f"there are {len(known):,} different labels ({_some(known)}) for two classes",
            remedy="give predictions of all classes, or labels of two",
        )
    other = others[0] if others else (0 if positive == 1 else f"not {positive}")
    if one:
        return (other, positive)
    return names or _in_order((other, positive))


def _two(labels: _Labels) -> tuple[Any, ...]:
    """Return the two classes of a single score column: the positive class is 1, True, or the second of a known pair."""
    values = set(labels.values)
    are_bools = all(isinstance(v, bool) for v in values)
    for pair in ((False, True),) if are_bools else ((0, 1), (-1, 1)):
        if values <= set(pair):
            return pair
    if len(values) > 2:
        raise InputError(
            f"there are {len(values):,} different labels ({_some(labels.values)}), but one column of scores, which is for two classes",
            remedy="give the labels before the probabilities: (y_true, y_prob)"
            if all(isinstance(v, float) and 0 <= v <= 1 for v in values)
            else "give one column per class",
        )
    text = {column_names.class_key(str(v)): v for v in labels.values}
    happened, other = column_names.event_of(text), column_names.no_event_of(text)
    if happened is not None and other is not None:
        return text.get(other, other), text.get(happened, happened)
    # Sorted, as the advice must not depend on the order of the rows.
    known = _in_order(labels.values)
    raise InputError(
        f"the labels are {_some(known)}, but nothing says which of them the probability refers to",
        remedy=f"say so by pos_label, such as pos_label={known[-1]!r}",
    )


def _sorted(labels: _Labels, k: int) -> tuple[Any, ...]:
    """Return the classes of K columns: column numbers if the labels are column numbers, else all labels in sorted order."""
    whole = all(isinstance(v, int) for v in labels.values)
    if whole and min(labels.values) >= 0 and max(labels.values) < k:
        if all(isinstance(v, bool) for v in labels.values):
            return (False, True)
        return tuple(range(k))
    if len(labels.values) == k:
        return _in_order(labels.values)
    count = len(labels.values)
    raise InputError(
        f"there {'are' if count > 1 else 'is'} {count:,} different label{'s' if count > 1 else ''} ({_some(labels.values)}) but {k:,} columns of scores, so nothing says which column "
        "each of them is",
        remedy="give class_names, the classes in the order of the columns",
    )


def _in_order(values: Sequence[Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(values))
    except TypeError:
        return tuple(sorted(values, key=str))


def labels_to_indices(labels: _Labels, names: tuple[Any, ...]) -> IntArray:
    """Return the class index of each label, shape (n,); raise InputError for a label that is none of the classes."""
    place: dict[Any, int] = {name: j for j, name in enumerate(names)}
    place_of_text = {str(name): j for j, name in enumerate(names)}
    codes = np.empty(len(labels.values), dtype=np.int32)
    unknown = []
    for j, value in enumerate(labels.values):
        index = place.get(value, place_of_text.get(str(value)))
        if index is None:
            unknown.append(j)
        codes[j] = -1 if index is None else index
    if unknown:
        are_indices = all(isinstance(v, int) and 0 <= v < len(names) for v in labels.values)
        if are_indices and not any(isinstance(name, int) for name in names):
            return np.asarray(labels.values, dtype=np.int32)[labels.codes]
        rows = int(np.isin(labels.codes, unknown).sum())
        first = min((labels.first_row(j), j) for j in unknown)
        raise InputError(
            f"label {labels.values[first[1]]!r:.60} is none of the classes of the scores ({_some(names)}); "
            f"{rows:,} of {len(labels):,} rows have such labels",
            row=first[0] + 1,
            remedy="correct the labels, or give scores of all classes",
        )
    return codes[labels.codes]


def _some(values: Sequence[Any]) -> str:
    return ", ".join(shortened(repr(v)) for v in values[:5]) + (", …" if len(values) > 5 else "")


# ---- Estimators


def from_estimator(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    response_method: str = "predict_proba",
    pos_label: Any = None,
    name: str | None = None,
    **columns: Any,
) -> Predictions:
    """Make predictions from the scores of an estimator; see `Predictions.from_estimator`."""
    check_choice("response_method", response_method, ("predict_proba", "decision_function"))
    scores = responses(estimator, X, response_method)
    classes = getattr(estimator, "classes_", None)
    class_names = None if isinstance(classes, list | None) else np.asarray(classes).tolist()
    if scores.ndim == 1 and response_method == "decision_function":
        # The score of the second class, as scikit-learn defines it.
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    return from_arrays(
        y,
        scores,
        class_names=class_names,
        pos_label=pos_label,
        kind="logits" if response_method == "decision_function" else "probabilities",
        name=name or name_of(estimator),
        **columns,
    )


def name_of(estimator: Any) -> str:
    """Name of an estimator: its class, or for a pipeline that of the last step."""
    steps = getattr(estimator, "steps", None)
    last = steps[-1][1] if isinstance(steps, list) and steps else estimator
    if type(last).__name__ == "FrozenEstimator":
        return name_of(last.estimator)
    return shortened(type(last).__name__)


def responses(estimator: Any, X: Any, method: str = "predict_proba") -> FloatArray:
    """Scores of an estimator for X, shape (n, K) or (n,); raise InputError if it does not have the method or fails."""
    what = shortened(type(estimator).__name__)
    if isinstance(estimator, type):
        raise InputError(f"got the class {estimator.__name__}, expected a fitted estimator")
    function = getattr(estimator, method, None)
    if not callable(function):
        other = callable(getattr(estimator, "decision_function", None))
        raise InputError(
            f"{what} has no {method}",
            remedy=(
                'its decision_function can be read as logits, by response_method="decision_function"'
                if other and method == "predict_proba"
                else "give a classifier that has it, or its scores by calviz.Predictions.from_arrays"
            ),
        )
    try:
        scores = function(X)
    except errors.CalvizError:
        raise
    except Exception as error:
        # Third-party estimators may raise anything: not fitted, wrong columns, text instead of numbers.
        raise InputError(f"{what}.{method} failed: {_in_one_line(error)}") from error
    if isinstance(scores, list) and scores and np.ndim(scores[0]) == 2:
        raise InputError(
            f"{what} has {len(scores):,} outputs",
            remedy="give the scores of one by calviz.Predictions.from_arrays",
        )
    return np.asarray(scores)


def _in_one_line(error: Exception) -> str:
    lines = lines_of(error)
    # Between the first and the last line, messages of scikit-learn may print an array.
    ends = lines[:1] + lines[-1:] if len(lines) > 1 else lines
    return " ".join(line.strip()[:300] for line in ends)


# ---- Data frames


def from_frame(
    frame: Any, *, model: str | None = None, name: str = "frame", **options: Any
) -> Dataset:
    """Recognise the columns of a frame; see `Predictions.from_frame`."""
    reading = options_of(options)
    with np.errstate(all="ignore"):
        try:
            data = flattened(_arrow(frame))
            if not data.num_rows:
                raise InputError("the frame has no rows", remedy="give at least one")
            tool = f"{type(frame).__module__.partition('.')[0]} frame"
            table = arrow_rows(data, "the frame has", format=tool, holder="frame")
            return one_model(of_table(reshaped(table), reading, name=name), model)
        except InputError as error:
            raise error.in_code() from None


def _arrow(frame: Any) -> Any:
    """Convert the frame to a pyarrow table; lazy frames are collected."""
    import narwhals as nw

    if type(frame).__module__.startswith("pandas") and hasattr(frame, "set_axis"):
        # Column names of pandas may be numbers; here they are text, as in a file.
        names = [str(c) for c in frame.columns]
        check_distinct(names)
        frame = frame.set_axis(names, axis=1)
    try:
        wrapped = nw.from_native(frame)
    except TypeError:
        raise InputError(
            f"got {type(frame).__name__}, expected a data frame with rows and columns",
            remedy="arrays are taken by calviz.Predictions.from_arrays(y_true, y_prob)",
        ) from None
    try:
        return (
            wrapped.collect("pyarrow") if isinstance(wrapped, nw.LazyFrame) else wrapped
        ).to_arrow()
    except Exception as error:
        # The library of the frame may raise anything, for example for mixed types in one column.
        raise InputError(f"the frame cannot be read ({shortened(lines_of(error)[0])})") from error
