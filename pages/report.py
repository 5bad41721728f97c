"""What to put on file or to print: a report, a model card, tables, figures beside each other."""

from __future__ import annotations

from calviz.app import exporting, navigation, rows_shown
from calviz.app.session import Settings


def report(chosen: Settings) -> None:
    """One offline page, a model card, and all tables."""
    say = navigation.draw_head("Put it on file or pass it on")
    with navigation.boundary():
        rows_shown.say_not_followed(chosen, "The report covers all rows")

    with navigation.boundary():
        exporting.explore_report(chosen, say)


def figures(chosen: Settings) -> None:
    """Chosen figures beside each other, as in a paper."""
    say = navigation.draw_head("Figures for print")
    with navigation.boundary():
        exporting.explore_figures(chosen, say)


navigation.enter()
navigation.open_tab({"report": report, "figures": figures})
