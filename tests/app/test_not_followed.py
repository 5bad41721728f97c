"""Pages that are of all rows, where rows are selected."""

import pytest

from tests.app.pages import open_page, quiet

SAID = "not only the selected ones"


@pytest.mark.parametrize("page", ["explain", "learning_curve", "arena"])
def test_pages_that_are_of_all_rows_say_so_of_a_selection(page):
    assert SAID not in _captions(quiet(open_page("data=breast_cancer", page)))
    assert SAID in _captions(quiet(open_page("data=breast_cancer&bin=15", page)))


def _captions(app):
    return "".join(c.value for c in app.caption)
