"""Predictions of a data frame of any library: narwhals makes it an Arrow table, which is read as a file is."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.errors import InputError, shortened
from calviz.core.predictions import Dataset
from calviz.data.formats.arrow.memory import ArrowRows, columns_of
from calviz.data.reading import of_table, one_model, options_of


class _FrameRows(ArrowRows):
    holder = "frame"


def from_frame(frame: Any, *, model: str | None = None, name: str, **options: Any) -> Dataset:
    """Recognise the columns of a frame; see `Predictions.from_frame`."""
    reading = options_of(options)
    with np.errstate(all="ignore"):
        data = _arrow(frame)
        if not data.num_rows:
            raise InputError("the frame has no rows", remedy="give at least one")
        table = _FrameRows(
            format=f"{type(frame).__module__.partition('.')[0]} frame",
            columns=columns_of(data, "the frame has"),
            data=data,
        )
        try:
            return one_model(of_table(table, reading, name=name), model)
        except InputError as error:
            raise error.in_code() from None


def _arrow(frame: Any) -> Any:
    """The frame as a pyarrow table, collected if it is lazy."""
    import narwhals as nw

    if type(frame).__module__.startswith("pandas") and hasattr(frame, "set_axis"):
        # pandas lets columns be numbers; here they have names, as in a file.
        names = [str(c) for c in frame.columns]
        if len(set(names)) < len(names):
            double = next(name for name in names if names.count(name) > 1)
            raise InputError(
                f"there are two columns called '{shortened(double)}'",
                remedy="give each column a name of its own",
            )
        frame = frame.set_axis(names, axis=1)
    try:
        known = nw.from_native(frame)
    except TypeError:
        raise InputError(
            f"got {type(frame).__name__}, expected a data frame with rows and columns",
            remedy="arrays are taken by calviz.Predictions.from_arrays(y_true, y_prob)",
        ) from None
    try:
        return (known.collect("pyarrow") if isinstance(known, nw.LazyFrame) else known).to_arrow()
    except Exception as error:
        # Whatever the frame's own library raises, such as on mixed types in one column.
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"the frame cannot be read ({shortened(lines[0])})") from error
