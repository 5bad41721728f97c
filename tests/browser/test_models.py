"""Two files are opened, compared, and recalibrated side by side."""

import numpy as np


def test_a_second_file_joins_the_comparison(view, tmp_path):
    rng = np.random.default_rng(0)
    score = rng.uniform(0.02, 0.98, 400)
    labels = (rng.random(400) < score).astype(int)
    for name, probs in (("honest", score), ("shy", 0.25 + score / 2)):
        np.savez(tmp_path / f"{name}.npz", probs=probs, labels=labels, ids=np.arange(400))
    tab = view(height=1_000).open("/compare_models?data=breast_cancer")
    tab.expect("not told apart from it").settle()
    page = tab.page
    for name in ("honest", "shy"):
        if not page.locator("input[type=file]").count():
            page.get_by_text("Compare with the models of another file").click()
        page.locator("input[type=file]").first.set_input_files(tmp_path / f"{name}.npz")
        tab.expect("honest.npz").settle()  # the second joins it; the first stays in view
    tab.expect("By NLL, 'honest' is best")
    tab.expect("The identifiers of all 400 rows are the same.")
    assert page.locator("[data-testid=stTable] strong").first.inner_text()
    page.get_by_role("button", name="Fit them").click()
    tab.expect("Bold: best of its row")
    assert page.locator(".js-plotly-plot").count() >= 7
