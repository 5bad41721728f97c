"""Hypothesis tests that only checks make: arrays in, p-values out. Nothing here writes a sentence or knows a code."""
