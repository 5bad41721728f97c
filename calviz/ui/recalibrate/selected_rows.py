"""The selected rows among the evaluation rows, before and after a method."""

from __future__ import annotations

import streamlit as st

from calviz.core.errors import CalvizError
from calviz.sample.sample import Sample
from calviz.sample.subset_summary import part_numbers
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.text.words import counted
from calviz.ui.recalibrate.outcome import ComparisonOutcome
from calviz.ui.selection import panel, state
from calviz.ui.selection.rules import rows_of
from calviz.ui.session.settings import Settings
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.recalibration_choice import after


def draw(outcome: ComparisonOutcome, method: str, settings: Settings) -> None:
    """Draw their numbers; nothing if no evaluation row is selected."""
    rule = state.rule()
    if rule is None or method == UNCALIBRATED:
        return
    before = Sample(
        outcome.calibrated(UNCALIBRATED),
        reduction=outcome.reduction,
        bins=settings.bins,
        scheme=settings.scheme,
    )
    try:
        rows, name = rows_of(rule, before), rule.words(before)
    except CalvizError:
        return
    if not rows.size:
        return
    st.markdown(f"**Selected: {md(name, 200)}, {counted(rows.size, 'evaluation row')}**")
    parts = {
        "before": part_numbers(before, rows),
        after(outcome.comparison[method].label): part_numbers(
            before.with_data(outcome.calibrated(method)), rows
        ),
    }
    panel.show(settings, parts, rule)
