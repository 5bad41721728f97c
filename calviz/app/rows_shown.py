"""Rows on a page: the selected ones with their numbers, rows worth looking at, and rows as cards."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast
from weakref import ref

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.column_config import NumberColumn

from calviz.app import navigation, screen, selection, session, tables_and_cards
from calviz.app.selection import Selected, SelectionRule, SliceRule
from calviz.app.session import Settings, cached_results, md
from calviz.core import words
from calviz.core.blocks import Factor, FloatArray, IntArray
from calviz.core.errors import CalvizError, InputError
from calviz.core.predictions import Dataset, Predictions, columns_with_slices
from calviz.core.words import capitalised, counted, decimal, percent, points, shorten
from calviz.data.writing import are_pictures, checked_folder, read_picture
from calviz.sample.losses import PartNumbers, Why, notable_rows, part_numbers
from calviz.sample.sample import predicted_classes, where_words
from calviz.verdicts.watching import watched

#: What may be concluded from selected rows, and why.
NO_TEST_NOTE = (
    "No test is run on these rows.",
    "They were chosen by looking at them, and the rest of the page is not about them alone. The interval is that of these rows alone; "
    "of a slice found to be off, the headline has that on new rows.",
)
NO_INTERVAL_NOTE = (
    "Their gap is no sign of miscalibration.",
    "They were chosen by their true class: even for a calibrated model their gap is not 0, so it has no interval. The rest of the page "
    "is not about them alone.",
)


def draw_selection(
    settings: Settings, *, hint: str = "", rows: bool = True, when: str = ""
) -> None:
    """Draw the selection on a page; without one, say `hint` to select on this page.

    Parameters
    ----------
    settings : Settings
    hint : str
        One sentence, shown as long as nothing is selected.
    rows : bool
        Whether the rows are listed, with their classes and slices.
    when : str
        " before recalibration" on a page that is about other scores.
    """
    chosen = selection.current(settings)
    if chosen is None:
        if hint:
            st.caption(hint)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        name = capitalised(chosen.name)
        st.subheader(
            f"{md(name, 200)}, {counted(chosen.rows.size, 'row')}", anchor=False, width="content"
        )
        if screen.page_width() is not None:
            # On a phone the chip that clears it is out of sight.
            st.button("Clear it", key="calviz.selected.clear.phone", on_click=selection.clear)
    if not chosen.rows.size:
        st.caption("None of the rows shown is among them.")
        return
    some, every = _measured(chosen.rule, settings)
    st.markdown(f"They are {_shares(some, settings)}{',' * bool(when)}{when}.")
    state = settings.sample.once(watched)
    where = {*chosen.rule.where} if type(chosen.rule) is SliceRule else set()
    if state is not None and (one := state.within) and where == {*one.where}:
        said = f"{one.headline(state.shown)}. {capitalised(one.when(state.shown))}."
        st.markdown(md(said, 1_000))
    draw_parts(settings, {"selected": some, session.ALL_ROWS: every}, chosen.rule)
    if rows:
        sections: dict[str, Callable[[], None]] = {_ROWS: partial(_table, settings, chosen.rows)}
        for name, factor_of in _columns(settings).items():
            sections[md(name, 40)] = partial(_spread_table, settings, chosen.rows, name, factor_of)
        # The name in the link.
        navigation.draw_sections(sections, key="rows-by")
        _download(settings, chosen)


def slice_words(settings: Settings) -> str:
    """Name the slice whose rows are selected, with its mean score and hits; "" without one."""
    chosen = selection.current(settings)
    if chosen is None or not isinstance(chosen.rule, SliceRule) or not chosen.rows.size:
        return ""
    some, _ = _measured(chosen.rule, settings)
    score, hit = words.score_and_hit(settings.reduction)
    digits = words.share_decimals(some.score, some.observed)
    means = f"{score} {percent(some.score, digits)}, {hit} {percent(some.observed, digits)}"
    return f"{capitalised(chosen.name)}: {means}"


def say_not_followed(settings: Settings, subject: str) -> None:
    """Say that this page does not follow the selection, in a sentence that begins with `subject`, with a button that shows a selected slice alone; nothing without a selection."""
    chosen = selection.current(settings)
    if chosen is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            words = f"{subject}, not only the selected ones ({md(chosen.name, 200)})."
            st.caption(words, width="content")
            where = chosen.rule.where if type(chosen.rule) is SliceRule else ()
            if where and st.button(f"Look at {md(where_words(where))} alone"):
                session.look_at_slice(settings.whole, where)
                selection.choose(None)


def say_changed(settings: Settings, *, primary: bool = False, when: str = "") -> str:
    """Say, with a link to the tab Time, that calibration has changed, as these rows do not tell what holds on new ones; return since when if the headline says it or the day is well known, or ""."""
    state = settings.sample.once(watched)
    # Where a map is fitted (`primary`), the comparison advises what a change within a slice asks for.
    if state is not None and state.found is not None and not (primary and state.found.where):
        verdict = session.evaluation(settings).verdict
        with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
            lead = f"{capitalised(when.strip())}: c" if when else "C"
            words = f"{lead}alibration has changed. What these rows show may not hold on new ones."
            help_text = md(state.sentence(), 1_000)
            st.markdown(f":material/warning: {md(words)}", help=help_text, width="content")
            navigation.draw_link("over_time", "Time", width="content")
            if state.is_dated or (verdict is not None and verdict.changed):
                day, where = state.found.since, state.found.where
                since = f"{state.shown(day)}{' where ' * bool(where)}"
                words = f"Only the rows since {since}{md(where_words(where))}"
                if st.button(words, type="primary" if primary else "secondary"):
                    session.look_on_days(settings, (day, ""), where)
                    st.rerun()  # the whole page, also from a part that is drawn by itself
                return f"{since}{where_words(where)}"
    return ""


def draw_selection_by_model(settings: Settings) -> None:
    """Draw the selected rows for every model of the file, as far as it has them."""
    chosen = selection.current(settings)
    if chosen is None or not chosen.rows.size:
        return
    parts = {}
    for name in settings.entry.loaded.models:
        with suppress(CalvizError):
            sample = replace(settings, model=name).sample
            rows = _rows_in(sample.data, settings.sample.data)[chosen.rows]
            parts[name] = part_numbers(sample, rows[rows >= 0])
    by = f", as {md(settings.model, 40)} has them" if len(parts) > 1 else ""
    st.subheader(f"Selected: {md(chosen.name, 200)}{by}", anchor=False)
    draw_parts(settings, parts, chosen.rule)


@cached_results(6)
def _measured(rule: SelectionRule, settings: Settings) -> tuple[PartNumbers, PartNumbers]:
    """Return the numbers of the selected rows, and of all rows."""
    rows = selection.selected(rule, settings).rows
    return part_numbers(settings.sample, rows), part_numbers(settings.sample)


def _shares(some: PartNumbers, settings: Settings) -> str:
    by_weight = " by weight" * (settings.whole.weights is not None)
    shares = [f"{percent(some.share)} of the rows{by_weight}"]
    if settings.reduction.kind == "top-label" and some.misses == some.misses:
        shares.append(f"{percent(some.misses)} of the mistakes")
    if some.loss_share is not None:
        shares.append(f"{percent(some.loss_share)} of the log loss")
    return ", ".join(shares[:-1]) + (" and " if len(shares) > 1 else "") + shares[-1]


def draw_parts(settings: Settings, parts: dict[str, PartNumbers], rule: SelectionRule) -> None:
    """Draw parts of the rows, one line each, and what may be concluded; no interval if the rows were chosen by outcome."""
    # The interval of all rows is given by the verdict, which computes it in another way.
    bare = {name for name in parts if rule.by_outcome or name == session.ALL_ROWS}
    table = parts_table(settings, parts, bare)
    if screen.page_width() is not None and len(parts) < 3:
        # A phone has room for two parts beside each other, not for all their numbers.
        table = table.set_index("").T.reset_index(names="")
    right = dict.fromkeys(table.columns[1:], tables_and_cards.RIGHT)
    screen.table(table, alt="The selected rows beside others", column_config=right)
    note, why = NO_INTERVAL_NOTE if rule.by_outcome else NO_TEST_NOTE
    st.caption(note, help=why)


def parts_table(
    settings: Settings, parts: dict[str, PartNumbers], bare: Collection[str] = ()
) -> pd.DataFrame:
    """Return rows, mean score, hits, gap with its interval, and loss, one line per part; `bare` parts have no interval."""
    score, hit = words.score_and_hit(settings.reduction)
    lines = []
    for name, part in parts.items():
        interval = part.interval
        line = {
            "": name,
            "rows": f"{part.rows:,}",
            score: percent(part.score, 2),
            hit: percent(part.observed, 2),
            "gap, points": points(part.gap, plus=True),
            "95 % interval": ""
            if interval is None or name in bare
            else f"{points(interval.low)} to {points(interval.high)}",
        }
        if part.log_loss is not None:
            line["mean log loss"] = f"{part.log_loss:.3f}"
        lines.append(line)
    return pd.DataFrame(lines)


def _download(settings: Settings, chosen: Selected) -> None:
    # The button's callback outlives a visitor who leaves; the data must not, hence the weak reference.
    weak_data, numbers, reduction = ref(settings.whole), settings.row_numbers, settings.reduction
    rows = chosen.rows if numbers is None else numbers[chosen.rows]

    def table() -> pd.DataFrame:
        data = weak_data()
        if data is None:
            return pd.DataFrame()
        return tables_and_cards.rows_table(data, rows, reduction, None)

    tables_and_cards.download_button(
        f"Download {counted(chosen.rows.size, 'row')} as CSV", table, "selected"
    )


#: Largest number of rows shown; the download has all.
SHOWN = 200
_ROWS, _TRUE, _PREDICTED = "Rows", "By true class", "By predicted class"


def _spread_table(
    settings: Settings, indices: IntArray, name: str, factor_of: Callable[[], Factor]
) -> None:
    factor = factor_of()
    how = None if settings.whole.weights is None else "By weight."
    share, mean = (NumberColumn(format=form, help=how) for form in ("%.1f %%", "%.4f"))
    screen.table(
        tables_and_cards.with_signs(spread(factor, indices, settings), {"gap": 1}),
        most=400,
        alt=f"The selected rows {name}",
        column_config={
            "of the selection": share,
            "of all rows": share,
            "mean score": mean,
            "observed": mean,
            "gap": NumberColumn(help="Mean score minus observed, in points."),
        },
    )


def _table(settings: Settings, indices: IntArray) -> None:
    data = settings.sample.data
    events = settings.sample.scored
    # Errors of the way that the rows are off come first: where scores are too high, misses with the highest.
    off = (events.score - events.hit)[indices]
    high = off @ settings.sample.row_weights[indices] > 0
    shown = indices[np.argsort(-off if high else off, kind="stable")][:SHOWN]
    screen.table(
        tables_and_cards.rows_table(data, shown, settings.reduction, settings.row_numbers),
        most=420,
        column_config={"score": NumberColumn(format="%.4f")},
        alt="The selected rows",
    )
    first = f"Furthest {'above' if high else 'below'} their outcome first."
    of_all = f" {SHOWN} of {counted(len(indices), 'row')} are shown; the download has all, in the order of the file."
    st.caption(first + of_all * (len(indices) > SHOWN))


def _columns(settings: Settings) -> dict[str, Callable[[], Factor]]:
    """Return what makes the classes, and the columns that Groups slices by, as it slices them."""
    data, names = settings.sample.data, tuple(settings.sample.data.class_names)
    columns: dict[str, Callable[[], Factor]] = {}
    if names:
        predicted = data.predicted
        if predicted is not None:
            columns[_PREDICTED] = partial(Factor, predicted, names)
        if data.labels is not None:
            columns[_TRUE] = partial(Factor, data.labels, names)
    for name in columns_with_slices(settings.whole):
        if name in data.to_slice():
            columns[f"By {name}"] = partial(data.sliced, name)
    return columns


def spread(factor: Factor, indices: IntArray, settings: Settings) -> pd.DataFrame:
    """Return rows, shares, mean score and share of hits of each level within the selection (all but rows by weight), most rows first.

    Parameters
    ----------
    factor : Factor
        The level of each row; a code below 0 for none.
    indices : ndarray of int
        The selected rows.
    settings : Settings
    """
    events, weights = settings.sample.scored, settings.sample.row_weights
    codes, size = factor.codes, len(factor.levels)

    def sums(rows: IntArray, values: FloatArray) -> FloatArray:
        return np.bincount(codes[rows], values[rows], minlength=size) * 1.0

    selected, everywhere = indices[codes[indices] >= 0], np.flatnonzero(codes >= 0)
    mass = sums(selected, weights)
    count = mass if events.counted else np.bincount(codes[selected], minlength=size)
    present = np.flatnonzero(mass)
    own = (sums(selected, weights * values)[present] for values in (events.score, events.hit))
    score, observed = (total / mass[present] for total in own)
    return pd.DataFrame(
        {
            "value": np.asarray(factor.levels, dtype=object)[present],
            "rows": count[present].round().astype(int),
            "of the selection": 100 * mass[present] / max(weights[indices].sum(), 1e-300),
            "of all rows": 100 * sums(everywhere, weights)[present] / weights.sum(),
            "mean score": score,
            "observed": observed,
            "gap": 100 * (score - observed),
        }
    ).sort_values("rows", ascending=False, kind="stable")


# ---- Rows worth looking at

#: Largest number of rows that are listed.
MOST_NOTABLE = 200
#: The heading of each choice, and of its column.
_WHY = {
    "mistake": ("surest mistakes", "off by"),
    "loss": ("highest loss", "loss"),
    "bin": ("against their bin", "off its bin by"),
    "models": ("models disagree", "answers"),
}


@navigation.fragment
def explore_notable_rows(settings: Settings) -> None:
    """Draw a choice of what makes a row notable, and the rows."""
    chosen = selection.current(settings)
    among = None if chosen is None else chosen.rows
    if chosen is not None:
        st.caption("Of the selected rows:")
    several = _predict_alike(settings)
    why = session.choose_one(
        "What stands out",
        {key: name for key, (name, _) in _WHY.items() if key != "models" or several},
        key="notable",
    )
    try:
        if why == "models":
            rows, value = _disagreeing(settings, among)
        else:
            with session.computing(settings, "Looking for rows …") as sample:
                rows, value = notable_rows(sample, cast(Why, why), most=MOST_NOTABLE, among=among)
    except CalvizError as reason:
        st.caption(md(str(reason), 300).capitalize())
        return
    if not rows.size:
        st.caption("There are none.")
        return
    data = settings.sample.data
    table = tables_and_cards.rows_table(data, rows, settings.reduction, settings.row_numbers)
    column = _WHY[why][1]
    table.insert(1, column if column not in table else f"{column} (calviz)", value)
    screen.table(
        table,
        most=320,
        column_config={
            table.columns[1]: NumberColumn(format="%d" if why == "models" else "%.3f"),
            "score": NumberColumn(format="%.4f"),
        },
        alt=f"Rows: {_WHY[why][0]}",
    )
    explore_row_cards(settings, rows)
    tables_and_cards.download_button("Download these as CSV", table, why, quiet=True)


def _rows_in(other: Dataset, data: Dataset) -> IntArray:
    """For each row of a model, that of another model of the file; -1 where it has none."""
    if data.ids is None or other.ids is None or np.array_equal(data.ids, other.ids):
        return np.arange(data.n)
    # Rows only differ where a column names the models: their identifiers are unique.
    return np.asarray(pd.Index(other.ids).get_indexer(data.ids))


def _predict_alike(settings: Settings) -> bool:
    """Whether the file has several models that predict the same classes."""
    models = settings.entry.loaded.models.values()
    names = {m.class_names for m in models}
    return len(models) > 1 and len(names) == 1 and all(isinstance(m, Predictions) for m in models)


def _disagreeing(settings: Settings, among: IntArray | None) -> tuple[IntArray, FloatArray]:
    """Return the rows for which the models predict different classes, and the number of classes; most classes first, then by score."""
    own, classes = predicted_classes(settings.whole), []
    for model in settings.entry.loaded.models.values():
        rows = _rows_in(model, settings.whole)
        classes.append(np.where(rows < 0, own, predicted_classes(model)[rows]))
    numbers = slice(None) if settings.row_numbers is None else settings.row_numbers
    sorted_classes = np.sort(np.stack(classes), axis=0)[:, numbers]
    count = 1 + np.count_nonzero(np.diff(sorted_classes, axis=0), axis=0)
    order = np.lexsort((-settings.sample.top_label.scored.score, -count))
    order = order if among is None else order[np.isin(order, among)]
    rows = order[count[order] > 1][:MOST_NOTABLE]
    return rows, count[rows].astype(float)


# ---- Cards

#: Largest number of cards, and cards in a line.
MOST_CARDS, BESIDE = 12, 4
#: Environment variable that names the folder when the server is started; visitors of a server that others can reach cannot name one.
PICTURES_VARIABLE = "CALVIZ_PICTURES"


def explore_row_cards(settings: Settings, rows: IntArray) -> None:
    """Draw the first rows as cards, if the file has texts or names of pictures."""
    data = settings.sample.data
    columns = _card_columns(data)
    if not columns:
        return
    if st.query_params.get("beside") == "id" and "beside" not in st.session_state:
        st.session_state["beside"] = data.id_name  # a link of an earlier version
    name = st.segmented_control(
        "Beside them",
        list(columns),
        key="beside",
        bind="query-params",
        format_func=lambda key: shorten(key, 40),
        help="What was classified, where a column of the file holds it.",
    )
    if name is None or name not in columns:
        return
    values = [str(columns[name][i]) for i in rows[:MOST_CARDS]]
    folder = _folder() if are_pictures(values) else None
    if are_pictures(values) and folder is None:
        return
    table = tables_and_cards.rows_table(
        data, rows[:MOST_CARDS], settings.reduction, settings.row_numbers
    )
    missing: dict[str, None] = {}
    for start in range(0, len(values), BESIDE):
        for place, position in zip(
            st.columns(BESIDE), range(start, min(start + BESIDE, len(values))), strict=False
        ):
            with place, st.container(border=True):
                if folder is None:
                    # Characters of a text that are shown.
                    st.markdown(md(values[position], 1_200))
                elif reason := _picture(folder, values[position]):
                    missing[reason] = None
                    st.caption("no picture")
                st.caption(_card_words(table.iloc[position]))
    if missing:
        first, *others = missing
        more = f" (and {len(others)} more)" if others else ""
        st.caption(f"Not shown: {md(first, 300)}{more}")


def _card_columns(data: Dataset) -> Mapping[str, Any]:
    """Return the columns that can be shown with the rows: texts, and identifiers and groups that name pictures."""
    columns: dict[str, Any] = {name: factor.values() for name, factor in data.texts.items()}
    if data.ids is not None and are_pictures(islice(data.ids, 50)):
        columns[data.id_name] = data.ids
    for name, factor in data.groups.items():
        if are_pictures(factor.levels):
            columns[name] = factor.values()
    return columns


def _folder() -> Path | None:
    """Return the folder of the pictures: the server's, or the one that users type in on their own machine."""
    path = os.environ.get(PICTURES_VARIABLE, "")
    may_choose = st.get_option("server.address") in screen.LOOPBACK
    may_choose = may_choose and screen.host() in (None, *screen.LOOPBACK)
    if may_choose:
        path = st.text_input(
            "Folder of the pictures",
            value=path,
            key="calviz.pictures.folder",
            persist_state="session",
            help="On this machine. Only PNG, JPEG, GIF and WebP files inside it are shown; nothing is fetched, and the folder is not "
            "part of the link.",
        )
    if not path:
        if not may_choose:
            st.caption(
                f"Pictures are shown only if their folder was named in {PICTURES_VARIABLE} when this server was started."
            )
        return None
    try:
        return checked_folder(path)
    except InputError as reason:
        st.caption(md(words.full_sentence(str(reason)), 300))
        return None


def _picture(folder: Path, name: str) -> str:
    """Draw a picture; return the reason if that is not possible, else ""."""
    try:
        kind, content = read_picture(folder, name)
    except InputError as reason:
        return str(reason)
    # As a data URL and not as bytes: the browser decodes it, not the server.
    st.image(f"data:{kind};base64,{base64.b64encode(content).decode()}", width="stretch")
    return ""


def _card_words(row: Any) -> str:
    """Return the row's number, true class, predicted class and score in one line."""
    classes = {"true": "label", "predicted": "predicted"}
    said = [f"{word}: {shorten(row[name], 30)}" for word, name in classes.items() if name in row]
    return md(" · ".join([f"row {row['row']:,}", *said, decimal(float(row["score"]), 3)]), 300)
