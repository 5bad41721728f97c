"""What a recalibrator is, and the registry that the app, the CLI and the docs are built from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar

import numpy.typing as npt

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError
from calviz.specs.metric import Parameter, parameters_of
from calviz.specs.registry import Registry

#: What the columns of X hold. It is declared, never guessed from the values.
Input = Literal["probabilities", "logits"]
#: What a method computes with; logits become probabilities, probabilities become logarithms.
Needs = Literal["probabilities", "logits", "log-probabilities"]
#: What an exact probability of 0 counts as before its logarithm: what the calibration rows say, a number, or (None) the
#: smallest normal number of its type.
FloorChoice: TypeAlias = float | Literal["auto"] | None
Family = Literal["Uncalibrated", "Parametric", "Non-parametric", "Composition", "Automatic"]

#: Up to this a floor is that of calibration rows without zeros.
_EPSILON = 2.220446049250313e-16
#: The headings that recalibrators stand under, in the order in which they are shown.
FAMILIES = ("Uncalibrated", "Automatic", "Parametric", "Non-parametric", "Composition")


#: The key of the scores as they are, which every comparison begins with.
UNCALIBRATED = "identity"

#: `RecalibratorSpec.mixed_up_to` of what is quick with any number of classes.
ANY_CLASSES = 1_000_000

#: Calibration rows per class from which a map of its own for each class follows more than noise.
ROWS_PER_CLASS = 20


@dataclass(frozen=True)
class FitFacts:
    """What is known of the data before a method is fitted; see `RecalibratorSpec.left_out`.

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
        """Those of a matrix and an intercept for all classes, K (K + 1)."""
        return self.classes * (self.classes + 1)

    @property
    def few(self) -> str:
        """A sentence if there are too few rows per class for one map per class, else ""."""
        each = self.rows / self.classes
        if each >= ROWS_PER_CLASS:
            return ""
        return f"{self.rows:,} rows for {self.classes:,} classes are {each:,.1f} each, fewer than {ROWS_PER_CLASS}"


#: Why a method is not among the first to try on some data; "" if it is.
LeftOut = Callable[[FitFacts], str]


def suggested(_: FitFacts) -> str:
    """The `LeftOut` of a method that is worth trying on any data."""
    return ""


class Recalibrator(Protocol):
    """A scikit-learn transformer from the scores of all classes to calibrated probabilities."""

    #: Sentences about the last fit: a bound that was hit, a class without rows.
    warnings_: tuple[str, ...]

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Fit on scores X, shape (n, K), and labels y in 0..K-1, shape (n,)."""
        ...

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Calibrated probabilities, shape (n, K); rows sum to 1."""
        ...

    def intervals(self, X: npt.ArrayLike) -> FloatArray:
        """Lower and upper probabilities per class, shape (n, C, 2); raises NotAvailable where the method has none."""
        ...

    def describe(self) -> dict[str, Any]:
        """The fitted parameters in a form that a person can read."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The fitted map as plain values, ready for JSON."""
        ...

    def snippet(self) -> str:
        """Python source that does what `transform` does, with nothing but NumPy."""
        ...


def zero_words(params: Mapping[str, Any]) -> str | None:
    """What a fitted map reads an exact 0 as, in words; None if no calibration row has one.

    Parameters
    ----------
    params : mapping
        What `Recalibrator.describe` says; of a composition, what it says of both parts.
    """
    for name, value in params.items():
        if name == "floor" and value > _EPSILON:
            return f"an exact probability of 0 counts as {value:.3g}"
        if isinstance(value, Mapping) and (said := zero_words(value)):
            return said
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
        The heading it stands under; a composition is a parametric and then a non-parametric one, what is automatic chooses
        among others.
    accuracy_preserving : bool
        Whether it keeps the predicted class of every row.
    needs : {"probabilities", "logits", "log-probabilities"}
        What it computes with. Logits are used where the data have them, log-probabilities where not.
    confidence_only : bool
        Whether it has a meaning for a single score and a hit per row, which is all that
        confidence-only data have.
    reference : str
        The source, with its equation.
    summary : str
        What it does, in one or two plain sentences.
    formula : str
        LaTeX.
    make : callable
        ``make(input=..., **parameters)`` gives an unfitted recalibrator.
    left_out : callable
        ``left_out(facts)`` says why the method is not suggested for such data; "" if it is.
    usual : bool
        Whether it is, where it is suggested, also among the few to begin with where each method is fitted many times: to several
        models, or to few and to many labels.
    mixed_up_to : int
        The largest number of classes with which the automatic mixture tries it; 0 if it never does.
    interval_columns : tuple of str
        Where `Recalibrator.intervals` has a pair per class: what files and tables call the lower and the upper one,
        after `calviz.core.predictions.INTERVAL`. Else empty.
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
    usual: bool = False
    mixed_up_to: int = 0
    interval_columns: tuple[str, str] | tuple[()] = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What a user may set."""
        preset: dict[str, Any] = {}
        plain: Any = self.make
        while isinstance(plain, partial):
            preset = {**plain.keywords, **preset}
            plain = plain.func
        # A class is asked through its constructor, where its annotations are.
        function = plain.__init__ if inspect.isclass(plain) else plain
        return parameters_of(partial(function, **{**preset, "input": None}))


class RecalibratorRegistry(Registry[RecalibratorSpec]):
    """Recalibrators by key, family by family; ``a+b`` is a composition, whether or not it is listed."""

    #: Makes the entry of ``first+second``, or raises OptionError; what makes compositions sets it.
    composed: Callable[[str], RecalibratorSpec]

    def _place(self, entry: RecalibratorSpec) -> tuple[int, str]:
        return FAMILIES.index(entry.family), entry.key

    def __getitem__(self, key: str) -> RecalibratorSpec:
        self._discover()
        if "+" in key and key not in self._entries:
            return self.composed(key)
        return super().__getitem__(key)

    def methods(self, *, confidence: bool) -> tuple[RecalibratorSpec, ...]:
        """All recalibrators; for confidence-only data, those that are defined for them."""
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
    usual: bool = False,
    mixed_up_to: int = 0,
    interval_columns: tuple[str, str] | tuple[()] = (),
) -> Callable[[C], C]:
    """Register the decorated class; its docstring's first paragraph is the summary.

    With a `preset` of parameters, one class stands under several keys.
    """

    def register(cls: C) -> C:
        text = inspect.getdoc(cls) or ""
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
                usual=usual,
                mixed_up_to=mixed_up_to,
                interval_columns=interval_columns,
            )
        )
        return cls

    return register
