"""The selected rows: rules that fit into a link, the one selection of a session, and what it adds to figures."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from itertools import chain, groupby, pairwise
from typing import Any, ClassVar, NamedTuple, Self, get_args

import numpy as np
import streamlit as st

from calviz.app import open_files, screen
from calviz.app.open_files import join_parts, split_parts
from calviz.app.session import Settings, cached_results, md
from calviz.core.blocks import BoolArray, IntArray
from calviz.core.errors import CalvizError, NotAvailable
from calviz.core.predictions import Dataset
from calviz.core.words import from_on, full_sentence, percent, range_ends, shorten
from calviz.figures.cumulative_plot import Cumulative, Estimate
from calviz.figures.marks import Overlay
from calviz.figures.reliability import Reliability, ReliabilityOverlay
from calviz.figures.risk_coverage import RankedBy, ranking_values
from calviz.sample.binning import bin_of_rows
from calviz.sample.sample import (
    Sample,
    Where,
    chosen_bins,
    is_predicted,
    predicted_classes,
    predicted_words,
    rows_outside,
    rows_where,
    where_words,
)

#: Characters of a class's or value's name within the name of a selection.
_NAME_LENGTH = 30


@dataclass(frozen=True)
class SelectionRule(ABC):
    """A rule that selects rows; its fields are texts and whole numbers, in the order of the link."""

    code: ClassVar[str]
    #: Whether the rule means the same rows only while reduction and bins stay as they are.
    of_bins: ClassVar[bool] = False
    #: Whether the rule depends on the true class: a gap of such rows is no sign of miscalibration.
    by_outcome: ClassVar[bool] = False
    kinds: ClassVar[dict[str, type[SelectionRule]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the kind."""
        SelectionRule.kinds[cls.code] = cls

    @abstractmethod
    def words(self, sample: Sample) -> str:
        """Return the name of the selection, in plain text."""

    @abstractmethod
    def mask(self, sample: Sample) -> BoolArray:
        """Return the mask of the selected rows, shape (n,); raise a CalvizError with the reason if the rule does not apply."""

    @classmethod
    def read(cls, parts: list[str]) -> Self:
        """Decode the parts of a link; raise ValueError or TypeError if they are invalid."""
        return cls(*parts)

    def link(self) -> str:
        """Encode the rule for a link."""
        return join_parts([self.code, *map(str, astuple(self))])


def decode_rule(link: str) -> SelectionRule | None:
    """Decode the rule in a link; None if it holds none."""
    code, *parts = split_parts(link)
    kind = SelectionRule.kinds.get(code)
    try:
        return None if kind is None else kind.read(parts)
    except (ValueError, TypeError):
        return None


@dataclass(frozen=True)
class Bins(SelectionRule):
    """A range of scores: neighbouring bins of the diagram, 0-based; links count from 1."""

    code = "bins"
    of_bins = True
    first: int
    last: int

    def words(self, sample: Sample) -> str:
        """Return the bins and their edges."""
        several = self.first != self.last
        where = f"{self.numbers(' to ')} {bounds(sample, self.first, self.last)}"
        return f"{'bins' if several else 'bin'} {where}"

    def numbers(self, between: str = "-") -> str:
        """Return the bins, 1-based: "14", or "13-15"."""
        return between.join(str(end + 1) for end in dict.fromkeys((self.first, self.last)))

    def mask(self, sample: Sample) -> BoolArray:
        """Return the rows whose scores lie in the bins, shape (n,)."""
        edges = chosen_bins(sample).edges
        if not 0 <= self.first <= self.last < edges.size - 1:
            raise NotAvailable(f"there are {edges.size - 1} bins.")
        bins = bin_of_rows(sample.scored, edges)
        return np.asarray((bins >= self.first) & (bins <= self.last))

    def link(self) -> str:
        """Encode the bins, 1-based, as "bins~13-15"."""
        return join_parts([self.code, self.numbers()])

    @classmethod
    def read(cls, parts: list[str]) -> Self:
        """Decode what `link` encodes."""
        (text,) = parts
        ends = [int(end) - 1 for end in text.split("-")]
        if len(ends) > 2 or min(ends) < 0:
            raise ValueError(text)
        return cls(min(ends), max(ends))


def bounds(sample: Sample, first: int, last: int | None = None) -> str:
    """Return the scores of one or several bins as an interval; right-closed, the first one also holds its lower edge."""
    edges = chosen_bins(sample).edges
    low, high = float(edges[first]), float(edges[(first if last is None else last) + 1])
    # The digits of the verdict, which names the worst of these bins; those of equal mass differ in width.
    mass = sample.placed == "equal-mass"
    pairs = [(low, high)] if mass else pairwise(edges.tolist())
    ends = (range_ends(*pair, tolerance=0.06)[0] for pair in pairs)
    digits = max(4 if mass else 2, *(len(end) - 2 for end in ends))
    return f"{'[' if first == 0 else '('}{low:.{digits}f}, {high:.{digits}f}]"


@dataclass(frozen=True)
class Predicted(SelectionRule):
    """The rows that are predicted as a class."""

    code = "predicted"
    name: str

    def words(self, sample: Sample) -> str:
        """The class."""
        return f"predicted '{shorten(self.name, _NAME_LENGTH)}'"

    def mask(self, sample: Sample) -> BoolArray:
        """Rows by predicted class."""
        return np.asarray(predicted_classes(sample.data) == _class(sample.data, self.name))


@dataclass(frozen=True)
class Labelled(SelectionRule):
    """The rows whose true class is this one."""

    code = "true"
    by_outcome = True
    name: str

    def words(self, sample: Sample) -> str:
        """The class."""
        return f"true class '{shorten(self.name, _NAME_LENGTH)}'"

    def mask(self, sample: Sample) -> BoolArray:
        """Rows by true class."""
        return np.asarray(_true(sample.data) == _class(sample.data, self.name))


@dataclass(frozen=True)
class CellRule(SelectionRule):
    """The rows of a true class that are predicted as another: a cell of the confusion matrix."""

    code = "cell"
    by_outcome = True
    true: str
    predicted: str

    def words(self, sample: Sample) -> str:
        """The two classes."""
        true, taken = (shorten(name, _NAME_LENGTH) for name in (self.true, self.predicted))
        right = self.true == self.predicted
        return f"'{true}' predicted right" if right else f"'{true}' taken for '{taken}'"

    def mask(self, sample: Sample) -> BoolArray:
        """Rows by both classes."""
        data = sample.data
        true = _true(data) == _class(data, self.true)
        return np.asarray(true & (predicted_classes(data) == _class(data, self.predicted)))


@dataclass(frozen=True)
class SliceRule(SelectionRule):
    """The rows with given values in columns of the file, such as a grade."""

    code = "slice"
    where: Where

    def words(self, sample: Sample) -> str:
        """The condition."""
        return f"where {where_words(self.where, _NAME_LENGTH)}"

    def mask(self, sample: Sample) -> BoolArray:
        """Rows where the condition holds."""
        mask = rows_where(sample.data, self.where)
        return np.ones(sample.data.n, dtype=np.bool_) if mask is None else mask

    def link(self) -> str:
        """Encode the columns and their values, alternating."""
        return join_parts([self.code, *chain(*self.where)])

    @classmethod
    def read(cls, parts: list[str]) -> Self:
        """Decode what `link` encodes."""
        if not parts or len(parts) % 2:
            raise ValueError(parts)
        return cls(tuple(zip(parts[::2], parts[1::2], strict=True)))


@dataclass(frozen=True)
class OtherRows(SliceRule):
    """All rows but those of some slices, of which `where` has the conditions one after the other, with `APART` between them."""

    code = "others"
    APART: ClassVar = ("", "")

    @classmethod
    def than(cls, wheres: Sequence[Where]) -> Self:
        """The rows outside these slices."""
        return cls(tuple(chain(*((*where, cls.APART) for where in wheres)))[:-1])

    def _slices(self) -> list[Where]:
        parts = groupby(self.where, key=self.APART.__ne__)
        return [tuple(part) for is_slice, part in parts if is_slice]

    def words(self, sample: Sample) -> str:
        """The conditions, denied."""
        each = (where_words(where, _NAME_LENGTH) for where in self._slices())
        return f"all rows but those where {' or '.join(each)}"

    def mask(self, sample: Sample) -> BoolArray:
        """Rows where none of the conditions hold."""
        return rows_outside(sample.data, self._slices())


@dataclass(frozen=True)
class Covered(SelectionRule):
    """The rows that are kept, or referred, at a threshold in its usual unit or, in older links, at a coverage in percent."""

    code = "covered"
    side: str
    ranking: RankedBy
    at: int | float
    predicted: tuple[str, ...] = ()

    def words(self, sample: Sample) -> str:
        """Return the threshold; if the rule is a coverage, this and, when ranked by confidence, its threshold."""
        by_share = isinstance(self.at, int)
        words = f"{self.side} at {percent(self.at / 100, 0)} coverage" if by_share else self.side
        if self.predicted:
            words += f" of those predicted as {predicted_words(sample.data, self.predicted)}"
        if by_share and self.ranking != "confidence":
            return f"{words} by {self.ranking}"
        signs = "≤>" if self.ranking == "entropy" else "≥<"
        limit = self._threshold(sample) if by_share else self.at
        return f"{words}, {self.ranking} {signs[self.side != 'kept']} {from_on(limit)}"

    def mask(self, sample: Sample) -> BoolArray:
        """Return the rows on one side of the threshold, shape (n,); all rows at the threshold are kept."""
        is_kept = ranking_values(sample, self.ranking) >= self._threshold(sample)
        return self._among(sample) & (is_kept if self.side == "kept" else ~is_kept)

    def _among(self, sample: Sample) -> BoolArray:
        every = np.ones(sample.data.n, dtype=np.bool_)
        return is_predicted(sample.data, self.predicted) if self.predicted else every

    def _threshold(self, sample: Sample) -> float:
        """Return the smallest value that is kept, inf if none is."""
        if isinstance(self.at, float):
            of_entropy = self.ranking == "entropy"
            return (
                1 - self.at / math.log(sample.data.n_classes) if of_entropy else self.at
            ) - 1e-12
        value = ranking_values(sample, self.ranking)[self._among(sample)]
        count = round(value.size * self.at / 100)
        return (
            float(np.partition(value, value.size - count)[value.size - count]) if count else np.inf
        )

    def link(self) -> str:
        """Encode side, ranking, threshold or percent, and the predicted classes."""
        return join_parts((self.code, self.side, self.ranking, str(self.at), *self.predicted))

    @classmethod
    def read(cls, parts: list[str]) -> Self:
        """Decode what `link` encodes."""
        side, ranking, share, *predicted = parts
        if side not in ("kept", "referred") or ranking not in get_args(RankedBy):
            raise ValueError(parts)
        at = int(share) if share.isdecimal() else float(share)
        if not 0 <= at <= 100:
            raise ValueError(share)
        return cls(side, ranking, at, tuple(predicted))  # type: ignore[arg-type]


def _class(data: Dataset, name: str) -> int:
    if name not in data.class_names:
        raise NotAvailable(f"there is no class '{shorten(name, _NAME_LENGTH)}'.")
    return data.class_names.index(name)


def _true(data: Dataset) -> IntArray:
    if data.labels is None:
        raise NotAvailable("these data do not name the true classes.")
    return np.asarray(data.labels)


def rows_of(rule: SelectionRule, sample: Sample) -> IntArray:
    """Return the rows of a sample that a rule selects, ascending; raise a CalvizError if the rule does not apply."""
    return np.flatnonzero(rule.mask(sample))


# ---- The selection of the session

#: Names in the address; the second one is used by older links, which held only bins.
SELECTED, BIN = "selected", "bin"

_STATE = "calviz.selection"


@dataclass
class _SelectionState:
    """The selection of a session, its name, and what must not change for it to mean the same; why the last one ended.

    Once it has ended, `meant_for` are the rows on which it did.

    `turns` counts, per widget that selects, how often something was selected elsewhere. `page_is_behind` if so far only a
    fragment has shown the selection; `by` names the widget that selected.
    """

    rule: SelectionRule | None = None
    by: str = ""
    name: str = ""
    meant_for: tuple[str, ...] = ()
    end_reason: str = ""
    page: str | None = None
    page_is_behind: bool = False
    turns: dict[str, int] = field(default_factory=dict)

    def select(self, rule: SelectionRule | None, *, by: str = "", end_reason: str = "") -> None:
        """Select rows, or none; all widgets but one forget what was chosen in them."""
        self.rule, self.by, self.meant_for, self.end_reason = rule, by, (), end_reason
        self.turns = {name: turn + (name != by) for name, turn in self.turns.items()}


def _state() -> _SelectionState:
    return st.session_state.setdefault(_STATE, _SelectionState())


class Selected(NamedTuple):
    """A selection among the current rows.

    Attributes
    ----------
    rule : SelectionRule
    name : str
        In plain text.
    rows : ndarray of int
        Positions in the sample, ascending.
    """

    rule: SelectionRule
    name: str
    rows: IntArray


def current_rule() -> SelectionRule | None:
    """Return the rule of the selection; None if nothing is selected."""
    return _state().rule


def is_asked_for() -> bool:
    """Whether rows were selected by a link or a button that leads to them, not in a figure or table beside which they appear."""
    return _state().rule is not None and not _state().by


def current(settings: Settings) -> Selected | None:
    """Return the selection among the rows of some settings; None if there is none, or if it does not apply to them."""
    chosen = current_rule()
    with suppress(CalvizError):
        return None if chosen is None else selected(chosen, settings)
    return None


@cached_results(6)
def selected(rule: SelectionRule, settings: Settings) -> Selected:
    """Return what a rule selects; raise a CalvizError if it does not apply."""
    rows = rows_of(rule, settings.sample)  # says what does not fit
    return Selected(rule, rule.words(settings.sample), rows)


@cached_results(3)
def sample_of(rule: SelectionRule, settings: Settings) -> Sample:
    """Return the rows that a rule selects as a sample of their own, with the reduction and bins of all rows."""
    sample = settings.sample
    return sample.with_data(sample.data.take(selected(rule, settings).rows))


def choose(chosen: SelectionRule | None, *, by: str = "", answers_first: bool = False) -> None:
    """Select rows, or none; for callbacks.

    Parameters
    ----------
    chosen : SelectionRule or None
    by : str
        Name of the widget that selects; all other widgets forget what was chosen in them.
    answers_first : bool
        Whether the fragment of that widget is drawn before the whole page; it must end with `page_follows`.
    """
    _state().select(chosen, by=by)
    # A widget in a fragment would rerun only that fragment, but the whole page shows the selection.
    if answers_first:
        _state().page_is_behind = True
    else:
        st.rerun()


def of_click(key: str, rule_of: Callable[[int], SelectionRule], *, by: str) -> Callable[[], None]:
    """Return what a click on a figure does: it selects by the number that the bar or point carries."""

    def clicked() -> None:
        points = st.session_state[screen.widget_key(key)].selection.points
        number = number_of_point(points[0]) if points else None
        if number is not None:
            choose(rule_of(number), by=by)

    return clicked


def number_of_point(point: Any) -> int | None:
    """Return the number that a clicked bar or point carries."""
    data = point.get("customdata")
    if isinstance(data, list | tuple):
        data = data[0] if data else None
    return int(data) if isinstance(data, int | float) else None


def of_tick(
    key: str, rules: Sequence[SelectionRule], *, by: str, at: int | None = None
) -> dict[str, Any]:
    """Return options of a table in which a tick selects by the rule of a line; the selected line is ticked, by default that of the rule."""

    def picked() -> None:
        rows = st.session_state[key].selection.rows
        choose(rules[rows[0]] if rows else None, by=by)

    if at is None and (rule := current_rule()) in rules:
        at = rules.index(rule)
    ticked = None if at is None else {"selection": {"rows": [at]}}
    table = {"selection_mode": "single-row", "selection_default": ticked}
    return {"key": key, "on_select": picked, **table}


def page_follows() -> None:
    """Run the whole page if only a fragment has shown a new selection so far; the last statement of that fragment."""
    if _state().page_is_behind:
        st.rerun(scope="app")


def clear() -> None:
    """Select nothing; for callbacks."""
    choose(None)


def widget_key(name: str) -> str:
    """Return the key of a widget that selects; it changes whenever something is selected elsewhere."""
    return f"{name}.{_state().turns.setdefault(name, 0)}"


def draw_selected(settings: Settings) -> None:
    """Draw what is selected as a chip that ends the selection, or why the last selection ended."""
    chosen = current(settings)
    if chosen is None:
        if reason := _state().end_reason:
            st.caption(f":material/info: {md(reason, 300)}", width="content")
        return
    st.button(
        f"{chosen.rows.size:,} selected",
        key="calviz.selected.chip",
        icon=":material/close:",
        icon_position="right",
        help=f"{md(chosen.name, 200)}: {chosen.rows.size:,} of {settings.row_count}. A click selects nothing, on every page.",
        on_click=clear,
    )


def sync_with_address(settings: Settings, page: str) -> None:
    """Follow the address, end a selection that does not apply to the current settings, and write the address."""
    state = _state()
    state.page_is_behind = False
    if state.page is None or open_files.is_history_step():
        state.rule, state.meant_for = _in_address(), ()
    if page != state.page or (
        state.rule is None and state.meant_for not in ((), settings.rows_key)
    ):
        state.page, state.end_reason = page, ""
    if state.rule is not None and (reason := _why_ended(state, state.rule, settings)):
        name = state.name
        subject = (
            f"The selection, {name}, ended" if name else "The selection in the link cannot be shown"
        )
        state.select(None, end_reason=full_sentence(f"{subject}: {reason}"))
        state.name, state.meant_for = "", settings.rows_key
    open_files.write_parameter(BIN, None)
    open_files.write_parameter(SELECTED, None if state.rule is None else state.rule.link())


def _in_address() -> SelectionRule | None:
    if SELECTED in st.query_params:
        return decode_rule(st.query_params[SELECTED])
    bins = re.fullmatch(r"[0-9]{1,4}(-[0-9]{1,4})?", st.query_params.get(BIN, ""))
    return decode_rule(join_parts([Bins.code, bins[0]])) if bins else None


def _identity(chosen: SelectionRule, settings: Settings) -> tuple[str, ...]:
    """Return what must not change for the selection to mean the same: the data, and for bins also their edges."""
    if not chosen.of_bins:
        return (settings.entry.key,)
    edges = settings.rows_key if settings.sample.placed != "equal-width" else ()
    return (settings.entry.key, *settings.reduction_and_bins_key, *edges)


def _why_ended(state: _SelectionState, chosen: SelectionRule, settings: Settings) -> str:
    """Return why a selection does not mean the same any more, or does not apply; empty if it goes on."""
    before, now = state.meant_for, _identity(chosen, settings)
    if before and before[0] != now[0]:
        return "another data set is shown"
    if before and before != now:
        return "the scores or the bins have changed"
    try:
        state.name = selected(chosen, settings).name
    except CalvizError as reason:
        return str(reason).rstrip(".")
    state.meant_for = now
    return ""


def points_overlay(figure: Reliability, settings: Settings) -> tuple[ReliabilityOverlay, ...]:
    """Return the points to draw beside those of all rows."""
    chosen = _drawable(settings)
    if chosen is None:
        return ()
    return (ReliabilityOverlay.of_rows(settings.sample, figure.sums, chosen.rows, "Selected rows"),)


def score_range(settings: Settings) -> tuple[float, float] | None:
    """Return the range of scores that is selected; None if other rows or no rows are."""
    chosen = current(settings)
    if chosen is None or not isinstance(chosen.rule, Bins):
        return None
    edges = chosen_bins(settings.sample).edges
    first, last = chosen.rule.first, chosen.rule.last
    # The first bin holds its lower edge.
    return (float(edges[first]) if first else -1.0, float(edges[last + 1]))


def cumulative_overlay(settings: Settings, estimate: Estimate) -> tuple[Overlay[Cumulative], ...]:
    """Return the cumulative plot of the selected rows."""
    chosen = _drawable(settings)
    if chosen is None:
        return ()
    part = sample_of(chosen.rule, settings)
    figure = part.view(Cumulative.compute, estimate=estimate, band=False, seed=part.seed)
    return (Overlay("Selected rows", "selected", figure),)


def _drawable(settings: Settings) -> Selected | None:
    """Return the selection if it has points or a curve of its own; None otherwise."""
    chosen = current(settings)
    if chosen is None or not chosen.rows.size:
        return None
    # The share of hits says nothing about rows that were chosen by their outcome.
    return None if chosen.rule.of_bins or chosen.rule.by_outcome else chosen
