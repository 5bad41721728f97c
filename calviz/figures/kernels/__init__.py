"""Computations that only figures, and the pages around them, need: curves, bands and tables of samples and views, without plotly."""
