"""What a verdict and an evaluation return, and how values of metrics are written, with the same unit and decimals everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from calviz.core import words
from calviz.core.entry_specs import METRICS, Interval, MetricResult, NoiseFloor, Unit
from calviz.core.errors import DataFrame, Finding, OptionError, claim, data_frame
from calviz.core.words import counted, decimal, p_value, percent, points, share_decimals, shorten
from calviz.sample.metric_results import Displayed, Summary

VerdictDirection = Literal["over", "under", "mixed", "off", "calibrated", "undecided"]


#: What is said of the rows outside the slices that are off.
NOT_OFF = "no miscalibration found"


@dataclass(frozen=True)
class BinGap:
    """A bin whose gap is beyond noise.

    Attributes
    ----------
    index : int
        0-based, empty bins included.
    low, high : float
        Edges of the bin.
    rows : int
    row_words : str
        The rows in words, as weighted rows are not counted.
    mean_score, observed : float
    interval : Interval
        Exact interval of the share of hits, simultaneous at 95 % for all bins.
    bins : int
        Number of non-empty bins, which the interval is adjusted for.
    expected, expected_interval : float, Interval
        Share of hits to expect there, as the bin was chosen for its gap (`calviz.sample.binning.expected_share`).
    few : bool
        Whether the rows are so few that they are counted where the bin is named.
    """

    index: int
    low: float
    high: float
    rows: int
    row_words: str
    mean_score: float
    observed: float
    interval: Interval
    bins: int
    expected: float
    expected_interval: Interval
    few: bool = False

    @property
    def gap(self) -> float:
        """Mean score minus share of hits."""
        return self.mean_score - self.observed

    @property
    def expected_gap(self) -> float:
        """Mean score minus the expected share of hits."""
        return self.mean_score - self.expected

    @property
    def slight(self) -> bool:
        """Whether the gap is slight."""
        return abs(self.gap) < words.SLIGHT

    @property
    def share_decimals(self) -> int:
        """Number of decimals of both shares in percent."""
        return share_decimals(self.mean_score, self.observed)

    @property
    def where(self) -> str:
        """The edges in words ("between 0.8 and 0.9")."""
        return words.between(self.low, self.high)

    @property
    def place(self) -> str:
        """The same, and how many rows it has if these are few ("between 0.8 and 0.9 (17 rows)")."""
        return self.where + f" ({self.row_words})" * self.few

    @property
    def percents(self) -> str:
        """The edges in percent ("between 80 and 90", "more than 9")."""
        where = self.where.replace("above", "more than")
        return re.sub(r"[\d.]+", lambda end: f"{100 * float(end[0]):.10g}", where)


@dataclass(frozen=True)
class CalibrationTest:
    """One of the tests that the verdict is based on.

    Attributes
    ----------
    key : str
        The tested metric.
    reduction : str
        Written form of the reduction; empty if the metric uses all classes.
    value, expected : float
        The metric, and its mean for a calibrated model.
    p_value : float
        p-value of this test alone.
    adjusted : float
        The p-value adjusted for all tests of the verdict (Westfall & Young 1993).
    """

    key: str
    reduction: str
    value: float
    expected: float
    p_value: float
    adjusted: float


@dataclass(frozen=True, kw_only=True)
class JudgedNumbers:
    """The numbers that a verdict is based on.

    Attributes
    ----------
    rows : int
    score, observed : float
        Mean score and share of hits (mean confidence and accuracy, for the top label).
    mcs : float
        Mean score minus share of hits; positive if the scores are too high.
    interval : Interval or None
        95 % bootstrap interval of `mcs`; None if resampling changes nothing.
    ece : float
        Expected calibration error with the requested bins.
    noise_floor : NoiseFloor
        The ECE of a calibrated model on the same number of rows.
    ece_below : float
        Upper 95 % confidence bound of the true ECE.
    tests : tuple of CalibrationTest
        Tests of the sample as a whole, under every reduction considered; empty if there are too few rows.
    slope : MetricResult or None
        Calibration slope of the positive class, if scores are off in places and it shows that they are too extreme or too moderate.
    """

    rows: int
    score: float
    observed: float
    mcs: float
    interval: Interval | None
    ece: float
    noise_floor: NoiseFloor
    ece_below: float
    tests: tuple[CalibrationTest, ...] = ()
    slope: MetricResult | None = None

    @property
    @claim(
        "too-extreme",
        says="Scores too extreme (slope 0.55): low ones too low, high ones too high",
        chosen="nothing; said if the tests find an error that is not one of the mean alone",
        adjusted="the verdict's step-down min-p, and the interval of the slope at 97 % excludes 1",
    )
    def extremes(self) -> str:
        """Whether scores are too extreme, or not extreme enough, with `slope`; "" if neither is shown."""
        if self.slope is None:
            return ""
        slope = self.slope.value
        how = "too extreme" if slope < 1 else "not extreme enough"
        low, high = ("low", "high")[:: 1 if slope < 1 else -1]
        return f"{how} (slope {decimal(slope, 2)}): low ones too {low}, high ones too {high}"

    @property
    def extreme(self) -> str:
        """The same in short, with the interval of the slope, and how many scores are moved for it."""
        if self.slope is None or self.slope.interval is None:
            return ""
        ends = " to ".join(decimal(end, 2) for end in self.slope.interval)
        moved = at_ends(self.slope).rstrip(".")
        return f"{self.extremes.split('):')[0]}, 95 % CI {ends}{'; ' * bool(moved)}{moved})"

    @property
    def interval_excludes_0(self) -> bool:
        """Whether the interval of `mcs` is on one side of 0; the tests, adjusted for their number, may find no error of the mean even so."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high

    @property
    def mcs_decimals(self) -> int:
        """Number of decimals of `mcs` in points that its uncertainty justifies."""
        if self.interval is None:
            return 1
        return words.decimals_for(50 * (self.interval.high - self.interval.low), figures=1, most=2)

    @property
    def share_decimals(self) -> int:
        """Number of decimals of `score` and `observed` in percent."""
        # Two at least, as in pictures and tables of metrics.
        least = max(2, words.gap_decimals(self.ece))
        return share_decimals(self.score, self.observed, self.mcs_decimals, least)


@dataclass(frozen=True, kw_only=True)
class Verdict(JudgedNumbers):
    """The verdict on a sample, and the numbers behind it.

    Attributes
    ----------
    sentence : str
        The verdict in words (plain text; a class name in it is shortened, not escaped).
    direction : {"over", "under", "mixed", "off", "calibrated", "undecided"}
        In this order: scores too high; too low; both, in different places; off without a clear direction, or only in classes,
        slices, some of the time or their order; no miscalibration found; too few rows to tell.
    reduction : str
        The reduction that the sentence and the numbers are about: the requested one or, with two classes, the other one
        if it is worse.
    worst : BinGap or None
        The bin that is most certainly off in the direction of the verdict; None if no single bin is
        off beyond noise.
    names_worst : bool
        Whether the sentence names that bin.
    beyond_noise : bool
        Whether any of `tests` is beyond noise, adjusted for their number.
    classes_off : tuple of str
        Groups of classes that are off beyond noise, in words; only if the sample as a whole is not.
    slices, slices_off : int
        Number of tested slices of the usual group columns, and of those that are off beyond chance.
    off_in : (str, str) or None
        The slice that is most surely off, and in which way, in words.
    off_where : tuple of (str, str)
        The columns and values of that slice.
    off_class : str
        The class whose probability is off there; "" if that is the score.
    off_alone : tuple of (str, str)
        The same, if it differs from the other rows, on which nothing is found; or empty.
    elsewhere : str
        How the other rows are off, if that slice differs from them and holds most of the error; or "".
    changed : str
        Since when calibration has changed, and which sides are off; "" if no change is found.
    changed_where : tuple of (str, str)
        The columns and values of the slice that changed in another way than the other rows; empty if all rows did, or none.
    changed_days : (str, str)
        The day since which rows are off, and that until which they are, if they no longer are; each "" where there is none.
    tells_apart : bool
        False if the probabilities hardly discriminate between the classes (`calviz.verdicts.row_checks`).
    in_reverse : bool
        True if the scores rank in reverse beyond chance (`calviz.verdicts.joint_tests`).
    seen_by_other : (str, str) or None
        What the reduction of two-class data that `sentence` is not about shows, if it differs: a statement and its numbers.
    """

    sentence: str
    direction: VerdictDirection
    reduction: str
    worst: BinGap | None
    names_worst: bool = False
    beyond_noise: bool = False
    classes_off: tuple[str, ...] = ()
    slices: int = 0
    slices_off: int = 0
    off_in: tuple[str, str] | None = None
    off_where: tuple[tuple[str, str], ...] = ()
    off_class: str = ""
    off_alone: tuple[tuple[str, str], ...] = ()
    elsewhere: str = ""
    changed: str = ""
    changed_where: tuple[tuple[str, str], ...] = ()
    changed_days: tuple[str, str] = ("", "")
    tells_apart: bool = True
    in_reverse: bool = False
    seen_by_other: tuple[str, str] | None = None

    def __repr__(self) -> str:
        return self.sentence

    @property
    def other_view(self) -> str | None:
        """The statement of `seen_by_other` and its numbers as a sentence."""
        return self.seen_by_other and ": ".join(self.seen_by_other)

    @property
    def alone(self) -> str:
        """Say that no map of all rows repairs the slice that is off, alone or most; "" if there is none."""
        if self.off_in is None or not self.named_where:
            return ""
        return self.own_map(self.off_in[0])

    @staticmethod
    def own_map(where: str) -> str:
        """Say that a slice is not repaired by a map of all rows, which would move the others."""
        return f"To repair {where} alone takes a map of its own."

    @property
    @claim("miscalibration")
    def headline(self) -> str:
        """The verdict in at most 15 words, without interval and place."""
        told = re.search(" found on (.*?): ECE", self.sentence)
        rows = told[1] if told else counted(self.rows, "row")
        if self.in_reverse:
            return "Upside down: the scores rank in reverse"
        if self.changed:
            return self.changed
        if self.rows == 1:
            return "One row cannot tell"
        if self.direction == "undecided":
            return f"{rows} {'are' if self.rows > 1 else 'is'} too few to tell"
        if self.direction == "calibrated":
            return f"No miscalibration{self.of_what} found on {rows}"
        place = ": ".join(self.off_in or ())
        if self.off_alone:
            return f"Off where {place}; elsewhere {NOT_OFF}"
        if self.elsewhere:
            first = self.sentence.partition(place)
            changed = re.match("(?:; .*? changed over time)?", first[2])
            return f"{first[0]}{place}{changed and changed[0]}; other rows: {self.elsewhere}"
        top = self.reduction == "top-label"
        score, observed = (percent(v, self.share_decimals) for v in (self.score, self.observed))
        means = f"mean score {score}, observed {observed}"
        if top:
            means = f"sure of {score}, right in {observed}"
        if self.direction not in ("over", "under"):
            if self.in_places:
                whole = self.of_what or " as a whole"
                where = " where ".join(reversed(self.off_in or ()))
                return f"No fault{whole}, but {(*self.classes_off, where)[0]}"
            off = self.classes_said or means
            return f"Scores {self.extremes}" if self.extremes else f"Off in places: {off}"
        size = points(abs(self.mcs), self.mcs_decimals)
        if top:
            return f"{'Over' if self.mcs > 0 else 'Under'}confident by {size} points: {means}"
        points_off = f"{size} points too {'high' if self.mcs > 0 else 'low'}"
        _, of_class, name = self.reduction.partition("class:")
        what = f"{words.listed([name])} is" if of_class else "Forecasts"
        return f"{what} {words.times_off(self.score, self.observed) or points_off}: {means}"

    @property
    def of_what(self) -> str:
        """Of what alone it is said that nothing is found: " of the top label", " of 'a'"; or ""."""
        said = re.match("No miscalibration( of .*?) found on ", self.sentence)
        return said[1] if said else ""

    @property
    def classes_said(self) -> str:
        """Which classes the sentence says are off, before the test that shows most: "2 of 4 predicted classes are off, ..."; or ""."""
        said = re.search(r", (?:and|but) ([\d,]+ of [\d,]+ [a-z ]*classes [^:]*): ", self.sentence)
        return said[1].partition(", and the probabilities")[0] if said else ""

    @property
    def beyond_headline(self) -> str:
        """What `sentence` says that the headline does not, such as the slice, in short; all else if they begin with different facts."""
        head, sentence = self.headline, self.sentence
        for long, short in _IN_SHORT.items():
            sentence = re.sub(long, short, sentence)
        sentence = sentence.removeprefix(f"Probabilities of {head.partition(' is ')[0]} ")
        sentence = words.capitalised(sentence)
        if self.classes_said and self.classes_said in head:
            sentence = re.sub(f", (and|but) {re.escape(self.classes_said)}", "", sentence)
        for off in (off for off in self.classes_off if off in head):
            sentence = sentence.replace(f", but {off}.", ".").replace(f", but {off} and ", ", but ")
        if self.named_where:
            sentence = sentence.replace(f", most clearly {': '.join(self.off_in or ())}", "")
        for said in (head, head.rpartition("; ")[0], head.split(": ")[0]):
            if re.match(rf"{re.escape(said)}[.:;] ?", sentence):
                return words.capitalised(sentence[len(said) :].lstrip(".:; "))
        size = re.match(r"[^(:]* by ([\d.]+ points)[^(:]*\((.*?)\)(.*)", sentence)
        return f"{size[2]}{size[3]}" if size and size[1] in head else sentence

    @property
    def ended(self) -> bool:
        """Whether what is found until a change is not found since."""
        return bool(self.changed_days[1])

    @property
    def named_where(self) -> tuple[tuple[str, str], ...]:
        """The columns and values of the slice that the headline is about; empty if it is about all rows or classes."""
        if self.in_reverse or self.changed or self.direction in ("calibrated", "undecided"):
            return ()
        alone = self.direction not in ("over", "under") and self.only_slices_off
        return self.off_where if self.off_alone or self.elsewhere or alone else ()

    @property
    def only_slices_off(self) -> bool:
        """Whether slices are off, but nothing as a whole, or nothing on the other rows."""
        alone = not (self.classes_off or self.beyond_noise)
        return bool(self.off_alone or self.elsewhere == NOT_OFF or (self.slices_off and alone))

    @property
    def others_off(self) -> bool:
        """Whether the rows outside the slices that the headline names are off, too."""
        return self.elsewhere not in ("", NOT_OFF)

    @property
    def in_places(self) -> bool:
        """Whether only classes or slices are off: a map of all rows would move the others too."""
        return bool(self.only_slices_off or self.classes_off) and not self.in_reverse


#: What the line below a headline leaves out of the sentence, or says in fewer words: the test, what the numbers beside it say, their rows.
_IN_SHORT = {
    r"^Forecasts |: (?:Brier: )?[^:]* a calibrated model would show .*? \(.*?\)": "",
    r"Not shown to be off on average": "Within noise on average",
    r"(?<=on average) \(.*?\)": "",
    r" on [\d,]+ rows(?=[,.])": "",
    r"^No miscalibration(?: of .*?)? found on (?!the other).*?: (?=ECE)": "",
}


# ---- The result of an evaluation


@dataclass(frozen=True)
class ClassRow:
    """Numbers of one class: the rows with this true label, scored by the top label (Ao 2023)."""

    name: str
    rows: int
    accuracy: float
    confidence: float
    ece: float
    mcs: float
    ks: float


@dataclass(frozen=True, repr=False)
class Evaluation(Displayed):
    """Metrics of one sample, by key; iterates over the results.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows, n_classes : int
        Number of evaluated rows, and of classes.
    kind : str
        "probabilities", "logits" or "confidence".
    split : str or None
        The evaluated split; None for all rows.
    reduction : str
        Written form of the reduction.
    metrics : mapping of str to MetricResult
    classes : tuple of ClassRow
        Empty if not requested, and for confidence-only data without labels.
    findings : tuple of Finding
        Empty if not requested.
    verdict : Verdict or None
        The verdict; None if findings were not requested.
    sample : Sample or None
        The evaluated rows, for figures and reports (`calviz.integrations`); kept only by `calviz.audit`.
    """

    name: str
    rows: int
    n_classes: int
    kind: str
    split: str | None
    reduction: str
    metrics: Mapping[str, MetricResult]
    classes: tuple[ClassRow, ...] = ()
    findings: tuple[Finding, ...] = ()
    verdict: Verdict | None = None
    sample: Any = field(default=None, repr=False, compare=False)

    def __getitem__(self, key: str) -> MetricResult:
        try:
            return self.metrics[key]
        except KeyError:
            METRICS[key]  # an unknown key is refused with the nearest
            keys = ", ".join(self.metrics)
            raise OptionError(f"'{key}' was not measured; there are {keys}.") from None

    def only(self, keys: Iterable[str]) -> Evaluation:
        """Return the evaluation with these metrics alone, in this order."""
        return replace(self, metrics={key: self[key] for key in keys})

    def summary(self) -> Summary:
        """Summarise the result: the verdict, the metrics with their error bars, and the findings."""
        each = (Written(r, self.verdict).cells() for r in self if r.available)
        rows: list[tuple[str, ...]] = [(*cells.values(),)[:4] for cells in each]
        header: tuple[str, ...] = ("metric", "value", "95 % interval", "if calibrated")
        if not any(row[2] or row[3] for row in rows):
            header, rows = header[:2], [row[:2] for row in rows]
        split = f", split {shorten(self.split)}" if self.split else ""
        verdict = self.verdict
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(self.rows, 'row')}{split}, {shorten(self.reduction)}, "
            + counted(len(self), "metric"),
            verdict="" if verdict is None else verdict.sentence,
            lines=(verdict.other_view,) if verdict is not None and verdict.other_view else (),
            header=header,
            rows=tuple(rows),
            notes=tuple(f"{f.code} {f.message}" for f in self.findings),
        )

    def __iter__(self) -> Iterator[MetricResult]:
        return iter(self.metrics.values())

    def __len__(self) -> int:
        return len(self.metrics)

    def frame(self) -> DataFrame:
        """Return a table with one row per metric: value, interval, noise floor, p-value, reason."""
        return data_frame(
            {
                "metric": r.key,
                **dict(zip(("value", "low", "high", *NOISE_COLUMNS), numbers_of(r), strict=True)),
                "reason": r.reason,
            }
            for r in self
        ).set_index("metric")


#: Columns of the noise floor in a table of results.
NOISE_COLUMNS = ("noise_mean", "noise_q95", "p_value")


def numbers_of(result: MetricResult) -> tuple[float, ...]:
    """Value, ends of the interval, mean and 95 % quantile of the noise floor, p-value; nan for what there is not."""
    floor = result.noise_floor
    noise = (math.nan,) * 3 if floor is None else (floor.mean, floor.q95, floor.p_value)
    return result.value, *(result.interval or (math.nan,) * 2), *noise


# ---- How values are written


def name_of(result: MetricResult) -> str:
    """Return the label of a metric, with the coverage or risk of its point, its bins if they are not the default or not those of the diagram, or what it sums."""
    metric = METRICS[result.key]
    if "one_column" in result.details:
        return f"{metric.label} (class sum)"
    if "class_sum" in result.details:
        return METRICS["brier"].label
    label, usual = metric.label, getattr(metric.view, "keywords", {}).get("scheme")
    scheme = result.params.get("scheme", usual)
    if usual == "equal-width" and scheme != usual:
        return f"{label} ({'Sturges' if scheme == 'sturges' else 'equal mass'})"
    if "placed" in result.details:
        return f"{label} ({result.details['placed']})"
    point = result.params.get("coverage", result.params.get("risk"))
    return label if point is None else f"{label} ({percent(point, 0)})"


def quoted(result: MetricResult) -> MetricResult:
    """The value as others report it, without error bars: of two classes, the Brier score of one column."""
    if "one_column" not in result.details:
        return result
    column, details = result.details["one_column"], {"class_sum": result.value, "halved": True}
    return MetricResult("brier_binary", column, details=details)


def precision_words(result: MetricResult) -> str:
    """Say how close a number computed from a profile is to that of its rows; empty for numbers computed from rows."""
    if result.exact is None:
        return ""
    if result.exact:
        return "exact"
    return "no bound known" if result.bound is None else f"within {result.bound:.1g}"


def scale_of(metric: str, *, difference: bool = False) -> tuple[float, str]:
    """Return the factor by which values are multiplied for display, and the sign or word after them.

    >>> scale_of("accuracy"), scale_of("accuracy", difference=True), scale_of("nll")
    ((100.0, '%'), (100.0, 'points'), (1.0, ''))
    """
    unit = METRICS[metric].unit
    if unit == "percent" and not difference:
        return 100.0, "%"
    return (1.0, "") if unit == "plain" else (100.0, "points")


def value_text(metric: str, value: float) -> str:
    """Write a value with its unit, for a sentence.

    >>> value_text("accuracy", 0.912), value_text("ece", 0.0541), value_text("nll", 0.2571)
    ('91.2 %', '5.41 points', '0.257')
    """
    if math.isnan(value):
        return "no value"
    unit = METRICS[metric].unit
    if unit == "percent":
        return percent(value)
    if unit == "points":
        return f"{points(value, words.points_decimals(value))} points"
    return decimal(value, words.decimals_for(value, figures=3, least=3, most=5))


class Written:
    """Writes the value of a metric, its interval and its noise floor with the same number of decimals.

    Parameters
    ----------
    result : MetricResult
    verdict : Verdict, optional
        The verdict that stands beside it: an accuracy that it names too gets the decimals that it has there.
    """

    def __init__(self, result: MetricResult, verdict: Verdict | None = None) -> None:
        self.result = result
        metric = METRICS[result.key]
        self.unit: Unit = metric.unit
        self.scale = 0.5 if "halved" in result.details else 1.0 if self.unit == "plain" else 100.0
        self.plus = self.unit == "points" and metric.direction == "zero"
        # The accuracy stands beside the mean confidence, and their difference beside both: 79.12 %, 91.46 %, +12.34 points.
        if self.unit == "percent":
            # Metrics that a verdict about the top label names, and the complement.
            of_accuracy = result.key in ("accuracy", "error")
            self.decimals = 2 if of_accuracy else 1
            if of_accuracy and verdict and verdict.reduction == "top-label" and verdict.rows > 1:
                self.decimals = verdict.share_decimals
        elif self.unit == "points":
            self.decimals = words.points_decimals(result.value)
        else:
            # A squared or unbiased error may be small and yet far above its noise.
            self.decimals = words.decimals_for(result.value, figures=3, least=3, most=6)

    @classmethod
    def column(cls, results: Iterable[MetricResult]) -> Self:
        """Choose the decimals for a column of values of one metric.

        One decimal for shares, two for points and for the accuracy, as beside the mean confidence, four for other numbers or more if the smallest value needs them.
        """
        all_results = list(results)
        nonzero = [r for r in all_results if r.available and r.value != 0] or all_results
        written = cls(min(nonzero, key=lambda r: abs(r.value)))
        if written.unit == "points":
            written.decimals = 2
        elif written.unit == "plain":
            written.decimals = max(4, written.decimals)
        return written

    def of(self, value: float, *, unit: bool = True) -> str:
        """Write any value of the metric in the same form."""
        text = (decimal if self.unit == "plain" else points)(value, self.decimals, plus=self.plus)
        return f"{text}\u00a0%" if unit and self.unit == "percent" and text != "–" else text

    @property
    def value(self) -> str:
        """The value with its unit."""
        return self.of(self.result.value)

    @property
    def unit_words(self) -> str:
        """The unit for a label; empty for shares and plain numbers."""
        return "points" if self.unit == "points" else ""

    @property
    def heading(self) -> str:
        """Label of the metric, with its unit."""
        return name_of(self.result) + f" ({self.unit_words})" * bool(self.unit_words)

    def cells(self) -> dict[str, str]:
        """The metric, its value, interval and noise floor for a table, by heading; empty where there is none."""
        interval, floor = self.result.interval, self.result.noise_floor
        ends = [self.of(interval.low, unit=False), self.of(interval.high)] if interval else []
        texts = {"metric": self.heading, "value": self.value, "95 % interval": " to ".join(ends)}
        texts["noise: mean"] = self.of(floor.mean) if floor else ""
        texts["noise: 95 %"] = self.of(floor.q95) if floor else ""
        return texts | {"p-value": words.p_number(floor.p_value) if floor else ""}

    def interval(self, interval: Interval | None) -> str:
        """Write an interval in words."""
        if interval is None:
            return "No interval: resampling changes nothing"
        low, high = self.of(interval.low, unit=False), self.of(interval.high)
        return f"95\u00a0% interval {low}\u00a0to\u00a0{high}"

    def noise(self, *, tail: str, verdict: Verdict | None = None, short: bool = False) -> str:
        """Write the noise floor in words; of an MCE, `short` leaves out the share of hits.

        A number is called beyond noise if its p-value is at most 0.05 and the verdict, which adjusts for all its
        tests, found miscalibration too. So no number claims more than the verdict does.
        """
        floor = self.result.noise_floor
        if floor is None:
            return ""
        beyond = floor.p_value <= 0.05
        if METRICS[self.result.key].one_bin:
            return self._largest_gap(verdict, short)
        if only := self.only_alone(verdict):
            return only
        if tail == "upper":
            if beyond:
                return f"above noise: a calibrated model stays below {self.of(floor.q95)}"
            return f"within noise: a calibrated model shows up to {self.of(floor.q95)}"
        if beyond:
            return f"if each score were true: {self.of(floor.mean)}"
        return f"as if calibrated ({self.of(floor.mean)})"

    def only_alone(self, verdict: Verdict | None) -> str:
        """Say that the value is unusual, but not beyond noise for the verdict; "" if it is not so."""
        floor = self.result.noise_floor
        if floor is None or floor.p_value > 0.05 or verdict is None or verdict.beyond_noise:
            return ""
        return f"unusual alone ({p_value(floor.p_value)}); {_not_found(verdict)}"

    def _largest_gap(self, verdict: Verdict | None, short: bool) -> str:
        """Judge the MCE, which is the gap of one bin, like that bin: by the interval of its share of hits."""
        d = self.result.details
        outside = not d["hits_low"] <= d["mean_score"] <= d["hits_high"]
        where = " to ".join(words.range_ends(d["bin_low"], d["bin_high"], tolerance=0.06))
        # With the decimals of the finding and the sentence that name the same bin.
        above = d["mean_score"] > d["hits_high"]
        hits = d["mean_score"] - (self.result.value if above else -self.result.value)
        decimals = share_decimals(d["mean_score"], hits) if outside else 1
        share = " to ".join(
            words.ends_beside(d["mean_score"], (d["hits_low"], d["hits_high"]), decimals)
        )
        head = "its bin is off" if outside else "within noise"
        if outside and verdict is not None and not verdict.beyond_noise:
            head = f"one bin alone; {_not_found(verdict)}"
        mean = f"mean score {percent(d['mean_score'], decimals)}, " if outside else ""
        rows = counted(int(d["bin_rows"]), "row")
        if short:
            return f"{head}: {rows} from {where}"
        return f"{head}: {rows} from {where}, {mean}hits {share} (95\u00a0% for all bins together)"

    @property
    def why_apart(self) -> str:
        """Explain why the interval of an MCE and that of its bin disagree, if only one of them excludes a gap of 0."""
        interval, d = self.result.interval, self.result.details
        if "hits_low" not in d or interval is None:
            return ""
        outside = not d["hits_low"] <= d["mean_score"] <= d["hits_high"]
        if (interval.low > 0) == outside:
            return ""
        of = "the interval of the MCE is of the largest gap, of whichever bin"
        if outside:
            return f"{of}: it reaches 0 as some bin may be that far off by chance"
        return f"{of}, and is not adjusted for their number: the bin is judged by its own"


#: A remark on more metrics than this gives their number instead of their names.
MOST_NAMED = 12


def remarks(results: Iterable[MetricResult]) -> tuple[tuple[str, str], ...]:
    """Return each remark on the values once, after the names of the metrics that it concerns."""
    all_results = list(results)
    texts = ((r, text) for r in all_results for text in (r.note, at_its_end(r), at_ends(r)) if text)
    return _each_once(texts, len(all_results))


def at_ends(result: MetricResult) -> str:
    """Say how many scores of exactly 0 or 1 are moved before log-odds are taken; empty if there are none."""
    scores, by = round(result.details.get("at_ends", 0)), result.details.get("floor", 0)
    return f"{counted(scores, 'score')} of 0 or 1 moved inwards by {by:.2g}." if scores else ""


def at_its_end(result: MetricResult) -> str:
    """Say why an error is the upper end of its own interval; empty if it is not."""
    at_end = result.interval is not None and result.value >= result.interval.high
    why = "noise biases the estimate upwards; the interval is of the true error."
    return why if at_end and result.interval_method == "inverted" else ""


def missing(results: Iterable[MetricResult]) -> tuple[tuple[str, str], ...]:
    """Return each reason for missing values once, after the names of the metrics concerned."""
    all_results = list(results)
    without = ((r, r.reason or "undefined.") for r in all_results if not r.available)
    return _each_once(without, len(all_results))


def _each_once(
    remarks_by_result: Iterable[tuple[MetricResult, str]], total: int
) -> tuple[tuple[str, str], ...]:
    names: dict[str, list[str]] = {}
    for result, text in remarks_by_result:
        names.setdefault(text, []).append(name_of(result))
    return tuple(
        ("; ".join(of) if len(of) <= MOST_NAMED else f"{len(of)} of {total} metrics", text)
        for text, of in names.items()
    )


def alone(verdict: Verdict | None) -> str:
    """Return a remark on several p-values in one table."""
    text = "Each p-value stands alone: of 20 p-values of a calibrated model, about one is at most 0.05."
    if verdict is None or not verdict.tests:
        return text
    outcome = "beyond noise" if verdict.beyond_noise else "within noise"
    return f"{text} What counts is the verdict, which adjusts for its {len(verdict.tests)} tests: {outcome}."


def _not_found(verdict: Verdict) -> str:
    if not verdict.tests:
        return "too few rows for a verdict"
    return f"not after allowing for all {len(verdict.tests)} tests"
