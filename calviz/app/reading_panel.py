"""How a file is read: what is wrong or doubtful, its first rows, and the role of each column, which a click changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pandas as pd
import streamlit as st

from calviz.app import navigation, open_files, screen
from calviz.app.open_files import FileSource, OpenFile, UnreadableFile
from calviz.app.session import md, on_screen
from calviz.core.errors import CalvizError, InputError, Reading
from calviz.core.words import capitalised, counted, shorten, told_apart
from calviz.data import FirstRows, ReadingOptions, first_rows
from calviz.data.csv_dialect import NAMES, SEPARATORS
from calviz.data.first_rows import ColumnRole

#: Columns shown at once, pixels per character of a cell, and the least and largest width of a column.
_AT_ONCE, _CHARACTER, _NARROWEST, _WIDEST = 12, 8, 130, 220
#: Pixels of the numbers of the rows, and the share of their width that columns keep if all then fit.
_NUMBERS, _LEAST = 64, 0.9
#: The choice of a label that is none of the classes.
_NONE = ""
#: Pixels beside each other in sight on a page.
_ROOM = {"narrow": 340, "small": 560, "usual": 960, "wide": 1250}
_OPEN, _SHOWN = "calviz.reading.open", "calviz.reading.shown"

#: Each role: its chip, its colour, and what it means.
_ROLES: Mapping[ColumnRole, tuple[str, str, str]] = {
    "label": ("Label", "green", "the true class"),
    "score": ("Score", "blue", "of a class, or of the event"),
    "model": ("Model", "blue", "the score of a model of its own"),
    "confidence": ("Confidence", "blue", "that the prediction is right"),
    "prediction": ("Prediction", "violet", "the predicted class"),
    "correct": ("Correct", "green", "whether the prediction was right"),
    "split": ("Split", "gray", "test, calibration, …"),
    "group": ("Group", "gray", "to slice by"),
    "time": ("Time", "gray", "of each row"),
    "weight": ("Weight", "gray", "how much each row counts"),
    "cluster": ("Cluster", "gray", "rows that belong together"),
    "id": ("Identifier", "gray", "of each row"),
    "named model": ("Model of the row", "gray", "its name"),
    "ignored": ("Not used", "gray", "in any result"),
}


# ---- A file that could not be read


def draw_page() -> None:
    """Draw the file that could not be read as a page of its own, in the place of the results of other data."""
    failure = open_files.unreadable_file()
    assert failure is not None
    name = md(failure.title, 60)
    count = len(failure.questions)
    asked = f"{'One question' if count == 1 else f'{count} questions'} about {name}"
    asks = failure.asks or failure.may_be_for_map
    title = asked if asks and count else f"{name} could not be read"
    if asks and failure.to_say:
        title = f"Which column of {name} is {failure.to_say}?"
        if any(one.asks for one in failure.questions):  # of the scores, which are a guess at most
            title = f"Which columns of {name} are the scores and the label?"
    elif not failure.message:
        title = f"{name} is not read yet"
    if failure.lacks_labels:
        title = f"No labels found in {name}"
    if (answer := failure.obvious) is not None:
        (question,) = failure.questions
        title = f"{capitalised(answer.label)}?"
        if question.where:
            them = "Leave them out" if answer.label.startswith("leave out the rows") else title[:-1]
            title = md(f"{capitalised(question.what)}. {them}?", 200)
    st.title(title, anchor=False)
    draw_failure(titled=True)


def draw_failure(*, titled: bool = False) -> None:
    """Draw what is wrong with the file that could not be read, which may stand in the title, the ways to read it, its first rows, and the way back."""
    failure = open_files.unreadable_file()
    if failure is None:
        return
    asks = failure.asks or failure.lacks_labels or failure.may_be_for_map
    box, icon = (st.warning, "help") if asks else (st.error, "error")
    questions, obvious, name = failure.questions, failure.obvious, f"{failure.title}: " * titled

    def say(message: str) -> None:
        text = on_screen(message).removeprefix(name)
        # A file that is named keeps its own letters.
        text = text if text.startswith(failure.title) else capitalised(text)
        box(md(text, 2_000), icon=f":material/{icon}:")

    together = len(questions) > 1 or any(question.unmatched[0] for question in questions)
    if obvious is not None:
        where = questions[0].where or questions[0].what
        st.markdown(md(f"{failure.title}: {where}; {questions[0].remedy}.", 2_000))
    elif together:
        _draw_questions(failure, say)
    elif failure.message:
        say(failure.message)
    with st.container(horizontal=True, vertical_alignment="center"):
        for j, answer in enumerate(questions[0].answers if questions and not together else ()):
            usual = obvious or (j == 0 and _asks_for_label(questions[0]))
            kind: Literal["primary", "secondary"] = "primary" if usual else "secondary"
            if st.button(md(capitalised(answer.label), 200), key=f"calviz.way.{j}", type=kind):
                read_again(failure.title, failure.source, failure.options.answered(answer))
        if open_files.waiting_link() is None:
            _draw_way_back(open_files.current())
    if failure.lacks_labels is not False:
        navigation.draw_folded(
            "Give these rows calibrated probabilities, without labels",
            lambda: _draw_calibration(failure),
            key=f"calviz.no-labels.{failure.title}",
            opened=failure.lacks_labels or failure.may_be_for_map,
        )
    shown = failure.first_rows
    if shown is None:
        if failure.is_text:
            with st.expander("How the text is divided"):
                options = draw_details("failed", failure.options, (), text=True)
            if options is not None:
                read_again(failure.title, failure.source, options)
        return
    scores = [name for name, role in shown.roles.items() if role == "score"]
    answers = [answer for question in questions for answer in question.readings]
    if len(scores) == 1 and any("class_names" in each.options for each in answers):
        shown = replace(shown, asked=shown.asked | {*scores})  # which class it is of
    _draw_rows_of(failure, shown)


def _draw_calibration(failure: UnreadableFile) -> None:
    """Draw what needs no labels; the recalibrators, which no other file needs, are imported for it."""
    from calviz.app.recalibrate_results import draw_unlabelled

    draw_unlabelled(failure)


def _draw_questions(failure: UnreadableFile, say: Callable[[str], None]) -> None:
    """Draw all that a file asks, each with its answers, and one button that reads it with those that were chosen."""
    chosen: list[Reading | None] = []
    for j, question in enumerate(failure.questions):
        say(str(question))
        key = f"calviz.answer.{j}.{abs(hash(failure.options))}"
        answers = question.answers
        words = [md(capitalised(answer.label), 200) for answer in answers]
        if question.unmatched[0]:
            chosen.append(_draw_matching(question, key))
        elif len(answers) == 1:
            ticked = st.checkbox(words[0], value=answers[0].proposed, key=key)
            chosen.append(answers[0] if ticked else None)
        else:
            index = 0 if len(answers) == 2 and _asks_for_label(question) else None
            picked = st.radio("Answer", words, index=index, key=key, label_visibility="collapsed")
            chosen.append(None if picked is None else answers[words.index(picked)])
    given = [answer for answer in chosen if answer is not None]
    left = 0 if any(one.no_labels for one in given) else len(chosen) - len(given)
    clicked = st.button(
        "Read it with these answers",
        icon=":material/check:",
        type="primary",
        disabled=left > 0,
        key="calviz.way.all",
    )
    if left:
        st.caption(f"Still to answer: {counted(left, 'question')}.")
    if clicked:
        read_again(failure.title, failure.source, failure.options.answered(Reading.joined(given)))


def _asks_for_label(question: InputError) -> bool:
    """Whether it is which column is the label, and the first answer proposes one."""
    first, *others = question.answers
    return not first.no_labels and any(answer.no_labels for answer in others)


def _draw_matching(question: InputError, key: str) -> Reading | None:
    """Draw a list of the classes, and of none, for each label, as proposed; return the answer, or None if not each label has a class of its own or none."""
    classes, labels = question.unmatched
    proposed: Mapping[str, str] = {}
    if question.readings:
        names = question.readings[0].options["class_names"]
        proposed = dict.fromkeys(labels, _NONE) | dict(zip(names, classes, strict=True))
    choices = (*classes, _NONE)
    with st.container(horizontal=True):
        chosen = {
            label: st.selectbox(
                f"'{md(shorten(label, 30))}' is",
                choices,
                index=choices.index(proposed[label]) if label in proposed else None,
                format_func=lambda name: shorten(name, 40) or "none: leave its rows out",
                key=f"{key}.{place}",
                placeholder="choose a class",
                width=220,
            )
            for place, label in enumerate(labels)
        }
    label_of = {name: label for label, name in chosen.items() if name}
    left_out = [*chosen.values()].count(_NONE)
    if not label_of or len(label_of) + left_out < len(labels):
        if None not in chosen.values() and label_of:
            st.caption("Two labels cannot be the same class.")
        return None
    names = tuple(label_of.get(name, name) for name in classes)
    return Reading("", {"class_names": names, **({"repair": ("drop-labels",)} if left_out else {})})


def _draw_way_back(entry: OpenFile) -> None:
    """Offer to go back to what was loaded before; a file of the user's own is named."""
    if entry.sample is None:
        st.caption(f"{md(entry.title, 60)} is still loaded.", width="content")
    words = "Show sample data instead" if entry.sample else f"Back to {md(entry.title, 40)}"
    if st.button(words, type="tertiary"):
        open_files.forget_unreadable_file()
        st.rerun()


def _draw_rows_of(failure: UnreadableFile, shown: FirstRows) -> None:
    if shown.recognised:
        said = "Its first rows, and what each column is taken for: choose a role to change it."
    else:
        said = "Its first rows. Nothing is read yet: a role with a question mark is a proposal; choose one to change it."
        told = failure.options
        of_user = {told.label, *(told.scores or ()), *(told.models or ())}
        with_role = {name for name, role in shown.roles.items() if role != "ignored"}
        shown = replace(shown, asked=shown.asked | (with_role - of_user))
    models = [*dict.fromkeys(shown.models.values())]
    if models and shown.recognised and shown.asked.isdisjoint(shown.models):
        named = ", ".join(f"'{md(shorten(name, 40))}'" for name in models[:6])
        said = f"**{len(models)} models: {named}{', …' * (len(models) > 6)}.** {said}"
    st.caption(said)
    chosen = draw_rows("failed", shown)
    if chosen not in (None, failure.options):
        open_files.answer_in_part(failure, chosen)
        st.rerun()
    options, as_shown = None, shown.options if shown.recognised else shown.as_shown()
    if failure.to_say:
        st.markdown(f"**Still to say:** {failure.to_say}.")
    elif (
        (failure.to_say is not None or not failure.questions)
        and (not failure.message or not (shown.recognised or as_shown == failure.options))
        and st.button("Read it like this", icon=":material/check:", type="primary")
    ):
        options = as_shown
    with st.expander("More about the scores and labels"):
        options = options or draw_details(
            "failed", shown.options, [*shown.roles], text=failure.is_text
        )
    if options is not None:
        read_again(failure.title, failure.source, options)


# ---- A file that was read


def draw_other_ways(entry: OpenFile) -> None:
    """Offer to read a file differently; the panel stays open until it is closed."""
    if entry.source is None:
        return
    is_open = st.session_state.get(_OPEN) == entry.key
    if entry.loaded.recognition.model_column and st.button("Read it as one model"):
        read_again(entry.title, entry.source, replace(entry.options, model_column=""))
    if not is_open:
        if st.button("Read it differently", icon=":material/tune:"):
            st.session_state[_OPEN] = entry.key
            st.rerun()
        return
    with st.container(border=True):
        options = _draw_other_ways(entry)
        if st.button("Close", type="tertiary", key="calviz.reading.close"):
            st.session_state.pop(_OPEN, None)
            st.rerun()
    if options is not None:
        read_again(entry.title, entry.source, options)


def _draw_other_ways(entry: OpenFile) -> ReadingOptions | None:
    """Draw the rows and roles of a file, if it has any, and the form; return the options that were chosen, or None."""
    found = entry.loaded.recognition
    try:
        shown = _as_read(_first_rows(entry.content_key, entry), entry)
    except CalvizError:  # several logs, whose rows are made from all of them
        return draw_details(entry.key, entry.options, found.columns, found.choices)
    is_text = found.format.startswith("CSV")
    st.caption("Choose a role to change it: the file is read again at once.")
    options = draw_rows(entry.key, shown)
    with st.expander("More about the scores and labels"):
        details = draw_details(entry.key, shown.options, found.columns, found.choices, text=is_text)
    return options or details


def _as_read(shown: FirstRows, entry: OpenFile) -> FirstRows:
    """Name the class of a single score, which only the labels say."""
    found = entry.loaded.recognition
    of_event = found.kind != "confidence" and len(found.class_names) == 2
    if len(found.scores) != 1 or not of_event or len(found.models) > 1:
        return shown
    return replace(shown, classes={found.scores[0]: found.class_names[1]} | dict(shown.classes))


def draw_models_of_rows(entry: OpenFile, column: str) -> None:
    """Offer to read the values of a column as models, in one click."""
    if entry.source is None:
        return
    if st.button(f"Read '{md(shorten(column, 30))}' as models", icon=":material/stacks:"):
        read_again(entry.title, entry.source, replace(entry.options, model_column=column))


def draw_related(entry: OpenFile, by_days: bool = False, *, say: bool = False) -> None:
    """Offer to count rows together that share a value, or a day if these are alike (`by_days`), in one click each, or each row by itself again; `say` why."""
    own, names = entry.options.cluster_column, entry.loaded.first.related
    one = "day" if by_days else entry.loaded.first.column_names.get("clusters", "cluster")
    by_cluster = f"Intervals count rows of one {md(shorten(one, 30))} together."
    offers: dict[str, str | None] = {f"rows of one {md(shorten(name, 30))}": name for name in names}
    if own or by_days:
        offers = {"rows of one day": None} if own == "" else {"": None if own else ""}
    for shown, name in offers.items() if entry.sample is None else ():
        with st.container(horizontal=True, vertical_alignment="center"):
            if say:
                narrow = f"{capitalised(shown)} may belong together: intervals may be too narrow."
                st.caption(narrow if shown else by_cluster, width="content")
            label = f"Count {shown} together" if shown else "Count each row by itself"
            if st.button(label) and entry.source is not None:
                read_again(entry.title, entry.source, replace(entry.options, cluster_column=name))


def draw_other_way_round(entry: OpenFile) -> None:
    """Offer to read a score that ranks in reverse as that of the other class, in one click."""
    if entry.source is None or isinstance(entry.source, tuple):
        return
    options = other_way_round(entry, _first_rows(entry.content_key, entry))
    if options is not None and st.button(
        "Read it the other way", type="primary", icon=":material/swap_vert:"
    ):
        read_again(entry.title, entry.source, options)


def other_way_round(entry: OpenFile, shown: FirstRows) -> ReadingOptions | None:
    """Return the options with the only score of each model as that of the other of two classes; None if there are more, or its header says the class."""
    found = entry.loaded.recognition
    two = entry.loaded.first.n_classes == len(found.class_names) == 2
    single = len(found.scores) == 1  # of each model
    said = shown.classes or found.kind == "confidence" or found.label_form == "one-hot"
    names = entry.options.class_names or found.class_names  # those of a judge say more
    if said or len(names) != 2 or not (two and single):
        return None
    return replace(entry.options, class_names=names[::-1])


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _first_rows(content_key: str, _entry: OpenFile) -> FirstRows:
    source = _entry.source or b""
    return first_rows(source, name=_entry.title, options=_entry.options, read=_entry.loaded)


def read_again(name: str, source: FileSource, options: ReadingOptions) -> None:
    """Read a file with these options, and start the run that shows what came of it: on the page Data the verdict, if what it asked is answered and it warns of nothing."""
    asked = open_files.unreadable_file() is not None and navigation.here() == "data"
    with st.spinner(f"Reading {md(shorten(name, 60))} again …", show_time=True):
        file = open_files.open_file(name, source, options)
    if asked and isinstance(file, OpenFile) and not file.loaded.offered:
        warned = sum(notice.severity != "info" for notice in file.loaded.notices)
        if warned == len(file.loaded.repairs_made):  # of what was asked for
            st.switch_page(navigation.link("overview"))
    st.rerun()


def draw_offers(file: OpenFile, of: str = "") -> None:
    """Offer the repairs of a file that was read, and other ways to read it, or those with an option that begins so; a click reads it again with one more."""
    if (source := file.source) is None:
        return
    for way in file.loaded.offered:
        if not any(key.startswith(of) for key in way.options):
            continue
        options = file.options.answered(way)
        words = md(capitalised(way.label), 80)
        if options != file.options and st.button(words, key=f"calviz.offer.{way.label}"):
            read_again(file.title, source, options)


# ---- Rows and roles


def draw_rows(key: str, shown: FirstRows) -> ReadingOptions | None:
    """Draw the first rows with the role of each column above it; return the options of a role that was changed, or None."""
    numbered = shown.numbers != tuple(range(1, len(shown.numbers) + 1))
    wide = {name: _width_of(name, cells) for name, cells in shown.cells.items()}
    room = (_ROOM[screen.width_class()] - numbered * _NUMBERS) / sum(wide.values())
    cut = room < _LEAST
    wide = {name: int(width * min(1 if cut else room, 1)) for name, width in wide.items()}
    names = _in_order(shown) if cut else list(shown.roles)
    if len(names) > _AT_ONCE:
        wanted = st.selectbox(
            f"{_AT_ONCE} of {len(names):,} columns are shown; show also",
            names[_AT_ONCE:],
            index=None,
            format_func=lambda name: shorten(name, 60),
            key=f"{_SHOWN}.{key}",
            filter_mode="contains",
            placeholder="type to search",
            width=420,
        )
        names = [*([wanted] if wanted else []), *names[:_AT_ONCE]]
    if cut:
        st.caption("More columns to the right.")
    changed = None
    with st.container(horizontal=True, wrap=False, gap=None, vertical_alignment="bottom"):
        if numbered:
            with st.container(width=_NUMBERS):
                _draw_cells("row", [f"{n:,}" for n in shown.numbers], shown, _NUMBERS)
        for place, name in enumerate(names):
            with st.container(width=wide[name], gap=None):
                role = _draw_role(f"{key}.{place}", name, shown)
                _draw_cells(name, shown.cells[name], shown, wide[name])
            if role is not None:
                # A role that says nothing new would be drawn again and again.
                changed = shown.with_role(name, role)
                changed = None if changed == shown.options and name not in shown.asked else changed
    return changed


def _width_of(name: str, cells: Sequence[str]) -> int:
    return min(max(_CHARACTER * max(map(len, (name, *cells))) + 24, _NARROWEST), _WIDEST)


def _in_order(shown: FirstRows) -> list[str]:
    """The columns that matter most first."""
    names = list(shown.roles)
    of = {role: [name for name in names if shown.roles[name] == role] for role in _ROLES}
    first = [name for name in names if name in shown.asked]
    first += [*of["label"], *of["confidence"], *of["model"], *of["score"][:6]]
    first += [name for role in _ROLES if role not in ("score", "ignored") for name in of[role]]
    return list(dict.fromkeys([*first, *of["score"], *names]))


def _draw_role(key: str, name: str, shown: FirstRows) -> ColumnRole | None:
    """Draw the role of a column; return another one that was chosen."""
    role = shown.roles[name]
    words, colour, _ = _ROLES[role]
    if name in shown.classes:
        words = f"P({md(shorten(shown.classes[name], 14), 20)})"
    if name in shown.asked:
        words, colour = f"{words}?", "orange"
    chip = f":{colour}-badge[{words}]"
    choices = shown.choices[name]
    if not choices:
        st.markdown(chip)
        return None
    # Another reading has other widgets, so that they are closed and show its roles.
    key = f"calviz.role.{key}.{abs(hash((name, shown.options)))}"
    with st.popover(chip, type="tertiary", key=key, help=f"Change the role of {md(name, 40)}"):
        chosen = st.radio(
            f"Role of {md(name, 40)}",
            choices,
            # A proposal is accepted by a click on it.
            index=choices.index(role) if role in choices and name not in shown.asked else None,
            format_func=lambda each: f"{_ROLES[each][0]} :gray[{_ROLES[each][2]}]",
            key=f"{key}.radio",
        )
        if len(choices) == 1:
            st.caption("Give this role to another column to change it.")
    return chosen if chosen is not None and (chosen != role or name in shown.asked) else None


def _draw_cells(name: str, cells: Sequence[str], shown: FirstRows, width: int) -> None:
    fits = width // _CHARACTER - 2
    padded = [*cells, *[""] * (len(shown.numbers) - len(cells))]
    # A static table's cells are markdown; a line without any text would be lower than those beside it.
    texts = [md(shorten(cell, fits)) if cell.strip() else "\u00a0" for cell in padded]
    head = md(told_apart(dict.fromkeys((name, *shown.roles)), fits)[0]) or "\u00a0"
    st.table(pd.DataFrame({head: texts}), border="horizontal", hide_index=True)


# ---- Other choices

_AS_RECOGNISED = "as recognised"


def draw_details(
    key: str,
    options: ReadingOptions,
    columns: Sequence[str],
    numbers: Sequence[int] = (),
    *,
    text: bool = False,
) -> ReadingOptions | None:
    """Draw the form for what no role says; return the submitted options, or None.

    Parameters
    ----------
    key : str
        Begins the keys of the widgets.
    options : ReadingOptions
        What the widgets show at first.
    columns : sequence of str
        All columns of the file.
    numbers : sequence of int
        The distinct numbers of choices, if the rows were made from questions with choices.
    text : bool
        Whether the file is a text whose cells are divided by separators.
    """
    with st.form(f"calviz.reading.{key}", border=False):
        left, right = st.columns(2)
        with left:
            kinds = {name: name for name in ("probabilities", "logits", "confidence")}
            help = "confidence: of the prediction being right."
            kind = _choice("Kind", kinds, options.kind, f"{key}.kind", help)
        scores = left.multiselect(
            "Score columns",
            columns,
            default=[c for c in options.scores or () if c in columns],
            key=f"{key}.scores",
            placeholder=_AS_RECOGNISED,
            accept_new_options=True,
            help="In the order of the classes; or type a prefix that ends in \\*, such as p_\\*.",
        )
        with left:
            bases, before = {"0": "0", "1": "1"}, str(options.label_base)
            base = _choice("Number labels count from", bases, before, f"{key}.base")
        with right:
            names = _class_names(f"{key}.names", options.class_names)
            weight_kind = st.selectbox(
                "Weights are",
                ["importance", "frequency"],
                index=["importance", "frequency"].index(options.weight_kind),
                key=f"{key}.weight_kind",
                help="importance: on any scale, as in a survey; frequency: counts of aggregated rows.",
            )
            choices = options.choices
            if numbers:
                words = {"top": "the top choice of each", "each": "each choice by itself"}
                words |= {str(k): f"the questions with {k} choices" for k in numbers}
                help = "Each choice by itself: its probability against whether it is the right one; questions are the clusters."
                choices = _choice("Questions with choices", words, choices, f"{key}.choices", help)
            help = "A question (the cluster) has several: one row per question, a model for each signal of confidence."
            names_of = {c: c for c in dict.fromkeys([*columns, options.answers or "answer"])}
            answers = _choice("Answers", names_of, options.answers, f"{key}.answers", help)
        divided = _how_divided(key, options) if text else {}
        if not st.form_submit_button("Read it this way"):
            return None
    chosen = tuple(scores) or None
    said: dict[str, Any] = {
        "kind": kind,
        "scores": chosen,
        "models": None if chosen else options.models,
        "label_base": None if base is None else int(base),
        "class_names": names,
        "weight_kind": weight_kind,
        "choices": choices,
        "answers": answers,
        **divided,
    }
    if answers is None:
        said |= {"answer_pattern": None, "same_answers": "normalised"}
    return replace(options, **said)


def _how_divided(key: str, options: ReadingOptions) -> dict[str, Any]:
    """Draw how a text is divided into a header and cells; return the options that say it."""
    line, between, sign = st.columns(3)
    header = line.number_input(
        "Line of the header",
        0,
        value=options.header_line,
        key=f"{key}.header",
        placeholder=_AS_RECOGNISED,
        help="Counted from 1, as in a text editor; 0 if no line names the columns.",
    )
    names = {sign: NAMES.get(sign, sign) for sign in SEPARATORS}
    with between:
        separator = _choice("Separator", names, options.separator, f"{key}.separator")
    with sign:
        decimal = _choice("Decimal sign", {".": ".", ",": ","}, options.decimal, f"{key}.decimal")
    return {"header_line": header, "separator": separator, "decimal": decimal}


def _class_names(key: str, chosen: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Draw the box for the names of the classes; return them, or None if it is empty."""
    names = st.text_area(
        "Class names, one per line",
        value="\n".join(chosen or ()),
        key=key,
        placeholder=_AS_RECOGNISED,
        height=90,
        help="In the order of the score columns.",
    )
    return tuple(line.strip() for line in names.splitlines() if line.strip()) or None


def _choice(
    label: str, words: Mapping[str, str], chosen: str | None, key: str, help: str | None = None
) -> str | None:
    """Draw a list to choose from; return None for what is recognised."""
    options = [_AS_RECOGNISED, *words]
    value = st.selectbox(
        label,
        options,
        index=options.index(chosen) if chosen and chosen in words else 0,
        format_func=lambda option: words.get(option, option),
        key=key,
        help=help,
    )
    return None if value == _AS_RECOGNISED else value
