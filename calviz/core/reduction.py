"""Reductions of a multiclass problem to one score and one binary event per row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args, overload

from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import Dataset

ReductionKind = Literal["top-label", "top-r", "within-top-r", "class", "positive"]


@dataclass(frozen=True)
class Reduction:
    """The (score, hit) pair that every binary calibration metric is computed from.

    ============== ============================== ===================================
    kind           score                          hit
    ============== ============================== ===================================
    top-label      largest p                      label is the argmax
    top-r          r-th largest p                 label is the class holding it
    within-top-r   sum of the r largest p         label is among the r largest
    class          p of the class (one-vs-rest)   label is the class
    positive       p of class 1 (K = 2)           label is class 1
    ============== ============================== ===================================

    Attributes
    ----------
    kind : {"top-label", "top-r", "within-top-r", "class", "positive"}
    r : int
        1-based rank (``top-r`` and ``within-top-r``).
    class_name : str
        The class (``class``).

    References
    ----------
    Guo et al. 2017, eq. 1 (top-label) and section 4.1 (positive class); Gupta et al. 2021,
    eq. 2-5 and 17 (class k, top-r, within-top-r).
    """

    kind: ReductionKind = "top-label"
    r: int = 1
    class_name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(ReductionKind):
            raise OptionError(
                f"the reduction '{self.kind!s:.40}' is unknown; known: {', '.join(get_args(ReductionKind))}."
            )

    @overload
    @classmethod
    def of(cls, value: Reduction | str, /) -> Reduction: ...

    @overload
    @classmethod
    def of(cls, value: Reduction | str | None, data: Dataset, /, *others: Dataset) -> Reduction: ...

    @classmethod
    def of(cls, value: Reduction | str | None, /, *data: Dataset) -> Reduction:
        """Parse the written form: ``top-label``, ``top-2``, ``within-top-2``, ``class:NAME``, ``positive``.

        None stands for the default reduction of the data (see `default`).
        """
        if value is None:
            return cls.default(*data)
        if isinstance(value, Reduction):
            return value
        text = value.strip()
        if text in ("top-label", "top-1", "confidence"):
            return cls()
        if text == "positive":
            return cls(kind="positive")
        if text.startswith("class:") and len(text) > len("class:"):
            return cls(kind="class", class_name=text.removeprefix("class:"))
        match = re.fullmatch(r"(within-)?top-([1-9][0-9]*)", text)
        if match:
            kind: ReductionKind = "within-top-r" if match[1] else "top-r"
            r = int(match[2])
            # "within-top-1" is the top label, too.
            return cls() if r == 1 else cls(kind=kind, r=r)
        raise OptionError(
            f"the reduction '{value}' is unknown; write top-label, top-2, within-top-2, "
            "class:NAME or positive."
        )

    @classmethod
    def default(cls, *data: Dataset) -> Reduction:
        """Return the default reduction of one data set, or of several that are compared.

        With two classes it is the positive class: the top label folds the score at 1/2, so that errors above
        and below it cancel. With more classes, or if any of the data have confidences only, it is the top label.
        """
        two = all(d.kind != "confidence" and d.n_classes == 2 for d in data)
        return cls(kind="positive") if data and two else cls()

    @property
    def key(self) -> str:
        """The written form that `of` parses."""
        if self.kind == "class":
            return f"class:{self.class_name}"
        if self.kind in ("top-r", "within-top-r"):
            return f"{self.kind[:-1]}{self.r}"
        return self.kind

    @property
    def label(self) -> str:
        """Name on screen."""
        return {
            "top-label": "top label",
            "top-r": f"top {self.r}",
            "within-top-r": f"within top {self.r}",
            "class": f"class '{self.class_name}' against the rest",
            "positive": "positive class",
        }[self.kind]

    @property
    def score_label(self) -> str:
        """Axis label of the score."""
        return {
            "top-label": "Confidence (largest probability)",
            "top-r": f"Probability of the class ranked {self.r}",
            "within-top-r": f"Sum of the {self.r} largest probabilities",
            "class": f"Probability of '{self.class_name}'",
            "positive": "Probability of the positive class",
        }[self.kind]

    @property
    def hit_label(self) -> str:
        """Axis label of the observed frequency."""
        return {
            "top-label": "Accuracy",
            "top-r": f"Frequency of the class ranked {self.r}",
            "within-top-r": f"Frequency of a label within the top {self.r}",
            "class": f"Frequency of '{self.class_name}'",
            "positive": "Frequency of the positive class",
        }[self.kind]

    def class_index(self, data: Dataset) -> int:
        """Index of the class of the ``class`` and ``positive`` reductions."""
        if self.kind == "positive":
            return 1
        if self.class_name in data.class_names:
            return data.class_names.index(self.class_name)
        names = ", ".join(data.class_names[:10]) + (", ..." if data.n_classes > 10 else "")
        raise OptionError(f"there is no class '{self.class_name}'; known: {names}.")

    def other_of_two(self, data: Dataset) -> Reduction | None:
        """The other usual reduction of two-class data: top label for positive class and vice versa; otherwise None."""
        if data.kind == "confidence" or data.n_classes != 2:
            return None
        if self.kind == "top-label":
            return Reduction("positive")
        return Reduction() if self.kind == "positive" else None

    def check(self, data: Dataset) -> None:
        """Raise NotAvailable or OptionError, with the reason, if these data do not allow the reduction."""
        if data.kind == "confidence":
            if self.kind != "top-label":
                raise NotAvailable(
                    "not available for confidence-only data: it needs the probabilities "
                    "of all classes."
                )
            return
        if self.kind == "positive" and data.n_classes != 2:
            raise OptionError(
                f"the positive-class reduction needs two classes, these data have {data.n_classes}."
            )
        if self.kind in ("top-r", "within-top-r") and self.r > data.n_classes:
            raise OptionError(f"'{self.key}' needs {self.r} classes, there are {data.n_classes}.")
        if self.kind == "class":
            self.class_index(data)
