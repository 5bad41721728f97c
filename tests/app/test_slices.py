"""The page Slices."""

import pytest

from tests.app.pages import helps_of, open_page, quiet, upload


def lines(scores_near_one):
    """Two values of a group: scores of 0.999 with a mistake or two, and scores of 0.6 that are right in 6 of 10 rows."""
    yield "label,p_a,p_b,site"
    for i in range(scores_near_one):
        yield f"{'b' if i < 3 else 'a'},0.999,0.001,north"
    for i in range(200):
        yield f"{'a' if i % 10 < 6 else 'b'},0.6,0.4,south"


@pytest.mark.slow
def test_a_slice_that_is_off_though_its_interval_contains_0_is_explained():
    # Three misses of 500 where half a miss is expected: p = 0.014 for a Poisson number, while the interval reaches 0.
    app = upload(open_page(page="data"), "mine.csv", "\n".join(lines(500)).encode())
    app = quiet(app.open("slices"))
    assert "contains 0" not in helps_of(app)
    app.number_input(key="fdr").set_value(20).run()
    assert "The interval of 1 slice that is off contains 0" in helps_of(quiet(app))
    table = next(t.value for t in app.dataframe if "adjusted" in t.value.columns)
    north = table[table["slice"] == "site = north"].iloc[0]
    low, high = (float(end.replace("−", "-")) for end in north["95 % interval"].split(" to "))
    assert north["off"] == "yes"
    assert low <= 0 <= high
