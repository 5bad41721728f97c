"""Calibration metrics, one file per family; each registers itself in `calviz.core.metric.METRICS`."""
