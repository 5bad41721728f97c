"""Files in the app: opened, read as asked, refused; profiles among them."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from streamlit.runtime.scriptrunner_utils.exceptions import StopException

import calviz
from calviz.app import open_files, recalibrate_results
from calviz.app.navigation import PAGES
from calviz.app.open_files import DIGEST_LENGTH, OpenFile, decode_options, encode_options
from calviz.app.reading_panel import other_way_round
from calviz.core.blocks import Factor
from calviz.core.errors import InputError
from calviz.core.predictions import Predictions
from calviz.core.profile import write_profile
from calviz.core.words import capitalised
from calviz.data import REPAIRS, ReadingOptions, first_rows, read
from calviz.recalibrators.temperature_scaling import TemperatureScaling
from calviz.sample.losses import part_numbers
from calviz.sample.sample import Sample, rows_where
from calviz.sample.slices import slices
from tests.app.pages import (
    GOOD,
    ROOT,
    chips,
    drop,
    first_table,
    give_role,
    helps_of,
    open_page,
    plain,
    press,
    quiet,
    text_of,
    upload,
    whole_app,
)
from tests.inputs import examples
from tests.inputs.command_line import outcome
from tests.inputs.relatives import HOSTILE_NAMES, REFUSED, REPAIRED, SAME, hostile
from tests.inputs.simulated import draw_labels

# ---- Every example file and its relatives through the app's own uploader, one after the other in one session


EXAMPLES = sorted({*examples.LOADED_AS_BASE, *examples.LOADED_OTHERWISE, *examples.REFUSED})
#: In the library all relatives are tried, here one of each kind.
RELATIVES = [
    "utf16.csv", "cp1252.csv", "decimal_comma.csv", "one_hot.csv", "logits.csv", "objects.jsonl", "splits.npz",
    "label_last.npy", "lists.parquet", "packed.feather", "called.txt",
]  # fmt: skip
BROKEN = ["negative.csv", "short.csv", "objects.npy", "new.csv", "nested.json", "half_utf16.csv"]


BROKEN_CSV = b"label,p_a,p_b\na,x,0.5\nb,0.5,0.5\n"


class Session:
    """One session with the app; it knows what it has loaded last, which must never be lost."""

    def __init__(self) -> None:
        self.app = open_page(page="data")
        self.loaded = "kept.csv"
        self.upload(self.loaded, SAME["quoted_crlf.csv"])

    def upload(self, name: str, content: bytes) -> str:
        """Everything that is said on the page after a file was given."""
        drop(self.app, name, content)
        assert not self.app.exception
        assert self.app.file_uploader  # and the next one can be opened
        return text_of(self.app)

    def reads(self, name: str, content: bytes) -> None:
        text = self.upload(name, content)
        assert [e.value for e in self.app.error] == []
        assert name in text
        assert re.search(r"\d rows?\b", text)
        self.loaded = name

    def refuses(self, name: str, content: bytes) -> None:
        text = self.upload(name, content)
        # What a click can settle is a question.
        # A question with one answer is the title, with one button; all else is a box.
        asks = [title for title in self.app.title if title.value.endswith(("?", "&#63;"))]
        assert len([*self.app.error, *self.app.warning]) == 1 or len(asks) == 1
        assert name in text
        assert "Traceback" not in text
        assert f"{self.loaded} is still loaded." in text


@pytest.fixture(scope="module")
def session() -> Session:
    return Session()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_files(session: Session, name: str) -> None:
    (session.refuses if name in examples.REFUSED else session.reads)(
        name, examples.contents()[name]
    )
    assert [path.name for path in Path().glob("calviz_*")] == []


@pytest.mark.parametrize("name", RELATIVES)
def test_relatives_are_read(session: Session, name: str) -> None:
    session.reads(name, SAME[name])


@pytest.mark.parametrize("name", BROKEN)
def test_relatives_are_refused_and_nothing_is_lost(session: Session, name: str) -> None:
    session.refuses(name, REFUSED[name][0])


@pytest.mark.parametrize("name", REPAIRED)
def test_repairs_are_a_button_away_and_are_said(session: Session, name: str) -> None:
    content, repair, _ = REPAIRED[name]
    session.refuses(name, content)
    # That button names what the rows lack.
    said = (
        "Leave out the rows without "
        if repair == "drop-missing"
        else capitalised(REPAIRS[repair].label)
    )
    press(session.app, next(b.label for b in session.app.button if b.label.startswith(said)))
    assert not session.app.error
    session.app.open("data")
    # Once, in the panel.
    assert text_of(session.app).count(f"Changed as asked: {repair}:") == 1
    assert text_of(session.app).count(f"{repair}:") == 1
    session.loaded = name


@pytest.mark.slow
def test_hostile_names_come_to_the_page_as_text(session: Session) -> None:
    session.reads("names.csv", hostile())
    app = session.app
    assert HOSTILE_NAMES[0] in text_of(app)
    for page in ("data", "overview", "classwise"):
        app.open(page)
        assert not app.exception
        assert not app.error
        for element in (*app.markdown, *app.caption, *app.header, *app.title):
            if not getattr(element, "allow_html", False):
                assert not re.search(r"<script|<img|!\[|\]\(http", element.value)
            assert not re.search("[\u202e\x1b]|x{1000}", element.value)
    app.open("data")
    session.refuses("<img src=x onerror=alert(1)>.csv", b"label,p_<b>x</b>,p_y\ny,=1+1,.5\n")
    assert not re.search("<img|<b>", app.error[0].value)


def test_a_click_while_a_file_is_read_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[object] = []

    def read_after_a_click(*given: object, **options: object) -> object:
        readings.append(given)
        if len(readings) == 1:
            raise StopException  # as streamlit ends a run
        return open_file(*given, **options)

    open_file = open_files.open_file
    monkeypatch.setattr(open_files, "open_file", read_after_a_click)
    app = drop(open_page(page="data"), "clicked.csv", b"label,p_a,p_b\na,0.75,0.25\nb,0.5,0.5\n")
    app.run()  # the run of that click
    assert len(readings) == 2
    assert "clicked.csv" in text_of(app)


@pytest.mark.slow
def test_logs_that_are_opened_together_are_one_data_set_and_other_files_are_their_own(
    session: Session,
) -> None:
    logs = [(p.name, p.read_bytes()) for p in (ROOT / "tests/inputs/logs").glob("samples_*.jsonl")]
    given = [
        (name, content, "")
        for name, content in [*logs, ("results_1.json", b"{}"), ("notes.txt", b"a")]
    ]
    app = session.app
    app.file_uploader[0].set_value(given).run()
    assert not app.exception
    text = text_of(app)
    assert "2 logs of lm-evaluation-harness: 50 rows" in text
    assert "four_choices and 1 more" in text
    assert "groups task" in text
    assert "notes.txt" in text  # left out, not a log
    assert "results_1" not in text
    # On which task can it be believed, and from which confidence on?
    app.open("risk_coverage")
    assert not app.exception
    table = next(f.value for f in app.dataframe if "task" in f.value.columns)
    assert sorted(table["task"]) == ["four_choices", "two_choices"]
    by_task = dict(zip(table["task"], table["hits"], strict=True))
    assert round(by_task["four_choices"], 1) == 33.3  # what the harness says
    app.open("data")
    # Read another way: each choice by itself.
    next(button for button in app.button if button.label == "Read it differently").click().run()
    next(box for box in app.selectbox if box.label == "Questions with choices").set_value("each")
    next(button for button in app.button if button.label == "Read it this way").click().run()
    assert not app.exception
    assert "160 rows, 2 classes (wrong, right)" in text_of(app)
    two = [("broken.csv", BROKEN_CSV, ""), ("fine.csv", SAME["quoted_crlf.csv"], "")]
    app.file_uploader[0].set_value(two).run()
    assert len(app.error) == 1
    text = text_of(app)
    assert "Row 1" in text
    assert "fine.csv is still loaded." in text


# ---- Opening files: reading, refusing, repairing, and links that wait for their file


@pytest.mark.slow
def test_a_file_is_read_and_looked_at():
    app = quiet(upload(open_page(page="data"), "mine.csv", GOOD))
    assert "3 rows, 3 classes (cat, dog, fox)" in text_of(app)
    app.open("overview")
    assert "mine.csv · 3 rows" in text_of(quiet(app))


def test_the_panel_says_roles_rows_and_changes_and_the_help_digest_and_codes():
    head = "label;p;policy;a;b;c;d;e;f"
    rows = [
        f"{'ny'[k // 7 % 2]};0,{k % 8 + 1};R{k};x;{k % 2};{k % 3};{k % 4};{k % 5};{k % 6}"
        for k in range(120)
    ]
    app = quiet(upload(open_page(page="data"), "mine.csv", "\n".join([head, *rows]).encode()))
    text, helps = text_of(app), helps_of(app)
    first = text.index(
        "decimal comma: 120 rows, 2 classes (n, y)\n- probabilities in p\n- label 'label'"
    )
    # All groups, and no notice is folded away.
    assert first < text.index("- groups b, c, d, e, f\n") < text.index("The event is 'y'")
    assert (
        "Not used as groups because they have no value, one or too many: policy (120 values), a"
        in text
    )
    assert not re.search(r"DATA\d|digest", text)
    assert re.search(r"kB, digest [0-9a-f]{16}", helps)
    assert {"DATA007", "DATA008"} <= {*re.findall(r"Code (DATA\d+), as in the report", helps)}


@pytest.mark.slow
def test_a_file_after_another_is_judged_on_its_own_rows():
    # The sample's split "test" is none of this file; the rows that its map has not seen are.
    app = open_page(page="data")
    assert "Split test" in map(plain, chips(app))
    file = b"split,label,p\n" + b"evaluation,1,0.7\ncalibration,0,0.2\nevaluation,0,0.3\n" * 10
    said = [plain(c) for c in chips(quiet(upload(app, "calibrated.csv", file)))]
    assert "Split evaluation" in said
    assert app.selectbox(key="split").value == "evaluation"


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
    quiet(button.click().run()).open("data")
    assert "Changed as asked: percent:" in text_of(quiet(app))
    assert "percent" in str(app.query_params["reading"])
    press(app, "Undo the repairs")
    assert not app.exception


@pytest.mark.slow
def test_a_link_waits_for_its_file_and_gives_it_its_settings():
    app = quiet(open_page("data=0123456789abcdef&bins=4&reduction=class&class=fox"))
    assert "0123456789abcdef" in helps_of(app)
    assert not app.number_input
    drop(app, "mine.csv", GOOD)
    quiet(app)
    assert app.number_input(key="bins").value == 4
    assert app.selectbox(key="class").value == "fox"
    # It is another file than the link's, which is said.
    assert "digest" in app.info[0].value


@pytest.mark.slow
def test_a_link_that_names_columns_of_another_file_is_said_not_to_fit():
    reading = encode_options(ReadingOptions(label="truth", scores=("Risk (%)",)))
    app = open_page(f"data=0123456789abcdef&bins=4&reading={reading}")
    drop(app, "mine.csv", GOOD)
    assert app.number_input(key="bins").value == 4
    note = quiet(app).info[0].value
    assert "not read as the link says" in note
    assert "'truth' is not in the file" in plain(note)
    assert "0123456789abcdef" in note
    assert "reading" not in app.query_params


@pytest.mark.slow
def test_how_a_link_reads_its_file_is_for_that_file_only():
    link = (
        f"reading={encode_options(ReadingOptions(class_names=('fox', 'dog', 'cat'), label_base=1))}"
    )
    for digest in ("0123456789abcdef", read(GOOD, name="mine.csv").digest[:DIGEST_LENGTH]):
        app = open_page(f"data={digest}&{link}")
        drop(app, "mine.csv", GOOD)
        notes = [plain(note.value) for note in quiet(app).info]
        (entry,) = app.session_state["calviz.files"].values()
        is_own = digest == entry.key
        assert (entry.options == ReadingOptions()) is not is_own
        assert any("not read as the link says: it is another one" in n for n in notes) is not is_own


def test_a_link_that_waits_can_be_left():
    app = quiet(open_page("data=0123456789abcdef"))
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


@pytest.mark.slow
def test_where_the_first_file_cannot_be_read_the_browser_may_know_of_others(tmp_path, monkeypatch):
    file = tmp_path / "broken.csv"
    file.write_text("a,b\n1,2\n")
    monkeypatch.setenv("CALVIZ_OPEN", str(file))
    app = whole_app().run()
    assert "No file of yours is open yet." in [c.value for c in app.caption]
    # After a reload it tells the secret of the session before.
    names = [component.proto.component_name for component in app.get("bidi_component")]
    assert "calviz.browser" in names


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
    # Sample data are named in the address, which would mean the file of the server otherwise.
    sample = quiet(open_page("data=digits", "data"))
    assert "Handwritten digits" in text_of(sample)
    assert sample.query_params["data"] == "digits"
    # A step back to the address without a name, in which the session began, is one to the file of the server.
    del sample.query_params["data"]
    assert "mine.csv" in text_of(quiet(sample.run()))
    # Another file's link does not change how this one is read.
    other = open_page(f"data=0123456789abcdef&reading={options}", "data")
    assert "label 'second'" not in text_of(other)
    # What a file asks is answered by its link, also when the page is loaded again.
    file.write_bytes(b"label,p [%]\n" + b"1,0.8\n0,0.2\n" * 30)
    assert "One question about" in open_page("", "data").title[0].value
    options = ReadingOptions(repair=("percent",))
    key = read(file, options=options).digest[:DIGEST_LENGTH]
    answered = quiet(open_page(f"data={key}&reading={encode_options(options)}", "data"))
    assert "divided by 100" in text_of(answered)


# ---- A doubtful or refused file: its rows, the ways to read it, and no other data's results with it


MODELS = b"y_true,y_prob_lr,y_prob_rf\n" + b"1,0.9,0.8\n0,0.3,0.1\n1,0.6,0.7\n0,0.2,0.35\n" * 8
WHICH_EVENT = b"diagnosis,prob\n" + b"M,0.9\nB,0.3\nM,0.6\nB,0.2\n" * 8
LOGITS = b"1.5,-0.5,0.25,0\n-2,3.5,0.5,1\n0.1,0.2,2.5,2\n"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.mark.slow
def test_a_doubtful_file_shows_its_rows_and_opens_with_one_click():
    app = quiet(upload(open_page(page="data"), "mine.csv", MODELS))
    words = text_of(app)
    assert "One question about mine.csv" in words
    assert "do not sum to 1" in app.warning[0].value
    assert len(app.table) == 3
    press(app, "2 models")
    # Nothing is left to be asked: this is the verdict.
    assert "mine.csv · 32 rows" in text_of(quiet(app))
    assert "Recognised:" not in text_of(app)
    words = text_of(quiet(app.open("data")))
    assert "32 rows, 2 classes (0, 1), 2 models" in words
    assert '"models":["y_prob_lr","y_prob_rf"]' in str(app.query_params["reading"])


@pytest.mark.slow
def test_the_chips_say_at_once_what_a_new_file_has():
    app = quiet(open_page(page="data"))
    assert {"Model MLP", "View top-label"} <= {*map(plain, chips(app))}
    app = quiet(
        upload(app, "mine.csv", b"y,a:0,a:1,b:0,b:1\n" + b"1,.1,.9,.3,.7\n0,.8,.2,.6,.4\n" * 20)
    )
    assert {"Model a", "View positive"} <= {*map(plain, chips(app))}


@pytest.mark.slow
def test_the_numbers_are_those_of_the_reading_that_was_chosen():
    app = quiet(upload(open_page(page="data"), "mine.csv", WHICH_EVENT))
    ways = [b.label for b in app.button if b.label.startswith("The probability")]
    assert len(ways) == 2
    press(app, next(w for w in ways if "'M'" in plain(w))).open("data")
    assert "'M' is expected in **50.00 %**, and true in **50.00 %**" in text_of(quiet(app))
    app.open("overview")
    assert "mine.csv · 32 rows" in text_of(quiet(app))
    app = quiet(upload(open_page(page="data"), "one.csv", b"label,score\n1,0.8\n"))
    assert "'1' is expected in **80.00 %**, and true in **1 of 1 row**" in text_of(app)


@pytest.mark.slow
def test_a_file_to_compare_with_does_not_become_the_judged_one_by_an_answer():
    app = upload(open_page(page="data"), "mine.csv", GOOD)
    app = drop(app.open("compare_models"), "other.csv", WHICH_EVENT)
    press(app, next(b.label for b in app.button if b.label.startswith("The probability")))
    app = quiet(app.open("overview"))
    assert next(map(plain, chips(app))) == "mine.csv · 3 rows"
    assert "other.csv" in next(s for s in app.selectbox if s.label == "Data set").options


@pytest.mark.slow
def test_a_refused_file_is_read_by_the_roles_of_its_columns():
    app = upload(open_page(page="data"), "logits.csv", LOGITS)
    # The roles below the rows answer it.
    assert (len(app.error), len(app.warning)) == (0, 1)
    assert "say which columns hold the scores" in plain(app.warning[0].value)
    assert len(app.table) == 4
    # As shown, the scores are taken for probabilities, and what they may be is offered.
    press(app, "Read it like this")
    press(app, next(b.label for b in app.button if "softmax" in b.label)).open("data")
    assert "3 rows, 3 classes" in text_of(quiet(app))


@pytest.mark.slow
def test_a_file_that_was_not_read_is_read_by_chosen_roles_when_that_is_asked_for():
    rows = b"ward,site,risk\n" + b"a,x,0.3\nb,y,0.7\nc,z,0.4\n" * 20
    app = upload(open_page(page="data"), "mine.csv", rows)
    assert "Still to say:" in text_of(app)
    scores = rows.replace(b"0.", b"3.").replace(
        b"risk", b"points"
    )  # no probabilities, but proposed: that is no failure
    app = upload(open_page(page="data"), "mine.csv", scores)
    # The box asks for the scores too.
    title = plain(app.title[0].value)
    assert title == "Which columns of mine.csv are the scores and the label?"
    assert not app.error
    app = upload(open_page(page="data"), "mine.csv", rows)
    # Of three words and one probability it is asked which is the event, with the role as chosen.
    give_role(app, "site", "label")
    assert "mine.csv is not read yet" in text_of(quiet(app))
    assert "tells two classes apart" not in text_of(app)
    press(app, "Read it like this")
    assert "tells two classes apart" in text_of(app)
    assert "Still to say:" not in text_of(app)
    rows = rows.replace(b"z", b"y")
    app = upload(open_page(page="data"), "mine.csv", rows)
    # Which of two words is the event is asked with it.
    label = next(r for r in app.radio if r.options[0] == "There are no labels yet")
    assert (plain(label.options[1]), len(app.warning)) == ("'site' is the true class", 2)
    label.set_value(label.options[0]).run()
    assert not button(app).disabled  # whatever the event is
    label.set_value(label.options[1]).run()
    event = next(r for r in app.radio if r.options[0].startswith("The probability"))
    event.set_value(event.options[0]).run()
    press(app, "Read it with these answers").open("data")
    assert "60 rows, 2 classes" in text_of(quiet(app))


@pytest.mark.slow
def test_a_column_called_like_weights_is_one_question_with_two_buttons():
    rows = [f"{j % 3 == 0:d},{j % 10 / 10},{4 - 3 * (j % 3 == 0)}" for j in range(120)]
    table = "\n".join(["is_fraud,score,sampling_weight", *rows]).encode()
    for answer, weighted in (("Weighted by", True), ("Without weights", False)):
        app = upload(open_page(page="data"), "fraud.csv", table)
        (question,) = app.warning
        assert "Does 'sampling_weight' say how much each row counts?" in plain(question.value)
        label = next(b.label for b in app.button if b.label.startswith(answer))
        observed = "11.1" if weighted else "33.3"
        assert (
            plain(label)
            .replace("\u00a0", " ")
            .endswith(f"(expected 45.0 %, observed {observed} %)")
        )
        press(app, label)
        app.open("overview")
        assert ("120 weighted rows" in text_of(quiet(app))) == weighted


def button(app):
    return next(b for b in app.button if b.label == "Read it with these answers")


@pytest.mark.slow
def test_all_that_a_file_asks_is_answered_with_one_button():
    lines = [f"{j},{j}.5%,{'ab'[j % 3 < 1]}" for j in range(60)]
    lines[7], lines[9], lines[11] = "7,7%,a,x", "9,130%,a", "11,11%,"
    app = upload(open_page(page="data"), "mine.csv", "\n".join(["id,p,y", *lines]).encode())
    assert len(app.warning) == 4
    assert len(app.checkbox) == 3
    event = next(r for r in app.radio if r.options[0].startswith("The probability"))
    assert event.value is None
    assert button(app).disabled
    assert "Still to answer: 1 question." in text_of(app)
    event.set_value(event.options[0]).run()
    assert not button(app).disabled
    assert "Still to answer" not in text_of(app)
    press(app, "Read it with these answers").open("data")
    assert "57 rows, 2 classes" in text_of(quiet(app))
    assert not app.warning


@pytest.mark.slow
def test_a_picture_is_no_table_and_gets_no_panel():
    app = upload(open_page(page="data"), "photo.png", PICTURE)
    assert "not a table" in app.error[0].value
    assert not app.table
    assert not app.radio
    assert not app.expander


@pytest.mark.slow
@pytest.mark.parametrize("content", [PICTURE, LOGITS, MODELS])
def test_the_sample_is_not_judged_beneath_an_error(content):
    app = upload(open_page(page="data"), "mine.csv", content)
    for page in ("data", "overview", "reliability"):
        app.open(page)
        assert not app.exception
        words = text_of(app)
        assert "mine.csv" in words
        assert "Handwritten" not in words
        assert not app.metric
    press(app, "Show sample data instead")
    app.open("overview")
    assert len(quiet(app).metric) == 3


@pytest.mark.slow
def test_a_file_that_was_read_is_read_differently():
    rows = b"label,second,p_a,p_b\n" + b"a,b,0.8,0.2\nb,a,0.3,0.7\n" * 10
    app = quiet(upload(open_page(page="data"), "mine.csv", rows))
    assert "label 'label'" in text_of(app)
    press(app, "Read it differently")
    give_role(app, "second", "label")
    assert "label 'second'" in text_of(quiet(app))
    # The panel stays open for the next change.
    assert any(b.label == "Close" for b in app.button)
    press(app, "Close")
    assert not any(b.label == "Close" for b in quiet(app).button)


@pytest.mark.slow
def test_of_a_wide_file_the_columns_that_matter_come_first_and_others_are_found():
    names = [f"x{k}" for k in range(60)]
    rows = "\n".join(",".join(["0.1"] * 60 + ["perhaps"]) for _ in range(9))
    app = upload(
        open_page(page="data"), "mine.csv", f"{','.join(names)},outcome\n{rows}\n".encode()
    )
    assert len(app.table) == 12
    assert "outcome" in {t.value.columns[0] for t in app.table}
    shown = [t.value.columns[0] for t in app.table]
    more = next(s for s in app.selectbox if "12 of 61 columns" in s.label)
    assert {*more.options} == {*names, "outcome"} - {*shown}
    last = more.options[-1]
    more.set_value(last).run()
    assert [t.value.columns[0] for t in app.table] == [last, *shown]


@pytest.mark.parametrize(
    ("head", "turned"), [("label,prob", ("1", "0")), ("label,p_1", None), ("died,risk", ("1", "0"))]
)
def test_a_score_is_turned_round_unless_its_header_names_the_class(head, turned):
    content = f"{head}\n".encode() + b"1,0.1\n0,0.8\n1,0.3\n0,0.9\n" * 10
    loaded = read(content, name="mine.csv")
    entry = OpenFile("key", "mine.csv", loaded, source=content)
    options = other_way_round(entry, first_rows(entry.source))
    assert (options and options.class_names) == turned
    if options is not None:
        other = read(content, name="mine.csv", options=options)
        assert other.first.labels.tolist() == [1 - y for y in loaded.first.labels.tolist()]


def test_the_scores_of_two_models_are_turned_round_together():
    content = b"paid,old,new\n" + b"yes,0.1,0.2\nno,0.8,0.7\n" * 20
    options = ReadingOptions(models=("old", "new"), label="paid", class_names=("no", "yes"))
    entry = OpenFile(
        "key", "m.csv", read(content, name="m.csv", options=options), options, source=content
    )
    turned = other_way_round(entry, first_rows(content, options=options))
    assert turned.class_names == ("yes", "no")
    models = read(content, name="m.csv", options=turned).models.values()
    assert [m.probs[0].tolist() for m in models] == [[0.9, 0.1], [0.8, 0.2]]
    assert [m.class_names[m.labels[0]] for m in models] == ["yes", "yes"]


def test_what_has_several_scores_is_not_turned_round():
    entry = OpenFile("key", "mine.csv", read(GOOD, name="mine.csv"), source=GOOD)
    assert other_way_round(entry, first_rows(entry.source)) is None


@pytest.mark.slow
def test_scores_that_rank_in_reverse_are_read_the_other_way_by_one_click():
    rows = "\n".join(f"{int((i * 61 % 97) / 97 > p)},{p}" for i, p in enumerate(_scores(400)))
    app = upload(open_page(page="data"), "mine.csv", f"label,prob\n{rows}\n".encode())
    app.open("overview")
    assert "rank the classes in reverse" in text_of(quiet(app))
    press(app, "Read it the other way")
    assert "rank the classes in reverse" not in text_of(quiet(app))
    assert not any(b.label == "Read it the other way" for b in app.button)
    (entry,) = app.session_state["calviz.files"].values()
    assert entry.options == ReadingOptions(class_names=("1", "0"))


@pytest.mark.slow
@pytest.mark.parametrize("column", ["model", "site"])
def test_rows_of_several_models_are_read_as_models_and_back(column):
    rows = [f"{i},{m},{i % 2},{p}" for m in "ab" for i, p in enumerate(_scores(1_000))]
    content = "\n".join([f"id,{column},label,p", *rows]).encode()
    app = upload(open_page(page="data"), "mine.csv", content)
    if column == "model":
        assert [*_only_file(app).loaded.models] == ["a", "b"]
        press(app, "Read it as one model")
        assert _only_file(app).options == ReadingOptions(model_column="")
    assert len(_only_file(app).loaded.models) == 1
    app.open("overview")
    press(app, f"Read '{column}' as models")
    assert [*_only_file(app).loaded.models] == ["a", "b"]
    assert any(chip.startswith("Model") for chip in chips(app))


def test_a_note_stays_until_the_page_or_the_file_changes():
    content = (
        "label,prob\n" + "\n".join(f"{i % 2},{p}" for i, p in enumerate(_scores(200)))
    ).encode()
    app, note = open_page(page="data"), "shown once"
    app.session_state["calviz.note"] = note
    app.run()
    for _ in range(2):  # as when it is drawn again for its width
        assert text_of(app).count(note) == 1
        app.run()
    assert note not in text_of(app.open("overview"))
    assert note not in text_of(app.open("data"))
    app.session_state["calviz.note"] = note
    assert note in text_of(app.run())
    assert note not in text_of(upload(app, "mine.csv", content))


def _only_file(app):
    (entry,) = app.session_state["calviz.files"].values()
    return entry


def _scores(n):
    return [(i * 37 % 100) / 100 for i in range(n)]


# ---- The app opens a profile, and every page shows what it can or says what needs the rows


N = 4_000


@pytest.mark.slow
def test_every_page_opens_on_a_profile(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, N)
    table = pl.DataFrame(
        {
            "p": p,
            "y": (rng.random(N) < p**1.5).astype(int),
            "country": rng.choice(["de", "fr"], N),
            "day": (np.datetime64("2026-01-01") + rng.integers(0, 3, N)).astype("datetime64[us]"),
        }
    )
    write_profile(calviz.profile(table, by=["country"], time="day"), tmp_path / "p.parquet")
    app = open_page(page="data")
    content = (tmp_path / "p.parquet").read_bytes()
    drop(app, "p.parquet", content, "application/octet-stream")
    seen = {}
    for page in PAGES:
        app.open(page.key)
        assert not app.exception, page.key
        assert [e.value for e in app.error] == [], page.key
        seen[page.key] = text_of(app) + "\n".join(e.value for e in app.info)
    for key in ("overview", "metrics", "reliability", "cumulative", "over_time"):
        assert "4,000 rows" in seen[key].replace("&#44;", ","), key
    assert "2 of 2 predicted classes" in seen["classwise"]
    assert (
        "2 slices are off, not found to differ from other rows with such scores." in seen["slices"]
    )


def test_classes_of_a_profile_have_their_page(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], N)
    y = draw_labels(probs, rng)
    probs[:, 0] += 0.2
    probs /= probs.sum(axis=1, keepdims=True)
    table = pl.DataFrame(probs, schema=["p_0", "p_1", "p_2"]).with_columns(y=y)
    calviz.profile(table, each_class=True).save(tmp_path / "p.parquet")
    app = open_page(page="data")
    content = (tmp_path / "p.parquet").read_bytes()
    drop(app, "p.parquet", content, "application/octet-stream")
    app.open("classwise")
    assert not app.exception
    words = text_of(app)
    assert re.search(r"is too (high|low) on average", words)
    # The furthest outside its range comes first, too high or too low.
    assert app.dataframe[0].value["class"].tolist() == ["0", "1", "2"]
    app.segmented_control(key="classes_by").set_value("true-class").run()
    assert "do not name the true classes" in text_of(app)


# ---- Files whose rows are not alike, on every page


def lines(n=240):
    yield "label,p,patient_id,w,date"
    for i in range(n):
        p = 0.2 + 0.6 * (i * 37 % 100) / 100
        yield f"{int((i * 61 % 97) / 97 < p)},{p:.3f},{i % 24},{1 + i % 3},2021-{1 + i % 6:02d}-11"


def weights():
    yield ",w"
    yield from (f",{i % 3}" for i in range(240))


@pytest.mark.slow
def test_clusters_weights_and_times_go_through_all_pages():
    app = upload(open_page(page="data"), "visits.csv", "\n".join(lines()).encode())
    words = text_of(quiet(app))
    assert "give it the role Cluster, and intervals" in words
    assert "give it the role Weight." in words
    assert "--cluster" not in words
    press(app, "Read it differently")
    give_role(app, "patient_id", "cluster")
    give_role(app, "w", "weight")
    words = text_of(quiet(app))
    assert "clusters 'patient_id'\n- weights 'w'\n- times 'date'" in words
    first = next(t.value for t in app.dataframe if "label" in t.value).iloc[0]
    assert (first["date"], first["w"]) == ("2021-01-11", 1.0)
    app.open("overview")
    assert "240 weighted rows in 24 clusters" in text_of(quiet(app))
    app.open("over_time")
    assert "over 6 periods" in text_of(quiet(app)) or "of 6 periods" in text_of(app)
    # What recalibration on the past would have given is judged on Recalibrate, by time.
    assert "fitted before each period" not in text_of(app)
    for page in PAGES:
        if page.key not in ("arena", "learn"):
            app.open(page.key)
            assert not app.exception, page.key
            words = text_of(app) + "".join(i.value for i in app.info)
            assert "does not take weights" not in words, page.key


@pytest.mark.slow
def test_classes_of_clustered_rows_have_no_empty_column_of_intervals():
    app = upload(open_page(page="data"), "visits.csv", "\n".join(lines()).encode())
    app.open("classwise")
    assert "interval" in first_table(quiet(app)).columns
    app.open("data")
    press(app, "Read it differently")
    give_role(app, "patient_id", "cluster")
    app.open("classwise")
    for view in ("predicted-class", "one-vs-rest", "true-class"):
        app.segmented_control(key="classes_by").set_value(view).run()
        assert first_table(quiet(app))["interval"].str.contains(" to ").all()
    # Three clusters are too few.
    app.open("data")
    give_role(app, "w", "cluster")
    app.open("classwise")
    app.segmented_control(key="classes_by").set_value("predicted-class").run()
    assert "interval" not in first_table(quiet(app)).columns


@pytest.mark.slow
def test_rows_of_weight_zero_are_left_out_and_the_others_keep_their_numbers():
    table = "\n".join(
        ",".join(row.split(",")[:2]) + w for row, w in zip(lines(), weights(), strict=True)
    )
    app = upload(open_page(page="data"), "visits.csv", table.encode())
    press(app, "Read it differently")
    give_role(app, "w", "weight")
    assert "80 of 240 rows have the weight 0" in text_of(quiet(app))
    app.open("overview")
    assert "160 weighted rows" in text_of(quiet(app))
    given = pd.read_csv(StringIO(table))
    numbered = 0
    for page in PAGES:
        if page.key not in ("arena", "learn", "data"):
            app.open(page.key)
            assert not app.exception, page.key
            for shown in (t.value for t in app.dataframe):
                if {"row", "label", "w"} <= set(shown):
                    rows = given.iloc[shown["row"].to_numpy() - 1]
                    assert (rows["w"] > 0).all()
                    assert rows["w"].tolist() == shown["w"].tolist()
                    numbered += 1
    assert numbered


@pytest.mark.parametrize("clusters", [None, np.arange(600) // 3])
def test_selected_rows_have_the_interval_of_their_slice(clusters):
    rng = np.random.default_rng(0)
    site = Factor(rng.integers(0, 3, 600), ("A", "B", "C"))
    rows = {"probs": rng.random(600), "labels": np.arange(600) % 2, "groups": {"site": site}}
    sample = Sample.of(Predictions(**rows, clusters=clusters), reduction="positive")
    one = slices(sample, ["site"]).slices[0]
    chosen = np.flatnonzero(rows_where(sample.data, one.where))
    assert part_numbers(sample, chosen).interval == pytest.approx(one.interval)


def test_a_time_that_some_rows_lack_is_a_group_and_can_be_chosen():
    days = [f"{1 + j % 28:02d}.03.2025" for j in range(1_200)]
    for blank, role in ((None, "time"), (1_100, "group")):
        rows = [
            f"{j // 31 % 2},0.{j % 9 + 1},{day if j != blank else ''}" for j, day in enumerate(days)
        ]
        content = "\n".join(["y,p,received", *rows]).encode()
        loaded = read(content, name="mine.csv")
        shown = first_rows(content, name="mine.csv", read=loaded)
        assert shown.roles["received"] == role
    assert shown.with_role("received", "time").time_column == "received"


def test_the_proposed_label_is_the_first_button_and_rows_without_labels_lack_nothing():
    rows = "".join(f"0.{i % 9 + 1},{int(i % 9 > 3)},{'XY'[i % 2]}\n" for i in range(60))
    app = upload(open_page(page="data"), "ward.csv", f"p_sepsis,sepsis,arm\n{rows}".encode())
    (button,) = (b for b in app.button if b.proto.type == "primary")
    assert plain(button.label) == "'sepsis' is the label"
    none = next(b for b in app.button if plain(b.label) == "There are no labels yet")
    app = none.click().run()
    assert "Still to say" not in text_of(app)
    assert "Read it like this" not in [b.label for b in app.button]


def test_dates_with_gaps_and_a_second_model_are_a_click_away_each():
    rows = "".join(
        f"0.{i % 9 + 1},0.{i % 9}5,{int(i % 9 > 3)},{f'2025-03-{1 + i % 28:02d}' if i else ''}\n"
        for i in range(60)
    )
    app = upload(open_page(page="data"), "two.csv", f"p_bad,new_prob,label,date\n{rows}".encode())
    buttons = {plain(b.label): b for b in app.button}
    assert "Compare p_bad and new_prob as models" in buttons
    app = (
        buttons["Use 'date' as the time, leaving 1 row without a date out of all results"]
        .click()
        .run()
    )
    assert "59 rows" in text_of(app)


def test_empty_scores_are_a_question_with_one_button():
    rows = "".join(f"{'' if i in (3, 30) else i / 50},{i % 2}\n" for i in range(50))
    app = upload(open_page(page="data"), "empty.csv", f"p,label\n{rows}".encode())
    assert [plain(title.value) for title in app.title] == [
        "2 of 50 rows have no score. Leave them out?"
    ]
    assert not [*app.error, *app.warning]
    assert text_of(app).count("row 31") == 1
    (button,) = (b for b in app.button if b.proto.type == "primary")
    assert "48 rows" in text_of(button.click().run())


def test_roles_of_a_file_that_is_not_read_are_proposals():
    text = b"a,b,c\nx,0.2,0.9\ny,0.4,0.7\nz,0.3,0.1\n"
    app = upload(open_page(page="data"), "guessed.csv", text)
    assert "a role with a question mark is a proposal" in text_of(app)


def test_how_a_text_is_divided_is_told_in_the_panel():
    text = b"id;p;label\n" + b"1;0,25;0\n2;0,75;1\n" * 20
    app = press(upload(open_page(page="data"), "told.csv", text), "Read it differently")
    next(n for n in app.number_input if n.label == "Line of the header").set_value(1)
    for label, sign in (("Separator", ";"), ("Decimal sign", ",")):
        next(box for box in app.selectbox if box.label == label).set_value(sign)
    press(app, "Read it this way")
    told = decode_options(app.query_params["reading"])
    assert (told.header_line, told.separator, told.decimal) == (1, ";", ",")
    assert "40 rows" in text_of(app)


# ---- Rows without labels


def without_labels(n=60):
    """Rows of two models, in another order than those of `with_labels`; one has no score."""
    p = (np.arange(n) + 0.5) / n
    rows = (f"{q:.3f};r{i};{'' if i == 5 else f'{q * q:.3f}'}" for i, q in enumerate(p))
    return "\n".join(["new;name;old", *rows]).replace(".", ",").encode()


def saved_map(**more):
    record = TemperatureScaling().fit([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1]).to_dict()
    return json.dumps(record | {"class_names": ["no", "yes"]} | more).encode()


def test_a_file_without_labels_is_calibrated_by_a_saved_map_as_on_the_command_line(
    tmp_path, monkeypatch
):
    files = []
    monkeypatch.setattr(recalibrate_results, "offer_file", lambda *file, **_: files.append(file))
    app = upload(open_page(page="data"), "kept.csv", GOOD)
    scores = {"scores": {"kind": "probabilities", "columns": ["old"]}}
    drop(app, "map.json", saved_map(**scores))
    assert "map.json is a saved map" in text_of(app)
    drop(app, "q2.csv", without_labels())
    # What has no score is asked for, as for a file with labels.
    press(app, "Leave out the rows without score")
    quiet(app)
    text = text_of(app)
    assert "kept.csv is still loaded." in text
    assert "**59 rows calibrated, 59 changed.** The mean P(yes) goes from 33.8" in text
    assert "In the file, without a calibrated score: 1 of 60 rows" in text
    assert "measured. In a terminal, this estimates accuracy" in text
    assert not app.metric
    for name, content in {"map.json": saved_map(**scores), "q2.csv": without_labels()}.items():
        (tmp_path / name).write_bytes(content)
    out = tmp_path / "out.csv"
    arguments = ("--map", tmp_path / "map.json", "--repair", "drop-missing", "--out", out)
    assert outcome("apply", tmp_path / "q2.csv", *arguments)[0] == 0
    label, content, name, _ = files[-1]
    assert (label, name) == ("Calibrated file (CSV)", "q2-calibrated.csv")
    assert content() == out.read_bytes()


def test_a_map_finds_its_own_of_several_models_and_asks_where_it_cannot():
    mapped = recalibrate_results._mapped.__wrapped__
    file = SimpleNamespace(source=without_labels(), title="q2.csv")
    options = ReadingOptions(models=("new", "old"), repair=("drop-missing",))
    for column in ("old", "new"):
        record = json.loads(saved_map(scores={"kind": "probabilities", "columns": [column]}))
        _, before, after = mapped("", file, record, options, None)
        assert before.name == column
        assert (before.probs != after.probs).any()
    with pytest.raises(InputError, match="to which one is the map applied") as error:
        mapped("", file, json.loads(saved_map()), options, None)
    assert [r.options for r in error.value.readings] == [{"models": ["new"]}, {"models": ["old"]}]


def test_without_a_map_it_is_said_where_one_comes_from():
    content = b"p\n" + b"0.25\n0.75\n" * 20
    app = upload(open_page(page="data"), "q2.csv", content)
    assert [plain(title.value) for title in app.title] == ["No labels found in q2.csv"]
    assert recalibrate_results.MAPS in text_of(app)
    assert not app.error


def test_a_map_of_another_column_or_of_a_slice_is_said_to_be_and_a_damaged_one_is_refused():
    app = upload(open_page(page="data"), "kept.csv", GOOD)
    drop(app, "broken.json", saved_map(method="none"))
    assert "'none'" in text_of(app)
    fitted = {"kind": "probabilities", "columns": ["old"]}
    drop(app, "map.json", saved_map(scores=fitted, fitted_where="region is 'north'"))
    drop(app, "q2.csv", b"p\n" + b"0.25\n0.75\n" * 20)
    said = [plain(warning.value) for warning in app.warning]
    assert "The map was fitted on 'old', and is applied to 'p'." in said
    assert any("only on the rows where region is 'north'; it is applied to all" in w for w in said)
    # Another map of the same name takes its place.
    drop(app, "map.json", saved_map(fitted={"temperature_": 1.0}))
    assert not app.warning[1:]
    assert "40 rows calibrated, 0 changed." in text_of(app)


def test_a_file_that_asks_keeps_its_name_and_does_not_speak_of_the_map_of_another():
    app = upload(open_page(page="data"), "kept.csv", GOOD)
    drop(app, "map.json", saved_map(scores={"kind": "probabilities", "columns": ["old"]}))
    drop(app, "mine.csv", b"a,b,c\n" + b"0.2,x,u\n0.7,y,v\n" * 20)
    words = text_of(app) + " ".join(plain(box.value) for box in (*app.warning, *app.error))
    assert "Mine.csv" not in words
    assert "old" not in words


CLAIMS = b"Claim No.,Prob pay,Prob review,Prob reject,Final decision\n" + b"".join(
    f"C{i},{a},{b},{c},{['Paid', 'Under review', 'Rejected'][i % 3]}\n".encode()
    for i in range(60)
    for a, b, c in [np.roll((0.7, 0.2, 0.1), i % 3 if i % 7 else 1)]
)
#: How the lists of classes are set, by label.
MATCHED = {"'Paid' is": "pay", "'Under review' is": "review", "'Rejected' is": "reject"}


def lists(app):
    return {plain(box.label): box for box in app.selectbox if plain(box.label) in MATCHED}


@pytest.mark.slow
def test_labels_in_other_words_than_the_scores_are_matched_in_lists():
    app = upload(open_page(page="data"), "claims.csv", CLAIMS)
    assert plain(app.title[0].value) == "2 questions about claims.csv"
    assert not app.error
    assert all(plain(box.value)[0].isupper() for box in app.warning)
    assert {label: box.value for label, box in lists(app).items()} == MATCHED
    label = next(r for r in app.radio if "There are no labels yet" in r.options)
    label.set_value(label.options[0]).run()
    assert not button(app).disabled
    # Two labels of one class are none of an answer.
    lists(app)["'Paid' is"].set_value("review").run()
    assert button(app).disabled
    lists(app)["'Under review' is"].set_value("pay").run()
    press(app, "Read it with these answers")
    assert "in the order Paid, Under review, Rejected" in text_of(quiet(app))
    (other,) = (b for b in app.button if plain(b.label).startswith("Name the classes Paid, Under"))
    other.click().run()
    told = decode_options(app.query_params["reading"])
    assert told.class_names == ("Paid", "Under review", "Rejected")
    assert "which one is that of the scores" not in text_of(quiet(app))


def test_a_question_that_each_answer_to_another_leaves_open_is_asked_beside_it():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 200)).round(3)
    rows = zip(a, b, rng.random(200) < a, rng.choice([1.0, 2.5], 200), strict=True)
    text = "p_champion,p_challenger,churned,sampling weight\n" + "".join(
        f"{x},{y},{int(hit)},{weight}\n" for x, y, hit, weight in rows
    )
    app = upload(open_page(page="data"), "both.csv", text.encode())
    assert plain(app.title[0].value) == "2 questions about both.csv"
    models, weights = app.radio[:2]
    assert "2 models" in plain(models.options[0])
    # The means of an answer would be those of one model.
    assert all("expected" not in plain(o) for o in weights.options)
    models.set_value(models.options[0])
    weights.set_value(weights.options[0])
    press(app.run(), "Read it with these answers")
    assert "Model champion" in text_of(quiet(app))


def test_a_question_says_how_many_models_were_found_and_what_they_are_called():
    rng = np.random.default_rng(0)
    p, q = (np.round(100 * rng.dirichlet([1, 1, 1], 600), 2) for _ in range(2))
    names = ["ok", "gearbox", "generator"]
    head = [f"{model}P[{name}] %" for model in ("", "New model: ") for name in names]
    said = [names[rng.choice(3, p=row / row.sum())] for row in p + q]
    rows = [",".join([*map(str, (*a, *b)), label]) for a, b, label in zip(p, q, said, strict=True)]
    text = "\n".join([",".join([*head, "result"]), *rows])
    app = upload(open_page(page="data"), "wind.csv", text.encode())
    assert "2 models: 'model', 'New model'." in text_of(app)
    press(app, "Divide the values by 100")
    assert "Model model" in text_of(quiet(app))
    assert "P[_]" not in text_of(app)


def test_labels_that_nothing_matches_with_the_scores_are_matched_by_hand():
    app = upload(open_page(page="data"), "own.csv", CLAIMS.replace(b"Final decision", b"label"))
    assert plain(app.title[0].value) == "One question about own.csv"
    # The title has named the file.
    assert not any("own.csv" in plain(box.value) for box in app.warning)
    greek = CLAIMS.replace(b"Final decision", b"label")
    for name, other in ((b"pay", b"alpha"), (b"review", b"beta"), (b"reject", b"gamma")):
        greek = greek.replace(b"Prob " + name, b"Prob " + other)
    app = upload(open_page(page="data"), "greek.csv", greek)
    assert [box.value for box in lists(app).values()] == [None] * 3
    assert button(app).disabled
    for label, name in zip(MATCHED, ("alpha", "beta", "gamma"), strict=True):
        lists(app)[label].set_value(name).run()
    press(app, "Read it with these answers").open("data")
    assert "3 classes (Paid, Under review, Rejected)" in text_of(quiet(app))


@pytest.mark.slow
@pytest.mark.parametrize("reading", [ReadingOptions(), ReadingOptions(label="Final decision")])
def test_a_file_that_asks_is_said_to_be_another_one_than_that_of_the_link(reading):
    link = f"data=0123456789abcdef&file=mine.csv&reading={encode_options(reading)}"
    app = open_page(link, "data")
    drop(app, "claims.csv", CLAIMS)
    notes = " ".join(plain(note.value) for note in app.info)
    assert "mine.csv" in notes
    assert any("is the true class" in plain(" ".join(radio.options)) for radio in app.radio)
