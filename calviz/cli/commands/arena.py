"""``calviz arena``: run every method on many data sets and rank them on a leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calviz.cli.command_group import FINE
from calviz.cli.fit_row_options import fitting_options
from calviz.cli.method_options import method_options, parse
from calviz.cli.output_options import OutputOption, check_output, json_option, write_json
from calviz.cli.reading import reading_options
from calviz.cli.report_options import Documents, document_options, only_one_output
from calviz.cli.text import say

if TYPE_CHECKING:
    from calviz.arena import ArenaInput
    from calviz.comparison.rows import Division
    from calviz.data import ReadingOptions
    from calviz.results.arena import ResultTable


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option(
    "--methods",
    default="all",
    show_default=True,
    metavar="A,B,C",
    help="Keys of recalibrators (see 'calviz methods'), or all; for results, the method names in them.",
)
@click.option(
    "--state",
    "--resume",
    "state_path",
    cls=OutputOption,
    metavar="FILE",
    help="Keep finished results in this file, and skip those that it already holds.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=256),
    metavar="N",
    help="Number of experiments run in parallel; all cores by default.",
)
@click.option(
    "--resamples",
    default=1_000,
    show_default=True,
    type=click.IntRange(min=0, max=100_000),
    help="Number of bootstrap draws of the data sets for the intervals.",
)
@fitting_options(judging=True)
@method_options
@json_option
@document_options
@reading_options
def command(
    paths: tuple[str, ...],
    methods: str,
    state_path: str | None,
    jobs: int | None,
    resamples: int,
    division: Division,
    options: tuple[str, ...],
    json_path: str | None,
    html_path: str | None,
    pdf_path: str | None,
    markdown_path: str | None,
    reading: ReadingOptions,
) -> int:
    """Fit every method on the calibration split of every file, judge on the test split, and print the leaderboard.

    Takes files of predictions, folders of them, HDF5 files in CalArena's layout, or results: CalArena's CSV files
    (BENCHMARK/METHOD.csv), a file written by --state, or the JSON of an earlier arena.
    """
    from calviz.arena import find, judge
    from calviz.cli.arena_text import print_arena

    parameters = parse(options)
    check_output("--json", json_path)
    documents = Documents(html_path, markdown_path, pdf_path)
    documents.check()
    quiet = only_one_output(json_path, documents)
    names = tuple(dict.fromkeys(name.strip() for name in methods.split(",")))
    chosen = None if methods == "all" else names
    inputs = find(paths, reading, state=state_path)
    for note in inputs.notes:
        say(note)
    problems: tuple[str, ...] = ()
    if inputs.playable:
        table, problems = _run_experiments(inputs, chosen, division, parameters, state_path, jobs)
    else:
        table = _read_results(inputs, chosen)
    arena = judge(table, resamples=resamples, seed=division.seed)
    if not quiet:
        print_arena(arena)
    if json_path is not None:
        from calviz.report.arena_json import arena_record

        write_json(arena_record(arena, problems=problems, seed=division.seed), json_path)
    if documents:
        from calviz.report.arena_report import arena_report

        documents.write(arena_report(arena, problems=problems))
    return FINE


def _run_experiments(
    inputs: ArenaInput,
    chosen: tuple[str, ...] | None,
    division: Division,
    options: dict[str, dict[str, object]],
    state_path: str | None,
    jobs: int | None,
) -> tuple[ResultTable, tuple[str, ...]]:
    from calviz.arena import ArenaState, Rules, play_all

    def progress(name: str, done: int, total: int, problem: str) -> None:
        if total > 1 or not problem:  # for a single file, the error reports it
            say(f"[{done}/{total}] {problem or name}")

    rules = Rules(methods="all" if chosen is None else chosen, division=division, options=options)
    _ = rules.specs  # an unknown method raises before any file is processed
    state = None if state_path is None else ArenaState.open(state_path)
    if state is not None and state.done:
        say(f"{state.path.name} holds {len(state.done):,} results; these are not computed again.")
    return play_all(inputs.playable, rules, state=state, jobs=jobs, progress=progress)


def _read_results(inputs: ArenaInput, chosen: tuple[str, ...] | None) -> ResultTable:
    from calviz.core.errors import OptionError
    from calviz.results.arena import ResultTable

    table = ResultTable.of(inputs.results, baseline=inputs.baseline)
    if chosen is None:
        return table
    if unknown := [name for name in chosen if name not in table.methods]:
        raise OptionError(
            f"there are no results of '{unknown[0]}'; known: {', '.join(table.methods)}."
        )
    methods = [*chosen, *([table.baseline] if table.baseline is not None else [])]
    return ResultTable.of(
        inputs.results, baseline=inputs.baseline, methods=list(dict.fromkeys(methods))
    )
