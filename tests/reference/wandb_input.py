"""The predictions that `benchmarks/record_wandb.py` logs."""

import numpy as np

import calviz


def predictions() -> calviz.Predictions:
    """200 forecasts of rain, by a seed."""
    rng = np.random.default_rng(3)
    p = rng.uniform(size=200)
    return calviz.Predictions(probs=p, labels=(rng.uniform(size=200) < p).astype(int))
