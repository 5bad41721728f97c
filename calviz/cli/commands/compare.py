"""``calviz compare``: recalibrators side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calviz.cli.documents import Documents, document_options
from calviz.cli.group import FINE
from calviz.cli.method_options import method_options, parse
from calviz.cli.reading import reading_options
from calviz.cli.reduction import reduction_option
from calviz.cli.splitting import fitting_options, one_model
from calviz.cli.text import say
from calviz.core.output import write_output

if TYPE_CHECKING:
    from calviz.core.comparison import Comparison, MethodResult
    from calviz.core.reduction import Reduction
    from calviz.data import Loaded, ReadingOptions
    from calviz.report.document import Report


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--methods",
    default="all",
    show_default=True,
    metavar="A,B,C",
    help="Keys of recalibrators (see 'calviz methods'), or all; first+second is a composition.",
)
@click.option("--eval-split", metavar="NAME", help="The split to evaluate on.")
@click.option("--in-sample", is_flag=True, help="Allow the fit split to judge; it is labelled so.")
@fitting_options
@method_options
@reduction_option
@click.option("--model", metavar="NAME", help="Of a file with several models, this one.")
@click.option(
    "--json", "json_path", metavar="PATH", help="Write JSON; with - it goes to standard output."
)
@document_options
@reading_options
def command(
    file: str,
    methods: str,
    fit_split: str | None,
    eval_split: str | None,
    in_sample: bool,
    fit_fraction: float | None,
    cross_fit: int | None,
    seed: int,
    options: tuple[str, ...],
    reduction: Reduction | None,
    model: str | None,
    json_path: str | None,
    html_path: str | None,
    markdown_path: str | None,
    reading: ReadingOptions,
) -> int:
    """Fit recalibrators on some rows of FILE and compare them on others.

    A method that fails is a line with its reason; the others still finish.
    """
    from calviz.cli.audit_text import print_recognition
    from calviz.cli.compare_text import print_comparison
    from calviz.comparison import compare
    from calviz.data import read
    from calviz.data.writing import check_json

    own = parse(options)
    if json_path is not None:
        check_json(json_path)
    documents = Documents(html_path, markdown_path)
    documents.check()
    loaded = read(file, options=reading)
    quiet = json_path == "-"
    if not quiet:
        print_recognition(file, loaded)

    def progress(result: MethodResult, done: int, total: int) -> None:
        state = "" if result.ok else f": {result.reason}"
        say(f"[{done}/{total}] {result.key}{state}")

    found = compare(
        one_model(loaded, model),
        "all" if methods == "all" else [name.strip() for name in methods.split(",")],
        fit_split=fit_split,
        eval_split=eval_split,
        fit_fraction=fit_fraction,
        cross_fit=cross_fit,
        seed=seed,
        in_sample=in_sample,
        reduction=reduction,
        options=own,
        progress=progress,
    )
    if not quiet:
        print_comparison(found)
    if json_path is not None:
        from calviz.report.comparison import comparison_record
        from calviz.report.json import to_json

        text = to_json(comparison_record(found, file=file, digest=loaded.digest))
        if quiet:
            click.echo(text, nl=False)
        else:
            write_output(json_path, text)
    if documents:
        documents.write(_report(found, loaded, reading))
    return FINE


#: What a report on a comparison holds.
SECTIONS = ("verdict", "findings", "reliability", "comparison", "provenance", "definitions")


def _report(found: Comparison, loaded: Loaded, reading: ReadingOptions) -> Report:
    """The rows that judged, before any recalibration, and what each method makes of them."""
    from calviz.comparison.fitting import UNCALIBRATED
    from calviz.core.reduction import Reduction
    from calviz.report.document import compose
    from calviz.report.subject import Origin, Subject

    data = found[UNCALIBRATED].calibrated
    assert data is not None
    several = len(loaded.models) > 1
    subject = Subject(
        data=data,
        title=f"{loaded.file}, {found.name}" if several else loaded.file,
        split=found.evaluation.split,
        reduction=Reduction.of(found.reduction),
        seed=found.seed,
        origin=Origin.of(loaded, reading),
        comparison=found,
    )
    return compose(subject, sections=SECTIONS)
