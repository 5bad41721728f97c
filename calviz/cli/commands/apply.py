"""``calviz apply``: apply a saved map to other predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calviz.cli.command_group import FINE
from calviz.cli.fit_row_options import one_model
from calviz.cli.output_options import OutputOption, check_folder, check_output
from calviz.cli.reading import reading_options
from calviz.cli.text import naming, say
from calviz.core.errors import OptionError

if TYPE_CHECKING:
    from calviz.data import ReadingOptions


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
def command(
    sources: tuple[str, ...], map_path: str, out: str, model: str | None, reading: ReadingOptions
) -> int:
    """Apply a saved recalibration map to the predictions in FILE, which need no labels.

    If --out is a folder, files of any size are written to it as Parquet, block by block, with calibrated scores and all other
    columns unchanged.
    """
    from calviz.cli.audit_text import print_recognition
    from calviz.comparison.saved_maps import apply_map, reading_for_map
    from calviz.data import read
    from calviz.data.loaded import span
    from calviz.data.profiling.sources import why_out_of_core
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
        return _block_by_block(sources, _record(map_path), out, model, reading)
    (file,) = sources
    check_target(out)
    check_output("--out", out)
    record = _record(map_path)
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


def _block_by_block(
    sources: tuple[str, ...], record: Any, out: str, model: str | None, reading: ReadingOptions
) -> int:
    from calviz.cli.progress import showing_progress
    from calviz.comparison.apply_to_files import apply_to_files
    from calviz.text.words import counted

    with showing_progress():
        written = apply_to_files(sources, record, out, model=model, options=reading)
    click.echo(f"wrote {counted(len(written), 'file')} to {out}")
    return FINE


def _record(path: str) -> Any:
    from calviz.recalibrators.maps.loading import load_map, read_record

    record = read_record(path)
    with naming(path):
        load_map(record)
    return record
