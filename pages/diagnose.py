"""Where the probabilities are off: by score, by class, by group, over time; and every number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from calviz.app import (
    bar,
    diagnose_classes,
    diagnose_groups,
    diagnose_metrics,
    interactive_reliability,
    navigation,
    pinning,
    reading_panel,
    rows_shown,
    screen,
    selection,
    session,
    tables_and_cards,
)
from calviz.app.session import Settings, md
from calviz.core.entry_specs import CHECKS, shown_first
from calviz.core.predictions import columns_with_slices
from calviz.core.words import capitalised, full_sentence, keep_units_together
from calviz.figures.bin_sensitivity import BinSensitivity
from calviz.figures.calibration_map import NAMES, CalibrationCurve
from calviz.figures.class_bars import TITLES, headline
from calviz.figures.corp import CorpDiagram
from calviz.figures.cumulative_plot import Cumulative, CumulativePanel, Estimate
from calviz.figures.net_benefit import DecisionLoss
from calviz.sample.error_bars import FEWEST_CLUSTERS
from calviz.verdicts.evaluation import alone
from calviz.verdicts.miscalibration_checks import where_to_look
from calviz.verdicts.sentence import of_all_rows

#: Sections below the reliability diagram, which older links open by a setting.
BEFORE_AND_AFTER, A_CURVE = "Before and after recalibration", "A curve instead of bins"
#: Width of a panel in pixels; two fit in a row, on a usual page too.
PANEL = 350
#: Relative widths of a figure and of the words beside it.
BESIDE = (3, 2)
#: The setting that chooses how the probability of a hit is estimated.
ESTIMATE = "estimate"
ESTIMATES: dict[Estimate, str] = {"smooth": "smoothing", "isotonic": "isotonic regression"}
#: What each panel shows, for its alternative text.
PANELS: dict[CumulativePanel, str] = {
    "a": "Cumulative score and hits against the share of rows",
    "b": "The same against the cumulative score",
    "c": "Score and probability of a hit against the share of rows",
    "d": "Probability of a hit against the score",
    "gap": "Scores minus hits, summed up, against the share of rows",
}
#: What counts as a hit.
HIT_WORDS = {
    "top-label": "the predicted class is the true one",
    "top-r": "the r-th class is the true one",
    "within-top-r": "the true class is among the first r",
    "class": "that class is the true one",
    "positive": "the positive class is the true one",
}
ORDERS = {"beyond": "by what is outside", "value": "by the error", "class": "by class"}
GREY = (
    "Grey: the range of a perfectly calibrated model. By chance, some class leaves it in at most 5 of 1,000 files. What lies within may "
    "be chance."
)
NOT_CENTRED = "It is not centred at 0, as the rows of one true class hold more wrong predictions than the rows that the model gave to it."
_NOT_0 = "It is not 0: the rows of a hard class look overconfident even then, so that a long bar alone is no evidence of an error."
NO_RANGE = f"What a perfectly calibrated model would show cannot be said without the probabilities of all classes. {_NOT_0}"
NO_RANGES = {
    "profile": f"A profile holds sums of the rows, from which what a calibrated model would show by true class is not known. {_NOT_0}",
    "clusters": f"How many rows of a cluster a calibrated model would get wrong together is not known by true class; by predicted class and one-vs-rest it is. {_NOT_0}",
    "few-clusters": "So few clusters do not show how far a class of a calibrated model may be off; a long bar alone is no evidence of an error. "
    f"With rows in fewer than {FEWEST_CLUSTERS} clusters a class has no interval either.",
}


def reliability(chosen: Settings) -> None:
    """Bin by bin, and by a curve."""
    say = navigation.draw_head("Where the scores are off")
    with navigation.boundary():
        evaluation = session.evaluation(chosen)
        judged = evaluation.verdict
        assert judged is not None  # findings come with it
        worst = next((f for f in evaluation.findings if CHECKS[f.code].about == "bins"), None)
        # What else Overview leads with is answered by other tabs.
        judged = of_all_rows(judged, chosen.sample)
        title, details = judged.headline, judged.beyond_headline
        # The findings may be about the other view of two classes, whose bins are not drawn here; then both views are described.
        if judged.reduction != chosen.reduction.key:
            details = " ".join(filter(None, (details, judged.other_view)))
        elif worst is not None and worst.short:
            title, details = worst.short, worst.message.split("): ", 1)[-1]
        selected = rows_shown.slice_words(chosen)
        say(selected or title)
        if details and not selected:
            st.markdown(md(keep_units_together(full_sentence(capitalised(details))), 1_000))

        bar.draw_other_view(chosen)
    interactive_reliability.explore_bins(chosen)
    navigation.draw_sections(
        {
            "Rows worth looking at": lambda: rows_shown.explore_notable_rows(chosen),
            BEFORE_AND_AFTER: lambda: pinning.explore_before_and_after(chosen),
            A_CURVE: lambda: _curve_instead_of_bins(chosen),
            "Does the choice of bins matter?": lambda: _choice_of_bins(chosen),
        },
        key="below-bins",
        of_setting={session.METHOD_KEY: BEFORE_AND_AFTER, "curve": A_CURVE},
    )


def _curve_instead_of_bins(chosen: Settings) -> None:
    kind = session.choose_one(
        "Fitted by",
        NAMES,
        key="curve",
        help="ICI, E50, E90, Emax and ECI are distances from the spline, unless another curve is asked for. The band is that of "
        "each score for itself.",
    )
    with session.computing(chosen, f"Fitting a curve to {chosen.row_count} …") as sample:
        curve = sample.view(CalibrationCurve.compute, curve=kind)
    st.markdown(md(capitalised(keep_units_together(curve.reading())), 1_000))
    screen.chart(curve, key="reliability.curve", filename="calibration-curve")


def _choice_of_bins(chosen: Settings) -> None:
    words = "Computing the ECE for 1 to 100 bins, and its noise …"
    with session.computing(chosen, words) as sample:
        strip = sample.once(BinSensitivity.compute)
    st.markdown(md(keep_units_together(strip.reading()), 1_000))
    screen.chart(strip, key="reliability.strip", filename="ece-by-bins", wide=True)
    tables_and_cards.draw_figure_table(strip.frame, "ece-by-bins", alt="ECE by number of bins")


def cumulative(chosen: Settings) -> None:
    """How far the sums of scores and hits differ, without bins."""
    say = navigation.draw_head("How far the sums of scores and hits differ")
    with navigation.boundary():
        figure = session.cumulative(chosen, st.session_state.get(ESTIMATE, "smooth"))
        alone = chosen.sample.data.rows == 1
        verdict = session.evaluation(chosen).verdict
        answer = session.verdict(chosen) if alone else figure.reading(verdict, titled=True)
        say(verdict.headline if alone else figure.headline(verdict))
        st.markdown(
            md(keep_units_together(answer), 1_000),
            help="From the lowest score upwards, scores and hits are summed up; for a calibrated model the two sums stay together. "
            f"A hit is a row where {md(HIT_WORDS[chosen.reduction.kind])}; the fractile is the share of the rows, lowest scores "
            "first. The KS error is where the sums are furthest apart, the Kuiper error the range of their difference, which is the "
            "largest error over any range of scores.",
        )
        with st.spinner("Resampling the errors …", show_time=True):
            # Chosen for this page: the distances that its panels show. The sentence says the first, but not the pinned one.
            keys = ("ks", "kuiper")
            evaluation = session.metrics(chosen, keys, error_bars=True)
        pinned = pinning.values(chosen, keys)
        tables_and_cards.draw_metric_lines(
            evaluation, keys if pinned else keys[1:], verdict=verdict, pinned=pinned
        )
        rows_shown.draw_selection(chosen, rows=False)
        bar.draw_other_view(chosen)
        _panels(("a", "gap"), figure, chosen)

    key = "below-sums"
    sections = {
        "Three more panels": lambda: _more_panels(chosen),
        "Isotonic curve (CORP)": lambda: _isotonic(chosen),
        "What it costs those who decide": lambda: _decision_loss(chosen),
    }
    navigation.draw_folded(
        "Three more panels, isotonic curve (CORP), what it costs those who decide",
        lambda: navigation.draw_sections(sections, key=key),
        key=f"calviz.{key}",
        opened=bool({key, ESTIMATE} & {*st.query_params}),
    )


def _panels(panels: Sequence[CumulativePanel], figure: Cumulative, chosen: Settings) -> None:
    """Draw panels side by side, three where there is room, on a phone one above the other."""
    pinned = pinning.overlay(
        chosen,
        lambda s: s.view(Cumulative.compute, estimate=figure.estimate, band=False, seed=s.seed),
    )
    own = selection.cumulative_overlay(chosen, figure.estimate)
    others = own if pinned is None else (*own, pinned)
    if len(panels) == 2:
        places = st.columns(2, gap="medium")
    else:
        row = st.container(horizontal=True, gap="medium")
        places = [row.container(width=PANEL) for _ in panels]
    # Where two fill a wide page, their legends have room, and both are of one size.
    usual = None if len(panels) == 2 and screen.wider() else PANEL
    width, ends = screen.page_width() or usual, selection.score_range(chosen)
    for place, panel in zip(places, panels, strict=True):
        with place:
            screen.chart(
                figure,
                screen.plotted(figure, panels=[panel], width=width, selected=ends, beside=others),
                key=f"cumulative.{panel}",
                filename=f"cumulative-{panel}",
                alt=f"{PANELS[panel]}. {figure.describe()}",
            )
    if others and "gap" in panels:
        st.caption(
            f"{' and '.join(md(one.name, 200) for one in others)}: drawn in the difference, and by score, where one line is enough."
        )


def _more_panels(chosen: Settings) -> None:
    estimate = session.choose_one(
        "Probability of a hit by",
        ESTIMATES,
        key=ESTIMATE,
        help="The KS error does not depend on it.",
    )
    figure = session.cumulative(chosen, estimate)
    _panels(("b", "c", "d"), figure, chosen)
    tables_and_cards.draw_figure_table(figure.frame, "cumulative", alt="The points of the panels")


def _isotonic(chosen: Settings) -> None:
    with session.computing(chosen, "Fitting isotonic curves again …") as sample:
        isotonic = sample.view(CorpDiagram.compute, **sample.redrawing)
    _beside_words(
        isotonic,
        "corp",
        "The increasing curve that fits best (CORP). Grey: where it falls if the model is calibrated. Coloured: how far it moves "
        "when rows are resampled.",
        isotonic.reading(),
    )


def _decision_loss(chosen: Settings) -> None:
    with session.computing(chosen, "Comparing decisions at every cutoff …") as sample:
        cost = sample.view(DecisionLoss.compute, **sample.redrawing)
    _beside_words(
        cost,
        "decision-loss",
        cost.reading(),
        "The stake is the most that a decision can gain or lose. Those who know their cutoff read the loss there; those who do "
        "not, read the highest point.",
    )


def _beside_words(figure: Any, name: str, words: str, help: str) -> None:
    picture, beside = st.columns(BESIDE, gap="medium", vertical_alignment="center")
    with picture:
        screen.chart(figure, key=f"cumulative.{name}", filename=name)
    beside.caption(md(keep_units_together(words), 1_000), help=md(keep_units_together(help), 1_000))


def classwise(chosen: Settings) -> None:
    """Which classes are off, compared with what a calibrated model would show."""
    say = navigation.draw_head("Which classes are off")
    with navigation.boundary():
        class_errors = diagnose_classes.find_class_views(chosen)
        if class_errors is None:
            st.stop()
        rare = class_errors.rare
        shown = list(class_errors.views.values())[: 1 if rare else None]
        is_off, beside = False, st.empty()
        if chosen.sample.data.rows == 1:
            st.markdown(md(session.verdict(chosen), 1_000))
        else:
            words, is_off = headline(shown)
            title, _, rest = words.partition("; ")
            if not is_off:
                say(title.rstrip("."))
                beside.markdown(md(capitalised(rest), 1_000))
        ranged = any(figure.band is not None for figure in shown)
        # On a phone, the choices break into lines.
        with st.container(horizontal=screen.page_width() is None, gap="medium"):
            mode = class_errors.choose()
            order = session.choose_one(
                "Sort",
                {key: words for key, words in ORDERS.items() if key != "beyond" or ranged},
                default="beyond" if ranged else "value",
                key="order",
            )
        st.caption(
            f"{rare} is seldom or never the more probable class: what to act on is its probability, one-vs-rest on all rows."
            if rare
            else "By predicted class is what to act on, as it is known when the model is used; one-vs-rest takes the probability of "
            "each class on all rows, by true class the rows that have the class."
        )
        figure = class_errors.views.get(mode)
        ranked = figure or shown[-1]
        if chosen.sample.data.rows == 1:
            say(session.evaluation(chosen).verdict.headline)
        elif is_off:
            # The title is about the chosen view, or about one that shows a class outside; what Overview says is said in its words.
            found = shown_first(where_to_look(session.evaluation(chosen)))
            told = {CHECKS[f.code].about: f.short or f.message for f in found}
            view = next(one for one in (figure, *shown) if one and headline([one])[1])
            say((told.pop(view.mode, "") or headline([view])[0]).rstrip("."))
            if others := [full_sentence(told[key]) for key in TITLES if key in told]:
                beside.markdown(md(" ".join(others), 1_000))
        pinned = diagnose_classes.pinned_class_errors(chosen, ranked.mode)
        st.markdown(f"**{TITLES[mode]}{' (MCS)' if mode == 'true-class' else ''}**")
        if figure is None:
            st.caption(md(full_sentence(class_errors.reasons[mode]), 1_000))
        else:
            if is_off and not headline([figure])[1]:
                st.markdown(md(figure.shares(), 1_000))
            diagnose_classes.draw_bars(figure, order, chosen, pinned)
            if figure.band is None:
                st.caption(NO_RANGES.get(figure.no_range or "", NO_RANGE))
            else:
                st.caption(f"{GREY} {NOT_CENTRED}" if mode == "true-class" else GREY)
        frame = diagnose_classes.merged_views(chosen, class_errors)
        diagnose_classes.drill_down(frame, chosen, rare=bool(rare))
        if chosen.whole.labels is not None:
            rows_shown.draw_selection(
                chosen,
                hint=f"Choose a bar{'' if rare else ' or a cell of the matrix'}, or tick a class, to select its rows, here and on every page.",
            )
        listed = ranked.class_index[ranked.ranked(order)].tolist()
        diagnose_classes.draw_table(frame, chosen, listed, ranked.mode, pinned)
        if rare:
            navigation.draw_link("decisions", "Mistakes at a cutoff, under Costs")
        else:
            diagnose_classes.explore_confusion(chosen, in_order=order == "class")


def groups(chosen: Settings) -> None:
    """For which groups of rows they are off."""
    say = navigation.draw_head("For which groups it is off")
    # All slices, whichever one the other pages show.
    chosen = replace(chosen, where=())

    with navigation.boundary():
        if not columns_with_slices(chosen.whole):
            words = "No column of this file makes groups; add one, such as region, device or age, and open it again."
            st.info(words, icon=":material/info:")
            return
        question = diagnose_groups.ask_for_slices(chosen)
        if not question.columns:
            st.info("Choose a column.")
        else:
            tested = diagnose_groups.measure_slices(chosen, question)
            pinned = diagnose_groups.pinned_gaps(chosen, question, tested)
            say(diagnose_groups.draw_answer(tested, chosen, pinned))
            diagnose_groups.draw_slices_table(tested, chosen, pinned)
            rows_shown.draw_selection(chosen)
        diagnose_groups.draw_levels(chosen)


def time(chosen: Settings) -> None:
    """Whether they stay right over time."""
    say = navigation.draw_head("Whether it stays right over time")
    with navigation.boundary():
        rows_shown.say_not_followed(chosen, "Changes are looked for in all rows and in each slice")
        if chosen.whole.times is None:
            st.info(
                "This file has no time column. A column of dates that is called date, time or timestamp, for example, is recognised as "
                "one; any other can be chosen behind the file's name, under *How it was read*.",
                icon=":material/info:",
            )
            reading_panel.draw_offers(chosen.entry, of="time_column")
        else:
            diagnose_groups.explore_over_time(chosen, say)


def metrics(chosen: Settings) -> None:
    """Every metric with its interval, its noise floor and its meaning."""
    navigation.draw_head("All metrics")
    with navigation.boundary():
        rows_shown.draw_selection(chosen, rows=False)

    with navigation.boundary():
        small = session.cells(chosen.sample.data) <= session.AT_ONCE
        with st.container(horizontal=True, vertical_alignment="bottom"):
            family = st.selectbox(
                "Family",
                (diagnose_metrics.ALL_FAMILIES, *diagnose_metrics.families()),
                key="family",
                bind="query-params",
                filter_mode="contains",
                width=280,
            )
            error_bars = session.toggle(
                "Intervals and noise floors",
                value=small,
                # Two keys, as the two have different defaults.
                key="error-bars" if small else "error-bars-large",
                help="From 1,000 resamples each; on large data they take a while, family by family.",
            )
            export = st.container(width="content")
        if chosen.sample.data.rows == 1:
            st.caption("n = 1: the values are not meaningful, and there are no intervals.")
        results = diagnose_metrics.explore_table(
            chosen, family or diagnose_metrics.ALL_FAMILIES, error_bars=error_bars
        )
        noise, p_values = "", ""
        if error_bars and chosen.sample.data.rows > 1:
            noise = "Noise: what a perfectly calibrated model would show with so many rows. "
            p_values = f" {alone(session.evaluation(chosen).verdict)}"
        st.caption(
            f"{noise}Points are percentage points.",
            help="Proper scores, class-wise and selective metrics look at the whole prediction, the others at the "
            f"{chosen.reduction_words}; ECE², debiased, has bins of equal mass.{p_values}",
        )
        with export.popover("Export", icon=":material/download:"):
            diagnose_metrics.draw_export(results, chosen)


navigation.enter()
navigation.open_tab(
    {
        "reliability": reliability,
        "cumulative": cumulative,
        "classwise": classwise,
        "slices": groups,
        "over_time": time,
        "metrics": metrics,
    }
)
