"""Saved views: what is read, what is refused in a sentence, and what is opened."""

import json

import pytest

from calviz.app.open_files import is_view, read_view, view_header
from calviz.core.errors import InputError
from tests.app.pages import drop, open_page, quiet, text_of

PAGES = frozenset({"overview", "reliability"})


def _view(**changes):
    view = view_header(key="digits", title="Handwritten digits", digest="fd49", rows=6_000) | {
        "page": "reliability",
        "settings": {"bins": "9", "curves": ["kernel", "isotonic (CORP)"], "selected": "bins~2-3"},
    }
    return json.dumps(view | changes).encode()


def test_a_view_holds_page_settings_and_the_fingerprint_of_the_data():
    view = read_view(_view(), pages=PAGES)
    assert (view.page, view.key, view.rows) == ("reliability", "digits", 6_000)
    assert view.settings["curves"] == ("kernel", "isotonic (CORP)")
    assert is_view(_view())
    assert not is_view(b'{"p": 0.5, "calviz": 1}'[:8])
    assert not is_view(b"label,p_a\n")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (_view()[:-5], "it is not complete JSON"),
        (_view(version=2), "it is of version 2, and this calviz reads version 1"),
        (_view(version=True), "it is of version True"),
        (_view(page="../etc"), "there is no page '../etc'"),
        (_view(extra=1), "and nothing else"),
        (_view(data={"key": "digits"}), "'data' must hold key, title, rows, digest"),
        (_view(settings={"bins": 9}), "the setting 'bins' must be a text"),
        (_view(settings={"data": "x"}), "'data' is not a setting"),
        (_view(settings=[]), "'settings' must be"),
        (b" " * 300_000, "at most 200,000 are read"),
    ],
)
def test_a_broken_view_is_one_sentence(content, why):
    with pytest.raises(InputError, match="this saved view cannot be opened") as error:
        read_view(content, pages=PAGES)
    assert why in str(error.value)


@pytest.mark.slow
def test_a_view_is_opened_where_files_are_and_names_the_data_that_are_missing():
    app = quiet(open_page(page="data"))
    drop(app, "v.json", _view(version=7), "application/json")
    assert "version 7" in " ".join(e.value for e in app.info)
    # The browser is told where to go; the rest is a step in its history.
    drop(app, "v.json", _view(), "application/json")
    turn, view = app.session_state["calviz.view"]
    assert turn
    assert view.settings["selected"] == ("bins~2-3",)
    missing = view_header(key="0123456789abcdef", title="mine.csv", digest="0123", rows=77)
    content = _view(data=missing["data"])
    drop(app, "v.json", content, "application/json")
    assert "It was made with mine.csv (77 rows) with digest 0123456789abcdef" in text_of(
        quiet(app)
    ).replace("**", "")
