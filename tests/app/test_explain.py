"""The verdict in plain words."""

import pytest

from tests.app.pages import open_page, quiet, text_of


@pytest.mark.slow
def test_the_page_has_the_numbers_of_the_overview():
    app = quiet(open_page("data=breast_cancer&plain=true"))
    text = text_of(app)
    assert [line[:3] for line in text.splitlines() if line[1:3] == ". "] == [
        f"{n}. " for n in range(1, 6)
    ]
    verdict = app.toggle(key="plain").set_value(False).run().title[0].value
    assert ("No fault was found" in text) == ("No miscalibration" in verdict)
