"""Text output of an audit for the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from calviz.cli.text import cell, console, short_name
from calviz.core.reduction import Reduction
from calviz.results.metric_words import alone, missing, name_of, precision_words, remarks
from calviz.text.escape import terminal_text
from calviz.text.words import capitalised, counted, p_number

if TYPE_CHECKING:
    from calviz.data import Loaded
    from calviz.results.evaluation import Evaluation
    from calviz.results.metric_result import MetricResult
    from calviz.specs.convention import Conventions

_STYLES = {"info": "cyan", "warning": "yellow", "error": "bold red"}


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
    out.print(_table([r for r in evaluation if r.available]))
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


def _table(results: list[MetricResult]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("metric", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    bars = any(r.interval or r.noise_floor for r in results)
    if bars:
        table.add_column("95 % interval", justify="right", no_wrap=True)
        table.add_column("if calibrated (95 %)", justify="right", no_wrap=True)
        table.add_column("p", justify="right", no_wrap=True)
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
    line.append(f"{severity} {code}", style=_STYLES.get(severity, ""))
    line.append(f" {terminal_text(message)}")
    console().print(line, soft_wrap=True)
