"""Find the score columns by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calviz.core.errors import InputError, OptionError
from calviz.data.loaded import ReadingForMap, known_columns, span
from calviz.data.notices import Notice
from calviz.data.recognition import column_names, first_rows
from calviz.data.recognition.layout import Confidence, ScoreColumns, ScoreKind
from calviz.data.recognition.table_view import TableView
from calviz.data.table import Column

#: Beginnings of names that mark a score even if the column holds whole numbers (0 and 1, percentages).
_STRONG = ("p", "y_prob", "y_score", "score", "risk", "logit", "log")


def by_name(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    """Return the chosen score columns, else those of several models, else those with known names."""
    if not view.table.named:
        return _chosen(view)
    return _chosen(view) or _models(view, taken) or _named_block(view, taken)


def _chosen(view: TableView) -> tuple[ScoreColumns, ...]:
    if view.options.scores is None:
        return ()
    chosen: list[str] = []
    prefix = ""
    for entry in view.options.scores:
        if entry.endswith("*"):
            prefix = entry[:-1]
            fitting = [
                c.name
                for c in view.table.columns
                if c.name.startswith(prefix) and (c.numeric or c.width is not None)
            ]
            if not fitting:
                raise OptionError(
                    f"no column of numbers begins with '{prefix}'; {known_columns(view.table.names)}."
                )
            chosen.extend(c for c in fitting if c not in chosen and c != view.options.label)
        else:
            chosen.append(entry)
    for name in chosen:
        column = view.table[name]
        if not column.numeric:
            raise InputError(
                f"cannot hold scores: {column.note or f'it holds {column.type}'}", column=name
            )
    if len(chosen) == 1 and view.table[chosen[0]].width is not None:
        return (block(view, view.table[chosen[0]]),)
    parsed = [column_names.by_prefix(name) for name in chosen]
    kinds = {k for _, k in parsed if k}
    stripped = tuple(
        (name.removeprefix(prefix) or name) if prefix else (class_name or name)
        for name, (class_name, _) in zip(chosen, parsed, strict=True)
    )
    kind: ScoreKind = "logits" if kinds == {"logits"} else "probabilities"
    return (columns_as_scores(view, tuple(chosen), stripped, kind),)


def _models(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    """``<model>:<class>`` columns, if all models have the same classes."""
    models: dict[str, dict[str, str]] = {}
    for column in view.table.columns:
        model, colon, name = column.name.partition(":")
        if colon and model.strip() and name.strip() and column.numeric and column.name not in taken:
            models.setdefault(model.strip(), {})[name.strip()] = column.name
    class_sets = {frozenset(classes) for classes in models.values()}
    if len(class_sets) != 1 or len(models) * len(next(iter(class_sets))) < 2:
        return ()
    classes_in_order = next(iter(models.values()))
    if len(models) < 2 and len(classes_in_order) < 2:
        return ()
    return tuple(
        columns_as_scores(
            view,
            tuple(classes[name] for name in classes_in_order),
            class_names(tuple(classes_in_order)),
            "logits" if "logit" in model.lower() else "probabilities",
            model,
        )
        for model, classes in models.items()
    )


def _named_block(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    """Arrays and list columns with a known name, or columns that share a known prefix."""
    arrays = _named_arrays(view, taken)
    for column in view.table.columns if not arrays else ():
        scores = column_names.plain(column.name) in (
            *column_names.PROBABILITIES,
            *column_names.LOGITS,
        )
        if column.type == "other" and scores and column.name not in taken:
            raise InputError(f"cannot hold the scores: {column.note}", column=column.name)
    return arrays or _prefixed(view, taken)


def _named_arrays(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    arrays = view.arrays(taken)
    usual = {"probabilities": column_names.PROBABILITIES, "logits": column_names.LOGITS}
    candidates = {
        kind: [c for c in arrays if column_names.plain(c.name) in usual[kind]]
        for kind in _kinds(view)
    }
    used = next((candidates[kind][0] for kind in candidates if candidates[kind]), None)
    if used is None:
        return ()
    scores, logits = block(view, used), candidates["logits"]
    others = [c.name for kind in candidates for c in candidates[kind] if c is not used]
    further = [c for c in logits if c is not used]
    if scores.kind == "probabilities" and len(further) == 1 and further[0].width == scores.width:
        scores = replace(scores, logits=(further[0].name,))
        others.remove(further[0].name)
    _mention_unused(view, scores, others)
    return (scores,)


def _prefixed(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    numeric = view.numeric(taken)
    best: dict[str, ScoreColumns] = {}
    for pattern, kind in column_names.PREFIXES:
        columns, classes = [], []
        for column in numeric:
            match = pattern.fullmatch(column.name)
            if match and not _is_outcome(view, column):
                columns.append(column.name)
                classes.append(match["name"].strip())
        if len(columns) >= 2 and (kind not in best or len(columns) > best[kind].width):
            declared: ScoreKind = "logits" if kind == "logits" else "probabilities"
            best[kind] = columns_as_scores(view, tuple(columns), tuple(classes), declared)
    used_kind = next((kind for kind in (*_kinds(view), "") if kind in best), None)
    if used_kind is None:
        return ()
    scores = best[used_kind]
    other = {"probabilities": "logits", "logits": "probabilities"}.get(used_kind, "")
    if used_kind and other in best:
        place = dict(zip(best[other].class_names, best[other].columns, strict=True))
        if scores.kind == "probabilities" and set(place) == set(scores.class_names):
            scores = replace(scores, logits=tuple(place[name] for name in scores.class_names))
        else:
            _mention_unused(view, scores, best[other].columns)
    return (scores,)


def _is_outcome(view: TableView, column: Column) -> bool:
    """Whether a column is named after another one (prob1 and prob1_outcome), or ends like an outcome and holds whole numbers.

    The probability of a class "true" ends like an outcome too, but holds fractions and is named after no other column.
    """
    name = column_names.plain(column.name)
    stems = [name.removesuffix(end) for end in column_names.OUTCOME_ENDINGS if name.endswith(end)]
    return bool(stems) and (stems[0] in view.plain or first_rows.is_label_like(column))


def _kinds(view: TableView) -> tuple[ScoreKind, ...]:
    """The kinds of scores in order of preference: that of the options first, or else probabilities."""
    if view.options.kind == "logits":
        return ("logits", "probabilities")
    return ("probabilities", "logits")


def _mention_unused(view: TableView, used: ScoreColumns, others: Sequence[str]) -> None:
    if others:
        text = f"'{span(used.columns)}' holds the scores; not used: {span(tuple(others))}"
        view.note(Notice.SCORE_COLUMNS, "info", text)


def one_column(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    """Find a single score column, P(class 1), by its name."""
    if not view.table.named:
        return ()
    candidates = view.numeric(taken)
    label = view.named(column_names.LABELS, taken)
    for names, kind in (
        (column_names.PROBABILITIES, "probabilities"),
        (column_names.LOGITS, "logits"),
    ):
        for column in candidates:
            key = column_names.plain(column.name)
            weak = key in column_names.PREDICTED or not key.startswith(_STRONG)
            if (
                key in names
                and column.name != label
                and not (weak and first_rows.is_label_like(column))
            ):
                declared: ScoreKind = "logits" if kind == "logits" else "probabilities"
                # As for a chosen column, the name of a class says which of two labels is the event.
                class_name = column_names.by_prefix(column.name)[0]
                named = (class_name,) if class_name in column_names.EVENT else ()
                scores = columns_as_scores(view, (column.name,), named, declared)
                logits = [
                    c.name for c in candidates if column_names.plain(c.name) in column_names.LOGITS
                ]
                _mention_unused(view, scores, [name for name in logits if name != column.name])
                return (scores,)
    if view.text_scores():
        return ()
    for pattern, kind in column_names.PREFIXES:
        for column in candidates:
            match = pattern.fullmatch(column.name)
            if match is None or column.type != "number":
                continue
            is_logit = kind == "logits" and "logit" in column.name.lower()
            if not (is_logit or first_rows.in_unit(column.head)):
                continue
            if not _is_outcome(view, column):
                declared = "logits" if kind == "logits" else "probabilities"
                return (
                    ScoreColumns(
                        (column.name,), (match["name"],), view.options.kind or declared, 1
                    ),
                )
    return ()


def confidence(view: TableView, taken: set[str]) -> Confidence | None:
    """Find the confidence of the predicted class, and the column that says whether the prediction was right."""
    score = view.named(column_names.CONFIDENCES, taken)
    correct = view.named(column_names.CORRECTS, taken)
    predicted = view.named(column_names.PREDICTED, taken)
    if score is None and (correct is not None):
        score = view.named(column_names.PROBABILITIES, {*taken, predicted or "", correct})
    log = (
        score is None
        and (
            score := view.named(
                column_names.LOG_CONFIDENCES, {*taken, predicted or "", correct or ""}
            )
        )
        is not None
    )
    if score is None and correct is None:
        return _top_of_pipeline(view, taken)
    if score is None or not view.table[score].numeric or view.table[score].width is not None:
        return None
    if correct is not None and correct != score:
        return Confidence(score, correct=correct, predicted=predicted, log=log)
    label = view.options.label or view.named(column_names.LABELS, taken)
    if predicted is not None and label is not None and predicted != score:
        return Confidence(score, predicted=predicted, log=log)
    return Confidence(score, log=log) if isinstance(view.options, ReadingForMap) else None


def _top_of_pipeline(view: TableView, taken: set[str]) -> Confidence | None:
    """Find ``label`` and ``score`` of a Hugging Face pipeline, the predicted class and its probability, beside the true class."""
    label, score = (view.plain.get(name) for name in ("label", "score"))
    if label is None or score is None or {label, score} & taken or view.options.label == label:
        return None
    truth = view.options.label or view.named(column_names.LABELS, {*taken, label, score})
    if truth is None or not view.table[score].numeric or view.table[score].width is not None:
        return None
    if view.table[label].type != "text" or view.table[truth].type != "text":
        return None
    text = f"'{label}' and '{score}' are read as the predicted class and its confidence, '{truth}' as the true class"
    view.note(Notice.SCORE_COLUMNS, "info", text)
    return Confidence(score, predicted=label)


def columns_as_scores(
    view: TableView,
    columns: tuple[str, ...],
    class_names: tuple[str, ...],
    kind: ScoreKind,
    model: str = "",
) -> ScoreColumns:
    """Make the scores of one model from columns; the kind given in the options takes precedence."""
    if len(set(class_names)) != len(class_names):
        class_names = columns
    return ScoreColumns(columns, class_names, view.options.kind or kind, len(columns), model)


def block(view: TableView, column: Column) -> ScoreColumns:
    """Make scores from a 2-D array or a column of lists."""
    logits = (
        column_names.plain(column.name) in column_names.LOGITS or "logit" in column.name.lower()
    )
    if column_names.plain(column.name) == "predictions" and "label_ids" in view.plain:
        # Result of Trainer.predict of Hugging Face: the raw outputs of the model.
        logits = not first_rows.in_unit(column.head)
    kind: ScoreKind = "logits" if logits else "probabilities"
    width = column.width or 1
    return ScoreColumns((column.name,), column.fields, view.options.kind or kind, width)


def class_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Class names from column names, without known prefixes; the column names themselves if that fails."""
    stripped = tuple(column_names.by_prefix(c)[0] for c in columns)
    return stripped if all(stripped) and len(set(stripped)) == len(stripped) else columns
