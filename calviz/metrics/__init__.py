"""Metrics, one file per kind; each registers itself in `calviz.specs.metric.METRICS`.

A metric is a function of a view that works along the last axes, so that the same code computes its value (shape ())
and its values on resamples (shape (R,)). Views that several families share are in `calviz.sample`, computations that only
metrics need in ``kernels``. Nothing here judges a number or formats it for people.
"""
