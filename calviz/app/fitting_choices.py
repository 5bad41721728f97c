"""What every page that fits recalibrators asks for: the fitting rows, the methods and their options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from calviz.app import open_files, session
from calviz.app.open_files import join_parts, split_parts
from calviz.app.session import Settings, md
from calviz.comparison import advice, compare, folds_and_sites
from calviz.comparison.fitting import Division, Rows, scores_of
from calviz.core import blocks, errors, probabilities
from calviz.core.entry_specs import METRICS, RECALIBRATORS, FloorChoice
from calviz.core.predictions import Dataset
from calviz.core.words import counted, distinct, full_sentence, shorten

#: Sources of the rows to fit on.
ROW_WAYS = {
    "split": "another split",
    "share": "a random share",
    "earlier": "the earlier rows",
    "folds": "cross-fitting",
}


@dataclass(frozen=True, eq=False)
class FitRows:
    """The fitting rows and the evaluation rows, and how they are divided.

    Attributes
    ----------
    settings : Settings
        The settings with the rows of all splits, which are divided.
    data : Predictions or ConfidencePredictions
        All these rows.
    division : Division
    """

    settings: Settings
    data: Dataset
    division: Division

    @cached_property
    def rows(self) -> Rows:
        """These rows, divided; raises CalvizError if there is nothing to fit on."""
        return self.division.rows(self.data)

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the rows and their division, for jobs and caches."""
        return (*self.settings.rows_key, repr(self.division))

    def plan(self, choice: MethodChoice, refits: int = 0) -> compare.Plan:
        """Return the comparison of the chosen methods on these rows."""
        return compare.Plan(
            methods=choice.methods,
            division=self.division,
            metrics=METRICS.in_table("fits"),
            options=choice.options,
            refits=refits,
            **self.settings.how,
        )


def choose_fit_rows(settings: Settings, *, folds: bool = False) -> FitRows:
    """Draw the widgets that choose the rows to fit on; the choice is kept from page to page.

    Parameters
    ----------
    settings : Settings
    folds : bool
        Whether cross-fitting is among the choices.
    """
    whole = replace(settings, split=None)
    # The rows are fetched here because a job cannot do it: caches belong to the run of a page.
    data = whole.sample.data
    splits, has_times = len(data.split_names) > 1, data.times is not None
    possible = {"split": splits, "share": True, "earlier": has_times, "folds": folds}
    ways = {way: ROW_WAYS[way] for way, is_possible in possible.items() if is_possible}
    way = "split" if Division.with_other_split(data, settings.split).fit_split else "share"
    if len(ways) > 1:
        if st.session_state.get("division") not in (None, *ways):
            _forget("division")
        way = session.choose_one("Fit on", ways, default=way, key="division", help=_HELP)
    return FitRows(whole, data, replace(_division(settings, data, way), eval_split=settings.split))


_HELP = (
    "A map is fitted on some rows and judged on others, never on the same. Cross-fitting: the rows are dealt into folds, and each "
    "fold is calibrated by a map that was fitted on the others."
)


def _division(settings: Settings, data: Dataset, way: str) -> Division:
    if way == "split":
        return Division(fit_split=choose_split(settings, data, "Split to fit on", "fit"))
    if way == "folds":
        own = folds_and_sites.fold_columns(data)
        # Rows of several repeats are in several folds.
        if len(own) == 1 and session.toggle(
            f"Those of {shorten(own[0], 30)}", value=True, key="own-folds"
        ):
            return Division(cross_fit=own[0])
        folds = st.number_input("Folds", 2, 20, 5, key="folds", bind="query-params", width=120)
        return Division(cross_fit=int(folds))
    share = st.slider(
        "Rows to fit on, %",
        10,
        90,
        50,
        5,
        key="share",
        bind="query-params",
        width=220,
        help="A random share has every class in proportion, the earlier rows are those of the first days; the others judge.",
    )
    return Division(fit_fraction=share / 100, by_time=way == "earlier")


def choose_split(
    settings: Settings, data: Dataset, label: str, key: str, *, own: bool = False, help: str = ""
) -> str:
    """Draw the choice of another split of the rows than the one that judges, with `own` of that one too; return its name."""
    names = [name for name in data.split_names if own or name != settings.split]
    usual = Division.with_other_split(data, settings.split).fit_split
    usual = usual or (settings.split if own else names[0])
    shown = distinct(tuple(names))
    if st.session_state.get(key) not in (None, *names):
        _forget(key)
    chosen = st.selectbox(
        label,
        names,
        index=names.index(str(usual)),
        key=key,
        bind="query-params",
        format_func=lambda name: shown.get(name, str(name)),
        filter_mode="contains",
        width=200,
        help=help,
    )
    return str(chosen)


def _forget(key: str) -> None:
    del st.session_state[key]
    with suppress(StreamlitAPIException):
        st.query_params.pop(key, None)


# ---- Methods

_METHODS_KEY = "methods"
#: The last choice, kept while pages without this choice are open.
_LAST_METHODS = "calviz.methods.kept"
_OFFERED = "calviz.methods.offered"


@dataclass(frozen=True, eq=False)
class MethodChoice:
    """The recalibrators that the user chose.

    Attributes
    ----------
    methods : tuple of str
        In the order of the registry.
    options : dict of str to dict
        Parameters of the methods: zero floors and caps.
    line : DeltaGenerator
        The container of the small choices, to which a page may add its own.
    """

    methods: tuple[str, ...]
    options: dict[str, dict[str, Any]]
    line: DeltaGenerator

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the choice, for jobs and caches."""
        return repr(self.methods), repr(self.options)


def choose_methods(
    fit_rows: FitRows,
    models: Iterable[Dataset] | None = None,
    *,
    about: tuple[str, ...] | None = None,
    many_fits: bool = False,
    most: int | None = None,
    advised: str = "",
    said: DeltaGenerator | None = None,
) -> MethodChoice | None:
    """Draw the choices; return None, with the reason on screen, if there is nothing to fit on.

    Parameters
    ----------
    fit_rows : FitRows
    models : iterable of Predictions or ConfidencePredictions, optional
        All models that are fitted; by default, the rows of `fit_rows`.
    about : tuple of str, optional
        Identifies the models, for caches.
    many_fits : bool
        Whether each method is fitted many times, so that few methods are chosen at first.
    most : int, optional
        Largest number of methods that the page has room for.
    advised : str
        The method that a comparison advises: it is chosen at first, too, if it can be fitted, and never left out for want of room.
    said : DeltaGenerator, optional
        Where the reason is drawn, if not here.
    """
    about = about or fit_rows.settings.rows_key
    try:
        fitting = fit_rows.rows.fit.rows
    except errors.CalvizError as error:
        (said or st).warning(md(full_sentence(str(error)), 1_000), icon=":material/warning:")
        return None
    fitted = [fit_rows.data] if models is None else list(models)
    # Only methods that all models allow are offered.
    suggestion = advice.suggest(min(fitted, key=lambda d: d.kind != "confidence"), fitting)
    preselected = suggestion.usual if many_fits else suggestion.methods
    if advised in {*suggestion.methods, *suggestion.left_out} - {*preselected}:
        preselected = (*preselected, advised)
    methods, line = _methods(suggestion, preselected, (*about, str(fitting)))
    if most is not None and len(methods) > most:
        methods = tuple(sorted(methods, key=lambda method: method != advised))
        left = "; ".join(RECALIBRATORS[key].label for key in methods[most:])
        st.caption(f"This page has room for {most} methods. Left out here: {md(left, 1_000)}.")
        methods = methods[:most]
    with line:
        options = choose_ends(methods, fitted, about)
    return MethodChoice(methods, options, line)


def _methods(
    suggestion: advice.Suggestion, preselected: tuple[str, ...], about: tuple[str, ...]
) -> tuple[tuple[str, ...], DeltaGenerator]:
    """Draw the choice; return it, with the container of the small choices below it."""
    fitting = {*suggestion.methods, *suggestion.left_out}
    possible = [s.key for s in RECALIBRATORS if s.key in fitting]
    if _LAST_METHODS not in st.session_state or open_files.is_history_step():
        _follow_address(possible)
    _keep(possible, preselected, about)
    chosen = st.multiselect(
        "Methods",
        possible,
        # No default where the state is set in this run: streamlit warns about two values.
        default=None if _METHODS_KEY in st.session_state else list(preselected),
        format_func=lambda key: RECALIBRATORS[key].label if key in possible else str(key),
        key=_METHODS_KEY,
        help="The recalibrators that are fitted, on every page that fits some; each is compared with the uncalibrated model.",
    )
    st.session_state[_OFFERED] = (about, preselected)
    st.session_state[_LAST_METHODS] = list(chosen)
    _write_address(chosen, preselected)
    line = st.container(horizontal=True, gap="small")
    with line:
        for label, keys, icon in (
            ("Suggested", preselected, ":material/restart_alt:"),
            ("All", tuple(possible), ":material/done_all:"),
        ):
            key = f"calviz.methods.{label}"
            st.button(label, key, on_click=_set, args=(keys,), type="tertiary", icon=icon)
        with st.popover("Why these?", type="tertiary"):
            _reasons(suggestion, preselected)
    return tuple(key for key in possible if key in chosen), line


def _follow_address(possible: list[str]) -> None:
    """Choose the methods that a link names: by their keys in one text or, in older links, each by its label."""
    texts = st.query_params.get_all(_METHODS_KEY)
    if not texts:
        return
    labels = {RECALIBRATORS[key].label: key for key in possible}
    named = [key for t in texts for key in ([labels[t]] if t in labels else split_parts(t))]
    st.session_state[_METHODS_KEY] = [key for key in possible if key in named]


def _write_address(chosen: Sequence[str], preselected: tuple[str, ...]) -> None:
    """Write the choice to the address, unless it is what is suggested."""
    # "-" says in a link that no method is chosen.
    text = None if set(chosen) == set(preselected) else join_parts(chosen) or "-"
    open_files.write_parameter(_METHODS_KEY, text)


def _keep(possible: list[str], preselected: tuple[str, ...], about: tuple[str, ...]) -> None:
    """Update a suggestion that was not touched to the data and the page; keep a choice as far as possible."""
    if _METHODS_KEY not in st.session_state and _LAST_METHODS in st.session_state:
        st.session_state[_METHODS_KEY] = st.session_state[_LAST_METHODS]
    chosen = st.session_state.get(_METHODS_KEY)
    if chosen is None:
        return
    offered_before = st.session_state.get(_OFFERED)
    now = (about, preselected)
    untouched = (
        offered_before is not None
        and offered_before != now
        and list(chosen) == list(offered_before[1])
    )
    # Set even if unchanged: on another page, the widget of this key is a new one.
    st.session_state[_METHODS_KEY] = (
        list(preselected) if untouched else [m for m in chosen if m in possible]
    )


def _set(keys: tuple[str, ...]) -> None:
    st.session_state[_METHODS_KEY] = list(keys)


def _reasons(suggestion: advice.Suggestion, preselected: tuple[str, ...]) -> None:
    st.caption("Suggested for this number of classes and rows. Also available:")
    more = [key for key in suggestion.methods if key not in preselected]
    lines: Mapping[str, str] = {
        **dict.fromkeys(more, "suggested where each method is fitted once."),
        **suggestion.left_out,
    }
    st.markdown("\n".join(f"- {md(RECALIBRATORS[k].label)}: {md(r)}" for k, r in lines.items()))
    if suggestion.impossible:
        st.caption("Not possible with these data:")
        by_reason: dict[str, list[str]] = {}
        for key, reason in suggestion.impossible.items():
            by_reason.setdefault(reason, []).append(RECALIBRATORS[key].label)
        for reason, labels in by_reason.items():
            st.markdown(f"{md('; '.join(labels), 1_000)}: {md(reason)}")


# ---- Probabilities of exactly 0 and 1

ChosenOptions = dict[str, dict[str, Any]]


def choose_ends(
    methods: Iterable[str], data: Collection[Dataset], about: tuple[str, ...]
) -> ChosenOptions:
    """Draw the choices of how zeros are read, if there are some, and of the cap, if a method has one; return them as options of the methods.

    All pages that have them share one choice.

    Parameters
    ----------
    methods : iterable of str
    data : collection of Predictions or ConfidencePredictions
        All models that are fitted.
    about : tuple of str
        Identifies them, for caches.
    """
    having = {name: [m for m in methods if name in _parameters(m)] for name in ("floor", "cap")}
    rows, smallest = _zeros(about, data)
    chosen: ChosenOptions = {m: {} for m in methods}
    if not (rows or having["cap"]):
        return {}
    with st.popover("Probabilities of 0 and 1", type="tertiary"):
        if rows and (floor := _choose_floor(_where(rows, data), smallest)) != "auto":
            for method in having["floor"]:
                chosen[method]["floor"] = floor
        if having["cap"] and _choose_uncapped():
            for method in having["cap"]:
                chosen[method]["cap"] = False
    return {method: options for method, options in chosen.items() if options}


def _parameters(method: str) -> set[str]:
    return {p.name for p in RECALIBRATORS[method].parameters}


def _choose_uncapped() -> bool:
    st.caption(
        "By their definition, histograms, isotonic regression and splines give 0 where no calibration row has the class, and 1 "
        "where all have; a single wrong row there costs a log loss of 34.5 or more. They are held within what their rows support: "
        "where none of m rows has the class, at 0.5 / (m + 1)."
    )
    label = "Without the cap, as in the papers"
    return session.toggle(label, key="uncapped", persist_state="session")


#: What an exact zero can be replaced by.
ZERO_WAYS = {"auto": "automatic", "least": "smallest number", "own": "a number"}
#: Smallest floor that can be entered; a smaller one is as good as none.
SMALLEST = 1e-12


def _choose_floor(where: str, smallest: float) -> FloorChoice:
    """Draw the choice; return the parameter `floor` of the methods that have one. `where` says in which rows there are zeros."""
    half = min(smallest / 2, probabilities.MOST)
    if st.session_state.get("zeros") not in (None, *ZERO_WAYS):
        del st.session_state["zeros"]
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        way = session.choose_one(
            "Read exact zeros as",
            ZERO_WAYS,
            key="zeros",
            help="Methods that take logarithms need a number in place of 0. Automatic: half of the smallest probability "
            "above 0 of the rows that fit the map, at most 0.01; by cross-validation where that is an underflow and true "
            "classes have a 0. With the smallest number, a true class of probability 0 weighs as much as hundreds "
            "of other rows.",
        )
        floor: FloorChoice = "auto" if way == "auto" else None
        if way == "own":
            half = float(_written(max(SMALLEST, half)))  # what is shown is what counts
            number = half
            written = st.query_params.get("zeros-as", half)  # before the field is drawn
            with suppress(ValueError):
                number = float(st.session_state.get("zeros-as") or written)
            shown = np.format_float_positional(min(max(number, SMALLEST), 0.5), trim="-")
            floor = st.number_input(
                "Number",
                SMALLEST,
                0.5,
                half,
                format=f"%.{len(shown) - 2}f",
                key="zeros-as",
                bind="query-params",
                persist_state="session",
                width=160,
            )
    st.caption(f"{where}; the next smallest is {_written(smallest)}.")
    return floor


def _written(number: float) -> str:
    """Write a probability as people do: 0.00005, not 5e-05, but for an underflow.

    >>> _written(5e-05), _written(0.12345), _written(1e-300)
    ('0.00005', '0.123', '1e-300')
    """
    if number < SMALLEST:
        return f"{number:.3g}"
    return np.format_float_positional(number, 3, unique=False, fractional=False, trim="-")


def _where(rows: int, data: Collection[Dataset]) -> str:
    if all(d.kind == "confidence" for d in data):
        return f"In {counted(rows, 'row')} the confidence is exactly 0 or 1, so that one side has exactly 0"
    return f"In {counted(rows, 'row')} a class has a probability of exactly 0"


@st.cache_data(scope="session", max_entries=8, show_spinner=False)
def _zeros(about: tuple[str, ...], _data: Collection[Dataset]) -> tuple[int, float]:
    """Return the number of rows with a probability of 0, and the smallest other probability; data with logits do not count."""
    rows, smallest = 0, 1.0
    for data in _data:
        if getattr(data, "logits", None) is not None:
            continue
        scores, _ = scores_of(data)
        for block in blocks.row_blocks(scores):
            part = scores[block]
            rows += int(np.count_nonzero((part <= 0).any(axis=1)))
            smallest = min(smallest, float(np.min(part, where=part > 0, initial=1)))
    return rows, smallest
