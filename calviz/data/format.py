"""What a file format is: bytes in, a table of named columns out; the options and notices of reading."""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import re
import threading
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, unique
from functools import cached_property, partial
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt

from calviz.core import errors
from calviz.core.blocks import AnyArray, BoolArray, Factor, FloatArray
from calviz.core.errors import MAX_ARRAY, MAX_FILE, Finding, InputError, OptionError, Repair, needs
from calviz.core.probabilities import RENORMALISE, SCORE_SLACK, RowsInRange, from_0_to_1
from calviz.core.registry import Registry
from calviz.core.words import PLAIN_CSV
from calviz.data import column_names
from calviz.data.column_names import EXPOSURES, WEIGHTS, class_key, event_of, is_missing, plain

# ---- Options

#: Note of a column whose cells are written with a percent sign, and read as shares.
IN_PERCENT = "in percent"
#: How notices of changes begin.
AS_ASKED = "changed as asked: "

REPAIRS: Mapping[str, Repair] = {
    repair.key: repair
    for repair in (
        RENORMALISE,
        Repair("drop-missing", "leave out the rows without label, score or date"),
        Repair("drop-labels", "leave out the few rows with labels that are none of the classes"),
        Repair("drop-outside", "leave out the few rows that are no probabilities"),
        Repair("drop-ragged", "leave out the lines with another number of cells"),
        Repair("drop-totals", "leave out the last line, which holds totals"),
        Repair("drop-headers", "leave out the lines that repeat the header"),
        Repair("drop-units", "leave out the line of units below the header"),
        Repair("above-zero", "the event is an amount above 0"),
        Repair("blank-no", "a blank label is no event"),
        Repair("others-no", "all labels but one are no event, or are the event"),
        Repair("join-spellings", "read class names that differ by case and spaces only as one"),
        Repair("percent", "divide the values by 100"),
        Repair("softmax", "read the values as logits and take their softmax"),
        Repair("sigmoid", "read the value as the logit of class 1 and take its sigmoid"),
    )
}


#: Words for separators that are not seen.
SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "space": " "}


@dataclass(frozen=True)
class ReadingOptions:
    """User settings for reading a file; everything left empty is recognised automatically.

    Parameters
    ----------
    label : str, optional
        The column or array that holds the true class.
    scores : tuple of str, optional
        The score columns; an entry that ends in ``*`` is a prefix. In NPZ files, the key of the array.
    models : tuple of str, optional
        The score columns, or prefixes, of which each is a model of its own: its probability of the event. Or what the columns of
        each model begin or end with, if each has a column for every class.
    model_column : str, optional
        The column that names the model of each row, where each identifier has a row for each model; "" means none.
    kind : {"probabilities", "logits", "confidence"}, optional
        What the scores are: of the classes or the event, or of the prediction being right.
    split_column : str, optional
        The column that holds the split; "" means none.
    groups : tuple of str, optional
        The columns to slice by; () means none. Beside "*", which stands for those that are recognised, "!name" leaves one of these out.
    id_column : str, optional
        The column that identifies the rows; "" means none.
    class_names : tuple of str, optional
        One name per class, in the order of the score columns.
    label_base : {0, 1}, optional
        Whether numeric labels count the classes from 0 or from 1.
    cluster_column : str, optional
        The column that groups rows which belong together, such as rows of one patient; never guessed. Without it, days are clusters
        where their rows are found to depend on each other; "" means none.
    weight_column : str, optional
        The column with the weight of each row; never guessed.
    weight_kind : {"importance", "frequency"}
        Whether weights are importance weights on any scale, or counts of aggregated rows, which are then repeated.
    time_column : str, optional
        The column with the time of each row; "" means none.
    prediction_column, correct_column : str, optional
        Beside a confidence: the column with the predicted class, and the one that says whether it was right.
    repair : tuple of str
        Keys of the repairs to apply ("renormalise", "drop-missing", "percent", ...).
    separator, decimal : str, optional
        Of a text file: what stands between the cells (a character, "tab" or "space"), and the decimal sign, "." or ",".
    header_line : int, optional
        Of a text file: the line that names the columns, counted from 1; what stands above it is skipped. 0 means that no line does.
    sheet : str, optional
        The sheet of an Excel workbook; if left out, the only one that holds a table of numbers.
    choices : str, optional
        How questions with choices (logs of language models, rows with different numbers of scores) become rows: "top", the top
        choice of each question; "each", one row per choice; or a number, only the questions with that many choices. If left out:
        the scores of all choices if every question has the same number of choices, the top choice otherwise.
    confidence_pattern : str, optional
        A regular expression whose first group, or the one called ``confidence``, is the confidence that a text states, such as
        ``"Sicherheit: ([0-9]+%)"``. If left out, the usual ways are looked for ("Confidence: 85%", "I am 0.85 sure") in logs of language
        models, and in a text column that is named as the scores.
    answers : str, optional
        The column with the answers, where each question has several: one row per question is made of them, with a model for each
        signal of confidence in the most frequent answer (``calviz.data.answers``). In logs of language models it is ``"answer"``. The
        question is the cluster column, or a column with a usual name.
    answer_pattern : str, optional
        A regular expression whose first group, or the one called ``answer``, is the answer in its text. If left out: what follows the
        last "Answer:", else the text without its statement of a confidence.
    same_answers : {"normalised", "exact"}
        Whether answers are the same without case, outer punctuation, repeated spaces and the form of numbers, or only letter by letter.
    """

    #: Whether a map is applied to the rows, so that labels are not needed and all other columns are kept (`ReadingForMap`).
    for_map: ClassVar[bool] = False

    label: str | None = None
    scores: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    model_column: str | None = None
    kind: Literal["probabilities", "logits", "confidence"] | None = None
    split_column: str | None = None
    groups: tuple[str, ...] | None = None
    id_column: str | None = None
    class_names: tuple[str, ...] | None = None
    label_base: Literal[0, 1] | None = None
    cluster_column: str | None = None
    weight_column: str | None = None
    weight_kind: Literal["importance", "frequency"] = "importance"
    time_column: str | None = None
    prediction_column: str | None = None
    correct_column: str | None = None
    repair: tuple[str, ...] = ()
    choices: str | None = None
    separator: str | None = None
    decimal: Literal[".", ","] | None = None
    header_line: int | None = None
    sheet: str | None = None
    confidence_pattern: str | None = None
    answers: str | None = None
    answer_pattern: str | None = None
    same_answers: Literal["normalised", "exact"] = "normalised"

    def __post_init__(self) -> None:
        for key in ("scores", "models", "groups", "class_names", "repair"):
            value = getattr(self, key)
            if isinstance(value, str):
                value = (value,)
            if value is not None:
                object.__setattr__(self, key, tuple(str(v) for v in value))
        errors.check_choice("kind", self.kind, (None, "probabilities", "logits", "confidence"))
        errors.check_choice("weight_kind", self.weight_kind, ("importance", "frequency"))
        errors.check_choice("label_base", self.label_base, (None, 0, 1))
        errors.check_choice("decimal", self.decimal, (None, ".", ","))
        errors.check_choice("same_answers", self.same_answers, ("normalised", "exact"))
        if self.separator is not None:
            sign = SEPARATOR_NAMES.get(self.separator, self.separator)
            if len(sign) != 1 or sign.isalnum() or not sign.isascii() or sign in "\"'\r\n.+-":
                raise OptionError(
                    f"the separator must be a character between cells, 'tab' or 'space', got {self.separator!r:.40}."
                )
            object.__setattr__(self, "separator", sign)
        if self.header_line is not None:
            errors.check_whole("header_line", self.header_line, least=0)
        if self.scores is not None and self.models is not None:
            raise OptionError("give the score columns of one model, or the models, not both.")
        if self.answers is None and (self.answer_pattern or self.same_answers != "normalised"):
            raise OptionError("'answer_pattern' and 'same_answers' go with 'answers'.")
        if self.choices is not None:
            choices = str(self.choices)
            number = re.fullmatch("[1-9][0-9]{0,4}", choices, re.ASCII)
            if choices not in ("top", "each") and not number:
                raise OptionError(
                    f"'choices' must be top, each, or the number of choices, got {self.choices!r:.40}."
                )
            object.__setattr__(self, "choices", choices)
        for key in self.repair:
            if key not in REPAIRS:
                raise OptionError(f"there is no repair '{key}'; known: {', '.join(REPAIRS)}.")

    @property
    def kind_of_scores(self) -> Literal["probabilities", "logits"] | None:
        """What the scores are, if they are not the confidence of the prediction."""
        return None if self.kind == "confidence" else self.kind

    @property
    def named_groups(self) -> tuple[str, ...]:
        """The columns to slice by that are named."""
        groups = self.groups or ()
        return tuple(g for g in groups if g and not ("*" in groups and g[0] in "*!"))

    def answered(self, answer: errors.Reading) -> Self:
        """Return the options with those of an answer; repairs are added to those that were made."""
        repairs = dict.fromkeys((*self.repair, *answer.options.get("repair", ())))
        return replace(self, **{**answer.options, "repair": tuple(repairs)})


def options_of(options: Mapping[str, Any]) -> ReadingOptions:
    """Make reading options from keyword arguments; raise OptionError for an unknown one."""
    names = set(ReadingOptions.__dataclass_fields__)
    if wrong := sorted(set(options) - names):
        raise OptionError(
            f"there is no reading option '{wrong[0]}'; "
            f"{errors.known_names(wrong[0], sorted(names))}."
        )
    return ReadingOptions(**options)


# ---- Notices

# A new kind takes the number after the largest; codes are never reused. A notice that belongs to none of the kinds below needs a new one.


@unique
class Notice(Enum):
    """Kinds of notices by what they are about; the value is the stable code.

    Attributes
    ----------
    value : str
        The code ("DATA001").
    title : str
        What its notices are about.
    """

    title: str

    COMMENT_LINES = "DATA001", "Lines skipped at the top of a text file"
    ENCODING = "DATA002", "Text that is not UTF-8"
    SCORE_COLUMNS = "DATA003", "Columns that are taken as the scores, and similar ones that are not"
    COMPLEMENT = "DATA004", "Two columns with complementary forecasts of one event"
    LABEL_COLUMN = "DATA005", "A column that is taken as the label without being named like one"
    ROW_SUMS = "DATA006", "Rows whose probabilities do not sum to 1"
    LABEL_VALUES = "DATA007", "Values of the label that are not simply names or numbers of classes"
    UNUSED_GROUPS = "DATA008", "Columns that are not used as groups"
    HALF_PRECISION = "DATA009", "Scores stored in half precision"
    REPAIRED = "DATA010", "Changes that were asked for"
    CONVERTED = "DATA011", "Percent, logarithms, grades, time offsets, missing or rounded numbers"
    LOGS_AND_HINTS = (
        "DATA012",
        "How logs of language models are read, and columns that may be clusters or weights",
    )
    UNUSED_VALUES = ("DATA013", "Labels without predictions; columns that cannot be used as times")
    WEIGHT_ZERO = "DATA014", "Rows of weight 0, which neither fit nor judge"
    LEFT_OUT = "DATA015", "Columns and arrays that are left out"
    MODELS = "DATA016", "A column that names the model of each row"

    def __new__(cls, code: str, title: str) -> Notice:
        """Make a kind whose value is its code."""
        kind = object.__new__(cls)
        kind._value_ = code
        kind.title = title
        return kind

    def finding(self, severity: errors.Severity, message: str) -> Finding:
        """Return a notice of this kind: one sentence."""
        return Finding(self.value, severity, message)


def stored_in_half_precision(what: str) -> Finding:
    """Return the notice about columns or an array; `what` ends with the verb ("2 columns are")."""
    return Notice.HALF_PRECISION.finding(
        "warning",
        f"{what} stored in half precision (3 digits): calibration errors below 0.001 cannot be distinguished from rounding",
    )


# ---- Errors of several formats


def damaged(how: str = "") -> InputError:
    """Return the error about a file that cannot be read to its end; `how` says what is wrong with it, if that is known."""
    detail = f": {how}" if how else ""
    return InputError(f"the file is damaged or incomplete{detail}", remedy="save or copy it again")


def no_outcomes(column: str | None = None) -> InputError:
    """Return the error about a column of labels that are all missing, or about a file that has none."""
    none = f"the column '{short(column)}' holds no outcomes" if column else "there are no labels"
    return InputError(
        f"{none}: this file can be given calibrated scores (calviz apply FILE --map MAP.json), but not judged",
        column=column,
        placed=True,
        unlabelled=True,
    )


def no_rows(what: str = "there are no rows of data") -> InputError:
    """Return the error about a file without rows; `what` is the beginning of its sentence."""
    return InputError(what, remedy="save the file with at least one row of predictions")


# ---- Columns, rows and lines in messages

#: How many places a message names.
NAMED = 5


def place(row: int, line: Callable[[int], int | None]) -> str:
    """Return "row 4 (line 5)", or "row 4" if there is no line number."""
    at = line(row)
    return f"row {row + 1:,}" + (f" (line {at:,})" if at is not None else "")


def join_places(places: list[str], total: int) -> str:
    """Join the places, and add how many more there are."""
    more = total - len(places)
    return ", ".join(places) + (f" and {more:,} more" if more > 0 else "")


def places(rows: Sequence[int], line: Callable[[int], int | None]) -> str:
    """Name the first rows, and say how many more there are."""
    return join_places([place(row, line) for row in rows[:NAMED]], len(rows))


#: Shortens names and cells of files for use inside a sentence, to fewer characters than other names.
short = partial(errors.shortened, length=40)


def known_columns(columns: Iterable[str]) -> str:
    """List the available columns, for the end of a sentence."""
    names = [short(c) for c in columns]
    more = f" and {len(names) - 12:,} more" if len(names) > 12 else ""
    return f"there are {', '.join(names[:12])}{more}"


def span(names: tuple[str, ...]) -> str:
    """Names for use in a sentence; the first and the last if there are more than two."""
    if len(names) <= 2:
        return " and ".join(short(name) for name in names)
    return f"{short(names[0])} … {short(names[-1])}"


# ---- Bytes


HEAD_BYTES = 1 << 20
_HASH_BLOCK = 1 << 20


class Source:
    """A file on disk or bytes in memory; every `open` starts at the beginning.

    Parameters
    ----------
    source : str, PathLike, bytes or binary file object
    name : str, optional
        Name in messages; the file's own name if left out.
    options : ReadingOptions, optional
        Some formats read what these choose: a sheet of a workbook, texts in a log.

    Attributes
    ----------
    while_read : ExitStack
        Resources that a format keeps open while the file is read; closed when the source, a context manager, exits.
    style : CsvStyle
        How a text file is written, once it was opened.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes | BinaryIO,
        name: str | None = None,
        options: ReadingOptions | None = None,
    ) -> None:
        self.options = options or ReadingOptions()
        self.path: Path | None = None
        self.data: bytes | None = None
        self.while_read = ExitStack()
        self.style = PLAIN_CSV
        if isinstance(source, bytes | bytearray | memoryview):
            self.data = bytes(source)
            self.name = name or "upload"
        elif isinstance(source, str | os.PathLike):
            self.path = Path(source)
            self.name = name or self.path.name or str(self.path)
            self._check_path(self.path)
        elif not callable(getattr(source, "read", None)):
            raise InputError(
                f"got {type(source).__name__}, expected the path of a file",
                remedy="data frames are taken by calviz.Predictions.from_frame(df), arrays by from_arrays(y_true, y_prob)",
            )
        else:
            # getvalue of a BytesIO does not copy; other streams are read once.
            content = source.getvalue() if isinstance(source, io.BytesIO) else source.read()
            if not isinstance(content, bytes):
                raise InputError("the file object gives text", remedy="open it in binary mode")
            self.data = content
            self.name = name or Path(str(getattr(source, "name", "upload"))).name
        self.size = self.path.stat().st_size if self.path else len(self.data or b"")
        with errors.in_file(self.name):
            MAX_FILE.check(self.size, f"the file is {MAX_FILE.written(self.size)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.while_read.close()

    def _check_path(self, path: Path) -> None:
        try:
            if path.is_dir():
                raise InputError("this is a folder", file=self.name, remedy="name a file in it")
            if not path.exists():
                raise InputError("there is no such file", file=str(path))
            if not path.is_file():
                raise InputError("this is not a regular file", file=self.name)
            with path.open("rb"):
                pass
        except InputError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"cannot be opened ({reason})", file=self.name) from None

    @cached_property
    def compressed(self) -> bool:
        """Whether the bytes are gzip-compressed."""
        with self.open_raw() as stream:
            return stream.read(2) == b"\x1f\x8b"

    def open(self) -> BinaryIO:
        """Return a new stream over all bytes, decompressed if they are gzip."""
        return cast(BinaryIO, Gunzip(self.open_raw())) if self.compressed else self.open_raw()

    def open_raw(self) -> BinaryIO:
        """Return a new, seekable stream over the raw bytes."""
        if self.data is not None:
            return io.BytesIO(self.data)
        assert self.path is not None
        return self.path.open("rb", buffering=0)  # blocks are large: a buffer would copy them

    def head(self, size: int = HEAD_BYTES) -> bytes:
        """Return the first `size` bytes, decompressed if they are gzip."""
        with self.open() as stream:
            return stream.read(size)

    def hasher(self) -> Callable[[], str]:
        """Return a function that computes the BLAKE2b-256 hash of the bytes.

        Bytes in memory are hashed in a thread during reading, so that they need not be kept; a file is
        hashed when the digest is first requested, and must not have changed by then.
        """
        if self.data is not None:
            return _hash_beside(self.data)
        path, name = self.path, self.name
        assert path is not None
        opened = path.stat()

        def digest() -> str:
            current = path.stat()
            if (current.st_mtime_ns, current.st_size) != (opened.st_mtime_ns, opened.st_size):
                raise InputError("the file has changed since it was read", file=name)
            with path.open("rb") as stream:
                digester = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=32))
            return digester.hexdigest()

        return digest


def without_bom(text: bytes) -> bytes:
    """Return text without the byte-order mark that some programs write before UTF-8."""
    return text.removeprefix(codecs.BOM_UTF8)


class Gunzip:
    """A gzip stream that raises InputError once it expands beyond the limits."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self._unpacked = raw, 0
        self._file = GzipFile(fileobj=raw, mode="rb")

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer than requested only at the end."""
        step = size if size >= 0 else 1 << 24
        try:
            block = self._file.read(step)
        except (EOFError, BadGzipFile, zlib.error):
            raise damaged("the gzip stream breaks off") from None
        self._unpacked += len(block)
        # Compared with the compressed bytes read so far, so the check works before the end.
        errors.check_expansion("the file", self._unpacked, self._raw.tell())
        return block if size >= 0 or not block else block + self.read()

    def __enter__(self) -> Gunzip:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._raw.close()


def _hash_beside(data: bytes) -> Callable[[], str]:
    result: list[str] = []

    def work(data: bytes) -> None:
        result.append(hashlib.blake2b(data, digest_size=32).hexdigest())

    thread = threading.Thread(target=work, args=(data,), daemon=True)
    thread.start()

    def digest() -> str:
        thread.join()
        return result[0]

    return digest


@contextmanager
def undamaged(*exceptions: type[Exception], how: str = "") -> Iterator[None]:
    """Turn exceptions of a reader into the error about a damaged file, of which `how` says what is wrong."""
    try:
        yield
    except errors.CalvizError:
        raise
    except exceptions:
        raise damaged(how) from None


# ---- Tables


ElementType = Literal["number", "integer", "boolean", "text", "other"]

#: Number of first rows that recognition inspects.
SAMPLE_ROWS = 1_000
#: Missing value in a column of text.
MISSING = ""
#: Numbers that stand for missing ones, as netCDF, GRIB and tables write them; so do all from the last one on.
_FILLS = (-99, -999, -9999, -99999, -32767, -32768, 9999, 99999, -999e6, 1e19)


def filled(values: AnyArray) -> BoolArray:
    """Mask of the numbers, shape (n,), that stand for missing ones beside others from 0 up: negative ones, or nine times as large as any."""
    may_be = values.ndim == 1 and values.dtype.kind in "iuf"
    if not may_be or not (far := np.abs(values) >= -_FILLS[0]).any():
        return np.zeros(values.shape, dtype=bool)
    far &= np.isin(values, _FILLS) | ((np.abs(values) >= _FILLS[-1]) & np.isfinite(values))
    others = values[~far & (values == values)].astype(np.float64)
    least, most = others.min(initial=np.inf), others.max(initial=-np.inf)
    return np.asarray(far & (least >= 0) & (most >= 0) & ((values < 0) | (values / 9 > most)))


#: A short word in brackets behind a name.
_UNIT = re.compile(r"\s[\[(][^\s\d%\])-][^\s%\])]{0,5}[\])]$")


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table, or one array of an array file.

    Attributes
    ----------
    name : str
    type : {"number", "integer", "boolean", "text", "other"}
        Type of the elements, judging by the sample.
    sample : ndarray or callable
        The first rows, or a function that returns them; see `head`.
    width : int or None
        The number of elements per row if each row holds a list (a 2-D array, a list column).
    fields : tuple of str
        The names of these elements, if the file names them.
    note : str
        Why a column of type "other" cannot be used ("it holds lists of string"); "in percent" for numbers that are written so.
    odd : mapping of int to str
        The first rows that hold something else than a number in a column of numbers, or more digits than a float, and what.
    unit : str
        What stands below its name in a line of units ("[%]").
    """

    name: str
    type: ElementType
    sample: AnyArray | Callable[[], AnyArray]
    width: int | None = None
    fields: tuple[str, ...] = ()
    note: str = ""
    odd: Mapping[int, str] = field(default_factory=dict)
    unit: str = ""

    @classmethod
    def unusable(cls, name: str, note: str) -> Column:
        """Return a column that can hold neither scores nor labels; `note` says why."""
        return cls(name, "other", np.empty(0), note=note)

    @cached_property
    def cells(self) -> AnyArray:
        """The first rows: text as objects, missing numbers as nan, missing text as ""."""
        return self.sample() if callable(self.sample) else self.sample

    @cached_property
    def head(self) -> AnyArray:
        """The first rows as `cells`, with nan for numbers that stand for missing ones."""
        fills = filled(self.cells)
        return np.where(fills, np.nan, self.cells) if fills.any() else self.cells

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers."""
        return self.type in ("number", "integer")

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its name."""
        return frozenset(column_names.words(self.name))

    @property
    def is_headed_in_percent(self) -> bool:
        """Whether its name says percent, by the sign or by a word."""
        return "%" in self.name + self.unit or bool(self.words & column_names.PERCENT)

    @property
    def has_unit(self) -> bool:
        """Whether its header ends with a unit, such as [mm] or (m), not with percent or, of a score, with its class, such as P (yes)."""
        unit = _UNIT.search(f"{self.name} {self.unit}".rstrip())
        of_class = unit and unit[0][1] == "(" and self.words & column_names.SCORE_WORDS
        return unit is not None and not of_class and not self.is_headed_in_percent

    @property
    def is_called_label(self) -> bool:
        """Whether a word of its name is one for the true class, and none rules that out."""
        words = self.words
        return bool(words & column_names.LABEL_WORDS) and not words & column_names.NO_LABEL_WORDS

    @property
    def is_called_event(self) -> bool:
        """Whether it is called like a label, an event, or what a row is, and 0 and 1 or its two words say whether that is so."""
        named = self.is_called_label or not self.words.isdisjoint(("is", *column_names.EVENTS))
        worded = self.type == "text" and event_of(self.classes) is not None
        return named and (worded or self.is_zero_one)

    @property
    def is_log_probability(self) -> bool:
        """Whether the name and the first values are those of a log-probability."""
        called = self.words & column_names.LOG_WORDS or {"log", "prob"} <= self.words
        called = called or plain(self.name) in column_names.LOG_CONFIDENCES
        return bool(called) and self.numeric and not np.any(self.head > 0)

    @property
    def is_sure(self) -> bool:
        """Whether the name says how sure a prediction is."""
        return bool(self.words & column_names.SURE) or self.is_log_probability

    @property
    def says_right(self) -> bool:
        """Whether its two words say what was right, whatever it is called."""
        pairs = {"incorrect", "correct"}, {"wrong", "right"}
        return self.type == "text" and self.classes in pairs

    # What the first rows hold

    @cached_property
    def levels(self) -> frozenset[str]:
        """The distinct values that are not missing, as text."""
        return frozenset(str(v) for v in self.head.tolist()) - {"", "nan"}

    @cached_property
    def keys(self) -> AnyArray:
        """The values as `class_key` spells them, shape (n,); None where one is missing."""
        texts = [str(v) for v in self.head.tolist()]
        known = {text: None if is_missing(text.strip()) else class_key(text) for text in {*texts}}
        return np.array([known[text] for text in texts], dtype=object)

    @cached_property
    def classes(self) -> frozenset[str]:
        """The distinct values that are not missing, as `class_key` spells them."""
        return frozenset(self.keys) - {None}

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The two classes that they may be but for a few rows, if there are such, in each possible way."""
        return column_names.pairs_of(Counter(key for key in self.keys if key is not None))

    @cached_property
    def event(self) -> tuple[BoolArray, BoolArray] | None:
        """Which rows hold the event, and which hold a label, shape (n,) each; None if there are no two classes with a known event."""
        happened = event_of(self.classes)
        known = np.array([v is not None for v in self.keys])
        return None if happened is None else (self.keys == happened, known)

    @cached_property
    def in_unit(self) -> bool:
        """Whether all numbers lie in [0, 1], ignoring NaN."""
        head = self.head
        if head.dtype.char in "fd" and head.size and from_0_to_1(head):
            return True
        if head.dtype.kind == "f":
            head = head[~np.isnan(head)]
        return bool(head.size and head.min() >= -SCORE_SLACK and head.max() <= 1 + SCORE_SLACK)

    @cached_property
    def is_zero_one(self) -> bool:
        """Whether it holds only 0 and 1."""
        if self.type == "boolean":
            return True
        values = self._values if self.numeric and self.width is None else np.empty(0)
        return values.size > 0 and bool(np.isin(values, (0, 1)).all())

    @cached_property
    def is_weight(self) -> bool:
        """Whether its name says that it holds the weight of each row, and it holds numbers that may be; a "w" of 0 and 1 may be a win."""
        named = plain(self.name) in WEIGHTS and self.numeric and (self._values >= 0).all()
        if plain(self.name) in EXPOSURES and self.type == "number":
            return bool((self._values > 0).all() and (self._values % 1).any())
        return bool(named) and not (self.words == {"w"} and self.is_zero_one)

    @cached_property
    def is_label_like(self) -> bool:
        """Whether it holds whole numbers or text, one value per row, and no weights."""
        if self.width is not None or self.type == "other" or self.is_weight:
            return False
        values = self._values if self.type == "number" else None
        return values is None or (values.size > 0 and bool((values == np.floor(values)).all()))

    @property
    def _values(self) -> AnyArray:
        """The numbers that are not missing."""
        return self.head[~np.isnan(self.head)] if self.head.dtype.kind == "f" else self.head


@dataclass(frozen=True, eq=False)
class Fetched:
    """The requested values.

    Attributes
    ----------
    scores : tuple of ndarray, each of shape (n, K)
    columns : mapping of str to ndarray or Factor
        Numbers as arrays (missing values are nan), text as factors (missing values are the level "").
    in_range : tuple of RowsInRange
        Of the scores that were looked at while they were read.
    """

    scores: tuple[FloatArray, ...]
    columns: Mapping[str, AnyArray | Factor]
    in_range: tuple[RowsInRange, ...] = ()

    def filled(self, scores: FloatArray) -> RowsInRange | None:
        """What was found while an array of `scores`, shape (n, K), was read; None if nothing was looked for."""
        return next((found for found in self.in_range if found.probs is scores), None)


def check_distinct(names: Sequence[str]) -> None:
    """Raise InputError if two columns have the same name."""
    if len({*names}) < len(names):
        repeated = next(name for name, times in Counter(names).items() if times > 1)
        what = f"there are two columns called '{repeated[:80]}'"
        raise InputError(what, remedy="give each column a name of its own")


@dataclass(eq=False)
class Table(ABC):
    """A file as columns. Looking at `columns` is cheap; `fetch` reads the file once.

    Attributes
    ----------
    format : str
        Description of the format ("CSV, semicolon-separated").
    columns : tuple of Column
    named : bool
        Whether the column names come from the file.
    arrays : bool
        Whether the columns are arrays of an array file.
    class_names : tuple of str
        Names of the classes, if the file stores them separately.
    notices : list of Finding
    questions : Questions or None
        The questions with choices from which the rows were made, if other rows can be made from them.
    cluster : str or None
        The column of rows that belong together, if the format says so.
    holder : {"file", "frame"}
        What messages call the source of the columns.
    """

    format: str
    columns: tuple[Column, ...]
    named: bool = True
    arrays: bool = False
    class_names: tuple[str, ...] = ()
    notices: list[Finding] = field(default_factory=list)
    questions: Any = None
    cluster: str | None = None
    holder: str = "file"

    def __post_init__(self) -> None:
        self._by_name = {c.name: c for c in self.columns}
        #: The names of all columns.
        self.names = tuple(c.name for c in self.columns)
        check_distinct(self.names)

    @property
    def cells(self) -> Callable[[], dict[str, Any]] | None:
        """A function that reads every column: of a text file whose columns have names as texts, of a table in memory or with types as it is."""
        return None

    def for_map(self) -> Table:
        """Return the table with the rows to which a map is applied, which need no labels."""
        return self

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The 0-based index of each column by name."""
        return {name: j for j, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @abstractmethod
    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read groups of score columns, each into one (n, K) array, and single columns, in one pass."""

    def singles(self, *but: str) -> dict[str, Any]:
        """All columns with one value per row but some, in the order of the file: numbers as such, other values as factors."""
        one = [c for c in self.columns if c.width is None and c.type != "other"]
        single = [c for c in one if c.name not in but]
        numbers = [c.name for c in single if c.numeric]
        read = self.fetch([(n,) for n in numbers], [c.name for c in single if not c.numeric])
        found: dict[str, Any] = dict(read.columns)
        found |= {n: a[:, 0] for n, a in zip(numbers, read.scores, strict=True)}
        return {c.name: found[c.name] for c in single}

    def line(self, row: int) -> int | None:
        """The 1-based line of 0-based data row `row`, for text files."""
        return None

    def missing_as(self, row: int, name: str) -> str:
        """What stands in a cell without a number, once fetched: it is "empty", "NaN", or a quoted text."""
        return "NaN"


# ---- Formats


@dataclass(frozen=True)
class Format:
    """A file format that can be read: those in `calviz.data.formats`, and those of plugins.

    Attributes
    ----------
    key : str
        "csv"
    label : str
        "CSV, TSV and other separated text"
    suffixes : tuple of str
        Usual file extensions, with the dot.
    begins : bytes
        A regular expression for the first bytes, after a mark of their order; regardless of the file name. If empty, no file is recognised as it.
    open : callable
        ``open(source)`` returns a table, without reading more than necessary.
    text : bool
        Whether the file may be compressed by gzip, as text is.
    summary : str
        What a file may hold, in one sentence.
    special : bool
        Whether it is a special case of another format; special formats are tried first.
    answers : callable, optional
        ``answers(source)`` returns the answers in a log of a language model (`calviz.data.questions`), so that several logs
        can be read together.
    package : str
        The optional package that it needs, if any (`calviz.core.errors`).
    """

    key: str
    label: str
    suffixes: tuple[str, ...]
    open: Callable[[Source], Table]
    begins: bytes = b""
    text: bool = False
    summary: str = ""
    special: bool = False
    answers: Callable[[Source], Any] | None = None
    package: str = ""

    def matches(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes is of this format."""
        return bool(self.begins and re.match(self.begins, without_bom(head), re.DOTALL))


FORMATS: Registry[Format] = Registry("format")


def reads(
    *, suffixes: tuple[str, ...] = (), **facts: Any
) -> Callable[[Callable[[Source], Table]], Callable[[Source], Table]]:
    """Register the decorated function, which opens a file, as a `Format` with these attributes."""
    return FORMATS.adding(lambda opens: Format(suffixes=suffixes, open=opens, **facts))


_ARCHIVE = "unpack it and open the file of predictions inside"
_PICKLE = (
    "pickle files are not read, because opening one can run any program",
    "save the arrays as NPZ, Parquet or CSV",
)
_REFUSED: tuple[tuple[re.Pattern[bytes], str, str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), what, remedy)
    for pattern, what, remedy in (
        (rb"\x80[\x02-\x05]", *_PICKLE),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel files (.xls) are not supported",
         "save the sheet as XLSX or CSV"),
        (rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis", "OpenDocument files are not supported",
         "save the sheet as XLSX or CSV"),
        (rb"PK(\x03\x04|\x05\x06)", "zip archives are not supported", _ARCHIVE),
        (rb"7z\xbc\xaf\x27\x1c|Rar!", "archives are not supported", _ARCHIVE),
        (rb".{257}ustar", "tar archives are not supported", _ARCHIVE),
        (rb"BZh[1-9]|\xfd7zXZ|\x28\xb5\x2f\xfd", "this kind of compression is not supported",
         "use gzip (.gz) instead"),
        (rb"\x89HDF\r\n", "HDF5 files are not supported", "save the arrays as NPZ or Parquet"),
        (rb"RD[XAB][23]\n", "workspaces of R (.RData) are not read", "save the data frame: saveRDS(frame, file)"),
        (rb"[AB]\n(?:[23]\n|[\0\2\3])", "R data in this form is not read", "save the data frame: saveRDS(frame, file)"),
        (rb"FEA1", "Feather version 1 files are not supported", "save as Feather 2 or Parquet"),
        (rb"%PDF-|\x89PNG|\xff\xd8\xff|GIF8", "this is a document or a picture, not a table",
         "open a file of predictions"),
        (rb"\x7fELF|MZ.\x00", "this is a program, not a table", "open a file of predictions"),
        (rb"\0{12}\xc2\xea\x81\x60|HEADER RECORD\*{7}LIB|\$FL[23]@|<stata_dta>|[i-s][\x01\x02]\x01\0",
         "files of SAS, SPSS and Stata are not read", "export the table as CSV"),
        (rb"SQLite format 3", "databases are not supported", "save the table as CSV or Parquet"),
        (rb"\s*<(!doctype|html|\?xml)", "this is a web page or XML, not a table",
         "open a file of predictions"),
    )
)  # fmt: skip


def format_of(source: Source) -> Format:
    """Return the format of a file, from its content; raise InputError if it cannot be read, MissingPackage if a package is missing."""
    entry = _recognised_format(source)
    if entry.package:
        needs(entry.package)
    return entry


def _recognised_format(source: Source) -> Format:
    head = source.head(8192)
    if not head:
        raise InputError("the file is empty")
    if source.compressed:
        # Decompress the beginning, which raises InputError if it expands beyond the limits.
        left = errors.EXPANSION_FLOOR + 1
        with source.open() as stream:
            while left > 0 and (block := stream.read(min(left, _HASH_BLOCK))):
                left -= len(block)
    for entry in sorted(FORMATS, key=lambda entry: not entry.special):
        if entry.matches(head):
            if source.compressed and not entry.text:
                raise InputError(
                    f"{entry.label} inside gzip is not supported", remedy="unpack it first"
                )
            return entry
    suffix = source.name.lower()
    for entry in FORMATS:
        # Content that begins like a pickle is treated as one, whatever the file name.
        if not entry.text and suffix.endswith(entry.suffixes) and head[:1] != b"\x80":
            raise damaged(f"it does not begin like {entry.label}")
    for pattern, what, remedy in _REFUSED:
        if pattern.match(head):
            raise InputError(what, remedy=remedy)
    if suffix.endswith((".pkl", ".pickle", ".joblib", ".pt", ".pth")):
        what, remedy = _PICKLE
        raise InputError(what, remedy=remedy)
    return FORMATS["csv"]


def allocate(n: int, k: int, dtype: npt.DTypeLike, *, reserve: bool = False) -> FloatArray:
    """Return an uninitialised (n, k) array; raise InputError before allocating if it exceeds the limits.

    With `reserve`, a too large n is reduced to the limit instead.
    """
    errors.MAX_CLASSES.check(k, f"there are {k:,} score columns")
    per_row = k * int(np.dtype(dtype).itemsize)
    size = n * per_row
    if reserve and size > MAX_ARRAY.value:
        n = max(16, MAX_ARRAY.value // max(1, per_row))
    elif size > MAX_ARRAY.value:
        MAX_ARRAY.check(size, f"{n:,} rows x {k:,} columns need {errors.size_text(size)}")
    try:
        return np.empty((n, k), dtype=dtype)
    except MemoryError:
        raise InputError(f"there is not enough memory for {errors.size_text(size)}") from None
