"""The errors that calviz raises, checks of options, missing packages, findings, kinds of sentences that conclude (imports no numpy)."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

if TYPE_CHECKING:
    import pandas as pd

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class Repair:
    """A change to the data that calviz offers but never makes unasked.

    Attributes
    ----------
    key : str
        The name by which it is requested (``repair=["renormalise"]``, ``--repair renormalise``).
    label : str
        What it does, in a few words, for a button or a help text.
    """

    key: str
    label: str


@dataclass(frozen=True)
class Reading:
    """One of the ways in which doubtful data can be read, offered beside the others.

    Attributes
    ----------
    label : str
        What the data would mean, in a few words, for a button.
    options : mapping of str to str, int or tuple of str
        The reading options that choose it (``{"kind": "logits"}``).
    """

    label: str
    options: Mapping[str, Any]

    def in_code(self) -> str:
        """The options as keyword arguments."""
        return ", ".join(
            f"{key}={list(value) if isinstance(value, tuple) else value!r}"
            for key, value in self.options.items()
        )


class CalvizError(ValueError):
    """Base of every error that calviz raises on purpose: its text is one full sentence."""

    def __init__(self, text: str) -> None:
        super().__init__(visible(text))


class InputError(CalvizError):
    """The given data cannot be used as they are.

    Parameters
    ----------
    what : str
        What is wrong: the offending value, and the rule it breaks.
    file : str, optional
        Name of the file (never a full path).
    row : int, optional
        1-based data row.
    line : int, optional
        1-based line of a text file.
    column : str, optional
        Name of the column or array.
    remedy : str, optional
        What the user can do about it.
    repairs : iterable of Repair, optional
        Changes that would make the data usable, on request.
    placed : bool
        Whether `what` already names the row and the column, which are then not prepended.
    columns : sequence of str, optional
        Names of the columns of the file, for a choice of another way to read it.
    readings : iterable of Reading, optional
        The ways in which the data can be read, if that is the question.
    """

    def __init__(
        self,
        what: str,
        *,
        file: str | None = None,
        row: int | None = None,
        line: int | None = None,
        column: str | None = None,
        remedy: str | None = None,
        repairs: Iterable[Repair] = (),
        placed: bool = False,
        columns: Sequence[str] = (),
        readings: Iterable[Reading] = (),
    ) -> None:
        self.what = what
        self.columns = tuple(columns)
        self.file = file
        self.row = row
        self.line = line
        self.column = column
        self.remedy = remedy
        self.repairs = tuple(repairs)
        self.placed = placed
        self.readings = tuple(readings)
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        place = [self.file] if self.file else []
        if self.row is not None and not self.placed:
            place.append(f"row {self.row:,}")
        if self.line is not None and not self.placed:
            place.append(f"line {self.line:,}")
        if self.column is not None and not self.placed:
            place.append(f"column '{shortened(self.column)}'")
        head = ", ".join(place)
        return _finished(f"{head}: {self.what}" if head else self.what, self.remedy)

    def but(self, **changes: Any) -> InputError:
        """Return the same error with some arguments changed."""
        return InputError(**(vars(self) | changes))

    def in_file(self, file: str) -> InputError:
        """Return the same error with the name of the file."""
        return self.but(file=self.file or file)

    def in_code(self) -> InputError:
        """Return the same error, its remedy completed by the arguments that choose a repair or a reading."""
        keys = " or ".join(f'repair="{repair.key}"' for repair in self.repairs)
        remedy = f"{self.remedy} ({keys})" if self.remedy and keys else self.remedy
        return self.but(remedy=self.with_readings(remedy, Reading.in_code))

    def with_readings(self, remedy: str | None, written: Callable[[Reading], str]) -> str | None:
        """Return a remedy followed by the ways to read the data, each with how it is chosen."""
        ways = "; ".join(f"{reading.label}: {written(reading)}" for reading in self.readings)
        return "; ".join(part for part in (remedy, ways) if part) or None

    def in_column(self, column: str) -> InputError:
        """Return the same error with the name of the column."""
        return self.but(column=self.column or column)


def visible(text: str) -> str:
    r"""Return text on one line, with control and invisible characters escaped.

    >>> print(visible("a\x1b[31mb\nc\u202e"))
    a\x1b[31mb c\u202e
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else " " if c.isspace() else c.encode("unicode_escape").decode()
        for c in text
    )


def lines_of(error: BaseException) -> list[str]:
    """Lines of an exception's message; the name of its type where it has none."""
    return str(error).strip().splitlines() or [type(error).__name__]


def reason_of(error: Exception) -> str:
    """Return a sentence on why there is no result, for one of many that are computed: the others go on."""
    if isinstance(error, CalvizError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for it."
    return f"it failed: {str(error) or type(error).__name__}."


def shortened(name: str) -> str:
    """Return a name on one line, cut to 80 characters, for use inside a sentence."""
    name = " ".join(name.split())
    return name if len(name) <= 80 else f"{name[:79]}…"


def _finished(text: str, remedy: str | None) -> str:
    if remedy:
        text = f"{text}; {remedy}"
    return text if text.endswith((".", "?", "!")) else f"{text}."


class OptionError(CalvizError):
    """An argument or option has a value that is not allowed.

    Parameters
    ----------
    text : str
    file : str, optional
        Name of the file that lacks what the option names, before the text.
    """

    def __init__(self, text: str, *, file: str | None = None) -> None:
        self.file = file
        super().__init__(f"{file}: {text}" if file else text)


class NotAvailable(CalvizError):
    """A metric or figure is not defined on these data; the text says why.

    It is an answer, not a failure: results carry it as ``reason`` beside a ``nan``.
    """


# ---- Checks of options


#: Largest number of known names that a sentence lists.
MOST_LISTED = 40


def known_names(given: object, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, and all of them, or the nearest of many.

    >>> known_names("eec", ["ece", "mce"])
    "did you mean 'ece'? known: ece, mce"
    """
    names = listed = list(known)
    if len(names) > MOST_LISTED:
        near = difflib.get_close_matches(str(given), names, MOST_LISTED // 2, 0.0)
        listed = [*near, f"… ({len(names)} in all)"]
    return f"{nearest(given, names)} known: {', '.join(listed)}".lstrip()


def nearest(given: object, known: Iterable[str]) -> str:
    """The question whether the nearest known name was meant; empty if none is near."""
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(given).lower(), names, 1, 0.6)
    return f"did you mean '{names[near[0]]}'?" if near else ""


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise OptionError if the value is not one of the choices."""
    if value not in choices:
        allowed = ", ".join(str(choice) for choice in choices)
        raise OptionError(f"'{name}' must be one of {allowed}; got {value!r}.")


def check_whole(name: str, value: Any, *, least: int | None = None) -> None:
    """Raise OptionError if the value is not a whole number, or is less than `least`."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or (least is not None and value < least):
        rule = "a whole number" if least is None else f"a whole number, {least} or more"
        raise OptionError(f"'{name}' must be {rule}, got {value!r}.")


def check_level(level: float, name: str = "level") -> None:
    """Raise OptionError unless the level of an interval, or another share, lies between 0 and 1, both excluded."""
    if not 0 < level < 1:
        raise OptionError(f"'{name}' must lie between 0 and 1, got {level!r}.")


def checked_cutoff(value: Any, name: str = "cutoff") -> float:
    """Return the cutoff as a float; raises OptionError unless it lies between 0 and 1."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1:
        raise OptionError(
            f"'{name}' must be a number above 0 and below 1, because its odds are the cost ratio of the two kinds of wrong decision; got {value!r}."
        )
    return float(value)


# ---- Optional packages

#: What each optional package is needed for, by module name; `pyproject.toml` lists them as extras.
PURPOSES = {
    "duckdb": "the DuckDB engine needs",
    "jinja2": "HTML reports need",
    "latex2mathml": "HTML reports need",
    "mlflow": "logging to MLflow needs",
    "pandas": "tables, reports and written files need",
    "plotly": "figures and reports need",
    "pyarrow": "Parquet, Arrow, JSON, ARFF, Excel and R files need",
    "streamlit": "the dashboard needs",
    "zstandard": "logs of Inspect that are compressed by zstd need",
    "wandb": "logging to Weights & Biases needs",
}
#: The extra that installs an optional package, where it is not `report`; all of these hold `report`.
_EXTRAS = {
    "duckdb": "scale",
    "mlflow": "mlflow",
    "streamlit": "app",
    "wandb": "wandb",
    "zstandard": "llm",
}
#: All packages that a report needs.
REPORT = ("pandas", "plotly", "jinja2", "latex2mathml")


class MissingPackage(CalvizError, ImportError):
    """The request needs packages that are not installed."""

    def __init__(self, *packages: str) -> None:
        *others, last = packages
        extras = [_EXTRAS[package] for package in packages if package in _EXTRAS]
        named, verb = (f"{', '.join(others)} and {last}", "are") if others else (last, "is")
        super().__init__(
            f"{PURPOSES.get(packages[0], 'this needs')} {named}, which {verb} not installed; "
            f"run: pip install 'calviz[{','.join(extras or ['report'])}]'."
        )


def needs(*packages: str) -> None:
    """Check that packages can be imported.

    Raises
    ------
    MissingPackage
        If one of them cannot; the sentence says what to install.

    Examples
    --------
    >>> needs("pandas")
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise MissingPackage(*missing)


def data_frame(content: Any, **options: Any) -> pd.DataFrame:
    """Return a pandas data frame; it is imported here, as it takes half a second that most commands can save."""
    needs("pandas")
    import pandas as pd

    return pd.DataFrame(content, **options)


# ---- Findings

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """One finding, in plain words.

    Attributes
    ----------
    code : str
        Stable code: ``CAL...`` for calibration findings, ``DATA...`` for reading notices.
    severity : {"info", "warning", "error"}
        How much it matters.
    message : str
        One sentence.
    short : str
        The same in at most 15 words, for a title or a list; empty if the message is short itself.
    """

    code: str
    severity: Severity
    message: str
    short: str = ""


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by severity: errors, then warnings, then the others; equal ones keep their order.

    >>> [f.code for f in worst_first([Finding("A", "info", ""), Finding("B", "error", ""), Finding("C", "info", "")])]
    ['B', 'A', 'C']
    """
    return tuple(sorted(findings, key=lambda f: -get_args(Severity).index(f.severity)))


# ---- Kinds of sentences that draw a conclusion: over what each selects, how it is adjusted, and the simulation that holds it

# A function that makes such a sentence, or decides whether it is made, is decorated with `claim`. `benchmarks/sentences.py` simulates
# each kind with known truth; `tests/architecture/test_claims.py` fails for a kind without a simulation.


@dataclass(frozen=True)
class Claim:
    """A kind of sentence.

    Attributes
    ----------
    key : str
        Name of the kind ("worst-bin").
    says : str
        The sentence, shortened.
    chosen : str
        What is selected, and from what; "nothing" if the sentence is about what the user named.
    adjusted : str
        How the selection is accounted for.
    """

    key: str
    says: str
    chosen: str
    adjusted: str


#: All kinds whose modules are imported, by key.
CLAIMS: dict[str, Claim] = {}
#: Functions that make each kind of sentence, as "module.function".
MADE_BY: dict[str, list[str]] = {}


def claim(key: str, *, says: str = "", chosen: str = "", adjusted: str = "") -> Callable[[F], F]:
    """Declare that a function makes a kind of sentence; further functions of the same kind name only its key.

    Parameters
    ----------
    key, says, chosen, adjusted : str
        As in `Claim`.

    Raises
    ------
    OptionError
        If the kind is declared twice, or in part.
    """
    if says:
        if key in CLAIMS:
            raise OptionError(f"the claim '{key}' is declared twice.")
        if not (chosen and adjusted):
            raise OptionError(
                f"the claim '{key}' does not say what it selects and how it is adjusted."
            )
        CLAIMS[key] = Claim(key, says, chosen, adjusted)

    def declare(function: F) -> F:
        MADE_BY.setdefault(key, []).append(f"{function.__module__}.{function.__qualname__}")
        return function

    return declare
