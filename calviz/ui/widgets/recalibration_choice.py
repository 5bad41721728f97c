"""The choice of one recalibrator, on pages that show scores before and after recalibration."""

from __future__ import annotations

import streamlit as st

from calviz.specs.recalibrator import RECALIBRATORS
from calviz.ui.session.settings import Settings

#: The option that fits nothing.
NONE = "none"
#: The key of the widget.
KEY = "recalibrated"


def choose_method(settings: Settings) -> str:
    """Draw the choice of a recalibrator; return `NONE` if none is wanted."""
    confidence = settings.whole.kind == "confidence"
    specs = {s.key: s.label for s in RECALIBRATORS.methods(confidence=confidence)}
    chosen = st.selectbox(
        "Recalibrate, and compare before with after",
        (NONE, *specs),
        key=KEY,
        bind="query-params",
        format_func=lambda key: "not recalibrated" if key == NONE else specs[key],
        filter_mode="contains",
        width=420,
        help="The map is fitted on other rows than those that are shown.",
    )
    return chosen or NONE


def name_of(settings: Settings) -> str:
    """Return the name of a model among others: its name in the file, or the file's name if it holds only one."""
    return settings.model if len(settings.entry.loaded.models) > 1 else settings.entry.title


def after(label: str) -> str:
    """Return the name of a curve after a method."""
    return f"after {label if label[1:2].isupper() else label[:1].lower() + label[1:]}"
