"""What is handed to Weights & Biases: the same as an offline run of it kept when it was recorded."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.core.errors import MissingPackage, OptionError
from calviz.integrations.wandb import log
from tests.inputs.wandb_stub import Run, stub
from tests.reference.wandb_input import predictions

RECORDED = json.loads(
    (Path(__file__).parents[2] / "reference" / "recorded_wandb.json").read_text(encoding="utf-8")
)


@pytest.fixture
def wandb(monkeypatch):
    """What stands in for wandb."""
    module = stub()
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


@pytest.mark.slow
def test_a_run_is_given_what_the_recorded_one_kept(wandb):
    wandb.run = Run()
    p = predictions()
    logged = log(calviz.audit(p, metrics="all"))
    kept = wandb.run.kept
    # By hand: the mean squared error of both classes.
    brier = 2 * np.mean((p.probs[:, 1] - p.labels) ** 2)
    assert RECORDED["brier"] == pytest.approx(brier)
    assert kept["calviz/brier"] == pytest.approx(brier)
    assert {k: v.type for k, v in kept.items() if hasattr(v, "type")} == RECORDED["media"]
    assert {k: v for k, v in kept.items() if not hasattr(v, "type")} == logged
    assert wandb.run.summary == {"calviz/verdict": calviz.verdict(p).sentence}
    assert "Plotly.newPlot" in kept["calviz/report"].of


def test_an_evaluation_alone_is_numbers(wandb):
    run = Run()
    log(calviz.evaluate(predictions(), ["ece"]), run=run, prefix="")
    assert list(run.kept) == ["ece"]
    assert not run.summary


@pytest.mark.slow
def test_what_is_wrong_is_one_sentence(wandb, monkeypatch):
    with pytest.raises(OptionError, match=r"no run of wandb; call wandb\.init\(\) first"):
        log(predictions())
    with pytest.raises(OptionError, match="nothing to log in a ndarray"):
        log(np.zeros(3), run=Run())
    with pytest.raises(OptionError, match="has no figure 'heatmap'; it has"):
        log(predictions(), run=Run(), figures=["heatmap"])
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingPackage, match="run: pip install wandb"):
        log(predictions())
