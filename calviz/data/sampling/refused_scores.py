"""Say why the scores of a file were refused that was read in blocks, in the words for files that are read whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from calviz.core.errors import InputError
from calviz.data.building.diagnose import Problem
from calviz.data.file_bytes import Source
from calviz.data.format import format_of
from calviz.data.profiling.sources import TableFiles, no_panic, scan, why_out_of_core
from calviz.data.profiling.unusable_rows import unreadable, unusable
from calviz.data.recognition.layout import ScoreColumns
from calviz.data.sampling.blocks import predictions_of
from calviz.profiles.aggregate import FAULTS, faults_of, first_fault
from calviz.profiles.layout import ProfileColumns
from calviz.profiles.logits import with_probabilities


def why_refused(file: TableFiles, layout: ProfileColumns, error: Exception) -> InputError:
    """Return the error about the scores of a single file, with rows counted from its beginning.

    A file that fits into memory is read again as a whole, a larger one is summed; either names what `calviz audit` names.

    Parameters
    ----------
    file : TableFiles
    layout : ProfileColumns
    error : Exception
        Why a block was refused or could not be read; returned as a sentence if the file as a whole shows no reason.
    """
    (path,) = file.paths
    known = error if isinstance(error, InputError) else unreadable(error, path.name)
    try:
        with no_panic():
            if why_out_of_core(str(path)):
                return _summed(file, layout) or known
            return _read_whole(path, layout, known)
    except InputError as reason:
        return reason
    except Exception:
        return known


def _read_whole(path: Path, layout: ProfileColumns, error: InputError) -> InputError:
    columns = layout.columns
    scores = ScoreColumns(
        columns,
        layout.class_names,
        "logits" if layout.logits else "probabilities",
        len(columns),
    )
    with Source(path) as opened, np.errstate(all="ignore"):
        table = format_of(opened).open(opened)
        (array,) = table.fetch([columns], []).scores
        try:
            predictions_of(array, np.zeros(len(array), dtype=np.int32), layout)
        except InputError as of_whole:
            error = of_whole
        return Problem(table, scores, array, lambda row: row).explain(error)


def _summed(file: TableFiles, layout: ProfileColumns) -> InputError | None:
    import narwhals as nw

    # Labels and weights are not used, so only scores can be wrong.
    layout = replace(layout, label=layout.label or "label", count=None, weight=None)
    frame = nw.from_native(scan(file, "polars", floats=layout.columns)).lazy()
    frame = frame.with_columns(nw.lit(layout.classes[0]).alias(layout.label))
    frame = with_probabilities(frame, layout)
    faults = faults_of(frame, layout)
    if not faults:
        return None
    total = int(frame.select(rows=nw.len()).collect("polars")["rows"][0])
    row, code = first_fault(frame, layout)
    return unusable(faults, total, f"; the first is row {row + 1:,}, with {FAULTS[code]}")
