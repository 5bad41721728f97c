"""The risk-coverage curve as a table: accuracy at some coverages, before and after recalibration."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calviz.figures.risk_coverage import ReferralChoice, RiskCoverage
from calviz.text.words import percent, percent_numbers, percent_range
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import csv_download

#: Coverages of the table, in %.
SHOWN = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100)


def draw(figure: RiskCoverage, after: RiskCoverage | None, settings: Settings) -> None:
    """Draw the table, and a button for the whole curve as CSV."""
    choices = _choices(figure)
    columns: dict[str, Sequence[object]] = {
        "kept": [percent(c.coverage, 0) for c in choices],
        "rows kept": [c.kept for c in choices],
        "referred": [c.referred for c in choices],
        "threshold": [c.threshold for c in choices],
        "accuracy": percent_numbers(c.accuracy for c in choices),
        "95 % interval": [_interval(c) for c in choices],
    }
    if after is not None:
        then = [after.at_coverage(c.coverage) for c in choices]
        columns["threshold after"] = [c.threshold for c in then]
        columns["accuracy after"] = percent_numbers(c.accuracy for c in then)
        columns["interval after"] = [_interval(c) for c in then]
    sign = f"{figure.ranking} {'≤' if figure.ranking == 'entropy' else '≥'}"
    count = st.column_config.NumberColumn(format="localized")
    share = st.column_config.NumberColumn(format="%.1f %%")
    st.dataframe(
        columns,
        hide_index=True,
        height="content",
        alt="Accuracy at some coverages",
        column_config={
            "rows kept": count,
            "referred": count,
            "threshold": st.column_config.NumberColumn(sign, format="%.4f"),
            "accuracy": share,
            "threshold after": st.column_config.NumberColumn(f"after: {sign}", format="%.4f"),
            "accuracy after": st.column_config.NumberColumn("after: accuracy", format="%.1f %%"),
            "interval after": st.column_config.TextColumn("after: 95 % interval"),
        },
    )
    csv_download.button(
        "Download the curve as CSV",
        figure.frame,
        f"{settings.file_stem}-risk-coverage.csv",
        key="calviz.risk.download",
        quiet=True,
    )


def _choices(figure: RiskCoverage) -> list[ReferralChoice]:
    """What is kept at the coverages of the table; of those that differ by a part of a row, the last."""
    choices = [figure.at_coverage(c / 100) for c in SHOWN]
    return list({c.kept: c for c in choices if c.kept}.values())


def _interval(choice: ReferralChoice) -> str:
    if choice.interval is None:
        return ""
    return percent_range(choice.interval.low, choice.interval.high)
