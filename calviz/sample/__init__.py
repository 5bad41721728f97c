"""The sample: the rows under evaluation with their settings, and the summaries (*views*) that metrics are functions of.

A view can draw resamples of itself, and redraw its hits or labels as if the model were calibrated. The metrics in
`calviz.metrics` are short functions of these views.
"""
