"""Computations that only figures, and the pages around them, need: curves, bands and tables from arrays to arrays, without plotly."""
