"""Calibrated files written, pictures of rows read."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calviz.core import errors
from calviz.core.predictions import BEFORE, Dataset, Predictions
from calviz.core.words import PLAIN_CSV, CsvStyle, counted, csv_bytes
from calviz.data.column_names import PREDICTED, PREDICTED_WORDS, plain, words
from calviz.data.format import short, span
from calviz.data.roles import ColumnRoles

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from calviz.core.blocks import IntArray
    from calviz.data.loaded import Loaded

#: Supported file extensions.
SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".npz")
#: Those of text in lines and cells.
TEXT = SUFFIXES[:2]
#: Optional packages that each format needs.
_NEEDED = dict.fromkeys(TEXT, ("pandas",)) | dict.fromkeys(
    (".parquet", ".jsonl"), ("pandas", "pyarrow")
)
#: Largest array of texts in an NPZ file, in bytes.
_MOST_TEXT = 256 << 20


def check_target(path: str | Path) -> Path:
    """Return the path if its format can be written and its directory exists; raise OptionError or MissingPackage otherwise."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise errors.OptionError(
            f"'{target.name}' must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        )
    errors.check_place(target, f"'{target}'")
    errors.needs(*_NEEDED.get(target.suffix.lower(), ()))
    return target


def write_predictions(
    data: Dataset,
    path: str | Path,
    *,
    before: Dataset | None = None,
    file: Loaded | None = None,
    left_out: Dataset | None = None,
) -> tuple[int, int, str]:
    """Write probabilities (or confidences), labels, identifiers, splits, groups, clusters, weights, times, numbers and texts; return how many rows the file has, how many of them are those of `data` or `left_out`, and what is to say of predicted classes.

    In tables, score columns keep the names that they have in `file`, if they held these probabilities or confidences themselves there
    (`Loaded.own_scores`), and are named ``p_<class>`` or ``confidence`` otherwise; labels are class names, and all columns but splits keep
    their names; CSV text that a spreadsheet would run as a formula is escaped. NPZ files hold ``probs``, ``labels``, ``class_names`` and
    ``split``, ``ids``, ``group_<name>`` (groups and texts), and clusters, weights, times and numbers under their names. Texts that
    would take more than 256 MiB, because an array gives every row the length of the longest, are left out. The column ``uncalibrated``
    has the scores in `before`, the same rows before a map: P(class 1) of two classes, otherwise the confidence. If the `file` had no labels,
    nothing is written about the true classes. CSV is written in the style of the `file`. If that was a table with names above its columns, tables
    begin with these, as they stand there (numbers of text only in CSV; there, fields of a column are columns with dotted names, and lists are JSON), also of rows that were left out, whose
    calibrated scores are empty, unless they are `left_out`: those of the `file` (`Loaded.left_out`), calibrated; only the columns that the file lacks are added, and scores replace those of the same name, as predicted classes do where these were the classes of the largest scores.
    """
    target = check_target(path)
    if data.cells is not None:
        raise errors.InputError(
            "a profile holds no rows to write",
            remedy="apply the map to the files: calviz apply FILE... --map MAP.json --out FOLDER",
        )
    if before is not None:
        data = _beside(data, before)
    named = file.named_as_labels(data) if file else data
    with errors.replacing(target) as temporary_path:
        return _write(named, before or data, temporary_path, file, left_out)


def _beside(data: Dataset, before: Dataset) -> Dataset:
    """The rows with their scores before a map."""
    name = _free(BEFORE, {*data.groups, *data.texts})
    return replace(data, numbers={name: one_score(before), **data.numbers})


def one_score(data: Dataset) -> npt.NDArray[Any]:
    """P(class 1) of two classes, otherwise the confidence, shape (n,)."""
    if not isinstance(data, Predictions):
        return data.confidence
    return data.probs[:, 1] if data.n_classes == 2 else data.probs.max(axis=1)


def _write(
    data: Dataset, before: Dataset, target: Path, file: Loaded | None, left_out: Dataset | None
) -> tuple[int, int, str]:
    labelled = file is None or bool(file.recognition.label_form)
    if target.suffix.lower() == ".npz":
        _write_npz(arrays := _arrays(data, labelled), target)
        return data.n, data.n, _not_in(arrays, file)
    import pandas as pd
    import polars as pl

    is_text, style = target.suffix.lower() in TEXT, file.style if file else PLAIN_CSV
    own = file.own_scores.get(before.name, ()) if file else ()
    scores = _scores(data, labelled, own)
    columns = _columns(data, scores)
    order = dict.fromkeys([*(file.recognition.columns if file else ()), *columns])
    columns = {name: columns[name] for name in order if name in columns}
    found = file.cells_of(before) if file else None
    roles = file.roles if file else ColumnRoles()
    before_map = own or sum((s.columns for s in roles.scores if s.model in ("", before.name)), ())
    if (
        found
        and not is_text
        and any(pl.Series(found[0][c]).dtype == pl.String for c in before_map if c in found[0])
    ):
        found = None  # texts of numbers
    if found and is_text:
        found = {k: v for c, cells in found[0].items() for k, v in _flat(c, cells)}, found[1]
    if file is None or found is None:
        _write_table(
            pd.DataFrame(_with_date_texts(columns) if is_text else columns), {}, target, style
        )
        return data.n, data.n, ""
    cells, rows = found
    changes = [(np.arange(data.n) if rows is None else rows, before, data)]
    others = file.left_out[before.name] if left_out is not None and rows is not None else None
    if others is not None and left_out is not None and others.file_rows is not None:
        changes.append((others.file_rows, others, left_out))
    cells, said = _with_new_classes(cells, changes, {*before_map, roles.label})
    confidence = roles.confidence
    there = {"label": roles.label or next(iter(roles.one_hot if own else ()), None)}
    if confidence is not None:
        there |= {"predicted": confidence.predicted, "correct": confidence.correct}
    scores = {k: v for k, v in scores.items() if there.get(k) not in cells}
    added = _columns(_lacking(data, before, (cells, rows), roles), scores)
    frame = pd.DataFrame(_with_date_texts(added) if is_text else added)
    size, calibrated = len(next(iter(cells.values()))), data.n
    if rows is not None:
        # Whole numbers stay whole beside missing ones.
        whole = {name: object for name, kind in frame.dtypes.items() if kind.kind in "iu"}
        frame = frame.astype(whole).set_index(rows)
        for at, first, after in changes[1:]:
            some = _beside(file.named_as_labels(after), first)
            some = _lacking(some, first, (cells, at), roles)
            more = pd.DataFrame(_columns(some, _scores(some, False, own))).set_index(at)
            frame = pd.concat([frame, more[[name for name in frame if name in more]]])
            calibrated += after.n
        frame = frame.reindex(range(size))
        if own and BEFORE in frame:  # else the scores of rows that were left out would be lost
            names = own[-1:] if data.n_classes == 2 else own
            replaced_commas = (_texts(cells[name]).str.replace(",", ".") for name in names)
            scored = [text.cast(float, strict=False) for text in replaced_commas]
            frame[BEFORE] = frame[BEFORE].fillna(pd.Series(np.max(scored, axis=0)))
    # Scores are written in the place of those of the same name; other columns give way to them.
    if {*before_map} & {*scores}:  # else some of a row would be calibrated, and others not
        cells = {k: v for k, v in cells.items() if k not in before_map or k in scores}
    as_before = [k for k in dict.fromkeys(before_map) if k in cells and k not in scores]
    if as_before:
        new = span(score_names(data, own))
        said = f"Calibrated: {new}; as in the file: {span((*as_before,))}. {said}".strip()
    replaced = {roles.split, confidence and confidence.score, *before_map}
    replaced |= {name for name in before.numbers if name not in scores}
    twice = {*cells} & {*frame.columns} - replaced
    taken = {*cells, *frame.columns}
    cells = {_free(k, taken) if k in twice else k: v for k, v in cells.items()}
    _write_table(frame, cells, target, style)
    return size, calibrated, said


def _write_table(frame: pd.DataFrame, cells: dict[str, Any], target: Path, style: CsvStyle) -> None:
    """Write cells of the file, and columns, as text, as Parquet, or as an object per row."""
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (suffix := target.suffix.lower()) in TEXT:
        style = replace(style, separator="\t") if suffix == ".tsv" else style
        texts = pl.DataFrame({k: _texts(v) for k, v in cells.items()}) if cells else None
        target.write_bytes(csv_bytes(frame, style, texts))
        return
    new = pa.Table.from_pandas(frame, preserve_index=False)
    table = pa.table(cells | {name: new[name] for name in frame})
    if suffix == ".parquet":
        pq.write_table(table, target)
    else:
        pl.DataFrame(table).fill_nan(None).write_ndjson(target)


def _with_new_classes(
    cells: dict[str, Any], changes: list[tuple[IntArray, Dataset, Dataset]], others: set[str | None]
) -> tuple[dict[str, Any], str]:
    """The cells with the new predicted classes if a column holds those before; and what is to say of it. Changes are rows of the cells, before and after."""
    import polars as pl

    if not isinstance(changes[0][1], Predictions):
        return cells, ""
    rows = np.concatenate([rows for rows, *_ in changes])
    first, new = (
        np.concatenate([change[j].predicted for change in changes])  # type: ignore[union-attr]
        for j in (1, 2)
    )
    changed, left = np.flatnonzero(first != new), ""
    named = [n for n in cells if plain(n) in PREDICTED or {*words(n)} & PREDICTED_WORDS]
    for name in [n for n in named if n not in others] if changed.size else ():
        column = pl.Series(cells[name])
        if column.dtype.is_nested() or column.dtype.is_float():
            continue
        known = pl.DataFrame({"class": first, "cell": column[rows]}).drop_nulls()
        usual = known.group_by("class").agg(pl.col("cell").mode().first())
        cell_of = dict(usual.iter_rows())
        agree = known.join(usual, on=["class", "cell"], how="semi").height
        # Share of the rows in which a column of predicted classes has that of the largest score.
        is_own = len({*cell_of.values()}) == len(cell_of) and agree >= 0.999 * known.height
        if is_own and {*new[changed].tolist()} <= {*cell_of}:
            column = column.scatter(rows[changed], [cell_of[k] for k in new[changed].tolist()])
            more = f"'{short(name)}' has the new predicted class, another one in {counted(changed.size, 'row')}."
            return cells | {name: column}, more
        if column.n_unique() <= 2 * len(cell_of):
            left = (
                left
                or f"'{short(name)}' is as in the file: in {counted(changed.size, 'row')}, another class has the largest score now."
            )
    return cells, left


def _flat(name: str, cells: Any) -> Iterator[tuple[str, Any]]:
    """A column of the file for text: fields by their dotted names, lists as JSON."""
    import polars as pl

    column = pl.Series(cells)
    if isinstance(column.dtype, pl.Struct):
        for part in column.struct.unnest():
            yield from _flat(f"{name}.{part.name}", part)
    elif column.dtype.is_nested():
        rows = (None if row is None else json.dumps(row, default=str) for row in column.to_list())
        yield name, pl.Series([*rows], dtype=pl.String)
    else:
        yield name, cells


def _texts(cells: Any) -> pl.Series:
    """The cells of a column of the file as texts, dates without a time of day where there is none."""
    import polars as pl

    column = pl.Series(cells)
    if column.dtype.is_temporal():
        column = column.dt.to_string("iso").str.replace(r"[ T]00:00:00(\.0+)?$", "")
    return column.cast(pl.String)


def _lacking(
    data: Dataset,
    before: Dataset,
    found: tuple[dict[str, Any], IntArray | None],
    roles: ColumnRoles,
) -> Dataset:
    """The same rows without the columns that the cells of the file have."""
    cells, rows = found
    names, splits = {*cells}, data.splits
    if splits is not None and roles.split in names:
        there = _texts(cells[roles.split]).fill_null("").to_numpy()
        is_own = np.array_equal(there if rows is None else there[rows], splits.values())
        splits = None if is_own else splits
    own = {key for key, name in data.column_names.items() if name in names}
    return replace(
        data,
        splits=splits,
        # Several columns may identify the rows together.
        ids=None if data.id_name in names or {*data.id_name.split(" + ")} <= {*names} else data.ids,
        groups={k: v for k, v in data.groups.items() if k not in names},
        texts={k: v for k, v in data.texts.items() if k not in names},
        numbers={
            name: values
            for name, values in data.numbers.items()
            if name not in names
            or not np.array_equal(values, before.numbers.get(name, ()), equal_nan=True)
        },
        clusters=None if "clusters" in own else data.clusters,
        weights=None if "weights" in own else data.weights,
        times=None if "times" in own else data.times,
    )


def _not_in(arrays: Collection[str], file: Loaded | None) -> str:
    """Say which columns of the file arrays lack, such as lists."""
    columns, roles = (file.recognition.columns, file.roles) if file else ((), ColumnRoles())
    there = {*arrays, *(name.removeprefix("group_") for name in arrays), *roles.used}
    lacking = [f"'{short(c)}'" for c in columns if c not in {*there, *roles.single.values()}]
    return f"Not in the NPZ file: {', '.join(lacking)}." * bool(lacking)


def _write_npz(arrays: Mapping[str, npt.NDArray[Any]], target: Path) -> None:
    # Not by numpy.savez, which takes an array called "file" for its argument.
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)


def _scores(data: Dataset, labelled: bool, own: tuple[str, ...] = ()) -> dict[str, Any]:
    """The columns of scores (the file's `own` or new ones), of true and predicted classes, and of hits, as tables name them."""
    names, written = np.asarray(data.class_names, dtype=object), score_names(data, own)
    predicted = None if isinstance(data, Predictions) else data.predicted
    classes = {"label": data.labels, "predicted": predicted}
    named = {key: v for key, v in classes.items() if labelled and names.size and v is not None}
    columns: dict[str, Any] = {key: names[codes] for key, codes in named.items()}
    if isinstance(data, Predictions):
        return columns | dict(zip(written, data.probs[:, -len(written) :].T, strict=True))
    columns[written[0]] = data.confidence
    return columns | ({"correct": data.correct.astype(np.int8)} if labelled else {})


def score_names(data: Dataset, own: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the columns of scores in a table: the file's `own`, if it has some that hold them."""
    names = data.class_names if isinstance(data, Predictions) else ()
    return own or tuple(f"p_{name}" for name in names) or ("confidence",)


def _columns(data: Dataset, scores: Mapping[str, Any]) -> dict[str, Any]:
    # Columns of the file may have the names of those that are written.
    columns = {} if data.splits is None else {"split": data.splits.values().astype(str)}
    if data.ids is not None:
        columns = {_free(data.id_name, {*columns, *scores}): data.ids, **columns}
    written = {*columns, *scores}
    of_rows = {**data.groups, **{k: text for k, text in data.texts.items() if k not in data.groups}}
    columns |= {_free(name, written): column.optional_values() for name, column in of_rows.items()}
    names = {*data.column_names.values()}  # of columns that are written anyway
    others = {name: values for name, values in data.numbers.items() if name not in names}
    scores = {**scores, **{_free(name, written): values for name, values in others.items()}}
    return columns | _of_rows(data, {*columns, *scores}) | scores


def _free(name: str, taken: Collection[str]) -> str:
    """The name, with underscores appended until it differs from all that are taken."""
    while name in taken:
        name += "_"
    return name


def _arrays(data: Dataset, labelled: bool) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {}
    if data.ids is not None:
        arrays["ids"] = data.ids.astype(str) if data.ids.dtype == object else data.ids
    if data.splits is not None:
        arrays["split"] = data.splits.values().astype(str)
    arrays |= data.numbers
    if isinstance(data, Predictions):
        arrays["probs"] = data.probs
        arrays["class_names"] = names = np.asarray(data.class_names, dtype=str)
        if labelled:
            codes = np.flatnonzero(np.bincount(data.labels))
            numbers = codes.astype(str)
            # Numbers that all name a class would be read as names.
            as_names = np.isin(numbers, names).all() and (numbers != names[codes]).any()
            arrays["labels"] = names[data.labels] if as_names else data.labels
    else:
        arrays |= _scores(data, labelled)
    # Arrays of dates are not read.
    arrays |= _with_date_texts(_of_rows(data, arrays))
    for name, texts in {**data.texts, **data.groups}.items():
        # A column of clusters may be one of groups or texts too.
        size = 4 * len(texts) * max(map(len, texts.levels), default=0)
        if name not in arrays and size <= _MOST_TEXT:
            arrays[f"group_{name}"] = texts.values().astype(str)
    return {k: v.astype(str) if v.dtype == object else v for k, v in arrays.items()}


def _of_rows(data: Dataset, taken: Collection[str]) -> dict[str, npt.NDArray[Any]]:
    """Clusters, weights and times by name; names in `taken` are those of other columns."""
    columns: dict[str, npt.NDArray[Any]] = {}
    clusters = None if data.named_clusters is None else data.named_clusters.values()
    of_rows = {"clusters": clusters, "weights": data.weights, "times": _times(data)}
    for key, values in of_rows.items():
        if values is not None:
            name = data.column_names.get(key, "")
            others = columns if name in data.groups or name in data.texts else {*columns, *taken}
            columns[_free(name or key.removesuffix("s"), others)] = values
    return columns


def _times(data: Dataset) -> npt.NDArray[Any] | None:
    """Times as the file had them where the rows hold that text, which may have offsets; otherwise as dates."""
    name = data.column_names.get("times", "")
    for columns in (data.texts, data.groups):
        if data.times is not None and name in columns:
            return columns[name].values()
    return data.times


def _with_date_texts(columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {k: _date_texts(v) if v.dtype.kind == "M" else v for k, v in columns.items()}


def _date_texts(times: npt.NDArray[np.datetime64]) -> npt.NDArray[Any]:
    """Dates as text, shape (n,), with a time of day only where there is one."""
    for unit in ("D", "s"):
        if np.array_equal(times.astype(f"datetime64[{unit}]"), times):
            return np.datetime_as_string(times, unit=unit, casting="unsafe")
    return np.datetime_as_string(times)


# ---- Pictures


#: Media type and first bytes of each file extension; SVG is excluded because it can hold scripts.
_FORMATS = {
    "png": ("image/png", rb"\x89PNG\r\n\x1a\n"),
    "jpg": ("image/jpeg", rb"\xff\xd8\xff"),
    "jpeg": ("image/jpeg", rb"\xff\xd8\xff"),
    "gif": ("image/gif", rb"GIF8[79]a"),
    "webp": ("image/webp", rb"RIFF....WEBP"),
}
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://|data:|//", re.IGNORECASE)


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower()


def are_pictures(values: Iterable[object]) -> bool:
    """Whether the values name pictures, judging by the first ones.

    >>> are_pictures(["a/1.png", "a/2.PNG"]), are_pictures(["a.png", "hello"]), are_pictures([])
    (True, False, False)
    """
    # How many values of a column are inspected.
    first = [str(value) for value, _ in zip(values, range(50), strict=False)]
    return bool(first) and all(_ending(name) in _FORMATS for name in first)


def checked_folder(text: str) -> Path:
    """Return the folder that the user named; raise InputError if it does not exist."""
    folder = Path(text.strip()).expanduser()
    if not text.strip() or not folder.is_dir():
        remedy = "give the folder that holds the pictures"
        raise errors.InputError(f"there is no folder '{errors.shortened(text)}'", remedy=remedy)
    return folder.resolve()


def read_picture(folder: Path, name: str) -> tuple[str, bytes]:
    """Read a picture named by a row, from inside a folder.

    Parameters
    ----------
    folder : Path
        From `checked_folder`.
    name : str
        Path relative to the folder, or an absolute path below it.

    Returns
    -------
    tuple of str and bytes
        Media type and content.

    Raises
    ------
    InputError
        If the name is a web address, the path or a link leads out of the folder, or the file is missing, too large, or
        not a PNG, JPEG, GIF or WebP.
    """
    short = errors.shortened(name)
    if _ADDRESS.match(name):
        raise errors.InputError(f"'{short}' is an address: nothing is fetched")
    kind, start = _FORMATS.get(_ending(name), ("", b""))
    if not kind:
        raise errors.InputError(f"'{short}' is not a PNG, JPEG, GIF or WebP file")
    if "\0" in name:
        raise errors.InputError(f"'{short}' is not a file name")
    try:
        # The path after resolving all links must be inside the folder.
        target = Path(os.path.realpath(folder / name))
        if not target.is_relative_to(folder):
            raise errors.InputError(f"'{short}' is not inside the folder")
        if not target.is_file():
            raise errors.InputError(f"there is no '{short}' in the folder")
        with target.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            errors.MAX_PICTURE.check(size, f"'{short}' has {errors.MAX_PICTURE.written(size)}")
            content = stream.read(errors.MAX_PICTURE.value + 1)
    except OSError as error:
        raise errors.InputError(f"'{short}' cannot be read: {error.strerror or error}") from None
    if not re.match(start, content, re.DOTALL):
        raise errors.InputError(f"'{short}' does not hold what its ending says")
    return kind, content
