"""Opening files: reading, refusing, repairing, and links that wait for their file."""

import re

import pytest
from streamlit.runtime.scriptrunner_utils.exceptions import StopException

from calviz.app import open_files
from calviz.app.open_files import DIGEST_LENGTH, decode_options, encode_options
from calviz.data import ReadingOptions, read
from tests.app.pages import GOOD, ROOT, drop, open_page, press, quiet, text_of, upload, whole_app


@pytest.mark.slow
def test_a_file_is_read_and_looked_at():
    app = quiet(upload(open_page(page="data"), "mine.csv", GOOD))
    assert "3 rows, 3 classes (cat, dog, fox)" in text_of(app)
    app.open("overview")
    assert "mine.csv · 3 rows" in text_of(quiet(app))


@pytest.mark.slow
def test_a_bad_file_gives_one_sentence_and_what_was_loaded_stays():
    app = upload(open_page(page="data"), "mine.csv", GOOD)
    upload(app, "broken.csv", b"label,p_a,p_b\na,x,0.5\nb,0.5,0.5\n")
    assert not app.exception
    assert len(app.error) == 1
    words = text_of(app)
    assert "broken.csv" in words
    # Another file's numbers are not beneath the error.
    assert "3 rows, 3 classes" not in words
    assert "mine.csv is still loaded." in words
    next(b for b in app.button if b.label.startswith("Back to")).click().run()
    assert "3 rows, 3 classes" in text_of(quiet(app))


@pytest.mark.slow
def test_repairs_are_offered_made_on_request_and_undone():
    app = upload(open_page(page="data"), "mine.csv", b"label,p_a,p_b\na,80.9,19.1\nb,24.9,75.1\n")
    button = next(b for b in app.button if "100" in b.label)
    button.click().run()
    assert "Repair made" in text_of(quiet(app))
    assert "percent" in str(app.query_params["reading"])
    press(app, "Undo the repairs")
    assert not app.exception


@pytest.mark.slow
def test_a_link_waits_for_its_file_and_gives_it_its_settings():
    app = open_page("data=0123456789abcdef&bins=4&reduction=class&class=fox")
    assert "0123456789abcdef" in text_of(app)
    assert not app.number_input
    drop(app, "mine.csv", GOOD)
    quiet(app)
    assert app.number_input(key="bins").value == 4
    assert app.selectbox(key="class").value == "fox"
    # It is another file than the link's, which is said.
    assert "digest" in app.info[0].value


def test_a_link_that_waits_can_be_left():
    app = open_page("data=0123456789abcdef")
    next(b for b in app.button if "sample" in b.label).click().run()
    assert len(quiet(app).metric) == 3


@pytest.mark.parametrize(
    "options",
    [
        ReadingOptions(),
        ReadingOptions(label="y", scores=("a", "b*"), kind="logits", label_base=1),
        ReadingOptions(split_column="", groups=(), class_names=("é", "&=?")),
        ReadingOptions(repair=("renormalise",)),
        ReadingOptions(models=("p_lr", "p_rf")),
        ReadingOptions(
            kind="confidence", scores=("sure",), prediction_column="said", correct_column="ok"
        ),
    ],
)
def test_reading_options_survive_an_address(options):
    assert decode_options(encode_options(options)) == options


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "1", '{"x": 1}', '{"kind": "pickle"}', '{"label": ["a"]}'),
        *('{"label": 1}', '{"label_base": 2}', '{"label_base": "1"}', '{"weight_kind": []}'),
        *('{"models": "a"}', '{"models": [1]}', '{"correct_column": 1}'),
        *('{"scores": "a"}', '{"label_base": true}', '{"repair": ["x"]}', '{"groups": [1]}'),
    ],
)
def test_reading_options_that_make_no_sense_are_left_out(text):
    assert decode_options(text) == ReadingOptions()


@pytest.mark.slow
def test_a_click_while_the_first_file_is_read_does_not_lose_it(tmp_path, monkeypatch):
    file = tmp_path / "mine.csv"
    file.write_text("label,p_a,p_b\n" + "a,0.8,0.2\nb,0.4,0.6\n" * 20)
    monkeypatch.setenv("CALVIZ_OPEN", str(file))
    reading = open_files.read
    calls = []

    def interrupted(*args, **options):
        calls.append(args)
        if len(calls) == 1:
            raise StopException
        return reading(*args, **options)

    monkeypatch.setattr(open_files, "read", interrupted)
    app = whole_app()
    app.run()
    app.run()
    assert len(calls) == 2
    assert not app.exception
    assert app.selectbox[0].value == next(iter(app.session_state["calviz.files"]))


def test_the_page_over_time_names_columns_that_are_recognised():
    page = (ROOT / "pages/diagnose.py").read_text(encoding="utf-8")
    names = re.split(", | or ", re.search("is called (.+), for example", page)[1])
    assert len(names) == 3
    for name in names:
        content = f"{name},label,p\n" + "2024-05-01,1,0.9\n2024-05-02,0,0.2\n" * 9
        assert read(content.encode(), name="mine.csv").recognition.time_column == name


@pytest.mark.slow
def test_a_link_reads_the_file_of_the_server_as_it_says(tmp_path, monkeypatch):
    file = tmp_path / "mine.csv"
    file.write_bytes(b"label,second,p_a,p_b\na,b,0.8,0.2\nb,a,0.3,0.7\n")
    monkeypatch.setenv(open_files.OPEN_VARIABLE, str(file))
    key = read(file).digest[:DIGEST_LENGTH]
    options = encode_options(ReadingOptions(label="second"))
    # As when the page is loaded again after its file was read another way.
    app = quiet(open_page(f"data={key}&reading={options}", "data"))
    assert "label 'second'" in text_of(app)
    assert "second" in str(app.query_params["reading"])
    # Another file's link does not change how this one is read.
    other = open_page(f"data=0123456789abcdef&reading={options}", "data")
    assert "label 'second'" not in text_of(other)
