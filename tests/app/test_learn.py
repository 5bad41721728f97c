"""The page Learn opens the entry that the address names, and only one that there is."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

APP = Path(__file__).resolve().parents[2] / "app.py"


def _learn(entry: str) -> AppTest:
    app = AppTest.from_file(str(APP), default_timeout=600)
    app.switch_page("pages/learn.py")
    app.query_params["entry"] = entry
    return app.run()


def test_an_address_opens_its_entry():
    app = _learn("temperature")
    assert not app.exception
    assert [s.value for s in app.subheader] == ["Temperature scaling"]
    assert len(app.latex) == 1


def test_an_entry_that_there_is_not_opens_none():
    app = _learn("<script>")
    assert not app.exception
    assert not app.subheader


def test_another_entry_can_be_chosen():
    app = _learn("ece")
    box = next(s for s in app.selectbox if s.label.startswith("Look up"))
    box.set_value("CAL003").run()
    assert not app.exception
    assert len(app.subheader) == 1
    assert not app.latex
