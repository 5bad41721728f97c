"""The sample: the rows that are looked at and how, and the summaries of them that metrics are functions of.

A summary (a *view*) resamples itself and knows what it would be if the model were calibrated. A value of a metric
is one line in `calviz.metrics`; here is what it needs.
"""
