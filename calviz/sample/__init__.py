"""The rows that are judged, and the summaries (views) that metrics are functions of; draws, error bars, bounds for profiles; what a metric returns.

Not here: a metric, a sentence, a file. Knows nothing of `data` (same floor).
"""
