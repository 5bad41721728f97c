"""Compare all recalibrators and those of other libraries on many data sets: the tables and pictures of the arena.

    python benchmarks/arena.py FOLDER [--state FILE] [--calarena FOLDER] [--jobs 2] [--limit 60] [--no-peers] [--write]

FOLDER holds files of predictions with the splits "val" and "test", in a folder for each data set. Finished results are kept in
``--state`` and not computed again. ``--calarena`` is a folder of CalArena's published results (BENCHMARK/METHOD.csv). Peers take
part if they are installed (``_arena_peers.py`` names them), or if the state holds them. With ``--write`` the tables go to
``benchmarks/results`` and, between their marks, to ``docs/arena.md``, and the pictures to ``docs/images`` (which needs playwright and a
Chromium).
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _arena_peers import SLOW_ROWS, Peer, peers, play_peers
from _arena_tables import (
    beside_each_other,
    by_range,
    data_sets,
    halves,
    harm,
    leads,
    ordered,
    pairs,
    standings,
)
from _harness import ROOT, machine, write_between, write_section

from calviz.comparison.arena_experiments import Rules, play_all
from calviz.comparison.arena_results import SCORES, Arena, Leaderboard, ResultTable
from calviz.comparison.arena_sources import ArenaState, Playable, find, results_in
from calviz.comparison.fitting import Division
from calviz.comparison.leaderboards import judge, leaderboard
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.data.format import Source
from calviz.figures.arena_ranks import CriticalRanks, Winrates
from calviz.figures.figure import Figure

DOCUMENT = ROOT / "docs" / "arena.md"
IMAGES = DOCUMENT.parent / "images"
#: Left out because each experiment takes minutes; other methods of their families take part.
LEFT_OUT = ("gp", "matrix-odir")
DIVISION = Division(fit_split="val", eval_split="test")
#: Remark on times if results of an earlier run were used.
RESUMED = (
    ", some of them from earlier runs on a busy machine, so only orders of magnitude are meaningful"
)
#: Number of leading methods whose losses are shown.
HARM = 6
LIBRARIES = ("scipy", "netcal", "probmetrics", "torch", "betacal", "cir-model", "venn-abers")


@dataclass(frozen=True)
class Studied:
    """Results of the experiments: our methods alone, and with the peers."""

    ours: ResultTable
    all: ResultTable
    rivals: tuple[Peer, ...]
    resumed: bool
    #: Names of the experiments with exact zeros among their probabilities.
    zeros: frozenset[tuple[str, str, str]]


def say(text: str) -> None:
    """Write progress to standard error."""
    print(text, file=sys.stderr, flush=True)


def run_peers(sources: list[Playable], state: ArenaState, jobs: int, limit: float) -> None:
    """Add to the state the results of all installed peers that it does not hold."""
    finished = frozenset(state.done)
    # A process that has loaded torch must not be forked.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        running = {pool.submit(play_peers, s, DIVISION, finished, limit): s for s in sources}
        for done, future in enumerate(as_completed(running), start=1):
            for experiment, played in future.result():
                if played:
                    state.add(experiment, played)
            say(f"peers [{done}/{len(running)}] {running[future].name}")


def carry_out(
    folder: Path, state: ArenaState, jobs: int, limit: float, *, with_peers: bool
) -> Studied:
    """Run our methods, then the peers, except the results that the state holds."""
    sources, resumed = list(find([folder]).playable), bool(state.done)
    methods = tuple(spec.key for spec in RECALIBRATORS if spec.key not in LEFT_OUT)
    ours, problems = play_all(
        sources,
        Rules(methods=methods, division=DIVISION),
        state=state,
        jobs=jobs,
        progress=lambda name, done, total, problem: say(f"[{done}/{total}] {problem or name}"),
    )
    for problem in problems:
        say(problem)
    if with_peers:
        run_peers(sources, state, jobs, limit)
    stored = results_in(Source(state.path))
    assert stored is not None
    played = {e.name for e in ours.experiments}
    whole = ResultTable.of([pair for pair in stored[0] if pair[0].name in played])
    rivals = tuple(rival for rival in peers() if rival.key in whole.methods) if with_peers else ()
    chosen = whole.take(np.arange(len(whole)), (*ours.methods, *(p.key for p in rivals)))
    zeros = frozenset(
        (source.benchmark, source.dataset, model)
        for source in sources
        for model, data in source.models().items()
        if isinstance(data, Predictions) and (data.probs == 0).any()
    )
    return Studied(ours, chosen, rivals, resumed, zeros)


def overview(table: ResultTable) -> str:
    """Sentence with the numbers of experiments, data sets, rows and classes."""
    rows = sorted(e.rows for e in table.experiments)
    classes = sorted({e.classes for e in table.experiments})
    return (
        f"{len(table)} experiments on {data_sets(table.experiments)} data sets, {rows[0]:,} to {rows[-1]:,} calibration rows, "
        f"{classes[0]} to {classes[-1]} classes."
    )


def in_one_field(studied: Studied) -> Leaderboard:
    """Leaderboard of our methods and the peers that take part in every experiment."""
    everywhere = [
        name
        for name, entered in zip(studied.all.methods, studied.all.entered.T, strict=True)
        if entered.all()
    ]
    return leaderboard(studied.all.take(np.arange(len(studied.all)), everywhere), rated=False)


def peer_words(studied: Studied) -> str:
    """Caption of the table of peers."""
    slow = ", ".join(p.key for p in studied.rivals if p.slow)
    some = (
        f" {slow}: only on experiments with two classes and at most {SLOW_ROWS:,} calibration rows."
        if slow
        else ""
    )
    return (
        "Share of the experiments in which our score is smaller / larger by more than 0.0001. All methods get the same "
        "probabilities, peers in double precision; each library treats exact zeros by its defaults, and experiments with "
        f"zeros are shown separately.{some}"
    )


def tables(studied: Studied, arena: Arena) -> Iterator[tuple[str, str]]:
    """Yield the name of each marked place in the document and its text."""
    board, ranges = arena.overall, by_range(studied.ours)
    yield "arena: all", f"{overview(studied.ours)}\n\n{standings(board)}"
    for name in ("rows", "classes"):
        chosen = [b for b in ranges if b.key.startswith(name)]
        if chosen:
            yield f"arena: {name}", beside_each_other(chosen, board)
    yield "arena: harm", harm(studied.ours, [s.method for s in ordered(board)][:HARM])
    yield "arena: halves", leads([("all", studied.ours), *halves(studied.ours)])
    if studied.rivals:
        rivals = [
            (p.key, lambda e, p=p: p.ours_of_more if p.ours_of_more and e.classes > 2 else p.ours)
            for p in studied.rivals
        ]
        yield (
            "arena: peers",
            f"{peer_words(studied)}\n\n{pairs(studied.all, rivals, studied.zeros)}",
        )


def published(arena: Arena) -> Iterator[tuple[str, str]]:
    """Yield the tables of CalArena's results, with the names of their places in the document."""
    for board in arena.boards:
        yield f"calarena: {board.key}", standings(board)
        if ranges := by_range(board.table):
            yield f"calarena: {board.key} by range", beside_each_other(ranges, board)


def pictures(
    name: str, boards: Iterator[Leaderboard] | tuple[Leaderboard, ...]
) -> dict[Path, Figure]:
    """Figures of winrates, and of mean ranks by each score if available, by path."""
    figures: dict[Path, Figure] = {}
    for board in boards:
        stem = name if board.key == "all" else f"{name}-{board.key}"
        figures[IMAGES / f"{stem}-winrates.svg"] = Winrates.compute(board)
        if board.key == "all":
            for score in SCORES:
                try:
                    figure = CriticalRanks.compute(board, score=score)
                except NotAvailable:
                    continue
                figures[IMAGES / f"{stem}-ranks-{score}.svg"] = figure
    return figures


def picture_block(files: dict[Path, Figure]) -> str:
    """Markdown of the pictures, with descriptions."""
    return "\n".join(
        f"![{figure.describe().rstrip('.')}](images/{file.name})" for file, figure in files.items()
    )


def results_section(studied: Studied, blocks: dict[str, str]) -> str:
    """Text of the section in benchmarks/results."""
    libraries = [name for name in LIBRARIES if studied.rivals or name == "scipy"]
    parts = [
        f"`python benchmarks/arena.py FOLDER --write` on {machine(*libraries)}. {overview(studied.ours)} Every method is fitted "
        "to the calibration rows and judged on the test rows; times are medians of fit and application, with one thread"
        f"{RESUMED if studied.resumed else ''}. "
        "[docs/arena.md](../docs/arena.md) explains.",
        "### Ours",
        blocks["arena: all"].split("\n\n", 1)[1],
    ]
    for b in by_range(studied.ours):
        parts += [f"### Ours, {b.title} ({len(b.table)} experiments)", standings(b)]
    if studied.rivals:
        parts += [
            "### With the peers that take part in every experiment",
            standings(in_one_field(studied)),
            "### Peer by peer",
            blocks["arena: peers"],
        ]
    return "\n\n".join(parts)


def main() -> None:
    """Run the experiments, print the tables and, with ``--write``, write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--calarena", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    state = ArenaState.open(options.state or Path(tempfile.mkdtemp()) / "arena.jsonl")
    studied = carry_out(
        options.folder, state, options.jobs, options.limit, with_peers=not options.no_peers
    )
    arena = judge(studied.ours)
    blocks = dict(tables(studied, arena))
    figures = pictures("arena", (arena.overall,))
    blocks["arena: pictures"] = picture_block(figures)
    if options.calarena is not None:
        published_inputs = find([options.calarena])
        theirs = judge(ResultTable.of(published_inputs.results, baseline=published_inputs.baseline))
        blocks |= dict(published(theirs))
        more = pictures("calarena", tuple(b for b in theirs.boards if b.key != "apart"))
        blocks["calarena: pictures"] = picture_block(more)
        figures |= more
    for name, text in blocks.items():
        print(f"\n{name}\n\n{text}", flush=True)
    if options.write:
        from _figure_files import write_figures

        write_figures(figures)
        for name, text in blocks.items():
            write_between(name, text, DOCUMENT)
        write_section("Arena", results_section(studied, blocks))


if __name__ == "__main__":
    main()
