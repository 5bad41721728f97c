"""``calviz audit``: measure whether probabilities can be trusted, print, write and gate."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal
from xml.etree import ElementTree as Xml

import click

from calviz.cli import command_group, options
from calviz.cli.command_group import CROSSED, FINE, WRONG, as_given, check_output, say, show
from calviz.core.entry_specs import METRICS
from calviz.core.errors import CalvizError, NotAvailable, OptionError, checked_cutoff, visible

if TYPE_CHECKING:
    from calviz.comparison.guaranteed_thresholds import ThresholdChoice
    from calviz.comparison.judging import Judged
    from calviz.core.entry_specs import Conventions
    from calviz.report.document import Part
    from calviz.sample.cutoff_and_grades import CutoffCounts
    from calviz.sample.sample import Sample
    from calviz.verdicts.evaluation import Evaluation


@dataclass(eq=False)
class Audit:
    """Measure the calibration of the predictions in FILE, and say what was found.

    A file that cannot be used is named and the others are judged; the exit code is then 2, and no
    JSON or report is written (JUnit XML is, with the error). A report has one part per model of each file; it always includes error bars.

    Parameters
    ----------
    files : FILE...
    metrics : A,B,C
        Only these metrics (see 'calviz metrics') and the verdict, here and in the JSON, which otherwise holds all.
    brief
        Only the verdict, and at most five lines.
    all
        All metrics, and the findings in full.
    ci
        Add 95 % intervals, noise floors and p-values.
    conventions
        Add the ECE as scikit-learn, torchmetrics, netcal and others define it, and why each differs.
    by : COL
        Add a line for each value of a group column, such as the task: whether its scores are off,
        and from which confidence on they are right.
    risk
        Largest allowed share of wrong predictions (with --by or --guarantee).
    guarantee : CONFIDENCE
        Add the confidence from which on the share of wrong predictions is at most --risk on new rows, with this confidence, such as
        0.95: chosen on one split, observed on the other (see 'calviz threshold'); with --by for each value.
    preset
        What a report holds: default (a few pages), one-page (verdict, picture, what recalibration would bring, where to look, what can be kept), full,
        or what a guideline asks for: clinical (AUROC, calibration curve, net benefit, scores by outcome) or credit (also tests per
        rating grade).
    sections : KEYS
        What a report holds, section by section, separated by commas, such as verdict,reliability; all: those of --preset full.
    cutoff
        Add the consequences of deciding for the positive class (or --reduction class:NAME) at this cutoff of its probability; net
        benefit is computed there.
    grades : COL
        The group column that holds rating grades, for the report; recognised by default.
    sites : COL
        The group column that holds sites or centres, for the report (see 'calviz sites').
    fail_on : EXPR
        Exit with 1 if this holds (repeatable), such as "ece>0.05"; values are fractions.
        With --ci it has to hold for the value and its whole interval.
    junit : PATH
        Write every --fail-on as a test in JUnit XML, which build servers show; also written if one is crossed.
    model : NAME
        The models to use, if the file holds several (repeatable); all by default.
    """

    files: tuple[str, ...]
    _: KW_ONLY
    split: str | None = None
    reduction: options.HowJudged = None
    bins: options.BinCount = options.DEFAULT_BINS
    scheme: options.Scheme | None = None
    prevalence: options.Prevalence = None
    metrics: options.MetricKeys = None
    brief: bool = False
    all: bool = False
    ci: bool = False
    conventions: bool = False
    by: str | None = None
    risk: Annotated[float, {"type": click.FloatRange(0, 1)}] = 0.1
    guarantee: options.Level[float | None] = None
    outputs: options.Outputs
    preset: Literal["default", "one-page", "full", "clinical", "credit"] | None = None
    sections: str | None = None
    cutoff: float | None = None
    grades: str | None = None
    sites: str | None = None
    fail_on: tuple[str, ...] = ()
    junit: options.OutputPath = None
    seed: options.Seed = 0
    resamples: options.Resamples = options.RESAMPLES
    model: tuple[str, ...] = ()
    label_file: options.LabelFile | None
    reading: options.ReadingOptions

    def run(self) -> int:
        """Audit all files and return the exit code."""
        thresholds = [Threshold.of(text) for text in dict.fromkeys(self.fail_on)]
        for key in self.metrics or ():
            METRICS[key]  # an unknown key is refused before the file is read
        if self.all + self.brief + (self.metrics is not None) > 1:
            raise OptionError("give one of --all, --brief and --metrics.")
        check_output("--junit", self.junit)
        self._check_report()
        gates: list[Gate] = []
        records: list[dict[str, Any]] = []
        parts: list[Part] = []
        for file in self.files:
            audited: list[AuditedModel] = []
            try:
                for one in self._models(file):
                    gates += _gates(one, thresholds)
                    if self.outputs.json is not None:
                        records.append(self._record(one))
                    if self.outputs.reports:
                        parts.append(self._part(one))
                    audited.append(one)
                if self._compares(len(audited)):
                    parts[0] = self._with_models(parts[0], audited)
            except BrokenPipeError:
                raise
            except (CalvizError, OSError) as error:
                reason = command_group.sentence_on(error, file)
                say(reason, *command_group.ways_to_read(error))
                gates.append(Gate(as_given(file), "", "audit", "error", reason))
        if self.junit is not None:
            command_group.write(to_junit(gates), self.junit)
        outcomes = {gate.outcome for gate in gates}
        if "error" in outcomes:
            return WRONG
        self.outputs.write_json(records)
        if parts:
            from calviz.report.document import bind

            report = bind(parts)
            # A sheet that is handed round says when it was made.
            self.outputs.write(report.dated() if self.preset == "one-page" else report)
        return CROSSED if "failure" in outcomes else FINE

    def _check_report(self) -> None:
        """Raise OptionError for options about a report if none is written, or that contradict each other."""
        for given, words in (
            (self.preset, f"--preset {self.preset} chooses sections of"),
            (self.sections, "--sections chooses sections of"),
            (self.grades, "--grades chooses a column for"),
        ):
            if given is not None and not self.outputs.reports:
                raise OptionError(f"{words} a report; add --html, --markdown or --pdf.")
        if self.sections is not None and self.preset is not None:
            raise OptionError("give --preset or --sections, not both.")
        if self.cutoff is not None:
            self.cutoff = checked_cutoff(self.cutoff, "--cutoff")
        _ = self._section_keys

    @cached_property
    def _section_keys(self) -> tuple[str, ...] | None:
        """The keys of ``--sections``; None for those of the preset."""
        if self.sections is None or self.sections == "all":
            return None
        from calviz.report.document import chosen_sections

        keys = [key.strip() for key in self.sections.split(",") if key.strip()]
        if not keys:
            raise OptionError("--sections names no section.")
        return tuple(section.key for section in chosen_sections(keys))

    @property
    def _settings(self) -> dict[str, Any]:
        names = ("split", "reduction", "bins", "scheme", "seed", "resamples")
        return {name: getattr(self, name) for name in names}

    def _models(self, file: str) -> Iterator[AuditedModel]:
        """Read a file, and judge and print model by model; large cached values of one are dropped before the next."""
        import calviz
        from calviz import at_prevalence, conventions, evaluate
        from calviz.cli import result_texts
        from calviz.figures.slice_gaps import check_column, levels_of
        from calviz.sample.sample import Sample
        from calviz.verdicts.analysis import first_metrics

        loaded = None
        if self.label_file is None:
            loaded = options.summed(file, self.reading, models=self.model, quiet=self.outputs.quiet)
        if loaded is None:
            loaded = options.read_file(file, self.reading, self.label_file)
        if (column := loaded.recognition.model_column) and column in (self.by, self.sites):
            reading = replace(self.reading, model_column="")
            loaded = options.read_file(file, reading, self.label_file)
        if self.prevalence is not None:
            models = {n: at_prevalence(m, self.prevalence) for n, m in loaded.models.items()}
            loaded = replace(loaded, models=models)
        names = options.chosen_models(loaded, self.model)
        for number, name in enumerate(names):
            sample = Sample.of(loaded.models[name], **self._settings)
            for column in (self.by, self.sites):
                if column is not None:
                    check_column(sample.data, column)
            counts = self._counts(sample)
            cutoff: dict[str, Any] = {} if self.cutoff is None else {"cutoff": self.cutoff}
            shown = self.metrics or first_metrics(sample)
            gates = (Threshold.of(text).metric for text in self.fail_on)
            every = self.all or (self.outputs.json is not None and self.metrics is None)
            keys = None if every else [*shown, *gates]
            evaluation = evaluate(sample, keys, ci=self.ci, classes=True, findings=True, **cutoff)
            others = conventions(sample, noise=self.ci) if self.conventions else None
            promise = judge = None
            if self.guarantee is not None:
                rows, how = loaded.models[name], (self.risk, self.guarantee)
                promise = calviz.threshold(rows, *how, by=self.by, seed=self.seed)
            if not self.outputs.quiet:
                if number == 0 and self.brief:
                    result_texts.print_splits(loaded)
                elif number == 0:
                    result_texts.print_recognition(file, loaded)
                named = len(loaded.models) > 1
                if self.brief:
                    file_of = as_given(file) if len(self.files) > 1 else ""
                    result_texts.print_brief(evaluation.only(shown), file_of, named=named)
                elif self.all:
                    result_texts.print_evaluation(evaluation, named=named)
                else:
                    short = evaluation.only(shown)
                    result_texts.print_screen(short, named=named, findings=self.metrics is None)
                if counts is not None:
                    result_texts.print_decisions(counts)
                if others is not None:
                    result_texts.print_conventions(others)
                if self.by is not None:
                    levels = levels_of(sample, self.by, self.risk)
                    result_texts.print_groups(levels, self.by, self.risk)
                if promise is not None:
                    show()
                    for line in repr(promise).splitlines():
                        show(line)
            if self.outputs.reports:
                from calviz.comparison.judging import judged_file

                with suppress(CalvizError):  # most files have none
                    judge = judged_file(file, loaded, name, self.reading.class_names or ())
            yield AuditedModel(
                as_given(file), name, loaded, sample, evaluation, others, counts, promise, judge
            )
            if self._compares(len(names)):
                # While what the verdict has drawn is still there.
                of_two = sample.reduction.kind == "positive"
                rivals = METRICS.in_table("rivals") + METRICS.in_table("two-classes") * of_two
                evaluate(sample, rivals, ci=True, noise_floor=False, findings=False)
            sample.let_go()  # free memory for the next model

    def _counts(self, sample: Sample) -> CutoffCounts | None:
        """Outcomes at the cutoff; raises OptionError if the sample cannot be judged there or has no such column of grades."""
        from calviz.sample.cutoff_and_grades import at_cutoff, decidable, grade_factor

        if self.grades is not None:
            grade_factor(sample.data, self.grades)
        if self.cutoff is None:
            return None
        try:
            return decidable(sample).view(at_cutoff, cutoff=self.cutoff)
        except NotAvailable as reason:
            raise OptionError(f"--cutoff: {reason}") from None

    def _record(self, one: AuditedModel) -> dict[str, Any]:
        from calviz.report.json_results import audit_record, convention_records

        extra: dict[str, Any] = {}
        if one.counts is not None:
            c = one.counts
            shares = {
                name.replace(" ", "_"): {
                    "value": value,
                    "interval": None if low != low else [low, high],
                }
                for name, (value, low, high) in c.shares().items()
            }
            nets = {"net_benefit": c.net_benefit}
            nets["net_benefit_of_acting_on_all"] = c.net_benefit_of_all
            counts = {**c.rows, "per_1000": c.per_1000}
            extra["decisions"] = {"cutoff": self.cutoff, **counts, **shares, **nets}
        if one.conventions is not None:
            extra["conventions"] = convention_records(one.conventions)
        if self.prevalence is not None:
            extra["prevalence"] = list(self.prevalence)
        if one.promise is not None:
            extra["threshold"] = one.promise.to_dict()
        verdict = one.evaluation.verdict
        assert verdict is not None  # an evaluation of all metrics includes findings and verdict
        return audit_record(
            one.evaluation,
            file=one.file,
            notices=one.loaded.notices,
            verdict=verdict.sentence,
            other_view=verdict.other_view,
            recognised=one.loaded.recognition.sentence(),
            repairs=one.loaded.repairs_made,
            digest=one.loaded.digest,
            seed=self.seed,
            resamples=self.resamples if self.ci else None,
            **extra,
        )

    def _part(self, one: AuditedModel) -> Part:
        """The part of a report about a model; its title names the file, if there are several."""
        from calviz.report import content, document

        several = len(one.loaded.models) > 1
        file = [one.loaded.file] if len(self.files) > 1 or not several else []
        preset = "full" if self.sections == "all" else self.preset or "default"
        if graded := "grades" in (self._section_keys or ()):
            content.check_grades(one.sample.data, self.grades)
        subject = content.Subject(
            one.sample,
            title=", ".join([*file, one.sample.data.name] if several else file),
            error_bars=True if self.ci else None,
            origin=content.Origin.of(one.loaded, self.reading),
            preset="credit" if graded else preset,
            cutoff=self.cutoff,
            grades=self.grades,
            sites=self.sites,
            whole=one.loaded.models[one.name],
            judged=one.judged,
        )
        names = tuple(dict.fromkeys(self.model)) or tuple(one.loaded.models)
        keys = content.preset_sections(preset, subject, models=len(names) * len(self.files))
        if one.name == names[-1] and preset == "default":
            keys = (*keys, "provenance")  # of the file, once
        return document.make_part(subject, sections=self._section_keys or keys)

    def _compares(self, models: int) -> bool:
        """Whether the report compares the models of the only file; it does so once, in the first part."""
        keys = self._section_keys
        wanted = self.preset in (None, "default", "full") if keys is None else "models" in keys
        return wanted and models > 1 and len(self.files) == 1 and bool(self.outputs.reports)

    def _with_models(self, part: Part, audited: list[AuditedModel]) -> Part:
        from calviz.comparison.compare_models import after_map, compare_models
        from calviz.report import content, document

        models = {one.name: one.loaded.models[one.name] for one in audited}
        samples = {one.name: one.sample for one in audited}
        try:
            comparison = compare_models(models, samples=samples, **self._settings)
        except CalvizError as error:  # they may have no row in common
            say(f"the models are not compared: {error}")
            return part
        comparison = after_map(comparison, models, resamples=self.resamples)
        subject = content.Subject(audited[0].sample, models=comparison)
        return document.with_section(part, "models", subject)


audit = options.command(Audit)


@dataclass(frozen=True)
class AuditedModel:
    """Results for one model of one file; `counts` are those at the cutoff."""

    file: str
    name: str
    loaded: options.Loaded
    sample: Sample
    evaluation: Evaluation
    conventions: Conventions | None
    counts: CutoffCounts | None
    promise: ThresholdChoice | None
    judged: Judged | None


def _gates(one: AuditedModel, thresholds: list[Threshold]) -> Iterator[Gate]:
    """Yield the verdict as a gate that always passes, then each threshold; crossed ones go to standard error."""
    several = len(one.loaded.models) > 1
    model = one.evaluation.name if several else ""
    source = f"{one.file}, {model}" if several else one.file
    verdict = one.evaluation.verdict
    yield Gate(one.file, model, "audit", text=verdict.sentence if verdict else "")
    for threshold in thresholds:
        crossing = threshold.crossed(one.evaluation)
        if crossing:
            say(f"{source}: {crossing}.")
        yield Gate(
            one.file, model, str(threshold), "failure" if crossing else "passed", crossing or ""
        )


# ---- Thresholds


_OPERATORS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


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
        match = re.fullmatch(r"\s*(\w+)\s*(>=|<=|>|<)\s*(\S+)\s*", text)
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


# ---- JUnit XML


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
    outcome: Literal["passed", "failure", "error"] = "passed"
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
