"""What calviz refuses or says, in sentences: errors, checks of options, limits, files that cannot be written, findings, claims (imports no numpy)."""

from __future__ import annotations

import csv
import difflib
import errno
import importlib.util
import io
import os
import secrets
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

#: The name of the predicted classes as a column.
PREDICTED = "predicted class"
#: The name of the probability of the second of two classes as a column.
SCORE = "score"
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
    label: str = field(compare=False)


#: Options of reading that commands call otherwise.
_IN_SHELL = {f"{one}_column": one for one in ("id", "cluster", "weight", "time")}


@dataclass(frozen=True)
class Reading:
    """One of the ways in which doubtful data can be read, offered beside the others.

    Attributes
    ----------
    label : str
        What the data would mean, in a few words, for a button.
    options : mapping of str to str, int or tuple of str
        The reading options that choose it (``{"kind": "logits"}``).
    proposed : bool
        Whether it may be chosen beforehand: not if it leaves out many rows.
    """

    label: str
    options: Mapping[str, Any]
    proposed: bool = True

    @classmethod
    def joined(cls, readings: Sequence[Reading]) -> Reading:
        """Return several readings as one, which makes the repairs of all; one that says that there are no labels is the last."""
        options: dict[str, Any] = {}
        end = next((j for j, one in enumerate(readings, 1) if one.no_labels), None)
        for reading in readings[:end]:
            repairs = (*options.get("repair", ()), *reading.options.get("repair", ()))
            options |= {**reading.options, **({"repair": repairs} if repairs else {})}
        words = ", ".join(reading.label for reading in readings[:end])
        return cls(words, options, all(reading.proposed for reading in readings[:end]))

    @property
    def no_labels(self) -> bool:
        """Whether it says that there are no labels."""
        return self.options.get("label") == ""

    def in_code(self) -> str:
        """The options as keyword arguments."""
        return ", ".join(
            f"{key}={list(value) if isinstance(value, tuple) else value!r}"
            for key, value in self.options.items()
            if value is not None  # an option that is left out
        )

    def in_shell(self) -> str:
        """The options as those of a command."""

        def written(value: Any) -> str:
            if not isinstance(value, tuple):
                return shlex.quote(str(value))
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow(value)
            return shlex.quote(line.getvalue())

        # Repairs are an option each.
        options = {k: v for k, v in self.options.items() if v is not None}
        each = {k: v if k == "repair" else (v,) for k, v in options.items()}.items()
        pairs = ((_IN_SHELL.get(key, key), one) for key, values in each for one in values)
        return " ".join(f"--{key.replace('_', '-')} {written(value)}" for key, value in pairs)


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
    where : str
        Where that is, if there are several places: named after `what`.
    placed : bool
        Whether `what` already names the row and the column, which are then not prepended.
    readings : iterable of Reading, optional
        The ways in which the data can be read, if that is the question.
    asks : bool
        Whether all that is missing is what the columns are, which the user can say.
    further : iterable of InputError, optional
        What else the file asks, whatever the answer to this is.
    unlabelled : bool
        Whether it is that there are no labels, so that the data can be calibrated but not judged.
    unmatched : tuple of two tuples of str, optional
        The classes of the scores, in their order, and the labels, if the question is which label is which class.
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
        where: str = "",
        placed: bool = False,
        readings: Iterable[Reading] = (),
        asks: bool = False,
        further: Iterable[InputError] = (),
        unlabelled: bool = False,
        unmatched: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    ) -> None:
        self.what, self.remedy, self.asks = what, remedy, asks
        self.unlabelled, self.unmatched = unlabelled, unmatched
        self.file, self.row, self.line, self.column = file, row, line, column
        self.where, self.placed = where, placed
        self.repairs, self.readings = tuple(repairs), tuple(readings)
        self.further = tuple(further)
        also = (f"Also: {one.but(file=None)}" for one in self.further)
        super().__init__(" ".join((self._sentence(), *also)))

    def _sentence(self) -> str:
        place = [self.file] if self.file else []
        if self.row is not None and not self.placed:
            place.append(f"row {self.row:,}")
        if self.line is not None and not self.placed:
            place.append(f"line {self.line:,}")
        if self.column is not None and not self.placed:
            place.append(f"column '{shortened(self.column)}'")
        head = ", ".join(place)
        what = f"{self.what}: {self.where}" if self.where else self.what
        return _finished(f"{head}: {what}" if head else what, self.remedy)

    def but(self, **changes: Any) -> InputError:
        """Return the same error with some arguments changed."""
        return InputError(**(vars(self) | changes))

    def in_file(self, file: str) -> InputError:
        """Return the same error with the name of the file."""
        return self.but(file=self.file or file)

    def in_code(self) -> InputError:
        """Return the same error, its remedy completed by the arguments that choose a repair or a reading."""
        keys = "" if self.further else " or ".join(f'repair="{r.key}"' for r in self.repairs)
        remedy = f"{self.remedy} ({keys})" if self.remedy and keys else self.remedy
        ways = "; ".join(f"{way.label}: {way.in_code()}" for way in self.ways)
        return self.but(remedy="; ".join(part for part in (remedy, ways) if part) or None)

    @property
    def answers(self) -> tuple[Reading, ...]:
        """The readings, and each repair as one."""
        repairs = (Reading(each.label, {"repair": (each.key,)}) for each in self.repairs)
        return (*self.readings, *repairs)

    @property
    def obvious(self) -> Reading | None:
        """The only answer, if it is a repair: then the question is whether to make it."""
        return self.answers[0] if len(self.answers) == 1 and not self.readings else None

    @property
    def ways(self) -> tuple[Reading, ...]:
        """The readings; where there are further questions, one for each way to answer all of them."""
        if not self.further:
            return self.readings
        ways = map(Reading.joined, product(*(q.answers for q in (self, *self.further))))
        return tuple({way.label: way for way in ways}.values())

    def in_column(self, column: str) -> InputError:
        """Return the same error with the name of the column."""
        return self.but(column=self.column or column)


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Name the file in an InputError raised within."""
    try:
        yield
    except InputError as error:
        raise error.in_file(name) from None


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


def shortened(name: str, length: int = 80) -> str:
    """Return a name on one line, cut to `length` characters, for use inside a sentence."""
    name = " ".join(name.split())
    return name if len(name) <= length else f"{name[: length - 1]}…"


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


#: Names of other libraries and other interfaces, for the question which name was meant, by calviz's name.
OTHER_NAMES = {
    "accuracy": "acc accuracy_score",
    "auprc": "average_precision pr_auc",
    "auroc": "auc roc_auc roc_auc_score c_statistic",
    "brier": "brier_score brier_score_loss neg_brier_score",
    "ece": "calibration_error expected_calibration_error",
    "ece_equal_mass": "adaptive_calibration_error adaptive_ece ace",
    "isotonic": "isotonic_regression",
    "nll": "log_loss neg_log_loss cross_entropy negative_log_likelihood",
    "platt": "sigmoid logistic platt_scaling",
    "weight_column": "weight weights sample_weight",
}


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
    meant = {other: key for key in names for other in OTHER_NAMES.get(key, "").split()}
    names = {other: names[key] for other, key in meant.items()} | names
    near = difflib.get_close_matches(str(given).lower(), names, 1, 0.6)
    return f"did you mean '{names[near[0]]}'?" if near else ""


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise OptionError if the value is not one of the choices."""
    if value not in choices:
        allowed = ", ".join(str(choice) for choice in choices if choice is not None)
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
        percent = f" ({level:g} % is {level / 100:g})" if 1 < level < 100 else ""
        raise OptionError(f"'{name}' must lie between 0 and 1, got {level!r}{percent}.")


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
    "python_calamine": "Excel files need",
    "streamlit": "the dashboard needs",
    "wandb": "logging to Weights & Biases needs",
}
#: The extra that installs an optional package, where it is not `report`; all of these hold `report`.
_EXTRAS = {"duckdb": "scale", "mlflow": "mlflow", "streamlit": "app", "wandb": "wandb"}
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


#: A data frame of pandas, which is not imported for its name.
DataFrame: TypeAlias = "pd.DataFrame"


def data_frame(content: Any, **options: Any) -> DataFrame:
    """Return a pandas data frame; it is imported here, as it takes half a second that most commands can save."""
    needs("pandas")
    import pandas as pd

    return pd.DataFrame(content, **options)


def picked(value: Any, names: str) -> dict[str, Any]:
    """Return attributes of a result by name."""
    return {name: getattr(value, name) for name in names.split()}


# ---- Size limits


@dataclass(frozen=True)
class Limit:
    """The largest accepted value of a quantity, so that a file cannot exhaust the machine.

    Attributes
    ----------
    key : str
        ``CALVIZ_MAX_<KEY>`` is the environment variable that replaces the default.
    default : int
    unit : str
        What is counted, in the plural ("classes"); "bytes" is written as MiB or GiB.
    """

    key: str
    default: int
    unit: str

    @property
    def variable(self) -> str:
        """Name of the environment variable that overrides the default."""
        return f"CALVIZ_MAX_{self.key}"

    @property
    def value(self) -> int:
        """The limit in force; raises OptionError if the variable is not a positive number."""
        text = os.environ.get(self.variable)
        if text is None:
            return self.default
        try:
            value = int(text.replace("_", ""))
        except ValueError:
            value = 0
        if value < 1:
            raise OptionError(f"{self.variable} must be a positive whole number, got '{text}'.")
        return value

    def written(self, value: float) -> str:
        """Return `value` with its unit, for a sentence."""
        return size_text(value) if self.unit == "bytes" else f"{value:,.0f} {self.unit}"

    def check(self, value: float, what: str) -> None:
        """Raise InputError, naming the limit and how to raise it, if `value` is above it."""
        if value > self.value:
            raise InputError(
                f"{what}, above the limit of {self.written(self.value)}",
                remedy=f"set the environment variable {self.variable} to raise it",
            )


def size_text(size: float) -> str:
    """Return a number of bytes in readable units.

    >>> size_text(389_179), size_text(24e12)
    ('380.1 KiB', '21.8 TiB')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:,.0f} bytes" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError


def machine_memory() -> int:
    """Memory available to this process in bytes: that of the machine, or the limit of its container."""
    try:
        sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # pragma: no cover  # not a Unix
        return 16 << 30
    for place in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # "max" is not a number
            sizes.append(int((Path("/sys/fs/cgroup") / place).read_text()))
    return min(size for size in sizes if size > 0)


MAX_FILE = Limit("FILE_BYTES", 8 << 30, "bytes")
#: One array in memory; checked from its declared shape before allocation.
MAX_ARRAY = Limit("ARRAY_BYTES", min(8 << 30, machine_memory() // 2), "bytes")
#: Largest ratio of unpacked to compressed size of an archive member or .gz (above `EXPANSION_FLOOR`).
MAX_EXPANSION = Limit("EXPANSION", 200, "times the compressed size")
#: JSON text, which is held in memory as a whole; an eighth of this where Python's own parser has to read it.
MAX_JSON = Limit("JSON_BYTES", 2 << 30, "bytes")
MAX_ROWS = Limit("ROWS", 100_000_000, "rows")
MAX_COLUMNS = Limit("COLUMNS", 50_000, "columns")
#: One line of a text file, such as a header of many long names.
MAX_LINE = Limit("LINE_BYTES", 32 << 20, "bytes")
#: Arrays in one NPZ file, each of which is inspected.
MAX_ARRAYS = Limit("ARRAYS", 10_000, "arrays")
MAX_CLASSES = Limit("CLASSES", 20_000, "classes")
#: Cells of a text file up to which it is read in double precision; larger tables are read as float32.
MAX_DOUBLE_CELLS = Limit("DOUBLE_CELLS", 25_000_000, "cells")
#: Long computations that run at the same time, over all sessions of a server; others are queued.
MAX_JOBS = Limit("JOBS", max(2, os.cpu_count() or 2), "computations at a time")
#: One picture that a row refers to.
MAX_PICTURE = Limit("PICTURE_BYTES", 5 << 20, "bytes")
#: What one session may keep open; beyond this, its oldest files are closed, with a message.
MAX_OPEN_FILES = Limit("OPEN_FILES", 12, "open files")
MAX_OPEN_BYTES = Limit("OPEN_BYTES", 4 << 30, "bytes")

#: Up to this many unpacked bytes any expansion is allowed, so that small sparse files are never refused.
EXPANSION_FLOOR = 64 << 20


def check_expansion(what: str, unpacked: int, packed: int) -> None:
    """Raise InputError if compressed data expand out of all proportion (a "zip bomb")."""
    if unpacked > EXPANSION_FLOOR and unpacked > MAX_EXPANSION.value * max(packed, 1):
        raise InputError(
            f"{what} unpacks {size_text(packed)} to {size_text(unpacked)} or more, above the limit "
            f"of {MAX_EXPANSION.value:,} times the compressed size",
            remedy=f"set the environment variable {MAX_EXPANSION.variable} to raise it",
        )
    MAX_ARRAY.check(unpacked, f"{what} unpacks to {size_text(unpacked)} or more")


#: Default number of rows that `calviz.sample_rows` draws for fitting.
DEFAULT_SAMPLE_ROWS = 100_000
#: Default number of resamples for intervals and noise floors; here, where help texts find it without the import of scipy.
RESAMPLES = 1_000


# ---- Files written whole or not at all

#: Error numbers for a full disk or quota.
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class OutputError(CalvizError):
    """A file could not be written; an earlier file of that name is unchanged."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file in the same folder, and rename it to `path` at the end.

    If anything fails, or the work is interrupted, the temporary file is removed and `path` stays unchanged.
    Devices and pipes are written to directly.

    Raises
    ------
    OutputError
        If the file cannot be written, for example on a full disk.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replacing(target) as temporary_path:
    ...     _ = temporary_path.write_text("whole")
    ...     target.exists()
    False
    >>> target.read_text()
    'whole'
    """
    mode = _mode(path)
    temporary_path: Path | None = None
    try:
        if _is_written_directly(path):
            yield Path(path)
            return
        target = real_path(path)  # a link stays a link
        # Named before it is made, so that a signal at any moment finds what to remove; formats are chosen by the suffix.
        temporary_path = target.parent / f".calviz-{secrets.token_hex(8)}{target.suffix}"
        temporary_path.touch(0o600, exist_ok=False)
        yield temporary_path
        temporary_path.chmod(_default_mode() if mode is None else stat.S_IMODE(mode))
        temporary_path.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        left = "nothing was written" if mode is None else "what was there before is unchanged"
        raise OutputError(
            f"{Path(path).name}: cannot be written ({reason[:1].lower()}{reason[1:]}); {left}."
        ) from None
    finally:
        if temporary_path is not None:
            with suppress(OSError):
                temporary_path.unlink()


def check_place(path: str | os.PathLike[str], name: str) -> Path:
    """Return the path if a file can be put there; `name` is what messages call it.

    Raises
    ------
    OptionError
        If it is a directory, or its directory does not exist or cannot be written to.
    """
    target = Path(path)
    if target.is_dir():
        raise OptionError(f"{name} is a directory; give the name of a file.")
    if not target.absolute().parent.is_dir():
        raise OptionError(f"{name}: there is no such directory.")
    if not _is_written_directly(target) and not os.access(real_path(target).parent, os.W_OK):
        raise OptionError(f"{name}: its directory cannot be written to; give another.")
    return target


@contextmanager
def folder_for(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder, and those above it; if the block fails, the ones that were made and are still empty are removed."""
    folder = Path(path)
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):
            for place in made:
                place.rmdir()
        raise


def real_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path without links; of a loop of links, where it begins (`Path.resolve` raises RuntimeError)."""
    return Path(os.path.realpath(path))


def write_output(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file (text as UTF-8) whole or not at all; raises OutputError."""
    with replacing(path) as temporary_path:
        temporary_path.write_bytes(content.encode() if isinstance(content, str) else content)


def _mode(path: str | os.PathLike[str]) -> int | None:
    try:
        return Path(path).stat().st_mode
    except OSError:
        return None


def _is_written_directly(path: str | os.PathLike[str]) -> bool:
    mode = _mode(path)
    # "/dev/stdout" may point to a regular file that other processes write to as well.
    device = str(Path(path).absolute()).startswith(("/dev/", "/proc/"))
    return device or (mode is not None and not stat.S_ISREG(mode))


def _default_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def record_batches(table: Any, rows: int, library: object) -> pa.RecordBatchReader:
    """Return a reader of Arrow batches.

    Parameters
    ----------
    table : object
        A DuckDB relation, an Ibis table, or anything else with one of their methods.
    rows : int
        Approximate number of rows per batch.
    library : object
        Name of the library, for the error message.

    Raises
    ------
    InputError
        If the table has no such method.
    """
    if hasattr(table, "to_arrow_reader"):
        return table.to_arrow_reader(rows)
    if hasattr(table, "to_pyarrow_batches"):
        return table.to_pyarrow_batches(chunk_size=rows)
    raise InputError(f"frames of {library} cannot be read in batches")


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
    model_column : str
        The column whose values may be models, if that is the finding.
    """

    code: str
    severity: Severity
    message: str
    short: str = ""
    model_column: str = ""


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
