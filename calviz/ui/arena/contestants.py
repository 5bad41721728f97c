"""The contestants of the arena: models of open files with recalibrators, or the results of an earlier arena."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import streamlit as st

from calviz.arena import LoadedSource, results_in
from calviz.comparison import suggest
from calviz.core.errors import CalvizError, InputError
from calviz.core.predictions import Dataset
from calviz.data.file_bytes import Source
from calviz.results.arena import Experiment, MethodScore, ResultTable
from calviz.specs.recalibrator import RECALIBRATORS
from calviz.text.words import counted, distinct, listed
from calviz.ui.session.open_file import OpenFile
from calviz.ui.session.open_models import all_models
from calviz.ui.widgets import link_choice, upload
from calviz.ui.widgets.escape import md

_SAVED, _NUMBER = "calviz.arena.kept", "calviz.arena.turn"
#: The name of results that come without a folder.
UPLOADED = "uploaded"


@dataclass(frozen=True, eq=False)
class Contest:
    """Models and methods to fit and judge.

    Attributes
    ----------
    key : tuple of str
        Identifies them, for jobs.
    sources : tuple of LoadedSource
    methods : tuple of str
    """

    key: tuple[str, ...]
    sources: tuple[LoadedSource, ...]
    methods: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SavedResults:
    """Results that were opened from files.

    Attributes
    ----------
    key : str
        A digest of the files.
    title : str
    table : ResultTable
    """

    key: str
    title: str
    table: ResultTable


def of_open_files(entry: OpenFile) -> Contest | None:
    """Draw the choice of models and methods; return None if there is nothing to do."""
    offered = {m.name: m for m in all_models(entry)}
    shown = distinct(tuple(offered), 60)
    names = st.multiselect(
        "Models",
        list(offered),
        default=list(offered),
        format_func=lambda name: shown.get(name, str(name)),
        # A new widget for another list of models.
        key=f"calviz.arena.models.{hash(tuple(offered))}",
        help="All models of the files that are open in this session. Each is one experiment.",
    )
    with st.expander("Add another file", icon=":material/upload_file:"):
        upload.uploader("Another file: predictions and true labels", keep_current=True)
        upload.failure_card()
    chosen = [offered[name] for name in names]
    methods = _methods([m.data for m in chosen])
    if not chosen or not methods:
        st.info("Choose models and recalibrators.", icon=":material/info:")
        return None
    labels = _data_sets({m.name: m.data for m in chosen})
    sources = tuple(LoadedSource(labels[m.name], m.name, m.data) for m in chosen)
    key = ("open", *(m.key for m in chosen), *methods)
    return Contest(key, sources, methods)


def _methods(data: list[Dataset]) -> tuple[str, ...]:
    label_of = {spec.key: spec.label for spec in RECALIBRATORS.methods(confidence=False)}
    which = link_choice.one_of(
        "Recalibrators",
        {name: name.capitalize() for name in ("suggested", "all", "choose")},
        default="suggested",
        key="arena-methods",
        help="Suggested: what suits these models by rows and classes; all others take longer, or are variants.",
    )
    if which == "all":
        return tuple(label_of)
    suggested = {key for d in data for key in suggest(d, d.n // 2).methods}
    offered = tuple(key for key in label_of if key in suggested)
    if which == "choose":
        return tuple(
            st.multiselect(
                "Recalibrators that take part",
                list(label_of),
                default=offered,
                format_func=lambda key: label_of.get(key, str(key)),
                key="calviz.arena.methods",
                label_visibility="collapsed",
            )
        )
    st.caption(", ".join(label_of[key] for key in offered))
    return offered


def _data_sets(models: dict[str, Dataset]) -> dict[str, str]:
    """Return the data set of each model: models with the same true labels share one, as their rows are not independent."""
    first_model: dict[str, str] = {}
    data_sets = {}
    for name, data in models.items():
        labels = np.asarray(data.correct if data.labels is None else data.labels)
        digest = hashlib.blake2b(repr((data.n, data.n_classes)).encode(), digest_size=12)
        digest.update(labels.tobytes())
        data_sets[name] = first_model.setdefault(digest.hexdigest(), name)
    return data_sets


def of_saved_results() -> SavedResults | None:
    """Draw the box for results; opened results stay until they are closed."""
    saved: SavedResults | None = st.session_state.get(_SAVED)
    if saved is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f":material/inventory_2: {md(saved.title, 120)} · {counted(len(saved.table), 'experiment')}"
            )
            if st.button("Close", type="tertiary", key="calviz.arena.close"):
                del st.session_state[_SAVED]
                st.rerun()
        return saved
    number = st.session_state.setdefault(_NUMBER, 0)
    files = st.file_uploader(
        "A saved arena, or results",
        accept_multiple_files=True,
        key=f"calviz.arena.upload.{number}",
        help="The file of 'calviz arena --state', its JSON, or CalArena's METHOD.csv files of one benchmark.",
    )
    if not files:
        st.caption(
            "On the command line, `calviz arena FOLDER --state arena.jsonl` plays hundreds of files on all cores; open that file "
            "here. CalArena's published results (a METHOD.csv for each method) can be opened as well."
        )
        return None
    try:
        st.session_state[_SAVED] = _read([(f.name, f.getvalue()) for f in files])
    except CalvizError as error:
        st.error(md(error, 2_000), icon=":material/error:")
        return None
    st.session_state[_NUMBER] = number + 1
    st.rerun()
    return None


def _read(files: list[tuple[str, bytes]]) -> SavedResults:
    results: list[tuple[Experiment, list[MethodScore]]] = []
    baselines: dict[str | None, None] = {}
    digest = hashlib.blake2b(digest_size=12)
    for name, content in files:
        file_results = results_in(Source(content, name), UPLOADED)
        if file_results is None:
            raise InputError(
                "this file holds no arena results",
                file=name,
                remedy="open the file of --state, the JSON of an arena, or METHOD.csv; predictions belong under 'Open files'",
            )
        results += file_results[0]
        baselines.setdefault(file_results[1])
        digest.update(content)
    if len(baselines) > 1:
        raise InputError(
            "the files come from arenas with different methods", remedy="open one at a time"
        )
    table = ResultTable.of(results, baseline=next(iter(baselines)))
    title = PurePath(files[0][0]).name if len(files) == 1 else listed([n for n, _ in files], most=3)
    return SavedResults(digest.hexdigest(), title, table)
