"""From objects in memory to `Predictions`: arrays with labels of any kind, fitted estimators, data frames.

`Predictions.from_arrays`, `from_estimator` and `from_frame` are implemented here; files are read by `calviz.data.reading`, and the
columns of a frame are recognised like those of a file. Nothing here computes a metric.
"""
