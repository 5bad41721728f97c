"""Recalibrators fitted on some rows and compared on others; the chosen one to take home."""

import streamlit as st

from calviz.comparison import guideline
from calviz.comparison.fitting import UNCALIBRATED
from calviz.core.recalibrator import RECALIBRATORS
from calviz.ui import cached, guard, job_view, jobs, pages, settings
from calviz.ui.recalibrate import outcome, pictures, plan, table, take_home
from calviz.ui.text import md

PLACE = "recalibrate"

guard.enter()
chosen = settings.current()

st.title(pages.BY_KEY["recalibrate"].question, anchor=False)
with guard.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words(cached.data(chosen).n)}")

with guard.boundary():
    wanted = plan.draw(chosen)
    if wanted is not None:
        job = jobs.find(PLACE, wanted.key)
        last = jobs.latest(PLACE)
        if st.button(
            f"Compare {len(wanted.methods)} method{'s' if len(wanted.methods) != 1 else ''}",
            type="primary",
            icon=":material/play_arrow:",
            disabled=not wanted.methods or (job is not None and job.running),
            key="calviz.compare",
        ):
            job = jobs.start(PLACE, wanted.key, "Fitting and judging", outcome.work(wanted))
        elif last is None and outcome.is_in_link(wanted):
            # Whoever opens a link that was made of a comparison sees a comparison.
            job = jobs.start(PLACE, wanted.key, "Fitting and judging", outcome.work(wanted))
        elif job is None and last is not None and last.key[: len(wanted.content)] == wanted.content:
            job = last
            if not job.running:
                st.info(
                    "The results below are of other choices. Compare again to bring them up to date.",
                    icon=":material/update:",
                )
        if job is not None:
            outcome.put_in_link()
            job_view.show(job)
        if job is None or (job.result is None and not job.running):
            rule = guideline(wanted.data, wanted.rows.fit.rows)
            st.info(md(rule.reason, 1_000), icon=":material/lightbulb:")

with guard.boundary():
    if wanted is not None and job is not None and job.result is not None:
        found = job.result
        if job.state == "stopped":
            st.warning(
                "Stopped: what was finished by then is below, the intervals of its differences from fewer "
                "resamples.",
                icon=":material/stop:",
            )
        st.subheader("What to take", anchor=False)
        keep_classes = st.toggle(
            "No predicted class may change", key="keep-classes", bind="query-params"
        )
        advice = outcome.advice(found, keep_classes=keep_classes)
        take = (
            "leave the model as it is"
            if advice.method == UNCALIBRATED
            else RECALIBRATORS[advice.method].label
        )
        with st.container(border=True):
            st.markdown(f":material/lightbulb: **Advice: {md(take)}**")
            st.markdown("\n".join(f"- {md(reason, 1_000)}" for reason in advice.reasons))
        table.draw(found)
        st.subheader("Take it home", anchor=False)
        method = take_home.choose(found, advice.method)
        take_home.draw(found, method, chosen)
        pictures.diagrams(found, chosen)
        pictures.maps(found, chosen)
        pictures.before_and_after(found, method)
