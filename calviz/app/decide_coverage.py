"""The risk-coverage curve: what is kept and what is referred to an expert, before and after recalibration, for several models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import streamlit as st
from streamlit.errors import StreamlitAPIException

from calviz.app import navigation, open_files, pinning, screen, selection, session
from calviz.app.fitting_choices import choose_split
from calviz.app.open_files import OpenModel, all_models, model_key
from calviz.app.selection import Covered
from calviz.app.session import Settings, md, model_name, name_after
from calviz.app.tables_and_cards import download_button
from calviz.comparison.compare_models import align
from calviz.comparison.guaranteed_thresholds import ThresholdChoice, threshold
from calviz.core import words
from calviz.core.blocks import BoolArray, IntArray
from calviz.core.entry_specs import RECALIBRATORS, Interval
from calviz.core.errors import CalvizError
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.core.words import counted, distinct, keep_units_together, percent, shorten
from calviz.figures import risk_coverage
from calviz.figures.risk_coverage import RankedBy, ReferralChoice, RiskCoverage, XAxis, YAxis
from calviz.sample.risk_tests import wrong_where_kept
from calviz.sample.sample import (
    Sample,
    Where,
    event_rate_if_rare,
    is_predicted,
    rows_where,
    where_words,
    with_predicted,
)

_X: dict[XAxis, str] = {"coverage": "share kept", "referred": "share referred to an expert"}
_Y: dict[YAxis, str] = {"accuracy": "accuracy", "risk": "risk"}
_CURVE, _SET_ON = "risk.curve", "set-on"
#: Curves of these rows by a ranking, before the map last.
_CurvesOf = Callable[[Settings, RankedBy], list[RiskCoverage]]
_BY = {"share": "share kept", "threshold": "threshold", "error": "error rate allowed"}


#: Name in the address, and the view of one class that set it last.
_PREDICTED, _OF_VIEW = "predicted", "calviz.risk.of-view"


def of_chosen_predictions(settings: Settings) -> Settings:
    """Return the settings with the predicted classes that the page is about; before links are drawn, which follow the address.

    The view of one class chooses this class, until another is chosen.
    """
    data = settings.whole
    if not _of_many(data):
        return settings
    of_view = [settings.reduction.class_name] if settings.reduction.kind == "class" else []
    known, in_address = st.session_state.get(_PREDICTED), st.query_params.get(_PREDICTED)
    if known is None or open_files.is_history_step():
        known = of_view if in_address is None else open_files.split_parts(in_address)
    elif of_view != st.session_state.get(_OF_VIEW, of_view):
        known = of_view
    chosen = [name for name in data.class_names if name in known]
    st.session_state[_OF_VIEW], st.session_state[_PREDICTED] = of_view, chosen
    in_link = None if chosen == of_view else open_files.join_parts(chosen)
    open_files.write_parameter(_PREDICTED, in_link)
    return replace(settings, predicted=() if len(chosen) == data.n_classes else tuple(chosen))


def _choose_predictions(data: Dataset) -> None:
    """Draw the choice of these classes, if there are more than two."""
    if not _of_many(data):
        return
    shown = distinct(data.class_names)
    st.multiselect(
        "Of which predictions?",
        data.class_names,
        format_func=lambda name: shown.get(name, str(name)),
        key=_PREDICTED,
        persist_state="session",
        placeholder="all classes",
        width=420,
        help="Only what is predicted as one of these classes: curve, threshold, promise and tables are about these rows alone. "
        "At first all, or the class of the view.",
    )


@navigation.fragment
def explore_risk_coverage(settings: Settings, method: str, say: Callable[[str], object]) -> None:
    """Draw the curve, the slider and its sentence; a fragment, so that the slider reacts at once.

    Parameters
    ----------
    settings : Settings
    method : str
        The recalibrator whose curve is added, or `NOT_RECALIBRATED`.
    say : callable
        Replaces the title.
    """
    row = st.container(horizontal=True, gap="medium", key="calviz.risk.row")
    more = row.popover("Recalibrate, rank, axes", icon=":material/tune:")
    with more:
        now = of_chosen_predictions(settings)
        _choose_predictions(settings.whole)
        if (session.choose_method(settings), now.predicted) != (method, settings.predicted):
            st.rerun()  # the rest of the page follows
        ranking, x, y = _ranking_and_axes(rankings_of(settings.whole))
    result = recalibrated(settings, method) if when(method) else None

    def curves_of(rows: Settings, ranking: RankedBy) -> list[RiskCoverage]:
        if result is not None:
            return list(reversed(result.curves[ranking]))
        return [replace(session.risk_coverage(rows, ranking), name=model_name(settings))]

    with row:
        rows, point_of = _slider(curves_of, ranking, settings, method)
    figure, *others = curves = curves_of(rows, ranking)
    sample = chosen_rows(settings, method)
    choice = point_of(figure)
    before = point_of(curves[-1]) if others else choice
    kept = figure.keeps(risk_coverage.ranking_values(sample, ranking), choice.threshold)
    checked = chosen_rows(rows, method)
    these = figure.keeps(risk_coverage.ranking_values(checked, ranking), choice.threshold)
    # After a map, the scores are no longer those that the verdict is about.
    judged = None if when(method) else session.evaluation(settings).verdict
    named = judged.named_where if judged else ()
    wrong = choice.wrong or _of_slices(checked, these, choice, named)
    surely = " (95" in wrong and not choice.refused
    where = f"; w{wrong[1:].split(' (95', 1)[0]}" if surely else ""
    say(choice.headline + where)
    above, picture = st.container(), st.container()
    rare = _of_event(settings, sample, method, say, above)
    lead = "After recalibration: " if result is not None else ""
    # The title says the rest.
    words = choice.sentence if rare else choice.beyond_headline
    if not (choice.refused or settings.predicted):
        words = f"{words} {_of_class(sample, kept)}"
    words = md(keep_units_together(f"{lead}{words}"), 1_000)
    with above:
        if choice.refused:
            st.warning(words, icon=":material/warning:")
        else:
            st.markdown(words)
        if wrong:
            st.markdown(f":material/warning: {md(wrong, 400)}")
        if judged and judged.off_in:
            where = md(f"Scores are off most clearly where {judged.off_in[0]}", 200)
            navigation.draw_link("recalibrate", f"{where}: recalibrate")
    _of_selected(settings, chosen_sample(settings, method), kept, result)
    if result is not None:
        rows = replace(settings, checking=("map", result.rows))
        lead = "Before the map, on the rows that judge it: "
        st.markdown(f"{lead}{md(keep_units_together(before.sentence), 1_000)}")
        draw_rows_words(result, same=same_curve(*curves))
    others += _others(rows, figure, curves_of, more)
    others += _pinned(settings, ranking, when(method, "before"))
    with picture:
        at = choice.coverage or None
        _clickable(figure, ranking, settings.predicted, x=x, y=y, at=at, others=others)
        _select(ranking, before, when(method, "before"), settings.predicted)
    navigation.draw_folded(
        "Accuracy by share kept, as a table",
        lambda: draw_coverage_table(*curves),
        key="calviz.risk.table",
    )


def _ranking_and_axes(rankings: tuple[RankedBy, ...]) -> tuple[RankedBy, XAxis, YAxis]:
    """Draw the choice of the ranking and of both axes; return them."""
    ranking = st.segmented_control(
        "Rank by",
        rankings,
        default="confidence",
        required=True,
        key="ranking" if len(rankings) > 1 else "ranking-confidence",
        bind="query-params" if len(rankings) > 1 else None,
        help="confidence: the largest probability; entropy: of all probabilities; margin: the largest minus the second largest.",
    )
    x: XAxis = session.choose_one("Horizontal axis", _X, key="across")
    y: YAxis = session.choose_one("Vertical axis", _Y, key="up")
    return ranking or "confidence", x, y


def _slider(
    curves_of: _CurvesOf, ranking: RankedBy, settings: Settings, method: str
) -> tuple[Settings, Callable[[RiskCoverage], ReferralChoice]]:
    """Draw the choice and its slider; return the settings with the rows of the curve, and a function that gives the chosen point of any curve."""
    # Older links to a share do not name the choice, as it was the first.
    first = "share" if "keep" in st.query_params else "error"
    by = session.choose_one("Choose by", _BY, default=first, key="by")
    if by == "threshold":
        return settings, _by_threshold(curves_of(settings, ranking)[0])
    if by == "share":
        kept = st.slider(
            "Keep, % of the rows", 0, 100, 80, 1, key="keep", bind="query-params", width=420
        )
        return settings, lambda c: c.at_threshold(c.at_coverage(kept / 100).threshold)
    allowed = st.slider(
        "Errors allowed among the kept, %",
        0.0,
        50.0,
        5.0,
        0.5,
        format="%g",
        key="allowed",
        bind="query-params",
        width=420,
        help="Without another split to set it on, a half of the rows here sets the threshold, and the other half checks it.",
    )
    # What other rows check is the answer where it is about these scores.
    judged = settings.split is not None and not settings.where
    plain = ranking == "confidence" and method == session.NOT_RECALIBRATED
    if judged and plain and len(settings.whole.split_names) > 1:
        note = "Of the split in the bar, a half sets it; the other rows check the promise."
        choose_split(settings, settings.whole, "Set on", _SET_ON, own=True, help=note)
    promised = promise_of(settings, allowed / 100, predicted=settings.predicted) if plain else None
    if promised is None:
        return settings, lambda curve: curve.at_risk(allowed / 100)
    at = math.nan if promised.threshold is None else promised.threshold
    # Unless that is more than promised, the title has what the other rows show.
    seen = promised.kept if promised.refuted or promised.above or settings.predicted else None
    words, refused = replace(promised, wrong="", kept=seen).reading(), promised.refuted
    rows = settings
    if not np.array_equal(promised.judged, np.asarray(settings.row_numbers)):
        how = repr((settings.split, promised.fit.how, settings.predicted))
        rows = replace(settings, split=promised.evaluation.split, checking=(how, promised.judged))
    return rows, lambda curve: replace(
        curve.at_threshold(at),
        sentence=f"{words} Shares, curve and table are of the {counted(promised.judged.size, 'row')} left to check it.",
        refused=refused,
        promise=curve.promise(at, allowed / 100),
        wrong=keep_units_together(promised.wrong),
    )


def _allowed() -> float | None:
    """The share of errors that is allowed among the kept rows; None if these are chosen otherwise."""
    return st.session_state["allowed"] / 100 if st.session_state.get("by") == "error" else None


def promise_of(settings: Settings, risk: float, **of: Any) -> ThresholdChoice | None:
    """Return the threshold that another split guarantees, or else a half of the rows, with what the other rows show; None if there are too few."""
    split = st.session_state.get(_SET_ON) or settings.fit_split
    if split not in (None, settings.split) and settings.split and not settings.where:
        with suppress(CalvizError):
            return threshold(settings.whole, risk, choose_split=split, **of)
    with suppress(CalvizError):
        found, numbers = threshold(settings.sample.data, risk, **of), settings.row_numbers
        return found if numbers is None else replace(found, judged=numbers[found.judged])
    return None


#: Of a smaller share of events it is said, too, how many may be missed.
_FEW_EVENTS = 0.2


def _of_event(
    settings: Settings, sample: Sample, method: str, say: Callable[[str], object], above: Any
) -> bool:
    """Say what is promised of acting on the event of two classes, or above the picture on the rare class, of which the title says that few errors need no model; return whether it is rare."""
    data, allowed = settings.whole, _allowed()
    rate = event_rate_if_rare(sample, 1)
    if not allowed or rate is None:
        return False
    rare = min(rate, 1 - rate) <= allowed
    usual, event = data.class_names[:: -1 if rare and rate > 0.5 else 1]
    names = [f"'{shorten(name, 40)}'" for name in (usual, event)]
    if rare:
        right = percent(max(rate, 1 - rate))
        say(f"Always {names[0]} would be right in {right}: what counts is {names[1]}")
    both = rate < _FEW_EVENTS or rare
    with above if rare else st.container():
        for of in () if when(method) else ("precision", "recall")[: 1 + both]:
            how: dict[str, Any] = {"of": of, "reduction": f"class:{event}"}
            if promised := promise_of(settings, allowed, **how):
                words = md(keep_units_together(promised.reading()), 1_000)
                st.markdown(f"**{words}**" if rare else f"Acting on {md(names[1])} alone: {words}")
        to = f"**Decide on {md(names[1])}{': alerts by cutoff' * rare}**"
        navigation.draw_link("decisions", to)
    return rare


def _by_threshold(figure: RiskCoverage) -> Callable[[RiskCoverage], ReferralChoice]:
    values, most = figure.threshold_of(figure.steps.score), 1.0
    label, first = f"Keep where the {figure.ranking} is at least", 0.8
    if figure.ranking == "entropy":
        most = math.log(max(2, figure.n_classes))
        label, first = "Keep where the entropy is at most", round(most / 2, 3)
    key, limits = f"{figure.ranking}-limit", Interval(0.0, most)
    at = screen.choose_threshold(label, first, limits, values.tolist(), key)
    return lambda curve: curve.at_threshold(at)


def _clickable(
    figure: RiskCoverage, ranking: RankedBy, predicted: tuple[str, ...], **options: Any
) -> None:
    """Draw the curves; a click on one selects the rows that are kept there. Options are those of `figure.plot`."""
    key = selection.widget_key(_CURVE)

    def rule(percent: int) -> Covered:
        return Covered("kept", ranking, figure.at_coverage(percent / 100).threshold, predicted)

    react = selection.of_click(key, rule, by=_CURVE)
    screen.chart(figure, key=key, filename="risk-coverage", on_select=react, wide=True, **options)


def _select(
    ranking: RankedBy, choice: ReferralChoice, before: str, predicted: tuple[str, ...]
) -> None:
    """Draw buttons that select the kept and the referred rows."""
    at: int | float = choice.threshold if choice.kept else 0
    with st.container(horizontal=True, gap="small"):
        for side in ("kept", "referred"):
            st.button(
                f"Select the {side} rows{before}",
                key=f"calviz.risk.select.{side}",
                on_click=selection.choose,
                args=(Covered(side, ranking, at, predicted),),
                disabled=not getattr(choice, side),
            )


def _of_slices(sample: Sample, kept: BoolArray, choice: ReferralChoice, named: Where) -> str:
    """Name a slice in which more of the kept rows are wrong than allowed or, without a limit, than of all of them, beyond chance or where the verdict has `named` it; "" if there is none."""
    allowed, interval = _allowed(), choice.interval
    most = 1 - interval.low if allowed is None and interval is not None else allowed
    if most is None or (surely := wrong_where_kept(sample, kept, most)):
        return "" if most is None else keep_units_together(surely)
    some = kept & np.asarray(rows_where(sample.data, named) if named else False)
    wrong = 1 - sample.top_scored.hit[some].mean() if some.any() else 0.0
    of_slice = f"Where {where_words(named)}, where the scores are off, {percent(wrong)} of {counted(int(some.sum()), 'kept row')} are wrong: more than allowed, which may be chance."
    return keep_units_together(of_slice) * bool(wrong > most)


#: If at least this share of the kept rows of three or more classes has one predicted class, it is said.
_MOSTLY = 2 / 3


def _of_class(sample: Sample, kept: BoolArray) -> str:
    """Say of which predicted class most of the kept rows are, as the threshold is nearly that of this class alone; "" if of none."""
    data = sample.data
    if not isinstance(data, Predictions) or data.n_classes < 3 or not kept.any():
        return ""
    share = (
        np.bincount(data.predicted[kept], sample.row_weights[kept]) / sample.row_weights[kept].sum()
    )
    first = int(share.argmax())
    told = f"{percent(share[first])} of the kept are predicted '{shorten(data.class_names[first], 40)}'."
    return told * bool(_MOSTLY <= share[first] < 1)


def _of_selected(
    settings: Settings, sample: Sample, kept: BoolArray, result: RecalibratedCurves | None
) -> None:
    """Say how many of the selected rows, as far as they are judged, would be kept, and how many of those are right.

    `kept` is about the rows of the predicted classes that are chosen, the sample holds all.
    """
    chosen = selection.current(settings)
    if chosen is None or not chosen.rows.size or isinstance(chosen.rule, Covered):
        return
    rows, judged = chosen.rows, ""
    if result is not None:
        numbers = settings.row_numbers
        rows = np.flatnonzero(np.isin(result.rows, rows if numbers is None else numbers[rows]))
        judged = " judged"
    if settings.predicted:
        every = is_predicted(sample.data, settings.predicted)
        every[every] = kept
        kept = every
    is_kept = kept[rows]
    right_count = np.count_nonzero(sample.top_scored.hit[rows][is_kept])
    count = np.count_nonzero(is_kept)
    of_these = f", and {right_count:,} of these are right" if count else ""
    st.markdown(
        f"Of the selected rows ({md(chosen.name, 200)}), {count:,} of {rows.size:,}{judged} are kept{of_these}."
    )


def _pinned(settings: Settings, ranking: RankedBy, before: str) -> list[RiskCoverage]:
    """Return the curve of the pinned state, if that has other rows or another model."""
    pinned_state = pinning.current(settings)
    if pinned_state is None or pinned_state.settings.rows_key == settings.rows_key:
        return []
    if not {*settings.predicted} <= {*pinned_state.settings.whole.class_names}:
        return []
    of_these = replace(pinned_state.settings, predicted=settings.predicted)
    curve = session.risk_coverage(of_these, ranking)
    name = pinning.difference_of(replace(pinned_state, method=session.NOT_RECALIBRATED), settings)
    return [replace(curve, name=f"Pinned: {name}{before}")]


def _others(
    rows: Settings, figure: RiskCoverage, curves_of: _CurvesOf, place: Any
) -> list[RiskCoverage]:
    """Return the curves of other rankings and other models, if they are asked for in a place, of the same rows."""
    others: list[RiskCoverage] = []
    rankings = rankings_of(rows.whole)
    with place:
        if len(rankings) > 1 and session.toggle("Compare the rankings", key="compare"):
            others += [curves_of(rows, r)[0] for r in rankings if r != figure.ranking]
        models, left_out = other_models_of(rows)
        if (models or left_out) and other_models_wanted():
            of_models = [curve_of_model(rows, m, figure.ranking) for m in models]
            others += [curve for curve in of_models if curve is not None]
            for words in left_out:
                st.caption(md(words, 400))
    return others


#: Coverages of the table, in %.
SHOWN = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100)


def draw_coverage_table(figure: RiskCoverage, before: RiskCoverage | None = None) -> None:
    """Draw the table, and a button for the whole curve as CSV."""
    choices = _choices(figure)
    columns: dict[str, Sequence[object]] = {
        "kept": [percent(c.coverage, 0) for c in choices],
        "rows kept": [c.kept for c in choices],
        "referred": [c.referred for c in choices],
        "threshold": [c.threshold for c in choices],
        "accuracy": words.percent_numbers(c.accuracy for c in choices),
        "95 % interval": [_interval(c) for c in choices],
    }
    if before is not None:
        then = [before.at_coverage(c.coverage) for c in choices]
        columns["threshold before"] = [c.threshold for c in then]
        columns["accuracy before"] = words.percent_numbers(c.accuracy for c in then)
        columns["interval before"] = [_interval(c) for c in then]
    sign = f"{figure.ranking} {'≤' if figure.ranking == 'entropy' else '≥'}"
    count = st.column_config.NumberColumn(format="localized")
    screen.table(
        columns,
        alt="Accuracy at some coverages",
        column_config={
            "rows kept": count,
            "referred": count,
            "threshold": st.column_config.NumberColumn(sign, format="%.4f"),
            "accuracy": st.column_config.NumberColumn(format="%.1f %%"),
            "threshold before": st.column_config.NumberColumn(f"before: {sign}", format="%.4f"),
            "accuracy before": st.column_config.NumberColumn("before: accuracy", format="%.1f %%"),
            "interval before": st.column_config.TextColumn("before: 95 % interval"),
        },
    )
    download_button("Download the curve as CSV", figure.frame, "risk-coverage", quiet=True)


def _choices(figure: RiskCoverage) -> list[ReferralChoice]:
    """What is kept at the coverages of the table; of those that differ by a part of a row, the last."""
    choices = [figure.at_coverage(c / 100) for c in SHOWN]
    return list({c.kept: c for c in choices if c.kept}.values())


def _interval(choice: ReferralChoice) -> str:
    if choice.interval is None:
        return ""
    return words.percent_range(choice.interval.low, choice.interval.high)


# ---- Other models

#: Largest number of curves that can be told apart.
MOST = 5
#: Key of the toggle, its name in the address, and the value there. Older links have the name that the tab Reliability gives to the
#: column beside its rows.
_COMPARE, _OLDER, _YES = "compare-models", "beside", "true"


def other_models_wanted() -> bool:
    """Draw the toggle that adds the curves of other models; it follows the address and writes it."""
    # Not bound to the address by streamlit, which would reset it when a step in the history leads to an older link.
    if _COMPARE not in st.session_state or open_files.is_history_step():
        in_address = st.query_params.get(_COMPARE), st.query_params.get(_OLDER)
        st.session_state[_COMPARE] = _YES in in_address
    wanted = st.toggle(
        "Compare the models",
        key=_COMPARE,
        persist_state="session",
        help="The other models of the file, not recalibrated, and those of other open files that have the same rows.",
    )
    open_files.write_parameter(_COMPARE, _YES if wanted else None)
    if st.query_params.get(_OLDER) == _YES:
        # In the first run after the tab Reliability, the name may still belong to its widget.
        with suppress(StreamlitAPIException):
            del st.query_params[_OLDER]
    return wanted


def other_models_of(settings: Settings) -> tuple[list[OpenModel], list[str]]:
    """Return the other models on the same rows, and sentences about the models that are left out."""
    models: list[OpenModel] = []
    left_out: list[str] = []
    current = model_key(settings.entry, settings.model)
    loaded = settings.entry.loaded
    # Models that a column names may lack rows of each other.
    same = (settings.model,) if loaded.recognition.model_column else loaded.models
    keys_of_same = {model_key(settings.entry, name) for name in same}
    for model in all_models(settings.entry):
        if model.key in keys_of_same:
            models += [model] if model.key != current else []
            continue
        matched, reason = _matched(current, model.key, settings.whole, model.data)
        if matched is None:
            left_out.append(f"{shorten(model.name, 60)} is not drawn: {reason}")
        else:
            models.append(replace(model, data=matched))
    if len(models) > MOST:
        left_out.append(f"The first {MOST} of {len(models)} other models are drawn.")
    return models[:MOST], left_out


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def _matched(
    key: str, other_key: str, _whole: Dataset, _other: Dataset
) -> tuple[Dataset | None, str]:
    try:
        models = align({"this": _whole, "that": _other}).models
    except CalvizError as error:
        return None, str(error)
    if models["this"].n < _whole.n:
        return None, f"it has only {models['this'].n:,} of the {_whole.n:,} rows."
    return models["that"], ""


def curve_of_model(settings: Settings, other: OpenModel, ranking: RankedBy) -> RiskCoverage | None:
    """Return the curve of another model; None if it has no such ranking."""
    if other.data.kind == "confidence" and ranking != "confidence":
        return None
    if not {*settings.predicted} <= {*other.data.class_names}:
        return None
    key = (*settings.rows_key, other.key, ranking, *settings.predicted)
    with st.spinner("Ranking the other models …", show_time=True):
        return _curve(key, settings, other, ranking)


@st.cache_resource(scope="session", max_entries=64, show_spinner=False)
def _curve(
    key: tuple[str, ...], _settings: Settings, _other: OpenModel, _ranking: RankedBy
) -> RiskCoverage:
    mask = _settings.mask()
    data = _other.data if mask is None else _other.data.take(np.flatnonzero(mask))
    curve = RiskCoverage.compute(data, ranking=_ranking, predicted=_settings.predicted)
    return replace(curve, name=_other.name)


# ---- After recalibration


def when(method: str, word: str = "after") -> str:
    """Return " after recalibration", for what the page says of some scores; "" if there is no method."""
    return "" if method == session.NOT_RECALIBRATED else f" {word} recalibration"


def chosen_sample(settings: Settings, method: str) -> Sample:
    """Return the rows, after the method if there is one; raise a CalvizError if it cannot be fitted."""
    return pinning.sample_after(settings, method) if when(method) else settings.sample


def chosen_rows(settings: Settings, method: str) -> Sample:
    """Return those of these rows that are predicted as one of the chosen classes; of more than two, under the top label, with a column of these."""
    sample = chosen_sample(settings, method)
    if not _of_many(sample.data):
        return sample
    return _of_classes((*settings.key, method, *settings.predicted), sample, settings.predicted)


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _of_classes(key: tuple[str, ...], _sample: Sample, _names: tuple[str, ...]) -> Sample:
    top = _sample.top_label
    return top.with_data(with_predicted(top.data)).predicted(_names)


def _of_many(data: Dataset) -> bool:
    """Whether the predicted class is one of more than two."""
    return data.n_classes > 2 and (isinstance(data, Predictions) or data.predicted is not None)


@dataclass(frozen=True, eq=False)
class RecalibratedCurves:
    """The kept results of a recalibration: curves, and the confidences that decisions use.

    Attributes
    ----------
    label : str
        The method's label.
    rows : ndarray of int
        Row numbers of the judged rows, in the model's data.
    curves : mapping
        By ranking: before, after.
    judged, fit : (Sample, Sample)
        Before and after: the judged rows, and the rows that the map was fitted on. Confidences only, which take little memory.
    fit_words, judged_words : str
    warnings : tuple of str
    """

    label: str
    rows: IntArray
    curves: dict[RankedBy, tuple[RiskCoverage, ...]]
    judged: tuple[Sample, Sample]
    fit: tuple[Sample, Sample]
    fit_words: str
    judged_words: str
    warnings: tuple[str, ...]


def recalibrated(settings: Settings, method: str) -> RecalibratedCurves:
    """Return curves and confidences before and after a method."""
    words = f"Fitting {RECALIBRATORS[method].label.lower()}, ranking, resampling …"
    with st.spinner(md(words), show_time=True):
        return _recalibrated(settings.rows_key, method, settings.predicted, settings)


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def _recalibrated(
    key: tuple[str, ...], method: str, predicted: tuple[str, ...], _settings: Settings
) -> RecalibratedCurves:
    result, after = pinning.fitted(key, method, _settings)
    label = RECALIBRATORS[method].label
    names = (model_name(_settings), name_after(label))
    judged = Sample(result.before), after

    def curves(ranking: RankedBy) -> tuple[RiskCoverage, ...]:
        how: dict[str, Any] = {"ranking": ranking, "predicted": predicted}
        each = zip(judged, names, strict=True)
        return tuple(replace(RiskCoverage.compute(s, **how), name=name) for s, name in each)

    return RecalibratedCurves(
        label=label,
        rows=result.rows,
        curves={ranking: curves(ranking) for ranking in rankings_of(_settings.whole)},
        judged=(_confidences(judged[0]), _confidences(judged[1])),
        fit=(_confidences(Sample(result.fit_before)), _confidences(Sample(result.fit_after))),
        fit_words=result.fit.words,
        judged_words=result.evaluation.words,
        warnings=result.warnings,
    )


def rankings_of(data: Dataset) -> tuple[RankedBy, ...]:
    """Return the rankings that are defined for the data."""
    return ("confidence",) if data.kind == "confidence" else get_args(RankedBy)


def _confidences(sample: Sample) -> Sample:
    events = sample.top_events
    return Sample(
        ConfidencePredictions(confidence=events.score, correct=events.hit, name=sample.data.name)
    )


def same_curve(a: RiskCoverage, b: RiskCoverage) -> bool:
    """Whether a map kept the order of the predictions, as far as the curves show."""
    return bool(a.risk.shape == b.risk.shape and np.allclose(a.risk, b.risk, rtol=0, atol=1e-12))


def draw_rows_words(result: RecalibratedCurves, *, same: bool) -> None:
    """Say which rows the map was fitted on, and which are shown."""
    words = (
        f"{result.label} is fitted on {result.fit_words}; both curves are of {result.judged_words}."
    )
    if same:
        words += (
            " They are the same: the map keeps the order of the predictions. What it changes is the "
            "confidence that a threshold is set on."
        )
    st.caption(md(" ".join([words, *result.warnings]), 1_000))
