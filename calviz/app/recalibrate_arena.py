"""The tab of the arena: the contestants, the job that fits and judges them, and the leaderboard."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import streamlit as st

from calviz.app import screen, session, upload
from calviz.app.jobs import Job, LongWork
from calviz.app.open_files import OpenFile, all_models
from calviz.app.session import Settings, md, offer_file
from calviz.comparison import arena_results
from calviz.comparison.advice import suggest
from calviz.comparison.arena_experiments import Rules, play_all
from calviz.comparison.arena_results import Arena, Leaderboard, ResultTable, few_words
from calviz.comparison.arena_sources import Playable, results_in
from calviz.comparison.leaderboards import judge
from calviz.core.blocks import watching
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import CalvizError, InputError
from calviz.core.predictions import Dataset
from calviz.core.words import counted, csv_bytes, distinct, listed
from calviz.data.format import Source
from calviz.report.arena_report import arena_record, arena_report
from calviz.report.json_results import to_json

PLACE = "arena"
#: Seconds before progress is shown for work that starts by itself.
PATIENCE = 1.0
_WAYS = {"open": "Open files", "kept": "A saved arena, or results"}


def explore_arena(settings: Settings, say: Callable[[str], object]) -> None:
    """Draw the choice of contestants, the job and the leaderboard."""
    if session.choose_one("What competes", _WAYS, key="arena-of") == "kept":
        saved = open_saved_results()
        if saved is None:
            return
        work = LongWork(
            PLACE,
            ("kept", saved.key),
            f"Judging {counted(len(saved.table), 'experiment')}",
            lambda: lambda job: (judge(saved.table), ()),
            "Judge again",
        )
        status = work.draw(at_once=True, patience=PATIENCE)
    else:
        contest = choose_contest(settings.entry)
        if contest is None:
            return
        work = LongWork(
            PLACE,
            contest.key,
            f"{counted(len(contest.methods), 'recalibrator')} on {counted(len(contest.sources), 'model')}",
            lambda: lambda job: _play(job, contest),
            "Start the arena",
            ":material/trophy:",
            about=("open",),
            always=True,
            idle="Models with a calibration and a test split use these; for others, maps are fitted on half of the rows and judged on the rest.",
            stopped=_stopped,
        )
        status = work.draw()
    if status.result is not None:
        arena, problems = status.result
        draw_arena(arena, problems, say)


def _play(job: Job, contest: Contest) -> tuple[Arena, tuple[str, ...]]:
    """Return the arena, and why models could not be used."""
    table, problems = play_all(
        contest.sources,
        Rules(methods=contest.methods, drawn=True),
        progress=lambda name, done, total, problem: job.progress(done, total, name),
        stop=job.stopping,
    )
    with watching(None):  # results of a stopped run are still judged
        return judge(table), problems


def _stopped(job: Job) -> str:
    if job.result is None:
        return "Stopped before an experiment was finished."
    return f"Stopped after {job.done:,} of {job.total:,} models: the leaderboard covers these."


# ---- Contestants

_SAVED, _NUMBER = "calviz.arena.kept", "calviz.arena.turn"


@dataclass(frozen=True, eq=False)
class Contest:
    """Models and methods to fit and judge.

    Attributes
    ----------
    key : tuple of str
        Identifies them, for jobs.
    sources : tuple of Playable
    methods : tuple of str
    """

    key: tuple[str, ...]
    sources: tuple[Playable, ...]
    methods: tuple[str, ...]


def choose_contest(entry: OpenFile) -> Contest | None:
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
    with st.expander("Add another file"):
        upload.draw_uploader("Another file: predictions and true labels", keep_current=True)
    chosen = [offered[name] for name in names]
    methods = _methods([m.data for m in chosen])
    if not chosen or not methods:
        st.info("Choose models and recalibrators.", icon=":material/info:")
        return None
    labels = _data_sets({m.name: m.data for m in chosen})
    sources = tuple(Playable(labels[m.name], m.name, m.data) for m in chosen)
    return Contest(("open", *(m.key for m in chosen), *methods), sources, methods)


def _methods(data: list[Dataset]) -> tuple[str, ...]:
    specs = RECALIBRATORS.methods(confidence=False)
    # Most data sets have no columns, and a method without a score beats nobody.
    label_of = {spec.key: spec.label for spec in specs if not spec.takes_columns}
    which = session.choose_one(
        "Recalibrators",
        {name: name.capitalize() for name in ("suggested", "all", "choose")},
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


def open_saved_results() -> SavedResults | None:
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
    results: list[tuple[arena_results.Experiment, list[arena_results.MethodScore]]] = []
    baselines: dict[str | None, None] = {}
    digest = hashlib.blake2b(digest_size=12)
    for name, content in files:
        # The name of results that come without a folder.
        file_results = results_in(Source(content, name), "uploaded")
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


# ---- Leaderboard


def draw_arena(arena: Arena, problems: tuple[str, ...], say: Callable[[str], object]) -> None:
    """Draw the leaderboards as their report has them, and the downloads; `say` replaces the title."""
    say(arena_results.short_headline(_labelled(arena.boards[0])))
    if caution := few_words(arena.boards[0]):
        st.warning(caution, icon=":material/warning:")
    html = _report(id(arena), problems, arena)
    _downloads(arena, problems, html)
    with st.container(border=True):
        st.iframe(html, height=screen.PREVIEW[screen.page_width()], alt="Leaderboards")


@st.cache_resource(scope="session", max_entries=2, show_spinner="Drawing …")
def _report(arena: int, problems: tuple[str, ...], _arena: Arena) -> str:
    strata = {key: tuple(map(_labelled, parts)) for key, parts in _arena.strata.items()}
    named = replace(_arena, boards=tuple(map(_labelled, _arena.boards)), strata=strata)
    return arena_report(named, problems=problems).html()


def _labelled(board: Leaderboard) -> Leaderboard:
    """Return the board with the labels of recalibrators in the place of their keys, as other pages name them."""
    labels = {spec.key: spec.label for spec in RECALIBRATORS}

    def named(values: Mapping[str, Any]) -> dict[str, Any]:
        return {labels.get(key, key): value for key, value in values.items()}

    return replace(
        board,
        table=replace(board.table, baseline=labels.get(board.baseline or "", board.baseline)),
        standings={k: replace(s, method=k) for k, s in named(board.standings).items()},
        critical={k: replace(c, ranks=named(c.ranks)) for k, c in board.critical.items()},
    )


def _downloads(arena: Arena, problems: tuple[str, ...], html: str) -> None:
    files: tuple[tuple[str, Callable[[], bytes], str, str, str], ...] = (
        ("HTML", html.encode, "html", "text/html",
         "One file that opens anywhere."),
        ("JSON", lambda: to_json(arena_record(arena, problems=problems)).encode(), "json",
         "application/json", "All numbers; it can be opened here again."),
        ("CSV", lambda: csv_bytes(arena.overall.frame().reset_index()), "csv", "text/csv",
         "The leaderboard."),
        ("Every result", lambda: csv_bytes(arena.whole.frame()), "results.csv", "text/csv",
         "A row for each method in each experiment."),
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, make, end, mime, help in files:
            offer_file(label, make, f"arena.{end}", mime, key=f"calviz.arena.{label}", help=help)
