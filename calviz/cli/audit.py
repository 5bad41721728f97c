"""``calviz audit``: measure whether probabilities can be trusted, print, write and gate."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree as Xml

import click

from calviz.cli.command_group import (
    CROSSED,
    FINE,
    WRONG,
    OutputOption,
    cell,
    check_output,
    console,
    json_option,
    say,
    sentence_on,
    showing_progress,
    ways_to_read,
    write_json,
)
from calviz.cli.options import (
    Documents,
    bins_option,
    document_options,
    label_file_options,
    only_one_output,
    prevalence_option,
    reading_options,
    reduction_option,
    resamples_option,
    seed_option,
)
from calviz.core.entry_specs import METRICS
from calviz.core.errors import CalvizError, NotAvailable, OptionError, checked_cutoff, visible
from calviz.core.limits import write_output
from calviz.verdicts.evaluation import Evaluation

if TYPE_CHECKING:
    from calviz.comparison.guaranteed_thresholds import ThresholdChoice
    from calviz.core.entry_specs import Conventions
    from calviz.core.events import Reduction
    from calviz.data import LabelFile, Loaded, ReadingOptions
    from calviz.report.content import Preset
    from calviz.report.document import Part
    from calviz.sample.cutoff_and_grades import CutoffCounts
    from calviz.sample.sample import Sample


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--split", metavar="NAME", help="Only the rows of this split.")
@reduction_option
@bins_option
@prevalence_option
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
    help="Largest allowed share of wrong predictions (with --by or --guarantee).",
)
@click.option(
    "--guarantee",
    type=float,
    metavar="CONFIDENCE",
    help="Add the confidence from which on the share of wrong predictions is at most --risk on new rows, with this confidence, such as "
    "0.95: chosen on one split, observed on the other (see 'calviz threshold'); with --by for each value.",
)
@json_option
@document_options
@click.option(
    "--preset",
    type=click.Choice(["default", "one-page", "full", "clinical", "credit"]),
    help="What a report holds: default (a few pages), one-page (verdict, picture, what a correction would bring, worst rows), full, "
    "or what a guideline asks for: clinical (AUROC, calibration curve, net benefit, scores by outcome) or credit (also tests per "
    "rating grade).",
)
@click.option(
    "--sections",
    metavar="KEYS",
    help="What a report holds, section by section, separated by commas, such as verdict,reliability; all: those of --preset full.",
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
    "chosen",
    multiple=True,
    metavar="NAME",
    help="The models to use, if the file holds several (repeatable); all by default.",
)
@label_file_options
@reading_options
def audit(
    files: tuple[str, ...],
    json_path: str | None,
    documents: Documents,
    preset: Preset | None,
    sections: str | None,
    cutoff: float | None,
    grades: str | None,
    fail_on: tuple[str, ...],
    junit_path: str | None,
    chosen: tuple[str, ...],
    reading: ReadingOptions,
    labels: LabelFile | None,
    split: str | None,
    reduction: Reduction | None,
    bins: int,
    ci: bool,
    conventions: bool,
    by: str | None,
    risk: float,
    guarantee: float | None,
    prevalence: tuple[float, ...] | None,
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
    documents.check()
    if preset is not None and not documents:
        raise OptionError(
            f"--preset {preset} chooses sections of a report; add --html, --markdown or --pdf."
        )
    if sections is not None:
        if not documents:
            raise OptionError(
                "--sections chooses sections of a report; add --html, --markdown or --pdf."
            )
        if preset is not None:
            raise OptionError("give --preset or --sections, not both.")
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
        models=tuple(dict.fromkeys(chosen)),
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
        guarantee=guarantee,
        prevalence=prevalence,
        quiet=only_one_output(json_path, documents),
    )
    outputs = Outputs(
        options,
        thresholds,
        json_path,
        junit_path,
        documents,
        "full" if sections == "all" else preset or "default",
        _section_keys(sections),
        several_files=len(files) > 1,
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


@dataclass(frozen=True)
class Audit:
    """Results for one model of one file."""

    file: str
    model: str
    loaded: Loaded
    sample: Sample
    evaluation: Evaluation
    conventions: Conventions | None = None
    promise: ThresholdChoice | None = None


@dataclass(frozen=True)
class AuditOptions:
    """How files are read and judged, and what is printed."""

    reading: ReadingOptions
    labels: LabelFile | None
    models: tuple[str, ...]
    settings: Mapping[str, Any]
    decisions: DecisionOptions
    ci: bool
    conventions: bool
    by: str | None
    risk: float
    guarantee: float | None
    prevalence: tuple[float, ...] | None
    quiet: bool


def audits_of(file: str, options: AuditOptions) -> Iterator[Audit]:
    """Read a file, and judge and print model by model; large cached values of one are dropped before the next."""
    from calviz.sample.sample import Sample
    from calviz.verdicts import analysis

    loaded = _read(file, options)
    for number, name in enumerate(options.models or loaded.models):
        sample = Sample.of(loaded.models[name], **options.settings)
        if options.by is not None:
            from calviz.figures.slice_gaps import check_column

            check_column(sample.data, options.by)
        options.decisions.check(sample)
        evaluation = analysis.evaluate(sample, ci=options.ci, **options.decisions.options)
        conventions = (
            analysis.conventions(sample, noise=options.ci) if options.conventions else None
        )
        promise = None
        if options.guarantee is not None:
            from calviz.comparison.guaranteed_thresholds import threshold

            promise = threshold(
                loaded.models[name],
                options.risk,
                options.guarantee,
                by=options.by,
                seed=options.settings["seed"],
            )
        audit = Audit(file, name, loaded, sample, evaluation, conventions, promise)
        if not options.quiet:
            _print(audit, options, with_recognition=number == 0)
        yield audit
        sample.let_go()  # free memory for the next model


def _read(file: str, options: AuditOptions) -> Loaded:
    from calviz.data import read

    loaded = None
    if options.labels is None:
        loaded = _out_of_core(file, options.reading, quiet=options.quiet)
    if loaded is None:
        loaded = read(file, options=options.reading, labels=options.labels)
    if options.prevalence is not None:
        from calviz.core.predictions import at_prevalence

        models = {n: at_prevalence(m, options.prevalence) for n, m in loaded.models.items()}
        loaded = replace(loaded, models=models)
    unknown = [name for name in options.models if name not in loaded.models]
    if unknown:
        known = ", ".join(loaded.models)
        raise OptionError(f"there is no model '{unknown[0]}'; known: {known}.")
    return loaded


def _print(audit: Audit, options: AuditOptions, *, with_recognition: bool) -> None:
    from calviz.cli.result_texts import (
        print_conventions,
        print_evaluation,
        print_groups,
        print_recognition,
    )

    if with_recognition:
        print_recognition(audit.file, audit.loaded)
    print_evaluation(audit.evaluation, named=len(audit.loaded.models) > 1)
    options.decisions.print(audit.sample)
    if audit.conventions is not None:
        print_conventions(audit.conventions)
    if options.by is not None:
        print_groups(audit.sample, options.by, options.risk)
    if audit.promise is not None:
        out = console()
        out.print()
        out.print(cell(repr(audit.promise)), soft_wrap=True)


def _out_of_core(file: str, reading: ReadingOptions, *, quiet: bool) -> Loaded | None:
    """Load several files, or a file that does not fit into memory, as a profile; None for any other source."""
    from calviz.data.any_size.file_sources import why_out_of_core
    from calviz.data.any_size.profiling import options_and_time, profile
    from calviz.data.reading import loaded_profile

    why = why_out_of_core(file)
    if not why:
        return None
    if not quiet:
        say(f"{file}: {why}, so it is summed part by part and judged from its profile.")
    options, time, every = options_and_time(reading)
    with showing_progress():
        summed = profile([file], by=reading.groups or (), time=time, every=every, **options)
    return loaded_profile(summed, Path(file).name)


@dataclass
class Outputs:
    """What is written at the end: tests of a build server, JSON and a report; collected model by model."""

    options: AuditOptions
    thresholds: list[Threshold]
    json_path: str | None
    junit_path: str | None
    documents: Documents
    preset: Preset
    sections: tuple[str, ...] | None
    several_files: bool
    gates: list[Gate] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    failed: bool = False

    def add(self, audit: Audit) -> None:
        """Add what was found about a model."""
        self.gates += _gates(audit, self.thresholds)
        if self.json_path is not None:
            self.records.append(_record(audit, self.options))
        if self.documents:
            part = _part(audit, self.options, self.preset, self.sections, named=self.several_files)
            self.parts.append(part)

    def add_comparison(self, audits: list[Audit]) -> None:
        """Add the comparison of the models of the only file; it is shown once, in the first part."""
        shown = (
            self.preset in ("default", "full")
            if self.sections is None
            else "models" in self.sections
        )
        if self.documents and not self.several_files and shown and len(audits) > 1:
            self.parts[0] = _with_models(self.parts[0], audits, self.options)

    def add_failure(self, file: str, error: CalvizError | OSError) -> None:
        """Add, and say, why a file cannot be used."""
        reason = sentence_on(error, file)
        say(reason, *ways_to_read(error))
        self.gates.append(Gate(file, "", "audit", "error", reason))
        self.failed = True

    def write(self) -> int:
        """Write everything, and return the exit code."""
        if self.junit_path is not None:
            write_output(self.junit_path, to_junit(self.gates))
        if self.failed:
            return WRONG
        if self.json_path is not None:
            one = not self.several_files and len(self.records) == 1
            write_json(self.records[0] if one else self.records, self.json_path)
        if self.documents:
            from calviz.report.document import bind

            report = bind(self.parts)
            # A sheet that is handed round says when it was made.
            self.documents.write(report.dated() if self.preset == "one-page" else report)
        return CROSSED if any(gate.outcome == "failure" for gate in self.gates) else FINE


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


def _record(audit: Audit, options: AuditOptions) -> dict[str, Any]:
    from calviz.report.json_results import audit_record, convention_records

    extra: dict[str, Any] = options.decisions.record(audit.sample)
    if audit.conventions is not None:
        extra["conventions"] = convention_records(audit.conventions)
    if options.prevalence is not None:
        extra["prevalence"] = list(options.prevalence)
    if audit.promise is not None:
        extra["threshold"] = audit.promise.to_dict()
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
        resamples=audit.sample.resamples if options.ci else None,
        **extra,
    )


def _section_keys(text: str | None) -> tuple[str, ...] | None:
    """Return the keys of ``--sections``; None for those of the preset."""
    if text is None or text == "all":
        return None
    from calviz.report.document import chosen_sections

    keys = [key.strip() for key in text.split(",") if key.strip()]
    if not keys:
        raise OptionError("--sections names no section.")
    return tuple(section.key for section in chosen_sections(keys))


def _part(
    audit: Audit,
    options: AuditOptions,
    preset: Preset,
    sections: tuple[str, ...] | None,
    *,
    named: bool,
) -> Part:
    """The part of a report about a model; `named`: whether its title names the file in any case."""
    from calviz.report.content import Origin, Subject, preset_sections
    from calviz.report.document import make_part

    several = len(audit.loaded.models) > 1
    names = [audit.loaded.file] * (named or not several) + [audit.sample.data.name] * several
    subject = Subject(
        audit.sample,
        title=", ".join(names),
        error_bars=True if options.ci else None,
        origin=Origin.of(audit.loaded, options.reading),
        preset=preset,
        cutoff=options.decisions.cutoff,
        grades=options.decisions.grades,
        whole=audit.loaded.models[audit.model],
    )
    return make_part(subject, sections=sections or preset_sections(preset, subject))


def _with_models(part: Part, audits: list[Audit], options: AuditOptions) -> Part:
    """Add the section that compares the models of a file."""
    from calviz.comparison.compare_models import compare_models
    from calviz.report.content import Subject
    from calviz.report.document import with_section

    comparison = compare_models(
        {audit.model: audit.loaded.models[audit.model] for audit in audits},
        samples={audit.model: audit.sample for audit in audits},
        **options.settings,
    )
    return with_section(part, "models", Subject(audits[0].sample, models=comparison))


# ---- Thresholds


_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*(\S+)\s*")


@dataclass(frozen=True)
class Threshold:
    """A metric, a comparison and a limit; the threshold is crossed if the comparison holds.

    Attributes
    ----------
    metric : str
        The metric's key.
    sign : {">", ">=", "<", "<="}
    limit : float
        A fraction, as everywhere (0.05, not 5).
    """

    metric: str
    sign: str
    limit: float

    @classmethod
    def of(cls, text: str) -> Threshold:
        """Read the written form, ``"ece>0.05"``.

        Raises
        ------
        OptionError
            Unless the text is a known metric, one of > >= < <=, and a finite number.
        """
        match = _FORM.fullmatch(text)
        limit = _number(match[3]) if match else None
        if match is None or limit is None:
            raise OptionError(
                f"--fail-on '{text}' is not understood; write a metric, one of > >= < <= "
                'and a number, such as "ece>0.05".'
            )
        return cls(METRICS[match[1]].key, match[2], limit)

    def crossed(self, evaluation: Evaluation) -> str | None:
        """Describe how the threshold is crossed; None if it is not.

        With an interval, the value and the whole interval must lie beyond the limit: sampling noise
        alone does not cross a threshold.

        Raises
        ------
        NotAvailable
            If the metric has no value: a gate that cannot be judged must not pass.
        """
        result = evaluation[self.metric]
        if not result.available:
            raise NotAvailable(f"--fail-on '{self}' cannot be judged: {result.reason}")
        beyond = _OPERATORS[self.sign]
        numbers = (result.value, *(result.interval or ()))
        if not all(beyond(number, self.limit) for number in numbers):
            return None
        text = f"{self.metric} is {result.value:.6g}"
        if result.interval:
            text += f" (interval {result.interval.low:.6g} to {result.interval.high:.6g})"
        return f"{text}, which crosses {self.sign} {self.limit:g}"

    def __str__(self) -> str:
        return f"{self.metric}{self.sign}{self.limit:g}"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


# ---- Decisions at a cutoff


@dataclass(frozen=True)
class DecisionOptions:
    """Options about decisions.

    Attributes
    ----------
    cutoff : float or None
        Rows whose score is at least this are acted on.
    grades : str or None
        The group column that holds rating grades.
    """

    cutoff: float | None = None
    grades: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments for `calviz.evaluate`."""
        return {} if self.cutoff is None else {"cutoff": self.cutoff}

    def check(self, sample: Sample) -> None:
        """Raise OptionError if the sample cannot be judged at the cutoff or has no such column of grades."""
        from calviz.sample.cutoff_and_grades import grade_factor

        if self.grades is not None:
            grade_factor(sample.data, self.grades)
        if self.cutoff is not None:
            self._cells(sample)

    def _cells(self, sample: Sample) -> CutoffCounts:
        from calviz.sample.cutoff_and_grades import at_cutoff, decidable

        try:
            return decidable(sample).view(at_cutoff, cutoff=self.cutoff)
        except NotAvailable as reason:
            raise OptionError(f"--cutoff: {reason}") from None

    def record(self, sample: Sample) -> dict[str, Any]:
        """Entry of the JSON; empty without a cutoff."""
        if self.cutoff is None:
            return {}
        c = self._cells(sample)
        shares = {
            name.replace(" ", "_"): {
                "value": value,
                "interval": None if low != low else [low, high],
            }
            for name, (value, low, high) in c.shares().items()
        }
        nets = {"net_benefit": c.net_benefit, "net_benefit_of_acting_on_all": c.net_benefit_of_all}
        return {"decisions": {"cutoff": self.cutoff, **c.whole, **shares, **nets}}

    def print(self, sample: Sample) -> None:
        """Print what the cutoff means and what follows from it; nothing without a cutoff."""
        if self.cutoff is None:
            return
        from calviz.core.words import decimal, percent

        c, out = self._cells(sample), console()
        rows = c.whole
        shares = ", ".join(
            f"{name} {percent(value)}"
            + ("" if low != low else f" ({percent(low)} to {percent(high)})")
            for name, (value, low, high) in c.shares().items()
            if value == value
        )
        out.print()
        out.print(cell(c.meaning()), soft_wrap=True)
        text = (
            f"Acting on {rows['tp'] + rows['fp']:,} of {sum(rows.values()):,} rows: {shares}; net benefit {decimal(c.net_benefit)} (acting on everybody "
            f"{decimal(c.net_benefit_of_all)})."
        )
        out.print(cell(text), soft_wrap=True)


# ---- JUnit XML


CaseOutcome = Literal["passed", "failure", "error"]


@dataclass(frozen=True)
class Gate:
    """One condition on one model of one file.

    Attributes
    ----------
    file, model : str
    name : str
        The condition ("ece>0.05"), or what was done ("audit").
    outcome : {"passed", "failure", "error"}
        Condition met, violated, or not evaluated.
    text : str
        A sentence on the outcome.
    """

    file: str
    model: str
    name: str
    outcome: CaseOutcome = "passed"
    text: str = ""


def to_junit(gates: Iterable[Gate]) -> str:
    """Write gates as XML, one suite per file; names and sentences are escaped.

    Examples
    --------
    >>> print(to_junit([Gate("a.csv", "MLP", "ece>0.05", "failure", "ece is 0.1")]))
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="calviz" tests="1" failures="1" errors="0">
      <testsuite name="a.csv" tests="1" failures="1" errors="0">
        <testcase classname="a.csv.MLP" name="ece&gt;0.05">
          <failure message="ece is 0.1" />
        </testcase>
      </testsuite>
    </testsuites>
    <BLANKLINE>
    """
    suites: dict[str, list[Gate]] = {}
    for gate in gates:
        suites.setdefault(gate.file, []).append(gate)
    everything = [gate for suite in suites.values() for gate in suite]
    root = Xml.Element("testsuites", {"name": "calviz", **_counts(everything)})
    for file, suite in suites.items():
        element = Xml.SubElement(root, "testsuite", {"name": visible(file), **_counts(suite)})
        for gate in suite:
            place = ".".join(visible(part) for part in (file, gate.model) if part)
            case = Xml.SubElement(element, "testcase", classname=place, name=visible(gate.name))
            if gate.outcome != "passed":
                Xml.SubElement(case, gate.outcome, message=visible(gate.text))
            elif gate.text:
                Xml.SubElement(case, "system-out").text = visible(gate.text)
    Xml.indent(root)
    text = Xml.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _counts(gates: list[Gate]) -> dict[str, str]:
    outcomes = [gate.outcome for gate in gates]
    return {
        "tests": str(len(gates)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
    }
