"""The confusion matrix: which class is predicted as which, and with what confidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, Unpack, get_args

import numpy as np

from calviz.core.blocks import FloatArray, IntArray, quotient
from calviz.core.entry_specs import figure
from calviz.core.errors import NotAvailable, OptionError, check_choice
from calviz.core.words import counted, decimal, percent, plotly_text, shorten, told_apart
from calviz.figures import marks
from calviz.figures.figure import Data, SampleFigure, named
from calviz.figures.marks import UNSEEN, Drawing, Page, Sheet, Trace, drawn, frame, name_room
from calviz.sample.sample import Sample, reduce

By = Literal["true", "predicted"]

#: Maximum number of classes drawn; with more, those with the most mistakes are drawn.
SHOWN = 12


@figure(
    key="confusion",
    label="Confusion matrix",
    summary="Rows per pair of true and predicted class, of many classes those with the most mistakes first, with the mean "
    "confidence of each cell: a high confidence off the diagonal is a confident mistake.",
    reference="Kohavi & Provost 1998",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class Confusion(SampleFigure):
    """A confusion matrix, stored as its non-empty cells; `plot` draws the classes with the most mistakes.

    Arrays have one entry per pair of classes with rows, shape (P,).

    Attributes
    ----------
    name, split, n
        See `SampleFigure`.
    class_names : tuple of str
        All classes.
    true, predicted : ndarray of int, shape (P,)
        0-based indices of the two classes.
    rows : ndarray of int, shape (P,)
        Number of rows in the cell.
    confidence : ndarray, shape (P,)
        Mean confidence of these rows.
    mass : ndarray, shape (P,)
        Sum of the weights of these rows (weights have mean 1), or their number without weights; shares are computed from it.

    References
    ----------
    Kohavi & Provost 1998 (glossary of terms).
    """

    class_names: tuple[str, ...]
    true: IntArray
    predicted: IntArray
    rows: IntArray
    confidence: FloatArray
    mass: FloatArray

    @classmethod
    def compute(cls, data: Data, *, split: str | None = None) -> Self:
        """Count the rows per pair of true and predicted class.

        Parameters
        ----------
        data : Predictions, ConfidencePredictions or Sample
        split : str, optional
            Only the rows of this split.

        Raises
        ------
        NotAvailable
            If the data do not name the true and the predicted classes.
        InputError
            Under the same conditions as in `calviz.evaluate`.
        """
        sample = Sample.of(data, split=split)
        rows = sample.data
        predicted = rows.predicted
        if predicted is None or rows.labels is None or not rows.class_names:
            raise NotAvailable("these data do not name the true classes and the predicted ones.")
        pair = rows.labels.astype(np.int64) * rows.n_classes + predicted
        cells, cell = np.unique(pair, return_inverse=True)
        score = reduce(rows, sample.top_label.reduction).score
        weights = sample.row_weights
        mass = np.bincount(cell, weights, minlength=cells.size).astype(np.float64)
        total = np.bincount(cell, weights * score, minlength=cells.size)
        return cls(
            **cls._fields(sample),
            class_names=rows.class_names,
            true=cells // rows.n_classes,
            predicted=cells % rows.n_classes,
            rows=np.rint(np.bincount(cell, sample.row_counts)).astype(np.int64),
            confidence=quotient(total, mass),
            mass=mass,
        )

    @property
    def wrong(self) -> int:
        """Number of rows whose predicted class is wrong."""
        return int(self.rows[self.true != self.predicted].sum())

    @property
    def wrong_share(self) -> float:
        """Share of wrong predictions, of weighted rows by their weights: the error, as the metric has it."""
        return float(self.mass[self.true != self.predicted].sum() / self.mass.sum())

    @cached_property
    def ranked(self) -> IntArray:
        """All classes, shape (K,), sorted by the mistakes they are part of (as true or as predicted class), most first."""
        off = self.true != self.predicted
        k = len(self.class_names)
        sides = (self.true[off], self.predicted[off])
        mistakes = sum(np.bincount(side, self.rows[off], minlength=k) for side in sides)
        return np.argsort(-np.asarray(mistakes), kind="stable")

    @property
    def usual(self) -> IntArray:
        """Classes drawn by default, in their order: all, or of many those of the most frequent mistakes, in this order."""
        if len(self.class_names) <= SHOWN:
            return np.arange(len(self.class_names))
        at = self.mistakes()[: 4 * SHOWN]
        pairs = np.stack([self.true[at], self.predicted[at]], axis=1).ravel()
        # Those with the most mistakes need not be confused with each other; so take whole pairs.
        first = np.concatenate([pairs, self.ranked]).tolist()
        return np.asarray(list(dict.fromkeys(first))[:SHOWN], dtype=np.intp)

    def share(self, by: By = "true") -> FloatArray:
        """Share of each cell among the rows of its true class, or of its predicted class, shape (P,)."""
        side = self._side(by)
        total = np.bincount(side, self.mass, minlength=len(self.class_names))
        return np.asarray(self.mass / np.where(total > 0, total, 1.0)[side])

    def _side(self, by: By) -> IntArray:
        check_choice("by", by, get_args(By))
        return self.true if by == "true" else self.predicted

    def mistakes(self) -> IntArray:
        """Positions of the off-diagonal cells in the arrays, those with the most rows first."""
        off = np.flatnonzero(self.true != self.predicted)
        return off[np.lexsort((-self.confidence[off], -self.rows[off]))]

    def columns(self) -> Mapping[str, Any]:
        """Return one row per non-empty cell, mistakes first."""
        at = np.concatenate([self.mistakes(), np.flatnonzero(self.true == self.predicted)])
        names = np.asarray(self.class_names, dtype=object)
        return {
            "true": names[self.true[at]],
            "predicted": names[self.predicted[at]],
            "rows": self.rows[at],
            "share_of_true": self.share("true")[at],
            "share_of_predicted": self.share("predicted")[at],
            "confidence": self.confidence[at],
        }

    def caption(self) -> tuple[str, ...]:
        """Name; rows and classes; how many are wrong."""
        classes = counted(len(self.class_names), "class", "classes")
        return *self._head(classes), f"{percent(self.wrong_share)} wrong"

    def describe(self) -> str:
        """Name the data, and say the `reading`."""
        return f"Confusion matrix of {named(self.name, self.split)}: {self.reading()}"

    def reading(self) -> str:
        """Say in plain words which classes are mixed up most."""
        of_weight = "" if np.array_equal(self.mass, self.rows) else " by weight"
        many = f"{self.wrong:,} of {counted(self.n, 'row')} ({percent(self.wrong_share)}{of_weight}) are"
        one = f"the one row is{'' if self.wrong else ' not'}"
        head = f"{one if self.n == 1 else many} predicted wrong."
        at = self.mistakes()
        if not at.size or self.n == 1:
            return head
        if at.size > 1 and self.rows[at[0]] == 1:
            return f"{head} No class is taken for the same other class twice."
        a, b = (shorten(self.class_names[side[at[0]]], 30) for side in (self.true, self.predicted))
        return (
            f"{head} Most often '{a}' is taken for '{b}': {counted(int(self.rows[at[0]]), 'row')}, "
            f"with a mean confidence of {decimal(float(self.confidence[at[0]]), 2)}."
        )

    def plot(
        self,
        *,
        by: By = "true",
        classes: Sequence[int] = (),
        selected: tuple[int, int] | None = None,
        **page: Unpack[Page],
    ) -> Drawing:
        """Draw the cells of some classes: right predictions in blue, mistakes in vermillion, darker for larger shares.

        Parameters
        ----------
        by : {"true", "predicted"}
            Whether colours show shares of the true class or of the predicted class.
        classes : sequence of int
            Indices of the classes to draw; by default all, or of more than twelve those of the most frequent mistakes.
        selected : (int, int), optional
            True and predicted class of a cell to frame; ignored unless both classes are drawn.
        **page
            See `Figure.plot`.

        Returns
        -------
        plotly.graph_objects.Figure
            Non-empty cells carry the indices of their true and predicted class as ``customdata``.

        Raises
        ------
        OptionError
            If `by` is unknown or a class does not exist.
        """
        self._side(by)
        shown = np.asarray(list(classes) if len(classes) else self.usual, dtype=np.intp)
        if shown.min() < 0 or shown.max() >= len(self.class_names):
            raise OptionError(f"'classes' must lie between 0 and {len(self.class_names) - 1}.")
        sheet = self.sheet(**page)
        names = told_apart((self.class_names[k] for k in shown), _NAME if sheet.narrow else _LONG)
        escaped = list(map(plotly_text, names))
        longest, beside = max(map(len, names)), name_room(names, _BESIDE)
        turned = _LETTER * longest * shown.size > (sheet.width or _USUAL) - beside
        picture = sheet.picture(
            _traces(self, sheet, by, shown),
            inner=_ROW * max(shown.size, 3),
            margins=(beside, _RIGHT, _TOP, _BOTTOM + turned * _LETTER * max(longest - 2, 0)),
            entries=False,
            shapes=list(_framed(sheet, shown, selected)),
            xaxis=sheet.axis(
                "Predicted class",
                size=13,
                range=[-0.5, shown.size - 0.5],
                tickvals=list(range(shown.size)),
                ticktext=escaped,
                tickangle=-90 * turned,  # names that do not fit below their cells
                automargin=True,
                showgrid=False,
            ),
            yaxis=sheet.row_axis(escaped, title="True class", size=13, standoff=6),
        )
        return drawn(picture)


# ---- Drawing


#: Height of a row, and margins right of, above and below the panel, in pixels.
_ROW, _RIGHT, _TOP, _BOTTOM = 38, 12, 10, 62
#: Maximum characters of a name, on a phone and elsewhere; space beside the names, width of a letter below the panel and that assumed of a page, in pixels.
_NAME, _LONG, _BESIDE, _LETTER, _USUAL = 16, 24, 40, 6, 560


def _framed(sheet: Sheet, shown: IntArray, cell: tuple[int, int] | None) -> Iterator[Trace]:
    if cell is None or not all(np.isin(cell, shown)):
        return
    y, x = (int(np.flatnonzero(shown == k)[0]) for k in cell)
    place: Trace = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
    yield frame(sheet.palette.ink, layer="above", **place)


def _traces(f: Confusion, sheet: Sheet, by: By, shown: IntArray) -> Iterator[Trace]:
    """Yield the cells of right predictions and of mistakes, and invisible markers over both.

    A heat map does not report where it was clicked.
    """
    p, place = sheet.palette, np.full(len(f.class_names), -1)
    place[shown] = np.arange(shown.size)
    y, x = place[f.true], place[f.predicted]
    inside, share, right = (x >= 0) & (y >= 0), f.share(by), f.true == f.predicted
    at = np.flatnonzero(inside)
    hover = {i: _hover(f, i, float(share[i]), by) for i in at.tolist()}
    for which, is_right in ((right, True), (~right, False)):
        if not (inside & which).any():
            continue
        z = np.full((shown.size, shown.size), np.nan)
        text, texts = (np.full(z.shape, "", dtype=object) for _ in range(2))
        for i in np.flatnonzero(inside & which).tolist():
            z[y[i], x[i]], texts[y[i], x[i]] = share[i], hover[i]
            confidence = "" if sheet.narrow else f"<br>{f.confidence[i]:.2f}"
            text[y[i], x[i]] = f"{f.rows[i]:,}{confidence}"
        colour = p.blue if is_right else p.vermillion
        yield {
            "type": "heatmap",
            "z": z,
            "zmin": 0,
            "zmax": 1 if is_right else max(float(np.nanmax(z)), 1e-9),
            "colorscale": [[0, p.tint(colour, 0.08)], [1, p.tint(colour, 0.5)]],
            "showscale": False,
            "xgap": 1,
            "ygap": 1,
            "text": text,
            "texttemplate": "%{text}",
            "textfont": {"size": 11, "color": p.ink},
            "customdata": texts,
            "hovertemplate": "%{customdata}<extra></extra>",
            "hoverongaps": False,
        }
    # Lists, because for a two-dimensional array the browser returns the clicked row as an object, {"0": true, "1": predicted}.
    classes = np.stack([f.true[at], f.predicted[at]], axis=1).tolist()
    look: Trace = {"size": _ROW - 2, "symbol": "square", "opacity": 0, "showlegend": False}
    hovering = list(hover.values())
    yield marks.markers(x[at], y[at], p.ink, **look, **UNSEEN, customdata=classes, hover=hovering)


def _hover(f: Confusion, i: int, share: float, by: str) -> str:
    true, predicted = (plotly_text(f.class_names[k], 40) for k in (f.true[i], f.predicted[i]))
    return (
        f"<b>{true}</b> taken for <b>{predicted}</b><br>"
        f"{counted(int(f.rows[i]), 'row')}, {percent(share)} of the {by} class<br>"
        f"mean confidence {f.confidence[i]:.3f}"
    )
