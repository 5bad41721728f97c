"""The page Reliability."""

import numpy as np
import pytest

from tests.app.pages import open_page, quiet, text_of, unfold, upload


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["equal-mass", "sturges"])
def test_the_ece_shown_is_of_the_bins_drawn(scheme):
    app = open_page(f"scheme={scheme}", "reliability")
    quiet(app)
    assert "**ECE" in text_of(app)


@pytest.mark.slow
def test_curves_are_drawn_over_the_bars():
    app = open_page("data=breast_cancer", "reliability")
    app.segmented_control(key="curves").set_value(["kernel", "isotonic"]).run()
    # What is closed is not computed.
    assert "From 2 to 100 bins of equal" not in text_of(quiet(app))
    assert "From 2 to 100 bins of equal" in text_of(
        quiet(unfold(app, "Does the choice of bins matter?"))
    )


@pytest.mark.slow
def test_a_link_restores_both_curves_and_is_copied_with_both():
    app = open_page("data=breast_cancer")
    app.query_params["curves"] = ["kernel", "isotonic (CORP)"]
    assert quiet(app.open("reliability")).segmented_control(key="curves").value == [
        "kernel",
        "isotonic",
    ]
    # The browser copies its own address, which has both.
    assert app.run().query_params["curves"] == ["kernel", "isotonic (CORP)"]


def test_chosen_bins_are_in_the_link_and_end_visibly_where_the_bins_change():
    app = quiet(open_page("data=digits&model=MLP&bin=13-15", "reliability"))
    assert "Bins 13 to 15 (0.80, 1.00]" in text_of(app)
    # The rows of a range are those of its bins, spread over classes and slices that add up to them.
    assert [tab.label for tab in app.tabs][:4] == [
        "Rows",
        "By predicted class",
        "By true class",
        "By condition",
    ]
    unfold(app, "By condition")
    spread = next(f.value for f in app.dataframe if "of the selection" in f.value.columns)
    assert spread["of the selection"].sum() == pytest.approx(100)
    assert spread["rows"].sum() == 176 + 329 + 2_828
    app.number_input(key="bins").set_value(20).run()
    assert "Bins 13 to 15" not in text_of(quiet(app))
    assert "selected" not in app.query_params
    assert "ended: the scores or the bins have changed." in text_of(app)
    # The table's tick went with it: it is another table.
    assert app.session_state["calviz.selection"].turns["reliability.bins"] > 0


def test_a_worst_bin_of_the_other_view_of_two_classes_is_not_that_of_the_bins_drawn():
    # Nearly all probabilities are too high, which cancels in the top label: the verdict speaks of the positive class.
    rng = np.random.default_rng(1)
    z = rng.normal(0, 1.5, 1_000)
    labels = rng.random(1_000) < 1 / (1 + np.exp(-(z - 0.8)))
    rows = [f"{int(y)},{1 / (1 + np.exp(-s)):.4f}" for y, s in zip(labels, z, strict=True)]
    file = "\n".join(["label,p", *rows]).encode()
    app = quiet(upload(open_page(page="data"), "high.csv", file).open("reliability"))
    assert "\nWorst between " in text_of(app)
    app.button(key="calviz.other_view").click().run()
    words = text_of(quiet(app))
    assert "this page looks at the top label" in words
    assert "Probabilities of '1' too high by " in words.replace("\\", "")
    assert " Seen by the top label, " in words
    assert "Worst between " not in words
