"""How the data are looked at: sidebar widgets that live in the address, and what they choose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import Any, Literal, NamedTuple, get_args
from weakref import WeakSet

import numpy as np
import streamlit as st
from streamlit.errors import StreamlitAPIException

from calviz.core.arrays import BoolArray, IntArray
from calviz.core.bins import DEFAULT_BINS, Scheme
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction, ReductionKind
from calviz.results.slices import Where, rows_where
from calviz.sample.sample import Sample
from calviz.text.words import distinct, shorten, together
from calviz.ui.session import open_files
from calviz.ui.session.result_cache import kept
from calviz.ui.widgets.text import md

ALL_ROWS = "all rows"
MAX_BINS = 1_000
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

#: The conditions of a slice: keys of column and value in the address, label, and what stands for no condition.
_CONDITIONS = (
    ("slice", "level", "Slice by", "no slice"),
    ("slice-2", "level-2", "And by", "no second column"),
)
_CHOSEN = "calviz.chosen"
_SEED = "calviz.settings"
_ONE_CLASS = "calviz.one_class"
_DEFAULT = "calviz.default_reduction"
_IN_USE = "calviz.samples"
_HELP: Mapping[ReductionKind, str] = {
    "top-label": "the largest probability, and whether its class is the true one",
    "top-r": "the r-th largest probability, and whether its class is the true one",
    "within-top-r": "the sum of the r largest probabilities, and whether the true class is among them",
    "class": "the probability of one class, and whether it is the true one (one against the rest)",
    "positive": "the probability of the second class, and whether it is the true one",
}


@dataclass(frozen=True, eq=False)
class Settings:
    """What is looked at, and how.

    Attributes
    ----------
    entry : Entry
    model : str
    split : str or None
        None: all rows.
    reduction : Reduction
    bins : int
    scheme : {"equal-width", "equal-mass", "sturges"}
    where : tuple of (str, str)
        The slice: columns and the values that they hold; empty for all rows.
    """

    entry: open_files.Entry
    model: str
    split: str | None
    reduction: Reduction
    bins: int
    scheme: Scheme
    where: Where = ()

    @property
    def whole(self) -> Dataset:
        """The model's data, all rows."""
        return self.entry.loaded.models[self.model]

    @property
    def rows_key(self) -> tuple[str, ...]:
        """Names the rows that are looked at, for caches."""
        parts = (self.model, self.split, self.where)
        return (self.entry.content, *(repr(part) for part in parts))

    @property
    def how_key(self) -> tuple[str, ...]:
        """Names how these rows are looked at, for caches and jobs."""
        return self.reduction.key, str(self.bins), self.scheme

    def mask(self) -> BoolArray | None:
        """The rows that are looked at; None for all."""
        data = self.whole
        mask: BoolArray | None = None
        if self.split is not None and data.splits is not None:
            mask = data.splits.mask(self.split)
        level = rows_where(data, self.where)
        if mask is None or level is None:
            return mask if level is None else level
        return np.logical_and(mask, level)

    @property
    def sample(self) -> Sample:
        """The rows and how they are looked at; what is computed for them is kept with it."""
        return self._rows.sample.but(reduction=self.reduction, bins=self.bins, scheme=self.scheme)

    @property
    def row_numbers(self) -> IntArray | None:
        """Which rows of the file they are, 0-based; None for all."""
        return self._rows.numbers

    @property
    def turn(self) -> RLock:
        """A lock held while something is computed for the sample; others who ask for the same wait."""
        return self._rows.turn

    @property
    def _rows(self) -> _Rows:
        held = _rows(self.rows_key, self)
        st.session_state.setdefault(_IN_USE, WeakSet()).add(held.sample)
        return held

    @property
    def rows_words(self) -> str:
        """The model, where there are several, and its rows, in markdown."""
        model = f"model {md(self.model, 40)} · " if len(self.entry.loaded.models) > 1 else ""
        return f"{model}{md(self.sample.rows_words, 400)}"

    @property
    def words(self) -> str:
        """What is looked at, without the bins, in one line of markdown."""
        return f"{self.rows_words} · {self.reduction_words}"

    @property
    def reduction_words(self) -> str:
        """The reduction, in markdown, a long class name cut."""
        if self.reduction.kind == "class":
            return md(f"class '{shorten(self.reduction.class_name, 40)}' against the rest")
        return md(self.reduction.label)

    @property
    def file_stem(self) -> str:
        """The beginning of the names of downloads: the file, and the model where there are several."""
        name = self.entry.loaded.file.split(".")[0]
        if len(self.entry.loaded.models) > 1:
            name += f"-{self.model}"
        return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "calviz"

    @property
    def bins_words(self) -> str:
        """The bins: "15 equal-width bins"."""
        return self.sample.bins_words


class _Rows(NamedTuple):
    """A sample of some rows, their numbers in the file, and whose turn it is to compute."""

    sample: Sample
    numbers: IntArray | None
    turn: RLock


@kept(3)
def _rows(key: tuple[str, ...], _settings: Settings) -> _Rows:
    mask, data, numbers = _settings.mask(), _settings.whole, None
    if mask is not None and not mask.all():
        numbers = np.flatnonzero(mask)
        data = data.take(numbers)
    sample = Sample(data, split=_settings.split, where=_settings.where)
    return _Rows(sample, numbers, RLock())


def current() -> Settings:
    """What the sidebar chose in this run (or, in a fragment, in the last)."""
    chosen: Settings = st.session_state[_CHOSEN]
    return chosen


def draw() -> Settings:
    """Draw the widgets and keep what they choose."""
    entry = open_files.current()
    seed: dict[str, str] = st.session_state.pop(_SEED, {})
    models = tuple(entry.loaded.models)
    model = models[0]
    if len(models) > 1:
        model = _choose("Model", "model", models, seed)
    data = entry.loaded.models[model]
    split = _split(data, entry.loaded.recognition.eval_split, seed)
    reduction = _reduction(data, seed)
    scheme, bins = _bins(seed)
    where = _slice(data, seed)
    chosen = Settings(entry, model, split, reduction, bins, scheme, where)
    _let_go(st.session_state.get(_CHOSEN), chosen)
    st.session_state[_CHOSEN] = chosen
    return chosen


def _let_go(before: Settings | None, now: Settings) -> None:
    """Where other scores are looked at than before, forget what takes much memory; results stay."""
    if before is None or (before.rows_key, before.reduction) == (now.rows_key, now.reduction):
        return
    for sample in st.session_state.pop(_IN_USE, ()):
        sample.let_go()


def _choose(
    label: str,
    key: str,
    names: Sequence[str],
    seed: Mapping[str, str],
    *,
    default: str | None = None,
    help: str | None = None,
) -> str:
    """A list to choose from; the address holds the name as it is shown."""
    shown = distinct(tuple(names))
    if key in seed:
        _seed(key, {text: name for name, text in shown.items()}.get(seed[key]), seed[key])
    chosen = st.selectbox(
        label,
        list(names),
        index=list(names).index(default) if default is not None and default in names else 0,
        format_func=lambda name: shown.get(name, str(name)),
        key=key,
        bind="query-params",
        filter_mode="contains",
        help=help,
    )
    return chosen if chosen is not None else names[0]


def _seed(key: str, value: Any, shown: str) -> None:
    if value is None:
        return
    st.session_state[key] = value
    # A widget that is drawn for the first time does not write what was put into it into the
    # address; one that was there before does, and lets nobody else.
    with suppress(StreamlitAPIException):
        st.query_params[key] = shown


def look_at_class(data: Dataset, index: int) -> None:
    """Reduce to one class from the next drawing of the sidebar on; for callbacks."""
    shown = distinct(data.class_names)[data.class_names[index]]
    two = {"reduction": "positive"}
    st.session_state[_SEED] = two if data.n_classes == 2 else {"reduction": "class", "class": shown}


def look_at_slice(data: Dataset, where: Where) -> None:
    """Look at the rows of a slice from the next drawing of the sidebar on; all for no condition; for callbacks."""
    names = distinct(tuple(data.groups))
    seed = {column_key: none for column_key, _, _, none in _CONDITIONS}
    for (column, value), (column_key, value_key, _, _) in zip(where, _CONDITIONS, strict=False):
        seed[column_key] = names[column]
        seed[value_key] = distinct(data.groups[column].levels)[value]
    st.session_state[_SEED] = seed


def _split(data: Dataset, default: str | None, seed: Mapping[str, str]) -> str | None:
    if data.splits is None:
        return None
    chosen = _choose(
        "Evaluation split",
        "split",
        (ALL_ROWS, *data.split_names),
        seed,
        default=default,
        help="The rows that all pages measure.",
    )
    return None if chosen == ALL_ROWS else chosen


def _reduction(data: Dataset, seed: Mapping[str, str]) -> Reduction:
    if data.kind == "confidence":
        st.caption("Reduction: top label, the only one that confidence-only data allow.")
        return Reduction()
    kinds: tuple[ReductionKind, ...] = ("top-label", "top-r", "within-top-r", "class")
    if data.n_classes == 2:
        kinds = ("positive", "top-label")
    _follow_default(Reduction.default(data).kind)
    help = "Which score is compared with which event.\n\n" + "\n".join(
        f"- {kind}: {_HELP[kind]}" for kind in kinds
    )
    kind = _choose("Reduction", "reduction", kinds, seed, help=help)
    st.caption(f"Score and hit: {_HELP[kind]}.")  # type: ignore[index]
    if kind in ("top-r", "within-top-r"):
        if "r" in seed and seed["r"].isdigit():
            r = min(max(int(seed["r"]), 2), data.n_classes)
            _seed("r", r, str(r))
        elif st.session_state.get("r", 2) > data.n_classes:
            st.session_state["r"] = 2
        # The least is the default, and streamlit's own way to say that the state holds the value.
        r = st.number_input(
            "r", 2, data.n_classes, "min", key="r", bind="query-params", help="The rank, 2 or more."
        )
        return Reduction(kind, int(r))  # type: ignore[arg-type]
    if kind == "class":
        name = _choose("Class", "class", data.class_names, seed, help="Type to search.")
        return Reduction("class", class_name=name)
    return Reduction(kind)  # type: ignore[arg-type]


def _follow_default(default: ReductionKind) -> None:
    """Where the default of the data set before was not changed, look at that of this one."""
    before = st.session_state.get(_DEFAULT, default)
    st.session_state[_DEFAULT] = default
    if before != default and st.session_state.get("reduction") == before:
        st.session_state["reduction"] = default


def _bins(seed: Mapping[str, str]) -> tuple[Scheme, int]:
    scheme = _choose(
        "Bins",
        "scheme",
        SCHEMES,
        seed,
        help="equal-width: edges at 0, 1/M, 2/M, ...; equal-mass: equally many rows in each bin; "
        "sturges: equal width, with a number of bins that follows from the number of rows.",
    )
    if scheme == "sturges":
        return "sturges", DEFAULT_BINS
    seeded = "bins" in seed and seed["bins"].isdigit()
    if seeded:
        count = min(max(int(seed["bins"]), 1), MAX_BINS)
        _seed("bins", count, str(count))
    # Without a default where the state is set in this run: streamlit warns of two values.
    usual: int | Literal["min"] = "min" if seeded else DEFAULT_BINS
    bins = st.number_input("Number of bins", 1, MAX_BINS, usual, key="bins", bind="query-params")
    return scheme, int(bins)  # type: ignore[return-value]


def _slice(data: Dataset, seed: Mapping[str, str]) -> Where:
    found: list[tuple[str, str]] = []
    for column_key, value_key, label, none in _CONDITIONS:
        left = [name for name in data.groups if name not in dict(found)]
        if not left:
            break
        column = _choose(label, column_key, (none, *left), seed, help="Look at some rows only.")
        if column not in left:
            break
        # A second condition offers the values that the rows of the first one hold.
        mask = rows_where(data, tuple(found))
        factor = data.groups[column] if mask is None else data.groups[column].take(mask)
        value = _choose(f"Rows where {shorten(column, 30)} is", value_key, factor.levels, seed)
        found.append((column, value))
    return tuple(found)


def choose_class(chosen: Settings, label: str, placeholder: str) -> None:
    """On a page about one class, ask which where there are more than two.

    It is the reduction of the sidebar that is chosen here, so that link, title and other pages follow.
    """
    data = chosen.whole
    if data.kind == "confidence" or data.n_classes == 2:
        return
    shown = distinct(data.class_names)
    is_one = chosen.reduction.kind == "class"
    st.session_state[_ONE_CLASS] = chosen.reduction.class_index(data) if is_one else None
    st.selectbox(
        label,
        range(data.n_classes),
        index=None,
        format_func=lambda index: shown[data.class_names[index]],
        key=_ONE_CLASS,
        on_change=_look_at_chosen_class,
        args=(chosen,),
        filter_mode="contains",
        placeholder=placeholder,
        width=420,
        help="One class against the rest, as the reduction in the sidebar says. Type to search.",
    )


def needs_class(chosen: Settings) -> bool:
    """Whether a page about one class has to ask which, and none is chosen yet."""
    data = chosen.whole
    return data.kind != "confidence" and data.n_classes > 2 and chosen.reduction.kind != "class"


def _look_at_chosen_class(chosen: Settings) -> None:
    index: int | None = st.session_state[_ONE_CLASS]
    if index is None:  # cleared
        st.session_state[_SEED] = {"reduction": Reduction.default(chosen.whole).kind}
    else:
        look_at_class(chosen.whole, index)


def other_view_of_two_classes(
    chosen: Settings, said: str | None = None, *, below: bool = False
) -> None:
    """With two classes, say which of the two usual views this is, and what was `said` of the other; offer that.

    The button stands beside the words, or `below` them.
    """
    other = chosen.reduction.other_of_two(chosen.whole)
    if other is None:
        return
    first, second = (md(name, 40) for name in chosen.whole.class_names)
    this = f"the top label, whichever of {first} and {second} it is"
    if chosen.reduction.kind == "positive":
        this = f"the positive class, {second}"
    words = f"Two classes: this page looks at {this}."
    text, button = (
        (st.container(), st.container())
        if below
        else st.columns([4, 1], vertical_alignment="center")
    )
    text.markdown(f"{words} {md(together(said))}" if said else words)
    button.button(
        f"Show the {other.label}",
        on_click=_set_reduction,
        args=(other.key,),
        key="calviz.other_view",
    )


def _set_reduction(key: str) -> None:
    st.session_state["reduction"] = key
