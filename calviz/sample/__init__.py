"""The sample: the rows under evaluation with their settings, and the summaries (*views*) that metrics are functions of.

`sample.Sample` keeps what is computed for it; `metric_results` asks metrics for their values, `error_bars` makes intervals and noise
floors of resamples. Each view has a file (`binning`, `steps`, `class_columns`, ...), as have slices and the tests behind findings.
A view can draw resamples of itself, and redraw its hits or labels as if the model were calibrated. The metrics in
`calviz.metrics` are short functions of these views.
"""
