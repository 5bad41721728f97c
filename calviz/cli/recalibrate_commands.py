"""Commands that act on probabilities: fit a map (``recalibrate``), apply one (``apply``), expect metrics without labels (``expected``), prediction sets (``sets``), thresholds (``threshold``)."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
import numpy as np

from calviz.cli import command_group, options
from calviz.cli.command_group import check_folder, check_output, naming, say, show
from calviz.core.entry_specs import RECALIBRATORS, zero_words
from calviz.core.errors import CalvizError, OptionError, Reading, picked, replacing
from calviz.core.words import counted

if TYPE_CHECKING:
    from calviz.comparison.recalibrate_files import RecalibratedFiles

#: Why a file is refused where several are written.
_ONE_BY_ONE = (
    "--out {} must be a folder, without an ending such as .csv: the files are written one by one."
)


@options.command
def recalibrate(
    file: str,
    *,
    method: Annotated[str, options.METHOD],
    fitting: options.Division,
    option: tuple[str, ...] = (),
    model: str | None = None,
    unlabelled: options.InputPath = None,
    out: options.RequiredPath,
    sample: options.FittingRows = None,
    save_map: options.OutputPath = None,
    save_snippet: options.OutputPath = None,
    raw_score: Annotated[tuple[float, ...], {"type": click.FloatRange(0, 1)}] = (),
    json_only: options.Outputs,
    label_file: options.LabelFile | None,
    reading: options.ReadingOptions,
) -> None:
    """Fit a recalibrator on some rows of FILE and write all rows, calibrated.

    The fitting rows keep their split, or get the split 'calibration' if they were drawn: judge the result on the others. From a folder, a pattern, or a file that may not
    fit into memory, a stratified sample of the rows is drawn to fit on, and all rows are written, block by block.

    Parameters
    ----------
    file : FILE
    method : NAME
        Key of a recalibrator; see 'calviz methods'.
    unlabelled : FILE
        With --method prior: rows without labels, from whose scores the new base rate is estimated.
    out : FILE|FOLDER
        The calibrated file (.csv, .tsv, .parquet, .jsonl or .npz); a folder if a sample of rows is drawn to fit on.
    save_map : MAP.json
        Save the fitted map for 'calviz apply'.
    save_snippet : MAP.py
        Save the fitted map as Python code that needs only NumPy.
    raw_score : P
        Say which raw score the map takes to the probability P of class 1 (repeatable), for two classes.
    """
    from calviz.comparison.advice import change_words, left_off_words
    from calviz.comparison.fitting import (
        calibrate,
        calibrated_left_out,
        map_of_all,
        reading_of_unlabelled,
        trade_off,
    )
    from calviz.comparison.recalibrate_files import recalibrate_files
    from calviz.data.writing import check_target, write_predictions

    parameters = options.parse_parameters(option, [method])
    RECALIBRATORS[method]  # an unknown key is refused before the file is read
    check_output("--save-map", save_map)
    check_output("--save-snippet", save_snippet)
    about = {"method": method, "out": out, "map": save_map, "snippet": save_snippet}
    saved = {"the map": save_map, "its code": save_snippet}
    if unlabelled is not None and (method != "prior" or "prior" in parameters):
        raise OptionError(
            "--unlabelled estimates the base rate of --method prior, without --option."
        )
    if why := options.why_drawn(file, sample, label_file):
        if unlabelled is not None:
            raise OptionError("--unlabelled needs all rows of FILE in memory.")
        if Path(out).suffix:
            raise OptionError(_ONE_BY_ONE.format(out))
        check_folder(out)
        drawn = options.draw_options(sample, reading, fitting)
        drawn |= {"model": model, "parameters": parameters.get(method, {})}
        with command_group.showing_progress(), naming(file):
            recalibrated = recalibrate_files(file, method, out, **drawn)
        options.say_drawn(file, why, recalibrated.sample.sentence())
        warnings = recalibrated.recalibrator.warnings_
        for sentence in warnings:
            say(f"{method}: {sentence}")
        judged = {"split_column": recalibrated.judge_column, "split": recalibrated.judge_split}
        if not json_only.quiet:
            click.echo(f"wrote {counted(len(recalibrated.files), 'file')} to {out}")
            if recalibrated.judge_column is not None:
                click.echo(_where_to_judge(recalibrated, out, Reading("", judged)))
        try:
            with _saving(recalibrated.map, recalibrated.recalibrator, save_map, save_snippet):
                about |= _raw_scores(recalibrated.recalibrator, raw_score, json_only)
        except CalvizError as error:
            raise type(error)(f"{error} The files in {out} were written.") from None
        how = {"sample": recalibrated.sample.record(), "judge_on": judged}
        written = [str(path) for path in recalibrated.files]
        _say_written(json_only, saved)
        json_only.write_json(about | how | {"written": written, "warnings": warnings})
        return
    check_target(out)
    check_output("--out", out)
    if fitting.cross_fit is not None and (save_map or save_snippet or raw_score):
        raise OptionError("cross-fitting has one map per fold: there is none to save or to invert.")
    loaded, data = options.read_model(file, model, json_only, reading, label_file)
    if unlabelled is not None:
        from calviz import base_rates

        with naming(unlabelled):
            other = options.read_file(unlabelled, reading_of_unlabelled(data, reading))
            fit = fitting.rows(data).pairs[0][0]
            rates = base_rates(data.take(fit), other.models[options.chosen_model(other, None)])
        say(rates.reading())
        parameters["prior"] = {"base_rate": list(rates.rates)}
    with naming(file, options=False):
        result = calibrate(data, method, fitting, parameters.get(method, {}))
    fitted = result.recalibrator
    remarks = [zero_words(fitted.describe()) if fitted is not None else "", *result.warnings]
    if getattr(result.recalibrator, "needed_columns", ()):
        remarks.append(result.recalibrator.reading())
    change = change_words(data, split=fitting.fit_split)
    remarks.append(f"{change} Give these in a file of their own or as --fit-split." * bool(change))
    # Without another split, no rows judge.
    if data.split_names != (fitting.fit_split,):
        divided = fitting.rows(data)
        remarks.append(trade_off(data, result.calibrated, divided) or "")
        before, after = map(divided.judged_of, (data, result.calibrated))
        remarks.append(left_off_words(data.take(divided.used), before, after))
    for sentence in (remarks := [*filter(None, remarks)]):
        say(f"{method}: {sentence}")
    about |= _raw_scores(fitted, raw_score, json_only)
    columns = loaded.score_columns(data.name)
    record = fitted and fitted.to_apply(data, columns, model=loaded.rows_of(data.name))
    with _saving(record, fitted, save_map, save_snippet):
        later_map = fitted
        if fitted is None and data.name in loaded.left_out:
            later_map = map_of_all(data, method, fitting.rows(data), parameters.get(method, {}))
            remarks.append("rows left out are calibrated by one map, fitted on all others.")
            say(f"{method}: {remarks[-1]}")
        later = calibrated_left_out(later_map, loaded, data.name)
        *rows, said = write_predictions(
            result.calibrated, out, before=data, file=loaded, left_out=later
        )
    _say_written(json_only, {_rows_words(*rows): out, **saved}, said)
    named = {"name": data.name, "rows": data.rows}
    json_only.write_json(about | named | {"written": [out], "warnings": remarks})


def _rows_words(rows: int, calibrated: int) -> str:
    """Say how many rows a file has, and how many of them are calibrated if some were left out."""
    return f"{counted(rows, 'row')}{f' ({calibrated:,} of them calibrated)' * (calibrated < rows)}"


def _say_written(
    json_only: options.Outputs, files: Mapping[str, str | None], more: str = ""
) -> None:
    said = ", ".join(f"{what} to {path}" for what, path in files.items() if path is not None)
    if said and not json_only.quiet:
        click.echo(f"wrote {said}")
    if more and not json_only.quiet:
        click.echo(more)


def _raw_scores(
    recalibrator: Any, raw_score: tuple[float, ...], json_only: options.Outputs
) -> dict[str, Any]:
    """Say which raw scores the map takes to these probabilities; what the JSON says of it."""
    if not raw_score:
        return {}
    scores = recalibrator.inverse(raw_score)
    what = "logit" if recalibrator.input == "logits" else "score"
    for p, score in zip(raw_score, scores, strict=True):
        found = "no raw score reaches it" if np.isnan(score) else f"a raw {what} of {score:.6g}"
        if not json_only.quiet:
            click.echo(f"a calibrated probability of {100 * p:g} %: {found}")
    values = [None if np.isnan(score) else float(score) for score in scores]
    return {"raw_scores": {f"{p:g}": value for p, value in zip(raw_score, values, strict=True)}}


@contextlib.contextmanager
def _saving(
    record: Any, recalibrator: Any, save_map: str | None, save_snippet: str | None
) -> Iterator[None]:
    """Save the map and its source, and give them their names when the block has ended well; otherwise none is there."""
    texts: dict[str, str] = {}
    if save_map is not None:
        texts[save_map] = json.dumps(record, allow_nan=False) + "\n"
    if save_snippet is not None:
        texts[save_snippet] = recalibrator.snippet(record.get("class_names", ()))
    with contextlib.ExitStack() as stack:
        for path, text in texts.items():
            stack.enter_context(replacing(path)).write_bytes(text.encode())
        yield


def _where_to_judge(recalibrated: RecalibratedFiles, out: str, judged: Reading) -> str:
    """Say which rows were not used to fit the map, and the command that judges on these."""
    # Logits were replaced by probabilities of other names.
    was_logits = recalibrated.sample.data.kind == "logits"
    replaced = {"split_column", *(("kind", "scores") if was_logits else ())}
    return (
        f"rows that were not used to fit the map have '{recalibrated.judge_split}' in the column '{recalibrated.judge_column}': judge on these, "
        f"calviz audit {shlex.quote(out)} {judged.in_shell()}{options.reading_given(replaced)}"
    )


@options.command
def apply(
    sources: tuple[str, ...],
    *,
    map: Annotated[str, {"type": click.Path()}],
    out: options.RequiredPath,
    model: str | None = None,
    raw_score: Annotated[tuple[float, ...], {"type": click.FloatRange(0, 1)}] = (),
    json_only: options.Outputs,
    reading: options.ReadingOptions,
) -> None:
    """Apply a saved recalibration map to the predictions in FILE, which need no labels.

    If --out is a folder, files of any size are written to it as Parquet, block by block, with calibrated scores and all other
    columns unchanged. A CSV file made from text is written as FILE is: separator, decimal sign, quotation marks, encoding and the
    lines above the header; it begins with the columns and cells of FILE. Calibrated scores stand in the score columns of FILE if
    these hold probabilities or confidences, otherwise in p_CLASS; the score before is in 'uncalibrated'.

    Parameters
    ----------
    sources : FILE...
    map : MAP.json
        A map written by --save-map.
    out : FILE|FOLDER
        The calibrated file (.csv, .tsv, .parquet, .jsonl or .npz); a folder if FILE is a pattern, a folder or several files.
    raw_score : P
        Say which raw score the map takes to the probability P of class 1 (repeatable), for two classes.
    """
    from calviz.comparison.fitting import apply_map, reading_for_map, rows_of_its_model
    from calviz.comparison.recalibrate_files import apply_to_files
    from calviz.data.format import span
    from calviz.data.writing import SUFFIXES, check_target, write_predictions
    from calviz.recalibrators.base import load_map

    (file, *others) = sources
    several = bool(others or (not Path(file).is_file() and options.why_drawn(file, None, None)))
    if several and Path(out).suffix.lower() in SUFFIXES and not Path(out).is_dir():
        raise OptionError(_ONE_BY_ONE.format(out))
    into_folder = several or Path(out).is_dir() or not Path(out).suffix
    if into_folder:
        check_folder(out)
    else:
        check_target(out)
        check_output("--out", out)
    record, warnings = _checked_map(map)
    fitted, tally, said = load_map(record), Counter[str](), ""
    raw = _raw_scores(fitted, raw_score, json_only)
    if reading.model_column and model:
        record |= {"model": [reading.model_column, model]}
    if (own := record.get("model")) and model in (own[1], " ".join(own)):  # which a column names
        reading, model = replace(reading, model_column=None), None
    if into_folder:
        with command_group.showing_progress():
            files = apply_to_files(sources, record, out, model=model, options=reading, tally=tally)
        what, written = counted(len(files), "file"), [str(path) for path in files]
    else:
        for_map = reading_for_map(record, reading, model)
        loaded, data = options.read_model(file, model, json_only, for_map)
        with naming(file):
            data = rows_of_its_model(data, record)
            calibrated = apply_map(data, record, tally)
        names = tuple(record.get("class_names", ()))
        if data.kind != "confidence" and names and names != data.class_names:
            order = span(names)
            say(f"the score columns are taken in the order of the classes of the map: {order}.")
        if other := loaded.other_scores(record, data.name):
            say(other)
            warnings.append(other)
        *rows, said = write_predictions(calibrated, out, before=data, file=loaded)
        what, written = _rows_words(*rows), [out]
    _say_written(json_only, {what: out}, said)
    if tally and not json_only.quiet:
        click.echo(fitted.reading(tally))
    about = {"map": map, "method": record["method"], "out": out, "written": written}
    about |= {f"rows_{name}": rows for name, rows in tally.items()}
    json_only.write_json(about | raw | {"warnings": warnings})


def _checked_map(path: str) -> tuple[Any, list[str]]:
    """Return a saved map and, if it was fitted on a slice whose conditions it does not hold, the warning that is said of it."""
    from calviz.recalibrators.base import read_record, rebuilt

    record = read_record(path)
    with naming(path):
        of_slice = hasattr(rebuilt(record), "conditions")
    if of_slice or not (where := record.get("fitted_where")):
        return record, []
    warning = f"{path} was fitted only on the rows where {where}; it is applied to all rows."
    say(warning)
    return record, [warning]


# ---- Before labels come


@options.command
def expected(
    file: str,
    *,
    map: options.InputPath = None,
    labelled_split: str | None = None,
    method: Annotated[str | None, options.METHOD] = None,
    confidence: options.Level[float] = 0.95,
    seed: int = 0,
    model: str | None = None,
    json_only: options.Outputs,
    reading: options.ReadingOptions,
) -> None:
    """Estimate the performance of FILE before its labels come: accuracy, F1, AUROC, Brier score, NLL, with intervals.

    Without --map or --labelled-split, the probabilities of FILE are taken to be calibrated.

    Parameters
    ----------
    file : FILE
    map : MAP
        A saved map of the model, as from recalibrate --save-map; it is taken to be true.
    labelled_split : NAME
        The split whose labels are known; a map is fitted on it, and the other rows are estimated.
    method : KEY
        The recalibrator fitted on the labelled split.
    confidence
        Level of the intervals.
    seed
        Seed of the drawn labels.
    """
    from calviz import expected
    from calviz.comparison.fitting import reading_for_map, rows_of_its_model

    if map is not None and labelled_split is not None:
        raise OptionError("--map and --labelled-split exclude each other.")
    if method is not None and labelled_split is None:
        raise OptionError("--method is the map fitted on --labelled-split NAME.")
    record = None if map is None else _checked_map(map)[0]
    _, rows = options.read_model(file, model, json_only, reading_for_map(record, reading, model))
    labelled = None
    with naming(file):
        rows = rows_of_its_model(rows, record or {})
        if labelled_split is not None:
            rows.split(labelled_split)  # refused if there is none
            assert rows.splits is not None
            rows = rows.take(~rows.splits.mask(labelled_split))
            complete = replace(reading, repair=(*reading.repair, "drop-missing"))
            again = options.read_file(file, complete)
            labelled = again.models[options.chosen_model(again, model)].split(labelled_split)
        result = expected(
            rows, map=record, labelled=labelled, method=method, confidence=confidence, seed=seed
        )
    json_only.tell(result)


# ---- Prediction sets


@options.command
def sets(
    file: str,
    *,
    method: Literal["lac", "aps"] = "lac",
    coverage: options.Level[float] = 0.9,
    per_class: bool = False,
    division: options.Division,
    model: str | None = None,
    json_only: options.Outputs,
    reading: options.ReadingOptions,
) -> None:
    """Choose the threshold of prediction sets on some rows of FILE, and measure how often the sets of the others hold the true class.

    Parameters
    ----------
    file : FILE
    method
        LAC (least ambiguous sets) or APS (adaptive prediction sets).
    coverage
        Share of the rows whose set should hold the true class.
    per_class
        A threshold for each class (Mondrian sets): the coverage holds for every class, mostly with larger sets.
    """
    from calviz import prediction_sets

    _, data = options.read_model(file, model, json_only, reading)
    with naming(file, options=False):
        how: dict[str, Any] = {"method": method, "coverage": coverage, "per_class": per_class}
        sets = prediction_sets(data, seed=division.seed, division=division, **how)
    names = "name method coverage threshold level fit evaluation overall classes sizes thresholds beside too_few"
    json_only.write_json(picked(sets, names))
    if json_only.quiet:
        return
    threshold = "threshold" if not sets.thresholds else "largest threshold"
    choice = f"{sets.method.upper()}, {threshold} {sets.threshold:.4f}, chosen on {sets.fit.how} ({sets.fit.rows:,} rows)"
    show(f"{choice}; judged on {sets.evaluation.how}.")
    show(sets.reading())
    ci = "95 % interval"
    table = command_group.table_of("true class", "rows", "coverage", ci, "mean size", ci)
    for s in (sets.overall, *sets.classes):
        covered, size = s.coverage_interval, s.size_interval
        texts = [f"{s.rows:,}", f"{s.coverage:.4f}", f"{covered.low:.4f} to {covered.high:.4f}"]
        texts += [f"{s.size:.3f}", f"{size.low:.3f} to {size.high:.3f}"]
        table.add_row(command_group.cell(command_group.short_name(s.name)), *texts)
    command_group.console().print(table)


# ---- Thresholds with a guarantee


@options.command
def threshold(
    file: str,
    *,
    risk: tuple[float, ...] = (0.05,),
    confidence: options.Level[float] = 0.95,
    of: tuple[Literal["error", "precision", "recall", "fpr", "cost"], ...] = ("error",),
    by: tuple[str, ...] = (),
    predicted: tuple[str, ...] = (),
    costs: tuple[float, float, float] = (10.0, 1.0, 0.0),
    reduction: options.HowJudged = None,
    choose_split: str | None = None,
    choose_fraction: options.Level[float | None] = None,
    in_sample: bool = False,
    prevalence: options.Prevalence = None,
    seed: options.Seed = 0,
    model: tuple[str, ...] = (),
    json_only: options.Outputs,
    label_file: options.LabelFile | None,
    reading: options.ReadingOptions,
) -> None:
    """Choose a threshold with a risk that is guaranteed on new rows, on some rows of FILE, and observe it on the others.

    It is the lowest such threshold, which keeps most rows; for recall alone the highest.

    Parameters
    ----------
    file : FILE
    risk
        Largest risk on new rows (give it twice for two risks).
    confidence
        Probability with which the promise holds, for all risks and groups together.
    of
        The risk (give it twice for two): wrong predictions among those kept, 1 - precision, 1 - recall, false-positive rate, or the
        mean cost of a row.
    by : COL
        A column, or "predicted class": each of its values, or intervals, has a threshold (give it twice for pairs of values).
    predicted : CLASS
        Only the rows that are predicted as this class (give it for each of several).
    costs : WRONG REFERRED RIGHT
        Costs of a prediction that is wrong, referred, or right (with --of cost).
    choose_split : NAME
        The split to choose the threshold on.
    choose_fraction : SHARE
        Instead: choose on this share of the rows (0.5 if there is no split to choose on).
    in_sample
        Or on all rows: none are left to check the promise.
    model : NAME
        The models to use, if the file holds several (repeatable); all by default.
    """
    from calviz import at_prevalence, threshold
    from calviz.comparison.guaranteed_thresholds import checked_risks
    from calviz.sample.sample import Sample
    from calviz.verdicts.watching import watched

    checked_risks(of, risk, confidence, costs)
    how: dict[str, Any] = {"predicted": predicted, "seed": seed, "in_sample": in_sample}
    how |= {"costs": costs, "reduction": reduction}
    how |= {"choose_split": choose_split, "choose_fraction": choose_fraction}
    records = []
    for loaded, rows in options.read_models(file, model, json_only, reading, label_file):
        with naming(file):
            data = rows if prevalence is None else at_prevalence(rows, prevalence)
        with naming(file, options=False):
            choice = threshold(data, risk, confidence, of, by, **how)
        words = repr(choice)
        records.append(({"name": data.name} if len(loaded.models) > 1 else {}) | choice.to_dict())
        if not json_only.quiet:
            for line in words.splitlines():
                show(line)
            state = watched(Sample.of(data)) if data.times is not None else None
            if state is not None and state.found is not None:
                say(
                    "calibration has changed (see 'calviz over-time'): a threshold of these rows may not hold on new ones."
                )
            if choice.missed and of == ("error",):
                say("to find more of the rarer class, choose by --of recall or precision, or cost.")
        elif choice.threshold is None:
            say(words)
    json_only.write_json(records)
