"""Pictures that rows name: from one folder, and from nowhere else."""

import os
import sys

import numpy as np
import pytest

from calviz.comparison.fitting import recalibrate
from calviz.core.errors import InputError
from calviz.data import read
from calviz.data.writing import are_pictures, checked_folder, read_picture, write_predictions

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
    first, *others = again.texts["tale"].values()
    assert first == ("'" if ending == ".csv" else "") + tales[0]
    assert others == tales[1:]
    assert list(again.groups) == ["site"]
    assert are_pictures(["x.jpeg"])
