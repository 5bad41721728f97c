"""Results as text and tables for a terminal (imports rich)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from calviz.cli.command_group import cell, console, short_name, table_of
from calviz.comparison.arena_results import (
    SCORES,
    Arena,
    Leaderboard,
    Standing,
    headline,
    rated_words,
    winrate_text,
)
from calviz.comparison.comparison_results import (
    AGAINST_WORDS,
    TIED_WORDS,
    Comparison,
    ComparisonColumn,
    Mark,
    Remark,
    gain_words,
    refit_words,
)
from calviz.core.entry_specs import METRICS
from calviz.core.events import Reduction
from calviz.core.words import (
    capitalised,
    counted,
    decimal,
    listed,
    p_number,
    p_value,
    percent,
    points,
    seconds_text,
    terminal_text,
)
from calviz.sample.metric_results import MetricResult
from calviz.sample.sample import Sample
from calviz.sample.slices import Slice, Slices
from calviz.verdicts.evaluation import Evaluation, alone, missing, name_of, precision_words, remarks

if TYPE_CHECKING:
    from calviz.comparison.comparison_results import ModelComparison
    from calviz.comparison.over_time import OverTime
    from calviz.core.entry_specs import Conventions
    from calviz.core.profile import Profile
    from calviz.data import Loaded
    from calviz.figures.slice_gaps import Levels


_SEVERITY_STYLES = {"info": "cyan", "warning": "yellow", "error": "bold red"}


def print_recognition(file: str, loaded: Loaded) -> None:
    """Print what was recognised in a file: one line, then the notices and the repairs."""
    out = console()
    line = Text(terminal_text(file), style="bold")
    line.append(f": {terminal_text(loaded.recognition.sentence())}", style="not bold")
    out.print(line, soft_wrap=True)
    for notice in loaded.notices:
        _finding(notice.severity, notice.code, notice.message)
    for repair_made in loaded.repairs_made:
        out.print(cell(f"  repaired: {repair_made}"), soft_wrap=True)
    for repair in loaded.repairs_offered:
        out.print(cell(f"  offered: --repair {repair.key} ({repair.label})"), soft_wrap=True)


def print_evaluation(evaluation: Evaluation, *, named: bool) -> None:
    """Print the verdict, the table of metrics and the findings; with `named`, also the name of the model."""
    out = console()
    out.print()
    if named:
        out.print(cell(short_name(evaluation.name), style="bold underline"))
    if evaluation.verdict:
        out.print(cell(evaluation.verdict.sentence, style="bold"), soft_wrap=True)
        if evaluation.verdict.other_view:
            out.print(cell(evaluation.verdict.other_view), soft_wrap=True)
    split = f"split {short_name(evaluation.split)}" if evaluation.split else "all rows"
    reduction = short_name(Reduction.of(evaluation.reduction).label)
    out.print(cell(f"{counted(evaluation.rows, 'row')} ({split}), {reduction}"), soft_wrap=True)
    out.print()
    out.print(_metric_table([r for r in evaluation if r.available]))
    if any(r.noise_floor for r in evaluation):
        out.print(cell(alone(evaluation.verdict), style="dim"), soft_wrap=True)
    out.print()
    for names, text in (*remarks(evaluation), *missing(evaluation)):
        out.print(cell(f"{names}: {text}", style="dim"), soft_wrap=True)
    for finding in evaluation.findings:
        _finding(finding.severity, finding.code, finding.message)


def print_conventions(conventions: Conventions) -> None:
    """Print the ECE as other libraries define it, and why each differs."""
    out = console()
    out.print()
    calibrated = (
        "" if math.isnan(conventions.noise) else f" ({_number(conventions.noise)} if calibrated)"
    )
    heading = (
        f"calviz's ECE is {_number(conventions.ece)}{calibrated}; by default other libraries say:"
    )
    out.print(cell(heading), soft_wrap=True)
    out.print()
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("library", "function", "value", "difference", "if calibrated", "why"):
        is_number = title in ("value", "difference", "if calibrated")
        table.add_column(title, justify="right" if is_number else "left", no_wrap=title != "why")
    if not conventions.redraws:
        table.columns.pop(4)
    for v in conventions:
        convention = v.convention
        numbers = [_number(v.value), _number(v.value - conventions.ece, "+.4f"), _number(v.noise)]
        if not v.available:
            numbers = ["n/a", "", ""]
        if not conventions.redraws:
            numbers.pop()
        why = convention.why if v.reason is None else capitalised(v.reason)
        table.add_row(
            *(cell(text) for text in (convention.library, convention.call, *numbers, why))
        )
    out.print(table)


def _metric_table(results: list[MetricResult]) -> Table:
    bars = any(r.interval or r.noise_floor for r in results)
    table = table_of(
        "metric", "value", *(("95 % interval", "if calibrated (95 %)", "p") if bars else ())
    )
    profiled = any(r.exact is not None for r in results)
    if profiled:
        table.add_column("of the rows", no_wrap=True)
    for r in results:
        cells = (name_of(r), _number(r.value), *(_error_bars(r) if bars else ()))
        cells = (*cells, precision_words(r)) if profiled else cells
        table.add_row(*(cell(text) for text in cells))
    return table


def _error_bars(result: MetricResult) -> tuple[str, str, str]:
    interval, floor = result.interval, result.noise_floor
    return (
        f"{_number(interval.low)} to {_number(interval.high)}" if interval else "",
        f"{_number(floor.mean)} ({_number(floor.q95)})" if floor else "",
        p_number(floor.p_value) if floor else "",
    )


def _number(value: float, form: str = ".4f") -> str:
    text = f"{value:{form}}" if abs(value) < 1_000 else f"{value:.4g}"
    # A value that rounds to 0 has no sign.
    return text if float(text) else text.lstrip("+-")


def _finding(severity: str, code: str, message: str) -> None:
    line = Text("  ")
    line.append(f"{severity} {code}", style=_SEVERITY_STYLES.get(severity, ""))
    line.append(f" {terminal_text(message)}")
    console().print(line, soft_wrap=True)


# ---- Groups


#: Number of levels named in a sentence.
_NAMED = 6


def _group_summary(slices: Slices, column: str) -> str:
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
    from calviz.figures.slice_gaps import LEAST_ROWS, levels_of

    levels = levels_of(sample, column, risk)
    out = console()
    out.print()
    out.print(cell(_group_summary(levels.slices, column)), soft_wrap=True)
    out.print(_table_by_group(levels, column, risk))
    few = levels.few
    if few:
        named = ", ".join(short_name(name) for name in few[:5]) + (", …" if len(few) > 5 else "")
        text = f"{counted(len(few), 'value')} with fewer than {LEAST_ROWS} rows: {named}"
        out.print(cell(text, style="dim"), soft_wrap=True)
    text = f"off: beyond chance, corrected for all {len(levels.slices.slices)} values. The last columns: {levels.guarantee(risk)}"
    out.print(cell(text, style="dim"), soft_wrap=True)


def _table_by_group(levels: Levels, column: str, risk: float) -> Table:
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
        "right there",
        "more rows needed",
    ):
        table.add_column(
            title, justify="left" if not table.columns or not title else "right", no_wrap=True
        )
    for s, choice in zip(levels.slices.slices, levels.choices, strict=True):
        above_threshold = ["not shown", "", "", choice.more_words]
        if choice.kept:
            above_threshold = [
                decimal(choice.threshold, 3),
                f"{choice.kept:,}",
                percent(choice.accuracy),
                "",
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


# ---- Comparisons


_MARK_STYLES: dict[Mark | None, str] = {"best": "bold", "second": "italic", None: ""}


def result_table(
    heading: str,
    columns: Sequence[ComparisonColumn],
    rows: Mapping[str, Sequence[str]],
    more: Sequence[str] = (),
) -> Table:
    """Make a table of plain fractions, best and ties bold, the best of the others italic.

    Parameters
    ----------
    heading : str
        Heading of the first column: what is compared.
    columns : sequence of ComparisonColumn
    rows : mapping of str to sequence of str
        Further cells to the right of the metrics, by row.
    more : sequence of str
        Headings of these cells.
    """
    table = table_of(heading, *(METRICS[column.key].label for column in columns), *more)
    for row, cells in rows.items():
        table.add_row(
            Text(short_name(row)),
            *(_marked_value(c, row) for c in columns),
            *map(Text, cells),
        )
    return table


def _marked_value(column: ComparisonColumn, row: str) -> Text:
    result = column.results.get(row)
    if result is None or not result.available:
        return Text("-")
    return Text(f"{result.value:.4f}", style=_MARK_STYLES[column.mark(row)])


def print_remarks(remarks: Iterable[Remark]) -> None:
    """Print the remarks below a table."""
    out = console()
    for remark in remarks:
        names = ", ".join(map(short_name, remark.of))
        text = f"{names}: {terminal_text(remark.text)}"
        if remark.metric is not None:
            text = f"{METRICS[remark.metric].label} of {text}"
        elif remark.kind == "differences":
            text = remark.text
        elif remark.kind == "zeros":
            text = f"{remark.text}: {names}"
        out.print(cell(text, style="yellow" if remark.kind == "failed" else "dim"), soft_wrap=True)


def print_comparison(comparison: Comparison) -> None:
    """Print the advice, the table (best and ties bold, the best of the others italic), failures and warnings of the fits."""
    out, shown = console(), METRICS.in_table("methods")
    out.print()
    out.print(cell(comparison.rows_words()), soft_wrap=True)
    out.print(cell(f"binned metrics: {comparison.bins_words}", style="dim"), soft_wrap=True)
    if comparison.in_sample:
        out.print(
            cell("IN-SAMPLE: judged on the rows that the maps were fitted on.", style="bold red"),
            soft_wrap=True,
        )
    out.print()
    criterion, advice = comparison.criterion, comparison.advice
    if advice is not None:
        out.print(cell(advice.headline, style="bold"), soft_wrap=True)
        for reason in advice.reasons:
            out.print(cell(f"- {reason}"), soft_wrap=True)
        out.print()
    columns = comparison.columns(shown)
    out.print(_method_table(comparison, columns, criterion))
    out.print()
    if criterion is not None:
        text = f"Against uncalibrated: by {METRICS[criterion].label}; {AGAINST_WORDS}."
        out.print(cell(text, style="dim"), soft_wrap=True)
    out.print(cell(f"{gain_words('>=')}.", style="dim"), soft_wrap=True)
    for key, names in comparison.tied.items():
        if key in shown and len(names) > 1:
            text = f"{METRICS[key].label}: {TIED_WORDS}: {', '.join(names)}"
            out.print(cell(text, style="dim"), soft_wrap=True)
    if comparison.tied:
        out.print(cell(f"Ties: {refit_words(comparison.refits)}.", style="dim"), soft_wrap=True)
    print_remarks(comparison.remarks(columns))


def _method_table(
    comparison: Comparison, columns: Sequence[ComparisonColumn], criterion: str | None
) -> Table:
    against = () if criterion is None else ("against uncalibrated",)
    more: dict[str, list[str]] = {}
    for m in comparison.ready:
        cells: list[str] = []
        if criterion is not None:
            change = m.differences.get(criterion)
            cells.append("-" if change is None else change.verdict)
        bound = ">= " if m.gain_is_lower_bound else ""
        cells += [
            f"{m.predictions_changed:,}",
            f"{bound}{m.calibration_gain:.4f}",
            f"{m.fit_seconds:.2f} s",
        ]
        more[m.key] = cells
    return result_table("method", columns, more, (*against, "predictions changed", "gain", "fit"))


def print_models(comparison: ModelComparison) -> None:
    """Print how the rows were matched, the table (best and ties bold, the best of the others italic), and the ranks."""
    out, shown = console(), METRICS.in_table("models")
    out.print()
    for note in comparison.alignment.notes:
        out.print(cell(note), soft_wrap=True)
    split = f"split {short_name(comparison.split)}" if comparison.split else "all rows"
    text = f"{counted(comparison.rows, 'row')} ({split}); binned metrics: {comparison.bins_words}"
    out.print(cell(text), soft_wrap=True)
    out.print()
    columns = comparison.columns(shown)
    out.print(result_table("model", columns, {m.name: [] for m in comparison if m.ok}))
    out.print()
    for metric in comparison.pairs:
        if metric in shown:
            out.print(cell(_rank_words(comparison, metric), style="dim"), soft_wrap=True)
    if comparison.pairs:
        text = "Rank: 1 plus the number of models that are better beyond noise (95 %, all pairs taken into account)."
        out.print(cell(text, style="dim"), soft_wrap=True)
    print_remarks(comparison.remarks(columns))


def _rank_words(comparison: ModelComparison, metric: str) -> str:
    texts = [f"{rank}. {short_name(name)}" for name, rank in comparison.ranks(metric).items()]
    return f"{METRICS[metric].label}: {', '.join(texts)}"


# ---- Arena


#: Number of methods named for each range of rows or classes.
FIRST = 3


def print_arena(arena: Arena) -> None:
    """Print each leaderboard, the leading methods by number of rows and of classes, and the notes."""
    out = console()
    for board in arena.boards:
        out.print()
        out.print(cell(headline(board), style="bold"), soft_wrap=True)
        out.print()
        out.print(_board_table(board))
        out.print()
        for score, c in board.critical.items():
            first, *_ = c.ranks
            alike = next((clique for clique in c.cliques() if first in clique), (first,))
            text = (
                f"{METRICS[score].label}: mean ranks that differ by less than {c.difference:.2f} are not told apart (Nemenyi, "
                f"{counted(c.blocks, 'data set')}; Friedman {p_value(c.p_value)}); "
                f"not told apart from the first: {', '.join(map(short_name, alike[1:])) or 'none'}."
            )
            out.print(cell(text, style="dim"), soft_wrap=True)
        out.print(cell(rated_words(board), style="dim"), soft_wrap=True)
        if parts := arena.strata.get(board.key, ()):
            out.print()
            out.print(_range_table(parts))
    out.print()
    for note in arena.notes:
        out.print(cell(note, style="yellow"), soft_wrap=True)


def _board_table(board: Leaderboard) -> Table:
    labels = [METRICS[score].label for score in SCORES]
    titles = [f"{label}: winrate (95 %)" for label in labels] + [f"Elo {label}" for label in labels]
    if board.baseline is not None:
        titles += ["gain, points", "median", "worse than none", "by NLL"]
    table = table_of("method", *titles, "time")
    best = {score: board.ranking(score)[0].method for score in SCORES}
    for s in board:
        cells = [
            Text(winrate_text(s, score), style="bold" if s.method == best[score] else "")
            for score in SCORES
        ]
        cells += [cell(f"{s.elo[score]:,.0f}" if score in s.elo else "-") for score in SCORES]
        if board.baseline is not None:
            cells += [cell(text) for text in _against(s, board.baseline)]
        table.add_row(cell(short_name(s.method)), *cells, cell(seconds_text(s.seconds)))
    return table


def _against(s: Standing, baseline: str) -> tuple[str, ...]:
    if s.method == baseline:
        return ("", "", "", "")
    return (
        points(s.gain[SCORES[0]], 2, plus=True),
        points(s.median_gain[SCORES[0]], 2, plus=True),
        *(percent(s.worse_than_none[score], 0) for score in SCORES),
    )


def _range_table(parts: tuple[Leaderboard, ...]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("range", "experiments", *(f"first by {METRICS[s].label}" for s in SCORES)):
        table.add_column(title, justify="right" if title == "experiments" else "left", no_wrap=True)
    for part in parts:
        firsts = [
            ", ".join(
                f"{short_name(s.method)} {s.winrate[score]:.3f}"
                for s in part.ranking(score)[:FIRST]
            )
            for score in SCORES
        ]
        table.add_row(cell(part.title), cell(f"{len(part.table):,}"), *map(cell, firsts))
    return table


def print_over_time(result: OverTime) -> None:
    """Print the table of periods (bold where they differ beyond chance) and the conclusions."""
    from calviz.figures.metric_over_time import OverTimeLine

    out, figure = console(), OverTimeLine.compute(result)
    metric = METRICS[result.metric].label
    table = table_of(result.every, "rows", metric, "95 % CI", "noise", "adjusted p", "on past")
    for p in result.periods:
        after = "-" if p.recalibrated is None else _value_text(p.recalibrated)
        floor = p.result.noise_floor
        cells = (
            f"{p.rows:,}",
            _value_text(p.result),
            "-"
            if p.result.interval is None
            else f"{p.result.interval.low:.4f} to {p.result.interval.high:.4f}",
            "-" if floor is None else f"{floor.mean:.4f}",
            "-" if p.adjusted != p.adjusted else f"{p.adjusted:.3f}",
            after,
        )
        style = "bold" if p.adjusted <= result.level else ""
        table.add_row(Text(p.name, style=style), *(Text(c, style=style) for c in cells))
    out.print()
    out.print(table)
    out.print()
    for text in filter(None, (figure.answer(), figure.past())):
        out.print(cell(text), soft_wrap=True)
    if result.small:
        text = f"{counted(result.small, 'period')} with too few rows left out."
        out.print(cell(text, style="dim"), soft_wrap=True)


def _value_text(result: MetricResult) -> str:
    return f"{result.value:.4f}" if result.available else "-"


def print_profile(profile: Profile, path: str) -> None:
    """Print what a profile holds, and which files were left out."""
    out = console()
    out.print(cell(f"{short_name(path)}: {profile.sentence()}"), soft_wrap=True)
    skipped = profile.facts.skipped
    if skipped:
        names = listed([short_name(name) for name in skipped])
        out.print(
            cell(
                f"  left out {counted(len(skipped), 'file')} that cannot be read: {names}",
                "yellow",
            ),
            soft_wrap=True,
        )
