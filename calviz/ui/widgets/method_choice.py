"""The choice of recalibrators and their options, shared by all pages that fit some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from calviz.comparison import Suggestion, suggest
from calviz.comparison.rows import Rows
from calviz.core.errors import CalvizError
from calviz.core.predictions import Dataset
from calviz.specs.recalibrator import RECALIBRATORS
from calviz.text.words import full_sentence
from calviz.ui.session import browser_history
from calviz.ui.session.link_encoding import join_parts, split_parts
from calviz.ui.widgets import cap_choice, zero_floor_choice
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.fit_rows import FitRows

_KEY = "methods"
#: Value in a link when no method is chosen.
_NO_METHOD = "-"
#: The last choice, kept while pages without this choice are open.
_LAST_CHOICE = "calviz.methods.kept"
_OFFERED = "calviz.methods.offered"


@dataclass(frozen=True, eq=False)
class MethodChoice:
    """The recalibrators that the user chose.

    Attributes
    ----------
    rows : Rows
        The fitting rows and the evaluation rows.
    methods : tuple of str
        In the order of the registry.
    options : dict of str to dict
        Parameters of the methods: zero floors and caps.
    line : DeltaGenerator
        The container of the small choices, to which a page may add its own.
    """

    rows: Rows
    methods: tuple[str, ...]
    options: dict[str, dict[str, Any]]
    line: DeltaGenerator

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the choice, for jobs and caches."""
        return repr(self.methods), repr(self.options)


def draw(
    fit_rows: FitRows,
    models: Iterable[Dataset] | None = None,
    *,
    about: tuple[str, ...] | None = None,
    many_fits: bool = False,
    most: int | None = None,
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
    """
    data, about = fit_rows.data, about or fit_rows.settings.rows_key
    try:
        rows = fit_rows.division.rows(data)
    except CalvizError as error:
        st.warning(md(full_sentence(str(error)), 1_000), icon=":material/warning:")
        return None
    fitted = [data] if models is None else list(models)
    # Only methods that all models allow are offered.
    narrowest = min(fitted, key=lambda d: d.kind != "confidence")
    suggestion = suggest(narrowest, rows.fit.rows)
    preselected = suggestion.usual if many_fits else suggestion.methods
    methods = _methods(suggestion, preselected, (*about, str(rows.fit.rows)))
    if most is not None and len(methods) > most:
        left = "; ".join(RECALIBRATORS[key].label for key in methods[most:])
        st.caption(f"This page has room for {most} methods. Left out here: {md(left, 1_000)}.")
        methods = methods[:most]
    floor = zero_floor_choice.draw(fitted, about)
    line = st.container(horizontal=True, gap="small")
    with line:
        options = cap_choice.draw(methods, zero_floor_choice.options(methods, floor))
    return MethodChoice(rows, methods, options, line)


def _methods(
    suggestion: Suggestion, preselected: tuple[str, ...], about: tuple[str, ...]
) -> tuple[str, ...]:
    fitting = {*suggestion.methods, *suggestion.left_out}
    possible = [s.key for s in RECALIBRATORS if s.key in fitting]
    if _LAST_CHOICE not in st.session_state or browser_history.is_step():
        _follow_address(possible)
    _keep(possible, preselected, about)
    chosen = st.multiselect(
        "Methods",
        possible,
        # No default where the state is set in this run: streamlit warns about two values.
        default=None if _KEY in st.session_state else list(preselected),
        format_func=lambda key: RECALIBRATORS[key].label if key in possible else str(key),
        key=_KEY,
        help="The recalibrators that are fitted, on every page that fits some; each is compared with the uncalibrated model.",
    )
    st.session_state[_OFFERED] = (about, preselected)
    st.session_state[_LAST_CHOICE] = list(chosen)
    _write_address(chosen, preselected)
    with st.container(horizontal=True, gap="small"):
        for label, keys in (("Suggested", preselected), ("All", tuple(possible))):
            st.button(
                label,
                type="tertiary",
                key=f"calviz.methods.{label}",
                on_click=_set,
                args=(keys,),
            )
        with st.popover("Why these?", type="tertiary"):
            _reasons(suggestion, preselected)
    return tuple(key for key in possible if key in chosen)


def _follow_address(possible: list[str]) -> None:
    """Choose the methods that a link names: by their keys in one text or, in older links, each by its label."""
    texts = st.query_params.get_all(_KEY)
    if not texts:
        return
    labels = {RECALIBRATORS[key].label: key for key in possible}
    named = [
        key for text in texts for key in ([labels[text]] if text in labels else split_parts(text))
    ]
    st.session_state[_KEY] = [key for key in possible if key in named]


def _write_address(chosen: Sequence[str], preselected: tuple[str, ...]) -> None:
    """Write the choice to the address, unless it is what is suggested."""
    text = None if set(chosen) == set(preselected) else join_parts(chosen) or _NO_METHOD
    if text is None and _KEY in st.query_params:
        del st.query_params[_KEY]
    elif text is not None and st.query_params.get_all(_KEY) != [text]:
        st.query_params[_KEY] = text


def _keep(possible: list[str], preselected: tuple[str, ...], about: tuple[str, ...]) -> None:
    """Update a suggestion that was not touched to the data and the page; keep a choice as far as possible."""
    if _KEY not in st.session_state and _LAST_CHOICE in st.session_state:
        st.session_state[_KEY] = st.session_state[_LAST_CHOICE]
    chosen = st.session_state.get(_KEY)
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
    st.session_state[_KEY] = (
        list(preselected) if untouched else [m for m in chosen if m in possible]
    )


def _set(keys: tuple[str, ...]) -> None:
    st.session_state[_KEY] = list(keys)


def _reasons(suggestion: Suggestion, preselected: tuple[str, ...]) -> None:
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
