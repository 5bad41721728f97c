"""Rating grades: Jeffreys and binomial tests, and traffic lights."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from calviz.report.blocks import Block, CellFormat, Heading, Note, TableBlock, Text, formatted
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.sample.cutoff import decidable
from calviz.sample.grades import COUNTS_AS, grade_columns, grades, has_grades, tests_words
from calviz.text.words import decimals_for, p_number, percent, shorten, whole

#: Largest number of columns shown if no column of grades is named.
MOST_COLUMNS = 3


def make(subject: Subject) -> Iterator[Block]:
    """Yield one table per column of grades; nothing without such a column."""
    data = subject.sample.data
    columns = grade_columns(data) if subject.grades is None else (subject.grades,)
    requested = subject.preset == "credit" or subject.grades is not None
    if not columns or not (requested or has_grades(data)):
        return
    sample = decidable(subject.sample)
    equal_rows = True
    for column in columns[:MOST_COLUMNS]:
        result = sample.view(grades, column=column)
        if len(columns) > 1:
            yield Heading(shorten(column, 80))
        equal_rows = equal_rows and result.alike
        yield Text(result.reading())
        frame = pd.DataFrame(dict(result.columns()))

        def share(value: float) -> str:
            if value != value:  # nan for a grade that is not tested
                return "n/a"
            return percent(value, max(1, decimals_for(100 * value, most=3)))

        formats: dict[str, tuple[str, CellFormat]] = {
            "grade": ("grade", lambda v: shorten(str(v), 60)),
            "rows": ("rows", whole),
            "counts_as": ("counts as", lambda v: "n/a" if v != v else whole(round(v))),
            "hits": ("hits", whole),
            "mean_score": ("mean score", share),
            "observed": ("observed", share),
            "low": ("95 % CI from", share),
            "high": ("to", share),
            "p_jeffreys": ("p (Jeffreys)", p_number),
            "p_binomial": ("p (binomial)", p_number),
            "light": ("light", str),
        }
        if result.alike:
            del formats["counts_as"]
        shown = formatted(frame, formats)
        right = [h for name, (h, _) in formats.items() if name not in ("grade", "light")]
        key = "grades" if len(columns) == 1 else f"grades-{columns.index(column) + 1}"
        yield TableBlock(key, f"Grades by {shorten(column, 60)}", shown, frame, right)
    if not equal_rows:
        yield Note(f"Counts as: {COUNTS_AS[0].lower()}{COUNTS_AS[1:]}")
    yield Note(tests_words(data))


SECTIONS.register(
    Section("grades", "Rating grades", 56, "Tests per grade, with traffic lights", make)
)
