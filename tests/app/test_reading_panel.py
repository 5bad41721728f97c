"""A doubtful or refused file: its rows, the ways to read it, and no other data's results with it."""

from __future__ import annotations

import pytest

from calviz.app.open_files import OpenFile
from calviz.app.reading_panel import other_way_round
from calviz.data import ReadingOptions, first_rows, read
from tests.app.pages import GOOD, give_role, open_page, press, quiet, text_of, upload

MODELS = b"y_true,y_prob_lr,y_prob_rf\n" + b"1,0.9,0.8\n0,0.3,0.1\n1,0.6,0.7\n0,0.2,0.35\n" * 8
WHICH_EVENT = b"diagnosis,prob\n" + b"M,0.9\nB,0.3\nM,0.6\nB,0.2\n" * 8
LOGITS = b"1.5,-0.5,0.25,0\n-2,3.5,0.5,1\n0.1,0.2,2.5,2\n"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.mark.slow
def test_a_doubtful_file_shows_its_rows_and_opens_with_one_click():
    app = quiet(upload(open_page(page="data"), "mine.csv", MODELS))
    words = text_of(app)
    assert "How is mine.csv to be read?" in words
    assert "do not sum to 1" in app.warning[0].value
    assert len(app.table) == 3
    press(app, "2 models")
    words = text_of(quiet(app))
    assert "32 rows, 2 classes (0, 1), 2 models" in words
    assert '"models":["y_prob_lr","y_prob_rf"]' in str(app.query_params["reading"])


@pytest.mark.slow
def test_the_numbers_are_those_of_the_reading_that_was_chosen():
    app = quiet(upload(open_page(page="data"), "mine.csv", WHICH_EVENT))
    ways = [b.label for b in app.button if b.label.startswith("The probability")]
    assert len(ways) == 2
    press(app, next(w for w in ways if "M" in w))
    assert "'M' is expected in **50.0 %**, and true in **50.0 %**" in text_of(quiet(app))
    app.open("overview")
    assert "mine.csv · 32 rows" in text_of(quiet(app))


@pytest.mark.slow
def test_a_refused_file_is_read_by_the_roles_of_its_columns():
    app = upload(open_page(page="data"), "logits.csv", LOGITS)
    assert len(app.error) == 1
    assert len(app.table) == 4
    # As shown, the scores are taken for probabilities, and what they may be is offered.
    press(app, "Read it like this")
    press(app, next(b.label for b in app.button if "softmax" in b.label))
    assert "3 rows, 3 classes" in text_of(quiet(app))


@pytest.mark.slow
def test_a_role_that_is_chosen_reads_the_file_at_once():
    rows = b"ward,site,risk\n" + b"a,x,0.3\nb,y,0.7\nc,z,0.4\n" * 20
    app = upload(open_page(page="data"), "mine.csv", rows)
    assert "Still to say:" in text_of(app)
    # Three words and one probability do not fit, which is said, with the role as chosen.
    give_role(app, "site", "label")
    assert "nothing says which class" in text_of(app)
    assert "Still to say:" not in text_of(app)
    rows = rows.replace(b"z", b"y")
    app = upload(open_page(page="data"), "mine.csv", rows)
    press(app, next(b.label for b in app.button if b.label.endswith("is the label")))
    # Which of two words is the event is asked next.
    press(app, next(b.label for b in app.button if b.label.startswith("The probability")))
    assert "60 rows, 2 classes" in text_of(quiet(app))


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
    more = next(s for s in app.selectbox if "12 of 61 columns" in s.label)
    more.set_value("x59").run()
    assert app.table[0].value.columns[0] == "x59"


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


def _scores(n):
    return [(i * 37 % 100) / 100 for i in range(n)]
