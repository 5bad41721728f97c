"""The settings that the bar chose, the results that are computed and kept for them, and choices that the link keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from operator import attrgetter
from threading import RLock
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast, get_args
from weakref import WeakSet

import numpy as np
import streamlit as st

from calviz.app import open_files
from calviz.app.open_files import OpenFile
from calviz.core import blocks, entry_specs, errors, events, predictions
from calviz.core.predictions import Dataset, at_prevalence, cut_columns, edges_of, sliceable_columns
from calviz.core.words import capitalised, counted, distinct, shorten, within_sentence
from calviz.data.loaded import fit_split_for
from calviz.figures.cumulative_plot import Cumulative, Estimate
from calviz.figures.reliability import CurveKind, Reliability
from calviz.figures.risk_coverage import RankedBy, RiskCoverage
from calviz.sample.sample import Sample, Where, dataset_of, on_days, rows_where, where_words
from calviz.verdicts import analysis
from calviz.verdicts.evaluation import Evaluation

P = ParamSpec("P")
R = TypeVar("R")
#: What identifies an argument of a cached function, by its type.
HashFuncs = dict[str | type[Any], Callable[[Any], Any]]


def cached_results(entries: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache the results of a function whose last argument is the settings; these are known by their key or, as `_settings`, not at all.

    Results for a file belong to its session. Results for a sample set are shared: the first visitor computes them for all.

    Parameters
    ----------
    entries : int
        Number of results that a session keeps, the latest.
    """

    def decorate(compute: Callable[P, R]) -> Callable[P, R]:
        known: HashFuncs = {Settings: attrgetter("key")}
        kept = partial(st.cache_resource, show_spinner=False, hash_funcs=known)
        of_session = kept(scope="session", max_entries=entries)(compute)
        # Size of the shared cache as a multiple of a session's: visitors choose different settings for the same sample set.
        of_all_sessions = kept(max_entries=4 * entries)(compute)

        @wraps(compute)
        def cached(*args: P.args, **kwargs: P.kwargs) -> R:
            settings = cast(Settings, args[-1])
            compute_once = of_session if settings.entry.sample is None else of_all_sessions
            return compute_once(*args, **kwargs)

        return cached

    return decorate


ALL_ROWS = "all rows"
#: In a link to Recalibrate: methods are compared without a click, where it is quick.
COMPARED = "compared"
#: Rows times classes up to which work on a page starts by itself.
AT_ONCE = 500_000
MAX_BINS = 1_000
SCHEMES: tuple[events.Scheme, ...] = get_args(events.Scheme)

#: The conditions of a slice: keys of column and value in the address, label, and the option for no condition.
CONDITIONS = (
    ("slice", "level", "Slice by", "no slice"),
    ("slice-2", "level-2", "And by", "no second column"),
    ("slice-3", "level-3", "And by", "no third column"),
)
_CHOSEN = "calviz.chosen"
_IN_USE = "calviz.samples"


@dataclass(frozen=True, eq=False)
class Settings:
    """The rows that the pages evaluate, with reduction and bins.

    Attributes
    ----------
    entry : OpenFile
    model : str
    split : str or None
        None: all rows.
    reduction : Reduction
    bins : int or "cube_root"
    scheme : {"equal-width", "equal-mass", "sturges"} or None
        As of a `Sample`.
    where : tuple of (str, str)
        The slice: columns and the values that they hold; empty for all rows.
    prevalence : float or None
        Share of the second class for which the rows of two classes are weighted; None leaves them as they are.
    cuts : str
        The edges that were chosen for columns of numbers and dates, as in a link; empty if all are cut at their deciles.
    predicted : tuple of str
        Predicted classes whose rows the tab Risk-coverage is about; empty for all. No other result depends on them.
    checking : (str, ndarray of int), optional
        Rows that check a promise or a map, in place of those of split and slice: how they were found, and their numbers.
    """

    entry: OpenFile
    model: str
    split: str | None
    reduction: events.Reduction
    bins: events.BinNumber
    scheme: events.Scheme | None
    where: Where = ()
    prevalence: float | None = None
    cuts: str = ""
    predicted: tuple[str, ...] = ()
    checking: tuple[str, blocks.IntArray] | None = None

    @property
    def whole(self) -> Dataset:
        """All rows of the model, weighted for the prevalence, with columns cut at the chosen edges."""
        if self.prevalence is None and not self.cuts:
            return dataset_of(self.entry.loaded.models[self.model])
        return _whole((self.entry.content_key, self.model, self.prevalence, self.cuts), self)

    @property
    def fit_split(self) -> str | None:
        """The split to fit maps and to set thresholds on, if there is one besides the rows that judge."""
        return fit_split_for(self.whole, self.split)

    @property
    def waiting(self) -> Dataset | None:
        """The rows of the slice, of whatever split, whose labels have not come; None at a prevalence, which only labels can give."""
        rows = self.entry.loaded.waiting.get(self.model)
        if rows is None or self.prevalence is not None:
            return None
        try:
            mask = rows_where(rows, self.where)
        except errors.CalvizError:  # none of them has this value
            return None
        return rows if mask is None else rows.take(mask) if mask.any() else None

    @property
    def rows_key(self) -> tuple[str, ...]:
        """Identifies the rows, for caches."""
        parts = (self.model, self.split, self.where, self.prevalence, self.cuts)
        of_promise = (self.checking or ())[:1]
        return (self.entry.content_key, *(repr(part) for part in (*parts, *of_promise)))

    @property
    def how(self) -> dict[str, Any]:
        """Reduction and bins, as options of what measures rows."""
        return {
            "reduction": self.reduction,
            "bins": self.bins,
            # Metrics are binned as the diagrams are.
            "scheme": self.scheme or self.sample.placed,
        }

    @property
    def reduction_and_bins_key(self) -> tuple[str, ...]:
        """Identifies reduction and bins, for caches and jobs."""
        return self.reduction.key, str(self.bins), self.scheme or ""

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies rows, reduction and bins, for caches and jobs."""
        return (*self.rows_key, *self.reduction_and_bins_key)

    def mask(self) -> blocks.BoolArray | None:
        """Return the mask of the rows, including those of weight 0, shape (n,); None for all."""
        data = self.whole
        mask: blocks.BoolArray | None = None
        if self.checking is not None:
            return np.isin(np.arange(data.n), self.checking[1])
        if self.split is not None and data.splits is not None:
            mask = data.splits.mask(self.split)
        level = rows_where(data, self.where)
        if mask is None or level is None:
            return mask if level is None else level
        return np.logical_and(mask, level)

    @property
    def sample(self) -> Sample:
        """The rows with reduction and bins; what is computed for them is kept with it."""
        return self._rows.sample.but(reduction=self.reduction, bins=self.bins, scheme=self.scheme)

    @property
    def row_numbers(self) -> blocks.IntArray | None:
        """Row numbers in the file of the sample's rows, 0-based; None for all rows."""
        return self._rows.numbers

    @property
    def compute_lock(self) -> RLock:
        """A lock that is held while something is computed for the sample; others who ask for the same wait."""
        return self._rows.compute_lock

    @property
    def _rows(self) -> _JudgedRows:
        rows = _rows(self.rows_key, self)
        st.session_state.setdefault(_IN_USE, WeakSet()).add(rows.sample)
        return rows

    @property
    def rows_words(self) -> str:
        """The model, if there are several, and the rows, in markdown."""
        model = f"model {md(self.model, 40)} · " if len(self.entry.loaded.models) > 1 else ""
        return f"{model}{md(self.sample.rows_words, 400)}"

    @property
    def row_count(self) -> str:
        """The number of rows: "4,000 rows"."""
        return counted(self.sample.data.rows, "row")

    @property
    def words(self) -> str:
        """Model, rows and reduction, without the bins, in one line of markdown."""
        return f"{self.rows_words} · {self.reduction_words}"

    @property
    def reduction_words(self) -> str:
        """The reduction in markdown, a long class name shortened."""
        if self.reduction.kind == "class":
            return md(f"class '{shorten(self.reduction.class_name, 40)}' against the rest")
        return md(self.reduction.label)

    @property
    def file_stem(self) -> str:
        """Beginning of the file names of downloads: the file, and the model if there are several."""
        name = self.entry.loaded.file.split(".")[0]
        if len(self.entry.loaded.models) > 1:
            name += f"-{self.model}"
        return re.sub(r"[^\w-]+", "-", name).strip("-")[:40] or "calviz"


class _JudgedRows(NamedTuple):
    """A sample of some rows, their numbers in the file, and the lock for computations."""

    sample: Sample
    numbers: blocks.IntArray | None
    compute_lock: RLock


@cached_results(2)
def _whole(key: tuple[object, ...], _settings: Settings) -> Dataset:
    data = dataset_of(_settings.entry.loaded.models[_settings.model])
    if _settings.prevalence is not None:
        data = at_prevalence(data, _settings.prevalence)
    return cut_as_chosen(data, _settings)


def cut_as_chosen(data: Dataset, settings: Settings) -> Dataset:
    """Return the data with the columns that they have cut at the chosen edges."""
    edges = edges_of(filter(None, open_files.split_parts(settings.cuts)))
    known = sliceable_columns(data)
    return cut_columns(data, {name: at for name, at in edges.items() if name in known})


@cached_results(3)
def _rows(key: tuple[str, ...], _settings: Settings) -> _JudgedRows:
    mask, data = _settings.mask(), _settings.whole
    numbers: blocks.IntArray | None = None
    if mask is not None and not mask.all():
        numbers = np.flatnonzero(mask)
        data = data.take(numbers)
    sample = Sample(data, split=_settings.split, where=_settings.where)
    if (counting := data.rows_that_count) is not None:
        numbers = counting if numbers is None else numbers[counting]
    return _JudgedRows(sample, numbers, RLock())


def cells(data: Dataset) -> int:
    """Return rows times classes."""
    return data.n * max(1, data.n_classes)


def current() -> Settings:
    """Return what the bar chose in this run (in a fragment: in the last full run)."""
    return st.session_state[_CHOSEN]


def has_current() -> bool:
    """Whether anything was chosen, as nothing is while a link waits for its file."""
    return _CHOSEN in st.session_state


def set_current(chosen: Settings) -> None:
    """Set the settings from now on; if rows or reduction have changed, forget what takes much memory. Results stay."""
    before = st.session_state.get(_CHOSEN, chosen)
    if (before.rows_key, before.reduction) != (chosen.rows_key, chosen.reduction):
        for sample in st.session_state.pop(_IN_USE, ()):
            sample.let_go()
    st.session_state[_CHOSEN] = chosen


def look_at_class(data: Dataset, index: int) -> None:
    """Reduce to one class from the next drawing of the bar on; for callbacks."""
    name = distinct(data.class_names)[data.class_names[index]]
    of_many = {"reduction": "class", "class": name}
    open_files.request_settings({"reduction": "positive"} if data.n_classes == 2 else of_many)


def look_at_default(data: Dataset) -> None:
    """Use the default reduction of these data from the next drawing on; for callbacks."""
    open_files.request_settings({"reduction": events.Reduction.default(data).kind})


def conditional_values(
    data: Dataset, column: str, mask: blocks.BoolArray | None = None
) -> tuple[str, ...]:
    """Values of a column that a condition can name, of the rows of a mask: those of a group, the slices of a column that is cut, and the sides of its edges."""
    factors = [data.groups[column]] if column in data.groups else []
    factors += [data.sliced(column)] if column in data.cuts or not factors else []
    taken = [f if mask is None else f.take(mask) for f in factors]
    sides = data.cuts[column].sides if column in data.cuts else {}
    levels = [level for factor in reversed(taken) for level in factor.levels]
    return tuple(dict.fromkeys([*levels, *sides]))


def look_at_slice(data: Dataset, where: Where, **others: str) -> None:
    """Show the rows of a slice from the next drawing of the bar on, all rows if `where` is empty, with other settings, and say which conditions give way; for callbacks."""
    both = where, current().where
    new, gone = (tuple(c for c in a if c not in b) for a, b in (both, both[::-1]))
    if new and gone:
        said = f"{where_words(new)} takes the place of {where_words(gone)}."
        open_files.queue_note(capitalised(said))
    if (cut := predictions.cut_at_score(data, where)) is not data:
        data, above = cut, dict(where)[errors.SCORE][2:]
        others = {"cuts": with_edges(current(), errors.SCORE, above), **others}
    names = distinct(sliceable_columns(data))
    requests = {column_key: no_condition for column_key, _, _, no_condition in CONDITIONS}
    for (column, value), (column_key, value_key, _, _) in zip(where, CONDITIONS, strict=False):
        requests[column_key] = names[column]
        requests[value_key] = distinct(conditional_values(data, column)).get(value, value)
    open_files.request_settings(requests | others)


def look_on_days(settings: Settings, days: tuple[str, str], where: Where = ()) -> None:
    """Show the rows of a slice, or of those shown, on some days from the next drawing of the bar on."""
    *others, late = on_days(settings.whole, days, where or settings.where)
    look_at_slice(settings.whole, (*others[: len(CONDITIONS) - 1], late))


def with_edges(settings: Settings, column: str, edges: str) -> str:
    """The cuts in a link, with edges of a column in place of its own; without any, if they are empty."""
    parts = open_files.split_parts(settings.cuts)
    cuts = [cut for cut in parts if cut.rpartition("=")[0] not in ("", column)]
    return open_files.join_parts([*cuts, *[f"{column}={edges}"] * bool(edges)])


# ---- Results


@contextmanager
def computing(settings: Settings, words: str) -> Iterator[Sample]:
    """Yield the sample while a message says what is computed; visitors of the same sample set take turns."""
    with st.spinner(words, show_time=True), settings.compute_lock, blocks.one_blas_thread():
        yield settings.sample


def evaluation(settings: Settings) -> Evaluation:
    """Compute the headline metrics with intervals and noise floors, the findings and the verdict."""
    words = f"Measuring {settings.row_count}: metrics, intervals, noise floors, verdict …"
    with computing(settings, words) as sample:
        return analysis.evaluate(sample, analysis.first_metrics(sample), ci=True, findings=True)


def metrics(
    settings: Settings, keys: tuple[str, ...], *, error_bars: bool, drawn: bool = False
) -> Evaluation:
    """Compute any metrics, with or without intervals and noise floors, or of the bins that are drawn; shows no message."""
    with settings.compute_lock:
        sample = settings.sample.but(**settings.how) if drawn else settings.sample
        return analysis.evaluate(sample, keys, ci=error_bars)


def verdict(settings: Settings) -> str:
    """Return the verdict as one sentence."""
    judged = evaluation(settings).verdict
    return judged.sentence if judged else ""


def other_view(settings: Settings) -> str | None:
    """Return what the other reduction of two classes shows, where it differs, without its numbers."""
    judged = evaluation(settings).verdict
    return f"{judged.seen_by_other[0]}." if judged and judged.seen_by_other else None


def reliability(settings: Settings, curves: tuple[CurveKind, ...] = ()) -> Reliability:
    """Compute the reliability diagram."""
    with computing(settings, f"Binning {settings.row_count} …") as sample:
        return sample.once(Reliability.compute, curves=curves)


def cumulative(settings: Settings, estimate: Estimate) -> Cumulative:
    """Compute the cumulative plot."""
    with computing(settings, f"Sorting and summing {settings.row_count} …") as sample:
        return sample.view(Cumulative.compute, estimate=estimate, **sample.redrawing)


def risk_coverage(settings: Settings, ranking: RankedBy) -> RiskCoverage:
    """Compute the risk-coverage curve."""
    words = f"Ranking {settings.row_count} by {ranking}, resampling …"
    with computing(settings, words) as sample:
        top, of = sample.top_label, settings.predicted
        return top.view(RiskCoverage.compute, ranking=ranking, predicted=of, **top.redrawing)


# ---- Choices

T = TypeVar("T")


#: A switch whose state the link holds.
toggle = partial(st.toggle, bind="query-params")


def choose_one(
    label: str,
    words: Mapping[T, str],
    *,
    key: str,
    default: T | None = None,
    help: str | None = None,
) -> T:
    """Draw the choice as buttons side by side; return the chosen value.

    Parameters
    ----------
    label : str
    words : mapping
        The values in the order shown, and the word on the button of each.
    key : str
        The name in the link; a choice whose key begins with "calviz." is no part of it.
    default : object, optional
        The value that is chosen at first, if it is not the first one; a link does not name it.
    help : str, optional
    """
    return st.segmented_control(
        label,
        tuple(words),
        default=next(iter(words)) if default is None else default,
        required=True,
        key=key,
        bind=None if key.startswith("calviz.") else "query-params",
        # It may stand in a section that is not drawn at times.
        persist_state="session",
        format_func=lambda value: words.get(value, str(value)),
        help=help,
    )


def offer_file(label: str, content: Any, name: str, mime: str, **options: Any) -> None:
    """Draw a button that downloads a file without running the page again; further options as in `st.download_button`.

    Parameters
    ----------
    label : str
    content : str, bytes or callable
        The content, or a function that makes it on a click.
    name, mime : str
        Name of the file, and its media type.
    """
    icon = ":material/download:"
    st.download_button(label, content, name, mime, icon=icon, on_click="ignore", **options)


#: The option that fits nothing.
NOT_RECALIBRATED = "none"
#: The key of the widget.
METHOD_KEY = "recalibrated"
#: In the session: a model, the method that Recalibrate advised for it last, and its map of a slice, by a key with its options.
ADVISED = "calviz.recalibrate.advised"


def choose_method(settings: Settings) -> str:
    """Draw the choice of a recalibrator; return `NOT_RECALIBRATED` if none is wanted. A link holds its key."""
    confidence = settings.whole.kind == "confidence"
    specs = {s.key: s.label for s in entry_specs.RECALIBRATORS.methods(confidence=confidence)}
    model = open_files.model_key(settings.entry, settings.model)
    of, advised, of_slice = st.session_state.get(ADVISED, ("", "", ""))
    if of != model:
        advised, of_slice = "", _map_of_slice(settings)
    named = None
    # Not bound to the address by streamlit, which would write labels, and these do not tell conditions.
    if METHOD_KEY not in st.session_state or open_files.is_history_step():
        named = st.query_params.get(METHOD_KEY, NOT_RECALIBRATED)
        older = {label: key for key, label in specs.items()}
        named = older.get(named.removesuffix(" (advised)"), named)
        of_slice = named if named.startswith("slice+") else of_slice
    if of_slice in entry_specs.RECALIBRATORS:
        specs = {of_slice: entry_specs.RECALIBRATORS[of_slice].label, **specs}
    advised = of_slice if advised.startswith("slice+") else advised
    if advised in specs:
        specs = {advised: f"{specs.pop(advised)} (advised)", **specs}
    if named is not None:
        st.session_state[METHOD_KEY] = named if named in specs else NOT_RECALIBRATED
    chosen = st.selectbox(
        "Recalibrate, and compare before with after",
        (NOT_RECALIBRATED, *specs),
        key=METHOD_KEY,
        persist_state="session",
        format_func=lambda key: "not recalibrated" if key == NOT_RECALIBRATED else specs[key],
        filter_mode="contains",
        width=420,
        help="The map is fitted on other rows than those that are shown.",
    )
    if chosen == of_slice:
        st.session_state[ADVISED] = model, advised, of_slice
    open_files.write_parameter(METHOD_KEY, None if chosen == NOT_RECALIBRATED else chosen)
    return chosen or NOT_RECALIBRATED


def _map_of_slice(settings: Settings) -> str:
    """Return the key of a map for the slice that the verdict is about; "" if other rows are off, too."""
    verdict = evaluation(settings).verdict
    if settings.where or verdict is None or verdict.others_off or not verdict.named_where:
        return ""
    # Imported here: other pages need no map.
    from calviz.recalibrators.composition import slice_of

    options = {"where": slice_of(settings.whole, verdict.named_where)}
    return f"slice+{entry_specs.cheap_method(settings.whole)} {json.dumps(options)}"


def name_after(label: str) -> str:
    """Return the name of a curve after a method."""
    return f"after {within_sentence(label)}"


def model_name(settings: Settings) -> str:
    """Return the name of a model among others: its name in the file, or the file's name if it holds only one."""
    return settings.model if len(settings.entry.loaded.models) > 1 else settings.entry.title


# Word joiner: invisible, it only keeps two characters from being parsed together.
_JOINER = "\u2060"
_SPECIAL = re.compile(r"[!-/;-@\[-`{-~]")
_AUTOLINK = re.compile(r"\b(www)(?=\.)", re.IGNORECASE)


def on_screen(text: str) -> str:
    """Leave out the options of the command line that a text names in parentheses."""
    return re.sub(r" \([^()]*--[a-z][^()]*\)", "", text)


def md(text: object, limit: int = 400) -> str:
    """Escape text so that markdown shows it as it is: no image, link, HTML, formula, icon or colour."""
    line = _AUTOLINK.sub(rf"\1{_JOINER}", shorten(text, limit))
    # Entities, because streamlit's own formula and arrow notations ignore backslashes; and joiners
    # after colons, because its icon and emoji notations are read after entities are resolved.
    line = _SPECIAL.sub(lambda m: f"&#{ord(m[0])};" + (_JOINER if m[0] in "-<>~=" else ""), line)
    return line.replace(":", f":{_JOINER}")
