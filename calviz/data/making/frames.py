"""Make predictions from a data frame of any library: narwhals converts it to an Arrow table, which is read like a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.errors import InputError, lines_of, shortened
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
    """Convert the frame to a pyarrow table; lazy frames are collected."""
    import narwhals as nw

    if type(frame).__module__.startswith("pandas") and hasattr(frame, "set_axis"):
        # Column names of pandas may be numbers; here they are text, as in a file.
        names = [str(c) for c in frame.columns]
        if len(set(names)) < len(names):
            repeated = next(name for name in names if names.count(name) > 1)
            raise InputError(
                f"there are two columns called '{shortened(repeated)}'",
                remedy="give each column a name of its own",
            )
        frame = frame.set_axis(names, axis=1)
    try:
        wrapped = nw.from_native(frame)
    except TypeError:
        raise InputError(
            f"got {type(frame).__name__}, expected a data frame with rows and columns",
            remedy="arrays are taken by calviz.Predictions.from_arrays(y_true, y_prob)",
        ) from None
    try:
        return (
            wrapped.collect("pyarrow") if isinstance(wrapped, nw.LazyFrame) else wrapped
        ).to_arrow()
    except Exception as error:
        # The library of the frame may raise anything, for example for mixed types in one column.
        raise InputError(f"the frame cannot be read ({shortened(lines_of(error)[0])})") from error
