"""``calviz audit``: measure whether probabilities can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calviz.cli.at_cutoff import DecisionOptions
from calviz.cli.group import CROSSED, FINE, WRONG
from calviz.cli.output_options import OutputOption, check_output, json_option, write_json
from calviz.cli.reading import label_file_options, reading_options
from calviz.cli.report_options import Documents, document_options, only_one_output
from calviz.cli.sample_options import bins_option, reduction_option, resamples_option, seed_option
from calviz.cli.text import say, sentence
from calviz.cli.threshold import Threshold
from calviz.core.atomic_files import write_output
from calviz.core.errors import CalvizError, InputError, OptionError
from calviz.core.options import checked_cutoff
from calviz.report.junit import CaseOutcome, Gate, to_junit

if TYPE_CHECKING:
    from calviz.core.reduction import Reduction
    from calviz.data import LabelFile, Loaded, ReadingOptions
    from calviz.report.document import Part
    from calviz.report.subject import Preset
    from calviz.results.evaluation import Evaluation
    from calviz.results.model_comparison import ModelComparison
    from calviz.sample.sample import Sample
    from calviz.specs.convention import Conventions


@dataclass(frozen=True)
class Audit:
    """Results for one model of one file."""

    file: str
    loaded: Loaded
    sample: Sample
    evaluation: Evaluation
    conventions: Conventions | None = None


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
    thresholds = [Threshold.of(text) for text in fail_on]
    settings = {
        "split": split,
        "reduction": reduction,
        "bins": bins,
        "seed": seed,
        "resamples": resamples,
    }
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
    quiet = only_one_output(json_path, documents)
    parts: list[Part] = []
    records: list[dict[str, Any]] = []
    gates: list[Gate] = []
    wrong = False
    for file in files:
        try:
            for audit in _audit(
                file,
                reading,
                labels,
                models,
                settings,
                ci,
                conventions,
                quiet=quiet,
                by=(by, risk),
                decisions=decisions,
            ):
                gates += _gates(audit, thresholds)
                if json_path is not None:
                    records.append(_record(audit, ci, decisions))
                if documents:
                    # The comparison of models is shown once, in the first part.
                    once = len(files) == 1 and not parts
                    models_compared = _compare_models(audit, models, settings) if once else None
                    named = len(files) > 1
                    parts.append(
                        _part(audit, ci, reading, models_compared, preset, decisions, named=named)
                    )
        except BrokenPipeError:
            raise
        except (CalvizError, OSError) as error:
            reason = _in_file(error, file)
            say(reason)
            gates.append(Gate(file, "", "audit", "error", reason))
            wrong = True
    if junit_path is not None:
        write_output(junit_path, to_junit(gates))
    if wrong:
        return WRONG
    if json_path is not None:
        write_json(records[0] if len(files) == len(records) == 1 else records, json_path)
    if documents:
        from calviz.report.document import bind

        documents.write(bind(parts))
    return CROSSED if any(gate.outcome == "failure" for gate in gates) else FINE


def _audit(
    file: str,
    reading: ReadingOptions,
    labels: LabelFile | None,
    models: tuple[str, ...],
    settings: Mapping[str, Any],
    ci: bool,
    conventions: bool,
    *,
    quiet: bool,
    by: tuple[str | None, float] = (None, 0.1),
    decisions: DecisionOptions,
) -> Iterator[Audit]:
    from calviz import analysis
    from calviz.cli.audit_text import print_conventions, print_evaluation, print_recognition
    from calviz.cli.by_group import print_groups
    from calviz.data import read
    from calviz.sample.sample import Sample

    loaded = _out_of_core(file, reading, quiet=quiet) if labels is None else None
    if loaded is None:
        loaded = read(file, options=reading, labels=labels)
    unknown = [name for name in models if name not in loaded.models]
    if unknown:
        known = ", ".join(loaded.models)
        raise OptionError(f"there is no model '{unknown[0]}'; known: {known}.")
    for number, name in enumerate(models or loaded.models):
        sample = Sample.of(loaded.models[name], **settings)
        if by[0] is not None:
            from calviz.figures.kernels.group_levels import check_column

            check_column(sample.data, by[0])
        decisions.check(sample)
        evaluation = analysis.evaluate(sample, ci=ci, **decisions.options)
        others = analysis.conventions(sample, noise=ci) if conventions else None
        audit = Audit(file, loaded, sample, evaluation, others)
        if not quiet:
            if number == 0:
                print_recognition(file, loaded)
            print_evaluation(audit.evaluation, named=len(loaded.models) > 1)
            decisions.print(sample)
            if audit.conventions is not None:
                print_conventions(audit.conventions)
            if by[0] is not None:
                print_groups(sample, by[0], by[1])
        yield audit
        sample.let_go()  # free memory for the next model


def _out_of_core(file: str, reading: ReadingOptions, *, quiet: bool) -> Loaded | None:
    """Load several files, or a file that does not fit into memory, as a profile; None for any other source."""
    from calviz.cli.progress import showing_progress
    from calviz.data.profile_files import loaded
    from calviz.data.profiling.run import options_and_time, profile
    from calviz.data.profiling.sources import why_out_of_core

    why = why_out_of_core(file)
    if not why:
        return None
    if not quiet:
        say(f"{file}: {why}, so it is summed part by part and judged from its profile.")
    options, time, every = options_and_time(reading)
    with showing_progress():
        summed = profile([file], by=reading.groups or (), time=time, every=every, **options)
    return loaded(summed, Path(file).name)


def _gates(audit: Audit, thresholds: list[Threshold]) -> Iterator[Gate]:
    """Yield the verdict as a gate that always passes, then each threshold; crossed ones go to standard error."""
    several = len(audit.loaded.models) > 1
    model = audit.evaluation.name if several else ""
    source = f"{audit.file}, {model}" if several else audit.file
    verdict = audit.evaluation.verdict
    yield Gate(audit.file, model, "audit", text=verdict.sentence if verdict else "")
    for threshold in thresholds:
        crossing = threshold.crossed(audit.evaluation)
        if crossing:
            say(f"{source}: {crossing}.")
        outcome: CaseOutcome = "failure" if crossing else "passed"
        yield Gate(audit.file, model, str(threshold), outcome, crossing or "")


def _record(audit: Audit, ci: bool, decisions: DecisionOptions) -> dict[str, Any]:
    from calviz.report.json import audit_record, convention_records

    extra: dict[str, Any] = decisions.record(audit.sample)
    if audit.conventions is not None:
        extra["conventions"] = convention_records(audit.conventions)
    verdict = audit.evaluation.verdict
    assert verdict is not None  # an evaluation of all metrics includes findings and verdict
    return audit_record(
        audit.evaluation,
        file=audit.file,
        notices=audit.loaded.notices,
        verdict=verdict.sentence,
        other_view=verdict.other_view,
        recognised=audit.loaded.recognition.sentence(),
        repairs=audit.loaded.repairs_made,
        digest=audit.loaded.digest,
        seed=audit.sample.seed,
        resamples=audit.sample.resamples if ci else None,
        **extra,
    )


def _compare_models(
    audit: Audit, models: tuple[str, ...], settings: Mapping[str, Any]
) -> ModelComparison | None:
    """Compare the models of a file; None if there is only one."""
    from calviz.comparison import compare_models

    names = models or tuple(audit.loaded.models)
    if len(names) < 2:
        return None
    return compare_models(
        {name: audit.loaded.models[name] for name in names},
        **settings,
    )


def _part(
    audit: Audit,
    ci: bool,
    reading: ReadingOptions,
    models_compared: ModelComparison | None,
    preset: Preset | None,
    decisions: DecisionOptions,
    *,
    named: bool,
) -> Part:
    from calviz.report.document import make_part
    from calviz.report.presets import sections_of
    from calviz.report.subject import Origin, Subject

    several = len(audit.loaded.models) > 1
    names = [audit.loaded.file] * (named or not several) + [audit.sample.data.name] * several
    subject = Subject(
        audit.sample,
        title=", ".join(names),
        error_bars=True if ci else None,
        origin=Origin.of(audit.loaded, reading),
        models=models_compared,
        preset=preset,
        cutoff=decisions.cutoff,
        grades=decisions.grades,
    )
    return make_part(subject, sections=sections_of(preset, subject) if preset else None)


def _in_file(error: CalvizError | OSError, file: str) -> str:
    if isinstance(error, InputError):
        return sentence(error.in_file(Path(file).name))
    return sentence(error) if isinstance(error, OSError) else f"{file}: {sentence(error)}"
