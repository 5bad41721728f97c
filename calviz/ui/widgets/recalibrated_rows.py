"""The rows of the sidebar before and after a recalibrator that was fitted on other rows."""

from __future__ import annotations

from calviz.comparison.before_after import BeforeAfter, before_and_after
from calviz.results.comparison import RowsUsed
from calviz.results.slices import rows_where
from calviz.text.words import counted
from calviz.ui.session.settings import Settings


def recalibrate(settings: Settings, method: str) -> BeforeAfter:
    """Fit a method and judge the split and slice of the sidebar; raise a CalvizError if that is not possible."""
    data = settings.whole
    within = rows_where(data, settings.where)
    return before_and_after(data, method, eval_split=settings.split, within=within)


def rows_words(rows: RowsUsed) -> str:
    """Return which rows they are, and how many: "split 'test' (4,000 rows)"."""
    return f"{rows.how} ({counted(rows.rows, 'row')})"
