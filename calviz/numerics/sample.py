"""One sample under one reduction, with everything that several metrics share computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, TypeVar

from calviz.core.events import BinaryEvents
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.numerics.binning import BinSums, Scheme, bin_events
from calviz.numerics.reduce import reduce

T = TypeVar("T")


class Sample:
    """Predictions seen through a reduction; views of it are made once and kept.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    reduction : Reduction or str, optional
        The default of the data (`Reduction.default`) where left out.
    """

    def __init__(self, data: Dataset, reduction: Reduction | str | None = None) -> None:
        self.data = data
        self.reduction = Reduction.of(reduction, data)
        self.reduction.check(data)
        self._views: dict[Any, Any] = {}

    @cached_property
    def events(self) -> BinaryEvents:
        """Score and hit per row under the sample's reduction."""
        return reduce(self.data, self.reduction)

    @cached_property
    def top_events(self) -> BinaryEvents:
        """Confidence and correctness of the predicted class, whatever the reduction."""
        if self.reduction.kind == "top-label":
            return self.events
        return reduce(self.data, Reduction())

    def view(self, make: Callable[..., T], **params: Any) -> T:
        """``make(self, **params)``, computed once per maker and parameters."""
        fixed: dict[str, Any] = {}
        plain: Any = make
        while isinstance(plain, partial):
            fixed = {**plain.keywords, **fixed}
            plain = plain.func
        key = (plain, tuple(sorted({**fixed, **params}.items())))
        if key not in self._views:
            self._views[key] = make(self, **params)
        result: T = self._views[key]
        return result


def bin_sums(sample: Sample, *, bins: int = 15, scheme: Scheme = "equal-width") -> BinSums:
    """The binned view of a sample (see `bin_events`)."""
    return bin_events(sample.events, bins=bins, scheme=scheme)


def event_sums(sample: Sample) -> BinSums:
    """Rows, scores and hits under the sample's reduction in one bin."""
    return sample.view(bin_sums, scheme="equal-width").pooled()


def top_label_sums(sample: Sample) -> BinSums:
    """Rows, confidence and hits of the predicted class in one bin."""
    if sample.top_events is sample.events:
        # The very same view, so that it is resampled once.
        return sample.view(event_sums)
    return bin_events(sample.top_events).pooled()
