"""The table of `calviz audit --by`: which rows can be believed, and from which confidence on."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from calviz.cli.text import cell, console, short_name
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import Dataset
from calviz.results.slices import Slice, Slices
from calviz.sample.sample import Sample
from calviz.text.words import counted, decimal, percent, points, shorten

#: Levels with fewer rows are named and not judged, as nothing could be said of them.
LEAST_ROWS = 20
#: Levels that are named in a sentence.
_NAMED = 6


def check_column(data: Dataset, column: str) -> None:
    """Raise OptionError where there is no such group column."""
    if column not in data.groups:
        known = ", ".join(shorten(name) for name in data.groups) or "there is none"
        raise OptionError(
            f"there is no group column '{shorten(column)}' to look by; known: {known}."
        )


def _said(found: Slices, column: str) -> str:
    """Where the scores hold and where they do not, in a sentence."""

    def named(some: Sequence[Slice], *, by: bool) -> str:
        names = [
            short_name(s.where[0][1]) + (f" ({points(abs(s.gap))} points)" if by else "")
            for s in some[:_NAMED]
        ]
        more = f" and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
        return ", ".join(names) + more

    off = [s for s in found.slices if s in found.off]
    parts = [
        f"{words} on {named(some, by=True)}"
        for words, some in (
            ("too high", [s for s in off if s.gap > 0]),
            ("too low", [s for s in off if s.gap <= 0]),
        )
        if some
    ]
    fine = [s for s in found.slices if s not in found.off]
    if fine:
        parts.append(f"within noise on {named(fine, by=False)}")
    return f"By {short_name(column)}: {'; '.join(parts)}."


def print_groups(sample: Sample, column: str, risk: float) -> None:
    """Print one line per level of a group column: rows, mean score and hits, whether it is off, and the threshold.

    Raises
    ------
    OptionError
        Where there is no such group column.
    """
    from calviz.figures.risk_coverage import RiskCoverage
    from calviz.sample.slices import slices

    check_column(sample.data, column)
    levels = sample.data.groups[column].counts()
    try:
        found = slices(sample, [column], pairs=False, min_rows=LEAST_ROWS)
    except NotAvailable as error:
        raise OptionError(f"nothing can be said by '{shorten(column)}': {error}") from None
    table = Table(box=None, header_style="dim", pad_edge=False)
    right = f"{percent(1 - risk, 0)} right from"
    for title in (
        short_name(column),
        "rows",
        "mean score",
        "hits",
        "gap (points)",
        "",
        right,
        "keeps",
        "right there (95 % CI)",
    ):
        table.add_column(
            title, justify="left" if not table.columns or not title else "right", no_wrap=True
        )
    for s in found.slices:
        part = Sample.of(sample, where=s.where)
        choice = RiskCoverage.compute(part, band=False).at_risk(risk)
        off = s in found.off
        reach = ["never", "", ""]
        if choice.interval is not None:
            low, high = choice.interval
            reach = [
                decimal(choice.threshold, 3),
                f"{choice.kept:,}",
                f"{percent(choice.accuracy)} ({percent(low)} to {percent(high)})",
            ]
        said = ("too high" if s.gap > 0 else "too low") if off else "within noise"
        texts = (
            s.where[0][1],
            f"{s.rows:,}",
            percent(s.score),
            percent(s.hits),
            points(s.gap, plus=True),
            said,
            *reach,
        )
        table.add_row(*(cell(short_name(text)) for text in texts))
    out = console()
    out.print()
    out.print(cell(_said(found, column)), soft_wrap=True)
    out.print(table)
    few = [name for name, rows in levels.items() if rows < LEAST_ROWS]
    if few:
        named = ", ".join(short_name(name) for name in few[:5]) + (", …" if len(few) > 5 else "")
        text = f"{counted(len(few), 'value')} with fewer than {LEAST_ROWS} rows: {named}"
        out.print(cell(text, style="dim"), soft_wrap=True)
    text = (
        f"off: beyond chance, all {len(found.slices)} looked at together. The last columns: keeping the predictions from that confidence on, "
        f"at most {percent(risk, 0)} are wrong; chosen on these very rows, so expect a little more on others."
    )
    out.print(cell(text, style="dim"), soft_wrap=True)
