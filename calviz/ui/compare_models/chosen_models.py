"""The choice of models that are compared, and their comparison, computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import streamlit as st

from calviz.comparison import compare_models, same_rows
from calviz.core.predictions import Dataset
from calviz.results.model_comparison import Alignment, ModelComparison
from calviz.text.words import counted, distinct
from calviz.ui.session.jobs import Job
from calviz.ui.session.open_file import OpenFile
from calviz.ui.session.open_models import OpenModel, all_models
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import long_work, upload
from calviz.ui.widgets.long_work import Button, LongWork

#: Largest number of models on the page.
MOST = 12
PLACE = "compare_models"
#: Seconds before the progress of a comparison is shown.
PATIENCE = 1.0

_OFFERED = "calviz.models.known"


@dataclass(frozen=True, eq=False)
class Chosen:
    """The models that are compared, those of the current file first.

    Attributes
    ----------
    models : mapping of str to Predictions or ConfidencePredictions
        All rows.
    key : tuple of str
        Identifies them, for caches.
    """

    models: Mapping[str, Dataset]
    key: tuple[str, ...]


def pick(entry: OpenFile) -> Chosen:
    """Draw the list of models; models of another task are not preselected."""
    offered = {m.name: m for m in all_models(entry)}
    shown = distinct(tuple(offered), 60)
    likely = list(usual(entry).models)
    renewed = _choose_new(list(offered), likely)
    chosen = st.multiselect(
        "Models",
        list(offered),
        # No default where the state is set in this run: streamlit warns about two values.
        default=None if renewed else likely,
        max_selections=MOST,
        format_func=lambda name: shown.get(name, str(name)),
        key="models",
        bind="query-params",
        help="All models of this file and of the other files that are open.",
    )
    _another_file(len(offered))
    return _chosen(offered[name] for name in chosen)


def usual(entry: OpenFile) -> Chosen:
    """Return the models that are compared by default: those that may have the same rows."""
    offered = all_models(entry)
    return _chosen([m for m in offered if _may_have_same_rows(offered[0].data, m.data)][:MOST])


def _chosen(models: Iterable[OpenModel]) -> Chosen:
    listed = list(models)
    return Chosen({m.name: m.data for m in listed}, tuple(f"{m.key} {m.name}" for m in listed))


def _may_have_same_rows(one: Dataset, other: Dataset) -> bool:
    """Whether two data sets may hold the same rows, by a quick check."""
    same_rows = one.n == other.n or (one.ids is not None and other.ids is not None)
    return same_rows and one.n_classes == other.n_classes


def _choose_new(offered: list[str], likely: list[str]) -> bool:
    """Reset the choice if the open files have changed, as the widget would keep models that are gone; return whether it was."""
    offered_before = st.session_state.get(_OFFERED)
    renewed = (
        offered_before is not None and offered_before != offered and "models" in st.session_state
    )
    if renewed:
        st.session_state["models"] = likely
    st.session_state[_OFFERED] = offered
    return renewed


def _another_file(models: int) -> None:
    with st.expander(
        "Compare with the models of another file",
        icon=":material/upload_file:",
        expanded=models < 2,
    ):
        st.caption(
            "Open a file with predictions for the same rows. Rows are matched by identifier; without "
            "identifiers by their order, where all true labels agree."
        )
        upload.uploader("Another file: predictions and true labels", keep_current=True)
        upload.failure_card()


@st.cache_resource(scope="session", max_entries=4, show_spinner=False)
def _aligned(key: tuple[str, ...], split: str | None, _chosen: Chosen) -> Alignment:
    return same_rows(_chosen.models, split=split)


def alignment(chosen: Chosen, split: str | None) -> Alignment:
    """Return the models on the rows that they have in common."""
    with st.spinner("Matching rows …", show_time=True):
        return _aligned(chosen.key, split, chosen)


def comparison(chosen: Chosen, settings: Settings) -> ModelComparison | None:
    """Return metrics, paired differences and ranks of the chosen models on the rows of the sidebar.

    None while they are computed, with the progress on screen, and if that failed.
    """
    aligned = alignment(chosen, settings.split)
    work = LongWork(
        PLACE,
        job_key(chosen, settings),
        f"Measuring {len(chosen.models)} models on {counted(aligned.rows, 'row')}",
        lambda: lambda job: compared(job, aligned, settings),
    )
    status = long_work.draw(work, Button("Compute again"), at_once=True, patience=PATIENCE)
    result: ModelComparison | None = status.result
    return result


def job_key(chosen: Chosen, settings: Settings) -> tuple[str, ...]:
    """Identify a comparison, for jobs."""
    return (
        *chosen.key,
        *settings.rows_key,
        *settings.reduction_and_bins_key,
    )


def compared(job: Job, aligned: Alignment, settings: Settings) -> ModelComparison:
    """Compare models: the work of a job."""
    return compare_models(
        aligned,
        where=settings.where,
        reduction=settings.reduction,
        bins=settings.bins,
        scheme=settings.scheme,
        progress=lambda name, done, total: job.progress(done, total, f"{name} is measured"),
        stop=job.stopping,
    )
