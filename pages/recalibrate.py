"""What fixes it: methods compared, how many labels they need, and which win elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from calviz.app import navigation, recalibrate_comparison, recalibrate_results, rows_shown, session
from calviz.app.jobs import LongWork
from calviz.app.pinning import draw_before_and_after, say_simple_map
from calviz.app.recalibrate_arena import explore_arena
from calviz.app.recalibrate_comparison import PLACE, ComparisonOutcome
from calviz.app.recalibrate_learning_curve import explore_learning_curve
from calviz.app.session import COMPARED, Settings, md
from calviz.core.words import capitalised, counted, keep_units_together

BEFORE_AND_AFTER = "Before and after"
OUT_OF_DATE = "The results belong to other choices. Compare again to bring them up to date."


def methods(chosen: Settings) -> None:
    """Methods fitted on some rows and compared on others; the chosen one can be downloaded."""
    say = navigation.draw_head("Compare methods that recalibrate")
    with navigation.boundary():
        # What has ended is answered by no map.
        verdict = session.evaluation(chosen).verdict
        ended = verdict is not None and verdict.ended
        changed = "" if ended else rows_shown.say_changed(chosen, primary=True)
        if changed:
            say(f"Advice: fit on the rows since {changed} only")
        # What to take comes before the choices that led to it.
        first = st.container()
        actions = st.container(gap="small")
        with st.expander("Methods and rows"):
            choice = recalibrate_comparison.choose_plan(chosen, actions)
        if choice is None:
            return
        with actions:
            size, n = session.cells(choice.fit_rows.data), len(choice.plan.methods)
            waits = f"Fits {counted(n, 'method')}, judges each on rows that its fit has not seen and advises one. It can be stopped."
            waits += " So many rows are not compared without a click." * (size > session.AT_ONCE)
            work = LongWork(
                PLACE,
                choice.key,
                "Fitting and judging",
                lambda: recalibrate_comparison.comparison_work(choice),
                "Compare methods",
                ":material/play_arrow:",
                "calviz.compare",
                about=choice.content,
                always=True,
                possible=bool(choice.plan.methods),
                idle=waits * bool(choice.plan.methods),
                stopped=recalibrate_comparison.stopped_words,
                out_of_date=OUT_OF_DATE,
            )
            # A link that was made after a comparison shows a comparison.
            at_once = work.is_first and recalibrate_comparison.starts_at_once(choice)
            status = work.draw(at_once=at_once, primary=not changed)
            if status.state != "idle":
                st.query_params[COMPARED] = "yes"  # the link opens the comparison, too
        if status.result is not None:
            with first:
                method = _draw_advice(status.result, chosen, say, changed=bool(changed))
            _draw_results(status.result, method, chosen)
        elif size > session.AT_ONCE and verdict and not changed and say_simple_map(chosen, verdict):
            draw_before_and_after("", chosen)


def _draw_advice(
    outcome: ComparisonOutcome, chosen: Settings, say: Callable[[str], object], *, changed: bool
) -> str:
    """Draw the advice with its downloads, and return the method chosen; `say` replaces the title, if the advice comes before what is said of a change."""
    from calviz.report.sections.summary import advice_words

    comparison = outcome.comparison
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            title = st.empty()
            keep_classes = session.toggle("No predicted class may change", key="keep-classes")
            advice = comparison.advice_keeping_classes if keep_classes else comparison.advice
            first = advice.is_of_slice or not changed
            heading = "What to take" if first else "Not advised: a map of all days"
            title.subheader(heading, anchor=False, width="content")
            brought, *cautions = advice_words(comparison, advice, chosen.sample.ece_key) or ("",)
            # What decided is a detail beside what the map does.
            decided = "" if brought and not advice.caveat else advice.reasons[0]
            reasons = [r for r in advice.reasons if r not in (decided, *cautions)]
            with st.popover("Details", type="tertiary"):
                st.markdown(_listed(reasons))
        headline = advice.headline.rstrip(".")
        if first:
            say(headline)
        if comparison.fit.remark:
            st.warning(md(comparison.fit.remark, 600), icon=":material/warning:")
        of_slice = recalibrate_comparison.slice_words(outcome, chosen)
        lead = "" if first else capitalised(f"{headline.removeprefix('Advice: ')}.")
        said = " ".join(filter(None, (of_slice, lead, decided, brought)))
        st.markdown(f"{md(keep_units_together(said), 1_000)}\n\n{_listed(cautions)}")
        return recalibrate_comparison.draw_downloads(outcome, advice.method, chosen, primary=first)


def _listed(sentences: list[str]) -> str:
    return "\n".join(f"- {md(keep_units_together(s), 1_000)}" for s in sentences)


def _draw_results(outcome: ComparisonOutcome, method: str, chosen: Settings) -> None:
    """Draw the table of the methods, and their figures."""
    results = recalibrate_results
    results.draw_methods(outcome, method)
    results.draw_selected_rows(outcome, method, chosen)
    of_method = {
        BEFORE_AND_AFTER: lambda: results.draw_before_and_after(outcome, method, chosen),
        "Rows after the method": lambda: results.draw_calibrated_rows(outcome, method),
    }
    of_all = {"Reliability, side by side": lambda: results.draw_diagrams(outcome, method, chosen)}
    navigation.draw_sections(
        of_all | of_method if method == outcome.fitted[0].key else of_method | of_all,
        key="below-methods",
        of_setting={results.LOOK_AT: BEFORE_AND_AFTER},
    )


def labels(chosen: Settings) -> None:
    """How many labels a recalibrator needs."""
    say = navigation.draw_head("How many labels recalibration needs")
    with navigation.boundary():
        rows_shown.say_not_followed(chosen, "The curve is measured on all rows that judge")
        compared = recalibrate_comparison.latest_comparison(chosen)
        advised = compared.advice.method if compared and compared.advice else ""
        explore_learning_curve(chosen, say, advised)


def elsewhere(chosen: Settings) -> None:
    """Every recalibrator on many data sets."""
    say = navigation.draw_head("Which recalibrator wins on many data sets")
    with navigation.boundary():
        if (rule := recalibrate_comparison.rule_for(chosen.whole)) is not None:
            say(rule.short.rstrip("."))
            st.markdown(md(rule.reason, 1_000))
        rows_shown.say_not_followed(chosen, "Methods are judged on all rows that no fit has seen")

    with navigation.boundary():
        explore_arena(chosen, say)


navigation.enter()
navigation.open_tab({"recalibrate": methods, "learning_curve": labels, "arena": elsewhere})
