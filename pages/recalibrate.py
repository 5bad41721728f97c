"""Recalibrators fitted on some rows and compared on others; the chosen one can be downloaded."""

from __future__ import annotations

import streamlit as st

from calviz.app import jobs as long_work
from calviz.app import navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import recalibrate_comparison as comparison_job
from calviz.app import recalibrate_comparison as plan_choice
from calviz.app import recalibrate_downloads as downloads
from calviz.app import recalibrate_results as calibrated_rows
from calviz.app import recalibrate_results as figures_shown
from calviz.app import recalibrate_results as selected_rows
from calviz.app import recalibrate_results as table
from calviz.app.jobs import Button, LongWork, StateWords
from calviz.app.settings import md
from calviz.comparison.advice import guideline
from calviz.core.words import keep_units_together

OUT_OF_DATE = "The results below belong to other choices. Compare again to bring them up to date."

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["recalibrate"].question, anchor=False)
with page_guard.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words}")

with page_guard.boundary():
    choice = plan_choice.draw(chosen)
    if choice is not None:
        work = LongWork(
            comparison_job.PLACE,
            choice.key,
            "Fitting and judging",
            lambda: comparison_job.work(choice),
            about=choice.content,
        )
        count = len(choice.methods)
        status = long_work.draw(
            work,
            Button(
                f"Compare {count} method{'s' if count != 1 else ''}",
                ":material/play_arrow:",
                "calviz.compare",
                always=True,
                possible=count > 0,
            ),
            StateWords(stopped=comparison_job.stopped, out_of_date=OUT_OF_DATE),
            # A link that was made after a comparison shows a comparison.
            at_once=work.is_first and comparison_job.starts_at_once(choice),
        )
        if status.state != "idle":
            comparison_job.put_in_link()
        if status.result is None and status.state != "running":
            rule = guideline(choice.data, choice.rows.fit.rows)
            st.info(md(rule.reason, 1_000), icon=":material/lightbulb:")

with page_guard.boundary():
    if choice is not None and status.result is not None:
        outcome = status.result
        st.subheader("What to take", anchor=False)
        keep_classes = st.toggle(
            "No predicted class may change", key="keep-classes", bind="query-params"
        )
        comparison = outcome.comparison
        advice = comparison.advice_keeping_classes if keep_classes else comparison.advice
        with st.container(border=True):
            st.markdown(f":material/lightbulb: **{md(advice.headline)}**")
            st.markdown(
                "\n".join(
                    f"- {md(keep_units_together(reason), 1_000)}" for reason in advice.reasons
                )
            )
        table.draw_table(outcome)
        selected_place = st.container()
        st.subheader("Take it home", anchor=False)
        method = downloads.choose(outcome, advice.method)
        with selected_place:
            selected_rows.draw_selected_rows(outcome, method, chosen)
        downloads.draw(outcome, method, chosen)
        calibrated_rows.draw_calibrated_rows(outcome, method, chosen)
        figures_shown.diagrams(outcome, chosen)
        figures_shown.maps(outcome, chosen)
        figures_shown.before_and_after(outcome, method, chosen)
