"""What a recalibrator is, and the registry that the app, the CLI and the docs are built from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar, get_args

import numpy.typing as npt

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError
from calviz.core.probabilities import EPSILON
from calviz.specs.metric import Parameter, parameters_of
from calviz.specs.registry import Registry

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
    accuracy_preserving: bool,
    needs: Needs,
    reference: str,
    formula: str,
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
