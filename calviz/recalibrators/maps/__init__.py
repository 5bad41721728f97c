"""Fitted maps outside of this process: as JSON and back, as NumPy source, and applied to data frames.

How a map is fitted does not matter here; each method says what its map consists of.
"""
