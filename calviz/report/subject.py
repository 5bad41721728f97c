"""The subject of a report: rows of one model, how they are judged, and their origin."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from calviz.analysis import evaluate, first_metrics, verdict
from calviz.core.finding import Finding
from calviz.data import Loaded, ReadingOptions
from calviz.results.comparison import Comparison
from calviz.results.evaluation import Evaluation
from calviz.results.learning_curve import LearningCurve
from calviz.results.model_comparison import ModelComparison
from calviz.results.prediction_sets import PredictionSets
from calviz.results.slices import Slices
from calviz.results.verdict import Verdict
from calviz.sample.sample import Sample
from calviz.specs.metric import METRICS

#: Sets of sections (`calviz.report.guideline_presets`).
Preset = Literal["clinical", "credit"]


@dataclass(frozen=True, eq=False)
class Origin:
    """The file that the predictions come from.

    Attributes
    ----------
    file : str
        Its name, without folders.
    size : int
        Bytes.
    digest : str
        BLAKE2b of its bytes, in hexadecimal.
    rows : int
        Rows of the whole file.
    recognised : str
        How its format was recognised, in one sentence.
    options : ReadingOptions
        Options given for reading it.
    repairs : tuple of str
        Repairs made, in words.
    notices : tuple of Finding
        Findings from reading it.
    """

    file: str
    size: int
    digest: str
    rows: int
    recognised: str
    options: ReadingOptions = field(default_factory=ReadingOptions)
    repairs: tuple[str, ...] = ()
    notices: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, loaded: Loaded, options: ReadingOptions | None = None) -> Origin:
        """Record the origin of loaded data."""
        return cls(
            file=loaded.file,
            size=loaded.size,
            digest=loaded.digest,
            rows=loaded.recognition.rows,
            recognised=loaded.recognition.sentence(),
            options=options or ReadingOptions(),
            repairs=tuple(loaded.repairs_made),
            notices=tuple(loaded.notices),
        )


@dataclass(frozen=True, eq=False)
class Subject:
    """A sample, its origin, and the results of long computations on it.

    Attributes
    ----------
    sample : Sample
        The rows and how they are judged; what is computed for the report is cached on it.
    title : str
        Its title; text from a person or a file, escaped wherever it is written.
    error_bars : bool or None
        Whether all metrics get intervals and noise floors; None: unless the data are large. The
        headline metrics always get them.
    origin : Origin or None
    comparison : Comparison or None
        Comparison of recalibrators on these data.
    learning : LearningCurve or None
        Their learning curve on these data.
    models : ModelComparison or None
        Comparison of this model with others.
    slices : Slices or None
        Slices of these rows; None for the usual ones.
    preset : {"clinical", "credit"} or None
        The guideline that the report follows.
    cutoff : float or None
        The cutoff for decisions.
    grades : str or None
        The group column that holds rating grades; None for the recognised one.
    sets : PredictionSets or None
        Prediction sets of these rows; None to compute them from two halves of the rows.
    """

    sample: Sample
    _: KW_ONLY
    title: str = ""
    error_bars: bool | None = None
    origin: Origin | None = None
    comparison: Comparison | None = None
    learning: LearningCurve | None = None
    models: ModelComparison | None = None
    slices: Slices | None = None
    preset: Preset | None = None
    cutoff: float | None = None
    grades: str | None = None
    sets: PredictionSets | None = None

    @property
    def name(self) -> str:
        """The title, or the name of the data."""
        return self.title or self.sample.data.name or "Predictions"

    @property
    def has_error_bars(self) -> bool:
        """Whether all metrics get intervals and noise floors."""
        return not self.sample.is_large if self.error_bars is None else self.error_bars

    @property
    def headline(self) -> Evaluation:
        """The headline metrics with error bars, and the findings."""
        return evaluate(self.sample, first_metrics(self.sample), ci=True, findings=True)

    @property
    def evaluation(self) -> Evaluation:
        """All metrics."""
        options: dict[str, Any] = {} if self.cutoff is None else {"cutoff": self.cutoff}
        return evaluate(self.sample, METRICS.keys(), ci=self.has_error_bars, **options)

    @property
    def verdict(self) -> Verdict:
        """Whether these probabilities can be trusted."""
        return verdict(self.sample)
