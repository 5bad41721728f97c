"""Reliability curves of folds over the pooled one, or of sites side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from calviz.comparison.folds_and_sites import MIN_ROWS, RowsByLevel
from calviz.core.blocks import FloatArray
from calviz.core.events import Reduction
from calviz.core.words import counted, plotly_text, score_and_hit, shorten, told_apart
from calviz.figures.figure import NAME_LENGTH, Data, Figure, facts
from calviz.figures.marks import Picture, Sheet, Trace, diagonal, heading, line
from calviz.sample.sample import Sample, bin_sums

#: Most curves or panels; further levels are pooled into the last one.
MOST = 12
#: Rows of a bin that a curve has at least, and its largest number of bins.
BIN_ROWS, BINS = 15, 10
#: Side of a panel whose width is not known, gap between panels, and margins left, right, above and below, in pixels.
_SIDE, _GAP, _MARGINS = 190, 26, (56, 16, 24, 52)


class LevelCurve(NamedTuple):
    """A curve: name, rows, mean score and share of hits of each equal-mass bin, shape (M,) each."""

    name: str
    rows: int
    score: FloatArray
    observed: FloatArray

    @classmethod
    def of(cls, name: str, sample: Sample) -> Self:
        """Bin rows into equal masses."""
        rows = sample.data.rows
        sums = sample.view(bin_sums, bins=max(min(rows // BIN_ROWS, BINS), 1), scheme="equal-mass")
        return cls(name, rows, sums.confidence, sums.accuracy)


@dataclass(frozen=True, eq=False)
class CurvesByLevel(Figure):
    """The reliability curve of each fold or site, and that of all rows.

    Attributes
    ----------
    name, by : str
    reduction : Reduction
    pooled : LevelCurve
    curves : tuple of LevelCurve
        At most `MOST`; of more levels, the smallest ones are pooled into the last curve.
    panels : bool
        Whether each has a panel of its own.
    """

    name: str
    by: str
    reduction: Reduction
    pooled: LevelCurve
    curves: tuple[LevelCurve, ...]
    panels: bool

    @classmethod
    def compute(
        cls,
        data: Data,
        by: str | Sequence[str],
        *,
        panels: bool = False,
        split: str | None = None,
        reduction: Reduction | str | None = None,
        min_rows: int = MIN_ROWS,
    ) -> Self:
        """Bin the rows of each level.

        Parameters
        ----------
        data, split, reduction
            See `calviz.evaluate`.
        by : str or sequence of str
            Group column, or two.
        panels : bool
            Whether each level has a panel of its own.
        min_rows : int
            Levels with fewer rows are left out.

        Raises
        ------
        OptionError, NotAvailable
            Without such a column, or without a level of enough rows.
        """
        sample = Sample.of(data, split=split, reduction=reduction)
        columns = (by,) if isinstance(by, str) else tuple(by)
        levels = RowsByLevel.of(sample, columns, min_rows)
        shown, rest = levels.large, levels.large[:0]
        if shown.size > MOST:
            order = np.argsort(-levels.rows[shown], kind="stable")
            shown, rest = np.sort(shown[order[: MOST - 1]]), shown[order[MOST - 1 :]]
        curves = [LevelCurve.of(levels.names[k], levels.part(sample, k)) for k in shown.tolist()]
        if rest.size:
            others = np.flatnonzero(np.isin(levels.code, rest))
            name = f"{rest.size} others pooled"
            curves.append(LevelCurve.of(name, sample.with_data(sample.data.take(others))))
        whole = LevelCurve.of("All rows", sample)
        named = " and ".join(columns)
        return cls(sample.data.name, named, sample.reduction, whole, tuple(curves), panels)

    def columns(self) -> Mapping[str, Any]:
        """One row per point."""
        every = (*self.curves, self.pooled)
        sizes = [c.score.size for c in every]
        return {
            "level": np.repeat([c.name for c in every], sizes),
            "rows": np.repeat([c.rows for c in every], sizes),
            "mean_score": np.concatenate([c.score for c in every]),
            "observed": np.concatenate([c.observed for c in every]),
        }

    def caption(self) -> tuple[str, ...]:
        """Name, rows and reduction."""
        details = facts(None, counted(self.pooled.rows, "row"), shorten(self.reduction.label))
        return shorten(self.name, NAME_LENGTH), details, f"By {shorten(self.by)}"

    def describe(self) -> str:
        """Say how many curves there are and where they lie."""
        gaps = [float(np.average(c.score - c.observed)) for c in self.curves]
        low, high = int(np.argmin(gaps)), int(np.argmax(gaps))
        return (
            f"Reliability curves of {counted(len(self.curves), 'level')} of {shorten(self.by)} and of all rows; on average over the bins "
            f"'{shorten(self.curves[high].name, 30)}' lies lowest, {100 * gaps[high]:+.1f} points of score minus hits, and "
            f"'{shorten(self.curves[low].name, 30)}' highest, {100 * gaps[low]:+.1f}."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw all curves in one square, or a panel for each."""
        return _side_by_side(self, sheet) if self.panels else _overlaid(self, sheet)


def _curve(curve: LevelCurve, colour: str, **attributes: Any) -> Trace:
    name = f"{plotly_text(curve.name, 40)}, {curve.rows:,} rows"
    hover = f"{name}<br>score %{{x:.3f}}, observed %{{y:.3f}}"
    return line(curve.score, curve.observed, colour, hover=hover, **attributes)


def _square(sheet: Sheet, key: str, dtick: float, **more: Any) -> dict[str, Any]:
    """Both axes of a square panel; `more` has attributes of the x axis under "x" and of the y axis under "y"."""
    same: Trace = {
        "range": [-0.02, 1.02],
        "tickmode": "linear",
        "dtick": dtick,
        "tickformat": ".2~f",
    }
    same["constrain"] = "domain"
    across = sheet.axis(more["titles"][0], anchor=f"y{key}", **same, **more["x"])
    up: Trace = {"anchor": f"x{key}", "scaleanchor": f"x{key}", "scaleratio": 1}
    return {
        f"xaxis{key}": across,
        f"yaxis{key}": sheet.axis(more["titles"][1], **up, **same, **more["y"]),
    }


def _titles(figure: CurvesByLevel) -> tuple[str, str]:
    score, hit = score_and_hit(figure.reduction)
    return plotly_text(score.capitalize()), plotly_text(hit.capitalize())


def _overlaid(figure: CurvesByLevel, sheet: Sheet) -> Picture:
    p = sheet.palette
    faint: Trace = {"width": 1, "name": f"Each {plotly_text(figure.by, 30)}"}
    traces = [
        diagonal(p) | {"showlegend": False},
        *(
            _curve(c, p.glaze(p.ink, 0.45), showlegend=number == 0, **faint)
            for number, c in enumerate(figure.curves)
        ),
        _curve(figure.pooled, p.blue, points={"size": 7}, name="All rows"),
    ]
    left, right, _, _ = _MARGINS
    return sheet.picture(
        traces,
        inner=min((sheet.width or 440) - left - right, 380),
        margins=_MARGINS,
        **_square(sheet, "", 0.25, titles=_titles(figure), x={}, y={}),
    )


def _side_by_side(figure: CurvesByLevel, sheet: Sheet) -> Picture:
    p, count = sheet.palette, len(figure.curves)
    columns = min(2 if sheet.narrow else 4, count)
    rows = -(-count // columns)
    left, right, _, _ = _MARGINS
    room = (sheet.width or columns * (_SIDE + _GAP) + left + right) - left - right
    side = min((room - (columns - 1) * _GAP) / columns, 220)
    height = rows * side + (rows - 1) * (_GAP + 8)
    axes: dict[str, Any] = {}
    notes: list[Trace] = []
    traces: list[Trace] = []
    names = told_apart([c.name for c in figure.curves], max(10, int(side / 8)))
    for number, curve in enumerate(figure.curves):
        row, column = divmod(number, columns)
        key = str(number + 1) if number else ""
        top = 1 - row * (side + _GAP + 8) / height
        x: Trace = {"domain": [(column + 0.06) / columns, (column + 0.94) / columns]}
        x |= {"showticklabels": number + columns >= count}
        y: Trace = {"domain": [max(top - side / height, 0), top], "showticklabels": column == 0}
        axes |= _square(sheet, key, 0.5, titles=("", ""), x=x, y=y)
        notes.append(
            heading(plotly_text(names[number]), p, (f"x{key} domain", f"y{key} domain"), 2)
        )
        own: Trace = {"xaxis": f"x{key}", "yaxis": f"y{key}"}
        entry = own | {"showlegend": number == 0}
        traces += [
            diagonal(p) | own | {"showlegend": False},
            _curve(figure.pooled, p.neutral, width=1, name="All rows", **entry),
            _curve(curve, p.blue, points={"size": 5}, name="Rows of the panel", **entry),
        ]
    across, up = _titles(figure)
    paper: Trace = {"xref": "paper", "yref": "paper", "showarrow": False, "font": {"size": 13}}
    notes += [
        paper | {"text": across, "x": 0.5, "y": 0, "yshift": -26, "yanchor": "top"},
        paper | {"text": up, "x": 0, "y": 0.5, "xshift": -36, "xanchor": "right", "textangle": -90},
    ]
    return sheet.picture(traces, inner=round(height), margins=_MARGINS, annotations=notes, **axes)
