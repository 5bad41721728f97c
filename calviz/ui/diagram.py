"""The reliability diagram on a page: square, in the page's colours, with its alternative text."""

from __future__ import annotations

from typing import Any

import streamlit as st

from calviz.core.figure import Theme
from calviz.figures import Reliability

#: No cloud, no logo; pictures leave at print resolution, made in the browser.
CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "showSendToCloud": False,
    "scrollZoom": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "png", "scale": 4, "filename": "reliability"},
}

#: Pixels. The width leaves room beside it on a desk; what is beside it goes below on a small one.
WIDTH = 540
#: So many more, in both directions, where the diagram is what the page is about.
LARGER = 20


def theme() -> Theme:
    """The colours that the page is shown in."""
    return "dark" if st.context.theme.type == "dark" else "light"


def widget_key(key: str) -> str:
    """The key under which a diagram keeps its selection: one for each theme's drawing."""
    return f"{key}.{theme()}"


def draw(
    figure: Reliability,
    *,
    key: str,
    on_select: Any = "ignore",
    selected: int | None = None,
    larger: bool = False,
) -> Any:
    """Draw the diagram; with `on_select` a click on a bar is reported."""
    drawn = figure.plot(theme=theme(), selected=selected)
    if larger:
        # Its square is as large as the height allows.
        drawn.update_layout(height=(drawn.layout.height or 0) + LARGER)
    return st.plotly_chart(
        drawn,
        key=widget_key(key),
        theme=None,
        config=CONFIG,
        alt=figure.describe(),
        on_select=on_select,
        selection_mode="points",
    )
