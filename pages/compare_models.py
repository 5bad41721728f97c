"""Several models on the same rows."""

from __future__ import annotations

from functools import partial

import streamlit as st

from calviz.app import models_compared, navigation, rows_shown
from calviz.app.session import CONDITIONS, Settings, look_at_slice, md
from calviz.comparison import comparison_results
from calviz.comparison.comparison_results import ModelComparison, answers, state_words, where_words


def compare(chosen: Settings) -> None:
    """Models side by side on the same rows."""
    say = navigation.draw_head("Compare models on the same rows")
    with navigation.boundary():
        picked = models_compared.choose_models(chosen.entry)
        if len(picked.models) < 2:
            say("Compare models: it takes two on the same rows")
            return
        picked, left_out = models_compared.that_match(picked, chosen)
        for reason in left_out:
            st.warning(md(reason, 1_000), icon=":material/warning:")
        if (comparison := models_compared.find_comparison(picked, chosen)) is not None:
            metric = models_compared.choose_metric(comparison)
            if metric is not None:
                answer, beside = answers(comparison, metric)
                # Where a title names many models, what holds after a map for each stands below it.
                cut = "; after " if len(answer) > 100 else "\n"
                answer, _, after = answer.rstrip(".").partition(cut)
                say(answer)
                if below := " ".join(filter(None, (after and f"After {after}.", beside))):
                    st.markdown(md(below, 1_000))
            _say_where(comparison, metric, chosen)
            models_compared.draw_notes(comparison)
            models_compared.draw_metrics(comparison, comparison.usual(*filter(None, [metric])))
            if metric is not None:
                models_compared.draw_differences(comparison, metric)
            rows_shown.draw_selection_by_model(chosen)
            after = "Each model after recalibration"
            sections = {
                "Reliability, on one scale": models_compared.draw_diagrams,
                "What recalibration could take off": models_compared.draw_planes,
            }
            navigation.draw_sections(
                {
                    title: partial(draw, comparison, picked.key, chosen)
                    for title, draw in sections.items()
                }
                | {after: lambda: models_compared.explore_methods(picked, chosen)},
                key="models-shown",
                of_setting={"methods": after},
            )


def _say_where(comparison: ModelComparison, metric: str | None, chosen: Settings) -> None:
    """Say what is wrong with each model, and where two have another order or what makes it, with a click to the comparison on the rows of each slice named, within those shown."""
    lead = (*comparison.where[: 2 * comparison_results.MOST_NAMED], *comparison.of_lead)
    named = {one.where: (one.condition,) for one in lead}
    if named:
        st.markdown(md(where_words(comparison), 1_000))
    st.markdown("\n".join(f"- {md(text, 1_000)}" for text in state_words(comparison)))
    if metric and (one := comparison[comparison.ranking(metric)[0]].off_slice):
        named |= {one.name: one.where}
    with st.container(horizontal=True, gap="small"):
        for name, conditions in named.items():
            where, columns = (*chosen.where, *conditions), {*dict(conditions)}
            if columns <= {*chosen.whole.to_slice()} and len(where) <= len(CONDITIONS):
                label = f"Compare where {md(name, 60)}"
                st.button(label, on_click=look_at_slice, args=(chosen.whole, where))


navigation.enter()
navigation.open_tab({"compare_models": compare})
