"""Options that several commands share: how a file is read, rows are chosen, and reports are written."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from calviz.cli.command_group import (
    OutputOption,
    check_output,
    naming,
    say,
    showing_progress,
    write_text,
)
from calviz.core.errors import REPORT, OptionError, needs
from calviz.core.events import DEFAULT_BINS, Reduction, check_bins
from calviz.core.limits import DEFAULT_SAMPLE_ROWS, write_output
from calviz.sample.error_bars import RESAMPLES

if TYPE_CHECKING:
    from calviz.comparison.fitting import Division
    from calviz.core.predictions import Dataset
    from calviz.data import LabelFile, Loaded, ReadingOptions
    from calviz.data.any_size.sampling import RowSample
    from calviz.report.document import Report


def split_names(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    """Split a list of names at commas; a name that contains a comma is in double quotes."""
    if value is None:
        return None
    names = tuple(name.strip() for name in next(csv.reader([value], skipinitialspace=True), []))
    if not names or not all(names):
        raise click.BadParameter(f"'{value}' holds an empty name.", ctx, param)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise click.BadParameter(f"'{value}' names '{twice}' twice.", ctx, param)
    return names


_READING = (
    click.option("--label", metavar="COL", help="Column or array with the true class."),
    click.option(
        "--scores",
        callback=split_names,
        metavar="COL,COL|PREFIX*",
        help="Score columns, by name or by prefix; for NPZ files, the name of the array.",
    ),
    click.option(
        "--models",
        callback=split_names,
        metavar="COL,COL|PREFIX*",
        help="Score columns of which each is the probability of the event by a model of its own.",
    ),
    click.option(
        "--kind",
        type=click.Choice(["probabilities", "logits", "confidence"]),
        help="What the scores are.",
    ),
    click.option("--prediction-column", metavar="COL", help="Column with the predicted class."),
    click.option(
        "--correct-column",
        metavar="COL",
        help="Column that says whether the prediction was right.",
    ),
    click.option(
        "--split-column", metavar="COL", help="Column with the split; '' if there is none."
    ),
    click.option(
        "--group",
        "groups",
        multiple=True,
        metavar="COL",
        help="Column to slice by (repeatable); '' if there is none.",
    ),
    click.option(
        "--id",
        "id_column",
        metavar="COL",
        help="Column that identifies the rows; '' if there is none.",
    ),
    click.option(
        "--cluster",
        "cluster_column",
        metavar="COL",
        help="Column with the cluster of each row, such as the patient: intervals and p-values resample clusters.",
    ),
    click.option(
        "--weight",
        "weight_column",
        metavar="COL",
        help="Column with the weight of each row.",
    ),
    click.option(
        "--weight-kind",
        type=click.Choice(["importance", "frequency"]),
        default="importance",
        show_default=True,
        help="Whether the weights are importance weights, or counts of aggregated rows.",
    ),
    click.option(
        "--time",
        "time_column",
        metavar="COL",
        help="Column with the time of each row; '' if there is none.",
    ),
    click.option(
        "--class-names",
        callback=split_names,
        metavar="NAME,NAME",
        help="Names of the classes, in the order of the scores.",
    ),
    click.option(
        "--label-base",
        type=click.Choice(["0", "1"]),
        help="Whether numeric labels count the classes from 0 or from 1.",
    ),
    click.option("--sheet", metavar="NAME", help="Sheet of an Excel workbook."),
    click.option(
        "--choices",
        metavar="top|each|N",
        help="For questions with choices (logs of language models): judge the top choice, each choice by itself, "
        "or only the questions with N choices.",
    ),
    click.option(
        "--repair",
        multiple=True,
        metavar="REPAIR",
        help="A repair that calviz offered for this file (repeatable), such as renormalise.",
    ),
)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the reading options to a command, which receives them as one `ReadingOptions`."""

    @wraps(command)
    def with_reading(
        *args: Any, groups: tuple[str, ...], label_base: str | None, **kwargs: Any
    ) -> Any:
        from calviz.data import ReadingOptions

        others = [f.name for f in fields(ReadingOptions) if f.name not in ("groups", "label_base")]
        reading: ReadingOptions = ReadingOptions(
            groups=tuple(g for g in groups if g) if groups else None,
            label_base=None if label_base is None else 1 if label_base == "1" else 0,
            **{name: kwargs.pop(name) for name in others},
        )
        return command(*args, reading=reading, **kwargs)

    for option in reversed(_READING):
        with_reading = option(with_reading)
    return with_reading


def label_file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--labels`` and ``--on`` to a command, which receives them as one `LabelFile`, or None."""

    @click.option(
        "--labels",
        "label_file",
        metavar="FILE",
        help="Another file that holds the labels of the same rows.",
    )
    @click.option(
        "--on", metavar="COL", help="Column that identifies the rows in both files (with --labels)."
    )
    @wraps(command)
    def with_labels(*args: Any, label_file: str | None, on: str | None, **kwargs: Any) -> Any:
        from calviz.core.errors import OptionError
        from calviz.data import LabelFile

        if on is not None and label_file is None:
            raise OptionError(
                "--on names the identifier of two files: give the other one by --labels."
            )
        labels = None if label_file is None else LabelFile(label_file, on)
        return command(*args, labels=labels, **kwargs)

    return with_labels


# ---- Sample


def _parsed_reduction(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> Reduction | None:
    return None if text is None else Reduction.of(text)


def _checked_bins(_context: click.Context, _parameter: click.Parameter, bins: int) -> int:
    check_bins(bins)
    return bins


#: None if not given: the default reduction of the data.
reduction_option = click.option(
    "--reduction",
    metavar="R",
    callback=_parsed_reduction,
    help="Which probability is judged: positive (the second of two classes, the default with two), "
    "top-label (the largest, the default otherwise), top-2 ..., within-top-2 ... or class:NAME.",
)


def _parsed_shares(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(
            f"--prevalence '{text}' is not a number, or one for each class."
        ) from None


prevalence_option = click.option(
    "--prevalence",
    metavar="SHARE[,SHARE]",
    callback=_parsed_shares,
    help="Weight the rows so that class 1 of two has this share, or each class its own.",
)
bins_option = click.option(
    "--bins",
    default=DEFAULT_BINS,
    show_default=True,
    type=click.IntRange(min=1),
    callback=_checked_bins,
    help="Number of bins of binned metrics.",
)
seed_option = click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Seed of everything that is drawn at random.",
)
resamples_option = click.option(
    "--resamples",
    default=RESAMPLES,
    show_default=True,
    type=click.IntRange(min=1, max=100_000),
    help="Number of resamples for each interval and each noise floor.",
)


_FIT = (
    click.option("--fit-split", metavar="NAME", help="The split to fit on."),
    click.option(
        "--fit-fraction",
        type=float,
        metavar="SHARE",
        help="Instead: fit on this share of the rows, stratified, such as 0.5.",
    ),
    click.option(
        "--cross-fit",
        type=int,
        metavar="FOLDS",
        help="Instead: with this number of folds, calibrate every row by a map that never saw it.",
    ),
    seed_option,
)
_JUDGE = (
    click.option("--eval-split", metavar="NAME", help="The split to evaluate on."),
    click.option(
        "--in-sample",
        is_flag=True,
        help="Allow judging on the fitting rows; the result is labelled in-sample.",
    ),
)


def fitting_options(*, judging: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--fit-split``, ``--fit-fraction``, ``--cross-fit`` and ``--seed``; the command gets them as ``division``.

    Parameters
    ----------
    judging : bool
        Whether the command also has evaluation rows: adds ``--eval-split`` and ``--in-sample``.
    """
    options = (*_JUDGE, *_FIT) if judging else _FIT

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_division(**arguments: Any) -> Any:
            from calviz.comparison.fitting import Division

            choices = {
                f.name: arguments.pop(f.name) for f in fields(Division) if f.name in arguments
            }
            division = Division(**choices)
            division.check()
            return command(division=division, **arguments)

        for option in reversed(options):
            with_division = option(with_division)
        return with_division

    return add


def one_model(loaded: Loaded, name: str | None) -> Dataset:
    """Return the model to use; raises OptionError if the file holds several and none is named, or has none of that name."""
    names = ", ".join(loaded.models)
    if name is not None and name not in loaded.models:
        raise OptionError(f"there is no model '{name}'; known: {names}.")
    if name is None and len(loaded.models) > 1:
        raise OptionError(f"{loaded.file} holds several models; choose one with --model: {names}.")
    return loaded.models[name] if name is not None else loaded.first


MethodParameters = dict[str, dict[str, Any]]


def method_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the repeatable option ``--option METHOD.PARAMETER=VALUE``."""
    return click.option(
        "--option",
        "options",
        multiple=True,
        metavar="METHOD.PARAMETER=VALUE",
        help="A parameter of a method (see 'calviz methods'), such as temperature.floor=0.001 or isotonic.cap=false.",
    )(command)


def parse_parameters(texts: Iterable[str]) -> MethodParameters:
    """Parse the texts of ``--option`` into parameters by method.

    Raises
    ------
    OptionError
        If a text has another form, or names an unknown method or parameter.
    """
    parameters: MethodParameters = {}
    for text in texts:
        target, is_set, value = text.partition("=")
        method, dot, name = target.rpartition(".")
        if not (is_set and dot and method and name):
            raise OptionError(
                f"--option must be METHOD.PARAMETER=VALUE, such as temperature.floor=0.001; got '{text}'."
            )
        _check(method, name)
        parameters.setdefault(method, {})[name] = _value(value)
    return parameters


def _check(method: str, name: str) -> None:
    from calviz.core.entry_specs import RECALIBRATORS

    parameters = [p.name for p in RECALIBRATORS[method].parameters]
    if name not in parameters:
        have = f"it has {', '.join(parameters)}" if parameters else "it has none"
        raise OptionError(f"--option: '{method}' has no parameter '{name}'; {have}.")


def _value(text: str) -> Any:
    """Parse a JSON number (also .03), a list, true, false (also True, False) or null; anything else is text."""
    if text in ("True", "False"):
        return text == "True"
    try:
        return json.loads(re.sub(r"(^|[\[,\s-])\.(?=\d)", r"\g<1>0.", text))
    except json.JSONDecodeError:
        return text


# ---- Drawn rows


sample_option = click.option(
    "--sample",
    type=click.IntRange(min=10),
    metavar="ROWS",
    help="Number of rows drawn to fit on, from folders, patterns, and files that may not fit into memory.  "
    f"[default: {DEFAULT_SAMPLE_ROWS}]",
)
judge_option = click.option(
    "--judge-sample",
    type=click.IntRange(min=2),
    metavar="ROWS",
    help="Number of other rows drawn as evaluation rows.  [default: as --sample]",
)


def why_drawn(source: str, rows: int | None, labels: LabelFile | None) -> str:
    """Why a sample of rows is drawn; an empty text if all rows are read."""
    from calviz.data.any_size.file_sources import why_out_of_core

    if labels is not None:
        if rows is not None:
            raise OptionError("--sample cannot be combined with --labels.")
        return ""
    return "as asked" if rows is not None else why_out_of_core(source)


def draw_options(reading: ReadingOptions, division: Division) -> dict[str, Any]:
    """Arguments of `calviz.sample_rows` for the options of a command; raises OptionError for options that need all rows."""
    from calviz.data.any_size.profiling import options_and_time

    for name in ("fit_fraction", "cross_fit", "in_sample"):
        if name in division.given:
            raise OptionError(
                f"--{name.replace('_', '-')} needs all rows in memory: give --sample ROWS instead."
            )
    options = options_and_time(reading)[0]
    return options | {"seed": division.seed, "fit_split": division.fit_split}


def draw_rows(
    source: str,
    rows: int | None,
    evaluation_rows: int | None,
    model: str | None,
    reading: ReadingOptions,
    division: Division,
) -> RowSample:
    """Draw the rows to fit on and the evaluation rows."""
    from calviz.data.any_size.sampling import sample_rows

    rows = rows or DEFAULT_SAMPLE_ROWS
    options = draw_options(reading, division) | {"eval_split": division.eval_split}
    with showing_progress(), naming(source):
        return sample_rows([source], rows, judged=evaluation_rows or rows, model=model, **options)


def say_drawn(source: str, why: str, sample: RowSample) -> None:
    """Write to standard error why rows were drawn, and which."""
    say(f"{source}: {why}, so rows are drawn. {sample.sentence()}")


# ---- Reports


_DOCUMENTS = (
    click.option(
        "--html",
        "html_path",
        cls=OutputOption,
        metavar="PATH",
        help="Write a report as one HTML file that opens anywhere, offline.",
    ),
    click.option(
        "--pdf",
        "pdf_path",
        cls=OutputOption,
        metavar="PATH",
        help="Write the report as PDF; needs Chromium, Chrome or Edge on this machine.",
    ),
    click.option(
        "--markdown",
        "markdown_path",
        cls=OutputOption,
        metavar="PATH",
        help="Write the report as a model card; with - it goes to standard output, and nothing else does.",
    ),
)


@dataclass(frozen=True)
class Documents:
    """Paths of the reports to write; no file is touched before its report is written."""

    html: str | None
    markdown: str | None
    pdf: str | None = None

    @property
    def quiet(self) -> bool:
        """Whether the report goes to standard output, and nothing else does."""
        return self.markdown == "-"

    def __bool__(self) -> bool:
        return any(path is not None for path in (self.html, self.markdown, self.pdf))

    def check(self) -> None:
        """Check before the work starts that the reports can be written; raises OptionError."""
        if self:
            needs(*REPORT)
        paths = {"--html": self.html, "--markdown": self.markdown, "--pdf": self.pdf}
        for name, path in paths.items():
            if path is None or (path == "-" and name == "--markdown"):
                continue
            if path in ("", "-"):
                raise OptionError(f"{name} '{path}' is not a file; give the name of a file.")
            check_output(name, path)
        if self.pdf is not None:
            from calviz.report.printing import why_no_pdf

            if reason := why_no_pdf():
                raise OptionError(f"--pdf: {reason}")

    def write(self, report: Report) -> None:
        """Write the requested files, with the same bytes on every system."""
        if self.html is not None:
            write_output(self.html, report.html())
        if self.pdf is not None:
            from calviz.report.printing import to_pdf

            write_output(self.pdf, to_pdf(report.dated().html()))
        if self.markdown is not None:
            write_text(report.markdown(), self.markdown)


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--html``, ``--pdf`` and ``--markdown`` to a command, which receives them as one `Documents`."""

    @wraps(command)
    def with_documents(
        *args: Any,
        html_path: str | None,
        pdf_path: str | None,
        markdown_path: str | None,
        **kwargs: Any,
    ) -> Any:
        return command(*args, documents=Documents(html_path, markdown_path, pdf_path), **kwargs)

    for option in reversed(_DOCUMENTS):
        with_documents = option(with_documents)
    return with_documents


def only_one_output(json_path: str | None, documents: Documents) -> bool:
    """Whether JSON or a report is written to standard output; raises OptionError if both are."""
    if json_path == "-" and documents.quiet:
        raise OptionError(
            "--json - and --markdown - cannot share standard output; give one a file."
        )
    return json_path == "-" or documents.quiet
