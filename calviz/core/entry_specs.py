"""What a recalibrator, a figure, a check and a convention of another library is, and their registries."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, TypeVar, get_args

import numpy.typing as npt

from calviz.core.blocks import FloatArray
from calviz.core.errors import Finding, OptionError, needs
from calviz.core.metric_spec import Parameter, parameters_of, takes_weights
from calviz.core.predictions import Dataset
from calviz.core.probabilities import EPSILON
from calviz.core.registry import Registry

if TYPE_CHECKING:
    import pandas as pd


# ---- Recalibrators

#: What the columns of X hold. It is declared, never guessed from the values.
Input = Literal["probabilities", "logits"]
#: What a method computes with; logits become probabilities, probabilities become logarithms.
Needs = Literal["probabilities", "logits", "log-probabilities"]
#: The value that an exact probability of 0 counts as in logarithms: chosen from the calibration rows ("auto"), a number, or
#: (None) the smallest normal number of its dtype.
FloorChoice: TypeAlias = float | Literal["auto"] | None
#: The headings that recalibrators are listed under, in display order.
Family = Literal["Uncalibrated", "Automatic", "Parametric", "Non-parametric", "Composition"]
FAMILIES: tuple[Family, ...] = get_args(Family)


#: The key of the unchanged scores, the first entry of every comparison.
UNCALIBRATED = "identity"

#: `RecalibratorSpec.mixed_up_to` of methods that are fast with any number of classes.
ANY_CLASSES = 1_000_000

#: Calibration rows per class from which a separate map for each class follows more than noise.
ROWS_PER_CLASS = 20


@dataclass(frozen=True)
class FitFacts:
    """What is known about the data before a method is fitted; see `RecalibratorSpec.left_out`.

    Attributes
    ----------
    rows : int
        Rows that methods will be fitted on.
    classes : int
        2 for confidence-only data.
    logits : bool
        Whether the file has logits.
    """

    rows: int
    classes: int
    logits: bool = False

    @property
    def parameters(self) -> int:
        """Number of parameters of a matrix with an intercept per class, K (K + 1)."""
        return self.classes * (self.classes + 1)

    @property
    def few(self) -> str:
        """A sentence if there are too few rows per class for one map per class, else ""."""
        rows_per_class = self.rows / self.classes
        if rows_per_class >= ROWS_PER_CLASS:
            return ""
        return f"{self.rows:,} rows for {self.classes:,} classes are {rows_per_class:,.1f} each, fewer than {ROWS_PER_CLASS}"


#: Why a method is not suggested for some data; "" if it is.
LeftOut = Callable[[FitFacts], str]


def suggested(_: FitFacts) -> str:
    """Leave nothing out: the `LeftOut` of a method that is worth trying on any data."""
    return ""


class Recalibrator(Protocol):
    """A scikit-learn transformer from the scores of all classes to calibrated probabilities."""

    #: Sentences about the last fit: a bound that was hit, a class without rows.
    warnings_: tuple[str, ...]

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Fit on scores X, shape (n, K), and labels y in 0..K-1, shape (n,)."""
        ...

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Return calibrated probabilities, shape (n, K); rows sum to 1."""
        ...

    def intervals(self, X: npt.ArrayLike) -> FloatArray:
        """Return lower and upper probabilities per class, shape (n, C, 2); raises NotAvailable if the method has none."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return the fitted parameters in readable form."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted map as plain values, ready for JSON."""
        ...

    def snippet(self) -> str:
        """Return Python source that reproduces `transform` and needs only NumPy."""
        ...


def zero_words(params: Mapping[str, Any]) -> str | None:
    """Return what an exact 0 counts as in a fitted map, in words; None if no calibration row has one.

    Parameters
    ----------
    params : mapping
        The result of `Recalibrator.describe`; for a composition, those of both parts.
    """
    for name, value in params.items():
        if name == "floor" and value > EPSILON:  # up to it, no calibration row has a zero
            return f"an exact probability of 0 counts as {value:.3g}"
        if isinstance(value, Mapping) and (words := zero_words(value)):
            return words
    return None


@dataclass(frozen=True)
class RecalibratorSpec:
    """A registered recalibrator.

    Attributes
    ----------
    key : str
        The stable name of the CLI and the JSON ("temperature").
    label : str
        The name on screen ("Temperature scaling").
    family : {"Uncalibrated", "Automatic", "Parametric", "Non-parametric", "Composition"}
        The heading it is listed under; a composition is a parametric method followed by a non-parametric one, an automatic
        method chooses among others.
    accuracy_preserving : bool
        Whether it keeps the predicted class of every row.
    needs : {"probabilities", "logits", "log-probabilities"}
        What it computes with. Logits are used where the data have them, log-probabilities where not.
    confidence_only : bool
        Whether it is defined for a single score and a hit per row, which is all that
        confidence-only data have.
    reference : str
        The source, with its equation.
    summary : str
        What it does, in one or two plain sentences.
    formula : str
        LaTeX.
    make : callable
        ``make(input=..., **parameters)`` returns an unfitted recalibrator.
    left_out : callable
        ``left_out(facts)`` returns why the method is not suggested for such data; "" if it is.
    preselected : bool
        Whether the method, if it is suggested, is also one of the few that are selected at first where each method is fitted many
        times: to several models, or to different numbers of labels.
    mixed_up_to : int
        The largest number of classes with which the automatic mixture tries it; 0 if it never does.
    interval_columns : tuple of str
        If `Recalibrator.intervals` gives a pair per class: the names of the lower and the upper one in files and tables,
        after `calviz.core.predictions.INTERVAL`. Otherwise empty.
    """

    key: str
    label: str
    family: Family
    accuracy_preserving: bool
    needs: Needs
    confidence_only: bool
    reference: str
    summary: str
    formula: str
    make: Callable[..., Any] = field(repr=False)
    left_out: LeftOut = field(default=suggested, repr=False)
    preselected: bool = False
    mixed_up_to: int = 0
    interval_columns: tuple[str, str] | tuple[()] = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a user may set."""
        preset: dict[str, Any] = {}
        plain: Any = self.make
        while isinstance(plain, partial):
            preset = {**plain.keywords, **preset}
            plain = plain.func
        # The annotations of a class are those of its constructor.
        function = plain.__init__ if inspect.isclass(plain) else plain
        return parameters_of(partial(function, **{**preset, "input": None}))

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise OptionError if the method has no such parameters, or if one has a value that is not allowed."""
        names = {p.name for p in self.parameters}
        if unknown := set(options) - names:
            raise OptionError(
                f"'{self.key}' has no option '{min(unknown)}'; known: {', '.join(sorted(names)) or 'none'}."
            )
        # A method of another package need not check its parameters before it is fitted.
        check = getattr(self.make(**options), "_check_parameters", None)
        if check is not None:
            check()

    def make_with(self, *, input: Input, **values: Any) -> Any:
        """Return an unfitted recalibrator with those of these parameters that it has: not every method has a floor, or a cap."""
        names = {p.name for p in self.parameters}
        return self.make(input=input, **{name: v for name, v in values.items() if name in names})


class RecalibratorRegistry(Registry[RecalibratorSpec]):
    """Recalibrators by key, family by family; ``a+b`` is a composition, whether or not it is listed."""

    #: Makes the entry of ``first+second``, or raises OptionError; set by the module that defines compositions.
    composed: Callable[[str], RecalibratorSpec]

    def _place(self, entry: RecalibratorSpec) -> tuple[int, str]:
        return FAMILIES.index(entry.family), entry.key

    def __getitem__(self, key: str) -> RecalibratorSpec:
        self._discover()
        if "+" in key and key not in self._entries:
            return self.composed(key)
        return super().__getitem__(key)

    def methods(self, *, confidence: bool) -> tuple[RecalibratorSpec, ...]:
        """All recalibrators except the uncalibrated model; for confidence-only data, those that are defined for them."""
        return tuple(
            s for s in self if s.key != UNCALIBRATED and (s.confidence_only or not confidence)
        )

    def __contains__(self, key: object) -> bool:
        try:
            self[str(key)]
        except OptionError:
            return False
        return True


RECALIBRATORS = RecalibratorRegistry("recalibrator")


C = TypeVar("C", bound=type)


def recalibrator(
    *,
    key: str,
    label: str,
    family: Family,
    reference: str,
    formula: str,
    accuracy_preserving: bool = False,
    needs: Needs = "probabilities",
    confidence_only: bool = False,
    summary: str | None = None,
    preset: Mapping[str, Any] | None = None,
    left_out: LeftOut = suggested,
    preselected: bool = False,
    mixed_up_to: int = 0,
    interval_columns: tuple[str, str] | tuple[()] = (),
) -> Callable[[C], C]:
    """Register the decorated class; its docstring's first paragraph is the summary.

    The class gets the attributes `key`, `needs` and `accuracy_preserving`, unless its body sets them. With a `preset` of parameters,
    one class can be registered under several keys: its own attributes are those of the decorator nearest to it.
    """

    def register(cls: C) -> C:
        text = inspect.getdoc(cls) or ""
        attributes = {"key": key, "needs": needs, "accuracy_preserving": accuracy_preserving}
        for name, value in attributes.items():
            if name not in vars(cls):
                setattr(cls, name, value)
        RECALIBRATORS.register(
            RecalibratorSpec(
                key=key,
                label=label,
                family=family,
                accuracy_preserving=accuracy_preserving,
                needs=needs,
                confidence_only=confidence_only,
                reference=reference,
                summary=summary or " ".join(text.split("\n\n")[0].split()),
                formula=formula,
                make=partial(cls, **preset) if preset else cls,
                left_out=left_out,
                preselected=preselected,
                mixed_up_to=mixed_up_to,
                interval_columns=interval_columns,
            )
        )
        return cls

    return register


# ---- Figures

Theme = Literal["light", "dark"]

T = TypeVar("T", bound=type[Any])


@dataclass(frozen=True)
class FigureSpec:
    """A registered figure.

    Attributes
    ----------
    key : str
        The stable name by which it is requested.
    label : str
        The name on screen.
    summary : str
        What it shows, in one or two plain sentences.
    reference : str
        The source.
    compute : callable
        ``compute(data, **parameters)`` returns the figure (see `calviz.figures.figure.Figure`); its keyword-only parameters are
        those that a user may set.
    """

    key: str
    label: str
    summary: str
    reference: str
    compute: Callable[..., Any]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a user may set."""
        return parameters_of(self.compute)


FIGURES: Registry[FigureSpec] = Registry("figure")


def figure(*, key: str, label: str, summary: str, reference: str) -> Callable[[T], T]:
    """Register a figure class, whose ``compute`` makes the figure (see `FigureSpec`).

    The views that it is made from refuse weighted rows and profiles where they do not support them; the figure itself does not.
    """

    def register(cls: T) -> T:
        takes_weights(cls.compute.__func__)
        FIGURES.register(FigureSpec(key, label, summary, reference, cls.compute))
        return cls

    return register


# ---- Checks

About = Literal["scores", "bins", "classes", "slices"]


@dataclass(frozen=True)
class Check:
    """A rule that examines a sample and may yield findings.

    Attributes
    ----------
    key : str
        The stable code of its findings ("CAL003").
    title : str
        What it looks for.
    run : callable
        ``run(sample)`` yields findings.
    reference : str
        The publication that it comes from, if any.
    about : {"scores", "bins", "classes", "slices"}
        What its findings are about, which determines where more about them is shown.
    clusters, weights : bool
        Whether it is valid for clustered rows, and for weighted rows: a test for independent rows is not, and is
        then skipped.
    cells : bool
        Whether it is valid for a profile, even if it is not for weights.
    """

    key: str
    title: str
    run: Callable[..., Iterable[Finding]]
    reference: str = ""
    about: About = "scores"
    clusters: bool = False
    weights: bool = False
    cells: bool = False

    def takes(self, data: Dataset) -> bool:
        """Whether the check is valid for these data."""
        alike = data.weights is None or (self.cells and data.cells is not None)
        return (self.clusters or data.clusters is None) and (self.weights or alike)


CHECKS: Registry[Check] = Registry("check")


# ---- Conventions of other libraries


@dataclass(frozen=True)
class Convention:
    """The calibration error as a library's function computes it with its default options.

    Attributes
    ----------
    key : str
        The stable name ("netcal").
    library, version : str
        The library, and the version of it that this was checked against.
    call : str
        The function as its users know it ("ECE().measure").
    rule : str
        What it computes by default, in a few words.
    why : str
        One sentence: why its number differs from calviz's ECE.
    reference : str
        Address of the documentation of the function.
    value : callable
        ``value(sample)`` returns the number; raises NotAvailable if the library cannot compute it.
    """

    key: str
    library: str
    version: str
    call: str
    rule: str
    why: str
    reference: str
    value: Callable[[Any], float]


CONVENTIONS: Registry[Convention] = Registry("convention")


@dataclass(frozen=True)
class ConventionValue:
    """The value of one convention on one sample.

    Attributes
    ----------
    convention : Convention
    value : float
        The value, a fraction; ``nan`` where it is not available, with the `reason`.
    noise : float
        What this convention would give on average if the model were perfectly calibrated, with as
        many rows; ``nan`` if it was not requested.
    reason : str or None
        Why there is no value.
    """

    convention: Convention
    value: float
    noise: float = math.nan
    reason: str | None = None

    @property
    def available(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)


@dataclass(frozen=True)
class Conventions:
    """The "ECE" of the same predictions by every convention; iterating yields their values.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows : int
    split : str or None
    reduction : str
        The written form of the reduction.
    ece : float
        calviz's own ECE, with which the others are compared.
    noise : float
        What it would be on average for a calibrated model, the mean of the metric's noise floor; ``nan`` if it was not
        requested.
    params : mapping
        The bins of calviz's own ECE.
    redraws : int
        How many times the labels were redrawn for the means of the other libraries' values; 0 if these were not requested, or are
        too much work for data of this size.
    values : tuple of ConventionValue
    """

    name: str
    rows: int
    split: str | None
    reduction: str
    ece: float
    noise: float
    params: Mapping[str, Any] = field(default_factory=dict)
    redraws: int = 0
    values: tuple[ConventionValue, ...] = ()

    def __iter__(self) -> Iterator[ConventionValue]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: str) -> ConventionValue:
        for value in self.values:
            if value.convention.key == key:
                return value
        raise KeyError(key)

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest value of all, calviz's included."""
        values = [self.ece, *(v.value for v in self.values if v.available)]
        return min(values), max(values)

    def frame(self) -> pd.DataFrame:
        """Return one row per convention: value, difference from calviz's ECE, noise, rule, why it differs."""
        needs("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "convention": v.convention.key,
                "library": v.convention.library,
                "version": v.convention.version,
                "call": v.convention.call,
                "value": v.value,
                "difference": v.value - self.ece,
                "noise_mean": v.noise,
                "rule": v.convention.rule,
                "why": v.convention.why,
                "reason": v.reason,
            }
            for v in self
        ).set_index("convention")
