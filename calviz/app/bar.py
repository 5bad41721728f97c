"""The bar below the navigation: the data set and the settings as chips that open on click; and choices of a page that set them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from calviz.app import navigation, open_files, pinning, reading_panel, screen, selection, session
from calviz.app.navigation import PAGES
from calviz.app.session import Settings, look_at_class, look_at_default, md
from calviz.app.upload import draw_uploader
from calviz.core import words
from calviz.core.errors import CalvizError
from calviz.core.events import CUBE_ROOT, DEFAULT_BINS, BinNumber, Reduction, ReductionKind, Scheme
from calviz.core.predictions import Dataset, at_prevalence, cut_columns, edges_of, sliceable_columns
from calviz.core.words import condition, counted, distinct, full_sentence, shorten
from calviz.sample.sample import Where, event_rate_if_rare, rows_where

_PICK = "calviz.pick"
#: Characters of a title in a chip, which cuts what has no room, and in a list.
_FITS = 60
#: The sentences that are shown, and where.
_NOTES = "calviz.notes.shown"


def draw_bar(page: str) -> None:
    """Draw the bar of a page; while a link waits for its file, or a file for how to read it, there are no settings yet."""
    screen.draw_page_style()
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key="calviz.bar"):
        link = open_files.waiting_link()
        if link or open_files.nothing_but_unreadable():
            st.caption("Waiting for a link's file." if link else "No file of yours is open yet.")
            # The browser may know of files from before a reload.
            screen.draw_browser()
            return
        _data_set()
        # A phone has room for one chip with all settings.
        phone = screen.page_width() is not None
        # Named by the page: a link in it leads to another one, where it is closed.
        key = f"calviz.settings.{page}"
        with st.popover("Settings", key=key) if phone else nullcontext():
            chosen = draw_settings_choice()
            if phone:
                st.markdown("**Style of figures**")
                screen.draw_picture_choices()
        selection.sync_with_address(chosen, page)
        pinning.sync_with_address(chosen)
        open_files.hold(
            (*open_files.data_parameters(), *SETTINGS, selection.SELECTED, pinning.PINNED)
        )
        selection.draw_selected(chosen)
        pinning.draw_pinned(chosen)
        if not phone:
            st.space("stretch")
            with st.popover("Style", icon=":material/palette:", key="calviz.style"):
                screen.draw_picture_choices()
        screen.draw_link_buttons()
    # Where no rows are left, the page says so.
    with suppress(CalvizError):
        if phone and not chosen.where:  # which the head names
            usual = chosen.reduction == Reduction.default(chosen.whole)
            words = chosen.rows_words if usual else chosen.words
            st.caption(f"{words} · {chosen.sample.bins_words}")


def draw_foot() -> None:
    """Draw what stands below every page: where the data stay, help, and the keyboard."""
    with st.container(
        horizontal=True, gap="medium", vertical_alignment="center", key="calviz.foot"
    ):
        stays = "Your data stay on the machine that runs calviz; nothing is sent on."
        st.caption(stays, width="content")
        st.page_link(navigation.link("learn"), label="Learn: words and how it is computed")
        draw_shortcuts()


def _data_set() -> None:
    entry = open_files.current()
    loaded = entry.loaded
    titles = distinct(tuple(open_files.titles().values()), _FITS)
    names = {key: titles[title] for key, title in open_files.titles().items()}
    # Two files of the same name are told apart by their digest.
    names = {
        key: f"{name} ({key[:6]})" if list(names.values()).count(name) > 1 else name
        for key, name in names.items()
    }
    several = len({model.n for model in loaded.models.values()}) > 1
    rows = "up to " * several + counted(loaded.recognition.rows, "row")
    phone = screen.page_width() is not None
    chip = md(shorten(entry.title, _FITS)) + f" · {rows}" * (not phone)
    icon = None if phone else ":material/description:"
    with st.popover(chip, icon=icon, key=f"calviz.file.{navigation.here()}"):
        icon = ":material/upload_file:"
        navigation.draw_link("data", "Use another file", icon=icon)
        if entry.title != shorten(entry.title, _FITS):
            st.text(entry.title)
        # Of another file it is another widget: a browser would send what it held before, if the popover was closed meanwhile.
        pick = f"{_PICK}.{open_files.current_key()}"
        st.selectbox(
            "Data set",
            list(names),
            list(names).index(open_files.current_key()),
            format_func=lambda key: names.get(key, key),
            key=pick,
            on_change=lambda: open_files.select(st.session_state[pick]),
        )
        if entry.sample is not None:
            st.badge("Sample data", color="violet")
            st.caption(md(entry.sample.description))
        facts = [rows]
        if loaded.first.n_classes:
            facts.append(f"{loaded.first.n_classes:,} classes")
        st.caption(" · ".join(facts), help=f"Digest {md(loaded.digest[:8])}")
        words = "How it was read: columns and roles"
        navigation.draw_link("data", words, icon=":material/table_view:")


def draw_notes() -> None:
    """Show the queued sentences, such as how a link was applied, until the page or the file changes: a page may be drawn twice at once."""
    place = (navigation.here(), open_files.current().content_key)
    if (text := open_files.take_notes()) is not None:
        st.session_state[_NOTES] = text, place
    text, shown_at = st.session_state.get(_NOTES, ("", place))
    if shown_at != place:
        del st.session_state[_NOTES]
    elif text:
        st.info(md(text), icon=":material/info:")


def ask_for_file() -> None:
    """Ask for the file that a link was made with."""
    link = open_files.waiting_link()
    assert link is not None
    view = link.view
    noun, made_with = "link", "It does not name its file: ask whoever sent it which one was open."
    if name := link.query.get(open_files.FILE):
        made_with = f"Open **{md(name, 80)}**: this link is about it."
    if view:
        noun = "view"
        made_with = f"It was made with **{md(view.title, 80)}** ({counted(view.rows, 'row')})."
    st.title(f"This {noun} needs its file", anchor=False)
    st.markdown(
        f"{made_with} {noun.capitalize()}s carry settings, never data: open that file here and you see the same view. "
        "Once opened, it stays open in this browser until ten minutes after its tab was closed; another browser or device has to open it too.",
        help=f"The digest of the file begins with {md(link.key, 32)}.",
    )
    if missing := open_files.missing_files(link.query):
        st.markdown(md(missing, 1_000))
    draw_uploader(f"The file of this {noun}")
    draw_notes()
    reading_panel.draw_failure()
    if st.button("Show sample data instead"):
        open_files.stop_waiting()
        st.rerun()


def ask_how_to_read() -> None:
    """Ask how a file is read that could not be read as it is, in the place of a page with the results of other data."""
    reading_panel.draw_page()
    draw_uploader("Another file: predictions and true labels")


# ---- Settings

_DEFAULT = "calviz.default"
_REDUCTION_HELP: Mapping[ReductionKind, str] = {
    "top-label": "the largest probability, and whether its class is the true one",
    "top-r": "the r-th largest probability, and whether its class is the true one",
    "within-top-r": "the sum of the r largest probabilities, and whether the true class is among them",
    "class": "the probability of one class, and whether it is the true one (one against the rest)",
    "positive": "the probability of the second class, and whether it is the true one",
}


def draw_settings_choice() -> session.Settings:
    """Draw the widgets, each behind its chip, and keep what they choose as the current settings."""
    entry = open_files.current()
    requests = _Requests()
    models = tuple(entry.loaded.models)
    model = models[0]
    asked, shown = requests.get("model"), distinct(models)
    if asked and len(models) > 1 and asked not in shown.values():
        requests["model"] = shown[model]
        open_files.queue_note(f"No model here is named '{asked}'; this is '{shown[model]}'.")
    if len(models) > 1:
        with _chip("model", "Model", requests.text("model", model, models)):
            model = _choose("Model", "model", models, requests)
    data = entry.loaded.models[model]
    split = None
    if data.splits is not None:
        usual = entry.loaded.recognition.eval_split
        splits = (session.ALL_ROWS, *data.split_names)
        with _chip("split", "Split", requests.text("split", usual or session.ALL_ROWS, splits)):
            help = "The rows that all pages measure."
            split = _choose("Evaluation split", "split", splits, requests, default=usual, help=help)
            split = None if split == session.ALL_ROWS else split
    _follow_default("reduction", Reduction.default(data).kind, requests)
    with _chip("view", "View", requests.view(data)):
        reduction = _reduction(data, requests)
        prevalence = _prevalence(data, requests)
    placed: Scheme = "equal-width"
    chosen = session.Settings(entry, model, split, reduction, DEFAULT_BINS, None, (), prevalence)
    with suppress(CalvizError):  # no rows, which the page says
        placed = chosen.sample.placed
    _follow_default("scheme", placed, requests)
    with _chip("bins", "Bins", requests.bins(placed)):
        scheme, bins = _bins(requests, placed)
        navigation.draw_link("metrics", "Other norms: RMSCE (L2) and MCE (max)")
    where: Where = ()
    cuts = _edges(data, requests)
    if sliceable_columns(data):
        if cuts:
            data = cut_columns(data, edges_of(open_files.split_parts(cuts)))
        with _chip("rows", "Rows", requests.rows(data), 120):
            where = _slice(data, requests)
    # A slice keeps the bins of all rows.
    asked = None if scheme == placed and not where else scheme
    chosen = replace(chosen, bins=bins, scheme=asked, where=where, cuts=cuts)
    session.set_current(chosen)
    requests.write()
    return chosen


#: The setting of chosen edges, whose field is on the page Groups, and why the last ones could not be used.
CUTS, CUTS_ERROR = "cuts", "calviz.cuts.error"
#: The file of the last page, and its settings, as the address says them.
_LAST = "calviz.settings.last"
#: How often another value was asked for than a widget showed, by setting.
_ASKED = "calviz.asked"
#: Choices of the tab Groups, which asks for them; that a step back finds them, the address of every page holds them.
OF_GROUPS = ("slice-columns", "pairs", "against", "least", "fdr")
#: Names of the settings in the address; of the others, the keys of their widgets.
SETTINGS = (
    *OF_GROUPS,
    *("model", "split", "reduction", "r", "class", "prevalence", "scheme", "bins", CUTS),
    *(key for condition in session.CONDITIONS for key in condition[:2]),
)


class _Requests(dict[str, str]):
    """Settings that a button asks for, and those that the address has and no widget yet; what the chips say; the new address.

    The widgets are not bound to the address: streamlit's own binding needs them on screen, and these are behind chips.
    """

    def __init__(self) -> None:
        super().__init__(open_files.requested_settings())
        file, kept = st.session_state.get(_LAST, ("", {}))
        other = file != open_files.current_key()
        if other:  # bins are the same for every file
            kept = {key: value for key, value in kept.items() if key in ("scheme", "bins")}
            if file:  # the rate of the events is of the file before
                st.session_state["prevalence"] = None
        #: What differs from its default, by name in the address, as it is shown.
        self.shown: dict[str, str] = {}
        # Of the file before, the address still has them.
        gone = OF_GROUPS if other and file and not open_files.is_history_step() else ()
        for key in SETTINGS:
            if open_files.is_history_step():
                st.session_state.pop(_widget(key), None)
            texts = st.query_params.get_all(key)
            if texts and key not in gone and _widget(key) not in st.session_state:
                # Older links name each column of the tab Groups by itself.
                self.setdefault(key, texts[0] if len(texts) == 1 else open_files.join_parts(texts))
        # Streamlit forgets what had no widget in a run, as while a file is read, or none on screen, as behind a chip after a link.
        if not open_files.is_history_step():
            self.update(
                {k: v for k, v in kept.items() if not {k, _widget(k)} & {*self, *st.session_state}}
            )

    def write(self) -> None:
        """Write the address; only now is nothing asked for any more, as another click may break the run off before."""
        open_files.forget_requests()
        self.shown |= {key: self[key] for key in OF_GROUPS if self.get(key)}
        st.session_state[_LAST] = open_files.current_key(), dict(self.shown)
        for key in SETTINGS:
            if key not in self.shown:
                open_files.write_parameter(key, None)
        # At once: each write is a step in the browser's history, and a column without its value a slice that nobody chose.
        new = {k: v for k, v in self.shown.items() if st.query_params.get(k) != v}
        if new:
            st.query_params.update(new)

    def text(self, key: str, default: str, among: Sequence[str] = ()) -> str:
        """Return what a setting will be, which a chip says before the widget behind it is drawn; of another file's, the default."""
        asked, known = self.get(key), str(st.session_state.get(_widget(key)) or default)
        return asked or (known if not among or known in among else default)

    def view(self, data: Dataset) -> str:
        kind = self.text("reduction", Reduction.default(data).kind)
        if kind in ("top-r", "within-top-r"):
            return kind.replace("-r", f"-{self.text('r', '2')}")
        named = self.text("class", data.class_names[0], data.class_names) if kind == "class" else ""
        rate = _rate(self.text("prevalence", ""))
        at = f" at {rate:g} %" if rate and data.kind != "confidence" and data.n_classes == 2 else ""
        return f"class {named}" if named else kind + at

    def bins(self, usual: Scheme) -> str:
        scheme = self.text("scheme", usual)
        if scheme == "sturges":
            return "Sturges"
        if scheme in _CUBE_ROOTS:
            return scheme
        count = self.text("bins", str(DEFAULT_BINS))
        return count if scheme == "equal-width" else f"{count}, {scheme.replace('-', ' ')}"

    def rows(self, data: Dataset) -> str:
        where: list[tuple[str, str]] = []
        for column_key, value_key, _, none in session.CONDITIONS:
            if (column := self.text(column_key, none)) in sliceable_columns(data):
                if data.times is not None and column == data.time_name:
                    where += _of_days(data, self.get(value_key, ""))
                    continue
                values = session.conditional_values(data, column, rows_where(data, tuple(where)))
                # A value may be of the column before.
                value = self.text(value_key, values[0], values)
                where.append((column, value if value in values else values[0]))
        return ", ".join(condition(column, value, 20) for column, value in where) or "all"


def _chip(key: str, label: str, value: object, most: int = 24) -> Any:
    """A setting as a chip: its name in grey, its value, and the choice behind it; on a phone the choice alone."""
    if screen.page_width() is not None:
        return st.container()
    page = f".{navigation.here()}" if key == "bins" else ""
    return st.popover(f":gray[{label}] {md(shorten(value, most))}", key=f"calviz.chip.{key}{page}")


N = TypeVar("N", bound=str)


def _widget(key: str) -> str:
    """Return the key of the widget of a setting."""
    count = st.session_state.get(f"{_ASKED}.{key}", 0)
    return f"{key}.{count}" if count else key


def _asked(key: str, value: object) -> str:
    """Return the key of the widget; another one, where it shows another value than is asked for: the browser would send that again, if it stands in a closed chip."""
    if value is not None and st.session_state.get(_widget(key), value) != value:
        st.session_state[f"{_ASKED}.{key}"] = st.session_state.get(f"{_ASKED}.{key}", 0) + 1
    return _widget(key)


def _choose(
    label: str,
    key: str,
    names: Sequence[N],
    requests: _Requests,
    *,
    default: str | None = None,
    help: str | None = None,
    words: Callable[[str], str] = str,
) -> N:
    """Draw a list to choose from; the address holds the name as it is shown, but for `words` that say it in another way."""
    shown = distinct(tuple(names))
    asked = next((name for name, text in shown.items() if text == requests.get(key)), None)
    first = next((name for name in names if name == default), names[0])
    own = _asked(key, asked)
    known = st.session_state.get(own) if asked is None else asked
    # Set in every run: a browser that has not drawn this yet, as the run that set it was broken off, begins with it too.
    st.session_state[own] = known if known in names else first
    listed = partial(st.selectbox, filter_mode="contains")
    # Within a chip a few models are a list already; a second one would be opened in it.
    draw = st.radio if key == "model" and len(names) <= 10 else listed
    chosen = draw(
        label,
        list(names),
        format_func=lambda name: words(shown.get(name, str(name))),
        key=own,
        help=help,
    )
    chosen = chosen if chosen is not None else names[0]
    if chosen != first:
        requests.shown[key] = shown[chosen]
    return chosen


def _number(
    label: str,
    key: str,
    limits: tuple[int, int],
    usual: int,
    requests: _Requests,
    help: str | None = None,
) -> int:
    """Draw a whole number to choose; one that is asked for is brought between the limits."""
    least, most = limits
    asked = requests.get(key, "")
    wanted = min(max(int(asked), least), most) if asked.isdigit() else None
    own = _asked(key, wanted)
    known: int = st.session_state.get(own, usual) if wanted is None else wanted
    st.session_state[own] = known if known <= most else usual  # as in `_choose`
    chosen = int(st.number_input(label, least, most, key=own, help=help))
    if chosen != usual:
        requests.shown[key] = str(chosen)
    return chosen


def _reduction(data: Dataset, requests: _Requests) -> Reduction:
    if data.kind == "confidence":
        st.caption("Reduction: top label, the only one that confidence-only data allow.")
        return Reduction()
    kinds: tuple[ReductionKind, ...] = ("top-label", "top-r", "within-top-r", "class")
    if data.n_classes == 2:
        kinds = ("positive", "top-label")
    help = "Which score is compared with which event.\n\n" + "\n".join(
        f"- {kind}: {_REDUCTION_HELP[kind]}" for kind in kinds
    )
    kind = _choose("View (reduction)", "reduction", kinds, requests, help=help)
    st.caption(f"Score and hit: {_REDUCTION_HELP[kind]}.")
    if kind in ("top-r", "within-top-r"):
        rank = _number("r", "r", (2, data.n_classes), 2, requests, help="The rank, 2 or more.")
        return Reduction(kind, rank)
    if kind == "class":
        name = _choose("Class", "class", data.class_names, requests, help="Type to search.")
        return Reduction("class", class_name=name)
    return Reduction(kind)


def _prevalence(data: Dataset, requests: _Requests) -> float | None:
    """Ask for the share of the second class at which two classes are looked at."""
    if data.kind == "confidence" or data.n_classes != 2 or data.cells is not None:
        return None
    if "prevalence" in requests:
        st.session_state["prevalence"] = _rate(requests["prevalence"])
    percent = st.number_input(
        f"At a prevalence of '{md(shorten(data.class_names[1], 30))}' of (%)",
        value=None,
        placeholder="as in the file",
        key="prevalence",
        help="Rows are weighted by class until this is the share of the class in each split: right for rows of another prevalence "
        "that are alike within each class. The recalibrator *Offset*, given a base rate, changes the scores for it.",
    )
    rate = _rate(str(percent))
    if rate is None:
        if percent is not None:
            st.warning("A prevalence lies between 0 and 100 %, both left out.")
        return None
    try:
        at_prevalence(data, rate / 100)
    except CalvizError as error:
        st.warning(md(full_sentence(str(error))))
        return None
    requests.shown["prevalence"] = f"{rate:g}"
    return rate / 100


def _rate(text: str) -> float | None:
    """Return a percentage strictly between 0 and 100; None if the text is none."""
    with suppress(ValueError):
        if 0 < (rate := float(text)) < 100:
            return rate
    return None


def _follow_default(key: str, default: str, requests: _Requests) -> None:
    """Switch a setting to its default for these rows if that of the previous ones was not changed."""
    before = st.session_state.get(f"{_DEFAULT}.{key}", default)
    known = st.session_state.get(_widget(key))
    if before != default and known == before and key not in requests:
        requests[key] = default
        open_files.request_settings({key: default})
    st.session_state[f"{_DEFAULT}.{key}"] = default


#: Choices of as many bins as the cube root of the number of rows.
_CUBE_ROOTS: dict[str, Scheme] = {
    "cube root, equal width": "equal-width",
    "cube root, equal mass": "equal-mass",
}


def _bins(requests: _Requests, usual: Scheme) -> tuple[Scheme, BinNumber]:
    chosen = _choose(
        "Bins",
        "scheme",
        (*session.SCHEMES, *_CUBE_ROOTS),
        requests,
        default=usual,
        help="equal-width: edges at 0, 1/M, 2/M, ...; equal-mass: equally many rows in each bin; "
        "sturges: equal width, with a number of bins that follows from the number of rows; cube root: as many bins as the cube root "
        "of the number of rows, as scikit-learn 1.10 offers.",
    )
    if usual != "equal-width":
        st.caption("Equal mass at first, as one equal-width bin would hold most of the rows.")
    if chosen in _CUBE_ROOTS:
        return _CUBE_ROOTS[chosen], CUBE_ROOT
    scheme: Scheme = chosen  # type: ignore[assignment]
    if scheme == "sturges":
        return "sturges", DEFAULT_BINS
    bins = _number("Number of bins", "bins", (1, session.MAX_BINS), DEFAULT_BINS, requests)
    return scheme, bins


def _edges(data: Dataset, requests: _Requests) -> str:
    """Return the chosen edges of columns of these data; those that cannot be used leave the last ones as they are."""
    if CUTS in requests:
        st.session_state.pop(CUTS_ERROR, None)
        try:
            cut_columns(
                data, edges_of(open_files.split_parts(requests[CUTS])) if requests[CUTS] else {}
            )
            st.session_state[CUTS] = requests[CUTS]
        except CalvizError as error:
            st.session_state[CUTS_ERROR] = full_sentence(str(error))
    known = sliceable_columns(data)
    parts = open_files.split_parts(st.session_state.get(CUTS) or "")
    cuts = open_files.join_parts([p for p in parts if p.rpartition("=")[0] in known])
    if cuts:
        requests.shown[CUTS] = cuts
    return cuts


def _slice(data: Dataset, requests: _Requests) -> Where:
    conditions: list[tuple[str, str]] = []
    chosen: list[str] = []
    for column_key, value_key, label, none in session.CONDITIONS:
        left = [name for name in sliceable_columns(data) if name not in chosen]
        if not left:
            break
        column = _choose(label, column_key, (none, *left), requests, help="Look at some rows only.")
        if column not in left:
            break
        chosen.append(column)
        if data.times is not None and column == data.time_name:
            conditions += _choose_days(data, value_key, requests)
            continue
        # A second condition offers only values that occur in the rows of the first one.
        values = session.conditional_values(data, column, rows_where(data, tuple(conditions)))
        label = f"Rows where {shorten(column, 30)} is"
        value = _choose(label, value_key, values, requests, words=_value_words)
        conditions.append((column, value))
    return tuple(conditions)


def _of_days(data: Dataset, value: str) -> Where:
    """The condition that the address has on the times; none if no row meets it."""
    with suppress(CalvizError):
        rows_where(data, ((data.time_name, value),))
        return ((data.time_name, value),)
    return ()


def _choose_days(data: Dataset, key: str, requests: _Requests) -> Where:
    """Ask for the first and the last day of the rows, either of which may be left open."""
    assert data.times is not None
    where = _of_days(data, requests.get(key, ""))
    since = until = ""
    if where:
        requests.shown[key] = where[0][1]
        words = _value_words(where[0][1]).removeprefix("since ").replace("until ", " to ")
        if words[0] not in "(>≤":  # as of a link with times
            since, _, until = words.partition(" to ")
    ends = [*map(str, (data.times.min(), data.times.max())), since, until]
    first, last = (end(day[:10] for day in ends if day) for end in (min, max))
    # Of other days it is another widget: a browser would send what it held before.
    keys = [f"calviz.{key}.{side}.{since}.{until}" for side in ("from", "to")]

    def changed() -> None:
        begin, end = (st.session_state[key] for key in keys)
        days = ", ".join(f"{d} 23:59:59" for d in (begin and begin - timedelta(1), end) if d)
        one_side = f"{'> ' if begin else '≤ '}{days}" if days else ""
        open_files.request_settings({key: f"({days}]" if begin and end else one_side})

    with st.container(horizontal=True):
        st.date_input("From", since or None, first, until or last, keys[0], on_change=changed)
        st.date_input("To", until or None, since or first, last, keys[1], on_change=changed)
    return where


def _value_words(value: str) -> str:
    """A value in words, as conditions say it: "since 2026-09-09"."""
    return condition("", value).strip().removeprefix("= ").removeprefix("in ")


# ---- Reductions on a page

_ONE_CLASS = "calviz.one_class"


def choose_class(chosen: Settings) -> None:
    """Where one class is decided on, ask which one if there are more than two.

    This sets the view of the bar, so that link, title and other pages follow.
    """
    data = chosen.whole
    if data.kind == "confidence" or data.n_classes == 2:
        return
    shown = distinct(data.class_names)
    is_one = chosen.reduction.kind == "class"
    st.session_state[_ONE_CLASS] = chosen.reduction.class_index(data) if is_one else None
    st.selectbox(
        "Decide for or against the class",
        range(data.n_classes),
        index=None,
        format_func=lambda index: shown[data.class_names[index]],
        key=_ONE_CLASS,
        on_change=_look_at_chosen_class,
        args=(chosen,),
        filter_mode="contains",
        placeholder="One of the classes",
        width=420,
        help="One class against the rest, as the view in the bar says. Type to search.",
    )


def needs_class(chosen: Settings) -> bool:
    """Whether a page about one class has to ask which one, and none is chosen yet."""
    data = chosen.whole
    return data.kind != "confidence" and data.n_classes > 2 and chosen.reduction.kind != "class"


def _look_at_chosen_class(chosen: Settings) -> None:
    index: int | None = st.session_state[_ONE_CLASS]
    if index is None:  # cleared
        look_at_default(chosen.whole)
    else:
        look_at_class(chosen.whole, index)
    st.rerun()  # the whole page, not only the section that asks


def draw_other_view(chosen: Settings, other_words: str | None = None) -> None:
    """With two classes, say which of the two usual reductions is shown, add `other_words` about the other one, and offer to switch."""
    other = chosen.reduction.other_of_two(chosen.whole)
    # Of a rare event, nearly all rows have the other label: the top label tells nothing.
    if other is None or (other.kind == "top-label" and event_rate_if_rare(chosen.sample)):
        return
    first, second = (md(name, 40) for name in chosen.whole.class_names)
    shown = f"the top label, whichever of {first} and {second} it is"
    if chosen.reduction.kind == "positive":
        shown = f"the positive class, {second}"
    text = f"Two classes: this page looks at {shown}."
    if other_words:
        text += f" {md(words.keep_units_together(other_words))}"
    place = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    place.markdown(text, width="content")
    place.button(
        f"Show the {other.label}",
        on_click=open_files.request_settings,
        args=({"reduction": other.key},),
        key="calviz.other_view",
    )


# ---- Keyboard

_SHORTCUTS_HTML = """
<button type="button" class="open">Keyboard</button>
<span class="status" role="status" aria-live="polite"></span>
<dialog aria-label="Keyboard shortcuts"><form method="dialog"><h2>Keyboard</h2><dl></dl>
<button autofocus>Close</button></form></dialog>
"""
_OTHERS = (
    ("c", "copy the figure that is pointed at"),
    (
        "Tab",
        "to the next control; in a table, arrows move, Space opens a cell, Shift + Space ticks a row",
    ),
    ("?", "this list"),
)


def draw_shortcuts() -> None:
    """Draw the button that lists the shortcuts; they do nothing while somebody types."""
    without = navigation.without_use()
    pages = [
        {"key": page.letter, "title": page.title, "page": "" if page is PAGES[0] else page.key}
        for page in PAGES
        if page.key not in without
    ]
    screen.component("shortcuts", _SHORTCUTS_HTML)(
        key="calviz.shortcuts", data={"pages": pages, "others": _OTHERS, "font": screen.PAGE_FONT}
    )
