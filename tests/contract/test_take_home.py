"""Every method on hostile scores: the map through JSON and ``calviz apply``, and the snippet, give what the fit gave."""

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import RECALIBRATORS
from tests.inputs.command_line import run_successfully
from tests.inputs.simulated import draw_labels

pytestmark = pytest.mark.usefixtures("few_candidates")

ROWS = 240


def with_ties_zeros_and_ones(k, dtype):
    """Rounded to a tenth, so that there are ties and exact zeros; one row in eight is certain, and wrong at times."""
    rng = np.random.default_rng(k)
    p = rng.multinomial(10, np.full(k, 1 / k), size=ROWS) / 10
    p[::8] = np.eye(k)[rng.integers(k, size=p[::8].shape[0])]
    y = draw_labels(p, rng)
    y[::24] = (y[::24] + 1) % k
    return p.astype(dtype), y


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    split = np.repeat(["calibration", "test"], ROWS // 2)
    p, y = with_ties_zeros_and_ones(3, np.float32)
    np.savez(folder / "single.npz", probs=p, labels=y, split=split)
    p, y = with_ties_zeros_and_ones(2, np.float64)
    lines = [f"{label},{q:g},{s}" for label, q, s in zip(y, p[:, 1], split, strict=True)]
    (folder / "column.csv").write_text("label,probability,split\n" + "\n".join(lines) + "\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["single.npz", "column.csv"])
@pytest.mark.parametrize("key", RECALIBRATORS.keys())
def test_map_and_snippet_do_what_the_fit_did(key, name, files, tmp_path):
    source, saved, snippet = files / name, tmp_path / "map.json", tmp_path / "map.py"
    outs = [tmp_path / "one.npz", tmp_path / "two.npz"]
    run_successfully("recalibrate", source, "--method", key, "--fit-split", "calibration", "--out", outs[0],
        "--save-map", saved, "--save-snippet", snippet)  # fmt: skip
    run_successfully("apply", source, "--map", saved, "--out", outs[1])
    fitted, applied = (calviz.load(out).probs for out in outs)
    np.testing.assert_allclose(applied, fitted, rtol=0, atol=1e-6)
    program = {}
    exec(compile(snippet.read_text(), "map.py", "exec"), program)
    given = calviz.load(source)
    out = program["recalibrate"](given.probs)
    np.testing.assert_allclose(out, fitted, rtol=0, atol=1e-6)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out.sum(axis=1), 1, atol=1e-6)
