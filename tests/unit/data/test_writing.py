"""What is written, and files that are no tables."""

import csv
import io
import json
import os
import sys
import time
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import calviz
from calviz.cli import main
from calviz.comparison.fitting import recalibrate
from calviz.core.errors import InputError
from calviz.core.predictions import usual_columns
from calviz.data import read, writing
from calviz.data.format import options_of
from calviz.data.writing import are_pictures, checked_folder, read_picture, write_predictions
from tests.inputs import examples
from tests.inputs.table_files import write_table

# ---- Calibrated files keep the columns of the rows, by their names, and are read back as they were


N = 60
SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".npz")
ROLES = {"weight_column": "importance of row", "cluster_column": "patient", "time_column": "seen"}


def source(folder: Path, suffix: str, *, hours: bool = False) -> Path:
    """A file with weights, clusters that repeat too rarely for groups, times, groups and long texts."""
    rng = np.random.default_rng(0)
    p, path = rng.random(N).round(6), folder / f"rows{suffix}"
    start, step = datetime(2026, 1, 30, 9 if hours else 0), timedelta(hours=7 if hours else 24)
    times = [start + step * i for i in range(N)]
    columns = {
        "label": np.where(rng.random(N) < p, "yes", "no"),
        "p_no": 1 - p,
        "p_yes": p,
        "patient": [f"patient {i // 2}" for i in range(N)],
        "importance of row": rng.random(N).round(3),
        "seen": [t.isoformat(sep=" ") if hours else t.date().isoformat() for t in times],
        "site": [f"site {i % 3}" for i in range(N)],
        "note": [f"a note on row {i}" for i in range(N)],
    }
    if suffix == ".npz":
        arrays = {name: np.asarray(v) for name, v in columns.items() if name[:2] != "p_"}
        arrays["group_site"], arrays["group_note"] = arrays.pop("site"), arrays.pop("note")
        np.savez(path, **arrays, probs=np.stack([1 - p, p], axis=1), class_names=["no", "yes"])
        return path
    write_table(pl.DataFrame(columns), path)
    return path


def test_dates_without_a_time_of_day_are_written_as_dates(tmp_path: Path):
    write_predictions(calviz.load(source(tmp_path, ".csv"), **ROLES), tmp_path / "out.csv")
    assert pl.read_csv(tmp_path / "out.csv")["seen"][0] == date(2026, 1, 30).isoformat()


def assert_same_rows(read, data) -> None:
    np.testing.assert_array_equal(read.weights, data.weights)
    np.testing.assert_array_equal(read.times, data.times)
    assert list(read.clusters.values()) == list(data.clusters.values())
    for columns in ("groups", "texts"):
        before, after = getattr(data, columns), getattr(read, columns)
        assert {k: list(v.values()) for k, v in after.items()} == {
            k: list(v.values()) for k, v in before.items()
        }
    np.testing.assert_array_equal(read.labels, data.labels)
    np.testing.assert_allclose(read.probs, data.probs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("read_from", SUFFIXES)
@pytest.mark.parametrize("hours", [False, True])
def test_weights_clusters_times_and_texts_are_read_back_by_their_names(
    tmp_path: Path, read_from: str, suffix: str, hours: bool
):
    data = calviz.load(source(tmp_path, read_from, hours=hours), **ROLES)
    assert (data.weights is not None, data.times is not None) == (True, True)
    assert set(data.texts) == {"note"}
    assert "site" in data.groups
    calibrated = calviz.recalibrate(data, "temperature", fit_fraction=0.5)
    path = tmp_path / f"calibrated{suffix}"
    write_predictions(calibrated, path)
    assert_same_rows(calviz.load(path, **ROLES), calibrated)
    # Times are recognised without being named where the source's are.
    assert (calviz.load(path).times is None) == (
        calviz.load(tmp_path / f"rows{read_from}").times is None
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_without_a_name_get_the_usual_one(tmp_path: Path, suffix: str):
    rng = np.random.default_rng(0)
    times = np.datetime64("2026-01-01T00:00:00.25", "us") + np.arange(N) * np.timedelta64(1, "D")
    data = calviz.Predictions(
        probs=rng.random(N),
        labels=np.arange(N) % 2,
        clusters=np.arange(N) // 2,
        weights=np.arange(1.0, N + 1),
        times=times,
        groups={"time": np.arange(N) % 2},
    )
    path = tmp_path / f"rows{suffix}"
    write_predictions(data, path)
    read = calviz.load(
        path,
        weight_column="weight",
        cluster_column="cluster",
        time_column="time_" if suffix != ".npz" else "time",
    )
    np.testing.assert_array_equal(read.weights, data.weights)
    np.testing.assert_array_equal(read.times, data.times)
    assert list(read.clusters.values()) == list(data.clusters.values())


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["file", "id", "site"])
def test_clusters_of_any_name_are_read_back(tmp_path: Path, suffix: str, name: str):
    path = tmp_path / "rows.csv"
    rng = np.random.default_rng(0)
    pl.DataFrame({"y": np.arange(N) % 2, "p": rng.random(N), name: np.arange(N) // 5}).write_csv(
        path
    )
    data = calviz.load(path, cluster_column=name)
    out = tmp_path / f"calibrated{suffix}"
    write_predictions(data, out)
    read = calviz.load(out, cluster_column=name)
    assert list(read.clusters.values()) == list(data.clusters.values())
    assert list(read.groups) == list(data.groups)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_identifiers_keep_their_name(tmp_path: Path, suffix: str):
    path, out = tmp_path / "rows.csv", tmp_path / f"calibrated{suffix}"
    path.write_text("Patienten-Nr.,label,p\nA7,1,0.8\nA9,0,0.3\nB1,1,0.6\n")
    write_predictions(calviz.load(path), out)
    read = calviz.load(out)
    assert (read.id_name, read.ids.tolist()) == ("Patienten-Nr.", ["A7", "A9", "B1"])


def test_names_stay_with_the_rows_and_change_with_the_columns():
    data = calviz.Predictions(
        probs=[0.1, 0.9, 0.6],
        labels=[0, 1, 1],
        weights=[1, 2, 3],
        groups={"site": ["a", "a", "b"]},
        column_names={"weights": "w"},
    )
    assert data.take(np.array([0, 1])).column_names == {"weights": "w"}
    assert data.renamed("other").column_names == {"weights": "w"}
    from calviz.core.predictions import with_rows

    clustered = with_rows(data, clusters="site")
    assert clustered.column_names == {"weights": "w", "clusters": "site"}
    assert with_rows(data, weights=[3, 2, 1]).column_names == {}
    with pytest.raises(TypeError):
        data.column_names["weights"] = "v"
    unnamed = calviz.Predictions(
        probs=[0.1, 0.9, 0.6], labels=[0, 1, 1], weights=[1, 2, 3], groups=data.groups
    )
    assert data.fingerprint() == unnamed.fingerprint()


def test_very_long_texts_are_left_out_of_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data = calviz.load(source(tmp_path, ".csv"))
    monkeypatch.setattr(writing, "_MOST_TEXT", 4 * N * 12)
    write_predictions(data, tmp_path / "short.npz")
    read = calviz.load(tmp_path / "short.npz")
    assert ("site" in read.groups, "note" in read.texts) == (True, False)


@pytest.mark.parametrize("name", ["patient", "group_patient"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_clusters_of_a_group_array_go_by_either_name(tmp_path: Path, name: str, suffix: str):
    patients, sites = np.arange(N) // 5, np.array(["a", "b"] * (N // 2))
    path = tmp_path / "rows.npz"
    probs, labels = np.linspace(0, 1, N), np.arange(N) % 2
    np.savez(path, probs=probs, labels=labels, group_patient=patients, group_site=sites)
    data = calviz.load(path, cluster_column=name, groups=["site"])
    assert list(data.groups) == ["site"]
    assert data.column_names["clusters"] == "patient"
    write_predictions(data, tmp_path / f"calibrated{suffix}")
    read = calviz.load(tmp_path / f"calibrated{suffix}", cluster_column="patient")
    assert list(read.clusters.values()) == list(data.clusters.values())


def test_a_text_and_a_group_of_one_name_are_kept_apart(tmp_path: Path):
    path = tmp_path / "rows.npz"
    a, b = np.array(["a", "b"] * 10), np.array(["c"] * 10 + ["d"] * 10)
    np.savez(path, probs=np.linspace(0, 1, 20), labels=np.arange(20) % 2, site=a, group_site=b)
    assert {k: list(v.values()) for k, v in calviz.load(path).groups.items()} == {
        "site": list(a),
        "group_site": list(b),
    }


# ---- What is written beside calibrated scores: classes of confidences, and the scores before


def confidences(folder: Path, classes: list[str]) -> Path:
    """Confidences that are too large by far: one of K classes is right no more often than chance."""
    rng = np.random.default_rng(0)
    path, names = folder / "rows.csv", np.array(classes)
    columns = {
        "text": [f"text {i}" for i in range(300)],
        "guess": rng.choice(names, 300),
        "confidence": rng.uniform(1 / len(classes), 1, 300).round(3),
        "truth": rng.choice(names, 300),
    }
    pl.DataFrame(columns).write_csv(path)
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("classes", [["no", "yes"], ["3", "7", "12"], ["ham", "promo", "spam"]])
def test_the_classes_of_confidences_are_read_back(tmp_path: Path, suffix: str, classes: list[str]):
    data = calviz.load(confidences(tmp_path, classes), prediction_column="guess")
    calibrated = recalibrate(data, "isotonic", fit_fraction=0.5)
    # No question, although confidences of K classes are at least 1/K as a rule.
    assert np.mean(calibrated.confidence < 1 / len(classes)) > 0.1
    out = tmp_path / f"calibrated{suffix}"
    write_predictions(calibrated, out, before=data)
    again = calviz.load(out)
    np.testing.assert_allclose(again.confidence, calibrated.confidence, rtol=0, atol=1e-12)
    assert again.class_names == tuple(classes)
    for key in ("correct", "labels", "predicted"):
        np.testing.assert_array_equal(getattr(again, key), getattr(data, key))


def test_confidences_below_chance_of_another_origin_are_asked_about(tmp_path: Path):
    data = calviz.load(confidences(tmp_path, ["a", "b", "c"]), prediction_column="guess")
    calibrated = recalibrate(data, "isotonic", fit_fraction=0.5)
    write_predictions(calibrated, tmp_path / "calibrated.csv")
    with pytest.raises(InputError, match=r"lies below 1/3 in .* of the rows"):
        calviz.load(tmp_path / "calibrated.csv")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("k", [2, 3, 12])
def test_the_scores_before_are_neither_scores_nor_groups(tmp_path: Path, suffix: str, k: int):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(k), 300)
    labels = np.array([rng.choice(k, p=row) for row in probs])
    data = calviz.Predictions(probs=probs, labels=labels, numbers={"age": rng.random(300)})
    calibrated = recalibrate(data, "temperature", fit_fraction=0.5)
    out = tmp_path / f"calibrated{suffix}"
    write_predictions(calibrated, out, before=data)
    loaded = read(out)
    assert len(loaded.models) == 1
    again = loaded.first
    np.testing.assert_allclose(again.probs, calibrated.probs, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(again.labels, labels)
    expected = probs[:, 1] if k == 2 else np.sort(probs)[:, -1]
    np.testing.assert_allclose(again.numbers["uncalibrated"], expected, rtol=0, atol=1e-12)
    assert usual_columns(again) == ("age",)
    # After another map, it is still what the model said.
    write_predictions(recalibrate(again, "platt", fit_split="calibration"), out, before=again)
    np.testing.assert_allclose(calviz.load(out).numbers["uncalibrated"], expected, atol=1e-12)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_column_that_is_called_like_the_scores_before_stays(tmp_path: Path, suffix: str):
    data = calviz.Predictions(
        probs=[0.1, 0.9, 0.6], labels=[0, 1, 1], groups={"uncalibrated": ["a", "a", "b"]}
    )
    write_predictions(data, tmp_path / f"out{suffix}", before=data)
    again = calviz.load(tmp_path / f"out{suffix}")
    assert list(again.groups["uncalibrated"].values()) == ["a", "a", "b"]
    assert again.n_classes == 2


@pytest.mark.parametrize(
    "names", [("2", "0", "1"), ("1", "2", "3"), ("0", "1", "10"), ("1", "x", "0")]
)
def test_labels_in_arrays_are_not_taken_for_other_classes(tmp_path: Path, names: tuple[str, ...]):
    probs = np.full((20, 3), 1 / 3)
    for labels in ([0, 1] * 10, [0, 2] * 10, [1, 2] * 10, [0, 1, 2, 1] * 5):
        data = calviz.Predictions(probs=probs, labels=labels, class_names=names)
        write_predictions(data, tmp_path / "rows.npz")
        again = calviz.load(tmp_path / "rows.npz")
        assert again.class_names == names
        assert again.labels.tolist() == labels


def test_scores_are_written_in_their_columns_if_these_hold_just_them():
    rows = "".join(f"{y},{p}\n" for y, p in [("no", 0.1), ("yes", 0.8)] * 20)
    content = f"label,Risk\n{rows}".encode()
    assert read(content, name="ward.csv").own_scores == {"ward": ("Risk",)}
    for told in ({"kind": "logits"}, {"scores": ["Risk"], "repair": ("percent",)}):
        assert read(content, name="ward.csv", options=options_of(told)).own_scores == {"ward": ()}
    content = "label,hit\n" + "no,0\nyes,1\nyes,0\n" * 20
    told = options_of({"scores": ["hit"]})
    assert read(content.encode(), name="ward.csv", options=told).own_scores == {"ward": ()}


# ---- A file is closed as soon as it is read or refused, and not when its memory happens to be freed


OPEN = Path("/proc/self/fd")
NAMES = [
    *("01_plain.csv", "30_gzip.csv.gz", "33_table.parquet", "39_val_and_test.npz"),
    *("40_label_last_column.npy", "54_inf.csv", "65_object_dtype.npz", "71_truncated.parquet"),
    *("78_length_mismatch.npz", "80_3d_probs.npz"),
]


@pytest.mark.skipif(not OPEN.is_dir(), reason="this system does not list open files")
@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_closed(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(examples.contents()[name])
    kept = []  # also the error, whose traceback would keep everything alive
    try:
        kept.append(read(path))
    except InputError as error:
        kept.append(error)
    assert isinstance(kept[0], InputError) is (name in examples.REFUSED)
    # Threads of polars let go of a file just after the read has ended.
    until = time.monotonic() + 5
    while path in {link.resolve() for link in OPEN.iterdir()}:
        assert time.monotonic() < until
        time.sleep(0.01)


# ---- Pictures that rows name: from one folder, and from nowhere else


PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    for place in ("inside/a.png", "inside/deep/b.PNG", "secret.png", "inside2.png"):
        (tmp_path / place).write_bytes(PNG)
    (inside / "text.png").write_bytes(b"root:x:0:0")
    (inside / "a.svg").write_bytes(b"<svg onload='alert(1)'/>")
    return checked_folder(str(inside))


def test_what_is_inside_is_read(folder):
    assert read_picture(folder, "a.png") == ("image/png", PNG)
    assert read_picture(folder, "deep/../deep/b.PNG") == ("image/png", PNG)
    assert read_picture(folder, str(folder / "a.png"))[1] == PNG


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../secret.png", "is not inside the folder"),
        ("../inside2.png", "is not inside the folder"),
        ("deep/../../secret.png", "is not inside the folder"),
        ("/etc/passwd", "is not a PNG, JPEG, GIF or WebP file"),
        ("a.svg", "is not a PNG, JPEG, GIF or WebP file"),
        ("text.png", "does not hold what its ending says"),
        ("missing.png", "there is no 'missing.png' in the folder"),
        ("deep.png/", "is not a PNG"),
        ("https://example.org/a.png", "is an address: nothing is fetched"),
        ("//host/a.png", "is an address"),
        ("file:///etc/a.png", "is an address"),
        ("a\0.png", "is not a file name"),
    ],
)
def test_nothing_else_is(folder, name, why):
    with pytest.raises(InputError, match=why):
        read_picture(folder, name)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links_that_lead_out_and_pipes_are_refused(folder):
    (folder / "out.png").symlink_to(folder.parent / "secret.png")
    (folder / "up").symlink_to(folder.parent)
    (folder / "in.png").symlink_to(folder / "a.png")
    os.mkfifo(folder / "pipe.png")
    for name in ("out.png", "up/secret.png"):
        with pytest.raises(InputError, match="is not inside the folder"):
            read_picture(folder, name)
    with pytest.raises(InputError, match=r"there is no 'pipe\.png'"):
        read_picture(folder, "pipe.png")
    assert read_picture(folder, "in.png")[1] == PNG


def test_a_large_file_is_refused_with_the_way_to_raise_the_limit(folder, monkeypatch):
    monkeypatch.setenv("CALVIZ_MAX_PICTURE_BYTES", "10")
    with pytest.raises(InputError, match="CALVIZ_MAX_PICTURE_BYTES"):
        read_picture(folder, "a.png")
    with pytest.raises(InputError, match="there is no folder 'nowhere'"):
        checked_folder("nowhere")


def test_a_column_of_texts_stays_with_its_rows():
    lines = [f"cat,0.6,0.4,a long tale {i},g{i % 2}" for i in range(2_000)]
    text = "label,p_cat,p_dog,tale,site\n" + "\n".join(lines)
    data = read(text.encode(), name="tales.csv").first
    assert list(data.texts) == ["tale"]
    assert list(data.groups) == ["site"]
    part = data.take(np.array([5, 3]))
    assert part.texts["tale"].values().tolist() == ["a long tale 5", "a long tale 3"]
    assert part.fingerprint() != data.take(np.array([5, 4])).fingerprint()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_column_of_texts_is_in_the_calibrated_file(tmp_path, ending):
    tales = ["=1+1 is a tale", *(f"a long tale, number {i}" for i in range(1, 300))]
    lines = [
        f'{"dog" if i % 3 else "cat"},0.6,0.4,"{tale}",g{i % 2}' for i, tale in enumerate(tales)
    ]
    text = "label,p_cat,p_dog,tale,site\n" + "\n".join(lines)
    data = read(text.encode(), name="tales.csv").first
    path = tmp_path / f"calibrated{ending}"
    write_predictions(recalibrate(data, "temperature", fit_fraction=0.5), path)
    again = read(path).first
    if ending == ".csv":  # guarded in the file, and as it was when it is read again
        assert b"'=1+1 is a tale" in path.read_bytes()
    assert list(again.texts["tale"].values()) == tales
    assert list(again.groups) == ["site"]
    assert are_pictures(["x.jpeg"])


# ---- Calibrated text is written as the text that was read


STYLES = {
    "semicolons, decimal commas": (";", ",", "utf-8", "\n"),
    "Excel": (";", ",", "utf-8-sig", "\r\n"),
    "tabs": ("\t", ".", "utf-16", "\n"),
    "bars": ("|", ",", "cp1252", "\n"),
    "commas in quotes": (",", ",", "utf-8", "\n"),
    "blanks": (" ", ".", "utf-8", "\n"),
}


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("style", STYLES)
def test_a_calibrated_file_can_go_back_where_the_file_came_from(
    tmp_path: Path, style: str, quoting: int
):
    separator, sign, encoding, end = STYLES[style]
    text = io.StringIO()
    text.write("# made on Monday\n")
    table = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n")
    table.writerow(["p", "label", "dose", "place"])
    for i in range(N):
        cells = (f"{(i + 0.5) / N:.4f}", f"{i % 4 / 2}")
        p, dose = (cell.replace(".", sign) for cell in cells)
        table.writerow([p, "yes" if 3 * i > N else "no", dose, "" if i == 7 else f"Köln {i}"])
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_bytes(text.getvalue().replace("\n", end).encode(encoding))
    loaded = read(path)
    write_predictions(loaded.first, out, file=loaded)
    written = out.read_bytes().decode(encoding)
    assert out.read_bytes()[:3] == path.read_bytes()[:3]
    assert written.count("\r\n") == (N + 2) * (end == "\r\n")
    above, *lines = written.splitlines()
    assert above == "# made on Monday"
    assert all(line[0] == line[-1] == '"' for line in lines) == (quoting == csv.QUOTE_ALL)
    head, *rows = csv.reader(lines, delimiter=separator)
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    assert columns["place"] == tuple("" if i == 7 else f"Köln {i}" for i in range(N))
    assert columns["dose"][:3] == tuple(v.replace(".", sign) for v in ("0.0", "0.5", "1.0"))
    assert head == ["p", "label", "dose", "place"]
    assert float(columns["p"][1].replace(sign, ".")) == pytest.approx(1.5 / N, abs=1e-4)
    np.testing.assert_allclose(read(out).first.probs, loaded.first.probs)


# ---- A calibrated CSV file is the user's file, with columns added


TITLE = "Portfolio – Stand 31.03.2026;;;;;;;;"
HEADER = "Stichtag;Kunden_Nr;Produkt;Kreditbetrag;pd_alt;pd_neu;Delta;Bemerkung;Ausfall"
ADDED = ["p_nein", "p_ja", "uncalibrated"]


def portfolio(folder: Path, *, labelled: bool = True) -> tuple[Path, list[list[str]]]:
    """A file as a bank writes it: cells of percentages, amounts and dates, a title, numbers of customers that repeat, and empty cells."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(400):
        p = rng.uniform(0.01, 0.6)
        percent = [f"{100 * v:.3f} %".replace(".", ",") for v in (p, p * 0.9)]
        amount = f"{rng.integers(1, 90)}.{rng.integers(100, 999)},{i % 100:02d}"
        label = ("ja" if rng.random() < p else "nein") if labelled else ""
        change = f"-{i % 7},50 %" if i % 2 else ""
        rows.append([f"{1 + i % 28:02d}.03.2026", f"{100_000 + i // 2}", f"Kö{i % 3}", amount, *percent, change, f"=Zeile {i}" if i == 9 else f"Zeile; {i}", label])  # fmt: skip
    rows[7][4] = rows[8][5] = ""
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\r\n").writerows(rows)
    path = folder / "portfolio.csv"
    path.write_bytes(f"{TITLE}\r\n{HEADER}\r\n{text.getvalue()}".encode("cp1252"))
    return path, rows


def written_cells(content: bytes) -> tuple[list[str], list[list[str]]]:
    title, text = content.decode("cp1252").split("\r\n", 1)
    assert title == TITLE
    head, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=";")
    return head, rows


def check_is_the_file(content: bytes, rows: list[list[str]], lacking: list[int]) -> None:
    head, written = written_cells(content)
    assert head[:9] == HEADER.split(";")
    assert [name for name in head[9:] if name != "split"] == ADDED
    # Formulas are escaped, as everywhere.
    expected = [[("'" + c if c.startswith("=") else c) for c in row] for row in rows]
    assert [row[:9] for row in written] == expected
    for i, row in enumerate(written):
        added = dict(zip(head[9:], row[9:], strict=True))
        if i in lacking:
            assert [added[name] for name in ADDED] == ["", "", ""]
            continue
        no, yes, before = (float(added[name].replace(",", ".")) for name in ADDED)
        assert no + yes == pytest.approx(1)
        assert before == pytest.approx(float(rows[i][4].rstrip(" %").replace(",", ".")) / 100)


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    assert ended.value.code == 0


@pytest.mark.parametrize("labelled", [True, False])
def test_a_calibrated_file_keeps_every_cell(
    tmp_path: Path, labelled: bool, capsys: pytest.CaptureFixture[str]
):
    path, _ = portfolio(tmp_path)
    saved, out = tmp_path / "map.json", tmp_path / "out.csv"
    how = ["--scores", "pd_alt", "--label", "Ausfall", "--repair", "drop-missing"]
    fit = ["--method", "platt", "--fit-fraction", "0.5", "--save-map", str(saved)]
    run("recalibrate", str(path), *fit, "--out", str(out), *how)
    check_is_the_file(out.read_bytes(), portfolio(tmp_path)[1], [7])
    said = f"wrote 400 rows (399 of them calibrated) to {out}"
    new = "Calibrated: p_nein and p_ja; as in the file: pd_alt."
    assert capsys.readouterr().out.endswith(f"\n{said}, the map to {saved}\n{new}\n")
    path, rows = portfolio(tmp_path, labelled=labelled)
    applied = ["apply", str(path), "--map", str(saved), "--out", str(out)]
    run(*applied, "--scores", "pd_alt", "--repair", "drop-missing")
    check_is_the_file(out.read_bytes(), rows, [7])
    assert capsys.readouterr().out.endswith(f"\n{said}\n{new}\n")
    if labelled:
        again = read(out, options=options_of({"repair": ("drop-missing",)}))
        assert again.recognition.scores == ("p_nein", "p_ja")
        assert again.first.n == 399


def test_rows_that_were_chosen_are_written_alone_and_numbers_of_customers_once(tmp_path: Path):
    path, rows = portfolio(tmp_path)
    how = {"models": ["pd_alt", "pd_neu"], "label": "Ausfall", "repair": ("drop-missing",)}
    loaded = read(path, options=options_of({**how, "cluster_column": "Kunden_Nr"}))
    data, *_ = loaded.models.values()
    out = tmp_path / "out.csv"
    write_predictions(data, out, before=data, file=loaded)
    check_is_the_file(out.read_bytes(), rows, [7, 8])
    some = data.take(np.arange(4, 10))  # without rows 7 and 8, which lack a score
    write_predictions(some, out, before=some, file=loaded)
    check_is_the_file(out.read_bytes(), [rows[i] for i in (4, 5, 6, 9, 10, 11)], [])
    numbers = {"Kunden_Nr": np.arange(float(data.n))}
    write_predictions(replace(data, numbers=numbers), tmp_path / "out.parquet")
    assert [n for n in pl.read_parquet(tmp_path / "out.parquet").columns if "Kunden" in n] == ["Kunden_Nr"]  # fmt: skip


def test_probabilities_replace_logits_of_the_same_name_and_other_columns_give_way(tmp_path: Path):
    rows = [[f"{i % 10 / 10 + 0.05:.2f}", str(i % 10 > 4 - i % 2), "x", "007"] for i in range(40)]
    text = "\n".join(map(",".join, [["p_True", "y", "p_False", "code"], *rows]))
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text(text)
    how = {"label": "y", "scores": ["p_True"], "kind": "logits"}
    loaded = read(path, options=options_of(how))
    write_predictions(loaded.first, out, before=loaded.first, file=loaded)
    head, *written = csv.reader(out.read_text().splitlines())
    assert head == ["p_True", "y", "p_False_", "code", "p_False", "uncalibrated"]
    assert [row[1:4] for row in written] == [row[1:] for row in rows]
    expected = 1 / (1 + np.exp([-float(row[0]) for row in rows]))
    np.testing.assert_allclose([float(row[0]) for row in written], expected)


@pytest.mark.parametrize("k", [2, 3])
def test_rows_that_are_left_out_have_no_calibrated_score_and_keep_the_one_before(
    tmp_path: Path, k: int
):
    probs = np.random.default_rng(0).dirichlet(np.ones(k), 60).round(3)
    probs[:, 0] = 1 - probs[:, 1:].sum(axis=1)
    names = [f"p_{j}" for j in range(k)][-k if k > 2 else -1 :]
    frame = pl.DataFrame(dict(zip(names, probs.T[-len(names) :], strict=True)))
    labels = ["" if i == 7 else str(i % k) for i in range(60)]
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    how = {"separator": ";", "decimal_comma": True} if k == 2 else {}
    frame.with_columns(y=pl.Series(labels)).write_csv(path, **how)
    loaded = read(path, options=options_of({"label": "y", "repair": ("drop-missing",)}))
    calibrated = recalibrate(loaded.first, "temperature", fit_fraction=0.5)
    write_predictions(calibrated, out, before=loaded.first, file=loaded)
    written = pl.read_csv(out, separator=";", decimal_comma=True) if how else pl.read_csv(out)
    assert written.columns == [*names, "y", "split", "uncalibrated"]
    before = probs[:, 1] if k == 2 else probs.max(axis=1)
    np.testing.assert_allclose(written["uncalibrated"], before)
    assert [i for i, score in enumerate(written[names[-1]]) if score is None] == [7]


def test_rows_that_lack_the_score_of_another_model_are_calibrated_as_apply_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    rng, n = np.random.default_rng(0), 300
    a, b = (np.where(np.arange(n) % 20 == j, np.nan, rng.random(n).round(3)) for j in (3, 4))
    label = np.where(np.arange(n) % 50 == 7, "", (rng.random(n) < 0.4).astype(int).astype(str))
    day = [f"2026-01-{1 + i % 28:02d}" for i in range(n)]
    frame = pl.DataFrame({"day": day, "a": a, "b": b, "y": label}).fill_nan(None)
    frame.write_csv(path := tmp_path / "in.csv")
    files = {name: str(tmp_path / name) for name in ("one.csv", "two.csv", "map.json")}
    how = ["--models", "a,b", "--label", "y", "--model", "b", "--repair", "drop-missing"]
    fit = ["--method", "isotonic", "--save-map", files["map.json"], "--out", files["one.csv"]]
    run("recalibrate", str(path), *how, *fit)
    assert "wrote 300 rows (285 of them calibrated)" in capsys.readouterr().out
    rows = ["--map", files["map.json"], "--out", files["two.csv"], "--repair", "drop-missing"]
    run("apply", str(path), *rows)
    one, two = (pl.read_csv(files[name]) for name in ("one.csv", "two.csv"))
    assert one.drop("split").equals(two)
    assert one["b"].is_null().to_list() == np.isnan(b).tolist()
    # Only those without a label wait for it.
    read_again = read(path, options=options_of({"models": ["a", "b"], "label": "y", "repair": ("drop-missing",)}))  # fmt: skip
    unlabelled = (label == "") & ~np.isnan(a) & ~np.isnan(b)
    assert read_again.waiting["b"].file_rows.tolist() == np.flatnonzero(unlabelled).tolist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("named", [True, False])
def test_rows_whose_label_has_not_come_are_calibrated_and_written(
    tmp_path: Path, suffix: str, named: bool, capsys: pytest.CaptureFixture[str]
):
    rng, n = np.random.default_rng(0), 400
    p = rng.uniform(0.05, 0.95, n).round(3)
    score = [None if i == 7 else v for i, v in enumerate(p.tolist())]
    frame = pl.DataFrame({"p_yes": score, "site": [f"s{i % 2}" for i in range(n)]})
    frame = frame.rename({} if named else {"p_yes": "logit_yes"})
    labels = [None if i in (9, 10) else ("yes" if u < v else "no") for i, (u, v) in enumerate(zip(rng.random(n), p, strict=True))]  # fmt: skip
    frame = frame.with_columns(outcome=pl.Series(labels))
    path, out, saved = (tmp_path / name for name in (f"in{suffix}", f"out{suffix}", "map.json"))
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    how = ["--label", "outcome", "--repair", "drop-missing"]
    how += [] if named else ["--scores", "logit_yes", "--kind", "logits"]
    fit = ["--method", "slice+platt", "--option", 'slice+platt.where={"site": "s1"}']
    fit += ["--fit-fraction", "0.5", "--save-map", str(saved), "--out", str(out)]
    run("recalibrate", str(path), *fit, *how)
    said = f"wrote 400 rows (399 of them calibrated) to {out}"
    assert f"\n{said}, the map to" in capsys.readouterr().out
    slope, intercept = np.ravel(json.loads(saved.read_text())["fitted"]["base"]["fitted"]["coefficients_"])  # fmt: skip
    written = pl.read_csv(out) if suffix == ".csv" else pl.read_parquet(out)
    assert written["outcome"].to_list()[9:11] == [None, None]
    found = written["p_yes"].to_list()
    z = np.log(p / (1 - p)) if named else p
    expected = 1 / (1 + np.exp(-(slope * z[9] + intercept)))  # of site s1
    assert found[9] == pytest.approx(expected, abs=1e-6)
    before = p if named else 1 / (1 + np.exp(-p))
    assert found[10] == pytest.approx(before[10])
    assert written["uncalibrated"].to_list()[9:11] == pytest.approx(before[9:11])
    assert [i for i, v in enumerate(found) if v is None] == [7]
    # Cross-fitting has a map per fold: open rows are calibrated by one of all others.
    run("recalibrate", str(path), "--method", "platt", "--cross-fit", "5", "--out", str(out), *how)
    assert f"\n{said}" in capsys.readouterr().out
    written = pl.read_csv(out) if suffix == ".csv" else pl.read_parquet(out)
    known = np.setdiff1d(np.arange(n), [7, 9, 10])
    hits = np.array(labels)[known] == "yes"
    most, least = (hits.sum() + 1) / (hits.sum() + 2), 1 / ((~hits).sum() + 2)  # Platt's targets
    targets = np.where(hits, most, least)
    twice = np.tile(z[known], 2)[:, None], np.repeat([1, 0], known.size)
    weights = np.concatenate([targets, 1 - targets])
    peer = LogisticRegression(C=np.inf, tol=1e-10).fit(*twice, sample_weight=weights)
    expected = peer.predict_proba(z[9:11, None])[:, 1]
    assert written["p_yes"].to_list()[9:11] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("own", [True, False])
def test_predicted_classes_follow_the_calibrated_scores_if_they_were_those_of_the_largest(
    tmp_path: Path, suffix: str, own: bool
):
    p = np.arange(100) / 100 + 0.005
    predicted = np.where(p > (0.5 if own else 0.3), "YES", "NO")
    frame = pl.DataFrame({"p_yes": p, "y_pred": predicted, "outcome": ["yes", "no"] * 50})
    path, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    how = {"label": "outcome", "scores": ["p_yes"], "kind": "probabilities"}
    loaded = read(path, options=options_of(how))
    probs = np.stack([1 - p / 2, p / 2], axis=1)
    rows, calibrated, said = write_predictions(
        replace(loaded.first, probs=probs), out, before=loaded.first, file=loaded
    )
    written = pl.read_csv(out) if suffix == ".csv" else pl.read_parquet(out)
    assert (rows, calibrated) == (100, 100)
    new = "'y_pred' has the new predicted class, another one in 50 rows."
    old = "'y_pred' is as in the file: in 50 rows, another class has the largest score now."
    assert said == (new if own else old)
    assert written["y_pred"].to_list() == (["NO"] * 100 if own else predicted.tolist())


def test_a_file_that_has_changed_is_not_written(tmp_path: Path):
    path, _ = portfolio(tmp_path)
    loaded = read(
        path,
        options=options_of({"scores": ["pd_alt"], "label": "Ausfall", "repair": ("drop-missing",)}),
    )
    path.write_bytes(path.read_bytes() + b"1;2;3;4;5;6;7;8;9\r\n")
    with pytest.raises(InputError, match="has changed since it was read"):
        write_predictions(loaded.first, tmp_path / "out.csv", file=loaded)


def test_numbers_stay_without_quotation_marks_where_only_texts_have_them(tmp_path: Path):
    rows = [f'0.{i % 9 + 1}50,{i % 2},"k{i:03d}","a ""b"", {i}"' for i in range(40)]
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("\n".join(['"p","label","key","note"', *rows, ""]))
    loaded = read(path)
    write_predictions(loaded.first, out, before=loaded.first, file=loaded)
    head, *written = out.read_text().splitlines()
    assert head == '"p","label","key","note","uncalibrated"'
    assert all(
        f"{float(row[:5])}{row[5:]},0." in line for line, row in zip(written, rows, strict=True)
    )


@pytest.mark.parametrize("suffix", SUFFIXES[:4])
@pytest.mark.parametrize("as_list", [False, True])
def test_nested_columns_come_along_and_the_calibrated_scores_are_those_read(
    tmp_path: Path, suffix: str, as_list: bool
):
    rng = np.random.default_rng(0)
    names, rows = ("cat", "dog", "fox"), rng.dirichlet([1, 1, 1], N).round(4)
    records = [
        {
            "label": i % 3 if as_list else names[i % 3],
            "scores": p.tolist() if as_list else dict(zip(names, p.tolist(), strict=True)),
            "meta": {"lang": "de", "src": {"site": i % 3}} if i else None,
            "tags": ["x", "ü"],
        }
        for i, p in enumerate(rows)
    ]
    path, out = tmp_path / "in.jsonl", tmp_path / f"out{suffix}"
    path.write_text("\n".join(map(json.dumps, records)))
    loaded = read(path, options=options_of({"repair": ("renormalise",)}))
    flat = replace(loaded.first, probs=np.full((N, 3), 1 / 3))
    write_predictions(flat, out, before=loaded.first, file=loaded)
    assert read(out).first.probs == pytest.approx(1 / 3)
    read_as = {".csv": pl.read_csv, ".tsv": partial(pl.read_csv, separator="\t")}
    read_as |= {".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson}
    frame = read_as[suffix](out)
    if suffix not in (".csv", ".tsv"):
        assert frame["meta"].to_list() == [r["meta"] for r in records]
        return
    lists = ["scores"] if as_list else [f"scores.{name}" for name in names]
    assert frame.columns[:5] == ["label", *lists, "meta.lang", "meta.src.site", "tags"][:5]
    assert frame["meta.src.site"].to_list() == [None, *(i % 3 for i in range(1, N))]
    assert frame["tags"].unique().to_list() == [json.dumps(["x", "ü"])]
