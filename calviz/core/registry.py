"""What higher rooms register: metrics, figures and other entries by key, those of plugins too, and constructors of Predictions (imports no numpy)."""

from __future__ import annotations

import importlib
import pkgutil
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar, cast

from calviz.core.errors import OptionError, known_names, lines_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from calviz.core.predictions import Dataset


#: The kinds of entries that other packages may provide, by entry points of the groups ``calviz.metrics``, ``calviz.recalibrators`` and so on.
OPEN = ("metric", "recalibrator", "figure", "format")


class PluginWarning(UserWarning):
    """Warning that a plugin of another package could not be loaded, and is left out."""


_PACKAGES: dict[str, str] = {}


def look_in(**packages: str) -> None:
    """Set the packages in which the entries of each kind register themselves: ``look_in(metric="calviz.metrics")``.

    The registries are a lower layer than the entries and do not know where these are; `calviz/__init__.py`, the top layer, does.
    """
    _PACKAGES.update(packages)


def homes() -> tuple[str, ...]:
    """The packages in which entries register themselves."""
    return tuple(_PACKAGES.values())


class Keyed(Protocol):
    """Anything with a key."""

    @property
    def key(self) -> str:
        """The name of the entry."""
        ...


T = TypeVar("T", bound=Keyed)
F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[T]):
    """Entries by key, in an order that does not depend on what was imported first.

    The package that `look_in` names for the kind is imported, module by module, on the first look-up,
    so that adding a file is all it takes to add an entry.

    Parameters
    ----------
    kind : str
        What is registered, for messages and for `look_in` ("metric").
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self._discovered = False
        self._discovering = False
        self._lock = threading.RLock()

    def register(self, entry: T) -> T:
        """Add an entry; raises OptionError if its key is taken."""
        if entry.key in self._entries:
            raise OptionError(f"there are two {self.kind}s with the key '{entry.key}'.")
        self._entries[entry.key] = entry
        return entry

    def adding(self, make: Callable[[F], T]) -> Callable[[F], F]:
        """A decorator that registers what `make` makes of the function."""

        def register(function: F) -> F:
            self.register(make(function))
            return function

        return register

    def _discover(self) -> None:
        if self._discovered:
            return
        # Sessions of the app are threads: a second one waits here until all entries are registered.
        with self._lock:
            if self._discovered or self._discovering:
                return
            self._discovering = True
            try:
                package = importlib.import_module(_PACKAGES[self.kind])
                for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
                    importlib.import_module(f"{package.__name__}.{module}")
                self._load_plugins()
                self._discovered = True
            finally:
                self._discovering = False

    def _load_plugins(self) -> None:
        """Import the entries that other packages declare; a broken one is named in a warning and left out, with all that it registered."""
        if self.kind not in OPEN:
            return
        # Imported here: the first search of the installed packages takes longer than `import calviz`.
        from importlib.metadata import entry_points

        for plugin in sorted(entry_points(group=f"calviz.{self.kind}s"), key=lambda e: e.name):
            entries = dict(self._entries)
            try:
                plugin.load()
            except Exception as error:
                self._entries.clear()
                self._entries.update(entries)
                package = plugin.dist.name if plugin.dist is not None else "a package"
                reason = lines_of(error)[0][:200]
                text = f"the plugin '{plugin.name}' of {package} ({plugin.value}) is left out: {reason}"
                warnings.warn(text, PluginWarning, stacklevel=2)

    def __getitem__(self, key: str) -> T:
        self._discover()
        try:
            return self._entries[key]
        except (KeyError, TypeError):
            known = known_names(key, self.keys())
            raise OptionError(f"there is no {self.kind} '{key!s:.60}'; {known}.") from None

    def __contains__(self, key: object) -> bool:
        self._discover()
        return key in self._entries

    def __iter__(self) -> Iterator[T]:
        self._discover()
        return iter(sorted(self._entries.values(), key=self._place))

    def _place(self, entry: T) -> tuple[Any, ...]:
        """Sort key of an entry; entries with equal keys stay in the order in which they were registered."""
        return (entry.key,)

    def __len__(self) -> int:
        self._discover()
        return len(self._entries)

    def keys(self) -> tuple[str, ...]:
        """All keys, in the order of iteration."""
        return tuple(entry.key for entry in self)


# ---- Constructors of `Predictions`
#
# `Predictions` is in the lowest room and must not import the readers; `calviz/__init__.py`, above all rooms, registers where each
# constructor is implemented.

_HOMES: dict[str, str] = {}


def register_constructors(**homes: str) -> None:
    """Register where each constructor is implemented: ``register_constructors(arrays="package.module.function")``."""
    _HOMES.update(homes)


def constructor(source: str) -> Callable[..., Any]:
    """Return the function that implements a constructor; it is imported on first use."""
    module, _, name = _HOMES[source].rpartition(".")
    return getattr(importlib.import_module(module), name)


def _implemented(source: str) -> Callable[[F], F]:
    """Let the function that is registered for a constructor do its work, with the same arguments."""

    def declare(function: F) -> F:
        @wraps(function)
        def call(cls: type, *args: Any, **options: Any) -> Any:
            signature(function).bind(cls, *args, **options)  # refuses here what is not in it
            return constructor(source)(*args, **options)

        return cast(F, call)

    return declare


class Constructors:
    """Mixin with the constructors of `Predictions`."""

    @classmethod
    @_implemented("arrays")
    def from_arrays(
        cls,
        y_true: npt.ArrayLike,
        y_prob: npt.ArrayLike,
        *,
        class_names: Sequence[Any] | None = None,
        pos_label: Any = None,
        kind: Literal["probabilities", "logits"] = "probabilities",
        splits: npt.ArrayLike | None = None,
        groups: Mapping[str, npt.ArrayLike] | None = None,
        ids: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        clusters: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
        name: str = "predictions",
    ) -> Self:
        """Make predictions from true labels of any kind and an array of probabilities.

        Parameters
        ----------
        y_true : array_like, shape (n,)
            The true classes: text, booleans, numbers or pandas categories.
        y_prob : array_like or data frame, shape (n, K) or (n,)
            Probabilities, as returned by `predict_proba`; a single column is the positive class. The columns of a frame
            name the classes.
        class_names : sequence, optional
            The classes in the order of the columns. If left out, whole numbers 0..K-1 are column indices; other labels are taken
            in sorted order, like scikit-learn's ``classes_``, and there must be as many of them as columns.
        pos_label : optional
            With two classes, the positive one, as in scikit-learn; 1 or True if left out. Text labels need it if `y_prob` has one
            column, unless they are a pair such as "no" and "yes".
        kind : {"probabilities", "logits"}
            What `y_prob` holds. With a single column of logits, the other class has logit 0.
        sample_weight, clusters : array_like, shape (n,), optional
            Weight and cluster of each row.
        splits, groups, ids, times, name
            As in `Predictions`.

        Raises
        ------
        InputError
            If lengths differ, labels are missing, the column of a label is unclear, or pandas names the same rows in another order.

        Examples
        --------
        >>> import calviz
        >>> calviz.Predictions.from_arrays(["cat", "dog", "cat"], [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]])
        <Predictions 'predictions': 3 rows, probabilities, 2 classes (cat, dog)>
        """
        raise NotImplementedError

    @classmethod
    @_implemented("multilabel")
    def from_multilabel(
        cls,
        y_true: npt.ArrayLike,
        y_prob: npt.ArrayLike | Sequence[npt.ArrayLike],
        *,
        label_names: Sequence[str] | None = None,
        **rows: Any,
    ) -> dict[str, Self]:
        """Make predictions of two classes for each of several labels, of which a row may have none or any number.

        Parameters
        ----------
        y_true : array_like or data frame, shape (n, L)
            0 and 1: which labels each row has.
        y_prob : array_like or data frame, shape (n, L), or list of L arrays of shape (n, 2)
            The probability of each label; a list is what `predict_proba` of scikit-learn's multi-output classifiers returns.
        label_names : sequence of str, optional
            The names of the labels; those of the columns of a frame, or their numbers, if left out.
        **rows
            `splits`, `groups`, `ids`, `sample_weight`, `clusters` and `kind`, as in `from_arrays`.

        Returns
        -------
        dict of str to Predictions
            By label, in the order of the columns; `compare_models` takes their values.

        Raises
        ------
        InputError
            If the shapes differ, or a value of `y_true` is neither 0 nor 1.

        Examples
        --------
        >>> import calviz
        >>> of_label = calviz.Predictions.from_multilabel([[1, 1], [0, 1]], [[0.8, 0.6], [0.3, 0.9]], label_names=["rude", "long"])
        >>> of_label["rude"]
        <Predictions 'rude': 2 rows, probabilities, 2 classes (0, 1)>
        """
        raise NotImplementedError

    @classmethod
    @_implemented("estimator")
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: npt.ArrayLike,
        *,
        response_method: Literal["predict_proba", "decision_function"] = "predict_proba",
        pos_label: Any = None,
        splits: npt.ArrayLike | None = None,
        groups: Mapping[str, npt.ArrayLike] | None = None,
        ids: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        clusters: npt.ArrayLike | None = None,
        name: str | None = None,
    ) -> Self:
        """Make predictions from a fitted scikit-learn classifier or pipeline.

        Parameters
        ----------
        estimator : object
            A classifier with ``classes_`` and ``predict_proba``.
        X : array_like or data frame
            Its input; rows that it was not fitted on.
        y : array_like, shape (n,)
            True classes.
        response_method : {"predict_proba", "decision_function"}
            The output of "decision_function" is used as logits.
        pos_label : optional
            With two classes, the positive one; the second of ``classes_`` if left out.
        sample_weight, clusters : array_like, shape (n,), optional
            Weight and cluster of each row.
        splits, groups, ids, name
            As in `Predictions`; the default name is the class of the estimator.

        Raises
        ------
        InputError
            If the estimator lacks the method, is not fitted or refuses X, or if y holds a class that it does not know.

        Examples
        --------
        >>> import calviz
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
        >>> calviz.Predictions.from_estimator(clf, X[1::2], y[1::2])
        <Predictions 'LogisticRegression': 75 rows, probabilities, 3 classes (0, 1, 2)>
        """
        raise NotImplementedError

    @classmethod
    @_implemented("frame")
    def from_frame(
        cls, frame: Any, *, model: str | None = None, name: str = "frame", **options: Any
    ) -> Dataset:
        """Read a data frame in the same way as a file with these columns.

        Parameters
        ----------
        frame : data frame
            Of pandas, polars, pyarrow, DuckDB, PySpark or any other library that narwhals supports; lazy frames are collected.
        model : str, optional
            Which model, if the frame holds several.
        name : str
            Name of the predictions.
        **options
            As in `calviz.load`: ``label="y"``, ``scores=["p_cat", "p_dog"]``, ``groups=["site"]``; other columns are recognised.

        Raises
        ------
        InputError, OptionError
            As in `calviz.load`.

        Examples
        --------
        >>> import calviz, polars
        >>> df = polars.DataFrame({"y": ["cat", "dog"], "p_cat": [0.9, 0.2], "p_dog": [0.1, 0.8], "site": ["a", "b"]})
        >>> calviz.Predictions.from_frame(df, label="y", scores=["p_cat", "p_dog"])
        <Predictions 'frame': 2 rows, probabilities, 2 classes (cat, dog), groups site>
        """
        raise NotImplementedError
