"""What a click on Compare does: the choices, the work of the job, its outcome with metrics and figures, and the downloads."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from calviz.app import fitting_choices, jobs, open_files, session
from calviz.app.fitting_choices import FitRows
from calviz.app.jobs import Job
from calviz.app.open_files import SessionMap
from calviz.app.session import HashFuncs, Settings, choose_one, md, offer_file
from calviz.comparison import fitting
from calviz.comparison.advice import cautions_of, guideline, rows_of_slice
from calviz.comparison.compare import KeptComparisons, Plan, carry_out
from calviz.comparison.comparison_results import Comparison, Guideline, MethodResult
from calviz.core.blocks import IntArray, Stopped, watching
from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED, MetricResult
from calviz.core.errors import CalvizError, NotAvailable, OptionError, Reading
from calviz.core.events import Reduction, bins_used
from calviz.core.predictions import BEFORE, Dataset, Predictions
from calviz.core.words import capitalised, counted, file_size, listed, shorten
from calviz.data import Loaded, ReadingOptions
from calviz.data.csv_dialect import Dialect
from calviz.data.writing import SUFFIXES, TEXT, score_names, write_predictions
from calviz.figures.calibration_map import CalibrationMap
from calviz.figures.class_bars import TITLES, ClassBars, Mode
from calviz.figures.cumulative_plot import Cumulative
from calviz.figures.reliability import Reliability
from calviz.figures.risk_coverage import RiskCoverage
from calviz.recalibrators.composition import SliceMap, slice_of
from calviz.sample.sample import Sample, where_words
from calviz.sample.slices import usual_slices
from calviz.verdicts.analysis import evaluate

#: Number of refits that the toggle asks for: a standard deviation from these has a relative error of about a sixth.
REFITS = 20


@dataclass(frozen=True, eq=False)
class PlanChoice:
    """What the user chose to compare.

    Attributes
    ----------
    settings : Settings
    fit_rows : FitRows
        The fitting rows and the evaluation rows, and how they are divided.
    plan : Plan
    """

    settings: Settings
    fit_rows: FitRows
    plan: Plan

    @property
    def content(self) -> tuple[str, ...]:
        """Identifies the rows of all splits and the reduction, for caches."""
        return (*self.fit_rows.settings.rows_key, self.settings.reduction.key)

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the choice, for caches."""
        return (*self.content, *self.fit_rows.key, repr(self.plan))


def choose_plan(settings: Settings, said: DeltaGenerator) -> PlanChoice | None:
    """Draw the choices, and which rows they lead to into `said`; return None, with the reason there, if there is nothing to fit on."""
    of_methods, of_rows = st.columns(2, gap="medium")
    with of_rows:
        chosen_rows = _choose_rows(settings)
    with of_methods:
        methods = fitting_choices.choose_methods(chosen_rows, said=said)
    if methods is None:
        return None
    with said:
        _draw_rows(chosen_rows.rows)
    with methods.line:
        refits = 0 if chosen_rows.rows.in_sample else _refits()
    return PlanChoice(settings, chosen_rows, chosen_rows.plan(methods, refits))


def rule_for(data: Dataset) -> Guideline | None:
    """Return what wins on data like these, None if too few can be fitted on, divided as the arena divides them."""
    with suppress(CalvizError):
        return guideline(data, fitting.Division().rows(data).fit.rows)
    return None


def _draw_rows(rows: fitting.Rows) -> None:
    fit, judged = rows.fit, rows.evaluation
    st.caption(
        f"Maps are fitted on {counted(fit.rows, 'row')} ({md(fit.how)}) and judged on {counted(judged.rows, 'row')} "
        f"({md(judged.how)})."
    )
    if rows.in_sample:
        st.warning("In-sample: the maps look better than they are.", icon=":material/warning:")


def _refits() -> int:
    with st.popover("Variation of the fit", type="tertiary"):
        st.caption(
            "Intervals are for the maps as fitted. Fitting each method again, to rows drawn from the fitting rows, "
            "adds the variation of the fit to the intervals of the differences, and makes the comparison that many times longer."
        )
        is_on = session.toggle(f"Fit each method {REFITS} more times", key="refit")
    return REFITS if is_on else 0


def _choose_rows(settings: Settings) -> FitRows:
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        rows = fitting_choices.choose_fit_rows(settings, folds=True)
    with st.popover("In-sample", type="tertiary"):
        st.caption(
            "Judges the maps on the rows that they were fitted on. That flatters flexible methods: it is "
            "good for seeing overfitting, not for choosing."
        )
        if session.toggle("Fit and judge on the same rows", key="in-sample"):
            split = rows.division.fit_split or settings.split
            division = fitting.Division(fit_split=split, eval_split=split, in_sample=True)
            rows = replace(rows, division=division)
    return rows


PLACE = "recalibrate"
#: Bytes of calibrated rows that are kept. Beyond that, figures are drawn before the rows are dropped, and other figures apply the
#: maps again.
KEPT_BYTES = 400_000_000
#: Rows times classes up to which a link that asks for it, or *Recalibrate* on Overview, starts a comparison.
AT_ONCE = 5_000_000
#: The folder of ``calviz app --cache``.
CACHE_VARIABLE = "CALVIZ_CACHE"


def comparison_work(choice: PlanChoice) -> Callable[[Job], ComparisonOutcome]:
    """Return the work of a job, which must not use streamlit; the data are therefore fetched here."""
    data, settings = choice.fit_rows.data, choice.settings
    kept, judged = kept_comparisons(), choice.fit_rows.rows.judged_of(data)
    # What Overview names may be too few of these rows to be named on them.
    overview = replace(settings, where=()).sample if settings.where else None

    def run(job: Job) -> ComparisonOutcome:
        def progress(result: MethodResult, done: int, total: int) -> None:
            doing = (
                RECALIBRATORS[result.key].label if done < total else "resampling the differences"
            )
            job.progress(done, total, doing)

        comparison = kept.get(choice.key, judged) if kept else None
        if comparison is None:
            found = overview and usual_slices(overview)
            comparison = carry_out(
                replace(choice.plan, named=found.named if found else ()),
                data,
                progress=progress,
                activity=lambda key, doing: job.doing(f"{RECALIBRATORS[key].label} · {doing}"),
                stop=job.stopping,
            )
            if job.stopping() and not comparison[UNCALIBRATED].ok:
                raise Stopped  # nothing to compare with
            if kept and not job.stopping():
                kept.keep(choice.key, comparison)
        about = settings.reduction, choice.plan.options, comparison, settings.key
        outcome = ComparisonOutcome(choice.key, data, choice.fit_rows.rows, *about)
        probs = (getattr(m.calibrated, "probs", np.empty(0)) for m in comparison)
        if sum(p.nbytes for p in probs) <= KEPT_BYTES:
            return outcome
        return replace(
            outcome,
            comparison=_without_rows(comparison),
            figures=figures_of_all(outcome, settings, job),
        )

    return run


def latest_comparison(settings: Settings) -> Comparison | None:
    """Return the latest comparison under these settings of the bar; None if there is none."""
    results = (job.result for job in jobs.all_jobs().get(PLACE, {}).values() if not job.running)
    made = [r.comparison for r in results if r is not None and r.settings_key == settings.key]
    return made[-1] if made else None


def kept_comparisons() -> KeptComparisons | None:
    """Return the comparisons kept on disk; None if the app was started without a folder for them."""
    folder = os.environ.get(CACHE_VARIABLE)
    return KeptComparisons(Path(folder)) if folder else None


def stopped_words(job: Job) -> str:
    """Say in one sentence what a stopped comparison still shows."""
    if job.result is None:
        return "Stopped before a method was judged."
    return "Stopped: what was finished by then is below, with fewer resamples for differences."


def starts_at_once(choice: PlanChoice) -> bool:
    """Whether a comparison starts by itself: it is quick, or the link asks for it and it is kept or takes a little longer."""
    is_asked, cells = session.COMPARED in st.query_params, session.cells(choice.fit_rows.data)
    is_quick = cells <= (AT_ONCE if is_asked else session.AT_ONCE)
    is_kept = is_asked and choice.key in (kept_comparisons() or ())
    return bool(choice.plan.methods) and (is_quick or is_kept)


def _without_rows(comparison: Comparison) -> Comparison:
    """Return the comparison without the calibrated rows."""
    bare = (replace(m, calibrated=None) if m.recalibrator is not None else m for m in comparison)
    return replace(comparison, methods={m.key: m for m in bare})


# ---- The outcome


@dataclass(frozen=True, eq=False)
class ComparisonOutcome:
    """The result of a plan, with what its figures need.

    Attributes
    ----------
    key : tuple of str
        Identifies the plan, for caches.
    data : Predictions or ConfidencePredictions
        The rows of all splits.
    rows : Rows
        How they are divided.
    reduction : Reduction
    options : mapping
        Parameters of the methods.
    comparison : Comparison
    settings_key : tuple of str
        Identifies rows, reduction and bins of the bar.
    figures : mapping
        Figures that were computed while all calibrated rows were in memory, by method, kind and settings.
    """

    key: tuple[str, ...]
    data: Dataset
    rows: fitting.Rows
    reduction: Reduction
    options: Mapping[str, Mapping[str, Any]]
    comparison: Comparison
    settings_key: tuple[str, ...]
    figures: Mapping[tuple[str, str, str], Any] = field(default_factory=dict)

    @property
    def fitted(self) -> tuple[MethodResult, ...]:
        """The methods that were fitted, the uncalibrated model first."""
        return tuple(m for m in self.comparison if m.ok)

    def in_file(self, settings: Settings) -> Dataset:
        """The rows of a calibrated file, uncalibrated: all, those of other slices too, or under cross-fitting of all rows the evaluation rows."""
        if settings.where:
            return settings.whole
        return self.data if len(self.rows.pairs) == 1 else self.calibrated(UNCALIBRATED)

    def in_slice(self, method: str) -> Self:
        """The same of the evaluation rows that the map of a slice changes; itself for a map that changes others too."""
        if not self.comparison[method].is_of_slice or "others" in self.comparison.slice_options:
            return self
        both = {key: self.calibrated(key) for key in (UNCALIBRATED, method)}
        rows = rows_of_slice(self.comparison, both[UNCALIBRATED])
        if not rows.size:
            return self
        of_slice = {k: replace(self.comparison[k], calibrated=both[k].take(rows)) for k in both}
        how = f"where {where_words(self.comparison.off_where)}"
        judged = replace(self.rows.evaluation, rows=rows.size, how=how)
        return replace(
            self,
            key=(*self.key, method),
            comparison=replace(self.comparison, methods=of_slice),
            rows=replace(self.rows, evaluation=judged),
            figures={},
        )

    def calibrated(self, method: str) -> Dataset:
        """Return the evaluation rows after a method."""
        result = self.comparison[method]
        if result.calibrated is not None:
            return result.calibrated
        return _applied(self, method)


#: An outcome is known by its key in what is kept of it.
_BY_KEY: HashFuncs = {ComparisonOutcome: attrgetter("key")}


@st.cache_resource(scope="session", max_entries=2, show_spinner=False, hash_funcs=_BY_KEY)
def _applied(outcome: ComparisonOutcome, method: str) -> Dataset:
    judged = outcome.rows.pairs[0][1]
    scores, _ = fitting.scores_of(outcome.data)
    recalibrator = outcome.comparison[method].recalibrator
    return fitting.calibrated_by(recalibrator, outcome.data.take(judged), scores[judged])


@st.cache_resource(scope="session", max_entries=256, show_spinner=False, hash_funcs=_BY_KEY)
def metric_after(outcome: ComparisonOutcome, method: str, key: str) -> MetricResult:
    """Return a metric of the evaluation rows after a method, even one that the comparison left out."""
    comparison = outcome.comparison
    if (measured := comparison[method].metrics.get(key)) is not None:
        return measured
    how: dict[str, Any] = {"bins": comparison.bins, "scheme": comparison.scheme}
    return evaluate(outcome.calibrated(method), [key], reduction=outcome.reduction, **how)[key]


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure of the evaluation rows after a method.

    Attributes
    ----------
    compute : callable
        ``compute(data, outcome, method, settings)`` returns the figure; `data` are the rows after the method.
    binned : bool
        Whether it depends on the bins of the bar.
    at_once : bool
        Whether the page shows it for every method.
    of_map : bool
        Whether it shows a map, which the uncalibrated model does not have.
    """

    compute: Callable[[Dataset, ComparisonOutcome, str, Settings], Any]
    binned: bool = False
    at_once: bool = False
    of_map: bool = False


def _class_bars(mode: Mode, data: Dataset, *_: Any) -> ClassBars:
    return ClassBars.compute(data, mode=mode, **Sample(data).quick_redrawing)


KINDS: Mapping[str, FigureKind] = {
    "reliability": FigureKind(
        lambda data, outcome, _, of: Reliability.compute(
            data,
            reduction=outcome.reduction,
            bins=of.bins,
            scheme=of.scheme or outcome.comparison.scheme,
            band=False,
        ),
        binned=True,
        at_once=True,
    ),
    "map": FigureKind(
        lambda data, outcome, method, settings: CalibrationMap.compute(
            outcome.calibrated(UNCALIBRATED),
            data,
            name=outcome.comparison[method].label,
            reduction=outcome.reduction,
            # The rows of the outcome: it may be drawn by a job, which has no session.
            bins=bins_used(data.rows, settings.bins, "equal-width"),
        ),
        binned=True,
        at_once=True,
        of_map=True,
    ),
    "cumulative": FigureKind(lambda data, of, *_: Cumulative.compute(data, reduction=of.reduction)),
    "risk": FigureKind(lambda data, *_: RiskCoverage.compute(data)),
    **{mode: FigureKind(partial(_class_bars, mode)) for mode in TITLES},
}


def figure_after(outcome: ComparisonOutcome, method: str, kind: str, settings: Settings) -> Any:
    """Return a figure of the rows after a method, of a kind in `KINDS`."""
    settings_key = _settings_key(kind, settings)
    figure_at_hand = outcome.figures.get((method, kind, settings_key))
    if figure_at_hand is not None:
        return figure_at_hand
    return _kept_figure(outcome, method, kind, settings_key, settings)


def figures_of_all(
    outcome: ComparisonOutcome, settings: Settings, job: Job
) -> dict[tuple[str, str, str], Any]:
    """Compute the figures that the page shows for every method, until the job is asked to stop."""
    computed: dict[tuple[str, str, str], Any] = {}
    count = len(outcome.comparison.methods)
    with watching(None):  # the comparison is complete: a stop must not lose it
        for m in outcome.fitted:
            if job.stopping():
                break
            job.progress(count, count, f"drawing: {m.label}")
            for name, kind in KINDS.items():
                if not kind.at_once or (kind.of_map and m.key == UNCALIBRATED):
                    continue
                key = m.key, name, _settings_key(name, settings)
                computed[key] = kind.compute(outcome.calibrated(m.key), outcome, m.key, settings)
    return computed


def _settings_key(kind: str, settings: Settings) -> str:
    """Identify what a figure depends on in addition to the comparison."""
    return " ".join(settings.reduction_and_bins_key) if KINDS[kind].binned else ""


@st.cache_resource(scope="session", max_entries=96, show_spinner=False, hash_funcs=_BY_KEY)
def _kept_figure(
    outcome: ComparisonOutcome, method: str, kind: str, settings_key: str, _settings: Settings
) -> Any:
    return KINDS[kind].compute(outcome.calibrated(method), outcome, method, _settings)


# ---- Downloads


#: More numbers than this take minutes to write as text, and gigabytes to hold.
MOST_TEXT = 20_000_000
#: Rows times classes up to which the files are made without a click; these take half a second.
FILES_AT_ONCE = 1_000_000
#: What a file keeps that is not made of the cells of another.
STAYS = "Labels ('label'), splits ('split'), identifiers, groups, clusters, weights, times, numbers and texts stay; other columns are left out."

_BUILT_FILES = "calviz.recalibrate.ready"


@dataclass(frozen=True, eq=False)
class MethodFiles:
    """The contents of the files, or the reason why there is no snippet; how many rows a map of a slice changes, how many that were left out are calibrated, and what is to say of predicted classes."""

    table: bytes
    map: bytes
    snippet: str | None
    no_snippet: str = ""
    changed: str = ""
    later: int = 0
    said: str = ""


def draw_downloads(
    outcome: ComparisonOutcome, advised: str, settings: Settings, *, primary: bool
) -> str:
    """Draw the choice of a method and of a format, what builds the files, and the downloads; return the method."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        model = open_files.model_key(settings.entry, settings.model)
        method = _choose_method(outcome, advised, model)
        if method == UNCALIBRATED:
            st.caption(
                "The uncalibrated model is your file as it is: there is nothing to download."
            )
            return method
        usual = usual_suffix(settings.entry.loaded.file)
        suffix = choose_one(
            "Format of the file",
            {s: s[1:].upper() for s in SUFFIXES},
            default=usual,
            key=f"calviz.take-home.format.{usual}",
        )
        file_key = (*outcome.key, method, suffix)
        is_built = st.session_state.get(_BUILT_FILES, ("",))[0] == file_key
        whole = outcome.in_file(settings)
        is_requested = not is_built and (
            session.cells(whole) <= FILES_AT_ONCE
            or st.button(
                "Prepare the files",
                icon=":material/build:",
                key="calviz.take-home",
                type="primary" if primary else "secondary",
            )
        )
    if is_requested:
        try:
            with st.spinner(f"Calibrating {counted(whole.n, 'row')} …", show_time=True):
                files = _build(outcome, method, suffix, settings)
        except CalvizError as error:
            st.error(md(error, 500))
            return method
        st.session_state[_BUILT_FILES] = (file_key, files)
        _keep_map(files.map, outcome.comparison[method].label, settings)
    elif not is_built:
        n = outcome.in_file(settings).n
        of = "evaluation " * (n < outcome.data.n)
        st.caption(f"Calibrates {counted(n, f'{of}row')}.")
        return method
    files, result = st.session_state[_BUILT_FILES][1], outcome.comparison[method]
    of = where_words((*settings.where, *outcome.comparison.off_where * result.is_of_slice))
    of = of.replace(">", "above").replace("≤", "up to")
    names = filter(None, (settings.file_stem, of[:80], method))
    if len(outcome.rows.pairs) > 1:
        rows = counted(outcome.comparison.evaluation.rows, "judged row")
        words = f"Each judged row of the file is calibrated by a map that never saw it; map and snippet are fitted on all {rows}."
    else:
        own = outcome.rows.in_sample or outcome.comparison.fit.split is not None
        as_split = "" if own else " as split 'calibration'"
        words = f"The file holds the rows of the fit too{as_split}: judge the result on the others."
    words += f" {capitalised(files.changed)}" * bool(files.changed)
    words += f" {md(capitalised(files.said))}" * bool(files.said)
    columns, *others = differences(suffix, settings.entry.loaded, whole, files.later)
    said = f"{columns} {words}", " ".join(others)
    _offer(files, re.sub(r"[^\w-]+", "-", "-".join(names)), suffix, said, primary=primary)
    if method != advised:
        st.markdown(md(" ".join(_cautions(outcome, method)), 1_000))
    return method


@st.cache_resource(scope="session", max_entries=32, show_spinner=False, hash_funcs=_BY_KEY)
def _cautions(outcome: ComparisonOutcome, method: str) -> tuple[str, ...]:
    return cautions_of(outcome.comparison, outcome.comparison[method])


def _choose_method(outcome: ComparisonOutcome, advised: str, model: str) -> str:
    """Draw the choice; it follows the advice until the user chooses another one."""
    methods = [m.key for m in outcome.fitted]
    chosen, before = st.session_state.get("method"), st.session_state.get(session.ADVISED, ("", ""))
    moved = chosen not in methods or chosen == before[1]
    follows_advice = chosen not in (None, advised) and moved
    if follows_advice:
        st.session_state["method"] = advised
    options = json.dumps(outcome.comparison.slice_options)
    of_slice = "".join(f"{m.key} {options}" for m in outcome.fitted if m.is_of_slice)
    st.session_state[session.ADVISED] = model, advised, of_slice
    return str(
        st.selectbox(
            "Method",
            methods,
            # No default where the state is set in this run: streamlit warns about two values.
            index=0 if follows_advice else methods.index(advised),
            format_func=lambda key: outcome.comparison[key].label,
            key="method",
            bind="query-params",
            width=620,
            help="This method is also drawn before and after.",
        )
    )


def slice_words(outcome: ComparisonOutcome, settings: Settings) -> str:
    """Say what the map of a slice leaves, and which rows the numbers are of; "" for all rows."""
    if not settings.where:
        return ""
    rows = counted(outcome.comparison.evaluation.rows, "judged row")
    return f"Map for {where_words(settings.where)}; other rows stay as they are. Numbers are of the {rows} of this slice."


def usual_suffix(file: str) -> str:
    """Return the format of the file that was opened if it can be written, else the first format."""
    suffix = Path(file.lower().removesuffix(".gz")).suffix
    suffix = {".json": ".jsonl", ".ndjson": ".jsonl"}.get(suffix, suffix)
    return suffix if suffix in SUFFIXES else SUFFIXES[0]


def _build(outcome: ComparisonOutcome, method: str, suffix: str, settings: Settings) -> MethodFiles:
    recalibrator, rows = outcome.comparison[method].recalibrator, outcome.rows
    whole, numbers = outcome.in_file(settings), replace(settings, split=None).row_numbers
    in_file = np.arange(whole.n) if numbers is None or not settings.where else numbers
    out_of_fold = outcome.calibrated(method) if len(rows.pairs) > 1 else None
    if out_of_fold is not None:
        of_slice = outcome.comparison[method].is_of_slice
        conditions = outcome.comparison.slice_options
        options = conditions if of_slice else outcome.options.get(method, {})
        recalibrator = fitting.map_of_all(outcome.data, method, rows, options)
    if settings.where:
        recalibrator = SliceMap.around(recalibrator, slice_of(whole, settings.where))
    if out_of_fold is None:
        pairs = tuple((in_file[fit], in_file[judged]) for fit, judged in rows.pairs)
        data = fitting.apply_to_all(whole, recalibrator, replace(rows, pairs=pairs))
    elif settings.where:
        every = fitting.calibrated_by(recalibrator, whole, fitting.scores_of(whole)[0])
        data = _with_rows(every, out_of_fold, in_file[rows.judged])
    else:
        data = out_of_fold
    file = settings.entry.loaded
    later = fitting.calibrated_left_out(recalibrator, file, settings.model)
    table, n, said = written(data, whole, suffix, file, later)
    columns = file.score_columns(settings.model)
    where, changed = "", ""
    if isinstance(recalibrator, SliceMap):
        where = recalibrator.words * (recalibrator.others == UNCALIBRATED)
        tally: Counter[str] = Counter()
        for some in (whole, file.left_out[settings.model]) if n > whole.n else (whole,):
            more = fitting.columns_to_apply(recalibrator, some)
            tally.update(recalibrator.counts(fitting.scores_of(some)[0], **more))
        changed = recalibrator.reading(tally)
    record = recalibrator.to_apply(outcome.data, columns, where, file.rows_of(settings.model))
    named = file.named_as_labels(outcome.data).class_names
    content = (json.dumps(record, allow_nan=False) + "\n").encode()
    try:
        snippet, why = recalibrator.snippet(named), ""
    except NotAvailable as reason:
        snippet, why = None, str(reason)
    return MethodFiles(table, content, snippet, why, changed, n - whole.n, said)


def _with_rows(whole: Dataset, calibrated: Dataset, rows: IntArray) -> Dataset:
    """Return the data with the calibrated probabilities in some rows."""
    both = (whole, calibrated)
    probs, own = (d.probs if isinstance(d, Predictions) else fitting.scores_of(d)[0] for d in both)
    every = probs.copy()
    every[rows] = own
    return fitting.with_probabilities(whole, every)


def written(
    data: Dataset, before: Dataset, suffix: str, file: Loaded, left_out: Dataset | None = None
) -> tuple[bytes, int, str]:
    """Return the content of a calibrated file, as `write_predictions` writes it, how many of its rows are calibrated, and what is to say of predicted classes."""
    values = data.probs.size if isinstance(data, Predictions) else data.n
    if suffix in (*TEXT, ".jsonl") and values > MOST_TEXT:
        raise OptionError(f"{values:,} probabilities are too many for text; choose Parquet or NPZ.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"calibrated{suffix}"
        _, n, said = write_predictions(data, path, before=before, file=file, left_out=left_out)
        return path.read_bytes(), n, said


def differences(suffix: str, loaded: Loaded, written: Dataset, later: int = 0) -> Iterator[str]:
    """Say which columns are calibrated and where the scores before are, what stays, and which rows are left out or not calibrated."""
    new = score_names(loaded.named_as_labels(written), loaded.own_scores.get(written.name, ()))
    if suffix == ".npz":
        new = ("confidence" if written.kind == "confidence" else "probs",)
    many = "largest " * (written.kind != "confidence" and written.n_classes > 2)
    before = f"the {many}score before is in '{BEFORE}'"
    if BEFORE in written.numbers:  # from the first map
        before = f"'{BEFORE}' is as it was"
    yield f"{md(listed(new))} {'holds' if len(new) == 1 else 'hold'} the new scores; {before}."
    # The cells of the file stand in a table, but scores in its text cannot in Parquet.
    is_table = suffix in TEXT or (suffix != ".npz" and not isinstance(loaded.style, Dialect))
    keeps = is_table and loaded.cells is not None
    yield "All else is as in your file." if keeps else STAYS
    for repair in loaded.repairs_made:
        key, _, what = repair.partition(": ")
        if key.startswith("drop-"):
            is_there = keeps and key in _OF_ROWS and written.n == loaded.first.n
            without = ", without a calibrated score" * (not later)
            yield f"{f'In the file{without}' if is_there else 'Not in the file'}: {what}."
    if later:
        yield f"Of these, {counted(later, 'row')} with scores of this model {'is' if later == 1 else 'are'} calibrated."


#: Repairs that leave out rows; others leave out lines that are none.
_OF_ROWS = ("drop-missing", "drop-labels", "drop-outside")
#: Reading options that are about the scores alone: new predictions have no labels yet.
_OF_SCORES = ("scores", "models", "model_column", "kind", "sheet", "separator", "decimal", "header_line", "repair")  # fmt: skip


def _keep_map(content: bytes, label: str, settings: Settings) -> None:
    """Keep a map for files of this session that have no labels, under the name of what it was fitted on."""
    options = ReadingOptions(**_of_scores(settings.entry.options))
    model = settings.model if len(settings.entry.loaded.models) > 1 else None
    of_slice = f" where {where_words(settings.where)}" * bool(settings.where)
    of_model = f" of {model}" if model else ""
    name = f"{label}{of_model}, fitted on {shorten(settings.entry.title, 60)}{of_slice}"
    open_files.keep_map(name, SessionMap(json.loads(content), options, model))


def _of_scores(options: ReadingOptions) -> dict[str, Any]:
    changed = open_files.changed_options(options).items()
    return {name: value for name, value in changed if name in _OF_SCORES}


def read_alike(settings: Settings) -> str:
    """Return the options of a command that read the scores of a new file as those of this one were."""
    options, loaded = _of_scores(settings.entry.options), settings.entry.loaded
    # Without these the map knows its columns, also in a file that has no other model.
    named = {"scores", "models", "kind"} & {*options} or loaded.recognition.model_column
    if len(loaded.models) > 1 and named:
        options["model"] = settings.model
    return Reading("", options).in_shell()


def _offer(
    files: MethodFiles, stem: str, suffix: str, said: tuple[str, str], *, primary: bool
) -> None:
    table = f"Calibrated file ({suffix[1:].upper()}, {file_size(len(files.table))})"
    of_map = f"Map as JSON ({file_size(len(files.map))})"
    mime = "text/csv" if suffix in TEXT else "application/octet-stream"
    offered = (
        ("file", table, files.table, suffix, mime),
        ("map", of_map, files.map, "-map.json", "application/json"),
        ("snippet", "NumPy snippet", files.snippet, "-map.py", "text/x-python"),
    )
    with st.container(horizontal=True, gap="small"):
        for key, label, content, end, mime in offered:
            if content is not None:
                kind = "primary" if primary and key == "file" else "secondary"
                key = f"calviz.take-home.{key}"
                offer_file(label, content, f"{stem}{end}", mime, type=kind, key=key)
    if files.no_snippet:
        st.caption(md(capitalised(files.no_snippet), 500))
    st.caption(said[0], help=said[1])
    st.caption("For new predictions of the same model, in a terminal:")
    st.code(
        f"python -m calviz apply NEW_FILE --map {shlex.quote(f'{stem}-map.json')} --out calibrated{suffix} {read_alike(session.current())}".rstrip(),
        language="bash",
        wrap_lines=True,
    )
