"""The errors of the classes: computed, drawn as bars and as a table, and explained for the class that is picked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.column_config import Column, NumberColumn, TextColumn

from calviz.app import navigation, pinning, screen, selection, session, tables_and_cards
from calviz.app.jobs import LongWork
from calviz.app.selection import CellRule, Labelled, Predicted
from calviz.app.session import Settings, look_at_class, md
from calviz.core import words
from calviz.core.blocks import FloatArray
from calviz.core.errors import NotAvailable, picked
from calviz.core.predictions import Dataset, Predictions
from calviz.core.words import capitalised, counted, decimal, decimals_for, percent, told_apart
from calviz.figures.class_bars import ClassBars, Mode, Order
from calviz.figures.confusion import SHOWN, By, Confusion
from calviz.figures.marks import Overlay
from calviz.sample.class_gaps import class_ranges, predicted_class_sums
from calviz.sample.sample import Sample, event_rate_if_rare
from calviz.verdicts.analysis import evaluate

PLACE = "classwise"
#: Rows, and rows times classes, from which on the computation takes seconds.
MANY_ROWS, MANY_ENTRIES = 20_000, 10_000_000
#: Seconds to wait before the progress bar is drawn.
PATIENCE = 0.3
VIEWS: dict[Mode, str] = {
    "predicted-class": "by predicted class",
    "one-vs-rest": "one-vs-rest",
    "true-class": "by true class",
}


class AllowedClassViews(NamedTuple):
    """All views of the classes that the data allow, the reasons why they do not allow the others, and a rare event with its share."""

    views: Mapping[Mode, ClassBars]
    reasons: Mapping[Mode, str]
    rare: str = ""

    @property
    def first(self) -> Mode:
        """The view that is shown first: the first in which a class is off, unless a rare event is."""
        off = (mode for mode, view in self.views.items() if (view.over | view.under).any())
        return next(iter(self.views)) if self.rare else next(off, next(iter(self.views)))

    def choose(self) -> Mode:
        """Draw the choice of a view, which all pages share."""
        return session.choose_one("View", VIEWS, default=self.first, key="classes_by")


def find_class_views(settings: Settings) -> AllowedClassViews | None:
    """Return all errors by class; None, with progress or reason on screen, if there are none yet."""
    sample = settings.sample
    data = sample.data
    quick = data.n < MANY_ROWS and data.n * max(1, data.n_classes) < MANY_ENTRIES
    if quick or data.labels is None:  # without labels it is quick, or not available
        text = f"Resampling {counted(data.rows, 'row')}, class by class …"
        with session.computing(settings, text):
            return _compute_views(sample)
    work = LongWork(
        PLACE,
        settings.rows_key,
        f"Resampling {counted(data.rows, 'row')}, class by class",
        lambda: lambda job: _compute_views(sample, job.doing),
        "Compute them",
        ":material/play_arrow:",
        "calviz.classes.again",
        stopped=lambda _: "Stopped before the errors of the classes were known.",
    )
    return work.draw(at_once=True, patience=PATIENCE).result


def _compute_views(
    sample: Sample, report: Callable[[str], object] = lambda _: None
) -> AllowedClassViews:
    views: dict[Mode, ClassBars] = {}
    reasons: dict[Mode, str] = {}
    top = sample.top_label
    for mode, step in VIEWS.items():
        report(step)
        try:
            views[mode] = top.view(ClassBars.compute, mode=mode, **top.quick_redrawing)
        except NotAvailable as error:
            reasons[mode] = str(error)
    if not views:
        raise NotAvailable(reasons["true-class"])
    rare, names = event_rate_if_rare(sample), sample.data.class_names
    first: Mode = "one-vs-rest"
    if rare is None or first not in views:
        return AllowedClassViews(views, reasons)
    event = f"'{md(names[rare < 0.5], 40)}', {percent(min(rare, 1 - rare))} of the rows,"
    return AllowedClassViews({first: views.pop(first)} | views, reasons, event)


def pinned_class_errors(settings: Settings, mode: Mode) -> Overlay[FloatArray] | None:
    """Return the error of each class in the pinned state, shape (K,); NaN for a class without rows."""

    def errors_of(sample: Sample) -> FloatArray:
        ranges = sample.top_label.view(class_ranges, view=mode)
        return np.where(ranges.has, ranges.value, np.nan)

    # Reduction and bins do not matter here.
    return pinning.overlay(settings, errors_of, as_now=pinning.REDUCTION_AND_BINS)


def draw_bars(
    figure: ClassBars, order: Order, settings: Settings, pinned: Overlay[FloatArray] | None
) -> None:
    """Draw the bars; a click on one selects the rows of its class."""
    by = f"classwise.{figure.mode}"
    key, selected = selection.widget_key(by), selected_class(settings)
    # A profile of the top scores does not know which rows belong to which class.
    can_select = settings.whole.labels is not None
    clicked = selection.of_click(key, lambda at: _rule(figure.mode, at, settings.whole), by=by)
    beside = () if pinned is None else (pinned,)
    drawing = screen.plotted(figure, order=order, selected=selected, beside=beside)
    name, react = f"classes-{figure.mode}", clicked if can_select else "ignore"
    screen.chart(figure, drawing, key=key, filename=name, on_select=react)


def selected_class(settings: Settings) -> int | None:
    """Return the index of the class whose rows are selected; None if other rows or no rows are."""
    rule = selection.current_rule()
    if not isinstance(rule, Predicted | Labelled):
        return None
    names = settings.whole.class_names
    return names.index(rule.name) if rule.name in names else None


def _rule(mode: Mode, index: int, data: Dataset) -> Predicted | Labelled:
    """Return the rows that a click on a bar selects: those the bar is about; one-vs-rest, those predicted as the class."""
    named = isinstance(data, Predictions) or data.predicted is not None
    return (Predicted if named and mode != "true-class" else Labelled)(data.class_names[index])


def merged_views(settings: Settings, class_errors: AllowedClassViews) -> pd.DataFrame:
    """Return a table of all classes in their order, the views side by side; differences are fractions."""
    one_vs_rest = class_errors.views.get("one-vs-rest")
    true_class = class_errors.views.get("true-class")
    if true_class is None:
        assert one_vs_rest is not None
        only = one_vs_rest.frame("class").set_index("class_index")
        return only[["class", "rows"]].join(only[["value", *_ENDS]].add_prefix("one_vs_rest_"))
    frame = true_class.frame("class").set_index("class_index").rename(columns={"value": "mcs"})
    with session.computing(settings, f"Measuring {settings.row_count} by class …") as sample:
        facts = evaluate(sample, (), classes=True).classes
    table = pd.DataFrame([picked(row, "name rows accuracy confidence ece ks") for row in facts])
    table = table.rename(columns={"name": "class"}).join(frame[["mcs", *_ENDS]])
    for mode, prefix in _PREFIXES.items():
        if prefix and (other := class_errors.views.get(mode)) is not None:
            columns_of_view = other.frame("class").set_index("class_index").drop(columns="class")
            table = table.join(columns_of_view.add_prefix(prefix))
    if "predicted_rows" in table:
        table["predicted_rows"] = table["predicted_rows"].fillna(0).astype(int)
        sums = settings.sample.top_label.view(predicted_class_sums)
        with np.errstate(invalid="ignore"):
            table["predicted_accuracy"] = (sums.hits / sums.rows)[: len(table)]
            table["predicted_confidence"] = (sums.score / sums.rows)[: len(table)]
    return table.drop(columns="one_vs_rest_rows", errors="ignore")


def draw_table(
    frame: pd.DataFrame,
    settings: Settings,
    ranked: Sequence[int],
    mode: Mode,
    pinned: Overlay[FloatArray] | None,
) -> None:
    """Draw the table of classes in an order, with the numbers of this view; a tick selects the rows of a class."""
    by = "classwise.table"
    key = selection.widget_key(by)
    # Classes without rows have no bar.
    order = [*ranked, *(i for i in frame.index if i not in set(ranked))]
    index, data = selected_class(settings), settings.whole
    rules = [_rule(mode, i, data) for i in order]
    ticking = selection.of_tick(key, rules, by=by, at=None if index is None else order.index(index))
    if data.labels is None:
        ticking["on_select"] = "ignore"
    shown = _of_view(frame, mode)
    _selected(shown, settings, mode)
    if pinned is not None:
        shown["pinned"] = 100 * pinned.content
    added = sum(name in shown.columns for name in ("selected", "pinned"))
    # Columns that give way to the selected rows and to the pinned state, one for each, so that the table fits a window of 1,280 pixels:
    # the figure above draws the first, the CSV holds the second.
    shown = shown.drop(columns=list((screen.PICTURE_COLUMN, "ks")[:added]), errors="ignore")
    columns = [name for name in _COLUMNS if name in shown.columns]
    decimals: dict[str, int] = {
        name: _decimals(shown[name], _LEAST[mode])
        for name in ("value", "pinned")
        if name in columns
    }
    if "outside" in columns:
        # However near the range a class is, it is not outside by 0.
        decimals["outside"] = decimals_for(*shown["outside"].dropna(), figures=1)
    screen.table(
        tables_and_cards.with_signs(shown.loc[order, columns], decimals),
        most=420,
        placeholder="–",
        alt="All classes",
        column_config=_COLUMNS | {"value": _VALUE_COLUMNS[mode]},
        **ticking,
    )
    tables_and_cards.download_button("Download the classes as CSV", frame, "classes", quiet=True)


def _of_view(frame: pd.DataFrame, mode: Mode) -> pd.DataFrame:
    """Return the columns of a view: the error that is drawn, with its picture and ranges, then the columns of all views."""
    prefix = _PREFIXES[mode]
    drawn = "mcs" if mode == "true-class" else "value"
    value, *ends = (frame[prefix + name] for name in (drawn, *_ENDS))
    columns: dict[str, Any] = {"class": told_apart(frame["class"], 34)}
    if mode == "predicted-class":
        columns["predicted_rows"] = frame["predicted_rows"]
    shown = pd.DataFrame(columns, index=frame.index)
    shown["value"] = 100 * value
    shown[["low", "high", "from", "to", "beyond"]] = 100 * pd.concat(ends, axis=1)
    numbers = shown[["value", "low", "high", "from", "to"]].to_numpy(float)
    shown[screen.PICTURE_COLUMN] = screen.pictures_of(numbers.tolist())
    digits = _decimals(shown["value"], _LEAST[mode]) if mode == "one-vs-rest" else 1
    # With a single row, or with few clusters, no class has an interval.
    if not shown["low"].isna().all():
        shown["interval"] = _range(shown["low"], shown["high"], digits)
    if not shown["from"].isna().all():
        shown["calibrated"] = _range(shown["from"], shown["to"], digits)
        shown["outside"] = shown["beyond"].where(shown["beyond"] != 0)
    # A line is about the rows of the view alone. A profile of all classes may not know the number of rows of each.
    for name, scale in _OF_THE_ROWS[mode].items():
        if prefix + name in frame:
            shown[name] = scale * frame[prefix + name]
    return shown


def _selected(shown: pd.DataFrame, settings: Settings, mode: Mode) -> None:
    """Add the number of selected rows that are predicted as each class or, by true class, belong to it."""
    chosen = selection.current(settings)
    if chosen is None:
        return
    data = settings.sample.data
    class_of_row = data.labels if mode == "true-class" else data.predicted
    if class_of_row is not None:
        shown["selected"] = np.bincount(class_of_row[chosen.rows], minlength=len(shown))


def _range(low: pd.Series[Any], high: pd.Series[Any], digits: int) -> list[str]:
    return [
        "" if np.isnan(a) or np.isnan(b) else f"{_fixed(a, digits)} to {_fixed(b, digits)}"
        for a, b in zip(low.to_numpy(), high.to_numpy(), strict=True)
    ]


def _decimals(values: pd.Series[Any], least: int) -> int:
    """Return the decimals that show two digits of a usual value: with 1,000 classes, errors are hundredths of a point."""
    usual = float(values.abs().quantile(0.9))
    return least if np.isnan(usual) else decimals_for(usual, least=least)


def _fixed(value: float, digits: int = 1) -> str:
    return decimal(float(value), digits)


#: Prefix of a view's columns in the table of all views; below, those with its two ranges, and how far it is outside.
_PREFIXES: dict[Mode, str] = {
    "predicted-class": "predicted_",
    "one-vs-rest": "one_vs_rest_",
    "true-class": "",
}
#: What a line says about its rows beside their error, with the factor to the shown unit.
_OF_THE_ROWS: dict[Mode, dict[str, int]] = {
    "predicted-class": {"accuracy": 100, "confidence": 100},
    "one-vs-rest": {},
    "true-class": {"rows": 1, "accuracy": 100, "confidence": 100, "ece": 100, "ks": 100},
}
_ENDS = ("ci_low", "ci_high", "band_low", "band_high", "beyond")
_LEAST: dict[Mode, int] = {"predicted-class": 1, "one-vs-rest": 2, "true-class": 1}
_VALUE_COLUMNS = {
    "predicted-class": NumberColumn(
        "conf. − acc.",
        help="Mean confidence minus accuracy on the rows that are predicted as the class, in points.",
    ),
    "one-vs-rest": NumberColumn(
        "prob. − freq.",
        help="Mean probability of the class minus its frequency, over all rows, in points.",
    ),
    "true-class": NumberColumn(
        "MCS", help="Mean confidence minus accuracy on the rows of the class, in points."
    ),
}
#: Columns in the order shown, which fits a page of usual width.
_COLUMNS = {
    "class": TextColumn(pinned=True),
    "selected": NumberColumn(
        format="localized",
        help="Of the selected rows, those that are predicted as the class; by true class, those that have it.",
    ),
    "pinned": NumberColumn(help="What is drawn, in the pinned state, in points."),
    "predicted_rows": NumberColumn(
        "predicted", format="localized", help="Rows that are predicted as the class."
    ),
    "value": _VALUE_COLUMNS["true-class"],
    screen.PICTURE_COLUMN: screen.picture_column_config(
        "The error, its interval and its range if calibrated; the thin line is at 0."
    ),
    "interval": Column("95 % interval", alignment="right"),
    "calibrated": Column(
        "if calibrated",
        alignment="right",
        help="Where a perfectly calibrated model falls, adjusted for the number of classes. By true class it is not centred "
        "at 0: among the rows of one true class, wrong predictions are over-represented.",
    ),
    "outside": NumberColumn(
        "outside by", help="How far the error lies outside that range, in points."
    ),
    "rows": NumberColumn(format="localized", help="Rows whose true label is the class."),
    **dict.fromkeys(
        ("accuracy", "confidence"),
        NumberColumn(
            format="%.2f %%",
            help="On the rows that are predicted as the class; by true class, on those that have it.",
        ),
    ),
    "ece": NumberColumn("ECE", format="%.1f", help="On these rows, in points."),
    "ks": NumberColumn("KS", format="%.1f", help="On these rows, in points."),
}


# ---- One class


def drill_down(frame: pd.DataFrame, settings: Settings, *, rare: bool) -> None:
    """Draw the findings for the class whose rows are selected, and the way to its own diagram."""
    index = selected_class(settings)
    if index is None or index >= len(frame):
        return
    row = frame.iloc[index]
    name = md(row["class"], 60)
    with st.container(border=True):
        st.markdown(f"**Class {name}**")
        st.markdown(_of_all_rows(row) if rare else _sentence(row))
        data = settings.whole
        if data.kind != "confidence" and (data.n_classes > 2 or index == 1):
            _links_for_class(settings, index, name)


def _links_for_class(settings: Settings, index: int, name: str) -> None:
    """Offer to show one class on the other pages: first a button that sets the reduction, then links to the pages."""
    reduction = settings.reduction
    if reduction.kind == "positive" or (
        reduction.kind == "class" and reduction.class_name == settings.whole.class_names[index]
    ):
        with st.container(horizontal=True):
            for key in ("reliability", "cumulative", "metrics"):
                navigation.draw_link(key, f"{name} on {navigation.PAGES_BY_KEY[key].title}")
        return
    st.button(
        f"Look at {name} against the rest",
        key="calviz.class.open",
        help="Sets the view in the bar, for all pages.",
        on_click=look_at_class,
        args=(settings.whole, index),
    )


def _sentence(row: pd.Series[Any]) -> str:
    text = ""
    if predicted_rows := row.get("predicted_rows", 0):
        text = (
            f"Where it is predicted ({counted(int(predicted_rows), 'row')}): mean confidence minus accuracy is "
            f"{_fixed(100 * row['predicted_value'])} points.{_judged(row, 'predicted_')} "
        )
    if not row["rows"]:
        return f"{text}No row has this class as its true label."
    return (
        f"{text}On its {counted(int(row['rows']), 'row')}: accuracy {percent(row['accuracy'], 2)}, mean confidence "
        f"{percent(row['confidence'], 2)}, so the MCS is {_fixed(100 * row['mcs'])} points.{_judged(row, '')}"
    )


def _of_all_rows(row: pd.Series[Any]) -> str:
    return (
        f"On all rows: mean probability minus frequency is {_fixed(100 * row['one_vs_rest_value'], 2)} points."
        f"{_judged(row, 'one_vs_rest_', 2)}"
    )


def _judged(row: pd.Series[Any], view: str, digits: int = 1) -> str:
    low, high = (_fixed(100 * row[f"{view}band_{end}"], digits) for end in ("low", "high"))
    where = "outside" if row[f"{view}beyond"] else "inside"
    return f" A calibrated model shows {low} to {high}: {where}." * (low != _fixed(np.nan))


# ---- Which classes are mistaken for which: the confusion matrix, and the mistakes as a table; both select rows

#: Pairs listed in the table; the download has all.
PAIRS = 200
#: Largest number of classes drawn at once: in a larger matrix the cells have no room for numbers.
MOST = 20
_MATRIX, _TABLE = "classwise.confusion", "classwise.pairs"
BY: dict[By, str] = {"true": "of the true class", "predicted": "of the predicted class"}


@navigation.fragment
def explore_confusion(settings: Settings, *, in_order: bool = False) -> None:
    """Draw the matrix of the classes with the most mistakes, or of chosen classes, `in_order` of the classes or as chosen, and the mistakes beside it."""
    st.subheader("What is taken for what?", anchor=False)
    try:
        with session.computing(settings, f"Counting {settings.row_count} …") as sample:
            figure = sample.top_label.view(Confusion.compute)
    except NotAvailable as reason:
        st.caption(md(words.full_sentence(str(reason)), 500))
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        colours: By = session.choose_one("Colour by share", BY, key="confusion-by")
        chosen = _chosen_classes(figure, settings)
    st.markdown(md(capitalised(words.keep_units_together(figure.reading())), 600))
    picture, pairs = st.columns([6, 5], gap="small")
    with picture:
        _matrix(figure, sorted(chosen or figure.usual) if in_order else chosen, colours)
        # On a phone, cells have room for one number.
        more = " of each cell" if screen.page_width() else ", and below them the mean confidence"
        st.caption(f"Rows{more}. Blue: right; orange: wrong, stronger where the share is larger.")
    with pairs:
        _pairs(figure, chosen, settings)


def _chosen_classes(figure: Confusion, settings: Settings) -> list[int]:
    """Draw the choice of classes; return their indices, none for those with the most mistakes."""
    names = words.distinct(figure.class_names)
    first = min(SHOWN, len(names))
    of_mistakes = figure.wrong and first < len(names)
    usual = f"{first} of the most frequent mistakes" if of_mistakes else f"{first} classes"
    chosen = st.multiselect(
        "Classes",
        figure.class_names,
        format_func=lambda name: names.get(name, str(name)),
        placeholder=f"{usual}; type to search",
        max_selections=MOST,
        key=f"calviz.confusion.classes.{settings.entry.content_key}",
    )
    return [figure.class_names.index(name) for name in chosen]


def _matrix(figure: Confusion, classes: list[int], colours: By) -> None:
    """Draw the matrix; a click on a cell selects its rows."""
    key = selection.widget_key(_MATRIX)

    def clicked() -> None:
        points = st.session_state[screen.widget_key(key)].selection.points
        if points:
            true, taken = (figure.class_names[int(k)] for k in points[0]["customdata"])
            selection.choose(CellRule(true, taken), by=_MATRIX)

    drawing = screen.plotted(figure, by=colours, classes=classes, selected=_selected_cells(figure))
    screen.chart(figure, drawing, key=key, filename="confusion", on_select=clicked)


def _selected_cells(figure: Confusion) -> tuple[int, int] | None:
    rule, names = selection.current_rule(), figure.class_names
    if not isinstance(rule, CellRule) or not {rule.true, rule.predicted} <= set(names):
        return None
    return names.index(rule.true), names.index(rule.predicted)


def _pairs(figure: Confusion, classes: list[int], settings: Settings) -> None:
    """Draw the table of mistakes, the most frequent first; a tick selects their rows."""
    cells = figure.mistakes()
    if classes:
        cells = cells[
            np.isin(figure.true[cells], classes) | np.isin(figure.predicted[cells], classes)
        ]
    if not cells.size:
        st.caption("No mistakes.")
        return
    names = np.asarray(figure.class_names, dtype=object)
    shown = cells[:PAIRS]
    key = f"{selection.widget_key(_TABLE)}.{hash((settings.rows_key, *classes))}"
    pairs = list(zip(names[figure.true[shown]], names[figure.predicted[shown]], strict=True))
    told = np.asarray(told_apart(names, 24), dtype=object)
    screen.table(
        pd.DataFrame(
            {
                "true": told[figure.true[shown]],
                "taken for": told[figure.predicted[shown]],
                "rows": figure.rows[shown],
                "share": words.percent_numbers(figure.share("true")[shown]),
                "confidence": figure.confidence[shown],
            }
        ),
        most=420,
        **selection.of_tick(key, [CellRule(*pair) for pair in pairs], by=_TABLE),
        alt="Pairs of classes that are mixed up, those of most rows first",
        column_config={
            "rows": st.column_config.NumberColumn(format="localized"),
            "share": st.column_config.NumberColumn(
                format="%.1f %%", help="Of the rows of the true class."
            ),
            "confidence": st.column_config.NumberColumn(
                format="%.3f", help="Mean probability that these rows gave to the wrong class."
            ),
        },
    )
    tables_and_cards.download_button(
        "Download all pairs as CSV", figure.frame, "confusion", quiet=True
    )
