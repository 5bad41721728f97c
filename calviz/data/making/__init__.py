"""From what is in memory to `Predictions`: arrays with labels of any kind, fitted estimators, data frames.

`Predictions.from_arrays`, `from_estimator` and `from_frame` end here; files are read by `calviz.data.reading`, and a frame goes
the same way as a file from its columns on. Nothing here measures anything.
"""
