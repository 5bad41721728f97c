"""Where to go from a page: one or a few links, by what was found."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from calviz.results.evaluation import Evaluation
from calviz.ui.session import navigation
from calviz.ui.session.settings import Settings

#: Findings that speak of slices, and of classes.
_SLICES, _CLASSES = {"CAL017"}, {"CAL013", "CAL020", "CAL023"}
#: Where a page leads by itself, and what the link says.
_USUAL: dict[str, tuple[tuple[str, str], ...]] = {
    "explain": (("overview", "Back to the verdict"), ("report", "Put it on file")),
    "data": (("overview", "See the verdict"),),
    "metrics": (("reliability", "See where it is off"), ("report", "Put it on file")),
    "reliability": (("classwise", "See which classes"), ("recalibrate", "Recalibrate this")),
    "cumulative": (("recalibrate", "Recalibrate this"),),
    "classwise": (("recalibrate", "Recalibrate this"),),
    "risk_coverage": (("recalibrate", "Recalibrate this"), ("report", "Put it on file")),
    "decisions": (("recalibrate", "Recalibrate this"), ("report", "Put it on file")),
    "recalibrate": (
        ("learning_curve", "See how many labels this needs"),
        ("report", "Put it on file"),
    ),
    "learning_curve": (("recalibrate", "Compare the methods"),),
    "compare_models": (("recalibrate", "Recalibrate one of them"), ("report", "Put it on file")),
    "arena": (("recalibrate", "Recalibrate these data"),),
    "slices": (("recalibrate", "Recalibrate this"), ("report", "Put it on file")),
    "over_time": (("slices", "See for whom it is wrong"), ("recalibrate", "Recalibrate this")),
    "figures": (("report", "Put it on file"),),
    "report": (("overview", "Back to the verdict"),),
    "learn": (("overview", "Back to the verdict"),),
}
#: Where there is nothing to compare.
_ONE_MODEL = (("data", "Open another model's file"),)


def draw(page: str, settings: Settings, evaluation: Evaluation | None = None) -> None:
    """Links to the pages that come next; of the overview by its findings and verdict.

    Parameters
    ----------
    page : str
        The key of the page that is shown.
    settings : Settings
    evaluation : Evaluation, optional
        With verdict and findings, where the page has them.
    """
    steps = tuple(_after_overview(settings, evaluation)) if evaluation else _USUAL.get(page, ())
    if page == "compare_models" and len(settings.entry.loaded.models) < 2:
        steps = _ONE_MODEL
    if not steps:
        return
    with st.container(horizontal=True, gap="medium"):
        for key, label in steps:
            st.page_link(
                navigation.link(key),
                label=label,
                icon=":material/arrow_forward:",
                query_params=st.query_params.to_dict(),
                width="content",
            )


def _after_overview(settings: Settings, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    codes = {finding.code for finding in evaluation.findings}
    if evaluation.verdict is not None and evaluation.verdict.beyond_noise:
        yield "recalibrate", "Recalibrate this"
    yield "reliability", "See every bin and its rows"
    if codes & _CLASSES:
        yield "classwise", "See which classes"
    if codes & _SLICES or settings.whole.groups:
        yield "slices", "See for whom it is wrong"
    if len(settings.entry.loaded.models) > 1:
        yield "compare_models", f"Compare {len(settings.entry.loaded.models)} models"
