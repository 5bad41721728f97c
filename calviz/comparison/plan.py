"""The plan of a comparison: a value that the app, the command line and `compare` make, and that one function carries out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calviz.comparison.rows import Division
from calviz.core.bins import DEFAULT_BINS, Scheme
from calviz.core.errors import OptionError
from calviz.core.reduction import Reduction
from calviz.sample.error_bars import RESAMPLES
from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED, RecalibratorSpec


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which methods are compared, fitted on which rows, and judged how.

    Attributes
    ----------
    methods : tuple of str or "all"
        Keys of recalibrators; the uncalibrated model always comes first.
    division : Division
        Which are the fitting rows and the evaluation rows.
    metrics : tuple of str, optional
        Keys; if left out, all metrics, where `calviz.compare` has only those shown in the tables of a comparison.
    reduction : Reduction or str, optional
        Which (score, hit) pair the calibration metrics use; if left out, the positive class of
        two classes, otherwise the top label.
    bins, scheme
        Of the binned metrics, as in `calviz.evaluate`.
    ci : bool
        Whether to compute intervals, paired differences and shares of "best".
    resamples : int
    refits : int
        Number of times each method is refitted, on fitting rows drawn with replacement. Without refits, intervals hold for
        the fitted map; with refits (such as 20), differences and verdicts include the variation of the fit.
    options : mapping of str to mapping
        Parameters of single methods.
    """

    methods: tuple[str, ...] | str = "all"
    division: Division = field(default_factory=Division)
    metrics: tuple[str, ...] | None = None
    reduction: Reduction | str | None = None
    bins: int = DEFAULT_BINS
    scheme: Scheme = "equal-width"
    ci: bool = True
    resamples: int = RESAMPLES
    refits: int = 0
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.refits < 0 or self.refits == 1:
            raise OptionError(f"'refits' must be 0, or 2 or more, got {self.refits}.")

    @property
    def specs(self) -> list[RecalibratorSpec]:
        """Specs of the planned methods, the uncalibrated model first."""
        return specs_of(self.methods, self.options)


def specs_of(
    methods: Iterable[str] | str, options: Mapping[str, Mapping[str, Any]]
) -> list[RecalibratorSpec]:
    """Return the specs of the named methods, the uncalibrated model first.

    Raises
    ------
    OptionError
        If there are options of other methods, or one has a value that is not allowed.
    """
    if methods == "all":
        specs = list(RECALIBRATORS)
    else:
        names = [methods] if isinstance(methods, str) else list(methods)
        specs = [RECALIBRATORS[name] for name in dict.fromkeys([UNCALIBRATED, *names])]
    keys = [spec.key for spec in specs]
    check_options(options, keys if methods == "all" or len(keys) == 1 else keys[1:])
    return specs


def check_options(
    options: Mapping[str, Mapping[str, Any]], methods: Sequence[str], name: str = "'options'"
) -> None:
    """Raise OptionError if there are parameters of a method that is not used, or one has a value that is not allowed.

    Parameters
    ----------
    options : mapping of str to mapping
        Parameters of single methods.
    methods : sequence of str
        The methods that are used.
    name : str
        What the message calls the parameters.
    """
    if others := [method for method in options if method not in methods]:
        used = (
            f"method is '{methods[0]}'"
            if len(methods) == 1
            else f"methods are {', '.join(methods)}"
        )
        raise OptionError(f"{name} names '{others[0]}', but the {used}.")
    for method, values in options.items():
        try:
            RECALIBRATORS[method].check(values)
        except OptionError as error:
            raise OptionError(f"{name} of '{method}': {error}") from None
