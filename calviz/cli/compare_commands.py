"""Commands that compare: recalibrators (``compare``), models (``compare-models``), periods (``over-time``), folds, sites, and ``arena``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from calviz.cli import command_group, options
from calviz.cli.command_group import CROSSED, FINE, OutputOption, check_output, naming, say, show
from calviz.core.entry_specs import METRICS, RECALIBRATORS
from calviz.core.errors import NotAvailable, OptionError

if TYPE_CHECKING:
    from calviz.comparison.arena_results import ResultTable
    from calviz.comparison.arena_sources import ArenaInput


@options.command
def compare(
    file: str,
    *,
    methods: Annotated[str, options.METHOD] = "all",
    metrics: options.MetricKeys = None,
    division: options.Division,
    sample: options.FittingRows = None,
    judge_sample: options.JudgingRows = None,
    option: tuple[str, ...] = (),
    reduction: options.HowJudged = None,
    bins: options.BinCount = options.DEFAULT_BINS,
    scheme: options.Scheme | None = None,
    refits: Annotated[int, {"type": click.IntRange(min=0), "show_default": False}] = 0,
    model: str | None = None,
    outputs: options.Outputs,
    label_file: options.LabelFile | None,
    reading: options.ReadingOptions,
) -> None:
    """Fit recalibrators on some rows of FILE and compare them on others.

    A method that fails is reported with its reason; the others still finish. From a folder, a pattern, or a file that may not fit into
    memory, a sample of rows is drawn to fit on, and another to judge on.

    Parameters
    ----------
    file : FILE
    methods : A,B,C
        Keys of recalibrators (see 'calviz methods'), all, or suggested, which the app takes at first; first+second is a composition.
    metrics : A,B,C
        Only these metrics (see 'calviz metrics'), or all, which takes a while; by default those of the table, and in JSON all.
    refits : N
        Refit each method N times on resampled rows, so that differences include the variation of the fit (such as 20).
    """
    import calviz
    from calviz.cli.result_texts import print_comparison

    of_set = methods in ("all", "suggested")
    keys = tuple(RECALIBRATORS.keys() if of_set else (key.strip() for key in methods.split(",")))
    parameters = options.parse_parameters(option, keys)
    for key in keys:
        RECALIBRATORS[key]  # an unknown key is refused before the file is read
    measured = "all" if metrics == ("all",) or (outputs.json and not metrics) else metrics
    if measured is not None and measured != "all":
        measured = tuple(METRICS[key].key for key in measured)
    rows, loaded = None, None
    data: Any
    if why := options.why_drawn(file, sample, label_file):
        if outputs.reports:
            remedy = "leave out --sample, or write --json" if sample else "write --json instead"
            raise OptionError(f"a report needs all rows, and here a sample is drawn: {remedy}.")
        how = options.draw_options(sample, reading, division) | {"eval_split": division.eval_split}
        judged = judge_sample or how["rows"]
        with command_group.showing_progress(), naming(file):
            data = rows = calviz.sample_rows([file], judged=judged, model=model, **how)
        division = replace(division, fit_split=None, eval_split=None)
        if not outputs.quiet:
            options.say_drawn(file, why, rows.sentence())
    else:
        if judge_sample is not None:
            raise OptionError("--judge-sample goes with --sample.")
        loaded, data = options.read_model(file, model, outputs, reading, label_file)
    with naming(file):
        comparison = calviz.compare(
            data,
            methods if of_set else keys,
            metrics=measured,
            reduction=reduction,
            bins=bins,
            scheme=scheme,
            refits=refits,
            options=parameters,
            progress=lambda result, done, total: say(
                f"[{done}/{total}] {result.key}{'' if result.ok else f': {result.reason}'}"
            ),
            **division.given,
        )
    if not outputs.quiet:
        print_comparison(comparison, metrics)
    if outputs.json is not None:
        from calviz.report.json_results import comparison_record

        extra: dict[str, Any] = {"digest": loaded.digest} if loaded is not None else {}
        extra |= {"sample": rows.record()} if rows is not None else {}
        outputs.write_json(comparison_record(comparison, file=file, **extra))
    if outputs.reports and loaded is not None:
        from calviz.core.entry_specs import UNCALIBRATED
        from calviz.report import content, document
        from calviz.sample.sample import Sample

        # On the evaluation rows before recalibration; each method's results are on them.
        before = comparison[UNCALIBRATED].calibrated
        assert before is not None
        judged_on = Sample(
            before,
            options.Reduction.of(comparison.reduction),
            bins=comparison.bins,
            scheme=scheme,
            seed=comparison.seed,
            split=comparison.evaluation.split,
        )
        title = f"{loaded.file}, {comparison.name}" if len(loaded.models) > 1 else loaded.file
        origin = content.Origin.of(loaded, reading)
        subject = content.Subject(judged_on, title=title, origin=origin, comparison=comparison)
        outputs.write(document.compose(subject, sections=content.brief_sections()))


# ---- Models


@options.command
def compare_models(
    files: tuple[str, ...],
    *,
    split: str | None = None,
    reduction: options.HowJudged = None,
    bins: options.BinCount = options.DEFAULT_BINS,
    scheme: options.Scheme | None = None,
    seed: options.Seed = 0,
    resamples: options.Resamples = options.RESAMPLES,
    model: tuple[str, ...] = (),
    outputs: options.Outputs,
    reading: options.ReadingOptions,
) -> None:
    """Compare the models in FILE... on the rows that they have in common.

    Rows are matched by identifier, or by their order where all true labels agree.

    Parameters
    ----------
    files : FILE...
    split : NAME
        Only the rows of this split, in files that have it.
    model : NAME
        Only this model (repeatable), by its name in the table; all by default.
    """
    from calviz.cli.result_texts import print_models, print_recognition
    from calviz.comparison.compare_models import after_map, compare_models, same_rows
    from calviz.data.joining import named_models

    if (twice := command_group.named_twice(files)) is not None:
        say(f"{twice} is named twice, so its models are compared with themselves.")
    loaded: list[options.Loaded] = []
    for file in files:
        loaded.append(options.read_file(file, reading))
        if not outputs.quiet:
            print_recognition(file, loaded[-1])
    models = named_models([(source.file, source.models) for source in loaded])
    if len(loaded) == 1:
        model = tuple(options.chosen_model(loaded[0], name) for name in model)
    options.check_models(model, models)
    if len(models) == 1:
        other = loaded[0].recognition.of_two_models
        raise OptionError(f"a comparison takes two models: name another file, or {other}.")
    models = {name: models[name] for name in model} if model else models
    aligned = same_rows(models, split=split)
    how = options.Reduction.of(reduction, *aligned.models.values())
    settings: dict[str, Any] = {"bins": bins, "scheme": scheme, "seed": seed, "split": split}
    every = "all" if outputs.json is not None else None
    comparison = compare_models(aligned, every, reduction=how, resamples=resamples, **settings)
    comparison = after_map(comparison, models, resamples=resamples)
    if not outputs.quiet:
        print_models(comparison)
    if outputs.json is not None:
        from calviz.report.json_results import models_record

        outputs.write_json(models_record(comparison, files=[source.file for source in loaded]))
    if outputs.reports:
        from calviz.report import content, document

        # Names are in the order of the files and of the models in them.
        sources = [source for source in loaded for _ in source.models]
        source_of = dict(zip(models, sources, strict=True))

        def subjects() -> Iterator[content.Subject]:
            """Each model on the rows that all models have; the comparison is shown once, with the first."""
            samples = {m.name: m.sample for m in comparison if m.sample}
            for number, (name, found) in enumerate(samples.items()):
                origin, shown = content.Origin.of(source_of[name], reading), [None, comparison]
                sample = found.but(split=split, resamples=resamples)
                yield content.Subject(sample, title=name, origin=origin, models=shown[not number])
                sample.let_go()  # free memory for the next model

        outputs.write(document.compose(subjects(), sections=content.brief_sections()))


# ---- Over time


@options.command
def over_time(
    file: str,
    *,
    metric: Annotated[str | None, options.METRIC] = None,
    every: Literal["day", "week", "month", "quarter", "year", "equal-counts"] | None = None,
    parts: Annotated[int, {"type": click.IntRange(min=2)}] = 10,
    method: Annotated[str, options.METHOD] = "temperature",
    split: str | None = None,
    reduction: options.HowJudged = None,
    bins: options.BinCount = options.DEFAULT_BINS,
    seed: options.Seed = 0,
    model: tuple[str, ...] = (),
    json_only: options.Outputs,
    reading: options.ReadingOptions,
) -> None:
    """Measure a metric of FILE over time: each period with interval and noise floor, and which periods differ beyond chance.

    The time column is recognised, or named by --time. With --repair drop-missing, what rows without labels would show is
    estimated (see 'calviz expected').

    Parameters
    ----------
    file : FILE
    metric : KEY
        The metric to measure (see 'calviz metrics'); by default mcs, or nll if rows after the last label wait for theirs.
    every
        Length of the periods; by default chosen from the data.
    parts
        Number of periods, if they have equal counts of rows.
    method : KEY
        The recalibrator fitted on the rows before each period, or none.
    model : NAME
        The models to use, if the file holds several (repeatable); all by default.
    """
    from calviz import over_time
    from calviz.cli.result_texts import print_over_time

    METRICS[metric or "mcs"]  # an unknown key is refused before the file is read
    if method != "none":
        RECALIBRATORS[method]
    records = []
    for loaded, data in options.read_models(file, model, json_only, reading):
        with naming(file):
            result = over_time(
                data,
                metric,
                every=every and every.replace("-", " "),  # type: ignore[arg-type]
                parts=parts,
                method=None if method == "none" else method,
                split=split,
                reduction=reduction,
                bins=bins,
                seed=seed,
                waiting=loaded.waiting.get(data.name),
            )
        if not json_only.quiet:
            print_over_time(result)
        if json_only.json is not None:
            from calviz.report.json_results import over_time_record

            records.append(over_time_record(result, file=file, digest=loaded.digest))
    json_only.write_json(records)


# ---- Folds and sites


@options.command
def folds(
    file: str,
    *,
    by: str | None = None,
    metrics: options.MetricKeys = None,
    split: str | None = None,
    reduction: options.HowJudged = None,
    bins: options.BinCount = options.DEFAULT_BINS,
    seed: options.Seed = 0,
    resamples: options.Resamples = options.RESAMPLES,
    model: str | None = None,
    json_only: options.Outputs,
    reading: options.ReadingOptions,
) -> None:
    """Evaluate each fold of a cross-validation in FILE by itself: mean and spread over folds, and which folds differ beyond chance.

    Parameters
    ----------
    file : FILE
    by : COL
        The group column that holds the folds; by default the one whose name says so.
    metrics : A,B,C
        Keys of metrics (see 'calviz metrics'); the first one is tested.
    """
    from calviz.comparison.folds_and_sites import FOLD_METRICS, folds

    how: dict[str, Any] = {"split": split, "reduction": reduction, "bins": bins, "seed": seed}
    _, data = options.read_model(file, model, json_only, reading)
    with naming(file):
        result = folds(data, by, metrics or FOLD_METRICS, resamples=resamples, **how)
    json_only.tell(result)


@options.command
def sites(
    file: str,
    *,
    by: Annotated[str, {"required": True}],
    split: str | None = None,
    reduction: options.HowJudged = None,
    seed: options.Seed = 0,
    resamples: options.Resamples = options.RESAMPLES,
    model: str | None = None,
    json_only: options.Outputs,
    reading: options.ReadingOptions,
) -> None:
    """Evaluate each site of FILE by itself, and summarise slope, intercept, O/E, MCS and AUROC by random effects.

    Parameters
    ----------
    file : FILE
    by : COL
        The group column that holds the sites.
    """
    from calviz.comparison.folds_and_sites import sites

    _, data = options.read_model(file, model, json_only, reading)
    with naming(file):
        result = sites(data, by, split=split, reduction=reduction, seed=seed, resamples=resamples)
    json_only.tell(result)


# ---- Slices


@options.command
def slices(
    file: str,
    *,
    column: tuple[str, ...] = (),
    pairs: bool = False,
    against: Literal["calibrated", "rest"] = "calibrated",
    min_rows: Annotated[int, {"type": click.IntRange(min=2)}] = 50,
    rate: options.Level[float] = 0.005,
    cut: tuple[str, ...] = (),
    all: bool = False,
    split: str | None = None,
    reduction: options.HowJudged = None,
    bins: options.BinCount = options.DEFAULT_BINS,
    model: tuple[str, ...] = (),
    json_only: options.Outputs,
    reading: options.ReadingOptions,
) -> None:
    """Find the groups of rows of FILE for which its scores are off beyond chance.

    Numbers and dates are cut at their deciles; of a text with more than 50 values the most frequent 20 are slices, and all others one;
    of the hours, weekdays and months of the times, the range that is furthest off, tested as one of all ranges.
    The multicalibration error is the error over all slices and pairs of them as one number.

    Parameters
    ----------
    file : FILE
    column : COL
        A column to slice by (repeatable); by default all but free texts, clusters and those that repeat another.
    pairs
        Slice by two columns together too.
    against
        What a slice is tested against: a calibrated model, or the other rows.
    min_rows
        Slices with fewer rows are counted, not measured.
    rate
        False discovery rate, for all slices together.
    cut : COL=EDGES
        Inner edges of a number or of dates, such as age=30,50,65 (repeatable); each is the upper end of an interval.
    all
        Print every slice, not only the 20 that are most surely off.
    model : NAME
        The models to use, if the file holds several (repeatable); all by default.
    """
    from calviz import multicalibration, slices, verdict
    from calviz.cli.result_texts import print_slices
    from calviz.core.predictions import edges_of
    from calviz.figures.slice_gaps import SliceGaps

    how: dict[str, Any] = {"reduction": reduction, "split": split}
    how |= {"min_rows": min_rows, "edges": edges_of(cut)}
    records = []
    for loaded, data in options.read_models(file, model, json_only, reading):
        with naming(file):
            result = slices(
                data, column or None, pairs=pairs, against=against, rate=rate, bins=bins, **how
            )
            timed = data.times is not None
            judged = timed and verdict(data, split=split, reduction=reduction, bins=bins)
            figure = SliceGaps.compute(result, judged or None)
            try:
                whole = multicalibration(data, column or None, **how)
                words = whole.reading()
            except NotAvailable as error:
                whole, words = None, f"Not computed: {error}"
        if not json_only.quiet:
            print_slices(figure.result, every=all)
            show(figure.answer())
            show(words)
        if json_only.json is not None:
            rows: Any = {"rows": result.rows, "small": result.small, "left_out": result.skipped}
            rows |= {"slices": result.frame().to_dict("records"), "multicalibration": whole}
            records.append({"file": file, "digest": loaded.digest, "name": data.name, **rows})
    json_only.write_json(records)


# ---- Watching


@options.command
def watch(
    file: str,
    *,
    state: options.RequiredPath,
    alpha: options.Level[float | None] = None,
    when: str | None = None,
    split: str | None = None,
    reduction: options.HowJudged = None,
    model: str | None = None,
    json_only: options.Outputs,
    reading: options.ReadingOptions,
) -> int:
    """Look at new rows of FILE, and alarm (exit code 1) once the scores are no longer calibrated.

    The chance of a false alarm is at most alpha over all looks together, however many there are. A look that STATE has counted
    is not counted again.

    Parameters
    ----------
    file : FILE
    state : STATE
        File with the looks so far: made if there is none, otherwise continued.
    alpha
        Chance of a false alarm over all looks together; 0.05 for a new state.
    when : NAME
        Name of the look; by default each day of the time column is one, or all rows are.
    """
    from calviz.sample.sample import Sample
    from calviz.verdicts.watching import ALPHA, Watch

    if Path(state).exists():
        watched = Watch.load(state)
        if alpha not in (None, watched.alpha):
            raise OptionError(f"--alpha {alpha:g}: {state} was begun with {watched.alpha:g}.")
        if reduction is not None and reduction != watched.reduction:
            raise OptionError(f"--reduction {reduction.key}: {state} was begun with another one.")
    else:
        watched = Watch(ALPHA if alpha is None else alpha, reduction)
    check_output("--state", state)
    _, data = options.read_model(file, model, json_only, reading)
    with naming(file):
        now = watched.add(Sample.of(data, split=split, reduction=watched.reduction), when)
    watched.save(state)
    json_only.tell(now)
    return CROSSED if now.alarm else FINE


# ---- Arena


@options.command
def arena(
    paths: tuple[str, ...],
    *,
    methods: Annotated[str, options.METHOD] = "all",
    state: Annotated[str | None, {"cls": OutputOption, "flags": ("--state", "--resume")}] = None,
    jobs: Annotated[int | None, {"type": click.IntRange(min=1, max=256)}] = None,
    resamples: Annotated[int, {"type": click.IntRange(min=0, max=100_000)}] = 1_000,
    division: options.Division,
    option: tuple[str, ...] = (),
    outputs: options.Outputs,
    reading: options.ReadingOptions,
) -> None:
    """Fit every method on the calibration split of every file, judge on the test split, and print the leaderboard.

    Takes files of predictions, folders of them, HDF5 files in CalArena's layout, or results: CalArena's CSV files
    (BENCHMARK/METHOD.csv), a file written by --state, or the JSON of an earlier arena.

    Parameters
    ----------
    paths : FILE|FOLDER...
    methods : A,B,C
        Keys of recalibrators (see 'calviz methods'), or all; for results, the method names in them.
    state : FILE
        Keep finished results in this file, and skip those that it already holds.
    jobs : N
        Number of experiments run in parallel; all cores by default.
    resamples
        Number of bootstrap draws of the data sets for the intervals.
    """
    from calviz.cli.result_texts import print_arena
    from calviz.comparison.arena_sources import find
    from calviz.comparison.leaderboards import judge

    parameters = options.parse_parameters(option)
    names = tuple(dict.fromkeys(name.strip() for name in methods.split(",")))
    chosen = None if methods == "all" else names
    inputs = find(paths, reading, state=state)
    for note in inputs.notes:
        say(note)
    problems: tuple[str, ...] = ()
    if inputs.playable:
        from calviz.comparison.arena_experiments import Rules, play_all
        from calviz.comparison.arena_sources import ArenaState

        rules = Rules(methods=chosen or "all", division=division, options=parameters)
        _ = rules.specs  # an unknown method raises before any file is processed
        kept = None if state is None else ArenaState.open(state)
        if kept is not None and kept.done:
            say(f"{kept.path.name} holds {len(kept.done):,} results; these are not computed again.")
        how: dict[str, Any] = {"state": kept, "jobs": jobs, "progress": _say_progress}
        table, problems = play_all(inputs.playable, rules, **how)
    else:
        table = _read_results(inputs, chosen)
    arena = judge(table, resamples=resamples, seed=division.seed)
    if not outputs.quiet:
        print_arena(arena)
    if outputs.json is not None:
        from calviz.report.arena_report import arena_record

        outputs.write_json(arena_record(arena, problems=problems, seed=division.seed))
    if outputs.reports:
        from calviz.report.arena_report import arena_report

        outputs.write(arena_report(arena, problems=problems))


def _say_progress(name: str, done: int, total: int, problem: str) -> None:
    if total > 1 or not problem:  # for a single file, the error reports it
        say(f"[{done}/{total}] {problem or name}")


def _read_results(inputs: ArenaInput, chosen: tuple[str, ...] | None) -> ResultTable:
    from calviz.comparison.arena_results import ResultTable

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


# ---- A judge against people


@options.command
def judge(
    file: str,
    *,
    judge: str | None = None,
    human: str | None = None,
    by: tuple[str, ...] = (),
    chance: str | None = None,
    cluster: str | None = None,
    class_names: options.Names = None,
    confidence: options.Level[float] = 0.95,
    method: Annotated[str | None, options.METHOD] = None,
    model: str | None = None,
    model_column: str | None = None,
    width: options.Level[float | None] = None,
    next: Annotated[int | None, {"type": click.IntRange(min=1)}] = None,
    out: options.OutputPath = None,
    seed: options.Seed = 0,
    json_only: options.Outputs,
) -> None:
    """Correct the verdicts of a judge, such as a language model, by the human labels of some rows of FILE.

    Parameters
    ----------
    file : FILE
    judge : COL
        What the judge says: 0 and 1, yes and no, a score from 0 to 1, or grades (--class-names).  [default: judge]
    human : COL
        What people say, empty where nobody has looked.  [default: human]
    by : COL
        Groups that are corrected by themselves and compared, such as the system that is judged (repeatable: each column by itself).
    chance : COL
        Probability with which each row was chosen to be labelled, if not all had the same.
    cluster : COL
        The question, where several rows belong to one: intervals are those of questions, and systems that answer the same ones are compared
        question by question. Left out, it is the question of a log that asks it again, or the item whose rows share one human label, as
        those of several judges do; '' counts each row by itself.
    class_names : NAME,NAME
        The words for no and yes, such as bad,good; or the grades: 3,4 where 4 or more is yes, 1,5 for a scale; or both, one after the other.
    confidence
        Level of the intervals.
    method : KEY
        First recalibrate the judge's score on the labelled rows by this method (see 'calviz methods').
    model : NAME
        The judge, if a column names several; --by that column compares them.
    model_column : COL
        Column that names the judge of each row; '' if all rows are judged together.
    width
        How many labels an interval of this width needs, such as .05.
    next : ROWS
        Draw so many rows to label next, or items whose rows share one label (with --out).
    out : FILE.csv
        With --next: a line for each row of the judge, its number in FILE, whether to label it, and its chance for --chance.
    seed
        Seed of the rows that are drawn.
    """
    from calviz.comparison.judging import judged
    from calviz.core.errors import InputError, replacing
    from calviz.data import ReadingOptions
    from calviz.data.judge_columns import read_judge

    if (next is None) != (out is None):
        raise OptionError("--next ROWS and --out FILE.csv go together.")
    check_output("--out", out)
    of: tuple[str | None, str] = (None, "")
    reading = ReadingOptions(label=human, model_column=model_column, class_names=class_names, repair=("drop-missing",))  # fmt: skip
    try:  # what is not read as probabilities may be judged too
        loaded = options.read_file(file, reading)
        column = loaded.recognition.model_column
        if model or column not in (*by, None):
            of = (column, options.chosen_model(loaded, model))
    except InputError:
        if model or model_column:
            raise
    columns = read_judge(file, judge, human, by, chance, cluster, class_names=class_names or (), of=of)  # fmt: skip
    with naming(file):
        result = judged(columns, confidence)
        if method is not None:
            result = result.recalibrated(method)
    record = result.to_dict() | ({"model": of[1]} if of[1] else {})
    lines = [str(result)]
    if width is not None:
        record["needed"] = result.needed(width)
        lines.append(result.needed_sentence(width))
    if next is not None and out is not None:
        with naming(file, options=False):
            rows = zip(*(c.tolist() for c in result.next_in_file(next, seed)), strict=True)
        table = [f"{row},{label},{chance:.6g}\n" for row, label, chance in rows]
        with replacing(out) as path:
            path.write_text("row,label,chance\n" + "".join(table), encoding="utf-8")
        lines.append(f"wrote the rows to label next to {out}")
    json_only.write_json(record)
    if not json_only.quiet:
        click.echo("\n".join(lines))
