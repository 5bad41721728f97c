"""``calviz recalibrate``: write a calibrated file, and the map that made it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calviz.cli.command_group import FINE
from calviz.cli.fit_row_options import fitting_options, one_model
from calviz.cli.method_options import method_options, parse
from calviz.cli.output_options import OutputOption, check_folder, check_output
from calviz.cli.reading import label_file_options, reading_options
from calviz.cli.row_sampling import draw_options, sample_option, say_drawn, why_drawn
from calviz.cli.text import naming, say
from calviz.core.atomic_files import replacing
from calviz.core.errors import CalvizError, OptionError
from calviz.core.options import DEFAULT_SAMPLE_ROWS
from calviz.specs.recalibrator import RECALIBRATORS, zero_words

if TYPE_CHECKING:
    from calviz.comparison.recalibrate_files import RecalibratedFiles
    from calviz.comparison.rows import Division
    from calviz.data import LabelFile, ReadingOptions


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--method", required=True, metavar="NAME", help="Key of a recalibrator; see 'calviz methods'."
)
@fitting_options(judging=False)
@method_options
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
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
def command(
    file: str,
    method: str,
    division: Division,
    options: tuple[str, ...],
    model: str | None,
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
    from calviz.cli.audit_text import print_recognition
    from calviz.comparison import calibrate
    from calviz.comparison.plan import check_options
    from calviz.data import read
    from calviz.data.writing import check_target, write_predictions

    parameters = parse(options)
    check_options(parameters, [method], "--option")
    RECALIBRATORS[method]  # an unknown key is refused before the file is read
    check_output("--save-map", save_map)
    check_output("--save-snippet", save_snippet)
    if why := why_drawn(file, sample, labels):
        recalibrated = _block_by_block(
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
    with naming(file, options=False):
        result = calibrate(data, method, **division.given, **parameters.get(method, {}))
    if result.recalibrator is not None and (remark := zero_words(result.recalibrator.describe())):
        say(f"{method}: {remark}")
    for sentence in result.warnings:
        say(f"{method}: {sentence}")
    fitted = result.recalibrator
    record = fitted and fitted.to_dict() | {"class_names": list(data.class_names)}
    with _saving(record, fitted, save_map, save_snippet):
        write_predictions(result.calibrated, out, types=loaded.types)
    return FINE


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


def _block_by_block(
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
    from calviz.cli.progress import showing_progress
    from calviz.comparison.recalibrate_files import recalibrate_files
    from calviz.text.words import counted

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
