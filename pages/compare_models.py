"""Several models on the same rows."""

from __future__ import annotations

from functools import partial

import streamlit as st

from calviz.app import models_compared, navigation, rows_shown
from calviz.app.session import Settings, md
from calviz.comparison.comparison_results import answers


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
                say(answer.rstrip("."))
                if beside:
                    st.markdown(md(beside, 1_000))
            models_compared.draw_notes(comparison)
            usual = models_compared.usual_metrics(comparison, metric)
            models_compared.draw_metrics(comparison, usual)
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


navigation.enter()
navigation.open_tab({"compare_models": compare})
