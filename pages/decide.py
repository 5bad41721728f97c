"""What may be decided by the probabilities: coverage and risk, costs, sets of plausible classes, grades; what a judge is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import streamlit as st

from calviz.app import bar, decide_costs, decide_coverage, navigation, rows_shown, screen, session
from calviz.app.decide_cutoff import CUTOFF_KEY, explore_cutoff, explore_grades
from calviz.app.session import Settings, md, on_screen
from calviz.app.tables_and_cards import download_button, draw_metric_lines
from calviz.comparison.judging import MOST_COMPARED, Judged
from calviz.core.errors import NotAvailable
from calviz.core.words import counted, shorten
from calviz.data.judge_columns import to_compare
from calviz.figures.learning_curve import LabelWidths
from calviz.figures.roc import OutcomeHistogram
from calviz.sample.cutoff_and_grades import decidable
from calviz.sample.sample import Sample, event_rate_if_rare
from calviz.verdicts.analysis import VALIDATION_METRICS, evaluate

#: Title of the costs until there is an answer, and their sections.
COSTS = "What calibration is worth shows in the costs of decisions"
KEEP, ACT = "Keep or refer", "Act or not, for one class"
#: Summaries below the risk-coverage curve.
SUMMARIES = ("aurc", "e_aurc", "accuracy_at_90_coverage", "coverage_at_risk", "auroc_failure")


def _draw_head(chosen: Settings, title: str) -> Callable[[str], object]:
    """Draw the title of a tab; a single row, which has nothing to decide, ends the tab."""
    if chosen.sample.data.rows > 1:
        return navigation.draw_head(title)
    navigation.draw_head("One row cannot tell")
    raise NotAvailable(session.verdict(chosen))


def risk_coverage(chosen: Settings) -> None:
    """Which predictions to keep, and what is wrong among them."""
    chosen = decide_coverage.of_chosen_predictions(chosen)
    say = _draw_head(chosen, "Keeping fewer predictions should raise accuracy")
    with navigation.boundary():
        method = st.session_state.get(session.METHOD_KEY) or session.NOT_RECALIBRATED
        if chosen.predicted != (chosen.reduction.class_name,):
            _say_view_ignored(chosen, "rows count by their predicted class")
        before, after = decide_coverage.when(method, "before"), decide_coverage.when(method)
        rows_shown.say_changed(chosen, when=before)
        decide_coverage.explore_risk_coverage(chosen, method, say)
        sample = decide_coverage.chosen_rows(chosen, method)
        hint = f"Choose a point of the curve to select the rows that are kept there{before}, on every page."
        rows_shown.draw_selection(chosen, hint=hint, when=before)
        every = decide_coverage.chosen_sample(chosen, method)
        if columns := decide_costs.trust_columns(sample, every):
            st.subheader(f"Where can it be believed{after}?", anchor=False)
            decide_costs.explore_trust(chosen, sample, columns, after)
        navigation.draw_folded(
            "Summaries: AURC and others",
            lambda: _summaries(chosen, sample, after),
            key="calviz.risk.summaries",
        )


def _summaries(chosen: Settings, sample: Sample, after: str) -> None:
    with session.computing(chosen, "Resampling the summaries …"):
        evaluation = evaluate(sample, SUMMARIES, ci=True)
    draw_metric_lines(evaluation, SUMMARIES, notes={"coverage_at_risk": "5 % errors"})
    st.caption(
        f"These summaries rank {counted(sample.data.rows, 'row')} by confidence{after}.",
        help="The interval of the accuracy at 90\u00a0% coverage resamples all rows; those of the table take the kept rows as given, "
        "and so differ a little.",
    )


def costs(chosen: Settings) -> None:
    """What deciding by a cutoff, or referring the unsure rows, costs."""
    say = _draw_head(chosen, COSTS)
    with navigation.boundary():
        method = session.choose_method(chosen)
        # Alerts of a rare event are hardly ever so often right.
        if event_rate_if_rare(chosen.sample, 0.05) is None:
            navigation.draw_link("risk_coverage", "**From where on are at most 5 % wrong?**")

    def titled(draw: Callable[..., None]) -> None:
        with decide_costs.titled(say):
            draw(chosen, method, say)

    sections = {KEEP: lambda: titled(_keep_or_refer), ACT: lambda: titled(_act_or_not)}
    if chosen.whole.kind != "confidence" and not bar.needs_class(chosen):
        sections = dict(reversed(sections.items()))
    navigation.draw_sections(
        sections, key="costs-of", of_setting={CUTOFF_KEY: ACT, "cost-wrong": KEEP}
    )


def _say_view_ignored(chosen: Settings, reason: str) -> None:
    """Say why a tab does not follow the view of the bar, if that is not the usual one of more than two classes."""
    if chosen.whole.n_classes > 2 and chosen.reduction.kind != "top-label":
        st.caption(
            f"The view in the bar, {chosen.reduction_words}, changes nothing here: {reason}."
        )


def _say_off(chosen: Settings) -> None:
    """Say, with a link to what mends it, that costs by a cutoff are not those of these scores: they changed, or are not calibrated.

    These are the scores of the view.
    """
    verdict = session.evaluation(chosen).verdict
    if rows_shown.say_changed(chosen) or verdict.direction in ("calibrated", "undecided"):
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        which = "Some scores are off" if verdict.in_places else "The scores are off"
        if verdict.in_places and verdict.off_in:
            which += f", most clearly where {verdict.off_in[0]}"
        words = f"{which}, and a cutoff by costs is right for calibrated scores only."
        st.markdown(f":material/warning: {md(words, 300)}", width="content")
        navigation.draw_link("recalibrate", "Recalibrate", width="content")


def _keep_or_refer(chosen: Settings, method: str, say: Callable[[str], object]) -> None:
    _say_view_ignored(chosen, "the predicted class is kept or referred")
    top = chosen.sample.top_label.reduction
    _say_off(replace(chosen, reduction=top) if chosen.whole.n_classes > 2 else chosen)
    decide_costs.explore_decision_costs(chosen, method, say)


def _act_or_not(chosen: Settings, method: str, say: Callable[[str], object]) -> None:
    sample = _of_one_class(chosen)
    _say_off(chosen)
    explore_cutoff(chosen, method, say)
    rows_shown.draw_selection(chosen)
    navigation.draw_folded(
        "Scores by outcome", lambda: _outcomes(chosen, sample), key="calviz.decisions.outcomes"
    )
    navigation.draw_folded(
        "What validations report",
        lambda: _validation(replace(chosen, reduction=sample.reduction)),
        key="calviz.decisions.validation",
    )


def _outcomes(chosen: Settings, sample: Sample) -> None:
    with session.computing(chosen, "Counting …"):
        figure = sample.view(OutcomeHistogram.compute, seed=sample.seed)
    st.markdown(md(figure.reading(), 1_000))
    screen.chart(figure, key="decisions.histogram", filename="scores-by-outcome")


def _validation(decided: Settings) -> None:
    with st.spinner("Resampling the measures …", show_time=True):
        evaluation = session.metrics(decided, VALIDATION_METRICS, error_bars=True)
    draw_metric_lines(evaluation, VALIDATION_METRICS)
    st.caption("Before recalibration; the flexible calibration curve is on the tab Reliability.")


def prediction_sets(chosen: Settings) -> None:
    """Sets of plausible classes."""
    say = _draw_head(chosen, "Sets of classes that hold the true one as often as they promise")
    with navigation.boundary():
        rows_shown.say_changed(chosen)
        _say_view_ignored(chosen, "a set may hold any class")
        decide_costs.explore_prediction_sets(chosen, say)


def grades(chosen: Settings) -> None:
    """Grades of rising probability, and whether as much happens in each as it promises."""
    say = _draw_head(chosen, "Does as much happen in each grade as it promises?")
    with navigation.boundary(), decide_costs.titled(say):
        explore_grades(chosen.sample, lambda: _of_one_class(chosen), say)


def _of_one_class(chosen: Settings) -> Sample:
    """Ask for the class that is decided on; return its sample."""
    bar.choose_class(chosen)
    if bar.needs_class(chosen):
        raise NotAvailable("Choose the class that is decided on.")
    return decidable(chosen.sample)


def judge(chosen: Settings) -> None:
    """What the verdicts of a judge are worth, by the rows that people have looked at too."""
    say = navigation.draw_head("The judge's rate, corrected by people")
    if not navigation.has_judge(chosen.entry):
        raise NotAvailable(
            "this tab is for files with a column 'judge' and a column 'human' (empty where nobody has looked)."
        )
    usual = navigation.judged_by(chosen, None)
    groups = {name: shorten(name, 40) for name in chosen.whole.groups}
    by = st.selectbox(
        "Compare",
        (*groups, None),
        index=[*groups, None].index(to_compare(chosen.whole.groups, MOST_COMPARED)),
        format_func=lambda name: groups.get(name, "no groups"),
        key="calviz.judge.by",
        width=420,
        help="Each group is corrected by its own labels.",
    )
    columns = ("", *chosen.entry.loaded.recognition.columns)
    question = st.selectbox(
        "Rows of one question or item",
        columns,
        index=columns.index(usual.by_items),
        format_func=lambda name: shorten(name, 40) or "each row is one",
        key="calviz.judge.cluster",
        width=420,
        help="Where several rows belong to a question, intervals are those of questions, and systems are compared question by question.",
    )
    words = (usual.event, usual.no) if usual.no else ()
    event = st.selectbox("The rate of", words, key="calviz.judge.event", width=420) if words else ""
    words = tuple(sorted(words, key=lambda word: word == event))  # as class names, no comes first
    # That a column is taken anyhow is said.
    found = navigation.judged_by(chosen, by, None if question == usual.by_items else question, words)  # fmt: skip
    st.session_state[navigation.JUDGED] = {(chosen.entry.content_key, chosen.model): found}
    summary = found.summary()
    say(found.headline)
    st.markdown(md(on_screen(" ".join((found.sentence(), *summary.lines))), 1_000))
    for remark in found.remarks():
        st.warning(md(remark, 1_000), icon=":material/warning:")
    table = pd.DataFrame(summary.rows, columns=["what", "value", "95 % interval"])
    screen.table(table, alt="Rates by each method, and how far judge and people agree")
    if found.differences:
        st.subheader("Which has the higher rate, after the correction?", anchor=False)
        st.markdown("\n".join(f"- {md(d.sentence(), 300)}" for d in found.differences))
    st.subheader("How many labels?", anchor=False)
    _more_labels(found)
    is_sure = chosen.whole.kind == "confidence"
    what = "judge its confidence in its verdict" if is_sure else "take its score as a probability"
    st.caption(f"Of the labelled rows, the pages Diagnose and Recalibrate {what}.")


def _more_labels(found: Judged) -> None:
    width = st.slider(
        "Width of the interval, points",
        1.0,
        30.0,
        5.0,
        0.5,
        format="%.1f",
        key="judge-width",
        bind="query-params",
        width=420,
    )
    st.markdown(md(found.needed_sentence(width / 100)))
    screen.chart(
        LabelWidths.compute(found), key="judge.widths", filename="label-widths", own_caption=True
    )
    free = found.items - found.labelled
    if not free:
        return
    what, key = f"{found.unit.capitalize()}s to label next", "calviz.judge.next"
    rows = int(st.number_input(what, 1, free, min(50, free), key=key, width=420))

    def table() -> pd.DataFrame:
        names = ("row", "to_label", "chance")
        return pd.DataFrame(dict(zip(names, found.next_in_file(rows), strict=True)))

    download_button("Download which rows", table, "label-next")
    st.caption(
        "More of them where judge and people may differ most; give the column 'chance' with the new labels "
        "(`calviz judge FILE --chance chance`)."
    )


navigation.enter()
navigation.open_tab(
    {
        "risk_coverage": risk_coverage,
        "decisions": costs,
        "prediction_sets": prediction_sets,
        "grades": grades,
        "judge": judge,
    }
)
