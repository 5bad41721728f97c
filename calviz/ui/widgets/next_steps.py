"""Links to the pages to go to next; on the overview they depend on the findings."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from calviz.results.evaluation import Evaluation
from calviz.specs.check import CHECKS
from calviz.ui.session import navigation
from calviz.ui.session.settings import Settings

#: The link when there is only one model, and so nothing to compare.
_ONE_MODEL = (("data", "Open another model's file"),)


def draw(page: str, settings: Settings, evaluation: Evaluation | None = None) -> None:
    """Draw links to the pages that come next; on the overview they depend on findings and verdict.

    Parameters
    ----------
    page : str
        The key of the page that is shown.
    settings : Settings
    evaluation : Evaluation, optional
        With verdict and findings, where the page has them.
    """
    steps = tuple(_after_overview(settings, evaluation)) if evaluation else _leads_to(page)
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


def _leads_to(page: str) -> tuple[tuple[str, str], ...]:
    spec = navigation.BY_KEY.get(page)
    return () if spec is None else spec.leads_to


def _after_overview(settings: Settings, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    about = {CHECKS[finding.code].about for finding in evaluation.findings}
    if evaluation.verdict is not None and evaluation.verdict.beyond_noise:
        yield "recalibrate", "Recalibrate this"
    yield "reliability", "See every bin and its rows"
    if "classes" in about:
        yield "classwise", "See which classes"
    if "slices" in about or settings.whole.groups:
        yield "slices", "See for whom it is wrong"
    if len(settings.entry.loaded.models) > 1:
        yield "compare_models", f"Compare {len(settings.entry.loaded.models)} models"
