"""Which columns may hold the scores: rules that propose them, by the words of the header and by the values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calviz.core.errors import InputError, OptionError, Reading
from calviz.core.predictions import BEFORE
from calviz.data import column_names, roles
from calviz.data.column_names import ClassBlock, class_key, event_of, plain, without_common_words
from calviz.data.format import Column, Notice, ReadingOptions, Table, known_columns, short, span
from calviz.data.loaded import ReadingForMap
from calviz.data.roles import CLEAR, ScoreColumns, ScoreKind, TableView, follows, sum_to_one

#: The end of a name that is a cast, such as ``prob_0::float`` or ``prob_0:FLOAT64``.
_SQL_CAST = re.compile(
    r":?\s*(float\d*|double( precision)?|numeric|decimal|real|text)(\(.*\))?", re.IGNORECASE
)
#: Words for what is computed from the scores of a row.
_OF_A_ROW = frozenset(("max", "min", "mean", "sum", "std", "top", "top1", "margin", "entropy", "pred", "predicted", "true", "target"))  # fmt: skip
#: Names of arrays, and of single columns, of each kind.
_USUAL: dict[ScoreKind, tuple[str, ...]] = {"probabilities": column_names.PROBABILITIES, "logits": column_names.LOGITS}  # fmt: skip
#: Columns that may be the label of models, looked at at most.
_MOST_CANDIDATES = 50
#: Beginnings of names that mark a score even if the column holds whole numbers (0 and 1, percentages).
_STRONG = ("p", "y_prob", "y_score", "score", "risk", "logit", "log")


def find_scores(view: TableView, taken: set[str], label: str | None) -> tuple[ScoreColumns, ...]:
    """Return the score columns that the first rule finds that fits; () if none does, or only for a single score.

    Parameters
    ----------
    view : TableView
    taken : set of str
        Columns that have another role.
    label : str or None
        The column that is taken as the label, if one is named like it.
    """
    rules = [_models_with_colons, _named_arrays, named_by_labels, _with_known_words]
    if BEFORE in view.table:  # lists may be of the scores before the map
        rules[1:3] = named_by_labels, _named_arrays
    return chosen(view, label) or next(
        filter(None, (rule(view, taken, label) for rule in rules)), ()
    )


# ---- What the user chose


def chosen(view: TableView, label: str | None) -> tuple[ScoreColumns, ...]:
    """The columns that the options name: one set of scores, or several models of one column each."""
    if view.options.models is not None:
        if sets := named_sets(view.table, view.options):
            own = isinstance(view.options, ReadingForMap) and len(sets) == 1 and view.options.model
            names = (str(own),) if own else without_common_words([*sets], of_models=True)
            called = dict(zip(names, sets.values(), strict=True))
            return _of_sets(view, called, label)
        columns = _named_by_options(view, view.options.models)
        models = without_common_words(columns, of_models=True)
        if isinstance(view.options, ReadingForMap) and view.options.model and len(columns) == 1:
            models = (view.options.model,)
        return tuple(
            ScoreColumns((name,), (), view.options.kind_of_scores or "probabilities", 1, model)
            for name, model in zip(columns, models, strict=True)
        )
    if view.options.scores is None:
        return ()
    columns = _named_by_options(view, view.options.scores)
    if len(columns) == 1 and view.table[columns[0]].width is not None:
        return (array(view, view.table[columns[0]]),)
    prefix = next((s[:-1] for s in reversed(view.options.scores) if s.endswith("*")), "")
    parsed = [column_names.by_prefix(name) for name in columns]
    kinds = {kind for _, kind in parsed if kind}
    inner = column_names.without_percent
    names = tuple(
        (inner(name.removeprefix(prefix)) or name) if prefix else (class_name or name)
        for name, (class_name, _) in zip(columns, parsed, strict=True)
    )
    if not prefix and not all(class_name for class_name, _ in parsed) and len(columns) > 1:
        names = without_common_words(columns)
    if label is not None and len(columns) > 1:  # p_<model>_<class>, or p_<class>_<model>
        shorter, levels = without_common_words(names), view.table[label].classes
        before, after = ({*map(class_key, some)} for some in (names, shorter))
        names = shorter if levels <= after and not levels & before else names
    return (_columns(view, columns, names, "logits" if kinds == {"logits"} else "probabilities"),)


def _named_by_options(view: TableView, entries: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of names and prefixes (``p_*``); raises if one is not there, or holds no numbers."""
    names: list[str] = []
    for entry in entries:
        columns = [c for c in view.table.columns if c.name.startswith(entry[:-1]) and c.numeric]
        if entry.endswith("*") and not columns:
            raise OptionError(
                f"no column of numbers begins with '{entry[:-1]}'; {known_columns(view.table.names)}."
            )
        prefixed = [c.name for c in columns if c.name != view.options.label]
        names += prefixed if entry.endswith("*") else [entry]
    for column in (view.table[name] for name in names):
        if not column.numeric:
            what = column.note or f"it holds {column.type}"
            raise InputError(f"cannot hold scores: {what}", column=column.name)
    return tuple(dict.fromkeys(names))


def named_sets(table: Table, options: ReadingOptions) -> dict[str, dict[str, Column]]:
    """The columns of the models that the options name, by classes: each name stands beside the same classes, whose scores sum to 1; {} if names are those of columns."""
    found: dict[str, dict[str, Column]] = {}
    for entry in options.models or ():
        part = re.escape(entry.strip(SIGNS))
        beside = re.compile(rf"[\W_]*(?:^{part}|(?<![^\W_]){part}(?![^\W_])|{part}$)[\W_]*")
        single = [c for c in table.columns if c.numeric and c.width is None]
        own = [c for c in single if beside.search(c.name)] if part and entry not in table else []
        found[entry] = {beside.sub(" ", c.name, 1).strip(): c for c in own}
    shared = [n for n in next(iter(found.values()), ()) if all(n in own for own in found.values())]
    sets = {entry: {name: own[name] for name in shared} for entry, own in found.items()}
    of_logits = options.kind == "logits"
    fit = (
        len(own) > 1 and (of_logits or _of_all_classes([*own.values()])) for own in sets.values()
    )
    return sets if all(fit) else {}


def of_unused_models(view: TableView, found: roles.ColumnRoles, used: set[str]) -> set[str]:
    """The columns of other models than the chosen ones: they have the same classes, and sum to 1 too."""
    first, free = found.scores[0], [c.name for c in view.numeric(used)]
    classes = without_common_words(first.columns) if first.is_block else ()
    sets = [block.columns for block in column_names.blocks_named_by(classes, free)]
    sets = [each for each in sets if sum_to_one([view.table[name] for name in each])]
    names = [*dict.fromkeys(name for each in sets for name in each)]
    mention_unused(view, first, names)
    return {*names}


# ---- Names that say it


def _models_with_colons(
    view: TableView, taken: set[str], label: str | None
) -> tuple[ScoreColumns, ...]:
    """``<model>:<class>`` columns, if all models have the same classes."""
    if not view.table.named:
        return ()
    models: dict[str, dict[str, Column]] = {}
    for column in view.numeric(taken):
        model, colon, name = column.name.partition(":")
        if colon and model.strip() and name.strip() and not _SQL_CAST.fullmatch(name):
            models.setdefault(model.strip(), {})[name.strip()] = column
    first = next(iter(models.values()), {})
    own = [c for c in view.numeric(taken) if c.name in first]
    both = own, [*first.values()]
    if 1 < len(own) == len(first) and "model" not in models and all(map(_of_all_classes, both)):
        where = [view.table.names.index(columns[0].name) for columns in both]
        nameless = {"model": {c.name: c for c in own}}  # as `_models_of` calls it
        models = nameless | models if where[0] < where[1] else models | nameless
    alike = all({*classes} == {*first} for classes in models.values())
    if not alike or len(models) * len(first) < 2:
        return ()
    truth = None if label is None else view.table[label]
    if truth is not None and truth.width is None:
        known, before = ({*map(class_key, names)} & truth.classes for names in (first, models))
        if before == truth.classes or not (known or truth.numeric):
            return ()  # <class>:prob, or words that end with a colon
    return _of_sets(view, models, label)


def _of_sets(
    view: TableView, models: Mapping[str, Mapping[str, Column]], label: str | None
) -> tuple[ScoreColumns, ...]:
    """The scores of models, whose columns are of the same classes."""
    first = tuple(next(iter(models.values())))
    names, sets = _names_by_values(view, first, label), []
    for model, own in models.items():
        columns = [own[name] for name in first]
        logits = "logit" in model.lower() and not _of_all_classes(columns)
        used = tuple(c.name for c in columns)
        sets.append(_columns(view, used, names, "logits" if logits else "probabilities", model))
    return tuple(sets)


def models_by_sums(
    view: TableView, columns: Sequence[Column], label: str | None
) -> tuple[ScoreColumns, ...]:
    """Models of several columns each, the same classes in each, whose scores sum to 1.

    Raises
    ------
    InputError
        If columns can be taken together so in several ways.
    """
    ways = roles.sets_that_sum(columns) if view.table.named else []
    if len(ways) > 1:
        named = [tuple(model.strip(SIGNS) for model in models) for models in ways]
        raise InputError(
            f"'{span(tuple(c.name for c in columns))}' can be taken together in several ways that sum to 1: what are the models?",
            readings=[Reading(f"the models {span(names)}", {"models": names}) for names in named],
        )
    sets = (
        [replace(s, kind="probabilities") for s in _of_sets(view, ways[0], label)] if ways else ()
    )
    models = _models_of(sets) if sets else ()
    return tuple(replace(s, model=model) for s, model in zip(sets, models, strict=True))


def _of_all_classes(columns: Sequence[Column]) -> bool:
    """Whether columns sum to 1, or to 100, in nearly all rows, and are no labels of 0 and 1."""
    sums = sum_to_one(columns) or sum_to_one([replace(c, sample=c.head / 100) for c in columns])
    return sums and not all(c.is_zero_one for c in columns)


def _named_arrays(view: TableView, taken: set[str], label: str | None) -> tuple[ScoreColumns, ...]:
    """2-D arrays and columns of lists with a usual name."""
    if not view.table.named:
        return ()
    arrays = view.arrays(taken)
    found = {kind: [c for c in arrays if plain(c.name) in _USUAL[kind]] for kind in _kinds(view)}
    used = next((columns[0] for columns in found.values() if columns), None)
    if used is None:
        for column in view.table.columns:
            usual_name = plain(column.name) in (*column_names.PROBABILITIES, *column_names.LOGITS)
            if column.type == "other" and usual_name and column.name not in taken:
                raise InputError(f"cannot hold the scores: {column.note}", column=column.name)
        return ()
    scores = array(view, used)
    others = [c.name for columns in found.values() for c in columns if c is not used]
    further = [c for c in found["logits"] if c is not used]
    if scores.kind == "probabilities" and len(further) == 1 and further[0].width == scores.width:
        scores = replace(scores, logits=(further[0].name,))
        others.remove(further[0].name)
    mention_unused(view, scores, others)
    return (scores,)


def named_by_labels(
    view: TableView, taken: set[str], label: str | None
) -> tuple[ScoreColumns, ...]:
    """Columns that are named after the labels, with anything around; several such sets whose rows sum to 1 are models."""
    if label is None or not view.table.named or view.table[label].width is not None:
        return ()
    notices = len(view.notices)
    levels = view.table[label].levels
    called = _called_scores(view, taken, label)
    if called is not None and _names_labels(view, called, label):
        called = replace(called, labels=called.class_names)
        free = [c.name for c in view.numeric({*taken, *called.columns, *called.logits, label})]
        mention_unused(view, called, [name for name in free if name.endswith(called.columns)])
        surely = called.width <= len(levels) or called.kind == "logits"
        if not surely and not sum_to_one(view.columns(called)):
            called = None  # of several models, or with scores of something else
        elif len(free) < len(levels) or BEFORE in view.table or called.kind == "logits":
            return (called,)  # the names say it all: no value is read
    else:
        called = None
    if called is None:
        del view.notices[notices:]
    numeric = view.numeric({*taken, label})
    names = [c.name for c in numeric]
    # A word for missing labels may be a class; of several spellings of a class, the usual one counts.
    often = Counter(map(str, view.table[label].head.tolist())).most_common()
    spelled = {class_key(v): v for v, _ in reversed(often)}
    known = {v for v in spelled.values() if v in levels and not column_names.is_missing(v.strip())}
    rows: Counter[str] = Counter()
    for value, count in often:
        rows[class_key(value)] += count * (spelled[class_key(value)] in known)
    # Beside the classes, few rows may have a label that is none.
    fewer = (column_names.most(+rows, k) for k in range(len(known) - 1, 2, -1))
    some = [*filter(None, fewer), *column_names.pairs_of(+rows)][:_MOST_CANDIDATES]
    blocks: list[ClassBlock] = []
    least = 1 if len(view.table[label].head) == 1 else 2
    for classes in (levels, known, *({spelled[key] for key in keys} for keys in some)):
        blocks = blocks or column_names.blocks_named_by(classes, names, least)
    fit = [c.name for c in numeric if not is_outcome(view, c)] if blocks else []
    usable = [scores for block in blocks if (scores := _usable(view, block, numeric, fit))]
    if not usable:
        return () if called is None else (called,)
    alike = [b for b in usable if {*b.labels} == {*usable[0].labels}]
    of_kind = {kind: [b for b in alike if b.kind == kind] for kind in _kinds(view)}
    logits = of_kind["logits"]
    preferred = next(blocks for blocks in of_kind.values() if blocks)
    if preferred is not logits:
        preferred = [b for b in preferred if sum_to_one(view.columns(b))] or preferred
    clear = [_clearest(view, block, label) for block in preferred]
    if max(clear) > CLEAR:
        preferred = [b for b, z in zip(preferred, clear, strict=True) if z > CLEAR / 2]
    found = {column for block in preferred for column in block.columns}
    if called is not None and (len(preferred) == 1 or not {*called.columns} <= found):
        return (called,)
    used, *others = preferred
    if others and used.kind == "probabilities":
        del view.notices[notices:]
        usual = () if called is None else called.columns
        preferred.sort(key=lambda b: (b.columns[0] not in usual, names.index(b.columns[0])))
        of_label = [dict(zip(b.labels, b.columns, strict=True)) for b in preferred]
        return tuple(
            replace(used, columns=tuple(columns[c] for c in used.labels), model=model)
            for columns, model in zip(of_label, _models_of(preferred), strict=True)
        )
    if used.kind == "probabilities" and len(logits) == 1:
        place = dict(zip(logits[0].labels, logits[0].columns, strict=True))
        if {*place} == {*used.labels}:
            return (replace(used, model="", logits=tuple(place[c] for c in used.labels)),)
    mention_unused(view, used, [c for block in alike if block is not used for c in block.columns])
    return (replace(used, model=""),)


def _clearest(view: TableView, scores: ScoreColumns, label: str) -> float:
    """How clearly the label follows the scores of one class, or their reverse, in standard errors; infinite if too few rows have any class to see it."""
    hits = [np.array(view.table[label].keys == key, bool) for key in scores.keys]
    if max(h.sum() * (1 - h.mean()) for h in hits) < _SEEN:
        return np.inf
    return max(abs(_clear(c, h)) for c, h in zip(view.columns(scores), hits, strict=True))


#: With fewer rows of a class and of the others, a model of AUROC 0.7 does not surely order them better than chance.
_SEEN = 33
#: Signs between the name of a model and that of a class.
SIGNS = "_.:- ()[]{}%"
#: Words for scores and percent at the ends of what stands around the classes.
_SCORED = rf"(?:{'|'.join(sorted(column_names.SCORE_WORDS | column_names.PERCENT))})"
_ENDS = re.compile(rf"^(?:{_SCORED}(?:[\W_]+|$))+|(?:(?:^|[\W_]+){_SCORED})+$", re.IGNORECASE)


def _models_of(blocks: Sequence[ScoreColumns]) -> list[str]:
    """Names of models by what stands around their classes, but for words for scores where they differ without; "model" where there is nothing, and the columns where they are alike."""
    around = [block.model.strip(SIGNS) for block in blocks]
    named = [_ENDS.sub("", text) for text in around]
    named = named if len({*named}) == len(named) else around
    models = [text.strip(SIGNS) for text in without_common_words(named, of_models=True)]
    named = [m or "model" * ("model" not in models) for m in models]
    alone = [bool(m) and named.count(m) == 1 for m in named]
    return [m if a else span(b.columns) for m, a, b in zip(named, alone, blocks, strict=True)]


def by_known_words(columns: Sequence[str]) -> bool:
    """Whether all names are a known word for scores and a class, and nothing else."""
    return all(column_names.by_prefix(column)[0] for column in columns)


def _usable(
    view: TableView, block: ClassBlock, numeric: Sequence[Column], fit: Sequence[str]
) -> ScoreColumns | None:
    """The columns of a block as scores, if their values may be; those that `fit` may be further classes."""
    by_name = {c.name: c for c in numeric}
    columns = [by_name[name] for name in block.columns]
    if all(c.is_zero_one for c in columns) and not by_known_words(block.columns):
        return None  # one-hot labels
    kind = _kind_by_words(block.columns)
    unit = all((np.abs(c.head - 0.5) <= 0.5 + 1e-6).mean() >= 0.9 for c in columns)  # but for few
    if kind == "logits":
        # No sum tells a class that no label is from the largest score.
        of_a_row = _OF_A_ROW - {*column_names.words(block.columns[0])}
        fit = [name for name in fit if not {*column_names.words(name)} & of_a_row]
        block = _wider(block, numeric, fit) or block
    else:
        wider = _wider(block, numeric, fit)
        plainly = bool(kind) or by_known_words(block.columns)
        if wider is not None and sum_to_one([by_name[name] for name in wider.columns]):
            block = wider  # with classes that no label of the first rows has
        elif not sum_to_one(columns):
            if not any(block.around) and block.columns != block.classes:
                return None  # called after the classes, but not by their names
            if wider is not None and plainly and any(block.around):
                block = wider
            elif not plainly and not (unit and not any(block.around)):
                return None
    if len(block.columns) == 1:
        return None
    # Labels may also be written as the whole names of the columns.
    whole = not any(block.around) and by_known_words(block.columns)
    classes = class_names(block.columns) if whole else block.classes
    scores = _columns(view, block.columns, classes, kind or "probabilities")
    around = (text.strip(SIGNS) for text in block.around)
    return replace(scores, labels=block.labels, model="_".join(filter(None, around)))


def _wider(block: ClassBlock, numeric: Sequence[Column], fit: Sequence[str]) -> ClassBlock | None:
    """The block with classes that none of the labels is: columns with the same words, or, without any, those that sum to 1."""
    allowed = {*block.columns, *fit}
    alike = tuple(c.name for c in numeric if c.name in allowed)
    names = alike if any(block.around) else roles.summing(numeric) or ()
    wider = column_names.further_classes(block, names) if {*block.columns} <= {*names} else block
    return wider if len(wider.columns) > len(block.columns) else None


def _kind_by_words(columns: Sequence[str]) -> ScoreKind | None:
    """What the words of a header say of the scores; None if they say nothing."""
    words = {*column_names.words(columns[0])}
    if words & column_names.LOGIT_WORDS:
        return "logits"
    return "probabilities" if words & column_names.SCORE_WORDS else None


def _with_known_words(
    view: TableView, taken: set[str], label: str | None
) -> tuple[ScoreColumns, ...]:
    """Columns that begin with the same known word for scores, such as ``p_``."""
    scores = _called_scores(view, taken, label)
    if scores is None:
        return ()
    if not _names_labels(view, scores, label) and scores.kind == "probabilities":
        if models := models_by_sums(view, view.columns(scores), label):
            return models
        ask_if_models(view, scores.columns, label)
    return (scores,)


def _names_labels(view: TableView, scores: ScoreColumns, label: str | None) -> bool:
    """Whether all labels are among the class names."""
    if label is None or view.table[label].width is not None:
        return False
    return view.table[label].classes <= {class_key(name) for name in scores.class_names}


def _called_scores(view: TableView, taken: set[str], label: str | None) -> ScoreColumns | None:
    if not view.table.named:
        return None
    numeric = view.numeric({*taken, label or ""})
    best: dict[str, ScoreColumns] = {}
    for pattern, kind in column_names.PREFIXES:
        found = [
            (column.name, column_names.without_percent(match["name"]))
            for column in numeric
            if (match := pattern.fullmatch(column.name)) and not is_outcome(view, column)
        ]
        if len(found) >= 2 and (kind not in best or len(found) > best[kind].width):
            columns, classes = zip(*found, strict=True)
            declared: ScoreKind = "logits" if kind == "logits" else "probabilities"
            best[kind] = _columns(view, columns, classes, declared)
    used_kind = next((kind for kind in (*_kinds(view), "") if kind in best), None)
    if used_kind is None:
        return None
    scores = best[used_kind]
    other = {"probabilities": "logits", "logits": "probabilities"}.get(used_kind, "")
    if used_kind and other in best:
        place = dict(zip(best[other].class_names, best[other].columns, strict=True))
        if scores.kind == "probabilities" and set(place) == set(scores.class_names):
            scores = replace(scores, logits=tuple(place[name] for name in scores.class_names))
        else:
            mention_unused(view, scores, best[other].columns)
    return scores


def is_outcome(view: TableView, column: Column) -> bool:
    """Whether a column is named after another one (prob1 and prob1_outcome), or ends like an outcome and holds whole numbers.

    The probability of a class "true" ends like an outcome too, but holds fractions and is named after no other column.
    """
    name = plain(column.name)
    ends = any(name.endswith(end) for end in column_names.OUTCOME_ENDINGS)
    return ends and (is_named_after_another(view, column) or column.is_label_like)


def is_named_after_another(view: TableView, column: Column) -> bool:
    """Whether a column has the name of another one and the ending of an outcome (prob1_outcome beside prob1)."""
    name = plain(column.name)
    stems = [name.removesuffix(end) for end in column_names.OUTCOME_ENDINGS if name.endswith(end)]
    return bool(stems) and stems[0] in view.plain


def _kinds(view: TableView) -> tuple[ScoreKind, ...]:
    """The kinds of scores in order of preference: that of the options first, or else probabilities."""
    if view.options.kind_of_scores == "logits":
        return ("logits", "probabilities")
    return ("probabilities", "logits")


def mention_unused(view: TableView, used: ScoreColumns, others: Sequence[str]) -> None:
    """Say which columns look like scores and are not used."""
    if others:
        text = f"'{span(used.columns)}' holds the scores; not used: {span(tuple(others))}"
        view.note(Notice.SCORE_COLUMNS, "info", text)


# ---- Several models with one score each


def ask_if_models(
    view: TableView, columns: Sequence[str], label: str | None, *, found: bool = True
) -> None:
    """Raise the question whether columns are models: each may be the probability of the event, and together they are no distribution.

    Columns without common words are asked about if the labels follow at least two of them. A label that is not `found` by a name is
    part of the question.
    """
    if len(columns) > 2:  # of two models, one may be uncalibrated
        columns = [name for name in columns if name != BEFORE]
    scores = [view.table[name] for name in columns]
    if sum_to_one(scores) or not (all(c.in_unit for c in scores) or _of_events_in_percent(scores)):
        return
    headed = all(c.is_headed_in_percent and not c.in_unit for c in scores)
    headed |= all(_of_events_in_percent([c]) and not roles.mostly_in_unit(c) for c in scores)
    # Headers that share no more than a sign of percent may be of anything.
    names = [name.rstrip(" [(%)]") for name in columns]
    alike = without_common_words(names) != tuple(names)
    # Whole numbers may count anything, unless they are called scores.
    alike &= all(c.words & column_names.SCORE_WORDS or not c.is_label_like for c in scores)
    named = [] if label is None else [view.table[label]]
    possible = named or [c for c in view.table.columns if c.is_label_like and c not in scores]
    for truth in sorted(possible, key=lambda c: not c.is_called_event)[:_MOST_CANDIDATES]:
        pair = next(iter(truth.pairs), ()) if truth.width is None else ()
        classes = {class_key(name) for name in without_common_words(columns)}
        if not pair or classes == {*pair}:
            continue
        values, event = truth.keys, event_of(pair)
        # Two words that are no names of columns are not the classes of scores that do not sum to 1.
        apart = truth.type == "text" and not event_of(classes) and classes.isdisjoint(truth.classes)
        if len(values) < roles.FEWEST_ROWS and not (named and apart):
            continue
        hit = values == (event or max(pair))
        clear = CLEAR / 2 if named else CLEAR
        by = [_clear(c, hit) for c in scores]
        if view.options.scores and min(by) < 0 < max(by):
            return  # of two classes, as the user said
        followed = [c.name for c, z in zip(scores, by, strict=True) if abs(z) > clear]
        models = tuple(columns) if alike and named and (event or apart) else tuple(followed)
        if len(models) < 2:  # few rows: the names tell
            models = tuple(n for n in columns if called_class(n, truth.levels))
        if len(models) < 2:
            continue
        chosen: dict[str, Any] = {"repair": ("percent",)} if headed else {}
        chosen |= {} if named and found else {"label": truth.name}
        how = ", in percent" * headed
        chosen |= {"scores": None} if view.options.scores else {}
        instead = " in place of the scores" * bool(view.options.scores)
        listed = ", ".join(f"'{name}'" for name in models[:5])
        raise InputError(
            f"each of {listed} may be the probability of the event in '{short(truth.name)}', as the rows do not sum to 1: "
            "are they models?",
            readings=[
                Reading(f"{len(models)} models{instead}{how}", {"models": models, **chosen}),
                *(Reading(f"only '{n}'{how}", {**chosen, "scores": (n,)}) for n in models[:3]),
            ],
        )


def called_class(name: str, texts: Iterable[str]) -> list[str]:
    """The classes whose words a name holds; numbers are none."""
    words = {*column_names.words(name)}
    return [t for t in texts if column_names.whole(t) is None and {*column_names.words(t)} <= words]


#: Words of scores that are none of another model: how sure one is, bounds, and what is computed from several.
_OF_NO_MODEL = (_OF_A_ROW | column_names.SURE | {"lower", "upper", "low", "high", "ci", "threshold"}) - {"pred", "predicted"}  # fmt: skip


#: A column that is not called a score is one of another model only if labels follow it at least so clearly, as a share of the scores.
_NEARLY_AS_CLEAR = 2 / 3


def offer_models(view: TableView, found: roles.ColumnRoles, taken: set[str]) -> None:
    """Offer to compare scores of an event with further columns that are called like such scores and that the labels follow."""
    options, truth = view.options, view.table[found.label] if found.label else None
    of_event = all(len(s.columns) == s.width <= 2 and s.kind != "logits" for s in found.scores)
    if truth is None or not of_event or options.scores or options.models or options.for_map:
        return
    pair = next(iter(truth.pairs), ()) if truth.width is None else ()
    usual, called = event_of(pair), next(iter(found.scores[0].keys[-1:]), None)
    event = called if called in pair else usual
    # Of several labels, one is the event, or all but one.
    one_of = [*map(class_key, options.class_names or ())] * ("others-no" in options.repair)
    if one_of:
        event = usual = one_of[-1]
    if event is None or (event != usual and column_names.whole(event) is not None):
        return
    hit, words = truth.keys == event, (*truth.words, *column_names.words(event))
    if one_of and not hit.any():
        hit = truth.keys != one_of[0]
    known = column_names.SCORE_WORDS | {*filter(str.isalpha, words)}
    used = [view.table[s.columns[-1]] for s in found.scores]
    free = view.numeric({*taken, *found.used, BEFORE})
    free = [c for c in free if not c.words & _OF_NO_MODEL]
    percent = [c for c in free if _of_events_in_percent([c])]
    free = [c for c in free if c in percent or (roles.mostly_in_unit(c) and not c.is_label_like)]
    clear = [_clear(c, hit) for c in (*used, *free)]
    least = min(clear[: len(used)])
    follow = {c: z for c, z in zip(free, clear[len(used) :], strict=True) if z > CLEAR}
    worded = [c for c in follow if c.words & known and (c not in percent or c.is_headed_in_percent)]
    new = [c for c, z in follow.items() if c in worded or z > _NEARLY_AS_CLEAR * least]
    new = [c for c in new if not any(np.allclose(c.head, u.head, equal_nan=True) for u in used)]
    if not new or least <= 0:
        return
    names = tuple(c.name for c in view.table.columns if c in (*used, *new))
    chosen: dict[str, Any] = {"models": names}
    in_percent = ", in percent" * any(c in percent for c in new)
    if in_percent:
        chosen["repair"] = ("percent",)
    if not (options.label or plain(truth.name) in column_names.LABELS):
        chosen["label"] = truth.name
    if event != usual:
        spelled = {class_key(text): text for text in truth.levels}
        chosen["class_names"] = (*(spelled[key] for key in pair if key != event), spelled[event])
    whose = f"scores of {'another model' if len(new) == 1 else 'other models'}"
    text = f"'{span(tuple(c.name for c in new))}' may hold {whose}{in_percent}: the labels follow them too; a group only if chosen as one (--group)"
    view.note(Notice.SCORE_COLUMNS, "info", text)
    view.ways.append(Reading(f"compare {span(names)} as models{in_percent}", chosen))


def _clear(column: Column, hit: Any) -> float:
    """How clearly hits, shape (n,), have larger scores, in standard errors; 0 if arrays differ in length."""
    score = column.head.astype(float)
    return follows(score, hit) if score.shape == hit.shape else 0.0


def _of_events_in_percent(scores: Sequence[Column]) -> bool:
    """Whether columns go from 0 to 100, and do not sum to 100 in most rows."""
    if len({c.head.size for c in scores}) != 1:
        return False
    heads = np.stack([c.head.astype(float) for c in scores])
    known = heads[:, np.isfinite(heads).all(axis=0)]
    off = np.abs(known.sum(axis=0) - 100) > 1
    points = any(c.is_label_like and not c.is_headed_in_percent for c in scores)
    least = roles.MOST_POINTS if points else 10
    return bool(known.size and known.min() >= 0 and least < known.max() <= 100 and off.mean() > 0.5)


# ---- A single score


def single_by_name(view: TableView, taken: set[str], label: str | None) -> ScoreColumns | None:
    """The only score column, by its name."""
    if not view.table.named:
        return None
    candidates = [c for c in view.numeric(taken) if c.name != label]
    fractions = any(c.in_unit and not c.is_label_like for c in candidates)
    for declared, names in _USUAL.items():
        for column in candidates:
            key = plain(column.name)
            weak = key in column_names.PREDICTED or not key.startswith(_STRONG)
            weak = weak or (fractions and column.is_zero_one)  # rather what happened
            if key not in names or (weak and column.is_label_like):
                continue
            if declared == "logits" and column.in_unit and not view.options.kind_of_scores:
                _ask_if_logits(view, column, [c.name for c in candidates if c.in_unit], label)
            copies = [c for c in candidates if c.name.startswith(f"{column.name}.")]
            if any(sum_to_one([column, c]) for c in copies):
                return None  # two columns of one name, which pandas numbers
            # As for a chosen column, the name of a class says which of two labels is the event.
            class_name = column_names.by_prefix(column.name)[0]
            named = (class_name,) if class_name in column_names.EVENT else ()
            scores = _columns(view, (column.name,), named, declared)
            logits = [c.name for c in candidates if plain(c.name) in column_names.LOGITS]
            mention_unused(view, scores, [name for name in logits if name != column.name])
            return scores
    if view.text_scores():
        return None
    for pattern, kind in column_names.PREFIXES:
        for column in candidates:
            match = pattern.fullmatch(column.name)
            if match is None or column.type != "number" or is_outcome(view, column):
                continue
            if column.in_unit and plain(match["name"]) in column_names.SCORE_WORDS:
                continue  # of a model, such as logit
            if any(_are_two_classes(column, c) for c in candidates if c is not column):
                return None
            if column.in_unit or (kind == "logits" and "logit" in column.name.lower()):
                declared = "logits" if kind == "logits" else "probabilities"
                return _columns(view, (column.name,), (match["name"],), declared)
    return None


def _ask_if_logits(
    view: TableView, column: Column, in_unit: Sequence[str], label: str | None
) -> None:
    """Raise the question what a column is that is named after logits, and holds none below 0 or above 1: often a model's probability."""
    if len(in_unit) > 1:
        ask_if_models(view, in_unit, label)
    name = short(column.name)
    raise InputError(
        f"'{name}' is named after logits, but all its values lie between 0 and 1: are they logits?",
        readings=[
            Reading(kind, {"scores": (column.name,), "kind": kind})
            for kind in ("probabilities", "logits")
        ],
    )


def _are_two_classes(one: Column, two: Column) -> bool:
    """Whether a column is one minus another, with the same words around a class."""
    names = (one.name, two.name)
    return sum_to_one([one, two]) and without_common_words(names) != names


def by_values(view: TableView, taken: set[str], label: str | None) -> tuple[ScoreColumns, ...]:
    """The only array of scores, columns whose rows sum to 1, or the only column in [0, 1]."""
    not_scores = taken | {label or ""}
    numeric, arrays = view.numeric(not_scores), view.arrays(not_scores)
    if len(arrays) == 1:
        return (array(view, arrays[0]),)
    columns, one = roles.summing(numeric), only_with_words(numeric)
    if columns is not None and one is not None and one not in columns:
        return (_columns(view, (one,), (), "probabilities"),)
    if one is None and (models := models_by_sums(view, numeric, label)):
        return models
    if columns is not None:
        return (_columns(view, columns, _names_by_values(view, columns, label), "probabilities"),)
    # A confidence without a predicted class is not P(class 1).
    numeric = [c for c in numeric if plain(c.name) not in column_names.CONFIDENCES]
    if view.text_scores():
        return ()
    called = [c for c in numeric if c.words & column_names.SCORE_WORDS and roles.mostly_in_unit(c)]
    unit = [c for c in numeric if c.in_unit or c.note] or called
    unit = [c for c in unit if not c.is_weight]
    # Scores that are all 0 or 1 in the sample look like labels; they are told apart by the name of the label.
    scores = [c for c in unit if c.type == "number" or (label is not None and len(unit) == 1)]
    if len(scores) == 2:
        # In an array of floats, the label is one of them.
        scores = [c for c in scores if not c.is_label_like] or scores
    if view.table.named:
        names = tuple(
            c.name for c in scores or numeric if not c.is_label_like or _of_events_in_percent([c])
        )
        # Columns above 1 are percentages at most if their names are alike.
        if len(names) > 1 and (scores or without_common_words(names) != names):
            ask_if_models(view, names, label)
    scores = [c for c in scores if c.name == one] or scores
    rest = [c for c in view.table.columns if c not in scores and c.name not in taken]
    if len(scores) == 1 and (label is not None or any(c.is_label_like for c in rest)):
        return (_columns(view, (scores[0].name,), (), "probabilities"),)
    return ()


def _names_by_values(
    view: TableView, columns: tuple[str, ...], label: str | None
) -> tuple[str, ...]:
    """Class names of columns that only their values give away: their names, without common words unless the labels have them."""
    if not view.table.named:
        return tuple(map(str, range(len(columns))))
    names = class_names(columns)
    called = {class_key(name) for name in columns}
    labelled = label is not None and view.table[label].width is None
    if names != columns or (labelled and view.table[label or ""].classes <= called):
        return names
    return without_common_words(columns)


def only_with_words(numeric: Sequence[Column]) -> str | None:
    """The only column of fractions whose name has a word for scores, and that is not one minus another column."""
    known = [c for c in numeric if c.type == "number" and c.words & column_names.SCORE_WORDS]
    known = [c for c in known if plain(c.name) not in column_names.CONFIDENCES]
    found = [c for c in known if c.in_unit and not c.is_label_like]
    of_two = len(found) == 1 and any(sum_to_one([found[0], other]) for other in numeric)
    return found[0].name if len(found) == 1 and not of_two else None


# ---- Making `ScoreColumns`


def _columns(
    view: TableView, used: tuple[str, ...], names: tuple[str, ...], kind: ScoreKind, model: str = ""
) -> ScoreColumns:
    """Make the scores of one model from columns; the kind given in the options takes precedence."""
    if len(set(names)) != len(names):
        names = used
    return ScoreColumns(used, names, view.options.kind_of_scores or kind, len(used), model)


def array(view: TableView, column: Column) -> ScoreColumns:
    """Make scores from a 2-D array or a column of lists."""
    logits = plain(column.name) in column_names.LOGITS or "logit" in column.name.lower()
    if plain(column.name) == "predictions" and "label_ids" in view.plain:
        # Result of Trainer.predict of Hugging Face: the raw outputs of the model.
        logits = not column.in_unit
    kind: ScoreKind = "logits" if logits else "probabilities"
    width = column.width or 1
    return ScoreColumns((column.name,), column.fields, view.options.kind_of_scores or kind, width)


def class_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Class names from column names, without known words before them; the names themselves if that fails."""
    stripped = tuple(column_names.by_prefix(c)[0] for c in columns)
    return stripped if all(stripped) and len(set(stripped)) == len(stripped) else columns
