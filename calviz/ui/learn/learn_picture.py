"""What calibrated, overconfident and underconfident look like: three simulated models with known true probabilities."""

from __future__ import annotations

import numpy as np
import streamlit as st

from calviz.core.predictions import Predictions
from calviz.figures.reliability import Reliability
from calviz.ui.widgets import diagram

#: Rows of each model, the seed, and width and height of a panel in pixels.
_ROWS, _SEED, _WIDTH, _HEIGHT = 4_000, 0, 270, 260
#: Name, factor by which the true log-odds are multiplied, and what the diagram shows.
_MODELS = (
    ("Calibrated", 1.0, "Of the rows with a score of 0.8, 80 % are right: points on the diagonal."),
    (
        "Overconfident",
        2.2,
        "It says 0.9 and is right less often: points below the diagonal, the gap in orange.",
    ),
    (
        "Underconfident",
        0.45,
        "It says 0.6 and is right more often: points above the diagonal, the gap in pink.",
    ),
)


def draw() -> None:
    """Draw three reliability diagrams beside each other."""
    st.caption(
        f"Three simulated models of {_ROWS:,} rows, whose true probabilities are known. Horizontal: the score; vertical: the share of rows "
        "that are right; grey: where a calibrated model would fall."
    )
    with st.container(horizontal=True, gap="medium"):
        for (name, _, words), figure in zip(_MODELS, _figures(), strict=True):
            with st.container(width=_WIDTH, gap="xsmall"):
                st.markdown(f"**{name}**")
                diagram.chart(
                    figure,
                    figure.plot_small(theme=diagram.theme(), height=_HEIGHT),
                    key=f"learn.{name}",
                    filename=name.lower(),
                    alt=f"{name}: {figure.describe()}",
                    own_caption=True,
                )
                st.caption(words)


@st.cache_resource(show_spinner=False)
def _figures() -> tuple[Reliability, ...]:
    rng = np.random.default_rng(_SEED)
    truth = rng.normal(0.9, 1.1, _ROWS)
    labels = (rng.random(_ROWS) < 1 / (1 + np.exp(-truth))).astype(np.int64)
    figures = []
    for name, factor, _ in _MODELS:
        scores = 1 / (1 + np.exp(-factor * truth))
        predictions = Predictions(
            probs=np.stack([1 - scores, scores], axis=1), labels=labels, name=name
        )
        figures.append(Reliability.compute(predictions, reduction="top-label", bins=20))
    return tuple(figures)
