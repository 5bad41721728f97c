"""Predictions of two and of several classes, metrics of an event, and reliability diagrams as plain JSON."""

import json

import numpy as np

import calviz


def binary(n: int, seed: int = 0, slope: float = 1.0) -> calviz.Predictions:
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 2, n)
    labels = rng.random(n) < 1 / (1 + np.exp(-logit))
    return calviz.Predictions(probs=1 / (1 + np.exp(-slope * logit)), labels=labels, name="binary")


def rare(n: int = 20_000, seed: int = 0) -> calviz.Predictions:
    """Calibrated forecasts of events of about 0.4 %."""
    rng = np.random.default_rng(seed)
    p = 0.004 * np.exp(rng.normal(-0.5, 1, n))
    return calviz.Predictions(probs=p.round(7), labels=rng.random(n) < p, name="rare")


def rare_file(n: int = 3_000) -> bytes:
    """The same as CSV."""
    data = rare(n)
    rows = zip(data.labels, data.probs[:, 1], strict=True)
    return "\n".join(["fraud,score", *(f"{hit},{p:.7f}" for hit, p in rows)]).encode()


def multiclass(n: int = 600, k: int = 4, seed: int = 1) -> calviz.Predictions:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.5), size=n)
    return calviz.Predictions(
        probs=probs,
        labels=rng.integers(k, size=n),
        splits=np.where(np.arange(n) % 3, "test", "calibration"),
    )


def event_metrics(score, hit, keys, **options):
    """Metrics of P(event), shape (n,)."""
    data = calviz.Predictions(probs=score, labels=hit)
    return calviz.evaluate(data, keys, reduction="positive", **options)


def drawn(figure, **options):
    """The plotly figure as plain JSON."""
    return json.loads(figure.plot(**options).to_json())
