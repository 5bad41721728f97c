"""Turn logits of a frame into columns of probabilities, with the engine of the frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calviz.profiles.expressions import tree
from calviz.profiles.layout import ProfileColumns

if TYPE_CHECKING:
    import narwhals as nw

_PREFIX = "calviz:logits "
#: Upper limit of -log of a probability, as for data in memory, so that sums of squares stay finite for any logits.
LARGEST_LOSS = 1e100


def probability_columns(classes: int) -> tuple[str, ...]:
    """Names of the columns of probabilities computed from logits; they do not clash with columns of a file."""
    return tuple(f"{_PREFIX}p {k}" for k in range(classes))


def with_probabilities(frame: nw.LazyFrame[Any], layout: ProfileColumns) -> nw.LazyFrame[Any]:
    """Add the softmax of the logits in ``layout.scores`` and its logarithm in ``layout.logs`` to a frame, still lazy.

    Returns the same frame if there are no logits.

    A single column z is the logit of class 1 and means (0, z), as in files that are read whole. Non-finite logits give NaN scores.
    """
    if not layout.logits:
        return frame
    import narwhals as nw

    schema = frame.collect_schema()
    single = all(schema[name] == nw.Float32 for name in layout.logits)
    columns = [nw.col(name).cast(nw.Float64) for name in layout.logits]
    if len(columns) == 1:
        columns = [columns[0] * 0.0, *columns]
    names = [f"{_PREFIX}z {k}" for k in range(len(columns))]
    frame = frame.with_columns(**dict(zip(names, columns, strict=True)))
    z = [nw.col(name) for name in names]
    frame = frame.with_columns(**{f"{_PREFIX}top": nw.max_horizontal(*z)})
    # The term v - v is 0, or nan if v is infinite.
    shifted = [(v - nw.col(f"{_PREFIX}top")) + (v - v) for v in z]
    frame = frame.with_columns(**dict(zip(layout.logs, shifted, strict=True)))
    shifted = [nw.col(name) for name in layout.logs]
    powers = [v.exp() for v in shifted]
    frame = frame.with_columns(**dict(zip(names, powers, strict=True)))
    frame = frame.with_columns(**{f"{_PREFIX}sum": tree(z)})
    total = nw.col(f"{_PREFIX}sum")
    shares = [v / total for v in z]
    if single:
        shares = [share.cast(nw.Float32) for share in shares]
    logs = [(v - total.log()).clip(-LARGEST_LOSS) for v in shifted]
    probabilities = dict(zip(layout.scores, shares, strict=True))
    return frame.with_columns(**probabilities, **dict(zip(layout.logs, logs, strict=True)))
