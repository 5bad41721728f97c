"""Rows in memory: Arrow tables (pyarrow is imported when used), and tables whose cells or rows hold less or more than one value.

The latter are vectors and percentages as text, lists of classes with scores, and one row per class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import AnyArray, Factor, FloatArray, IntArray
from calviz.core.errors import MAX_CLASSES, MAX_COLUMNS, InputError, check_expansion
from calviz.core.probabilities import ROW_SUM_TOLERANCE
from calviz.data import column_names
from calviz.data import format as file_format
from calviz.data.column_names import LABELS, MISSING_WORDS, PREDICTED, is_score_name, plain
from calviz.data.format import SAMPLE_ROWS, Column, Fetched, Notice, Table, places, short, span

# ---- Arrow tables


@dataclass(eq=False, kw_only=True)
class ArrowRows(Table):
    """Rows of an Arrow table; columns of lists or of objects of numbers hold several scores per row.

    Attributes
    ----------
    data : pyarrow.Table
    raw : pyarrow.Table, optional
        The same rows before `flattened`.
    lines : ndarray of int, optional
        Line number of each row in a text file, shape (n,).
    """

    data: Any
    raw: Any = None
    lines: npt.NDArray[np.int64] | None = None

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Copy the requested columns; see `Table.fetch`."""
        from calviz.data import arrow_tables

        arrays = tuple(self._scores(group) for group in scores)
        single_columns: dict[str, AnyArray | Factor] = {
            name: arrow_tables.single(self.data.column(name), name) for name in columns
        }
        return Fetched(arrays, single_columns)

    @property
    def cells(self) -> Callable[[], dict[str, Any]] | None:
        """The columns as they are, lists of classes and scores as the file has them."""
        listed = {f.name: nested_fields(f.type) for f in self.raw.schema} if self.raw else {}
        return lambda: {n: (self.raw if listed.get(n) else self.data).column(n) for n in self.data.column_names}  # fmt: skip

    def _scores(self, group: tuple[str, ...]) -> Any:
        from calviz.data import arrow_tables

        width = self[group[0]].width if len(group) == 1 else None
        out = file_format.allocate(self.data.num_rows, width or len(group), np.float64)
        if width is not None:
            try:
                arrow_tables.fill_block(out, self.data.column(group[0]), group[0], 0)
            except InputError as error:
                line = self.line(error.row - 1) if error.row else None
                raise InputError(error.what, row=error.row, line=line, column=group[0]) from None
        else:
            arrow_tables.fill(out, [self.data.column(name) for name in group])
        return out

    def line(self, row: int) -> int | None:
        """Line number of a row, counting blank lines."""
        return None if self.lines is None else int(self.lines[row])

    def missing_as(self, row: int, name: str) -> str:
        """What stands in a cell without a number; see `Table.missing_as`."""
        outer, _, inner = name.partition("[")
        if outer not in self:
            return "NaN"
        value = self.data.column(outer)[row].as_py()
        if isinstance(value, dict):
            value = value.get(inner.removesuffix("]"))
        return "empty" if value is None else "NaN"


def arrow_of(columns: dict[str, Any]) -> Any:
    """Return columns as an Arrow table; factors as dictionaries."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.DictionaryArray.from_arrays(values.codes, list(values.levels))
            if isinstance(values, Factor)
            else pa.array(values)
            for name, values in columns.items()
        }
    )


def arrow_rows(data: Any, what: str, **more: Any) -> ArrowRows:
    """Return the table of an Arrow table; raise InputError if it has too many columns or no rows.

    Parameters
    ----------
    data : pyarrow.Table
    what : str
        Beginning of the message about too many columns ("the objects have").
    **more
        Other fields of `ArrowRows`: format, notices, ...
    """
    from calviz.data import arrow_tables

    MAX_COLUMNS.check(data.num_columns, f"{what} {data.num_columns:,} keys")
    if not data.num_rows:
        raise file_format.no_rows()
    columns = (
        arrow_tables.describe(
            name, data.column(name).type, partial(data.column(name).slice, 0, SAMPLE_ROWS)
        )
        for name in data.column_names
    )
    return ArrowRows(columns=tuple(columns), data=data, **more)


#: Pairs of keys for class and score in list elements, as written by pipelines of Hugging Face and by BigQuery.
_PAIRS = (("label", "score"), ("label", "probability"), ("class", "probability"), ("label", "prob"), ("class", "prob"))  # fmt: skip


def flat(table: Table) -> Table:
    """Return a table of an Arrow or Parquet file as `flattened` does: in memory, if there is anything to replace."""
    from calviz.data import arrow_tables

    if not isinstance(table, arrow_tables.TypedTable):
        return table
    if not any(
        nested_fields(f.type) or any(map(_is_words, (f, *_within(f)))) for f in table.schema
    ):
        return table
    check_expansion("the table", 8 * len(table.columns) * table.rows, table.source.size)
    with arrow_tables.readable(table.format):
        raw = table._table(list(table.names))
        data = flattened(raw)
    return arrow_rows(data, "the file has", format=table.format, notices=table.notices, raw=raw)


def flattened(table: Any) -> Any:
    """Replace lists ``[{"label": "a", "score": 0.9}, ...]``, and lists of scores beside one of their classes, by objects ``{"a": 0.9, ...}``, vectors of Spark by lists, and lists of some of the names of an object by 0 or 1 for each.

    Parameters
    ----------
    table : pyarrow.Table
    """
    import pyarrow as pa

    table = _matched(table)
    for at, name in enumerate(table.column_names):
        fields = nested_fields(table.schema.field(name).type)
        if not fields:
            continue
        rows = table.column(name).to_pylist()
        if all(row is None or (len(row) == 1 and isinstance(row[0], list)) for row in rows):
            rows = [row and row[0] for row in rows]
        values = _vectors(rows) if "values" in fields else _objects(rows, fields, name)
        try:
            table = table if values is None else table.set_column(at, name, pa.array(values))
        except pa.ArrowException:
            continue
    objects = [[f.name for f in _within(one)] for one in table.schema]
    for name in (f.name for f in table.schema if _is_words(f)):
        rows = table.column(name).to_pylist()
        held = {word for row in rows for word in row or ()}
        for word in next((names for names in objects if held and held <= {*names}), ()):
            true = pa.array([None if row is None else int(word in row) for row in rows])
            table = table.append_column(f"{name}.{word}", true)
    return table


def _matched(table: Any) -> Any:
    """Replace lists of scores beside a list of their classes by objects, also inside an object, as Vertex AI writes them beside that of the inputs."""
    import pyarrow as pa

    held = {f.name: _within(f) for f in table.schema}
    inside = [n for n, of in held.items() if any(map(_is_words, of)) and any(map(_is_scores, of))]
    bare = {f"{n}.{f.name}": f.name for n, of in held.items() if inside for f in of}
    table = table.flatten() if inside else table
    words = sorted(
        filter(_is_words, table.schema),
        key=lambda f: column_names.is_identifier(f.name.rpartition(".")[2]),
    )
    used = set[str]()
    for at, one in enumerate(table.schema if words else ()):
        of = next((f"{n}." for n in inside if one.name.startswith(f"{n}.")), "")
        for name in (f.name for f in words if _is_scores(one) and f.name.startswith(of)):
            lists = (table.column(each).to_pylist() for each in (name, one.name))
            found = _by_class([*zip(*lists, strict=True)], (name, one.name), bool(of))
            if found is not None:
                table, used = table.set_column(at, one.name, pa.array(found)), {*used, name}
                break
    table = table.drop_columns([*used])
    often = Counter(bare.get(name, name) for name in table.column_names)
    renamed = (bare.get(name, name) for name in table.column_names)
    names = zip(renamed, table.column_names, strict=True)
    return table.rename_columns([new if often[new] == 1 else name for new, name in names])


def _by_class(
    rows: Sequence[tuple[list[str] | None, list[float] | None]], names: tuple[str, str], sure: bool
) -> list[dict[str, float] | None] | None:
    """Scores by class; None for lists that may be anything else: unless they are `sure` to belong together, all rows must have the same classes."""
    pairs = [(classes or [], scores or []) for classes, scores in rows]
    differ = [row for row, (classes, scores) in enumerate(pairs) if len(classes) != len(scores)]
    sure = sure or len({frozenset(classes) for classes, _ in pairs if classes}) == 1
    if not sure or len(differ) == len(rows) or any(len({*c}) < len(c) for c, _ in pairs):
        return None
    if differ:
        classes, scores = pairs[differ[0]]
        what = f"{len(classes):,} classes in '{short(names[0])}', but {len(scores):,} scores"
        raise InputError(what, row=differ[0] + 1, column=names[1])
    of_class = [[{"": c, "p": p} for c, p in zip(*pair, strict=True)] or None for pair in pairs]
    return _objects(of_class, ("", "p"), names[1])


def _within(field: Any) -> list[Any]:
    return [*field.type] if str(field.type).startswith("struct<") else []


def _elements(field: Any) -> str:
    """The type of what lists hold; "" of other columns."""
    is_list = str(field.type).startswith(("list<", "large_list<"))
    return str(field.type.value_type) if is_list else ""


def _is_words(field: Any) -> bool:
    return _elements(field) in ("string", "large_string")


def _is_scores(field: Any) -> bool:
    return _elements(field) in ("float", "double")


def nested_fields(kind: Any) -> tuple[str, ...]:
    """The fields of a type that `flattened` replaces; empty for other types.

    Parameters
    ----------
    kind : pyarrow.DataType
    """
    import pyarrow as pa

    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    inner = kind.value_type if is_list else kind
    if is_list and (pa.types.is_list(inner) or pa.types.is_large_list(inner)):
        return nested_fields(inner)
    if not pa.types.is_struct(inner):
        return ()
    fields = {inner.field(j).name for j in range(inner.num_fields)}
    if is_list:
        return next((pair for pair in _PAIRS if set(pair) == fields), ())
    # The fields of a vector of Spark; dense ones have no size and indices.
    vector = {"type", "values"} <= fields <= {"type", "size", "indices", "values"}
    return tuple(sorted(fields)) if vector else ()


def _objects(
    rows: Sequence[Sequence[Mapping[str, Any]] | None], pair: tuple[str, ...], name: str
) -> list[dict[str, float] | None] | None:
    """Return ``[{"label": "a", "score": "0.9"}]`` as ``{"a": 0.9}``; None if a row is empty or a score is no number."""
    key, score = pair
    try:
        objects = [
            None if row is None else {str(e[key]): _number(e[score]) for e in row if e is not None}
            for row in rows
        ]
    except (ValueError, TypeError):  # or several lists
        return None
    every = {key for row in objects for key in row or ()}
    most = max((len(row) for row in objects if row), default=0)
    named = is_score_name(name) or plain(name.rpartition(".")[2]) in column_names.PROBABILITIES
    if named and most < len(every) and {} not in objects:
        raise InputError(
            f"no row has scores of more than {most:,} of {len(every):,} classes, and nothing says how the others share the rest",
            column=name,
            remedy="write the scores of all classes (top_k=None), or the first class of each row as 'predicted_label' and its score as 'confidence', beside the true class",
        )
    return None if {} in objects else objects


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


def _vectors(rows: Sequence[Mapping[str, Any] | None]) -> list[list[float] | None] | None:
    """Return the vectors of Spark as lists; None if a sparse one is damaged."""
    lists: list[list[float] | None] = []
    for row in rows:
        values = None if row is None else row["values"]
        if row is not None and row.get("indices") is not None:
            size = row["size"] or 0
            MAX_CLASSES.check(size, f"a vector has {size:,} values")
            at, values = row["indices"], [0.0] * size
            if len(at) != len(row["values"]) or any(not 0 <= j < size for j in at):
                return None
            for j, value in zip(at, row["values"], strict=True):
                values[j] = value
        lists.append(values)
    return lists


# ---- Cells that hold several numbers, and rows of one class


def reshaped(table: Table) -> Table:
    """Return a table with vectors and percentages as numbers, and all classes of a question in one row.

    A table without such columns and rows is returned as it is. Only its first rows are looked at, unless they look like one row per class.
    """
    if not table.named or table.arrays:
        return table
    written = {c.name: cell for c in table.columns if (cell := _written(c)) is not None}
    if written:
        widths = {cell.width for cell in written.values()}
        lists = {c.name: [*map(_words, c.head)] for c in table.columns if c.type == "text"}
        of = {n: w[0] for n, w in lists.items() if len({frozenset(c) for c in w}) == 1 and len({*w[0]}) > 1 and len(w[0]) in widths}  # fmt: skip
        table = WrittenCells(
            **_of_base(table, class_names=table.class_names, questions=table.questions),
            columns=tuple(
                _described(c, written.get(c.name), next(iter(of.values()), ()))
                for c in table.columns
                if c.name not in of
            ),
            listed=next(iter(of), ""),
            written=written,
        )
    return _by_classes_beside(table) or _wide(table) or table


def _of_base(table: Table, **changed: Any) -> dict[str, Any]:
    """What a table made of another one has of that."""
    kept = {name: getattr(table, name) for name in ("format", "notices", "holder")}
    return {"base": table, **kept, **changed}


# ---- Cells


#: How lists of numbers are written: by Python, NumPy, PyTorch, Spark, Postgres.
_DENSE = re.compile(
    r"(?:(?:DenseVector|Vector|(?:np\.)?array|(?:torch\.)?tensor)\s*\()?\s*"
    r"(?:\[{1,2}(?P<list>[^\[\]]*)\]{1,2}|\((?P<tuple>[^\[\](){}]*,[^\[\](){}]*)\)|\{(?P<braces>[^{}:\"']*)\})"
    r"\s*(?:,\s*\w+=[\w.:'\"]+\s*)*\)?"
)
#: Spark's sparse vectors: (3,[0,2],[0.1,0.9]) and SparseVector(3, {0: 0.1, 2: 0.9}).
_SPARSE = re.compile(
    r"(?:SparseVector)?\s*\(\s*(?P<size>\d{1,9})\s*,\s*"
    r"(?:\[(?P<at>[\d,\s]*)\]\s*,\s*\[(?P<values>[^\[\]]*)\]|\{(?P<pairs>[^{}]*)\})\s*\)"
)
_PERCENT = re.compile(r"([+-]?\d+(?:[.,]\d+)?)(?:[eE]([+-]?\d+))?\s*%")


def _words(text: str) -> list[str]:
    """The words of a list that is written as text, each in quotes; none of other text.

    >>> _words("['no', 'yes']"), _words('["no","yes"]'), _words("[0.1, 0.9]"), _words("no")
    (['no', 'yes'], ['no', 'yes'], [], [])
    """
    is_list = text.strip().startswith("[") and text.strip().endswith("]")
    return [match[1] for match in re.findall(r"""(['"])(.*?)\1""", text)] if is_list else []


def vector(text: str) -> list[float] | None:
    """Return the numbers of a vector that is written as text; None if it is none.

    >>> vector("[0.1 0.9]"), vector("DenseVector([0.1, 0.9])"), vector("(3,[0,2],[0.1,0.9])")
    ([0.1, 0.9], [0.1, 0.9], [0.1, 0.0, 0.9])
    """
    text = re.sub(r"np\.float\d+\(([^()]*)\)", r"\1", text.strip())
    try:
        if match := _SPARSE.fullmatch(text):
            return _sparse(match)
        match = _DENSE.fullmatch(text)
        inner = match and (match["list"] or match["tuple"] or match["braces"])
        return _numbers(inner) if inner else None
    except (ValueError, IndexError):
        return None


def _numbers(text: str) -> list[float]:
    return [float(cell) for cell in text.replace(",", " ").replace(";", " ").split()]


def _sparse(match: re.Match[str]) -> list[float]:
    size = int(match["size"])
    if size > MAX_CLASSES.value:
        raise ValueError
    if match["pairs"] is not None:
        pairs = [pair.split(":") for pair in match["pairs"].split(",") if pair.strip()]
    else:
        places, values = match["at"].split(","), match["values"].split(",")
        pairs = [[a, v] for a, v in zip(places, values, strict=True) if a.strip()]
    row = [0.0] * size
    for place, value in pairs:
        row[int(place)] = float(value)
    return row


def percentage(text: str) -> list[float] | None:
    """Return the number that a percentage written as text stands for, in a list; None if it is none.

    >>> percentage("12.5%"), percentage("8,2 %"), percentage("12.5")
    ([0.125], [0.082], None)
    """
    match = _PERCENT.fullmatch(text.strip())
    # To the digits of the text, which a division may miss by the last bit.
    return [float(f"{match[1].replace(',', '.')}e{int(match[2] or 0) - 2}")] if match else None


@dataclass(frozen=True)
class _Cell:
    """How the cells of a column are written: `read` returns the `width` numbers of one, None if it cannot."""

    read: Callable[[str], list[float] | None]
    width: int
    example: str

    def notice(self, name: str) -> str:
        if self.read is percentage:
            return f"'{short(name)}' is written in percent ('{short(self.example)}'): its numbers are divided by 100"
        return f"'{short(name)}' holds text such as '{short(self.example)}', read as {self.width} numbers per row"

    def array(self, factor: Factor, name: str, line: Callable[[int], int | None]) -> FloatArray:
        """Numbers of all rows, shape (n, width); missing cells, and those that are no percentage, are nan."""
        levels: FloatArray = np.full((len(factor.levels), self.width), np.nan)
        for j, text in enumerate(factor.levels):
            numbers = self.read(text)
            if numbers is None and (self.read is percentage or text.strip() in MISSING_WORDS):
                continue
            if numbers is None:
                row = int((factor.codes == j).argmax())
                what = f"is '{short(text)}', but other rows hold {self.width} numbers such as '{short(self.example)}'"
                raise InputError(what, row=row + 1, line=line(row), column=name)
            # A list that is cut off has no score for each class: such rows are treated as those without one.
            if len(numbers) == self.width:
                levels[j] = numbers
        out = file_format.allocate(len(factor), self.width, np.float64)
        np.take(levels, factor.codes, axis=0, out=out)
        return out


def _written(column: Column) -> _Cell | None:
    """How the numbers of a column of text are written; None if it holds other text, but for a few cells among percentages."""
    if column.type != "text" or column.width is not None:
        return None
    cells = [text for text in column.head.tolist() if text.strip() not in MISSING_WORDS]
    if not cells:
        return None
    percentages = [text for text in cells if "%" in text and percentage(text)]
    if len(percentages) / len(cells) >= (0.5 if is_score_name(column.name) else 0.9):
        return _Cell(percentage, 1, percentages[0])
    lengths = [len(vector(text) or ()) for text in cells] if vector(cells[0]) else [0]
    usual, times = Counter(lengths).most_common(1)[0]
    if all(lengths) and times >= 0.9 * len(lengths):
        return _Cell(vector, usual, cells[lengths.index(usual)])
    return None


def _described(column: Column, cell: _Cell | None, classes: Sequence[str]) -> Column:
    if cell is None:
        return column
    if cell.width > 1:
        MAX_CLASSES.check(cell.width, f"'{short(column.name)}' holds {cell.width:,} values per row")
        of = tuple(classes) if len(classes) == cell.width else ()
        return Column(column.name, "number", np.empty(0), width=cell.width, fields=of)
    cells = [cell.read(text) or [np.nan] for text in column.head.tolist()]
    odd = {j: str(text) for j, text in enumerate(column.head) if np.isnan(cells[j][0])}
    note = file_format.IN_PERCENT if cell.read is percentage else ""
    values = np.array([numbers[0] for numbers in cells])
    return Column(column.name, "number", values, note=note, odd=odd)


@dataclass(eq=False, kw_only=True)
class WrittenCells(Table):
    """A table with columns of text that hold vectors or percentages.

    Attributes
    ----------
    base : Table
    written : mapping of str to _Cell
        How these columns are written.
    listed : str
        The column with the classes of each row, in the order of its numbers; "" if there is none.
    """

    base: Table
    written: Mapping[str, _Cell]
    listed: str = ""
    _texts: dict[str, Factor] = field(default_factory=dict)

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the columns of the base, and the numbers of the others from their text; see `Table.fetch`."""
        whole = [group for group in scores if not self._any_written(group)]
        mixed = [group for group in scores if self._any_written(group)]
        single = [(name,) for group in mixed for name in group if name not in self.written]
        texts = dict.fromkeys(n for n in (*sum(mixed, ()), *columns) if n in self.written)
        others = [name for name in columns if name not in self.written]
        base = self.base.fetch([*whole, *single], [*others, *texts])
        arrays = {name: self._array(name, base.columns[name]) for name in texts}
        found = dict(zip(single, base.scores[len(whole) :], strict=True))
        arrays |= {name: array for (name,), array in found.items()}
        blocks = iter(base.scores)
        return Fetched(
            tuple(
                next(blocks) if group in whole else np.hstack([arrays[name] for name in group])
                for group in scores
            ),
            {
                name: _one_dimensional(arrays[name]) if name in texts else base.columns[name]
                for name in columns
            },
            base.in_range,
        )

    def _any_written(self, group: tuple[str, ...]) -> bool:
        return any(name in self.written for name in group)

    def _array(self, name: str, values: AnyArray | Factor) -> FloatArray:
        cell = self.written[name]
        notice = Notice.CONVERTED.finding("info", cell.notice(name))
        if notice not in self.notices:
            self.notices.append(notice)
        factor = self._texts[name] = Factor.of(values)
        array = cell.array(factor, name, self.line)
        if fields := self[name].fields:
            lists = Factor.of(self.base.fetch([], [self.listed]).columns[self.listed])
            orders = [_words(text) for text in lists.levels]
            if odd := next((words for words in orders if {*words} != {*fields}), None):
                raise InputError(f"{odd} are not the classes of the first row", column=self.listed)
            order = np.array([[*map(words.index, fields)] for words in orders])
            array = np.take_along_axis(array, order[lists.codes], axis=1)
        lost = np.flatnonzero(np.isnan(array).all(axis=1)) if cell.width > 1 else ()
        if cut := [int(r) for r in lost if " instead of " in self.missing_as(int(r), name)]:
            text = f"'{short(name)}' has {self.missing_as(cut[0], name)} in {places(cut, self.line)}: no scores are read there"
            notice = Notice.CONVERTED.finding("warning", text)
            self.notices.extend([notice] * (notice not in self.notices))
        return array

    def line(self, row: int) -> int | None:
        """Line of a row of the base."""
        return self.base.line(row)

    def missing_as(self, row: int, name: str) -> str:
        """What stands in a cell without a number; see `Table.missing_as`."""
        own = name if name in self.written else name.rpartition("[")[0]
        if (texts := self._texts.get(own)) is None:
            return self.base.missing_as(row, name)
        text, written = texts.levels[texts.codes[row]], self.written[own]
        if (found := written.read(text)) and len(found) != written.width:
            return f"{len(found)} numbers instead of {written.width}"
        return "empty" if text.strip() in MISSING_WORDS else f"'{short(text)}'"

    @property
    def cells(self) -> Callable[[], Any] | None:
        """Reads the cells of the base."""
        return self.base.cells


def _one_dimensional(array: FloatArray) -> FloatArray:
    return array[:, 0] if array.shape[1] == 1 else array


# ---- Rows


#: Tables of more columns are not looked at: a long table has few.
_MOST_COLUMNS = 12
#: What a table with a row per class calls its column of classes, if nothing else shows that it is one.
_CLASSES = ("class", "class_name", "variable", "category", "label_name", "candidate", "option")
#: What the two values of a column are that marks the true class, in lower case and sorted.
_MARKS = (["0", "1"], ["0.0", "1.0"], ["false", "true"], ["no", "yes"], ["f", "t"])


@dataclass(eq=False, kw_only=True)
class WideRows(Table):
    """A table with a row per question, made of one with a row per question and class.

    Attributes
    ----------
    values : mapping of str to ndarray or Factor
        Probabilities of shape (n, K), and other columns.
    base : Table
    first : ndarray of int, shape (n,)
        The first row of each question in the base.
    """

    values: Mapping[str, AnyArray | Factor]
    base: Table
    first: IntArray

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Return what is in memory; see `Table.fetch`."""
        blocks = [
            np.hstack([np.asarray(self.values[n]).reshape(len(self.first), -1) for n in group])
            for group in scores
        ]
        return Fetched(tuple(blocks), {name: self.values[name] for name in columns})

    def line(self, row: int) -> int | None:
        """Line of the first row of a question."""
        return self.base.line(int(self.first[row]))


#: A score, of a class that a column beside it names: ``p[0].prob`` and ``p[0].label``, ``p_1_score`` and ``p_1_class``.
_OF_BESIDE = re.compile(r"(.+\d\]?[._ ]+)(?:prob|probability|score|confidence)", re.I)


def _by_classes_beside(table: Table) -> WideRows | None:
    """Return a table with one column of scores by class, if a column beside each score names its class, in any order; None if none does.

    Raises
    ------
    InputError
        If these do not name each class once in every row, and the scores are no ranks.
    """
    found = filter(None, map(_OF_BESIDE.fullmatch, table.names))
    named = ((m[0], m[1] + end) for m in found for end in ("label", "class", "name"))
    beside = {score: word for score, word in named if word in table and table[score].numeric}
    names, words, k = tuple(beside), tuple(beside.values()), len(beside)
    heads = [np.nan_to_num(table[n].head.astype(float), nan=1 / k) for n in names]
    if k < 2 or not _are_probabilities(np.stack(heads, axis=1)):
        return None  # of models, say
    rest = tuple(c for c in table.columns if c.name not in names + words and c.type != "other")
    fetched = table.fetch([names], [*words, *(c.name for c in rest)])
    texts = np.stack([Factor.of(fetched.columns[n]).values().astype(str) for n in words], axis=1)
    classes, at = np.unique(texts, return_inverse=True)
    at = at.reshape(texts.shape) - (classes[0] == "")
    at[(at < 0).all(axis=1)] = np.arange(k)  # rows without scores
    if (np.sort(at, axis=1) != np.arange(k)).any():
        if (np.diff(fetched.scores[0], axis=1) <= 0).all():
            return None
        what = f"'{span(words)}' do not name each class of '{span(names)}' once in every row"
        raise InputError(what, remedy="write the score of each class in a column of its own")
    array = np.take_along_axis(fetched.scores[0], np.argsort(at, axis=1), axis=1)
    text = f"'{span(names)}' are the scores of the classes that '{span(words)}' name"
    table.notices.append(Notice.SCORE_COLUMNS.finding("info", text))
    name = re.split(r"[\[._ ]*\d+\]?[._ ]+\w+$", names[0])[0]
    one = Column(name, "number", np.empty(0), width=k, fields=tuple(classes[-k:].tolist()))
    values = {**fetched.columns, name: array}
    first = np.arange(len(array))
    return WideRows(**_of_base(table), columns=(one, *rest), values=values, first=first)


def _wide(table: Table) -> WideRows | None:
    """Return a table with a row per question if each question has a row for each class, and probabilities that sum to 1."""
    if len(table.columns) > _MOST_COLUMNS or any(c.width is not None for c in table.columns):
        return None
    for question, classes in _pairs([c for c in table.columns if c.type != "other"]):
        if (wide := _by_question(table, question.name, classes.name)) is not None:
            return wide
    return None


def _pairs(columns: Sequence[Column]) -> Iterator[tuple[Column, Column]]:
    """Columns of questions and of classes that the first rows make likely."""
    keys = [c for c in columns if c.type in ("text", "integer")]
    for question in keys:
        k = _run(question.head)
        for classes in sorted(keys, key=lambda c: c.type != "text"):
            if classes is question:
                continue
            if k > 1:
                likely = _repeats(classes.head, k) and any(
                    _are_probabilities(_in_rows(c.head, k)) for c in columns if c.type == "number"
                )
            else:
                likely = _sorted_by_class(question, classes)
            if likely:
                yield question, classes


def _run(head: AnyArray) -> int:
    """The number of rows of each question if all have the same number, at least 2, one after the other; 0 otherwise."""
    starts = np.flatnonzero(np.append(True, head[1:] != head[:-1]))
    if starts.size < 2 or len(set(head[starts].tolist())) < starts.size:
        return 0
    lengths = np.diff(starts)
    return int(lengths[0]) if (lengths == lengths[0]).all() and lengths[0] > 1 else 0


def _repeats(head: AnyArray, k: int) -> bool:
    """Whether each `k` rows hold the same `k` distinct values, in any order."""
    rows = _in_rows(head, k).tolist()
    return len(set(rows[0])) == k and all(set(row) == set(rows[0]) for row in rows)


def _in_rows(head: AnyArray, k: int) -> AnyArray:
    return head[: len(head) // k * k].reshape(-1, k)


def _are_probabilities(rows: AnyArray) -> bool:
    """Whether each row sums to 1; rows of 0 and 1 alone say which class is true."""
    in_range = (rows >= 0).all() and (rows <= 1).all()
    sums = bool(in_range and (np.abs(rows.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE).all())
    return sums and bool(((rows > 0) & (rows < 1)).any())


def _sorted_by_class(question: Column, classes: Column) -> bool:
    """Whether all questions may come for the first class, then all for the second one."""
    if plain(question.name) not in column_names.IDS or classes.type != "text":
        return False
    ids, names = question.head, classes.head
    starts = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    if starts.size == 1:
        return plain(classes.name) in _CLASSES and len(set(ids.tolist())) == len(ids)
    second = ids[starts[1] : 2 * starts[1]]
    return bool(starts[1] > 1 and (second == ids[: len(second)]).all())


_TRUTH = re.compile("true|truth|correct|right|target|label|actual|gold|observed")


def _by_question(table: Table, question: str, classes_in: str) -> WideRows | None:
    """Return a table with a row per question and class with a row per question; None if a question lacks a class, or no column says which one is true."""
    others = [c for c in table.columns if c.type != "other"]
    numbers = [c.name for c in others if c.type == "number" and c.name != question]
    singles = [c.name for c in others if c.name not in numbers]
    fetched = table.fetch([(name,) for name in numbers], singles)
    columns = {name: Factor.of(values) for name, values in fetched.columns.items()}
    questions, classes = columns.pop(question), columns.pop(classes_in)
    n, k = len(questions.levels), len(classes.levels)
    at = questions.codes.astype(np.intp) * k + classes.codes
    if k < 2 or n < 2 or n * k != at.size or np.bincount(at, minlength=n * k).max() > 1:
        return None
    MAX_CLASSES.check(k, f"there are {k:,} classes")
    order = np.empty(n * k, dtype=np.intp)
    order[at] = np.arange(n * k)
    rows = order.reshape(n, k)
    arrays = {n: a[:, 0][rows] for n, a in zip(numbers, fetched.scores, strict=True)}
    scores = {name: array for name, array in arrays.items() if _are_probabilities(array)}
    label, used = _true_class(columns, arrays, rows, classes)
    if not scores or label is None:
        return None
    first = rows.min(axis=1)
    values: dict[str, Any] = {question: questions.take(first), "label": label, **scores}
    rest = [name for name in (*columns, *arrays) if name not in (*values, used)]
    left_out = []
    for name in rest:
        codes = columns[name].codes[rows] if name in columns else arrays[name]
        if (codes != codes[:, :1]).any():
            left_out.append(f"'{short(name)}'")
        else:
            values[name] = columns[name].take(first) if name in columns else codes[:, 0]
    text = (
        f"each question ('{short(question)}') has a row for each of {k} classes ('{short(classes_in)}'): its {k} probabilities are "
        f"one row here, {n:,} in all, and '{short(used)}' says which class is true"
    )
    notices = [*table.notices, Notice.SCORE_COLUMNS.finding("info", text)]
    if left_out:
        verb = "is" if len(left_out) == 1 else "are"
        text = f"{', '.join(left_out)} {verb} left out: the values differ within a question"
        notices.append(Notice.LEFT_OUT.finding("info", text))
    described = [
        Column(name, "number", np.empty(0), width=k, fields=classes.levels)
        if name in scores
        else _column(name, column)
        for name, column in values.items()
    ]
    of_base = _of_base(table, format=f"{table.format}, one row per class", notices=notices)
    return WideRows(**of_base, columns=tuple(described), values=values, first=first)


def _true_class(
    columns: Mapping[str, Factor], arrays: Mapping[str, FloatArray], rows: IntArray, classes: Factor
) -> tuple[Factor | None, str]:
    """The true class of each question, and the column that says so."""
    marks: dict[str, IntArray] = {}
    for name, column in columns.items():
        lower = [level.lower() for level in column.levels]
        if sorted(lower) in _MARKS:
            marks[name] = (column.codes == lower.index(max(lower)))[rows]
    marks |= {n: a == 1 for n, a in arrays.items() if np.isin(a, (0, 1)).all()}
    if mark := _of_truth([name for name, mark in marks.items() if (mark.sum(axis=1) == 1).all()]):
        return Factor(marks[mark].argmax(axis=1).astype(np.int32), classes.levels), mark
    named = [
        name
        for name, column in columns.items()
        if (column.codes[rows] == column.codes[rows[:, :1]]).all()
        and set(column.levels) <= set(classes.levels)
    ]
    label = _of_truth(named)
    return (columns[label].take(rows[:, 0]) if label else None), label


def _of_truth(names: Sequence[str]) -> str:
    """The only column that is not named after a prediction, or the only one named after the truth; "" if there is none."""
    possible = [n for n in names if plain(n) not in PREDICTED and "pred" not in plain(n)]
    if len(possible) > 1:
        possible = [n for n in possible if plain(n) in LABELS or _TRUTH.search(plain(n))]
    return possible[0] if len(possible) == 1 else ""


def _column(name: str, values: AnyArray | Factor) -> Column:
    """Describe a column in memory."""
    if not isinstance(values, Factor):
        return Column(name, "number", values[:SAMPLE_ROWS].astype(np.float64))
    head = Factor(values.codes[:SAMPLE_ROWS], values.levels).values()
    try:
        numbers = np.array([float(level) for level in values.levels])
    except ValueError:
        return Column(name, "text", head)
    whole = bool((numbers == np.round(numbers)).all())
    return Column(name, "integer" if whole else "number", numbers[values.codes[:SAMPLE_ROWS]])
