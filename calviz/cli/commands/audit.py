"""``calviz audit``: measure whether probabilities can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calviz.cli.at_cutoff import DecisionOptions
from calviz.cli.audit_models import Audit, AuditOptions, audits_of
from calviz.cli.audit_outputs import Outputs
from calviz.cli.fail_on import Threshold
from calviz.cli.output_options import OutputOption, check_output, json_option
from calviz.cli.reading import label_file_options, reading_options
from calviz.cli.report_options import Documents, document_options, only_one_output
from calviz.cli.sample_options import bins_option, reduction_option, resamples_option, seed_option
from calviz.core.errors import CalvizError, OptionError
from calviz.core.options import checked_cutoff

if TYPE_CHECKING:
    from calviz.core.reduction import Reduction
    from calviz.data import LabelFile, ReadingOptions
    from calviz.report.subject import Preset


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--split", metavar="NAME", help="Only the rows of this split.")
@reduction_option
@bins_option
@click.option("--ci", is_flag=True, help="Add 95 % intervals, noise floors and p-values.")
@click.option(
    "--conventions",
    is_flag=True,
    help="Add the ECE as scikit-learn, torchmetrics, netcal and others define it, and why each differs.",
)
@click.option(
    "--by",
    metavar="COL",
    help="Add a line for each value of a group column, such as the task: whether its scores are off, "
    "and from which confidence on they are right.",
)
@click.option(
    "--risk",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Largest allowed share of wrong predictions (with --by).",
)
@json_option
@document_options
@click.option(
    "--preset",
    type=click.Choice(["clinical", "credit"]),
    help="Report the sections that a guideline asks for: clinical (AUROC, calibration curve, net benefit, scores by outcome) "
    "or credit (also tests per rating grade).",
)
@click.option(
    "--cutoff",
    type=float,
    help="Add the consequences of deciding for the positive class (or --reduction class:NAME) at this cutoff of its probability; net "
    "benefit is computed there.",
)
@click.option(
    "--grades",
    metavar="COL",
    help="The group column that holds rating grades, for the report; recognised by default.",
)
@click.option(
    "--fail-on",
    "fail_on",
    multiple=True,
    metavar="EXPR",
    help='Exit with 1 if this holds (repeatable), such as "ece>0.05"; values are fractions. '
    "With --ci it has to hold for the value and its whole interval.",
)
@click.option(
    "--junit",
    "junit_path",
    cls=OutputOption,
    metavar="PATH",
    help="Write every --fail-on as a test in JUnit XML, which build servers show; also written if one is crossed.",
)
@seed_option
@resamples_option
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="NAME",
    help="The models to use, if the file holds several (repeatable); all by default.",
)
@label_file_options
@reading_options
def command(
    files: tuple[str, ...],
    json_path: str | None,
    html_path: str | None,
    pdf_path: str | None,
    markdown_path: str | None,
    preset: Preset | None,
    cutoff: float | None,
    grades: str | None,
    fail_on: tuple[str, ...],
    junit_path: str | None,
    models: tuple[str, ...],
    reading: ReadingOptions,
    labels: LabelFile | None,
    split: str | None,
    reduction: Reduction | None,
    bins: int,
    ci: bool,
    conventions: bool,
    by: str | None,
    risk: float,
    seed: int,
    resamples: int,
) -> int:
    """Measure the calibration of the predictions in FILE, and say what was found.

    A file that cannot be used is named and the others are judged; the exit code is then 2, and no
    JSON or report is written (JUnit XML is, with the error). A report has one part per model of each file; it always includes error bars.
    """
    thresholds = [Threshold.of(text) for text in dict.fromkeys(fail_on)]
    check_output("--json", json_path)
    check_output("--junit", junit_path)
    documents = Documents(html_path, markdown_path, pdf_path)
    documents.check()
    if preset is not None and not documents:
        raise OptionError(
            f"--preset {preset} chooses sections of a report; add --html, --markdown or --pdf."
        )
    if grades is not None and not documents:
        raise OptionError(
            "--grades chooses a column for a report; add --html, --markdown or --pdf."
        )
    decisions = DecisionOptions(
        None if cutoff is None else checked_cutoff(cutoff, "--cutoff"), grades
    )
    options = AuditOptions(
        reading=reading,
        labels=labels,
        models=tuple(dict.fromkeys(models)),
        settings={
            "split": split,
            "reduction": reduction,
            "bins": bins,
            "seed": seed,
            "resamples": resamples,
        },
        decisions=decisions,
        ci=ci,
        conventions=conventions,
        by=by,
        risk=risk,
        quiet=only_one_output(json_path, documents),
    )
    outputs = Outputs(
        options, thresholds, json_path, junit_path, documents, preset, several_files=len(files) > 1
    )
    for file in files:
        audits: list[Audit] = []
        try:
            for audit in audits_of(file, options):
                outputs.add(audit)
                audits.append(audit)
            outputs.add_comparison(audits)
        except BrokenPipeError:
            raise
        except (CalvizError, OSError) as error:
            outputs.add_failure(file, error)
    return outputs.write()
