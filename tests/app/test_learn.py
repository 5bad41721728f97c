"""The page Learn opens the entry that the address names, and only one that there is."""

from tests.app.pages import open_page


def test_an_address_opens_its_entry():
    app = open_page("entry=temperature", "learn")
    assert not app.exception
    assert [s.value for s in app.subheader] == ["Temperature scaling"]
    assert len(app.latex) == 1


def test_an_entry_that_there_is_not_opens_none():
    app = open_page("entry=<script>", "learn")
    assert not app.exception
    assert not app.subheader


def test_another_entry_can_be_chosen():
    app = open_page("entry=ece", "learn")
    box = next(s for s in app.selectbox if s.label.startswith("Look up"))
    box.set_value("CAL003").run()
    assert not app.exception
    assert len(app.subheader) == 1
    assert not app.latex
