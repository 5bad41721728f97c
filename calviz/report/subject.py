"""What a report is about: some rows of one model, how they are looked at, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from calviz import analysis
from calviz.analysis import DEFAULT_BINS as DEFAULT_BINS
from calviz.checks import Verdict
from calviz.core.comparison import Comparison
from calviz.core.learning import LearningCurve
from calviz.core.metric import METRICS
from calviz.core.model_comparison import ModelComparison
from calviz.core.notes import Finding
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.core.results import Evaluation
from calviz.core.slices import Slices, Where, where_words
from calviz.core.words import counted, shorten
from calviz.data import Loaded, ReadingOptions
from calviz.numerics.binning import Scheme, sturges_bins
from calviz.numerics.error_bars import RESAMPLES

#: Rows times classes above which only the headline metrics get error bars, unless they are asked for.
LARGE = 20_000_000


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """Some rows of one model, and how they are looked at; results are computed when they are first asked for.

    Attributes
    ----------
    data : Predictions or ConfidencePredictions
        Exactly the rows that are judged.
    title : str
        What to call it; a person's or a file's words, escaped wherever they are written.
    split : str or None
        The split that the rows are; None for all.
    slice : tuple of (str, str)
        Group columns and their values that the rows were chosen by; empty for all rows.
    reduction, bins, scheme, seed, resamples
        As of `calviz.evaluate`.
    error_bars : bool or None
        Whether all metrics get intervals and noise floors; None: where the data are not large. The
        headline metrics always have them.
    origin : Origin or None
    measured : Evaluation or None
        All metrics, where they are known already.
    comparison : Comparison or None
        Recalibrators, compared on these data.
    learning : LearningCurve or None
        Their learning curve on these data.
    models : ModelComparison or None
        This model and others.
    slices : Slices or None
        Groups of these rows; the usual ones are looked at where it is None.
    """

    data: Dataset
    title: str = ""
    split: str | None = None
    slice: Where = ()
    reduction: Reduction = None  # type: ignore[assignment]  # resolved to the default of the data
    bins: int = DEFAULT_BINS
    scheme: Scheme = "equal-width"
    seed: int = 0
    resamples: int = RESAMPLES
    error_bars: bool | None = None
    origin: Origin | None = None
    measured: Evaluation | None = None
    comparison: Comparison | None = None
    learning: LearningCurve | None = None
    models: ModelComparison | None = None
    slices: Slices | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "reduction", Reduction.of(self.reduction, self.data))

    @property
    def name(self) -> str:
        """The title, or the name of the data."""
        return self.title or self.data.name or "Predictions"

    @property
    def is_large(self) -> bool:
        """Whether resampling every metric takes minutes."""
        return self.data.n * max(1, self.data.n_classes) > LARGE

    @property
    def has_error_bars(self) -> bool:
        """Whether all metrics get intervals and noise floors."""
        return not self.is_large if self.error_bars is None else self.error_bars

    @property
    def ece_key(self) -> str:
        """The ECE over the bins that the diagram draws."""
        return "ece_equal_mass" if self.scheme == "equal-mass" else "ece"

    @property
    def bins_used(self) -> int:
        """How many bins there are, those of Sturges' rule counted."""
        return sturges_bins(self.data.n) if self.scheme == "sturges" else self.bins

    @property
    def bins_words(self) -> str:
        """The binning, in words."""
        rule = ", by Sturges' rule" if self.scheme == "sturges" else ""
        kind = "equal-mass" if self.scheme == "equal-mass" else "equal-width"
        return counted(self.bins_used, f"{kind} bin") + rule

    @property
    def rows_words(self) -> str:
        """Which rows they are, in words."""
        parts = [counted(self.data.n, "row")]
        if self.split is not None:
            parts.append(f"split {shorten(self.split)}")
        elif self.data.splits is not None:
            parts.append("all splits")
        if self.slice:
            parts.append(where_words(self.slice))
        return " · ".join(parts)

    @property
    def words(self) -> str:
        """What is looked at, in one line."""
        return f"{self.rows_words} · {shorten(self.reduction.label, 60)} · {self.bins_words}"

    @cached_property
    def headline(self) -> Evaluation:
        """The metrics that everybody asks for first, with error bars, and the findings."""
        keys = ("accuracy", self.ece_key, "mcs", "nll", "brier")
        return self._evaluate(keys, error_bars=True, findings=True)

    @cached_property
    def evaluation(self) -> Evaluation:
        """All metrics."""
        if self.measured is not None:
            return self.measured
        return self._evaluate((m.key for m in METRICS), error_bars=self.has_error_bars)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether these probabilities can be trusted."""
        found = self.headline.verdict
        assert found is not None  # it comes with the findings
        return found

    def _evaluate(
        self, keys: Iterable[str], *, error_bars: bool, findings: bool = False
    ) -> Evaluation:
        return analysis.evaluate(
            self.data,
            keys,
            reduction=self.reduction,
            bins=self.bins_used,
            scheme=self.scheme,
            ci=error_bars,
            seed=self.seed,
            resamples=self.resamples,
            findings=findings,
        )
