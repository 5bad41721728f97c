"""Metrics, one file per family; each registers itself in `calviz.specs.metric.METRICS`.

A metric is a function of a view that works along the last axes, so that the same lines give its value (shape ()) and its
values on resamples (shape (R,)). A view that several families share is in `calviz.sample`, a computation that only metrics need
in ``kernels``. Nothing here judges a number or writes it for people.
"""
