"""The page Arena: the contestants, the job that fits and judges them, and the leaderboard."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.arena import Rules, judge, play_all
from calviz.core.progress import watching
from calviz.results.leaderboard import Arena
from calviz.text.words import counted
from calviz.ui.arena import contestants, leaderboard_view
from calviz.ui.arena.contestants import Contest, SavedResults
from calviz.ui.session.jobs import Job, Work
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import link_choice, long_work
from calviz.ui.widgets.long_work import Button, LongWork, StateWords

PLACE = "arena"
#: Seconds before progress is shown for work that starts by itself.
PATIENCE = 1.0
_WAYS = {"open": "Open files", "kept": "A saved arena, or results"}


@dataclass(frozen=True, eq=False)
class ArenaOutcome:
    """The result of an arena.

    Attributes
    ----------
    arena : Arena
    problems : tuple of str
        Models that could not be used.
    """

    arena: Arena
    problems: tuple[str, ...] = ()


def explore(settings: Settings) -> None:
    """Draw the choice of contestants, the job and the leaderboard."""
    way = link_choice.one_of("What competes", _WAYS, default="open", key="arena-of")
    if way == "kept":
        saved = contestants.of_saved_results()
        if saved is None:
            return
        work = LongWork(
            PLACE,
            ("kept", saved.key),
            f"Judging {counted(len(saved.table), 'experiment')}",
            lambda: _judge_work(saved),
        )
        status = long_work.draw(work, Button("Judge again"), at_once=True, patience=PATIENCE)
    else:
        contest = contestants.of_open_files(settings.entry)
        if contest is None:
            return
        work = LongWork(
            PLACE,
            contest.key,
            f"{counted(len(contest.methods), 'recalibrator')} on {counted(len(contest.sources), 'model')}",
            lambda: lambda job: _play(job, contest),
            about=("open",),
        )
        status = long_work.draw(
            work,
            Button("Start the arena", ":material/trophy:", always=True),
            StateWords(
                "Models with a calibration and a test split use these; for others, maps are fitted on half of the rows and judged on the rest.",
                stopped=_stopped,
            ),
        )
    if isinstance(status.result, ArenaOutcome):
        leaderboard_view.show(status.result.arena, status.result.problems)


def _judge_work(saved: SavedResults) -> Work:
    return lambda job: ArenaOutcome(judge(saved.table))


def _play(job: Job, contest: Contest) -> ArenaOutcome:
    table, problems = play_all(
        contest.sources,
        Rules(methods=contest.methods, drawn=True),
        progress=lambda name, done, total, problem: job.progress(done, total, name),
        stop=job.stopping,
    )
    with watching(None):  # results of a stopped run are still judged
        return ArenaOutcome(judge(table), problems)


def _stopped(job: Job) -> str:
    if job.result is None:
        return "Stopped before an experiment was finished."
    return f"Stopped after {job.done:,} of {job.total:,} models: the leaderboard covers these."
