"""The pytest fixture ``calibration``: a test fails unless the data show that a model is calibrated well enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

if TYPE_CHECKING:
    from calviz.core.events import BinNumber
    from calviz.sample.sample import Sample


#: Outcome of an assertion when the interval contains the limit.
Doubt = Literal["fails", "passes"]


@dataclass(frozen=True)
class Calibration:
    """Predictions that a test makes assertions about.

    Attributes
    ----------
    sample : Sample
        The rows, with the reduction, bins, seed and split.
    """

    sample: Sample

    def assert_below(self, metric: str, limit: float, *, doubt: Doubt = "fails") -> None:
        """Fail unless a metric is below a limit: its value, and the upper bound of its 95 % interval.

        Parameters
        ----------
        metric : str
            The metric's key, such as "ece".
        limit : float
            A fraction (0.05, not 5).
        doubt : {"fails", "passes"}
            Outcome if the interval contains the limit. With "passes" the test fails only if the whole interval is
            beyond the limit, as with ``calviz audit --ci --fail-on``: noise alone does not fail the test.

        Raises
        ------
        AssertionError
            If the claim is not shown; the message holds the value and the interval.
        OptionError, NotAvailable
            For an unknown metric, and if the metric has no value on these rows.
        """
        __tracebackhide__ = True
        self._assert(metric, "below", limit, doubt)

    def assert_above(self, metric: str, limit: float, *, doubt: Doubt = "fails") -> None:
        """Fail unless a metric is above a limit: its value, and the lower bound of its 95 % interval; see `assert_below`."""
        __tracebackhide__ = True
        self._assert(metric, "above", limit, doubt)

    def _assert(self, metric: str, side: str, limit: float, doubt: Doubt) -> None:
        __tracebackhide__ = True
        from typing import get_args

        from calviz import evaluate
        from calviz.core.errors import NotAvailable, check_choice

        check_choice("doubt", doubt, get_args(Doubt))
        result = evaluate(self.sample, [metric], ci=True)[metric]
        if not result.available:
            raise NotAvailable(f"{metric} has no value: {result.reason}")
        low, high = result.interval or (result.value, result.value)
        below = side == "below"
        near, far = (low, high) if below else (high, low)
        bound = near if doubt == "passes" else far
        if (bound < limit) if below else (bound > limit):
            return
        why = f"the whole interval is {'above' if below else 'below'} it."
        if low <= limit <= high:
            end = "upper" if below else "lower"
            why = f"the {end} bound {far:.4g} is not {side} it; more rows narrow the interval."
        raise AssertionError(
            f"{metric} is {result.value:.4g} on {self.sample.data.n:,} rows, with a 95 % interval "
            f"from {low:.4g} to {high:.4g}, and is not shown to be {side} {limit:g}: {why}"
        )

    @property
    def verdict(self) -> str:
        """The verdict, as a sentence."""
        from calviz import verdict

        return verdict(self.sample).sentence


@pytest.fixture
def calibration() -> Callable[..., Calibration]:
    """``calibration(y, p)`` returns an object with assertions: ``calibration(y, p).assert_below("ece", 0.05)``.

    `y` holds the true labels, `p` the probabilities, of shape (n, K) or (n,); or `y` alone holds predictions of calviz
    (``calviz.load(...)``). ``reduction``, ``split``, ``bins`` and ``seed`` define the sample; other options are passed to
    ``calviz.Predictions.from_arrays``.
    """

    def claims(
        y: Any,
        p: Any = None,
        *,
        reduction: str | None = None,
        split: str | None = None,
        bins: BinNumber | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> Calibration:
        from calviz import Predictions
        from calviz.sample.sample import Sample

        data = cast(Any, y) if p is None else Predictions.from_arrays(y, p, **options)
        return Calibration(Sample.of(data, reduction=reduction, split=split, bins=bins, seed=seed))

    return claims
