"""The errors by class, computed at once if that is quick, else as a job that can be watched and stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable
from calviz.figures.class_bars import ClassBars, Mode
from calviz.figures.kernels.overlaid_curves import Overlay
from calviz.sample.class_ranges import class_ranges
from calviz.sample.sample import Sample
from calviz.text.words import counted
from calviz.ui.pinned import on_page
from calviz.ui.session import results
from calviz.ui.session.jobs import Job
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import long_work
from calviz.ui.widgets.long_work import Button, LongWork, StateWords

PLACE = "classwise"
#: Rows, and rows times classes, from which on the computation takes seconds.
MANY_ROWS, MANY_ENTRIES = 20_000, 10_000_000
#: Seconds to wait before the progress bar is drawn.
PATIENCE = 0.3
MODES: dict[Mode, str] = {
    "predicted-class": "rows predicted as each class",
    "one-vs-rest": "each class against the rest",
    "true-class": "rows of each true class",
}


class AllowedClassViews(NamedTuple):
    """All views of the classes that the data allow, and the reasons why they do not allow the others."""

    views: Mapping[Mode, ClassBars]
    reasons: Mapping[Mode, str]

    @property
    def first(self) -> Mode:
        """The view that is shown first."""
        return next(iter(self.views))


def find(settings: Settings) -> AllowedClassViews | None:
    """Return all errors by class; None, with progress or reason on screen, if there are none yet."""
    sample = settings.sample
    data = sample.data
    quick = data.n < MANY_ROWS and data.n * max(1, data.n_classes) < MANY_ENTRIES
    if quick or data.labels is None:  # without labels it is quick, or not available
        words = f"Resampling {counted(data.rows, 'row')}, class by class …"
        with results.sample_with_spinner(settings, words):
            return _compute(sample)
    work = LongWork(
        PLACE,
        settings.rows_key,
        f"Resampling {counted(data.rows, 'row')}, class by class",
        lambda: _work(sample),
    )
    status = long_work.draw(
        work,
        Button("Compute them", ":material/play_arrow:", "calviz.classes.again"),
        StateWords(stopped=lambda _: "Stopped before the errors of the classes were known."),
        at_once=True,
        patience=PATIENCE,
    )
    class_errors: AllowedClassViews | None = status.result
    return class_errors


def _work(sample: Sample) -> Callable[[Job], AllowedClassViews]:
    def work(job: Job) -> AllowedClassViews:
        for words in MODES.values():
            job.step(words, "waiting")
        return _compute(sample, job.step)

    return work


def _compute(sample: Sample, report: Callable[..., object] = lambda *_: None) -> AllowedClassViews:
    views: dict[Mode, ClassBars] = {}
    reasons: dict[Mode, str] = {}
    for mode, words in MODES.items():
        report(words, "running")
        try:
            views[mode] = results.class_bars(sample, mode)
            report(words, "done")
        except NotAvailable as error:
            reasons[mode] = str(error)
            report(words, "failed", str(error))
    if not views:
        raise NotAvailable(reasons["true-class"])
    return AllowedClassViews(views, reasons)


def pinned(settings: Settings, mode: Mode) -> Overlay[FloatArray] | None:
    """Return the error of each class in the pinned state, shape (K,); NaN for a class without rows."""
    # Reduction and bins do not matter here.
    return on_page.pinned_overlay(
        settings, lambda sample: _values(sample, mode), as_now=on_page.REDUCTION_AND_BINS
    )


def _values(sample: Sample, mode: Mode) -> FloatArray:
    ranges = sample.top_label.view(class_ranges, view=mode)
    return np.where(ranges.has, ranges.value, np.nan)
