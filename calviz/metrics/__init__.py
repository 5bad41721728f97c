"""What is measured: each file registers the metrics of one kind, and `other_libraries` the ECE as others define it.

Not here: what a metric is computed from, if a second metric could use it (`sample`).
"""
