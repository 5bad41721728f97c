"""What stands beside the current state: a pinned one, as long as it fits the data, or that after a map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar, get_args

import streamlit as st

from calviz.app import navigation, open_files, screen, session
from calviz.app.open_files import OpenFile, join_parts, split_parts
from calviz.app.session import NOT_RECALIBRATED, Settings, cached_results, md, name_after
from calviz.core.entry_specs import RECALIBRATORS, MetricResult
from calviz.core.errors import CalvizError
from calviz.core.events import CUBE_ROOT, DEFAULT_BINS, Reduction, Scheme, check_bins
from calviz.core.words import full_sentence, shorten
from calviz.figures.marks import Overlay
from calviz.figures.reliability import Reliability, ReliabilityOverlay
from calviz.sample.sample import Sample, rows_where, where_words
from calviz.verdicts import analysis
from calviz.verdicts.evaluation import Evaluation, Verdict, Written, name_of

if TYPE_CHECKING:
    from calviz.comparison.fitting import BeforeAfter

#: The name in the address, and its value if everything is at its default.
PINNED, _DEFAULTS = "pinned", "-"
_STATE = "calviz.pinned"


@dataclass(frozen=True)
class Pin:
    """Settings by name, so that they outlive a session; what is left out is at the default of the data.

    Attributes
    ----------
    model, split, reduction, bins, scheme, prevalence, map, cuts : str
        Empty for the default; a split of None is all rows.
    where : tuple of str
        Columns and values, alternating.
    """

    model: str = ""
    split: str | None = ""
    reduction: str = ""
    bins: str = ""
    scheme: str = ""
    prevalence: str = ""
    map: str = ""
    cuts: str = ""
    where: tuple[str, ...] = ()

    def link(self) -> str:
        """Encode the pin for a link: a letter and a value for each part that is not at its default."""
        parts = [
            f"{code}{getattr(self, name)}" for code, name in _CODES.items() if getattr(self, name)
        ]
        parts += ["a"] if self.split is None else []
        parts += [f"w{text}" for text in self.where]
        return join_parts(parts) or _DEFAULTS


_CODES = {
    "m": "model", "s": "split", "r": "reduction", "b": "bins", "h": "scheme", "p": "prevalence", "f": "map",
    "e": "cuts",
}  # fmt: skip


def decode_pin(link: str) -> Pin | None:
    """Decode the pin in a link; None if it holds none."""
    if link == _DEFAULTS:
        return Pin()
    parts: dict[str, str | None] = {}
    where = []
    for part in split_parts(link):
        code, value = part[:1], part[1:]
        if code == "w":
            where.append(value)
        elif part == "a":
            parts["split"] = None
        elif code in _CODES and value and _CODES[code] not in parts:
            parts[_CODES[code]] = value
        else:
            return None
    return None if len(where) % 2 else Pin(**parts, where=tuple(where))  # type: ignore[arg-type]


def pin_for(settings: Settings, method: str) -> Pin:
    """Return the pin for some settings and a map."""
    entry, data = settings.entry, settings.whole
    split: str | None = ""
    if data.splits is not None and settings.split != entry.loaded.recognition.eval_split:
        split = settings.split
    reduction = settings.reduction
    return Pin(
        model="" if settings.model == next(iter(entry.loaded.models)) else settings.model,
        split=split,
        reduction="" if reduction == Reduction.default(data) else reduction.key,
        bins="" if settings.bins == DEFAULT_BINS else str(settings.bins),
        scheme=settings.scheme or "",
        prevalence="" if settings.prevalence is None else f"{settings.prevalence:g}",
        map="" if method == NOT_RECALIBRATED else method,
        cuts=settings.cuts,
        where=tuple(text for pair in settings.where for text in pair),
    )


@dataclass(frozen=True, eq=False)
class Pinned:
    """A pin whose settings fit the data.

    Attributes
    ----------
    settings : Settings
    method : str
        A recalibrator, or `NOT_RECALIBRATED`.
    """

    settings: Settings
    method: str

    @property
    def sample(self) -> Sample:
        """The rows, after the map if there is one; raises a CalvizError if it cannot be fitted."""
        if self.method == NOT_RECALIBRATED:
            return self.settings.sample
        return sample_after(self.settings, self.method)


@dataclass(frozen=True)
class _PinState:
    """What is pinned in a session, the data that it is pinned for, and why the last pin is gone."""

    pin: Pin | None = None
    pinned_for: str = ""
    end_reason: str = ""


def _resolved(pin: Pin, entry: OpenFile) -> Pinned:
    """Return the settings of a pin; raise CalvizError, ValueError or KeyError if they do not fit the data."""
    model = pin.model or next(iter(entry.loaded.models))
    if model not in entry.loaded.models:
        raise KeyError(f"there is no model '{shorten(model, 30)}'")
    data = entry.loaded.models[model]
    split = pin.split
    if split == "":
        split = entry.loaded.recognition.eval_split if data.splits is not None else None
    if split is not None and split not in data.split_names:
        raise KeyError(f"there is no split '{shorten(split, 30)}'")
    reduction = Reduction.of(pin.reduction or None, data)
    reduction.check(data)
    bins = pin.bins if pin.bins == CUBE_ROOT else int(pin.bins or DEFAULT_BINS)
    scheme: Scheme | None = pin.scheme or None  # type: ignore[assignment]
    check_bins(bins)
    if scheme is not None and scheme not in get_args(Scheme):
        raise ValueError("there are no such bins")
    where = tuple(zip(pin.where[::2], pin.where[1::2], strict=True))
    if pin.map:
        RECALIBRATORS[pin.map]
    rate = float(pin.prevalence) if pin.prevalence else None
    settings = Settings(entry, model, split, reduction, bins, scheme, where, rate, pin.cuts)
    rows_where(settings.whole, where)
    return Pinned(settings, pin.map or NOT_RECALIBRATED)


def current(now: Settings) -> Pinned | None:
    """Return what is pinned, for the current data; None if nothing is."""
    state: _PinState = st.session_state.get(_STATE, _PinState())
    return None if state.pin is None else _resolved(state.pin, now.entry)


def pin_this(now: Settings) -> None:
    """Pin the current settings, with the map of the page that is seen; for callbacks."""
    method = NOT_RECALIBRATED
    # Pages that show the rows after a map.
    if navigation.here() in ("reliability", "risk_coverage", "decisions"):
        method = st.session_state.get(session.METHOD_KEY) or NOT_RECALIBRATED
    st.session_state[_STATE] = _PinState(pin_for(now, method), now.entry.key)


def unpin() -> None:
    """Remove the pin; for callbacks."""
    st.session_state[_STATE] = _PinState()


def sync_with_address(now: Settings) -> None:
    """Follow the address at the start, drop a pin that does not fit the data, and write the address."""
    state: _PinState | None = st.session_state.get(_STATE)
    if state is None or open_files.is_history_step():
        state = _PinState(
            decode_pin(st.query_params[PINNED]) if PINNED in st.query_params else None
        )
    if state.pin is not None:
        try:
            if state.pinned_for not in ("", now.entry.key):
                raise KeyError("another data set is shown")
            _resolved(state.pin, now.entry)
            state = replace(state, pinned_for=now.entry.key)
        except (CalvizError, ValueError, KeyError) as reason:
            message = reason.args[0] if isinstance(reason, KeyError) else reason
            state = _PinState(end_reason=full_sentence(f"The pinned state is gone: {message}"))
    st.session_state[_STATE] = state
    open_files.write_parameter(PINNED, None if state.pin is None else state.pin.link())


def draw_pinned(now: Settings) -> None:
    """Draw what is pinned as a chip that unpins it, or the button that pins the current state."""
    pinned = current(now)
    if pinned is None:
        if reason := st.session_state[_STATE].end_reason:
            st.caption(f":material/info: {md(reason, 300)}", width="content")
        st.button(
            "Pin",
            key="calviz.pin",
            icon=":material/keep:",
            help="Keeps model, split, slice, reduction, bins and map as they are. Change any of them, and the pinned state is drawn "
            "and written beside the new one.",
            on_click=pin_this,
            args=(now,),
        )
        return
    difference = difference_of(pinned, now)
    words = difference or "what is shown now; change a setting to see both"
    st.button(
        f"Pinned: {md(shorten(difference, 24))}" if difference else "Pinned",
        key="calviz.unpin",
        icon=":material/close:",
        icon_position="right",
        help=f"{md(words, 300)}. A click unpins it.",
        on_click=unpin,
    )


def difference_of(pinned: Pinned, now: Settings) -> str:
    """Return what differs in the pinned state, in plain text; empty if nothing does."""
    other = pinned.settings
    parts = []
    if other.model != now.model:
        parts.append(f"model {shorten(other.model, 24)}")
    if other.split != now.split:
        parts.append("all splits" if other.split is None else f"split {shorten(other.split, 24)}")
    if other.where != now.where:
        parts.append(where_words(other.where, 20) if other.where else "all slices")
    if other.cuts != now.cuts:
        edges = ", ".join(open_files.split_parts(other.cuts))
        parts.append(f"edges {shorten(edges, 24)}" if edges else "deciles")
    if other.reduction != now.reduction:
        parts.append(shorten(other.reduction.label, 30))
    if other.prevalence != now.prevalence:
        rate = other.prevalence
        parts.append("prevalence of the file" if rate is None else f"prevalence {100 * rate:g} %")
    if other.sample.bins_words != now.sample.bins_words:
        parts.append(other.sample.bins_words)
    if pinned.method != NOT_RECALIBRATED:
        parts.append(session.name_after(RECALIBRATORS[pinned.method].label))
    return ", ".join(parts)


F = TypeVar("F")
#: Settings beside those that choose the rows.
REDUCTION_AND_BINS = ("reduction", "bins", "scheme")


def points_overlay(now: Settings) -> tuple[ReliabilityOverlay, ...]:
    """Return the points to draw in a reliability diagram; none if the pinned state is the current one."""
    pinned = overlay(now, lambda sample: sample.once(Reliability.compute, curves=()), as_now=())
    return () if pinned is None else (pinned.content.overlay(pinned.name, "pinned"),)


def values(now: Settings, keys: tuple[str, ...], *, drawn: bool = False) -> dict[str, MetricResult]:
    """Return the values of metrics in the pinned state, by their current keys, or of the bins that are drawn; empty if nothing else is pinned."""

    def evaluated(sample: Sample) -> dict[str, MetricResult]:
        # The key of the ECE depends on the bins.
        theirs = {key: sample.ece_key if key == now.sample.ece_key else key for key in keys}
        sample = sample.but(scheme=sample.placed) if drawn else sample
        evaluation = analysis.evaluate(sample, tuple(theirs.values()))
        return {key: evaluation[pinned_key] for key, pinned_key in theirs.items()}

    pinned = overlay(now, evaluated, as_now=())
    return {} if pinned is None else pinned.content


def overlay(
    now: Settings, make: Callable[[Sample], F], *, as_now: tuple[str, ...] = ("bins", "scheme")
) -> Overlay[F] | None:
    """Return what a page shows, for the pinned state; None if nothing is pinned, or if it would be the same.

    Parameters
    ----------
    now : Settings
    make : callable
        Computes it from a sample.
    as_now : tuple of str
        Settings that it does not depend on; these are taken from `now`.
    """
    pinned = current(now)
    if pinned is None:
        return None
    same = {name: getattr(now, name) for name in as_now}
    pinned = replace(pinned, settings=replace(pinned.settings, **same))
    name = difference_of(pinned, now)
    if not name:
        return None
    try:
        with pinned.settings.compute_lock:
            return Overlay(f"Pinned: {name}", "pinned", make(pinned.sample))
    except CalvizError:
        return None


# ---- Before and after a map, on rows that it has not seen

#: Pixels of the diagram, beside its table.
WIDTH = 480


@navigation.fragment
def explore_before_and_after(settings: Settings) -> None:
    """Draw a choice of method, the points before and after in one diagram, and their metrics."""
    method = session.choose_method(settings)
    if method == NOT_RECALIBRATED:
        st.caption("Choose a method to see what it does to these points.")
    else:
        draw_before_and_after(method, settings)


def draw_before_and_after(method: str, settings: Settings) -> None:
    """Draw the points before and after a method, or `simple_method` for "", in one diagram, and their metrics."""
    result = recalibrated_numbers(method, settings)
    row = st.container(horizontal=True, gap="medium")
    with row.container(width=WIDTH + screen.wider()):
        screen.draw_before_and_after(
            *_diagrams(method, settings), key="reliability.after", name=result.label
        )
    keys = [r.key for r in result.values[0] if r.available and result.values[1][r.key].available]
    with row.container():
        shown = {
            "": [name_of(result.values[0][key]) for key in keys],
            "before": [_value(result.values[0], key) for key in keys],
            name_after(result.label): [_value(result.values[1], key) for key in keys],
        }
        screen.table(shown, alt="Metrics before and after")
        st.caption(md(result.words, 1_000))


def say_simple_map(settings: Settings, judged: Verdict, *, plain: bool = False) -> bool:
    """Say what `simple_method` makes of the ECE, or why no such map is named; return whether it can be drawn."""
    from calviz.report.sections.summary import fix_words, no_fix_words, simple_words

    if words := no_fix_words(judged):
        st.markdown(words)
        return False
    try:
        result = recalibrated_numbers("", settings)
    except CalvizError:
        return False
    before, after = (evaluation[settings.sample.ece_key] for evaluation in result.values)
    words = md(fix_words(before, after, result.values[0].rows, result.label, plain))
    words = f"**{words}**" if after.value < before.value else words
    st.markdown(f"{words} {simple_words(judged)}", help=None if plain else md(result.words, 600))
    return True


def _value(evaluation: Evaluation, key: str) -> str:
    written = Written(evaluation[key])
    return f"{written.value} {written.unit_words}".strip()


@dataclass(frozen=True, eq=False)
class RecalibratedNumbers:
    """What a recalibration does to some metrics, and a sentence about the rows.

    Attributes
    ----------
    values : (Evaluation, Evaluation)
        Before and after, of the same rows.
    label : str
        Of the recalibrator.
    words : str
        Which rows the map was fitted on, and which are shown.
    """

    values: tuple[Evaluation, Evaluation]
    label: str
    words: str


@cached_results(8)
def recalibrated_numbers(method: str, settings: Settings) -> RecalibratedNumbers:
    """Return numbers before and after a method, or `simple_method` for ""; raise a CalvizError if it cannot be fitted or judged."""
    from calviz.report.sections.summary import fixed_rows_words

    with st.spinner("Fitting …", show_time=True):
        both = fitted(settings.rows_key, method, settings)
        before_after, samples = both[0], _samples(settings, both)
        keys = tuple(dict.fromkeys((*analysis.first_metrics(samples[0]), "mce", "rmsce")))
        before, after = (analysis.evaluate(s, keys, noise_floor=True) for s in samples)
        label, words = RECALIBRATORS[before_after.method].label, fixed_rows_words(before_after)
        return RecalibratedNumbers((before, after), label, words)


@cached_results(8)
def _diagrams(method: str, settings: Settings) -> tuple[Reliability, Reliability]:
    with st.spinner("Binning …", show_time=True):
        before, after = _samples(settings, fitted(settings.rows_key, method, settings))
        return Reliability.compute(before, band=False), Reliability.compute(after)


def sample_after(settings: Settings, method: str) -> Sample:
    """Return the judged rows after a method; raise a CalvizError if it cannot be fitted or judged."""
    with st.spinner(md(f"Fitting {RECALIBRATORS[method].label.lower()} …"), show_time=True):
        return _samples(settings, fitted(settings.rows_key, method, settings))[1]


# The calibrated rows take as much memory as the file, so only one map is kept.
@st.cache_resource(scope="session", max_entries=1, show_spinner=False)
def fitted(key: tuple[str, ...], method: str, _settings: Settings) -> tuple[BeforeAfter, Sample]:
    """Return the rows before and after a method, and a sample of those after it."""
    before_after = recalibrate(_settings, method)
    return before_after, Sample(before_after.after)


def _samples(settings: Settings, both: tuple[BeforeAfter, Sample]) -> tuple[Sample, Sample]:
    """Return the judged rows before and after, with reduction and bins of the settings."""
    recalibrated = both[1].but(**settings.how)
    return recalibrated.with_data(both[0].before), recalibrated


def recalibrate(settings: Settings, method: str) -> BeforeAfter:
    """Fit a method and judge the split and slice of the bar; raise a CalvizError if that is not possible."""
    # Imported here: most pages are shown without a map, and the modules that fit one take a second to import.
    from calviz.comparison.fitting import before_and_after

    within = rows_where(settings.whole, settings.where)
    return before_and_after(settings.whole, method, eval_split=settings.split, within=within)
