"""What a report is about: some rows of one model, how they are looked at, and where they come from."""

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

#: Sets of sections (`calviz.report.presets`).
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
        How it was understood, in one sentence.
    options : ReadingOptions
        What was said about it.
    repairs : tuple of str
        What was changed, in words.
    notices : tuple of Finding
        What reading it had to say.
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
        """Take down where loaded data come from."""
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
    """A sample, its origin, and the results of long work on it.

    Attributes
    ----------
    sample : Sample
        The rows that are judged and how they are looked at; what is computed for the report is kept with it.
    title : str
        What to call it; a person's or a file's words, escaped wherever they are written.
    error_bars : bool or None
        Whether all metrics get intervals and noise floors; None: where the data are not large. The
        headline metrics always have them.
    origin : Origin or None
    comparison : Comparison or None
        Recalibrators, compared on these data.
    learning : LearningCurve or None
        Their learning curve on these data.
    models : ModelComparison or None
        This model and others.
    slices : Slices or None
        Groups of these rows; the usual ones are looked at where it is None.
    preset : {"clinical", "credit"} or None
        The guideline that the report follows.
    cutoff : float or None
        The cutoff that decisions are made by.
    grades : str or None
        The group column that holds rating grades; the one that is recognised where it is None.
    sets : PredictionSets or None
        Prediction sets of these rows; made of two halves of them where it is None.
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
        """The metrics that everybody asks for first, with error bars, and the findings."""
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
