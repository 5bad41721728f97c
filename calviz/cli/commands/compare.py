"""``calviz compare``: compare recalibrators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import click

from calviz.cli.command_group import FINE
from calviz.cli.fit_row_options import fitting_options, one_model
from calviz.cli.method_options import method_options, parse
from calviz.cli.output_options import check_output, json_option, write_json
from calviz.cli.reading import label_file_options, reading_options
from calviz.cli.report_options import Documents, document_options, only_one_output
from calviz.cli.row_sampling import draw_rows, judge_option, sample_option, say_drawn, why_drawn
from calviz.cli.sample_options import bins_option, reduction_option
from calviz.cli.text import naming, say
from calviz.core.errors import OptionError
from calviz.specs.recalibrator import RECALIBRATORS

if TYPE_CHECKING:
    from calviz.comparison.rows import Division
    from calviz.core.reduction import Reduction
    from calviz.data import LabelFile, Loaded, ReadingOptions
    from calviz.report.document import Report
    from calviz.results.comparison import Comparison, MethodResult


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--methods",
    default="all",
    show_default=True,
    metavar="A,B,C",
    help="Keys of recalibrators (see 'calviz methods'), or all; first+second is a composition.",
)
@fitting_options(judging=True)
@sample_option
@judge_option
@method_options
@reduction_option
@bins_option
@click.option(
    "--refits",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Refit each method N times on resampled rows, so that differences include the variation of the fit (such as 20).",
)
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@json_option
@document_options
@label_file_options
@reading_options
def command(
    file: str,
    methods: str,
    division: Division,
    sample: int | None,
    judge_sample: int | None,
    options: tuple[str, ...],
    reduction: Reduction | None,
    bins: int,
    refits: int,
    model: str | None,
    json_path: str | None,
    html_path: str | None,
    pdf_path: str | None,
    markdown_path: str | None,
    reading: ReadingOptions,
    labels: LabelFile | None,
) -> int:
    """Fit recalibrators on some rows of FILE and compare them on others.

    A method that fails is reported with its reason; the others still finish. From a folder, a pattern, or a file that may not fit into
    memory, a sample of rows is drawn to fit on, and another to judge on.
    """
    from calviz.cli.audit_text import print_recognition
    from calviz.cli.compare_text import print_comparison
    from calviz.comparison import Plan, carry_out
    from calviz.data import read

    parameters = parse(options)
    keys = _checked_keys(methods, parameters)
    check_output("--json", json_path)
    documents = Documents(html_path, markdown_path, pdf_path)
    documents.check()
    quiet = only_one_output(json_path, documents)
    rows, loaded = None, None
    if why := why_drawn(file, sample, labels):
        if documents:
            raise _report_needs_all_rows(asked_for=sample is not None)
        rows = draw_rows(file, sample, judge_sample, model, reading, division)
        division = replace(division, fit_split=None, eval_split=None)
        if not quiet:
            say_drawn(file, why, rows)
    else:
        if judge_sample is not None:
            raise OptionError("--judge-sample goes with --sample.")
        with naming(file):
            loaded = read(file, options=reading, labels=labels)
        if not quiet:
            print_recognition(file, loaded)
    plan = Plan(
        methods=keys,
        division=division,
        reduction=reduction,
        bins=bins,
        refits=refits,
        options=parameters,
    )
    with naming(file):
        data = one_model(loaded, model) if loaded is not None else rows
        assert data is not None
        comparison = carry_out(plan, data, progress=_say_progress)
    if not quiet:
        print_comparison(comparison)
    if json_path is not None:
        from calviz.report.comparison_json import comparison_record

        extra: dict[str, Any] = {"digest": loaded.digest} if loaded is not None else {}
        extra |= {"sample": rows.record()} if rows is not None else {}
        write_json(comparison_record(comparison, file=file, **extra), json_path)
    if documents and loaded is not None:
        documents.write(_report(comparison, loaded, reading))
    return FINE


def _checked_keys(
    methods: str, parameters: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...] | Literal["all"]:
    """Split --methods into keys; unknown keys and options of other methods are refused before the file is read."""
    from calviz.comparison.plan import check_options

    if methods == "all":
        check_options(parameters, RECALIBRATORS.keys(), "--option")
        return "all"
    keys = tuple(key.strip() for key in methods.split(","))
    check_options(parameters, keys, "--option")
    for key in keys:
        RECALIBRATORS[key]  # raises OptionError for an unknown key
    return keys


def _report_needs_all_rows(*, asked_for: bool) -> OptionError:
    """Return the error about a report on a drawn sample, which was `asked_for` by --sample or drawn because the file is large."""
    remedy = "leave out --sample, or write --json" if asked_for else "write --json instead"
    return OptionError(f"a report needs all rows, and here a sample is drawn: {remedy}.")


def _say_progress(result: MethodResult, done: int, total: int) -> None:
    state = "" if result.ok else f": {result.reason}"
    say(f"[{done}/{total}] {result.key}{state}")


def _report(comparison: Comparison, loaded: Loaded, reading: ReadingOptions) -> Report:
    """Report on the evaluation rows before recalibration, and on each method's results on them."""
    from calviz.core.reduction import Reduction
    from calviz.report.document import compose
    from calviz.report.section import brief
    from calviz.report.subject import Origin, Subject
    from calviz.sample.sample import Sample
    from calviz.specs.recalibrator import UNCALIBRATED

    data = comparison[UNCALIBRATED].calibrated
    assert data is not None
    several = len(loaded.models) > 1
    reduction = Reduction.of(comparison.reduction)
    sample = Sample(
        data,
        reduction,
        bins=comparison.bins,
        seed=comparison.seed,
        split=comparison.evaluation.split,
    )
    subject = Subject(
        sample,
        title=f"{loaded.file}, {comparison.name}" if several else loaded.file,
        origin=Origin.of(loaded, reading),
        comparison=comparison,
    )
    return compose(subject, sections=brief())
