"""Prediction sets: the plausible classes of a row, with the share of rows whose set holds the true one."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from calviz.comparison.prediction_sets import prediction_sets
from calviz.core.errors import InputError, NotAvailable
from calviz.report.blocks import Block, Note, TableBlock, Text
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.results.prediction_sets import PredictionSets
from calviz.text.words import counted, decimal, percent, shorten, whole


def make(subject: Subject) -> Iterator[Block]:
    """Yield coverage and mean size, for all rows and by true class."""
    sets = subject.sets or _of_halves(subject)
    yield Text(sets.reading())
    subsets = (sets.overall, *sets.classes)
    shown = pd.DataFrame(
        {
            "true class": [shorten(s.name, 60) for s in subsets],
            "rows": [whole(s.rows) for s in subsets],
            "coverage": [percent(s.coverage) for s in subsets],
            "95 % CI from": [percent(s.coverage_interval.low) for s in subsets],
            "to": [percent(s.coverage_interval.high) for s in subsets],
            "mean size": [decimal(s.size, 2) for s in subsets],
            "95 % CI of the size": [
                f"{decimal(s.size_interval.low, 2)} to {decimal(s.size_interval.high, 2)}"
                for s in subsets
            ],
        }
    )
    right = [name for name in shown.columns if name != "true class"]
    yield TableBlock("prediction-sets", "Prediction sets by true class", shown, sets.frame(), right)
    fit = f"{sets.fit.how} ({counted(sets.fit.rows, 'row')})"
    yield Note(
        f"Split-conformal ({sets.method.upper()}): the threshold is chosen on {fit}, and judged on {sets.evaluation.how}. The "
        "share holds for new rows like these whatever the probabilities are worth; better probabilities make the sets smaller."
    )


def _of_halves(subject: Subject) -> PredictionSets:
    sample = subject.sample
    try:
        return prediction_sets(sample.data, seed=sample.seed, fit_fraction=0.5)
    except InputError as error:  # too few rows
        raise NotAvailable(f"no prediction sets: {error}") from None


SECTIONS.register(
    Section(
        "prediction-sets",
        "Prediction sets",
        61,
        "The classes that are plausible, at 90 % coverage",
        make,
    )
)
