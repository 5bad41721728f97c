"""Commands that act on probabilities: fit a map (``recalibrate``), apply one (``apply``), prediction sets (``sets``), thresholds (``threshold``)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calviz.cli.command_group import (
    FINE,
    OutputOption,
    cell,
    check_folder,
    check_output,
    console,
    json_option,
    naming,
    say,
    short_name,
    showing_progress,
    table_of,
    write_json,
)
from calviz.cli.options import (
    draw_options,
    fitting_options,
    label_file_options,
    method_options,
    one_model,
    parse_parameters,
    prevalence_option,
    reading_options,
    reduction_option,
    sample_option,
    say_drawn,
    seed_option,
    why_drawn,
)
from calviz.core import __version__
from calviz.core.entry_specs import RECALIBRATORS, zero_words
from calviz.core.errors import CalvizError, OptionError
from calviz.core.limits import DEFAULT_SAMPLE_ROWS, replacing

if TYPE_CHECKING:
    from calviz.comparison.fitting import Division
    from calviz.comparison.prediction_sets import PredictionSets
    from calviz.comparison.recalibrate_files import RecalibratedFiles
    from calviz.core.predictions import Dataset
    from calviz.data import LabelFile, ReadingOptions
    from calviz.sample.safe_thresholds import RiskName


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--method", required=True, metavar="NAME", help="Key of a recalibrator; see 'calviz methods'."
)
@fitting_options(judging=False)
@method_options
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@click.option(
    "--unlabelled",
    metavar="FILE",
    help="With --method prior: rows without labels, from whose scores the new base rate is estimated.",
)
@click.option(
    "--out",
    cls=OutputOption,
    required=True,
    metavar="FILE|FOLDER",
    help="The calibrated file (.csv, .parquet or .npz); a folder if a sample of rows is drawn to fit on.",
)
@sample_option
@click.option(
    "--save-map",
    cls=OutputOption,
    metavar="MAP.json",
    help="Save the fitted map for 'calviz apply'.",
)
@click.option(
    "--save-snippet",
    cls=OutputOption,
    metavar="MAP.py",
    help="Save the fitted map as Python code that needs only NumPy.",
)
@label_file_options
@reading_options
def recalibrate(
    file: str,
    method: str,
    division: Division,
    options: tuple[str, ...],
    model: str | None,
    unlabelled: str | None,
    out: str,
    sample: int | None,
    save_map: str | None,
    save_snippet: str | None,
    reading: ReadingOptions,
    labels: LabelFile | None,
) -> int:
    """Fit a recalibrator on some rows of FILE and write all rows, calibrated.

    The fitting rows keep their split: judge the result on the others. From a folder, a pattern, or a file that may not
    fit into memory, a stratified sample of the rows is drawn to fit on, and all rows are written, block by block.
    """
    from calviz.cli.result_texts import print_recognition
    from calviz.comparison.fitting import calibrate, trade_off
    from calviz.data import read
    from calviz.data.writing import check_target, write_predictions

    parameters = parse_parameters(options)
    RECALIBRATORS.check_options(parameters, [method], "--option")
    RECALIBRATORS[method]  # an unknown key is refused before the file is read
    check_output("--save-map", save_map)
    check_output("--save-snippet", save_snippet)
    if unlabelled is not None and (method != "prior" or "prior" in parameters):
        raise OptionError(
            "--unlabelled estimates the base rate of --method prior, without --option."
        )
    if why := why_drawn(file, sample, labels):
        if unlabelled is not None:
            raise OptionError("--unlabelled needs all rows of FILE in memory.")
        recalibrated = _recalibrate_files(
            file, method, why, out, sample, model, reading, division, parameters
        )
        try:
            with _saving(recalibrated.map, recalibrated.recalibrator, save_map, save_snippet):
                pass
        except CalvizError as error:
            raise type(error)(f"{error} The files in {out} were written.") from None
        return FINE
    check_target(out)
    check_output("--out", out)
    if division.cross_fit is not None and (save_map or save_snippet):
        raise OptionError("cross-fitting has one map per fold: there is none to save.")
    with naming(file):
        loaded = read(file, options=reading, labels=labels)
        data = one_model(loaded, model)
    print_recognition(file, loaded)
    if unlabelled is not None:
        parameters["prior"] = {"base_rate": _estimated_rates(data, unlabelled, reading, division)}
    with naming(file, options=False):
        result = calibrate(data, method, division, parameters.get(method, {}))
    if result.recalibrator is not None and (remark := zero_words(result.recalibrator.describe())):
        say(f"{method}: {remark}")
    for sentence in result.warnings:
        say(f"{method}: {sentence}")
    if (cost := trade_off(data, result.calibrated, division)) is not None:
        say(f"{method}: {cost}")
    fitted = result.recalibrator
    record = fitted and fitted.to_dict() | {"class_names": list(data.class_names)}
    with _saving(record, fitted, save_map, save_snippet):
        write_predictions(result.calibrated, out, types=loaded.types)
    return FINE


def _estimated_rates(
    data: Dataset, file: str, reading: ReadingOptions, division: Division
) -> list[float]:
    """Estimate the shares of the classes in a file without labels, and say them."""
    from calviz.comparison.fitting import reading_of_unlabelled
    from calviz.data import read
    from calviz.recalibrators.prior import base_rates

    with naming(file):
        options = reading_of_unlabelled(data, reading)
        other = one_model(read(file, options=options), None)
        fit = division.rows(data).pairs[0][0]
        rates = base_rates(data.take(fit), other)
    say(rates.reading())
    return list(rates.rates)


@contextlib.contextmanager
def _saving(
    record: Any, recalibrator: Any, save_map: str | None, save_snippet: str | None
) -> Iterator[None]:
    """Save the map and its source, and give them their names when the block has ended well; otherwise none is there."""
    texts: dict[str, str] = {}
    if save_map is not None:
        texts[save_map] = json.dumps(record, allow_nan=False) + "\n"
    if save_snippet is not None:
        texts[save_snippet] = recalibrator.snippet()
    with contextlib.ExitStack() as stack:
        for path, text in texts.items():
            stack.enter_context(replacing(path)).write_bytes(text.encode())
        yield


def _recalibrate_files(
    source: str,
    method: str,
    why: str,
    out: str,
    rows: int | None,
    model: str | None,
    reading: ReadingOptions,
    division: Division,
    parameters: dict[str, dict[str, Any]],
) -> RecalibratedFiles:
    from calviz.comparison.recalibrate_files import recalibrate_files
    from calviz.core.words import counted

    if Path(out).suffix:
        raise OptionError(
            f"--out {out} must be a folder, without an ending such as .csv: the files are written one by one."
        )
    check_folder("--out", out)
    options = draw_options(reading, division)
    with showing_progress(), naming(source):
        recalibrated = recalibrate_files(
            source,
            method,
            out,
            rows=rows or DEFAULT_SAMPLE_ROWS,
            model=model,
            parameters=parameters.get(method, {}),
            **options,
        )
    say_drawn(source, why, recalibrated.sample)
    for sentence in recalibrated.recalibrator.warnings_:
        say(f"{method}: {sentence}")
    click.echo(f"wrote {counted(len(recalibrated.files), 'file')} to {out}")
    if recalibrated.judge_column is not None:
        counting = ""
        if reading.weight_column is not None:
            counting = f" --weight {reading.weight_column} --weight-kind {reading.weight_kind}"
        click.echo(
            f"rows that were not used to fit the map have '{recalibrated.judge_split}' in the column '{recalibrated.judge_column}': judge on these, "
            f"calviz audit {out} --split-column {recalibrated.judge_column} --split {recalibrated.judge_split}{counting}"
        )
    return recalibrated


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--map", "map_path", required=True, metavar="MAP.json", help="A map written by --save-map."
)
@click.option(
    "--out",
    cls=OutputOption,
    required=True,
    metavar="FILE|FOLDER",
    help="The calibrated file (.csv, .parquet or .npz); a folder if FILE is a pattern, a folder or several files.",
)
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@reading_options
def apply(
    sources: tuple[str, ...], map_path: str, out: str, model: str | None, reading: ReadingOptions
) -> int:
    """Apply a saved recalibration map to the predictions in FILE, which need no labels.

    If --out is a folder, files of any size are written to it as Parquet, block by block, with calibrated scores and all other
    columns unchanged.
    """
    from calviz.cli.result_texts import print_recognition
    from calviz.comparison.fitting import apply_map, reading_for_map
    from calviz.data import read
    from calviz.data.any_size.file_sources import why_out_of_core
    from calviz.data.loaded import span
    from calviz.data.writing import SUFFIXES, check_target, write_predictions

    several = len(sources) > 1 or bool(
        not Path(sources[0]).is_file() and why_out_of_core(sources[0])
    )
    if several and Path(out).suffix.lower() in SUFFIXES and not Path(out).is_dir():
        raise OptionError(
            f"--out {out} must be a folder, without an ending such as .csv: the files are written one by one."
        )
    if several or Path(out).is_dir() or not Path(out).suffix:
        check_folder("--out", out)
        return _apply_to_files(sources, _checked_map(map_path), out, model, reading)
    (file,) = sources
    check_target(out)
    check_output("--out", out)
    record = _checked_map(map_path)
    options = reading_for_map(record, reading)
    with naming(file):
        loaded = read(file, options=options)
        data = one_model(loaded, model)
    print_recognition(file, loaded)
    with naming(file):
        calibrated = apply_map(data, record)
    names = tuple(record.get("class_names", ()))
    if data.kind != "confidence" and names and names != data.class_names:
        say(f"the score columns are taken in the order of the classes of the map: {span(names)}.")
    labelled = bool(loaded.recognition.label_form)
    write_predictions(calibrated, out, labelled=labelled, types=loaded.types)
    return FINE


def _apply_to_files(
    sources: tuple[str, ...], record: Any, out: str, model: str | None, reading: ReadingOptions
) -> int:
    from calviz.comparison.recalibrate_files import apply_to_files
    from calviz.core.words import counted

    with showing_progress():
        written = apply_to_files(sources, record, out, model=model, options=reading)
    click.echo(f"wrote {counted(len(written), 'file')} to {out}")
    return FINE


def _checked_map(path: str) -> Any:
    from calviz.recalibrators.base import load_map, read_record

    record = read_record(path)
    with naming(path):
        load_map(record)
    return record


# ---- Before labels come


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--map",
    "map_path",
    metavar="MAP",
    help="A saved map of the model, as from recalibrate --save-map; it is taken to be true.",
)
@click.option(
    "--labelled-split",
    metavar="NAME",
    help="The split whose labels are known; a map is fitted on it, and the other rows are estimated.",
)
@click.option("--method", metavar="KEY", help="The recalibrator fitted on the labelled split.")
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Level of the intervals."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the drawn labels.")
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@json_option
@reading_options
def expected(
    file: str,
    map_path: str | None,
    labelled_split: str | None,
    method: str | None,
    confidence: float,
    seed: int,
    model: str | None,
    json_path: str | None,
    reading: ReadingOptions,
) -> int:
    """Estimate the performance of FILE before its labels come: accuracy, F1, AUROC, Brier score, NLL, with intervals.

    Without --map or --labelled-split, the probabilities of FILE are taken to be calibrated.
    """
    from calviz.cli.result_texts import print_recognition
    from calviz.comparison.expected import expected
    from calviz.comparison.fitting import reading_for_map
    from calviz.data import read
    from calviz.data.loaded import DROP_MISSING, ReadingForMap

    check_output("--json", json_path)
    if map_path is not None and labelled_split is not None:
        raise OptionError("--map and --labelled-split exclude each other.")
    if method is not None and labelled_split is None:
        raise OptionError("--method is the map fitted on --labelled-split NAME.")
    record = None if map_path is None else _checked_map(map_path)
    options = ReadingForMap.of(reading, ()) if record is None else reading_for_map(record, reading)
    with naming(file):
        loaded = read(file, options=options)
        rows, labelled = one_model(loaded, model), None
        if labelled_split is not None:
            rows.split(labelled_split)  # refused if there is none
            assert rows.splits is not None
            rows = rows.take(~rows.splits.mask(labelled_split))
            complete = replace(reading, repair=(*reading.repair, DROP_MISSING.key))
            labelled = one_model(read(file, options=complete), model).split(labelled_split)
    if json_path != "-":
        print_recognition(file, loaded)
    with naming(file):
        result = expected(
            rows, map=record, labelled=labelled, method=method, confidence=confidence, seed=seed
        )
    if json_path != "-":
        click.echo(f"\n{result}")
    if json_path is not None:
        write_json(result.to_dict(), json_path)
    return FINE


# ---- Prediction sets


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--method",
    type=click.Choice(["lac", "aps"]),
    default="lac",
    show_default=True,
    help="LAC (least ambiguous sets) or APS (adaptive prediction sets).",
)
@click.option(
    "--coverage",
    type=float,
    default=0.9,
    show_default=True,
    help="Share of the rows whose set should hold the true class.",
)
@click.option(
    "--per-class",
    is_flag=True,
    help="A threshold for each class (Mondrian sets): the coverage holds for every class, mostly with larger sets.",
)
@fitting_options(judging=True)
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@json_option
@reading_options
def sets(
    file: str,
    method: Any,
    coverage: float,
    per_class: bool,
    division: Division,
    model: str | None,
    json_path: str | None,
    reading: ReadingOptions,
) -> int:
    """Choose the threshold of prediction sets on some rows of FILE, and measure how often the sets of the others hold the true class."""
    from calviz.cli.result_texts import print_recognition
    from calviz.comparison.prediction_sets import prediction_sets
    from calviz.data import read

    check_output("--json", json_path)
    with naming(file):
        loaded = read(file, options=reading)
        data = one_model(loaded, model)
    with naming(file, options=False):
        sets = prediction_sets(
            data,
            method=method,
            coverage=coverage,
            per_class=per_class,
            seed=division.seed,
            division=division,
        )
    if json_path is not None:
        write_json(_record_sets(sets), json_path)
    if json_path == "-":
        return FINE
    print_recognition(file, loaded)
    _print_sets(sets)
    return FINE


def _print_sets(sets: PredictionSets) -> None:
    out = console()
    threshold = "threshold" if not sets.thresholds else "largest threshold"
    choice = f"{sets.method.upper()}, {threshold} {sets.threshold:.4f}, chosen on {sets.fit.how} ({sets.fit.rows:,} rows)"
    out.print(cell(f"{choice}; judged on {sets.evaluation.how}."), soft_wrap=True)
    out.print(cell(sets.reading()), soft_wrap=True)
    table = table_of(
        "true class", "rows", "coverage", "95 % interval", "mean size", "95 % interval"
    )
    for s in (sets.overall, *sets.classes):
        table.add_row(
            cell(short_name(s.name)),
            f"{s.rows:,}",
            f"{s.coverage:.4f}",
            f"{s.coverage_interval.low:.4f} to {s.coverage_interval.high:.4f}",
            f"{s.size:.3f}",
            f"{s.size_interval.low:.3f} to {s.size_interval.high:.3f}",
        )
    out.print(table)


def _record_sets(sets: PredictionSets) -> dict[str, Any]:
    subsets = [asdict(s) for s in (sets.overall, *sets.classes)]
    return {
        "calviz": __version__,
        "name": sets.name,
        "method": sets.method,
        "coverage": sets.coverage,
        "threshold": sets.threshold,
        "level": sets.level,
        "fit": asdict(sets.fit),
        "evaluation": asdict(sets.evaluation),
        "overall": subsets[0],
        "classes": subsets[1:],
        "sizes": sets.sizes.tolist(),
        "thresholds": list(sets.thresholds),
        "beside": asdict(sets.beside),
        "too_few": sets.too_few,
    }


# ---- Thresholds with a guarantee


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--risk",
    "risks",
    type=float,
    multiple=True,
    default=(0.05,),
    show_default=True,
    help="Largest risk on new rows (give it twice for two risks).",
)
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="Probability with which the promise holds, for all risks and groups together.",
)
@click.option(
    "--of",
    "names",
    type=click.Choice(["error", "precision", "recall", "fpr", "cost"]),
    multiple=True,
    default=("error",),
    show_default=True,
    help="The risk (give it twice for two): wrong predictions among those kept, 1 - precision, 1 - recall, false-positive rate, or the "
    "mean cost of a row.",
)
@click.option("--by", metavar="COL", help="A group column: each of its values has a threshold.")
@click.option(
    "--costs",
    type=float,
    nargs=3,
    default=(10.0, 1.0, 0.0),
    show_default=True,
    metavar="WRONG REFERRED RIGHT",
    help="Costs of a prediction that is wrong, referred, or right (with --of cost).",
)
@reduction_option
@click.option("--choose-split", metavar="NAME", help="The split to choose the threshold on.")
@click.option(
    "--choose-fraction",
    type=float,
    metavar="SHARE",
    help="Instead: choose on this share of the rows.",
)
@prevalence_option
@seed_option
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@json_option
@label_file_options
@reading_options
def threshold(
    file: str,
    risks: tuple[float, ...],
    names: tuple[RiskName, ...],
    model: str | None,
    prevalence: tuple[float, ...] | None,
    json_path: str | None,
    labels: LabelFile | None,
    reading: ReadingOptions,
    **options: Any,
) -> int:
    """Choose the threshold that keeps most rows of FILE with a risk that is guaranteed on new rows, on some rows, and observe it on the others."""
    from calviz.cli.result_texts import print_recognition
    from calviz.comparison.guaranteed_thresholds import threshold as choose
    from calviz.core.predictions import at_prevalence
    from calviz.data import read

    check_output("--json", json_path)
    with naming(file):
        loaded = read(file, options=reading, labels=labels)
        data = one_model(loaded, model)
        if prevalence is not None:
            data = at_prevalence(data, prevalence)
    with naming(file, options=False):
        choice = choose(data, list(risks), of=list(names), **options)
    if json_path is not None:
        write_json(choice.to_dict(), json_path)
    if json_path != "-":
        print_recognition(file, loaded)
        console().print(cell(repr(choice)), soft_wrap=True)
    elif choice.threshold is None:
        say(repr(choice))
    return FINE
