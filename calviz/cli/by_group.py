"""The table of `calviz audit --by`: which groups have trustworthy scores, and from which confidence on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from calviz.cli.text import cell, console, short_name
from calviz.results.slices import Slice, Slices
from calviz.sample.sample import Sample
from calviz.text.words import counted, decimal, percent, points

if TYPE_CHECKING:
    from calviz.figures.kernels.group_levels import Levels

#: Number of levels named in a sentence.
_NAMED = 6


def _summary(slices: Slices, column: str) -> str:
    """Sentence that names the levels whose scores are too high, too low, or within noise."""

    def named(group: Sequence[Slice], *, by: bool) -> str:
        names = [
            short_name(s.where[0][1]) + (f" ({points(abs(s.gap))} points)" if by else "")
            for s in group[:_NAMED]
        ]
        more = f" and {len(group) - _NAMED} more" if len(group) > _NAMED else ""
        return ", ".join(names) + more

    off = [s for s in slices.slices if s in slices.off]
    parts = [
        f"{words} on {named(group, by=True)}"
        for words, group in (
            ("too high", [s for s in off if s.gap > 0]),
            ("too low", [s for s in off if s.gap <= 0]),
        )
        if group
    ]
    within_noise = [s for s in slices.slices if s not in slices.off]
    if within_noise:
        parts.append(f"within noise on {named(within_noise, by=False)}")
    return f"By {short_name(column)}: {'; '.join(parts)}."


def print_groups(sample: Sample, column: str, risk: float) -> None:
    """Print one line per level of a group column: rows, mean score, share of hits, whether it is off, and its threshold.

    Parameters
    ----------
    sample : Sample
    column : str
        The group column.
    risk : float
        Largest allowed share of errors among the predictions kept.

    Raises
    ------
    OptionError
        If there is no such group column.
    """
    from calviz.figures.kernels.group_levels import LEAST_ROWS, levels_of

    levels = levels_of(sample, column, risk)
    out = console()
    out.print()
    out.print(cell(_summary(levels.slices, column)), soft_wrap=True)
    out.print(_table(levels, column, risk))
    few = levels.few
    if few:
        named = ", ".join(short_name(name) for name in few[:5]) + (", …" if len(few) > 5 else "")
        text = f"{counted(len(few), 'value')} with fewer than {LEAST_ROWS} rows: {named}"
        out.print(cell(text, style="dim"), soft_wrap=True)
    text = (
        f"off: beyond chance, corrected for all {len(levels.slices.slices)} values. The last columns: of the predictions from that confidence on, "
        f"at most {percent(risk, 0)} are wrong; chosen on these very rows, so expect a little more on others."
    )
    out.print(cell(text, style="dim"), soft_wrap=True)


def _table(levels: Levels, column: str, risk: float) -> Table:
    """Return the table with one line per level."""
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
    for s, choice in zip(levels.slices.slices, levels.choices, strict=True):
        above_threshold = ["never", "", ""]
        if choice.interval is not None:
            low, high = choice.interval
            above_threshold = [
                decimal(choice.threshold, 3),
                f"{choice.kept:,}",
                f"{percent(choice.accuracy)} ({percent(low)} to {percent(high)})",
            ]
        texts = (
            s.where[0][1],
            f"{s.rows:,}",
            percent(s.score, 2),
            percent(s.hits, 2),
            points(s.gap, plus=True),
            levels.word(s),
            *above_threshold,
        )
        table.add_row(*(cell(short_name(text)) for text in texts))
    return table
