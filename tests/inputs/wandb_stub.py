"""The part of wandb that calviz uses, and the predictions of which `benchmarks/record_wandb.py` recorded what the real one keeps."""

from types import SimpleNamespace

import numpy as np

import calviz


class Run:
    """A run that keeps what is logged."""

    def __init__(self):
        self.kept, self.summary = {}, {}

    def log(self, values):
        self.kept |= values

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def stub():
    """A module with media of the types that wandb records, and no active run."""
    return SimpleNamespace(
        Plotly=lambda figure: SimpleNamespace(type="plotly-file", of=figure),
        Html=lambda text, *, inject: SimpleNamespace(type="html-file", of=text),
        Table=lambda columns, *, data: SimpleNamespace(type="table-file", of=data),
        init=lambda **_: Run(),
        run=None,
        __spec__=SimpleNamespace(),
    )


def predictions() -> calviz.Predictions:
    """200 forecasts of rain, by a seed."""
    rng = np.random.default_rng(3)
    p = rng.uniform(size=200)
    return calviz.Predictions(probs=p, labels=(rng.uniform(size=200) < p).astype(int))
