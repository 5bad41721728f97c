"""Results as text and tables for a terminal (imports rich)."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click
from rich.text import Text

from calviz.cli.command_group import as_given, cell, console, short_name, show, table_of
from calviz.comparison import arena_results, comparison_results
from calviz.comparison.arena_results import SCORES, Leaderboard, headline, rated_words, winrate_text
from calviz.comparison.comparison_results import (
    Comparison,
    ComparisonColumn,
    Mark,
    Remark,
    map_words,
    ranked_by,
    state_words,
    where_words,
)
from calviz.core import errors, events, words
from calviz.core.entry_specs import CHECKS, METRICS
from calviz.core.words import counted, decimal, percent, points, terminal_text
from calviz.data.loaded import Loaded, judged_split
from calviz.verdicts.evaluation import (
    Evaluation,
    Written,
    alone,
    missing,
    name_of,
    precision_words,
    remarks,
    value_text,
)
from calviz.verdicts.miscalibration_checks import unrepeated

if TYPE_CHECKING:
    from rich.table import Table

    from calviz.comparison.comparison_results import ModelComparison
    from calviz.comparison.over_time import OverTime
    from calviz.core.entry_specs import Conventions
    from calviz.figures.slice_gaps import Levels
    from calviz.sample.cutoff_and_grades import CutoffCounts
    from calviz.sample.slice_results import Slices


_SEVERITY_STYLES = {"info": "cyan", "warning": "yellow", "error": "bold red"}


def print_recognition(file: str, loaded: Loaded) -> None:
    """Print what was recognised in a file: one line, then the notices, the repairs and other readings on offer."""
    line = Text(terminal_text(as_given(file)), style="bold")
    line.append(f": {terminal_text(loaded.recognition.sentence())}", style="not bold")
    console().print(line, soft_wrap=True)
    for notice in loaded.notices:
        _finding(notice.severity, notice.code, notice.message)
    for way in loaded.offered:
        show(f"  offered: {way.in_shell()} ({way.label})")
    print_splits(loaded)


def print_splits(loaded: Loaded) -> None:
    """Say that all splits are used, if none is asked for, and which one the app opens with."""
    splits = next(iter(loaded.models.values())).split_names
    if len(splits) > 1 and click.get_current_context().params.get("split", "") is None:
        names, first = short_name(", ".join(splits)), judged_split(splits)
        one = f"{first!r}, as the app opens" if first else repr(splits[-1])
        show(f"  uses all rows; the file has the splits {names} (--split {one})")


def print_evaluation(evaluation: Evaluation, *, named: bool) -> None:
    """Print the verdict, the table of metrics and the findings; with `named`, also the name of the model."""
    _print_metrics(evaluation, named)
    for finding in evaluation.findings:
        _finding(finding.severity, finding.code, finding.message)


def print_screen(evaluation: Evaluation, *, named: bool, findings: bool) -> None:
    """Print what fits a screen: the verdict, few metrics, and what is wrong in a line each; with `named`, also the name of the model."""
    _print_metrics(evaluation, named)
    if not findings:
        return
    left = len(evaluation.findings) - _print_worst(evaluation)
    more = f" and {counted(left, 'more finding')}" if left else ""
    show(f"--all shows {len(METRICS)} metrics{more}, in full.", "dim")


def print_brief(evaluation: Evaluation, file: str, *, named: bool) -> None:
    """Print the verdict and at most five lines: the metrics, and the worst findings."""
    names = [name for name in (file, short_name(evaluation.name) if named else "") if name]
    verdict = "" if evaluation.verdict is None else evaluation.verdict.sentence
    show(": ".join([*names, verdict]), "bold")
    values = (f"{name_of(r)} {value_text(r.key, r.value)}" for r in evaluation if r.available)
    show(f"  {', '.join(values)}")
    _print_worst(evaluation)


def _print_worst(evaluation: Evaluation) -> int:
    """Print the worst findings, but for what the verdict says and remarks other than on slices, without their numbers; returns how many."""
    found = errors.worst_first(unrepeated(evaluation, evaluation.findings))
    # Number of findings on a screen.
    wrong = [f for f in found if f.severity != "info" or CHECKS[f.code].about == "slices"][:4]
    for f in wrong:
        _finding(f.severity, f.code, f.short or re.split("[:;] ", f.message.rstrip("."))[0])
    return len(wrong)


def _print_metrics(evaluation: Evaluation, named: bool) -> None:
    show()
    if named:
        console().print(cell(short_name(evaluation.name), style="bold underline"))
    if evaluation.verdict:
        show(evaluation.verdict.sentence, "bold")
        if evaluation.verdict.other_view:
            show(evaluation.verdict.other_view)
    reduction = short_name(events.Reduction.of(evaluation.reduction).label)
    if evaluation.reduction == "positive" and len(evaluation.classes) == 2:
        reduction += f" '{short_name(evaluation.classes[1].name)}'"
    show(f"{_rows_words(evaluation.rows, evaluation.split)}, {reduction}")
    show()
    console().print(_metric_table(evaluation))
    if any(r.noise_floor for r in evaluation):
        show(alone(evaluation.verdict), "dim")
    show()
    for names, text in (*remarks(evaluation), *missing(evaluation)):
        show(f"{names}: {text}", "dim")


def _rows_words(rows: int, split: str | None) -> str:
    return f"{counted(rows, 'row')} ({f'split {short_name(split)}' if split else 'all rows'})"


def print_conventions(conventions: Conventions) -> None:
    """Print the ECE as other libraries define it, and why each differs."""
    show()
    noise = conventions.noise
    calibrated = "" if math.isnan(noise) else f" ({_number(noise)} if calibrated)"
    show(f"calviz's ECE is {_number(conventions.ece)}{calibrated}; by default other libraries say:")
    show()
    titles = ("library", "function", "value", "difference", "if calibrated", "why")
    table = table_of(*titles, left=("function", "why"))
    table.columns[-1].no_wrap = False
    shown = 3 if conventions.redraws else 2
    if not conventions.redraws:
        table.columns.pop(4)
    for v in conventions:
        convention = v.convention
        numbers = [_number(v.value), _number(v.value - conventions.ece, "+.4f"), _number(v.noise)]
        if not v.available:
            numbers = ["n/a", "", ""]
        why = convention.why if v.reason is None else words.capitalised(v.reason)
        table.add_row(*map(cell, (convention.library, convention.call, *numbers[:shown], why)))
    console().print(table)


def print_decisions(counts: CutoffCounts) -> None:
    """Print what a cutoff means and what follows from it."""
    rows, per_1000 = counts.rows, counts.per_1000
    weighted = f", {words.number(per_1000['tp'] + per_1000['fp'], 2)} of 1,000 by weight"
    shares = ", ".join(
        f"{name} {percent(value)}" + ("" if low != low else f" ({percent(low)} to {percent(high)})")
        for name, (value, low, high) in counts.shares().items()
        if value == value
    )
    show()
    show(counts.meaning())
    show(
        f"Acting on {rows['tp'] + rows['fp']:,} of {sum(rows.values()):,} rows{weighted * counts.by_weight}: {shares}; net benefit {decimal(counts.net_benefit)} "
        f"(acting on everybody {decimal(counts.net_benefit_of_all)})."
    )


def _metric_table(evaluation: Evaluation) -> Table:
    results = [r for r in evaluation if r.available]
    bars = any(r.interval or r.noise_floor for r in results)
    profiled = any(r.exact is not None for r in results)
    titles = ["metric", "value"]
    titles += ["95 % interval", "if calibrated (95 %)", "p"] if bars else []
    titles += ["of the rows"] if profiled else []
    table = table_of(*titles, left=("of the rows",))
    for r in results:
        name, value, interval, mean, most, p = Written(r, evaluation.verdict).cells().values()
        cells = [name, value]
        cells += [interval, f"{mean} ({most})" if mean else "", p] if bars else []
        cells += [precision_words(r)] if profiled else []
        table.add_row(*map(Text, cells))
    return table


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


def print_groups(levels: Levels, column: str, risk: float) -> None:
    """Print one line per level of a group column: rows, mean score, share of hits, whether it is off, and its threshold.

    Parameters
    ----------
    levels : Levels
    column : str
        The group column.
    risk : float
        Largest allowed share of errors among the predictions kept.
    """
    show()
    console().print(_table_by_group(levels, column, risk))
    if few := levels.few:
        names = [short_name(name) or "missing" for name in few[:5]] + ["…"] * (len(few) > 5)
        some = f"{counted(len(few), 'value')} with fewer than {levels.least_rows} rows"
        show(f"{some}: {', '.join(names)}", "dim")
    text = f"Too high or low: beyond chance, corrected for all {len(levels.slices.slices)} values; the verdict looks at the slices of all columns. {' '.join(levels.guarantee(risk))}"
    show(text, "dim")


def _table_by_group(levels: Levels, column: str, risk: float) -> Table:
    """Return the table with one line per level."""
    right = f"{percent(1 - risk, 0)} right from confidence"
    names = words.score_and_hit(events.Reduction.of(levels.slices.reduction))
    titles = ["rows", *names, "gap (points)", "on new rows", "", right, "keeps", "right there"]
    table = table_of(short_name(column), *titles, left=("",))
    for s, choice in zip(levels.slices.slices, levels.choices, strict=True):
        gaps = (points(v, plus=True) for v in (s.gap, levels.slices.on_new_rows(s)))
        off = percent(s.score, 2), percent(s.hits, 2), *gaps
        texts = (s.where[0][1] or "missing", f"{s.rows:,}", *off, levels.word(s), *choice.cells)
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
    """Make a table, best bold, the best of those not tied with it italic.

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
    table = table_of(heading, *(column.written.heading for column in columns), *more)
    for row, cells in rows.items():
        values = (Text(c.text(row), _MARK_STYLES[c.mark(row)]) for c in columns)
        table.add_row(Text(short_name(row)), *values, *map(Text, cells))
    return table


def print_remarks(remarks: Iterable[Remark]) -> None:
    """Print the remarks below a table."""
    for remark in remarks:
        text = remark.words(", ".join(map(short_name, remark.of)))
        show(text, "yellow" if remark.kind == "failed" else "dim")


def print_comparison(comparison: Comparison, metrics: tuple[str, ...] | None = None) -> None:
    """Print the advice, the table (best bold, the best of those not tied with it italic), failures and warnings of the fits."""
    shown = METRICS.keys() if metrics == ("all",) else metrics or METRICS.in_table("methods")
    show()
    show(comparison.rows_words())
    show(f"binned metrics: {comparison.bins_words}", "dim")
    if comparison.rows_warning:
        show(comparison.rows_warning, "bold red")
    show()
    criterion, advice = comparison.criterion, comparison.advice
    if advice is not None:
        show(advice.headline, "bold")
        for reason in advice.reasons:
            show(f"- {reason}")
        show()
    columns = comparison.columns(shown)
    console().print(_method_table(comparison, columns, criterion))
    show()
    if criterion is not None:
        by = METRICS[criterion].label
        show(f"Against uncalibrated: by {by}; {comparison_results.AGAINST_WORDS}.", "dim")
    show(f"{comparison_results.gain_words('>=')}.", "dim")
    for key, names in comparison.tied.items():
        if key in shown and len(names) > 1:
            text = f"{METRICS[key].label}: {comparison_results.TIED_WORDS}: {', '.join(names)}"
            show(text, "dim")
    if comparison.tied:
        show(f"Ties: {comparison_results.refit_words(comparison.refits)}.", "dim")
    print_remarks(comparison.remarks(columns))


def _method_table(
    comparison: Comparison, columns: Sequence[ComparisonColumn], criterion: str | None
) -> Table:
    against = () if criterion is None else ("against uncalibrated",)
    more: dict[str, list[str]] = {}
    for m in comparison.ready:
        change = m.differences.get(criterion or "")
        more[m.key] = [
            *("-" if change is None else change.verdict for _ in against),
            f"{m.predictions_changed:,}",
            f"{'>= ' if m.gain_is_lower_bound else ''}{m.calibration_gain:.4f}",
            f"{m.fit_seconds:.2f} s",
        ]
    return result_table("method", columns, more, (*against, "predictions changed", "gain", "fit"))


def print_models(comparison: ModelComparison) -> None:
    """Print how the rows were matched, the table (best bold, the best of those not tied with it italic), and the ranks."""
    from calviz.figures.learning_curve import ModelDifferences

    shown = comparison.usual()
    show()
    for note in comparison.alignment.notes:
        show(note)
    rows = _rows_words(comparison.rows, comparison.split)
    show(f"{rows}; binned metrics: {comparison.bins_words}")
    show()
    columns = comparison.columns(shown)
    console().print(result_table("model", columns, {m.name: [] for m in comparison if m.ok}))
    show()
    for metric in (c.key for c in columns if c.key in comparison.pairs):
        figure = ModelDifferences.compute(comparison, metric=metric)
        apart = dict(zip(figure.models, map(figure.text, figure.differences), strict=True))
        ranks = comparison.ranks(metric).items()
        texts = (f"{rank}. {short_name(name)} {apart.get(name, '')}" for name, rank in ranks)
        show(f"{figure.label}: {', '.join(map(str.rstrip, texts))}", "dim")
    for text in (*state_words(comparison), where_words(comparison), *map_words(comparison)):
        if text:
            show(text)
    if ranked_by(comparison):
        text = "Rank: 1 plus the number of models that are better beyond noise (95 %, all pairs taken into account); beside it, the difference from the best with its interval."
        show(f"{text} {comparison_results.NOISELESS_WORDS}", "dim")
    print_remarks(comparison.remarks(columns))


def print_slices(result: Slices, *, every: bool = False) -> None:
    """Print the table of the slices that are most surely off, or of `every` one, bold where beyond chance, and what was left out."""
    summary = result.summary(every=every)
    table = table_of(*summary.header)
    shown = result.slices if every else result.own
    for row, one in zip(summary.rows, shown, strict=False):
        table.add_row(*(Text(c, style="bold" if one in result.off else "") for c in row))
    show()
    console().print(table)
    if len(summary.rows) < len(shown):
        show("--all shows every slice.", "dim")
    for note in summary.notes:
        show(note, "dim")
    show()


def print_over_time(result: OverTime) -> None:
    """Print the table of periods and the conclusions, that of the watch first."""
    from calviz.figures.metric_over_time import OverTimeLine

    figure = OverTimeLine.compute(result)
    columns = figure.table(result)
    table = table_of(*(textwrap.fill(heading, 10) for heading in columns))
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, cells))
    show()
    console().print(table)
    show()
    expected, watched, doubt = figure.before_labels(), "", ""
    if result.watch is not None:
        watched, doubt = result.watch.sentence(), result.watch.doubt if expected else ""
    for text in filter(None, (watched, figure.answer(), figure.past(), expected, doubt)):
        show(text)
    if result.small:
        show(f"{counted(result.small, 'period')} with too few rows left out.", "dim")


# ---- Arena


#: Number of methods named for each range of rows or classes.
FIRST = 3


def print_arena(arena: arena_results.Arena) -> None:
    """Print each leaderboard, the leading methods by number of rows and of classes, and the notes."""
    from calviz.figures.arena_ranks import CriticalRanks

    for board in arena.boards:
        show()
        show(headline(board), "bold")
        if caution := arena_results.few_words(board):
            show(caution, "yellow")
        show()
        console().print(_board_table(board))
        show()
        for score in board.critical:
            show(CriticalRanks.compute(board, score=score).describe(), "dim")
        show(rated_words(board), "dim")
        if parts := arena.strata.get(board.key, ()):
            show()
            console().print(_range_table(parts))
    show()
    for note in arena.notes:
        show(note, "yellow")


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
        texts = [f"{s.elo[score]:,.0f}" if score in s.elo else "-" for score in SCORES]
        if board.baseline is not None:
            texts += _against(s, board.baseline)
        table.add_row(
            cell(short_name(s.method)), *cells, *map(cell, [*texts, words.seconds_text(s.seconds)])
        )
    return table


def _against(s: arena_results.Standing, baseline: str) -> list[str]:
    if s.method == baseline:
        return ["", "", "", ""]
    gains = (s.gain[SCORES[0]], s.median_gain[SCORES[0]])
    worse = (s.worse_than_none[score] for score in SCORES)
    return [*(points(g, 2, plus=True) for g in gains), *(percent(share, 0) for share in worse)]


def _range_table(parts: tuple[Leaderboard, ...]) -> Table:
    firsts = [f"first by {METRICS[s].label}" for s in SCORES]
    table = table_of("range", "experiments", *firsts, left=firsts)
    for part in parts:
        named = (
            ", ".join(
                f"{short_name(s.method)} {s.winrate[score]:.3f}"
                for s in part.ranking(score)[:FIRST]
            )
            for score in SCORES
        )
        table.add_row(*map(cell, (part.title, f"{len(part.table):,}", *named)))
    return table
