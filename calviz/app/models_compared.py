"""The page Compare models: the choice of models, their comparison, and each of them after recalibration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, get_args

import pandas as pd
import streamlit as st

from calviz.app import navigation, open_files, reading_panel, screen, tables_and_cards
from calviz.app.fitting_choices import choose_fit_rows, choose_methods
from calviz.app.jobs import Job, LongWork, Work, find
from calviz.app.open_files import OpenFile, OpenModel, all_models, files, model_key
from calviz.app.session import AT_ONCE, HashFuncs, Settings, cells, choose_one, cut_as_chosen, md
from calviz.app.tables_and_cards import comparison_cell, marked_table
from calviz.app.upload import draw_uploader
from calviz.comparison import compare_models, comparison_results
from calviz.comparison.compare_models import ModelsByMethods
from calviz.comparison.comparison_results import Alignment, ModelComparison, marks_words, ranked_by
from calviz.core.entry_specs import METRICS, QUOTED, RANKED_BY, MetricResult
from calviz.core.errors import InputError
from calviz.core.predictions import Dataset
from calviz.core.words import counted, full_sentence, shorten, told_apart
from calviz.data.answers import column_of_answers
from calviz.figures.corp import MiscalibrationPlane, PlaneScore
from calviz.figures.learning_curve import ModelDifferences
from calviz.figures.reliability import Reliability
from calviz.verdicts.evaluation import Written, name_of

#: Largest number of models on the page.
MOST = 12
PLACE, MAP_PLACE = "compare_models", "models_after_map"
TO_MAP = "Compare after recalibration too"
#: Seconds before the progress of a comparison is shown.
PATIENCE = 1.0

_OFFERED = "calviz.models.known"


@dataclass(frozen=True, eq=False)
class ChosenModels:
    """The models that are compared, those of the current file first.

    Attributes
    ----------
    models : mapping of str to Predictions or ConfidencePredictions
        All rows.
    key : tuple of str
        Identifies them, for caches.
    """

    models: Mapping[str, Dataset]
    key: tuple[str, ...]


def choose_models(entry: OpenFile) -> ChosenModels:
    """Draw the list of models; models of another task are not preselected."""
    offered = {m.name: m for m in all_models(entry)}
    if missing := open_files.missing_files(st.query_params):
        st.info(md(missing, 1_000), icon=":material/link:")
    reading_panel.draw_offers(entry, of="model")
    _offer_signals(entry)
    shown = _short(offered)
    likely = [m.name for m in _of_same_rows(entry)]
    renewed = _choose_new(list(offered), likely)
    choice, more = st.columns([4, 1], vertical_alignment="bottom")
    chosen = choice.multiselect(
        "Models",
        list(offered),
        # No default where the state is set in this run: streamlit warns about two values.
        default=None if renewed else likely,
        max_selections=MOST,
        format_func=lambda name: shown.get(name, str(name)),
        key="models",
        bind="query-params",
        help="All models of this file and of the other files that are open.",
    )
    if len(offered) > 1:
        with more.popover("Add a model", icon=":material/add:", width="stretch"):
            _another_file()
    if len(offered) == 1:
        _another_file()
    rest = [model for name, model in offered.items() if name not in chosen]
    if len(chosen) == 1 and rest:
        alone = _chosen_models([offered[chosen[0]], rest[-1]], entry)
        if (why := _why_not(alone.models, None)) is not None:
            st.warning(md(str(why), 1_000), icon=":material/warning:")
    picked = _chosen_models([offered[name] for name in chosen], entry)
    open_files.write_other_files(other_files(picked, entry))
    return picked


def other_files(chosen: ChosenModels, entry: OpenFile) -> list[OpenFile]:
    """Return the files of the chosen models beside the current one."""
    others = (each for key, each in files().items() if key != entry.key)
    return [o for o in others if any(key.startswith(o.content_key) for key in chosen.key)]


def _short(names: Iterable[str]) -> dict[str, str]:
    """The names of models as they are shown: on a phone, little of a long one fits."""
    whole = tuple(names)
    return dict(
        zip(whole, told_apart(whole, 22 if screen.width_class() == "narrow" else 40), strict=True)
    )


def _offer_signals(entry: OpenFile) -> None:
    """Offer to take several answers to each question as samples, in a file that has them."""
    found, options = entry.loaded.recognition, entry.options
    answers = column_of_answers(found.columns, found.cluster_column)
    if options.answers is None and answers is not None and entry.source is not None:
        help = (
            "One row per question, and a model for each signal of confidence in the most frequent answer: agreement, entropy, stated, "
            "log-probability."
        )
        if st.button("Compare signals of confidence", icon=":material/forum:", help=help):
            chosen = replace(options, answers=answers, scores=None, kind=None)
            reading_panel.read_again(entry.title, entry.source, chosen)


def usual_models(entry: OpenFile) -> ChosenModels:
    """Return the models that are compared by default: those with nearly the same rows as the first."""
    return _chosen_models(_of_same_rows(entry), entry)


def _of_same_rows(entry: OpenFile) -> list[OpenModel]:
    first, *others = all_models(entry)
    # Those that a column names are to be compared, whatever they share.
    column = entry.loaded.recognition.model_column
    own = [model_key(entry, name) for name in entry.loaded.models if column]
    near = (
        m
        for m in others
        if m.key in own or _nearly_same_rows((first.key, m.key), first.data, m.data)
    )
    return [first, *near][:MOST]


def _chosen_models(models: list[OpenModel], entry: OpenFile) -> ChosenModels:
    own = {model_key(entry, name): name for name in entry.loaded.models}
    # The name of a file tells its models from those of others.
    alone = all(m.key in own for m in models)
    named = {own[m.key] if alone else m.name: m for m in models}
    data = {name: m.data.renamed(name) for name, m in named.items()}
    return ChosenModels(data, tuple(f"{m.key} {name}" for name, m in named.items()))


@st.cache_resource(scope="session", max_entries=64, show_spinner=False)
def _nearly_same_rows(key: tuple[str, ...], _one: Dataset, _other: Dataset) -> bool:
    if _one.n_classes == _other.n_classes and _one.ids is _other.ids is not None:
        return True
    with suppress(InputError):
        # Share of the rows of the smaller of two files from which their models are compared by default.
        return compare_models.align({"a": _one, "b": _other}).rows >= 0.8 * min(_one.n, _other.n)
    return False


def _choose_new(offered: list[str], likely: list[str]) -> bool:
    """Reset the choice if the open files have changed, as the widget would keep models that are gone; return whether it was."""
    offered_before = st.session_state.get(_OFFERED)
    renewed = (
        offered_before is not None and offered_before != offered and "models" in st.session_state
    )
    if renewed:
        st.session_state["models"] = likely
    st.session_state[_OFFERED] = offered
    return renewed


def _another_file() -> None:
    st.caption(
        "Rows are matched by identifier; without identifiers by their order, where all true labels agree."
    )
    draw_uploader("Another file: predictions and true labels", keep_current=True)


#: What identifies models and settings where rows are matched.
_BY_KEY: HashFuncs = {ChosenModels: attrgetter("key"), Settings: attrgetter("cuts", "split")}


def alignment(chosen: ChosenModels, settings: Settings) -> Alignment:
    """Return the models on the rows that they have in common, with the chosen edges of slices."""
    with st.spinner("Matching rows …", show_time=True):
        return _aligned(chosen, settings)


@st.cache_resource(scope="session", max_entries=4, show_spinner=False, hash_funcs=_BY_KEY)
def _aligned(chosen: ChosenModels, settings: Settings) -> Alignment:
    cut = {name: cut_as_chosen(data, settings) for name, data in chosen.models.items()}
    return compare_models.same_rows(cut, split=settings.split)


@st.cache_resource(scope="session", max_entries=4, show_spinner=False, hash_funcs=_BY_KEY)
def that_match(chosen: ChosenModels, settings: Settings) -> tuple[ChosenModels, tuple[str, ...]]:
    """Return the models whose rows can be matched with those before them, two at least, and why the others are left out.

    Raises InputError if no two can be matched.
    """
    first, *others = chosen.models.items()
    models, reasons = dict([first]), list[InputError]()
    for one in others:
        why = _why_not(dict([*models.items(), one]), settings.split)
        if why is None:
            models |= [one]
        else:
            # With the first alone, the reason names no model that matches.
            reasons.append(_why_not(dict([first, one]), settings.split) or why)
    if len(models) < 2 and reasons:
        raise reasons[0]
    key = tuple(k for k, name in zip(chosen.key, chosen.models, strict=True) if name in models)
    return ChosenModels(models, key), tuple(map(str, reasons))


def _why_not(models: Mapping[str, Dataset], split: str | None) -> InputError | None:
    try:
        compare_models.same_rows(models, split=split)
    except InputError as error:
        return error
    return None


def find_comparison(chosen: ChosenModels, settings: Settings) -> ModelComparison | None:
    """Return metrics, paired differences and ranks of the chosen models on the rows of the bar.

    None while they are computed, with the progress on screen, and if that failed.
    """
    of_all = f"{len(chosen.models)} models on {counted(alignment(chosen, settings).rows, 'row')}"
    key, title = job_key(chosen, settings), f"Measuring {of_all}"
    work = LongWork(PLACE, key, title, lambda: comparison_work(chosen, settings))
    result: ModelComparison | None = work.draw(at_once=True, patience=PATIENCE).result
    if result is None or not ranked_by(result) or _is_small(chosen):
        return result

    def add_map() -> Work:
        whole = alignment(chosen, replace(settings, split=None))
        return lambda job: compare_models.after_map(result, whole, where=settings.where)

    title = f"Fitting a map to each of {of_all}"
    return LongWork(MAP_PLACE, key, title, add_map, TO_MAP).draw().result or result


def job_key(chosen: ChosenModels, settings: Settings) -> tuple[str, ...]:
    """Identify a comparison, for jobs."""
    return (*chosen.key, *settings.key)


def latest_comparison(chosen: ChosenModels, settings: Settings) -> ModelComparison | None:
    """Return the comparison that the page shows, after a map for each too if that was asked for; None if there is none."""
    made = (find(place, job_key(chosen, settings)) for place in (MAP_PLACE, PLACE))
    return next((job.result for job in made if job and job.state == "finished"), None)


def comparison_work(chosen: ChosenModels, settings: Settings, after: int = 0) -> Work:
    """Return the work of a job that compares models, small ones after a map for each as well, and then has so many more steps."""
    aligned = alignment(chosen, settings)
    whole = alignment(chosen, replace(settings, split=None)) if _is_small(chosen) else None

    how, steps = settings.how, len(chosen.models) + after  # a job has no session

    def compare(job: Job) -> ModelComparison:
        job.progress(0, steps)
        comparison = compare_models.compare_models(
            aligned,
            split=settings.split,
            where=settings.where,
            progress=lambda name, done, _: job.progress(done, steps, f"{name} is measured"),
            stop=job.stopping,
            **how,
        )
        comparison_results.state_words(comparison)  # while there is progress to see
        if whole is None:
            return comparison
        return compare_models.after_map(comparison, whole, where=settings.where)

    return compare


def _is_small(chosen: ChosenModels) -> bool:
    return sum(map(cells, chosen.models.values())) <= AT_ONCE


#: Width in pixels of a small diagram.
SMALL = 288
#: In a note about rows that did not match.
LEFT_OUT = "left out"


def draw_notes(comparison: ModelComparison) -> None:
    """Say which map the models are compared after, what did not match, and which models could not be evaluated."""
    for text in comparison_results.map_words(comparison)[-1:]:
        st.caption(md(text, 500))
    for note in comparison.alignment.notes:
        if LEFT_OUT in note:
            st.markdown(f":material/warning: {md(note, 500)}")
    for m in comparison:
        if not m.ok:
            st.warning(f"{md(m.name, 60)}: {md(m.reason or '', 400)}", icon=":material/warning:")


def choose_metric(comparison: ModelComparison) -> str | None:
    """Draw the choice of the metric that ranks the models; None if no metric has paired differences."""
    keys = ranked_by(comparison)
    if not keys:
        return None
    return choose_one(
        "Judge by",
        {key: METRICS[key].label for key in keys},
        key="models-by" if RANKED_BY in keys else "models-by-confidence",
        help="NLL and the Brier score reward accuracy and calibration together; ECE and KS look at "
        "calibration alone.",
    )


def draw_metrics(comparison: ModelComparison, metrics: Iterable[str]) -> None:
    """Draw metrics of all models: best bold, second in italics, ties marked."""
    columns = [
        column
        for column in comparison.columns(metrics)
        if any(result.available for result in column.results.values())
    ]
    names = [m.name for m in comparison if m.ok]
    shown = {"model": [*_short(names).values()]}
    for column in columns:
        unit = f" ({column.written.unit_words})" * bool(column.written.unit_words)
        address = tables_and_cards.entry_address(column.key)
        heading = f"[{name_of(column.written.result)}]({address}){unit}"
        shown[heading] = [comparison_cell(column, name) for name in names]
    second = [(names.index(name), at) for at, c in enumerate(columns) for name in c.second]
    frame = pd.DataFrame(shown).set_index("model")
    st.table(marked_table(frame, second=second), border="horizontal")
    matched = " ".join(md(n, 500) for n in comparison.alignment.notes if LEFT_OUT not in n)
    st.caption(f"{marks_words(columns)} Binned metrics: {comparison.bins_words}. {matched}")
    for remark in comparison.remarks(columns):
        if remark.kind in ("value", "differences"):
            st.caption(md(remark.words(", ".join(shorten(n, 60) for n in remark.of)), 1_000))


@navigation.fragment
def draw_differences(comparison: ModelComparison, metric: str) -> None:
    """Draw paired differences to a model that can be chosen among several; the rest of the numbers is folded away."""
    order = comparison.ranking(metric)
    shown = _short(order)
    reference = order[0]
    if len(order) > 2:
        reference = st.selectbox(
            "Compare with",
            order,
            format_func=lambda name: shown.get(name, str(name)),
            # A new key for other models or another order, so that the best one is preselected.
            key=f"calviz.models.reference.{metric}.{hash(order)}",
            width=320,
        )
    figure = ModelDifferences.compute(comparison, metric=metric, reference=reference)
    screen.chart(figure, key=f"models.difference.{metric}", filename=f"models-{metric}")
    st.caption(
        f"{comparison.interval_words(metric)}. Better or worse: it excludes 0.",
        help="The chance that any of several equal models is called better, as it is or after recalibration, is 5\u00a0%. "
        f"{comparison_results.NOISELESS_WORDS} Every resample draws the same rows for all models.",
    )
    navigation.draw_folded(
        "All metrics and differences",
        partial(_draw_numbers, comparison, reference),
        key="models-differences",
    )


def _draw_numbers(comparison: ModelComparison, reference: str) -> None:
    """Draw all metrics and all differences."""
    draw_metrics(comparison, comparison.directions)
    differences = comparison.differences(reference)
    shown = [
        {"metric": f.label, "model": name, "difference": f.text(d), "verdict": d.verdict}
        for metric in comparison.pairs
        for f in [ModelDifferences.compute(comparison, metric=metric, reference=reference)]
        for name, d in zip(f.models, f.differences, strict=True)
    ]
    screen.table(pd.DataFrame(shown), alt="Paired differences of all metrics")
    tables_and_cards.download_button("Download as CSV", differences, "models-differences")


def draw_planes(comparison: ModelComparison, key: tuple[str, ...], settings: Settings) -> None:
    """Draw miscalibration, and what recalibration leaves, for both proper scores."""
    with st.container(horizontal=True, gap="medium"):
        for score in get_args(PlaneScore):
            figure = _plane((*key, *settings.key), score, comparison)
            with st.container(width=470):
                file = f"models-plane-{score}"
                screen.chart(figure, key=f"models.plane.{score}", filename=file, caption=True)
    st.caption(
        "A score is the sum of both (CORP): what recalibration can take off, and what it leaves, uncertainty − discrimination. "
        f"Dotted: equal scores.{'' if figure.one_uncertainty else ' Each model has its own hits, so these parts alone do not rank the models.'}"
    )


@st.cache_resource(scope="session", max_entries=16, show_spinner=False)
def _plane(
    key: tuple[str, ...], score: PlaneScore, _comparison: ModelComparison
) -> MiscalibrationPlane:
    return MiscalibrationPlane.compute(_comparison, score=score)


def draw_diagrams(comparison: ModelComparison, key: tuple[str, ...], settings: Settings) -> None:
    """Draw reliability diagrams side by side, on axes that end where those of the largest scores do."""
    names = [m.name for m in comparison if m.ok]
    figures = [_reliability((*key, *settings.key), n, comparison, settings) for n in names]
    axes = figures[0].shared_axes(*figures[1:]) if figures else {}
    # Two or three models share a wide page.
    wide = screen.width_class() == "wide"
    width = max(SMALL, screen.WIDE // len(names) - 12) if wide else screen.page_width() or SMALL
    if len(names) == 3 and screen.width_class() == "small":
        width = 230  # all three in a row of a tablet
    gaps = figures[0].gap_lines(*figures[1:]) if figures else ""
    st.caption(f"Points: observed, with 95\u00a0% interval. {gaps}")
    shared: dict[str, Any] = {"width": width, "legend": False, **axes}
    across: Any = "distribute" if len(names) < 4 else "left"
    with st.container(horizontal=True, gap="small", horizontal_alignment=across):
        for at, (name, figure) in enumerate(zip(told_apart(names, 34), figures, strict=True)):
            with st.container(width=width, gap=None):
                st.markdown(f"**{md(name)}**")
                file = f"reliability-{at + 1}"
                name = f"models.reliability.{at}"
                screen.chart(figure, key=name, filename=file, **shared)


@st.cache_resource(scope="session", max_entries=48, show_spinner=False)
def _reliability(
    key: tuple[str, ...], name: str, _comparison: ModelComparison, _settings: Settings
) -> Reliability:
    sample = _settings.sample.but(**_settings.how).with_data(_comparison.alignment.models[name])
    return Reliability.compute(sample, band=False)


# ---- After recalibration


def explore_methods(chosen: ChosenModels, settings: Settings) -> None:
    """Draw the choices, the running job, and the table."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        rows = choose_fit_rows(settings)
    choice = choose_methods(rows, chosen.models.values(), about=chosen.key, many_fits=True)
    if choice is None:
        return
    key = (*chosen.key, *rows.key, *settings.reduction_and_bins_key, *choice.key)

    def make_work() -> Work:
        aligned, plan = alignment(chosen, rows.settings), rows.plan(choice)
        return lambda job: compare_models.compare_methods(
            compare_models.same_rows(aligned, where=settings.where),
            plan,
            progress=lambda words, done, total: job.progress(done, total, words),
            stop=job.stopping,
        )

    work = LongWork(
        "models_methods",
        key,
        f"Fitting {counted(len(choice.methods), 'method')} to {len(chosen.models)} models",
        make_work,
        f"Compare {counted(len(choice.methods), 'method')} for each model",
        always=True,
        possible=bool(choice.methods),
        idle="The methods are fitted on the same rows for all models, and judged on the same other rows.",
    )
    # Of large files, the one map for each is the primary action.
    if (comparisons := work.draw(primary=_is_small(chosen)).result) is not None:
        _draw_methods(comparisons)


@st.fragment
def _draw_methods(comparisons: ModelsByMethods) -> None:
    for name, reason in comparisons.failures.items():
        st.warning(f"{md(name, 60)}: {md(reason, 300)}", icon=":material/warning:")
    if not comparisons.models:
        return
    first = next(iter(comparisons.models.values()))
    shown = choose_one(
        "Metric",
        {key: METRICS[key].label for key in METRICS.in_table("fits")},
        default=first.criterion or QUOTED,
        key="calviz.models.methods.metric",
    )
    columns = {name: c.column(shown) for name, c in comparisons.models.items()}
    frame = table(comparisons, columns)
    second = [
        (row, list(frame.columns).index(m.label))
        for row, (name, comparison) in enumerate(comparisons.models.items())
        for m in comparison
        if m.key in columns[name].second
    ]
    st.table(marked_table(frame, second=second), border="horizontal")
    unit = Written(MetricResult(shown, 1.0)).unit_words
    st.caption(
        f"{METRICS[shown].label}{f' in {unit}' if unit else ''}. {marks_words(columns.values()).replace('best.', 'best of its row.', 1)} "
        f"{full_sentence(first.rows_words(lambda how: md(how, 100)))} Binned metrics: {first.bins_words}."
    )
    reasons = {
        (m.label, m.reason) for c in comparisons.models.values() for m in c if not m.ok and m.reason
    }
    for label, reason in sorted(reasons):
        st.caption(f"{md(label, 60)}: {md(reason, 300)}")
    tables_and_cards.download_button(
        "Download as CSV", lambda: comparisons.frame(shown).reset_index(), f"models-methods-{shown}"
    )


def table(
    comparisons: ModelsByMethods, columns: Mapping[str, comparison_results.ComparisonColumn]
) -> pd.DataFrame:
    """Return values of a metric as markdown, one row per model, one column per method.

    Parameters
    ----------
    comparisons : ModelsByMethods
    columns : mapping of str to Column
        The methods' values, by model.
    """
    written = max((c.written for c in columns.values()), key=lambda w: w.decimals)
    short = _short(comparisons.models)
    rows: dict[str, dict[str, str]] = {}
    for name, comparison in comparisons.models.items():
        column = columns[name]
        texts = {key: written.of(column.number(key)) for key in column.results}
        rows[short[name]] = {
            m.label: comparison_cell(column, m.key, texts.get(m.key, "–")) for m in comparison
        }
    return pd.DataFrame.from_dict(rows, orient="index")
