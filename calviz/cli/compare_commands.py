"""Commands that compare: recalibrators (``compare``), models (``compare-models``), periods (``over-time``), and ``arena``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from calviz.cli.command_group import (
    CROSSED,
    FINE,
    OutputOption,
    check_output,
    json_option,
    named_twice,
    naming,
    say,
    write_json,
)
from calviz.cli.options import (
    Documents,
    bins_option,
    document_options,
    draw_rows,
    fitting_options,
    judge_option,
    label_file_options,
    method_options,
    one_model,
    only_one_output,
    parse_parameters,
    reading_options,
    reduction_option,
    resamples_option,
    sample_option,
    say_drawn,
    seed_option,
    why_drawn,
)
from calviz.core.entry_specs import METRICS, RECALIBRATORS
from calviz.core.errors import NotAvailable, OptionError

if TYPE_CHECKING:
    from calviz.comparison.arena_results import ResultTable
    from calviz.comparison.arena_sources import ArenaInput
    from calviz.comparison.comparison_results import (
        Alignment,
        Comparison,
        MethodResult,
        ModelComparison,
    )
    from calviz.comparison.fitting import Division
    from calviz.core.events import Reduction
    from calviz.data import LabelFile, Loaded, ReadingOptions
    from calviz.report.content import Origin, Subject
    from calviz.report.document import Report
    from calviz.sample.sample import Sample


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--methods",
    default="all",
    show_default=True,
    metavar="A,B,C",
    help="Keys of recalibrators (see 'calviz methods'), or all; first+second is a composition.",
)
@fitting_options(judging=True)
@sample_option
@judge_option
@method_options
@reduction_option
@bins_option
@click.option(
    "--refits",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Refit each method N times on resampled rows, so that differences include the variation of the fit (such as 20).",
)
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@json_option
@document_options
@label_file_options
@reading_options
def compare(
    file: str,
    methods: str,
    division: Division,
    sample: int | None,
    judge_sample: int | None,
    options: tuple[str, ...],
    reduction: Reduction | None,
    bins: int,
    refits: int,
    model: str | None,
    json_path: str | None,
    documents: Documents,
    reading: ReadingOptions,
    labels: LabelFile | None,
) -> int:
    """Fit recalibrators on some rows of FILE and compare them on others.

    A method that fails is reported with its reason; the others still finish. From a folder, a pattern, or a file that may not fit into
    memory, a sample of rows is drawn to fit on, and another to judge on.
    """
    from calviz.cli.result_texts import print_comparison, print_recognition
    from calviz.comparison.compare import Plan, carry_out
    from calviz.data import read

    parameters = parse_parameters(options)
    keys = _checked_keys(methods, parameters)
    check_output("--json", json_path)
    documents.check()
    quiet = only_one_output(json_path, documents)
    rows, loaded = None, None
    if why := why_drawn(file, sample, labels):
        if documents:
            raise _report_needs_all_rows(asked_for=sample is not None)
        rows = draw_rows(file, sample, judge_sample, model, reading, division)
        division = replace(division, fit_split=None, eval_split=None)
        if not quiet:
            say_drawn(file, why, rows)
    else:
        if judge_sample is not None:
            raise OptionError("--judge-sample goes with --sample.")
        with naming(file):
            loaded = read(file, options=reading, labels=labels)
        if not quiet:
            print_recognition(file, loaded)
    plan = Plan(
        methods=keys,
        division=division,
        reduction=reduction,
        bins=bins,
        refits=refits,
        options=parameters,
    )
    with naming(file):
        data = one_model(loaded, model) if loaded is not None else rows
        assert data is not None
        comparison = carry_out(plan, data, progress=_say_progress)
    if not quiet:
        print_comparison(comparison)
    if json_path is not None:
        from calviz.report.json_results import comparison_record

        extra: dict[str, Any] = {"digest": loaded.digest} if loaded is not None else {}
        extra |= {"sample": rows.record()} if rows is not None else {}
        write_json(comparison_record(comparison, file=file, **extra), json_path)
    if documents and loaded is not None:
        documents.write(_report(comparison, loaded, reading))
    return FINE


def _checked_keys(
    methods: str, parameters: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...] | Literal["all"]:
    """Split --methods into keys; unknown keys and options of other methods are refused before the file is read."""
    if methods == "all":
        RECALIBRATORS.check_options(parameters, RECALIBRATORS.keys(), "--option")
        return "all"
    keys = tuple(key.strip() for key in methods.split(","))
    RECALIBRATORS.check_options(parameters, keys, "--option")
    for key in keys:
        RECALIBRATORS[key]  # raises OptionError for an unknown key
    return keys


def _report_needs_all_rows(*, asked_for: bool) -> OptionError:
    """Return the error about a report on a drawn sample, which was `asked_for` by --sample or drawn because the file is large."""
    remedy = "leave out --sample, or write --json" if asked_for else "write --json instead"
    return OptionError(f"a report needs all rows, and here a sample is drawn: {remedy}.")


def _say_progress(result: MethodResult, done: int, total: int) -> None:
    state = "" if result.ok else f": {result.reason}"
    say(f"[{done}/{total}] {result.key}{state}")


def _report(comparison: Comparison, loaded: Loaded, reading: ReadingOptions) -> Report:
    """Report on the evaluation rows before recalibration, and on each method's results on them."""
    from calviz.core.entry_specs import UNCALIBRATED
    from calviz.core.events import Reduction
    from calviz.report.content import Origin, Subject, brief_sections
    from calviz.report.document import compose
    from calviz.sample.sample import Sample

    data = comparison[UNCALIBRATED].calibrated
    assert data is not None
    several = len(loaded.models) > 1
    reduction = Reduction.of(comparison.reduction)
    sample = Sample(
        data,
        reduction,
        bins=comparison.bins,
        seed=comparison.seed,
        split=comparison.evaluation.split,
    )
    subject = Subject(
        sample,
        title=f"{loaded.file}, {comparison.name}" if several else loaded.file,
        origin=Origin.of(loaded, reading),
        comparison=comparison,
    )
    return compose(subject, sections=brief_sections())


# ---- Models


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--split", metavar="NAME", help="Only the rows of this split, in files that have it.")
@reduction_option
@bins_option
@seed_option
@resamples_option
@click.option(
    "--model",
    "chosen",
    multiple=True,
    metavar="NAME",
    help="Only this model (repeatable), by its name in the table; all by default.",
)
@json_option
@document_options
@reading_options
def compare_models(
    files: tuple[str, ...],
    split: str | None,
    reduction: Reduction | None,
    bins: int,
    seed: int,
    resamples: int,
    chosen: tuple[str, ...],
    json_path: str | None,
    documents: Documents,
    reading: ReadingOptions,
) -> int:
    """Compare the models in FILE... on the rows that they have in common.

    Rows are matched by identifier, or by their order where all true labels agree.
    """
    from calviz.cli.result_texts import print_models
    from calviz.comparison.compare_models import compare_models, same_rows
    from calviz.core.events import Reduction
    from calviz.data.joining import named_models

    check_output("--json", json_path)
    documents.check()
    quiet = only_one_output(json_path, documents)
    if (twice := named_twice(files)) is not None:
        say(f"{twice} is named twice, so its models are compared with themselves.")
    loaded = _read_all(files, reading, quiet=quiet)
    models = named_models([(source.file, source.models) for source in loaded])
    unknown = [name for name in chosen if name not in models]
    if unknown:
        raise OptionError(f"there is no model '{unknown[0]}'; known: {', '.join(models)}.")
    aligned = same_rows({name: models[name] for name in chosen} if chosen else models, split=split)
    how = Reduction.of(reduction, *aligned.models.values())
    samples = _samples(aligned, how, bins=bins, seed=seed, resamples=resamples, split=split)
    comparison = compare_models(
        aligned,
        "all" if json_path is not None else None,
        split=split,
        samples=samples,
        reduction=how,
        bins=bins,
        seed=seed,
        resamples=resamples,
    )
    if not quiet:
        print_models(comparison)
    if json_path is not None:
        from calviz.report.json_results import models_record

        write_json(models_record(comparison, files=[source.file for source in loaded]), json_path)
    if documents:
        from calviz.report.content import brief_sections
        from calviz.report.document import compose

        origins = _origins(models, loaded, reading)
        documents.write(compose(_subjects(comparison, samples, origins), sections=brief_sections()))
    return FINE


def _read_all(files: tuple[str, ...], reading: ReadingOptions, *, quiet: bool) -> list[Loaded]:
    """Read the files, and print what was recognised in each."""
    from calviz.cli.result_texts import print_recognition
    from calviz.data import read

    loaded: list[Loaded] = []
    for file in files:
        with naming(file):
            source = read(file, options=reading)
        loaded.append(source)
        if not quiet:
            print_recognition(file, source)
    return loaded


def _samples(aligned: Alignment, reduction: Reduction, **settings: Any) -> dict[str, Sample]:
    """Make the sample of each model; a model without this reduction has none, and the comparison says why."""
    from calviz.sample.sample import Sample

    samples: dict[str, Sample] = {}
    for name, data in aligned.models.items():
        with suppress(NotAvailable):
            samples[name] = Sample(data, reduction, **settings)
    return samples


def _origins(
    names: Iterable[str], loaded: Sequence[Loaded], reading: ReadingOptions
) -> dict[str, Origin]:
    """Return the origin of each model; the names are in the order of the files and of the models in them."""
    from calviz.report.content import Origin

    files_of = [source for source in loaded for _ in source.models]
    return {name: Origin.of(source, reading) for name, source in zip(names, files_of, strict=True)}


def _subjects(
    comparison: ModelComparison, samples: dict[str, Sample], origins: dict[str, Origin]
) -> Iterator[Subject]:
    """Each model on the rows that all models have; the comparison is shown once, with the first."""
    from calviz.report.content import Subject

    for number, (name, sample) in enumerate(samples.items()):
        models = comparison if number == 0 else None
        yield Subject(sample, title=name, origin=origins[name], models=models)
        sample.let_go()  # free memory for the next model


# ---- Over time


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--metric",
    default="nll",
    show_default=True,
    metavar="KEY",
    help="The metric to measure; see 'calviz metrics'.",
)
@click.option(
    "--every",
    type=click.Choice(["day", "week", "month", "year", "equal-counts"]),
    help="Length of the periods; by default chosen from the data.",
)
@click.option(
    "--parts",
    default=10,
    show_default=True,
    type=click.IntRange(min=2),
    help="Number of periods, if they have equal counts of rows.",
)
@click.option(
    "--method",
    default="temperature",
    show_default=True,
    metavar="KEY",
    help="The recalibrator fitted on the rows before each period, or none.",
)
@click.option("--split", metavar="NAME", help="Only the rows of this split.")
@reduction_option
@bins_option
@seed_option
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@json_option
@reading_options
def over_time(
    file: str,
    metric: str,
    every: str | None,
    parts: int,
    method: str,
    split: str | None,
    reduction: Reduction | None,
    bins: int,
    seed: int,
    model: str | None,
    json_path: str | None,
    reading: ReadingOptions,
) -> int:
    """Measure a metric of FILE over time: each period with interval and noise floor, and which periods differ beyond chance.

    The time column is recognised, or named by --time.
    """
    from calviz.cli.result_texts import print_over_time, print_recognition
    from calviz.comparison.over_time import over_time
    from calviz.data import read

    check_output("--json", json_path)
    METRICS[metric]  # an unknown key is refused before the file is read
    if method != "none":
        RECALIBRATORS[method]
    with naming(file):
        loaded = read(file, options=reading)
    quiet = json_path == "-"
    if not quiet:
        print_recognition(file, loaded)
    with naming(file):
        result = over_time(
            one_model(loaded, model),
            metric,
            every=every and every.replace("-", " "),  # type: ignore[arg-type]
            parts=parts,
            method=None if method == "none" else method,
            split=split,
            reduction=reduction,
            bins=bins,
            seed=seed,
        )
    if not quiet:
        print_over_time(result)
    if json_path is not None:
        from calviz.report.json_results import over_time_record

        write_json(over_time_record(result, file=file, digest=loaded.digest), json_path)
    return FINE


# ---- Watching


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--state",
    cls=OutputOption,
    required=True,
    metavar="STATE",
    help="File with the looks so far: made if there is none, otherwise continued.",
)
@click.option(
    "--alpha",
    type=float,
    help="Chance of a false alarm over all looks together; 0.05 for a new state.",
)
@click.option(
    "--when",
    metavar="NAME",
    help="Name of the look; by default each day of the time column is one, or all rows are.",
)
@click.option("--split", metavar="NAME", help="Only the rows of this split.")
@reduction_option
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@json_option
@reading_options
def watch(
    file: str,
    state: str,
    alpha: float | None,
    when: str | None,
    split: str | None,
    reduction: Reduction | None,
    model: str | None,
    json_path: str | None,
    reading: ReadingOptions,
) -> int:
    """Look at new rows of FILE, and alarm (exit code 1) once the scores are no longer calibrated.

    The chance of a false alarm is at most alpha over all looks together, however many there are. A look that STATE has counted
    is not counted again.
    """
    from calviz.cli.result_texts import print_recognition
    from calviz.data import read
    from calviz.sample.sample import Sample
    from calviz.verdicts.watching import ALPHA, Watch

    check_output("--json", json_path)
    if Path(state).exists():
        watched = Watch.load(state)
        if alpha not in (None, watched.alpha):
            raise OptionError(f"--alpha {alpha:g}: {state} was begun with {watched.alpha:g}.")
        if reduction is not None and reduction != watched.reduction:
            raise OptionError(f"--reduction {reduction.key}: {state} was begun with another one.")
    else:
        watched = Watch(ALPHA if alpha is None else alpha, reduction)
    check_output("--state", state)
    with naming(file):
        loaded = read(file, options=reading)
    quiet = json_path == "-"
    if not quiet:
        print_recognition(file, loaded)
    with naming(file):
        now = watched.add(
            Sample.of(one_model(loaded, model), split=split, reduction=watched.reduction), when
        )
    watched.save(state)
    if not quiet:
        click.echo(f"\n{now}")
    if json_path is not None:
        write_json(now.to_dict(), json_path)
    return CROSSED if now.alarm else FINE


# ---- Arena


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
def arena(
    paths: tuple[str, ...],
    methods: str,
    state_path: str | None,
    jobs: int | None,
    resamples: int,
    division: Division,
    options: tuple[str, ...],
    json_path: str | None,
    documents: Documents,
    reading: ReadingOptions,
) -> int:
    """Fit every method on the calibration split of every file, judge on the test split, and print the leaderboard.

    Takes files of predictions, folders of them, HDF5 files in CalArena's layout, or results: CalArena's CSV files
    (BENCHMARK/METHOD.csv), a file written by --state, or the JSON of an earlier arena.
    """
    from calviz.cli.result_texts import print_arena
    from calviz.comparison.arena_sources import find
    from calviz.comparison.leaderboards import judge

    parameters = parse_parameters(options)
    check_output("--json", json_path)
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
        from calviz.report.arena_report import arena_record

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
    from calviz.comparison.arena_experiments import Rules, play_all
    from calviz.comparison.arena_sources import ArenaState

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
    from calviz.comparison.arena_results import ResultTable
    from calviz.core.errors import OptionError

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
